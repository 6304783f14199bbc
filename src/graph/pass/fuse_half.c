/* fuse, convolutions under autocast: kernels that reorder their parameters anyway, on CPUs and in NHWC on GPUs, read
 * float32 parameters without a cast to a half type; on CPUs they add gradients in float32, and return them in float32
 * if all readers cast them to it. */
#include <stdlib.h>
#include <string.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/conv.h"
#include "op_list/move.h"
#include "starling/graph.h"

static bool is_widening(const sl_graph *g, const struct slp_user *u)
{
	const struct slp_gnode *n = u->node < 0 ? NULL : &g->nodes[u->node];
	return n && slp_node_is(n, &slp_op_cast) && n->types[0].dtype == SL_FLOAT32;
}

/* Whether all readers of both results cast them to float32. */
static bool is_widened(const sl_graph *g, const struct slp_users *users, int node)
{
	int count = 0;
	for (int k = 0; k < 2; k++)
		for (int i = slp_users_first(users, (struct slp_value){node, k}); i >= 0; i = users->list[i].next) {
			if (!is_widening(g, &users->list[i])) return false;
			count++;
		}
	return count > 0;
}

static void set_wide(struct slp_gnode *n)
{
	slp_node_lower_conv(n);
	slp_node_set_int(n, "wide", true);
}

static enum sl_status widen(sl_graph *g, const struct slp_users *users)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < g->count && s == SL_OK; i++) {
		struct slp_gnode *n = &g->nodes[i];
		if (!slp_node_is(n, &slp_op_conv2d_grad_weights) || !slp_is_half(n->types[0].dtype)) continue;
		if (!is_widened(g, users, i)) continue;
		set_wide(n);
		s = slp_node_infer(g, i);
	}
	return s;
}

/* Turns a cast to the type of its argument into the argument. */
static void skip_casts(struct slp_walk *w)
{
	for (int i = 0; i < w->g->count; i++) {
		struct slp_value cast = {i, 0};
		slp_walk_node(w, i);
		const struct slp_gnode *n = &w->g->nodes[i];
		if (!slp_node_is(n, &slp_op_cast) || !slp_value_op(w->g, n->in[0], &slp_op_conv2d_grad_weights_lowered))
			continue;
		if (!slp_type_equal(&n->types[0], slp_value_type(w->g, n->in[0]))) continue;
		if (slp_walk_may_replace(w, cast, n->in[0])) slp_walk_replace(w, cast, n->in[0]);
	}
}

/* The float32 value whose cast is the argument, if it is unchanged at that place. */
static bool parameter_of(const sl_graph *g, const struct slp_users *users, int node, int arg, struct slp_value *v)
{
	struct slp_value half = g->nodes[node].in[arg];
	const struct slp_gnode *cast = slp_value_op(g, half, &slp_op_cast);
	if (!cast || slp_value_type(g, cast->in[0])->dtype != SL_FLOAT32) return false;
	*v = cast->in[0];
	return slp_is_half(cast->types[0].dtype) && slp_users_stays(users, *v, half.node, node);
}

/* Convolutions in N16 compute in float32 from rounded operands, as single calls do; so do all on CPUs without instructions
 * for bfloat16, which would not round float32 parameters. */
static enum sl_status take_parameters(sl_graph *g, const struct slp_users *users, bool cpu)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < g->count && s == SL_OK; i++) {
		struct slp_gnode *n = &g->nodes[i];
		struct slp_value v[3];
		bool conv = slp_node_is(n, &slp_op_conv2d) || slp_node_is(n, &slp_op_conv2d_grad_data);
		for (int j = 1; j < n->nin && j < 3 && conv; j++) conv = parameter_of(g, users, i, j, &v[j]);
		if (!conv || !slp_is_half(n->types[0].dtype)) continue;
		if (cpu ? slp_layout_prefers_n16(g, n) || !slp_bf16_available() : !slp_layout_nhwc(g, n)) continue;
		for (int j = 1; j < n->nin; j++) n->in[j] = v[j];
		set_wide(n);
		s = slp_node_infer(g, i);
	}
	return s;
}

enum sl_status slp_fuse_half(sl_graph *g)
{
	struct slp_users users;
	struct slp_walk w;
	bool cpu = slp_layout_on_cpu(g);
	if (!slp_users_find(&users, g)) return slp_pass_no_memory("fuse");
	enum sl_status s = cpu ? widen(g, &users) : SL_OK;
	if (s == SL_OK) s = take_parameters(g, &users, cpu);
	slp_users_free(&users);
	if (s != SL_OK) return s;
	if (!slp_walk_begin(&w, g)) return SL_ENOMEM;
	skip_casts(&w);
	slp_walk_end(&w);
	return slp_pass_dead(g);
}
