/* What the tape keeps: changes in place, memory, length, threads, failing kernels. */
#include <pthread.h>
#include <starling.h>

#include "check.h"
#include "runtime/task/segment.h"

static void clear(void)
{
	atomic_store(&slp_fail_kernel, 0);
	sl_wait_all();
	sl_error_clear();
}

/* ---- in place ---------------------------------------------------------------------------------------------------- */

static void test_inplace_allowed(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *y, *c = sl_ones(SL_SHAPE(2), .dtype = SL_FLOAT64);
		SL_RECORD {
			y = sl_mul_scalar(x, 3);
			sl_add_scalar_(y, 1);
			sl_add_(y, x); /* 4x + 1 */
			sl_add_(c, y); /* a constant becomes a variable */
		}
		CHECK_VALUES(c, 6, 10);
		CHECK_OK(sl_backward(c));
		CHECK_ALL(sl_grad(x), 4);
	}
}

static void test_inplace_rejected(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *c = sl_ones(SL_SHAPE(2), .dtype = SL_FLOAT64);
		SL_RECORD {
			CHECK_NULL(sl_add_scalar_(x, 1), SL_ESTATE, "add_scalar", "SL_PAUSE");
			sl_tensor *e = sl_exp(x); /* its gradient needs its result */
			CHECK_NULL(sl_add_scalar_(e, 1), SL_ESTATE, "add_scalar");
			sl_tensor *m = sl_mul_scalar(x, 2), *view = sl_reshape(m, SL_SHAPE(2, 1));
			CHECK_NULL(sl_add_scalar_(m, 1), SL_ESTATE);
			CHECK_NULL(sl_add_scalar_(view, 1), SL_ESTATE);
			sl_tensor *n = sl_mul_scalar(x, 2);
			CHECK_NULL(sl_mul_(n, x), SL_ESTATE, "mul"); /* would overwrite what it needs */
			CHECK_NULL(sl_mul_(c, x), SL_ESTATE, "mul");
			CHECK_VALUES(n, 2, 4);
			CHECK_ALL(c, 1);
		}
		CHECK(sl_add_scalar_(x, 1) == x);
		CHECK_VALUES(x, 2, 3);
		SL_RECORD
			SL_PAUSE
				CHECK(sl_add_scalar_(x, 1) == x);
		SL_RECORD
			CHECK(sl_mul_(c, c) == c); /* no gradient goes through it */
	}
}

/* How what a gradient needs is changed behind its back. */
static void by_operation(sl_tensor *x)
{
	sl_add_scalar_(x, 1);
}
static void by_view(sl_tensor *x)
{
	sl_add_scalar_(sl_rows(x, 0, 1), 1);
}
static void by_write(sl_tensor *x)
{
	double v[2] = {7, 8};
	sl_write(x, v, sizeof v);
}
static void by_write_to_view(sl_tensor *x)
{
	double v = 7;
	sl_write(sl_rows(x, 1, 2), &v, sizeof v);
}

static void change_saved(void (*change)(sl_tensor *x))
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *y, *z;
		SL_RECORD {
			y = sl_mul(x, x);
			z = sl_add(x, x); /* needs no values */
		}
		change(x);
		CHECK_STATUS(sl_backward(y), SL_ESTATE, "mul", "in place", SL_HERE);
		sl_error_clear();
		CHECK_OK(sl_backward(z));
		CHECK_ALL(sl_grad(x), 2);
		SL_RECORD
			y = sl_mul(x, x); /* recorded anew, it is fine */
		CHECK_OK(sl_backward(y));
	}
}

static void test_changed(void)
{
	change_saved(by_operation);
	change_saved(by_view);
	change_saved(by_write);
	change_saved(by_write_to_view);
}

/* ---- memory, length, threads ------------------------------------------------------------------------------------- */

/* y = x·x·x·…: each product saves its inputs. */
static sl_tensor *long_product(sl_tensor *x, int n)
{
	sl_tensor *y = NULL;
	SL_RECORD {
		y = sl_retain(x);
		for (int i = 0; i < n; i++) {
			sl_tensor *z = sl_mul(y, x);
			sl_release(y);
			y = z;
		}
	}
	return y;
}

/* New tensors that live at the same time. */
static void hold(int n, size_t bytes)
{
	SL_SCOPE {
		for (int i = 0; i < n; i++) sl_ones(SL_SHAPE((int64_t)bytes / 4));
		CHECK_OK(sl_wait_all());
	}
}

/* Going back gives up what was saved as it goes: 64 saved tensors, and never many more at a time; then their memory is
 * there for others, although the result is still held. */
static void test_memory(void)
{
	enum { N = 64 };
	size_t unit = (size_t)1 << 20;
	sl_tensor *x = sl_ones(SL_SHAPE((int64_t)unit / 4));
	CHECK_OK(sl_attach_grad(x));
	CHECK_OK(sl_wait_all());
	size_t before = slp_stats().bytes;
	for (int i = 0; i < 3; i++) {
		sl_tensor *y = long_product(x, N);
		CHECK_OK(sl_wait_all());
		size_t recorded = slp_stats().bytes;
		CHECK(i || recorded - before >= (N - 4) * unit);
		sl_stats_reset();
		CHECK_OK(sl_backward(y));
		CHECK_OK(sl_wait_all());
		size_t more = slp_stats().peak_bytes - recorded;
		CHECK_SAYING(more <= 20 * unit, "sl_backward took %zu MiB more", more / unit);
		CHECK_ALL(sl_grad(x), N + 1);
		hold(N - 8, unit);
		more = slp_stats().peak_bytes - recorded;
		CHECK_SAYING(more <= 20 * unit, "what was saved is still held: %zu MiB more", more / unit);
		sl_release(y);
	}
	CHECK_SAYING(slp_stats().bytes - before <= (N + 40) * unit, "%zu MiB more in the end",
	             (slp_stats().bytes - before) / unit);
	sl_release(x);
}

