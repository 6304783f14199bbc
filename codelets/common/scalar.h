/* Elementary functions m_… of one number, in its own type.  In C, a float gets the fast ones of vmath.h and a double
 * those of the C library, for the reference; in CUDA C++, both get CUDA's.  The tables unary.def and binary.def are
 * written with these, and with T for the type: one expression serves all kernels. */
#ifndef SLP_SCALAR_H
#define SLP_SCALAR_H

/* X(name, value) for each function of x that is composed of others. */
#define SLP_COMPOSED(X)                                                                                                \
	X(sigmoid, 1 / (1 + m_exp(-x)))                                                                                \
	X(softplus, (x < 0 ? 0 : x) + m_log1p(m_exp(-m_abs(x))))                                                       \
	X(gelu, x < -50 ? (T)-0.0 : x * (T)0.5 * m_erfc(x * (T)-0.7071067811865476))                                   \
	X(gelu_slope, (T)0.5 * m_erfc(x * (T)-0.7071067811865476) +                                                    \
	                      m_limit(x) * m_exp(m_limit(x) * m_limit(x) * (T)-0.5) * (T)0.3989422804014327)           \
	X(sign, x > 0 ? 1 : x < 0 ? -1 : x)

/* X(name, body) for each function of a and b that is composed of others: the remainder of a division whose quotient is
 * rounded down, and that quotient, which is exact where the rounded a / b is not. */
#define SLP_COMPOSED_OF_TWO(X)                                                                                         \
	X(remainder, T r = m_fmod(a, b); return ((r != 0) & ((r < 0) != (b < 0))) ? r + b : r;)                        \
	X(floor_divide, T r = m_fmod(a, b); T q = (a - r) / b - (((r != 0) & ((r < 0) != (b < 0))) ? 1 : 0);           \
	  T whole = m_floor(q); return b == 0               ? a / b                                                    \
	                               : q == 0             ? m_copysign((T)0, a / b)                                  \
	                               : q - whole > (T)0.5 ? whole + 1                                                \
	                                                    : whole;)

/* For derivatives: infinity times zero is zero. */
#define m_limit(x) ((x) < -1000 ? -1000 : (x) > 1000 ? 1000 : (x))

/* gelu_tanh(x) is x times the sigmoid of this: 2 sqrt(2 / pi) (x + 0.044715 x^3); its derivative. */
#define m_gelu_turn(x) ((x) * ((T)1.5957691216057308 + (T)0.07135481627260025 * (x) * (x)))
#define m_gelu_turn_slope(x) ((T)1.5957691216057308 + (T)0.21406444881780074 * m_limit(x) * m_limit(x))

#ifdef __cplusplus

#include <cmath>

#include "power.cuh"

#define SLP_SCALAR_FN template <class T> static __host__ __device__ inline T

/* X(name): the C library's functions of one number, for both types. */
/* clang-format off */
#define SLP_LIBRARY(X)                                                                                                 \
	X(exp) X(log) X(sqrt) X(tanh) X(log1p) X(expm1) X(erf) X(erfc) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan)    \
	X(sinh) X(cosh) X(asinh) X(acosh) X(atanh) X(floor) X(ceil)
/* clang-format on */
#define X(name)                                                                                                        \
	SLP_SCALAR_FN m_##name(T x)                                                                                    \
	{                                                                                                              \
		return std::name(x);                                                                                   \
	}
SLP_LIBRARY(X)
#undef X

SLP_SCALAR_FN m_round(T x)
{
	return std::rint(x);
}

SLP_SCALAR_FN m_abs(T x)
{
	return std::fabs(x);
}

SLP_SCALAR_FN m_pow(T x, T y)
{
	return slp_pow(x, y);
}

/* X(name): the C library's functions of two numbers. */
#define SLP_LIBRARY_OF_TWO(X) X(atan2) X(fmod) X(copysign)
#define X(name)                                                                                                        \
	SLP_SCALAR_FN m_##name(T x, T y)                                                                               \
	{                                                                                                              \
		return std::name(x, y);                                                                                \
	}
SLP_LIBRARY_OF_TWO(X)
#undef X

#define X(name, value)                                                                                                 \
	SLP_SCALAR_FN m_##name(T x)                                                                                    \
	{                                                                                                              \
		return value;                                                                                          \
	}
