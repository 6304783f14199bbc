/* ONNX operators, computed: padding, resizing of images, space to depth. */
#include <math.h>
#include <stdlib.h>

#include "onnx/model/call.h"
#include "alloc.h"
#include "starling/functions.h"

/* ---- borders ----------------------------------------------------------------------------------------------------- */

static sl_tensor *part(struct slp_onnx_call *c, sl_tensor *x, int axis, int64_t begin, int64_t end)
{
	return sl_slice_at(c->at, x, axis, begin, end, 1);
}

/* The first and last elements again, or with `wrap` those of the other end. */
static sl_tensor *repeated(struct slp_onnx_call *c, sl_tensor *x, int axis, int64_t before, int64_t after, bool wrap)
{
	int64_t n = sl_tensor_shape(x).dim[axis];
	sl_tensor *list[3];
	int count = 0;
	if (n < 1 || (wrap && (before > n || after > n))) {
		slp_onnx_call_fail(c, SL_ESHAPE, "%lld and %lld elements beside %lld", (long long)before,
		                   (long long)after, (long long)n);
		return NULL;
	}
	if (before)
		list[count++] = wrap ? part(c, x, axis, n - before, n)
		                     : sl_repeat_at(c->at, part(c, x, axis, 0, 1), axis, before);
	list[count++] = x;
	if (after)
		list[count++] = wrap ? part(c, x, axis, 0, after)
		                     : sl_repeat_at(c->at, part(c, x, axis, n - 1, n), axis, after);
	return sl_concat_at(c->at, list, count, axis);
}

/* One axis; negative numbers cut elements off. */
static sl_tensor *pad_axis(struct slp_onnx_call *c, sl_tensor *x, int axis, int64_t before, int64_t after,
                           const char *mode, double value)
{
	int64_t n = sl_tensor_shape(x).dim[axis];
	bool there = before >= -n && after >= -n && before <= INT32_MAX && after <= INT32_MAX;
	int64_t cut_front = there && before < 0 ? -before : 0, cut_back = there && after < 0 ? -after : 0;
	if (!there || cut_back > n - cut_front) {
		slp_onnx_call_fail(c, SL_ESHAPE, "%lld before and %lld after %lld elements", (long long)before,
		                   (long long)after, (long long)n);
		return NULL;
	}
	if (cut_front || cut_back) x = part(c, x, axis, cut_front, n - cut_back);
	if (before < 0) before = 0;
	if (after < 0) after = 0;
	if (!x || (!before && !after)) return x;
	if (!strcmp(mode, "edge") || !strcmp(mode, "wrap")) return repeated(c, x, axis, before, after, mode[0] == 'w');
	return sl_pad_at(c->at, x, axis, before, after,
	                 (struct sl_pad_opts){.value = mode[0] == 'r' ? 0 : value, .reflect = mode[0] == 'r'});
}

/* Pads have a double for a value; a larger integer is subtracted before, and added behind. */
static bool is_too_large(struct slp_onnx_call *c)
{
	return slp_onnx_has(c, 2) && slp_onnx_dtype(&c->in[0]) == SL_INT64 && c->in[2].known &&
	       sl_shape_size(c->in[2].known->shape) == 1 && !slp_onnx_known_is_double(c->in[2].known);
}

void slp_onnx_import_pad(struct slp_onnx_call *c)
{
	int64_t pads[2 * SL_MAX_NDIM], list[SL_MAX_NDIM];
	char text[64];
	const char *mode = slp_onnx_attr_text(c, "mode", "constant", text);
	sl_shape x = slp_onnx_shape(c, 0);
	int n = slp_onnx_ints_in(c, 1, "pads", pads, 2 * SL_MAX_NDIM),
	    axes = slp_onnx_ints_in(c, 3, NULL, list, SL_MAX_NDIM);
	double value = slp_onnx_number_in(c, 2, "value", 0);
	if (axes < 0) axes = x.ndim;
	if (!c->failed && n != 2 * axes) slp_onnx_call_fail(c, SL_EFORMAT, "has %d pads for %d axes", n, axes);
	if (strcmp(mode, "constant") && strcmp(mode, "reflect") && strcmp(mode, "edge") && strcmp(mode, "wrap"))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "mode \"%s\" is not supported", mode);
	if (c->failed) return;
	bool large = is_too_large(c);
	sl_tensor *t = slp_onnx_as_tensor(c, large ? slp_onnx_binary(c, "Sub", c->in[0], c->in[2]) : c->in[0]);
	for (int i = 0; i < axes && t && !c->failed; i++) {
		int axis = slp_onnx_has(c, 3) ? slp_onnx_axis(c, list[i], x.ndim) : i;
		if (!c->failed) t = pad_axis(c, t, axis, pads[i], pads[axes + i], mode, large ? 0 : value);
	}
	struct slp_onnx_value y = {.t = t};
	if (large && t) y = slp_onnx_binary(c, "Add", y, c->in[2]);
	slp_onnx_set_output_value(c, 0, y);
}

