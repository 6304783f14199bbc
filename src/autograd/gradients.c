/* The backward pass as programs call it: sl_backward, sl_gradients. */
#include <math.h>
#include <stdlib.h>

#include "autograd/walk.h"
#include "op.h"
#include "options.h"
#include "runtime/fault.h"
#include "runtime/observe/fxt.h"
#include "runtime/task/priority.h"
#include "starling/autograd.h"
#include "starling/tensor.h"

static enum sl_status check_heads(const char *at, const char *function, sl_tensor *const *heads, int count)
{
	if (!heads && count > 0) {
		slp_call_fail(at, function, SL_EINVAL, "heads is NULL");
		return SL_EINVAL;
	}
	for (int i = 0; i < count; i++) {
		bool symbol = heads[i] && heads[i]->symbol;
		if (!symbol && !slp_tensor_usable(at, function, heads[i]))
			return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
		if (!slp_is_outside(at, function, heads[i])) return SL_ESTATE;
		if (heads[i]->var) continue;
		if (heads[i]->gradient) {
			slp_call_fail(at, function, SL_EUNSUPPORTED,
			              "head %d is a gradient whose computation was not recorded: compute it with "
			              ".create_graph = true",
			              i);
			return SL_EUNSUPPORTED;
		}
		slp_call_fail(
		        at, function, SL_ESTATE,
		        "head %d was not computed under SL_RECORD from a tensor with a gradient attached, or is a "
		        "constant to it, as comparisons and integers are",
		        i);
		return SL_ESTATE;
	}
	return SL_OK;
}

/* Whether a walk from these heads can begin. */
static enum sl_status check(const char *at, const char *function, sl_tensor *const *heads, int count,
                            const struct sl_backward_opts *opts)
{
	if (slp_mode.in_custom && !slp_mode.tracing) {
		slp_call_fail(
		        at, function, SL_ESTATE,
		        "called within another sl_backward: in the backward function of sl_custom_gradient, or in the "
		        "forward of a block that is recomputed");
		return SL_ESTATE;
	}
	enum sl_status s = check_heads(at, function, heads, count);
	if (s != SL_OK || isfinite(opts->scale)) return s;
	slp_call_fail(at, function, SL_EINVAL, ".scale is %g, a finite number needed", opts->scale);
	return SL_EINVAL;
}

/* Recording is off, unless gradients are recorded; and no autocast but that of each call. */
static enum sl_status walk(struct walk *w, sl_tensor *const *heads, int count, const struct sl_backward_opts *opts)
{
	w->again = opts->create_graph;
	w->retain = opts->retain_graph || opts->create_graph;
	w->scale = slp_or(opts->scale, 1);
	sl_mode mode;
	sl_autocast_mode cast;
	sl_mode_enter(&mode, 0, -1);
	if (w->again) slp_record_again();
	sl_autocast_enter_at(w->at, &cast, SL_DTYPE_DEFAULT);
	const char *outer = slp_fxt_enter("backward");
	int level = slp_level_enter(SLP_LEVEL_BACKWARD);
	/* no other thread sees the nodes of a trace */
	struct slp_guard *entered = slp_mode.tracing ? NULL : slp_guard_enter(&slp_tape_guard, NULL, NULL);
	enum sl_status s = slp_walk(w, heads, count, opts->head_grads);
	slp_guard_leave(&entered);
	slp_level_leave(level);
	slp_fxt_leave(outer);
	sl_autocast_leave(&cast);
	sl_mode_leave(&mode);
	slp_walk_free(w);
	return s;
}

enum sl_status slp_backward(const char *at, sl_tensor *const *heads, int count, struct sl_backward_opts opts)
{
	struct walk w = {.at = at, .function = "sl_backward"};
	enum sl_status s = check(at, w.function, heads, count, &opts);
	return s == SL_OK ? walk(&w, heads, count, &opts) : s;
}

/* Computes the gradients of the heads with respect to all tensors with a gradient attached (sl_attach_grad). Returns at
 * once: the gradients are computed later.  For heads that are not scalars, the gradient is that of the sum of their
 * elements, or opts.head_grads are the gradients of the heads; all gradients are multiplied by opts.scale, and the step
 * of a trainer divides by it (sl_trainer_loss_scale).  Values that were saved for the backward pass are released when
 * they have been used, unless opts.retain_graph.  With opts.create_graph, which keeps them, the computation of the
 * gradients is recorded: they can be differentiated, as sl_gradients explains; gradients refer to the record then,
 * which lives until the next sl_backward, sl_attach_grad or sl_grad_as_constant for the same tensors.  After an error
 * no gradient has changed: SL_ESTATE, a head was not recorded, the call is made in a function of sl_custom_gradient or
 * while a program is traced, values that the backward pass needs have been released, or a tensor that it needs was
 * changed in place; SL_ESHAPE, SL_EDTYPE, a head's gradient does not match the head; SL_EUNSUPPORTED, a recorded
 * operation has no gradient, or a head is itself a gradient that was not recorded; SL_EINVAL, heads is NULL, or
 * opts.scale is not finite.  Reverse accumulation: A. Griewank, A. Walther, "Evaluating Derivatives", SIAM 2008.
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

/* ---- gradients as results ---------------------------------------------------------------------------------------- */

