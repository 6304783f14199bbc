/* reshape: the same elements in the same order under another shape.  Tensors do it without copying (sl_reshape);
 * as an operation of its own it copies. */
#include <string.h>

#include "op.h"

static const struct slp_attr reshape_attrs[] = {
	SLP_ATTR(sl_shape, ndim, SLP_INT, 1, "number of axes of the result"),
	SLP_ATTR(sl_shape, dim, SLP_INT64, SL_MAX_NDIM, "its dims"),
	{0},
};

static enum sl_status reshape_infer(struct slp_infer *c)
{
	const sl_shape *shape = c->attrs;
	char text[128];
	if (sl_shape_size(*shape) != sl_shape_size(c->in[0].shape))
		return slp_reject(c, SL_ESHAPE, "does not fill the shape %s", sl_shape_string(*shape, text));
	c->out[0] = (struct slp_type){c->in[0].dtype, *shape};
	return SL_OK;
}

static enum sl_status reshape_grad(struct slp_grad *g)
{
	g->din[0] = sl_reshape_at(g->at, g->dout[0], sl_tensor_shape(g->in[0]));
	return SL_OK;
}

static enum sl_status reshape_ref(const struct slp_kernel *k)
{
	size_t bytes = (size_t)slp_size(&k->in[0]) * sl_dtype_size(k->in[0].type.dtype);
	if (bytes) memcpy(k->out[0].ptr, k->in[0].ptr, bytes);
	return SL_OK;
}

extern enum sl_status slp_cuda_copy(const struct slp_kernel *k); /* copy.cu: any contiguous elements */

const struct sl_op slp_op_reshape = {
	.name = "reshape",
	.doc = "the same elements under another shape",
	.args = "x",
	.nin = 1,
	.nout = 1,
	.attr_table = reshape_attrs,
	.attrs_size = sizeof(sl_shape),
	.cuda_dtypes = SLP_ALL_DTYPES,
	.infer = reshape_infer,
	.grad = reshape_grad,
	.ref = reshape_ref,
	.cuda = SLP_CUDA(slp_cuda_copy),
};
