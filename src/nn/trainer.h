/* Trainers from the inside. */
#ifndef SLP_TRAINER_H
#define SLP_TRAINER_H

#include "nn/nn.h"

/* The optimiser has two at most; the master, in float32, is that of a parameter in a half type. */
enum { SLP_TRAINER_STATES = 3, SLP_TRAINER_MASTER = SLP_TRAINER_STATES - 1 };

struct sl_trainer {
	sl_block *block; /* held */
	struct sl_optimizer optimizer;
	sl_param **params;
	int count;
	sl_tensor **states[SLP_TRAINER_STATES]; /* one a parameter, made at its first update */
	int nstates; /* of the optimiser */
	unsigned *versions; /* one a parameter: its own when its master was made or rounded to it */
	sl_device *owners; /* one a parameter: where it is updated; DEFAULT: where it is */
	int *buckets;      /* one a parameter: those whose gradients are added together */
	int64_t steps;
	struct slp_ranks *ranks; /* in one of several processes; NULL before the first step */
	bool local;              /* the others do not matter */
};

/* masters.c */
/* Parameter i has just been rounded to its master, or this made of it. */
void slp_trainer_master_is_new(sl_trainer *trainer, int i);

#endif
