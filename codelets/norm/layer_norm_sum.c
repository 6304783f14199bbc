/* Layer normalisation with the operations around it, which the graph pass fuse makes of the residual connections of
 * transformers, so that each is one pass over memory.  layer_norm_sum: the sum of two tensors is normalised, and is a
 * result, too; y may have another type than the sum.  layer_norm_grad_copy: the gradient, and dx in a half type, too, for
 * the products before it. */
#include <string.h>

#include "layer_norm.h"
#include "op_list/norm.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR_DEFAULTED(struct slp_layer_norm_attrs, eps, "added to the variance; 0 means 1e-5"),
        SLP_ATTR(struct slp_layer_norm_attrs, dtype, SLP_INT, 1, "data type of y; 0: that of x"),
        {0},
};

/* x gamma beta r: r may be in a half type beside x in float32. */
static enum sl_status infer(struct slp_infer *c)
{
	struct slp_type in[4];
	struct slp_infer all = *c;
	struct slp_layer_norm_attrs *a = c->attrs;
	const struct slp_type *x = &c->in[0];
	for (int i = 0; i < c->nin; i++) in[i] = c->in[i];
	if (c->nin > 3 && x->dtype == SL_FLOAT32) in[3].dtype = slp_promoted(in[3].dtype);
	all.in = in;
	enum sl_status status = slp_layer_norm_check(&all, x, 1, 3);
	if (status == SL_OK) status = slp_layer_norm_set_eps(c, a);
	if (status) return status;
	if (c->nin > 3 && !sl_shape_equal(c->in[3].shape, x->shape))
		return slp_reject(c, SL_ESHAPE, "r must have the shape of x");
	enum sl_dtype y = a->dtype ? (enum sl_dtype)a->dtype : x->dtype;
	if (y != x->dtype && !(x->dtype == SL_FLOAT32 && slp_is_half(y)))
		return slp_reject(c, SL_EDTYPE, "y must have the type of x, or a half type beside float32");
	sl_shape rows = x->shape;
	rows.dim[--rows.ndim] = 0;
	c->out[0] = (struct slp_type){y, x->shape};
	c->out[1] = c->out[2] = (struct slp_type){slp_promoted(x->dtype), rows};
	c->out[3] = c->nin > 3 ? *x : (struct slp_type){x->dtype, SL_SHAPE(0)};
	return SL_OK;
}

static double flops(const struct slp_infer *c)
{
	return 8.0 * (double)sl_shape_size(c->out[0].shape);
}

static enum sl_status ref(const struct slp_kernel *k)
{
	for (int64_t i = 0, n = k->nin > 3 ? slp_size(&k->in[0]) : 0; i < n; i++)
		slp_set(&k->out[3], i, slp_get(&k->in[0], i) + slp_get(&k->in[3], i));
	struct slp_view in[] = {k->nin > 3 ? k->out[3] : k->in[0], k->in[1], k->in[2]};
	struct slp_kernel inner = *k;
	inner.nin = inner.nout = 3;
	inner.in = in;
	return slp_layer_norm_ref(&inner);
}

const struct sl_op slp_op_layer_norm_sum = {
        .name = "layer_norm_sum",
        .doc = "layer_norm of the sum of two tensors, and the sum",
        .args = "x gamma beta r",
        .nin_min = 3,
        .nin_max = 4,
        .nout = 4,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_layer_norm_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_F32, slp_layer_norm_cpu, slp_cuda_layer_norm_sum),
                         SLP_ROW(SLP_F64, ref, slp_cuda_layer_norm_sum),
                         SLP_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, NULL, slp_cuda_layer_norm_sum),
                         SLP_ROW(SLP_DTYPE(SL_FLOAT16) | SLP_F32, NULL, slp_cuda_layer_norm_sum)),
        .declines = true,
        .infer = infer,
        .flops = flops,
        .ref = ref,
};

/* ---- the gradient with a copy of dx ------------------------------------------------------------------------------ */

static const struct slp_attr copy_table[] = {
        SLP_ATTR(struct slp_layer_norm_attrs, dtype, SLP_INT, 1, "data type of the copy of dx: that of dy or more"),
        {0},
};

static enum sl_status infer_copy(struct slp_infer *c)
{
	const struct slp_layer_norm_attrs *a = c->attrs;
	enum sl_status status = slp_op_layer_norm_grad.infer(c);
	if (status) return status;
	enum sl_dtype copy = (enum sl_dtype)a->dtype, dy = c->in[0].dtype, more = c->nin > 5 ? c->in[5].dtype : dy;
	if (copy != dy && copy != more)
		return slp_reject(c, SL_EDTYPE, "the copy of dx must have the type of dy or of the term added to dx");
	c->out[3] = (struct slp_type){copy, c->in[1].shape};
	return SL_OK;
}

/* The gradient by one of its kernels. */
static enum sl_status differentiate(const struct slp_kernel *k, slp_kernel_fn *back)
{
	struct slp_kernel inner = *k;
	inner.nout = 3;
	return back(&inner);
}

static enum sl_status ref_copy(const struct slp_kernel *k)
{
	enum sl_status s = differentiate(k, slp_op_layer_norm_grad.ref);
	for (int64_t i = 0, n = slp_size(&k->out[0]); i < n; i++) slp_set(&k->out[3], i, slp_get(&k->out[0], i));
	return s;
}

static enum sl_status cpu_copy(const struct slp_kernel *k)
{
	enum sl_status s = differentiate(k, slp_op_layer_norm_grad.rows[0].cpu);
	size_t bytes = (size_t)slp_size(&k->out[0]) * sizeof(float);
	if (s == SL_OK && bytes) memcpy(k->out[3].ptr, k->out[0].ptr, bytes);
	return s;
}

static double flops_copy(const struct slp_infer *c)
{
	return slp_op_layer_norm_grad.flops(c);
}

static size_t scratch_copy(const struct slp_infer *c)
{
	return slp_op_layer_norm_grad.scratch(c);
}

const struct sl_op slp_op_layer_norm_grad_copy = {
        .name = "layer_norm_grad_copy",
        .doc = "gradient of layer_norm, and that of x in a half type, too",
        .args = "dy x gamma mean invstd more",
        .nin_min = 5,
        .nin_max = 6,
        .nout = 4,
        .attr_table = copy_table,
        .attrs_size = sizeof(struct slp_layer_norm_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_F32, cpu_copy, slp_cuda_layer_norm_grad_copy),
                         SLP_ROW(SLP_F64, ref_copy, slp_cuda_layer_norm_grad_copy),
                         SLP_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, NULL, slp_cuda_layer_norm_grad_copy),
                         SLP_ROW(SLP_DTYPE(SL_FLOAT16) | SLP_F32, NULL, slp_cuda_layer_norm_grad_copy)),
        .declines = true,
        .infer = infer_copy,
        .flops = flops_copy,
        .scratch = scratch_copy,
        .ref = ref_copy,
};
