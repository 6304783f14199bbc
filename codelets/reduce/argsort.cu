/* argsort on a GPU: each element counts the elements before it. */
#include <type_traits>

#include "argsort.h"
#include "op.h"
#include "common/element.cuh"
#include "common/gpu.cuh"

static __device__ inline bool before(double a, double b, bool descending)
{
	return slp_sorts_before(a, b, descending);
}

static __device__ inline bool before(int64_t a, int64_t b, bool descending)
{
	return slp_whole_sorts_before(a, b, descending);
}

template <class T> __global__ void argsort(slp_split s, bool descending, int64_t n, const T *x, int32_t *y)
{
	SLP_GRID_STRIDE(e, n)
	{
		int64_t i = e / s.inner % s.n, first = e - i * s.inner, place = 0;
		typename std::conditional<std::is_same<T, int64_t>::value, int64_t, double>::type u, v = x[e];
		for (int64_t o = 0; o < s.n; o++) {
			u = x[first + o * s.inner];
			place += before(u, v, descending) || (o < i && !before(v, u, descending));
		}
		y[first + place * s.inner] = (int32_t)i;
	}
}

extern "C" enum sl_status slp_cuda_argsort(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]);
	bool descending = ((const slp_argsort_attrs *)k->attrs)->descending;
	if (n == 0) return SL_OK;
	slp_with_numbers<SLP_NUMBERS | SLP_HALVES>(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		SLP_LAUNCH(argsort<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, slp_argsort_split(k), descending, n,
		           (const T *)k->in[0].ptr, (int32_t *)k->out[0].ptr);
	});
	return slp_launched(k);
}
