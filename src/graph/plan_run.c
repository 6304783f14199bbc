/* Running plans: a run binds the code of each unit to its inputs, parameters and new storages, and submits it: a few
 * tasks, whatever the number of operations. */
#include <stdlib.h>
#include <string.h>

#include "graph/offload.h"
#include "graph/plan.h"
#include "graph/plan_groups.h"
#include "graph/units.h"
#include "runtime/device/auto.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/memory/admission.h"
#include "runtime/memory/place.h"
#include "runtime/memory/pool.h"
#include "runtime/memory/runahead.h"
#include "runtime/random.h"
#include "runtime/task/buffer.h"
#include "runtime/task/code.h"
#include "runtime/task/priority.h"
#include "runtime/task/storage.h"
#include "tensor/moment.h"

/* ---- memory that stays from run to run --------------------------------------------------------------------------- */

void slp_plan_keep_memory(sl_plan *p)
{
	size_t n = (size_t)p->layout.nstorages + 1;
	p->kept = slp_calloc(n, sizeof *p->kept);
	p->is_result = slp_calloc(n, sizeof *p->is_result);
	if (!p->is_result) {
		free(p->kept);
		p->kept = NULL;
	}
	for (int i = 0; p->kept && i < p->graph->noutputs; i++) {
		struct slp_location location = p->layout.location[p->layout.root[slp_value_id(p->graph->outputs[i])]];
		if (location.kind == SLP_LOCATION_STORAGE) p->is_result[location.index] = true;
	}
}

/* New memory, or the memory of the previous run. */
static struct slp_storage *storage_for(sl_plan *p, int i)
{
	struct slp_storage *s = p->kept ? p->kept[i] : NULL;
	if (s && s->generation == slp_engine.generation) {
		slp_storage_retain(s);
		return s;
	}
	s = slp_storage_new(p->layout.storages[i], p->gpus ? slp_auto_foreseen(p->where) : p->where);
	if (!s || !p->kept || p->is_result[i]) return s;
	slp_storage_retain(s);
	p->kept[i] = s;
	return s;
}

/* The location of output i; -1: it is not in a storage of the run, or shares that of an earlier output. */
static int own_storage(const sl_plan *p, int i)
{
	struct slp_location l = p->layout.location[p->layout.root[slp_value_id(p->graph->outputs[i])]];
	for (int k = 0; k < i && l.kind == SLP_LOCATION_STORAGE; k++) {
		struct slp_location other = p->layout.location[p->layout.root[slp_value_id(p->graph->outputs[k])]];
		if (other.kind == SLP_LOCATION_STORAGE && other.index == l.index) return -1;
	}
	return l.kind == SLP_LOCATION_STORAGE ? l.index : -1;
}

struct slp_plan_bytes slp_plan_bytes(const sl_plan *p)
{
	struct slp_plan_bytes b = {0};
	for (int i = 0; i < p->layout.nstorages; i++) b.run += p->layout.storages[i];
	for (int i = 0; i < p->layout.nunits; i++) {
		size_t scratch = slp_code_scratch(p->units[i].code);
		if (b.scratch < scratch) b.scratch = scratch;
	}
	for (int i = 0; i < p->graph->noutputs; i++) {
		int storage = own_storage(p, i);
		if (storage >= 0) b.results += p->layout.storages[storage];
	}
	return b;
}

/* ---- arguments of a run ------------------------------------------------------------------------------------------ */

struct run {
	const char *at;
	sl_plan *plan;
	sl_tensor *const *in;
	const struct slp_setting *settings;
	int nsettings;
	const struct slp_plan_groups *groups; /* NULL: all outputs are results */
	sl_tensor **out;
	struct slp_rng rng;
	struct slp_storage **storages;
	struct slp_binding *bindings;
	struct slp_patch *patches;
};

