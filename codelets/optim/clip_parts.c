/* The factor of gradients that are clipped by their norm, in two steps, for those who do not have all gradients in memory at
 * once: sums of squares of some, then the factor from the sums of all.  On GPUs it has the bits of the optimisers' own steps,
 * which add sums of the same chunks in the same order. */
#include <stdlib.h>

#include "op_inner.h"
#include "op_list/optim.h"
#include "optim.h"
#include "starling/autograd.h"
#include "starling/primitives.h"

/* ---- sums of squares --------------------------------------------------------------------------------------------- */

static enum sl_status infer_squares(struct slp_infer *c)
{
	enum sl_status s = slp_optim_infer(c);
	int64_t chunks = 0;
	for (int i = 0; i < c->nin && s == SL_OK; i++) chunks += slp_optim_chunks(sl_shape_size(c->in[i].shape));
	c->out[0] = (struct slp_type){SL_FLOAT64, SL_SHAPE(chunks)};
	return s;
}

static double bytes_of_squares(const struct slp_infer *c)
{
	double sum = 0;
	for (int i = 0; i < c->nin; i++)
		sum += (double)sl_shape_size(c->in[i].shape) * (double)sl_dtype_size(c->in[i].dtype);
	return sum;
}

static enum sl_status ref_squares(const struct slp_kernel *k)
{
	int64_t chunk = 0;
	for (const struct slp_view *g = k->in; g < k->in + k->nin; g++)
		for (int64_t begin = 0, n = slp_size(g); begin < n; begin += SLP_OPTIM_CHUNK) {
			double sum = 0;
			for (int64_t i = begin; i < n && i < begin + SLP_OPTIM_CHUNK; i++)
				sum += slp_optim_square(slp_get(g, i));
			slp_set(&k->out[0], chunk++, sum);
		}
	return SL_OK;
}

static const struct slp_attr no_attrs[] = {{0}};

const struct sl_op slp_op_clip_squares = {
        .name = "clip_squares",
        .doc = "sums of squares of gradients, of 4096 elements each",
        .args = "gradient ...",
        .nin_min = 1,
        .nin_max = SLP_MANY,
        .nout = 1,
        .attr_table = no_attrs,
        .attrs_size = sizeof(struct slp_optim_attrs),
        .period = 1,
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, ref_squares, slp_cuda_clip_squares)),
        .infer = infer_squares,
        .flops = slp_optim_flops,
        .bytes = bytes_of_squares,
        .ref = ref_squares,
};

/* ---- the factor -------------------------------------------------------------------------------------------------- */

static const struct slp_attr factor_attrs[] = {
        SLP_ATTR_VALUE(struct slp_optim_attrs, rescale, SLP_DOUBLE, 1, "factor of the gradients; 0 means 1"),
        SLP_ATTR_VALUE(struct slp_optim_attrs, clip_norm, SLP_DOUBLE, 1, "most that the norm of all gradients may be"),
        {0},
};

static enum sl_status infer_factor(struct slp_infer *c)
{
	if (c->in[0].dtype != SL_FLOAT64)
		return slp_reject(c, SL_EDTYPE, "sums are %s; float64 needed", sl_dtype_name(c->in[0].dtype));
	const struct slp_optim_attrs *a = c->attrs;
	if (!(a->clip_norm > 0)) return slp_reject(c, SL_EINVAL, "clip_norm is %g; it must be above 0", a->clip_norm);
	c->out[0] = (struct slp_type){SL_FLOAT64, SL_SCALAR};
	return slp_optim_infer(c);
}

/* All sums one after the other; room for one if all gradients are empty. */
static size_t scratch(const struct slp_infer *c)
{
	int64_t n = 1;
	for (int i = 0; i < c->nin; i++) n += sl_shape_size(c->in[i].shape);
	return (size_t)n * sizeof(double);
}

static enum sl_status ref_factor(const struct slp_kernel *k)
{
	double sum = 0;
	for (const struct slp_view *s = k->in; s < k->in + k->nin; s++)
		for (int64_t i = 0; i < slp_size(s); i++) sum += slp_get(s, i);
	slp_set(&k->out[0], 0, slp_optim_scale(k->attrs, sum));
	return SL_OK;
}

const struct sl_op slp_op_clip_factor = {
        .name = "clip_factor",
        .doc = "factor that clips gradients to a norm, from sums of their squares",
        .args = "squares ...",
        .nin_min = 1,
        .nin_max = SLP_MANY,
        .nout = 1,
        .attr_table = factor_attrs,
        .attrs_size = sizeof(struct slp_optim_attrs),
        .period = 1,
        .rows = SLP_ROWS(SLP_ROW(SLP_F64, ref_factor, slp_cuda_clip_factor)),
        .infer = infer_factor,
        .flops = slp_optim_flops,
        .scratch = scratch,
        .ref = ref_factor,
};

/* ---- both -------------------------------------------------------------------------------------------------------- */

/* As many gradients at a time as have at most so many bytes together, or one. */
static int list_squares(const char *at, sl_tensor *const *grads, int count, size_t most, sl_tensor **squares)
{
	static const struct slp_optim_attrs none;
	int n = 0;
	for (int i = 0, end; i < count; i = end, n++) {
		size_t bytes = sl_tensor_bytes(grads[i]);
		for (end = i + 1; end < count && (bytes += sl_tensor_bytes(grads[end])) <= most;) end++;
		if (slp_apply(at, &slp_op_clip_squares, &none, end - i, grads + i, sl_auto(), &squares[n]) != SL_OK)
			return 0;
	}
	return n;
}

sl_tensor *slp_clip_scale_in_parts(const char *at, sl_tensor *const *grads, int count, double rescale, double clip_norm,
                                   size_t most)
{
	const struct slp_optim_attrs attrs = {.rescale = rescale, .clip_norm = clip_norm};
	sl_tensor **squares = slp_malloc((size_t)count * sizeof *squares), *factor = NULL;
	if (!squares) return NULL;
	SL_PAUSE {
		int n = list_squares(at, grads, count, most, squares);
		if (n && slp_apply(at, &slp_op_clip_factor, &attrs, n, squares, sl_auto(), &factor) != SL_OK)
			factor = NULL;
		if (factor) factor = sl_cast_at(at, factor, sl_tensor_dtype(grads[0]));
	}
	free(squares);
	return factor;
}
