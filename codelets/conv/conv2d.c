/* Convolution in two dimensions and its two gradients: rules of shapes, gradients, the public function.
 *
 * All three maps are linear in both operands and each is a gradient of the other two, so they also serve as each
 * other's gradients. Each of them is three operations, which share all but some attributes: the plain form, which users
 * call; the lowered one, in which graph passes choose layouts of images and types of parameters; and the pooled one,
 * which a pooling follows. */
#include "common/forget.h"
#include "conv2d_kernels.h"
#include "op_list/conv.h"
#include "options.h"
#include "starling/primitives.h"

/* ---- attributes -------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define ATTR(field, kind, count, doc) SLP_ATTR(struct slp_conv2d_attrs, field, kind, count, doc)
#define OPTION(field, count, doc) {#field, SLP_INT, offsetof(struct slp_conv2d_attrs, conv.field), count, doc, false, false}
/* clang-format on */
#define OPTIONS                                                                                                        \
	OPTION(stride, 2, "steps of the window down and across"), OPTION(pad, 2, "zeros around the image"),            \
	        OPTION(dilation, 2, "steps between kernel elements"),                                                  \
	        OPTION(groups, 1, "independent groups of channels")
#define LAYOUTS                                                                                                        \
	ATTR(x_layout, SLP_INT, 1, "of x or its gradient"), ATTR(y_layout, SLP_INT, 1, "of y or its gradient"),        \
	        ATTR(crop, SLP_INT, 2, "rows and columns of y left out at its end")
#define WIDE                                                                                                           \
	ATTR(wide, SLP_BOOL, 1, "float32 for parameters of half images"),                                              \
	        ATTR(w_layout, SLP_INT, 1, "of w or its gradient: plain or nhwc")
#define POOL ATTR(pool, SLP_INT, 1, "after y: 2 × 2 windows, 1: largest, 2: mean")
#define ACTIVATION ATTR(activation, SLP_INT, 1, "applied to y: enum sl_activation")
#define RESULT                                                                                                         \
	ATTR(size, SLP_INT64, 2, "height and width of the result"),                                                    \
	        ATTR(bias, SLP_BOOL, 1, "the gradient of the bias too")

static const struct slp_attr plain_attrs[] = {OPTIONS, ACTIVATION, {0}};
static const struct slp_attr lowered_attrs[] = {OPTIONS, LAYOUTS, WIDE, ACTIVATION, {0}};
static const struct slp_attr pool_attrs[] = {OPTIONS, LAYOUTS, POOL, ACTIVATION, {0}};
static const struct slp_attr grad_plain_attrs[] = {OPTIONS, RESULT, {0}};
static const struct slp_attr grad_lowered_attrs[] = {OPTIONS, LAYOUTS, WIDE, RESULT, {0}};
static const struct slp_attr grad_pool_attrs[] = {OPTIONS, LAYOUTS, POOL, RESULT, {0}};

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static enum sl_status check_attrs(const struct slp_infer *c, const struct slp_conv2d_attrs *a)
{
	const struct sl_conv2d_opts *o = &a->conv;
	for (int i = 0; i < 2; i++)
		if (o->stride[i] < 1 || o->dilation[i] < 1 || o->pad[i] < 0 || a->crop[i] < 0)
			return slp_reject(c, SL_EINVAL,
			                  "stride and dilation must be positive, pad and crop not negative");
	if (a->activation < 0 || a->activation >= SL_ACTIVATIONS)
		return slp_reject(c, SL_EINVAL, "activation %d is none of enum sl_activation", a->activation);
	bool pools = c->op == slp_conv_forms[slp_conv_pass_of(c->op)].pooled;
	if (a->pool < SLP_CONV_POOL_NONE || a->pool > SLP_CONV_POOL_AVG || pools != (a->pool != SLP_CONV_POOL_NONE))
		return slp_reject(c, SL_EINVAL, "pool %d: a pooled convolution has one, others have none", a->pool);
	return o->groups < 1 ? slp_reject(c, SL_EINVAL, "groups must be positive") : SL_OK;
}

