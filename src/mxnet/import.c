/* Importing MXNet's symbols: checks the graph and its operators, binds variables to inputs and parameters. */
#include <stdlib.h>
#include <string.h>

#include "mxnet/import.h"
#include "mxnet/block.h"
#include "io/params.h"
#include "nn/nn.h"
#include "runtime/budget.h"
#include "op.h"
#include "runtime/text.h"
#include "starling/io.h"

/* A call of sl_import. */
struct import {
	const char *at;
	struct slp_file file; /* the symbol's */
	struct sl_import_opts opts;
	const char *const *inputs;
	int ninputs;
	struct slp_mx_block *block;
	char **names; /* the arrays of the parameter file */
	sl_tensor **tensors;
	int count;
	const char *params; /* its path */
};

#define fail(im, ...) slp_file_fail(&(im)->file, __VA_ARGS__)

/* ---- the graph: operators, the result, uses ---------------------------------------------------------------------- */

/* Finds the result: the only one, or the one that .output names. */
static bool find_head(struct import *im)
{
	struct slp_mx_block *b = im->block;
	const char *name = im->opts.output;
	char text[512];
	for (int i = 0; name && i < b->symbol.count; i++) {
		snprintf(text, sizeof text, "%s_output", b->symbol.nodes[i].name);
		if (strcmp(name, b->symbol.nodes[i].name) && strcmp(name, text)) continue;
		b->head = (struct slp_mx_value){i, 0};
		if (b->symbol.nodes[i].nout == 0) b->symbol.nodes[i].nout = 1;
		return true;
	}
	if (name) return fail(im, SL_EINVAL, "has no node \"%.100s\"", name);
	b->head = b->symbol.heads[0];
	if (b->symbol.nheads == 1) return true;
	return fail(im, SL_EUNSUPPORTED, "has %d results (\"%.100s\", \"%.100s\"…); choose one with .output",
	            b->symbol.nheads, b->symbol.nodes[b->symbol.heads[0].node].name,
	            b->symbol.nodes[b->symbol.heads[1].node].name);
}

static void mark_needed(struct slp_mx_block *b)
{
	b->symbol.nodes[b->head.node].needed = true;
	for (int i = b->symbol.count - 1; i >= 0; i--) {
		int node = b->symbol.order[i];
		if (!b->symbol.nodes[node].needed) continue;
		for (int k = 0; k < slp_mx_used_inputs(b, node); k++)
			b->symbol.nodes[b->symbol.nodes[node].in[k].node].needed = true;
	}
}

/* Where calls for the node are said to be made, for messages; may outlive the block. */
static const char *call_site_of(const char *file, const char *node)
{
	char call_site[256];
	const char *slash = strrchr(file, '/');
	snprintf(call_site, sizeof call_site, "%s, node %s", slash ? slash + 1 : file, node);
	return slp_text_keep(slp_text_escape(call_site, sizeof call_site, false), "an imported node");
}

/* Once the used nodes and the number of values are known. */
static bool count_uses(struct import *im)
{
	struct slp_mx_block *b = im->block;
	b->uses = slp_calloc((size_t)b->nvalues + 1, sizeof *b->uses);
	if (!b->uses) return fail(im, SL_ENOMEM, "no memory");
	for (int node = 0; node < b->symbol.count; node++)
		for (int i = 0; b->symbol.nodes[node].needed && i < slp_mx_used_inputs(b, node); i++)
			b->uses[slp_mx_value_of(b, b->symbol.nodes[node].in[i])]++;
	b->uses[slp_mx_value_of(b, b->head)]++;
	return true;
}

static bool check_operator(struct import *im, int node)
{
	const struct slp_mx_node *n = &im->block->symbol.nodes[node];
	struct slp_mx_part *p = &im->block->parts[node];
	p->op = slp_mx_op_find(n->op);
	p->at = call_site_of(im->file.path, n->name);
	if (!p->op)
		return fail(im, SL_EUNSUPPORTED, "node \"%.100s\": operator \"%.60s\" is not supported", n->name,
		            n->op);
	if (n->nin < p->op->min || (p->op->max >= 0 && n->nin > p->op->max))
		return fail(im, SL_EFORMAT, "node \"%.100s\" (%s) has %d inputs, it must have %d to %d", n->name, n->op,
		            n->nin, p->op->min, p->op->max);
	if (im->block->most_in < n->nin) im->block->most_in = n->nin;
	for (int i = 3; i < n->nin && !strncmp(n->op, "BatchNorm", 9); i++) im->block->parts[n->in[i].node].aux = true;
	return true;
}

