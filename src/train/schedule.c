/* Schedules of the learning rate. */
#include <math.h>

#include "nn/nn.h"
#include "options.h"
#include "train/train.h"

/* A field that the kind of schedule does not read. */
static const char *idle(const struct sl_schedule *s)
{
	if (s->kind != SL_STEPS && (s->every || s->factor != 0.1)) return ".every and .factor are for SL_STEPS";
	if (s->kind < SL_COSINE && (s->total || s->final_lr != 0))
		return ".total and .final_lr are for SL_COSINE and SL_POLYNOMIAL";
	if (s->kind != SL_POLYNOMIAL && s->power != 1) return ".power is for SL_POLYNOMIAL";
	return NULL;
}

const char *slp_schedule_wrong(const struct sl_schedule *s)
{
	if ((unsigned)s->kind > SL_POLYNOMIAL) return "there is no such schedule";
	if (s->warmup < 0) return ".warmup is negative";
	if (s->kind == SL_STEPS && s->every < 1) return "SL_STEPS needs .every";
	if (!isfinite(s->factor) || s->factor < 0) return ".factor must be a number that is not negative";
	if (!isfinite(s->final_lr) || s->final_lr < 0) return ".final_lr must be a number that is not negative";
	if (!isfinite(s->power) || s->power < 0) return ".power must be a number that is not negative";
	if (s->kind >= SL_COSINE && s->total <= s->warmup) return "the schedule needs .total, more than .warmup";
	return idle(s);
}

/* How far step t of `total` is, from 0 to 1. */
static double progress(int64_t t, int64_t total)
{
	return t < total ? (double)t / (double)total : 1;
}

/* The learning rate of a schedule at a step, counted from 0; lr is the rate after the warm-up.  During the first
 * .warmup steps it grows linearly, from lr / warmup at step 0 to lr.  t steps later it is:
 *   SL_CONSTANT    lr
 *   SL_STEPS       lr factor^⌊t / every⌋             (factor 0 means 0.1)
 *   SL_COSINE      from lr to final_lr by half a turn of the cosine, until step `total`
 *   SL_POLYNOMIAL  final_lr + (lr - final_lr) (1 - t / (total - warmup))^power, until step `total`  (power 0 means 1)
 * A NULL schedule is constant.
 * I. Loshchilov, F. Hutter, "SGDR: stochastic gradient descent with warm restarts", ICLR 2017, for the cosine.
 *
 *     struct sl_schedule s = {.kind = SL_COSINE, .warmup = 100, .total = 5000};
 *     double lr = sl_schedule_lr(&s, 0.1, 250); */
double sl_schedule_lr(const struct sl_schedule *schedule, double lr, int64_t step)
{
	if (!schedule) return lr;
	struct sl_schedule own = *schedule, *s = &own;
	if (!SLP_OPTIONS(sl_schedule, NULL, "sl_schedule_lr", s)) return lr;
	int64_t warmup = s->warmup > 0 ? s->warmup : 0; /* a schedule that no trainer has checked */
	if (step < 0) step = 0;
	if (step < warmup) return lr * (double)(step + 1) / (double)warmup;
	int64_t t = step - warmup, total = s->total > warmup ? s->total - warmup : 0;
	double range = lr - s->final_lr;
	switch (s->kind) {
	case SL_STEPS: return s->every > 0 ? lr * pow(slp_or(s->factor, 0.1), (double)(t / s->every)) : lr;
	case SL_COSINE: return s->final_lr + range * (1 + cos(M_PI * progress(t, total))) / 2;
	case SL_POLYNOMIAL: return s->final_lr + range * pow(1 - progress(t, total), slp_or(s->power, 1));
	default: return lr;
	}
}
