/* Batch normalisation with given statistics on an emulated GPU: a part of the layer before it, or of the elementwise
 * operations beside it; kernels are counted. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "emulated.h"
#include "graph/pass/pass.h"
#include "op_fused.h"
#include "op_list/binary.h"
#include "op_list/norm.h"
#include "program.h"

enum { N = 2 * 8 * 7 * 7 }; /* elements of the largest result */

#define NORMED                                                                                                         \
	"param a: float32 (6,)\nparam c: float32 (6,)\nparam m: float32 (6,)\nparam v: float32 (6,)\n"                 \
	"param w: float32 (6, 6, 3, 3)\n"

static sl_tensor *numbers(const struct slp_type *type, double from, double to)
{
	return sl_cast(sl_uniform(type->shape, from, to), type->dtype);
}

static sl_graph *network(const char *text)
{
	sl_graph *g = slp_program(text);
	for (int i = 0; i < g->count; i++)
		if (g->nodes[i].kind == SLP_NODE_PARAM)
			CHECK(sl_copy_(g->nodes[i].tensor, numbers(&g->nodes[i].types[0], 0.1, 1)));
	return g;
}

/* Expressions of images with channels last. */
static int count_last(const sl_graph *g)
{
	int n = 0;
	for (int i = 0; i < g->count; i++) {
		struct slp_fused_attrs f;
		if (!slp_node_is(&g->nodes[i], &slp_op_fused)) continue;
		memcpy(&f, g->nodes[i].attrs.bytes, sizeof f);
		n += slp_fused_is_nhwc(&f);
	}
	return n;
}

static int expressions_last; /* of the program that ran last */

/* Runs the program twice, the second time counted: its values, and the kernels of that run. */
static int run_network(sl_graph *g, unsigned off, sl_tensor *x, int norms, double *to)
{
	struct emu_counts c;
	sl_tensor *y[SLP_MAX_OUTPUTS];
	sl_plan *plan = sl_compile(g, .off = off);
	int left = 0;
	for (int i = 0; i < sl_plan_graph(plan)->count; i++)
		left += slp_node_is(&sl_plan_graph(plan)->nodes[i], &slp_op_batch_norm_infer);
	CHECK_SAYING(left == norms, "%d normalisations", left);
	expressions_last = count_last(sl_plan_graph(plan));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(sl_wait_all());
		emu_counts_reset();
		CHECK_OK(sl_plan_run(plan, &x, 1, y));
		CHECK_OK(sl_wait_all());
	}
	emu_counts_get(&c);
	CHECK_OK(sl_read(sl_cast(y[0], SL_FLOAT64), to, (size_t)sl_tensor_size(y[0]) * sizeof *to));
	sl_plan_free(plan);
	return (int)c.launches[0];
}

/* Elementwise beside other functions: one kernel, with the bits of several. */
static void check_expanded(const char *text, int norms, int kernels)
{
	static double one[N], two[N];
	SL_SCOPE {
		sl_graph *g = network(text);
		sl_tensor *x = sl_normal(g->nodes[g->inputs[0]].types[0].shape, 0, 1);
		size_t n = (size_t)sl_tensor_size(x);
		run_network(g, 1u << SL_PASS_CHAIN, x, 1, one);
		int found = run_network(g, 0, x, norms, two);
		CHECK_SAYING(found == kernels, "%s: %d kernels", text, found);
		CHECK_SAYING(!memcmp(one, two, n * sizeof *one), "%s: %.9g, %.9g", text, one[0], two[0]);
		sl_graph_free(g);
	}
}

static void test_expanded(void)
{
	check_expanded("input x: float32 (2, 6, 5, 4)\n" NORMED
	               "n = batch_norm_infer(x, a, c, m, v)\nreturn mul(n, sigmoid(n))",
	               0, 1);
	check_expanded("input x: float32 (2, 6, 5, 4)\n" NORMED
	               "return relu(batch_norm_infer(exp(x), a, c, m, v, eps=0.1))",
	               0, 1);
	check_expanded("input x: float32 (7, 6)\n" NORMED "return tanh(add(batch_norm_infer(x, a, c, m, v), x))", 0, 1);
	check_expanded("input x: float32 (7, 6)\n" NORMED "n = batch_norm_infer(x, a, c, m, v)\nreturn exp(n), n", 1,
	               3);
}

/* ---- half types, channels last ----------------------------------------------------------------------------------- */

#define VECTORS(type) "param a: " type " (6,)\nparam c: " type " (6,)\nparam m: " type " (6,)\nparam v: " type " (6,)\n"
#define SWISH "n = batch_norm_infer(x, a, c, m, v, eps=0.01)\nreturn mul(n, sigmoid(n))"

static void read_doubles(sl_tensor *t, double *to)
{
	CHECK_OK(sl_read(sl_cast(t, SL_FLOAT64), to, (size_t)sl_tensor_size(t) * sizeof *to));
}

