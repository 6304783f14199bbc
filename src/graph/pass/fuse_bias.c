/* layout, gradients of convolutions' biases on GPUs: where a convolution's gradient comes from a pooling's, in the plain
 * layout, the kernel of the pooling sums it for the bias, too, which needs no second pass over it. */
#include <string.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/conv.h"
#include "op_list/pool.h"
#include "starling/graph.h"

/* The form of a gradient of a pooling that sums; NULL: the node is none. */
static const struct sl_op *summing(const struct slp_gnode *n)
{
	if (slp_node_is(n, &slp_op_avg_pool2d_grad)) return &slp_op_avg_pool2d_grad_sums;
	return slp_node_is(n, &slp_op_max_pool2d_grad) ? &slp_op_max_pool2d_grad_sums : NULL;
}

static bool is_plain(const struct slp_gnode *n)
{
	return slp_node_number(n, "x_layout") == SLP_LAYOUT_PLAIN && slp_node_number(n, "y_layout") == SLP_LAYOUT_PLAIN;
}

/* Whether a node sums its second argument, a tensor in the plain layout, for a bias of its type. */
static bool sums_bias(const struct slp_gnode *n)
{
	bool lowered = slp_node_is(n, &slp_op_conv2d_grad_weights_lowered);
	if (!lowered && !slp_node_is(n, &slp_op_conv2d_grad_weights)) return false;
	if (lowered && (!is_plain(n) || slp_node_number(n, "wide"))) return false;
	const int *crop = lowered ? slp_node_attr(n, "crop") : NULL;
	return slp_node_number(n, "bias") != 0 && !(crop && (crop[0] || crop[1]));
}

static enum sl_status sum_with_pool(sl_graph *g, struct slp_users *u, int node)
{
	struct slp_value dy = g->nodes[node].in[1], in[2];
	struct slp_gnode pool = g->nodes[dy.node];
	const struct sl_op *op = dy.out == 0 ? summing(&pool) : NULL;
	char attrs[SLP_MAX_ATTRS];
	if (!op || !is_plain(&pool)) return SL_OK;
	memcpy(in, pool.in, (size_t)pool.nin * sizeof *in);
	memcpy(attrs, pool.attrs.bytes, sizeof attrs);
	if (!slp_users_rewrite(u, dy.node, op, attrs, pool.nin, in)) return slp_pass_no_memory("layout");
	g->nodes[dy.node].backward = pool.backward;
	g->nodes[dy.node].repeat = pool.repeat;
	slp_users_replace(u, (struct slp_value){node, 1}, (struct slp_value){dy.node, 1});
	slp_node_set_int(&g->nodes[node], "bias", false);
	enum sl_status s = slp_node_infer(g, dy.node);
	return s == SL_OK ? slp_node_infer(g, node) : s;
}

enum sl_status slp_fuse_biases(sl_graph *g)
{
	struct slp_users u;
	enum sl_status s = SL_OK;
	if (!slp_users_find(&u, g)) return SL_ENOMEM;
	for (int i = 0; i < g->count && s == SL_OK; i++)
		if (sums_bias(&g->nodes[i])) s = sum_with_pool(g, &u, i);
	slp_users_free(&u);
	return s;
}
