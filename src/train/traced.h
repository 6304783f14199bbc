/* What a trace shows of training: steps, and the names of their data (traced.c).  Nothing unless one is recorded. */
#ifndef SLP_TRACED_H
#define SLP_TRACED_H

#include "train/step.h"
#include "train/trainer.h"

/* A step begins with this batch: "input0", "input1", "target0". */
void slp_traced_batch(const struct slp_step_run *r);
/* A step is over; its parameters have their names from now on: "dense0_weight". */
void slp_traced_step_done(const sl_trainer *trainer);

#endif
