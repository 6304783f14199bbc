/* Interface of the trainer for steps, checkpoints and data parallelism: its parameters, states, groups and scales. */
#ifndef SLP_TRAIN_H
#define SLP_TRAIN_H

#include "nn/nn.h"
#include "starling/nn.h"

/* grad_buckets.c */
/* The approximate number of bytes of parameters in a bucket; apart: they are updated on another device than their own. */
double slp_grad_bucket_bytes(sl_param *const *params, int count, bool apart);
/* Chooses where each parameter is updated and in which bucket.  With `together`, or if one has no values yet, all of
 * them where they are (DEFAULT) and in no bucket.  ranks, if not NULL: parameters of a bucket have the same.  home, if
 * not DEFAULT: all are updated there. */
void slp_grad_buckets_assign(sl_param *const *params, int count, bool together, const int *ranks, sl_device home,
                             sl_device *owners, int *bucket);
/* All that lies in the memory of parameter i, as one vector, if that is nothing but parameters of a bucket; else its
 * values. */
sl_tensor *slp_grad_bucket_memory(sl_param *const *params, int count, int i);
/* Brings the parameters of each bucket into one memory, if nothing else holds theirs, on its owner, and has new
 * values sent to all their devices.  apart: the parameters stay where they are, where memory is short, and new values are
 * sent there.  False after an error. */
bool slp_grad_buckets_gather(const char *at, sl_param *const *params, int count, const sl_device *owners,
                             const int *bucket, bool apart);

/* param_groups.c */
/* Whether a pattern is that of a parameter's path from the block; -1 without memory, an error is recorded. */
int slp_param_matches(const char *at, const sl_block *block, const sl_param *param, const char *pattern);
/* Counts changes of the network and of the trainer's groups, which programs of whole steps compare. */
unsigned slp_trainer_changes(const sl_trainer *trainer);

/* accumulate.c */
/* Adds the gradients of a micro-batch of `rows` rows to the sums; returns the number of micro-batches added, -1 after
 * an error. */
int slp_trainer_gather(const char *at, sl_trainer *trainer, sl_tensor *const *grads, int64_t rows);
int slp_trainer_gathered(const sl_trainer *trainer, int64_t *rows);
/* Continues after `count` micro-batches; 0: discards all sums. */
void slp_trainer_set_gathered(sl_trainer *trainer, int count, int64_t rows);
/* The sum of parameter i; NULL: none. */
sl_tensor *slp_trainer_sum(const sl_trainer *trainer, int i);

/* ema.c */
/* Whether averages stand in for the parameters; and with an error, if so. */
bool slp_trainer_stands_in(const sl_trainer *trainer);
bool slp_trainer_is_averaged(const char *at, const char *function, const sl_trainer *trainer);
/* Whether the trainer has all parameters of its block; SL_ESTATE: some came into being after it was made. */
bool slp_trainer_has_all(const char *at, const char *function, sl_trainer *trainer);

/* loss_scaling.c */
bool slp_trainer_scales(const sl_trainer *trainer);
/* Whether these can be figures of loss scaling; and sets them, false after an error. */
bool slp_loss_scaling_fits(double now, int64_t good, int64_t overflows);
bool slp_loss_scaling_set(const char *at, sl_trainer *trainer, double now, int64_t good, int64_t overflows);
void slp_loss_scaling_get(const sl_trainer *trainer, double *now, int64_t *good, int64_t *overflows);
/* The scale, for programs of whole steps: a scalar whose value follows. */
sl_tensor *slp_loss_scaling_symbol(const char *at, sl_trainer *trainer);

/* trainer.c */
/* The parameters to update, with their gradients, summed over processes; NULL for others.  *scale: the scale of
 * sl_backward. */
bool slp_trainer_fresh(const char *at, sl_trainer *trainer, int64_t rows, bool ignore_stale, sl_tensor **params,
                       sl_tensor **grads, double *scale);
/* The gradients were used. */
void slp_trainer_used(const sl_trainer *trainer);
struct slp_hyper { /* settings that change from step to step */
	double lr, rescale;
	int64_t step;
};

/* update.c */
/* Updates params[i] by grads[i], all symbols or all concrete (NULL: not); the optimiser's state belongs to the trainer,
 * by the parameters' order in the block. */
enum sl_status slp_trainer_update(const char *at, sl_trainer *trainer, sl_tensor *const *params,
                                  sl_tensor *const *grads, struct slp_hyper hyper);
