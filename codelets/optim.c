/* Optimisers: stochastic gradient descent over a whole list of parameters in one operation, since most parameters are
 * too small to be worth one each. */
#include <stdlib.h>

#include "optim.h"
#include "vmath.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR_VALUE(struct slp_sgd_attrs, lr, SLP_DOUBLE, 1, "learning rate"),
        SLP_ATTR_VALUE(struct slp_sgd_attrs, momentum, SLP_DOUBLE, 1, "what stays of the momentum"),
        SLP_ATTR_VALUE(struct slp_sgd_attrs, weight_decay, SLP_DOUBLE, 1, "part of a parameter added to its gradient"),
        SLP_ATTR_VALUE(struct slp_sgd_attrs, rescale, SLP_DOUBLE, 1, "factor of the gradients"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------ */

/* Inputs come as w, g or w, g, m in turn. */
static enum sl_status infer(struct slp_infer *c)
{
	int period = c->op->period;
	char a[128], b[128];
	if (c->nin % period) return slp_reject(c, SL_EINVAL, "%d tensors; they come by %d", c->nin, period);
	for (int i = 0; i < c->nin; i++) {
		const struct slp_type *w = &c->in[i - i % period], *t = &c->in[i];
		const char *what = i % period == 1 ? "gradient" : "momentum";
		if (!slp_is_float(t->dtype) || t->dtype != c->in[0].dtype)
			return slp_reject(c, SL_EDTYPE, "parameter %d: %s, while all are float32 or all float64",
			                  i / period, sl_dtype_name(t->dtype));
		if (!sl_shape_equal(w->shape, t->shape))
			return slp_reject(c, SL_ESHAPE, "parameter %d is %s, its %s %s", i / period,
			                  sl_shape_string(w->shape, a), what, sl_shape_string(t->shape, b));
	}
	return SL_OK;
}

static double elements(const struct slp_infer *c)
{
	double n = 0;
	for (int i = 0; i < c->nin; i += c->op->period) n += (double)sl_shape_size(c->in[i].shape);
	return n;
}

static double flops(const struct slp_infer *c)
{
	return 2.0 * c->op->period * elements(c);
}

/* All are read, all but the gradients written. */
static double bytes(const struct slp_infer *c)
{
	return (2.0 * c->op->period - 1) * elements(c) * (double)sl_dtype_size(c->in[0].dtype);
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

static enum sl_status ref(const struct slp_kernel *k)
{
	const struct slp_sgd_attrs *a = k->attrs;
	int period = k->op->period;
	for (const struct slp_view *w = k->in; w < k->in + k->nin; w += period) {
		int64_t n = slp_size(w);
		for (int64_t i = 0; i < n; i++) {
			double step = a->rescale * slp_get(w + 1, i) + a->weight_decay * slp_get(w, i);
			if (period == 3) {
				step += a->momentum * slp_get(w + 2, i);
				slp_set(w + 2, i, step);
			}
			slp_set(w, i, slp_get(w, i) - a->lr * step);
		}
	}
	return SL_OK;
}

/* All parameters, cut into blocks, are one range for the team: large ones are shared, small ones cost little. */
enum { BLOCK = 64 };

static int64_t blocks(const struct slp_view *w)
{
	return (slp_size(w) + BLOCK - 1) / BLOCK;
}

static SLP_CLONES void step(const struct slp_sgd_attrs *a, float *w, const float *g, int64_t n)
{
	float lr = (float)a->lr, decay = (float)a->weight_decay, rescale = (float)a->rescale;
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) w[i] -= lr * (rescale * g[i] + decay * w[i]);
}

static SLP_CLONES void step_momentum(const struct slp_sgd_attrs *a, float *w, const float *g, float *m, int64_t n)
{
	float lr = (float)a->lr, decay = (float)a->weight_decay, rescale = (float)a->rescale;
	float momentum = (float)a->momentum;
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) {
		m[i] = momentum * m[i] + (rescale * g[i] + decay * w[i]);
		w[i] -= lr * m[i];
	}
}

/* Blocks [begin, end) of the list. */
static void range(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	int period = k->op->period;
	int64_t first = 0;
	for (const struct slp_view *w = k->in; w < k->in + k->nin && first < end; w += period) {
		int64_t from = begin > first ? (begin - first) * BLOCK : 0, to = (end - first) * BLOCK, n = slp_size(w);
		first += blocks(w);
		if (to > n) to = n;
		if (from >= to) continue;
		float *pw = (float *)w->ptr + from, *pg = (float *)w[1].ptr + from;
		if (period == 3)
			step_momentum(k->attrs, pw, pg, (float *)w[2].ptr + from, to - from);
		else
			step(k->attrs, pw, pg, to - from);
	}
}

static enum sl_status cpu(const struct slp_kernel *k)
{
	int64_t all = 0;
	for (int i = 0; i < k->nin; i += k->op->period) all += blocks(&k->in[i]);
	slp_parallel_for(all, SLP_GRAIN / BLOCK, range, (void *)k);
	return SL_OK;
}

enum sl_status slp_cuda_sgd(const struct slp_kernel *k);

