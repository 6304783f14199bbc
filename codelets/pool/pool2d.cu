/* Pooling on GPUs.  Forwards a thread makes an element of y; backwards a thread makes an element of x from all windows
 * that cover it, so that nothing is added up in an order of chance. */
#include "common/lanes.cuh"
#include "pool2d.h"

/* A position in a tensor of planes of `rows` × `columns`. */
struct position {
	int64_t plane, i, j;
};

/* Of the index-th thread: elements that lie side by side in memory belong to threads that do. */
__device__ static inline struct position position_of(const struct slp_pool &p, int64_t index, int64_t rows,
                                                     int64_t columns)
{
	struct position r;
	if (p.last) {
		int64_t place = index / p.channels, image = place / (rows * columns);
		r.j = place % columns;
		r.i = place / columns % rows;
		r.plane = image * p.channels + index % p.channels;
		return r;
	}
	r.j = index % columns;
	r.i = index / columns % rows;
	r.plane = index / columns / rows;
	return r;
}

/* Where in x the first largest element under a window of a plane is. */
template <class S>
__device__ static int64_t largest(const struct slp_pool &p, const S *x, int64_t plane, const struct slp_window &r)
{
	typedef typename slp_number<S>::type T;
	int64_t best = slp_pool_x(&p, plane, r.h0 * p.iw + r.w0);
	for (int64_t h = r.h0; h < r.h1; h++)
		for (int64_t w = r.w0; w < r.w1; w++) {
			int64_t at = slp_pool_x(&p, plane, h * p.iw + w);
			if (SLP_POOL_BEATS((T)x[at], (T)x[best])) best = at;
		}
	return best;
}

template <class S> __global__ static void max_forward(struct slp_pool p, const S *x, S *y, int64_t n)
{
	SLP_GRID_STRIDE(index, n)
	{
		struct position at = position_of(p, index, p.oh, p.ow);
		y[slp_pool_y(&p, at.plane, at.i * p.ow + at.j)] =
		        x[largest(p, x, at.plane, slp_pool_window(&p, at.i, at.j))];
	}
}

template <class S> __global__ static void avg_forward(struct slp_pool p, const S *x, S *y, int64_t n)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(index, n)
	{
		struct position at = position_of(p, index, p.oh, p.ow);
		struct slp_window r = slp_pool_window(&p, at.i, at.j);
		T sum = 0;
		for (int64_t h = r.h0; h < r.h1; h++)
			for (int64_t w = r.w0; w < r.w1; w++) sum += (T)x[slp_pool_x(&p, at.plane, h * p.iw + w)];
		y[slp_pool_y(&p, at.plane, at.i * p.ow + at.j)] = sum / (T)r.count;
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

/* Windows [*first, *end) along an axis that cover element `at`. */
__device__ static inline void covering(int64_t at, int64_t kernel, int64_t stride, int64_t pad, int64_t windows,
                                       int64_t *first, int64_t *end)
{
	int64_t low = at + pad - kernel + 1;
	*first = low <= 0 ? 0 : (low + stride - 1) / stride;
	*end = (at + pad) / stride + 1;
	if (*end > windows) *end = windows;
}

/* share(window, its element of y) is what an element gets from a window that covers it; the sum over all of them. */
template <class S, class F>
__device__ static typename slp_number<S>::type gather(const struct slp_pool &p, const struct position &at, F share)
{
	int64_t i0, i1, j0, j1;
	covering(at.i, p.kh, p.sh, p.ph, p.oh, &i0, &i1);
	covering(at.j, p.kw, p.sw, p.pw, p.ow, &j0, &j1);
	typename slp_number<S>::type sum = 0;
	for (int64_t i = i0; i < i1; i++)
		for (int64_t j = j0; j < j1; j++)
			sum += share(slp_pool_window(&p, i, j), slp_pool_y(&p, at.plane, i * p.ow + j));
	return sum;
}

template <class S> struct max_share {
	typedef typename slp_number<S>::type T;
	const struct slp_pool &p;
	const S *x, *dy;
	int64_t plane, self;
	__device__ T operator()(const struct slp_window &r, int64_t y) const
	{
		return largest(p, x, plane, r) == self ? (T)dy[y] : (T)0;
	}
};

template <class S> struct avg_share {
	typedef typename slp_number<S>::type T;
	const S *dy;
	__device__ T operator()(const struct slp_window &r, int64_t y) const
	{
		return (T)dy[y] / (T)r.count;
	}
};

/* relu, if not NULL, has the order of dx: the gradient vanishes where it is not positive. */
template <class S>
__global__ static void max_backward(struct slp_pool p, const S *x, const S *dy, const S *relu, S *dx, int64_t n)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(index, n)
	{
		struct position at = position_of(p, index, p.ih, p.iw);
		int64_t self = slp_pool_x(&p, at.plane, at.i * p.iw + at.j);
		max_share<S> share = {p, x, dy, at.plane, self};
		dx[self] = relu && (T)relu[self] <= 0 ? (T)0 : gather<S>(p, at, share);
	}
}

