/* Arithmetic of 64-bit integers without overflow (op_inner.h: slp_modular), for CPUs and GPUs. */
#ifndef SLP_MODULAR_H
#define SLP_MODULAR_H

#include <stdint.h>

#include "op_inner.h"

#ifdef __CUDACC__
#define SLP_MODULAR_FN static inline __host__ __device__
#else
#define SLP_MODULAR_FN static inline
#endif

/* a and b as bits; a shift by 64 and more loses all of them. */
SLP_MODULAR_FN uint64_t slp_modular_of(int kind, uint64_t a, uint64_t b)
{
	switch (kind) {
	case SLP_MODULAR_ADD: return a + b;
	case SLP_MODULAR_SUB: return a - b;
	case SLP_MODULAR_MUL: return a * b;
	case SLP_MODULAR_AND: return a & b;
	case SLP_MODULAR_OR: return a | b;
	case SLP_MODULAR_XOR: return a ^ b;
	case SLP_MODULAR_LEFT: return b < 64 ? a << b : 0;
	default: return b < 64 ? a >> b : 0;
	}
}

#endif
