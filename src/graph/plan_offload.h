/* The copies of a plan under a limit of memory: plan_offload.c makes them, plan_offload_run.c requests them,
 * plan_offload_rest.c plans them beside what rests on the GPU. */
#ifndef SLP_PLAN_OFFLOAD_H
#define SLP_PLAN_OFFLOAD_H

#include "graph/offload.h"
#include "graph/plan.h"

struct slp_plan_offload {
	struct slp_offload_problem problem;
	struct slp_offload plan;
	struct slp_offload_unit *units;
	struct slp_offload_use *uses;
	size_t *bytes;
	enum slp_offload_kind *kinds;
	struct slp_location *where; /* of each value */
	struct slp_storage **now;   /* in the present run */
	size_t *fixed;              /* by value of the problem: its place beside what rests there; NULL: all are free */
	uint64_t beside;   /* what rested when the copies were planned beside it, as a number; 0: nothing did */
	int again, others; /* how often they were; room for values that stand for memory of others */
	bool behind;       /* another program ran before this run */
	int nvalues, max_values, nuses, max_uses;
	int *table; /* to find values while the problem is made */
	size_t mask;
	unsigned node;      /* of the GPU's memory */
	double exposed;     /* seconds of a run in which operations wait for copies */
	size_t most;        /* bytes for places that the limit allows */
	bool grows;         /* the heap that other programs have is too small */
	size_t small, heap; /* bytes of small values; of the heap for them and for the memory that kernels work in */
};

/* Before a run of a program that changes no parameter, behind another program's: values of that one that rest on the GPU
 * stay there, if there is room.  The engine is locked. */
void slp_plan_offload_rest(sl_plan *p);
/* Enters the copies and times of the plan in the information about the program. */
static inline void slp_plan_offload_note(sl_plan *p)
{
	const struct slp_offload *plan = &p->offload->plan;
	p->info.copied_out = plan->out_bytes;
	p->info.copied_in = plan->in_bytes;
	p->info.busy_seconds = plan->busy;
	p->info.run_seconds = plan->seconds;
}
/* A program is gone. */
void slp_plan_offload_forget(const struct slp_plan_offload *o);

#endif
