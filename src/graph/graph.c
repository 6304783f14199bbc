/* Graphs: building them, changing them node by node, copying and freeing. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "runtime/fault.h"
#include "runtime/task/storage.h"
#include "starling/graph.h"

/* ---- strings and names ------------------------------------------------------------------------------------------- */

const char *slp_graph_string(sl_graph *g, const char *text)
{
	size_t bytes = strlen(text) + 1;
	struct slp_string *s = slp_malloc(sizeof *s + bytes);
	if (!s) return NULL;
	memcpy(s->text, text, bytes);
	s->next = g->strings;
	g->strings = s;
	return s->text;
}

static size_t hash(const char *text)
{
	uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
	for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return (size_t)(h ^ h >> 32);
}

/* The entry of a name in the table, or the free entry for it. */
static struct slp_name *name_entry(const struct slp_names *names, const char *text)
{
	size_t i = hash(text) & (names->capacity - 1);
	while (names->list[i].text && strcmp(names->list[i].text, text)) i = (i + 1) & (names->capacity - 1);
	return &names->list[i];
}

static bool names_grow(struct slp_names *names)
{
	if (names->count * 2 < names->capacity) return true;
	struct slp_names more = {.count = names->count, .capacity = names->capacity ? names->capacity * 2 : 64};
	more.list = slp_calloc(more.capacity, sizeof *more.list);
	if (!more.list) return false;
	for (size_t i = 0; i < names->capacity; i++)
		if (names->list[i].text) *name_entry(&more, names->list[i].text) = names->list[i];
	free(names->list);
	*names = more;
	return true;
}

struct slp_name *slp_names_find(const struct slp_names *names, const char *text)
{
	struct slp_name *entry = names->capacity ? name_entry(names, text) : NULL;
	return entry && entry->text ? entry : NULL;
}

bool slp_names_add(struct slp_names *names, const char *text, int number)
{
	if (!names_grow(names)) return false;
	*name_entry(names, text) = (struct slp_name){text, number};
	names->count++;
	return true;
}

/* The name, with a number after it if the name is taken. */
static const char *unique_name(sl_graph *g, const char *name)
{
	char text[160];
	snprintf(text, sizeof text, "%s", name);
	for (int k = g->count; slp_names_find(&g->names, text); k++) snprintf(text, sizeof text, "%.140s_%d", name, k);
	const char *own = slp_graph_string(g, text);
	return own && slp_names_add(&g->names, own, g->count) ? own : NULL;
}

/* Consecutive nodes often have one call site: they share its text. */
static const char *call_site_string(sl_graph *g, const char *at)
{
	if (!at) return "";
	const char *last = g->count ? g->nodes[g->count - 1].at : NULL;
	return last && !strcmp(last, at) ? last : slp_graph_string(g, at);
}

/* ---- making, copying, freeing ------------------------------------------------------------------------------------ */

sl_graph *slp_graph_new(void)
{
	return slp_calloc(1, sizeof(sl_graph));
}

static void node_release(struct slp_gnode *n)
{
	free(n->in);
	n->in = NULL;
	n->nin = 0;
	sl_release(n->tensor);
	n->tensor = NULL;
}

/* Frees a program, and releases its parameters and constants.  NULL is ignored. */
void sl_graph_free(sl_graph *g)
{
	if (!g) return;
	for (int i = 0; i < g->count; i++) node_release(&g->nodes[i]);
	for (struct slp_string *s = g->strings, *next; s; s = next) {
		next = s->next;
		free(s);
	}
	free(g->nodes);
	free(g->outputs);
	free(g->output_names);
	free(g->inputs);
	free(g->names.list);
	free(g);
}

static int add_copy(sl_graph *to, const struct slp_gnode *n)
{
	int node = n->kind == SLP_NODE_OP ? slp_graph_add_op(to, n->at, n->name, n->op, n->attrs.bytes, n->nin, n->in)
	           : n->kind == SLP_NODE_INPUT ? slp_graph_add_input(to, n->at, n->name, n->types[0])
	                                       : slp_graph_add_tensor(to, n->at, n->name, n->kind, n->tensor);
	if (node < 0) return node;
	struct slp_gnode *copy = &to->nodes[node];
	memcpy(copy->types, n->types, sizeof copy->types);
	copy->before = n->before;
	copy->dead = n->dead;
	if (n->dead) node_release(copy); /* a removed node holds no tensor */
	copy->backward = n->backward;
	copy->repeat = n->repeat;
	return node;
}

static bool copy_all(const sl_graph *g, sl_graph *to)
{
	for (int i = 0; i < g->count; i++)
		if (add_copy(to, &g->nodes[i]) < 0) return false;
	for (int i = 0; i < g->noutputs; i++)
		if (!slp_graph_add_output(to, g->outputs[i], g->output_names[i])) return false;
	/* The order in which runs take the inputs, which may differ from the order of the nodes. */
	if (g->ninputs) memcpy(to->inputs, g->inputs, (size_t)g->ninputs * sizeof *g->inputs);
	to->nrandom = g->nrandom;
	return true;
}

