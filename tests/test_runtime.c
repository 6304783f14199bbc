/* The runtime from the outside: start and stop, pools, run-ahead, statistics, idling. */
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <starling.h>

#include "check.h"
#include "gate.h"
#include "runtime/device/idle.h"
#include "runtime/device/team.h"
#include "runtime/engine.h"
#include "runtime/memory/runahead.h"

static void start(struct sl_config config)
{
	slp_begin(config);
	sl_stats_reset();
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

/* ---- start and stop ---------------------------------------------------------------------------------------------- */

static void test_nested(void)
{
	CHECK(!sl_is_initialized());
	CHECK_OK(sl_init(NULL));
	CHECK_OK(sl_init(&(struct sl_config){.teams = 2}));
	CHECK(sl_device_count(SL_DEVICE_CPU) == slp_engine.config.teams); /* only the first counts */
	sl_shutdown();
	CHECK(sl_is_initialized());
	sl_shutdown();
	CHECK(!sl_is_initialized());
	CHECK(sl_device_count(SL_DEVICE_CPU) == 0);
	sl_shutdown();
	CHECK(!sl_is_initialized());
}

static void test_starts_by_itself(void)
{
	SL_SCOPE
		CHECK_VALUES(sl_add_scalar(sl_from(((float[]){1, 2}), SL_SHAPE(2)), 1), 2, 3);
	CHECK(sl_is_initialized());
	sl_shutdown();
	CHECK(!sl_is_initialized());
}

static void test_restart(void)
{
	for (int i = 0; i < 5; i++) {
		start((struct sl_config){.bulk = i % 2 ? 1 : 32});
		SL_SCOPE
			CHECK_ALL(sl_add_scalar(sl_ones(SL_SHAPE(100, 10)), i), 1 + i);
		CHECK(slp_stats().ops == 2);
		sl_shutdown();
	}
}

/* What a tensor says that lost its values. */
static void check_lost(sl_tensor *t)
{
	float v[2];
	CHECK_STATUS(sl_read(t, v, sizeof v), SL_ESTATE, "sl_read", "sl_shutdown", SL_HERE);
	CHECK_STATUS(sl_wait(t), SL_ESTATE, "sl_wait", SL_HERE);
	CHECK_STATUS(sl_write(t, v, sizeof v), SL_ESTATE, "sl_write", SL_HERE);
	CHECK_NULL(sl_add(t, t), SL_ESTATE, "add", "argument a", "sl_shutdown");
	CHECK_NULL(sl_reshape(t, SL_SHAPE(2, 1)), SL_ESTATE, "sl_reshape");
	CHECK_NULL(sl_rows(t, 0, 1), SL_ESTATE, "sl_rows");
	CHECK_NULL(sl_detach(t), SL_ESTATE, "sl_detach");
	CHECK_STATUS(sl_attach_grad(t), SL_ESTATE, "sl_attach_grad", SL_HERE);
	sl_error_clear();
	CHECK(sl_tensor_size(t) == 2); /* its type remains */
}

static void release_all(sl_tensor *const *list, int n)
{
	for (int i = 0; i < n; i++) sl_release(list[i]);
}

/* What happens between sl_shutdown and the end of the tensors. */
enum between { NOTHING, USE, RESTART };

/* Tensors live on without values, whether the engine runs again or not: alone, as views, on the tape, in the segment
 * that was open. */
static void outlive(enum between between)
{
	start((struct sl_config){0});
	sl_tensor *t = sl_from(((float[]){1, 2}), SL_SHAPE(2)), *view = sl_rows(t, 0, 1), *y = NULL, *z = NULL;
	CHECK_OK(sl_attach_grad(t));
	SL_RECORD {
		y = sl_mul(t, t);
		z = sl_exp(y);
	}
	sl_tensor *open = sl_add(t, t);
	sl_shutdown();
	if (between == RESTART) start((struct sl_config){0});
	if (between != NOTHING) check_lost(t);
	if (between != NOTHING) CHECK_STATUS(sl_backward(z), SL_ESTATE, "sl_shutdown");
	sl_error_clear();
	release_all((sl_tensor *[]){t, view, y, z, open}, 5);
	SL_SCOPE
		CHECK_ALL(sl_add_scalar(sl_ones(SL_SHAPE(2)), 1), 2);
	slp_end();
}

static void test_outlive(void)
{
	outlive(NOTHING);
	outlive(USE);
	outlive(RESTART);
}

static void test_unreported_at_shutdown(void)
{
	start((struct sl_config){0});
	sl_release(sl_add(NULL, NULL));
	sl_shutdown(); /* a line on stderr */
	CHECK(sl_error() == SL_OK);
	start((struct sl_config){0});
	CHECK_OK(sl_wait_all());
	sl_shutdown();
}

static void test_bad_start(void)
{
	struct sl_config config = {.sched = "no-such-policy"};
	CHECK_STATUS(sl_init(&config), SL_EINVAL, "no-such-policy", " lws", SL_HERE);
	sl_error_clear();
	CHECK_STATUS(sl_init(&(struct sl_config){.runahead_tasks = -1}), SL_EINVAL, ".runahead_tasks", SL_HERE);
	sl_error_clear();
	CHECK(!sl_is_initialized());
	start((struct sl_config){0});
	SL_SCOPE
		CHECK_ALL(sl_ones(SL_SHAPE(3)), 1);
	sl_shutdown();
}

/* StarPU itself aborts there. */
static void test_no_folder(void)
{
	const char *home = getenv("STARPU_HOME");
	char *kept = home ? strdup(home) : NULL;
	setenv("STARPU_HOME", "/dev/null", 1);
	CHECK_STATUS(sl_init(NULL), SL_EIO, "/dev/null/.starpu", "set STARPU_HOME", SL_HERE);
	sl_error_clear();
	CHECK(!sl_is_initialized());
	if (kept) setenv("STARPU_HOME", kept, 1);
	else unsetenv("STARPU_HOME");
	free(kept);
}

/* More workers than cores would poll in turns: only where nothing is bound anyway. */
static void test_too_many_teams(void)
{
	const char *nobind = getenv("STARPU_WORKERS_NOBIND");
	char *kept = nobind ? strdup(nobind) : NULL;
	struct sl_config config = {.teams = slp_team_cores_total() + 1};
	unsetenv("STARPU_WORKERS_NOBIND");
	CHECK_STATUS(sl_init(&config), SL_EDEVICE, "CPU devices on", SL_HERE);
	sl_error_clear();
	setenv("STARPU_WORKERS_NOBIND", "1", 1);
	CHECK_OK(sl_init(&config));
	CHECK(sl_device_count(SL_DEVICE_CPU) == config.teams);
	sl_shutdown();
	if (kept) setenv("STARPU_WORKERS_NOBIND", kept, 1);
	else unsetenv("STARPU_WORKERS_NOBIND");
	free(kept);
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

/* x + 1 + 1 + …, each intermediate released as soon as the next is asked for. */
static sl_tensor *chain(sl_tensor *x, int n)
{
	sl_tensor *y = sl_retain(x);
	for (int i = 0; i < n; i++) {
		sl_tensor *z = sl_add_scalar(y, 1);
		sl_release(y);
		y = z;
	}
	return y;
}

static void run_chain(int64_t elements, int n)
{
	sl_tensor *x = sl_zeros(SL_SHAPE(elements)), *y = chain(x, n);
	CHECK_ALL(y, n);
	sl_release(x);
	sl_release(y);
}

static void recycle(int bulk)
{
	start((struct sl_config){.bulk = bulk});
	run_chain(10, 10000);
	struct sl_stats s = slp_stats();
	CHECK_SAYING(s.handles <= 1024, "%llu handles after 10000 operations", (unsigned long long)s.handles);
	for (int i = 0; i < 3; i++) run_chain(10, 10000);
	struct sl_stats t = slp_stats();
	CHECK_SAYING(t.handles <= 1024, "%llu handles after 40000 operations", (unsigned long long)t.handles);
	CHECK(t.bytes <= t.handles * 64);
	CHECK(t.peak_tasks <= (uint64_t)slp_engine.config.runahead_tasks);
	sl_shutdown();
	CHECK(slp_stats().handles == 0);
	CHECK(slp_stats().bytes == 0);
}

static void test_recycle(void)
{
	recycle(1);
	recycle(32);
}

/* Idle memory of sizes that are no longer asked for is given back. */
static void test_trim(void)
{
	start((struct sl_config){.runahead_bytes = 1 << 20});
	for (int i = 1; i <= 40; i++) run_chain((int64_t)i << 18, 1); /* 1 to 40 MiB, 820 MiB in all */
	CHECK_SAYING(slp_stats().bytes < (size_t)300 << 20, "%zu bytes", slp_stats().bytes);
	sl_shutdown();
}

/* ---- run-ahead --------------------------------------------------------------------------------------------------- */

struct issuer {
	int64_t elements, other; /* other: every second one has so many */
	int n;
	atomic_int issued, failed;
};

/* Issues n operations whose results nobody holds. */
static void *issue(void *arg)
{
	struct issuer *is = arg;
	for (int i = 0; i < is->n; i++) {
		sl_tensor *t = sl_ones(SL_SHAPE(i % 2 && is->other ? is->other : is->elements));
		if (!t) atomic_fetch_add(&is->failed, 1);
		sl_release(t);
		atomic_fetch_add(&is->issued, 1);
	}
	return NULL;
}

/* Lets a thread issue while the worker is kept busy, until it has to wait or has issued all, and a little longer; then
 * opens the gate.  Returns how many operations it had issued. */
static int issue_against_gate(struct issuer *is)
{
	pthread_t thread;
	slp_gate_close(0);
	pthread_create(&thread, NULL, issue, is);
	double deadline = sl_time() + SLP_PATIENCE;
	while (!slp_runahead_waited() && atomic_load(&is->issued) < is->n && sl_time() < deadline) sleep_ms(1);
	sleep_ms(30); /* stall_seconds counts it; whoever does not wait gets further */
	int issued = atomic_load(&is->issued);
	slp_gate_open();
	pthread_join(thread, NULL);
	return issued;
}

static void test_bound_tasks(void)
{
	start((struct sl_config){.teams = 1, .bulk = 1, .runahead_tasks = 8});
	struct issuer is = {.elements = 16, .n = 100};
	int issued = issue_against_gate(&is);
	CHECK_SAYING(issued == 8, "%d tasks issued before the bound held", issued);
	CHECK_OK(sl_wait_all());
	struct sl_stats s = slp_stats();
	CHECK(is.failed == 0);
	CHECK(s.peak_tasks == 8);
	CHECK(s.stalls >= 1);
	CHECK(s.stall_seconds > 0.02);
	CHECK(s.ops == 100);
	CHECK(s.pending_tasks == 0);
	sl_shutdown();
}

/* Bulked operations count as one task. */
static void test_bound_tasks_bulked(void)
{
	start((struct sl_config){.teams = 1, .bulk = 4, .runahead_tasks = 8});
	struct issuer is = {.elements = 16, .n = 100};
	int issued = issue_against_gate(&is);
	CHECK_SAYING(issued >= 32 && issued <= 36, "%d operations issued before the bound held", issued);
	CHECK_OK(sl_wait_all());
	CHECK(slp_stats().segments == 25);
	CHECK(slp_stats().peak_tasks == 8);
	sl_shutdown();
}

/* Memory: nobody holds the results, tasks still use them. */
static void bound_bytes(int64_t other)
{
	start((struct sl_config){.teams = 1, .runahead_bytes = (size_t)4 << 20});
	size_t before = slp_stats().bytes;
	struct issuer is = {.elements = 1 << 18, .other = other, .n = 100}; /* 1 MiB each */
	issue_against_gate(&is);
	CHECK_OK(sl_wait_all());
	struct sl_stats s = slp_stats();
	CHECK(is.failed == 0);
	CHECK_SAYING(s.peak_bytes - before <= (size_t)9 << 20, "at most %zu bytes, 4 MiB allowed",
	             s.peak_bytes - before);
	CHECK(s.ops == 100);
	sl_shutdown();
}

static void test_bound_bytes(void)
{
	bound_bytes(0);
	bound_bytes(3 << 16);
	bound_bytes(3 << 17);
}

/* A chain too long for memory, computed slower than it is issued. */
static void test_bound_bytes_chain(void)
{
	start((struct sl_config){.teams = 1, .runahead_bytes = (size_t)8 << 20});
	run_chain(1 << 19, 300); /* 2 MiB each */
	CHECK_SAYING(slp_stats().peak_bytes <= (size_t)16 << 20, "at most %zu bytes", slp_stats().peak_bytes);
	sl_shutdown();
}

/* How many buffers 50 results take that nobody holds, while none of them is computed. */
static uint64_t buffers_against_gate(int teams, int64_t elements)
{
	start((struct sl_config){.teams = teams, .bulk = 1, .runahead_bytes = (size_t)1 << 30});
	for (int i = 0; i < teams; i++) slp_gate_close(i);
	uint64_t before = slp_stats().handles;
	for (int i = 0; i < 50; i++) sl_release(sl_ones(SL_SHAPE(elements)));
	uint64_t handles = slp_stats().handles - before;
	slp_gate_open();
	CHECK_OK(sl_wait_all());
	sl_shutdown();
	return handles;
}

/* Where one worker runs all tasks, large results follow each other in one buffer; others stay independent. */
static void test_one_buffer(void)
{
	CHECK(buffers_against_gate(1, 1 << 18) == 1);
	CHECK(buffers_against_gate(1, 16) == 50);
	CHECK(buffers_against_gate(2, 1 << 18) == 50);
}

/* ---- statistics -------------------------------------------------------------------------------------------------- */

static void test_stats(void)
{
	start((struct sl_config){.bulk = 1});
	run_chain(8, 99);
	struct sl_stats s = slp_stats();
	CHECK(s.ops == 100);
	CHECK(s.segments == 100);
	CHECK_OK(sl_wait_all());
	CHECK(slp_stats().finished == 100);
	CHECK(s.faults == 0 && s.skipped == 0);
	CHECK(s.recycled > 0 || s.handles >= 100);
	CHECK(s.nodes >= 1);
	sl_stats_reset();
	s = slp_stats();
	CHECK(s.ops == 0 && s.segments == 0 && s.finished == 0 && s.stalls == 0);
	CHECK(s.handles > 0 && s.bytes > 0 && s.peak_bytes == s.bytes);
	char *text = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&text, &size);
	sl_stats_print(file);
	fclose(file);
	CHECK(strstr(text, "ops 0 in 0 tasks") && strstr(text, "memory node 0"));
	free(text);
	sl_shutdown();
}

/* ---- waiting and idling ------------------------------------------------------------------------------------------ */

/* Whether the counter goes on within the patience. */
static bool goes_on(const _Atomic uint64_t *counter, void (*between)(void))
{
	uint64_t before = atomic_load(counter);
	double deadline = sl_time() + SLP_PATIENCE;
	while (atomic_load(counter) == before && sl_time() < deadline) between();
	return atomic_load(counter) > before;
}

static void look_again(void)
{
	sleep_ms(1);
}

static void sleep_and_work(void)
{
	goes_on(&slp_idle_counts.naps, look_again);
	SL_SCOPE
		CHECK_ALL(sl_add_scalar(sl_ones(SL_SHAPE(4)), 1), 2);
}

static void test_idle_sleeps(void)
{
	start((struct sl_config){.gpus = -1});
	SL_SCOPE
		CHECK_OK(sl_wait(sl_ones(SL_SHAPE(4))));
	CHECK(goes_on(&slp_idle_counts.naps, look_again));
	CHECK(goes_on(&slp_idle_counts.woken, sleep_and_work)); /* not only because it slept long enough */
}

static void multiply_and_wait(void)
{
	SL_SCOPE {
		sl_tensor *a = sl_normal(SL_SHAPE(256, 256), 0, 1);
		CHECK_OK(sl_wait(sl_dot(a, a)));
	}
}

static void test_team_yields(void)
{
	start((struct sl_config){.gpus = -1, .teams = 1});
	if (slp_team_threads(0) > 1) CHECK(goes_on(&slp_idle_counts.team_yields, multiply_and_wait));
}

/* ------------------------------------------------------------------------------------------------------------------ */

/* The signals that a thread of this process blocks, as bits; 0 if it is not there. */
static unsigned long long blocked_by(const char *thread)
{
	char path[NAME_MAX + 64], line[256];
	unsigned long long bits = 0;
	snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f) && sscanf(line, "SigBlk: %llx", &bits) != 1) continue;
	if (f) fclose(f);
	return bits;
}

