/* MXNet's operators, computed: layers, softmax. */
#include <float.h>

#include "as_index.h"
#include "mxnet/import_operators.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/autograd.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* ---- with parameters --------------------------------------------------------------------------------------------- */

/* Whether there is an input for the bias, as the attribute says. */
static bool has_bias(struct slp_mx_call *c)
{
	bool bias = !slp_mx_bool(c, "no_bias", false);
	if (c->nin != (bias ? 3 : 2))
		slp_mx_fail(c, SL_EFORMAT, "has %d inputs, but attribute no_bias is %s", c->nin,
		            bias ? "False" : "True");
	return bias && c->nin == 3;
}

/* A parameter's first dim must be that of the attribute. */
static void check_first(struct slp_mx_call *c, int i, const char *name)
{
	int64_t n = slp_mx_need(c, name, 1, INT32_MAX);
	sl_shape w = slp_mx_shape(c, i);
	char text[128];
	if (!c->failed && w.ndim >= 0 && (w.ndim < 1 || w.dim[0] != n))
		slp_mx_fail(c, SL_ESHAPE, "attribute %s is %lld, but the parameter %d has shape %s", name, (long long)n,
		            i, sl_shape_string(w, text));
}

void slp_mx_import_dense(struct slp_mx_call *c)
{
	bool flatten = slp_mx_bool(c, "flatten", true), bias = has_bias(c);
	check_first(c, 1, "num_hidden");
	if (!slp_mx_go(c)) return;
	sl_tensor *x = c->in[0];
	if (flatten && sl_tensor_shape(x).ndim != 2) x = sl_flatten_at(c->at, x);
	c->out[0] = sl_linear_at(c->at, x, c->in[1], bias ? c->in[2] : NULL, (struct sl_linear_opts){.tw = true});
}

/* Two numbers, for height and width. */
static void pair(struct slp_mx_call *c, const char *name, int otherwise, int v[2])
{
	int64_t t[SLP_MX_TUPLE] = {0};
	int n = slp_mx_tuple(c, name, t);
	if (n <= 0) t[0] = t[1] = otherwise, n = 2;
	if (n != 2)
		slp_mx_fail(c, SL_EUNSUPPORTED, "attribute %s has %d numbers, only two dimensions are supported", name,
		            n);
	for (int i = 0; i < 2 && !c->failed; i++) {
		if (t[i] < 0 || t[i] > INT32_MAX)
			slp_mx_fail(c, SL_EFORMAT, "attribute %s has the number %lld", name, (long long)t[i]);
		v[i] = (int)t[i];
	}
}

static void check_kernel(struct slp_mx_call *c)
{
	int kernel[2] = {0, 0};
	sl_shape w = slp_mx_shape(c, 1);
	pair(c, "kernel", 0, kernel);
	if (!c->failed && w.ndim >= 0 && (w.ndim != 4 || w.dim[2] != kernel[0] || w.dim[3] != kernel[1]))
		slp_mx_fail(c, SL_ESHAPE, "attribute kernel is (%d, %d), but the weight has a different one", kernel[0],
		            kernel[1]);
}

void slp_mx_import_conv(struct slp_mx_call *c)
{
	struct sl_conv2d_opts o = {0};
	bool bias = has_bias(c);
	check_first(c, 1, "num_filter");
	check_kernel(c);
	slp_mx_only(c, "layout", "NCHW");
	pair(c, "stride", 1, o.stride);
	pair(c, "pad", 0, o.pad);
	pair(c, "dilate", 1, o.dilation);
	o.groups = slp_mx_text(c, "num_group", NULL) ? (int)slp_mx_need(c, "num_group", 1, INT32_MAX) : 1;
	if (slp_mx_go(c)) c->out[0] = sl_conv2d_at(c->at, c->in[0], c->in[1], bias ? c->in[2] : NULL, o);
}

/* 0 is a value in MXNet, and the default in our functions. */
static double not_zero(double v)
{
	return v == 0 ? DBL_MIN : v;
}

void slp_mx_import_batch_norm(struct slp_mx_call *c)
{
	struct sl_batch_norm_opts o = {.eps = not_zero(slp_mx_double(c, "eps", 1e-3)),
	                               .momentum = not_zero(slp_mx_double(c, "momentum", 0.9))};
	bool fixed = slp_mx_bool(c, "use_global_stats", false);
	slp_mx_only(c, "axis", "1");
	slp_mx_only(c, "output_mean_var", "False");
	if (slp_mx_bool(c, "fix_gamma", true)) c->ones = SLP_IN(1);
	if (!slp_mx_go(c)) return;
	sl_tensor *const *p = c->in;
	if (fixed)
		SL_INFERENCE
			c->out[0] = sl_batch_norm_at(c->at, p[0], p[1], p[2], p[3], p[4], o);
	else c->out[0] = sl_batch_norm_at(c->at, p[0], p[1], p[2], p[3], p[4], o);
}

