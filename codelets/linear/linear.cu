/* The fully connected layer on GPUs: cuBLAS multiplies, one pass over y adds the bias and applies the activation. In
 * half types, a product with a bias and no activation is added to the bias: y is rounded once. */
#include "op.h"
#include "common/gemm.cuh"
#include "common/lanes.cuh"
#include "common/activation.h"
#include "linear.h"

template <class S> __global__ static void finish(S *y, const S *bias, int64_t n, int64_t units, int activation)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(i, n) y[i] = slp_activated<T>(bias ? (T)y[i] + (T)bias[i % units] : (T)y[i], activation);
}

template <class S> __global__ static void start(S *y, const S *bias, int64_t n, int64_t units)
{
	SLP_GRID_STRIDE(i, n) y[i] = bias[i % units];
}

template <class S> static enum sl_status run(const struct slp_kernel *k)
{
	const slp_linear_attrs *a = (const slp_linear_attrs *)k->attrs;
	slp_linear_size z = slp_linear_size_of(k->in[0].type.shape, k->in[1].type.shape, a->tw);
	int64_t n = slp_size(&k->out[0]);
	if (n == 0) return SL_OK;
	S *y = (S *)k->out[0].ptr;
	const S *bias = k->nin == 3 ? (const S *)k->in[2].ptr : NULL;
	bool first = bias && !a->activation && slp_is_half(k->in[0].type.dtype);
	struct slp_cuda_gemm g = slp_cuda_gemm_of(false, a->tw, z.rows, z.units, z.inputs);
	g.beta = first ? 1 : 0;
	if (first) SLP_LAUNCH(start<S>, slp_grid(n), SLP_BLOCK, 0, k->stream, y, bias, n, z.units);
	enum sl_status s = slp_cuda_multiply<S>(k, g, (const S *)k->in[0].ptr, (const S *)k->in[1].ptr, y);
	if (s != SL_OK || first || !(bias || a->activation)) return s;
	SLP_LAUNCH(finish<S>, slp_grid(n), SLP_BLOCK, 0, k->stream, y, bias, n, z.units, a->activation);
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_linear(const struct slp_kernel *k)
{
	enum sl_status s = SL_EINTERNAL;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) { s = run<decltype(zero)>(k); });
	return s;
}
