/* Pooling on GPUs. Forward a thread computes an element of y; backward a thread computes an element of x from all
 * windows that cover it, so that sums have a fixed order. In NHWC a thread takes as many channels as 16 bytes hold. */
#include "op.h"
#include "common/divide.cuh"
#include "common/lanes.cuh"
#include "common/last.cuh"
#include "common/wide.cuh"
#include "pool2d.h"

/* The sizes in 32 bits if these suffice, with the divisors of indices. In both tensors, element `at` of a plane is
 * element base + at * step. */
template <class I> struct pooling {
	typedef typename std::make_signed<I>::type N;
	typedef typename slp_divisor<I>::type D;
	N ih, iw, oh, ow, kh, kw, sh, sw, ph, pw;
	I channels, x_step, y_step;
	D by_channels, by_rows, by_columns, by_sh, by_sw, by_group; /* rows and columns that a launch walks over */
	bool exclude_pad;
	int x_layout, y_layout;

	pooling(const struct slp_pool &p, int64_t rows, int64_t columns, int width)
	    : ih((N)p.ih), iw((N)p.iw), oh((N)p.oh), ow((N)p.ow), kh((N)p.kh), kw((N)p.kw), sh((N)p.sh), sw((N)p.sw),
	      ph((N)p.ph), pw((N)p.pw), channels((I)p.channels), x_step(step_of(p.x_layout, (I)p.channels)),
	      y_step(step_of(p.y_layout, (I)p.channels)), by_channels(slp_divisor<I>::of(p.channels / width)),
	      by_rows(slp_divisor<I>::of(rows)), by_columns(slp_divisor<I>::of(columns)),
	      by_sh(slp_divisor<I>::of(p.sh)), by_sw(slp_divisor<I>::of(p.sw)),
	      by_group(slp_divisor<I>::of(SLP_N16_IMAGES)), exclude_pad(p.exclude_pad), x_layout(p.x_layout),
	      y_layout(p.y_layout)
	{
	}
	__host__ __device__ bool is_nhwc() const
	{
		return x_layout == SLP_LAYOUT_NHWC; /* y_layout too, then */
	}
	/* From an element of a plane to the next. */
	static I step_of(int layout, I channels)
	{
		return layout == SLP_LAYOUT_NHWC ? channels : layout == SLP_LAYOUT_N16 ? (I)SLP_N16_IMAGES : 1;
	}
};

/* A position in a plane, and the beginning of the plane in x and y. */
template <class I> struct position {
	typename pooling<I>::N i, j;
	I x, y;
};

template <class I> __device__ static inline I base_of(const pooling<I> &p, int layout, I size, I image, I channel)
{
	if (layout == SLP_LAYOUT_NHWC) return image * size * p.channels + channel;
	if (layout == SLP_LAYOUT_PLAIN) return (image * p.channels + channel) * size;
	I lane, group = slp_divided(image, p.by_group, &lane);
	return (group * p.channels + channel) * size * SLP_N16_IMAGES + lane;
}

/* The position of the index-th thread: neighbouring elements belong to neighbouring threads. */
template <int W, class I> __device__ static inline position<I> position_of(const pooling<I> &p, I index)
{
	I channel = 0, i, j, image;
	if (p.is_nhwc()) index = slp_divided(index, p.by_channels, &channel);
	index = slp_divided(index, p.by_columns, &j);
	index = slp_divided(index, p.by_rows, &i);
	image = index;
	if (!p.is_nhwc()) image = slp_divided(index, p.by_channels, &channel);
	channel *= W;
	typedef typename pooling<I>::N N;
	return {(N)i, (N)j, base_of(p, p.x_layout, (I)(p.ih * p.iw), image, channel),
	        base_of(p, p.y_layout, (I)(p.oh * p.ow), image, channel)};
}

/* As slp_window. */
template <class N> struct window {
	N h0, h1, w0, w1, count;
};

template <class I> __device__ static inline window<typename pooling<I>::N>
window_of(const pooling<I> &p, typename pooling<I>::N i, typename pooling<I>::N j)
{
	typedef typename pooling<I>::N N;
	N h = i * p.sh - p.ph, w = j * p.sw - p.pw, hk = h + p.kh, wk = w + p.kw;
	window<N> r = {h < 0 ? 0 : h, hk < p.ih ? hk : p.ih, w < 0 ? 0 : w, wk < p.iw ? wk : p.iw, 0};
	/* Padding counts, elements beyond it do not. */
	N rows = (hk < p.ih + p.ph ? hk : p.ih + p.ph) - h, columns = (wk < p.iw + p.pw ? wk : p.iw + p.pw) - w;
	r.count = p.exclude_pad ? (r.h1 - r.h0) * (r.w1 - r.w0) : rows * columns;
	return r;
}

