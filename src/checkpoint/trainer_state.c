/* The state of trainers in files: the optimiser's states, the learning rate, the number of steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/params.h"
#include "runtime/uncancelled.h"
#include "tensor/moment.h"
#include "train/train.h"
#include "train/trainer.h"

/* Names and tensors: "0.weight.momentum", …, FIGURES, and SKIPPED if a step has left a parameter alone. */
struct list {
	char **names;
	sl_tensor **tensors;
	int count;
};
/* Of float64: learning rate, steps; micro-batches that wait, their rows; the loss scale, steps since it changed, steps
 * left out.  Without loss scaling the last three are missing, and the two before them if no micro-batch waits. */
static const char FIGURES[] = "trainer", SKIPPED[] = "skipped";
enum { LR, STEPS, BASE, GATHERED = BASE, ROWS, WITH_SUMS, SCALE = WITH_SUMS, GOOD, OVERFLOWS, WITH_SCALE };

static int count_params(sl_trainer *t)
{
	int count;
	slp_trainer_params(NULL, t, &count);
	return count;
}

static void list_free(struct list *l)
{
	for (int i = 0; i < l->count; i++) {
		free(l->names[i]);
		sl_release(l->tensors[i]);
	}
	free(l->names);
	free(l->tensors);
}

static bool add(struct list *l, char *name, sl_tensor *t)
{
	if (!name || !t) {
		free(name);
		return false;
	}
	l->names[l->count] = name;
	l->tensors[l->count++] = sl_retain(t);
	return true;
}

static int list_figures(const sl_trainer *t, double figures[WITH_SCALE])
{
	int64_t rows, good, overflows;
	int gathered = slp_trainer_gathered(t, &rows);
	slp_loss_scaling_get(t, &figures[SCALE], &good, &overflows);
	figures[LR] = slp_trainer_base_lr(t);
	figures[STEPS] = (double)sl_trainer_steps(t);
	figures[GATHERED] = gathered;
	figures[ROWS] = (double)rows;
	figures[GOOD] = (double)good;
	figures[OVERFLOWS] = (double)overflows;
	return slp_trainer_scales(t) ? WITH_SCALE : gathered ? WITH_SUMS : BASE;
}

/* One a parameter, as int64. */
static bool list_skipped(const char *at, sl_trainer *t, struct list *l)
{
	int count = count_params(t);
	int64_t most = 0;
	for (int i = 0; i < count; i++)
		if (*slp_trainer_skipped(t, i) > most) most = *slp_trainer_skipped(t, i);
	if (!most) return true;
	struct sl_make make = {.dtype = SL_INT64};
	return add(l, slp_strdup(SKIPPED), sl_from_at(at, slp_trainer_skipped(t, 0), SL_SHAPE(count), make));
}

/* All existing states; a parameter that was never updated has none. */
static bool list_all(const char *at, sl_trainer *t, struct list *l)
{
	size_t most = SLP_TRAINER_STATES * (size_t)count_params(t) + 2;
	double figures[WITH_SCALE];
	int count = list_figures(t, figures);
	l->names = slp_calloc(most, sizeof *l->names);
	l->tensors = slp_calloc(most, sizeof *l->tensors);
	bool ok = l->names && l->tensors;
	ok = ok && add(l, slp_strdup(FIGURES),
	               sl_from_at(at, figures, SL_SHAPE(count), (struct sl_make){.dtype = SL_FLOAT64}));
	ok = ok && list_skipped(at, t, l);
	for (int which = 0; slp_trainer_state_name(t, which); which++)
		for (int i = 0; ok && i < count_params(t); i++) {
			sl_tensor *state = *slp_trainer_state(t, which, i);
			if (state) ok = add(l, slp_trainer_state_path(t, i, which), state);
		}
	if (!ok && sl_error() == SL_OK) slp_call_fail(at, "sl_trainer_save", SL_ENOMEM, "no memory");
	return ok;
}

/* Copies, of one moment; false with an error. */
static bool gather(const char *at, sl_trainer *t, struct list *l)
{
	SLP_MOMENT();
	return list_all(at, t, l) && slp_moment_copy(at, l->tensors, l->count);
}

