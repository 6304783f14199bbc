/* ONNX operators, computed: elements by their places. */
#include <stdlib.h>

#include "interop/onnx_import.h"

/* ---- along an axis ----------------------------------------------------------------------------------------------- */

/* x cut, along the other axes, to what the indices reach. */
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
	slp_onnx_give(c, 0, t && where ? sl_take_along_at(c->at, t, where, axis) : NULL);
}

/* New values where something was written, else the old ones; added, if that is wanted. */
static sl_tensor *merged(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *sums, sl_tensor *hits, bool add)
{
	if (!x || !sums || (!add && !hits)) return NULL;
	return add ? sl_add_at(c->at, x, sums) : sl_where_at(c->at, hits, sums, x);
}

static bool adds(struct slp_onnx_call *c)
{
	if (!slp_onnx_attr_is(c, "reduction", "none", "none") && !slp_onnx_attr_is(c, "reduction", "none", "add"))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "attribute reduction can be none or add");
	return slp_onnx_attr_is(c, "reduction", "none", "add");
}

/* Sums are of floats here, as gradients are. */
static sl_tensor *as_float(struct slp_onnx_call *c, sl_tensor *t)
{
	return t && !slp_is_float(sl_tensor_dtype(t)) ? sl_cast_at(c->at, t, SL_FLOAT64) : t;
}

void slp_onnx_import_scatter_elements(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0), i = slp_onnx_shape(c, 1);
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 0), x.ndim);
	bool add = adds(c);
	for (int a = 0; a < x.ndim && !c->failed; a++)
		if (i.ndim != x.ndim || (a != axis && i.dim[a] != x.dim[a]))
			slp_onnx_call_fail(c, SL_EUNSUPPORTED, "indices must have the data's shape but for axis %d",
			                   axis);
	if (c->failed) return;
	sl_tensor *t = slp_onnx_tensor(c, 0), *where = slp_onnx_indices(c, c->in[1], x.dim[axis]);
	sl_tensor *v = as_float(c, slp_onnx_tensor(c, 2)), *base = as_float(c, t);
	if (!v || !base || !where) {
		c->failed = true;
		return;
	}
	struct sl_make make = {sl_tensor_dtype(v), sl_tensor_device(v)};
	sl_tensor *zeros = sl_zeros_at(c->at, x, make), *sums = sl_scatter_add_at(c->at, zeros, where, v, axis);
	sl_tensor *hits = add ? NULL : sl_scatter_add_at(c->at, zeros, where, sl_ones_at(c->at, i, make), axis);
	sl_tensor *y = merged(c, base, sums, hits, add);
	slp_onnx_give(c, 0, y ? slp_onnx_cast(c, (struct slp_onnx_value){.t = y}, sl_tensor_dtype(t)).t : NULL);
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
	slp_onnx_give(c, 0, t ? sl_reshape_at(c->at, t, y) : NULL);
}

void slp_onnx_import_scatter_nd(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0);
	bool add = adds(c);
	int64_t rows, width;
	sl_tensor *where = NULL;
	if (c->failed || !nd_rows(c, x, slp_onnx_shape(c, 1), 0, &rows, &width, &where)) {
		c->failed = true;
		return;
	}
	sl_tensor *t = slp_onnx_tensor(c, 0), *base = as_float(c, t), *v = as_float(c, slp_onnx_tensor(c, 2));
	sl_shape count = sl_tensor_shape(where), flat = SL_SHAPE(count.dim[0], width);
	v = v ? sl_reshape_at(c->at, v, flat) : NULL;
	if (!base || !v) {
		c->failed = true;
		return;
	}
	struct sl_make make = {sl_tensor_dtype(v), sl_tensor_device(v)};
	sl_tensor *zeros = sl_zeros_at(c->at, SL_SHAPE(rows, width), make),
	          *sums = sl_index_add_at(c->at, zeros, where, v);
	sl_tensor *hits = add ? NULL : sl_index_add_at(c->at, zeros, where, sl_ones_at(c->at, flat, make));
	sl_tensor *y = merged(c, sl_reshape_at(c->at, base, SL_SHAPE(rows, width)), sums, hits, add);
	y = y ? slp_onnx_cast(c, (struct slp_onnx_value){.t = y}, sl_tensor_dtype(t)).t : NULL;
	slp_onnx_give(c, 0, y ? sl_reshape_at(c->at, y, x) : NULL);
}

/* How many there are must be known. */
void slp_onnx_import_nonzero(struct slp_onnx_call *c)
{
	const struct slp_onnx_known *k = slp_onnx_known_in(c, 0);
	int64_t n = k ? sl_shape_size(k->shape) : 0, count = 0, place = 0;
	for (int64_t i = 0; i < n; i++) count += slp_onnx_known_number(k, i) != 0;
	struct slp_onnx_known *y = k ? slp_onnx_known_new(c->made, SL_INT64, SL_SHAPE(k->shape.ndim, count)) : NULL;
	for (int64_t i = 0; y && i < n; i++) {
		if (slp_onnx_known_number(k, i) == 0) continue;
		int64_t rest = i;
		for (int a = k->shape.ndim - 1; a >= 0; rest /= k->shape.dim[a--])
			y->v[a * count + place].i = rest % k->shape.dim[a];
		place++;
	}
	if (k) slp_onnx_give_value(c, 0, (struct slp_onnx_value){.known = y});
}

/* ---- patterns ---------------------------------------------------------------------------------------------------- */

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
	sl_tensor *y = sl_one_hot_at(c->at, i, depth, (struct sl_make){.dtype = slp_onnx_computed(values->dtype)});
	if (on - off != 1) y = sl_mul_scalar_at(c->at, y, on - off);
	if (off != 0) y = sl_add_scalar_at(c->at, y, off);
	if (y) slp_onnx_give_value(c, 0, slp_onnx_axis_moved(c, (struct slp_onnx_value){.t = y}, ndim, axis));
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
		slp_onnx_call_fail(c, SL_ESHAPE, "makes matrices, of a data type that is there");
	if (c->failed) return;
	sl_tensor *y = sl_eq_scalar_at(c->at, diagonals(c, x.dim[0], x.dim[1]), (double)slp_onnx_attr_int(c, "k", 0));
	slp_onnx_give(c, 0, y ? sl_cast_at(c->at, y, slp_onnx_computed(dtype)) : NULL);
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
	slp_onnx_give(c, 0, where && zero ? sl_where_at(c->at, where, t, zero) : NULL);
}
