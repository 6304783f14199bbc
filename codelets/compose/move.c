/* Functions that move elements: parts of tensors, stacks, repetitions, borders. */
#include <stdlib.h>

#include "common/create.h"
#include "common/index.h"
#include "common/move_attrs.h"
#include "common/strided.h"
#include "compose.h"
#include "op_list/move.h"
#include "starling/functions.h"

static sl_tensor *part(const char *at, sl_tensor *x, int axis, int64_t begin, int64_t end)
{
	return sl_slice_at(at, x, axis, begin, end, 1);
}

static void clear(sl_tensor **parts, int count)
{
	for (int i = 0; parts && i < count; i++) parts[i] = NULL;
}

/* Splits x along an axis into `count` parts of equal size, and sets parts[0] to parts[count - 1].  SL_EINVAL: no such
 * axis; SL_ESHAPE: the axis cannot be split equally.  After an error all are NULL.
 *
 *     sl_tensor *qkv[3];
 *     sl_split(sl_linear(x, w, b), -1, 3, qkv); */
enum sl_status sl_split_at(const char *at, sl_tensor *x, int axis, int count, sl_tensor **parts)
{
	const char *me = "sl_split";
	SLP_CALL(me, at);
	clear(parts, count);
	if (!slp_axis_given(at, me, x, &axis) || !slp_given(at, me, "array of parts", parts)) return sl_error();
	int64_t n = sl_tensor_shape(x).dim[axis], size = count > 0 ? n / count : 0;
	if (count < 1 || n % count) {
		slp_call_fail(at, me, SL_ESHAPE, "%lld elements cannot be cut into %d parts", (long long)n, count);
		return SL_ESHAPE;
	}
	for (int i = 0; i < count; i++)
		if (!(parts[i] = part(at, x, axis, i * size, (i + 1) * size))) return clear(parts, i), sl_error();
	return SL_OK;
}

/* t with a new axis of one element for a stack. */
static sl_tensor *layer(const char *at, const char *me, sl_tensor *t, int axis)
{
	if (!slp_shape_given(at, me, "a tensor", t)) return NULL;
	sl_shape s = sl_tensor_shape(t);
	int place = axis;
	if (s.ndim == SL_MAX_NDIM || !slp_axis(&place, s.ndim + 1))
		return slp_call_fail(at, me, SL_EINVAL, "axis %d of a stack of tensors with %d axes", axis, s.ndim);
	memmove(&s.dim[place + 1], &s.dim[place], (size_t)(s.ndim - place) * sizeof *s.dim);
	s.dim[place] = 1;
	s.ndim++;
	return sl_reshape_at(at, t, s);
}

/* Tensors of one shape next to each other along a new axis, which is `axis` of the result; negative: from the end.
 * SL_ESHAPE, SL_EDTYPE: they differ; SL_EINVAL: no such axis, no tensors.
 *
 *     y = sl_stack(((sl_tensor *const[]){a, b}), 2, 0);    // (n), (n) -> (2, n) */
sl_tensor *sl_stack_at(const char *at, sl_tensor *const *tensors, int count, int axis)
{
	const char *me = "sl_stack";
	SLP_FUNCTION(me, at);
	if (count < 1) return slp_call_fail(at, me, SL_EINVAL, "%d tensors given, at least 1 needed", count);
	if (!slp_given(at, me, "array of tensors", tensors)) return NULL;
	sl_tensor **list = slp_malloc((size_t)count * sizeof *list);
	if (!list) return slp_call_fail(at, me, SL_ENOMEM, "no memory for %d tensors", count);
	bool ok = true;
	for (int i = 0; ok && i < count; i++) ok = (list[i] = layer(at, me, tensors[i], axis)) != NULL;
	sl_tensor *y = ok ? sl_concat_at(at, list, count, axis) : NULL;
	free(list);
	return SLP_RETURN(y);
}

/* x repeated `times` times along an axis: as a whole, or each element. */
static sl_tensor *repeated(const char *at, const char *me, sl_tensor *x, int axis, int64_t times, bool whole)
{
	if (!slp_axis_given(at, me, x, &axis)) return NULL;
	sl_shape s = sl_tensor_shape(x);
	if (times < 0 || __builtin_mul_overflow(s.dim[axis], times, &s.dim[axis]))
		return slp_call_fail(at, me, SL_EINVAL, "%lld times", (long long)times);
	s = sl_tensor_shape(x);
	struct slp_split p = slp_split_at(s, axis);
	int64_t outer = p.outer * (whole ? 1 : p.n), inner = p.inner * (whole ? p.n : 1);
	sl_tensor *y = sl_reshape_at(at, x, SL_SHAPE(outer, 1, inner));
	s.dim[axis] *= times;
	return sl_reshape_at(at, sl_broadcast_to_at(at, y, SL_SHAPE(outer, times, inner)), s);
}

/* x repeated `times` times along an axis: 1 2 3 becomes 1 2 3 1 2 3.  SL_EINVAL: no such axis, a negative number. */
sl_tensor *sl_tile_at(const char *at, sl_tensor *x, int axis, int64_t times)
{
	SLP_FUNCTION("sl_tile", at);
	return SLP_RETURN(repeated(at, "sl_tile", x, axis, times, true));
}

/* Each element repeated `times` times along an axis: 1 2 3 becomes 1 1 2 2 3 3.  SL_EINVAL: no such axis, a negative
 * number. */
sl_tensor *sl_repeat_at(const char *at, sl_tensor *x, int axis, int64_t times)
{
	SLP_FUNCTION("sl_repeat", at);
	return SLP_RETURN(repeated(at, "sl_repeat", x, axis, times, false));
}

/* x with the elements along the given axes, or along all, in reverse order.  SL_EINVAL: an axis that does not exist,
 * .keepdims. */
