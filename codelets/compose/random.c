/* Random numbers made of uniform ones: the same on all devices. */
#include "compose.h"
#include "op_list/reduce.h"
#include "starling/functions.h"

/* Random integers from low to high - 1, all with the same probability; int32, or make.dtype.  SL_EINVAL: the range is
 * empty, or larger than 2^24; SL_EDTYPE: the data type cannot hold all of them.
 *
 *     dice = sl_randint(SL_SHAPE(100), 1, 7); */
sl_tensor *sl_randint_at(const char *at, sl_shape shape, int64_t low, int64_t high, struct sl_make make)
{
	const char *me = "sl_randint";
	SLP_FUNCTION(me, at);
	enum sl_dtype dtype = slp_dtype_or(make.dtype, SL_INT32), wide = dtype == SL_INT64 ? SL_INT64 : SL_INT32;
	int64_t count;
	if (low >= high || __builtin_sub_overflow(high, low, &count) || count > 1 << 24)
		return slp_call_fail(at, me, SL_EINVAL, "from %lld to below %lld", (long long)low, (long long)high);
	if (low > 1LL << 53 || low < -(1LL << 53))
		return slp_call_fail(at, me, SL_EINVAL, "from %lld: numbers beyond 2^53 are not drawn", (long long)low);
	if (!slp_can_hold(dtype, (double)low) || !slp_can_hold(dtype, (double)(high - 1)))
		return slp_call_fail(at, me, SL_EDTYPE, "from %lld to below %lld: not all are values of %s",
		                     (long long)low, (long long)high, sl_dtype_name(dtype));
	sl_tensor *u = sl_uniform_at(at, shape, 0, 1, (struct sl_make){.device = make.device});
	u = sl_cast_at(at, sl_mul_scalar_at(at, u, (double)count), wide);
	u = sl_add_scalar_at(at, u, (double)low);
	return SLP_RETURN(dtype == wide ? u : sl_cast_at(at, u, dtype));
}

/* The numbers from 0 to n - 1 in random order; int32.  SL_ESHAPE: a negative n. */
sl_tensor *sl_permutation_at(const char *at, int64_t n, sl_device device)
{
	SLP_FUNCTION("sl_permutation", at);
	return SLP_RETURN(
	        sl_argsort_at(at, sl_uniform_at(at, SL_SHAPE(n), 0, 1, (struct sl_make){.device = device}), 0, false));
}

/* Draws classes, with replacement, from distributions: (…, classes) to (…, count), int32.  Probabilities are not
 * negative and need not add up to 1.  If the probabilities of a row are all 0, negative or not finite, the operation
 * fails with SL_EINVAL on a CPU; on a GPU that row gets -1, which is no class.  SL_EDTYPE: the probabilities are not
 * floats; SL_ESHAPE: there is no class, or a negative count.
 *
 *     next = sl_multinomial(sl_softmax(logits, -1), 1); */
sl_tensor *sl_multinomial_at(const char *at, sl_tensor *probabilities, int64_t count)
{
	const char *me = "sl_multinomial";
	SLP_FUNCTION(me, at);
	if (!slp_shape_given(at, me, "probabilities", probabilities)) return NULL;
	enum sl_dtype dtype = sl_tensor_dtype(probabilities);
	sl_shape s = sl_tensor_shape(probabilities), draws = s;
	if (!slp_is_float(dtype))
		return slp_call_fail(at, me, SL_EDTYPE, "the probabilities are %s, floats needed",
		                     sl_dtype_name(dtype));
	if (s.ndim < 1 || count < 0)
		return slp_call_fail(at, me, SL_ESHAPE, "%lld draws from %d axes", (long long)count, s.ndim);
	sl_tensor *p = slp_widened(at, probabilities);
	if (!p) return NULL;
	draws.dim[s.ndim - 1] = count;
	struct sl_make make = {sl_tensor_dtype(p), sl_tensor_device(p)};
	sl_tensor *in[] = {sl_cumsum_at(at, p, -1), sl_uniform_at(at, draws, 0, 1, make)};
	return SLP_RETURN(slp_apply1(at, &slp_op_multinomial, NULL, 2, in));
}
