/* The compiler's passes, in the order they run. */
#include "graph/graph.h"

static enum sl_status infer(sl_graph *g)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < g->count && s == SL_OK; i++)
		if (g->nodes[i].kind == SLP_NODE_OP) s = slp_node_infer(g, i);
	return s;
}

const struct slp_pass slp_passes[SL_PASSES] = {[SL_PASS_INFER] = {"infer", "shapes and dtypes of every result", infer}};
