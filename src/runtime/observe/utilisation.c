/* Busy time and flops of workers, from StarPU's times of each task, once requested. */
#include <string.h>

#include "runtime/compat.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/forked.h"
#include "runtime/observe/stats.h"
#include "runtime/observe/utilisation.h"

static struct {
	pthread_mutex_t lock; /* of all: tasks end at most some thousand times a second */
	atomic_bool on;
	unsigned generation; /* of the engine: its clock restarts each time */
	struct worker {
		struct slp_utilisation sum;
		double end; /* of the last task: on a GPU, two may overlap */
	} workers[STARPU_NMAXWORKERS];
} busy = {.lock = PTHREAD_MUTEX_INITIALIZER};
SLP_FORK_MUTEX(busy.lock);

void slp_utilisation_start(void)
{
	pthread_mutex_lock(&busy.lock);
	if (busy.generation != slp_engine.generation) memset(busy.workers, 0, sizeof busy.workers);
	busy.generation = slp_engine.generation;
	atomic_store(&busy.on, true);
	pthread_mutex_unlock(&busy.lock);
	if (starpu_profiling_status_get() == STARPU_PROFILING_ENABLE) return;
	starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
}

static double seconds(const struct timespec *t)
{
	return (double)t->tv_sec + 1e-9 * (double)t->tv_nsec;
}

/* Of a task behind one of the same program, which ended at `before`. */
static void add_turn(enum slp_turn turn, double before, double start, double end)
{
	double idle = turn == SLP_TURN_NEXT && start > before ? start - before : 0;
	if (start < before) start = before;
	if (end > start) atomic_fetch_add(&slp_counters.limited_us, (uint64_t)(1e6 * (end - start)));
	atomic_fetch_add(&slp_counters.waited_us, (uint64_t)(1e6 * idle));
}

void slp_utilisation_add(double flops, enum slp_turn turn)
{
	if (!atomic_load_explicit(&busy.on, memory_order_relaxed)) return;
	const struct starpu_task *task = starpu_task_get_current();
	const struct starpu_profiling_task_info *info = task ? task->profiling_info : NULL;
	if (!info || info->workerid < 0 || info->workerid >= STARPU_NMAXWORKERS) return;
	struct worker *w = &busy.workers[info->workerid];
	double start = seconds(&info->start_time), end = seconds(&info->end_time);
	pthread_mutex_lock(&busy.lock);
	if (turn) add_turn(turn, w->end, start, end);
	if (start < w->end) start = w->end;
	if (end > start) w->sum.seconds += end - start;
	if (end > w->end) w->end = end;
	w->sum.flops += flops;
	pthread_mutex_unlock(&busy.lock);
}

static void add(struct slp_utilisation *sum, const int *workers, int count, int index)
{
	for (int i = 0; i < count; i++) {
		if (index >= 0 && index != i) continue;
		sum->seconds += busy.workers[workers[i]].sum.seconds;
		sum->flops += busy.workers[workers[i]].sum.flops;
	}
}

struct slp_utilisation slp_utilisation_of(sl_device device)
{
	struct slp_utilisation sum = {0, 0};
	pthread_mutex_lock(&busy.lock);
	int index = device.kind < SL_DEVICE_CPU ? -1 : slp_device_team(device);
	if (device.kind != SL_DEVICE_GPU) add(&sum, slp_engine.team_worker, slp_engine.nteams, index);
	if (device.kind != SL_DEVICE_CPU) add(&sum, slp_engine.gpu_worker, slp_engine.ngpus, index);
	pthread_mutex_unlock(&busy.lock);
	return sum;
}
