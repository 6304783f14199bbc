/* Trainers: an optimiser with its state, applied to all parameters of a block in one call. */
#include <math.h>
#include <stdlib.h>

#include "autograd/autograd.h"
#include "dist/dist.h"
#include "optimizer.h"
#include "options.h"
#include "runtime/gate.h"
#include "tensor/moment.h"
#include "train/data_parallel.h"
#include "train/traced.h"
#include "train/train.h"
#include "train/trainer.h"

/* ---- making ------------------------------------------------------------------------------------------------------ */

static bool is_amount(double x)
{
	return x >= 0 && isfinite(x);
}

/* Writes the problem of the settings to `text`; false: none. */
static bool wrong_optimizer(const struct sl_optimizer *o, char text[256])
{
	if (slp_optimizer_wrong(o, text)) return true;
	const char *wrong = slp_loss_scaling_wrong(&o->loss_scaling);
	if (!wrong) wrong = slp_schedule_wrong(&o->schedule);
	if (wrong) snprintf(text, 256, "%s", wrong);
	return wrong != NULL;
}

/* The block's parameters, without those that have no gradient. */
static bool find_params(const char *at, sl_trainer *t)
{
	int all = 0;
	t->params = slp_block_all_params(at, t->block, &all);
	for (int i = 0; i < all; i++)
		if (!t->params[i]->opts.no_grad) t->params[t->count++] = t->params[i];
	if (t->params && !t->count)
		slp_call_fail(at, "sl_trainer_new", SL_EINVAL, "%s has no parameters to train",
		              sl_block_name(t->block));
	return t->count > 0;
}

static bool make_states(sl_trainer *t)
{
	t->nstates = sl_optimizer_states(&t->optimizer);
	t->owners = slp_calloc((size_t)t->count, sizeof *t->owners);
	t->buckets = slp_calloc((size_t)t->count, sizeof *t->buckets);
	t->versions = slp_calloc((size_t)t->count, sizeof *t->versions);
	t->groups = slp_calloc((size_t)t->count, sizeof *t->groups);
	t->skipped = slp_calloc((size_t)t->count, sizeof *t->skipped);
	if (t->optimizer.shard_state) t->shard_rank = slp_calloc((size_t)t->count, sizeof *t->shard_rank);
	if (!t->owners || !t->buckets || !t->versions || !t->groups || !t->skipped ||
	    (t->optimizer.shard_state && !t->shard_rank))
		return false;
	for (int i = 0; i < t->count; i++) t->groups[i] = (struct slp_param_group){1, t->optimizer.weight_decay};
	for (int i = 0; i < SLP_TRAINER_STATES; i++)
		if (!(t->states[i] = slp_calloc((size_t)t->count, sizeof **t->states))) return false;
	return true;
}

/* A trainer of the block's current parameters; their values may come later.  sl_sgd_update, sl_adam_update (SL_ADAM,
 * SL_ADAMW) and sl_rmsprop_update document the formulas of the optimisers, doc/training.md all of them.  The parameters
 * on a device are updated together, some MiB per operation.  Parameters that several devices use are distributed over
 * these devices, over GPUs if there are any: each device adds the gradients of its own parameters and updates them, and
 * the others fetch the new values when they need them; with .clip_norm, one device of the scheduler's choice does all
 * of this.  .lr follows .schedule, see sl_schedule_lr.  For parameters in a half type the trainer keeps float32
 * masters, which it updates and then rounds, so that steps that are small beside a parameter add up.  Other writes of
 * such a parameter (sl_load_params) also update its master.  With .shard_state, each of several processes keeps only
 * the states of a part of the parameters (doc/distributed.md).  With .state_on = sl_cpu(-1), states and masters are in main
 * memory, and parameters that are on a GPU are updated there (doc/memory-state.md).  With .average, the trainer keeps moving averages of the
 * parameters, which start from the values before the first step: see sl_trainer_use_averages.  sl_trainer_group sets
 * other learning rates and decays for some parameters.  With .loss_scaling, losses are scaled before the backward pass,
 * so that small gradients do not vanish in float16: whole steps do so themselves; otherwise pass .scale =
 * sl_trainer_loss_scale(trainer) to sl_backward_heads.  Each step then waits for the gradients; if one is not finite,
 * the step is skipped and the scale decreases; it grows after .every steps without overflow.  The trainer has a
 * reference to the block.  NULL with SL_EINVAL: an option is out of range or not one of this optimiser, or there is
 * nothing to train; SL_EDEVICE: .state_on does not exist.
 *
 *     sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4,
 *                                                      .schedule = {SL_COSINE, .warmup = 500, .total = 10000})); */
