/* The backward pass of a fully connected layer, which graph passes make from recorded operations: linear_grad computes
 * all gradients; linear_grad_add adds those of the parameters to sums; linear_sgd subtracts them from the parameters at
 * once, so that the gradient of the weight is never stored.
 *
 * With g = dy, or dy taken back through an activation:  dx = g·wᵀ,  dw = xᵀ·g,  db = the sum of the rows of g.
 * A block of rows of w is read for dx and written while it is in a second-level cache. */
#include "common/activation.h"
#include "common/bf16.h"
#include "common/convert.h"
#include "common/gemm.h"
#include "linear.h"
#include "op_inner.h"
#include "op_list/linear.h"
#include "starling/options.h"

#define ATTR(kind, field, type, text) kind(struct slp_linear_grad_attrs, field, type, 1, text)
static const struct slp_attr grad_attr_table[] = {
        ATTR(SLP_ATTR, tw, SLP_BOOL, "w is (units, inputs)"),
        ATTR(SLP_ATTR, data, SLP_BOOL, "compute dx"),
        ATTR(SLP_ATTR, activation, SLP_INT, "enum sl_activation whose gradient is applied to dy"),
        ATTR(SLP_ATTR, wide, SLP_BOOL, "db is float32 beside half types"),
        {0},
};
static const struct slp_attr sgd_attr_table[] = {
        ATTR(SLP_ATTR_VALUE, lr, SLP_DOUBLE, "learning rate"),
        ATTR(SLP_ATTR_VALUE, rescale, SLP_DOUBLE, "factor of the gradients"),
        ATTR(SLP_ATTR_VALUE, weight_decay, SLP_DOUBLE, "part of a parameter added to its gradient"),
        ATTR(SLP_ATTR, tw, SLP_BOOL, "w is (units, inputs)"),
        ATTR(SLP_ATTR, data, SLP_BOOL, "compute dx"),
        ATTR(SLP_ATTR, activation, SLP_INT, "enum sl_activation whose gradient is applied to dy"),
        {0},
};

/* Inputs: x, w, dy, and v if there is an activation; before them sums of gradients (linear_grad_add) or the parameters
 * themselves (linear_sgd, whose w is both). Results: dx, and gradients of w and b. */
struct operand_order {
	int w, b, x, dy, v; /* b: of linear_sgd alone */
	int dx, dw, db;     /* of linear_grad_add: the numbers of their sums among the inputs, too */
};

static struct operand_order operand_order_of(const struct sl_op *op)
{
	if (op == &slp_op_linear_sgd)
		return (struct operand_order){.w = 0, .b = 1, .x = 2, .dy = 3, .v = 4, .dx = 0, .dw = -1, .db = -1};
	if (op == &slp_op_linear_grad_add)
		return (struct operand_order){.w = 3, .b = -1, .x = 2, .dy = 4, .v = 5, .dx = 2, .dw = 0, .db = 1};
	return (struct operand_order){.w = 1, .b = -1, .x = 0, .dy = 2, .v = 3, .dx = 0, .dw = 1, .db = 2};
}

/* ---- rules ------------------------------------------------------------------------------------------------------ */

/* Sums have the types of the gradients that are added. */
static enum sl_status check_sums(const struct slp_infer *c)
{
	for (int i = 0; i < 2; i++)
		if (!sl_shape_equal(c->in[i].shape, c->out[i].shape))
			return slp_reject(c, SL_ESHAPE, "input %d must have the shape of the %s", i,
			                  i ? "bias" : "weight");
	return SL_OK;
}

