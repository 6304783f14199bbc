/* Each ONNX operator that is read: the answer of its case in src/onnx/operators.def, node by node,
 * compiled, and after writing it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "folder.h"
#include "onnx/export/writer.h"
#include "onnx/read.h"
#include "onnx/write.h"
#include "onnx_case.h"
#include "op_inner.h"
#include "op_list/all.h"

static const struct row {
	const char *name, *attributes, *program, *answer;
} rows[] = {
#define OP(onnx, function, min, max, known, attributes, program, answer) {#onnx, attributes, program, answer},
#include "onnx/operators.def"
};

static struct {
	const struct sl_op *op;
	bool seen;
} written[] = {
#define WRITE(ours, function, name) {&slp_op_##ours, false},
#include "onnx/operators.def"
};

/* Further ones: integers that do not fit wrap, in the declared type; edges. */
static const struct row further[] = {
        {"Add", "", "y = Add(a:i8[3]{127 -128 100}, b:i8[3]{1 -1 100})", "i8[3]{-128 127 -56}"},
        {"Mul", "", "y = Mul(a:i8[2]{100 -100}, b:i8[2]{100 3})", "i8[2]{16 -44}"},
        {"Mul", "", "y = Mul(a:u8[2]{200 16}, b:u8[1]{16})", "u8[2]{128 0}"},
        {"Sub", "", "y = Sub(a:u8[2]{1 200}, b:u8[1]{2})", "u8[2]{255 198}"},
        {"Sub", "", "y = Sub(a:u32[2]{1 4294967295}, b:u32[1]{2})", "u32[2]{4294967295 4294967293}"},
        {"Add", "", "y = Add(a:i16[2]{32767 -32768}, b!i16[1]{2})", "i16[2]{-32767 -32766}"},
        {"Add", "", "y = Add(a:i32[2]{2147483647 5}, b!i32[1]{2})", "i32[2]{-2147483647 7}"},
        {"Neg", "", "y = Neg(a:i32[2]{-2147483648 5})", "i32[2]{-2147483648 -5}"},
        {"Sum", "", "y = Sum(a:i32[1]{2147483647}, b:i32[1]{2147483647}, c:i32[1]{3})", "i32[1]{1}"},
        {"ReduceProd", "", "y = ReduceProd(a:i32[1,2]{65536 65537}, x!i64[1]{1}, keepdims=0)", "i32[1]{65536}"},
        {"CumSum", "", "y = CumSum(a:i32[3]{2147483647 1 1}, x!i64[]{0})",
         "i32[3]{2147483647 -2147483648 -2147483647}"},
        {"Add", "", "y = Add(a:i64[2]{9223372036854775807 5}, b:i64[1]{1})", "i64[2]{-9223372036854775808 6}"},
        {"Mul", "", "y = Mul(a:i64[2,1]{4294967296 3}, b:i64[2]{4294967296 2})",
         "i64[2,2]{0 8589934592 12884901888 6}"},
        {"Sub", "", "y = Sub(a:u64[2]{0 5}, b!u64[1]{1})", "u64[2]{18446744073709551615 4}"},
        {"Mul", "", "y = Mul(a:u32[2]{4294967295 3}, b:u32[1]{4294967295})", "u32[2]{1 4294967293}"},
        {"Greater", "", "y = Greater(a:u64[2]{18446744073709551615 1}, b:u64[1]{2})", "b[2]{1 0}"},
        {"Max", "", "y = Max(a:u64[2]{18446744073709551615 1}, b:u64[1]{2})", "u64[2]{18446744073709551615 2}"},
        {"Cast", "", "y = Cast(a:u64[2]{18446744073709551615 7}, to=1)", "f32[2]{1.8446744e19 7}"},
        {"Cast", "", "y = Cast(a:f64[2]{9.5e18 7.5}, to=13)", "u64[2]{9500000000000000000 7}"},
        {"Cast", "", "y = Cast(a:i16[3]{-1 300 -32768}, to=4)", "u16[3]{65535 300 32768}"},
        {"MatMul", "", "y = MatMul(a:i32[1,2]{65536 65536}, b:i32[2,1]{32768 32768})", "i32[1,1]{0}"},
        {"MatMul", "", "y = MatMul(a:i32[1,2]{1073741825 -1073741825}, b:i32[2,1]{2147483646 2147483642})",
         "i32[1,1]{4}"},
        {"Cast", "", "y = Cast(a:i64[3]{4294967297 -1 300}, to=6)", "i32[3]{1 -1 300}"},
        {"Cast", "", "y = Cast(a:i32[3]{256 -1 300}, to=2)", "u8[3]{0 255 44}"},
        {"Cast", "", "y = Cast(a:i32[3]{128 -129 5}, to=3)", "i8[3]{-128 127 5}"},
        {"BitShift", "", "y = BitShift(a:u16[2]{40000 3}, b:u16[2]{1 14}, direction='LEFT')", "u16[2]{14464 49152}"},
        {"BitShift", "", "y = BitShift(a:i32[3]{-8 4 -1}, b:i32[3]{-1 -32 -64}, direction='RIGHT')", "i32[3]{-1 0 -1}"},
        {"BitShift", "", "y = BitShift(a:u64[2]{9223372036854775808 3}, b:u64[2]{63 64}, direction='RIGHT')",
         "u64[2]{1 0}"},
        {"BitShift", "", "y = BitShift(a:u64[2]{3 3}, b:u64[2]{63 64}, direction='LEFT')",
         "u64[2]{9223372036854775808 0}"},
        {"Clip", "", "y = Clip(a:u64[3]{1 5 9223372036854775808}, l!u64[]{3}, h!u64[]{9223372036854777856})",
         "u64[3]{3 5 9223372036854775808}"},
        {"CumSum", "", "y = CumSum(a:i64[3]{9223372036854774784 1024 1}, x!i64[]{0})",
         "i64[3]{9223372036854774784 -9223372036854775808 -9223372036854775807}"},
        {"CumSum", "", "e = Exp(a:f32[3]{0 1000 0}); y = CumSum(e, x!i64[]{0}, exclusive=1)", "f32[3]{0 1 inf}"},
        {"Mod", "", "y = Mod(a:f32[4]{5 -5 5 -5}, b:f32[4]{1e39 1e39 -1e39 3}, fmod=1)", "f32[4]{5 -5 5 -2}"},
        {"BitwiseNot", "", "y = BitwiseNot(a:i8[2]{-128 5})", "i8[2]{127 -6}"},
        {"Reshape", "", "t = Reshape(a:i8[2]{127 1}, s!i64[2]{2 1}); y = Add(t, t)", "i8[2,1]{-2 2}"},
        {"Add", "", "s = Shape(a:u8[2]{200 100}); t = Cast(s, to=2); y = Add(a, t)", "u8[2]{202 102}"},
        {"Where", "", "w = Where(c:b[2]{1 0}, a:u8[2]{200 1}, b:u8[2]{3 100}); y = Add(w, w)", "u8[2]{144 200}"},
        {"If", "",
         "y = If(c!b[]{1}, then_branch=(-> d: d = Identity(x)), else_branch=(-> e: e = Neg(x))); "
         "z = Add(y, x:u8[1]{200})",
         "u8[1]{144}"},
        {"Slice", "", "y = Slice(x:f32[4]{1 2 3 4}, b!i64[1]{-9}, e!i64[1]{-10}, a!i64[1]{0}, s!i64[1]{-1})",
         "f32[1]{1}"}, /* the start is within the axis, as the format says */
        {"Slice", "", "y = Slice(x:f32[4]{1 2 3 4}, b!i64[1]{-9}, e!i64[1]{2}, a!i64[1]{0}, s!i64[1]{-1})", "f32[0]{}"},
        {"Slice", "", "y = Slice(x:f32[4]{1 2 3 4}, b!i64[1]{9}, e!i64[1]{-9}, a!i64[1]{0}, s!i64[1]{-3})",
         "f32[2]{4 1}"},
        {"LpNormalization", "", "y = LpNormalization(x:f32[2,2]{0 0 -1 3}, axis=1, p=1)", "f32[2,2]{0 0 -0.25 0.75}"},
        {"Attention", "",
         "y = Attention(q:f32[1,1,2,2]~1, k:f32[1,1,2,2]~2, v:f32[1,1,2,2]{1 2 3 4}, m:b[2,2]{0 0 0 1})",
         "f32[1,1,2,2]{0 0 3 4}"},
        {"Attention", "", "y = Attention(q:f32[1,2,2,4]~1, k:f32[1,2,3,4]~2, v:f32[1,2,3,4]~3)",
         "f32[1,2,2,4]{0.2409833 -0.03857454 0.6115506 -0.2063088 0.07721169 0.1521771 0.4974809 "
         "-0.2487335 -0.2574559 0.425942 0.2845356 -0.01840858 -0.02660182 0.6642188 -0.01269 0.3800704}"},
        {"Attention", "",
         "y nk nv s = Attention(q:f32[1,2,4]~1, k:f32[1,3,4]~2, v:f32[1,3,4]~3, m:f32[2,5]~4, "
         "pk:f32[1,2,2,2]~5, pv:f32[1,2,2,2]~6, q_num_heads=2, kv_num_heads=2, is_causal=1, softcap=1.5, "
         "qk_matmul_output_mode=1)",
         "f32[1,2,4]{0.1028875 0.6602766 0.3046315 -0.06673036 0.4105314 0.2294146 0.348286 0.4487616}; "
         "f32[1,2,5,2]{1 -0.875 0.875 -0.875 -0.75 -0.25 -0.75 0 0.25 -1.125 1 -0.625 -1 -0.125 -0.875 "
         "-0.25 -0.375 0.5 1.125 -0.125}; f32[1,2,5,2]{0 0.5 -0.125 0.5 0.625 1.125 0.625 -1 -0.75 0.25 "
         "0 0.75 0.375 -1.125 0.5 1.125 1 -0.5 0.125 -1.125}; f32[1,2,2,5]{-0.2838011 -0.3050464 "
         "-0.262437 -0.1322383 -0.5287359 -0.429583 -0.4497811 -0.3050464 -0.1322383 -0.6941985 "
         "-0.2409626 -0.1541336 -0.2085625 0.2301865 0.03314024 0.7535057 -0.3575872 -0.2301865 "
         "-0.4598139 0.547986}"},
        {"RotaryEmbedding", "",
         "y = RotaryEmbedding(x:f32[1,2,8]~1, c:f32[4,1]~2, s:f32[4,1]~3, p:i64[1,2]{3 1}, num_heads=2, "
         "interleaved=1, rotary_embedding_dim=2)",
         "f32[1,2,8]{-0.90625 0.09375 0.125 0.75 -1.1875 0.03125 0.625 -0.875 0.421875 -1.234375 -0.25 "
         "0.875 0.0625 1.046875 -0.125 -1.125}"},
        {"LpPool", "",
         "y = LpPool(x:f32[1,1,5,4]~1, kernel_shape=[2 2], strides=[2 2], pads=[1 0 0 1], ceil_mode=1, p=2)",
         "f32[1,1,3,2]{0.7905694 0.7603453 1.530931 1.408678 1.408678 1.530931}"},
        {"Hardmax", "", "y = Hardmax(x:f32[2,3,2]~1, axis=1)", "f32[2,3,2]{1 0 0 0 0 1 1 0 0 0 0 1}"},
        {"CumProd", "", "@26 y = CumProd(x:f32[5]{1 2 3 4 5}, a!i64[]{0})", "f32[5]{1 2 6 24 120}"},
        {"ReverseSequence", "", "y = ReverseSequence(x:f32[2,4,2]~1, n:i64[2]{3 1}, time_axis=1, batch_axis=0)",
         "f32[2,4,2]{0.25 1 0.125 0.75 0.25 0.75 0.625 -0.875 -1.125 -0.125 -0.25 0.875 0.875 -0.25 "
         "-0.125 -1.125}"},
        {"CenterCropPad", "", "y = CenterCropPad(x:f32[5,2]~1, s!i64[1]{2}, axes=[0])", "f32[2,2]{0.125 0.75 0.25 1}"},
        {"SpaceToDepth", "", "@28 y = SpaceToDepth(x:f32[1,2,2,2]~1, blocksize=2, mode='CRD')",
         "f32[1,8,1,1]{0.25 0.75 0.125 0.75 0.25 1 0.625 -0.875}"},
        {"Swish", "", "@24 y = Swish(x:f32[3]{-1 0.5 2})", "f32[3]{-0.2689414 0.3112297 1.761594}"},
        {"FusedMatMul", "", "y = com.microsoft.FusedMatMul(a:f32[2,2,3]~1, b:f32[2,4,3]~2, transB=1, alpha=2.0)",
         "f32[2,2,4]{-0.96875 -1.25 0.625 1.09375 -3 -0.75 0.1875 -1.375 0.40625 0.28125 1.875 1.03125 "
         "-2.5 -0.96875 -0.0625 -0.96875}"},
        {"LSTM", "",
         "@22 y h c = LSTM(x:f32[3,2,2]~1, w:f32[2,8,2]~2, r:f32[2,8,2]~3, b:f32[2,16]~4, n:i32[2]{3 2}, "
         "k:f32[2,2,2]~5, d:f32[2,2,2]~6, p:f32[2,6]~7, hidden_size=2, direction='bidirectional', "
         "activations=['HardSigmoid' 'Softsign' 'Tanh' 'Sigmoid' 'ScaledTanh' 'Relu'], activation_alpha=[0.3 1.5], "
         "activation_beta=[0.4 0.5], clip=0.8)",
         "f32[3,2,2,2]{-0.04727802 0.2276133 -0.0659264 0.2144029 0.3587747 0 0.2239396 0 0.01830217 0.07961499 "
         "-0.04980277 0.04183781 0.2935348 0 0 0 -0.07218023 0.1443169 0 0 0.1586957 0.09854829 0 0}; "
         "f32[2,2,2]{-0.07218023 0.1443169 -0.04980277 0.04183781 0.3587747 0 0.2239396 0}; "
         "f32[2,2,2]{-0.2434414 0.256269 -0.3219481 0.1826499 0.5199826 -0.1575791 0.3515366 -0.09200635}"},
        {"LSTM", "",
         "@22 y h c = LSTM(x:f32[2,1,2]~1, w:f32[1,8,2]~2, r:f32[1,8,2]~3, -, -, -, -, p:f32[1,6]~7, hidden_size=2)",
         "f32[2,1,1,2]{0.1010054 -0.02145801 0.1187388 0.01147001}; f32[1,1,2]{0.1187388 0.01147001}; "
         "f32[1,1,2]{0.2936358 0.01893068}"},
        {"LSTM", "", "@22 y h c = LSTM(x:f32[2,1,2]~1, w:f32[1,8,2]~2, r:f32[1,8,2]~3, hidden_size=2, input_forget=1)",
         "f32[2,1,1,2]{0.1208847 -0.02128714 0.1974772 0.01181878}; f32[1,1,2]{0.1974772 0.01181878}; "
         "f32[1,1,2]{0.416935 0.01928477}"},
        {"GRU", "",
         "@22 y h = GRU(x:f32[2,1,2]~1, w:f32[1,6,2]~2, r:f32[1,6,2]~3, hidden_size=2, "
         "activations=['HardSigmoid' 'Elu'], clip=0.7)",
         "f32[2,1,1,2]{-0.2894634 0.1089844 -0.4109688 0.03122884}; f32[1,1,2]{-0.4109688 0.03122884}"},
        {"RNN", "",
         "@22 y h = RNN(x:f32[2,1,2]~1, w:f32[1,2,2]~2, r:f32[1,2,2]~3, hidden_size=2, activations=['LeakyRelu'], "
         "activation_alpha=[0.2])",
         "f32[2,1,1,2]{-0.075 -0.08125 -0.08390626 -0.08515625}; f32[1,1,2]{-0.08390626 -0.08515625}"},
        {"Resize", "",
         "@18 y = Resize(x:f32[1,1,4,4]~1, r!f32[8]{0 0 0.4 0.6 1 1 1.2 1.7}, -, s!i64[4]{1 1 3 3}, mode='linear', "
         "coordinate_transformation_mode='tf_crop_and_resize', extrapolation_value=10.0)",
         "f32[1,1,3,3]{0.5149999 10 10 -0.195 10 10 10 10 10}"},
        {"Attention", "",
         "@24 y = Attention(q:f32[2,1,2,4]~1, k:f32[2,1,3,4]~2, v:f32[2,1,3,4]~3, -, -, -, n:i64[2]{3 2}, is_causal=1)",
         "f32[2,1,2,4]{0.625 -0.1504002 0.8000941 0.149694 0.07721169 0.1521771 0.4974809 -0.2487335 -1.125 0.125 "
         "0.25 -0.75 -0.6739105 0.7565253 -0.6521789 0.2423969}"},
        {"Add", "", "@6 y = Add(a:f32[2,2,1]{1 2 3 4}, b:f32[2]{10 20}, axis=0, broadcast=1)",
         "f32[2,2,1]{11 12 23 24}"},
        {"Add", "", "@6 y = Add(a:f32[2,2]{1 2 3 4}, b:f32[2]{10 20}, broadcast=1)", "f32[2,2]{11 22 13 24}"},
        {"PRelu", "", "@6 y = PRelu(x:f32[1,2,2]{-1 -2 -3 4}, s:f32[2]{10 20})", "f32[1,2,2]{-10 -20 -60 4}"},
        {"Abs", "", "@1 y = Abs(x:f32[2]{-1 2}, consumed_inputs=[0])", "f32[2]{1 2}"},
        {"Cast", "", "@5 y = Cast(x:f32[2]{-1.5 2}, to='INT32')", "i32[2]{-1 2}"},
        {"Compress", "", "y = Compress(x:f32[3,2]~1, c:b[3]{0 1 1})", "f32[2]{0.75 0.125}"},
        {"Unique", "", "y i r n = Unique(x:f32[6]{2 1 1 3 4 3}, sorted=0)",
         "f32[4]{2 1 3 4}; i64[4]{0 1 3 4}; i64[6]{0 1 1 2 3 2}; i64[4]{1 2 2 1}"},
        {"Div", "", "y = Div(c!f32[]{2}, x:f32[3]{4 0.5 -1})", "f32[3]{0.5 4 -2}"},
        {"Pow", "", "y = Pow(c!f32[]{2}, x:f32[3]{3 0.5 -1})", "f32[3]{8 1.414214 0.5}"},
        {"ReduceL1", "", "@18 y = ReduceL1(x:f32[2,2]{1 -2 3 -4}, noop_with_empty_axes=1)", "f32[2,2]{1 2 3 4}"},
        {"ReduceSumSquare", "", "@18 y = ReduceSumSquare(x:f32[2]{1 -2}, noop_with_empty_axes=1)", "f32[2]{1 4}"},
        {"ReduceSum", "", "@18 y = ReduceSum(x:f32[2]{1 -2}, noop_with_empty_axes=1)", "f32[2]{1 -2}"},
        {"ReduceMax", "",
         "@20 e = Greater(x:f32[2,2]{1 2 3 -4}, z!f32[]{2}); y = ReduceMax(e, a!i64[1]{1}, keepdims=0)", "b[2]{0 1}"},
        {"ReduceMin", "",
         "@20 e = Slice(x:i64[1]{5}, b!i64[1]{1}, c!i64[1]{1}); y = ReduceMin(e, a!i64[1]{0}, keepdims=0)",
         "i64[]{9223372036854775807}"},
        {"ReduceMin", "", "@20 e = Greater(x:f32[2,2]{1 2 3 4}, z!f32[]{2}); y = ReduceMin(e, a!i64[1]{1}, keepdims=0)",
         "b[2]{0 1}"},
};

