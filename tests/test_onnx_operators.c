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
#include "op_list.h"

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
        {"MatMul", "", "y = MatMul(a:i32[1,2]{65536 65536}, b:i32[2,1]{32768 32768})", "i32[1,1]{0}"},
        {"Cast", "", "y = Cast(a:i64[3]{4294967297 -1 300}, to=6)", "i32[3]{1 -1 300}"},
        {"Cast", "", "y = Cast(a:i32[3]{256 -1 300}, to=2)", "u8[3]{0 255 44}"},
        {"Cast", "", "y = Cast(a:i32[3]{128 -129 5}, to=3)", "i8[3]{-128 127 5}"},
        {"BitShift", "", "y = BitShift(a:u16[2]{40000 3}, b:u16[2]{1 14}, direction='LEFT')", "u16[2]{14464 49152}"},
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
		enum sl_status s = slp_onnx_write(SL_HERE, "case.onnx", g);
		sl_block *again = s == SL_OK ? sl_import_onnx("case.onnx") : NULL;
		if (CHECK_SAYING(again != NULL, "%s, written: %s", row->name, sl_error_message()))
			check_results(row, again, c);
		sl_block_free(again);
	}
	sl_graph_free(g);
}

static void run_case(const struct row *row, struct slp_case *c)
{
	sl_block *b = imported(c);
	if (CHECK_SAYING(b != NULL, "%s: %s", row->name, sl_error_message())) {
		check_results(row, b, c);
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
	check_refused("@0 y = Relu(x:f32[1]{1})", "opset_import has no entry for ai.onnx");
	check_refused("@6 y = Relu(x:f32[1]{1})", "needs operator set 6");
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"each operator", test_rows},
	                                        {"integers and edges", test_further},
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