static enum sl_status infer(struct slp_infer *c)
{
	const struct slp_linear_grad_attrs *a = c->attrs;
	struct operand_order at = operand_order_of(c->op);
	int wanted = at.dy + 1 + (a->activation != SL_IDENTITY);
	sl_shape y;
	if (c->nin != wanted)
		return slp_reject(c, SL_EINVAL, "takes %d inputs %s activation", wanted,
		                  a->activation ? "with an" : "without");
	enum sl_status s = slp_linear_check(c, &c->in[at.x], &c->in[at.w], a->tw, &y);
	if (s == SL_OK) s = slp_linear_check_activation(c, a->activation);
	if (s != SL_OK) return s;
	int64_t units = c->in[at.w].shape.dim[!a->tw];
	for (int i = at.dy; i < c->nin; i++)
		if (!sl_shape_equal(c->in[i].shape, y))
			return slp_reject(c, SL_ESHAPE, "input %d must have the shape of the layer's result", i);
	if (at.b >= 0 && !sl_shape_equal(c->in[at.b].shape, SL_SHAPE(units)))
		return slp_reject(c, SL_ESHAPE, "bias must have shape (%lld), the units of the weight",
		                  (long long)units);
	c->out[at.dx] = c->in[at.x];
	if (!a->data) c->out[at.dx].shape = SL_SHAPE(0);
	if (at.dw < 0) return SL_OK;
	c->out[at.dw] = c->in[at.w];
	enum sl_dtype dtype = a->wide ? slp_promoted(c->in[0].dtype) : c->in[0].dtype;
	c->out[at.db] = (struct slp_type){dtype, SL_SHAPE(units)};
	return c->op == &slp_op_linear_grad_add ? check_sums(c) : SL_OK;
}

static double flops(const struct slp_infer *c)
{
	const struct slp_linear_grad_attrs *a = c->attrs;
	struct operand_order at = operand_order_of(c->op);
	struct slp_linear_size z = slp_linear_size_of(c->in[at.x].shape, c->in[at.w].shape, a->tw);
	return (a->data ? 4.0 : 2.0) * (double)z.rows * (double)z.inputs * (double)z.units;
}

/* Scratch memory of g, unless it is dy; behind it a GPU keeps the sums of parts of the columns. */
static size_t scratch(const struct slp_infer *c)
{
	const struct slp_linear_grad_attrs *a = c->attrs;
	struct operand_order at = operand_order_of(c->op);
	struct slp_linear_size z = slp_linear_size_of(c->in[at.x].shape, c->in[at.w].shape, a->tw);
	size_t parts = slp_linear_parts(z.rows, SLP_LINEAR_SHARE) > 1
	                       ? SLP_LINEAR_PARTS * (size_t)z.units * sizeof(double)
	                       : 0;
	return slp_linear_parts_at(a, &c->in[at.dy]) + parts;
}

/* ---- gradients of activations ----------------------------------------------------------------------------------- */

