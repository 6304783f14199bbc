/* The memory plan: a place for every value of a program.
 *
 * Values that are needed within one unit only are in the scratch memory of the worker that runs it.  Values that are
 * not alive at the same time share memory, results may take the place of a dead argument, and operands of a
 * concatenation are written to their final place.  Values that pass from unit to unit, and the results of the
 * program, get storages of their own at each run.
 *
 * Offsets: largest region first, each at the lowest place that is free while it lives (Y.  Pisarchyk, J.  Lee,
 * "Efficient Memory Management for Deep Neural Net Inference", 2020). */
#include <stdlib.h>
#include <string.h>

#include "graph/pass/pass.h"
#include "graph/plan.h"
#include "graph/units.h"
#include "op_list/move.h"

/* Memory that one value, or several one after another, occupy from node `first` to node `last`. */
struct region {
	size_t bytes, offset;
	int first, last, unit;
	bool external;        /* read outside of its unit */
	struct region *whole; /* it is a part of this region, which lives at least as long ... */
	size_t at;            /* ... from this byte on; NULL: it is no part */
};

struct memory {
	const sl_graph *g;
	struct slp_layout *layout;
	struct region *regions; /* by value id of the region's first value */
	int *region;            /* of each root: value id */
	int *last;              /* of each root: the last node that uses it */
	bool *external;         /* of each root */
	bool *output;           /* of each root: it is a result of the program */
};

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* Views, which run in no unit, have the location of their argument. */
static void find_roots(const sl_graph *g, struct slp_layout *layout)
{
	for (int i = 0; i < g->count; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		for (int k = 0; k < SLP_MAX_OUTPUTS; k++)
			layout->root[i * SLP_MAX_OUTPUTS + k] = i * SLP_MAX_OUTPUTS + k;
		if (n->kind == SLP_NODE_OP && layout->unit[i] < 0)
			layout->root[i * SLP_MAX_OUTPUTS] = layout->root[slp_value_id(n->in[0])];
	}
}

/* ---- lives ------------------------------------------------------------------------------------------------------- */

static void find_uses(struct memory *m)
{
	const struct slp_layout *l = m->layout;
	for (int i = 0; i < m->g->count; i++) {
		const struct slp_gnode *n = &m->g->nodes[i];
		if (l->unit[i] < 0) continue;
		for (int k = 0; k < n->nout; k++) m->last[i * SLP_MAX_OUTPUTS + k] = i;
		for (int k = 0; k < n->nin; k++) {
			int root = l->root[slp_value_id(n->in[k])];
			m->last[root] = i;
			m->external[root] |= l->unit[root / SLP_MAX_OUTPUTS] != l->unit[i];
		}
	}
	for (int i = 0; i < m->g->noutputs; i++) {
		int root = l->root[slp_value_id(m->g->outputs[i])];
		m->external[root] = m->output[root] = true;
	}
}

/* Whether both values are in scratch of one unit; or, if memory is limited, both in storages that the program has alone. */
static bool lie_alike(const struct memory *m, int a, int b)
{
	const int *unit = m->layout->unit;
	if (m->external[a] || m->external[b])
		return m->layout->limited && m->external[a] && m->external[b] && unit[a / SLP_MAX_OUTPUTS] >= 0 &&
		       !m->output[a] && !m->output[b];
	return unit[a / SLP_MAX_OUTPUTS] == unit[b / SLP_MAX_OUTPUTS];
}

/* Whether a result of the node can take the memory of argument k: not read afterwards, of the same size. */
static bool may_overwrite(const struct memory *m, int node, int out, int k)
{
	const struct slp_gnode *n = &m->g->nodes[node];
	const int *roots = m->layout->root;
	const struct slp_type *type = slp_value_type(m->g, n->in[k]);
	int root = roots[slp_value_id(n->in[k])];
	if (!lie_alike(m, root, node * SLP_MAX_OUTPUTS + out) || m->last[root] != node) return false;
	if (slp_type_bytes(type) != slp_type_bytes(&n->types[out]) || type->dtype != n->types[out].dtype) return false;
	for (int i = 0; i < n->nin; i++) {
		if (i == k || roots[slp_value_id(n->in[i])] != root) continue;
		bool at_its_place = sl_shape_equal(slp_value_type(m->g, n->in[i])->shape, n->types[out].shape);
		if (!n->op->elementwise || !at_its_place) return false;
	}
	return true;
}

