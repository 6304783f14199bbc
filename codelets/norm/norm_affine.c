/* norm_affine: a batch normalisation with given statistics as coefficients of its channels, (x - center) * scale + shift, of
 * shape (channels, 1, …) as elementwise functions of images take them; of vectors in a half type, in float32. Graph passes
 * make it. */
#include <math.h>

#include "op_inner.h"
#include "op_list/norm.h"
#include "options.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR_DEFAULTED(struct slp_norm_affine_attrs, eps, "added to the variance; 0 means 1e-5"),
        SLP_ATTR(struct slp_norm_affine_attrs, behind, SLP_INT, 1, "axes of images behind the channels"),
        {0},
};

enum { GAMMA, BETA, MEAN, VAR };

static enum sl_status infer(struct slp_infer *c)
{
	struct slp_norm_affine_attrs *a = c->attrs;
	sl_shape shape = c->in[GAMMA].shape;
	a->eps = slp_or(a->eps, 1e-5);
	if (a->behind < 0 || a->behind >= SL_MAX_NDIM)
		return slp_reject(c, SL_EINVAL, "%d axes behind the channels", a->behind);
	enum sl_dtype dtype = slp_promoted(c->in[GAMMA].dtype);
	if (!slp_is_float(dtype) || shape.ndim != 1) return slp_reject(c, SL_EDTYPE, "gamma must be a floating vector");
	for (int i = 1; i < c->nin; i++)
		if (slp_promoted(c->in[i].dtype) != dtype)
			return slp_reject(c, SL_EDTYPE, "input %d is %s beside %s", i, sl_dtype_name(c->in[i].dtype),
			                  sl_dtype_name(c->in[GAMMA].dtype));
	for (int i = 1; i < c->nin; i++)
		if (!sl_shape_equal(c->in[i].shape, shape))
			return slp_reject(c, SL_ESHAPE, "input %d must have gamma's shape", i);
	for (int i = 0; i < a->behind; i++) shape.dim[shape.ndim++] = 1;
	for (int i = 0; i < c->nout; i++) c->out[i] = (struct slp_type){dtype, shape};
	return SL_OK;
}

/* As batch_norm.cu rounds them, so that both have the same bits. */
static enum sl_status norm_affine_ref(const struct slp_kernel *k)
{
	const struct slp_norm_affine_attrs *a = k->attrs;
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		slp_set(&k->out[0], i, slp_get(&k->in[MEAN], i));
		slp_set(&k->out[1], i, slp_get(&k->in[GAMMA], i) * (1 / sqrt(slp_get(&k->in[VAR], i) + a->eps)));
		slp_set(&k->out[2], i, slp_get(&k->in[BETA], i));
	}
	return SL_OK;
}

const struct sl_op slp_op_norm_affine = {
        .name = "norm_affine",
        .doc = "coefficients of the channels of a batch normalisation with given statistics",
        .args = "gamma beta mean var",
        SLP_NIN(4),
        .nout = 3,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_norm_affine_attrs),
        .infer = infer,
        .flops = slp_flops_elementwise,
        .ref = norm_affine_ref,
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS | SLP_HALVES, norm_affine_ref, slp_cuda_norm_affine)),
};
