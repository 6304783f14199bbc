/* Hybrid blocks that go wrong: what cannot be traced, other shapes where none are allowed, kernels that fail. */
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "blocks.h"
#include "capture.h"
#include "networks.h"
#include "runtime/task/segment.h"

static sl_tensor *branching(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_item(sl_sum(in[0])) > 0 ? sl_relu(in[0]) : sl_neg(in[0]);
}
static sl_tensor *reading(sl_block *self, sl_tensor *const *in, int nin)
{
	float v[2];
	(void)self;
	(void)nin;
	return sl_read(in[0], v, sizeof v) == SL_OK ? sl_full(SL_SHAPE(2), v[0]) : NULL;
}
static sl_tensor *in_place(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_add_scalar_(sl_neg(in[0]), 1);
}

static sl_tensor *doubled(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_mul_scalar(in[0], 2);
}

static void test_not_traceable(void)
{
	sl_tensor *(*const forwards[])(sl_block *, sl_tensor *const *, int) = {branching, reading, in_place};
	const char *const says[] = {"sl_item", "sl_read", "in place"};
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2));
		for (int i = 0; i < 3; i++) {
			sl_block *b = slp_user_block(forwards[i]);
			CHECK_OK(sl_hybridize(b));
			sl_tensor *y = sl_forward(b, x);
			CHECK(!y && sl_error() == SL_ESTATE);
			CHECK_SAYING(strstr(sl_error_message(), says[i]) &&
			                     strstr(sl_error_message(), "tests/test_hybrid_faults.c:") &&
			                     strstr(sl_error_message(), "mine"),
			             "message: %s", sl_error_message());
			sl_error_clear();
			CHECK_OK(sl_hybridize(b, .off = true));
			CHECK(sl_forward(b, x) != NULL);
			sl_block_free(b);
		}
	}
}

/* ---- what nobody uses the result of ------------------------------------------------------------------------------ */

static sl_tensor *outside; /* met by forwards without being given to them */
static sl_metric *metric;

/* Eagerly, each gives twice the input, after something that a program cannot hold or that is a mistake. */
#define SIDE_EFFECT(name, statement)                                                                                   \
	static sl_tensor *name(sl_block *self, sl_tensor *const *in, int nin)                                          \
	{                                                                                                              \
		float v[2] = {0};                                                                                      \
		(void)self, (void)nin, (void)v;                                                                        \
		sl_tensor *y = sl_mul_scalar(in[0], 2);                                                                \
		(void)(statement);                                                                                     \
		return y;                                                                                              \
	}
SIDE_EFFECT(scales_input, sl_mul_scalar_(in[0], 10))
SIDE_EFFECT(adds_to_input, sl_add_(in[0], outside))
SIDE_EFFECT(copies_to_input, sl_copy_(in[0], outside))
SIDE_EFFECT(scales_outside, sl_mul_scalar_(outside, 10))
SIDE_EFFECT(writes_outside, sl_write(outside, v, sizeof v))
SIDE_EFFECT(reads_outside, sl_read(outside, v, sizeof v))
SIDE_EFFECT(asks_outside, sl_item(sl_rows(outside, 0, 1)))
SIDE_EFFECT(attaches, sl_attach_grad(outside))
SIDE_EFFECT(counts, sl_metric_add(metric, in[0], NULL))
SIDE_EFFECT(seeds, (sl_seed(3), 0))
SIDE_EFFECT(clears, (sl_add_(in[0], outside), sl_error_clear(), 0))
SIDE_EFFECT(wrong_shapes, sl_add(in[0], sl_ones(SL_SHAPE(5))))
SIDE_EFFECT(no_such_axis, sl_sum(in[0], SL_AXES(3)))

static const struct {
	const char *name;
	sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int);
	const char *says;
	bool mistake; /* eagerly, too */
} effects[] = {
        {"an input times a number", scales_input, "in place", false},
        {"something added to an input", adds_to_input, "in place", false},
        {"a copy over an input", copies_to_input, "in place", false},
        {"another tensor changed", scales_outside, "in place", false},
        {"another tensor written", writes_outside, "sl_write", false},
        {"another tensor read", reads_outside, "sl_read", false},
        {"another tensor's element", asks_outside, "sl_item", false},
        {"a gradient attached", attaches, "sl_attach_grad", false},
        {"a metric", counts, "sl_metric_add", false},
        {"a seed", seeds, "sl_seed", false},
        {"an error cleared", clears, "in place", false},
        {"shapes that do not fit", wrong_shapes, "add", true},
        {"an axis that is not there", no_such_axis, "axis", true},
};
enum { EFFECTS = sizeof effects / sizeof *effects };

