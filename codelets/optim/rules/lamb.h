/* LAMB: AdamW whose step of each parameter is as long as lr times the parameter's norm.  The rule, without limits of the
 * norms:
 *     m = beta1 m + (1 - beta1) g;   v = beta2 v + (1 - beta2) g²;
 *     u = m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + eps) + weight_decay w;
 *     w = w - lr ||w|| / ||u|| u,  or w - lr u where one of the norms is 0.
 * Y. You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020. */
#ifndef SLP_RULES_LAMB_H
#define SLP_RULES_LAMB_H

#include "optim/rule.h"
#include "optimizer.h"

struct slp_lamb_attrs {
	SLP_OPTIM_COUNTED_ATTRS
	double beta1, beta2, eps;
};

/* The direction is  mean m / (deviation sqrt(v) + eps) + decay w. */
SLP_RULE_STRUCT(lamb)
{
	T beta1, rest1, beta2, rest2, mean, deviation, eps, decay, rate;
};

SLP_RULE_COEFFICIENTS(lamb)
{
	double step = slp_optim_number(a);
	r->beta1 = (T)a->beta1;
	r->rest1 = (T)(1 - a->beta1);
	r->beta2 = (T)a->beta2;
	r->rest2 = (T)(1 - a->beta2);
	r->mean = (T)(1 / (1 - pow(a->beta1, step)));
	r->deviation = (T)(1 / sqrt(1 - pow(a->beta2, step)));
	r->eps = (T)a->eps;
	r->decay = (T)a->weight_decay;
	r->rate = (T)slp_optim_lr(a);
}

SLP_RULE_ELEMENT(lamb, m, v)
{
	(void)w;
	*m = r->beta1 * *m + r->rest1 * g;
	*v = r->beta2 * *v + r->rest2 * g * g;
}

SLP_RULE_DIRECTION(lamb, m, v)
{
	return r->mean * m / (r->deviation * slp_rule_sqrt(v) + r->eps) + r->decay * w;
}

SLP_RULE_LAYERWISE_CUDA(lamb, slp_optim_check_number)

#ifndef __cplusplus

static const struct slp_attr lamb_attrs[] = {
        SLP_OPTIM_ROWS(struct slp_lamb_attrs),
        SLP_OPTIM_COUNTED_ROWS(struct slp_lamb_attrs),
        SLP_ATTR_DEFAULTED(struct slp_lamb_attrs, beta1, "factor of the old mean; 0 means 0.9"),
        SLP_ATTR_DEFAULTED(struct slp_lamb_attrs, beta2, "factor of the old variance; 0 means 0.999"),
        SLP_ATTR_DEFAULTED(struct slp_lamb_attrs, eps, "added to the deviation; 0 means 1e-6"),
        {0},
};

static const struct slp_option lamb_options[] = {
        SLP_OPTION(struct slp_lamb_attrs, beta1, 0.9),
        SLP_OPTION(struct slp_lamb_attrs, beta2, 0.999),
        SLP_OPTION(struct slp_lamb_attrs, eps, 1e-6),
};
static const struct slp_optimizer lamb_optimizer;

static enum sl_status lamb_infer(struct slp_infer *c)
{
	return slp_optim_infer_options(c, &lamb_optimizer);
}

static void lamb_one(const void *attrs, double t[])
{
	const struct slp_lamb_attrs *a = attrs;
	t[2] = a->beta1 * t[2] + (1 - a->beta1) * t[1];
	t[3] = a->beta2 * t[3] + (1 - a->beta2) * t[1] * t[1];
}

static double lamb_direction_one(const void *attrs, const double t[])
{
	const struct slp_lamb_attrs *a = attrs;
	double step = slp_optim_number(a), mean = t[2] / (1 - pow(a->beta1, step));
	return mean / (sqrt(t[3] / (1 - pow(a->beta2, step))) + a->eps) + a->weight_decay * t[0];
}

SLP_RULE_LAYERWISE_KERNELS(lamb, 2, slp_optim_check_number)

SLP_LAYERWISE_OP(lamb, "a step of LAMB: parameters, gradients, means, variances in turn",
                 "param gradient mean variance ...", 4, SLP_IN(0) | SLP_IN(2) | SLP_IN(3), struct slp_lamb_attrs,
                 lamb_attrs, .infer = lamb_infer, SLP_RULE_ROWS(lamb, slp_cuda_lamb));

static const struct slp_optimizer lamb_optimizer = {
        .name = "lamb",
        .lr = 0.001,
        .states = {"mean", "var"},
        .options = lamb_options,
        .noptions = 3,
        .op = &slp_op_lamb,
        .counts = true,
};

#endif

#endif
