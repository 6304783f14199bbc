/* Training drivers in several processes (dist.h): each rank trains on its rows of every batch, rank 0 prints and writes,
 * and all ranks stop at the same step. */
#ifndef MODELS_DRIVER_RANKS_H
#define MODELS_DRIVER_RANKS_H

#include "common.h"

#define DRV_DISTRIBUTED_HELP "Train together with other processes; sl-launch, mpirun or another launcher starts them"

/* To call before drv_start, with whether --distributed was given. */
bool drv_distributed_ask(bool distributed);
/* To call after drv_start: this rank's rows of each batch, and who prints; false with a message. */
bool drv_distributed_split(struct drv_options *common, int64_t *batch_size);
double drv_sum_over_ranks(double value);

enum { DRV_STOPPED = DRV_INTERRUPTED + 15, DRV_ASKED = 2 }; /* as after SIGTERM: another process was interrupted */
/* Begins with zeros. */
struct drv_stops {
	sl_tensor *asked[DRV_ASKED]; /* of other ranks, whether they were interrupted */
	int64_t asks;
	bool stopped;
};
/* Whether the run stops before the next step; all ranks call it at each step. */
bool drv_stops(struct drv_stops *s);
void drv_stops_end(struct drv_stops *s);

#endif
