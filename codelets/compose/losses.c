/* Losses and similarities made of operations. */
#include "compose.h"
#include "op.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

static sl_tensor *sum_of_last(const char *at, sl_tensor *t)
{
	return sl_sum_at(at, t, (struct sl_reduce_opts){SL_AXES(-1)});
}

/* x (n, c, …) with its classes last: (n, …, c). */
static sl_tensor *classes_last(const char *at, sl_tensor *x)
{
	int ndim = sl_tensor_shape(x).ndim, axes[SL_MAX_NDIM] = {0};
	if (ndim < 3) return x;
	for (int i = 1; i < ndim - 1; i++) axes[i] = i + 1;
	axes[ndim - 1] = 1;
	return sl_transpose_at(at, x, (struct sl_reduce_opts){.axes = axes, .naxes = ndim});
}

/* Whether the labels are those of the logits' samples, and the weights those of the classes. */
static bool labels_fit(const char *at, const char *me, sl_shape logits, sl_tensor *labels, sl_tensor *weights)
{
	sl_shape samples = logits;
	samples.ndim--;
	for (int i = 1; i < samples.ndim; i++) samples.dim[i] = logits.dim[i + 1];
	sl_shape given = labels ? sl_tensor_shape(labels) : samples;
	char text[3][128];
	if (logits.ndim > 2 && given.ndim >= 0 && !sl_shape_equal(given, samples)) {
		slp_call_fail(at, me, SL_ESHAPE,
		              "the shape of labels is %s, %s needed: classes are axis 1 of logits %s (sl_transpose "
		              "moves it there)",
		              sl_shape_string(given, text[0]), sl_shape_string(samples, text[1]),
		              sl_shape_string(logits, text[2]));
		return false;
	}
	return slp_shape_fits(at, me, "labels", labels, samples) &&
	       slp_shape_fits(at, me, "weights", weights, SL_SHAPE(logits.dim[1]));
}

/* The samples that count, as true values; NULL after an error. */
static sl_tensor *are_kept(const char *at, sl_tensor *labels, const struct sl_cross_entropy_opts *o)
{
	return o->ignore ? sl_ne_scalar_at(at, labels, (double)o->ignore_index) : sl_eq_at(at, labels, labels);
}

/* Minus the cross entropy of each sample, in the shape of the labels; a label that is no class is an error. */
static sl_tensor *log_probabilities(const char *at, sl_tensor *x, sl_tensor *labels)
{
	sl_shape s = sl_tensor_shape(x), samples = s;
	samples.ndim--;
	x = sl_reshape_at(at, x, SL_SHAPE(-1, s.dim[s.ndim - 1]));
	sl_tensor *losses = sl_softmax_cross_entropy_at(at, x, sl_reshape_at(at, labels, SL_SHAPE(-1)));
	return sl_reshape_at(at, sl_neg_at(at, losses), samples);
}

/* The mean, over the samples that count, of minus the numbers, or the sum if `total` is NULL. */
static sl_tensor *over(const char *at, sl_tensor *x, sl_tensor *counted, sl_tensor *total)
{
	sl_tensor *sum = sl_sum_at(at, sl_neg_at(at, slp_take_if(at, counted, x)), (struct sl_reduce_opts){0});
	return total ? sl_div_at(at, sum, total) : sum;
}

/* The mean over samples, of weights w, of minus the logarithms of their probabilities, or the sum. Samples that do not
 * count get no gradient, even if none counts; elements that are not chosen are not multiplied, because they may be
 * infinite. */
static sl_tensor *entropy(const char *at, sl_tensor *x, sl_tensor *labels, const struct sl_cross_entropy_opts *o)
{
	if (!x) return NULL;
	sl_shape s = sl_tensor_shape(x), row = s;
	int64_t classes = s.dim[s.ndim - 1];
	row.dim[s.ndim - 1] = 1;
	sl_tensor *kept = are_kept(at, labels, o), *counted = sl_cast_at(at, kept, sl_tensor_dtype(x)), *w = counted;
	if (!counted) return NULL;
	if (o->ignore) { /* the logits of samples that do not count may be anything, even NaN */
		labels = sl_mul_at(at, labels, sl_cast_at(at, kept, sl_tensor_dtype(labels)));
		x = slp_take_if(at, sl_reshape_at(at, counted, row), x);
	}
	if (o->weights) {
		struct sl_make make = {.dtype = sl_tensor_dtype(x)};
		sl_tensor *chosen = sl_mul_at(at, sl_one_hot_at(at, labels, classes, make), o->weights);
		w = sl_mul_at(at, w, sum_of_last(at, chosen));
	}
	sl_tensor *total = o->sum ? NULL : sl_sum_at(at, w, (struct sl_reduce_opts){0});
	sl_tensor *loss = over(at, sl_mul_at(at, log_probabilities(at, x, labels), w), counted, total);
	if (o->label_smoothing == 0) return loss;
	sl_tensor *logp = sl_log_softmax_at(at, x, -1); /* the same for all classes */
	sl_tensor *all = sum_of_last(at, o->weights ? sl_mul_at(at, logp, o->weights) : logp);
	sl_tensor *smooth = sl_mul_scalar_at(at, over(at, all, counted, total), o->label_smoothing / (double)classes);
	return sl_add_at(at, sl_mul_scalar_at(at, loss, 1 - o->label_smoothing), smooth);
}

