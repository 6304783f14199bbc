/* Tracing: runs a block's forward once with symbols, and backward with it if it is recorded. */
#include <stdlib.h>
#include <string.h>

#include "hybrid/trace.h"
#include "op.h"
#include "runtime/device/auto.h"
#include "runtime/fault.h"
#include "starling/nn.h"

/* ---- signatures -------------------------------------------------------------------------------------------------- */

static bool wanted(const sl_tensor *t)
{
	return slp_mode.recorder && slp_mode.recorder->wants(t);
}

/* The device of the program: that of the first input that is not on auto. */
static sl_device device_of(int nin, sl_tensor *const *in)
{
	for (int i = 0; i < nin; i++)
		if (in[i]->device.kind != SL_DEVICE_AUTO) return in[i]->device;
	return slp_auto_program(sl_auto());
}

static bool fits(sl_device program, sl_device input)
{
	return input.kind == SL_DEVICE_AUTO || sl_device_equal(input, program);
}

bool slp_inputs_together(const char *at, const char *name, int nin, sl_tensor *const *in)
{
	sl_device first = device_of(nin, in);
	for (int i = 0; i < nin; i++) {
		if (fits(first, in[i]->device)) continue;
		char a[SL_DEVICE_NAME_MAX], b[SL_DEVICE_NAME_MAX];
		slp_call_fail(at, name, SL_EDEVICE,
		              "input %d is on %s, those before it on %s; bring them together with sl_copy_to", i,
		              sl_device_name(in[i]->device, a), sl_device_name(first, b));
		return false;
	}
	return true;
}

struct slp_signature *slp_signature_new(int nin, sl_tensor *const *in)
{
	struct slp_signature *s = slp_calloc(1, sizeof *s + (size_t)nin * sizeof *s->in);
	if (!s) return NULL;
	s->nin = nin;
	s->recording = sl_is_recording();
	s->training = sl_is_training();
	s->autocast = slp_mode.autocast;
	s->shard = slp_forward.shard;
	s->cache = slp_cache_number();
	s->device = device_of(nin, in);
	for (int i = 0; i < nin; i++) s->in[i] = (struct slp_signature_input){in[i]->type, wanted(in[i])};
	return s;
}

struct slp_signature *slp_signature_shorter(const struct slp_signature *s, unsigned which, int axis)
{
	size_t bytes = sizeof *s + (size_t)s->nin * sizeof *s->in;
	struct slp_signature *shorter = slp_malloc(bytes);
	if (!shorter) return slp_error_set(SL_ENOMEM, "no memory for a plan"), NULL;
	memcpy(shorter, s, bytes);
	for (int i = 0; i < s->nin && i < 8 * (int)sizeof which; i++)
		if (which >> i & 1) shorter->in[i].type.shape.dim[axis]--;
	return shorter;
}

bool slp_signature_matches(const struct slp_signature *s, int nin, sl_tensor *const *in)
{
	if (s->nin != nin || s->recording != sl_is_recording() || s->training != sl_is_training()) return false;
	if (s->autocast != slp_mode.autocast || s->shard != slp_forward.shard || s->cache != slp_cache_number())
		return false;
	if (!sl_device_equal(s->device, device_of(nin, in))) return false;
	for (int i = 0; i < nin; i++) {
		if (!fits(s->device, in[i]->device)) return false;
		if (s->in[i].type.dtype != in[i]->type.dtype || s->in[i].wanted != wanted(in[i])) return false;
		if (!sl_shape_equal(s->in[i].type.shape, in[i]->type.shape)) return false;
	}
	return true;
}

/* ---- tracing ----------------------------------------------------------------------------------------------------- */

bool slp_trace_inputs(const char *at, const struct slp_signature *s, sl_tensor **symbols)
{
	for (int i = 0; i < s->nin; i++) {
		char name[32];
		snprintf(name, sizeof name, s->nin == 1 ? "data" : "data%d", i);
		symbols[i] = sl_var_at(at, name, (struct sl_var_opts){&s->in[i].type.shape, s->in[i].type.dtype});
		if (!symbols[i] || (s->in[i].wanted && slp_attach_symbol(symbols[i]) != SL_OK)) return false;
	}
	return true;
}

bool slp_trace_failed(const char *at, const sl_block *block, const sl_tensor *result)
{
	if (slp_trace_complaint[0]) {
		sl_error_clear(); /* a consequence */
		slp_call_fail(at, sl_block_name(block), SL_ESTATE,
		              "cannot be traced: %s; let it run imperatively (.fallback = true), or keep to operations",
		              slp_trace_complaint);
	} else if (!result && sl_error() == SL_OK) {
		slp_call_fail(at, sl_block_name(block), SL_EINVAL, "its forward returned NULL");
	}
	return sl_error() != SL_OK; /* of a call whose result is unused, too */
}

