/* Passes of the graph compiler: what each makes of small programs, and that random programs compute the same after it. */
#include <stdlib.h>
#include <string.h>

#include "graph/pass.h"
#include "program.h"

static void clear(void)
{
	sl_wait_all();
	sl_error_clear();
}

/* A program, after a pass, is this one; it verifies, and computes the same within the tolerance. */
static void check_pass(int line, enum sl_pass pass, const char *before, const char *after, double tolerance)
{
	sl_graph *g = slp_program(before), *h = slp_graph_copy(g);
	CHECK_SAYING(slp_passes[pass].run(h) == SL_OK, "line %d: %s", line, sl_error_message());
	CHECK_SAYING(slp_graph_verify(h) == SL_OK, "line %d: %s", line, sl_error_message());
	char *text = slp_program_text(h);
	/* As written by hand: without types. */
	sl_graph *expected = slp_program(after);
	if (pass != SL_PASS_DEAD) CHECK_OK(slp_passes[SL_PASS_DEAD].run(expected)); /* parameters that nobody needs */
	char *wanted = slp_program_text(expected);
	if (!CHECK_SAYING(!strcmp(text, wanted), "line %d: %s", line, slp_passes[pass].name))
		fprintf(stderr, "line %d: the program is\n%s", line, text);
	CHECK_SAYING(slp_graph_compare(slp_passes[pass].name, g, h, tolerance) == SL_OK, "line %d: %s", line,
	             sl_error_message());
	sl_error_clear();
	free(text);
	free(wanted);
	sl_graph_free(g);
	sl_graph_free(h);
	sl_graph_free(expected);
}
#define PASS(pass, before, after) check_pass(__LINE__, SL_PASS_##pass, before, after, 1e-6)
/* The same bits. */
#define EXACT(pass, before, after) check_pass(__LINE__, SL_PASS_##pass, before, after, 0)
#define SAME(pass, program) EXACT(pass, program, program)

#define X "input x: float32 (2, 3)\n"
#define XY X "input y: float32 (2, 3)\n"

static void test_table(void)
{
	for (int i = 0; i < SL_PASSES; i++) {
		CHECK(slp_passes[i].name && slp_passes[i].doc);
	}
}

/* ---- infer ------------------------------------------------------------------------------------------------------- */

