/* Figures of a training run while it runs, and of the machine: points about once a second, written for TensorBoard. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "health.h"
#include "training.h"

static const double INTERVAL = 1; /* seconds between two points */

/* ---- the machine ------------------------------------------------------------------------------------------------- */

static double own_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double processors(void)
{
	cpu_set_t set;
	return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* Ticks of all processors: user, nice, system, idle, iowait, irq, softirq, steal. */
static void read_ticks(double *busy, double *total)
{
	enum { IDLE = 3, IOWAIT = 4, KINDS = 8 };
	unsigned long long ticks[KINDS] = {0};
	FILE *f = fopen("/proc/stat", "re");
	*busy = *total = 0;
	if (!f) return;
	int n = fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &ticks[0], &ticks[1], &ticks[2], &ticks[3],
	               &ticks[4], &ticks[5], &ticks[6], &ticks[7]);
	fclose(f);
	for (int i = 0; i < n && i < KINDS; i++) {
		*total += (double)ticks[i];
		if (i != IDLE && i != IOWAIT) *busy += (double)ticks[i];
	}
}

/* Fills in the machine's work since the last point, and resets the counters. */
static void see_machine(struct drv_live *live, struct drv_point *p, double seconds)
{
	double own = own_seconds(), busy, total;
	struct sl_stats stats;
	read_ticks(&busy, &total);
	sl_stats_get(&stats);
	p->own_cpu = seconds > 0 ? 100 * (own - live->own) / (seconds * processors()) : 0;
	p->all_cpu = total > live->total ? 100 * (busy - live->busy) / (total - live->total) : 0;
	p->megabytes = 1e-6 * (double)stats.bytes;
	p->tasks = (double)stats.pending_tasks;
	live->own = own;
	live->busy = busy;
	live->total = total;
}

/* ---- points ------------------------------------------------------------------------------------------------------ */

static bool wanted(const struct drv_training *t)
{
	return t->options->tensorboard || t->options->checkpoint.health;
}

static double images_of_epochs(const struct drv_training *t)
{
	double images = 0;
	for (int64_t i = 0; i < t->done; i++) images += (double)t->epochs[i].images;
	return images;
}

bool drv_live_due(const struct drv_training *t)
{
	return wanted(t) && !t->live.failed && drv_now() - t->live.asked >= INTERVAL / 4;
}

/* X(tag, value) for a scalar of a point p. */
#define POINT_SCALARS(X)                                                                                               \
	X("live/loss", p->loss)                                                                                        \
	X("live/images_per_second", p->images_per_second)                                                              \
	X("machine/cpu_of_this_program_percent", p->own_cpu)                                                           \
	X("machine/cpu_of_all_programs_percent", p->all_cpu)                                                           \
	X("machine/megabytes", p->megabytes)                                                                           \
	X("machine/tasks_in_flight", p->tasks)

/* X(tag, value) for a scalar of an epoch e. */
#define EPOCH_SCALARS(X)                                                                                               \
	X("loss/train", e->loss)                                                                                       \
	X("accuracy/train", e->train_accuracy)                                                                         \
	X("accuracy/test", e->test_accuracy)                                                                           \
	X("speed/images_per_second", (double)e->images / e->seconds)                                                   \
	X("speed/tasks_per_batch", e->tasks)

static bool tell_failure(struct drv_training *t)
{
	if (!t->live.failed) drv_error("%s: cannot write events: %s", t->options->tensorboard, strerror(errno));
	t->live.failed = true;
	return false;
}

static void log_point(struct drv_training *t, const struct drv_point *p, int64_t steps)
{
	FILE *f = t->live.events;
	bool ok = true;
#define X(tag, value) ok = ok && drv_tensorboard_scalar(f, tag, steps, value);
	if (f) {
		POINT_SCALARS(X)
	}
#undef X
	if (!ok) tell_failure(t);
}

static bool log_epoch(struct drv_training *t, const struct drv_epoch *e)
{
	FILE *f = t->live.events;
	bool ok = true;
#define X(tag, value) ok = ok && drv_tensorboard_scalar(f, tag, t->steps, value);
	if (f) {
		EPOCH_SCALARS(X)
	}
#undef X
	return ok || tell_failure(t);
}

static void add_point(struct drv_training *t, struct drv_point p, double images, int64_t steps)
{
	struct drv_live *live = &t->live;
	double now = drv_now(), seconds = now - live->seen;
	if (!(p.images_per_second > 0) && seconds > 0) p.images_per_second = (images - live->images) / seconds;
	see_machine(live, &p, seconds);
	live->seen = now;
	live->images = images;
	log_point(t, &p, steps);
}

void drv_live_point(struct drv_training *t, double loss, int64_t images, int64_t steps)
{
	drv_health_loss(loss);
	if (drv_now() - t->live.seen < INTERVAL) return;
	add_point(t, (struct drv_point){.loss = loss}, images_of_epochs(t) + (double)images, steps);
}

/* ---- when -------------------------------------------------------------------------------------------------------- */

bool drv_live_begin(struct drv_training *t)
{
	struct drv_live *live = &t->live;
	struct drv_point nothing;
	*live = (struct drv_live){.asked = drv_now(), .seen = drv_now(), .images = images_of_epochs(t)};
	see_machine(live, &nothing, 0);
	if (t->options->tensorboard) live->events = drv_tensorboard_open(t->options->tensorboard);
	return live->events || !t->options->tensorboard;
}

/* The rate is the epoch's: since the last point there was the test, too. */
bool drv_live_epoch(struct drv_training *t)
{
	const struct drv_epoch *e = &t->epochs[t->done - 1];
	if (!wanted(t)) return true;
	drv_health_loss(e->loss);
	add_point(t, (struct drv_point){.loss = e->loss, .images_per_second = (double)e->images / e->seconds},
	          images_of_epochs(t), t->steps);
	return !t->live.failed && log_epoch(t, e);
}

bool drv_live_end(struct drv_training *t)
{
	bool ok = !t->live.events || fclose(t->live.events) == 0 || tell_failure(t);
	t->live.events = NULL;
	return ok;
}
