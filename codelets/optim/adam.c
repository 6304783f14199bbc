/* Adam and AdamW: steps by estimates of each gradient's mean and uncentred variance.  The rules of torch.optim.Adam and
 * AdamW (without amsgrad):
 *     g = g + weight_decay w,  or, decoupled,  w = w - lr weight_decay w;
 *     m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g²;
 *     w = w - lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps).
 * D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; I. Loshchilov, F. Hutter, "Decoupled
 * weight decay regularization", ICLR 2019. */
#include "common/vmath.h"
#include "op_list.h"
#include "optim.h"
#include "options.h"
#include "starling/ops.h"

static const struct slp_attr attr_table[] = {
        SLP_OPTIM_ROWS(struct slp_adam_attrs),
        SLP_ATTR_DEFAULTED(struct slp_adam_attrs, beta1, "factor of the old mean; 0 means 0.9"),
        SLP_ATTR_DEFAULTED(struct slp_adam_attrs, beta2, "factor of the old variance; 0 means 0.999"),
        SLP_ATTR_DEFAULTED(struct slp_adam_attrs, eps, "added to the deviation; 0 means 1e-8"),
        SLP_ATTR_VALUE(struct slp_adam_attrs, step, SLP_INT64, 1, "number of this step, from 1"),
        SLP_ATTR_VALUE(struct slp_adam_attrs, skipped, SLP_INT64, 1, "of these, steps that left the parameters alone"),
        SLP_ATTR_VALUE(struct slp_adam_attrs, decoupled, SLP_BOOL, 1, "parameters decay, not gradients (AdamW)"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------ */

static bool is_share(double beta)
{
	return beta >= 0 && beta < 1;
}

static enum sl_status infer(struct slp_infer *c)
{
	struct slp_adam_attrs *a = c->attrs;
	a->beta1 = slp_or(a->beta1, 0.9);
	a->beta2 = slp_or(a->beta2, 0.999);
	a->eps = slp_or(a->eps, 1e-8);
	if (!is_share(a->beta1) || !is_share(a->beta2))
		return slp_reject(c, SL_EINVAL, "beta1 is %g, beta2 is %g; they must be below 1 and not negative",
		                  a->beta1, a->beta2);
	if (slp_optim_figure(c, "eps", a->eps) != SL_OK) return SL_EINVAL;
	if (a->step < 1) return slp_reject(c, SL_EINVAL, "step is %lld; steps count from 1", (long long)a->step);
	if (a->skipped < 0 || a->skipped >= a->step)
		return slp_reject(c, SL_EINVAL, "%lld of %lld steps are skipped", (long long)a->skipped,
		                  (long long)a->step);
	return slp_optim_infer(c);
}

/* The number may have changed since infer saw it. */
enum sl_status slp_adam_check_step(const struct slp_kernel *k)
{
	const struct slp_adam_attrs *a = k->attrs;
	if (slp_adam_number(a) >= 1) return SL_OK;
	return slp_kernel_fail(k, SL_EINVAL, "step is %lld, skipped %lld; steps count from 1", (long long)a->step,
	                       (long long)a->skipped);
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static void one(const void *attrs, double t[])
{
	const struct slp_adam_attrs *a = attrs;
	double g = t[1], step = slp_adam_number(a), lr = slp_optim_lr(attrs);
	if (a->decoupled) t[0] -= lr * a->weight_decay * t[0];
	else g += a->weight_decay * t[0];
	t[2] = a->beta1 * t[2] + (1 - a->beta1) * g;
	t[3] = a->beta2 * t[3] + (1 - a->beta2) * g * g;
	t[0] -= lr / (1 - pow(a->beta1, step)) * t[2] / (sqrt(t[3] / (1 - pow(a->beta2, step))) + a->eps);
}

static enum sl_status ref(const struct slp_kernel *k)
{
	enum sl_status status = slp_adam_check_step(k);
	return status ? status : slp_optim_ref(k, one);
}

/* Coefficients, so that a step is  w = keep w - rate m / (deviation sqrt(v) + eps)  with  g = g + decay w. */
struct rule {
	float beta1, rest1, beta2, rest2, keep, decay, rate, deviation, eps;
};

static SLP_CLONES void step(const void *rule, const struct slp_optim_clip *clip, float *const t[], int64_t n)
{
	const struct rule r = *(const struct rule *)rule;
	const struct slp_optim_clip c = *clip;
	float *w = t[0], *m = t[2], *v = t[3];
	const float *grad = t[1];
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) {
		float g = slp_optim_clipped(&c, grad[i]) + r.decay * w[i];
		m[i] = r.beta1 * m[i] + r.rest1 * g;
		v[i] = r.beta2 * v[i] + r.rest2 * g * g;
		w[i] = r.keep * w[i] - r.rate * m[i] / (r.deviation * sqrtf(v[i]) + r.eps);
	}
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	const struct slp_adam_attrs *a = k->attrs;
	double number = slp_adam_number(a), lr = slp_optim_lr(k->attrs);
	struct rule r = {.beta1 = (float)a->beta1,
	                 .rest1 = (float)(1 - a->beta1),
	                 .beta2 = (float)a->beta2,
	                 .rest2 = (float)(1 - a->beta2),
	                 .keep = a->decoupled ? (float)(1 - lr * a->weight_decay) : 1,
	                 .decay = a->decoupled ? 0 : (float)a->weight_decay,
	                 .rate = (float)(lr / (1 - pow(a->beta1, number))),
	                 .deviation = (float)(1 / sqrt(1 - pow(a->beta2, number))),
	                 .eps = (float)a->eps};
	enum sl_status status = slp_adam_check_step(k);
	return status ? status : slp_optim_cpu(k, step, &r);
}

SLP_OPTIM_OP(adam, "a step of Adam or AdamW: parameters, gradients, means, variances in turn",
             "param gradient mean variance ...", 4, SLP_IN(0) | SLP_IN(2) | SLP_IN(3), struct slp_adam_attrs,
             .infer = infer, .rows = SLP_FLOAT_ROWS_OF(ref, cpu, slp_cuda_adam));

/* One step of Adam, in place; with opts.decoupled, of AdamW: the decay then takes lr weight_decay of each parameter
 * instead of adding weight_decay times the parameter to its gradient.  As torch.optim.Adam and AdamW; D. P. Kingma,
 * J. Ba, ICLR 2015; I. Loshchilov, F. Hutter, ICLR 2019.
 *
 * means and vars are the running means of the gradients and of their squares, zero at first.  opts.step is the number
 * of this step, from 1: it makes up for that zero; of these, opts.skipped have left the parameters alone.  clip_norm,
 * clip_value and all else, the errors too, as in sl_sgd_update; also SL_EINVAL: step below 1, a beta outside [0, 1), a
 * negative eps.
 *
 *	for (int64_t step = 1; step <= steps; step++) {
 *		...
 *		sl_adam_update(params, grads, means, vars, count, .lr = 1e-3, .step = step);
 *	} */
enum sl_status sl_adam_update_at(const char *at, sl_tensor *const *params, sl_tensor *const *grads,
                                 sl_tensor *const *means, sl_tensor *const *vars, int count, struct sl_adam_opts opts)
{
	if (!SLP_OPTIONS(sl_adam_opts, at, "sl_adam_update", &opts)) return SL_EINVAL;
	const struct slp_adam_attrs attrs = {.lr = opts.lr,
	                                     .beta1 = opts.beta1,
	                                     .beta2 = opts.beta2,
	                                     .eps = opts.eps,
	                                     .weight_decay = opts.weight_decay,
	                                     .decoupled = opts.decoupled,
	                                     .rescale = opts.rescale,
	                                     .clip_norm = opts.clip_norm,
	                                     .clip_value = opts.clip_value,
	                                     .lr_scale = opts.lr_scale,
	                                     .step = opts.step,
	                                     .skipped = opts.skipped};
	return slp_optim_update(&(struct slp_optim_call){at,
	                                                 "sl_adam_update",
	                                                 &slp_op_adam,
	                                                 &attrs,
	                                                 count,
	                                                 {params, grads, means, vars},
	                                                 {"params", "grads", "means", "vars"}});
}
