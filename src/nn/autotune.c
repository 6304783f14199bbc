/* Trials: finds the fastest of several ways to do the same work, while the work continues. */
#include <math.h>
#include <stdlib.h>

#include "dist/dist.h"
#include "nn/nn.h"

enum { WARM = 2, TIMED = 6, ROUNDS = 3, MOST = 1 << 16 };

struct sl_trial {
	struct slp_guard guard;
	int ways, way, round, steps;
	atomic_bool decided;
	double start;
	_Atomic double best[]; /* seconds a step, by way; INFINITY: not known */
};

/* Finds the fastest of several ways to do a step, during the steps: call sl_trial_next before each step for the way to
 * use. Each way is used for some steps, in turn, three times; then the fastest is used for good, after 24 steps of
 * each way. Until then it sometimes waits for all work. In simulation, simulated time decides. With several processes
 * all must make the same calls, and all use the same way: the one with the least time over all processes. NULL with
 * SL_EINVAL: fewer ways than one, or more than 65536.  Free it with sl_trial_free.
 *
 *     sl_trial *trial = sl_trial_new(2);
 *     while (next(&x, &y)) {
 *         if (sl_trial_next(trial) == 0) step_on_one_device(x, y);
 *         else step_on_all(x, y);
 *     } */
sl_trial *sl_trial_new_at(const char *at, int ways)
{
	SLP_CALL("sl_trial_new", at);
	if (ways < 1) return slp_call_fail(at, "sl_trial_new", SL_EINVAL, "there must be a way");
	if (ways > MOST) return slp_call_fail(at, "sl_trial_new", SL_EINVAL, "%d ways; at most %d", ways, MOST);
	sl_trial *t = slp_calloc(1, sizeof *t + (size_t)ways * sizeof *t->best);
	if (!t) return slp_call_fail(at, "sl_trial_new", SL_ENOMEM, "no memory for a trial");
	t->ways = ways;
	t->decided = ways == 1;
	for (int i = 0; i < ways; i++) t->best[i] = INFINITY;
	return t;
}

/* Notes how long this way took, and turns to the next. */
static void turn(sl_trial *t)
{
	t->best[t->way] = fmin(t->best[t->way], (sl_time() - t->start) / TIMED);
	t->steps = 0;
	if (++t->way < t->ways) return;
	t->way = 0;
	if (++t->round < ROUNDS) return;
	t->decided = true;
	slp_dist_sum_now(SL_HERE, "sl_trial_next", (void *)t->best, (size_t)t->ways, SL_FLOAT64);
	for (int i = 1; i < t->ways; i++)
		if (t->best[i] < t->best[t->way]) t->way = i;
}

/* The way to go in the coming step: 0 or more, below the number of ways; 0 if the trial is NULL. */
int sl_trial_next(sl_trial *trial)
{
	if (!trial) return 0;
	SLP_CALL("sl_trial_next", NULL);
	SLP_GUARD(&trial->guard, NULL, "sl_trial_next", 0);
	if (trial->decided) return trial->way;
	bool ends = trial->steps == WARM + TIMED;
	if (ends || trial->steps == WARM) slp_engine_idle();
	if (ends) turn(trial);
	if (trial->steps++ == WARM) trial->start = sl_time();
	return trial->way;
}

/* Whether the fastest way is known: sl_trial_next returns it then.  False for NULL. */
bool sl_trial_decided(const sl_trial *trial)
{
	return trial && trial->decided;
}

/* The seconds of a step done in that way, the best of all measurements; INFINITY: none yet, or no such way. */
double sl_trial_seconds(const sl_trial *trial, int way)
{
	return trial && way >= 0 && way < trial->ways ? trial->best[way] : INFINITY;
}

/* Frees a trial. NULL is ignored. */
void sl_trial_free(sl_trial *trial)
{
	free(trial);
}
