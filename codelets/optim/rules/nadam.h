/* NAdam: Adam with Nesterov's momentum, whose factor grows from step to step.  The rule of torch.optim.NAdam:
 *     mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2);   M = mu(1) mu(2) … mu(step);   g = g + weight_decay w;
 *     m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g²;   d = sqrt(v / (1 - beta2^step)) + eps;
 *     w = w - lr ((1 - mu(step)) / (1 - M) g + mu(step + 1) / (1 - M mu(step + 1)) m) / d.
 * T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR 2016 workshop. */
#ifndef SLP_RULES_NADAM_H
#define SLP_RULES_NADAM_H

#include "optim/rule.h"
#include "optimizer.h"

struct slp_nadam_attrs {
	SLP_OPTIM_COUNTED_ATTRS
	double beta1, beta2, eps, momentum_decay;
};

/* A step is  w = w - (direct g + through m) / (deviation sqrt(v) + eps)  with  g = g + decay w. */
SLP_RULE_STRUCT(nadam)
{
	T decay, beta1, rest1, beta2, rest2, direct, through, deviation, eps;
};

static inline double nadam_mu(const struct slp_nadam_attrs *a, double t)
{
	return a->beta1 * (1 - 0.5 * pow(0.96, t * a->momentum_decay));
}

/* mu(1) … mu(step).  Ends early: 1 - M rounds to 1, or all further factors are beta1. */
static inline double nadam_product(const struct slp_nadam_attrs *a, double step)
{
	double product = 1, ratio = pow(0.96, a->momentum_decay), power = ratio, t = 1;
	for (; t <= step && product > 1e-18 && power > 1e-17; t++, power *= ratio)
		product *= a->beta1 * (1 - 0.5 * power);
	return t <= step && product > 1e-18 ? product * pow(a->beta1, step - t + 1) : product;
}

SLP_RULE_COEFFICIENTS(nadam)
{
	double step = slp_optim_number(a), lr = slp_optim_lr(a), product = nadam_product(a, step);
	double now = nadam_mu(a, step), next = nadam_mu(a, step + 1);
	r->decay = (T)a->weight_decay;
	r->beta1 = (T)a->beta1;
	r->rest1 = (T)(1 - a->beta1);
	r->beta2 = (T)a->beta2;
	r->rest2 = (T)(1 - a->beta2);
	r->direct = (T)(lr * (1 - now) / (1 - product));
	r->through = (T)(lr * next / (1 - product * next));
	r->deviation = (T)(1 / sqrt(1 - pow(a->beta2, step)));
	r->eps = (T)a->eps;
}

SLP_RULE_ELEMENT(nadam, m, v)
{
	g += r->decay * *w;
	*m = r->beta1 * *m + r->rest1 * g;
	*v = r->beta2 * *v + r->rest2 * g * g;
	*w -= (r->direct * g + r->through * *m) / (r->deviation * slp_rule_sqrt(*v) + r->eps);
}

SLP_RULE_CUDA(nadam, slp_optim_check_number)

#ifndef __cplusplus

static const struct slp_attr nadam_attrs[] = {
        SLP_OPTIM_ROWS(struct slp_nadam_attrs),
        SLP_OPTIM_COUNTED_ROWS(struct slp_nadam_attrs),
        SLP_ATTR_DEFAULTED(struct slp_nadam_attrs, beta1, "factor of the old mean; 0 means 0.9"),
        SLP_ATTR_DEFAULTED(struct slp_nadam_attrs, beta2, "factor of the old variance; 0 means 0.999"),
        SLP_ATTR_DEFAULTED(struct slp_nadam_attrs, eps, "added to the deviation; 0 means 1e-8"),
        SLP_ATTR_DEFAULTED(struct slp_nadam_attrs, momentum_decay, "how fast the momentum grows; 0 means 0.004"),
        {0},
};

static const struct slp_option nadam_options[] = {
        SLP_OPTION(struct slp_nadam_attrs, beta1, 0.9),
        SLP_OPTION(struct slp_nadam_attrs, beta2, 0.999),
        SLP_OPTION(struct slp_nadam_attrs, eps, 1e-8),
        SLP_OPTION(struct slp_nadam_attrs, momentum_decay, 0.004),
};
static const struct slp_optimizer nadam_optimizer;

static enum sl_status nadam_infer(struct slp_infer *c)
{
	return slp_optim_infer_options(c, &nadam_optimizer);
}

static void nadam_one(const void *attrs, double t[])
{
	const struct slp_nadam_attrs *a = attrs;
	double step = slp_optim_number(a), lr = slp_optim_lr(attrs), g = t[1] + a->weight_decay * t[0];
	double product = nadam_product(a, step), next = nadam_mu(a, step + 1);
	t[2] = a->beta1 * t[2] + (1 - a->beta1) * g;
	t[3] = a->beta2 * t[3] + (1 - a->beta2) * g * g;
	double deviation = sqrt(t[3] / (1 - pow(a->beta2, step))) + a->eps;
	t[0] -= lr * (1 - nadam_mu(a, step)) / (1 - product) * g / deviation;
	t[0] -= lr * next / (1 - product * next) * t[2] / deviation;
}

SLP_RULE_STEP(nadam, nadam, 2)
SLP_RULE_KERNELS(nadam, nadam, slp_optim_check_number)

SLP_OPTIM_OP(nadam, "a step of NAdam: parameters, gradients, means, variances in turn",
             "param gradient mean variance ...", 4, SLP_IN(0) | SLP_IN(2) | SLP_IN(3), struct slp_nadam_attrs,
             nadam_attrs, .infer = nadam_infer, SLP_RULE_ROWS(nadam, slp_cuda_nadam));

static const struct slp_optimizer nadam_optimizer = {
        .name = "nadam",
        .lr = 0.002,
        .states = {"mean", "var"},
        .options = nadam_options,
        .noptions = 4,
        .op = &slp_op_nadam,
        .counts = true,
};

#endif

#endif