void slp_mx_import_layer_norm(struct slp_mx_call *c)
{
	struct sl_layer_norm_opts o = {.eps = not_zero(slp_mx_double(c, "eps", 1e-5))};
	int64_t axis = slp_mx_int(c, "axis", -1);
	slp_mx_only(c, "output_mean_var", "False");
	if (!slp_mx_go(c)) return;
	if (axis != -1 && axis != slp_mx_known(c, 0).ndim - 1)
		slp_mx_fail(c, SL_EUNSUPPORTED, "axis %lld: only the last axis is supported", (long long)axis);
	if (!c->failed) c->out[0] = sl_layer_norm_at(c->at, c->in[0], c->in[1], c->in[2], o);
}

void slp_mx_import_embedding(struct slp_mx_call *c)
{
	check_first(c, 1, "input_dim");
	if (slp_mx_go(c)) c->out[0] = sl_gather_at(c->at, c->in[1], slp_numbers_as_index(c->at, c->in[0]));
}

void slp_mx_import_take(struct slp_mx_call *c)
{
	slp_mx_only(c, "axis", "0");
	if (slp_mx_go(c)) c->out[0] = sl_gather_at(c->at, c->in[0], slp_numbers_as_index(c->at, c->in[1]));
}

/* ---- without ----------------------------------------------------------------------------------------------------- */

/* MXNet's "full" convention may add a window that lies in the border alone; ours does not. */
static void check_full(struct slp_mx_call *c, const struct sl_pool2d_opts *o)
{
	sl_shape x = slp_mx_shape(c, 0);
	for (int i = 0; i < 2 && x.ndim == 4; i++) {
		int64_t size = x.dim[2 + i], room = size + 2 * o->pad[i] - o->kernel[i], step = o->stride[i];
		if (size < 0 || step < 1 || room < 0 || room % step == 0) continue;
		if ((room / step + 1) * step >= size + o->pad[i])
			slp_mx_fail(c, SL_EUNSUPPORTED, "its last window lies in the padding only");
	}
}

void slp_mx_import_pool(struct slp_mx_call *c)
{
	struct sl_pool2d_opts o = {.global = slp_mx_bool(c, "global_pool", false),
	                           .ceil = slp_mx_is(c, "pooling_convention", "valid", "full"),
	                           .exclude_pad = !slp_mx_bool(c, "count_include_pad", true)};
	if (slp_mx_is(c, "pool_type", "max", "avg")) o.type = SL_POOL_AVG;
	else slp_mx_only(c, "pool_type", "max");
	slp_mx_only(c, "layout", "NCHW");
	if (!o.ceil) slp_mx_only(c, "pooling_convention", "valid");
	o.exclude_pad &= o.type == SL_POOL_AVG && !o.global; /* ignored elsewhere in MXNet */
	o.ceil &= !o.global;
	if (!o.global) {
		pair(c, "kernel", 0, o.kernel);
		pair(c, "stride", 1, o.stride);
		pair(c, "pad", 0, o.pad);
		if (!c->failed && (!o.kernel[0] || !o.kernel[1])) slp_mx_fail(c, SL_EFORMAT, "has no attribute kernel");
	}
	if (slp_mx_go(c) && o.ceil && !o.global) check_full(c, &o);
	if (slp_mx_go(c)) c->out[0] = sl_pool2d_at(c->at, c->in[0], o);
}

void slp_mx_import_dropout(struct slp_mx_call *c)
{
	double p = slp_mx_double(c, "p", 0.5);
	int64_t axes[SLP_MX_TUPLE];
	slp_mx_only(c, "mode", "training");
	if (slp_mx_tuple(c, "axes", axes) > 0) slp_mx_fail(c, SL_EUNSUPPORTED, "attribute axes is not supported");
	if (slp_mx_go(c)) c->out[0] = sl_dropout_at(c->at, c->in[0], p);
}

void slp_mx_import_softsign(struct slp_mx_call *c)
{
	if (slp_mx_go(c)) c->out[0] = sl_softsign_at(c->at, c->in[0]);
}

void slp_mx_import_activation(struct slp_mx_call *c)
{
	static const struct {
		const char *name;
		enum sl_activation kind;
	} kinds[] = {{"relu", SL_RELU}, {"sigmoid", SL_SIGMOID}, {"tanh", SL_TANH}, {"softrelu", SL_SOFTPLUS}};
	if (slp_mx_is(c, "act_type", "", "softsign")) {
		slp_mx_import_softsign(c);
		return;
	}
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (!slp_mx_is(c, "act_type", "", kinds[i].name)) continue;
		if (slp_mx_go(c)) c->out[0] = sl_activate_at(c->at, c->in[0], kinds[i].kind);
		return;
	}
	slp_mx_fail(c, SL_EUNSUPPORTED, "there is no activation \"%.60s\"", slp_mx_text(c, "act_type", ""));
}

