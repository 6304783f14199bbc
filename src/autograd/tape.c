/* Recording: modes, variables, nodes. */
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "autograd/blank.h"
#include "op.h"
#include "runtime/fault.h"
#include "runtime/gate.h"
#include "starling/autograd.h"

struct slp_guard slp_tape_guard;

static _Atomic uint64_t calls_recorded;
static _Thread_local bool training, spent_is_constant;
static _Thread_local const struct slp_recorder *by = &slp_tape;

/* ---- variables and nodes ----------------------------------------------------------------------------------------- */

struct slp_var *slp_var_new(void)
{
	struct slp_var *v = slp_calloc(1, sizeof *v);
	if (v) atomic_init(&v->refs, 1);
	return v;
}

void slp_var_retain(struct slp_var *v)
{
	atomic_fetch_add(&v->refs, 1);
}

void slp_node_give_up(struct slp_node *node)
{
	for (int i = 0; i < node->nin; i++) {
		sl_release(node->in[i]);
		node->in[i] = NULL;
	}
	for (int i = 0; i < node->nout; i++) {
		sl_release(node->out[i]);
		node->out[i] = NULL;
	}
}

/* Gives up a reference; a variable without references joins the list of those to free. */
static void var_drop(struct slp_var *var, struct slp_var **dying)
{
	if (atomic_fetch_sub(&var->refs, 1) != 1) return;
	var->dying = *dying;
	*dying = var;
}

static void node_drop(struct slp_node *node, struct slp_var **dying)
{
	if (atomic_fetch_sub(&node->refs, 1) != 1) return;
	slp_node_give_up(node);
	if (node->op->hold) node->op->hold(node->attrs.bytes, false);
	for (int i = 0; i < node->nin; i++)
		if (node->in_vars[i]) var_drop(node->in_vars[i], dying);
	free(node);
}

/* Chains may be long: dead nodes are listed and freed one after the other, without recursion. */
static void free_dying(struct slp_var *dying)
{
	for (struct slp_var *v; (v = dying);) {
		dying = v->dying;
		sl_release(v->grad);
		if (v->node) node_drop(v->node, &dying);
		free(v);
	}
}

static void var_release(struct slp_var *var)
{
	struct slp_var *dying = NULL;
	var_drop(var, &dying);
	free_dying(dying);
}

static void release_later(void *var)
{
	var_release(var);
}

/* Another thread may look at the variable that it had. */
static void set_var(sl_tensor *t, struct slp_var *var)
{
	slp_later(release_later, atomic_exchange(&t->var, var));
}

static void node_release(struct slp_node *node)
{
	struct slp_var *dying = NULL;
	node_drop(node, &dying);
	free_dying(dying);
}

bool slp_spent_is_constant(void)
{
	return spent_is_constant;
}

/* A gradient does, too: that it is used is found out, and refused. */
static bool wants(const sl_tensor *t)
{
	if (t->gradient) return true;
	if (spent_is_constant && t->var && t->var->node && t->var->node->spent) return false;
	return t->var && (t->var->node || t->var->req != SL_GRAD_NONE);
}

/* A node with its arrays behind it. */
static struct slp_node *node_new(int nin, int nout)
{
	size_t n = (size_t)(nin + nout);
	size_t size = sizeof(struct slp_node) + (size_t)nin * sizeof(struct slp_var *) +
	              (n + (size_t)nout) * sizeof(sl_tensor *) + n * sizeof(unsigned);
	struct slp_node *node = slp_calloc(1, size);
	if (!node) return NULL;
	node->in_vars = (struct slp_var **)(node + 1);
	node->in = (sl_tensor **)(node->in_vars + nin);
	node->out = node->in + nin;
	node->dout = node->out + nout;
	node->versions = (unsigned *)(node->dout + nout);
	node->nin = nin;
	node->nout = nout;
	return node;
}

static bool saves_input(const struct sl_op *op, int i)
{
	int bit = op->period ? i % op->period : i;
	return bit < 16 && op->saves & SLP_IN(bit);
}

static sl_tensor *save(sl_tensor *t, bool values, unsigned *version)
{
	*version = values && t->storage ? atomic_load(&t->storage->version) : 0;
	return slp_tensor_alias(t, values);
}

static bool fill_node(struct slp_node *node, sl_tensor *const *in, sl_tensor *const *out)
{
	for (int i = 0; i < node->nin; i++) {
		node->in[i] = save(in[i], saves_input(node->op, i), &node->versions[i]);
		if (!node->in[i]) return false;
		struct slp_var *var = in[i]->var;
		if (!var || !wants(in[i])) continue;
		slp_var_retain(var);
		node->in_vars[i] = var;
	}
	for (int i = 0; i < node->nout; i++) {
		node->out[i] = save(out[i], node->op->saves & SLP_OUT(i), &node->versions[node->nin + i]);
		if (!node->out[i]) return false;
	}
	return true;
}