sl_trainer *sl_trainer_new_at(const char *at, sl_block *block, struct sl_optimizer optimizer)
{
	SLP_CALL("sl_trainer_new", at);
	if (!SLP_OPTIONS(sl_optimizer, at, "sl_trainer_new", &optimizer)) return NULL;
	char wrong[256];
	if (wrong_optimizer(&optimizer, wrong)) return slp_call_fail(at, "sl_trainer_new", SL_EINVAL, "%s", wrong);
	if (!slp_state_device_fits(at, &optimizer.state_on)) return NULL;
	sl_trainer *t = slp_calloc(1, sizeof *t);
	if (!t) return slp_call_fail(at, "sl_trainer_new", SL_ENOMEM, "no memory for a trainer");
	t->optimizer = optimizer;
	t->optimizer.lr = slp_or(optimizer.lr, slp_optimizer_of(&optimizer)->lr) + 0.0;
	slp_loss_scaling_begin(t);
	t->block = sl_block_retain(block);
	bool found = find_params(at, t);
	if (found && make_states(t)) return slp_data_parallel_expect(t), t;
	if (found) slp_call_fail(at, "sl_trainer_new", SL_ENOMEM, "no memory for the states");
	sl_trainer_free(t);
	return NULL;
}

static void trainer_free(void *given)
{
	sl_trainer *trainer = given;
	for (int i = 0; i < SLP_TRAINER_STATES; i++) {
		for (int k = 0; trainer->states[i] && k < trainer->count; k++) sl_release(trainer->states[i][k]);
		free(trainer->states[i]);
	}
	sl_release(trainer->scaling.tensor);
	free(trainer->params);
	free(trainer->owners);
	free(trainer->buckets);
	free(trainer->shard_rank);
	slp_data_parallel_free(trainer->ranks);
	free(trainer->versions);
	free(trainer->groups);
	free(trainer->skipped);
	slp_trainer_drop_held(trainer);
	sl_block_free(trainer->block);
	free(trainer);
}

/* Frees a trainer with its state; the block and its parameters stay.  NULL is ignored. */
void sl_trainer_free(sl_trainer *trainer)
{
	if (!trainer) return;
	slp_data_parallel_known(trainer);
	slp_later(trainer_free, trainer);
}

/* Makes a trainer use the gradients of its own process alone, without sums over processes and comparisons.  Call it
 * before the first recorded forward pass.  NULL is ignored. */
void sl_dist_local(sl_trainer *trainer)
{
	if (trainer) trainer->local = true;
}

struct slp_data_parallel **slp_trainer_ranks(sl_trainer *trainer)
{
	return &trainer->ranks;
}

sl_block *slp_trainer_block(const sl_trainer *trainer)
{
	return trainer->block;
}

sl_param *const *slp_trainer_params(const char *at, sl_trainer *trainer, int *count)
{
	(void)at;
	*count = trainer->count;
	return trainer->params;
}

/* ---- saved state ------------------------------------------------------------------------------------------------- */

const char *slp_trainer_state_name(const sl_trainer *trainer, int which)
{
	static const char *const others[] = {
	        [SLP_TRAINER_MASTER] = "master", [SLP_TRAINER_AVERAGE] = "average", [SLP_TRAINER_SUM] = "sum"};
	int slot = slp_trainer_slot(trainer, which);
	if (which < trainer->nstates) return slp_optimizer_of(&trainer->optimizer)->states[which];
	return slot < SLP_TRAINER_STATES ? others[slot] : NULL;
}

char *slp_trainer_state_path(sl_trainer *t, int i, int which)
{
	int count;
	sl_param *const *params = slp_trainer_params(NULL, t, &count);
	char *path = slp_param_path(slp_trainer_block(t), params[i]);
	char *name = path ? slp_format("%s.%s", path, slp_trainer_state_name(t, which)) : NULL;
	free(path);
	return name;
}

sl_tensor **slp_trainer_state(sl_trainer *trainer, int which, int i)
{
	return &trainer->states[slp_trainer_slot(trainer, which)][i];
}

/* The structure is a program's, whose numbers are plain: other threads may look at this one while it changes. */
double slp_trainer_base_lr(const sl_trainer *trainer)
{
	double lr;
	__atomic_load(&trainer->optimizer.lr, &lr, __ATOMIC_RELAXED);
	return lr;
}

static void set_base_lr(sl_trainer *trainer, double lr)
{
	__atomic_store(&trainer->optimizer.lr, &lr, __ATOMIC_RELAXED);
}

struct sl_optimizer *slp_trainer_optimizer(sl_trainer *trainer)
{
	return &trainer->optimizer;
}

void slp_trainer_group(const sl_trainer *t, int i, double *lr_scale, double *weight_decay)
{
	*lr_scale = t->groups[i].lr_scale;
	*weight_decay = t->groups[i].weight_decay;
}

