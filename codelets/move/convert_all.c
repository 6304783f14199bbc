/* convert_all: some tensors in another data type, or images in another layout, by one kernel.  Graph passes make it for
 * the parameters of a program on a GPU, and for their gradients. */
#include "convert_all.h"
#include "op_list/move.h"

#include "common/strided.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_convert_all_attrs, dtype, SLP_INT, 1, "data type of the results"),
        SLP_ATTR(struct slp_convert_all_attrs, to_nhwc, SLP_INT, 1, "a bit for each tensor: into the layout nhwc"),
        SLP_ATTR(struct slp_convert_all_attrs, from_nhwc, SLP_INT, 1, "a bit for each tensor: out of the layout nhwc"),
        {0},
};

static bool is_taken(enum sl_dtype dtype)
{
	return dtype == SL_FLOAT32 || slp_is_half(dtype);
}

static enum sl_status convert_all_infer(struct slp_infer *c)
{
	const struct slp_convert_all_attrs *a = c->attrs;
	int turned = a->to_nhwc | a->from_nhwc;
	if (!is_taken((enum sl_dtype)a->dtype))
		return slp_reject(c, SL_EDTYPE, "there is no data type %d here", a->dtype);
	if (a->to_nhwc & a->from_nhwc || turned < 0 || turned >> c->nin)
		return slp_reject(c, SL_EINVAL, "layouts %d and %d of %d tensors", a->to_nhwc, a->from_nhwc, c->nin);
	for (int i = 0; i < c->nin; i++) {
		if (c->in[i].dtype != c->in[0].dtype)
			return slp_reject(c, SL_EDTYPE, "tensor %d is %s and the first one %s", i,
			                  sl_dtype_name(c->in[i].dtype), sl_dtype_name(c->in[0].dtype));
		if (turned >> i & 1 && c->in[i].shape.ndim != 4)
			return slp_reject(c, SL_ESHAPE, "tensor %d must have 4 axes, and has %d", i,
			                  c->in[i].shape.ndim);
	}
	if (c->nin > 0 && !is_taken(c->in[0].dtype))
		return slp_reject(c, SL_EDTYPE, "tensors must be float32, or of a half type");
	for (int i = 0; i < c->nout; i++)
		c->out[i] = (struct slp_type){(enum sl_dtype)a->dtype, i < c->nin ? c->in[i].shape : SL_SHAPE(0)};
	return SL_OK;
}

static double no_flops(const struct slp_infer *c)
{
	(void)c;
	return 0;
}

/* Element (i, r, j) of matrices is element (i, j, r) of the result. */
static enum sl_status convert_all_ref(const struct slp_kernel *k)
{
	for (int n = 0; n < k->nin; n++) {
		struct slp_turned t = slp_turned_of(k->attrs, n, k->in[n].type.shape);
		for (int64_t i = 0; i < t.count; i++)
			for (int64_t r = 0; r < t.rows; r++)
				for (int64_t j = 0; j < t.columns; j++)
					slp_set(&k->out[n], (i * t.columns + j) * t.rows + r,
					        slp_get(&k->in[n], (i * t.rows + r) * t.columns + j));
	}
	return SL_OK;
}

/* Transposed in the type of the tensor, in the memory of the result if that is as wide. */
static enum sl_status turn(const struct slp_kernel *k, struct slp_turned t, const struct slp_view *from,
                           const struct slp_view *to)
{
	struct slp_strided p = {0};
	struct slp_view in = *from, out = {to->ptr, in.type};
	struct slp_kernel copy = {.op = k->op, .nin = 1, .nout = 1, .in = &in, .out = &out};
	slp_strided_add(&p, t.count, t.rows * t.columns);
	slp_strided_add(&p, t.columns, 1);
	slp_strided_add(&p, t.rows, t.columns);
	return slp_strided_cpu(&copy, &p);
}

static enum sl_status convert_all_cpu(const struct slp_kernel *k)
{
	enum sl_status s = SL_OK;
	for (int n = 0; n < k->nin && s == SL_OK; n++) {
		struct slp_turned t = slp_turned_of(k->attrs, n, k->in[n].type.shape);
		bool same = k->in[n].type.dtype == k->out[n].type.dtype;
		if (t.rows > 1 && !same) return k->op->ref(k);
		s = t.rows > 1 ? turn(k, t, &k->in[n], &k->out[n]) : slp_cpu_convert(k, &k->in[n], &k->out[n]);
	}
	return s;
}

const struct sl_op slp_op_convert_all = {
        .name = "convert_all",
        .doc = "tensors in another data type, images in another layout",
        .args = "x ...",
        .nin_min = 1,
        .nin_max = SLP_CONVERT_ALL,
        .nout = SLP_CONVERT_ALL,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_convert_all_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_F32 | SLP_HALVES, convert_all_cpu, slp_cuda_convert_all)),
        .infer = convert_all_infer,
        .flops = no_flops,
        .ref = convert_all_ref,
};
