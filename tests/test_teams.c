/* CPU teams: which cores and how many threads each has, what its threads are bound to whatever regions libraries open, how
 * loops are dealt out. */
#include <dirent.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <starling.h>

#include "../codelets/common/gemm.h"
#include "check.h"
#include "folder.h"
#include "op.h"
#include "runtime/compat.h"
#include "runtime/device/cores.h"
#include "runtime/device/team.h"
#include "runtime/memory/cgroup.h"

static cpu_set_t all; /* that the process may use */

static void begin(int teams, const char *threads)
{
	unsetenv("STARPU_WORKERS_NOBIND"); /* make check sets it */
	if (threads) setenv("SL_TEAM_THREADS", threads, 1);
	else unsetenv("SL_TEAM_THREADS");
	slp_begin((struct sl_config){.teams = teams, .gpus = -1});
}

/* ---- masks ------------------------------------------------------------------------------------------------------- */

enum { MAX_TEAMS = 2, MAX_THREADS = 64 };

/* Of the threads of each team, by their numbers in a region. */
static struct seen {
	int threads;
	cpu_set_t masks[MAX_THREADS];
} seen[MAX_TEAMS];

static void region(int threads)
{
#pragma omp parallel num_threads(threads)
	sched_yield();
}

static void nothing(void *unused, int64_t begin, int64_t end)
{
	(void)unused, (void)begin, (void)end;
}

static void look(void *unused)
{
	(void)unused;
	slp_team_enter();
	/* LLVM's OpenMP gives a thread that one team has left to another, whose next loop binds it again. */
	if (slp_team_by_llvm()) slp_parallel_for(MAX_THREADS, 1, nothing, NULL);
	struct seen *s = &seen[slp_team_index()];
	memset(s, 0, sizeof *s);
#pragma omp parallel num_threads(slp_team_size())
	{
		int t = omp_get_thread_num();
		if (t < MAX_THREADS) sched_getaffinity(0, sizeof s->masks[t], &s->masks[t]);
		if (t == 0) s->threads = omp_get_num_threads();
	}
}

/* Regions that make libgomp end threads and start others. */
static void change_sizes(void *unused)
{
	(void)unused;
	slp_team_enter();
	region(slp_team_size());
	region(2);
	region(slp_team_size());
	region(1 + slp_team_size() / 2);
	region(slp_team_size());
}

static void call_libraries(sl_device device)
{
	SL_SCOPE {
		sl_device_default(device);
		sl_tensor *x = sl_normal(SL_SHAPE(8, 16, 12, 12), 0, 1), *w = sl_normal(SL_SHAPE(32, 16, 3, 3), 0, 1);
		CHECK_OK(sl_wait(sl_conv2d(x, w, NULL)));
		sl_tensor *a = sl_zeros(SL_SHAPE(300, 300), .dtype = SL_FLOAT64);
		CHECK_OK(sl_wait(sl_dot(a, a)));
		CHECK_OK(sl_wait(sl_exp(sl_zeros(SL_SHAPE(1 << 20)))));
	}
}

/* A team's threads may use all of its share; teams share nothing that they need not. */
static void check_masks(int teams, int threads)
{
	cpu_set_t sum, both;
	CPU_ZERO(&sum);
	starpu_execute_on_each_worker(look, NULL, STARPU_CPU);
	for (int i = 0; i < teams; i++) {
		CHECK_SAYING(seen[i].threads == threads, "team %d has %d threads", i, seen[i].threads);
		for (int t = 0; t < seen[i].threads; t++)
			CHECK_SAYING(CPU_EQUAL(&seen[i].masks[t], &seen[i].masks[0]),
			             "thread %d of team %d has %d CPUs, its first %d", t, i,
			             CPU_COUNT(&seen[i].masks[t]), CPU_COUNT(&seen[i].masks[0]));
		CPU_AND(&both, &sum, &seen[i].masks[0]);
		CHECK_SAYING(CPU_COUNT(&both) == 0 || slp_team_cores_total() < teams, "team %d shares cores", i);
		CPU_OR(&sum, &sum, &seen[i].masks[0]);
	}
	CHECK_SAYING(CPU_EQUAL(&sum, &all), "the teams have %d CPUs of %d", CPU_COUNT(&sum), CPU_COUNT(&all));
}

