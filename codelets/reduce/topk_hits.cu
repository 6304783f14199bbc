/* topk_hits on a GPU: a group of threads a sample. */
#include "op.h"
#include "common/lanes.cuh"
#include "topk_hits.h"

template <class T, class L, int LANES>
__global__ void rows(int64_t count, int64_t n, int k, const T *scores, const L *labels, T *hit)
{
	for (int64_t r = slp_group<LANES>(); r < count; r += slp_groups<LANES>()) {
		typedef typename slp_number<T>::type N;
		const T *x = scores + r * n;
		int64_t label = labels[r], larger = 0;
		bool valid = label >= 0 && label < n;
		N score = valid ? (N)x[label] : (N)NAN;
		for (int64_t i = slp_lane<LANES>(); i < n; i += LANES) larger += !((N)x[i] <= score);
		larger = slp_group_reduce<LANES>(larger, slp_sum_of(), (int64_t)0);
		if (slp_lane<LANES>() == 0) hit[r] = !valid ? (N)NAN : N(score == score && larger < k);
	}
}

template <class T, class L> static void launch(const slp_kernel *k)
{
	int64_t count = k->in[0].type.shape.dim[0], n = k->in[0].type.shape.dim[1];
	slp_with_lanes(n, [&](auto lanes) {
		constexpr int LANES = decltype(lanes)::value;
		SLP_LAUNCH((rows<T, L, LANES>), slp_group_grid(count, LANES), SLP_BLOCK, 0, k->stream, count, n,
		           ((const slp_topk_attrs *)k->attrs)->k, (const T *)k->in[0].ptr, (const L *)k->in[1].ptr,
		           (T *)k->out[0].ptr);
	});
}

extern "C" sl_status slp_cuda_topk_hits(const slp_kernel *k)
{
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		if (k->in[1].type.dtype == SL_INT32) launch<T, int32_t>(k);
		else launch<T, uint8_t>(k);
	});
	return slp_launched(k);
}
