/* Tensors full of a number, and number ranges, on GPUs. */
#include "op.h"
#include "common/element.cuh"
#include "fill.h"

template <class S> __global__ void fill_kernel(S value, S *out, int64_t n)
{
	SLP_GRID_STRIDE(i, n) out[i] = value;
}

__global__ void arange_whole_kernel(struct slp_arange r, int64_t *out, int64_t n)
{
	SLP_GRID_STRIDE(i, n) out[i] = slp_arange_whole(&r, i);
}

template <class S> __global__ void arange_kernel(double start, double step, S *out, int64_t n)
{
	SLP_GRID_STRIDE(i, n) out[i] = slp_stored<S>::of(start + (double)i * step);
}

static enum sl_status fill(const struct slp_kernel *k, double value)
{
	int64_t n = slp_size(&k->out[0]);
	slp_with<SLP_ANY>(k->out[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		SLP_LAUNCH(fill_kernel<S>, slp_grid(n), SLP_BLOCK, 0, k->stream, slp_stored<S>::of(value),
		           (S *)k->out[0].ptr, n);
	});
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_fill(const struct slp_kernel *k)
{
	return fill(k, ((const struct slp_fill *)k->attrs)->value);
}

extern "C" enum sl_status slp_cuda_full_like(const struct slp_kernel *k)
{
	return fill(k, ((const struct slp_value *)k->attrs)->value);
}

extern "C" enum sl_status slp_cuda_arange(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]);
	const struct slp_arange *r = (const struct slp_arange *)k->attrs;
	if (slp_arange_is_whole(k)) {
		SLP_LAUNCH(arange_whole_kernel, slp_grid(n), SLP_BLOCK, 0, k->stream, *r, (int64_t *)k->out[0].ptr, n);
		return slp_launched(k);
	}
	slp_with<SLP_ANY>(k->out[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		SLP_LAUNCH(arange_kernel<S>, slp_grid(n), SLP_BLOCK, 0, k->stream, r->start, r->step,
		           (S *)k->out[0].ptr, n);
	});
	return slp_launched(k);
}
