/* ONNX models: the graph of a file, with names looked up and checked. */
#include <stdlib.h>

#include "interop/onnx_model.h"
#include "runtime/text.h"

enum { FIRST_OPSET = 7, LAST_OPSET = 26 };

/* What a file is being turned into. */
struct parsing {
	struct slp_file *f;
	struct slp_onnx_model *m;
	SlpOnnx__GraphProto *graph;
	int *sorted; /* names in order, for looking them up; the first nsorted of them */
	int nsorted;
};
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

static ProtobufCAllocator allocator = {proto_alloc, proto_free, NULL};

void slp_onnx_model_free(struct slp_onnx_model *m)
{
	if (m->proto) slp_onnx__model_proto__free_unpacked(m->proto, &allocator);
	slp_onnx_known_free(m->known);
	free(m->names);
	free(m->nodes);
	free(m->arguments);
	free(m->inputs);
	*m = (struct slp_onnx_model){0};
}

static bool unpack(struct parsing *p)
{
	struct slp_onnx_model *m = p->m;
	m->proto = slp_onnx__model_proto__unpack(&allocator, p->f->size, p->f->data);
	if (!m->proto || !m->proto->graph) return fail(p, SL_EFORMAT, "is not an ONNX model, or is damaged");
	p->graph = m->proto->graph;
	m->opset = 0;
	for (size_t i = 0; i < m->proto->n_opset_import; i++) {
		const SlpOnnx__OperatorSetIdProto *o = m->proto->opset_import[i];
		if (o->domain && o->domain[0] && strcmp(o->domain, "ai.onnx")) continue;
		m->opset = o->version < 0 || o->version > INT16_MAX ? -1 : (int)o->version;
	}
	if (m->opset >= FIRST_OPSET && m->opset <= LAST_OPSET) return true;
	return fail(p, SL_EUNSUPPORTED, "needs operator set %d; %d to %d are supported", m->opset, FIRST_OPSET,
	            LAST_OPSET);
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

static int compare(const struct parsing *p, int a, const char *name)
{
	return strcmp(p->m->names[a].name, name);
}

/* Where a name is, or would be, among the sorted ones. */
static int place_of(const struct parsing *p, const char *name, bool *there)
{
	int low = 0, high = p->nsorted;
	while (low < high) {
		int middle = low + (high - low) / 2, order = compare(p, p->sorted[middle], name);
		if (order == 0) {
			*there = true;
			return middle;
		}
		if (order < 0) low = middle + 1;
		else high = middle;
	}
	*there = false;
	return low;
}

static int find(const struct parsing *p, const char *name)
{
	bool there;
	int place = place_of(p, name, &there);
	return there ? p->sorted[place] : -1;
}

static _Thread_local const struct slp_onnx_name *sorting;

static int by_name(const void *a, const void *b)
{
	return strcmp(sorting[*(const int *)a].name, sorting[*(const int *)b].name);
}

static void add_name(struct parsing *p, const char *name, const SlpOnnx__TensorProto *tensor, int node)
{
	p->m->names[p->m->nnames++] = (struct slp_onnx_name){.name = name, .tensor = tensor, .input = -1, .node = node};
}

/* The value of a node Constant that has a tensor; NULL otherwise. */
static const SlpOnnx__TensorProto *constant_of(const SlpOnnx__NodeProto *n)
{
	if (!n->op_type || strcmp(n->op_type, "Constant") || n->n_attribute != 1) return NULL;
	return n->attribute[0]->name && !strcmp(n->attribute[0]->name, "value") ? n->attribute[0]->t : NULL;
}

static bool is_initialized(const struct parsing *p, const char *name)
{
	bool there = false;
	place_of(p, name, &there);
	return there;
}

/* Once the initializers alone are sorted: old files name them among the inputs, too. */
static bool add_inputs(struct parsing *p)
{
	struct slp_onnx_model *m = p->m;
	m->inputs = slp_calloc(p->graph->n_input + 1, sizeof *m->inputs);
	if (!m->inputs) return fail(p, SL_ENOMEM, "no memory");
	for (size_t i = 0; i < p->graph->n_input; i++) {
		const char *name = p->graph->input[i]->name;
		if (!name || !name[0]) return fail(p, SL_EFORMAT, "input %zu has no name", i);
		if (is_initialized(p, name)) continue;
		add_name(p, name, NULL, -1);
		m->names[m->nnames - 1].input = m->ninputs;
		m->inputs[m->ninputs++] = m->nnames - 1;
	}
	return m->ninputs > 0 || fail(p, SL_EINVAL, "has no inputs");
}

static bool sort(struct parsing *p)
{
	struct slp_onnx_model *m = p->m;
	for (int i = p->nsorted; i < m->nnames; i++) p->sorted[i] = i;
	p->nsorted = m->nnames;
	sorting = m->names;
	if (m->nnames) qsort(p->sorted, (size_t)m->nnames, sizeof *p->sorted, by_name);
	for (int i = 1; i < m->nnames; i++)
		if (!strcmp(m->names[p->sorted[i]].name, m->names[p->sorted[i - 1]].name))
			return fail(p, SL_EFORMAT, "has two values named \"%.100s\"", m->names[p->sorted[i]].name);
	return true;
}

static bool add_names(struct parsing *p)
{
	SlpOnnx__GraphProto *g = p->graph;
	size_t room = g->n_initializer + g->n_input + 1;
	for (size_t i = 0; i < g->n_node; i++) room += g->node[i]->n_output;
	if (room > INT32_MAX / 2) return fail(p, SL_EFORMAT, "has too many values");
	p->m->names = slp_calloc(room, sizeof *p->m->names);
	p->sorted = slp_calloc(room, sizeof *p->sorted);
	if (!p->m->names || !p->sorted) return fail(p, SL_ENOMEM, "no memory");
	for (size_t i = 0; i < g->n_initializer; i++) {
		if (!g->initializer[i]->name || !g->initializer[i]->name[0])
			return fail(p, SL_EFORMAT, "tensor %zu has no name", i);
		add_name(p, g->initializer[i]->name, g->initializer[i], -1);
	}
	if (!sort(p) || !add_inputs(p)) return false;
	for (size_t i = 0; i < g->n_node; i++) {
		const SlpOnnx__TensorProto *t = constant_of(g->node[i]);
		for (size_t k = 0; k < g->node[i]->n_output; k++)
			if (g->node[i]->output[k][0]) add_name(p, g->node[i]->output[k], t, t ? -1 : (int)i);
	}
	return sort(p);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static const char *call_site_of(const char *file, const char *node)
{
	char text[256];
	const char *slash = strrchr(file, '/');
	snprintf(text, sizeof text, "%.100s, node %.120s", slash ? slash + 1 : file, node);
	return slp_text_keep(text, "an imported node");
}

/* Finds what a node takes: inputs, tensors, or results of nodes before it. */
static bool link_inputs(struct parsing *p, int node)
{
	struct slp_onnx_node *n = &p->m->nodes[node];
	for (size_t i = 0; i < n->proto->n_input; i++) {
		const char *name = n->proto->input[i];
		n->in[i] = name[0] ? find(p, name) : -1;
		if (!name[0]) continue;
		if (n->in[i] < 0)
			return fail(p, SL_EFORMAT, "node \"%.100s\" takes \"%.100s\"; nothing computes it",
			            slp_onnx_node_name(n->proto), name);
		if (p->m->names[n->in[i]].node >= node)
			return fail(p, SL_EFORMAT,
			            "node \"%.100s\" takes \"%.100s\", which is computed after it (or a cycle)",
			            slp_onnx_node_name(n->proto), name);
	}
	while (n->nin && n->in[n->nin - 1] < 0) n->nin--;
	return true;
}

static bool add_nodes(struct parsing *p)
{
	struct slp_onnx_model *m = p->m;
	size_t total = 1;
	m->nnodes = (int)p->graph->n_node;
	for (int i = 0; i < m->nnodes; i++) total += p->graph->node[i]->n_input + p->graph->node[i]->n_output;
	m->nodes = slp_calloc((size_t)m->nnodes + 1, sizeof *m->nodes);
	m->arguments = slp_malloc(total * sizeof *m->arguments);
	if (!m->nodes || !m->arguments) return fail(p, SL_ENOMEM, "no memory");
	int *next = m->arguments;
	for (int i = 0; i < m->nnodes; i++) {
		SlpOnnx__NodeProto *proto = p->graph->node[i];
		struct slp_onnx_node *n = &m->nodes[i];
		if (!proto->op_type)
			return fail(p, SL_EFORMAT, "node \"%.100s\" has no operator", slp_onnx_node_name(proto));
		*n = (struct slp_onnx_node){.proto = proto,
		                            .in = next,
		                            .nin = (int)proto->n_input,
		                            .out = next + proto->n_input,
		                            .nout = (int)proto->n_output,
		                            .at = call_site_of(p->f->path, slp_onnx_node_name(proto))};
		next += proto->n_input + proto->n_output;
		for (int k = 0; k < n->nout; k++) n->out[k] = proto->output[k][0] ? find(p, proto->output[k]) : -1;
		if (!link_inputs(p, i)) return false;
		if (m->most < n->nin + n->nout) m->most = n->nin + n->nout;
	}
	return true;
}

/* ---- what is needed ---------------------------------------------------------------------------------------------- */

static bool find_result(struct parsing *p, const char *wanted)
{
	struct slp_onnx_model *m = p->m;
	if (!wanted && !p->graph->n_output) return fail(p, SL_EFORMAT, "has no result");
	const char *name = wanted ? wanted : p->graph->output[0]->name;
	m->result = name ? find(p, name) : -1;
	for (int i = 0; wanted && m->result < 0 && i < m->nnodes; i++)
		if (!strcmp(slp_onnx_node_name(m->nodes[i].proto), wanted) && m->nodes[i].nout)
			m->result = m->nodes[i].out[0];
	if (m->result < 0 && wanted) return fail(p, SL_EINVAL, "has no node or value \"%.100s\"", wanted);
	return m->result >= 0 || fail(p, SL_EFORMAT, "nothing computes its result \"%.100s\"", name ? name : "");
}

static void mark_needed(struct slp_onnx_model *m)
{
	m->names[m->result].uses++;
	m->names[m->result].as_tensor = true;
	for (int i = m->nnodes - 1; i >= 0; i--) {
		struct slp_onnx_node *n = &m->nodes[i];
		for (int k = 0; k < n->nout; k++) n->needed |= n->out[k] >= 0 && m->names[n->out[k]].uses > 0;
		if (constant_of(n->proto)) n->needed = false;
		for (int k = 0; n->needed && k < n->nin; k++)
			if (n->in[k] >= 0) m->names[n->in[k]].uses++;
		while (n->nout && (n->out[n->nout - 1] < 0 || !m->names[n->out[n->nout - 1]].uses)) n->nout--;
	}
}

/* The operators that are not known, with their nodes, as "Warp (a, b), Weft (c)". */
static bool report_unknown(struct parsing *p)
{
	struct slp_onnx_model *m = p->m;
	enum { MOST = 32 };
	char text[400] = "";
	size_t used = 0;
	int operators = 0;
	for (int i = 0; i < m->nnodes; i++) {
		const SlpOnnx__NodeProto *n = m->nodes[i].proto;
		int before = 0, count = 0;
		if (!m->nodes[i].needed || m->nodes[i].op) continue;
		for (int k = 0; k < i && !before; k++)
			before = m->nodes[k].needed && !m->nodes[k].op &&
			         !strcmp(m->nodes[k].proto->op_type, n->op_type);
		if (before) continue;
		if (++operators == MOST) break;
		if (used < sizeof text - 80)
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%.40s (", used ? ", " : "",
			                         n->op_type);
		for (int k = i; k < m->nnodes; k++) {
			if (!m->nodes[k].needed || m->nodes[k].op || strcmp(m->nodes[k].proto->op_type, n->op_type))
				continue;
			if (used < sizeof text - 80 && count < 4)
				used += (size_t)snprintf(text + used, sizeof text - used, "%s%.40s", count ? ", " : "",
				                         slp_onnx_node_name(m->nodes[k].proto));
			count++;
		}
		if (used < sizeof text - 40)
			used += (size_t)snprintf(text + used, sizeof text - used, count > 4 ? " and %d more)" : ")",
			                         count - 4);
	}
	return !operators || fail(p, SL_EUNSUPPORTED, "%d operator%s not supported: %s", operators,
	                          operators > 1 ? "s are" : " is", text);
}

static bool find_operators(struct parsing *p)
{
	struct slp_onnx_model *m = p->m;
	for (int i = 0; i < m->nnodes; i++) {
		struct slp_onnx_node *n = &m->nodes[i];
		const char *domain = n->proto->domain;
		bool standard = !domain || !domain[0] || !strcmp(domain, "ai.onnx");
		n->op = standard ? slp_onnx_op_find(n->proto->op_type) : NULL;
		if (!n->needed || !n->op) continue;
		if (n->nin < n->op->min || (n->op->max >= 0 && n->nin > n->op->max))
			return fail(p, SL_EFORMAT, "node \"%.100s\" (%.60s) has %d inputs, it must have %d to %d",
			            slp_onnx_node_name(n->proto), n->op->name, n->nin, n->op->min, n->op->max);
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] < 0 && k < n->op->min)
				return fail(p, SL_EFORMAT, "node \"%.100s\" (%.60s) lacks input %d",
				            slp_onnx_node_name(n->proto), n->op->name, k);
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] >= 0 && (k > 31 || !(n->op->known >> k & 1))) m->names[n->in[k]].as_tensor = true;
	}
	return report_unknown(p);
}