/* The place in the plane of the first largest element under a window, and its value, for W channels. */
template <int W, class S, class I, class T> __device__ static inline void
largest(const pooling<I> &p, const S *plane, const window<typename pooling<I>::N> &r, I *best, T *value)
{
	typedef typename pooling<I>::N N;
	slp_take<W>(plane + (I)(r.h0 * p.iw + r.w0) * p.x_step, value);
#pragma unroll
	for (int l = 0; l < W; l++) best[l] = (I)(r.h0 * p.iw + r.w0);
	for (N h = r.h0; h < r.h1; h++)
		for (N w = r.w0; w < r.w1; w++) {
			I at = (I)(h * p.iw + w);
			T v[W];
			slp_take<W>(plane + at * p.x_step, v);
#pragma unroll
			for (int l = 0; l < W; l++)
				if (SLP_POOL_BEATS(v[l], value[l])) value[l] = v[l], best[l] = at;
		}
}

template <int W, class S, class I> __global__ static void max_forward(pooling<I> p, const S *x, S *y, int64_t n)
{
	SLP_GRID_STRIDE(index, n)
	{
		position<I> at = position_of<W>(p, (I)index);
		typename slp_number<S>::type value[W];
		I best[W];
		largest<W>(p, x + at.x, window_of(p, at.i, at.j), best, value);
		slp_put<W>(y + at.y + (I)(at.i * p.ow + at.j) * p.y_step, value);
	}
}

template <int W, class S, class I> __global__ static void avg_forward(pooling<I> p, const S *x, S *y, int64_t n)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(index, n)
	{
		position<I> at = position_of<W>(p, (I)index);
		auto r = window_of(p, at.i, at.j);
		T sum[W] = {0}, v[W];
		for (auto h = r.h0; h < r.h1; h++)
			for (auto w = r.w0; w < r.w1; w++) {
				slp_take<W>(x + at.x + (I)(h * p.iw + w) * p.x_step, v);
#pragma unroll
				for (int l = 0; l < W; l++) sum[l] += v[l];
			}
#pragma unroll
		for (int l = 0; l < W; l++) sum[l] /= (T)r.count;
		slp_put<W>(y + at.y + (I)(at.i * p.ow + at.j) * p.y_step, sum);
	}
}

/* One window of the whole image: a block makes an element of y. */
template <class S> __global__ static void avg_image(const S *x, S *y, int64_t planes, int64_t size)
{
	typedef typename slp_number<S>::type T;
	for (int64_t plane = blockIdx.x; plane < planes; plane += gridDim.x) {
		T sum = 0;
		for (int64_t i = threadIdx.x; i < size; i += blockDim.x) sum += (T)x[plane * size + i];
		sum = slp_block_reduce(sum, slp_sum_of(), (T)0);
		if (threadIdx.x == 0) y[plane] = sum / (T)size;
	}
}

/* The same in NHWC: a block has 32 threads side by side, W channels each, of one image, and several of them for its places. */
enum { LANES = 32, DEEP = SLP_BLOCK / LANES, MOST_IMAGES = 65535 }; /* rows of a grid */
template <int W, class S> __global__ static void avg_image_rows(const S *x, S *y, int64_t channels, int64_t size)
{
	typedef typename slp_number<S>::type T;
	__shared__ T sums[DEEP][LANES * W];
	int lane = (int)(threadIdx.x % LANES) * W, depth = (int)(threadIdx.x / LANES);
	int64_t c = blockIdx.x * (int64_t)(LANES * W) + lane, image = blockIdx.y;
	T sum[W] = {0}, v[W];
	for (int64_t i = depth; c < channels && i < size; i += DEEP) {
		slp_take<W>(x + (image * size + i) * channels + c, v);
#pragma unroll
		for (int l = 0; l < W; l++) sum[l] += v[l];
	}
#pragma unroll
	for (int l = 0; l < W; l++) sums[depth][lane + l] = sum[l];
	__syncthreads();
	if (depth || c >= channels) return;
#pragma unroll
	for (int l = 0; l < W; l++) {
		for (int d = 1; d < DEEP; d++) sum[l] += sums[d][lane + l];
		sum[l] /= (T)size;
	}
	slp_put<W>(y + image * channels + c, sum);
}

