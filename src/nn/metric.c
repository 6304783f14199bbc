/* Metrics: running means.  Tasks add up the values; only reading the mean waits. */
#include <math.h>
#include <stdlib.h>

#include "as_index.h"
#include "dist/dist.h"
#include "nn/nn.h"
#include "op.h"
#include "runtime/gate.h"
#include "starling/nn.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"
#include "tensor/moment.h"

struct sl_metric {
	struct slp_guard guard;
	int top;        /* hits are labels among this number of largest scores; 0: a mean of values */
	sl_tensor *sum; /* float64, on no device in particular; NULL: nothing added yet */
	int64_t count;
};

static sl_metric *metric_new(int top)
{
	sl_metric *m = slp_calloc(1, sizeof *m);
	if (m) m->top = top;
	return m;
}

/* A metric: the share of rows whose label has the highest score, 0 to 1.  NULL after SL_ENOMEM.  Free it with
 * sl_metric_free.
 *
 *     sl_metric *accuracy = sl_accuracy_new();
 *     sl_metric_add(accuracy, sl_forward(net, x), y);
 *     printf("%.3f\n", sl_metric_get(accuracy)); */
sl_metric *sl_accuracy_new_at(const char *at)
{
	SLP_CALL("sl_accuracy_new", at);
	return metric_new(1);
}

/* The share of rows whose label is among the k highest scores (less than 1 means 1); otherwise as sl_accuracy_new. */
sl_metric *sl_topk_new_at(const char *at, int k)
{
	SLP_CALL("sl_topk_new", at);
	return metric_new(k < 1 ? 1 : k);
}

/* The mean of all elements, of losses for example; otherwise as sl_accuracy_new. */
sl_metric *sl_mean_new_at(const char *at)
{
	SLP_CALL("sl_mean_new", at);
	return metric_new(0);
}

/* One number a row, 1 where the label is among the best. */
static sl_tensor *hits(const char *at, const sl_metric *m, sl_tensor *scores, sl_tensor *labels)
{
	if (m->top > 1) return sl_topk_hits_at(at, scores, labels, m->top);
	if (sl_tensor_shape(scores).ndim != 2) {
		char text[128];
		return slp_call_fail(at, "sl_metric_add", SL_ESHAPE, "scores have shape %s, (n, classes) needed",
		                     sl_shape_string(sl_tensor_shape(scores), text));
	}
	return sl_eq_at(at, sl_argmax_at(at, scores, 1), slp_labels_as_index(at, labels));
}

static enum sl_status add(const char *at, sl_metric *m, sl_tensor *values)
{
	sl_tensor *sum = sl_sum_at(at, sl_cast_at(at, values, SL_FLOAT64), (struct sl_reduce_opts){0});
	if (!sum) return sl_error();
	if (!m->sum) m->sum = sl_retain(sl_zeros_at(at, SL_SCALAR, (struct sl_make){SL_FLOAT64, sl_auto()}));
	if (!m->sum || !sl_add_inplace_at(at, m->sum, sum)) return sl_error();
	m->count += sl_tensor_size(values);
	return SL_OK;
}

/* Adds a batch and returns at once: scores (n, classes) and labels (n), int32 or uint8, for accuracies; values of any
 * shape and NULL for means.  Nothing is recorded.  SL_EINVAL: an argument is NULL; SL_ESHAPE, SL_EDTYPE: arguments do
 * not match.
 *
 *     sl_metric_add(mean, loss, NULL); */
enum sl_status sl_metric_add_at(const char *at, sl_metric *metric, sl_tensor *values, sl_tensor *labels)
{
	SLP_CALL("sl_metric_add", at);
	enum sl_status s = SL_EINVAL;
	if (!metric || !values || (metric->top && !labels)) {
		if (sl_error() != SL_OK) return sl_error();
		slp_call_fail(at, "sl_metric_add", s, "the %s NULL",
		              !metric   ? "metric is"
		              : !values ? "values are"
		                        : "labels are");
		return s;
	}
	if (slp_is_symbolic(1, &values)) {
		slp_trace_complain("sl_metric_add at %s counts values", at);
		slp_call_fail(at, "sl_metric_add", SL_ESTATE, "a metric counts values, and a program has none yet");
		return SL_ESTATE;
	}
	SLP_GUARD(&metric->guard, at, "sl_metric_add", SL_ESTATE);
	SLP_CHANGE();
	SL_PAUSE
		SL_SCOPE {
			if (metric->top) values = hits(at, metric, values, labels);
			s = values ? add(at, metric, values) : sl_error();
		}
	return s;
}

/* Waits for the current mean and returns it; NaN if nothing was added, or after an error (sl_error), which may be the
 * error of an added value. With several processes (dist.h) it is the mean over all of them, and all must call it. */
double sl_metric_get_at(const char *at, sl_metric *metric)
{
	SLP_CALL("sl_metric_get", at);
	if (!metric) return NAN;
	SLP_GUARD(&metric->guard, at, "sl_metric_get", NAN);
	double sums[2] = {metric->count ? sl_item_at(at, metric->sum) : 0, (double)metric->count};
	if (slp_dist_sum_now(at, "sl_metric_get", sums, 2, SL_FLOAT64) != SL_OK) return NAN;
	return sums[1] > 0 ? sums[0] / sums[1] : NAN;
}

/* Forgets all added values. NULL is ignored. */
void sl_metric_reset(sl_metric *metric)
{
	if (!metric) return;
	SLP_GUARD_PATIENTLY(&metric->guard);
	sl_release(metric->sum);
	metric->sum = NULL;
	metric->count = 0;
}

static void metric_free(void *metric)
{
	sl_metric_reset(metric);
	free(metric);
}

/* Frees a metric. NULL is ignored. */
void sl_metric_free(sl_metric *metric)
{
	slp_later(metric_free, metric);
}

struct slp_metric_state slp_metric_get(const sl_metric *metric)
{
	return (struct slp_metric_state){metric->top, metric->sum, metric->count};
}

bool slp_metric_set(const char *at, sl_metric *metric, sl_tensor *sum, int64_t count)
{
	SLP_GUARD_PATIENTLY(&metric->guard);
	sl_tensor *copy = sum ? sl_retain(sl_copy_to_at(at, sum, sl_auto())) : NULL;
	if (sum && !copy) return false;
	sl_metric_reset(metric);
	metric->sum = copy;
	metric->count = sum ? count : 0;
	return true;
}
