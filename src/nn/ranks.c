/* A trainer in one of several processes: it begins with the values of rank 0, and gradients are summed over all. */
#include <stdlib.h>
#include <string.h>

#include "nn/ranks.h"
#include "nn/trainer.h"

struct slp_ranks {
	int count;
	char *paths[]; /* of the trained parameters */
};

void slp_ranks_free(struct slp_ranks *ranks)
{
	for (int i = 0; ranks && i < ranks->count; i++) free(ranks->paths[i]);
	free(ranks);
}

static struct slp_ranks *ranks_new(const char *at, sl_trainer *trainer)
{
	int count;
	sl_param *const *params = slp_trainer_params(at, trainer, &count);
	struct slp_ranks *r = slp_calloc(1, sizeof *r + (size_t)count * sizeof *r->paths);
	if (!r) return NULL;
	r->count = count;
	for (int i = 0; i < count; i++) {
		if ((r->paths[i] = slp_param_path(slp_trainer_block(trainer), params[i]))) continue;
		slp_ranks_free(r);
		return NULL;
	}
	return r;
}

/* ---- beginning ----------------------------------------------------------------------------------------------------- */

static bool is_of_gpus(const sl_param *p)
{
	bool gpus = p->ndevices > 0;
	for (int i = 0; i < p->ndevices; i++) gpus &= p->devices[i].kind == SL_DEVICE_GPU;
	return gpus;
}

static bool broadcast_all(const char *at, sl_block *block)
{
	int count = 0;
	sl_param **all = slp_block_all_params(at, block, &count);
	bool ok = all != NULL;
	for (int i = 0; ok && i < count; i++) {
		if (!all[i]->data) continue;
		char *path = slp_param_path(block, all[i]);
		struct slp_dist_what what = {.name = path, .gpu = is_of_gpus(all[i])};
		ok = path && slp_dist_broadcast(at, all[i]->data, what);
		free(path);
	}
	free(all);
	return ok;
}

/* An exchange after the last one: so who only sends hears, too, that another one could not take it. */
static bool confirm(const char *at)
{
	bool ok = false;
	SL_PAUSE
		SL_SCOPE {
			sl_tensor *t = sl_zeros_at(at, SL_SHAPE(1), SL_MAKE_(.dtype = SL_UINT8));
			ok = t && slp_dist_sum(at, t, (struct slp_dist_what){.name = "the end of sl_dist_broadcast"});
		}
	return ok;
}

/* Gives all processes the parameters of rank 0, running statistics among them, and returns at once.  A trainer's first
 * step does that by itself; before a test, it brings running statistics together, which each process gathers from its
 * own batches. */
enum sl_status sl_dist_broadcast_at(const char *at, sl_block *block)
{
	SLP_CALL("sl_dist_broadcast", at);
	if (!slp_given(at, "sl_dist_broadcast", "block", block)) return sl_error();
	enum sl_status s = slp_engine_need(at);
	if (s != SL_OK || slp_dist.size == 1) return s;
	return broadcast_all(at, block) && confirm(at) ? SL_OK : sl_error();
}

/* Masters are more exact than the parameters that they were rounded to, and stay so.  Where processes share them, each is in
 * one place alone. */
static bool broadcast_masters(const char *at, sl_trainer *t)
{
	bool ok = true;
	for (int i = 0; ok && !slp_trainer_shares(t) && i < t->count; i++) {
		sl_tensor *master = t->states[SLP_TRAINER_MASTER][i];
		if (!master) continue;
		char *name = slp_param_path(t->block, t->params[i]);
		ok = name && slp_dist_broadcast(at, master, (struct slp_dist_what){.name = name});
		free(name);
	}
	slp_trainer_masters_hold(t);
	return ok;
}

bool slp_ranks_same_values(const char *at, sl_trainer *trainer)
{
	bool ok = false;
	SL_PAUSE
		ok = slp_trainer_masters_follow(at, trainer) && broadcast_all(at, trainer->block) &&
		     broadcast_masters(at, trainer);
	return ok;
}

