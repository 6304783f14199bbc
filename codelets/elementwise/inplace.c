/* Arithmetic in place: the result overwrites the first argument. */
#include "starling/arithmetic.h"
#include "fill/fill.h"
#include "op_list/binary.h"

/* sl_NAME_inplace_at: the result overwrites the first argument, which is returned without a new reference.  Views of it
 * change as well.  Errors are those of the operation that is not in place, and for all operations in place: SL_ESHAPE,
 * the result has another shape; SL_EINVAL, another argument is a view of a part of the same memory; SL_EDEVICE, the
 * result would be on another device; SL_ESTATE, a gradient needs the old values, the tensor has a gradient attached and
 * SL_RECORD is on, it is a symbol, or a block is being traced.
 *
 *     sl_sub_(w, sl_mul_scalar(sl_grad(w), lr)); */
#define IN_PLACE(name)                                                                                                 \
	sl_tensor *sl_##name##_inplace_at(const char *at, sl_tensor *a, sl_tensor *b)                                  \
	{                                                                                                              \
		return slp_apply_inplace(at, &slp_op_##name, NULL, 2, (sl_tensor *[]){a, b});                          \
	}                                                                                                              \
	sl_tensor *sl_##name##_scalar_inplace_at(const char *at, sl_tensor *x, double s)                               \
	{                                                                                                              \
		return slp_apply_inplace(at, &slp_op_##name##_scalar, &(struct slp_value){s}, 1, &x);                  \
	}

IN_PLACE(add)
IN_PLACE(sub)
IN_PLACE(mul)
IN_PLACE(div)