/* Windows [*first, *end) along an axis that cover element `at`. */
template <class I, class N, class D>
__device__ static inline void covering(N at, N kernel, N stride, N pad, N windows, D by_stride, N *first, N *end)
{
	N low = at + pad - kernel + 1;
	*first = low <= 0 ? 0 : (N)slp_quotient((I)(low + stride - 1), by_stride);
	*end = (N)slp_quotient((I)(at + pad), by_stride) + 1;
	if (*end > windows) *end = windows;
}

/* share(window, plane's element of y, sum) adds the part that elements get from a window that covers them. */
template <class I, class F> __device__ static inline void gather(const pooling<I> &p, const position<I> &at, F share)
{
	typename pooling<I>::N i0, i1, j0, j1;
	covering<I>(at.i, p.kh, p.sh, p.ph, p.oh, p.by_sh, &i0, &i1);
	covering<I>(at.j, p.kw, p.sw, p.pw, p.ow, p.by_sw, &j0, &j1);
	for (auto i = i0; i < i1; i++)
		for (auto j = j0; j < j1; j++) share(window_of(p, i, j), (I)(i * p.ow + j));
}

template <int W, class S, class I> struct max_share {
	typedef typename slp_number<S>::type T;
	const pooling<I> &p;
	const S *x, *dy; /* of the plane */
	I self;
	T *sum;
	__device__ void operator()(const window<typename pooling<I>::N> &r, I y) const
	{
		T value[W], d[W];
		I best[W];
		largest<W>(p, x, r, best, value);
		slp_take<W>(dy + y * p.y_step, d);
#pragma unroll
		for (int l = 0; l < W; l++) sum[l] += best[l] == self ? d[l] : (T)0;
	}
};

template <int W, class S, class I> struct avg_share {
	typedef typename slp_number<S>::type T;
	const pooling<I> &p;
	const S *dy;
	T *sum;
	__device__ void operator()(const window<typename pooling<I>::N> &r, I y) const
	{
		T d[W];
		slp_take<W>(dy + y * p.y_step, d);
#pragma unroll
		for (int l = 0; l < W; l++) sum[l] += d[l] / (T)r.count;
	}
};

/* The gradient vanishes where relu, which has the layout of dx, is not positive. */
template <int W, class S, class T> __device__ static inline void store_back(const S *relu, S *dx, T *sum)
{
	if (relu) {
		T v[W];
		slp_take<W>(relu, v);
#pragma unroll
		for (int l = 0; l < W; l++)
			if (v[l] <= 0) sum[l] = 0;
	}
	slp_put<W>(dx, sum);
}

/* relu may be NULL. */
template <int W, class S, class I>
__global__ static void max_backward(pooling<I> p, const S *x, const S *dy, const S *relu, S *dx, int64_t n)
{
	SLP_GRID_STRIDE(index, n)
	{
		position<I> at = position_of<W>(p, (I)index);
		I self = (I)(at.i * p.iw + at.j), place = at.x + self * p.x_step;
		typename slp_number<S>::type sum[W] = {0};
		gather(p, at, max_share<W, S, I>{p, x + at.x, dy + at.y, self, sum});
		store_back<W>(relu ? relu + place : NULL, dx + place, sum);
	}
}

template <int W, class S, class I>
__global__ static void avg_backward(pooling<I> p, const S *dy, const S *relu, S *dx, int64_t n)
{
	SLP_GRID_STRIDE(index, n)
	{
		position<I> at = position_of<W>(p, (I)index);
		I place = at.x + (I)(at.i * p.iw + at.j) * p.x_step;
		typename slp_number<S>::type sum[W] = {0};
		gather(p, at, avg_share<W, S, I>{p, dy + at.y, sum});
		store_back<W>(relu ? relu + place : NULL, dx + place, sum);
	}
}

/* The gradient of one element, through the relu, as it is stored. */
template <class S> struct max_gradient {
	const S *x, *dy, *relu;
	template <class I> __device__ S of(const pooling<I> &p, const position<I> &at, I place) const
	{
		typename slp_number<S>::type sum[1] = {0};
		I self = (I)(at.i * p.iw + at.j);
		gather(p, at, max_share<1, S, I>{p, x + at.x, dy + at.y, self, sum});
		return slp_stored<S>::of(relu && relu[place] <= 0 ? 0 : sum[0]);
	}
	template <class F> void emu_pointers(F f)
	{
		f(x), f(dy), f(relu);
	}
};

template <class S> struct avg_gradient {
	const S *dy, *relu;
	template <class I> __device__ S of(const pooling<I> &p, const position<I> &at, I place) const
	{
		typename slp_number<S>::type sum[1] = {0};
		gather(p, at, avg_share<1, S, I>{p, dy + at.y, sum});
		return slp_stored<S>::of(relu && relu[place] <= 0 ? 0 : sum[0]);
	}
	template <class F> void emu_pointers(F f)
	{
		f(dy), f(relu);
	}
};

