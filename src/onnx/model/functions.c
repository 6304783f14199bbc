/* ONNX models: functions of the model (FunctionProto) are replaced by their nodes, wherever they are called. */
#include <stdlib.h>

#include "alloc.h"
#include "onnx/model/model.h"

enum { MOST_NODES = 200000, MOST_DEPTH = 32 };
#define fail(p, ...) slp_file_fail((p)->f, __VA_ARGS__)

/* A call that is being replaced. */
struct expansion {
	const SlpOnnx__FunctionProto *f;
	const SlpOnnx__NodeProto *call;
	int number; /* makes names within it unique */
	bool failed;
};

struct node_list {
	SlpOnnx__NodeProto **node;
	size_t count, max;
};

static bool is_same(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

static const SlpOnnx__FunctionProto *function_of(const SlpOnnx__ModelProto *m, const SlpOnnx__NodeProto *n)
{
	for (size_t i = 0; n->op_type && i < m->n_functions; i++)
		if (is_same(m->functions[i]->name, n->op_type) && is_same(m->functions[i]->domain, n->domain))
			return m->functions[i];
	return NULL;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* The call's argument for a name of the function, NULL if it passes none. */
static const char *passed(char *const *names, size_t count, char *const *given, size_t ngiven, const char *name,
                          bool *is_parameter)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(names[i], name)) continue;
		*is_parameter = true;
		return i < ngiven ? given[i] : "";
	}
	return NULL;
}

/* Replaces a name of the function by the caller's, or by a new one. */
static void rename_one(struct expansion *e, char **name)
{
	bool input = false, output = false;
	if (!*name || !**name) return;
	const char *to = passed(e->f->input, e->f->n_input, e->call->input, e->call->n_input, *name, &input);
	if (!input) to = passed(e->f->output, e->f->n_output, e->call->output, e->call->n_output, *name, &output);
	char *new = input || (output && *to) ? slp_strdup(to)
	                                     : slp_format("%s.%d.%s", slp_onnx_node_name(e->call), e->number, *name);
	if (!new) {
		e->failed = true;
		return;
	}
	free(*name);
	*name = new;
}

static void rename_all(struct expansion *e, char **names, size_t count)
{
	for (size_t i = 0; i < count; i++) rename_one(e, &names[i]);
}

static void rename_node(struct expansion *e, SlpOnnx__NodeProto *n);

/* A graph within a node of the function, which sees the function's names. */
static void rename_graph(struct expansion *e, SlpOnnx__AttributeProto *a)
{
	SlpOnnx__GraphProto *g = slp_onnx__graph_proto__unpack(&slp_onnx_allocator, a->g.len, a->g.data);
	if (!g) {
		e->failed = true;
		return;
	}
	for (size_t i = 0; i < g->n_node; i++) rename_node(e, g->node[i]);
	for (size_t i = 0; i < g->n_initializer; i++) rename_one(e, &g->initializer[i]->name);
	for (size_t i = 0; i < g->n_input; i++) rename_one(e, &g->input[i]->name);
	for (size_t i = 0; i < g->n_output; i++) rename_one(e, &g->output[i]->name);
	size_t size = slp_onnx__graph_proto__get_packed_size(g);
	uint8_t *bytes = slp_malloc(size + 1);
	if (bytes) {
		slp_onnx__graph_proto__pack(g, bytes);
		free(a->g.data);
		a->g = (ProtobufCBinaryData){size, bytes};
	} else {
		e->failed = true;
	}
	slp_onnx__graph_proto__free_unpacked(g, &slp_onnx_allocator);
}

/* ---- attributes -------------------------------------------------------------------------------------------------- */

static const SlpOnnx__AttributeProto *attribute_named(SlpOnnx__AttributeProto *const *list, size_t count,
                                                      const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (is_same(list[i]->name, name)) return list[i];
	return NULL;
}

static SlpOnnx__AttributeProto *copy_of(const SlpOnnx__AttributeProto *a)
{
	size_t size = slp_onnx__attribute_proto__get_packed_size(a);
	uint8_t *bytes = slp_malloc(size + 1);
	if (!bytes) return NULL;
	slp_onnx__attribute_proto__pack(a, bytes);
	SlpOnnx__AttributeProto *copy = slp_onnx__attribute_proto__unpack(&slp_onnx_allocator, size, bytes);
	free(bytes);
	return copy;
}

/* An attribute that refers to one of the call gets its value, or the function's default; NULL: the node lacks it. */
static SlpOnnx__AttributeProto *resolved(struct expansion *e, const SlpOnnx__AttributeProto *a)
{
	const SlpOnnx__AttributeProto *value =
	        attribute_named(e->call->attribute, e->call->n_attribute, a->ref_attr_name);
	if (!value) value = attribute_named(e->f->attribute_proto, e->f->n_attribute_proto, a->ref_attr_name);
	SlpOnnx__AttributeProto *copy = value ? copy_of(value) : NULL;
	char *name = copy ? slp_strdup(a->name ? a->name : "") : NULL;
	if (value && !name) e->failed = true;
	if (!name) {
		if (copy) slp_onnx__attribute_proto__free_unpacked(copy, &slp_onnx_allocator);
		return NULL;
	}
	free(copy->name);
	copy->name = name;
	return copy;
}