static enum sl_status check_inputs(const struct run *r, int nin)
{
	const sl_graph *g = r->plan->graph;
	if (nin != g->ninputs) {
		slp_call_fail(r->at, "sl_plan_run", SL_EINVAL, "the program takes %d inputs, got %d", g->ninputs, nin);
		return SL_EINVAL;
	}
	for (int i = 0; i < nin; i++) {
		const struct slp_gnode *n = &g->nodes[g->inputs[i]];
		if (!slp_tensor_usable(r->at, "sl_plan_run", r->in[i]))
			return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
		const struct slp_type *t = &r->in[i]->type;
		if (t->dtype == n->types[0].dtype && sl_shape_equal(t->shape, n->types[0].shape)) continue;
		char a[160], b[160];
		slp_call_fail(r->at, "sl_plan_run", SL_ESHAPE, "the input '%s' is %s, compiled for %s", n->name,
		              slp_type_string(t, a), slp_type_string(&n->types[0], b));
		return SL_ESHAPE;
	}
	return SL_OK;
}

/* Parameters must not have lost their values in sl_shutdown. */
static enum sl_status check_tensors(const struct run *r)
{
	const sl_graph *g = r->plan->graph;
	for (int i = 0; i < g->count; i++) {
		const sl_tensor *t = g->nodes[i].tensor;
		if (t && (!t->storage || t->storage->generation != slp_engine.generation) &&
		    !slp_tensor_usable(r->at, "sl_plan_run", t))
			return sl_error();
	}
	return SL_OK;
}

/* ---- its tasks --------------------------------------------------------------------------------------------------- */

static struct slp_binding binding_of(const struct run *r, struct slp_location location)
{
	switch (location.kind) {
	case SLP_LOCATION_INPUT:
		return (struct slp_binding){r->in[location.index]->storage, r->in[location.index]->offset};
	case SLP_LOCATION_TENSOR: {
		const sl_tensor *t = r->plan->graph->nodes[location.index].tensor;
		return (struct slp_binding){t->storage, t->offset};
	}
	case SLP_LOCATION_STORAGE: return (struct slp_binding){r->storages[location.index], 0};
	default: return (struct slp_binding){NULL, location.offset};
	}
}

static enum sl_status submit_unit(const struct run *r, const struct slp_unit *u)
{
	for (int i = 0; i < u->nslots; i++) r->bindings[i] = binding_of(r, u->locations[i]);
	int npatches = slp_plan_fill(u, &r->rng, r->settings, r->nsettings, r->patches);
	return slp_code_submit(u->code, r->bindings, r->plan->where, r->patches, npatches);
}

/* Whether storage i gets its memory when its group is computed. */
static bool is_late(const struct run *r, int i)
{
	return r->groups && !r->plan->offload && r->plan->grouping->inside[i] >= 0;
}

/* All operands of a unit must be valid before its first call changes anything; small units may share a task with
 * others. */
static enum sl_status find_memory(const struct run *r)
{
	enum { SMALL = 65536 };
	const struct slp_layout *l = &r->plan->layout;
	size_t small = r->plan->offload ? SLP_OFFLOAD_SMALL : SMALL;
	for (int i = 0; i < l->nstorages; i++) {
		if (is_late(r, i)) continue;
		struct slp_storage *s = r->storages[i] = storage_for(r->plan, i);
		if (!s) return slp_plan_no_memory();
		if (s->bytes > small && !slp_storage_allocate(s)) return slp_no_memory(s->bytes);
	}
	for (int i = 0; i < l->nunits; i++)
		if (!slp_code_find_scratch(r->plan->units[i].code)) return sl_error();
	return SL_OK;
}

/* Values without a later reader are freed at once; after the last unit all storages are released. */
static void bury(const struct run *r, int unit)
{
	for (int i = 0; i < r->plan->layout.nstorages; i++) {
		const struct slp_storage *s = r->storages[i];
		if (r->plan->last_unit[i] == unit && s->buffer && s->slot < 0) slp_buffer_dead(s->buffer);
	}
}

