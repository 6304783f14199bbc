/* softmax and log_softmax along an axis, and their gradients. */
#include <math.h>

#include "common/describe.h"
#include "op_list/loss.h"
#include "softmax.h"
#include "softmax_rows.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_axis_attrs, axis, SLP_INT, 1, "axis along which the results sum up to 1"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------ */

static enum sl_status infer(struct slp_infer *c)
{
	struct slp_axis_attrs *a = c->attrs;
	int ndim = c->in[0].shape.ndim, axis = a->axis;
	if (!slp_is_float(c->in[0].dtype))
		return slp_reject(c, SL_EDTYPE, "float32 or float64 needed; sl_cast converts");
	if (!slp_axis(&a->axis, ndim)) return slp_reject(c, SL_EINVAL, "axis %d of a tensor with %d axes", axis, ndim);
	c->out[0] = c->in[0];
	return SL_OK;
}

static enum sl_status infer_grad(struct slp_infer *c)
{
	if (c->in[0].dtype != c->in[1].dtype)
		return slp_reject(c, SL_EDTYPE, "the gradient has the data type of the result");
	if (!sl_shape_equal(c->in[0].shape, c->in[1].shape))
		return slp_reject(c, SL_ESHAPE, "the gradient has the type of the result");
	return infer(c);
}

static double flops(const struct slp_infer *c)
{
	return 20.0 * (double)sl_shape_size(c->out[0].shape);
}

