/* Operations that programs register (starling/own.h): their descriptors, made from definitions, and adapters for the
 * engine's calls. */
#include <starling/own.h>

#include <stdlib.h>
#include <string.h>

#include "ascii.h"
#include "number.h"
#include "op.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/forked.h"
#include "runtime/returns.h"
#include "runtime/task/codelet.h"
#include "tensor/own.h"
#include "tensor/tensor.h"

_Static_assert(SL_OP_MAX_ATTRS == SLP_MAX_ATTRS && SL_OP_MAX_OUTPUTS <= SLP_MAX_OUTPUTS, "as operations have them");

struct own {
	struct sl_op op; /* first: how an own operation is found by its descriptor */
	struct slp_row rows[2];
	struct sl_op_def def;
};

static const struct own *own_of(const struct sl_op *op)
{
	return (const struct own *)op;
}

/* ---- calls, as definitions see them --------------------------------------------------------------------------- */

/* The data for sl_op_fail. */
struct inner {
	const struct slp_infer *rule;
	const struct slp_kernel *kernel;
};

struct arrays {
	struct sl_op_array in[SL_OP_MAX_INPUTS], out[SL_OP_MAX_OUTPUTS];
};

static struct sl_op_array array_of(const struct slp_type *type, void *data)
{
	return (struct sl_op_array){data, type->dtype, type->shape};
}

static struct sl_op_call call_of_rule(const struct slp_infer *c, struct arrays *a, const struct inner *inner)
{
	for (int i = 0; i < c->nin; i++) a->in[i] = array_of(&c->in[i], NULL);
	for (int i = 0; i < c->nout; i++) a->out[i] = array_of(&c->out[i], NULL);
	return (struct sl_op_call){
	        .attrs = c->attrs, .nin = c->nin, .nout = c->nout, .in = a->in, .out = a->out, .inner = inner};
}

static struct sl_op_call call_of_kernel(const struct slp_kernel *k, struct arrays *a, const struct inner *inner)
{
	for (int i = 0; i < k->nin; i++) a->in[i] = array_of(&k->in[i].type, k->in[i].ptr);
	for (int i = 0; i < k->nout; i++) a->out[i] = array_of(&k->out[i].type, k->out[i].ptr);
	return (struct sl_op_call){.attrs = (void *)k->attrs,
	                           .nin = k->nin,
	                           .nout = k->nout,
	                           .in = a->in,
	                           .out = a->out,
	                           .scratch = k->scratch,
	                           .stream = k->stream,
	                           .threads = k->threads,
	                           .inner = inner};
}

/* A definition may return any number: unknown ones are errors, too. */
static enum sl_status checked(enum sl_status s)
{
	return (unsigned)s <= SL_EINTERNAL ? s : SL_EINTERNAL;
}

/* ---- rules ---------------------------------------------------------------------------------------------------- */

static enum sl_status rule_alike(const struct slp_infer *c)
{
	for (int i = 1; i < c->nin; i++)
		if (!slp_type_equal(&c->in[i], &c->in[0]))
			return slp_reject(c, SL_ESHAPE, "inputs must have the same shape and data type");
	for (int i = 0; i < c->nout; i++) c->out[i] = c->in[0];
	return SL_OK;
}

static bool is_alike(const struct slp_infer *c)
{
	for (int i = 0; i < c->nin; i++)
		if (!slp_type_equal(&c->in[i], &c->out[0])) return false;
	return true;
}

static enum sl_status rule_own(struct slp_infer *c)
{
	struct arrays a;
	struct inner inner = {.rule = c};
	for (int i = 0; i < c->nout; i++) c->out[i] = (struct slp_type){0};
	struct sl_op_call call = call_of_rule(c, &a, &inner);
	enum sl_status s = checked(own_of(c->op)->def.rule(&call)), before = sl_error();
	if (s != SL_OK && before == SL_OK) return slp_reject(c, s, "its rule returned %s", sl_status_name(s));
	for (int i = 0; i < c->nout && s == SL_OK; i++) {
		unsigned dtype = (unsigned)a.out[i].dtype;
		if (dtype == SL_DTYPE_DEFAULT || dtype >= SL_DTYPE_COUNT || a.out[i].shape.ndim < 0 ||
		    a.out[i].shape.ndim > SL_MAX_NDIM)
			return slp_reject(c, SL_EINVAL, "its rule gave result %d no type", i);
		c->out[i] = (struct slp_type){a.out[i].dtype, a.out[i].shape};
	}
	if (s == SL_OK && c->op->elementwise && !is_alike(c))
		return slp_reject(c, SL_ESHAPE,
		                  "it is elementwise: inputs and result must have one shape and data type");
	return s;
}

