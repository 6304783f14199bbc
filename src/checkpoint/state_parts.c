/* The parts of a run's state: network, loader, metrics, other tensors, random numbers, counters. */
#include <stdlib.h>
#include <string.h>

#include "checkpoint/state.h"
#include "data/loader.h"
#include "starling/checkpoint.h"
#include "train/train.h"

static bool always(const struct sl_checkpoint_opts *o)
{
	(void)o;
	return true;
}

/* ---- the network ------------------------------------------------------------------------------------------------- */

static sl_block *net_of(const struct sl_checkpoint_opts *o)
{
	return o->net ? o->net : o->trainer ? slp_trainer_block(o->trainer) : NULL;
}

static bool has_net(const struct sl_checkpoint_opts *o)
{
	return net_of(o) != NULL;
}

/* Calls `each` with every parameter and its path until it says false. */
static bool for_params(struct slp_state *s, bool (*each)(struct slp_state *s, sl_param *p, const char *path))
{
	int count;
	sl_block *net = net_of(s->opts);
	sl_param **params = slp_block_all_params(s->at, net, &count);
	bool ok = params != NULL;
	for (int i = 0; ok && i < count; i++) {
		char *path = slp_param_path(net, params[i]);
		if (!path) slp_call_fail(s->at, s->function, SL_ENOMEM, "no memory for a parameter's name");
		ok = path && each(s, params[i], path);
		free(path);
	}
	free(params);
	return ok;
}

static bool save_param(struct slp_state *s, sl_param *p, const char *path)
{
	sl_tensor *t = sl_param_data_at(s->at, p, (sl_device){SL_DEVICE_DEFAULT, 0});
	return t && slp_state_add(s, t, "%s", path);
}

static bool check_param(struct slp_state *s, sl_param *p, const char *path)
{
	const sl_tensor *t = slp_state_find(s, "%s", path);
	if (!t) slp_state_differs(s, "%s is not in the file", path);
	else if (slp_param_unfit(NULL, path, p, t)) slp_param_unfit(slp_state_difference(s), path, p, t);
	return true;
}

static bool restore_param(struct slp_state *s, sl_param *p, const char *path)
{
	return sl_param_set_at(s->at, p, slp_state_find(s, "%s", path)) == SL_OK;
}

static bool save_net(struct slp_state *s, json_t *figures)
{
	json_object_set_new(figures, "type", json_string(net_of(s->opts)->base->type));
	return for_params(s, save_param);
}

static void check_net(struct slp_state *s, const json_t *figures)
{
	(void)figures;
	for_params(s, check_param);
}

static bool restore_net(struct slp_state *s, const json_t *figures)
{
	(void)figures;
	return for_params(s, restore_param);
}

/* ---- the loader -------------------------------------------------------------------------------------------------- */

static bool has_loader(const struct sl_checkpoint_opts *o)
{
	return o->loader != NULL;
}

static bool save_loader(struct slp_state *s, json_t *figures)
{
	struct slp_loader_state l = s->loader;
	slp_loader_look(s->opts->loader, &l);
#define X(name, what) json_object_set_new(figures, #name, json_integer((json_int_t)l.name));
	SLP_LOADER_SAME(X)
	SLP_LOADER_MOVES(X)
#undef X
	return true;
}

