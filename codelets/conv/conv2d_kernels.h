/* Convolution in two dimensions: its sizes, and the CPU implementations among which conv2d_cpu.c chooses. */
#ifndef SLP_CONV2D_KERNELS_H
#define SLP_CONV2D_KERNELS_H

#include "common/image_layout.h"
#include "op.h"
#include "op_inner.h"
#include "starling/primitives.h"

/* Attributes of all these operations; fields that are not in an operation's table are 0. Users have the first four of
 * each table, graph passes add the others. x (or its gradient) and y (or its gradient) have a layout each
 * (image_layout.h): one of them may be plain and the other not. N16 needs a multiple of 16 images, NC16 whole blocks in
 * a half type. */
struct slp_conv2d_attrs {
	struct sl_conv2d_opts conv;
	int x_layout, y_layout; /* enum slp_image_layout */
	int w_layout;           /* of w or its gradient: plain or, if images are so, NHWC */
	bool wide;              /* parameters or their gradients are float32, images in a half type */
	bool bias;              /* conv2d_grad_weights: the gradient of a bias too */
	int crop[2];            /* rows and columns missing at the end of y: y has that many fewer */
	int activation;         /* enum sl_activation, of the sum; forward only */
	int pool;               /* enum slp_conv_pool, of the pooled forms */
	int64_t size[2];        /* of the gradients, where inputs do not tell: of x (conv2d_grad_data), of the kernel */
};

/* x (n, ic, ih, iw), w (oc, ic / groups, kh, kw), y (n, oc, oh, ow).  Of volumes, x (n, ic, id, ih, iw) and so on; images
 * have no depth: all of it is 0.  conv2d_onednn.c alone takes volumes. */
struct slp_conv {
	int64_t n, ic, ih, iw, oc, oh, ow, kh, kw, groups;
	int64_t sh, sw, ph, pw, dh, dw; /* stride, padding, dilation */
	int64_t id, od, kd, sd, pd, dd;
};

/* How the windows move. */
static inline void slp_conv_set_windows(struct slp_conv *c, const struct sl_conv2d_opts *o)
{
	c->groups = o->groups;
	c->sh = o->stride[0];
	c->sw = o->stride[1];
	c->ph = o->pad[0];
	c->pw = o->pad[1];
	c->dh = o->dilation[0];
	c->dw = o->dilation[1];
}

/* Sets how the windows move, and the height and width of y, computed from those of x and of the window. */
static inline void slp_conv_set_result(struct slp_conv *c, const struct sl_conv2d_opts *o)
{
	slp_conv_set_windows(c, o);
	c->oh = (c->ih + 2 * c->ph - (c->kh - 1) * c->dh - 1) / c->sh + 1;
	c->ow = (c->iw + 2 * c->pw - (c->kw - 1) * c->dw - 1) / c->sw + 1;
}

static inline struct slp_conv slp_conv_make(const struct sl_conv2d_opts *o, sl_shape x, sl_shape w, sl_shape y)
{
	struct slp_conv c = {0};
	c.n = x.dim[0];
	c.ic = x.dim[1];
	c.ih = x.dim[2];
	c.iw = x.dim[3];
	c.oc = y.dim[1];
	c.oh = y.dim[2];
	c.ow = y.dim[3];
	c.kh = w.dim[2];
	c.kw = w.dim[3];
	slp_conv_set_windows(&c, o);
	return c;
}

#define SLP_CONV_DEPTH_ATTR(type, field, doc)                                                                          \
	{                                                                                                              \
		"depth_" #field, SLP_INT, offsetof(type, depth.field), 1, doc, false, false                            \
	}
#define SLP_CONV_DEPTH_ATTRS(type)                                                                                     \
	SLP_CONV_DEPTH_ATTR(type, kernel, "layers of the window; 0: images"),                                          \
	        SLP_CONV_DEPTH_ATTR(type, stride, "steps of the window from layer to layer"),                          \
	        SLP_CONV_DEPTH_ATTR(type, pad, "layers of zeros before and behind"),                                   \
	        SLP_CONV_DEPTH_ATTR(type, dilation, "steps between layers of the window")

/* Makes it a convolution of volumes of so many layers. */
static inline void slp_conv_set_depth(struct slp_conv *c, const struct slp_conv_depth *d, int64_t layers)
{
	c->id = layers;
	c->kd = d->kernel;
	c->sd = d->stride;
	c->pd = d->pad;
	c->dd = d->dilation;
	c->od = (c->id + 2 * c->pd - (c->kd - 1) * c->dd - 1) / c->sd + 1;
}

/* Weights of a channel. */
static inline int64_t slp_conv_taps(const struct slp_conv *c)
{
	return (c->kd ? c->kd : 1) * c->kh * c->kw;
}

