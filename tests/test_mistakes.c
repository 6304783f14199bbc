/* What calls leave and say after a mistake: no result that is none, and a message with the call's own words. */
#include <math.h>
#include <string.h>

#include "check.h"

/* ---- results ----------------------------------------------------------------------------------------------------- */

static sl_tensor *untouched;

/* Three results, of which the first n must be NULL, and the others as they were. */
static void check_gone(sl_tensor *const *out, int n, enum sl_status expected)
{
	for (int i = 0; i < 3; i++) CHECK_SAYING(out[i] == (i < n ? NULL : untouched), "result %d of %d", i, n);
	CHECK_SAYING(sl_error() == expected, "%s", sl_error_message());
	sl_error_clear();
}

/* The call, with out as the array for its results. */
#define CHECK_GONE(n, status, call)                                                                                    \
	do {                                                                                                           \
		sl_tensor *out[] = {untouched, untouched, untouched};                                                  \
		(void)(call);                                                                                          \
		check_gone(out, n, status);                                                                            \
	} while (0)

static void check_forward_results(sl_block *net, sl_tensor *x)
{
	sl_tensor *wide = sl_ones(SL_SHAPE(4, 5)), *nothing = NULL;
	CHECK_GONE(1, SL_ESHAPE, sl_forward_all(net, &wide, 1, out, 1));
	CHECK_GONE(2, SL_EINVAL, sl_forward_all(net, &x, 1, out, 2));
	CHECK_GONE(1, SL_EINVAL, sl_forward_all(net, &nothing, 1, out, 1));
	CHECK_GONE(3, SL_EINVAL, sl_forward_all(NULL, &x, 1, out, 3));
	sl_tensor *both[] = {wide, untouched, untouched};
	CHECK_STATUS(sl_forward_all(net, both, 1, both, 1), SL_ESHAPE);
	check_gone(both, 1, SL_ESHAPE);
	CHECK_GONE(3, SL_ESHAPE, CHECK(sl_forward_most(net, &wide, 1, out, 3) == 0));
	CHECK_GONE(3, SL_EINVAL, sl_forward_most(NULL, &x, 1, out, 3));
	CHECK(sl_forward_most(net, &x, 1, both, 0) == 0);
	CHECK_STATUS(sl_error(), SL_EINVAL);
	sl_error_clear();
	CHECK(sl_forward_most(net, &x, 1, both, 3) == 1 && both[0] && !both[1] && !both[2]);
	both[0] = x;
	CHECK_OK(sl_forward_all(net, both, 1, both, 1));
	CHECK(sl_tensor_shape(both[0]).dim[1] == 2);
}

static void test_results_of_blocks(void)
{
	sl_block *net = sl_sequential(sl_dense(2, .in_units = 3));
	sl_initialize(net);
	SL_SCOPE {
		sl_tensor *x = untouched = sl_ones(SL_SHAPE(4, 3));
		check_forward_results(net, x);
		CHECK_OK(sl_hybridize(net));
		check_forward_results(net, x);
	}
	sl_block_free(net);
}

