/* ONNX models: reshaping, slicing, joining, gathering: of known numbers while they are few, else of tensors. */
#include <stdlib.h>

#include "onnx/model/call.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

static const struct slp_onnx_value nothing = {0};

static struct slp_onnx_value of_tensor(sl_tensor *t)
{
	return (struct slp_onnx_value){.t = t};
}

static struct slp_onnx_value of_known(struct slp_onnx_known *k)
{
	return (struct slp_onnx_value){.known = k};
}

/* Steps in elements along the axes of a shape. */
static void steps_of(sl_shape shape, int64_t steps[SL_MAX_NDIM])
{
	int64_t n = 1;
	for (int i = shape.ndim - 1; i >= 0; i--) {
		steps[i] = n;
		n *= shape.dim[i];
	}
}

struct slp_onnx_value slp_onnx_reshaped(struct slp_onnx_call *c, struct slp_onnx_value v, sl_shape shape)
{
	int64_t steps[SL_MAX_NDIM];
	char from[128], to[128];
	sl_shape x = slp_onnx_shape_of(c, v);
	if (c->failed) return nothing;
	if (!slp_shape_valid(shape) || sl_shape_size(x) != sl_shape_size(shape)) {
		slp_onnx_call_fail(c, SL_ESHAPE, "%s does not fill %s", sl_shape_string(x, from),
		                   sl_shape_string(shape, to));
		return nothing;
	}
	if (sl_shape_equal(x, shape)) return v;
	if (!v.known) return of_tensor(sl_reshape_at(c->at, v.t, shape));
	steps_of(shape, steps);
	return of_known(slp_onnx_known_strided(c, v.known, shape, 0, steps));
}

struct slp_onnx_value slp_onnx_transposed(struct slp_onnx_call *c, struct slp_onnx_value v, const int *axes)
{
	sl_shape x = slp_onnx_shape_of(c, v), y = x;
	int64_t from[SL_MAX_NDIM], steps[SL_MAX_NDIM];
	bool same = true;
	for (int i = 0; i < x.ndim; i++) same &= axes[i] == i;
	if (c->failed || same) return c->failed ? nothing : v;
	if (!v.known)
		return of_tensor(sl_transpose_at(c->at, v.t, (struct sl_reduce_opts){.axes = axes, .naxes = x.ndim}));
	steps_of(x, from);
	for (int i = 0; i < x.ndim; i++) {
		y.dim[i] = x.dim[axes[i]];
		steps[i] = from[axes[i]];
	}
	return of_known(slp_onnx_known_strided(c, v.known, y, 0, steps));
}

struct slp_onnx_value slp_onnx_with_axis(struct slp_onnx_call *c, struct slp_onnx_value v, int64_t axis)
{
	sl_shape x = slp_onnx_shape_of(c, v), y = {.ndim = x.ndim + 1};
	if (!c->failed && y.ndim > SL_MAX_NDIM)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "makes %d axes, more than %d", y.ndim, SL_MAX_NDIM);
	int at = c->failed ? 0 : slp_onnx_axis(c, axis, y.ndim);
	for (int i = 0, k = 0; i < y.ndim && !c->failed; i++) y.dim[i] = i == at ? 1 : x.dim[k++];
	return c->failed ? nothing : slp_onnx_reshaped(c, v, y);
}

/* An end of a slice, from the start, cut off at low and high. */
static int64_t cut(int64_t end, int64_t n, int64_t low, int64_t high)
{
	if (end < 0) end = end < -n ? low : end + n;
	return end < low ? low : end > high ? high : end;
}

