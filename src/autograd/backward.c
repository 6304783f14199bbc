/* The backward pass: gradients of the heads with respect to every leaf, call by call in reverse order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/walk.h"
#include "op_inner.h"
#include "op_list/move.h"
#include "options.h"
#include "runtime/fault.h"
#include "runtime/gate.h"
#include "runtime/observe/fxt.h"
#include "runtime/task/priority.h"
#include "runtime/task/storage.h"
#include "starling/autograd.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

static bool push(void *list, int *count, int *capacity, void *item)
{
	void ***p = list;
	if (!slp_grow(list, capacity, *count + 1, sizeof **p)) return false;
	(*p)[(*count)++] = item;
	return true;
}

/* Whether the gradient with respect to a leaf is wanted. */
static bool is_wanted(const struct walk *w, const struct slp_var *leaf)
{
	for (int i = 0; i < w->nwants; i++)
		if (w->wants[i]->var == leaf) return true;
	return false;
}

static bool meet(struct walk *w, struct slp_var *v)
{
	if (v->node) {
		if (v->node->visit == w->number) return true;
		v->node->visit = w->number;
		v->node->wanted = false;
		v->node->leads = !w->nwants;
		memset(v->node->dout, 0, (size_t)v->node->nout * sizeof(sl_tensor *));
		return push(&w->nodes, &w->count, &w->capacity, v->node);
	}
	if (v->visit == w->number || v->req == SL_GRAD_NONE || (w->nwants && !is_wanted(w, v))) return true;
	v->visit = w->number;
	v->sum = NULL;
	return push(&w->leaves, &w->nleaves, &w->max_leaves, v);
}

static int newest_first(const void *a, const void *b)
{
	uint64_t x = (*(struct slp_node *const *)a)->number, y = (*(struct slp_node *const *)b)->number;
	return x < y ? 1 : x > y ? -1 : 0;
}

static enum sl_status no_memory(void)
{
	return slp_error_set(SL_ENOMEM, "sl_backward: no memory");
}

/* Cuts a node off what was gone back through already, where that is a constant: recorded calls may take other results of
 * the same call, whose own node is new. */
static void cut_spent(struct slp_node *n)
{
	for (int i = 0; i < n->nin && !n->spent; i++) {
		struct slp_var *v = n->in_vars[i];
		if (!v || !v->node || !v->node->spent) continue;
		n->in_vars[i] = NULL;
		slp_var_release(v);
	}
}

/* Whether a contribution to a variable leads to a gradient that is wanted. */
static bool flows(const struct walk *w, const struct slp_var *v)
{
	if (!v) return false;
	return !w->nwants || (v->node ? v->node->leads : v->visit == w->number);
}

/* Finds the calls on the ways to what is wanted: from the oldest on. */
static void find_ways(struct walk *w, int first)
{
	for (int i = 0; i < w->nwants; i++) {
		struct slp_node *n = w->wants[i]->var->node;
		if (n && n->visit == w->number) n->wanted = true;
	}
	for (int k = w->count; k-- > first;) {
		struct slp_node *n = w->nodes[k];
		n->leads = n->wanted;
		for (int i = 0; i < n->nin && !n->leads; i++) n->leads = flows(w, n->in_vars[i]);
	}
}

/* Collects all nodes behind those from `first` on, and sorts them with the remaining ones: the last call first. */
static enum sl_status collect(struct walk *w, int first, int coming)
{
	for (int n = first; n < w->count; n++) {
		if (slp_spent_is_constant()) cut_spent(w->nodes[n]);
		for (int i = 0; i < w->nodes[n]->nin; i++)
			if (w->nodes[n]->in_vars[i] && !meet(w, w->nodes[n]->in_vars[i])) return no_memory();
	}
	if (w->count > coming) qsort(w->nodes + coming, (size_t)(w->count - coming), sizeof *w->nodes, newest_first);
	if (w->nwants) find_ways(w, coming);
	return SL_OK;
}

static enum sl_status collect_heads(struct walk *w, sl_tensor *const *heads, int count)
{
	for (int i = 0; i < count; i++)
		if (!meet(w, heads[i]->var)) return no_memory();
	return collect(w, 0, 0);
}

/* Adds a contribution to a gradient, always in the order of the walk: sums have the same bits every time. */
static enum sl_status accumulate(const struct walk *w, sl_tensor **sum, sl_tensor *g)
{
	if (!*sum) {
		*sum = sl_retain(g);
		return SL_OK;
	}
	sl_tensor *both = sl_add_at(w->at, *sum, g);
	if (!both) return sl_error();
	sl_release(*sum);
	*sum = sl_retain(both);
	return SL_OK;
}

static bool conflict(const sl_tensor *a, const sl_tensor *b)
{
	return a->device.kind != SL_DEVICE_AUTO && b->device.kind != SL_DEVICE_AUTO &&
	       !sl_device_equal(a->device, b->device);
}

