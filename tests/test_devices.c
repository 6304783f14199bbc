/* Devices: their names, what is not there, CPU teams side by side, copies between them, memory of the caller. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <starling.h>

#include "check.h"
#include "gate.h"
#include "runtime/engine.h"
#include "runtime/memory/runahead.h"
#include "runtime/task/segment.h"
#include "runtime/task/storage.h"

static void start(int teams)
{
	slp_begin((struct sl_config){.teams = teams, .bulk = 4});
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* A list of devices, and what it means, as names again; NULL: malformed. */
static const struct {
	const char *text, *means;
} lists[] = {
        {"cpu", "cpu"},
        {"cpu:0", "cpu:0"},
        {"cpu:12", "cpu:12"},
        {"gpu", "gpu"},
        {"gpu:0-3", "gpu:0,gpu:1,gpu:2,gpu:3"},
        {"gpu:2-2", "gpu:2"},
        {"auto", "auto"},
        {"gpu:0-1,cpu", "gpu:0,gpu:1,cpu"},
        {"cpu:1,cpu:0,auto,gpu:7", "cpu:1,cpu:0,auto,gpu:7"},
        {"cpu:9999", "cpu:9999"},
        {"", NULL},
        {NULL, NULL},
        {",", NULL},
        {"cpu,", NULL},
        {",cpu", NULL},
        {"cpu:", NULL},
        {"cpu:x", NULL},
        {"cpu:-1", NULL},
        {"cpu:1-", NULL},
        {"cpu:3-1", NULL},
        {"cpu:1-2-3", NULL},
        {"cpu: 1", NULL},
        {" cpu", NULL},
        {"cpu ", NULL},
        {"cpux", NULL},
        {"CPU", NULL},
        {"auto:0", NULL},
        {"default", NULL},
        {"tpu", NULL},
        {"cpu;gpu", NULL},
        {"cpu:10000", NULL},
        {"cpu:99999999999999999999", NULL},
        {"gpu:0-99999999999999999999", NULL},
};

static void check_list(const char *text, const char *means)
{
	sl_device d[8];
	char got[128] = "", name[SL_DEVICE_NAME_MAX];
	int n = sl_device_parse(text, d, 8);
	if (!means) {
		CHECK_SAYING(n == 0, "\"%s\" was taken for %d devices", text ? text : "NULL", n);
		CHECK_STATUS(sl_error(), SL_EINVAL, "sl_device_parse", text ? text : "(null)", "gpu:0-3");
		sl_error_clear();
		return;
	}
	for (int i = 0; i < n; i++) {
		if (i) strcat(got, ",");
		strcat(got, sl_device_name(d[i], name));
	}
	CHECK_SAYING(!strcmp(got, means), "\"%s\" means \"%s\" instead of \"%s\"", text, got, means);
}

static void test_parse(void)
{
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) check_list(lists[i].text, lists[i].means);
	sl_device d[3] = {{0}};
	CHECK(sl_device_parse("cpu:0-1000", d, 2) == 1001); /* how many there are, not how many fit */
	CHECK(sl_device_equal(d[1], sl_cpu(1)) && d[2].kind == SL_DEVICE_DEFAULT);
	CHECK(sl_device_parse("cpu", NULL, 0) == 1);
	CHECK(!sl_is_initialized());
}

static void test_equal(void)
{
	CHECK(sl_device_equal(sl_auto(), (sl_device){SL_DEVICE_AUTO, 3}));
	CHECK(sl_device_equal(sl_cpu(1), sl_cpu(1)));
	CHECK(!sl_device_equal(sl_cpu(1), sl_cpu(0)));
	CHECK(!sl_device_equal(sl_cpu(0), sl_gpu(0)));
	CHECK(!sl_device_equal(sl_cpu(-1), sl_auto()));
}

