/* Time by layer within tasks: the block of each call of a task, and the times of calls (layers.c). */
#ifndef SLP_LAYERS_H
#define SLP_LAYERS_H

#include "runtime/task/record.h"

/* The blocks that a list's calls belong to, in the order of their first calls. */
struct slp_layers {
	int count;
	char **paths;   /* "net0/conv1"; "": in none */
	double *weight; /* estimated time of each, from operations and bytes */
	int *of_call;
};

/* NULL without memory. */
struct slp_layers *slp_layers_of(const struct slp_call_list *p);
void slp_layers_free(struct slp_layers *layers);

/* sl_profile_start was called. */
extern atomic_bool slp_profile_on;

/* The times of one run of a segment's calls, by a worker. */
struct slp_laps {
	const struct slp_segment *segment;
	double *seconds; /* by layer; NULL: not requested, or no memory */
	double since;
	bool cuda;
};
void slp_laps_begin(struct slp_laps *laps, const struct slp_segment *segment, bool cuda);
/* A call has run. */
void slp_laps_call(struct slp_laps *laps, int number, const struct slp_record *call);
void slp_laps_end(struct slp_laps *laps);

/* Whether times are requested.  A GPU's work ends later than its call: profiles wait for it, traces do not. */
static inline bool slp_laps_wanted(const struct slp_segment *segment, bool cuda)
{
	return atomic_load_explicit(&slp_profile_on, memory_order_relaxed) || (segment->layers && !cuda);
}

#endif
