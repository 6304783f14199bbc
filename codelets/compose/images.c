/* Layers of images and sequences, computed by other operations. */
#include "compose.h"
#include "conv/conv2d_kernels.h"
#include "op_list/conv.h"
#include "options.h"
#include "starling/autograd.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* (a, b, n) as (a, b, 1, n). */
static sl_tensor *flat_image(const char *at, const char *me, const char *name, sl_tensor *t)
{
	if (!slp_shape_given(at, me, name, t)) return NULL;
	sl_shape s = sl_tensor_shape(t);
	if (s.ndim != 3) return slp_call_fail(at, me, SL_ESHAPE, "%s has %d axes, 3 needed", name, s.ndim);
	return sl_reshape_at(at, t, SL_SHAPE(s.dim[0], s.dim[1], 1, s.dim[2]));
}

/* A convolution along sequences: x (n, channels, length), w (outputs, channels / groups, kernel); b (outputs), or NULL
 * for none.  As torch.nn.functional.conv1d.  Errors: see sl_conv2d. */
sl_tensor *sl_conv1d_at(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *b, struct sl_conv1d_opts opts)
{
	const char *me = "sl_conv1d";
	SLP_FUNCTION(me, at);
	if (!SLP_OPTIONS(sl_conv1d_opts, at, "sl_conv1d", &opts)) return NULL;
	sl_tensor *image = flat_image(at, me, "x", x), *kernel = flat_image(at, me, "w", w);
	struct sl_conv2d_opts o = {.stride = {1, opts.stride},
	                           .pad = {0, opts.pad},
	                           .dilation = {1, opts.dilation},
	                           .groups = opts.groups};
	sl_tensor *y = sl_conv2d_at(at, image, kernel, b, o);
	if (!y || !slp_shape_given(at, me, "y", y)) return NULL;
	sl_shape s = sl_tensor_shape(y);
	return SLP_RETURN(sl_reshape_at(at, y, SL_SHAPE(s.dim[0], s.dim[1], s.dim[3])));
}

/* The part of images, without their border, that begins `pad` behind the first row of each axis and has `size` rows;
 * beyond the images are zeros. */
static sl_tensor *cut_out(const char *at, sl_tensor *y, const int *pad, const int *size)
{
	for (int i = 0; i < 2 && y; i++) {
		int64_t rows = sl_tensor_shape(y).dim[2 + i], end = pad[i] + size[i], last = end < rows ? end : rows;
		y = sl_slice_at(at, y, 2 + i, pad[i], last, 1);
		if (y && end > last) y = sl_pad_at(at, y, 2 + i, 0, end - last, (struct sl_pad_opts){0});
	}
	return y;
}

/* The gradient, with respect to the images, of a convolution with these attributes, whose padding at the end may differ
 * from that at the beginning: images may have more rows than the windows reach. */
static sl_tensor *images_before(const char *at, sl_tensor *x, sl_tensor *w, struct slp_conv2d_attrs g, const int *more)
{
	struct sl_conv2d_opts *o = &g.conv;
	sl_tensor *const in[] = {x, w};
	int pad[2] = {o->pad[0], o->pad[1]}, size[2] = {g.size[0], g.size[1]};
	if (more[0] < o->stride[0] && more[1] < o->stride[1])
		return slp_apply1(at, &slp_op_conv2d_grad_data, &g, 2, in);
	for (int i = 0; i < 2; i++) {
		g.size[i] += 2 * pad[i] - more[i];
		o->pad[i] = 0;
	}
	return cut_out(at, slp_apply1(at, &slp_op_conv2d_grad_data, &g, 2, in), pad, size);
}

/* The transposed convolution (the backward pass of sl_conv2d) of images x (n, channels, height, width) with the weight
 * w (channels, outputs / groups, kernel height, width), plus b (outputs), or NULL for none: the images grow by the
 * factor of the stride.  As torch.nn.functional.conv_transpose2d.  SL_EINVAL: an output_pad that is less than neither
 * the stride nor the dilation; other errors: see sl_conv2d. */