/* ---- other sizes ------------------------------------------------------------------------------------------------- */

/* How an axis is stretched: `from` elements become `to`, by this factor. */
struct stretch {
	int64_t from, to;
	double scale, cubic;
	char coordinates[64], nearest[64];
	bool is_cubic, antialias, exclude_outside;
	bool cropped; /* to a part, from begin to end of 1; elements outside of the image are this number */
	double begin, end, outside;
};

/* Where element i comes from. */
static double origin(const struct stretch *s, int64_t i)
{
	double x = (double)i, from = (double)s->from, to = (double)s->to;
	if (!strcmp(s->coordinates, "asymmetric")) return x / s->scale;
	if (!strcmp(s->coordinates, "align_corners")) return s->to > 1 ? x * (from - 1) / (s->scale * from - 1) : 0;
	if (s->cropped && s->to == 1) return (s->begin + s->end) / 2 * (from - 1);
	if (s->cropped) return (s->begin + x * (s->end - s->begin) / (double)(s->to - 1)) * (from - 1);
	if (!strcmp(s->coordinates, "pytorch_half_pixel") && s->to <= 1) return 0;
	if (!strcmp(s->coordinates, "half_pixel_symmetric")) {
		double adjust = to / (s->scale * from), center = from / 2;
		return center * (1 - adjust) + (x + 0.5) / s->scale - 0.5;
	}
	return (x + 0.5) / s->scale - 0.5;
}

static int64_t limited(double v, int64_t n)
{
	return v < 0 ? 0 : v > (double)(n - 1) ? n - 1 : (int64_t)v;
}

static int64_t nearest(const struct stretch *s, int64_t i)
{
	double x = origin(s, i);
	if (!strcmp(s->nearest, "floor")) return limited(floor(x), s->from);
	if (!strcmp(s->nearest, "ceil")) return limited(ceil(x), s->from);
	if (!strcmp(s->nearest, "round_prefer_ceil")) return limited(floor(x + 0.5), s->from);
	return limited(ceil(x - 0.5), s->from);
}

/* R. Keys, "Cubic convolution interpolation for digital image processing", 1981. */
static double cubic(double t, double a)
{
	t = fabs(t);
	if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
	return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

static double share(const struct stretch *s, double t)
{
	t = fabs(t);
	if (s->is_cubic) return cubic(t, s->cubic);
	return t < 1 ? 1 - t : 0;
}

/* The weights of the old elements in new element i: row (from).  Against aliasing, each is a mean of as many as become
 * one. */
static void fill_row(const struct stretch *s, int64_t i, double *row)
{
	double x = origin(s, i), scale = s->antialias && s->scale < 1 ? s->scale : 1, sum = 0;
	if (!s->is_cubic && scale == 1) x = x < 0 ? 0 : x > (double)(s->from - 1) ? (double)(s->from - 1) : x;
	double reach = (s->is_cubic ? 2 : 1) / scale;
	for (double k = floor(x - reach); k <= ceil(x + reach); k++) {
		double v = share(s, (x - k) * scale);
		if (s->exclude_outside && (k < 0 || k >= (double)s->from)) continue;
		row[limited(k, s->from)] += v;
		sum += v;
	}
	bool whole = scale == 1 && !s->exclude_outside;
	for (int64_t k = 0; k < s->from && !whole; k++) row[k] /= sum;
}

/* The weights of old elements in each new element, (to, from). */
static bool fill_shares(const struct stretch *s, float *w)
{
	double *row = slp_malloc((size_t)s->from * sizeof *row);
	for (int64_t i = 0; row && i < s->to; i++) {
		memset(row, 0, (size_t)s->from * sizeof *row);
		fill_row(s, i, row);
		for (int64_t k = 0; k < s->from; k++) w[i * s->from + k] = (float)row[k];
	}
	free(row);
	return row != NULL;
}

static sl_tensor *shares(struct slp_onnx_call *c, const struct stretch *s, sl_tensor *x)
{
	float *w = slp_calloc((size_t)(s->from * s->to) + 1, sizeof *w);
	if (!w || !fill_shares(s, w)) {
		free(w);
		return NULL;
	}
	sl_tensor *t =
	        sl_from_at(c->at, w, SL_SHAPE(s->to, s->from), (struct sl_make){SL_FLOAT32, sl_tensor_device(x)});
	free(w);
	return t && sl_tensor_dtype(x) != SL_FLOAT32 ? sl_cast_at(c->at, t, sl_tensor_dtype(x)) : t;
}

static struct slp_onnx_value stretched_nearest(struct slp_onnx_call *c, const struct stretch *s, sl_tensor *x, int axis)
{
	bool whole = s->to % s->from == 0;
	struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_INT64, SL_SHAPE(s->to));
	for (int64_t i = 0; k && i < s->to; i++) {
		k->v[i].i = nearest(s, i);
		whole &= k->v[i].i == i / (s->to / s->from ? s->to / s->from : 1);
	}
	struct slp_onnx_value v = {.t = x}, indices = {.known = k};
	if (!k) return (struct slp_onnx_value){0};
	if (whole) v.t = sl_repeat_at(c->at, x, axis, s->to / s->from);
	return whole ? v : slp_onnx_gathered(c, v, indices, axis);
}

