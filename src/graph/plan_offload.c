/* Plans with a limit of memory on a GPU: the copies that offload.h plans, for the units and storages of a plan;
 * plan_offload_run.c requests them from StarPU at each run.
 *
 * The thread that runs the plan is a few units ahead of the GPU.  Before it submits a unit, it requests the copies that begin
 * here, drops what leaves here, and gives places to what comes; each of these steps waits for the units that have used the
 * value or the place.  Memory comes from an arena (runtime/memory/arena.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/offload.h"
#include "graph/plan.h"
#include "graph/plan_offload.h"
#include "graph/units.h"
#include "runtime/compat.h"
#include "runtime/device/auto.h"
#include "runtime/device/gpu.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/memory/admission.h"
#include "runtime/memory/arena.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/memory/place.h"
#include "runtime/observe/stats.h"
#include "runtime/observe/utilisation.h"
#include "runtime/task/buffer.h"
#include "runtime/task/code.h"
#include "runtime/task/handle.h"
#include "runtime/task/storage.h"

void slp_plan_offload_free(struct slp_plan_offload *o)
{
	if (!o) return;
	slp_plan_offload_forget(o);
	slp_offload_clear(&o->plan);
	free(o->units);
	free(o->uses);
	free(o->bytes);
	free(o->kinds);
	free(o->where);
	free(o->now);
	free(o->fixed);
	free(o);
}

/* ---- the problem ------------------------------------------------------------------------------------------------- */

static const struct slp_storage *storage_of(const sl_plan *p, struct slp_location l)
{
	return l.kind == SLP_LOCATION_TENSOR ? p->graph->nodes[l.index].tensor->storage : NULL;
}

/* Of a value: parameters that are views of one storage are one.  Storages are aligned. */
static uintptr_t key_of(const sl_plan *p, struct slp_location l)
{
	if (l.kind == SLP_LOCATION_TENSOR) return (uintptr_t)storage_of(p, l);
	return (uintptr_t)l.index << 2 | (l.kind == SLP_LOCATION_STORAGE ? 1 : 2);
}

static size_t bytes_of(const sl_plan *p, struct slp_location l)
{
	size_t bytes = 0;
	if (l.kind == SLP_LOCATION_STORAGE) bytes = p->layout.storages[l.index];
	if (l.kind == SLP_LOCATION_TENSOR) bytes = storage_of(p, l)->bytes;
	if (l.kind == SLP_LOCATION_INPUT) bytes = slp_type_bytes(&p->graph->nodes[p->graph->inputs[l.index]].types[0]);
	return slp_place_bytes(slp_buffer_class_bytes(bytes));
}

static enum slp_offload_kind kind_of(const sl_plan *p, struct slp_location l)
{
	if (l.kind == SLP_LOCATION_TENSOR)
		return slp_plan_changes(p, storage_of(p, l)) ? SLP_OFFLOAD_INPUT : SLP_OFFLOAD_KEPT;
	if (l.kind == SLP_LOCATION_INPUT) return SLP_OFFLOAD_INPUT;
	if (slp_plan_sends(p, l.index)) return SLP_OFFLOAD_SENT;
	return p->last_unit[l.index] < 0 ? SLP_OFFLOAD_RESULT : SLP_OFFLOAD_LOCAL;
}

/* A table with as many places as a power of 2, half of them free. */
static bool make_table(const sl_plan *p, struct slp_plan_offload *o)
{
	size_t values = (size_t)p->layout.nstorages + (size_t)p->graph->ninputs + (size_t)p->graph->count, n = 1;
	while (n < 2 * values + 2) n *= 2;
	o->mask = n - 1;
	o->table = slp_malloc(n * sizeof *o->table);
	if (o->table) memset(o->table, 0xff, n * sizeof *o->table);
	return o->table != NULL;
}

/* The place of a value in the table: its own, or the free one that it gets. */
static int *find_value(const sl_plan *p, const struct slp_plan_offload *o, struct slp_location l)
{
	uintptr_t key = key_of(p, l);
	size_t i = (size_t)((uint64_t)key * 0x9e3779b97f4a7c15u >> 32) & o->mask;
	while (o->table[i] >= 0 && key_of(p, o->where[o->table[i]]) != key) i = (i + 1) & o->mask;
	return &o->table[i];
}

