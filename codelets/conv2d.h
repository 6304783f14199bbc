/* Convolution in two dimensions: its sizes, and the CPU implementations among which conv2d_cpu.c chooses. */
#ifndef SLP_CONV2D_H
#define SLP_CONV2D_H

#include "op.h"

/* Attributes of the gradient operations: what their inputs do not tell. */
struct slp_conv2d_grad {
	struct sl_conv2d_opts conv;
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

/* The sizes of a call of one of the three operations. */
static inline struct slp_conv slp_conv_of(const struct slp_kernel *k)
{
	const struct slp_view *in = k->in, *out = k->out;
	const struct slp_conv2d_grad *g = (const struct slp_conv2d_grad *)k->attrs;
	if (k->op == &slp_op_conv2d_grad_data)
		return slp_conv_make(&g->conv, out[0].type.shape, in[1].type.shape, in[0].type.shape);
	if (k->op == &slp_op_conv2d_grad_weights)
		return slp_conv_make(&g->conv, in[0].type.shape, out[0].type.shape, in[1].type.shape);
	return slp_conv_make((const struct sl_conv2d_opts *)k->attrs, in[0].type.shape, in[1].type.shape,
	                     out[0].type.shape);
}

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
	float *x, *w, *b, *y; /* b NULL: no bias */
};

/* Each returns SL_EUNSUPPORTED, without a message, where it cannot do the call. */
enum sl_status slp_conv_batch(const struct slp_kernel *k, const struct slp_conv_args *a);  /* conv2d_batch.c */
enum sl_status slp_conv_onednn(const struct slp_kernel *k, const struct slp_conv_args *a); /* conv2d_onednn.c */
enum sl_status slp_conv_gemm(const struct slp_kernel *k, const struct slp_conv_args *a);   /* conv2d_gemm.c */

#endif