/* The same in double precision; images of (2, 6, 5, 4). */
static void expected_swish(const sl_graph *g, sl_tensor *x, double *y)
{
	double vector[4][6];
	read_doubles(x, y);
	for (int i = 0, found = 0; i < g->count; i++)
		if (g->nodes[i].kind == SLP_NODE_PARAM) read_doubles(g->nodes[i].tensor, vector[found++]);
	for (int i = 0; i < 2 * 6 * 20; i++) {
		int c = i / 20 % 6;
		double n = (y[i] - vector[2][c]) / sqrt(vector[3][c] + 0.01) * vector[0][c] + vector[1][c];
		y[i] = n / (1 + exp(-n));
	}
}

/* One kernel, which rounds its result alone. */
static void check_half(const char *text, double digits)
{
	static double expected[N], found[N];
	SL_SCOPE {
		sl_graph *g = network(text);
		sl_tensor *x = numbers(&g->nodes[g->inputs[0]].types[0], -1, 1);
		expected_swish(g, x, expected);
		int kernels = run_network(g, 0, x, 0, found);
		CHECK_SAYING(kernels == 1, "%s: %d kernels", text, kernels);
		for (int i = 0; i < 2 * 6 * 20; i++)
			CHECK_SAYING(fabs(found[i] - expected[i]) <= digits * fabs(expected[i]) + 1e-6,
			             "%s, %d: %.9g, %.9g expected", text, i, found[i], expected[i]);
		sl_graph_free(g);
	}
}

static void test_halves(void)
{
	check_half("input x: bfloat16 (2, 6, 5, 4)\n" VECTORS("float32") SWISH, 0x1p-8);
	check_half("input x: float16 (2, 6, 5, 4)\n" VECTORS("float32") SWISH, 0x1p-11 + 1e-6);
	check_half("input x: bfloat16 (2, 6, 5, 4)\n" VECTORS("bfloat16") SWISH, 0x1p-8);
	check_half("input x: float16 (2, 6, 5, 4)\n" VECTORS("float16") SWISH, 0x1p-11 + 1e-6);
}

#define LAST(type)                                                                                                     \
	"input x: " type " (2, 8, 6, 7)\nparam w: " type " (8, 8, 3, 3)\nparam a: float32 (8,)\n"                      \
	"param c: float32 (8,)\nparam m: float32 (8,)\nparam v: float32 (8,)\n"                                        \
	"p = conv2d(x, w, pad=(1, 1))\nq = conv2d(p, w, pad=(1, 1))\n"                                                 \
	"n = batch_norm_infer(add(p, q), a, c, m, v, activation=relu)\n"                                               \
	"return conv2d(mul(n, sigmoid(n)), w, pad=(1, 1))"

/* Between convolutions whose images have channels last: one kernel instead of five. */
static void check_last(const char *text, double tolerance)
{
	static double one[N], two[N];
	double largest = 0;
	setenv("SL_CHANNELS_LAST", "8", 1);
	SL_SCOPE {
		sl_graph *g = network(text);
		sl_tensor *x = sl_mul_scalar(numbers(&g->nodes[g->inputs[0]].types[0], -1, 1), 0.1);
		int before = run_network(g, 1u << SL_PASS_CHAIN, x, 1, one), after = run_network(g, 0, x, 0, two);
		CHECK_SAYING(expressions_last == 1, "%d expressions with channels last", expressions_last);
		CHECK_SAYING(after == before - 4, "%d kernels, %d before", after, before);
		for (int i = 0; i < 2 * 8 * 6 * 7; i++) largest = fmax(largest, fabs(one[i]));
		for (int i = 0; i < 2 * 8 * 6 * 7; i++)
			CHECK_SAYING(fabs(one[i] - two[i]) <= tolerance * largest, "%d: %.9g, %.9g", i, one[i], two[i]);
		sl_graph_free(g);
	}
	unsetenv("SL_CHANNELS_LAST");
}

static void test_last(void)
{
	check_last(LAST("float32"), 0);
	check_last(LAST("bfloat16"), 3e-2);
	check_last(LAST("float16"), 4e-3);
}

/* A part of the convolution before it. */
static void test_folded(void)
{
	static double one[N], two[N];
	SL_SCOPE {
		sl_graph *g = network("input x: float32 (2, 6, 7, 7)\n" NORMED
		                      "return relu(batch_norm_infer(conv2d(x, w), a, c, m, v, eps=0.1))");
		sl_tensor *x = sl_normal(SL_SHAPE(2, 6, 7, 7), 0, 1);
		int before = run_network(g, 1u << SL_PASS_NORM, x, 1, one), after = run_network(g, 0, x, 0, two);
		CHECK_SAYING(after == before - 2, "%d kernels, %d before", after, before);
		for (int i = 0; i < 2 * 6 * 5 * 5; i++)
			CHECK_SAYING(fabs(one[i] - two[i]) <= 1e-5 * (1 + fabs(one[i])), "%d: %.9g, %.9g", i, one[i],
			             two[i]);
		sl_graph_free(g);
	}
}

static const struct slp_test tests[] = {{"expanded", test_expanded},
                                        {"half types", test_halves},
                                        {"channels last", test_last},
                                        {"folded", test_folded},
                                        {0}};

static void start(void)
{
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
}

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("SL_CUDA_GRAPHS", "0", 1); /* counts are of kernels */
	const struct slp_suite suites[] = {{.name = "norms", .tests = tests, .before = start, .after = slp_end_well},
	                                   {0}};
	return slp_test_main(argc, argv, suites);
}