/* Writes the state of a trainer, without the parameters (sl_save_params writes these): the state of its optimiser,
 * moving averages, the learning rate, the loss scale, the number of steps.  Waits for the values, which are those of
 * one moment between two steps.  The extension of path is .params or .safetensors, as for sl_save_params.  SL_EINVAL:
 * another extension; SL_ESTATE: the states are sharded over processes; SL_EIO and others: see io.h.
 *
 *     sl_save_params(net, "net.params");
 *     sl_trainer_save(trainer, "trainer.params"); */
enum sl_status sl_trainer_save_at(const char *at, sl_trainer *trainer, const char *path)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_trainer_save", at);
	if (!slp_given(at, "sl_trainer_save", "trainer", trainer)) return sl_error();
	SLP_GUARD(&trainer->guard, at, "sl_trainer_save", SL_ESTATE);
	if (slp_trainer_is_averaged(at, "sl_trainer_save", trainer)) return SL_ESTATE;
	if (slp_trainer_shards_state(trainer)) {
		slp_call_fail(at, "sl_trainer_save", SL_ESTATE,
		              "processes share the states (.shard_state): sl_checkpoint_save gathers them");
		return SL_ESTATE;
	}
	struct list l = {0};
	enum sl_status s = SL_OK;
	SL_PAUSE
		SL_SCOPE
			s = !gather(at, trainer, &l)
			            ? sl_error()
			            : slp_arrays_save_as(at, "sl_trainer_save", path, (const char *const *)l.names,
			                                 l.tensors, l.count);
	list_free(&l);
	return s;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

static bool refuse(const char *at, const char *path, const char *why, const char *name)
{
	slp_call_fail(at, "sl_trainer_load", SL_EINVAL, "%s does not fit the trainer: %s%s", path, name, why);
	return false;
}

static sl_tensor *find(const struct list *l, const char *name)
{
	for (int i = 0; name && i < l->count; i++)
		if (!strcmp(l->names[i], name)) return l->tensors[i];
	return NULL;
}

/* The reason why a state cannot be that of a parameter; NULL if it can.  States of half types are in float32. */
static const char *misfit(const sl_param *p, const sl_tensor *state, bool master)
{
	if (!slp_shape_known(p->shape))
		return " belongs to a parameter whose shape is not known yet: load the parameters first";
	if (!sl_shape_equal(sl_tensor_shape(state), p->shape)) return " differs in shape from its parameter";
	enum sl_dtype dtype = p->data ? sl_tensor_dtype(p->data) : SL_DTYPE_DEFAULT;
	if (p->data && master && !slp_is_half(dtype)) return " belongs to a parameter that is in no half type here";
	if (p->data && sl_tensor_dtype(state) != slp_promoted(dtype)) return " differs in data type from its parameter";
	return NULL;
}

/* Finds the states of all parameters in the file, in the order of slp_trainer_state; returns their number, -1 after an
 * error. */
static int match(const char *at, const char *path, sl_trainer *t, const struct list *l, sl_tensor **states)
{
	int count, found = 0, k = 0;
	sl_param *const *params = slp_trainer_params(at, t, &count);
	for (int which = 0; slp_trainer_state_name(t, which); which++)
		for (int i = 0; i < count; i++, k++) {
			char *name = slp_trainer_state_path(t, i, which);
			if (!name) return -1;
			states[k] = find(l, name);
			found += states[k] != NULL;
			const char *why = states[k] ? misfit(params[i], states[k],
			                                     slp_trainer_slot(t, which) == SLP_TRAINER_MASTER)
			                            : NULL;
			if (why) refuse(at, path, why, name);
			free(name);
			if (why) return -1;
		}
	return found;
}

static bool is_count(double x)
{
	return x >= 0 && x < 1e15;
}

static bool are_figures(const double f[WITH_SCALE])
{
	return isfinite(f[LR]) && is_count(f[STEPS]) && f[GATHERED] >= 0 && f[GATHERED] < 1e9 && is_count(f[ROWS]) &&
	       is_count(f[GOOD]) && is_count(f[OVERFLOWS]) && slp_loss_scaling_fits(f[SCALE], 0, 0);
}

/* Reads them as they are. */
static bool read_figures(const char *at, const char *path, const sl_trainer *t, const struct list *l,
                         double f[WITH_SCALE])
{
	sl_tensor *first = find(l, FIGURES);
	int64_t count = first && sl_tensor_dtype(first) == SL_FLOAT64 ? sl_tensor_size(first) : 0;
	if (count != BASE && count != WITH_SUMS && count != WITH_SCALE)
		return refuse(at, path, " is missing: sl_trainer_save did not write this", FIGURES);
	if ((count == WITH_SCALE) != slp_trainer_scales(t))
		return refuse(at, path,
		              slp_trainer_scales(t) ? "there is no loss scaling in the file"
		                                    : "there is loss scaling in the file, none here",
		              "");
	if (sl_read_at(at, first, f, sl_tensor_bytes(first)) != SL_OK) return false;
	return are_figures(f) || refuse(at, path, " is not a learning rate and a number of steps", FIGURES);
}

