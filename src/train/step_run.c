/* Running whole steps: as one program, or, where a batch is cut into shards or the update is no part of the program, in
 * step_shards.c. */
#include <stdlib.h>
#include <string.h>

#include "hybrid/trace.h"
#include "runtime/observe/fxt.h"
#include "tensor/moment.h"
#include "train/step.h"
#include "train/train.h"
#include "train/trainer.h"

static uint64_t bits(double x)
{
	uint64_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

/* Whether a run is one program with the update; masters are updated behind programs, and so are sums of micro-batches,
 * and what loss scaling may leave out. */
static bool is_whole(const sl_step *step)
{
	return step->opts.accumulate <= 1 && !slp_trainer_rounds(step->trainer) && !slp_trainer_scales(step->trainer);
}

/* Whether the step is one, and can take so many tensors. */
static bool fits(const struct slp_step_run *r)
{
	if (!r->step) {
		if (sl_error() == SL_OK) slp_call_fail(r->at, r->function, SL_EINVAL, "the step is NULL");
	} else if (r->n < 1 || r->nin < 1 || !r->batch || r->ntargets < 0 || r->nout < 0 || (r->nout && !r->out)) {
		slp_call_fail(r->at, r->function, SL_EINVAL, "there is no %s",
		              r->n < 1                  ? "shard"
		              : r->nin < 1 || !r->batch ? "input"
		              : r->nout > 0 && !r->out  ? "room for the results"
		                                        : "such number of targets or results");
	} else if (!r->step->loss_of_all && r->ntargets != 1) {
		slp_call_fail(r->at, r->function, SL_EINVAL, "the loss takes one target, but %d are given",
		              r->ntargets);
	} else {
		return true;
	}
	return false;
}

static bool compile(const struct slp_step_run *r)
{
	return slp_step_plan(r, 0, slp_step_is_alone(r->step) && is_whole(r->step)) != NULL;
}

static enum sl_status prepare(const struct slp_step_run *r)
{
	if (!fits(r)) return sl_error();
	SLP_GUARD(&r->step->guard, r->at, r->function, sl_error());
	if (!slp_step_is_alone(r->step) && slp_block_synchronised(r->step->net)) return SL_OK; /* there is no program */
	return slp_step_filled(r, compile) ? SL_OK : sl_error();
}

/* Compiles the step for batches like x with their targets, without making one: then the first sl_step_run takes no
 * longer than others, and sl_step_info and sl_step_graph describe the compiled program.  Errors are those of
 * sl_step_run.
 *
 *     if (sl_step_prepare(step, x, y) == SL_OK) printf("%.1f ms\n", 1e3 * sl_step_info(step).seconds); */
enum sl_status sl_step_prepare_at(const char *at, sl_step *step, sl_tensor *x, sl_tensor *target)
{
	SLP_CALL("sl_step_prepare", at);
	sl_tensor *batch[2] = {x, target};
	return prepare(&(struct slp_step_run){at, "sl_step_prepare", step, 1, batch, 1, 1, NULL, NULL, NULL, 0, NULL});
}

/* Results that were not requested belong to the scope, or are released. */
static void hand_over(const struct slp_step_run *r, sl_tensor *const *heads, int nresults)
{
	*r->losses = heads[0];
	for (int i = 0; i < nresults; i++)
		if (r->out && i < r->nout) r->out[i] = heads[1 + i];
		else if (!slp_scope_is_open()) sl_release(heads[1 + i]);
}

/* One program with the update. */
static bool run_whole(const struct slp_step_run *r)
{
	sl_tensor *heads[1 + SL_MAX_RESULTS];
	const struct slp_compiled *c = slp_step_plan(r, 0, true);
	if (!c) return false;
	sl_trainer *t = r->step->trainer;
	SLP_GUARD_PATIENTLY(&t->guard);
	SLP_CHANGE();
	struct slp_hyper h = slp_trainer_advance(t, NULL, slp_step_divisor(r->step, slp_step_rows(r, 0)));
	struct slp_setting settings[] = {{"lr", bits(h.lr)}, {"rescale", bits(h.rescale)}, {"step", (uint64_t)h.step}};
	if (slp_plan_run(r->at, c->plan, r->batch, slp_step_inputs(r, 0), settings, 3, NULL, heads) != SL_OK)
		return false;
	slp_fxt_step_done();
	if (!slp_step_cut(r, 0, c, heads)) return false;
	hand_over(r, heads, c->nresults);
	return true;
}

static sl_tensor *run(const struct slp_step_run *r)
{
	sl_step *step = r->step;
	slp_step_clear(r);
	if (!fits(r)) return NULL;
	SLP_GUARD(&step->guard, r->at, r->function, NULL);
	if (slp_trainer_is_averaged(r->at, r->function, step->trainer) ||
	    !slp_trainer_has_all(r->at, r->function, step->trainer))
		return NULL;
	bool whole = is_whole(step) && slp_step_is_alone(step);
	return (whole ? slp_step_filled(r, run_whole) : slp_step_run_shards(r)) ? *r->losses : NULL;
}

/* Makes one step on a batch x with its targets, and returns at once.  Returns the losses, as the loss function returned
 * them, and the output of the network in *output, if output is not NULL: new tensors.  NULL after a mistake, and
 * nothing was updated: SL_ESTATE, forward cannot be traced, or the loss does not depend on a parameter; else those of
 * the operations; SL_EUNSUPPORTED: x or the target has a gradient attached, which a step does not compute (SL_RECORD,
 * sl_backward and sl_trainer_step do).  A mistake that is found only when the program runs, as an index that is out of
 * range, has spoilt the parameters of that step: to wait for the loss is too late.  Look at such inputs before, or go
 * on from the last checkpoint.  Where several processes train together (dist.h), the batch is this one's part, as many
 * rows in all of them, and the gradients are summed over them: see sl_trainer_step. */
sl_tensor *sl_step_run_at(const char *at, sl_step *step, sl_tensor *x, sl_tensor *target, sl_tensor **output)
{
	SLP_CALL("sl_step_run", at);
	sl_tensor *batch[2] = {x, target}, *losses = NULL;
	return run(&(struct slp_step_run){at, "sl_step_run", step, 1, batch, 1, 1, NULL, &losses, output,
	                                  output != NULL, NULL});
}

/* ---- several inputs and targets ---------------------------------------------------------------------------------- */

/* Puts the arrays of all shards together, in r->batch, which the caller frees.  False with an error. */
static bool join(struct slp_step_run *r, sl_tensor *const *in, sl_tensor *const *targets)
{
	r->batch = in; /* to see whether there is one */
	slp_step_clear(r);
	if (!fits(r)) return false;
	if (r->ntargets > 0 && !targets)
		return slp_call_fail(r->at, r->function, SL_EINVAL, "the array of targets is NULL") != NULL;
	size_t nin = (size_t)r->nin, each = nin + (size_t)r->ntargets;
	r->batch = NULL;
	sl_tensor **batch = slp_malloc((size_t)r->n * each * sizeof *batch);
	if (!batch) return slp_call_fail(r->at, r->function, SL_ENOMEM, "no memory for a step") != NULL;
	for (size_t i = 0; i < (size_t)r->n; i++) {
		memcpy(batch + i * each, in + i * nin, nin * sizeof *batch);
		if (each > nin)
			memcpy(batch + i * each + nin, targets + i * (each - nin), (each - nin) * sizeof *batch);
	}
	r->batch = r->owned = batch;
	return true;
}

/* sl_step_prepare for several inputs and targets. */
enum sl_status sl_step_prepare_all_at(const char *at, sl_step *step, sl_tensor *const *in, int nin,
                                      sl_tensor *const *targets, int ntargets)
{
	SLP_CALL("sl_step_prepare_all", at);
	struct slp_step_run r = {at, "sl_step_prepare_all", step, 1, NULL, nin, ntargets, NULL, NULL, NULL, 0, NULL};
	enum sl_status s = join(&r, in, targets) ? prepare(&r) : sl_error();
	free(r.owned);
	return s;
}

/* sl_step_run for a network of nin inputs, with ntargets targets (none is possible): returns the losses, and in out the
 * first nout results of the network (out may be NULL if nout is 0).  The batch has as many rows as the first input.
 * NULL after a mistake, those of sl_step_run, and SL_EINVAL: there is no input, or the network has fewer results. */
sl_tensor *sl_step_run_all_at(const char *at, sl_step *step, sl_tensor *const *in, int nin, sl_tensor *const *targets,
                              int ntargets, sl_tensor **out, int nout)
{
	SLP_CALL("sl_step_run_all", at);
	sl_tensor *losses = NULL;
	struct slp_step_run r = {at, "sl_step_run_all", step, 1, NULL, nin, ntargets, NULL, &losses, out, nout, NULL};
	if (join(&r, in, targets)) run(&r);
	free(r.owned);
	return losses;
}

static bool run_cut(const struct slp_step_run *r)
{
	SLP_GUARD(&r->step->guard, r->at, r->function, false);
	return !slp_trainer_is_averaged(r->at, r->function, r->step->trainer) && slp_step_run_shards(r);
}

static enum sl_status run_shards(struct slp_step_run *r, sl_tensor *const *in, sl_tensor *const *targets)
{
	bool ok = join(r, in, targets) && run_cut(r);
	free(r->owned);
	return ok ? SL_OK : sl_error();
}

/* Makes one step on a batch that is split into n shards (sl_split_and_load), and returns at once: each shard runs on
 * the device of its rows as one program, up to the gradients by all parameters; these are added in a fixed tree on the
 * device that owns the parameter, and used there (see sl_trainer_new).  The result depends on how the batch is split,
 * not on how many devices of a kind share the shards. Shards count by their rows: the gradient is that of the whole
 * batch, whether there is a loss for each row, for each token, or each shard's mean. The network must have been
 * initialised for all of the devices. losses and outputs, if not NULL, get n tensors as sl_step_run returns them, on
 * the shards' devices.  After an error (those of sl_step_run) nothing was updated.  A network with synchronised layers
 * is run call by call instead: sl_forward_shards, sl_backward and sl_trainer_step.
 *
 *     sl_split_and_load(x, devices, 2, xs);
 *     sl_split_and_load(y, devices, 2, ys);
 *     sl_step_run_shards(step, 2, xs, ys, losses, NULL); */
enum sl_status sl_step_run_shards_at(const char *at, sl_step *step, int n, sl_tensor *const *x,
                                     sl_tensor *const *targets, sl_tensor **losses, sl_tensor **outputs)
{
	SLP_CALL("sl_step_run_shards", at);
	struct slp_step_run r = {at,      "sl_step_run_shards", step, n, NULL, 1, 1, NULL, losses,
	                         outputs, outputs != NULL,      NULL};
	return run_shards(&r, x, targets);
}

/* As sl_step_run_shards, for networks with several inputs or results, or other numbers of targets: in and targets have
 * those of the first shard, then those of the second, and so on; out (NULL if nout is 0) gets the first nout results of
 * each shard in the same order.  SL_EUNSUPPORTED: a network with synchronised layers that takes several inputs.
 *
 *     sl_tensor *in[4], *targets[4];   // shard 0: in[0], in[1]; shard 1: in[2], in[3]
 *     sl_step_run_all_shards(step, 2, in, 2, targets, 2, losses, NULL, 0); */
enum sl_status sl_step_run_all_shards_at(const char *at, sl_step *step, int n, sl_tensor *const *in, int nin,
                                         sl_tensor *const *targets, int ntargets, sl_tensor **losses, sl_tensor **out,
                                         int nout)
{
	SLP_CALL("sl_step_run_all_shards", at);
	struct slp_step_run r = {at,  "sl_step_run_all_shards", step, n, NULL, nin, ntargets, NULL, losses, out, nout,
	                         NULL};
	return run_shards(&r, in, targets);
}
