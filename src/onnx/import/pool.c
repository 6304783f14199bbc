/* ONNX operators, computed: pooling of images, of sequences, which are images of one row, and of volumes. */
#include <math.h>

#include "onnx/import/bytes/bytes.h"
#include "onnx/import/window.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* Means of the elements inside the image, if its border had to be made before: divided by the share inside. */
static sl_tensor *shared_mean(struct slp_onnx_call *c, sl_tensor *x, struct slp_onnx_window *w, struct sl_pool2d_opts o)
{
	sl_shape s = sl_tensor_shape(x);
	struct sl_make make = {sl_tensor_dtype(x), sl_tensor_device(x)};
	struct slp_onnx_window again = *w;
	sl_tensor *ones = sl_ones_at(c->at, SL_SHAPE(1, 1, s.dim[2], s.dim[3]), make);
	sl_tensor *sums = sl_pool2d_at(c->at, slp_onnx_bordered(c, x, w, true, 0), o);
	return sl_div_at(c->at, sums, sl_pool2d_at(c->at, slp_onnx_bordered(c, ones, &again, true, 0), o));
}

static sl_tensor *pooled(struct slp_onnx_call *c, sl_tensor *x, struct slp_onnx_window *w, struct sl_pool2d_opts o)
{
	bool even = w->begin[0] == w->end[0] && w->begin[1] == w->end[1];
	even = even && w->begin[0] < w->kernel[0] && w->begin[1] < w->kernel[1];
	for (int i = 0; i < 2; i++) o.kernel[i] = (int)w->kernel[i];
	o.exclude_pad &= o.type == SL_POOL_AVG;
	slp_onnx_window_pairs(w, o.stride, NULL, o.pad);
	if (even) return sl_pool2d_at(c->at, x, o);
	o.pad[0] = o.pad[1] = 0;
	if (o.exclude_pad && o.type == SL_POOL_AVG) return shared_mean(c, x, w, o);
	return sl_pool2d_at(c->at, slp_onnx_bordered(c, x, w, true, o.type == SL_POOL_AVG ? 0 : -INFINITY), o);
}

/* ---- axis by axis: windows with gaps, of volumes, of integers, and the places of the largest --------------------- */

/* An axis: `count` windows, after a border on both sides. */
struct fold {
	int axis;
	int64_t count, before, after, step, gap, kernel;
};

/* With `ceil`, one more window that starts inside the image or before it, if the rest needs one. */
static bool plan_fold(struct slp_onnx_call *c, const struct slp_onnx_window *w, int i, bool ceil, struct fold *f)
{
	int p = slp_onnx_window_place(w->axes, i);
	int64_t span = (w->kernel[p] - 1) * w->dilation[p] + 1, step = w->stride[p],
	        room = w->size[p] + w->begin[p] + w->end[p] - span, n = room / step + 1;
	if (room < 0) {
		slp_onnx_call_fail(c, SL_ESHAPE, "a window of %lld over %lld elements", (long long)span,
		                   (long long)w->size[p]);
		return false;
	}
	if (ceil && room % step && n * step < w->size[p] + w->begin[p]) n++;
	int64_t after = (n - 1) * step + span - w->begin[p] - w->size[p];
	*f = (struct fold){.axis = 2 + i,
	                   .count = n,
	                   .before = w->begin[p],
	                   .after = after > 0 ? after : 0,
	                   .step = step,
	                   .gap = w->dilation[p],
	                   .kernel = w->kernel[p]};
	return true;
}

/* The k-th elements of all windows. */
static sl_tensor *kth(struct slp_onnx_call *c, sl_tensor *x, const struct fold *f, int64_t k)
{
	int64_t first = k * f->gap;
	return sl_slice_at(c->at, x, f->axis, first, first + (f->count - 1) * f->step + 1, f->step);
}

static double least(enum sl_dtype dtype)
{
	return slp_is_float(dtype) ? -INFINITY : dtype == SL_INT32 ? INT32_MIN : dtype == SL_INT64 ? INT64_MIN : 0;
}

/* The largest of each window, and where *places are given, whichever of them comes first. */
static sl_tensor *fold_largest(struct slp_onnx_call *c, sl_tensor *x, const struct fold *f, sl_tensor **places)
{
	x = sl_pad_at(c->at, x, f->axis, f->before, f->after, (struct sl_pad_opts){.value = least(sl_tensor_dtype(x))});
	sl_tensor *all =
	        places ? sl_pad_at(c->at, *places, f->axis, f->before, f->after, (struct sl_pad_opts){0}) : NULL;
	if (!x || (places && !all)) return NULL;
	sl_tensor *best = kth(c, x, f, 0), *where = places ? kth(c, all, f, 0) : NULL;
	for (int64_t k = 1; k < f->kernel && best; k++) {
		sl_tensor *next = kth(c, x, f, k), *more = places && next ? sl_gt_at(c->at, next, best) : NULL;
		if (places) where = more ? sl_where_at(c->at, more, kth(c, all, f, k), where) : NULL;
		best = next ? sl_maximum_at(c->at, best, next) : NULL;
	}
	if (places) *places = where;
	return best;
}