/* At every call, not only at the first. */
static void check_refused(int i, sl_block *block)
{
	for (int call = 0; call < 2; call++)
		SL_SCOPE {
			sl_tensor *y = sl_forward(block, sl_ones(SL_SHAPE(2)));
			CHECK_SAYING(!y && sl_error() != SL_OK && strstr(sl_error_message(), effects[i].says),
			             "%s, call %d: %s", effects[i].name, call, sl_error_message());
			sl_error_clear();
		}
}

static void check_falls_back(int i, sl_block *block)
{
	slp_capture_begin();
	for (int call = 0; call < 2; call++)
		SL_SCOPE {
			sl_tensor *y = sl_forward(block, sl_ones(SL_SHAPE(2)));
			CHECK_SAYING(y && (sl_error() != SL_OK) == effects[i].mistake, "%s: %s", effects[i].name,
			             sl_error_message());
			sl_error_clear();
			if (y) CHECK_ALL(y, 2);
		}
	char *text = slp_capture_end();
	CHECK_SAYING(strstr(text, "runs imperatively"), "%s: said %s", effects[i].name, text);
	free(text);
}

static void test_side_effects(void)
{
	metric = sl_mean_new();
	for (int i = 0; i < EFFECTS; i++)
		SL_SCOPE {
			outside = sl_ones(SL_SHAPE(2));
			sl_block *b = slp_user_block(effects[i].forward);
			CHECK_OK(sl_hybridize(b));
			check_refused(i, b);
			CHECK_OK(sl_hybridize(b, .fallback = true));
			check_falls_back(i, b);
			sl_block_free(b);
		}
	sl_metric_free(metric);
}

/* A mistake from before stays the first, and hides none. */
static void test_pending_error(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2)), *y = NULL;
		sl_block *b = slp_user_block(scales_input), *fine = slp_user_block(doubled);
		CHECK_OK(sl_hybridize(b));
		CHECK_OK(sl_hybridize(fine));
		CHECK(!sl_reshape(x, SL_SHAPE(7)));
		CHECK(!sl_forward(b, x) && (y = sl_forward(fine, x)) != NULL);
		CHECK_STATUS(sl_wait_all(), SL_ESHAPE, "sl_reshape");
		CHECK_ALL(y, 2);
		CHECK_NULL(sl_forward(b, x), SL_ESTATE, "in place");
		CHECK_OK(sl_hybridize(b, .fallback = true));
		CHECK(!sl_reshape(x, SL_SHAPE(7)));
		slp_capture_begin();
		CHECK((y = sl_forward(b, x)) != NULL);
		free(slp_capture_end());
		CHECK_STATUS(sl_wait_all(), SL_ESHAPE, "sl_reshape");
		CHECK_ALL(y, 2);
		CHECK_ALL(x, 10);
		sl_block_free(b);
		sl_block_free(fine);
	}
}

/* Whole steps, where the loss may be what cannot be traced. */
static sl_tensor *careless_loss(const char *at, sl_tensor *y, sl_tensor *target)
{
	sl_mul_scalar_inplace_at(at, target, 10);
	return sl_l2_loss_at(at, y, target);
}

