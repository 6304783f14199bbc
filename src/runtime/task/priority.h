/* Priorities of tasks: the order of ready tasks, under policies that sort by them.
 *
 * Runs of plans take turns: tasks of an earlier run come before those of a later one, so that no run waits for all
 * later ones.  Within a turn levels decide. */
#ifndef SLP_PRIORITY_H
#define SLP_PRIORITY_H

#include "runtime/compat.h"
#include "starling/base.h"

/* Tasks of plans have levels below those of calls, by the amount of work after them.  The work after a call is not
 * known, and it may feed the plans: rows that are copied to a device for the next step must not wait for this one. */
enum {
	SLP_LEVEL_LAST = -1021, /* of a plan, a task without successors */
	SLP_LEVEL_FIRST = -1,   /* the task at the head of the critical path */
	SLP_LEVEL_CALL = 0,
	SLP_LEVEL_BACKWARD, /* a call of a backward pass */
	SLP_LEVEL_SUM,      /* sums over devices, and updates by them: other devices wait for their results */
	SLP_LEVELS = SLP_LEVEL_SUM + 1 - SLP_LEVEL_LAST
};

/* The level of the calling thread's calls. */
extern _Thread_local int slp_level;
/* Raises it; returns the previous one, for slp_level_leave. */
static inline int slp_level_enter(int level)
{
	int outer = slp_level;
	if (level > outer) slp_level = level;
	return outer;
}
static inline void slp_level_leave(int outer)
{
	slp_level = outer;
}

/* The calling thread runs a plan: the next turn begins, unless the runs of one step share it. */
void slp_turn_next(void);
/* The next turn begins, which all runs until the end of the C scope share. */
bool slp_turn_share(void);
void slp_turn_unshare(const bool *before);
#define SLP_TURN_SHARED()                                                                                              \
	__attribute__((cleanup(slp_turn_unshare), unused)) const bool slp_turn_before_ = slp_turn_share()

/* Before StarPU starts: has it call a policy as priorities need it; an error if it cannot. */
enum sl_status slp_priority_prepare(const char *at, const char *policy, struct starpu_conf *conf);
/* After: finds out which priorities its policy takes. */
void slp_priority_start(bool wanted);
/* Whether tasks get any: the policy sorts by them, and there are several workers to share tasks. */
bool slp_priority_is_used(void);
/* The priority of a task of this level in the present turn; whether it is bound to a worker is known already. */
int slp_priority_of(int level, const struct starpu_task *task);

#endif
