/* Random streams: the numbers that an operation draws, within programs and across processes (random.c). */
#ifndef SLP_RANDOM_STREAMS_H
#define SLP_RANDOM_STREAMS_H

#include <stdbool.h>

#include "op.h"

struct slp_rng slp_rng_take(int count); /* the first of `count` real ones */
/* The same in each of several processes, which draw different ones and as many. */
struct slp_rng slp_rng_take_apart(int count);
void slp_rng_share(int rank, int ranks); /* the processes */
/* The streams that a part of a program draws, to be drawn again when it is repeated. */
struct slp_rng_log {
	struct slp_rng *list;
	int count, capacity, next;
	const int *owner; /* slp_draws.count as it was: draws for another program are not noted */
	bool failed;      /* there was no memory */
};
/* The context of this thread's draws. */
struct slp_draws {
	int *count; /* of virtual streams that slp_rng_next gives out; NULL: it gives real ones */
	struct slp_rng_log *notes, *repeats; /* starts to note draws, or returns the noted ones; NULL: not */
};
extern _Thread_local struct slp_draws slp_draws;
static inline void slp_draws_restore(const struct slp_draws *before)
{
	slp_draws = *before;
}
/* Stands before changes of slp_draws: it is as before at the end of the C scope. */
#define SLP_DRAWS_SCOPE()                                                                                              \
	__attribute__((cleanup(slp_draws_restore), unused)) const struct slp_draws slp_draws_before_ = slp_draws

#endif
