/* layout, parameters of programs on GPUs: conversions of several parameters to a half type, and their reordering for
 * convolutions in NHWC, are one operation (convert_all), before the first that reads one of them; those of gradients
 * back are one before the update that reads them.  So a step has a kernel for some parameters, not for each
 * use of each. */
#include <limits.h>
#include <stdlib.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/conv.h"
#include "op_list/move.h"
#include "starling/graph.h"

/* A tensor in another type or layout. */
struct item {
	struct slp_value from, to; /* to: the value whose users read the result instead */
	enum sl_dtype dtype;
	bool to_nhwc, from_nhwc;
	int first, last; /* nodes between which it can be made: after the first, before the last one */
};

/* Argument `arg` of a node becomes item `item`; arg -1: its result does, which is a cast. */
struct use {
	int node, arg, item;
};

struct conversions {
	sl_graph *g;
	struct slp_users users;
	struct item *items;
	struct use *uses;
	int nitems, max_items, nuses, max_uses;
};

static bool is_taken(enum sl_dtype dtype)
{
	return dtype == SL_FLOAT32 || slp_is_half(dtype);
}

static bool add_item(struct conversions *c, struct item item)
{
	if (!slp_grow((void **)&c->items, &c->max_items, c->nitems + 1, sizeof item)) return false;
	c->items[c->nitems++] = item;
	return true;
}

static bool add_use(struct conversions *c, int node, int arg, int item)
{
	if (!slp_grow((void **)&c->uses, &c->max_uses, c->nuses + 1, sizeof *c->uses)) return false;
	c->uses[c->nuses++] = (struct use){node, arg, item};
	return true;
}

static bool is_nhwc(const struct slp_gnode *n)
{
	return slp_node_number(n, "x_layout") == SLP_LAYOUT_NHWC || slp_node_number(n, "y_layout") == SLP_LAYOUT_NHWC;
}

/* Of one by one, both layouts are the same. */
static bool has_taps(sl_shape w)
{
	return w.dim[2] * w.dim[3] > 1;
}

/* ---- values that a program reads --------------------------------------------------------------------------------- */

/* Whether a value can be converted at the beginning of the program for a node. */
static bool is_given(const struct conversions *c, struct slp_value v, int node)
{
	return c->g->nodes[v.node].kind != SLP_NODE_OP && is_taken(slp_value_type(c->g, v)->dtype) &&
	       slp_users_stays(&c->users, v, 0, node);
}

static bool read_as(struct conversions *c, int node, int arg, struct slp_value from, enum sl_dtype dtype, bool nhwc)
{
	int i = 0;
	for (; i < c->nitems; i++) {
		const struct item *t = &c->items[i];
		if (slp_value_equal(t->from, from) && t->dtype == dtype && t->to_nhwc == nhwc) break;
	}
	if (i == c->nitems && !add_item(c, (struct item){from, from, dtype, nhwc, false, -1, node})) return false;
	return add_use(c, node, arg, i);
}

static bool read_by_convolution(struct conversions *c, int node)
{
	const struct slp_gnode *n = &c->g->nodes[node];
	bool wide = slp_node_number(n, "wide") != 0, one = slp_node_number(n, "groups") == 1;
	bool nhwc = one && is_nhwc(n) && has_taps(slp_value_type(c->g, n->in[1])->shape);
	if (!wide && !nhwc) return true;
	for (int i = 1; i < n->nin; i++)
		if ((i == 1 || wide) && !is_given(c, n->in[i], node)) return true;
	bool ok = read_as(c, node, 1, n->in[1], slp_value_type(c->g, n->in[0])->dtype, nhwc);
	if (ok && wide && n->nin > 2) ok = read_as(c, node, 2, n->in[2], slp_value_type(c->g, n->in[0])->dtype, false);
	return ok;
}

static bool find_read(struct conversions *c)
{
	bool ok = true;
	for (int i = 0; i < c->g->count && ok; i++) {
		const struct slp_gnode *n = &c->g->nodes[i];
		bool conv = slp_node_is(n, &slp_op_conv2d_lowered) || slp_node_is(n, &slp_op_conv2d_grad_data_lowered);
		if (conv) ok = read_by_convolution(c, i);
		else if (slp_node_is(n, &slp_op_cast) && slp_is_half(n->types[0].dtype) && is_given(c, n->in[0], i))
			ok = read_as(c, i, -1, n->in[0], n->types[0].dtype, false);
	}
	return ok;
}

