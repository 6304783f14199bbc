/* Custom gradients: calls whose backward pass is a function of the program. */
#include <stdlib.h>

#include "autograd/autograd.h"
#include "op.h"
#include "runtime/fault.h"
#include "starling/autograd.h"

/* The data of a recorded call. */
struct custom {
	atomic_int refs;
	struct sl_custom_gradient_opts opts;
};

static void release(struct custom *c)
{
	if (atomic_fetch_sub(&c->refs, 1) != 1) return;
	if (c->opts.destroy) c->opts.destroy(c->opts.context);
	free(c);
}

static void custom_hold(const void *attrs, bool hold)
{
	struct custom *c = *(struct custom *const *)attrs;
	if (hold) atomic_fetch_add(&c->refs, 1);
	else release(c);
}

/* ---- going back -------------------------------------------------------------------------------------------------- */

/* The gradients with respect to the results: zeros for results that no gradient reaches. */
static bool fill_douts(const struct slp_grad *g, sl_tensor **dout)
{
	for (int i = 0; i < g->nout; i++) {
		const sl_tensor *y = g->out[i];
		dout[i] = g->dout[i];
		if (!dout[i]) dout[i] = sl_zeros_at(g->at, y->type.shape, (struct sl_make){y->type.dtype, y->device});
		if (!dout[i]) return false;
	}
	return true;
}

/* Whether the results of the program's function match the inputs. */
static enum sl_status check_din(const struct slp_grad *g)
{
	for (int i = 0; i < g->nin; i++) {
		const struct slp_type *want = &g->in[i]->type;
		char a[160], b[160];
		if (!g->need[i] || !g->din[i]) continue;
		if (!slp_tensor_usable(g->at, "sl_custom_gradient", g->din[i])) return sl_error();
		bool shape = sl_shape_equal(g->din[i]->type.shape, want->shape);
		if (shape && g->din[i]->type.dtype == want->dtype) continue;
		enum sl_status s = shape ? SL_EDTYPE : SL_ESHAPE;
		slp_call_fail(g->at, "sl_custom_gradient", s, "backward gave %s for input %d, which is %s",
		              slp_type_string(&g->din[i]->type, a), i, slp_type_string(want, b));
		return s;
	}
	return SL_OK;
}

/* Known to the tape only: the results of a backward function that was not recorded, which depend on its arguments. */
static const struct sl_op unknown_op = {
        .name = "the backward function of sl_custom_gradient",
        .doc = "a backward pass of the program's that was not recorded",
        .args = "dy ...",
        .nin_min = 1,
        .nin_max = SLP_MANY,
        .nout = SLP_TAPE_OUTPUTS, /* at most */
};

/* A second derivative cannot follow: it would be wrong without a word. */
static enum sl_status note_unknown(struct slp_grad *g, sl_tensor *const *dout)
{
	int nin = g->nout + g->nin, n = 0;
	sl_tensor **in = slp_malloc((size_t)(nin + g->nin) * sizeof *in), **out = in + nin;
	if (!in) return slp_error_set(SL_ENOMEM, "sl_backward: no memory");
	for (int i = 0; i < nin; i++) in[i] = i < g->nout ? dout[i] : g->in[i - g->nout];
	bool ok = true;
	for (int i = 0; ok && i < g->nin; i++) {
		if (!g->din[i]) continue;
		ok = (g->din[i] = out[n++] = slp_scope_add(slp_tensor_alias(g->din[i], true))) != NULL;
	}
	if (ok && n) ok = n <= SLP_TAPE_OUTPUTS && slp_tape.call(g->at, &unknown_op, NULL, nin, in, n, out);
	free(in);
	return ok ? SL_OK : sl_error();
}

static enum sl_status custom_grad(struct slp_grad *g)
{
	const struct custom *c = *(struct custom *const *)g->attrs;
	sl_tensor *dout[SLP_TAPE_OUTPUTS];
	bool unknown = g->again && !c->opts.differentiable;
	if (!fill_douts(g, dout)) return sl_error();
	SLP_MODE_SCOPE();
	slp_mode.in_custom = true;
	if (unknown) slp_mode.recorder = NULL;
	enum sl_status s = c->opts.backward(c->opts.context, dout, g->nout, g->din, g->nin);
	if (s != SL_OK && sl_error() == SL_OK)
		slp_call_fail(g->at, "sl_custom_gradient", s, "its backward function failed");
	if (s == SL_OK) s = check_din(g);
	return s == SL_OK && unknown ? note_unknown(g, dout) : s;
}