static void test_results_of_functions(void)
{
	SL_SCOPE {
		sl_tensor *x = untouched = sl_ones(SL_SHAPE(4, 3));
		CHECK_GONE(2, SL_ESHAPE, sl_split(x, 1, 2, out));
		CHECK_GONE(3, SL_EINVAL, sl_split(NULL, 1, 3, out));
		CHECK_GONE(3, SL_EINVAL, sl_split(x, 2, 3, out));
		CHECK_GONE(1, SL_EINVAL, sl_topk(x, 9, 1, out));
		CHECK_GONE(1, SL_EINVAL, sl_topk(NULL, 1, 1, out));
		sl_graph *g = sl_graph_parse("input x: float32 (4,3)\ny = add(x, x)\nreturn y");
		sl_plan *plan = sl_compile(g);
		CHECK_GONE(1, SL_EINVAL, sl_plan_run(plan, NULL, 1, out));
		CHECK_GONE(1, SL_EINVAL, sl_plan_run(plan, &x, 2, out));
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

/* ---- found when it runs ------------------------------------------------------------------------------------------ */

static void check_drawn(double a, double b, double c, const char *why)
{
	const float p[] = {1, 0, 0, (float)a, (float)b, (float)c};
	SL_SCOPE
		CHECK_STATUS(sl_wait(sl_multinomial(sl_from(p, SL_SHAPE(2, 3)), 2)), SL_EINVAL, "multinomial", "row 1",
		             why, "test_mistakes.c:");
	while (sl_wait_all() != SL_OK) continue;
}

/* Probabilities that are none. */
static void test_bernoulli(void)
{
	static const float wrong[] = {NAN, -0.1f, 1.5f, INFINITY, -INFINITY};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		SL_SCOPE {
			float p[] = {0.5f, wrong[i], 1};
			CHECK_STATUS(sl_wait(sl_bernoulli(sl_from(p, SL_SHAPE(3)))), SL_EINVAL, "bernoulli",
			             "probability of element 1 is");
			sl_error_clear();
		}
	}
	SL_SCOPE
		CHECK_NULL(sl_bernoulli(sl_ones(SL_SHAPE(3), .dtype = SL_INT32)), SL_EDTYPE, "float");
}

static void test_multinomial(void)
{
	check_drawn(0, 0, 0, "all are 0");
	check_drawn(1, -0.5, 1, "one is negative");
	check_drawn(-1, 2, 3, "one is negative");
	check_drawn(1, NAN, 1, "not a finite number");
	check_drawn(1, INFINITY, 1, "not a finite number");
	SL_SCOPE {
		CHECK_NULL(sl_multinomial(sl_ones(SL_SHAPE(3), .dtype = SL_INT32), 1), SL_EDTYPE, "sl_multinomial",
		           "int32");
		CHECK_NULL(sl_multinomial(sl_ones(SL_SHAPE(3, 0)), 1), SL_ESHAPE, "multinomial", "no class");
		sl_tensor *p = sl_cast(sl_ones(SL_SHAPE(1, 3)), SL_BFLOAT16);
		CHECK_VALUES(sl_lt_scalar(sl_multinomial(p, 2), 3), 1, 1);
	}
}

/* Labels that are no class, beside options: none is left out. */
static void test_labels(void)
{
	SL_SCOPE {
		const int32_t both[] = {1, 5};
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3)), *w = sl_ones(SL_SHAPE(3));
		sl_tensor *labels = sl_from(both, SL_SHAPE(2), .dtype = SL_INT32);
		sl_tensor *losses[] = {sl_cross_entropy(x, labels), sl_cross_entropy(x, labels, .weights = w),
		                       sl_cross_entropy(x, labels, .label_smoothing = 0.1),
		                       sl_cross_entropy(x, labels, .ignore = true, .ignore_index = 1)};
		for (int i = 0; i < 4; i++) {
			CHECK_STATUS(sl_wait(losses[i]), SL_EINVAL, "sample 1 has label 5");
			sl_error_clear();
		}
		CHECK_OK(sl_wait(sl_cross_entropy(x, labels, .ignore = true, .ignore_index = 5, .weights = w)));
	}
}

