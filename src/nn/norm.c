/* Layers that normalise: over the batch, over the features. */
#include <math.h>
#include <stdlib.h>

#include "autograd/autograd.h"
#include "nn/nn.h"
#include "op.h"
#include "options.h"
#include "runtime/fault.h"
#include "starling/nn.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

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
	const char *at = slp_forward_call_site();
	sl_tensor *x = slp_layer_input(self, in, nin), *p[4];
	if (!x || fit_all(at, self, b->params, 4, sl_tensor_shape(x), 1) != SL_OK) return NULL;
	if (self->base->synchronised && sl_is_training() && !slp_forward.batch_is_whole)
		return slp_call_fail(
		        at, "sl_forward", SL_ESTATE,
		        "%s is synchronised over the shards of a batch, and one input may not be all of them: train "
		        "with sl_forward_shards (a whole batch is one shard) or sl_step_run, and do not hybridise the "
		        "blocks around it",
		        sl_block_name(self));
	if (!use_all(at, b->params, 2, x, p) || !use_statistics(at, b->params + 2, x, p + 2)) return NULL;
	return sl_batch_norm_at(at, x, p[0], p[1], p[2], p[3],
	                        (struct sl_batch_norm_opts){.eps = b->opts.eps, .momentum = b->opts.momentum});
}

/* ---- synchronised ------------------------------------------------------------------------------------------------ */

/* Row 0: the mean, row 1: the variance, as sl_batch_norm takes them. */
static sl_tensor *figure(const char *at, sl_tensor *stats, int row)
{
	return sl_reshape_at(at, sl_rows_at(at, stats, row, row + 1), SL_SHAPE(sl_tensor_shape(stats).dim[1]));
}

/* running = momentum running + (1 - momentum) batch, once for all shards. */
static bool run_on(const char *at, const struct batch_norm *b, sl_tensor *x, sl_tensor *stats)
{
	double momentum = b->opts.momentum;
	for (int i = 0; i < 2; i++) {
		sl_tensor *running = sl_param_use_at(at, b->params[2 + i], x);
		if (!sl_mul_scalar_inplace_at(at, running, momentum)) return false;
		if (!sl_add_inplace_at(at, running, sl_mul_scalar_at(at, figure(at, stats, i), 1 - momentum)))
			return false;
	}
	return true;
}

static sl_tensor *normalise(const char *at, const struct batch_norm *b, sl_tensor *x, sl_tensor *stats)
{
	sl_tensor *p[4];
	if (!use_all(at, b->params, 2, x, p)) return NULL;
	for (int i = 0; i < 2; i++) p[2 + i] = figure(at, stats, i);
	return sl_batch_norm_at(at, x, p[0], p[1], p[2], p[3],
	                        (struct sl_batch_norm_opts){.eps = b->opts.eps, .use_global_stats = true});
}

/* Shards differ in their rows only. */
static bool shards_fit(const char *at, const struct batch_norm *b, int n, sl_tensor *const *x)
{
	for (int i = 0; i < n; i++) {
		if (fit_all(at, &b->base, b->params, 4, sl_tensor_shape(x[i]), 1) != SL_OK) return false;
		bool same = x[i]->type.dtype == x[0]->type.dtype && x[i]->type.shape.ndim == x[0]->type.shape.ndim;
		if (same && sl_tensor_size(x[i]) > 0) continue;
		slp_call_fail(at, "sl_forward_shards", SL_ESHAPE, "%s: shard %d %s", sl_block_name(&b->base), i,
		              same ? "is empty" : "differs in type from the first");
		return false;
	}
	return true;
}

/* The formulas of the backward pass follow from autograd: the gradients with respect to mean and variance are sums over
 * all shards. */
static enum sl_status batch_norm_shards(sl_block *self, int n, sl_tensor *const *x, sl_tensor **y)
{
	const struct batch_norm *b = (const struct batch_norm *)self;
	const char *at = slp_forward_call_site();
	sl_tensor **stats = slp_calloc((size_t)n, sizeof *stats), *all = NULL;
	if (!stats) return slp_error_set(SL_ENOMEM, "sl_forward_shards: no memory");
	bool ok = shards_fit(at, b, n, x) && (all = slp_batch_statistics(at, sl_block_name(self), n, x, stats)) != NULL;
	if (ok)
		SL_PAUSE
			ok = run_on(at, b, x[0], all);
	for (int i = 0; ok && i < n; i++) ok = (y[i] = normalise(at, b, x[i], stats[i])) != NULL;
	free(stats);
	return ok ? SL_OK : sl_error();
}

/* Parameters of one element for each channel: gamma, ones at first, beta, zeros; running mean, zeros, and variance,
 * ones. */
