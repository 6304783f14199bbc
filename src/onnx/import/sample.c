/* ONNX operators, computed: pixels at the positions of a grid. */
#include <math.h>

#include "onnx/import/window.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

enum { AXES = 3, TAPS = 4 };
enum border { ZEROS, BORDER, REFLECTION };

/* One axis: for each place of the grid, the indices of the elements that contribute, and their weights; all are
 * (places). */
struct taps {
	int count;
	sl_tensor *index[TAPS], *share[TAPS]; /* share NULL: all of it */
};

struct sampling {
	const char *at;
	enum border border;
	bool corners, absolute; /* absolute: places are numbers of elements */
	int taps;               /* 1: nearest, 2: linear, 4: cubic */
};

/* ---- along one axis of n elements -------------------------------------------------------------------------------- */

static sl_tensor *limited(const char *at, sl_tensor *x, double high)
{
	return sl_minimum_scalar_at(at, sl_maximum_scalar_at(at, x, 0), high);
}

/* There and back again between the outer elements, or their outer edges. */
static sl_tensor *reflected(const struct sampling *s, sl_tensor *x, double n)
{
	double low = s->corners ? 0 : -0.5, span = s->corners ? n - 1 : n;
	if (span == 0) return sl_mul_scalar_at(s->at, x, 0);
	x = sl_abs_at(s->at, sl_sub_scalar_at(s->at, x, low));
	sl_tensor *turns = sl_floor_at(s->at, sl_div_scalar_at(s->at, x, 2 * span));
	x = sl_sub_at(s->at, x, sl_mul_scalar_at(s->at, turns, 2 * span));
	x = sl_abs_at(s->at, sl_sub_scalar_at(s->at, x, span));
	return sl_rsub_scalar_at(s->at, x, low + span);
}

/* Into the image, unless zeros surround it. */
static sl_tensor *inside(const struct sampling *s, sl_tensor *x, double n)
{
	if (s->border == REFLECTION) x = reflected(s, x, n);
	return s->border == ZEROS ? x : limited(s->at, x, n - 1);
}

/* -1 and 1 are the centers of the outer elements, or their outer edges. */
static sl_tensor *denormalised(const struct sampling *s, sl_tensor *g, double n)
{
	if (s->absolute) return g;
	if (s->corners) return sl_mul_scalar_at(s->at, sl_add_scalar_at(s->at, g, 1), (n - 1) / 2);
	g = sl_mul_scalar_at(s->at, sl_add_scalar_at(s->at, g, 1), n / 2);
	return sl_sub_scalar_at(s->at, g, 0.5);
}

/* R. Keys' cubic with a = -0.75, of a distance from 0 to 1, and from 1 to 2. */
static sl_tensor *near_cubic(const char *at, sl_tensor *t)
{
	sl_tensor *v = sl_sub_scalar_at(at, sl_mul_scalar_at(at, t, 1.25), 2.25);
	return sl_add_scalar_at(at, sl_mul_at(at, v, sl_square_at(at, t)), 1);
}
static sl_tensor *far_cubic(const char *at, sl_tensor *t)
{
	sl_tensor *v = sl_add_scalar_at(at, sl_mul_scalar_at(at, t, -0.75), 3.75);
	v = sl_sub_scalar_at(at, sl_mul_at(at, v, t), 6);
	return sl_add_scalar_at(at, sl_mul_at(at, v, t), 3);
}

/* The weight of tap number `tap` for a place that is t after an element. */
static sl_tensor *share_of(const struct sampling *s, sl_tensor *t, int tap)
{
	if (s->taps == 2) return tap ? t : sl_rsub_scalar_at(s->at, t, 1);
	if (tap == 0) return far_cubic(s->at, sl_add_scalar_at(s->at, t, 1));
	if (tap == 1) return near_cubic(s->at, t);
	if (tap == 2) return near_cubic(s->at, sl_rsub_scalar_at(s->at, t, 1));
	return far_cubic(s->at, sl_rsub_scalar_at(s->at, t, 2));
}

static void finish_tap(const struct sampling *s, struct taps *t, int tap, double n)
{
	sl_tensor *i = t->index[tap];
	if (s->taps == 4) i = inside(s, i, n);
	if (s->border == ZEROS) {
		sl_tensor *within = sl_mul_at(s->at, sl_ge_scalar_at(s->at, i, 0), sl_le_scalar_at(s->at, i, n - 1));
		t->share[tap] = t->share[tap] ? sl_mul_at(s->at, t->share[tap], within) : within;
	}
	t->index[tap] = sl_cast_at(s->at, limited(s->at, i, n - 1), SL_INT32);
}

