/* Elementwise operations of programs in plans: joined with their neighbours in one pass over memory, with the bits of
 * calls one by one, in both types and with half types; what does not fit stays a call; failures are reported. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "blocks.h"
#include "op.h"
#include "own_ops.h"

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* scale x + shift[0] + shift[1]: fields of all kinds. */
struct bend {
	double shift[2];
	int64_t scale;
	int times;
	bool negate;
};

static const struct sl_op_attr bend_attrs[] = {
        {.name = "shift", .kind = SL_ATTR_DOUBLE, .offset = offsetof(struct bend, shift), .count = 2},
        SL_OP_ATTR(struct bend, scale, SL_ATTR_INT64),
        SL_OP_ATTR(struct bend, times, SL_ATTR_INT),
        SL_OP_ATTR(struct bend, negate, SL_ATTR_BOOL),
        {0},
};

static _Atomic int64_t longest; /* array that a kernel has seen */
static _Atomic int axes;        /* of the array with most */

static void forget_arrays(void)
{
	longest = 0;
	axes = 0;
}

static void look_at(const struct sl_op_array *a)
{
	int64_t n = sl_shape_size(a->shape);
	if (n > longest) longest = n;
	if (a->shape.ndim > axes) axes = a->shape.ndim;
}

static double element(const struct sl_op_array *a, int64_t i)
{
	return a->dtype == SL_FLOAT64 ? ((const double *)a->data)[i] : (double)((const float *)a->data)[i];
}

static void set_element(const struct sl_op_array *a, int64_t i, double value)
{
	if (a->dtype == SL_FLOAT64) ((double *)a->data)[i] = value;
	else ((float *)a->data)[i] = (float)value;
}

static void bend_range(void *context, int64_t begin, int64_t end)
{
	const struct sl_op_call *c = context;
	const struct bend *a = c->attrs;
	for (int64_t i = begin; i < end; i++) {
		double x = element(&c->in[0], i), y = (double)(a->scale * a->times) * x + a->shift[0] + a->shift[1];
		set_element(&c->out[0], i, a->negate ? -y : y);
	}
}

static enum sl_status bend_cpu(const struct sl_op_call *c)
{
	int64_t n = sl_shape_size(c->in[0].shape);
	look_at(&c->in[0]);
	for (int64_t i = 0; i < n; i++)
		if (element(&c->in[0], i) == 99) return sl_op_fail(c, SL_EINVAL, "99 is too much");
	sl_parallel_for(n, 1000, bend_range, (void *)c);
	return SL_OK;
}

static enum sl_status bend_gradient(const struct sl_op_gradient *g)
{
	const struct bend *a = g->attrs;
	g->din[0] = sl_mul_scalar(g->dout[0], (a->negate ? -1 : 1) * (double)(a->scale * a->times));
	return SL_OK;
}

/* x |y|: of two operands. */
static enum sl_status pair_cpu(const struct sl_op_call *c)
{
	look_at(&c->in[0]);
	look_at(&c->in[1]);
	for (int64_t i = 0; i < sl_shape_size(c->out[0].shape); i++)
		set_element(&c->out[0], i, element(&c->in[0], i) * fabs(element(&c->in[1], i)));
	return SL_OK;
}

static enum sl_status wrong_rule(const struct sl_op_call *c)
{
	c->out[0].dtype = c->in[0].dtype;
	c->out[0].shape = SL_SHAPE(1);
	return SL_OK;
}

static const unsigned both = SL_OP_TYPE(SL_FLOAT32) | SL_OP_TYPE(SL_FLOAT64);
static const sl_op *bend, *pair, *single, *wrong;

