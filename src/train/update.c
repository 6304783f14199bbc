/* A trainer's step: updates, one operation for each share of each owner and group, then moving averages, and parameters
 * in half types rounded from their masters. */
#include <math.h>
#include <stdlib.h>

#include "op_inner.h"
#include "optimizer.h"
#include "runtime/fault.h"
#include "runtime/memory/admission.h"
#include "runtime/memory/spill.h"
#include "runtime/observe/fxt.h"
#include "runtime/observe/stats.h"
#include "runtime/task/priority.h"
#include "train/train.h"
#include "train/trainer.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"

/* The arguments of one update: arrays of `count` tensors. */
struct update {
	sl_tensor **params, **grads, **states[SLP_TRAINER_SUM];
	int *numbers; /* of the parameters in the trainer */
	int count;
	sl_tensor **halves, **masters; /* parameters in a half type, and the masters updated in their place */
	int nhalves;
	double clip_norm;  /* the optimiser's; 0: not in this operation */
	sl_tensor *factor; /* that clips the gradients by the norm of more than these; NULL: none */
};

/* ---- one operation ----------------------------------------------------------------------------------------------- */

/* All parameters share one group. */
static enum sl_status call(const char *at, const sl_trainer *t, const struct update *u, struct slp_hyper h)
{
	if (!u->count) return SL_OK;
	const struct slp_param_group g = t->groups[u->numbers[0]];
	struct slp_optimizer_call c = {.at = at,
	                               .function = "sl_trainer",
	                               .optimizer = &t->optimizer,
	                               .lr = h.lr,
	                               .lr_scale = g.lr_scale,
	                               .weight_decay = g.weight_decay,
	                               .rescale = h.rescale,
	                               .clip_norm = u->clip_norm,
	                               .step = h.step,
	                               .skipped = t->skipped[u->numbers[0]],
	                               .count = u->count,
	                               .params = u->params,
	                               .grads = u->grads};
	for (int i = 0; i < t->nstates; i++) c.states[i] = u->states[i];
	enum sl_status s = slp_optimizer_update(&c);
	if (s != SL_OK || t->optimizer.average == 0) return s;
	return slp_average_update(at, u->states[SLP_TRAINER_AVERAGE], u->params, u->count, t->optimizer.average);
}

/* ---- states ------------------------------------------------------------------------------------------------------ */

/* In the type that is computed in. */
static sl_tensor *new_state(const char *at, int which, const sl_tensor *p)
{
	sl_tensor *values = (sl_tensor *)(uintptr_t)p;
	if (which >= SLP_TRAINER_MASTER)
		return slp_is_half(p->type.dtype) ? sl_cast_at(at, values, SL_FLOAT32) : sl_clone_at(at, values);
	return sl_zeros_at(at, p->type.shape, (struct sl_make){slp_promoted(p->type.dtype), p->device});
}

/* Whether updates need this state of each parameter. */
static bool uses(const sl_trainer *t, int slot)
{
	return slot < t->nstates || (slot == SLP_TRAINER_AVERAGE && t->optimizer.average != 0);
}

static const char *name_of(const sl_trainer *t, int slot)
{
	return slp_trainer_state_name(t, slot < SLP_TRAINER_MASTER ? slot : t->nstates + slot - SLP_TRAINER_MASTER);
}

/* The state of parameter i as it goes with `like`: zeros at first, a master or an average; a symbol beside symbols. */
static sl_tensor *state_of(const char *at, sl_trainer *t, int which, int i, sl_tensor *like)
{
	sl_tensor **state = &t->states[which][i], *p = t->params[i]->data;
	if (!*state && p) {
		struct slp_trace *trace = slp_trace_pause();
		SL_PAUSE
			SL_SCOPE
				if ((p = slp_trainer_at_home(at, t, i, p))) *state = sl_retain(new_state(at, which, p));
		slp_trace_resume(trace);
		if (which == SLP_TRAINER_MASTER) slp_trainer_master_weight_is_new(t, i);
	}
	if (!*state || !sl_is_symbol(like)) return *state;
	char name[320];
	snprintf(name, sizeof name, "%s_%s", t->params[i]->full_name, name_of(t, which));
	return slp_symbol_of(at, *state, name);
}

