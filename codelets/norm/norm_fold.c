/* norm_fold: weights and bias of one layer that equals a layer and the batch normalisation after it, with given
 * statistics. Row i of w makes channel i: s = gamma / sqrt(var + eps), w' = s w, b' = (b - mean) s + beta. Graph passes
 * make it. */
#include <math.h>

#include "op_inner.h"
#include "op_list/norm.h"
#include "options.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR_DEFAULTED(struct slp_norm_fold_attrs, eps, "added to the variance; 0 means 1e-5"),
        {0},
};

enum { W, GAMMA, BETA, MEAN, VAR, B }; /* B may be absent */

static enum sl_status fold_infer(struct slp_infer *c)
{
	struct slp_norm_fold_attrs *a = c->attrs;
	sl_shape w = c->in[W].shape;
	a->eps = slp_or(a->eps, 1e-5);
	if (c->nin != B && c->nin != B + 1)
		return slp_reject(c, SL_EINVAL, "needs w, gamma, beta, mean, var and at most a bias");
	if (!slp_is_float(c->in[W].dtype) || w.ndim < 1)
		return slp_reject(c, SL_EDTYPE, "w must be floating and have axes");
	for (int i = 1; i < c->nin; i++)
		if (c->in[i].dtype != c->in[W].dtype)
			return slp_reject(c, SL_EDTYPE, "input %d must have w's data type", i);
	for (int i = 1; i < c->nin; i++)
		if (!sl_shape_equal(c->in[i].shape, SL_SHAPE(w.dim[0])))
			return slp_reject(c, SL_ESHAPE, "input %d must have an element for each row of w", i);
	c->out[0] = c->in[W];
	c->out[1] = c->in[GAMMA];
	return SL_OK;
}

static enum sl_status fold_ref(const struct slp_kernel *k)
{
	const struct slp_norm_fold_attrs *a = k->attrs;
	int64_t rows = slp_size(&k->out[1]), row = rows ? slp_size(&k->out[0]) / rows : 0;
	for (int64_t i = 0; i < rows; i++) {
		double s = slp_get(&k->in[GAMMA], i) / sqrt(slp_get(&k->in[VAR], i) + a->eps);
		double b = k->nin > B ? slp_get(&k->in[B], i) : 0;
		slp_set(&k->out[1], i, (b - slp_get(&k->in[MEAN], i)) * s + slp_get(&k->in[BETA], i));
		for (int64_t j = i * row; j < (i + 1) * row; j++) slp_set(&k->out[0], j, slp_get(&k->in[W], j) * s);
	}
	return SL_OK;
}

const struct sl_op slp_op_norm_fold = {
        .name = "norm_fold",
        .doc = "weights and bias of a layer with the following batch normalisation",
        .args = "w gamma beta mean var b",
        .nin_min = 5,
        .nin_max = 6,
        .nout = 2,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_norm_fold_attrs),
        .infer = fold_infer,
        .flops = slp_flops_elementwise,
        .ref = fold_ref,
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, fold_ref, slp_cuda_norm_fold)),
};
