/* The code of plans: prepared calls of each unit, and the places in them that a run binds and changes. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"
#include "graph/units.h"
#include "op_list/optim.h"
#include "runtime/task/code.h"

static bool same_location(struct slp_location a, struct slp_location b)
{
	return a.kind == b.kind && a.index == b.index;
}

/* The unit's slot for a location; scratch has one for each offset, so that a fault invalidates only its dependents. */
static int slot_for(struct slp_unit *u, struct slp_location location, size_t bytes)
{
	for (int i = 0; location.kind != SLP_LOCATION_SCRATCH && i < u->nslots; i++)
		if (same_location(u->locations[i], location)) return i;
	int slot = location.kind == SLP_LOCATION_SCRATCH
	                   ? slp_code_scratch_slot(u->code, location.offset, bytes ? bytes : 1)
	                   : slp_code_slot(u->code);
	if (slot < 0 || !slp_grow((void **)&u->locations, &u->max_slots, slot + 1, sizeof *u->locations)) return -1;
	u->locations[slot] = location;
	u->nslots = slot + 1;
	return slot;
}

/* Slots of the values in this unit: by value id, -1 unless known. */
static bool find_addresses(const sl_plan *p, struct slp_unit *u, int node, int *slots, struct slp_address *addresses)
{
	const struct slp_gnode *n = &p->graph->nodes[node];
	for (int i = 0; i < n->nin + n->nout; i++) {
		struct slp_value v = i < n->nin ? n->in[i] : (struct slp_value){node, i - n->nin};
		int root = p->layout.root[slp_value_id(v)];
		if (slots[root] < 0)
			slots[root] =
			        slot_for(u, p->layout.location[root], slp_type_bytes(slp_value_type(p->graph, v)));
		if (slots[root] < 0) return false;
		const struct slp_location *location = &p->layout.location[root];
		addresses[i] = (struct slp_address){slots[root],
		                                    location->kind == SLP_LOCATION_STORAGE ? location->offset : 0};
	}
	return true;
}

static bool add_fill(struct slp_unit *u, struct slp_plan_fill fill)
{
	if (!slp_grow((void **)&u->fills, &u->max_fills, u->nfills + 1, sizeof fill)) return false;
	u->fills[u->nfills++] = fill;
	return true;
}

/* Names of attributes that sl_step_run sets at each run. */
static const char *const settings[] = {"lr", "step", "rescale"};

static bool finds_scale(const struct slp_gnode *n)
{
	return n->op == &slp_op_clip_scale || n->op == &slp_op_clip_factor;
}

/* Nodes whose values depend on the factor that clips gradients, which has the optimiser's factor in it. */
static bool *find_clipped(const sl_graph *g)
{
	bool *clipped = slp_calloc((size_t)g->count + 1, sizeof *clipped);
	for (int i = 0; clipped && i < g->count; i++)
		for (int k = 0; k < g->nodes[i].nin; k++) {
			int from = g->nodes[i].in[k].node;
			clipped[i] |= clipped[from] || finds_scale(&g->nodes[from]);
		}
	return clipped;
}

/* Whether runs set this attribute of the node. */
static bool is_set(const struct slp_gnode *n, const char *name, bool clipped)
{
	if (!strcmp(name, "rescale")) return finds_scale(n) || (n->op->mutates && !clipped);
	return n->op->mutates;
}

/* The attributes of a call that runs change: random streams; in updates, the optimiser's numbers. */
static bool note_fills(struct slp_unit *u, struct slp_gnode *n, bool clipped)
{
	const struct slp_rng *rng = slp_node_rng(n);
	if (rng && rng->seed == SLP_RNG_VIRTUAL) {
		unsigned offset = (unsigned)((const char *)rng - n->attrs.bytes);
		if (!add_fill(u, (struct slp_plan_fill){u->ncalls, offset, SLP_FILL_SEED, 0, NULL})) return false;
		offset += (unsigned)offsetof(struct slp_rng, stream);
		if (!add_fill(u, (struct slp_plan_fill){u->ncalls, offset, SLP_FILL_STREAM, rng->stream, NULL}))
			return false;
	}
	for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
		const struct slp_attr *a = is_set(n, settings[i], clipped) ? slp_attr_find(n->op, settings[i]) : NULL;
		if (a && !add_fill(u, (struct slp_plan_fill){u->ncalls, a->offset, SLP_FILL_SETTING, 0, settings[i]}))
			return false;
	}
	return true;
}