/* The argument whose memory a result can take; -1: none.  Kernels of GPUs, for which memory is limited, read each element
 * before they write it, so an elementwise operation may write over any argument; a program's own promises that of the
 * first alone. */
static int input_to_reuse(const struct memory *m, int node, int out)
{
	const struct slp_gnode *n = &m->g->nodes[node];
	bool any = m->layout->limited && n->op->elementwise && !n->op->by_parts && n->nout == 1;
	int end = any ? n->nin : out + 1;
	for (int k = out; out < n->op->inplace && k < end && k < n->nin; k++)
		if (may_overwrite(m, node, out, k)) return m->layout->root[slp_value_id(n->in[k])];
	return -1;
}

static void make_regions(struct memory *m, bool reuse)
{
	for (int i = 0; i < m->g->count; i++) {
		const struct slp_gnode *n = &m->g->nodes[i];
		if (m->layout->unit[i] < 0) continue;
		for (int k = 0; k < n->nout; k++) {
			int id = i * SLP_MAX_OUTPUTS + k, taken = reuse ? input_to_reuse(m, i, k) : -1;
			m->region[id] = taken >= 0 ? m->region[taken] : id;
			struct region *r = &m->regions[m->region[id]];
			if (taken < 0)
				*r = (struct region){.bytes = slp_type_bytes(&n->types[k]),
				                     .offset = 0,
				                     .first = i,
				                     .last = i,
				                     .unit = m->layout->unit[i],
				                     .external = m->external[id],
				                     .at = 0};
			if (m->last[id] > r->last) r->last = m->last[id];
		}
	}
}

/* ---- concatenations ---------------------------------------------------------------------------------------------- */

/* Whether the arguments of a concatenation are consecutive, undivided parts of its result. */
static bool is_in_pieces(const struct memory *m, const struct slp_gnode *n)
{
	if (n->kind != SLP_NODE_OP || n->op != &slp_op_concat) return false;
	int axis = *(const int *)slp_node_attr(n, "axis"), ndim = n->types[0].shape.ndim;
	if (!slp_axis(&axis, ndim)) return false;
	for (int i = 0; i < axis; i++)
		if (n->types[0].shape.dim[i] != 1) return false;
	return !m->external[(int)(n - m->g->nodes) * SLP_MAX_OUTPUTS];
}

/* The region that can become a part of the concatenation's: it is in scratch there, and not read afterwards. */
static struct region *part_of(const struct memory *m, int node, int i)
{
	const struct slp_gnode *n = &m->g->nodes[node];
	int root = m->layout->root[slp_value_id(n->in[i])], id = m->region[root];
	if (id < 0 || m->external[root] || m->layout->unit[root / SLP_MAX_OUTPUTS] != m->layout->unit[node])
		return NULL;
	struct region *r = &m->regions[id];
	bool is_whole = r->bytes == slp_type_bytes(slp_value_type(m->g, n->in[i]));
	return is_whole && !r->external && r->last == node && !r->whole ? r : NULL;
}

static void join_parts(struct memory *m, int node)
{
	struct region *whole = &m->regions[m->region[node * SLP_MAX_OUTPUTS]];
	size_t at = 0;
	for (int i = 0; i < m->g->nodes[node].nin; i++) {
		struct region *r = at % 64 ? NULL : part_of(m, node, i);
		at += slp_type_bytes(slp_value_type(m->g, m->g->nodes[node].in[i]));
		if (!r || r == whole) continue;
		r->whole = whole;
		r->at = at - r->bytes;
	}
}

/* A whole lives from its first part on. It may be a part itself. */
static void join_all(struct memory *m)
{
	for (int i = 0; i < m->g->count; i++)
		if (m->layout->unit[i] >= 0 && is_in_pieces(m, &m->g->nodes[i])) join_parts(m, i);
	for (int i = 0; i < m->g->count * SLP_MAX_OUTPUTS; i++) {
		struct region *r = m->region[i] == i ? &m->regions[i] : NULL;
		for (struct region *whole = r ? r->whole : NULL; whole; whole = whole->whole)
			if (r->first < whole->first) whole->first = r->first;
	}
}

static size_t offset_of(const struct region *r)
{
	return r->whole ? offset_of(r->whole) + r->at : r->offset;
}

/* ---- offsets ----------------------------------------------------------------------------------------------------- */