static struct taps taps_of(const struct sampling *s, sl_tensor *g, int64_t n)
{
	struct taps t = {.count = s->taps};
	sl_tensor *x = denormalised(s, g, (double)n);
	if (s->taps < 4) x = inside(s, x, (double)n);
	sl_tensor *first = s->taps == 1 ? sl_round_at(s->at, x) : sl_floor_at(s->at, x);
	for (int tap = 0; tap < t.count; tap++) {
		int from = s->taps == 4 ? tap - 1 : tap;
		t.index[tap] = from ? sl_add_scalar_at(s->at, first, from) : first;
		if (s->taps > 1) t.share[tap] = share_of(s, sl_sub_at(s->at, x, first), tap);
		finish_tap(s, &t, tap, (double)n);
	}
	return t;
}

/* ---- along all --------------------------------------------------------------------------------------------------- */

/* Rows (places, channels): of the element that combination number `which` of the axes' taps names, its share. */
static sl_tensor *combination(const struct sampling *s, sl_tensor *rows, sl_tensor *first, const struct taps *taps,
                              const int64_t *sizes, int axes, int which)
{
	sl_tensor *index = NULL, *share = NULL;
	for (int i = 0; i < axes; which /= taps[i++].count) {
		sl_tensor *one = taps[i].index[which % taps[i].count], *part = taps[i].share[which % taps[i].count];
		index = index ? sl_add_at(s->at, sl_mul_scalar_at(s->at, index, (double)sizes[i]), one) : one;
		share = share && part ? sl_mul_at(s->at, share, part) : part;
	}
	sl_tensor *y = sl_gather_at(s->at, rows, sl_add_at(s->at, index, first));
	return y && share ? sl_mul_at(s->at, y, sl_reshape_at(s->at, share, SL_SHAPE(-1, 1))) : y;
}

/* The number of the first row of each place's sample. */
static sl_tensor *first_rows(const struct sampling *s, sl_tensor *x, int64_t samples, int64_t rows, int64_t places)
{
	struct sl_make make = {SL_INT32, sl_tensor_device(x)};
	sl_tensor *first = sl_arange_at(s->at, 0, (double)samples, 1, make);
	first = sl_reshape_at(s->at, sl_mul_scalar_at(s->at, first, (double)rows), SL_SHAPE(samples, 1));
	first = first ? sl_broadcast_to_at(s->at, first, SL_SHAPE(samples, places)) : NULL;
	return first ? sl_reshape_at(s->at, first, SL_SHAPE(-1)) : NULL;
}

/* Rows (places, channels) of x (samples, channels, …) where a grid (samples, …, axes) says; its last axis begins with
 * the number for the last axis of x. */
static sl_tensor *sampled(struct slp_onnx_call *c, const struct sampling *s, sl_tensor *x, sl_tensor *grid)
{
	sl_shape in = sl_tensor_shape(x), out = sl_tensor_shape(grid);
	int axes = in.ndim - 2, all = 1;
	struct taps taps[AXES];
	int64_t rows = 1, places = 1;
	for (int i = 0; i < axes; i++) rows *= in.dim[2 + i], places *= out.dim[1 + i];
	for (int i = 0; i < axes; i++) {
		int at = axes - 1 - i;
		sl_tensor *g = sl_slice_at(s->at, grid, out.ndim - 1, at, at + 1, 1);
		g = g ? sl_reshape_at(s->at, g, SL_SHAPE(-1)) : NULL;
		if (!g) return NULL;
		taps[i] = taps_of(s, g, in.dim[2 + i]);
		all *= taps[i].count;
	}
	x = slp_onnx_axis_moved(c, (struct slp_onnx_value){.t = x}, 1, in.ndim - 1).t;
	x = x ? sl_reshape_at(s->at, x, SL_SHAPE(in.dim[0] * rows, in.dim[1])) : NULL;
	sl_tensor *first = x ? first_rows(s, x, in.dim[0], rows, places) : NULL, *sum = NULL;
	for (int i = 0; i < all && first; i++) {
		sl_tensor *part = combination(s, x, first, taps, &in.dim[2], axes, i);
		sum = i ? sl_add_at(s->at, sum, part) : part;
		if (!sum) return NULL;
	}
	return sum;
}