static void compare(const struct row *row, const struct slp_case_tensor *wanted, sl_tensor *y)
{
	char a[128], b[128];
	sl_shape s = sl_tensor_shape(y);
	double scale = 1, worst = 0;
	if (!CHECK_SAYING(sl_shape_equal(s, wanted->shape) && sl_tensor_dtype(y) == slp_case_dtype(wanted->type),
	                  "%s: %s of %s, not %s of %s", row->name, sl_shape_string(s, a),
	                  sl_dtype_name(sl_tensor_dtype(y)), sl_shape_string(wanted->shape, b), wanted->type))
		return;
	if (!wanted->v) return;
	int64_t n = sl_shape_size(s);
	double *got = malloc(((size_t)n + 1) * sizeof *got);
	SL_SCOPE
		CHECK_OK(sl_read(sl_cast_at(SL_HERE, y, SL_FLOAT64), got, (size_t)n * sizeof *got));
	for (int64_t i = 0; i < n; i++)
		if (isfinite(wanted->v[i])) scale = fmax(scale, fabs(wanted->v[i]));
	for (int64_t i = 0; i < n; i++) {
		double w = wanted->v[i], d = isfinite(w)                                  ? fabs(got[i] - w)
		                             : got[i] == w || (isnan(w) && isnan(got[i])) ? 0
		                                                                          : INFINITY;
		if (!(d <= worst)) worst = isnan(d) ? INFINITY : d;
	}
	CHECK_SAYING(worst <= 2e-5 * scale, "%s: differs by %g of %g; the first is %g, not %g", row->name, worst, scale,
	             n ? got[0] : 0, n ? wanted->v[0] : 0);
	free(got);
}

