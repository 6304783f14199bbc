/* Whole steps whose optimiser works on another device than the network (state_device.c): a program up to the gradients,
 * of which each group is used as soon as it is computed, while the program goes on. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan_groups.h"
#include "hybrid/trace.h"
#include "runtime/observe/fxt.h"
#include "starling/tensor.h"
#include "tensor/moment.h"
#include "train/step.h"
#include "train/train.h"
#include "train/trainer.h"

struct use {
	const struct slp_step_run *run;
	sl_trainer *trainer;
	int first; /* output of the program that is a gradient */
	bool now;  /* groups are used for updates at once; else all gradients are gathered before */
	struct slp_hyper hyper;
	sl_tensor **params, **grads; /* of the group, one a parameter */
	sl_tensor **data, **kept;    /* of all that are trained: their values, their gradients until all are there */
};

/* The norm of all gradients, or whether all are finite, or a sum of several, is known only after the last one. */
static bool can_use_now(const sl_step *step)
{
	const sl_trainer *t = step->trainer;
	return step->opts.accumulate <= 1 && t->optimizer.clip_norm == 0 && !slp_trainer_scales(t);
}

/* Gradients of these outputs, where they are used. */
static bool find_group(const struct use *u, sl_tensor *const *out)
{
	const sl_trainer *t = u->trainer;
	for (int i = 0, k = u->first; i < t->count; i++) {
		u->params[i] = u->grads[i] = NULL;
		if (slp_param_is_frozen(t->params[i])) continue;
		sl_tensor *grad = out[k++];
		if (!grad) continue;
		u->params[i] = u->data[i] = t->params[i]->data;
		if (!(u->grads[i] = slp_trainer_at_home(u->run->at, t, i, grad))) return false;
	}
	return true;
}

/* Copies, because the next group takes the memory of this one; under a limit of memory gradients have their own. */
static bool keep_group(const struct use *u)
{
	bool own = u->run->step->opts.memory != 0;
	for (int i = 0; i < u->trainer->count; i++) {
		sl_tensor *g = u->grads[i];
		if (g && !(u->kept[i] = sl_retain(own ? g : sl_clone_at(u->run->at, g)))) return false;
	}
	return true;
}

static bool use_group(void *context, int group, sl_tensor *const *out)
{
	const struct use *u = context;
	bool ok = false;
	(void)group;
	SL_PAUSE
		SL_SCOPE {
			ok = find_group(u, out);
			if (ok && u->now)
				ok = slp_trainer_update(u->run->at, u->trainer, u->params, u->grads, u->hyper) == SL_OK;
			else if (ok) ok = keep_group(u);
		}
	return ok;
}

/* After the program: counts the step, or makes it with the gradients that were gathered. */
static bool finish(const struct use *u, sl_step *step)
{
	int64_t rows = slp_step_rows(u->run, 0);
	size_t bytes = (size_t)u->trainer->count * sizeof *u->data;
	bool ok = true;
	if (!u->now) {
		memcpy(u->params, u->data, bytes); /* the call may put others in their places */
		memcpy(u->grads, u->kept, bytes);
		SL_PAUSE
			SL_SCOPE
				ok = slp_step_use_gradients(u->run->at, step, u->params, u->grads, rows,
				                            sl_trainer_loss_scale(u->trainer));
		return ok;
	}
	slp_trainer_advance(u->trainer, u->data, slp_step_divisor(step, rows));
	slp_fxt_step_done();
	return true;
}

/* Outputs that are in no group are one more. */
static bool use_rest(const struct use *u, const struct slp_compiled *c, sl_tensor **out)
{
	bool any = false;
	for (int i = 0; i < sl_plan_graph(c->plan)->noutputs; i++) any |= i >= u->first && out[i];
	return !any || use_group((void *)(uintptr_t)u, -1, out);
}

static bool run(struct use *u, const struct slp_compiled *c, sl_tensor **out)
{
	struct slp_step_run r = *u->run;
	sl_step *step = r.step;
	SLP_GUARD_PATIENTLY(&step->trainer->guard);
	SLP_CHANGE();
	u->hyper = slp_trainer_coming(step->trainer, slp_step_divisor(step, slp_step_rows(&r, 0)));
	const struct slp_plan_groups groups = {&step->group_memory, use_group, u};
	return slp_plan_run_groups(r.at, c->plan, r.batch, slp_step_inputs(&r, 0), &groups, out) == SL_OK &&
	       use_rest(u, c, out) && slp_step_unpad(&r, 0, c, out) && finish(u, step);
}

static bool run_with(struct slp_step_run *r, struct use *u, const struct slp_compiled *c)
{
	sl_tensor **out = slp_calloc((size_t)u->trainer->count + 1 + SL_MAX_RESULTS, sizeof *out);
	if (!out) return slp_call_fail(r->at, r->function, SL_ENOMEM, "no memory for a step") != NULL;
	bool ok = run(u, c, out);
	if (ok) slp_step_give(r, 0, out[0], out + 1, c->nresults);
	free(out);
	return ok;
}

bool slp_step_run_groups(struct slp_step_run *r)
{
	sl_trainer *t = r->step->trainer;
	if (!slp_step_gather(r->at, r->step)) return false;
	const struct slp_compiled *c = slp_step_plan(r, 0, false);
	size_t count = (size_t)t->count;
	struct use u = {.run = r, .trainer = t, .first = c ? 1 + c->nresults : 0, .now = can_use_now(r->step)};
	u.params = c ? slp_calloc(4 * count, sizeof *u.params) : NULL;
	if (c && !u.params) slp_call_fail(r->at, r->function, SL_ENOMEM, "no memory for a step");
	if (!u.params) return false;
	u.grads = u.params + count;
	u.data = u.grads + count;
	u.kept = u.data + count;
	bool ok = run_with(r, &u, c);
	for (int i = 0; i < t->count; i++) sl_release(u.kept[i]);
	free(u.params);
	return ok;
}
