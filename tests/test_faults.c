/* Mistakes and failing kernels: what becomes invalid, what is reported, and that all works again afterwards. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/task/segment.h"
#include "runtime/task/storage.h"

static void start(int bulk)
{
	slp_begin((struct sl_config){.teams = 1, .bulk = bulk});
	sl_stats_reset();
}

/* Lets what was issued run, without a sync point that would report. */
static void settle(void)
{
	slp_lock();
	slp_flush();
	slp_unlock();
	starpu_task_wait_for_all();
}

static sl_tensor *filled(int64_t n, float value)
{
	float *v = malloc((size_t)n * sizeof *v);
	for (int64_t i = 0; i < n; i++) v[i] = value;
	sl_tensor *t = sl_from(v, SL_SHAPE(n));
	free(v);
	return t;
}

/* ---- a graph in which one kernel fails --------------------------------------------------------------------------- */

/* A diamond, a chain behind it, and something that has nothing to do with them.  Inputs: -1 is x, -2 is z. */
enum { NODES = 8 };
static const struct {
	const char *op, *at;
	int a, b; /* b: NODES if there is none */
	double number, value;
} nodes[NODES] = {
        {"add_scalar", "node 0", -1, NODES, 1, 3},
        {"add_scalar", "node 1", 0, NODES, 10, 13},
        {"mul", "node 2", 0, 0, 0, 9},
        {"add", "node 3", 1, 2, 0, 22},
        {"add_scalar", "node 4", 3, NODES, 1, 23},
        {"mul_scalar", "node 5", 4, NODES, 2, 46},
        {"add_scalar", "node 6", -2, NODES, 5, 8},
        {"mul", "node 7", 6, 6, 0, 64},
};

static bool depends(int node, int on)
{
	if (node < 0 || node >= NODES) return false;
	return node == on || depends(nodes[node].a, on) || depends(nodes[node].b, on);
}

static sl_tensor *issue_node(int i, sl_tensor *const *t)
{
	sl_tensor *a = t[nodes[i].a], *b = nodes[i].b < NODES ? t[nodes[i].b] : NULL;
	if (!strcmp(nodes[i].op, "add")) return sl_add_at(nodes[i].at, a, b);
	if (!strcmp(nodes[i].op, "mul")) return sl_mul_at(nodes[i].at, a, b);
	if (!strcmp(nodes[i].op, "add_scalar")) return sl_add_scalar_at(nodes[i].at, a, nodes[i].number);
	return sl_mul_scalar_at(nodes[i].at, a, nodes[i].number);
}

/* Which node the message says has failed; NODES: none. */
static int failed_node(void)
{
	int i = 0;
	char text[64];
	for (; i < NODES; i++) {
		snprintf(text, sizeof text, "%s at %s failed on ", nodes[i].op, nodes[i].at);
		if (slp_message_count(text)) break;
	}
	return i;
}

static void check_node(int i, int failed, sl_tensor *t, int64_t n)
{
	if (failed == NODES || !depends(i, failed)) {
		CHECK_ALL(t, nodes[i].value);
		return;
	}
	float *v = malloc((size_t)n * sizeof *v);
	CHECK_STATUS(sl_read(t, v, (size_t)n * sizeof *v), SL_EKERNEL, nodes[failed].at, nodes[failed].op);
	CHECK(slp_message_count("told to fail") == 1);
	CHECK_STATUS(sl_wait(t), SL_EKERNEL, nodes[failed].at);
	CHECK_STATUS(sl_write(sl_rows(t, 0, n / 2), v, (size_t)n / 2 * sizeof *v), SL_EKERNEL, nodes[failed].at);
	for (int64_t k = 0; k < n; k++) v[k] = 5;
	CHECK_OK(sl_write(t, v, (size_t)n * sizeof *v));
	CHECK_ALL(sl_add_scalar(t, 1), 6);
	free(v);
}

