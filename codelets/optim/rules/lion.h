/* Lion: steps by the sign of a mean of the gradients, all elements by the same length; parameters decay by themselves:
 *     w = w - lr weight_decay w - lr sign(beta1 m + (1 - beta1) g);   m = beta2 m + (1 - beta2) g.
 * X. Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023. */
#ifndef SLP_RULES_LION_H
#define SLP_RULES_LION_H

#include "optim/rule.h"
#include "optimizer.h"

struct slp_lion_attrs {
	SLP_OPTIM_ATTRS
	double beta1, beta2;
};

SLP_RULE_STRUCT(lion)
{
	T lr, keep, beta1, rest1, beta2, rest2;
};

SLP_RULE_COEFFICIENTS(lion)
{
	double lr = slp_optim_lr(a);
	r->lr = (T)lr;
	r->keep = (T)(1 - lr * a->weight_decay);
	r->beta1 = (T)a->beta1;
	r->rest1 = (T)(1 - a->beta1);
	r->beta2 = (T)a->beta2;
	r->rest2 = (T)(1 - a->beta2);
}

SLP_RULE_ELEMENT(lion, m, none)
{
	T mean = r->beta1 * *m + r->rest1 * g;
	T sign = mean > 0 ? 1 : mean < 0 ? -1 : mean; /* NaN stays */
	*w = r->keep * *w - r->lr * sign;
	*m = r->beta2 * *m + r->rest2 * g;
}

SLP_RULE_CUDA(lion, slp_optim_check_nothing)

#ifndef __cplusplus

static const struct slp_attr lion_attrs[] = {
        SLP_OPTIM_ROWS(struct slp_lion_attrs),
        SLP_ATTR_DEFAULTED(struct slp_lion_attrs, beta1, "factor of the old mean in a step; 0 means 0.9"),
        SLP_ATTR_DEFAULTED(struct slp_lion_attrs, beta2, "factor of the old mean in the next one; 0 means 0.99"),
        {0},
};

static const struct slp_option lion_options[] = {
        SLP_OPTION(struct slp_lion_attrs, beta1, 0.9),
        SLP_OPTION(struct slp_lion_attrs, beta2, 0.99),
};
static const struct slp_optimizer lion_optimizer;

static enum sl_status lion_infer(struct slp_infer *c)
{
	return slp_optim_infer_options(c, &lion_optimizer);
}

static void lion_one(const void *attrs, double t[])
{
	const struct slp_lion_attrs *a = attrs;
	double g = t[1], lr = slp_optim_lr(attrs), mean = a->beta1 * t[2] + (1 - a->beta1) * g;
	t[0] -= lr * a->weight_decay * t[0];
	t[0] -= lr * (isnan(mean) || mean == 0 ? mean : copysign(1, mean));
	t[2] = a->beta2 * t[2] + (1 - a->beta2) * g;
}

SLP_RULE_STEP(lion, lion, 1)
SLP_RULE_KERNELS(lion, lion, slp_optim_check_nothing)

SLP_OPTIM_OP(lion, "a step of Lion: parameters, gradients, means in turn", "param gradient mean ...", 3,
             SLP_IN(0) | SLP_IN(2), struct slp_lion_attrs, lion_attrs, .infer = lion_infer,
             SLP_RULE_ROWS(lion, slp_cuda_lion));

static const struct slp_optimizer lion_optimizer = {
        .name = "lion",
        .lr = 1e-4,
        .states = {"mean"},
        .options = lion_options,
        .noptions = 2,
        .op = &slp_op_lion,
};

#endif

#endif
