/* Run-ahead: the limit of tasks by which submission may be ahead of execution, and waiting for work to end.  Waiting
 * keeps the engine locked, so that the order of submission is that of the calls; the end of a task on a worker never
 * takes that lock.  The locks are StarPU's, so simulated time passes in them. */
#include "runtime/compat.h"
#include "runtime/engine.h"
#include "runtime/memory/runahead.h"
#include "runtime/observe/fxt.h"
#include "runtime/observe/stats.h"
#include "runtime/observe/watch.h"
#include "runtime/uncancelled.h"

static struct {
	atomic_int pending; /* segments submitted and not ended */
	atomic_int wake_at; /* waiters are woken once so few are pending; -1: no waiter */
	starpu_pthread_mutex_t lock;
	starpu_pthread_cond_t few;
} ahead = {.wake_at = -1, .lock = STARPU_PTHREAD_MUTEX_INITIALIZER, .few = STARPU_PTHREAD_COND_INITIALIZER};

int slp_runahead_pending(void)
{
	return atomic_load(&ahead.pending);
}

bool slp_runahead_waited(void)
{
	return atomic_load(&ahead.wake_at) >= 0;
}

static uint64_t now_ns(void)
{
	return (uint64_t)(1e9 * sl_time());
}

/* False: the watchdog's deadline has passed, and ends waits. */
static bool wait_a_while(uint64_t start)
{
	if (!slp_watch_ends) return starpu_pthread_cond_wait(&ahead.few, &ahead.lock), true;
	uint64_t most = (uint64_t)(1e9 * slp_watch_deadline);
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += (time_t)(most / 1000000000) + 1;
	starpu_pthread_cond_timedwait(&ahead.few, &ahead.lock, &t);
	return now_ns() - start < most;
}

/* Waits until at most `target` segments are pending.  Several may wait: all are woken for the first, and wait again. */
static void wait_below(int target)
{
	SLP_UNCANCELLED();
	uint64_t start = now_ns();
	struct slp_wait wait;
	bool watched = slp_watch_deadline > 0, in_time = true;
	if (watched) slp_watch_wait(&wait);
	starpu_pthread_mutex_lock(&ahead.lock);
	for (;;) {
		if (atomic_load(&ahead.wake_at) < target) atomic_store(&ahead.wake_at, target);
		if (atomic_load(&ahead.pending) <= target) break;
		if (!(in_time = wait_a_while(start))) break;
	}
	atomic_store(&ahead.wake_at, -1);
	starpu_pthread_cond_broadcast(&ahead.few);
	starpu_pthread_mutex_unlock(&ahead.lock);
	if (watched) slp_watch_wait_over(&wait);
	if (!in_time) slp_watch_fail();
	if (slp_fxt_on) slp_fxt_waited(target ? "run-ahead" : "tasks", 1e-9 * (double)start);
	SLP_COUNT(stalls);
	atomic_fetch_add(&slp_counters.stall_ns, now_ns() - start);
}

bool slp_runahead_wait_progress(void)
{
	int pending = atomic_load(&ahead.pending);
	if (pending == 0) return false;
	wait_below(pending - (pending + 3) / 4);
	return true;
}

bool slp_runahead_wait_one(void)
{
	int pending = atomic_load(&ahead.pending);
	if (pending == 0) return false;
	wait_below(pending - 1);
	return true;
}

static void peak(int pending)
{
	uint64_t old = atomic_load(&slp_counters.peak_tasks);
	while ((uint64_t)pending > old &&
	       !atomic_compare_exchange_weak(&slp_counters.peak_tasks, &old, (uint64_t)pending))
		continue;
}

/* At the bound, waits until a quarter of it is free, so that not every submission has to wait again. */
void slp_runahead_wait(void)
{
	int max = slp_engine.config.runahead_tasks;
	if (atomic_load(&ahead.pending) >= max) wait_below(max - 1 - max / 4);
}

/* One more task is in flight.  After entering, the caller must not wait for others before it is submitted: it would
 * wait for itself. */
void slp_runahead_enter(void)
{
	peak(atomic_fetch_add(&ahead.pending, 1) + 1);
}

bool slp_runahead_leave(void)
{
	int pending = atomic_fetch_sub(&ahead.pending, 1) - 1;
	if (pending > atomic_load(&ahead.wake_at)) return false;
	starpu_pthread_mutex_lock(&ahead.lock);
	starpu_pthread_cond_broadcast(&ahead.few);
	starpu_pthread_mutex_unlock(&ahead.lock);
	return true;
}
