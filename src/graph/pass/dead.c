/* dead: removes operations that neither a result nor a change of a parameter needs.  Inputs stay, because runs still
 * pass them. */
#include <stdlib.h>

#include "alloc.h"
#include "graph/pass/pass.h"
#include "starling/graph.h"

/* Walks backward over the nodes: arguments come before their users. */
static void mark(const sl_graph *g, bool *needed)
{
	for (int i = 0; i < g->noutputs; i++) needed[g->outputs[i].node] = true;
	for (int i = g->count - 1; i >= 0; i--) {
		const struct slp_gnode *n = &g->nodes[i];
		if (n->dead) continue;
		needed[i] |= slp_node_has_effect(n);
		for (int j = 0; needed[i] && j < n->nin; j++) needed[n->in[j].node] = true;
	}
}

enum sl_status slp_pass_dead(sl_graph *g)
{
	if (!slp_graph_compact(g)) return sl_error(); /* appended nodes come before their users */
	bool *needed = slp_calloc((size_t)g->count + 1, sizeof *needed);
	if (!needed) return slp_pass_no_memory("dead");
	mark(g, needed);
	for (int i = 0; i < g->count; i++)
		if (!needed[i]) slp_graph_kill(g, i);
	free(needed);
	return slp_graph_compact(g) ? SL_OK : sl_error();
}
