/* Passes of the graph compiler: what each makes of small programs, and that random programs compute the same after
 * it. */
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "graph/pass/pass.h"
#include "number.h"
#include "program.h"

static void clear(void)
{
	sl_wait_all();
	sl_error_clear();
}

static void test_table(void)
{
	for (int i = 0; i < SL_PASSES; i++) {
		CHECK(slp_passes[i].name && slp_passes[i].doc);
	}
}

/* ---- infer ------------------------------------------------------------------------------------------------------- */

static void test_infer(void)
{
	sl_graph *g =
	        sl_graph_parse("input x: float32 (4, 2, 3)\na = reshape(x, shape=(-2, -1))\nb = sum(a, axes=(-1,))\n"
	                       "return b");
	CHECK_OK(slp_passes[SL_PASS_INFER].run(g));
	CHECK_PROGRAM(g, "input x: float32 (4, 2, 3)\n"
	                 "a = reshape(x, shape=(-2, -1)): float32 (4, 6)\n" /* the codes stay */
	                 "b = sum(a, axes=(-1,)): float32 (4,)\n"
	                 "return b\n");
	g->nodes[0].types[0].shape.dim[0] = 7; /* another batch */
	CHECK_OK(slp_passes[SL_PASS_INFER].run(g));
	CHECK(g->nodes[1].types[0].shape.dim[0] == 7 && g->nodes[2].types[0].shape.dim[0] == 7);
	sl_graph_free(g);
}

static void test_infer_errors(void)
{
	sl_graph *g = sl_graph_parse("input x\nreturn relu(x)");
	CHECK_FAILS(slp_passes[SL_PASS_INFER].run(g), SL_ESHAPE, "'x' has no shape", "line 1");
	sl_graph_free(g);
	g = sl_graph_parse("input x: float32 (2, 3)\ny = dot(x, x)\nreturn y");
	CHECK_FAILS(slp_passes[SL_PASS_INFER].run(g), SL_ESHAPE, "dot", "line 2", "(2, 3)");
	sl_graph_free(g);
}

/* ---- dead -------------------------------------------------------------------------------------------------------- */

static void test_dead(void)
{
	EXACT(DEAD,
	      XY "param w: float32 (3,)\nparam u: float32 (3,)\nconst c: float32 (1,) = 1\n"
	         "a = relu(x)\nb = add(a, c)\nd = neg(a)\nsgd(w, w, lr=0.5)\nreturn d",
	      XY "param w: float32 (3,)\na = relu(x)\nd = neg(a)\nsgd(w, w, lr=0.5)\nreturn d");
	SAME(DEAD, X "param w: float32 (3,)\nbn = batch_norm(x, w, w, w, w)\nreturn bn[2]");
}

/* ---- fold -------------------------------------------------------------------------------------------------------- */

/* The tutorial's program. */
static void test_fancy_func(void)
{
	EXACT(FOLD, "e = add(1, 2)\nf = add(3, 4)\ng = add(e, f)\nreturn g", "const g: float32 () = 10\nreturn g");
}

static void test_fold(void)
{
	EXACT(FOLD, X "const c: float32 (3,) = [1, 2, 3]\nd = mul_scalar(c, value=2)\ny = add(x, square(d))\nreturn y",
	      X "const square: float32 (3,) = [4, 16, 36]\ny = add(x, square)\nreturn y");
	EXACT(FOLD,
	      X "a = arange(shape=(3,), step=1)\nf = fill(shape=(2, 3), value=4)\ny = add(add(x, f), a)\nreturn y",
	      X "const a: float32 (3,) = [0, 1, 2]\nconst f: float32 (2, 3) = 4\nadd = add(x, f)\ny = add(add, "
	        "a)\nreturn y");
	/* Large ones, random ones and parameters stay. */
	SAME(FOLD, "f = fill(shape=(200, 100), value=4)\ny = relu(f)\nreturn y");
	SAME(FOLD, "u = uniform(shape=(3,), high=1)\nv = normal(shape=(3,), sigma=1, seed=5)\nreturn u, v");
	SAME(FOLD, "param w: float32 (3,)\ny = exp(w)\nreturn y");
}

