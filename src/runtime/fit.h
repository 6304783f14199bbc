/* What fits into the memory of a GPU together (fit.c). */
#ifndef SLP_FIT_H
#define SLP_FIT_H

#include "runtime/segment.h"

/* Waits until the segment, whose slots are placed, has room beside those under way on its GPUs, and counts it there.
 * False, with the reason: it never will. */
bool slp_fit_enter(struct slp_segment *segment, char *why, size_t size);
void slp_fit_leave(const struct slp_segment *segment); /* from a worker: it has ended */

#endif