static void link_output(struct slp_node *node, int i, sl_tensor *t, struct slp_var *v)
{
	v->node = node;
	v->index = i;
	v->type = t->type;
	v->device = t->device;
	atomic_fetch_add(&node->refs, 1);
	set_var(t, v); /* changed in place: it is another variable now */
}

/* No gradient flows through a gradient: as a constant it would make sums of derivatives silently wrong. */
static bool no_gradients(const char *at, const struct sl_op *op, int nin, sl_tensor *const *in)
{
	for (int i = 0; i < nin; i++) {
		if (!in[i]->gradient) continue;
		slp_call_fail(at, op->name, SL_EUNSUPPORTED,
		              "argument %d is a gradient whose computation was not recorded: compute it with "
		              ".create_graph = true, or compute with it under SL_PAUSE, or take sl_detach of it, which "
		              "is a constant",
		              i);
		return false;
	}
	return true;
}

bool slp_is_outside(const char *at, const char *function, const sl_tensor *t)
{
	if (!t->var || !t->var->inside) return true;
	slp_call_fail(
	        at, function, SL_ESTATE,
	        "a tensor comes from the inside of a block that is recomputed: have the block return it (sl_also), "
	        "or take sl_detach of it");
	return false;
}

/* Whether for a backward pass the results are constants: those of comparisons are, and integers. */
static bool is_constant(const struct sl_op *op, int nout, sl_tensor *const *out)
{
	bool floats = false;
	for (int i = 0; i < nout; i++) floats |= slp_is_float(out[i]->type.dtype);
	return op->grad == slp_constant || !floats;
}

/* False with an error: nothing is linked then. */
static bool record_call(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in,
                        int nout, sl_tensor *const *out)
{
	bool any = false;
	for (int i = 0; i < nin; i++) any |= wants(in[i]);
	if (!any || is_constant(op, nout, out)) return true;
	if (!no_gradients(at, op, nin, in)) return false;
	for (int i = 0; i < nin; i++)
		if (!slp_is_outside(at, op->name, in[i])) return false;
	struct slp_node *node = node_new(nin, nout);
	struct slp_var *vars[SLP_TAPE_OUTPUTS] = {NULL};
	bool ok = node != NULL;
	for (int i = 0; ok && i < nout; i++) ok = (vars[i] = slp_var_new()) != NULL;
	if (ok) {
		atomic_init(&node->refs, 1);
		node->number = atomic_fetch_add(&calls_recorded, 1);
		node->op = op;
		node->at = at;
		node->autocast = slp_mode.autocast;
		if (op->attrs_size) memcpy(node->attrs.bytes, attrs, op->attrs_size);
		if (op->hold) op->hold(attrs, true);
		if ((ok = fill_node(node, in, out)))
			for (int i = 0; i < nout; i++) link_output(node, i, out[i], vars[i]);
		node_release(node);
	} else {
		free(node);
	}
	for (int i = 0; !ok && i < SLP_TAPE_OUTPUTS; i++) free(vars[i]);
	return ok;
}

/* Changing a leaf, or values that others use or the tape has saved, would make gradients wrong. */
static bool may_change(const char *at, const struct sl_op *op, sl_tensor *t)
{
	if (!wants(t) || t->gradient) return true;
	if (t->symbol && op->mutates) return true; /* a parameter in a trace: its program keeps the order */
	if (!t->var->node && !t->var->inside) {
		slp_call_fail(
		        at, op->name, SL_ESTATE,
		        "a tensor with a gradient attached cannot be changed in place while recording; use SL_PAUSE");
		return false;
	}
	if (atomic_load(&t->storage->refs) == 1) return true;
	slp_call_fail(at, op->name, SL_ESTATE,
	              "a recorded tensor that has views, or whose values a gradient needs, cannot be changed in place");
	return false;
}

const struct slp_recorder slp_tape = {record_call, may_change, wants};

__attribute__((constructor)) static void tape_init(void)
{
	slp_var_release = var_release;
}

/* ---- modes ------------------------------------------------------------------------------------------------------- */

/* Whether the calling thread's operations are recorded. */
bool sl_is_recording(void)
{
	return slp_mode.recorder != NULL;
}

/* Whether the calling thread is in training mode, which affects dropout and batch norm. */
bool sl_is_training(void)
{
	return training;
}

/* The start of SL_RECORD, SL_PAUSE and others, for the calling thread: 1 switches a mode on, 0 off, -1 leaves it
 * unchanged.  mode, which belongs to the caller, keeps the previous state.  recording 2 also switches recording on, and
 * from then on results that sl_backward has differentiated are constants for this thread, as in Gluon, until it records
 * with 1; otherwise a second backward pass through them is an error. */
void sl_mode_enter(sl_mode *mode, int recording, int train)
{
	if (!mode) return;
	*mode = (sl_mode){sl_is_recording(), training, 1};
	if (recording > 0) spent_is_constant = recording == 2;
	if (recording >= 0) slp_mode.recorder = recording ? by : NULL;
	if (train >= 0) training = train;
}

/* The end of SL_RECORD, SL_PAUSE and others, however control leaves the block: restores the previous state.
 */