static int value_of(const sl_plan *p, struct slp_plan_offload *o, struct slp_location l)
{
	int *place = find_value(p, o, l), max = o->max_values;
	if (*place >= 0) return *place;
	if (!slp_grow((void **)&o->where, &o->max_values, o->nvalues + 1, sizeof *o->where)) return -1;
	if (max < o->max_values) {
		size_t n = (size_t)o->max_values;
		size_t *bytes = slp_realloc(o->bytes, n * sizeof *bytes);
		if (bytes) o->bytes = bytes;
		enum slp_offload_kind *kinds = slp_realloc(o->kinds, n * sizeof *kinds);
		if (kinds) o->kinds = kinds;
		if (!bytes || !kinds) return -1;
	}
	size_t bytes = bytes_of(p, l);
	o->where[o->nvalues] = l;
	o->bytes[o->nvalues] = bytes > SLP_OFFLOAD_SMALL ? bytes : 0;
	if (bytes <= SLP_OFFLOAD_SMALL) o->small += bytes;
	o->kinds[o->nvalues] = kind_of(p, l);
	return *place = o->nvalues++;
}

/* first: the place of the unit's uses. */
static bool add_use(struct slp_plan_offload *o, int first, int value, bool write)
{
	for (int k = first; k < o->nuses; k++)
		if (o->uses[k].value == value) return o->uses[k].write |= write, true;
	if (!slp_grow((void **)&o->uses, &o->max_uses, o->nuses + 1, sizeof *o->uses)) return false;
	o->uses[o->nuses++] = (struct slp_offload_use){value, write};
	return true;
}

static bool add_unit(const sl_plan *p, struct slp_plan_offload *o, int unit)
{
	const struct slp_unit *u = &p->units[unit];
	int first = o->nuses;
	bool ok = true;
	for (int i = 0; ok && i < u->nslots; i++) {
		if (u->locations[i].kind == SLP_LOCATION_SCRATCH || u->locations[i].kind == SLP_LOCATION_NONE) continue;
		int v = value_of(p, o, u->locations[i]);
		ok = v >= 0 && (!o->bytes[v] || add_use(o, first, v, slp_code_writes(u->code, i)));
	}
	o->units[unit].nuses = o->nuses - first;
	return ok;
}

static void add_times(const sl_plan *p, struct slp_plan_offload *o)
{
	for (int i = 0; i < p->graph->count; i++) {
		struct slp_infer c;
		if (p->layout.unit[i] < 0 || !slp_node_call(p->graph, &p->graph->nodes[i], &c)) continue;
		o->units[p->layout.unit[i]].seconds += slp_call_gpu_seconds(&c);
		o->units[p->layout.unit[i]].calls++;
		slp_call_free(&c);
	}
}

static void link_between(unsigned from, unsigned to, double *latency, double *bytes)
{
	double l = starpu_transfer_latency(from, to), b = starpu_transfer_bandwidth(from, to);
	bool known = isfinite(l) && isfinite(b) && b > 0;
	*latency = known ? 1e-6 * l : 10e-6;
	*bytes = known ? 1e6 * b : 10e9;
}