static void check_results(const struct row *row, sl_block *b, struct slp_case *c)
{
	sl_tensor *out[SLP_CASE_MOST] = {NULL};
	const char *answer = row->answer;
	enum sl_status s = sl_forward_all_at(SL_HERE, b, c->in, c->nin, out, c->nout);
	if (!CHECK_SAYING(s == SL_OK, "%s: %s", row->name, sl_error_message())) {
		sl_error_clear();
		return;
	}
	for (int i = 0; i < c->nout; i++) {
		struct slp_case_tensor wanted;
		if (CHECK_SAYING(slp_case_tensor_parse(&answer, &wanted), "%s: no answer for result %d", row->name, i))
			compare(row, &wanted, out[i]);
		free(wanted.v);
	}
	CHECK_SAYING(!*answer, "%s: more answers than results", row->name);
}

static sl_block *imported(const struct slp_case *c)
{
	struct slp_file f = {
	        .at = SL_HERE, .function = "sl_import_onnx", .path = "x.onnx", .data = c->bytes, .size = c->size};
	return slp_import_onnx_parse(&f, (struct sl_import_onnx_opts){0});
}

/* Functions of bits, which the operator set that is written lacks. */
static bool is_of_bits(const struct slp_gnode *n)
{
	return n->op == &slp_op_modular && *(const int *)(const void *)n->attrs.bytes > SLP_MODULAR_MUL;
}

