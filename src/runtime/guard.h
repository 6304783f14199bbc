/* Guards: a lock in each object that only one thread at a time may use.  A thread that holds no guard waits; one that
 * holds a guard, within a function of the program, gets SL_ESTATE with both places, so there are no deadlocks.  The
 * guards of a thread that ends are released. */
#ifndef SLP_GUARD_H
#define SLP_GUARD_H

#include "alloc.h"

struct slp_guard {
	_Atomic(struct slp_call *) owner; /* the thread that has entered it; NULL: none */
	atomic_int waiting;
	int depth;                          /* number of times that the owner has entered it */
	_Atomic(const char *) function, at; /* of the owner's call */
	struct slp_guard *next;             /* list of guards that the owner has entered */
};

extern _Thread_local struct slp_guard *slp_guards; /* of the calling thread, the last one first */
bool slp_guard_wait(struct slp_guard *g, const char *at, const char *function); /* function NULL: patiently */
void slp_guard_wake(void);
void slp_guards_abandon(void);
/* false: another thread holds it. */
static inline bool slp_guard_try(struct slp_guard *g)
{
	struct slp_call *me = &slp_current_call, *owner = NULL;
	if (!atomic_compare_exchange_strong_explicit(&g->owner, &owner, me, memory_order_acquire,
	                                             memory_order_relaxed)) {
		if (owner != me) return false;
		g->depth++;
		return true;
	}
	g->depth = 1;
	atomic_store_explicit(&g->function, me->function, memory_order_relaxed);
	atomic_store_explicit(&g->at, me->at, memory_order_relaxed);
	g->next = slp_guards;
	slp_guards = g;
	return true;
}

static inline struct slp_guard *slp_guard_enter(struct slp_guard *g, const char *at, const char *function)
{
	return slp_guard_try(g) || slp_guard_wait(g, at, function) ? g : NULL;
}

static inline void slp_guard_leave(struct slp_guard *const *entered)
{
	struct slp_guard *g = *entered, **p = &slp_guards;
	if (!g || --g->depth) return;
	while (*p && *p != g) p = &(*p)->next;
	if (*p) *p = g->next;
	atomic_store(&g->owner, NULL);
	if (atomic_load(&g->waiting)) slp_guard_wake();
}

/* The same for a lock that is held only briefly, or whose holder never waits: the thread always waits. */
#define SLP_GUARD_PATIENTLY(guard)                                                                                     \
	__attribute__((cleanup(slp_guard_leave), unused)) struct slp_guard *const slp_entered_ =                       \
	        slp_guard_enter(guard, NULL, NULL)

/* The rest of the function works with the object; it returns `otherwise`, with an error, if it cannot. */
#define SLP_GUARD(guard, at, function, otherwise)                                                                      \
	__attribute__((cleanup(slp_guard_leave))) struct slp_guard *const slp_entered_ =                               \
	        slp_guard_enter(guard, at, function);                                                                  \
	if (!slp_entered_) return otherwise

#endif
