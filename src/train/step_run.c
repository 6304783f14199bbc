/* Running whole steps: as one program, or, if the batch has shards or the update is not part of the program, in
 * step_shards.c. */
#include <stdlib.h>
#include <string.h>

#include "hybrid/trace.h"
#include "runtime/device/auto.h"
#include "tensor/moment.h"
#include "train/step.h"
#include "train/traced.h"
#include "train/train.h"
#include "train/trainer.h"

static uint64_t bits(double x)
{
	uint64_t u;
	memcpy(&u, &x, sizeof u);
	return u;
}

/* Whether a run is one program with the update: not with sums of micro-batches, masters or loss scaling, whose updates
 * follow the program, nor if another device updates. */
static bool is_whole(const sl_step *step)
{
	const sl_trainer *t = step->trainer;
	return step->opts.accumulate <= 1 && !slp_trainer_rounds(t) && !slp_trainer_scales(t) &&
	       !slp_trainer_is_apart(t);
}

/* Whether the step exists, and takes this number of tensors. */
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
	} else if (!r->step->opts.loss_of_all && r->ntargets != 1) {
		slp_call_fail(r->at, r->function, SL_EINVAL, "the loss takes one target, but %d are given",
		              r->ntargets);
	} else {
		return true;
	}
	return false;
}

/* ---- a batch ----------------------------------------------------------------------------------------------------- */

enum { FEW = 8 };

/* Clears the caller's results. */
static void clear_results(const struct slp_step_run *r)
{
	for (int i = 0; r->losses && i < r->n; i++) r->losses[i] = NULL;
	int64_t all = r->out && r->n > 0 ? (int64_t)r->n * r->nout : 0; /* they have not been checked yet */
	for (int64_t i = 0; i < all; i++) r->out[i] = NULL;
}

/* Makes arrays of one of x, target and output; false: one thing was given in two ways. */
static bool as_arrays(const struct slp_step_run *r, struct sl_step_batch *b)
{
	bool arrays = b->in || b->nin || b->targets || b->ntargets;
	const char *twice = arrays          ? b->x || b->target ? "x and target, or .in and .targets, not both" : NULL
	                    : b->shards > 1 ? ".in and .targets of several shards, not x and target"
	                                    : NULL;
	if (b->output && (b->out || b->nout)) twice = ".output or .out, not both";
	if (twice) return slp_call_fail(r->at, r->function, SL_EINVAL, "give %s", twice) != NULL;
	if (!arrays) {
		b->in = &b->x;
		b->targets = &b->target;
	}
	if (b->in && !b->nin) b->nin = 1;
	if (b->targets && !b->ntargets) b->ntargets = 1;
	if (b->output) {
		b->out = b->output;
		b->nout = 1;
	}
	return true;
}

/* Joins the inputs and targets of all shards in r->batch: in few, or in memory that the caller frees, r->owned. */
static bool join(struct slp_step_run *r, const struct sl_step_batch *b, sl_tensor **few)
{
	if (r->ntargets > 0 && !b->targets)
		return slp_call_fail(r->at, r->function, SL_EINVAL, "the array of targets is NULL") != NULL;
	size_t nin = (size_t)r->nin, n = (size_t)r->n, each = nin + (size_t)r->ntargets;
	sl_tensor **batch = each <= FEW && n * each <= FEW ? few : (r->owned = slp_calloc(n, each * sizeof *batch));
	if (!batch) return slp_call_fail(r->at, r->function, SL_ENOMEM, "no memory for a step") != NULL;
	for (size_t i = 0; i < n; i++) {
		memcpy(batch + i * each, b->in + i * nin, nin * sizeof *batch);
		if (each > nin)
			memcpy(batch + i * each + nin, b->targets + i * (each - nin), (each - nin) * sizeof *batch);
	}
	r->batch = batch;
	return true;
}