static void test_absent(void)
{
	start(2);
	char gpu[16], counts[64];
	int gpus = sl_device_count(SL_DEVICE_GPU);
	sl_device_name(sl_gpu(gpus), gpu);
	snprintf(counts, sizeof counts, "2 cpu and %d gpu", gpus);
	CHECK_NULL(sl_zeros(SL_SHAPE(2), .device = sl_cpu(2)), SL_EDEVICE, "cpu:2", counts, "sl_config.teams",
	           "STARPU_NCPU");
	CHECK_NULL(sl_zeros(SL_SHAPE(2), .device = sl_gpu(gpus)), SL_EDEVICE, gpu, counts, "CUDA", "STARPU_NCUDA");
	float v[2] = {1, 2};
	CHECK_NULL(sl_from(v, SL_SHAPE(2), .device = sl_cpu(99)), SL_EDEVICE, "cpu:99");
	CHECK_NULL(sl_adopt(v, SL_SHAPE(2), NULL, NULL, .device = sl_cpu(99)), SL_EDEVICE, "cpu:99");
	CHECK_STATUS(sl_device_default(sl_cpu(7)), SL_EDEVICE, "cpu:7", SL_HERE);
	sl_error_clear();
	SL_SCOPE
		CHECK_NULL(sl_copy_to(sl_from(v, SL_SHAPE(2)), sl_gpu(gpus)), SL_EDEVICE, gpu);
	slp_end();
}

static void test_default(void)
{
	start(2);
	SL_SCOPE {
		CHECK(sl_tensor_device(sl_zeros(SL_SHAPE(2))).kind == SL_DEVICE_AUTO);
		CHECK_OK(sl_device_default(sl_cpu(1)));
		CHECK(sl_device_equal(sl_tensor_device(sl_zeros(SL_SHAPE(2))), sl_cpu(1)));
		CHECK(sl_device_equal(sl_tensor_device(sl_zeros(SL_SHAPE(2), .device = sl_cpu(0))), sl_cpu(0)));
		CHECK_OK(sl_device_default(((sl_device){SL_DEVICE_DEFAULT, 0})));
		CHECK(sl_tensor_device(sl_zeros(SL_SHAPE(2))).kind == SL_DEVICE_AUTO);
	}
	slp_end();
}

/* ---- two teams --------------------------------------------------------------------------------------------------- */

/* The name of the worker that runs an operation on a device: the message names it when the operation fails. */
static void worker_of(sl_device device, char name[64])
{
	name[0] = '\0';
	SL_SCOPE {
		atomic_store(&slp_fail_kernel, 1);
		sl_wait(sl_ones(SL_SHAPE(2), .device = device));
		const char *p = strstr(sl_error_message(), "failed on ");
		if (p) sscanf(p, "failed on %63[^:]", name);
	}
	sl_error_clear();
}

static void test_workers(void)
{
	start(2);
	CHECK(sl_device_count(SL_DEVICE_CPU) == 2);
	char a[64], b[64], again[64];
	worker_of(sl_cpu(0), a);
	worker_of(sl_cpu(1), b);
	CHECK_SAYING(a[0] && b[0] && strcmp(a, b), "cpu:0 ran on %s, cpu:1 on %s", a, b);
	for (int i = 0; i < 20; i++) {
		worker_of(sl_cpu(0), again);
		CHECK(!strcmp(a, again));
		worker_of(sl_cpu(1), again);
		CHECK(!strcmp(b, again));
	}
	slp_end();
}

/* Whether so many tasks are left after a while: a task counts a little longer than its results need. */
static bool pending_becomes(int n)
{
	double deadline = sl_time() + SLP_PATIENCE;
	while (slp_runahead_pending() != n && sl_time() < deadline) usleep(1000);
	return slp_runahead_pending() == n;
}

/* With one team held up, the other goes on. */
static void test_side_by_side(void)
{
	start(2);
	for (int held = 0; held < 2; held++)
		SL_SCOPE {
			slp_gate_close(held);
			sl_tensor *waits = sl_add_scalar(sl_ones(SL_SHAPE(3), .device = sl_cpu(held)), 1);
			sl_tensor *runs = sl_add_scalar(sl_ones(SL_SHAPE(3), .device = sl_cpu(1 - held)), 2);
			sl_tensor *either = sl_add_scalar(sl_ones(SL_SHAPE(3), .device = sl_cpu(-1)), 3);
			CHECK_ALL(runs, 3);
			CHECK_ALL(either, 4);
			CHECK(pending_becomes(1));
			slp_gate_open();
			CHECK_ALL(waits, 2);
		}
	slp_end();
}

