/* Functions that pick elements by index along an axis, and that sort. */
#include "common/index.h"
#include "common/move_attrs.h"
#include "common/strided.h"
#include "compose.h"
#include "op_list/move.h"
#include "starling/functions.h"

/* The places in x, seen as one row, of the elements that the indices along an axis name, as one row; -1 for indices out
 * of range. */
static sl_tensor *places(const char *at, sl_tensor *indices, struct slp_split x, int64_t m)
{
	sl_tensor *i = sl_reshape_at(at, indices, SL_SHAPE(x.outer, m, x.inner));
	sl_tensor *first = sl_mul_scalar_at(at, slp_counted(at, indices, x.outer, SL_SHAPE(x.outer, 1, 1)),
	                                    (double)(x.n * x.inner));
	first = sl_add_at(at, first, slp_counted(at, indices, x.inner, SL_SHAPE(1, 1, x.inner)));
	sl_tensor *there = sl_logical_and_at(at, sl_ge_scalar_at(at, i, 0), sl_lt_scalar_at(at, i, (double)x.n));
	sl_tensor *place = sl_add_at(at, sl_mul_scalar_at(at, i, (double)x.inner), first);
	place = sl_add_at(at, sl_mul_at(at, place, there), sl_sub_scalar_at(at, there, 1));
	return sl_reshape_at(at, place, SL_SHAPE(-1));
}

/* Checks x and the indices, and turns the axis and the indices into those that gather takes of x as one row. */
static sl_tensor *places_in(const char *at, const char *me, sl_tensor *x, sl_tensor *indices, int axis)
{
	if (!slp_axis_given(at, me, x, &axis) || !slp_shape_given(at, me, "indices", indices)) return NULL;
	sl_shape s = sl_tensor_shape(x), i = sl_tensor_shape(indices), wanted = s;
	if (i.ndim == s.ndim) wanted.dim[axis] = i.dim[axis];
	if (!(indices = slp_indices(at, me, indices))) return NULL;
	if (!sl_shape_equal(wanted, i) || sl_shape_size(s) > INT32_MAX)
		return slp_call_fail(
		        at, me, SL_ESHAPE,
		        "the indices must have the shape of x but for axis %d, and x fewer than 2^31 elements", axis);
	return places(at, indices, slp_split_at(s, axis), i.dim[axis]);
}

/* The elements of x along an axis at the given indices (int32 or int64, of the shape of x except along that axis), like
 * numpy.take_along_axis and torch.gather. SL_ESHAPE, SL_EDTYPE: arguments do not match.  Indices out of range: see
 * sl_gather, whose message then says -1 and counts the elements of x as one row.
 *
 *     picked = sl_take_along(scores, labels, 1);    // (n, classes), (n, 1) -> (n, 1) */
sl_tensor *sl_take_along_at(const char *at, sl_tensor *x, sl_tensor *indices, int axis)
{
	SLP_FUNCTION("sl_take_along", at);
	sl_tensor *place = places_in(at, "sl_take_along", x, indices, axis);
	if (!place) return NULL;
	sl_tensor *y = sl_gather_at(at, sl_reshape_at(at, x, SL_SHAPE(-1)), place);
	return SLP_RETURN(y ? sl_reshape_at(at, y, sl_tensor_shape(indices)) : NULL);
}

/* x with values added at the given indices along an axis; indices and values have the shape of x except along that
 * axis, and an index may occur several times. Like torch.scatter_add.  Errors: see sl_take_along. */
sl_tensor *sl_scatter_add_at(const char *at, sl_tensor *x, sl_tensor *indices, sl_tensor *values, int axis)
{
	const char *me = "sl_scatter_add";
	SLP_FUNCTION(me, at);
	sl_tensor *place = places_in(at, me, x, indices, axis);
	if (!place || !slp_shape_given(at, me, "values", values)) return NULL;
	if (!sl_shape_equal(sl_tensor_shape(values), sl_tensor_shape(indices)))
		return slp_call_fail(at, me, SL_ESHAPE, "values and indices must have one shape");
	struct slp_gather_grad_attrs attrs = {sl_tensor_size(x)};
	sl_tensor *row = sl_reshape_at(at, values, SL_SHAPE(-1));
	sl_tensor *sums = slp_apply1(at, &slp_op_gather_grad, &attrs, 2, (sl_tensor *[]){row, place});
	return SLP_RETURN(sums ? sl_add_at(at, x, sl_reshape_at(at, sums, sl_tensor_shape(x))) : NULL);
}

/* The elements of x sorted along an axis: see sl_argsort. */
sl_tensor *sl_sort_at(const char *at, sl_tensor *x, int axis, bool descending)
{
	SLP_FUNCTION("sl_sort", at);
	if (!slp_axis_given(at, "sl_sort", x, &axis)) return NULL;
	return SLP_RETURN(sl_take_along_at(at, x, sl_argsort_at(at, x, axis, descending), axis));
}

/* The k largest elements of x along an axis, the largest first; *indices gets their indices (int32), unless it is NULL.
 * SL_EINVAL: no such axis, or fewer than k elements; then *indices is NULL.
 *
 *     sl_tensor *where, *best = sl_topk(scores, 5, -1, &where); */
sl_tensor *sl_topk_at(const char *at, sl_tensor *x, int64_t k, int axis, sl_tensor **indices)
{
	const char *me = "sl_topk";
	SLP_FUNCTION(me, at);
	if (indices) *indices = NULL;
	if (!slp_axis_given(at, me, x, &axis)) return NULL;
	int64_t n = sl_tensor_shape(x).dim[axis];
	if (k < 0 || k > n)
		return slp_call_fail(at, me, SL_EINVAL, "the %lld largest of %lld elements", (long long)k,
		                     (long long)n);
	sl_tensor *order = sl_slice_at(at, sl_argsort_at(at, x, axis, true), axis, 0, k, 1);
	sl_tensor *best = order ? sl_take_along_at(at, x, order, axis) : NULL;
	if (best && indices && !(*indices = SLP_RETURN(order))) return NULL;
	return SLP_RETURN(best);
}