/* ---- cse --------------------------------------------------------------------------------------------------------- */

static void test_cse(void)
{
	EXACT(CSE, XY "a = add(x, y)\nb = relu(a)\nc = add(x, y)\nd = relu(c)\nreturn mul(b, d)",
	      XY "a = add(x, y)\nb = relu(a)\nmul = mul(b, b)\nreturn mul");
	EXACT(CSE, X "a = sum(x, axes=(1,))\nb = sum(x, axes=(-1,))\nc = sum(x, axes=(0,))\nreturn add(a, b), c",
	      X "a = sum(x, axes=(1,))\nc = sum(x, axes=(0,))\nadd = add(a, a)\nreturn add, c");
}

static void test_cse_not(void)
{
	SAME(CSE,
	     X "a = softmax(x)\nb = softmax(x, axis=1)\nc = sum(x, axes=(0,))\nd = sum(x, axes=(0,), keepdims=true)\n"
	       "add = add(a, b)\nadd2 = add(c, d)\nreturn add, add2");
	SAME(CSE, X "a = dropout(x, p=0.5)\nb = dropout(x, p=0.5)\nadd = add(a, b)\nreturn add");
	SAME(CSE, X "a = relu(x)\nb = relu(x)\nreturn a, b"); /* two tensors are returned */
	EXACT(CSE, X "a = dropout(x, p=0.5, stream=0)\nb = dropout(x, p=0.5, stream=0)\nadd = add(a, b)\nreturn add",
	      X "a = dropout(x, p=0.5, stream=0)\nadd = add(a, a)\nreturn add");
}

/* What reads a parameter before and after it is written is not the same. */
static void test_cse_writes(void)
{
	SAME(CSE, X "param w: float32 (2, 3)\na = exp(w)\nsgd(w, x, lr=1, rescale=1)\nb = exp(w)\nsub = sub(a, "
	            "b)\nreturn sub");
	EXACT(CSE,
	      X "param w: float32 (2, 3)\na = exp(w)\nc = exp(w)\nsgd(w, x, lr=1, rescale=1)\nb = exp(w)\nd = exp(w)\n"
	        "return sub(a, b), add(c, d)",
	      X "param w: float32 (2, 3)\na = exp(w)\nsgd(w, x, lr=1, rescale=1)\nb = exp(w)\nsub = sub(a, b)\nadd = "
	        "add(a, b)\n"
	        "return sub, add");
	/* Through another view of its memory. */
	SL_SCOPE {
		sl_tensor *w = sl_ones(SL_SHAPE(4, 3));
		sl_graph *g = slp_program(X "param w: float32 (4, 3)\nparam v: float32 (2, 3)\na = exp(w)\n"
		                            "sgd(v, x, lr=1, rescale=1)\nb = exp(w)\nreturn sub(a, b)");
		sl_tensor *views[] = {w, sl_rows(w, 0, 2)};
		for (int i = 0; i < 2; i++) {
			sl_release(g->nodes[1 + i].tensor);
			g->nodes[1 + i].tensor = sl_retain(views[i]);
		}
		sl_graph *h = slp_graph_copy(g);
		CHECK_OK(slp_passes[SL_PASS_CSE].run(h));
		CHECK(h->count == g->count);
		CHECK_OK(slp_graph_compare("cse", g, h, 0));
		sl_graph_free(g);
		sl_graph_free(h);
	}
}

/* ---- simplify ---------------------------------------------------------------------------------------------------- */