sl_tensor *sl_flip_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts)
{
	SLP_FUNCTION("sl_flip", at);
	if (!slp_shape_given(at, "sl_flip", "x", x)) return NULL;
	if (opts.keepdims) return slp_call_fail(at, "sl_flip", SL_EINVAL, "keepdims has no meaning here");
	if (opts.naxes < 0 || opts.naxes > SL_MAX_NDIM)
		return slp_call_fail(at, "sl_flip", SL_EINVAL, "%d axes given, 0 to %d possible", opts.naxes,
		                     SL_MAX_NDIM);
	if (opts.naxes && !slp_given(at, "sl_flip", "array of axes", opts.axes)) return NULL;
	int ndim = sl_tensor_shape(x).ndim, n = opts.naxes ? opts.naxes : ndim;
	if (n == 0) return SLP_RETURN(sl_clone_at(at, x));
	for (int i = 0; i < n; i++) x = sl_slice_at(at, x, opts.naxes ? opts.axes[i] : i, -1, INT64_MIN, -1);
	return SLP_RETURN(x);
}

/* The border of n elements beside the first ones of an axis (or the last ones); NULL in *border if n is 0. */
static bool border(const char *at, sl_tensor *x, int axis, int64_t n, bool last, const struct sl_pad_opts *o,
                   sl_tensor **to)
{
	sl_shape s = sl_tensor_shape(x);
	int64_t size = s.dim[axis];
	*to = NULL;
	if (n == 0) return true;
	s.dim[axis] = n;
	if (!o->reflect) return (*to = slp_full_beside(at, x, s, o->value)) != NULL;
	sl_tensor *near = last ? part(at, x, axis, size - 1 - n, size - 1) : part(at, x, axis, 1, n + 1);
	return (*to = sl_slice_at(at, near, axis, -1, INT64_MIN, -1)) != NULL;
}

/* x with additional elements before the first and after the last of an axis: of a given value, or with .reflect
 * mirrored at the first and the last element.  SL_EINVAL: no such axis, a negative number, more elements to reflect
 * than the axis has, a value beside .reflect; SL_EDTYPE: a value that the data type cannot hold.
 *
 *     y = sl_pad(x, -1, 2, 0);    // two zeros in front of each row */
sl_tensor *sl_pad_at(const char *at, sl_tensor *x, int axis, int64_t before, int64_t after, struct sl_pad_opts opts)
{
	const char *me = "sl_pad";
	SLP_FUNCTION(me, at);
	sl_tensor *list[3];
	int n = 0;
	if (!slp_axis_given(at, me, x, &axis)) return NULL;
	int64_t size = sl_tensor_shape(x).dim[axis];
	if (before < 0 || after < 0 || (opts.reflect && (before >= size || after >= size)))
		return slp_call_fail(at, me, SL_EINVAL, "%lld before and %lld after %lld elements", (long long)before,
		                     (long long)after, (long long)size);
	if (opts.reflect && opts.value != 0)
		return slp_call_fail(at, me, SL_EINVAL, "a value beside .reflect, which mirrors elements");
	if (!opts.reflect && !slp_can_be(sl_tensor_dtype(x), opts.value))
		return slp_call_fail(at, me, SL_EDTYPE, "%.9g is not a value of %s", opts.value,
		                     sl_dtype_name(sl_tensor_dtype(x)));
	if (!border(at, x, axis, before, false, &opts, &list[n])) return NULL;
	if (list[n]) n++;
	list[n++] = x;
	if (!border(at, x, axis, after, true, &opts, &list[n])) return NULL;
	if (list[n]) n++;
	return SLP_RETURN(sl_concat_at(at, list, n, axis));
}

/* x (r, …) with rows added at their indices: the shape of `rows` is the shape of the indices followed by the shape of a
 * row of x; an index may occur several times.  Floats; indices int32 or int64.  Errors: see sl_gather.
 *
 *     y = sl_index_add(x, indices, rows);    // (r, w), (n), (n, w) -> (r, w) */
sl_tensor *sl_index_add_at(const char *at, sl_tensor *x, sl_tensor *indices, sl_tensor *rows)
{
	const char *me = "sl_index_add";
	SLP_FUNCTION(me, at);
	if (!slp_shape_given(at, me, "x", x)) return NULL;
	sl_shape s = sl_tensor_shape(x);
	if (s.ndim < 1) return slp_call_fail(at, me, SL_ESHAPE, "x is a scalar and has no rows");
	if (!slp_given(at, me, "indices", indices) || !slp_given(at, me, "rows", rows)) return NULL;
	sl_shape wanted = sl_tensor_shape(indices);
	bool known = wanted.ndim >= 0; /* a symbol's shape may be unknown */
	if (known && wanted.ndim + s.ndim - 1 > SL_MAX_NDIM)
		return slp_call_fail(at, me, SL_ESHAPE, "rows would have %d axes, more than %d",
		                     wanted.ndim + s.ndim - 1, SL_MAX_NDIM);
	for (int i = 1; known && i < s.ndim; i++) wanted.dim[wanted.ndim++] = s.dim[i];
	if (known && !slp_shape_fits(at, me, "rows", rows, wanted)) return NULL;
	if (!slp_one_type(at, me, "x", x, "rows", rows)) return NULL;
	if (!slp_is_float(sl_tensor_dtype(x)))
		return slp_call_fail(at, me, SL_EDTYPE, "x is %s, floats needed", sl_dtype_name(sl_tensor_dtype(x)));
	struct slp_gather_grad_attrs attrs = {s.dim[0]};
	sl_tensor *in[] = {rows, slp_indices(at, me, indices)};
	return SLP_RETURN(sl_add_at(at, x, slp_apply1(at, &slp_op_gather_grad, &attrs, 2, in)));
}