static bool update_new(struct update *u, int count)
{
	enum { LISTS = 4 + SLP_TRAINER_SUM };
	sl_tensor **all = slp_calloc((size_t)count * LISTS, sizeof *all + sizeof(int));
	*u = (struct update){.params = all};
	if (!all) return false;
	u->grads = all + count;
	u->halves = all + 2 * count;
	u->masters = all + 3 * count;
	for (int i = 0; i < SLP_TRAINER_SUM; i++) u->states[i] = all + (4 + i) * count;
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
	param = slp_trainer_at_home(at, t, i, param);
	grad = slp_trainer_at_home(at, t, i, grad);
	for (int k = 0; k < SLP_TRAINER_SUM; k++)
		if (uses(t, k) && !(u->states[k][u->count] = state_of(at, t, k, i, param))) return false;
	if (!take_master(at, t, u, i, &param, &grad)) return false;
	u->params[u->count] = param;
	u->grads[u->count] = grad;
	u->numbers[u->count] = i;
	u->count++;
	return true;
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

/* So many bytes of parameters in one operation where they are in no bucket: with gradients and states, it has to fit
 * into a device's memory.  In a program all are in one if that has room; under a limit of memory, one operation's values are
 * copied while the next one runs.  Clipping by the norm needs all. */
static size_t share_of(const sl_trainer *t, const struct update *u, int last)
{
	enum { BYTES = 4 << 20, PART = 16, SMALL_PART = 64 };
	bool symbols = sl_is_symbol(u->params[0]);
	if (u->clip_norm > 0 || (!symbols && t->buckets[last] >= 0)) return SIZE_MAX;
	size_t room = slp_admission_room(u->params[u->count - 1]->device);
	size_t part = room / (slp_admission_limit ? SMALL_PART : PART);
	if (!part || (!symbols && part > BYTES)) return symbols ? SIZE_MAX : BYTES;
	return part;
}

static void append(struct update *to, const struct update *from, int i)
{
	int k = to->count++;
	to->numbers[k] = from->numbers[i];
	to->params[k] = from->params[i];
	to->grads[k] = from->grads[i];
	for (int s = 0; s < SLP_TRAINER_SUM; s++) to->states[s][k] = from->states[s][i];
}

static bool place(const char *at, sl_tensor **t, sl_device owner)
{
	if (*t && owner.kind && !sl_is_symbol(*t)) return (*t = sl_place_at(at, *t, owner)) != NULL;
	return true;
}

/* Whether one operation updates both parameters: same types and, unless they are symbols, which have neither, same
 * owner, and same bucket if it does not clip by the norm of all. */
static bool together(const sl_trainer *t, const struct update *u, bool symbols, int a, int b)
{
	if (!slp_trainer_alike(t, a, b)) return false;
	bool same_bucket = u->clip_norm > 0 || t->buckets[a] == t->buckets[b];
	return symbols || (same_bucket && sl_device_equal(t->owners[a], t->owners[b]));
}

/* Just before their update, so that few clipped gradients exist at a time. */
static bool clip(const char *at, const struct update *u)
{
	for (int i = 0; u->factor && i < u->count; i++)
		if (!(u->grads[i] = sl_mul_at(at, u->grads[i], u->factor))) return false;
	return true;
}

/* Puts the last one's bucket into mine, where its owner is, or as many of the owner's as go together.  The rest stays
 * in u. */
static bool take_share(const char *at, const sl_trainer *t, struct update *u, struct update *mine)
{
	int last = u->numbers[u->count - 1], count = u->count;
	bool symbols = sl_is_symbol(u->params[0]);
	size_t most = share_of(t, u, last), bytes = 0;
	sl_device owner = t->owners[last];
	u->count = mine->count = 0;
	for (int i = 0; i < count; i++) {
		bool is_mine = bytes < most && together(t, u, symbols, u->numbers[i], last);
		if (is_mine) bytes += sl_tensor_bytes(u->params[i]);
		append(is_mine ? mine : u, u, i);
	}
	bool ok = clip(at, mine);
	for (int i = 0; ok && i < mine->count; i++) {
		ok = place(at, &mine->params[i], owner) && place(at, &mine->grads[i], owner);
		for (int s = 0; ok && s < SLP_TRAINER_SUM; s++) ok = place(at, &mine->states[s][i], owner);
	}
	return ok;
}

/* ---- the norm of several groups ---------------------------------------------------------------------------------- */

static bool is_grouped(const sl_trainer *t, const struct update *u)
{
	for (int i = 1; i < u->count; i++)
		if (!slp_trainer_alike(t, u->numbers[i], u->numbers[0])) return true;
	return false;
}

/* The factor by which gradients are clipped: 1 if their norm, rescaled, is below clip_norm; NaN if the norm is not a
 * number. */
static sl_tensor *clip_factor(const char *at, const struct update *u, double rescale)
{
	sl_tensor *all = NULL;
	for (int i = 0; i < u->count; i++) {
		sl_tensor *part = sl_sum_at(at, sl_square_at(at, u->grads[i]), (struct sl_reduce_opts){0});
		all = all ? sl_add_at(at, all, part) : part;
	}
	sl_tensor *norm = sl_mul_scalar_at(at, sl_sqrt_at(at, all), fabs(rescale));
	return sl_minimum_scalar_at(at, sl_rdiv_scalar_at(at, norm, u->clip_norm), 1);
}

/* Where parameters of several groups are updated by several operations, gradients are clipped before them. */
static bool clip_before(const char *at, const sl_trainer *t, struct update *u, double rescale)
{
	if (u->clip_norm == 0 || !is_grouped(t, u)) return true;
	u->factor = clip_factor(at, u, rescale);
	u->clip_norm = 0;
	return u->factor != NULL;
}

/* All gradients, as they are used: not only those of parameters that are updated here. */
static bool list_all(const char *at, const sl_trainer *t, sl_tensor *const *grads, struct update *all)
{
	if (!update_new(all, t->count)) return false;
	all->clip_norm = t->optimizer.clip_norm;
	for (int i = 0; i < t->count; i++) {
		sl_tensor *g = grads[i];
		if (!g) continue;
		if (slp_is_half(g->type.dtype) && !(g = sl_cast_at(at, g, SL_FLOAT32))) return false;
		all->numbers[all->count] = i;
		all->grads[all->count++] = g;
	}
	return true;
}

/* Whether one operation on all takes more than half of the room on their device, which others need, too. */
static bool is_too_large(const sl_trainer *t, const struct update *u)
{
	size_t bytes = 0, room = u->count ? slp_admission_room(u->params[0]->device) : 0;
	int tensors = 2; /* and states */
	for (int k = 0; k < SLP_TRAINER_SUM; k++) tensors += uses(t, k);
	for (int i = 0; i < u->count; i++) bytes += (size_t)tensors * sl_tensor_bytes(u->params[i]);
	return room && bytes > room / 2;
}

/* Under a limit of memory, from some gradients at a time: each may leave then. */
static sl_tensor *clip_scale(const char *at, const struct update *all, double rescale)
{
	enum { PART = 16 };
	if (!slp_admission_limit) return slp_clip_scale(at, all->grads, all->count, rescale, all->clip_norm);
	return slp_clip_scale_in_parts(at, all->grads, all->count, rescale, all->clip_norm, slp_admission_limit / PART);
}

/* If other processes update the rest, or one operation on all would not fit under a limit of memory, beside a spill file or
 * into a GPU, the norm is still that of all gradients, summed in the same order. */
static bool clip_mine(const char *at, const sl_trainer *t, struct update *u, sl_tensor *const *grads,
                      struct slp_hyper *h)
{
	struct update all;
	if (u->clip_norm == 0 || !u->count) return true;
	if (!slp_trainer_shards_state(t) && !slp_admission_limit && !slp_spill_room() && !is_too_large(t, u))
		return true;
	bool ok = list_all(at, t, grads, &all), apart = ok && is_grouped(t, &all);
	if (ok) u->factor = apart ? clip_factor(at, &all, h->rescale) : clip_scale(at, &all, h->rescale);
	free(all.params);
	u->clip_norm = 0;
	if (!apart) h->rescale = 1;
	return u->factor != NULL;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

/* The parameters in half types, from their masters. */
static enum sl_status round_masters(const char *at, const struct update *u)
{
	for (int i = 0; i < u->nhalves; i++) {
		sl_tensor *half = u->halves[i];
		if (!sl_copy_inplace_at(at, half, sl_cast_at(at, u->masters[i], half->type.dtype))) return sl_error();
	}
	return SL_OK;
}

/* An operation for each share. */
static enum sl_status update_each(const char *at, sl_trainer *t, struct update *u, struct slp_hyper h)
{
	struct update mine;
	if (!clip_before(at, t, u, h.rescale)) return sl_error();
	if (!update_new(&mine, t->count)) return slp_error_set(SL_ENOMEM, "sl_trainer: no memory for the update");
	mine.clip_norm = u->clip_norm;
	mine.factor = u->factor;
	enum sl_status s = SL_OK;
	SL_PAUSE
		SL_SCOPE
			while (s == SL_OK && u->count)
				s = take_share(at, t, u, &mine) ? call(at, t, &mine, h) : sl_error();
	free(mine.params);
	return s;
}

static enum sl_status update_all(const char *at, sl_trainer *t, struct update *u, struct slp_hyper h)
{
	const char *outer = slp_fxt_enter("update");
	int level = slp_level_enter(SLP_LEVEL_SUM);
	enum sl_status s = slp_trainer_master_weights_follow(at, t) ? update_each(at, t, u, h) : sl_error();
	if (s == SL_OK) s = round_masters(at, u);
	if (s == SL_OK && u->nhalves) slp_trainer_master_weights_hold(t);
	slp_level_leave(level);
	slp_fxt_leave(outer);
	return s;
}

enum sl_status slp_trainer_update(const char *at, sl_trainer *trainer, sl_tensor *const *params,
                                  sl_tensor *const *grads, struct slp_hyper hyper)
{
	struct update u;
	bool ok = update_new(&u, trainer->count);
	if (!ok) slp_call_fail(at, "sl_trainer", SL_ENOMEM, "no memory for the update");
	u.clip_norm = trainer->optimizer.clip_norm;
	for (int i = 0; ok && i < trainer->count; i++)
		if (params[i] && slp_trainer_has_state_of(trainer, i))
			ok = update_add(at, trainer, &u, i, params[i], grads[i]);
	ok = ok && clip_mine(at, trainer, &u, grads, &hyper);
	enum sl_status s = ok ? update_all(at, trainer, &u, hyper) : sl_error() != SL_OK ? sl_error() : SL_EINVAL;
	if (s == SL_OK && !slp_trainer_broadcast(at, trainer, params)) s = sl_error();
	free(u.params);
	return s;
}

/* ---- a step that gradients may overflow ----------------------------------------------------------------------------- */

enum sl_status slp_trainer_apply(const char *at, sl_trainer *t, sl_tensor *const *params, sl_tensor *const *grads,
                                 int64_t divisor, double scale)
{
	int finite = slp_trainer_scales(t) ? slp_loss_scaling_finite(at, t, grads) : 1;
	if (finite < 0) return sl_error();
	struct slp_hyper h = slp_trainer_coming(t, divisor);
	h.rescale /= scale;
	enum sl_status s = finite ? slp_trainer_update(at, t, params, grads, h) : SL_OK;
	if (s != SL_OK) return s;
	if (finite) slp_trainer_advance(t, params, divisor);
	if (!finite) SLP_COUNT(overflows);
	return !slp_trainer_scales(t) || slp_loss_scaling_follow(at, t, finite) ? SL_OK : sl_error();
}
