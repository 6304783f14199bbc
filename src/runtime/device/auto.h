/* Tasks on the device `auto`: which GPU each of them gets, and to which devices the shards of a step are dealt (auto.c). */
#ifndef SLP_AUTO_H
#define SLP_AUTO_H

#include <stdbool.h>

#include "starling/base.h"

struct slp_segment;

/* placed: here, and not by the scheduling policy. */
void slp_auto_start(bool placed);
int slp_auto_gpus(void); /* among which tasks are placed; 0: the policy places them on all workers */
/* The number of devices to which shards may be dealt: GPUs, or CPU teams where there is no GPU; 0: the policy places all
 * tasks. */
int slp_auto_devices(void);

/* The calling thread submits a step whose shards are dealt to devices; one that is not split is shard 0. */
struct slp_auto_deal {
	int devices; /* the first ones; 0: each task is placed by itself */
	int most;    /* that the step may ever use */
	int shard;   /* whose program it is; -1: of all shards together */
};
extern _Thread_local struct slp_auto_deal slp_auto_deal;
static inline void slp_auto_deal_restore(const struct slp_auto_deal *before)
{
	slp_auto_deal = *before;
}
/* Stands before changes of slp_auto_deal: it is as before at the end of the C scope. */
#define SLP_AUTO_DEAL_SCOPE()                                                                                          \
	__attribute__((cleanup(slp_auto_deal_restore), unused)) const struct slp_auto_deal slp_auto_deal_before_ =     \
	        slp_auto_deal

/* The device to which shard i is dealt. */
sl_device slp_auto_dealt(int shard);
/* The device of the program of a shard with inputs on this one: programs for `auto` are cut for all CPU teams, and a team
 * that computes a shard alone needs the program of a named one. */
sl_device slp_auto_program(sl_device inputs);

/* The time of calls on a GPU, roughly. */
double slp_gpu_seconds(double flops, double bytes, int calls);
/* Where a program for GPUs on `auto` will run, as far as that is known before its tasks are submitted; else `device`. */
sl_device slp_auto_foreseen(sl_device device);
/* With the engine locked: chooses a GPU for a segment on `auto`, before it has its buffers; notes what becomes of these. */
void slp_auto_place(struct slp_segment *segment);
void slp_auto_note(const struct slp_segment *segment);
/* From a worker: a task of this device has ended. */
void slp_auto_ended(sl_device device);

#endif
