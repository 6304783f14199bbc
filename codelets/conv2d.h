/* Convolution in two dimensions: its sizes, and the CPU implementations among which conv2d_cpu.c chooses. */
#ifndef SLP_CONV2D_H
#define SLP_CONV2D_H

#include "op.h"

/* Attributes of conv2d: the caller's options, and what graph passes add.  For each image by itself, as it is in memory:
 * x and y may each be in lane order (lane_order.h; their images must then be a multiple of 16). */
struct slp_conv2d_attrs {
	struct sl_conv2d_opts conv;
	bool x_lanes, y_lanes;
	int crop[2];    /* rows and columns at the end of y that nobody wants: y has that many fewer */
	int activation; /* enum sl_activation, of the sum; conv2d only */
};

/* Attributes of the gradient operations: what their inputs do not tell.  x_lanes is about x or its gradient, y_lanes
 * about the gradient of y. */
struct slp_conv2d_grad {
	struct slp_conv2d_attrs of;
	int64_t size[2]; /* height and width of x (conv2d_grad_data) or of the kernel (conv2d_grad_weights) */
	bool bias;       /* conv2d_grad_weights: the gradient of a bias too */
};

extern const struct sl_op slp_op_conv2d, slp_op_conv2d_grad_data, slp_op_conv2d_grad_weights;

/* x (n, ic, ih, iw), w (oc, ic / groups, kh, kw), y (n, oc, oh, ow). */
struct slp_conv {
	int64_t n, ic, ih, iw, oc, oh, ow, kh, kw, groups;
	int64_t sh, sw, ph, pw, dh, dw; /* stride, padding, dilation */
};

static inline struct slp_conv slp_conv_make(const struct sl_conv2d_opts *o, sl_shape x, sl_shape w, sl_shape y)
{
	struct slp_conv c = {x.dim[0],  x.dim[1],  x.dim[2],       x.dim[3],      y.dim[1],     y.dim[2],
	                     y.dim[3],  w.dim[2],  w.dim[3],       o->groups,     o->stride[0], o->stride[1],
	                     o->pad[0], o->pad[1], o->dilation[0], o->dilation[1]};
	return c;
}

/* The attributes that all three operations have; they are the first in each. */
static inline const struct slp_conv2d_attrs *slp_conv_attrs(const struct slp_kernel *k)
{
	return (const struct slp_conv2d_attrs *)k->attrs;
}

/* The sizes of a call of one of the three operations. */
static inline struct slp_conv slp_conv_of(const struct slp_kernel *k)
{
	const struct slp_view *in = k->in, *out = k->out;
	const struct sl_conv2d_opts *o = &slp_conv_attrs(k)->conv;
	if (k->op == &slp_op_conv2d_grad_data)
		return slp_conv_make(o, out[0].type.shape, in[1].type.shape, in[0].type.shape);
	if (k->op == &slp_op_conv2d_grad_weights)
		return slp_conv_make(o, in[0].type.shape, out[0].type.shape, in[1].type.shape);
	return slp_conv_make(o, in[0].type.shape, in[1].type.shape, out[0].type.shape);
}

/* For cuDNN, which takes images in the plain order and whole: bytes of a copy of x, and of y with what was cropped, in
 * front of its workspace; 0 where the tensor itself will do. */
struct slp_conv_stage {
	size_t x, y;
};

static inline struct slp_conv_stage slp_conv_stage_of(const struct slp_conv2d_attrs *a, const struct slp_conv *c,
                                                      size_t element)
{
	struct slp_conv_stage s = {0, 0};
	size_t x = (size_t)(c->n * c->ic * c->ih * c->iw), y = (size_t)(c->n * c->oc);
	y *= (size_t)((c->oh + a->crop[0]) * (c->ow + a->crop[1]));
	if (a->x_lanes) s.x = (x * element + 255) & ~(size_t)255;
	if (a->y_lanes || a->crop[0] || a->crop[1]) s.y = (y * element + 255) & ~(size_t)255;
	return s;
}

#ifdef __cplusplus
extern "C"
#endif
size_t slp_conv_workspace(const struct slp_conv *c, size_t element); /* conv2d.c */

/* conv2d_ref.c */
enum sl_status slp_conv2d_ref(const struct slp_kernel *k);
enum sl_status slp_conv2d_grad_data_ref(const struct slp_kernel *k);
enum sl_status slp_conv2d_grad_weights_ref(const struct slp_kernel *k);

/* conv2d_cpu.c */
enum sl_status slp_conv2d_cpu(const struct slp_kernel *k);

/* What a CPU implementation computes: y from x, w, b; x from y, w; w and b from x, y. */
enum slp_conv_pass { SLP_CONV_FORWARD, SLP_CONV_DATA, SLP_CONV_WEIGHTS, SLP_CONV_PASSES };

struct slp_conv_args {
	struct slp_conv c;
	enum slp_conv_pass pass;
	float *x, *w, *b, *y;   /* b NULL: no bias */
	bool x_lanes, y_lanes;  /* conv2d_batch.c alone takes them, and the activation */
	bool cropped;           /* y is smaller than x, w and the options tell */
	int activation;
};

/* Whether images of these sizes are best computed in lane order, for graph passes. */
bool slp_conv_likes_lanes(const struct slp_conv *c);

/* Each returns SL_EUNSUPPORTED, without a message, where it cannot do the call. */
enum sl_status slp_conv_batch(const struct slp_kernel *k, const struct slp_conv_args *a);  /* conv2d_batch.c */
enum sl_status slp_conv_onednn(const struct slp_kernel *k, const struct slp_conv_args *a); /* conv2d_onednn.c */
enum sl_status slp_conv_gemm(const struct slp_kernel *k, const struct slp_conv_args *a);   /* conv2d_gemm.c */

#endif
