/* Converts the mask of attention into the form that the operation takes. */
#include <math.h>

#include "attention.h"
#include "op_list/binary.h"
#include "starling/autograd.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* The mask in the form that is added to scores: conditions become 0 and -inf. Autocast converts floats. */
static sl_tensor *added(const char *at, sl_tensor *q, sl_tensor *mask)
{
	enum sl_dtype from = sl_tensor_dtype(mask), to = sl_tensor_dtype(q);
	if (from == to) return mask;
	if (!slp_is_float(from)) {
		struct sl_make make = {to, sl_tensor_device(q)};
		sl_tensor *hidden = sl_logical_not_at(at, sl_cast_at(at, sl_cast_at(at, mask, SL_BOOL), to));
		sl_tensor *in[] = {hidden, sl_full_at(at, SL_SCALAR, -INFINITY, make)};
		return slp_apply1(at, &slp_op_take_if, NULL, 2, in);
	}
	if (sl_autocast_dtype() != SL_DTYPE_DEFAULT) return sl_cast_at(at, mask, to);
	return slp_call_fail(at, "sl_scaled_dot_product_attention", SL_EDTYPE,
	                     "q is %s and the mask %s; convert one with sl_cast", sl_dtype_name(to),
	                     sl_dtype_name(from));
}

/* Broadcasts the mask so that it has a number for each key, on two axes at least. */
static sl_tensor *by_keys(const char *at, sl_tensor *mask, int64_t keys)
{
	sl_shape from = sl_tensor_shape(mask), to = from;
	int64_t last = from.ndim ? from.dim[from.ndim - 1] : 1;
	if (from.ndim < 0 || (last != 1 && last != keys)) return mask; /* not known yet, or rejected by the operation */
	if (from.ndim < 2) to = SL_SHAPE(1, keys);
	to.dim[to.ndim - 1] = keys;
	return sl_shape_equal(from, to) ? mask : sl_broadcast_to_at(at, mask, to);
}

sl_tensor *slp_added_mask(const char *at, sl_tensor *q, sl_tensor *k, sl_tensor *mask)
{
	sl_shape s = sl_tensor_shape(k);
	mask = added(at, q, mask);
	return mask && s.ndim >= 2 ? by_keys(at, mask, s.dim[s.ndim - 2]) : mask;
}