static bool is_mode(struct slp_onnx_call *c, const char *old, const char *new)
{
	return slp_onnx_attr_is(c, "mode", "linear", old) || slp_onnx_attr_is(c, "mode", "linear", new);
}

static bool read_sampling(struct slp_onnx_call *c, struct sampling *s)
{
	bool zeros = slp_onnx_attr_is(c, "padding_mode", "zeros", "zeros"),
	     border = slp_onnx_attr_is(c, "padding_mode", "zeros", "border");
	*s = (struct sampling){.at = c->at, .corners = slp_onnx_attr_int(c, "align_corners", 0) != 0};
	s->border = zeros ? ZEROS : border ? BORDER : REFLECTION;
	s->taps = is_mode(c, "bilinear", "linear")   ? 2
	          : is_mode(c, "nearest", "nearest") ? 1
	          : is_mode(c, "bicubic", "cubic")   ? 4
	                                             : 0;
	if (!s->taps) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "its mode is not supported");
	if (!zeros && !border && !slp_onnx_attr_is(c, "padding_mode", "zeros", "reflection"))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "its padding_mode is not supported");
	return !c->failed;
}

void slp_onnx_import_grid_sample(struct slp_onnx_call *c)
{
	struct sampling s;
	sl_shape x = slp_onnx_shape(c, 0), g = slp_onnx_shape(c, 1), y = g;
	if (c->failed || !read_sampling(c, &s)) return;
	if (x.ndim < 3 || x.ndim > 2 + AXES || g.ndim != x.ndim || g.dim[g.ndim - 1] != x.ndim - 2 ||
	    g.dim[0] != x.dim[0] || sl_shape_size(x) < 1 || sl_shape_size(x) > INT32_MAX) {
		slp_onnx_call_fail(c, SL_ESHAPE, "a grid that does not fit the images");
		return;
	}
	y.dim[y.ndim - 1] = x.dim[1];
	sl_tensor *t = slp_onnx_tensor(c, 0), *grid = slp_onnx_tensor(c, 1);
	enum sl_dtype dtype = sl_tensor_dtype(t),
	              wide = slp_is_float(dtype) ? slp_promoted(dtype) : SL_FLOAT32; /* for places */
	if (t && dtype != wide) t = sl_cast_at(c->at, t, wide);
	if (grid && sl_tensor_dtype(grid) != wide) grid = sl_cast_at(c->at, grid, wide);
	t = t && grid ? sampled(c, &s, t, grid) : NULL;
	if (t && dtype != wide) t = sl_cast_at(c->at, t, dtype);
	t = t ? sl_reshape_at(c->at, t, y) : NULL;
	if (t) slp_onnx_set_output_value(c, 0, slp_onnx_axis_moved(c, (struct slp_onnx_value){.t = t}, y.ndim - 1, 1));
	else c->failed = true;
}

/* ---- deformable convolutions ------------------------------------------------------------------------------------- */

/* X. Zhu et al., "Deformable ConvNets v2", 2019: each element of the kernel has its own offset at each place. */
struct deformed {
	struct slp_onnx_call *c;
	struct slp_onnx_window w;
	sl_shape x, out;  /* (n, channels, height, width) */
	int group, parts; /* of channels: in products, with the same offsets */
	sl_tensor *t, *offset, *mask;
};

/* The offsets of a kernel element, along an axis, and the places that they shift: (n, height, width). */
static sl_tensor *shifted(const struct deformed *d, int tap, int part, int axis)
{
	const char *at = d->c->at;
	int a = slp_onnx_window_place(2, axis);
	int64_t taps = d->w.kernel[slp_onnx_window_place(2, 0)] * d->w.kernel[slp_onnx_window_place(2, 1)];
	int64_t columns = d->w.kernel[slp_onnx_window_place(2, 1)], element = axis ? tap % columns : tap / columns;
	int64_t channel = (part * taps + tap) * 2 + axis, n = d->out.dim[2 + axis];
	struct sl_make make = {sl_tensor_dtype(d->offset), sl_tensor_device(d->offset)};
	double first = (double)(element * d->w.dilation[a] - d->w.begin[a]), step = (double)d->w.stride[a];
	sl_tensor *place = sl_arange_at(at, first, first + step * ((double)n - 0.5), step, make);
	place = place ? sl_reshape_at(at, place, axis ? SL_SHAPE(1, 1, n) : SL_SHAPE(1, n, 1)) : NULL;
	sl_tensor *o = place ? sl_slice_at(at, d->offset, 1, channel, channel + 1, 1) : NULL;
	o = o ? sl_reshape_at(at, o, SL_SHAPE(d->x.dim[0], d->out.dim[2], d->out.dim[3])) : NULL;
	return o ? sl_add_at(at, o, place) : NULL;
}

