/* Cases in bfloat16 beside float32, in turn. */
#include "bench.h"

/* ---- a product ----------------------------------------------------------------------------------------------------
 */

enum { SIZE = 2048 };

static struct {
	sl_tensor *a, *b;
} full, half;

bool bench_gemm_both_setup(const struct bench_case *c)
{
	(void)c;
	SL_SCOPE {
		full.a = sl_retain(sl_normal(SL_SHAPE(SIZE, SIZE), 0, 1));
		full.b = sl_retain(sl_normal(SL_SHAPE(SIZE, SIZE), 0, 1));
		half.a = sl_retain(sl_cast(full.a, SL_BFLOAT16));
		half.b = sl_retain(sl_cast(full.b, SL_BFLOAT16));
	}
	return sl_wait_all() == SL_OK;
}

void bench_gemm_both_teardown(void)
{
	sl_release(full.a);
	sl_release(full.b);
	sl_release(half.a);
	sl_release(half.b);
}

static double products(sl_tensor *a, sl_tensor *b, int64_t times)
{
	double start = bench_now();
	for (int64_t i = 0; i < times; i++)
		SL_SCOPE
			sl_dot(a, b);
	bench_must(sl_wait_all());
	return (bench_now() - start) / (double)times;
}

double bench_gemm_half_gain_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double single = products(full.a, full.b, times);
	return single / products(half.a, half.b, times);
}

/* ---- whole steps --------------------------------------------------------------------------------------------------
 */

static double gain(const struct bench_case *c, int64_t times, double (*run)(const struct bench_case *c, int64_t times))
{
	struct bench_case single = *c;
	single.half = false;
	double seconds = run(&single, times);
	return seconds / run(c, times);
}

double bench_half_gain_run(const struct bench_case *c, int64_t times)
{
	return gain(c, times, bench_whole_step_run);
}

double bench_gpt_half_gain_run(const struct bench_case *c, int64_t times)
{
	return gain(c, times, bench_gpt_run);
}

double bench_eager_half_gain_run(const struct bench_case *c, int64_t times)
{
	return gain(c, times, bench_step_run);
}