static void test_masks(void)
{
	enum { THREADS = 8 };
	for (int teams = 1; teams <= MAX_TEAMS && teams <= slp_team_cores_total(); teams++) {
		begin(teams, "8");
		CHECK(slp_team_threads(0) == THREADS);
		starpu_execute_on_each_worker(change_sizes, NULL, STARPU_CPU);
		check_masks(teams, THREADS);
		for (int i = 0; i < teams; i++) call_libraries(sl_cpu(i));
		starpu_execute_on_each_worker(change_sizes, NULL, STARPU_CPU);
		check_masks(teams, THREADS);
		slp_end_well();
	}
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

enum { MOST = 1000 };
static struct walk {
	int64_t n, grain;
	_Atomic int times[MOST];
	_Atomic int ranges, held, wrong;
	int hold; /* ranges there are; 0: nothing is held */
} walk;

/* The first range does not end before all others are done: those of its thread, too, by others. */
static void step(void *arg, int64_t begin, int64_t end)
{
	struct walk *w = arg;
	if (begin % w->grain || end > w->n || begin >= end) atomic_fetch_add(&w->wrong, 1);
	for (int64_t i = begin; i < end; i++) atomic_fetch_add(&w->times[i], 1);
	atomic_fetch_add(&w->ranges, 1);
	if (!w->hold || atomic_fetch_add(&w->held, 1)) return;
	double until = sl_time() + SLP_PATIENCE;
	while (atomic_load(&w->ranges) < w->hold && sl_time() < until) sched_yield();
	if (sl_time() >= until) atomic_fetch_add(&w->wrong, 1);
}

static void walk_once(void *arg)
{
	slp_team_enter();
	slp_parallel_for(((struct walk *)arg)->n, ((struct walk *)arg)->grain, step, arg);
}

static void walk_in_ranges(void *arg)
{
	slp_team_enter();
	slp_parallel_ranges(((struct walk *)arg)->n, ((struct walk *)arg)->grain, step, arg);
}

static void check_walk(int64_t n, int64_t grain, void (*how)(void *), int most)
{
	memset(&walk, 0, sizeof walk);
	walk.n = n;
	walk.grain = grain;
	starpu_execute_on_each_worker(how, &walk, STARPU_CPU);
	int64_t wrong = walk.wrong;
	for (int64_t i = 0; i < MOST; i++) wrong += walk.times[i] != (i < n);
	CHECK_SAYING(wrong == 0 && walk.ranges <= most, "%lld in pieces of %lld: %lld wrong, %d ranges", (long long)n,
	             (long long)grain, (long long)wrong, walk.ranges);
}

static void test_loops(void)
{
	static const char *const threads[] = {"1", "2", "3", "8"};
	for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
		begin(1, threads[i]);
		int t = atoi(threads[i]);
		for (int64_t n = 0; n <= MOST; n += n < 20 ? 1 : 97)
			for (int64_t grain = 1; grain < 200; grain = 3 * grain + 1) {
				check_walk(n, grain, walk_once, 4 * t);
				check_walk(n, grain, walk_in_ranges, t);
			}
		sl_shutdown();
	}
}

