/* ONNX operators, computed: indexing: gather, scatter, one-hot, diagonals. */
#include <math.h>
#include <stdlib.h>

#include "onnx/model/call.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/functions.h"

/* ---- along an axis ----------------------------------------------------------------------------------------------- */

/* x cut, along the other axes, to the range of the indices. */
static sl_tensor *cut_to(struct slp_onnx_call *c, sl_tensor *x, sl_shape indices, int axis)
{
	sl_shape s = sl_tensor_shape(x);
	if (s.ndim != indices.ndim)
		slp_onnx_call_fail(c, SL_ESHAPE, "indices have %d axes, the data %d", indices.ndim, s.ndim);
	for (int i = 0; i < s.ndim && !c->failed; i++) {
		if (i == axis || s.dim[i] == indices.dim[i]) continue;
		if (indices.dim[i] > s.dim[i])
			slp_onnx_call_fail(c, SL_ESHAPE, "more indices than data along axis %d", i);
		else x = sl_slice_at(c->at, x, i, 0, indices.dim[i], 1);
	}
	return c->failed ? NULL : x;
}

void slp_onnx_import_gather_elements(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0), i = slp_onnx_shape(c, 1);
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 0), x.ndim);
	if (c->failed) return;
	sl_tensor *t = slp_onnx_tensor(c, 0), *where = slp_onnx_indices(c, c->in[1], x.dim[axis]);
	if (t) t = cut_to(c, t, i, axis);
	slp_onnx_set_output(c, 0, t && where ? sl_take_along_at(c->at, t, where, axis) : NULL);
}

/* v added to zeros of this shape, where the indices say: along an axis; axis -1: rows. */
static sl_tensor *placed(struct slp_onnx_call *c, sl_shape shape, sl_tensor *where, sl_tensor *v, int axis)
{
	if (!v) return NULL;
	sl_tensor *zeros = sl_zeros_at(c->at, shape, (struct sl_make){sl_tensor_dtype(v), sl_tensor_device(v)});
	return axis < 0 ? sl_index_add_at(c->at, zeros, where, v) : sl_scatter_add_at(c->at, zeros, where, v, axis);
}

static sl_tensor *placed_whole(struct slp_onnx_call *c, sl_shape shape, sl_tensor *where, sl_tensor *v, int axis)
{
	enum sl_dtype dtype = sl_tensor_dtype(v);
	return sl_cast_at(c->at, placed(c, shape, where, sl_cast_at(c->at, v, SL_FLOAT64), axis), dtype);
}

/* The same of any type.  Sums are of floats here, as gradients are: of an int64, of both its halves. */
static sl_tensor *placed_any(struct slp_onnx_call *c, sl_shape shape, sl_tensor *where, sl_tensor *v, int axis)
{
	if (slp_is_float(sl_tensor_dtype(v))) return placed(c, shape, where, v, axis);
	if (sl_tensor_dtype(v) != SL_INT64) return placed_whole(c, shape, where, v, axis);
	sl_tensor *high = sl_div_scalar_at(c->at, v, 0x1p32);
	sl_tensor *low = high ? sl_sub_at(c->at, v, sl_mul_scalar_at(c->at, high, 0x1p32)) : NULL;
	if (!low) return NULL;
	high = placed_whole(c, shape, where, high, axis);
	return sl_add_at(c->at, sl_mul_scalar_at(c->at, high, 0x1p32), placed_whole(c, shape, where, low, axis));
}

enum reduction { NONE, ADD, MUL, MAX, MIN, REDUCTIONS };

static enum reduction reduction(struct slp_onnx_call *c)
{
	static const char *const names[] = {"none", "add", "mul", "max", "min"};
	enum reduction r = NONE;
	while (r < REDUCTIONS && !slp_onnx_attr_is(c, "reduction", "none", names[r])) r++;
	if (r == REDUCTIONS) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "its reduction is not supported");
	return r;
}

/* The neutral element: 1 for products; the least, or most, of a type. */
static double neutral(enum sl_dtype dtype, enum reduction r)
{
	if (r == MUL) return 1;
	if (slp_is_float(dtype)) return r == MAX ? -INFINITY : INFINITY;
	if (dtype == SL_INT64) return r == MAX ? -0x1p63 : 0x1p63;
	if (dtype == SL_INT32) return r == MAX ? INT32_MIN : INT32_MAX;
	return r == MAX ? 0 : UINT8_MAX;
}

