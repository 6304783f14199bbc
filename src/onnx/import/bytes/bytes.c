/* ONNX operators, computed: integers of eight bits that represent real numbers, with the operations of codelets/quant/.
 *
 * int8 is held as uint8, 128 larger, and images have their channels last, as long as such operators follow each other:
 * all other operators get the values as they know them (slp_onnx_plain). */
#include <math.h>
#include <math.h>

#include "onnx/import/bytes/operands.h"
#include "onnx/import/window.h"
#include "op_inner.h"
#include "op_list/quant.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

static bool is_one_of(const char *name, const char *const *list)
{
	while (*list && strcmp(name, *list)) list++;
	return *list != NULL;
}

bool slp_onnx_takes_bytes(const struct slp_onnx_op *op)
{
	static const char *const names[] = {"QuantizeLinear", "DequantizeLinear", "ConvInteger", "MatMulInteger",
	                                    "QGemm",          "MaxPool",          NULL};
	return !strncmp(op->name, "QLinear", 7) || is_one_of(op->name, names);
}

/* Operators that only move elements of their first input. */
static bool moves(const struct slp_onnx_op *op)
{
	static const char *const names[] = {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity",
	                                    "Slice",   "Gather",    "Split",   "Expand",  "Tile",      NULL};
	return is_one_of(op->name, names);
}

/* ---- as other operators know them -------------------------------------------------------------------------------- */

struct slp_onnx_value slp_onnx_channels_moved(struct slp_onnx_call *c, struct slp_onnx_value v, bool last)
{
	static const int to_last[] = {0, 2, 3, 1}, to_second[] = {0, 3, 1, 2};
	if (v.last == last || c->failed) return v;
	struct sl_reduce_opts o = {.axes = last ? to_last : to_second, .naxes = 4};
	v.t = sl_transpose_at(c->at, slp_onnx_as_tensor(c, v), o);
	v.known = NULL;
	v.last = last;
	if (!v.t) c->failed = true; /* and recorded */
	return v;
}

struct slp_onnx_value slp_onnx_plain(struct slp_onnx_call *c, struct slp_onnx_value v)
{
	v = slp_onnx_channels_moved(c, v, false);
	if (!v.shifted || c->failed) return v;
	v.t = sl_sub_scalar_at(c->at, sl_cast_at(c->at, v.t, SL_INT32), 128);
	v.shifted = false;
	if (!v.t) c->failed = true; /* and recorded */
	return v;
}

bool slp_onnx_plain_inputs(struct slp_onnx_call *c)
{
	bool keeps = c->nin && moves(c->op) && c->in[0].shifted;
	for (int i = 0; i < c->nin; i++) {
		if (i || !keeps) c->in[i] = slp_onnx_plain(c, c->in[i]);
		else c->in[i] = slp_onnx_channels_moved(c, c->in[i], false);
	}
	if (keeps) c->in[0].shifted = false, c->in[0].type = SLP_ONNX_UINT8;
	return keeps;
}

void slp_onnx_shift_results(struct slp_onnx_call *c)
{
	for (int i = 0; i < c->nout; i++)
		if (c->out[i].t) c->out[i].shifted = true, c->out[i].type = SLP_ONNX_INT8;
}
/* ---- there and back ---------------------------------------------------------------------------------------------- */

/* Elements that share a scale: all, or those of an axis; -1: neither. */
static int64_t shared(struct slp_onnx_call *c, sl_shape x, int scale, int zero)
{
	sl_shape s = slp_onnx_shape(c, scale);
	int64_t axis = slp_onnx_attr_int(c, "axis", 1), n = sl_shape_size(s), inner = 1;
	if (slp_onnx_has(c, zero) && sl_shape_size(slp_onnx_shape(c, zero)) != n) return -1;
	if (n == 1) return 0;
	if (axis < 0) axis += x.ndim;
	if (s.ndim != 1 || axis < 0 || axis >= x.ndim || x.dim[axis] != n) return -1;
	for (int i = (int)axis + 1; i < x.ndim; i++) inner *= x.dim[i];
	return inner ? inner : -1;
}
static bool has_float32(struct slp_onnx_call *c, int i)
{
	return slp_onnx_has(c, i) && slp_onnx_dtype(&c->in[i]) == SL_FLOAT32;
}

/* The scale and the zero points of a node, behind x. */
static bool take_scale(struct slp_onnx_call *c, int type, sl_tensor *in[3])
{
	in[1] = slp_onnx_as_tensor(c, c->in[1]);
	in[2] = in[1] ? slp_onnx_float_zeros(c, 2, type, sl_tensor_size(in[1])) : NULL;
	return in[0] && in[1] && in[2] && !c->failed;
}

bool slp_onnx_quantize_bytes(struct slp_onnx_call *c, int type)
{
	struct slp_quantize_attrs a = {0};
	sl_tensor *in[3];
	if ((type != SLP_ONNX_UINT8 && type != SLP_ONNX_INT8) || !has_float32(c, 0) || !has_float32(c, 1) ||
	    slp_onnx_attr_int(c, "block_size", 0))
		return false;
	a.inner = shared(c, slp_onnx_shape(c, 0), 1, 2);
	if (a.inner < 0 || c->failed) return false;
	in[0] = slp_onnx_as_tensor(c, c->in[0]);
	if (take_scale(c, type, in))
		slp_onnx_give_bytes(c, slp_apply1(c->at, &slp_op_quantize, &a, 3, in), type, false);
	else c->failed = true;
	return true;
}

bool slp_onnx_dequantize_bytes(struct slp_onnx_call *c)
{
	struct slp_quantize_attrs a = {0};
	sl_tensor *in[3];
	if (!slp_onnx_is_byte(&c->in[0]) || !has_float32(c, 1) || slp_onnx_attr_int(c, "block_size", 0)) return false;
	int type = slp_onnx_type_of(&c->in[0]);
	struct slp_onnx_value x = slp_onnx_byte_value(c, slp_onnx_channels_moved(c, c->in[0], false));
	if (c->failed) return true;
	a.inner = shared(c, sl_tensor_shape(x.t), 1, 2);
	if (a.inner < 0) return false;
	in[0] = x.t;
	if (take_scale(c, type, in)) slp_onnx_set_output(c, 0, slp_apply1(c->at, &slp_op_dequantize, &a, 3, in));
	else c->failed = true;
	return true;
}
