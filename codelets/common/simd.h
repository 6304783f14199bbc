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

/* For functions that need 32 registers of 16 floats, or 16 of 8; called only if slp_has_avx512(), slp_has_avx2(). */
#if defined(__x86_64__) && defined(__GNUC__)
#define SLP_AVX512 __attribute__((target("arch=x86-64-v4")))
#define SLP_AVX2 __attribute__((target("arch=x86-64-v3")))
#define slp_has_avx512() __builtin_cpu_supports("avx512vl")
#define slp_has_avx2() (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define SLP_AVX512
#define SLP_AVX2
#define slp_has_avx512() 0
#define slp_has_avx2() 0
#endif

typedef float slp_v16 __attribute__((vector_size(64)));
typedef float slp_v8 __attribute__((vector_size(32)));

#endif