/* Notes the operations of a program; whether all can be written. */
static bool look(const sl_graph *g)
{
	bool all = true;
	for (int i = 0; i < g->count; i++) {
		if (g->nodes[i].kind != SLP_NODE_OP) continue;
		size_t k = 0;
		while (k < sizeof written / sizeof *written && written[k].op != g->nodes[i].op) k++;
		if (k < sizeof written / sizeof *written) written[k].seen = true;
		else all = false;
		if (is_of_bits(&g->nodes[i])) all = false;
	}
	return all;
}

/* What was read, written, and read again. */
static void check_round_trip(const struct row *row, sl_block *b, struct slp_case *c)
{
	sl_shape shapes[SLP_CASE_MOST];
	enum sl_dtype dtypes[SLP_CASE_MOST];
	for (int i = 0; i < c->nin; i++) shapes[i] = sl_tensor_shape(c->in[i]), dtypes[i] = sl_tensor_dtype(c->in[i]);
	struct sl_export_opts o = {.shapes = shapes, .nshapes = c->nin, .dtypes = dtypes, .ndtypes = c->nin};
	sl_graph *g = slp_export_trace(SL_HERE, "sl_export_onnx", b, &o);
	if (!CHECK_SAYING(g != NULL, "%s: %s", row->name, sl_error_message())) return;
	if (look(g)) {
		enum sl_status s = slp_onnx_write(SL_HERE, "case.onnx", NULL, g);
		sl_block *again = s == SL_OK ? sl_import_onnx("case.onnx") : NULL;
		if (CHECK_SAYING(again != NULL, "%s, written: %s", row->name, sl_error_message()))
			check_results(row, again, c);
		sl_block_free(again);
	}
	sl_graph_free(g);
}

