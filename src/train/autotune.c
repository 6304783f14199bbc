/* Trials: finds the fastest of several ways to do the same work, while the work continues. */
#include <math.h>
#include <stdlib.h>

#include "dist/dist.h"
#include "nn/nn.h"
#include "op.h"
#include "runtime/engine.h"
#include "starling/nn.h"

enum { WARM = 2, TIMED = 6, ROUNDS = 3, MOST = 1 << 16 };

struct sl_autotune {
	struct slp_guard guard;
	int ways, way, round, steps;
	atomic_bool decided;
	double start;
	_Atomic double best[]; /* seconds a step, by way; INFINITY: not known */
};

/* Finds the fastest of several ways to make a step, while training: call sl_autotune_next before each step for the way
 * to use.  Each way is used for some steps, in turn, three times; after 24 steps of each way, the fastest one is kept.
 * Until then it sometimes waits for all work.  In simulation, simulated time decides.  With several processes all must
 * make the same calls, and all use the same way, the fastest over all processes.  NULL with SL_EINVAL: ways is below 1
 * or above 65536.  Free it with sl_autotune_free.
 *
 *     sl_autotune *autotune = sl_autotune_new(2);
 *     while (next(&x, &y)) {
 *         if (sl_autotune_next(autotune) == 0) step_on_one_device(x, y);
 *         else step_on_all(x, y);
 *     } */
sl_autotune *sl_autotune_new_at(const char *at, int ways)
{
	SLP_CALL("sl_autotune_new", at);
	if (ways < 1) return slp_call_fail(at, "sl_autotune_new", SL_EINVAL, "ways must be at least 1, not %d", ways);
	if (ways > MOST) return slp_call_fail(at, "sl_autotune_new", SL_EINVAL, "%d ways; at most %d", ways, MOST);
	sl_autotune *t = slp_calloc(1, sizeof *t + (size_t)ways * sizeof *t->best);
	if (!t) return slp_call_fail(at, "sl_autotune_new", SL_ENOMEM, "no memory for %d ways", ways);
	t->ways = ways;
	t->decided = ways == 1;
	for (int i = 0; i < ways; i++) t->best[i] = INFINITY;
	return t;
}

/* Notes how long this way took, and turns to the next. */
static void turn(sl_autotune *t)
{
	t->best[t->way] = fmin(t->best[t->way], (sl_time() - t->start) / TIMED);
	t->steps = 0;
	if (++t->way < t->ways) return;
	t->way = 0;
	if (++t->round < ROUNDS) return;
	t->decided = true;
	slp_dist_sum_now(SL_HERE, "sl_autotune_next", (void *)t->best, (size_t)t->ways, SL_FLOAT64);
	for (int i = 1; i < t->ways; i++)
		if (t->best[i] < t->best[t->way]) t->way = i;
}

/* The way to use in the next step, from 0 to ways - 1; 0 for NULL. */
int sl_autotune_next(sl_autotune *autotune)
{
	if (!autotune) return 0;
	SLP_CALL("sl_autotune_next", NULL);
	SLP_GUARD(&autotune->guard, NULL, "sl_autotune_next", 0);
	if (autotune->decided) return autotune->way;
	bool ends = autotune->steps == WARM + TIMED;
	if (ends || autotune->steps == WARM) slp_engine_idle();
	if (ends) turn(autotune);
	if (autotune->steps++ == WARM) autotune->start = sl_time();
	return autotune->way;
}

/* Whether the fastest way is known, so that sl_autotune_next returns it.  False for NULL. */
bool sl_autotune_decided(const sl_autotune *autotune)
{
	return autotune && autotune->decided;
}

/* The seconds of a step made in that way, the least of all measurements; INFINITY: no measurement yet, or no such way.
 * */
double sl_autotune_seconds(const sl_autotune *autotune, int way)
{
	return autotune && way >= 0 && way < autotune->ways ? autotune->best[way] : INFINITY;
}

/* Frees autotune. NULL is ignored. */
void sl_autotune_free(sl_autotune *autotune)
{
	free(autotune);
}
