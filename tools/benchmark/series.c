/* The same cases several times: with 1, 2, 4, ... threads (--scaling), alone and beside busy loops (--beside). */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

bool bench_series_threads(struct bench_series *s, const char *list, int cores)
{
	*s = (struct bench_series){.kind = BENCH_THREADS};
	for (int t = 1; !list && s->n < BENCH_MAX_SERIES; t *= 2) {
		s->count[s->n++] = t < cores ? t : cores;
		if (t >= cores) break;
	}
	while (list && *list) {
		char *end;
		long t = strtol(list, &end, 10);
		if (end == list || (*end && *end != ',') || t < 1 || t > cores || s->n == BENCH_MAX_SERIES)
			return false;
		s->count[s->n++] = (int)t;
		list = end + (*end == ',');
	}
	return s->n > 0;
}

/* ---- busy loops -------------------------------------------------------------------------------------------------- */

static pid_t loops[BENCH_MAX_LOOPS];

static void spin(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) _exit(0);
	for (;;) __asm__ volatile("");
}

static void end_loops(void)
{
	for (int i = 0; i < BENCH_MAX_LOOPS && loops[i]; i++) {
		kill(loops[i], SIGKILL);
		waitpid(loops[i], NULL, 0);
		loops[i] = 0;
	}
}

static bool start_loops(int n)
{
	pid_t parent = getpid();
	for (int i = 0; i < n; i++) {
		pid_t p = fork();
		if (p == 0) spin(parent);
		if (p < 0) return end_loops(), false;
		loops[i] = p;
	}
	return true;
}

/* ---- a case ------------------------------------------------------------------------------------------------------ */

/* False if the number of the peer's threads cannot be set: its times would be those of all threads. */
static bool set_threads(int threads, struct bench_options *o)
{
	char text[16];
	snprintf(text, sizeof text, "%d", threads);
	setenv("SL_TEAM_THREADS", text, 1);
	o->threads = threads;
	return !bench_peer_name() || !isnan(bench_peer_run("threads", threads));
}

static double over(double a, double b)
{
	return isfinite(a) && isfinite(b) && b > 0 ? a / b : NAN;
}

/* Of one point relative to the first: the speedup, or the ratio of times. */
static struct bench_point point_of(const struct bench_series *s, int i, const struct bench_summary *own,
                                   const struct bench_summary *first)
{
	bool threads = s->kind == BENCH_THREADS;
	double speed = over(first->value, own->value), peer = over(first->peer, own->peer);
	return (struct bench_point){.count = s->count[i],
	                            .change = threads ? speed : over(1, speed),
	                            .efficiency = threads ? speed * s->count[0] / s->count[i] : NAN,
	                            .peer_change = threads ? peer : over(1, peer)};
}

static bool measure_point(const struct bench_case *c, const struct bench_series *s, int i, struct bench_options *o,
                          struct bench_result *r)
{
	if (s->kind == BENCH_THREADS && !set_threads(s->count[i], o)) {
		fprintf(stderr, "bench: the peer's script cannot change its number of threads\n");
		return false;
	}
	if (s->kind == BENCH_LOOPS && !start_loops(s->count[i])) {
		perror("bench: busy loops");
		return false;
	}
	bench_measure(c, o, r);
	end_loops();
	return true;
}

int bench_series_case(const struct bench_case *c, const struct bench_series *s, const struct bench_options *options,
                      enum bench_format format, FILE *json, const char *machine)
{
	struct bench_options o = *options;
	struct bench_summary first = {0};
	int bad = 0;
	for (int i = 0; i < s->n; i++) {
		static struct bench_result r;
		if (!measure_point(c, s, i, &o, &r)) return bad + 1;
		struct bench_summary own = bench_summarize(c, &r);
		if (i == 0) first = own;
		struct bench_point p = point_of(s, i, &own, &first);
		bench_print_point(stdout, format, c, &r, &p);
		bad += *r.error != '\0';
		if (json && !bench_write_point(json, machine, c, &r, s, &p)) bad++;
	}
	return bad;
}
