/* fold: computes operations on constants once, when the program is compiled.
 *
 * Random numbers and changes of parameters are not folded, nor are results larger than 64 KiB, which would take memory
 * for as long as the program lives. */
#include <stdlib.h>

#include "graph/pass/pass.h"
#include "op.h"
#include "starling/autograd.h"
#include "starling/graph.h"

enum { LARGEST = 64 << 10 };

static bool is_constant(const sl_graph *g, const struct slp_gnode *n)
{
	if (n->kind != SLP_NODE_OP || n->dead || n->nout != 1 || slp_node_has_effect(n)) return false;
	if (slp_attr_find(n->op, "seed") || slp_attr_find(n->op, "stream")) return false;
	for (int i = 0; i < n->nin; i++)
		if (g->nodes[n->in[i].node].kind != SLP_NODE_CONST) return false;
	return (size_t)sl_shape_size(n->types[0].shape) * sl_dtype_size(n->types[0].dtype) <= LARGEST;
}

static enum sl_status fold(sl_graph *g, int node, sl_tensor **values)
{
	sl_tensor *out[SLP_MAX_OUTPUTS] = {NULL};
	struct slp_gnode *n = &g->nodes[node];
	for (int i = 0; i < n->nin; i++) values[slp_value_id(n->in[i])] = g->nodes[n->in[i].node].tensor;
	enum sl_status s = slp_node_apply(g, node, values, (struct slp_rng){0}, out);
	if (s == SL_OK) slp_graph_make_const(g, node, out[0]);
	return s;
}

enum sl_status slp_pass_fold(sl_graph *g)
{
	sl_tensor **values = slp_calloc((size_t)g->count * SLP_MAX_OUTPUTS + 1, sizeof *values);
	enum sl_status s = values ? SL_OK : slp_pass_no_memory("fold");
	SL_PAUSE
		SL_SCOPE
			for (int i = 0; s == SL_OK && i < g->count; i++)
				if (is_constant(g, &g->nodes[i])) s = fold(g, i, values);
	free(values);
	if (s != SL_OK) return s;
	return slp_pass_dead(g); /* constants that only folded nodes read */
}