int64_t *slp_trainer_skipped(sl_trainer *trainer, int i)
{
	return &trainer->skipped[i];
}

void slp_trainer_resume(sl_trainer *trainer, double lr, int64_t steps)
{
	set_base_lr(trainer, lr);
	trainer->steps = steps;
	trainer->changes++;
}

/* ---- figures of a step ------------------------------------------------------------------------------------------- */

/* The learning rate of the next step; NaN for NULL. */
double sl_trainer_lr(const sl_trainer *trainer)
{
	if (!trainer) return NAN;
	return sl_schedule_lr(&trainer->optimizer.schedule, slp_trainer_base_lr(trainer), trainer->steps);
}

/* Sets the learning rate that the schedule starts from, for the next step and later ones.  If it is negative or not
 * finite, it does not change, and sl_error() is SL_EINVAL. */
void sl_trainer_set_lr(sl_trainer *trainer, double lr)
{
	bool fits = is_amount(lr);
	if (!fits) slp_call_fail(NULL, "sl_trainer_set_lr", SL_EINVAL, "lr must not be negative, got %g", lr);
	if (!fits || !trainer) return;
	SLP_GUARD_PATIENTLY(&trainer->guard);
	set_base_lr(trainer, lr);
}

/* The number of steps made, including those before sl_trainer_load; 0 for NULL. */
int64_t sl_trainer_steps(const sl_trainer *trainer)
{
	return trainer ? trainer->steps : 0;
}

struct slp_hyper slp_trainer_coming(const sl_trainer *t, int64_t batch_size)
{
	return (struct slp_hyper){sl_trainer_lr(t), 1.0 / (double)batch_size, t->steps + 1};
}

struct slp_hyper slp_trainer_advance(sl_trainer *t, sl_tensor *const *params, int64_t batch_size)
{
	struct slp_hyper h = slp_trainer_coming(t, batch_size);
	t->steps++;
	for (int i = 0; i < t->count; i++) {
		bool frozen = slp_param_is_frozen(t->params[i]);
		if (params ? params[i] != NULL : !frozen) continue;
		t->skipped[i]++;
		if (!frozen) t->changes++; /* programs of whole steps know the number */
	}
	return h;
}

/* ---- owners ------------------------------------------------------------------------------------------------------ */

const sl_device *slp_trainer_owners(sl_trainer *trainer)
{
	bool apart = slp_trainer_is_apart(trainer);
	sl_device home = apart ? trainer->optimizer.state_on : (sl_device){SL_DEVICE_DEFAULT, -1};
	slp_grad_buckets_assign(trainer->params, trainer->count, trainer->optimizer.clip_norm != 0 && !apart,
	                        slp_trainer_shard_ranks(trainer), home, trainer->owners, trainer->buckets);
	return trainer->owners;
}

const int *slp_trainer_grad_buckets(const sl_trainer *trainer)
{
	return trainer->buckets;
}

/* ---- a step after sl_backward ------------------------------------------------------------------------------------ */

bool slp_trainer_has_all(const char *at, const char *function, sl_trainer *t)
{
	int all = 0, trained = 0;
	if (t->known == t->block->base->changes) return true;
	sl_param **params = slp_block_all_params(at, t->block, &all);
	if (!params) return false;
	for (int i = 0; i < all; i++) trained += !params[i]->opts.no_grad;
	free(params);
	if (trained != t->count) {
		slp_call_fail(at, function, SL_ESTATE,
		              "%s has %d parameters to train, but had %d when the trainer was made: make another one",
		              sl_block_name(t->block), trained, t->count);
		return false;
	}
	t->known = t->block->base->changes;
	return true;
}

/* All gradients of one step have one scale; *scale: the previous one, 0: none. */
static bool scale_alike(const char *at, const sl_param *p, double *scale)
{
	double own = p->data->var->scale;
	if (*scale == 0) *scale = own;
	if (own == *scale) return true;
	slp_call_fail(at, "sl_trainer_step", SL_ESTATE,
	              "the gradients are scaled by different numbers, that of parameter '%s' by %g, others by %g: "
	              "sl_backward_heads must get the same .scale until the step",
	              p->full_name, own, *scale);
	return false;
}

/* Notes the gradient of parameter i, if that is to change; false after an error. */
static bool add_fresh(const char *at, const sl_trainer *t, int i, bool ignore_stale, sl_tensor **params,
                      sl_tensor **grads, double *scale)
{
	sl_param *p = t->params[i];
	if (slp_param_is_frozen(p) || (ignore_stale && !p->data)) return true;
	sl_tensor *grad = sl_param_grad_at(at, p);
	if (!grad) return false;
	if (p->data->var->fresh) {
		params[i] = p->data;
		grads[i] = grad;
		return scale_alike(at, p, scale);
	}
	if (ignore_stale) return true;
	slp_call_fail(
	        at, "sl_trainer_step", SL_ESTATE,
	        "no sl_backward has reached parameter '%s' since the last step: its gradient is old.  If the loss is "
	        "meant to depend on a part of the network only, use .ignore_stale = true",
	        p->full_name);
	return false;
}