/* Unit by unit, largest first. */
static int largest_first(const void *a, const void *b)
{
	const struct region *x = *(struct region *const *)a, *y = *(struct region *const *)b;
	if (x->unit != y->unit) return (x->unit > y->unit) - (x->unit < y->unit);
	if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
	return (x->first > y->first) - (x->first < y->first);
}

static size_t room(const struct region *r)
{
	return r->bytes ? (r->bytes + 63) / 64 * 64 : 64;
}

/* The place and the lifetime of a region of a unit. */
struct place {
	size_t offset, end;
	int first, last;
};

/* The lowest offset that is free; places, lowest first, are taken at the same time. */
static void assign_offset(struct region *r, const struct place *places, int n, bool reuse)
{
	size_t bytes = room(r);
	r->offset = 0;
	for (int i = 0; i < n && places[i].offset < r->offset + bytes; i++) {
		bool together = !reuse || (places[i].first <= r->last && r->first <= places[i].last);
		if (together && places[i].end > r->offset) r->offset = places[i].end;
	}
}

/* Inserts it into the places. */
static void take_place(const struct region *r, struct place *places, int n)
{
	int low = 0, high = n;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (places[middle].offset <= r->offset) low = middle + 1;
		else high = middle;
	}
	memmove(&places[low + 1], &places[low], (size_t)(n - low) * sizeof *places);
	places[low] = (struct place){r->offset, r->offset + room(r), r->first, r->last};
}

/* Gives the regions in scratch their offsets; false without memory. */
static bool assign_offsets(struct memory *m, bool reuse)
{
	size_t values = (size_t)m->g->count * SLP_MAX_OUTPUTS + 1;
	struct region **list = slp_malloc(values * sizeof *list);
	struct place *places = slp_malloc(values * sizeof *places);
	int n = 0, in_unit = 0;
	for (int i = 0; list && i < m->g->count * SLP_MAX_OUTPUTS; i++)
		if (m->region[i] == i && !m->regions[i].external && !m->regions[i].whole) list[n++] = &m->regions[i];
	if (list && places) {
		qsort(list, (size_t)n, sizeof *list, largest_first);
		for (int i = 0; i < n; i++) {
			if (i && list[i]->unit != list[i - 1]->unit) in_unit = 0;
			assign_offset(list[i], places, in_unit, reuse);
			take_place(list[i], places, in_unit++);
		}
		for (int i = 0; i < m->g->count * SLP_MAX_OUTPUTS; i++)
			if (m->region[i] == i && m->regions[i].whole) m->regions[i].offset = offset_of(&m->regions[i]);
	}
	free(list);
	free(places);
	return list && places;
}

/* ---- locations -------------------------------------------------------------------------------------------------- */

/* Which output of the program the region is, if it belongs to a group; -1: none. */
static int grouped_output(const struct memory *m, int id)
{
	const struct slp_layout *l = m->layout;
	for (int i = 0; l->group && i < m->g->noutputs; i++)
		if (l->group[i] >= 0 && l->root[slp_value_id(m->g->outputs[i])] == id) return i;
	return -1;
}

/* The storage of an output's group in the unit that computes it; -1: there is none yet. */
static int storage_of_group(const struct memory *m, int output, int id)
{
	const struct slp_layout *l = m->layout;
	for (int i = 0; i < m->g->noutputs; i++) {
		int root = l->root[slp_value_id(m->g->outputs[i])];
		if (l->group[i] != l->group[output] || root == id || l->location[root].kind != SLP_LOCATION_STORAGE)
			continue;
		if (l->unit[root / SLP_MAX_OUTPUTS] == l->unit[id / SLP_MAX_OUTPUTS]) return l->location[root].index;
	}
	return -1;
}

static bool location_of_result(struct memory *m, int id)
{
	const struct region *r = &m->regions[m->region[id]];
	struct slp_layout *l = m->layout;
	if (r->external && m->region[id] != id) { /* in place of an earlier value */
		l->location[id] = l->location[m->region[id]];
		return true;
	}
	if (!r->external) {
		l->location[id] = (struct slp_location){SLP_LOCATION_SCRATCH, 0, r->offset};
		return true;
	}
	int output = grouped_output(m, id), storage = output < 0 ? -1 : storage_of_group(m, output, id);
	if (storage >= 0) {
		l->location[id] =
		        (struct slp_location){SLP_LOCATION_STORAGE, storage, (l->storages[storage] + 255) / 256 * 256};
		l->storages[storage] = l->location[id].offset + r->bytes;
		return true;
	}
	size_t *more = slp_realloc(l->storages, ((size_t)l->nstorages + 1) * sizeof *more);
	if (!more) return false;
	l->storages = more;
	l->storages[l->nstorages] = r->bytes;
	l->location[id] = (struct slp_location){SLP_LOCATION_STORAGE, l->nstorages++, 0};
	return true;
}

