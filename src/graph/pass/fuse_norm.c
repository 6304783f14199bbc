/* fuse, batch normalisation in training on GPUs: a sum with another tensor, as in residual connections, becomes a part of it
 * (batch_norm_sum), which may then include an activation. */
#include <string.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/binary.h"
#include "op_list/norm.h"
#include "starling/graph.h"

/* Whether nothing from `first` to `last` reads a value. */
static bool is_unread(const struct slp_users *u, struct slp_value v, int first, int last)
{
	for (int i = slp_users_first(u, v); i >= 0; i = u->list[i].next)
		if (u->list[i].node >= first && u->list[i].node <= last) return false;
	return true;
}

/* Whether a norm can be computed at the place of a later node: its operands are the same there, and neither its statistics
 * nor the running ones are read before. */
static bool may_wait(const sl_graph *g, const struct slp_users *u, int norm, int until)
{
	const struct slp_gnode *n = &g->nodes[norm];
	for (int i = 0; i < n->nin; i++)
		if (!slp_users_stays(u, n->in[i], norm + 1, until)) return false;
	for (int i = 0; i < 2; i++)
		if (!is_unread(u, n->in[3 + i], norm + 1, until) ||
		    !is_unread(u, (struct slp_value){norm, 1 + i}, norm + 1, until))
			return false;
	return true;
}

/* The norm that a node alone reads as its argument `arg`, to be computed at its place; -1: there is none. */
static int norm_of(const sl_graph *g, const struct slp_users *u, int node, int arg)
{
	const struct slp_gnode *n = &g->nodes[node];
	struct slp_value v = n->in[arg];
	const struct slp_gnode *norm = slp_value_op(g, v, &slp_op_batch_norm);
	if (!norm || v.out != 0 || slp_users_count(u, v) != 1) return -1;
	if (norm->backward != n->backward || norm->repeat != n->repeat) return -1;
	if (slp_node_number(norm, "activation") != SL_IDENTITY) return -1;
	return may_wait(g, u, v.node, node) ? v.node : -1;
}

static enum sl_status join(sl_graph *g, struct slp_users *u, int node, int norm, struct slp_value r)
{
	struct slp_gnode sum = g->nodes[node];
	char attrs[SLP_MAX_ATTRS];
	struct slp_value in[6];
	memcpy(attrs, g->nodes[norm].attrs.bytes, sizeof attrs);
	memcpy(in, g->nodes[norm].in, 5 * sizeof *in);
	in[5] = r;
	if (!slp_users_rewrite(u, node, &slp_op_batch_norm_sum, attrs, 6, in)) return slp_pass_no_memory("fuse");
	g->nodes[node].backward = sum.backward;
	g->nodes[node].repeat = sum.repeat;
	for (int i = 1; i < 3; i++) slp_users_replace(u, (struct slp_value){norm, i}, (struct slp_value){node, i});
	slp_users_kill(u, norm);
	return slp_node_infer(g, node);
}

static enum sl_status add_to_norm(sl_graph *g, struct slp_users *u, int node)
{
	const struct slp_gnode *n = &g->nodes[node];
	if (!slp_node_is(n, &slp_op_add)) return SL_OK;
	for (int i = 0; i < 2; i++)
		if (!slp_type_equal(slp_value_type(g, n->in[i]), &n->types[0])) return SL_OK;
	for (int i = 0; i < 2; i++) {
		int norm = norm_of(g, u, node, i);
		if (norm >= 0) return join(g, u, node, norm, n->in[1 - i]);
	}
	return SL_OK;
}

enum sl_status slp_fuse_norms(sl_graph *g)
{
	struct slp_users u;
	enum sl_status s = SL_OK;
	if (!slp_layout_on_gpu(g)) return SL_OK;
	if (!slp_users_find(&u, g)) return SL_ENOMEM;
	for (int i = 0; i < g->count && s == SL_OK; i++) s = add_to_norm(g, &u, i);
	slp_users_free(&u);
	return s == SL_OK ? slp_pass_dead(g) : s;
}
