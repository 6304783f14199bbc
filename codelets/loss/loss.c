/* The loss of classifiers, one number for each sample: softmax with cross entropy; and its gradient. */
#include <math.h>

#include "common/describe.h"
#include "common/labels.h"
#include "op_list/loss.h"
#include "softmax_rows.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* A batch as rows of n elements. */
struct job {
	int64_t n;
	const float *dloss, *x;
	const struct slp_view *labels;
	float *out;
};

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

static enum sl_status need_floats(struct slp_infer *c, int i)
{
	if (slp_is_float(c->in[i].dtype)) return SL_OK;
	return slp_reject(c, SL_EDTYPE, "float32 or float64 needed; sl_cast converts");
}

/* The gradient of the losses, input 0 of a gradient operation. */
static enum sl_status need_dloss(struct slp_infer *c)
{
	const struct slp_type *d = &c->in[0], *x = &c->in[1];
	if (x->shape.ndim < 1 || d->shape.ndim != 1 || d->shape.dim[0] != x->shape.dim[0])
		return slp_reject(c, SL_ESHAPE, "the first input is one number for each sample");
	return d->dtype == x->dtype ? SL_OK : slp_reject(c, SL_EDTYPE, "the first two inputs must have one dtype");
}

static double flops(const struct slp_infer *c)
{
	return 20.0 * (double)sl_shape_size(c->in[c->op->nin_max == 3 ? 1 : 0].shape);
}

static enum sl_status infer_softmax_cross_entropy(struct slp_infer *c)
{
	enum sl_status status = need_floats(c, 0);
	if (!status) status = slp_check_labelled(c, &c->in[0], &c->in[1]);
	if (!status) c->out[0] = (struct slp_type){c->in[0].dtype, SL_SHAPE(batch(c->in[0].shape))};
	return status;
}

static enum sl_status infer_softmax_cross_entropy_grad(struct slp_infer *c)
{
	enum sl_status status = need_floats(c, 1);
	if (!status) status = slp_check_labelled(c, &c->in[1], &c->in[2]);
	if (!status) status = need_dloss(c);
	if (!status) c->out[0] = c->in[1];
	return status;
}

/* ---- softmax_cross_entropy: reference --------------------------------------------------------------------------- */

static double log_sum_exp(const struct slp_view *x, int64_t first, int64_t n)
{
	double max = -INFINITY, sum = 0;
	for (int64_t i = 0; i < n; i++) max = fmax(max, slp_get(x, first + i));
	for (int64_t i = 0; i < n; i++) sum += exp(slp_get(x, first + i) - max);
	return max + log(sum);
}

static enum sl_status softmax_cross_entropy_ref(const struct slp_kernel *k)
{
	const struct slp_view *x = &k->in[0], *labels = &k->in[1];
	int64_t n = row_size(x->type.shape);
	enum sl_status status = slp_check_labels(k, labels, n);
	for (int64_t r = 0; !status && r < batch(x->type.shape); r++)
		slp_set(&k->out[0], r, log_sum_exp(x, r * n, n) - slp_get(x, r * n + slp_label(labels, r)));
	return status;
}

static enum sl_status softmax_cross_entropy_grad_ref(const struct slp_kernel *k)
{
	const struct slp_view *x = &k->in[1], *labels = &k->in[2];
	int64_t n = row_size(x->type.shape);
	enum sl_status status = slp_check_labels(k, labels, n);
	for (int64_t r = 0; !status && r < batch(x->type.shape); r++) {
		double l = log_sum_exp(x, r * n, n), d = slp_get(&k->in[0], r);
		for (int64_t i = 0; i < n; i++)
			slp_set(&k->out[0], r * n + i,
			        d * (exp(slp_get(x, r * n + i) - l) - (i == slp_label(labels, r) ? 1 : 0)));
	}
	return status;
}

/* ---- softmax_cross_entropy: CPU --------------------------------------------------------------------------------- */

