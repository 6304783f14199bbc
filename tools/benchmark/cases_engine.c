/* Cases of the engine itself: chains of tiny operations, the tutorial's "x + 1" a thousand times, the big product. */
#include "bench.h"

/* ---- a chain of operations that do next to nothing -----------------------------------------------------------------
 */

double bench_chain_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	sl_tensor *x = NULL;
	SL_SCOPE
		x = sl_retain(sl_ones(SL_SHAPE(1, 2)));
	bench_must(sl_wait(x));
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE {
			sl_tensor *y = sl_retain(sl_add_scalar(x, 1));
			sl_release(x);
			x = y;
		}
	bench_must(sl_wait(x));
	double seconds = (bench_now() - start) / (double)times;
	sl_release(x);
	return seconds;
}

/* ---- 1000 × x + 1 --------------------------------------------------------------------------------------------------
 */

enum { PLUS_ONES = 1000 };

static double plus_one(int64_t times, bool wait_for_each)
{
	double seconds = 0;
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2));
		bench_must(sl_wait(x));
		double start = bench_now();
		for (int64_t i = 0; i < times * PLUS_ONES; i++)
			SL_SCOPE {
				sl_tensor *y = sl_add_scalar(x, 1);
				if (wait_for_each || (i + 1) % PLUS_ONES == 0) bench_must(sl_wait(y));
			}
		seconds = (bench_now() - start) / (double)times;
	}
	return seconds;
}

double bench_plus_one_async_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	return plus_one(times, false);
}

double bench_plus_one_sync_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	return plus_one(times, true);
}

double bench_plus_one_gain_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	return plus_one(times, true) / plus_one(times, false);
}

/* ---- dot(2000 × 2000) ----------------------------------------------------------------------------------------------
 */

static sl_tensor *left, *right;

bool bench_dot_setup(const struct bench_case *c)
{
	(void)c;
	SL_SCOPE {
		left = sl_retain(sl_normal(SL_SHAPE(2000, 2000), 0, 1));
		right = sl_retain(sl_normal(SL_SHAPE(2000, 2000), 0, 1));
	}
	return sl_wait_all() == SL_OK;
}

double bench_dot_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE
			sl_dot(left, right);
	bench_must(sl_wait_all());
	return (bench_now() - start) / (double)times;
}

/* The time until the call returns, while nothing else is running. */
double bench_queue_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double seconds = 0;
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE {
			double start = bench_now();
			sl_dot(left, right);
			seconds += bench_now() - start;
			bench_must(sl_wait_all());
		}
	return seconds / (double)times;
}

void bench_dot_teardown(void)
{
	sl_release(left);
	sl_release(right);
}
