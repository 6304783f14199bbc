/* chain, on GPUs: a batch normalisation with given statistics beside elementwise operations becomes elementwise operations
 * itself, (x - center) * scale + shift with coefficients of channels (norm_affine), which costs nothing where plans keep them
 * (hoist.c).  So it is part of the chain before it or after it.  Those after a layer are part of that (norm.c). */
#include <stdlib.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/binary.h"
#include "op_list/norm.h"
#include "starling/graph.h"

/* Whether the node is an elementwise operation whose result has this type. */
static bool is_elementwise(const struct slp_gnode *n, const struct slp_type *type)
{
	return n->kind == SLP_NODE_OP && !n->dead && slp_fused_takes(n->op) && slp_type_equal(&n->types[0], type);
}

/* Whether only elementwise operations read v, with results of its type. */
static bool is_read_by_chains(const struct slp_users *u, struct slp_value v)
{
	const struct slp_type *type = slp_value_type(u->g, v);
	for (int i = slp_users_first(u, v); i >= 0; i = u->list[i].next)
		if (u->list[i].node < 0 || !is_elementwise(&u->g->nodes[u->list[i].node], type)) return false;
	return slp_users_count(u, v) > 0;
}

/* In the plain layout, of one type that is not rounded on the way. */
static bool is_simple(const sl_graph *g, const struct slp_gnode *n)
{
	enum sl_dtype dtype = n->types[0].dtype;
	if (slp_is_half(dtype) || slp_node_number(n, "layout") != SLP_LAYOUT_PLAIN) return false;
	for (int i = 0; i < n->nin; i++)
		if (slp_value_type(g, n->in[i])->dtype != dtype) return false;
	return true;
}

static bool joins(const struct slp_users *u, int node)
{
	const sl_graph *g = u->g;
	const struct slp_gnode *n = &g->nodes[node];
	if (!slp_node_is(n, &slp_op_batch_norm_infer) || !is_simple(g, n)) return false;
	bool before = slp_users_count(u, n->in[0]) == 1 && is_elementwise(&g->nodes[n->in[0].node], &n->types[0]);
	return before || is_read_by_chains(u, (struct slp_value){node, 0});
}

/* Adds a call before the node, as a part of it; -1 without memory. */
static int add(sl_graph *g, int node, const struct sl_op *op, const void *attrs, int nin, const struct slp_value *in)
{
	int made = slp_graph_add_op(g, g->nodes[node].at, NULL, op, attrs, nin, in);
	if (made < 0) return -1;
	slp_graph_before(g, made, node);
	g->nodes[made].backward = g->nodes[node].backward;
	g->nodes[made].repeat = g->nodes[node].repeat;
	return slp_node_infer(g, made) == SL_OK ? made : -1;
}

static int add_binary(sl_graph *g, int node, const struct sl_op *op, struct slp_value a, struct slp_value b)
{
	return a.node < 0 ? -1 : add(g, node, op, NULL, 2, (struct slp_value[]){a, b});
}

/* The node becomes the last of the operations. */
static enum sl_status become(sl_graph *g, int node, const struct sl_op *op, int nin, const struct slp_value *in)
{
	struct slp_gnode n = g->nodes[node];
	if (in[0].node < 0 || !slp_graph_rewrite(g, node, op, NULL, nin, in)) return slp_pass_no_memory("chain");
	g->nodes[node].backward = n.backward;
	g->nodes[node].repeat = n.repeat;
	return slp_node_infer(g, node);
}

static enum sl_status expand(sl_graph *g, int node)
{
	const struct slp_gnode *n = &g->nodes[node];
	struct slp_norm_affine_attrs a = {slp_node_number(n, "eps"), n->types[0].shape.ndim - 2};
	const struct sl_op *activation = slp_activations[(int)slp_node_number(n, "activation")].op;
	struct slp_value x = n->in[0];
	int of = add(g, node, &slp_op_norm_affine, &a, 4, n->in + 1);
	if (of < 0) return slp_pass_no_memory("chain");
	int centred = add_binary(g, node, &slp_op_sub, x, (struct slp_value){of, 0});
	int scaled = add_binary(g, node, &slp_op_mul, (struct slp_value){centred, 0}, (struct slp_value){of, 1});
	struct slp_value sum[] = {{scaled, 0}, {of, 2}};
	if (!activation) return become(g, node, &slp_op_add, 2, sum);
	int shifted = add_binary(g, node, &slp_op_add, sum[0], sum[1]);
	return become(g, node, activation, 1, &(struct slp_value){shifted, 0});
}

enum sl_status slp_expand_norms(sl_graph *g)
{
	struct slp_users u;
	enum sl_status s = SL_OK;
	int count = g->count;
	if (!slp_layout_on_gpu(g)) return SL_OK;
	if (!slp_users_find(&u, g)) return SL_ENOMEM;
	bool *joined = slp_calloc((size_t)count + 1, sizeof *joined);
	for (int i = 0; joined && i < count; i++) joined[i] = joins(&u, i);
	slp_users_free(&u);
	if (!joined) return slp_pass_no_memory("chain");
	for (int i = 0; i < count && s == SL_OK; i++)
		if (joined[i]) s = expand(g, i);
	free(joined);
	return s == SL_OK && !slp_graph_compact(g) ? sl_error() : s;
}