/* The sizes of results depend on values: the network runs node by node, and a program of it is refused by name. */
static bool reads_values(const char *name)
{
	static const char *const names[] = {"Compress",        "Unique",  "NonMaxSuppression",
	                                    "TfIdfVectorizer", "BitCast", "Det"};
	size_t i = 0;
	while (i < sizeof names / sizeof *names && strcmp(names[i], name)) i++;
	return i < sizeof names / sizeof *names;
}

static void check_no_program(const struct row *row, sl_block *b, struct slp_case *c)
{
	sl_tensor *out[SLP_CASE_MOST] = {NULL};
	CHECK_OK(sl_hybridize(b));
	enum sl_status s = sl_forward_all_at(SL_HERE, b, c->in, c->nin, out, c->nout);
	const char *says = sl_error_message();
	CHECK_SAYING(s == SL_ESTATE && strstr(says, row->name) && strstr(says, "depends on values that a run computes"),
	             "%s: %s", row->name, says);
	sl_error_clear();
	CHECK_OK(sl_hybridize(b, .fallback = true));
	check_results(row, b, c);
}

static void run_case(const struct row *row, struct slp_case *c)
{
	sl_block *b = imported(c);
	if (!CHECK_SAYING(b != NULL, "%s: %s", row->name, sl_error_message())) {
		sl_error_clear();
		return;
	}
	check_results(row, b, c);
	if (reads_values(row->name)) {
		check_no_program(row, b, c);
	} else {
		check_round_trip(row, b, c);
		CHECK_OK(sl_hybridize(b));
		check_results(row, b, c);
	}
	sl_error_clear();
	sl_block_free(b);
}

