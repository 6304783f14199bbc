/* ONNX operator sets 1 to 6: operands whose axes are aligned by an attribute, or along the channels. */
#include "onnx/model/call.h"

static bool aligned_by_axis(const char *name)
{
	static const char *const names[] = {"Add", "Sub", "Mul",   "Div",  "Pow",     "And",
	                                    "Or",  "Xor", "Equal", "Less", "Greater", NULL};
	const char *const *n = names;
	while (*n && strcmp(*n, name)) n++;
	return *n != NULL;
}

/* The second operand with axes of one element after its own, which begin at this axis of the first. */
static void align(struct slp_onnx_call *c, int axis)
{
	int ndim = slp_onnx_shape(c, 0).ndim;
	sl_shape s = slp_onnx_shape(c, 1);
	if (!c->failed && axis + s.ndim > ndim)
		slp_onnx_call_fail(c, SL_ESHAPE, "%d axes from axis %d on, of %d", s.ndim, axis, ndim);
	if (c->failed) return;
	while (s.ndim < ndim - axis) s.dim[s.ndim++] = 1;
	c->in[1] = slp_onnx_reshaped(c, c->in[1], s);
}

void slp_onnx_align_old(struct slp_onnx_call *c)
{
	enum { NOW = 7 };
	if (c->opset >= NOW || c->nin != 2) return;
	if (!strcmp(c->op->name, "PRelu") && slp_onnx_shape(c, 1).ndim == 1 && slp_onnx_shape(c, 1).dim[0] > 1)
		align(c, 1);
	else if (aligned_by_axis(c->op->name) && slp_onnx_attr(c, "axis"))
		align(c, slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", 0), slp_onnx_shape(c, 0).ndim));
}
