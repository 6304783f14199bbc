/* The part of block that packs weights of eight-bit products: their packing depends on parameters alone, and is
 * hoisted out of the plan (hoist.c).  On CPUs only. */
#include "graph/pass/pass.h"
#include "op_inner.h"
#include "op_list/quant.h"

/* Weights do not change during a run. */
static bool is_constant(const sl_graph *g, struct slp_value v)
{
	enum slp_node_kind kind = g->nodes[v.node].kind;
	return kind == SLP_NODE_PARAM || kind == SLP_NODE_CONST;
}

static bool plan_conv(const sl_graph *g, const struct slp_gnode *n, struct slp_qconv_attrs *a, int threads)
{
	sl_shape x = slp_value_type(g, n->in[0])->shape;
	a->images = (int)x.dim[0];
	a->size[0] = (int)x.dim[1];
	a->size[1] = (int)x.dim[2];
	return n->nin == 4 && sl_shape_size(n->types[0].shape) > 0 && slp_qconv_plan(a, threads);
}

static bool plan_matmul(const sl_graph *g, const struct slp_gnode *n, struct slp_qmatmul_attrs *a, int threads)
{
	sl_shape x = slp_value_type(g, n->in[0])->shape, b = slp_value_type(g, n->in[1])->shape;
	a->inner = x.dim[x.ndim - 1];
	a->rows = a->inner ? sl_shape_size(x) / a->inner : 0;
	a->cols = b.dim[b.ndim - (a->b_transposed ? 2 : 1)];
	return b.ndim == 2 && a->rows > 0 && a->cols > 0 && slp_qmatmul_plan(a, threads);
}

/* Makes node `i` take its weights from a new node in front of it. */
static enum sl_status take_packed(sl_graph *g, int i, const struct sl_op *pack, const void *attrs)
{
	struct slp_value in[8] = {{0, 0}};
	int nin = g->nodes[i].nin;
	for (int k = 0; k < nin; k++) in[k] = g->nodes[i].in[k];
	int node = slp_graph_add_op(g, g->nodes[i].at, NULL, pack, attrs, 1, &in[1]);
	if (node < 0) return slp_pass_no_memory("block");
	slp_graph_before(g, node, i);
	enum sl_status s = slp_node_infer(g, node);
	if (s != SL_OK) return s;
	in[1] = (struct slp_value){node, 0};
	if (!slp_graph_rewrite(g, i, g->nodes[i].op, attrs, nin, in)) return slp_pass_no_memory("block");
	return slp_node_infer(g, i);
}

enum sl_status slp_pack_products(sl_graph *g, int threads)
{
	enum sl_status s = SL_OK;
	for (int i = 0, count = g->count; i < count && s == SL_OK; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		if (n->kind != SLP_NODE_OP || n->dead || n->nin < 2 || !is_constant(g, n->in[1])) continue;
		if (n->op == &slp_op_qconv2d) {
			struct slp_qconv_attrs a = *(const struct slp_qconv_attrs *)(const void *)n->attrs.bytes;
			if (!a.packed && plan_conv(g, n, &a, threads)) s = take_packed(g, i, &slp_op_qconv2d_pack, &a);
		} else if (n->op == &slp_op_qmatmul) {
			struct slp_qmatmul_attrs a = *(const struct slp_qmatmul_attrs *)(const void *)n->attrs.bytes;
			if (!a.packed && plan_matmul(g, n, &a, threads))
				s = take_packed(g, i, &slp_op_qmatmul_pack, &a);
		}
	}
	return s;
}
