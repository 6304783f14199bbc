/* Convolution on GPUs by cuDNN, in the caller's layout (NCHW) and the arithmetic of the data type (TF32 stays off).
 *
 * cuDNN proposes algorithms, best first; taken is the first that is deterministic and works in the memory that the
 * operation has (conv2d.c: workspace).  Descriptions and choices are kept by the thread that made them. */
#include <cstring>
#include <cudnn.h>

#include "conv2d.h"
#include "gpu.cuh"

enum { CACHE = 64, PROPOSALS = 8, PARTS = 32 };

struct key {
	cudnnHandle_t handle;
	struct slp_conv c;
	size_t limit;
	int64_t pass, type;
};

struct made {
	struct key key;
	uint64_t used; /* 0: never */
	cudnnTensorDescriptor_t x, y;
	cudnnFilterDescriptor_t w;
	cudnnConvolutionDescriptor_t conv;
	int algorithm;
	size_t bytes;

	void clear()
	{
		if (x) cudnnDestroyTensorDescriptor(x);
		if (y) cudnnDestroyTensorDescriptor(y);
		if (w) cudnnDestroyFilterDescriptor(w);
		if (conv) cudnnDestroyConvolutionDescriptor(conv);
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

static cudnnStatus_t describe(struct made *m, const struct slp_conv &c, cudnnDataType_t type)
{
	cudnnStatus_t s = cudnnCreateTensorDescriptor(&m->x);
	if (s == CUDNN_STATUS_SUCCESS) s = cudnnCreateTensorDescriptor(&m->y);
	if (s == CUDNN_STATUS_SUCCESS) s = cudnnCreateFilterDescriptor(&m->w);
	if (s == CUDNN_STATUS_SUCCESS) s = cudnnCreateConvolutionDescriptor(&m->conv);
	if (s == CUDNN_STATUS_SUCCESS)
		s = cudnnSetTensor4dDescriptor(m->x, CUDNN_TENSOR_NCHW, type, (int)c.n, (int)c.ic, (int)c.ih,
		                               (int)c.iw);
	if (s == CUDNN_STATUS_SUCCESS)
		s = cudnnSetTensor4dDescriptor(m->y, CUDNN_TENSOR_NCHW, type, (int)c.n, (int)c.oc, (int)c.oh,
		                               (int)c.ow);
	if (s == CUDNN_STATUS_SUCCESS)
		s = cudnnSetFilter4dDescriptor(m->w, type, CUDNN_TENSOR_NCHW, (int)c.oc, (int)(c.ic / c.groups),
		                               (int)c.kh, (int)c.kw);
	if (s == CUDNN_STATUS_SUCCESS)
		s = cudnnSetConvolution2dDescriptor(m->conv, (int)c.ph, (int)c.pw, (int)c.sh, (int)c.sw, (int)c.dh,
		                                    (int)c.dw, CUDNN_CROSS_CORRELATION, type);
	if (s == CUDNN_STATUS_SUCCESS) s = cudnnSetConvolutionGroupCount(m->conv, (int)c.groups);
	if (s == CUDNN_STATUS_SUCCESS) s = cudnnSetConvolutionMathType(m->conv, CUDNN_FMA_MATH);
	return s;
}

/* The first of the proposals that will do. */
template <class P> static bool pick(struct made *m, const P *proposals, int count)
{
	for (int i = 0; i < count; i++) {
		const P &p = proposals[i];
		bool plain = p.mathType == CUDNN_FMA_MATH || p.mathType == CUDNN_DEFAULT_MATH;
		if (p.status != CUDNN_STATUS_SUCCESS || p.determinism != CUDNN_DETERMINISTIC || !plain) continue;
		if (p.memory > m->key.limit) continue;
		m->algorithm = (int)p.algo;
		m->bytes = p.memory;
		return true;
	}
	return false;
}

static bool choose(struct made *m)
{
	int n = 0;
	cudnnHandle_t h = m->key.handle;
	if (m->key.pass == SLP_CONV_FORWARD) {
		cudnnConvolutionFwdAlgoPerf_t p[PROPOSALS];
		return cudnnGetConvolutionForwardAlgorithm_v7(h, m->x, m->w, m->conv, m->y, PROPOSALS, &n, p) ==
		               CUDNN_STATUS_SUCCESS &&
		       pick(m, p, n);
	}
	if (m->key.pass == SLP_CONV_DATA) {
		cudnnConvolutionBwdDataAlgoPerf_t p[PROPOSALS];
		return cudnnGetConvolutionBackwardDataAlgorithm_v7(h, m->w, m->y, m->conv, m->x, PROPOSALS, &n, p) ==
		               CUDNN_STATUS_SUCCESS &&
		       pick(m, p, n);
	}
	cudnnConvolutionBwdFilterAlgoPerf_t p[PROPOSALS];
	return cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, m->x, m->y, m->conv, m->w, PROPOSALS, &n, p) ==
	               CUDNN_STATUS_SUCCESS &&
	       pick(m, p, n);
}

/* What was made for these sizes before, or now in the place of what was not used for the longest time. */
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
	cudnnDataType_t type = key.type == SL_FLOAT64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
	cudnnStatus_t s = describe(oldest, key.c, type);
	if (s == CUDNN_STATUS_SUCCESS && choose(oldest)) {
		oldest->used = ++cache.clock;
		return oldest;
	}
	oldest->clear();
	slp_kernel_fail(k, SL_EKERNEL, "cuDNN: %s",
	                s == CUDNN_STATUS_SUCCESS ? "no deterministic algorithm fits the workspace"
	                                          : cudnnGetErrorString(s));
	return NULL;
}

