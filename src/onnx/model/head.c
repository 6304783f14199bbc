/* ONNX models in which a run decides about shapes: the nodes before the first one that reads a value.  A trace of the
 * model ends there (reading.c), so the block runs node by node; those nodes run as a program all the same. */
#include <stdlib.h>

#include "graph/symbol.h"
#include "onnx/model/run.h"
#include "runtime/fault.h"
#include "starling/autograd.h"
#include "tensor/tensor.h"

enum { MAX_PARTS = 16 }; /* as many as a hybrid block keeps programs */

/* A value that later nodes take: a result of the program, or numbers that depend on shapes alone. */
struct live {
	int name;
	struct slp_onnx_value v; /* t: NULL; the results are the tensors in this order */
};

/* What the program leaves for inputs of these types. */
struct part {
	struct part *next; /* older */
	struct slp_type *in;
	struct live *live;
	int count;
	struct slp_onnx_known *made;
};

struct slp_onnx_head {
	sl_block base;
	struct slp_onnx_imported *whole;
	struct part *parts;
	unsigned changes; /* of the whole block, when the programs were made */
	int nodes;        /* before this one; 0: it cannot be a program */
};

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void free_part(struct part *p)
{
	if (!p) return;
	slp_onnx_known_free(p->made);
	free(p->in);
	free(p->live);
	free(p);
}

static void free_parts(struct part **list, int keep)
{
	while (*list && keep-- > 0) list = &(*list)->next;
	for (struct part *p = *list, *next; p; p = next) {
		next = p->next;
		free_part(p);
	}
	*list = NULL;
}

static bool matches(const struct part *p, sl_tensor *const *in, int nin)
{
	for (int i = 0; i < nin; i++)
		if (p->in[i].dtype != sl_tensor_dtype(in[i]) || !sl_shape_equal(p->in[i].shape, sl_tensor_shape(in[i])))
			return false;
	return true;
}

static struct part *part_for(const struct slp_onnx_head *h, sl_tensor *const *in)
{
	struct part *p = h->parts;
	while (p && !matches(p, in, h->whole->model.ninputs)) p = p->next;
	return p;
}

static struct part *part_new(const struct slp_onnx_model *m, sl_tensor *const *in)
{
	struct part *p = slp_calloc(1, sizeof *p);
	if (p) p->in = slp_calloc((size_t)m->ninputs + 1, sizeof *p->in);
	if (p) p->live = slp_calloc((size_t)m->graphs[0].nnames + 1, sizeof *p->live);
	if (!p || !p->in || !p->live) return free_part(p), NULL;
	for (int i = 0; i < m->ninputs; i++)
		p->in[i] = (struct slp_type){sl_tensor_dtype(in[i]), sl_tensor_shape(in[i])};
	return p;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* Notes a value that is still needed; its tensor, if it has one, becomes result *n. */
static bool keep(struct part *p, int name, const struct slp_onnx_value *v, sl_tensor **y, int *n)
{
	struct live *l = &p->live[p->count++];
	*l = (struct live){name, *v};
	l->v.t = NULL;
	if (v->sequence || (v->t && *n == SL_MAX_RESULTS)) return false;
	if (v->known) l->v.known = slp_onnx_known_copy(&p->made, v->known);
	else y[(*n)++] = v->t;
	return !v->known || l->v.known;
}

static int keep_all(struct slp_onnx_run *r, struct part *p, sl_tensor **y)
{
	const struct slp_onnx_model *m = &r->b->model;
	int n = 0;
	for (int i = 0; i < m->graphs[0].nnames; i++) { /* others are loaded when they are needed */
		int name = m->graphs[0].first_name + i;
		if (m->names[name].node < 0 || !slp_onnx_present(r->values[name])) continue;
		if (!keep(p, name, &r->values[name], y, &n)) return 0;
	}
	return n;
}

static void add_part(struct slp_onnx_head *h, struct part *p)
{
	p->next = h->parts;
	h->parts = p;
	free_parts(&h->parts, MAX_PARTS);
}

static sl_tensor *forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct slp_onnx_head *h = (struct slp_onnx_head *)self;
	const char *at = slp_forward_call_site();
	struct slp_onnx_run r;
	sl_tensor *y[SL_MAX_RESULTS];
	(void)nin;
	struct part *p = part_new(&h->whole->model, in);
	bool ok = slp_onnx_run_begin(&r, h->whole, in) && p && slp_onnx_run_nodes(&r, 0, h->nodes);
	int n = ok ? keep_all(&r, p, y) : 0;
	for (int i = 0; i < n; i++) slp_scope_add(sl_retain(y[i]));
	slp_onnx_run_end(&r);
	for (int i = 1; i < n && ok; i++) ok = sl_also_at(at, y[i]) == SL_OK;
	if (ok && n) return add_part(h, p), y[0];
	free_part(p);
	return NULL;
}

