/* fuse: joins layers with their activations, and gradients with those of activations; the rest is in
 * fuse_linear.c, fuse_loss.c, fuse_norm.c, fuse_pool.c, fuse_sum.c, fuse_half.c, fuse_heads.c and fuse_rows.c.
 *
 * A layer includes an activation if nothing else reads the activation's argument.  The gradients of relu, sigmoid
 * and tanh read their results, so that is true in training, too. */
#include <stdlib.h>
#include <string.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/conv.h"
#include "op_list/linear.h"
#include "op_list/norm.h"
#include "op_list/pool.h"
#include "op_list/unary.h"
#include "starling/graph.h"
#include "starling/options.h"

/* ---- layers and their activations -------------------------------------------------------------------------------- */

static int activation_of(const struct slp_gnode *n)
{
	for (int i = SL_IDENTITY + 1; i < SL_ACTIVATIONS; i++)
		if (slp_node_is(n, slp_activations[i].op)) return i;
	return SL_IDENTITY;
}

static bool takes_activation(const struct slp_gnode *n)
{
	static const struct sl_op *const layers[] = {&slp_op_linear,         &slp_op_conv2d,
	                                             &slp_op_conv2d_lowered, &slp_op_batch_norm,
	                                             &slp_op_batch_norm_sum, &slp_op_batch_norm_infer};
	for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
		if (slp_node_is(n, layers[i])) return slp_node_number(n, "activation") == SL_IDENTITY;
	return false;
}

static void fuse_activation(struct slp_walk *w, int node, int *uses)
{
	struct slp_gnode *n = &w->g->nodes[node], *layer;
	int activation = activation_of(n);
	if (activation == SL_IDENTITY || n->in[0].out != 0) return;
	layer = &w->g->nodes[n->in[0].node];
	if (!takes_activation(layer) || uses[slp_value_id(n->in[0])] != 1) return;
	slp_node_set_int(layer, "activation", activation);
	uses[slp_value_id(n->in[0])] = uses[node * SLP_MAX_OUTPUTS];
	slp_walk_replace(w, (struct slp_value){node, 0}, n->in[0]);
	layer->name = n->name;
	slp_graph_kill(w->g, node);
}

static enum sl_status fuse_activations(sl_graph *g)
{
	struct slp_walk w;
	int *uses = slp_graph_uses(g);
	if (!uses) return slp_pass_no_memory("fuse");
	if (!slp_walk_begin(&w, g)) return free(uses), SL_ENOMEM;
	for (int i = 0; i < g->count; i++) {
		slp_walk_node(&w, i);
		if (g->nodes[i].kind == SLP_NODE_OP && !g->nodes[i].dead) fuse_activation(&w, i, uses);
	}
	slp_walk_end(&w);
	free(uses);
	return slp_graph_compact(g) ? SL_OK : sl_error();
}

/* ---- gradients through relu -------------------------------------------------------------------------------------- */

/* The node becomes op with these attributes, `relu` set, on other arguments. */
static enum sl_status become(sl_graph *g, int node, const struct sl_op *op, const void *attrs, int nin,
                             const struct slp_value *in)
{
	bool backward = g->nodes[node].backward;
	if (!slp_graph_rewrite(g, node, op, attrs, nin, in)) return slp_pass_no_memory("fuse");
	g->nodes[node].backward = backward;
	slp_node_set_int(&g->nodes[node], "relu", true);
	return slp_node_infer(g, node);
}

/* Fuses relu_grad(pool_grad(…), x) if x, the input of the pooling, is a result of relu. */
static enum sl_status fuse_pool_grad(sl_graph *g, int node, const int *uses)
{
	const struct slp_gnode *n = &g->nodes[node];
	if (!slp_node_is(n, &slp_op_relu_grad) || uses[slp_value_id(n->in[0])] != 1) return SL_OK;
	const struct slp_gnode *max = slp_value_op(g, n->in[0], &slp_op_max_pool2d_grad);
	const struct slp_gnode *pool = max ? max : slp_value_op(g, n->in[0], &slp_op_avg_pool2d_grad);
	if (!pool || slp_node_number(pool, "relu") || (max && !slp_value_equal(max->in[0], n->in[1]))) return SL_OK;
	struct slp_value in[] = {n->in[1], pool->in[pool->nin - 1]};
	return become(g, node, pool->op, pool->attrs.bytes, 2, in);
}

/* Fuses batch_norm_grad(relu_grad(dy, y), …). */
static enum sl_status fuse_norm_grad(sl_graph *g, int node, const int *uses)
{
	const struct slp_gnode *n = &g->nodes[node];
	if (!slp_node_is(n, &slp_op_batch_norm_grad) || slp_node_number(n, "relu")) return SL_OK;
	const struct slp_gnode *slope = slp_value_op(g, n->in[0], &slp_op_relu_grad);
	if (!slope || uses[slp_value_id(n->in[0])] != 1) return SL_OK;
	struct slp_value in[6] = {slope->in[0], n->in[1], n->in[2], n->in[3], n->in[4], slope->in[1]};
	return become(g, node, n->op, n->attrs.bytes, 6, in);
}

/* The operands of these are computed and never written; gamma is read at the place of the norm. */
static enum sl_status fuse_slopes(sl_graph *g)
{
	int *uses = slp_graph_uses(g);
	enum sl_status s = uses ? SL_OK : slp_pass_no_memory("fuse");
	for (int i = 0; i < g->count && s == SL_OK; i++) {
		s = fuse_pool_grad(g, i, uses);
		if (s == SL_OK) s = fuse_norm_grad(g, i, uses);
	}
	free(uses);
	return s == SL_OK ? slp_pass_dead(g) : s;
}

enum sl_status slp_pass_fuse(sl_graph *g)
{
	enum sl_status s = slp_fuse_heads(g);
	if (s == SL_OK) s = slp_fuse_rows(g);
	if (s == SL_OK) s = slp_fuse_losses(g);
	if (s == SL_OK) s = slp_fuse_norms(g);
	if (s == SL_OK) s = fuse_activations(g);
	if (s == SL_OK) s = fuse_slopes(g);
	if (s == SL_OK) s = slp_fuse_pool(g);
	if (s == SL_OK) s = slp_fuse_linear(g);
	if (s == SL_OK) s = slp_fuse_sums(g);
	if (s == SL_OK) s = slp_fuse_half(g);
	return s;
}