static enum sl_status infer(struct slp_infer *c)
{
	return own_of(c->op)->def.rule ? rule_own(c) : rule_alike(c);
}

bool slp_op_is_own(const struct sl_op *op)
{
	return op->infer == infer;
}

static double flops(const struct slp_infer *c)
{
	struct arrays a;
	struct inner inner = {.rule = c};
	struct sl_op_call call = call_of_rule(c, &a, &inner);
	return own_of(c->op)->def.flops(&call);
}

static size_t scratch(const struct slp_infer *c)
{
	struct arrays a;
	struct inner inner = {.rule = c};
	struct sl_op_call call = call_of_rule(c, &a, &inner);
	return own_of(c->op)->def.scratch(&call);
}

/* ---- kernels -------------------------------------------------------------------------------------------------- */

struct running {
	enum sl_status (*kernel)(const struct sl_op_call *c);
	struct sl_op_call call;
	enum sl_status status;
};

static void run_kernel(void *given)
{
	struct running *r = given;
	r->status = checked(r->kernel(&r->call));
}

static enum sl_status run(const struct slp_kernel *k, enum sl_status (*kernel)(const struct sl_op_call *c))
{
	struct arrays a;
	struct inner inner = {.kernel = k};
	struct running r = {kernel, call_of_kernel(k, &a, &inner), SL_EKERNEL};
	if (!slp_returns(run_kernel, &r)) slp_kernel_fail(k, r.status, "its kernel ended the thread that ran it");
	enum sl_status s = r.status, called = sl_error();
	if (called != SL_OK && s == SL_OK) s = slp_kernel_fail(k, called, "%s", sl_error_message());
	sl_error_clear(); /* of calls that a kernel must not make */
	return s;
}

static enum sl_status run_cpu(const struct slp_kernel *k)
{
	return run(k, own_of(k->op)->def.cpu);
}

#if defined HAVE_CUDA
static enum sl_status run_cuda(const struct slp_kernel *k)
{
	return run(k, own_of(k->op)->def.cuda);
}
#endif

/* Reports the failure of a rule or a kernel, with a message in the format of printf; returns status, so that the
 * function can end with
 *     return sl_op_fail(c, SL_ESHAPE, "x has %d axes, 2 needed", c->in[0].shape.ndim);
 * The message begins with the operation, its arguments and the place of the call. */
enum sl_status sl_op_fail(const struct sl_op_call *c, enum sl_status status, const char *format, ...)
{
	const struct inner *inner = c->inner;
	char text[512];
	SLP_FORMAT(text, sizeof text, format);
	return inner->rule ? slp_reject(inner->rule, status, "%s", text)
	                   : slp_kernel_fail(inner->kernel, status, "%s", text);
}

struct loop {
	void (*range)(void *context, int64_t begin, int64_t end);
	void *context;
	atomic_bool ended;
};

struct part {
	const struct loop *loop;
	int64_t begin, end;
};

static void call_range(void *given)
{
	const struct part *p = given;
	p->loop->range(p->loop->context, p->begin, p->end);
}

static void run_part(void *given, int64_t begin, int64_t end)
{
	struct loop *loop = given;
	if (!slp_returns(call_range, &(struct part){loop, begin, end})) atomic_store(&loop->ended, true);
}

/* Calls range(context, begin, end) on parts of [0, n), on the threads of the team that runs the kernel.  Parts begin at
 * multiples of grain, whatever the number of threads, so that sums over them have the same bits; a single part if n <=
 * grain.  For CPU kernels only.
 *
 *     sl_parallel_for(n, 65536, scale_range, (void *)c); */
