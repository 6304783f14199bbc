/* Operations that programs register: called eagerly, hybridised and as whole steps, with gradients; read from text;
 * mistakes. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "alloc.h"
#include "blocks.h"
#include "own_ops.h"

/* ---- calling them ------------------------------------------------------------------------------------------------ */

static const sl_op *axpb;

#define apply_axpb(x, a, b, power) apply_axpb_at(SL_HERE, x, (struct slp_axpb){a, b, power, false, NULL})
static sl_tensor *apply_axpb_at(const char *at, sl_tensor *x, struct slp_axpb attrs)
{
	attrs.unnamed = axpb;
	return sl_op_apply_at(at, axpb, &x, 1, (struct sl_op_opts){.attrs = &attrs});
}

static const sl_op *outer, *careless;

/* ---- registering ------------------------------------------------------------------------------------------------- */

static void register_all(void)
{
	axpb = sl_op_register_at(SL_HERE, slp_axpb_def);
	outer = sl_op_register_at(SL_HERE, slp_outer_def);
}

/* Before the engine starts, for all suites. */
static int start(void)
{
	if (!axpb) register_all();
	return axpb && outer ? slp_start_engine() : 1;
}

static enum sl_status plus_one_cpu(const struct sl_op_call *c)
{
	for (int64_t i = 0; i < sl_shape_size(c->in[0].shape); i++)
		((float *)c->out[0].data)[i] = ((const float *)c->in[0].data)[i] + 1;
	return SL_OK;
}

#define CHECK_WRONG(text, ...)                                                                                         \
	CHECK_NULL(sl_op_register(.name = "own_wrong", .nin = 1, .cpu = plus_one_cpu, ##__VA_ARGS__), SL_EINVAL, text)

#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif

static void test_register(void)
{
	const struct sl_op_attr outside[] = {{.name = "x", .kind = SL_ATTR_INT64, .offset = 8, .count = 2}, {0}};
	const struct sl_op_attr askew[] = {{.name = "x", .kind = SL_ATTR_DOUBLE, .offset = 4}, {0}};
	const struct sl_op_attr strange[] = {{.name = "x", .kind = (enum sl_op_attr_kind)9}, {0}};
	CHECK_WRONG("name", .name = NULL);
	CHECK_WRONG("name", .name = "2x");
	CHECK_WRONG("name", .name = "a b");
	CHECK_WRONG("name", .name = "");
	CHECK_WRONG("own_wrong: it has no CPU kernel", .cpu = NULL);
	CHECK_WRONG("inputs", .nin = -1);
	CHECK_WRONG("inputs", .nin = 17);
	CHECK_WRONG("inputs", .nin = 3, .nin_max = 2);
	CHECK_WRONG("results", .nout = 5);
	CHECK_WRONG("rule", .nin = 0);
	CHECK_WRONG("types", .types = 1);
	CHECK_WRONG("types", .types = 1u << 30);
	CHECK_WRONG("too large", .attrs_size = 113);
	CHECK_WRONG("attribute", .attrs = outside, .attrs_size = 16);
	CHECK_WRONG("attribute", .attrs = askew, .attrs_size = 16);
	CHECK_WRONG("attribute", .attrs = strange, .attrs_size = 16);
	CHECK_NULL(sl_op_register_at(SL_HERE, slp_axpb_def), SL_EINVAL, "there is already an operation own_axpb");
	CHECK_WRONG("there is already an operation add", .name = "add");
	struct sl_op_def again = slp_axpb_def;
	const sl_op *op = NULL;
	again.name = "own_again";
	for (long k = 1; !op && k < 100; k++) {
		slp_fail_alloc = k;
		op = sl_op_register_at(SL_HERE, again);
		slp_fail_alloc = 0;
		if (!op) CHECK_MISTAKE(sl_error(), SL_ENOMEM, "sl_op_register at ");
	}
	CHECK(op && op == sl_op_find("own_again"));
	CHECK(sl_op_find("own_axpb") == axpb && sl_op_find("own_outer") == outer);
	CHECK(!sl_op_find("add") && !sl_op_find("own_wrong") && !sl_op_find(NULL) && sl_error() == SL_OK);
}

static void *register_some(void *number)
{
	char name[32];
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof name, "own_%d_%d", *(int *)number, i);
		const sl_op *op = sl_op_register(.name = name, .nin = 1, .cpu = plus_one_cpu);
		float y = 0;
		SL_SCOPE {
			sl_tensor *x = sl_ones(SL_SHAPE(1));
			if (op && sl_op_find(name) == op) sl_read(sl_op_apply(op, &x, 1), &y, sizeof y);
		}
		if (y != 2) return NULL;
	}
	return number;
}