static void test_helping(void)
{
	begin(1, "3");
	memset(&walk, 0, sizeof walk);
	walk.n = MOST;
	walk.grain = 1;
	walk.hold = 12;
	starpu_execute_on_each_worker(walk_once, &walk, STARPU_CPU);
	CHECK_SAYING(walk.ranges == 12 && !walk.wrong, "%d ranges; those of a thread that is held up wait for it",
	             walk.ranges);
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

enum { MOST_BITS = 64 * 32 * 3 * 3 };

/* The gradient of the sum of y with respect to w, for which w was attached. */
static int read_gradient(sl_tensor *y, sl_tensor *w, float *gradient)
{
	int count = (int)sl_tensor_size(w);
	CHECK_OK(sl_backward(y));
	CHECK_OK(sl_read(sl_grad(w), gradient, (size_t)count * sizeof *gradient));
	return count;
}

/* Of a convolution with respect to its weights; oneDNN divides the images among threads where channels fill vectors, our
 * own kernels for few channels do so with vectors of images. */
static int convolution(sl_shape images, sl_shape weights, float *gradient)
{
	sl_tensor *x = sl_normal(images, 0, 1), *w = sl_normal(weights, 0, 1), *y = NULL;
	sl_attach_grad(w);
	SL_RECORD
		y = sl_conv2d(x, w, NULL, .pad = {1, 1});
	return read_gradient(y, w, gradient);
}

static int many_channels(float *gradient)
{
	return convolution(SL_SHAPE(9, 32, 10, 10), SL_SHAPE(64, 32, 3, 3), gradient);
}

static int few_channels(float *gradient)
{
	return convolution(SL_SHAPE(400, 1, 8, 8), SL_SHAPE(6, 1, 3, 3), gradient);
}

/* Groups of few channels, forwards: oneDNN computes them as products of matrices on some processors. */
static int groups(float *values)
{
	sl_tensor *x = sl_uniform(SL_SHAPE(16, 8, 6, 6), -1, 1), *w = sl_normal(SL_SHAPE(12, 4, 3, 3), 0, 1);
	sl_tensor *y = sl_conv2d(x, w, NULL, .pad = {1, 1}, .groups = 2);
	CHECK_OK(sl_read(y, values, (size_t)sl_tensor_size(y) * sizeof *values));
	return (int)sl_tensor_size(y);
}

/* Two heads: more threads than that divide blocks of queries and keys. */
static int few_heads(float *gradient)
{
	sl_tensor *q = sl_normal(SL_SHAPE(2, 600, 8), 0, 1), *y = NULL;
	sl_attach_grad(q);
	SL_RECORD
		y = sl_scaled_dot_product_attention(q, q, q, .causal = true);
	return read_gradient(y, q, gradient);
}

/* An LSTM of two rows: more threads than that divide the weights of each step. */
static int few_rows(float *gradient)
{
	sl_block *net = sl_lstm(130);
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.1)));
	sl_tensor *x = sl_normal(SL_SHAPE(3, 2, 5), 0, 1), *y = NULL;
	sl_attach_grad(x);
	SL_RECORD
		y = sl_forward(net, x);
	int count = read_gradient(y, x, gradient);
	sl_block_free(net);
	return count;
}

static int bits_with(const char *threads, int (*find)(float *), float *gradient)
{
	int count = 0;
	begin(1, threads);
	SL_SCOPE {
		sl_seed(3);
		count = find(gradient);
	}
	slp_end_well();
	return count;
}

/* With SL_FIXED_SUMS. */
static void test_bits(void)
{
	static int (*const cases[])(float *) = {many_channels, few_channels, groups, few_heads, few_rows};
	static const char *const threads[] = {"2", "3", "8"};
	static float one[MOST_BITS], other[MOST_BITS];
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		int count = bits_with("1", cases[c], one);
		for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
			bits_with(threads[i], cases[c], other);
			CHECK_SAYING(count > 0 && !memcmp(one, other, (size_t)count * sizeof *one),
			             "case %zu: with %s threads there are other bits", c, threads[i]);
		}
	}
}

/* ---- how many threads the process has ---------------------------------------------------------------------------- */

