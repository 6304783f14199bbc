/* conv2d_blocked, conv2d_blocked_add, conv2d_pack: convolution of images in blocks of channels, the same added to
 * another tensor, and its weights packed for the kernel. Graph passes make them (src/graph/pass/block.c). */
#include <string.h>

#include "common/blocks.h"
#include "conv2d_kernels.h"
#include "op_list/conv.h"
#include "starling/primitives.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_conv2d_blocked_attrs, conv.stride, SLP_INT, 2, "steps of the window down and across"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, conv.pad, SLP_INT, 2, "zeros around the image"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, conv.dilation, SLP_INT, 2, "steps between kernel elements"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, conv.groups, SLP_INT, 1, "independent groups of channels"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, kernel, SLP_INT, 2, "height and width of the window"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, channels, SLP_INT, 2, "of x, of y"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, size, SLP_INT, 2, "height and width of x"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, images, SLP_INT, 1, "in x"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, block, SLP_INT, 1, "channels in a block"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, packed, SLP_INT64, 1,
                 "floats of the packed weights; 0: they are not"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, x_plain, SLP_BOOL, 1, "x is in the plain order"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, winograd, SLP_BOOL, 1, "by Winograd's algorithm"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, relu, SLP_BOOL, 1, "relu of the sum"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, bounded, SLP_BOOL, 1, "the sum is kept between bounds"),
        SLP_ATTR_VALUE(struct slp_conv2d_blocked_attrs, low, SLP_DOUBLE, 1, "the lower one"),
        SLP_ATTR_VALUE(struct slp_conv2d_blocked_attrs, high, SLP_DOUBLE, 1, "the upper one"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Sizes of the convolution and of y. */
static struct slp_conv conv_of(const struct slp_conv2d_blocked_attrs *a)
{
	const struct sl_conv2d_opts *o = &a->conv;
	struct slp_conv c = {.n = a->images,
	                     .ic = a->channels[0],
	                     .ih = a->size[0],
	                     .iw = a->size[1],
	                     .oc = a->channels[1],
	                     .kh = a->kernel[0],
	                     .kw = a->kernel[1],
	                     .groups = o->groups,
	                     .sh = o->stride[0],
	                     .sw = o->stride[1],
	                     .ph = o->pad[0],
	                     .pw = o->pad[1],
	                     .dh = o->dilation[0],
	                     .dw = o->dilation[1]};
	c.oh = (c.ih + 2 * c.ph - (c.kh - 1) * c.dh - 1) / c.sh + 1;
	c.ow = (c.iw + 2 * c.pw - (c.kw - 1) * c.dw - 1) / c.sw + 1;
	return c;
}

static enum sl_status check_attrs(const struct slp_infer *c, const struct slp_conv2d_blocked_attrs *a)
{
	const struct sl_conv2d_opts *o = &a->conv;
	for (int i = 0; i < c->nin; i++)
		if (c->in[i].dtype != SL_FLOAT32) return slp_reject(c, SL_EDTYPE, "inputs must be float32");
	for (int i = 0; i < 2; i++)
		if (o->stride[i] < 1 || o->dilation[i] < 1 || o->pad[i] < 0 || a->kernel[i] < 1 || a->channels[i] < 1)
			return slp_reject(c, SL_EINVAL,
			                  "sizes, stride and dilation must be positive, pad not negative");
	if (a->block != 8 && a->block != 16)
		return slp_reject(c, SL_EINVAL, "blocks have 8 or 16 channels, not %d", a->block);
	if (o->groups < 1 || a->channels[0] % o->groups || a->channels[1] % o->groups)
		return slp_reject(c, SL_EINVAL, "channels cannot be dealt to %d groups", o->groups);
	return SL_OK;
}

static sl_shape plain_weights(const struct slp_conv2d_blocked_attrs *a)
{
	return SL_SHAPE(a->channels[1], a->channels[0] / a->conv.groups, a->kernel[0], a->kernel[1]);
}

/* Checks x and the inputs after it: w, b. */
static enum sl_status check_inputs(const struct slp_infer *c, const struct slp_conv2d_blocked_attrs *a,
                                   const struct slp_type *in)
{
	sl_shape w = a->packed ? SL_SHAPE(a->packed) : plain_weights(a),
	         x = SL_SHAPE(a->images, a->channels[0], a->size[0], a->size[1]);
	char text[128];
	if (!a->x_plain) x = slp_blocked_shape(x, a->block);
	if (!sl_shape_equal(in[0].shape, x))
		return slp_reject(c, SL_ESHAPE, "x must have shape %s", sl_shape_string(x, text));
	if (!sl_shape_equal(in[1].shape, w))
		return slp_reject(c, SL_ESHAPE, "w must have shape %s", sl_shape_string(w, text));
	if (!sl_shape_equal(in[2].shape, SL_SHAPE(a->channels[1])))
		return slp_reject(c, SL_ESHAPE, "b must have an element for each of %d channels", a->channels[1]);
	return SL_OK;
}

static enum sl_status blocked_infer(struct slp_infer *c)
{
	const struct slp_conv2d_blocked_attrs *a = c->attrs;
	bool add = c->op == &slp_op_conv2d_blocked_add;
	enum sl_status s = check_attrs(c, a);
	if (s == SL_OK) s = check_inputs(c, a, c->in + add);
	if (s != SL_OK) return s;
	struct slp_conv v = conv_of(a);
	if (v.oh < 1 || v.ow < 1) return slp_reject(c, SL_ESHAPE, "the kernel is larger than the padded image");
	sl_shape y = slp_blocked_shape(SL_SHAPE(v.n, v.oc, v.oh, v.ow), a->block);
	if (add && !sl_shape_equal(c->in[0].shape, y))
		return slp_reject(c, SL_ESHAPE, "the tensor that it is added to differs in shape");
	c->out[0] = (struct slp_type){SL_FLOAT32, y};
	return SL_OK;
}

static enum sl_status pack_infer(struct slp_infer *c)
{
	const struct slp_conv2d_blocked_attrs *a = c->attrs;
	enum sl_status s = check_attrs(c, a);
	if (s != SL_OK) return s;
	if (a->packed < 1) return slp_reject(c, SL_EINVAL, "needs the size of the packed weights");
	if (!sl_shape_equal(c->in[0].shape, plain_weights(a)))
		return slp_reject(c, SL_ESHAPE, "w does not have the given sizes");
	c->out[0] = (struct slp_type){SL_FLOAT32, SL_SHAPE(a->packed)};
	return SL_OK;
}

static double blocked_flops(const struct slp_infer *c)
{
	struct slp_conv v = conv_of(c->attrs);
	return 2.0 * (double)(v.n * v.oc * v.oh * v.ow) * (double)(v.ic / v.groups * v.kh * v.kw);
}

static double no_flops(const struct slp_infer *c)
{
	(void)c;
	return 0;
}

/* ---- reference: weights in the plain order ----------------------------------------------------------------------- */

/* The products of a window with the weights of channel o. */
static double window(const struct slp_kernel *k, const struct slp_view *in, const struct slp_conv *c, int64_t n,
                     int64_t o, int64_t i, int64_t j)
{
	const struct slp_conv2d_blocked_attrs *a = k->attrs;
	int64_t each = c->ic / c->groups, first = o / (c->oc / c->groups) * each, plane = c->ih * c->iw;
	int64_t blocks = (c->ic + a->block - 1) / a->block;
	double sum = slp_get(&in[2], o);
	for (int64_t e = 0; e < each * c->kh * c->kw; e++) {
		int64_t ch = first + e / (c->kh * c->kw);
		int64_t h = i * c->sh - c->ph + e / c->kw % c->kh * c->dh, w = j * c->sw - c->pw + e % c->kw * c->dw;
		if (h < 0 || h >= c->ih || w < 0 || w >= c->iw) continue;
		int64_t at = a->x_plain ? (n * c->ic + ch) * plane + h * c->iw + w
		                        : slp_block_index(blocks, plane, a->block, n, ch, h * c->iw + w);
		sum += slp_get(&in[0], at) * slp_get(&in[1], o * each * c->kh * c->kw + e);
	}
	return sum;
}

static double finish(const struct slp_conv2d_blocked_attrs *a, double v)
{
	if (a->relu && v < 0) return 0;
	if (a->bounded) return v < a->low ? a->low : v > a->high ? a->high : v;
	return v;
}

static enum sl_status blocked_ref(const struct slp_kernel *k)
{
	const struct slp_conv2d_blocked_attrs *a = k->attrs;
	bool add = k->op == &slp_op_conv2d_blocked_add;
	struct slp_conv c = conv_of(a);
	int64_t plane = c.oh * c.ow, blocks = (c.oc + a->block - 1) / a->block;
	if (a->packed) return slp_kernel_fail(k, SL_EUNSUPPORTED, "the plain kernel takes no packed weights");
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		int64_t lane = i % a->block, at = i / a->block % plane, block = i / a->block / plane;
		int64_t o = block % blocks * a->block + lane;
		double v = o < c.oc ? window(k, k->in + add, &c, block / blocks, o, at / c.ow, at % c.ow) : 0;
		if (o < c.oc && add) v += slp_get(&k->in[0], i);
		slp_set(&k->out[0], i, o < c.oc ? finish(a, v) : 0);
	}
	return SL_OK;
}

