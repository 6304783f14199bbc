/* Convolution on GPUs by cuDNN, in TF32 where sl_config.tf32 allows that, else in the arithmetic of the data type; half
 * types on tensor cores, with sums in float32.  Where cuDNN's graph API has a plan, with bias and relu in it, that is
 * taken (conv2d_graph.cu), else an algorithm of the older interface.  What neither computes in a half type is declined,
 * and the engine computes it in float32 (src/runtime/promote.c).
 *
 * Operands in other orders or types are copied (conv2d_operands.cuh).  Images with channels last are computed so; where
 * cuDNN refuses that, in the plain order.
 *
 * The older interface proposes algorithms, best first; taken is the first that is deterministic and works in the memory that the
 * operation has (conv2d.c: workspace).  Descriptions and choices are kept by the thread that made them. */
#include <cstring>
#include "cuda_libs.h"

#include "common/activation.h"
#include "conv2d_graph.h"
#include "conv2d_operands.cuh"

enum { CACHE = 64, PROPOSALS = 8, PARTS = 32 };

struct key {
	cudnnHandle_t handle;
	struct slp_conv c;
	size_t limit;
	int64_t pass, type, tensor_cores, last;
};

struct made {
	struct key key;
	uint64_t used; /* 0: never */
	cudnnTensorDescriptor_t x, y;
	cudnnFilterDescriptor_t w;
	cudnnConvolutionDescriptor_t conv;
	int algorithm;
	size_t bytes;
	bool refused; /* in a half type, to be declined; with channels last, to be computed in the plain order */

	void clear()
	{
		if (x) slp_dnn.cudnnDestroyTensorDescriptor(x);
		if (y) slp_dnn.cudnnDestroyTensorDescriptor(y);
		if (w) slp_dnn.cudnnDestroyFilterDescriptor(w);
		if (conv) slp_dnn.cudnnDestroyConvolutionDescriptor(conv);
		memset(this, 0, sizeof *this);
	}
};

struct cache {
	struct made made[CACHE];
	uint64_t clock;

	~cache()
	{
		for (struct made &m : made) m.clear();
	}
};

static thread_local struct cache cache;

/* ---- descriptions and choices ----------------------------------------------------------------------------------- */

static cudnnDataType_t type_of(int64_t dtype)
{
	return dtype == SL_FLOAT64    ? CUDNN_DATA_DOUBLE
	       : dtype == SL_BFLOAT16 ? CUDNN_DATA_BFLOAT16
	       : dtype == SL_FLOAT16  ? CUDNN_DATA_HALF
	                              : CUDNN_DATA_FLOAT;
}

