/* Second derivatives: a backward pass that is recorded computes gradients by operations that have gradients.  Those of
 * most operations are made of such; an operation whose gradient has a kernel of its own computes it otherwise
 * (slp_grad.again), or makes its result again by other operations (sl_op.again), through which the walk goes on. */
#include <stdlib.h>

#include "autograd/walk.h"
#include "op.h"
#include "runtime/fault.h"
#include "starling/tensor.h"

/* ---- operands with their histories ------------------------------------------------------------------------------- */

static sl_tensor *with_history(const sl_tensor *t, struct slp_var *var)
{
	sl_tensor *alias = slp_scope_add(slp_tensor_alias(t, true));
	if (!alias || !var) return alias;
	slp_var_retain(var);
	alias->var = var;
	return alias;
}

/* The recorded variable of a result is another one, but of the same call. */
static struct slp_var *result_of(struct slp_node *n, int i)
{
	struct slp_var *v = slp_var_new();
	if (!v) return NULL;
	v->node = n;
	v->index = i;
	v->type = n->out[i]->type;
	v->device = n->out[i]->device;
	atomic_fetch_add(&n->refs, 1);
	return v;
}

static sl_tensor *result_with_history(struct slp_node *n, int i)
{
	struct slp_var *v = result_of(n, i);
	sl_tensor *t = v ? with_history(n->out[i], v) : NULL;
	if (v) slp_var_release(v);
	return t;
}

bool slp_node_histories(struct slp_node *n, struct slp_grad *g)
{
	sl_tensor **all = slp_calloc((size_t)(n->nin + n->nout), sizeof *all);
	bool ok = all != NULL;
	for (int i = 0; ok && i < n->nin; i++) ok = (all[i] = with_history(n->in[i], n->in_vars[i])) != NULL;
	for (int i = 0; ok && i < n->nout; i++) ok = (all[n->nin + i] = result_with_history(n, i)) != NULL;
	g->in = all;
	g->out = all ? all + n->nin : NULL;
	return ok || slp_error_set(SL_ENOMEM, "sl_backward: no memory") == SL_OK;
}

/* ---- calls that are made again ----------------------------------------------------------------------------------- */

/* Gradients do not depend on values that were not saved: zeros stand for them. */
static sl_tensor *some_values(const char *at, sl_tensor *t)
{
	if (t->storage || t->symbol) return t;
	sl_tensor *zeros = sl_zeros_at(at, t->type.shape, (struct sl_make){t->type.dtype, t->device});
	if (!zeros || !t->var) return zeros;
	return with_history(zeros, t->var);
}

bool slp_node_is_made_again(const struct slp_node *n)
{
	return n->op->again != NULL;
}

bool slp_node_make_again(struct slp_node *n, sl_tensor **out)
{
	struct slp_grad g = {.op = n->op, .at = n->at, .attrs = n->attrs.bytes, .nin = n->nin, .nout = n->nout};
	SLP_MODE_SCOPE();
	slp_mode.in_custom = true; /* no other walk can begin there */
	slp_mode.autocast = n->autocast;
	slp_mode.autocast_keeps = true;
	bool ok = slp_node_histories(n, &g);
	sl_tensor **in = (sl_tensor **)g.in;
	for (int i = 0; ok && i < n->nin; i++) ok = (in[i] = some_values(n->at, in[i])) != NULL;
	g.again = true;
	ok = ok && n->op->again(&g, out);
	free(in);
	return ok && sl_error() == SL_OK;
}
