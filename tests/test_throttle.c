/* Teams beside other programs: a worker that loses its core is seen, and its team's idle threads sleep at once then.  The
 * program runs without OMP_WAIT_POLICY, which the environment of tests sets and with which they always do. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <starling.h>

#include "check.h"
#include "environment.h"
#include "op.h"
#include "runtime/compat.h"
#include "runtime/device/idle.h"
#include "runtime/device/team.h"
#include "runtime/device/throttle.h"

static int cpus;

/* 0: the machine has one core. */
static bool begin(void)
{
	cpu_set_t all;
	cpus = sched_getaffinity(0, sizeof all, &all) ? 1 : CPU_COUNT(&all);
	slp_begin((struct sl_config){.teams = 1, .gpus = -1});
	return slp_team_threads(0) > 1;
}

/* ---- threads that sleep ------------------------------------------------------------------------------------------ */

static double cpu_time(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds that a parallel region takes and 20 ms without work after it. */
static double cost_of_region(void)
{
	enum { TIMES = 10 };
	double begin = cpu_time();
	for (int i = 0; i < TIMES; i++) {
#pragma omp parallel num_threads(slp_team_size())
		sched_yield();
		nanosleep(&(struct timespec){0, 20000000}, NULL);
	}
	return (cpu_time() - begin) / TIMES;
}

static struct {
	double polling, asleep;
} costs;

static void measure(void *unused)
{
	(void)unused;
	double until = sl_time() + SLP_PATIENCE;
	slp_team_enter();
	do {
		slp_throttle(false);
		costs.polling = cost_of_region();
		slp_throttle(true); /* starts threads */
		costs.asleep = cost_of_region();
	} while (costs.asleep > costs.polling / 4 && sl_time() < until);
	slp_throttle(false);
}

/* It is processor time, which other programs hardly change. */
static void test_sleep(void)
{
	if (begin()) {
		starpu_execute_on_each_worker(measure, NULL, STARPU_CPU);
		CHECK_SAYING(costs.asleep <= costs.polling / 4, "%g s a region, %g s where threads should sleep",
		             costs.polling, costs.asleep);
	}
	slp_end_well();
}

/* ---- a worker that loses its core -------------------------------------------------------------------------------- */

static atomic_bool spins;

static void *spin(void *unused)
{
	while (atomic_load(&spins)) continue;
	return unused;
}

static void multiply(void)
{
	SL_SCOPE {
		sl_tensor *a = sl_normal(SL_SHAPE(400, 400), 0, 1), *b = NULL;
		for (int i = 0; i < 50; i++) b = sl_dot(a, a);
		CHECK_OK(sl_wait(b));
	}
}

/* Two threads a core want what the team has. */
static void test_crowded(void)
{
	enum { MOST = 1024 };
	pthread_t spinners[MOST];
	int n = 0;
	bool team = begin();
	uint64_t before = atomic_load(&slp_idle_counts.crowded);
	double until = sl_time() + SLP_PATIENCE;
	atomic_store(&spins, true);
	while (n < 2 * cpus && n < MOST && !pthread_create(&spinners[n], NULL, spin, NULL)) n++;
	while (team && atomic_load(&slp_idle_counts.crowded) == before && sl_time() < until) multiply();
	atomic_store(&spins, false);
	while (n > 0) pthread_join(spinners[--n], NULL);
	CHECK(!team || atomic_load(&slp_idle_counts.crowded) > before);
	slp_end_well();
}

/* ---- starts ------------------------------------------------------------------------------------------------------ */

static void turn(void *on)
{
	slp_team_enter();
	slp_throttle(on != NULL);
}

/* A crowd ends with the engine, also where another one has just been ended. */
static void test_starts(void)
{
	for (int i = 0; i < 20; i++) {
		begin();
		for (int k = 0; k <= i % 4; k++) starpu_execute_on_each_worker(turn, k % 2 ? NULL : &cpus, STARPU_CPU);
		slp_end_well();
	}
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {
	        {"idle threads sleep", test_sleep},
	        {"a worker that loses its core", test_crowded},
	        {"starts", test_starts},
	        {0},
	};
	slp_enter_environment(argv);
	if (getenv("OMP_WAIT_POLICY") && !unsetenv("OMP_WAIT_POLICY")) execv("/proc/self/exe", argv);
	const struct slp_suite suites[] = {{.name = "throttle", .tests = tests}, {0}};
	return slp_test_main(argc, argv, suites);
}
