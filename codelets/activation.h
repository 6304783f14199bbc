/* Activations as the last step of another operation: functions of unary.def by their enum sl_activation. */
#ifndef SLP_ACTIVATION_H
#define SLP_ACTIVATION_H

#include "scalar.h"

/* X(enum, name in unary.def) */
#define SLP_ACTIVATION_LIST(X)                                                                                         \
	X(SL_RELU, relu) X(SL_SIGMOID, sigmoid) X(SL_TANH, tanh) X(SL_GELU, gelu) X(SL_SOFTPLUS, softplus)

#ifdef __cplusplus

#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	template <class T> static __device__ inline T slp_value_##name(T x)                                            \
	{                                                                                                              \
		return value;                                                                                          \
	}
#include "unary.def"

template <class T> static __device__ inline T slp_activated(T x, int activation)
{
	switch (activation) {
#define X(symbol, name)                                                                                                \
	case symbol:                                                                                                   \
		return slp_value_##name(x);
		SLP_ACTIVATION_LIST(X)
#undef X
	default:
		return x;
	}
}

#else

#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	static inline double slp_value_##name(double x)                                                                \
	{                                                                                                              \
		typedef double T;                                                                                      \
		return (T)(value);                                                                                     \
	}
#include "unary.def"

/* In double precision, for reference kernels. */
static inline double slp_activated(double x, int activation)
{
	switch (activation) {
#define X(symbol, name)                                                                                                \
	case symbol:                                                                                                   \
		return slp_value_##name(x);
		SLP_ACTIVATION_LIST(X)
#undef X
	default:
		return x;
	}
}

/* y[i] = the activation of y[i]; on the calling thread (activation.c). */
void slp_activate_range(float *y, int64_t n, int activation);
/* The same on the team. */
void slp_activate_all(float *y, int64_t n, int activation);

#endif
#endif
