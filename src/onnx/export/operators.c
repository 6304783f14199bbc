/* Operations of Starling as ONNX operators, of operator set 17. */
#include <string.h>

#include "io/elements.h"
#include "onnx/export/writer.h"
#include "op_inner.h"
#include "op_list/all.h"

/* ---- elementwise ------------------------------------------------------------------------------------------------- */

/* The names in an operation's row. */
static const char *onnx_name(const struct slp_gnode *n);

/* Operators that ONNX has for floats alone: of integers these do nothing, and relu is a maximum. */
static bool same_of_integers(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	if (slp_is_float(n->types[0].dtype)) return false;
	if (n->op == &slp_op_relu)
		SLP_ONNX_NODE(w, "Max", true, slp_onnx_in(w, n, 0), slp_onnx_number(w, 0, n->types[0].dtype));
	else if (n->op == &slp_op_floor || n->op == &slp_op_ceil || n->op == &slp_op_round)
		SLP_ONNX_NODE(w, "Identity", true, slp_onnx_in(w, n, 0));
	else return false;
	return true;
}

void slp_onnx_export_same(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *in[2];
	if (same_of_integers(w, n)) return;
	for (int i = 0; i < n->nin && i < 2; i++) in[i] = slp_onnx_in(w, n, i);
	slp_onnx_node(w, onnx_name(n), true, n->nin, in);
}

/* The second operand: a tensor, or a number. */
static const char *right(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	if (n->nin > 1) return slp_onnx_in(w, n, 1);
	return slp_onnx_number(w, slp_export_number(n, "value", 0), n->types[0].dtype);
}

void slp_onnx_export_scalar(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	SLP_ONNX_NODE(w, onnx_name(n), true, slp_onnx_in(w, n, 0), right(w, n));
}

void slp_onnx_export_swapped(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	SLP_ONNX_NODE(w, onnx_name(n), true, right(w, n), slp_onnx_in(w, n, 0));
}

static void cast_to(struct slp_onnx_writer *w, const struct slp_gnode *n, const char *value)
{
	slp_onnx_write_cast(w, true, value, n->types[0].dtype);
}

/* Integers of the format wrap.  Its operator set 17 has no operators of their bits. */
void slp_onnx_export_modular(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	static const char *const names[SLP_MODULAR_KINDS] = {
	        [SLP_MODULAR_ADD] = "Add", [SLP_MODULAR_SUB] = "Sub", [SLP_MODULAR_MUL] = "Mul"};
	int kind = (int)slp_export_number(n, "kind", 0);
	if (!names[kind]) slp_onnx_fail(w, SL_EUNSUPPORTED, "operator set 17 has no functions of bits");
	else SLP_ONNX_NODE(w, names[kind], true, slp_onnx_in(w, n, 0), slp_onnx_in(w, n, 1));
}

/* With a number that no integer is, as float64. */
static const char *compared(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	double s = n->nin > 1 ? 0 : slp_export_number(n, "value", 0);
	const char *x = slp_onnx_in(w, n, 0);
	if (slp_can_hold(n->types[0].dtype, s)) return SLP_ONNX_NODE(w, onnx_name(n), false, x, right(w, n));
	x = slp_onnx_write_cast(w, false, x, SL_FLOAT64);
	return SLP_ONNX_NODE(w, onnx_name(n), false, x, slp_onnx_number(w, s, SL_FLOAT64));
}

void slp_onnx_export_compare(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *v = compared(w, n);
	if (n->op == &slp_op_ne || n->op == &slp_op_ne_scalar) v = SLP_ONNX_NODE(w, "Not", false, v);
	cast_to(w, n, v);
}

static const char *as_bool(struct slp_onnx_writer *w, const char *value)
{
	return slp_onnx_write_cast(w, false, value, SL_BOOL);
}

/* Of one value or of two, which are booleans in ONNX, as the result is. */
void slp_onnx_export_logical(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *a = as_bool(w, slp_onnx_in(w, n, 0));
	if (n->nin < 2) {
		cast_to(w, n, SLP_ONNX_NODE(w, "Not", false, a));
		return;
	}
	cast_to(w, n, SLP_ONNX_NODE(w, onnx_name(n), false, a, as_bool(w, slp_onnx_in(w, n, 1))));
}

/* A number that no test finds infinite or NaN is finite. */
void slp_onnx_export_finiteness(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *x = slp_onnx_in(w, n, 0);
	if (!slp_is_float(n->types[0].dtype)) x = slp_onnx_write_cast(w, false, x, SL_FLOAT32);
	const char *nan = SLP_ONNX_NODE(w, "IsNaN", false, x);
	if (n->op == &slp_op_isnan) {
		cast_to(w, n, nan);
		return;
	}
	const char *v = SLP_ONNX_NODE(w, "Or", false, nan, SLP_ONNX_NODE(w, "IsInf", false, x));
	cast_to(w, n, SLP_ONNX_NODE(w, "Not", false, v));
}