/* ---- CPU --------------------------------------------------------------------------------------------------------- */

static struct slp_conv_args args_of(const struct slp_conv2d_blocked_attrs *a, bool add)
{
	return (struct slp_conv_args){.c = conv_of(a), .pass = SLP_CONV_FORWARD, .blocked = a, .sum = add};
}

struct copy {
	const float *from;
	float *to;
};

static void copy_range(void *arg, int64_t begin, int64_t end)
{
	const struct copy *c = arg;
	memcpy(c->to + begin, c->from + begin, (size_t)(end - begin) * sizeof *c->to);
}

static enum sl_status blocked_cpu(const struct slp_kernel *k)
{
	bool add = k->op == &slp_op_conv2d_blocked_add;
	const struct slp_view *in = k->in + add;
	struct slp_conv_args a = args_of(k->attrs, add);
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	if (add && k->in[0].ptr != k->out[0].ptr) {
		struct copy c = {k->in[0].ptr, k->out[0].ptr};
		slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, copy_range, &c);
	}
	a.x = in[0].ptr;
	a.w = in[1].ptr;
	a.b = in[2].ptr;
	a.y = k->out[0].ptr;
	enum sl_status s = slp_conv_onednn(k, &a);
	return s == SL_EUNSUPPORTED ? blocked_ref(k) : s;
}

