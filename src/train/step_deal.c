/* Where steps on `auto` run: the shards of a batch are dealt to devices in several ways, one after the other, until it is known
 * which way is the fastest.  The sums are the same.
 *
 * How many GPUs pay depends on how long gradients and parameters travel.  Of CPU teams the policy is tried first, which may
 * divide a shard among them, then a program of a team for each shard; a batch that is not split is such a shard, too, for the
 * policy may do worse than one team alone. */
#include "runtime/device/auto.h"
#include "train/step.h"

/* The most devices that the shards can use; 0: they have devices of their own, or there is no choice.  On a single GPU shards
 * are dealt all the same: their tasks have no priorities then, as on a GPU that the program names. */
static int most_devices(const struct slp_step_run *r)
{
	bool gpus = slp_auto_gpus();
	int devices = slp_auto_devices();
	if (devices < (gpus ? 1 : 2) || (gpus && r->n < 2)) return 0;
	for (int i = 0; i < r->n; i++) {
		const sl_tensor *x = slp_step_shard(r, i)[0]; /* NULL is an error later */
		if (!x || x->device.kind != SL_DEVICE_AUTO) return 0;
	}
	return devices < r->n ? devices : r->n;
}

/* The number of ways to deal shards to at most so many devices. */
static int count_ways(int most)
{
	int ways = 1;
	while (1 << (ways - 1) < most) ways++;
	return slp_auto_gpus() ? ways : ways + 1;
}

/* The number of devices of a way: 1, 2, 4 … GPUs.  Of CPU teams the most come first, after the policy, 0: short runs do not
 * meet slow ways. */
static int devices_of(int way, int most)
{
	int devices = 1 << way;
	if (!slp_auto_gpus()) devices = way ? (most + (1 << (way - 1)) - 1) >> (way - 1) : 0;
	return devices < most ? devices : most;
}

void slp_step_deal(const struct slp_step_run *r)
{
	sl_step *step = r->step;
	int most = most_devices(r), ways = count_ways(most);
	if (!most || !slp_step_is_alone(step)) return; /* trials of several processes would be out of step */
	if (step->deals && step->dealt != ways) {
		sl_autotune_free(step->deals);
		step->deals = NULL;
	}
	if (!step->deals) step->deals = sl_autotune_new_at(r->at, ways);
	step->dealt = ways;
	int devices = step->deals ? devices_of(sl_autotune_next(step->deals), most) : most;
	slp_auto_deal = (struct slp_auto_deal){.devices = devices, .most = most, .shard = -1};
}

/* Wherever they were computed. */
void slp_step_return_to_auto(sl_tensor **results, int n)
{
	for (int i = 0; slp_auto_deal.devices && i < n; i++) results[i]->device = sl_auto();
}
