/* Waiting and idling: threads that only wait for work leave the cores to threads with work.
 *
 * Three kinds of threads share the cores: the program's threads, StarPU's workers, which poll, and the teams' OpenMP
 * threads, which poll for milliseconds after each parallel region.  A thread that wakes up on the core of a polling
 * one gets the core at the scheduler's next tick, milliseconds later.  So a team whose task ends a wait yields its
 * cores, each thread its own.  A worker without work yields, too, and then sleeps until a task is submitted or ends. */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "runtime/compat.h"
#include "runtime/device/device.h"
#include "runtime/device/idle.h"
#include "runtime/device/team.h"
#include "runtime/device/throttle.h"
#include "runtime/engine.h"

/* A worker without work: polls awake first, then yielding, the team's threads now and then too, then sleeps. */
enum {
	AWAKE_POLLS = 8,
	TEAM_POLLS = 32,       /* between two times that the whole team yields */
	AWAKE_NS = 2000000,    /* without work, until it sleeps */
	ALERT_NS = 100000,     /* the same, after it was woken */
	NAP_NS = 50000000,     /* at most: the most that a missed wake-up can cost */
	DEVICE_NAP_NS = 500000 /* beside GPUs and slave processes, whose data need workers now and then */
};

struct slp_idle_counts slp_idle_counts;

/* Of each worker.  With many of them, waking all for the task of one would cost more than the task. */
static struct bed {
	_Alignas(64) atomic_uint bell; /* counts events that may give this worker alone work */
	atomic_int tasks;              /* that were submitted for this worker alone, and have not ended */
	bool asleep;                   /* under the lock */
	pthread_cond_t rung;
} beds[STARPU_NMAXWORKERS];

static struct {
	int hook;            /* StarPU's number of it; -1: none */
	bool any_will_do;    /* the policy lets each worker take each task */
	atomic_int core;     /* on which a worker began its last task */
	atomic_int waiting;  /* threads that wait for all tasks */
	atomic_uint bell;    /* counts events that may give any worker work */
	atomic_int asleep;   /* workers */
	atomic_int anywhere; /* tasks that were submitted for several workers, and have not ended */
	pthread_mutex_t lock;
} idle = {.hook = -1, .core = -1, .lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
	unsigned polls; /* since the last task */
	unsigned heard; /* the bell, before StarPU was asked for a task */
	uint64_t until; /* it stays awake */
} mine;

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Wakes up to `most` sleeping workers. */
static void ring(int most)
{
	pthread_mutex_lock(&idle.lock);
	for (int i = 0; i < STARPU_NMAXWORKERS && most > 0 && atomic_load(&idle.asleep); i++) {
		if (!beds[i].asleep) continue;
		pthread_cond_signal(&beds[i].rung);
		most--;
	}
	pthread_mutex_unlock(&idle.lock);
}

static void wake(int most)
{
	atomic_fetch_add(&idle.bell, 1);
	if (most > 0 && atomic_load(&idle.asleep)) ring(most);
}

void slp_idle_wake(void)
{
	wake(STARPU_NMAXWORKERS);
}

void slp_idle_wake_worker(int worker)
{
	if (worker < 0) {
		wake(idle.any_will_do ? atomic_load(&idle.anywhere) : STARPU_NMAXWORKERS);
		return;
	}
	atomic_fetch_add(&beds[worker].bell, 1);
	if (!atomic_load(&idle.asleep)) return;
	pthread_mutex_lock(&idle.lock);
	if (beds[worker].asleep) pthread_cond_signal(&beds[worker].rung);
	pthread_mutex_unlock(&idle.lock);
}

/* The only worker that runs tasks for a device; -1: there are several. */
static int worker_of(sl_device device)
{
	if (slp_engine.nworkers == 1) return slp_engine.nteams ? slp_engine.team_worker[0] : slp_engine.gpu_worker[0];
	if (device.kind < SL_DEVICE_CPU || device.index < 0) return -1;
	return slp_device_worker(device);
}

static atomic_int *tasks_of(int worker)
{
	return worker < 0 ? &idle.anywhere : &beds[worker].tasks;
}

void slp_idle_submitted(sl_device device)
{
	int worker = worker_of(device);
	atomic_fetch_add(tasks_of(worker), 1);
	slp_idle_wake_worker(worker);
}