/* What the sync point after the graph reports. */
static int check_report(int k, int bulk)
{
	enum sl_status s = sl_wait_all();
	CHECK(s == (k <= NODES ? SL_EKERNEL : SL_OK));
	CHECK(k > NODES || slp_message_count("told to fail") == 1);
	int failed = k <= NODES ? failed_node() : NODES;
	CHECK(k > NODES || failed < NODES);
	CHECK(bulk == 1 || failed == k - 1 || k > NODES); /* one segment runs in order */
	CHECK_OK(sl_wait_all());
	struct sl_stats st = slp_stats();
	uint64_t skipped = 0;
	for (int i = 0; i < NODES; i++) skipped += failed < NODES && i != failed && depends(i, failed);
	CHECK(st.faults == (k <= NODES));
	CHECK(st.skipped == skipped);
	return failed;
}

/* The k-th kernel fails.  With hold_all false, only the ends are held: what lies between may never get a buffer. */
static void fail_in_graph(int bulk, int k, bool hold_all, int64_t n)
{
	sl_tensor *slots[NODES + 2], **t = slots + 2;
	SL_SCOPE {
		t[-1] = filled(n, 2);
		t[-2] = filled(n, 3);
		settle();
		sl_stats_reset();
		atomic_store(&slp_fail_kernel, k);
		sl_scope inner;
		sl_scope_open(&inner);
		for (int i = 0; i < NODES; i++) {
			t[i] = issue_node(i, t);
			if (hold_all || i == 5 || i == 7) sl_retain(t[i]);
		}
		sl_scope_close(&inner);
		int failed = check_report(k, bulk);
		for (int i = 0; i < NODES; i++)
			if (hold_all || i == 5 || i == 7) check_node(i, failed, t[i], n), sl_release(t[i]);
		atomic_store(&slp_fail_kernel, 0);
	}
}

static void fail_each(int bulk)
{
	start(bulk);
	for (int k = 1; k <= NODES + 1; k++) {
		fail_in_graph(bulk, k, true, 4);
		fail_in_graph(bulk, k, false, 4);
	}
	CHECK_OK(sl_wait_all());
	slp_end();
}

static void test_fail_each(void)
{
	fail_each(1);
	fail_each(32);
}

static void test_fail_each_large(void)
{
	start(32);
	for (int k = 1; k <= NODES + 1; k++) fail_in_graph(1, k, true, 30000); /* too large to share a task */
	slp_end();
}

/* ---- other ways to be spoilt ------------------------------------------------------------------------------------- */

/* In place: the tensor and its views. */
static void test_in_place(void)
{
	start(32);
	SL_SCOPE {
		sl_tensor *x = filled(4, 1), *view = sl_rows(x, 1, 3), *y = filled(4, 2), *before = sl_add(x, y);
		atomic_store(&slp_fail_kernel, 2);
		sl_add_(x, y);
		sl_tensor *after = sl_add_scalar(view, 1);
		CHECK_STATUS(sl_wait_all(), SL_EKERNEL, "add at ");
		CHECK_STATUS(sl_wait(x), SL_EKERNEL, "add at ");
		CHECK_STATUS(sl_wait(view), SL_EKERNEL, "add at ");
		CHECK_STATUS(sl_wait(after), SL_EKERNEL, "add at ");
		CHECK_ALL(before, 3);
		CHECK_ALL(y, 2);
	}
	slp_end();
}