/* While the engine runs, in several threads, until there are too many. */
static void test_register_later(void)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	int number[THREADS];
	for (int i = 0; i < THREADS; i++)
		number[i] = i, CHECK(!pthread_create(&threads[i], NULL, register_some, &number[i]));
	for (int i = 0; i < THREADS; i++) {
		void *ok = NULL;
		pthread_join(threads[i], &ok);
		CHECK(ok != NULL);
	}
	char name[32];
	const sl_op *op = axpb;
	for (int i = 0; i < 512 && op; i++) {
		snprintf(name, sizeof name, "own_many_%d", i);
		op = sl_op_register(.name = name, .nin = 1, .cpu = plus_one_cpu);
	}
	CHECK(!op);
	CHECK_MISTAKE(sl_error(), SL_EUNSUPPORTED, "too many operations");
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static void test_values(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_from(((double[]){1, -2, 3}), SL_SHAPE(3), .dtype = SL_FLOAT64), *out[2];
		CHECK_VALUES(apply_axpb(x, 2, 1, 0), 3, -3, 7);
		CHECK_VALUES(sl_op_apply(axpb, &x, 1), 0, 0, 0);
		CHECK_VALUES(sl_op_apply(axpb, &x, 1, .attrs = &(struct slp_axpb){.a = 1, .power = 2, .negate = true}),
		             -1, -4, -9);
		CHECK_VALUES(apply_axpb(sl_cast(x, SL_FLOAT32), 2, 1, 2), 3, 9, 19);
		sl_tensor *half = apply_axpb(sl_cast(x, SL_BFLOAT16), 2, 1, 2);
		CHECK(sl_tensor_dtype(half) == SL_BFLOAT16);
		CHECK_VALUES(sl_cast(half, SL_FLOAT32), 3, 9, 19);
		sl_tensor *in[] = {x, sl_from(((double[]){10, 20}), SL_SHAPE(2), .dtype = SL_FLOAT64)};
		CHECK(sl_op_apply(outer, in, 2, .out = out) == out[0]);
		CHECK_VALUES(out[0], 10, 20, -20, -40, 30, 60);
		CHECK_VALUES(out[1], 30, -60, 90);
		sl_tensor *large = sl_ones(SL_SHAPE(100000));
		CHECK_ALL(apply_axpb(large, 3, 4, 1), 7);
		CHECK(sl_tensor_size(apply_axpb(sl_zeros(SL_SHAPE(0, 3)), 1, 1, 1)) == 0);
	}
}

