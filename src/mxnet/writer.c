/* Writing programs as MXNet's symbols and lists of parameters. */
#include <stdlib.h>
#include <string.h>

#include "number.h"
#include "mxnet/writer.h"
#include "io/params.h"
#include "nn/nn.h"
#include "op_list/linear.h"
#include "op_list/move.h"
#include "op_list/norm.h"
#include "runtime/uncancelled.h"
#include "starling/io.h"

enum { MXNET_VERSION = 10901 };

void slp_mx_write_fail(struct slp_mx_writer *w, enum sl_status status, const char *format, ...)
{
	char text[512];
	SLP_FORMAT(text, sizeof text, format);
	if (!w->failed)
		slp_call_fail(w->at, "sl_export", status, "%s \"%.100s\", called at %.200s: %s", w->now->op->name,
		              w->now->name, w->now->at ? w->now->at : "?", text);
	w->failed = true;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

void slp_mx_set(struct slp_mx_writer *w, const char *name, const char *format, ...)
{
	char text[256];
	SLP_FORMAT(text, sizeof text, format);
	if (!w->attrs) w->attrs = json_object();
	json_object_set_new(w->attrs, name, json_string(text));
}

void slp_mx_set_number(struct slp_mx_writer *w, const char *name, double v)
{
	char text[32];
	slp_mx_set(w, name, "%s", slp_number_text(v, false, text));
}

void slp_mx_set_tuple(struct slp_mx_writer *w, const char *name, const int64_t *v, int n)
{
	char text[256] = "(";
	size_t used = 1;
	for (int i = 0; i < n && used < sizeof text; i++) {
		if (v[i] == SLP_MX_NONE)
			used += (size_t)snprintf(text + used, sizeof text - used, "%sNone", i ? ", " : "");
		else
			used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? ", " : "",
			                         (long long)v[i]);
	}
	slp_mx_set(w, name, "%s%s", text, n == 1 ? ",)" : ")");
}

static json_t *list_of(int nin, const struct slp_mx_value *in)
{
	json_t *list = json_array();
	for (int i = 0; i < nin; i++) json_array_append_new(list, json_pack("[i, i, i]", in[i].node, in[i].out, 0));
	return list;
}

/* Appends a node; takes the attributes. */
static int append(struct slp_mx_writer *w, const char *op, const char *name, int nin, const struct slp_mx_value *in)
{
	json_t *node = json_pack("{s:s, s:s}", "op", op, "name", name);
	if (w->attrs) json_object_set_new(node, "attrs", w->attrs);
	w->attrs = NULL;
	if (!node || json_object_set_new(node, "inputs", list_of(nin, in)) || json_array_append_new(w->nodes, node)) {
		if (!w->failed) slp_call_fail(w->at, "sl_export", SL_EINVAL, "the name \"%.100s\" is not UTF-8", name);
		w->failed = true;
	}
	return (int)json_array_size(w->nodes) - 1;
}

static int append_variable(struct slp_mx_writer *w, const char *name)
{
	int node = append(w, "null", name, 0, NULL);
	json_array_append_new(w->variables, json_integer(node));
	return node;
}

/* Variables are written at their first use, as MXNet does; the node being written is unchanged. */
static void need_variable(struct slp_mx_writer *w, int i)
{
	const struct slp_gnode *n = &w->g->nodes[i];
	json_t *attrs = w->attrs;
	if (n->dead || n->kind == SLP_NODE_OP || w->values[i * SLP_MAX_OUTPUTS].node >= 0) return;
	w->attrs = NULL;
	w->values[i * SLP_MAX_OUTPUTS] = (struct slp_mx_value){append_variable(w, n->name), 0};
	w->attrs = attrs;
}

struct slp_mx_value slp_mx_in(struct slp_mx_writer *w, const struct slp_gnode *n, int i)
{
	struct slp_value v = n->in[i];
	need_variable(w, v.node);
	struct slp_mx_value known = w->values[v.node * SLP_MAX_OUTPUTS + v.out];
	if (known.node < 0)
		slp_mx_write_fail(w, SL_EUNSUPPORTED, "output %d of \"%.100s\" has no counterpart in MXNet", v.out,
		                  w->g->nodes[v.node].name);
	return known;
}

struct slp_mx_value slp_mx_emit(struct slp_mx_writer *w, const char *op, const char *suffix, int nin,
                                const struct slp_mx_value *in)
{
	char name[256];
	if (*suffix) snprintf(name, sizeof name, "%.200s_%s", w->now->name, suffix);
	else if (!slp_mx_name(w, op, name)) slp_mx_write_fail(w, SL_ENOMEM, "no memory for its name");
	if (*suffix && w->helpers++) snprintf(name + strlen(name), sizeof name - strlen(name), "%d", w->helpers);
	return (struct slp_mx_value){append(w, op, name, nin, in), 0};
}

