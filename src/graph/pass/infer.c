/* infer: shapes and data types of every result. */
#include "graph/pass/pass.h"
#include "op.h"
#include "starling/graph.h"

static enum sl_status check_input(const struct slp_gnode *n)
{
	if (n->kind != SLP_NODE_INPUT || slp_shape_valid(n->types[0].shape)) return SL_OK;
	slp_call_fail(n->at, "infer", SL_ESHAPE, "the input '%s' has no shape yet", n->name);
	return SL_ESHAPE;
}

enum sl_status slp_pass_infer(sl_graph *g)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < g->count && s == SL_OK; i++) {
		if (g->nodes[i].dead) continue;
		s = check_input(&g->nodes[i]);
		if (s == SL_OK) s = slp_node_infer(g, i);
	}
	return s;
}