/* g = dy through the activation, n elements of one type, by the kernels of the operation on this thread. */
static void through_slope(const struct sl_op *op, enum sl_dtype dtype, const void *dy, const void *v, void *g,
                          int64_t n)
{
	struct slp_type type = {dtype, {1, {n}}};
	struct slp_view in[] = {{(void *)dy, type}, {(void *)v, type}}, out = {g, type};
	struct slp_kernel k = {.op = op, .nin = 2, .nout = 1, .in = in, .out = &out, .threads = 1};
	slp_kernel_for(op, SLP_ALL_OF(dtype), SL_DEVICE_CPU).kernel(&k);
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

/* g: computed in the scratch memory, or dy itself. */
static struct slp_view ref_g(const struct slp_kernel *k)
{
	const struct slp_linear_grad_attrs *a = k->attrs;
	struct operand_order at = operand_order_of(k->op);
	struct slp_view g = k->in[at.dy];
	if (a->activation == SL_IDENTITY) return g;
	g.ptr = k->scratch;
	struct slp_view in[] = {k->in[at.dy], k->in[at.v]};
	const struct sl_op *op = slp_activations[a->activation].slope;
	op->ref(&(struct slp_kernel){.op = op, .nin = 2, .nout = 1, .in = in, .out = &g, .threads = 1});
	return g;
}

static void ref_data(const struct slp_kernel *k, struct slp_linear_size z, const struct slp_view *g)
{
	const struct slp_linear_grad_attrs *a = k->attrs;
	const struct slp_view *w = &k->in[operand_order_of(k->op).w];
	for (int64_t i = 0; i < z.rows; i++)
		for (int64_t f = 0; f < z.inputs; f++) {
			double sum = 0;
			for (int64_t u = 0; u < z.units; u++)
				sum += slp_get(g, i * z.units + u) *
				       slp_get(w, a->tw ? u * z.inputs + f : f * z.units + u);
			slp_set(&k->out[operand_order_of(k->op).dx], i * z.inputs + f, sum);
		}
}

/* The new value of element i of a parameter, or of its gradient, for the gradient d. */
static void ref_put(const struct slp_kernel *k, const struct slp_view *to, int64_t i, double d)
{
	const struct slp_linear_grad_attrs *a = k->attrs;
	if (k->op == &slp_op_linear_sgd) {
		double old = slp_get(to, i);
		d = old - a->lr * (a->rescale * d + a->weight_decay * old);
	}
	if (k->op == &slp_op_linear_grad_add) d += slp_get(&k->in[to - k->out], i);
	slp_set(to, i, d);
}

static enum sl_status ref(const struct slp_kernel *k)
{
	const struct slp_linear_grad_attrs *a = k->attrs;
	struct operand_order at = operand_order_of(k->op);
	const struct slp_view *x = &k->in[at.x], *w = at.b >= 0 ? &k->in[at.w] : &k->out[at.dw],
	                      *b = at.b >= 0 ? &k->in[at.b] : &k->out[at.db];
	struct slp_linear_size z = slp_linear_size_of(x->type.shape, k->in[at.w].type.shape, a->tw);
	struct slp_view g = ref_g(k);
	if (a->data) ref_data(k, z, &g);
	for (int64_t u = 0; u < z.units; u++) {
		double all = 0;
		for (int64_t i = 0; i < z.rows; i++) all += slp_get(&g, i * z.units + u);
		ref_put(k, b, u, all);
		for (int64_t f = 0; f < z.inputs; f++) {
			double sum = 0;
			for (int64_t i = 0; i < z.rows; i++)
				sum += slp_get(x, i * z.inputs + f) * slp_get(&g, i * z.units + u);
			ref_put(k, w, a->tw ? u * z.inputs + f : f * z.units + u, sum);
		}
	}
	return SL_OK;
}

/* ---- CPU -------------------------------------------------------------------------------------------------------- */

struct work {
	const struct slp_kernel *k;
	const struct slp_linear_grad_attrs *a;
	struct slp_linear_size z;
	enum sl_dtype dtype;
	const struct sl_op *slope;  /* NULL: g is dy */
	const char *x, *w, *dy, *v; /* of floats or doubles */
	char *g, *dx, *to_w, *to_b; /* to: gradients, or the parameters themselves */
	double alpha, beta;         /* to = alpha gradient + beta to */
	bool adds;     /* both are 1: the gradient is rounded before it is added, as if it had been stored */
	size_t size;   /* of an element */
	int64_t block; /* rows of w that a thread takes at a time */
	_Atomic enum sl_status status;
};

/* C = alpha op(A) op(B) + beta C of elements of either type. */
static void multiply(struct work *p, bool team, bool ta, bool tb, int64_t m, int64_t n, int64_t kk, double alpha,
                     const void *a, int64_t lda, const void *b, int64_t ldb, double beta, void *c, int64_t ldc)
{
	enum sl_status s = SL_OK;
	if (p->dtype == SL_FLOAT64)
		(team ? slp_dgemm : slp_dgemm_serial)(ta, tb, m, n, kk, alpha, a, lda, b, ldb, beta, c, ldc);
	else if (team) s = slp_sgemm(p->k, ta, tb, m, n, kk, (float)alpha, a, lda, b, ldb, (float)beta, c, ldc);
	else s = slp_sgemm_serial(ta, tb, m, n, kk, (float)alpha, a, lda, b, ldb, (float)beta, c, ldc);
	if (s != SL_OK) p->status = s;
}

enum { TOGETHER = 64, WIDEST = 512 }; /* rows that are added up in single precision; columns at a time */

static SLP_CLONES void add_rows(double *restrict sum, const float *g, int64_t step, int64_t rows, int64_t n)
{
	float part[WIDEST] = {0};
	for (int64_t i = 0; i < rows; i++, g += step)
		for (int64_t j = 0; j < n; j++) part[j] += g[j];
	for (int64_t j = 0; j < n; j++) sum[j] += (double)part[j];
}

static void add_rows_wide(double *sum, const double *g, int64_t step, int64_t rows, int64_t n)
{
	for (int64_t i = 0; i < rows; i++, g += step)
		for (int64_t j = 0; j < n; j++) sum[j] += g[j];
}

/* Adds the sums of n columns from j on to the bias or its gradient. */
static void put_sums(const struct work *p, int64_t j, int64_t n, const double *sum)
{
	float *single = (float *)p->to_b + j;
	double *wide = (double *)p->to_b + j;
	for (int64_t i = 0; i < n; i++)
		if (p->adds && p->dtype == SL_FLOAT32) single[i] += (float)sum[i];
		else if (p->dtype == SL_FLOAT64) wide[i] = p->alpha * sum[i] + (p->beta == 0 ? 0 : p->beta * wide[i]);
		else single[i] = (float)(p->alpha * sum[i] + (p->beta == 0 ? 0 : p->beta * single[i]));
}

/* g and its sum for columns [j, j + n), a few rows at a time, which stay in cache between the two. */
static void some_columns(const struct work *p, int64_t j, int64_t n)
{
	double sum[WIDEST] = {0};
	int64_t units = p->z.units;
	for (int64_t i = 0; i < p->z.rows; i += TOGETHER) {
		int64_t rows = p->z.rows - i < TOGETHER ? p->z.rows - i : TOGETHER;
		for (int64_t r = i; p->slope && r < i + rows; r++) {
			size_t at = (size_t)(r * units + j) * p->size;
			through_slope(p->slope, p->dtype, p->dy + at, p->v + at, p->g + at, n);
		}
		const char *g = p->g + (size_t)(i * units + j) * p->size;
		if (p->dtype == SL_FLOAT64) add_rows_wide(sum, (const double *)g, units, rows, n);
		else add_rows(sum, (const float *)g, units, rows, n);
	}
	put_sums(p, j, n, sum);
}

static void columns(void *arg, int64_t begin, int64_t end)
{
	for (int64_t n; begin < end; begin += n) {
		n = end - begin < WIDEST ? end - begin : WIDEST;
		some_columns(arg, begin, n);
	}
}

/* Rows of w: dx from them, then their update. */
static void blocks(void *arg, int64_t begin, int64_t end)
{
	struct work *p = arg;
	int64_t rows = p->z.rows, inputs = p->z.inputs, units = p->z.units;
	for (int64_t i = begin * p->block; i < inputs && i < end * p->block; i += p->block) {
		int64_t n = inputs - i < p->block ? inputs - i : p->block;
		size_t at = (size_t)(i * units) * p->size, column = (size_t)i * p->size;
		if (p->a->data)
			multiply(p, false, false, true, rows, n, units, 1, p->g, units, p->w + at, units, 0,
			         p->dx + column, inputs);
		multiply(p, false, true, false, n, units, rows, p->alpha, p->x + column, inputs, p->g, units, p->beta,
		         p->to_w + at, units);
	}
}

/* The products of a whole layer, each on the team. */
static void whole(struct work *p)
{
	int64_t rows = p->z.rows, inputs = p->z.inputs, units = p->z.units;
	bool tw = p->a->tw;
	if (p->a->data)
		multiply(p, true, false, !tw, rows, inputs, units, 1, p->g, units, p->w, tw ? inputs : units, 0, p->dx,
		         inputs);
	if (tw)
		multiply(p, true, true, false, units, inputs, rows, p->alpha, p->g, units, p->x, inputs, p->beta,
		         p->to_w, inputs);
	else
		multiply(p, true, true, false, inputs, units, rows, p->alpha, p->x, inputs, p->g, units, p->beta,
		         p->to_w, units);
}

static struct work work_of(const struct slp_kernel *k)
{
	const struct slp_linear_grad_attrs *a = k->attrs;
	struct operand_order at = operand_order_of(k->op);
	bool sgd = at.b >= 0;
	struct work p = {.k = k,
	                 .a = a,
	                 .z = slp_linear_size_of(k->in[at.x].type.shape, k->in[at.w].type.shape, a->tw),
	                 .dtype = k->in[0].type.dtype,
	                 .slope = slp_activations[a->activation].slope,
	                 .x = k->in[at.x].ptr,
	                 .dy = k->in[at.dy].ptr,
	                 .v = a->activation ? k->in[at.v].ptr : NULL,
	                 .g = a->activation ? k->scratch : k->in[at.dy].ptr,
	                 .w = k->in[at.w].ptr,
	                 .dx = k->out[at.dx].ptr,
	                 .to_w = sgd ? k->in[at.w].ptr : k->out[at.dw].ptr,
	                 .to_b = sgd ? k->in[at.b].ptr : k->out[at.db].ptr,
	                 .alpha = sgd ? -a->lr * a->rescale : 1,
	                 .adds = k->op == &slp_op_linear_grad_add};
	p.beta = sgd ? 1 - a->lr * a->weight_decay : p.adds;
	p.size = sl_dtype_size(p.dtype);
	p.block = a->tw || p.dtype != SL_FLOAT32 ? 0 : slp_linear_block(p.z.rows, p.z.inputs, p.z.units);
	return p;
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	struct work p = work_of(k);
	if (p.adds) p.status = slp_take_sums(k, 2, slp_cpu_convert);
	slp_parallel_for(p.z.units, (SLP_GRAIN / (p.z.rows + 1) + 16) / 16 * 16, columns, &p);
	if (p.block) slp_parallel_for((p.z.inputs + p.block - 1) / p.block, 1, blocks, &p);
	else whole(&p);
	return p.status == SL_OK ? SL_OK : slp_kernel_fail(k, p.status, "a product of matrices was refused");
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

#define COMMON                                                                                                         \
	.attrs_size = sizeof(struct slp_linear_grad_attrs), .infer = infer, .flops = flops, .scratch = scratch,        \
	.ref = ref

/* dx (empty unless `data`), dw and db. v, if there is an activation: its result or its argument, whichever NAME_grad
 * takes. */
const struct sl_op slp_op_linear_grad = {
        .name = "linear_grad",
        .doc = "all gradients of a fully connected layer",
        .args = "x w dy v",
        .nin_min = 3,
        .nin_max = 4,
        .nout = 3,
        .attr_table = grad_attr_table,
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, cpu, slp_cuda_linear_grad), SLP_BF16_ROW(slp_linear_grad_bf16),
                         SLP_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, NULL, slp_cuda_linear_grad),
                         SLP_ROW(SLP_DTYPE(SL_FLOAT16) | SLP_F32, NULL, slp_cuda_linear_grad)),
        COMMON,
};

