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
#include "op_list/norm.h"
#include "program.h"

enum { N = 2 * 6 * 7 * 7 }; /* elements of the largest result */

#define NORMED                                                                                                         \
	"param a: float32 (6,)\nparam c: float32 (6,)\nparam m: float32 (6,)\nparam v: float32 (6,)\n"                 \
	"param w: float32 (6, 6, 3, 3)\n"

static sl_graph *network(const char *text)
{
	sl_graph *g = slp_program(text);
	for (int i = 0; i < g->count; i++)
		if (g->nodes[i].kind == SLP_NODE_PARAM)
			CHECK(sl_copy_(g->nodes[i].tensor, sl_uniform(g->nodes[i].types[0].shape, 0.1, 1)));
	return g;
}

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

static const struct slp_test tests[] = {{"expanded", test_expanded}, {"folded", test_folded}, {0}};

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
