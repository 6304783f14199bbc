/* Vectors of floats and unrolled loops for the kernels that keep a tile of results in registers. */
#ifndef SLP_SIMD_H
#define SLP_SIMD_H

#include <string.h>

#define SLP_INLINE static inline __attribute__((always_inline))

/* Before a loop whose bound is a constant, once inlined: its array elements become registers. */
#ifdef __clang__
#define SLP_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SLP_UNROLL _Pragma("GCC unroll 32")
#endif

#endif