static const struct slp_test running[] = {
        {"multinomial", test_multinomial},
        {"bernoulli", test_bernoulli},
        {"labels", test_labels},
        {0},
};

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void test_messages_of_functions(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(4, 3)), *i = sl_zeros(SL_SHAPE(2), .dtype = SL_INT32);
		sl_tensor *images = sl_ones(SL_SHAPE(2, 3, 8, 8));
		CHECK_NULL(sl_gather(x, x), SL_EDTYPE, "int32 or int64 needed");
		CHECK_NULL(sl_one_hot(x, 3), SL_EDTYPE, "int32 or int64 needed");
		CHECK_NULL(sl_index_add(x, x, x), SL_ESHAPE, "sl_index_add", "rows", "(4, 3, 3)");
		CHECK_NULL(sl_index_add(x, i, x), SL_ESHAPE, "sl_index_add", "rows is (4, 3), (2, 3) needed");
		CHECK_NULL(sl_index_add(x, sl_ones(SL_SHAPE(2)), sl_ones(SL_SHAPE(2, 3))), SL_EDTYPE, "sl_index_add",
		           "int32 or int64 needed");
		sl_tensor *whole = sl_ones(SL_SHAPE(4), .dtype = SL_INT32);
		CHECK_NULL(sl_index_add(whole, i, sl_rows(whole, 0, 2)), SL_EDTYPE, "sl_index_add", "x is int32");
		CHECK_NULL(sl_kl_div(x, sl_ones(SL_SHAPE(4, 2))), SL_ESHAPE, "sl_kl_div", "(4, 3)", "(4, 2)");
		CHECK_NULL(sl_fill_(NULL, 1), SL_EINVAL, "sl_fill_");
		CHECK_NULL(sl_conv_transpose2d(images, sl_ones(SL_SHAPE(4, 3, 3, 3)), NULL, .stride = {2}), SL_ESHAPE,
		           "sl_conv_transpose2d");
		CHECK_NULL(sl_group_norm(images, 2, NULL, NULL), SL_ESHAPE, "3 channels", "(2, 3, 8, 8)", "2 groups");
		sl_shape wide = {.ndim = 9};
		CHECK_NULL(sl_reshape(x, wide), SL_ESHAPE, "9 axes", "at most 8");
		CHECK_NULL(sl_cross_entropy(sl_ones(SL_SHAPE(2, 3, 4)), sl_zeros(SL_SHAPE(2, 3), .dtype = SL_INT32)),
		           SL_ESHAPE, "axis 1", "(2, 4) needed", "(2, 3, 4)");
		CHECK_NULL(sl_einsum("nd,edh->neh", x, images), SL_ESHAPE, "tensor 1 has 4 axes");
		CHECK_NULL(sl_einsum("nd,dh->nh", x, x), SL_ESHAPE, "letter d", "3 and of 4");
		CHECK_NULL(sl_einsum("nd->nq", x), SL_ESHAPE, "letter q");
		CHECK_NULL(sl_einsum("...a,...a->...", x, sl_ones(SL_SHAPE(2, 3))), SL_ESHAPE, "axis of ...", "4", "2");
	}
}

static void test_messages_of_attention(void)
{
	sl_block *net = sl_multi_head_attention(8, 2, .causal = true);
	sl_initialize(net);
	SL_SCOPE {
		sl_tensor *q = sl_ones(SL_SHAPE(2, 4, 6, 3)), *k = sl_ones(SL_SHAPE(2, 2, 6, 3));
		CHECK_NULL(sl_scaled_dot_product_attention(q, k, k), SL_ESHAPE, "axis 1 has 4 elements in q, 2 in k");
		CHECK_NULL(sl_scaled_dot_product_attention(q, q, q, .mask = sl_zeros(SL_SHAPE(3, 6))), SL_ESHAPE,
		           "a mask (3, 6)", "(2, 4, 6, 6)");
	}
	sl_block_free(net);
}

/* Rows are a view, but a copy where gradients flow through: a change would be lost. */
static void test_rows_in_place(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(4, 3)), *h, *rows;
		CHECK_OK(sl_attach_grad(x));
		SL_RECORD {
			sl_add_scalar_(sl_rows(sl_ones(SL_SHAPE(4, 3)), 0, 1), 1);
			CHECK(sl_error() == SL_OK);
			h = sl_mul_scalar(x, 2);
			rows = sl_rows(h, 0, 2);
			CHECK_NULL(sl_add_scalar_(rows, 1), SL_ESTATE, "would change a copy");
			CHECK_NULL(sl_copy_(sl_reshape(rows, SL_SHAPE(6)), sl_ones(SL_SHAPE(6))), SL_ESTATE, "copy");
			CHECK_OK(sl_backward(sl_sum(sl_add(rows, sl_rows(h, 2, 4)))));
		}
		CHECK_ALL(sl_grad(x), 2);
		sl_add_scalar_(rows, 1);
		CHECK_ALL(rows, 3);
	}
}

static const struct slp_test messages[] = {
        {"rows in place", test_rows_in_place},
        {"functions", test_messages_of_functions},
        {"attention", test_messages_of_attention},
        {0},
};

/* ---- whole steps and traces -------------------------------------------------------------------------------------- */

static sl_tensor *no_loss(void *context, sl_tensor *const *out, int nout, sl_tensor *const *targets, int ntargets)
{
	return context ? sl_l2_loss(out[nout - 1], targets[ntargets - 1]) : NULL;
}