/* Products, or the largest or smallest: each element of x, (…, n), with all of v, (…, k), with neutral elements for
 * those of other places. */
static sl_tensor *combined(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *where, sl_tensor *v, enum reduction r)
{
	static const struct {
		sl_tensor *(*all)(const char *, sl_tensor *, struct sl_reduce_opts);
		sl_tensor *(*two)(const char *, sl_tensor *, sl_tensor *);
	} functions[] = {[MUL] = {sl_prod_at, sl_mul_at},
	                 [MAX] = {sl_max_at, sl_maximum_at},
	                 [MIN] = {sl_min_at, sl_minimum_at}};
	sl_shape s = sl_tensor_shape(v);
	int64_t n = sl_tensor_shape(x).dim[s.ndim - 1];
	if (s.ndim == SL_MAX_NDIM || n * sl_shape_size(s) > INT32_MAX)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "updates of this shape cannot be reduced");
	if (c->failed || !s.dim[s.ndim - 1]) return c->failed ? NULL : x;
	s.dim[s.ndim++] = 1;
	struct sl_make make = {sl_tensor_dtype(v), sl_tensor_device(v)};
	sl_tensor *none = sl_full_at(c->at, SL_SCALAR, neutral(make.dtype, r), make);
	sl_tensor *goes = sl_one_hot_at(c->at, where, n, (struct sl_make){.dtype = SL_BOOL});
	v = sl_reshape_at(c->at, v, s);
	v = none && goes && v ? sl_where_at(c->at, goes, v, none) : NULL;
	v = v ? functions[r].all(c->at, v, (struct sl_reduce_opts){SL_AXES(-2)}) : NULL;
	return v ? functions[r].two(c->at, x, v) : NULL;
}

static sl_tensor *axis_moved(struct slp_onnx_call *c, sl_tensor *t, int from, int to)
{
	return t ? slp_onnx_axis_moved(c, (struct slp_onnx_value){.t = t}, from, to).t : NULL;
}

/* Along an axis; axis -1: rows. */
static sl_tensor *combined_along(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *where, sl_tensor *v, int axis,
                                 enum reduction r)
{
	int last = sl_tensor_shape(x).ndim - 1;
	if (axis < 0) {
		sl_shape s = sl_tensor_shape(v);
		where = sl_broadcast_to_at(c->at, sl_reshape_at(c->at, where, SL_SHAPE(s.dim[0], 1)), s);
		axis = 0;
	}
	x = axis_moved(c, x, axis, last), where = axis_moved(c, where, axis, last), v = axis_moved(c, v, axis, last);
	sl_tensor *y = x && where && v ? combined(c, x, where, v, r) : NULL;
	return axis_moved(c, y, last, axis);
}

/* Whether indices that are known name each place once, because they grow: along an axis; axis -1: rows of them. */
static bool is_growing(const struct slp_onnx_known *k, int axis)
{
	int64_t n = k ? sl_shape_size(k->shape) : 0, width = k && axis < 0 ? k->shape.dim[k->shape.ndim - 1] : 1,
	        step = 1;
	for (int a = k && axis >= 0 ? k->shape.ndim - 1 : -1; a > axis; a--) step *= k->shape.dim[a];
	for (int64_t i = 0; i < n; i += width) {
		bool first = axis < 0 ? i == 0 : i / step % k->shape.dim[axis] == 0;
		int64_t j = 0, before = axis < 0 ? width : step;
		for (int64_t m = 0; m < width; m++)
			if (k->v[i + m].i < 0) return false;
		while (!first && j < width && k->v[i + j].i == k->v[i + j - before].i) j++;
		if (!first && (j == width || k->v[i + j].i < k->v[i + j - before].i)) return false;
	}
	return k != NULL;
}

