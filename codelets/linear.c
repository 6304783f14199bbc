/* The fully connected layer: linear, y = x·w + b. */
#include <string.h>

#include "gemm.h"

extern const struct sl_op slp_op_linear;

static const struct slp_attr linear_attrs[] = {
        SLP_ATTR(struct sl_linear_opts, tw, SLP_BOOL, 1, "w is (units, inputs)"),
        {0},
};

static bool transposed(const void *attrs)
{
	return ((const struct sl_linear_opts *)attrs)->tw;
}

/* Rows of x, once all axes but the last are collapsed. */
static int64_t rows_of(sl_shape x)
{
	int64_t rows = 1;
	for (int i = 0; i + 1 < x.ndim; i++) rows *= x.dim[i];
	return rows;
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

static enum sl_status check_bias(const struct slp_infer *c, int64_t units)
{
	if (c->nin == 2) return SL_OK;
	sl_shape b = c->in[2].shape;
	if (b.ndim == 1 && b.dim[0] == units) return SL_OK;
	return slp_reject(c, SL_ESHAPE, "bias must have shape (%lld), the units of the weight", (long long)units);
}

static enum sl_status linear_infer(struct slp_infer *c)
{
	if (c->nin != 2 && c->nin != 3) return slp_reject(c, SL_EINVAL, "needs x, w and at most a bias");
	sl_shape x = c->in[0].shape, w = c->in[1].shape;
	bool tw = transposed(c->attrs);
	for (int i = 0; i < c->nin; i++)
		if (!slp_is_float(c->in[i].dtype) || c->in[i].dtype != c->in[0].dtype)
			return slp_reject(c, SL_EDTYPE, "inputs must all be float32 or all float64");
	if (x.ndim < 1 || w.ndim != 2) return slp_reject(c, SL_ESHAPE, "x needs at least 1 axis and w exactly 2");
	if (x.dim[x.ndim - 1] != w.dim[tw])
		return slp_reject(c, SL_ESHAPE, "x has %lld features and w takes %lld", (long long)x.dim[x.ndim - 1],
		                  (long long)w.dim[tw]);
	c->out[0] = (struct slp_type){c->in[0].dtype, x};
	c->out[0].shape.dim[x.ndim - 1] = w.dim[!tw];
	return check_bias(c, w.dim[!tw]);
}

static double linear_flops(const struct slp_infer *c)
{
	sl_shape w = c->in[1].shape;
	return 2.0 * (double)rows_of(c->in[0].shape) * (double)w.dim[0] * (double)w.dim[1];
}

/* ---- gradient: dx = dy·wᵀ, dw = xᵀ·dy, db = the sum of the rows of dy ------------------------------------------- */

static enum sl_status linear_grad(struct slp_grad *g)
{
	sl_shape x = sl_tensor_shape(g->in[0]), w = sl_tensor_shape(g->in[1]);
	bool tw = transposed(g->attrs);
	int64_t rows = rows_of(x);
	sl_tensor *dy = sl_reshape_at(g->at, g->dout[0], SL_SHAPE(rows, w.dim[!tw]));
	if (g->need[0])
		g->din[0] = sl_reshape_at(g->at, sl_dot_at(g->at, dy, g->in[1], (struct sl_dot_opts){.tb = !tw}), x);
	if (g->need[1]) {
		sl_tensor *x2 = sl_reshape_at(g->at, g->in[0], SL_SHAPE(rows, w.dim[tw]));
		g->din[1] = tw ? sl_dot_at(g->at, dy, x2, (struct sl_dot_opts){.ta = true})
		               : sl_dot_at(g->at, x2, dy, (struct sl_dot_opts){.ta = true});
	}
	if (g->nin == 3 && g->need[2])
		g->din[2] = sl_sum_at(g->at, dy, (struct sl_reduce_opts){.axes = (const int[]){0}, .naxes = 1});
	return SL_OK;
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static enum sl_status linear_ref(const struct slp_kernel *k)
{
	sl_shape w = k->in[1].type.shape;
	bool tw = transposed(k->attrs);
	int64_t rows = rows_of(k->in[0].type.shape), features = w.dim[tw], units = w.dim[!tw];
	for (int64_t i = 0; i < rows; i++)
		for (int64_t u = 0; u < units; u++) {
			double sum = k->nin == 3 ? slp_get(&k->in[2], u) : 0;
			for (int64_t f = 0; f < features; f++)
				sum += slp_get(&k->in[0], i * features + f) *
				       slp_get(&k->in[1], tw ? u * features + f : f * units + u);
			slp_set(&k->out[0], i * units + u, sum);
		}
	return SL_OK;
}

/* Every row of y = b, to which the product is then added. */
static void fill_rows(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	size_t row = (size_t)slp_size(&k->in[2]) * sl_dtype_size(k->in[2].type.dtype);
	for (int64_t i = begin; i < end; i++) memcpy((char *)k->out[0].ptr + i * row, k->in[2].ptr, row);
}

static enum sl_status linear_cpu(const struct slp_kernel *k)
{
	sl_shape w = k->in[1].type.shape;
	bool tw = transposed(k->attrs), bias = k->nin == 3;
	int64_t rows = rows_of(k->in[0].type.shape), features = w.dim[tw], units = w.dim[!tw];
	if (rows == 0 || units == 0) return SL_OK;
	if (bias) slp_parallel_for(rows, 1 + SLP_GRAIN / units, fill_rows, (void *)k);
	if (k->in[0].type.dtype == SL_FLOAT32)
		return slp_sgemm(k, false, tw, rows, units, features, 1, k->in[0].ptr, features, k->in[1].ptr, w.dim[1],
		                 bias, k->out[0].ptr, units);
	slp_dgemm(false, tw, rows, units, features, 1, k->in[0].ptr, features, k->in[1].ptr, w.dim[1], bias,
	          k->out[0].ptr, units);
	return SL_OK;
}

#ifdef HAVE_CUDA
enum sl_status slp_cuda_linear(const struct slp_kernel *k);
#endif

/* ---- public ----------------------------------------------------------------------------------------------------- */

/* A fully connected layer, y = x·w + b: x (..., inputs), w (inputs, units) or, with .tw, (units, inputs), b (units);
 * y (..., units).  All float32 or all float64.  b NULL: without a bias (but NULL after an unseen mistake, as the rule
 * for all operations).  SL_ESHAPE: sizes differ or numbers of axes are wrong.
 *
 *	sl_tensor *h = sl_relu(sl_linear(x, w1, b1)); */
sl_tensor *sl_linear_at(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *b, struct sl_linear_opts opts)
{
	if (!b && sl_error() != SL_OK) return NULL;
	return slp_apply1(at, &slp_op_linear, &opts, b ? 3 : 2, (sl_tensor *const[]){x, w, b});
}

const struct sl_op slp_op_linear = {
        .name = "linear",
        .doc = "fully connected layer",
        .args = "x w b ...",
        .nin = -1,
        .nout = 1,
        .attr_table = linear_attrs,
        .attrs_size = sizeof(struct sl_linear_opts),
        .saves = SLP_IN(0) | SLP_IN(1),
        .cpu_dtypes = SLP_FLOATS,
        .cuda_dtypes = SLP_FLOATS,
        .infer = linear_infer,
        .flops = linear_flops,
        .grad = linear_grad,
        .ref = linear_ref,
        .cpu = linear_cpu,
        .cuda = SLP_CUDA(slp_cuda_linear),
};
