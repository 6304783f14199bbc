/* Statistics over axes, computed by reductions. */
#include "compose.h"
#include "op.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

static bool is_empty(const sl_tensor *x)
{
	sl_shape s = x ? sl_tensor_shape(x) : SL_SCALAR;
	for (int i = 0; i < s.ndim; i++)
		if (s.dim[i] == 0) return true;
	return false;
}

/* log(sum(exp(x))) over axes (see sl_sum), without overflow: the largest element is subtracted first.  -infinity for no
 * elements, as in NumPy and PyTorch.  SL_EDTYPE unless x is a float. */
sl_tensor *sl_logsumexp_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts)
{
	SLP_FUNCTION("sl_logsumexp", at);
	struct sl_reduce_opts keep = {opts.axes, opts.naxes, true};
	sl_tensor *given = x;
	x = slp_widened(at, x);
	if (is_empty(x)) /* there is no largest element */
		return SLP_RETURN(slp_narrowed(at, sl_log_at(at, sl_sum_at(at, sl_exp_at(at, x), opts)), given));
	sl_tensor *m = sl_max_at(at, x, keep);
	if (!m || !(m = sl_detach_at(at, m))) return NULL;
	/* an infinite one would be subtracted from itself */
	m = slp_take_if(at, sl_isfinite_at(at, m), m);
	sl_tensor *sum = sl_sum_at(at, sl_exp_at(at, sl_sub_at(at, x, m)), opts);
	sum = sl_add_at(at, sl_log_at(at, sum), opts.keepdims ? m : sl_sum_at(at, m, opts));
	return SLP_RETURN(slp_narrowed(at, sum, given));
}

/* The number of elements that are reduced to one. */
static double gathered(sl_shape s, const struct sl_variance_opts *o)
{
	double n = o->naxes ? 1 : (double)sl_shape_size(s);
	for (int i = 0; i < o->naxes; i++) {
		int axis = o->axes[i];
		if (slp_axis(&axis, s.ndim)) n *= (double)s.dim[axis]; /* the mean has rejected other types */
	}
	return n;
}

/* The variance of x in float32 or float64. */
static sl_tensor *variance(const char *at, sl_tensor *x, const struct sl_variance_opts *o)
{
	sl_tensor *mean = sl_mean_at(at, x, (struct sl_reduce_opts){o->axes, o->naxes, true});
	sl_tensor *squares = sl_square_at(at, sl_sub_at(at, x, mean));
	sl_tensor *v = sl_mean_at(at, squares, (struct sl_reduce_opts){o->axes, o->naxes, o->keepdims});
	if (!v || o->ddof == 0) return v;
	if (!slp_shape_given(at, "sl_variance", "x", x)) return NULL;
	double n = gathered(sl_tensor_shape(x), o);
	return sl_mul_scalar_at(at, v, n / (n > o->ddof ? n - o->ddof : 0));
}

/* The root of the variance, without overflow of squares: the norm of x minus its mean. */
static sl_tensor *deviation(const char *at, sl_tensor *x, const struct sl_variance_opts *o)
{
	double n = gathered(sl_tensor_shape(x), o), rest = n > o->ddof ? n - o->ddof : 0;
	sl_tensor *mean = sl_mean_at(at, x, (struct sl_reduce_opts){o->axes, o->naxes, true});
	sl_tensor *length =
	        sl_norm_at(at, sl_sub_at(at, x, mean), (struct sl_reduce_opts){o->axes, o->naxes, o->keepdims});
	return sl_div_scalar_at(at, length, sqrt(rest));
}

/* The root of a value that may be 0 in a neighbourhood: its gradient is 0 there, as in PyTorch. */
static sl_tensor *root_of(const char *at, sl_tensor *v)
{
	sl_tensor *zero = v ? sl_eq_scalar_at(at, sl_detach_at(at, v), 0) : NULL;
	return sl_sub_at(at, sl_sqrt_at(at, sl_add_at(at, v, zero)), zero);
}

static sl_tensor *spread(const char *at, const char *me, sl_tensor *x, const struct sl_variance_opts *o, bool root)
{
	if (o->ddof < 0) return slp_call_fail(at, me, SL_EINVAL, "ddof %d is negative", o->ddof);
	bool whole = x && !slp_is_float(sl_tensor_dtype(x));
	x = whole ? sl_cast_at(at, x, SL_FLOAT32) : x;
	sl_tensor *wide = slp_widened(at, x), *v;
	if (root && wide && sl_tensor_shape(wide).ndim >= 0) return slp_narrowed(at, deviation(at, wide, o), x);
	v = variance(at, wide, o);
	return slp_narrowed(at, root ? root_of(at, v) : v, x);
}

/* The variance over axes (see sl_mean): the sum of the squared deviations from the mean, divided by the number of
 * elements minus ddof.  Integers are converted to float32.  SL_EINVAL: a negative ddof.
 *
 *     sl_tensor *v = sl_variance(x, SL_AXES(-1), .ddof = 1, .keepdims = true); */
sl_tensor *sl_variance_at(const char *at, sl_tensor *x, struct sl_variance_opts opts)
{
	SLP_FUNCTION("sl_variance", at);
	return SLP_RETURN(spread(at, "sl_variance", x, &opts, false));
}

/* The standard deviation: the root of sl_variance.  Its gradient is 0 where it is 0. */
sl_tensor *sl_std_at(const char *at, sl_tensor *x, struct sl_variance_opts opts)
{
	SLP_FUNCTION("sl_std", at);
	return SLP_RETURN(spread(at, "sl_std", x, &opts, true));
}