/* What a kernel element sees of a part of the channels: (places, channels). */
static sl_tensor *seen_by(const struct deformed *d, int tap, int part)
{
	const struct sampling s = {.at = d->c->at, .absolute = true, .taps = 2};
	int64_t taps = d->w.kernel[slp_onnx_window_place(2, 0)] * d->w.kernel[slp_onnx_window_place(2, 1)];
	int64_t each = d->x.dim[1] / d->parts, channel = part * taps + tap;
	sl_tensor *grid[] = {shifted(d, tap, part, 1), shifted(d, tap, part, 0)};
	sl_shape one = SL_SHAPE(d->x.dim[0], d->out.dim[2], d->out.dim[3], 1);
	for (int i = 0; i < 2; i++) grid[i] = grid[i] ? sl_reshape_at(s.at, grid[i], one) : NULL;
	sl_tensor *g = grid[0] && grid[1] ? sl_concat_at(s.at, grid, 2, 3) : NULL;
	sl_tensor *x = g ? sl_slice_at(s.at, d->t, 1, part * each, (part + 1) * each, 1) : NULL;
	sl_tensor *y = x ? sampled(d->c, &s, x, g) : NULL;
	sl_tensor *m = y && d->mask ? sl_slice_at(s.at, d->mask, 1, channel, channel + 1, 1) : NULL;
	if (y && d->mask) y = m ? sl_mul_at(s.at, y, sl_reshape_at(s.at, m, SL_SHAPE(-1, 1))) : NULL;
	return y;
}

/* Its share of the result, (places, channels): the product with the kernel element of each group. */
static sl_tensor *share_of_tap(const struct deformed *d, int tap, sl_tensor *kernel)
{
	enum { MOST = 64 };
	const char *at = d->c->at;
	sl_tensor *list[MOST];
	sl_shape k = sl_tensor_shape(kernel);
	for (int i = 0; i < d->parts; i++)
		if (!(list[i] = seen_by(d, tap, i))) return NULL;
	sl_tensor *x = d->parts > 1 ? sl_concat_at(at, list, d->parts, 1) : list[0];
	sl_tensor *w = sl_slice_at(at, sl_reshape_at(at, kernel, SL_SHAPE(k.dim[0], k.dim[1], -1)), 2, tap, tap + 1, 1);
	w = w ? sl_reshape_at(at, w, SL_SHAPE(k.dim[0], k.dim[1])) : NULL;
	int64_t out = k.dim[0] / d->group;
	for (int i = 0; i < d->group && x && w; i++) {
		sl_tensor *rows = sl_slice_at(at, x, 1, i * k.dim[1], (i + 1) * k.dim[1], 1);
		list[i] = rows ? sl_linear_at(at, rows, sl_slice_at(at, w, 0, i * out, (i + 1) * out, 1), NULL,
		                              (struct sl_linear_opts){.tw = true})
		               : NULL;
		if (!list[i]) return NULL;
	}
	return x && w ? sl_concat_at(at, list, d->group, 1) : NULL;
}

static bool read_deformed(struct slp_onnx_call *c, struct deformed *d)
{
	enum { MOST = 64 };
	sl_shape kernel = slp_onnx_shape(c, 1), o = slp_onnx_shape(c, 2);
	*d = (struct deformed){.c = c, .x = slp_onnx_shape(c, 0), .out = o};
	d->group = slp_onnx_attr_small(c, "group", 1, 1, MOST);
	d->parts = slp_onnx_attr_small(c, "offset_group", 1, 1, MOST);
	if (!c->failed && (d->x.ndim != 4 || kernel.ndim != 4 || o.ndim != 4 || d->x.dim[1] % d->parts ||
	                   kernel.dim[0] % d->group || kernel.dim[1] * d->group != d->x.dim[1] ||
	                   o.dim[0] != d->x.dim[0] || o.dim[1] != 2 * d->parts * kernel.dim[2] * kernel.dim[3]))
		slp_onnx_call_fail(c, SL_ESHAPE, "offsets or weights that do not fit the images");
	if (c->failed || !slp_onnx_window_read(c, d->x, &kernel, &d->w)) return false;
	d->out.dim[1] = kernel.dim[0];
	d->t = slp_onnx_tensor(c, 0), d->offset = slp_onnx_tensor(c, 2), d->mask = slp_onnx_tensor(c, 4);
	if (!d->t || !d->offset) c->failed = true; /* and recorded */
	return !c->failed;
}

