/* The activations that products join on GPUs. */
#include "unary.cuh"
#include "activations.def"
