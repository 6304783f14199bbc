/* chain, reductions on GPUs: an expression of elementwise functions whose result is only reduced, or the argument of a
 * softmax, becomes one operation with that, if GPUs compile it: then its result is never stored. */
#include "compiled.h"
#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/binary.h"
#include "op_list/reduce.h"
#include "starling/graph.h"

/* The node as an expression; false: it is none. */
static bool expression_of(const struct slp_gnode *n, struct slp_fused_attrs *f)
{
	if (n->kind != SLP_NODE_OP || n->dead || !slp_is_float(n->types[0].dtype)) return false;
	*f = (struct slp_fused_attrs){{0}, {0}};
	if (n->op == &slp_op_fused) memcpy(f, n->attrs.bytes, sizeof *f);
	else if (!slp_fused_takes(n->op) || slp_fused_add(f, n->op, n->attrs.bytes, 0, 1) < 0) return false;
	return true;
}

/* Whether nothing else reads the expression, and its operands are the same at the place of its reader. */
static bool may_wait(const struct slp_users *u, struct slp_value v, int until)
{
	const struct slp_gnode *n = &u->g->nodes[v.node];
	if (slp_users_count(u, v) != 1) return false;
	for (int i = 0; i < n->nin; i++)
		if (!slp_users_stays(u, n->in[i], v.node, until)) return false;
	return true;
}

static enum sl_status join(sl_graph *g, struct slp_users *u, int node)
{
	struct slp_gnode n = g->nodes[node], inner;
	struct slp_fused_attrs f, both;
	if (n.kind != SLP_NODE_OP || n.dead || n.nin != 1) return SL_OK;
	inner = g->nodes[n.in[0].node];
	if (!expression_of(&inner, &f) || !slp_compiled_wanted(sl_shape_size(inner.types[0].shape)) ||
	    !slp_fused_reduce_of(&f, &inner.types[0], n.op, n.attrs.bytes, &both) || !may_wait(u, n.in[0], node))
		return SL_OK;
	struct slp_value from = n.in[0];
	if (!slp_users_rewrite(u, node, &slp_op_fused_reduce, &both, inner.nin, inner.in))
		return slp_pass_no_memory("chain");
	g->nodes[node].backward = n.backward;
	g->nodes[node].repeat = n.repeat;
	slp_users_kill(u, from.node);
	return slp_node_infer(g, node);
}

enum sl_status slp_fuse_reductions(sl_graph *g)
{
	struct slp_users u;
	enum sl_status s = SL_OK;
	if (!slp_layout_on_gpu(g)) return SL_OK;
	if (!slp_users_find(&u, g)) return SL_ENOMEM;
	for (int i = 0; i < g->count && s == SL_OK; i++) s = join(g, &u, i);
	slp_users_free(&u);
	return s;
}