/* Opens the gate in the end, however long the main thread waits; returns whether it had to. */
static void *watch(void *done)
{
	for (int i = 0; i < 100 * SLP_PATIENCE && !atomic_load((atomic_bool *)done); i++) usleep(10000);
	bool late = !atomic_load((atomic_bool *)done);
	slp_gate_open();
	return late ? done : NULL;
}

/* Whether the work ends while cpu:0 is held up. */
static bool ends_beside(void (*work)(void))
{
	pthread_t watcher;
	atomic_bool done = false;
	void *late;
	slp_gate_close(0);
	pthread_create(&watcher, NULL, watch, &done);
	work();
	atomic_store(&done, true);
	pthread_join(watcher, &late);
	return !late;
}

/* As much memory as may wait for tasks of cpu:0, then memory on cpu:1. */
static void fill_both(void)
{
	for (int i = 0; i < 8; i++)
		SL_SCOPE
			sl_add_scalar(sl_ones(SL_SHAPE(1 << 18), .device = sl_cpu(0)), 1);
	for (int i = 0; i < 8; i++)
		SL_SCOPE
			CHECK(sl_item(sl_mean(sl_ones(SL_SHAPE(1 << (12 + i)), .device = sl_cpu(1)))) == 1);
}

static void test_memory_side_by_side(void)
{
	slp_begin((struct sl_config){.teams = 2, .bulk = 1, .runahead_bytes = 8 << 20});
	CHECK(ends_beside(fill_both));
	slp_end();
}

static void run_program(void)
{
	SL_SCOPE {
		sl_tensor *out = NULL;
		sl_graph *g = sl_graph_parse("a = fill(shape=(3,), value=2)\nb = add(a, 1)\nreturn b");
		sl_plan *plan = sl_compile(g, .device = sl_cpu(1));
		CHECK_OK(sl_plan_run(plan, NULL, 0, &out));
		CHECK_ALL(out, 3);
		sl_plan_free(plan);
		sl_graph_free(g);
	}
}

/* What a program for cpu:1 computes beforehand is computed there. */
static void test_constants_side_by_side(void)
{
	start(2);
	CHECK_OK(sl_device_default(sl_cpu(0)));
	CHECK(ends_beside(run_program));
	slp_end();
}

static void test_mixed(void)
{
	start(2);
	SL_SCOPE {
		sl_tensor *a = sl_ones(SL_SHAPE(3), .device = sl_cpu(0)),
		          *b = sl_ones(SL_SHAPE(3), .device = sl_cpu(1));
		sl_tensor *free = sl_ones(SL_SHAPE(3));
		CHECK_NULL(sl_add(a, b), SL_EDEVICE, "add", "argument b", "cpu:1", "cpu:0", "sl_copy_to");
		CHECK_NULL(sl_add_(a, b), SL_EDEVICE, "add", "cpu:1");
		CHECK(sl_device_equal(sl_tensor_device(sl_add(a, free)), sl_cpu(0)));
		CHECK(sl_device_equal(sl_tensor_device(sl_add(free, b)), sl_cpu(1)));
		CHECK(sl_tensor_device(sl_add(free, free)).kind == SL_DEVICE_AUTO);
		CHECK_ALL(sl_add(free, b), 2);
		CHECK_ALL(sl_add(sl_copy_to(a, sl_cpu(1)), b), 2);
		CHECK_ALL(sl_add_(free, a), 2);
	}
	slp_end();
}

