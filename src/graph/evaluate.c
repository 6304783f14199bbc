/* Running a graph without a plan, operation by operation: for folding, for comparing a graph before and after a pass,
 * for tests. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/random.h"
#include "starling/autograd.h"
#include "starling/graph.h"
#include "starling/arithmetic.h"

/* ---- random streams ---------------------------------------------------------------------------------------------- */

/* Replaces a virtual stream by a real one: the streams of a run are consecutive. */
static void make_real(const struct sl_op *op, char *attrs, struct slp_rng first)
{
	const struct slp_attr *seed = slp_attr_find(op, "seed"), *stream = slp_attr_find(op, "stream");
	uint64_t s, number;
	if (!seed || !stream) return;
	memcpy(&s, attrs + seed->offset, sizeof s);
	if (s != SLP_RNG_VIRTUAL) return;
	memcpy(&number, attrs + stream->offset, sizeof number);
	number += first.stream;
	memcpy(attrs + seed->offset, &first.seed, sizeof first.seed);
	memcpy(attrs + stream->offset, &number, sizeof number);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

enum sl_status slp_node_apply(const sl_graph *g, int node, sl_tensor *const *values, struct slp_rng first,
                              sl_tensor **out)
{
	const struct slp_gnode *n = &g->nodes[node];
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs;
	sl_tensor **in = slp_malloc((size_t)(n->nin ? n->nin : 1) * sizeof *in);
	if (!in) return slp_error_set(SL_ENOMEM, "%s: no memory to run it", n->name);
	for (int i = 0; i < n->nin; i++) in[i] = values[slp_value_id(n->in[i])];
	memcpy(attrs.bytes, n->attrs.bytes, sizeof attrs.bytes);
	make_real(n->op, attrs.bytes, first);
	/* Autocast is off: the graph already contains the casts of the SL_AUTOCAST that it was traced in. */
	sl_autocast_mode cast;
	sl_autocast_enter_at(n->at, &cast, SL_DTYPE_DEFAULT);
	enum sl_status s = slp_apply(n->at, n->op, attrs.bytes, n->nin, in, g->device, out);
	sl_autocast_leave(&cast);
	free(in);
	return s;
}

static enum sl_status run_nodes(const sl_graph *g, sl_tensor **values)
{
	struct slp_rng first = g->nrandom ? slp_rng_take(g->nrandom) : (struct slp_rng){0};
	enum sl_status s = SL_OK;
	for (int i = 0; s == SL_OK && i < g->count; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		if (n->dead) continue;
		if (n->kind == SLP_NODE_OP) s = slp_node_apply(g, i, values, first, &values[i * SLP_MAX_OUTPUTS]);
		else if (n->kind != SLP_NODE_INPUT) values[i * SLP_MAX_OUTPUTS] = n->tensor;
	}
	return s;
}

static enum sl_status evaluate(const sl_graph *g, sl_tensor *const *in, int nin, sl_tensor **out)
{
	sl_tensor **values = slp_calloc((size_t)(g->count ? g->count : 1) * SLP_MAX_OUTPUTS, sizeof *values);
	enum sl_status s = SL_OK;
	if (!values) return slp_error_set(SL_ENOMEM, "graph: no memory to run it");
	if (nin != g->ninputs) {
		s = SL_EINVAL;
		slp_call_fail(NULL, "graph", s, "takes %d inputs, got %d", g->ninputs, nin);
	}
	for (int i = 0; s == SL_OK && i < nin; i++) values[g->inputs[i] * SLP_MAX_OUTPUTS] = in[i];
	SL_PAUSE
		SL_SCOPE {
			if (s == SL_OK) s = run_nodes(g, values);
			for (int i = 0; s == SL_OK && i < g->noutputs; i++)
				out[i] = sl_retain(values[slp_value_id(g->outputs[i])]);
		}
	free(values);
	return s;
}

enum sl_status slp_graph_evaluate(const sl_graph *g, sl_tensor *const *in, int nin, sl_tensor **out)
{
	for (int i = 0; i < g->noutputs; i++) out[i] = NULL;
	return evaluate(g, in, nin, out);
}

/* ---- again, recorded --------------------------------------------------------------------------------------------- */

/* The call, but what it writes is a copy: its effects have taken place already. */
static enum sl_status repeat_node(const sl_graph *g, int node, sl_tensor **values, struct slp_rng first)
{
	const struct slp_gnode *n = &g->nodes[node];
	sl_tensor *before[SLP_MAX_OUTPUTS] = {NULL};
	int count = 0, id[SLP_MAX_OUTPUTS];
	for (int j = 0; j < n->nin; j++) {
		if (!slp_node_writes(n, j)) continue;
		if (count == SLP_MAX_OUTPUTS) return slp_error_set(SL_EINTERNAL, "%s writes too much", n->name);
		id[count] = slp_value_id(n->in[j]);
		before[count] = values[id[count]];
		SL_PAUSE
			values[id[count]] = sl_clone_at(n->at, before[count]);
		if (!values[id[count++]]) return sl_error();
	}
	enum sl_status s = slp_node_apply(g, node, values, first, &values[node * SLP_MAX_OUTPUTS]);
	while (count-- > 0) values[id[count]] = before[count];
	return s;
}

enum sl_status slp_graph_repeat(const sl_graph *g, sl_tensor *const *in, struct slp_rng first, int nout,
                                sl_tensor **out)
{
	sl_tensor **values = slp_calloc((size_t)(g->count ? g->count : 1) * SLP_MAX_OUTPUTS, sizeof *values);
	enum sl_status s = SL_OK;
	if (!values) return slp_error_set(SL_ENOMEM, "graph: no memory to run it");
	for (int i = 0; i < g->ninputs; i++) values[g->inputs[i] * SLP_MAX_OUTPUTS] = in[i];
	for (int i = 0; s == SL_OK && i < g->count; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		if (n->dead) continue;
		if (n->kind == SLP_NODE_OP) s = repeat_node(g, i, values, first);
		else if (n->kind != SLP_NODE_INPUT) values[i * SLP_MAX_OUTPUTS] = n->tensor;
	}
	for (int i = 0; s == SL_OK && i < nout; i++) out[i] = values[slp_value_id(g->outputs[i])];
	free(values);
	return s;
}

/* ---- parameters that are written --------------------------------------------------------------------------------- */

static bool *written_nodes(const sl_graph *g)
{
	bool *written = slp_calloc((size_t)(g->count ? g->count : 1), sizeof *written);
	for (int i = 0; written && i < g->count; i++)
		for (int j = 0; j < g->nodes[i].nin; j++)
			if (slp_node_writes(&g->nodes[i], j)) written[g->nodes[i].in[j].node] = true;
	return written;
}

struct slp_kept_values {
	int count;
	struct {
		sl_tensor *tensor, *copy;
	} list[];
};

struct slp_kept_values *slp_values_keep(const sl_graph *g)
{
	bool *written = written_nodes(g);
	struct slp_kept_values *p = slp_calloc(1, sizeof *p + (size_t)g->count * sizeof *p->list);
	bool ok = written && p;
	SL_PAUSE
		SL_SCOPE
			for (int i = 0; ok && i < g->count; i++) {
				if (!written[i] || g->nodes[i].kind != SLP_NODE_PARAM) continue;
				sl_tensor *copy = sl_retain(sl_clone_at(g->nodes[i].at, g->nodes[i].tensor));
				if (!copy) ok = false;
				else
					p->list[p->count].tensor = sl_retain(g->nodes[i].tensor),
					p->list[p->count++].copy = copy;
			}
	free(written);
	if (ok) return p;
	slp_values_free(p);
	return NULL;
}

void slp_values_free(struct slp_kept_values *p)
{
	for (int i = 0; p && i < p->count; i++) {
		sl_release(p->list[i].tensor);
		sl_release(p->list[i].copy);
	}
	free(p);
}

bool slp_values_restore(const struct slp_kept_values *p)
{
	bool ok = true;
	SL_PAUSE
		for (int i = 0; ok && i < p->count; i++) ok = sl_copy_(p->list[i].tensor, p->list[i].copy);
	return ok;
}

/* ---- comparing two graphs ---------------------------------------------------------------------------------------- */

/* Values for an input: numbers around 0; zeros for integers, which may be labels or indices. */
static sl_tensor *some_input(const struct slp_gnode *n)
{
	const struct slp_type *t = &n->types[0];
	struct sl_make make = {.dtype = t->dtype};
	return slp_is_float(t->dtype) ? sl_normal_at(n->at, t->shape, 0, 1, make) : sl_zeros_at(n->at, t->shape, make);
}

struct reading {
	struct slp_view a, b;
};

/* The element with the largest error; -1: all are close enough. */
static int64_t worst(const struct reading *r, double tolerance, double rms)
{
	int64_t at = -1;
	double most = 0;
	for (int64_t i = 0; i < slp_size(&r->a); i++) {
		double x = slp_get(&r->a, i), y = slp_get(&r->b, i), d = fabs(x - y);
		if (slp_is_close(y, x, tolerance, rms) || (at >= 0 && d <= most)) continue;
		at = i;
		most = d;
	}
	return at;
}

static enum sl_status compare_read(const char *what, const char *name, const struct reading *r, double tolerance)
{
	double rms = slp_rms(&r->a);
	int64_t i = worst(r, slp_tolerance(r->a.type.dtype, tolerance), rms);
	if (i < 0) return SL_OK;
	return slp_error_set(SL_EINTERNAL,
	                     "%s: %s differs: element %lld is %.9g, and was %.9g, in an array of about %.3g", what,
	                     name, (long long)i, slp_get(&r->b, i), slp_get(&r->a, i), rms);
}

enum sl_status slp_compare(const char *what, const char *name, sl_tensor *a, sl_tensor *b, double tolerance)
{
	size_t bytes = sl_tensor_bytes(a);
	if (!sl_shape_equal(a->type.shape, b->type.shape) || a->type.dtype != b->type.dtype)
		return slp_error_set(SL_EINTERNAL, "%s: %s has another type", what, name);
	struct reading r = {{slp_malloc(bytes ? bytes : 1), a->type}, {slp_malloc(bytes ? bytes : 1), a->type}};
	enum sl_status s =
	        r.a.ptr && r.b.ptr ? sl_read(a, r.a.ptr, bytes) : slp_error_set(SL_ENOMEM, "%s: no memory", what);
	if (s == SL_OK) s = sl_read(b, r.b.ptr, bytes);
	if (s == SL_OK) s = compare_read(what, name, &r, tolerance);
	free(r.a.ptr);
	free(r.b.ptr);
	return s;
}

struct comparison {
	const sl_graph *before, *after;
	sl_tensor **in, **a, **b;
	struct slp_kept_values *original, *first; /* values of the parameters: at first, and after the first run */
};

static enum sl_status run_both(struct comparison *c)
{
	uint64_t stream = atomic_load(&slp_engine.rng_stream);
	enum sl_status s = slp_graph_evaluate(c->before, c->in, c->before->ninputs, c->a);
	if (s == SL_OK) c->first = slp_values_keep(c->before);
	if (s == SL_OK && !(c->first && slp_values_restore(c->original))) s = SL_ENOMEM;
	atomic_store(&slp_engine.rng_stream, stream); /* both draw the same numbers */
	if (s == SL_OK) s = slp_graph_evaluate(c->after, c->in, c->after->ninputs, c->b);
	return s;
}

static enum sl_status compare_all(const struct comparison *c, const char *what, double tolerance)
{
	enum sl_status s = SL_OK;
	for (int i = 0; s == SL_OK && i < c->before->noutputs; i++)
		s = slp_compare(what, c->before->nodes[c->before->outputs[i].node].name, c->a[i], c->b[i], tolerance);
	for (int i = 0; s == SL_OK && i < c->first->count; i++)
		s = slp_compare(what, "a parameter that is written", c->first->list[i].copy, c->first->list[i].tensor,
		                tolerance);
	return s;
}

static void release_all(sl_tensor **list, int count)
{
	for (int i = 0; list && i < count; i++) sl_release(list[i]);
	free(list);
}

enum sl_status slp_graph_compare(const char *what, const sl_graph *before, const sl_graph *after, double tolerance)
{
	int nin = before->ninputs, nout = before->noutputs;
	struct comparison c = {.before = before,
	                       .after = after,
	                       .in = slp_calloc((size_t)nin + 1, sizeof *c.in),
	                       .a = slp_calloc((size_t)nout + 1, sizeof *c.a),
	                       .b = slp_calloc((size_t)nout + 1, sizeof *c.b)};
	enum sl_status s = c.in && c.a && c.b ? SL_OK : slp_error_set(SL_ENOMEM, "%s: no memory", what);
	if (s == SL_OK && (nin != after->ninputs || nout != after->noutputs))
		s = slp_error_set(SL_EINTERNAL, "%s: other numbers of inputs or outputs", what);
	if (s == SL_OK && !(c.original = slp_values_keep(before))) s = SL_ENOMEM;
	SL_PAUSE
		SL_SCOPE
			for (int i = 0; s == SL_OK && i < nin; i++)
				if (!(c.in[i] = sl_retain(some_input(&before->nodes[before->inputs[i]]))))
					s = sl_error();
	if (s == SL_OK) s = run_both(&c);
	if (s == SL_OK) s = compare_all(&c, what, tolerance);
	if (c.original && !slp_values_restore(c.original) && s == SL_OK) s = sl_error();
	slp_values_free(c.original);
	slp_values_free(c.first);
	release_all(c.in, nin);
	release_all(c.a, nout);
	release_all(c.b, nout);
	return s;
}