/* The first `images` inputs are images, the others parameters. */
static enum sl_status check_inputs(const struct slp_infer *c, const struct slp_conv2d_attrs *a, int images, int floats)
{
	enum sl_dtype image = c->in[0].dtype, parameter = a->wide ? slp_promoted(image) : image;
	for (int i = 0; i < floats; i++)
		if (!slp_is_float(c->in[i].dtype) || c->in[i].dtype != (i < images ? image : parameter))
			return slp_reject(c, SL_EDTYPE, "inputs must all be float32 or all float64");
	for (int i = 0; i < 2; i++)
		if (c->in[i].shape.ndim != 4)
			return slp_reject(c, SL_ESHAPE, "input %d must have 4 axes, and has %d", i,
			                  c->in[i].shape.ndim);
	return SL_OK;
}

/* One of x and y may be plain and the other not. */
static enum sl_status check_layouts(const struct slp_infer *c, const struct slp_conv2d_attrs *a)
{
	int x = a->x_layout, y = a->y_layout;
	if (x < 0 || x >= SLP_LAYOUTS || y < 0 || y >= SLP_LAYOUTS)
		return slp_reject(c, SL_EINVAL, "x_layout %d and y_layout %d must be layouts", x, y);
	if (a->w_layout && (a->w_layout != SLP_LAYOUT_NHWC || !slp_layout_among(SLP_LAYOUT_NHWC, x, y) || a->wide ||
	                    a->conv.groups > 1))
		return slp_reject(c, SL_EINVAL,
		                  "w_layout %d: it must be plain or, like images, nhwc, in one group and type",
		                  a->w_layout);
	if (x != y && x != SLP_LAYOUT_PLAIN && y != SLP_LAYOUT_PLAIN)
		return slp_reject(c, SL_EINVAL, "x and y have different layouts, and none of them is plain");
	return SL_OK;
}

static enum sl_status check_n16(const struct slp_infer *c, const struct slp_conv2d_attrs *a, sl_shape x)
{
	if ((slp_layout_among(SLP_LAYOUT_N16, a->x_layout, a->y_layout) || a->pool) && x.dim[0] % SLP_N16_IMAGES)
		return slp_reject(c, SL_ESHAPE, "the layout n16 needs a multiple of %d images", SLP_N16_IMAGES);
	return SL_OK;
}

static enum sl_status check_nc16(const struct slp_infer *c, const struct slp_conv2d_attrs *a, sl_shape x, sl_shape y)
{
	bool in_x = a->x_layout == SLP_LAYOUT_NC16, in_y = a->y_layout == SLP_LAYOUT_NC16;
	bool whole = !a->crop[0] && !a->crop[1] && slp_is_half(c->in[0].dtype);
	if (!in_x && !in_y) return SL_OK;
	if (!whole || (in_x && x.dim[1] % SLP_NC16_CHANNELS) || (in_y && y.dim[1] % SLP_NC16_CHANNELS))
		return slp_reject(c, SL_EINVAL,
		                  "the layout nc16 has blocks of %d channels of whole images in a half type",
		                  SLP_NC16_CHANNELS);
	return SL_OK;
}

static enum sl_status check_nhwc(const struct slp_infer *c, const struct slp_conv2d_attrs *a)
{
	if (slp_layout_among(SLP_LAYOUT_NHWC, a->x_layout, a->y_layout) && (a->crop[0] || a->crop[1]))
		return slp_reject(c, SL_EINVAL, "images in the layout nhwc are not cropped");
	return SL_OK;
}