/* The buffer is too small for the exponentials of a long row. */
SLP_VFN double sum_long_row(const float *x, float max, int64_t n, float *e)
{
	double all = 0;
	for (int64_t at = 0; at < n; at += SLP_ROW_BLOCK) {
		int64_t len = n - at < SLP_ROW_BLOCK ? n - at : SLP_ROW_BLOCK;
		double sum;
		slp_exp_row(e, x + at, max, len);
		SLP_ROW_SUM(sum, len, (double)e[i]);
		all += sum;
	}
	return all;
}

static SLP_CLONES void cross_entropy(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t n = j->n, once = slp_rows_at_once(n);
	float e[SLP_ROW_BLOCK], max[SLP_ROW_BLOCK];
	for (int64_t r = begin; r < end; r += once) {
		int64_t rows = end - r < once ? end - r : once;
		if (n <= SLP_ROW_BLOCK) slp_exp_rows(e, j->x + r * n, max, n, rows);
		else max[0] = slp_row_max(j->x + r * n, n);
		for (int64_t row = 0; row < rows; row++) {
			const float *x = j->x + (r + row) * n;
			double sum;
			if (n <= SLP_ROW_BLOCK) SLP_ROW_SUM(sum, n, (double)e[row * n + i]);
			else sum = sum_long_row(x, max[0], n, e);
			j->out[r + row] = (float)(log(sum) + (double)max[row] - x[slp_label(j->labels, r + row)]);
		}
	}
}

/* dloss (softmax(x) - one_hot(label)) */
static SLP_CLONES void cross_entropy_grad(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t n = j->n, once = slp_rows_at_once(n);
	float max[SLP_ROW_BLOCK];
	for (int64_t r = begin; r < end; r += once) {
		int64_t rows = end - r < once ? end - r : once;
		slp_exp_rows(j->out + r * n, j->x + r * n, max, n, rows);
		for (int64_t row = r; row < r + rows; row++) {
			float *e = j->out + row * n;
			double sum;
			SLP_ROW_SUM(sum, n, (double)e[i]);
			float scale = (float)(j->dloss[row] / sum);
			e[slp_label(j->labels, row)] -=
			        (float)sum; /* no digits are lost: one subtraction, as softmax - 1 */
			SLP_INDEPENDENT
			for (int64_t i = 0; i < n; i++) e[i] *= scale;
		}
	}
}

static enum sl_status softmax_cross_entropy_cpu(const struct slp_kernel *k)
{
	struct job j = {row_size(k->in[0].type.shape), NULL, k->in[0].ptr, &k->in[1], k->out[0].ptr};
	enum sl_status status = slp_check_labels(k, j.labels, j.n);
	if (!status) slp_parallel_for(batch(k->in[0].type.shape), slp_rows_grain(j.n), cross_entropy, &j);
	return status;
}

