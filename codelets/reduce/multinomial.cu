/* multinomial on a GPU: a group of threads a row. A kernel cannot report a row without a valid distribution: it returns
 * -1 instead. */
#include "op.h"
#include "common/lanes.cuh"
#include "multinomial.h"

template <class T, int LANES>
__global__ void rows(int64_t count, int64_t n, int64_t draws, const T *all, const T *numbers, int32_t *classes)
{
	for (int64_t r = slp_group<LANES>(); r < count; r += slp_groups<LANES>()) {
		const T *sums = all + r * n;
		double last = (double)sums[n - 1];
		int64_t falls = 0;
		for (int64_t i = slp_lane<LANES>(); i < n; i += LANES)
			falls += !((double)sums[i] >= (i ? (double)sums[i - 1] : 0.0));
		falls = slp_group_reduce<LANES>(falls, slp_sum_of(), (int64_t)0);
		bool good = !falls && last > 0 && last < (double)INFINITY;
		for (int64_t i = r * draws + slp_lane<LANES>(); i < (r + 1) * draws; i += LANES)
			classes[i] = good ? slp_class_of(sums, n, (double)numbers[i] * last) : -1;
	}
}

extern "C" sl_status slp_cuda_multinomial(const slp_kernel *k)
{
	sl_shape s = k->in[0].type.shape, u = k->in[1].type.shape;
	int64_t n = s.dim[s.ndim - 1], draws = u.dim[u.ndim - 1];
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		slp_with_lanes(n, [&](auto lanes) {
			constexpr int LANES = decltype(lanes)::value;
			int64_t count = slp_size(&k->out[0]) / draws;
			SLP_LAUNCH((rows<T, LANES>), slp_group_grid(count, LANES), SLP_BLOCK, 0, k->stream, count, n,
			           draws, (const T *)k->in[0].ptr, (const T *)k->in[1].ptr, (int32_t *)k->out[0].ptr);
		});
	});
	return slp_launched(k);
}
