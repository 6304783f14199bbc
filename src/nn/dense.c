/* Fully connected layers, and embeddings: a row of weights for each word. */
#include <stdlib.h>

#include "as_index.h"
#include "nn/nn.h"
#include "op.h"
#include "starling/nn.h"
#include "starling/primitives.h"

/* ---- dense ------------------------------------------------------------------------------------------------------- */

struct dense {
	sl_block base;
	int64_t units;
	struct sl_dense_opts opts;
	sl_param *weight, *bias;
};

/* Features of a row of x; -1 if its shape is not known. */
static int64_t features(const struct dense *d, sl_shape x)
{
	int64_t n = 1;
	if (x.ndim < 1) return x.ndim == 0 ? 1 : -1;
	if (d->opts.no_flatten) return x.dim[x.ndim - 1];
	for (int i = 1; i < x.ndim; i++) n *= x.dim[i];
	return n;
}

static sl_tensor *dense_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct dense *d = (struct dense *)self;
	const char *at = slp_forward_call_site();
	sl_tensor *x = slp_layer_input(self, in, nin), *w, *b = NULL;
	if (!x) return NULL;
	sl_shape shape = sl_tensor_shape(x);
	int64_t inputs = features(d, shape);
	if (inputs >= 0 && sl_param_fit_at(at, d->weight, SL_SHAPE(d->units, inputs)) != SL_OK) return NULL;
	w = sl_param_use_at(at, d->weight, x);
	if (d->bias) b = sl_param_use_at(at, d->bias, x);
	if (!w || (d->bias && !b)) return NULL;
	if (!d->opts.no_flatten && shape.ndim != 2) x = sl_flatten_at(at, x);
	return slp_layer_activate(sl_linear_at(at, x, w, b, (struct sl_linear_opts){.tw = true}), d->opts.activation);
}

/* A fully connected layer: activation(x·wᵀ + b).  x (n, …) is flattened to (n, inputs), the result is (n, units); with
 * .no_flatten x is (…, inputs), the result (…, units).  Parameters: weight (units, inputs), bias (units), zeros at
 * first.  The number of inputs comes from the first x, or from .in_units.  SL_EINVAL: units is not positive, or .bias_init
 * with .no_bias.
 *
 *     sl_block *net = sl_sequential(sl_dense(256, .activation = SL_RELU), sl_dense(10)); */
sl_block *sl_dense_at(const char *at, int64_t units, struct sl_dense_opts opts)
{
	SLP_CALL("sl_dense", at);
	if (units < 1 || opts.in_units < 0)
		return slp_call_fail(at, "sl_dense", SL_EINVAL, "%lld units of %lld inputs: they must be positive",
		                     (long long)units, (long long)opts.in_units);
	if (opts.no_bias && opts.bias_init.kind != SL_INIT_DEFAULT)
		return slp_call_fail(at, "sl_dense", SL_EINVAL, SLP_NO_BIAS);
	struct dense *d = slp_layer_new(at, sizeof *d, "Dense", "dense", dense_forward);
	if (!d) return NULL;
	d->units = units;
	d->opts = opts;
	d->weight = sl_block_param_at(at, &d->base, "weight", SL_SHAPE(units, opts.in_units ? opts.in_units : -1),
	                              (struct sl_param_opts){.init = opts.weight_init});
	if (d->weight && !opts.no_bias)
		d->bias =
		        sl_block_param_at(at, &d->base, "bias", SL_SHAPE(units),
		                          (struct sl_param_opts){.init = slp_init_or(opts.bias_init, sl_zeros_init())});
	if (d->weight && (d->bias || opts.no_bias)) return &d->base;
	sl_block_free(&d->base);
	return NULL;
}

/* ---- embedding --------------------------------------------------------------------------------------------------- */

struct embedding {
	sl_block base;
	sl_param *weight;
};

static sl_tensor *embedding_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct embedding *e = (struct embedding *)self;
	const char *at = slp_forward_call_site();
	sl_tensor *x = slp_layer_input(self, in, nin), *w = sl_param_use_at(at, e->weight, x);
	return sl_gather_at(at, w, slp_numbers_as_index(at, x));
}

/* A learned row of `width` numbers for each of `words` words: x, indices of words in any shape (…), gives (…, width).
 * Indices of other data types than int32 are converted to it; NaN counts as 0.  Parameter: weight (words, width).
 * SL_EINVAL: words or width is not positive.
 *
 *     sl_block *e = sl_embedding(20000, 128); */
sl_block *sl_embedding_at(const char *at, int64_t words, int64_t width)
{
	SLP_CALL("sl_embedding", at);
	if (words < 1 || width < 1)
		return slp_call_fail(at, "sl_embedding", SL_EINVAL, "%lld words of width %lld: they must be positive",
		                     (long long)words, (long long)width);
	struct embedding *e = slp_layer_new(at, sizeof *e, "Embedding", "embedding", embedding_forward);
	if (!e) return NULL;
	e->weight = sl_block_param_at(at, &e->base, "weight", SL_SHAPE(words, width), (struct sl_param_opts){0});
	if (e->weight) return &e->base;
	sl_block_free(&e->base);
	return NULL;
}
