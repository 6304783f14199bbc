/* cse: the same operation on the same arguments is computed once (common subexpressions).
 *
 * Attributes count as infer completes them (axis -1 of two is axis 1). Random operations are the same if their streams
 * are: a mask that the backward pass draws again. A parameter that is written in between is another value. Parts that
 * the backward pass recomputes are not merged with the first computation, because their values are not to be kept. */
#include <stdlib.h>
#include <string.h>

#include "graph/pass/pass.h"
#include "op.h"
#include "starling/graph.h"

struct table {
	struct slp_walk walk;
	int *memory;   /* of each value */
	long *version; /* of each memory: writes so far */
	long *stamp;   /* of each node: the sum of its arguments' versions, which never decrease */
	int *slots;    /* nodes by hash; -1: free */
	size_t nslots;
};

static bool begin(struct table *t, sl_graph *g)
{
	if (!slp_walk_begin(&t->walk, g)) return false;
	for (t->nslots = 64; t->nslots < (size_t)g->count * 2;) t->nslots *= 2;
	t->memory = slp_graph_memories(g);
	t->version = slp_calloc((size_t)t->walk.count + 1, sizeof *t->version);
	t->stamp = slp_calloc((size_t)g->count + 1, sizeof *t->stamp);
	t->slots = slp_malloc(t->nslots * sizeof *t->slots);
	if (t->slots) memset(t->slots, 0xff, t->nslots * sizeof *t->slots);
	return t->memory && t->version && t->stamp && t->slots;
}

static void end(struct table *t)
{
	slp_walk_end(&t->walk);
	free(t->memory);
	free(t->version);
	free(t->stamp);
	free(t->slots);
}

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

/* Slices of one tensor, one for each step of a loop, differ in attributes only. */
static uint64_t mix_attrs(uint64_t h, const sl_graph *g, const struct slp_gnode *n)
{
	struct slp_infer c;
	if (n->kind != SLP_NODE_OP || !n->op->attr_table) return h;
	if (!slp_node_call(g, n, &c)) return sl_error_clear(), h;
	for (const struct slp_attr *f = n->op->attr_table; f->name; f++)
		for (size_t i = 0; i < f->count * slp_attr_size(f->kind); i++)
			h = mix(h, ((const unsigned char *)c.attrs)[f->offset + i]);
	slp_call_free(&c);
	return h;
}

static uint64_t hash(const struct table *t, int node)
{
	const struct slp_gnode *n = &t->walk.g->nodes[node];
	const sl_tensor *x = n->tensor;
	uint64_t h = mix(n->kind, (uint64_t)(uintptr_t)n->op);
	if (x) h = mix(mix(h, (uint64_t)(uintptr_t)x->storage), x->offset);
	for (int i = 0; i < n->nin; i++) h = mix(h, (uint64_t)slp_value_id(n->in[i]));
	return mix_attrs(mix(h, (uint64_t)t->stamp[node]), t->walk.g, n);
}

static bool same_attrs(const sl_graph *g, const struct slp_gnode *a, const struct slp_gnode *b)
{
	struct slp_infer x, y;
	if (!slp_node_call(g, a, &x)) return sl_error_clear(), false;
	bool both = slp_node_call(g, b, &y), same = both && slp_attrs_equal(a->op, x.attrs, y.attrs);
	slp_call_free(&x);
	if (both) slp_call_free(&y);
	else sl_error_clear();
	return same;
}

static bool same(const struct table *t, int i, int j)
{
	const struct slp_gnode *a = &t->walk.g->nodes[i], *b = &t->walk.g->nodes[j];
	if (a->kind != b->kind || a->op != b->op || a->nin != b->nin || t->stamp[i] != t->stamp[j]) return false;
	if (a->repeat != b->repeat) return false;
	if (a->kind != SLP_NODE_OP)
		return a->tensor->storage == b->tensor->storage && a->tensor->offset == b->tensor->offset &&
		       slp_type_equal(&a->types[0], &b->types[0]);
	for (int k = 0; k < a->nin; k++)
		if (!slp_value_equal(a->in[k], b->in[k])) return false;
	return same_attrs(t->walk.g, a, b);
}

/* The earlier node that computes the same; else the node itself, which is added. */
static int find(struct table *t, int node)
{
	size_t i = hash(t, node) & (t->nslots - 1);
	while (t->slots[i] >= 0 && !same(t, t->slots[i], node)) i = (i + 1) & (t->nslots - 1);
	if (t->slots[i] < 0) t->slots[i] = node;
	return t->slots[i];
}

static void stamp(struct table *t, int node)
{
	const struct slp_gnode *n = &t->walk.g->nodes[node];
	for (int i = 0; i < n->nin; i++) t->stamp[node] += t->version[t->memory[slp_value_id(n->in[i])]];
	for (int i = 0; i < n->nin; i++)
		if (slp_node_writes(n, i)) t->version[t->memory[slp_value_id(n->in[i])]]++;
}

/* A parameter is the same tensor before and after a write: its readers keep their places. */
static bool may_replace(const struct table *t, int node, int by)
{
	const struct slp_gnode *n = &t->walk.g->nodes[node];
	if (n->kind != SLP_NODE_OP) return true;
	for (int i = 0; i < n->nout; i++)
		if (!slp_walk_may_replace(&t->walk, (struct slp_value){node, i}, (struct slp_value){by, i}))
			return false;
	return true;
}

static void visit(struct table *t, int node)
{
	const struct slp_gnode *n = &t->walk.g->nodes[node];
	if (n->dead || n->kind == SLP_NODE_INPUT) return;
	slp_walk_node(&t->walk, node);
	stamp(t, node);
	if (slp_node_has_effect(n) || !n->nout) return;
	int by = find(t, node);
	if (by == node || !may_replace(t, node, by)) return;
	for (int i = 0; i < n->nout; i++)
		slp_walk_replace(&t->walk, (struct slp_value){node, i}, (struct slp_value){by, i});
	slp_graph_kill(t->walk.g, node);
}

enum sl_status slp_pass_cse(sl_graph *g)
{
	struct table t = {0};
	bool ok = begin(&t, g);
	for (int i = 0; ok && i < g->count; i++) visit(&t, i);
	end(&t);
	if (!ok) return slp_pass_no_memory("cse");
	return slp_graph_compact(g) ? SL_OK : sl_error();
}
