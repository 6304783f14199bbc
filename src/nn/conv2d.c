/* Convolution and pooling layers, NCHW. */
#include <stdlib.h>

#include "nn/nn.h"
#include "op.h"
#include "options.h"
#include "starling/nn.h"
#include "starling/primitives.h"

/* ---- convolution ------------------------------------------------------------------------------------------------- */

struct conv {
	sl_block base;
	int64_t channels;
	struct sl_conv2d_layer_opts opts;
	sl_param *weight, *bias;
};

/* The weight's shape for images of `channels` channels; -1: unknown. */
static sl_shape weight_shape(const struct conv *c, int64_t in)
{
	return SL_SHAPE(c->channels, in < 0 ? -1 : in / c->opts.groups, c->opts.kernel[0], c->opts.kernel[1]);
}

static enum sl_status fit(const char *at, const struct conv *c, sl_shape x)
{
	char text[128];
	if (x.ndim < 0) return SL_OK;
	if (x.ndim == 4 && x.dim[1] % c->opts.groups == 0)
		return sl_param_fit_at(at, c->weight, weight_shape(c, x.dim[1]));
	slp_call_fail(at, "sl_forward", SL_ESHAPE,
	              "%s takes (n, channels, height, width), channels in %d groups, not %s", sl_block_name(&c->base),
	              c->opts.groups, sl_shape_string(x, text));
	return SL_ESHAPE;
}

static sl_tensor *conv_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct conv *c = (struct conv *)self;
	const struct sl_conv2d_layer_opts *o = &c->opts;
	const char *at = slp_forward_call_site();
	sl_tensor *x = slp_layer_input(self, in, nin), *w, *b = NULL;
	if (!x || fit(at, c, sl_tensor_shape(x)) != SL_OK) return NULL;
	w = sl_param_use_at(at, c->weight, x);
	if (c->bias) b = sl_param_use_at(at, c->bias, x);
	if (!w || (c->bias && !b)) return NULL;
	struct sl_conv2d_opts conv = {.stride = {o->stride[0], o->stride[1]},
	                              .pad = {o->pad[0], o->pad[1]},
	                              .dilation = {o->dilation[0], o->dilation[1]},
	                              .groups = o->groups};
	return slp_layer_activate(sl_conv2d_at(at, x, w, b, conv), o->activation);
}

static enum sl_status check_conv(const char *at, int64_t channels, struct sl_conv2d_layer_opts *o)
{
	if (o->kernel[1] == 0) o->kernel[1] = o->kernel[0];
	if (o->groups == 0) o->groups = 1;
	const char *wrong = NULL;
	if (channels < 1 || o->in_channels < 0) wrong = "channels must be positive";
	else if (o->kernel[0] < 1 || o->kernel[1] < 1) wrong = ".kernel must be given, and positive";
	else if (o->groups < 1 || channels % o->groups || o->in_channels % o->groups)
		wrong = "groups must divide the channels";
	else if (o->no_bias && o->bias_init.kind != SL_INIT_DEFAULT) wrong = SLP_NO_BIAS;
	if (wrong) slp_call_fail(at, "sl_conv2d_layer", SL_EINVAL, "%s", wrong);
	return wrong ? SL_EINVAL : SL_OK;
}

/* A convolution with its parameters: weight (channels, in_channels / groups, kernel height, kernel width) and bias
 * (channels), zeros at first; activation(conv2d(x, weight) + bias), x (n, in_channels, height, width).  .stride, .pad,
 * .dilation as in sl_conv2d.  The number of channels of x comes from the first x, or from .in_channels.  SL_EINVAL: no
 * kernel, channels that groups do not divide, .bias_init with .no_bias.
 *
 *     sl_block *c = sl_conv2d_layer(20, .kernel = {5}, .activation = SL_RELU); */
