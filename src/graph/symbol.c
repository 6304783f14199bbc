/* Symbols: tensors without values.  Calls with a symbol among their arguments are recorded as nodes that refer to their
 * arguments; while a thread traces, all calls are. */
#include <stdlib.h>
#include <string.h>

#include "autograd/autograd.h"
#include "graph/symbol.h"
#include "op_list/move.h"
#include "runtime/fault.h"
#include "runtime/random.h"
#include "runtime/task/storage.h"
#include "starling/graph.h"

static _Atomic uint64_t symbols_made, calls_named;
static _Thread_local struct slp_trace *current;
static _Thread_local const char *scope; /* name of the block whose forward runs, or NULL */

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

static void symbol_retain(struct slp_symbol *s)
{
	atomic_fetch_add(&s->refs, 1);
}

/* Programs may be long: dying symbols are listed and freed one after another, not by recursion. */
static void symbol_release(struct slp_symbol *s)
{
	struct slp_symbol *dying = NULL;
	if (atomic_fetch_sub(&s->refs, 1) == 1) dying = s;
	while ((s = dying)) {
		dying = s->next;
		for (int i = 0; i < s->nin; i++) {
			struct slp_symbol *in = s->in[i].symbol;
			if (atomic_fetch_sub(&in->refs, 1) != 1) continue;
			in->next = dying;
			dying = in;
		}
		sl_release(s->tensor);
		free(s->name);
		free(s->in);
		free(s);
	}
}

static const char *symbol_name(const struct slp_symbol *s)
{
	return s->name;
}

/* Takes over the name (malloc'd). */
static struct slp_symbol *symbol_new(const char *at, enum slp_node_kind kind, char *name, int nin)
{
	struct slp_symbol *s = slp_calloc(1, sizeof *s);
	if (s && nin) s->in = slp_calloc((size_t)nin, sizeof *s->in);
	if (!s || !name || (nin && !s->in)) {
		if (s) free(s->in);
		free(s);
		free(name);
		slp_error_set(SL_ENOMEM, "no memory for a symbol");
		return NULL;
	}
	atomic_init(&s->refs, 1);
	s->number = atomic_fetch_add(&symbols_made, 1);
	s->kind = kind;
	s->at = at;
	s->name = name;
	s->nout = 1;
	if (current) s->backward = current->backward;
	if (current) s->repeat = current->repeat;
	return s;
}

/* A tensor for an output of a symbol; not in any scope. */
static sl_tensor *tensor_of(struct slp_symbol *s, int output, sl_device device)
{
	sl_tensor *t = slp_tensor_new(NULL, 0, s->types[output], device);
	if (!t) return slp_call_fail(s->at, s->name, SL_ENOMEM, "no memory for the symbol");
	t->symbol = s;
	t->output = output;
	symbol_retain(s);
	return t;
}

/* Keeps a symbol in the trace's program, used or not. */
static bool keep(struct slp_trace *trace, struct slp_symbol *s)
{
	if (!slp_grow((void **)&trace->effects, &trace->max_effects, trace->neffects + 1, sizeof(void *))) return false;
	symbol_retain(s);
	trace->effects[trace->neffects++] = s;
	return true;
}

/* ---- variables and bound tensors --------------------------------------------------------------------------------- */

/* A symbol that stands for an input of a program.  Without a shape, results have no shapes until the program is
 * compiled for given ones.  NULL with SL_EINVAL: no name, or an invalid shape or data type.
 *
 *     sl_tensor *x = sl_var("data", SL_VAR_SHAPE(1, 512)); */
sl_tensor *sl_var_at(const char *at, const char *name, struct sl_var_opts opts)
{
	SLP_CALL("sl_var", at);
	if (!name || !*name) return slp_call_fail(at, "sl_var", SL_EINVAL, "a variable needs a name");
	opts.dtype = slp_dtype_or(opts.dtype, SL_FLOAT32);
	if ((unsigned)opts.dtype >= SL_DTYPE_COUNT || (opts.shape && !slp_shape_valid(*opts.shape)))
		return slp_call_fail(at, "sl_var", SL_EINVAL, "'%s' has no valid shape or dtype", name);
	struct slp_symbol *s = symbol_new(at, SLP_NODE_INPUT, slp_strdup(name), 0);
	if (!s) return NULL;
	s->types[0] = (struct slp_type){opts.dtype, opts.shape ? *opts.shape : (sl_shape){.ndim = -1}};
	bool kept = !current || keep(current, s); /* a traced program has all its inputs, used or not */
	sl_tensor *t = kept ? slp_scope_add(tensor_of(s, 0, current ? current->device : sl_auto())) : NULL;
	symbol_release(s);
	return t;
}

/* Whether a tensor is a symbol: one without values.  False for NULL. */
bool sl_is_symbol(const sl_tensor *t)
{
	return t && t->symbol;
}

/* The name of a symbol, which lives as long as the symbol; NULL for tensors with values. */
const char *sl_symbol_name(const sl_tensor *t)
{
	return sl_is_symbol(t) ? t->symbol->name : NULL;
}