static void test_signals(void)
{
	const unsigned long long ours = 1ull << (SIGINT - 1) | 1ull << (SIGTERM - 1) | 1ull << (SIGXCPU - 1),
	                         faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGFPE - 1);
	int workers = 0;
	start((struct sl_config){0});
	SL_SCOPE
		CHECK_OK(sl_wait(sl_normal(SL_SHAPE(300, 300), 0, 1)));
	DIR *all = opendir("/proc/self/task");
	for (struct dirent *d; all && (d = readdir(all));) {
		unsigned long long blocked = blocked_by(d->d_name);
		if (atoi(d->d_name) == getpid()) CHECK(!(blocked & ours));
		workers += (blocked & ours) == ours && !(blocked & faults);
	}
	if (all) closedir(all);
	CHECK(workers >= 1); /* threads that libraries made at their start are not ours */
}

static const struct slp_test start_tests[] = {
        {"nested", test_nested},
        {"starts by itself", test_starts_by_itself},
        {"restart", test_restart},
        {"tensors outlive the engine", test_outlive},
        {"errors nobody asked for", test_unreported_at_shutdown},
        {"bad configuration", test_bad_start},
        {"no folder for StarPU", test_no_folder},
        {"more teams than cores", test_too_many_teams},
        {"workers get no signals", test_signals},
        {0},
};
static const struct slp_test memory_tests[] = {
        {"handles are recycled", test_recycle},
        {"idle memory is given back", test_trim},
        {"bound of tasks", test_bound_tasks},
        {"bound of tasks, bulked", test_bound_tasks_bulked},
        {"bound of bytes", test_bound_bytes},
        {"bound of bytes in a chain", test_bound_bytes_chain},
        {"one worker, one buffer", test_one_buffer},
        {"statistics", test_stats},
        {0},
};
static const struct slp_test idle_tests[] = {
        {"idle workers sleep until there is work", test_idle_sleeps},
        {"a team gives way to who waits", test_team_yields},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             {.name = "start and stop", .tests = start_tests, .after = slp_end},
	                             {.name = "memory and run-ahead", .tests = memory_tests, .after = slp_end},
	                             {.name = "waiting and idling", .tests = idle_tests, .after = slp_end},
	                             {0},
	                     });
}