static bool make_problem(const sl_plan *p, struct slp_plan_offload *o)
{
	int n = p->layout.nunits;
	o->units = slp_calloc((size_t)n + 1, sizeof *o->units);
	bool ok = o->units && make_table(p, o);
	for (int i = 0; ok && i < n; i++) ok = add_unit(p, o, i);
	free(o->table);
	o->table = NULL;
	o->now = ok ? slp_calloc((size_t)o->nvalues + 1, sizeof *o->now) : NULL;
	if (!o->now) return false;
	for (int i = 0, first = 0; i < n; first += o->units[i++].nuses) o->units[i].uses = o->uses + first;
	add_times(p, o);
	o->problem = (struct slp_offload_problem){
	        .units = o->units, .nunits = n, .bytes = o->bytes, .kind = o->kinds, .nvalues = o->nvalues};
	struct slp_offload_problem *q = &o->problem;
	link_between(o->node, STARPU_MAIN_RAM, &q->out_latency, &q->out_bytes);
	link_between(STARPU_MAIN_RAM, o->node, &q->in_latency, &q->in_bytes);
	return true;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* All units work in the same scratch memory. */
static size_t share_scratch(const sl_plan *p)
{
	size_t most = slp_plan_bytes(p).scratch;
	for (int i = 0; i < p->layout.nunits; i++) slp_code_share_scratch(p->units[i].code, most);
	return most ? slp_buffer_class_bytes(most < 4096 ? 4096 : most) : 0;
}

/* The GPU on which all of the plan runs; -1: there is no such one. */
static int gpu_of(const sl_plan *p)
{
	sl_device d = p->gpus ? slp_auto_foreseen(p->where) : p->where;
	if (d.kind != SL_DEVICE_GPU) return -1;
	return d.index >= 0 ? d.index : slp_engine.ngpus == 1 ? 0 : -1;
}

/* What the plan may have of the limit for places: what else is on the GPU takes its part. */
static size_t find_room(struct slp_plan_offload *o, int gpu, size_t limit, size_t scratch)
{
	enum { SPARE = 256 << 10, PART = 64 };
	o->heap = scratch + 2 * o->small + SPARE + limit / PART;
	size_t other = slp_gpu_own_bytes(gpu);
	slp_engine_idle();
	slp_lock();
	slp_handles_use_arenas(true);
	slp_buffers_leave(o->node);
	other += slp_node_used(o->node) - slp_arena_allocated(o->node);
	size_t heap = slp_arena_heap_with(o->node, o->heap),
	       now = slp_arena_allocated(o->node) - slp_arena_bytes(o->node);
	o->grows = now && heap > now;
	other += heap;
	slp_unlock();
	o->most = limit > other ? limit - other : 0;
	return o->most;
}

double slp_plan_offload_exposed(const sl_plan *p)
{
	return p->offload ? p->offload->exposed : 0;
}

bool slp_plan_offload_grows(const sl_plan *p)
{
	return p->offload && p->offload->grows;
}

/* The time of its tasks, and between them, is measured. */
static void watch(const sl_plan *p)
{
	for (int i = 0; i < p->layout.nunits; i++) slp_code_turn(p->units[i].code, i ? SLP_TURN_NEXT : SLP_TURN_FIRST);
	slp_stats_links();
	slp_utilisation_start();
}

/* The arena of the plan, which other programs on the GPU share: it becomes larger if this one needs more, and smaller if
 * the heap grows at its expense.  Values that are on the GPU leave first. */
enum sl_status slp_plan_offload_commit(sl_plan *p, const char *at)
{
	struct slp_plan_offload *o = p->offload;
	slp_engine_idle();
	slp_lock();
	size_t now = slp_arena_bytes(o->node), places = now < o->most ? now : o->most;
	if (places < o->plan.height) places = o->plan.height;
	bool left = places == now || slp_places_leave(o->node);
	bool ok = left && slp_arena_make(o->node, places, o->heap);
	slp_unlock();
	if (ok) return watch(p), SL_OK;
	if (!left) return sl_error();
	slp_call_fail(at, "sl_compile", SL_ENOMEM, "the GPU has no %.1f MiB left for the limit of memory",
	              (double)(o->plan.height + o->heap) / 1048576);
	return SL_ENOMEM;
}

/* ---- making it --------------------------------------------------------------------------------------------------- */

static enum sl_status too_small(const sl_plan *p, const char *at, size_t limit, int unit, size_t need, size_t scratch)
{
	const struct slp_gnode *n = NULL;
	for (int i = 0; i < p->graph->count; i++)
		if (p->layout.unit[i] == unit) n = &p->graph->nodes[i];
	slp_call_fail(
	        at, "sl_compile", SL_ENOMEM,
	        "%s at %s needs %.1f MiB at once, %.1f MiB of it to work in, and the limit of memory is %.1f MiB, of "
	        "which %.1f MiB are left for values: make batches smaller",
	        n->op->name, n->at ? n->at : "?", (double)(need + scratch) / 1048576, (double)scratch / 1048576,
	        (double)limit / 1048576, (double)p->offload->problem.room / 1048576);
	return SL_ENOMEM;
}

static enum sl_status no_place(const sl_plan *p, const char *at, size_t limit, size_t need, size_t scratch)
{
	slp_call_fail(at, "sl_compile", SL_ENOMEM,
	              "values need %.1f MiB in one piece, operations %.1f MiB to work in, and the limit of memory is "
	              "%.1f MiB, "
	              "of which %.1f MiB are left for values: make batches smaller",
	              (double)need / 1048576, (double)scratch / 1048576, (double)limit / 1048576,
	              (double)p->offload->problem.room / 1048576);
	return SL_ENOMEM;
}

static enum sl_status unsupported(const char *at, const char *why)
{
	slp_call_fail(at, "sl_compile", SL_EUNSUPPORTED, "a limit of memory needs %s", why);
	return SL_EUNSUPPORTED;
}

/* Values that are away are in main memory. */
static enum sl_status check_main_memory(const char *at, const struct slp_plan_offload *o)
{
	size_t away = 0, there = sl_is_simulated() ? (size_t)-1 : slp_memory_available();
	for (int i = 0; i < o->plan.ngaps; i++)
		if (o->plan.gaps[i].copy >= 0) away += o->bytes[o->plan.gaps[i].value];
	if (away <= there) return SL_OK;
	slp_call_fail(at, "sl_compile", SL_ENOMEM,
	              "%.1f MiB leave the GPU under this limit of memory, and main memory has %.1f MiB",
	              (double)away / 1048576, (double)there / 1048576);
	return SL_ENOMEM;
}

double slp_plan_link(const sl_plan *p)
{
	int gpu = gpu_of(p);
	double latency, out, in;
	if (gpu < 0) return INFINITY;
	unsigned node = starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[gpu]);
	link_between(node, STARPU_MAIN_RAM, &latency, &out);
	link_between(STARPU_MAIN_RAM, node, &latency, &in);
	return out < in ? out : in;
}

