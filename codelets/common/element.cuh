/* Stored elements and the numbers that kernels compute with: floats as they are, integers in double precision. */
#ifndef SLP_ELEMENT_CUH
#define SLP_ELEMENT_CUH

#include <cstdint>

#include "gpu.cuh"

template <class S> struct slp_number {
	typedef double type;
};
template <> struct slp_number<float> {
	typedef float type;
};

/* Integers lose the fraction and saturate, NaN becomes 0: as slp_set_truncated has it. */
template <class S> struct slp_stored {
	static __host__ __device__ S of(double x)
	{
		const double low = sizeof(S) == 1 ? 0 : INT32_MIN, high = sizeof(S) == 1 ? UINT8_MAX : INT32_MAX;
		return x != x ? (S)0 : x <= low ? (S)low : x >= high ? (S)high : (S)x;
	}
};
template <> struct slp_stored<float> {
	static __host__ __device__ float of(float x)
	{
		return x;
	}
	static __host__ __device__ float of(double x)
	{
		return (float)x;
	}
};
template <> struct slp_stored<double> {
	static __host__ __device__ double of(double x)
	{
		return x;
	}
};

/* Calls f(S()) with the type of the elements. */
template <class F> static inline void slp_with_element(enum sl_dtype dtype, F f)
{
	switch (dtype) {
#define X(symbol, name, type)                                                                                          \
	case symbol:                                                                                                   \
		f(type());                                                                                             \
		break;
		SL_DTYPE_LIST(X)
#undef X
	case SL_DTYPE_COUNT:
		break;
	}
}

#endif
