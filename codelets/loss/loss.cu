/* softmax_cross_entropy on a GPU, its gradient, and both at once: a group of threads a sample.  Errors cannot be reported from here, so a label that is
 * not a class makes the loss and the gradient of its sample NaN. */
#include "op.h"
#include "common/lanes.cuh"

/* dloss and dlogits NULL: no gradient; losses NULL: it alone. */
template <class S, class L, int LANES> __global__ void
cross_entropy(int64_t rows, int64_t n, const S *dloss, const S *logits, const L *labels, S *losses, S *dlogits)
{
	typedef typename slp_number<S>::type T;
	for (int64_t r = slp_group<LANES>(); r < rows; r += slp_groups<LANES>()) {
		const S *x = logits + r * n;
		T max = -INFINITY;
		double sum = 0;
		for (int64_t i = slp_lane<LANES>(); i < n; i += LANES) max = slp_max_of()(max, (T)x[i]);
		max = slp_group_reduce<LANES>(max, slp_max_of(), T(-INFINITY));
		for (int64_t i = slp_lane<LANES>(); i < n; i += LANES) sum += exp((T)x[i] - max);
		sum = slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0);
		int64_t label = labels[r];
		bool valid = label >= 0 && label < n;
		if (losses && slp_lane<LANES>() == 0) losses[r] = valid ? (T)(log(sum) + max - (T)x[label]) : (T)NAN;
		T scale = dloss && valid ? (T)((T)dloss[r] / sum) : (T)NAN;
		for (int64_t i = slp_lane<LANES>(); dloss && i < n; i += LANES)
			dlogits[r * n + i] = (exp((T)x[i] - max) - (i == label ? (T)sum : T(0))) * scale;
	}
}

template <class T, class L> static void launch_cross_entropy(const slp_kernel *k, const slp_view *x, const void *labels,
                                                             const T *dloss, T *losses, T *dlogits)
{
	int64_t rows = x->type.shape.dim[0], n = x->type.shape.dim[1];
	slp_with_lanes(n, [&](auto lanes) {
		constexpr int LANES = decltype(lanes)::value;
		SLP_LAUNCH((cross_entropy<T, L, LANES>), slp_group_grid(rows, LANES), SLP_BLOCK, 0, k->stream, rows, n,
		           dloss, (const T *)x->ptr, (const L *)labels, losses, dlogits);
	});
}

/* Logits and labels are the last two inputs; before them dloss, if the gradient is requested: it is output 0.  The losses
 * are the last output, if there are two or no gradient. */
static sl_status run_cross_entropy(const slp_kernel *k)
{
	const slp_view *x = &k->in[k->nin - 2], *labels = &k->in[k->nin - 1];
	bool back = k->nin == 3, loss = !back || k->nout == 2;
	if (slp_size(x) == 0) return SL_OK;
	slp_with_float(x->type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		const T *dloss = back ? (const T *)k->in[0].ptr : NULL;
		T *losses = loss ? (T *)k->out[k->nout - 1].ptr : NULL, *dlogits = back ? (T *)k->out[0].ptr : NULL;
		if (labels->type.dtype == SL_INT32)
			launch_cross_entropy<T, int32_t>(k, x, labels->ptr, dloss, losses, dlogits);
		else launch_cross_entropy<T, uint8_t>(k, x, labels->ptr, dloss, losses, dlogits);
	});
	return slp_launched(k);
}

extern "C" sl_status slp_cuda_softmax_cross_entropy_both(const slp_kernel *k)
{
	return run_cross_entropy(k);
}

extern "C" sl_status slp_cuda_softmax_cross_entropy(const slp_kernel *k)
{
	return run_cross_entropy(k);
}

extern "C" sl_status slp_cuda_softmax_cross_entropy_grad(const slp_kernel *k)
{
	return run_cross_entropy(k);
}