sl_tensor *sl_conv_transpose2d_at(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *b,
                                  struct sl_conv_transpose2d_opts opts)
{
	const char *me = "sl_conv_transpose2d";
	SLP_FUNCTION(me, at);
	if (!SLP_OPTIONS(sl_conv_transpose2d_opts, at, "sl_conv_transpose2d", &opts)) return NULL;
	if (!slp_shape_given(at, me, "x", x) || !slp_shape_given(at, me, "w", w)) return NULL;
	x = slp_lowered(at, x), w = slp_lowered(at, w), b = slp_lowered(at, b);
	if (!x || !w) return NULL;
	sl_shape in = sl_tensor_shape(x), k = sl_tensor_shape(w);
	if (in.ndim != 4 || k.ndim != 4)
		return slp_call_fail(at, me, SL_ESHAPE, "x has %d axes and w has %d, 4 needed", in.ndim, k.ndim);
	struct slp_conv2d_attrs g = {.conv = {.groups = opts.groups}};
	memcpy(g.conv.stride, opts.stride, sizeof opts.stride);
	memcpy(g.conv.pad, opts.pad, sizeof opts.pad);
	memcpy(g.conv.dilation, opts.dilation, sizeof opts.dilation);
	slp_conv_defaults(&g.conv);
	const struct sl_conv2d_opts *o = &g.conv;
	for (int i = 0; i < 2; i++)
		if (o->stride[i] < 1 || o->dilation[i] < 1 || o->pad[i] < 0)
			return slp_call_fail(at, me, SL_EINVAL,
			                     ".stride and .dilation must be positive, .pad not negative");
	for (int i = 0; i < 2; i++)
		if (opts.output_pad[i] < 0 ||
		    (opts.output_pad[i] >= o->stride[i] && opts.output_pad[i] >= o->dilation[i]))
			return slp_call_fail(at, me, SL_EINVAL,
			                     ".output_pad %d must be less than stride %d or dilation %d",
			                     opts.output_pad[i], o->stride[i], o->dilation[i]);
	for (int i = 0; i < 2; i++)
		g.size[i] = (in.dim[2 + i] - 1) * o->stride[i] - 2 * o->pad[i] + o->dilation[i] * (k.dim[2 + i] - 1) +
		            1 + opts.output_pad[i];
	if (in.dim[2] && in.dim[3] && (g.size[0] < 1 || g.size[1] < 1))
		return slp_call_fail(at, me, SL_ESHAPE, "the result would have %lld rows and %lld columns",
		                     (long long)g.size[0], (long long)g.size[1]);
	if (!slp_shape_fits(at, me, "b", b, SL_SHAPE(k.dim[1] * o->groups))) return NULL;
	sl_tensor *y = images_before(at, x, w, g, opts.output_pad);
	return SLP_RETURN(y && b ? sl_add_at(at, y, sl_reshape_at(at, b, SL_SHAPE(-1, 1, 1))) : y);
}

/* Whether x are images, and the requested size is valid. */
static bool images_given(const char *at, const char *me, sl_tensor *x, int64_t height, int64_t width)
{
	if (!slp_shape_given(at, me, "x", x)) return false;
	sl_shape s = sl_tensor_shape(x);
	if (s.ndim != 4 || s.dim[2] < 1 || s.dim[3] < 1)
		slp_call_fail(at, me, SL_ESHAPE, "x must be images (n, channels, height, width)");
	else if (height < 1 || width < 1)
		slp_call_fail(at, me, SL_EINVAL, "a size of %lld by %lld", (long long)height, (long long)width);
	else return true;
	return false;
}

/* The weights of the `from` old pixels in each of the `to` new ones, (to, from): a tent around the position that it
 * comes from, or 1 for the nearest. */
static sl_tensor *shares(const char *at, sl_tensor *x, int64_t from, int64_t to, struct sl_resize2d_opts o)
{
	struct sl_make make = {sl_tensor_dtype(x), sl_tensor_device(x)};
	sl_tensor *old = sl_arange_at(at, 0, (double)from, 1, make);
	sl_tensor *place = sl_reshape_at(at, sl_arange_at(at, 0, (double)to, 1, make), SL_SHAPE(to, 1));
	if (!o.bilinear) {
		place = sl_div_scalar_at(at, sl_mul_scalar_at(at, place, (double)from), (double)to);
		return sl_eq_at(at, sl_floor_at(at, place), old);
	}
	if (o.align_corners) {
		place = sl_mul_scalar_at(at, place, to > 1 ? (double)(from - 1) / (double)(to - 1) : 0);
	} else {
		place = sl_mul_scalar_at(at, sl_add_scalar_at(at, place, 0.5), (double)from / (double)to);
		place = sl_clip_at(at, sl_sub_scalar_at(at, place, 0.5), 0, (double)(from - 1));
	}
	return sl_relu_at(at, sl_rsub_scalar_at(at, sl_abs_at(at, sl_sub_at(at, place, old)), 1));
}

