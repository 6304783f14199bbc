/* The trainer's part of a run's state: the optimiser's states, learning rate, schedule, loss scale, steps. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/state.h"
#include "optimizer.h"
#include "train/train.h"

#define SCHEDULE(X)                                                                                                    \
	X(kind, integer)                                                                                               \
	X(warmup, integer)                                                                                             \
	X(every, integer)                                                                                              \
	X(factor, real)                                                                                                \
	X(total, integer)                                                                                              \
	X(final_lr, real)                                                                                              \
	X(power, real)

bool slp_state_has_trainer(const struct sl_checkpoint_opts *o)
{
	return o->trainer != NULL;
}

/* ---- the optimiser's states -------------------------------------------------------------------------------------- */

/* Calls `each` with every state of every parameter and its name in the file until it says false. */
static bool for_states(struct slp_state *s, bool (*each)(struct slp_state *s, const char *name, int which, int i))
{
	sl_trainer *t = s->opts->trainer;
	int count;
	bool ok = true;
	slp_trainer_params(s->at, t, &count);
	for (int which = 0; slp_trainer_state_name(t, which); which++)
		for (int i = 0; ok && i < count; i++) {
			char *name = slp_trainer_state_path(t, i, which);
			if (!name) slp_call_fail(s->at, s->function, SL_ENOMEM, "no memory for a state's name");
			ok = name && each(s, name, which, i);
			free(name);
		}
	return ok;
}

/* A parameter that was never updated has no state. */
static bool save_state(struct slp_state *s, const char *name, int which, int i)
{
	sl_tensor *state = *slp_trainer_state(s->opts->trainer, which, i);
	return !state || slp_state_add(s, state, "@trainer/%s", name);
}

/* A state has its parameter's type, or float32 for a half type: here, or, if the parameter has no values yet, in the
 * file. */
static bool check_state(struct slp_state *s, const char *name, int which, int i)
{
	int count;
	const sl_param *p = slp_trainer_params(s->at, s->opts->trainer, &count)[i];
	const sl_tensor *state = slp_state_find(s, "@trainer/%s", name);
	char *path = slp_param_path(slp_trainer_block(s->opts->trainer), p);
	const sl_tensor *like = p->data ? p->data : path ? slp_state_find(s, "%s", path) : NULL;
	(void)which;
	if (state && like)
		slp_state_check_type(s, name, (struct slp_type){slp_promoted(like->type.dtype), like->type.shape},
		                     state);
	else if (state) slp_state_differs(s, "%s belongs to a parameter without values", name);
	free(path);
	return true;
}

static bool restore_state(struct slp_state *s, const char *name, int which, int i)
{
	return slp_trainer_set_state(s->at, s->opts->trainer, which, i, slp_state_find(s, "@trainer/%s", name));
}

/* ---- groups ------------------------------------------------------------------------------------------------------ */

/* Calls `each` with the path of every parameter until it says false. */
static bool for_groups(struct slp_state *s, bool (*each)(struct slp_state *s, json_t *groups, const char *path, int i),
                       json_t *groups)
{
	sl_trainer *t = s->opts->trainer;
	int count;
	bool ok = true;
	sl_param *const *params = slp_trainer_params(s->at, t, &count);
	for (int i = 0; ok && i < count; i++) {
		char *path = slp_param_path(slp_trainer_block(t), params[i]);
		if (!path) slp_call_fail(s->at, s->function, SL_ENOMEM, "no memory for a parameter's path");
		ok = path && each(s, groups, path, i);
		free(path);
	}
	return ok;
}

/* Settings that differ from the optimiser's. */
static bool save_group(struct slp_state *s, json_t *groups, const char *path, int i)
{
	double scale, decay;
	slp_trainer_group(s->opts->trainer, i, &scale, &decay);
	if (scale == 1 && decay == slp_trainer_optimizer(s->opts->trainer)->weight_decay) return true;
	if (!json_object_set_new(groups, path, json_pack("{s:f, s:f}", "lr_scale", scale, "weight_decay", decay)))
		return true;
	slp_call_fail(s->at, s->function, SL_ENOMEM, "no memory for the groups");
	return false;
}