SLP_COMPOSED(X)
#undef X

#define X(name, ...)                                                                                                   \
	SLP_SCALAR_FN m_##name(T a, T b)                                                                               \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}
SLP_COMPOSED_OF_TWO(X)
#undef X

#else

#include "vmath.h"

#define SLP_SCALAR(fast, exact, x) _Generic((x), float : fast, default : exact)(x)
#define m_abs(x) SLP_SCALAR(fabsf, fabs, x)
#define m_exp(x) SLP_SCALAR(slp_expf, exp, x)
#define m_log(x) SLP_SCALAR(slp_logf, log, x)
#define m_sqrt(x) SLP_SCALAR(sqrtf, sqrt, x)
#define m_tanh(x) SLP_SCALAR(slp_tanhf, tanh, x)
#define m_log1p(x) SLP_SCALAR(slp_log1pf, log1p, x)
#define m_expm1(x) SLP_SCALAR(slp_expm1f, expm1, x)
#define m_sin(x) SLP_SCALAR(sinf, sin, x)
#define m_cos(x) SLP_SCALAR(cosf, cos, x)
#define m_tan(x) SLP_SCALAR(slp_tanf, tan, x)
#define m_asin(x) SLP_SCALAR(slp_asinf, asin, x)
#define m_acos(x) SLP_SCALAR(slp_acosf, acos, x)
#define m_atan(x) SLP_SCALAR(slp_atanf, atan, x)
#define m_sinh(x) SLP_SCALAR(slp_sinhf, sinh, x)
#define m_cosh(x) SLP_SCALAR(slp_coshf, cosh, x)
#define m_asinh(x) SLP_SCALAR(slp_asinhf, asinh, x)
#define m_acosh(x) SLP_SCALAR(slp_acoshf, acosh, x)
#define m_atanh(x) SLP_SCALAR(slp_atanhf, atanh, x)
#define m_erf(x) SLP_SCALAR(slp_erff, erf, x)
#define m_floor(x) SLP_SCALAR(floorf, floor, x)
#define m_ceil(x) SLP_SCALAR(ceilf, ceil, x)
#define m_round(x) SLP_SCALAR(rintf, rint, x)
#define m_erfc(x) SLP_SCALAR(erfcf, erfc, x)
#define m_pow(x, y) _Generic((x), float : slp_powf, default : pow)(x, y)
#define m_atan2(x, y) _Generic((x), float : atan2f, default : atan2)(x, y)
#define m_fmod(x, y) _Generic((x), float : fmodf, default : fmod)(x, y)
#define m_copysign(x, y) _Generic((x), float : copysignf, default : copysign)(x, y)

#define X(name, value)                                                                                                 \
	static inline double slp_wide_##name(double x)                                                                 \
	{                                                                                                              \
		typedef double T;                                                                                      \
		return (T)(value);                                                                                     \
	}
SLP_COMPOSED(X)
#undef X

#define X(name, ...)                                                                                                   \
	static inline float slp_##name##f(float a, float b)                                                            \
	{                                                                                                              \
		typedef float T;                                                                                       \
		__VA_ARGS__                                                                                            \
	}                                                                                                              \
	static inline double slp_wide_##name(double a, double b)                                                       \
	{                                                                                                              \
		typedef double T;                                                                                      \
		__VA_ARGS__                                                                                            \
	}
SLP_COMPOSED_OF_TWO(X)
#undef X

#define m_remainder(x, y) _Generic((x), float : slp_remainderf, default : slp_wide_remainder)(x, y)
#define m_floor_divide(x, y) _Generic((x), float : slp_floor_dividef, default : slp_wide_floor_divide)(x, y)
#define m_sigmoid(x) SLP_SCALAR(slp_sigmoidf, slp_wide_sigmoid, x)
#define m_softplus(x) SLP_SCALAR(slp_softplusf, slp_wide_softplus, x)
#define m_gelu(x) SLP_SCALAR(slp_geluf, slp_wide_gelu, x)
#define m_gelu_slope(x) SLP_SCALAR(slp_gelu_slopef, slp_wide_gelu_slope, x)
#define m_sign(x) SLP_SCALAR(slp_signf, slp_wide_sign, x)

#endif
#endif
