/* Trainers: an optimiser with its state, applied to all parameters of a block in one call. */
#include <math.h>
#include <stdlib.h>

#include "autograd/autograd.h"
#include "dist/dist.h"
#include "nn/ranks.h"
#include "nn/trainer.h"
#include "runtime/fxt.h"
/* What one call updates: arrays of count tensors. */
struct update {
	sl_tensor **params, **grads, **states[SLP_TRAINER_STATES];
	int *numbers; /* of the parameters in the trainer */
	int count;
	sl_tensor **halves, **masters; /* parameters in a half type, and what is updated in their place */
	int nhalves;
};

/* ---- making ------------------------------------------------------------------------------------------------------ */

static const char *const state_names[][SLP_TRAINER_STATES] = {
        [SL_SGD] = {"momentum"},
        [SL_ADAM] = {"mean", "var"},
        [SL_ADAMW] = {"mean", "var"},
        [SL_RMSPROP] = {"square", "momentum"},
};

static int states_of(const struct sl_optimizer *o)
{
	if (o->kind == SL_SGD) return o->momentum != 0;
	if (o->kind == SL_RMSPROP) return 1 + (o->momentum != 0);
	return 2;
}

static bool is_share(double x)
{
	return x >= 0 && x < 1;
}

static bool is_amount(double x)
{
	return x >= 0 && isfinite(x);
}

static const char *wrong_optimizer(const struct sl_optimizer *o)
{
	if ((unsigned)o->kind > SL_RMSPROP) return "there is no such optimiser";
	if (!is_amount(o->lr)) return ".lr must be a number that is not negative";
	if (!is_share(o->momentum) || !is_share(o->beta1) || !is_share(o->beta2) || !is_share(o->alpha))
		return ".momentum, .beta1, .beta2 and .alpha must be in [0, 1)";
	if (o->nesterov && (o->kind != SL_SGD || o->momentum == 0)) return ".nesterov needs SGD with a momentum";
	if (!is_amount(o->eps) || !is_amount(o->weight_decay)) return ".eps and .weight_decay must not be negative";
	if (!is_amount(o->clip_norm) || !is_amount(o->clip_value)) return ".clip_norm and .clip_value must not be negative";
	return slp_schedule_wrong(&o->schedule);
}

/* The block's parameters, those without a gradient left out. */
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
	t->nstates = states_of(&t->optimizer);
	t->owners = slp_calloc((size_t)t->count, sizeof *t->owners);
	t->buckets = slp_calloc((size_t)t->count, sizeof *t->buckets);
	t->versions = slp_calloc((size_t)t->count, sizeof *t->versions);
	if (!t->owners || !t->buckets || !t->versions) return false;
	for (int i = 0; i < SLP_TRAINER_STATES; i++)
		if (!(t->states[i] = slp_calloc((size_t)t->count, sizeof **t->states))) return false;
	return true;
}

/* A trainer of the parameters that the block has now; their values may come later.  The optimisers, by their formulas
 * in sl_sgd_update, sl_adam_update (SL_ADAM, SL_ADAMW) and sl_rmsprop_update: the parameters of a device are updated
 * together, some MiB an operation.  Parameters that several devices use are dealt out to them, GPUs if there are any:
 * each device adds the gradients of its own and updates them, and the others fetch the new values when they need them;
 * with .clip_norm, one device of the scheduler's choice does it all.  .lr follows .schedule, see sl_schedule_lr.
 * Of parameters in a half type the trainer keeps float32 masters, which it updates and then rounds: steps that are small
 * beside a parameter add up.  Who writes such a parameter (sl_load_params) writes its master, too.
 * The trainer keeps the block.  SL_EINVAL: an option is wrong, or there is nothing to train.
 *
 *     sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4,
 *                                                      .schedule = {SL_COSINE, .warmup = 500, .total = 10000})); */