/* One slope for each channel, in the shape that goes with x. */
static sl_tensor *channel_slopes(struct slp_mx_call *c, sl_tensor *gamma)
{
	sl_shape x = slp_mx_known(c, 0), g = {.ndim = x.ndim};
	for (int i = 0; i < x.ndim; i++) g.dim[i] = 1;
	if (x.ndim > 1) g.dim[1] = sl_tensor_size(gamma);
	return c->failed ? NULL : sl_reshape_at(c->at, gamma, g);
}

void slp_mx_import_leaky(struct slp_mx_call *c)
{
	double slope = slp_mx_double(c, "slope", 0.25);
	bool prelu = slp_mx_is(c, "act_type", "leaky", "prelu"), elu = slp_mx_is(c, "act_type", "leaky", "elu");
	bool selu = slp_mx_is(c, "act_type", "leaky", "selu"), gelu = slp_mx_is(c, "act_type", "leaky", "gelu");
	if (!prelu && !elu && !selu && !gelu) slp_mx_only(c, "act_type", "leaky");
	if (c->nin != 1 + prelu) slp_mx_fail(c, SL_EFORMAT, "has %d inputs", c->nin);
	if (!slp_mx_go(c)) return;
	const double alpha = 1.6732632423543772, lambda = 1.0507009873554805; /* of selu */
	sl_tensor *x = c->in[0];
	if (gelu) {
		c->out[0] = sl_gelu_at(c->at, x);
		return;
	}
	sl_tensor *over = sl_relu_at(c->at, x), *under = sl_minimum_scalar_at(c->at, x, 0);
	if (elu || selu) under = sl_sub_scalar_at(c->at, sl_exp_at(c->at, under), 1);
	under = prelu ? sl_mul_at(c->at, under, channel_slopes(c, c->in[1]))
	              : sl_mul_scalar_at(c->at, under, selu ? alpha : slope);
	sl_tensor *y = sl_add_at(c->at, over, under);
	c->out[0] = selu ? sl_mul_scalar_at(c->at, y, lambda) : y;
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

static void softmax_like(struct slp_mx_call *c, sl_tensor *(*softmax)(const char *, sl_tensor *, int))
{
	int64_t axis = slp_mx_int(c, "axis", -1);
	double t = slp_mx_is(c, "temperature", "None", "None") ? 1 : slp_mx_double(c, "temperature", 1);
	slp_mx_only(c, "use_length", "False");
	if (axis < -SL_MAX_NDIM || axis >= SL_MAX_NDIM)
		slp_mx_fail(c, SL_EFORMAT, "there is no axis %lld", (long long)axis);
	if (!slp_mx_go(c)) return;
	sl_tensor *x = t == 1 ? c->in[0] : sl_div_scalar_at(c->at, c->in[0], t);
	c->out[0] = softmax(c->at, x, (int)axis);
}

void slp_mx_import_softmax(struct slp_mx_call *c)
{
	softmax_like(c, sl_softmax_at);
}

void slp_mx_import_log_softmax(struct slp_mx_call *c)
{
	softmax_like(c, sl_log_softmax_at);
}

/* Over all elements of a row of the batch. */
static sl_tensor *softmax_of_rows(struct slp_mx_call *c, sl_tensor *x)
{
	sl_shape shape = slp_mx_known(c, 0);
	if (c->failed) return NULL;
	if (shape.ndim == 2) return sl_softmax_at(c->at, x, 1);
	return sl_reshape_at(c->at, sl_softmax_at(c->at, sl_flatten_at(c->at, x), 1), shape);
}

void slp_mx_import_softmax_activation(struct slp_mx_call *c)
{
	bool channel = slp_mx_is(c, "mode", "instance", "channel");
	if (!channel) slp_mx_only(c, "mode", "instance");
	if (slp_mx_go(c)) c->out[0] = channel ? sl_softmax_at(c->at, c->in[0], 1) : softmax_of_rows(c, c->in[0]);
}

void slp_mx_import_softmax_output(struct slp_mx_call *c)
{
	bool multi = slp_mx_bool(c, "multi_output", false), preserve = slp_mx_bool(c, "preserve_shape", false);
	if (!slp_mx_go(c)) return;
	if (multi) c->out[0] = sl_softmax_at(c->at, c->in[0], 1);
	else if (preserve) c->out[0] = sl_softmax_at(c->at, c->in[0], -1);
	else c->out[0] = softmax_of_rows(c, c->in[0]);
}
