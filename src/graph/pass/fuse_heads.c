/* fuse, heads of attention on GPUs: attention between transpositions, as projections of several heads need it, becomes
 * attention_heads, which reads q, k and v where the projection wrote them and writes y as the next one reads it.  So do
 * its gradients.  Either all transpositions of a call go, or it stays as it is. */
#include <string.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/attention.h"
#include "op_list/move.h"
#include "starling/graph.h"

/* q, k or v: part `part` of (batch, positions, parts, heads, width), or the whole of that without the axis of parts. */
struct operand {
	struct slp_value source;
	int part, parts;
};

struct place {
	sl_graph *g;
	struct slp_users *users;
	int node, grad; /* attention; its gradient, or -1 */
	int sources;
	struct operand of[3];
	struct slp_value result[3]; /* the gradients of the sources */
};

/* ---- finding them ------------------------------------------------------------------------------------------------ */

static bool is_order(const sl_graph *g, const struct slp_gnode *n, int ndim, const int *order)
{
	int axes[SL_MAX_NDIM];
	if (!slp_node_is(n, &slp_op_transpose) || n->types[0].shape.ndim != ndim || !slp_transpose_axes(g, n, axes))
		return false;
	return !memcmp(axes, order, (size_t)ndim * sizeof *axes);
}

static const int in_turn[] = {2, 0, 3, 1, 4}, back[] = {1, 3, 0, 2, 4}, swapped[] = {0, 2, 1, 3};

/* v as (…, heads, positions, width), by a reshape of one more axis. */
static struct slp_value without_reshape(const sl_graph *g, struct slp_value v)
{
	const struct slp_gnode *n = slp_value_op(g, v, &slp_op_reshape);
	return n ? n->in[0] : v;
}

static bool find_operand(const sl_graph *g, struct slp_value v, struct operand *o)
{
	const struct slp_gnode *n = &g->nodes[v.node];
	sl_shape shape = slp_value_type(g, v)->shape;
	*o = (struct operand){{0, 0}, 0, 1};
	if (shape.ndim != 4) return false;
	if (is_order(g, n, 4, swapped)) {
		o->source = n->in[0];
		return true;
	}
	struct slp_value wide = without_reshape(g, v);
	const struct slp_gnode *slice = slp_value_op(g, wide, &slp_op_slice);
	sl_shape s = slp_value_type(g, wide)->shape;
	if (s.ndim != 5 || s.dim[0] != 1 || memcmp(s.dim + 1, shape.dim, 4 * sizeof *s.dim)) return false;
	if (slice) {
		if (slp_node_number(slice, "axis") != 0 || slp_node_number(slice, "step") != 1) return false;
		o->part = (int)slp_node_number(slice, "begin");
		wide = slice->in[0];
	}
	n = &g->nodes[wide.node];
	if (!is_order(g, n, 5, in_turn) || o->part < 0) return false;
	o->source = n->in[0];
	o->parts = (int)slp_value_type(g, o->source)->shape.dim[2];
	return true;
}

/* Which parts of which sources q, k and v must be. */
static bool are_sources(const struct operand *o)
{
	bool kv = slp_value_equal(o[1].source, o[2].source), qk = slp_value_equal(o[0].source, o[1].source);
	if (kv && qk) return o[0].parts == 3 && o[0].part == 0 && o[1].part == 1 && o[2].part == 2;
	if (kv) return o[0].parts == 1 && o[1].parts == 2 && o[1].part == 0 && o[2].part == 1;
	return o[0].parts == 1 && o[1].parts == 1 && o[2].parts == 1;
}

static struct operand first_of(const struct place *p, int source)
{
	return p->of[p->sources == 1 ? 0 : source];
}

/* All readers of y: transpositions that undo the order of heads, and one gradient. */
static bool find_readers(struct place *p)
{
	const struct slp_users *u = p->users;
	for (int i = slp_users_first(u, (struct slp_value){p->node, 0}); i >= 0; i = u->list[i].next) {
		const struct slp_gnode *n = u->list[i].node < 0 ? NULL : &p->g->nodes[u->list[i].node];
		if (!n) return false;
		if (slp_node_is(n, &slp_op_attention_grad) && u->list[i].arg == 4 && p->grad < 0)
			p->grad = u->list[i].node;
		else if (!is_order(p->g, n, 4, swapped)) return false;
	}
	for (int i = slp_users_first(u, (struct slp_value){p->node, 1}); i >= 0; i = u->list[i].next)
		if (u->list[i].node < 0 || u->list[i].node != p->grad) return false;
	return true;
}