/* The run that a call asks for; false with an error. */
static bool take(struct slp_step_run *r, struct sl_step_batch *b, sl_tensor **few)
{
	bool once = as_arrays(r, b);
	r->n = b->shards ? b->shards : 1;
	r->split = b->shards != 0;
	r->batch = b->in; /* to see whether there is one */
	r->nin = b->nin;
	r->ntargets = b->ntargets;
	r->losses = b->losses;
	r->out = b->out;
	r->nout = b->nout;
	clear_results(r);
	return once && fits(r) && join(r, b, few);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static bool compile(struct slp_step_run *r)
{
	return slp_step_plan(r, 0, slp_step_is_alone(r->step) && is_whole(r->step)) != NULL;
}

static bool prepare(struct slp_step_run *r)
{
	SLP_GUARD(&r->step->guard, r->at, r->function, false);
	if (!slp_step_is_alone(r->step) && slp_block_synchronised(r->step->net)) return true; /* there is no program */
	return slp_step_filled(r, compile);
}

/* Compiles the step for batches of these shapes, without making a step, so that the first sl_step_run takes no longer
 * than others, and sl_step_info and sl_step_graph describe the program.  Results are not computed.  SL_EUNSUPPORTED:
 * a batch that is split into shards; other errors are those of sl_step_run.
 *
 *     if (sl_step_prepare(step, x, y) == SL_OK) printf("%.1f ms\n", 1e3 * sl_step_info(step).seconds); */
enum sl_status sl_step_prepare_at(const char *at, sl_step *step, struct sl_step_batch batch)
{
	SLP_CALL("sl_step_prepare", at);
	sl_tensor *few[FEW];
	struct slp_step_run r = {.at = at, .function = "sl_step_prepare", .step = step};
	batch.output = batch.losses = batch.out = NULL;
	batch.nout = 0;
	bool ok = take(&r, &batch, few);
	if (ok && r.split) {
		slp_call_fail(at, r.function, SL_EUNSUPPORTED, "a batch in shards cannot be prepared");
		ok = false;
	}
	ok = ok && prepare(&r);
	free(r.owned);
	return ok ? SL_OK : sl_error();
}

void slp_step_give(struct slp_step_run *r, int shard, sl_tensor *losses, sl_tensor *const *results, int nresults)
{
	bool scope = slp_scope_is_open();
	if (shard == 0) r->first = losses;
	if (r->losses) r->losses[shard] = losses;
	else if (shard > 0 && !scope) sl_release(losses);
	for (int k = 0; k < nresults; k++)
		if (r->out && k < r->nout) r->out[shard * r->nout + k] = results[k];
		else if (!scope) sl_release(results[k]);
}

/* One program with the update. */
static bool run_whole(struct slp_step_run *r)
{
	sl_tensor *heads[1 + SL_MAX_RESULTS];
	SLP_AUTO_DEAL_SCOPE();
	slp_step_deal(r);
	slp_auto_deal.shard = 0;
	const struct slp_compiled *c = slp_step_plan(r, 0, true);
	if (!c) return false;
	sl_trainer *t = r->step->trainer;
	SLP_GUARD_PATIENTLY(&t->guard);
	SLP_CHANGE();
	struct slp_hyper h = slp_trainer_advance(t, NULL, slp_step_divisor(r->step, slp_step_rows(r, 0)));
	struct slp_setting settings[] = {{"lr", bits(h.lr)}, {"rescale", bits(h.rescale)}, {"step", (uint64_t)h.step}};
	if (slp_plan_run(r->at, c->plan, r->batch, slp_step_inputs(r, 0), settings, 3, NULL, heads) != SL_OK)
		return false;
	slp_traced_step_done(t);
	if (!slp_step_unpad(r, 0, c, heads)) return false;
	slp_step_return_to_auto(heads, 1 + c->nresults);
	slp_step_give(r, 0, heads[0], heads + 1, c->nresults);
	return true;
}

static bool run(struct slp_step_run *r)
{
	sl_step *step = r->step;
	SLP_GUARD(&step->guard, r->at, r->function, false);
	if (slp_trainer_is_averaged(r->at, r->function, step->trainer) ||
	    !slp_trainer_has_all(r->at, r->function, step->trainer))
		return false;
	slp_traced_batch(r);
	bool whole = !r->split && is_whole(step) && slp_step_is_alone(step);
	return whole ? slp_step_filled(r, run_whole) : slp_step_run_shards(r);
}

/* Makes one step on a batch.  Returns at once the losses of the loss function, and in *output, unless it is NULL, the
 * output of the network, as new tensors.  A network with several inputs takes .in and .nin instead of x, a loss with
 * several targets, or none, .targets and .ntargets; .out gets the first .nout results of the network.  The rows of the
 * first input are the rows of the batch.
 *
 * For a batch that is split (sl_split_and_load), set .shards: .in has the inputs of the first shard, then those of the
 * second, and so on; likewise .targets the targets, .out or .output the results, .losses the losses; the call returns
 * the first shard's losses.  Each shard runs on the device of its rows as one program, up to the gradients with respect
 * to all parameters; these are added in a fixed tree on the device that owns the parameter, which updates it (see
 * sl_trainer_new).  The result depends on the split of the batch, not on the number of devices of a kind that share the
 * shards.  Shards have the weight of their rows: the gradient is that of the whole batch, whether there is a loss for
 * each row, for each token, or the mean of each shard.  The network must be initialised for all of the devices.  A
 * network with synchronised layers runs call by call instead: sl_forward_shards, sl_backward and sl_trainer_step.
 *
 * Returns NULL after a mistake, without an update: SL_EINVAL, no input, or wrong numbers of targets or results;
 * SL_ESTATE, forward cannot be traced, or the loss does not depend on a parameter; SL_EUNSUPPORTED, an input or a
 * target has a gradient attached, which a step does not compute (SL_RECORD, sl_backward and sl_trainer_step do), or a
 * network with synchronised layers takes several inputs, or a limit of memory where the program does not run on one GPU;
 * SL_ENOMEM, an operation needs more than that limit; otherwise the errors of the operations.  A mistake that is
 * found only when the program runs, such as an index out of range, spoils the parameters, even if the program waits for
 * the loss.  Check such inputs before the step, or resume from the last checkpoint.  If several processes train
 * together (dist.h), the batch is the part of this process, with the same number of rows in all, and the gradients are
 * summed over them: see sl_trainer_step.
 *
 *     sl_tensor *losses = sl_step_run(step, x, y, &output);
 *     sl_split_and_load(x, devices, 2, xs);
 *     sl_split_and_load(y, devices, 2, ys);
 *     sl_step_run(step, .in = xs, .targets = ys, .losses = both, .shards = 2); */
sl_tensor *sl_step_run_at(const char *at, sl_step *step, struct sl_step_batch batch)
{
	SLP_CALL("sl_step_run", at);
	sl_tensor *few[FEW];
	struct slp_step_run r = {.at = at, .function = "sl_step_run", .step = step};
	bool ok = take(&r, &batch, few) && run(&r);
	free(r.owned);
	return ok ? r.first : NULL;
}
