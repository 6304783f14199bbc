/* Importing ONNX models: a block that computes the graph, node by node, with our operations. */
#include <stdlib.h>

#include "runtime/budget.h"
#include "onnx/model/run.h"
#include "op_inner.h"
#include "starling/io.h"
#include "starling/primitives.h"
#include "tensor/tensor.h"

/* ---- forward ----------------------------------------------------------------------------------------------------- */

static void drop(struct slp_onnx_run *r, int name)
{
	slp_onnx_drop(&r->values[name]);
}

struct slp_onnx_known *slp_onnx_known_copy(struct slp_onnx_known **list, const struct slp_onnx_known *k)
{
	struct slp_onnx_known *y = slp_onnx_known_new(list, k->dtype, k->shape);
	size_t n = (size_t)sl_shape_size(k->shape);
	if (y && n) memcpy(y->v, k->v, n * sizeof *y->v);
	return y;
}

/* Loads a value of the file, or an input, when the first node takes it. */
static bool load(struct slp_onnx_run *r, int name)
{
	const struct slp_onnx_name *n = &r->b->model.names[name];
	struct slp_onnx_value *v = &r->values[name];
	if (slp_onnx_present(*v) || n->node >= 0 || (!n->known && !n->param && n->input < 0)) return true;
	if (n->known && !r->copies[name]) r->copies[name] = slp_onnx_known_copy(&r->made, n->known);
	if (n->known) v->known = r->copies[name];
	else if (n->input >= 0) return slp_onnx_take_input(r, n->input, v);
	else
		SL_SCOPE
			v->t = sl_retain(sl_param_use_at(slp_forward_call_site(), n->param, r->given[0]));
	v->type = n->tensor->data_type;
	v->shifted = n->shifted && v->t;
	return v->t || v->known;
}

static bool run_node(struct slp_onnx_run *r, const struct slp_onnx_node *n)
{
	struct slp_onnx_model *m = &r->b->model;
	struct slp_onnx_call c = {.at = n->at,
	                          .node = n->proto,
	                          .op = n->op,
	                          .opset = m->opset,
	                          .in = r->arguments + (size_t)m->graphs[n->graph].depth * (size_t)m->most,
	                          .nin = n->nin,
	                          .nout = n->nout,
	                          .made = &r->made,
	                          .sequences = &r->sequences,
	                          .run = r,
	                          .within = n,
	                          .beside = r->given[0]};
	c.out = c.in + n->nin;
	if (!slp_budget_allows(1)) return false;
	memset(c.in, 0, (size_t)(n->nin + n->nout) * sizeof *c.in);
	for (int i = 0; i < n->nin; i++) {
		if (n->in[i] < 0) continue;
		if (!load(r, n->in[i])) return false;
		c.in[i] = r->values[n->in[i]];
	}
	bool shifted = !slp_onnx_takes_bytes(n->op) && slp_onnx_plain_inputs(&c), widened = slp_onnx_widen(&c);
	slp_onnx_align_old(&c);
	if (!c.failed) n->op->import(&c);
	if (!c.failed) slp_onnx_set_types(&c, widened);
	if (!c.failed && shifted) slp_onnx_shift_results(&c);
	for (int i = 0; i < n->nout && !c.failed; i++) {
		if (n->out[i] < 0) continue;
		sl_retain(c.out[i].t);
		r->values[n->out[i]] = c.out[i];
	}
	return !c.failed;
}

/* Values of outer graphs are held until those are done. */
static void count_down(struct slp_onnx_run *r, const struct slp_onnx_node *n, int name)
{
	if (name >= 0 && r->b->model.names[name].graph == n->graph && --r->uses[name] <= 0) drop(r, name);
}

static bool run_and_release(struct slp_onnx_run *r, const struct slp_onnx_node *n)
{
	bool ok = false;
	SL_SCOPE
		ok = run_node(r, n);
	for (int i = 0; ok && i < n->nin; i++) count_down(r, n, n->in[i]);
	for (int i = 0; ok && i < n->nout; i++)
		if (n->out[i] >= 0 && !r->uses[n->out[i]]) drop(r, n->out[i]);
	return ok;
}

static void begin_graph(struct slp_onnx_run *r, const struct slp_onnx_graph *g)
{
	for (int i = g->first_name; i < g->first_name + g->nnames; i++) r->uses[i] = r->b->model.names[i].uses;
}

