/* Programs as text: printing, parsing, pictures; running them operation by operation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

static void clear(void)
{
	sl_wait_all();
	sl_error_clear();
}

/* The first result of a run. */
static sl_tensor *run1(const sl_graph *g, sl_tensor *const *in, int nin)
{
	sl_tensor *out[8] = {NULL};
	CHECK_OK(slp_graph_evaluate(g, in, nin, out));
	for (int i = 1; i < 8; i++) sl_release(out[i]);
	return slp_scope_add(out[0]);
}

/* ---- printing and parsing ---------------------------------------------------------------------------------------- */

/* Printed and parsed again, a program prints the same. */
static void check_same_again(const char *text)
{
	sl_graph *g = sl_graph_parse(text);
	CHECK_SAYING(g != NULL, "%s", sl_error_message());
	sl_error_clear();
	if (!g) return;
	CHECK_PROGRAM(g, text);
	sl_graph_free(g);
}

/* Programs written before layouts had one attribute. */
static void test_earlier_layouts(void)
{
	sl_graph *g = sl_graph_parse("input x: float32 (16, 3, 8, 8)\n"
	                             "param w: float32 (4, 3, 3, 3)\n"
	                             "c = conv2d_lowered(x, w, pad=(1, 1), x_last=false, y_lanes=true)\n"
	                             "p = max_pool2d(x, kernel=(2, 2), last=true)\n"
	                             "q = max_pool2d(x, kernel=(2, 2), x_lanes=true)\n"
	                             "b = batch_norm(x, w, w, w, w, last=true)\n"
	                             "r = relayout(x, to_lanes=true)\n"
	                             "return b, c, p, q, r\n");
	CHECK_SAYING(g != NULL, "%s", sl_error_message());
	sl_error_clear();
	if (!g) return;
	CHECK_PROGRAM(g, "input x: float32 (16, 3, 8, 8)\n"
	                 "param w: float32 (4, 3, 3, 3)\n"
	                 "c = conv2d_lowered(x, w, pad=(1, 1), y_layout=n16)\n"
	                 "p = max_pool2d(x, kernel=(2, 2), x_layout=nhwc, y_layout=nhwc)\n"
	                 "q = max_pool2d(x, kernel=(2, 2), x_layout=n16)\n"
	                 "b = batch_norm(x, w, w, w, w, layout=nhwc)\n"
	                 "r = relayout(x, layout=n16)\n"
	                 "return b, c, p, q, r\n");
	sl_graph_free(g);
}

static void test_round_trips(void)
{
	check_same_again("input a: float32 (2, 3)\n"
	                 "input b: int32\n"
	                 "y = relu(a)\n"
	                 "return y, b\n");
	check_same_again("input x: float32 (4, 3)\n"
	                 "param w: float32 (3, 2)\n"
	                 "const c: float32 (2,) = [1, 0.1]\n"
	                 "const zeros: float64 (100, 100) = 0\n"
	                 "const s: int32 () = -7\n"
	                 "const e: float32 (0,) = []\n"
	                 "h = linear(x, w, c): float32 (4, 2)\n"
	                 "k = add(h, 1.5): float32 (4, 2)\n"
	                 "sgd(w, x, lr=0.1, rescale=1)\n"
	                 "return k as loss, h\n");
	check_same_again("input x: float32 (8, 3, 9, 9)\n"
	                 "param w: float32 (4, 3, 3, 3)\n"
	                 "c = conv2d(x, w, stride=(2, 2), pad=(1, 1))\n"
	                 "m = sum(c, axes=(0, 2), keepdims=true)\n"
	                 "t = transpose(m, axes=(1, 0, 2, 3))\n"
	                 "r = reshape(t, shape=(-2, -1))\n"
	                 "v = reshape(t, shape=(-1,))\n"
	                 "f = fill(dtype=int32, shape=(2, 3), value=3)\n"
	                 "s = fill(value=0)\n"
	                 "d = dropout(r, p=0.5, stream=0)\n"
	                 "e = uniform(shape=(2,), high=1, seed=42, stream=7)\n"
	                 "k = cast(e, dtype=uint8)\n"
	                 "return d, e, f, k, s, v\n");
	check_same_again("input x: float32 (16, 3, 9, 9)\n"
	                 "param w: float32 (4, 3, 3, 3)\n"
	                 "c = conv2d_lowered(x, w, pad=(1, 1), x_layout=n16, y_layout=n16, activation=relu)\n"
	                 "p = conv2d_pool(x, w, crop=(1, 1), pool=2, activation=relu)\n"
	                 "d = conv2d_grad_data_pool(p, w, p[1], crop=(1, 1), pool=2, size=(9, 9))\n"
	                 "g = conv2d_grad_weights_lowered(x, c, pad=(1, 1), y_layout=n16, size=(3, 3))\n"
	                 "return d, g\n");
	check_same_again("input \"odd name\": float32 (1,)\n"
	                 "input \"input\": float32 (1,)\n"
	                 "\"a\\\"b\\\\c\\nd\" = add(\"odd name\", \"input\")\n"
	                 "dense0.y = relu(\"a\\\"b\\\\c\\nd\")\n"
	                 "return dense0.y as \"the loss\"\n");
	check_same_again("input x: float32 (4, 2)\n"
	                 "param g: float32 (2,)\n"
	                 "bn = batch_norm(x, g, g, g, g, eps=1e-05): float32 (4, 2), float32 (2,), float32 (2,)\n"
	                 "return bn[1], bn\n");
	check_same_again("const c: float32 (3,) = [1, nan, -inf]\n"
	                 "y = add(c, -0)\n"
	                 "z = mul_scalar(y, value=0.3333333333333333)\n"
	                 "return z\n");
}

