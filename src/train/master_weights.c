/* Masters: float32 copies that a trainer updates instead of parameters in half types, with the versions of the
 * parameters' storages, which show other writes to the parameters. */
#include "starling/arithmetic.h"
#include "starling/primitives.h"
#include "train/train.h"
#include "train/trainer.h"

/* Counts writes to a parameter. */
static unsigned version_of(const sl_param *p)
{
	return p->data ? atomic_load_explicit(&p->data->storage->version, memory_order_relaxed) : 0;
}

bool slp_trainer_rounds(const sl_trainer *t)
{
	for (int i = 0; i < t->count; i++) {
		const sl_param *p = t->params[i];
		if (slp_is_half(p->data ? p->data->type.dtype : p->dtype)) return true;
	}
	return false;
}

void slp_trainer_master_weight_is_new(sl_trainer *t, int i)
{
	t->versions[i] = version_of(t->params[i]);
}

void slp_trainer_master_weights_hold(sl_trainer *t)
{
	for (int i = 0; i < t->count; i++)
		if (t->states[SLP_TRAINER_MASTER][i]) slp_trainer_master_weight_is_new(t, i);
}

bool slp_trainer_master_weights_follow(const char *at, sl_trainer *t)
{
	for (int i = 0; i < t->count; i++) {
		sl_tensor *master = t->states[SLP_TRAINER_MASTER][i], *p = t->params[i]->data;
		if (!master || !p || t->versions[i] == version_of(t->params[i])) continue;
		bool ok = true;
		SL_PAUSE
			SL_SCOPE
				ok = (p = slp_trainer_at_home(at, t, i, p)) &&
				     sl_copy_inplace_at(at, master, sl_cast_at(at, p, SL_FLOAT32));
		if (!ok) return false;
		slp_trainer_master_weight_is_new(t, i);
	}
	return true;
}

bool slp_trainer_set_state(const char *at, sl_trainer *t, int which, int i, sl_tensor *value)
{
	sl_tensor **state = slp_trainer_state(t, which, i);
	sl_param *p = t->params[i];
	int slot = slp_trainer_slot(t, which);
	bool master = slot == SLP_TRAINER_MASTER;
	if (!slp_trainer_has_state_of(t, i)) return true;
	if (!value && slot == SLP_TRAINER_AVERAGE && *state && p->data) value = p->data; /* they begin there */
	if (!value) {
		if (master) t->versions[i] = version_of(p) - 1; /* made of the parameter before the next step */
		return !*state || slot >= SLP_TRAINER_MASTER || sl_fill_inplace_at(at, *state, 0);
	}
	if (slot == SLP_TRAINER_AVERAGE && slp_is_half(value->type.dtype)) value = sl_cast_at(at, value, SL_FLOAT32);
	sl_device home = slp_trainer_home(t, i);
	sl_device own = home.kind ? home : p->data ? sl_tensor_device(p->data) : sl_auto();
	sl_device there = *state ? sl_tensor_device(*state) : own;
	sl_tensor *copy = value ? sl_copy_to_at(at, value, there) : NULL;
	if (!copy || (*state && !sl_copy_inplace_at(at, *state, copy))) return false;
	if (!*state) *state = sl_retain(copy);
	if (master) slp_trainer_master_weight_is_new(t, i);
	return true;
}