/* Grid (channels, parts of the images), in the plain layout: the gradient, and the sums of its channels. partial
 * [channel][part]: sums of parts, which the last block of a channel adds, in their order. */
template <class S, class I, class G> __global__ static void backward_sums(pooling<I> p, G gradient, S *dx, S *sums,
                                                                          typename slp_number<S>::type *partial,
                                                                          int64_t images, unsigned *arrived)
{
	typedef typename slp_number<S>::type T;
	I channel = blockIdx.x, x_size = (I)(p.ih * p.iw), y_size = (I)(p.oh * p.ow);
	int64_t first = blockIdx.y * images / gridDim.y, end = (blockIdx.y + 1) * images / gridDim.y;
	T sum = 0;
	for (int64_t e = threadIdx.x; e < (end - first) * x_size; e += blockDim.x) {
		I i, j, image = slp_divided(slp_divided((I)e, p.by_columns, &j), p.by_rows, &i);
		I plane = ((I)first + image) * p.channels + channel;
		typedef typename pooling<I>::N N;
		position<I> at = {(N)i, (N)j, plane * x_size, plane * y_size};
		I place = at.x + i * (I)p.iw + j;
		S v = gradient.of(p, at, place);
		dx[place] = v;
		sum += (T)v;
	}
	sum = slp_block_reduce(sum, slp_sum_of(), (T)0);
	if (threadIdx.x == 0) partial[channel * gridDim.y + blockIdx.y] = sum;
	if (!slp_arrives_last(arrived + channel, gridDim.y) || threadIdx.x) return;
	sum = 0;
	for (unsigned part = 0; part < gridDim.y; part++) sum += partial[channel * gridDim.y + part];
	sums[channel] = slp_stored<S>::of(sum);
}

/* ---- the operations ------------------------------------------------------------------------------------------- */

template <class T> static const T *relu_of(const struct slp_kernel *k)
{
	return slp_pool_has_relu(k) ? (const T *)k->in[0].ptr : NULL;
}

struct run_max_forward {
	template <int W, class T, class I> static void run(const struct slp_kernel *k, const pooling<I> &p, int64_t n)
	{
		SLP_LAUNCH((max_forward<W, T, I>), slp_grid(n), SLP_BLOCK, 0, k->stream, p, (const T *)k->in[0].ptr,
		           (T *)k->out[0].ptr, n);
	}
};

struct run_avg_forward {
	template <int W, class T, class I> static void run(const struct slp_kernel *k, const pooling<I> &p, int64_t n)
	{
		const T *x = (const T *)k->in[0].ptr;
		T *y = (T *)k->out[0].ptr;
		int64_t size = (int64_t)p.ih * p.iw;
		bool image = p.oh == 1 && p.ow == 1 && p.kh == p.ih && p.kw == p.iw && p.ph == 0 && p.pw == 0;
		if (image && p.x_layout == SLP_LAYOUT_PLAIN && p.y_layout == SLP_LAYOUT_PLAIN && size >= 32)
			SLP_LAUNCH(avg_image<T>, slp_grid(n * SLP_BLOCK), size < 1024 ? 64 : SLP_BLOCK, 0, k->stream, x,
			           y, n, size);
		else if (image && p.is_nhwc() && size >= DEEP && n * W / p.channels <= MOST_IMAGES)
			SLP_LAUNCH((avg_image_rows<W, T>),
			           dim3((unsigned)((p.channels + LANES * W - 1) / (LANES * W)),
			                (unsigned)(n * W / p.channels)),
			           SLP_BLOCK, 0, k->stream, x, y, (int64_t)p.channels, size);
		else SLP_LAUNCH((avg_forward<W, T, I>), slp_grid(n), SLP_BLOCK, 0, k->stream, p, x, y, n);
	}
};

struct run_max_backward {
	template <int W, class T, class I> static void run(const struct slp_kernel *k, const pooling<I> &p, int64_t n)
	{
		SLP_LAUNCH((max_backward<W, T, I>), slp_grid(n), SLP_BLOCK, 0, k->stream, p, (const T *)k->in[0].ptr,
		           (const T *)k->in[1].ptr, relu_of<T>(k), (T *)k->out[0].ptr, n);
	}
};

struct run_avg_backward {
	template <int W, class T, class I> static void run(const struct slp_kernel *k, const pooling<I> &p, int64_t n)
	{
		SLP_LAUNCH((avg_backward<W, T, I>), slp_grid(n), SLP_BLOCK, 0, k->stream, p,
		           (const T *)k->in[k->nin - 1].ptr, relu_of<T>(k), (T *)k->out[0].ptr, n);
	}
};