/* The only reader of a value; NULL: there are others. */
static const struct slp_gnode *only_reader(const struct place *p, struct slp_value v, int *node)
{
	if (slp_users_count(p->users, v) != 1) return NULL;
	*node = p->users->list[slp_users_first(p->users, v)].node;
	return *node < 0 ? NULL : &p->g->nodes[*node];
}

/* The gradient of operand i as part of that of its source: the transposition that ends it. */
static bool follow(const struct place *p, int i, struct slp_value *end)
{
	int node, part = p->of[i].part, first = i - part;
	struct slp_value v = {p->grad, i};
	const struct slp_gnode *n = only_reader(p, v, &node);
	if (n && is_order(p->g, n, 4, swapped)) return *end = (struct slp_value){node, 0}, p->of[i].parts == 1;
	if (!n || !slp_node_is(n, &slp_op_reshape) || n->types[0].shape.ndim != 5 || n->types[0].shape.dim[0] != 1)
		return false;
	n = only_reader(p, (struct slp_value){node, 0}, &node);
	if (n && p->of[i].parts > 1) {
		bool joined =
		        slp_node_is(n, &slp_op_concat) && slp_node_number(n, "axis") == 0 && n->nin == p->of[i].parts;
		for (int j = 0; joined && j < n->nin; j++) {
			struct slp_value from = without_reshape(p->g, n->in[j]);
			joined = slp_value_equal(from, (struct slp_value){p->grad, first + j});
		}
		n = joined ? only_reader(p, (struct slp_value){node, 0}, &node) : NULL;
	}
	*end = (struct slp_value){node, 0};
	return n && is_order(p->g, n, 5, back);
}

static bool find_gradients(struct place *p)
{
	const struct slp_gnode *a = &p->g->nodes[p->node], *n = &p->g->nodes[p->grad];
	if (!is_order(p->g, &p->g->nodes[n->in[0].node], 4, swapped) || n->nin != a->nin + 3) return false;
	if (!slp_value_equal(n->in[5], (struct slp_value){p->node, 1})) return false;
	for (int i = 0; i < a->nin; i++)
		if (!slp_value_equal(n->in[i < 3 ? 1 + i : 6], a->in[i])) return false;
	for (int i = 0; i < 3; i++) {
		struct slp_value end;
		int source = p->sources == 1 ? 0 : p->sources == 2 ? i > 0 : i;
		if (!follow(p, i, &end)) return false;
		if (p->of[i].part == 0) p->result[source] = end;
		else if (!slp_value_equal(p->result[source], end)) return false;
	}
	return true;
}

static bool find(struct place *p)
{
	const struct slp_gnode *n = &p->g->nodes[p->node];
	sl_shape q = slp_value_type(p->g, n->in[0])->shape, v = slp_value_type(p->g, n->in[2])->shape;
	if (q.ndim != 4 || !slp_attention_takes_heads(n->types[0].dtype, q.dim[3], v.dim[3], n->nin > 3)) return false;
	for (int i = 0; i < 3; i++)
		if (!find_operand(p->g, n->in[i], &p->of[i])) return false;
	if (!are_sources(p->of) || !find_readers(p)) return false;
	bool kv = slp_value_equal(p->of[1].source, p->of[2].source);
	p->sources = !kv ? 3 : slp_value_equal(p->of[0].source, p->of[1].source) ? 1 : 2;
	int last = p->grad > p->node ? p->grad : p->node;
	for (int i = 0; i < 3; i++)
		if (!slp_users_stays(p->users, p->of[i].source, p->of[i].source.node, last)) return false;
	return p->grad < 0 || find_gradients(p);
}

/* ---- replacing them ---------------------------------------------------------------------------------------------- */

/* The node becomes op on these arguments, with the attributes of attention. */
static enum sl_status become(const struct place *p, int node, const struct sl_op *op, int nin,
                             const struct slp_value *in)
{
	struct slp_gnode old = p->g->nodes[node];
	if (!slp_users_rewrite(p->users, node, op, old.attrs.bytes, nin, in)) return slp_pass_no_memory("fuse");
	struct slp_gnode *n = &p->g->nodes[node];
	n->backward = old.backward;
	n->repeat = old.repeat;
	slp_node_set_int(n, "sources", p->sources);
	return slp_node_infer(p->g, node);
}

