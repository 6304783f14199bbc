/* Internals of whole steps. */
#ifndef SLP_STEP_H
#define SLP_STEP_H

#include "graph/plan_groups.h"
#include "hybrid/padding.h"
#include "starling/nn.h"
#include "train/data_parallel.h"

/* A program for batches of one signature. */
struct slp_compiled {
	struct slp_signature *signature; /* of the batch and its targets */
	int nin, ntargets;               /* numbers of the network's inputs, and of the targets */
	unsigned filled; /* inputs padded to a bucket's size, bits; if any, the last input masks the losses */
	struct slp_follows follows[1 + SL_MAX_RESULTS]; /* the losses, the results */
	bool whole;   /* with the update; otherwise its results include the gradients */
	int nresults; /* of the network: they come after the losses */
	sl_plan *plan;
	struct slp_compiled *next;
};

struct sl_step {
	struct slp_guard guard;
	sl_block *net;       /* held */
	sl_loss *loss;       /* of one result and one target; NULL: that of the options */
	sl_trainer *trainer; /* the caller's */
	struct sl_step_opts opts;
	struct slp_compiled *plans; /* the newest first */
	int count;
	sl_autotune *deals; /* finds out to how many devices its shards on `auto` are dealt; NULL: not yet */
	int dealt;          /* ways that it tries */
	unsigned changes;   /* of the network and the trainer when they were compiled */
	struct slp_group_memory group_memory; /* of gradients that leave the device group by group */
};

/* One run of a step. */
struct slp_step_run {
	const char *at, *function;
	sl_step *step;
	int n;                   /* shards */
	bool split;              /* into n shards, even if n is 1 */
	sl_tensor *const *batch; /* of each shard: the network's inputs, then the targets */
	int nin, ntargets;       /* of a shard */
	const struct slp_padding
	        *padding;          /* of each shard, whose batch ends with a mask then; NULL: no shard is padded */
	sl_tensor **losses, **out; /* of each shard: the losses, nout results; NULL: not requested */
	int nout;
	sl_tensor *first;  /* the losses of the first shard, which the call returns */
	sl_tensor **owned; /* the batch, if it must be freed */
};
static inline sl_tensor *const *slp_step_shard(const struct slp_step_run *r, int i)
{
	return r->batch + (size_t)i * (size_t)(r->nin + r->ntargets + (r->padding != NULL));
}
/* The number of tensors that its program takes. */
static inline int slp_step_inputs(const struct slp_step_run *r, int i)
{
	return r->nin + r->ntargets + (r->padding && r->padding[i].which);
}

/* step.c */
/* The divisor of the gradients in the trainer, over all processes. */
int64_t slp_step_divisor(const sl_step *step, int64_t rows);
/* Whether no other process shares the step: then it is one plan, up to the update. */
bool slp_step_is_alone(const sl_step *step);
int slp_step_params(const sl_step *step); /* number of trained ones */
/* The program for a shard, compiled if it is new, with the update or with gradients as results; NULL with an error. */
const struct slp_compiled *slp_step_plan(const struct slp_step_run *r, int shard, bool whole);
/* The loss of a shard's results. */
sl_tensor *slp_step_loss(const char *at, const sl_step *step, sl_tensor *const *out, int nout,
                         sl_tensor *const *targets, int ntargets);

/* step_padding.c */
/* Pads batches to the buckets of the step, if it has any, and runs them. */
bool slp_step_filled(struct slp_step_run *r, bool (*go)(struct slp_step_run *));
/* The rows of a shard before padding. */
int64_t slp_step_rows(const struct slp_step_run *r, int shard);
/* The losses and results of a program without padding; false after an error. */
bool slp_step_unpad(const struct slp_step_run *r, int shard, const struct slp_compiled *c, sl_tensor **heads);
/* Weights of the losses with those of filled-in elements 0, by the mask of a batch; NULL after an error. */
sl_tensor *slp_step_mask(const char *at, const struct slp_follows *follows, sl_tensor *mask, sl_tensor *losses,
                         sl_tensor *weights);

/* step_run.c: hands the losses and the results of a shard over to the caller; tensors that were not requested belong to
 * the scope, or are released. */
void slp_step_give(struct slp_step_run *r, int shard, sl_tensor *losses, sl_tensor *const *results, int nresults);

/* step_deal.c */
/* Chooses devices for this run of a step on `auto`, up to the end of the scope (SLP_AUTO_DEAL_SCOPE). */
void slp_step_deal(const struct slp_step_run *r);
/* Before the end of that scope: results are where the batch was, for the caller. */
void slp_step_return_to_auto(sl_tensor **results, int n);

/* step_shards.c */
bool slp_step_run_shards(struct slp_step_run *r); /* runs with the update after the programs; false after an error */
/* Updates by the gradients of `rows` rows, or adds them to those of the previous micro-batches. */
bool slp_step_use_gradients(const char *at, sl_step *step, sl_tensor **data, sl_tensor **grads, int64_t rows,
                            double scale);
/* Chooses the parameters' owners and moves the parameters to them; NULL after an error. */
const sl_device *slp_step_gather(const char *at, sl_step *step);

/* step_groups.c: runs on one device, and updates on another, group by group; false after an error */
bool slp_step_run_groups(struct slp_step_run *r);

#endif