static void resolve_attributes(struct expansion *e, SlpOnnx__NodeProto *n)
{
	size_t kept = 0;
	for (size_t i = 0; i < n->n_attribute; i++) {
		SlpOnnx__AttributeProto *a = n->attribute[i];
		if (a->ref_attr_name && a->ref_attr_name[0]) {
			n->attribute[i] = resolved(e, a);
			slp_onnx__attribute_proto__free_unpacked(a, &slp_onnx_allocator);
			a = n->attribute[i];
		} else if (a->has_g) {
			rename_graph(e, a);
		}
		if (a) n->attribute[kept++] = a;
	}
	n->n_attribute = kept;
}

static void rename_node(struct expansion *e, SlpOnnx__NodeProto *n)
{
	rename_all(e, n->input, n->n_input);
	rename_all(e, n->output, n->n_output);
	resolve_attributes(e, n);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static SlpOnnx__NodeProto *node_of(struct expansion *e, const SlpOnnx__NodeProto *n)
{
	size_t size = slp_onnx__node_proto__get_packed_size(n);
	uint8_t *bytes = slp_malloc(size + 1);
	if (!bytes) return NULL;
	slp_onnx__node_proto__pack(n, bytes);
	SlpOnnx__NodeProto *copy = slp_onnx__node_proto__unpack(&slp_onnx_allocator, size, bytes);
	free(bytes);
	if (copy) rename_node(e, copy);
	return copy;
}

static bool add(struct slp_onnx_parsing *p, struct node_list *l, SlpOnnx__NodeProto *n)
{
	if (l->count == l->max) {
		size_t max = l->max ? 2 * l->max : 16;
		SlpOnnx__NodeProto **more =
		        max <= 2 * (size_t)MOST_NODES ? slp_realloc(l->node, max * sizeof(SlpOnnx__NodeProto *)) : NULL;
		if (!more) {
			slp_onnx__node_proto__free_unpacked(n, &slp_onnx_allocator);
			return fail(p, SL_EUNSUPPORTED, "has more than %d nodes with those of its functions",
			            MOST_NODES);
		}
		l->node = more, l->max = max;
	}
	l->node[l->count++] = n;
	return true;
}

/* The operator sets of functions must be the model's: nodes do not say which one they mean. */
static bool check_opset(struct slp_onnx_parsing *p, const SlpOnnx__FunctionProto *f)
{
	for (size_t i = 0; i < f->n_opset_import; i++) {
		const SlpOnnx__OperatorSetIdProto *o = f->opset_import[i];
		if (o->domain && o->domain[0] && strcmp(o->domain, "ai.onnx")) continue;
		if (o->version != p->m->opset)
			return fail(p, SL_EUNSUPPORTED, "function \"%.60s\" uses operator set %lld, the model %d",
			            f->name, (long long)o->version, p->m->opset);
	}
	return true;
}

/* Takes the node over: into the list, or as the nodes of its function. */
static bool emit(struct slp_onnx_parsing *p, struct node_list *l, SlpOnnx__NodeProto *n, int depth)
{
	const SlpOnnx__FunctionProto *f = function_of(p->m->proto, n);
	struct expansion e = {.f = f, .call = n, .number = p->m->expanded};
	if (!f) return add(p, l, n);
	bool ok = check_opset(p, f);
	if (++p->m->expanded > MOST_NODES)
		ok = fail(p, SL_EUNSUPPORTED, "calls functions more than %d times", MOST_NODES);
	if (depth == MOST_DEPTH)
		ok = fail(p, SL_EUNSUPPORTED, "function \"%.60s\" calls functions more than %d deep", f->name,
		          MOST_DEPTH);
	for (size_t i = 0; ok && i < f->n_node; i++) {
		SlpOnnx__NodeProto *copy = node_of(&e, f->node[i]);
		if (!copy || e.failed) ok = fail(p, SL_ENOMEM, "no memory for function \"%.60s\"", f->name);
		if (copy && !ok) slp_onnx__node_proto__free_unpacked(copy, &slp_onnx_allocator);
		ok = ok && emit(p, l, copy, depth + 1);
	}
	slp_onnx__node_proto__free_unpacked(n, &slp_onnx_allocator);
	return ok;
}

bool slp_onnx_functions_expand(struct slp_onnx_parsing *p, SlpOnnx__GraphProto *g)
{
	struct node_list l = {0};
	bool any = false, ok = true;
	for (size_t i = 0; i < g->n_node; i++) any |= function_of(p->m->proto, g->node[i]) != NULL;
	if (!any) return true;
	size_t i = 0;
	while (ok && i < g->n_node) ok = emit(p, &l, g->node[i++], 0);
	while (i < g->n_node) slp_onnx__node_proto__free_unpacked(g->node[i++], &slp_onnx_allocator);
	free(g->node);
	g->node = l.node, g->n_node = l.count;
	return ok;
}
