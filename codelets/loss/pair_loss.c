/* Losses of pairs of elements, x and target, one number for each sample: the mean of a term over all axes but the
 * first, with d = x - target
 *     l1_loss          |d|
 *     l2_loss          d² / 2
 *     huber_loss       d² / 2 where |d| < delta, else delta (|d| - delta / 2);  P. J. Huber, "Robust estimation of a
 *                      location parameter", Annals of Mathematical Statistics 35, 1964
 *     bce_logits_loss  -target log(p) - (1 - target) log(1 - p) with p = sigmoid(x)
 * and their gradients. */
#include <math.h>

#include "common/describe.h"
#include "op_list/loss.h"
#include "options.h"
#include "pair_loss.h"
#include "softmax_rows.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

static const struct slp_attr huber_attr_table[] = {
        SLP_ATTR_DEFAULTED(struct slp_huber_attrs, delta, "distance where squares end; 0 means 1"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------ */

static int64_t batch(sl_shape s)
{
	return s.dim[0];
}

static int64_t row_size(sl_shape s)
{
	int64_t n = 1;
	for (int i = 1; i < s.ndim; i++) n *= s.dim[i];
	return n;
}

/* x and target are the last two inputs. */
static enum sl_status check_pair(struct slp_infer *c)
{
	const struct slp_type *x = &c->in[c->nin - 2], *target = x + 1;
	if (!slp_is_float(x->dtype)) return slp_reject(c, SL_EDTYPE, "float32 or float64 needed; sl_cast converts");
	if (x->dtype != target->dtype) return slp_reject(c, SL_EDTYPE, "x and target must have one dtype");
	if (!sl_shape_equal(x->shape, target->shape))
		return slp_reject(c, SL_ESHAPE, "x and target must have one shape; sl_reshape changes it");
	if (x->shape.ndim < 1) return slp_reject(c, SL_ESHAPE, "at least one axis needed: the samples");
	if (!c->op->attrs_size) return SL_OK;
	struct slp_huber_attrs *a = c->attrs;
	a->delta = slp_or(a->delta, 1);
	if (a->delta > 0 && isfinite(a->delta)) return SL_OK;
	return slp_reject(c, SL_EINVAL, "delta is %g, a positive number needed", a->delta + 0.0);
}

static enum sl_status infer(struct slp_infer *c)
{
	enum sl_status status = check_pair(c);
	if (!status) c->out[0] = (struct slp_type){c->in[0].dtype, SL_SHAPE(batch(c->in[0].shape))};
	return status;
}

/* The gradient of the losses is input 0. */
static enum sl_status infer_grad(struct slp_infer *c)
{
	const struct slp_type *d = &c->in[0], *x = &c->in[1];
	enum sl_status status = check_pair(c);
	if (status) return status;
	if (d->shape.ndim != 1 || d->shape.dim[0] != x->shape.dim[0])
		return slp_reject(c, SL_ESHAPE, "the first input is one number for each sample");
	if (d->dtype != x->dtype) return slp_reject(c, SL_EDTYPE, "the first two inputs must have one dtype");
	c->out[0] = c->in[1];
	return SL_OK;
}

static double flops(const struct slp_infer *c)
{
	return 4.0 * (double)sl_shape_size(c->in[c->nin - 2].shape);
}

static double flops_exp(const struct slp_infer *c)
{
	return 20.0 * (double)sl_shape_size(c->in[c->nin - 2].shape);
}

/* ---- reference -------------------------------------------------------------------------------------------------- */

static double ref_term(enum slp_pair_loss kind, double x, double t, double delta)
{
	double a = fabs(x - t);
	switch (kind) {
	case SLP_L1: return a;
	case SLP_L2: return 0.5 * a * a;
	case SLP_HUBER: return a < delta ? 0.5 * a * a : delta * (a - 0.5 * delta);
	case SLP_BCE: return (x > 0 ? (1 - t) * x : -t * x) + log1p(exp(-fabs(x)));
	}
	return NAN;
}

static double ref_slope(enum slp_pair_loss kind, double x, double t, double delta)
{
	double d = x - t;
	switch (kind) {
	case SLP_L1: return d > 0 ? 1 : d < 0 ? -1 : d;
	case SLP_L2: return d;
	case SLP_HUBER: return d > delta ? delta : d < -delta ? -delta : d;
	case SLP_BCE: return 1 / (1 + exp(-x)) - t;
	}
	return NAN;
}

static enum sl_status ref(const struct slp_kernel *k, enum slp_pair_loss kind)
{
	const struct slp_view *x = &k->in[0], *target = &k->in[1];
	int64_t n = row_size(x->type.shape);
	for (int64_t r = 0; r < batch(x->type.shape); r++) {
		double sum = 0;
		for (int64_t i = r * n; i < (r + 1) * n; i++)
			sum += ref_term(kind, slp_get(x, i), slp_get(target, i), slp_pair_delta(k));
		slp_set(&k->out[0], r, sum / (double)n);
	}
	return SL_OK;
}

static enum sl_status ref_grad(const struct slp_kernel *k, enum slp_pair_loss kind)
{
	const struct slp_view *x = &k->in[1], *target = &k->in[2];
	int64_t n = row_size(x->type.shape), all = slp_size(x);
	for (int64_t i = 0; i < all; i++) {
		double slope = ref_slope(kind, slp_get(x, i), slp_get(target, i), slp_pair_delta(k));
		slp_set(&k->out[0], i, slp_get(&k->in[0], i / n) * slope / (double)n);
	}
	return SL_OK;
}

/* ---- CPU -------------------------------------------------------------------------------------------------------- */

SLP_VFN float term(enum slp_pair_loss kind, float x, float t, float delta)
{
	float a = fabsf(x - t);
	switch (kind) {
	case SLP_L1: return a;
	case SLP_L2: return 0.5f * a * a;
	case SLP_HUBER: return a < delta ? 0.5f * a * a : delta * (a - 0.5f * delta);
	case SLP_BCE: return (x > 0 ? (1 - t) * x : -t * x) + slp_log1p_unit(slp_expf(-fabsf(x)));
	}
	return 0;
}

SLP_VFN float slope(enum slp_pair_loss kind, float x, float t, float delta)
{
	float d = x - t;
	switch (kind) {
	case SLP_L1: return slp_signf(d);
	case SLP_L2: return d;
	case SLP_HUBER: return d > delta ? delta : d < -delta ? -delta : d;
	case SLP_BCE: return slp_sigmoidf(x) - t;
	}
	return 0;
}

/* A batch as rows of n elements. */
struct job {
	int64_t n;
	float delta;
	const float *dloss, *x, *target;
	float *out;
};

/* Sums of rows: the terms of several short rows at once, so that vectors are full; a long row in blocks. */
SLP_VFN void losses(enum slp_pair_loss kind, const struct job *j, int64_t begin, int64_t end)
{
	int64_t n = j->n, once = slp_rows_at_once(n);
	float e[SLP_ROW_BLOCK], delta = j->delta;
	for (int64_t r = begin; r < end; r += once) {
		int64_t rows = end - r < once ? end - r : once;
		double all = 0;
		for (int64_t at = 0; at == 0 || at < n; at += SLP_ROW_BLOCK) {
			const float *x = j->x + r * n + at, *t = j->target + r * n + at;
			int64_t len = n - at < SLP_ROW_BLOCK ? n - at : SLP_ROW_BLOCK;
			SLP_INDEPENDENT
			for (int64_t i = 0; i < rows * len; i++) e[i] = term(kind, x[i], t[i], delta);
			for (int64_t row = 0; row < rows; row++) {
				const float *terms = e + row * len;
				double sum;
				SLP_ROW_SUM(sum, len, (double)terms[i]);
				all = at ? all + sum : sum;
				if (at + len == n) j->out[r + row] = (float)(all / (double)n);
			}
		}
	}
}

SLP_VFN void slopes(enum slp_pair_loss kind, const struct job *j, int64_t begin, int64_t end)
{
	float delta = j->delta;
	for (int64_t r = begin; r < end; r++) {
		const float *x = j->x + r * j->n, *t = j->target + r * j->n, scale = j->dloss[r] / (float)j->n;
		float *dx = j->out + r * j->n;
		SLP_INDEPENDENT
		for (int64_t i = 0; i < j->n; i++) dx[i] = scale * slope(kind, x[i], t[i], delta);
	}
}

/* One element a sample: rows would be too short for vectors. */
SLP_VFN void single_losses(enum slp_pair_loss kind, const struct job *j, int64_t begin, int64_t end)
{
	const float *x = j->x, *t = j->target;
	float *out = j->out, delta = j->delta;
	SLP_INDEPENDENT
	for (int64_t i = begin; i < end; i++) out[i] = term(kind, x[i], t[i], delta);
}

SLP_VFN void single_slopes(enum slp_pair_loss kind, const struct job *j, int64_t begin, int64_t end)
{
	const float *x = j->x, *t = j->target, *dloss = j->dloss;
	float *dx = j->out, delta = j->delta;
	SLP_INDEPENDENT
	for (int64_t i = begin; i < end; i++) dx[i] = dloss[i] * slope(kind, x[i], t[i], delta);
}

/* Rows for one call of a thread. */
static int64_t grain(enum slp_pair_loss kind, int64_t n)
{
	int64_t once = slp_rows_at_once(n), elements = kind == SLP_BCE ? SLP_GRAIN / 4 : SLP_GRAIN;
	return once * (elements / (once * n + 1) + 1);
}

typedef void range_fn(void *arg, int64_t begin, int64_t end);

static enum sl_status run(const struct slp_kernel *k, enum slp_pair_loss kind, range_fn *fn)
{
	const struct slp_view *x = &k->in[k->nin - 2];
	struct job j = {.n = row_size(x->type.shape),
	                .delta = (float)slp_pair_delta(k),
	                .dloss = k->in[0].ptr,
	                .x = x->ptr,
	                .target = x[1].ptr,
	                .out = k->out[0].ptr};
	slp_parallel_for(batch(x->type.shape), grain(kind, j.n), fn, &j);
	return SL_OK;
}

/* clang-format off */
#define KERNEL(name, KIND, fn)                                                                                         \
	static SLP_CLONES void name##_##fn(void *arg, int64_t begin, int64_t end)                                      \
	{                                                                                                              \
		const struct job *j = arg;                                                                             \
		if (j->n == 1)                                                                                         \
			single_##fn(KIND, j, begin, end);                                                              \
		else                                                                                                   \
			fn(KIND, j, begin, end);                                                                       \
	}
/* clang-format on */
#define KERNELS(name, KIND)                                                                                            \
	KERNEL(name, KIND, losses)                                                                                     \
	KERNEL(name, KIND, slopes)                                                                                     \
	static enum sl_status name##_cpu(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		return run(k, KIND, name##_losses);                                                                    \
	}                                                                                                              \
	static enum sl_status name##_grad_cpu(const struct slp_kernel *k)                                              \
	{                                                                                                              \
		return run(k, KIND, name##_slopes);                                                                    \
	}                                                                                                              \
	static enum sl_status name##_ref(const struct slp_kernel *k)                                                   \
	{                                                                                                              \
		return ref(k, KIND);                                                                                   \
	}                                                                                                              \
	static enum sl_status name##_grad_ref(const struct slp_kernel *k)                                              \
	{                                                                                                              \
		return ref_grad(k, KIND);                                                                              \
	}
SLP_PAIR_LOSSES(KERNELS)

/* ---- gradients -------------------------------------------------------------------------------------------------- */

static sl_tensor *grad_by_x(struct slp_grad *g)
{
	static const struct sl_op *const ops[][2] = {
#define X(name, KIND) {&slp_op_##name, &slp_op_##name##_grad},
	        SLP_PAIR_LOSSES(X)
#undef X
	};
	sl_tensor *in[] = {g->dout[0], g->in[0], g->in[1]};
	int i = 0;
	while (ops[i][0] != g->op) i++;
	return slp_apply1(g->at, ops[i][1], g->attrs, 3, in);
}

/* The term depends on the difference alone. */
static enum sl_status grad(struct slp_grad *g)
{
	sl_tensor *dx = grad_by_x(g);
	if (g->need[0]) g->din[0] = dx;
	if (g->need[1]) g->din[1] = sl_neg_at(g->at, dx);
	return SL_OK;
}

/* By the target:  -x dloss / n. */
static enum sl_status grad_bce(struct slp_grad *g)
{
	if (g->need[0]) g->din[0] = grad_by_x(g);
	if (!g->need[1]) return SL_OK;
	sl_shape shape = sl_tensor_shape(g->in[0]), column = shape;
	for (int i = 1; i < shape.ndim; i++) column.dim[i] = 1;
	sl_tensor *dloss = sl_mul_scalar_at(g->at, g->dout[0], -1.0 / (double)row_size(shape));
	g->din[1] = sl_mul_at(g->at, g->in[0], sl_reshape_at(g->at, dloss, column));
	return SL_OK;
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* The loss of a regression, one number per sample: the mean of |x - target| over all axes but the first.  x and target
 * are floats of one dtype and shape (n, …), the result is (n).  Gradients flow to both; the slope at 0 is 0.
 * SL_ESHAPE, SL_EDTYPE: arguments do not match.
 *
 * 	sl_tensor *loss = sl_l1_loss(prediction, y); */
sl_tensor *sl_l1_loss_at(const char *at, sl_tensor *x, sl_tensor *target)
{
	return slp_apply1(at, &slp_op_l1_loss, NULL, 2, (sl_tensor *[]){x, target});
}

/* The loss of a regression, one number per sample: half the mean of (x - target)^2 over all axes but the first.  x and
 * target are floats of one dtype and shape (n, …), the result is (n).  Gradients flow to both.  SL_ESHAPE, SL_EDTYPE:
 * arguments do not match.
 *
 *	sl_tensor *loss = sl_l2_loss(prediction, y); */
sl_tensor *sl_l2_loss_at(const char *at, sl_tensor *x, sl_tensor *target)
{
	return slp_apply1(at, &slp_op_l2_loss, NULL, 2, (sl_tensor *[]){x, target});
}

/* Huber's loss of a regression, one number per sample: the mean over all axes but the first of d^2 / 2 where |d| = |x -
 * target| < delta, else of delta (|d| - delta / 2), which gives outliers less weight than squares do.  As
 * torch.nn.HuberLoss; divided by delta it is SmoothL1Loss.  Shapes, dtypes and errors as in sl_l2_loss; also
 * SL_EINVAL, a negative delta.  P. J. Huber, Annals of Mathematical Statistics 35, 1964.
 *
 *	sl_tensor *loss = sl_huber_loss(prediction, y, .delta = 2); */
sl_tensor *sl_huber_loss_at(const char *at, sl_tensor *x, sl_tensor *target, struct sl_huber_loss_opts opts)
{
	if (!SLP_OPTIONS(sl_huber_loss_opts, at, "sl_huber_loss", &opts)) return NULL;
	struct slp_huber_attrs attrs = {opts.delta};
	return slp_apply1(at, &slp_op_huber_loss, &attrs, 2, (sl_tensor *[]){x, target});
}

/* ---- again, for second derivatives ------------------------------------------------------------------------------ */

static bool mean_of_rows(const struct slp_grad *g, sl_tensor *terms, sl_tensor **out)
{
	sl_shape shape = sl_tensor_shape(g->in[0]), rows = SL_SHAPE(batch(shape), row_size(shape));
	static const int last = 1;
	terms = terms ? sl_reshape_at(g->at, terms, rows) : NULL;
	out[0] = terms ? sl_mean_at(g->at, terms, (struct sl_reduce_opts){&last, 1, false}) : NULL;
	return out[0] != NULL;
}

static sl_tensor *distance(const struct slp_grad *g)
{
	return sl_sub_at(g->at, g->in[0], g->in[1]);
}

static bool l1_again(const struct slp_grad *g, sl_tensor **out)
{
	return mean_of_rows(g, sl_abs_at(g->at, distance(g)), out);
}

static bool l2_again(const struct slp_grad *g, sl_tensor **out)
{
	return mean_of_rows(g, sl_mul_scalar_at(g->at, sl_square_at(g->at, distance(g)), 0.5), out);
}

/* With m, |d| up to delta: m² / 2 + delta (|d| - m). */
static bool huber_again(const struct slp_grad *g, sl_tensor **out)
{
	double delta = ((const struct slp_huber_attrs *)g->attrs)->delta;
	sl_tensor *d = sl_abs_at(g->at, distance(g)), *m = sl_minimum_scalar_at(g->at, d, delta);
	sl_tensor *square = sl_mul_scalar_at(g->at, sl_square_at(g->at, m), 0.5);
	sl_tensor *rest = sl_mul_scalar_at(g->at, sl_sub_at(g->at, d, m), delta);
	return mean_of_rows(g, sl_add_at(g->at, square, rest), out);
}

/* softplus(x) - target x */
static bool bce_again(const struct slp_grad *g, sl_tensor **out)
{
	sl_tensor *x = g->in[0], *product = sl_mul_at(g->at, g->in[1], x);
	return mean_of_rows(g, sl_sub_at(g->at, sl_softplus_at(g->at, x), product), out);
}

/* The loss of a binary classifier, one number per sample: the mean over all axes but the first of the binary cross
 * entropy -target log(p) - (1 - target) log(1 - p)  with p = sigmoid(logits), computed from the logits without
 * overflow.  target holds probabilities, 0 to 1 (not checked).  logits and target are floats of one dtype and shape (n,
 * …), the result is (n).  Gradients flow to both.  SL_ESHAPE, SL_EDTYPE: arguments do not match.
 *
 *	sl_tensor *loss = sl_bce_logits_loss(logits, answers); */
sl_tensor *sl_bce_logits_loss_at(const char *at, sl_tensor *logits, sl_tensor *target)
{
	return slp_apply1(at, &slp_op_bce_logits_loss, NULL, 2, (sl_tensor *[]){logits, target});
}

#define ONE(op_name, text, inputs, count, ...)                                                                         \
	SLP_DESCRIBE(op_name, text, inputs, count, .rows = SLP_FLOAT_ROWS(op_name), .autocast = SLP_CAST_FLOAT32,      \
	             __VA_ARGS__)
#define BOTH(name, text, back, cost, ...)                                                                              \
	ONE(name, text, "x target", 2, .infer = infer, .saves = SLP_IN(0) | SLP_IN(1), .grad = back, .flops = cost,    \
	    __VA_ARGS__);                                                                                              \
	ONE(name##_grad, "gradient of " #name, "dloss x target", 3, .infer = infer_grad, .flops = cost, __VA_ARGS__)
BOTH(l1_loss, "mean of |x - target|, one for each sample", grad, flops, .attrs_size = 0, .again = l1_again);
BOTH(l2_loss, "half the mean of (x - target)^2, one for each sample", grad, flops, .attrs_size = 0, .again = l2_again);
BOTH(huber_loss, "mean of Huber's function of x - target, one for each sample", grad, flops,
     .attr_table = huber_attr_table, .attrs_size = sizeof(struct slp_huber_attrs), .again = huber_again);
BOTH(bce_logits_loss, "mean binary cross entropy of sigmoid(x) and target, one for each sample", grad_bce, flops_exp,
     .attrs_size = 0, .again = bce_again);