static bool run_graph(struct slp_onnx_run *r, const struct slp_onnx_graph *g)
{
	const struct slp_onnx_model *m = &r->b->model;
	bool ok = true;
	begin_graph(r, g);
	for (int i = g->first_node; i < g->first_node + g->nnodes && ok; i++)
		if (m->nodes[i].needed) ok = run_and_release(r, &m->nodes[i]);
	return ok;
}

static void drop_graph(struct slp_onnx_run *r, const struct slp_onnx_graph *g)
{
	for (int i = g->first_name; i < g->first_name + g->nnames; i++) drop(r, i);
}

/* ---- graphs within nodes ----------------------------------------------------------------------------------------- */

int slp_onnx_graph_named(struct slp_onnx_call *c, const char *attribute)
{
	const struct slp_onnx_model *m = &c->run->b->model;
	int owner = (int)(c->within - m->nodes);
	for (int i = c->within->graphs; i && i < m->ngraphs && m->graphs[i].owner == owner; i++)
		if (m->graphs[i].attribute && !strcmp(m->graphs[i].attribute, attribute)) return i;
	slp_onnx_call_fail(c, SL_EFORMAT, "lacks the graph %s", attribute);
	return -1;
}

int slp_onnx_graph_inputs(const struct slp_onnx_call *c, int graph)
{
	return (int)c->run->b->model.graphs[graph].proto->n_input;
}

int slp_onnx_graph_outputs(const struct slp_onnx_call *c, int graph)
{
	return c->run->b->model.graphs[graph].noutputs;
}

struct slp_type slp_onnx_graph_type(const struct slp_onnx_call *c, int graph, int output)
{
	return slp_onnx_declared_type(c->run->b->model.graphs[graph].proto->output[output]);
}

int slp_onnx_file_type(const struct slp_onnx_call *c, int i)
{
	const struct slp_onnx_model *m = &c->run->b->model;
	int name = i < c->within->nin ? c->within->in[i] : -1;
	return name >= 0 && m->names[name].tensor ? m->names[name].tensor->data_type : 0;
}

/* A loop within a loop may have very many rounds: its results have to fit into memory. */
static bool count_unrolled(struct slp_onnx_call *c, const struct slp_onnx_graph *g)
{
	enum { MOST = 200000 };
	c->run->unrolled += g->nnodes + 1;
	if (c->run->unrolled > MOST)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "unrolled, the model has more than %d nodes", MOST);
	return !c->failed;
}

static bool take_results(struct slp_onnx_call *c, const struct slp_onnx_graph *g, struct slp_onnx_value *out)
{
	struct slp_onnx_run *r = c->run;
	for (int i = 0; i < g->noutputs; i++) {
		if (!load(r, g->outputs[i])) return false;
		if (!slp_onnx_present(r->values[g->outputs[i]]))
			slp_onnx_call_fail(c, SL_EUNSUPPORTED,
			                   "\"%.100s\" is not computed by the supported part of its node",
			                   r->b->model.names[g->outputs[i]].name);
		if (c->failed) return false;
		out[i] = r->values[g->outputs[i]];
		sl_retain(out[i].t);
	}
	return true;
}

bool slp_onnx_graph_run(struct slp_onnx_call *c, int graph, const struct slp_onnx_value *in, struct slp_onnx_value *out)
{
	struct slp_onnx_run *r = c->run;
	const struct slp_onnx_graph *g = &r->b->model.graphs[graph];
	if (!count_unrolled(c, g)) return false;
	for (int i = 0; i < (int)g->proto->n_input; i++) {
		r->values[g->first_input + i] = in[i];
		sl_retain(in[i].t);
	}
	if (!run_graph(r, g) || !take_results(c, g, out)) c->failed = true; /* and recorded */
	for (int i = 0; c->failed && i < g->noutputs; i++) slp_onnx_drop(&out[i]);
	drop_graph(r, g);
	return !c->failed;
}

/* ---- the whole model --------------------------------------------------------------------------------------------- */

bool slp_onnx_run_begin(struct slp_onnx_run *r, struct slp_onnx_imported *b, sl_tensor *const *in)
{
	const struct slp_onnx_model *m = &b->model;
	size_t names = (size_t)m->nnames + 1, arguments = (size_t)m->most * (size_t)(m->depth + 1);
	*r = (struct slp_onnx_run){.b = b,
	                           .given = in,
	                           .values = slp_calloc(names + arguments, sizeof *r->values),
	                           .copies = slp_calloc(names, sizeof *r->copies),
	                           .uses = slp_calloc(names, sizeof *r->uses)};
	if (!r->values || !r->copies || !r->uses) return false;
	r->arguments = r->values + names;
	begin_graph(r, m->graphs);
	return true;
}

