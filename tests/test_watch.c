/* The watchdog: what runs or waits longer than SL_DEADLINE is reported, with operation, place and worker; a wait can
 * end with an error. */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "capture.h"
#include "check.h"
#include "gate.h"
#include "runtime/task/execute.h"
#include "runtime/observe/watch.h"

static const double soon = 0.1; /* seconds */

static void begin(bool ends)
{
	slp_begin((struct sl_config){.teams = 1});
	slp_watch_start(soon, ends);
}

static void expect(const char *said, const char *wanted)
{
	CHECK_SAYING(strstr(said, wanted) != NULL, "\"%s\" is not in \"%s\"", wanted, said);
}

/* Until the watchdog has said something more. */
static void until_told(int before)
{
	double end = sl_time() + SLP_PATIENCE;
	while (atomic_load(&slp_watch_told) == before && sl_time() < end) sched_yield();
}

/* On a busy machine even what is not held up takes longer than `soon`.  NULL: for all. */
static enum sl_status wait_patiently(sl_tensor *t)
{
	double end = sl_time() + SLP_PATIENCE;
	enum sl_status s;
	do s = t ? sl_wait(t) : sl_wait_all();
	while (s == SL_ETIME && sl_time() < end);
	return s;
}

static void *wait_for_it(void *t)
{
	sl_wait(t);
	return NULL;
}

/* What waits behind a worker that is busy with something else. */
static void test_wait(void)
{
	pthread_t waiter;
	begin(false);
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(8));
		CHECK_OK(sl_wait(x));
		int before = atomic_load(&slp_watch_told);
		slp_gate_close(0);
		slp_capture_begin();
		sl_tensor *y = sl_exp(x);
		CHECK(pthread_create(&waiter, NULL, wait_for_it, y) == 0);
		until_told(before);
		slp_gate_open();
		pthread_join(waiter, NULL);
		char *said = slp_capture_end();
		expect(said, "starling: sl_wait at ");
		expect(said, "test_watch.c:");
		expect(said, "has waited for");
		expect(said, "\n  exp at ");
		expect(said, "has not begun");
		free(said);
		CHECK_ALL(y, 1);
	}
	slp_end_well();
}

/* A task that takes very long; nobody waits for it. */
static void test_task(void)
{
	begin(false);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(512, 512));
		CHECK_OK(sl_wait(x));
		int before = atomic_load(&slp_watch_told);
		slp_capture_begin();
		atomic_store(&slp_slow_times, 200);
		sl_tensor *y = sl_dot(x, x);
		until_told(before);
		atomic_store(&slp_slow_times, 1);
		char *said = slp_capture_end();
		expect(said, "a task does not end (SL_DEADLINE): dot at ");
		expect(said, "runs on CPU 0, for");
		free(said);
		CHECK_ALL(y, 512);
	}
	slp_end_well();
}

/* Each wait ends in time, and says what it has waited for; what was asked for is done all the same. */
static void test_error(void)
{
	float values[8];
	begin(true);
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(8));
		CHECK_OK(wait_patiently(x));
		slp_capture_begin();
		slp_gate_close(0);
		sl_tensor *y = sl_exp(x);
		CHECK_STATUS(sl_wait(y), SL_ETIME, "sl_wait at", "test_watch.c", "exp at", "has not begun");
		CHECK_STATUS(sl_read(y, values, sizeof values), SL_ETIME, "sl_read at", "exp at");
		CHECK_STATUS(sl_write(y, values, sizeof values), SL_ETIME, "sl_write at", "exp at");
		CHECK_STATUS(sl_wait_all(), SL_ETIME, "sl_wait_all at", "exp at");
		slp_gate_open();
		free(slp_capture_end());
		CHECK_OK(wait_patiently(NULL));
		CHECK_ALL(y, 1);
	}
	slp_end_well();
}

/* A call that has to wait until less is under way. */
static void test_runahead(void)
{
	slp_begin((struct sl_config){.teams = 1, .runahead_tasks = 4, .bulk = 1});
	slp_watch_start(soon, true);
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(8));
		CHECK_OK(wait_patiently(x));
		slp_capture_begin();
		slp_gate_close(0);
		for (int i = 0; i < 5; i++) x = sl_add_scalar(x, 1);
		CHECK_STATUS(sl_error(), SL_ETIME, "add_scalar", "test_watch.c", "has not begun");
		sl_error_clear();
		slp_gate_open();
		free(slp_capture_end());
		CHECK_OK(wait_patiently(x));
		CHECK_ALL(x, 5);
	}
	slp_end_well();
}

static const struct slp_test tests[] = {
        {"wait", test_wait}, {"task", test_task}, {"error", test_error}, {"run-ahead", test_runahead}, {0}};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {{.name = "watch", .tests = tests}, {0}};
	return slp_test_main(argc, argv, suites);
}
