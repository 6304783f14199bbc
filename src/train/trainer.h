/* Internals of trainers. */
#ifndef SLP_TRAINER_H
#define SLP_TRAINER_H

#include "dist/dist.h"
#include "nn/nn.h"
#include "optimizer.h"

/* The states of each parameter.  The optimiser's states come first; the float32 master belongs to a parameter in a half
 * type; the sum is that of gradients of micro-batches. */
enum { SLP_TRAINER_MASTER = SLP_OPTIMIZER_STATES, SLP_TRAINER_AVERAGE, SLP_TRAINER_SUM, SLP_TRAINER_STATES };

/* Settings that may differ between parameters. */
struct slp_param_group {
	double lr_scale, weight_decay;
};
static inline bool slp_param_group_equal(struct slp_param_group a, struct slp_param_group b)
{
	return a.lr_scale == b.lr_scale && a.weight_decay == b.weight_decay;
}

struct sl_trainer {
	struct slp_guard guard;
	sl_block *block; /* held */
	struct sl_optimizer optimizer;
	sl_param **params;
	int count;
	sl_tensor **states[SLP_TRAINER_STATES]; /* one a parameter, made at its first update */
	int nstates;                            /* of the optimiser */
	unsigned *versions;                     /* one a parameter: its own when its master was made or rounded to it */
	sl_device *owners;                      /* one a parameter: where it is updated; DEFAULT: where it is */
	int *buckets;                           /* one a parameter: those whose gradients are added together */
	struct slp_param_group *groups;         /* one a parameter */
	unsigned changes;                       /* of the state that programs of whole steps have adopted */
	unsigned known;                         /* changes of the block since which it has all its parameters */
	int gathered;                           /* micro-batches whose gradients are in the sums */
	int64_t gathered_rows;
	sl_tensor **held; /* one a parameter: its values while the average stands in for it; NULL: none does */
	_Atomic int64_t steps;
	int64_t *skipped; /* one for each parameter: the number of steps that did not update it */
	struct slp_loss_scaling {
		_Atomic double now;              /* 1 without loss scaling */
		_Atomic int64_t good, overflows; /* steps since it changed; steps that were left out */
		sl_tensor *tensor;               /* the same for programs of whole steps; NULL: none has asked */
	} scaling;
	struct slp_data_parallel *ranks; /* in one of several processes; NULL before the first step */
	atomic_bool local;               /* the others do not matter */
	sl_trainer *expecting;           /* the next that has yet to begin with the values of rank 0 */
	int *shard_rank; /* one a parameter: the rank that keeps its state and updates it; NULL: all keep all */
	bool dealt;      /* shard_rank are known */
};

/* The number of processes that sum their gradients for its steps. */
static inline int slp_trainer_size(const sl_trainer *trainer)
{
	return trainer->local ? 1 : slp_dist.size;
}

/* The slot of a state by its number among the named ones (slp_trainer_state_name). */
static inline int slp_trainer_slot(const sl_trainer *t, int which)
{
	return which < t->nstates ? which : SLP_TRAINER_MASTER + which - t->nstates;
}

/* Whether one operation can update both parameters: some optimisers depend on the number of updates. */
static inline bool slp_trainer_alike(const sl_trainer *t, int a, int b)
{
	bool counts = slp_optimizer_of(&t->optimizer)->counts;
	return slp_param_group_equal(t->groups[a], t->groups[b]) && (!counts || t->skipped[a] == t->skipped[b]);
}

/* ema.c */
void slp_trainer_drop_held(sl_trainer *trainer);

/* loss_scaling.c */
/* The problem of the options; NULL: none. */
const char *slp_loss_scaling_wrong(const struct sl_loss_scaling *scaling);
void slp_loss_scaling_begin(sl_trainer *trainer);
/* Waits for the gradients: 1, all are finite; 0, one is not; -1, an error. */
int slp_loss_scaling_finite(const char *at, const sl_trainer *trainer, sl_tensor *const *grads);
/* Sets the scale of the next step; false after an error. */
bool slp_loss_scaling_follow(const char *at, sl_trainer *trainer, bool finite);

/* state_sharding.c */
/* Whether processes share the states: each keeps those of some parameters. */
static inline bool slp_trainer_shards_state(const sl_trainer *trainer)
{
	return trainer->shard_rank && slp_trainer_size(trainer) > 1;
}
/* The ranks that keep the parameters' states; NULL: all do, or shapes are not known yet. */
const int *slp_trainer_shard_ranks(sl_trainer *trainer);
bool slp_trainer_has_state_of(sl_trainer *trainer, int i);
/* Whether this process needs the sum of the gradient with respect to parameter i. */
bool slp_trainer_needs_gradient(sl_trainer *trainer, int i);
/* Sends the parameters that are not NULL to all processes, from those that have updated them. */
bool slp_trainer_broadcast(const char *at, sl_trainer *trainer, sl_tensor *const *params);

/* master_weights.c */
/* Parameter i has just been rounded to its master, or this made of it. */
void slp_trainer_master_weight_is_new(sl_trainer *trainer, int i);

#endif
