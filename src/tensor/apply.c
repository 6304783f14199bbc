/* Calls of operations: checks, result types, new tensors, submission, recording; messages of mistakes. */
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "runtime/budget.h"
#include "runtime/observe/fxt.h"
#include "runtime/memory/memory_limit.h"
#include "runtime/device/device.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/task/buffer.h"
#include "runtime/task/storage.h"
#include "tensor/tensor.h"

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* The name of argument i from the op's list; "x", "x[2]" in a repeated one. */
static void argument_name(const struct sl_op *op, int i, char name[32])
{
	const char *p = op->args ? op->args : "";
	for (int k = 0;; k++) {
		size_t n = strcspn(p, " ");
		const char *next = p + n + (p[n] == ' ');
		if (k == i && n) {
			snprintf(name, 32, "%.*s", (int)(n < 31 ? n : 31), p);
			return;
		}
		if (!*next || !strcmp(next, "...")) break;
		p = next;
	}
	snprintf(name, 32, "#%d", i);
}

/* The function that the program called, where an operation is a part of it: of another name, called from there. */
static const char *outer_function(const char *at, const struct sl_op *op)
{
	const char *function = slp_current_call.function;
	if (!at || slp_current_call.at != at || strncmp(function, "sl_", 3)) return NULL;
	size_t n = strlen(op->name);
	bool same = !strncmp(function + 3, op->name, n) && (!function[3 + n] || !strcmp(function + 3 + n, "_"));
	return same ? NULL : function;
}

