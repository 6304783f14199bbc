/* Hybrid blocks that go wrong: what cannot be traced, other shapes where none are allowed, kernels that fail. */
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "capture.h"
#include "networks.h"
#include "runtime/segment.h"

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
			CHECK_SAYING(strstr(sl_error_message(), says[i]) && strstr(sl_error_message(), "tests/test_hybrid_faults.c:") &&
					     strstr(sl_error_message(), "mine"), "message: %s", sl_error_message());
			sl_error_clear();
			CHECK_OK(sl_hybridize(b, .off = true));
			CHECK(sl_forward(b, x) != NULL);
			sl_block_free(b);
		}
	}
}

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
			else CHECK_SAYING(s == SL_EKERNEL && strstr(sl_error_message(), "told to fail"), "kernel %d: %s", k, sl_error_message());
		}
		slp_check_close("after faults", right, sl_forward(net, x), 0);
	}
	sl_block_free(net);
}

static const struct slp_test faults[] = {
	{"not traceable", test_not_traceable},
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