void sl_parallel_for(int64_t n, int64_t grain, void (*range)(void *context, int64_t begin, int64_t end), void *context)
{
	if (!range || n <= 0) return;
	struct loop loop = {.range = range, .context = context};
	slp_parallel_for(n, grain > 0 ? grain : SLP_GRAIN, run_part, &loop);
	if (atomic_load(&loop.ended)) slp_error_set(SL_EKERNEL, "a part of sl_parallel_for ended its thread");
}

/* ---- gradients ------------------------------------------------------------------------------------------------ */

static enum sl_status check_gradient(const struct slp_grad *g, int i)
{
	const sl_tensor *x = g->in[i], *d = g->din[i];
	char text[2][160];
	if (!d)
		return slp_call_fail(g->at, g->op->name, SL_EINVAL,
		                     "its gradient function set no gradient for input %d", i),
		       SL_EINVAL;
	if (d->symbol || x->symbol || slp_type_equal(&d->type, &x->type)) return SL_OK;
	slp_call_fail(g->at, g->op->name, SL_ESHAPE, "its gradient for input %d is %s, the input %s", i,
	              slp_type_string(&d->type, text[0]), slp_type_string(&x->type, text[1]));
	return SL_ESHAPE;
}

static enum sl_status grad(struct slp_grad *g)
{
	struct sl_op_gradient own = {.at = g->at,
	                             .attrs = g->attrs,
	                             .nin = g->nin,
	                             .nout = g->nout,
	                             .in = g->in,
	                             .out = g->out,
	                             .dout = g->dout,
	                             .din = g->din,
	                             .need = g->need};
	enum sl_status s = checked(own_of(g->op)->def.gradient(&own));
	if (s != SL_OK && sl_error() == SL_OK)
		slp_call_fail(g->at, g->op->name, s, "its gradient function returned %s", sl_status_name(s));
	for (int i = 0; i < g->nin && s == SL_OK && sl_error() == SL_OK; i++)
		if (g->need[i]) s = check_gradient(g, i);
	return s;
}

/* ---- registering ---------------------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
	if (!name || !(slp_is_letter(*name) || *name == '_')) return false;
	for (const char *p = name; *p; p++)
		if (!(slp_is_letter(*p) || slp_is_digit(*p)) && *p != '_') return false;
	return strlen(name) < 48;
}

static const enum slp_attr_kind kinds[] = {
        [SL_ATTR_INT] = SLP_INT, [SL_ATTR_INT64] = SLP_INT64, [SL_ATTR_DOUBLE] = SLP_DOUBLE, [SL_ATTR_BOOL] = SLP_BOOL};

static size_t attr_bytes(const struct sl_op_attr *a)
{
	return (a->count > 0 ? (size_t)a->count : 1) * slp_attr_size(kinds[a->kind]);
}

static bool is_attr(const struct sl_op_attr *a, size_t size)
{
	if (!is_name(a->name) || (unsigned)a->kind >= sizeof kinds / sizeof *kinds || a->count < 0 ||
	    a->count > SL_OP_MAX_ATTRS)
		return false;
	return a->offset % slp_attr_size(kinds[a->kind]) == 0 && a->offset <= size && attr_bytes(a) <= size - a->offset;
}

/* The problem of a definition; NULL: none. */
static const char *mistake(const struct sl_op_def *d)
{
	if (!is_name(d->name)) return "its name is not valid: letters, digits and _";
	if (!d->cpu) return "it has no CPU kernel";
	if (d->nin < 0 || d->nin > SL_OP_MAX_INPUTS || d->nin_max > SL_OP_MAX_INPUTS ||
	    (d->nin_max && d->nin_max < d->nin))
		return "the number of its inputs is out of range";
	if (d->nout < 0 || d->nout > SL_OP_MAX_OUTPUTS) return "the number of its results is out of range";
	if (!d->nin && !d->rule) return "without inputs it needs a rule";
	if (d->types & ~SLP_ANY) return "its types are none";
	if (d->elementwise && (d->nin < 1 || d->nin > 2 || d->nin_max > d->nin || d->nout > 1 || d->scratch))
		return "elementwise operations have one or two inputs, one result and no scratch memory";
	if (d->attrs_size > SL_OP_MAX_ATTRS) return "its attributes are too large";
	for (const struct sl_op_attr *a = d->attrs; a && a->name; a++)
		if (!is_attr(a, d->attrs_size)) return "an attribute is outside of its structure, or not valid";
	return NULL;
}

