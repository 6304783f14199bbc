/* Steps on batches in shards, or of several processes: a program for each shard up to its gradients, which are then
 * added, summed over the processes, and used. */
#include <stdlib.h>

#include "dist/dist.h"
#include "hybrid/trace.h"
#include "runtime/device/auto.h"
#include "runtime/random.h"
#include "runtime/task/priority.h"
#include "runtime/task/storage.h"
#include "tensor/moment.h"
#include "train/step.h"
#include "train/traced.h"
#include "train/train.h"
#include "train/trainer.h"

/* Skips the random numbers that other processes draw for their n shards, so that all processes together draw those of
 * one process with all shards. */
static void pass_random_numbers(const sl_step *step, const sl_plan *plan, int n, int processes)
{
	if (!slp_step_is_alone(step)) slp_rng_take(sl_plan_graph(plan)->nrandom * n * processes);
}

/* Before gradients are computed by the parameters, which begin as rank 0's; they have values now. */
static bool begin_with_others(const struct slp_step_run *r)
{
	const sl_step *step = r->step;
	char way[64];
	int runs = step->opts.accumulate > 1 ? step->opts.accumulate : 1;
	int64_t rows = 0;
	for (int i = 0; i < r->n; i++) rows += slp_step_rows(r, i);
	snprintf(way, sizeof way, "whole, of %d run%s, by the %s of losses", runs, runs > 1 ? "s" : "",
	         step->opts.reduction == SL_REDUCTION_SUM ? "sum" : "mean");
	return slp_data_parallel_begin(r->at, step->trainer, "sl_step_run",
	                               &(struct slp_data_parallel_step){way, rows, false});
}

/* Forward, loss and backward of one shard: its results, the losses, those of the network, the gradients. */
static sl_tensor **run_shard(const struct slp_step_run *r, int shard, int *nresults)
{
	sl_step *step = r->step;
	sl_tensor **out = slp_calloc((size_t)slp_step_params(step) + 1 + SL_MAX_RESULTS, sizeof *out);
	if (!out) return slp_call_fail(r->at, r->function, SL_ENOMEM, "no memory for a step");
	SLP_FORWARD_SCOPE();
	slp_forward.shard = shard;
	const struct slp_compiled *c = slp_step_plan(r, shard, false);
	if (c) *nresults = c->nresults;
	if (c && shard == 0 && !begin_with_others(r)) c = NULL;
	if (c && shard == 0) pass_random_numbers(step, c->plan, r->n, slp_dist.rank);
	bool ok = c && slp_plan_run(r->at, c->plan, slp_step_shard(r, shard), slp_step_inputs(r, shard), NULL, 0, NULL,
	                            out) == SL_OK;
	ok = ok && slp_step_unpad(r, shard, c, out);
	if (ok && shard == r->n - 1) pass_random_numbers(step, c->plan, r->n, slp_dist.size - 1 - slp_dist.rank);
	if (ok) return out;
	free(out);
	return NULL;
}

/* The places of a step's gradients, and their destinations. */
struct update {
	const char *at;
	sl_tensor ***shards; /* results of each: the losses, those of the network, the gradients */
	int n, nresults;
	sl_param *const *params;
	const sl_device *owners;
	const int *buckets;
	int count;
	sl_tensor **list;         /* of each shard's part of a sum */
	sl_tensor **data, **sums; /* of each parameter; NULL: frozen */
	sl_tensor **single;       /* sums of those in no bucket, which are yet to be summed over processes */
	int *result;              /* of each parameter: its gradient's place among a shard's results */
	sl_trainer *trainer;
	int64_t rows;
	struct slp_dist_part *parts;      /* room for all gradients' */
	const struct slp_storage *summed; /* of the one shard's gradients: over processes, the last one */
};

static sl_tensor *gradient(const struct update *u, int shard, int i)
{
	return u->shards[shard][u->result[i]];
}

/* Whether, in every shard, both gradients are in one storage, at the same places as in the first. */
static bool beside(const struct update *u, int a, int b)
{
	const sl_tensor *a0 = gradient(u, 0, a), *b0 = gradient(u, 0, b);
	bool same = u->buckets[a] >= 0 && u->buckets[a] == u->buckets[b] && a0->type.dtype == b0->type.dtype;
	for (int s = 0; same && s < u->n; s++) {
		const sl_tensor *x = gradient(u, s, a), *y = gradient(u, s, b);
		same = x->storage == y->storage && x->offset == a0->offset && y->offset == b0->offset &&
		       x->storage->bytes == a0->storage->bytes;
	}
	return same;
}