static void test_mistakes(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2)), *two[] = {x, x}, *none[] = {NULL}, *many[20] = {x};
		CHECK_NULL(apply_axpb(x, 1, 1, -1), SL_EINVAL, "own_axpb(x float32 (2,))", "power -1 is negative");
		CHECK_NULL(apply_axpb(x, 1, 1, 77), SL_ENOMEM, "own_axpb", "its rule returned");
		CHECK_NULL(apply_axpb(x, 1, 1, 78), SL_EINVAL, "gave result 0 no type");
		CHECK_NULL(sl_op_apply(axpb, two, 2), SL_EINVAL, "takes 1 input, got 2");
		CHECK_NULL(sl_op_apply(axpb, many, 20), SL_EINVAL, "out of range");
		CHECK_NULL(sl_op_apply(axpb, many, -1), SL_EINVAL, "out of range");
		CHECK_NULL(sl_op_apply(axpb, NULL, 1), SL_EINVAL, "NULL");
		CHECK_NULL(sl_op_apply(axpb, none, 1), SL_EINVAL, "NULL");
		CHECK_NULL(sl_op_apply(NULL, two, 1), SL_EINVAL, "NULL");
		sl_tensor *whole = sl_cast(x, SL_INT32);
		CHECK_NULL(sl_op_apply(axpb, &whole, 1), SL_EDTYPE, "own_axpb", "takes float32 or float64, not int32");
		CHECK_NULL(sl_op_apply(outer, two, 2), SL_EDTYPE, "takes float64, not float32");
	}
	sl_error_clear();
}

/* A kernel that fails spoils its results, and no others. */
static void test_failing_kernels(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2)), *bad = apply_axpb(x, 1, 1, 99), *after = sl_add(bad, x),
		          *good = apply_axpb(x, 1, 1, 1);
		CHECK_MISTAKE(sl_wait(after), SL_EINVAL, "own_axpb at ", "test_own.c",
		              "power 99 is too much for 1 threads");
		CHECK_ALL(good, 2);
		sl_error_clear();
		CHECK_STATUS(sl_wait(apply_axpb(x, 1, 1, 98)), SL_EUNSUPPORTED, "own_axpb at ");
	}
	sl_error_clear();
	sl_wait_all();
	sl_error_clear();
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static sl_tensor *axpb_of(void *context, sl_tensor *const *in, int nin)
{
	(void)context, (void)nin;
	return apply_axpb(sl_tanh(in[0]), 2, 1, 3);
}

static sl_tensor *outer_of(void *which, sl_tensor *const *in, int nin)
{
	sl_tensor *out[2];
	(void)nin;
	sl_op_apply(outer, in, 2, .out = out);
	sl_tensor *sums = sl_sum(sl_mul(out[1], out[1]));
	switch (*(int *)which) {
	case 0: return sl_square(out[0]);
	case 1: return out[1];
	default: return sl_add(sl_sum(sl_square(out[0])), sums);
	}
}

/* As own_axpb, but what its gradient reads is not saved. */
static sl_tensor *careless_of(void *context, sl_tensor *const *in, int nin)
{
	(void)context;
	if (!careless) {
		struct sl_op_def def = slp_axpb_def;
		def.name = "own_careless";
		def.saves = 0;
		careless = sl_op_register_at(SL_HERE, def);
	}
	return sl_op_apply(careless, in, nin, .attrs = &(struct slp_axpb){.a = 1, .power = 2});
}

static sl_tensor *careless_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	return careless_of(NULL, in, nin);
}

/* In a plan, too, it is an error. */
static void test_careless_plan(void)
{
	sl_block *net = slp_user_block(careless_forward);
	CHECK_OK(sl_hybridize(net));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2)), *y;
		sl_attach_grad(x);
		SL_RECORD
			y = sl_forward(net, x);
		CHECK_MISTAKE(sl_backward(y), SL_ESTATE, "were not saved");
	}
	sl_block_free(net);
}

