/* Compares two programs of one function node by node: finds the results for a longer axis that begin with the results
 * for a shorter one. */
#include <stdlib.h>

#include "graph/prefix.h"
#include "op.h"
#include "runtime/fault.h"
#include "starling/graph.h"

struct pair {
	const sl_graph *g[2];
	const int64_t *size;
	struct slp_follows *of; /* by value id */
};

int slp_prefix_axis(sl_shape a, sl_shape b)
{
	int axis = -1;
	if (a.ndim != b.ndim) return -2;
	for (int i = 0; i < a.ndim; i++) {
		if (a.dim[i] == b.dim[i]) continue;
		if (axis >= 0) return -2;
		axis = i;
	}
	return axis;
}

static struct slp_follows other(int node, const char *why)
{
	return (struct slp_follows){.kind = SLP_OTHER, .culprit = node, .why = why};
}

static bool same_type(const struct slp_gnode *a, const struct slp_gnode *b, int out)
{
	return a->types[out].dtype == b->types[out].dtype && sl_shape_equal(a->types[out].shape, b->types[out].shape);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static bool same_node(const struct slp_gnode *a, const struct slp_gnode *b)
{
	bool same = a->kind == b->kind && a->op == b->op && a->nin == b->nin && a->nout == b->nout;
	for (int i = 0; same && i < a->nin; i++) same = slp_value_equal(a->in[i], b->in[i]);
	return same;
}

static struct slp_follows of_input(const struct pair *p, int node)
{
	const struct slp_gnode *a = &p->g[0]->nodes[node], *b = &p->g[1]->nodes[node];
	if (same_type(a, b, 0)) return (struct slp_follows){.kind = SLP_SAME};
	int axis = slp_prefix_axis(a->types[0].shape, b->types[0].shape);
	bool follows =
	        axis >= 0 && a->types[0].shape.dim[axis] == p->size[0] && b->types[0].shape.dim[axis] == p->size[1];
	return follows ? (struct slp_follows){.kind = SLP_BEGINS, .axis = axis, .runs = 1}
	               : other(node, "is an input of another type");
}

static const char *by_rule(struct slp_pair *pair, const struct sl_op *op)
{
	bool any_attrs;
	slp_prefix_rule *rule = slp_prefix_rule_of(op, &any_attrs);
	if (!rule) return "may mix elements of the axis";
	return pair->same_attrs || any_attrs ? rule(pair) : "has other attributes for another size";
}

/* Follows the results of a call of which no input is OTHER. */
static bool of_call(const struct pair *p, int node, const struct slp_follows *in, struct slp_follows *out)
{
	const struct slp_gnode *n[2] = {&p->g[0]->nodes[node], &p->g[1]->nodes[node]};
	struct slp_infer call[2];
	if (!slp_node_call(p->g[0], n[0], &call[0])) return false;
	if (!slp_node_call(p->g[1], n[1], &call[1])) return slp_call_free(&call[0]), false;
	bool same = slp_attrs_equal(n[0]->op, call[0].attrs, call[1].attrs);
	struct slp_pair pair = {{&call[0], &call[1]}, in, out, same, p->size};
	for (int i = 0; i < n[0]->nin; i++) same &= in[i].kind == SLP_SAME;
	for (int o = 0; o < n[0]->nout; o++) {
		same &= same_type(n[0], n[1], o);
		out[o] = (struct slp_follows){.kind = SLP_SAME}; /* rules also cover results without elements */
	}
	const char *why = same ? NULL : by_rule(&pair, n[0]->op);
	for (int o = 0; o < n[0]->nout; o++) {
		if (why) out[o] = other(node, why);
		out[o].culprit = node;
	}
	slp_call_free(&call[0]);
	slp_call_free(&call[1]);
	return true;
}

static bool of_op(const struct pair *p, int node, struct slp_follows *out)
{
	const struct slp_gnode *n = &p->g[0]->nodes[node];
	struct slp_follows *in = slp_malloc((size_t)(n->nin + 1) * sizeof *in);
	if (!in) return slp_error_set(SL_ENOMEM, "no memory for a trace") == SL_OK;
	const struct slp_follows *bad = NULL;
	for (int i = 0; i < n->nin; i++) {
		in[i] = p->of[slp_value_id(n->in[i])];
		if (in[i].kind == SLP_OTHER && !bad) bad = &in[i];
	}
	for (int o = 0; bad && o < n->nout; o++) out[o] = *bad;
	bool ok = bad || of_call(p, node, in, out);
	free(in);
	return ok;
}

static bool visit(const struct pair *p, int node)
{
	struct slp_follows *out = &p->of[node * SLP_MAX_OUTPUTS];
	const struct slp_gnode *a = &p->g[0]->nodes[node], *b = &p->g[1]->nodes[node];
	if (a->kind == SLP_NODE_OP) return of_op(p, node, out);
	if (a->kind == SLP_NODE_INPUT) *out = of_input(p, node);
	else
		*out = a->tensor == b->tensor ? (struct slp_follows){.kind = SLP_SAME}
		                              : other(node, "is another tensor for another size");
	return true;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static enum sl_status refuse(const char *at, const char *what, const struct pair *p, struct slp_follows f)
{
	const struct slp_gnode *n = &p->g[0]->nodes[f.culprit];
	slp_call_fail(at, what, SL_EINVAL,
	              "cannot be padded to the sizes of its buckets, because results would depend on the padding: "
	              "%s '%s' (%s) %s",
	              n->op ? n->op->name : "tensor", n->name, n->at ? n->at : "", f.why);
	return SL_EINVAL;
}

/* Whether a node changes parameters by padding; *f: why. */
static bool spoils(const struct pair *p, int node, struct slp_follows *f)
{
	const struct slp_gnode *n = &p->g[0]->nodes[node];
	if (n->kind != SLP_NODE_OP || !slp_node_has_effect(n)) return false;
	for (int i = 0; i < n->nin; i++) {
		const struct slp_follows *in = &p->of[slp_value_id(n->in[i])], *out = &p->of[node * SLP_MAX_OUTPUTS];
		if (in->kind == SLP_SAME) continue;
		*f = in->kind == SLP_OTHER               ? *in
		     : n->nout && out->kind == SLP_OTHER ? *out
		                                         : other(node, "changes a parameter by it");
		return true;
	}
	return false;
}

static const char unlike[] = "is not called in the same way for all sizes";

static enum sl_status walk(const char *at, const char *what, struct pair *p)
{
	const sl_graph *more = p->g[0], *less = p->g[1];
	struct slp_follows f;
	for (int i = 0; i < more->count; i++) {
		bool same = i < less->count && same_node(&more->nodes[i], &less->nodes[i]);
		if (!same) return refuse(at, what, p, other(i, unlike));
		if (!visit(p, i)) return sl_error();
		if (spoils(p, i, &f)) return refuse(at, what, p, f);
	}
	return more->count == less->count ? SL_OK : refuse(at, what, p, other(more->count - 1, unlike));
}

static enum sl_status follow(const char *at, const char *what, struct pair *p, int nout, struct slp_follows *out)
{
	enum sl_status s = walk(at, what, p);
	for (int o = 0; s == SL_OK && o < nout; o++) {
		struct slp_value v = p->g[0]->outputs[o];
		bool same = o < p->g[1]->noutputs && slp_value_equal(v, p->g[1]->outputs[o]);
		out[o] = same ? p->of[slp_value_id(v)] : other(v.node, unlike);
		if (out[o].kind == SLP_OTHER) s = refuse(at, what, p, out[o]);
	}
	return s;
}

enum sl_status slp_prefix(const char *at, const char *what, const sl_graph *more, const sl_graph *less,
                          const int64_t size[2], int nout, struct slp_follows *out)
{
	struct pair p = {{more, less}, size, slp_calloc((size_t)more->count * SLP_MAX_OUTPUTS + 1, sizeof *p.of)};
	if (!p.of) return slp_error_set(SL_ENOMEM, "no memory for a trace");
	enum sl_status s = follow(at, what, &p, nout, out);
	free(p.of);
	return s;
}
