/* Plans: programs ready to run.  A run binds the code of each unit to this run's inputs, parameters and new storages,
 * and submits it: a few tasks, whatever the number of operations. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "graph/plan.h"
#include "starling/autograd.h"

/* What a run puts into the attributes of a call. */
struct fill {
	int call;
	unsigned offset;
	enum { FILL_SEED, FILL_STREAM, FILL_SETTING } kind;
	uint64_t stream;  /* within the run */
	const char *name; /* of the setting */
};

struct unit {
	struct slp_code *code;
	struct slp_home *homes; /* of each slot */
	int nslots, max_slots;
	struct fill *fills;
	int nfills, max_fills;
	int ncalls;
};

struct sl_plan {
	atomic_int refs;
	sl_graph *graph;
	sl_device device;
	struct slp_layout layout;
	struct unit *units;
	struct slp_storage **kept; /* by storage: what stays from run to run; NULL: nothing does */
	bool *is_result;           /* by storage */
	int max_slots, max_fills;
	struct sl_plan_info info;
};

static enum sl_status no_memory(void)
{
	return slp_error_set(SL_ENOMEM, "no memory for a plan");
}

/* ---- code -------------------------------------------------------------------------------------------------------- */

static bool same_home(struct slp_home a, struct slp_home b)
{
	return a.kind == b.kind && a.index == b.index;
}

/* The unit's slot for a home; scratch has one for each place, so that a fault spoils no more than it must. */
static int slot_for(struct unit *u, struct slp_home home, size_t bytes)
{
	for (int i = 0; home.kind != SLP_HOME_SCRATCH && i < u->nslots; i++)
		if (same_home(u->homes[i], home)) return i;
	int slot = home.kind == SLP_HOME_SCRATCH ? slp_code_scratch_slot(u->code, home.offset, bytes ? bytes : 1)
						 : slp_code_slot(u->code);
	if (slot < 0 || !slp_grow((void **)&u->homes, &u->max_slots, slot + 1, sizeof *u->homes)) return -1;
	u->homes[slot] = home;
	u->nslots = slot + 1;
	return slot;
}

/* Slots of the values in this unit: by value id, -1 unless known. */
static bool find_places(const sl_plan *p, struct unit *u, int node, int *slots, struct slp_place *places)
{
	const struct slp_gnode *n = &p->graph->nodes[node];
	for (int i = 0; i < n->nin + n->nout; i++) {
		struct slp_value v = i < n->nin ? n->in[i] : (struct slp_value){node, i - n->nin};
		int root = p->layout.root[slp_value_id(v)];
		if (slots[root] < 0) slots[root] = slot_for(u, p->layout.home[root], slp_type_bytes(slp_value_type(p->graph, v)));
		if (slots[root] < 0) return false;
		const struct slp_home *home = &p->layout.home[root];
		places[i] = (struct slp_place){slots[root], home->kind == SLP_HOME_STORAGE ? home->offset : 0};
	}
	return true;
}

static bool add_fill(struct unit *u, struct fill fill)
{
	if (!slp_grow((void **)&u->fills, &u->max_fills, u->nfills + 1, sizeof fill)) return false;
	u->fills[u->nfills++] = fill;
	return true;
}

/* Names of attributes that sl_step_run sets anew at each run. */
static const char *const settings[] = {"lr", "step", "rescale"};

/* What runs will change in the call's attributes: random streams; in updates, the optimiser's numbers. */
static bool note_fills(struct unit *u, struct slp_gnode *n)
{
	const struct slp_rng *rng = slp_node_rng(n);
	if (rng && rng->seed == SLP_RNG_VIRTUAL) {
		unsigned offset = (unsigned)((const char *)rng - n->attrs.bytes);
		if (!add_fill(u, (struct fill){u->ncalls, offset, FILL_SEED, 0, NULL})) return false;
		offset += (unsigned)offsetof(struct slp_rng, stream);
		if (!add_fill(u, (struct fill){u->ncalls, offset, FILL_STREAM, rng->stream, NULL})) return false;
	}
	for (size_t i = 0; n->op->mutates && i < sizeof settings / sizeof *settings; i++) {
		const struct slp_attr *a = slp_attr_find(n->op, settings[i]);
		if (a && !add_fill(u, (struct fill){u->ncalls, a->offset, FILL_SETTING, 0, settings[i]})) return false;
	}
	return true;
}