/* A leaf that devices share is summed on each of them first, and over them at the end: neither waits for the other. */
static enum sl_status set_aside(struct walk *w, struct slp_var *leaf)
{
	if (!slp_grow((void **)&w->partials, &w->max_partials, w->npartials + 1, sizeof *w->partials))
		return no_memory();
	w->partials[w->npartials++] = (struct partial){leaf, leaf->sum};
	leaf->sum = NULL;
	return SL_OK;
}

/* A gradient has the data type of its tensor; that of a conversion is not rounded before it is converted itself. */
static enum sl_dtype gradient_type(const struct slp_var *v)
{
	return v->node && v->node->op == &slp_op_cast ? slp_promoted(v->type.dtype) : v->type.dtype;
}

/* Contributions of two devices are added on the tensor's device. */
static enum sl_status contribute(struct walk *w, struct slp_var *v, sl_tensor *g)
{
	sl_tensor **sum = v->node ? &v->node->dout[v->index] : &v->sum;
	enum sl_dtype type = gradient_type(v);
	if (g->type.dtype != type && !(g = sl_cast_at(w->at, g, type))) return sl_error();
	if (*sum && conflict(*sum, g)) {
		if (!v->node) {
			enum sl_status s = set_aside(w, v);
			return s == SL_OK ? accumulate(w, sum, g) : s;
		}
		sl_tensor *there = sl_place_at(w->at, *sum, v->device);
		g = sl_place_at(w->at, g, v->device);
		if (!there || !g) return sl_error();
		sl_release(*sum);
		*sum = sl_retain(there);
	}
	return accumulate(w, sum, g);
}

/* A number as elements of a type have it: a loss scale beyond float16 is infinite, so that the step is left out. */
static double rounded(enum sl_dtype dtype, double value)
{
	double element = 0;
	struct slp_view v = {&element, {dtype, SL_SCALAR}};
	slp_set(&v, 0, value);
	return slp_get(&v, 0);
}

static enum sl_status start(struct walk *w, sl_tensor *head, sl_tensor *grad)
{
	if (grad && !sl_shape_equal(grad->type.shape, head->type.shape)) {
		char a[128], b[128];
		slp_call_fail(w->at, w->function, SL_ESHAPE, "the head's gradient has shape %s, the head %s",
		              sl_shape_string(grad->type.shape, a), sl_shape_string(head->type.shape, b));
		return SL_ESHAPE;
	}
	if (grad && grad->type.dtype != head->type.dtype) {
		slp_call_fail(w->at, w->function, SL_EDTYPE, "the head's gradient is %s, the head %s",
		              sl_dtype_name(grad->type.dtype), sl_dtype_name(head->type.dtype));
		return SL_EDTYPE;
	}
	if (grad && w->scale != 1) grad = sl_mul_scalar_at(w->at, grad, w->scale);
	else if (!grad)
		grad = sl_full_at(w->at, head->type.shape, rounded(head->type.dtype, w->scale),
		                  (struct sl_make){head->type.dtype, head->device});
	return grad ? contribute(w, head->var, grad) : sl_error();
}

/* ---- one node ---------------------------------------------------------------------------------------------------- */

static bool version_ok(const sl_tensor *t, unsigned version)
{
	return !t->storage || atomic_load(&t->storage->version) == version;
}

/* Whether the values that the node saved still exist, unchanged. */
static enum sl_status check_saved(const struct walk *w, const struct slp_node *n)
{
	if (n->spent) {
		slp_call_fail(w->at, w->function, SL_ESTATE,
		              "the values that the backward pass of %s (%s) needs were released already; pass "
		              ".retain_graph = true the first time",
		              n->op->name, n->at);
		return SL_ESTATE;
	}
	bool ok = true;
	for (int i = 0; i < n->nin; i++) ok &= version_ok(n->in[i], n->versions[i]);
	for (int i = 0; i < n->nout; i++) ok &= version_ok(n->out[i], n->versions[n->nin + i]);
	if (ok) return SL_OK;
	slp_call_fail(w->at, w->function, SL_ESTATE, "a tensor that the gradient of %s (%s) needs was changed in place",
	              n->op->name, n->at);
	return SL_ESTATE;
}

/* In the autocast of the call, but products keep the types that it has chosen. */
static enum sl_status call_grad(const struct walk *w, struct slp_node *n, sl_tensor **din, bool *need)
{
	for (int i = 0; i < n->nin; i++) {
		need[i] = flows(w, n->in_vars[i]);
		din[i] = NULL;
	}
	struct slp_grad g = {.op = n->op,
	                     .at = n->at,
	                     .attrs = n->attrs.bytes,
	                     .nin = n->nin,
	                     .nout = n->nout,
	                     .in = n->in,
	                     .out = n->out,
	                     .dout = n->dout,
	                     .din = din,
	                     .need = need,
	                     .again = w->again};
	SLP_MODE_SCOPE();
	slp_mode.autocast = n->autocast;
	slp_mode.autocast_keeps = true;
	if (!w->again) return n->op->grad(&g);
	enum sl_status s = slp_node_histories(n, &g) ? n->op->grad(&g) : sl_error();
	free((void *)g.in);
	return s;
}

