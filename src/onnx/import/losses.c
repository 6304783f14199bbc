/* ONNX operators, computed: losses. */
#include "onnx/model/call.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

static sl_tensor *sum_of_last(struct slp_onnx_call *c, sl_tensor *t)
{
	return sl_sum_at(c->at, t, (struct sl_reduce_opts){SL_AXES(-1)});
}

/* The weight of each sample: that of its class, 0 if it is ignored.  NULL: all are equal, or after an error. */
static sl_tensor *weights_of(struct slp_onnx_call *c, sl_tensor *chosen, sl_tensor *labels, enum sl_dtype dtype)
{
	sl_tensor *classes = slp_onnx_tensor(c, 2), *w = NULL;
	if (classes) w = sum_of_last(c, sl_mul_at(c->at, sl_cast_at(c->at, chosen, dtype), classes));
	if (!slp_onnx_attr(c, "ignore_index")) return w;
	sl_tensor *kept = sl_ne_scalar_at(c->at, labels, (double)slp_onnx_attr_int(c, "ignore_index", 0));
	kept = sl_cast_at(c->at, kept, dtype);
	return w ? sl_mul_at(c->at, w, kept) : kept;
}

static sl_tensor *whole(struct slp_onnx_call *c, sl_tensor *losses, sl_tensor *w)
{
	struct sl_reduce_opts all = {0};
	if (slp_onnx_attr_is(c, "reduction", "mean", "none")) return losses;
	if (slp_onnx_attr_is(c, "reduction", "mean", "sum")) return sl_sum_at(c->at, losses, all);
	if (!slp_onnx_attr_is(c, "reduction", "mean", "mean"))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "attribute reduction can be none, sum or mean");
	if (c->failed || !losses) return NULL;
	if (!w) return sl_mean_at(c->at, losses, all);
	return sl_div_at(c->at, sl_sum_at(c->at, losses, all), sl_sum_at(c->at, w, all));
}

/* The loss of logarithms of probabilities (n, classes, …) for labels (n, …); a label that is no class has no loss. */
static void give_loss(struct slp_onnx_call *c, sl_tensor *logp, sl_tensor *labels)
{
	sl_shape s = sl_tensor_shape(logp);
	enum sl_dtype dtype = sl_tensor_dtype(logp);
	struct slp_onnx_value last = slp_onnx_axis_moved(c, (struct slp_onnx_value){.t = logp}, 1, s.ndim - 1);
	if (!last.t) {
		c->failed = true;
		return;
	}
	labels = sl_cast_at(c->at, labels, SL_INT32);
	sl_tensor *chosen = sl_one_hot_at(c->at, labels, s.dim[1], (struct sl_make){.dtype = SL_BOOL});
	struct sl_make make = {dtype, sl_tensor_device(logp)};
	sl_tensor *none = chosen ? sl_zeros_at(c->at, SL_SCALAR, make) : NULL;
	sl_tensor *losses = none ? sl_where_at(c->at, chosen, last.t, none) : NULL;
	losses = losses ? sl_neg_at(c->at, sum_of_last(c, losses)) : NULL;
	sl_tensor *w = losses ? weights_of(c, chosen, labels, dtype) : NULL;
	if (w) losses = sl_mul_at(c->at, losses, w);
	slp_onnx_set_output(c, 0, losses ? whole(c, losses, w) : NULL);
}

void slp_onnx_import_loss(struct slp_onnx_call *c)
{
	bool softmax = c->op->name[0] == 'S';
	sl_shape x = slp_onnx_shape(c, 0), labels = slp_onnx_shape(c, 1);
	if (!c->failed && (x.ndim < 2 || labels.ndim != x.ndim - 1))
		slp_onnx_call_fail(c, SL_ESHAPE, "scores of %d axes and labels of %d", x.ndim, labels.ndim);
	if (c->failed) return;
	sl_tensor *t = slp_onnx_tensor(c, 0), *right = slp_onnx_tensor(c, 1);
	if (softmax && t) t = sl_log_softmax_at(c->at, t, 1);
	if (!t || !right) {
		c->failed = true;
		return;
	}
	give_loss(c, t, right);
	if (softmax && c->nout > 1 && !c->failed) slp_onnx_set_output(c, 1, t);
}
