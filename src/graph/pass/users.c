/* Users of values: lists that passes keep up to date while they change a graph.  Uses by the arguments of one node lie
 * side by side, so they are found without a search when the node gets others. */
#include <limits.h>
#include <stdlib.h>

#include "graph/pass/pass.h"
#include "op.h"
#include "runtime/fault.h"
#include "starling/graph.h"

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static bool make_room(struct slp_users *u, int nodes, int more)
{
	return slp_grow((void **)&u->of, &u->max_of, nodes * SLP_MAX_OUTPUTS, sizeof *u->of) &&
	       slp_grow((void **)&u->args, &u->max_args, nodes, sizeof *u->args) &&
	       slp_grow((void **)&u->list, &u->max_list, u->count + more, sizeof *u->list);
}

static void begin(struct slp_users *u, int id, int memory)
{
	u->of[id] =
	        (struct slp_uses){.first = -1, .last = -1, .memory = memory, .first_write = INT_MAX, .last_write = -1};
}

static void append(struct slp_users *u, struct slp_value v, int use)
{
	struct slp_uses *of = &u->of[slp_value_id(v)];
	u->list[use].before = of->last;
	u->list[use].next = -1;
	*(of->last < 0 ? &of->first : &u->list[of->last].next) = use;
	of->last = use;
	of->count++;
}

static void take_out(struct slp_users *u, struct slp_value v, int use)
{
	struct slp_uses *of = &u->of[slp_value_id(v)];
	const struct slp_user *user = &u->list[use];
	*(user->before < 0 ? &of->first : &u->list[user->before].next) = user->next;
	*(user->next < 0 ? &of->last : &u->list[user->next].before) = user->before;
	of->count--;
}

static void enter(struct slp_users *u, int node, int arg, struct slp_value v)
{
	u->list[u->count] = (struct slp_user){.node = node, .arg = arg};
	append(u, v, u->count++);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static void enter_node(struct slp_users *u, int node)
{
	const struct slp_gnode *n = &u->g->nodes[node];
	u->args[node] = u->count;
	for (int i = 0; i < n->nin; i++) enter(u, node, i, n->in[i]);
}

static void leave_node(struct slp_users *u, int node)
{
	const struct slp_gnode *n = &u->g->nodes[node];
	for (int i = 0; i < n->nin; i++) take_out(u, n->in[i], u->args[node] + i);
}

static void note_writes(struct slp_users *u, int node)
{
	const struct slp_gnode *n = &u->g->nodes[node];
	for (int i = 0; i < n->nin; i++) {
		struct slp_uses *memory = &u->of[slp_users_memory(u, n->in[i])];
		if (!slp_node_writes(n, i)) continue;
		if (node < memory->first_write) memory->first_write = node;
		memory->last_write = node;
	}
}

static void enter_all(struct slp_users *u, const int *memory)
{
	const sl_graph *g = u->g;
	for (int i = 0; i < g->count * SLP_MAX_OUTPUTS; i++) begin(u, i, memory[i]);
	for (int i = 0; i < g->noutputs; i++) enter(u, -1, i, g->outputs[i]);
	for (int i = 0; i < g->count; i++) {
		enter_node(u, i);
		note_writes(u, i);
	}
}

bool slp_users_find(struct slp_users *u, sl_graph *g)
{
	int *memory = slp_graph_memories(g), uses = g->noutputs;
	*u = (struct slp_users){.g = g};
	for (int i = 0; i < g->count; i++) uses += g->nodes[i].nin;
	bool ok = memory && make_room(u, g->count, uses);
	if (ok) enter_all(u, memory);
	else slp_users_free(u), slp_error_set(SL_ENOMEM, "graph: no memory for a pass");
	free(memory);
	return ok;
}

void slp_users_free(struct slp_users *u)
{
	free(u->of);
	free(u->list);
	free(u->args);
	*u = (struct slp_users){0};
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

bool slp_users_add(struct slp_users *u, int node)
{
	if (!make_room(u, node + 1, u->g->nodes[node].nin)) return false;
	for (int i = 0; i < SLP_MAX_OUTPUTS; i++) begin(u, node * SLP_MAX_OUTPUTS + i, node * SLP_MAX_OUTPUTS + i);
	enter_node(u, node);
	return true;
}

void slp_users_replace(struct slp_users *u, struct slp_value from, struct slp_value to)
{
	struct slp_uses *of = &u->of[slp_value_id(from)];
	for (int i = of->first, next; i >= 0; i = next) {
		const struct slp_user *user = &u->list[i];
		next = user->next;
		*(user->node < 0 ? &u->g->outputs[user->arg] : &u->g->nodes[user->node].in[user->arg]) = to;
		append(u, to, i);
	}
	of->first = of->last = -1;
	of->count = 0;
}

bool slp_users_rewrite(struct slp_users *u, int node, const struct sl_op *op, const void *attrs, int nin,
                       const struct slp_value *in)
{
	if (!make_room(u, 0, nin)) return false;
	leave_node(u, node);
	if (!slp_graph_rewrite(u->g, node, op, attrs, nin, in)) return false;
	enter_node(u, node);
	return true;
}

void slp_users_kill(struct slp_users *u, int node)
{
	leave_node(u, node);
	slp_graph_kill(u->g, node);
}

/* ---- writes ------------------------------------------------------------------------------------------------------ */

static bool writes(const struct slp_users *u, int node, int memory)
{
	const struct slp_gnode *n = &u->g->nodes[node];
	for (int i = 0; i < n->nin; i++)
		if (slp_node_writes(n, i) && slp_users_memory(u, n->in[i]) == memory) return true;
	return false;
}

bool slp_users_stays(const struct slp_users *u, struct slp_value v, int first, int last)
{
	int memory = slp_users_memory(u, v);
	if (first < u->of[memory].first_write) first = u->of[memory].first_write;
	if (last > u->of[memory].last_write) last = u->of[memory].last_write;
	for (int i = first; i <= last; i++)
		if (writes(u, i, memory)) return false;
	return true;
}