/* How often the parameters were left alone, in steps; zeros unless the file says it.  NULL with an error. */
static int64_t *read_skipped(const char *at, const char *path, sl_trainer *t, const struct list *l, double steps)
{
	int count = count_params(t);
	sl_tensor *given = find(l, SKIPPED);
	int64_t *skipped = slp_calloc((size_t)count + 1, sizeof *skipped);
	if (!skipped) return slp_call_fail(at, "sl_trainer_load", SL_ENOMEM, "no memory");
	bool ok = !given || (sl_tensor_dtype(given) == SL_INT64 && sl_tensor_size(given) == count);
	if (ok && given && sl_read_at(at, given, skipped, sl_tensor_bytes(given)) != SL_OK) {
		free(skipped);
		return NULL;
	}
	for (int i = 0; i < count; i++) ok = ok && skipped[i] >= 0 && (double)skipped[i] <= steps;
	if (ok) return skipped;
	refuse(at, path, " is not a number of skipped steps for each parameter", SKIPPED);
	free(skipped);
	return NULL;
}

static bool load(const char *at, const char *path, sl_trainer *t, const struct list *l)
{
	double figures[WITH_SCALE] = {[SCALE] = 1};
	int count = count_params(t), k = 0;
	sl_tensor **states = slp_calloc(SLP_TRAINER_STATES * (size_t)count + 1, sizeof *states);
	if (!states) return slp_call_fail(at, "sl_trainer_load", SL_ENOMEM, "no memory") != NULL;
	bool ok = read_figures(at, path, t, l, figures);
	int found = ok ? match(at, path, t, l, states) : -1;
	int64_t *skipped = found >= 0 ? read_skipped(at, path, t, l, figures[STEPS]) : NULL;
	if (!skipped) found = -1;
	if (found >= 0 && found != l->count - 1 - (find(l, SKIPPED) != NULL))
		found = refuse(at, path, " there are states of other parameters, or of another optimiser", "") - 1;
	ok = found >= 0 &&
	     slp_loss_scaling_set(at, t, figures[SCALE], llround(figures[GOOD]), llround(figures[OVERFLOWS]));
	if (ok) slp_trainer_set_gathered(t, 0, 0);
	if (ok) slp_trainer_set_gathered(t, (int)figures[GATHERED], llround(figures[ROWS]));
	for (int which = 0; slp_trainer_state_name(t, which); which++)
		for (int i = 0; ok && i < count; i++, k++) ok = slp_trainer_set_state(at, t, which, i, states[k]);
	if (ok) slp_trainer_resume(t, figures[LR], llround(figures[STEPS]));
	for (int i = 0; ok && i < count; i++) *slp_trainer_skipped(t, i) = skipped[i];
	free(skipped);
	free(states);
	return ok;
}

/* Restores a trainer of the same network and optimiser to the state that sl_trainer_save wrote.  Everything is checked
 * first.  SL_EINVAL: the file does not match the trainer; SL_EIO, SL_EFORMAT and others: see io.h. */
enum sl_status sl_trainer_load_at(const char *at, sl_trainer *trainer, const char *path)
{
	SLP_UNCANCELLED();
	SLP_CALL("sl_trainer_load", at);
	if (!slp_given(at, "sl_trainer_load", "trainer", trainer)) return sl_error();
	SLP_GUARD(&trainer->guard, at, "sl_trainer_load", SL_ESTATE);
	if (slp_trainer_is_averaged(at, "sl_trainer_load", trainer)) return SL_ESTATE;
	struct list l = {0};
	l.count = slp_arrays_load_as(at, "sl_trainer_load", path, &l.names, &l.tensors);
	if (l.count < 0) return sl_error();
	bool ok = false;
	SLP_CHANGE();
	SL_PAUSE
		SL_SCOPE
			ok = load(at, path, trainer, &l);
	slp_arrays_free(l.names, l.tensors, l.count);
	return ok ? SL_OK : sl_error();
}
