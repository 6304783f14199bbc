/* Comparisons of two data types, and the type of their result. */
#include "compare.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

/* One data type that holds the numbers of both. */
static enum sl_dtype common_dtype(enum sl_dtype a, enum sl_dtype b)
{
	if (a == b) return a;
	if (slp_is_float(a) && slp_promoted(a) == slp_promoted(b)) return SL_FLOAT32; /* a half type is one of them */
	if (slp_is_float(a) || slp_is_float(b)) return SL_FLOAT64;
	bool wide =
	        a == SL_INT64 || b == SL_INT64 || a == SL_UINT32 || b == SL_UINT32 || a == SL_UINT64 || b == SL_UINT64;
	return wide ? SL_INT64 : SL_INT32;
}

static sl_tensor *as(const char *at, sl_tensor *t, enum sl_dtype dtype)
{
	return sl_tensor_dtype(t) == dtype ? t : sl_cast_at(at, t, dtype);
}

sl_tensor *slp_apply_comparison(const char *at, const struct sl_op *op, sl_tensor *a, sl_tensor *b)
{
	SLP_FUNCTION(op->name, at);
	enum sl_dtype d = a ? sl_tensor_dtype(a) : SL_DTYPE_DEFAULT, e = b ? sl_tensor_dtype(b) : SL_DTYPE_DEFAULT;
	if (!a || !b || (slp_is_half(d) && slp_is_half(e)))
		return SLP_RETURN(slp_apply1(at, op, NULL, 2, (sl_tensor *[]){a, b}));
	enum sl_dtype dtype = common_dtype(d, e);
	return SLP_RETURN(slp_apply1(at, op, NULL, 2, (sl_tensor *[]){as(at, a, dtype), as(at, b, dtype)}));
}

/* The result of a comparison, or of another function that gives 1 or 0, in the data type of opts, if it names one.  The
 * macros sl_lt, sl_isnan and so on call it.  Outside all scopes it takes over the caller's reference to the result.
 * SL_EDTYPE: there is no such type; SL_EINVAL: the result is NULL.
 *
 *     sl_tensor *y = sl_where(sl_gt(x, limit, .dtype = SL_BOOL), limit, x); */
sl_tensor *sl_compared_at(const char *at, sl_tensor *result, struct sl_compare_opts opts)
{
	if (!result && sl_error() == SL_OK) return slp_call_fail(at, "sl_compared", SL_EINVAL, "the result is NULL");
	if (!result || opts.dtype == SL_DTYPE_DEFAULT || sl_tensor_dtype(result) == opts.dtype) return result;
	sl_tensor *y = sl_cast_at(at, result, opts.dtype);
	if (!slp_scope_is_open()) sl_release(result); /* this call holds the only reference */
	return y;
}