/* One over the number of elements that count of each window. */
static sl_tensor *shares(struct slp_onnx_call *c, sl_tensor *x, const struct fold *f, int64_t low, int64_t high)
{
	sl_shape s = {.ndim = sl_tensor_shape(x).ndim - f->axis};
	for (int i = 0; i < s.ndim; i++) s.dim[i] = i ? 1 : f->count;
	struct slp_onnx_known *v = slp_onnx_known_new(c->made, sl_tensor_dtype(x), s);
	for (int64_t i = 0; v && i < f->count; i++) {
		int64_t n = 0;
		for (int64_t k = 0; k < f->kernel; k++) {
			int64_t at = i * f->step + k * f->gap - f->before;
			n += at >= low && at < high;
		}
		v->v[i].f = 1 / (double)(n ? n : 1);
	}
	return v ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = v}) : NULL;
}

static sl_tensor *fold_mean(struct slp_onnx_call *c, sl_tensor *x, const struct fold *f, int64_t low, int64_t high)
{
	x = sl_pad_at(c->at, x, f->axis, f->before, f->after, (struct sl_pad_opts){0});
	sl_tensor *sum = x ? kth(c, x, f, 0) : NULL, *share = x ? shares(c, x, f, low, high) : NULL;
	for (int64_t k = 1; k < f->kernel && sum; k++) sum = sl_add_at(c->at, sum, kth(c, x, f, k));
	return sum && share ? sl_mul_at(c->at, sum, share) : NULL;
}

/* Numbers of elements of x within their planes, the last axis first or, in column-major order, last. */
static sl_tensor *numbered(struct slp_onnx_call *c, sl_tensor *x, bool columns)
{
	sl_shape s = sl_tensor_shape(x), turned = s;
	int axes[SL_MAX_NDIM] = {0, 1};
	int64_t n = 1;
	s.dim[0] = s.dim[1] = turned.dim[0] = turned.dim[1] = 1;
	for (int i = 2; i < s.ndim; i++) {
		n *= s.dim[i];
		axes[i] = s.ndim + 1 - i;
		turned.dim[i] = s.dim[axes[i]];
	}
	struct sl_make make = {SL_INT64, sl_tensor_device(x)};
	sl_tensor *all = sl_arange_at(c->at, 0, (double)n, 1, make);
	if (!columns || !all) return sl_reshape_at(c->at, all, s);
	return sl_transpose_at(c->at, sl_reshape_at(c->at, all, turned),
	                       (struct sl_reduce_opts){.axes = axes, .naxes = s.ndim});
}

/* Places within the planes of x as places in x. */
static sl_tensor *in_whole(struct slp_onnx_call *c, sl_tensor *places, sl_tensor *x)
{
	sl_shape s = sl_tensor_shape(x), planes = s;
	int64_t n = 1, count = s.dim[0] * s.dim[1];
	for (int i = 2; i < s.ndim; i++) n *= s.dim[i], planes.dim[i] = 1;
	struct sl_make make = {SL_INT64, sl_tensor_device(x)};
	sl_tensor *first = sl_arange_at(c->at, 0, (double)count, 1, make);
	first = sl_reshape_at(c->at, sl_mul_scalar_at(c->at, first, (double)n), planes);
	return sl_add_at(c->at, places, first);
}

/* Last axis first: of equals the first in the order of memory wins. */
static sl_tensor *folded(struct slp_onnx_call *c, sl_tensor *x, const struct slp_onnx_window *w,
                         struct sl_pool2d_opts o, sl_tensor **places)
{
	sl_tensor *whole = x;
	if (places) *places = numbered(c, x, slp_onnx_attr_int(c, "storage_order", 0) != 0);
	for (int i = w->axes - 1; i >= 0 && x && !c->failed; i--) {
		int p = slp_onnx_window_place(w->axes, i);
		int64_t low = o.exclude_pad ? 0 : -w->begin[p], high = w->size[p] + (o.exclude_pad ? 0 : w->end[p]);
		struct fold f;
		if (!plan_fold(c, w, i, o.ceil, &f)) return NULL;
		x = o.type == SL_POOL_MAX ? fold_largest(c, x, &f, places) : fold_mean(c, x, &f, low, high);
	}
	if (x && places && *places) *places = in_whole(c, *places, whole);
	return x;
}

