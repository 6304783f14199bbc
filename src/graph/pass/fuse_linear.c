/* fuse, fully connected layers: the three operations on one gradient that autograd makes of a layer become linear_grad;
 * with an update by plain gradient descent, linear_sgd.
 *
 * The pass recognises them by the values that they compute: dw = xᵀ·dy (or its transpose), db = the sum of dy's rows,
 * dx = dy·wᵀ. */
#include <stdlib.h>
#include <string.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/linear.h"
#include "op_list/move.h"
#include "op_list/optim.h"
#include "op_list/reduce.h"
#include "starling/graph.h"
#include "starling/options.h"

struct layer {
	int dw, db, dx, slope; /* nodes; -1: none */
	bool tw, reshaped;     /* reshaped: a reshape is between the slope and these */
	bool wide;             /* db is a sum in float32 of dy in a half type */
	struct slp_value x, w, dy, v;
	int activation; /* of slope */
	int first;      /* of the nodes, by position */
};

/* ---- finding them ------------------------------------------------------------------------------------------------ */

static bool is_row_sum(const struct slp_gnode *n)
{
	const int *axes = slp_node_attr(n, "axes");
	return slp_node_is(n, &slp_op_sum) && slp_node_number(n, "naxes") == 1 && axes[0] == 0 &&
	       !slp_node_number(n, "keepdims");
}

/* A product of matrices whose second factor is not transposed, the first as given. */
static bool is_product(const sl_graph *g, const struct slp_gnode *n, bool ta)
{
	return slp_node_is(n, &slp_op_dot) && (slp_node_number(n, "ta") != 0) == ta &&
	       slp_value_type(g, n->in[0])->shape.ndim == 2 && slp_value_type(g, n->in[1])->shape.ndim == 2;
}

/* dwᵀ·… with dy on the left is the gradient of a w of shape (units, inputs), on the right of one of (inputs, units). */
static bool find_dw(const sl_graph *g, const struct slp_users *u, struct layer *l)
{
	for (int i = slp_users_first(u, l->dy); i >= 0; i = u->list[i].next) {
		if (u->list[i].node < 0) continue;
		const struct slp_gnode *n = &g->nodes[u->list[i].node];
		if (!is_product(g, n, true) || slp_node_number(n, "tb") || slp_value_equal(n->in[0], n->in[1]))
			continue;
		l->dw = u->list[i].node;
		l->tw = u->list[i].arg == 0;
		l->x = n->in[l->tw];
		return true;
	}
	return false;
}

/* dx, or else a w of the right type that x was multiplied by. */
static bool find_w(const sl_graph *g, const struct slp_users *u, struct layer *l)
{
	const struct slp_type *dw = &g->nodes[l->dw].types[0];
	for (int i = slp_users_first(u, l->dy); i >= 0; i = u->list[i].next) {
		const struct slp_gnode *n = u->list[i].node < 0 ? NULL : &g->nodes[u->list[i].node];
		if (!n || u->list[i].arg != 0 || !is_product(g, n, false) || (slp_node_number(n, "tb") != 0) == l->tw)
			continue;
		if (!slp_type_equal(slp_value_type(g, n->in[1]), dw)) continue;
		l->dx = u->list[i].node;
		l->w = n->in[1];
		return true;
	}
	for (int i = slp_users_first(u, l->x); i >= 0; i = u->list[i].next) {
		const struct slp_gnode *n = u->list[i].node < 0 ? NULL : &g->nodes[u->list[i].node];
		if (!n || u->list[i].arg != 0 || !slp_node_is(n, &slp_op_linear)) continue;
		if ((slp_node_number(n, "tw") != 0) != l->tw || !slp_type_equal(slp_value_type(g, n->in[1]), dw))
			continue;
		l->w = n->in[1];
		return true;
	}
	return false;
}

/* Whether dy is NAME_grad(d, v), and only these three nodes read it; on GPUs, where that saves a kernel, also if the
 * gradient has more axes. */
static void find_slope(const sl_graph *g, const struct slp_users *u, struct layer *l)
{
	struct slp_value dy = l->dy;
	if (slp_users_count(u, dy) != 2 + (l->dx >= 0)) return;
	const struct slp_gnode *reshape = slp_layout_on_gpu(g) ? slp_value_op(g, dy, &slp_op_reshape) : NULL;
	if (reshape && slp_users_count(u, reshape->in[0]) == 1) dy = reshape->in[0];
	const struct slp_gnode *n = &g->nodes[dy.node];
	for (int i = SL_IDENTITY + 1; i < SL_ACTIVATIONS; i++) {
		if (!slp_node_is(n, slp_activations[i].slope)) continue;
		l->activation = i;
		l->slope = dy.node;
		l->reshaped = !slp_value_equal(dy, l->dy);
		l->dy = n->in[0];
		l->v = n->in[1];
		return;
	}
}