/* CPU devices of any number: their names are their own, their workers those of the teams. */
static void test_named(void)
{
	for (int teams = 1; teams <= 2; teams++) {
		start(teams);
		char name[SL_DEVICE_NAME_MAX], used[64], wanted[64];
		sl_device seventh = sl_cpu_named(7);
		CHECK(!strcmp(sl_device_name(seventh, name), "cpu:7") && sl_device_number(seventh) == 7);
		CHECK(sl_device_number(sl_cpu(1)) == 1 && sl_device_number(sl_auto()) == -1);
		CHECK(sl_device_equal(sl_cpu_named(-1), sl_cpu(-1)));
		worker_of(seventh, used);
		worker_of(sl_cpu(7 % teams), wanted);
		CHECK(!strcmp(used, wanted));
		SL_SCOPE {
			sl_tensor *a = sl_ones(SL_SHAPE(3), .device = seventh),
			          *b = sl_ones(SL_SHAPE(3), .device = sl_cpu(0));
			sl_attach_grad(a);
			sl_tensor *y = NULL;
			SL_RECORD
				y = sl_mul(a, sl_add(a, sl_copy_to(b, seventh)));
			CHECK(sl_device_equal(sl_tensor_device(y), seventh));
			CHECK_OK(sl_backward(y));
			CHECK_ALL(sl_grad(a), 3);
			CHECK(sl_device_equal(sl_tensor_device(sl_grad(a)), seventh));
			CHECK(sl_device_equal(sl_tensor_device(sl_add(a, b)), seventh));
			CHECK(sl_device_equal(sl_tensor_device(sl_add(b, a)), sl_cpu(0)));
			CHECK_ALL(sl_add_(b, a), 2);
			CHECK_NULL(sl_ones(SL_SHAPE(3), .device = sl_cpu(7)), SL_EDEVICE, "cpu:7 does not exist");
			CHECK_ALL(sl_copy_to(y, sl_cpu(0)), 2);
		}
		slp_end();
	}
}

static void test_copy_to(void)
{
	start(2);
	SL_SCOPE {
		sl_tensor *a = sl_ones(SL_SHAPE(2, 3), .device = sl_cpu(0)), *b = sl_copy_to(a, sl_cpu(1));
		CHECK(sl_device_equal(sl_tensor_device(b), sl_cpu(1)));
		CHECK(sl_shape_equal(sl_tensor_shape(b), SL_SHAPE(2, 3)));
		sl_add_scalar_(a, 5); /* the copy is of what was there */
		CHECK_ALL(b, 1);
		CHECK_ALL(a, 6);
		sl_tensor *same = sl_copy_to(a, sl_cpu(0));
		sl_add_scalar_(same, 1);
		CHECK_ALL(a, 6);
		CHECK(sl_tensor_device(sl_copy_to(a, sl_auto())).kind == SL_DEVICE_AUTO);
		CHECK_ALL(sl_copy_to(sl_rows(a, 1, 2), sl_cpu(1)), 6);
		CHECK_NULL(sl_copy_to(NULL, sl_cpu(0)), SL_EINVAL, "sl_copy_to");
		int32_t big = 2147483647;
		int32_t got = 0;
		CHECK_OK(sl_read(sl_copy_to(sl_from(&big, SL_SCALAR, .dtype = SL_INT32), sl_cpu(1)), &got, sizeof got));
		CHECK(got == big); /* not by way of a float */
	}
	slp_end();
}

/* ---- memory of the caller ---------------------------------------------------------------------------------------- */

struct adopted {
	float values[4];
	int calls;
	void *data;
	float seen; /* when it was handed back */
};

static void hand_back(void *data, void *arg)
{
	struct adopted *a = arg;
	a->calls++;
	a->data = data;
	a->seen = ((float *)data)[0];
}

static void test_adopt(void)
{
	start(1);
	struct adopted a = {.values = {1, 2, 3, 4}};
	slp_gate_close(0);
	sl_tensor *view;
	SL_SCOPE {
		sl_tensor *t = sl_adopt(a.values, SL_SHAPE(4), hand_back, &a);
		view = sl_retain(sl_rows(t, 1, 2));
		sl_add_scalar_(t, 10);
	}
	sl_release(sl_ones(SL_SHAPE(2)));
	CHECK(a.calls == 0); /* a view holds it */
	sl_tensor *y = sl_add_scalar(view, 1);
	sl_release(view);
	slp_lock();
	slp_flush();
	slp_unlock();
	sl_release(sl_ones(SL_SHAPE(2)));
	CHECK(a.calls == 0); /* operations use it */
	slp_gate_open();
	CHECK_ALL(y, 13);
	sl_release(y);
	CHECK_OK(sl_wait_all());
	CHECK(a.calls == 1);
	CHECK(a.data == a.values && a.seen == 11 && a.values[3] == 14);
	slp_end();
	CHECK(a.calls == 1);
}