/* What overwrites all of a spoilt tensor mends it, in the same task or a later one; a part of it does not. */
static void test_mended(void)
{
	start(32);
	for (int i = 0; i < 8; i++)
		SL_SCOPE {
			bool later = i & 1, copies = i & 2, part = i & 4;
			sl_tensor *x = filled(4, 1), *y = filled(4, 2), *to = part ? sl_rows(x, 0, 2) : x;
			CHECK_OK(sl_wait_all());
			atomic_store(&slp_fail_kernel, 1);
			sl_add_(x, y);
			if (later) CHECK_STATUS(sl_wait(x), SL_EKERNEL, "add at ");
			sl_error_clear();
			if (copies) sl_copy_(to, part ? sl_rows(y, 0, 2) : y);
			else sl_fill_(to, 2);
			if (part) CHECK_STATUS(sl_wait(x), SL_EKERNEL, "add at ");
			else CHECK_ALL(x, 2);
			sl_error_clear();
			sl_wait_all();
			sl_error_clear();
		}
	slp_end();
}

/* A buffer is right again when it is recycled. */
static void test_recycled(void)
{
	start(1);
	SL_SCOPE {
		sl_tensor *x = filled(4, 1);
		for (int i = 0; i < 200; i++) {
			atomic_store(&slp_fail_kernel, 1);
			SL_SCOPE
				CHECK_STATUS(sl_wait(sl_add_scalar(x, 1)), SL_EKERNEL, "add_scalar");
			SL_SCOPE
				CHECK_ALL(sl_add_scalar(x, 1), 2);
			SL_SCOPE
				CHECK_ALL(filled(4, 7), 7);
		}
	}
	CHECK_OK(sl_wait_all());
	slp_end();
}

static void test_item_and_print(void)
{
	start(32);
	SL_SCOPE {
		sl_tensor *x = filled(1, 1);
		atomic_store(&slp_fail_kernel, 1);
		sl_tensor *y = sl_add_scalar(x, 1);
		CHECK(isnan(sl_item(y)));
		CHECK(sl_error() == SL_EKERNEL);
		CHECK_STATUS(sl_wait(x), SL_EKERNEL, "add_scalar"); /* what is pending, at the next sync point */
		CHECK_OK(sl_wait_all());
		char *text = NULL;
		size_t size = 0;
		FILE *file = open_memstream(&text, &size);
		CHECK_STATUS(sl_fprint(file, y), SL_EKERNEL, "add_scalar");
		fclose(file);
		CHECK(size == 0);
		free(text);
	}
	slp_end();
}

/* ---- what is reported -------------------------------------------------------------------------------------------- */

static sl_tensor *failing(const char *at, sl_tensor *x)
{
	atomic_store(&slp_fail_kernel, 1);
	sl_tensor *y = sl_add_scalar_at(at, x, 1);
	settle();
	return y;
}

static void test_several(void)
{
	start(1);
	SL_SCOPE {
		sl_tensor *x = filled(4, 1), *y = failing("one:1", x), *z = failing("two:2", x);
		failing("three:3", x);
		CHECK_OK(sl_wait(x)); /* has nothing to do with them */
		CHECK_STATUS(sl_wait(z), SL_EKERNEL, "one:1", "two:2", "three:3");
		CHECK(strstr(sl_error_message(), "two:2") < strstr(sl_error_message(), "one:1"));
		CHECK(slp_message_count("told to fail") == 3);
		CHECK(slp_message_count("\n") == 2); /* a line each */
		CHECK_OK(sl_wait_all());
		CHECK_STATUS(sl_wait(sl_add(z, y)), SL_EKERNEL, "two:2"); /* the first of its arguments */
		CHECK_OK(sl_wait_all());
	}
	slp_end();
}

static void test_place(void)
{
	start(32);
	SL_SCOPE {
		sl_tensor *x = filled(4, 1);
		atomic_store(&slp_fail_kernel, 1);
		sl_add_scalar(x, 1);
		const char *issued = SL_HERE;
		CHECK_STATUS(sl_wait_all(), SL_EKERNEL, "test_faults.c:");
		int line = atoi(strrchr(issued, ':') + 1) - 1;
		char here[64];
		snprintf(here, sizeof here, "test_faults.c:%d failed", line);
		CHECK(slp_message_count(here) == 1);
	}
	slp_end();
}