static void test_gradients(void)
{
	SL_SCOPE {
		sl_tensor *in[] = {sl_normal(SL_SHAPE(3), 0, 1, .dtype = SL_FLOAT64),
		                   sl_normal(SL_SHAPE(2), 0, 1, .dtype = SL_FLOAT64)},
		          *y;
		CHECK_OK(sl_gradcheck(axpb_of, NULL, in, 1));
		for (int which = 0; which < 3; which++) CHECK_OK(sl_gradcheck(outer_of, &which, in, 2));
		for (int power = 5; power <= 6; power++) {
			CHECK_OK(sl_attach_grad(in[0]));
			SL_RECORD
				y = apply_axpb(in[0], 1, 1, power);
			if (power == 5)
				CHECK_MISTAKE(sl_backward(y), SL_EINVAL, "own_axpb", "set no gradient for input 0");
			else CHECK_MISTAKE(sl_backward(y), SL_ESHAPE, "own_axpb", "float64 ()", "float64 (3,)");
		}
		CHECK_MISTAKE(sl_gradcheck(careless_of, NULL, in, 1), SL_ESTATE, "were not saved", ".saves");
		const sl_op *plain = sl_op_register(.name = "own_plain", .nin = 1, .cpu = plus_one_cpu);
		sl_tensor *x = sl_ones(SL_SHAPE(2));
		sl_attach_grad(x);
		SL_RECORD
			y = sl_op_apply(plain, &x, 1);
		CHECK_MISTAKE(sl_backward(y), SL_EUNSUPPORTED, "own_plain", "no gradient");
	}
}

/* ---- networks ---------------------------------------------------------------------------------------------------- */

static sl_tensor *forward(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self, (void)nin;
	return apply_axpb(in[0], 0.5, 0.25, 2);
}

static sl_block *network(void)
{
	sl_block *net = sl_sequential(sl_dense(8, .activation = SL_TANH), slp_user_block(forward), sl_dense(1));
	sl_seed(3);
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.5)));
	return net;
}

enum way { EAGER, HYBRID, STEP };

static sl_tensor *train(enum way way)
{
	sl_block *net = network();
	if (way == HYBRID) CHECK_OK(sl_hybridize(net));
	return slp_own_trained(net, way == STEP, 0);
}

static void test_training(void)
{
	SL_SCOPE {
		sl_tensor *eager = train(EAGER);
		CHECK_SAME(train(HYBRID), eager);
		CHECK_SAME(train(STEP), eager);
	}
}

/* Other libraries do not know the operation: their formats refuse it, by name. */
static void test_export(void)
{
	sl_block *net = network();
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3));
		CHECK_OK(sl_hybridize(net));
		CHECK_OK(sl_wait(sl_forward(net, x)));
		CHECK_MISTAKE(sl_export(net, "tests/own"), SL_EUNSUPPORTED, "own_axpb");
		CHECK_MISTAKE(sl_export_onnx(net, "tests/own.onnx"), SL_EUNSUPPORTED, "own_axpb");
	}
	sl_block_free(net);
}

/* Text names the operation and the attributes that were given, and is read again. */
static void test_text(void)
{
	sl_graph *g = sl_graph_parse("input x: float64 (2,)\ny = own_axpb(x, a=2, b=1, negate=true)\nreturn y"),
	         *again = NULL;
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	CHECK(g && file);
	if (g && file) CHECK_OK(sl_graph_print(file, g));
	if (file) fclose(file);
	CHECK_SAYING(text && strstr(text, "own_axpb(x, a=2, b=1") && strstr(text, "negate=true"), "%s", text);
	if (text) again = sl_graph_parse(text);
	CHECK_SAYING(again != NULL, "%s", sl_error_message());
	CHECK_NULL(sl_graph_parse("input x: float64 (2,)\nreturn own_axpb(x, c=2)"), SL_EINVAL);
	sl_graph_free(g);
	sl_graph_free(again);
	free(text);
}

int main(int argc, char **argv)
{
	static const struct slp_test own[] = {
	        {"registering", test_register},
	        {"values", test_values},
	        {"mistakes", test_mistakes},
	        {"failing kernels", test_failing_kernels},
	        {"gradients", test_gradients},
	        {"what was not saved", test_careless_plan},
	        {"training", test_training},
	        {"export", test_export},
	        {"text", test_text},
	        {"registering later", test_register_later},
	        {NULL, NULL},
	};
	const struct slp_suite suites[] = {
	        {"own operations", own, start, slp_stop_engine, NULL, NULL},
	        {NULL, NULL, NULL, NULL, NULL, NULL},
	};
	return slp_test_main(argc, argv, suites);
}
