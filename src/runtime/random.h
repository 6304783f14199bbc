/* Random streams: which numbers an operation draws, within programs and across processes (random.c). */
#ifndef SLP_RANDOM_STREAMS_H
#define SLP_RANDOM_STREAMS_H

#include <stdbool.h>

#include "op.h"

/* Counts the virtual streams that slp_rng_next gives out in this thread; NULL: it gives real ones. */
extern _Thread_local int *slp_rng_virtual;
struct slp_rng slp_rng_take(int count); /* the first of so many real ones */
/* The same in each of several processes, which draw different ones and as many. */
struct slp_rng slp_rng_take_apart(int count);
void slp_rng_share(int rank, int ranks); /* the processes */
/* The streams that a part of a program draws, to be drawn again when it is repeated. */
struct slp_rng_log {
	struct slp_rng *list;
	int count, capacity, next;
	const int *owner; /* slp_rng_virtual as it was: what others draw meanwhile is not noted */
	bool failed;      /* there was no memory */
};
/* Of this thread: notes what is drawn; gives what was noted.  Either may be NULL. */
extern _Thread_local struct slp_rng_log *slp_rng_notes, *slp_rng_repeats;

#endif