void slp_mx_result(struct slp_mx_writer *w, const char *op, int nin, const struct slp_mx_value *in)
{
	w->values[(w->now - w->g->nodes) * SLP_MAX_OUTPUTS] = slp_mx_emit(w, op, "", nin, in);
}

void slp_mx_as(struct slp_mx_writer *w, const char *op, int nin)
{
	enum { MOST = 8 };
	struct slp_mx_value in[MOST];
	for (int i = 0; i < nin && i < MOST; i++) in[i] = slp_mx_in(w, w->now, i);
	slp_mx_result(w, op, nin, in);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void write_op(struct slp_mx_writer *w, const struct slp_gnode *n)
{
	const struct slp_mx_op *op = slp_mx_op_for(n->op);
	if (!op) slp_mx_write_fail(w, SL_EUNSUPPORTED, "the operation has no counterpart in MXNet");
	else op->export(w, n);
}

bool slp_mx_is_flatten(const sl_graph *g, const struct slp_gnode *n)
{
	if (n->kind != SLP_NODE_OP || n->op != &slp_op_reshape || slp_export_int(n, "ndim", 0) != 2) return false;
	const sl_shape *x = &slp_input_type(g, n, 0)->shape;
	if (x->ndim < 0) return slp_export_int(n, "dim", 0) == SLP_DIM_KEEP && slp_export_int(n, "dim", 1) == -1;
	return x->ndim > 2 && x->dim[0] == n->types[0].shape.dim[0];
}

/* Whether the node is a step of a layer about something else ("dense0_flatten0"), not a layer itself
 * ("flatten0_flatten0"). */
static bool is_within_layer(const struct slp_gnode *n)
{
	const char *end = strrchr(n->name, '_'), *begin = end;
	if (!end || strcmp(end, "_flatten0")) return false;
	while (begin > n->name && begin[-1] != '_') begin--;
	return strncmp(begin, "flatten", 7) != 0;
}

/* Whether all that reads a node's result are fully connected layers: MXNet's flatten their inputs themselves. */
static bool is_for_layers(const sl_graph *g, int node)
{
	int used = 0;
	for (int i = 0; i < g->noutputs; i++)
		if (g->outputs[i].node == node) return false;
	for (int i = node + 1; i < g->count; i++)
		for (int k = 0; !g->nodes[i].dead && k < g->nodes[i].nin; k++) {
			if (g->nodes[i].in[k].node != node) continue;
			if (g->nodes[i].kind != SLP_NODE_OP || g->nodes[i].op != &slp_op_linear || k) return false;
			used++;
		}
	return used > 0;
}

static void write_node(struct slp_mx_writer *w, int i)
{
	const struct slp_gnode *n = &w->g->nodes[i];
	w->now = n;
	w->helpers = 0;
	if (n->dead) return;
	if (slp_mx_is_flatten(w->g, n) && is_within_layer(n) && is_for_layers(w->g, i))
		w->values[i * SLP_MAX_OUTPUTS] = slp_mx_in(w, n, 0);
	else if (n->kind == SLP_NODE_OP) write_op(w, n);
}

static json_t *whole(struct slp_mx_writer *w)
{
	json_t *heads = json_array();
	for (int i = 0; i < w->g->noutputs; i++) {
		struct slp_value v = w->g->outputs[i];
		struct slp_mx_value head = w->values[v.node * SLP_MAX_OUTPUTS + v.out];
		json_array_append_new(heads, json_pack("[i, i, i]", head.node, head.out, 0));
	}
	return json_pack("{s:O, s:O, s:o, s:{s:[s, i]}}", "nodes", w->nodes, "arg_nodes", w->variables, "heads", heads,
	                 "attrs", "mxnet_version", "int", MXNET_VERSION);
}

/* The program as JSON; NULL with an error. */
static json_t *symbol_of(const char *at, const sl_graph *g)
{
	struct slp_mx_writer w = {.at = at, .g = g, .nodes = json_array(), .variables = json_array()};
	size_t count = (size_t)g->count * SLP_MAX_OUTPUTS;
	w.values = slp_malloc((count + 1) * sizeof *w.values);
	if (!w.values || !w.nodes || !w.variables) {
		slp_call_fail(at, "sl_export", SL_ENOMEM, "no memory");
		w.failed = true;
	}
	for (size_t i = 0; w.values && i < count; i++) w.values[i] = (struct slp_mx_value){-1, 0};
	for (int i = 0; i < g->count && !w.failed; i++) write_node(&w, i);
	for (int i = 0; i < g->count && !w.failed; i++) need_variable(&w, i); /* that nothing uses */
	json_t *json = w.failed ? NULL : whole(&w);
	json_decref(w.attrs);
	json_decref(w.nodes);
	json_decref(w.variables);
	free(w.values);
	slp_mx_names_free(&w);
	return json;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void write_symbol(struct slp_out *o, const json_t *json)
{
	char *text = json_dumps(json, JSON_INDENT(2));
	if (!text) slp_call_fail(o->at, "sl_export", SL_ENOMEM, "no memory");
	o->failed |= !text;
	if (text) slp_out_put(o, text, strlen(text));
	slp_out_put(o, "\n", 1);
	free(text);
}

/* Running statistics are MXNet's auxiliary states. */
static bool is_auxiliary(const sl_graph *g, int node)
{
	for (int i = 0; i < g->count; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		if (n->kind != SLP_NODE_OP || (n->op != &slp_op_batch_norm && n->op != &slp_op_batch_norm_infer))
			continue;
		if (n->in[3].node == node || n->in[4].node == node) return true;
	}
	return false;
}

static bool is_tensor(const struct slp_gnode *n)
{
	return !n->dead && (n->kind == SLP_NODE_PARAM || n->kind == SLP_NODE_CONST);
}

static void write_params(struct slp_out *o, const sl_graph *g)
{
	char **names = slp_calloc((size_t)g->count + 1, sizeof *names);
	sl_tensor **tensors = slp_calloc((size_t)g->count + 1, sizeof *tensors);
	int count = 0;
	bool ok = names && tensors;
	for (int i = 0; ok && i < g->count; i++) {
		if (!is_tensor(&g->nodes[i])) continue;
		names[count] = slp_format("%s:%s", is_auxiliary(g, i) ? "aux" : "arg", g->nodes[i].name);
		ok = names[count] != NULL;
		tensors[count++] = g->nodes[i].tensor;
	}
	if (ok) slp_arrays_put(o, (const char *const *)names, tensors, count);
	else slp_call_fail(o->at, "sl_export", SL_ENOMEM, "no memory");
	o->failed |= !ok;
	for (int i = 0; names && i < count; i++) free(names[i]);
	free(names);
	free(tensors);
}

/* Both have their names then, or neither. */
static enum sl_status write_files(const char *at, const char *symbol, const char *params, const json_t *json,
                                  const sl_graph *g)
{
	struct slp_out a, b;
	if (!slp_out_open(&a, at, "sl_export", symbol)) return sl_error();
	write_symbol(&a, json);
	if (slp_out_open(&b, at, "sl_export", params)) {
		write_params(&b, g);
		return slp_out_close_both(&b, &a);
	}
	a.failed = true;
	return slp_out_close(&a);
}

static enum sl_status write_both(const char *at, const char *prefix, const sl_graph *g, int epoch)
{
	SLP_UNCANCELLED();
	enum sl_status s = SL_ENOMEM;
	json_t *json = symbol_of(at, g);
	char *symbol = json ? slp_format("%s-symbol.json", prefix) : NULL;
	char *params = symbol ? slp_format("%s-%04d.params", prefix, epoch) : NULL;
	if (params) s = write_files(at, symbol, params, json, g);
	free(symbol);
	free(params);
	json_decref(json);
	return json ? s : sl_error();
}

/* Writes a block in MXNet 1.9's format: PREFIX-symbol.json, its program as MXNet's operators, and PREFIX-0000.params,
 * the values of its parameters (.epoch is the number).  MXNet reads them with SymbolBlock.imports, Starling with
 * sl_import.  The block's forward is called once with symbols.  The shapes of the inputs come from SL_SHAPES(…) (and
 * their data type from .dtype, or one per input from SL_DTYPES(…)), or, if the block is hybridised and has run, from
 * its last run; the size of the batch, their first axis, stays open.  The inputs are called "data", or "data0",
 * "data1", ….  The block is written in inference mode, without dropout, or with .training in training mode.  Waits for
 * the parameters.
 *
 * SL_ESTATE: the shapes are not known, or forward makes a call that cannot be traced; SL_EUNSUPPORTED: an operation has
 * no counterpart in MXNet (the message names it and the place of its call); SL_EINVAL: the epoch is negative, a name is
 * not UTF-8, the numbers of data types and shapes differ; SL_EIO and others: see io.h; otherwise the error that forward
 * reported.
 *
 *     sl_export(net, "my_mlp", SL_SHAPES(SL_SHAPE(1, 512))); */
enum sl_status sl_export_at(const char *at, sl_block *block, const char *prefix, struct sl_export_opts opts)
{
	SLP_CALL("sl_export", at);
	if (!prefix || opts.epoch < 0) {
		slp_call_fail(at, "sl_export", SL_EINVAL, "%s",
		              prefix ? "the epoch is negative" : "the prefix is NULL");
		return SL_EINVAL;
	}
	sl_graph *g = slp_export_trace(at, "sl_export", block, &opts);
	if (!g) return sl_error();
	enum sl_status s = write_both(at, prefix, g, opts.epoch);
	sl_graph_free(g);
	return s;
}