/* The whole storage as one vector. */
static sl_tensor *flat(const sl_tensor *t)
{
	struct slp_storage *s = t->storage;
	slp_storage_retain(s);
	struct slp_type type = {t->type.dtype, SL_SHAPE((int64_t)(s->bytes / sl_dtype_size(t->type.dtype)))};
	return slp_scope_add(slp_tensor_new(s, 0, type, t->device));
}

/* A gradient's view of the sum of its whole storage. */
static sl_tensor *part(sl_tensor *sum, const sl_tensor *like)
{
	slp_storage_retain(sum->storage);
	return slp_scope_add(slp_tensor_new(sum->storage, like->offset, like->type, sum->device));
}

/* The gradients that share the storage of parameter i's. */
static int parts_of(const struct update *u, int i, struct slp_dist_part *parts)
{
	int n = 0;
	for (int k = 0; k < u->count; k++) {
		const sl_tensor *g = u->result[k] < 0 ? NULL : gradient(u, 0, k);
		if (!g || g->storage != gradient(u, 0, i)->storage) continue;
		parts[n++] =
		        (struct slp_dist_part){g->offset / sl_dtype_size(g->type.dtype), (size_t)sl_tensor_size(g)};
	}
	return n;
}

/* Sums the shards' sum over processes, in place: a single shard's gradient may share memory with others, which is
 * summed once. */
static bool sum_over_processes(struct update *u, sl_tensor **sum, int i, bool whole)
{
	if (slp_trainer_size(u->trainer) == 1) return true;
	if (u->n == 1 && (*sum)->storage == u->summed) return true;
	bool later = !whole && u->buckets[i] < 0; /* with others */
	if (u->n == 1 && whole) u->summed = (*sum)->storage;
	if (u->n == 1 && !whole && !(*sum = sl_clone_at(u->at, *sum))) return false;
	if (later) return (u->single[i] = *sum) != NULL;
	struct slp_dist_what what = {
	        .rows = u->rows, .parts = u->parts, .nparts = whole ? parts_of(u, i, u->parts) : 0};
	return slp_data_parallel_sum(u->at, u->trainer, i, *sum, what);
}

/* The gradients on the device that computes the shard, so that their sum with others is computed there, too. */
static sl_tensor *where_dealt(const struct update *u, sl_tensor *gradients, int shard)
{
	if (!gradients || !slp_auto_deal.devices) return gradients;
	return sl_place_at(u->at, gradients, slp_auto_dealt(shard));
}

/* Adds n gradients from parameter i on, which are adjacent, in one operation for each pair of shards. */
static bool add_together(struct update *u, int i, int n)
{
	sl_device owner = u->owners[i].kind ? u->owners[i] : sl_tensor_device(u->params[i]->data);
	for (int s = 0; s < u->n; s++)
		if (!(u->list[s] = where_dealt(u, n > 1 ? flat(gradient(u, s, i)) : gradient(u, s, i), s)))
			return false;
	sl_tensor *sum = slp_tree_sum(u->at, u->list, u->n, owner);
	if (sum && !sum_over_processes(u, &sum, i, n > 1)) return false;
	for (int k = i; sum && k < i + n; k++) {
		u->data[k] = u->params[k]->data;
		u->sums[k] = n > 1 ? part(sum, gradient(u, 0, k)) : sum;
		if (!u->sums[k]) return false;
	}
	return sum != NULL;
}

/* Adds all gradients: those of the last parameters first, which come first. */
static bool add_all(struct update *u)
{
	int next = 1 + u->nresults;
	for (int i = 0; i < u->count; i++) u->result[i] = slp_param_is_frozen(u->params[i]) ? -1 : next++;
	bool ok = true;
	for (int last = u->count - 1, i; ok && last >= 0; last = i - 1) {
		i = last;
		if (u->result[i] < 0) continue;
		while (i > 0 && u->result[i - 1] >= 0 && beside(u, i - 1, last)) i--;
		ok = add_together(u, i, last - i + 1);
	}
	return ok && (slp_trainer_size(u->trainer) == 1 ||
	              slp_data_parallel_sum_groups(u->at, u->trainer, u->single, u->rows));
}

