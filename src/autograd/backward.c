/* The backward pass: gradients of the heads with respect to every leaf, call by call in reverse order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
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

/* Nodes that one walk meets. */
struct walk {
	const char *at;
	uint64_t number;
	struct slp_node **nodes;
	int count, capacity;
	struct slp_var **leaves;
	int nleaves, max_leaves;
	struct partial { /* a leaf's gradient from one device, before another device contributed */
		struct slp_var *leaf;
		sl_tensor *sum;
	} * partials;
	int npartials, max_partials;
	struct slp_var **inside; /* results of repeated parts: held */
	int ninside, max_inside;
	bool retain;
	double scale; /* of all gradients */
};

static bool push(void *list, int *count, int *capacity, void *item)
{
	void ***p = list;
	if (!slp_grow(list, capacity, *count + 1, sizeof **p)) return false;
	(*p)[(*count)++] = item;
	return true;
}

static bool meet(struct walk *w, struct slp_var *v)
{
	if (v->node) {
		if (v->node->visit == w->number) return true;
		v->node->visit = w->number;
		memset(v->node->dout, 0, (size_t)v->node->nout * sizeof(sl_tensor *));
		return push(&w->nodes, &w->count, &w->capacity, v->node);
	}
	if (v->visit == w->number || v->req == SL_GRAD_NONE) return true;
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

/* Collects all nodes behind those from `first` on, and sorts them with the remaining ones: the last call first. */
static enum sl_status collect(struct walk *w, int first, int coming)
{
	for (int n = first; n < w->count; n++) {
		if (slp_spent_is_constant()) cut_spent(w->nodes[n]);
		for (int i = 0; i < w->nodes[n]->nin; i++)
			if (w->nodes[n]->in_vars[i] && !meet(w, w->nodes[n]->in_vars[i])) return no_memory();
	}
	if (w->count > coming) qsort(w->nodes + coming, (size_t)(w->count - coming), sizeof *w->nodes, newest_first);
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
		slp_call_fail(w->at, "sl_backward", SL_ESHAPE, "the head's gradient has shape %s, the head %s",
		              sl_shape_string(grad->type.shape, a), sl_shape_string(head->type.shape, b));
		return SL_ESHAPE;
	}
	if (grad && grad->type.dtype != head->type.dtype) {
		slp_call_fail(w->at, "sl_backward", SL_EDTYPE, "the head's gradient is %s, the head %s",
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
		slp_call_fail(w->at, "sl_backward", SL_ESTATE,
		              "the values that the backward pass of %s (%s) needs were released already; pass "
		              ".retain_graph = true the first time",
		              n->op->name, n->at);
		return SL_ESTATE;
	}
	bool ok = true;
	for (int i = 0; i < n->nin; i++) ok &= version_ok(n->in[i], n->versions[i]);
	for (int i = 0; i < n->nout; i++) ok &= version_ok(n->out[i], n->versions[n->nin + i]);
	if (ok) return SL_OK;
	slp_call_fail(w->at, "sl_backward", SL_ESTATE,
	              "a tensor that the gradient of %s (%s) needs was changed in place", n->op->name, n->at);
	return SL_ESTATE;
}

/* In the autocast of the call, but products keep the types that it has chosen. */
static enum sl_status call_grad(const struct slp_node *n, sl_tensor **din, bool *need)
{
	for (int i = 0; i < n->nin; i++) {
		need[i] = n->in_vars[i] != NULL;
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
	                     .need = need};
	SLP_MODE_SCOPE();
	slp_mode.autocast = n->autocast;
	slp_mode.autocast_keeps = true;
	return n->op->grad(&g);
}

static enum sl_status hand_on(struct walk *w, const struct slp_node *n, sl_tensor *const *din)
{
	enum sl_status s = SL_OK;
	for (int i = 0; i < n->nin && s == SL_OK; i++) {
		if (!n->in_vars[i] || !din[i]) continue;
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
	if (!slp_node_repeat(n, out)) return sl_error();
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

static enum sl_status step(struct walk *w, int k)
{
	struct slp_node *n = w->nodes[k];
	bool reached = false, leads = false;
	for (int i = 0; i < n->nout; i++) reached |= n->dout[i] != NULL;
	for (int i = 0; i < n->nin; i++) leads |= n->in_vars[i] != NULL;
	if (!reached) return SL_OK;
	enum sl_status s = check_saved(w, n);
	if (s != SL_OK || !leads) return s;
	if (slp_node_is_part(n)) return go_inside(w, k);
	if (!n->op->grad) {
		slp_call_fail(n->at, n->op->name, SL_EUNSUPPORTED, "has no gradient, but sl_backward at %s needs it",
		              w->at);
		return SL_EUNSUPPORTED;
	}
	sl_tensor *few_din[8], **din = n->nin <= 8 ? few_din : slp_calloc((size_t)n->nin, sizeof *din);
	bool few_need[8], *need = n->nin <= 8 ? few_need : slp_calloc((size_t)n->nin, sizeof *need);
	s = din && need ? call_grad(n, din, need) : no_memory();
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

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

/* Adds the devices' contributions to a leaf; the walk met the last shard first. */
static enum sl_status join(const struct walk *w, struct slp_var *v)
{
	int count = 0;
	sl_tensor **list = slp_malloc(((size_t)w->npartials + 1) * sizeof *list);
	if (!list) return no_memory();
	list[count++] = v->sum;
	for (int i = w->npartials; i-- > 0;)
		if (w->partials[i].leaf == v) list[count++] = w->partials[i].sum;
	sl_tensor *sum = count > 1 ? slp_tree_sum(w->at, list, count, v->owner.kind ? v->owner : v->device) : v->sum;
	free(list);
	if (!sum) return sl_error();
	sl_retain(sum);
	sl_release(v->sum);
	v->sum = sum;
	return SL_OK;
}

static bool gathers(const struct slp_var *v)
{
	return v->fresh && v->gathered < v->gather;
}

/* Puts the sum into the leaf's gradient: takes over its memory if nothing else refers to it. */
static enum sl_status store(const struct walk *w, struct slp_var *v)
{
	if (v->sum->symbol) {
		sl_release(v->grad);
		v->grad = sl_retain(v->sum);
		return SL_OK;
	}
	if (v->req == SL_GRAD_ADD || gathers(v)) return sl_add_inplace_at(w->at, v->grad, v->sum) ? SL_OK : sl_error();
	bool ours = atomic_load(&v->sum->refs) == 1 && atomic_load(&v->sum->storage->refs) == 1 &&
	            v->sum->offset == 0 && sl_tensor_bytes(v->sum) == v->sum->storage->bytes;
	if (!ours) return sl_copy_inplace_at(w->at, v->grad, v->sum) ? SL_OK : sl_error();
	struct slp_storage *old = v->grad->storage;
	v->grad->storage = v->sum->storage;
	v->sum->storage = old;
	return SL_OK;
}

static void drop_partials(struct walk *w)
{
	for (int i = 0; i < w->npartials; i++) sl_release(w->partials[i].sum);
	free(w->partials);
	for (int i = 0; i < w->ninside; i++) slp_var_release(w->inside[i]);
	free(w->inside);
}

/* Sums that have been used: some have the memory of gradients from before now, which another thread may look at. */
struct used {
	int count;
	sl_tensor *list[];
};

static void free_used(void *used)
{
	struct used *u = used;
	for (int i = 0; i < u->count; i++) sl_release(u->list[i]);
	free(u);
}

/* After an error only drops the sums: s is restored. */
static enum sl_status store_all(const struct walk *w, enum sl_status s)
{
	struct used *used = w->nleaves ? slp_try_malloc(sizeof *used + (size_t)w->nleaves * sizeof *used->list) : NULL;
	if (used) used->count = 0;
	for (int i = 0; i < w->nleaves; i++) {
		struct slp_var *v = w->leaves[i];
		if (v->sum && s == SL_OK && w->npartials)
			SL_SCOPE
				s = join(w, v);
		if (v->sum && s == SL_OK) {
			bool adds = v->fresh && (v->req == SL_GRAD_ADD || gathers(v));
			s = store(w, v);
			v->scale = adds && v->scale != w->scale ? NAN : w->scale;
			v->gathered = gathers(v) ? v->gathered + 1 : 1;
			v->fresh = true;
		}
		if (used && v->sum) used->list[used->count++] = v->sum;
		else sl_release(v->sum);
		v->sum = NULL;
	}
	slp_later(free_used, used);
	return s;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static enum sl_status run(struct walk *w, sl_tensor *const *heads, int count, sl_tensor *const *grads)
{
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
		s = store_all(w, s);
	return s;
}

static enum sl_status check_heads(const char *at, sl_tensor *const *heads, int count)
{
	if (!heads && count > 0) {
		slp_call_fail(at, "sl_backward", SL_EINVAL, "heads is NULL");
		return SL_EINVAL;
	}
	for (int i = 0; i < count; i++) {
		bool symbol = heads[i] && heads[i]->symbol;
		if (!symbol && !slp_tensor_usable(at, "sl_backward", heads[i]))
			return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
		if (!slp_is_outside(at, "sl_backward", heads[i])) return SL_ESTATE;
		if (heads[i]->var) continue;
		if (heads[i]->gradient) {
			slp_call_fail(at, "sl_backward", SL_EUNSUPPORTED,
			              "head %d is a gradient, and there are no second derivatives", i);
			return SL_EUNSUPPORTED;
		}
		slp_call_fail(
		        at, "sl_backward", SL_ESTATE,
		        "head %d was not computed under SL_RECORD from a tensor with a gradient attached, or is a "
		        "constant to it, as comparisons and integers are",
		        i);
		return SL_ESTATE;
	}
	return SL_OK;
}

enum sl_status slp_backward(const char *at, sl_tensor *const *heads, int count, struct sl_backward_opts opts)
{
	static _Atomic uint64_t walks;
	if (slp_mode.in_custom && !slp_mode.tracing) {
		slp_call_fail(
		        at, "sl_backward", SL_ESTATE,
		        "called within another sl_backward: in the backward function of sl_custom_gradient, or in the "
		        "forward of a block that is recomputed");
		return SL_ESTATE;
	}
	enum sl_status s = check_heads(at, heads, count);
	if (s != SL_OK) return s;
	if (!isfinite(opts.scale)) {
		slp_call_fail(at, "sl_backward", SL_EINVAL, ".scale is %g, a finite number needed", opts.scale);
		return SL_EINVAL;
	}
	struct walk w = {.at = at,
	                 .number = atomic_fetch_add(&walks, 1) + 1,
	                 .retain = opts.retain_graph,
	                 .scale = slp_or(opts.scale, 1)};
	sl_mode mode;
	sl_autocast_mode cast;
	sl_mode_enter(&mode, 0, -1);
	sl_autocast_enter_at(at, &cast, SL_DTYPE_DEFAULT);
	const char *outer = slp_fxt_enter("backward");
	int level = slp_level_enter(SLP_LEVEL_BACKWARD);
	/* no other thread sees the nodes of a trace */
	struct slp_guard *entered = slp_mode.tracing ? NULL : slp_guard_enter(&slp_tape_guard, NULL, NULL);
	s = run(&w, heads, count, opts.head_grads);
	slp_guard_leave(&entered);
	slp_level_leave(level);
	slp_fxt_leave(outer);
	sl_autocast_leave(&cast);
	sl_mode_leave(&mode);
	drop_partials(&w);
	free(w.nodes);
	free(w.leaves);
	return s;
}

/* Computes the gradients of the heads with respect to all tensors with a gradient attached (sl_attach_grad). Returns at
 * once: the gradients are computed later.  For heads that are not scalars, the gradient is that of the sum of their
 * elements, or opts.head_grads are the gradients of the heads; all gradients are multiplied by opts.scale, and the step
 * of a trainer divides by it (sl_trainer_loss_scale).  Values that were saved for the backward pass are released when
 * they have been used, unless opts.retain_graph.  After an error no gradient has changed: SL_ESTATE, a head was not
 * recorded, the call is made in a function of sl_custom_gradient or while a program is traced, values that the backward
 * pass needs have been released, or a tensor that it needs was changed in place; SL_ESHAPE, SL_EDTYPE, a head's
 * gradient does not match the head; SL_EUNSUPPORTED, a recorded operation has no gradient, or a head is itself a
 * gradient; SL_EINVAL, heads is NULL, or opts.scale is not finite.  Reverse accumulation: A. Griewank, A. Walther,
 * "Evaluating Derivatives", SIAM 2008.
 *
 *     SL_RECORD loss = sl_l2_loss(sl_linear(x, w, b), y);
 *     sl_backward(loss);                    // then sl_grad(w), sl_grad(b) */
enum sl_status sl_backward_heads_at(const char *at, sl_tensor *const *heads, int count, struct sl_backward_opts opts)
{
	SLP_CALL("sl_backward", at);
	if (!SLP_OPTIONS(sl_backward_opts, at, "sl_backward", &opts)) return SL_EINVAL;
	if (!slp_mode.tracing) return slp_backward(at, heads, count, opts);
	slp_trace_complain("sl_backward at %s is called while a program is traced", at);
	slp_call_fail(at, "sl_backward", SL_ESTATE,
	              "called in a forward or a loss that is traced; call it outside, on the block's result");
	return SL_ESTATE;
}