/* The cross entropy of a classifier, a scalar: minus the logarithm of the softmax probability of the right class,
 * averaged over all samples with the weights of their classes.  logits (n, classes, …), float: classes are axis 1, also
 * for sequences; labels (n, …), int32 or int64.  With .ignore, samples whose label is ignore_index do not count: their
 * gradient is 0.  Other labels that are no class are errors, as in sl_softmax_cross_entropy, which reports them while it
 * runs; on a GPU the loss is NaN.  .sum returns the sum instead of the mean.  If the weights add up to 0, the mean is NaN,
 * and so are the gradients of samples that count.  As torch.nn.functional.cross_entropy.  SL_ESHAPE, SL_EDTYPE: arguments
 * do not match; SL_EINVAL: a label_smoothing outside [0, 1], .ignore_index without .ignore.
 *
 *     loss = sl_cross_entropy(scores, tokens, .ignore = true, .ignore_index = -100, .label_smoothing = 0.1); */
sl_tensor *sl_cross_entropy_at(const char *at, sl_tensor *logits, sl_tensor *labels, struct sl_cross_entropy_opts opts)
{
	const char *me = "sl_cross_entropy";
	SLP_FUNCTION(me, at);
	if (!slp_shape_given(at, me, "logits", logits) || !slp_given(at, me, "labels", labels)) return NULL;
	sl_shape s = sl_tensor_shape(logits);
	if (s.ndim < 2) return slp_call_fail(at, me, SL_ESHAPE, "logits must have samples and classes");
	if (!(opts.label_smoothing >= 0 && opts.label_smoothing <= 1))
		return slp_call_fail(at, me, SL_EINVAL, "label_smoothing %g is not in [0, 1]", opts.label_smoothing);
	if (opts.ignore_index && !opts.ignore)
		return slp_call_fail(at, me, SL_EINVAL, "ignore_index is %lld without .ignore",
		                     (long long)opts.ignore_index);
	if (opts.weights && !slp_one_type(at, me, "logits", logits, "weights", opts.weights)) return NULL;
	if (!labels_fit(at, me, s, labels, opts.weights)) return NULL;
	sl_tensor *x = classes_last(at, logits);
	if (opts.weights || opts.ignore || opts.label_smoothing > 0) {
		opts.weights = slp_widened(at, opts.weights);
		sl_tensor *loss = entropy(at, slp_widened(at, x), labels, &opts);
		return SLP_RETURN(slp_narrowed(at, loss, logits));
	}
	x = sl_reshape_at(at, x, SL_SHAPE(-1, s.dim[1]));
	sl_tensor *losses = sl_softmax_cross_entropy_at(at, x, sl_reshape_at(at, labels, SL_SHAPE(-1)));
	return SLP_RETURN((opts.sum ? sl_sum_at : sl_mean_at)(at, losses, (struct sl_reduce_opts){0}));
}

static bool broadcasts(const char *at, const char *me, sl_tensor *logs, sl_tensor *target)
{
	sl_shape a = sl_tensor_shape(logs), b = sl_tensor_shape(target), all;
	char text[2][128];
	if (a.ndim < 0 || b.ndim < 0 || slp_broadcast(a, b, &all)) return true;
	slp_call_fail(at, me, SL_ESHAPE, "log_probabilities %s and target %s do not fit", sl_shape_string(a, text[0]),
	              sl_shape_string(b, text[1]));
	return false;
}

/* The divergence of probabilities from a target, element by element: target (log(target) - log_probabilities), 0 where
 * the target is 0; shapes are broadcast.  As torch.nn.functional.kl_div with reduction "none"; the caller takes sums
 * and means.
 *
 *     loss = sl_mean(sl_sum(sl_kl_div(sl_log_softmax(x, 1), p), SL_AXES(1))); */
