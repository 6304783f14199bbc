/* chain: elementwise operations of one shape become one that passes over memory once.
 *
 * From each remaining operation, last ones first, a group grows towards its arguments: an argument joins if only the
 * group reads it.  The group must not move across writes to its operands, and must fit into one expression of
 * `fused`; an operation that does not fit begins a new group.  Arguments of other shapes are broadcast; their
 * computation is not repeated.  An expression joins as the operations that it consists of.  Reductions of such
 * expressions are in fuse_reduce.c, normalisations in expand_norm.c. */
#include <stdlib.h>
#include <string.h>

#include "graph/pass/pass.h"
#include "op_fused.h"
#include "op_inner.h"
#include "op_list/binary.h"
#include "starling/graph.h"

struct group {
	sl_graph *g;
	const struct slp_users *users;
	int nodes[SLP_FUSED_STEPS], count; /* in the order of the graph; the last one is the root */
	struct slp_value in[SLP_FUSED_INPUTS];
	int nin;
	struct slp_fused_attrs expression;
};

/* ---- members of a group ------------------------------------------------------------------------------------------ */

/* Whether a program's own operation can join: it has a CPU kernel and the data type of expressions. */
static bool takes_own(const sl_graph *g, const struct slp_gnode *n)
{
	struct slp_types types = SLP_ALL_OF(slp_promoted(n->types[0].dtype));
	return n->op->by_parts && slp_layout_on_cpu(g) && slp_kernel_for(n->op, types, SL_DEVICE_CPU).kernel;
}

static bool is_elementwise(const sl_graph *g, const struct slp_gnode *n)
{
	return n->kind == SLP_NODE_OP && !n->dead && slp_is_float(n->types[0].dtype) &&
	       (slp_fused_takes(n->op) || n->op == &slp_op_fused || takes_own(g, n));
}

static bool is_member(const struct group *s, int node)
{
	for (int i = 0; i < s->count; i++)
		if (s->nodes[i] == node) return true;
	return false;
}

/* Whether only the group reads it. */
static bool is_ours(const struct group *s, struct slp_value v)
{
	for (int i = slp_users_first(s->users, v); i >= 0; i = s->users->list[i].next)
		if (s->users->list[i].node < 0 || !is_member(s, s->users->list[i].node)) return false;
	return true;
}

/* Whether it can be computed at the place of the root. */
static bool can_move(const struct group *s, int node)
{
	const struct slp_gnode *n = &s->g->nodes[node];
	for (int i = 0; i < n->nin; i++)
		if (!slp_users_stays(s->users, n->in[i], node, s->nodes[s->count - 1])) return false;
	return true;
}

static bool may_join(const struct group *s, struct slp_value v)
{
	const struct slp_gnode *n = &s->g->nodes[v.node], *root = &s->g->nodes[s->nodes[s->count - 1]];
	return is_elementwise(s->g, n) && slp_type_equal(&n->types[0], &root->types[0]) && !is_member(s, v.node) &&
	       is_ours(s, v) && can_move(s, v.node);
}

/* ---- the expression ---------------------------------------------------------------------------------------------- */

static bool add_input(struct group *s, struct slp_value v)
{
	for (int i = 0; i < s->nin; i++)
		if (slp_value_equal(s->in[i], v)) return true;
	if (s->nin == SLP_FUSED_INPUTS) return false;
	s->in[s->nin++] = v;
	return true;
}

/* Inputs of the result's type come first, since the result may take the memory of the first, and those of another data type,
 * which is not the result's, last. */
enum { WHOLE, BROADCAST, OTHER, RANKS };

static int rank_of(const struct slp_type *input, const struct slp_type *result)
{
	if (slp_type_equal(input, result)) return WHOLE;
	return input->dtype == result->dtype ? BROADCAST : OTHER;
}

static bool collect_inputs(struct group *s)
{
	const struct slp_type *type = &s->g->nodes[s->nodes[s->count - 1]].types[0];
	s->nin = 0;
	for (int rank = WHOLE; rank < RANKS; rank++)
		for (int i = 0; i < s->count; i++) {
			const struct slp_gnode *n = &s->g->nodes[s->nodes[i]];
			for (int j = 0; j < n->nin; j++)
				if (!is_member(s, n->in[j].node) &&
				    rank_of(slp_value_type(s->g, n->in[j]), type) == rank && !add_input(s, n->in[j]))
					return false;
		}
	return true;
}