/* Replaces the last micro-batch's gradients by the sums of all, if this process keeps them; returns their number of
 * rows. */
static int64_t take_sums(sl_trainer *t, sl_param *const *params, int count, sl_tensor **data, sl_tensor **grads)
{
	int64_t rows;
	slp_trainer_gathered(t, &rows);
	for (int i = 0; i < count; i++) {
		grads[i] = slp_param_is_frozen(params[i]) ? NULL : slp_trainer_sum(t, i);
		bool updated = grads[i] || !(slp_param_is_frozen(params[i]) || slp_trainer_has_state_of(t, i));
		data[i] = updated ? params[i]->data : NULL;
	}
	return rows;
}

bool slp_step_use_gradients(const char *at, sl_step *step, sl_tensor **data, sl_tensor **grads, int64_t rows,
                            double scale)
{
	sl_trainer *t = step->trainer;
	bool gathers = step->opts.accumulate > 1;
	if (gathers) {
		int count, gathered = slp_trainer_gather(at, t, grads, rows);
		if (gathered < step->opts.accumulate) return gathered >= 0;
		sl_param *const *params = slp_trainer_params(at, t, &count);
		rows = take_sums(t, params, count, data, grads);
	}
	bool ok = slp_trainer_apply(at, t, data, grads, slp_step_divisor(step, rows), scale) == SL_OK;
	if (gathers) slp_trainer_set_gathered(t, 0, 0);
	if (ok) slp_traced_step_done(t);
	return ok;
}

/* Adds the shards' gradients, each where its parameter is updated, and updates. */
static bool update(const struct slp_step_run *r, const sl_device *owners, sl_tensor ***shards, int nresults,
                   int64_t rows)
{
	const char *at = r->at;
	sl_step *step = r->step;
	SLP_GUARD_PATIENTLY(&step->trainer->guard);
	SLP_CHANGE();
	int n = r->n;
	struct update u = {.at = at,
	                   .shards = shards,
	                   .n = n,
	                   .nresults = nresults,
	                   .owners = owners,
	                   .trainer = step->trainer,
	                   .rows = rows};
	u.params = slp_trainer_params(at, step->trainer, &u.count);
	u.buckets = slp_trainer_grad_buckets(step->trainer);
	size_t count = (size_t)u.count;
	u.list = slp_calloc(3 * count + (size_t)n, sizeof *u.list + sizeof *u.parts + sizeof *u.result);
	if (!u.list) return slp_call_fail(at, "sl_step_run", SL_ENOMEM, "no memory for a step") != NULL;
	u.data = u.list + n;
	u.sums = u.data + count;
	u.single = u.sums + count;
	u.parts = (struct slp_dist_part *)(u.single + count);
	u.result = (int *)(u.parts + count);
	bool ok = add_all(&u) &&
	          slp_step_use_gradients(at, step, u.data, u.sums, rows, sl_trainer_loss_scale(step->trainer));
	free(u.list);
	return ok;
}

/* Masters stay as exact: a moved parameter has not been written. */
const sl_device *slp_step_gather(const char *at, sl_step *step)
{
	int count;
	sl_param *const *params = slp_trainer_params(at, step->trainer, &count);
	SLP_GUARD_PATIENTLY(&step->trainer->guard);
	const sl_device *owners = slp_trainer_owners(step->trainer);
	bool ok = true;
	SL_PAUSE
		ok = slp_trainer_master_weights_follow(at, step->trainer) &&
		     slp_grad_buckets_gather(at, params, count, owners, slp_trainer_grad_buckets(step->trainer),
		                             slp_trainer_is_apart(step->trainer));
	slp_trainer_master_weights_hold(step->trainer);
	return ok ? owners : NULL;
}

/* ---- all together ------------------------------------------------------------------------------------------------ */

