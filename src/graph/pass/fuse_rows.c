/* fuse, layer normalisation: a residual sum before it becomes a part of it (layer_norm_sum), and its gradient adds the one
 * that passes it by.  On GPUs a conversion of its result to a half type becomes a part of it, too; its gradient takes a
 * gradient in a half type, and also gives its result in a half type where products read that (layer_norm_grad_copy). */
#include <string.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/binary.h"
#include "op_list/move.h"
#include "op_list/norm.h"
#include "starling/graph.h"

struct rows {
	sl_graph *g;
	struct slp_users *u;
	int node;
	bool halves; /* the kernels, on GPUs, read and write half types beside float32 */
};

static const struct slp_type *type_of(const struct rows *w, struct slp_value v)
{
	return slp_value_type(w->g, v);
}

/* The half-type value that v is a float32 copy of, if nothing else reads the copy; else v. */
static struct slp_value narrow(const struct rows *w, struct slp_value v)
{
	const struct slp_gnode *cast = slp_value_op(w->g, v, &slp_op_cast);
	bool widens = cast && type_of(w, v)->dtype == SL_FLOAT32 && slp_is_half(type_of(w, cast->in[0])->dtype);
	return w->halves && widens && slp_users_count(w->u, v) == 1 ? cast->in[0] : v;
}

/* An addition of two tensors of the type of its result. */
static const struct slp_gnode *sum_of(const struct rows *w, struct slp_value v)
{
	const struct slp_gnode *n = slp_value_op(w->g, v, &slp_op_add);
	bool same = n && slp_type_equal(type_of(w, n->in[0]), &n->types[0]) &&
	            slp_type_equal(type_of(w, n->in[1]), &n->types[0]);
	return same ? n : NULL;
}

/* Whether the inputs [first, end) of a node are known and the same at an earlier one. */
static bool known_at(const struct rows *w, int earlier, int first, int end)
{
	const struct slp_gnode *n = &w->g->nodes[w->node];
	for (int i = first; i < end; i++) {
		bool given = w->g->nodes[n->in[i].node].kind != SLP_NODE_OP;
		if (!given && n->in[i].node >= earlier) return false;
		if (!slp_users_stays(w->u, n->in[i], earlier, w->node)) return false;
	}
	return true;
}

static enum sl_status become(const struct rows *w, int node, const struct sl_op *op, const void *attrs, int nin,
                             const struct slp_value *in)
{
	struct slp_gnode old = w->g->nodes[node];
	if (!slp_users_rewrite(w->u, node, op, attrs, nin, in)) return slp_pass_no_memory("fuse");
	w->g->nodes[node].backward = old.backward;
	w->g->nodes[node].repeat = old.repeat;
	return SL_OK;
}

/* ---- forward ----------------------------------------------------------------------------------------------------- */

/* The half type that all readers convert y to; SL_DTYPE_DEFAULT: there is none. */
static enum sl_dtype wanted_type(const struct rows *w)
{
	struct slp_value y = {w->node, 0};
	enum sl_dtype type = SL_DTYPE_DEFAULT;
	if (!w->halves || type_of(w, y)->dtype != SL_FLOAT32) return type;
	for (int i = slp_users_first(w->u, y); i >= 0; i = w->u->list[i].next) {
		const struct slp_gnode *n = w->u->list[i].node < 0 ? NULL : &w->g->nodes[w->u->list[i].node];
		if (!n || !slp_node_is(n, &slp_op_cast) || !slp_is_half(n->types[0].dtype)) return SL_DTYPE_DEFAULT;
		if (type != SL_DTYPE_DEFAULT && type != n->types[0].dtype) return SL_DTYPE_DEFAULT;
		type = n->types[0].dtype;
	}
	return type;
}

/* Readers of the casts of y read y. */
static void drop_casts(const struct rows *w)
{
	struct slp_value y = {w->node, 0};
	int count = slp_users_count(w->u, y); /* readers of the casts are appended */
	for (int i = slp_users_first(w->u, y), next; count > 0; i = next, count--) {
		int cast = w->u->list[i].node;
		next = w->u->list[i].next;
		slp_users_replace(w->u, (struct slp_value){cast, 0}, y);
		slp_users_kill(w->u, cast);
	}
}

/* Whether the sum can be a part: its node, and its terms, the second one in a half type if one is. */
static bool find_sum(const struct rows *w, int *node, struct slp_value terms[2])
{
	const struct slp_gnode *n = &w->g->nodes[w->node], *sum = sum_of(w, n->in[0]);
	*node = n->in[0].node;
	if (!sum || sum->backward != n->backward || sum->repeat != n->repeat || !known_at(w, *node, 1, 3)) return false;
	struct slp_value half = narrow(w, sum->in[0]);
	bool first = !slp_value_equal(half, sum->in[0]);
	terms[0] = sum->in[first];
	terms[1] = first ? half : narrow(w, sum->in[1]);
	return true;
}

