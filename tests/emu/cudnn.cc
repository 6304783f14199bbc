/* Emulated GPUs: cuDNN's convolution (its graph API: cudnn_graph.cc) as far as it is called, computed plainly.  What is
 * not here does not link.
 *
 * Algorithms are proposed as the real one does: the first ones are not deterministic, use tensor cores or want too much
 * memory, and whoever reads them gets an error.  What is in the workspace is lost. */
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cudnn_handle.h"
#include "half_types.h"
extern "C" {
#include "internal.h"
}

struct cudnnTensorStruct {
	cudnnDataType_t type;
	int n, c, h, w;
	bool last; /* channels */
};
struct cudnnFilterStruct {
	cudnnDataType_t type;
	int k, c, h, w;
	bool last;
};
struct cudnnConvolutionStruct {
	cudnnDataType_t type;
	int pad[2], stride[2], dilation[2], groups;
	cudnnConvolutionMode_t mode;
	cudnnMathType_t math;
};

/* ---- handles and descriptions ----------------------------------------------------------------------------------- */

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	int device;
	if (cudaGetDevice(&device) != cudaSuccess) return CUDNN_STATUS_NOT_INITIALIZED;
	*handle = new cudnnContext{NULL, device};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	emu_check_plans();
	delete handle;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	handle->stream = stream;
	return CUDNN_STATUS_SUCCESS;
}

static size_t version;

void emu_cudnn_version(size_t now)
{
	version = now;
}

size_t cudnnGetVersion(void)
{
	return version ? version : CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t s)
{
	return s == CUDNN_STATUS_SUCCESS         ? "success (emulated GPU)"
	       : s == CUDNN_STATUS_BAD_PARAM     ? "bad parameter (emulated GPU)"
	       : s == CUDNN_STATUS_NOT_SUPPORTED ? "not supported (emulated GPU)"
	                                         : "an error (emulated GPU)";
}

#define DESCRIPTOR(name, kind)                                                                                         \
	cudnnStatus_t cudnnCreate##name##Descriptor(cudnn##name##Descriptor_t *to)                                     \
	{                                                                                                              \
		*to = new kind{};                                                                                      \
		return CUDNN_STATUS_SUCCESS;                                                                           \
	}                                                                                                              \
	cudnnStatus_t cudnnDestroy##name##Descriptor(cudnn##name##Descriptor_t d)                                      \
	{                                                                                                              \
		delete d;                                                                                              \
		return CUDNN_STATUS_SUCCESS;                                                                           \
	}
DESCRIPTOR(Tensor, cudnnTensorStruct)
DESCRIPTOR(Filter, cudnnFilterStruct)
DESCRIPTOR(Convolution, cudnnConvolutionStruct)

static bool takes(cudnnTensorFormat_t format)
{
	return format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC;
}