/* A trace in progress. */
struct tracing {
	const char *at;
	const struct slp_signature *s;
	struct slp_trace trace;
	sl_tensor **inputs;
	sl_tensor **heads; /* the results, the gradients */
	int nheads;
	struct slp_traced *traced;
};

static sl_tensor *gradient_of(const sl_tensor *symbol)
{
	return symbol->var ? symbol->var->grad : NULL;
}

/* The symbols of the gradients behind the result; notes the leaves. */
static bool list_gradients(struct tracing *t)
{
	int nbound = t->trace.nbound;
	t->traced->leaves = slp_calloc((size_t)nbound + 1, sizeof *t->traced->leaves);
	sl_tensor **heads = slp_realloc(t->heads, (size_t)(SL_MAX_RESULTS + t->s->nin + nbound) * sizeof *heads);
	if (heads) t->heads = heads;
	if (!t->traced->leaves || !heads) return slp_error_set(SL_ENOMEM, "no memory for a trace") == SL_OK;
	for (int i = 0; i < t->s->nin; i++)
		if (t->s->in[i].wanted && gradient_of(t->inputs[i])) heads[t->nheads++] = gradient_of(t->inputs[i]);
		else if (t->s->in[i].wanted)
			heads[t->nheads++] = sl_zeros_at(t->at, t->s->in[i].type.shape,
			                                 (struct sl_make){t->s->in[i].type.dtype, t->s->device});
	for (int i = 0; i < nbound; i++) {
		if (!gradient_of(t->trace.bound[i].symbol)) continue;
		heads[t->nheads++] = gradient_of(t->trace.bound[i].symbol);
		t->traced->leaves[t->traced->nleaves++] = sl_retain(t->trace.bound[i].tensor);
	}
	return true;
}

/* Goes back from the results by gradients that will be given. */
static bool trace_backward(struct tracing *t)
{
	struct slp_traced *to = t->traced;
	sl_tensor *y[SL_MAX_RESULTS], *dout[SL_MAX_RESULTS];
	for (int i = 0; i < to->nresults; i++) {
		char name[32];
		if (!t->heads[i]->var) continue;
		snprintf(name, sizeof name, to->nresults == 1 ? "head_grad" : "head_grad%d", i);
		y[to->nheads] = t->heads[i];
		dout[to->nheads] = sl_var_at(
		        t->at, name, (struct sl_var_opts){&y[to->nheads]->type.shape, y[to->nheads]->type.dtype});
		if (!dout[to->nheads]) return false;
		to->head[to->nheads++] = i;
	}
	if (!to->nheads) return true;
	t->trace.backward = true;
	enum sl_status s = slp_backward(t->at, y, to->nheads, (struct sl_backward_opts){.head_grads = dout});
	bool ok = s == SL_OK && list_gradients(t);
	t->trace.backward = false;
	return ok;
}

static bool trace_both(struct tracing *t, sl_block *block)
{
	struct slp_results results;
	if (!slp_trace_inputs(t->at, t->s, t->inputs)) return false;
	bool ok = slp_block_results(t->at, block, t->inputs, t->s->nin, &results);
	if (slp_trace_failed(t->at, block, ok ? results.t[0] : NULL)) return false;
	t->traced->nresults = t->nheads = results.count;
	for (int i = 0; i < results.count; i++)
		if (!(t->heads[i] = slp_symbol_of(t->at, results.t[i], NULL))) return false;
	if (t->s->recording && !trace_backward(t)) return false;
	sl_graph *joint = slp_graph_from(t->heads, t->nheads, &t->trace);
	ok = joint && slp_split(joint, t->traced);
	sl_graph_free(joint);
	return ok;
}

bool slp_trace_block(const char *at, sl_block *block, const struct slp_signature *s, struct slp_traced *traced)
{
	*traced = (struct slp_traced){0};
	struct tracing t = {.at = at, .s = s, .traced = traced};
	t.inputs = slp_calloc((size_t)s->nin + 1, sizeof *t.inputs);
	t.heads = slp_calloc(SL_MAX_RESULTS, sizeof *t.heads);
	bool ok = t.inputs && t.heads;
	if (!ok) slp_error_set(SL_ENOMEM, "no memory for a trace");
	sl_mode mode;
	sl_mode_enter(&mode, s->recording, s->training);
	slp_trace_begin(&t.trace, s->device);
	SL_SCOPE
		ok = ok && trace_both(&t, block);
	slp_trace_end(&t.trace);
	sl_mode_leave(&mode);
	free(t.inputs);
	free(t.heads);
	if (!ok) slp_traced_clear(traced);
	return ok;
}

void slp_traced_clear(struct slp_traced *traced)
{
	sl_graph_free(traced->forward);
	sl_graph_free(traced->backward);
	for (int i = 0; i < traced->nleaves; i++) sl_release(traced->leaves[i]);
	free(traced->leaves);
	free(traced->origins);
	*traced = (struct slp_traced){0};
}