static bool check_group(struct slp_state *s, json_t *groups, const char *path, int i)
{
	double scale, decay;
	const json_t *saved = json_object_get(groups, path);
	json_t *none = json_pack("{s:f, s:f}", "lr_scale", 1.0, "weight_decay",
	                         slp_trainer_optimizer(s->opts->trainer)->weight_decay);
	slp_trainer_group(s->opts->trainer, i, &scale, &decay);
	slp_state_check_number(s, saved ? saved : none, path, "lr_scale", scale);
	slp_state_check_number(s, saved ? saved : none, path, "weight_decay", decay);
	json_decref(none);
	return true;
}

/* ---- loss scaling ------------------------------------------------------------------------------------------------ */

static json_t *scaling_json(const sl_trainer *t, const struct sl_loss_scaling *o)
{
	double now;
	int64_t good, overflows;
	slp_loss_scaling_get(t, &now, &good, &overflows);
	return json_pack("{s:f, s:f, s:I, s:f, s:I, s:I}", "growth", o->growth, "backoff", o->backoff, "every",
	                 (json_int_t)o->every, "now", now, "good", (json_int_t)good, "overflows",
	                 (json_int_t)overflows);
}

static void check_scaling(struct slp_state *s, const json_t *saved)
{
	const struct sl_loss_scaling *o = &slp_trainer_optimizer(s->opts->trainer)->loss_scaling;
	double now = json_number_value(json_object_get(saved, "now"));
	if (json_is_object(saved) != slp_trainer_scales(s->opts->trainer)) {
		slp_state_differs(s, "loss scaling: %s in the file, %s here", saved ? "on" : "off",
		                  saved ? "off" : "on");
	} else if (saved) {
		slp_state_check_number(s, saved, "loss scaling", "growth", o->growth);
		slp_state_check_number(s, saved, "loss scaling", "backoff", o->backoff);
		slp_state_check_number(s, saved, "loss scaling", "every", (double)o->every);
		if (!slp_loss_scaling_fits(now, slp_state_integer(saved, "good"),
		                           slp_state_integer(saved, "overflows")))
			slp_state_differs(s, "the loss scale is invalid");
	}
}

