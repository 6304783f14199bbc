/* Adam: steps by estimates of each gradient's mean and uncentred variance.  The rules of torch.optim.Adam and, for
 * adamw.h, AdamW (without amsgrad):
 *     g = g + weight_decay w,  or, decoupled,  w = w - lr weight_decay w;
 *     m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g²;
 *     w = w - lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps).
 * D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015. */
#ifndef SLP_RULES_ADAM_H
#define SLP_RULES_ADAM_H

#include "optim/rule.h"
#include "optimizer.h"

/* Coefficients, so that a step is  w = keep w - rate m / (deviation sqrt(v) + eps)  with  g = g + decay w. */
SLP_RULE_STRUCT(adam)
{
	T beta1, rest1, beta2, rest2, keep, decay, rate, deviation, eps;
};

SLP_RULE_COEFFICIENTS(adam)
{
	double step = slp_optim_number(a), lr = slp_optim_lr(a);
	r->beta1 = (T)a->beta1;
	r->rest1 = (T)(1 - a->beta1);
	r->beta2 = (T)a->beta2;
	r->rest2 = (T)(1 - a->beta2);
	r->keep = a->decoupled ? (T)(1 - lr * a->weight_decay) : 1;
	r->decay = a->decoupled ? 0 : (T)a->weight_decay;
	r->rate = (T)(lr / (1 - pow(a->beta1, step)));
	r->deviation = (T)(1 / sqrt(1 - pow(a->beta2, step)));
	r->eps = (T)a->eps;
}

SLP_RULE_ELEMENT(adam, m, v)
{
	g += r->decay * *w;
	*m = r->beta1 * *m + r->rest1 * g;
	*v = r->beta2 * *v + r->rest2 * g * g;
	*w = r->keep * *w - r->rate * *m / (r->deviation * slp_rule_sqrt(*v) + r->eps);
}

SLP_RULE_CUDA(adam, slp_optim_check_number)

#ifndef __cplusplus

static const struct slp_attr adam_attrs[] = {
        SLP_OPTIM_ROWS(struct slp_adam_attrs),
        SLP_ATTR_DEFAULTED(struct slp_adam_attrs, beta1, "factor of the old mean; 0 means 0.9"),
        SLP_ATTR_DEFAULTED(struct slp_adam_attrs, beta2, "factor of the old variance; 0 means 0.999"),
        SLP_ATTR_DEFAULTED(struct slp_adam_attrs, eps, "added to the deviation; 0 means 1e-8"),
        SLP_OPTIM_COUNTED_ROWS(struct slp_adam_attrs),
        SLP_ATTR_VALUE(struct slp_adam_attrs, decoupled, SLP_BOOL, 1, "parameters decay, not gradients (AdamW)"),
        {0},
};

static const struct slp_option adam_options[] = {
        SLP_OPTION(struct slp_adam_attrs, beta1, 0.9),
        SLP_OPTION(struct slp_adam_attrs, beta2, 0.999),
        SLP_OPTION(struct slp_adam_attrs, eps, 1e-8),
};
static const struct slp_optimizer adam_optimizer;

static enum sl_status adam_infer(struct slp_infer *c)
{
	return slp_optim_infer_options(c, &adam_optimizer);
}

static void adam_one(const void *attrs, double t[])
{
	const struct slp_adam_attrs *a = attrs;
	double g = t[1], step = slp_optim_number(a), lr = slp_optim_lr(attrs);
	if (a->decoupled) t[0] -= lr * a->weight_decay * t[0];
	else g += a->weight_decay * t[0];
	t[2] = a->beta1 * t[2] + (1 - a->beta1) * g;
	t[3] = a->beta2 * t[3] + (1 - a->beta2) * g * g;
	t[0] -= lr / (1 - pow(a->beta1, step)) * t[2] / (sqrt(t[3] / (1 - pow(a->beta2, step))) + a->eps);
}

SLP_RULE_STEP(adam, adam, 2)
SLP_RULE_KERNELS(adam, adam, slp_optim_check_number)

SLP_OPTIM_OP(adam, "a step of Adam or AdamW: parameters, gradients, means, variances in turn",
             "param gradient mean variance ...", 4, SLP_IN(0) | SLP_IN(2) | SLP_IN(3), struct slp_adam_attrs,
             adam_attrs, .infer = adam_infer, SLP_RULE_ROWS(adam, slp_cuda_adam));

static const struct slp_optimizer adam_optimizer = {
        .name = "adam",
        .lr = 0.001,
        .states = {"mean", "var"},
        .options = adam_options,
        .noptions = 3,
        .op = &slp_op_adam,
        .counts = true,
};

#endif

#endif
