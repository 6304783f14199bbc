/* Stochastic gradient descent, plain, with momentum, with Nesterov's; the rule of torch.optim.SGD without dampening:
 *     g = g + weight_decay w;   m = momentum m + g;   w = w - lr m,  or  w - lr (g + momentum m)  with Nesterov's.
 * With velocities, MXNet's rule:
 *     v = momentum v - lr g;   w = w + v,  or  w + momentum v - lr g.
 * I. Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML 2013. */
#ifndef SLP_RULES_SGD_H
#define SLP_RULES_SGD_H

#include "optim/rule.h"
#include "optimizer.h"

/* A step is  w - lr (direct g + through m),  with Nesterov's or without;  w - lr g  without a momentum.  With velocities
 * lr is -1, and g is first multiplied by `gain`. */
SLP_RULE_STRUCT(sgd)
{
	T lr, decay, momentum, direct, through, gain;
};

SLP_RULE_COEFFICIENTS(sgd)
{
	r->lr = a->velocity ? (T)-1 : (T)slp_optim_lr(a);
	r->gain = a->velocity ? (T)-slp_optim_lr(a) : (T)1;
	r->decay = (T)a->weight_decay;
	r->momentum = (T)a->momentum;
	r->direct = a->nesterov ? 1 : 0;
	r->through = a->nesterov ? r->momentum : 1;
}

SLP_RULE_ELEMENT(sgd, m, none)
{
	T d = g + r->decay * *w;
	if (m) {
		d = r->gain == 1 ? d : r->gain * d; /* not always the product, which would change how d is rounded */
		*m = r->momentum * *m + d;
		d = r->direct * d + r->through * *m;
	}
	*w -= r->lr * d;
}

SLP_RULE_CUDA(sgd, slp_optim_check_nothing)

#ifndef __cplusplus

static const struct slp_attr sgd_attrs[] = {
        SLP_OPTIM_ROWS(struct slp_sgd_attrs),
        SLP_ATTR_VALUE(struct slp_sgd_attrs, momentum, SLP_DOUBLE, 1, "factor of the old momentum"),
        SLP_ATTR_VALUE(struct slp_sgd_attrs, nesterov, SLP_BOOL, 1, "steps by the next momentum"),
        SLP_ATTR_VALUE(struct slp_sgd_attrs, velocity, SLP_BOOL, 1, "momenta are velocities: negative, times rates"),
        {0},
};

static enum sl_status sgd_momentum_infer(struct slp_infer *c)
{
	enum sl_status s = slp_optim_figure(c, "momentum", ((const struct slp_sgd_attrs *)c->attrs)->momentum);
	return s == SL_OK ? slp_optim_infer(c) : s;
}

static void sgd_one(const void *attrs, double t[])
{
	const struct slp_sgd_attrs *a = attrs;
	double g = t[1] + a->weight_decay * t[0];
	t[0] -= slp_optim_lr(attrs) * g;
}

static void sgd_momentum_one(const void *attrs, double t[])
{
	const struct slp_sgd_attrs *a = attrs;
	double lr = slp_optim_lr(attrs), g = t[1] + a->weight_decay * t[0];
	if (a->velocity) {
		t[2] = a->momentum * t[2] - lr * g;
		t[0] += a->nesterov ? a->momentum * t[2] - lr * g : t[2];
	} else {
		t[2] = a->momentum * t[2] + g;
		t[0] -= lr * (a->nesterov ? g + a->momentum * t[2] : t[2]);
	}
}

SLP_RULE_STEP(sgd, sgd, 0)
SLP_RULE_KERNELS(sgd, sgd, slp_optim_check_nothing)
SLP_RULE_STEP(sgd_momentum, sgd, 1)
SLP_RULE_KERNELS(sgd_momentum, sgd, slp_optim_check_nothing)

SLP_OPTIM_OP(sgd, "gradient descent: parameters, gradients in turn", "param gradient ...", 2, SLP_IN(0),
             struct slp_sgd_attrs, sgd_attrs, .infer = slp_optim_infer, SLP_RULE_ROWS(sgd, slp_cuda_sgd));
SLP_OPTIM_OP(sgd_momentum, "gradient descent with momentum: parameters, gradients, momenta in turn",
             "param gradient momentum ...", 3, SLP_IN(0) | SLP_IN(2), struct slp_sgd_attrs, sgd_attrs,
             .infer = sgd_momentum_infer, SLP_RULE_ROWS(sgd_momentum, slp_cuda_sgd));

static const struct slp_option sgd_options[] = {
        SLP_OPTION(struct slp_sgd_attrs, momentum, 0),
        SLP_OPTION(struct slp_sgd_attrs, nesterov, 0),
};
static const struct slp_optimizer sgd_optimizer = {
        .name = "sgd",
        .lr = 0.01,
        .states = {"momentum"},
        .options = sgd_options,
        .noptions = 2,
        .op = &slp_op_sgd_momentum,
        .plain = &slp_op_sgd,
};

#endif

#endif