/* Sorted, so that elements of one place are adjacent; 1 for the last of them, which counts, 0 for the others. */
static sl_tensor *sorted_by_place(struct slp_onnx_call *c, sl_tensor **where, sl_tensor **v, int axis)
{
	int a = axis < 0 ? 0 : axis;
	int64_t n = sl_tensor_shape(*where).dim[a];
	sl_tensor *order = n ? sl_argsort_at(c->at, *where, a, false) : NULL;
	if (!order) return n ? NULL : *where;
	*where = sl_take_along_at(c->at, *where, order, a);
	*v = axis < 0 ? sl_gather_at(c->at, *v, order) : sl_take_along_at(c->at, *v, order, a);
	if (!*where || !*v) return NULL;
	sl_tensor *next = sl_slice_at(c->at, *where, a, 1, n, 1), *other = sl_slice_at(c->at, *where, a, 0, n - 1, 1);
	other = next && other ? sl_ne_at(c->at, other, next) : NULL;
	return other ? sl_pad_at(c->at, other, a, 0, 1, (struct sl_pad_opts){.value = 1}) : NULL;
}

/* x with the last element of v that goes there, as if they were written one after the other. */
static sl_tensor *replaced(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *where, sl_tensor *v, int axis)
{
	sl_shape shape = sl_tensor_shape(x), s = sl_tensor_shape(where), hit = shape;
	enum sl_dtype dtype = slp_is_float(sl_tensor_dtype(v)) ? sl_tensor_dtype(v) : SL_FLOAT32;
	sl_tensor *counts = NULL;
	if (axis < 0) hit.dim[1] = 1, s = SL_SHAPE(s.dim[0], 1); /* of rows: one for each */
	if (is_growing(c->in[1].known, axis)) {
		counts = sl_ones_at(c->at, s, (struct sl_make){dtype, sl_tensor_device(v)});
	} else {
		counts = sorted_by_place(c, &where, &v, axis);
		counts = counts ? sl_reshape_at(c->at, counts, s) : NULL;
		sl_tensor *none =
		        v ? sl_zeros_at(c->at, SL_SCALAR, (struct sl_make){sl_tensor_dtype(v), sl_tensor_device(v)})
		          : NULL;
		v = counts && none ? sl_where_at(c->at, counts, v, none) : NULL;
		counts = v ? sl_cast_at(c->at, counts, dtype) : NULL;
	}
	sl_tensor *sums = v ? placed_any(c, shape, where, v, axis) : NULL,
	          *hits = sums ? placed(c, hit, where, counts, axis) : NULL;
	return hits ? sl_where_at(c->at, hits, sums, x) : NULL;
}

/* Rows of x, or of v where the indices say: moved, not added. */
static sl_tensor *replaced_rows(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *where, sl_tensor *v)
{
	struct sl_make make = {SL_INT32, sl_tensor_device(x)};
	int64_t n = sl_tensor_shape(x).dim[0], k = sl_tensor_shape(v).dim[0];
	if (!k) return x;
	sl_tensor *old = sl_reshape_at(c->at, sl_arange_at(c->at, 0, (double)n, 1, make), SL_SHAPE(n, 1)),
	          *fresh = sl_reshape_at(c->at, sl_arange_at(c->at, (double)n, (double)(n + k), 1, make),
	                                 SL_SHAPE(k, 1));
	sl_tensor *from = old && fresh ? replaced(c, old, where, fresh, -1) : NULL,
	          *both = from ? sl_concat_at(c->at, (sl_tensor *[]){x, v}, 2, 0) : NULL;
	return both ? sl_gather_at(c->at, both, sl_reshape_at(c->at, from, SL_SHAPE(n))) : NULL;
}

/* x with v where the indices say, or with that added, and so on. */
static sl_tensor *scattered(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *where, sl_tensor *v, int axis,
                            enum reduction r)
{
	if (!x || !where || !v) return NULL;
	enum { WIDE = 16 };
	if (r == NONE && axis < 0 && sl_tensor_shape(x).dim[1] >= WIDE) return replaced_rows(c, x, where, v);
	if (r == NONE) return replaced(c, x, where, v, axis);
	if (r != ADD) return combined_along(c, x, where, v, axis, r);
	sl_tensor *sums = placed_any(c, sl_tensor_shape(x), where, v, axis);
	return sums ? sl_add_at(c->at, x, sums) : NULL;
}

