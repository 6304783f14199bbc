/* ONNX operators, computed: fused operators that onnxruntime's optimiser writes. */
#include "onnx/model/call.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* Computes an operator of the standard with these inputs. */
static sl_tensor *inner(struct slp_onnx_call *c, slp_onnx_import *import, const struct slp_onnx_value *in, int nin)
{
	struct slp_onnx_value y = {0}, copy[4];
	struct slp_onnx_call call = *c;
	for (int i = 0; i < nin; i++) copy[i] = in[i];
	call.in = copy, call.nin = nin, call.out = &y, call.nout = 1;
	import(&call);
	c->failed |= call.failed;
	return call.failed ? NULL : slp_onnx_as_tensor(c, y);
}

static double parameter(struct slp_onnx_call *c, size_t i, double otherwise)
{
	const SlpOnnx__AttributeProto *a = slp_onnx_attr(c, "activation_params");
	return a && i < a->n_floats ? a->floats[i] : otherwise;
}

static sl_tensor *activated(struct slp_onnx_call *c, sl_tensor *y)
{
	char text[64];
	const char *name = slp_onnx_attr_text(c, "activation", "", text);
	if (!*name) return y;
	if (!strcmp(name, "Relu")) return sl_relu_at(c->at, y);
	if (!strcmp(name, "Sigmoid")) return sl_sigmoid_at(c->at, y);
	if (!strcmp(name, "Tanh")) return sl_tanh_at(c->at, y);
	if (!strcmp(name, "LeakyRelu")) return sl_leaky_relu_at(c->at, y, parameter(c, 0, 0.01));
	if (!strcmp(name, "Clip")) return sl_clip_at(c->at, y, parameter(c, 0, 0), parameter(c, 1, 6));
	if (!strcmp(name, "HardSigmoid")) {
		y = sl_add_scalar_at(c->at, sl_mul_scalar_at(c->at, y, parameter(c, 0, 0.2)), parameter(c, 1, 0.5));
		return y ? sl_clip_at(c->at, y, 0, 1) : NULL;
	}
	slp_onnx_call_fail(c, SL_EUNSUPPORTED, "activation \"%.40s\" is not supported", name);
	return NULL;
}

/* Convolution, a tensor that is added, an activation. */
void slp_onnx_import_fused_conv(struct slp_onnx_call *c)
{
	sl_tensor *y = inner(c, slp_onnx_import_conv, c->in, c->nin < 3 ? c->nin : 3), *z = slp_onnx_tensor(c, 3);
	if (y && z) y = sl_add_at(c->at, y, z);
	y = y ? activated(c, y) : NULL;
	if (!c->failed) slp_onnx_set_output(c, 0, y);
}

static struct slp_onnx_value turned(struct slp_onnx_call *c, struct slp_onnx_value v, bool turn)
{
	int ndim = slp_onnx_shape_of(c, v).ndim;
	return !turn || ndim < 2 || c->failed ? v : slp_onnx_axis_moved(c, v, ndim - 1, ndim - 2);
}

void slp_onnx_import_fused_matmul(struct slp_onnx_call *c)
{
	double alpha = slp_onnx_attr_float(c, "alpha", 1);
	if (slp_onnx_attr_int(c, "transBatchA", 0) || slp_onnx_attr_int(c, "transBatchB", 0))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "transBatchA and transBatchB are not supported");
	struct slp_onnx_value in[2] = {turned(c, c->in[0], slp_onnx_attr_int(c, "transA", 0) != 0), {0}};
	in[1] = turned(c, c->in[1], slp_onnx_attr_int(c, "transB", 0) != 0);
	if (!slp_onnx_present(in[0]) || !slp_onnx_present(in[1])) c->failed = true;
	sl_tensor *y = c->failed ? NULL : inner(c, slp_onnx_import_matmul, in, 2);
	if (!c->failed) slp_onnx_set_output(c, 0, y && alpha != 1 ? sl_mul_scalar_at(c->at, y, alpha) : y);
}

/* GELU of a sum: with erf, or as FastGelu by tanh. */
void slp_onnx_import_bias_gelu(struct slp_onnx_call *c)
{
	sl_tensor *x = slp_onnx_tensor(c, 0), *b = slp_onnx_tensor(c, 1);
	if (x && b) x = sl_add_at(c->at, x, b);
	slp_onnx_set_output(c, 0, x ? (c->op->name[0] == 'F' ? sl_gelu_tanh_at : sl_gelu_at)(c->at, x) : NULL);
}

/* Layer norm of a sum of two tensors and a bias; the sum is the fourth result. */
void slp_onnx_import_skip_layer_norm(struct slp_onnx_call *c)
{
	bool simple = c->op->name[4] == 'S';
	int bias = simple ? 3 : 4;
	sl_tensor *x = slp_onnx_tensor(c, 0), *skip = slp_onnx_tensor(c, 1), *more = slp_onnx_tensor(c, bias);
	sl_tensor *sum = x && skip ? sl_add_at(c->at, x, skip) : NULL;
	if (sum && more) sum = sl_add_at(c->at, sum, more);
	if (c->nout > 1 && slp_onnx_wants(c, 1)) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "the mean is not supported");
	if (c->nout > 2 && slp_onnx_wants(c, 2))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "the deviation is not supported");
	if (c->failed || !sum) {
		c->failed = true;
		return;
	}
	struct slp_onnx_value in[3] = {{.t = sum}, c->in[2], {0}};
	if (!simple && slp_onnx_has(c, 3)) in[2] = c->in[3];
	slp_onnx_set_output(c, 0,
	                    inner(c, simple ? slp_onnx_import_rms_norm : slp_onnx_import_layer_norm, in,
	                          slp_onnx_present(in[2]) ? 3 : 2));
	if (c->nout > 3 && !c->failed) slp_onnx_set_output(c, 3, sum);
}