static bool find_locations(struct memory *m)
{
	const sl_graph *g = m->g;
	struct slp_layout *l = m->layout;
	for (int i = 0; i < g->count; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		int id = i * SLP_MAX_OUTPUTS;
		if (n->kind == SLP_NODE_PARAM || n->kind == SLP_NODE_CONST)
			l->location[id] = (struct slp_location){SLP_LOCATION_TENSOR, i, 0};
		for (int k = 0; n->kind == SLP_NODE_OP && l->unit[i] >= 0 && k < n->nout; k++)
			if (!location_of_result(m, id + k)) return false;
	}
	for (int i = 0; i < g->ninputs; i++)
		l->location[g->inputs[i] * SLP_MAX_OUTPUTS] = (struct slp_location){SLP_LOCATION_INPUT, i, 0};
	return true;
}

/* Results of the program are in neither sum. */
static void sum_up(const struct memory *m)
{
	struct slp_layout *l = m->layout;
	size_t scratch = 0, between = 0;
	l->unplanned = 0;
	for (int i = 0; i < m->g->count * SLP_MAX_OUTPUTS; i++) {
		if (m->region[i] < 0) continue;
		const struct slp_gnode *n = &m->g->nodes[i / SLP_MAX_OUTPUTS];
		size_t bytes = slp_type_bytes(&n->types[i % SLP_MAX_OUTPUTS]);
		const struct region *r = &m->regions[m->region[i]];
		bool output = false;
		for (int k = 0; k < m->g->noutputs; k++) output |= l->root[slp_value_id(m->g->outputs[k])] == i;
		if (output) continue;
		l->unplanned += bytes;
		if (r->external) between += m->region[i] == i ? bytes : 0;
		else if (r->offset + room(r) > scratch) scratch = r->offset + room(r);
	}
	l->planned = scratch + between;
}

static bool allocate(struct memory *m)
{
	size_t values = (size_t)m->g->count * SLP_MAX_OUTPUTS + 1;
	m->layout->root = slp_malloc(values * sizeof(int));
	m->layout->location = slp_calloc(values, sizeof(struct slp_location));
	m->regions = slp_calloc(values, sizeof *m->regions);
	m->region = slp_malloc(values * sizeof(int));
	m->last = slp_calloc(values, sizeof(int));
	m->external = slp_calloc(values, sizeof(bool));
	m->output = slp_calloc(values, sizeof(bool));
	if (m->region) memset(m->region, 0xff, values * sizeof(int));
	return m->layout->root && m->layout->location && m->regions && m->region && m->last && m->external && m->output;
}

bool slp_plan_can_be(const sl_graph *g)
{
	enum { BITS = 57 };
	uint64_t all = 0;
	for (int i = 0; i < g->count; i++)
		for (int k = 0; k < g->nodes[i].nout; k++) {
			uint64_t bytes = slp_type_bytes(&g->nodes[i].types[k]) + 256; /* rounded up */
			if (bytes > 1ull << BITS || (all += bytes) > 1ull << BITS) return false;
		}
	return true;
}

bool slp_plan_memory(const sl_graph *g, bool reuse, struct slp_layout *layout)
{
	struct memory m = {.g = g, .layout = layout};
	bool ok = allocate(&m);
	if (ok) {
		find_roots(g, layout);
		find_uses(&m);
		make_regions(&m, reuse);
		if (reuse && slp_layout_on_cpu(g)) join_all(&m); /* other kernels copy the previous contents */
		ok = assign_offsets(&m, reuse) && find_locations(&m);
	}
	if (ok) sum_up(&m);
	free(m.regions);
	free(m.region);
	free(m.last);
	free(m.external);
	free(m.output);
	return ok;
}

void slp_layout_clear(struct slp_layout *l)
{
	free(l->seconds);
	free(l->unit);
	free(l->root);
	free(l->location);
	free(l->storages);
	*l = (struct slp_layout){0};
}
