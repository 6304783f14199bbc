/* The backward pass of a fully connected layer on GPUs: one kernel for g and the sums of its columns, the rest cuBLAS.
 * See linear_grad.c. */
#include "common/convert.h"
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

/* Where the operands and results of each operation stand. */
struct operands {
	int w, x, dy, dx, to_w, to_b; /* to: gradients, sums of them or, among the inputs, the parameters themselves */
	double alpha, beta;           /* to = alpha gradient + beta to */
};

template <class T> static enum sl_status run(const struct slp_kernel *k, const operands &o, T *to_w, T *to_b)
{
	const slp_linear_grad_attrs *a = (const slp_linear_grad_attrs *)k->attrs;
	const T *w = (const T *)k->in[o.w].ptr, *x = (const T *)k->in[o.x].ptr, *dy = (const T *)k->in[o.dy].ptr;
	struct slp_linear_size z = slp_linear_size_of(k->in[o.x].type.shape, k->in[o.w].type.shape, a->tw);
	const T *v = a->activation ? (const T *)k->in[o.dy + 1].ptr : NULL;
	T *g = a->activation ? (T *)k->scratch : (T *)dy;
	int64_t in = z.inputs, out = z.units, rows = z.rows, step = a->tw ? in : out;
	if (out)
		SLP_LAUNCH(columns<T>, (unsigned)((out + WIDE - 1) / WIDE), SLP_BLOCK, 0, k->stream, dy, v, g, to_b,
		           rows, out, a->activation, o.alpha, o.beta);
	enum sl_status s = slp_launched(k);
	struct slp_cuda_gemm data = {false, !a->tw, rows, in, out, out, step, 0, 0, 1, 0};
	struct slp_cuda_gemm weights = {true, false, in, out, rows, in, out, 0, 0, 1, o.beta, o.alpha};
	struct slp_cuda_gemm turned = {true, false, out, in, rows, out, in, 0, 0, 1, o.beta, o.alpha};
	if (s == SL_OK && a->data) s = slp_cuda_multiply<T>(k, data, g, w, (T *)k->out[o.dx].ptr);
	if (s != SL_OK) return s;
	return a->tw ? slp_cuda_multiply<T>(k, turned, g, x, to_w) : slp_cuda_multiply<T>(k, weights, x, g, to_w);
}

static enum sl_status gradients(const struct slp_kernel *k, const operands &o, const struct slp_view *to)
{
	enum sl_status s = SL_EINTERNAL;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		s = run<T>(k, o, (T *)to[o.to_w].ptr, (T *)to[o.to_b].ptr);
	});
	return s;
}

extern "C" enum sl_status slp_cuda_linear_grad(const struct slp_kernel *k)
{
	const slp_linear_grad_attrs *a = (const slp_linear_grad_attrs *)k->attrs;
	bool sgd = k->nout == 1;
	if (!sgd) return gradients(k, {1, 0, 2, 0, 1, 2, 1, 0}, k->out);
	return gradients(k, {0, 2, 3, 0, 0, 1, -a->lr * a->rescale, 1 - a->lr * a->weight_decay}, k->in);
}

extern "C" enum sl_status slp_cuda_linear_grad_add(const struct slp_kernel *k)
{
	enum sl_status s = slp_take_sums(k, 2, slp_cuda_convert);
	return s == SL_OK ? gradients(k, {3, 2, 4, 2, 0, 1, 1, 1}, k->out) : s;
}