/* dw and db, each added to a given sum, and dx (empty unless `data`). */
const struct sl_op slp_op_linear_grad_add = {
        .name = "linear_grad_add",
        .doc = "all gradients of a fully connected layer, those of its parameters added to sums",
        .args = "dw db x w dy v",
        .nin_min = 5,
        .nin_max = 6,
        .nout = 3,
        .attr_table = grad_attr_table,
        .inplace = 2,
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, cpu, slp_cuda_linear_grad_add), SLP_HALF_ROWS(slp_cuda_linear_grad_add)),
        COMMON,
};

/* dx (empty unless `data`), from the old w; w -= lr (rescale dw + weight_decay w), b likewise. */
const struct sl_op slp_op_linear_sgd = {
        .name = "linear_sgd",
        .doc = "a step of gradient descent of a fully connected layer, and the gradient with respect to its input",
        .args = "w b x dy v",
        .nin_min = 4,
        .nin_max = 5,
        .nout = 1,
        .attr_table = sgd_attr_table,
        .rows = SLP_ROWS(SLP_ROW(SLP_FLOATS, cpu, slp_cuda_linear_grad), SLP_HALF_ROWS(slp_cuda_linear_grad)),
        .mutates = SLP_IN(0) | SLP_IN(1),
        COMMON,
};