/* The tensor of a result: over a new storage, or over the input or parameter that it is. */
static sl_tensor *make_output(const struct run *r, struct slp_value v)
{
	const struct slp_layout *l = &r->plan->layout;
	struct slp_location location = l->location[l->root[slp_value_id(v)]];
	struct slp_binding b = binding_of(r, location);
	if (location.kind == SLP_LOCATION_STORAGE) b.offset = location.offset;
	slp_storage_retain(b.storage);
	return slp_tensor_new(b.storage, b.offset, *slp_value_type(r->plan->graph, v), r->plan->device);
}

/* ---- groups of outputs (plan_groups.h) --------------------------------------------------------------------------- */

/* Memory for the groups that the unit begins to compute. */
static enum sl_status find_late_memory(const struct run *r, int unit)
{
	const struct slp_grouping *g = r->plan->grouping;
	const sl_plan *p = r->plan;
	for (int i = 0; i < p->layout.nstorages; i++) {
		if (!is_late(r, i) || g->first[i] != unit) continue;
		size_t bytes = p->layout.storages[i];
		sl_device where = p->gpus ? slp_auto_foreseen(p->where) : p->where;
		r->storages[i] = slp_group_memory_take(r->groups->memory, g->inside[i], bytes, where);
		if (!r->storages[i]) return slp_no_memory(bytes);
	}
	return SL_OK;
}

