/* Layers that normalise: over the batch, over the features. */
#include <stdlib.h>

#include "nn/nn.h"

/* ---- batch ------------------------------------------------------------------------------------------------------- */

struct batch_norm {
	sl_block base;
	struct sl_batch_norm_layer_opts opts;
	sl_param *params[4]; /* gamma, beta, running mean, running variance */
};

static enum sl_status fit_all(const char *at, const sl_block *self, sl_param *const *params, int count, sl_shape x,
                              int axis)
{
	char text[128];
	if (x.ndim < 0) return SL_OK;
	if (axis < 0) axis += x.ndim;
	if (axis < 0 || axis >= x.ndim) {
		slp_call_fail(at, "sl_forward", SL_ESHAPE, "%s got %s, which has no axis of channels",
		              sl_block_name(self), sl_shape_string(x, text));
		return SL_ESHAPE;
	}
	for (int i = 0; i < count; i++)
		if (sl_param_fit_at(at, params[i], SL_SHAPE(x.dim[axis])) != SL_OK) return sl_error();
	return SL_OK;
}

static bool use_all(const char *at, sl_param *const *params, int count, sl_tensor *x, sl_tensor **used)
{
	for (int i = 0; i < count; i++)
		if (!(used[i] = sl_param_use_at(at, params[i], x))) return false;
	return true;
}

static bool use_statistics(const char *at, sl_param *const params[2], sl_tensor *x, sl_tensor *used[2])
{
	for (int i = 0; i < 2; i++)
		if (!(used[i] = slp_param_use_written(at, params[i], x))) return false;
	return true;
}

static sl_tensor *batch_norm_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct batch_norm *b = (struct batch_norm *)self;
	const char *at = slp_forward_place();
	sl_tensor *x = slp_layer_input(self, in, nin), *p[4];
	if (!x || fit_all(at, self, b->params, 4, sl_tensor_shape(x), 1) != SL_OK) return NULL;
	if (!use_all(at, b->params, 2, x, p) || !use_statistics(at, b->params + 2, x, p + 2)) return NULL;
	return sl_batch_norm_at(at, x, p[0], p[1], p[2], p[3],
	                        (struct sl_batch_norm_opts){.eps = b->opts.eps, .momentum = b->opts.momentum});
}

/* Batch normalisation of x (n, c, …): see sl_batch_norm for .eps and .momentum.  Parameters, all (c): gamma, ones at
 * first, and beta, zeros; running_mean, zeros, and running_var, ones, which training changes.  .no_scale: gamma stays
 * 1; .no_center: beta stays 0.  c comes from the first x, or from .in_channels.  Where shards of a batch are trained on
 * several devices, each is normalised by itself, and the running statistics are those of the first shard.
 *
 *     sl_block *block = sl_sequential(sl_conv2d_layer(64, .kernel = {3}, .pad = {1, 1}, .no_bias = true),
 *                                     sl_batch_norm_layer(), sl_activation_layer(SL_RELU)); */
sl_block *sl_batch_norm_layer_at(const char *at, struct sl_batch_norm_layer_opts opts)
{
	static const char *const names[] = {"gamma", "beta", "running_mean", "running_var"};
	const bool fixed[] = {opts.no_scale, opts.no_center, true, true};
	if (opts.in_channels < 0)
		return slp_call_fail(at, "sl_batch_norm_layer", SL_EINVAL, "channels must be positive");
	struct batch_norm *b = slp_layer_new(at, sizeof *b, "BatchNorm", "batchnorm", batch_norm_forward);
	if (!b) return NULL;
	b->opts = opts;
	for (int i = 0; i < 4; i++) {
		struct sl_param_opts o = {.init = i % 3 ? sl_zeros_init() : sl_ones_init(), .no_grad = fixed[i]};
		b->params[i] = sl_block_param_at(at, &b->base, names[i],
		                                 SL_SHAPE(opts.in_channels ? opts.in_channels : -1), o);
		if (b->params[i]) continue;
		sl_block_free(&b->base);
		return NULL;
	}
	return &b->base;
}

/* ---- layer ------------------------------------------------------------------------------------------------------- */

struct layer_norm {
	sl_block base;
	double eps;
	sl_param *params[2]; /* gamma, beta */
};

static sl_tensor *layer_norm_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct layer_norm *l = (struct layer_norm *)self;
	const char *at = slp_forward_place();
	sl_tensor *x = slp_layer_input(self, in, nin), *p[2];
	if (!x || fit_all(at, self, l->params, 2, sl_tensor_shape(x), -1) != SL_OK) return NULL;
	if (!use_all(at, l->params, 2, x, p)) return NULL;
	return sl_layer_norm_at(at, x, p[0], p[1], (struct sl_layer_norm_opts){.eps = l->eps});
}

/* sl_layer_norm as a layer: each row of x (…, c) is normalised; .eps as there.  Parameters (c): gamma, ones at first,
 * and beta, zeros.  c comes from the first x, or from .in_channels.
 *
 *     sl_block *n = sl_layer_norm_layer(); */
sl_block *sl_layer_norm_layer_at(const char *at, struct sl_layer_norm_layer_opts opts)
{
	static const char *const names[] = {"gamma", "beta"};
	if (opts.in_channels < 0 || opts.eps < 0)
		return slp_call_fail(at, "sl_layer_norm_layer", SL_EINVAL, "channels and eps must be positive");
	struct layer_norm *l = slp_layer_new(at, sizeof *l, "LayerNorm", "layernorm", layer_norm_forward);
	if (!l) return NULL;
	l->eps = opts.eps;
	for (int i = 0; i < 2; i++) {
		struct sl_param_opts o = {.init = i ? sl_zeros_init() : sl_ones_init()};
		l->params[i] = sl_block_param_at(at, &l->base, names[i],
		                                 SL_SHAPE(opts.in_channels ? opts.in_channels : -1), o);
		if (l->params[i]) continue;
		sl_block_free(&l->base);
		return NULL;
	}
	return &l->base;
}