/* The place within x, of one channel, that this weight meets for place `at` of y; -1: outside. */
static inline int64_t slp_conv_place(const struct slp_conv *c, int64_t at, int64_t tap)
{
	int64_t h = at / c->ow % c->oh * c->sh - c->ph + tap / c->kw % c->kh * c->dh;
	int64_t w = at % c->ow * c->sw - c->pw + tap % c->kw * c->dw;
	int64_t d = c->kd ? at / (c->oh * c->ow) * c->sd - c->pd + tap / (c->kh * c->kw) * c->dd : 0;
	bool outside = h < 0 || h >= c->ih || w < 0 || w >= c->iw || d < 0 || (c->kd && d >= c->id);
	return outside ? -1 : (d * c->ih + h) * c->iw + w;
}

static inline const struct slp_conv2d_attrs *slp_conv_attrs(const struct slp_kernel *k)
{
	return (const struct slp_conv2d_attrs *)k->attrs;
}

static inline bool slp_conv_is_nhwc(const struct slp_kernel *k)
{
	const struct slp_conv2d_attrs *a = slp_conv_attrs(k);
	return slp_layout_among(SLP_LAYOUT_NHWC, a->x_layout, a->y_layout);
}

/* The sizes of a call of one of the operations; y is the unpooled one. */
static inline struct slp_conv slp_conv_of(const struct slp_kernel *k)
{
	const struct slp_view *in = k->in, *out = k->out;
	const struct slp_conv2d_attrs *a = slp_conv_attrs(k);
	enum slp_conv_pass pass = slp_conv_pass_of(k->op);
	bool data = pass == SLP_CONV_DATA, weights = pass == SLP_CONV_WEIGHTS;
	sl_shape y = (data ? in[0] : weights ? in[1] : out[0]).type.shape;
	for (int i = 2; i < 4; i++) y.dim[i] *= a->pool ? 2 : 1;
	if (data) return slp_conv_make(&a->conv, out[0].type.shape, in[1].type.shape, y);
	if (weights) return slp_conv_make(&a->conv, in[0].type.shape, out[0].type.shape, y);
	return slp_conv_make(&a->conv, in[0].type.shape, in[1].type.shape, y);
}

/* The index of the byte of the mask, of 16 images, that holds the bit of an element; the bit's number is the image
 * modulo 8. */
SLP_LAYOUT_FN int64_t slp_conv_mask_index(const struct slp_conv *c, int64_t n, int64_t o, int64_t at)
{
	return ((n / 16 * c->oc + o) * c->oh * c->ow + at) * 2 + n % 16 / 8;
}

/* The result of a window of four elements (two rows of two), and the elements that its gradient goes to: bit i of
 * *flow. */
SLP_LAYOUT_FN double slp_conv_pool4(int pool, bool relu, const double v[4], unsigned *flow)
{
	int best = 0;
	for (int i = 1; i < 4; i++)
		if (v[i] > v[best] || (v[i] != v[i] && v[best] == v[best])) best = i;
	*flow = pool == SLP_CONV_POOL_AVG ? 15 : 1u << best;
	for (int i = 0; relu && i < 4; i++)
		if (v[i] <= 0) *flow &= ~(1u << i);
	return pool == SLP_CONV_POOL_AVG ? ((v[0] + v[1]) + (v[2] + v[3])) * 0.25 : v[best];
}

/* The part of a window's gradient that each element gets. */
SLP_LAYOUT_FN float slp_conv_pool_share(int pool)
{
	return pool == SLP_CONV_POOL_AVG ? 0.25f : 1.0f;
}

/* For cuDNN, which takes whole images in one layout, plain or NHWC: bytes of a copy of x, of the uncropped y, of w and
 * of the bias, in front of its workspace; 0 if the tensor itself is used. */
struct slp_conv_stage {
	size_t x, y, w, b;
};

/* Whether images in one layout have the bytes of another: plain and NHWC ones of one channel or of one place. */
static inline bool slp_conv_same_bytes(int a, int b, int64_t channels, int64_t plane)
{
	bool among = (a == SLP_LAYOUT_PLAIN || a == SLP_LAYOUT_NHWC) && (b == SLP_LAYOUT_PLAIN || b == SLP_LAYOUT_NHWC);
	return a == b || (among && (channels == 1 || plane == 1));
}

static inline struct slp_conv_stage slp_conv_stage_of(const struct slp_conv2d_attrs *a, const struct slp_conv *c,
                                                      size_t element, bool nhwc)
{
	size_t x = (size_t)(c->n * c->ic * c->ih * c->iw), y = (size_t)(c->n * c->oc), taps = (size_t)(c->kh * c->kw);
	y *= (size_t)((c->oh + a->crop[0]) * (c->ow + a->crop[1]));
	int layout = nhwc ? SLP_LAYOUT_NHWC : SLP_LAYOUT_PLAIN;
	bool other_x = !slp_conv_same_bytes(a->x_layout, layout, c->ic, c->ih * c->iw);
	bool same_y = slp_conv_same_bytes(a->y_layout, layout, c->oc, c->oh * c->ow);
	bool other_y = !same_y || a->crop[0] || a->crop[1] || a->pool;
	bool other_w = a->wide || !slp_conv_same_bytes(a->w_layout, layout, c->ic / c->groups, (int64_t)taps);
	struct slp_conv_stage s = {other_x ? x : 0, other_y ? y : 0,
	                           other_w ? (size_t)(c->oc * (c->ic / c->groups)) * taps : 0,
	                           a->wide ? (size_t)c->oc : 0};
	size_t *const all[] = {&s.x, &s.y, &s.w, &s.b};
	for (int i = 0; i < 4; i++) *all[i] = (*all[i] * element + 255) & ~(size_t)255;
	return s;
}