/* Wakes workers whose tasks may have waited for this one. */
void slp_idle_ended(sl_device device)
{
	atomic_fetch_sub(tasks_of(worker_of(device)), 1);
	for (int i = 0; i < slp_engine.nworkers; i++)
		if (atomic_load_explicit(&beds[i].tasks, memory_order_relaxed) > 0) slp_idle_wake_worker(i);
	if (atomic_load(&idle.anywhere) > 0) slp_idle_wake_worker(-1);
}

void slp_idle_over(void)
{
	mine.polls = 0;
	atomic_store_explicit(&idle.core, sched_getcpu(), memory_order_relaxed);
}

bool slp_wait_beside_worker(void)
{
	return atomic_load_explicit(&idle.core, memory_order_relaxed) == sched_getcpu();
}

static unsigned rings(const struct bed *bed)
{
	return atomic_load(&idle.bell) + atomic_load(&bed->bell);
}

/* Until it is rung for, if it was not since the worker looked for a task. */
static void nap(struct bed *bed)
{
	uint64_t end = now_ns() + (slp_engine.ngpus || slp_engine.nslaves ? DEVICE_NAP_NS : NAP_NS);
	struct timespec t = {.tv_sec = (time_t)(end / 1000000000u), .tv_nsec = (long)(end % 1000000000u)};
	pthread_mutex_lock(&idle.lock);
	atomic_fetch_add(&idle.asleep, 1);
	bed->asleep = true;
	bool rung = rings(bed) != mine.heard;
	if (!rung) rung = pthread_cond_timedwait(&bed->rung, &idle.lock, &t) == 0;
	bed->asleep = false;
	atomic_fetch_sub(&idle.asleep, 1);
	pthread_mutex_unlock(&idle.lock);
	atomic_fetch_add(&slp_idle_counts.naps, 1);
	if (!rung) return;
	atomic_fetch_add(&slp_idle_counts.woken, 1);
	mine.until = now_ns() + ALERT_NS;
}

static void begin_idling(void)
{
	uint64_t now = now_ns();
	mine.until = now + AWAKE_NS;
	slp_throttle_given_away((int64_t)(now / 1000000));
}

/* The team's threads yield once in a while only: they poll a few milliseconds, then sleep by themselves. */
static unsigned without_work(void *unused)
{
	(void)unused;
	struct bed *bed = &beds[starpu_worker_get_id()];
	unsigned polls = mine.polls++;
	if (polls == 0) begin_idling();
	bool ends_wait = polls == 0 && atomic_load(&idle.waiting);
	if (ends_wait || polls % TEAM_POLLS == TEAM_POLLS - 1) slp_team_yield();
	else if (polls >= AWAKE_POLLS) sched_yield();
	if (polls >= AWAKE_POLLS && now_ns() >= mine.until) nap(bed);
	mine.heard = rings(bed);
	return 1; /* StarPU may block, too */
}

static void make_conditions(void)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	for (int i = 0; i < STARPU_NMAXWORKERS; i++) pthread_cond_init(&beds[i].rung, &attr);
	pthread_condattr_destroy(&attr);
}

void slp_idle_start(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static const char *const common[] = {"lws", "ws", "eager", "prio"}; /* others choose a worker at submission */
	if (sl_is_simulated()) return;                                      /* its workers take no time to poll */
	pthread_once(&once, make_conditions);
	idle.any_will_do = false;
	for (size_t i = 0; i < sizeof common / sizeof *common; i++)
		if (!strcmp(slp_engine.config.sched, common[i])) idle.any_will_do = true;
	idle.hook = starpu_idle_hook_register(without_work, NULL);
}

void slp_idle_stop(void)
{
	if (idle.hook >= 0) starpu_idle_hook_deregister(idle.hook);
	idle.hook = -1;
	slp_idle_wake();
}

/* Small work is waited for awake, letting others run; past that the thread sleeps between two looks. */
void slp_idle_between_looks(int look)
{
	enum { AWAKE = 128, LOOK_NS = 50 * 1000 };
	if (look < AWAKE) sched_yield();
	else nanosleep(&(struct timespec){0, LOOK_NS}, NULL);
}

void slp_wait_all_begin(void)
{
	atomic_fetch_add(&idle.waiting, 1);
}

void slp_wait_all_end(void)
{
	atomic_fetch_sub(&idle.waiting, 1);
}
