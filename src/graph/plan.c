/* Plans: programs ready to run.  This file compiles them. */
#include <stdlib.h>
#include <time.h>

#include "graph/offload.h"
#include "graph/plan.h"
#include "graph/plan_groups.h"
#include "graph/units.h"
#include "op_list/move.h"
#include "runtime/device/auto.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/observe/stats.h"
#include "runtime/task/code.h"
#include "runtime/task/storage.h"
#include "starling/autograd.h"

enum sl_status slp_plan_no_memory(void)
{
	return slp_error_set(SL_ENOMEM, "no memory for a plan");
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

static enum sl_status set_shapes(const char *at, sl_graph *g, const sl_shape *shapes)
{
	for (int i = 0; i < g->ninputs; i++) {
		struct slp_gnode *n = &g->nodes[g->inputs[i]];
		if (shapes) n->types[0].shape = shapes[i];
		if (slp_shape_valid(n->types[0].shape)) continue;
		slp_call_fail(at, "sl_compile", SL_ESHAPE,
		              "the input '%s' has no shape yet; give one to sl_var or to sl_compile", n->name);
		return SL_ESHAPE;
	}
	return SL_OK;
}

static enum sl_status run_pass(sl_plan *p, enum sl_pass pass, bool check)
{
	sl_graph *before = check ? slp_graph_copy(p->graph) : NULL;
	enum sl_status s = slp_passes[pass].run(p->graph);
	if (s == SL_OK && check) s = slp_graph_verify(p->graph);
	if (s == SL_OK && before && pass != SL_PASS_INFER)
		s = slp_graph_compare(slp_passes[pass].name, before, p->graph, 1e-4);
	sl_graph_free(before);
	return s;
}

/* Results that are constants become copies, because a caller may change them. */
static enum sl_status own_results(sl_graph *g)
{
	for (int i = 0; i < g->noutputs; i++) {
		const struct slp_gnode *n = &g->nodes[g->outputs[i].node];
		if (n->kind != SLP_NODE_CONST) continue;
		int copy = slp_graph_add_op(g, n->at, NULL, &slp_op_copy, NULL, 1, &g->outputs[i]);
		if (copy < 0) return slp_plan_no_memory();
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

/* On `auto`, tasks with CUDA kernels run on GPUs only (device/auto.h). */
static bool for_gpus(const sl_graph *g, sl_device device)
{
	bool all = device.kind == SL_DEVICE_AUTO && slp_auto_gpus();
	for (int i = 0; all && i < g->count; i++) {
		struct slp_infer c;
		if (g->nodes[i].kind != SLP_NODE_OP || !slp_node_call(g, &g->nodes[i], &c)) continue;
		all = slp_has_kernel(&c, SL_DEVICE_GPU);
		slp_call_free(&c);
	}
	return all;
}

/* GPUs gain little from sharing a program that is hardly wider than a chain, such as a training step: its branches wait for
 * transfers.  Tasks of wider ones are for any GPU, in the order of their priorities, which the policy knows best. */
static void choose_devices(sl_plan *p)
{
	const double wide = 2;
	p->where = p->device;
	p->gpus = for_gpus(p->graph, p->device);
	if (p->gpus && slp_auto_gpus() > 1 && slp_graph_width(p->graph) >= wide) p->where = sl_gpu(-1);
}

/* The number of workers that could share the program's units. */
static int count_workers(const sl_plan *p)
{
	sl_device device = p->where;
	if (p->gpus && device.kind == SL_DEVICE_AUTO) return 1;
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

static bool partition(sl_plan *p, unsigned off, size_t most)
{
	int workers = off & 1u << SL_PASS_SEGMENT ? SLP_PARTITION_EACH : count_workers(p);
	return slp_partition(p->graph, workers, most, &p->layout) &&
	       slp_plan_memory(p->graph, !(off & 1u << SL_PASS_MEMORY), &p->layout);
}

/* Partitions into units as large as they pay; if these do not fit on the device, into smaller ones: values between them
 * can be evicted while others run.  Under a limit of memory, copies are planned between units: these are small. */
static bool lay_out(sl_plan *p, unsigned off, size_t limit)
{
	p->layout.limited = limit != 0;
	if (limit) return partition(p, off, limit / (size_t)p->parts);
	if (!partition(p, off, 0)) return false;
	if (slp_units_fit(p->graph, &p->layout)) return true;
	const int *group = p->layout.group;
	slp_layout_clear(&p->layout);
	p->layout.group = group;
	return partition(p, off, slp_unit_share(p->device));
}

static enum sl_status arrange(sl_plan *p, const char *at, const char *what, const struct sl_compile_opts *opts)
{
	choose_devices(p);
	if (!lay_out(p, opts->off, opts->memory)) return slp_plan_no_memory();
	enum sl_status s = slp_plan_code(p, at, what);
	if (s == SL_OK) s = slp_plan_set_levels(p);
	if (s == SL_OK && opts->memory) s = slp_plan_offload(p, at, opts->memory);
	return s;
}

/* What all plans under a limit are made of. */
struct limited {
	sl_plan *p; /* not arranged */
	const char *at, *what;
	const struct sl_compile_opts *opts;
	sl_plan *best;                  /* so far; NULL: none fits */
	struct slp_offload_again which; /* the best one's with units of this size */
	double here;                    /* seconds of a run of that one; 0: there is none yet */
	double least;                   /* seconds of the operations that the program has */
};

/* The same program under the limit, with values that are computed again; NULL with an error, or if there are none. */
static sl_plan *arranged(const struct limited *l, struct slp_offload_again which)
{
	enum { PARTS = 2048 }; /* a smaller value is not worth a call */
	bool again = which.early > 0 || which.late > 0;
	sl_plan *p = l->p, *q = slp_calloc(1, sizeof *q);
	sl_graph *g = q ? slp_graph_copy(p->graph) : NULL;
	if (!g) return free(q), slp_plan_no_memory(), NULL;
	q->graph = g;
	g->device = p->graph->device;
	q->device = p->device;
	q->parts = p->parts;
	q->layout.group = p->layout.group;
	q->changed = p->changed;
	choose_devices(q);
	enum sl_status s = slp_offload_early(g);
	if (again && s == SL_OK)
		s = slp_offload_recompute(g, slp_plan_link(q), which, l->opts->memory / PARTS, &q->info.repeated);
	if (s == SL_OK && (!again || q->info.repeated)) s = arrange(q, l->at, l->what, l->opts);
	q->layout.group = NULL;
	q->changed = NULL;
	if (s == SL_OK && (!again || q->info.repeated)) return q;
	sl_plan_free(q);
	return NULL;
}

/* p becomes what q is, and q is gone. */
static void become(sl_plan *p, sl_plan *q)
{
	sl_plan old = *p;
	*p = *q;
	p->hoisted = old.hoisted;
	p->info.nodes_before = old.info.nodes_before;
	p->layout.group = old.layout.group;
	p->changed = old.changed;
	sl_graph_free(old.graph);
	free(q);
}

/* Makes a plan and keeps the one that should run fastest: whether it is the fastest so far with units of this size. */
static bool try(struct limited *l, struct slp_offload_again which, bool may_grow)
{
	sl_plan *more = arranged(l, which);
	sl_error_clear();
	if (more && l->least <= 0) l->least = more->info.busy_seconds;
	bool fits = more && (may_grow || !slp_plan_offload_grows(more));
	bool better = fits && (l->here <= 0 || more->info.run_seconds < l->here);
	bool best = fits && (!l->best || more->info.run_seconds < l->best->info.run_seconds);
	if (better) l->here = more->info.run_seconds;
	if (better) l->which = which;
	sl_plan_free(best ? l->best : more);
	if (best) l->best = more;
	return better;
}

enum { PARTS = 16, SMALL_PARTS = 64 };
static const double ratios[] = {0, 0.06, 0.25, 0.6, 1.2, 2.5};
enum { RATIOS = sizeof ratios / sizeof *ratios };

/* Several shares of copies and second computations; returns the best one's number. */
static int try_ratios(struct limited *l)
{
	const double hidden = 0.002;
	int best = 0;
	for (int i = 1; i < RATIOS; i++) {
		if (l->best && slp_plan_offload_exposed(l->best) <= hidden * l->best->info.busy_seconds) break;
		if (try(l, (struct slp_offload_again){ratios[i], ratios[i], 1}, true)) best = i;
	}
	return best;
}

/* Whether the best plan takes more time than the operations alone, by a part. */
static bool is_dear(const struct limited *l, double part)
{
	return l->best && l->best->info.run_seconds > (1 + part) * l->least;
}

/* The moment between the two shares is earlier or later. */
static void move_between(struct limited *l, bool may_grow)
{
	for (double step = 0.25; step > 0.05; step /= 2) {
		struct slp_offload_again earlier = l->which, later = l->which;
		if (l->which.early == l->which.late || !is_dear(l, 0.01)) return;
		earlier.until -= step;
		later.until += step;
		if (earlier.until > 0 && try(l, earlier, may_grow)) continue;
		if (later.until < 1) try(l, later, may_grow);
	}
}

/* Values of the forward pass that are made early are away for longer than later ones, and are often larger: another share of
 * these, or of those; then the moment between them. */
static void try_halves(struct limited *l, int both)
{
	double r = ratios[both], less = ratios[both ? both - 1 : 0], more = ratios[both + 1 < RATIOS ? both + 1 : both];
	const struct slp_offload_again ways[] = {{more, r, 0.5},  {r, more, 0.5},  {less, r, 0.5},   {r, less, 0.5},
	                                         {less, r, 0.25}, {r, less, 0.75}, {more, r, 0.125}, {r, more, 0.875}};
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
		if (ways[i].early != ways[i].late && is_dear(l, 0.01)) try(l, ways[i], true);
	move_between(l, true);
}

/* Larger units are fewer tasks, and take more memory to work in: the best share may be another one. */
static void try_large(struct limited *l, int both)
{
	static const int parts[] = {8, 4};
	const struct slp_offload_again which = l->which;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		double r = ratios[both], more = ratios[both + 1 < RATIOS ? both + 1 : both];
		l->p->parts = parts[i];
		l->here = 0;
		try(l, which, false);
		if (which.early != r || which.late != r) try(l, (struct slp_offload_again){r, r, 1}, false);
		try(l, (struct slp_offload_again){more, more, 1}, false);
		try(l, (struct slp_offload_again){more, r, 0.5}, false);
		try(l, (struct slp_offload_again){r, more, 0.5}, false);
		move_between(l, false);
	}
}

/* Copies alone; false: what units work in does not fit beside other programs'. */
static bool try_copies(struct limited *l)
{
	l->best = arranged(l, (struct slp_offload_again){0});
	if (l->best) l->least = l->best->info.busy_seconds;
	if (l->best) l->here = l->best->info.run_seconds;
	if (!l->best || !slp_plan_offload_grows(l->best)) return true;
	sl_plan_free(l->best);
	l->best = NULL;
	return false;
}

/* Under a limit of memory several plans are tried: the one counts that should run fastest.  If none fits, the error is that
 * of copies alone. */
static enum sl_status arrange_limited(sl_plan *p, const char *at, const char *what, const struct sl_compile_opts *opts)
{
	struct slp_pending before, error;
	struct limited l = {.p = p, .at = at, .what = what, .opts = opts};
	slp_error_set_aside(&before);
	p->parts = PARTS;
	if (!try_copies(&l)) {
		p->parts = SMALL_PARTS;
		l.best = arranged(&l, (struct slp_offload_again){0});
		l.here = l.best ? l.best->info.run_seconds : 0;
	}
	slp_error_set_aside(&error);
	int both = try_ratios(&l);
	try_halves(&l, both);
	enum { MOST = 1000 }; /* units: more plans of such programs take too long */
	if (p->parts == PARTS && l.best && l.best->layout.nunits <= MOST && is_dear(&l, 0.01)) try_large(&l, both);
	enum sl_status s = error.status;
	if (l.best) {
		become(p, l.best);
		s = slp_plan_offload_commit(p, at);
	} else {
		slp_error_rejoin(&error);
	}
	slp_error_rejoin(&before);
	return s;
}

static enum sl_status compile(sl_plan *p, const char *at, const char *what, const struct sl_compile_opts *opts)
{
	p->info.nodes_before = count_calls(p->graph);
	enum sl_status s = slp_engine_need(at);
	if (s == SL_OK) s = slp_device_resolve(at, &p->device);
	p->graph->device = p->device;
	if (s == SL_OK) s = set_shapes(at, p->graph, opts->shapes);
	unsigned off = opts->off | (opts->training ? 1u << SL_PASS_BLOCK : 0);
	if (s == SL_OK) s = run_passes(p, off, opts->check);
	if (s == SL_OK) s = own_results(p->graph);
	if (s == SL_OK && !p->changed) s = slp_hoist(p, at); /* else parameters change with each run */
	if (s != SL_OK) return s;
	if (!slp_plan_can_be(p->graph))
		return slp_call_fail(at, "sl_compile", SL_ENOMEM, "values of more bytes than can be addressed"),
		       SL_ENOMEM;
	s = opts->memory ? arrange_limited(p, at, what, opts) : arrange(p, at, what, opts);
	if (s != SL_OK) return s;
	p->info.nodes = count_calls(p->graph);
	p->info.segments = p->layout.nunits;
	p->info.memory = p->layout.planned;
	p->info.unplanned = p->layout.unplanned;
	sum_costs(p);
	return slp_plan_find_callable(p);
}

sl_plan *slp_plan_new(const char *at, const char *what, sl_graph *graph, struct sl_compile_opts opts)
{
	return slp_plan_new_grouped(at, what, graph, opts, NULL, NULL);
}

sl_plan *slp_plan_new_grouped(const char *at, const char *what, sl_graph *graph, struct sl_compile_opts opts,
                              const int *group, sl_tensor *const *changed)
{
	sl_plan *p = slp_calloc(1, sizeof *p);
	if (!p) {
		sl_graph_free(graph);
		slp_plan_no_memory();
		return NULL;
	}
	p->graph = graph;
	p->device = opts.device;
	p->layout.group = group;
	p->changed = changed;
	SLP_COUNT(plans);
	double start = now();
	sl_mode mode;
	sl_mode_enter(&mode, 0, 0);
	struct slp_trace *trace = slp_trace_pause();
	enum sl_status s = compile(p, at, what, &opts);
	slp_trace_resume(trace);
	sl_mode_leave(&mode);
	p->layout.group = NULL; /* both belong to the caller */
	p->changed = NULL;
	p->info.seconds = now() - start;
	if (s == SL_OK) return p;
	sl_plan_free(p);
	return NULL;
}

/* Compiles a program for certain input shapes on a device: optimises it, plans its memory and divides it into tasks.
 * The caller keeps the graph; free the plan with sl_plan_free.  NULL after a mistake: SL_ESHAPE, an input has no shape;
 * SL_EDEVICE; SL_ENOMEM, an operation needs more than the limit .memory, which the message names; SL_EUNSUPPORTED, .memory
 * for a program that does not run on one GPU; otherwise the error of an operation, which the message names with the place of
 * its call.  With .memory = n it uses at most n bytes of its GPU (doc/memory.md).
 *
 *     sl_plan *plan = sl_compile(graph, .shapes = (sl_shape[]){SL_SHAPE(1, 512)}); */
sl_plan *sl_compile_at(const char *at, const sl_graph *graph, struct sl_compile_opts opts)
{
	SLP_CALL("sl_compile", at);
	if (!slp_given(at, "sl_compile", "graph", graph)) return NULL;
	sl_graph *copy = slp_graph_copy(graph);
	if (!copy) {
		slp_plan_no_memory();
		return NULL;
	}
	return slp_plan_new(at, "program", copy, opts);
}

/* ---- looking at it, giving it up --------------------------------------------------------------------------------- */

/* The program as it runs, after all passes.  It belongs to the plan; NULL for NULL. */
const sl_graph *sl_plan_graph(const sl_plan *plan)
{
	return plan ? plan->graph : NULL;
}

/* The result of compiling: operations before and after the passes, tasks, flops and bytes of a run, seconds; all 0 for
 * NULL. */
struct sl_plan_info sl_plan_info(const sl_plan *plan)
{
	return plan ? plan->info : (struct sl_plan_info){0};
}

/* Frees a plan; runs in flight still complete.  NULL is ignored. */
void sl_plan_free(sl_plan *p)
{
	if (!p) return;
	for (int i = 0; p->units && i < p->layout.nunits; i++) {
		slp_code_release(p->units[i].code);
		free(p->units[i].locations);
		free(p->units[i].fills);
	}
	for (int i = 0; p->kept && i < p->layout.nstorages; i++)
		if (p->kept[i]) slp_storage_release(p->kept[i]);
	free(p->kept);
	free(p->is_result);
	free(p->last_unit);
	free(p->units);
	slp_layout_clear(&p->layout);
	slp_hoisted_free(p->hoisted);
	slp_plan_offload_free(p->offload);
	slp_grouping_free(p->grouping);
	slp_plan_free_callable(p);
	sl_graph_free(p->graph);
	free(p);
}
