/* Under a limit of memory, operations whose results are much smaller than their arguments (sums) run as soon as their
 * arguments are there: these may leave then, instead of coming back for them. */
#include "graph/offload.h"
#include "graph/pass/pass.h"
#include "graph/units.h"

enum { PART = 16 }; /* results are smaller than this part */

static bool may_move(const struct slp_gnode *n)
{
	return n->kind == SLP_NODE_OP && !n->op->view && !n->op->hold && !slp_node_has_effect(n);
}

static bool is_small(const sl_graph *g, const struct slp_gnode *n)
{
	size_t in = 0, out = 0;
	for (int i = 0; i < n->nin; i++) in += slp_type_bytes(slp_value_type(g, n->in[i]));
	for (int i = 0; i < n->nout; i++) out += slp_type_bytes(&n->types[i]);
	return out < in / PART;
}

/* The first place at which its arguments are as they are at its own. */
static int first_place(const sl_graph *g, const struct slp_users *u, int node)
{
	const struct slp_gnode *n = &g->nodes[node];
	int place = 0;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i].node >= place) place = n->in[i].node + 1;
	for (int i = 0; i < n->nin; i++)
		if (!slp_users_stays(u, n->in[i], place, node - 1)) return node;
	while (place < node && g->nodes[place].before >= 0) place++; /* that one moves itself */
	return place;
}

enum sl_status slp_offload_early(sl_graph *g)
{
	struct slp_users users;
	if (!slp_users_find(&users, g)) return slp_pass_no_memory("early");
	for (int i = 0; i < g->count; i++) {
		if (!may_move(&g->nodes[i]) || !is_small(g, &g->nodes[i])) continue;
		int place = first_place(g, &users, i);
		if (place < i) slp_graph_before(g, i, place);
	}
	slp_users_free(&users);
	return slp_graph_compact(g) ? SL_OK : sl_error();
}