/* ---- values that a program computes ------------------------------------------------------------------------------ */

/* The first node that reads a value; -1: nothing does, or the program returns it. */
static int first_reader(const struct conversions *c, struct slp_value v)
{
	int first = INT_MAX;
	for (int i = slp_users_first(&c->users, v); i >= 0; i = c->users.list[i].next)
		if (c->users.list[i].node < first) first = c->users.list[i].node;
	return first == INT_MAX ? -1 : first;
}

/* The cast to float32 that alone reads a value; else the value. */
static struct slp_value widened(const struct conversions *c, struct slp_value v)
{
	if (slp_users_count(&c->users, v) != 1) return v;
	int node = c->users.list[slp_users_first(&c->users, v)].node;
	bool cast = node >= 0 && slp_node_is(&c->g->nodes[node], &slp_op_cast);
	return cast && c->g->nodes[node].types[0].dtype == SL_FLOAT32 ? (struct slp_value){node, 0} : v;
}

static bool write_as(struct conversions *c, struct slp_value from, bool nhwc)
{
	struct slp_value to = widened(c, from);
	int last = first_reader(c, to);
	if (!is_taken(slp_value_type(c->g, from)->dtype)) return true;
	if (last < 0 || !slp_node_has_effect(&c->g->nodes[last])) return true; /* needed soon, or elsewhere */
	if (!nhwc && slp_value_equal(to, from)) return true;
	if (!slp_users_stays(&c->users, from, from.node + 1, last)) return true;
	return add_item(c, (struct item){from, to, slp_value_type(c->g, to)->dtype, false, nhwc, from.node, last});
}

static bool find_written(struct conversions *c)
{
	bool ok = true;
	for (int i = 0; i < c->g->count && ok; i++) {
		const struct slp_gnode *n = &c->g->nodes[i];
		if (n->kind != SLP_NODE_OP || n->dead || !n->backward) continue;
		bool weights = slp_node_is(n, &slp_op_conv2d_grad_weights_lowered);
		bool nhwc = weights && is_nhwc(n) && slp_node_number(n, "groups") == 1 && has_taps(n->types[0].shape);
		for (int k = 0; k < n->nout && ok; k++) {
			bool turned = nhwc && k == 0;
			if (turned || slp_is_half(n->types[k].dtype))
				ok = write_as(c, (struct slp_value){i, k}, turned);
		}
	}
	return ok;
}

/* ---- together ---------------------------------------------------------------------------------------------------- */

/* Items [begin, end) are one operation; what they become. */
static enum sl_status convert(struct conversions *c, int begin, int end, int position)
{
	struct slp_convert_all_attrs a = {.dtype = (int)c->items[begin].dtype};
	struct slp_value in[SLP_CONVERT_ALL];
	const struct slp_gnode *at = &c->g->nodes[c->items[begin].from.node];
	for (int i = begin; i < end; i++) {
		in[i - begin] = c->items[i].from;
		a.to_nhwc |= c->items[i].to_nhwc << (i - begin);
		a.from_nhwc |= c->items[i].from_nhwc << (i - begin);
	}
	int node = slp_graph_add_op(c->g, at->at, NULL, &slp_op_convert_all, &a, end - begin, in);
	if (node < 0) return slp_pass_no_memory("layout");
	slp_graph_before(c->g, node, position);
	for (int i = begin; i < end; i++) c->items[i].to = (struct slp_value){node, i - begin};
	return SL_OK;
}

/* Whether an item can be made together with those from `begin` on. */
static bool fits(const struct conversions *c, int begin, int i, int position)
{
	const struct item *a = &c->items[begin], *b = &c->items[i];
	enum sl_dtype from = slp_value_type(c->g, a->from)->dtype;
	return i - begin < SLP_CONVERT_ALL && a->dtype == b->dtype && slp_value_type(c->g, b->from)->dtype == from &&
	       b->first < position;
}

/* Items are in the order in which they can be made: before the first node that reads one of a group. */
static enum sl_status convert_all(struct conversions *c)
{
	enum sl_status s = SL_OK;
	for (int begin = 0, end; begin < c->nitems && s == SL_OK; begin = end) {
		int position = c->items[begin].last;
		for (end = begin + 1; end < c->nitems; end++) {
			int last = c->items[end].last < position ? c->items[end].last : position;
			if (!fits(c, begin, end, last)) break;
			position = last;
		}
		s = convert(c, begin, end, position);
	}
	return s;
}