/* The shape of y from the shapes of x and w, or an error. */
static enum sl_status forward_shape(const struct slp_infer *c, const struct slp_conv2d_attrs *a, sl_shape x, sl_shape w,
                                    sl_shape *y)
{
	const struct sl_conv2d_opts *o = &a->conv;
	if (x.dim[1] != w.dim[1] * o->groups)
		return slp_reject(c, SL_ESHAPE, "x has %lld channels, and w takes %lld in %d groups",
		                  (long long)x.dim[1], (long long)(w.dim[1] * o->groups), o->groups);
	if (w.dim[0] % o->groups)
		return slp_reject(c, SL_ESHAPE, "%lld output channels cannot be dealt to %d groups",
		                  (long long)w.dim[0], o->groups);
	*y = SL_SHAPE(x.dim[0], w.dim[0], 0, 0);
	for (int i = 0; i < 2; i++) {
		int64_t image = x.dim[2 + i] + 2 * (int64_t)o->pad[i];
		int64_t window = (w.dim[2 + i] - 1) * o->dilation[i] + 1;
		if (w.dim[2 + i] < 1 || window > image)
			return slp_reject(c, SL_ESHAPE, "%s of the kernel is %lld, of the padded image %lld",
			                  i ? "width" : "height", (long long)window, (long long)image);
		y->dim[2 + i] = (image - window) / o->stride[i] + 1 - a->crop[i];
		if (y->dim[2 + i] < 1) return slp_reject(c, SL_ESHAPE, "nothing is left of the cropped result");
		if (a->pool && y->dim[2 + i] % 2)
			return slp_reject(c, SL_ESHAPE, "a pooled result must be cropped to an even size");
		if (a->pool) y->dim[2 + i] /= 2;
	}
	enum sl_status s = check_layouts(c, a);
	if (s == SL_OK) s = check_nc16(c, a, x, *y);
	if (s == SL_OK) s = check_nhwc(c, a);
	return s == SL_OK ? check_n16(c, a, x) : s;
}

/* The shape of the mask of a pooled y. */
static struct slp_type mask_type(sl_shape y)
{
	return (struct slp_type){SL_UINT8, SL_SHAPE(y.dim[0] / 8, y.dim[1], 2 * y.dim[2], 2 * y.dim[3])};
}

static enum sl_status conv2d_infer(struct slp_infer *c)
{
	struct slp_conv2d_attrs *a = c->attrs;
	slp_conv_defaults(&a->conv);
	enum sl_status s = check_attrs(c, a);
	if (s == SL_OK) s = check_inputs(c, a, 1, c->nin);
	if (s != SL_OK) return s;
	sl_shape w = c->in[1].shape;
	if (c->nin == 3 && (c->in[2].shape.ndim != 1 || c->in[2].shape.dim[0] != w.dim[0]))
		return slp_reject(c, SL_ESHAPE, "bias must have shape (%lld), the output channels of w",
		                  (long long)w.dim[0]);
	if (a->pool && a->activation != SL_IDENTITY && a->activation != SL_RELU)
		return slp_reject(c, SL_EINVAL, "there is no activation but relu before a pooling");
	c->out[0].dtype = c->in[0].dtype;
	s = forward_shape(c, a, c->in[0].shape, w, &c->out[0].shape);
	if (s == SL_OK && a->pool) c->out[1] = mask_type(c->out[0].shape);
	return s;
}

/* Checks that dy has the shape that x and w give. */
static enum sl_status check_forward(const struct slp_infer *c, sl_shape x, sl_shape w, sl_shape dy)
{
	const struct slp_conv2d_attrs *a = c->attrs;
	sl_shape y;
	enum sl_status s = forward_shape(c, a, x, w, &y);
	if (s != SL_OK) return s;
	char text[128];
	if (!sl_shape_equal(y, dy))
		return slp_reject(c, SL_ESHAPE, "the gradient of y must have shape %s", sl_shape_string(y, text));
	struct slp_type mask = mask_type(y);
	if (a->pool && (c->in[2].dtype != mask.dtype || !sl_shape_equal(c->in[2].shape, mask.shape)))
		return slp_reject(c, SL_ESHAPE, "the mask must be uint8 of shape %s",
		                  sl_shape_string(mask.shape, text));
	return SL_OK;
}

static enum sl_status conv2d_grad_data_infer(struct slp_infer *c)
{
	struct slp_conv2d_attrs *a = c->attrs;
	slp_conv_defaults(&a->conv);
	enum sl_status s = check_attrs(c, a);
	if (s == SL_OK) s = check_inputs(c, a, 1, 2);
	if (s != SL_OK) return s;
	sl_shape dy = c->in[0].shape, w = c->in[1].shape;
	c->out[0].dtype = c->in[0].dtype;
	c->out[0].shape = SL_SHAPE(dy.dim[0], w.dim[1] * a->conv.groups, a->size[0], a->size[1]);
	return check_forward(c, c->out[0].shape, w, dy);
}