void slp_onnx_import_deform_conv(struct slp_onnx_call *c)
{
	struct deformed d;
	sl_tensor *kernel = slp_onnx_tensor(c, 1), *bias = slp_onnx_tensor(c, 3), *sum = NULL;
	if (!read_deformed(c, &d) || !kernel) return;
	int taps = (int)(sl_tensor_shape(kernel).dim[2] * sl_tensor_shape(kernel).dim[3]);
	for (int i = 0; i < taps && !c->failed; i++) {
		sl_tensor *part = share_of_tap(&d, i, kernel);
		sum = i && part ? sl_add_at(c->at, sum, part) : part;
		if (!sum) c->failed = true; /* and recorded */
	}
	if (sum && bias) sum = sl_add_at(c->at, sum, bias);
	sl_shape last = SL_SHAPE(d.out.dim[0], d.out.dim[2], d.out.dim[3], d.out.dim[1]);
	sum = sum ? sl_reshape_at(c->at, sum, last) : NULL;
	if (sum) slp_onnx_set_output_value(c, 0, slp_onnx_axis_moved(c, (struct slp_onnx_value){.t = sum}, 3, 1));
	else c->failed = true; /* and recorded */
}

/* ---- affine grids ------------------------------------------------------------------------------------------------ */

/* Homogeneous coordinates (places, axes + 1) of the elements of an image; the last axis comes first. */
static struct slp_onnx_known *homogeneous(struct slp_onnx_call *c, enum sl_dtype dtype, const int64_t *size, int axes,
                                          bool corners)
{
	int64_t places = 1;
	for (int a = 0; a < axes; a++) places *= size[a];
	struct slp_onnx_known *k = slp_onnx_known_new(c->made, dtype, SL_SHAPE(places, axes + 1));
	for (int64_t p = 0; k && p < places; p++) {
		union slp_onnx_element *row = &k->v[p * (axes + 1)];
		int64_t left = p;
		for (int a = axes - 1; a >= 0; left /= size[a--]) {
			double i = (double)(left % size[a]), n = (double)size[a];
			row[axes - 1 - a].f = !corners ? (2 * i + 1) / n - 1 : n > 1 ? 2 * i / (n - 1) - 1 : 0;
		}
		row[axes].f = 1;
	}
	return k;
}

void slp_onnx_import_affine_grid(struct slp_onnx_call *c)
{
	int64_t size[2 + AXES];
	sl_shape s = slp_onnx_shape(c, 0), y = {0};
	int n = slp_onnx_ints_in(c, 1, NULL, size, 2 + AXES), axes = n - 2;
	bool fits =
	        !c->failed && n >= 4 && s.ndim == 3 && s.dim[0] == size[0] && s.dim[1] == axes && s.dim[2] == axes + 1;
	y.dim[y.ndim++] = s.dim[0];
	for (int a = 0; fits && a < axes; a++) fits = (y.dim[y.ndim++] = size[2 + a]) >= 1;
	y.dim[y.ndim++] = axes;
	if (!c->failed && (!fits || !slp_shape_valid(y) || sl_shape_size(y) > INT32_MAX))
		slp_onnx_call_fail(c, SL_ESHAPE, "matrices that do not fit the size");
	if (c->failed) return;
	sl_tensor *theta = slp_onnx_tensor(c, 0);
	struct slp_onnx_value base = {.known = homogeneous(c, sl_tensor_dtype(theta), size + 2, axes,
	                                                   slp_onnx_attr_int(c, "align_corners", 0) != 0)};
	sl_tensor *t = base.known ? slp_onnx_as_tensor(c, base) : NULL;
	theta = t ? sl_reshape_at(c->at, theta, SL_SHAPE(s.dim[0] * axes, axes + 1)) : NULL;
	t = theta ? sl_linear_at(c->at, t, theta, NULL, (struct sl_linear_opts){.tw = true}) : NULL;
	t = t ? sl_reshape_at(c->at, t, SL_SHAPE(-1, s.dim[0], axes)) : NULL;
	t = t ? sl_transpose_at(c->at, t, (struct sl_reduce_opts){SL_AXES(1, 0, 2)}) : NULL;
	slp_onnx_set_output(c, 0, t ? sl_reshape_at(c->at, t, y) : NULL);
}
