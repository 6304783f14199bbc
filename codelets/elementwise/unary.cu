/* The functions in the lines of unary.def itself on GPUs; its tables have a file each. */
#include "unary.cuh"
#define SLP_UNARY_BELOW
#include "unary.def"