/* Volumes by the operations for images: windows within layers, then along the layers at each place. */
static sl_tensor *in_layers(struct slp_onnx_call *c, sl_tensor *x, struct slp_onnx_window *w, struct sl_pool2d_opts o)
{
	sl_shape s = sl_tensor_shape(x);
	struct slp_onnx_window deep = {.axes = 2,
	                               .size = {s.dim[2], 1},
	                               .kernel = {w->kernel[2], 1},
	                               .stride = {w->stride[2], 1},
	                               .dilation = {1, 1},
	                               .begin = {w->begin[2]},
	                               .end = {w->end[2]}};
	x = sl_reshape_at(c->at, x, SL_SHAPE(s.dim[0], s.dim[1] * s.dim[2], s.dim[3], s.dim[4]));
	x = x ? pooled(c, x, w, o) : NULL;
	if (!x) return NULL;
	sl_shape t = sl_tensor_shape(x);
	x = sl_reshape_at(c->at, x, SL_SHAPE(s.dim[0], s.dim[1], s.dim[2], t.dim[2] * t.dim[3]));
	x = x ? pooled(c, x, &deep, o) : NULL;
	return x ? sl_reshape_at(c->at, x, SL_SHAPE(s.dim[0], s.dim[1], sl_tensor_shape(x).dim[2], t.dim[2], t.dim[3]))
	         : NULL;
}