struct slp_onnx_value slp_onnx_sliced(struct slp_onnx_call *c, struct slp_onnx_value v, int axis, int64_t begin,
                                      int64_t end, int64_t step)
{
	sl_shape y = slp_onnx_shape_of(c, v);
	int64_t steps[SL_MAX_NDIM], n = c->failed ? 0 : y.dim[axis];
	if (step == 0 || step == INT64_MIN) slp_onnx_call_fail(c, SL_EFORMAT, "a step of %lld", (long long)step);
	if (c->failed) return nothing;
	if (n == 0) return v;
	begin = step > 0 ? cut(begin, n, 0, n) : cut(begin, n, 0, n - 1);
	end = step > 0 ? cut(end, n, 0, n) : cut(end, n, -1, n - 1);
	int64_t length = step > 0 ? end - begin : begin - end, stride = step > 0 ? step : -step;
	int64_t count = length > 0 ? (length - 1) / stride + 1 : 0;
	if (begin == 0 && count == n && step == 1) return v;
	if (!v.known) /* a tensor's slice counts an end of -1 from the end */
		return of_tensor(count ? sl_slice_at(c->at, v.t, axis, begin, end < 0 ? INT64_MIN : end, step)
		                       : sl_slice_at(c->at, v.t, axis, 0, 0, 1));
	steps_of(y, steps);
	int64_t first = count ? begin * steps[axis] : 0;
	y.dim[axis] = count;
	steps[axis] = count > 1 ? steps[axis] * step : 0;
	return of_known(slp_onnx_known_strided(c, v.known, y, first, steps));
}

struct slp_onnx_value slp_onnx_broadcast(struct slp_onnx_call *c, struct slp_onnx_value v, sl_shape shape)
{
	sl_shape x = slp_onnx_shape_of(c, v), y;
	int64_t from[SL_MAX_NDIM], steps[SL_MAX_NDIM] = {0};
	char a[128], b[128];
	if (c->failed) return nothing;
	if (!slp_shape_valid(shape) || !slp_broadcast(x, shape, &y) || !slp_shape_valid(y)) {
		slp_onnx_call_fail(c, SL_ESHAPE, "%s cannot become %s", sl_shape_string(x, a),
		                   sl_shape_string(shape, b));
		return nothing;
	}
	if (sl_shape_equal(x, y)) return v;
	if (!v.known || !slp_onnx_is_few(y)) return of_tensor(sl_broadcast_to_at(c->at, slp_onnx_as_tensor(c, v), y));
	steps_of(x, from);
	for (int i = 0; i < x.ndim; i++) steps[y.ndim - x.ndim + i] = x.dim[i] == 1 ? 0 : from[i];
	return of_known(slp_onnx_known_strided(c, v.known, y, 0, steps));
}

/* ---- several values ---------------------------------------------------------------------------------------------- */

/* The shape of values next to each other; false after an error. */
static bool joined_shape(struct slp_onnx_call *c, const struct slp_onnx_value *list, int count, int axis,
                         sl_shape *shape)
{
	*shape = slp_onnx_shape_of(c, list[0]);
	for (int i = 1; i < count && !c->failed; i++) {
		sl_shape s = slp_onnx_shape_of(c, list[i]), wanted = *shape;
		if (axis < s.ndim && axis < wanted.ndim) wanted.dim[axis] = s.dim[axis];
		if (!sl_shape_equal(s, wanted)) slp_onnx_call_fail(c, SL_ESHAPE, "input %d does not fit the first", i);
		else shape->dim[axis] += s.dim[axis];
	}
	return !c->failed;
}

static struct slp_onnx_value join_known(struct slp_onnx_call *c, const struct slp_onnx_value *list, int count, int axis,
                                        sl_shape shape)
{
	struct slp_onnx_known *y = slp_onnx_known_new(c->made, list[0].known->dtype, shape);
	int64_t outer = 1, place = 0;
	for (int i = 0; i < axis; i++) outer *= shape.dim[i];
	for (int64_t o = 0; y && o < outer; o++)
		for (int i = 0; i < count; i++) {
			int64_t n = sl_shape_size(list[i].known->shape) / outer;
			if (n) memcpy(&y->v[place], &list[i].known->v[o * n], (size_t)n * sizeof *y->v);
			place += n;
		}
	return of_known(y);
}