/* dy in a half type, if the sum is of its float32 copy: on GPUs, where the sum takes it as it is. */
static struct slp_value summed(const sl_graph *g, const struct slp_users *u, const struct slp_gnode *sum)
{
	const struct slp_gnode *cast = slp_layout_on_gpu(g) ? slp_value_op(g, sum->in[0], &slp_op_cast) : NULL;
	bool widens = cast && cast->types[0].dtype == SL_FLOAT32 && slp_is_half(slp_value_type(g, cast->in[0])->dtype);
	return widens && slp_users_count(u, sum->in[0]) == 1 ? cast->in[0] : sum->in[0];
}

static bool find_layer(const sl_graph *g, const struct slp_users *u, int sum, struct layer *l)
{
	const struct slp_gnode *n = &g->nodes[sum];
	if (!is_row_sum(n) || slp_value_type(g, n->in[0])->shape.ndim != 2 || !slp_is_float(n->types[0].dtype))
		return false;
	*l = (struct layer){.dw = -1, .db = sum, .dx = -1, .slope = -1, .dy = summed(g, u, n)};
	l->wide = !slp_value_equal(l->dy, n->in[0]);
	if (!find_dw(g, u, l) || !find_w(g, u, l)) return false;
	find_slope(g, u, l);
	int last = l->dx > l->db ? l->dx : l->db;
	last = l->dw > last ? l->dw : last;
	l->first = l->db < l->dw ? l->db : l->dw;
	if (l->dx >= 0 && l->dx < l->first) l->first = l->dx;
	/* Their operands are read at the place of the first of the three. */
	return slp_users_stays(u, l->w, l->first, last) && slp_users_stays(u, l->x, l->first, last);
}

/* ---- replacing them ---------------------------------------------------------------------------------------------- */

static void take_over(struct slp_users *u, int node, int out, int by)
{
	if (node < 0) return;
	slp_users_replace(u, (struct slp_value){node, 0}, (struct slp_value){by, out});
	slp_users_kill(u, node);
}

/* *v in the shape of dy, before the layer. */
static enum sl_status reshape(sl_graph *g, struct slp_users *u, const struct layer *l, struct slp_value *v)
{
	sl_shape shape = slp_value_type(g, g->nodes[l->db].in[0])->shape;
	int node = slp_graph_add_op(g, g->nodes[l->dw].at, NULL, &slp_op_reshape, &shape, 1, v);
	if (node < 0 || !slp_users_add(u, node)) return slp_pass_no_memory("fuse");
	g->nodes[node].backward = g->nodes[l->dw].backward;
	g->nodes[node].repeat = g->nodes[l->dw].repeat;
	slp_graph_before(g, node, l->first);
	*v = (struct slp_value){node, 0};
	return slp_node_infer(g, node);
}

static enum sl_status replace_layer(sl_graph *g, struct slp_users *u, const struct layer *l)
{
	struct slp_value in[] = {l->x, l->w, l->dy, l->v};
	enum sl_status s = SL_OK;
	for (int i = 2; i < 4 && l->reshaped && s == SL_OK; i++) s = reshape(g, u, l, &in[i]);
	if (s != SL_OK) return s;
	int node = slp_graph_add_op(g, g->nodes[l->dw].at, g->nodes[l->dw].name, &slp_op_linear_grad, NULL,
	                            3 + (l->activation != 0), in);
	if (node < 0 || !slp_users_add(u, node)) return slp_pass_no_memory("fuse");
	struct slp_gnode *n = &g->nodes[node];
	slp_node_set_int(n, "tw", l->tw);
	slp_node_set_int(n, "data", l->dx >= 0);
	slp_node_set_int(n, "activation", l->activation);
	slp_node_set_int(n, "wide", l->wide);
	n->backward = g->nodes[l->dw].backward;
	slp_graph_before(g, node, l->first);
	take_over(u, l->dx, 0, node);
	take_over(u, l->dw, 1, node);
	take_over(u, l->db, 2, node);
	g->nodes[node].name = g->nodes[l->dw].name;
	return slp_node_infer(g, node);
}

static enum sl_status fuse_grads(sl_graph *g)
{
	struct slp_users u;
	struct layer l;
	enum sl_status s = SL_OK;
	if (!slp_users_find(&u, g)) return SL_ENOMEM;
	for (int i = 0, count = g->count; i < count && s == SL_OK; i++) {
		if (g->nodes[i].kind != SLP_NODE_OP || g->nodes[i].dead || !find_layer(g, &u, i, &l)) continue;
		s = replace_layer(g, &u, &l); /* the next layer's dy may be a result of the new node */
	}
	slp_users_free(&u);
	return s == SL_OK ? slp_pass_dead(g) : s;
}

/* ---- updates ----------------------------------------------------------------------------------------------------- */

/* The sgd that takes the gradient, if it is the only reader, and the parameter that it updates; -1: none. */
static int sgd_by(const sl_graph *g, const struct slp_users *u, struct slp_value grad, struct slp_value *updated)
{
	if (slp_users_count(u, grad) != 1) return -1;
	struct slp_user user = u->list[slp_users_first(u, grad)];
	if (user.node < 0 || user.arg % 2 != 1 || !slp_node_is(&g->nodes[user.node], &slp_op_sgd)) return -1;
	const struct slp_gnode *n = &g->nodes[user.node];
	if (slp_node_number(n, "clip_norm") || slp_node_number(n, "clip_value") || slp_node_number(n, "lr_scale"))
		return -1;
	for (int i = 1; i < n->nin; i += 2) /* not user.arg: it may have lost pairs since */
		if (slp_value_equal(n->in[i], grad)) *updated = n->in[i - 1];
	return user.node;
}