static enum sl_status conv2d_grad_weights_infer(struct slp_infer *c)
{
	struct slp_conv2d_attrs *a = c->attrs;
	slp_conv_defaults(&a->conv);
	enum sl_status s = check_attrs(c, a);
	if (s == SL_OK) s = check_inputs(c, a, 2, 2);
	if (s != SL_OK) return s;
	sl_shape x = c->in[0].shape, dy = c->in[1].shape;
	c->out[0].dtype = c->out[1].dtype = a->wide ? slp_promoted(c->in[0].dtype) : c->in[0].dtype;
	c->out[0].shape = SL_SHAPE(dy.dim[1], x.dim[1] / a->conv.groups, a->size[0], a->size[1]);
	c->out[1].shape = SL_SHAPE(a->bias ? dy.dim[1] : 0);
	return check_forward(c, x, c->out[0].shape, dy);
}

/* Two for each pair of an output position and a weight; elements_y outputs, and the weights of one of them. */
static double flops(sl_shape y, sl_shape w)
{
	return 2.0 * (double)sl_shape_size(y) * (double)w.dim[1] * (double)w.dim[2] * (double)w.dim[3];
}

/* A window pools four elements. */
static double scale(const struct slp_infer *c)
{
	return ((const struct slp_conv2d_attrs *)c->attrs)->pool ? 4 : 1;
}

static double conv2d_flops(const struct slp_infer *c)
{
	return scale(c) * flops(c->out[0].shape, c->in[1].shape);
}

static double conv2d_grad_data_flops(const struct slp_infer *c)
{
	return scale(c) * flops(c->in[0].shape, c->in[1].shape);
}

static double conv2d_grad_weights_flops(const struct slp_infer *c)
{
	return scale(c) * flops(c->in[1].shape, c->out[0].shape);
}

#if defined HAVE_CUDA || defined SLP_SIMULATION
static size_t workspace(const struct slp_infer *c)
{
	struct slp_view in[2] = {{NULL, c->in[0]}, {NULL, c->in[1]}}, out = {NULL, c->out[0]};
	struct slp_kernel k = {.op = c->op, .attrs = c->attrs, .nin = 2, .nout = 1, .in = in, .out = &out};
	struct slp_conv conv = slp_conv_of(&k);
	const struct slp_conv2d_attrs *a = c->attrs;
	size_t element = sl_dtype_size(c->in[0].dtype), staged = 0;
	for (int nhwc = 0; nhwc < 1 + slp_conv_is_nhwc(&k); nhwc++) {
		size_t bytes = slp_conv_stage_bytes(slp_conv_stage_of(a, &conv, element, nhwc));
		if (bytes > staged) staged = bytes;
	}
	return staged + slp_conv_workspace(&conv, element);
}
#endif

/* ---- gradients -------------------------------------------------------------------------------------------------- */

/* dx for an x of the given shape. */
static sl_tensor *grad_data(const char *at, const struct sl_conv2d_opts *o, sl_tensor *dy, sl_tensor *w, sl_shape x)
{
	struct slp_conv2d_attrs a = {.conv = *o, .size = {x.dim[2], x.dim[3]}};
	return slp_apply1(at, &slp_op_conv2d_grad_data, &a, 2, (sl_tensor *const[]){dy, w});
}

/* dw for a w of the given shape; db too if requested. */
static sl_tensor *grad_weights(const char *at, const struct sl_conv2d_opts *o, sl_tensor *x, sl_tensor *dy, sl_shape w,
                               sl_tensor **db)
{
	struct slp_conv2d_attrs a = {.conv = *o, .size = {w.dim[2], w.dim[3]}, .bias = db != NULL};
	sl_tensor *out[2] = {NULL};
	if (slp_apply(at, &slp_op_conv2d_grad_weights, &a, 2, (sl_tensor *const[]){x, dy}, (sl_device){0}, out) !=
	    SL_OK)
		return NULL;
	if (db) *db = out[1];
	return out[0];
}