/* The same where there are fewer indices than data along other axes: the rest of x stays. */
static sl_tensor *scattered_part(struct slp_onnx_call *c, sl_tensor *x, struct slp_onnx_value indices, sl_tensor *v,
                                 int axis, enum reduction r)
{
	sl_shape s = x ? sl_tensor_shape(x) : SL_SCALAR, i = slp_onnx_shape_of(c, indices);
	for (int a = 0; x && a < s.ndim && !c->failed; a++) {
		if (a == axis || i.dim[a] == s.dim[a]) continue;
		sl_tensor *parts[] = {sl_slice_at(c->at, x, a, 0, i.dim[a], 1),
		                      sl_slice_at(c->at, x, a, i.dim[a], s.dim[a], 1)};
		parts[0] = scattered_part(c, parts[0], indices, v, axis, r);
		return parts[0] && parts[1] ? sl_concat_at(c->at, parts, 2, a) : NULL;
	}
	return scattered(c, x, slp_onnx_indices(c, indices, s.dim[axis]), v, axis, r);
}

/* Numbers that are known, such as shapes, with others in some places. */
static void scatter_known(struct slp_onnx_call *c)
{
	const struct slp_onnx_known *x = c->in[0].known, *where = c->in[1].known, *v = c->in[2].known;
	struct slp_onnx_known *y = slp_onnx_known_new(c->made, x->dtype, x->shape);
	int64_t n = sl_shape_size(x->shape);
	if (y && n) memcpy(y->v, x->v, (size_t)n * sizeof *y->v);
	for (int64_t i = 0; y && i < sl_shape_size(where->shape) && !c->failed; i++) {
		int64_t at = where->v[i].i < 0 ? where->v[i].i + n : where->v[i].i;
		if (at < 0 || at >= n)
			slp_onnx_call_fail(c, SL_ESHAPE, "index %lld of %lld", (long long)where->v[i].i, (long long)n);
		else y->v[at] = v->v[i];
	}
	if (!c->failed) slp_onnx_set_output_value(c, 0, (struct slp_onnx_value){.known = y});
}

void slp_onnx_import_scatter_elements(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0), i = slp_onnx_shape(c, 1), v = slp_onnx_shape(c, 2);
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 0), x.ndim);
	enum reduction r = reduction(c);
	bool known = c->in[0].known && c->in[1].known && c->in[2].known;
	if (!c->failed && (i.ndim != x.ndim || !sl_shape_equal(i, v)))
		slp_onnx_call_fail(c, SL_ESHAPE, "indices must have as many axes as the data, and the updates' shape");
	for (int a = 0; a < x.ndim && !c->failed; a++)
		if (a != axis && i.dim[a] > x.dim[a])
			slp_onnx_call_fail(c, SL_ESHAPE, "more indices than data along axis %d", a);
	if (c->failed) return;
	if (known && x.ndim == 1 && r == NONE && c->in[0].known->dtype == c->in[2].known->dtype) scatter_known(c);
	else
		slp_onnx_set_output(c, 0,
		                    scattered_part(c, slp_onnx_tensor(c, 0), c->in[1], slp_onnx_tensor(c, 2), axis, r));
}

/* ---- by several axes --------------------------------------------------------------------------------------------- */

/* Indices (…, k) of the first k axes after `batch` as numbers of rows; the rows of a sample follow those before it. */
static struct slp_onnx_value row_numbers(struct slp_onnx_call *c, sl_shape x, sl_shape i, int batch, int64_t rows)
{
	int k = (int)i.dim[i.ndim - 1];
	sl_tensor *sum = NULL;
	int64_t step = rows;
	for (int a = 0; a < k && !c->failed; a++) {
		int64_t n = x.dim[batch + a];
		step = n ? step / n : 0;
		struct slp_onnx_value one = slp_onnx_sliced(c, c->in[1], i.ndim - 1, a, a + 1, 1);
		sl_tensor *t = one.t || one.known ? slp_onnx_indices(c, one, n) : NULL;
		if (t) t = sl_mul_scalar_at(c->at, t, (double)step);
		sum = sum && t ? sl_add_at(c->at, sum, t) : t;
		if (!sum) c->failed = true;
	}
	return (struct slp_onnx_value){.t = sum};
}

