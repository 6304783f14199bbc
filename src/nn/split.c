/* Splits a joint program into forward, which also returns the values that the backward pass needs (residuals), and
 * backward, which takes them.  Parameters are bound in both. */
#include <stdlib.h>
#include <string.h>

#include "nn/split.h"
#include "op.h"
#include "runtime/fault.h"
#include "starling/graph.h"

struct split {
	const sl_graph *joint;
	struct slp_traced *traced;
	struct slp_value *mine; /* by the joint program's value: the same in backward; node -1: not there yet */
	int max_origins;
};

static bool add_origin(struct split *s, int kind, int index)
{
	sl_graph *b = s->traced->backward;
	if (!slp_grow((void **)&s->traced->origins, &s->max_origins, b->ninputs, sizeof *s->traced->origins))
		return false;
	s->traced->origins[b->ninputs - 1] = (struct slp_origin){kind, index};
	return true;
}

static int input_number(const sl_graph *g, int node)
{
	for (int i = 0; i < g->ninputs; i++)
		if (g->inputs[i] == node) return i;
	return -1;
}

/* A value of the forward part as an input or parameter of backward. */
static bool bring_over(struct split *s, struct slp_value v)
{
	const struct slp_gnode *n = &s->joint->nodes[v.node];
	sl_graph *b = s->traced->backward;
	struct slp_value *mine = &s->mine[slp_value_id(v)];
	if (n->kind == SLP_NODE_PARAM || n->kind == SLP_NODE_CONST) {
		*mine = (struct slp_value){slp_graph_add_tensor(b, n->at, n->name, n->kind, n->tensor), 0};
		return mine->node >= 0;
	}
	*mine = (struct slp_value){slp_graph_add_input(b, n->at, n->name, n->types[v.out]), 0};
	if (mine->node < 0) return false;
	if (n->kind == SLP_NODE_OP) {
		if (!slp_graph_add_output(s->traced->forward, v, NULL)) return false;
		return add_origin(s, SLP_FROM_RESIDUAL, s->traced->nresiduals++);
	}
	int input = input_number(s->joint, v.node), ndata = s->joint->ninputs - s->traced->nheads;
	if (input >= ndata) return add_origin(s, SLP_FROM_DOUT, s->traced->head[input - ndata]);
	return add_origin(s, SLP_FROM_INPUT, input);
}

static bool copy_node(struct split *s, int node)
{
	const struct slp_gnode *n = &s->joint->nodes[node];
	struct slp_value *in = slp_malloc((size_t)(n->nin + 1) * sizeof *in);
	bool ok = in != NULL;
	for (int i = 0; ok && i < n->nin; i++) {
		if (s->mine[slp_value_id(n->in[i])].node < 0) ok = bring_over(s, n->in[i]);
		if (ok) in[i] = s->mine[slp_value_id(n->in[i])];
	}
	int copy = ok ? slp_graph_add_op(s->traced->backward, n->at, n->name, n->op, n->attrs.bytes, n->nin, in) : -1;
	free(in);
	if (copy < 0) return false;
	struct slp_gnode *c = &s->traced->backward->nodes[copy];
	memcpy(c->types, n->types, sizeof c->types);
	c->backward = true;
	for (int k = 0; k < n->nout; k++) s->mine[node * SLP_MAX_OUTPUTS + k] = (struct slp_value){copy, k};
	return true;
}

static bool make_backward(struct split *s)
{
	const sl_graph *j = s->joint;
	for (int i = 0; i < j->count; i++)
		if (j->nodes[i].kind == SLP_NODE_OP && j->nodes[i].backward && !copy_node(s, i)) return false;
	for (int i = s->traced->nresults; i < j->noutputs; i++) {
		struct slp_value v = j->outputs[i];
		if (s->mine[slp_value_id(v)].node < 0 && !bring_over(s, v)) return false;
		if (!slp_graph_add_output(s->traced->backward, s->mine[slp_value_id(v)], NULL)) return false;
	}
	s->traced->backward->nrandom = 0; /* masks are drawn again from forward's streams */
	return true;
}

/* Forward: only the block's results, and no inputs for their gradients. */
static bool make_forward(struct split *s)
{
	s->traced->forward = slp_graph_copy(s->joint);
	if (!s->traced->forward) return false;
	sl_graph *f = s->traced->forward;
	f->noutputs = s->traced->nresults;
	for (int i = 0; i < f->count; i++)
		if (f->nodes[i].kind == SLP_NODE_OP && f->nodes[i].backward) slp_graph_kill(f, i);
	for (int i = 0; i < s->traced->nheads; i++) f->nodes[f->inputs[--f->ninputs]].dead = true;
	return true;
}

bool slp_split(const sl_graph *joint, struct slp_traced *traced)
{
	struct split s = {.joint = joint, .traced = traced};
	size_t values = (size_t)joint->count * SLP_MAX_OUTPUTS + 1;
	s.mine = slp_malloc(values * sizeof *s.mine);
	bool ok = s.mine && make_forward(&s);
	if (ok && joint->noutputs > traced->nresults) {
		for (size_t i = 0; i < values; i++) s.mine[i] = (struct slp_value){-1, 0};
		traced->backward = slp_graph_new();
		ok = traced->backward && make_backward(&s);
	}
	free(s.mine);
	if (ok) ok = slp_graph_compact(traced->forward);
	if (!ok && sl_error() == SL_OK) slp_error_set(SL_ENOMEM, "no memory for a trace");
	return ok;
}
