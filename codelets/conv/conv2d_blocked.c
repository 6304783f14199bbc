/* conv2d_blocked, conv2d_blocked_add, conv2d_pack: convolution of images or volumes in blocks of channels, the same added
 * to another tensor, and its weights packed for the kernel. Graph passes make them (src/graph/pass/block.c). */
#include <limits.h>
#include <string.h>

#include "common/blocks.h"
#include "conv2d_kernels.h"
#include "op_list/conv.h"
#include "starling/primitives.h"

_Static_assert(sizeof(struct slp_conv2d_blocked_attrs) <= SLP_MAX_ATTRS, "calls keep attributes in so many bytes");

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_conv2d_blocked_attrs, conv.stride, SLP_INT, 2, "steps of the window down and across"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, conv.pad, SLP_INT, 2, "zeros around the image"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, conv.dilation, SLP_INT, 2, "steps between kernel elements"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, conv.groups, SLP_INT, 1, "independent groups of channels"),
        SLP_CONV_DEPTH_ATTRS(struct slp_conv2d_blocked_attrs),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, layers, SLP_INT, 1, "depth of x; 0: images"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, kernel, SLP_INT, 2, "height and width of the window"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, channels, SLP_INT, 2, "of x, of y"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, size, SLP_INT, 2, "height and width of x"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, images, SLP_INT, 1, "in x"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, block, SLP_INT, 1, "channels in a block"),
        SLP_ATTR(struct slp_conv2d_blocked_attrs, packed, SLP_INT, 1, "floats of the packed weights; 0: they are not"),
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
	struct slp_conv c = {.n = a->images,
	                     .ic = a->channels[0],
	                     .ih = a->size[0],
	                     .iw = a->size[1],
	                     .oc = a->channels[1],
	                     .kh = a->kernel[0],
	                     .kw = a->kernel[1]};
	slp_conv_set_result(&c, &a->conv);
	if (a->depth.kernel) slp_conv_set_depth(&c, &a->depth, a->layers);
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
	const struct slp_conv_depth *d = &a->depth;
	if (d->kernel < 0 || (d->kernel && (d->stride < 1 || d->dilation < 1 || d->pad < 0 || a->layers < 1)))
		return slp_reject(c, SL_EINVAL,
		                  "of depth, sizes, stride and dilation must be positive, pad not negative");
	if (a->block != 8 && a->block != 16)
		return slp_reject(c, SL_EINVAL, "blocks have 8 or 16 channels, not %d", a->block);
	if (o->groups < 1 || a->channels[0] % o->groups || a->channels[1] % o->groups)
		return slp_reject(c, SL_EINVAL, "channels cannot be dealt to %d groups", o->groups);
	return SL_OK;
}

static sl_shape plain_weights(const struct slp_conv2d_blocked_attrs *a)
{
	int64_t out = a->channels[1], in = a->channels[0] / a->conv.groups;
	return a->depth.kernel ? SL_SHAPE(out, in, a->depth.kernel, a->kernel[0], a->kernel[1])
	                       : SL_SHAPE(out, in, a->kernel[0], a->kernel[1]);
}

/* The same with all layers of a volume side by side, as blocks have them. */
static sl_shape plain_images(const struct slp_conv2d_blocked_attrs *a)
{
	return a->depth.kernel ? SL_SHAPE(a->images, a->channels[0], a->layers, a->size[0], a->size[1])
	                       : SL_SHAPE(a->images, a->channels[0], a->size[0], a->size[1]);
}

/* Checks x and the inputs after it: w, b. */
static enum sl_status check_inputs(const struct slp_infer *c, const struct slp_conv2d_blocked_attrs *a,
                                   const struct slp_type *in)
{
	sl_shape w = a->packed ? SL_SHAPE(a->packed) : plain_weights(a), x = plain_images(a);
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
	if (v.oh < 1 || v.ow < 1 || (v.kd && v.od < 1))
		return slp_reject(c, SL_ESHAPE, "the kernel is larger than the padded image");
	sl_shape y = slp_blocked_shape(SL_SHAPE(v.n, v.oc, v.kd ? v.od * v.oh : v.oh, v.ow), a->block);
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
	double deep = v.kd ? (double)(v.od * v.kd) : 1;
	return 2.0 * deep * (double)(v.n * v.oc * v.oh * v.ow) * (double)(v.ic / v.groups * v.kh * v.kw);
}

static double no_flops(const struct slp_infer *c)
{
	(void)c;
	return 0;
}

/* ---- reference: weights in the plain order ----------------------------------------------------------------------- */

/* The products of a window, the one at place `at` of the result, with the weights of channel o. */
static double window(const struct slp_kernel *k, const struct slp_view *in, const struct slp_conv *c, int64_t n,
                     int64_t o, int64_t at)
{
	const struct slp_conv2d_blocked_attrs *a = k->attrs;
	int64_t each = c->ic / c->groups, first = o / (c->oc / c->groups) * each;
	int64_t plane = (c->kd ? c->id : 1) * c->ih * c->iw, taps = slp_conv_taps(c);
	int64_t blocks = (c->ic + a->block - 1) / a->block;
	double sum = slp_get(&in[2], o);
	for (int64_t e = 0; e < each * taps; e++) {
		int64_t ch = first + e / taps, place = slp_conv_place(c, at, e % taps);
		if (place < 0) continue;
		int64_t i = a->x_plain ? (n * c->ic + ch) * plane + place
		                       : slp_block_index(blocks, plane, a->block, n, ch, place);
		sum += slp_get(&in[0], i) * slp_get(&in[1], o * each * taps + e);
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
	int64_t plane = (c.kd ? c.od : 1) * c.oh * c.ow, blocks = (c.oc + a->block - 1) / a->block;
	if (a->packed) return slp_kernel_fail(k, SL_EUNSUPPORTED, "the plain kernel takes no packed weights");
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		int64_t lane = i % a->block, at = i / a->block % plane, block = i / a->block / plane;
		int64_t o = block % blocks * a->block + lane;
		double v = o < c.oc ? window(k, k->in + add, &c, block / blocks, o, at) : 0;
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
	size_t floats = (slp_conv_onednn_packed(&args, threads) + sizeof(float) - 1) / sizeof(float);
	a->packed = floats <= INT_MAX ? (int)floats : 0;
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
