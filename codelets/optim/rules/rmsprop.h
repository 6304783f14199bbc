/* RMSProp, plain and with momentum: steps by the gradient over its root mean square.  The rule of torch.optim.RMSprop,
 * not centred:
 *     g = g + weight_decay w;   s = alpha s + (1 - alpha) g²;   d = g / (sqrt(s) + eps);
 *     w = w - lr d,  or, with momentum,  m = momentum m + d;   w = w - lr m.
 * T. Tieleman, G. Hinton, "Lecture 6.5: RMSProp", Coursera, 2012. */
#ifndef SLP_RULES_RMSPROP_H
#define SLP_RULES_RMSPROP_H

#include "optim/rule.h"
#include "optimizer.h"
#include "options.h"

SLP_RULE_STRUCT(rmsprop)
{
	T lr, decay, alpha, rest, eps, momentum;
};

SLP_RULE_COEFFICIENTS(rmsprop)
{
	r->lr = (T)slp_optim_lr(a);
	r->decay = (T)a->weight_decay;
	r->alpha = (T)a->alpha;
	r->rest = (T)(1 - a->alpha);
	r->eps = (T)a->eps;
	r->momentum = (T)a->momentum;
}

SLP_RULE_ELEMENT(rmsprop, s, m)
{
	g += r->decay * *w;
	*s = r->alpha * *s + r->rest * g * g;
	T d = g / (slp_rule_sqrt(*s) + r->eps);
	if (m) *m = d = r->momentum * *m + d;
	*w -= r->lr * d;
}

SLP_RULE_CUDA(rmsprop, slp_optim_check_nothing)

#ifndef __cplusplus

static const struct slp_attr rmsprop_attrs[] = {
        SLP_OPTIM_ROWS(struct slp_rmsprop_attrs),
        SLP_ATTR_DEFAULTED(struct slp_rmsprop_attrs, alpha, "factor of the old squares; 0 means 0.99"),
        SLP_ATTR_DEFAULTED(struct slp_rmsprop_attrs, eps, "added to the root; 0 means 1e-8"),
        SLP_ATTR_VALUE(struct slp_rmsprop_attrs, momentum, SLP_DOUBLE, 1, "factor of the old momentum"),
        {0},
};

/* The trainer's alpha is below 1, the function's may be 1. */
static enum sl_status rmsprop_infer(struct slp_infer *c)
{
	struct slp_rmsprop_attrs *a = c->attrs;
	a->alpha = slp_or(a->alpha, 0.99);
	a->eps = slp_or(a->eps, 1e-8);
	if (!(a->alpha >= 0 && a->alpha <= 1))
		return slp_reject(c, SL_EINVAL, "alpha is %g; it must be from 0 to 1", a->alpha);
	if (slp_optim_figure(c, "eps", a->eps) != SL_OK) return SL_EINVAL;
	enum sl_status s = slp_optim_figure(c, "momentum", a->momentum);
	return s == SL_OK ? slp_optim_infer(c) : s;
}

static double rmsprop_quotient(const struct slp_rmsprop_attrs *a, double t[])
{
	double g = t[1] + a->weight_decay * t[0];
	t[2] = a->alpha * t[2] + (1 - a->alpha) * g * g;
	return g / (sqrt(t[2]) + a->eps);
}

static void rmsprop_one(const void *attrs, double t[])
{
	t[0] -= slp_optim_lr(attrs) * rmsprop_quotient(attrs, t);
}

static void rmsprop_momentum_one(const void *attrs, double t[])
{
	const struct slp_rmsprop_attrs *a = attrs;
	t[3] = a->momentum * t[3] + rmsprop_quotient(a, t);
	t[0] -= slp_optim_lr(attrs) * t[3];
}

SLP_RULE_STEP(rmsprop, rmsprop, 1)
SLP_RULE_KERNELS(rmsprop, rmsprop, slp_optim_check_nothing)
SLP_RULE_STEP(rmsprop_momentum, rmsprop, 2)
SLP_RULE_KERNELS(rmsprop_momentum, rmsprop, slp_optim_check_nothing)

SLP_OPTIM_OP(rmsprop, "a step of RMSProp: parameters, gradients, mean squares in turn", "param gradient square ...", 3,
             SLP_IN(0) | SLP_IN(2), struct slp_rmsprop_attrs, rmsprop_attrs, .infer = rmsprop_infer,
             SLP_RULE_ROWS(rmsprop, slp_cuda_rmsprop));
SLP_OPTIM_OP(rmsprop_momentum, "a step of RMSProp with momentum: parameters, gradients, mean squares, momenta in turn",
             "param gradient square momentum ...", 4, SLP_IN(0) | SLP_IN(2) | SLP_IN(3), struct slp_rmsprop_attrs,
             rmsprop_attrs, .infer = rmsprop_infer, SLP_RULE_ROWS(rmsprop_momentum, slp_cuda_rmsprop));

static const struct slp_option rmsprop_options[] = {
        SLP_OPTION(struct slp_rmsprop_attrs, alpha, 0.99),
        SLP_OPTION(struct slp_rmsprop_attrs, eps, 1e-8),
        SLP_OPTION(struct slp_rmsprop_attrs, momentum, 0),
};
static const struct slp_optimizer rmsprop_optimizer = {
        .name = "rmsprop",
        .lr = 0.001,
        .states = {"square", "momentum"},
        .options = rmsprop_options,
        .noptions = 3,
        .op = &slp_op_rmsprop_momentum,
        .plain = &slp_op_rmsprop,
};

#endif

#endif