/* Known to the tape only: it never becomes a task. */
static const struct sl_op custom_op = {
        .name = "custom gradient",
        .doc = "a call with a custom gradient",
        .args = "x ...",
        .nin_min = 1,
        .nin_max = SLP_MANY,
        .nout = SLP_TAPE_OUTPUTS, /* at most */
        .attrs_size = sizeof(struct custom *),
        .grad = custom_grad,
        .hold = custom_hold,
};

/* ---- recording --------------------------------------------------------------------------------------------------- */

static bool is_among(const sl_tensor *t, sl_tensor *const *list, int n)
{
	for (int i = 0; i < n; i++)
		if (list[i] == t) return true;
	return false;
}

static bool usable(const char *at, sl_tensor *const *t, int n)
{
	for (int i = 0; i < n; i++)
		if (!slp_tensor_usable(at, "sl_custom_gradient", t[i])) return false;
	return true;
}

/* Results must be new tensors without a history: they get this one. */
static bool results_are_new(const char *at, sl_tensor *const *in, int nin, sl_tensor *const *out, int nout)
{
	for (int i = 0; i < nout; i++) {
		const char *why = out[i]->var || out[i]->gradient
		                          ? "has a gradient of its own; compute it under SL_PAUSE"
		                  : is_among(out[i], in, nin) ? "is an input; sl_detach makes another tensor of it"
		                  : is_among(out[i], out, i)  ? "is there twice; sl_detach makes another tensor of it"
		                                              : NULL;
		if (!why) continue;
		slp_call_fail(at, "sl_custom_gradient", SL_ESTATE, "result %d %s", i, why);
		return false;
	}
	return true;
}

static bool may_record(const char *at, sl_tensor *const *in, int nin, sl_tensor *const *out, int nout,
                       const struct sl_custom_gradient_opts *o)
{
	if (!in || !out || nin < 1 || nout < 1 || nout > SLP_TAPE_OUTPUTS || !o->backward) {
		slp_call_fail(at, "sl_custom_gradient", SL_EINVAL,
		              "it needs inputs, 1 to %d results, and a backward function", (int)SLP_TAPE_OUTPUTS);
		return false;
	}
	if (slp_is_symbolic(nin, in)) {
		slp_trace_complain("sl_custom_gradient at %s is not an operation", at);
		slp_call_fail(at, "sl_custom_gradient", SL_EUNSUPPORTED,
		              "a traced program cannot have a custom gradient; "
		              "let the block run imperatively");
		return false;
	}
	return usable(at, in, nin) && usable(at, out, nout) && results_are_new(at, in, nin, out, nout);
}

/* Defines the backward pass of a computation of `out` from `in` that the program made under SL_PAUSE, by whatever
 * means: sl_backward calls opts.backward with the gradients with respect to the results (zeros for a result that no
 * gradient reaches), which sets din[i] to the gradient with respect to input i, or leaves it NULL for none.  It is
 * called during sl_backward, in the same thread, in a separate scope, and without recording; it cannot call sl_backward
 * itself.  Its results have no second derivative, unless opts.differentiable: then backward keeps to operations on
 * dout and on tensors of the program that were recorded, and is recorded itself if .create_graph asks for it.  A status
 * other than SL_OK becomes sl_backward's error.  The call has no effect if this thread does not
 * record, or no input needs a gradient.  opts.destroy, if set, is called with the context once no backward pass can
 * follow, also after an error here.
 *
 * SL_EINVAL: no inputs, no results or more than 16, or no function; SL_ESTATE: a result is also an input, or already
 * has a gradient; SL_EUNSUPPORTED: while a program is traced.
 *
 *     sl_tensor *y;
 *     SL_PAUSE y = sl_round(x);
 *     sl_custom_gradient(&x, 1, &y, 1, .backward = straight_through);   // din[0] = dout[0] */
enum sl_status sl_custom_gradient_at(const char *at, sl_tensor *const *in, int nin, sl_tensor *const *out, int nout,
                                     struct sl_custom_gradient_opts opts)
{
	SLP_CALL("sl_custom_gradient", at);
	struct custom *c = slp_calloc(1, sizeof *c);
	if (!c) {
		if (opts.destroy) opts.destroy(opts.context);
		return slp_error_set(SL_ENOMEM, "sl_custom_gradient: no memory");
	}
	atomic_init(&c->refs, 1);
	c->opts = opts;
	bool ok = may_record(at, in, nin, out, nout, &opts);
	if (ok && slp_mode.recorder) ok = slp_mode.recorder->call(at, &custom_op, &c, nin, in, nout, out);
	release(c);
	return ok ? SL_OK : sl_error();
}
