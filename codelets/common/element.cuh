/* Stored elements and the numbers that kernels compute with, from SL_DTYPE_LIST. */
#ifndef SLP_ELEMENT_CUH
#define SLP_ELEMENT_CUH

#include <cstdint>
#include <type_traits>

#include "op.h"
#include "gpu.cuh"

template <class S> struct slp_number;
template <class S> struct slp_stored;
/* slp_number<S>::type is the type of computation; slp_stored<S>::of(x) converts a number to an element, as
 * slp_set_truncated does. */
#define X(symbol, name, S, kind, compute, ...)                                                                         \
	template <> struct slp_number<S> {                                                                             \
		typedef compute type;                                                                                  \
	};                                                                                                             \
	template <> struct slp_stored<S> {                                                                             \
		template <class T> static __host__ __device__ S of(T x)                                                \
		{                                                                                                      \
			return slp_store_##symbol(x);                                                                  \
		}                                                                                                      \
	};
SL_DTYPE_LIST(X)
#undef X

/* An element of a half type in a kernel: it is read as float, and rounded when written. */
template <class S> struct slp_half {
	S stored;

	slp_half() = default;
	template <class N, class = typename std::enable_if<std::is_arithmetic<N>::value>::type>
	__host__ __device__ slp_half(N x)
	    : stored(slp_stored<S>::of(
	              (typename std::conditional<std::is_same<N, float>::value, float, double>::type)x))
	{
	}
	__host__ __device__ operator float() const
	{
		return slp_load(stored);
	}
};
typedef slp_half<sl_bfloat16> slp_bf16;
typedef slp_half<sl_float16> slp_f16;
template <class S> struct slp_number<slp_half<S>> {
	typedef float type;
};
template <class S> struct slp_stored<slp_half<S>> {
	template <class T> static __host__ __device__ slp_half<S> of(T x)
	{
		return slp_half<S>(x);
	}
};

/* The same for arithmetic that is exact for int64, too (whole.h). */
template <class S> struct slp_exact {
	typedef typename slp_number<S>::type type;
};
template <> struct slp_exact<int64_t> {
	typedef int64_t type;
};
template <> inline __host__ __device__ int64_t slp_stored<int64_t>::of(int64_t x)
{
	return x;
}

/* Vectors beside images: of the type of the images, or of float32 beside a half type. */
template <class T> struct slp_vector {
	void *p;
	enum sl_dtype dtype;

	static slp_vector of(const struct slp_view *v)
	{
		return {v ? v->ptr : NULL, v ? v->type.dtype : SL_FLOAT32};
	}
	__device__ T operator[](int64_t i) const
	{
		if (dtype == SL_BFLOAT16) return (T)((const slp_bf16 *)p)[i];
		if (dtype == SL_FLOAT16) return (T)((const slp_f16 *)p)[i];
		return ((const T *)p)[i];
	}
	__device__ void set(int64_t i, double x) const
	{
		if (dtype == SL_BFLOAT16) ((slp_bf16 *)p)[i] = x;
		else if (dtype == SL_FLOAT16) ((slp_f16 *)p)[i] = x;
		else ((T *)p)[i] = (T)x;
	}
	template <class F> void emu_pointers(F f)
	{
		f(p);
	}
};

/* Elements as kernels take them: half types as numbers, others as they are. */
template <class S> struct slp_element {
	typedef S type;
};
template <> struct slp_element<sl_bfloat16> {
	typedef slp_bf16 type;
};
template <> struct slp_element<sl_float16> {
	typedef slp_f16 type;
};

/* Calls f(S()) with the type of the elements, one of the set; the operation's rows guarantee that. */
template <unsigned SET, class F> static inline void slp_with(enum sl_dtype dtype, F f)
{
	switch (dtype) {
#define X(symbol, name, S, ...)                                                                                        \
	case symbol:                                                                                                   \
		if constexpr (SET & SLP_DTYPE(symbol)) f(S());                                                         \
		break;
		SL_DTYPE_LIST(X)
#undef X
	case SL_DTYPE_DEFAULT:
	case SL_DTYPE_COUNT: break;
	}
}

/* The same for kernels that compute: half types are slp_bf16 and slp_f16. */
template <unsigned SET, class F> static inline void slp_with_numbers(enum sl_dtype dtype, F f)
{
	slp_with<SET>(dtype, [&](auto zero) { f(typename slp_element<decltype(zero)>::type()); });
}

/* The same for elements that are only moved, by their size: f(uint8_t()) and so on. */
template <class F> static inline void slp_with_size(size_t size, F f)
{
	if (size == 1) f(uint8_t());
	if (size == 2) f(uint16_t());
	if (size == 4) f(uint32_t());
	if (size == 8) f(uint64_t());
}

#endif
