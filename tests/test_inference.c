/* Programs that do not go back: norm, block and hoisting.  Plans say what the program says node by node. */
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "../codelets/common/blocks.h"
#include "graph/pass/pass.h"
#include "graph/plan.h"
#include "program.h"

static int count_op(const sl_graph *g, const char *name)
{
	int n = 0;
	for (int i = 0; i < g->count; i++) n += slp_node_is(&g->nodes[i], slp_op_find(name));
	return n;
}

/* Parsed; its parameters are numbers that can be variances, too. */
static sl_graph *network(const char *text)
{
	sl_graph *g = slp_program(text);
	sl_seed(8);
	for (int i = 0; i < g->count; i++) {
		if (g->nodes[i].kind != SLP_NODE_PARAM) continue;
		SL_SCOPE
			sl_copy_(g->nodes[i].tensor, sl_uniform(g->nodes[i].types[0].shape, 0.1, 1));
	}
	return g;
}

/* The plan and the program give the same for a new input. */
static void check_same(sl_plan *plan, const sl_graph *g, const char *text)
{
	SL_SCOPE {
		sl_tensor *x = sl_normal(g->nodes[g->inputs[0]].types[0].shape, 0, 1), *a[4] = {NULL}, *b[4] = {NULL};
		CHECK_OK(slp_graph_evaluate(g, &x, 1, a));
		CHECK_OK(sl_plan_run(plan, &x, 1, b));
		for (int i = 0; i < g->noutputs; i++) {
			CHECK_SAYING(slp_compare("plan", text, a[i], b[i], 1e-5) == SL_OK, "%s", sl_error_message());
			sl_release(a[i]);
		}
	}
}

/* Compiled, each pass checked; free the plan. */
static sl_plan *check_network(const char *text)
{
	sl_graph *g = network(text);
	sl_plan *plan = sl_compile(g, .check = true);
	CHECK_SAYING(plan != NULL, "%s: %s", text, sl_error_message());
	if (plan) check_same(plan, g, text);
	sl_graph_free(g);
	return plan;
}

/* ---- norm -------------------------------------------------------------------------------------------------------- */

#define NORMED "param a: float32 (6,)\nparam c: float32 (6,)\nparam m: float32 (6,)\nparam v: float32 (6,)\n"
#define DENSE "input x: float32 (3, 4)\nparam w: float32 (6, 4)\nparam b: float32 (6,)\n" NORMED

