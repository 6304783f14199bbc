/* Symbols, and how programs become plans: mistakes with symbols, units, memory, compiling and running. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "graph/plan.h"
#include "graph/units.h"

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

static char *printed(sl_tensor *t)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	CHECK_OK(sl_fprint(file, t));
	fclose(file);
	return text;
}

static void test_symbols(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_var("data"), *y = sl_relu(sl_add(x, sl_ones(SL_SHAPE(3))));
		CHECK(sl_is_symbol(x) && sl_is_symbol(y) && !sl_is_symbol(sl_ones(SL_SHAPE(1))) && !sl_is_symbol(NULL));
		CHECK(!strcmp(sl_symbol_name(x), "data") && !sl_symbol_name(sl_ones(SL_SHAPE(1))));
		CHECK(sl_tensor_shape(y).ndim == -1); /* not known yet */
		char *text = printed(x);
		CHECK_SAYING(!strcmp(text, "<Symbol data>\n"), "printed %s", text);
		free(text);
		sl_tensor *z = sl_add(sl_var("a", SL_VAR_SHAPE(2, 3)), sl_ones(SL_SHAPE(3)));
		CHECK(sl_shape_equal(sl_tensor_shape(z), SL_SHAPE(2, 3)));
		CHECK_NULL(sl_var(""), SL_EINVAL, "name");
		CHECK_NULL(sl_add(sl_var("a", SL_VAR_SHAPE(2, 3)), sl_ones(SL_SHAPE(4))), SL_ESHAPE, "add");
	}
}

