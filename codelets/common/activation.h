/* Activations as the last step of another operation: functions of activations.def by their enum sl_activation. */
#ifndef SLP_ACTIVATION_H
#define SLP_ACTIVATION_H

#include "scalar.h"
#include "starling/options.h"

/* X(enum, name in activations.def) */
#define SLP_ACTIVATION_LIST(X)                                                                                         \
	X(SL_RELU, relu) X(SL_SIGMOID, sigmoid) X(SL_TANH, tanh) X(SL_GELU, gelu) X(SL_SOFTPLUS, softplus)

/* In double precision in C, for reference kernels. */
#ifdef __cplusplus
#define FUNCTION template <class T> static __device__ inline
#else
#define FUNCTION static inline
#define T double
#endif

#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	FUNCTION T slp_value_##name(T x)                                                                               \
	{                                                                                                              \
		return (T)(value);                                                                                     \
	}
#include "elementwise/activations.def"
#undef UNARY

FUNCTION T slp_activated(T x, int activation)
{
	switch (activation) {
/* clang-format off */
#define X(symbol, name)                                                                                                \
	case symbol:                                                                                                   \
		return slp_value_##name(x);
		/* clang-format on */
		SLP_ACTIVATION_LIST(X)
#undef X
	default: return x;
	}
}

#undef FUNCTION
#ifndef __cplusplus
#undef T

/* y[i] = the activation of y[i]; on the calling thread (activation.c). */
void slp_activate_range(float *y, int64_t n, int activation);
/* The same on the team. */
void slp_activate_all(float *y, int64_t n, int activation);

#endif
#endif
