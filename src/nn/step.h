/* Whole steps from the inside. */
#ifndef SLP_STEP_H
#define SLP_STEP_H

#include "nn/ranks.h"

struct slp_compiled;

struct sl_step {
	sl_block *net; /* held */
	sl_loss *loss;
	sl_trainer *trainer; /* the caller's */
	struct sl_step_opts opts;
	struct slp_compiled *plans; /* the newest first */
	int count;
	unsigned changes; /* of the network and the trainer when they were compiled */
};

/* step.c */
/* What the trainer divides the gradients by, over all processes. */
int64_t slp_step_divisor(const sl_step *step, int64_t rows);
/* Whether no other process shares the step: then it is one plan, up to the update. */
bool slp_step_is_alone(const sl_step *step);
int slp_step_params(const sl_step *step); /* how many are trained */
/* The plan for a batch, compiled if it is new, with the update or with gradients as results; NULL with an error. */
sl_plan *slp_step_plan(const char *at, const char *function, sl_step *step, sl_tensor *const in[2], bool whole);

/* step_shards.c */
bool slp_step_run_shards(const char *at, sl_step *step, int n, sl_tensor *const *x, sl_tensor *const *targets,
                         sl_tensor **losses, sl_tensor **outputs);

#endif