static void copy_number(struct slp_gnode *to, const struct slp_gnode *from, const char *name, double instead_of_0)
{
	double value = slp_node_number(from, name);
	if (value == 0) value = instead_of_0;
	memcpy(to->attrs.bytes + slp_attr_find(to->op, name)->offset, &value, sizeof value);
}

/* Whether another node reads or writes the parameter between `node` and the update. */
static bool is_touched(const sl_graph *g, const struct slp_users *u, struct slp_value v, int node, int sgd)
{
	for (int i = node + 1; i < sgd; i++)
		for (int j = 0; j < g->nodes[i].nin; j++)
			if (slp_users_memory(u, g->nodes[i].in[j]) == slp_users_memory(u, v)) return true;
	return false;
}

/* Each parameter may occur once in sgd: two pairs of one parameter are two updates. */
static bool is_single(const sl_graph *g, const struct slp_users *u, struct slp_value v, int sgd)
{
	int count = 0;
	for (int j = 0; j < g->nodes[sgd].nin; j++)
		count += slp_users_memory(u, g->nodes[sgd].in[j]) == slp_users_memory(u, v);
	return count == 1;
}

static void drop_pair(struct slp_gnode *n, struct slp_value grad)
{
	for (int i = 1; i < n->nin; i += 2) {
		if (!slp_value_equal(n->in[i], grad)) continue;
		memmove(&n->in[i - 1], &n->in[i + 1], (size_t)(n->nin - i - 1) * sizeof *n->in);
		n->nin -= 2;
		return;
	}
}

/* A linear_grad whose gradients only sgd reads. */
struct update {
	int node, sgd;
	struct slp_value w, b; /* the updated parameters */
};

static bool find_update(const sl_graph *g, const struct slp_users *u, int node, struct update *found)
{
	const struct slp_gnode *n = &g->nodes[node];
	struct slp_value pw = {0}, pb = {0};
	int sgd = sgd_by(g, u, (struct slp_value){node, 1}, &pw);
	if (sgd < 0 || sgd_by(g, u, (struct slp_value){node, 2}, &pb) != sgd) return false;
	*found = (struct update){node, sgd, pw, pb};
	/* Whether dx is computed from the w that is updated. */
	if (!slp_value_equal(n->in[1], pw)) return false;
	if (is_touched(g, u, pw, node, sgd) || is_touched(g, u, pb, node, sgd)) return false;
	if (!is_single(g, u, pw, sgd) || !is_single(g, u, pb, sgd)) return false;
	for (int i = 0; i < n->nin; i++) /* kernels write w and b while they read these */
		if (i != 1 && (slp_users_memory(u, n->in[i]) == slp_users_memory(u, pw) ||
		               slp_users_memory(u, n->in[i]) == slp_users_memory(u, pb)))
			return false;
	return true;
}

static enum sl_status fuse_update(sl_graph *g, const struct update *found)
{
	int node = found->node, sgd = found->sgd;
	struct slp_gnode *n = &g->nodes[node];
	struct slp_value in[] = {found->w, found->b, n->in[0], n->in[2], n->nin > 3 ? n->in[3] : (struct slp_value){0}};
	int tw = (int)slp_node_number(n, "tw"), data = (int)slp_node_number(n, "data");
	int activation = (int)slp_node_number(n, "activation");
	bool backward = n->backward;
	drop_pair(&g->nodes[sgd], (struct slp_value){node, 1});
	drop_pair(&g->nodes[sgd], (struct slp_value){node, 2});
	if (!slp_graph_rewrite(g, node, &slp_op_linear_sgd, NULL, n->nin + 1, in)) return slp_pass_no_memory("fuse");
	n->backward = backward;
	slp_node_set_int(n, "tw", tw);
	slp_node_set_int(n, "data", data);
	slp_node_set_int(n, "activation", activation);
	copy_number(n, &g->nodes[sgd], "lr", 0);
	copy_number(n, &g->nodes[sgd], "rescale", 1);
	copy_number(n, &g->nodes[sgd], "weight_decay", 0);
	if (!g->nodes[sgd].nin) slp_graph_kill(g, sgd);
	return slp_node_infer(g, node);
}

static enum sl_status fuse_updates(sl_graph *g)
{
	struct slp_users u;
	struct update found;
	enum sl_status s = SL_OK;
	if (!slp_users_find(&u, g)) return SL_ENOMEM;
	for (int i = 0; i < g->count && s == SL_OK; i++)
		if (slp_node_is(&g->nodes[i], &slp_op_linear_grad) && find_update(g, &u, i, &found))
			s = fuse_update(g, &found);
	slp_users_free(&u);
	return s == SL_OK ? slp_pass_dead(g) : s;
}

enum sl_status slp_fuse_linear(sl_graph *g)
{
	enum sl_status s = fuse_grads(g);
	return s == SL_OK ? fuse_updates(g) : s;
}