/* Whether the operations for images can do it. */
static bool is_plain(const struct slp_onnx_call *c, sl_tensor *x, const struct slp_onnx_window *w,
                     struct sl_pool2d_opts o)
{
	bool even = true, dense = true;
	for (int i = 0; i < SLP_ONNX_SPACE; i++) even &= w->begin[i] == w->end[i], dense &= w->dilation[i] == 1;
	return dense && c->nout < 2 && (even || !o.ceil) && slp_is_float(sl_tensor_dtype(x));
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

void slp_onnx_import_pool(struct slp_onnx_call *c)
{
	bool mean = c->op->name[0] == 'A';
	struct sl_pool2d_opts o = {.type = mean ? SL_POOL_AVG : SL_POOL_MAX,
	                           .ceil = slp_onnx_attr_int(c, "ceil_mode", 0) != 0,
	                           .exclude_pad = !slp_onnx_attr_int(c, "count_include_pad", 0)};
	struct slp_onnx_window w;
	if (!mean && slp_onnx_max_pool_bytes(c)) return;
	slp_onnx_plain_inputs(c);
	if (!slp_onnx_window_read(c, slp_onnx_shape(c, 0), NULL, &w)) return;
	sl_tensor *x = slp_onnx_tensor(c, 0);
	if (!x || c->failed) {
		c->failed = true;
		return;
	}
	if (is_plain(c, x, &w, o)) {
		x = slp_onnx_as_image(c, x);
		slp_onnx_set_output_image(c,
		                          !x            ? NULL
		                          : w.axes == 3 ? in_layers(c, x, &w, o)
		                                        : pooled(c, x, &w, o),
		                          w.axes);
	} else {
		sl_tensor *places = NULL;
		slp_onnx_set_output(c, 0, folded(c, x, &w, o, c->nout > 1 ? &places : NULL));
		if (c->nout > 1 && !c->failed) slp_onnx_set_output(c, 1, places);
	}
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

/* Sums over windows axis by axis; elements outside the image are 0. */
static sl_tensor *sum_of_windows(struct slp_onnx_call *c, sl_tensor *x, const struct slp_onnx_window *w, bool ceil)
{
	for (int i = w->axes - 1; i >= 0 && x && !c->failed; i--) {
		struct fold f;
		if (!plan_fold(c, w, i, ceil, &f)) return NULL;
		x = sl_pad_at(c->at, x, f.axis, f.before, f.after, (struct sl_pad_opts){0});
		sl_tensor *sum = x ? kth(c, x, &f, 0) : NULL;
		for (int64_t k = 1; k < f.kernel && sum; k++) sum = sl_add_at(c->at, sum, kth(c, x, &f, k));
		x = sum;
	}
	return x;
}

static sl_tensor *to_power(struct slp_onnx_call *c, sl_tensor *x, int p)
{
	x = x ? sl_abs_at(c->at, x) : NULL;
	return !x || p == 1 ? x : p == 2 ? sl_square_at(c->at, x) : sl_pow_scalar_at(c->at, x, p);
}

void slp_onnx_import_lp_pool(struct slp_onnx_call *c)
{
	bool ceil = slp_onnx_attr_int(c, "ceil_mode", 0) != 0;
	struct slp_onnx_window w;
	int p = slp_onnx_attr_small(c, "p", 2, 1, INT16_MAX);
	if (!slp_onnx_window_read(c, slp_onnx_shape(c, 0), NULL, &w)) return;
	sl_tensor *x = to_power(c, slp_onnx_tensor(c, 0), p);
	if (!x || c->failed) {
		c->failed = true;
		return;
	}
	x = sum_of_windows(c, x, &w, ceil);
	slp_onnx_set_output(c, 0, x && p != 1 ? sl_pow_scalar_at(c->at, x, 1.0 / p) : x);
}

void slp_onnx_import_global_lp_pool(struct slp_onnx_call *c)
{
	int p = slp_onnx_attr_small(c, "p", 2, 1, INT16_MAX), axes[SL_MAX_NDIM], n = 0;
	sl_shape s = slp_onnx_shape(c, 0);
	sl_tensor *x = to_power(c, slp_onnx_tensor(c, 0), p);
	for (int i = 2; i < s.ndim; i++) axes[n++] = i;
	if (!c->failed && !n) slp_onnx_call_fail(c, SL_ESHAPE, "the input has %d axes, at least 3 needed", s.ndim);
	if (c->failed) return;
	x = x ? sl_sum_at(c->at, x, (struct sl_reduce_opts){.axes = axes, .naxes = n, .keepdims = true}) : NULL;
	slp_onnx_set_output(c, 0, x && p != 1 ? sl_pow_scalar_at(c->at, x, 1.0 / p) : x);
}

/* ---- unpooling --------------------------------------------------------------------------------------------------- */

/* The values of windows where their places say, 0 elsewhere.  Overlapping windows may have one place, and one value. */
void slp_onnx_import_max_unpool(struct slp_onnx_call *c)
{
	struct slp_onnx_window w;
	int64_t sizes[SL_MAX_NDIM];
	sl_shape y = slp_onnx_shape(c, 0);
	if (!slp_onnx_window_read(c, y, NULL, &w)) return;
	for (int i = 0; i < w.axes; i++) {
		int p = slp_onnx_window_place(w.axes, i);
		y.dim[2 + i] = (w.size[p] - 1) * w.stride[p] + w.kernel[p] - w.begin[p] - w.end[p];
	}
	int n = slp_onnx_ints_in(c, 2, NULL, sizes, SL_MAX_NDIM);
	if (!slp_shape_valid(y) || sl_shape_size(y) > INT32_MAX)
		slp_onnx_call_fail(c, SL_ESHAPE, "its result would be empty or too large");
	sl_tensor *x = slp_onnx_tensor(c, 0), *where = slp_onnx_indices(c, c->in[1], sl_shape_size(y));
	if (!x || !where || c->failed) {
		c->failed = true;
		return;
	}
	struct sl_make make = {sl_tensor_dtype(x), sl_tensor_device(x)};
	sl_tensor *zeros = sl_zeros_at(c->at, SL_SHAPE(sl_shape_size(y), 1), make);
	x = sl_reshape_at(c->at, x, SL_SHAPE(-1, 1)), where = sl_reshape_at(c->at, where, SL_SHAPE(-1));
	sl_tensor *ones = x ? sl_ones_at(c->at, sl_tensor_shape(x), make) : NULL;
	sl_tensor *hits = ones ? sl_index_add_at(c->at, zeros, where, ones) : NULL;
	sl_tensor *t = hits ? sl_index_add_at(c->at, zeros, where, x) : NULL;
	t = t ? sl_div_at(c->at, t, sl_maximum_scalar_at(c->at, hits, 1)) : NULL;
	t = t ? sl_reshape_at(c->at, t, y) : NULL;
	for (int i = 0; i < n && n == y.ndim && t; i++) /* places are those without this */
		if (sizes[i] > y.dim[i]) t = sl_pad_at(c->at, t, i, 0, sizes[i] - y.dim[i], (struct sl_pad_opts){0});
	slp_onnx_set_output(c, 0, t);
}

void slp_onnx_import_global_pool(struct slp_onnx_call *c)
{
	bool mean = c->op->name[6] == 'A';
	int axes[SL_MAX_NDIM], n = 0;
	sl_shape x = slp_onnx_shape(c, 0);
	if (c->failed) return;
	sl_tensor *t = slp_onnx_tensor(c, 0);
	if (x.ndim == 4) {
		slp_onnx_set_output(c, 0,
		                    sl_pool2d_at(c->at, t,
		                                 (struct sl_pool2d_opts){.type = mean ? SL_POOL_AVG : SL_POOL_MAX,
		                                                         .global = true}));
		return;
	}
	for (int i = 2; i < x.ndim; i++) axes[n++] = i;
	if (!n) slp_onnx_call_fail(c, SL_ESHAPE, "the input has %d axes, at least 3 needed", x.ndim);
	else
		slp_onnx_set_output(
		        c, 0,
		        (mean ? sl_mean_at : sl_max_at)(
		                c->at, t, (struct sl_reduce_opts){.axes = axes, .naxes = n, .keepdims = true}));
}
