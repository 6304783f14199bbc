/* When copies begin (offload_when.c), the steps that follow from it, and how long a run with them takes. */
#ifndef SLP_OFFLOAD_TIMES_H
#define SLP_OFFLOAD_TIMES_H

#include "graph/offload.h"

struct slp_offload_times {
	const struct slp_offload_problem *p;
	struct slp_offload *o;
	double *begin;      /* of each unit, if nothing waits for copies; last: the end */
	int *order;         /* gaps by the unit that needs their value */
	double *done;       /* by gap: the end of the copy that it shares */
	bool placed;        /* stays have offsets */
	int *ends, *begins; /* by gap: the stay that ends and the one that begins with it; -1: none */
	int *last; /* by stay: the last unit of this run that lets go of memory at its place; negative: none does */
};

static inline int slp_offload_folded(const struct slp_offload_times *w, int position)
{
	int n = w->p->nunits;
	return ((position % n) + n) % n;
}

static inline double slp_offload_out_seconds(const struct slp_offload_times *w, int value)
{
	return w->p->out_latency + (double)w->p->bytes[value] / w->p->out_bytes;
}

static inline double slp_offload_in_seconds(const struct slp_offload_times *w, int value)
{
	return w->p->in_latency + (double)w->p->bytes[value] / w->p->in_bytes;
}

/* Whether there is another value behind the gap: an input of the next run. */
static inline bool slp_offload_is_new(const struct slp_offload_times *w, const struct slp_offload_gap *g)
{
	return w->p->kind[g->value] == SLP_OFFLOAD_INPUT && g->before >= w->p->nunits;
}

/* offload_steps.c: false without memory. */
bool slp_offload_list_steps(struct slp_offload_times *w);
/* offload_predict.c: of a run like those before it; false without memory. */
bool slp_offload_predict(struct slp_offload_times *w);

#endif
