/* The fully connected layer on GPUs: a kernel of cublasLt multiplies and adds the bias; where there is none, and before an
 * activation, cuBLAS multiplies, and one pass over y adds the bias and applies the activation. In half types, a product
 * with a bias and no activation is added to the bias: y is rounded once. */
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

template <class S> struct layer {
	const slp_linear_attrs *a;
	slp_linear_size z;
	struct slp_cuda_gemm g;
	const S *x, *w, *bias; /* bias NULL: there is none */
	int64_t n;
};

/* By cuBLAS and a kernel before or after it. */
template <class S> static enum sl_status multiply(const struct slp_kernel *k, const layer<S> &l, S *y)
{
	bool first = l.bias && !l.a->activation && slp_is_half(k->in[0].type.dtype);
	struct slp_cuda_gemm g = l.g;
	g.beta = first ? 1 : 0;
	if (first) SLP_LAUNCH(start<S>, slp_grid(l.n), SLP_BLOCK, 0, k->stream, y, l.bias, l.n, l.z.units);
	enum sl_status s = slp_cuda_multiply<S>(k, g, l.x, l.w, y);
	if (s != SL_OK || first || !(l.bias || l.a->activation)) return s;
	SLP_LAUNCH(finish<S>, slp_grid(l.n), SLP_BLOCK, 0, k->stream, y, l.bias, l.n, l.z.units, l.a->activation);
	return slp_launched(k);
}

template <class S> static enum sl_status run(const struct slp_kernel *k)
{
	layer<S> l = {};
	l.a = (const slp_linear_attrs *)k->attrs;
	l.z = slp_linear_size_of(k->in[0].type.shape, k->in[1].type.shape, l.a->tw);
	l.g = slp_cuda_gemm_of(false, l.a->tw, l.z.rows, l.z.units, l.z.inputs);
	l.x = (const S *)k->in[0].ptr, l.w = (const S *)k->in[1].ptr;
	l.bias = k->nin == 3 ? (const S *)k->in[2].ptr : NULL;
	l.n = slp_size(&k->out[0]);
	S *y = (S *)k->out[0].ptr;
	if (l.n == 0) return SL_OK;
	if (l.bias && !l.a->activation && slp_cuda_multiply_biased<S>(k, l.g, l.x, l.w, l.bias, y, [&](S *to) {
		    return multiply(k, l, to) == SL_OK;
	    }))
		return SL_OK;
	return multiply(k, l, y);
}

extern "C" enum sl_status slp_cuda_linear(const struct slp_kernel *k)
{
	enum sl_status s = SL_EINTERNAL;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) { s = run<decltype(zero)>(k); });
	return s;
}