static void check_inputs(sl_step *step, sl_tensor *x, sl_tensor *y)
{
	CHECK_NULL(sl_step_run_all(step, NULL, 0, &y, 1, NULL, 0), SL_EINVAL, "there is no input");
	CHECK_NULL(sl_step_run_all(step, &x, 1, NULL, 1, NULL, 0), SL_EINVAL, "array of targets is NULL");
	CHECK_NULL(sl_step_run(step, x, NULL, NULL), SL_EINVAL, "target 0 is NULL");
	CHECK_NULL(sl_step_run(step, NULL, y, NULL), SL_EINVAL, "input 0 is NULL");
	sl_tensor *wanted = sl_clone(x);
	sl_attach_grad(wanted);
	CHECK_NULL(sl_step_run(step, wanted, y, NULL), SL_EUNSUPPORTED, "input 0 has a gradient", "SL_RECORD");
	CHECK(sl_step_run(step, sl_detach(wanted), y, NULL) != NULL);
	CHECK_OK(sl_wait_all());
}

static void test_steps(void)
{
	sl_block *net = sl_sequential(sl_dense(2)), *other = sl_dense(2, .in_units = 3);
	int yes = 1;
	sl_initialize(net);
	sl_initialize(other);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1)), *others = sl_trainer_new(other, sl_sgd());
	sl_step *steps[] = {sl_step_compile_all(net, no_loss, &yes, trainer),
	                    sl_step_compile_all(net, no_loss, NULL, trainer),
	                    sl_step_compile_all(net, no_loss, &yes, others)};
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(4, 3)), *y = sl_ones(SL_SHAPE(4, 2));
		check_inputs(steps[0], x, y);
		CHECK_NULL(sl_step_run(steps[1], x, y, NULL), SL_EINVAL, "loss function returned NULL");
		CHECK_NULL(sl_step_run_all(steps[2], &x, 1, &y, 1, NULL, 0), SL_ESTATE, "sl_step_run", "weight");
	}
	for (int i = 0; i < 3; i++) sl_step_free(steps[i]);
	sl_trainer_free(trainer);
	sl_trainer_free(others);
	sl_block_free(net);
	sl_block_free(other);
}

static sl_tensor *going_back(sl_tensor *x)
{
	sl_tensor *y = sl_square(x);
	sl_backward(y);
	return y;
}

static void test_backward_in_trace(void)
{
	sl_block *net = sl_lambda("back", going_back);
	CHECK_OK(sl_hybridize(net));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2)), *y;
		sl_attach_grad(x);
		SL_RECORD
			y = sl_forward(net, x);
		CHECK(!y && sl_error() == SL_ESTATE && slp_message_count("sl_backward at") == 1);
		sl_error_clear();
	}
	sl_block_free(net);
}

/* Options that an optimiser does not have. */
static void test_optimisers(void)
{
	const struct {
		struct sl_optimizer o;
		const char *text;
	} wrong[] = {{sl_adam(.momentum = 0.9), ".momentum"},
	             {sl_adamw(.alpha = 0.9), ".alpha"},
	             {sl_sgd(.beta1 = 0.9), ".beta1"},
	             {sl_sgd(.eps = 1e-8), ".eps"},
	             {sl_rmsprop(.beta2 = 0.9), ".beta2"}};
	sl_block *net = sl_dense(2);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		CHECK_NULL(sl_trainer_new(net, wrong[i].o), SL_EINVAL, wrong[i].text);
	sl_block_free(net);
}

static void test_large_stack(void)
{
	enum { COUNT = 700 };
	SL_SCOPE {
		sl_tensor *list[COUNT];
		for (int i = 0; i < COUNT; i++) list[i] = sl_full(SL_SHAPE(2), i);
		sl_tensor *y = sl_stack(list, COUNT, 1);
		CHECK(sl_shape_equal(sl_tensor_shape(y), SL_SHAPE(2, COUNT)));
		CHECK_ALL(sl_sub(sl_rows(y, 1, 2), sl_arange(0, COUNT, 1)), 0);
	}
}

static const struct slp_test traces[] = {
        {"steps", test_steps},
        {"sl_backward in a trace", test_backward_in_trace},
        {"optimisers", test_optimisers},
        {"large stacks", test_large_stack},
        {0},
};

static const struct slp_test results[] = {
        {"blocks", test_results_of_blocks},
        {"functions", test_results_of_functions},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "results", .tests = results, .start = slp_start_engine, .stop = slp_stop_engine},
	                {.name = "messages", .tests = messages, .start = slp_start_engine, .stop = slp_stop_engine},
	                {.name = "traces", .tests = traces, .start = slp_start_engine, .stop = slp_stop_engine},
	                {.name = "running", .tests = running, .start = slp_start_engine, .stop = slp_stop_engine},
	                {0}});
}
