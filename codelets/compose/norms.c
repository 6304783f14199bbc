/* Normalisations, computed by other operations. */
#include "compose.h"
#include "op.h"
#include "options.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* Whether a parameter, or NULL for none, has the data type of x, or float32 if that is a half type. */
static bool parameter_fits(const char *at, const char *me, sl_tensor *x, const char *name, sl_tensor *t)
{
	if (!x || !t || sl_tensor_dtype(t) == slp_promoted(sl_tensor_dtype(x))) return true;
	return slp_one_type(at, me, "x", x, name, t);
}

/* The root of the mean of the squares of n elements along the last axis, plus eps. If the square of the mean overflows,
 * eps is negligible. */
static sl_tensor *rms_of(const char *at, sl_tensor *x, int64_t n, double eps)
{
	const double large = 1e15;
	struct sl_reduce_opts last = {SL_AXES(-1), .keepdims = true};
	if (n < 1) return sl_sqrt_at(at, sl_add_scalar_at(at, sl_mean_at(at, sl_square_at(at, x), last), eps));
	sl_tensor *rms = sl_div_scalar_at(at, sl_norm_at(at, x, last), sqrt((double)n));
	if (eps == 0) return rms;
	sl_tensor *square = sl_square_at(at, sl_minimum_scalar_at(at, rms, large));
	sl_tensor *root = sl_sqrt_at(at, sl_add_scalar_at(at, square, eps));
	return sl_where_at(at, sl_gt_scalar_at(at, rms, large), rms, root);
}

/* x over the root of the mean of its squares along the last axis, times gamma (n), or NULL for none. B. Zhang, R.
 * Sennrich, arXiv:1910.07467, 2019.  gamma may be float32 if x has a half type.  Errors are those of the operations;
 * SL_EINVAL: an eps that is negative or not finite.
 *
 *     sl_tensor *y = sl_rms_norm(x, gamma); */
sl_tensor *sl_rms_norm_at(const char *at, sl_tensor *x, sl_tensor *gamma, struct sl_rms_norm_opts opts)
{
	SLP_FUNCTION("sl_rms_norm", at);
	if (!SLP_OPTIONS(sl_rms_norm_opts, at, "sl_rms_norm", &opts)) return NULL;
	double eps = opts.eps;
	if (!(eps >= 0 && isfinite(eps)))
		return slp_call_fail(at, "sl_rms_norm", SL_EINVAL, "eps is %g, a finite number needed, not below 0",
		                     eps);
	sl_shape s = x ? sl_tensor_shape(x) : SL_SCALAR;
	if (!parameter_fits(at, "sl_rms_norm", x, "gamma", gamma)) return NULL;
	if (s.ndim > 0 && !slp_shape_fits(at, "sl_rms_norm", "gamma", gamma, SL_SHAPE(s.dim[s.ndim - 1]))) return NULL;
	sl_tensor *wide = slp_widened(at, x);
	sl_tensor *y = sl_div_at(at, wide, rms_of(at, wide, s.ndim > 0 ? s.dim[s.ndim - 1] : 0, eps));
	if (y && gamma) y = sl_mul_at(at, y, slp_widened(at, gamma));
	return SLP_RETURN(slp_narrowed(at, y, x));
}

/* One number a channel, (c), in a shape that (n, c, …) can be multiplied by. */
static sl_tensor *channels(const char *at, sl_tensor *t, sl_shape x)
{
	sl_shape s = {x.ndim - 1, {-1, 1, 1, 1, 1, 1}};
	return sl_reshape_at(at, t, s);
}

static sl_tensor *grouped(const char *at, const char *me, sl_tensor *x, int64_t groups, sl_tensor *gamma,
                          sl_tensor *beta, struct sl_layer_norm_opts opts)
{
	sl_shape s = sl_tensor_shape(x);
	char text[128];
	if (s.ndim < 2)
		return slp_call_fail(at, me, SL_ESHAPE, "x is %s, (samples, channels, …) needed",
		                     sl_shape_string(s, text));
	if (groups < 1 || s.dim[1] % groups)
		return slp_call_fail(at, me, SL_ESHAPE, "the %lld channels of x %s cannot be dealt to %lld groups",
		                     (long long)s.dim[1], sl_shape_string(s, text), (long long)groups);
	int64_t rows = s.dim[0] * groups, length = rows ? sl_shape_size(s) / rows : 0;
	if (!parameter_fits(at, me, x, "gamma", gamma) || !parameter_fits(at, me, x, "beta", beta)) return NULL;
	if (!slp_shape_fits(at, me, "gamma", gamma, SL_SHAPE(s.dim[1])) ||
	    !slp_shape_fits(at, me, "beta", beta, SL_SHAPE(s.dim[1])))
		return NULL;
	sl_tensor *wide = slp_widened(at, x);
	if (!wide) return NULL;
	sl_tensor *one = slp_full_beside(at, wide, SL_SHAPE(length), 1),
	          *zero = slp_full_beside(at, wide, SL_SHAPE(length), 0);
	sl_tensor *y = sl_layer_norm_at(at, sl_reshape_at(at, wide, SL_SHAPE(rows, length)), one, zero, opts);
	y = y ? sl_reshape_at(at, y, s) : NULL;
	if (y && gamma) y = sl_mul_at(at, y, channels(at, slp_widened(at, gamma), s));
	if (y && beta) y = sl_add_at(at, y, channels(at, slp_widened(at, beta), s));
	return slp_narrowed(at, y, x);
}

/* x (n, c, …) normalised over each group of channels of a sample, like sl_layer_norm, times gamma (c), or NULL for
 * none, plus beta (c), or NULL for none; these may be float32 if x has a half type.  Y. Wu, K. He,
 * arXiv:1803.08494, 2018.  SL_ESHAPE: no such groups. */
sl_tensor *sl_group_norm_at(const char *at, sl_tensor *x, int groups, sl_tensor *gamma, sl_tensor *beta,
                            struct sl_layer_norm_opts opts)
{
	SLP_FUNCTION("sl_group_norm", at);
	if (!SLP_OPTIONS(sl_layer_norm_opts, at, "sl_group_norm", &opts)) return NULL;
	return SLP_RETURN(slp_shape_given(at, "sl_group_norm", "x", x)
	                          ? grouped(at, "sl_group_norm", x, groups, gamma, beta, opts)
	                          : NULL);
}

/* As sl_group_norm, over each channel of a sample: gamma (c), or NULL for none; beta (c), or NULL for none. */
sl_tensor *sl_instance_norm_at(const char *at, sl_tensor *x, sl_tensor *gamma, sl_tensor *beta,
                               struct sl_layer_norm_opts opts)
{
	const char *me = "sl_instance_norm";
	SLP_FUNCTION(me, at);
	if (!SLP_OPTIONS(sl_layer_norm_opts, at, "sl_instance_norm", &opts)) return NULL;
	if (!slp_shape_given(at, me, "x", x)) return NULL;
	sl_shape s = sl_tensor_shape(x);
	return SLP_RETURN(grouped(at, me, x, s.ndim > 1 ? s.dim[1] : 0, gamma, beta, opts));
}