sl_tensor *sl_kl_div_at(const char *at, sl_tensor *log_probabilities, sl_tensor *target)
{
	const char *me = "sl_kl_div";
	SLP_FUNCTION(me, at);
	if (!slp_given(at, me, "log_probabilities", log_probabilities) || !slp_given(at, me, "target", target) ||
	    !slp_one_type(at, me, "log_probabilities", log_probabilities, "target", target))
		return NULL;
	if (!broadcasts(at, me, log_probabilities, target)) return NULL;
	sl_tensor *p = slp_widened(at, target), *zero = p ? sl_eq_scalar_at(at, sl_detach_at(at, p), 0) : NULL;
	sl_tensor *logs = sl_log_at(at, sl_add_at(at, p, zero));
	sl_tensor *loss = sl_mul_at(at, p, sl_sub_at(at, logs, slp_widened(at, log_probabilities)));
	return SLP_RETURN(slp_narrowed(at, loss, log_probabilities));
}

/* x over its length along the axis: products of these do not overflow. */
static sl_tensor *unit(const char *at, sl_tensor *x, int axis)
{
	sl_tensor *n = sl_norm_at(at, x, (struct sl_reduce_opts){.axes = &axis, .naxes = 1, .keepdims = true});
	return sl_div_at(at, x, sl_maximum_scalar_at(at, n, 1e-8));
}

/* x, repeated along the axis to the length of the whole. */
static sl_tensor *as_long(const char *at, sl_tensor *x, sl_shape whole, int axis)
{
	sl_shape s = sl_tensor_shape(x);
	bool same = s.ndim + axis >= 0 && s.dim[s.ndim + axis] == whole.dim[whole.ndim + axis];
	return same ? x : sl_broadcast_to_at(at, x, whole);
}

/* The similarity of a and b in float32 or float64. */
static sl_tensor *cosine(const char *at, sl_tensor *a, sl_tensor *b, int axis)
{
	sl_shape x = a ? sl_tensor_shape(a) : SL_SCALAR, y = b ? sl_tensor_shape(b) : SL_SCALAR, all;
	bool known = x.ndim >= 0 && y.ndim >= 0 && slp_broadcast(x, y, &all) && slp_axis(&axis, all.ndim);
	if (known) {
		axis -= all.ndim;
		a = as_long(at, a, all, axis), b = as_long(at, b, all, axis);
	}
	sl_tensor *products = sl_mul_at(at, unit(at, a, axis), unit(at, b, axis));
	return sl_sum_at(at, products, (struct sl_reduce_opts){.axes = &axis, .naxes = 1});
}

static bool pair_given(const char *at, const char *me, sl_tensor *a, sl_tensor *b)
{
	return slp_given(at, me, "a", a) && slp_given(at, me, "b", b) && slp_one_type(at, me, "a", a, "b", b);
}

/* The cosine of the angle between a and b along an axis, which is removed; shapes are broadcast. Lengths below 1e-8
 * count as 1e-8.  As torch.nn.functional.cosine_similarity. */
sl_tensor *sl_cosine_similarity_at(const char *at, sl_tensor *a, sl_tensor *b, int axis)
{
	SLP_FUNCTION("sl_cosine_similarity", at);
	if (!pair_given(at, "sl_cosine_similarity", a, b)) return NULL;
	return SLP_RETURN(slp_narrowed(at, cosine(at, slp_widened(at, a), slp_widened(at, b), axis), a));
}

/* The loss of pairs (n, d), a scalar: the mean over pairs of 1 - cosine where the target (n) is 1, and of max(0, cosine
 * - margin) where it is -1.  As torch.nn.functional.cosine_embedding_loss.  SL_EINVAL: a margin that is not finite. */
sl_tensor *sl_cosine_embedding_loss_at(const char *at, sl_tensor *a, sl_tensor *b, sl_tensor *target, double margin)
{
	const char *me = "sl_cosine_embedding_loss";
	SLP_FUNCTION(me, at);
	if (!slp_is_figure(at, me, "margin", margin) || !pair_given(at, me, a, b)) return NULL;
	sl_tensor *c = cosine(at, slp_widened(at, a), slp_widened(at, b), -1);
	sl_tensor *apart = sl_relu_at(at, sl_sub_scalar_at(at, c, margin));
	sl_tensor *losses = sl_where_at(at, sl_gt_scalar_at(at, target, 0), sl_rsub_scalar_at(at, c, 1), apart);
	return SLP_RETURN(slp_narrowed(at, sl_mean_at(at, losses, (struct sl_reduce_opts){0}), a));
}
