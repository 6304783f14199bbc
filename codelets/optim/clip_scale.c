/* The factor of gradients that are clipped by their norm, as the optimisers' own steps compute it, to the last bit: for
 * those who update only some of the parameters whose norm it is. */
#include "op_inner.h"
#include "op_list/optim.h"
#include "optim.h"
#include "starling/autograd.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR_VALUE(struct slp_optim_attrs, rescale, SLP_DOUBLE, 1, "factor of the gradients; 0 means 1"),
        SLP_ATTR(struct slp_optim_attrs, clip_norm, SLP_DOUBLE, 1, "most that the norm of all gradients may be"),
        {0},
};

static enum sl_status infer(struct slp_infer *c)
{
	enum sl_status s = slp_optim_infer(c);
	c->out[0] = (struct slp_type){c->in[0].dtype, SL_SCALAR};
	return s;
}

static enum sl_status ref(const struct slp_kernel *k)
{
	slp_set(&k->out[0], 0, slp_optim_ref_scale(k));
	return SL_OK;
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	*(float *)k->out[0].ptr = (float)slp_optim_cpu_scale(k);
	return SL_OK;
}

const struct sl_op slp_op_clip_scale = {
        .name = "clip_scale",
        .doc = "factor that clips gradients to a norm",
        .args = "gradient ...",
        .nin_min = 1,
        .nin_max = SLP_MANY,
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_optim_attrs),
        .period = 1,
        .rows = SLP_FLOAT_ROWS_OF(ref, cpu, slp_cuda_clip_scale),
        .infer = infer,
        .flops = slp_optim_flops,
        .scratch = slp_optim_scratch,
        .ref = ref,
};

sl_tensor *slp_clip_scale(const char *at, sl_tensor *const *grads, int count, double rescale, double clip_norm)
{
	const struct slp_optim_attrs attrs = {.rescale = rescale, .clip_norm = clip_norm};
	sl_tensor *scale = NULL;
	SL_PAUSE
		if (slp_apply(at, &slp_op_clip_scale, &attrs, count, grads, sl_auto(), &scale) != SL_OK) scale = NULL;
	return scale;
}