static void check_row(const struct row *row)
{
	struct slp_case c;
	char call[80];
	snprintf(call, sizeof call, "%s(", row->name);
	const char *at = strstr(row->program, call);
	bool there = at && at > row->program && (at[-1] == ' ' || at[-1] == '.');
	if (!CHECK_SAYING(there && row->answer[0], "operator %s has no case in src/onnx/operators.def", row->name))
		return;
	SL_SCOPE {
		if (CHECK_SAYING(slp_case_parse(row->program, &c), "%s: its case cannot be read", row->name))
			run_case(row, &c);
		slp_case_free(&c);
	}
}

/* TEST_ONNX=NAME looks at one operator. */
static void test_rows(void)
{
	const char *only = getenv("TEST_ONNX");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!only || !strcmp(only, rows[i].name)) check_row(&rows[i]);
}

static void test_further(void)
{
	for (size_t i = 0; i < sizeof further / sizeof *further; i++) check_row(&further[i]);
}

/* Operations that no file makes us compute: in blocks of our own. */
static sl_tensor *logarithm(sl_tensor *x)
{
	return sl_add(sl_log1p(sl_abs(x)), sl_clone(x));
}

static sl_tensor *ones_beside(sl_tensor *x)
{
	double one = 1;
	return sl_mul(sl_exp(x), slp_apply1(SL_HERE, &slp_op_full_like, &one, 1, (sl_tensor *[]){x}));
}

