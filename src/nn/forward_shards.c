/* Forward pass of all shards of a batch together, block by block: for layers that need the whole batch. */
#include <stdlib.h>

#include "nn/nn.h"
#include "op.h"
#include "runtime/fault.h"
#include "starling/nn.h"

const sl_block *slp_block_synchronised(const sl_block *block)
{
	const sl_block *found = block->base->synchronised ? block : NULL;
	for (int i = 0; !found && i < sl_block_children(block); i++)
		found = slp_block_synchronised(sl_block_child(block, i));
	return found;
}

/* Shard after shard. */
static enum sl_status one_by_one(const char *at, sl_block *block, int n, sl_tensor *const *x, sl_tensor **y)
{
	SLP_FORWARD_SCOPE();
	bool ok = true;
	for (int i = 0; ok && i < n; i++) {
		slp_forward.shard = i;
		ok = (y[i] = sl_forward_at(at, block, &x[i], 1)) != NULL;
	}
	return ok ? SL_OK : sl_error();
}

/* Results belong to the outer scope; other tensors are released here. */
static enum sl_status all_at_once(const char *at, sl_block *block, int n, sl_tensor *const *x, sl_tensor **y)
{
	const char *outer = slp_forward_call_site_set(at);
	sl_scope scope = {NULL, 0, 0};
	sl_scope_open(&scope);
	enum sl_status s = block->forward_shards(block, n, x, y);
	for (int i = 0; s == SL_OK && i < n; i++) {
		if (!y[i])
			s = slp_error_set(SL_EINVAL, "%s: forward_shards of %s gave no result %d", at,
			                  sl_block_name(block), i);
	}
	for (int i = 0; s == SL_OK && i < n; i++) sl_retain(y[i]);
	sl_scope_close(&scope);
	slp_forward_call_site_set(outer);
	if (s != SL_OK) return s;
	for (int i = 0; i < n; i++)
		if (!(y[i] = slp_scope_add(y[i]))) s = sl_error();
	return s;
}

/* Whether the shards can go through the block together. */
static bool can_together(const char *at, const sl_block *block, const sl_block *inner)
{
	const char *name = sl_block_name(block), *why = NULL;
	if (block->base->hybrid)
		why = "was hybridised, and a program computes one shard by itself; switch that off (sl_hybridize with "
		      ".off = "
		      "true), and hybridise blocks without such a layer if you like";
	else if (!block->forward_shards)
		why = "has a forward for one shard at a time only; give it a forward_shards (struct sl_block), or make "
		      "it of "
		      "sl_sequential and sl_residual";
	if (why)
		slp_call_fail(at, "sl_forward_shards", SL_ESTATE, "%s is synchronised over shards, but %s around it %s",
		              sl_block_name(inner), name, why);
	return !why;
}

static bool usable(const char *at, const sl_block *block, int n, sl_tensor *const *x, sl_tensor *const *y)
{
	const char *wrong = !block || !block->base ? "the block is NULL"
	                    : n < 1 || !x || !y    ? "there is no shard"
	                                           : NULL;
	for (int i = 0; !wrong && i < n; i++)
		if (!x[i]) wrong = "a shard is NULL";
	if (wrong && sl_error() == SL_OK) slp_call_fail(at, "sl_forward_shards", SL_EINVAL, "%s", wrong);
	return !wrong;
}

/* Runs a block on each of the n shards of a batch (sl_split_and_load): y[i] from x[i], on its device; y may be x. The
 * same as sl_forward of each; but in training, shards pass through synchronised layers together, all shards through one
 * block before the next, and together with the shards of other processes (dist.h): all processes must call it, with
 * shards of the same number of rows.  The results belong to the innermost scope; all are NULL after an error: those of
 * sl_forward, and SL_ESTATE, a block around a synchronised layer is hybridised, or has no forward_shards.
 *
 *     SL_RECORD {
 *         sl_forward_shards(net, 2, xs, outputs);
 *         for (int i = 0; i < 2; i++) losses[i] = sl_softmax_cross_entropy(outputs[i], ys[i]);
 *     }
 *     sl_backward(losses[0], losses[1]); */
enum sl_status sl_forward_shards_at(const char *at, sl_block *block, int n, sl_tensor *const *x, sl_tensor **y)
{
	SLP_CALL("sl_forward_shards", at);
	enum sl_status s = SL_EINVAL;
	if (usable(at, block, n, x, y) && (!slp_before_recording || slp_before_recording(at, block))) {
		const sl_block *inner = sl_is_training() ? slp_block_synchronised(block) : NULL;
		if (!inner) s = one_by_one(at, block, n, x, y);
		else if (can_together(at, block, inner)) s = all_at_once(at, block, n, x, y);
		else s = sl_error();
	} else if (sl_error() != SL_OK) {
		s = sl_error();
	}
	for (int i = 0; s != SL_OK && y && i < n; i++) y[i] = NULL;
	return s;
}
