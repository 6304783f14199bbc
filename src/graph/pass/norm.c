/* norm: a batch normalisation with given statistics becomes part of the convolution or the dense layer before it, if
 * nothing else reads that layer's result: its weights and bias change (norm_fold), which costs nothing where plans keep
 * them (hoist.c). */
#include <stdlib.h>

#include "graph/pass/pass.h"
#include "op_list/conv.h"
#include "op_list/linear.h"
#include "op_list/norm.h"
#include "starling/graph.h"
#include "starling/options.h"

/* The layer before the normalisation, if it can include it; else NULL. */
static const struct slp_gnode *layer_of(const struct slp_walk *w, const struct slp_gnode *norm, const int *uses)
{
	const struct slp_gnode *n = &w->g->nodes[norm->in[0].node];
	bool layer = n->kind == SLP_NODE_OP &&
	             (n->op == &slp_op_conv2d || n->op == &slp_op_conv3d || n->op == &slp_op_linear);
	if (!layer || uses[slp_value_id(norm->in[0])] != 1 || slp_node_number(n, "activation") != SL_IDENTITY)
		return NULL;
	/* Rows of w must be channels, and x's last axis of a dense layer is not always axis 1. */
	if (n->op == &slp_op_linear && (!slp_node_number(n, "tw") || n->types[0].shape.ndim != 2)) return NULL;
	for (int i = 0; i < n->nin; i++)
		if (!slp_walk_may_read(w, n->in[i])) return NULL;
	for (int i = 1; i < norm->nin; i++) {
		if (!slp_walk_may_read(w, norm->in[i])) return NULL;
		if (slp_value_type(w->g, norm->in[i])->dtype != n->types[0].dtype) return NULL; /* not of a half type */
	}
	return n;
}

/* Replaces the normalisation's node by the layer. */
static enum sl_status fold(sl_graph *g, int node, int layer)
{
	const struct slp_gnode *norm = &g->nodes[node], *n = &g->nodes[layer];
	struct slp_value x = n->in[0];
	struct slp_value in[] = {n->in[1], norm->in[1], norm->in[2], norm->in[3], norm->in[4], {0, 0}};
	struct slp_norm_fold_attrs attrs = {slp_node_number(norm, "eps")};
	int activation = (int)slp_node_number(norm, "activation"), nin = 5;
	if (n->nin == 3) in[nin++] = n->in[2];
	int made = slp_graph_add_op(g, n->at, NULL, &slp_op_norm_fold, &attrs, nin, in);
	if (made < 0) return slp_pass_no_memory("norm");
	slp_graph_before(g, made, node);
	struct slp_value layer_in[] = {x, {made, 0}, {made, 1}};
	n = &g->nodes[layer];
	if (!slp_graph_rewrite(g, node, n->op, n->attrs.bytes, 3, layer_in)) return slp_pass_no_memory("norm");
	slp_node_set_int(&g->nodes[node], "activation", activation);
	slp_graph_kill(g, layer);
	enum sl_status s = slp_node_infer(g, made);
	return s == SL_OK ? slp_node_infer(g, node) : s;
}

enum sl_status slp_pass_norm(sl_graph *g)
{
	struct slp_walk w;
	if (!slp_layout_on_cpu(g) && !slp_layout_on_gpu(g)) return SL_OK;
	int count = g->count, *uses = slp_graph_uses(g);
	if (!uses) return slp_pass_no_memory("norm");
	if (!slp_walk_begin(&w, g)) return free(uses), SL_ENOMEM;
	enum sl_status s = SL_OK;
	for (int i = 0; i < count && s == SL_OK; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		bool norm = n->kind == SLP_NODE_OP && !n->dead && n->op == &slp_op_batch_norm_infer;
		const struct slp_gnode *layer = norm ? layer_of(&w, n, uses) : NULL;
		if (layer) s = fold(g, i, (int)(layer - g->nodes));
	}
	slp_walk_end(&w);
	free(uses);
	return s == SL_OK && !slp_graph_compact(g) ? sl_error() : s;
}