static int operand(const struct group *s, struct slp_value v, const int *results)
{
	for (int i = 0; i < s->count; i++)
		if (s->nodes[i] == v.node) return results[i];
	for (int i = 0; i < s->nin; i++)
		if (slp_value_equal(s->in[i], v)) return SLP_FUSED_INPUT + i;
	return 0;
}

/* Adds a member to the expression; the operand of its result, or -1. */
static int add_member(struct group *s, const struct slp_gnode *n, const int *results)
{
	int in[SLP_FUSED_INPUTS] = {0};
	struct slp_fused_attrs part;
	for (int i = 0; i < n->nin; i++) in[i] = operand(s, n->in[i], results);
	if (n->op != &slp_op_fused) return slp_fused_add(&s->expression, n->op, n->attrs.bytes, in[0], in[1]);
	memcpy(&part, n->attrs.bytes, sizeof part);
	return slp_fused_append(&s->expression, &part, in);
}

/* Whether a member is an expression of images in NHWC: then all members' operands are in it (layout.c). */
static bool is_nhwc(const struct group *s)
{
	for (int i = 0; i < s->count; i++) {
		const struct slp_gnode *n = &s->g->nodes[s->nodes[i]];
		struct slp_fused_attrs f;
		if (n->op != &slp_op_fused) continue;
		memcpy(&f, n->attrs.bytes, sizeof f);
		if (slp_fused_is_nhwc(&f)) return true;
	}
	return false;
}

/* Writes the expression of the group; false if it does not fit. */
static bool write_expression(struct group *s)
{
	int results[SLP_FUSED_STEPS];
	memset(&s->expression, 0, sizeof s->expression);
	if (!collect_inputs(s)) return false;
	for (int i = 0; i < s->count; i++) {
		results[i] = add_member(s, &s->g->nodes[s->nodes[i]], results);
		if (results[i] < 0) return false;
	}
	if (is_nhwc(s)) s->expression.step[0] |= SLP_FUSED_NHWC;
	return true;
}

/* ---- growing ----------------------------------------------------------------------------------------------------- */

/* Inserts a node into the group if the expression still fits. */
static bool join(struct group *s, int node)
{
	struct group before = *s;
	int i = s->count++;
	for (; i > 0 && before.nodes[i - 1] > node; i--) s->nodes[i] = before.nodes[i - 1];
	s->nodes[i] = node;
	if (write_expression(s)) return true;
	*s = before;
	return false;
}

/* The latest argument that may join and was not tried: users join before their arguments. */
static int next_candidate(const struct group *s, int below)
{
	int best = -1;
	for (int i = 0; i < s->count; i++) {
		const struct slp_gnode *n = &s->g->nodes[s->nodes[i]];
		for (int j = 0; j < n->nin; j++)
			if (n->in[j].node > best && n->in[j].node < below && may_join(s, n->in[j]))
				best = n->in[j].node;
	}
	return best;
}

static void grow(struct group *s)
{
	int node = s->nodes[0];
	while (s->count < SLP_FUSED_STEPS && (node = next_candidate(s, node)) >= 0) join(s, node);
}

static enum sl_status fuse(struct group *s)
{
	int root = s->nodes[s->count - 1];
	if (!slp_graph_rewrite(s->g, root, &slp_op_fused, &s->expression, s->nin, s->in))
		return slp_pass_no_memory("chain");
	for (int i = 0; i + 1 < s->count; i++) slp_graph_kill(s->g, s->nodes[i]);
	return slp_node_infer(s->g, root);
}

enum sl_status slp_pass_chain(sl_graph *g)
{
	struct slp_users users;
	enum sl_status s = slp_expand_norms(g);
	if (s != SL_OK) return s;
	if (!slp_users_find(&users, g)) return SL_ENOMEM;
	for (int i = g->count - 1; i >= 0 && s == SL_OK; i--) {
		if (!is_elementwise(g, &g->nodes[i])) continue;
		struct group group = {.g = g, .users = &users, .nodes = {i}, .count = 1};
		grow(&group);
		if (group.count > 1) s = fuse(&group);
	}
	slp_users_free(&users);
	if (s == SL_OK) s = slp_fuse_reductions(g);
	return s == SL_OK ? slp_pass_dead(g) : s;
}