static void check_step(sl_block *block, sl_loss *loss, const char *says)
{
	sl_block *net = sl_sequential(sl_dense(2), block);
	CHECK_OK(sl_initialize(net));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *step = sl_step_compile(net, loss, trainer);
	for (int call = 0; call < 2; call++)
		SL_SCOPE {
			sl_tensor *l = sl_step_run(step, sl_ones(SL_SHAPE(1, 2)), sl_ones(SL_SHAPE(1, 2)), NULL);
			CHECK_SAYING(!l && sl_error() != SL_OK && strstr(sl_error_message(), says), "%s: %s", says,
			             sl_error_message());
			sl_error_clear();
		}
	CHECK(sl_trainer_steps(trainer) == 0);
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

static void test_steps(void)
{
	metric = sl_mean_new();
	SL_SCOPE {
		outside = sl_ones(SL_SHAPE(1, 2));
		check_step(slp_user_block(scales_input), sl_l2_loss_at, "in place");
		check_step(slp_user_block(wrong_shapes), sl_l2_loss_at, "add");
		check_step(slp_user_block(counts), sl_l2_loss_at, "sl_metric_add");
		check_step(slp_user_block(doubled), careless_loss, "in place");
	}
	sl_metric_free(metric);
}

/* ---- programs by hand -------------------------------------------------------------------------------------------- */

static void test_define(void)
{
	SL_SCOPE {
		sl_tensor *a = sl_var("a", SL_VAR_SHAPE(2)), *y = sl_add_scalar(a, 1);
		CHECK(!sl_mul_scalar_(a, 10));
		CHECK(!sl_graph_define(y));
		CHECK_STATUS(sl_wait_all(), SL_ESTATE, "mul_scalar", "'a'");
		CHECK(!sl_add(a, sl_ones(SL_SHAPE(5))));
		CHECK(!sl_graph_define(y));
		CHECK_STATUS(sl_wait_all(), SL_ESHAPE, "add");
		sl_graph *graph = sl_graph_define(y);
		CHECK(graph != NULL);
		sl_graph_free(graph);
	}
}

/* ---- falling back ------------------------------------------------------------------------------------------------ */

static void call_twice(sl_block *block)
{
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(2), -1);
		CHECK_ALL(sl_forward(block, x), 1);
		CHECK_ALL(sl_forward(block, sl_neg(x)), 1);
	}
}

static void test_fallback(void)
{
	sl_block *b = slp_user_block(branching);
	CHECK_OK(sl_hybridize(b, .fallback = true));
	slp_capture_begin();
	call_twice(b);
	char *text = slp_capture_end();
	char *first = strstr(text, "runs imperatively");
	CHECK_SAYING(first && !strstr(first + 1, "runs imperatively"), "said: %s", text);
	free(text);
	CHECK(sl_error() == SL_OK);
	sl_block_free(b);
}

static void test_static_shape(void)
{
	sl_block *b = slp_user_block(doubled);
	CHECK_OK(sl_hybridize(b, .static_shape = true));
	SL_SCOPE {
		CHECK_ALL(sl_forward(b, sl_ones(SL_SHAPE(2))), 2);
		CHECK_NULL(sl_forward(b, sl_ones(SL_SHAPE(3))), SL_ESHAPE, "static_shape", "(2,)", "(3,)");
		CHECK_ALL(sl_forward(b, sl_ones(SL_SHAPE(2))), 2);
	}
	sl_block_free(b);
}

/* Every kernel of a plan fails once: the error names it, and the next run is fine. */
static void test_kernels_fail(void)
{
	sl_block *net = slp_network_new(&slp_networks[SLP_LENET]);
	CHECK_OK(sl_hybridize(net));
	SL_SCOPE {
		sl_tensor *x = sl_ones(slp_networks[SLP_LENET].input), *right = sl_forward(net, x);
		CHECK_OK(sl_wait(right));
		int kernels = sl_plan_info(sl_block_plan(net, 0)).nodes;
		for (int k = 1; k <= kernels; k++) {
			slp_fail_kernel = k;
			sl_tensor *y = sl_forward(net, x);
			enum sl_status s = sl_wait(y);
			bool views = slp_fail_kernel > 0; /* some nodes are views: no kernel was left to fail */
			slp_fail_kernel = 0;
			if (views) CHECK(s == SL_OK);
			else
				CHECK_SAYING(s == SL_EKERNEL && strstr(sl_error_message(), "told to fail"),
				             "kernel %d: %s", k, sl_error_message());
		}
		slp_check_close("after faults", right, sl_forward(net, x), 0);
	}
	sl_block_free(net);
}

static const struct slp_test faults[] = {
        {"not traceable", test_not_traceable},
        {"side effects and mistakes that nobody uses", test_side_effects},
        {"an error from before", test_pending_error},
        {"whole steps", test_steps},
        {"programs by hand", test_define},
        {"fallback", test_fallback},
        {"static shape", test_static_shape},
        {"kernels fail", test_kernels_fail},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	const struct slp_suite suites[] = {
	        {.name = "faults of blocks", .tests = faults, .start = slp_start_engine, .stop = slp_stop_engine},
	        {.name = NULL},
	};
	return slp_test_main(argc, argv, suites);
}