void slp_trainer_used(const sl_trainer *t)
{
	for (int i = 0; i < t->count; i++)
		if (t->params[i]->data && t->params[i]->data->var) t->params[i]->data->var->fresh = false;
}

static bool sum_over_processes(const char *at, sl_trainer *t, sl_tensor *const *grads, int64_t rows)
{
	if (slp_trainer_size(t) == 1) return true;
	const struct slp_data_parallel_step step = {"by sl_backward", rows, .computed = true};
	return slp_data_parallel_begin(at, t, "sl_trainer_step", &step) &&
	       slp_data_parallel_sum_groups(at, t, grads, rows);
}

bool slp_trainer_fresh(const char *at, sl_trainer *t, int64_t rows, bool ignore_stale, sl_tensor **params,
                       sl_tensor **grads, double *scale)
{
	bool ok = true;
	*scale = 0;
	for (int i = 0; ok && i < t->count; i++) ok = add_fresh(at, t, i, ignore_stale, params, grads, scale);
	if (*scale == 0) *scale = 1; /* nothing is to change */
	slp_trainer_owners(t);
	return ok && sum_over_processes(at, t, grads, rows);
}

static enum sl_status step(const char *at, sl_trainer *t, int64_t batch_size, bool ignore_stale)
{
	sl_tensor **params = slp_calloc(2 * (size_t)t->count, sizeof *params);
	if (!params) return slp_call_fail(at, "sl_trainer_step", SL_ENOMEM, "no memory for the update"), SL_ENOMEM;
	sl_tensor **grads = params + t->count;
	enum sl_status s = SL_OK;
	SLP_CHANGE();
	SL_PAUSE
		SL_SCOPE {
			double scale;
			bool ok = slp_trainer_fresh(at, t, batch_size, ignore_stale, params, grads, &scale);
			s = ok ? slp_trainer_apply(at, t, params, grads, batch_size * slp_trainer_size(t), scale)
			       : sl_error();
		}
	free(params);
	if (s != SL_OK) return s;
	slp_trainer_used(t);
	slp_traced_step_done(t);
	return SL_OK;
}

/* Updates the parameters by their gradients, divided by batch_size, and counts a step; returns at once.  sl_backward
 * computes the gradient of the sum of the losses; batch_size is the number of losses, so that the update uses the
 * gradient of their mean: the number of rows for one loss per row, rows times tokens for one loss per token, and 1 for
 * a loss that is already a mean (a whole step counts them itself, see sl_step_compile).  A parameter whose gradient no
 * sl_backward has written since the last step is SL_ESTATE, and so is one without values; with .ignore_stale these are
 * skipped, as are parameters whose gradient is detached (sl_attach_grad with SL_GRAD_NONE).  Gradients that
 * sl_backward_heads has scaled are divided by the scale; with .loss_scaling, a step whose gradients are not finite is
 * skipped (sl_trainer_overflows) and not counted.  After an error nothing has changed.  SL_EINVAL: batch_size is not
 * positive.  If several processes train together (dist.h), batch_size is that of this process, the same in all, and
 * gradients are first summed over them: sl_param_grad then returns the sum (not with .shard_state).  The first step
 * compares the settings of the processes, with SL_ESTATE if they differ, and sends the parameters of rank 0 to all.
 *
 *     sl_backward(loss);
 *     if (sl_trainer_step(trainer, batch_size) != SL_OK) … */
enum sl_status sl_trainer_step_at(const char *at, sl_trainer *trainer, int64_t batch_size,
                                  struct sl_trainer_step_opts opts)
{
	SLP_CALL("sl_trainer_step", at);
	if (!trainer || batch_size < 1) {
		if (!trainer && sl_error() != SL_OK) return sl_error();
		slp_call_fail(at, "sl_trainer_step", SL_EINVAL, "%s",
		              trainer ? "the batch size must be positive" : "the trainer is NULL");
		return SL_EINVAL;
	}
	SLP_GUARD(&trainer->guard, at, "sl_trainer_step", SL_ESTATE);
	if (slp_trainer_is_averaged(at, "sl_trainer_step", trainer) ||
	    !slp_trainer_has_all(at, "sl_trainer_step", trainer))
		return sl_error();
	return step(at, trainer, batch_size, opts.ignore_stale);
}
