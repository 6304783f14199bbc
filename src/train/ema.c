/* Moving averages of a trainer's parameters replace these for a while: update.c keeps them. */
#include <stdlib.h>
#include <string.h>

#include "starling/arithmetic.h"
#include "starling/primitives.h"
#include "tensor/moment.h"
#include "train/train.h"
#include "train/trainer.h"

void slp_trainer_drop_held(sl_trainer *t)
{
	for (int i = 0; t->held && i < t->count; i++) sl_release(t->held[i]);
	free(t->held);
	t->held = NULL;
}

bool slp_trainer_stands_in(const sl_trainer *t)
{
	return t->held != NULL;
}

bool slp_trainer_is_averaged(const char *at, const char *function, const sl_trainer *t)
{
	if (!t->held) return false;
	slp_call_fail(at, function, SL_ESTATE,
	              "the parameters have been replaced by their averages: call sl_trainer_use_averages(trainer, "
	              "false) first");
	return true;
}

/* Keeps the parameters' own values, and waits until they are kept: a copy without memory fails when its task is
 * submitted, and the tasks that overwrite the parameter would run. */
static bool hold(const char *at, sl_trainer *t)
{
	if (!(t->held = slp_calloc((size_t)t->count, sizeof *t->held)))
		return slp_call_fail(at, "sl_trainer_use_averages", SL_ENOMEM, "no memory") != NULL;
	bool ok = true;
	for (int i = 0; ok && i < t->count; i++)
		if (t->states[SLP_TRAINER_AVERAGE][i])
			ok = (t->held[i] = sl_retain(sl_clone_at(at, t->params[i]->data))) != NULL;
	for (int i = 0; ok && i < t->count; i++)
		if (t->held[i]) ok = slp_host_wait(at, "sl_trainer_use_averages", t->held[i]);
	return ok;
}

/* Masters are those of the parameters' own values. */
static bool put(const char *at, sl_trainer *t, int i, sl_tensor *values)
{
	sl_tensor *p = t->params[i]->data;
	if (values->type.dtype != p->type.dtype) values = sl_cast_at(at, values, p->type.dtype);
	p = slp_trainer_at_home(at, t, i, p);
	return values && p && sl_copy_inplace_at(at, p, values) != NULL;
}

/* The parameters have their own values again. */
static bool give_back(const char *at, sl_trainer *t)
{
	bool ok = true;
	for (int i = 0; i < t->count; i++)
		if (t->held[i]) ok = slp_host_copy(at, "sl_trainer_use_averages", t->params[i]->data, t->held[i]) && ok;
	return ok;
}

/* Masters follow earlier writes of others, but not these.  After an error nothing is changed. */
static bool stand_in(const char *at, sl_trainer *t)
{
	if (!slp_trainer_master_weights_follow(at, t)) return false;
	if (!hold(at, t)) {
		slp_trainer_drop_held(t);
		return false;
	}
	bool ok = true;
	for (int i = 0; ok && i < t->count; i++)
		if (t->held[i]) ok = put(at, t, i, t->states[SLP_TRAINER_AVERAGE][i]);
	bool back = !ok && give_back(at, t);
	slp_trainer_master_weights_hold(t);
	if (back) slp_trainer_drop_held(t);
	return ok;
}

static bool go_again(const char *at, sl_trainer *t)
{
	bool ok = give_back(at, t);
	slp_trainer_master_weights_hold(t);
	if (ok) slp_trainer_drop_held(t);
	return ok;
}

/* Where processes share the averages, each has put in its own. */
static bool spread(const char *at, sl_trainer *t)
{
	if (!slp_trainer_shards_state(t)) return true;
	sl_tensor **all = slp_calloc((size_t)t->count, sizeof *all);
	for (int i = 0; all && i < t->count; i++) all[i] = t->params[i]->data;
	bool ok = all && slp_trainer_broadcast(at, t, all);
	free(all);
	return ok;
}

/* Replaces the network's parameters by their moving averages (.average of the optimiser), or with false restores the
 * exact parameters: for an evaluation between steps, or for sl_save_params.  Until they are restored, steps and
 * checkpoints are SL_ESTATE.  Parameters that no step has updated have no average, and do not change.  Waits for the
 * parameters; a repeated call has no effect.  After SL_ENOMEM the parameters have their own values.  SL_ESTATE: the
 * optimiser keeps no averages; SL_EINVAL: NULL.  With .shard_state all processes must call it.
 *
 *     sl_trainer_use_averages(trainer, true);
 *     double accuracy = evaluate(net);
 *     sl_trainer_use_averages(trainer, false); */
enum sl_status sl_trainer_use_averages_at(const char *at, sl_trainer *trainer, bool averages)
{
	SLP_CALL("sl_trainer_use_averages", at);
	if (!slp_given(at, "sl_trainer_use_averages", "trainer", trainer)) return sl_error();
	SLP_GUARD(&trainer->guard, at, "sl_trainer_use_averages", SL_ESTATE);
	if (trainer->optimizer.average == 0) {
		slp_call_fail(at, "sl_trainer_use_averages", SL_ESTATE,
		              "the optimiser keeps no averages; .average is 0");
		return SL_ESTATE;
	}
	if (averages == (trainer->held != NULL)) return SL_OK;
	bool ok = false;
	SLP_CHANGE();
	SL_PAUSE
		SL_SCOPE
			ok = (averages ? stand_in(at, trainer) : go_again(at, trainer)) && spread(at, trainer);
	return ok ? SL_OK : sl_error();
}
