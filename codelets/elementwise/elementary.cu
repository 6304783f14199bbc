/* The elementary functions on GPUs. */
#include "unary.cuh"
#include "elementary.def"
