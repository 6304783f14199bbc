/* The fully connected layer: linear, y = x·w + b, then an activation. */
#include "common/activation.h"
#include "common/bf16.h"
#include "common/gemm.h"
#include "linear.h"
#include "op_list/linear.h"
#include "starling/primitives.h"

static const struct slp_attr linear_attrs[] = {
        SLP_ATTR(struct slp_linear_attrs, tw, SLP_BOOL, 1, "w is (units, inputs)"),
        SLP_ATTR(struct slp_linear_attrs, activation, SLP_INT, 1, "enum sl_activation, applied to the result"),
        {0},
};

static bool transposed(const void *attrs)
{
	return ((const struct slp_linear_attrs *)attrs)->tw;
}

/* ---- shapes ----------------------------------------------------------------------------------------------------- */

enum sl_status slp_linear_check(const struct slp_infer *c, const struct slp_type *x, const struct slp_type *w, bool tw,
                                sl_shape *out)
{
	for (int i = 0; i < c->nin; i++)
		if (!slp_is_float(c->in[i].dtype) || c->in[i].dtype != c->in[0].dtype)
			return slp_reject(c, SL_EDTYPE, "inputs must all be float32 or all float64");
	if (x->shape.ndim < 1 || w->shape.ndim != 2)
		return slp_reject(c, SL_ESHAPE, "x needs at least 1 axis and w exactly 2");
	int last = x->shape.ndim - 1;
	if (x->shape.dim[last] != w->shape.dim[tw])
		return slp_reject(c, SL_ESHAPE, "x has %lld features and w takes %lld", (long long)x->shape.dim[last],
		                  (long long)w->shape.dim[tw]);
	*out = x->shape;
	out->dim[last] = w->shape.dim[!tw];
	return SL_OK;
}

enum sl_status slp_linear_check_activation(const struct slp_infer *c, int activation)
{
	if (activation >= 0 && activation < SL_ACTIVATIONS) return SL_OK;
	return slp_reject(c, SL_EINVAL, "activation %d does not exist", activation);
}

static enum sl_status check_bias(const struct slp_infer *c, int64_t units)
{
	if (c->nin == 2) return SL_OK;
	sl_shape b = c->in[2].shape;
	if (b.ndim == 1 && b.dim[0] == units) return SL_OK;
	return slp_reject(c, SL_ESHAPE, "bias must have shape (%lld), the units of the weight", (long long)units);
}

static enum sl_status linear_infer(struct slp_infer *c)
{
	const struct slp_linear_attrs *a = c->attrs;
	if (c->nin != 2 && c->nin != 3) return slp_reject(c, SL_EINVAL, "needs x, w and at most a bias");
	c->out[0].dtype = c->in[0].dtype;
	enum sl_status s = slp_linear_check(c, &c->in[0], &c->in[1], a->tw, &c->out[0].shape);
	if (s == SL_OK) s = slp_linear_check_activation(c, a->activation);
	return s == SL_OK ? check_bias(c, c->in[1].shape.dim[!a->tw]) : s;
}

static double linear_flops(const struct slp_infer *c)
{
	struct slp_linear_size z = slp_linear_size_of(c->in[0].shape, c->in[1].shape, transposed(c->attrs));
	return 2.0 * (double)z.rows * (double)z.inputs * (double)z.units;
}

/* ---- gradient: dx = dy·wᵀ, dw = xᵀ·dy, db = the sum of the rows of dy ------------------------------------------- */

static enum sl_status linear_grad(struct slp_grad *g)
{
	sl_shape x = sl_tensor_shape(g->in[0]), w = sl_tensor_shape(g->in[1]);
	bool tw = transposed(g->attrs);
	int64_t rows = slp_linear_size_of(x, w, tw).rows;
	if (((const struct slp_linear_attrs *)g->attrs)->activation != SL_IDENTITY) {
		slp_call_fail(g->at, "linear", SL_EUNSUPPORTED, "has no gradient with an activation in it");
		return SL_EUNSUPPORTED;
	}
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
	const struct slp_linear_attrs *a = k->attrs;
	struct slp_linear_size z = slp_linear_size_of(k->in[0].type.shape, k->in[1].type.shape, a->tw);
	for (int64_t i = 0; i < z.rows; i++)
		for (int64_t u = 0; u < z.units; u++) {
			double sum = k->nin == 3 ? slp_get(&k->in[2], u) : 0;
			for (int64_t f = 0; f < z.inputs; f++)
				sum += slp_get(&k->in[0], i * z.inputs + f) *
				       slp_get(&k->in[1], a->tw ? u * z.inputs + f : f * z.units + u);
			slp_set(&k->out[0], i * z.units + u, slp_activated(sum, a->activation));
		}
	return SL_OK;
}

int64_t slp_linear_block(int64_t few, int64_t many, int64_t inner)
{
	enum { LEAST = 128, MOST_FEW = 512 };
	int64_t blocks = many / LEAST / 2 * 2; /* even: two threads share them well */
	if (few > MOST_FEW || few * inner < 4096 || blocks < 2) return 0;
	return (many / blocks + 15) / 16 * 16;
}

struct transposed_product {
	const float *a, *b;
	float *c;
	int64_t m, n, kk, block;
	_Atomic enum sl_status status;
};