bool slp_ranks_begin(const char *at, sl_trainer *trainer, const char *function, const struct slp_ranks_step *step)
{
	struct slp_ranks **ranks = slp_trainer_ranks(trainer);
	if (slp_trainer_size(trainer) == 1 || *ranks) return true;
	slp_first_values_known(trainer);
	if (!(*ranks = ranks_new(at, trainer))) return false;
	bool ok =
	        slp_ranks_agree(at, trainer, function, step) && (step->computed || slp_ranks_same_values(at, trainer));
	if (ok) return true;
	slp_ranks_free(*ranks);
	*ranks = NULL;
	return false;
}

/* What is the same for all sums of a step; param: the (first) parameter. */
static struct slp_dist_what describe_sum(sl_trainer *trainer, int param, struct slp_dist_what what)
{
	const int *keepers = slp_trainer_keepers(trainer);
	what.name = (*slp_trainer_ranks(trainer))->paths[param];
	what.one = keepers && slp_trainer_optimizer(trainer)->clip_norm == 0; /* the norm is that of all */
	if (what.one) what.rank = keepers[param];
	what.any = slp_trainer_scales(trainer);
	what.lr = slp_trainer_optimizer(trainer)->lr; /* without the schedule, which is the same for all */
	return what;
}

bool slp_ranks_sum(const char *at, sl_trainer *trainer, int param, sl_tensor *gradient, struct slp_dist_what what)
{
	return slp_dist_sum(at, gradient, describe_sum(trainer, param, what));
}

/* Gradients that are summed together. */
struct group {
	sl_tensor **list;
	const char **names;
	int n, first; /* parameter */
	double bytes;
};

/* Whether parameter i's gradient may go with those of the group; what is in no bucket goes by bytes. */
static bool joins(sl_trainer *t, const struct group *g, const sl_tensor *gradient, int i, double enough)
{
	const int *buckets = slp_trainer_buckets(t), *keepers = slp_trainer_keepers(t);
	if (!g->n) return true;
	return buckets[i] == buckets[g->first] && (buckets[i] >= 0 || g->bytes < enough) &&
	       gradient->type.dtype == g->list[0]->type.dtype && (!keepers || keepers[i] == keepers[g->first]);
}

static bool send_group(const char *at, sl_trainer *t, struct group *g, int64_t rows)
{
	struct slp_dist_what what = {.rows = rows, .names = g->names};
	bool ok = g->n == 0 || slp_dist_sum_together(at, g->list, g->n, describe_sum(t, g->first, what));
	g->n = 0;
	g->bytes = 0;
	return ok;
}

bool slp_ranks_sum_groups(const char *at, sl_trainer *t, sl_tensor *const *gradients, int64_t rows)
{
	int count;
	sl_param *const *params = slp_trainer_params(at, t, &count);
	double enough = slp_bucket_bytes(params, count);
	struct group g = {.list = slp_malloc((size_t)(count + 1) * (sizeof *g.list + sizeof *g.names))};
	if (!g.list) return false;
	g.names = (const char **)(g.list + count);
	bool ok = true;
	for (int i = count; ok && i-- > 0;) {
		if (!gradients[i]) continue;
		if (!joins(t, &g, gradients[i], i, enough)) ok = send_group(at, t, &g, rows);
		if (!g.n) g.first = i;
		g.list[g.n] = gradients[i];
		g.names[g.n++] = (*slp_trainer_ranks(t))->paths[i];
		g.bytes += (double)sl_tensor_bytes(gradients[i]);
	}
	ok = ok && send_group(at, t, &g, rows);
	free(g.list);
	return ok;
}

bool slp_ranks_give(const char *at, sl_trainer *trainer, int param, sl_tensor *values, int rank)
{
	const struct slp_ranks *r = *slp_trainer_ranks(trainer);
	struct slp_dist_what what = {.name = r ? r->paths[param] : "values", .rank = rank};
	int count;
	what.gpu = is_of_gpus(slp_trainer_params(at, trainer, &count)[param]);
	return slp_dist_broadcast(at, values, what);
}
