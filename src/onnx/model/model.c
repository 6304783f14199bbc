/* ONNX models: the graph of a file, with names looked up and checked. */
#include <stdlib.h>

#include "onnx/model/model.h"
#include "op.h"
#include "runtime/text.h"
#include "starling/io.h"

enum { FIRST_OPSET = 1, LAST_OPSET = 28 };

#define fail(p, ...) slp_file_fail((p)->f, __VA_ARGS__)

void slp_onnx_model_free(struct slp_onnx_model *m)
{
	for (int i = 1; i < m->ngraphs; i++)
		slp_onnx__graph_proto__free_unpacked(m->graphs[i].proto, &slp_onnx_allocator);
	if (m->proto) slp_onnx__model_proto__free_unpacked(m->proto, &slp_onnx_allocator);
	slp_onnx_known_free(m->known);
	free(m->graphs);
	free(m->names);
	free(m->nodes);
	free(m->arguments);
	free(m->joined);
	free(m->inputs);
	*m = (struct slp_onnx_model){0};
}

static bool is_standard(const char *domain)
{
	return !domain || !domain[0] || !strcmp(domain, "ai.onnx");
}

/* Whether the model's own graph has a node of ONNX' operators: else their set need not be named. */
static bool uses_standard(const SlpOnnx__GraphProto *g)
{
	for (size_t i = 0; i < g->n_node; i++)
		if (is_standard(g->node[i]->domain)) return true;
	return !g->n_node;
}