static void check_loader(struct slp_state *s, const json_t *figures)
{
	struct slp_loader_state l;
	if (!slp_loader_get(s->at, s->opts->loader, &l)) return;
#define X(name, what)                                                                                                  \
	if (slp_state_integer(figures, #name) != (int64_t)l.name)                                                      \
		slp_state_differs(s, what, (long long)slp_state_integer(figures, #name), (long long)l.name);
	SLP_LOADER_SAME(X)
#undef X
	int64_t epoch = slp_state_integer(figures, "epoch"), taken = slp_state_integer(figures, "taken");
	if (epoch < 0 || taken < 0 || taken > sl_loader_batches(s->opts->loader))
		slp_state_differs(s, "the loader's position is invalid");
}

static bool restore_loader(struct slp_state *s, const json_t *figures)
{
	struct slp_loader_state l = {0};
#define X(name, what) l.name = slp_state_integer(figures, #name);
	SLP_LOADER_MOVES(X)
#undef X
	slp_loader_set(s->opts->loader, &l);
	return true;
}

/* ---- metrics ----------------------------------------------------------------------------------------------------- */

static bool has_metrics(const struct sl_checkpoint_opts *o)
{
	return o->nmetrics > 0;
}

static bool save_metrics(struct slp_state *s, json_t *figures)
{
	json_t *tops = json_array(), *counts = json_array();
	json_object_set_new(figures, "top", tops);
	json_object_set_new(figures, "count", counts);
	for (int i = 0; i < s->opts->nmetrics; i++) {
		struct slp_metric_state state = slp_metric_get(s->opts->metrics[i]);
		json_array_append_new(tops, json_integer(state.top));
		json_array_append_new(counts, json_integer(state.count));
		if (state.sum && !slp_state_add(s, state.sum, "@metric/%d", i)) return false;
	}
	return true;
}

static void check_metrics(struct slp_state *s, const json_t *figures)
{
	const json_t *tops = json_object_get(figures, "top");
	int count = (int)json_array_size(tops);
	if (count != s->opts->nmetrics)
		slp_state_differs(s, "metrics: %d in the file, %d here", count, s->opts->nmetrics);
	for (int i = 0; i < count && i < s->opts->nmetrics; i++) {
		const sl_tensor *sum = slp_state_find(s, "@metric/%d", i);
		bool is_sum = !sum || (sl_tensor_dtype(sum) == SL_FLOAT64 && sl_tensor_shape(sum).ndim == 0);
		if (slp_metric_get(s->opts->metrics[i]).top != json_integer_value(json_array_get(tops, (size_t)i)) ||
		    !is_sum)
			slp_state_differs(s, "metric %d is of a different kind", i);
	}
}

static bool restore_metrics(struct slp_state *s, const json_t *figures)
{
	const json_t *counts = json_object_get(figures, "count");
	bool ok = true;
	for (int i = 0; ok && i < s->opts->nmetrics; i++)
		ok = slp_metric_set(s->at, s->opts->metrics[i], slp_state_find(s, "@metric/%d", i),
		                    json_integer_value(json_array_get(counts, (size_t)i)));
	return ok;
}

/* ---- other tensors ----------------------------------------------------------------------------------------------- */

static bool has_tensors(const struct sl_checkpoint_opts *o)
{
	return o->ntensors > 0;
}

static bool save_tensors(struct slp_state *s, json_t *figures)
{
	json_object_set_new(figures, "count", json_integer(s->opts->ntensors));
	for (int i = 0; i < s->opts->ntensors; i++)
		if (!slp_state_add(s, s->opts->tensors[i], "@tensor/%s", s->opts->names[i])) return false;
	return true;
}

static void check_tensors(struct slp_state *s, const json_t *figures)
{
	(void)figures;
	for (int i = 0; i < s->opts->ntensors; i++)
		slp_state_check_tensor(s, s->opts->names[i], s->opts->tensors[i],
		                       slp_state_find(s, "@tensor/%s", s->opts->names[i]));
}

static bool restore_tensors(struct slp_state *s, const json_t *figures)
{
	(void)figures;
	for (int i = 0; i < s->opts->ntensors; i++)
		if (!slp_state_copy(s->at, s->opts->tensors[i], slp_state_find(s, "@tensor/%s", s->opts->names[i])))
			return false;
	return true;
}

/* ---- random numbers and counters --------------------------------------------------------------------------------- */

static bool save_random(struct slp_state *s, json_t *figures)
{
	(void)s;
	struct sl_rng r = sl_rng_get();
	json_object_set_new(figures, "seed", json_integer((json_int_t)r.seed));
	json_object_set_new(figures, "stream", json_integer((json_int_t)r.stream));
	return true;
}

static void check_nothing(struct slp_state *s, const json_t *figures)
{
	(void)s;
	(void)figures;
}

static bool restore_random(struct slp_state *s, const json_t *figures)
{
	(void)s;
	sl_rng_set((struct sl_rng){.seed = (uint64_t)slp_state_integer(figures, "seed"),
	                           .stream = (uint64_t)slp_state_integer(figures, "stream")});
	return true;
}

static bool save_counters(struct slp_state *s, json_t *figures)
{
	const struct sl_checkpoint_opts *o = s->opts;
	json_object_set_new(figures, "epoch", json_integer(o->epoch ? *o->epoch : 0));
	json_object_set_new(figures, "step", json_integer(o->step ? *o->step : 0));
	if (o->note && json_object_set_new(figures, "note", json_string(o->note))) {
		slp_call_fail(s->at, s->function, SL_EINVAL, "the note is not UTF-8");
		return false;
	}
	return true;
}

static bool restore_counters(struct slp_state *s, const json_t *figures)
{
	if (s->opts->epoch) *s->opts->epoch = slp_state_integer(figures, "epoch");
	if (s->opts->step) *s->opts->step = slp_state_integer(figures, "step");
	return true;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

/* Random numbers come last: whatever the others draw does not count. */
const struct slp_state_part slp_state_parts[] = {
        {"network", has_net, save_net, check_net, restore_net},
        {"trainer", slp_state_has_trainer, slp_state_save_trainer, slp_state_check_trainer, slp_state_restore_trainer},
        {"loader", has_loader, save_loader, check_loader, restore_loader},
        {"metrics", has_metrics, save_metrics, check_metrics, restore_metrics},
        {"tensors", has_tensors, save_tensors, check_tensors, restore_tensors},
        {"counters", always, save_counters, check_nothing, restore_counters},
        {"random", always, save_random, check_nothing, restore_random},
        {0},
};