static int start(void)
{
	if (!bend) {
		bend = sl_op_register(.name = "own_bend", .nin = 1, .types = both, .attrs = bend_attrs,
		                      .attrs_size = sizeof(struct bend), .elementwise = true, .cpu = bend_cpu,
		                      .gradient = bend_gradient);
		pair = sl_op_register(.name = "own_pair", .nin = 2, .types = both, .elementwise = true,
		                      .cpu = pair_cpu);
		single = sl_op_register(.name = "own_single", .nin = 2, .elementwise = true, .cpu = pair_cpu);
		wrong = sl_op_register(.name = "own_wrong", .nin = 1, .elementwise = true, .rule = wrong_rule,
		                       .cpu = pair_cpu);
	}
	return bend && pair && single && wrong ? slp_start_engine() : 1;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* Runs a program of x and y, and the same without the pass; the operations that are left, or -1 if they differ. */
static int compare(const char *text, sl_tensor *x, sl_tensor *y)
{
	sl_graph *g = sl_graph_parse(text);
	sl_plan *plans[2] = {sl_compile(g), sl_compile(g, .off = 1u << SL_PASS_CHAIN)};
	sl_tensor *out[2][2];
	int left = -1;
	forget_arrays();
	for (int i = 0; i < 2; i++)
		if (!CHECK_SAYING(plans[i] && sl_plan_run(plans[i], SL_ARRAY(sl_tensor *, x, y), 2, out[i]) == SL_OK,
		                  "%s", sl_error_message()))
			goto end;
	if (slp_same_bits(out[0][0], out[1][0])) left = sl_plan_info(plans[0]).nodes;
end:
	for (int i = 0; i < 2; i++) sl_plan_free(plans[i]);
	sl_graph_free(g);
	return left;
}

#define PROGRAM(dtype, shape, rest) "input x: " dtype " " shape "\ninput y: " dtype " " shape "\n" rest

static sl_tensor *numbers(sl_shape shape, enum sl_dtype dtype)
{
	return sl_cast(sl_uniform(shape, -2, 2), dtype);
}

static void check_all(enum sl_dtype dtype, const char *name, const char *shape_text, sl_shape shape)
{
	static const struct {
		const char *rest;
		int left;
	} cases[] = {
	        {"a = own_bend(x, shift=(0.25, -3), scale=-3, times=2, negate=true)\nb = tanh(a)\nreturn b", 1},
	        {"a = exp(x)\nb = own_bend(a, times=1, scale=2)\nreturn b", 1},
	        {"a = own_bend(x, scale=2, times=1)\nb = own_pair(a, y)\nc = mul(b, y)\nd = rsub_scalar(c, value=7)\n"
	         "return d",
	         1},
	        {"a = add(x, y)\nb = own_pair(a, y)\nc = add_scalar(b, value=3)\nd = own_pair(c, x)\nreturn d", 1},
	        {"a = own_pair(x, x)\nb = relu(a)\nreturn b", 1},
	        {"a = own_pair(x, y)\nb = sum(a)\nc = mul_scalar(a, value=2)\nreturn c, b", 3}, /* another needs it */
	        /* More numbers than an expression holds. */
	        {"a = own_bend(x, shift=(1, 2), scale=2, times=3)\nb = own_bend(a, shift=(3, 4), scale=4, times=5)\n"
	         "return b",
	         2},
	        /* A number that no double is. */
	        {"a = own_bend(x, scale=9007199254740993, times=1)\nb = relu(a)\nreturn b", 2},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		SL_SCOPE {
			char text[600];
			snprintf(text, sizeof text, "input x: %s %s\ninput y: %s %s\n%s", name, shape_text, name,
			         shape_text, cases[i].rest);
			int left = compare(text, numbers(shape, dtype), numbers(shape, dtype));
			CHECK_SAYING(left == cases[i].left, "%d operations are left, not %d (-1: other bits) of\n%s",
			             left, cases[i].left, text);
		}
}

static void test_values(void)
{
	check_all(SL_FLOAT32, "float32", "(2, 3)", SL_SHAPE(2, 3));
	check_all(SL_FLOAT64, "float64", "(7, 5)", SL_SHAPE(7, 5));
	check_all(SL_FLOAT32, "float32", "(70, 3001)", SL_SHAPE(70, 3001)); /* many blocks, all threads */
	check_all(SL_FLOAT64, "float64", "()", SL_SCALAR);
	check_all(SL_FLOAT32, "float32", "(3, 0)", SL_SHAPE(3, 0));
}

/* Kernels get parts that stay in a cache, as arrays of one axis. */
static void test_parts(void)
{
	SL_SCOPE {
		sl_tensor *x = numbers(SL_SHAPE(300, 300), SL_FLOAT32), *y;
		sl_graph *g = sl_graph_parse("input x: float32 (300, 300)\na = exp(x)\nb = own_pair(a, x)\nreturn b");
		sl_plan *plan = sl_compile(g);
		forget_arrays();
		CHECK_OK(sl_plan_run(plan, &x, 1, &y));
		CHECK_OK(sl_wait(y));
		CHECK(axes == 1 && longest > 0 && longest <= 4096);
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

/* Rows that are broadcast: an operand may be one number for a whole part. */
static void test_broadcast(void)
{
	SL_SCOPE {
		sl_tensor *x = numbers(SL_SHAPE(4, 1), SL_FLOAT32), *y = numbers(SL_SHAPE(9), SL_FLOAT32), *out[2];
		sl_graph *g = sl_graph_parse("input x: float32 (4, 1)\ninput y: float32 (9,)\na = add(x, y)\n"
		                             "b = sub(y, x)\nc = own_pair(a, b)\nd = own_bend(c, scale=1, times=1)\n"
		                             "return d");
		for (int i = 0; i < 2; i++) {
			sl_plan *plan = sl_compile(g, .off = i ? 1u << SL_PASS_CHAIN : 0);
			CHECK(plan && sl_plan_info(plan).nodes == (i ? 4 : 1));
			CHECK_OK(sl_plan_run(plan, SL_ARRAY(sl_tensor *, x, y), 2, &out[i]));
			sl_plan_free(plan);
		}
		CHECK_SAME(out[0], out[1]);
		sl_graph_free(g);
	}
}

/* Without a kernel for the type that an expression computes in, it stays a call. */
static void test_types(void)
{
	SL_SCOPE {
		sl_tensor *x = numbers(SL_SHAPE(5), SL_FLOAT32);
		CHECK(compare(PROGRAM("float32", "(5,)", "a = own_single(x, y)\nb = relu(a)\nreturn b"), x, x) == 1);
		x = numbers(SL_SHAPE(5), SL_BFLOAT16); /* computed in float32 */
		sl_graph *g = sl_graph_parse("input x: bfloat16 (5,)\na = own_single(x, x)\nb = relu(a)\nreturn b");
		sl_plan *plan = sl_compile(g);
		sl_tensor *y = NULL;
		CHECK(plan && sl_plan_info(plan).nodes == 1);
		CHECK_OK(sl_plan_run(plan, &x, 1, &y));
		sl_tensor *wide = sl_cast(x, SL_FLOAT32);
		CHECK_SAME(y, sl_cast(sl_relu(sl_mul(wide, sl_abs(wide))), SL_BFLOAT16));
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

#define CHECK_WRONG(...)                                                                                               \
	CHECK_NULL(sl_op_register(.name = "own_never", .elementwise = true, .cpu = pair_cpu, __VA_ARGS__), SL_EINVAL,  \
	           "elementwise operations have one or two inputs")

static size_t some_scratch(const struct sl_op_call *c)
{
	(void)c;
	return 8;
}

/* A program with this step of a joined expression is refused; saying NULL: it is not. */
static void check_text(const char *dtype, int step, const char *saying)
{
	char text[200];
	snprintf(text, sizeof text, "input x: %s (2,)\nreturn fused(x, step=(%d,))", dtype, step);
	sl_graph *g = sl_graph_parse(text);
	sl_plan *plan = sl_compile(g);
	CHECK_SAYING(!plan == (saying != NULL) && (plan || strstr(sl_error_message(), saying)), "%s",
	             sl_error_message());
	sl_error_clear();
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2)), *y = NULL;
		if (plan) CHECK_OK(sl_plan_run(plan, &x, 1, &y));
		if (plan) CHECK_ALL(y, 0); /* the number beside it is 0 */
	}
	sl_plan_free(plan);
	sl_graph_free(g);
}

static void test_mistakes(void)
{
	CHECK_WRONG(.nin = 3);
	CHECK_WRONG(.nin = 1, .nin_max = 2);
	CHECK_WRONG(.nin = 1, .nout = 2);
	CHECK_WRONG(.nin = 1, .scratch = some_scratch);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3));
		CHECK_NULL(sl_op_apply(wrong, &x, 1), SL_ESHAPE, "own_wrong", "it is elementwise");
		CHECK_NULL(sl_op_apply(pair, SL_ARRAY(sl_tensor *, x, sl_ones(SL_SHAPE(3))), 2), SL_ESHAPE, "own_pair");
	}
	/* Steps that a hand has written: no such operation of the library, of programs; one without a kernel for the type. */
	int place = 0;
	while (strcmp(slp_ops[place]->name, "own_single")) place++;
	check_text("float32", 255, "step 0: no function 255");
	check_text("float32", 255 | 1 << 24, "step 0: no function 255");
	check_text("float64", place | 1 << 24, "step 0, own_single: no kernel takes float64");
	check_text("float32", place | 32 << 8 | 1 << 24, NULL);
}