/* Values that are only read stay, and reading from adopted memory gives them. */
static void test_adopt_read(void)
{
	start(1);
	struct adopted a = {.values = {1, 2, 3, 4}};
	SL_SCOPE {
		sl_tensor *t = sl_adopt(a.values, SL_SHAPE(2, 2), hand_back, &a);
		CHECK_VALUES(t, 1, 2, 3, 4);
		CHECK_VALUES(sl_mul(t, t), 1, 4, 9, 16);
		CHECK_OK(sl_write(t, ((float[]){5, 6, 7, 8}), sizeof a.values));
		CHECK_VALUES(sl_add(t, t), 10, 12, 14, 16);
	}
	CHECK_OK(sl_wait_all());
	CHECK(a.calls == 1 && a.values[0] == 5);
	slp_end();
}

/* At the end of the engine all memory goes back, also what tensors still hold. */
static void test_adopt_shutdown(void)
{
	start(1);
	struct adopted a = {.values = {1, 2, 3, 4}}, b = a, c = a;
	sl_tensor *held = sl_adopt(a.values, SL_SHAPE(4), hand_back, &a);
	sl_add_scalar_(held, 1);
	sl_tensor *dropped = sl_adopt(b.values, SL_SHAPE(4), hand_back, &b);
	sl_add_scalar_(dropped, 2);
	sl_release(dropped);
	sl_tensor *silent = sl_adopt(c.values, SL_SHAPE(4), NULL, NULL);
	sl_add_scalar_(silent, 3);
	slp_end();
	CHECK(a.calls == 1 && a.values[0] == 2 && a.seen == 2);
	CHECK(b.calls == 1 && b.values[0] == 3);
	CHECK(c.calls == 0 && c.values[0] == 4);
	sl_release(held);
	sl_release(silent);
	CHECK(a.calls == 1);
}

static void test_adopt_rejected(void)
{
	start(1);
	struct adopted a = {.values = {1, 2, 3, 4}};
	CHECK_NULL(sl_adopt(a.values, SL_SHAPE(0, 4), hand_back, &a), SL_ESHAPE, "sl_adopt");
	CHECK_NULL(sl_adopt(a.values, SL_SHAPE(-4), hand_back, &a), SL_ESHAPE, "sl_adopt");
	CHECK_NULL(sl_adopt(NULL, SL_SHAPE(4), hand_back, &a), SL_EINVAL, "sl_adopt", "NULL");
	CHECK_NULL(sl_adopt(a.values, SL_SHAPE(4), hand_back, &a, .dtype = 99), SL_EDTYPE, "sl_adopt", "99");
	slp_end();
	CHECK(a.calls == 0);
}

/* Many, from two threads: each is handed back once. */
static void *adopt_many(void *arg)
{
	struct adopted *a = arg;
	for (int i = 0; i < 200; i++)
		SL_SCOPE
			sl_add_scalar_(sl_adopt(a[i].values, SL_SHAPE(4), hand_back, &a[i]), 1);
	return NULL;
}

static void test_adopt_threads(void)
{
	static struct adopted a[2][200];
	memset(a, 0, sizeof a);
	start(1);
	pthread_t threads[2];
	for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, adopt_many, a[i]);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
	slp_end();
	int once = 0, right = 0;
	for (int i = 0; i < 400; i++)
		once += a[i / 200][i % 200].calls == 1, right += a[i / 200][i % 200].values[3] == 1;
	CHECK_SAYING(once == 400 && right == 400, "%d of 400 handed back once, %d right", once, right);
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct slp_test name_tests[] = {
        {"lists", test_parse}, {"equal", test_equal}, {"absent", test_absent}, {"default", test_default}, {0},
};
static const struct slp_test team_tests[] = {
        {"workers", test_workers},
        {"side by side", test_side_by_side},
        {"memory side by side", test_memory_side_by_side},
        {"constants side by side", test_constants_side_by_side},
        {"mixed", test_mixed},
        {"named", test_named},
        {"copy_to", test_copy_to},
        {0},
};
static const struct slp_test adopt_tests[] = {
        {"handed back once", test_adopt},  {"values", test_adopt_read},         {"at shutdown", test_adopt_shutdown},
        {"rejected", test_adopt_rejected}, {"two threads", test_adopt_threads}, {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             {.name = "names", .tests = name_tests, .after = slp_end},
	                             {.name = "two teams", .tests = team_tests, .after = slp_end},
	                             {.name = "adopted memory", .tests = adopt_tests, .after = slp_end},
	                             {0},
	                     });
}
