/* ONNX operators, computed: normalisation, softmax, dropout. */
#include <float.h>
#include <math.h>

#include "onnx/model/call.h"
#include "starling/arithmetic.h"
#include "starling/autograd.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* ONNX takes 0 literally, our functions as the default; onnxruntime's "Skip…" have a different default. */
static double epsilon(struct slp_onnx_call *c)
{
	double v = slp_onnx_attr_float(c, "epsilon", strncmp(c->op->name, "Skip", 4) ? 1e-5 : 1e-12);
	return v == 0 ? DBL_MIN : v;
}

static sl_tensor *numbers(struct slp_onnx_call *c, sl_tensor *x, int64_t n, double value)
{
	return sl_full_at(c->at, SL_SHAPE(n), value, (struct sl_make){sl_tensor_dtype(x), sl_tensor_device(x)});
}

/* The statistics of the batch, as columns: the mean, or with one the biased variance. */
static sl_tensor *of_batch(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *mean)
{
	static const int axes[SL_MAX_NDIM] = {0, 2, 3, 4, 5, 6, 7};
	struct sl_reduce_opts over = {axes, sl_tensor_shape(x).ndim - 1, true};
	if (mean) x = sl_square_at(c->at, sl_sub_at(c->at, x, mean));
	return x ? sl_mean_at(c->at, x, over) : NULL;
}

/* running momentum + batch (1 - momentum) */
static sl_tensor *mixed(struct slp_onnx_call *c, sl_tensor *running, sl_tensor *batch, double momentum)
{
	sl_tensor *a = sl_mul_scalar_at(c->at, running, momentum);
	sl_tensor *b = sl_mul_scalar_at(c->at, sl_reshape_at(c->at, batch, SL_SHAPE(-1)), 1 - momentum);
	return a && b ? sl_add_at(c->at, a, b) : NULL;
}

/* A node that gives the next statistics, too: outside of training the file's are not changed in place. */
static void norm_by_batch(struct slp_onnx_call *c, sl_tensor *const *p, struct sl_batch_norm_opts o)
{
	sl_tensor *mean = of_batch(c, p[0], NULL), *variance = mean ? of_batch(c, p[0], mean) : NULL;
	if (!variance) {
		c->failed = true; /* and recorded */
		return;
	}
	sl_tensor *rows[2] = {sl_reshape_at(c->at, mean, SL_SHAPE(-1)), sl_reshape_at(c->at, variance, SL_SHAPE(-1))};
	o.use_global_stats = true;
	slp_onnx_set_output(c, 0, sl_batch_norm_at(c->at, p[0], p[1], p[2], rows[0], rows[1], o));
	slp_onnx_set_output(c, 1, mixed(c, p[3], mean, o.momentum));
	if (c->nout > 2) slp_onnx_set_output(c, 2, mixed(c, p[4], variance, o.momentum));
}

/* With the statistics that the file has, in training too, unless it says otherwise. */
void slp_onnx_import_batch_norm(struct slp_onnx_call *c)
{
	bool training = slp_onnx_attr_int(c, "training_mode", 0) != 0;
	double momentum = slp_onnx_attr_float(c, "momentum", 0.9);
	struct sl_batch_norm_opts o = {
	        .eps = epsilon(c), .momentum = momentum == 0 ? DBL_MIN : momentum, .use_global_stats = !training};
	sl_tensor *p[5];
	if (slp_onnx_attr_int(c, "spatial", 1) != 1)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "attribute spatial must be 1");
	for (int i = 0; i < 5; i++) p[i] = slp_onnx_tensor(c, i);
	if (c->failed) return;
	if (training && c->nout > 1 && !sl_is_training()) norm_by_batch(c, p, o);
	else slp_onnx_set_output(c, 0, sl_batch_norm_at(c->at, p[0], p[1], p[2], p[3], p[4], o));
}

void slp_onnx_import_instance_norm(struct slp_onnx_call *c)
{
	struct sl_layer_norm_opts o = {.eps = epsilon(c)};
	sl_tensor *x = slp_onnx_tensor(c, 0), *scale = slp_onnx_tensor(c, 1), *bias = slp_onnx_tensor(c, 2);
	if (!c->failed)
		slp_onnx_set_output(c, 0, x && scale && bias ? sl_instance_norm_at(c->at, x, scale, bias, o) : NULL);
}

