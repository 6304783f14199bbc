/* reshape: the same elements in the same order under another shape. sl_reshape makes a view of tensors; the operation
 * itself copies. */
#include <string.h>

#include "op_list/move.h"

static const struct slp_attr reshape_attrs[] = {
        SLP_ATTR(sl_shape, ndim, SLP_INT, 1, "number of axes of the result"),
        SLP_ATTR(sl_shape, dim, SLP_INT64, SL_MAX_NDIM, "its dims; -1: computed, -2: as x has it"),
        {0},
};

/* The shape with its codes replaced; false if x has another number of elements. */
static bool complete(sl_shape x, sl_shape *shape)
{
	int64_t known = 1, size = sl_shape_size(x);
	int open = -1;
	for (int i = 0; i < shape->ndim; i++) {
		if (shape->dim[i] == SLP_DIM_KEEP && i < x.ndim) shape->dim[i] = x.dim[i];
		if (shape->dim[i] == -1 && open < 0) open = i;
		else if (shape->dim[i] < 0 || __builtin_mul_overflow(known, shape->dim[i], &known)) return false;
	}
	if (open < 0) return known == size;
	if (known == 0 || size % known) return false;
	shape->dim[open] = size / known;
	return true;
}

static enum sl_status reshape_infer(struct slp_infer *c)
{
	sl_shape shape = *(const sl_shape *)c->attrs;
	char text[128];
	if (shape.ndim > SL_MAX_NDIM)
		return slp_reject(c, SL_ESHAPE, "%d axes: a tensor has at most %d", shape.ndim, SL_MAX_NDIM);
	if (shape.ndim < 0 || !complete(c->in[0].shape, &shape))
		return slp_reject(c, SL_ESHAPE, "does not fill the shape %s",
		                  sl_shape_string(*(sl_shape *)c->attrs, text));
	c->out[0] = (struct slp_type){c->in[0].dtype, shape};
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

const struct sl_op slp_op_reshape = {
        .name = "reshape",
        .doc = "the same elements in another shape",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = reshape_attrs,
        .attrs_size = sizeof(sl_shape),
        .rows = SLP_ROWS(SLP_ROW(SLP_ANY, reshape_ref, slp_cuda_copy)),
        .view = true,
        .infer = reshape_infer,
        .grad = reshape_grad,
        .ref = reshape_ref,
};
