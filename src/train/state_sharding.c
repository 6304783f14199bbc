/* States of a trainer sharded over several processes: each keeps the states of a part of the parameters, gets only the
 * sums of their gradients, updates them, and sends the new values to the others.  That is the first stage of S.
 * Rajbhandari, J.  Rasley, O. Ruwase, Y. He, "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC
 * 2020; no parameter is divided.  Sums for one and values from one are as many bytes as sums for all. */
#include "runtime/task/storage.h"
#include "train/data_parallel.h"
#include "train/train.h"
#include "train/trainer.h"

/* Ranges of parameters, as equal in bytes as they can be: those whose gradients come one after the other are summed
 * together. */
static void deal(sl_trainer *t)
{
	double all = 0, before = 0;
	for (int i = 0; i < t->count; i++) {
		if (!t->params[i]->data) return;
		all += (double)sl_tensor_bytes(t->params[i]->data);
	}
	for (int i = 0; i < t->count; i++) {
		double bytes = (double)sl_tensor_bytes(t->params[i]->data);
		int rank = all > 0 ? (int)((before + bytes / 2) / all * slp_dist.size) : 0;
		t->shard_rank[i] = rank < slp_dist.size ? rank : slp_dist.size - 1;
		before += bytes;
	}
	t->dealt = true;
}

const int *slp_trainer_shard_ranks(sl_trainer *t)
{
	if (!slp_trainer_shards_state(t)) return NULL;
	if (!t->dealt) deal(t);
	return t->dealt ? t->shard_rank : NULL;
}

bool slp_trainer_has_state_of(sl_trainer *t, int i)
{
	const int *shard_rank = slp_trainer_shard_ranks(t);
	return !shard_rank || shard_rank[i] == slp_dist.rank;
}

bool slp_trainer_needs_gradient(sl_trainer *t, int i)
{
	return t->optimizer.clip_norm != 0 || slp_trainer_scales(t) || slp_trainer_has_state_of(t, i);
}

/* Parameters in one piece of memory are kept by one process. */
bool slp_trainer_broadcast(const char *at, sl_trainer *t, sl_tensor *const *params)
{
	const int *shard_rank = slp_trainer_shard_ranks(t);
	const struct slp_storage *given = NULL;
	bool ok = true;
	if (!shard_rank) return true;
	SL_PAUSE
		SL_SCOPE
			for (int i = t->count; ok && i-- > 0;) {
				if (!params[i] || t->params[i]->data->storage == given) continue;
				sl_tensor *values = slp_grad_bucket_memory(t->params, t->count, i);
				if (values != t->params[i]->data) given = t->params[i]->data->storage;
				ok = values && slp_data_parallel_give(at, t, i, values, shard_rank[i]);
			}
	slp_trainer_master_weights_hold(t);
	return ok;
}
