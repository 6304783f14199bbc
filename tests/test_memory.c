/* More main memory than there is: SL_ENOMEM that says how much was asked for and how much is there, at once, and what came
 * before is whole; where ulimit, a control group or StarPU is told less than the machine has. */
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "check.h"
#include "folder.h"
#include "../codelets/conv/conv2d.h"
#include "runtime/room.h"

enum { MIB = 1 << 20, MAX_HELD = 20000 };

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
static const bool may_limit = false; /* these take address space as they please */
#else
static const bool may_limit = true;
#endif

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The engine computes, and a tensor from before has its values. */
static void check_usable(sl_tensor *before)
{
	CHECK_ALL(before, 3);
	SL_SCOPE {
		CHECK_ALL(sl_add(before, before), 6);
		CHECK_ALL(sl_sum(sl_ones(SL_SHAPE(300, 300))), 90000);
	}
	CHECK_OK(sl_wait_all());
}

/* ---- what can never be ------------------------------------------------------------------------------------------- */

static void test_giants(void)
{
	SL_SCOPE {
		sl_tensor *before = sl_full(SL_SHAPE(1000), 3);
		for (int p = 34; p <= 58; p++) {
			char bytes[32];
			double start = now();
			snprintf(bytes, sizeof bytes, " %lld bytes", 4LL << p);
			CHECK_NULL(sl_zeros(SL_SHAPE(1LL << p)), SL_ENOMEM, "fill", bytes, "are there (");
			CHECK_SAYING(now() - start < 2, "2^%d: %g s", p, now() - start);
		}
		check_usable(before);
	}
}

static void test_giant_results(void)
{
	SL_SCOPE {
		sl_tensor *before = sl_full(SL_SHAPE(1000), 3), *column = sl_ones(SL_SHAPE(1 << 18, 1));
		sl_tensor *row = sl_ones(SL_SHAPE(1, 1 << 18));
		float value = 1;
		CHECK_NULL(sl_dot(column, row), SL_ENOMEM, "dot", "(262144, 262144)", " 274877906944 bytes");
		CHECK_NULL(sl_add(column, row), SL_ENOMEM, "add", "are there (");
		CHECK_NULL(sl_from(&value, SL_SHAPE(1LL << 40)), SL_ENOMEM, "sl_from", "are there (");
		check_usable(before);
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
		CHECK_STATUS(sl_plan_run(plan, in, 2, out), SL_ENOMEM, "sl_plan_run", "test_memory.c:", "are there (");
		sl_error_clear();
		check_usable(before);
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
			sl_tensor *x = sl_var("x", SL_VAR_SHAPE(sides[k], 1)), *y = sl_var("y", SL_VAR_SHAPE(1, sides[k]));
			sl_tensor *z = sl_add(x, y), *all = z;
			for (int i = 0; i < 31; i++) all = sl_add(all, z = sl_tanh(z));
			sl_graph *g = sl_graph_define(sl_sum(all));
			for (unsigned off = 0; off < 2; off++)
				CHECK_NULL(sl_compile(g, .off = off ? ~0u : 0), SL_ENOMEM, "more bytes than can be addressed");
			sl_graph_free(g);
		}
}

/* ---- what is no longer there ------------------------------------------------------------------------------------- */

/* Tensors are held until the call fails; what it says.  Returns how many there were. */
static int hold(sl_tensor **held, int64_t size, const char *whose)
{
	int n = 0;
	for (; n < MAX_HELD; n++) {
		sl_tensor *t = NULL;
		SL_SCOPE
			t = sl_retain(sl_full(SL_SHAPE(size), 3));
		held[n] = t;
		if (!t || (n % 64 == 63 && sl_wait_all() != SL_OK)) break;
	}
	enum sl_status s = sl_error() != SL_OK ? sl_error() : sl_wait_all();
	const char *text = sl_error_message();
	CHECK_SAYING(s == SL_ENOMEM || strstr(text, whose), "after %d: %s", n, text);
	CHECK_SAYING(strstr(text, whose) && strstr(text, "are there ("), "after %d: %s", n, text);
	while (sl_wait_all() != SL_OK) continue; /* each is told once */
	sl_error_clear();
	return n;
}

static void release(sl_tensor **held, int from, int to)
{
	for (int i = from; i < to; i++) sl_release(held[i]);
}

static void use_up(int64_t size, int least, const char *whose)
{
	static sl_tensor *held[MAX_HELD + 1];
	memset(held, 0, sizeof held);
	sl_tensor *before = NULL;
	SL_SCOPE
		before = sl_retain(sl_full(SL_SHAPE(1000), 3));
	int n = hold(held, size, whose);
	CHECK_SAYING(n >= least && n < MAX_HELD, "%d tensors of %lld elements", n, (long long)size);
	release(held, n / 2, n + 1);
	check_usable(before);
	int more = hold(held + n / 2, size, whose);
	CHECK_SAYING(more >= least / 4, "%d more after %d were let go", more, n - n / 2);
	release(held, 0, n / 2 + more + 1);
	sl_release(before);
}

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
	uint64_t heap = slp_room() - some;
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
	use_up(4 * MIB, 8, "ulimit -v");
	limit(0);
}

/* Small calls share tasks, and get their memory when these are submitted: what has none then is a fault. */
static void test_ulimit_small(void)
{
	if (!may_limit) return;
	warm_up();
	limit(100 * MIB);
	use_up(15000, 200, "ulimit -v");
	limit(0);
}

static void test_starpu_limit(void)
{
	slp_end();
	setenv("STARPU_LIMIT_CPU_MEM", "256", 1);
	slp_begin((struct sl_config){.teams = 1});
	unsetenv("STARPU_LIMIT_CPU_MEM");
	use_up(4 * MIB, 8, "StarPU");
	slp_end_well();
}

