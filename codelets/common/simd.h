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

/* For functions that need 32 registers of 16 floats; called only where slp_has_avx512(). */
#if defined(__x86_64__) && defined(__GNUC__)
#define SLP_AVX512 __attribute__((target("arch=x86-64-v4")))
#define slp_has_avx512() __builtin_cpu_supports("avx512vl")
#else
#define SLP_AVX512
#define slp_has_avx512() 0
#endif

typedef float slp_v16 __attribute__((vector_size(64)));

#endif