static sl_block *ready(sl_block *net)
{
	CHECK_OK(sl_initialize(net));
	return net;
}

static void write_block(sl_block *net, sl_shape shape, bool training)
{
	SL_SCOPE {
		sl_tensor *x = sl_uniform(shape, -1, 1), *y = sl_forward(net, x);
		struct sl_export_opts o = {.shapes = &shape, .nshapes = 1, .training = training};
		sl_graph *g = slp_export_trace(SL_HERE, "sl_export_onnx", net, &o);
		if (CHECK_SAYING(g && look(g), "%s", sl_error_message())) {
			CHECK_OK(slp_onnx_write(SL_HERE, "block.onnx", NULL, g));
			sl_block *again = sl_import_onnx("block.onnx");
			sl_tensor *z = again ? sl_forward(again, x) : NULL;
			if (CHECK_SAYING(z != NULL, "%s", sl_error_message()))
				CHECK(sl_item(sl_max(sl_abs(sl_sub(y, z)))) < 1e-5);
			sl_block_free(again);
		}
		sl_graph_free(g);
		sl_error_clear();
		sl_block_free(net);
	}
}

static void test_blocks(void)
{
	write_block(sl_lambda("logarithm", logarithm), SL_SHAPE(2, 3), false);
	write_block(sl_lambda("ones", ones_beside), SL_SHAPE(2, 3), false);
	write_block(ready(sl_dropout_layer(0.5)), SL_SHAPE(2, 3), true);
	write_block(ready(sl_batch_norm_layer()), SL_SHAPE(2, 3, 4, 4), true);
}