/* Scratch memory is each team's own, and is asked for again when there are more teams: a segment's dead results lie there. */
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

/* A step of a network whose kernels work in memory of their own. */
static enum sl_status train(sl_block *net, sl_trainer *trainer, int images)
{
	enum sl_status s = SL_OK;
	SL_SCOPE {
		sl_tensor *x = sl_uniform(SL_SHAPE(images, 1, 28, 28), 0, 1), *y = sl_zeros(SL_SHAPE(images), .dtype = SL_INT32);
		sl_tensor *loss = NULL;
		SL_RECORD
			loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
		if (loss && sl_backward(loss) == SL_OK) sl_trainer_step(trainer, images);
		s = sl_wait_all();
	}
	return s;
}

static void train_beyond(bool hybrid)
{
	slp_begin((struct sl_config){.teams = 1});
	sl_block *net = sl_sequential(sl_conv2d_layer(6, .kernel = {5}, .activation = SL_RELU), sl_max_pool2d_layer(2),
	                              sl_conv2d_layer(16, .kernel = {5}, .activation = SL_RELU), sl_max_pool2d_layer(2),
	                              sl_flatten_layer(), sl_dense(10));
	SL_SCOPE
		CHECK_OK(sl_initialize(net));
	if (hybrid) CHECK_OK(sl_hybridize(net));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	CHECK_OK(train(net, trainer, 8));
	limit(200 * MIB);
	int images = 16;
	enum sl_status s = SL_OK;
	while (s == SL_OK && images < 1 << 16) s = train(net, trainer, images *= 2);
	CHECK_SAYING(s == SL_ENOMEM && images > 64, "%d images: %s", images, sl_error_message());
	CHECK_SAYING(strstr(sl_error_message(), "are there (") && strstr(sl_error_message(), ".c:"), "%s", sl_error_message());
	limit(0);
	while (sl_wait_all() != SL_OK) continue;
	CHECK_OK(train(net, trainer, 8));
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
}

static void test_training(void)
{
	if (may_limit) train_beyond(false);
}

static void test_training_hybrid(void)
{
	if (may_limit) train_beyond(true);
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
			CHECK_NULL(sl_sigmoid(x), SL_ENOMEM, "sigmoid", "test_memory.c:", "for its gradient: no memory for another 419430400 bytes");
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
			CHECK_NULL(sl_forward(net, x), SL_ENOMEM, "sl_forward", "test_memory.c:", "with its backward pass: no memory");
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
		sl_tensor *x = sl_normal(SL_SHAPE(MANY, 4, 9, 9), 0, 1), *w = sl_normal(SL_SHAPE(6, 4 / groups, 3, 3), 0, 1);
		sl_tensor *b = sl_normal(SL_SHAPE(6), 0, 1), *scale = sl_normal(SL_SHAPE(MANY, 6, 9, 9), 0, 1), *y = NULL;
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
				CHECK_SAYING(false, "%d groups: number %d is %g, in parts %g", groups, i, whole[i], parts[i]);
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

/* What is there when the machine says so, and its first or second kind of control groups. */
static void test_reading(void)
{
	static char root[PATH_MAX];
	slp_scratch_path("", root);
	slp_room_root = root;
	put("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    4000 kB\nSwapFree:  96 kB\n");
	CHECK(slp_room() == 4096 * 1024);
	put("/proc/self/cgroup", "0::/a/b\n");
	put("/sys/fs/cgroup/a/b/memory.max", "max\n");
	put("/sys/fs/cgroup/a/memory.max", "3000000\n");
	put("/sys/fs/cgroup/a/memory.current", "2500000\n");
	CHECK_SAYING(slp_room() == 500000, "%zu", slp_room());
	put("/sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 100000\nactive_file 23000\nfile 7\n");
	CHECK_SAYING(slp_room() == 623000, "%zu", slp_room());
	put("/sys/fs/cgroup/a/b/memory.max", "1000\n");
	put("/sys/fs/cgroup/a/b/memory.current", "2000\n");
	CHECK(slp_room() == 0);
	put("/proc/self/cgroup", "0::/not/seen/from/here\n");
	CHECK(slp_room() == 4096 * 1024);
	put("/sys/fs/cgroup/memory.max", "70000\n");
	put("/sys/fs/cgroup/memory.current", "30000\n");
	CHECK_SAYING(slp_room() == 40000, "%zu", slp_room());
	put("/proc/self/cgroup", "5:cpu,memory:/c\n1:name=systemd:/\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "5\n");
	CHECK_SAYING(slp_room() == 4096 * 1024, "%zu", slp_room());
	put("/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1000000\n");
	put("/sys/fs/cgroup/memory/c/memory.usage_in_bytes", "900000\n");
	put("/sys/fs/cgroup/memory/c/memory.stat", "cache 1\ntotal_inactive_file 50000\ntotal_active_file 1000\n");
	CHECK_SAYING(slp_room() == 151000, "%zu", slp_room());
	slp_room_promise(100000);
	CHECK_SAYING(slp_room() == 51000, "%zu", slp_room());
	slp_room_promise(-100000);
	slp_room_root = "";
}

/* Asking reads again only where it could matter. */
static void test_cost(void)
{
	enum { TIMES = 1000000 };
	double start = now();
	for (int i = 0; i < TIMES; i++) slp_room_for(64);
	double each = (now() - start) / TIMES;
	printf("  %.1f ns to ask for a little\n", 1e9 * each);
	CHECK(each < 1e-6); /* 15 µs if it were read each time */
}

static const struct slp_test fitting[] = {
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
