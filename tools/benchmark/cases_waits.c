/* Cases of waiting: an operation and a wait for its result, repeatedly; an idle engine. */
#include <stdlib.h>
#include <time.h>

#include "bench.h"

/* ---- an operation and a wait ------------------------------------------------------------------------------------- */

static sl_tensor *operand;

static bool make_operand(sl_shape shape)
{
	SL_SCOPE
		operand = sl_retain(sl_normal(shape, 0, 1));
	return sl_wait_all() == SL_OK;
}

bool bench_wait_tiny_setup(const struct bench_case *c)
{
	(void)c;
	return make_operand(SL_SHAPE(1, 2));
}

bool bench_wait_dot256_setup(const struct bench_case *c)
{
	(void)c;
	return make_operand(SL_SHAPE(256, 256));
}

bool bench_wait_dot1024_setup(const struct bench_case *c)
{
	(void)c;
	return make_operand(SL_SHAPE(1024, 1024));
}

void bench_wait_teardown(void)
{
	sl_release(operand);
	operand = NULL;
}

static double one_wait(bool product)
{
	double start = bench_now();
	SL_SCOPE
		bench_must(sl_wait(product ? sl_dot(operand, operand) : sl_add_scalar(operand, 1)));
	return bench_now() - start;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The time that this part of the waits does not exceed */
static double quantile(int64_t times, double part)
{
	double *seconds = malloc((size_t)times * sizeof *seconds), result = NAN;
	for (int64_t i = 0; seconds && i < times; i++) seconds[i] = one_wait(false);
	if (seconds) {
		qsort(seconds, (size_t)times, sizeof *seconds, by_size);
		result = seconds[(int64_t)(part * (double)(times - 1))];
	}
	free(seconds);
	return result;
}

double bench_wait_median_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	return quantile(times, 0.5);
}

double bench_wait_p99_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	return quantile(times, 0.99);
}

double bench_wait_dot_run(const struct bench_case *c, int64_t times)
{
	(void)c;
	double seconds = 0;
	for (int64_t i = 0; i < times; i++) seconds += one_wait(true);
	return seconds / (double)times;
}

/* ---- nothing to do ----------------------------------------------------------------------------------------------- */

static double processor_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The share of a core, in percent, that the engine takes while the program sleeps */
double bench_idle_run(const struct bench_case *c, int64_t times)
{
	enum { SECONDS = 2 };
	(void)c, (void)times;
	bench_must(sl_wait_all());
	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* OpenMP's threads still spin after the last task */
	double start = bench_now(), used = processor_seconds();
	nanosleep(&(struct timespec){.tv_sec = SECONDS}, NULL);
	return 100 * (processor_seconds() - used) / (bench_now() - start);
}
