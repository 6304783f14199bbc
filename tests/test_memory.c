/* More main memory than there is: SL_ENOMEM that says how much was asked for and how much is there, at once, and what
 * came before is whole; where ulimit, a control group or StarPU sees less than the machine has. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <starling.h>

#include "out_of_memory.h"
#include "check.h"
#include "folder.h"
#include "../codelets/conv/conv2d_kernels.h"
#include "runtime/memory/cgroup.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/memory/pool.h"

enum { MIB = 1 << 20, SWAP = 96 << 10 };

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const bool may_limit = false; /* these take address space as they please */
#else
static const bool may_limit = true;
#endif

/* ---- what lasts -------------------------------------------------------------------------------------------------- */

static void read_often(sl_tensor *x, int times)
{
	for (int i = 0; i < times; i++)
		SL_SCOPE
			CHECK_STATUS(sl_wait(sl_add_scalar(x, i)), SL_OK);
}

/* Parameters of a network that only infers are read for days.  A StarPU with FxT kept a piece of each reader. */
static void test_lasting(void)
{
	SL_SCOPE {
		enum { READS = 20000 };
		sl_tensor *x = sl_ones(SL_SHAPE(4));
		read_often(x, READS / 10);
		size_t before = mallinfo2().uordblks;
		read_often(x, READS);
		CHECK(mallinfo2().uordblks < before + READS * 8);
	}
}

/* ---- what can never be ------------------------------------------------------------------------------------------- */

static void test_giants(void)
{
	slp_check_giants("");
}

static void test_giant_results(void)
{
	SL_SCOPE {
		sl_tensor *before = sl_full(SL_SHAPE(1000), 3), *column = sl_ones(SL_SHAPE(1 << 18, 1));
		sl_tensor *row = sl_ones(SL_SHAPE(1, 1 << 18));
		float value = 1;
		CHECK_NULL(sl_dot(column, row), SL_ENOMEM, "dot", "(262144, 262144)", " 274877906944 bytes");
		CHECK_NULL(sl_add(column, row), SL_ENOMEM, "add", " available (limit: ");
		CHECK_NULL(sl_from(&value, SL_SHAPE(1LL << 40)), SL_ENOMEM, "sl_from", " available (limit: ");
		slp_check_usable(before);
	}
}