sl_graph *slp_graph_copy(const sl_graph *g)
{
	sl_graph *copy = slp_graph_new();
	if (copy && copy_all(g, copy)) return copy;
	sl_graph_free(copy);
	return NULL;
}

/* ---- adding ------------------------------------------------------------------------------------------------------ */

static const struct slp_type unknown = {SL_FLOAT32, {.ndim = -1}};

/* Adds a node without arguments; attributes and types are left to the caller. */
static int add_node(sl_graph *g, enum slp_node_kind kind, const char *at, const char *name, int nout)
{
	if (!slp_grow((void **)&g->nodes, &g->capacity, g->count + 1, sizeof *g->nodes)) return -1;
	struct slp_gnode n = {
	        .kind = kind, .at = call_site_string(g, at), .name = unique_name(g, name), .nout = nout, .before = -1};
	if (!n.at || !n.name) return -1;
	for (int i = 0; i < SLP_MAX_OUTPUTS; i++) n.types[i] = unknown;
	g->nodes[g->count] = n;
	return g->count++;
}

/* Gives a node its operation, arguments and attributes. */
static bool set_op(struct slp_gnode *n, const struct sl_op *op, const void *attrs, int nin, const struct slp_value *in)
{
	struct slp_value *list = slp_malloc((size_t)(nin ? nin : 1) * sizeof *list);
	char bytes[SLP_MAX_ATTRS] = {0}; /* attrs and in may be the node's own */
	if (!list) return false;
	if (nin) memcpy(list, in, (size_t)nin * sizeof *list);
	if (attrs) memcpy(bytes, attrs, op->attrs_size);
	memcpy(n->attrs.bytes, bytes, sizeof bytes);
	free(n->in);
	n->in = list;
	n->nin = nin;
	n->op = op;
	n->nout = op->nout;
	for (int i = 0; i < SLP_MAX_OUTPUTS; i++) n->types[i] = unknown;
	return true;
}

int slp_graph_add_op(sl_graph *g, const char *at, const char *name, const struct sl_op *op, const void *attrs, int nin,
                     const struct slp_value *in)
{
	int node = add_node(g, SLP_NODE_OP, at, name ? name : op->name, op->nout);
	if (node < 0) return -1;
	if (set_op(&g->nodes[node], op, attrs, nin, in)) return node;
	g->count--; /* the name stays reserved, which is harmless */
	return -1;
}

int slp_graph_add_input(sl_graph *g, const char *at, const char *name, struct slp_type type)
{
	int *inputs = slp_realloc(g->inputs, (size_t)(g->ninputs + 1) * sizeof *inputs);
	if (!inputs) return -1;
	g->inputs = inputs;
	int node = add_node(g, SLP_NODE_INPUT, at, name ? name : "input", 1);
	if (node < 0) return -1;
	g->nodes[node].types[0] = type;
	return g->inputs[g->ninputs++] = node;
}

int slp_graph_add_tensor(sl_graph *g, const char *at, const char *name, enum slp_node_kind kind, sl_tensor *t)
{
	int node = add_node(g, kind, at, name ? name : kind == SLP_NODE_CONST ? "const" : "param", 1);
	if (node < 0) return -1;
	if (t) g->nodes[node].types[0] = t->type; /* NULL in copies of dead nodes */
	g->nodes[node].tensor = sl_retain(t);
	return node;
}

bool slp_graph_add_output(sl_graph *g, struct slp_value v, const char *name)
{
	size_t n = (size_t)g->noutputs + 1;
	struct slp_value *outputs = slp_realloc(g->outputs, n * sizeof *outputs);
	if (outputs) g->outputs = outputs;
	const char **names = slp_realloc(g->output_names, n * sizeof *names), *own = NULL;
	if (names) g->output_names = names;
	if (!outputs || !names || (name && !(own = slp_graph_string(g, name)))) return false;
	g->outputs[g->noutputs] = v;
	g->output_names[g->noutputs++] = own;
	return true;
}

/* ---- changing ---------------------------------------------------------------------------------------------------- */

bool slp_graph_rewrite(sl_graph *g, int node, const struct sl_op *op, const void *attrs, int nin,
                       const struct slp_value *in)
{
	return set_op(&g->nodes[node], op, attrs, nin, in);
}

void slp_graph_make_const(sl_graph *g, int node, sl_tensor *t)
{
	struct slp_gnode *n = &g->nodes[node];
	sl_retain(t);
	node_release(n);
	n->kind = SLP_NODE_CONST;
	n->op = NULL;
	n->tensor = t;
	n->types[0] = t->type;
	n->nout = 1;
}

void slp_graph_before(sl_graph *g, int node, int position)
{
	int before = g->nodes[position].before;
	g->nodes[node].before = before >= 0 ? before : position;
}