sl_trainer *sl_trainer_new_at(const char *at, sl_block *block, struct sl_optimizer optimizer)
{
	SLP_CALL("sl_trainer_new", at);
	const char *wrong = wrong_optimizer(&optimizer);
	if (wrong) return slp_call_fail(at, "sl_trainer_new", SL_EINVAL, "%s", wrong);
	sl_trainer *t = slp_calloc(1, sizeof *t);
	if (!t) return slp_call_fail(at, "sl_trainer_new", SL_ENOMEM, "no memory for a trainer");
	t->optimizer = optimizer;
	if (optimizer.lr == 0) t->optimizer.lr = optimizer.kind == SL_SGD ? 0.01 : 0.001;
	t->block = sl_block_retain(block);
	bool found = find_params(at, t);
	if (found && make_states(t)) return t;
	if (found) slp_call_fail(at, "sl_trainer_new", SL_ENOMEM, "no memory for the states");
	sl_trainer_free(t);
	return NULL;
}

/* Gives a trainer up, with its state; the block and its parameters stay.  NULL is ignored. */
void sl_trainer_free(sl_trainer *trainer)
{
	if (!trainer) return;
	for (int i = 0; i < SLP_TRAINER_STATES; i++) {
		for (int k = 0; trainer->states[i] && k < trainer->count; k++) sl_release(trainer->states[i][k]);
		free(trainer->states[i]);
	}
	free(trainer->params);
	free(trainer->owners);
	free(trainer->buckets);
	slp_ranks_free(trainer->ranks);
	free(trainer->versions);
	sl_block_free(trainer->block);
	free(trainer);
}

int slp_trainer_size(const sl_trainer *trainer)
{
	return trainer->local ? 1 : slp_dist.size;
}

/* Lets a trainer go by the gradients of its own process alone: nothing is summed, and nothing compared.  Before its first
 * step.  NULL is ignored. */
void sl_dist_local(sl_trainer *trainer)
{
	if (trainer) trainer->local = true;
}

struct slp_ranks **slp_trainer_ranks(sl_trainer *trainer)
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

/* ---- what is saved ----------------------------------------------------------------------------------------------- */

const char *slp_trainer_state_name(const sl_trainer *trainer, int which)
{
	if (which < trainer->nstates) return state_names[trainer->optimizer.kind][which];
	return which == trainer->nstates ? "master" : NULL;
}

sl_tensor **slp_trainer_state(sl_trainer *trainer, int which, int i)
{
	return &trainer->states[which < trainer->nstates ? which : SLP_TRAINER_MASTER][i];
}

double slp_trainer_base_lr(const sl_trainer *trainer)
{
	return trainer->optimizer.lr;
}

struct sl_optimizer *slp_trainer_optimizer(sl_trainer *trainer)
{
	return &trainer->optimizer;
}

void slp_trainer_resume(sl_trainer *trainer, double lr, int64_t steps)
{
	trainer->optimizer.lr = lr;
	trainer->steps = steps;
}

/* ---- figures of a step ------------------------------------------------------------------------------------------- */

/* The learning rate of the coming step; NaN for NULL. */
double sl_trainer_lr(const sl_trainer *trainer)
{
	return trainer ? sl_schedule_lr(&trainer->optimizer.schedule, trainer->optimizer.lr, trainer->steps) : NAN;
}

/* Sets the learning rate that the schedule starts from; counts from the next step on.  One that is negative, or no
 * number, is not taken: sl_error() is SL_EINVAL then. */
void sl_trainer_set_lr(sl_trainer *trainer, double lr)
{
	bool fits = is_amount(lr);
	if (!fits) slp_call_fail(NULL, "sl_trainer_set_lr", SL_EINVAL, "lr must not be negative, got %g", lr);
	if (fits && trainer) trainer->optimizer.lr = lr;
}

/* How many steps it has made, those before sl_trainer_load included; 0 for NULL. */
int64_t sl_trainer_steps(const sl_trainer *trainer)
{
	return trainer ? trainer->steps : 0;
}

struct slp_hyper slp_trainer_coming(const sl_trainer *t, int64_t batch_size)
{
	return (struct slp_hyper){sl_trainer_lr(t), 1.0 / (double)batch_size, t->steps + 1};
}

struct slp_hyper slp_trainer_advance(sl_trainer *trainer, int64_t batch_size)
{
	struct slp_hyper h = slp_trainer_coming(trainer, batch_size);
	trainer->steps++;
	return h;
}

/* ---- owners ------------------------------------------------------------------------------------------------------ */

const sl_device *slp_trainer_owners(sl_trainer *trainer)
{
	slp_buckets_assign(trainer->params, trainer->count, trainer->optimizer.clip_norm != 0, trainer->owners,
	                   trainer->buckets);
	return trainer->owners;
}