/* A source with an axis of parts. */
static enum sl_status add_axis(const struct place *p, struct slp_value *v)
{
	sl_shape s = slp_value_type(p->g, *v)->shape;
	if (s.ndim == 5) return SL_OK;
	const struct slp_gnode *n = &p->g->nodes[p->node];
	bool backward = n->backward;
	int repeat = n->repeat;
	sl_shape wide = SL_SHAPE(s.dim[0], s.dim[1], 1, s.dim[2], s.dim[3]);
	int node = slp_graph_add_op(p->g, n->at, NULL, &slp_op_reshape, &wide, 1, v);
	if (node < 0 || !slp_users_add(p->users, node)) return slp_pass_no_memory("fuse");
	p->g->nodes[node].backward = backward;
	p->g->nodes[node].repeat = repeat;
	slp_graph_before(p->g, node, p->node);
	*v = (struct slp_value){node, 0};
	return slp_node_infer(p->g, node);
}

/* The transpositions of y are y itself. */
static void take_result(const struct place *p)
{
	struct slp_value y = {p->node, 0};
	int count = slp_users_count(p->users, y); /* readers of the transpositions are appended */
	for (int i = slp_users_first(p->users, y), next; count > 0; i = next, count--) {
		next = p->users->list[i].next;
		int node = p->users->list[i].node;
		if (node == p->grad) continue;
		slp_users_replace(p->users, (struct slp_value){node, 0}, y);
		slp_users_kill(p->users, node);
	}
}

static enum sl_status take_gradient(const struct place *p, int source)
{
	struct slp_value dx = {p->grad, source}, end = p->result[source];
	sl_shape shape = slp_value_type(p->g, end)->shape;
	if (shape.ndim == 5) {
		slp_users_replace(p->users, end, dx);
		slp_users_kill(p->users, end.node);
		return SL_OK;
	}
	struct slp_gnode old = p->g->nodes[end.node];
	if (!slp_users_rewrite(p->users, end.node, &slp_op_reshape, &shape, 1, &dx)) return slp_pass_no_memory("fuse");
	p->g->nodes[end.node].backward = old.backward;
	p->g->nodes[end.node].repeat = old.repeat;
	return slp_node_infer(p->g, end.node);
}

static enum sl_status replace(const struct place *p)
{
	struct slp_value in[8], *source = in + 1;
	const struct slp_gnode *n = &p->g->nodes[p->node];
	int count = p->sources;
	bool masked = n->nin > 3;
	struct slp_value mask = masked ? n->in[3] : (struct slp_value){0, 0};
	enum sl_status s = SL_OK;
	for (int i = 0; i < count && s == SL_OK; i++) {
		source[i] = first_of(p, i).source;
		s = add_axis(p, &source[i]);
	}
	take_result(p);
	source[count] = mask;
	if (s == SL_OK) s = become(p, p->node, &slp_op_attention_heads, count + masked, source);
	if (s != SL_OK || p->grad < 0) return s;
	const struct slp_gnode *g = &p->g->nodes[p->grad];
	in[0] = p->g->nodes[g->in[0].node].in[0];
	in[count + 1] = (struct slp_value){p->node, 0};
	in[count + 2] = (struct slp_value){p->node, 1};
	in[count + 3] = mask;
	s = become(p, p->grad, &slp_op_attention_heads_grad, count + 3 + masked, in);
	for (int i = 0; i < count && s == SL_OK; i++) s = take_gradient(p, i);
	return s;
}

enum sl_status slp_fuse_heads(sl_graph *g)
{
	struct slp_users users;
	enum sl_status s = SL_OK;
	if (!slp_layout_on_gpu(g)) return SL_OK;
	if (!slp_users_find(&users, g)) return SL_ENOMEM;
	for (int i = 0, count = g->count; i < count && s == SL_OK; i++) {
		struct place p = {.g = g, .users = &users, .node = i, .grad = -1};
		if (slp_node_is(&g->nodes[i], &slp_op_attention) && find(&p)) s = replace(&p);
	}
	slp_users_free(&users);
	return s == SL_OK ? slp_pass_dead(g) : s;
}