static void test_norm(void)
{
	static const struct {
		const char *text;
		int norms; /* that stay */
	} cases[] = {
	        {"input x: float32 (3, 4, 5, 5)\nparam w: float32 (6, 2, 3, 3)\n" NORMED
	         "h = conv2d(x, w, groups=2)\nreturn relu(batch_norm_infer(h, a, c, m, v, eps=0.1))",
	         0},
	        {"input x: float32 (2, 4, 3, 5, 5)\nparam w: float32 (6, 4, 2, 3, 3)\n" NORMED
	         "h = conv3d(x, w)\nreturn relu(batch_norm_infer(h, a, c, m, v, eps=0.1))",
	         0},
	        {DENSE "h = linear(x, w, b, tw=true)\nreturn batch_norm_infer(h, a, c, m, v)", 0},
	        {DENSE "h = linear(x, w, b, tw=true)\nreturn batch_norm_infer(h, a, c, m, v), h",
	         1}, /* others need it */
	        {DENSE "h = linear(x, w, b, tw=true)\nn = batch_norm_infer(h, a, c, m, v)\nsgd(b, a, lr=1)\nreturn n",
	         1},
	        {DENSE "h = linear(x, w, b, tw=true, activation=relu)\nreturn batch_norm_infer(h, a, c, m, v)", 1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sl_graph *g = network(cases[i].text), *h = slp_graph_copy(g);
		CHECK_OK(slp_pass_norm(h));
		CHECK_OK(slp_graph_compare("norm", g, h, 1e-5));
		CHECK_SAYING(count_op(h, "batch_norm_infer") == cases[i].norms, "case %d", (int)i);
		sl_graph_free(g);
		sl_graph_free(h);
	}
}

/* ---- block ------------------------------------------------------------------------------------------------------- */

#define NORM(x, p) "batch_norm_infer(" x ", " p "g, " p "b, " p "m, " p "v)"
#define NORM_PARAMS(p, c)                                                                                              \
	"param " p "g: float32 (" c ",)\nparam " p "b: float32 (" c ",)\nparam " p "m: float32 (" c ",)\n"             \
	"param " p "v: float32 (" c ",)\n"

/* How many reorders and convolutions in blocks the plan has, where this machine has blocks. */
static void check_blocks(const char *text, int convolutions, int additions, int reorders)
{
	sl_plan *plan = check_network(text);
	const sl_graph *g = plan ? sl_plan_graph(plan) : NULL;
	bool has = slp_block_size() == 16;
	if (g && has) {
		CHECK_SAYING(count_op(g, "conv2d_blocked") == convolutions, "%s: %d", text,
		             count_op(g, "conv2d_blocked"));
		CHECK_SAYING(count_op(g, "conv2d_blocked_add") == additions, "%s", text);
		CHECK_SAYING(count_op(g, "to_blocks") + count_op(g, "from_blocks") == reorders, "%s: %d, %d", text,
		             count_op(g, "to_blocks"), count_op(g, "from_blocks"));
		CHECK(count_op(g, "conv2d_pack") == 0 && count_op(g, "norm_fold") == 0); /* hoisted */
	}
	sl_plan_free(plan);
}

static void test_block(void)
{
	/* A residual of odd channels, with everything that joins; odd batches and sizes. */
	check_blocks(
	        "input x: float32 (3, 3, 17, 15)\nparam w: float32 (24, 3, 3, 3)\nparam b: float32 (24,)\n"
	        "param u: float32 (24, 24, 1, 1)\n" NORM_PARAMS(
	                "n",
	                "24") "c = conv2d(x, w, b, stride=(2, 2), pad=(1, 1))\nr = maximum_scalar(minimum_scalar(c, "
	                      "value=6), value=0)\n"
	                      "d = conv2d(relu(conv2d(r, u)), u)\ne = " NORM(
	                              "d",
	                              "n") "\ns = add(r, e)\np = max_pool2d(relu(s), kernel=(3, 3), stride=(2, 2))\n"
	                                   "return avg_pool2d(p, type=1, kernel=(2, 3), pad=(1, 1), exclude_pad=true)",
	        2, 1, 1);
	/* One channel a group; a normalisation by itself, with relu; several images. */
	check_blocks("input x: float32 (1, 32, 9, 9)\nparam w: float32 (40, 32, 1, 1)\nparam d: float32 (40, 1, 3, "
	             "3)\n" NORM_PARAMS(
	                     "n", "40") "c = conv2d(x, w)\ne = conv2d(c, d, groups=40, pad=(1, 1), dilation=(2, 2))\n"
	                                "q = max_pool2d(e, kernel=(2, 2))\nreturn relu(" NORM("q", "n") ")",
	             2, 0, 2);
	/* Groups of whole blocks, by Winograd's algorithm, joined along channels. */
	check_blocks(
	        "input x: float32 (2, 64, 12, 13)\nparam w: float32 (64, 64, 3, 3)\nparam u: float32 (32, 32, 3, 3)\n"
	        "c = conv2d(x, w, pad=(1, 1), activation=identity)\nd = conv2d(x, u, groups=2, pad=(1, 1))\n"
	        "e = concat(c, d, c, axis=1)\nreturn avg_pool2d(e, type=1, global=true)",
	        2, 0, 2);
	/* Half a block of channels between others; by itself it stays plain. */
	check_blocks("input x: float32 (2, 3, 9, 7)\nparam w: float32 (16, 3, 3, 3)\nparam u: float32 (8, 16, 1, 1)\n"
	             "param t: float32 (24, 8, 1, 1)\n"
	             "return relu(conv2d(conv2d(relu(conv2d(x, w)), u), t))",
	             3, 0, 1);
	check_blocks("input x: float32 (2, 16, 9, 7)\nparam u: float32 (8, 16, 1, 1)\nreturn conv2d(x, u)", 0, 0, 0);
}

/* The kernel of the program's last convolution in blocks. */
static const int *last_kernel(const sl_graph *g)
{
	const int *kernel = NULL;
	for (int i = 0; i < g->count; i++)
		if (slp_node_is(&g->nodes[i], slp_op_find("conv2d_blocked")))
			kernel = ((const struct slp_conv2d_blocked_attrs *)(const void *)g->nodes[i].attrs.bytes)
			                 ->kernel;
	return kernel;
}

/* Taps that only meet padding are left out. */
static void test_taps(void)
{
	static const struct {
		const char *image, *weights, *options;
		int kernel[2];
	} cases[] = {
	        {"2, 2", "32, 1, 7, 7", "groups=32, pad=(3, 3)", {3, 3}},
	        {"2, 9", "32, 1, 7, 7", "groups=32, pad=(3, 3)", {3, 7}},
	        {"1, 1", "32, 1, 5, 5", "groups=32, pad=(2, 2), stride=(2, 2)", {1, 1}},
	        {"4, 3", "32, 1, 5, 5", "groups=32, pad=(2, 2), stride=(2, 2)", {5, 5}},
	        {"3, 3", "32, 1, 3, 3", "groups=32, pad=(1, 1)", {3, 3}},
	        {"5, 4", "16, 32, 3, 3", "pad=(12, 12), dilation=(12, 12)", {1, 1}},
	        {"5, 4", "16, 32, 3, 3", "pad=(4, 4), dilation=(4, 4)", {3, 1}},
	        {"1, 6",
	         "16, 32, 3, 3",
	         "pad=(3, 2), dilation=(2, 2)",
	         {0, 0}} /* whole rows of padding: perhaps no kernel */,
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[400];
		snprintf(text, sizeof text,
		         "input x: float32 (2, 32, %s)\nparam u: float32 (32, 32, 1, 1)\nparam w: float32 (%s)\n"
		         "return relu(conv2d(conv2d(x, u), w, %s))",
		         cases[i].image, cases[i].weights, cases[i].options);
		sl_plan *plan = check_network(text);
		const int *kernel = plan && slp_block_size() == 16 ? last_kernel(sl_plan_graph(plan)) : NULL;
		if (kernel && cases[i].kernel[0])
			CHECK_SAYING(kernel[0] == cases[i].kernel[0] && kernel[1] == cases[i].kernel[1], "%s: %d x %d",
			             text, kernel[0], kernel[1]);
		if (plan) CHECK_SAYING(count_op(sl_plan_graph(plan), "slice") == 0, "%s", text); /* hoisted */
		sl_plan_free(plan);
	}
}

/* Volumes: layers are further rows; a residual, a norm by itself, a concatenation, results in blocks. */
static void test_block_volumes(void)
{
	check_blocks(
	        "input x: float32 (2, 3, 5, 9, 7)\nparam w: float32 (16, 3, 3, 3, 3)\n"
	        "param u: float32 (16, 16, 3, 1, 1)\n" NORM_PARAMS(
	                "n", "16") "r = relu(conv3d(x, w, pad=(1, 1), stride=(2, 2), depth_pad=1))\n"
	                           "d = conv3d(r, u, depth_pad=1)\ne = conv3d(d, u, depth_pad=1)\ns = relu(add(e, r))\n"
	                           "return relu(" NORM("s", "n") ")",
	        2, 1, 1);
	check_blocks("input x: float32 (1, 32, 4, 6, 6)\nparam z: float32 (1, 32, 4, 6, 6)\n"
	             "param w: float32 (32, 32, 1, 3, 3)\nparam u: float32 (16, 32, 3, 1, 1)\n"
	             "c = conv3d(x, w, pad=(1, 1))\nd = conv3d(mul(c, z), u, depth_pad=1, depth_stride=2)\n"
	             "e = conv3d(c, u, depth_pad=1, depth_stride=2)\nf = concat(d, e, axis=1)\n"
	             "return maximum_scalar(minimum_scalar(f, value=6), value=0), sum(c, axes=(2, 3, 4))",
	             3, 0, 4);
}

static void test_block_not(void)
{
	/* Few channels; what must be in the plain order; a program that learns. */
	check_blocks("input x: float32 (2, 3, 8, 8)\nparam w: float32 (6, 3, 3, 3)\nreturn conv2d(x, w)", 0, 0, 0);
	check_blocks("input x: float32 (2, 3, 8, 8)\nparam w: float32 (16, 3, 3, 3)\nc = conv2d(x, w)\n"
	             "return sigmoid(c), sum(c, axes=(2, 3))",
	             1, 0, 2);
	sl_graph *g = network("input x: float32 (2, 3, 8, 8)\nparam w: float32 (16, 3, 3, 3)\nparam b: float32 (16,)\n"
	                      "c = conv2d(x, w, b)\nsgd(b, sum(c, axes=(0, 2, 3)), lr=1)\nreturn sum(c)");
	CHECK_OK(slp_pass_block(g));
	CHECK(count_op(g, "conv2d") == 1 && count_op(g, "conv2d_blocked") == 0);
	sl_graph_free(g);
	/* A sum whose other side is what the convolution reads: it may not lie over it. */
	check_blocks("input x: float32 (1, 16, 5, 5)\nparam w: float32 (16, 16, 1, 1)\nr = conv2d(x, w)\n"
	             "return add(r, conv2d(r, w))",
	             2, 0, 2);
}

/* ---- hoisting ---------------------------------------------------------------------------------------------------- */

/* What is kept of parameters follows them. */
static void test_written(void)
{
	static const char text[] = "input x: float32 (1, 16, 6, 6)\nparam w: float32 (32, 16, 3, 3)\n" NORM_PARAMS(
	        "n", "32") "c = conv2d(x, w)\nreturn max_pool2d(" NORM("c", "n") ", kernel=(2, 2))";
	sl_graph *g = network(text);
	sl_plan *plan = sl_compile(g);
	float *zeros = calloc(32 * 16 * 9, sizeof *zeros);
	check_same(plan, g, text);
	for (int i = 0; i < g->count; i++) {
		if (g->nodes[i].kind != SLP_NODE_PARAM) continue;
		SL_SCOPE
			sl_mul_scalar_(g->nodes[i].tensor, 1.5);
		check_same(plan, g, text);
		CHECK_OK(sl_write(g->nodes[i].tensor, zeros, sl_tensor_bytes(g->nodes[i].tensor)));
		check_same(plan, g, text);
	}
	free(zeros);
	sl_plan_free(plan);
	sl_graph_free(g);
}

static const struct slp_test tests[] = {
        {"norm", test_norm},
        {"block", test_block},
        {"taps that only meet padding", test_taps},
        {"volumes in blocks", test_block_volumes},
        {"not blocks", test_block_not},
        {"written", test_written},
        {0},
};

static void clear(void)
{
	sl_error_clear();
}

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             {.name = "inference",
	                              .tests = tests,
	                              .start = slp_start_engine,
	                              .stop = slp_stop_engine,
	                              .after = clear},
	                             {0},
	                     });
}