static enum sl_status conv2d_grad(struct slp_grad *g)
{
	const struct slp_conv2d_attrs *a = g->attrs;
	const struct sl_conv2d_opts *o = &a->conv;
	bool bias = g->nin == 3 && g->need[2];
	if (a->activation != SL_IDENTITY) {
		slp_call_fail(g->at, "conv2d", SL_EUNSUPPORTED, "has no gradient with an activation in it");
		return SL_EUNSUPPORTED;
	}
	if (g->need[0]) g->din[0] = grad_data(g->at, o, g->dout[0], g->in[1], sl_tensor_shape(g->in[0]));
	if (g->need[1])
		g->din[1] = grad_weights(g->at, o, g->in[0], g->dout[0], sl_tensor_shape(g->in[1]),
		                         bias ? &g->din[2] : NULL);
	else if (bias)
		g->din[2] = sl_sum_at(g->at, g->dout[0],
		                      (struct sl_reduce_opts){.axes = (const int[]){0, 2, 3}, .naxes = 3});
	return SL_OK;
}

/* dx is linear in dy and w. */
static enum sl_status conv2d_grad_data_grad(struct slp_grad *g)
{
	const struct sl_conv2d_opts *o = &((const struct slp_conv2d_attrs *)g->attrs)->conv;
	sl_tensor *ddx = g->dout[0];
	if (g->need[0]) g->din[0] = sl_conv2d_at(g->at, ddx, g->in[1], NULL, *o);
	if (g->need[1]) g->din[1] = grad_weights(g->at, o, ddx, g->in[0], sl_tensor_shape(g->in[1]), NULL);
	return SL_OK;
}

static sl_tensor *zeros_like(const char *at, sl_tensor *t)
{
	return sl_zeros_at(at, sl_tensor_shape(t), (struct sl_make){sl_tensor_dtype(t), sl_tensor_device(t)});
}

