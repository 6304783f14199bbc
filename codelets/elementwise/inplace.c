/* Arithmetic over the first argument. */
#include "starling/arithmetic.h"
#include "fill/fill.h"
#include "op_list/binary.h"

/* sl_NAME_inplace_at: the result is written over the first argument, which is returned: nothing new belongs to anyone.
 * Views of it see the change.  Errors are those of the operation that is not in place, and those of all that runs in
 * place: SL_ESHAPE, the result does not fit; SL_EINVAL, another argument is a view of a part of the same memory;
 * SL_EDEVICE, the result would be elsewhere; SL_ESTATE, a gradient needs what would be overwritten, the tensor has a
 * gradient attached and SL_RECORD is on, or it is a symbol, or a block is being traced.
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
