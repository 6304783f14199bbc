/* batch_norm_sum: batch normalisation in training, to whose result another tensor is added before the activation.  The graph
 * pass fuse makes it on GPUs of residual connections, so that the result is written once, and not read again for the sum. */
#include "batch_norm.h"

#include "common/activation.h"

static enum sl_status infer(struct slp_infer *c)
{
	struct slp_infer inner = *c;
	inner.nin = 5;
	enum sl_status status = slp_op_batch_norm.infer(&inner);
	if (status) return status;
	if (c->in[5].dtype != c->in[0].dtype) return slp_reject(c, SL_EDTYPE, "r must have the data type of x");
	if (!sl_shape_equal(c->in[5].shape, c->in[0].shape))
		return slp_reject(c, SL_ESHAPE, "r must have the shape of x");
	return SL_OK;
}

static double flops(const struct slp_infer *c)
{
	return slp_op_batch_norm.flops(c) + (double)sl_shape_size(c->out[0].shape);
}

/* x is read twice, r once. */
static double bytes(const struct slp_infer *c)
{
	return 4 * (double)sl_shape_size(c->out[0].shape) * (double)sl_dtype_size(c->out[0].dtype);
}

/* The norm by one of its kernels; the sum, element by element, is that of stored numbers. */
static enum sl_status compute(const struct slp_kernel *k, slp_kernel_fn *norm)
{
	struct slp_norm_attrs plain = *(const struct slp_norm_attrs *)k->attrs;
	struct slp_kernel inner = *k;
	int activation = plain.activation;
	plain.activation = SL_IDENTITY;
	inner.op = &slp_op_batch_norm;
	inner.attrs = &plain;
	inner.nin = 5;
	enum sl_status s = norm(&inner);
	for (int64_t i = 0, n = slp_size(&k->out[0]); s == SL_OK && i < n; i++)
		slp_set(&k->out[0], i, slp_activated(slp_get(&k->out[0], i) + slp_get(&k->in[5], i), activation));
	return s;
}

static enum sl_status ref(const struct slp_kernel *k)
{
	return compute(k, slp_op_batch_norm.ref);
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	return compute(k, slp_cpu_batch_norm);
}

static enum sl_status cpu_half(const struct slp_kernel *k)
{
	return compute(k, slp_cpu_batch_norm_half);
}

const struct sl_op slp_op_batch_norm_sum = {
        .name = "batch_norm_sum",
        .doc = "batch_norm, with another tensor added before the activation",
        .args = "x gamma beta running_mean running_var r",
        SLP_NIN(6),
        .nout = 3,
        .attr_table = slp_norm_attr_table,
        .attrs_size = sizeof(struct slp_norm_attrs),
        .mutates = SLP_IN(3) | SLP_IN(4),
        .rows = SLP_ROWS(SLP_ROW(SLP_F32, cpu, slp_cuda_batch_norm_sum), SLP_ROW(SLP_F64, ref, slp_cuda_batch_norm_sum),
                         SLP_CPU_ROW(SLP_HALVES | SLP_F32, cpu_half, NULL),
                         SLP_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, NULL, slp_cuda_batch_norm_sum),
                         SLP_ROW(SLP_DTYPE(SL_FLOAT16) | SLP_F32, NULL, slp_cuda_batch_norm_sum)),
        .infer = infer,
        .flops = flops,
        .bytes = bytes,
        .scratch = slp_norm_scratch,
        .ref = ref,
};