/* A product with the shares, along the last axis, or along the one before as a stack of matrices. */
static sl_tensor *stretched(struct slp_onnx_call *c, const struct stretch *s, sl_tensor *x, int axis)
{
	struct slp_onnx_value v = {.t = x};
	sl_tensor *w = shares(c, s, x);
	int last = sl_tensor_shape(x).ndim - 1;
	if (!w) return NULL;
	if (axis == last) return sl_linear_at(c->at, x, w, NULL, (struct sl_linear_opts){.tw = true});
	if (axis == last - 1) return sl_matmul_at(c->at, w, x, (struct sl_dot_opts){0});
	v = slp_onnx_axis_moved(c, v, axis, last);
	if (v.t) v.t = sl_linear_at(c->at, v.t, w, NULL, (struct sl_linear_opts){.tw = true});
	return v.t ? slp_onnx_axis_moved(c, v, last, axis).t : NULL;
}

/* Sizes that are limits: one scale for all n axes, the largest or smallest that keeps to them. */
static void keep_aspect(struct slp_onnx_call *c, const int *axes, int n, struct stretch s[SL_MAX_NDIM])
{
	bool least = slp_onnx_attr_is(c, "keep_aspect_ratio_policy", "stretch", "not_smaller");
	if (!least && !slp_onnx_attr_is(c, "keep_aspect_ratio_policy", "stretch", "not_larger")) return;
	double scale = n ? s[axes[0]].scale : 1;
	for (int i = 1; i < n; i++) scale = least ? fmax(scale, s[axes[i]].scale) : fmin(scale, s[axes[i]].scale);
	for (int i = 0; i < n; i++) {
		struct stretch *one = &s[axes[i]];
		one->scale = scale;
		one->to = (int64_t)floor(scale * (double)one->from + 0.5);
		if (one->to < 1) slp_onnx_call_fail(c, SL_ESHAPE, "a size of %lld", (long long)one->to);
	}
}

