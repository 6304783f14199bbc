/* Passes that make few operations of many: fuse, layout, chain. */
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "graph/pass/pass.h"
#include "program.h"

static void clear(void)
{
	sl_wait_all();
	sl_error_clear();
}

/* ---- fuse -------------------------------------------------------------------------------------------------------- */

#define LAYER "input x: float32 (8, 6)\nparam w: float32 (4, 6)\nparam b: float32 (4,)\n"

static void test_activations(void)
{
	EXACT(FUSE, LAYER "h = linear(x, w, b, tw=true)\ny = relu(h)\nreturn exp(y)",
	      LAYER "y = linear(x, w, b, tw=true, activation=relu)\nexp = exp(y)\nreturn exp");
	PASS(FUSE,
	     "input x: float32 (2, 3, 5, 5)\nparam w: float32 (4, 3, 3, 3)\nh = conv2d(x, w)\ny = tanh(h)\nreturn y",
	     "input x: float32 (2, 3, 5, 5)\nparam w: float32 (4, 3, 3, 3)\ny = conv2d(x, w, activation=tanh)\nreturn "
	     "y");
	PASS(FUSE,
	     "input x: float32 (8, 3)\ninput g: float32 (3,)\nparam m: float32 (3,)\nparam v: float32 (3,)\n"
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
	EXACT(FUSE,
	      IMAGES
	      "r = relu(x)\np = max_pool2d_grad(r, d, kernel=(2, 2), size=(6, 6))\ny = relu_grad(p, r)\nreturn y",
	      IMAGES "r = relu(x)\ny = max_pool2d_grad(r, d, kernel=(2, 2), size=(6, 6), relu=true)\nreturn y");
	EXACT(FUSE, IMAGES "p = avg_pool2d_grad(d, type=1, kernel=(2, 2), size=(6, 6))\ny = relu_grad(p, x)\nreturn y",
	      IMAGES "y = avg_pool2d_grad(x, d, type=1, kernel=(2, 2), size=(6, 6), relu=true)\nreturn y");
	SAME(FUSE, IMAGES
	     "p = max_pool2d_grad(x, d, kernel=(2, 2), size=(6, 6))\nr = relu(x)\ny = relu_grad(p, r)\nreturn y");
	SAME(FUSE,
	     IMAGES "p = avg_pool2d_grad(d, type=1, kernel=(2, 2), size=(6, 6))\ny = relu_grad(p, x)\nreturn y, p");
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
	PASS(FUSE,
	     BACK "y = linear(x, w, b, tw=true)\ndw = dot(d, x, ta=true)\ndb = sum(d, axes=(0,))\nreturn y, dw, db",
	     BACK "y = linear(x, w, b, tw=true)\ndw = linear_grad(x, w, d, tw=true)\nreturn y, dw[1], dw[2]");
	/* w of (inputs, units), through tanh. */
#define OTHER "input x: float32 (8, 6)\ninput d: float32 (8, 4)\ninput y: float32 (8, 4)\nparam w: float32 (6, 4)\n"
	PASS(FUSE,
	     OTHER "e = tanh_grad(d, y)\ndb = sum(e, axes=(0,))\ndw = dot(x, e, ta=true)\ndx = dot(e, w, tb=true)\n"
	           "return dx, dw, db",
	     OTHER "dw = linear_grad(x, w, d, y, data=true, activation=tanh)\nreturn dw, dw[1], dw[2]");
	PASS(FUSE,
	     OTHER "e = relu_grad(d, y)\ndb = sum(e, axes=(0,))\ndw = dot(x, e, ta=true)\ndx = dot(e, w, tb=true)\n"
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
	PASS(FUSE,
	     BACK "y = linear(x, w, b, tw=true)\n" GRADS "sgd(w, dw, b, db, lr=0.1, weight_decay=0.01)\nreturn y, dx",
	     BACK
	     "y = linear(x, w, b, tw=true)\n"
	     "dw = linear_sgd(w, b, x, d, lr=0.1, rescale=1, weight_decay=0.01, tw=true, data=true)\nreturn y, dw");
	PASS(FUSE, BACK "param u: float32 (8, 4)\n" GRADS "sgd(b, db, u, d, w, dw, lr=0.1, rescale=1)\nreturn dx",
	     BACK "param u: float32 (8, 4)\ndw = linear_sgd(w, b, x, d, lr=0.1, rescale=1, tw=true, data=true)\n"
	          "sgd(u, d, lr=0.1, rescale=1)\nreturn dw");
#define KEPT "dw = linear_grad(x, w, d, tw=true, data=true)\n"
	/* The gradient is wanted itself; it is clipped; something else reads or writes a parameter in between; another
	 * sgd. */
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
	CHAINED(XY "a = exp(x)\nb = mul(a, y)\nc = add(a, b)\nd = rsub_scalar(c, value=2)\ne = sub(d, c)\nreturn e",
	        1); /* a DAG */
	CHAINED(X "a = relu(x)\nreturn a", 1);
	CHAINED(XY "a = add(x, y)\nb = relu(a)\nc = exp(b)\nreturn c, b", 2);          /* b is wanted */
	CHAINED(XY "a = exp(x)\nb = sum(a)\nc = neg(a)\nd = relu(c)\nreturn b, d", 3); /* by another, too */
	CHAINED("input x: float32 (2, 3)\ninput y: float32 (3,)\na = mul(x, y)\nb = add(a, y)\nreturn b", 1);
	/* What is broadcast is computed once. */
	CHAINED("input x: float32 (2, 3)\ninput y: float32 (3,)\na = exp(y)\nb = neg(a)\nc = add(x, b)\nd = "
	        "relu(c)\nreturn d",
	        2);
	CHAINED("input x: int32 (3,)\na = add(x, x)\nb = neg(a)\nreturn b", 2);
	CHAINED("input x: float64 (3,)\na = add(x, x)\nb = neg(a)\nreturn b", 1);
	CHAINED("input x: float32 (0, 3)\na = add(x, x)\nb = neg(a)\nreturn b", 1);
}

static void test_chain_long(void)
{
	char text[8192] = X, line[128], last[16] = "x";
	for (int i = 0; i < 100; i++) {
		snprintf(line, sizeof line, i % 3 ? "a%d = tanh(%s)\n" : "a%d = add_scalar(%s, value=%d)\n", i, last,
		         i);
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
	CHAINED(X "param w: float32 (2, 3)\na = exp(w)\nb = neg(x)\nsgd(w, x, lr=1, rescale=1)\nc = add(a, b)\nd = "
	          "mul(c, w)\n"
	          "return d",
	        3); /* exp stays; neg joins */
}

/* ---- convolutions: pooling, layout ------------------------------------------------------------------------------- */

/* A convolution, relu, pooling, and the backward pass; two of them, so that images stay in N16 between. */
/* clang-format off */
#define NET                                                                                                            \
	"input x: float32 (32, 1, 12, 12)\ninput d: float32 (32, 3, 2, 2)\nparam w: float32 (2, 1, 3, 3)\nparam b: float32 (2,)\n"   \
	"param v: float32 (3, 2, 2, 2)\nparam u: float32 (3,)\n"
/* clang-format on */
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
	for (int i = 0; i < g->count; i++) n += slp_node_is(&g->nodes[i], slp_op_find(name));
	return n;
}

static int count_n16(const sl_graph *g)
{
	int n = 0;
	for (int i = 0; i < g->count; i++)
		if (g->nodes[i].kind == SLP_NODE_OP)
			n += slp_node_number(&g->nodes[i], "x_layout") == SLP_LAYOUT_N16 ||
			     slp_node_number(&g->nodes[i], "y_layout") == SLP_LAYOUT_N16;
	return n;
}

/* Parameters that are not all zero. */
static sl_graph *network(const char *text)
{
	sl_graph *g = slp_program(text);
	sl_seed(8);
	for (int i = 0; i < g->count; i++) {
		if (g->nodes[i].kind != SLP_NODE_PARAM) continue;
		SL_SCOPE
			sl_copy_(g->nodes[i].tensor, sl_normal(g->nodes[i].types[0].shape, 0, 0.5));
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

/* Whether this machine computes these in N16. */
static bool has_n16(void)
{
	sl_graph *g = slp_program(NET "c = conv2d(x, w, b)\nreturn c");
	bool likes = slp_layout_on_cpu(g) && slp_layout_prefers_n16(g, &g->nodes[g->outputs[0].node]);
	sl_graph_free(g);
	return likes;
}

static void test_conv_pool(void)
{
	int n = has_n16() ? 2 : 0;
	sl_graph *g = network_after(NET FORWARD BACKWARD "return q, dv, dv[1], dw, dw[1]", 1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == n && count_op(g, "max_pool2d") + count_op(g, "avg_pool2d") == 2 - n);
	CHECK(count_op(g, "conv2d_grad_weights_pool") == n && count_op(g, "conv2d_grad_data_pool") == n / 2);
	CHECK(count_op(g, "relu") == 0 && count_op(g, "relu_grad") == 0);
	sl_graph_free(g);
	g = network_after(NET FORWARD "return q", 1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == n);
	sl_graph_free(g);
	/* Odd sizes: the last row and column of the unpooled result go nowhere. */
	g = network_after(
	        "input x: float32 (32, 1, 9, 9)\ninput d: float32 (32, 2, 3, 3)\nparam w: float32 (2, 1, 3, 3)\n"
	        "r = conv2d(x, w, activation=relu)\np = max_pool2d(r, kernel=(2, 2))\n"
	        "dc = max_pool2d_grad(r, d, kernel=(2, 2), size=(7, 7), relu=true)\n"
	        "dw = conv2d_grad_weights(x, dc, size=(3, 3), bias=true)\ndx = conv2d_grad_data(dc, w, size=(9, 9))\n"
	        "return p, dw, dw[1], dx",
	        1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == n / 2);
	sl_graph_free(g);
	/* The unpooled result is wanted; another pooling; gradients that others take, too. */
	g = network_after(NET FORWARD "return q, r, s", 1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == 0);
	sl_graph_free(g);
	g = network_after(NET
	                  "r = conv2d(x, w, b, activation=relu)\nreturn max_pool2d(r, kernel=(2, 2), stride=(1, 1))",
	                  1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == 0);
	sl_graph_free(g);
	g = network_after(NET FORWARD BACKWARD "return q, dv, dw, ds", 1u << SL_PASS_FUSE);
	CHECK(count_op(g, "conv2d_pool") == n / 2);
	sl_graph_free(g);
}

static void test_layout(void)
{
	bool n16 = has_n16();
	sl_graph *g = network_after(NET FORWARD BACKWARD "return q, dv, dv[1], dw, dw[1]", 1u << SL_PASS_LAYOUT);
	CHECK_SAYING(count_n16(g) == (n16 ? 9 : 0), "%d operations in N16", count_n16(g));
	CHECK(count_op(g, "conv2d_lowered") == (n16 ? 2 : 0) && count_op(g, "conv2d") == (n16 ? 0 : 2));
	CHECK(count_op(g, "conv2d_grad_weights_lowered") == (n16 ? 2 : 0));
	sl_graph_free(g);
	g = network_after(NET FORWARD BACKWARD "return q, dv, dv[1], dw, dw[1]",
	                  1u << SL_PASS_FUSE | 1u << SL_PASS_LAYOUT);
	CHECK_SAYING(count_n16(g) == (n16 ? 5 : 0), "%d operations in N16", count_n16(g));
	sl_graph_free(g);
	/* Results of the program, other batches, arguments that are broadcast, operations that know no order. */
	g = network_after(NET "c = conv2d(x, w, b)\nreturn c, relu(c)", 1u << SL_PASS_LAYOUT);
	CHECK(count_n16(g) == 0);
	sl_graph_free(g);
	g = network_after(NET "c = conv2d(x, w, b)\ns = sum(c, axes=(0,))\nreturn max_pool2d(c, kernel=(2, 2)), s",
	                  1u << SL_PASS_LAYOUT);
	CHECK(count_n16(g) == 0);
	sl_graph_free(g);
	g = network_after(NET "c = conv2d(x, w, b)\nr = add(c, sum(w))\nreturn max_pool2d(r, kernel=(2, 2))",
	                  1u << SL_PASS_LAYOUT);
	CHECK(count_n16(g) == (n16 ? 2 : 0));
	sl_graph_free(g);
	g = network_after(NET "c = conv2d(x, w, b)\nr = add(c, sum(c, axes=(2, 3), keepdims=true))\n"
	                      "return max_pool2d(r, kernel=(2, 2))",
	                  1u << SL_PASS_LAYOUT);
	CHECK(count_n16(g) == 0);
	sl_graph_free(g);
	g = network_after(
	        "input x: float32 (32, 1, 8, 8)\np = max_pool2d(x, kernel=(2, 2))\n" /* no convolution: nothing gained */
	        "return max_pool2d(relu(p), kernel=(2, 2))",
	        1u << SL_PASS_LAYOUT);
	CHECK(count_n16(g) == 0);
	sl_graph_free(g);
	g = network_after(
	        "input x: float32 (6, 1, 8, 8)\nparam w: float32 (2, 1, 3, 3)\nc = conv2d(x, w)\nr = relu(c)\n"
	        "return max_pool2d(r, kernel=(2, 2))",
	        1u << SL_PASS_FUSE | 1u << SL_PASS_LAYOUT);
	CHECK(count_n16(g) == 0 && count_op(g, "conv2d_pool") == 0);
	sl_graph_free(g);
}

/* A whole step of training, through all passes. */
static void test_step(void)
{
	sl_graph *g = network_after(
	        NET
	        "param m: float32 (4, 12)\nparam k: float32 (4,)\ninput t: int32 (32,)\n" FORWARD
	        "f = reshape(q, shape=(-2, -1))\nh = linear(f, m, k, tw=true)\nl = softmax_cross_entropy(h, t)\n"
	        "one = full_like(l, value=1)\ndh = softmax_cross_entropy_grad(one, h, t)\n"
	        "dh2 = reshape(dh, shape=(32, 4))\ndf = dot(dh2, m)\ndm = dot(dh2, f, ta=true)\n"
	        "dk = sum(dh2, axes=(0,))\nd2 = reshape(df, shape=(32, 3, 2, 2))\n"
	        "dq = max_pool2d_grad(s, d2, kernel=(2, 2), size=(4, 4))\nds = relu_grad(dq, s)\n"
	        "dp = conv2d_grad_data(ds, v, size=(5, 5))\ndv = conv2d_grad_weights(p, ds, size=(2, 2), bias=true)\n"
	        "dr = avg_pool2d_grad(dp, type=1, kernel=(2, 2), size=(10, 10))\ndc = relu_grad(dr, r)\n"
	        "dw = conv2d_grad_weights(x, dc, size=(3, 3), bias=true)\n"
	        "sgd(w, dw, b, dw[1], v, dv, u, dv[1], m, dm, k, dk, lr=0.1)\nreturn l",
	        (1u << SL_PASS_SEGMENT) - 1);
	CHECK(count_op(g, "linear_sgd") == 1 && count_op(g, "dot") == 0 && count_op(g, "relu_grad") == 0);
	sl_graph_free(g);
}

#define RESIDUAL                                                                                                       \
	"input x: float32 (5, 40)\ninput r: float32 (5, 40)\ninput g: float32 (40,)\ninput b: float32 (40,)\n"         \
	"input m: float32 (5,)\n"

/* Sums around layer normalisation are a part of it, with the same bits. */
static void test_residual(void)
{
	EXACT(FUSE, RESIDUAL "s = add(x, r)\nn = layer_norm(s, g, b, eps=0.001)\nreturn n, s",
	      RESIDUAL "s = layer_norm_sum(x, g, b, r, eps=0.001)\nreturn s, s[3]");
	EXACT(FUSE, RESIDUAL "d = layer_norm_grad(x, r, g, m, m)\ne = add(d, x)\nreturn e, d[1]",
	      RESIDUAL "d = layer_norm_grad(x, r, g, m, m, x)\nreturn d, d[1]");
	SAME(FUSE, RESIDUAL "d = layer_norm_grad(x, r, g, m, m)\ne = add(d, x)\nreturn e, d");
	SAME(FUSE, RESIDUAL "s = add(x, b)\nn = layer_norm(s, g, b, eps=0.001)\nreturn n");
}

static const struct slp_test conv_tests[] = {
        {"pooling", test_conv_pool},
        {"layout", test_layout},
        {"step", test_step},
        {0},
};
static const struct slp_test chain_tests[] = {
        {"chain", test_chain},
        {"long", test_chain_long},
        {"writes", test_chain_writes},
        {0},
};
static const struct slp_test fuse_tests[] = {
        {"activations", test_activations},
        {"slopes", test_slopes},
        {"linear gradients", test_linear_grads},
        {"not linear gradients", test_not_linear_grads},
        {"updates", test_updates},
        {"residual", test_residual},
        {0},
};

int main(int argc, char **argv)
{
/* clang-format off */
#define SUITE(title, list) {.name = title, .tests = list, .start = slp_start_engine, .stop = slp_stop_engine, .after = clear}
	/* clang-format on */
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             SUITE("fuse", fuse_tests),
	                             SUITE("chain", chain_tests),
	                             SUITE("convolutions", conv_tests),
	                             {0},
	                     });
}