/* A giant in the middle of a program that gives a scalar: nothing of it is run. */
static void test_giant_in_plan(void)
{
	SL_SCOPE {
		sl_tensor *before = sl_full(SL_SHAPE(1000), 3), *out[1];
		sl_graph *g = sl_graph_parse("input x: float32 (262144, 1)\ninput y: float32 (1, 262144)\n"
		                             "z = dot(x, y)\nw = relu(z)\ns = sum(w)\nreturn s");
		sl_plan *plan = sl_compile(g);
		CHECK_SAYING(plan, "%s", sl_error_message());
		sl_tensor *in[] = {sl_ones(SL_SHAPE(1 << 18, 1)), sl_ones(SL_SHAPE(1, 1 << 18))};
		CHECK_STATUS(sl_plan_run(plan, in, 2, out), SL_ENOMEM, "sl_plan_run",
		             "test_memory.c:", " available (limit: ");
		sl_error_clear();
		slp_check_usable(before);
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

/* Many giants: together they have more bytes than a size can say, and 32 of the second kind would need none. */
static void test_giants_in_plan(void)
{
	static const int64_t sides[] = {1 << 27, 1 << 28, 1 << 29};
	for (int k = 0; k < 3; k++)
		SL_SCOPE {
			sl_tensor *x = sl_var("x", SL_VAR_SHAPE(sides[k], 1)),
			          *y = sl_var("y", SL_VAR_SHAPE(1, sides[k]));
			sl_tensor *z = sl_add(x, y), *all = z;
			for (int i = 0; i < 31; i++) all = sl_add(all, z = sl_tanh(z));
			sl_graph *g = sl_graph_define(sl_sum(all));
			for (unsigned off = 0; off < 2; off++)
				CHECK_NULL(sl_compile(g, .off = off ? ~0u : 0), SL_ENOMEM,
				           "more bytes than can be addressed");
			sl_graph_free(g);
		}
}

/* ---- what is no longer there ------------------------------------------------------------------------------------- */

static uint64_t address_space(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	CHECK(f && fscanf(f, "%llu", &pages) == 1);
	if (f) fclose(f);
	return pages * 4096;
}

/* So much address space more, from now on; 0: as before. */
static void limit(uint64_t more)
{
	static struct rlimit before;
	struct rlimit r;
	if (more) getrlimit(RLIMIT_AS, &before);
	r = before;
	if (more) r.rlim_cur = address_space() + more;
	CHECK(setrlimit(RLIMIT_AS, &r) == 0);
}

/* So much room, whatever lies free in the heap. */
static void leave(uint64_t room)
{
	const uint64_t some = 1 << 30;
	malloc_trim(0);
	limit(some);
	uint64_t heap = slp_memory_available() - some;
	limit(0);
	CHECK_SAYING(heap < room, "%llu bytes are free in the heap", (unsigned long long)heap);
	limit(heap < room ? room - heap : 1);
}

static void warm_up(void)
{
	SL_SCOPE
		CHECK_ALL(sl_sum(sl_dot(sl_ones(SL_SHAPE(300, 300)), sl_ones(SL_SHAPE(300, 300)))), 27000000);
}

static void test_ulimit(void)
{
	if (!may_limit) return;
	warm_up();
	limit(300 * MIB);
	slp_use_up(4 * MIB, 8, "ulimit -v");
	limit(0);
}

/* Small calls share tasks, and get their memory when these are submitted: what has none then is a fault. */
static void test_ulimit_small(void)
{
	if (!may_limit) return;
	warm_up();
	limit(100 * MIB);
	slp_use_up(15000, 200, "ulimit -v");
	limit(0);
}

static void test_starpu_limit(void)
{
	slp_end();
	setenv("STARPU_LIMIT_CPU_MEM", "256", 1);
	slp_begin((struct sl_config){.teams = 1});
	unsetenv("STARPU_LIMIT_CPU_MEM");
	slp_use_up(4 * MIB, 8, "StarPU");
	slp_end_well();
}

/* Scratch memory is each team's own, and is asked for again when there are more teams: a segment's dead results lie
 * there. */
static void test_more_teams(void)
{
	for (int teams = 1; teams <= 2; teams++) {
		slp_begin((struct sl_config){.teams = teams});
		CHECK(slp_stats().scratch_bytes == 0);
		sl_tensor *sums[32];
		for (int i = 0; i < 32; i++)
			SL_SCOPE {
				sl_tensor *x = sl_full(SL_SHAPE(1000), i);
				for (int k = 0; k < 20; k++) x = sl_add(x, x);
				sums[i] = sl_retain(sl_sum(x));
			}
		for (int i = 0; i < 32; i++) {
			CHECK_ALL(sums[i], 1000.0 * i * (1 << 20));
			sl_release(sums[i]);
		}
		CHECK(slp_stats().scratch_bytes > 0);
		slp_end_well();
	}
}

static void limit_training(bool on)
{
	limit(on ? 200 * MIB : 0);
}

static void test_training(void)
{
	if (may_limit) slp_train_until_full(false, limit_training);
}

static void test_training_hybrid(void)
{
	if (may_limit) slp_train_until_full(true, limit_training);
}

/* Whether the gradient will have room is known when a call is recorded, before any work is done for it. */
static void test_gradients(void)
{
	if (!may_limit) return;
	slp_begin((struct sl_config){.teams = 1});
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(200 * MIB / 4));
		sl_attach_grad(x);
		CHECK_OK(sl_wait_all());
		leave(500 * MIB);
		uint64_t calls = slp_stats().ops;
		SL_RECORD
			CHECK_NULL(sl_sigmoid(x), SL_ENOMEM, "sigmoid",
			           "test_memory.c:", "for its gradient: out of memory: 419430400 bytes needed");
		CHECK(slp_stats().ops == calls);
		limit(0);
		CHECK_OK(sl_wait(sl_sigmoid(x)));
	}
	slp_end_well();
}

