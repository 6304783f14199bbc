/* Operands of convolutions on GPUs for cuDNN: whole images in one layout, plain or NHWC; weights in that layout, too,
 * and in the type of the images. Other operands are copied in front of the workspace, and results are copied back; a
 * pooling after y is part of that. */
#ifndef SLP_CONV2D_OPERANDS_CUH
#define SLP_CONV2D_OPERANDS_CUH

#include "common/convert.h"
#include "common/image_layout.cuh"
#include "op.h"
#include "starling/options.h"
#include "common/lanes.cuh"
#include "conv2d_kernels.h"

/* c has the size of the whole y. */
template <class T> struct operands {
	T *x, *w, *y, *b; /* b: of a forward pass; NULL: no bias */
	void *work;
	size_t limit;            /* bytes at work */
	struct slp_conv c, kept; /* kept: without the cropped rows and columns */
	struct slp_conv_stage stage;
	bool nhwc; /* the layout of images and weights; else plain */
};

template <class T>
static struct operands<T> operands_of(const struct slp_kernel *k, enum slp_conv_pass pass, bool nhwc) {
	const struct slp_conv2d_attrs *a = slp_conv_attrs(k);
	struct operands<T> o;
	o.c = slp_conv_of(k);
	o.nhwc = nhwc;
	o.stage = slp_conv_stage_of(a, &o.c, sizeof(T), nhwc);
	char *next = (char *)k->scratch;
	T *first = (T *)k->in[0].ptr, *second = (T *)k->in[1].ptr, *result = (T *)k->out[0].ptr;
	T *const plain[] = {
	        pass == SLP_CONV_DATA ? result : first,
	        pass == SLP_CONV_FORWARD ? result
	        : pass == SLP_CONV_DATA  ? first
	                                 : second,
	        pass == SLP_CONV_WEIGHTS ? result : second,
	        pass == SLP_CONV_FORWARD && k->nin == 3 ? (T *)k->in[2].ptr : NULL,
	};
	const size_t bytes[] = {o.stage.x, o.stage.y, o.stage.w, plain[3] ? o.stage.b : 0};
	T **const to[] = {&o.x, &o.y, &o.w, &o.b};
	for (int i = 0; i < 4; next += bytes[i++]) *to[i] = bytes[i] ? (T *)next : plain[i];
	o.work = next;
	o.limit = slp_conv_workspace(&o.c, sizeof(T));
	o.kept = o.c;
	o.c.oh += a->crop[0];
	o.c.ow += a->crop[1];
	return o;
}

/* ---- pooling ---------------------------------------------------------------------------------------------------- */

/* c: the part of the whole y that is pooled. */
struct pooling {
	struct slp_conv c;
	int64_t row, plane; /* of the whole y */
	int pool;
	bool relu;
	int layout; /* of the pooled y: plain or N16 */
};

/* An element of the pooled y: row and column of its window, and its index in memory. */
struct window {
	int64_t o, i, j, index;
};

__device__ static inline struct window window_of(const struct pooling &p, int64_t n, int64_t at)
{
	int64_t pw = p.c.ow / 2, size = p.c.oh / 2 * pw;
	struct window w;
	w.o = at / size;
	w.i = at % size / pw;
	w.j = at % pw;
	w.index = slp_layout_flat_index(p.layout, p.c.oc * size, n, at);
	return w;
}

/* A thread computes an element of y for each of 8 images, and the bytes of the mask. */
template <class T>
__global__ static void pool_kernel(struct pooling p, const T *whole, T *y, uint8_t *mask, int64_t count)
{
	int64_t flat = p.c.oc * (p.c.oh / 2) * (p.c.ow / 2);
	SLP_GRID_STRIDE(index, count)
	{
		int64_t n = index / flat * 8;
		unsigned bytes[4] = {0, 0, 0, 0}, flow;
		struct window w;
		for (int l = 0; l < 8; l++) {
			double v[4];
			w = window_of(p, n + l, index % flat);
			const T *from = whole + ((n + l) * p.c.oc + w.o) * p.plane + 2 * w.i * p.row + 2 * w.j;
			for (int e = 0; e < 4; e++) v[e] = (double)from[e / 2 * p.row + e % 2];
			y[w.index] = (T)slp_conv_pool4(p.pool, p.relu, v, &flow);
			for (int e = 0; e < 4; e++) bytes[e] |= (flow >> e & 1) << l;
		}
		for (int e = 0; e < 4; e++)
			mask[slp_conv_mask_index(&p.c, n, w.o, (2 * w.i + e / 2) * p.c.ow + 2 * w.j + e % 2)] =
			        (uint8_t)bytes[e];
	}
}

/* A thread computes an element of the gradient of the whole y. */
template <class T>
__global__ static void unpool_kernel(struct pooling p, const T *dy, const uint8_t *mask, T *whole, int64_t count)
{
	int64_t pw = p.c.ow / 2, size = p.c.oh / 2 * pw;
	SLP_GRID_STRIDE(index, count)
	{
		int64_t j = index % p.row, i = index % p.plane / p.row, o = index / p.plane % p.c.oc;
		int64_t n = index / p.plane / p.c.oc;
		typename slp_number<T>::type d = 0;
		if (i < p.c.oh && j < p.c.ow && mask[slp_conv_mask_index(&p.c, n, o, i * p.c.ow + j)] >> n % 8 & 1)
			d = (typename slp_number<T>::type)dy[slp_layout_flat_index(p.layout, p.c.oc * size, n,
			                                                           o * size + i / 2 * pw + j / 2)] *
			    slp_conv_pool_share(p.pool);
		whole[index] = d;
	}
}

