/* Programs for a device with little memory compute values again, in part, and sums early; their results keep the bits. */
#include <string.h>

#include "check.h"
#include "graph/offload.h"
#include "program.h"

/* So many operations are computed again over a fast link, and the results, with the parameters, have the same bits. */
static void check_recompute(int line, const char *text, int expected)
{
	const double fast = 1e18;
	sl_graph *g = slp_program(text), *h = slp_graph_copy(g);
	int repeated = -1;
	CHECK_OK(slp_offload_recompute(h, fast, (struct slp_offload_again){fast, fast, 1}, 1, &repeated));
	CHECK_SAYING(repeated == expected, "line %d: %d operations", line, repeated);
	CHECK_OK(slp_graph_verify(h));
	CHECK_SAYING(slp_graph_compare("recompute", g, h, 0) == SL_OK, "line %d: %s", line, sl_error_message());
	sl_graph_free(g);
	sl_graph_free(h);
}

static void test_recompute(void)
{
	slp_begin((struct sl_config){.teams = 1, .seed = 1});
	/* r needs a second batch_norm, and this a second exp; c needs one later. */
	check_recompute(__LINE__,
	                "input x: float32 (4, 3, 5, 5)\nparam g: float32 (3,)\nparam b: float32 (3,)\n"
	                "param m: float32 (3,)\nparam v: float32 (3,)\nc = exp(x)\nn = batch_norm(c, g, b, m, v)\n"
	                "r = relu(n[0])\ns = tanh(r)\nt = sigmoid(s)\nu = mul(t, r)\ny = mul(u, c)\nreturn y",
	                4);
	/* Through a view. */
	check_recompute(
	        __LINE__,
	        X "a = exp(x)\nb = reshape(a, shape=(6,))\nc = tanh(b)\nd = sigmoid(c)\ne = mul(d, b)\nreturn e", 1);
	/* w is another one by then; a result is kept. */
	check_recompute(__LINE__,
	                X "param w: float32 (2, 3)\na = mul(x, w)\nb = tanh(a)\nsgd(w, b, lr=0.5)\nc = sigmoid(b)\n"
	                  "d = exp(c)\ny = mul(a, d)\nreturn y",
	                0);
	check_recompute(__LINE__, X "a = exp(x)\nb = tanh(a)\nc = sigmoid(b)\nd = mul(c, a)\nreturn d, a", 0);
	slp_end_well();
}

/* Shares of the values that are made early (a) and late (c and d); a second c then needs a second b. */
static void test_shares(void)
{
	static const struct slp_offload_again none = {0, 0, 1}, early = {1e18, 0, 0.5}, late = {0, 1e18, 0.5},
	                                      both = {1e18, 1e18, 0.5};
	const struct {
		struct slp_offload_again which;
		int expected;
	} of[] = {{none, 0}, {early, 1}, {late, 2}, {both, 4}};
	slp_begin((struct sl_config){.teams = 1, .seed = 1});
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		sl_graph *g =
		        slp_program("input x: float32 (64, 64)\na = exp(x)\nb = tanh(a)\nc = sigmoid(b)\nd = exp(c)\n"
		                    "e = tanh(d)\nf = mul(e, c)\nh = sigmoid(f)\ny = mul(h, a)\nreturn y");
		int repeated = -1;
		CHECK_OK(slp_offload_recompute(g, 1e18, of[i].which, 1, &repeated));
		CHECK_SAYING(repeated == of[i].expected, "share %zu: %d operations", i, repeated);
		CHECK_OK(slp_graph_verify(g));
		sl_graph_free(g);
	}
	slp_end_well();
}

static int find_op(const sl_graph *g, const char *name)
{
	for (int i = 0; i < g->count; i++)
		if (g->nodes[i].kind == SLP_NODE_OP && !strcmp(g->nodes[i].op->name, name)) return i;
	return -1;
}

/* The sum comes so many nodes before the sigmoid, or after it; the bits stay. */
static void check_early(int line, const char *text, int before)
{
	sl_graph *g = slp_program(text), *h = slp_graph_copy(g);
	CHECK_OK(slp_offload_early(h));
	CHECK_OK(slp_graph_verify(h));
	int distance = find_op(h, "sigmoid") - find_op(h, "sum");
	CHECK_SAYING(distance == before, "line %d: %d", line, distance);
	CHECK_SAYING(slp_graph_compare("early", g, h, 0) == SL_OK, "line %d: %s", line, sl_error_message());
	sl_graph_free(g);
	sl_graph_free(h);
}

static void test_early(void)
{
	slp_begin((struct sl_config){.teams = 1, .seed = 1});
	check_early(__LINE__,
	            "input x: float32 (8, 8)\na = exp(x)\nb = tanh(a)\nc = sigmoid(b)\ns = sum(a)\nreturn c, s", 2);
	/* The parameter is another one before. */
	check_early(__LINE__,
	            "input x: float32 (8, 8)\nparam w: float32 (8, 8)\na = exp(x)\nc = sigmoid(a)\n"
	            "sgd(w, c, lr=0.5)\ns = sum(w)\nreturn c, s",
	            -2);
	/* It is not small beside its argument. */
	check_early(__LINE__,
	            "input x: float32 (2, 3)\na = exp(x)\nb = tanh(a)\nc = sigmoid(b)\ns = sum(a)\nreturn c, s", -1);
	slp_end_well();
}

static const struct slp_test tests[] = {
        {"computed again", test_recompute},
        {"shares computed again", test_shares},
        {"sums", test_early},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "offload again", .tests = tests}, {0}});
}
