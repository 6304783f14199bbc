/* The gate: the threads that are in calls, closing it, and deferred freeing. */
#include "op.h"
#include "runtime/compat.h"
#include "runtime/gate.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/guard.h"
#include "runtime/uncancelled.h"

enum { CLOSED = 1, LATER = 2, BARRIERS = 4 }; /* BARRIERS: the system has none for all threads, so each makes its own */

_Thread_local struct slp_call slp_current_call;
atomic_uint slp_gate;

/* An object to be freed, and the threads whose calls it waits for. */
struct later {
	struct later *next;
	void (*free)(void *);
	void *what;
	int count;
	struct {
		const struct slp_call *call; /* NULL: the thread has gone */
		unsigned turn;
	} who[];
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* the gate was opened, or a call has ended while it was closed */
	struct slp_call *callers;
	int ncallers;
	const struct slp_call *closer; /* of the thread that closes it; NULL: none */
	struct later *laters;
	pthread_key_t key;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Threads that a fork has left behind; their memory may be used again. */
static struct {
	const struct slp_call **list;
	int count;
} lost;

static unsigned turn_of(const struct slp_call *c)
{
	return atomic_load_explicit(&c->turn, memory_order_acquire);
}

static void count_turn(void)
{
	atomic_fetch_add(&slp_current_call.turn, 1);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static struct later *take_passed(void);
static void free_all(struct later *list);

/* A thread ends, perhaps by pthread_exit within a call. */
static void gone(void *arg)
{
	struct slp_call *call = arg, **p = &gate.callers;
	slp_guards_abandon();
	pthread_mutex_lock(&gate.lock);
	while (*p && *p != call) p = &(*p)->next;
	if (*p) {
		*p = call->next;
		gate.ncallers--;
	}
	for (struct later *l = gate.laters; l; l = l->next)
		for (int i = 0; i < l->count; i++)
			if (l->who[i].call == call) l->who[i].call = NULL;
	call->known = false;
	call->at = NULL;
	if (turn_of(call) % 2) count_turn();
	struct later *passed = take_passed();
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
	free_all(passed);
}

static void prepare(void)
{
	(void)pthread_key_create(&gate.key, gone);
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
		atomic_fetch_or(&slp_gate, BARRIERS);
}

static void introduce(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct slp_call *c = &slp_current_call;
	pthread_once(&once, prepare);
	pthread_mutex_lock(&gate.lock);
	c->next = gate.callers;
	gate.callers = c;
	gate.ncallers++;
	c->known = true;
	for (int i = 0; i < lost.count; i++)
		if (lost.list[i] == c) lost.list[i] = NULL;
	pthread_mutex_unlock(&gate.lock);
	(void)pthread_setspecific(gate.key, c);
}

/* After it, turns of other threads are seen here, or what was written before is seen there.  Locked. */
static void barrier(void)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (gate.ncallers > 1 && !(atomic_load(&slp_gate) & BARRIERS))
		(void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

/* ---- entering and leaving ---------------------------------------------------------------------------------------- */

/* Workers pass: whoever closes the gate waits for them. */
static bool must_wait(void)
{
	return atomic_load(&slp_gate) & CLOSED && gate.closer != &slp_current_call &&
	       !(sl_is_initialized() && starpu_worker_get_id() >= 0);
}

void slp_gate_enter(void)
{
	SLP_UNCANCELLED();
	if (!slp_current_call.known) introduce();
	atomic_thread_fence(memory_order_seq_cst);
	if (!(atomic_load(&slp_gate) & CLOSED)) return;
	pthread_mutex_lock(&gate.lock);
	while (must_wait()) {
		count_turn(); /* out again */
		pthread_cond_broadcast(&gate.changed);
		while (must_wait()) pthread_cond_wait(&gate.changed, &gate.lock);
		count_turn();
	}
	pthread_mutex_unlock(&gate.lock);
}

void slp_gate_leave(void)
{
	SLP_UNCANCELLED();
	if (!(atomic_load(&slp_gate) & (CLOSED | LATER))) return;
	pthread_mutex_lock(&gate.lock);
	struct later *passed = take_passed();
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
	free_all(passed);
}

void slp_call_pause(struct slp_paused *call)
{
	*call = (struct slp_paused){slp_current_call.function, slp_current_call.at};
	bool outermost = true;
	if (call->at) slp_call_leave(&outermost);
}

void slp_call_resume(const struct slp_paused *call)
{
	if (call->at) (void)slp_call_enter(call->function, call->at);
}

/* ---- closing ----------------------------------------------------------------------------------------------------- */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_until(double time)
{
	struct timespec t = {.tv_sec = (time_t)time};
	t.tv_nsec = (long)(1e9 * (time - (double)t.tv_sec));
	pthread_cond_timedwait(&gate.changed, &gate.lock, &t);
}

/* Another thread that is in a call; NULL: none. */
static const struct slp_call *inside(void)
{
	for (const struct slp_call *c = gate.callers; c; c = c->next)
		if (c != &slp_current_call && turn_of(c) % 2) return c;
	return NULL;
}

static bool drained_until(double time)
{
	atomic_fetch_or(&slp_gate, CLOSED);
	barrier();
	while (inside() && now() < time) wait_until(time);
	return !inside();
}

static void open_gate(void)
{
	atomic_fetch_and(&slp_gate, ~(unsigned)CLOSED);
	pthread_cond_broadcast(&gate.changed);
}

static bool refuse(const char *function)
{
	char text[256] = "another thread";
	const struct slp_call *c = inside();
	if (c) snprintf(text, sizeof text, "%s at %s", c->function, c->at ? c->at : "?");
	slp_call_fail("?", function, SL_ESTATE, "%s has not returned; the engine goes on", text);
	return false;
}

/* The thread is in no call as long as another one has closed the gate: that one waits for it. */
static void wait_for_turn(void)
{
	count_turn();
	pthread_cond_broadcast(&gate.changed);
	while (gate.closer) pthread_cond_wait(&gate.changed, &gate.lock);
	gate.closer = &slp_current_call;
	count_turn();
}

bool slp_calls_stop(const char *function, double seconds)
{
	SLP_UNCANCELLED();
	const double closed = 0.5, opened = 0.01; /* seconds */
	double end = now() + seconds;
	pthread_mutex_lock(&gate.lock);
	wait_for_turn();
	bool ok = drained_until(now() + closed);
	while (!ok && (seconds == 0 || now() < end)) {
		open_gate();
		double until = now() + opened;
		while (now() < until) wait_until(until);
		ok = drained_until(now() + closed);
	}
	if (!ok) {
		refuse(function);
		gate.closer = NULL;
		open_gate();
	}
	pthread_mutex_unlock(&gate.lock);
	return ok;
}

void slp_calls_go_on(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.closer = NULL;
	open_gate();
	pthread_mutex_unlock(&gate.lock);
}

bool slp_call_is_lost(const struct slp_call *call)
{
	for (int i = 0; i < lost.count; i++)
		if (lost.list[i] == call) return true;
	return false;
}

static void note_lost(void)
{
	free(lost.list);
	lost.count = 0;
	lost.list = slp_try_calloc((size_t)gate.ncallers + 1, sizeof *lost.list);
	for (const struct slp_call *c = gate.callers; lost.list && c && lost.count < gate.ncallers; c = c->next)
		if (c != &slp_current_call) lost.list[lost.count++] = c;
}

void slp_gate_forked(void)
{
	struct slp_call *me = &slp_current_call;
	note_lost();
	pthread_mutex_init(&gate.lock, NULL);
	pthread_cond_init(&gate.changed, NULL);
	gate.closer = NULL;
	gate.callers = me->known ? me : NULL;
	gate.ncallers = me->known;
	gate.laters = NULL;
	me->next = NULL;
	atomic_fetch_and(&slp_gate, BARRIERS);
}

/* ---- later ------------------------------------------------------------------------------------------------------- */

static bool has_passed(const struct later *l)
{
	for (int i = 0; i < l->count; i++)
		if (l->who[i].call && turn_of(l->who[i].call) == l->who[i].turn) return false;
	return true;
}

/* Takes out entries whose calls have all ended.  Locked. */
static struct later *take_passed(void)
{
	struct later *passed = NULL;
	for (struct later **p = &gate.laters, *l; (l = *p);) {
		if (!has_passed(l)) {
			p = &l->next;
			continue;
		}
		*p = l->next;
		l->next = passed;
		passed = l;
	}
	if (!gate.laters) atomic_fetch_and(&slp_gate, ~(unsigned)LATER);
	return passed;
}

static void free_all(struct later *list)
{
	for (struct later *l; (l = list);) {
		list = l->next;
		l->free(l->what);
		free(l);
	}
}

void slp_later(void (*free_it)(void *), void *what)
{
	if (!what) return;
	pthread_mutex_lock(&gate.lock);
	struct later *l = slp_try_malloc(sizeof *l + (size_t)gate.ncallers * sizeof *l->who);
	barrier();
	if (!l) { /* memory that another thread may read stays */
		bool alone = !inside();
		pthread_mutex_unlock(&gate.lock);
		if (alone) free_it(what);
		return;
	}
	*l = (struct later){.free = free_it, .what = what};
	for (const struct slp_call *c = gate.callers; c; c = c->next) {
		unsigned turn = turn_of(c);
		if (turn % 2) l->who[l->count].call = c, l->who[l->count++].turn = turn;
	}
	l->next = gate.laters;
	gate.laters = l;
	atomic_fetch_or(&slp_gate, LATER);
	struct later *passed = take_passed();
	pthread_mutex_unlock(&gate.lock);
	free_all(passed);
}