static bool make_params(const char *at, sl_block *self, sl_param **params, int count, int64_t channels,
                        const bool *fixed)
{
	static const char *const names[] = {"gamma", "beta", "running_mean", "running_var"};
	for (int i = 0; i < count; i++) {
		struct sl_param_opts o = {.init = i % 3 ? sl_zeros_init() : sl_ones_init(), .no_grad = fixed[i]};
		params[i] = sl_block_param_at(at, self, names[i], SL_SHAPE(channels ? channels : -1), o);
		if (!params[i]) return false;
		params[i]->statistics = i >= 2;
	}
	return true;
}

static bool is_eps(const char *at, const char *function, double eps)
{
	if (eps >= 0 && isfinite(eps)) return true;
	slp_call_fail(at, function, SL_EINVAL, "eps is %g, a finite number needed, not below 0", eps);
	return false;
}

/* Batch normalisation of x (n, c, …): see sl_batch_norm for .eps and .momentum.  Parameters, all (c): gamma, ones at
 * first, and beta, zeros; running_mean, zeros, and running_var, ones, which training changes.  .no_scale: gamma stays
 * 1; .no_center: beta stays 0.  c comes from the first x, or from .in_channels.  With shards of a batch on several
 * devices, each shard is normalised separately, and the running statistics are those of the first shard; .synchronised
 * normalises all shards together, including those of other processes, as if the batch had not been split.  Then
 * training needs sl_forward_shards or whole steps; sl_forward of one shard is SL_ESTATE.
 *
 *     sl_block *block = sl_sequential(sl_conv2d_layer(64, .kernel = {3}, .pad = {1, 1}, .no_bias = true),
 *                                     sl_batch_norm_layer(), sl_activation_layer(SL_RELU)); */
sl_block *sl_batch_norm_layer_at(const char *at, struct sl_batch_norm_layer_opts opts)
{
	SLP_CALL("sl_batch_norm_layer", at);
	if (!SLP_OPTIONS(sl_batch_norm_layer_opts, at, "sl_batch_norm_layer", &opts)) return NULL;
	const bool fixed[] = {opts.no_scale, opts.no_center, true, true};
	if (opts.in_channels < 0)
		return slp_call_fail(at, "sl_batch_norm_layer", SL_EINVAL, "channels must be positive");
	if (!is_eps(at, "sl_batch_norm_layer", opts.eps)) return NULL;
	if (!(opts.momentum >= 0 && opts.momentum <= 1))
		return slp_call_fail(at, "sl_batch_norm_layer", SL_EINVAL, "momentum is %g; it must be from 0 to 1",
		                     opts.momentum);
	struct batch_norm *b = slp_layer_new(at, sizeof *b, "BatchNorm", "batchnorm", batch_norm_forward);
	if (!b) return NULL;
	b->opts = opts;
	b->base.base->synchronised = opts.synchronised;
	b->base.forward_shards = opts.synchronised ? batch_norm_shards : NULL;
	if (make_params(at, &b->base, b->params, 4, opts.in_channels, fixed)) return &b->base;
	sl_block_free(&b->base);
	return NULL;
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
	const char *at = slp_forward_call_site();
	sl_tensor *x = slp_layer_input(self, in, nin), *p[2];
	if (!x || fit_all(at, self, l->params, 2, sl_tensor_shape(x), -1) != SL_OK) return NULL;
	if (!use_all(at, l->params, 2, x, p)) return NULL;
	return sl_layer_norm_at(at, x, p[0], p[1], (struct sl_layer_norm_opts){.eps = l->eps});
}

/* sl_layer_norm as a layer: each row of x (…, c) is normalised, with the same .eps.  Parameters (c): gamma, ones at
 * first, and beta, zeros.  c comes from the first x, or from .in_channels.
 *
 *     sl_block *n = sl_layer_norm_layer(); */
sl_block *sl_layer_norm_layer_at(const char *at, struct sl_layer_norm_layer_opts opts)
{
	SLP_CALL("sl_layer_norm_layer", at);
	if (!SLP_OPTIONS(sl_layer_norm_layer_opts, at, "sl_layer_norm_layer", &opts)) return NULL;
	const bool fixed[] = {false, false};
	if (opts.in_channels < 0)
		return slp_call_fail(at, "sl_layer_norm_layer", SL_EINVAL, "channels must be positive");
	if (!is_eps(at, "sl_layer_norm_layer", opts.eps)) return NULL;
	struct layer_norm *l = slp_layer_new(at, sizeof *l, "LayerNorm", "layernorm", layer_norm_forward);
	if (!l) return NULL;
	l->eps = opts.eps;
	if (make_params(at, &l->base, l->params, 2, opts.in_channels, fixed)) return &l->base;
	sl_block_free(&l->base);
	return NULL;
}