enum sl_status slp_plan_offload(sl_plan *p, const char *at, size_t limit)
{
	int gpu = gpu_of(p), unit = -1;
	size_t need = 0;
	if (!SLP_STARPU_1_4 || !slp_handles_can_use_arenas()) return unsupported(at, "a GPU, and StarPU 1.4");
	if (gpu < 0) return unsupported(at, "a program that runs on one GPU");
	struct slp_plan_offload *o = p->offload = slp_calloc(1, sizeof *o);
	if (!o) return slp_plan_no_memory();
	o->node = starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[gpu]);
	size_t scratch = share_scratch(p);
	if (!make_problem(p, o)) return slp_plan_no_memory();
	o->problem.room = find_room(o, gpu, limit, scratch);
	if (!slp_offload_plan(&o->problem, &o->plan, &unit, &need))
		return unit >= 0 ? too_small(p, at, limit, unit, need, scratch)
		       : need    ? no_place(p, at, limit, need, scratch)
		                 : slp_plan_no_memory();
	p->info.limit = limit;
	slp_plan_offload_note(p);
	o->exposed = slp_offload_exposed(&o->problem, &o->plan);
	return check_main_memory(at, o);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

static bool lies_at(const sl_plan *p, struct slp_location value, struct slp_location l)
{
	if (value.kind != l.kind) return false;
	return l.kind == SLP_LOCATION_TENSOR ? storage_of(p, value) == storage_of(p, l) : value.index == l.index;
}

/* Small values do not leave. */
int slp_plan_offload_left(const sl_plan *p, struct slp_location l)
{
	const struct slp_plan_offload *o = p->offload;
	int v = 0, n = p->layout.nunits;
	while (v < o->nvalues && !lies_at(p, o->where[v], l)) v++;
	if (v == o->nvalues || !o->bytes[v]) return 0;
	for (int unit = n - 1; unit >= 0; unit--)
		for (int i = o->plan.first[unit]; i < o->plan.first[unit + 1]; i++)
			if (o->plan.steps[i].what == SLP_OFFLOAD_DROP && o->plan.steps[i].value == v) return unit;
	return n - 1;
}

/* Another program may have made the arena smaller since: then the copies are planned again. */
static enum sl_status plan_again(sl_plan *p, const char *at)
{
	struct slp_plan_offload *o = p->offload;
	size_t places = slp_arena_bytes(o->node), need;
	int unit;
	if (o->plan.height <= places) return SL_OK;
	o->problem.room = places;
	o->problem.fixed = NULL;
	o->problem.nvalues = o->nvalues;
	if (!slp_offload_fit(&o->problem, &o->plan, &unit, &need)) {
		slp_call_fail(
		        at, "sl_plan_run", SL_ENOMEM,
		        "the program needs %.1f MiB in one piece, and another one with a limit of memory has left "
		        "%.1f MiB: give both the same limit",
		        (double)need / 1048576, (double)places / 1048576);
		return SL_ENOMEM;
	}
	slp_plan_offload_note(p);
	return SL_OK;
}

static double copy_seconds(const struct slp_plan_offload *o)
{
	const struct slp_offload_problem *p = &o->problem;
	return (double)o->plan.out_bytes / p->out_bytes + (double)o->plan.in_bytes / p->in_bytes;
}

enum sl_status slp_plan_offload_begin(sl_plan *p, const char *at, struct slp_storage *const *storages,
                                      sl_tensor *const *in)
{
	struct slp_plan_offload *o = p->offload;
	enum sl_status s = plan_again(p, at);
	if (s != SL_OK) return s;
	slp_flush();
	for (int v = 0; v < o->nvalues; v++) {
		struct slp_location l = o->where[v];
		o->now[v] = l.kind == SLP_LOCATION_STORAGE  ? storages[l.index]
		            : l.kind == SLP_LOCATION_TENSOR ? p->graph->nodes[l.index].tensor->storage
		                                            : in[l.index]->storage;
	}
	slp_plan_offload_rest(p);
	atomic_fetch_add(&slp_counters.planned_out, o->plan.out_bytes);
	atomic_fetch_add(&slp_counters.planned_in, o->plan.in_bytes);
	slp_plan_name_values(p, storages);
	double exposed = slp_offload_exposed(&o->problem, &o->plan);
	atomic_fetch_add(&slp_counters.planned_us, (uint64_t)(1e6 * copy_seconds(o)));
	atomic_fetch_add(&slp_counters.exposed_us, exposed > 0 ? (uint64_t)(1e6 * exposed) : 0);
	return SL_OK;
}