static void test_first_wins(void)
{
	start(1);
	SL_SCOPE {
		sl_tensor *x = filled(4, 1), *y = filled(3, 1);
		CHECK(!sl_add_at("first:1", x, y));
		CHECK(!sl_reshape_at("second:2", x, SL_SHAPE(9)));
		failing("third:3", x);
		CHECK(sl_error() == SL_ESHAPE);
		CHECK_STATUS(sl_wait_all(), SL_ESHAPE, "first:1", "third:3");
		CHECK(slp_message_count("second:2") == 0);
		CHECK(sl_error() == SL_OK);
		CHECK(strstr(sl_error_message(), "first:1") != NULL); /* still there to read */
		CHECK_OK(sl_wait_all());
		CHECK_NULL(sl_reshape(x, SL_SHAPE(9)), SL_ESHAPE, "(4,)", "(9,)");
		CHECK(sl_error_message()[0] == '\0');
	}
	slp_end();
}

/* A program's own error is like the library's. */
static void test_own_error(void)
{
	start(1);
	CHECK(sl_error_raise_at("own:1", SL_EFORMAT, "no such gate") == SL_EFORMAT);
	CHECK(sl_error_raise(SL_EINVAL, "second") == SL_EFORMAT);
	CHECK_STATUS(sl_wait_all(), SL_EFORMAT, "own:1", "no such gate");
	CHECK(sl_error_raise(SL_OK, NULL) == SL_EINVAL);
	sl_error_clear();
	slp_end();
}

/* More than the list of faults and a message hold: nothing breaks, and new ones are still reported. */
static void test_very_many(void)
{
	start(1);
	SL_SCOPE {
		sl_tensor *x = filled(4, 1);
		for (int i = 0; i < 10050; i++)
			SL_SCOPE
				failing("many:1", x);
		CHECK_STATUS(sl_wait_all(), SL_EKERNEL, "many:1");
		CHECK(strlen(sl_error_message()) < SLP_MESSAGE_MAX);
		CHECK_OK(sl_wait_all());
		sl_tensor *y = failing("late:1", x);
		CHECK_STATUS(sl_wait_all(), SL_EKERNEL, "late:1");
		CHECK_STATUS(sl_wait(y), SL_EKERNEL, "late:1");
		CHECK_OK(sl_wait_all());
	}
	slp_end();
}

static void test_null_chain(void)
{
	start(32);
	SL_SCOPE {
		sl_tensor *x = filled(4, 1);
		CHECK_NULL(sl_mul(sl_add_scalar(sl_add(NULL, x), 1), x), SL_EINVAL, "add", "argument a", "NULL");
		CHECK_NULL(sl_add(x, NULL), SL_EINVAL, "argument b");
		CHECK_NULL(sl_sum(NULL), SL_EINVAL, "sum", "NULL");
		CHECK_NULL(sl_activate(NULL, SL_IDENTITY), SL_EINVAL, "NULL");
		sl_tensor *y = sl_reshape(x, SL_SHAPE(5));
		CHECK(!sl_rows(sl_flatten(sl_add(sl_detach(y), x)), 0, 1));
		CHECK(isnan(sl_item(y)));
		float v[4];
		CHECK_STATUS(sl_read(y, v, sizeof v), SL_ESHAPE, "sl_reshape");
		CHECK(slp_message_count("NULL") == 0);
		CHECK_STATUS(sl_read(NULL, v, sizeof v), SL_EINVAL, "sl_read", SL_HERE);
		CHECK_STATUS(sl_wait(NULL), SL_EINVAL, "sl_wait", SL_HERE);
		sl_release(NULL);
		CHECK(!sl_retain(NULL));
		CHECK(sl_tensor_size(NULL) == 0 && sl_tensor_bytes(NULL) == 0);
	}
	CHECK_OK(sl_wait_all());
	slp_end();
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

struct worker {
	sl_tensor *shared;
	int number, wrong;
	enum sl_status status;
	char message[256];
};

/* One thread makes a mistake; both compute, on their own tensors and on a shared one. */
static void *work(void *arg)
{
	struct worker *w = arg;
	if (w->number == 1) sl_reshape_at("thread:1", w->shared, SL_SHAPE(99));
	for (int i = 0; i < 300; i++)
		SL_SCOPE {
			sl_tensor *x = filled(1, (float)i), *y = x;
			for (int k = 0; k < 20; k++) y = sl_add(y, w->shared);
			sl_tensor *z = sl_retain(sl_mul_scalar(y, w->number + 1));
			float v = -1;
			enum sl_status s = sl_read(z, &v, sizeof v);
			if (i == 0) w->status = s, snprintf(w->message, sizeof w->message, "%s", sl_error_message());
			w->wrong += v != (float)((i + 20) * (w->number + 1)) || (i && s != SL_OK);
			sl_release(z);
		}
	return NULL;
}

static void two_threads(int bulk)
{
	start(bulk);
	sl_tensor *one = filled(1, 1);
	struct worker w[2] = {{.shared = one, .number = 0}, {.shared = one, .number = 1}};
	pthread_t threads[2];
	for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &w[i]);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
	CHECK_SAYING(w[0].wrong == 0 && w[1].wrong == 0, "%d and %d wrong results", w[0].wrong, w[1].wrong);
	CHECK(w[0].status == SL_OK);
	CHECK(w[1].status == SL_ESHAPE);
	CHECK(strstr(w[1].message, "thread:1") != NULL);
	CHECK(sl_error() == SL_OK);
	sl_release(one);
	CHECK_OK(sl_wait_all());
	slp_end();
}