static bool is_multiple(const struct slp_mx_node *n)
{
	return !strcmp(n->op, "SliceChannel") || !strcmp(n->op, "split");
}

static bool check_structure(struct import *im)
{
	struct slp_mx_block *b = im->block;
	for (int i = 0; i < b->symbol.count; i++) {
		struct slp_mx_node *n = &b->symbol.nodes[i];
		if (!slp_mx_is_variable(n) && !check_operator(im, i)) return false;
		if (n->nout > 1 && !is_multiple(n))
			return fail(im, SL_EFORMAT, "output %d of node \"%.100s\" (%.60s) is used, it has one",
			            n->nout - 1, n->name, n->op);
		if (n->nout == 0) n->nout = 1;
		b->parts[i].first = b->nvalues;
		b->nvalues += n->nout;
		b->parts[i].input = -1;
	}
	return true;
}

/* ---- inputs and parameters --------------------------------------------------------------------------------------- */

static bool find_inputs(struct import *im)
{
	struct slp_mx_block *b = im->block;
	for (int k = 0; k < im->ninputs; k++) {
		int i = 0;
		while (i < b->symbol.count &&
		       (!slp_mx_is_variable(&b->symbol.nodes[i]) || strcmp(b->symbol.nodes[i].name, im->inputs[k])))
			i++;
		if (i == b->symbol.count) return fail(im, SL_EINVAL, "has no variable \"%.100s\"", im->inputs[k]);
		if (b->parts[i].input >= 0)
			return fail(im, SL_EINVAL, "input \"%.100s\" is named twice", im->inputs[k]);
		b->parts[i].input = k;
	}
	b->ninputs = im->ninputs;
	return true;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Which array of the file has this name; -1: none. */
static int find_array(const struct import *im, char *const *sorted, const int *position, const char *name)
{
	char *const *hit = im->count ? bsearch(&name, sorted, (size_t)im->count, sizeof *sorted, by_name) : NULL;
	return hit ? position[hit - sorted] : -1;
}

/* Dims of an attribute __shape__ that are not 0 must be those of the values. */
static bool check_declared(struct import *im, const struct slp_mx_node *n, sl_shape shape)
{
	struct slp_mx_call c = {.at = im->at, .function = "sl_import", .node = n};
	int64_t dims[SLP_MX_TUPLE];
	int count = slp_mx_tuple(&c, "__shape__", dims);
	char text[128];
	bool fits = count <= 0 || count == shape.ndim;
	for (int i = 0; fits && i < count; i++) fits = dims[i] <= 0 || dims[i] == shape.dim[i];
	if (c.failed) return false;
	if (!fits)
		return fail(im, SL_ESHAPE, "variable \"%.100s\" has shape %s, but the array in %.200s has %s", n->name,
		            slp_mx_text(&c, "__shape__", ""), im->params, sl_shape_string(shape, text));
	return true;
}

/* A parameter of the block under its MXNet name, which may contain characters that ours must not. */
static sl_param *make_param(struct import *im, const char *name, sl_shape shape, struct sl_param_opts opts)
{
	char *ours = slp_strdup(name);
	for (char *p = ours; p && *p; p++)
		if (*p == '.') *p = '_';
	sl_param *param = ours ? sl_block_param_at(im->at, &im->block->base, ours, shape, opts) : NULL;
	char *full = param ? slp_strdup(name) : NULL;
	free(ours);
	if (!full) return NULL; /* the block has it */
	free(param->full_name);
	param->full_name = full;
	return param;
}

static bool take_param(struct import *im, int node, sl_tensor *t)
{
	const struct slp_mx_node *n = &im->block->symbol.nodes[node];
	struct slp_mx_part *p = &im->block->parts[node];
	enum sl_status s = SL_EINVAL;
	if (!check_declared(im, n, sl_tensor_shape(t))) return false;
	bool fixed = p->aux || p->ones || !slp_is_float(sl_tensor_dtype(t));
	struct sl_param_opts opts = {.dtype = sl_tensor_dtype(t), .no_grad = fixed};
	p->param = make_param(im, n->name, sl_tensor_shape(t), opts);
	if (p->param)
		SL_SCOPE {
			sl_tensor *values =
			        p->ones ? sl_ones_at(im->at, sl_tensor_shape(t), SL_MAKE_(.dtype = opts.dtype)) : t;
			s = slp_param_take(im->at, p->param, values);
		}
	return s == SL_OK;
}

/* Without names of inputs: a variable that the file of parameters lacks is one. */
static bool miss(struct import *im, int node, int *missing, char list[256])
{
	const struct slp_mx_node *n = &im->block->symbol.nodes[node];
	size_t used = strlen(list);
	if (!im->ninputs) {
		im->block->parts[node].input = im->block->ninputs++;
		return true;
	}
	if (used < 200) snprintf(list + used, 256 - used, "%s%.100s", used ? ", " : "", n->name);
	++*missing;
	return true;
}

/* Checks the attributes of all operators; parameters are known by now, which ones are ones is found out. */
static bool check_operators(struct import *im, const int *arrays)
{
	struct slp_mx_block *b = im->block;
	sl_tensor **in = slp_calloc((size_t)b->most_in + 1, sizeof *in);
	bool ok = in || fail(im, SL_ENOMEM, "no memory");
	for (int i = 0; ok && i < b->symbol.count; i++) {
		const struct slp_mx_node *n = &b->symbol.nodes[i];
		if (!n->needed || !b->parts[i].op) continue;
		struct slp_mx_call c = {.at = b->parts[i].at,
		                        .function = "sl_import",
		                        .node = n,
		                        .op = b->parts[i].op,
		                        .in = in,
		                        .nin = slp_mx_used_inputs(b, i),
		                        .checking = true};
		for (int k = 0; k < c.nin; k++)
			in[k] = arrays[n->in[k].node] < 0 ? NULL : im->tensors[arrays[n->in[k].node]];
		c.op->import(&c);
		for (int k = 0; k < c.nin; k++)
			if (c.ones >> k & 1) b->parts[n->in[k].node].ones = true;
		ok = !c.failed;
	}
	free(in);
	return ok;
}

/* Where the values of each variable are in the file of parameters; -1: nowhere.  Says which arrays are superfluous. */
static bool match(struct import *im, char **sorted, int *position, int *arrays, bool *used)
{
	struct slp_mx_block *b = im->block;
	for (int i = 0; i < im->count; i++) sorted[i] = im->names[i];
	if (im->count) qsort(sorted, (size_t)im->count, sizeof *sorted, by_name);
	for (int i = 0; i < im->count; i++) {
		char **hit = bsearch(&im->names[i], sorted, (size_t)im->count, sizeof *sorted, by_name);
		position[hit - sorted] = i;
	}
	for (int i = 0; i < b->symbol.count; i++) {
		bool variable = slp_mx_is_variable(&b->symbol.nodes[i]) && b->parts[i].input < 0;
		arrays[i] = variable ? find_array(im, sorted, position, b->symbol.nodes[i].name) : -1;
		if (arrays[i] >= 0) used[arrays[i]] = true;
	}
	for (int i = 0; i < im->count && !im->opts.lenient; i++)
		if (!used[i])
			return fail(im, SL_EINVAL,
			            "has no variable \"%.100s\", which %.200s has values for (.lenient ignores them)",
			            im->names[i], im->params);
	return true;
}

static bool bind_params(struct import *im, const int *arrays)
{
	struct slp_mx_block *b = im->block;
	int missing = 0;
	char list[256] = "";
	for (int i = 0; i < b->symbol.count; i++) {
		if (!slp_mx_is_variable(&b->symbol.nodes[i]) || !b->symbol.nodes[i].needed || b->parts[i].input >= 0)
			continue;
		if (arrays[i] < 0 ? !miss(im, i, &missing, list) : !take_param(im, i, im->tensors[arrays[i]]))
			return false;
	}
	if (!missing) return b->ninputs > 0 || fail(im, SL_EINVAL, "has no inputs: nothing depends on a variable");
	return fail(im, SL_EINVAL, "%s has no values for %d parameter%s: %s", im->params ? im->params : "(no file)",
	            missing, missing > 1 ? "s" : "", list);
}

static bool bind(struct import *im)
{
	size_t count = (size_t)im->count + 1;
	char **sorted = slp_malloc(count * sizeof *sorted);
	int *position = slp_malloc(count * sizeof *position),
	    *arrays = slp_malloc((size_t)im->block->symbol.count * sizeof *arrays);
	bool *used = slp_calloc(count, sizeof *used);
	bool ok = sorted && position && arrays && used;
	if (!ok) fail(im, SL_ENOMEM, "no memory");
	ok = ok && match(im, sorted, position, arrays, used) && check_operators(im, arrays) && bind_params(im, arrays);
	free(sorted);
	free(position);
	free(arrays);
	free(used);
	return ok;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static bool build(struct import *im)
{
	struct slp_mx_block *b = im->block;
	if (!slp_mx_parse(&im->file, &b->symbol)) return false;
	b->parts = slp_calloc((size_t)b->symbol.count, sizeof *b->parts);
	if (!b->parts) return fail(im, SL_ENOMEM, "no memory");
	if (!check_structure(im) || !find_head(im)) return false;
	mark_needed(b);
	return count_uses(im) && find_inputs(im) && bind(im);
}

sl_block *slp_import_parse(struct slp_file *file, const char *const *inputs, int ninputs, const char *params,
                           char **names, sl_tensor **tensors, int count, struct sl_import_opts opts)
{
	struct import im = {.at = file->at,
	                    .file = *file,
	                    .opts = opts,
	                    .inputs = inputs,
	                    .ninputs = ninputs,
	                    .names = names,
	                    .tensors = tensors,
	                    .count = count,
	                    .params = params};
	im.block = slp_calloc(1, sizeof *im.block);
	if (!im.block ||
	    slp_block_setup(file->at, &im.block->base, "Import", "import", slp_mx_forward, slp_mx_destroy) != SL_OK) {
		free(im.block);
		return slp_call_fail(file->at, "sl_import", SL_ENOMEM, "no memory for a block");
	}
	im.block->file = slp_strdup(file->path);
	if (im.block->file && build(&im)) return &im.block->base;
	sl_block_free(&im.block->base);
	return NULL;
}

/* Makes a block of a network that MXNet 1.x or sl_export has exported: symbol is the file of its graph
 * ("my_mlp-symbol.json"), params the file of its parameters ("my_mlp-0000.params", or .safetensors with the same names;
 * NULL: it has none).  inputs has the names of the input variables, in the order of sl_forward's arguments, such as
 * SL_NAMES("data"); with NULL, 0 the inputs are all variables without values in params.  The block can be called with
 * tensors and symbols, hybridised, trained, saved; its parameters have MXNet's names (with "_" for "." in
 * sl_block_find).  Labels of training operators (SoftmaxOutput) are left out.  Parameters are on the default device.
 *
 * .output names a node whose result replaces the symbol's; .lenient ignores superfluous arrays of any data type.
 * NULL after an error: SL_EIO; SL_EFORMAT, a file is damaged; SL_EUNSUPPORTED, Starling lacks an operator or attribute,
 * and the message names the node; SL_ESHAPE; SL_EINVAL, parameters are missing or superfluous.
 *
 *     sl_block *net = sl_import("my_mlp-symbol.json", SL_NAMES("data"), "my_mlp-0000.params");
 *     sl_tensor *y = sl_forward(net, x); */
sl_block *sl_import_at(const char *at, const char *symbol, const char *const *inputs, int ninputs, const char *params,
                       struct sl_import_opts opts)
{
	SLP_CALL("sl_import", at);
	SLP_BUDGET(symbol);
	struct slp_file f;
	char **names = NULL;
	sl_tensor **tensors = NULL;
	int count = 0;
	sl_block *block = NULL;
	if (!slp_file_read(&f, at, "sl_import", symbol)) return NULL;
	if (params)
		count = (opts.lenient ? slp_arrays_load_leniently : slp_arrays_load_as)(at, "sl_import", params, &names,
		                                                                        &tensors);
	if (count >= 0) block = slp_import_parse(&f, inputs, ninputs, params, names, tensors, count, opts);
	if (count >= 0) slp_arrays_free(names, tensors, count);
	free(f.data);
	return block;
}