/* Sizes and scales, of all axes or of the named ones. */
static bool read_sizes(struct slp_onnx_call *c, sl_shape x, struct stretch s[SL_MAX_NDIM])
{
	bool upsample = c->op->name[0] == 'U', sized = !upsample && slp_onnx_has(c, 3);
	int64_t axes[SL_MAX_NDIM], sizes[SL_MAX_NDIM];
	int list[SL_MAX_NDIM],
	        place = sized                       ? 3
	                : upsample || c->opset < 11 ? 1
	                                            : 2,
	        named = slp_onnx_attr_ints(c, "axes", axes, SL_MAX_NDIM);
	const SlpOnnx__AttributeProto *a = upsample ? slp_onnx_attr(c, "scales") : NULL;
	const struct slp_onnx_known *k = a ? NULL : slp_onnx_known_in(c, place);
	int64_t n = a ? (int64_t)a->n_floats : k ? sl_shape_size(k->shape) : 0;
	if (!c->failed && n != (named < 0 ? x.ndim : named))
		slp_onnx_call_fail(c, SL_EFORMAT, "has %lld sizes", (long long)n);
	if (sized) slp_onnx_ints_in(c, 3, NULL, sizes, SL_MAX_NDIM);
	for (int i = 0; i < x.ndim; i++) s[i].from = s[i].to = x.dim[i], s[i].scale = 1;
	for (int i = 0; i < n && !c->failed; i++) {
		int axis = list[i] = named < 0 ? i : slp_onnx_axis(c, axes[i], x.ndim);
		double scale = sized ? (double)sizes[i] / (double)x.dim[axis]
		               : a   ? a->floats[i]
		                     : slp_onnx_known_number(k, i);
		double to = sized ? (double)sizes[i] : floor((double)x.dim[axis] * scale);
		s[axis].scale = scale;
		s[axis].to = to >= 1 && to <= INT16_MAX * 8.0 ? (int64_t)to : 0;
		if (!s[axis].to || x.dim[axis] < 1) slp_onnx_call_fail(c, SL_ESHAPE, "a size of %g", to);
	}
	if (sized && !c->failed) keep_aspect(c, list, (int)n, s);
	return !c->failed;
}

static void read_mode(struct slp_onnx_call *c, struct stretch *s, char mode[64])
{
	bool old = c->op->name[0] == 'U' || c->opset < 11;
	char text[64];
	snprintf(mode, 64, "%s", slp_onnx_attr_text(c, "mode", "nearest", text));
	snprintf(s->coordinates, sizeof s->coordinates, "%s",
	         slp_onnx_attr_text(c, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel", text));
	snprintf(s->nearest, sizeof s->nearest, "%s",
	         slp_onnx_attr_text(c, "nearest_mode", old ? "floor" : "round_prefer_floor", text));
	s->cubic = slp_onnx_attr_float(c, "cubic_coeff_a", -0.75);
	s->is_cubic = !strcmp(mode, "cubic");
	if (strcmp(mode, "nearest") && strcmp(mode, "linear") && strcmp(mode, "bilinear") && !s->is_cubic)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "mode \"%s\" is not supported", mode);
	s->antialias = slp_onnx_attr_int(c, "antialias", 0) != 0;
	s->exclude_outside = slp_onnx_attr_int(c, "exclude_outside", 0) != 0;
	s->cropped = !strcmp(s->coordinates, "tf_crop_and_resize");
	s->outside = slp_onnx_attr_float(c, "extrapolation_value", 0);
}

/* The part of each axis that is kept: begins of all axes, then ends. */
static void read_crop(struct slp_onnx_call *c, int ndim, struct stretch s[SL_MAX_NDIM])
{
	int64_t axes[SL_MAX_NDIM];
	const struct slp_onnx_known *k = slp_onnx_known_in(c, 1);
	int named = slp_onnx_attr_ints(c, "axes", axes, SL_MAX_NDIM), n = named < 0 ? ndim : named;
	for (int i = 0; i < ndim; i++) s[i].begin = 0, s[i].end = 1;
	if (k && sl_shape_size(k->shape) != 2 * n) slp_onnx_call_fail(c, SL_ESHAPE, "a region of other axes");
	for (int i = 0; i < n && !c->failed; i++) {
		int axis = named < 0 ? i : slp_onnx_axis(c, axes[i], ndim);
		s[axis].begin = slp_onnx_known_number(k, i);
		s[axis].end = slp_onnx_known_number(k, n + i);
	}
}

/* Elements from outside of the image get the number for those. */
static sl_tensor *extrapolated(struct slp_onnx_call *c, const struct stretch *s, sl_tensor *t, int axis)
{
	sl_shape seen = {.ndim = t ? sl_tensor_shape(t).ndim : 0};
	struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_BOOL, SL_SHAPE(s->to));
	for (int i = 0; i < seen.ndim; i++) seen.dim[i] = i == axis ? s->to : 1;
	for (int64_t i = 0; k && i < s->to; i++) k->v[i].i = origin(s, i) < 0 || origin(s, i) > (double)(s->from - 1);
	struct slp_onnx_value v = {.known = k};
	if (k && t) v = slp_onnx_reshaped(c, v, seen);
	sl_tensor *hidden = t ? slp_onnx_as_tensor(c, v) : NULL;
	return hidden ? sl_masked_fill_at(c->at, t, hidden, s->outside) : NULL;
}