static bool restore_scaling(struct slp_state *s, const json_t *saved)
{
	return !saved || slp_loss_scaling_set(s->at, s->opts->trainer, json_number_value(json_object_get(saved, "now")),
	                                      slp_state_integer(saved, "good"), slp_state_integer(saved, "overflows"));
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

static json_t *schedule_json(const struct sl_schedule *schedule)
{
	json_t *json = json_object();
#define X(name, type) json_object_set_new(json, #name, json_##type(schedule->name));
	SCHEDULE(X)
#undef X
	return json;
}

/* How often each parameter was left alone, if any was. */
static void save_skipped(sl_trainer *t, json_t *figures)
{
	int count;
	bool any = false;
	json_t *list = json_array();
	slp_trainer_params(NULL, t, &count);
	for (int i = 0; i < count; i++) {
		any |= *slp_trainer_skipped(t, i) != 0;
		json_array_append_new(list, json_integer(*slp_trainer_skipped(t, i)));
	}
	if (any) json_object_set(figures, "skipped", list);
	json_decref(list);
}

static bool are_skipped(sl_trainer *t, const json_t *figures)
{
	int count;
	const json_t *list = json_object_get(figures, "skipped");
	slp_trainer_params(NULL, t, &count);
	bool ok = !list || json_array_size(list) == (size_t)count;
	for (int i = 0; ok && list && i < count; i++) {
		const json_t *n = json_array_get(list, (size_t)i);
		ok = json_is_integer(n) && json_integer_value(n) >= 0 &&
		     json_integer_value(n) <= slp_state_integer(figures, "steps");
	}
	return ok;
}

static void restore_skipped(sl_trainer *t, const json_t *list)
{
	int count;
	slp_trainer_params(NULL, t, &count);
	for (int i = 0; i < count; i++)
		*slp_trainer_skipped(t, i) = list ? json_integer_value(json_array_get(list, (size_t)i)) : 0;
}

bool slp_state_save_trainer(struct slp_state *s, json_t *figures)
{
	const struct sl_optimizer *o = slp_trainer_optimizer(s->opts->trainer);
	if (slp_trainer_is_averaged(s->at, s->function, s->opts->trainer)) return false;
	json_object_set_new(figures, "optimizer", json_string(sl_optimizer_name(o->kind)));
	json_object_set_new(figures, "lr", json_real(o->lr));
	json_object_set_new(figures, "steps", json_integer(sl_trainer_steps(s->opts->trainer)));
	save_skipped(s->opts->trainer, figures);
	for (enum slp_hyperparameter i = 0; i < SLP_HYPERPARAMETERS; i++)
		json_object_set_new(figures, slp_hyperparameters[i].name, json_real(slp_hyperparameter(o, i)));
	json_object_set_new(figures, "schedule", schedule_json(&o->schedule));
	int64_t rows;
	json_object_set_new(figures, "gathered", json_integer(slp_trainer_gathered(s->opts->trainer, &rows)));
	json_object_set_new(figures, "gathered_rows", json_integer(rows));
	if (slp_trainer_scales(s->opts->trainer))
		json_object_set_new(figures, "loss_scaling", scaling_json(s->opts->trainer, &o->loss_scaling));
	json_t *groups = json_object();
	bool ok = for_groups(s, save_group, groups);
	if (json_object_size(groups)) json_object_set(figures, "groups", groups);
	json_decref(groups);
	return ok && for_states(s, save_state);
}

static struct sl_schedule schedule_from(const json_t *figures)
{
	const json_t *json = json_object_get(figures, "schedule");
	struct sl_schedule schedule = {0};
#define X(name, type) schedule.name = (__typeof__(schedule.name))json_##type##_value(json_object_get(json, #name));
	SCHEDULE(X)
#undef X
	return schedule;
}

void slp_state_check_trainer(struct slp_state *s, const json_t *figures)
{
	const struct sl_optimizer *o = slp_trainer_optimizer(s->opts->trainer);
	const char *kind = json_string_value(json_object_get(figures, "optimizer")), *mine = sl_optimizer_name(o->kind);
	struct sl_schedule schedule = schedule_from(figures);
	double lr = json_number_value(json_object_get(figures, "lr"));
	if (!kind || strcmp(kind, mine))
		slp_state_differs(s, "optimiser: %s in the file, %s here", kind ? kind : "none", mine);
	/* Programs of whole steps have these numbers in them. */
	for (enum slp_hyperparameter i = 0; i < SLP_HYPERPARAMETERS; i++)
		slp_state_check_number(s, figures, mine, slp_hyperparameters[i].name, slp_hyperparameter(o, i));
	if (!(lr >= 0 && isfinite(lr)) || slp_state_integer(figures, "steps") < 0 || slp_schedule_wrong(&schedule))
		slp_state_differs(s, "learning rate, steps or schedule are invalid");
	if (!are_skipped(s->opts->trainer, figures)) slp_state_differs(s, "the numbers of skipped steps are invalid");
	if (slp_trainer_stands_in(s->opts->trainer))
		slp_state_differs(s, "the parameters have been replaced by their averages here");
	if (slp_state_integer(figures, "gathered") < 0 || slp_state_integer(figures, "gathered") > INT_MAX)
		slp_state_differs(s, "the number of micro-batches is invalid");
	check_scaling(s, json_object_get(figures, "loss_scaling"));
	for_groups(s, check_group, json_object_get(figures, "groups"));
	for_states(s, check_state);
}

bool slp_state_restore_trainer(struct slp_state *s, const json_t *figures)
{
	sl_trainer *t = s->opts->trainer;
	slp_trainer_resume(t, json_number_value(json_object_get(figures, "lr")), slp_state_integer(figures, "steps"));
	restore_skipped(t, json_object_get(figures, "skipped"));
	slp_trainer_optimizer(t)->schedule = schedule_from(figures);
	slp_trainer_set_gathered(t, 0, 0);
	slp_trainer_set_gathered(t, (int)slp_state_integer(figures, "gathered"),
	                         slp_state_integer(figures, "gathered_rows"));
	return restore_scaling(s, json_object_get(figures, "loss_scaling")) && for_states(s, restore_state);
}
