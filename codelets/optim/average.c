/* Exponential moving averages of parameters, walked together as the optimisers walk them:  a = keep a + (1 - keep) w.
 * B. Polyak, A. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM J. Control Optim. 30, 1992, is
 * where averaging comes from. */
#include "common/vmath.h"
#include "op_inner.h"
#include "op_list/optim.h"
#include "optim.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR_VALUE(struct slp_average_attrs, keep, SLP_DOUBLE, 1, "factor of the old averages"),
        {0},
};

static enum sl_status infer(struct slp_infer *c)
{
	const struct slp_average_attrs *a = c->attrs;
	if (!(a->keep >= 0 && a->keep < 1))
		return slp_reject(c, SL_EINVAL, "keep is %g; it must be below 1 and not negative", a->keep);
	return slp_optim_infer(c);
}

static void one(const void *attrs, double t[])
{
	const struct slp_average_attrs *a = attrs;
	t[0] = a->keep * t[0] + (1 - a->keep) * t[1];
}

static enum sl_status ref(const struct slp_kernel *k)
{
	return slp_optim_ref(k, one);
}

static SLP_CLONES void step(const void *rule, const struct slp_optim_clip *clip, float *const t[], int64_t n)
{
	const struct slp_average_attrs *attrs = rule;
	const float keep = (float)attrs->keep, rest = (float)(1 - attrs->keep);
	float *a = t[0];
	const float *w = t[1];
	(void)clip;
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) a[i] = keep * a[i] + rest * w[i];
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	return slp_optim_cpu(k, step, k->attrs);
}

SLP_OPTIM_OP(average, "moving averages: averages, parameters in turn", "average param ...", 2, SLP_IN(0),
             struct slp_average_attrs, attr_table, .infer = infer, .ref = ref,
             .rows = SLP_FLOAT_ROWS_OF(ref, cpu, slp_cuda_average));

enum sl_status slp_average_update(const char *at, sl_tensor *const *averages, sl_tensor *const *params, int count,
                                  double keep)
{
	const struct slp_average_attrs attrs = {.keep = keep};
	return slp_optim_update(&(struct slp_optim_call){.at = at,
	                                                 .function = "sl_trainer",
	                                                 .op = &slp_op_average,
	                                                 .attrs = &attrs,
	                                                 .count = count,
	                                                 .of = {averages, params},
	                                                 .names = {"averages", "params"}});
}