static enum sl_status hand_on(struct walk *w, const struct slp_node *n, sl_tensor *const *din)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < n->nin && s == SL_OK; i++) {
		if (!flows(w, n->in_vars[i]) || !din[i]) continue;
		if (!sl_shape_equal(din[i]->type.shape, n->in_vars[i]->type.shape))
			return slp_error_set(SL_EINTERNAL, "sl_backward: %s gave input %d a gradient of another shape",
			                     n->op->name, i);
		s = contribute(w, n->in_vars[i], din[i]);
	}
	return s;
}

/* Repeats a part, the i-th node, and continues the walk inside: its calls are newer than all remaining ones, and their
 * gradients go to the same variables in the same order as if they had been recorded at first. */
static enum sl_status go_inside(struct walk *w, int i)
{
	struct slp_node *n = w->nodes[i];
	sl_tensor *out[SLP_TAPE_OUTPUTS] = {NULL};
	int first = w->count;
	if (!(slp_node_is_part(n) ? slp_node_repeat(n, out) : slp_node_make_again(n, out))) return sl_error();
	for (int k = 0; k < n->nout; k++) {
		struct slp_var *v = n->dout[k] && out[k] ? out[k]->var : NULL;
		if (!v) continue;
		if (!push(&w->inside, &w->ninside, &w->max_inside, v)) return no_memory();
		slp_var_retain(v);
		if (!meet(w, v)) return no_memory();
		enum sl_status s = contribute(w, v, n->dout[k]);
		if (s != SL_OK) return s;
	}
	return collect(w, first, i + 1);
}

/* Keeps a wanted result's gradient, which is complete now. */
static enum sl_status take(struct walk *w, const struct slp_node *n)
{
	for (int i = 0; i < w->nwants; i++) {
		const struct slp_var *v = w->wants[i]->var;
		if (v->node == n) w->given[i] = sl_retain(n->dout[v->index]);
	}
	return SL_OK;
}

static enum sl_status step(struct walk *w, int k)
{
	struct slp_node *n = w->nodes[k];
	bool reached = false, leads = false;
	for (int i = 0; i < n->nout; i++) reached |= n->dout[i] != NULL;
	for (int i = 0; i < n->nin; i++) leads |= flows(w, n->in_vars[i]);
	if (!reached) return SL_OK;
	enum sl_status s = n->wanted ? take(w, n) : SL_OK;
	if (w->nwants && !leads) return s;
	if (s == SL_OK) s = check_saved(w, n);
	if (s != SL_OK || !leads) return s;
	if (slp_node_is_part(n) || (w->again && slp_node_is_made_again(n))) return go_inside(w, k);
	if (!n->op->grad) {
		slp_call_fail(n->at, n->op->name, SL_EUNSUPPORTED, "has no gradient, but %s at %s needs it",
		              w->function, w->at);
		return SL_EUNSUPPORTED;
	}
	sl_tensor *few_din[8], **din = n->nin <= 8 ? few_din : slp_calloc((size_t)n->nin, sizeof *din);
	bool few_need[8], *need = n->nin <= 8 ? few_need : slp_calloc((size_t)n->nin, sizeof *need);
	s = din && need ? call_grad(w, n, din, need) : no_memory();
	if (s == SL_OK) s = hand_on(w, n, din);
	if (s == SL_OK && sl_error() != SL_OK) s = sl_error();
	if (n->nin > 8) {
		free(din);
		free(need);
	}
	return s;
}

static void drop_douts(struct slp_node *n)
{
	for (int i = 0; i < n->nout; i++) {
		sl_release(n->dout[i]);
		n->dout[i] = NULL;
	}
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

enum sl_status slp_walk(struct walk *w, sl_tensor *const *heads, int count, sl_tensor *const *grads)
{
	static _Atomic uint64_t walks;
	w->number = atomic_fetch_add(&walks, 1) + 1;
	enum sl_status s = collect_heads(w, heads, count);
	for (int i = 0; i < count && s == SL_OK; i++)
		SL_SCOPE
			s = start(w, heads[i], grads ? grads[i] : NULL);
	for (int i = 0; i < w->count; i++) {
		struct slp_node *n = w->nodes[i];
		if (s == SL_OK)
			SL_SCOPE
				s = step(w, i);
		drop_douts(n);
		if (s != SL_OK || w->retain) continue;
		slp_node_give_up(n);
		n->spent = true;
	}
	SL_SCOPE
		s = slp_store_all(w, s);
	return s;
}
