/* RMSProp, plain and with momentum: steps by the gradient over its root mean square.  The rule of torch.optim.RMSprop,
 * not centred:
 *     g = g + weight_decay w;   s = alpha s + (1 - alpha) g²;   d = g / (sqrt(s) + eps);
 *     w = w - lr d,  or, with momentum,  m = momentum m + d;   w = w - lr m.
 * T. Tieleman, G. Hinton, "Lecture 6.5: RMSProp", Coursera, 2012. */
#include "common/vmath.h"
#include "op_list.h"
#include "optim.h"
#include "options.h"
#include "starling/ops.h"

static const struct slp_attr attr_table[] = {
        SLP_OPTIM_ROWS(struct slp_rmsprop_attrs),
        SLP_ATTR_DEFAULTED(struct slp_rmsprop_attrs, alpha, "factor of the old squares; 0 means 0.99"),
        SLP_ATTR_DEFAULTED(struct slp_rmsprop_attrs, eps, "added to the root; 0 means 1e-8"),
        SLP_ATTR_VALUE(struct slp_rmsprop_attrs, momentum, SLP_DOUBLE, 1, "factor of the old momentum"),
        {0},
};

static enum sl_status infer(struct slp_infer *c)
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

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static double quotient(const struct slp_rmsprop_attrs *a, double t[])
{
	double g = t[1] + a->weight_decay * t[0];
	t[2] = a->alpha * t[2] + (1 - a->alpha) * g * g;
	return g / (sqrt(t[2]) + a->eps);
}

static void one(const void *attrs, double t[])
{
	const struct slp_rmsprop_attrs *a = attrs;
	t[0] -= slp_optim_lr(attrs) * quotient(a, t);
}

static void one_momentum(const void *attrs, double t[])
{
	const struct slp_rmsprop_attrs *a = attrs;
	t[3] = a->momentum * t[3] + quotient(a, t);
	t[0] -= slp_optim_lr(attrs) * t[3];
}

static enum sl_status ref(const struct slp_kernel *k)
{
	return slp_optim_ref(k, k->op->period == 4 ? one_momentum : one);
}

struct rule {
	float lr, decay, alpha, rest, eps, momentum;
};

SLP_VFN float direction(const struct rule *r, const struct slp_optim_clip *c, float w, float grad, float *s)
{
	float g = slp_optim_clipped(c, grad) + r->decay * w;
	*s = r->alpha * *s + r->rest * g * g;
	return g / (sqrtf(*s) + r->eps);
}

static SLP_CLONES void step(const void *rule, const struct slp_optim_clip *clip, float *const t[], int64_t n)
{
	const struct rule r = *(const struct rule *)rule;
	const struct slp_optim_clip c = *clip;
	float *w = t[0], *s = t[2];
	const float *g = t[1];
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) w[i] -= r.lr * direction(&r, &c, w[i], g[i], &s[i]);
}

static SLP_CLONES void step_momentum(const void *rule, const struct slp_optim_clip *clip, float *const t[], int64_t n)
{
	const struct rule r = *(const struct rule *)rule;
	const struct slp_optim_clip c = *clip;
	float *w = t[0], *s = t[2], *m = t[3];
	const float *g = t[1];
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) {
		m[i] = r.momentum * m[i] + direction(&r, &c, w[i], g[i], &s[i]);
		w[i] -= r.lr * m[i];
	}
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	const struct slp_rmsprop_attrs *a = k->attrs;
	struct rule r = {(float)slp_optim_lr(k->attrs), (float)a->weight_decay, (float)a->alpha,
	                 (float)(1 - a->alpha),         (float)a->eps,          (float)a->momentum};
	return slp_optim_cpu(k, k->op->period == 4 ? step_momentum : step, &r);
}

SLP_OPTIM_OP(rmsprop, "a step of RMSProp: parameters, gradients, mean squares in turn", "param gradient square ...", 3,
             SLP_IN(0) | SLP_IN(2), struct slp_rmsprop_attrs, .infer = infer,
             .rows = SLP_FLOAT_ROWS_OF(ref, cpu, slp_cuda_rmsprop));
SLP_OPTIM_OP(rmsprop_momentum, "a step of RMSProp with momentum: parameters, gradients, mean squares, momenta in turn",
             "param gradient square momentum ...", 4, SLP_IN(0) | SLP_IN(2) | SLP_IN(3), struct slp_rmsprop_attrs,
             .infer = infer, .rows = SLP_FLOAT_ROWS_OF(ref, cpu, slp_cuda_rmsprop));

/* One step of RMSProp, in place, as torch.optim.RMSprop (not centred) makes it; T. Tieleman, G. Hinton, 2012.  squares
 * are the running means of the squared gradients, zero at first; momenta, zero at first, is needed with opts.momentum
 * and NULL without.  clip_norm, clip_value and all else, the errors too, as in sl_sgd_update; also SL_EINVAL: alpha
 * outside 0 to 1, a negative eps.
 *
 *	sl_rmsprop_update(params, grads, squares, NULL, count, .lr = 1e-3, .clip_norm = 1); */
enum sl_status sl_rmsprop_update_at(const char *at, sl_tensor *const *params, sl_tensor *const *grads,
                                    sl_tensor *const *squares, sl_tensor *const *momenta, int count,
                                    struct sl_rmsprop_opts opts)
{
	if (!SLP_OPTIONS(sl_rmsprop_opts, at, "sl_rmsprop_update", &opts)) return SL_EINVAL;
	bool plain = opts.momentum == 0;
	const struct slp_rmsprop_attrs attrs = {.lr = opts.lr,
	                                        .alpha = opts.alpha,
	                                        .eps = opts.eps,
	                                        .momentum = opts.momentum,
	                                        .weight_decay = opts.weight_decay,
	                                        .rescale = opts.rescale,
	                                        .clip_norm = opts.clip_norm,
	                                        .clip_value = opts.clip_value,
	                                        .lr_scale = opts.lr_scale};
	if (plain && momenta)
		return slp_call_fail(at, "sl_rmsprop_update", SL_EINVAL, "momenta are given, but momentum is 0"),
		       SL_EINVAL;
	return slp_optim_update(&(struct slp_optim_call){at,
	                                                 "sl_rmsprop_update",
	                                                 plain ? &slp_op_rmsprop : &slp_op_rmsprop_momentum,
	                                                 &attrs,
	                                                 count,
	                                                 {params, grads, squares, momenta},
	                                                 {"params", "grads", "squares", "momenta"}});
}