static cudnnMathType_t math_of(const struct made *m)
{
	if (slp_is_half((enum sl_dtype)m->key.type)) return CUDNN_TENSOR_OP_MATH;
	return m->key.tensor_cores ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

static cudnnStatus_t describe(struct made *m, const struct slp_conv &c, cudnnDataType_t type)
{
	cudnnTensorFormat_t order = m->key.last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
	cudnnDataType_t sums = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
	cudnnStatus_t s = slp_dnn.cudnnCreateTensorDescriptor(&m->x);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnCreateTensorDescriptor(&m->y);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnCreateFilterDescriptor(&m->w);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnCreateConvolutionDescriptor(&m->conv);
	if (s == CUDNN_STATUS_SUCCESS)
		s = slp_dnn.cudnnSetTensor4dDescriptor(m->x, order, type, (int)c.n, (int)c.ic, (int)c.ih, (int)c.iw);
	if (s == CUDNN_STATUS_SUCCESS)
		s = slp_dnn.cudnnSetTensor4dDescriptor(m->y, order, type, (int)c.n, (int)c.oc, (int)c.oh, (int)c.ow);
	if (s == CUDNN_STATUS_SUCCESS)
		s = slp_dnn.cudnnSetFilter4dDescriptor(m->w, type, order, (int)c.oc, (int)(c.ic / c.groups), (int)c.kh,
		                                       (int)c.kw);
	if (s == CUDNN_STATUS_SUCCESS)
		s = slp_dnn.cudnnSetConvolution2dDescriptor(m->conv, (int)c.ph, (int)c.pw, (int)c.sh, (int)c.sw,
		                                            (int)c.dh, (int)c.dw, CUDNN_CROSS_CORRELATION, sums);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnSetConvolutionGroupCount(m->conv, (int)c.groups);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnSetConvolutionMathType(m->conv, math_of(m));
	return s;
}

/* Tensor cores compute float32 in TF32, which must be allowed; half types as they are. */
static bool may_use(const struct made *m, cudnnMathType_t math)
{
	if (math == CUDNN_FMA_MATH || math == CUDNN_DEFAULT_MATH) return true;
	return math == CUDNN_TENSOR_OP_MATH && m->key.tensor_cores;
}

/* The first of the proposals that will do. */
template <class P> static bool pick(struct made *m, const P *proposals, int count)
{
	for (int i = 0; i < count; i++) {
		const P &p = proposals[i];
		if (p.status != CUDNN_STATUS_SUCCESS || p.determinism != CUDNN_DETERMINISTIC) continue;
		if (!may_use(m, p.mathType) || p.memory > m->key.limit) continue;
		m->algorithm = (int)p.algo;
		m->bytes = p.memory;
		return !m->key.tensor_cores ||
		       slp_dnn.cudnnSetConvolutionMathType(m->conv, p.mathType) == CUDNN_STATUS_SUCCESS;
	}
	return false;
}

static bool choose(struct made *m)
{
	int n = 0;
	cudnnHandle_t h = m->key.handle;
	if (m->key.pass == SLP_CONV_FORWARD) {
		cudnnConvolutionFwdAlgoPerf_t p[PROPOSALS];
		return slp_dnn.cudnnGetConvolutionForwardAlgorithm_v7(h, m->x, m->w, m->conv, m->y, PROPOSALS, &n, p) ==
		               CUDNN_STATUS_SUCCESS &&
		       pick(m, p, n);
	}
	if (m->key.pass == SLP_CONV_DATA) {
		cudnnConvolutionBwdDataAlgoPerf_t p[PROPOSALS];
		return slp_dnn.cudnnGetConvolutionBackwardDataAlgorithm_v7(h, m->w, m->y, m->conv, m->x, PROPOSALS, &n,
		                                                           p) == CUDNN_STATUS_SUCCESS &&
		       pick(m, p, n);
	}
	cudnnConvolutionBwdFilterAlgoPerf_t p[PROPOSALS];
	return slp_dnn.cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, m->x, m->y, m->conv, m->w, PROPOSALS, &n, p) ==
	               CUDNN_STATUS_SUCCESS &&
	       pick(m, p, n);
}

/* What was made for these sizes before, or now in the place of what was not used for the longest time.  NULL: cuDNN
 * cannot, and that is an error. */
static struct made *find(const struct slp_kernel *k, const struct key &key)
{
	struct made *oldest = &cache.made[0];
	for (struct made &m : cache.made) {
		if (m.used && !memcmp(&m.key, &key, sizeof key)) {
			m.used = ++cache.clock;
			return &m;
		}
		if (m.used < oldest->used) oldest = &m;
	}
	oldest->clear();
	oldest->key = key;
	cudnnStatus_t s = describe(oldest, key.c, type_of(key.type));
	oldest->refused = s != CUDNN_STATUS_SUCCESS || !choose(oldest);
	if (!oldest->refused || key.last || slp_is_half((enum sl_dtype)key.type)) {
		oldest->used = ++cache.clock;
		return oldest;
	}
	oldest->clear();
	slp_kernel_fail(k, SL_EKERNEL, "cuDNN: %s",
	                s == CUDNN_STATUS_SUCCESS ? "no deterministic algorithm fits the workspace"
	                                          : slp_dnn.cudnnGetErrorString(s));
	return NULL;
}

/* ---- bias ------------------------------------------------------------------------------------------------------- */

