/* fuse, sums of gradients: where a weight is used several times, as in a loop over time, autograd adds one product
 * after another. Each product becomes one that its kernel adds to the sum (dot_add, linear_grad_add), whose memory the
 * result takes: a gradient needs its memory once, whatever the number of steps.
 *
 * The order of the sums stays. Half types are left out: their kernels add in float32 and round once, which is not
 * faster here. */
#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/binary.h"
#include "op_list/linear.h"
#include "starling/graph.h"
#include "starling/primitives.h"

/* A product and its addition: the addition, the sum so far, the product. */
struct addition {
	int node;
	struct slp_value sum, product;
};

/* The place of a node in the coming order. */
static int place(const sl_graph *g, int node)
{
	return g->nodes[node].before >= 0 ? g->nodes[node].before : node;
}

/* Whether nothing else reads the product or the sum, and the sum is computed before the product. */
static bool find_addition(const sl_graph *g, const struct slp_users *u, struct slp_value product, struct addition *a)
{
	if (slp_users_count(u, product) != 1) return false;
	struct slp_user user = u->list[slp_users_first(u, product)];
	if (user.node < 0) return false;
	const struct slp_gnode *n = &g->nodes[user.node];
	enum sl_dtype dtype = n->types[0].dtype;
	if (!slp_node_is(n, &slp_op_add) || !n->backward || (dtype != SL_FLOAT32 && dtype != SL_FLOAT64)) return false;
	*a = (struct addition){user.node, n->in[1 - user.arg], product};
	return g->nodes[a->sum.node].kind == SLP_NODE_OP && slp_users_count(u, a->sum) == 1 &&
	       slp_type_equal(slp_value_type(g, a->sum), &n->types[0]) &&
	       slp_type_equal(slp_value_type(g, product), &n->types[0]) &&
	       place(g, a->sum.node) < place(g, product.node);
}

static void take_over(struct slp_users *u, struct slp_value from, int by, int out)
{
	slp_users_replace(u, from, (struct slp_value){by, out});
	slp_users_kill(u, from.node);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* The product is computed at the place of the addition: its factors must be unchanged there. */
static bool may_wait(const sl_graph *g, const struct slp_users *u, int product, int until)
{
	const struct slp_gnode *n = &g->nodes[product];
	return slp_users_stays(u, n->in[0], product, until) && slp_users_stays(u, n->in[1], product, until);
}

static enum sl_status add_product(sl_graph *g, struct slp_users *u, int node)
{
	struct addition a;
	const struct slp_gnode *n = &g->nodes[node];
	if (!slp_node_is(n, &slp_op_dot) || n->types[0].shape.ndim != 2) return SL_OK;
	if (!find_addition(g, u, (struct slp_value){node, 0}, &a) || !may_wait(g, u, node, a.node)) return SL_OK;
	struct slp_value in[] = {a.sum, n->in[0], n->in[1]};
	struct sl_dot_opts opts = {slp_node_number(n, "ta") != 0, slp_node_number(n, "tb") != 0};
	if (!slp_users_rewrite(u, a.node, &slp_op_dot_add, &opts, 3, in)) return slp_pass_no_memory("fuse");
	slp_users_kill(u, node);
	return slp_node_infer(g, a.node);
}

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static enum sl_status add_layer(sl_graph *g, struct slp_users *u, int node)
{
	struct addition w, b;
	if (!slp_node_is(&g->nodes[node], &slp_op_linear_grad)) return SL_OK;
	if (!find_addition(g, u, (struct slp_value){node, 1}, &w) ||
	    !find_addition(g, u, (struct slp_value){node, 2}, &b))
		return SL_OK;
	struct slp_gnode n = g->nodes[node];
	struct slp_value in[] = {w.sum, b.sum, n.in[0], n.in[1], n.in[2], n.nin > 3 ? n.in[3] : n.in[2]};
	int more = slp_graph_add_op(g, n.at, n.name, &slp_op_linear_grad_add, n.attrs.bytes, 2 + n.nin, in);
	if (more < 0 || !slp_users_add(u, more)) return slp_pass_no_memory("fuse");
	g->nodes[more].backward = n.backward;
	g->nodes[more].repeat = n.repeat;
	slp_graph_before(g, more, node);
	take_over(u, (struct slp_value){w.node, 0}, more, 0);
	take_over(u, (struct slp_value){b.node, 0}, more, 1);
	take_over(u, (struct slp_value){node, 0}, more, 2);
	return slp_node_infer(g, more);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

enum sl_status slp_fuse_sums(sl_graph *g)
{
	struct slp_users u;
	enum sl_status s = SL_OK;
	if (!slp_users_find(&u, g)) return SL_ENOMEM;
	for (int i = 0, count = g->count; i < count && s == SL_OK; i++) {
		if (g->nodes[i].kind != SLP_NODE_OP || g->nodes[i].dead) continue;
		s = add_product(g, &u, i);
		if (s == SL_OK) s = add_layer(g, &u, i); /* the next sum is a result of the new node */
	}
	slp_users_free(&u);
	return s == SL_OK ? slp_pass_dead(g) : s;
}