static void test_parse_freely(void)
{
	sl_graph *g = sl_graph_parse("# a comment\n\n  input x : float32(2,)  # blanks do not matter\r\n"
	                             "a = 2\nb = a\n"
	                             "add = add( mul(x, b), relu(x) , )\n"
	                             "u = uniform(shape=(2,), high=1)\n"
	                             "v = uniform(shape=(2,), stream=5)\n"
	                             "w = dropout(x, p=.5)\n"
	                             "return add, batch_norm(x, x, x, x, x)[2] as s\nreturn u");
	CHECK_PROGRAM(g, "input x: float32 (2,)\n"
	                 "const a: float32 () = 2\n"
	                 "mul = mul(x, a)\n"
	                 "relu = relu(x)\n"
	                 "add = add(mul, relu)\n"
	                 "u = uniform(shape=(2,), high=1, stream=0)\n"
	                 "v = uniform(shape=(2,), stream=5)\n"
	                 "w = dropout(x, p=0.5, stream=6)\n"
	                 "batch_norm = batch_norm(x, x, x, x, x)\n"
	                 "return add, batch_norm[2] as s, u\n");
	CHECK(g->nrandom == 7);
	CHECK(strstr(g->nodes[g->outputs[0].node].at, "line 6") && strstr(g->nodes[g->outputs[0].node].at, __FILE__));
	sl_graph_free(g);
}