/* The same by gradients scaled by this factor, and counts the step; skips it if they overflowed. */
enum sl_status slp_trainer_apply(const char *at, sl_trainer *trainer, sl_tensor *const *params, sl_tensor *const *grads,
                                 int64_t divisor, double scale);
/* The states of each parameter: "momentum", …, "master", "average", "sum", NULL after the last; parameter i's, NULL:
 * not made yet. */
const char *slp_trainer_state_name(const sl_trainer *trainer, int which);
sl_tensor **slp_trainer_state(sl_trainer *trainer, int which, int i);
/* "0.weight.momentum": a state's name in files; malloc'd, NULL without memory. */
char *slp_trainer_state_path(sl_trainer *trainer, int i, int which);
double slp_trainer_base_lr(const sl_trainer *trainer);
struct sl_optimizer *slp_trainer_optimizer(sl_trainer *trainer); /* with .lr as it is now */
void slp_trainer_resume(sl_trainer *trainer, double lr, int64_t steps);
/* The device that updates each parameter, DEFAULT: its own; chosen again, with their buckets, from the devices that may
 * use them. */
const sl_device *slp_trainer_owners(sl_trainer *trainer);
/* Buckets of parameters whose gradients are added together, by one owner, as they were chosen last: numbers in the
 * order in which the backward pass reaches them, one a parameter; -1: none. */
const int *slp_trainer_grad_buckets(const sl_trainer *trainer);
sl_block *slp_trainer_block(const sl_trainer *trainer);
/* The parameters that are trained, in their order; *count of them. */
sl_param *const *slp_trainer_params(const char *at, sl_trainer *trainer, int *count);
/* The factor of the learning rate, and the decay, of parameter i. */
void slp_trainer_group(const sl_trainer *trainer, int i, double *lr_scale, double *weight_decay);
/* The settings of the next step. */
struct slp_hyper slp_trainer_coming(const sl_trainer *trainer, int64_t batch_size);
/* The same, and counts it: params[i] is NULL where parameter i is left alone; params NULL: the frozen ones are. */
struct slp_hyper slp_trainer_advance(sl_trainer *trainer, sl_tensor *const *params, int64_t batch_size);
/* Steps that have left parameter i alone. */
int64_t *slp_trainer_skipped(sl_trainer *trainer, int i);

/* master_weights.c */
/* Gives the state `which` of parameter i these values, in place if there is one: programs of whole steps know it.
 * NULL: as at first. */
bool slp_trainer_set_state(const char *at, sl_trainer *trainer, int which, int i, sl_tensor *values);
/* Whether some parameter is in a half type, and rounded to a master: that is no part of programs of whole steps. */
bool slp_trainer_rounds(const sl_trainer *trainer);
/* Masters take the values of parameters that were written elsewhere since; false after an error. */
bool slp_trainer_master_weights_follow(const char *at, sl_trainer *trainer);
/* All parameters were rounded to their masters. */
void slp_trainer_master_weights_hold(sl_trainer *trainer);

/* state_device.c */
/* Whether states can be on this device, which is resolved; false after an error. */
bool slp_state_device_fits(const char *at, sl_device *device);
/* Whether some parameter is updated on another device than those that use it. */
bool slp_trainer_is_apart(const sl_trainer *trainer);
/* The device of parameter i's states, if it is another than its own; else DEFAULT. */
sl_device slp_trainer_home(const sl_trainer *trainer, int i);
/* A parameter, or its gradient, for operations there; itself if that is its own device, and symbols. */
sl_tensor *slp_trainer_at_home(const char *at, const sl_trainer *trainer, int i, sl_tensor *x);

/* gathered_state.c */
/* Where processes share a trainer's states (NULL: none), rank 0 gets those of the others for a while; all call it.
 * False after an error. */
bool slp_trainer_gather_states(const char *at, sl_trainer *trainer);
void slp_trainer_drop_others(sl_trainer *trainer);

/* schedule.c */
/* The problem of a schedule; NULL: none. */
const char *slp_schedule_wrong(const struct sl_schedule *schedule);

/* reduction.c */
int64_t slp_rows_of(sl_shape x);
/* The divisor of gradients of a batch with `rows` rows. */
int64_t slp_reduction_divisor(enum sl_reduction reduction, int64_t rows);
/* The head gradient of the losses of a shard with that many rows, in *weights: NULL for ones; times a scalar, if
 * scale is not NULL.  False after an error. */
bool slp_reduction_weigh(const char *at, enum sl_reduction reduction, sl_tensor *losses, int64_t rows, sl_tensor *scale,
                         sl_tensor **weights);

#endif