static sl_tensor *bind(const char *at, sl_tensor *t, const char *name)
{
	char text[32];
	snprintf(text, sizeof text, "tensor%llu", (unsigned long long)atomic_load(&symbols_made));
	struct slp_symbol *s = symbol_new(at, SLP_NODE_PARAM, slp_strdup(name ? name : text), 0);
	if (!s) return NULL;
	s->types[0] = t->type;
	s->tensor = sl_retain(t);
	sl_tensor *symbol = tensor_of(s, 0, t->device);
	symbol_release(s);
	return symbol;
}

/* Gradients flow to the tensor as they do without the trace, from its first use that is recorded on. */
static bool want_gradient(sl_tensor *symbol, const sl_tensor *t)
{
	const struct slp_recorder *recorder = slp_mode.recorder;
	return symbol->var || !(recorder && recorder->wants(t)) || slp_attach_symbol(symbol) == SL_OK;
}

static bool remember(struct slp_trace *trace, sl_tensor *t, sl_tensor *symbol)
{
	if (!slp_grow((void **)&trace->bound, &trace->max_bound, trace->nbound + 1, sizeof *trace->bound)) return false;
	trace->bound[trace->nbound++] = (struct slp_bound){sl_retain(t), symbol};
	return true;
}

sl_tensor *slp_symbol_of(const char *at, sl_tensor *t, const char *name)
{
	if (!t || t->symbol) return t;
	if (!current) return slp_scope_add(bind(at, t, name));
	for (int i = 0; i < current->nbound; i++) {
		const struct slp_bound *b = &current->bound[i];
		if (b->tensor == t) return want_gradient(b->symbol, t) ? b->symbol : NULL;
	}
	sl_tensor *symbol = bind(at, t, name);
	if (symbol && want_gradient(symbol, t) && remember(current, t, symbol)) return symbol;
	sl_release(symbol);
	return NULL;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static bool is_activation(const struct sl_op *op)
{
	return op->nin_max == 1 && op->nin_min == 1 && !op->attr_table;
}

/* Whether the scope contains the layer of this function alone: "relu0", "net_relu0". */
static bool is_its_layer(const char *function)
{
	const char *last = strrchr(scope, '_');
	size_t length = strlen(function);
	last = last ? last + 1 : scope;
	return !strncmp(last, function, length) && last[length] >= '0' && last[length] <= '9';
}

/* As Gluon names them: dense0_fwd for what a layer is about, dense0_relu_fwd for the activation after it; in a block of
 * the program's own, whose prefix is the scope then ("net0_"), net0_relu3 by a number, as relu3 outside of blocks. */
static char *name_call(const struct sl_op *op)
{
	char text[160];
	bool backward = current && current->backward, own = scope && *scope && scope[strlen(scope) - 1] == '_';
	const char *pass = backward ? "bwd" : "fwd";
	if (!scope || (own && !backward)) {
		uint64_t n = current ? current->names++ : atomic_fetch_add(&calls_named, 1);
		snprintf(text, sizeof text, "%s%s%llu", scope ? scope : "", op->name, (unsigned long long)n);
	} else if (op == &slp_op_reshape && !backward) {
		snprintf(text, sizeof text, "%s_flatten0", scope);
	} else if (backward || (is_activation(op) && !is_its_layer(op->name))) {
		snprintf(text, sizeof text, "%s%s%s_%s", scope, own ? "" : "_", op->name, pass);
	} else {
		snprintf(text, sizeof text, "%s_%s", scope, pass);
	}
	return slp_strdup(text);
}

/* Infers result types from the arguments' if these are known; the call's attributes get no defaults, but reshape's
 * codes stay. */
static enum sl_status infer_symbol(struct slp_symbol *s, sl_tensor *const *in)
{
	struct slp_type few[8], *types = s->nin <= 8 ? few : slp_malloc((size_t)s->nin * sizeof *types);
	if (!types) return slp_error_set(SL_ENOMEM, "no memory for a symbol");
	bool known = true;
	for (int i = 0; i < s->nin; i++) {
		types[i] = in[i]->type;
		known &= types[i].shape.ndim >= 0;
	}
	enum sl_status status = SL_OK;
	if (known) status = slp_call_types(s->at, s->op, s->attrs.bytes, s->nin, types, s->types);
	else
		for (int i = 0; i < s->nout; i++) s->types[i] = (struct slp_type){in[0]->type.dtype, {.ndim = -1}};
	if (types != few) free(types);
	return status;
}

/* A call may write only bound tensors, not results. */
static enum sl_status check_effects(const char *at, const struct sl_op *op, int nin, sl_tensor *const *in)
{
	for (int i = 0; i < nin; i++) {
		if (!slp_input_is_written(op, i) || in[i]->symbol->kind == SLP_NODE_PARAM) continue;
		slp_trace_complain("%s at %s would change the symbol '%s'", op->name, at, in[i]->symbol->name);
		slp_call_fail(at, op->name, SL_ESTATE, "would change the symbol '%s', which is not a parameter",
		              in[i]->symbol->name);
		return SL_ESTATE;
	}
	return SL_OK;
}

/* Symbols for all arguments; false with an error. */
static bool symbols_of(const char *at, const struct sl_op *op, int nin, sl_tensor *const *in, sl_tensor **symbols)
{
	for (int i = 0; i < nin; i++) {
		if (!in[i]) {
			if (sl_error() == SL_OK) slp_call_fail(at, op->name, SL_EINVAL, "argument %d is NULL", i);
			return false;
		}
		symbols[i] = slp_symbol_of(at, in[i], NULL);
		if (!symbols[i]) return false;
	}
	return true;
}

static struct slp_symbol *call_new(const char *at, const struct sl_op *op, const void *attrs, int nin,
                                   sl_tensor *const *in)
{
	struct slp_symbol *s = symbol_new(at, SLP_NODE_OP, name_call(op), nin);
	if (!s) return NULL;
	s->op = op;
	s->nin = nin;
	s->nout = op->nout;
	if (attrs) memcpy(s->attrs.bytes, attrs, op->attrs_size);
	for (int i = 0; i < nin; i++) {
		s->in[i] = (struct slp_symbol_use){in[i]->symbol, in[i]->output};
		symbol_retain(in[i]->symbol);
	}
	enum sl_status status = infer_symbol(s, in);
	if (status == SL_OK && op->mutates) status = check_effects(at, op, nin, in);
	if (status == SL_OK && op->mutates && current && !keep(current, s))
		status = slp_error_set(SL_ENOMEM, "no memory for a symbol");
	if (status == SL_OK) return s;
	symbol_release(s);
	return NULL;
}

static sl_device device_of(int nin, sl_tensor *const *in, sl_device device)
{
	if (current) return current->device;
	for (int i = 0; i < nin; i++)
		if (in[i]->device.kind != SL_DEVICE_AUTO) return in[i]->device;
	return device.kind == SL_DEVICE_DEFAULT ? sl_auto() : device;
}

static enum sl_status make_call(const char *at, const struct sl_op *op, const void *attrs, int nin,
                                sl_tensor *const *in, sl_device device, sl_tensor **out)
{
	struct slp_symbol *s = call_new(at, op, attrs, nin, in);
	if (!s) return sl_error();
	bool ok = true;
	for (int i = 0; i < op->nout; i++) {
		out[i] = slp_scope_add(tensor_of(s, i, device_of(nin, in, device)));
		ok &= out[i] != NULL;
	}
	/* as infer has completed them: gradients read them */
	if (ok && slp_mode.recorder && current)
		ok = slp_mode.recorder->call(at, op, s->attrs.bytes, nin, in, op->nout, out);
	symbol_release(s);
	for (int i = 0; i < op->nout && !ok; i++) out[i] = NULL; /* the scope holds them */
	return ok ? SL_OK : sl_error();
}

static enum sl_status symbolic_call(const char *at, const struct sl_op *op, const void *attrs, int nin,
                                    sl_tensor *const *in, sl_device device, sl_tensor **out)
{
	sl_tensor *few[8], **symbols = nin <= 8 ? few : slp_malloc((size_t)nin * sizeof *symbols);
	if (!symbols) return slp_error_set(SL_ENOMEM, "no memory for a symbol");
	enum sl_status s =
	        symbols_of(at, op, nin, in, symbols) ? make_call(at, op, attrs, nin, symbols, device, out) : sl_error();
	if (symbols != few) free(symbols);
	return s;
}

static const struct slp_symbolic symbolic = {symbolic_call, symbol_retain, symbol_release, symbol_name};

__attribute__((constructor)) static void symbols_init(void)
{
	slp_symbolic = &symbolic;
}

/* ---- traces ------------------------------------------------------------------------------------------------------ */

static void make_current(struct slp_trace *trace)
{
	current = trace;
	slp_mode.tracing = trace != NULL;
	slp_draws.count = trace ? &trace->nrandom : NULL;
}

void slp_trace_begin(struct slp_trace *trace, sl_device device)
{
	*trace = (struct slp_trace){.outer = current, .device = device};
	slp_error_set_aside(&trace->before);
	slp_trace_complaint[0] = '\0';
	trace->by = slp_record_by(NULL);
	make_current(trace);
}

void slp_trace_end(struct slp_trace *trace)
{
	make_current(trace->outer);
	slp_record_by(trace->by);
	for (int i = 0; i < trace->nbound; i++) {
		sl_release(trace->bound[i].tensor);
		sl_release(trace->bound[i].symbol);
	}
	for (int i = 0; i < trace->neffects; i++) symbol_release(trace->effects[i]);
	free(trace->bound);
	free(trace->effects);
	slp_error_rejoin(&trace->before);
}

struct slp_trace *slp_trace_current(void)
{
	return current;
}

struct slp_trace *slp_trace_pause(void)
{
	struct slp_trace *trace = current;
	make_current(NULL);
	return trace;
}

void slp_trace_resume(struct slp_trace *trace)
{
	make_current(trace);
}

const char *slp_trace_scope(const char *name)
{
	const char *before = scope;
	scope = name;
	return before;
}