static int threads_of_process(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = 0;
	if (!tasks) return 0; /* without /proc */
	for (struct dirent *entry; (entry = readdir(tasks));) n += entry->d_name[0] != '.';
	closedir(tasks);
	return n;
}

/* The team's threads, a worker for each device, the program's, and at most three of StarPU. */
static void test_threads(void)
{
	enum { TEAM = 16, MORE = 4 };
	begin(1, "16");
	starpu_execute_on_each_worker(change_sizes, NULL, STARPU_CPU);
	call_libraries(sl_cpu(0));
	int threads = threads_of_process(), workers = (int)starpu_worker_get_count();
	CHECK_SAYING(threads <= TEAM + workers + MORE, "%d threads with a team of %d and %d workers", threads, TEAM,
	             workers);
	CHECK(slp_team_threads(0) == TEAM);
	slp_end_well();
}

/* ---- how many ---------------------------------------------------------------------------------------------------- */

static void test_variables(void)
{
	int cores = slp_team_cores_total();
	begin(1, NULL);
	CHECK(slp_team_cores(0) == cores && slp_team_threads(0) == cores);
	sl_shutdown();
	setenv("OMP_NUM_THREADS", "1", 1);
	begin(1, NULL);
	CHECK(slp_team_cores(0) == cores && slp_team_threads(0) == 1);
	sl_shutdown();
	begin(1, "5");
	CHECK(slp_team_threads(0) == 5);
	sl_shutdown();
	unsetenv("OMP_NUM_THREADS");
}

/* A core that StarPU or the program keeps is not a team's; and there is still a device. */
static void check_one_less(const char *name)
{
	int cores = slp_cores()->count;
	setenv(name, "1", 1);
	begin(1, NULL);
	CHECK_SAYING(slp_team_cores(0) == (cores > 1 ? cores - 1 : 1), "%s=1: %d cores of %d", name, slp_team_cores(0),
	             cores);
	SL_SCOPE
		CHECK_ALL(sl_full(SL_SHAPE(3), 2), 2);
	sl_shutdown();
	unsetenv(name);
	CHECK(sched_setaffinity(0, sizeof all, &all) == 0);
	slp_cores_choose();
}

static void test_reserved(void)
{
	check_one_less("STARPU_RESERVE_NCPU");
	check_one_less("STARPU_MAIN_THREAD_BIND");
}

static void test_named(void)
{
	static const struct {
		const char *name, *value;
		int cores;
	} cases[] = {{"STARPU_WORKERS_COREID", "0", 1},   {"STARPU_WORKERS_COREID", "1", 1},
	             {"STARPU_WORKERS_COREID", "1 0", 2}, {"STARPU_WORKERS_COREID", "0-1", 2},
	             {"STARPU_WORKERS_CPUID", "0,0", 1},  {"STARPU_WORKERS_COREID", "nonsense", 0},
	             {"STARPU_WORKERS_COREID", "", 0}};
	int cores = slp_team_cores_total();
	for (size_t i = 0; i < sizeof cases / sizeof *cases && cores > 1; i++) {
		setenv(cases[i].name, cases[i].value, 1);
		slp_cores_choose();
		int expected = cases[i].cores ? cases[i].cores : cores;
		CHECK_SAYING(slp_team_cores_total() == expected, "%s=%s: %d cores", cases[i].name, cases[i].value,
		             slp_team_cores_total());
		unsetenv(cases[i].name);
	}
	slp_cores_choose();
}

/* Processes that nobody has bound share the cores; those that are bound keep theirs. */
static void test_ranks(void)
{
	int cores = slp_team_cores_total(), sum = 0;
	setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2", 1);
	for (int rank = 0; rank < 2; rank++) {
		setenv("OMPI_COMM_WORLD_LOCAL_RANK", rank ? "1" : "0", 1);
		slp_cores_choose();
		sum += slp_team_cores_total();
	}
	CHECK_SAYING(sum == cores || cores == 1 || slp_cores()->allowed < slp_cores()->machine, "%d of %d cores", sum,
	             cores);
	unsetenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	unsetenv("OMPI_COMM_WORLD_LOCAL_RANK");
	slp_cores_choose();
}

