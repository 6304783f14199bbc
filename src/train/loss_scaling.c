/* Loss scaling: losses are multiplied by a factor before the backward pass, so that small gradients do not vanish in
 * float16. The factor grows while no gradient overflows, and decreases after a step whose gradients overflowed; that
 * step is skipped. P. Micikevicius et al., "Mixed precision training", ICLR 2018. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "dist/dist.h"
#include "options.h"
#include "runtime/observe/stats.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"
#include "train/train.h"
#include "train/trainer.h"

/* ---- options ----------------------------------------------------------------------------------------------------- */

const char *slp_loss_scaling_wrong(const struct sl_loss_scaling *s)
{
	if (slp_was_given(s->start) && !(s->start > 0 && isfinite(s->start)))
		return ".loss_scaling.start must be a positive number; leave it out for no scaling";
	if (slp_was_given(s->growth) && !(s->growth >= 1 && isfinite(s->growth)))
		return ".loss_scaling.growth must be at least 1";
	if (slp_was_given(s->backoff) && !(s->backoff > 0 && s->backoff < 1))
		return ".loss_scaling.backoff must be in (0, 1)";
	if (s->every < 0) return ".loss_scaling.every must not be negative";
	if (!slp_was_given(s->start) && (s->growth != 2 || s->backoff != 0.5 || s->every != 2000))
		return ".loss_scaling has no .start: its other fields would have no effect";
	return NULL;
}

void slp_loss_scaling_begin(sl_trainer *t)
{
	struct sl_loss_scaling *s = &t->optimizer.loss_scaling;
	if (s->growth == 0) s->growth = 2;
	if (s->backoff == 0) s->backoff = 0.5;
	if (s->every == 0) s->every = 2000;
	t->scaling.now = s->start > 0 ? (double)(float)s->start : 1; /* plans have it in float32 */
}

bool slp_trainer_scales(const sl_trainer *t)
{
	return t->optimizer.loss_scaling.start > 0;
}

/* The factor of the losses of the next step, for sl_backward_heads(…, .scale = …): 1 without loss scaling, and for
 * NULL. */
double sl_trainer_loss_scale(const sl_trainer *trainer)
{
	return trainer ? trainer->scaling.now : 1;
}

/* The number of steps that loss scaling has skipped because gradients overflowed, including those before
 * sl_trainer_load; 0 for NULL. */
int64_t sl_trainer_overflows(const sl_trainer *trainer)
{
	return trainer ? trainer->scaling.overflows : 0;
}

/* ---- state ------------------------------------------------------------------------------------------------------- */

bool slp_loss_scaling_fits(double now, int64_t good, int64_t overflows)
{
	return now > 0 && isfinite(now) && good >= 0 && overflows >= 0;
}

/* Programs of whole steps have the tensor in them. */
bool slp_loss_scaling_set(const char *at, sl_trainer *t, double now, int64_t good, int64_t overflows)
{
	bool ok = true;
	if (t->scaling.tensor && now != t->scaling.now)
		SL_PAUSE
			ok = sl_fill_inplace_at(at, t->scaling.tensor, now) != NULL;
	if (!ok) return false;
	t->scaling.now = now;
	t->scaling.good = good;
	t->scaling.overflows = overflows;
	atomic_store(&slp_counters.loss_scale, now);
	return true;
}

void slp_loss_scaling_get(const sl_trainer *t, double *now, int64_t *good, int64_t *overflows)
{
	*now = t->scaling.now;
	*good = t->scaling.good;
	*overflows = t->scaling.overflows;
}

sl_tensor *slp_loss_scaling_symbol(const char *at, sl_trainer *t)
{
	if (!t->scaling.tensor) {
		struct slp_trace *trace = slp_trace_pause();
		SL_PAUSE
			SL_SCOPE
				t->scaling.tensor = sl_retain(sl_full_at(at, SL_SCALAR, t->scaling.now,
				                                         (struct sl_make){SL_FLOAT32, sl_auto()}));
		slp_trace_resume(trace);
	}
	return slp_symbol_of(at, t->scaling.tensor, "loss_scale");
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

/* The sum of all gradients' sums, in float64: finite if all of them are. */
static sl_tensor *sum_of_all(const char *at, const sl_trainer *t, sl_tensor *const *grads, sl_tensor **list)
{
	int n = 0;
	for (int i = 0; i < t->count; i++) {
		if (!grads[i]) continue;
		sl_tensor *g = slp_is_half(grads[i]->type.dtype) ? sl_cast_at(at, grads[i], SL_FLOAT32) : grads[i];
		if (!(list[n++] = sl_cast_at(at, sl_sum_at(at, g, (struct sl_reduce_opts){0}), SL_FLOAT64)))
			return NULL;
	}
	return n ? slp_tree_sum(at, list, n, sl_tensor_device(list[0]))
	         : sl_zeros_at(at, SL_SCALAR, (struct sl_make){SL_FLOAT64, sl_auto()});
}

/* Where processes share the states, each has the sums of some gradients: all leave a step out, or none does. */
static int all_finite(const char *at, const sl_trainer *t, bool finite)
{
	int32_t overflows = !finite;
	if (!slp_trainer_shards_state(t)) return finite;
	if (slp_dist_sum_now(at, "the gradients that overflow", &overflows, 1, SL_INT32) != SL_OK) return -1;
	return !overflows;
}

int slp_loss_scaling_finite(const char *at, const sl_trainer *t, sl_tensor *const *grads)
{
	double sum = NAN;
	sl_tensor **list = slp_calloc((size_t)t->count, sizeof *list);
	if (!list) return slp_call_fail(at, "sl_trainer", SL_ENOMEM, "no memory for the update"), -1;
	enum sl_status s = SL_OK;
	SL_PAUSE
		SL_SCOPE {
			sl_tensor *all = sum_of_all(at, t, grads, list);
			s = all ? sl_read_at(at, all, &sum, sizeof sum) : sl_error();
		}
	free(list);
	return s == SL_OK ? all_finite(at, t, isfinite(sum)) : -1;
}

bool slp_loss_scaling_follow(const char *at, sl_trainer *t, bool finite)
{
	const struct sl_loss_scaling *o = &t->optimizer.loss_scaling;
	int64_t good = finite ? t->scaling.good + 1 : 0, overflows = t->scaling.overflows + !finite;
	double now = finite ? t->scaling.now : t->scaling.now * o->backoff;
	if (good >= o->every) {
		if (isfinite((float)(now * o->growth))) now *= o->growth;
		good = 0;
	}
	if (now < FLT_MIN) now = FLT_MIN; /* a later overflow is not due to its scale */
	return slp_loss_scaling_set(at, t, (float)now, good, overflows);
}