static bool takes(cudnnDataType_t type)
{
	return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || emu_is_half(type);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format, cudnnDataType_t type,
                                         int n, int c, int h, int w)
{
	if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return CUDNN_STATUS_BAD_PARAM;
	if (!takes(format) || !takes(type)) return CUDNN_STATUS_NOT_SUPPORTED;
	*d = {type, n, c, h, w, format == CUDNN_TENSOR_NHWC};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int k, int c, int h, int w)
{
	if (k <= 0 || c <= 0 || h <= 0 || w <= 0) return CUDNN_STATUS_BAD_PARAM;
	if (!takes(format) || !takes(type)) return CUDNN_STATUS_NOT_SUPPORTED;
	*d = {type, k, c, h, w, format == CUDNN_TENSOR_NHWC};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w, int stride_h,
                                              int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type)
{
	bool good = pad_h >= 0 && pad_w >= 0 && stride_h > 0 && stride_w > 0 && dilation_h > 0 && dilation_w > 0;
	if (!good) return CUDNN_STATUS_BAD_PARAM;
	if (mode != CUDNN_CROSS_CORRELATION || !takes(type) || emu_is_half(type)) return CUDNN_STATUS_NOT_SUPPORTED;
	*d = {type, {pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, 1, mode, CUDNN_DEFAULT_MATH};
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups)
{
	if (groups <= 0) return CUDNN_STATUS_BAD_PARAM;
	d->groups = groups;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math)
{
	d->math = math;
	return CUDNN_STATUS_SUCCESS;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

struct problem {
	cudnnTensorStruct x, y;
	cudnnFilterStruct w;
	cudnnConvolutionStruct c;

	int result(int size, int kernel, int axis) const
	{
		return (size + 2 * c.pad[axis] - c.dilation[axis] * (kernel - 1) - 1) / c.stride[axis] + 1;
	}
	bool fits() const
	{
		cudnnDataType_t sums = emu_is_half(x.type) ? CUDNN_DATA_FLOAT : x.type;
		return x.type == y.type && x.type == w.type && c.type == sums && x.n == y.n && w.k == y.c &&
		       x.c == w.c * c.groups && w.k % c.groups == 0 && y.h == result(x.h, w.h, 0) &&
		       y.w == result(x.w, w.w, 1) && x.last == y.last && x.last == w.last;
	}
	/* Bytes of the patches of an image as a matrix: what some algorithms want. */
	size_t patches() const
	{
		return (size_t)w.c * w.h * w.w * y.h * y.w * (x.type == CUDNN_DATA_DOUBLE ? 8 : 4);
	}
};

/* ---- algorithms ------------------------------------------------------------------------------------------------- */

enum memory { NOTHING, PATCHES, TOO_MUCH };
struct algorithm {
	int number;
	cudnnDeterminism_t determinism;
	cudnnMathType_t math;
	enum memory memory;
	/* Of separate transforms, whose tiles for kernels larger than 3 × 3 lose most of float32's digits. */
	bool winograd = false;

	size_t bytes(const problem &p) const
	{
		return memory == NOTHING ? 0 : memory == PATCHES ? p.patches() : (size_t)1 << 40;
	}
};

static const algorithm forward_algorithms[] = {
        {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH, NOTHING, true},
        {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_DETERMINISTIC, CUDNN_TENSOR_OP_MATH, NOTHING},
        {CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH, TOO_MUCH},
        {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH, PATCHES},
        {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH, NOTHING},
};
static const algorithm data_algorithms[] = {
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_NON_DETERMINISTIC, CUDNN_FMA_MATH, NOTHING},
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH, TOO_MUCH},
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_DETERMINISTIC, CUDNN_TENSOR_OP_MATH, NOTHING},
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, CUDNN_DETERMINISTIC, CUDNN_DEFAULT_MATH, PATCHES, true},
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH, NOTHING},
};
static const algorithm filter_algorithms[] = {
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, CUDNN_NON_DETERMINISTIC, CUDNN_FMA_MATH, NOTHING},
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, CUDNN_NON_DETERMINISTIC, CUDNN_FMA_MATH, PATCHES},
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH, TOO_MUCH},
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH, PATCHES, true},
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, CUDNN_DETERMINISTIC, CUDNN_FMA_MATH, NOTHING},
};

