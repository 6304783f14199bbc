/* Beside other programs, a team's idle threads sleep at once.
 *
 * After a parallel region OpenMP's threads poll for the next one for some milliseconds, which is faster than sleeping where
 * they have the cores to themselves.  Where other programs want these cores, a polling thread takes the core from one
 * with work: two LeNets on two cores took 4 to 10 times as long as one alone.  So once a worker loses its core again and
 * again within a task, its team's threads poll for some microseconds only, until that has stopped for a while.
 *
 * libgomp has no call for it, but does so by itself in a process that has more OpenMP threads than hardware threads; a
 * crowd of threads that sleep in a parallel region of their own makes it one.  LLVM's has a call.  OMP_WAIT_POLICY and
 * the like have the last word. */
#include <dlfcn.h>
#include <hwloc.h>
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/device/cores.h"
#include "runtime/device/idle.h"
#include "runtime/device/team.h"
#include "runtime/device/throttle.h"
#include "runtime/forked.h"

enum {
	WINDOW_MS = 50, /* in which switches are counted */
	MANY = 3,       /* of them in a window */
	HOLD_MS = 500   /* after the last window of many */
};

static _Atomic int64_t until; /* in ms: other programs want the cores */

/* A span is the time between two yields of a worker; spans are added up until they fill a window. */
static _Thread_local struct {
	bool known, settled; /* whether the user has said how threads wait, so that nothing is to be done */
	bool open;           /* a span is: since `begin`, when the worker had lost its core `before` times */
	int64_t begin, ms;   /* ms: the sum of the spans before */
	long before, lost;   /* lost: how many times the worker lost its core in them */
	bool short_polls;    /* that LLVM's OpenMP was told */
} mine;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t over;
	unsigned turn; /* odd: a crowd is there */
	pthread_t keeper;
} crowd = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};

static void reset_in_child(void)
{
	memset(&crowd, 0, sizeof crowd);
	pthread_mutex_init(&crowd.lock, NULL);
	pthread_cond_init(&crowd.over, NULL);
	atomic_store(&until, 0);
}
SLP_AT_FORK(reset_in_child);

/* ---- libgomp's --------------------------------------------------------------------------------------------------- */

/* Of the process; more than libgomp counts is harmless. */
static int hardware_threads(void)
{
	hwloc_bitmap_t set = hwloc_bitmap_alloc();
	if (!set) return 0;
	slp_cores_set(0, 0, set);
	int n = hwloc_bitmap_weight(set);
	hwloc_bitmap_free(set);
	return n;
}

static void sleep_while(unsigned turn)
{
	pthread_mutex_lock(&crowd.lock);
	while (crowd.turn == turn) pthread_cond_wait(&crowd.over, &crowd.lock);
	pthread_mutex_unlock(&crowd.lock);
}

/* Once it ends, so do its threads. */
static void *keep_crowd(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&crowd.lock);
	unsigned turn = crowd.turn;
	pthread_mutex_unlock(&crowd.lock);
	if (turn % 2 == 0) return NULL; /* it was short */
	omp_set_dynamic(0);
#pragma omp parallel num_threads(hardware_threads() + 1)
	sleep_while(turn);
	return NULL;
}

/* Under the lock, which it gives away. */
static void end_crowd(void)
{
	bool there = crowd.turn % 2;
	pthread_t keeper = crowd.keeper;
	if (there) crowd.turn++;
	pthread_cond_broadcast(&crowd.over);
	pthread_mutex_unlock(&crowd.lock);
	if (there) pthread_join(keeper, NULL);
}

/* Under the lock, which it gives away. */
static void begin_crowd(void)
{
	if (crowd.turn % 2 == 0 && !pthread_create(&crowd.keeper, NULL, keep_crowd, NULL)) crowd.turn++;
	pthread_mutex_unlock(&crowd.lock);
}

static void set_crowd(bool there)
{
	if (pthread_mutex_trylock(&crowd.lock)) return; /* another worker is at it */
	if (there) begin_crowd();
	else end_crowd();
}

/* ---- LLVM's ------------------------------------------------------------------------------------------------------ */

/* Programs linked with libgomp lack its functions. */
static void set_llvm(bool short_polls)
{
	static _Thread_local int usual;
	int (*get)(void);
	void (*set)(int);
	if (short_polls == mine.short_polls) return;
	*(void **)&get = dlsym(RTLD_DEFAULT, "kmp_get_blocktime");
	*(void **)&set = dlsym(RTLD_DEFAULT, "kmp_set_blocktime");
	if (!get || !set) return;
	if (short_polls) usual = get();
	set(short_polls ? 0 : usual);
	mine.short_polls = short_polls;
}

/* ---- whether it is needed ---------------------------------------------------------------------------------------- */

/* With more threads than hardware, libgomp's poll briefly anyway. */
static bool is_settled(void)
{
	static const char *const names[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (getenv(names[i])) return true;
	return slp_team_size() < 2 || (!slp_team_by_llvm() && slp_team_size() > hardware_threads());
}

/* Number of times that the calling thread lost its core though it wanted it, or called sched_yield. */
static long switches(void)
{
	struct rusage u;
	return getrusage(RUSAGE_THREAD, &u) ? 0 : u.ru_nivcsw;
}

static void open_span(int64_t now)
{
	mine.open = true;
	mine.begin = now;
	mine.before = switches();
}

static void close_span(int64_t now)
{
	mine.open = false;
	mine.ms += now - mine.begin;
	mine.lost += switches() - mine.before;
}

void slp_throttle(bool on)
{
	if (slp_team_by_llvm()) set_llvm(on);
	else set_crowd(on);
}

static void judge(int64_t now)
{
	if (mine.lost >= MANY * mine.ms / WINDOW_MS) {
		atomic_fetch_add(&slp_idle_counts.crowded, 1);
		atomic_store(&until, now + HOLD_MS);
	}
	mine.ms = mine.lost = 0;
	slp_throttle(now < atomic_load(&until));
}

void slp_throttle_look(int64_t now)
{
	if (!mine.known) mine.settled = is_settled();
	mine.known = true;
	if (mine.settled || (mine.open && mine.ms + now - mine.begin < WINDOW_MS)) return;
	if (mine.open) {
		close_span(now);
		judge(now);
	}
	open_span(now);
}

void slp_throttle_given_away(int64_t now)
{
	if (mine.open) close_span(now);
}

void slp_throttle_stop(void)
{
	pthread_mutex_lock(&crowd.lock);
	end_crowd();
}