/* ---- quotas ------------------------------------------------------------------------------------------------------ */

static void put(const char *path, const char *text)
{
	char name[PATH_MAX], *slash = name;
	slp_scratch_path(path + 1, name);
	while ((slash = strchr(slash + 1, '/'))) {
		*slash = '\0';
		mkdir(name, 0777);
		*slash = '/';
	}
	slp_write_scratch(path + 1, text, strlen(text));
}

static void check_quota(double expected)
{
	slp_cores_choose();
	CHECK_SAYING(slp_cores()->quota == expected, "%g instead of %g", slp_cores()->quota, expected);
}

static void test_quotas(void)
{
	static char root[PATH_MAX];
	slp_scratch_path("", root);
	slp_system_root = root;
	put("/proc/self/cgroup", "0::/a/b\n");
	check_quota(0);
	put("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
	check_quota(0);
	put("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
	check_quota(2.5);
	put("/sys/fs/cgroup/a/b/cpu.max", "300000 100000\n");
	check_quota(2.5);
	put("/sys/fs/cgroup/a/b/cpu.max", "50000 50000\n");
	check_quota(1);
	begin(1, NULL);
	CHECK_SAYING(slp_team_threads(0) == 1 && slp_team_cores(0) == slp_team_cores_total(), "%d threads",
	             slp_team_threads(0));
	sl_shutdown();
	put("/sys/fs/cgroup/a/b/cpu.max", "30000 100000\n"); /* less than a CPU is a thread all the same */
	check_quota(0.3);
	CHECK(slp_team_threads(0) == 1);
	static const char *const none[] = {"",           "\n",       "max\n",      "nonsense\n", "-1 100000\n",
	                                   "0 100000\n", "100000\n", "100000 0\n", "100000 x\n"};
	for (size_t i = 0; i < sizeof none / sizeof *none; i++) { /* of the outer group */
		put("/sys/fs/cgroup/a/b/cpu.max", none[i]);
		check_quota(2.5);
	}
	put("/proc/self/cgroup", "0::/not/seen/from/here\n");
	check_quota(0);
	put("/sys/fs/cgroup/cpu.max", "700000 100000\n");
	check_quota(7);
	put("/proc/self/cgroup", "6:cpuset:/\n4:cpu,cpuacct:/job\n1:name=systemd:/\n");
	check_quota(0);
	put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
	put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
	check_quota(0);
	put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
	put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	check_quota(4);
	put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "150000\n");
	check_quota(1.5);
	put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "");
	check_quota(4);
	put("/proc/self/cgroup", "");
	check_quota(0);
	put("/proc/self/cgroup", "nonsense\n::\n7:\n0::\n");
	check_quota(7);
	slp_system_root = "";
	slp_cores_choose();
}

static const struct slp_test tests[] = {
        {"masks", test_masks},
        {"loops", test_loops},
        {"helping", test_helping},
        {"bits", test_bits},
        {"threads", test_threads},
        {"variables", test_variables},
        {"reserved", test_reserved},
        {"named", test_named},
        {"ranks", test_ranks},
        {"quotas", test_quotas},
        {0},
};

/* As long as OpenMP binds the first thread itself, it is not known what the process may use; sl-info's test tries that. */
int main(int argc, char **argv)
{
	const struct slp_suite suites[] = {{.name = "teams",
	                                    .tests = tests,
	                                    .start = slp_scratch_make,
	                                    .stop = slp_scratch_remove,
	                                    .after = slp_end},
	                                   {0}};
	sched_getaffinity(0, sizeof all, &all);
	setenv("SL_FIXED_SUMS", "1", 0);
	return slp_test_main(argc, argv, suites);
}