/* Under a limit of memory, a group is used when the plan has all of its values leave. */
static void find_when(const struct run *r)
{
	const sl_plan *p = r->plan;
	const struct slp_grouping *g = p->grouping;
	int n = p->graph->noutputs;
	for (int i = 0; i < n; i++) {
		int last = g->last[i];
		struct slp_location l = p->layout.location[p->layout.root[slp_value_id(p->graph->outputs[i])]];
		int left = slp_plan_offload_left(p, l);
		if (left > last) last = left;
		if (g->param[i] >= 0)
			left = slp_plan_offload_left(p, (struct slp_location){SLP_LOCATION_TENSOR, g->param[i], 0});
		g->when[i] = left > last ? left : last;
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			if (g->group[k] == g->group[i] && g->when[k] > g->when[i]) g->when[i] = g->when[k];
}

/* A task that has not begun needs the place, though nothing is there yet. */
static bool leaves(const struct slp_storage *s)
{
	struct slp_buffer *b = s ? s->buffer : NULL;
	if (!b || b->lost || !b->place.memory) return true;
	while (slp_pool_tasks(b) && slp_runahead_wait_progress()) continue;
	return slp_place_leave(b);
}

/* Under a limit of memory, results of a group and what its use changes leave their places first. */
static enum sl_status leave(const struct run *r, int group)
{
	const sl_plan *p = r->plan;
	const struct slp_grouping *g = p->grouping;
	for (int i = 0; p->offload && i < p->graph->noutputs; i++) {
		if (g->group[i] != group) continue;
		struct slp_location l = p->layout.location[p->layout.root[slp_value_id(p->graph->outputs[i])]];
		if (l.kind == SLP_LOCATION_STORAGE && !leaves(r->storages[l.index])) return sl_error();
		if (g->param[i] >= 0 && !leaves(p->graph->nodes[g->param[i]].tensor->storage)) return sl_error();
	}
	return SL_OK;
}

/* Has a group used; the engine is unlocked meanwhile. */
static enum sl_status use_group(const struct run *r, int group)
{
	const sl_graph *g = r->plan->graph;
	bool ok = true;
	SL_SCOPE {
		for (int i = 0; ok && i < g->noutputs; i++)
			if (r->plan->grouping->group[i] == group)
				ok = (r->out[i] = slp_scope_add(make_output(r, g->outputs[i]))) != NULL;
		if (!ok) slp_plan_no_memory();
		ok = ok && r->groups->use(r->groups->context, group, r->out);
		for (int i = 0; i < g->noutputs; i++) r->out[i] = NULL;
	}
	return ok ? SL_OK : sl_error();
}

/* Has the groups used that may be after this unit. */
static enum sl_status use_groups(const struct run *r, int unit)
{
	const struct slp_grouping *g = r->plan->grouping;
	enum sl_status s = SL_OK;
	for (int i = 0; s == SL_OK && r->groups && i < r->plan->graph->noutputs; i++) {
		bool first = g->group[i] >= 0 && g->when[i] == unit;
		for (int k = 0; first && k < i; k++) first = g->group[k] != g->group[i];
		if (!first || (s = leave(r, g->group[i])) != SL_OK) continue;
		slp_unlock();
		s = use_group(r, g->group[i]);
		slp_lock();
		if (r->plan->offload) slp_flush(); /* before the program waits for something */
		slp_group_memory_used(r->groups->memory, g->group[i]);
	}
	return s;
}

/* ---- submission --------------------------------------------------------------------------------------------------- */

static enum sl_status submit(const struct run *r)
{
	const struct slp_layout *l = &r->plan->layout;
	if (r->plan->changes) slp_change_begin();
	slp_lock();
	enum sl_status s = find_memory(r);
	bool planned = slp_admission_planned = r->plan->offload && s == SL_OK;
	if (planned) s = slp_plan_offload_begin(r->plan, r->at, r->storages, r->in);
	if (planned && r->groups) find_when(r);
	for (int i = 0; i < l->nunits && s == SL_OK; i++) {
		if (planned) s = slp_plan_offload_before(r->plan, i);
		if (r->groups && s == SL_OK) s = find_late_memory(r, i);
		if (s == SL_OK) s = submit_unit(r, &r->plan->units[i]);
		if (planned) slp_flush();
		if (s == SL_OK) s = use_groups(r, i);
		if (s == SL_OK && (planned || (i < l->nunits - 1 && slp_admission_short()))) bury(r, i);
	}
	slp_admission_planned = false;
	slp_unlock();
	if (r->plan->changes) slp_change_end();
	return s;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

/* Whether output i was used with its group. */
static bool is_used(const struct run *r, int i)
{
	return r->groups && r->plan->grouping->group[i] >= 0;
}

static enum sl_status run(struct run *r, int nin, sl_tensor **out)
{
	sl_graph *g = r->plan->graph;
	enum sl_status s = check_inputs(r, nin);
	if (s == SL_OK) s = slp_hoisted_refresh(r->at, r->plan);
	if (s == SL_OK) s = check_tensors(r);
	if (s != SL_OK) return s;
	slp_buffer_reap(false);
	slp_turn_next();
	if (g->nrandom && r->rng.seed == SLP_RNG_VIRTUAL) r->rng = slp_rng_take(g->nrandom);
	s = submit(r);
	for (int i = 0; i < g->noutputs && s == SL_OK; i++) {
		if (is_used(r, i)) continue;
		out[i] = slp_scope_add(make_output(r, g->outputs[i]));
		if (!out[i]) s = slp_plan_no_memory();
	}
	for (int i = 0; i < r->plan->layout.nstorages; i++)
		if (r->storages[i]) slp_storage_release(r->storages[i]);
	return s;
}

/* Gives the run memory for its arguments and runs it. */
static enum sl_status run_plan(struct run *r, int nin)
{
	sl_plan *plan = r->plan;
	for (int i = 0; i < plan->graph->noutputs; i++) r->out[i] = NULL;
	size_t storages = (size_t)plan->layout.nstorages * sizeof(struct slp_storage *);
	size_t bindings = (size_t)plan->max_slots * sizeof(struct slp_binding);
	size_t patches = (size_t)plan->max_fills * sizeof(struct slp_patch);
	_Alignas(max_align_t) char few[2048];
	char *memory = storages + bindings + patches <= sizeof few ? few : slp_malloc(storages + bindings + patches);
	if (!memory) return slp_plan_no_memory();
	memset(memory, 0, storages);
	r->storages = (struct slp_storage **)(void *)memory;
	r->bindings = (struct slp_binding *)(void *)(memory + storages);
	r->patches = (struct slp_patch *)(void *)(memory + storages + bindings);
	enum sl_status s = run(r, nin, r->out);
	if (memory != few) free(memory);
	return s;
}

enum sl_status slp_plan_run(const char *at, sl_plan *plan, sl_tensor *const *in, int nin,
                            const struct slp_setting *settings, int nsettings, struct slp_rng *rng, sl_tensor **out)
{
	struct run r = {.at = at,
	                .plan = plan,
	                .in = in,
	                .settings = settings,
	                .nsettings = nsettings,
	                .out = out,
	                .rng = {SLP_RNG_VIRTUAL, 0}};
	if (rng) r.rng = *rng;
	enum sl_status s = run_plan(&r, nin);
	if (rng) *rng = r.rng;
	return s;
}

enum sl_status slp_plan_run_groups(const char *at, sl_plan *plan, sl_tensor *const *in, int nin,
                                   const struct slp_plan_groups *groups, sl_tensor **out)
{
	struct run r = {.at = at, .plan = plan, .in = in, .groups = groups, .out = out, .rng = {SLP_RNG_VIRTUAL, 0}};
	slp_group_memory_begin(groups->memory);
	return run_plan(&r, nin);
}

/* ---- the calls of users ------------------------------------------------------------------------------------------ */

/* Runs the program on these inputs and returns at once: out gets its results (sl_graph_outputs returns how many), new
 * tensors that belong to the innermost scope, all NULL after an error.  SL_EINVAL: wrong number of inputs; SL_ESHAPE:
 * shapes or types for which the plan was not compiled; SL_ESTATE: its parameters lost their values in sl_shutdown.
 * Several threads may run one plan at the same time.
 *
 *     sl_tensor *y;
 *     enum sl_status s = sl_plan_run(plan, &x, 1, &y); */
enum sl_status sl_plan_run_at(const char *at, sl_plan *plan, sl_tensor *const *in, int nin, sl_tensor **out)
{
	SLP_CALL("sl_plan_run", at);
	if (!slp_given(at, "sl_plan_run", "plan", plan) || !slp_given(at, "sl_plan_run", "array of results", out))
		return sl_error();
	for (int i = 0; i < plan->graph->noutputs && !in; i++) out[i] = NULL;
	if (nin > 0 && !slp_given(at, "sl_plan_run", "array of inputs", in)) return sl_error();
	return slp_plan_run(at, plan, in, nin, NULL, 0, NULL, out);
}

/* sl_plan_run with other numbers for its updates in this run: lr, rescale (a factor of the gradients), step (counted
 * from 1) take the place of all attributes of that name that the program was compiled with.  SL_EINVAL, beside the
 * errors of sl_plan_run: no update of the program has such a number, a negative or infinite lr, a step below 1.
 *
 *     struct sl_plan_number numbers[] = {{"lr", 1e-3}, {"step", 7}};
 *     enum sl_status s = sl_plan_run_with(plan, in, 4, numbers, 2, &loss); */
enum sl_status sl_plan_run_with_at(const char *at, sl_plan *plan, sl_tensor *const *in, int nin,
                                   const struct sl_plan_number *numbers, int count, sl_tensor **out)
{
	SLP_CALL("sl_plan_run_with", at);
	struct slp_setting settings[SLP_PLAN_NUMBERS];
	if (!slp_given(at, "sl_plan_run_with", "plan", plan) ||
	    !slp_given(at, "sl_plan_run_with", "array of results", out))
		return sl_error();
	for (int i = 0; i < plan->graph->noutputs; i++) out[i] = NULL;
	if (nin > 0 && !slp_given(at, "sl_plan_run_with", "array of inputs", in)) return sl_error();
	if (!slp_plan_numbers(at, "sl_plan_run_with", plan, numbers, count, settings))
		return sl_error() ? sl_error() : SL_EINVAL;
	return slp_plan_run(at, plan, in, nin, settings, count, NULL, out);
}
