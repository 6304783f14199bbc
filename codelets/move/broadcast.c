/* broadcast_to: a tensor repeated along axes, by NumPy's rule. It is a strided copy whose repeated axes have stride 0;
 * this file only fills runs. */
#include "common/strided.h"
#include "op_list/move.h"
#include "starling/primitives.h"

/* The attributes are the shape of the result; sizes beyond its axes are 0. */
static const struct slp_attr attr_table[] = {
        SLP_ATTR(sl_shape, ndim, SLP_INT, 1, "number of axes of the result"),
        SLP_ATTR(sl_shape, dim, SLP_INT64, SL_MAX_NDIM, "their sizes"),
        {0},
};

static enum sl_status infer(struct slp_infer *c)
{
	const sl_shape shape = *(const sl_shape *)c->attrs;
	char from[128], to[128];
	sl_shape fit;
	if (shape.ndim < 0 || shape.ndim > SL_MAX_NDIM)
		return slp_reject(c, SL_ESHAPE, "%d axes; the number must be from 0 to %d", shape.ndim, SL_MAX_NDIM);
	for (int i = 0; i < shape.ndim; i++)
		if (shape.dim[i] < 0) return slp_reject(c, SL_ESHAPE, "axis %d has a negative size", i);
	if (!slp_broadcast(c->in[0].shape, shape, &fit) || !sl_shape_equal(fit, shape))
		return slp_reject(c, SL_ESHAPE, "%s cannot be repeated to %s: sizes agree from the end, or are 1",
		                  sl_shape_string(c->in[0].shape, from), sl_shape_string(shape, to));
	c->out[0] = (struct slp_type){c->in[0].dtype, shape};
	return SL_OK;
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static struct slp_strided plan(const struct slp_kernel *k)
{
	sl_shape in = k->in[0].type.shape, out = k->out[0].type.shape;
	struct slp_strided p = {0, {0}, {0}, 0};
	int64_t stride[SL_MAX_NDIM], next = 1;
	for (int i = out.ndim - 1; i >= 0; i--) {
		int axis = i - (out.ndim - in.ndim);
		int64_t dim = axis < 0 ? 1 : in.dim[axis];
		stride[i] = dim == 1 ? 0 : next;
		next *= dim;
	}
	for (int i = 0; i < out.ndim; i++) slp_strided_add(&p, out.dim[i], stride[i]);
	return p;
}

struct job {
	struct slp_strided rows; /* the axes but the last, which repeats one element */
	int64_t n;               /* size of the last */
	const char *in;
	char *out;
};

static int64_t source(const struct slp_strided *p, int64_t row)
{
	int64_t at = p->base;
	for (int a = p->ndim - 1; a > 0; a--) {
		at += row % p->dim[a] * p->stride[a];
		row /= p->dim[a];
	}
	return p->ndim ? at + row * p->stride[0] : at;
}

#define DEFINE_FILL(T)                                                                                                 \
	static SLP_CLONES void fill_##T(void *arg, int64_t begin, int64_t end)                                         \
	{                                                                                                              \
		const struct job *j = arg;                                                                             \
		for (int64_t i = begin; i < end;) {                                                                    \
			int64_t row = i / j->n, stop = (row + 1) * j->n < end ? (row + 1) * j->n : end;                \
			T value = ((const T *)j->in)[source(&j->rows, row)], *restrict out = (T *)j->out;              \
			for (; i < stop; i++) out[i] = value;                                                          \
		}                                                                                                      \
	}
SLP_SIZES(DEFINE_FILL)

static enum sl_status broadcast_to_cpu(const struct slp_kernel *k)
{
	struct slp_strided p = plan(k);
	int64_t n = slp_size(&k->out[0]);
	size_t size = sl_dtype_size(k->out[0].type.dtype);
	if (n == 0) return SL_OK;
	if (p.ndim == 0 || p.stride[p.ndim - 1] != 0) return slp_strided_cpu(k, &p);
	struct job j = {p, p.dim[p.ndim - 1], k->in[0].ptr, k->out[0].ptr};
	j.rows.ndim--;
	slp_parallel_for(n, SLP_GRAIN, SLP_BY_SIZE(size, fill), &j);
	return SL_OK;
}

static enum sl_status broadcast_to_ref(const struct slp_kernel *k)
{
	struct slp_strided p = plan(k);
	return slp_strided_ref(k, &p);
}

#ifdef HAVE_CUDA
static enum sl_status broadcast_to_cuda(const struct slp_kernel *k)
{
	struct slp_strided p = plan(k);
	return slp_strided_cuda(k, &p);
}
#endif

/* ---- the operation ---------------------------------------------------------------------------------------------- */

/* The sum over repeated elements. */
static enum sl_status grad(struct slp_grad *g)
{
	sl_shape in = sl_tensor_shape(g->in[0]), out = *(const sl_shape *)g->attrs;
	int axes[SL_MAX_NDIM], n = 0;
	if (!g->need[0]) return SL_OK;
	for (int i = 0; i < out.ndim; i++) {
		int axis = i - (out.ndim - in.ndim);
		if (axis < 0 || in.dim[axis] != out.dim[i]) axes[n++] = i;
	}
	sl_tensor *sum = n ? sl_sum_at(g->at, g->dout[0], (struct sl_reduce_opts){axes, n, true}) : g->dout[0];
	g->din[0] = in.ndim == out.ndim ? sum : sl_reshape_at(g->at, sum, in);
	return SL_OK;
}

/* x repeated to the given shape: axes are matched from the last one; axes of size 1, and axes that x does not have, are
 * repeated.  Any dtype.  SL_ESHAPE: the shapes do not match in this way.
 *
 *	sl_tensor *rows = sl_broadcast_to(bias, SL_SHAPE(256, 10)); */
sl_tensor *sl_broadcast_to_at(const char *at, sl_tensor *x, sl_shape shape)
{
	sl_shape attrs = {.ndim = shape.ndim};
	for (int i = 0; i < shape.ndim && i < SL_MAX_NDIM; i++) attrs.dim[i] = shape.dim[i];
	return slp_apply1(at, &slp_op_broadcast_to, &attrs, 1, &x);
}

const struct sl_op slp_op_broadcast_to = {
        .name = "broadcast_to",
        .doc = "repeated along axes of size 1 and new first axes",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(sl_shape),
        .rows = SLP_ROWS(SLP_ROW(SLP_ANY, broadcast_to_cpu, broadcast_to_cuda)),
        .infer = infer,
        .flops = slp_flops_elementwise,
        .grad = grad,
        .ref = broadcast_to_ref,
};