/* The types of new nodes, whose arguments may be casts that are no more. */
static enum sl_status infer_new(struct conversions *c, int first)
{
	enum sl_status s = SL_OK;
	for (int i = first; i < c->g->count && s == SL_OK; i++) s = slp_node_infer(c->g, i);
	return s;
}

static void begin(struct conversions *c, sl_graph *g)
{
	*c = (struct conversions){.g = g};
}

static void end(struct conversions *c)
{
	slp_users_free(&c->users);
	free(c->items);
	free(c->uses);
}

/* The readers of what was converted. */
static enum sl_status let_read(struct conversions *c)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < c->nuses && s == SL_OK; i++) {
		const struct use *u = &c->uses[i];
		const struct item *t = &c->items[u->item];
		struct slp_gnode *n = &c->g->nodes[u->node];
		if (u->arg < 0) {
			slp_users_replace(&c->users, (struct slp_value){u->node, 0}, t->to);
			slp_graph_kill(c->g, u->node);
			continue;
		}
		n->in[u->arg] = t->to;
		slp_node_set_int(n, "wide", false);
		if (u->arg == 1 && t->to_nhwc) slp_node_set_int(n, "w_layout", SLP_LAYOUT_NHWC);
		bool last = i + 1 == c->nuses || c->uses[i + 1].node != u->node;
		if (last) s = slp_node_infer(c->g, u->node);
	}
	return s;
}

/* New nodes are known to the lists of users before values are replaced. */
static bool enter_new(struct conversions *c, int first)
{
	bool ok = true;
	for (int i = first; i < c->g->count && ok; i++) ok = slp_users_add(&c->users, i);
	return ok;
}

static enum sl_status convert_read(sl_graph *g)
{
	struct conversions c;
	int first = g->count;
	begin(&c, g);
	enum sl_status s = slp_users_find(&c.users, g) && find_read(&c) ? SL_OK : slp_pass_no_memory("layout");
	if (s == SL_OK && c.nitems > 1) {
		s = convert_all(&c);
		if (s == SL_OK && !enter_new(&c, first)) s = slp_pass_no_memory("layout");
		if (s == SL_OK) s = infer_new(&c, first);
		if (s == SL_OK) s = let_read(&c);
	}
	end(&c);
	return s == SL_OK ? slp_pass_dead(g) : s;
}

/* A gradient that is written in NHWC, its type as before; a cast after it is a part of the conversion. */
static enum sl_status let_write(struct conversions *c, const struct item *t, struct slp_value was)
{
	struct slp_gnode *n = &c->g->nodes[t->from.node];
	if (t->from_nhwc) slp_node_set_int(n, "w_layout", SLP_LAYOUT_NHWC);
	bool cast = !slp_value_equal(was, t->from);
	for (int i = slp_users_first(&c->users, was), next; i >= 0; i = next) {
		const struct slp_user *u = &c->users.list[i];
		next = u->next;
		if (u->node != t->to.node) c->g->nodes[u->node].in[u->arg] = t->to;
	}
	if (cast) slp_graph_kill(c->g, was.node);
	return SL_OK;
}

static enum sl_status convert_written(sl_graph *g)
{
	struct conversions c;
	int first = g->count;
	struct slp_value *was = NULL;
	begin(&c, g);
	enum sl_status s = slp_users_find(&c.users, g) && find_written(&c) ? SL_OK : slp_pass_no_memory("layout");
	if (s == SL_OK && c.nitems > 1 && !(was = slp_malloc((size_t)c.nitems * sizeof *was)))
		s = slp_pass_no_memory("layout");
	if (s == SL_OK && c.nitems > 1) {
		for (int i = 0; i < c.nitems; i++) was[i] = c.items[i].to;
		s = convert_all(&c);
		if (s == SL_OK) s = infer_new(&c, first);
		for (int i = 0; i < c.nitems && s == SL_OK; i++) s = let_write(&c, &c.items[i], was[i]);
	}
	free(was);
	end(&c);
	return s == SL_OK ? slp_pass_dead(g) : s;
}

enum sl_status slp_convert_parameters(sl_graph *g)
{
	enum sl_status s = convert_read(g);
	return s == SL_OK ? convert_written(g) : s;
}
