/* cumsum on a GPU: a thread a line. */
#include <type_traits>

#include "op.h"
#include "common/element.cuh"
#include "common/gpu.cuh"
#include "cumsum.h"
#include "whole.h"

struct narrow_sum {
	double sum;
	__device__ double plus(double x)
	{
		return sum += x;
	}
};

struct whole_sum {
	slp_whole sum;
	__device__ int64_t plus(int64_t x)
	{
		sum = slp_whole_plus(sum, slp_whole_of(x));
		return slp_whole_saturated(sum);
	}
};

struct modular_sum {
	uint64_t sum;
	__device__ int64_t plus(int64_t x)
	{
		return (int64_t)(sum += (uint64_t)x);
	}
};

/* As slp_set does it: integers are whole sums. */
template <class T, class Sum> __global__ void cumsum(slp_split s, bool reverse, const T *x, T *y)
{
	SLP_GRID_STRIDE(line, s.outer * s.inner)
	{
		struct slp_cumsum_line l = slp_cumsum_line(s, reverse, line);
		Sum sum = {};
		for (int64_t i = 0; i < s.n; i++) {
			int64_t at = l.first + i * l.step;
			y[at] = slp_stored<T>::of(sum.plus(x[at]));
		}
	}
}

template <class T, class Sum> static void launch(const struct slp_kernel *k, slp_split s)
{
	SLP_LAUNCH((cumsum<T, Sum>), slp_grid(s.outer * s.inner), SLP_BLOCK, 0, k->stream, s,
	           ((const slp_cumsum_attrs *)k->attrs)->reverse, (const T *)k->in[0].ptr, (T *)k->out[0].ptr);
}

extern "C" enum sl_status slp_cuda_cumsum(const struct slp_kernel *k)
{
	slp_split s = slp_cumsum_split(k);
	bool wraps = ((const slp_cumsum_attrs *)k->attrs)->wraps && k->in[0].type.dtype == SL_INT64;
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	if (wraps) {
		launch<int64_t, modular_sum>(k, s);
		return slp_launched(k);
	}
	slp_with_numbers<SLP_NUMBERS | SLP_HALVES>(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		typedef typename std::conditional<std::is_same<T, int64_t>::value, whole_sum, narrow_sum>::type Sum;
		launch<T, Sum>(k, s);
	});
	return slp_launched(k);
}
