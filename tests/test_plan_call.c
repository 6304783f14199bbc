/* Programs in the calling thread, on plain memory: values, what is written, what is refused. */
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <string.h>
#include <starling.h>
#include <starling/own.h>

#include "check.h"
#include "runtime/device/team.h"
#include "runtime/observe/watch.h"
#include "runtime/task/execute.h"

static sl_plan *compiled(const char *text)
{
	sl_graph *g = sl_graph_parse(text);
	sl_plan *plan = sl_compile(g, .training = true);
	CHECK(plan != NULL);
	sl_graph_free(g);
	return plan;
}

static bool same(const float *got, int n, const float *expected)
{
	bool ok = true;
	for (int i = 0; i < n; i++) {
		ok = ok && fabsf(got[i] - expected[i]) <= 1e-5f * fmaxf(1, fabsf(expected[i]));
		CHECK_SAYING(ok, "element %d is %g, not %g", i, got[i], expected[i]);
	}
	return ok;
}

/* Several operations and results, one of them an input, one a view; small and large units. */
static void test_values(void)
{
	float x[6] = {1, -2, 3, -4, 5, 6}, w[6] = {1, 0, 0, 1, 1, 1}, y[4], s[1], same_x[6], flat[6];
	sl_plan *plan = compiled("input x: float32 (2, 3)\ninput w: float32 (3, 2)\ny = dot(relu(x), w)\n"
	                         "s = sum(y)\nv = reshape(x, shape=(6,))\nreturn y, s, x, v");
	CHECK(sl_plan_is_small(plan));
	CHECK_OK(sl_plan_call(plan, SL_ARRAY(void *, x, w), 2, NULL, 0, SL_ARRAY(void *, y, s, same_x, flat)));
	same(y, 4, (float[]){4, 3, 6, 11});
	same(s, 1, (float[]){24});
	CHECK(!memcmp(same_x, x, sizeof x) && !memcmp(flat, x, sizeof x));
	sl_plan_free(plan);
}

/* Memory for more than fits on the stack, at addresses that are no multiples of 64. */
static void test_larger(void)
{
	enum { N = 20000 };
	static float x[N + 1], y[N + 1];
	for (int i = 0; i < N; i++) x[i + 1] = (float)(i % 100) / 100;
	sl_plan *plan = compiled("input x: float32 (200, 100)\na = cumsum(x, axis=1)\nb = softmax(a, axis=1)\n"
	                         "c = transpose(cumsum(b, axis=1))\nreturn transpose(add(c, 1))");
	CHECK(sl_plan_is_small(plan));
	CHECK_OK(sl_plan_call(plan, SL_ARRAY(void *, x + 1), 1, NULL, 0, SL_ARRAY(void *, y + 1)));
	SL_SCOPE {
		sl_tensor *r, *in = sl_from(x + 1, SL_SHAPE(200, 100));
		float expected[N];
		CHECK_OK(sl_plan_run(plan, &in, 1, &r));
		CHECK_OK(sl_read(r, expected, sizeof expected));
		same(y + 1, N, expected);
		same(y + 100, 1, (float[]){2});
	}
	sl_plan_free(plan);
}

/* Inputs are written where they are; numbers of updates are those of the call. */
static void test_written(void)
{
	float w[2] = {8, 4}, d[2] = {1, 2}, y[2];
	sl_plan *plan = compiled("input w: float32 (2,)\ninput d: float32 (2,)\nsgd(w, d, lr=1)\nreturn d");
	CHECK_OK(sl_plan_call(plan, SL_ARRAY(void *, w, d), 2, NULL, 0, SL_ARRAY(void *, y)));
	same(w, 2, (float[]){7, 2});
	struct sl_plan_number numbers[] = {{"lr", 0.5}, {"rescale", 4}};
	CHECK_OK(sl_plan_call(plan, SL_ARRAY(void *, w, d), 2, numbers, 2, SL_ARRAY(void *, y)));
	same(w, 2, (float[]){5, -2});
	same(y, 2, d);
	struct sl_plan_number wrong = {"momentum", 1};
	CHECK_STATUS(sl_plan_call(plan, SL_ARRAY(void *, w, d), 2, &wrong, 1, SL_ARRAY(void *, y)), SL_EINVAL,
	             "sl_plan_call", "momentum");
	sl_plan_free(plan);
	plan = compiled("input w: float32 (2,)\ninput x: float32 (2,)\nold = mul_scalar(w, value=1)\nassign(w, x)\n"
	                "return add(w, old)");
	CHECK_OK(sl_plan_call(plan, SL_ARRAY(void *, w, d), 2, NULL, 0, SL_ARRAY(void *, y)));
	same(w, 2, d);
	same(y, 2, (float[]){6, 0});
	sl_plan_free(plan);
}

