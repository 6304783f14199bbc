/* Blocks that keep only their inputs for the backward pass, and recompute their intermediate values there. */
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "nn/nn.h"
#include "runtime/random.h"
#include "starling/nn.h"

/* A forward pass of a block, to be repeated as it was. */
struct pass {
	struct slp_part part;
	const char *at;
	sl_block *block; /* held */
	bool training;
	enum sl_dtype autocast;
	int shard;
	struct slp_rng_log drawn;
	int nout, place[SL_MAX_RESULTS]; /* of the recorded results among all */
};

static void destroy(struct slp_part *part)
{
	struct pass *p = (struct pass *)part;
	sl_block_free(p->block);
	free(p->drawn.list);
	free(p);
}

/* ---- again ------------------------------------------------------------------------------------------------------- */

/* The block's results, with the modes of its first pass. */
static bool run_again(struct pass *p, sl_tensor *const *in, struct slp_results *results)
{
	SLP_MODE_SCOPE();
	SLP_FORWARD_SCOPE();
	SLP_DRAWS_SCOPE();
	sl_mode mode;
	struct slp_trace *trace = slp_trace_current();
	int outer = trace ? trace->repeat : 0;
	if (trace) trace->repeat = ++trace->repeats;
	sl_mode_enter(&mode, -1, p->training);
	slp_record_again();
	slp_mode.autocast = p->autocast;
	slp_forward.shard = p->shard;
	slp_forward.repeating = true;
	slp_draws.repeats = &p->drawn;
	p->drawn.next = 0;
	bool ok = slp_block_run(p->at, p->block, in, p->part.nin, results);
	sl_mode_leave(&mode);
	if (trace) trace->repeat = outer;
	return ok;
}

static bool repeat(struct slp_part *part, sl_tensor *const *in, sl_tensor **out)
{
	struct pass *p = (struct pass *)part;
	struct slp_results results;
	bool ok = run_again(p, in, &results);
	for (int i = 0; ok && i < p->nout; i++) {
		if (p->place[i] < results.count) {
			out[i] = results.t[p->place[i]];
			continue;
		}
		slp_call_fail(p->at, sl_block_name(p->block), SL_ESTATE, "gave fewer results when it was repeated");
		ok = false;
	}
	return ok;
}

/* ---- the first time ---------------------------------------------------------------------------------------------- */

static struct pass *pass_new(const char *at, sl_block *block, int nin)
{
	struct pass *p = slp_calloc(1, sizeof *p);
	if (!p) return slp_call_fail(at, "sl_forward", SL_ENOMEM, "no memory to record the call");
	p->part = (struct slp_part){.repeat = repeat, .destroy = destroy, .nin = nin};
	atomic_init(&p->part.refs, 1);
	p->at = at;
	p->block = sl_block_retain(block);
	p->training = sl_is_training();
	p->autocast = slp_mode.autocast;
	p->shard = slp_forward.shard;
	p->drawn.owner = slp_draws.count;
	return p;
}

/* The first forward pass: nothing of its inside stays. */
static bool look(struct pass *p, struct slp_look *look, sl_tensor *const *in, struct slp_results *results)
{
	SLP_DRAWS_SCOPE();
	slp_draws.notes = &p->drawn;
	slp_look_begin(look);
	bool ok = slp_block_run(p->at, p->block, in, p->part.nin, results);
	slp_look_end(look);
	if (ok && p->drawn.failed) slp_call_fail(p->at, "sl_forward", SL_ENOMEM, "no memory to record the call");
	return ok && !p->drawn.failed;
}

/* Results that gradients flow back from, each once. */
static int list_results(struct pass *p, const struct slp_results *results, sl_tensor **out)
{
	for (int i = 0; i < results->count; i++) {
		bool there = !slp_comes_from_inside(results->t[i]);
		for (int k = 0; k < p->nout; k++) there |= out[k] == results->t[i];
		if (there) continue;
		p->place[p->nout] = i;
		out[p->nout++] = results->t[i];
	}
	return p->nout;
}

bool slp_block_recomputed(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results)
{
	if (slp_is_looking()) return slp_block_run(at, block, in, nin, results); /* a block around it is repeated */
	struct pass *p = pass_new(at, block, nin);
	if (!p) return false;
	struct slp_look met = {0};
	sl_tensor *out[SL_MAX_RESULTS];
	results->count = 0;
	bool ok = look(p, &met, in, results);
	if (ok && list_results(p, results, out)) ok = slp_part_record(at, &p->part, &met, in, out, p->nout);
	slp_look_free(&met);
	slp_part_release(&p->part);
	for (int i = 0; !ok && i < results->count && !slp_scope_is_open(); i++) sl_release(results->t[i]);
	return ok;
}

/* Makes the backward pass recompute the intermediate values of a block, instead of keeping them: of each recorded call
 * only inputs and results stay in memory, for about a third more work in a step.  The gradients have the same bits: the
 * same random numbers are drawn again, and running statistics are updated only the first time.  This applies call by
 * call, and in hybridised blocks and whole steps (there to rounding, if the compiler fuses other operations); blocks
 * inside may also be recomputed.  forward must do the same when it is called again, during sl_backward (in a program,
 * while it is traced): it must not depend on anything that has changed since, and its side effects happen twice, as do
 * the hooks of blocks inside.  Tensors that it does not return have no gradient afterwards.  Blocks around synchronised
 * layers that take shards together (sl_forward_shards) keep their intermediate values.  on = false switches it off
 * again.  SL_EINVAL: the block is NULL.  T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets
 * with sublinear memory cost", 2016.
 *
 *     for (int i = 0; i < layers; i++) sl_block_recompute(net->layer[i], true); */
enum sl_status sl_block_recompute_at(const char *at, sl_block *block, bool on)
{
	SLP_CALL("sl_block_recompute", at);
	if (!slp_given(at, "sl_block_recompute", "block", block)) return sl_error();
	block->base->recompute = on;
	slp_block_changed(block);
	return SL_OK;
}