/* dw is linear in x and dy, and db is the sum of dy. */
static enum sl_status conv2d_grad_weights_grad(struct slp_grad *g)
{
	const struct slp_conv2d_attrs *a = g->attrs;
	sl_tensor *ddw = g->dout[0], *ddb = a->bias ? g->dout[1] : NULL;
	sl_shape dy = sl_tensor_shape(g->in[1]);
	if (g->need[0])
		g->din[0] = ddw ? grad_data(g->at, &a->conv, g->in[1], ddw, sl_tensor_shape(g->in[0]))
		                : zeros_like(g->at, g->in[0]);
	if (g->need[1] && ddw) g->din[1] = sl_conv2d_at(g->at, g->in[0], ddw, ddb, a->conv);
	else if (g->need[1])
		g->din[1] = sl_broadcast_to_at(g->at, sl_reshape_at(g->at, ddb, SL_SHAPE(dy.dim[1], 1, 1)), dy);
	return SL_OK;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

/* The cross-correlation that neural networks call convolution: x (n, channels, height, width), w (units,
 * channels / groups, kernel height, kernel width), b (units) or NULL for none (after an unreported mistake NULL gives
 * NULL, as for all operations); y (n, units, h, w) with h = (height + 2 pad - dilation (kernel - 1) - 1) / stride + 1.
 * All float32 or all float64 (SL_EDTYPE).  .pad = {1} and .dilation = {2} apply to the height alone: write {1, 1} for
 * both; .stride = {2} applies to both.  SL_EINVAL: options out of range; SL_ESHAPE: sizes that do not match.
 *
 *	sl_tensor *y = sl_conv2d(x, w, b, .pad = {1, 1}, .stride = {2}); */
sl_tensor *sl_conv2d_at(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *b, struct sl_conv2d_opts opts)
{
	if (!SLP_OPTIONS(sl_conv2d_opts, at, "sl_conv2d", &opts)) return NULL;
	if (!b && sl_error() != SL_OK) return NULL;
	return slp_apply1(at, &slp_op_conv2d, &(struct slp_conv2d_attrs){.conv = opts}, b ? 3 : 2,
	                  (sl_tensor *const[]){x, w, b});
}

#define HALF_ROW SLP_CPU_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, slp_conv2d_bf16, slp_conv_onednn_half)
/* cuDNN's gradient of weights has the type of the images: float32 weights are computed in float32. */
#define WIDE_ROW(dtype, plain) SLP_ROW(SLP_DTYPE(dtype) | SLP_F32, NULL, slp_cuda_##plain)
#define GPU_ROWS_conv2d WIDE_ROW(SL_BFLOAT16, conv2d), WIDE_ROW(SL_FLOAT16, conv2d)
#define GPU_ROWS_conv2d_grad_data WIDE_ROW(SL_BFLOAT16, conv2d_grad_data), WIDE_ROW(SL_FLOAT16, conv2d_grad_data)
#define GPU_ROWS_conv2d_grad_weights SLP_HALF_ROWS(slp_cuda_conv2d_grad_weights)
#define CONVOLUTION(op_name, plain, text, inputs, least, most, results, attributes, ...)                               \
	const struct sl_op slp_op_##op_name = {.name = #op_name,                                                       \
	                                       .doc = text,                                                            \
	                                       .args = inputs,                                                         \
	                                       .nin_min = least,                                                       \
	                                       .nin_max = most,                                                        \
	                                       .nout = results,                                                        \
	                                       .attr_table = attributes,                                               \
	                                       .attrs_size = sizeof(struct slp_conv2d_attrs),                          \
	                                       .rows = SLP_ROWS(SLP_ROW(SLP_F32, slp_conv2d_cpu, slp_cuda_##plain),    \
	                                                        SLP_ROW(SLP_F64, slp_##plain##_ref, slp_cuda_##plain), \
	                                                        HALF_ROW, GPU_ROWS_##plain),                           \
	                                       .declines = true,                                                       \
	                                       .aligned = true,                                                        \
	                                       .infer = plain##_infer,                                                 \
	                                       .flops = plain##_flops,                                                 \
	                                       .scratch = SLP_CUDA_SCRATCH(workspace),                                 \
	                                       .ref = slp_##plain##_ref,                                               \
	                                       __VA_ARGS__};
#define GRADIENT(fn) .saves = SLP_IN(0) | SLP_IN(1), .grad = (fn)

CONVOLUTION(conv2d, conv2d, "convolution in two dimensions", "x w b", 2, 3, 1, plain_attrs, GRADIENT(conv2d_grad),
            .autocast = SLP_CAST_LOWER, .forget = SLP_CUDA_FORGET(slp_cudnn_forget))
CONVOLUTION(conv2d_grad_data, conv2d_grad_data, "gradient of a convolution with respect to its input", "dy w", 2, 2, 1,
            grad_plain_attrs, GRADIENT(conv2d_grad_data_grad))
CONVOLUTION(conv2d_grad_weights, conv2d_grad_weights, "gradients of a convolution with respect to its weight and bias",
            "x dy", 2, 2, 2, grad_plain_attrs, GRADIENT(conv2d_grad_weights_grad))

CONVOLUTION(conv2d_lowered, conv2d, "conv2d in the layouts and types that graph passes chose", "x w b", 2, 3, 1,
            lowered_attrs, )
CONVOLUTION(conv2d_grad_data_lowered, conv2d_grad_data, "conv2d_grad_data in the layouts and types that passes chose",
            "dy w", 2, 2, 1, grad_lowered_attrs, )
CONVOLUTION(conv2d_grad_weights_lowered, conv2d_grad_weights,
            "conv2d_grad_weights in the layouts and types that passes chose", "x dy", 2, 2, 2, grad_lowered_attrs, )

CONVOLUTION(conv2d_pool, conv2d, "convolution, then a pooling of 2 × 2 windows, and the mask for its gradient", "x w b",
            2, 3, 2, pool_attrs, )
CONVOLUTION(conv2d_grad_data_pool, conv2d_grad_data, "conv2d_grad_data of conv2d_pool", "dy w mask", 3, 3, 1,
            grad_pool_attrs, )
CONVOLUTION(conv2d_grad_weights_pool, conv2d_grad_weights, "conv2d_grad_weights of conv2d_pool", "x dy mask", 3, 3, 2,
            grad_pool_attrs, )
