/* Speeds that are measured while work goes on: batches cut by them (sl_balance), the fastest of several ways
 * (sl_autotune). */
#include <math.h>
#include <starling.h>

#include "blocks.h"
#include "runtime/task/segment.h"

static const sl_device teams[2] = {{SL_DEVICE_CPU, 0}, {SL_DEVICE_CPU, 1}};

static void start(int count)
{
	slp_begin((struct sl_config){.teams = count, .seed = 1});
}

/* Until the test ends. */
static void slow_down(int team, int times)
{
	atomic_store(&slp_slow_team, team);
	atomic_store(&slp_slow_times, times);
}

static void work(int i, int times)
{
	SL_SCOPE {
		sl_tensor *a = sl_ones(SL_SHAPE(256, 256), .device = teams[i]);
		for (int k = 0; k < times; k++) sl_dot(a, a);
	}
}

static void test_balance(void)
{
	start(2);
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(100, 1)), *parts[2];
		sl_balance *b = sl_balance_new(teams, 2);
		CHECK(!sl_balance_update(b) && sl_balance_speed(b, 0) == 0); /* nothing was done */
		CHECK_OK(sl_split_and_load(x, teams, 2, parts, .balance = b));
		CHECK(sl_tensor_shape(parts[0]).dim[0] == 50);
		slow_down(1, 4);
		double deadline = sl_time() + SLP_PATIENCE;
		bool changed = false;
		while (!changed && sl_time() < deadline) {
			for (int i = 0; i < 2; i++) work(i, 50);
			changed = sl_balance_update(b);
			CHECK(changed == (sl_balance_speed(b, 0) > 0));
		}
		double s0 = sl_balance_speed(b, 0), s1 = sl_balance_speed(b, 1);
		CHECK(changed && s0 > 0 && s1 > 0);
		CHECK_OK(sl_split_and_load(x, teams, 2, parts, .balance = b));
		int64_t rows = sl_tensor_shape(parts[0]).dim[0];
		CHECK_SAYING(fabs((double)rows - 100 * s0 / (s0 + s1)) <= 1, "%lld rows at speeds %g, %g",
		             (long long)rows, s0, s1);
		CHECK_MISTAKE(sl_split_and_load(x, teams, 1, parts, .balance = b), SL_EINVAL, ".balance");
		CHECK_NULL(sl_balance_new((&(sl_device){SL_DEVICE_CPU, 7}), 1), SL_EDEVICE, "cpu:7");
		sl_balance_free(b);
	}
	slp_end_well();
}

/* Looks after too little work to tell add up: they were forgotten once. */
static void test_short_looks(void)
{
	start(2);
	sl_balance *b = sl_balance_new(teams, 2);
	slow_down(1, 4);
	double deadline = sl_time() + SLP_PATIENCE;
	do { /* on a busy machine a look may mislead */
		for (int i = 0; i < 2; i++) work(i, 1);
		sl_balance_update(b);
	} while (sl_balance_speed(b, 0) <= sl_balance_speed(b, 1) && sl_time() < deadline);
	CHECK(sl_balance_speed(b, 0) > sl_balance_speed(b, 1));
	sl_balance_free(b);
	slp_end_well();
}

/* A batch of `rows` rows, cut by measured speed; returns the part that device 0 gets. */
static double shared(const sl_balance *b, sl_tensor *x, sl_tensor *w)
{
	sl_tensor *parts[2];
	CHECK_OK(sl_split_and_load(x, teams, 2, parts, .balance = b));
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 8; k++) sl_dot(parts[i], w);
	return (double)sl_tensor_shape(parts[0]).dim[0] / (double)sl_tensor_shape(x).dim[0];
}

/* Looks and cuts again until device 0 gets about this part; on a busy machine a look may mislead. */
static void check_settles(sl_balance *b, sl_tensor *x, sl_tensor *w, double part)
{
	double last = 0, deadline = sl_time() + SLP_PATIENCE;
	while (fabs(last - part) >= 0.08 && sl_time() < deadline)
		SL_SCOPE {
			for (int batch = 0; batch < 4; batch++) shared(b, x, w);
			sl_balance_update(b);
			last = shared(b, x, w);
		}
	CHECK_SAYING(fabs(last - part) < 0.08, "after %d s device 0 gets %g, not %g", SLP_PATIENCE, last, part);
}

/* One look that misleads: a device is left with enough rows to show what it can do. */
static void test_misled(void)
{
	start(2);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(400, 256)), *w = sl_ones(SL_SHAPE(256, 256), .device = sl_auto());
		sl_balance *b = sl_balance_new(teams, 2);
		slow_down(1, 50);
		double deadline = sl_time() + SLP_PATIENCE;
		do shared(b, x, w);
		while (!sl_balance_update(b) && sl_time() < deadline);
		double part = shared(b, x, w);
		CHECK_SAYING(part > 0.6 && part < 0.9, "device 0 gets %g at once", part);
		slow_down(1, 1);
		check_settles(b, x, w, 0.5);
		sl_balance_free(b);
	}
	slp_end_well();
}

/* Devices of unequal and of changing speed. */
static void test_unequal(void)
{
	static const struct {
		int team, times;
		double part;
	} phases[] = {{1, 4, 0.8}, {0, 4, 0.2}, {0, 1, 0.5}, {1, 9, 0.9}};
	start(2);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(400, 256)), *w = sl_ones(SL_SHAPE(256, 256), .device = sl_auto());
		sl_balance *b = sl_balance_new(teams, 2);
		CHECK(shared(b, x, w) == 0.5);
		for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
			slow_down(phases[i].team, phases[i].times);
			check_settles(b, x, w, phases[i].part);
		}
		sl_balance_free(b);
	}
	slp_end_well();
}

/* The way that takes less time is chosen, and kept. */
static void test_trial(void)
{
	CHECK_MISTAKE(!sl_autotune_new(0) ? sl_error() : SL_OK, SL_EINVAL, "ways must be at least 1");
	CHECK_MISTAKE(!sl_autotune_new(1 << 30) ? sl_error() : SL_OK, SL_EINVAL, "at most 65536");
	start(1);
	SL_SCOPE
		for (int fast = 0; fast < 3; fast++) {
			sl_autotune *t = sl_autotune_new(3);
			sl_tensor *x = sl_normal(SL_SHAPE(200, 200), 0, 1);
			int tried[3] = {0}, steps = 0;
			for (; !sl_autotune_decided(t) && steps < 1000; steps++) {
				int way = sl_autotune_next(t);
				tried[way]++;
				for (int i = 0; i < (way == fast ? 1 : 30); i++) sl_dot(x, x);
			}
			CHECK(steps == 73 && tried[(fast + 1) % 3] == 24 && tried[fast] == 25 &&
			      sl_autotune_next(t) == fast);
			CHECK(sl_autotune_seconds(t, fast) < sl_autotune_seconds(t, (fast + 1) % 3) &&
			      isinf(sl_autotune_seconds(t, 3)));
			sl_autotune_free(t);
		}
	slp_end_well();
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"balance", test_balance}, {"short_looks", test_short_looks},
	                                        {"misled", test_misled},   {"unequal", test_unequal},
	                                        {"trial", test_trial},     {NULL, NULL}};
	static const struct slp_suite suites[] = {{.name = "speeds", .tests = tests}, {0}};
	return slp_test_main(argc, argv, suites);
}