void slp_graph_kill(sl_graph *g, int node)
{
	struct slp_gnode *n = &g->nodes[node];
	if (n->kind == SLP_NODE_INPUT) return; /* runs still return it */
	node_release(n);
	n->dead = true;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

int *slp_graph_uses(const sl_graph *g)
{
	int *counts = slp_calloc((size_t)(g->count ? g->count : 1) * SLP_MAX_OUTPUTS, sizeof *counts);
	if (!counts) return NULL;
	for (int i = 0; i < g->count; i++)
		for (int j = 0; j < g->nodes[i].nin; j++) counts[slp_value_id(g->nodes[i].in[j])]++;
	for (int i = 0; i < g->noutputs; i++) counts[slp_value_id(g->outputs[i])]++;
	return counts;
}

bool slp_node_writes(const struct slp_gnode *n, int i)
{
	return n->kind == SLP_NODE_OP && slp_input_is_written(n->op, i);
}

bool slp_node_has_effect(const struct slp_gnode *n)
{
	for (int i = 0; i < n->nin; i++)
		if (slp_node_writes(n, i)) return true;
	return false;
}

const struct slp_attr *slp_attr_find(const struct sl_op *op, const char *name)
{
	for (const struct slp_attr *a = op->attr_table; a && a->name; a++)
		if (!strcmp(a->name, name)) return a;
	return NULL;
}

bool slp_attrs_equal(const struct sl_op *op, const void *a, const void *b)
{
	bool same = true;
	for (const struct slp_attr *f = op->attr_table; same && f && f->name; f++)
		same = !memcmp((const char *)a + f->offset, (const char *)b + f->offset,
		               f->count * slp_attr_size(f->kind));
	return same;
}

const void *slp_node_attr(const struct slp_gnode *n, const char *name)
{
	const struct slp_attr *a = n->kind == SLP_NODE_OP ? slp_attr_find(n->op, name) : NULL;
	return a ? n->attrs.bytes + a->offset : NULL;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

/* A call and the arrays that it points to, in one allocation. */
struct whole_call {
	struct slp_type out[SLP_MAX_OUTPUTS];
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs;
};

/* The arguments' types are the beginning of the allocation, so free(c->in) frees it all. */
static bool make_call(const sl_graph *g, const struct slp_gnode *n, struct slp_infer *c)
{
	size_t types = (size_t)n->nin * sizeof *c->in, align = _Alignof(struct whole_call);
	types = (types + align - 1) / align * align;
	struct slp_type *in = slp_malloc(types + sizeof(struct whole_call));
	if (!in) return slp_error_set(SL_ENOMEM, "%s: no memory for its types", n->name), false;
	for (int i = 0; i < n->nin; i++) in[i] = *slp_value_type(g, n->in[i]);
	struct whole_call *w = (struct whole_call *)((char *)in + types);
	memcpy(w->out, n->types, sizeof w->out);
	memcpy(w->attrs.bytes, n->attrs.bytes, sizeof w->attrs);
	*c = (struct slp_infer){.op = n->op,
	                        .at = n->at,
	                        .attrs = w->attrs.bytes,
	                        .nin = n->nin,
	                        .nout = n->nout,
	                        .in = in,
	                        .out = w->out};
	return true;
}

void slp_call_free(struct slp_infer *c)
{
	free((void *)c->in);
	c->in = NULL;
}

static enum sl_status check_arguments(const struct slp_gnode *n, const struct slp_infer *c)
{
	char count[64];
	if (!slp_count_fits(n->op, n->nin))
		return slp_call_fail(n->at, n->op->name, SL_EINVAL, "%s takes %s, got %d", n->name,
		                     slp_count_text(n->op, count), n->nin),
		       SL_EINVAL;
	for (int i = 0; i < n->nin; i++)
		if (c->in[i].shape.ndim < 0)
			return slp_call_fail(n->at, n->op->name, SL_ESHAPE,
			                     "the shape of argument %d of %s is not known", i, n->name),
			       SL_ESHAPE;
	return SL_OK;
}

static enum sl_status complete(const struct slp_gnode *n, struct slp_infer *c)
{
	enum sl_status s = check_arguments(n, c);
	if (s == SL_OK) s = n->op->infer(c);
	for (int i = 0; s == SL_OK && i < n->nout; i++)
		if (!slp_shape_valid(c->out[i].shape)) s = slp_reject(c, SL_ESHAPE, "the result is too large");
	return s;
}

bool slp_node_call(const sl_graph *g, const struct slp_gnode *n, struct slp_infer *c)
{
	if (!make_call(g, n, c)) return false;
	if (complete(n, c) == SL_OK) return true;
	slp_call_free(c);
	return false;
}

enum sl_status slp_node_infer(sl_graph *g, int node)
{
	struct slp_gnode *n = &g->nodes[node];
	struct slp_infer c;
	if (n->kind != SLP_NODE_OP || n->dead) return SL_OK;
	if (!make_call(g, n, &c)) return SL_ENOMEM;
	enum sl_status s = complete(n, &c);
	if (s == SL_OK) memcpy(n->types, c.out, (size_t)n->nout * sizeof *n->types);
	slp_call_free(&c);
	return s;
}