/* Of a condition and a value: this, or 0. */
void slp_onnx_export_choice(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *c = as_bool(w, slp_onnx_in(w, n, 0)), *x = slp_onnx_in(w, n, 1);
	const char *zero = slp_onnx_number(w, 0, n->types[0].dtype);
	bool when = n->op == &slp_op_take_if;
	SLP_ONNX_NODE(w, "Where", true, c, when ? x : zero, when ? zero : x);
}

void slp_onnx_export_rsqrt(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	SLP_ONNX_NODE(w, "Reciprocal", true, SLP_ONNX_NODE(w, "Sqrt", false, slp_onnx_in(w, n, 0)));
}

void slp_onnx_export_log1p_of(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *one = slp_onnx_number(w, 1, n->types[0].dtype);
	SLP_ONNX_NODE(w, "Log", true, SLP_ONNX_NODE(w, "Add", false, slp_onnx_in(w, n, 0), one));
}

void slp_onnx_export_expm1_of(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *v = SLP_ONNX_NODE(w, "Exp", false, slp_onnx_in(w, n, 0));
	SLP_ONNX_NODE(w, "Sub", true, v, slp_onnx_number(w, 1, n->types[0].dtype));
}

void slp_onnx_export_silu(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *x = slp_onnx_in(w, n, 0);
	SLP_ONNX_NODE(w, "Mul", true, x, SLP_ONNX_NODE(w, "Sigmoid", false, x));
}

void slp_onnx_export_square(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	SLP_ONNX_NODE(w, "Mul", true, slp_onnx_in(w, n, 0), slp_onnx_in(w, n, 0));
}

/* x (1 + erf(x / √2)) / 2; a single operator came with a later operator set. */
void slp_onnx_export_gelu(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	enum sl_dtype d = n->types[0].dtype;
	const char *x = slp_onnx_in(w, n, 0);
	const char *v = SLP_ONNX_NODE(w, "Mul", false, x, slp_onnx_number(w, 0.7071067811865476, d));
	v = SLP_ONNX_NODE(w, "Erf", false, v);
	v = SLP_ONNX_NODE(w, "Add", false, v, slp_onnx_number(w, 1, d));
	v = SLP_ONNX_NODE(w, "Mul", false, v, slp_onnx_number(w, 0.5, d));
	SLP_ONNX_NODE(w, "Mul", true, v, x);
}

