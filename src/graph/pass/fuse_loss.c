/* fuse, losses of classifiers on GPUs: where a program computes softmax_cross_entropy and its gradient, and reads the losses
 * after that only, both are one operation, which reads the logits once. */
#include "graph/pass/pass.h"
#include "op_list/loss.h"
#include "starling/graph.h"

/* The node that computes the losses whose gradient a node computes; -1: there is none. */
static int loss_of(const sl_graph *g, const struct slp_users *u, int node)
{
	const struct slp_gnode *n = &g->nodes[node];
	for (int i = slp_users_first(u, n->in[1]); i >= 0; i = u->list[i].next) {
		int user = u->list[i].node;
		if (user < 0 || user > node || !slp_node_is(&g->nodes[user], &slp_op_softmax_cross_entropy)) continue;
		const struct slp_gnode *loss = &g->nodes[user];
		if (slp_value_equal(loss->in[0], n->in[1]) && slp_value_equal(loss->in[1], n->in[2])) return user;
	}
	return -1;
}

/* Whether the losses are read after a node only, and their operands are the same there. */
static bool may_wait(const sl_graph *g, const struct slp_users *u, int loss, int node)
{
	const struct slp_gnode *n = &g->nodes[loss];
	for (int i = slp_users_first(u, (struct slp_value){loss, 0}); i >= 0; i = u->list[i].next)
		if (u->list[i].node >= 0 && u->list[i].node <= node) return false;
	return slp_users_stays(u, n->in[0], loss, node) && slp_users_stays(u, n->in[1], loss, node);
}

static enum sl_status join(sl_graph *g, struct slp_users *u, int node)
{
	struct slp_gnode n = g->nodes[node];
	int loss = loss_of(g, u, node);
	if (loss < 0 || !may_wait(g, u, loss, node)) return SL_OK;
	struct slp_value in[] = {n.in[0], n.in[1], n.in[2]};
	if (!slp_users_rewrite(u, node, &slp_op_softmax_cross_entropy_both, NULL, 3, in))
		return slp_pass_no_memory("fuse");
	g->nodes[node].backward = n.backward;
	g->nodes[node].repeat = n.repeat;
	slp_users_replace(u, (struct slp_value){loss, 0}, (struct slp_value){node, 1});
	slp_users_kill(u, loss);
	return slp_node_infer(g, node);
}

enum sl_status slp_fuse_losses(sl_graph *g)
{
	struct slp_users u;
	enum sl_status s = SL_OK;
	if (!slp_layout_on_gpu(g)) return SL_OK;
	if (!slp_users_find(&u, g)) return SL_ENOMEM;
	for (int i = 0; i < g->count && s == SL_OK; i++)
		if (slp_node_is(&g->nodes[i], &slp_op_softmax_cross_entropy_grad)) s = join(g, &u, i);
	slp_users_free(&u);
	return s == SL_OK ? slp_pass_dead(g) : s;
}
