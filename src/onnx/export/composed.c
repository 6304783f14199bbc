/* Operations of Starling that become several ONNX operators, or one with operands in another order. */
#include <math.h>

#include "onnx/export/writer.h"
#include "op_list/fill.h"
#include "op_list/linear.h"
#include "op_list/move.h"
#include "op_list/reduce.h"
#include "starling/elementwise.h"
#include "starling/primitives.h"

static const char *reshaped(struct slp_onnx_writer *w, bool result, const char *v, sl_shape shape)
{
	return SLP_ONNX_NODE(w, "Reshape", result, v, slp_onnx_list(w, shape.dim, shape.ndim));
}

static const char *filled(struct slp_onnx_writer *w, sl_shape shape, double value, enum sl_dtype dtype)
{
	const char *v = SLP_ONNX_NODE(w, "ConstantOfShape", false, slp_onnx_list(w, shape.dim, shape.ndim));
	slp_onnx_value(w, "value", value, dtype);
	return v;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* A convolution's backward pass with respect to its input; rows and columns beyond the computed size are padded at the
 * end. */
void slp_onnx_export_conv_transpose(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
	int64_t stride[2], dilation[2], pad[2], more[2];
	sl_shape x = slp_onnx_shape_in(w, n, 0), kernel = slp_onnx_shape_in(w, n, 1), y = n->types[0].shape;
	slp_export_pair(n, "stride", ones, stride);
	slp_export_pair(n, "dilation", ones, dilation);
	slp_export_pair(n, "pad", zeros, pad);
	for (int i = 0; i < 2; i++)
		more[i] = y.dim[2 + i] -
		          ((x.dim[2 + i] - 1) * stride[i] - 2 * pad[i] + dilation[i] * (kernel.dim[2 + i] - 1) + 1);
	SLP_ONNX_NODE(w, "ConvTranspose", true, slp_onnx_in(w, n, 0), slp_onnx_in(w, n, 1));
	slp_onnx_ints(w, "kernel_shape", &kernel.dim[2], 2);
	slp_onnx_ints(w, "strides", stride, 2);
	slp_onnx_ints(w, "dilations", dilation, 2);
	slp_onnx_ints(w, "pads", (const int64_t[]){pad[0], pad[1], pad[0], pad[1]}, 4);
	slp_onnx_ints(w, "output_padding", more, 2);
	slp_onnx_int(w, "group", (int64_t)slp_export_or(n, "groups", 1));
}

/* softmax(scale q kᵀ + mask) v; the causal mask is -inf above the diagonal. */
void slp_onnx_export_attention(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	enum sl_dtype d = n->types[0].dtype;
	sl_shape q = slp_onnx_shape_in(w, n, 0), k = slp_onnx_shape_in(w, n, 1);
	const char *kt = slp_onnx_write_transposed(w, slp_onnx_in(w, n, 1), k.ndim);
	double scale = slp_export_or(n, "scale", 1 / sqrt((double)q.dim[q.ndim - 1]));
	const char *v = SLP_ONNX_NODE(w, "Mul", false, slp_onnx_in(w, n, 0), slp_onnx_number(w, scale, d));
	v = SLP_ONNX_NODE(w, "MatMul", false, v, kt);
	if (n->nin > 3) v = SLP_ONNX_NODE(w, "Add", false, v, slp_onnx_in(w, n, 3));
	if (slp_export_int(n, "causal", 0)) {
		const char *hidden = filled(w, SL_SHAPE(q.dim[q.ndim - 2], k.dim[k.ndim - 2]), -INFINITY, d);
		hidden = SLP_ONNX_NODE(w, "Trilu", false, hidden, slp_onnx_number(w, 1, SL_INT64));
		slp_onnx_int(w, "upper", 1);
		v = SLP_ONNX_NODE(w, "Add", false, v, hidden);
	}
	v = SLP_ONNX_NODE(w, "Softmax", false, v);
	slp_onnx_int(w, "axis", -1);
	SLP_ONNX_NODE(w, "MatMul", true, v, slp_onnx_in(w, n, 2));
}

/* ---- recurrent layers -------------------------------------------------------------------------------------------- */

/* Of enum sl_cell: ONNX' operator, its activation, and where its gates are among ours. */
static const struct cell {
	const char *name, *activation;
	int gates;
	int64_t order[4];
} cells[] = {
        {"RNN", "Tanh", 1, {0}},
        {"RNN", "Relu", 1, {0}},
        {"LSTM", NULL, 4, {0, 3, 1, 2}},
        {"GRU", NULL, 3, {1, 0, 2}},
};

/* (gates · units, …) in ONNX' order, with an axis in front for the directions. */
static const char *by_gates(struct slp_onnx_writer *w, const struct cell *c, const char *v, int64_t units,
                            int64_t width)
{
	v = reshaped(w, false, v, SL_SHAPE(c->gates, units * (width ? width : 1)));
	v = SLP_ONNX_NODE(w, "Gather", false, v, slp_onnx_list(w, c->order, c->gates));
	slp_onnx_int(w, "axis", 0);
	return reshaped(w, false, v, width ? SL_SHAPE(1, c->gates * units, width) : SL_SHAPE(1, c->gates * units));
}

static const char *unsqueezed(struct slp_onnx_writer *w, const char *v)
{
	const int64_t first = 0;
	return SLP_ONNX_NODE(w, "Unsqueeze", false, v, slp_onnx_list(w, &first, 1));
}

static const char *squeezed(struct slp_onnx_writer *w, bool result, const char *v, int64_t axis)
{
	return SLP_ONNX_NODE(w, "Squeeze", result, v, slp_onnx_list(w, &axis, 1));
}

/* The product with the inputs, which ONNX' operators contain; the identity if something else makes the gates. */
struct product {
	const char *x, *weight, *bias; /* bias NULL: none */
	int64_t width;
};

static struct product product_of(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const struct slp_gnode *made = &w->g->nodes[n->in[0].node];
	if (made->op == &slp_op_linear && slp_export_int(made, "tw", 0))
		return (struct product){slp_onnx_in(w, made, 0), slp_onnx_in(w, made, 1),
		                        made->nin > 2 ? slp_onnx_in(w, made, 2) : NULL,
		                        slp_onnx_shape_in(w, made, 1).dim[1]};
	sl_shape gates = slp_onnx_shape_in(w, n, 0);
	sl_shape square = SL_SHAPE(gates.dim[2], gates.dim[2]);
	const char *eye = SLP_ONNX_NODE(w, "EyeLike", false, filled(w, square, 0, n->types[0].dtype));
	return (struct product){slp_onnx_in(w, n, 0), eye, NULL, gates.dim[2]};
}

/* The biases of the inputs' product and of the state's. */
static const char *biases(struct slp_onnx_writer *w, const struct cell *c, const char *input, const char *state,
                          int64_t units, enum sl_dtype dtype)
{
	const char *none = input && state ? NULL : filled(w, SL_SHAPE(1, c->gates * units), 0, dtype);
	const char *two[] = {input ? by_gates(w, c, input, units, 0) : none,
	                     state ? by_gates(w, c, state, units, 0) : none};
	const char *v = slp_onnx_node(w, "Concat", false, 2, two);
	slp_onnx_int(w, "axis", 1);
	return v;
}

static bool only_moves(const struct slp_gnode *n)
{
	static const struct sl_op *const moves[] = {&slp_op_slice, &slp_op_reshape, &slp_op_broadcast_to,
	                                            &slp_op_transpose};
	for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
		if (n->op == moves[i]) return true;
	return false;
}

static bool is_zero(sl_tensor *t)
{
	double largest = 1;
	SL_SCOPE
		if (t && sl_tensor_size(t)) largest = sl_item(sl_max(sl_abs(t)));
	return largest == 0;
}

/* A state at first; "" for zeros, which ONNX makes for any number of rows. */
static const char *first_state(struct slp_onnx_writer *w, const struct slp_gnode *n, int i)
{
	const struct slp_gnode *made = &w->g->nodes[n->in[i].node];
	while (only_moves(made)) made = &w->g->nodes[made->in[0].node];
	bool zeros = made->op == &slp_op_fill && slp_export_number(made, "value", 0) == 0;
	if (made->kind == SLP_NODE_CONST || made->kind == SLP_NODE_PARAM) zeros = is_zero(made->tensor);
	return zeros ? "" : unsqueezed(w, slp_onnx_in(w, n, i));
}

void slp_onnx_export_recurrent(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	int kind = (int)slp_export_int(n, "cell", 0);
	const struct cell *c = &cells[kind];
	int64_t units = slp_onnx_shape_in(w, n, 1).dim[1];
	bool lstm = kind == SL_CELL_LSTM;
	struct product p = product_of(w, n);
	const char *bias = kind == SL_CELL_GRU && n->nin > 3 ? slp_onnx_in(w, n, 3) : NULL;
	const char *in[7] = {p.x,
	                     by_gates(w, c, p.weight, units, p.width),
	                     by_gates(w, c, slp_onnx_in(w, n, 1), units, units),
	                     biases(w, c, p.bias, bias, units, n->types[0].dtype),
	                     "",
	                     first_state(w, n, 2),
	                     lstm ? first_state(w, n, 3) : ""};
	const char *y = slp_onnx_node(w, c->name, false, lstm ? 7 : 6, in), *last = NULL;
	slp_onnx_int(w, "hidden_size", units);
	if (slp_export_int(n, "reverse", 0)) slp_onnx_string(w, "direction", "reverse");
	if (c->activation) slp_onnx_strings(w, "activations", c->activation);
	if (kind == SL_CELL_GRU) slp_onnx_int(w, "linear_before_reset", 1);
	if (lstm) slp_onnx_output(w), last = slp_onnx_output(w);
	squeezed(w, true, y, 1);
	if (lstm) slp_onnx_give_result(w, 1, squeezed(w, false, last, 0));
}

/* ---- along axes -------------------------------------------------------------------------------------------------- */

void slp_onnx_export_cumsum(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *axis = slp_onnx_number(w, slp_export_number(n, "axis", 0), SL_INT64);
	SLP_ONNX_NODE(w, "CumSum", true, slp_onnx_in(w, n, 0), axis);
	slp_onnx_int(w, "reverse", slp_export_int(n, "reverse", 0));
}

/* As many of the largest or smallest as there are. */
void slp_onnx_export_argsort(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	int64_t axis = slp_export_int(n, "axis", 0), count = n->types[0].shape.dim[axis];
	SLP_ONNX_NODE(w, "TopK", false, slp_onnx_in(w, n, 0), slp_onnx_list(w, &count, 1));
	slp_onnx_int(w, "axis", axis);
	slp_onnx_int(w, "largest", slp_export_int(n, "descending", 0));
	slp_onnx_write_cast(w, true, slp_onnx_output(w), n->types[0].dtype);
}

/* The largest or smallest truth value, as a number. */
void slp_onnx_export_truth(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *v =
	        slp_onnx_write_cast(w, false, slp_onnx_write_cast(w, false, slp_onnx_in(w, n, 0), SL_BOOL), SL_INT32);
	v = slp_onnx_write_reduced(w, n->op == &slp_op_any ? "ReduceMax" : "ReduceMin", false, v, n);
	slp_onnx_write_cast(w, true, v, n->types[0].dtype);
}

/* Rows added to zeros, where their indices say. */
void slp_onnx_export_gather_grad(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const int64_t last = -1;
	const char *where = slp_onnx_write_cast(w, false, slp_onnx_in(w, n, 1), SL_INT64);
	where = SLP_ONNX_NODE(w, "Unsqueeze", false, where, slp_onnx_list(w, &last, 1));
	const char *zeros = filled(w, n->types[0].shape, 0, n->types[0].dtype);
	SLP_ONNX_NODE(w, "ScatterND", true, zeros, where, slp_onnx_in(w, n, 0));
	slp_onnx_string(w, "reduction", "add");
}