/* After the others: each operation that can be written is in one of their programs. */
static void test_written(void)
{
	for (size_t i = 0; i < sizeof written / sizeof *written; i++)
		CHECK_SAYING(written[i].seen || getenv("TEST_ONNX"), "operation %s is written by no case",
		             written[i].op->name);
}

/* All results of a model are the block's, however many there are. */
static void test_many_results(void)
{
	enum { COUNT = 30 };
	struct slp_case c;
	char text[1024] = "";
	for (int i = 0; i < COUNT; i++) snprintf(text + strlen(text), sizeof text - strlen(text), "y%d ", i);
	snprintf(text + strlen(text), sizeof text - strlen(text), "= Split(x:f32[%d]~1, num_outputs=%d)", COUNT, COUNT);
	SL_SCOPE {
		sl_tensor *out[COUNT + 1];
		CHECK(slp_case_parse(text, &c));
		sl_block *b = imported(&c);
		CHECK(b && sl_forward_most(b, c.in, 1, out, COUNT + 1) == COUNT);
		CHECK_OK(b ? sl_hybridize(b) : sl_error());
		CHECK(b && sl_forward_most(b, c.in, 1, out, COUNT + 1) == COUNT);
		for (int i = 0; b && i < COUNT; i++)
			CHECK(sl_item(out[i]) == sl_item(sl_slice(c.in[0], 0, i, i + 1, 1)));
		sl_block_free(b);
		slp_case_free(&c);
	}
}

static void check_refused(const char *program, const char *says)
{
	struct slp_case c;
	SL_SCOPE {
		CHECK(slp_case_parse(program, &c));
		sl_block *b = imported(&c);
		CHECK_SAYING(!b && strstr(sl_error_message(), says), "%s: %s", program, sl_error_message());
		sl_error_clear();
		sl_block_free(b);
		slp_case_free(&c);
	}
}

/* An attribute that the operator lacks would change the result; a model must say what its operators are. */
static void test_refused(void)
{
	check_refused("y = Relu(x:f32[1]{1}, slope=2)", "attribute \"slope\", which Relu");
	check_refused("y = Add(x:f32[1]{1}, x, axis=0)", "attribute \"axis\", which Add");
	check_refused("@7 y = Add(x:f32[1]{1}, x, broadcast=1)", "attribute \"broadcast\", which Add");
	check_refused("@0 y = Relu(x:f32[1]{1})", "opset_import has no entry for ai.onnx");
	check_refused("@29 y = Relu(x:f32[1]{1})", "needs operator set 29");
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"each operator", test_rows},
	                                        {"integers and edges", test_further},
	                                        {"blocks", test_blocks},
	                                        {"operations that are written", test_written},
	                                        {"many results", test_many_results},
	                                        {"models that are refused", test_refused},
	                                        {NULL, NULL}};
	static const struct slp_suite suites[] = {
	        {"onnx operators", tests, slp_start_with_scratch, slp_stop_with_scratch, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
