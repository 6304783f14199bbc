/* The backward pass of a fully connected layer on GPUs: one kernel for g and the sums of its columns, the rest cuBLAS.
 * See linear_grad.c. */
#include "common/gemm.cuh"
#include "common/lanes.cuh"
#include "common/activation.h"
#include "linear.h"

#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	template <class T> static __device__ inline T slope_##name(T d, T v)                                           \
	{                                                                                                              \
		return slope;                                                                                          \
	}
#include "elementwise/unary.def"

template <class T> static __device__ inline T taken_back(T d, T v, int activation)
{
	switch (activation) {
#define X(symbol, name)                                                                                                \
	case symbol: return slope_##name(d, v);
		SLP_ACTIVATION_LIST(X)
#undef X
	default: return d;
	}
}

enum { WIDE = 32, DEEP = SLP_BLOCK / WIDE }; /* columns of a block; rows that it takes at a time */

/* to = alpha (sums of the columns of g) + beta to; g too, where there is an activation.  The order is fixed. */
template <class S> __global__ static void columns(const S *dy, const S *v, S *g, S *to, int64_t rows, int64_t units,
                                                  int activation, double alpha, double beta)
{
	typedef typename slp_number<S>::type T;
	__shared__ double part[DEEP][WIDE];
	int lane = (int)(threadIdx.x % WIDE), depth = (int)(threadIdx.x / WIDE);
	int64_t j = blockIdx.x * (int64_t)WIDE + lane;
	double sum = 0;
	for (int64_t i = depth; j < units && i < rows; i += DEEP) {
		T d = dy[i * units + j];
		if (v) g[i * units + j] = d = taken_back<T>(d, v[i * units + j], activation);
		sum += d;
	}
	part[depth][lane] = sum;
	__syncthreads();
	if (depth || j >= units) return;
	for (int i = 1; i < DEEP; i++) sum += part[i][lane];
	to[j] = (T)(alpha * sum + (beta == 0 ? 0 : beta * (T)to[j]));
}

template <class T> static enum sl_status run(const struct slp_kernel *k, bool sgd)
{
	const slp_linear_grad_attrs *a = (const slp_linear_grad_attrs *)k->attrs;
	T *w = (T *)k->in[sgd ? 0 : 1].ptr, *to_w = sgd ? w : (T *)k->out[1].ptr;
	T *to_b = (T *)(sgd ? k->in[1].ptr : k->out[2].ptr), *dx = (T *)k->out[0].ptr;
	const struct slp_view *x = &k->in[sgd ? 2 : 0], *dy = x + (sgd ? 1 : 2);
	struct slp_linear_size z = slp_linear_size_of(x->type.shape, k->in[sgd ? 0 : 1].type.shape, a->tw);
	double alpha = sgd ? -a->lr * a->rescale : 1, beta = sgd ? 1 - a->lr * a->weight_decay : 0;
	T *g = (T *)(a->activation ? k->scratch : dy->ptr);
	const T *v = a->activation ? (const T *)dy[1].ptr : NULL;
	int64_t in = z.inputs, out = z.units, rows = z.rows, step = a->tw ? in : out;
	if (out)
		SLP_LAUNCH(columns<T>, (unsigned)((out + WIDE - 1) / WIDE), SLP_BLOCK, 0, k->stream, (const T *)dy->ptr,
		           v, g, to_b, rows, out, a->activation, alpha, beta);
	enum sl_status s = slp_launched(k);
	struct slp_cuda_gemm data = {false, !a->tw, rows, in, out, out, step, 0, 0, 1, 0};
	struct slp_cuda_gemm weights = {true, false, in, out, rows, in, out, 0, 0, 1, beta, alpha};
	struct slp_cuda_gemm turned = {true, false, out, in, rows, out, in, 0, 0, 1, beta, alpha};
	if (s == SL_OK && a->data) s = slp_cuda_multiply<T>(k, data, g, w, dx);
	if (s != SL_OK) return s;
	if (a->tw) return slp_cuda_multiply<T>(k, turned, g, (const T *)x->ptr, to_w);
	return slp_cuda_multiply<T>(k, weights, (const T *)x->ptr, g, to_w);
}

extern "C" enum sl_status slp_cuda_linear_grad(const struct slp_kernel *k)
{
	bool sgd = k->nout == 1;
	enum sl_status s = SL_EINTERNAL;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) { s = run<decltype(zero)>(k, sgd); });
	return s;
}
