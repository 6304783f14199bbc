/* ONNX operators, computed: activations with attributes. */
#include "onnx/model/call.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

static sl_tensor *between(struct slp_onnx_call *c, sl_tensor *x, double low, double high)
{
	return sl_minimum_scalar_at(c->at, sl_maximum_scalar_at(c->at, x, low), high);
}

void slp_onnx_import_hard_sigmoid(struct slp_onnx_call *c)
{
	double alpha = slp_onnx_attr_float(c, "alpha", 0.2), beta = slp_onnx_attr_float(c, "beta", 0.5);
	sl_tensor *x = slp_onnx_tensor(c, 0);
	slp_onnx_set_output(c, 0, between(c, sl_add_scalar_at(c->at, sl_mul_scalar_at(c->at, x, alpha), beta), 0, 1));
}

void slp_onnx_import_elu(struct slp_onnx_call *c)
{
	slp_onnx_set_output(c, 0, sl_elu_at(c->at, slp_onnx_tensor(c, 0), slp_onnx_attr_float(c, "alpha", 1)));
}

/* alpha (exp(x / alpha) - 1) below 0. */
void slp_onnx_import_celu(struct slp_onnx_call *c)
{
	double alpha = slp_onnx_attr_float(c, "alpha", 1);
	sl_tensor *x = sl_div_scalar_at(c->at, slp_onnx_tensor(c, 0), alpha);
	slp_onnx_set_output(c, 0, sl_mul_scalar_at(c->at, sl_elu_at(c->at, x, 1), alpha));
}

void slp_onnx_import_selu(struct slp_onnx_call *c)
{
	double alpha = slp_onnx_attr_float(c, "alpha", 1.6732632423543772),
	       gamma = slp_onnx_attr_float(c, "gamma", 1.0507009873554805);
	slp_onnx_set_output(c, 0, sl_mul_scalar_at(c->at, sl_elu_at(c->at, slp_onnx_tensor(c, 0), alpha), gamma));
}

void slp_onnx_import_leaky_relu(struct slp_onnx_call *c)
{
	slp_onnx_set_output(c, 0,
	                    sl_leaky_relu_at(c->at, slp_onnx_tensor(c, 0), slp_onnx_attr_float(c, "alpha", 0.01)));
}

void slp_onnx_import_thresholded_relu(struct slp_onnx_call *c)
{
	sl_tensor *x = slp_onnx_tensor(c, 0), *over = sl_gt_scalar_at(c->at, x, slp_onnx_attr_float(c, "alpha", 1));
	slp_onnx_set_output(c, 0, over ? sl_mul_at(c->at, x, over) : NULL);
}

void slp_onnx_import_prelu(struct slp_onnx_call *c)
{
	sl_tensor *x = slp_onnx_tensor(c, 0), *slope = slp_onnx_tensor(c, 1);
	struct slp_onnx_value low = {.t = x && slope ? sl_minimum_scalar_at(c->at, x, 0) : NULL}; /* integers wrap */
	sl_tensor *under = low.t ? slp_onnx_as_tensor(c, slp_onnx_binary(c, "Mul", low, c->in[1])) : NULL;
	slp_onnx_set_output(c, 0, under ? sl_add_at(c->at, sl_relu_at(c->at, x), under) : NULL);
}

void slp_onnx_import_gelu(struct slp_onnx_call *c)
{
	bool tanh_form = slp_onnx_attr_is(c, "approximate", "none", "tanh");
	slp_onnx_set_output(c, 0, (tanh_form ? sl_gelu_tanh_at : sl_gelu_at)(c->at, slp_onnx_tensor(c, 0)));
}

void slp_onnx_import_swish(struct slp_onnx_call *c)
{
	double alpha = slp_onnx_attr_float(c, "alpha", 1);
	sl_tensor *x = slp_onnx_tensor(c, 0);
	slp_onnx_set_output(c, 0,
	                    alpha == 1 ? sl_silu_at(c->at, x)
	                               : sl_mul_at(c->at, x, sl_sigmoid_at(c->at, sl_mul_scalar_at(c->at, x, alpha))));
}

void slp_onnx_import_swiglu(struct slp_onnx_call *c)
{
	slp_onnx_import_swish(c);
	sl_tensor *gate = c->failed ? NULL : c->out[0].t, *x = gate ? slp_onnx_tensor(c, 1) : NULL;
	if (!c->failed) slp_onnx_set_output(c, 0, x ? sl_mul_at(c->at, gate, x) : NULL);
}

/* x + bias below -lambd, x - bias above lambd, 0 between. */
void slp_onnx_import_shrink(struct slp_onnx_call *c)
{
	double limit = slp_onnx_attr_float(c, "lambd", 0.5), bias = slp_onnx_attr_float(c, "bias", 0);
	sl_tensor *x = slp_onnx_tensor(c, 0);
	sl_tensor *under = x ? sl_lt_scalar_at(c->at, x, -limit) : NULL,
	          *over = x ? sl_gt_scalar_at(c->at, x, limit) : NULL;
	under = under ? sl_mul_at(c->at, under, sl_add_scalar_at(c->at, x, bias)) : NULL;
	over = over ? sl_mul_at(c->at, over, sl_sub_scalar_at(c->at, x, bias)) : NULL;
	slp_onnx_set_output(c, 0, under && over ? sl_add_at(c->at, under, over) : NULL);
}