static int attr_count(const struct sl_op_def *d)
{
	int n = 0;
	while (d->attrs && d->attrs[n].name) n++;
	return n;
}

static bool copy_text(const char **to, const char *text)
{
	return !text || (*to = slp_strdup(text));
}

static void discard(struct own *own)
{
	for (const struct slp_attr *a = own->op.attr_table; a && a->name; a++) {
		free((char *)a->name);
		free((char *)a->doc);
	}
	free((struct slp_attr *)own->op.attr_table);
	free((char *)own->op.name);
	free((char *)own->op.doc);
	free((char *)own->op.args);
	free(own);
}

static bool make_attrs(struct sl_op *op, const struct sl_op_def *d)
{
	int n = attr_count(d);
	struct slp_attr *attrs = slp_calloc((size_t)n + 1, sizeof *attrs);
	op->attr_table = attrs;
	bool ok = attrs != NULL;
	for (int i = 0; i < n && ok; i++) {
		const struct sl_op_attr *a = &d->attrs[i];
		attrs[i] = (struct slp_attr){.kind = kinds[a->kind],
		                             .offset = (unsigned)a->offset,
		                             .count = a->count > 0 ? (unsigned)a->count : 1};
		ok = copy_text(&attrs[i].name, a->name) && copy_text(&attrs[i].doc, a->doc);
	}
	return ok;
}

static void describe(struct own *own)
{
	const struct sl_op_def *d = &own->def;
	unsigned types = d->types ? d->types : SLP_F32;
	own->rows[0] = (struct slp_row){.types = types, .cpu = run_cpu};
#if defined HAVE_CUDA
	if (d->cuda) own->rows[0].cuda = run_cuda;
#elif defined SLP_SIMULATION
	if (d->cuda) own->rows[0].cuda = slp_simulated_kernel;
#endif
	own->op.nin_min = d->nin;
	own->op.nin_max = d->nin_max ? d->nin_max : d->nin;
	own->op.nout = d->nout ? d->nout : 1;
	own->op.attrs_size = d->attrs_size;
	own->op.saves = d->saves;
	own->op.inplace = d->inplace || d->elementwise;
	own->op.elementwise = own->op.by_parts = d->elementwise;
	own->op.no_graph = true; /* its kernels may do anything */
	own->op.rows = own->rows;
	own->op.infer = infer;
	own->op.flops = d->flops ? flops : slp_flops_elementwise;
	own->op.grad = d->gradient ? grad : NULL;
	own->op.scratch = d->scratch ? scratch : NULL;
}

static struct own *make(const struct sl_op_def *def)
{
	struct own *own = slp_calloc(1, sizeof *own);
	if (!own) return NULL;
	own->def = *def;
	bool ok = make_attrs(&own->op, def) && copy_text(&own->op.name, def->name) &&
	          copy_text(&own->op.args, def->args) &&
	          copy_text(&own->op.doc, def->doc ? def->doc : "an operation of the program's own");
	if (ok) describe(own);
	else discard(own);
	return ok ? own : NULL;
}

static pthread_mutex_t registration = PTHREAD_MUTEX_INITIALIZER;
SLP_FORK_MUTEX(registration);

