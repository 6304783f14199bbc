/* Measures a case: in a process of its own, after warming up, in runs that alternate the floor, Starling and the peer, so
 * that other work on the machine affects all three equally. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

double bench_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- statistics ---------------------------------------------------------------------------------------------------
 */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Of the values that are numbers; NAN if none is. */
double bench_median(const double *values, int n)
{
	double sorted[BENCH_MAX_RUNS];
	int count = 0;
	for (int i = 0; i < n; i++)
		if (!isnan(values[i])) sorted[count++] = values[i];
	if (!count) return NAN;
	qsort(sorted, (size_t)count, sizeof *sorted, compare);
	return count % 2 ? sorted[count / 2] : 0.5 * (sorted[count / 2 - 1] + sorted[count / 2]);
}

static double median_ratio(const double *above, const double *below, int n)
{
	double ratios[BENCH_MAX_RUNS];
	for (int i = 0; i < n; i++) ratios[i] = above[i] / below[i];
	return bench_median(ratios, n);
}

static bool meets(struct bench_goal goal, const struct bench_summary *s)
{
	switch (goal.kind) {
	case BENCH_NO_GOAL: return true;
	case BENCH_AT_MOST: return s->value <= goal.limit;
	case BENCH_AT_LEAST: return s->value >= goal.limit;
	case BENCH_OF_FLOOR: return s->floor_ratio >= goal.limit;
	case BENCH_OF_PEER: return isnan(s->peer_ratio) || s->peer_ratio >= goal.limit;
	}
	return false;
}

struct bench_summary bench_summarize(const struct bench_case *c, const struct bench_result *r)
{
	struct bench_summary s = {.value = bench_median(r->value, r->runs), .low = INFINITY, .high = -INFINITY};
	for (int i = 0; i < r->runs; i++) {
		s.low = fmin(s.low, r->value[i]);
		s.high = fmax(s.high, r->value[i]);
	}
	s.rate = bench_median(r->rate, r->runs);
	s.joules = bench_median(r->joules, r->runs);
	s.per_joule = c->rate_count / s.joules;
	s.floor = bench_median(r->floor, r->runs);
	s.floor_ratio = median_ratio(r->floor, r->value, r->runs);
	s.peer = bench_median(r->peer, r->runs);
	s.peer_ratio = median_ratio(r->peer, r->value, r->runs);
	s.met = !*r->error && meets(c->goal, &s);
	return s;
}

/* ---- child processes ----------------------------------------------------------------------------------------------
 */

static bool read_all(int fd, void *data, size_t size)
{
	for (size_t got = 0; got < size;) {
		ssize_t n = read(fd, (char *)data + got, size - got);
		if (n == 0 || (n < 0 && errno != EINTR)) return false;
		if (n > 0) got += (size_t)n;
	}
	return true;
}

static bool write_all(int fd, const void *data, size_t size)
{
	for (size_t put = 0; put < size;) {
		ssize_t n = write(fd, (const char *)data + put, size - put);
		if (n < 0 && errno != EINTR) return false;
		if (n > 0) put += (size_t)n;
	}
	return true;
}

