/* Layers without parameters: activation, dropout, flatten, a function of the program. */
#include <stdlib.h>

#include "nn/nn.h"
#include "op.h"
#include "starling/nn.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

/* ---- activation -------------------------------------------------------------------------------------------------- */

struct activation {
	sl_block base;
	enum sl_activation kind;
};

static sl_tensor *activation_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	return sl_activate_at(slp_forward_call_site(), slp_layer_input(self, in, nin),
	                      ((struct activation *)self)->kind);
}

/* sl_activate as a layer. SL_EINVAL: not an activation.
 *
 *     sl_block *a = sl_activation_layer(SL_RELU); */
sl_block *sl_activation_layer_at(const char *at, enum sl_activation activation)
{
	SLP_CALL("sl_activation_layer", at);
	if ((unsigned)activation >= SL_ACTIVATIONS)
		return slp_call_fail(at, "sl_activation_layer", SL_EINVAL, "%d is not an activation", (int)activation);
	struct activation *a =
	        slp_layer_new(at, sizeof *a, "Activation", sl_activation_name(activation), activation_forward);
	if (a) a->kind = activation;
	return a ? &a->base : NULL;
}

/* ---- dropout ----------------------------------------------------------------------------------------------------- */

struct dropout {
	sl_block base;
	double p;
};

static sl_tensor *dropout_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	return sl_dropout_at(slp_forward_call_site(), slp_layer_input(self, in, nin), ((struct dropout *)self)->p);
}

/* sl_dropout as a layer: it has an effect in training only.  SL_EINVAL unless 0 <= p < 1. */
sl_block *sl_dropout_layer_at(const char *at, double p)
{
	SLP_CALL("sl_dropout_layer", at);
	if (!(p >= 0 && p < 1))
		return slp_call_fail(at, "sl_dropout_layer", SL_EINVAL, "probability %g is not in [0, 1)", p);
	struct dropout *d = slp_layer_new(at, sizeof *d, "Dropout", "dropout", dropout_forward);
	if (d) d->p = p;
	return d ? &d->base : NULL;
}

/* ---- flatten ----------------------------------------------------------------------------------------------------- */

static sl_tensor *flatten_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	sl_tensor *x = slp_layer_input(self, in, nin);
	return x ? sl_flatten_at(slp_forward_call_site(), x) : NULL;
}

/* sl_flatten as a layer: (n, a, b, …) to (n, a·b·…), over the same memory. */
sl_block *sl_flatten_layer_at(const char *at)
{
	SLP_CALL("sl_flatten_layer", at);
	return slp_layer_new(at, sizeof(sl_block), "Flatten", "flatten", flatten_forward);
}

/* ---- lambda ------------------------------------------------------------------------------------------------------ */

struct lambda {
	sl_block base;
	sl_tensor *(*function)(sl_tensor *x);
};

static sl_tensor *lambda_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	sl_tensor *x = slp_layer_input(self, in, nin);
	return x ? ((struct lambda *)self)->function(x) : NULL;
}

/* A function of one tensor as a layer; the block's name begins with `name` (NULL: "lambda").  SL_EINVAL: function is
 * NULL.
 *
 *     static sl_tensor *halve(sl_tensor *x) { return sl_mul_scalar(x, 0.5); }
 *     sl_block *l = sl_lambda("halve", halve); */
sl_block *sl_lambda_at(const char *at, const char *name, sl_tensor *(*function)(sl_tensor *x))
{
	SLP_CALL("sl_lambda", at);
	if (!function) return slp_call_fail(at, "sl_lambda", SL_EINVAL, "the function is NULL");
	struct lambda *l = slp_layer_new(at, sizeof *l, "Lambda", name && *name ? name : "lambda", lambda_forward);
	if (l) l->function = function;
	return l ? &l->base : NULL;
}