/* ---- operations ------------------------------------------------------------------------------------------------- */

#define OP(op_name, text, inputs, count, written)                                                                      \
	const struct sl_op slp_op_##op_name = {                                                                        \
	        .name = #op_name,                                                                                      \
	        .doc = text,                                                                                           \
	        .args = inputs,                                                                                        \
	        .nin = -1,                                                                                             \
	        .nout = 0,                                                                                             \
	        .attr_table = attr_table,                                                                              \
	        .attrs_size = sizeof(struct slp_sgd_attrs),                                                            \
	        .mutates = written,                                                                                    \
	        .period = count,                                                                                       \
	        .cpu_dtypes = SLP_DTYPE(SL_FLOAT32),                                                                   \
	        .cuda_dtypes = SLP_FLOATS,                                                                             \
	        .infer = infer,                                                                                        \
	        .flops = flops,                                                                                        \
	        .bytes = bytes,                                                                                        \
	        .ref = ref,                                                                                            \
	        .cpu = cpu,                                                                                            \
	        .cuda = SLP_CUDA(slp_cuda_sgd),                                                                        \
	}
OP(sgd, "gradient descent: parameters, gradients in turn", "w g ...", 2, SLP_IN(0));
OP(sgd_momentum, "gradient descent with momentum: parameters, gradients, momenta in turn", "w g m ...", 3,
   SLP_IN(0) | SLP_IN(2));

/* ---- public ----------------------------------------------------------------------------------------------------- */

/* The lists of a call, as the operation takes them. */
struct lists {
	sl_tensor *const *of[3];
	int period;
};

static enum sl_status check(const char *at, const struct lists *l, int count)
{
	static const char *const names[] = {"params", "grads", "momenta"};
	enum sl_status bad = SL_EINVAL;
	for (int j = 0; j < l->period; j++) {
		if (!l->of[j] && count > 0) return slp_call_fail(at, "sl_sgd_update", bad, "%s is NULL", names[j]), bad;
		for (int i = 0; i < count; i++)
			if (!l->of[j][i])
				return slp_call_fail(at, "sl_sgd_update", bad, "%s[%d] is NULL", names[j], i), bad;
	}
	return SL_OK;
}

/* How many parameters from `first` on are on one device. */
static int same_device(const struct lists *l, int first, int count)
{
	sl_device device = sl_tensor_device(l->of[0][first]);
	int n = 1;
	while (first + n < count && sl_device_equal(sl_tensor_device(l->of[0][first + n]), device)) n++;
	return n;
}

static enum sl_status update(const char *at, const struct lists *l, int count, const struct slp_sgd_attrs *attrs)
{
	extern const struct sl_op slp_op_sgd, slp_op_sgd_momentum;
	sl_tensor **in = malloc((size_t)(count * l->period) * sizeof *in);
	enum sl_status status = SL_OK;
	if (!in) return slp_call_fail(at, "sl_sgd_update", SL_ENOMEM, "%d parameters", count), SL_ENOMEM;
	for (int i = 0; i < count * l->period; i++) in[i] = l->of[i % l->period][i / l->period];
	for (int i = 0, n; i < count && !status; i += n) {
		n = same_device(l, i, count);
		status = slp_apply(at, l->period == 3 ? &slp_op_sgd_momentum : &slp_op_sgd, attrs, n * l->period,
		                   in + i * l->period, sl_auto(), NULL);
	}
	free(in);
	return status;
}

/* One step of stochastic gradient descent, in place, with  g = rescale grad + weight_decay param:
 * without momentum  param -= lr g;  with it  m = momentum m + g, param -= lr m  (as PyTorch has it).  Parameters of
 * one device that follow each other are updated by a single operation.  Nothing is recorded.  A parameter, its
 * gradient and its momentum have one shape; all have one dtype, float32 or float64.  momenta is needed with a
 * momentum and NULL without.  Errors: SL_EINVAL, something is NULL (or momenta is not); SL_ESHAPE; SL_EDTYPE; all name
 * the parameter by its index.
 *
 *	sl_sgd_update(params, grads, NULL, count, .lr = 0.1, .rescale = 1.0 / batch_size); */
enum sl_status sl_sgd_update_at(const char *at, sl_tensor *const *params, sl_tensor *const *grads,
                                sl_tensor *const *momenta, int count, struct sl_sgd_opts opts)
{
	struct lists l = {{params, grads, momenta}, opts.momentum != 0 ? 3 : 2};
	struct slp_sgd_attrs attrs = {opts.lr, opts.momentum, opts.weight_decay, opts.rescale != 0 ? opts.rescale : 1};
	sl_mode mode = {false, false, 0};
	if (count < 0 || (momenta && l.period == 2))
		return slp_call_fail(at, "sl_sgd_update", SL_EINVAL,
		                     count < 0 ? "a negative number of parameters"
		                               : "momenta are given, but momentum is 0"),
		       SL_EINVAL;
	enum sl_status status = check(at, &l, count);
	if (status || count == 0) return status;
	sl_mode_enter(&mode, 0, -1);
	status = update(at, &l, count, &attrs);
	sl_mode_leave(&mode);
	return status;
}
