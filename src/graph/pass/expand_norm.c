/* chain, on GPUs: a batch normalisation with given statistics beside elementwise operations becomes an expression itself,
 * (x - center) * scale + shift with coefficients of channels (norm_affine), which costs nothing where plans keep them
 * (hoist.c).  So it is part of the chain before it or after it, in any layout; beside a half type the coefficients are
 * float32.  Those after a layer of their own type are part of that (norm.c). */
#include <stdlib.h>

#include "graph/pass/pass.h"
#include "op_fused.h"
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

static bool joins(const struct slp_users *u, int node)
{
	const sl_graph *g = u->g;
	const struct slp_gnode *n = &g->nodes[node];
	if (!slp_node_is(n, &slp_op_batch_norm_infer) || slp_node_number(n, "layout") == SLP_LAYOUT_NC16) return false;
	bool before = slp_users_count(u, n->in[0]) == 1 && is_elementwise(&g->nodes[n->in[0].node], &n->types[0]);
	return before || is_read_by_chains(u, (struct slp_value){node, 0});
}

/* Adds the coefficients before the node; -1 without memory. */
static int add_coefficients(sl_graph *g, int node)
{
	const struct slp_gnode *n = &g->nodes[node];
	struct slp_norm_affine_attrs a = {slp_node_number(n, "eps"), n->types[0].shape.ndim - 2};
	int made = slp_graph_add_op(g, n->at, NULL, &slp_op_norm_affine, &a, 4, n->in + 1);
	if (made < 0) return -1;
	slp_graph_before(g, made, node);
	g->nodes[made].backward = g->nodes[node].backward;
	g->nodes[made].repeat = g->nodes[node].repeat;
	return slp_node_infer(g, made) == SL_OK ? made : -1;
}

/* Of x, center, scale and shift. */
static struct slp_fused_attrs expression_of(const struct slp_gnode *n)
{
	struct slp_fused_attrs f = {{0}, {0}};
	const struct sl_op *activation = slp_activations[(int)slp_node_number(n, "activation")].op;
	int y = slp_fused_add(&f, &slp_op_sub, NULL, SLP_FUSED_INPUT, SLP_FUSED_INPUT + 1);
	y = slp_fused_add(&f, &slp_op_mul, NULL, y, SLP_FUSED_INPUT + 2);
	y = slp_fused_add(&f, &slp_op_add, NULL, y, SLP_FUSED_INPUT + 3);
	if (activation) slp_fused_add(&f, activation, NULL, y, 0);
	if (slp_node_number(n, "layout") == SLP_LAYOUT_NHWC) f.step[0] |= SLP_FUSED_NHWC;
	return f;
}

static enum sl_status expand(sl_graph *g, int node)
{
	struct slp_gnode n = g->nodes[node];
	struct slp_fused_attrs f = expression_of(&n);
	int of = add_coefficients(g, node);
	struct slp_value in[] = {n.in[0], {of, 0}, {of, 1}, {of, 2}};
	if (of < 0 || !slp_graph_rewrite(g, node, &slp_op_fused, &f, 4, in)) return slp_pass_no_memory("chain");
	g->nodes[node].backward = n.backward;
	g->nodes[node].repeat = n.repeat;
	return slp_node_infer(g, node);
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