static void test_gradients_hybrid(void)
{
	if (!may_limit) return;
	slp_begin((struct sl_config){.teams = 1});
	sl_block *net = sl_sequential(sl_dense(20, .activation = SL_SIGMOID), sl_dense(10));
	SL_SCOPE
		CHECK_OK(sl_initialize(net));
	CHECK_OK(sl_hybridize(net));
	SL_SCOPE { /* 200 MB an activation */
		sl_tensor *x = sl_zeros(SL_SHAPE(2500000, 4));
		CHECK_OK(sl_wait(x));
		leave(600 * MIB);
		SL_RECORD
			CHECK_NULL(sl_forward(net, x), SL_ENOMEM, "sl_forward",
			           "test_memory.c:", "with its backward pass: out of memory");
		limit(0);
		CHECK_OK(sl_wait(sl_forward(net, x)));
	}
	sl_block_free(net);
	slp_end_well();
}

/* A convolution of many images and its gradients, as one list of numbers. */
enum { MANY = 40, NUMBERS = MANY * 6 * 9 * 9 + MANY * 4 * 9 * 9 + 6 * 4 * 9 + 6 };

static void convolve(int groups, float *numbers)
{
	SL_SCOPE {
		sl_seed(5);
		sl_tensor *x = sl_normal(SL_SHAPE(MANY, 4, 9, 9), 0, 1),
		          *w = sl_normal(SL_SHAPE(6, 4 / groups, 3, 3), 0, 1);
		sl_tensor *b = sl_normal(SL_SHAPE(6), 0, 1), *scale = sl_normal(SL_SHAPE(MANY, 6, 9, 9), 0, 1),
		          *y = NULL;
		sl_tensor *of[] = {x, w, b};
		for (int i = 0; i < 3; i++) sl_attach_grad(of[i]);
		sl_tensor *sum = NULL;
		SL_RECORD {
			y = sl_conv2d(x, w, b, .groups = groups, .pad = {1, 1});
			sum = sl_sum(sl_mul(y, scale));
		}
		CHECK_OK(sl_backward(sum));
		sl_tensor *all[] = {y, sl_grad(x), sl_grad(w), sl_grad(b)};
		for (int i = 0; i < 4; i++) {
			CHECK_OK(sl_read(all[i], numbers, sl_tensor_bytes(all[i])));
			numbers += sl_tensor_size(all[i]);
		}
	}
}

/* What a library reorders images in stays small: they are taken a part at a time. */
static void test_parts(void)
{
	static float whole[NUMBERS], parts[NUMBERS];
	size_t most = slp_conv_most_work;
	slp_begin((struct sl_config){.teams = 1});
	for (int groups = 1; groups <= 2; groups++) {
		convolve(groups, whole);
		slp_conv_most_work = 1;
		convolve(groups, parts);
		slp_conv_most_work = most;
		for (int i = 0; i < NUMBERS - (groups - 1) * 6 * 2 * 9; i++)
			if (!(fabsf(whole[i] - parts[i]) <= 1e-3f * (1 + fabsf(whole[i])))) {
				CHECK_SAYING(false, "%d groups: number %d is %g, in parts %g", groups, i, whole[i],
				             parts[i]);
				break;
			}
	}
	slp_end_well();
}

/* ---- what the system says ---------------------------------------------------------------------------------------- */

static void put(const char *path, const char *text)
{
	char folder[256];
	for (const char *end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
		char full[PATH_MAX];
		snprintf(folder, sizeof folder, "%.*s", (int)(end - path), path);
		mkdir(slp_scratch_path(folder, full), 0777);
	}
	slp_write_scratch(path, text, strlen(text));
}

