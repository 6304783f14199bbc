/* The watchdog: with SL_DEADLINE, a thread checks whether a task has run, or a thread has waited, for longer than so
 * many seconds, and prints on stderr all pending calls: which operation, where it was called, on which worker. */
#include <stdlib.h>
#include <time.h>

#include "number.h"
#include "op.h"
#include "runtime/compat.h"
#include "runtime/forked.h"
#include "runtime/observe/watch.h"
#include "runtime/thread.h"

double slp_watch_deadline;
bool slp_watch_ends;
atomic_int slp_watch_told;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool runs, stops;
	struct slp_segment *oldest, *newest; /* tasks in flight, in the order of submission */
	struct slp_wait *waits;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void reset_in_child(void)
{
	pthread_mutex_init(&watch.lock, NULL);
	pthread_cond_init(&watch.changed, NULL);
	watch.runs = false; /* its thread is not here */
	watch.oldest = watch.newest = NULL;
	watch.waits = NULL;
}
SLP_AT_FORK(reset_in_child);

/* ---- tasks in flight --------------------------------------------------------------------------------------------- */

void slp_watch_enter(struct slp_segment *s)
{
	s->watched = (struct slp_watched){.since = sl_time()};
	pthread_mutex_lock(&watch.lock);
	s->watched.older = watch.newest;
	if (watch.newest) watch.newest->watched.newer = s;
	else watch.oldest = s;
	watch.newest = s;
	pthread_mutex_unlock(&watch.lock);
}

void slp_watch_runs(struct slp_segment *s, const struct slp_record *call)
{
	pthread_mutex_lock(&watch.lock);
	if (!s->watched.call) {
		s->watched.worker = starpu_worker_get_id();
		s->watched.since = sl_time();
	}
	s->watched.call = call;
	pthread_mutex_unlock(&watch.lock);
}

void slp_watch_leave(struct slp_segment *s)
{
	struct slp_watched *w = &s->watched;
	pthread_mutex_lock(&watch.lock);
	if (w->older) w->older->watched.newer = w->newer;
	else watch.oldest = w->newer;
	if (w->newer) w->newer->watched.older = w->older;
	else watch.newest = w->older;
	pthread_mutex_unlock(&watch.lock);
}

void slp_watch_wait(struct slp_wait *w)
{
	const struct slp_call *call = &slp_current_call;
	*w = (struct slp_wait){.function = call->at ? call->function : "the program",
	                       .at = call->at ? call->at : "?",
	                       .since = sl_time()};
	pthread_mutex_lock(&watch.lock);
	w->next = watch.waits;
	watch.waits = w;
	pthread_mutex_unlock(&watch.lock);
}

void slp_watch_wait_over(struct slp_wait *w)
{
	pthread_mutex_lock(&watch.lock);
	struct slp_wait **p = &watch.waits;
	while (*p != w) p = &(*p)->next;
	*p = w->next;
	pthread_mutex_unlock(&watch.lock);
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

/* "conv2d at lenet.c:40 runs on CPU 0 for 31.0 s" */
static void describe(FILE *f, const struct slp_segment *s, double now)
{
	const struct slp_watched *w = &s->watched;
	const struct slp_record *r = w->call ? w->call : slp_record_first(s->calls);
	char worker[64] = "a worker";
	if (w->call) starpu_worker_get_name(w->worker, worker, sizeof worker);
	slp_fprintf(f, "%s at %s %s%s, for %.1f s", slp_ops[r->op]->name, r->at, w->call ? "runs on " : "has not begun",
	            w->call ? worker : "", now - w->since);
	if (s->calls->nops > 1) fprintf(f, ", in a task of %d calls", s->calls->nops);
}

static void list(FILE *f, double now)
{
	enum { SHOWN = 8 };
	int count = 0;
	for (const struct slp_segment *s = watch.oldest; s; s = s->watched.newer) {
		if (count++ >= SHOWN) continue;
		fputs("\n  ", f);
		describe(f, s, now);
	}
	if (count > SHOWN) fprintf(f, "\n  … and %d more", count - SHOWN);
	if (!count) fputs("\n  no task is pending", f);
}

static void end_telling(double now)
{
	list(stderr, now);
	fputc('\n', stderr);
	atomic_fetch_add(&slp_watch_told, 1);
}

static void tell_wait(const struct slp_wait *w, double now)
{
	slp_fprintf(stderr, "starling: %s at %s has waited for %.1f s (SL_DEADLINE); pending:", w->function, w->at,
	            now - w->since);
	end_telling(now);
}

static void tell_task(const struct slp_segment *s, double now)
{
	fputs("starling: a task does not end (SL_DEADLINE): ", stderr);
	describe(stderr, s, now);
	fputs("; pending:", stderr);
	end_telling(now);
}

/* Each wait and each task is reported once. */
static void look(void)
{
	double now = sl_time();
	for (struct slp_wait *w = watch.waits; w; w = w->next)
		if (!w->told && now - w->since > slp_watch_deadline) {
			w->told = true;
			tell_wait(w, now);
		}
	for (struct slp_segment *s = watch.oldest; s; s = s->watched.newer)
		if (s->watched.call && !s->watched.told && now - s->watched.since > slp_watch_deadline) {
			s->watched.told = true;
			tell_task(s, now);
		}
}

void slp_watch_fail(void)
{
	char *text = NULL;
	size_t size;
	const struct slp_call *call = &slp_current_call;
	FILE *f = slp_memory_file(&text, &size);
	if (f) {
		pthread_mutex_lock(&watch.lock);
		list(f, sl_time());
		pthread_mutex_unlock(&watch.lock);
		fclose(f);
	}
	slp_call_fail(call->at, call->at ? call->function : "the program", SL_ETIME,
	              "waited for %g s (SL_DEADLINE); pending:%s", slp_watch_deadline, text ? text : " ?");
	free(text);
}

/* ---- the thread -------------------------------------------------------------------------------------------------- */

/* Four times within a deadline, and four times a second. */
static struct timespec next_look(void)
{
	double tick = slp_watch_deadline < 1 ? slp_watch_deadline / 4 : 0.25;
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	int64_t ns = t.tv_nsec + (int64_t)(1e9 * tick);
	return (struct timespec){t.tv_sec + (time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

static void *run(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&watch.lock);
	while (!watch.stops) {
		struct timespec t = next_look();
		pthread_cond_timedwait(&watch.changed, &watch.lock, &t);
		look();
	}
	pthread_mutex_unlock(&watch.lock);
	return NULL;
}

void slp_watch_start(double deadline, bool ends)
{
	watch.stops = false;
	slp_watch_ends = ends && deadline > 0;
	slp_watch_deadline = deadline;
	watch.runs = deadline > 0 && slp_thread_create(&watch.thread, run, NULL) == 0;
	if (deadline > 0 && !watch.runs)
		fputs("starling: no thread for SL_DEADLINE; only waits that end are reported\n", stderr);
}

void slp_watch_stop(void)
{
	pthread_mutex_lock(&watch.lock);
	watch.stops = true;
	pthread_cond_signal(&watch.changed);
	pthread_mutex_unlock(&watch.lock);
	if (watch.runs) pthread_join(watch.thread, NULL);
	watch.runs = false;
	slp_watch_deadline = 0;
	slp_watch_ends = false;
}