bool bench_in_child(void (*fn)(const void *arg, void *result), const void *arg, void *result, size_t size)
{
	int ends[2], status = 0;
	fflush(NULL);
	if (pipe(ends)) return false;
	pid_t child = fork();
	if (child == 0) {
		close(ends[0]);
		fn(arg, result);
		fflush(NULL);
		_exit(write_all(ends[1], result, size) ? 0 : 1);
	}
	close(ends[1]);
	bool ok = child > 0 && read_all(ends[0], result, size);
	close(ends[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
	return ok && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- runs ---------------------------------------------------------------------------------------------------------
 */

struct job {
	const struct bench_case *c;
	const struct bench_options *options;
};

static char failure[BENCH_MESSAGE];

void bench_must(enum sl_status status)
{
	if (status != SL_OK && !*failure)
		snprintf(failure, sizeof failure, "%s: %s", sl_status_name(status), sl_error_message());
}

static bool failed(struct bench_result *r)
{
	bench_must(sl_error());
	memcpy(r->error, failure, sizeof failure);
	return *failure != '\0';
}

/* The number of repetitions that fill the time of a run.  The runs of this measurement also warm up. */
static int64_t find_times(const struct job *j)
{
	double target = j->options->run_seconds;
	if (!j->c->no_engine) j->c->run(j->c, 1 + j->c->times / 10);
	if (j->c->times) return j->c->times;
	for (int64_t times = 1;; times *= 2) {
		double seconds = j->c->run(j->c, times) * (double)times;
		if (*failure) return 1;
		if (seconds > 0.2 * target || times >= 1 << 22)
			return llrint(fmax(1, fmin(1 << 24, target * (double)times / seconds)));
	}
}

/* Threads that an earlier part left spinning get time to go to sleep. */
static void settle(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL);
}

/* The peer repeats as often as we do, or less if that would take it longer than a run should. */
static double peer_turn(const struct job *j, int64_t times)
{
	static double last; /* seconds of a repetition */
	if (j->c->no_peer) return NAN;
	if (last > 0) times = llrint(fmax(1, fmin((double)times, j->options->run_seconds / last)));
	else times = 1;
	return last = bench_peer_run(j->c->name, times);
}

static bool in_half(const struct bench_case *c)
{
	return c->half || (c->op && c->op->in[0].dtype == SL_BFLOAT16);
}

/* Of the processors and, if they are used, the GPUs, as far as they can be read. */
static double joules(void)
{
	struct sl_energy e;
	sl_energy_get(&e);
	return isnan(e.gpu) ? e.cpu : isnan(e.cpu) ? e.gpu : e.cpu + e.gpu;
}

static void one_run(const struct job *j, int64_t times, int i, struct bench_result *r)
{
	const struct bench_case *c = j->c;
	double scale = c->scale ? c->scale : 1;
	settle();
	r->floor[i] = bench_floor(&c->work, in_half(c), j->options) * scale;
	settle();
	if (!c->times) c->run(c, 1); /* caches and clock as the peer finds them after its own turn */
	double before = joules();
	r->value[i] = c->run(c, times) * scale;
	r->joules[i] = (joules() - before) / (double)times;
	r->rate[i] = c->rate_count ? c->rate_count * scale / r->value[i] : c->rate_value ? *c->rate_value : NAN;
	if (isnan(r->value[i]) && !*failure) snprintf(failure, sizeof failure, "gives no value");
	bench_quiet(true);
	settle();
	if (i == 0) peer_turn(j, times); /* warms up */
	r->peer[i] = peer_turn(j, times) * scale;
	if (!isnan(r->peer[i])) snprintf(r->how, sizeof r->how, "%s", bench_peer_how());
	bench_quiet(false);
}

static bool begin(const struct job *j, struct bench_result *r)
{
	const struct bench_case *c = j->c;
	sl_device device = j->options->device;
	if (c->no_engine) return true;
	struct sl_config config = c->config;
	if (device.kind != SL_DEVICE_GPU) config.gpus = -1;
	config.seed = 1;
	config.tf32 = j->options->tf32 ? SL_TF32_ALL : SL_TF32_NONE; /* as bench-peer.py has it */
	if (sl_init(&config) != SL_OK || sl_device_default(device) != SL_OK || (c->setup && !c->setup(c))) {
		if (!failed(r)) snprintf(r->error, sizeof r->error, "cannot set up");
		return false;
	}
	bench_must(sl_energy_start());
	return true;
}

static void end(const struct bench_case *c)
{
	if (c->no_engine) return;
	if (c->teardown) c->teardown();
	sl_shutdown();
}

static void measure(const void *arg, void *result)
{
	const struct job *j = arg;
	struct bench_result *r = result;
	if (!begin(j, r)) return;
	int64_t times = find_times(j);
	for (int i = 0; i < j->options->runs && (!j->c->runs || i < j->c->runs); i++) {
		one_run(j, times, i, r);
		r->runs = i + 1;
		if (failed(r)) break;
	}
	end(j->c);
}

void bench_measure(const struct bench_case *c, const struct bench_options *options, struct bench_result *result)
{
	struct job job = {c, options};
	*result = (struct bench_result){0};
	if (!bench_in_child(measure, &job, result, sizeof *result)) {
		result->runs = 0;
		snprintf(result->error, sizeof result->error, "the process that measured it ended early");
	}
}