/* Neither call, nor be called. */
static void check_refused(sl_plan *plan, const char *what)
{
	float x[4] = {1, 2, 3, 4}, y[4];
	CHECK_SAYING(plan && !sl_plan_is_small(plan) && !sl_plan_may_call(plan), "may be called: %s", what);
	CHECK_STATUS(sl_plan_call(plan, SL_ARRAY(void *, x), 1, NULL, 0, SL_ARRAY(void *, y)), SL_EUNSUPPORTED,
	             "sl_plan_run");
	sl_plan_free(plan);
}

static sl_plan *defined(sl_tensor *y)
{
	sl_graph *g = sl_graph_define(y);
	sl_plan *plan = sl_compile(g);
	CHECK(plan != NULL);
	sl_graph_free(g);
	return plan;
}

static void test_needs_tasks(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_var("x", SL_VAR_SHAPE(4)), *y;
		SL_TRAINING
			y = sl_dropout(x, 0.5);
		check_refused(defined(y), "random numbers");
		check_refused(defined(sl_add(x, sl_ones(SL_SHAPE(4)))), "a tensor that may change between runs");
	}
}

/* Values that depend on no input are computed once, and a result may be one of them. */
static void test_constants(void)
{
	float x[4] = {1, 2, 3, 4}, y[4], z[2];
	sl_plan *plan = compiled("input x: float32 (4,)\nc = fill(shape=(4,), value=3.0, dtype=1)\n"
	                         "two = fill(shape=(2,), value=2.0, dtype=1)\n"
	                         "return mul(x, add(c, exp(mul_scalar(c, value=0)))), two");
	CHECK(sl_plan_is_small(plan));
	CHECK_OK(sl_plan_call(plan, SL_ARRAY(void *, x), 1, NULL, 0, SL_ARRAY(void *, y, z)));
	same(y, 4, (float[]){4, 8, 12, 16});
	same(z, 2, (float[]){2, 2});
	sl_plan_free(plan);
}

enum { SIDE = 300 };

/* The same results as tasks', bit by bit, where the results are to be and beside it, where it is copied. */
static void test_large(void)
{
	static _Alignas(64) float x[SIDE * SIDE], y[SIDE * SIDE], s[SIDE + 16], expected[SIDE * SIDE], sums[SIDE];
	int threads = omp_get_max_threads();
	omp_set_num_threads(slp_team_threads(0));
	for (int i = 0; i < SIDE * SIDE; i++) x[i] = (float)(i * 7 % 101) / 50 - 1;
	sl_plan *plan = compiled("input x: float32 (300, 300)\na = dot(x, relu(x))\n"
	                         "b = softmax(dot(a, x, tb=true), axis=1)\n"
	                         "return b, sum(a, axes=(1,))");
	CHECK(sl_plan_may_call(plan) && !sl_plan_is_small(plan));
	SL_SCOPE {
		sl_tensor *r[2], *in = sl_from(x, SL_SHAPE(SIDE, SIDE));
		CHECK_OK(sl_plan_run(plan, &in, 1, r));
		CHECK_OK(sl_read(r[0], expected, sizeof expected));
		CHECK_OK(sl_read(r[1], sums, sizeof sums));
	}
	for (int round = 0; round < 2; round++) {
		memset(y, 1, sizeof y);
		CHECK_OK(sl_plan_call(plan, SL_ARRAY(void *, x), 1, NULL, 0, SL_ARRAY(void *, y, s + round)));
		CHECK(!memcmp(y, expected, sizeof y) && !memcmp(s + round, sums, sizeof sums));
	}
	omp_set_num_threads(slp_team_threads(0) + 1);
	CHECK_STATUS(sl_plan_call(plan, SL_ARRAY(void *, x), 1, NULL, 0, SL_ARRAY(void *, y, s)), SL_EUNSUPPORTED,
	             "sl_plan_call", "number of threads");
	omp_set_num_threads(threads);
	sl_profile_start();
	CHECK(!sl_plan_may_call(plan));
	sl_profile_stop();
	CHECK(sl_plan_may_call(plan));
	sl_plan_free(plan);
}