const int *slp_trainer_buckets(const sl_trainer *trainer)
{
	return trainer->buckets;
}

/* ---- updating ---------------------------------------------------------------------------------------------------- */

static enum sl_status call(const char *at, const struct sl_optimizer *o, const struct update *u, struct slp_hyper h)
{
	if (o->kind == SL_SGD)
		return sl_sgd_update_at(at, u->params, u->grads, o->momentum != 0 ? u->states[0] : NULL, u->count,
		                        (struct sl_sgd_opts){.lr = h.lr,
		                                             .momentum = o->momentum,
		                                             .nesterov = o->nesterov,
		                                             .weight_decay = o->weight_decay,
		                                             .rescale = h.rescale,
		                                             .clip_norm = o->clip_norm,
		                                             .clip_value = o->clip_value});
	if (o->kind == SL_RMSPROP)
		return sl_rmsprop_update_at(at, u->params, u->grads, u->states[0],
		                            o->momentum != 0 ? u->states[1] : NULL, u->count,
		                            (struct sl_rmsprop_opts){.lr = h.lr,
		                                                     .alpha = o->alpha,
		                                                     .eps = o->eps,
		                                                     .momentum = o->momentum,
		                                                     .weight_decay = o->weight_decay,
		                                                     .rescale = h.rescale,
		                                                     .clip_norm = o->clip_norm,
		                                                     .clip_value = o->clip_value});
	return sl_adam_update_at(at, u->params, u->grads, u->states[0], u->states[1], u->count,
	                         (struct sl_adam_opts){.lr = h.lr,
	                                               .beta1 = o->beta1,
	                                               .beta2 = o->beta2,
	                                               .eps = o->eps,
	                                               .weight_decay = o->weight_decay,
	                                               .decoupled = o->kind == SL_ADAMW,
	                                               .rescale = h.rescale,
	                                               .clip_norm = o->clip_norm,
	                                               .clip_value = o->clip_value,
	                                               .step = h.step});
}

/* In the type that is computed in. */
static sl_tensor *new_state(const char *at, int which, const sl_tensor *p)
{
	if (which == SLP_TRAINER_MASTER) return sl_cast_at(at, (sl_tensor *)(uintptr_t)p, SL_FLOAT32);
	return sl_zeros_at(at, p->type.shape, (struct sl_make){slp_promoted(p->type.dtype), p->device});
}

/* The state of parameter i as it goes with `like`: zeros at first, or a master; a symbol beside symbols. */
static sl_tensor *state_of(const char *at, sl_trainer *t, int which, int i, sl_tensor *like)
{
	sl_tensor **state = &t->states[which][i], *p = t->params[i]->data;
	if (!*state && p) {
		struct slp_trace *trace = slp_trace_pause();
		SL_PAUSE
			SL_SCOPE
				*state = sl_retain(new_state(at, which, p));
		slp_trace_resume(trace);
		if (which == SLP_TRAINER_MASTER) slp_trainer_master_is_new(t, i);
	}
	if (!*state || !sl_is_symbol(like)) return *state;
	char name[320];
	snprintf(name, sizeof name, "%s_%s", t->params[i]->full_name, slp_trainer_state_name(t, which));
	return slp_symbol_of(at, *state, name);
}

static bool update_new(struct update *u, int count)
{
	enum { LISTS = 4 + SLP_TRAINER_STATES };
	sl_tensor **all = slp_calloc((size_t)count * LISTS, sizeof *all + sizeof(int));
	*u = (struct update){.params = all};
	if (!all) return false;
	u->grads = all + count;
	u->halves = all + 2 * count;
	u->masters = all + 3 * count;
	for (int i = 0; i < SLP_TRAINER_STATES; i++) u->states[i] = all + (4 + i) * count;
	u->numbers = (int *)(all + LISTS * count);
	return true;
}

/* In the place of a parameter in a half type, its master is updated, by the gradient in float32. */
static bool take_master(const char *at, sl_trainer *t, struct update *u, int i, sl_tensor **param, sl_tensor **grad)
{
	if (!*param || !*grad || !slp_is_half((*param)->type.dtype)) return *param && *grad;
	u->halves[u->nhalves] = *param;
	*param = u->masters[u->nhalves++] = state_of(at, t, SLP_TRAINER_MASTER, i, *param);
	*grad = sl_cast_at(at, *grad, SL_FLOAT32);
	return *param && *grad;
}

