/* The first values of what several processes train: those of rank 0, from the first gradient on.  Whole steps take care of
 * that themselves (step_shards.c); otherwise the first forward pass that is recorded does, since gradients are computed by what it
 * has read.  Parameters whose shapes are known only then follow as soon as they have values. */
#include <pthread.h>
#include <stdlib.h>

#include "graph/graph.h"
#include "nn/ranks.h"
#include "nn/trainer.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static sl_trainer *expecting; /* in the order in which they were made, which is the same in all processes */

void slp_first_values_expect(sl_trainer *trainer)
{
	pthread_mutex_lock(&lock);
	sl_trainer **last = &expecting;
	while (*last) last = &(*last)->expecting;
	*last = trainer;
	pthread_mutex_unlock(&lock);
}

void slp_first_values_known(sl_trainer *trainer)
{
	pthread_mutex_lock(&lock);
	sl_trainer **t = &expecting;
	while (*t && *t != trainer) t = &(*t)->expecting;
	if (*t) *t = trainer->expecting;
	trainer->expecting = NULL;
	pthread_mutex_unlock(&lock);
}

static bool trains(const sl_trainer *t, sl_param *const *params, int n)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < t->count; k++)
			if (params[i] == t->params[k]) return true;
	return false;
}

/* The first that trains one of these parameters, which leaves the list; NULL: none does. */
static sl_trainer *take(sl_param *const *params, int n)
{
	pthread_mutex_lock(&lock);
	sl_trainer *t = expecting;
	while (t && !(slp_trainer_size(t) > 1 && trains(t, params, n))) t = t->expecting;
	pthread_mutex_unlock(&lock);
	if (t) slp_first_values_known(t);
	return t;
}

/* Parameters without values get theirs later: they are all that the network has, running statistics among them. */
static bool share_later(const char *at, sl_block *block)
{
	int n = 0;
	sl_param **all = slp_block_all_params(at, block, &n);
	bool ok = all != NULL;
	for (int i = 0; ok && i < n; i++)
		if (!all[i]->data && !all[i]->shared) ok = (all[i]->shared = slp_param_path(block, all[i])) != NULL;
	free(all);
	return ok;
}

static bool begin(const char *at, sl_trainer *t)
{
	return slp_ranks_agree(at, t, "sl_forward", NULL) && slp_ranks_same_values(at, t) && share_later(at, t->block);
}

/* Whether a pass of a block may be the first that is recorded. */
static bool may_begin(void)
{
	return slp_dist.size > 1 && !slp_dist.apart && sl_is_recording() && !slp_trace_current() && expecting;
}

bool slp_first_values(const char *at, sl_block *block)
{
	int n = 0;
	if (!may_begin()) return true;
	sl_param **params = slp_block_all_params(at, block, &n);
	bool ok = params != NULL;
	for (sl_trainer *t; ok && (t = take(params, n));) ok = begin(at, t);
	free(params);
	return ok;
}

bool slp_first_values_of(const char *at, sl_param *param)
{
	if (!param->shared) return true;
	bool ok = slp_dist_broadcast(at, param->data, (struct slp_dist_what){.name = param->shared});
	free(param->shared);
	param->shared = NULL;
	return ok;
}
