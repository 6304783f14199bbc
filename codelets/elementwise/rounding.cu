/* The functions whose gradient is 0 on GPUs. */
#include "unary.cuh"
#include "rounding.def"