static double flops_grad(const struct slp_infer *c)
{
	return 4.0 * (double)sl_shape_size(c->out[0].shape);
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

/* Calls f with the first element and the step of each row along the axis. */
static void each_row(const struct slp_kernel *k,
                     void (*f)(const struct slp_kernel *k, int64_t first, int64_t step, int64_t n))
{
	struct slp_split s = slp_axis_split(k);
	for (int64_t o = 0; o < s.outer; o++)
		for (int64_t i = 0; i < s.inner; i++) f(k, o * s.n * s.inner + i, s.inner, s.n);
}

static double log_sum_exp(const struct slp_view *x, int64_t first, int64_t step, int64_t n)
{
	double max = -INFINITY, sum = 0;
	for (int64_t i = 0; i < n; i++) {
		double v = slp_get(x, first + i * step);
		if (v > max || v != v) max = v;
	}
	for (int64_t i = 0; i < n; i++) sum += exp(slp_get(x, first + i * step) - max);
	return max + log(sum);
}

static void ref_log_softmax_row(const struct slp_kernel *k, int64_t first, int64_t step, int64_t n)
{
	double l = log_sum_exp(&k->in[0], first, step, n);
	for (int64_t e = first; e < first + n * step; e += step) slp_set(&k->out[0], e, slp_get(&k->in[0], e) - l);
}

static void ref_softmax_row(const struct slp_kernel *k, int64_t first, int64_t step, int64_t n)
{
	double l = log_sum_exp(&k->in[0], first, step, n);
	for (int64_t e = first; e < first + n * step; e += step) slp_set(&k->out[0], e, exp(slp_get(&k->in[0], e) - l));
}

static void ref_softmax_grad_row(const struct slp_kernel *k, int64_t first, int64_t step, int64_t n)
{
	const struct slp_view *dy = &k->in[0], *y = &k->in[1];
	double sum = 0;
	for (int64_t e = first; e < first + n * step; e += step) sum += slp_get(dy, e) * slp_get(y, e);
	for (int64_t e = first; e < first + n * step; e += step)
		slp_set(&k->out[0], e, slp_get(y, e) * (slp_get(dy, e) - sum));
}

static void ref_log_softmax_grad_row(const struct slp_kernel *k, int64_t first, int64_t step, int64_t n)
{
	const struct slp_view *dy = &k->in[0], *y = &k->in[1];
	double sum = 0;
	for (int64_t e = first; e < first + n * step; e += step) sum += slp_get(dy, e);
	for (int64_t e = first; e < first + n * step; e += step)
		slp_set(&k->out[0], e, slp_get(dy, e) - exp(slp_get(y, e)) * sum);
}

/* ---- CPU -------------------------------------------------------------------------------------------------------- */

static inline bool is_forward(enum slp_softmax_kind kind)
{
	return kind == SLP_SOFTMAX || kind == SLP_LOG_SOFTMAX;
}

SLP_VFN double term(enum slp_softmax_kind kind, float a, float b, float e)
{
	return is_forward(kind) ? (double)e : kind == SLP_SOFTMAX_GRAD ? (double)a * b : (double)a;
}

/* How results are computed from the sum. */
SLP_VFN float factor(enum slp_softmax_kind kind, double sum)
{
	return (float)(kind == SLP_SOFTMAX ? 1 / sum : kind == SLP_LOG_SOFTMAX ? log(sum) : sum);
}

SLP_VFN float result(enum slp_softmax_kind kind, float a, float b, float e, float max, float f)
{
	switch (kind) {
	case SLP_SOFTMAX: return e * f;
	case SLP_LOG_SOFTMAX: return a - max - f;
	case SLP_SOFTMAX_GRAD: return b * (a - f);
	case SLP_LOG_SOFTMAX_GRAD: return a - e * f;
	}
	return 0;
}

struct job {
	struct slp_split s;
	const float *a, *b; /* without a second input, b is a */
	float *out;         /* holds e on the way */
};

/* Rows without gaps: inner is 1. */
SLP_VFN void rows(enum slp_softmax_kind kind, const struct job *j, int64_t begin, int64_t end)
{
	int64_t n = j->s.n, once = slp_rows_at_once(n);
	float max[SLP_ROW_BLOCK] = {0};
	for (int64_t r = begin; r < end; r += once) {
		int64_t count = end - r < once ? end - r : once;
		if (is_forward(kind)) slp_exp_rows(j->out + r * n, j->a + r * n, max, n, count);
		if (kind == SLP_LOG_SOFTMAX_GRAD) slp_exp_row(j->out + r * n, j->b + r * n, 0, count * n);
		for (int64_t row = 0; row < count; row++) {
			const float *a = j->a + (r + row) * n, *b = j->b + (r + row) * n;
			float *e = j->out + (r + row) * n, m = max[row];
			double sum;
			SLP_ROW_SUM(sum, n, term(kind, a[i], b[i], e[i]));
			float f = factor(kind, sum);
			SLP_INDEPENDENT
			for (int64_t i = 0; i < n; i++) e[i] = result(kind, a[i], b[i], e[i], m, f);
		}
	}
}

enum { TILE = 256 };

static int64_t tiles(int64_t inner)
{
	return (inner + TILE - 1) / TILE;
}

/* n rows of w neighbours, whose columns are computed side by side. */
SLP_VFN void tile(enum slp_softmax_kind kind, const float *a, const float *b, float *out, int64_t n, int64_t pitch,
                  int64_t w)
{
	float max[TILE] = {0}, f[TILE];
	double sum[TILE] = {0};
	for (int64_t c = 0; is_forward(kind) && c < w; c++) max[c] = -INFINITY;
	for (int64_t i = 0; is_forward(kind) && i < n; i++)
		for (int64_t c = 0; c < w; c++) max[c] = slp_larger(max[c], a[i * pitch + c]);
	for (int64_t at = 0; at < n * pitch; at += pitch) {
		SLP_INDEPENDENT
		for (int64_t c = 0; c < w; c++) {
			float e = kind == SLP_SOFTMAX_GRAD
			                  ? 0
			                  : slp_expf(is_forward(kind) ? a[at + c] - max[c] : b[at + c]);
			sum[c] += term(kind, a[at + c], b[at + c], e);
			out[at + c] = e;
		}
	}
	for (int64_t c = 0; c < w; c++) f[c] = factor(kind, sum[c]);
	for (int64_t at = 0; at < n * pitch; at += pitch) {
		SLP_INDEPENDENT
		for (int64_t c = 0; c < w; c++)
			out[at + c] = result(kind, a[at + c], b[at + c], out[at + c], max[c], f[c]);
	}
}

SLP_VFN void columns(enum slp_softmax_kind kind, const struct job *j, int64_t begin, int64_t end)
{
	const struct slp_split *s = &j->s;
	for (int64_t t = begin; t < end; t++) {
		int64_t c = t % tiles(s->inner) * TILE, at = t / tiles(s->inner) * s->n * s->inner + c;
		tile(kind, j->a + at, j->b + at, j->out + at, s->n, s->inner,
		     s->inner - c < TILE ? s->inner - c : TILE);
	}
}

typedef void range_fn(void *arg, int64_t begin, int64_t end);

static enum sl_status run(const struct slp_kernel *k, range_fn *rows_fn, range_fn *columns_fn)
{
	struct job j = {slp_axis_split(k), k->in[0].ptr, k->in[k->nin - 1].ptr, k->out[0].ptr};
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	if (j.s.inner == 1) slp_parallel_for(j.s.outer, slp_rows_grain(j.s.n), rows_fn, &j);
	else slp_parallel_for(j.s.outer * tiles(j.s.inner), slp_rows_grain(j.s.n * TILE), columns_fn, &j);
	return SL_OK;
}

#define KERNELS(name, KIND)                                                                                            \
	static SLP_CLONES void name##_rows(void *arg, int64_t begin, int64_t end)                                      \
	{                                                                                                              \
		rows(KIND, arg, begin, end);                                                                           \
	}                                                                                                              \
	static SLP_CLONES void name##_columns(void *arg, int64_t begin, int64_t end)                                   \
	{                                                                                                              \
		columns(KIND, arg, begin, end);                                                                        \
	}                                                                                                              \
	static enum sl_status name##_cpu(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		return run(k, name##_rows, name##_columns);                                                            \
	}                                                                                                              \
	static enum sl_status name##_ref(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		each_row(k, ref_##name##_row);                                                                         \
		return SL_OK;                                                                                          \
	}                                                                                                              \
	enum sl_status slp_cuda_##name(const struct slp_kernel *k);
