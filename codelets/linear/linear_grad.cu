/* The backward pass of a fully connected layer on GPUs: one kernel for g and the sums of its columns, the rest cuBLAS.
 * See linear_grad.c. */
#include "common/convert.h"
#include "op.h"
#include "common/gemm.cuh"
#include "common/lanes.cuh"
#include "common/last.cuh"
#include "common/activation.h"
#include "linear.h"

#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	template <class T> static __device__ inline T slope_##name(T d, T v)                                           \
	{                                                                                                              \
		return slope;                                                                                          \
	}
#include "elementwise/activations.def"
#undef UNARY

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

/* Columns of a block, 32 bytes of a row, which memory moves at once; a block takes several rows at a time, a thread HELD. */
template <class S> constexpr int wide_of = 32 / (int)sizeof(S);
enum { HELD = 4 };
#ifdef SLP_EMU_SMALL
enum { SHARE = SLP_LINEAR_SHARE }; /* so that small cases have parts, too */
#else
enum { SHARE = 512 }; /* rows of a part */
#endif

/* Row i of column j of g: also stored if there is an activation. */
template <class S, class T> static __device__ inline T take_back(S *g, T d, const S *v, int64_t at, int activation)
{
	if (v) g[at] = d = taken_back<T>(d, v[at], activation);
	return d;
}

/* The use of a column's sum: to = alpha sum + beta to. */
template <class S> struct target {
	typedef typename slp_number<S>::type T;
	slp_vector<T> to; /* may be float32 beside half types */
	double alpha, beta;
	__device__ void put(int64_t j, double sum) const
	{
		to.set(j, (T)(alpha * sum + (beta == 0 ? 0 : beta * to[j])));
	}
	template <class F> void emu_pointers(F f)
	{
		f(to);
	}
};

/* Grid (units / wide_of, parts): the sums of the columns of g; also g, if there is an activation. partial[part][unit]: of
 * the parts, which the last block of a column adds. The order is fixed. */
template <class S> __global__ static void columns(const S *dy, const S *v, S *g, double *partial, int64_t rows,
                                                  int64_t units, int activation, target<S> result, unsigned *arrived)
{
	typedef typename slp_number<S>::type T;
	constexpr int WIDE = wide_of<S>, DEEP = SLP_BLOCK / WIDE;
	__shared__ double part[DEEP][WIDE];
	int lane = (int)(threadIdx.x % WIDE), depth = (int)(threadIdx.x / WIDE);
	int64_t j = blockIdx.x * (int64_t)WIDE + lane, i = rows * blockIdx.y / gridDim.y + depth,
	        end = rows * (blockIdx.y + 1) / gridDim.y;
	double sum = 0;
	for (; j < units && i + (HELD - 1) * DEEP < end; i += HELD * DEEP) {
		T d[HELD];
#pragma unroll
		for (int r = 0; r < HELD; r++) d[r] = dy[(i + r * DEEP) * units + j];
#pragma unroll
		for (int r = 0; r < HELD; r++) sum += take_back(g, d[r], v, (i + r * DEEP) * units + j, activation);
	}
	for (; j < units && i < end; i += DEEP) sum += take_back(g, (T)dy[i * units + j], v, i * units + j, activation);
	part[depth][lane] = sum;
	__syncthreads();
	bool mine = depth == 0 && j < units;
	for (int r = 1; r < DEEP && mine; r++) sum += part[r][lane];
	if (mine && gridDim.y > 1) partial[blockIdx.y * units + j] = sum;
	if (!slp_arrives_last(arrived + blockIdx.x, gridDim.y) || !mine) return;
	if (gridDim.y > 1) sum = 0;
	for (unsigned p = 0; p < gridDim.y && gridDim.y > 1; p++) sum += partial[p * units + j];
	result.put(j, sum);
}

/* partial: for SLP_LINEAR_PARTS sums of each column. */
template <class S> static enum sl_status sum_columns(const struct slp_kernel *k, const S *dy, const S *v, S *g,
                                                     double *partial, const slp_linear_size &z, int activation,
                                                     target<S> result)
{
	int64_t groups = (z.units + wide_of<S> - 1) / wide_of<S>,
	        parts = groups > SLP_ARRIVALS ? 1 : slp_linear_parts(z.rows, SHARE);
	unsigned *arrived = slp_arrivals(k);
	if (!arrived) return SL_EKERNEL;
	if (z.units == 0) return SL_OK;
	SLP_LAUNCH(columns<S>, dim3((unsigned)groups, (unsigned)parts), SLP_BLOCK, 0, k->stream, dy, v, g, partial,
	           z.rows, z.units, activation, result, arrived);
	return slp_launched(k);
}

/* The positions of operands and results of each operation. */
struct operands {
	int w, x, dy, dx, to_w, to_b; /* to: gradients, sums of them or, among the inputs, the parameters themselves */
	double alpha, beta;           /* to = alpha gradient + beta to */
};

template <class T> static enum sl_status run(const struct slp_kernel *k, const operands &o, const struct slp_view *to)
{
	const slp_linear_grad_attrs *a = (const slp_linear_grad_attrs *)k->attrs;
	T *to_w = (T *)to[o.to_w].ptr;
	target<T> to_b = {slp_vector<typename slp_number<T>::type>::of(&to[o.to_b]), o.alpha, o.beta};
	const T *w = (const T *)k->in[o.w].ptr, *x = (const T *)k->in[o.x].ptr, *dy = (const T *)k->in[o.dy].ptr;
	struct slp_linear_size z = slp_linear_size_of(k->in[o.x].type.shape, k->in[o.w].type.shape, a->tw);
	const T *v = a->activation ? (const T *)k->in[o.dy + 1].ptr : NULL;
	T *g = a->activation ? (T *)k->scratch : (T *)dy;
	int64_t in = z.inputs, out = z.units, rows = z.rows;
	double *partial = (double *)((char *)k->scratch + slp_linear_parts_at(a, &k->in[o.dy].type));
	enum sl_status s = sum_columns<T>(k, dy, v, g, partial, z, a->activation, to_b);
	struct slp_cuda_gemm data = slp_cuda_gemm_of(false, !a->tw, rows, in, out);
	struct slp_cuda_gemm weights = slp_cuda_gemm_of(true, false, a->tw ? out : in, a->tw ? in : out, rows);
	weights.beta = o.beta;
	weights.alpha = o.alpha;
	if (s == SL_OK && a->data) s = slp_cuda_multiply<T>(k, data, g, w, (T *)k->out[o.dx].ptr);
	if (s != SL_OK) return s;
	return a->tw ? slp_cuda_multiply<T>(k, weights, g, x, to_w) : slp_cuda_multiply<T>(k, weights, x, g, to_w);
}

static enum sl_status gradients(const struct slp_kernel *k, const operands &o, const struct slp_view *to)
{
	enum sl_status s = SL_EINTERNAL;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		s = run<T>(k, o, to);
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