/* Registers an operation; it stays until the process ends.  Its kernels run wherever the scheduler puts them: a CUDA
 * kernel is host code that launches on c->stream.  Call it before or after sl_init; with slave processes of StarPU,
 * before sl_init, in all processes, in the same order.  The operation is never freed.  NULL with SL_EINVAL: the
 * definition is not valid, or the name is taken; SL_ESTATE: slave processes already run; SL_EUNSUPPORTED: too many
 * operations.
 *
 *     static enum sl_status cube(const struct sl_op_call *c)
 *     {
 *             const float *x = c->in[0].data;
 *             float *y = c->out[0].data;
 *             for (int64_t i = 0; i < sl_shape_size(c->in[0].shape); i++) y[i] = x[i] * x[i] * x[i];
 *             return SL_OK;
 *     }
 *     ...
 *     const sl_op *op = sl_op_register(.name = "cube", .nin = 1, .cpu = cube); */
const sl_op *sl_op_register_at(const char *at, struct sl_op_def def)
{
	SLP_CALL("sl_op_register", at);
	const char *why = mistake(&def);
	if (why)
		return slp_call_fail(at, "sl_op_register", SL_EINVAL, "%s: %s",
		                     is_name(def.name) ? def.name : "an operation", why);
	if (slp_engine.nslaves && sl_is_initialized())
		return slp_call_fail(at, "sl_op_register", SL_ESTATE,
		                     "slave processes run without %s: register it before sl_init", def.name);
	struct own *own = make(&def);
	if (!own) return NULL;
	pthread_mutex_lock(&registration);
	bool taken = slp_op_find(def.name) != NULL, ok = !taken && slp_ops_append(&own->op);
	if (ok) slp_codelet_add(slp_op_count() - 1);
	pthread_mutex_unlock(&registration);
	if (ok) return &own->op;
	discard(own);
	return slp_call_fail(at, "sl_op_register", taken ? SL_EINVAL : SL_EUNSUPPORTED,
	                     taken ? "there is already an operation %s" : "no room for %s: too many operations",
	                     def.name);
}

/* The registered operation with that name; NULL: no such operation. */
const sl_op *sl_op_find(const char *name)
{
	const struct sl_op *op = name ? slp_op_find(name) : NULL;
	return op && op->infer == infer ? op : NULL;
}

/* ---- calling -------------------------------------------------------------------------------------------------- */

/* The fields that the definition names; all else is 0, so that equal calls have equal bytes. */
static void copy_attrs(const struct sl_op *op, const void *attrs, char *bytes)
{
	for (const struct slp_attr *a = op->attr_table; attrs && a->name; a++)
		memcpy(bytes + a->offset, (const char *)attrs + a->offset, a->count * slp_attr_size(a->kind));
}

/* Calls a registered operation and returns result 0, or NULL after an error; opts.out, if set, gets all results, or
 * NULLs.  They belong to the innermost scope.  Its inputs must be on one device; symbols are traced.  Errors: those of
 * the rule; SL_EDTYPE, SL_EUNSUPPORTED: no kernel takes these types, or runs on this device.
 *
 *     sl_tensor *y = sl_op_apply(op, &x, 1, .attrs = &(struct scale){.factor = 2}); */
sl_tensor *sl_op_apply_at(const char *at, const sl_op *op, sl_tensor *const *in, int nin, struct sl_op_opts opts)
{
	sl_tensor *unwanted[SL_OP_MAX_OUTPUTS] = {NULL}, **out = opts.out ? opts.out : unwanted;
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs;
	SLP_CALL("sl_op_apply", at);
	if (!slp_given(at, "sl_op_apply", "operation", op)) return NULL;
	for (int i = 0; i < op->nout; i++) out[i] = NULL;
	if (nin < 0 || nin > SL_OP_MAX_INPUTS || (nin && !in))
		return slp_call_fail(at, op->name, SL_EINVAL, "%s",
		                     in || !nin ? "the number of inputs is out of range" : "the inputs are NULL");
	memset(&attrs, 0, sizeof attrs);
	copy_attrs(op, opts.attrs, attrs.bytes);
	for (int i = 0; i < nin; i++)
		if (!slp_given(at, op->name, "input", in[i])) return NULL;
	slp_apply(at, op, attrs.bytes, nin, in, opts.device, out);
	for (int i = 1; i < op->nout && !opts.out && !slp_scope_is_open(); i++) sl_release(out[i]);
	return out[0];
}