/* x times the sigmoid of 2 sqrt(2 / π) (x + 0.044715 x^3). */
void slp_onnx_export_gelu_tanh(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	enum sl_dtype d = n->types[0].dtype;
	const char *x = slp_onnx_in(w, n, 0), *v = SLP_ONNX_NODE(w, "Mul", false, x, x);
	v = SLP_ONNX_NODE(w, "Mul", false, v, slp_onnx_number(w, 0.07135481627260025, d));
	v = SLP_ONNX_NODE(w, "Add", false, v, slp_onnx_number(w, 1.5957691216057308, d));
	v = SLP_ONNX_NODE(w, "Sigmoid", false, SLP_ONNX_NODE(w, "Mul", false, v, x));
	SLP_ONNX_NODE(w, "Mul", true, v, x);
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

void slp_onnx_export_linear(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *in[3];
	bool tw = slp_export_int(n, "tw", 0);
	for (int i = 0; i < n->nin && i < 3; i++) in[i] = slp_onnx_in(w, n, i);
	if (slp_onnx_shape_in(w, n, 0).ndim == 2) {
		slp_onnx_node(w, "Gemm", true, n->nin, in);
		slp_onnx_int(w, "transB", tw);
		return;
	}
	if (tw) in[1] = slp_onnx_write_transposed(w, in[1], 2);
	const char *v = slp_onnx_node(w, "MatMul", n->nin < 3, 2, in);
	if (n->nin == 3) SLP_ONNX_NODE(w, "Add", true, v, in[2]);
}

/* Borders: at the start of both axes, at their end. */
static void pads(struct slp_onnx_writer *w, const int64_t pad[2])
{
	slp_onnx_ints(w, "pads", (const int64_t[]){pad[0], pad[1], pad[0], pad[1]}, 4);
}

void slp_onnx_export_conv2d(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
	int64_t v[2];
	const char *in[3];
	sl_shape kernel = slp_onnx_shape_in(w, n, 1);
	for (int i = 0; i < n->nin && i < 3; i++) in[i] = slp_onnx_in(w, n, i);
	slp_onnx_node(w, "Conv", true, n->nin, in);
	slp_onnx_ints(w, "kernel_shape", &kernel.dim[2], 2);
	slp_export_pair(n, "stride", ones, v);
	slp_onnx_ints(w, "strides", v, 2);
	slp_export_pair(n, "dilation", ones, v);
	slp_onnx_ints(w, "dilations", v, 2);
	slp_export_pair(n, "pad", zeros, v);
	pads(w, v);
	slp_onnx_int(w, "group", (int64_t)slp_export_or(n, "groups", 1));
}

void slp_onnx_export_pool(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	struct slp_pooling p = slp_export_pooling(n);
	bool mean = n->op == &slp_op_avg_pool2d;
	if (slp_export_int(n, "global", 0)) {
		SLP_ONNX_NODE(w, mean ? "GlobalAveragePool" : "GlobalMaxPool", true, slp_onnx_in(w, n, 0));
		return;
	}
	SLP_ONNX_NODE(w, mean ? "AveragePool" : "MaxPool", true, slp_onnx_in(w, n, 0));
	slp_onnx_ints(w, "kernel_shape", p.kernel, 2);
	slp_onnx_ints(w, "strides", p.stride, 2);
	pads(w, p.pad);
	slp_onnx_int(w, "ceil_mode", slp_export_int(n, "ceil", 0));
	if (mean) slp_onnx_int(w, "count_include_pad", !slp_export_int(n, "exclude_pad", 0));
}

void slp_onnx_export_batch_norm(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *in[5];
	for (int i = 0; i < 5; i++) in[i] = slp_onnx_in(w, n, i);
	slp_onnx_node(w, "BatchNormalization", true, 5, in);
	slp_onnx_float(w, "epsilon", slp_export_or(n, "eps", 1e-5));
}

void slp_onnx_export_layer_norm(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	SLP_ONNX_NODE(w, "LayerNormalization", true, slp_onnx_in(w, n, 0), slp_onnx_in(w, n, 1), slp_onnx_in(w, n, 2));
	slp_onnx_int(w, "axis", -1);
	slp_onnx_float(w, "epsilon", slp_export_or(n, "eps", 1e-5));
}

void slp_onnx_export_softmax(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	SLP_ONNX_NODE(w, onnx_name(n), true, slp_onnx_in(w, n, 0));
	slp_onnx_int(w, "axis", slp_export_int(n, "axis", 0));
}

/* ---- moving elements --------------------------------------------------------------------------------------------- */

void slp_onnx_export_reshape(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	sl_shape codes = slp_export_reshape(n, slp_onnx_shape_in(w, n, 0), n->types[0].shape, 0);
	SLP_ONNX_NODE(w, "Reshape", true, slp_onnx_in(w, n, 0), slp_onnx_list(w, codes.dim, codes.ndim));
}

void slp_onnx_export_transpose(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	int64_t axes[SL_MAX_NDIM];
	slp_export_permutation(n, n->types[0].shape.ndim, axes);
	SLP_ONNX_NODE(w, "Transpose", true, slp_onnx_in(w, n, 0));
	slp_onnx_ints(w, "perm", axes, n->types[0].shape.ndim);
}

static const char *one(struct slp_onnx_writer *w, int64_t v)
{
	return slp_onnx_list(w, &v, 1);
}

void slp_onnx_export_slice(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	int64_t begin, end;
	memcpy(&begin, n->attrs.bytes + slp_attr_find(n->op, "begin")->offset, sizeof begin);
	memcpy(&end, n->attrs.bytes + slp_attr_find(n->op, "end")->offset, sizeof end);
	SLP_ONNX_NODE(w, "Slice", true, slp_onnx_in(w, n, 0), one(w, begin), one(w, end),
	              one(w, slp_export_int(n, "axis", 0)), one(w, slp_export_int(n, "step", 0)));
}

void slp_onnx_export_concat(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	enum { MOST = 512 };
	const char *in[MOST];
	if (n->nin > MOST) {
		slp_onnx_fail(w, SL_EUNSUPPORTED, "more than %d inputs", MOST);
		return;
	}
	for (int i = 0; i < n->nin; i++) in[i] = slp_onnx_in(w, n, i);
	slp_onnx_node(w, "Concat", true, n->nin, in);
	slp_onnx_int(w, "axis", slp_export_int(n, "axis", 0));
}

void slp_onnx_export_broadcast_to(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	sl_shape x = slp_onnx_shape_in(w, n, 0), y = n->types[0].shape;
	for (int i = 0; i < x.ndim; i++)
		if (x.dim[i] == y.dim[y.ndim - x.ndim + i]) y.dim[y.ndim - x.ndim + i] = 1; /* as it is */
	SLP_ONNX_NODE(w, "Expand", true, slp_onnx_in(w, n, 0), slp_onnx_list(w, y.dim, y.ndim));
}

void slp_onnx_export_gather(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	SLP_ONNX_NODE(w, "Gather", true, slp_onnx_in(w, n, 0), slp_onnx_in(w, n, 1));
	slp_onnx_int(w, "axis", 0);
}

/* Of all types that it might take, runtimes know this one best: int64 indices, float values. */
void slp_onnx_export_one_hot(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	bool is_float = n->types[0].dtype == SL_FLOAT32;
	const char *depth = one(w, slp_export_int(n, "depth", 0)), *first = one(w, 0);
	const char *off = SLP_ONNX_NODE(w, "Unsqueeze", false, slp_onnx_number(w, 0, SL_FLOAT32), first);
	const char *on = SLP_ONNX_NODE(w, "Unsqueeze", false, slp_onnx_number(w, 1, SL_FLOAT32), first);
	const char *values = SLP_ONNX_NODE(w, "Concat", false, off, on);
	slp_onnx_int(w, "axis", 0);
	const char *indices = slp_onnx_write_cast(w, false, slp_onnx_in(w, n, 0), SL_INT64);
	const char *v = SLP_ONNX_NODE(w, "OneHot", is_float, indices, depth, values);
	if (!is_float) cast_to(w, n, v);
}

void slp_onnx_export_cast(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	cast_to(w, n, slp_onnx_in(w, n, 0));
}

/* ---- products and reductions ------------------------------------------------------------------------------------- */

void slp_onnx_export_matmul(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *a = slp_onnx_in(w, n, 0), *b = slp_onnx_in(w, n, 1);
	if (slp_export_int(n, "ta", 0)) a = slp_onnx_write_transposed(w, a, slp_onnx_shape_in(w, n, 0).ndim);
	if (slp_export_int(n, "tb", 0)) b = slp_onnx_write_transposed(w, b, slp_onnx_shape_in(w, n, 1).ndim);
	SLP_ONNX_NODE(w, "MatMul", true, a, b);
}

void slp_onnx_export_reduce(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	slp_onnx_write_reduced(w, onnx_name(n), true, slp_onnx_in(w, n, 0), n);
}

void slp_onnx_export_argmax(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	const char *v = SLP_ONNX_NODE(w, "ArgMax", false, slp_onnx_in(w, n, 0));
	slp_onnx_int(w, "axis", slp_export_int(n, "axis", 0));
	slp_onnx_int(w, "keepdims", 0);
	cast_to(w, n, v);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static void filled(struct slp_onnx_writer *w, const struct slp_gnode *n, const char *shape)
{
	SLP_ONNX_NODE(w, "ConstantOfShape", true, shape);
	slp_onnx_value(w, "value", slp_export_number(n, "value", 0), n->types[0].dtype);
}

void slp_onnx_export_full_like(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	filled(w, n, SLP_ONNX_NODE(w, "Shape", false, slp_onnx_in(w, n, 0)));
}

void slp_onnx_export_fill(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	filled(w, n, slp_onnx_list(w, n->types[0].shape.dim, n->types[0].shape.ndim));
}

void slp_onnx_export_arange(struct slp_onnx_writer *w, const struct slp_gnode *n)
{
	double start = slp_export_number(n, "start", 0), step = slp_export_number(n, "step", 0);
	double stop = start + step * ((double)n->types[0].shape.dim[0] - (slp_is_float(n->types[0].dtype) ? 0.5 : 0));
	enum sl_dtype d = n->types[0].dtype;
	SLP_ONNX_NODE(w, "Range", true, slp_onnx_number(w, start, d), slp_onnx_number(w, stop, d),
	              slp_onnx_number(w, step, d));
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const struct written {
	const struct sl_op *ours;
	slp_onnx_export *export;
	const char *name;
} written[] = {
#define WRITE(ours, function, name) {&slp_op_##ours, slp_onnx_export_##function, #name},
#include "onnx/operators.def"
};

static const struct written *find(const struct sl_op *ours)
{
	for (size_t i = 0; i < sizeof written / sizeof *written; i++)
		if (written[i].ours == ours) return &written[i];
	return NULL;
}

slp_onnx_export *slp_onnx_export_for(const struct sl_op *ours)
{
	const struct written *w = find(ours);
	return w ? w->export : NULL;
}

static const char *onnx_name(const struct slp_gnode *n)
{
	return find(n->op)->name;
}