static enum sl_status check_wants(const char *at, sl_tensor *const *wants, int count, sl_tensor *const *out)
{
	if (count < 1 || !wants || !out) {
		slp_call_fail(at, "sl_gradients", SL_EINVAL,
		              "it needs tensors to differentiate with respect to, and "
		              "an array for the gradients");
		return SL_EINVAL;
	}
	for (int i = 0; i < count; i++) {
		bool symbol = wants[i] && wants[i]->symbol;
		if (!symbol && !slp_tensor_usable(at, "sl_gradients", wants[i]))
			return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
		if (!slp_is_outside(at, "sl_gradients", wants[i])) return SL_ESTATE;
		if (wants[i]->var) continue;
		slp_call_fail(at, "sl_gradients", SL_ESTATE,
		              "tensor %d has no gradient attached, nor was it computed under SL_RECORD from one that "
		              "has: call sl_attach_grad before the computation",
		              i);
		return SL_ESTATE;
	}
	return SL_OK;
}

/* A result of its own: the sum may be the caller's tensor. */
static sl_tensor *result_of(const struct walk *w, int i)
{
	const sl_tensor *want = w->wants[i], *sum = w->given[i];
	if (!sum) return sl_zeros_at(w->at, want->type.shape, (struct sl_make){want->type.dtype, want->device});
	sl_tensor *t = slp_scope_add(slp_tensor_alias(sum, true));
	if (!t) return slp_call_fail(w->at, "sl_gradients", SL_ENOMEM, "no memory");
	if (w->again && sum->var) {
		slp_var_retain(sum->var);
		t->var = sum->var;
	}
	t->gradient = !w->again && !t->symbol;
	return t;
}

/* The gradients of the heads, of their sums if there are several, with respect to `wants` alone: out[i], which belongs
 * to the innermost scope, is that with respect to wants[i], zeros if no head depends on it.  Other tensors with a
 * gradient attached keep theirs, and only the calls on the paths from wants to the heads are differentiated.  wants have
 * a gradient attached, or were computed from tensors that have.  Options and errors are those of sl_backward_heads; out
 * is unchanged after an error.  It can also be called in a forward that is traced.
 *
 * With opts.create_graph, the gradients are recorded like other results, so that sl_gradients or sl_backward
 * differentiates them again, any number of times.  Operations whose gradients are computed by a kernel of their own are
 * differentiated as compositions of simpler operations then.  An operation without a second derivative
 * (sl_custom_gradient, unless it is .differentiable; operations of programs whose gradients have none) is an error of
 * the pass that needs it: SL_EUNSUPPORTED with the operation and its place.
 *
 *     SL_RECORD {
 *         y = sl_forward(critic, x);
 *         sl_gradients(&y, 1, &x, 1, &slope, .create_graph = true);
 *         penalty = sl_mean(sl_square(sl_sub_scalar(sl_norm(slope, SL_AXES(1)), 1)));
 *     }
 *     sl_backward(penalty);    // gradients of the critic's parameters */
enum sl_status sl_gradients_at(const char *at, sl_tensor *const *heads, int count, sl_tensor *const *wants, int nwants,
                               sl_tensor **out, struct sl_backward_opts opts)
{
	SLP_CALL("sl_gradients", at);
	if (!SLP_OPTIONS(sl_backward_opts, at, "sl_gradients", &opts)) return SL_EINVAL;
	enum sl_status s = check_wants(at, wants, nwants, out);
	struct walk w = {.at = at, .function = "sl_gradients", .wants = wants, .nwants = nwants};
	if (s == SL_OK) s = check(at, w.function, heads, count, &opts);
	if (s != SL_OK) return s;
	w.given = slp_calloc(2 * (size_t)nwants, sizeof *w.given);
	if (!w.given) return slp_error_set(SL_ENOMEM, "sl_gradients: no memory");
	sl_tensor **results = w.given + nwants;
	s = walk(&w, heads, count, &opts);
	for (int i = 0; i < nwants && s == SL_OK; i++)
		if (!(results[i] = result_of(&w, i))) s = sl_error();
	for (int i = 0; i < nwants; i++) {
		if (s == SL_OK) out[i] = results[i];
		sl_release(w.given[i]);
	}
	free(w.given);
	return s;
}