template <class S> __global__ static void avg_backward(struct slp_pool p, const S *dy, const S *relu, S *dx, int64_t n)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(index, n)
	{
		struct position at = position_of(p, index, p.ih, p.iw);
		int64_t self = slp_pool_x(&p, at.plane, at.i * p.iw + at.j);
		avg_share<S> share = {dy};
		dx[self] = relu && (T)relu[self] <= 0 ? (T)0 : gather<S>(p, at, share);
	}
}

/* ---- the four operations ---------------------------------------------------------------------------------------- */

struct run_max_forward {
	template <class T> static void run(const struct slp_kernel *k, const struct slp_pool &p, int64_t n)
	{
		SLP_LAUNCH(max_forward<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, p, (const T *)k->in[0].ptr,
		           (T *)k->out[0].ptr, n);
	}
};

struct run_avg_forward {
	template <class T> static void run(const struct slp_kernel *k, const struct slp_pool &p, int64_t n)
	{
		const T *x = (const T *)k->in[0].ptr;
		T *y = (T *)k->out[0].ptr;
		bool image = p.oh == 1 && p.ow == 1 && p.kh == p.ih && p.kw == p.iw && p.ph == 0 && p.pw == 0;
		if (image && !p.x_lanes && !p.y_lanes && !p.last && p.ih * p.iw >= 32)
			SLP_LAUNCH(avg_image<T>, slp_grid(n * SLP_BLOCK), p.ih * p.iw < 1024 ? 64 : SLP_BLOCK, 0,
			           k->stream, x, y, p.planes, p.ih * p.iw);
		else SLP_LAUNCH(avg_forward<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, p, x, y, n);
	}
};

template <class T> static const T *relu_of(const struct slp_kernel *k)
{
	return slp_pool_has_relu(k) ? (const T *)k->in[0].ptr : NULL;
}

struct run_max_backward {
	template <class T> static void run(const struct slp_kernel *k, const struct slp_pool &p, int64_t n)
	{
		SLP_LAUNCH(max_backward<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, p, (const T *)k->in[0].ptr,
		           (const T *)k->in[1].ptr, relu_of<T>(k), (T *)k->out[0].ptr, n);
	}
};

struct run_avg_backward {
	template <class T> static void run(const struct slp_kernel *k, const struct slp_pool &p, int64_t n)
	{
		SLP_LAUNCH(avg_backward<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, p, (const T *)k->in[k->nin - 1].ptr,
		           relu_of<T>(k), (T *)k->out[0].ptr, n);
	}
};

template <class R> static enum sl_status run(const struct slp_kernel *k)
{
	struct slp_pool p = slp_pool_of(k);
	int64_t n = slp_size(&k->out[0]);
	if (n == 0) return SL_OK;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) { R::template run<decltype(zero)>(k, p, n); });
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