static void test_neutral(void)
{
	EXACT(SIMPLIFY,
	      X "a = add_scalar(x, value=0)\nb = mul_scalar(a, value=1)\nc = div_scalar(b, value=1)\n"
	        "d = sub_scalar(c, value=0)\ne = pow_scalar(d, value=1)\nreturn exp(e)",
	      X "exp = exp(x)\nreturn exp");
	EXACT(SIMPLIFY, XY "f = full_like(y, value=1)\na = mul(f, x)\nb = add(a, 0)\nreturn exp(b)",
	      XY "exp = exp(x)\nreturn exp");
	EXACT(SIMPLIFY,
	      X "a = copy(x)\nb = cast(a)\nc = reshape(b, shape=(2, 3))\nd = broadcast_to(c, shape=(2, 3))\n"
	        "e = slice(d, axis=0, end=2, step=1)\nf = concat(e)\ng = dropout(f)\nreturn neg(g)",
	      X "neg = neg(x)\nreturn neg");
	EXACT(SIMPLIFY,
	      X "a = relu(x)\nb = relu(a)\nc = abs(x)\nd = abs(c)\ne = neg(x)\nf = neg(e)\nreturn b, d, add(f, f)",
	      X "a = relu(x)\nc = abs(x)\nadd = add(x, x)\nreturn a, c, add");
}

static void test_not_neutral(void)
{
	SAME(SIMPLIFY, X "a = mul_scalar(x, value=0)\nb = sub(x, x)\nc = div(x, x)\nreturn a, b, c");
	SAME(SIMPLIFY, X "a = copy(x)\nreturn a"); /* a result is a tensor of its own */
	SAME(SIMPLIFY, X "a = relu(x)\nb = copy(a)\nreturn a, b");
	SAME(SIMPLIFY, X "a = cast(x, dtype=int32)\nb = cast(a)\nreturn b");
}

static void test_numbers(void)
{
	PASS(SIMPLIFY, X "a = mul_scalar(x, value=3)\nb = div_scalar(a, value=4)\nc = neg(b)\nreturn c",
	     X "c = mul_scalar(x, value=-0.75)\nreturn c");
	PASS(SIMPLIFY,
	     X "a = add_scalar(x, value=3)\nb = sub_scalar(a, value=1)\nc = add_scalar(b, value=0.5)\nreturn c",
	     X "c = add_scalar(x, value=2.5)\nreturn c");
	PASS(SIMPLIFY,
	     X "a = pow_scalar(x, value=2)\nb = pow_scalar(a, value=-1)\nc = mul_scalar(b, value=-1)\nreturn c",
	     X "a = square(x)\nb = reciprocal(a)\nc = neg(b)\nreturn c");
	EXACT(SIMPLIFY, XY "a = neg(y)\nb = add(x, a)\nc = sub(x, a)\nd = add(a, b)\nreturn b, c, d",
	      XY "b = sub(x, y)\nc = add(x, y)\nd = sub(b, y)\nreturn b, c, d");
	EXACT(SIMPLIFY, X "a = add(x, 2)\nb = sub(2, x)\nc = div(3, a)\nd = lt(2, b)\ne = pow(2, x)\nreturn c, d, e",
	      X "a = add_scalar(x, value=2)\nb = rsub_scalar(x, value=2)\nc = rdiv_scalar(a, value=3)\nd = "
	        "gt_scalar(b, value=2)\n"
	        "e = rpow_scalar(x, value=2)\nreturn c, d, e");
	/* Two factors whose product overflows, and integers, stay. */
	SAME(SIMPLIFY, X "a = mul_scalar(x, value=1e+30)\nb = mul_scalar(a, value=1e-30)\nreturn b");
	SAME(SIMPLIFY, "input x: int32 (3,)\na = div_scalar(x, value=3)\nb = mul_scalar(a, value=3)\nreturn b");
	/* A number that broadcasts x is more than a number. */
	SAME(SIMPLIFY, X "const c: float32 (1, 1, 1) = 2\ny = add(x, c)\nreturn y");
}

static void test_moves(void)
{
	EXACT(SIMPLIFY, X "a = transpose(x)\nb = transpose(a)\nreturn exp(b)", X "exp = exp(x)\nreturn exp");
	EXACT(SIMPLIFY,
	      "input x: float32 (2, 3, 4)\na = transpose(x, axes=(1, 2, 0))\nb = transpose(a, axes=(1, 2, 0))\nreturn "
	      "b",
	      "input x: float32 (2, 3, 4)\nb = transpose(x, axes=(2, 0, 1))\nreturn b");
	EXACT(SIMPLIFY,
	      "input x: float32 (2, 3, 4)\na = reshape(x, shape=(6, 4))\nb = reshape(a, shape=(-2, 2, -1))\nreturn b",
	      "input x: float32 (2, 3, 4)\nb = reshape(x, shape=(6, 2, 2))\nreturn b");
	PASS(SIMPLIFY, XY "a = transpose(y)\nb = dot(x, a)\nc = dot(a, x)\nreturn b, c",
	     XY "b = dot(x, y, tb=true)\nc = dot(y, x, ta=true)\nreturn b, c");
}

