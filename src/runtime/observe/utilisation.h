/* Busy time of workers. */
#ifndef SLP_UTILISATION_H
#define SLP_UTILISATION_H

#include "starling/base.h"

/* From now on StarPU measures the time of each task.  It clears its counters of links: call slp_stats_links before. */
void slp_utilisation_start(void);
/* Tasks of programs with a limit of memory (graph/plan_offload.c): the first of a program; one behind another one, for whose
 * end or for whose copies it waits. */
enum slp_turn { SLP_TURN_NONE, SLP_TURN_FIRST, SLP_TURN_NEXT };
/* A task has ended: adds its time, and, in such a program, the time in which the worker waited before it to the counters of
 * observe/stats.h; called from its callback. */
void slp_utilisation_add(double flops, enum slp_turn turn);

struct slp_utilisation {
	double seconds; /* that some task ran */
	double flops;   /* of these tasks */
};
/* Of a device since slp_utilisation_start; of all workers of a kind for cpu and gpu, of all for auto. */
struct slp_utilisation slp_utilisation_of(sl_device device);

#endif