/* Program by program. */
static bool run_programs(struct slp_step_run *r)
{
	sl_tensor ***shards = slp_calloc((size_t)r->n, sizeof *shards);
	if (!shards) return slp_call_fail(r->at, r->function, SL_ENOMEM, "no memory for a step") != NULL;
	int64_t rows = 0;
	int nresults = 0;
	SLP_AUTO_DEAL_SCOPE();
	SLP_TURN_SHARED();
	slp_step_deal(r);
	const sl_device *owners = slp_step_gather(r->at, r->step);
	bool ok = owners != NULL;
	for (int i = 0; ok && i < r->n; i++) {
		slp_auto_deal.shard = i;
		ok = (shards[i] = run_shard(r, i, &nresults)) != NULL;
		if (ok) rows += slp_step_rows(r, i);
	}
	slp_auto_deal.shard = -1;
	SL_PAUSE
		SL_SCOPE
			if (ok) ok = update(r, owners, shards, nresults, rows);
	for (int i = 0; i < r->n; i++) {
		if (ok) slp_step_return_to_auto(shards[i], 1 + nresults);
		if (ok) slp_step_give(r, i, shards[i][0], shards[i] + 1, nresults);
		free(shards[i]);
	}
	free(shards);
	return ok;
}

/* The same by the gradients that sl_backward has left. */
static bool update_eagerly(const char *at, sl_step *step, int64_t rows)
{
	SLP_GUARD_PATIENTLY(&step->trainer->guard);
	SLP_CHANGE();
	size_t count = (size_t)slp_step_params(step);
	sl_tensor **data = slp_calloc(2 * count, sizeof *data);
	if (!data) return slp_call_fail(at, "sl_step_run", SL_ENOMEM, "no memory for a step") != NULL;
	sl_tensor **grads = data + count;
	bool ok = false;
	double scale;
	SL_PAUSE
		SL_SCOPE
			ok = slp_trainer_fresh(at, step->trainer, rows, false, data, grads, &scale) &&
			     slp_step_use_gradients(at, step, data, grads, rows, scale);
	free(data);
	if (ok) slp_trainer_used(step->trainer);
	return ok;
}

/* The arguments and results of layers that use all shards together. */
static bool can_together(const struct slp_step_run *r)
{
	if (r->nin == 1 && r->nout <= 1) return true;
	slp_call_fail(r->at, r->function, SL_EUNSUPPORTED,
	              "a network with synchronised layers takes one input and gives one result");
	return false;
}

/* The same call by call, all shards going forward layer by layer, where layers need them together. */
static bool run_together(struct slp_step_run *r)
{
	const char *at = r->at;
	sl_step *step = r->step;
	int n = r->n;
	if (!can_together(r)) return false;
	sl_tensor **heads = slp_calloc(4 * (size_t)n, sizeof *heads);
	if (!heads) return slp_call_fail(at, r->function, SL_ENOMEM, "no memory for a step") != NULL;
	sl_tensor **out = heads + n, **weights = out + n, **x = weights + n;
	bool ok = false;
	int64_t rows = 0;
	for (int i = 0; i < n; i++) x[i] = slp_step_shard(r, i)[0];
	SL_RECORD {
		SLP_FORWARD_SCOPE();
		slp_forward.batch_is_local = slp_step_is_alone(step);
		ok = sl_forward_shards_at(at, step->net, n, x, out) == SL_OK;
		for (int i = 0; ok && i < n; i++) {
			int64_t own = slp_rows_of(x[i]->type.shape);
			rows += own;
			heads[i] = slp_step_loss(at, step, &out[i], 1, slp_step_shard(r, i) + 1, r->ntargets);
			ok = heads[i] != NULL;
			SL_PAUSE
				ok = ok &&
				     slp_reduction_weigh(at, step->opts.reduction, heads[i], own, NULL, &weights[i]);
		}
	}
	struct sl_backward_opts opts = {.head_grads = weights, .scale = sl_trainer_loss_scale(step->trainer)};
	ok = ok && sl_backward_heads_at(at, heads, n, opts) == SL_OK && update_eagerly(at, step, rows);
	for (int i = 0; ok && i < n; i++) slp_step_give(r, i, heads[i], &out[i], 1);
	free(heads);
	return ok;
}

/* Whether gradients leave the one device of the step as they come. */
static bool by_groups(const struct slp_step_run *r)
{
	return r->n == 1 && slp_step_is_alone(r->step) && slp_trainer_is_apart(r->step->trainer);
}

bool slp_step_run_shards(struct slp_step_run *r)
{
	if (slp_block_synchronised(r->step->net)) return run_together(r);
	return slp_step_filled(r, by_groups(r) ? slp_step_run_groups : run_programs);
}