/* Over the last axes, from the given one on, as one. */
static sl_shape last_axes(struct slp_onnx_call *c, int64_t otherwise, int64_t *n)
{
	sl_shape x = slp_onnx_shape(c, 0);
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", otherwise), x.ndim);
	*n = 1;
	for (int i = axis; i < x.ndim; i++) *n *= x.dim[i];
	x.ndim = axis;
	if (axis == SL_MAX_NDIM) return x;
	x.dim[x.ndim++] = *n;
	return x;
}

/* The mean over the last axes, and one over the standard deviation, with axes of one element for those. */
static void set_statistics(struct slp_onnx_call *c, sl_tensor *x, sl_shape whole, int axis, double eps)
{
	int last = sl_tensor_shape(x).ndim - 1;
	struct sl_reduce_opts o = {.axes = &last, .naxes = 1, .keepdims = true};
	for (int i = axis; i < whole.ndim; i++) whole.dim[i] = 1;
	sl_tensor *mean = sl_mean_at(c->at, x, o), *centred = mean ? sl_sub_at(c->at, x, mean) : NULL;
	sl_tensor *variance = centred ? sl_mean_at(c->at, sl_square_at(c->at, centred), o) : NULL;
	sl_tensor *scale = variance ? sl_rsqrt_at(c->at, sl_add_scalar_at(c->at, variance, eps)) : NULL;
	slp_onnx_set_output(c, 1, scale ? sl_reshape_at(c->at, mean, whole) : NULL);
	if (c->nout > 2 && !c->failed) slp_onnx_set_output(c, 2, sl_reshape_at(c->at, scale, whole));
}

void slp_onnx_import_layer_norm(struct slp_onnx_call *c)
{
	struct sl_layer_norm_opts o = {.eps = epsilon(c)};
	sl_shape whole = slp_onnx_shape(c, 0), flat;
	int64_t n;
	flat = last_axes(c, -1, &n);
	if (c->failed) return;
	sl_tensor *x = slp_onnx_tensor(c, 0), *scale = slp_onnx_tensor(c, 1), *bias = slp_onnx_tensor(c, 2);
	if (scale && sl_tensor_size(scale) != n) {
		slp_onnx_call_fail(c, SL_ESHAPE, "the scale has %lld elements, %lld needed",
		                   (long long)sl_tensor_size(scale), (long long)n);
		return;
	}
	if (x && !bias) bias = numbers(c, x, n, 0);
	if (flat.ndim != whole.ndim) x = sl_reshape_at(c->at, x, flat);
	scale = sl_reshape_at(c->at, scale, SL_SHAPE(n)), bias = sl_reshape_at(c->at, bias, SL_SHAPE(n));
	sl_tensor *y = x && scale && bias ? sl_layer_norm_at(c->at, x, scale, bias, o) : NULL;
	slp_onnx_set_output(c, 0, y && flat.ndim != whole.ndim ? sl_reshape_at(c->at, y, whole) : y);
	if (c->nout > 1 && !c->failed) set_statistics(c, x, whole, flat.ndim - 1, o.eps);
}

/* One number a group until operator set 20, then one a channel. */
void slp_onnx_import_group_norm(struct slp_onnx_call *c)
{
	struct sl_layer_norm_opts o = {.eps = epsilon(c)};
	int groups = slp_onnx_attr_small(c, "num_groups", 0, 1, INT32_MAX);
	sl_shape x = slp_onnx_shape(c, 0);
	sl_tensor *t = slp_onnx_tensor(c, 0), *p[2] = {slp_onnx_tensor(c, 1), slp_onnx_tensor(c, 2)};
	for (int i = 0; i < 2 && x.ndim > 1 && p[i]; i++)
		if (sl_tensor_size(p[i]) != x.dim[1] && sl_tensor_size(p[i]) == groups)
			p[i] = sl_repeat_at(c->at, p[i], 0, x.dim[1] / groups);
	if (!c->failed)
		slp_onnx_set_output(c, 0, t && p[0] && p[1] ? sl_group_norm_at(c->at, t, groups, p[0], p[1], o) : NULL);
}

