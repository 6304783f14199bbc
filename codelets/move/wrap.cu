/* Integers as other types of integers, and arithmetic modulo 2^64, on GPUs. */
#include "op_inner.h"
#include "common/element.cuh"
#include "modular.h"

/* The lower bits of integers; types of one size and sign are alike. */
template <class From, class To> static __global__ void wrap_kernel(const From *in, To *out, int64_t n)
{
	SLP_GRID_STRIDE(i, n) out[i] = (To)in[i];
}

template <class From> static void wrap_from(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]);
	slp_with_size(sl_dtype_size(k->out[0].type.dtype), [&](auto zero) {
		typedef decltype(zero) To;
		SLP_LAUNCH((wrap_kernel<From, To>), slp_grid(n), SLP_BLOCK, 0, k->stream, (const From *)k->in[0].ptr,
		           (To *)k->out[0].ptr, n);
	});
}

extern "C" enum sl_status slp_cuda_wrap(const struct slp_kernel *k)
{
	constexpr unsigned INTEGERS = SLP_ANY & ~(SLP_FLOATS | SLP_HALVES | SLP_DTYPE(SL_BOOL));
	slp_with<INTEGERS>(k->in[0].type.dtype, [&](auto zero) { wrap_from<decltype(zero)>(k); });
	return slp_launched(k);
}

static __global__ void modular_kernel(const uint64_t *a, const uint64_t *b, uint64_t *y, int64_t n, int kind)
{
	SLP_GRID_STRIDE(i, n) y[i] = slp_modular_of(kind, a[i], b[i]);
}

extern "C" enum sl_status slp_cuda_modular(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]);
	SLP_LAUNCH(modular_kernel, slp_grid(n), SLP_BLOCK, 0, k->stream, (const uint64_t *)k->in[0].ptr,
	           (const uint64_t *)k->in[1].ptr, (uint64_t *)k->out[0].ptr, n, *(const int *)k->attrs);
	return slp_launched(k);
}
