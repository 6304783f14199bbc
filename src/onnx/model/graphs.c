/* ONNX models: the graphs of a file, with those within nodes, and the names that each of them sees. */
#include <stdlib.h>

#include "onnx/model/model.h"
#include "alloc.h"

enum { MOST_DEPTH = 16, MOST_GRAPHS = 4096 };
#define fail(p, ...) slp_file_fail((p)->f, __VA_ARGS__)

/* ---- protobuf ---------------------------------------------------------------------------------------------------- */

static void *proto_alloc(void *data, size_t bytes)
{
	(void)data;
	return slp_malloc(bytes ? bytes : 1);
}

static void proto_free(void *data, void *p)
{
	(void)data;
	free(p);
}

ProtobufCAllocator slp_onnx_allocator = {proto_alloc, proto_free, NULL};

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static bool add_graph(struct slp_onnx_parsing *p, int parent, int owner, SlpOnnx__AttributeProto *a)
{
	struct slp_onnx_model *m = p->m;
	struct slp_onnx_graph g = {.parent = parent, .owner = owner, .attribute = a ? a->name : NULL};
	if (parent >= 0) g.depth = m->graphs[parent].depth + 1;
	if (g.depth > MOST_DEPTH || m->ngraphs >= MOST_GRAPHS)
		return fail(p, SL_EUNSUPPORTED, "has more than %d graphs, or more than %d within each other",
		            MOST_GRAPHS, MOST_DEPTH);
	struct slp_onnx_graph *room = slp_realloc(m->graphs, (size_t)(m->ngraphs + 1) * sizeof *room);
	if (!room) return fail(p, SL_ENOMEM, "no memory");
	m->graphs = room;
	g.proto = a ? slp_onnx__graph_proto__unpack(&slp_onnx_allocator, a->g.len, a->g.data) : m->proto->graph;
	if (!g.proto) return fail(p, SL_EFORMAT, "has a graph within a node that is damaged");
	m->graphs[m->ngraphs++] = g;
	if (m->depth < g.depth) m->depth = g.depth;
	return slp_onnx_functions_expand(p, g.proto);
}