void slp_onnx_import_rms_norm(struct slp_onnx_call *c)
{
	struct sl_rms_norm_opts o = {.eps = epsilon(c)};
	sl_shape whole = slp_onnx_shape(c, 0), flat;
	int64_t n;
	flat = last_axes(c, -1, &n);
	if (c->failed) return;
	sl_tensor *scale = sl_reshape_at(c->at, slp_onnx_tensor(c, 1), SL_SHAPE(-1));
	sl_tensor *x = sl_reshape_at(c->at, slp_onnx_tensor(c, 0), flat),
	          *y = x && scale ? sl_rms_norm_at(c->at, x, scale, o) : NULL;
	slp_onnx_set_output(c, 0, y ? sl_reshape_at(c->at, y, whole) : NULL);
}

void slp_onnx_import_lp_norm(struct slp_onnx_call *c)
{
	int p = slp_onnx_attr_small(c, "p", 2, 1, 2),
	    axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", -1), slp_onnx_shape(c, 0).ndim);
	struct sl_reduce_opts o = {.axes = &axis, .naxes = 1, .keepdims = true};
	sl_tensor *x = slp_onnx_tensor(c, 0);
	if (c->failed) return;
	sl_tensor *norm = p == 2 ? sl_norm_at(c->at, x, o) : sl_sum_at(c->at, sl_abs_at(c->at, x), o);
	sl_tensor *nothing = norm ? sl_eq_scalar_at(c->at, norm, 0) : NULL; /* zeros stay zeros */
	norm = nothing ? sl_add_at(c->at, norm, nothing) : NULL;
	slp_onnx_set_output(c, 0, norm ? sl_div_at(c->at, x, norm) : NULL);
}

void slp_onnx_import_mean_variance(struct slp_onnx_call *c)
{
	int64_t list[SL_MAX_NDIM] = {0, 2, 3};
	int axes[SL_MAX_NDIM], n = slp_onnx_attr_ints(c, "axes", list, SL_MAX_NDIM);
	if (n < 0) n = 3;
	for (int i = 0; i < n; i++) axes[i] = slp_onnx_axis(c, list[i], slp_onnx_shape(c, 0).ndim);
	if (c->failed) return;
	struct sl_reduce_opts o = {.axes = axes, .naxes = n, .keepdims = true};
	sl_tensor *x = slp_onnx_tensor(c, 0), *y = sl_sub_at(c->at, x, sl_mean_at(c->at, x, o));
	sl_tensor *deviation = sl_sqrt_at(c->at, sl_mean_at(c->at, sl_square_at(c->at, y), o));
	slp_onnx_set_output(c, 0, sl_div_at(c->at, y, sl_add_scalar_at(c->at, deviation, 1e-9)));
}

