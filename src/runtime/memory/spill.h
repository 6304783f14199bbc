/* Values in a file while main memory is too small for all (spill.c). */
#ifndef SLP_SPILL_H
#define SLP_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "starling/base.h"

struct slp_buffer;
struct slp_segment;

/* The engine starts: SL_OK also if nothing is to be spilled; and stops.  alone: there are no other processes. */
enum sl_status slp_spill_start(const char *at, bool alone);
void slp_spill_stop(void);
/* Bytes of values that may be in memory; 0: nothing is spilled. */
size_t slp_spill_room(void);

/* Whether a buffer of that size is spilled; smaller ones always have memory. */
bool slp_spill_takes(size_t bytes);
/* Makes the buffer one that has memory only at times; false without memory.  It must be given up before it is freed. */
bool slp_spill_enlist(struct slp_buffer *buffer);
void slp_spill_discharge(struct slp_buffer *buffer);
void slp_spill_dead(struct slp_buffer *buffer); /* nothing will read its values */

/* A segment that is submitted will use its buffers.  Locked. */
void slp_spill_foresee(struct slp_segment *segment);
/* Brings all values of the segment that runs into memory, and keeps them there until slp_spill_leave.  Else `why` has
 * the reason. */
enum sl_status slp_spill_enter(struct slp_segment *segment, char *why, size_t size);
void slp_spill_leave(struct slp_segment *segment);
/* The same of one buffer, for the program itself; NULL: `why` has the reason. */
void *slp_spill_hold(struct slp_buffer *buffer, char *why, size_t size);
void slp_spill_release(struct slp_buffer *buffer, bool written);
void *slp_spill_memory(const struct slp_buffer *buffer); /* of one that is held */

/* Since the engine started. */
struct slp_spill_counts {
	uint64_t written, read;             /* bytes to the file, and from it */
	double write_seconds, read_seconds; /* in accesses */
	double waited;                      /* seconds that tasks and the program have waited for values */
};
struct slp_spill_counts slp_spill_counts(void);

#endif
