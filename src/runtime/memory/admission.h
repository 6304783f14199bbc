/* Tasks that fit together into the memory of a GPU (admission.c). */
#ifndef SLP_ADMISSION_H
#define SLP_ADMISSION_H

#include "runtime/task/record.h"
#include "starling/base.h"

/* Waits until the segment, whose slots are allocated, fits beside the tasks in flight on its GPUs, and counts it there.
 * False, with the reason: it never will. */
bool slp_admission_enter(struct slp_segment *segment, char *why, size_t size);
/* After that: if not all values fit on its GPU, requests the values that the segment reads. */
void slp_admission_prefetch(const struct slp_segment *segment);
/* The segments that are submitted now fit as they come, by a plan: there is nothing to wait for or to request.  Locked. */
extern bool slp_admission_planned;
bool slp_admission_short(void); /* whether a GPU's memory is nearly full */
/* Bytes that StarPU may use on a GPU, or on the smallest of all, or that spilled values may in main memory (spill.h); 0: no
 * limit is known. */
size_t slp_admission_room(sl_device device);
/* What a GPU has, for programs that the calling thread traces with a limit of memory; 0: there is none. */
extern _Thread_local size_t slp_admission_limit;
void slp_admission_leave(const struct slp_segment *segment); /* from a worker: it has ended */

#endif