/* Without a library no weights are packed. */
static enum sl_status pack_ref(const struct slp_kernel *k)
{
	int64_t size = slp_size(&k->in[0]);
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) slp_set(&k->out[0], i, i < size ? slp_get(&k->in[0], i) : 0);
	return SL_OK;
}

/* With a bias, which all calls have here: the kernel must be the same. */
static enum sl_status pack_cpu(const struct slp_kernel *k)
{
	const struct slp_conv2d_blocked_attrs *attrs = k->attrs;
	struct slp_conv_args a = args_of(attrs, false);
	a.w = k->in[0].ptr;
	a.b = k->out[0].ptr; /* not read */
	enum sl_status s = slp_conv_onednn_pack(k, &a, k->out[0].ptr, (size_t)attrs->packed * sizeof(float));
	return s == SL_EUNSUPPORTED ? pack_ref(k) : s;
}

bool slp_conv_blocked_plan(struct slp_conv2d_blocked_attrs *a, int threads)
{
	float some;
	struct slp_conv_args args = args_of(a, false);
	args.b = &some;
	a->packed = (int64_t)((slp_conv_onednn_packed(&args, threads) + sizeof(float) - 1) / sizeof(float));
	return a->packed > 0;
}

#define CONVOLUTION(op_name, text, inputs, count, rule, work, lies, plain, fast)                                       \
	const struct sl_op slp_op_##op_name = {                                                                        \
	        .name = #op_name,                                                                                      \
	        .doc = text,                                                                                           \
	        .args = inputs,                                                                                        \
	        SLP_NIN(count),                                                                                        \
	        .nout = 1,                                                                                             \
	        .attr_table = attr_table,                                                                              \
	        .attrs_size = sizeof(struct slp_conv2d_blocked_attrs),                                                 \
	        .inplace = lies,                                                                                       \
	        .rows = SLP_CPU_ROWS(plain, fast),                                                                     \
	        .infer = rule,                                                                                         \
	        .flops = work,                                                                                         \
	        .ref = plain,                                                                                          \
	}
CONVOLUTION(conv2d_blocked, "convolution of images in blocks of channels", "x w b", 3, blocked_infer, blocked_flops,
            false, blocked_ref, blocked_cpu);
CONVOLUTION(conv2d_blocked_add, "another tensor and the convolution of images in blocks of channels", "to x w b", 4,
            blocked_infer, blocked_flops, true, blocked_ref, blocked_cpu);
CONVOLUTION(conv2d_pack, "weights packed for conv2d_blocked", "w", 1, pack_infer, no_flops, false, pack_ref, pack_cpu);