/* Puts parameter i with its gradient and state into the call. */
static bool update_add(const char *at, sl_trainer *t, struct update *u, int i, sl_tensor *param, sl_tensor *grad)
{
	for (int k = 0; k < t->nstates; k++)
		if (!(u->states[k][u->count] = state_of(at, t, k, i, param))) return false;
	if (!take_master(at, t, u, i, &param, &grad)) return false;
	u->params[u->count] = param;
	u->grads[u->count] = grad;
	u->numbers[u->count] = i;
	u->count++;
	return true;
}

/* So much in one operation where parameters are in no bucket: it has to fit into a device's memory. */
enum { SHARE_BYTES = 4 << 20 };

static void append(struct update *to, const struct update *from, int i, int nstates)
{
	int k = to->count++;
	to->numbers[k] = from->numbers[i];
	to->params[k] = from->params[i];
	to->grads[k] = from->grads[i];
	for (int s = 0; s < nstates; s++) to->states[s][k] = from->states[s][i];
}

static bool place(const char *at, sl_tensor **t, sl_device owner)
{
	if (owner.kind) *t = sl_place_at(at, *t, owner);
	return *t != NULL;
}

/* Puts the last one's bucket into mine, where its owner is, or as many of the owner's as go together; clipping by the
 * norm needs all.  The rest stays in u. */
static bool take_share(const char *at, const sl_trainer *t, struct update *u, struct update *mine)
{
	int last = u->numbers[u->count - 1], bucket = t->buckets[last], count = u->count;
	size_t most = bucket >= 0 || t->optimizer.clip_norm > 0 ? SIZE_MAX : SHARE_BYTES, bytes = 0;
	sl_device owner = t->owners[last];
	u->count = mine->count = 0;
	for (int i = 0; i < count; i++) {
		int n = u->numbers[i];
		bool is_mine = bytes < most && t->buckets[n] == bucket && sl_device_equal(t->owners[n], owner);
		if (is_mine) bytes += sl_tensor_bytes(u->params[i]);
		append(is_mine ? mine : u, u, i, t->nstates);
	}
	bool ok = true;
	for (int i = 0; ok && i < mine->count; i++) {
		ok = place(at, &mine->params[i], owner) && place(at, &mine->grads[i], owner);
		for (int s = 0; ok && s < t->nstates; s++) ok = place(at, &mine->states[s][i], owner);
	}
	return ok;
}

/* The parameters in half types, from their masters. */
static enum sl_status round_masters(const char *at, const struct update *u)
{
	for (int i = 0; i < u->nhalves; i++) {
		sl_tensor *half = u->halves[i];
		if (!sl_copy_inplace_at(at, half, sl_cast_at(at, u->masters[i], half->type.dtype))) return sl_error();
	}
	return SL_OK;
}

/* An operation for each share of each owner; symbols have none. */
static enum sl_status update_each(const char *at, sl_trainer *t, struct update *u, struct slp_hyper h)
{
	if (!u->count || sl_is_symbol(u->params[0])) return call(at, &t->optimizer, u, h);
	struct update mine;
	if (!update_new(&mine, t->count)) return slp_error_set(SL_ENOMEM, "sl_trainer: no memory for the update");
	enum sl_status s = SL_OK;
	SL_PAUSE
		SL_SCOPE
			while (s == SL_OK && u->count)
				s = take_share(at, t, u, &mine) ? call(at, &t->optimizer, &mine, h) : sl_error();
	free(mine.params);
	return s;
}

static enum sl_status update_all(const char *at, sl_trainer *t, struct update *u, struct slp_hyper h)
{
	const char *outer = slp_fxt_enter("update");
	enum sl_status s = slp_trainer_masters_follow(at, t) ? update_each(at, t, u, h) : sl_error();
	if (s == SL_OK) s = round_masters(at, u);
	if (s == SL_OK && u->nhalves) slp_trainer_masters_hold(t);
	slp_fxt_leave(outer);
	return s;
}