/* Images x (n, channels, height, width), floats, in another size: each pixel is the nearest old one (at floor(i old /
 * new)), or with .bilinear interpolated between four.  As torch.nn.functional.interpolate, for finite pixels: others
 * become NaN in their rows and columns.  SL_ESHAPE: x does not have 4 axes; SL_EINVAL: a size that is not positive. */
sl_tensor *sl_resize2d_at(const char *at, sl_tensor *x, int64_t height, int64_t width, struct sl_resize2d_opts opts)
{
	const char *me = "sl_resize2d";
	SLP_FUNCTION(me, at);
	if (!images_given(at, me, x, height, width)) return NULL;
	sl_shape s = sl_tensor_shape(x);
	if (opts.align_corners && !opts.bilinear)
		return slp_call_fail(at, me, SL_EINVAL, ".align_corners is for .bilinear");
	if (!opts.bilinear && height % s.dim[2] == 0 && width % s.dim[3] == 0)
		return SLP_RETURN(sl_repeat_at(at, sl_repeat_at(at, x, 2, height / s.dim[2]), 3, width / s.dim[3]));
	sl_tensor *y = NULL;
	SL_AUTOCAST(SL_FLOAT32) /* resizing is exact in float32: TF32 is off */
	{
		sl_tensor *wide = slp_widened(at, x);
		sl_tensor *rows =
		        sl_matmul_at(at, shares(at, wide, s.dim[2], height, opts), wide, (struct sl_dot_opts){0});
		sl_tensor *columns = shares(at, wide, s.dim[3], width, opts);
		y = sl_linear_at(at, rows, columns, NULL, (struct sl_linear_opts){.tw = true});
		y = slp_narrowed(at, y, x);
	}
	return SLP_RETURN(y);
}

/* `to` windows that cover an axis evenly, each reduced to one. */
static sl_tensor *pooled(const char *at, sl_tensor *x, int axis, int64_t to, enum sl_pool_type type)
{
	enum { MOST = 512 };
	sl_tensor *list[MOST];
	int64_t n = sl_tensor_shape(x).dim[axis];
	struct sl_reduce_opts over = {&axis, 1, true};
	if (to > MOST) return slp_call_fail(at, "sl_adaptive_pool2d", SL_EUNSUPPORTED, "more than %d windows", MOST);
	for (int64_t i = 0; i < to; i++) {
		sl_tensor *window = sl_slice_at(at, x, axis, i * n / to, ((i + 1) * n + to - 1) / to, 1);
		list[i] = type == SL_POOL_MAX ? sl_max_at(at, window, over) : sl_mean_at(at, window, over);
	}
	return sl_concat_at(at, list, (int)to, axis);
}

/* Images x (n, channels, height, width) in a smaller size: pixel i is the maximum, or the mean, of pixels floor(i old /
 * new) to ceil((i + 1) old / new), exclusive.  As torch.nn.functional.adaptive_max_pool2d and adaptive_avg_pool2d.
 * SL_ESHAPE: x does not have 4 axes; SL_EINVAL: a size that is not positive. */
sl_tensor *sl_adaptive_pool2d_at(const char *at, sl_tensor *x, enum sl_pool_type type, int64_t height, int64_t width)
{
	const char *me = "sl_adaptive_pool2d";
	SLP_FUNCTION(me, at);
	if (!images_given(at, me, x, height, width)) return NULL;
	sl_shape s = sl_tensor_shape(x);
	if (s.dim[2] % height == 0 && s.dim[3] % width == 0)
		return SLP_RETURN(sl_pool2d_at(
		        at, x,
		        (struct sl_pool2d_opts){.type = type,
		                                .kernel = {(int)(s.dim[2] / height), (int)(s.dim[3] / width)}}));
	x = pooled(at, x, 2, height, type);
	return SLP_RETURN(x ? pooled(at, x, 3, width, type) : NULL);
}
