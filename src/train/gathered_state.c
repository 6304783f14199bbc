/* Gathers sharded states (state_sharding.c) on rank 0, which writes a checkpoint of them. */
#include <stdlib.h>

#include "train/data_parallel.h"
#include "train/train.h"
#include "train/trainer.h"

/* One that another rank keeps, on its way to rank 0. */
static bool fetch(const char *at, sl_trainer *t, int which, int i)
{
	sl_tensor **state = slp_trainer_state(t, which, i), *p = t->params[i]->data;
	int keeper = t->shard_rank[i];
	if (!slp_dist.rank) {
		sl_release(*state);
		SL_SCOPE
			*state = sl_retain(sl_zeros_at(at, p->type.shape,
			                               (struct sl_make){slp_promoted(p->type.dtype), p->device}));
		if (!*state) return false;
	} else if (slp_dist.rank != keeper) {
		slp_dist_skip();
		return true;
	}
	char *name = slp_trainer_state_path(t, i, which);
	bool ok = name &&
	          slp_dist_broadcast(at, *state, (struct slp_dist_what){.name = name, .rank = keeper, .one = true});
	free(name);
	return ok;
}

/* The existing states are known to the ranks that keep them. */
static bool fetch_all(const char *at, sl_trainer *t, uint8_t *there, int kinds)
{
	size_t n = (size_t)kinds * (size_t)t->count;
	for (int k = 0; k < kinds * t->count; k++)
		there[k] =
		        slp_trainer_has_state_of(t, k % t->count) && *slp_trainer_state(t, k / t->count, k % t->count);
	bool ok = slp_dist_sum_now(at, "the states that there are", there, n, SL_UINT8) == SL_OK;
	for (int k = 0; ok && k < kinds * t->count; k++)
		if (there[k] && t->shard_rank[k % t->count]) ok = fetch(at, t, k / t->count, k % t->count);
	return ok;
}

bool slp_trainer_gather_states(const char *at, sl_trainer *t)
{
	int kinds = 0;
	if (!t || !slp_trainer_shard_ranks(t)) return true;
	while (slp_trainer_state_name(t, kinds)) kinds++;
	uint8_t *there = slp_calloc((size_t)kinds * (size_t)t->count, 1);
	bool ok = false;
	if (there)
		SL_PAUSE
			ok = fetch_all(at, t, there, kinds);
	free(there);
	return ok;
}

void slp_trainer_drop_others(sl_trainer *t)
{
	for (int i = 0; t && slp_trainer_shard_ranks(t) && i < t->count; i++)
		for (int k = 0; !slp_trainer_has_state_of(t, i) && k < SLP_TRAINER_STATES; k++) {
			sl_release(t->states[k][i]);
			t->states[k][i] = NULL;
		}
}
