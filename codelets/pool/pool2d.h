/* Pooling in two dimensions: its sizes and windows, for all kernels on CPUs and GPUs. */
#ifndef SLP_POOL2D_H
#define SLP_POOL2D_H

#include "common/image_layout.h"
#include "op_list/pool.h"
#include "starling/options.h"

#ifdef __CUDACC__
#define SLP_POOL_FN static __host__ __device__ inline
#else
#define SLP_POOL_FN static inline
#endif

/* Attributes of the forward operations: the caller's options, and the layouts that graph passes choose (image_layout.h):
 * x and y may each be in N16, which needs a multiple of 16 images, or both in NHWC. */
struct slp_pool2d_attrs {
	struct sl_pool2d_opts pool;
	int x_layout, y_layout; /* enum slp_image_layout */
};

/* Attributes of the gradient operations; x_layout is that of x and its gradient, y_layout that of the gradient of y. */
struct slp_pool2d_grad {
	struct slp_pool2d_attrs of;
	int64_t size[2]; /* of x */
	bool relu;       /* x came from a relu, and the result is the gradient of that relu's argument */
};

extern const struct slp_attr slp_pool_attr_table[]; /* of the forward operations */
/* Puts defaults into *a and computes the shape of y (pool2d.c). */
enum sl_status slp_pool_shape(const struct slp_infer *c, struct slp_pool2d_attrs *a, sl_shape x, sl_shape *y);

/* `planes` images of one channel each, x (ih, iw), y (oh, ow). */
struct slp_pool {
	int64_t planes, ih, iw, oh, ow, kh, kw, sh, sw, ph, pw;
	bool exclude_pad;
	int64_t channels; /* planes of an image */
	int x_layout, y_layout;
};

/* The index of element `at` of a plane in x, in y. */
SLP_POOL_FN int64_t slp_pool_x(const struct slp_pool *p, int64_t plane, int64_t at)
{
	int64_t size = p->ih * p->iw, image = plane / p->channels, channel = plane % p->channels;
	return slp_layout_index(p->x_layout, p->channels, size, image, channel, at);
}

SLP_POOL_FN int64_t slp_pool_y(const struct slp_pool *p, int64_t plane, int64_t at)
{
	int64_t size = p->oh * p->ow, image = plane / p->channels, channel = plane % p->channels;
	return slp_layout_index(p->y_layout, p->channels, size, image, channel, at);
}

/* Rows [h0, h1) and columns [w0, w1) of x under the window of y (i, j), and the divisor of its mean. */
struct slp_window {
	int64_t h0, h1, w0, w1, count;
};

SLP_POOL_FN struct slp_window slp_pool_window(const struct slp_pool *p, int64_t i, int64_t j)
{
	int64_t h = i * p->sh - p->ph, w = j * p->sw - p->pw, hk = h + p->kh, wk = w + p->kw;
	struct slp_window r;
	r.h0 = h < 0 ? 0 : h;
	r.w0 = w < 0 ? 0 : w;
	r.h1 = hk < p->ih ? hk : p->ih;
	r.w1 = wk < p->iw ? wk : p->iw;
	/* Padding counts, elements beyond it do not. */
	int64_t rows = (hk < p->ih + p->ph ? hk : p->ih + p->ph) - h,
	        columns = (wk < p->iw + p->pw ? wk : p->iw + p->pw) - w;
	r.count = p->exclude_pad ? (r.h1 - r.h0) * (r.w1 - r.w0) : rows * columns;
	return r;
}

/* Whether b replaces a as the maximum: the first of equal ones stays, the first NaN wins. */
#define SLP_POOL_BEATS(b, a) ((b) > (a) || ((b) != (b) && (a) == (a)))

static inline struct slp_pool slp_pool_make(const struct slp_pool2d_attrs *a, sl_shape x, sl_shape y)
{
	const struct sl_pool2d_opts *o = &a->pool;
	struct slp_pool p;
	p.planes = x.dim[0] * x.dim[1];
	p.ih = x.dim[2];
	p.iw = x.dim[3];
	p.oh = y.dim[2];
	p.ow = y.dim[3];
	p.kh = o->kernel[0];
	p.kw = o->kernel[1];
	p.sh = o->stride[0];
	p.sw = o->stride[1];
	p.ph = o->pad[0];
	p.pw = o->pad[1];
	p.exclude_pad = o->exclude_pad;
	p.channels = x.dim[1];
	p.x_layout = a->x_layout;
	p.y_layout = a->y_layout;
	return p;
}

static inline bool slp_pool_is_back(const struct slp_kernel *k)
{
	return k->op == &slp_op_max_pool2d_grad || k->op == &slp_op_avg_pool2d_grad ||
	       k->op == &slp_op_max_pool2d_grad_sums || k->op == &slp_op_avg_pool2d_grad_sums;
}

/* The sizes of a call of one of the operations; the forward attributes are the first in all. */
static inline struct slp_pool slp_pool_of(const struct slp_kernel *k)
{
	const struct slp_pool2d_attrs *a = (const struct slp_pool2d_attrs *)k->attrs;
	if (slp_pool_is_back(k)) return slp_pool_make(a, k->out[0].type.shape, k->in[k->nin - 1].type.shape);
	return slp_pool_make(a, k->in[0].type.shape, k->out[0].type.shape);
}

/* Whether the gradient vanishes where x, the first of two inputs, is not positive. */
static inline bool slp_pool_has_relu(const struct slp_kernel *k)
{
	return slp_pool_is_back(k) && ((const struct slp_pool2d_grad *)k->attrs)->relu;
}

/* The parts of the images whose sums the gradients with sums add up. */
enum { SLP_POOL_PARTS = 32 };
static inline int slp_pool_parts(int64_t images)
{
	return images < SLP_POOL_PARTS ? (int)images : SLP_POOL_PARTS;
}

/* pool2d_cpu.c */
enum sl_status slp_max_pool2d_cpu(const struct slp_kernel *k);
enum sl_status slp_avg_pool2d_cpu(const struct slp_kernel *k);
enum sl_status slp_max_pool2d_grad_cpu(const struct slp_kernel *k);
enum sl_status slp_avg_pool2d_grad_cpu(const struct slp_kernel *k);

/* pool2d_n16.c: all four, if x or y is in N16 */
enum sl_status slp_pool2d_n16(const struct slp_kernel *k);

#endif