/* Numbers of rows, one after another; false after an error. */
static bool nd_rows(struct slp_onnx_call *c, sl_shape x, sl_shape i, int batch, int64_t *rows, int64_t *width,
                    sl_tensor **where)
{
	int64_t k = i.ndim ? i.dim[i.ndim - 1] : -1, samples = 1;
	*rows = *width = 1;
	if (k < 1 || k + batch > x.ndim || batch >= i.ndim)
		slp_onnx_call_fail(c, SL_ESHAPE, "indices of %lld axes", (long long)k);
	for (int a = 0; a < x.ndim && !c->failed; a++) {
		if (a < batch && x.dim[a] != i.dim[a])
			slp_onnx_call_fail(c, SL_ESHAPE, "batch_dims %d do not fit", batch);
		*(a < batch ? &samples : a < batch + k ? rows : width) *= x.dim[a];
	}
	if (samples * *rows > INT32_MAX) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "more than 2^31 rows");
	if (c->failed) return false;
	sl_tensor *t = row_numbers(c, x, i, batch, *rows).t;
	t = t ? sl_reshape_at(c->at, t, SL_SHAPE(samples, -1)) : NULL;
	if (t && samples > 1) {
		struct sl_make make = {SL_INT32, sl_tensor_device(t)};
		sl_tensor *first = sl_arange_at(c->at, 0, (double)samples, 1, make);
		first = sl_mul_scalar_at(c->at, sl_reshape_at(c->at, first, SL_SHAPE(samples, 1)), (double)*rows);
		t = sl_add_at(c->at, t, first);
	}
	*where = t ? sl_reshape_at(c->at, t, SL_SHAPE(-1)) : NULL;
	*rows *= samples;
	return *where != NULL;
}

void slp_onnx_import_gather_nd(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0), i = slp_onnx_shape(c, 1), y = i;
	int batch = slp_onnx_attr_small(c, "batch_dims", 0, 0, SL_MAX_NDIM - 1);
	int64_t rows, width;
	sl_tensor *where = NULL;
	if (c->failed || !nd_rows(c, x, i, batch, &rows, &width, &where)) {
		c->failed = true;
		return;
	}
	y.ndim--;
	for (int a = batch + (int)i.dim[i.ndim - 1]; a < x.ndim && y.ndim < SL_MAX_NDIM; a++)
		y.dim[y.ndim++] = x.dim[a];
	sl_tensor *t = sl_gather_at(c->at, sl_reshape_at(c->at, slp_onnx_tensor(c, 0), SL_SHAPE(rows, width)), where);
	slp_onnx_set_output(c, 0, t ? sl_reshape_at(c->at, t, y) : NULL);
}

/* Numbers of rows, spread over parts of these (spread.c). */
static bool scatter_parts(struct slp_onnx_call *c, sl_shape x, sl_shape i, enum reduction r)
{
	sl_shape v = slp_onnx_shape(c, 2);
	bool column = v.ndim == x.ndim && i.ndim == x.ndim && i.dim[0] == v.dim[0] && sl_shape_size(i) == i.dim[0];
	if (!column || sl_shape_equal(v, i) || sl_shape_size(v) == i.dim[0] * (sl_shape_size(x) / x.dim[0]))
		return false;
	sl_tensor *where = slp_onnx_tensor(c, 1);
	struct slp_onnx_value spread = {.t = where ? sl_broadcast_to_at(c->at, where, v) : NULL};
	slp_onnx_set_output(
	        c, 0, spread.t ? scattered_part(c, slp_onnx_tensor(c, 0), spread, slp_onnx_tensor(c, 2), 0, r) : NULL);
	return true;
}

void slp_onnx_import_scatter_nd(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0);
	enum reduction r = reduction(c);
	int64_t rows, width;
	sl_tensor *where = NULL;
	if (!c->failed && x.ndim && x.dim[0] && scatter_parts(c, x, slp_onnx_shape(c, 1), r)) return;
	if (c->failed || !nd_rows(c, x, slp_onnx_shape(c, 1), 0, &rows, &width, &where)) {
		c->failed = true;
		return;
	}
	sl_tensor *t = slp_onnx_tensor(c, 0), *v = slp_onnx_tensor(c, 2);
	t = sl_reshape_at(c->at, t, SL_SHAPE(rows, width));
	v = sl_reshape_at(c->at, v, SL_SHAPE(sl_tensor_shape(where).dim[0], width));
	sl_tensor *y = scattered(c, t, where, v, -1, r);
	slp_onnx_set_output(c, 0, y ? sl_reshape_at(c->at, y, x) : NULL);
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

/* Element i of a known value, as a tensor. */
static sl_tensor *one_of(struct slp_onnx_call *c, const struct slp_onnx_known *k, int64_t i)
{
	struct slp_onnx_value v = {.known = slp_onnx_known_strided(c, k, SL_SCALAR, i, NULL)};
	return v.known ? slp_onnx_as_tensor(c, v) : NULL;
}

