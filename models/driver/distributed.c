/* Training drivers in several processes: each rank trains on its rows of every batch, rank 0 prints and writes, and all
 * ranks stop at the same step. */
#include <stdlib.h>

#include <starling/dist.h>

#include "training.h"

/* Sets SL_DIST for sl_init, unless the environment has it. */
bool drv_distributed_ask(bool distributed)
{
	if (!distributed || !setenv("SL_DIST", "tcp", 0)) return true;
	drv_error("--distributed: no memory for the environment");
	return false;
}

bool drv_distributed_split(struct drv_options *common, int64_t *batch_size)
{
	int ranks = sl_dist_size();
	if (*batch_size % ranks) {
		drv_error("--batch-size: %lld rows cannot be split equally over %d processes", (long long)*batch_size,
		          ranks);
		return false;
	}
	*batch_size /= ranks;
	if (sl_dist_rank() == 0) return true;
	common->quiet = true;
	common->json = NULL;
	return true;
}

/* A rank's part of a run, once the engine runs; reports why it is impossible. */
bool drv_distributed_ready(struct drv_options *common, struct drv_train_options *o)
{
	if (sl_dist_size() == 1) return true;
	if (o->checkpoint.folder && o->checkpoint.unit == DRV_EVERY_SECONDS) {
		drv_error("--every: seconds differ between processes; give steps or epochs");
		return false;
	}
	if (!drv_distributed_split(common, &o->batch_size)) return false;
	if (sl_dist_rank()) o->plot = o->log = o->tensorboard = NULL;
	return true;
}

/* The sum over all ranks; all must ask.  Waits. */
double drv_sum_over_ranks(double value)
{
	double sum = value;
	if (sl_dist_size() == 1) return sum;
	SL_SCOPE {
		sl_tensor *t = sl_full(SL_SCALAR, value, .dtype = SL_FLOAT64);
		if (sl_dist_sum(t) == SL_OK) sum = sl_item(t);
	}
	return sum;
}

static sl_tensor *of_all_ranks(sl_tensor *sum)
{
	sl_tensor *t = sl_clone(sum);
	sl_dist_sum(t);
	return t;
}

/* The sums of a checkpoint, one for each device: those of all ranks.  This rank's are unchanged. */
void drv_sums_of_ranks(const struct drv_training *t, struct drv_sums *sums)
{
	for (int i = 0; i < t->common->ndevices; i++) {
		sums[i] = t->sums[i];
		if (sl_dist_size() == 1) continue;
		sums[i].loss = of_all_ranks(sums[i].loss);
		sums[i].correct = of_all_ranks(sums[i].correct);
	}
}

/* Each rank takes an equal part of a checkpoint's sums. */
void drv_share_sums(struct drv_training *t)
{
	for (int i = 0; i < t->common->ndevices && sl_dist_size() > 1; i++) {
		sl_mul_scalar_(t->sums[i].loss, 1.0 / sl_dist_size());
		sl_mul_scalar_(t->sums[i].correct, 1.0 / sl_dist_size());
	}
}

/* Whether the run is to stop here: alone, immediately; otherwise at the same step on all ranks, once all know that one
 * was interrupted.  The answer of a question asked some steps ago is known by now, so nobody waits. */
bool drv_stops(struct drv_stops *s)
{
	if (sl_dist_size() == 1) return drv_interrupted();
	sl_tensor **asked = &s->asked[s->asks++ % DRV_ASKED], *now = NULL;
	s->stopped = *asked && sl_item(*asked) > 0;
	sl_release(*asked);
	SL_SCOPE {
		now = sl_retain(sl_full(SL_SCALAR, drv_interrupted()));
	}
	*asked = sl_dist_sum(now) == SL_OK ? now : (sl_release(now), NULL);
	return s->stopped;
}

void drv_stops_end(struct drv_stops *s)
{
	for (int i = 0; i < DRV_ASKED; i++) {
		sl_release(s->asked[i]);
		s->asked[i] = NULL;
	}
}