static bool all_wide(const struct slp_kernel *k)
{
	for (int i = 0; i < k->nin; i++)
		if (!slp_is_wide(k->in[i].ptr)) return false;
	return slp_is_wide(k->out[0].ptr);
}

template <class R, class T, class I> static void run_sized(const struct slp_kernel *k, const struct slp_pool &p)
{
	constexpr int W = slp_wide_count<T>;
	int64_t n = slp_size(&k->out[0]), rows = slp_pool_is_back(k) ? p.ih : p.oh,
	        columns = slp_pool_is_back(k) ? p.iw : p.ow;
	if (p.x_layout == SLP_LAYOUT_NHWC && p.channels % W == 0 && all_wide(k))
		R::template run<W, T, I>(k, pooling<I>(p, rows, columns, W), n / W);
	else R::template run<1, T, I>(k, pooling<I>(p, rows, columns, 1), n);
}

/* Whether indices fit in 32 bits. */
static bool is_small(const struct slp_pool &p)
{
	const int64_t most = INT32_MAX / 2;
	return p.planes * p.ih * p.iw <= most && p.planes * p.oh * p.ow <= most && p.ih + p.kh + p.ph + p.sh <= most &&
	       p.iw + p.kw + p.pw + p.sw <= most;
}

template <class R> static enum sl_status run(const struct slp_kernel *k)
{
	struct slp_pool p = slp_pool_of(k);
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	bool small = is_small(p);
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		if (small) run_sized<R, T, uint32_t>(k, p);
		else run_sized<R, T, int64_t>(k, p);
	});
	return slp_launched(k);
}

#define OPERATION(name, how)                                                                                           \
	extern "C" enum sl_status slp_cuda_##name(const struct slp_kernel *k)                                          \
	{                                                                                                              \
		return run<how>(k);                                                                                    \
	}
OPERATION(max_pool2d, run_max_forward)
OPERATION(avg_pool2d, run_avg_forward)
OPERATION(max_pool2d_grad, run_max_backward)
OPERATION(avg_pool2d_grad, run_avg_backward)

template <class T, class I, class G>
static enum sl_status launch_sums(const struct slp_kernel *k, const struct slp_pool &p, G gradient)
{
	int64_t images = p.planes / p.channels;
	unsigned *arrived = slp_arrivals(k);
	bool few = p.channels <= SLP_ARRIVALS;
	if (!arrived) return SL_EKERNEL;
	SLP_LAUNCH((backward_sums<T, I, G>), dim3((unsigned)p.channels, few ? (unsigned)slp_pool_parts(images) : 1),
	           SLP_BLOCK, 0, k->stream, pooling<I>(p, p.ih, p.iw, 1), gradient, (T *)k->out[0].ptr,
	           (T *)k->out[1].ptr, (typename slp_number<T>::type *)k->scratch, images, arrived);
	return slp_launched(k);
}

/* With(relu) makes the gradient of type T. */
template <class F> static enum sl_status run_sums(const struct slp_kernel *k, F with)
{
	struct slp_pool p = slp_pool_of(k);
	enum sl_status s = SL_OK;
	const struct slp_view *sums = &k->out[1];
	if (slp_size(&k->out[0]) == 0) {
		size_t bytes = (size_t)slp_size(sums) * sl_dtype_size(sums->type.dtype);
		if (bytes) cudaMemsetAsync(sums->ptr, 0, bytes, (cudaStream_t)k->stream);
		return slp_launched(k);
	}
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		auto gradient = with(relu_of<T>(k));
		s = is_small(p) ? launch_sums<T, uint32_t>(k, p, gradient) : launch_sums<T, int64_t>(k, p, gradient);
	});
	return s;
}

extern "C" enum sl_status slp_cuda_max_pool2d_grad_sums(const struct slp_kernel *k)
{
	return run_sums(k, [&](auto relu) {
		typedef decltype(relu) P;
		return max_gradient<std::remove_cv_t<std::remove_pointer_t<P>>>{(P)k->in[0].ptr, (P)k->in[1].ptr, relu};
	});
}

extern "C" enum sl_status slp_cuda_avg_pool2d_grad_sums(const struct slp_kernel *k)
{
	return run_sums(k, [&](auto relu) {
		typedef decltype(relu) P;
		return avg_gradient<std::remove_cv_t<std::remove_pointer_t<P>>>{(P)k->in[k->nin - 1].ptr, relu};
	});
}