struct slp_onnx_value slp_onnx_joined(struct slp_onnx_call *c, const struct slp_onnx_value *list, int count, int axis)
{
	sl_shape shape;
	if (!joined_shape(c, list, count, axis, &shape)) return nothing;
	bool known = slp_onnx_is_few(shape);
	for (int i = 0; i < count; i++) known = known && list[i].known && list[i].known->dtype == list[0].known->dtype;
	if (count == 1) return list[0];
	if (known) return join_known(c, list, count, axis, shape);
	sl_tensor **tensors = slp_malloc((size_t)count * sizeof *tensors), *y = NULL;
	for (int i = 0; tensors && i < count; i++) tensors[i] = slp_onnx_as_tensor(c, list[i]);
	if (tensors && !c->failed) y = sl_concat_at(c->at, tensors, count, axis);
	free(tensors);
	return of_tensor(y);
}

/* ---- gathering --------------------------------------------------------------------------------------------------- */

sl_tensor *slp_onnx_indices(struct slp_onnx_call *c, struct slp_onnx_value v, int64_t n)
{
	if (n > INT32_MAX) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "an axis of more than 2^31 elements");
	if (v.known && !slp_is_float(v.known->dtype) && !c->failed) {
		struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_INT32, v.known->shape);
		for (int64_t i = 0; k && i < sl_shape_size(k->shape); i++) {
			int64_t at = v.known->v[i].i;
			k->v[i].i = at < 0 ? at + n : at;
			if (at < -n || at >= n)
				slp_onnx_call_fail(c, SL_ESHAPE, "index %lld of %lld", (long long)at, (long long)n);
		}
		return k && !c->failed ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = k}) : NULL;
	}
	sl_tensor *t = c->failed ? NULL : slp_onnx_as_tensor(c, v);
	if (t && sl_tensor_dtype(t) != SL_INT32) t = sl_cast_at(c->at, t, SL_INT32);
	return t ? sl_add_at(c->at, t, sl_mul_scalar_at(c->at, sl_lt_scalar_at(c->at, t, 0), (double)n)) : NULL;
}

/* x (outer, n, inner), or the indices' shape in the middle: those of the axis replaced. */
static sl_shape gathered_shape(struct slp_onnx_call *c, sl_shape x, sl_shape indices, int axis)
{
	sl_shape y = {.ndim = x.ndim - 1 + indices.ndim};
	if (y.ndim > SL_MAX_NDIM) {
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "the result has %d axes, more than %d", y.ndim, SL_MAX_NDIM);
		return SL_SCALAR;
	}
	for (int i = 0, k = 0; i < x.ndim; i++) {
		if (i != axis) y.dim[k++] = x.dim[i];
		for (int j = 0; i == axis && j < indices.ndim; j++) y.dim[k++] = indices.dim[j];
	}
	return y;
}

static struct slp_onnx_value gather_known(struct slp_onnx_call *c, const struct slp_onnx_known *k,
                                          const struct slp_onnx_known *indices, int axis, sl_shape shape)
{
	struct slp_onnx_known *y = slp_onnx_known_new(c->made, k->dtype, shape);
	int64_t outer = 1, n = k->shape.dim[axis], count = sl_shape_size(indices->shape), inner = 1, place = 0;
	for (int i = 0; i < axis; i++) outer *= k->shape.dim[i];
	for (int i = axis + 1; i < k->shape.ndim; i++) inner *= k->shape.dim[i];
	for (int64_t o = 0; y && o < outer; o++)
		for (int64_t j = 0; j < count; j++, place += inner) {
			int64_t at = indices->v[j].i < 0 ? indices->v[j].i + n : indices->v[j].i;
			if (at < 0 || at >= n) {
				slp_onnx_call_fail(c, SL_ESHAPE, "index %lld of %lld", (long long)indices->v[j].i,
				                   (long long)n);
				return nothing;
			}
			if (inner) memcpy(&y->v[place], &k->v[(o * n + at) * inner], (size_t)inner * sizeof *y->v);
		}
	return of_known(y);
}