/* The model's graph, then those within its nodes, then those within theirs. */
bool slp_onnx_graphs_unpack(struct slp_onnx_parsing *p)
{
	struct slp_onnx_model *m = p->m;
	if (!add_graph(p, -1, -1, NULL)) return false;
	for (int i = 0; i < m->ngraphs; i++) {
		const SlpOnnx__GraphProto *g = m->graphs[i].proto;
		if (g->n_node > (size_t)(INT32_MAX / 2 - m->nnodes)) return fail(p, SL_EFORMAT, "has too many nodes");
		m->graphs[i].first_node = m->nnodes;
		m->graphs[i].nnodes = (int)g->n_node;
		for (size_t k = 0; k < g->n_node; k++)
			for (size_t a = 0; a < g->node[k]->n_attribute; a++)
				if (g->node[k]->attribute[a]->has_g &&
				    !add_graph(p, i, m->nnodes + (int)k, g->node[k]->attribute[a]))
					return false;
		m->nnodes += (int)g->n_node;
	}
	return true;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int compare(const struct slp_onnx_name *a, const char *name, int graph)
{
	int order = strcmp(a->name, name);
	return order ? order : a->graph - graph;
}

/* A graph's own name, among the sorted ones. */
static int find_own(const struct slp_onnx_parsing *p, int graph, const char *name)
{
	int low = 0, high = p->nsorted;
	while (low < high) {
		int middle = low + (high - low) / 2, order = compare(&p->m->names[p->sorted[middle]], name, graph);
		if (order == 0) return p->sorted[middle];
		if (order < 0) low = middle + 1;
		else high = middle;
	}
	return -1;
}

int slp_onnx_name_find(const struct slp_onnx_parsing *p, int graph, const char *name)
{
	int found = -1;
	for (; found < 0 && graph >= 0; graph = p->m->graphs[graph].parent) found = find_own(p, graph, name);
	return found;
}

static _Thread_local const struct slp_onnx_name *sorting;

static int by_name(const void *a, const void *b)
{
	const struct slp_onnx_name *second = &sorting[*(const int *)b];
	return compare(&sorting[*(const int *)a], second->name, second->graph);
}

static bool sort(struct slp_onnx_parsing *p)
{
	struct slp_onnx_model *m = p->m;
	for (int i = p->nsorted; i < m->nnames; i++) p->sorted[i] = i;
	p->nsorted = m->nnames;
	sorting = m->names;
	if (m->nnames) qsort(p->sorted, (size_t)m->nnames, sizeof *p->sorted, by_name);
	for (int i = 1; i < m->nnames; i++)
		if (!by_name(&p->sorted[i], &p->sorted[i - 1]))
			return fail(p, SL_EFORMAT, "has two values named \"%.100s\"", m->names[p->sorted[i]].name);
	return true;
}

static struct slp_onnx_name *add_name(struct slp_onnx_parsing *p, int graph, const char *name)
{
	struct slp_onnx_name *n = &p->m->names[p->m->nnames++];
	*n = (struct slp_onnx_name){.name = name, .graph = graph, .input = -1, .node = -1};
	return n;
}

const SlpOnnx__TensorProto *slp_onnx_constant(const SlpOnnx__NodeProto *n)
{
	if (!n->op_type || strcmp(n->op_type, "Constant") || n->n_attribute != 1) return NULL;
	return n->attribute[0]->name && !strcmp(n->attribute[0]->name, "value") ? n->attribute[0]->t : NULL;
}

static bool add_initializers(struct slp_onnx_parsing *p, int graph, const SlpOnnx__GraphProto *g)
{
	for (size_t i = 0; i < g->n_initializer; i++) {
		const char *name = g->initializer[i]->name;
		if (!name || !name[0]) return fail(p, SL_EFORMAT, "tensor %zu has no name", i);
		struct slp_onnx_name *n = add_name(p, graph, name);
		n->tensor = g->initializer[i];
		n->initializer = true;
	}
	return true;
}

/* Once the initializers alone are sorted: old files name them among the inputs, too. */
static bool add_inputs(struct slp_onnx_parsing *p, int graph, const SlpOnnx__GraphProto *g)
{
	struct slp_onnx_model *m = p->m;
	m->graphs[graph].first_input = m->nnames;
	for (size_t i = 0; i < g->n_input; i++) {
		const char *name = g->input[i]->name;
		if (!name || !name[0]) return fail(p, SL_EFORMAT, "input %zu has no name", i);
		if (graph == 0 && find_own(p, 0, name) >= 0) continue;
		struct slp_onnx_name *n = add_name(p, graph, name);
		if (graph) continue;
		n->input = m->ninputs;
		n->declared = (int)i;
		m->inputs[m->ninputs++] = m->nnames - 1;
	}
	return true;
}

static bool add_graph_names(struct slp_onnx_parsing *p, int graph)
{
	struct slp_onnx_graph *own = &p->m->graphs[graph];
	const SlpOnnx__GraphProto *g = own->proto;
	own->first_name = p->m->nnames;
	if (!add_initializers(p, graph, g) || (graph == 0 && !sort(p)) || !add_inputs(p, graph, g)) return false;
	for (size_t i = 0; i < g->n_node; i++) {
		const SlpOnnx__TensorProto *t = slp_onnx_constant(g->node[i]);
		for (size_t k = 0; k < g->node[i]->n_output; k++) {
			if (!g->node[i]->output[k][0]) continue;
			struct slp_onnx_name *n = add_name(p, graph, g->node[i]->output[k]);
			n->tensor = t;
			n->node = t ? -1 : own->first_node + (int)i;
		}
	}
	own->nnames = p->m->nnames - own->first_name;
	return true;
}

bool slp_onnx_names_add(struct slp_onnx_parsing *p)
{
	struct slp_onnx_model *m = p->m;
	size_t room = 1;
	for (int i = 0; i < m->ngraphs; i++) {
		const SlpOnnx__GraphProto *g = m->graphs[i].proto;
		room += g->n_initializer + g->n_input;
		for (size_t k = 0; k < g->n_node; k++) room += g->node[k]->n_output;
	}
	if (room > INT32_MAX / 2) return fail(p, SL_EFORMAT, "has too many values");
	m->names = slp_calloc(room, sizeof *m->names);
	p->sorted = slp_calloc(room, sizeof *p->sorted);
	m->inputs = slp_calloc(m->proto->graph->n_input + 1, sizeof *m->inputs);
	if (!m->names || !p->sorted || !m->inputs) return fail(p, SL_ENOMEM, "no memory");
	for (int i = 0; i < m->ngraphs; i++)
		if (!add_graph_names(p, i)) return false;
	if (!m->ninputs) return fail(p, SL_EINVAL, "has no inputs");
	return sort(p);
}
