/* batch_norm: each channel with the mean and the deviation of the batch, or of the running statistics.
 * S. Ioffe, C. Szegedy, "Batch normalization: accelerating deep network training by reducing internal covariate
 * shift", ICML 2015.  Rules and plain kernels; the fast ones are in batch_norm_cpu.c and batch_norm.cu. */
#include <math.h>

#include "batch_norm.h"
#include "common/image_layout.h"
#include "common/activation.h"
#include "op_list/norm.h"
#include "options.h"
#include "starling/autograd.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

const struct slp_attr slp_norm_attr_table[] = {
        SLP_ATTR_DEFAULTED(struct slp_norm_attrs, eps, "added to the variance; 0 means 1e-5"),
        SLP_ATTR_DEFAULTED(struct slp_norm_attrs, momentum, "of the running statistics; 0 means 0.9"),
        SLP_ATTR(struct slp_norm_attrs, activation, SLP_INT, 1, "enum sl_activation, applied to the result"),
        SLP_ATTR(struct slp_norm_attrs, layout, SLP_INT, 1, "of x and the result"),
        SLP_ATTR(struct slp_norm_attrs, unbiased, SLP_BOOL, 1, "the running variance gets the unbiased one"),
        {0},
};

static const struct slp_attr norm_grad_attr_table[] = {
        SLP_ATTR(struct slp_norm_grad_attrs, global, SLP_BOOL, 1, "mean and invstd do not depend on x"),
        SLP_ATTR(struct slp_norm_grad_attrs, relu, SLP_BOOL, 1,
                 "the gradient of relu, whose result is y, is applied to dy"),
        SLP_ATTR(struct slp_norm_grad_attrs, layout, SLP_INT, 1, "of all images"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------ */

/* Inputs [first, VECTORS) are vectors with an element for each channel of x. */
enum { VECTORS = 5 };

static enum sl_status check(const struct slp_infer *c, const struct slp_type *x, int first, int layout)
{
	if (!slp_is_float(x->dtype))
		return slp_reject(c, SL_EDTYPE, "x is %s, float32 or float64 needed", sl_dtype_name(x->dtype));
	if (x->shape.ndim < 2)
		return slp_reject(c, SL_ESHAPE, "x has %d axes, at least 2 needed: batch, channels", x->shape.ndim);
	bool nc16 = layout == SLP_LAYOUT_NC16;
	if (layout != SLP_LAYOUT_PLAIN && layout != SLP_LAYOUT_NHWC && !nc16)
		return slp_reject(c, SL_EINVAL, "layout %d is none of plain, nc16 and nhwc", layout);
	if (nc16 && (!slp_is_half(x->dtype) || x->shape.dim[1] % SLP_NC16_CHANNELS))
		return slp_reject(c, SL_EINVAL, "the layout nc16 has blocks of %d channels of a half type",
		                  SLP_NC16_CHANNELS);
	for (int i = 0; i < c->nin; i++) {
		bool vector = i >= first && i < VECTORS;
		if (c->in[i].dtype == x->dtype || (vector && c->in[i].dtype == slp_promoted(x->dtype))) continue;
		return slp_reject(c, SL_EDTYPE,
		                  "all inputs must have the data type of x, %s, or if that is a half type, those of an "
		                  "element a channel float32",
		                  sl_dtype_name(x->dtype));
	}
	for (int i = first; i < VECTORS; i++)
		if (!sl_shape_equal(c->in[i].shape, SL_SHAPE(x->shape.dim[1])))
			return slp_reject(c, SL_ESHAPE, "input %d must have shape (%lld), one element for each channel",
			                  i, (long long)x->shape.dim[1]);
	return SL_OK;
}

static enum sl_status check_attrs(struct slp_infer *c)
{
	struct slp_norm_attrs *a = c->attrs;
	a->eps = slp_or(a->eps, 1e-5);
	a->momentum = slp_or(a->momentum, SLP_BATCH_NORM_MOMENTUM);
	if (!(a->eps >= 0 && isfinite(a->eps)))
		return slp_reject(c, SL_EINVAL, "eps is %g, a finite number needed, not below 0", a->eps);
	if (!(a->momentum >= 0 && a->momentum <= 1))
		return slp_reject(c, SL_EINVAL, "momentum is %g; it must be from 0 to 1", a->momentum);
	if (a->activation < 0 || a->activation >= SL_ACTIVATIONS)
		return slp_reject(c, SL_EINVAL, "activation %d does not exist", a->activation);
	return SL_OK;
}

static enum sl_status infer_forward(struct slp_infer *c)
{
	const struct slp_norm_attrs *a = c->attrs;
	enum sl_status status = check(c, &c->in[0], 1, a->layout);
	if (!status) status = check_attrs(c);
	if (status) return status;
	c->out[0] = c->in[0];
	for (int i = 1; i < c->nout; i++) /* statistics are never rounded to a half type */
		c->out[i] = (struct slp_type){slp_promoted(c->in[0].dtype), c->in[1].shape};
	return SL_OK;
}

static enum sl_status infer_training(struct slp_infer *c)
{
	enum sl_status status = infer_forward(c);
	if (status) return status;
	if (sl_shape_size(c->in[0].shape) == 0 && c->in[0].shape.dim[1] > 0)
		return slp_reject(c, SL_ESHAPE, "the batch is empty and has no mean");
	return SL_OK;
}

static enum sl_status infer_grad(struct slp_infer *c)
{
	const struct slp_norm_grad_attrs *a = c->attrs;
	if (c->nin != VECTORS + a->relu)
		return slp_reject(c, SL_EINVAL, "takes %d inputs %s relu", VECTORS + a->relu,
		                  a->relu ? "with" : "without");
	enum sl_status status = check(c, &c->in[1], 2, a->layout);
	if (status) return status;
	if (!sl_shape_equal(c->in[0].shape, c->in[1].shape) ||
	    (a->relu && !sl_shape_equal(c->in[VECTORS].shape, c->in[1].shape)))
		return slp_reject(c, SL_ESHAPE, "dy, and y with relu, must have the shape of x");
	c->out[0] = c->in[1];
	c->out[1] = c->out[2] = c->in[2];
	return SL_OK;
}

#define FLOPS(name, each)                                                                                              \
	static double name(const struct slp_infer *c)                                                                  \
	{                                                                                                              \
		return (each) * (double)sl_shape_size(c->out[0].shape);                                                \
	}
FLOPS(flops_training, 7)
FLOPS(flops_infer, 3)
FLOPS(flops_grad, 9)

/* x is read twice, for the statistics and to normalise; dy too in the backward pass. */
#define BYTES(name, passes)                                                                                            \
	static double name(const struct slp_infer *c)                                                                  \
	{                                                                                                              \
		return (passes) * (double)sl_shape_size(c->out[0].shape) * (double)sl_dtype_size(c->out[0].dtype);     \
	}
BYTES(bytes_training, 3)
BYTES(bytes_grad, 5)

/* ---- reference -------------------------------------------------------------------------------------------------- */

static struct slp_norm_size size_of(const struct slp_kernel *k, const struct slp_view *x)
{
	return slp_norm_size_of(x->type.shape, k->op, k->attrs);
}

/* Element i of channel c, counted over images and within planes. */
static int64_t element(struct slp_norm_size z, int64_t c, int64_t i)
{
	int layout = z.layout == SLP_LAYOUT_NC16 ? SLP_LAYOUT_NC16 : SLP_LAYOUT_PLAIN; /* of NHWC, s is 1 */
	return slp_layout_index(layout, z.c, z.s, i / z.s, c, i % z.s);
}

static void ref_statistics(const struct slp_kernel *k, const struct slp_view *x, int64_t c, double *mean, double *var)
{
	struct slp_norm_size z = size_of(k, x);
	int64_t count = z.n * z.s;
	double sum = 0, squares = 0;
	for (int64_t i = 0; i < count; i++) sum += slp_get(x, element(z, c, i));
	*mean = sum / (double)count;
	for (int64_t i = 0; i < count; i++) {
		double d = slp_get(x, element(z, c, i)) - *mean;
		squares += d * d;
	}
	*var = squares / (double)count;
}

static void ref_normalise(const struct slp_kernel *k, int64_t c, double mean, double invstd)
{
	struct slp_norm_size z = size_of(k, &k->in[0]);
	const struct slp_norm_attrs *a = k->attrs;
	double gamma = slp_get(&k->in[1], c), beta = slp_get(&k->in[2], c);
	for (int64_t i = 0; i < z.n * z.s; i++) {
		int64_t e = element(z, c, i);
		double y = (slp_get(&k->in[0], e) - mean) * invstd * gamma + beta;
		slp_set(&k->out[0], e, slp_activated(y, a->activation));
	}
}

static void ref_run_on(const struct slp_kernel *k, const struct slp_view *running, int64_t c, double batch)
{
	const struct slp_norm_attrs *a = k->attrs;
	slp_set(running, c, a->momentum * slp_get(running, c) + (1 - a->momentum) * batch);
}

static enum sl_status ref_training(const struct slp_kernel *k)
{
	const struct slp_norm_attrs *a = k->attrs;
	struct slp_norm_size z = size_of(k, &k->in[0]);
	double bessel = slp_norm_bessel(a, (double)(z.n * z.s));
	for (int64_t c = 0; c < slp_size(&k->in[1]); c++) {
		double mean, var;
		ref_statistics(k, &k->in[0], c, &mean, &var);
		double invstd = 1 / sqrt(var + a->eps);
		ref_normalise(k, c, mean, invstd);
		slp_set(&k->out[1], c, mean);
		slp_set(&k->out[2], c, invstd);
		ref_run_on(k, &k->in[3], c, mean);
		ref_run_on(k, &k->in[4], c, var * bessel);
	}
	return SL_OK;
}

static enum sl_status ref_infer(const struct slp_kernel *k)
{
	const struct slp_norm_attrs *a = k->attrs;
	for (int64_t c = 0; c < slp_size(&k->in[1]); c++)
		ref_normalise(k, c, slp_get(&k->in[3], c), 1 / sqrt(slp_get(&k->in[4], c) + a->eps));
	return SL_OK;
}

/* Element e of dy, through the gradient of relu if there was one. */
static double ref_dy(const struct slp_kernel *k, int64_t e)
{
	const struct slp_norm_grad_attrs *a = k->attrs;
	return a->relu && slp_get(&k->in[5], e) <= 0 ? 0 : slp_get(&k->in[0], e);
}

/* With h = (x - mean) invstd:  dbeta = Σ dy,  dgamma = Σ dy h,
 * dx = gamma invstd (dy - dbeta / count - h dgamma / count); the last two terms only where mean and invstd depend on x.
 */
static enum sl_status ref_grad(const struct slp_kernel *k)
{
	const struct slp_norm_grad_attrs *a = k->attrs;
	struct slp_norm_size z = size_of(k, &k->in[1]);
	int64_t count = z.n * z.s;
	for (int64_t c = 0; c < z.c; c++) {
		double gamma = slp_get(&k->in[2], c), mean = slp_get(&k->in[3], c), invstd = slp_get(&k->in[4], c);
		double dgamma = 0, dbeta = 0;
		for (int64_t i = 0; i < count; i++) {
			int64_t e = element(z, c, i);
			dbeta += ref_dy(k, e);
			dgamma += ref_dy(k, e) * (slp_get(&k->in[1], e) - mean) * invstd;
		}
		for (int64_t i = 0; i < count; i++) {
			int64_t e = element(z, c, i);
			double h = (slp_get(&k->in[1], e) - mean) * invstd,
			       through = (dbeta + h * dgamma) / (double)count;
			double dy = ref_dy(k, e);
			slp_set(&k->out[0], e, gamma * invstd * (a->global ? dy : dy - through));
		}
		slp_set(&k->out[1], c, dgamma);
		slp_set(&k->out[2], c, dbeta);
	}
	return SL_OK;
}

/* ---- gradients -------------------------------------------------------------------------------------------------- */

static enum sl_status grad_by(struct slp_grad *g, sl_tensor *mean, sl_tensor *invstd, bool global, sl_tensor *d[3])
{
	struct slp_norm_grad_attrs attrs = {.global = global};
	sl_tensor *in[] = {g->dout[0], g->in[0], g->in[1], mean, invstd};
	enum sl_status status =
	        slp_apply(g->at, &slp_op_batch_norm_grad, &attrs, 5, in, sl_tensor_device(g->dout[0]), d);
	for (int i = 0; i < 3; i++)
		if (g->need[i]) g->din[i] = d[i];
	return status;
}

/* A graph pass sets the activation, after autograd. */
static enum sl_status check_plain(const struct slp_grad *g)
{
	if (((const struct slp_norm_attrs *)g->attrs)->activation == SL_IDENTITY) return SL_OK;
	slp_call_fail(g->at, g->op->name, SL_EUNSUPPORTED, "has no gradient with an activation in it");
	return SL_EUNSUPPORTED;
}

/* The batch's mean and inverse deviation are by-products: no gradient goes back through them. */
static enum sl_status grad_training(struct slp_grad *g)
{
	sl_tensor *d[3];
	enum sl_status status = check_plain(g);
	return status || !g->dout[0] ? status : grad_by(g, g->out[1], g->out[2], false, d);
}

/* dmean = -gamma invstd dbeta,  dvar = -gamma invstd² dgamma / 2. */
static enum sl_status grad_infer(struct slp_grad *g)
{
	const struct slp_norm_attrs *a = g->attrs;
	enum sl_status status = check_plain(g);
	if (status) return status;
	sl_tensor *d[3], *invstd = sl_pow_scalar_at(g->at, sl_add_scalar_at(g->at, g->in[4], a->eps), -0.5);
	status = grad_by(g, g->in[3], invstd, true, d);
	if (status || !(g->need[3] || g->need[4])) return status;
	sl_tensor *scale = sl_mul_at(g->at, g->in[1], invstd);
	if (g->need[3]) g->din[3] = sl_neg_at(g->at, sl_mul_at(g->at, scale, d[2]));
	if (g->need[4])
		g->din[4] = sl_mul_scalar_at(g->at, sl_mul_at(g->at, sl_mul_at(g->at, scale, invstd), d[1]), -0.5);
	return SL_OK;
}

/* ---- again, for second derivatives ------------------------------------------------------------------------------ */

/* gamma (x - mean) / sqrt(var + eps) + beta; mean and var are as long as x has axes. */
static bool normalised(const struct slp_grad *g, sl_tensor *x, sl_tensor *mean, sl_tensor *var, sl_tensor **out)
{
	const struct slp_norm_attrs *a = g->attrs;
	sl_shape column = sl_tensor_shape(x);
	for (int i = 0; i < column.ndim; i++)
		if (i != 1) column.dim[i] = 1;
	sl_tensor *gamma = sl_reshape_at(g->at, g->in[1], column), *beta = sl_reshape_at(g->at, g->in[2], column);
	sl_tensor *invstd = sl_pow_scalar_at(g->at, sl_add_scalar_at(g->at, var, a->eps), -0.5);
	sl_tensor *h = sl_mul_at(g->at, sl_sub_at(g->at, x, mean), invstd);
	sl_tensor *y = sl_add_at(g->at, sl_mul_at(g->at, h, gamma), beta);
	out[0] = y ? sl_cast_at(g->at, y, sl_tensor_dtype(g->in[0])) : NULL;
	return out[0] != NULL;
}

/* In the type of gamma: float32 beside a half type. */
static sl_tensor *widened(const struct slp_grad *g)
{
	enum sl_dtype dtype = sl_tensor_dtype(g->in[1]);
	return sl_tensor_dtype(g->in[0]) == dtype ? g->in[0] : sl_cast_at(g->at, g->in[0], dtype);
}

static bool training_again(const struct slp_grad *g, sl_tensor **out)
{
	static const int axes[SL_MAX_NDIM] = {0, 2, 3, 4, 5};
	if (check_plain(g) != SL_OK) return false;
	struct sl_reduce_opts over = {axes, sl_tensor_shape(g->in[0]).ndim - 1, true};
	sl_tensor *x = widened(g), *mean = sl_mean_at(g->at, x, over);
	sl_tensor *var = mean ? sl_mean_at(g->at, sl_square_at(g->at, sl_sub_at(g->at, x, mean)), over) : NULL;
	return var && normalised(g, x, mean, var, out);
}

static bool infer_again(const struct slp_grad *g, sl_tensor **out)
{
	if (check_plain(g) != SL_OK) return false;
	sl_tensor *x = widened(g);
	if (!x) return false;
	sl_shape column = sl_tensor_shape(x);
	for (int i = 0; i < column.ndim; i++)
		if (i != 1) column.dim[i] = 1;
	sl_tensor *mean = sl_reshape_at(g->at, g->in[3], column), *var = sl_reshape_at(g->at, g->in[4], column);
	return normalised(g, x, mean, var, out);
}

/* x, with channels along axis 1, normalised for each channel: gamma (x - m) / sqrt(v + eps) + beta.
 *
 * In training (sl_is_training()), m and v are the mean and the biased variance of the batch, and the running statistics
 * `mean` and `var` are updated in place: running = momentum running + (1 - momentum) batch, with the biased variance,
 * as in MXNet.  Otherwise, or with opts.use_global_stats, m and v are the running statistics. x is (n, c) or (n, c, …),
 * as is the result; the others are (c), all float32 or all float64.  SL_ESHAPE, SL_EDTYPE: inputs do not match, or an
 * empty batch in training; SL_EINVAL: a negative eps, a momentum outside 0 to 1.  S. Ioffe, C. Szegedy, "Batch
 * normalization", ICML 2015.
 *
 *     sl_tensor *y = sl_batch_norm(x, gamma, beta, mean, var, .momentum = 0.99); */
sl_tensor *sl_batch_norm_at(const char *at, sl_tensor *x, sl_tensor *gamma, sl_tensor *beta, sl_tensor *mean,
                            sl_tensor *var, struct sl_batch_norm_opts opts)
{
	if (!SLP_OPTIONS(sl_batch_norm_opts, at, "sl_batch_norm", &opts)) return NULL;
	struct slp_norm_attrs attrs = {.eps = opts.eps, .momentum = opts.momentum};
	bool training = sl_is_training() && !opts.use_global_stats;
	sl_tensor *in[] = {x, gamma, beta, mean, var};
	return slp_apply1(at, training ? &slp_op_batch_norm : &slp_op_batch_norm_infer, &attrs, 5, in);
}

#define ROWS(ref, name)                                                                                                \
	SLP_ROWS(SLP_ROW(SLP_F32, slp_cpu_##name, slp_cuda_##name), SLP_ROW(SLP_F64, ref, slp_cuda_##name),            \
	         SLP_CPU_ROW(SLP_HALVES | SLP_F32, slp_cpu_##name##_half, NULL),                                       \
	         SLP_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, NULL, slp_cuda_##name),                                     \
	         SLP_ROW(SLP_DTYPE(SL_FLOAT16) | SLP_F32, NULL, slp_cuda_##name))

const struct sl_op slp_op_batch_norm = {
        .name = "batch_norm",
        .doc = "Each channel with mean 0 and deviation 1 over the batch, scaled and shifted; updates running "
               "statistics.",
        .args = "x gamma beta running_mean running_var",
        SLP_NIN(5),
        .nout = 3,
        .attr_table = slp_norm_attr_table,
        .attrs_size = sizeof(struct slp_norm_attrs),
        .saves = SLP_IN(0) | SLP_IN(1) | SLP_OUT(1) | SLP_OUT(2),
        .mutates = SLP_IN(3) | SLP_IN(4),
        .rows = ROWS(ref_training, batch_norm),
        .infer = infer_training,
        .flops = flops_training,
        .bytes = bytes_training,
        .grad = grad_training,
        .again = training_again,
        .scratch = slp_norm_scratch,
        .ref = ref_training,
};

const struct sl_op slp_op_batch_norm_infer = {
        .name = "batch_norm_infer",
        .doc = "Each channel normalised with given statistics, scaled and shifted.",
        .args = "x gamma beta mean var",
        SLP_NIN(5),
        .nout = 1,
        .attr_table = slp_norm_attr_table,
        .attrs_size = sizeof(struct slp_norm_attrs),
        .saves = SLP_IN(0) | SLP_IN(1) | SLP_IN(3) | SLP_IN(4),
        .rows = ROWS(ref_infer, batch_norm_infer),
        .infer = infer_forward,
        .flops = flops_infer,
        .grad = grad_infer,
        .again = infer_again,
        .scratch = slp_norm_scratch,
        .ref = ref_infer,
};

const struct sl_op slp_op_batch_norm_grad = {
        .name = "batch_norm_grad",
        .doc = "gradient of batch_norm with respect to x, gamma and beta",
        .args = "dy x gamma mean invstd y",
        .nin_min = VECTORS,
        .nin_max = VECTORS + 1,
        .nout = 3,
        .inplace = 1,
        .attr_table = norm_grad_attr_table,
        .attrs_size = sizeof(struct slp_norm_grad_attrs),
        .rows = ROWS(ref_grad, batch_norm_grad),
        .infer = infer_grad,
        .flops = flops_grad,
        .bytes = bytes_grad,
        .scratch = slp_norm_scratch,
        .ref = ref_grad,
};
