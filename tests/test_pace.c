/* A paced run is a bounded number of steps ahead of what is computed, and faults stay pending for who looks at them. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "models/driver/common.h"

enum { STEPS = 150, N = 400, SLACK = 8 }; /* what has a value may still be counted as a task */

static void start(void)
{
	slp_begin((struct sl_config){.seed = 1});
}

/* Steps that depend on each other, a task each. */
static uint64_t most_ahead(bool paced)
{
	struct drv_pace pace = {0};
	struct sl_stats stats = {0};
	SL_SCOPE {
		sl_tensor *x = sl_retain(sl_full(SL_SHAPE(N, N), 1.0 / N)), *w = x, *y;
		CHECK_OK(sl_wait(x));
		sl_stats_reset();
		for (int i = 0; i < STEPS; i++) {
			SL_SCOPE
				y = sl_retain(sl_dot(x, w));
			sl_release(x);
			x = y;
			if (paced) drv_pace(&pace, x);
		}
		sl_stats_get(&stats);
		CHECK_OK(sl_wait(x));
		sl_release(x);
	}
	drv_pace_end(&pace);
	return stats.peak_tasks;
}

static void test_bound(void)
{
	uint64_t paced = most_ahead(true);
	CHECK_SAYING(paced <= DRV_MOST_AHEAD + SLACK, "%llu tasks ahead", (unsigned long long)paced);
	CHECK(most_ahead(false) > DRV_MOST_AHEAD + SLACK); /* else nothing was bounded */
}

static void test_fault(void)
{
	struct drv_pace pace = {0};
	SL_SCOPE {
		sl_tensor *scores = sl_zeros(SL_SHAPE(1, 5)), *label = sl_full(SL_SHAPE(1), 7, .dtype = SL_INT32);
		for (int i = 0; i < 2 * DRV_MOST_AHEAD; i++) drv_pace(&pace, sl_softmax_cross_entropy(scores, label));
	}
	drv_pace_end(&pace);
	CHECK(sl_wait_all() == SL_EINVAL);
	CHECK(strstr(sl_error_message(), "sample 0 has label 7") != NULL);
	sl_error_clear();
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"bound", test_bound}, {"fault", test_fault}, {0}};
	const struct slp_suite suites[] = {{"pace", tests, .before = start, .after = slp_end}, {0}};
	return slp_test_main(argc, argv, suites);
}