void slp_onnx_import_one_hot(struct slp_onnx_call *c)
{
	const struct slp_onnx_known *values = slp_onnx_known_in(c, 2);
	int64_t depth = (int64_t)slp_onnx_number_in(c, 1, NULL, 0);
	int ndim = slp_onnx_shape(c, 0).ndim, axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", -1), ndim + 1);
	if (!c->failed && (depth < 1 || ndim == SL_MAX_NDIM || sl_shape_size(values->shape) != 2))
		slp_onnx_call_fail(c, SL_ESHAPE, "a depth of %lld, %d axes", (long long)depth, ndim + 1);
	sl_tensor *i = c->failed ? NULL : slp_onnx_indices(c, c->in[0], depth);
	if (!i) {
		c->failed = true;
		return;
	}
	double off = slp_onnx_known_number(values, 0), on = slp_onnx_known_number(values, 1);
	bool is_float = slp_is_float(values->dtype), plain = is_float || (off == 0 && on == 1);
	sl_tensor *y = sl_one_hot_at(c->at, i, depth, (struct sl_make){.dtype = plain ? values->dtype : SL_BOOL});
	if (is_float && on - off != 1) y = sl_mul_scalar_at(c->at, y, on - off);
	if (is_float && off != 0) y = sl_add_scalar_at(c->at, y, off);
	if (!plain) y = y ? sl_where_at(c->at, y, one_of(c, values, 1), one_of(c, values, 0)) : NULL;
	if (y) slp_onnx_set_output_value(c, 0, slp_onnx_axis_moved(c, (struct slp_onnx_value){.t = y}, ndim, axis));
	else c->failed = true;
}

/* Column minus row, (rows, columns), int32. */
static sl_tensor *diagonals(struct slp_onnx_call *c, int64_t rows, int64_t columns)
{
	struct sl_make make = {SL_INT32, sl_tensor_device(c->beside)};
	sl_tensor *row = sl_reshape_at(c->at, sl_arange_at(c->at, 0, (double)rows, 1, make), SL_SHAPE(rows, 1));
	return sl_sub_at(c->at, sl_arange_at(c->at, 0, (double)columns, 1, make), row);
}

void slp_onnx_import_eye_like(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0);
	enum sl_dtype dtype = slp_onnx_attr(c, "dtype") ? slp_onnx_dtype_numbered((int)slp_onnx_attr_int(c, "dtype", 0))
	                                                : slp_onnx_dtype(&c->in[0]);
	if (x.ndim != 2 || dtype == SL_DTYPE_DEFAULT)
		slp_onnx_call_fail(c, SL_ESHAPE, "makes matrices only, of a known data type");
	if (c->failed) return;
	sl_tensor *y = sl_eq_scalar_at(c->at, diagonals(c, x.dim[0], x.dim[1]), (double)slp_onnx_attr_int(c, "k", 0));
	slp_onnx_set_output(c, 0, y ? sl_cast_at(c->at, y, dtype) : NULL);
	c->out[0].type = (int)slp_onnx_attr_int(c, "dtype", slp_onnx_type_of(&c->in[0]));
}

void slp_onnx_import_trilu(struct slp_onnx_call *c)
{
	bool upper = slp_onnx_attr_int(c, "upper", 1) != 0;
	double k = slp_onnx_number_in(c, 1, NULL, 0);
	sl_shape x = slp_onnx_shape(c, 0);
	if (!c->failed && x.ndim < 2)
		slp_onnx_call_fail(c, SL_ESHAPE, "the input has %d axes, at least 2 needed", x.ndim);
	if (c->failed) return;
	sl_tensor *t = slp_onnx_tensor(c, 0), *where = diagonals(c, x.dim[x.ndim - 2], x.dim[x.ndim - 1]);
	where = (upper ? sl_ge_scalar_at : sl_le_scalar_at)(c->at, where, k);
	sl_tensor *zero =
	        t ? sl_zeros_at(c->at, SL_SCALAR, (struct sl_make){sl_tensor_dtype(t), sl_tensor_device(t)}) : NULL;
	slp_onnx_set_output(c, 0, where && zero ? sl_where_at(c->at, where, t, zero) : NULL);
}