/* Of group a, 3000000 bytes less 2500000 that are no files are left: more with swap, and less where it is slowed
 * down. */
static void test_reading_second(void)
{
	put("/sys/fs/cgroup/a/memory.swap.max", "50000\n");
	put("/sys/fs/cgroup/a/memory.swap.current", "20000\n");
	CHECK_SAYING(slp_memory_available() == 653000, "%zu", slp_memory_available());
	put("/sys/fs/cgroup/a/memory.swap.max", "max\n");
	CHECK_SAYING(slp_memory_available() == 623000 + SWAP, "%zu", slp_memory_available());
	put("/sys/fs/cgroup/a/memory.swap.max", "0\n");
	put("/sys/fs/cgroup/a/memory.high", "2900000\n");
	CHECK_SAYING(slp_memory_available() == 523000, "%zu", slp_memory_available());
	char text[160];
	CHECK(strstr(slp_memory_limit_text(1, text), "523000 available (limit: control group, memory.high)") != NULL);
	put("/sys/fs/cgroup/a/memory.high", "max\n");
	put("/sys/fs/cgroup/a/b/memory.high", "70000\n");
	put("/sys/fs/cgroup/a/b/memory.current", "30000\n");
	put("/sys/fs/cgroup/a/b/memory.swap.max", "0\n");
	put("/sys/fs/cgroup/a/b/memory.swap.current", "0\n");
	CHECK_SAYING(slp_memory_available() == 40000, "%zu", slp_memory_available());
	put("/sys/fs/cgroup/a/b/memory.high", "max\n");
}

/* A limit of memory and swap together, that of a group around it, and one that does not count it. */
static void test_reading_first(void)
{
	put("/sys/fs/cgroup/memory/c/memory.memsw.limit_in_bytes", "1000000\n");
	put("/sys/fs/cgroup/memory/c/memory.memsw.usage_in_bytes", "910000\n");
	CHECK_SAYING(slp_memory_available() == 141000, "%zu", slp_memory_available());
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1005\n");
	CHECK_SAYING(slp_memory_available() == 1000 + SWAP, "%zu", slp_memory_available());
	put("/sys/fs/cgroup/memory/memory.use_hierarchy", "0\n");
	CHECK_SAYING(slp_memory_available() == 141000, "%zu", slp_memory_available());
	put("/sys/fs/cgroup/memory/c/memory.memsw.usage_in_bytes", "900000\n");
}

