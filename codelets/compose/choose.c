/* Functions that choose between elements or limit them, and activations with a number. */
#include "as_index.h"
#include "compose.h"
#include "op_list/binary.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* Converts a condition to bool: every value but 0 is true. */
static sl_tensor *as_condition(const char *at, sl_tensor *c, enum sl_dtype dtype)
{
	enum sl_dtype from = sl_tensor_dtype(c);
	if (from == dtype) return c;
	if (from != SL_BOOL) c = sl_cast_at(at, c, SL_BOOL);
	return sl_cast_at(at, c, dtype);
}

/* Numbers that are too large saturate: they are outside of every tensor. */
sl_tensor *slp_numbers_as_index(const char *at, sl_tensor *x)
{
	return !x || sl_tensor_dtype(x) == SL_INT32 ? x : sl_cast_at(at, x, SL_INT32);
}

/* NaN, whose conversion is 0, becomes -1, which is no class. */
sl_tensor *slp_labels_as_index(const char *at, sl_tensor *x)
{
	sl_tensor *whole = slp_numbers_as_index(at, x);
	if (!whole || !slp_is_float(sl_tensor_dtype(x))) return whole;
	return sl_sub_at(at, whole, sl_cast_at(at, sl_isnan_at(at, x), SL_INT32));
}

/* The elements of a where the condition is not 0, and of b where it is 0; shapes are broadcast.  Other elements have no
 * effect, even NaN and infinities.  The condition may have any data type; a and b have the same one, and gradients flow
 * to them.  SL_ESHAPE, SL_EDTYPE: arguments do not match.
 *
 *     y = sl_where(sl_gt_scalar(x, 0), x, sl_exp(x)); */
sl_tensor *sl_where_at(const char *at, sl_tensor *condition, sl_tensor *a, sl_tensor *b)
{
	const char *me = "sl_where";
	SLP_FUNCTION(me, at);
	if (!slp_given(at, me, "condition", condition) || !slp_given(at, me, "a", a) || !slp_given(at, me, "b", b))
		return NULL;
	if (!slp_one_type(at, me, "a", a, "b", b)) return NULL;
	sl_tensor *c = as_condition(at, condition, sl_tensor_dtype(a));
	sl_tensor *chosen = slp_take_if(at, c, a);
	sl_tensor *other = slp_apply1(at, &slp_op_take_unless, NULL, 2, (sl_tensor *[]){c, b});
	if (sl_tensor_dtype(a) == SL_BOOL) return SLP_RETURN(sl_logical_or_at(at, chosen, other));
	return SLP_RETURN(sl_add_at(at, chosen, other));
}

/* x with a number where the mask is not 0; otherwise as sl_where.
 *
 *     scores = sl_masked_fill(scores, future, -INFINITY); */
sl_tensor *sl_masked_fill_at(const char *at, sl_tensor *x, sl_tensor *mask, double value)
{
	SLP_FUNCTION("sl_masked_fill", at);
	if (!slp_given(at, "sl_masked_fill", "x", x)) return NULL;
	return SLP_RETURN(sl_where_at(at, mask, slp_full_beside(at, x, SL_SCALAR, value), x));
}

/* The elements of x, limited to [low, high]; NaN stays NaN.  Gradients flow to elements within the limits.  SL_EINVAL
 * if low is above high; SL_EDTYPE if the integer type of x cannot hold one of them.
 *
 *     y = sl_clip(x, 0, 1); */
sl_tensor *sl_clip_at(const char *at, sl_tensor *x, double low, double high)
{
	SLP_FUNCTION("sl_clip", at);
	if (!(low <= high)) return slp_call_fail(at, "sl_clip", SL_EINVAL, "low %g is above high %g", low, high);
	return SLP_RETURN(sl_minimum_scalar_at(at, sl_maximum_scalar_at(at, x, low), high));
}

/* x where positive, else slope times x.  SL_EINVAL: a slope that is not finite. */
sl_tensor *sl_leaky_relu_at(const char *at, sl_tensor *x, double slope)
{
	SLP_FUNCTION("sl_leaky_relu", at);
	if (!slp_is_figure(at, "sl_leaky_relu", "slope", slope)) return NULL;
	return SLP_RETURN(
	        sl_add_at(at, sl_relu_at(at, x), sl_mul_scalar_at(at, sl_minimum_scalar_at(at, x, 0), slope)));
}

/* x where positive, else alpha (exp(x) - 1).  D.-A. Clevert et al., arXiv:1511.07289, 2015.
 * SL_EINVAL: an alpha that is not finite. */
sl_tensor *sl_elu_at(const char *at, sl_tensor *x, double alpha)
{
	SLP_FUNCTION("sl_elu", at);
	if (!slp_is_figure(at, "sl_elu", "alpha", alpha)) return NULL;
	sl_tensor *below = sl_expm1_at(at, sl_minimum_scalar_at(at, x, 0));
	return SLP_RETURN(sl_add_at(at, sl_relu_at(at, x), sl_mul_scalar_at(at, below, alpha)));
}

/* x / (1 + |x|).  J. Bergstra et al., "Quadratic polynomials learn better image features", 2009. */
sl_tensor *sl_softsign_at(const char *at, sl_tensor *x)
{
	SLP_FUNCTION("sl_softsign", at);
	return SLP_RETURN(sl_div_at(at, x, sl_add_scalar_at(at, sl_abs_at(at, x), 1)));
}