static bool add_call(sl_plan *p, struct unit *u, int node, int *slots)
{
	struct slp_gnode *n = &p->graph->nodes[node];
	struct slp_place *places = malloc((size_t)(n->nin + n->nout + 1) * sizeof *places);
	struct slp_infer call;
	bool ok = places && slp_node_call(p->graph, n, &call);
	if (ok) {
		ok = find_places(p, u, node, slots, places) && note_fills(u, n) && slp_code_call(u->code, &call, places);
		slp_call_free(&call);
	}
	u->ncalls++;
	free(places);
	return ok;
}

static enum sl_status make_unit(sl_plan *p, const char *at, const char *what, int unit, int *slots)
{
	struct unit *u = &p->units[unit];
	u->code = slp_code_new();
	if (!u->code) return no_memory();
	slp_code_name(u->code, "task %d of %d of the %s compiled at %s", unit + 1, p->layout.nunits, what, at ? at : "?");
	memset(slots, 0xff, (size_t)p->graph->count * SLP_MAX_OUTPUTS * sizeof *slots);
	for (int i = 0; i < p->graph->count; i++)
		if (p->layout.unit[i] == unit && !add_call(p, u, i, slots)) return sl_error() != SL_OK ? sl_error() : no_memory();
	if (u->nslots > p->max_slots) p->max_slots = u->nslots;
	if (u->nfills > p->max_fills) p->max_fills = u->nfills;
	return SL_OK;
}