sl_block *sl_conv2d_layer_at(const char *at, int64_t channels, struct sl_conv2d_layer_opts opts)
{
	SLP_CALL("sl_conv2d_layer", at);
	if (!SLP_OPTIONS(sl_conv2d_layer_opts, at, "sl_conv2d_layer", &opts)) return NULL;
	if (check_conv(at, channels, &opts) != SL_OK) return NULL;
	struct conv *c = slp_layer_new(at, sizeof *c, "Conv2D", "conv", conv_forward);
	if (!c) return NULL;
	c->channels = channels;
	c->opts = opts;
	c->weight = sl_block_param_at(at, &c->base, "weight", weight_shape(c, opts.in_channels ? opts.in_channels : -1),
	                              (struct sl_param_opts){.init = opts.weight_init});
	if (c->weight && !opts.no_bias)
		c->bias =
		        sl_block_param_at(at, &c->base, "bias", SL_SHAPE(channels),
		                          (struct sl_param_opts){.init = slp_init_or(opts.bias_init, sl_zeros_init())});
	if (c->weight && (c->bias || opts.no_bias)) return &c->base;
	sl_block_free(&c->base);
	return NULL;
}

/* ---- pooling ----------------------------------------------------------------------------------------------------- */

struct pool {
	sl_block base;
	struct sl_pool2d_opts opts;
};

static sl_tensor *pool_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	return sl_pool2d_at(slp_forward_call_site(), slp_layer_input(self, in, nin), ((struct pool *)self)->opts);
}

static sl_block *pool_new(const char *at, const char *type, struct sl_pool2d_opts opts)
{
	struct pool *p = slp_layer_new(at, sizeof *p, type, "pool", pool_forward);
	if (p) p->opts = opts;
	return p ? &p->base : NULL;
}

static sl_block *pool_of(const char *at, const char *function, const char *type, enum sl_pool_type pool, int kernel,
                         struct sl_pool2d_opts opts)
{
	opts.type = pool;
	if (opts.kernel[0] == 0) opts.kernel[0] = kernel;
	if (opts.kernel[1] == 0) opts.kernel[1] = opts.kernel[0];
	if (opts.kernel[0] < 1 || opts.kernel[1] < 1)
		return slp_call_fail(at, function, SL_EINVAL, "a window of %d by %d: it must be positive",
		                     opts.kernel[0], opts.kernel[1]);
	const char *idle = slp_pool2d_ignored(&opts);
	if (idle) return slp_call_fail(at, function, SL_EINVAL, "%s", idle);
	return pool_new(at, type, opts);
}

/* The largest element under each window of kernel by kernel elements (.kernel = {height, width} for others), which
 * moves by .stride, by default the window's size: sl_pool2d as a layer.  SL_EINVAL: a window that is not positive, or an
 * option without effect, as in sl_pool2d.
 *
 *     sl_block *p = sl_max_pool2d_layer(3, .stride = {2}, .pad = {1, 1}); */
sl_block *sl_max_pool2d_layer_at(const char *at, int kernel, struct sl_pool2d_opts opts)
{
	SLP_CALL("sl_max_pool2d_layer", at);
	if (!SLP_OPTIONS(sl_pool2d_opts, at, "sl_max_pool2d_layer", &opts)) return NULL;
	return pool_of(at, "sl_max_pool2d_layer", "MaxPool2D", SL_POOL_MAX, kernel, opts);
}

/* The mean under each window; otherwise as sl_max_pool2d_layer. */
sl_block *sl_avg_pool2d_layer_at(const char *at, int kernel, struct sl_pool2d_opts opts)
{
	SLP_CALL("sl_avg_pool2d_layer", at);
	if (!SLP_OPTIONS(sl_pool2d_opts, at, "sl_avg_pool2d_layer", &opts)) return NULL;
	return pool_of(at, "sl_avg_pool2d_layer", "AvgPool2D", SL_POOL_AVG, kernel, opts);
}

/* The largest element of each image's channels: (n, c, h, w) to (n, c, 1, 1). */
sl_block *sl_global_max_pool2d_layer_at(const char *at)
{
	SLP_CALL("sl_global_max_pool2d_layer", at);
	return pool_new(at, "GlobalMaxPool2D", (struct sl_pool2d_opts){.type = SL_POOL_MAX, .global = true});
}

/* The mean of each image's channels: (n, c, h, w) to (n, c, 1, 1). */
sl_block *sl_global_avg_pool2d_layer_at(const char *at)
{
	SLP_CALL("sl_global_avg_pool2d_layer", at);
	return pool_new(at, "GlobalAvgPool2D", (struct sl_pool2d_opts){.type = SL_POOL_AVG, .global = true});
}