static void destroy(sl_block *self)
{
	struct slp_onnx_head *h = (struct slp_onnx_head *)self;
	free_parts(&h->parts, 0);
	free(h);
}

static struct slp_onnx_head *head_new(const char *at, struct slp_onnx_imported *b, int nodes)
{
	struct slp_onnx_head *h = slp_calloc(1, sizeof *h);
	if (!h || slp_block_setup(at, &h->base, "ImportHead", "import_head", forward, destroy) != SL_OK) {
		free(h);
		return NULL;
	}
	h->whole = b;
	h->nodes = nodes;
	h->changes = b->base.base->changes;
	if (sl_hybridize_at(at, &h->base, (struct sl_hybridize_opts){0}) == SL_OK) return h;
	sl_block_free(&h->base);
	return NULL;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static void free_head(struct slp_onnx_imported *b)
{
	if (b->head) sl_block_free(&b->head->base);
	b->head = NULL;
}

/* The head for the nodes before the cut, without programs of parameters that have changed since. */
static struct slp_onnx_head *current(const char *at, struct slp_onnx_imported *b)
{
	struct slp_onnx_head *h = b->head;
	if (h && h->nodes > b->cut) free_head(b), h = NULL;
	if (!h) return b->head = head_new(at, b, b->cut);
	if (h->changes == b->base.base->changes) return h;
	h->changes = b->base.base->changes;
	free_parts(&h->parts, 0);
	slp_block_changed(&h->base);
	return h;
}

static bool take(struct slp_onnx_run *r, const struct part *p, sl_tensor *const *y, int n)
{
	int next = 0;
	for (int i = 0; i < p->count; i++) {
		struct slp_onnx_value v = p->live[i].v;
		if (v.known) v.known = slp_onnx_known_copy(&r->made, v.known);
		else v.t = next < n ? sl_retain(y[next++]) : NULL;
		if (!slp_onnx_present(v)) return false;
		r->values[p->live[i].name] = v;
	}
	return true;
}

static bool run(struct slp_onnx_run *r, struct slp_onnx_head *h)
{
	const char *at = slp_forward_call_site();
	sl_tensor *y[SL_MAX_RESULTS];
	bool ok = false;
	SL_SCOPE {
		int n = sl_forward_most_at(at, &h->base, r->given, r->b->model.ninputs, y, SL_MAX_RESULTS);
		const struct part *p = n ? part_for(h, r->given) : NULL;
		ok = p && take(r, p, y, n);
	}
	return ok;
}

/* Gradients and traces go through the nodes. */
static bool may_run(const struct slp_onnx_run *r)
{
	bool concrete = !sl_is_recording() && !slp_trace_current() && !r->b->model.nlists;
	for (int i = 0; i < r->b->model.ninputs && concrete; i++) concrete = !sl_is_symbol(r->given[i]);
	return concrete && r->b->cut && r->b->base.base->hybrid;
}

static int run_head(struct slp_onnx_run *r)
{
	struct slp_onnx_imported *b = r->b;
	struct slp_pending before;
	if (!may_run(r)) return 0;
	SLP_GUARD_PATIENTLY(&b->guard);
	slp_error_set_aside(&before);
	struct slp_onnx_head *h = current(slp_forward_call_site(), b);
	int nodes = h ? h->nodes : 0;
	if (nodes && !run(r, h)) { /* node by node, then: an error will be met again */
		h->nodes = nodes = 0;
		sl_error_clear();
	}
	if (!h) sl_error_clear();
	slp_error_rejoin(&before);
	return nodes;
}

const sl_block *slp_onnx_head_of(const sl_block *imported)
{
	const struct slp_onnx_head *h = ((const struct slp_onnx_imported *)imported)->head;
	return h ? &h->base : NULL;
}

void slp_onnx_head_attach(sl_block *imported)
{
	struct slp_onnx_imported *b = (struct slp_onnx_imported *)imported;
	b->run_head = run_head;
	b->free_head = free_head;
}
