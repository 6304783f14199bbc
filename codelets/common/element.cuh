/* Stored elements and the numbers that kernels compute with, from SL_DTYPE_LIST. */
#ifndef SLP_ELEMENT_CUH
#define SLP_ELEMENT_CUH

#include <cstdint>

#include "gpu.cuh"

template <class S> struct slp_number;
template <class S> struct slp_stored;
/* slp_number<S>::type is what is computed in; slp_stored<S>::of(x) the element for a number, as slp_set_truncated. */
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

/* Calls f(S()) with the type of the elements, one of those in the set; the operation's rows see to that. */
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

/* The same for elements that are only moved, by their size: f(uint8_t()) and so on. */
template <class F> static inline void slp_with_size(size_t size, F f)
{
	if (size == 1) f(uint8_t());
	if (size == 2) f(uint16_t());
	if (size == 4) f(uint32_t());
	if (size == 8) f(uint64_t());
}

#endif