void slp_onnx_run_end(struct slp_onnx_run *r)
{
	if (r->values) drop_graph(r, r->b->model.graphs);
	slp_onnx_known_free(r->made);
	slp_onnx_sequences_free(r->sequences);
	free(r->values);
	free(r->copies);
	free(r->uses);
}

/* Nodes before the first one have had their values already. */
bool slp_onnx_run_nodes(struct slp_onnx_run *r, int first, int last)
{
	const struct slp_onnx_model *m = &r->b->model;
	bool ok = true;
	for (int i = 0; i < last && ok; i++) {
		const struct slp_onnx_node *n = &m->nodes[m->graphs[0].first_node + i];
		for (int k = 0; i < first && n->needed && k < n->nin; k++) count_down(r, n, n->in[k]);
		if (i < first || !n->needed) continue;
		ok = run_and_release(r, n);
		if (!ok && slp_trace_current() && slp_trace_complaint[0]) slp_onnx_head_note(r->b, i);
	}
	return ok;
}

static sl_tensor *run_all(struct slp_onnx_run *r)
{
	int first = r->b->run_head ? r->b->run_head(r) : 0;
	bool ok = slp_onnx_run_nodes(r, first, r->b->model.graphs[0].nnodes);
	for (int i = 0; i < r->b->model.nresults && ok; i++) ok = load(r, r->b->model.results[i]);
	return ok ? slp_onnx_give_results(r) : NULL;
}

static sl_tensor *forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct slp_onnx_imported *b = (struct slp_onnx_imported *)self;
	struct slp_onnx_run r;
	SLP_BUDGET(b->file);
	sl_tensor *y = slp_onnx_run_begin(&r, b, in) && slp_onnx_count_inputs(&r, nin) ? run_all(&r) : NULL;
	slp_onnx_run_end(&r);
	return slp_scope_add(y);
}

static void destroy(sl_block *self)
{
	struct slp_onnx_imported *b = (struct slp_onnx_imported *)self;
	if (b->free_head) b->free_head(b);
	slp_onnx_model_free(&b->model);
	free(b->file);
	free(b);
}

/* ---- parameters -------------------------------------------------------------------------------------------------- */

struct import {
	struct slp_file *f;
	struct slp_onnx_imported *b;
};

/* Numbers that shapes may depend on, and that operations may take as such; weights are parameters. */
static bool is_known(const struct slp_onnx_name *n, const struct slp_onnx_data *d)
{
	bool is_float = slp_is_float(d->element);
	return slp_onnx_is_few(d->shape) && (!is_float || !n->initializer || !n->as_tensor || d->shape.ndim == 0);
}

/* Running statistics are not trained. */
static bool is_statistic(const struct slp_onnx_model *m, int name)
{
	for (int i = 0; i < m->nnodes; i++) {
		const struct slp_onnx_node *n = &m->nodes[i];
		if (n->needed && n->nin == 5 && !strcmp(n->op->name, "BatchNormalization") &&
		    (n->in[3] == name || n->in[4] == name))
			return true;
	}
	return false;
}

static bool is_one_of(const char *name, const char *const *list)
{
	while (*list && strcmp(name, *list)) list++;
	return *list != NULL;
}

/* Whether the operator takes a constant there, no weight: a first state, a factor, a limit.  Summands and slopes may be
 * learned, even single numbers. */
static bool takes_constant(const char *op, int input, bool single)
{
	static const char *const layers[] = {"LSTM", "GRU", "RNN", NULL};
	static const char *const arithmetic[] = {"Mul",
	                                         "Div",
	                                         "Pow",
	                                         "Mod",
	                                         "Max",
	                                         "Min",
	                                         "Clip",
	                                         "Where",
	                                         "Equal",
	                                         "Less",
	                                         "Greater",
	                                         "LessOrEqual",
	                                         "GreaterOrEqual",
	                                         NULL};
	if (is_one_of(op, layers)) return input == 5 || input == 6;
	return single && (is_one_of(op, arithmetic) || (!strcmp(op, "Sub") && input == 0));
}

/* Exporters write constants beside the parameters: a value is one if all its nodes take a constant there. */
static bool is_constant(const struct slp_onnx_model *m, int name, bool single)
{
	bool used = false;
	for (int i = 0; i < m->nnodes; i++) {
		const struct slp_onnx_node *n = &m->nodes[i];
		for (int k = 0; n->needed && k < n->nin; k++) {
			if (n->in[k] != name) continue;
			if (!takes_constant(n->op->name, k, single)) return false;
			used = true;
		}
	}
	return used;
}