/* The order of inputs, if the call names them. */
static bool order_inputs(struct parsing *p, const char *const *names, int count)
{
	struct slp_onnx_model *m = p->m;
	if (!count) return true;
	if (count != m->ninputs) return fail(p, SL_EINVAL, "has %d inputs, %d are named", m->ninputs, count);
	for (int i = 0; i < count; i++) {
		int at = find(p, names[i]), k = 0;
		if (at < 0 || m->names[at].input < 0) return fail(p, SL_EINVAL, "has no input \"%.100s\"", names[i]);
		while (k < i && strcmp(names[k], names[i])) k++;
		if (k < i) return fail(p, SL_EINVAL, "input \"%.100s\" is named twice", names[i]);
		m->names[at].input = i;
		m->inputs[i] = at;
	}
	return true;
}

struct slp_type slp_onnx_declared(const struct slp_onnx_model *m, int input)
{
	const SlpOnnx__GraphProto *g = m->proto->graph;
	const char *name = m->names[m->inputs[input]].name;
	struct slp_type type = {SL_DTYPE_DEFAULT, {.ndim = -1}};
	size_t i = 0;
	while (strcmp(g->input[i]->name, name)) i++;
	const SlpOnnx__TypeProto__Tensor *t = g->input[i]->type ? g->input[i]->type->tensor_type : NULL;
	if (!t) return type;
	type.dtype = slp_onnx_dtype_numbered(t->elem_type);
	if (!t->shape || t->shape->n_dim > SL_MAX_NDIM) return type;
	type.shape.ndim = (int)t->shape->n_dim;
	for (int k = 0; k < type.shape.ndim; k++)
		type.shape.dim[k] = t->shape->dim[k]->has_dim_value && t->shape->dim[k]->dim_value > 0
		                            ? t->shape->dim[k]->dim_value
		                            : -1;
	return type;
}

enum sl_dtype slp_onnx_result_dtype(const struct slp_onnx_model *m)
{
	const SlpOnnx__GraphProto *g = m->proto->graph;
	for (size_t i = 0; i < g->n_output; i++) {
		const SlpOnnx__ValueInfoProto *v = g->output[i];
		if (v->name && !strcmp(v->name, m->names[m->result].name) && v->type && v->type->tensor_type)
			return slp_onnx_dtype_numbered(v->type->tensor_type->elem_type);
	}
	return SL_DTYPE_DEFAULT;
}

bool slp_onnx_model_parse(struct slp_file *f, struct slp_onnx_model *m, const struct sl_import_onnx_opts *opts)
{
	struct parsing p = {.f = f, .m = m};
	bool ok = unpack(&p) && add_names(&p) && add_nodes(&p) && find_result(&p, opts->output);
	if (ok) mark_needed(m);
	ok = ok && find_operators(&p) && order_inputs(&p, opts->inputs, opts->ninputs);
	free(p.sorted);
	return ok;
}