#define PARTS "input x: float32 (2, 2)\ninput y: float32 (2, 1)\ninput z: float32 (2, 3)\n"

/* The gradients of all slices of an axis are the parts one after another, in whichever order they are added. */
static void test_parts(void)
{
	EXACT(SIMPLIFY,
	      PARTS
	      "a = slice_grad(x, axis=1, begin=1, end=3, step=1, size=6)\nb = slice_grad(y, axis=-1, end=1, step=1, "
	      "size=6)\n"
	      "c = slice_grad(z, axis=1, begin=-3, end=6, step=1, size=6)\nd = add(a, c)\ne = add(b, d)\nreturn e",
	      PARTS "e = concat(y, x, z, axis=1)\nreturn e");
	SAME(SIMPLIFY, PARTS "a = slice_grad(x, axis=1, begin=1, end=3, step=1, size=6)\n" /* 0 is missing */
	                     "c = slice_grad(z, axis=1, begin=3, end=6, step=1, size=6)\nd = add(a, c)\nreturn d");
	SAME(SIMPLIFY, PARTS "a = slice_grad(x, axis=1, end=2, step=1, size=4)\n" /* they overlap */
	                     "b = slice_grad(z, axis=1, begin=1, end=4, step=1, size=4)\nc = add(a, b)\nreturn c");
	SAME(SIMPLIFY, PARTS "a = slice_grad(x, axis=1, end=4, step=2, size=4)\n" /* they alternate */
	                     "b = slice_grad(x, axis=1, begin=1, end=4, step=2, size=4)\nc = add(a, b)\nreturn c");
	SAME(SIMPLIFY, "input x: float32 (2, 2)\na = slice_grad(x, axis=1, end=2, step=1, size=2)\n" /* another axis */
	               "b = slice_grad(x, axis=0, end=2, step=1, size=2)\nc = add(a, b)\nreturn c");
}

/* A parameter that is written in between is read where it was read. */
static void test_simplify_writes(void)
{
	SAME(SIMPLIFY,
	     X "param w: float32 (2, 3)\na = mul_scalar(w, value=2)\nb = copy(w)\nsgd(w, x, lr=1, rescale=1)\n"
	       "c = mul_scalar(a, value=3)\nd = neg(b)\nreturn c, d");
}

/* Negatives of integers saturate: twice negative is not what it was. */
static void test_simplify_integers(void)
{
	SAME(SIMPLIFY, "input x: uint8 (3,)\na = neg(x)\nb = neg(a)\nc = abs(a)\nd = add(x, a)\ne = sub(x, a)\nreturn "
	               "b, c, d, e");
}

/* ---- random programs --------------------------------------------------------------------------------------------- */

static unsigned state;
static int below(int n)
{
	state = state * 1664525u + 1013904223u;
	return (int)((state >> 8) % (unsigned)n);
}

