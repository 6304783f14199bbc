/* Guards: waiting for the thread that works with an object. */
#include "op.h"
#include "runtime/engine.h"
#include "runtime/forked.h"
#include "runtime/gate.h"
#include "runtime/guard.h"

#include "runtime/uncancelled.h"

_Thread_local struct slp_guard *slp_guards;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t left = PTHREAD_COND_INITIALIZER; /* a guard with a waiting thread */

static void reset_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_cond_init(&left, NULL);
}
SLP_AT_FORK(reset_in_child);

static bool refuse(struct slp_guard *g, const char *at, const char *function)
{
	const char *its = atomic_load(&g->function), *its_at = atomic_load(&g->at);
	const char *my = atomic_load(&slp_guards->function), *my_at = atomic_load(&slp_guards->at);
	slp_call_fail(
	        at, function, SL_ESTATE,
	        "another thread works with the object, in %s at %s, and a call within %s at %s does not wait for it",
	        its ? its : "a call", its_at ? its_at : "?", my ? my : "a call", my_at ? my_at : "?");
	return false;
}

/* Its owner is in the process that this one was forked from.  What waits patiently takes the guard over: such pieces are
 * short. */
static bool is_left_behind(struct slp_guard *g, const char *at, const char *function)
{
	struct slp_call *owner = atomic_load(&g->owner);
	if (!slp_engine.forked || !owner || !slp_call_is_lost(owner)) return false;
	if (!function) {
		atomic_compare_exchange_strong(&g->owner, &owner, NULL);
		return false;
	}
	const char *its = atomic_load(&g->function), *its_at = atomic_load(&g->at);
	slp_call_fail(at, function, SL_ESTATE,
	              "another thread worked with the object, in %s at %s, when this process was forked",
	              its ? its : "a call", its_at ? its_at : "?");
	return true;
}

bool slp_guard_wait(struct slp_guard *g, const char *at, const char *function)
{
	SLP_UNCANCELLED();
	if (is_left_behind(g, at, function)) return false;
	if (slp_guards && function) return refuse(g, at, function);
	pthread_mutex_lock(&lock);
	atomic_fetch_add(&g->waiting, 1);
	while (!slp_guard_try(g)) pthread_cond_wait(&left, &lock);
	atomic_fetch_sub(&g->waiting, 1);
	pthread_mutex_unlock(&lock);
	return true;
}

void slp_guard_wake(void)
{
	pthread_mutex_lock(&lock);
	pthread_cond_broadcast(&left);
	pthread_mutex_unlock(&lock);
}

/* A thread ends within a call, by pthread_exit in a function of the program's. */
void slp_guards_abandon(void)
{
	for (struct slp_guard *g; (g = slp_guards);) {
		g->depth = 1;
		slp_guard_leave(&g);
	}
}