enum sl_status slp_reject(const struct slp_infer *c, enum sl_status status, const char *format, ...)
{
	enum { SHOWN = 8 };
	char prefix[1024], text[160], name[32];
	const char *outer = outer_function(c->at, c->op);
	size_t n =
	        (size_t)snprintf(prefix, sizeof prefix, "%s%s%s(", outer ? outer : "", outer ? ": " : "", c->op->name);
	for (int i = 0; i < c->nin && i < SHOWN && n < sizeof prefix; i++) {
		argument_name(c->op, i, name);
		n += (size_t)snprintf(prefix + n, sizeof prefix - n, "%s%s %s", i ? ", " : "", name,
		                      slp_type_string(&c->in[i], text));
	}
	if (n >= sizeof prefix) n = sizeof prefix - 1;
	snprintf(prefix + n, sizeof prefix - n, "%s)%s%s: ", c->nin > SHOWN ? ", ..." : "", c->at ? " at " : "",
	         c->at ? c->at : "");
	va_list args;
	va_start(args, format);
	slp_error_setv(status, prefix, format, args);
	va_end(args);
	return status;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

bool slp_tensor_usable(const char *at, const char *function, const sl_tensor *t)
{
	if (!slp_given(at, function, "tensor", t)) return false;
	if (t->symbol) return slp_symbol_fail(at, function, t);
	if (!t->storage) {
		slp_call_fail(
		        at, function, SL_ESTATE,
		        "the values of a tensor were not saved for the gradient: .saves of the operation does not "
		        "name it");
		return false;
	}
	if (slp_worker_refused(at, function)) return false;
	if (t->storage->generation != slp_engine.generation || !sl_is_initialized()) {
		slp_call_fail(at, function, SL_ESTATE,
		              slp_engine.forked ? "the tensor's values are in the process that was forked"
		                                : "the tensor lost its values in sl_shutdown");
		return false;
	}
	return true;
}

void slp_trace_complain(const char *format, ...)
{
	if (!slp_mode.tracing || slp_trace_complaint[0]) return;
	SLP_FORMAT(slp_trace_complaint, SLP_COMPLAINT_MAX, format);
}

bool slp_trace_refuses(const char *at, const char *function, const sl_tensor *t)
{
	if (!slp_mode.tracing || !t || t->symbol) return false;
	slp_trace_complain("%s at %s uses the values of a tensor", function, at);
	slp_call_fail(at, function, SL_ESTATE, "the values of a tensor cannot be used while a program is traced");
	return true;
}

void *slp_symbol_fail(const char *at, const char *function, const sl_tensor *t)
{
	const char *name = slp_symbolic->name(t->symbol);
	slp_trace_complain("%s at %s reads values of the symbol '%s'", function, at, name);
	return slp_call_fail(at, function, SL_ESTATE,
	                     "the symbol '%s' has no values: they exist only when its program runs", name);
}

bool slp_is_symbolic(int nin, sl_tensor *const *in)
{
	if (!slp_symbolic) return false;
	if (slp_mode.tracing) return true;
	for (int i = 0; i < nin; i++)
		if (in[i] && in[i]->symbol) return true;
	return false;
}

static bool arguments_usable(const char *at, const struct sl_op *op, int nin, sl_tensor *const *in)
{
	for (int i = 0; i < nin; i++) {
		if (in[i] && in[i]->storage && in[i]->storage->generation == slp_engine.generation) continue;
		char name[32], call[96];
		argument_name(op, i, name);
		snprintf(call, sizeof call, "%s: argument %s", op->name, name);
		if (!slp_tensor_usable(at, call, in[i])) return false;
	}
	return true;
}

/* The device of a call: that of its inputs, which agree except for `auto`; else the requested one. */
static enum sl_status common_device(const char *at, const struct sl_op *op, int nin, sl_tensor *const *in,
                                    sl_device *device)
{
	if (nin == 0) return slp_device_resolve(at, device);
	*device = in[0]->device;
	for (int i = 1; i < nin; i++) {
		sl_device d = in[i]->device;
		if (sl_device_equal(d, *device) || d.kind == SL_DEVICE_AUTO || slp_device_mixes(d, *device)) continue;
		if (device->kind != SL_DEVICE_AUTO) {
			char a[SL_DEVICE_NAME_MAX], b[SL_DEVICE_NAME_MAX], name[32];
			argument_name(op, i, name);
			slp_call_fail(
			        at, op->name, SL_EDEVICE,
			        "argument %s is on %s, those before it on %s; bring them together with sl_copy_to",
			        name, sl_device_name(d, a), sl_device_name(*device, b));
			return SL_EDEVICE;
		}
		*device = d;
	}
	return SL_OK;
}

static enum sl_status check_kernel(const char *at, const struct slp_infer *c, sl_device device)
{
	if (slp_has_kernel(c, device.kind)) return SL_OK;
	const struct slp_type *t = c->nin ? &c->in[0] : &c->out[0];
	slp_call_fail(at, c->op->name, SL_EUNSUPPORTED, "has no %s kernel for %s; use a %s or auto device",
	              device.kind == SL_DEVICE_GPU ? "CUDA" : "CPU", sl_dtype_name(t->dtype),
	              device.kind == SL_DEVICE_GPU ? "cpu" : "gpu");
	return SL_EUNSUPPORTED;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* A call being made; arrays for its operands. */
struct call {
	struct slp_infer infer;
	struct slp_operand *in, out[SLP_MAX_OUTPUTS];
	struct slp_type *in_types, out_types[SLP_MAX_OUTPUTS];
	sl_device device;
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs;
};

static enum sl_status reject_count(const struct slp_infer *c)
{
	char text[64];
	return slp_reject(c, SL_EINVAL, "takes %s, got %d", slp_count_text(c->op, text), c->nin);
}

/* No kernel computes with both half types in one call, and neither holds the other's numbers. */
static enum sl_status check_halves(const struct slp_infer *c)
{
	enum sl_dtype half = SL_DTYPE_DEFAULT;
	for (int i = 0; i < c->nin; i++) {
		enum sl_dtype d = c->in[i].dtype;
		if (!slp_is_half(d)) continue;
		if (half != SL_DTYPE_DEFAULT && d != half)
			return slp_reject(c, SL_EDTYPE, "%s and %s do not mix; convert one with sl_cast",
			                  sl_dtype_name(half), sl_dtype_name(d));
		half = d;
	}
	return SL_OK;
}

static enum sl_status reject_types(const struct slp_infer *c)
{
	char text[160];
	const struct slp_type *t = c->nin ? &c->in[0] : &c->out[0];
	return slp_reject(c, SL_EDTYPE, "takes %s, not %s; sl_cast converts", slp_row_types(c->op, text),
	                  sl_dtype_name(t->dtype));
}

/* Refuses calls of an untrusted network that exceed its limits. */
static enum sl_status check_budget(const struct slp_infer *c)
{
	char why[256];
	enum sl_status s = slp_budget_call(c, why);
	return s == SL_OK ? s : slp_reject(c, s, "%s", why);
}

/* Numbers and types of arguments, the operation's own rule, and whether the results can be. */
static enum sl_status infer_types(struct slp_infer *c)
{
	const struct sl_op *op = c->op;
	enum sl_status s = slp_count_fits(op, c->nin) ? check_halves(c) : reject_count(c);
	if (s == SL_OK) s = op->infer(c);
	if (s == SL_OK && !slp_has_kernel(c, SL_DEVICE_AUTO)) s = reject_types(c);
	for (int i = 0; s == SL_OK && i < op->nout; i++)
		if (!slp_shape_valid(c->out[i].shape)) s = slp_reject(c, SL_ESHAPE, "the result is too large");
	return s == SL_OK && slp_budget_current ? check_budget(c) : s;
}

enum sl_status slp_call_types(const char *at, const struct sl_op *op, void *attrs, int nin, const struct slp_type *in,
                              struct slp_type *out)
{
	struct slp_infer c = {.op = op, .at = at, .attrs = attrs, .nin = nin, .nout = op->nout, .in = in, .out = out};
	return infer_types(&c);
}

static enum sl_status call_infer(struct call *c, const char *at, const struct sl_op *op, const void *attrs, int nin,
                                 sl_tensor *const *in)
{
	for (int i = 0; i < nin; i++) {
		c->in_types[i] = in[i]->type;
		c->in[i] = (struct slp_operand){in[i]->storage, in[i]->offset, in[i]->type};
	}
	if (attrs) memcpy(c->attrs.bytes, attrs, op->attrs_size);
	else memset(c->attrs.bytes, 0, sizeof c->attrs.bytes);
	c->infer = (struct slp_infer){.op = op,
	                              .at = at,
	                              .attrs = c->attrs.bytes,
	                              .nin = nin,
	                              .nout = op->nout,
	                              .in = c->in_types,
	                              .out = c->out_types};
	enum sl_status s = infer_types(&c->infer);
	if (s == SL_OK) s = check_kernel(at, &c->infer, c->device);
	if (s == SL_OK && slp_mode.observer) slp_mode.observer(&c->infer);
	return s;
}

static size_t bytes_of(const struct slp_type *type)
{
	return (size_t)sl_shape_size(type->shape) * sl_dtype_size(type->dtype);
}

static enum sl_status make_outputs(struct call *c, sl_tensor **out)
{
	if (!slp_scope_reserve((size_t)c->infer.nout)) return sl_error();
	for (int i = 0; i < c->infer.nout; i++) {
		const struct slp_type *type = &c->out_types[i];
		slp_lock();
		struct slp_storage *storage = slp_storage_new(bytes_of(type), c->device);
		slp_unlock();
		out[i] = storage ? slp_tensor_new(storage, 0, *type, c->device) : NULL;
		if (!out[i]) return slp_error_set(SL_ENOMEM, "%s: no memory for the result", c->infer.op->name);
		c->out[i] = (struct slp_operand){storage, 0, *type};
	}
	return SL_OK;
}

static enum sl_status record(const struct call *c, int nin, sl_tensor *const *in, sl_tensor *const *out)
{
	bool ok = !slp_mode.recorder ||
	          slp_mode.recorder->call(c->infer.at, c->infer.op, c->infer.attrs, nin, in, c->infer.nout, out);
	return ok ? SL_OK : sl_error();
}

static bool may_mutate(const char *at, const struct sl_op *op, int nin, sl_tensor *const *in)
{
	for (int i = 0; slp_mode.recorder && i < nin; i++)
		if (slp_input_is_written(op, i) && !slp_mode.recorder->may_change(at, op, in[i])) return false;
	return true;
}

/* Running in place overwrites input 0: its gradient must not need the old values. */
static bool may_run_inplace(const char *at, const struct sl_op *op, int nin, sl_tensor *const *in)
{
	if (!slp_mode.recorder) return true;
	if (!slp_mode.recorder->may_change(at, op, in[0])) return false;
	bool wanted = false, needed = false;
	for (int i = 0; i < nin; i++) {
		wanted |= slp_mode.recorder->wants(in[i]);
		needed |= op->saves & SLP_IN(i) && in[i]->storage == in[0]->storage;
	}
	if (!wanted || !needed) return true;
	slp_call_fail(at, op->name, SL_ESTATE, "its gradient needs the values that it would overwrite in place");
	return false;
}

enum { FEW = 8 };

static enum sl_status prepare(struct call *c, const char *at, const struct sl_op *op, const void *attrs, int nin,
                              sl_tensor *const *in, sl_device device)
{
	slp_buffer_reap(false);
	if (!arguments_usable(at, op, nin, in)) return sl_error() != SL_OK ? sl_error() : SL_EINVAL;
	enum sl_status s = slp_engine_need(at);
	if (s != SL_OK) return s;
	c->device = device;
	s = common_device(at, op, nin, in, &c->device);
	if (s == SL_OK) s = call_infer(c, at, op, attrs, nin, in);
	return s;
}

/* Additional memory for the gradients of a recorded call when they are computed: values that were not saved may be
 * freed by then. */
static size_t gradient_bytes(const struct slp_infer *c, sl_tensor *const *in)
{
	const struct sl_op *op = c->op;
	size_t wanted = 0, kept = 0;
	for (int i = 0; i < c->nin; i++) {
		int bit = op->period ? i % op->period : i;
		if (!slp_mode.recorder->wants(in[i])) continue;
		wanted += bytes_of(&c->in[i]);
		kept += bit < 16 && op->saves & SLP_IN(bit) ? 0 : bytes_of(&c->in[i]);
	}
	for (int i = 0; wanted && i < c->nout; i++)
		wanted += op->saves & SLP_OUT(i) ? 2 * bytes_of(&c->out[i]) : bytes_of(&c->out[i]);
	return wanted > kept ? wanted - kept : 0;
}

/* A large call is refused if its gradient would find no room: that is known before all the work until then is done. */
static enum sl_status check_gradient(const struct slp_infer *c, sl_tensor *const *in)
{
	char text[160];
	if (!slp_mode.recorder || !c->op->saves || !c->op->grad || c->op->view || !c->nin) return SL_OK;
	if (bytes_of(&c->out[0]) < SLP_LARGE && bytes_of(&c->in[0]) < SLP_LARGE) return SL_OK;
	const char *why = slp_memory_missing_text(gradient_bytes(c, in), 0, text);
	return why ? slp_reject(c, SL_ENOMEM, "for its gradient: %s", why) : SL_OK;
}

static enum sl_status submit(struct call *c, bool inplace)
{
	slp_lock();
	enum sl_status s = slp_submit(&c->infer, c->in, c->out, c->device, inplace);
	slp_unlock();
	return s;
}

static enum sl_status apply(struct call *c, const char *at, const struct sl_op *op, const void *attrs, int nin,
                            sl_tensor *const *in, sl_device device, sl_tensor **out)
{
	enum sl_status s = prepare(c, at, op, attrs, nin, in, device);
	if (s == SL_OK && op->mutates && !may_mutate(at, op, nin, in)) s = SL_ESTATE;
	if (s == SL_OK) s = check_gradient(&c->infer, in);
	if (s == SL_OK) s = make_outputs(c, out);
	if (s == SL_OK) s = submit(c, false);
	if (slp_budget_current) slp_budget_pace();
	if (s == SL_OK) s = record(c, nin, in, out);
	for (int i = 0; i < op->nout; i++) {
		if (s == SL_OK) slp_scope_add(out[i]);
		else if (out[i]) sl_release(out[i]);
		if (s != SL_OK) out[i] = NULL;
	}
	return s;
}

static enum sl_status apply_as_given(const char *at, const struct sl_op *op, const void *attrs, int nin,
                                     sl_tensor *const *in, sl_device device, sl_tensor **out)
{
	struct slp_operand few_in[FEW];
	struct slp_type few_types[FEW];
	struct call c;
	SLP_CALL(op->name, at);
	at = slp_fxt_call_site(at);
	for (int i = 0; i < op->nout; i++) out[i] = NULL;
	if (slp_is_symbolic(nin, in)) return slp_symbolic->call(at, op, attrs, nin, in, device, out);
	c.in = nin <= FEW ? few_in : slp_malloc((size_t)nin * sizeof *c.in);
	c.in_types = nin <= FEW ? few_types : slp_malloc((size_t)nin * sizeof *c.in_types);
	enum sl_status s = c.in && c.in_types ? apply(&c, at, op, attrs, nin, in, device, out)
	                                      : slp_error_set(SL_ENOMEM, "%s: no memory for the call", op->name);
	if (nin > FEW) {
		free(c.in);
		free(c.in_types);
	}
	return s;
}

/* With the inputs that autocast makes of them, which live no longer than the call, or its history, needs them. */
static enum sl_status apply_cast(const char *at, const struct sl_op *op, const void *attrs, int nin,
                                 sl_tensor *const *in, sl_device device, sl_tensor **out)
{
	sl_tensor *few[FEW], **cast = nin <= FEW ? few : slp_malloc((size_t)nin * sizeof *cast);
	enum sl_status s = SL_ENOMEM;
	for (int i = 0; i < op->nout; i++) out[i] = NULL;
	if (!cast) return slp_error_set(SL_ENOMEM, "%s: no memory for the call", op->name);
	SL_SCOPE {
		bool ok = slp_autocast_inputs(at, op, nin, in, cast);
		s = ok ? apply_as_given(at, op, attrs, nin, cast, device, out) : sl_error();
		for (int i = 0; i < op->nout; i++) sl_retain(out[i]);
	}
	for (int i = 0; i < op->nout; i++)
		if (out[i]) slp_scope_add(out[i]);
	if (cast != few) free(cast);
	return s;
}

enum sl_status slp_apply(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in,
                         sl_device device, sl_tensor **out)
{
	if (slp_autocast_changes(op, nin, in)) return apply_cast(at, op, attrs, nin, in, device, out);
	return apply_as_given(at, op, attrs, nin, in, device, out);
}

sl_tensor *slp_apply1(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in)
{
	sl_tensor *out[SLP_MAX_OUTPUTS];
	slp_apply(at, op, attrs, nin, in, (sl_device){SL_DEVICE_DEFAULT, -1}, out);
	for (int i = 1; i < op->nout && !slp_scope_is_open(); i++) sl_release(out[i]);
	return out[0];
}

/* Input i shares some of input 0's memory, but not element for element: kernels would read elements that they have
 * overwritten. */
static bool overlaps(const struct call *c, int i)
{
	const struct slp_operand *a = &c->in[0], *b = &c->in[i];
	if (a->storage != b->storage || (a->offset == b->offset && sl_shape_equal(a->type.shape, b->type.shape)))
		return false;
	size_t a_end = a->offset + (size_t)sl_shape_size(a->type.shape) * sl_dtype_size(a->type.dtype);
	size_t b_end = b->offset + (size_t)sl_shape_size(b->type.shape) * sl_dtype_size(b->type.dtype);
	return a->offset < b_end && b->offset < a_end;
}

/* Whether the result can take input 0's place. */
static bool fits_inplace(const struct call *c, sl_tensor *const *in)
{
	const struct slp_type *r = &c->out_types[0];
	const char *at = c->infer.at, *name = c->infer.op->name;
	char text[160];
	if (r->dtype != in[0]->type.dtype || !sl_shape_equal(r->shape, in[0]->type.shape)) {
		slp_reject(&c->infer, SL_ESHAPE, "the result is %s and does not fit in place",
		           slp_type_string(r, text));
		return false;
	}
	if (!sl_device_equal(c->device, in[0]->device) && in[0]->device.kind != SL_DEVICE_AUTO) {
		slp_call_fail(at, name, SL_EDEVICE, "the result would change its device");
		return false;
	}
	for (int i = 1; i < c->infer.nin; i++) {
		if (!overlaps(c, i)) continue;
		slp_reject(&c->infer, SL_EINVAL,
		           "argument %d is a view of the memory that is overwritten; clone it first", i);
		return false;
	}
	return may_run_inplace(at, c->infer.op, c->infer.nin, in);
}

static void *symbol_inplace(const char *at, const struct sl_op *op, const sl_tensor *t)
{
	return slp_call_fail(at, op->name, SL_ESTATE, "the symbol '%s' cannot be changed in place",
	                     slp_symbolic->name(t->symbol));
}

sl_tensor *slp_apply_inplace(const char *at, const struct sl_op *op, const void *attrs, int nin, sl_tensor *const *in)
{
	struct slp_operand few_in[FEW];
	struct slp_type few_types[FEW];
	struct call c = {.in = few_in, .in_types = few_types};
	SLP_CALL(op->name, at);
	at = slp_fxt_call_site(at);
	if (!op->inplace || op->nout != 1 || nin > FEW)
		return slp_call_fail(at, op->name, SL_EINTERNAL, "cannot run in place");
	const char *outer = outer_function(at, op);
	if (in[0]) slp_trace_complain("%s at %s changes a tensor in place", outer ? outer : op->name, at);
	for (int i = 0; i < nin; i++)
		if (in[i] && in[i]->symbol) return symbol_inplace(at, op, in[i]);
	if (slp_mode.tracing && in[0])
		return slp_call_fail(at, op->name, SL_ESTATE, "changes a tensor in place, which cannot be traced");
	if (in[0] && in[0]->part && slp_mode.recorder)
		return slp_call_fail(
		        at, op->name, SL_ESTATE,
		        "would change a copy: while recording, rows of a tensor that gradients flow through are "
		        "a copy, and the tensor itself would not change");
	if (prepare(&c, at, op, attrs, nin, in, (sl_device){SL_DEVICE_DEFAULT, -1}) != SL_OK) return NULL;
	if (!fits_inplace(&c, in)) return NULL;
	c.out[0] = c.in[0];
	if (submit(&c, true) != SL_OK || record(&c, nin, in, &in[0]) != SL_OK) return NULL;
	return in[0];
}
