/* Gradients of micro-batches, added until a step uses them (sl_step_opts.accumulate). */
#include "starling/arithmetic.h"
#include "starling/primitives.h"
#include "train/train.h"
#include "train/trainer.h"

/* Sums of half types are in float32.  The first is a copy: the gradients' memory is used again, and may be shared. */
static bool add(const char *at, sl_tensor **sum, sl_tensor *grad)
{
	if (grad && slp_is_half(grad->type.dtype)) grad = sl_cast_at(at, grad, SL_FLOAT32);
	if (!grad) return false;
	if (*sum) return sl_add_inplace_at(at, *sum, grad) != NULL;
	return (*sum = sl_retain(sl_clone_at(at, grad))) != NULL;
}

int slp_trainer_gather(const char *at, sl_trainer *t, sl_tensor *const *grads, int64_t rows)
{
	bool ok = true;
	SL_PAUSE
		SL_SCOPE
			for (int i = 0; ok && i < t->count; i++)
				if (grads[i] && slp_trainer_needs_gradient(t, i))
					ok = add(at, &t->states[SLP_TRAINER_SUM][i],
					         slp_trainer_at_home(at, t, i, grads[i]));
	if (!ok) return slp_trainer_set_gathered(t, 0, 0), -1;
	t->gathered_rows += rows;
	return ++t->gathered;
}

int slp_trainer_gathered(const sl_trainer *t, int64_t *rows)
{
	*rows = t->gathered_rows;
	return t->gathered;
}

void slp_trainer_set_gathered(sl_trainer *t, int count, int64_t rows)
{
	t->gathered = count;
	t->gathered_rows = rows;
	for (int i = 0; !count && i < t->count; i++) {
		sl_release(t->states[SLP_TRAINER_SUM][i]);
		t->states[SLP_TRAINER_SUM][i] = NULL;
	}
}

sl_tensor *slp_trainer_sum(const sl_trainer *t, int i)
{
	return t->states[SLP_TRAINER_SUM][i];
}