static bool unpack(struct slp_onnx_parsing *p)
{
	struct slp_onnx_model *m = p->m;
	m->proto = slp_onnx__model_proto__unpack(&slp_onnx_allocator, p->f->size, p->f->data);
	if (!m->proto || !m->proto->graph) return fail(p, SL_EFORMAT, "is not an ONNX model, or is damaged");
	m->opset = 0;
	for (size_t i = 0; i < m->proto->n_opset_import; i++) {
		const SlpOnnx__OperatorSetIdProto *o = m->proto->opset_import[i];
		if (!is_standard(o->domain)) continue;
		m->opset = o->version < 0 || o->version > INT16_MAX ? -1 : (int)o->version;
	}
	if (!m->opset && m->proto->n_opset_import && !uses_standard(m->proto->graph)) m->opset = LAST_OPSET;
	if (m->opset >= FIRST_OPSET && m->opset <= LAST_OPSET) return true;
	if (m->opset == 0)
		return fail(p, SL_EFORMAT,
		            "does not say which operator set it uses: opset_import has no entry for ai.onnx");
	return fail(p, SL_EUNSUPPORTED, "needs operator set %d; %d to %d are supported", m->opset, FIRST_OPSET,
	            LAST_OPSET);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static const char *call_site_of(const char *file, const char *node)
{
	char text[256];
	const char *slash = strrchr(file, '/');
	snprintf(text, sizeof text, "%.100s, node %.120s", slash ? slash + 1 : file, node);
	return slp_text_keep(slp_text_escape(text, sizeof text, false), "an imported node");
}

/* The node that takes a name for one, in the graph where the name is. */
static int taken_by(const struct slp_onnx_model *m, int name, int node)
{
	int graph = m->nodes[node].graph;
	for (; graph != m->names[name].graph; graph = m->graphs[graph].parent) node = m->graphs[graph].owner;
	return node;
}

/* Finds the operands of a node: inputs, tensors, or results of earlier nodes. */
static bool link_inputs(struct slp_onnx_parsing *p, int node)
{
	struct slp_onnx_node *n = &p->m->nodes[node];
	for (size_t i = 0; i < n->proto->n_input; i++) {
		const char *name = n->proto->input[i];
		n->in[i] = name[0] ? slp_onnx_name_find(p, n->graph, name) : -1;
		if (!name[0]) continue;
		if (n->in[i] < 0)
			return fail(p, SL_EFORMAT, "node \"%.100s\" takes \"%.100s\"; nothing computes it",
			            slp_onnx_node_name(n->proto), name);
		if (p->m->names[n->in[i]].node >= taken_by(p->m, n->in[i], node))
			return fail(p, SL_EFORMAT,
			            "node \"%.100s\" takes \"%.100s\", which is computed after it (or a cycle)",
			            slp_onnx_node_name(n->proto), name);
	}
	while (n->nin && n->in[n->nin - 1] < 0) n->nin--;
	return true;
}

static bool add_node(struct slp_onnx_parsing *p, int graph, int i, int **next)
{
	struct slp_onnx_model *m = p->m;
	SlpOnnx__NodeProto *proto = m->graphs[graph].proto->node[i - m->graphs[graph].first_node];
	struct slp_onnx_node *n = &m->nodes[i];
	if (!slp_file_spend(p->f, 1)) return false;
	if (!proto->op_type) return fail(p, SL_EFORMAT, "node \"%.100s\" has no operator", slp_onnx_node_name(proto));
	*n = (struct slp_onnx_node){.proto = proto,
	                            .in = *next,
	                            .nin = (int)proto->n_input,
	                            .out = *next + proto->n_input,
	                            .nout = (int)proto->n_output,
	                            .graph = graph,
	                            .at = call_site_of(p->f->path, slp_onnx_node_name(proto))};
	*next += proto->n_input + proto->n_output;
	for (int k = 0; k < n->nout; k++)
		n->out[k] = proto->output[k][0] ? slp_onnx_name_find(p, graph, proto->output[k]) : -1;
	if (m->most < n->nin + n->nout) m->most = n->nin + n->nout;
	return link_inputs(p, i);
}

/* The results of a graph within a node. */
static bool link_results(struct slp_onnx_parsing *p, int graph, int **next)
{
	struct slp_onnx_model *m = p->m;
	struct slp_onnx_graph *g = &m->graphs[graph];
	struct slp_onnx_node *owner = &m->nodes[g->owner];
	if (!owner->graphs) owner->graphs = graph;
	g->outputs = *next;
	g->noutputs = (int)g->proto->n_output;
	*next += g->noutputs;
	for (int i = 0; i < g->noutputs; i++) {
		const char *name = g->proto->output[i]->name;
		g->outputs[i] = name ? slp_onnx_name_find(p, graph, name) : -1;
		int at = g->outputs[i];
		if (at >= 0 && m->names[at].graph != graph && m->names[at].node >= taken_by(m, at, g->owner)) at = -1;
		if (at < 0)
			return fail(p, SL_EFORMAT,
			            "nothing computes \"%.100s\", a result of a graph in node \"%.100s\"",
			            name ? name : "", slp_onnx_node_name(owner->proto));
	}
	return true;
}

static bool add_nodes(struct slp_onnx_parsing *p)
{
	struct slp_onnx_model *m = p->m;
	size_t total = 1;
	for (int g = 0; g < m->ngraphs; g++) {
		const SlpOnnx__GraphProto *proto = m->graphs[g].proto;
		total += proto->n_output;
		for (size_t i = 0; i < proto->n_node; i++) total += proto->node[i]->n_input + proto->node[i]->n_output;
	}
	m->nodes = slp_calloc((size_t)m->nnodes + 1, sizeof *m->nodes);
	m->arguments = slp_malloc(total * sizeof *m->arguments);
	if (!m->nodes || !m->arguments) return fail(p, SL_ENOMEM, "no memory");
	int *next = m->arguments;
	for (int g = 0; g < m->ngraphs; g++)
		for (int i = 0; i < m->graphs[g].nnodes; i++)
			if (!add_node(p, g, m->graphs[g].first_node + i, &next)) return false;
	for (int g = 1; g < m->ngraphs; g++)
		if (!link_results(p, g, &next)) return false;
	return true;
}

/* ---- needed nodes ------------------------------------------------------------------------------------------------ */

/* A value, or a node's first result. */
static bool add_result(struct slp_onnx_parsing *p, const char *wanted)
{
	struct slp_onnx_model *m = p->m;
	const struct slp_onnx_graph *g = m->graphs;
	int name = slp_onnx_name_find(p, 0, wanted);
	for (int i = 0; name < 0 && i < g->nnodes; i++)
		if (!strcmp(slp_onnx_node_name(m->nodes[i].proto), wanted) && m->nodes[i].nout)
			name = m->nodes[i].out[0];
	if (name >= 0) m->results[m->nresults++] = name;
	return name >= 0;
}

static bool find_named_results(struct slp_onnx_parsing *p, const char *const *names, int count)
{
	if (count < 1 || count > SL_MAX_RESULTS || !names)
		return fail(p, SL_EINVAL, "%d results are named, a block gives 1 to %d", count, SL_MAX_RESULTS);
	for (int i = 0; i < count; i++)
		if (!names[i] || !add_result(p, names[i]))
			return fail(p, SL_EINVAL, "has no node or value \"%.100s\"", names[i] ? names[i] : "(null)");
	return true;
}

/* All that the model gives, in its order, but for maps. */
static bool find_results(struct slp_onnx_parsing *p, const struct sl_import_onnx_opts *o)
{
	const SlpOnnx__GraphProto *g = p->m->graphs->proto;
	if (o->output && o->noutputs) return fail(p, SL_EINVAL, "both .output and .outputs are given");
	if (o->output) return find_named_results(p, &o->output, 1);
	if (o->noutputs) return find_named_results(p, o->outputs, o->noutputs);
	if (!g->n_output) return fail(p, SL_EFORMAT, "has no result");
	if (g->n_output > SL_MAX_RESULTS)
		return fail(p, SL_EUNSUPPORTED,
		            "has %zu results, a block gives at most %d: choose some with SL_OUTPUTS", g->n_output,
		            SL_MAX_RESULTS);
	for (size_t i = 0; i < g->n_output; i++) {
		const SlpOnnx__ValueInfoProto *v = g->output[i];
		if (i && v->type && !slp_onnx_elements(v, &(bool){false})) continue;
		if (!v->name || slp_onnx_name_find(p, 0, v->name) < 0 || !add_result(p, v->name))
			return fail(p, SL_EFORMAT, "nothing computes its result \"%.100s\"", v->name ? v->name : "");
	}
	return true;
}

static void use_as_tensor(struct slp_onnx_model *m, int name)
{
	m->names[name].uses++;
	m->names[name].as_tensor = true;
}

/* Values of outer graphs are held until those are done: their uses are not counted. */
static void mark_needed(struct slp_onnx_model *m, const struct slp_onnx_graph *g)
{
	for (int i = 0; i < g->noutputs; i++) use_as_tensor(m, g->outputs[i]);
	for (int i = g->first_node + g->nnodes - 1; i >= g->first_node; i--) {
		struct slp_onnx_node *n = &m->nodes[i];
		for (int k = 0; k < n->nout; k++) n->needed |= n->out[k] >= 0 && m->names[n->out[k]].uses > 0;
		if (slp_onnx_constant(n->proto)) n->needed = false;
		for (int k = 0; n->needed && k < n->nin; k++)
			if (n->in[k] >= 0) m->names[n->in[k]].uses++;
		while (n->nout && (n->out[n->nout - 1] < 0 || !m->names[n->out[n->nout - 1]].uses)) n->nout--;
		for (int k = n->graphs; n->needed && k && k < m->ngraphs && m->graphs[k].owner == i; k++)
			mark_needed(m, &m->graphs[k]);
	}
}

/* The operators that are not known, with their nodes, as "Warp (a, b), Weft of com.mill (c)". */
static bool report_unknown(struct slp_onnx_parsing *p)
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
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%.40s%s%.20s (", used ? ", " : "",
			                         n->op_type, is_standard(n->domain) ? "" : " of ",
			                         is_standard(n->domain) ? "" : n->domain);
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

/* Whether a list has the name; NAME<7 is there in operator sets before 7. */
static bool is_among(const char *name, const char *list, int opset)
{
	size_t n = strlen(name);
	for (const char *at = list; n && (at = strstr(at, name)); at += n)
		if ((at == list || at[-1] == ' ') &&
		    (!at[n] || at[n] == ' ' || (at[n] == '<' && opset < at[n + 1] - '0')))
			return true;
	return false;
}

/* What every operator may have: sets before 6 said which inputs may be overwritten. */
static bool is_hint(const char *name, int opset)
{
	return opset < 6 && !strcmp(name, "consumed_inputs");
}

/* An attribute that the operator lacks means something that Starling does not know. */
static bool check_attributes(struct slp_onnx_parsing *p, const struct slp_onnx_node *n)
{
	const struct slp_onnx_op *own = slp_onnx_op_find(n->proto->op_type);
	for (size_t i = 0; i < n->proto->n_attribute; i++) {
		const char *name = n->proto->attribute[i]->name;
		if (name && !is_among(name, own->attributes, p->m->opset) && !is_hint(name, p->m->opset))
			return fail(p, SL_EFORMAT,
			            "node \"%.100s\" has the attribute \"%.60s\", which %.60s does not take",
			            slp_onnx_node_name(n->proto), name, own->name);
	}
	return true;
}

static bool check_inputs(struct slp_onnx_parsing *p, const struct slp_onnx_node *n)
{
	if (n->nin < n->op->min || (n->op->max >= 0 && n->nin > n->op->max))
		return fail(p, SL_EFORMAT, "node \"%.100s\" (%.60s) has %d inputs, it must have %d to %d",
		            slp_onnx_node_name(n->proto), n->op->name, n->nin, n->op->min, n->op->max);
	for (int k = 0; k < n->nin; k++)
		if (n->in[k] < 0 && k < n->op->min)
			return fail(p, SL_EFORMAT, "node \"%.100s\" (%.60s) lacks input %d",
			            slp_onnx_node_name(n->proto), n->op->name, k);
	return true;
}

static bool find_operators(struct slp_onnx_parsing *p)
{
	struct slp_onnx_model *m = p->m;
	for (int i = 0; i < m->nnodes; i++) {
		struct slp_onnx_node *n = &m->nodes[i];
		const char *domain = n->proto->domain;
		bool standard = is_standard(domain) || !strcmp(domain, "com.microsoft");
		n->op = standard ? slp_onnx_op_find(n->as ? n->as : n->proto->op_type) : NULL;
		if (!n->needed || !n->op) continue;
		if ((!n->as && !check_inputs(p, n)) || !check_attributes(p, n)) return false;
		for (int k = 0; k < n->nin; k++)
			if (n->in[k] >= 0 && (k > 31 || !(n->op->known >> k & 1))) m->names[n->in[k]].as_tensor = true;
	}
	return report_unknown(p);
}

/* The order of inputs, if the call names them. */
static bool order_inputs(struct slp_onnx_parsing *p, const char *const *names, int count)
{
	struct slp_onnx_model *m = p->m;
	if (!count) return true;
	if (count != m->ninputs) return fail(p, SL_EINVAL, "has %d inputs, %d are named", m->ninputs, count);
	for (int i = 0; i < count; i++) {
		if (!names[i]) return fail(p, SL_EINVAL, "the name of input %d is NULL", i);
		int at = slp_onnx_name_find(p, 0, names[i]), k = 0;
		if (at < 0 || m->names[at].input < 0) return fail(p, SL_EINVAL, "has no input \"%.100s\"", names[i]);
		while (k < i && strcmp(names[k], names[i])) k++;
		if (k < i) return fail(p, SL_EINVAL, "input \"%.100s\" is named twice", names[i]);
		m->names[at].input = i;
		m->inputs[i] = at;
	}
	return true;
}

/* Tensors have fewer axes than the format allows. */
static bool check_axes(struct slp_onnx_parsing *p)
{
	for (int i = 0; i < p->m->ninputs; i++) {
		const SlpOnnx__ValueInfoProto *v = slp_onnx_input_info(p->m, i);
		const SlpOnnx__TypeProto__Tensor *t = v->type ? v->type->tensor_type : NULL;
		if (t && t->shape && t->shape->n_dim > SL_MAX_NDIM)
			return fail(p, SL_EUNSUPPORTED, "input \"%.100s\" has %zu axes, tensors have at most %d",
			            v->name, t->shape->n_dim, SL_MAX_NDIM);
	}
	return true;
}

bool slp_onnx_model_parse(struct slp_file *f, struct slp_onnx_model *m, const struct sl_import_onnx_opts *opts)
{
	struct slp_onnx_parsing p = {.f = f, .m = m};
	bool ok = unpack(&p) && slp_onnx_graphs_unpack(&p) && slp_onnx_names_add(&p) && add_nodes(&p) &&
	          find_results(&p, opts);
	for (int i = 0; ok && i < m->nresults; i++) use_as_tensor(m, m->results[i]);
	if (ok) slp_onnx_small_types(m);
	ok = ok && slp_onnx_quantised_join(&p);
	if (ok) slp_onnx_spread_join(&p);
	if (ok) mark_needed(m, m->graphs);
	for (int i = 0; ok && i < m->ninputs; i++) m->nlists += slp_onnx_is_list(m, i);
	ok = ok && check_axes(&p) && find_operators(&p) && order_inputs(&p, opts->inputs, opts->ninputs);
	free(p.sorted);
	return ok;
}