static bool add_call(sl_plan *p, struct slp_unit *u, int node, int *slots, bool clipped)
{
	struct slp_gnode *n = &p->graph->nodes[node];
	struct slp_address *addresses = slp_malloc((size_t)(n->nin + n->nout + 1) * sizeof *addresses);
	struct slp_infer call;
	bool ok = addresses && slp_node_call(p->graph, n, &call);
	if (ok) {
		ok = find_addresses(p, u, node, slots, addresses) && note_fills(u, n, clipped) &&
		     slp_code_call(u->code, &call, addresses);
		slp_call_free(&call);
	}
	u->ncalls++;
	free(addresses);
	return ok;
}

static enum sl_status make_unit(sl_plan *p, const char *at, const char *what, int unit, int *slots, const bool *clipped)
{
	struct slp_unit *u = &p->units[unit];
	u->code = slp_code_new();
	if (!u->code) return slp_plan_no_memory();
	slp_code_name(u->code, "task %d of %d of the %s compiled at %s", unit + 1, p->layout.nunits, what,
	              at ? at : "?");
	memset(slots, 0xff, (size_t)p->graph->count * SLP_MAX_OUTPUTS * sizeof *slots);
	for (int i = 0; i < p->graph->count; i++) {
		if (p->layout.unit[i] != unit) continue;
		if (p->graph->nodes[i].op->mutates) p->changes = true;
		if (!add_call(p, u, i, slots, clipped[i]))
			return sl_error() != SL_OK ? sl_error() : slp_plan_no_memory();
	}
	if (u->nslots > p->max_slots) p->max_slots = u->nslots;
	if (u->nfills > p->max_fills) p->max_fills = u->nfills;
	return SL_OK;
}

static bool find_last_units(sl_plan *p)
{
	const struct slp_layout *l = &p->layout;
	p->last_unit = slp_malloc(((size_t)l->nstorages + 1) * sizeof *p->last_unit);
	if (!p->last_unit) return false;
	memset(p->last_unit, 0xff, ((size_t)l->nstorages + 1) * sizeof *p->last_unit);
	for (int i = 0; i < l->nunits; i++)
		for (int k = 0; k < p->units[i].nslots; k++)
			if (p->units[i].locations[k].kind == SLP_LOCATION_STORAGE)
				p->last_unit[p->units[i].locations[k].index] = i;
	for (int i = 0; i < p->graph->noutputs; i++) {
		struct slp_location location = l->location[l->root[slp_value_id(p->graph->outputs[i])]];
		if (location.kind == SLP_LOCATION_STORAGE) p->last_unit[location.index] = -1;
	}
	return true;
}

enum sl_status slp_plan_code(sl_plan *p, const char *at, const char *what)
{
	int *slots = slp_malloc(((size_t)p->graph->count * SLP_MAX_OUTPUTS + 1) * sizeof *slots);
	p->units = slp_calloc((size_t)p->layout.nunits + 1, sizeof *p->units);
	bool *clipped = find_clipped(p->graph);
	enum sl_status s = slots && p->units && clipped ? SL_OK : slp_plan_no_memory();
	for (int i = 0; i < p->layout.nunits && s == SL_OK; i++) s = make_unit(p, at, what, i, slots, clipped);
	if (s == SL_OK && !find_last_units(p)) s = slp_plan_no_memory();
	free(slots);
	free(clipped);
	return s;
}