static void test_infer(void)
{
	sl_graph *g = sl_graph_parse("input x: float32 (4, 2, 3)\na = reshape(x, shape=(-2, -1))\nb = sum(a, axes=(-1,))\n"
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
	EXACT(DEAD, XY "param w: float32 (3,)\nparam u: float32 (3,)\nconst c: float32 (1,) = 1\n"
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
	EXACT(FOLD, X "a = arange(shape=(3,), step=1)\nf = fill(shape=(2, 3), value=4)\ny = add(add(x, f), a)\nreturn y",
	      X "const a: float32 (3,) = [0, 1, 2]\nconst f: float32 (2, 3) = 4\nadd = add(x, f)\ny = add(add, a)\nreturn y");
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
	SAME(CSE, X "a = softmax(x)\nb = softmax(x, axis=1)\nc = sum(x, axes=(0,))\nd = sum(x, axes=(0,), keepdims=true)\n"
	     "add = add(a, b)\nadd2 = add(c, d)\nreturn add, add2");
	SAME(CSE, X "a = dropout(x, p=0.5)\nb = dropout(x, p=0.5)\nadd = add(a, b)\nreturn add");
	SAME(CSE, X "a = relu(x)\nb = relu(x)\nreturn a, b"); /* two tensors are returned */
	EXACT(CSE, X "a = dropout(x, p=0.5, stream=0)\nb = dropout(x, p=0.5, stream=0)\nadd = add(a, b)\nreturn add",
	      X "a = dropout(x, p=0.5, stream=0)\nadd = add(a, a)\nreturn add");
}

/* What reads a parameter before and after it is written is not the same. */
static void test_cse_writes(void)
{
	SAME(CSE, X "param w: float32 (2, 3)\na = exp(w)\nsgd(w, x, lr=1, rescale=1)\nb = exp(w)\nsub = sub(a, b)\nreturn sub");
	EXACT(CSE, X "param w: float32 (2, 3)\na = exp(w)\nc = exp(w)\nsgd(w, x, lr=1, rescale=1)\nb = exp(w)\nd = exp(w)\n"
	      "return sub(a, b), add(c, d)",
	      X "param w: float32 (2, 3)\na = exp(w)\nsgd(w, x, lr=1, rescale=1)\nb = exp(w)\nsub = sub(a, b)\nadd = add(a, b)\n"
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
	EXACT(SIMPLIFY, X "a = add_scalar(x, value=0)\nb = mul_scalar(a, value=1)\nc = div_scalar(b, value=1)\n"
	      "d = sub_scalar(c, value=0)\ne = pow_scalar(d, value=1)\nreturn exp(e)",
	      X "exp = exp(x)\nreturn exp");
	EXACT(SIMPLIFY, XY "f = full_like(y, value=1)\na = mul(f, x)\nb = add(a, 0)\nreturn exp(b)", XY "exp = exp(x)\nreturn exp");
	EXACT(SIMPLIFY, X "a = copy(x)\nb = cast(a)\nc = reshape(b, shape=(2, 3))\nd = broadcast_to(c, shape=(2, 3))\n"
	      "e = slice(d, axis=0, end=2, step=1)\nf = concat(e)\ng = dropout(f)\nreturn neg(g)",
	      X "neg = neg(x)\nreturn neg");
	EXACT(SIMPLIFY, X "a = relu(x)\nb = relu(a)\nc = abs(x)\nd = abs(c)\ne = neg(x)\nf = neg(e)\nreturn b, d, add(f, f)",
	      X "a = relu(x)\nc = abs(x)\nadd = add(x, x)\nreturn a, c, add");
}

static void test_not_neutral(void)
{
	SAME(SIMPLIFY, X "a = mul_scalar(x, value=0)\nb = sub(x, x)\nc = div(x, x)\nreturn a, b, c");
	SAME(SIMPLIFY, X "a = copy(x)\nreturn a");                     /* a result is a tensor of its own */
	SAME(SIMPLIFY, X "a = relu(x)\nb = copy(a)\nreturn a, b");
	SAME(SIMPLIFY, X "a = cast(x, dtype=int32)\nb = cast(a)\nreturn b");
}

static void test_numbers(void)
{
	PASS(SIMPLIFY, X "a = mul_scalar(x, value=3)\nb = div_scalar(a, value=4)\nc = neg(b)\nreturn c",
	     X "c = mul_scalar(x, value=-0.75)\nreturn c");
	PASS(SIMPLIFY, X "a = add_scalar(x, value=3)\nb = sub_scalar(a, value=1)\nc = add_scalar(b, value=0.5)\nreturn c",
	     X "c = add_scalar(x, value=2.5)\nreturn c");
	PASS(SIMPLIFY, X "a = pow_scalar(x, value=2)\nb = pow_scalar(a, value=-1)\nc = mul_scalar(b, value=-1)\nreturn c",
	     X "a = square(x)\nb = reciprocal(a)\nc = neg(b)\nreturn c");
	EXACT(SIMPLIFY, XY "a = neg(y)\nb = add(x, a)\nc = sub(x, a)\nd = add(a, b)\nreturn b, c, d",
	      XY "b = sub(x, y)\nc = add(x, y)\nd = sub(b, y)\nreturn b, c, d");
	EXACT(SIMPLIFY, X "a = add(x, 2)\nb = sub(2, x)\nc = div(3, a)\nd = lt(2, b)\ne = pow(2, x)\nreturn c, d, e",
	      X "a = add_scalar(x, value=2)\nb = rsub_scalar(x, value=2)\nc = rdiv_scalar(a, value=3)\nd = gt_scalar(b, value=2)\n"
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
	EXACT(SIMPLIFY, "input x: float32 (2, 3, 4)\na = transpose(x, axes=(1, 2, 0))\nb = transpose(a, axes=(1, 2, 0))\nreturn b",
	      "input x: float32 (2, 3, 4)\nb = transpose(x, axes=(2, 0, 1))\nreturn b");
	EXACT(SIMPLIFY, "input x: float32 (2, 3, 4)\na = reshape(x, shape=(6, 4))\nb = reshape(a, shape=(-2, 2, -1))\nreturn b",
	      "input x: float32 (2, 3, 4)\nb = reshape(x, shape=(6, 2, 2))\nreturn b");
	PASS(SIMPLIFY, XY "a = transpose(y)\nb = dot(x, a)\nc = dot(a, x)\nreturn b, c",
	     XY "b = dot(x, y, tb=true)\nc = dot(y, x, ta=true)\nreturn b, c");
}

/* A parameter that is written in between is read where it was read. */
static void test_simplify_writes(void)
{
	SAME(SIMPLIFY, X "param w: float32 (2, 3)\na = mul_scalar(w, value=2)\nb = copy(w)\nsgd(w, x, lr=1, rescale=1)\n"
	     "c = mul_scalar(a, value=3)\nd = neg(b)\nreturn c, d");
}

/* ---- fuse -------------------------------------------------------------------------------------------------------- */

#define LAYER "input x: float32 (8, 6)\nparam w: float32 (4, 6)\nparam b: float32 (4,)\n"

static void test_activations(void)
{
	EXACT(FUSE, LAYER "h = linear(x, w, b, tw=true)\ny = relu(h)\nreturn exp(y)",
	      LAYER "y = linear(x, w, b, tw=true, activation=relu)\nexp = exp(y)\nreturn exp");
	PASS(FUSE, "input x: float32 (2, 3, 5, 5)\nparam w: float32 (4, 3, 3, 3)\nh = conv2d(x, w)\ny = tanh(h)\nreturn y",
	     "input x: float32 (2, 3, 5, 5)\nparam w: float32 (4, 3, 3, 3)\ny = conv2d(x, w, activation=tanh)\nreturn y");
	PASS(FUSE, "input x: float32 (8, 3)\ninput g: float32 (3,)\nparam m: float32 (3,)\nparam v: float32 (3,)\n"
	     "h = batch_norm(x, g, g, m, v)\ny = sigmoid(h)\nreturn y, h[1]",
	     "input x: float32 (8, 3)\ninput g: float32 (3,)\nparam m: float32 (3,)\nparam v: float32 (3,)\n"
	     "y = batch_norm(x, g, g, m, v, activation=sigmoid)\nreturn y, y[1]");
	/* Something else needs what the activation is applied to; one activation is all. */
	SAME(FUSE, LAYER "h = linear(x, w, b, tw=true)\ny = gelu(h)\nd = gelu_grad(y, h)\nreturn d");
	SAME(FUSE, LAYER "h = linear(x, w, b, tw=true)\ny = relu(h)\nreturn y, h");
	SAME(FUSE, LAYER "h = linear(x, w, b, tw=true, activation=tanh)\ny = relu(h)\nreturn y");
	SAME(FUSE, "input x: float32 (8, 3)\ninput g: float32 (3,)\nparam m: float32 (3,)\nparam v: float32 (3,)\n"
	     "h = batch_norm(x, g, g, m, v)\ny = sigmoid(h[1])\nreturn y, h");
}

static void test_slopes(void)
{
#define IMAGES "input x: float32 (2, 3, 6, 6)\ninput d: float32 (2, 3, 3, 3)\n"
	EXACT(FUSE, IMAGES "r = relu(x)\np = max_pool2d_grad(r, d, kernel=(2, 2), size=(6, 6))\ny = relu_grad(p, r)\nreturn y",
	      IMAGES "r = relu(x)\ny = max_pool2d_grad(r, d, kernel=(2, 2), size=(6, 6), relu=true)\nreturn y");
	EXACT(FUSE, IMAGES "p = avg_pool2d_grad(d, type=1, kernel=(2, 2), size=(6, 6))\ny = relu_grad(p, x)\nreturn y",
	      IMAGES "y = avg_pool2d_grad(x, d, type=1, kernel=(2, 2), size=(6, 6), relu=true)\nreturn y");
	SAME(FUSE, IMAGES "p = max_pool2d_grad(x, d, kernel=(2, 2), size=(6, 6))\nr = relu(x)\ny = relu_grad(p, r)\nreturn y");
	SAME(FUSE, IMAGES "p = avg_pool2d_grad(d, type=1, kernel=(2, 2), size=(6, 6))\ny = relu_grad(p, x)\nreturn y, p");
#define NORM "input x: float32 (8, 3)\ninput d: float32 (8, 3)\ninput y: float32 (8, 3)\nparam g: float32 (3,)\n"
	PASS(FUSE, NORM "e = relu_grad(d, y)\nn = batch_norm_grad(e, x, g, g, g)\nreturn n",
	     NORM "n = batch_norm_grad(d, x, g, g, g, y, relu=true)\nreturn n");
	SAME(FUSE, NORM "e = relu_grad(d, y)\nn = batch_norm_grad(e, x, g, g, g)\nreturn n, e");
}

#define BACK LAYER "input d: float32 (8, 4)\n"

static void test_linear_grads(void)
{
	PASS(FUSE, BACK "dx = dot(d, w)\ndw = dot(d, x, ta=true)\ndb = sum(d, axes=(0,))\nreturn dx, dw, db",
	     BACK "dw = linear_grad(x, w, d, tw=true, data=true)\nreturn dw, dw[1], dw[2]");
	/* The first layer has no dx; its w is that of the way there. */
	PASS(FUSE, BACK "y = linear(x, w, b, tw=true)\ndw = dot(d, x, ta=true)\ndb = sum(d, axes=(0,))\nreturn y, dw, db",
	     BACK "y = linear(x, w, b, tw=true)\ndw = linear_grad(x, w, d, tw=true)\nreturn y, dw[1], dw[2]");
	/* w of (inputs, units), through tanh. */
#define OTHER "input x: float32 (8, 6)\ninput d: float32 (8, 4)\ninput y: float32 (8, 4)\nparam w: float32 (6, 4)\n"
	PASS(FUSE, OTHER "e = tanh_grad(d, y)\ndb = sum(e, axes=(0,))\ndw = dot(x, e, ta=true)\ndx = dot(e, w, tb=true)\n"
	     "return dx, dw, db",
	     OTHER "dw = linear_grad(x, w, d, y, data=true, activation=tanh)\nreturn dw, dw[1], dw[2]");
	PASS(FUSE, OTHER "e = relu_grad(d, y)\ndb = sum(e, axes=(0,))\ndw = dot(x, e, ta=true)\ndx = dot(e, w, tb=true)\n"
	     "return dx, dw, db, e",
	     OTHER "e = relu_grad(d, y)\ndw = linear_grad(x, w, e, data=true)\nreturn dw, dw[1], dw[2], e");
}

static void test_not_linear_grads(void)
{
	/* Without a w; sums of other axes; a w that is written in between. */
	SAME(FUSE, BACK "dw = dot(d, x, ta=true)\ndb = sum(d, axes=(0,))\nreturn dw, db");
	SAME(FUSE, BACK "dx = dot(d, w)\ndw = dot(d, x, ta=true)\ndb = sum(d, axes=(1,))\nreturn dx, dw, db");
	SAME(FUSE, BACK "dw = dot(d, x, ta=true)\nsgd(w, dw, lr=1, rescale=1)\ndb = sum(d, axes=(0,))\ndx = dot(d, w)\n"
	     "return dx, db");
	SAME(FUSE, "input d: float32 (4, 4)\nparam w: float32 (4, 4)\ndx = dot(d, w)\ndw = dot(d, d, ta=true)\n"
	     "db = sum(d, axes=(0,))\nreturn dx, dw, db");
}

#define GRADS "dx = dot(d, w)\ndw = dot(d, x, ta=true)\ndb = sum(d, axes=(0,))\n"

static void test_updates(void)
{
	PASS(FUSE, BACK "y = linear(x, w, b, tw=true)\n" GRADS "sgd(w, dw, b, db, lr=0.1, weight_decay=0.01)\nreturn y, dx",
	     BACK "y = linear(x, w, b, tw=true)\n"
	     "dw = linear_sgd(w, b, x, d, lr=0.1, rescale=1, weight_decay=0.01, tw=true, data=true)\nreturn y, dw");
	PASS(FUSE, BACK "param u: float32 (8, 4)\n" GRADS "sgd(b, db, u, d, w, dw, lr=0.1, rescale=1)\nreturn dx",
	     BACK "param u: float32 (8, 4)\ndw = linear_sgd(w, b, x, d, lr=0.1, rescale=1, tw=true, data=true)\n"
	     "sgd(u, d, lr=0.1, rescale=1)\nreturn dw");
#define KEPT "dw = linear_grad(x, w, d, tw=true, data=true)\n"
	/* The gradient is wanted itself; it is clipped; something else reads or writes a parameter in between; another sgd. */
	PASS(FUSE, BACK GRADS "sgd(w, dw, b, db, lr=0.1, rescale=1)\nreturn dx, dw",
	     BACK KEPT "sgd(w, dw[1], b, dw[2], lr=0.1, rescale=1)\nreturn dw, dw[1]");
	PASS(FUSE, BACK GRADS "sgd(w, dw, b, db, lr=0.1, rescale=1, clip_norm=1)\nreturn dx",
	     BACK KEPT "sgd(w, dw[1], b, dw[2], lr=0.1, rescale=1, clip_norm=1)\nreturn dw");
	PASS(FUSE, BACK GRADS "e = exp(w)\nsgd(w, dw, b, db, lr=0.1, rescale=1)\nreturn dx, e",
	     BACK KEPT "e = exp(w)\nsgd(w, dw[1], b, dw[2], lr=0.1, rescale=1)\nreturn dw, e");
	PASS(FUSE, BACK GRADS "sgd(w, dw, lr=0.1, rescale=1)\nsgd(b, db, lr=0.2, rescale=1)\nreturn dx",
	     BACK KEPT "sgd(w, dw[1], lr=0.1, rescale=1)\nsgd(b, dw[2], lr=0.2, rescale=1)\nreturn dw");
	PASS(FUSE, BACK "param u: float32 (4, 6)\n" GRADS "sgd(u, dw, b, db, lr=0.1, rescale=1)\nreturn dx",
	     BACK "param u: float32 (4, 6)\n" KEPT "sgd(u, dw[1], b, dw[2], lr=0.1, rescale=1)\nreturn dw");
}

/* ---- chain ------------------------------------------------------------------------------------------------------- */

/* How many operations are left after the pass, which computes the same bits. */
static int chained(int line, const char *text)
{
	sl_graph *g = slp_program(text), *h = slp_graph_copy(g);
	int n = 0;
	CHECK_SAYING(slp_passes[SL_PASS_CHAIN].run(h) == SL_OK, "line %d: %s", line, sl_error_message());
	CHECK_SAYING(slp_graph_verify(h) == SL_OK, "line %d: %s", line, sl_error_message());
	CHECK_SAYING(slp_graph_compare("chain", g, h, 0) == SL_OK, "line %d: %s", line, sl_error_message());
	sl_error_clear();
	for (int i = 0; i < h->count; i++) n += h->nodes[i].kind == SLP_NODE_OP;
	sl_graph_free(g);
	sl_graph_free(h);
	return n;
}
#define CHAINED(text, n) CHECK(chained(__LINE__, text) == (n))

static void test_chain(void)
{
	CHAINED(XY "a = add(x, y)\nb = relu(a)\nc = mul_scalar(b, value=2)\nreturn c", 1);
	CHAINED(XY "a = exp(x)\nb = mul(a, y)\nc = add(a, b)\nd = rsub_scalar(c, value=2)\ne = sub(d, c)\nreturn e", 1); /* a DAG */
	CHAINED(X "a = relu(x)\nreturn a", 1);
	CHAINED(XY "a = add(x, y)\nb = relu(a)\nc = exp(b)\nreturn c, b", 2);             /* b is wanted */
	CHAINED(XY "a = exp(x)\nb = sum(a)\nc = neg(a)\nd = relu(c)\nreturn b, d", 3);    /* by another, too */
	CHAINED("input x: float32 (2, 3)\ninput y: float32 (3,)\na = mul(x, y)\nb = add(a, y)\nreturn b", 1);
	/* What is broadcast is computed once. */
	CHAINED("input x: float32 (2, 3)\ninput y: float32 (3,)\na = exp(y)\nb = neg(a)\nc = add(x, b)\nd = relu(c)\nreturn d", 2);
	CHAINED("input x: int32 (3,)\na = add(x, x)\nb = neg(a)\nreturn b", 2);
	CHAINED("input x: float64 (3,)\na = add(x, x)\nb = neg(a)\nreturn b", 1);
	CHAINED("input x: float32 (0, 3)\na = add(x, x)\nb = neg(a)\nreturn b", 1);
}

static void test_chain_long(void)
{
	char text[8192] = X, line[128], last[16] = "x";
	for (int i = 0; i < 100; i++) {
		snprintf(line, sizeof line, i % 3 ? "a%d = tanh(%s)\n" : "a%d = add_scalar(%s, value=%d)\n", i, last, i);
		strcat(text, line);
		snprintf(last, sizeof last, "a%d", i);
	}
	strcat(text, "return a99\n");
	int n = chained(__LINE__, text);
	CHECK_SAYING(n >= 9 && n <= 13, "%d operations", n);
	/* More inputs than one program takes. */
	char many[8192] = X, name[32];
	for (int i = 0; i < 20; i++) snprintf(line, sizeof line, "input y%d: float32 (2, 3)\n", i), strcat(many, line);
	strcpy(last, "x");
	for (int i = 0; i < 20; i++) {
		snprintf(line, sizeof line, "a%d = mul(%s, y%d)\n", i, last, i);
		strcat(many, line);
		snprintf(name, sizeof name, "a%d", i);
		snprintf(last, sizeof last, "%.15s", name);
	}
	strcat(many, "return a19\n");
	CHAINED(many, 2);
}

static void test_chain_writes(void)
{
	CHAINED(X "param w: float32 (2, 3)\na = exp(w)\nb = neg(x)\nsgd(w, x, lr=1, rescale=1)\nc = add(a, b)\nd = mul(c, w)\n"
		"return d", 3); /* exp stays; neg joins */
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
	static const char *const unary[] = {"relu", "neg", "abs", "tanh", "sigmoid", "square", "copy", "transpose", "exp"};
	static const char *const binary[] = {"add", "sub", "mul", "maximum", "dot", "relu_grad", "linear"};
	static const char *const number[] = {"add_scalar", "mul_scalar", "div_scalar", "rsub_scalar", "pow_scalar"};
	static const double numbers[] = {0, 1, 2, -1, 0.5, 3};
	size_t n = (size_t)snprintf(text, size, "input v0: float32 (4, 4)\ninput v1: float32 (4, 4)\nparam v2: float32 (4, 4)\n"
				    "const v3: float32 (4, 4) = 1\nv4 = tanh(v0)\nsgd(v2, v4, lr=1, rescale=1)\n");
	int count = 5, total = 20 + below(20);
	while (count < total) {
		int a = below(count), b = below(count), kind = below(12);
		const char *form = "v%d = %s(v%d)\n";
		if (kind < 4) n += (size_t)snprintf(text + n, size - n, form, count, unary[below(9)], a);
		else if (kind < 8) n += (size_t)snprintf(text + n, size - n, "v%d = %s(v%d, v%d)\n", count, binary[below(7)], a, b);
		else if (kind < 10)
			n += (size_t)snprintf(text + n, size - n, "v%d = %s(v%d, value=%g)\n", count, number[below(5)], a,
					      numbers[1 + below(5)]);
		else if (kind < 11) n += (size_t)snprintf(text + n, size - n, "v%d = dropout(v%d, p=0.25)\n", count, a);
		else n += (size_t)snprintf(text + n, size - n, "v%d = tanh(v%d)\nsgd(v2, v%d, lr=0.5, rescale=1)\n", count, a, count);
		count++;
	}
	snprintf(text + n, size - n, "w = tanh(v%d)\nu = relu(v%d)\nreturn w, u, v%d\n", count - 1, count - 2, below(count - 5) + 5);
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

/* ---- convolutions: pooling, layout ------------------------------------------------------------------------------- */

/* A convolution, relu, pooling, and the way back; two of them, so that images stay in lane order between. */
#define NET                                                                                                            \
	"input x: float32 (32, 1, 12, 12)\ninput d: float32 (32, 3, 2, 2)\nparam w: float32 (2, 1, 3, 3)\nparam b: float32 (2,)\n"   \
	"param v: float32 (3, 2, 2, 2)\nparam u: float32 (3,)\n"
#define FORWARD                                                                                                        \
	"c = conv2d(x, w, b)\nr = relu(c)\np = avg_pool2d(r, type=1, kernel=(2, 2))\n"                                 \
	"e = conv2d(p, v, u)\ns = relu(e)\nq = max_pool2d(s, kernel=(2, 2))\n"
#define BACKWARD                                                                                                       \
	"dq = max_pool2d_grad(s, d, kernel=(2, 2), size=(4, 4))\nds = relu_grad(dq, s)\n"                              \
	"dp = conv2d_grad_data(ds, v, size=(5, 5))\ndv = conv2d_grad_weights(p, ds, size=(2, 2), bias=true)\n"         \
	"dr = avg_pool2d_grad(dp, type=1, kernel=(2, 2), size=(10, 10))\ndc = relu_grad(dr, r)\n"                      \
	"dw = conv2d_grad_weights(x, dc, size=(3, 3), bias=true)\n"

static int count_op(const sl_graph *g, const char *name)
{
	int n = 0;
	for (int i = 0; i < g->count; i++) n += slp_node_is(&g->nodes[i], name);
	return n;
}

static int count_lanes(const sl_graph *g)
{
	int n = 0;
	for (int i = 0; i < g->count; i++)
		if (g->nodes[i].kind == SLP_NODE_OP)
			n += slp_node_number(&g->nodes[i], "x_lanes") + slp_node_number(&g->nodes[i], "y_lanes") > 0;
	return n;
}

/* Parameters that are not all zero. */
static sl_graph *network(const char *text)
{
	sl_graph *g = slp_program(text);
	sl_seed(8);
	for (int i = 0; i < g->count; i++) {
		if (g->nodes[i].kind != SLP_NODE_PARAM) continue;
		SL_SCOPE sl_copy_(g->nodes[i].tensor, sl_normal(g->nodes[i].types[0].shape, 0, 0.5));
	}
	return g;
}

/* After these passes; computes the same. */
static sl_graph *network_after(const char *text, unsigned passes)
{
	sl_graph *g = network(text), *h = slp_graph_copy(g);
	for (int i = 0; i < SL_PASSES; i++)
		if (passes & 1u << i) CHECK_SAYING(slp_passes[i].run(h) == SL_OK, "%s", sl_error_message());
	CHECK_SAYING(slp_graph_verify(h) == SL_OK, "%s", sl_error_message());
	CHECK_SAYING(slp_graph_compare("network", g, h, 1e-5) == SL_OK, "%s", sl_error_message());
	sl_error_clear();
	sl_graph_free(g);
	return h;
}

/* Whether this machine computes these in lane order. */
static bool has_lanes(void)
{
	sl_graph *g = slp_program(NET "c = conv2d(x, w, b)\nreturn c");
	bool likes = slp_layout_on_cpu(g) && slp_layout_likes_lanes(g, &g->nodes[g->outputs[0].node]);
	sl_graph_free(g);
	return likes;
}

static void test_conv_pool(void)
{
	int n = has_lanes() ? 2 : 0;
	sl_graph *g = network_after(NET FORWARD BACKWARD "return q, dv, dv[1], dw, dw[1]", 1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == n && count_op(g, "max_pool2d") + count_op(g, "avg_pool2d") == 2 - n);
	CHECK(count_op(g, "relu") == 0 && count_op(g, "relu_grad") == 0);
	sl_graph_free(g);
	g = network_after(NET FORWARD "return q", 1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == n);
	sl_graph_free(g);
	/* Odd sizes: the last row and column of the unpooled result go nowhere. */
	g = network_after("input x: float32 (32, 1, 9, 9)\ninput d: float32 (32, 2, 3, 3)\nparam w: float32 (2, 1, 3, 3)\n"
			  "r = conv2d(x, w, activation=relu)\np = max_pool2d(r, kernel=(2, 2))\n"
			  "dc = max_pool2d_grad(r, d, kernel=(2, 2), size=(7, 7), relu=true)\n"
			  "dw = conv2d_grad_weights(x, dc, size=(3, 3), bias=true)\ndx = conv2d_grad_data(dc, w, size=(9, 9))\n"
			  "return p, dw, dw[1], dx", 1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == n / 2);
	sl_graph_free(g);
	/* The unpooled result is wanted; another pooling; gradients that others take, too. */
	g = network_after(NET FORWARD "return q, r, s", 1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == 0);
	sl_graph_free(g);
	g = network_after(NET "r = conv2d(x, w, b, activation=relu)\nreturn max_pool2d(r, kernel=(2, 2), stride=(1, 1))", 1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == 0);
	sl_graph_free(g);
	g = network_after(NET FORWARD BACKWARD "return q, dv, dw, ds", 1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == n / 2);
	sl_graph_free(g);
}

static void test_layout(void)
{
	bool lanes = has_lanes();
	sl_graph *g = network_after(NET FORWARD BACKWARD "return q, dv, dv[1], dw, dw[1]", 1u << SL_PASS_LAYOUT);
	CHECK_SAYING(count_lanes(g) == (lanes ? 9 : 0), "%d operations in lane order", count_lanes(g));
	sl_graph_free(g);
	g = network_after(NET FORWARD BACKWARD "return q, dv, dv[1], dw, dw[1]", 1u << SL_PASS_FUSE | 1u << SL_PASS_LAYOUT);
	CHECK_SAYING(count_lanes(g) == (lanes ? 5 : 0), "%d operations in lane order", count_lanes(g));
	sl_graph_free(g);
	/* Results of the program, other batches, arguments that are broadcast, operations that know no order. */
	g = network_after(NET "c = conv2d(x, w, b)\nreturn c, relu(c)", 1u << SL_PASS_LAYOUT);
	CHECK(count_lanes(g) == 0);
	sl_graph_free(g);
	g = network_after(NET "c = conv2d(x, w, b)\ns = sum(c, axes=(0,))\nreturn max_pool2d(c, kernel=(2, 2)), s", 1u << SL_PASS_LAYOUT);
	CHECK(count_lanes(g) == 0);
	sl_graph_free(g);
	g = network_after(NET "c = conv2d(x, w, b)\nr = add(c, sum(w))\nreturn max_pool2d(r, kernel=(2, 2))", 1u << SL_PASS_LAYOUT);
	CHECK(count_lanes(g) == (lanes ? 2 : 0));
	sl_graph_free(g);
	g = network_after(NET "c = conv2d(x, w, b)\nr = add(c, sum(c, axes=(2, 3), keepdims=true))\n"
			  "return max_pool2d(r, kernel=(2, 2))", 1u << SL_PASS_LAYOUT);
	CHECK(count_lanes(g) == 0);
	sl_graph_free(g);
	g = network_after("input x: float32 (32, 1, 8, 8)\np = max_pool2d(x, kernel=(2, 2))\n" /* no convolution: nothing gained */
			  "return max_pool2d(relu(p), kernel=(2, 2))", 1u << SL_PASS_LAYOUT);
	CHECK(count_lanes(g) == 0);
	sl_graph_free(g);
	g = network_after("input x: float32 (6, 1, 8, 8)\nparam w: float32 (2, 1, 3, 3)\nc = conv2d(x, w)\nr = relu(c)\n"
			  "return max_pool2d(r, kernel=(2, 2))", 1u << SL_PASS_FUSE | 1u << SL_PASS_LAYOUT);
	CHECK(count_lanes(g) == 0 && count_op(g, "conv2d_pool") == 0);
	sl_graph_free(g);
}

/* A whole step of training, through all passes. */
static void test_step(void)
{
	sl_graph *g = network_after(NET "param m: float32 (4, 12)\nparam k: float32 (4,)\ninput t: int32 (32,)\n" FORWARD
				    "f = reshape(q, shape=(-2, -1))\nh = linear(f, m, k, tw=true)\nl = softmax_cross_entropy(h, t)\n"
				    "one = full_like(l, value=1)\ndh = softmax_cross_entropy_grad(one, h, t)\n"
				    "dh2 = reshape(dh, shape=(32, 4))\ndf = dot(dh2, m)\ndm = dot(dh2, f, ta=true)\n"
				    "dk = sum(dh2, axes=(0,))\nd2 = reshape(df, shape=(32, 3, 2, 2))\n"
				    "dq = max_pool2d_grad(s, d2, kernel=(2, 2), size=(4, 4))\nds = relu_grad(dq, s)\n"
				    "dp = conv2d_grad_data(ds, v, size=(5, 5))\ndv = conv2d_grad_weights(p, ds, size=(2, 2), bias=true)\n"
				    "dr = avg_pool2d_grad(dp, type=1, kernel=(2, 2), size=(10, 10))\ndc = relu_grad(dr, r)\n"
				    "dw = conv2d_grad_weights(x, dc, size=(3, 3), bias=true)\n"
				    "sgd(w, dw, b, dw[1], v, dv, u, dv[1], m, dm, k, dk, lr=0.1)\nreturn l", (1u << SL_PASS_SEGMENT) - 1);
	CHECK(count_op(g, "linear_sgd") == 1 && count_op(g, "dot") == 0 && count_op(g, "relu_grad") == 0);
	sl_graph_free(g);
}

static const struct slp_test conv_tests[] = {
        {"pooling", test_conv_pool}, {"layout", test_layout}, {"step", test_step}, {0},
};
static const struct slp_test chain_tests[] = {
        {"chain", test_chain}, {"long", test_chain_long}, {"writes", test_chain_writes}, {0},
};
static const struct slp_test random_tests[] = {{"random", test_random}, {0}};
static const struct slp_test fuse_tests[] = {
        {"activations", test_activations}, {"slopes", test_slopes}, {"linear gradients", test_linear_grads},
        {"not linear gradients", test_not_linear_grads}, {"updates", test_updates}, {0},
};
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
        {"neutral", test_neutral}, {"not neutral", test_not_neutral}, {"numbers", test_numbers},
        {"moves", test_moves},     {"writes", test_simplify_writes},  {0},
};

int main(int argc, char **argv)
{
#define SUITE(title, list) {.name = title, .tests = list, .start = slp_start_engine, .stop = slp_stop_engine, .after = clear}
	return slp_test_main(argc, argv, (const struct slp_suite[]){
						 SUITE("basic", basic_tests),
						 SUITE("fold", fold_tests),
						 SUITE("cse", cse_tests),
						 SUITE("simplify", simplify_tests),
						 SUITE("fuse", fuse_tests),
						 SUITE("chain", chain_tests),
						 SUITE("convolutions", conv_tests),
						 SUITE("programs", random_tests),
						 {0},
					 });
}