static sl_tensor *forward(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self, (void)nin;
	return sl_tanh(sl_op_apply(bend, SL_ARRAY(sl_tensor *, sl_add_scalar(in[0], 1)), 1,
	                           .attrs = &(struct bend){.scale = 2, .times = 1}));
}

/* The first failure of any thread names the operation and says why; what is computed afterwards is right. */
static void test_failures(void)
{
	sl_block *net = slp_user_block(forward);
	CHECK_OK(sl_hybridize(net));
	SL_SCOPE {
		sl_tensor *bad = sl_full(SL_SHAPE(300000), 98), *good = sl_zeros(SL_SHAPE(300000));
		CHECK_MISTAKE(sl_wait(sl_forward(net, bad)), SL_EINVAL, "own_bend", "test_own_fused.c",
		              "99 is too much");
		CHECK_ALL(sl_forward(net, good), (double)tanhf(2));
		bad = sl_full(SL_SHAPE(3), 98, .dtype = SL_BFLOAT16);
		CHECK_MISTAKE(sl_wait(sl_op_apply(bend, SL_ARRAY(sl_tensor *, sl_add_scalar(bad, 1)), 1)), SL_EINVAL,
		              "own_bend", "99 is too much");
	}
	sl_block_free(net);
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

/* Without fused layers, whose updates may round otherwise, as the compiler likes. */
static sl_tensor *train(bool whole)
{
	sl_block *net = sl_sequential(sl_dense(8), slp_user_block(forward), sl_dense(1));
	sl_seed(3);
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.5)));
	return slp_own_trained(net, whole, 1u << SL_PASS_FUSE);
}

static void test_training(void)
{
	SL_SCOPE {
		sl_tensor *eager = train(false);
		CHECK_SAME(train(true), eager);
	}
}

int main(int argc, char **argv)
{
	static const struct slp_test fused[] = {
	        {"values", test_values},       {"parts", test_parts},
	        {"broadcast", test_broadcast}, {"types", test_types},
	        {"mistakes", test_mistakes},   {"failures", test_failures},
	        {"training", test_training},   {NULL, NULL},
	};
	const struct slp_suite suites[] = {
	        {"own operations in one pass", fused, start, slp_stop_engine, NULL, NULL},
	        {NULL, NULL, NULL, NULL, NULL, NULL},
	};
	return slp_test_main(argc, argv, suites);
}