static enum sl_status fuse_forward(const struct rows *w)
{
	struct slp_value terms[2];
	int place;
	const struct slp_gnode *n = &w->g->nodes[w->node];
	enum sl_dtype type = wanted_type(w);
	bool sum = find_sum(w, &place, terms);
	if (!sum && type == SL_DTYPE_DEFAULT) return SL_OK;
	char attrs[SLP_MAX_ATTRS];
	struct slp_value in[] = {sum ? terms[0] : n->in[0], n->in[1], n->in[2], sum ? terms[1] : n->in[0]};
	memcpy(attrs, n->attrs.bytes, sizeof attrs);
	if (type != SL_DTYPE_DEFAULT) drop_casts(w);
	if (sum) {
		slp_users_replace(w->u, (struct slp_value){place, 0}, (struct slp_value){place, 3});
		for (int i = 0; i < 3; i++)
			slp_users_replace(w->u, (struct slp_value){w->node, i}, (struct slp_value){place, i});
		slp_users_kill(w->u, w->node);
	}
	int node = sum ? place : w->node;
	enum sl_status s = become(w, node, &slp_op_layer_norm_sum, attrs, sum ? 4 : 3, in);
	if (s != SL_OK) return s;
	slp_node_set_int(&w->g->nodes[node], "dtype", type == SL_DTYPE_DEFAULT ? 0 : (int)type);
	return slp_node_infer(w->g, node);
}

/* ---- back -------------------------------------------------------------------------------------------------------- */

/* The addition that alone reads dx, and its other term; false: there is none. */
static bool find_more(const struct rows *w, int *node, struct slp_value *more)
{
	struct slp_value dx = {w->node, 0};
	if (w->g->nodes[w->node].nin > 5 || slp_users_count(w->u, dx) != 1) return false;
	const struct slp_user *user = &w->u->list[slp_users_first(w->u, dx)];
	*node = user->node;
	if (*node < 0 || !sum_of(w, (struct slp_value){*node, 0})) return false;
	struct slp_value other = w->g->nodes[*node].in[1 - user->arg];
	*more = narrow(w, other);
	return !slp_value_equal(other, dx) && other.node < w->node;
}

static enum sl_status fuse_back(const struct rows *w)
{
	struct slp_value in[6];
	const struct slp_gnode *n = &w->g->nodes[w->node];
	int sum, count = n->nin;
	for (int i = 0; i < count; i++) in[i] = n->in[i];
	in[0] = narrow(w, in[0]);
	bool more = find_more(w, &sum, &in[5]);
	if (!more && slp_value_equal(in[0], n->in[0])) return SL_OK;
	if (more) {
		slp_users_replace(w->u, (struct slp_value){sum, 0}, (struct slp_value){w->node, 0});
		slp_users_kill(w->u, sum);
		count = 6;
	}
	enum sl_status s = become(w, w->node, &slp_op_layer_norm_grad, NULL, count, in);
	return s == SL_OK ? slp_node_infer(w->g, w->node) : s;
}

/* Whether a node converts dx to the half type of dy or of the term added to dx. */
static bool is_copy(const struct rows *w, int node)
{
	const struct slp_gnode *n = &w->g->nodes[w->node], *cast = node < 0 ? NULL : &w->g->nodes[node];
	if (!cast || !slp_node_is(cast, &slp_op_cast)) return false;
	enum sl_dtype type = cast->types[0].dtype;
	return slp_is_half(type) &&
	       (type == type_of(w, n->in[0])->dtype || (n->nin > 5 && type == type_of(w, n->in[5])->dtype));
}

/* The readers of casts of dx read the copy; a call has one half type, so all casts are alike. */
static void take_casts(const struct rows *w)
{
	struct slp_value dx = {w->node, 0}, copy = {w->node, 3};
	for (int i = slp_users_first(w->u, dx), next; i >= 0; i = next) {
		int cast = w->u->list[i].node;
		next = w->u->list[i].next;
		if (!is_copy(w, cast)) continue;
		slp_users_replace(w->u, (struct slp_value){cast, 0}, copy);
		slp_users_kill(w->u, cast);
	}
}

/* A gradient whose result products read in a half type. */
static enum sl_status fuse_copy(const struct rows *w)
{
	struct slp_value in[6];
	const struct slp_gnode *n = &w->g->nodes[w->node];
	int count = n->nin, type = SL_DTYPE_DEFAULT;
	if (!w->halves || type_of(w, (struct slp_value){w->node, 0})->dtype != SL_FLOAT32) return SL_OK;
	for (int i = slp_users_first(w->u, (struct slp_value){w->node, 0}); i >= 0; i = w->u->list[i].next)
		if (is_copy(w, w->u->list[i].node)) type = (int)w->g->nodes[w->u->list[i].node].types[0].dtype;
	if (type == SL_DTYPE_DEFAULT) return SL_OK;
	for (int i = 0; i < count; i++) in[i] = n->in[i];
	enum sl_status s = become(w, w->node, &slp_op_layer_norm_grad_copy, NULL, count, in);
	if (s != SL_OK) return s;
	slp_node_set_int(&w->g->nodes[w->node], "dtype", type);
	s = slp_node_infer(w->g, w->node);
	if (s == SL_OK) take_casts(w);
	return s;
}

enum sl_status slp_fuse_rows(sl_graph *g)
{
	struct slp_users users;
	enum sl_status s = SL_OK;
	bool gpu = slp_layout_on_gpu(g);
	if (!slp_users_find(&users, g)) return SL_ENOMEM;
	for (int i = 0; i < g->count && s == SL_OK; i++) {
		struct rows w = {g, &users, i, gpu};
		if (!gpu && g->nodes[i].kind == SLP_NODE_OP && g->nodes[i].types[0].dtype != SL_FLOAT32) continue;
		if (slp_node_is(&g->nodes[i], &slp_op_layer_norm)) s = fuse_forward(&w);
		else if (slp_node_is(&g->nodes[i], &slp_op_layer_norm_grad)) s = fuse_back(&w);
		if (s == SL_OK && slp_node_is(&g->nodes[i], &slp_op_layer_norm_grad)) s = fuse_copy(&w);
	}
	slp_users_free(&users);
	return s == SL_OK ? slp_pass_dead(g) : s;
}