static inline size_t slp_conv_stage_bytes(struct slp_conv_stage s)
{
	return s.x + s.y + s.w + s.b;
}

#ifdef __cplusplus
extern "C"
#endif
        size_t
        slp_conv_workspace(const struct slp_conv *c, size_t element); /* conv2d_forms.c */

/* conv2d_ref.c */
enum sl_status slp_conv2d_ref(const struct slp_kernel *k);
enum sl_status slp_conv2d_grad_data_ref(const struct slp_kernel *k);
enum sl_status slp_conv2d_grad_weights_ref(const struct slp_kernel *k);

/* conv2d_cpu.c */
enum sl_status slp_conv2d_cpu(const struct slp_kernel *k);
/* Runs a call with x or y in NHWC by a kernel for the plain layout. */
enum sl_status slp_conv_by_plain(const struct slp_kernel *k, slp_kernel_fn *kernel);
extern size_t slp_conv_most_work; /* bytes: more images are reordered in parts; tests change it */

/* The arguments of a CPU implementation. */
struct slp_conv_args {
	struct slp_conv c;
	enum slp_conv_pass pass;
	float *x, *w, *b, *y;   /* b NULL: no bias */
	int x_layout, y_layout; /* N16: conv2d_batch.c alone takes it, and the activation; NC16: conv2d_onednn.c does */
	int pool;               /* y is pooled, or the gradient of what was pooled ... */
	uint8_t *mask;          /* ... with this mask */
	bool cropped;           /* y is smaller than x, w and the options give */
	int activation;
	const struct slp_conv2d_blocked_attrs *blocked; /* images in blocks; conv2d_onednn.c alone takes them */
	bool sum;                                       /* y is added to its previous contents; in blocks only */
	bool half, wide; /* bfloat16, w and b float32 if wide or gradients; conv2d_onednn.c alone takes it */
};

/* Sets the operands of a call; whether the result is empty. */
struct slp_conv_args slp_conv_args_of(const struct slp_kernel *k);
bool slp_conv_is_empty(const struct slp_conv *c);
/* The number of images that are reordered at a time. */
int64_t slp_conv_images_at_once(const struct slp_conv *c);

enum sl_status slp_conv2d_bf16(const struct slp_kernel *k); /* conv2d_bf16.c */

/* Each returns SL_EUNSUPPORTED, without a message, if it does not support the call. */
enum sl_status slp_conv_batch(const struct slp_kernel *k, const struct slp_conv_args *a);  /* conv2d_batch.c */
enum sl_status slp_conv_onednn(const struct slp_kernel *k, const struct slp_conv_args *a); /* conv2d_onednn.c */
/* oneDNN alone; gradients of weights, and convolutions that it computes as products of matrices, depend on the number of
 * threads. */
enum sl_status slp_conv_onednn_alone(const struct slp_kernel *k, const struct slp_conv_args *a);
enum sl_status slp_conv_fixed_weights(const struct slp_kernel *k, const struct slp_conv_args *a); /* conv2d_fixed.c */
enum sl_status slp_conv_fixed_images(const struct slp_kernel *k,
                                     const struct slp_conv_args *a);                     /* the same, other passes */
enum sl_status slp_conv_gemm(const struct slp_kernel *k, const struct slp_conv_args *a); /* conv2d_gemm.c */
enum sl_status slp_conv_bf16_weights(const struct slp_kernel *k,
                                     const struct slp_conv_args *a); /* conv2d_bf16_weights.c */

/* Whether conv2d_batch.c is the fastest for a call in the plain layout. */
bool slp_conv_batch_pays(const struct slp_conv *c);

/* Whether conv2d_onednn.c takes bfloat16: it reorders and converts in one step, and computes in float32 if it must. */
bool slp_conv_onednn_half(void);

/* Bytes of packed weights of a convolution in blocks; 0: there is no fast kernel. slp_conv_onednn_pack packs them. */
size_t slp_conv_onednn_packed(const struct slp_conv_args *a, int team);
enum sl_status slp_conv_onednn_pack(const struct slp_kernel *k, const struct slp_conv_args *a, float *packed,
                                    size_t bytes);

/* A call with a pooling, through the unpooled y, which `run` computes or reads in N16; conv2d_pool.c. */
typedef enum sl_status slp_conv_run(const struct slp_kernel *k, const struct slp_conv_args *a);
enum sl_status slp_conv_unpooled(const struct slp_kernel *k, const struct slp_conv_args *a, slp_conv_run *run);

#endif
