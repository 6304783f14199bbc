/* The parts of the choice of values that leave the device (offload_choose.c). */
#ifndef SLP_OFFLOAD_CHOICE_H
#define SLP_OFFLOAD_CHOICE_H

#include "graph/offload.h"

struct slp_offload_choice {
	const struct slp_offload_problem *p;
	struct slp_offload *o;
	int *begin, *last; /* of each value: its first and last use; -1: none */
	int *written;      /* the last unit that wrote it, the last run's to begin with; -1: none */
	int *shared;       /* its first gap since it was written; -1: none */
	int *seen;
	int max_gaps;
	int *taken; /* by gap that begins such a row: chosen ones */
	bool *best; /* by gap */
	bool *needed;
	long budget; /* of positions to look at, for exchanges */
};
enum slp_offload_rule { SLP_FARTHEST, SLP_FARTHEST_A_COPY, SLP_RELIEF, SLP_OFFLOAD_RULES };

/* offload_gaps.c: all gaps; false without memory. */
bool slp_offload_find_gaps(struct slp_offload_choice *c);
/* Neighbours that do not fit together run one after the other; false if a unit does not fit, *unit. */
bool slp_offload_find_needs(struct slp_offload_choice *c, int *unit, size_t *need);
/* Bytes on the device if no gap is chosen. */
void slp_offload_fill(const struct slp_offload_choice *c);

/* offload_choose.c: the gap is chosen, or not any more. */
void slp_offload_set(struct slp_offload_choice *c, struct slp_offload_gap *g, bool chosen);
/* The number of copies that the gap costs in addition. */
int slp_offload_copies(const struct slp_offload_choice *c, const struct slp_offload_gap *g);
/* Whether gap a is to be chosen rather than b, if they are worth as much: that with fewer copies, then the larger. */
bool slp_offload_is_better(const struct slp_offload_choice *c, int a, int b);

/* offload_farthest.c: chooses gaps by the next use, or by its distance for each copy, until all fits. */
bool slp_offload_cover(struct slp_offload_choice *c, enum slp_offload_rule rule);

#endif