/* Mistakes, and a kernel that fails. */
static void test_refused(void)
{
	float x[4] = {1, 2, 3, 4}, y[4];
	sl_plan *plan = compiled("input x: float32 (4,)\nreturn relu(x)");
	CHECK_STATUS(sl_plan_call(plan, SL_ARRAY(void *, x), 2, NULL, 0, SL_ARRAY(void *, y)), SL_EINVAL,
	             "1 inputs, got 2");
	CHECK_STATUS(sl_plan_call(plan, SL_ARRAY(void *, NULL), 1, NULL, 0, SL_ARRAY(void *, y)), SL_EINVAL, "inputs",
	             "NULL");
	CHECK_STATUS(sl_plan_call(plan, SL_ARRAY(void *, x), 1, NULL, 0, SL_ARRAY(void *, NULL)), SL_EINVAL, "results",
	             "NULL");
	CHECK_STATUS(sl_plan_call(plan, NULL, 1, NULL, 0, SL_ARRAY(void *, y)), SL_EINVAL, "inputs");
	CHECK(!sl_plan_is_small(NULL) && !sl_plan_may_call(NULL));
	atomic_store(&slp_fail_kernel, 1);
	CHECK_STATUS(sl_plan_call(plan, SL_ARRAY(void *, x), 1, NULL, 0, SL_ARRAY(void *, y)), SL_EKERNEL, "relu",
	             "told to fail");
	CHECK_OK(sl_plan_call(plan, SL_ARRAY(void *, x), 1, NULL, 0,
	                      SL_ARRAY(void *, y))); /* and nothing is left of it */
	slp_watch_deadline = 1;
	CHECK(!sl_plan_is_small(plan));
	slp_watch_deadline = 0;
	sl_plan_free(plan);
}

static enum sl_status twice(const struct sl_op_call *c)
{
	const float *x = c->in[0].data;
	float *y = c->out[0].data;
	for (int64_t i = 0; i < sl_shape_size(c->in[0].shape); i++) y[i] = 2 * x[i];
	return SL_OK;
}

/* A program's own operation may call functions that wait. */
static void test_own(void)
{
	CHECK(sl_op_register(.name = "twice_here", .nin = 1, .cpu = twice) != NULL);
	sl_plan *plan = compiled("input x: float32 (4,)\nreturn twice_here(x)");
	CHECK(!sl_plan_is_small(plan));
	sl_plan_free(plan);
}

enum { THREADS = 4, TIMES = 200 };
static sl_plan *shared;

static void *call_often(void *arg)
{
	float x[64], y[64], s[1];
	float k = (float)*(int *)arg;
	for (int i = 0; i < 64; i++) x[i] = k;
	for (int i = 0; i < TIMES; i++) {
		CHECK_OK(sl_plan_call(shared, SL_ARRAY(void *, x), 1, NULL, 0, SL_ARRAY(void *, y, s)));
		CHECK(same(s, 1, (float[]){64 * (3 * k + 1)}) && same(&y[63], 1, (float[]){3 * k}));
	}
	return NULL;
}

/* Several threads call one plan at the same time, each with memory of its own for values between. */
static void test_threads(void)
{
	pthread_t threads[THREADS];
	int numbers[THREADS];
	shared = compiled("input x: float32 (64,)\ny = mul_scalar(x, value=3)\ns = sum(add_scalar(y, value=1))\n"
	                  "return y, s");
	for (int i = 0; i < THREADS; i++) numbers[i] = i;
	for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, call_often, &numbers[i]));
	for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
	sl_plan_free(shared);
}

static const struct slp_test tests[] = {{"values", test_values},       {"larger", test_larger},
                                        {"written", test_written},     {"needs tasks", test_needs_tasks},
                                        {"constants", test_constants}, {"large", test_large},
                                        {"refused", test_refused},     {"own", test_own},
                                        {"threads", test_threads},     {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "plan_call", .tests = tests, .before = slp_begin_plainly, .after = slp_end_well},
	                {0}});
}
