/* What all training drivers do as one of several processes (dist.h): each rank takes its rows of every batch, rank 0
 * speaks and writes, and all stop at the same step. */
#ifndef MODELS_DRIVER_RANKS_H
#define MODELS_DRIVER_RANKS_H

#include "common.h"

#define DRV_DISTRIBUTED_HELP "Train together with other processes; sl-launch, mpirun or another launcher starts them"

/* Before drv_start: --distributed was given. */
bool drv_distributed_ask(bool distributed);
/* After it: the rows that this rank takes of each batch, and who prints; says why that cannot be. */
bool drv_distributed_split(struct drv_options *common, int64_t *batch_size);
double drv_sum_over_ranks(double value);

enum { DRV_STOPPED = DRV_INTERRUPTED + 15, DRV_ASKED = 2 }; /* as after SIGTERM: another process was interrupted */
/* All zero at first. */
struct drv_stops {
	sl_tensor *asked[DRV_ASKED]; /* of other ranks, whether they were interrupted */
	int64_t asks;
	bool stopped;
};
/* Whether the run is to stop before the coming step; all ranks ask at each step. */
bool drv_stops(struct drv_stops *s);
void drv_stops_end(struct drv_stops *s);

#endif