static sl_tensor *gather_tensor(struct slp_onnx_call *c, struct slp_onnx_value v, struct slp_onnx_value indices,
                                int axis, sl_shape x)
{
	int64_t outer = 1, inner = 1, count = sl_shape_size(slp_onnx_shape_of(c, indices));
	for (int i = 0; i < axis; i++) outer *= x.dim[i];
	for (int i = axis + 1; i < x.ndim; i++) inner *= x.dim[i];
	sl_tensor *rows = slp_onnx_as_tensor(c, v), *where = slp_onnx_indices(c, indices, x.dim[axis]);
	if (!rows || !where) return NULL;
	if (outer == 1) return sl_gather_at(c->at, sl_reshape_at(c->at, rows, SL_SHAPE(x.dim[axis], inner)), where);
	int swap[] = {1, 0, 2};
	struct sl_reduce_opts o = {.axes = swap, .naxes = 3};
	rows = sl_transpose_at(c->at, sl_reshape_at(c->at, rows, SL_SHAPE(outer, x.dim[axis], inner)), o);
	where = sl_reshape_at(c->at, where, SL_SHAPE(count));
	return sl_transpose_at(c->at, sl_gather_at(c->at, rows, where), o);
}

/* One place: a part of the axis, which goes. */
static bool is_one(const struct slp_onnx_known *indices, int64_t n)
{
	return indices && sl_shape_size(indices->shape) == 1 && indices->v[0].i < n && indices->v[0].i >= -n;
}

struct slp_onnx_value slp_onnx_gathered(struct slp_onnx_call *c, struct slp_onnx_value v, struct slp_onnx_value indices,
                                        int axis)
{
	sl_shape x = slp_onnx_shape_of(c, v), shape = gathered_shape(c, x, slp_onnx_shape_of(c, indices), axis);
	if (c->failed) return nothing;
	if (v.known && indices.known && slp_onnx_is_few(shape))
		return gather_known(c, v.known, indices.known, axis, shape);
	if (is_one(indices.known, x.dim[axis])) {
		int64_t i = indices.known->v[0].i;
		v = slp_onnx_sliced(c, v, axis, i, i == -1 ? INT64_MAX : i + 1, 1);
	} else {
		v = of_tensor(gather_tensor(c, v, indices, axis, x));
	}
	return v.t || v.known ? slp_onnx_reshaped(c, v, shape) : nothing;
}

/* ---- types and numbers ------------------------------------------------------------------------------------------- */

struct slp_onnx_value slp_onnx_cast(struct slp_onnx_call *c, struct slp_onnx_value v, enum sl_dtype dtype)
{
	if (slp_onnx_dtype(&v) == dtype) return v;
	if (!v.known) return of_tensor(sl_cast_at(c->at, v.t, dtype));
	struct slp_onnx_known *y = slp_onnx_known_new(c->made, dtype, v.known->shape);
	bool whole = !slp_is_float(v.known->dtype) && dtype == SL_INT64;
	for (int64_t i = 0; y && i < sl_shape_size(y->shape); i++) {
		if (whole) y->v[i].i = v.known->v[i].i;
		else slp_onnx_known_put(y, i, slp_onnx_known_number(v.known, i));
	}
	return of_known(y);
}

struct slp_onnx_value slp_onnx_list_value(struct slp_onnx_call *c, enum sl_dtype dtype, const int64_t *v, int n)
{
	struct slp_onnx_known *y = slp_onnx_known_new(c->made, dtype, SL_SHAPE(n));
	for (int i = 0; y && i < n; i++) y->v[i].i = v[i];
	return of_known(y);
}

struct slp_onnx_value slp_onnx_axis_moved(struct slp_onnx_call *c, struct slp_onnx_value v, int from, int to)
{
	int axes[SL_MAX_NDIM], n = 0, ndim = slp_onnx_shape_of(c, v).ndim;
	for (int i = 0, next = 0; i < ndim; i++) {
		if (i == to) {
			axes[n++] = from;
			continue;
		}
		if (next == from) next++;
		axes[n++] = next++;
	}
	return c->failed ? nothing : slp_onnx_transposed(c, v, axes);
}
