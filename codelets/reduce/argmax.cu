/* argmax on a GPU: a group of threads a row, or a thread a column; threads agree on an index by comparing the elements
 * there. */
#include "op.h"
#include "common/lanes.cuh"
#include "common/axis.h"
#include "common/element.cuh"

/* The better of two indices; -1 is none.  Lower indices win ties. */
template <class T> struct better {
	typedef typename std::conditional<std::is_arithmetic<T>::value, T, float>::type N;
	const T *x;
	int64_t step;
	__device__ bool is_nan(N v) const
	{
		return v != v;
	}
	__device__ int operator()(int a, int b) const
	{
		if (a < 0 || b < 0) return a < 0 ? b : a;
		N u = x[a * step], v = x[b * step];
		if (is_nan(u) || is_nan(v)) return is_nan(u) && is_nan(v) ? (a < b ? a : b) : is_nan(u) ? a : b;
		return u == v ? (a < b ? a : b) : u > v ? a : b;
	}
};

template <class T, int LANES> __device__ inline int row(const T *x, int64_t n, int64_t step, int lane)
{
	better<T> choose = {x, step};
	int index = -1;
	for (int64_t i = lane; i < n; i += LANES) index = choose(index, (int)i);
	return slp_group_reduce<LANES>(index, choose, -1);
}

template <class T, int LANES> __global__ void rows(slp_split s, const T *x, int32_t *y)
{
	for (int64_t r = slp_group<LANES>(); r < s.outer; r += slp_groups<LANES>()) {
		int index = row<T, LANES>(x + r * s.n, s.n, 1, slp_lane<LANES>());
		if (slp_lane<LANES>() == 0) y[r] = index;
	}
}

template <class T> __global__ void columns(slp_split s, const T *x, int32_t *y)
{
	SLP_GRID_STRIDE(c, s.outer * s.inner)
	{
		y[c] = row<T, 1>(x + c / s.inner * s.n * s.inner + c % s.inner, s.n, s.inner, 0);
	}
}

template <class T> static void launch(const slp_kernel *k, slp_split s)
{
	const T *x = (const T *)k->in[0].ptr;
	int32_t *y = (int32_t *)k->out[0].ptr;
	if (s.inner > 1) {
		SLP_LAUNCH(columns<T>, slp_grid(s.outer * s.inner), SLP_BLOCK, 0, k->stream, s, x, y);
		return;
	}
	slp_with_lanes(s.n, [&](auto lanes) {
		constexpr int LANES = decltype(lanes)::value;
		SLP_LAUNCH((rows<T, LANES>), slp_group_grid(s.outer, LANES), SLP_BLOCK, 0, k->stream, s, x, y);
	});
}

extern "C" sl_status slp_cuda_argmax(const slp_kernel *k)
{
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	slp_with_numbers<SLP_NUMBERS | SLP_HALVES>(k->in[0].type.dtype,
	                                           [&](auto zero) { launch<decltype(zero)>(k, slp_axis_split(k)); });
	return slp_launched(k);
}