static enum sl_status make_units(sl_plan *p, const char *at, const char *what)
{
	int *slots = malloc(((size_t)p->graph->count * SLP_MAX_OUTPUTS + 1) * sizeof *slots);
	p->units = calloc((size_t)p->layout.nunits + 1, sizeof *p->units);
	enum sl_status s = slots && p->units ? SL_OK : no_memory();
	for (int i = 0; i < p->layout.nunits && s == SL_OK; i++) s = make_unit(p, at, what, i, slots);
	free(slots);
	return s;
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

static enum sl_status set_shapes(const char *at, sl_graph *g, const sl_shape *shapes)
{
	for (int i = 0; i < g->ninputs; i++) {
		struct slp_gnode *n = &g->nodes[g->inputs[i]];
		if (shapes) n->types[0].shape = shapes[i];
		if (slp_shape_valid(n->types[0].shape)) continue;
		slp_call_fail(at, "sl_compile", SL_ESHAPE, "the input '%s' has no shape yet; give one to sl_var or to sl_compile",
			      n->name);
		return SL_ESHAPE;
	}
	return SL_OK;
}

static enum sl_status run_pass(sl_plan *p, enum sl_pass pass, bool check)
{
	sl_graph *before = check ? slp_graph_copy(p->graph) : NULL;
	enum sl_status s = slp_passes[pass].run(p->graph);
	if (s == SL_OK && check) s = slp_graph_verify(p->graph);
	if (s == SL_OK && before && pass != SL_PASS_INFER) s = slp_graph_compare(slp_passes[pass].name, before, p->graph, 1e-4);
	sl_graph_free(before);
	return s;
}

extern const struct sl_op slp_op_copy;

/* Results that are constants become copies: whoever gets one may change it. */
static enum sl_status own_results(sl_graph *g)
{
	for (int i = 0; i < g->noutputs; i++) {
		const struct slp_gnode *n = &g->nodes[g->outputs[i].node];
		if (n->kind != SLP_NODE_CONST) continue;
		int copy = slp_graph_add_op(g, n->at, NULL, &slp_op_copy, NULL, 1, &g->outputs[i]);
		if (copy < 0) return no_memory();
		enum sl_status s = slp_node_infer(g, copy);
		if (s != SL_OK) return s;
		g->outputs[i] = (struct slp_value){copy, 0};
	}
	return SL_OK;
}

static int count_calls(const sl_graph *g)
{
	int n = 0;
	for (int i = 0; i < g->count; i++) n += g->nodes[i].kind == SLP_NODE_OP;
	return n;
}

static enum sl_status run_passes(sl_plan *p, unsigned off, bool check)
{
	enum sl_status s = SL_OK;
	for (enum sl_pass i = 0; i < SL_PASSES && s == SL_OK; i++)
		if (slp_passes[i].run && (i == SL_PASS_INFER || !(off & 1u << i))) s = run_pass(p, i, check);
	return s;
}

/* The workers that could share the program's units. */
static int count_workers(sl_device device)
{
	if (device.index >= 0 && device.kind >= SL_DEVICE_CPU) return 1;
	int cpus = device.kind == SL_DEVICE_GPU ? 0 : sl_device_count(SL_DEVICE_CPU);
	int gpus = device.kind == SL_DEVICE_CPU ? 0 : sl_device_count(SL_DEVICE_GPU);
	return cpus + gpus;
}

static void sum_costs(sl_plan *p)
{
	for (int i = 0; i < p->graph->count; i++) {
		const struct slp_gnode *n = &p->graph->nodes[i];
		struct slp_infer c;
		if (p->layout.unit[i] < 0 || !slp_node_call(p->graph, n, &c)) continue;
		if (n->op->flops) p->info.flops += n->op->flops(&c);
		p->info.bytes += slp_call_bytes(&c);
		slp_call_free(&c);
	}
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum sl_status compile(sl_plan *p, const char *at, const char *what, const struct sl_compile_opts *opts)
{
	p->info.nodes_before = count_calls(p->graph);
	enum sl_status s = slp_engine_need(at);
	if (s == SL_OK) s = slp_device_resolve(at, &p->device);
	if (s == SL_OK) s = set_shapes(at, p->graph, opts->shapes);
	if (s == SL_OK) s = run_passes(p, opts->off, opts->check);
	if (s == SL_OK) s = own_results(p->graph);
	if (s != SL_OK) return s;
	int workers = opts->off & 1u << SL_PASS_SEGMENT ? SLP_CUT_EACH : count_workers(p->device);
	if (!slp_cut(p->graph, workers, &p->layout)) return no_memory();
	if (!slp_place_values(p->graph, !(opts->off & 1u << SL_PASS_MEMORY), &p->layout)) return no_memory();
	s = make_units(p, at, what);
	p->info.nodes = count_calls(p->graph);
	p->info.segments = p->layout.nunits;
	p->info.memory = p->layout.planned;
	p->info.unplanned = p->layout.unplanned;
	sum_costs(p);
	return s;
}

sl_plan *slp_plan_new(const char *at, const char *what, sl_graph *graph, struct sl_compile_opts opts)
{
	return slp_plan_new_grouped(at, what, graph, opts, NULL);
}

sl_plan *slp_plan_new_grouped(const char *at, const char *what, sl_graph *graph, struct sl_compile_opts opts,
			      const int *group)
{
	sl_plan *p = calloc(1, sizeof *p);
	if (!p) {
		sl_graph_free(graph);
		no_memory();
		return NULL;
	}
	atomic_init(&p->refs, 1);
	p->graph = graph;
	p->device = opts.device;
	p->layout.group = group;
	double start = now();
	sl_mode mode;
	sl_mode_enter(&mode, 0, 0);
	struct slp_trace *trace = slp_trace_pause();
	enum sl_status s = compile(p, at, what, &opts);
	slp_trace_resume(trace);
	sl_mode_leave(&mode);
	p->layout.group = NULL; /* the caller's */
	p->info.seconds = now() - start;
	if (s == SL_OK) return p;
	sl_plan_free(p);
	return NULL;
}

/* A program made ready to run for certain input shapes on a device: optimised, its memory planned, cut into tasks.  The
 * graph stays the caller's; free the plan with sl_plan_free.  NULL after a mistake: SL_ESHAPE, an input has no shape;
 * SL_EDEVICE; else that of an operation, which the message names with the place of its call.
 *
 *     sl_plan *plan = sl_compile(graph, .shapes = (sl_shape[]){SL_SHAPE(1, 512)}); */
sl_plan *sl_compile_at(const char *at, const sl_graph *graph, struct sl_compile_opts opts)
{
	if (!graph) return sl_error() == SL_OK ? slp_call_fail(at, "sl_compile", SL_EINVAL, "the graph is NULL") : NULL;
	sl_graph *copy = slp_graph_copy(graph);
	if (!copy) {
		no_memory();
		return NULL;
	}
	return slp_plan_new(at, "program", copy, opts);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

struct run {
	const char *at;
	sl_plan *plan;
	sl_tensor *const *in;
	const struct slp_setting *settings;
	int nsettings;
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
		if (!slp_tensor_usable(r->at, "sl_plan_run", r->in[i])) return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
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
		if (t && t->storage->generation != slp_engine.generation && !slp_tensor_usable(r->at, "sl_plan_run", t))
			return sl_error();
	}
	return SL_OK;
}

static struct slp_binding binding_of(const struct run *r, struct slp_home home)
{
	switch (home.kind) {
	case SLP_HOME_INPUT: return (struct slp_binding){r->in[home.index]->storage, r->in[home.index]->offset};
	case SLP_HOME_TENSOR: {
		const sl_tensor *t = r->plan->graph->nodes[home.index].tensor;
		return (struct slp_binding){t->storage, t->offset};
	}
	case SLP_HOME_STORAGE: return (struct slp_binding){r->storages[home.index], 0};
	default: return (struct slp_binding){NULL, home.offset};
	}
}

static uint64_t fill_value(const struct run *r, const struct fill *f, bool *known)
{
	*known = true;
	if (f->kind == FILL_SEED) return r->rng.seed;
	if (f->kind == FILL_STREAM) return r->rng.stream + f->stream;
	for (int i = 0; i < r->nsettings; i++)
		if (!strcmp(r->settings[i].name, f->name)) return r->settings[i].bits;
	*known = false;
	return 0;
}

static enum sl_status submit_unit(const struct run *r, const struct unit *u)
{
	int npatches = 0;
	for (int i = 0; i < u->nslots; i++) r->bindings[i] = binding_of(r, u->homes[i]);
	for (int i = 0; i < u->nfills; i++) {
		bool known;
		uint64_t value = fill_value(r, &u->fills[i], &known);
		if (known) r->patches[npatches++] = (struct slp_patch){u->fills[i].call, u->fills[i].offset, value};
	}
	return slp_code_submit(u->code, r->bindings, r->plan->device, r->patches, npatches);
}

/* New memory, or what the run before used there. */
static struct slp_storage *storage_for(sl_plan *p, int i)
{
	struct slp_storage *s = p->kept ? p->kept[i] : NULL;
	if (s && s->generation == slp_engine.generation) {
		slp_storage_retain(s);
		return s;
	}
	s = slp_storage_new(p->layout.storages[i], p->device);
	if (!s || !p->kept || p->is_result[i]) return s;
	slp_storage_retain(s);
	p->kept[i] = s;
	return s;
}

static enum sl_status submit(const struct run *r)
{
	const struct slp_layout *l = &r->plan->layout;
	enum sl_status s = SL_OK;
	slp_lock();
	for (int i = 0; i < l->nstorages && s == SL_OK; i++) {
		r->storages[i] = storage_for(r->plan, i);
		if (!r->storages[i]) s = no_memory();
	}
	for (int i = 0; i < l->nunits && s == SL_OK; i++) s = submit_unit(r, &r->plan->units[i]);
	slp_unlock();
	return s;
}

/* The tensor for a result: over a new storage, or over the input or parameter that it is. */
static sl_tensor *make_output(const struct run *r, struct slp_value v)
{
	const struct slp_layout *l = &r->plan->layout;
	struct slp_home home = l->home[l->root[slp_value_id(v)]];
	struct slp_binding b = binding_of(r, home);
	if (home.kind == SLP_HOME_STORAGE) b.offset = home.offset;
	slp_storage_retain(b.storage);
	return slp_tensor_new(b.storage, b.offset, *slp_value_type(r->plan->graph, v), r->plan->device);
}

static enum sl_status run(struct run *r, int nin, sl_tensor **out)
{
	sl_graph *g = r->plan->graph;
	enum sl_status s = check_inputs(r, nin);
	if (s == SL_OK) s = check_tensors(r);
	if (s != SL_OK) return s;
	slp_buffer_reap(false);
	if (g->nrandom && r->rng.seed == SLP_RNG_VIRTUAL) r->rng = slp_rng_take(g->nrandom);
	s = submit(r);
	for (int i = 0; i < g->noutputs && s == SL_OK; i++) {
		out[i] = slp_scope_add(make_output(r, g->outputs[i]));
		if (!out[i]) s = no_memory();
	}
	for (int i = 0; i < r->plan->layout.nstorages; i++)
		if (r->storages[i]) slp_storage_release(r->storages[i]);
	return s;
}

enum sl_status slp_plan_run(const char *at, sl_plan *plan, sl_tensor *const *in, int nin,
			    const struct slp_setting *settings, int nsettings, struct slp_rng *rng, sl_tensor **out)
{
	for (int i = 0; i < plan->graph->noutputs; i++) out[i] = NULL;
	size_t storages = (size_t)plan->layout.nstorages * sizeof(struct slp_storage *);
	size_t bindings = (size_t)plan->max_slots * sizeof(struct slp_binding);
	size_t patches = (size_t)plan->max_fills * sizeof(struct slp_patch);
	_Alignas(max_align_t) char few[2048];
	char *memory = storages + bindings + patches <= sizeof few ? few : malloc(storages + bindings + patches);
	if (!memory) return no_memory();
	memset(memory, 0, storages);
	struct run r = {.at = at, .plan = plan, .in = in, .settings = settings, .nsettings = nsettings,
			.rng = {SLP_RNG_VIRTUAL, 0}, .storages = (struct slp_storage **)(void *)memory,
			.bindings = (struct slp_binding *)(void *)(memory + storages),
			.patches = (struct slp_patch *)(void *)(memory + storages + bindings)};
	if (rng) r.rng = *rng;
	enum sl_status s = run(&r, nin, out);
	if (rng) *rng = r.rng;
	if (memory != few) free(memory);
	return s;
}

/* Runs the program on these inputs and returns at once: out gets its results (sl_graph_outputs tells how many), new
 * tensors that belong to the innermost scope, all NULL after an error.  SL_EINVAL: another number of inputs; SL_ESHAPE:
 * not the types that the plan was compiled for; SL_ESTATE: its parameters lost their values in sl_shutdown.
 *
 *     sl_tensor *y;
 *     enum sl_status s = sl_plan_run(plan, &x, 1, &y); */
enum sl_status sl_plan_run_at(const char *at, sl_plan *plan, sl_tensor *const *in, int nin, sl_tensor **out)
{
	if (!plan) {
		if (sl_error() == SL_OK) slp_call_fail(at, "sl_plan_run", SL_EINVAL, "the plan is NULL");
		return sl_error();
	}
	return slp_plan_run(at, plan, in, nin, NULL, 0, NULL, out);
}

/* ---- looking at it, giving it up --------------------------------------------------------------------------------- */

/* The program as it runs, after all passes.  It belongs to the plan, which must not be NULL. */
const sl_graph *sl_plan_graph(const sl_plan *plan)
{
	return plan->graph;
}

/* What compiling has done: operations before and after the passes, tasks, flops and bytes of a run, seconds.  The plan
 * must not be NULL. */
struct sl_plan_info sl_plan_info(const sl_plan *plan)
{
	return plan->info;
}

sl_plan *slp_plan_retain(sl_plan *plan)
{
	atomic_fetch_add(&plan->refs, 1);
	return plan;
}

void slp_plan_keep_memory(sl_plan *p)
{
	size_t n = (size_t)p->layout.nstorages + 1;
	p->kept = calloc(n, sizeof *p->kept);
	p->is_result = calloc(n, sizeof *p->is_result);
	if (!p->is_result) {
		free(p->kept);
		p->kept = NULL;
	}
	for (int i = 0; p->kept && i < p->graph->noutputs; i++) {
		struct slp_home home = p->layout.home[p->layout.root[slp_value_id(p->graph->outputs[i])]];
		if (home.kind == SLP_HOME_STORAGE) p->is_result[home.index] = true;
	}
}

/* Gives a plan up; runs under way end as they would.  NULL is ignored. */
void sl_plan_free(sl_plan *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) != 1) return;
	for (int i = 0; p->units && i < p->layout.nunits; i++) {
		slp_code_release(p->units[i].code);
		free(p->units[i].homes);
		free(p->units[i].fills);
	}
	for (int i = 0; p->kept && i < p->layout.nstorages; i++)
		if (p->kept[i]) slp_storage_release(p->kept[i]);
	free(p->kept);
	free(p->is_result);
	free(p->units);
	slp_layout_clear(&p->layout);
	sl_graph_free(p->graph);
	free(p);
}