/* Sums of squares over neighbouring channels: a mean over windows, times their size. */
void slp_onnx_import_lrn(struct slp_onnx_call *c)
{
	double alpha = slp_onnx_attr_float(c, "alpha", 1e-4), beta = slp_onnx_attr_float(c, "beta", 0.75);
	double bias = slp_onnx_attr_float(c, "bias", 1);
	int size = slp_onnx_attr_small(c, "size", 0, 1, INT16_MAX);
	sl_shape s = slp_onnx_shape(c, 0);
	if (!c->failed && s.ndim < 2) slp_onnx_call_fail(c, SL_ESHAPE, "the input has no channels");
	if (c->failed) return;
	sl_tensor *x = slp_onnx_tensor(c, 0);
	sl_tensor *y = sl_reshape_at(c->at, sl_square_at(c->at, x), SL_SHAPE(s.dim[0], 1, s.dim[1], -1));
	y = sl_pad_at(c->at, y, 2, (size - 1) / 2, size / 2, (struct sl_pad_opts){0});
	y = sl_pool2d_at(c->at, y, (struct sl_pool2d_opts){.type = SL_POOL_AVG, .kernel = {size, 1}, .stride = {1, 1}});
	y = sl_add_scalar_at(c->at, sl_mul_scalar_at(c->at, y, alpha), bias);
	y = sl_reshape_at(c->at, sl_pow_scalar_at(c->at, y, beta), s);
	slp_onnx_set_output(c, 0, sl_div_at(c->at, x, y));
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* Until operator set 12 over all axes from the given one on, as one. */
void slp_onnx_import_softmax(struct slp_onnx_call *c)
{
	sl_tensor *(*softmax)(const char *, sl_tensor *, int) =
	        c->op->name[0] == 'L' ? sl_log_softmax_at : sl_softmax_at;
	bool old = c->opset < 13;
	sl_shape x = slp_onnx_shape(c, 0), flat = {.ndim = 2, .dim = {1, 1}};
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", old ? 1 : -1), x.ndim);
	if (c->failed) return;
	sl_tensor *t = slp_onnx_tensor(c, 0);
	if (!old || axis == x.ndim - 1) {
		slp_onnx_set_output(c, 0, softmax(c->at, t, axis));
		return;
	}
	for (int i = 0; i < x.ndim; i++) flat.dim[i >= axis] *= x.dim[i];
	slp_onnx_set_output(c, 0, sl_reshape_at(c->at, softmax(c->at, sl_reshape_at(c->at, t, flat), 1), x));
}

/* 1 where the first of the largest is, 0 elsewhere; until operator set 12 over all axes from the given one on, as one. */
void slp_onnx_import_hardmax(struct slp_onnx_call *c)
{
	bool old = c->opset < 13;
	sl_shape x = slp_onnx_shape(c, 0), flat = {.ndim = 2, .dim = {1, 1}};
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", old ? 1 : -1), x.ndim);
	if (!c->failed && !sl_shape_size(x)) slp_onnx_set_output_value(c, 0, c->in[0]);
	if (c->failed || !sl_shape_size(x)) return;
	for (int i = 0; i < x.ndim; i++) flat.dim[i >= axis] *= x.dim[i];
	struct slp_onnx_value v = c->in[0];
	if (old) v = slp_onnx_reshaped(c, v, flat);
	else v = slp_onnx_axis_moved(c, v, axis, x.ndim - 1);
	sl_tensor *t = slp_onnx_present(v) ? slp_onnx_as_tensor(c, v) : NULL;
	int last = old ? 1 : x.ndim - 1;
	t = t ? sl_one_hot_at(c->at, sl_cast_at(c->at, sl_argmax_at(c->at, t, last), SL_INT32),
	                      sl_tensor_shape(t).dim[last], (struct sl_make){.dtype = sl_tensor_dtype(t)})
	      : NULL;
	v = (struct slp_onnx_value){.t = t};
	if (t) v = old ? slp_onnx_reshaped(c, v, x) : slp_onnx_axis_moved(c, v, x.ndim - 1, axis);
	slp_onnx_set_output_value(c, 0, v);
}

/* ---- dropout ----------------------------------------------------------------------------------------------------- */

/* Also where Starling does not train: the file says so. */
static void drop_some(struct slp_onnx_call *c, double p)
{
	sl_tensor *x = slp_onnx_tensor(c, 0);
	if (x && !(p >= 0 && p < 1)) slp_onnx_call_fail(c, SL_EINVAL, "ratio %g is not in [0, 1)", p);
	if (!x || c->failed) {
		c->failed = true; /* and recorded */
		return;
	}
	struct sl_make make = {SL_FLOAT32, sl_tensor_device(x)};
	sl_tensor *left = sl_bernoulli_at(c->at, sl_full_at(c->at, sl_tensor_shape(x), 1 - p, make));
	sl_tensor *kept = left ? sl_mul_at(c->at, x, sl_cast_at(c->at, left, sl_tensor_dtype(x))) : NULL;
	slp_onnx_set_output(c, 0, kept ? sl_mul_scalar_at(c->at, kept, 1 / (1 - p)) : NULL);
	if (c->nout > 1) slp_onnx_set_output(c, 1, left ? sl_cast_at(c->at, left, SL_BOOL) : NULL);
}

void slp_onnx_import_dropout(struct slp_onnx_call *c)
{
	bool training = slp_onnx_has(c, 2) && slp_onnx_number_in(c, 2, NULL, 0) != 0;
	double p = training ? slp_onnx_number_in(c, 1, NULL, 0.5) : 0;
	if (p != 0) {
		drop_some(c, p);
		return;
	}
	slp_onnx_set_output_value(c, 0, c->in[0]);
	if (c->nout < 2) return;
	sl_tensor *x = slp_onnx_tensor(c, 0);
	slp_onnx_set_output(c, 1, sl_cast_at(c->at, sl_eq_at(c->at, x, x), SL_BOOL));
}

void slp_onnx_import_identity(struct slp_onnx_call *c)
{
	slp_onnx_set_output_value(c, 0, c->in[0]);
}
