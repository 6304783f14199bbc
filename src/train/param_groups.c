/* Groups of parameters by patterns of their paths: separate learning rates and decay, freezing. */
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>

#include "autograd/autograd.h"
#include "options.h"
#include "train/train.h"
#include "train/trainer.h"

int slp_param_matches(const char *at, const sl_block *block, const sl_param *param, const char *pattern)
{
	char *path = slp_param_path(block, param);
	if (!path) return slp_call_fail(at, "parameters", SL_ENOMEM, "no memory for a parameter's path"), -1;
	int matches = fnmatch(pattern, path, 0) == 0;
	free(path);
	return matches;
}

static enum sl_status no_match(const char *at, const char *function, const sl_block *block, const char *pattern)
{
	slp_call_fail(at, function, SL_EINVAL,
	              "no parameter of %s that is trained matches \"%s\"; patterns are those of "
	              "paths, as sl_block_find has them",
	              sl_block_name(block), pattern);
	return SL_EINVAL;
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

static const char *wrong_group(const struct sl_group_opts *o)
{
	if (!(o->lr_scale >= 0 && isfinite(o->lr_scale))) return ".lr_scale must not be negative";
	if (!(o->weight_decay >= 0 && isfinite(o->weight_decay))) return ".weight_decay must not be negative";
	if (o->no_decay && slp_was_given(o->weight_decay)) return ".no_decay and .weight_decay do not go together";
	if (!o->no_decay && !slp_was_given(o->lr_scale) && !slp_was_given(o->weight_decay))
		return "there is nothing to change";
	return NULL;
}

static void change(struct slp_param_group *g, const struct sl_group_opts *o)
{
	if (slp_was_given(o->lr_scale)) g->lr_scale = o->lr_scale;
	if (o->no_decay || slp_was_given(o->weight_decay)) g->weight_decay = o->weight_decay;
}

static enum sl_status change_group(const char *at, sl_trainer *t, const char *pattern, const struct sl_group_opts *o)
{
	int found = 0;
	for (int i = 0; i < t->count; i++) {
		int matches = slp_param_matches(at, t->block, t->params[i], pattern);
		if (matches < 0) return SL_ENOMEM;
		if (matches) change(&t->groups[i], o);
		found += matches;
	}
	t->changes++;
	return found ? SL_OK : no_match(at, "sl_trainer_group", t->block, pattern);
}

/* Sets another learning rate or decay for the parameters whose paths match a shell pattern ("*.bias", "0.*", as in
 * fnmatch, where * also matches dots): .lr_scale times the trainer's scheduled rate; .weight_decay instead of the
 * optimiser's, or .no_decay.  Omitted settings do not change; if several patterns match, the last call counts.
 * .clip_norm covers all groups together.  Checkpoints do not contain groups: the program defines them again before it
 * restores one.  Programs of whole steps are compiled again.  SL_EINVAL: nothing matches, a negative number, nothing to
 * change, NULL.
 *
 *     sl_trainer_group(trainer, "*bias", .no_decay = true);
 *     sl_trainer_group(trainer, "features.*", .lr_scale = 0.1); */
enum sl_status sl_trainer_group_at(const char *at, sl_trainer *trainer, const char *pattern, struct sl_group_opts opts)
{
	SLP_CALL("sl_trainer_group", at);
	if (!SLP_OPTIONS(sl_group_opts, at, "sl_trainer_group", &opts)) return SL_EINVAL;
	if (!slp_given(at, "sl_trainer_group", "trainer", trainer) ||
	    !slp_given(at, "sl_trainer_group", "pattern", pattern))
		return sl_error();
	SLP_GUARD(&trainer->guard, at, "sl_trainer_group", SL_ESTATE);
	const char *wrong = wrong_group(&opts);
	if (!wrong) return change_group(at, trainer, pattern, &opts);
	slp_call_fail(at, "sl_trainer_group", SL_EINVAL, "%s", wrong);
	return SL_EINVAL;
}

/* Which parameters are frozen, too: a program may have done that with sl_attach_grad. */
unsigned slp_trainer_changes(const sl_trainer *t)
{
	unsigned frozen = 0;
	for (int i = 0; i < t->count; i++) frozen = 31 * frozen + slp_param_is_frozen(t->params[i]);
	return t->changes + t->block->base->changes + frozen;
}

/* ---- freezing ---------------------------------------------------------------------------------------------------- */

/* A gradient is attached or detached; the number of gathered ones is unchanged. */
static bool set_frozen(const char *at, sl_param *p, bool frozen)
{
	const struct slp_var *v = p->data ? p->data->var : NULL;
	bool is = p->data ? slp_param_is_frozen(p) : p->frozen;
	int gather = v ? v->gather : p->gather;
	enum sl_grad_req req = frozen ? SL_GRAD_NONE : SL_GRAD_WRITE;
	if (is != frozen && p->data && sl_attach_grad_at(at, p->data, (struct sl_attach_opts){req}) != SL_OK)
		return false;
	p->frozen = frozen;
	if (is == frozen) return true;
	slp_block_changed(p->block);
	if (p->data && p->data->var) p->data->var->gather = gather;
	return true;
}

static enum sl_status freeze(const char *at, const char *function, sl_block *block, const char *pattern, bool frozen)
{
	if (!slp_given(at, function, "block", block) || !slp_given(at, function, "pattern", pattern)) return sl_error();
	int count = 0, found = 0;
	sl_param **all = slp_block_all_params(at, block, &count);
	bool ok = all != NULL;
	for (int i = 0; ok && i < count; i++) {
		int matches = all[i]->opts.no_grad ? 0 : slp_param_matches(at, block, all[i], pattern);
		ok = matches >= 0 && (!matches || set_frozen(at, all[i], frozen));
		found += matches > 0;
	}
	free(all);
	if (!ok) return sl_error();
	return found ? SL_OK : no_match(at, function, block, pattern);
}

/* Freezes the parameters of a block whose paths match a pattern (see sl_trainer_group): no gradients are computed for
 * them, and trainers do not change them, their states or their moving averages.  This also applies to parameters
 * without values, and after sl_initialize.  Running statistics still change.  SL_EINVAL: no trained parameter matches,
 * NULL.
 *
 *     sl_load_params(net, "resnet18.params", .lenient = true);
 *     sl_freeze(net, "features.*"); */
enum sl_status sl_freeze_at(const char *at, sl_block *block, const char *pattern)
{
	SLP_CALL("sl_freeze", at);
	return freeze(at, "sl_freeze", block, pattern, true);
}

/* Trains frozen parameters again, from the next forward pass on; otherwise as sl_freeze.  Steps that did not update
 * them do not count for Adam, as with torch.optim. */
enum sl_status sl_unfreeze_at(const char *at, sl_block *block, const char *pattern)
{
	SLP_CALL("sl_unfreeze", at);
	return freeze(at, "sl_unfreeze", block, pattern, false);
}