static enum sl_status softmax_cross_entropy_grad_cpu(const struct slp_kernel *k)
{
	struct job j = {row_size(k->in[1].type.shape), k->in[0].ptr, k->in[1].ptr, &k->in[2], k->out[0].ptr};
	enum sl_status status = slp_check_labels(k, j.labels, j.n);
	if (!status) slp_parallel_for(batch(k->in[1].type.shape), slp_rows_grain(j.n), cross_entropy_grad, &j);
	return status;
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

static enum sl_status grad_softmax_cross_entropy(struct slp_grad *g)
{
	sl_tensor *in[] = {g->dout[0], g->in[0], g->in[1]};
	if (g->need[0]) g->din[0] = slp_apply1(g->at, &slp_op_softmax_cross_entropy_grad, NULL, 3, in);
	return SL_OK;
}

/* The loss of a classifier, one number for each sample: minus the logarithm of the right class's probability in
 * softmax(logits).  logits (n, classes), float; labels (n), int32, int64 or uint8, from 0; the result (n).  Gradients
 * flow to the logits only.  SL_ESHAPE, SL_EDTYPE: arguments do not match; SL_EINVAL: a label that is not a class.  The
 * operation finds such a label while it runs, and the next wait reports it with its sample; on a GPU the loss and the
 * gradient of such a sample are NaN instead.
 *
 *	sl_tensor *loss = sl_softmax_cross_entropy(logits, labels); */
sl_tensor *sl_softmax_cross_entropy_at(const char *at, sl_tensor *logits, sl_tensor *labels)
{
	SLP_FUNCTION("sl_softmax_cross_entropy", at);
	return SLP_RETURN(slp_apply1(at, &slp_op_softmax_cross_entropy, NULL, 2,
	                             (sl_tensor *[]){logits, slp_as_index(at, labels)}));
}

/* For second derivatives: minus the logarithm of the label's share. */
static bool cross_entropy_again(const struct slp_grad *g, sl_tensor **out)
{
	static const int last = 1;
	sl_tensor *logs = sl_log_softmax_at(g->at, g->in[0], 1), *labels = sl_cast_at(g->at, g->in[1], SL_INT32);
	struct sl_make make = {.dtype = sl_tensor_dtype(g->in[0])};
	sl_tensor *chosen = sl_one_hot_at(g->at, labels, sl_tensor_shape(g->in[0]).dim[1], make);
	out[0] = sl_sum_at(g->at, sl_mul_at(g->at, logs, chosen), (struct sl_reduce_opts){&last, 1, false});
	out[0] = out[0] ? sl_neg_at(g->at, out[0]) : NULL;
	return out[0] != NULL;
}

#define OP(op_name, text, inputs, count, ...)                                                                          \
	SLP_DESCRIBE(op_name, text, inputs, count, .rows = SLP_FLOAT_ROWS(op_name), .autocast = SLP_CAST_FLOAT32,      \
	             .infer = infer_##op_name, .flops = flops, __VA_ARGS__)
OP(softmax_cross_entropy, "cross entropy of softmax(logits) and labels, one for each sample", "logits labels", 2,
   .saves = SLP_IN(0) | SLP_IN(1), .grad = grad_softmax_cross_entropy, .again = cross_entropy_again);
OP(softmax_cross_entropy_grad, "gradient of softmax_cross_entropy", "dloss logits labels", 3, .grad = NULL);

/* ---- the loss and its gradient in one pass ----------------------------------------------------------------------- */

static enum sl_status infer_both(struct slp_infer *c)
{
	enum sl_status status = infer_softmax_cross_entropy_grad(c);
	if (!status) c->out[1] = (struct slp_type){c->in[1].dtype, SL_SHAPE(batch(c->in[1].shape))};
	return status;
}

/* The gradient is output 0, the loss output 1, by kernels of the operations for one of them. */
static enum sl_status compute_both(const struct slp_kernel *k, slp_kernel_fn *gradient, slp_kernel_fn *loss)
{
	struct slp_kernel inner = *k;
	inner.nout = 1;
	enum sl_status status = gradient(&inner);
	inner.nin = 2;
	inner.in++;
	inner.out++;
	return status == SL_OK ? loss(&inner) : status;
}

static enum sl_status softmax_cross_entropy_both_ref(const struct slp_kernel *k)
{
	return compute_both(k, softmax_cross_entropy_grad_ref, softmax_cross_entropy_ref);
}

static enum sl_status softmax_cross_entropy_both_cpu(const struct slp_kernel *k)
{
	return compute_both(k, softmax_cross_entropy_grad_cpu, softmax_cross_entropy_cpu);
}

const struct sl_op slp_op_softmax_cross_entropy_both = {
        .name = "softmax_cross_entropy_both",
        .doc = "gradient of softmax_cross_entropy, and the losses",
        .args = "dloss logits labels",
        SLP_NIN(3),
        .nout = 2,
        .rows = SLP_FLOAT_ROWS(softmax_cross_entropy_both),
        .autocast = SLP_CAST_FLOAT32,
        .infer = infer_both,
        .flops = flops,
        .ref = softmax_cross_entropy_both_ref,
};