/* What is saved goes with the result, also without going back. */
static void test_dropped(void)
{
	enum { N = 16 };
	sl_tensor *x = sl_ones(SL_SHAPE(1 << 18)), *ends[3];
	CHECK_OK(sl_attach_grad(x));
	CHECK_OK(sl_wait_all());
	sl_stats_reset();
	for (int i = 0; i < 12; i++) {
		if (i >= 3) sl_release(ends[i % 3]);
		ends[i % 3] = long_product(x, N);
	}
	for (int i = 0; i < 3; i++) sl_release(ends[i]);
	CHECK_OK(sl_wait_all());
	CHECK_SAYING(slp_stats().peak_bytes <= (size_t)200 << 20, "%zu bytes", slp_stats().peak_bytes);
	sl_release(x);
}

static sl_tensor *long_chain(sl_tensor *x, int n)
{
	sl_tensor *y = NULL;
	SL_RECORD {
		y = sl_retain(x);
		for (int i = 0; i < n; i++) {
			sl_tensor *z = sl_add_scalar(y, 1);
			sl_release(y);
			y = z;
		}
	}
	return y;
}

static void test_long_chain(void)
{
	enum { N = 100000 };
	sl_tensor *x = slp_leaf(2, 0), *dropped = long_chain(x, N);
	sl_release(dropped);
	sl_tensor *y = long_chain(x, N);
	CHECK_OK(sl_backward(y));
	CHECK_ALL(sl_grad(x), 1);
	CHECK_VALUES(y, N, N + 1);
	sl_release(y);
	sl_release(x);
}

struct walker {
	sl_tensor *shared;
	int wrong;
};

static void *walk(void *arg)
{
	struct walker *w = arg;
	for (int i = 0; i < 100; i++)
		SL_SCOPE {
			double v = i, d = -1;
			sl_tensor *x = sl_from(&v, SL_SHAPE(1), .dtype = SL_FLOAT64), *y = NULL;
			w->wrong += sl_attach_grad(x) != SL_OK;
			SL_RECORD
				y = sl_mul(sl_mul(x, x), w->shared);
			w->wrong += sl_backward(y) != SL_OK || sl_read(sl_grad(x), &d, sizeof d) != SL_OK || d != 4 * v;
		}
	return NULL;
}

/* Each with a graph of its own over a shared leaf, which adds up what both find. */
static void test_two_threads(void)
{
	SL_SCOPE {
		sl_tensor *shared = slp_leaf(1, 2);
		CHECK_OK(sl_attach_grad(shared, .req = SL_GRAD_ADD));
		struct walker w[2] = {{shared, 0}, {shared, 0}};
		pthread_t threads[2];
		for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, walk, &w[i]);
		for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
		CHECK_SAYING(w[0].wrong == 0 && w[1].wrong == 0, "%d and %d wrong", w[0].wrong, w[1].wrong);
		CHECK_ALL(sl_grad(shared), 2 * 328350); /* the sum of i² below 100, twice */
	}
}

/* A kernel that fails on the way forth or back spoils gradients; the next step is right. */
static void test_failing_kernels(void)
{
	for (int k = 1; k <= 12; k++)
		SL_SCOPE {
			sl_tensor *x = slp_leaf(2, 1), *y;
			CHECK_OK(sl_wait_all());
			atomic_store(&slp_fail_kernel, k);
			SL_RECORD
				y = sl_mul(sl_exp(x), sl_mul(x, x));
			CHECK_OK(sl_backward(y)); /* issued; it fails later */
			enum sl_status s = sl_wait_all();
			bool told = atomic_exchange(&slp_fail_kernel, 0) <= 0;
			CHECK(s == (told ? SL_EKERNEL : SL_OK));
			CHECK_OK(sl_wait_all());
			SL_RECORD
				y = sl_mul(x, x);
			CHECK_OK(sl_backward(y));
			CHECK_VALUES(sl_grad(x), 2, 4);
		}
}

/* ------------------------------------------------------------------------------------------------------------------ */

static const struct slp_test change_tests[] = {
        {"allowed", test_inplace_allowed},
        {"rejected", test_inplace_rejected},
        {"changed after recording", test_changed},
        {0},
};
static const struct slp_test limit_tests[] = {
        {"memory", test_memory},
        {"dropped", test_dropped},
        {"a chain of 100000", test_long_chain},
        {"two threads", test_two_threads},
        {"failing kernels", test_failing_kernels},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             {.name = "in place",
	                              .tests = change_tests,
	                              .start = slp_start_engine,
	                              .stop = slp_stop_engine,
	                              .after = clear},
	                             {.name = "limits",
	                              .tests = limit_tests,
	                              .start = slp_start_engine,
	                              .stop = slp_stop_engine,
	                              .after = clear},
	                             {0},
	                     });
}
