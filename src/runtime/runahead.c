/* Run-ahead: how far submission may be ahead of execution, in tasks and in bytes, and waiting for work to end.
 * Waiting keeps the engine locked, so that the order of submission stays that of the calls; what ends on the workers
 * never takes that lock. */
#include <time.h>

#include "runtime/runtime.h"

static struct {
	atomic_int pending;  /* segments submitted and not ended */
	atomic_int waiters;
	atomic_long limbo;   /* bytes of buffers that nobody holds and tasks still use */
	_Atomic uint64_t ended;
	pthread_mutex_t lock;
	pthread_cond_t ended_one;
} ahead = {.lock = PTHREAD_MUTEX_INITIALIZER, .ended_one = PTHREAD_COND_INITIALIZER};

int slp_runahead_pending(void)
{
	return atomic_load(&ahead.pending);
}

void slp_runahead_limbo(long bytes)
{
	atomic_fetch_add(&ahead.limbo, bytes);
}

size_t slp_runahead_limbo_bytes(void)
{
	long bytes = atomic_load(&ahead.limbo);
	return bytes > 0 ? (size_t)bytes : 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Waits until at most `target` segments are pending, or another one has ended than when the call was made. */
static void wait_below(int target, bool one)
{
	uint64_t start = now_ns(), ended = atomic_load(&ahead.ended);
	pthread_mutex_lock(&ahead.lock);
	atomic_fetch_add(&ahead.waiters, 1);
	while (atomic_load(&ahead.pending) > target && !(one && atomic_load(&ahead.ended) != ended))
		pthread_cond_wait(&ahead.ended_one, &ahead.lock);
	atomic_fetch_sub(&ahead.waiters, 1);
	pthread_mutex_unlock(&ahead.lock);
	SLP_COUNT(stalls);
	atomic_fetch_add(&slp_counters.stall_ns, now_ns() - start);
}

bool slp_runahead_wait_progress(void)
{
	if (atomic_load(&ahead.pending) == 0) return false;
	wait_below(0, true);
	return true;
}

static void peak(int pending)
{
	uint64_t old = atomic_load(&slp_counters.peak_tasks);
	while ((uint64_t)pending > old && !atomic_compare_exchange_weak(&slp_counters.peak_tasks, &old, (uint64_t)pending))
		continue;
}

/* At the bound, waits until a quarter of it is free, so that not every submission has to wait again. */
void slp_runahead_enter(void)
{
	int max = slp_engine.config.runahead_tasks;
	if (atomic_load(&ahead.pending) >= max) wait_below(max - 1 - max / 4, false);
	peak(atomic_fetch_add(&ahead.pending, 1) + 1);
}

void slp_runahead_leave(void)
{
	atomic_fetch_add(&ahead.ended, 1);
	atomic_fetch_sub(&ahead.pending, 1);
	if (atomic_load(&ahead.waiters) == 0) return;
	pthread_mutex_lock(&ahead.lock);
	pthread_cond_broadcast(&ahead.ended_one);
	pthread_mutex_unlock(&ahead.lock);
}