/* Lines over values of one shape (4, 4): so any operation fits any value. */
static void random_program(char *text, size_t size)
{
	static const char *const unary[] = {"relu",   "neg",  "abs",       "tanh", "sigmoid",
	                                    "square", "copy", "transpose", "exp"};
	static const char *const binary[] = {"add", "sub", "mul", "maximum", "dot", "relu_grad", "linear"};
	static const char *const number[] = {"add_scalar", "mul_scalar", "div_scalar", "rsub_scalar", "pow_scalar"};
	static const double numbers[] = {0, 1, 2, -1, 0.5, 3};
	size_t n = (size_t)snprintf(text, size,
	                            "input v0: float32 (4, 4)\ninput v1: float32 (4, 4)\nparam v2: float32 (4, 4)\n"
	                            "const v3: float32 (4, 4) = 1\nv4 = tanh(v0)\nsgd(v2, v4, lr=1, rescale=1)\n");
	int count = 5, total = 20 + below(20);
	while (count < total) {
		int a = below(count), b = below(count), kind = below(12);
		const char *form = "v%d = %s(v%d)\n";
		if (kind < 4) n += (size_t)snprintf(text + n, size - n, form, count, unary[below(9)], a);
		else if (kind < 8)
			n += (size_t)snprintf(text + n, size - n, "v%d = %s(v%d, v%d)\n", count, binary[below(7)], a,
			                      b);
		else if (kind < 10)
			n += (size_t)slp_snprintf(text + n, size - n, "v%d = %s(v%d, value=%g)\n", count,
			                          number[below(5)], a, numbers[1 + below(5)]);
		else if (kind < 11) n += (size_t)snprintf(text + n, size - n, "v%d = dropout(v%d, p=0.25)\n", count, a);
		else
			n += (size_t)snprintf(text + n, size - n, "v%d = tanh(v%d)\nsgd(v2, v%d, lr=0.5, rescale=1)\n",
			                      count, a, count);
		count++;
	}
	snprintf(text + n, size - n, "w = tanh(v%d)\nu = relu(v%d)\nreturn w, u, v%d\n", count - 1, count - 2,
	         below(count - 5) + 5);
}

/* Each pass alone, and all in turn. */
static void check_random(const char *text, double tolerance)
{
	sl_graph *g = slp_program(text), *all = slp_graph_copy(g);
	bool ok = true;
	for (int i = 0; i < SL_PASSES && ok; i++) {
		if (!slp_passes[i].run) continue;
		sl_graph *h = slp_graph_copy(g);
		ok = slp_passes[i].run(h) == SL_OK && slp_graph_verify(h) == SL_OK &&
		     slp_graph_compare(slp_passes[i].name, g, h, tolerance) == SL_OK;
		ok = ok && slp_passes[i].run(all) == SL_OK && slp_graph_verify(all) == SL_OK;
		sl_graph_free(h);
	}
	ok = ok && slp_graph_compare("all", g, all, tolerance) == SL_OK;
	CHECK_SAYING(ok, "%s\n%s", sl_error_message(), text);
	sl_error_clear();
	sl_graph_free(g);
	sl_graph_free(all);
}

static void test_random(void)
{
	static char text[16384];
	for (state = 1; state < 2000000000; state += 40000000) {
		unsigned seed = state;
		random_program(text, sizeof text);
		check_random(text, 1e-4);
		state = seed;
	}
}

static const struct slp_test random_tests[] = {{"random", test_random}, {0}};
static const struct slp_test basic_tests[] = {
        {"table", test_table}, {"infer", test_infer}, {"infer errors", test_infer_errors}, {"dead", test_dead}, {0},
};
static const struct slp_test fold_tests[] = {
        {"fancy_func", test_fancy_func},
        {"fold", test_fold},
        {0},
};
static const struct slp_test cse_tests[] = {
        {"cse", test_cse},
        {"not the same", test_cse_not},
        {"writes", test_cse_writes},
        {0},
};
static const struct slp_test simplify_tests[] = {
        {"neutral", test_neutral},
        {"not neutral", test_not_neutral},
        {"numbers", test_numbers},
        {"moves", test_moves},
        {"parts", test_parts},
        {"writes", test_simplify_writes},
        {"integers", test_simplify_integers},
        {0},
};

int main(int argc, char **argv)
{
/* clang-format off */
#define SUITE(title, list) {.name = title, .tests = list, .start = slp_start_engine, .stop = slp_stop_engine, .after = clear}
	/* clang-format on */
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             SUITE("basic", basic_tests),
	                             SUITE("fold", fold_tests),
	                             SUITE("cse", cse_tests),
	                             SUITE("simplify", simplify_tests),
	                             SUITE("programs", random_tests),
	                             {0},
	                     });
}