void slp_onnx_import_resize(struct slp_onnx_call *c)
{
	struct stretch s[SL_MAX_NDIM] = {0}, mode = {0};
	char name[64];
	sl_shape x = slp_onnx_shape(c, 0);
	read_mode(c, &mode, name);
	if (c->failed || !read_sizes(c, x, s)) return;
	if (mode.cropped) read_crop(c, x.ndim, s);
	if (c->failed) return;
	struct slp_onnx_value v = {.t = slp_onnx_tensor(c, 0)};
	for (int i = 0; i < x.ndim && v.t; i++) {
		struct stretch one = mode;
		one.from = s[i].from, one.to = s[i].to, one.scale = s[i].scale;
		one.begin = s[i].begin, one.end = s[i].end;
		bool whole = !mode.cropped || (one.begin == 0 && one.end == 1);
		if (one.from == one.to && whole) continue;
		if (!strcmp(name, "nearest")) v = stretched_nearest(c, &one, v.t, i);
		else v.t = stretched(c, &one, v.t, i);
		if (mode.cropped) v.t = extrapolated(c, &one, v.t, i);
	}
	slp_onnx_set_output(c, 0, v.t);
}

/* ---- pixels as channels ------------------------------------------------------------------------------------------ */

static void give_reordered(struct slp_onnx_call *c, sl_shape six, const int axes[6], sl_shape y)
{
	sl_tensor *t = sl_reshape_at(c->at, slp_onnx_tensor(c, 0), six);
	t = sl_transpose_at(c->at, t, (struct sl_reduce_opts){.axes = axes, .naxes = 6});
	slp_onnx_set_output(c, 0, t ? sl_reshape_at(c->at, t, y) : NULL);
}

void slp_onnx_import_depth_to_space(struct slp_onnx_call *c)
{
	static const int columns_first[] = {0, 1, 4, 2, 5, 3}, depth_first[] = {0, 3, 4, 1, 5, 2};
	int64_t b = slp_onnx_attr_small(c, "blocksize", 0, 1, INT16_MAX);
	bool crd = slp_onnx_attr_is(c, "mode", "DCR", "CRD");
	sl_shape x = slp_onnx_shape(c, 0);
	if (!c->failed && (x.ndim != 4 || x.dim[1] % (b * b) || x.dim[2] > INT32_MAX || x.dim[3] > INT32_MAX))
		slp_onnx_call_fail(c, SL_ESHAPE, "blocks of %lld do not fit", (long long)b);
	if (c->failed) return;
	int64_t n = x.dim[0], d = x.dim[1] / (b * b), h = x.dim[2], w = x.dim[3];
	sl_shape six = crd ? SL_SHAPE(n, d, b, b, h, w) : SL_SHAPE(n, b, b, d, h, w);
	give_reordered(c, six, crd ? columns_first : depth_first, SL_SHAPE(n, d, h * b, w * b));
}

void slp_onnx_import_space_to_depth(struct slp_onnx_call *c)
{
	static const int depth_last[] = {0, 3, 5, 1, 2, 4}, depth_first[] = {0, 1, 3, 5, 2, 4};
	bool first = slp_onnx_attr_is(c, "mode", "DCR", "CRD");
	int64_t b = slp_onnx_attr_small(c, "blocksize", 0, 1, INT16_MAX);
	sl_shape x = slp_onnx_shape(c, 0);
	if (!first && !slp_onnx_attr_is(c, "mode", "DCR", "DCR"))
		slp_onnx_call_fail(c, SL_EFORMAT, "attribute mode must be DCR or CRD");
	if (!c->failed && (x.ndim != 4 || x.dim[2] % b || x.dim[3] % b || x.dim[1] > INT32_MAX))
		slp_onnx_call_fail(c, SL_ESHAPE, "blocks of %lld do not fit", (long long)b);
	if (c->failed) return;
	int64_t n = x.dim[0], d = x.dim[1], h = x.dim[2] / b, w = x.dim[3] / b;
	give_reordered(c, SL_SHAPE(n, d, h, b, w, b), first ? depth_first : depth_last, SL_SHAPE(n, d * b * b, h, w));
}
