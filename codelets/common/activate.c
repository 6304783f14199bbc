/* Activations by their enum: the operation of each. */
#include "activation.h"
#include "op_inner.h"
#include "op_list/unary.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

const struct slp_activation_ops slp_activations[SL_ACTIVATIONS] = {
#define X(symbol, name) [symbol] = {&slp_op_##name, &slp_op_##name##_grad},
        SLP_ACTIVATION_LIST(X)
#undef X
};

/* The name of an activation, "relu", "sigmoid" and so on, as text that is never freed; "identity" for SL_IDENTITY, "?"
 * for any other number. */
const char *sl_activation_name(enum sl_activation activation)
{
	switch (activation) {
	case SL_IDENTITY: return "identity";
#define X(symbol, name)                                                                                                \
	case symbol: return #name;
		SLP_ACTIVATION_LIST(X)
#undef X
	default: return "?";
	}
}

/* The activation of each element of x: sl_relu, sl_sigmoid and so on, chosen by a value. SL_IDENTITY gives the same
 * values in the same memory.  SL_EINVAL: not an activation; other errors are those of the operation.
 *
 *     sl_tensor *h = sl_activate(sl_linear(x, w, b), SL_TANH); */
sl_tensor *sl_activate_at(const char *at, sl_tensor *x, enum sl_activation activation)
{
	switch (activation) {
	case SL_IDENTITY: return sl_reshape_at(at, x, sl_tensor_shape(x));
#define X(symbol, name)                                                                                                \
	case symbol: return sl_##name##_at(at, x);
		SLP_ACTIVATION_LIST(X)
#undef X
	default: return slp_call_fail(at, "sl_activate", SL_EINVAL, "%d is not an activation", (int)activation);
	}
}