static void test_parse_errors(void)
{
	static const struct {
		const char *text, *place, *what;
		enum sl_status status;
	} wrong[] = {
	        {"", "line 1, column 1", "returns nothing", SL_EFORMAT},
	        {"input x", "line 1, column 8", "returns nothing", SL_EFORMAT},
	        {"return x", "line 1, column 8", "x is not defined", SL_EINVAL},
	        {"input x\ny = rleu(x)\nreturn y", "line 2, column 9", "no operation rleu", SL_EINVAL},
	        {"input x\ny = add(x)\nreturn y", "line 2, column 8", "takes 2 inputs (a b), not 1", SL_EINVAL},
	        {"input x\ny = concat()\nreturn y", "line 2", "not 0", SL_EINVAL},
	        {"input x\ny = relu(x, lr=1)\nreturn y", "line 2, column 13", "no attribute lr", SL_EINVAL},
	        {"input x\ny = conv2d(x, x, x_layout=n16)", "line 2, column 18", "conv2d has no attribute x_layout",
	         SL_EINVAL},
	        {"input x\ny = conv2d_grad_data(x, x, pool=1)", "line 2", "conv2d_grad_data has no attribute pool",
	         SL_EINVAL},
	        {"input x\ny = relu(x\nreturn y", "line 2, column 11", "\")\" expected", SL_EFORMAT},
	        {"input x\ny = relu(x) z\nreturn y", "line 2, column 13", "expected the end of the line", SL_EFORMAT},
	        {"input x\ninput x\nreturn x", "line 2, column 7", "x has been defined", SL_EINVAL},
	        {"input x: float17", "line 1, column 10", "data type", SL_EFORMAT},
	        {"input x: float32 (-1)", "line 1, column 19", "size", SL_EFORMAT},
	        {"input x: float32 (1,1,1,1,1,1,1,1,1)", "line 1", "at most 8", SL_ESHAPE},
	        {"input x: float32 (4000000000, 4000000000)", "line 1", "too large", SL_ESHAPE},
	        {"param x: float32 (40000000000)", "line 1", "larger than", SL_EINVAL},
	        {"param x: float32", "line 1", "shape is needed", SL_EFORMAT},
	        {"const c: float32 (2,) = [1]\nreturn c", "line 1, column 27", "fewer", SL_ESHAPE},
	        {"const c: float32 (2,) = [1, 2, 3]", "line 1, column 32", "more numbers", SL_ESHAPE},
	        {"const c: float32 (200,) = ...", "line 1", "left out", SL_EINVAL},
	        {"const c: float32 (200,) = [1]", "line 1", "at most 64", SL_EINVAL},
	        {"input x\nreturn x $", "line 2, column 10", "'$'", SL_EFORMAT},
	        {"input x\nreturn \"x", "line 2, column 8", "not closed", SL_EFORMAT},
	        {"input \"\"\nreturn 1", "line 1", "empty", SL_EFORMAT},
	        {"input x\ny = sum(x, keepdims=2)\nreturn y", "line 2, column 21", "true or false", SL_EINVAL},
	        {"input x\ny = sum(x, axes=(1.5,))\nreturn y", "line 2", "integer", SL_EINVAL},
	        {"input x\ny = sum(x, axes=(1,2,3,4,5,6,7,8,9))\nreturn y", "line 2", "at most 8", SL_EINVAL},
	        {"input x\ny = softmax(x, axis=99999999999)\nreturn y", "line 2", "out of range", SL_EINVAL},
	        {"input x\nreturn x[1]", "line 2, column 10", "results 0 to 0", SL_EINVAL},
	        {"input x\ny = sgd(x, x)\nreturn x", "line 2", "no result", SL_EINVAL},
	        {"input x\nreturn relu(sgd(x, x))", "line 2", "no result", SL_EINVAL},
	        {"return 1x", "line 1, column 8", "not a number", SL_EFORMAT},
	        {"return 0x10", "line 1, column 8", "not a number", SL_EFORMAT},
	        {"input return\nreturn 1", "line 1", "a name expected", SL_EFORMAT},
	        {"= 3", "line 1, column 1", "a name expected", SL_EFORMAT},
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK_NULL(sl_graph_parse(wrong[i].text), wrong[i].status, wrong[i].place, wrong[i].what);
	CHECK_NULL(sl_graph_parse(NULL), SL_EINVAL);
	char deep[4096] = "input x\nreturn ";
	for (int i = 0; i < 500; i++) strcat(deep, "relu(");
	CHECK_NULL(sl_graph_parse(deep), SL_EFORMAT, "nested too deeply");
	char name[300] = "input ";
	memset(name + 6, 'a', 200);
	CHECK_NULL(sl_graph_parse(name), SL_EFORMAT, "too long");
}

/* Any part of a program is a program or an error. */
static void test_cut_off(void)
{
	const char *whole = "input x: float32 (2, 3)\nconst c: float32 (3,) = [1, 2, 3]\n"
	                    "y = sum(add(x, c), axes=(0, 1), keepdims=true): float32 (1, 1)\nreturn y[0] as \"z\", 3\n";
	for (size_t n = 0; n < strlen(whole); n++) {
		char *text = strndup(whole, n);
		sl_graph *g = sl_graph_parse(text);
		CHECK((g != NULL) == (sl_error() == SL_OK));
		sl_error_clear();
		sl_graph_free(g);
		if (n) text[n / 2] = '(';
		sl_graph_free(sl_graph_parse(text));
		sl_error_clear();
		free(text);
	}
}

static void test_print_errors(void)
{
	sl_graph *g = sl_graph_parse("return 1");
	CHECK_FAILS(sl_graph_print(stdout, NULL), SL_EINVAL, "sl_graph_print");
	CHECK_FAILS(sl_graph_print(NULL, g), SL_EINVAL, "file");
	FILE *full = fopen("/dev/full", "w");
	setvbuf(full, NULL, _IONBF, 0);
	CHECK_FAILS(sl_graph_print(full, g), SL_EIO);
	CHECK_FAILS(sl_graph_dot(full, g), SL_EIO);
	fclose(full);
	sl_graph_free(g);
}

static void test_dot(void)
{
	sl_graph *g = slp_program("input x: float32 (4, 2)\nparam w: float32 (2, 2)\ny = linear(x, w)\n"
	                          "sgd(w, w)\nreturn y as out");
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	CHECK_OK(sl_graph_dot(f, g));
	fclose(f);
	CHECK(strstr(text, "digraph") == text);
	CHECK(strstr(text, "n0 [shape=oval, label=\"x\\nfloat32 (4, 2)\"]") != NULL);
	CHECK(strstr(text, "linear\\ny\\nfloat32 (4, 2)") != NULL);
	CHECK(strstr(text, "n1 -> n3 [dir=both") != NULL);
	CHECK(strstr(text, "label=\"out\"") != NULL);
	free(text);
	CHECK_FAILS(sl_graph_dot(stdout, NULL), SL_EINVAL, "sl_graph_dot");
	sl_graph_free(g);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void test_evaluate(void)
{
	SL_SCOPE {
		sl_graph *g = slp_program("input a: float32 (2,)\ninput b: float32 (2,)\n"
		                          "c = sub(a, mul(b, 3))\nreturn c, b");
		sl_tensor *in[] = {sl_from(((float[]){1, 2}), SL_SHAPE(2)), sl_from(((float[]){10, 20}), SL_SHAPE(2))};
		sl_tensor *out[2];
		CHECK_OK(slp_graph_evaluate(g, in, 2, out));
		CHECK_VALUES(out[0], -29, -58);
		CHECK(out[1] == in[1]);
		for (int i = 0; i < 2; i++) sl_release(out[i]);
		CHECK_FAILS(slp_graph_evaluate(g, in, 1, out), SL_EINVAL, "takes 2 inputs, got 1");
		sl_graph_free(g);
	}
}

/* Two runs draw different numbers; the same seed draws the same. */
static void test_random(void)
{
	SL_SCOPE {
		sl_graph *g = slp_program("u = uniform(shape=(4,), high=1)\nv = uniform(shape=(4,), high=1)\n"
		                          "return sub(u, v), u");
		float a[4], b[4], c[4], d[4];
		sl_seed(3);
		CHECK_OK(sl_read(run1(g, NULL, 0), a, sizeof a));
		CHECK_OK(sl_read(run1(g, NULL, 0), b, sizeof b));
		sl_seed(3);
		CHECK_OK(sl_read(run1(g, NULL, 0), c, sizeof c));
		sl_seed(3);
		sl_tensor *u = sl_uniform(SL_SHAPE(4), 0, 1), *v = sl_uniform(SL_SHAPE(4), 0, 1);
		CHECK_OK(sl_read(sl_sub(u, v), d, sizeof d));
		CHECK(!memcmp(a, c, sizeof a) && !memcmp(a, d, sizeof a) && memcmp(a, b, sizeof a) && a[0] != 0);
		sl_graph_free(g);
	}
}

static void test_compare(void)
{
	SL_SCOPE {
		const char *text = "input x: float32 (3,)\nparam w: float32 (3,)\nsgd(w, x, lr=0.5, rescale=1)\n"
		                   "return add(x, w)";
		sl_graph *g = slp_program(text), *h = slp_graph_copy(g);
		CHECK_OK(slp_graph_compare("same", g, h, 0));
		CHECK_ALL(g->nodes[1].tensor, 0); /* it was restored */
		double lr = 0.25;
		memcpy(h->nodes[2].attrs.bytes, &lr, sizeof lr);
		CHECK_FAILS(slp_graph_compare("changed", g, h, 1e-3), SL_EINTERNAL, "changed: add differs");
		h->outputs[0] = g->outputs[0] = (struct slp_value){0, 0};
		CHECK_FAILS(slp_graph_compare("changed", g, h, 1e-3), SL_EINTERNAL,
		            "a parameter that is written differs");
		CHECK_ALL(g->nodes[1].tensor, 0);
		h->outputs[0] = (struct slp_value){1, 0};
		CHECK_FAILS(slp_graph_compare("other", g, h, 1e-3), SL_EINTERNAL, "other: x differs");
		sl_tensor *a = sl_from(((float[]){1, NAN, 3}), SL_SHAPE(3)),
		          *b = sl_from(((float[]){1, 2, 3}), SL_SHAPE(3));
		CHECK_OK(slp_compare("nan", "a", a, a, 0));
		CHECK_FAILS(slp_compare("nan", "a", a, b, 1), SL_EINTERNAL, "nan: a differs");
		CHECK_FAILS(slp_compare("nan", "b", b, a, 1), SL_EINTERNAL, "differs");
		sl_graph_free(g);
		sl_graph_free(h);
	}
}

static const struct slp_test text_tests[] = {
        {"round trips", test_round_trips},
        {"earlier layouts", test_earlier_layouts},
        {"freely", test_parse_freely},
        {"errors", test_parse_errors},
        {"cut off", test_cut_off},
        {"print errors", test_print_errors},
        {"dot", test_dot},
        {0},
};
static const struct slp_test run_tests[] = {
        {"evaluate", test_evaluate},
        {"random", test_random},
        {"compare", test_compare},
        {0},
};

int main(int argc, char **argv)
{
/* clang-format off */
#define SUITE(title, list) {.name = title, .tests = list, .start = slp_start_engine, .stop = slp_stop_engine, .after = clear}
	/* clang-format on */
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             SUITE("text", text_tests),
	                             SUITE("running", run_tests),
	                             {0},
	                     });
}