/* ---- bias ------------------------------------------------------------------------------------------------------- */

template <class T> __global__ static void add_bias(T *y, const T *b, int64_t n, int64_t plane, int64_t channels)
{
	SLP_GRID_STRIDE(i, n) y[i] += b[i / plane % channels];
}

/* partial[channel][part] = the sum of dy over the images of a part. */
template <class T>
__global__ static void sum_parts(const T *dy, T *partial, int64_t images, int64_t channels, int64_t plane)
{
	int64_t channel = blockIdx.x / PARTS, part = blockIdx.x % PARTS;
	int64_t first = part * images / PARTS, count = ((part + 1) * images / PARTS - first) * plane;
	T sum = 0;
	for (int64_t i = threadIdx.x; i < count; i += blockDim.x)
		sum += dy[((first + i / plane) * channels + channel) * plane + i % plane];
	sum = slp_block_reduce(sum, slp_sum_of(), (T)0);
	if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

template <class T> __global__ static void add_parts(const T *partial, T *db, int64_t channels)
{
	SLP_GRID_STRIDE(c, channels)
	{
		T sum = 0;
		for (int p = 0; p < PARTS; p++) sum += partial[c * PARTS + p];
		db[c] = sum;
	}
}

/* k->scratch is free again once the gradient of the weight, queued before, is done. */
template <class T> static enum sl_status grad_bias(const struct slp_kernel *k, const struct slp_conv &c, size_t limit)
{
	if (slp_size(&k->out[1]) == 0) return SL_OK;
	if ((size_t)c.oc * PARTS * sizeof(T) > limit)
		return slp_kernel_fail(k, SL_EUNSUPPORTED, "too many channels for the gradient of the bias");
	T *partial = (T *)k->scratch;
	SLP_LAUNCH(sum_parts<T>, (unsigned)(c.oc * PARTS), SLP_BLOCK, 0, k->stream, (const T *)k->in[1].ptr, partial,
	           c.n, c.oc, c.oh * c.ow);
	enum sl_status s = slp_launched(k);
	if (s != SL_OK) return s;
	SLP_LAUNCH(add_parts<T>, slp_grid(c.oc), SLP_BLOCK, 0, k->stream, (const T *)partial, (T *)k->out[1].ptr, c.oc);
	return slp_launched(k);
}

/* ---- the three operations --------------------------------------------------------------------------------------- */

static bool is_empty(const struct slp_conv &c)
{
	return c.n == 0 || c.ic == 0 || c.oc == 0 || c.ih == 0 || c.iw == 0;
}

static enum sl_status clear(const struct slp_kernel *k, int output)
{
	size_t bytes = (size_t)slp_size(&k->out[output]) * sl_dtype_size(k->out[output].type.dtype);
	if (bytes) cudaMemsetAsync(k->out[output].ptr, 0, bytes, (cudaStream_t)k->stream);
	return slp_launched(k);
}

static size_t scratch_of(const struct slp_kernel *k)
{
	struct slp_type in[2] = {k->in[0].type, k->in[1].type}, out = k->out[0].type;
	struct slp_infer c = {k->op, NULL, (void *)k->attrs, 2, 1, in, &out};
	return k->op->scratch(&c);
}

/* T is the type of the elements and of the factors that cuDNN wants. */
template <class T> static cudnnStatus_t execute(const struct slp_kernel *k, struct made *m)
{
	T one = 1, zero = 0;
	void *a = k->in[0].ptr, *b = k->in[1].ptr, *to = k->out[0].ptr;
	if (m->key.pass == SLP_CONV_FORWARD)
		return cudnnConvolutionForward(m->key.handle, &one, m->x, a, m->w, b, m->conv,
		                               (cudnnConvolutionFwdAlgo_t)m->algorithm, k->scratch, m->bytes, &zero,
		                               m->y, to);
	if (m->key.pass == SLP_CONV_DATA)
		return cudnnConvolutionBackwardData(m->key.handle, &one, m->w, b, m->y, a, m->conv,
		                                    (cudnnConvolutionBwdDataAlgo_t)m->algorithm, k->scratch, m->bytes,
		                                    &zero, m->x, to);
	return cudnnConvolutionBackwardFilter(m->key.handle, &one, m->x, a, m->y, b, m->conv,
	                                      (cudnnConvolutionBwdFilterAlgo_t)m->algorithm, k->scratch, m->bytes,
	                                      &zero, m->w, to);
}

template <class T>
static enum sl_status convolve(const struct slp_kernel *k, const struct slp_conv &c, enum slp_conv_pass pass)
{
	if (is_empty(c)) return clear(k, 0);
	struct key key;
	memset(&key, 0, sizeof key); /* padding too: keys are compared as bytes */
	key.handle = (cudnnHandle_t)slp_cudnn(k);
	if (!key.handle) return SL_EKERNEL;
	key.c = c;
	key.limit = scratch_of(k);
	key.pass = pass;
	key.type = k->in[0].type.dtype;
	struct made *m = find(k, key);
	if (!m) return SL_EKERNEL;
	cudnnStatus_t s = execute<T>(k, m);
	return s == CUDNN_STATUS_SUCCESS ? SL_OK : slp_kernel_fail(k, SL_EKERNEL, "cuDNN: %s", cudnnGetErrorString(s));
}

template <class T> static enum sl_status forward(const struct slp_kernel *k)
{
	struct slp_conv c = slp_conv_of(k);
	enum sl_status s = convolve<T>(k, c, SLP_CONV_FORWARD);
	int64_t n = slp_size(&k->out[0]);
	if (s != SL_OK || k->nin < 3 || n == 0) return s;
	SLP_LAUNCH(add_bias<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, (T *)k->out[0].ptr, (const T *)k->in[2].ptr, n,
	           c.oh * c.ow, c.oc);
	return slp_launched(k);
}

template <class T> static enum sl_status grad_weights(const struct slp_kernel *k)
{
	struct slp_conv c = slp_conv_of(k);
	enum sl_status s = convolve<T>(k, c, SLP_CONV_WEIGHTS);
	if (s != SL_OK) return s;
	return c.n == 0 ? clear(k, 1) : grad_bias<T>(k, c, scratch_of(k));
}

static bool is_double(const struct slp_kernel *k)
{
	return k->in[0].type.dtype == SL_FLOAT64;
}

extern "C" enum sl_status slp_cuda_conv2d(const struct slp_kernel *k)
{
	return is_double(k) ? forward<double>(k) : forward<float>(k);
}

extern "C" enum sl_status slp_cuda_conv2d_grad_data(const struct slp_kernel *k)
{
	struct slp_conv c = slp_conv_of(k);
	return is_double(k) ? convolve<double>(k, c, SLP_CONV_DATA) : convolve<float>(k, c, SLP_CONV_DATA);
}

extern "C" enum sl_status slp_cuda_conv2d_grad_weights(const struct slp_kernel *k)
{
	return is_double(k) ? grad_weights<double>(k) : grad_weights<float>(k);
}
