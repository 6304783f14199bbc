/* The block of an MXNet symbol: runs it node by node, with our operations. */
#include <stdlib.h>
#include <string.h>

#include "mxnet/block.h"
#include "op.h"
#include "runtime/budget.h"
#include "starling/nn.h"

int slp_mx_used_inputs(const struct slp_mx_block *b, int node)
{
	const struct slp_mx_part *p = &b->parts[node];
	return p->op && p->op->used ? p->op->used : b->symbol.nodes[node].nin;
}

/* Values of a run: one for each output of each node, held until its last use. */
struct run {
	struct slp_mx_block *b;
	sl_tensor *const *given;
	sl_tensor **values, **in;
	int *uses; /* that are still to come */
};

int slp_mx_value_of(const struct slp_mx_block *b, struct slp_mx_value v)
{
	return b->parts[v.node].first + v.out;
}

static void drop(struct run *r, int value)
{
	sl_release(r->values[value]);
	r->values[value] = NULL;
}

static void used(struct run *r, int value)
{
	if (--r->uses[value] == 0) drop(r, value);
}

static bool run_variable(struct run *r, int node)
{
	struct slp_mx_part *p = &r->b->parts[node];
	sl_tensor **value = &r->values[p->first];
	if (p->input >= 0) *value = r->given[p->input];
	else *value = sl_param_use_at(slp_forward_call_site(), p->param, r->given[0]);
	return *value != NULL;
}

static bool run_node(struct run *r, int node)
{
	struct slp_mx_part *p = &r->b->parts[node];
	const struct slp_mx_node *n = &r->b->symbol.nodes[node];
	if (!p->op) return run_variable(r, node);
	if (!slp_budget_allows(1)) return false;
	struct slp_mx_call c = {.at = p->at,
	                        .function = "sl_forward",
	                        .node = n,
	                        .op = p->op,
	                        .in = r->in,
	                        .nin = p->op->used ? p->op->used : n->nin,
	                        .out = &r->values[p->first]};
	for (int i = 0; i < c.nin; i++) r->in[i] = r->values[slp_mx_value_of(r->b, n->in[i])];
	p->op->import(&c);
	for (int i = 0; i < n->nout && !c.failed; i++)
		if (!c.out[i]) return false; /* and recorded */
	return !c.failed;
}

/* Releases a node's intermediate tensors, its arguments after their last use. */
static bool run_and_release(struct run *r, int node)
{
	const struct slp_mx_block *b = r->b;
	const struct slp_mx_node *n = &b->symbol.nodes[node];
	bool ok = false;
	SL_SCOPE {
		ok = run_node(r, node);
		for (int i = 0; i < n->nout; i++) sl_retain(r->values[b->parts[node].first + i]);
	}
	for (int i = 0; ok && i < slp_mx_used_inputs(b, node); i++) used(r, slp_mx_value_of(b, n->in[i]));
	for (int i = 0; i < n->nout; i++)
		if (!b->uses[b->parts[node].first + i]) drop(r, b->parts[node].first + i);
	return ok;
}

static sl_tensor *run_all(struct run *r)
{
	const struct slp_mx_block *b = r->b;
	bool ok = true;
	r->in = r->values + b->nvalues;
	memcpy(r->uses, b->uses, (size_t)b->nvalues * sizeof *r->uses);
	for (int i = 0; i < b->symbol.count && ok; i++) {
		int node = b->symbol.order[i];
		if (b->symbol.nodes[node].needed) ok = run_and_release(r, node);
	}
	sl_tensor *y = ok ? sl_retain(r->values[slp_mx_value_of(b, b->head)]) : NULL;
	for (int i = 0; i < b->nvalues; i++) drop(r, i);
	return slp_scope_add(y);
}

sl_tensor *slp_mx_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct slp_mx_block *b = (struct slp_mx_block *)self;
	SLP_BUDGET(b->file);
	if (nin != b->ninputs)
		return slp_call_fail(slp_forward_call_site(), "sl_forward", SL_EINVAL, "%s takes %d inputs, got %d",
		                     sl_block_name(self), b->ninputs, nin);
	size_t values = (size_t)b->nvalues, room = values + (size_t)b->most_in + 1;
	struct run r = {.b = b,
	                .given = in,
	                .values = slp_calloc(room, sizeof *r.values),
	                .uses = slp_malloc((values + 1) * sizeof *r.uses)};
	sl_tensor *y = NULL;
	if (r.values && r.uses) y = run_all(&r);
	else slp_call_fail(slp_forward_call_site(), "sl_forward", SL_ENOMEM, "no memory");
	free(r.values);
	free(r.uses);
	return y;
}

void slp_mx_destroy(sl_block *self)
{
	struct slp_mx_block *b = (struct slp_mx_block *)self;
	slp_mx_free(&b->symbol);
	free(b->parts);
	free(b->uses);
	free(b->file);
	free(b);
}