/* What is there when the machine says so, and its first or second kind of control groups. */
static void test_reading(void)
{
	static char root[PATH_MAX];
	slp_scratch_path("", root);
	slp_system_root = root;
	put("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4000 kB\nSwapFree:  96 kB\n");
	CHECK(slp_memory_available() == 4096 * 1024);
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/sys/fs/cgroup/a/b/memory.max", "max\n");
	put("/sys/fs/cgroup/a/memory.max", "3000000\n");
	put("/sys/fs/cgroup/a/memory.swap.max", "0\n");
	put("/sys/fs/cgroup/a/memory.swap.current", "0\n");
	put("/sys/fs/cgroup/a/memory.current", "2500000\n");
	CHECK_SAYING(slp_memory_available() == 500000, "%zu", slp_memory_available());
	put("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\nactive_file 23000\nfile 7\n");
	CHECK_SAYING(slp_memory_available() == 623000, "%zu", slp_memory_available());
	test_reading_second();
	put("/sys/fs/cgroup/a/b/memory.swap.max", "0\n");
	put("/sys/fs/cgroup/a/b/memory.swap.current", "0\n");
	put("/sys/fs/cgroup/a/b/memory.max", "1000\n");
	put("/sys/fs/cgroup/a/b/memory.current", "2000\n");
	CHECK(slp_memory_available() == 0);
	put("/proc/self/cgroup", "0::/not/seen/from/here\n");
	CHECK(slp_memory_available() == 4096 * 1024);
	put("/sys/fs/cgroup/memory.max", "70000\n");
	put("/sys/fs/cgroup/memory.current", "30000\n");
	CHECK_SAYING(slp_memory_available() == 40000 + SWAP, "%zu",
	             slp_memory_available()); /* no limit of swap is known */
	put("/proc/self/cgroup", "5:cpu,memory:/c\n1:name=systemd:/\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
	CHECK_SAYING(slp_memory_available() == 4096 * 1024, "%zu", slp_memory_available());
	put("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1000000\n");
	put("/sys/fs/cgroup/memory/c/memory.usage_in_bytes", "900000\n");
	put("/sys/fs/cgroup/memory/c/memory.stat", "cache 1\ntotal_inactive_file 50000\ntotal_active_file 1000\n");
	CHECK_SAYING(slp_memory_available() == 151000 + SWAP, "%zu", slp_memory_available());
	test_reading_first();
	slp_memory_promise(100000);
	CHECK_SAYING(slp_memory_available() == 51000, "%zu", slp_memory_available());
	slp_memory_promise(-100000);
	slp_system_root = "";
}

static double thread_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Asking reads again only where it could matter. */
static void test_cost(void)
{
	enum { TIMES = 1000000 };
	double start = thread_seconds(); /* other processes may have the core for long */
	for (int i = 0; i < TIMES; i++) slp_memory_limit_allows(64);
	double each = (thread_seconds() - start) / TIMES;
	printf("  %.1f ns to ask for a little\n", 1e9 * each);
	CHECK(each < 1e-6); /* 15 µs if it were read each time */
}

/* Each size has the smallest class that holds it; at most a quarter is wasted, a 32nd of large sizes. */
static void test_classes(void)
{
	const size_t mib = (size_t)1 << 20;
	CHECK(slp_pool_class_bytes(slp_pool_class(49 * mib)) == 49 * mib);
	for (size_t bytes = 1, step = 1; bytes < (size_t)1 << 56; bytes += step) {
		int cls = slp_pool_class(bytes);
		size_t room = slp_pool_class_bytes(cls), part = bytes >= 4 * mib && bytes < mib << 14 ? 32 : 4;
		CHECK_SAYING(room >= bytes && slp_pool_class(room) == cls && slp_pool_class(room + 1) == cls + 1,
		             "%zu bytes: class %d of %zu", bytes, cls, room);
		CHECK_SAYING(room - bytes <= (bytes > 256 ? bytes / part : 64), "%zu bytes get %zu", bytes, room);
		step = bytes / 97 + 1;
	}
}

static const struct slp_test fitting[] = {
        {"classes", test_classes},
        {"reading often", test_lasting},
        {"giants", test_giants},
        {"giant results", test_giant_results},
        {"a giant in a plan", test_giant_in_plan},
        {"giants in a plan", test_giants_in_plan},
        {"ulimit", test_ulimit},
        {"ulimit, small calls", test_ulimit_small},
        {0},
};
static const struct slp_test other[] = {
        {"StarPU's limit", test_starpu_limit},
        {"more teams", test_more_teams},
        {"training", test_training},
        {"training, hybrid", test_training_hybrid},
        {"gradients", test_gradients},
        {"gradients, hybrid", test_gradients_hybrid},
        {"images in parts", test_parts},
        {"reading", test_reading},
        {"cost", test_cost},
        {0},
};

int main(int argc, char **argv)
{
	mallopt(M_MMAP_THRESHOLD, MIB); /* what is large goes back to the system when it is freed */
	static const struct slp_suite suites[] = {
	        {"memory", fitting, slp_start_engine, slp_stop_engine, NULL, NULL},
	        {"limits", other, slp_scratch_make, slp_scratch_remove, NULL, slp_end},
	        {0}};
	return slp_test_main(argc, argv, suites);
}