template <class T> static struct pooling pooling_of(const struct slp_kernel *k, const struct operands<T> &o)
{
	const struct slp_conv2d_attrs *a = slp_conv_attrs(k);
	struct pooling p = {o.kept, o.c.ow, o.c.oh * o.c.ow, a->pool, a->activation == SL_RELU, a->y_layout};
	return p;
}

template <class T> static enum sl_status pool(const struct slp_kernel *k, const struct operands<T> &o)
{
	int64_t count = slp_size(&k->out[0]) / 8;
	if (count == 0) return SL_OK;
	SLP_LAUNCH(pool_kernel<T>, slp_grid(count), SLP_BLOCK, 0, k->stream, pooling_of(k, o), (const T *)o.y,
	           (T *)k->out[0].ptr, (uint8_t *)k->out[1].ptr, count);
	return slp_launched(k);
}

template <class T> static enum sl_status unpool(const struct slp_kernel *k, const struct operands<T> &o, const T *dy)
{
	int64_t count = o.c.n * o.c.oc * o.c.oh * o.c.ow;
	if (count == 0) return SL_OK;
	SLP_LAUNCH(unpool_kernel<T>, slp_grid(count), SLP_BLOCK, 0, k->stream, pooling_of(k, o), dy,
	           (const uint8_t *)k->in[2].ptr, o.y, count);
	return slp_launched(k);
}

/* ---- copies ----------------------------------------------------------------------------------------------------- */

/* Weights between the caller's memory and cuDNN's.  In one layout, only the type differs. */
template <class T>
static enum sl_status stage_weights(const struct slp_kernel *k, const struct operands<T> &o, bool back)
{
	typedef typename slp_number<T>::type N;
	const struct slp_conv &c = o.c;
	int64_t taps = c.kh * c.kw, channels = c.ic / c.groups;
	const struct slp_view &own = back ? k->out[0] : k->in[1];
	struct slp_view copy = {o.w, {k->in[0].type.dtype, own.type.shape}};
	if (slp_size(&own) == 0) return SL_OK;
	bool nhwc = slp_conv_attrs(k)->w_layout == SLP_LAYOUT_NHWC, out_of_nhwc = back ? o.nhwc : nhwc;
	if (nhwc == o.nhwc || taps == 1)
		return back ? slp_cuda_convert(k, &copy, &own) : slp_cuda_convert(k, &own, &copy);
	int64_t rows = out_of_nhwc ? taps : channels, columns = out_of_nhwc ? channels : taps;
	if (back) return slp_turn(k, (const T *)o.w, (T *)own.ptr, c.oc, rows, columns);
	if (slp_conv_attrs(k)->wide) return slp_turn(k, (const N *)own.ptr, o.w, c.oc, rows, columns);
	return slp_turn(k, (const T *)own.ptr, o.w, c.oc, rows, columns);
}

template <class T> static enum sl_status stage_bias(const struct slp_kernel *k, const struct operands<T> &o)
{
	struct slp_view copy = {o.b, {k->in[0].type.dtype, k->in[2].type.shape}};
	return slp_size(&copy) ? slp_cuda_convert(k, &k->in[2], &copy) : SL_OK;
}

template <class T> static enum sl_status stage_x(const struct slp_kernel *k, const struct operands<T> &o, bool back)
{
	const struct slp_conv2d_attrs *a = slp_conv_attrs(k);
	const struct slp_conv &c = o.c;
	struct slp_layout_side own = {c.ih, c.iw, a->x_layout};
	struct slp_layout_side copy = {c.ih, c.iw, o.nhwc ? SLP_LAYOUT_NHWC : SLP_LAYOUT_PLAIN};
	if (back) return slp_layout_copy<T>(k, o.x, (T *)k->out[0].ptr, c.n, c.ic, copy, own);
	return slp_layout_copy<T>(k, (T *)k->in[0].ptr, o.x, c.n, c.ic, own, copy);
}

template <class T>
static enum sl_status stage_y(const struct slp_kernel *k, const struct operands<T> &o, enum slp_conv_pass pass)
{
	const struct slp_conv2d_attrs *a = slp_conv_attrs(k);
	const struct slp_conv &c = o.c;
	struct slp_layout_side own = {o.kept.oh, o.kept.ow, a->y_layout};
	struct slp_layout_side copy = {c.oh, c.ow, o.nhwc ? SLP_LAYOUT_NHWC : SLP_LAYOUT_PLAIN};
	bool back = pass == SLP_CONV_FORWARD;
	T *y = (T *)(back ? k->out[0] : pass == SLP_CONV_DATA ? k->in[0] : k->in[1]).ptr;
	if (a->pool) return back ? pool<T>(k, o) : unpool<T>(k, o, y);
	return back ? slp_layout_copy<T>(k, o.y, y, c.n, c.oc, copy, own)
	            : slp_layout_copy<T>(k, y, o.y, c.n, c.oc, own, copy);
}

/* Copies inputs to the operands' memory, or with `back` the operand that is a result to the output. */
template <class T>
static enum sl_status stage(const struct slp_kernel *k, const struct operands<T> &o, enum slp_conv_pass pass, bool back)
{
	enum sl_status s = SL_OK;
	if (o.stage.x && back == (pass == SLP_CONV_DATA)) s = stage_x<T>(k, o, back);
	if (s == SL_OK && o.stage.y && back == (pass == SLP_CONV_FORWARD)) s = stage_y<T>(k, o, pass);
	if (s == SL_OK && o.stage.w && back == (pass == SLP_CONV_WEIGHTS)) s = stage_weights<T>(k, o, back);
	if (s == SL_OK && o.stage.b && o.b && !back) s = stage_bias<T>(k, o);
	return s;
}

#endif
