/* Measures the speed of a network: calls in sequence, from several threads, with batches of several sizes. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "measure.h"

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* Seconds of each call; it grows. */
struct times {
	double *of;
	int64_t count, room;
};

static bool times_add(struct times *t, double seconds)
{
	if (t->count == t->room) {
		int64_t room = t->room ? 2 * t->room : 1024;
		double *of = realloc(t->of, (size_t)room * sizeof *of);
		if (!of) return false;
		t->of = of;
		t->room = room;
	}
	t->of[t->count++] = seconds;
	return true;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* The smallest time that the given percentage of calls does not exceed; t is sorted. */
static double percentile(const struct times *t, double percent)
{
	int64_t rank = (int64_t)(percent / 100 * (double)t->count + 0.999999);
	return t->of[rank < 1 ? 0 : rank - 1];
}

static const struct {
	const char *key;
	double percent;
} percentiles[] = {{"p50_seconds", 50}, {"p90_seconds", 90}, {"p99_seconds", 99}};

static void note_percentiles(const struct times *t, json_t *object)
{
	for (size_t i = 0; i < sizeof percentiles / sizeof *percentiles; i++)
		json_object_set_new(object, percentiles[i].key, drv_json_real(percentile(t, percentiles[i].percent)));
}

/* One call, and the wait for its result */
static bool call(const struct run_network *n, double *seconds)
{
	bool ok;
	SL_SCOPE {
		double start = drv_now();
		ok = sl_wait(sl_forward_at(SL_HERE, n->net, n->in, n->nin)) == SL_OK;
		*seconds = drv_now() - start;
	}
	return ok;
}

/* ---- a number of calls ------------------------------------------------------------------------------------------- */

static void note_calls(const struct drv_options *o, struct times *t, json_t *results)
{
	qsort(t->of, (size_t)t->count, sizeof *t->of, by_size);
	drv_print(o, "%lld runs: median %.6f sec, shortest %.6f sec, 90 %% within %.6f sec, 99 %% within %.6f sec\n",
	          (long long)t->count, percentile(t, 50), t->of[0], percentile(t, 90), percentile(t, 99));
	json_object_set_new(results, "runs", json_integer(t->count));
	json_object_set_new(results, "median_seconds", drv_json_real(percentile(t, 50)));
	json_object_set_new(results, "shortest_seconds", drv_json_real(t->of[0]));
	note_percentiles(t, results);
}

/* So many calls, each waited for: prints how long they took. */
bool run_repeat(const struct drv_options *o, const struct run_network *n, int64_t calls, json_t *results)
{
	struct times times = {0};
	bool ok = true;
	while (ok && times.count < calls && !drv_interrupted()) {
		double seconds;
		ok = call(n, &seconds) && times_add(&times, seconds);
	}
	if (ok && times.count) note_calls(o, &times, results);
	free(times.of);
	return ok;
}

/* ---- several threads, several batches ---------------------------------------------------------------------------- */

/* A thread that calls the network. */
struct caller {
	pthread_t thread;
	const struct run_network *network;
	const struct run_plan *plan;
	struct times times;
	double begin, end;
	bool ok;
};

static bool goes_on(const struct caller *c)
{
	if (!c->ok || drv_interrupted()) return false;
	if (!c->times.count) return true;
	return c->plan->calls ? c->times.count < c->plan->calls : drv_now() - c->begin < c->plan->seconds;
}

static void *caller_main(void *arg)
{
	struct caller *c = arg;
	c->ok = true;
	c->begin = drv_now();
	while (goes_on(c)) {
		double seconds;
		c->ok = call(c->network, &seconds) && times_add(&c->times, seconds);
	}
	c->end = drv_now();
	if (!c->ok) drv_error("%s", sl_error_message());
	return NULL;
}

/* The call before compiles the network and packs its weights. */
static bool call_together(struct caller *callers, const struct run_network *n, const struct run_plan *plan)
{
	double seconds;
	int started = 0;
	bool ok = call(n, &seconds);
	for (; ok && started < plan->threads; started++) {
		callers[started].network = n;
		callers[started].plan = plan;
		ok = !pthread_create(&callers[started].thread, NULL, caller_main, &callers[started]);
		if (!ok) drv_error("only %d of %d threads could be started", started, plan->threads);
	}
	for (int i = 0; i < started; i++) {
		pthread_join(callers[i].thread, NULL);
		ok = ok && callers[i].ok;
	}
	return ok;
}

/* All times together, and the time from the first thread's start to the last one's end. */
static bool gather(struct caller *callers, int count, struct times *all, double *seconds)
{
	double begin = callers[0].begin, end = callers[0].end;
	for (int i = 0; i < count; i++) {
		if (callers[i].begin < begin) begin = callers[i].begin;
		if (callers[i].end > end) end = callers[i].end;
		for (int64_t k = 0; k < callers[i].times.count; k++)
			if (!times_add(all, callers[i].times.of[k])) return false;
	}
	qsort(all->of, (size_t)all->count, sizeof *all->of, by_size);
	*seconds = end - begin;
	return true;
}

static void note_batch(const struct drv_options *o, int64_t rows, int threads, struct times *t, double seconds,
                       json_t *list)
{
	double rate = (double)(t->count * rows) / seconds;
	json_t *object = json_object();
	drv_print(o, "%8lld %8d %8lld %10.3f %10.3f %10.3f %12.1f\n", (long long)rows, threads, (long long)t->count,
	          1e3 * percentile(t, 50), 1e3 * percentile(t, 90), 1e3 * percentile(t, 99), rate);
	json_object_set_new(object, "batch", json_integer(rows));
	json_object_set_new(object, "threads", json_integer(threads));
	json_object_set_new(object, "runs", json_integer(t->count));
	note_percentiles(t, object);
	json_object_set_new(object, "rows_per_second", drv_json_real(rate));
	json_array_append_new(list, object);
}

/* The first `rows` rows of the inputs, which begin again where they end. */
static bool make_batch(const struct run_network *from, int64_t rows, struct run_network *to)
{
	*to = *from;
	for (int i = 0; i < from->nin; i++) {
		sl_shape shape = sl_tensor_shape(from->in[i]);
		if (!shape.ndim || !shape.dim[0]) {
			drv_error("--benchmark: input %d has no rows", i);
			return false;
		}
		int64_t times = (rows + shape.dim[0] - 1) / shape.dim[0];
		to->in[i] = sl_slice(sl_tile(from->in[i], 0, times), 0, 0, rows, 1);
		if (!to->in[i]) return false;
	}
	return sl_wait_all() == SL_OK;
}

static bool measure_batch(const struct drv_options *o, const struct run_network *n, int64_t rows,
                          const struct run_plan *plan, json_t *list)
{
	struct caller *callers = calloc((size_t)plan->threads, sizeof *callers);
	struct times all = {0};
	double seconds;
	bool ok = callers && call_together(callers, n, plan) && gather(callers, plan->threads, &all, &seconds);
	if (ok) note_batch(o, rows, plan->threads, &all, seconds, list);
	for (int i = 0; callers && i < plan->threads; i++) free(callers[i].times.of);
	free(callers);
	free(all.of);
	return ok;
}

/* Percentiles and rows a second, for each size of a batch */
bool run_benchmark(const struct drv_options *o, const struct run_network *n, const struct run_plan *plan,
                   json_t *results)
{
	json_t *list = json_array();
	sl_shape first = sl_tensor_shape(n->in[0]);
	int64_t as_it_is = first.ndim ? first.dim[0] : 1;
	bool ok = true;
	drv_print(o, "%8s %8s %8s %10s %10s %10s %12s\n", "batch", "threads", "runs", "p50, ms", "p90, ms", "p99, ms",
	          "rows/s");
	if (!plan->nbatches) ok = measure_batch(o, n, as_it_is, plan, list);
	for (int i = 0; ok && i < plan->nbatches && !drv_interrupted(); i++)
		SL_SCOPE {
			struct run_network batch;
			ok = make_batch(n, plan->batches[i], &batch) &&
			     measure_batch(o, &batch, plan->batches[i], plan, list);
		}
	json_object_set_new(results, "benchmark", list);
	return ok;
}

/* ---- by operation ------------------------------------------------------------------------------------------------ */

/* Seconds of the fastest of some calls of an operation */
static double fastest(sl_tensor *(*issue)(sl_tensor *), sl_tensor *x)
{
	double best = INFINITY;
	for (int i = 0; i < 8; i++)
		SL_SCOPE {
			double start = drv_now();
			if (sl_wait(issue(x)) == SL_OK) best = fmin(best, drv_now() - start);
		}
	return best;
}

static sl_tensor *product(sl_tensor *x)
{
	return sl_dot(x, x);
}

static sl_tensor *copy(sl_tensor *x)
{
	return sl_mul_scalar(x, 2);
}

/* The device's peak of products and transfers per second: products of 1024 × 1024, and 32 MiB that are read and
 * written. */
static void find_rates(void)
{
	enum { SIDE = 1024, FLOATS = 8 << 20 };
	SL_SCOPE {
		double product_seconds = fastest(product, sl_ones(SL_SHAPE(SIDE, SIDE)));
		double copy_seconds = fastest(copy, sl_ones(SL_SHAPE(FLOATS)));
		sl_profile_rates(2.0 * SIDE * SIDE * SIDE / product_seconds,
		                 2.0 * FLOATS * sizeof(float) / copy_seconds);
	}
}

/* Runs it again, warm: prints the time of each operation. */
bool run_profile(const struct drv_options *o, const struct run_network *n, int64_t calls)
{
	bool ok = true;
	double seconds;
	find_rates();
	sl_profile_start();
	for (int64_t i = 0; ok && i < calls && !drv_interrupted(); i++) ok = call(n, &seconds);
	sl_profile_stop();
	sl_profile_print(drv_out(o));
	return ok;
}