/* y = activation(y + b), b for each channel, whose elements come `step` at a time; b NULL: none. */
template <class T>
__global__ static void finish_kernel(T *y, const T *b, int64_t n, int64_t step, int64_t channels, int activation)
{
	typedef typename slp_number<T>::type N;
	SLP_GRID_STRIDE(i, n)
	{
		N v = y[i];
		y[i] = slp_activated<N>(b ? v + (N)b[i / step % channels] : v, activation);
	}
}

/* partial[channel][part] = the sum of dy over the images of a part. */
template <class S, class T>
__global__ static void sum_parts(const S *dy, T *partial, int parts, int64_t images, int64_t channels, int64_t plane)
{
	int64_t channel = blockIdx.x / parts, part = blockIdx.x % parts;
	int64_t first = part * images / parts, count = ((part + 1) * images / parts - first) * plane;
	T sum = 0;
	for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
		sum += (T)dy[((first + i / plane) * channels + channel) * plane + i % plane];
	sum = slp_block_reduce(sum, slp_sum_of(), (T)0);
	if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

enum { WIDE = 32, DEEP = SLP_BLOCK / WIDE }; /* channels of a block; rows that it takes at a time */

/* The same with channels last, of `rows` places; grid (channels / WIDE, parts). */
template <class S, class T> __global__ static void sum_rows(const S *dy, T *partial, int64_t rows, int64_t channels)
{
	__shared__ T sums[DEEP][WIDE];
	int lane = (int)(threadIdx.x % WIDE), depth = (int)(threadIdx.x / WIDE), parts = (int)gridDim.y;
	int64_t c = blockIdx.x * (int64_t)WIDE + lane, part = blockIdx.y, end = (part + 1) * rows / parts;
	T sum = 0;
	for (int64_t i = part * rows / parts + depth; c < channels && i < end; i += DEEP)
		sum += (T)dy[i * channels + c];
	sums[depth][lane] = sum;
	__syncthreads();
	if (depth || c >= channels) return;
	for (int i = 1; i < DEEP; i++) sum += sums[i][lane];
	partial[c * parts + part] = sum;
}

template <class T> __global__ static void add_parts(const T *partial, slp_vector<T> db, int parts, int64_t channels)
{
	SLP_GRID_STRIDE(c, channels)
	{
		T sum = 0;
		for (int p = 0; p < parts; p++) sum += partial[c * parts + p];
		db.set(c, sum);
	}
}

/* The workspace is free again once the gradient of the weight, queued before, is done. */
template <class T> static enum sl_status grad_bias(const struct slp_kernel *k, const struct operands<T> &o)
{
	const struct slp_conv &c = o.c;
	if (slp_size(&k->out[1]) == 0) return SL_OK;
	int parts = c.n < PARTS ? (int)c.n : PARTS;
	typedef typename slp_number<T>::type N;
	if ((size_t)(c.oc * parts) * sizeof(N) > o.limit)
		return slp_kernel_fail(k, SL_EUNSUPPORTED, "too many channels for the gradient of the bias");
	N *partial = (N *)o.work;
	if (o.last)
		SLP_LAUNCH((sum_rows<T, N>), dim3((unsigned)((c.oc + WIDE - 1) / WIDE), (unsigned)parts), SLP_BLOCK, 0,
		           k->stream, (const T *)o.y, partial, c.n * c.oh * c.ow, c.oc);
	else
		SLP_LAUNCH((sum_parts<T, N>), (unsigned)(c.oc * parts), SLP_BLOCK, 0, k->stream, (const T *)o.y,
		           partial, parts, c.n, c.oc, c.oh * c.ow);
	enum sl_status s = slp_launched(k);
	if (s != SL_OK) return s;
	SLP_LAUNCH(add_parts<N>, slp_grid(c.oc), SLP_BLOCK, 0, k->stream, (const N *)partial,
	           slp_vector<N>::of(&k->out[1]), parts, c.oc);
	return slp_launched(k);
}

/* ---- the three operations --------------------------------------------------------------------------------------- */

static bool is_empty(const struct slp_conv &c)
{
	return c.n == 0 || c.ic == 0 || c.oc == 0 || c.ih == 0 || c.iw == 0;
}

static enum sl_status clear(const struct slp_kernel *k, void *to, int64_t elements, enum sl_dtype type)
{
	size_t bytes = (size_t)elements * sl_dtype_size(type);
	if (bytes) cudaMemsetAsync(to, 0, bytes, (cudaStream_t)k->stream);
	return slp_launched(k);
}

/* cuDNN wants factors of the type that is computed in. */
template <class T> static cudnnStatus_t execute(const struct operands<T> &o, struct made *m)
{
	typename slp_number<T>::type one = 1, zero = 0;
	if (m->key.pass == SLP_CONV_FORWARD)
		return slp_dnn.cudnnConvolutionForward(m->key.handle, &one, m->x, o.x, m->w, o.w, m->conv,
		                                       (cudnnConvolutionFwdAlgo_t)m->algorithm, o.work, m->bytes, &zero,
		                                       m->y, o.y);
	if (m->key.pass == SLP_CONV_DATA)
		return slp_dnn.cudnnConvolutionBackwardData(m->key.handle, &one, m->w, o.w, m->y, o.y, m->conv,
		                                            (cudnnConvolutionBwdDataAlgo_t)m->algorithm, o.work,
		                                            m->bytes, &zero, m->x, o.x);
	return slp_dnn.cudnnConvolutionBackwardFilter(m->key.handle, &one, m->x, o.x, m->y, o.y, m->conv,
	                                              (cudnnConvolutionBwdFilterAlgo_t)m->algorithm, o.work, m->bytes,
	                                              &zero, m->w, o.w);
}

/* NULL: an error. */
template <class T>
static struct made *made_for(const struct slp_kernel *k, const struct operands<T> &o, enum slp_conv_pass pass)
{
	struct key key;
	memset(&key, 0, sizeof key); /* padding too: keys are compared as bytes */
	key.handle = (cudnnHandle_t)slp_cudnn(k);
	if (!key.handle) return NULL;
	key.c = o.c;
	key.limit = o.limit;
	key.pass = pass;
	key.type = k->in[0].type.dtype;
	key.last = o.last;
	bool half = slp_is_half((enum sl_dtype)key.type);
	key.tensor_cores = half || (key.type == SL_FLOAT32 && slp_tf32_convolutions());
	return find(k, key);
}

template <class T>
static enum sl_status convolve(const struct slp_kernel *k, const struct operands<T> &o, enum slp_conv_pass pass)
{
	const struct slp_conv &c = o.c;
	if (is_empty(c)) {
		int64_t x = c.n * c.ic * c.ih * c.iw, y = c.n * c.oc * c.oh * c.ow;
		enum sl_dtype type = k->in[0].type.dtype;
		if (pass == SLP_CONV_WEIGHTS) return clear(k, o.w, slp_size(&k->out[0]), type);
		return pass == SLP_CONV_DATA ? clear(k, o.x, x, type) : clear(k, o.y, y, type);
	}
	struct made *m = made_for<T>(k, o, pass);
	if (!m) return SL_EKERNEL;
	if (m->refused) return SL_EUNSUPPORTED;
	cudnnStatus_t s = execute<T>(o, m);
	m->refused = s == CUDNN_STATUS_NOT_SUPPORTED && (o.last || slp_is_half(k->in[0].type.dtype));
	if (m->refused) return SL_EUNSUPPORTED;
	return s == CUDNN_STATUS_SUCCESS ? SL_OK
	                                 : slp_kernel_fail(k, SL_EKERNEL, "cuDNN: %s", slp_dnn.cudnnGetErrorString(s));
}

/* As one operation of cuDNN's graph API. */
struct by_graph {
	struct slp_conv_graph f;
	struct slp_conv_graph_at at;
	bool possible;
};

/* With the bias, and with relu; other activations remain to be done. */
template <class T>
static struct by_graph graph_of(const struct slp_kernel *k, const struct operands<T> &o, enum slp_conv_pass pass)
{
	struct by_graph g;
	memset(&g, 0, sizeof g); /* padding too */
	g.f.handle = is_empty(o.c) || k->in[0].type.dtype == SL_FLOAT64 ? NULL : (cudnnHandle_t)slp_cudnn(k);
	g.f.c = o.c;
	g.f.limit = o.limit;
	g.f.pass = pass;
	g.f.bias = o.b != NULL;
	g.f.relu = slp_conv_attrs(k)->activation == SL_RELU;
	g.f.nhwc = o.last;
	g.f.type = type_of(k->in[0].type.dtype);
	g.f.tensor_cores = g.f.type != CUDNN_DATA_FLOAT || slp_tf32_convolutions();
	g.at = {o.x, o.w, o.b, o.y, o.work, k->stream};
	g.possible = g.f.handle && slp_cudnn_graph();
	return g;
}

/* Adds the bias, if that is still to be done, to the whole y, and applies the activation. */
template <class T> static enum sl_status finish(const struct slp_kernel *k, const struct operands<T> &o, bool bias)
{
	int64_t n = o.c.n * o.c.oc * o.c.oh * o.c.ow, step = o.last ? 1 : o.c.oh * o.c.ow;
	int activation = slp_conv_attrs(k)->activation;
	if (n == 0 || (!bias && activation == SL_IDENTITY)) return SL_OK;
	SLP_LAUNCH(finish_kernel<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, o.y, (const T *)(bias ? o.b : NULL), n, step,
	           o.c.oc, activation);
	return slp_launched(k);
}

template <class T> static enum sl_status compute(const struct slp_kernel *k, const struct operands<T> &o,
                                                 enum slp_conv_pass pass, const struct by_graph &g)
{
	if (g.possible && slp_conv_graph_run(&g.f, &g.at))
		return pass == SLP_CONV_FORWARD && !g.f.relu ? finish<T>(k, o, false) : SL_OK;
	enum sl_status s = convolve<T>(k, o, pass);
	return s == SL_OK && pass == SLP_CONV_FORWARD ? finish<T>(k, o, o.b != NULL) : s;
}

/* Whether cuDNN computes with channels last, as far as it has said. */
template <class T> static bool takes_last(const struct slp_kernel *k, const struct operands<T> &o,
                                          enum slp_conv_pass pass, const struct by_graph &g)
{
	if (is_empty(o.c) || (g.possible && slp_conv_graph_can(&g.f, &g.at))) return true;
	const struct made *m = made_for<T>(k, o, pass);
	return m && !m->refused;
}

/* SL_EUNSUPPORTED: cuDNN refuses this order, or the data type. */
template <class T> static enum sl_status run_in(const struct slp_kernel *k, enum slp_conv_pass pass, bool last)
{
	struct operands<T> o = operands_of<T>(k, pass, last);
	struct by_graph g = graph_of<T>(k, o, pass);
	if (last && !takes_last<T>(k, o, pass, g)) return SL_EUNSUPPORTED; /* before anything is copied */
	enum sl_status s = stage<T>(k, o, pass, false);
	if (s == SL_OK) s = compute<T>(k, o, pass, g);
	if (s == SL_OK && pass == SLP_CONV_WEIGHTS)
		s = o.c.n == 0 ? clear(k, k->out[1].ptr, slp_size(&k->out[1]), k->out[1].type.dtype)
		               : grad_bias<T>(k, o);
	return s == SL_OK ? stage<T>(k, o, pass, true) : s;
}

template <class T> static enum sl_status run(const struct slp_kernel *k, enum slp_conv_pass pass)
{
	enum sl_status s = slp_conv_is_last(k) ? run_in<T>(k, pass, true) : SL_EUNSUPPORTED;
	return s == SL_EUNSUPPORTED ? run_in<T>(k, pass, false) : s;
}

#define OPERATION(name, pass)                                                                                          \
	extern "C" enum sl_status slp_cuda_##name(const struct slp_kernel *k)                                          \
	{                                                                                                              \
		enum sl_status s = SL_EINTERNAL;                                                                       \
		slp_with_float(k->in[0].type.dtype, [&](auto zero) { s = run<decltype(zero)>(k, pass); });             \
		return s;                                                                                              \
	}
OPERATION(conv2d, SLP_CONV_FORWARD)
OPERATION(conv2d_grad_data, SLP_CONV_DATA)
OPERATION(conv2d_grad_weights, SLP_CONV_WEIGHTS)