KERNELS(softmax, SLP_SOFTMAX)
KERNELS(log_softmax, SLP_LOG_SOFTMAX)
KERNELS(softmax_grad, SLP_SOFTMAX_GRAD)
KERNELS(log_softmax_grad, SLP_LOG_SOFTMAX_GRAD)

/* ---- operations ------------------------------------------------------------------------------------------------- */

static enum sl_status grad_by(struct slp_grad *g, const struct sl_op *op)
{
	if (g->need[0]) g->din[0] = slp_apply1(g->at, op, g->attrs, 2, (sl_tensor *[]){g->dout[0], g->out[0]});
	return SL_OK;
}

/* The same by operations that have gradients, for second derivatives. */
static enum sl_status grad_again(struct slp_grad *g, bool logs)
{
	int axis = ((const struct slp_axis_attrs *)g->attrs)->axis;
	struct sl_reduce_opts along = {&axis, 1, true};
	sl_tensor *d = g->dout[0], *y = g->out[0], *product = logs ? d : sl_mul_at(g->at, d, y);
	sl_tensor *sum = sl_sum_at(g->at, product, along);
	if (logs) g->din[0] = sl_sub_at(g->at, d, sl_mul_at(g->at, sl_exp_at(g->at, y), sum));
	else g->din[0] = sl_mul_at(g->at, sl_sub_at(g->at, d, sum), y);
	return g->din[0] ? SL_OK : sl_error();
}

static enum sl_status grad_softmax(struct slp_grad *g)
{
	if (g->again) return grad_again(g, false);
	return grad_by(g, &slp_op_softmax_grad);
}

static enum sl_status grad_log_softmax(struct slp_grad *g)
{
	if (g->again) return grad_again(g, true);
	return grad_by(g, &slp_op_log_softmax_grad);
}

/* The exponentials of x, divided by their sum along the axis; computed as exp(x - max), without overflow.  The
 * result has the shape and dtype of x, which must be a float (SL_EDTYPE).  SL_EINVAL: no such axis (negative: from the
 * end).
 *
 *	sl_tensor *p = sl_softmax(logits, -1); */
sl_tensor *sl_softmax_at(const char *at, sl_tensor *x, int axis)
{
	return slp_apply1(at, &slp_op_softmax, &(struct slp_axis_attrs){axis}, 1, &x);
}

/* log(softmax(x)), without the loss of digits of a logarithm taken afterwards.  Otherwise as sl_softmax.
 *
 *	sl_tensor *l = sl_log_softmax(logits, 1); */
sl_tensor *sl_log_softmax_at(const char *at, sl_tensor *x, int axis)
{
	return slp_apply1(at, &slp_op_log_softmax, &(struct slp_axis_attrs){axis}, 1, &x);
}

#define OP(op_name, text, inputs, count, ...)                                                                          \
	SLP_DESCRIBE(op_name, text, inputs, count, .attr_table = attr_table,                                           \
	             .attrs_size = sizeof(struct slp_axis_attrs), .rows = SLP_FLOAT_ROWS(op_name),                     \
	             .autocast = SLP_CAST_FLOAT32, __VA_ARGS__)
OP(softmax, "exponentials divided by their sum along an axis", "x", 1, .saves = SLP_OUT(0), .infer = infer,
   .flops = flops, .grad = grad_softmax);
OP(log_softmax, "logarithm of the softmax along an axis", "x", 1, .saves = SLP_OUT(0), .infer = infer, .flops = flops,
   .grad = grad_log_softmax);
OP(softmax_grad, "gradient of softmax", "dy y", 2, .infer = infer_grad, .flops = flops_grad);
OP(log_softmax_grad, "gradient of log_softmax", "dy y", 2, .infer = infer_grad, .flops = flops);