static void test_two_threads(void)
{
	two_threads(1);
	two_threads(32);
}

/* One thread lets go of what another one's flush puts into a task. */
static void *churn(void *arg)
{
	sl_tensor *one = arg;
	for (int i = 0; i < 8000; i++) {
		sl_tensor *kept = sl_add_scalar(one, i);
		for (int k = 0; k < 6; k++) sl_release(sl_add_scalar(kept, k));
		sl_release(kept);
	}
	return NULL;
}

/* What was given up twice would now be handed out twice. */
static void check_distinct(sl_tensor *one)
{
	enum { N = 500 };
	int wrong = 0;
	SL_SCOPE {
		sl_tensor *t[N];
		for (int i = 0; i < N; i++) t[i] = sl_add_scalar(one, i);
		for (int i = 0; i < N; i++) wrong += sl_item(t[i]) != i + 1;
	}
	CHECK_SAYING(wrong == 0, "%d of %d tensors share memory", wrong, N);
}

static void test_release_against_flush(void)
{
	start(3);
	sl_tensor *one = filled(1, 1);
	pthread_t threads[2];
	for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, churn, one);
	for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
	CHECK_OK(sl_wait_all());
	check_distinct(one);
	sl_release(one);
	slp_end();
}

static const struct slp_test kernel_tests[] = {
        {"each kernel fails once", test_fail_each},
        {"each kernel fails once, large", test_fail_each_large},
        {"in place", test_in_place},
        {"mended", test_mended},
        {"recycled buffers", test_recycled},
        {"item and print", test_item_and_print},
        {0},
};
static const struct slp_test message_tests[] = {
        {"several failures", test_several},
        {"place", test_place},
        {"a program's own error", test_own_error},
        {"the first mistake wins", test_first_wins},
        {"very many failures", test_very_many},
        {"NULL goes through", test_null_chain},
        {0},
};
static const struct slp_test thread_tests[] = {
        {"two threads", test_two_threads},
        {"release against flush", test_release_against_flush},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             {.name = "failing kernels", .tests = kernel_tests, .after = slp_end},
	                             {.name = "messages", .tests = message_tests, .after = slp_end},
	                             {.name = "threads", .tests = thread_tests, .after = slp_end},
	                             {0},
	                     });
}
