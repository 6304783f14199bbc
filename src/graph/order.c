/* The order of a graph's nodes: sorts them into a runnable order, and checks it.
 *
 * A node waits for its arguments.  In addition, accesses to memory that a node writes keep their order: a write
 * waits for the reads since the last write, a read for the last write.  Two parameters over one storage are the same
 * memory. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "runtime/fault.h"
#include "runtime/task/storage.h"
#include "starling/graph.h"

/* ---- the memory of values ---------------------------------------------------------------------------------------- */

/* A parameter's node and its storage, to find those that share it. */
struct memory {
	const struct slp_storage *storage;
	int node;
};

static int by_storage(const void *a, const void *b)
{
	const struct memory *x = a, *y = b;
	if (x->storage != y->storage) return x->storage < y->storage ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

int *slp_graph_memories(const sl_graph *g)
{
	size_t n = (size_t)(g->count ? g->count : 1);
	int *ids = slp_malloc(n * SLP_MAX_OUTPUTS * sizeof *ids), count = 0;
	struct memory *list = slp_malloc(n * sizeof *list);
	for (int i = 0; ids && list && i < g->count; i++) {
		for (int j = 0; j < SLP_MAX_OUTPUTS; j++) ids[i * SLP_MAX_OUTPUTS + j] = i * SLP_MAX_OUTPUTS + j;
		const sl_tensor *t = g->nodes[i].kind == SLP_NODE_PARAM ? g->nodes[i].tensor : NULL;
		if (t && t->storage) list[count++] = (struct memory){t->storage, i};
	}
	if (list) qsort(list, (size_t)count, sizeof *list, by_storage);
	for (int i = 1; ids && list && i < count; i++)
		if (list[i].storage == list[i - 1].storage)
			ids[list[i].node * SLP_MAX_OUTPUTS] = ids[list[i - 1].node * SLP_MAX_OUTPUTS];
	free(list);
	if (list) return ids;
	free(ids);
	return NULL;
}

bool *slp_graph_written(const sl_graph *g, const int *memory)
{
	bool *written = slp_calloc((size_t)g->count * SLP_MAX_OUTPUTS + 1, sizeof *written);
	for (int i = 0; written && i < g->count; i++)
		for (int j = 0; j < g->nodes[i].nin; j++)
			if (slp_node_writes(&g->nodes[i], j)) written[memory[slp_value_id(g->nodes[i].in[j])]] = true;
	return written;
}

/* ---- an order ---------------------------------------------------------------------------------------------------- */

struct wait {
	int node, next;
};

struct order {
	const sl_graph *g;
	int *wanted;      /* the nodes as they should come */
	int *done, ndone; /* in their final order */
	enum { NEW, OPEN, DONE } * state;
	int *stack, *progress; /* nodes in progress, and the number of dependencies that each has visited */
	int *waits;            /* first of each node, in list; -1: none */
	struct wait *list;
	int nwaits, max_waits;
};

/* Nodes by their preferred place: before `before`, else unchanged. */
static bool want(struct order *o)
{
	const sl_graph *g = o->g;
	int *start = slp_calloc((size_t)g->count * 2 + 1, sizeof *start), sum = 0;
	if (!start) return false;
#define PLACE(i) (g->nodes[i].before >= 0 ? 2 * g->nodes[i].before : 2 * (i) + 1)
	for (int i = 0; i < g->count; i++) start[PLACE(i)]++;
	for (int i = 0; i < 2 * g->count; i++) {
		int n = start[i];
		start[i] = sum;
		sum += n;
	}
	for (int i = 0; i < g->count; i++) o->wanted[start[PLACE(i)]++] = i;
#undef PLACE
	free(start);
	return true;
}

static bool add_wait(struct order *o, int node, int for_node)
{
	if (node == for_node || for_node < 0) return true;
	if (!slp_grow((void **)&o->list, &o->max_waits, o->nwaits + 1, sizeof *o->list)) return false;
	o->list[o->nwaits] = (struct wait){for_node, o->waits[node]};
	o->waits[node] = o->nwaits++;
	return true;
}

/* The accesses to a memory so far: its last writer, and the readers since then. */
struct history {
	bool written; /* by any node */
	int writer;   /* -1: none yet */
	int readers;  /* first, in a list of struct wait; -1: none */
};

struct histories {
	int *memory;
	struct history *of;
	struct wait *readers;
	int nreaders;
};

static bool write_access(struct order *o, struct histories *h, int node, struct history *m)
{
	bool ok = add_wait(o, node, m->writer);
	for (int r = m->readers; ok && r >= 0; r = h->readers[r].next) ok = add_wait(o, node, h->readers[r].node);
	m->writer = node;
	m->readers = -1;
	return ok;
}

static bool accesses(struct order *o, struct histories *h, int node)
{
	const struct slp_gnode *n = &o->g->nodes[node];
	for (int i = 0; i < n->nin; i++) {
		struct history *m = &h->of[h->memory[slp_value_id(n->in[i])]];
		if (!m->written) continue;
		bool write = slp_node_writes(n, i);
		if (!(write ? write_access(o, h, node, m) : add_wait(o, node, m->writer))) return false;
		if (write) continue;
		h->readers[h->nreaders] = (struct wait){node, m->readers};
		m->readers = h->nreaders++;
	}
	return true;
}

static bool mark_written(const sl_graph *g, struct histories *h, size_t *naccesses)
{
	bool any = false;
	for (int i = 0; i < g->count; i++)
		for (int j = 0; j < g->nodes[i].nin; j++, ++*naccesses)
			if (slp_node_writes(&g->nodes[i], j))
				any = h->of[h->memory[slp_value_id(g->nodes[i].in[j])]].written = true;
	return any;
}

/* Dependencies that come from reads and writes of the same memory. */
static bool hazards(struct order *o)
{
	size_t values = (size_t)o->g->count * SLP_MAX_OUTPUTS, naccesses = 1;
	struct histories h = {.memory = slp_graph_memories(o->g), .of = slp_malloc(values * sizeof *h.of)};
	bool ok = h.memory && h.of;
	for (size_t i = 0; ok && i < values; i++) h.of[i] = (struct history){false, -1, -1};
	if (ok && mark_written(o->g, &h, &naccesses)) {
		h.readers = slp_malloc(naccesses * sizeof *h.readers);
		ok = h.readers;
		for (int i = 0; ok && i < o->g->count; i++) ok = accesses(o, &h, o->wanted[i]);
	}
	free(h.memory);
	free(h.of);
	free(h.readers);
	return ok;
}

/* The k-th node that `node` waits for; -1: there is none.  *progress runs from 0 over arguments, then -2, -3, … over
 * waits. */
static int next_dependency(const struct order *o, int node, int *progress)
{
	const struct slp_gnode *n = &o->g->nodes[node];
	if (*progress >= 0 && *progress < n->nin) return n->in[(*progress)++].node;
	int w = *progress >= 0 ? o->waits[node] : -*progress - 2;
	if (w < 0) return *progress = -1, -1;
	*progress = -o->list[w].next - 2;
	return o->list[w].node;
}

/* Appends a node, after all nodes that it waits for; false if it waits for itself. */
static bool visit(struct order *o, int node)
{
	int depth = 0;
	o->stack[0] = node;
	o->progress[0] = 0;
	o->state[node] = OPEN;
	while (depth >= 0) {
		int d = next_dependency(o, o->stack[depth], &o->progress[depth]);
		if (d >= 0 && o->state[d] == DONE) continue;
		if (d >= 0 && o->state[d] == OPEN) return false;
		if (d >= 0) {
			o->stack[++depth] = d;
			o->progress[depth] = 0;
			o->state[d] = OPEN;
			continue;
		}
		o->state[o->stack[depth]] = DONE;
		o->done[o->ndone++] = o->stack[depth--];
	}
	return true;
}

/* ---- renumbering ------------------------------------------------------------------------------------------------- */

/* Nodes are only removed: the others move up in the array. */
static bool keeps_order(const struct order *o)
{
	for (int i = 0; i < o->ndone; i++)
		if (o->done[i] != i) return false;
	return true;
}

static bool move_nodes(sl_graph *g, const struct order *o)
{
	int *number = slp_malloc((size_t)g->count * sizeof *number), count = 0;
	struct slp_gnode *nodes = keeps_order(o) ? g->nodes : slp_malloc((size_t)g->count * sizeof *nodes);
	for (int i = 0; number && nodes && i < g->count; i++) {
		number[o->done[i]] = count;
		if (!g->nodes[o->done[i]].dead) nodes[count++] = g->nodes[o->done[i]];
	}
	for (int i = 0; number && nodes && i < count; i++) {
		nodes[i].before = -1;
		for (int j = 0; j < nodes[i].nin; j++) nodes[i].in[j].node = number[nodes[i].in[j].node];
	}
	bool ok = number && nodes;
	for (int i = 0; ok && i < g->noutputs; i++) g->outputs[i].node = number[g->outputs[i].node];
	for (int i = 0; ok && i < g->ninputs; i++) g->inputs[i] = number[g->inputs[i]];
	free(number);
	if (nodes != g->nodes) {
		free(ok ? g->nodes : nodes);
		if (ok) g->nodes = nodes, g->capacity = g->count;
	}
	if (ok) g->count = count;
	return ok;
}

static bool uses_dead(const sl_graph *g)
{
	for (int i = 0; i < g->count; i++)
		for (int j = 0; j < g->nodes[i].nin; j++)
			if (g->nodes[g->nodes[i].in[j].node].dead) return true;
	for (int i = 0; i < g->noutputs; i++)
		if (g->nodes[g->outputs[i].node].dead) return true;
	return false;
}

static enum sl_status sort(struct order *o)
{
	if (uses_dead(o->g)) return SL_EINTERNAL;
	if (!want(o) || !hazards(o)) return SL_ENOMEM;
	for (int i = 0; i < o->g->count; i++)
		if (o->state[o->wanted[i]] == NEW && !visit(o, o->wanted[i])) return SL_EINTERNAL;
	return SL_OK;
}

/* In that case the order is right already. */
static bool is_compact(const sl_graph *g)
{
	for (int i = 0; i < g->count; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		if (n->dead || n->before >= 0) return false;
		for (int j = 0; j < n->nin; j++)
			if (n->in[j].node >= i) return false;
	}
	return true;
}

bool slp_graph_compact(sl_graph *g)
{
	size_t n = (size_t)g->count;
	if (is_compact(g)) return true;
	struct order o = {.g = g};
	int *ints = slp_malloc(5 * n * sizeof *ints);
	o.state = slp_calloc(n, sizeof *o.state);
	enum sl_status s = ints && o.state ? SL_OK : SL_ENOMEM;
	if (s == SL_OK) {
		o.wanted = ints, o.done = ints + n, o.stack = ints + 2 * n, o.progress = ints + 3 * n;
		o.waits = ints + 4 * n;
		for (size_t i = 0; i < n; i++) o.waits[i] = -1;
		s = sort(&o);
	}
	if (s == SL_OK && !move_nodes(g, &o)) s = SL_ENOMEM;
	free(ints);
	free(o.state);
	free(o.list);
	if (s != SL_OK)
		slp_error_set(s, s == SL_ENOMEM
		                         ? "graph: no memory for the order of its nodes"
		                         : "graph: nodes depend on each other in a cycle, or on one that was removed");
	return s == SL_OK;
}

/* ---- checking ---------------------------------------------------------------------------------------------------- */

static enum sl_status wrong(const struct slp_gnode *n, const char *what, int i)
{
	slp_call_fail(n->at, "graph", SL_EINTERNAL, "node %s: %s (%d)", n->name, what, i);
	return SL_EINTERNAL;
}

static enum sl_status verify_value(const sl_graph *g, const struct slp_gnode *user, struct slp_value v, int before,
                                   int i)
{
	if (v.node < 0 || v.node >= before) return wrong(user, "uses a value that does not come before it", i);
	const struct slp_gnode *n = &g->nodes[v.node];
	if (n->dead) return wrong(user, "uses a node that was removed", i);
	if (v.out < 0 || v.out >= n->nout) return wrong(user, "uses a result that does not exist", i);
	return SL_OK;
}

static bool same_type(const struct slp_type *a, const struct slp_type *b)
{
	return a->dtype == b->dtype && sl_shape_equal(a->shape, b->shape);
}

static enum sl_status verify_op(const sl_graph *g, const struct slp_gnode *n, int node)
{
	enum sl_status s = SL_OK;
	for (int i = 0; s == SL_OK && i < n->nin; i++) {
		s = verify_value(g, n, n->in[i], node, i);
		if (s == SL_OK && slp_node_writes(n, i) && g->nodes[n->in[i].node].kind == SLP_NODE_CONST)
			s = wrong(n, "writes a constant", i);
	}
	for (int i = 0; s == SL_OK && i < n->nout; i++)
		if (n->types[i].shape.ndim < 0) s = wrong(n, "the type of a result is not known", i);
	struct slp_infer c;
	if (s != SL_OK) return s;
	if (!slp_node_call(g, n, &c)) return SL_EINTERNAL;
	for (int i = 0; s == SL_OK && i < n->nout; i++)
		if (!same_type(&n->types[i], &c.out[i]))
			s = wrong(n, "a result has another type than its operation gives", i);
	slp_call_free(&c);
	return s;
}

static enum sl_status verify_node(const sl_graph *g, int node)
{
	const struct slp_gnode *n = &g->nodes[node];
	switch (n->kind) {
	case SLP_NODE_OP: return verify_op(g, n, node);
	case SLP_NODE_PARAM:
	case SLP_NODE_CONST:
		if (!n->tensor) return wrong(n, "has no tensor", 0);
		return same_type(&n->types[0], &n->tensor->type) ? SL_OK
		                                                 : wrong(n, "has another type than its tensor", 0);
	case SLP_NODE_INPUT: break;
	}
	return n->types[0].shape.ndim >= 0 ? SL_OK : wrong(n, "its type is not known", 0);
}

enum sl_status slp_graph_verify(const sl_graph *g)
{
	enum sl_status s = SL_OK;
	for (int i = 0; s == SL_OK && i < g->count; i++)
		if (!g->nodes[i].dead) s = verify_node(g, i);
	struct slp_gnode outputs = {.name = "the outputs", .at = ""};
	for (int i = 0; s == SL_OK && i < g->noutputs; i++) s = verify_value(g, &outputs, g->outputs[i], g->count, i);
	for (int i = 0; s == SL_OK && i < g->ninputs; i++) {
		int node = g->inputs[i];
		if (node < 0 || node >= g->count || g->nodes[node].kind != SLP_NODE_INPUT)
			s = wrong(&outputs, "not an input", i);
	}
	return s;
}
