/* transpose: the axes in another order. */
#include "common/move_attrs.h"
#include "common/strided.h"
#include "op_list/move.h"
#include "starling/primitives.h"

static const struct slp_attr transpose_attr_table[] = {
        SLP_ATTR(struct slp_transpose_attrs, naxes, SLP_INT, 1, "number of axes given; 0: reverse them all"),
        SLP_ATTR(struct slp_transpose_attrs, axes, SLP_INT, SL_MAX_NDIM, "axis i of the result is axis axes[i] of x"),
        {0},
};

/* The complete order; false if it is no permutation. */
static bool order(const struct slp_transpose_attrs *t, int ndim, int axes[SL_MAX_NDIM])
{
	unsigned seen = 0;
	if (t->naxes != 0 && t->naxes != ndim) return false;
	for (int i = 0; i < ndim; i++) {
		axes[i] = t->naxes ? t->axes[i] : ndim - 1 - i;
		if (!slp_axis(&axes[i], ndim) || seen & 1u << axes[i]) return false;
		seen |= 1u << axes[i];
	}
	return true;
}

static enum sl_status transpose_infer(struct slp_infer *c)
{
	const struct slp_transpose_attrs *t = c->attrs;
	const sl_shape in = c->in[0].shape;
	int axes[SL_MAX_NDIM];
	if (!order(t, in.ndim, axes))
		return slp_reject(c, SL_EINVAL, "the axes must be each of the %d axes of x once (%d given)", in.ndim,
		                  t->naxes);
	c->out[0] = (struct slp_type){c->in[0].dtype, {.ndim = in.ndim}};
	for (int i = 0; i < in.ndim; i++) c->out[0].shape.dim[i] = in.dim[axes[i]];
	return SL_OK;
}

static struct slp_strided plan(const struct slp_kernel *k)
{
	const sl_shape in = k->in[0].type.shape;
	struct slp_strided p = {0};
	int axes[SL_MAX_NDIM];
	int64_t stride[SL_MAX_NDIM], next = 1;
	order(k->attrs, in.ndim, axes);
	for (int i = in.ndim - 1; i >= 0; i--) {
		stride[i] = next;
		next *= in.dim[i];
	}
	for (int i = 0; i < in.ndim; i++) slp_strided_add(&p, in.dim[axes[i]], stride[axes[i]]);
	return p;
}

#define KERNEL(how)                                                                                                    \
	static enum sl_status transpose_##how(const struct slp_kernel *k)                                              \
	{                                                                                                              \
		struct slp_strided p = plan(k);                                                                        \
		return slp_strided_##how(k, &p);                                                                       \
	}
KERNEL(ref)
KERNEL(cpu)
#ifdef HAVE_CUDA
KERNEL(cuda)
#endif

/* The gradient is the inverse permutation. */
static enum sl_status transpose_grad(struct slp_grad *g)
{
	int axes[SL_MAX_NDIM], inverse[SL_MAX_NDIM], ndim = sl_tensor_shape(g->in[0]).ndim;
	order(g->attrs, ndim, axes);
	for (int i = 0; i < ndim; i++) inverse[axes[i]] = i;
	g->din[0] = sl_transpose_at(g->at, g->dout[0], (struct sl_reduce_opts){.axes = inverse, .naxes = ndim});
	return SL_OK;
}

/* The axes of x in another order: axis i of the result is axis opts.axes[i] of x; without axes, all are reversed (a
 * matrix is transposed).  Negative axes count from the end.  Any data type; a copy.  SL_EINVAL: an axis is missing,
 * given twice, or does not exist; or .keepdims is set.
 *
 *     y = sl_transpose(x, SL_AXES(0, 2, 3, 1));    // NCHW to NHWC */
sl_tensor *sl_transpose_at(const char *at, sl_tensor *x, struct sl_reduce_opts opts)
{
	struct slp_transpose_attrs attrs = {.naxes = opts.naxes};
	if (opts.naxes < 0 || opts.naxes > SL_MAX_NDIM)
		return slp_call_fail(at, "sl_transpose", SL_EINVAL, "%d axes given; the number must be from 0 to %d",
		                     opts.naxes, SL_MAX_NDIM);
	if (opts.keepdims) return slp_call_fail(at, "sl_transpose", SL_EINVAL, "keepdims has no meaning here");
	if (opts.naxes && !slp_given(at, "sl_transpose", "array of axes", opts.axes)) return NULL;
	for (int i = 0; i < opts.naxes; i++) attrs.axes[i] = opts.axes[i];
	return slp_apply1(at, &slp_op_transpose, &attrs, 1, &x);
}

const struct sl_op slp_op_transpose = {
        .name = "transpose",
        .doc = "the axes in another order",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = transpose_attr_table,
        .attrs_size = sizeof(struct slp_transpose_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_ANY, transpose_cpu, transpose_cuda)),
        .infer = transpose_infer,
        .grad = transpose_grad,
        .ref = transpose_ref,
};