template <size_t N, class Perf>
static cudnnStatus_t propose(const algorithm (&list)[N], const problem &p, int most, int *count, Perf *to)
{
	cudaError_t error;
	if (!p.fits()) return CUDNN_STATUS_BAD_PARAM;
	if (emu_is_half(p.x.type) && emu_fails(EMU_HALF, &error)) return CUDNN_STATUS_NOT_SUPPORTED;
	if (p.x.last && emu_fails(EMU_LAST, &error)) return CUDNN_STATUS_NOT_SUPPORTED;
	for (*count = 0; *count < most && *count < (int)N; ++*count) {
		const algorithm &a = list[*count];
		Perf &perf = to[*count];
		memset((void *)&perf, 0, sizeof perf);
		perf.algo = (decltype(perf.algo))a.number;
		perf.status = CUDNN_STATUS_SUCCESS;
		perf.time = -1;
		perf.memory = a.bytes(p);
		perf.determinism = a.determinism;
		perf.mathType = emu_is_half(p.x.type) ? CUDNN_TENSOR_OP_MATH : a.math;
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t c,
                                                     const cudnnTensorDescriptor_t y, const int most, int *count,
                                                     cudnnConvolutionFwdAlgoPerf_t *to)
{
	return propose(forward_algorithms, {*x, *y, *w, *c}, most, count, to);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t, const cudnnFilterDescriptor_t w,
                                                          const cudnnTensorDescriptor_t y,
                                                          const cudnnConvolutionDescriptor_t c,
                                                          const cudnnTensorDescriptor_t x, const int most, int *count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t *to)
{
	return propose(data_algorithms, {*x, *y, *w, *c}, most, count, to);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                            const cudnnTensorDescriptor_t y,
                                                            const cudnnConvolutionDescriptor_t c,
                                                            const cudnnFilterDescriptor_t w, const int most, int *count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *to)
{
	return propose(filter_algorithms, {*x, *y, *w, *c}, most, count, to);
}

/* ---- convolution ------------------------------------------------------------------------------------------------ */

enum pass { FORWARD, DATA, FILTER };

/* Sum: what is added up in. */
template <class T, class Sum, class Factor> struct convolution {
	problem p;
	enum pass pass;
	Factor alpha, beta;
	const T *x, *w, *y; /* one of them is the result */
	char *work;
	size_t bytes;
	double off; /* of each sum, as a part of it */

	/* Calls f(plane of x, place in w, plane of y, rows, columns) for each tap of each pair of planes: with `rows`,
	 * row i of y meets row rows.at(i) of x, and so do columns. */
	struct range {
		long first, last, from, step;
		long at(long i) const
		{
			return from + i * step;
		}
	};
	range range_of(long tap, int axis, long x_size, long y_size) const
	{
		long from = tap * p.c.dilation[axis] - p.c.pad[axis], step = p.c.stride[axis];
		long first = from < 0 ? (-from + step - 1) / step : 0;
		long last = x_size <= from ? 0 : (x_size - from + step - 1) / step;
		return {first, last < y_size ? last : y_size, from, step};
	}
	template <class F> void taps(F f) const
	{
		long xs = (long)p.x.h * p.x.w, ys = (long)p.y.h * p.y.w, per_group = p.w.k / p.c.groups;
		for (long n = 0; n < p.x.n; n++)
			for (long k = 0; k < p.w.k; k++)
				for (long c = 0; c < p.w.c; c++)
					for (long r = 0; r < p.w.h; r++)
						for (long s = 0; s < p.w.w; s++)
							f((n * p.x.c + k / per_group * p.w.c + c) * xs,
							  ((k * p.w.c + c) * p.w.h + r) * p.w.w + s,
							  (n * p.y.c + k) * ys, range_of(r, 0, p.x.h, p.y.h),
							  range_of(s, 1, p.x.w, p.y.w));
	}
	/* Calls f(element of x, element of y) for what meets. */
	template <class F> void meet(long xi, long yi, const range &rows, const range &columns, F f) const
	{
		for (long i = rows.first; i < rows.last; i++) {
			long xr = xi + rows.at(i) * p.x.w + columns.from, yr = yi + i * p.y.w;
			for (long j = columns.first; j < columns.last; j++) f(xr + j * columns.step, yr + j);
		}
	}
	void store(const T *to, const std::vector<Sum> &sums) const
	{
		T *out = (T *)to;
		for (size_t i = 0; i < sums.size(); i++)
			out[i] = (T)((Factor)(alpha * sums[i] * (Sum)(1 + off)) +
			             (beta != 0 ? beta * (Factor)out[i] : 0));
	}
	void forward() const
	{
		std::vector<Sum> sums((size_t)p.y.n * p.y.c * p.y.h * p.y.w);
		taps([&](long xi, long wi, long yi, const range &rows, const range &columns) {
			Sum *sum = sums.data(), factor = (Sum)w[wi];
			meet(xi, yi, rows, columns, [&](long i, long j) { sum[j] += factor * (Sum)x[i]; });
		});
		store(y, sums);
	}
	void data() const
	{
		std::vector<Sum> sums((size_t)p.x.n * p.x.c * p.x.h * p.x.w);
		taps([&](long xi, long wi, long yi, const range &rows, const range &columns) {
			Sum *sum = sums.data(), factor = (Sum)w[wi];
			meet(xi, yi, rows, columns, [&](long i, long j) { sum[i] += factor * (Sum)y[j]; });
		});
		store(x, sums);
	}
	void filter() const
	{
		std::vector<Sum> sums((size_t)p.w.k * p.w.c * p.w.h * p.w.w);
		taps([&](long xi, long wi, long yi, const range &rows, const range &columns) {
			Sum sum = 0;
			meet(xi, yi, rows, columns, [&](long i, long j) { sum += (Sum)y[j] * (Sum)x[i]; });
			sums[(size_t)wi] += sum;
		});
		store(w, sums);
	}
	void compute() const
	{
		if (pass == FORWARD) forward();
		else if (pass == DATA) data();
		else filter();
	}
	/* Each of `count` matrices of rows × columns, transposed. */
	static std::vector<T> turned(const T *from, size_t count, size_t rows, size_t columns)
	{
		std::vector<T> to(count * rows * columns);
		for (size_t i = 0; i < to.size(); i++) {
			size_t matrix = i / (rows * columns), at = i % (rows * columns);
			to[matrix * rows * columns + at % columns * rows + at / columns] = from[i];
		}
		return to;
	}
	/* With channels last, on copies that have them first. */
	void compute_last() const
	{
		size_t xs = (size_t)p.x.h * p.x.w, ys = (size_t)p.y.h * p.y.w, ws = (size_t)p.w.h * p.w.w;
		size_t n = (size_t)p.x.n, xc = (size_t)p.x.c, yc = (size_t)p.y.c, wk = (size_t)p.w.k,
		       wc = (size_t)p.w.c;
		std::vector<T> px = turned(x, n, xs, xc), py = turned(y, n, ys, yc), pw = turned(w, wk, ws, wc);
		convolution plain = *this;
		plain.x = px.data(), plain.y = py.data(), plain.w = pw.data();
		plain.compute();
		std::vector<T> made = pass == FORWARD ? turned(plain.y, n, yc, ys)
		                      : pass == DATA  ? turned(plain.x, n, xc, xs)
		                                      : turned(plain.w, wk, wc, ws);
		memcpy((void *)(pass == FORWARD ? y : pass == DATA ? x : w), made.data(), made.size() * sizeof(T));
	}
	static void run(void *arg)
	{
		const convolution &c = *(const convolution *)arg;
		if (c.bytes) memset(c.work, 0xff, c.bytes);
		if (c.p.x.last) c.compute_last();
		else c.compute();
	}
	static void drop(void *arg)
	{
		delete (convolution *)arg;
	}
};

/* The workspace must lie within what is allocated. */
static char *workspace(void *work, size_t bytes)
{
	char *p = (char *)emu_argument(work, "cuDNN: workspace");
	if (bytes) emu_argument((char *)work + bytes - 1, "cuDNN: end of the workspace");
	return p;
}

template <class T, class Sum, class Factor>
static cudnnStatus_t queue(cudnnHandle_t handle, const problem &p, enum pass pass, const void *alpha, const void *beta,
                           const void *x, const void *w, const void *y, void *work, size_t bytes, double off)
{
	typedef convolution<T, Sum, Factor> work_type;
	auto *c = new work_type{p,
	                        pass,
	                        *(const Factor *)alpha,
	                        *(const Factor *)beta,
	                        (const T *)emu_argument(x, "cuDNN: x"),
	                        (const T *)emu_argument(w, "cuDNN: w"),
	                        (const T *)emu_argument(y, "cuDNN: y"),
	                        workspace(work, bytes),
	                        bytes,
	                        off};
	cudaError_t e = emu_launch(handle->stream, work_type::run, c, work_type::drop);
	return e == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

template <size_t N> static cudnnStatus_t convolve(const algorithm (&list)[N], int number, cudnnHandle_t handle,
                                                  const problem &p, enum pass pass, const void *alpha, const void *beta,
                                                  const void *x, const void *w, const void *y, void *work, size_t bytes)
{
	int device = -1;
	if (!handle || cudaGetDevice(&device) != cudaSuccess || handle->device != device)
		return CUDNN_STATUS_NOT_INITIALIZED;
	if (!p.fits() || !x || !w || !y) return CUDNN_STATUS_BAD_PARAM;
	const algorithm *a = NULL; /* of those with this number, the one with least memory */
	for (const algorithm &b : list)
		if (b.number == number && b.determinism == CUDNN_DETERMINISTIC && (!a || b.memory < a->memory)) a = &b;
	if (!a || a->memory == TOO_MUCH) return CUDNN_STATUS_NOT_SUPPORTED;
	if (bytes < a->bytes(p) || (bytes && !work)) return CUDNN_STATUS_BAD_PARAM;
	if (p.x.type == CUDNN_DATA_FLOAT && p.c.math != CUDNN_FMA_MATH) emu_count_tf32(device);
	if (emu_is_half(p.x.type) && p.c.math == CUDNN_TENSOR_OP_MATH) emu_count_half(device);
	if (p.x.last) emu_count_last(device);
	int way = EMU_ALGORITHM(pass, number);
	emu_count_way(way);
	emu_takes(emu_way_us(way, 60));
	double off = a->winograd && (p.w.h > 3 || p.w.w > 3) ? 4e-3 : 0;
	if (p.x.type == CUDNN_DATA_DOUBLE)
		return queue<double, double, double>(handle, p, pass, alpha, beta, x, w, y, work, bytes, off);
	if (p.x.type == CUDNN_DATA_HALF)
		return queue<__half, float, float>(handle, p, pass, alpha, beta, x, w, y, work, bytes, off);
	if (p.x.type == CUDNN_DATA_BFLOAT16)
		return queue<__nv_bfloat16, float, float>(handle, p, pass, alpha, beta, x, w, y, work, bytes, off);
	return queue<float, double, float>(handle, p, pass, alpha, beta, x, w, y, work, bytes, off);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t xd,
                                      const void *x, const cudnnFilterDescriptor_t wd, const void *w,
                                      const cudnnConvolutionDescriptor_t c, cudnnConvolutionFwdAlgo_t algorithm,
                                      void *work, size_t bytes, const void *beta, const cudnnTensorDescriptor_t yd,
                                      void *y)
{
	return convolve(forward_algorithms, algorithm, h, {*xd, *yd, *wd, *c}, FORWARD, alpha, beta, x, w, y, work,
	                bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void *alpha, const cudnnFilterDescriptor_t wd,
                                           const void *w, const cudnnTensorDescriptor_t yd, const void *y,
                                           const cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void *work, size_t bytes,
                                           const void *beta, const cudnnTensorDescriptor_t xd, void *x)
{
	return convolve(data_algorithms, algorithm, h, {*xd, *yd, *wd, *c}, DATA, alpha, beta, x, w, y, work, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void *alpha, const cudnnTensorDescriptor_t xd,
                                             const void *x, const cudnnTensorDescriptor_t yd, const void *y,
                                             const cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algorithm, void *work, size_t bytes,
                                             const void *beta, const cudnnFilterDescriptor_t wd, void *w)
{
	return convolve(filter_algorithms, algorithm, h, {*xd, *yd, *wd, *c}, FILTER, alpha, beta, x, w, y, work,
	                bytes);
}