enum sl_status slp_trainer_update(const char *at, sl_trainer *trainer, sl_tensor *const *params,
                                  sl_tensor *const *grads, struct slp_hyper hyper)
{
	struct update u;
	bool ok = update_new(&u, trainer->count);
	if (!ok) slp_call_fail(at, "sl_trainer", SL_ENOMEM, "no memory for the update");
	for (int i = 0; ok && i < trainer->count; i++)
		if (params[i]) ok = update_add(at, trainer, &u, i, params[i], grads[i]);
	enum sl_status s = ok                    ? update_all(at, trainer, &u, hyper)
	                   : sl_error() != SL_OK ? sl_error()
	                                         : SL_EINVAL;
	free(u.params);
	return s;
}

/* ---- a step after sl_backward ------------------------------------------------------------------------------------ */

bool slp_param_is_frozen(const sl_param *p)
{
	return p->data && (!p->data->var || p->data->var->req == SL_GRAD_NONE);
}

/* Adds parameter i, if it is to change; false after an error. */
static bool add_fresh(const char *at, sl_trainer *t, struct update *u, int i, bool ignore_stale)
{
	sl_param *p = t->params[i];
	if (slp_param_is_frozen(p) || (ignore_stale && !p->data)) return true;
	sl_tensor *grad = sl_param_grad_at(at, p);
	if (!grad) return false;
	if (p->data->var->fresh) return update_add(at, t, u, i, p->data, grad);
	if (ignore_stale) return true;
	slp_call_fail(
	        at, "sl_trainer_step", SL_ESTATE,
	        "no sl_backward has reached parameter '%s' since the last step: its gradient is old.  If the loss is "
	        "meant to depend on a part of the network only, use .ignore_stale = true",
	        p->full_name);
	return false;
}

static void used(const sl_trainer *t)
{
	for (int i = 0; i < t->count; i++)
		if (t->params[i]->data && t->params[i]->data->var) t->params[i]->data->var->fresh = false;
}

/* The last ones first: on the way back, they come first. */
static bool sum_over_processes(const char *at, sl_trainer *t, const struct update *u, int64_t rows)
{
	bool ok = slp_trainer_size(t) == 1 || slp_ranks_begin(at, t, "sl_trainer_step", "by sl_backward", rows);
	for (int i = u->count; slp_trainer_size(t) > 1 && ok && i-- > 0;)
		ok = slp_ranks_sum(at, t, u->numbers[i], u->grads[i], (struct slp_dist_what){.rows = rows});
	return ok;
}

enum sl_status slp_trainer_step(const char *at, sl_trainer *t, int64_t divisor, int64_t rows, bool ignore_stale)
{
	struct update u;
	bool ok = update_new(&u, t->count);
	if (!ok) slp_call_fail(at, "sl_trainer_step", SL_ENOMEM, "no memory for the update");
	enum sl_status s = SL_OK;
	SL_PAUSE
		SL_SCOPE {
			for (int i = 0; ok && i < t->count; i++) ok = add_fresh(at, t, &u, i, ignore_stale);
			slp_trainer_owners(t);
			ok = ok && sum_over_processes(at, t, &u, rows);
			s = ok ? update_all(at, t, &u, slp_trainer_coming(t, divisor)) : sl_error();
		}
	free(u.params);
	if (s != SL_OK) return s;
	used(t);
	t->steps++;
	slp_fxt_step_done();
	return SL_OK;
}

/* Changes the parameters by their gradients, divided by batch_size, and counts a step; returns at once.  sl_backward
 * goes back from the sum of the losses: batch_size is how many there are, so that the parameters go down by their mean.
 * That is the rows for a loss a row, rows times tokens for a loss a token, and 1 for a loss that is a mean itself (a
 * whole step counts for itself, see sl_step_compile).  A parameter
 * whose gradient no sl_backward has written since the last step is SL_ESTATE, as is one without values, unless
 * .ignore_stale: then it is left alone; so is one whose gradient was given up (sl_attach_grad with SL_GRAD_NONE).
 * After an error nothing has changed.  SL_EINVAL: batch_size is not positive.
 * Where several processes train together (dist.h), batch_size is this one's, the same in all of them, and gradients are
 * summed over them first: sl_param_grad gives the sum then.  The first step compares what the processes are about to do,
 * SL_ESTATE if that differs, and gives all of them the parameters of rank 0.
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
	return slp_trainer_step(at, trainer, batch_size * slp_trainer_size(trainer), batch_size, opts.ignore_stale);
}
