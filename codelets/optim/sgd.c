/* Stochastic gradient descent, plain, with momentum, with Nesterov's; the rule of torch.optim.SGD without dampening:
 *     g = g + weight_decay w;   m = momentum m + g;   w = w - lr m,  or  w - lr (g + momentum m)  with Nesterov's.
 * I. Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML 2013. */
#include "common/vmath.h"
#include "op_list.h"
#include "optim.h"
#include "options.h"
#include "starling/ops.h"

static const struct slp_attr attr_table[] = {
        SLP_OPTIM_ROWS(struct slp_sgd_attrs),
        SLP_ATTR_VALUE(struct slp_sgd_attrs, momentum, SLP_DOUBLE, 1, "factor of the old momentum"),
        SLP_ATTR_VALUE(struct slp_sgd_attrs, nesterov, SLP_BOOL, 1, "steps by the next momentum"),
        {0},
};

static enum sl_status infer_momentum(struct slp_infer *c)
{
	enum sl_status s = slp_optim_figure(c, "momentum", ((const struct slp_sgd_attrs *)c->attrs)->momentum);
	return s == SL_OK ? slp_optim_infer(c) : s;
}

static void one(const void *attrs, double t[])
{
	const struct slp_sgd_attrs *a = attrs;
	double g = t[1] + a->weight_decay * t[0];
	t[0] -= slp_optim_lr(attrs) * g;
}

static void one_momentum(const void *attrs, double t[])
{
	const struct slp_sgd_attrs *a = attrs;
	double g = t[1] + a->weight_decay * t[0];
	t[2] = a->momentum * t[2] + g;
	t[0] -= slp_optim_lr(attrs) * (a->nesterov ? g + a->momentum * t[2] : t[2]);
}

static enum sl_status ref(const struct slp_kernel *k)
{
	return slp_optim_ref(k, k->op->period == 3 ? one_momentum : one);
}

/* A step is  w - lr (direct g + through m),  with Nesterov's or without. */
struct rule {
	float lr, decay, momentum, direct, through;
};

static SLP_CLONES void step(const void *rule, const struct slp_optim_clip *clip, float *const t[], int64_t n)
{
	const struct rule r = *(const struct rule *)rule;
	const struct slp_optim_clip c = *clip;
	float *w = t[0];
	const float *g = t[1];
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) w[i] -= r.lr * (slp_optim_clipped(&c, g[i]) + r.decay * w[i]);
}

static SLP_CLONES void step_momentum(const void *rule, const struct slp_optim_clip *clip, float *const t[], int64_t n)
{
	const struct rule r = *(const struct rule *)rule;
	const struct slp_optim_clip c = *clip;
	float *w = t[0], *m = t[2];
	const float *g = t[1];
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) {
		float d = slp_optim_clipped(&c, g[i]) + r.decay * w[i];
		m[i] = r.momentum * m[i] + d;
		w[i] -= r.lr * (r.direct * d + r.through * m[i]);
	}
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	const struct slp_sgd_attrs *a = k->attrs;
	struct rule r = {(float)slp_optim_lr(k->attrs), (float)a->weight_decay, (float)a->momentum, 0, 1};
	if (a->nesterov) r.direct = 1, r.through = r.momentum;
	return slp_optim_cpu(k, k->op->period == 3 ? step_momentum : step, &r);
}

SLP_OPTIM_OP(sgd, "gradient descent: parameters, gradients in turn", "param gradient ...", 2, SLP_IN(0),
             struct slp_sgd_attrs, .infer = slp_optim_infer, .rows = SLP_FLOAT_ROWS_OF(ref, cpu, slp_cuda_sgd));
SLP_OPTIM_OP(sgd_momentum, "gradient descent with momentum: parameters, gradients, momenta in turn",
             "param gradient momentum ...", 3, SLP_IN(0) | SLP_IN(2), struct slp_sgd_attrs, .infer = infer_momentum,
             .rows = SLP_FLOAT_ROWS_OF(ref, cpu, slp_cuda_sgd));

/* One step of stochastic gradient descent, in place, with  g = clip(rescale grad) + weight_decay param: without
 * momentum  param -= lr g;  with it  m = momentum m + g,  param -= lr m;  with opts.nesterov param -= lr (g + momentum
 * m)  (all as torch.optim.SGD).
 *
 * With opts.clip_norm, gradients are first scaled down so that the L2 norm of all of them together, after rescale, is
 * at most that; with opts.clip_value, each element is then limited to ±clip_value.  Both come before the decay, as
 * torch.nn.utils.clip_grad_norm_ and clip_grad_value_ before the optimiser would do (which add 1e-6 to the norm).  A
 * norm that is NaN makes all parameters NaN.  With opts.lr_scale, lr is multiplied by that.
 *
 * Parameters of one device that follow each other are updated by a single operation; with clip_norm all must be on one
 * device.  Nothing is recorded.  A parameter, its gradient and its momentum have one shape; all have one dtype,
 * float32 or float64.  momenta, zero at first, is needed with a momentum and NULL without.  The arrays of `count`
 * tensors stay the caller's.  SL_EINVAL: something is NULL (or momenta is not), opts.nesterov without a momentum, a
 * figure that is negative (but rescale) or not finite; SL_ESHAPE, SL_EDTYPE, SL_EDEVICE: tensors do not fit each
 * other; the message names the parameter by its index.
 *
 * 	sl_sgd_update(params, grads, NULL, count, .lr = 0.1, .rescale = 1.0 / batch_size); */
enum sl_status sl_sgd_update_at(const char *at, sl_tensor *const *params, sl_tensor *const *grads,
                                sl_tensor *const *momenta, int count, struct sl_sgd_opts opts)
{
	if (!SLP_OPTIONS(sl_sgd_opts, at, "sl_sgd_update", &opts)) return SL_EINVAL;
	bool plain = opts.momentum == 0;
	const struct slp_sgd_attrs attrs = {.lr = opts.lr,
	                                    .momentum = opts.momentum,
	                                    .weight_decay = opts.weight_decay,
	                                    .rescale = opts.rescale,
	                                    .nesterov = opts.nesterov,
	                                    .clip_norm = opts.clip_norm,
	                                    .clip_value = opts.clip_value,
	                                    .lr_scale = opts.lr_scale};
	if (plain && (momenta || opts.nesterov))
		return slp_call_fail(at, "sl_sgd_update", SL_EINVAL, "%s, but momentum is 0",
		                     momenta ? "momenta are given" : "nesterov is set"),
		       SL_EINVAL;
	return slp_optim_update(&(struct slp_optim_call){at,
	                                                 "sl_sgd_update",
	                                                 plain ? &slp_op_sgd : &slp_op_sgd_momentum,
	                                                 &attrs,
	                                                 count,
	                                                 {params, grads, momenta},
	                                                 {"params", "grads", "momenta"}});
}
