/* What fits into the memory of a GPU together (admission.c). */
#ifndef SLP_ADMISSION_H
#define SLP_ADMISSION_H

#include "runtime/record.h"

/* Waits until the segment, whose slots are allocated, has room beside those under way on its GPUs, and counts it there.
 * False, with the reason: it never will. */
bool slp_admission_enter(struct slp_segment *segment, char *why, size_t size);
void slp_admission_leave(const struct slp_segment *segment); /* from a worker: it has ended */

#endif