static void test_no_values(void)
{
	SL_SCOPE {
		float v[2];
		sl_tensor *x = sl_var("data", SL_VAR_SHAPE(2));
		CHECK_STATUS(sl_read(x, v, sizeof v), SL_ESTATE, "sl_read", "'data'", "tests/test_plan.c");
		CHECK_STATUS(sl_wait(x), SL_ESTATE, "sl_wait", "'data'");
		CHECK(sl_item(x) != 0); /* NaN */
		CHECK_SAYING(strstr(sl_error_message(), "sl_item") && strstr(sl_error_message(), "'data'"),
		             "message: %s", sl_error_message());
		sl_error_clear();
		CHECK_NULL(sl_add_(x, sl_ones(SL_SHAPE(2))), SL_ESTATE, "'data'", "in place");
		CHECK_NULL(sl_sub_scalar_(x, 1), SL_ESTATE, "'data'", "in place");
		sl_tensor *w = sl_ones(SL_SHAPE(2));
		CHECK_STATUS(sl_sgd_update(&x, &w, NULL, 1, .lr = 1), SL_ESTATE, "'data'", "is not a parameter");
		sl_error_clear();
		CHECK_STATUS(sl_attach_grad(x), SL_ESTATE, "'data'");
		sl_error_clear();
	}
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void test_define_and_run(void)
{
	SL_SCOPE {
		sl_tensor *a = sl_var("a"), *b = sl_var("b"), *w = sl_full(SL_SHAPE(2), 10), *out[2];
		sl_graph *g = sl_graph_define(sl_mul(sl_add(a, b), w), sl_neg(a));
		const char *names[2];
		CHECK(sl_graph_inputs(g, names, 2) == 2 && !strcmp(names[0], "a") && !strcmp(names[1], "b"));
		CHECK_NULL(sl_compile(g), SL_ESHAPE, "'a'");
		sl_plan *plan = sl_compile(g, .shapes = (sl_shape[]){SL_SHAPE(2), SL_SHAPE(1)}, .check = true);
		CHECK(plan != NULL);
		sl_tensor *x = sl_arange(1, 3, 1), *y = sl_full(SL_SHAPE(1), 5), *in[] = {x, y};
		CHECK_OK(sl_plan_run(plan, in, 2, out));
		CHECK_VALUES(out[0], 60, 70);
		CHECK_VALUES(out[1], -1, -2);
		sl_fill_(w, 1); /* bound by reference */
		CHECK_OK(sl_plan_run(plan, in, 2, out));
		CHECK_VALUES(out[0], 6, 7);
		CHECK_STATUS(sl_plan_run(plan, in, 1, out), SL_EINVAL, "takes 2 inputs, got 1");
		sl_error_clear();
		sl_tensor *wrong[] = {y, y};
		CHECK_STATUS(sl_plan_run(plan, wrong, 2, out), SL_ESHAPE, "'a'", "(1,)", "(2,)");
		sl_error_clear();
		sl_tensor *nothing[] = {x, NULL};
		CHECK(sl_plan_run(plan, nothing, 2, out) == SL_EINVAL && !out[0] && !out[1]);
		sl_error_clear();
		CHECK_NULL(sl_graph_define(x), SL_EINVAL, "not a symbol");
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

/* Programs write into inputs: assignments, updates whose numbers runs set, running statistics. */
static void test_assignment(void)
{
	SL_SCOPE {
		sl_tensor *y, *w = sl_zeros(SL_SHAPE(2)), *x = sl_arange(-1, 1, 1), *in[] = {w, x};
		sl_graph *g =
		        sl_graph_parse("input w: float32 (2,)\ninput x: float32 (2,)\nold = mul_scalar(w, value=1)\n"
		                       "assign(w, x)\nreturn add(w, old)");
		sl_plan *plan = sl_compile(g, .training = true);
		CHECK_OK(sl_plan_run(plan, in, 2, &y));
		CHECK_VALUES(y, -1, 0);
		CHECK_VALUES(w, -1, 0);
		sl_plan_free(plan);
		sl_graph_free(g);
		CHECK_NULL(sl_graph_parse("input x\nrelu(x)\nreturn x"), SL_EINVAL, "line 2", "relu", "assign");
		CHECK_NULL(sl_graph_parse("input x\ncopy_over(x, x)\nreturn x"), SL_EINVAL, "copy_over");
	}
}

static void test_numbers(void)
{
	SL_SCOPE {
		sl_tensor *y, *w = sl_full(SL_SHAPE(2), 8), *d = sl_ones(SL_SHAPE(2)), *in[] = {w, d};
		sl_graph *g = sl_graph_parse("input w: float32 (2,)\ninput d: float32 (2,)\nsgd(w, d, lr=1)\nreturn d");
		sl_plan *plan = sl_compile(g);
		CHECK_OK(sl_plan_run(plan, in, 2, &y));
		CHECK_ALL(w, 7);
		struct sl_plan_number numbers[] = {{"lr", 0.5}, {"rescale", 4}};
		CHECK_OK(sl_plan_run_with(plan, in, 2, numbers, 2, &y));
		CHECK_ALL(w, 5);
		struct sl_plan_number wrong[] = {{"step", 1}, {"momentum", 1}, {"lr", -1}, {"lr", NAN}, {NULL, 1}};
		for (int i = 0; i < 5; i++) {
			CHECK_STATUS(sl_plan_run_with(plan, in, 2, &wrong[i], 1, &y), SL_EINVAL, "sl_plan_run_with");
			sl_error_clear();
		}
		CHECK_STATUS(sl_plan_run_with(plan, in, 2, numbers, 9, &y), SL_EINVAL, "at most 3");
		sl_error_clear();
		CHECK_STATUS(sl_plan_run_with(plan, in, 2, NULL, 1, &y), SL_EINVAL, "numbers");
		sl_error_clear();
		CHECK_ALL(w, 5);
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

/* Of 1 and 3: the variance is 1, unbiased 2. */
static void test_unbiased(void)
{
	SL_SCOPE {
		sl_tensor *y, *x = sl_arange(1, 4, 2), *one = sl_ones(SL_SHAPE(1)), *zero = sl_zeros(SL_SHAPE(1));
		sl_tensor *mean = sl_zeros(SL_SHAPE(1)), *var = sl_zeros(SL_SHAPE(1));
		sl_graph *g = sl_graph_parse("input x: float32 (2, 1)\ninput g: float32 (1,)\ninput b: float32 (1,)\n"
		                             "input m: float32 (1,)\ninput v: float32 (1,)\n"
		                             "y = batch_norm(x, g, b, m, v, momentum=0.5, unbiased=true)\nreturn y");
		sl_plan *plan = sl_compile(g);
		sl_tensor *in[] = {sl_reshape(x, SL_SHAPE(2, 1)), one, zero, mean, var};
		CHECK_OK(sl_plan_run(plan, in, 5, &y));
		CHECK_ALL(mean, 1);
		CHECK_ALL(var, 1);
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

/* A mistake that shows only when shapes are known names the call. */
static void test_late_mistake(void)
{
	SL_SCOPE {
		sl_graph *g = sl_graph_define(sl_dot(sl_var("a"), sl_var("b")));
		CHECK(!sl_compile(g, .shapes = (sl_shape[]){SL_SHAPE(2, 3), SL_SHAPE(2, 3)}) &&
		      sl_error() == SL_ESHAPE);
		CHECK_SAYING(strstr(sl_error_message(), "dot") && strstr(sl_error_message(), "tests/test_plan.c"),
		             "message: %s", sl_error_message());
		sl_error_clear();
		sl_graph_free(g);
	}
}

/* A result that was folded to a constant is the caller's all the same. */
static void test_constant_result(void)
{
	SL_SCOPE {
		sl_tensor *y;
		sl_graph *g = sl_graph_parse("a = add(1, 2)\nreturn a");
		sl_plan *plan = sl_compile(g);
		for (int i = 0; i < 2; i++) {
			CHECK_OK(sl_plan_run(plan, NULL, 0, &y));
			CHECK_ALL(y, 3);
			sl_add_scalar_(y, 1);
			CHECK_ALL(y, 4);
		}
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

/* Each run draws other numbers, the same as imperatively. */
static void test_random(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(64)), *eager[2], *out[2], *s;
		sl_seed(9);
		SL_TRAINING
			for (int i = 0; i < 2; i++) eager[i] = sl_dropout(x, 0.5);
		SL_TRAINING
			s = sl_dropout(sl_var("x", SL_VAR_SHAPE(64)), 0.5);
		sl_graph *g = sl_graph_define(s);
		sl_plan *plan = sl_compile(g);
		sl_seed(9);
		for (int i = 0; i < 2; i++) CHECK_OK(sl_plan_run(plan, &x, 1, &out[i]));
		for (int i = 0; i < 2; i++) CHECK(sl_item(sl_max(sl_abs(sl_sub(out[i], eager[i])))) == 0);
		CHECK(sl_item(sl_max(sl_abs(sl_sub(out[0], out[1])))) > 0);
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

/* A product that is worth a task, of values near 1. */
static sl_tensor *heavy(sl_tensor *x)
{
	return sl_mul_scalar(sl_dot(x, x), 1.0 / 512);
}

/* Two heavy branches that meet. */
static sl_graph *diamond(void)
{
	sl_tensor *x = sl_var("x", SL_VAR_SHAPE(512, 512)), *y = heavy(x);
	sl_graph *g = sl_graph_define(sl_add(heavy(sl_relu(y)), heavy(sl_tanh(y))));
	CHECK_OK(slp_passes[SL_PASS_INFER].run(g));
	return g;
}

/* Arguments come from the same unit or an earlier one. */
static void check_order(const sl_graph *g, const struct slp_layout *l)
{
	for (int i = 0; i < g->count; i++)
		for (int k = 0; k < g->nodes[i].nin; k++)
			CHECK(l->unit[i] < 0 || l->unit[g->nodes[i].in[k].node] <= l->unit[i]);
}

static void test_units(void)
{
	SL_SCOPE {
		sl_graph *g = diamond();
		struct slp_layout one = {0}, two = {0}, each = {0};
		CHECK(slp_partition(g, 1, 0, &one) && slp_partition(g, 2, 0, &two) &&
		      slp_partition(g, SLP_PARTITION_EACH, 0, &each));
		CHECK(one.nunits == 1 && each.nunits == 9);
		CHECK_SAYING(two.nunits >= 3 && two.nunits <= 5, "%d units", two.nunits);
		check_order(g, &two);
		int products[3], n = 0;
		for (int i = 0; i < g->count; i++)
			if (g->nodes[i].kind == SLP_NODE_OP && !strcmp(g->nodes[i].op->name, "dot"))
				products[n++] = two.unit[i];
		CHECK(n == 3 && products[0] != products[1] && products[1] != products[2] && products[0] != products[2]);
		slp_layout_clear(&one);
		slp_layout_clear(&two);
		slp_layout_clear(&each);
		sl_graph_free(g);
	}
}

/* Values have 1 MiB each: an operation uses two or three. */
static void test_small_units(void)
{
	enum { MIB = 1 << 20 };
	SL_SCOPE {
		sl_graph *g = diamond();
		struct slp_layout tight = {0}, small = {0}, wide = {0};
		CHECK(slp_partition(g, 1, 2 * MIB, &tight) && slp_partition(g, 1, 3 * MIB, &small) &&
		      slp_partition(g, 1, 64 * MIB, &wide));
		CHECK_SAYING(tight.nunits == 9, "%d units", tight.nunits);
		CHECK_SAYING(small.nunits > 3 && small.nunits < 9, "%d units", small.nunits);
		CHECK(wide.nunits == 1);
		check_order(g, &tight);
		check_order(g, &small);
		slp_layout_clear(&tight);
		slp_layout_clear(&small);
		slp_layout_clear(&wide);
		sl_graph_free(g);
	}
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* A chain of elementwise operations needs the memory of one or two, whatever its length. */
static void test_chain_memory(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_var("x", SL_VAR_SHAPE(1000));
		for (int i = 0; i < 20; i++) x = sl_tanh(x);
		sl_graph *g = sl_graph_define(x);
		struct slp_layout l = {0}, plain = {0};
		CHECK_OK(slp_passes[SL_PASS_INFER].run(g));
		CHECK(slp_partition(g, 1, 0, &l) && slp_plan_memory(g, true, &l));
		CHECK(slp_partition(g, 1, 0, &plain) && slp_plan_memory(g, false, &plain));
		CHECK_SAYING(l.planned <= 4096 && l.unplanned == 19 * 4000, "%zu of %zu bytes", l.planned, l.unplanned);
		CHECK(plain.planned >= plain.unplanned);
		CHECK(l.nstorages == 1);
		slp_layout_clear(&l);
		slp_layout_clear(&plain);
		sl_graph_free(g);
	}
}

/* Where memory is limited, a result takes the place of the argument that has no further use, whichever that is. */
static void test_overwritten(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_var("x", SL_VAR_SHAPE(1000)), *kept = sl_tanh(x), *last = sl_exp(x);
		sl_graph *g = sl_graph_define(sl_mul(sl_add(kept, last), kept));
		struct slp_layout l = {.limited = true}, plain = {0};
		CHECK_OK(slp_passes[SL_PASS_INFER].run(g));
		CHECK(slp_partition(g, SLP_PARTITION_EACH, 0, &l) && slp_plan_memory(g, true, &l));
		CHECK(slp_partition(g, SLP_PARTITION_EACH, 0, &plain) && slp_plan_memory(g, true, &plain));
		CHECK_SAYING(l.nstorages == 3 && plain.nstorages == 4, "%d storages, %d without a limit", l.nstorages,
		             plain.nstorages);
		slp_layout_clear(&l);
		slp_layout_clear(&plain);
		sl_graph_free(g);
	}
}

/* What is alive at the same time lies apart: any two values whose lives overlap, in random programs. */
static bool overlap(const struct slp_location *a, size_t abytes, const struct slp_location *b, size_t bbytes)
{
	return a->kind == SLP_LOCATION_SCRATCH && b->kind == SLP_LOCATION_SCRATCH && a->offset < b->offset + bbytes &&
	       b->offset < a->offset + abytes;
}

static int last_use(const sl_graph *g, const struct slp_layout *l, int value)
{
	int last = value / SLP_MAX_OUTPUTS;
	for (int i = 0; i < g->count; i++)
		for (int k = 0; k < g->nodes[i].nin; k++)
			if (l->root[slp_value_id(g->nodes[i].in[k])] == value) last = i;
	return last;
}

static void check_apart(const sl_graph *g, const struct slp_layout *l)
{
	for (int i = 0; i < g->count; i++) {
		int a = i * SLP_MAX_OUTPUTS;
		if (g->nodes[i].kind != SLP_NODE_OP || l->root[a] != a) continue;
		int last = last_use(g, l, a);
		for (int k = i + 1; k <= last; k++) {
			int b = k * SLP_MAX_OUTPUTS;
			if (g->nodes[k].kind != SLP_NODE_OP || l->root[b] != b || l->unit[i] != l->unit[k]) continue;
			bool in_place = k == last && g->nodes[k].op->inplace;
			CHECK(in_place || !overlap(&l->location[a], slp_type_bytes(&g->nodes[i].types[0]),
			                           &l->location[b], slp_type_bytes(&g->nodes[k].types[0])));
		}
	}
}

static sl_graph *random_program(unsigned *seed)
{
	enum { N = 30 };
	sl_tensor *list[N] = {sl_var("x", SL_VAR_SHAPE(4, 6)), sl_var("y", SL_VAR_SHAPE(4, 6))};
	for (int i = 2; i < N; i++) {
		sl_tensor *a = list[rand_r(seed) % i], *b = list[rand_r(seed) % i];
		switch (rand_r(seed) % 6) {
		case 0: list[i] = sl_add(a, b); break;
		case 1: list[i] = sl_mul(a, sl_tanh(b)); break;
		case 2: list[i] = sl_dot(sl_dot(a, b, .tb = true), a); break;
		case 3: list[i] = sl_reshape(sl_transpose(sl_reshape(a, SL_SHAPE(6, 4))), SL_SHAPE(4, 6)); break;
		case 4: list[i] = sl_sub(a, sl_mean(b, SL_AXES(0), .keepdims = true)); break;
		default: list[i] = sl_tanh(a); break;
		}
		list[i] = sl_tanh(list[i]);
	}
	return sl_graph_define(list[N - 1], list[N - 2], list[N / 2]);
}

static void compare_runs(const sl_graph *g, unsigned off)
{
	sl_tensor *in[] = {sl_normal(SL_SHAPE(4, 6), 0, 1), sl_normal(SL_SHAPE(4, 6), 0, 1)}, *a[3], *b[3];
	sl_plan *all = sl_compile(g), *some = sl_compile(g, .off = off);
	const char *names[2];
	int n = sl_graph_inputs(g, names, 2);
	sl_tensor *given[] = {n == 1 && !strcmp(names[0], "y") ? in[1] : in[0], in[1]};
	CHECK_OK(sl_plan_run(all, given, n, a));
	CHECK_OK(sl_plan_run(some, given, n, b));
	for (int i = 0; i < 3; i++) CHECK(sl_item(sl_max(sl_abs(sl_sub(a[i], b[i])))) < 1e-5);
	sl_plan_free(all);
	sl_plan_free(some);
}

static void test_random_programs(void)
{
	unsigned seed = 4;
	for (int i = 0; i < 20; i++)
		SL_SCOPE {
			sl_graph *g = random_program(&seed);
			struct slp_layout l = {0};
			CHECK_OK(slp_passes[SL_PASS_INFER].run(g));
			CHECK(slp_partition(g, 1, 0, &l) && slp_plan_memory(g, true, &l));
			check_apart(g, &l);
			CHECK(l.planned <= l.unplanned);
			slp_layout_clear(&l);
			compare_runs(g, 1u << SL_PASS_MEMORY);
			compare_runs(g, 1u << SL_PASS_SEGMENT);
			sl_graph_free(g);
		}
}

/* ---- serving ----------------------------------------------------------------------------------------------------- */

enum { CALLERS = 8, CALLS = 40, SIDE = 48 };

struct caller {
	pthread_t thread;
	sl_plan *plan;
	float value;
	int wrong;
};

/* Results that are not those of its own inputs. */
static void *call_often(void *arg)
{
	struct caller *c = arg;
	float v[SIDE * SIDE], expected = (SIDE + 1) * c->value;
	for (int i = 0; i < CALLS; i++)
		SL_SCOPE {
			sl_tensor *x = sl_full(SL_SHAPE(SIDE, SIDE), c->value), *y = NULL;
			bool ok = sl_plan_run(c->plan, &x, 1, &y) == SL_OK && sl_read(y, v, sizeof v) == SL_OK;
			for (int k = 0; ok && k < SIDE * SIDE; k++) ok = v[k] == expected;
			c->wrong += !ok;
		}
	return NULL;
}

static void test_many_callers(void)
{
	struct caller callers[CALLERS];
	SL_SCOPE {
		sl_tensor *x = sl_var("x");
		sl_graph *g = sl_graph_define(sl_relu(sl_add(sl_dot(x, sl_ones(SL_SHAPE(SIDE, SIDE))), x)));
		sl_plan *plan = sl_compile(g, .shapes = (sl_shape[]){SL_SHAPE(SIDE, SIDE)});
		CHECK(plan != NULL);
		for (int i = 0; i < CALLERS; i++) {
			callers[i] = (struct caller){.plan = plan, .value = (float)(i + 1)};
			pthread_create(&callers[i].thread, NULL, call_often, &callers[i]);
		}
		for (int i = 0; i < CALLERS; i++) {
			pthread_join(callers[i].thread, NULL);
			CHECK_SAYING(callers[i].wrong == 0, "caller %d: %d of %d runs are wrong", i, callers[i].wrong,
			             CALLS);
		}
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

static const struct slp_test symbols[] = {
        {"symbols", test_symbols},
        {"no values", test_no_values},
        {NULL, NULL},
};
static const struct slp_test programs[] = {
        {"define, compile, run", test_define_and_run},
        {"assignments", test_assignment},
        {"numbers of a run", test_numbers},
        {"running variance", test_unbiased},
        {"a late mistake", test_late_mistake},
        {"a constant result", test_constant_result},
        {"random numbers", test_random},
        {NULL, NULL},
};
static const struct slp_test serving[] = {
        {"one plan, many threads", test_many_callers},
        {NULL, NULL},
};
static const struct slp_test layouts[] = {
        {"units", test_units},
        {"small units", test_small_units},
        {"memory of a chain", test_chain_memory},
        {"overwritten", test_overwritten},
        {"random programs", test_random_programs},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	const struct slp_suite suites[] = {
	        {.name = "symbols", .tests = symbols, .start = slp_start_engine, .stop = slp_stop_engine},
	        {.name = "programs", .tests = programs, .start = slp_start_engine, .stop = slp_stop_engine},
	        {.name = "serving", .tests = serving, .start = slp_start_engine, .stop = slp_stop_engine},
	        {.name = "units and memory", .tests = layouts, .start = slp_start_engine, .stop = slp_stop_engine},
	        {.name = NULL},
	};
	return slp_test_main(argc, argv, suites);
}