static void transposed_blocks(void *arg, int64_t begin, int64_t end)
{
	struct transposed_product *p = arg;
	for (int64_t i = begin; i < end; i++) {
		int64_t j = i * p->block, n = p->n - j < p->block ? p->n - j : p->block;
		enum sl_status s = slp_sgemm_serial(false, true, p->m, n, p->kk, 1, p->a, p->kk, p->b + j * p->kk,
		                                    p->kk, 0, p->c + j, p->n);
		if (s != SL_OK) p->status = s;
	}
}

/* In blocks: for few rows, oneDNN takes twice as long if it divides the product among the threads itself. */
enum sl_status slp_linear_by_transposed(const struct slp_kernel *k, bool wide, int64_t m, int64_t n, int64_t kk,
                                        const void *a, const void *b, void *c)
{
	if (wide) {
		slp_dgemm(false, true, m, n, kk, 1, a, kk, b, kk, 0, c, n);
		return SL_OK;
	}
	struct transposed_product p = {
	        .a = a, .b = b, .c = c, .m = m, .n = n, .kk = kk, .block = slp_linear_block(m, n, kk)};
	if (p.block == 0) return slp_sgemm(k, false, true, m, n, kk, 1, a, kk, b, kk, 0, c, n);
	slp_parallel_for((n + p.block - 1) / p.block, 1, transposed_blocks, &p);
	return p.status == SL_OK ? SL_OK : slp_kernel_fail(k, p.status, "a product of matrices was refused");
}

/* y += bias for n floats. */
SLP_CLONES static void add_bias(float *restrict y, const float *restrict bias, int64_t n)
{
	for (int64_t i = 0; i < n; i++) y[i] += bias[i];
}

/* Rows [begin, end) of y: the bias, then the activation, row by row while it is in cache. */
static void finish_rows(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const struct slp_linear_attrs *a = k->attrs;
	int64_t units = k->in[1].type.shape.dim[!a->tw];
	for (int64_t i = begin; i < end; i++) {
		float *y = (float *)k->out[0].ptr + i * units;
		if (k->nin == 3) add_bias(y, k->in[2].ptr, units);
		slp_activate_range(y, units, a->activation);
	}
}

static void finish_rows_wide(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const struct slp_linear_attrs *a = k->attrs;
	int64_t units = k->in[1].type.shape.dim[!a->tw];
	const double *bias = k->nin == 3 ? k->in[2].ptr : NULL;
	double *y = k->out[0].ptr;
	for (int64_t i = begin * units; i < end * units; i++)
		y[i] = slp_activated(bias ? y[i] + bias[i % units] : y[i], a->activation);
}

static enum sl_status product(const struct slp_kernel *k, struct slp_linear_size z, bool tw, bool wide)
{
	const void *x = k->in[0].ptr, *w = k->in[1].ptr;
	void *y = k->out[0].ptr;
	if (tw) return slp_linear_by_transposed(k, wide, z.rows, z.units, z.inputs, x, w, y);
	if (!wide)
		return slp_sgemm(k, false, false, z.rows, z.units, z.inputs, 1, x, z.inputs, w, z.units, 0, y, z.units);
	slp_dgemm(false, false, z.rows, z.units, z.inputs, 1, x, z.inputs, w, z.units, 0, y, z.units);
	return SL_OK;
}

static enum sl_status linear_cpu(const struct slp_kernel *k)
{
	const struct slp_linear_attrs *a = k->attrs;
	struct slp_linear_size z = slp_linear_size_of(k->in[0].type.shape, k->in[1].type.shape, a->tw);
	bool wide = k->in[0].type.dtype == SL_FLOAT64;
	if (z.rows == 0 || z.units == 0) return SL_OK;
	enum sl_status s = product(k, z, a->tw, wide);
	if (s == SL_OK && (k->nin == 3 || a->activation != SL_IDENTITY))
		slp_parallel_for(z.rows, 1 + SLP_GRAIN / z.units, wide ? finish_rows_wide : finish_rows, (void *)k);
	return s;
}

/* ---- public ----------------------------------------------------------------------------------------------------- */

/* A fully connected layer, y = x·w + b: x (..., inputs), w (inputs, units) or, with .tw, (units, inputs); b (units), or
 * NULL for none (after an unreported mistake NULL gives NULL, as for all operations); y (..., units).  All float32 or
 * all float64 (SL_EDTYPE).  SL_ESHAPE: sizes differ or numbers of axes are wrong.
 *
 *	sl_tensor *h = sl_relu(sl_linear(x, w1, b1)); */
sl_tensor *sl_linear_at(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *b, struct sl_linear_opts opts)
{
	struct slp_linear_attrs attrs = {opts.tw, SL_IDENTITY};
	if (!b && sl_error() != SL_OK) return NULL;
	return slp_apply1(at, &slp_op_linear, &attrs, b ? 3 : 2, (sl_tensor *const[]){x, w, b});
}

const struct sl_op slp_op_linear = {
        .name = "linear",
        .doc = "fully connected layer",
        .args = "x w b",
        .nin_min = 2,
        .nin_max = 3,
        .nout = 1,
        .attr_table = linear_attrs,
        .attrs_size = sizeof(struct slp_linear_attrs),
        .saves = SLP_IN(0) | SLP_IN(1),
        .autocast = SLP_CAST_LOWER,
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, linear_cpu, slp_cuda_linear), SLP_BF16_ROW(slp_linear_bf16),
                         SLP_HALF_ROWS(slp_cuda_linear)),
        .infer = linear_infer,
        .flops = linear_flops,
        .grad = linear_grad,
        .ref = linear_ref,
};