/* Under its ONNX name, which may contain characters that our names must not. */
static sl_param *make_param(struct import *im, const char *name, sl_shape shape, struct sl_param_opts opts)
{
	char *ours = slp_strdup(name);
	for (char *p = ours; p && *p; p++)
		if (*p == '.') *p = '_';
	sl_param *param = ours ? sl_block_param_at(im->f->at, &im->b->base, ours, shape, opts) : NULL;
	char *full = param ? slp_strdup(name) : NULL;
	free(ours);
	if (!full) return NULL; /* the block has it */
	free(param->full_name);
	param->full_name = full;
	return param;
}

/* int8 as uint8, 128 larger. */
static sl_tensor *shifted_tensor(struct import *im, const struct slp_onnx_name *n, struct slp_onnx_data *d)
{
	if (!slp_onnx_data_load(im->f, d)) return NULL;
	const unsigned char *from = d->data;
	unsigned char *bytes = slp_malloc(d->bytes + 1);
	for (uint64_t i = 0; bytes && i < d->bytes; i++) bytes[i] = from[i] ^ 0x80;
	sl_tensor *t = bytes ? slp_elements_tensor(im->f, n->name, SL_UINT8, d->shape, bytes) : NULL;
	free(bytes);
	return t;
}

static bool take_param(struct import *im, int i, struct slp_onnx_data *d)
{
	struct slp_onnx_name *n = &im->b->model.names[i];
	n->shifted = d->element == SL_INT8;
	sl_tensor *t = n->shifted ? shifted_tensor(im, n, d) : slp_onnx_data_tensor(im->f, n->name, d);
	if (!t) return false;
	bool fixed = !n->initializer || !slp_is_float(sl_tensor_dtype(t)) || is_statistic(&im->b->model, i) ||
	             is_constant(&im->b->model, i, sl_tensor_size(t) == 1);
	char *name = n->graph ? slp_format("graph%d.%s", n->graph, n->name) : slp_strdup(n->name);
	struct sl_param_opts opts = {.dtype = sl_tensor_dtype(t), .no_grad = fixed};
	n->param = name ? make_param(im, name, d->shape, opts) : NULL;
	free(name);
	bool ok = n->param && slp_param_take(im->f->at, n->param, t) == SL_OK;
	sl_release(t);
	return ok;
}

/* Values taken over need not stay in memory twice. */
static void forget(SlpOnnx__TensorProto *t)
{
	free(t->raw_data.data);
	free(t->float_data);
	t->raw_data = (ProtobufCBinaryData){0, NULL};
	t->float_data = NULL;
	t->n_float_data = 0;
}

static bool bind(struct import *im)
{
	struct slp_onnx_model *m = &im->b->model;
	bool ok = true;
	for (int i = 0; i < m->nnames && ok; i++) {
		struct slp_onnx_name *n = &m->names[i];
		struct slp_onnx_data d = {0};
		if (!n->tensor || !n->uses) continue;
		ok = slp_file_spend(im->f, 1) && slp_onnx_data_find(im->f, n->tensor, &d);
		if (ok && is_known(n, &d)) {
			ok = slp_onnx_data_load(im->f, &d);
			if (ok) n->known = slp_onnx_known_from(&m->known, &d);
			ok = ok && n->known != NULL;
		} else if (ok) {
			ok = take_param(im, i, &d);
		}
		free(d.owned);
		forget((SlpOnnx__TensorProto *)n->tensor);
	}
	return ok;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static sl_block *parse(struct slp_file *f, struct sl_import_onnx_opts opts, bool take)
{
	struct import im = {.f = f, .b = slp_calloc(1, sizeof *im.b)};
	if (!im.b || slp_block_setup(f->at, &im.b->base, "Import", "import", forward, destroy) != SL_OK) {
		free(im.b);
		return slp_call_fail(f->at, f->function, SL_ENOMEM, "no memory for a block");
	}
	im.b->file = slp_strdup(f->path);
	bool ok = im.b->file && slp_onnx_model_parse(f, &im.b->model, &opts);
	if (take) {
		free(f->data); /* before the weights are copied once more */
		f->data = NULL;
	}
	if (ok && bind(&im)) return &im.b->base;
	sl_block_free(&im.b->base);
	return NULL;
}

sl_block *slp_import_onnx_parse(struct slp_file *f, struct sl_import_onnx_opts opts)
{
	return parse(f, opts, false);
}

sl_block *slp_import_onnx_take(struct slp_file *f, struct sl_import_onnx_opts opts)
{
	return parse(f, opts, true);
}