void sl_mode_leave(sl_mode *mode)
{
	if (!mode || !mode->open) return;
	slp_mode.recorder = mode->recording ? by : NULL;
	training = mode->training;
	mode->open = 0;
}

void slp_record_again(void)
{
	slp_mode.recorder = by;
}

const struct slp_recorder *slp_record_by(const struct slp_recorder *now)
{
	const struct slp_recorder *before = by;
	by = now ? now : &slp_tape;
	if (slp_mode.recorder) slp_mode.recorder = by;
	return before;
}

/* ---- leaves ------------------------------------------------------------------------------------------------------ */

/* Attaches a gradient to t: sl_backward writes it to sl_grad(t), or with .req = SL_GRAD_ADD adds to it (zeros at
 * first); SL_GRAD_NONE detaches it.  t becomes a leaf: its history is forgotten.  SL_EDTYPE: t is not a float;
 * SL_ESTATE: t is a symbol, or has lost its values.
 *
 *     sl_attach_grad(w);
 *     sl_attach_grad(w, .req = SL_GRAD_ADD); */
enum sl_status sl_attach_grad_at(const char *at, sl_tensor *t, struct sl_attach_opts opts)
{
	SLP_CALL("sl_attach_grad", at);
	if (slp_trace_refuses(at, "sl_attach_grad", t)) return sl_error();
	if (!slp_tensor_usable(at, "sl_attach_grad", t)) return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
	if (!slp_is_float(t->type.dtype)) {
		slp_call_fail(at, "sl_attach_grad", SL_EDTYPE, "the tensor is %s; only floats have gradients",
		              sl_dtype_name(t->type.dtype));
		return SL_EDTYPE;
	}
	struct slp_var *v = slp_var_new();
	if (!v) return slp_error_set(SL_ENOMEM, "sl_attach_grad: no memory");
	v->req = opts.req;
	v->type = t->type;
	v->device = t->device;
	if (opts.req != SL_GRAD_NONE) {
		sl_scope scope = {NULL, 0, 0};
		sl_scope_open(&scope);
		v->grad = sl_retain(slp_blank(t->type, t->device)); /* zeros, if somebody reads them */
		sl_scope_close(&scope);
		if (!v->grad) {
			var_release(v);
			return slp_error_set(SL_ENOMEM, "sl_attach_grad: no memory");
		}
		v->grad->gradient = true;
	}
	set_var(t, v);
	return SL_OK;
}

enum sl_status slp_attach_symbol(sl_tensor *symbol)
{
	struct slp_var *v = slp_var_new();
	if (!v) return slp_error_set(SL_ENOMEM, "no memory for a gradient");
	v->req = SL_GRAD_WRITE;
	v->type = symbol->type;
	v->device = symbol->device;
	set_var(symbol, v);
	return SL_OK;
}

/* The gradient with respect to t from the last sl_backward (zeros before the first).  It belongs to t: retain it to
 * keep it longer.  Unless it was computed with .create_graph, an operation on the gradient fails under SL_RECORD with
 * SL_EUNSUPPORTED; sl_detach or sl_grad_as_constant make it a constant.  NULL with SL_ESTATE if t has no gradient
 * attached. */
sl_tensor *sl_grad_at(const char *at, sl_tensor *t)
{
	SLP_CALL("sl_grad", at);
	if (!(t && t->symbol) && !slp_tensor_usable(at, "sl_grad", t)) return NULL;
	const struct slp_var *var = t->var;
	if (var && var->grad) return var->grad->symbol || slp_blank_fill(at, var->grad) ? var->grad : NULL;
	return slp_call_fail(at, "sl_grad", SL_ESTATE,
	                     "no gradient is attached to the tensor; call sl_attach_grad first");
}

/* From now on operations under SL_RECORD take the gradient, a tensor from sl_grad or sl_param_grad, as a constant, as
 * in Gluon: no gradient flows through it, and that is no error. */
void sl_grad_as_constant(sl_tensor *grad)
{
	if (!grad) return;
	grad->gradient = false;
	set_var(grad, NULL);
}

/* Whether sl_backward has written the gradient of t since its last use, by a step of a trainer or sl_grad_used.  False
 * for NULL and for a tensor without a gradient. */
bool sl_grad_is_fresh(const sl_tensor *t)
{
	SLP_CALL("sl_grad_is_fresh", NULL);
	const struct slp_var *var = t ? t->var : NULL;
	return var && var->fresh;
}

/* Marks the gradient of t as used, for custom optimisers, as a step of a trainer does: it is not fresh until the next
 * sl_backward, which starts a new sum if several backward passes add up to one gradient.
 *
 *     if (sl_grad_is_fresh(w)) my_update(w, sl_grad(w));
 *     sl_grad_used(w); */
void sl_grad_used(sl_tensor *t)
{
	SLP_CALL("sl_grad_used", NULL);
	struct slp_var *var = t ? t->var : NULL;
	if (var) var->fresh = false;
}
