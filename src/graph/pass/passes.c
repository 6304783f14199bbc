/* Functions that the compiler's passes share: walks that replace values, attributes of nodes. */
#include "graph/pass/pass.h"
#include "op.h"
#include "runtime/fault.h"
#include "starling/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- walking ----------------------------------------------------------------------------------------------------- */

static bool find_written(struct slp_walk *w)
{
	const sl_graph *g = w->g;
	int *memory = slp_graph_memories(g);
	bool *touched = memory ? slp_graph_written(g, memory) : NULL;
	for (int i = 0; touched && i < w->count; i++) w->written[i] = touched[memory[i]];
	bool ok = touched;
	free(memory);
	free(touched);
	return ok;
}

bool slp_walk_begin(struct slp_walk *w, sl_graph *g)
{
	*w = (struct slp_walk){.g = g, .count = g->count * SLP_MAX_OUTPUTS};
	size_t n = (size_t)w->count + 1;
	w->to = slp_malloc(n * sizeof *w->to);
	w->written = slp_calloc(n, sizeof *w->written);
	w->output = slp_calloc(n, sizeof *w->output);
	if (!w->to || !w->written || !w->output || !find_written(w)) {
		w->count = 0;
		slp_walk_end(w);
		return slp_error_set(SL_ENOMEM, "graph: no memory for a pass"), false;
	}
	for (int i = 0; i < w->count; i++) w->to[i] = (struct slp_value){i / SLP_MAX_OUTPUTS, i % SLP_MAX_OUTPUTS};
	for (int i = 0; i < g->noutputs; i++) w->output[slp_value_id(g->outputs[i])] = true;
	return true;
}

static struct slp_value renamed(const struct slp_walk *w, struct slp_value v)
{
	return slp_value_id(v) < w->count ? w->to[slp_value_id(v)] : v;
}

void slp_walk_node(struct slp_walk *w, int node)
{
	struct slp_gnode *n = &w->g->nodes[node];
	for (int i = 0; i < n->nin; i++) n->in[i] = renamed(w, n->in[i]);
}

void slp_walk_replace(struct slp_walk *w, struct slp_value from, struct slp_value to)
{
	w->to[slp_value_id(from)] = renamed(w, to);
	w->output[slp_value_id(w->to[slp_value_id(from)])] |= w->output[slp_value_id(from)];
}

bool slp_walk_may_read(const struct slp_walk *w, struct slp_value v)
{
	return slp_value_id(v) >= w->count || !w->written[slp_value_id(v)];
}

bool slp_walk_may_replace(const struct slp_walk *w, struct slp_value from, struct slp_value to)
{
	if (w->written[slp_value_id(from)] || !slp_walk_may_read(w, to)) return false;
	bool own =
	        w->g->nodes[to.node].kind == SLP_NODE_OP && slp_value_id(to) < w->count && !w->output[slp_value_id(to)];
	return own || !w->output[slp_value_id(from)];
}

void slp_walk_end(struct slp_walk *w)
{
	for (int i = 0; w->count && i < w->g->noutputs; i++) w->g->outputs[i] = renamed(w, w->g->outputs[i]);
	free(w->to);
	free(w->written);
	free(w->output);
	*w = (struct slp_walk){0}; /* a second call does nothing */
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

bool slp_node_is(const struct slp_gnode *n, const struct sl_op *op)
{
	return n->kind == SLP_NODE_OP && !n->dead && n->op == op;
}

const struct slp_gnode *slp_value_op(const sl_graph *g, struct slp_value v, const struct sl_op *op)
{
	const struct slp_gnode *n = &g->nodes[v.node];
	return slp_node_is(n, op) ? n : NULL;
}

enum slp_conv_pass slp_node_conv(const struct slp_gnode *n)
{
	return n->kind == SLP_NODE_OP && !n->dead ? slp_conv_pass_of(n->op) : SLP_CONV_PASSES;
}

void slp_node_lower_conv(struct slp_gnode *n)
{
	enum slp_conv_pass pass = slp_node_conv(n);
	if (pass < SLP_CONV_PASSES && n->op == slp_conv_forms[pass].plain) n->op = slp_conv_forms[pass].lowered;
}

double slp_attr_number(const struct sl_op *op, const void *attrs, const char *name)
{
	const struct slp_attr *a = slp_attr_find(op, name);
	return a ? slp_attr_value(a, attrs, 0) : 0;
}

double slp_node_number(const struct slp_gnode *n, const char *name)
{
	return slp_attr_number(n->op, n->attrs.bytes, name);
}

void slp_node_set_int(struct slp_gnode *n, const char *name, int value)
{
	const struct slp_attr *a = slp_attr_find(n->op, name);
	char *p = n->attrs.bytes + a->offset;
	if (a->kind == SLP_BOOL) *(bool *)p = value;
	else memcpy(p, &value, sizeof value);
}

bool slp_transpose_axes(const sl_graph *g, const struct slp_gnode *n, int axes[SL_MAX_NDIM])
{
	const int *count = slp_node_attr(n, "naxes"), *list = slp_node_attr(n, "axes");
	int ndim = slp_value_type(g, n->in[0])->shape.ndim;
	for (int i = 0; i < ndim; i++) {
		axes[i] = *count ? list[i] : ndim - 1 - i;
		if (!slp_axis(&axes[i], ndim)) return false;
	}
	return true;
}

enum sl_status slp_pass_no_memory(const char *pass)
{
	return slp_error_set(SL_ENOMEM, "%s: no memory", pass);
}
