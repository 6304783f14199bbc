/* fuse, convolutions with relu and a pooling of 2 × 2 windows side by side: conv2d_pool, which does not store the
 * unpooled result. For the backward pass it returns a mask, one bit an element, as its second result. */
#include <stdlib.h>
#include <string.h>

#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/conv.h"
#include "op_list/pool.h"
#include "starling/graph.h"
#include "starling/options.h"

struct pattern {
	int conv, pool;
	int back, data, weights; /* in the backward pass: of the pooling, of the convolution; -1: none */
	enum slp_conv_pool type;
	int crop[2];
};

/* ---- finding it -------------------------------------------------------------------------------------------------- */

/* Whether windows are 2 × 2, side by side, without padding. */
static bool is_plain_pool(const sl_graph *g, const struct slp_gnode *n, struct slp_value x)
{
	struct slp_infer c;
	sl_shape shape = slp_value_type(g, x)->shape;
	if (!slp_node_call(g, n, &c)) return false;
	const struct sl_pool2d_opts *o = c.attrs;
	bool plain = !o->global && shape.dim[2] >= 2 && shape.dim[3] >= 2;
	for (int i = 0; i < 2; i++)
		plain &= o->kernel[i] == 2 && o->stride[i] == 2 && o->pad[i] == 0 && !(o->ceil && shape.dim[2 + i] % 2);
	slp_call_free(&c);
	return plain;
}

static bool same_attrs(const struct slp_gnode *a, const struct slp_gnode *b, const char *const *names)
{
	for (; *names; names++) {
		const struct slp_attr *f = slp_attr_find(a->op, *names), *h = slp_attr_find(b->op, *names);
		for (unsigned i = 0; i < f->count; i++)
			if (((const int *)(a->attrs.bytes + f->offset))[i] !=
			    ((const int *)(b->attrs.bytes + h->offset))[i])
				return false;
	}
	return true;
}

/* Whether the convolution's result is read by one pooling alone, or by that and its gradient. */
static bool find_pools(const sl_graph *g, const struct slp_users *u, struct pattern *p)
{
	struct slp_value y = {p->conv, 0};
	for (int i = slp_users_first(u, y); i >= 0; i = u->list[i].next) {
		if (u->list[i].node < 0 || u->list[i].arg != 0) return false;
		const struct slp_gnode *n = &g->nodes[u->list[i].node];
		bool mean = slp_node_is(n, &slp_op_avg_pool2d) || slp_node_is(n, &slp_op_avg_pool2d_grad);
		bool there = slp_node_is(n, &slp_op_avg_pool2d) || slp_node_is(n, &slp_op_max_pool2d);
		bool back = (slp_node_is(n, &slp_op_avg_pool2d_grad) || slp_node_is(n, &slp_op_max_pool2d_grad)) &&
		            slp_node_number(n, "relu");
		enum slp_conv_pool type = mean ? SLP_CONV_POOL_AVG : SLP_CONV_POOL_MAX;
		int *slot = there ? &p->pool : &p->back;
		if (!(there || back) || *slot >= 0 || !is_plain_pool(g, n, y)) return false;
		if (p->type != SLP_CONV_POOL_NONE && p->type != type) return false;
		*slot = u->list[i].node;
		p->type = type;
	}
	return p->pool >= 0;
}

/* Whether the gradients of this convolution are the only readers of the pooling's gradient. */
static bool find_gradients(const sl_graph *g, const struct slp_users *u, struct pattern *p)
{
	static const char *const names[] = {"stride", "pad", "dilation", "groups", NULL};
	struct slp_value d = {p->back, 0};
	const struct slp_gnode *conv = &g->nodes[p->conv];
	for (int i = slp_users_first(u, d); i >= 0; i = u->list[i].next) {
		if (u->list[i].node < 0) return false;
		const struct slp_gnode *n = &g->nodes[u->list[i].node];
		bool data = slp_node_is(n, &slp_op_conv2d_grad_data) && u->list[i].arg == 0;
		bool weights = slp_node_is(n, &slp_op_conv2d_grad_weights) && u->list[i].arg == 1;
		int *slot = data ? &p->data : &p->weights;
		if (!(data || weights) || *slot >= 0 || !same_attrs(n, conv, names)) return false;
		*slot = u->list[i].node;
	}
	return true;
}

static bool find(const sl_graph *g, const struct slp_users *u, int node, struct pattern *p)
{
	const struct slp_gnode *n = &g->nodes[node];
	*p = (struct pattern){.conv = node, .pool = -1, .back = -1, .data = -1, .weights = -1};
	if (!slp_node_is(n, &slp_op_conv2d) || slp_node_number(n, "activation") != SL_RELU ||
	    !slp_layout_prefers_n16(g, n))
		return false;
	for (int i = 0; i < 2; i++) p->crop[i] = (int)(n->types[0].shape.dim[2 + i] % 2);
	return find_pools(g, u, p) && (p->back < 0 || find_gradients(g, u, p));
}

/* ---- replacing it ------------------------------------------------------------------------------------------------ */

static void set_pool(struct slp_gnode *n, const struct pattern *p)
{
	slp_node_set_int(n, "pool", p->type);
	memcpy(n->attrs.bytes + slp_attr_find(n->op, "crop")->offset, p->crop, sizeof p->crop);
}

/* Gives a gradient the pooled dy, as argument `which`, and the mask. */
static enum sl_status replace_gradient(sl_graph *g, struct slp_users *u, int node, int which, const struct pattern *p)
{
	if (node < 0) return SL_OK;
	struct slp_gnode *n = &g->nodes[node], *back = &g->nodes[p->back];
	struct slp_value in[] = {n->in[0], n->in[1], {p->conv, 1}};
	in[which] = back->in[1];
	const struct sl_op *op = slp_conv_forms[slp_node_conv(n)].pooled;
	if (!slp_users_rewrite(u, node, op, n->attrs.bytes, 3, in)) return slp_pass_no_memory("fuse");
	set_pool(n, p);
	return slp_node_infer(g, node);
}

static enum sl_status replace(sl_graph *g, struct slp_users *u, const struct pattern *p)
{
	struct slp_gnode *n = &g->nodes[p->conv];
	if (!slp_users_rewrite(u, p->conv, &slp_op_conv2d_pool, n->attrs.bytes, n->nin, n->in))
		return slp_pass_no_memory("fuse");
	set_pool(n, p);
	enum sl_status s = slp_node_infer(g, p->conv);
	slp_users_replace(u, (struct slp_value){p->pool, 0}, (struct slp_value){p->conv, 0});
	if (s == SL_OK && p->back >= 0) s = replace_gradient(g, u, p->data, 0, p);
	if (s == SL_OK && p->back >= 0) s = replace_gradient(g, u, p->weights, 1, p);
	n->name = g->nodes[p->pool].name;
	slp_users_kill(u, p->pool);
	if (p->back >= 0) slp_users_kill(u, p->back);
	return s;
}

enum sl_status slp_fuse_pool(sl_graph *g)
{
	struct slp_users u;
	struct pattern p;
	enum sl_status s = SL_OK;
	if (!slp_layout_on_cpu(g)) return SL_OK;
	if (!slp_users_find(&u, g)) return SL_ENOMEM;
	for (int i = 0; i < g->count && s == SL_OK; i++)
		if (find(g, &u, i, &p)) s = replace(g, &u, &p);
	slp_users_free(&u);
	return s == SL_OK ? slp_pass_dead(g) : s;
}
