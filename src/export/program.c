/* Exporting: the program of a block, and the attributes of its operations. */
#include <stdlib.h>
#include <string.h>

#include "export/program.h"
#include "hybrid/trace.h"
#include "op.h"
#include "runtime/engine.h"
#include "starling/io.h"
#include "tensor/moment.h"

/* ---- attributes -------------------------------------------------------------------------------------------------- */

double slp_export_number(const struct slp_gnode *n, const char *name, unsigned i)
{
	const struct slp_attr *a = slp_attr_find(n->op, name);
	return a && i < a->count ? slp_attr_value(a, n->attrs.bytes, i) : 0;
}

void slp_export_pair(const struct slp_gnode *n, const char *name, const int64_t otherwise[2], int64_t pair[2])
{
	for (unsigned i = 0; i < 2; i++) pair[i] = slp_export_int(n, name, i);
	if (!pair[0] && !pair[1]) memcpy(pair, otherwise, 2 * sizeof *pair);
	if (!pair[1] && otherwise[0]) pair[1] = pair[0];
}

struct slp_pooling slp_export_pooling(const struct slp_gnode *n)
{
	struct slp_pooling p;
	slp_export_pair(n, "kernel", (const int64_t[]){1, 1}, p.kernel);
	slp_export_pair(n, "stride", p.kernel, p.stride);
	slp_export_pair(n, "pad", (const int64_t[]){0, 0}, p.pad);
	return p;
}

int slp_export_axes(const struct slp_gnode *n, int ndim, int axes[SL_MAX_NDIM])
{
	int count = (int)slp_export_int(n, "naxes", 0);
	for (int i = 0; i < (count ? count : ndim); i++) {
		int a = count ? (int)slp_export_int(n, "axes", (unsigned)i) : i;
		axes[i] = a < 0 ? a + ndim : a;
	}
	return count ? count : ndim;
}

void slp_export_permutation(const struct slp_gnode *n, int ndim, int64_t axes[SL_MAX_NDIM])
{
	bool given = slp_export_int(n, "naxes", 0) > 0;
	for (int i = 0; i < ndim; i++) {
		int64_t a = given ? slp_export_int(n, "axes", (unsigned)i) : ndim - 1 - i;
		axes[i] = a < 0 ? a + ndim : a;
	}
}

sl_shape slp_export_reshape(const struct slp_gnode *n, sl_shape x, sl_shape y, int64_t keep)
{
	sl_shape codes = y;
	bool open = false;
	for (int i = 0; i < y.ndim; i++) {
		int64_t code = slp_export_int(n, "dim", (unsigned)i);
		if (code == SLP_DIM_KEEP) codes.dim[i] = keep;
		else if (code == -1) codes.dim[i] = -1;
		open |= codes.dim[i] == -1;
	}
	/* The batch may be any of the first axes that stay, or a part of the first one behind them, but for new ones. */
	int same = 0;
	while (same < x.ndim && same < y.ndim && x.dim[same] == y.dim[same] && codes.dim[same] > 0)
		codes.dim[same++] = keep;
	while (same + 1 < y.ndim && codes.dim[same] == 1) same++;
	if (!open && same < y.ndim && codes.dim[same] > 0 && sl_shape_size(y) > 0) codes.dim[same] = -1;
	return codes;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static struct slp_signature *signature_for(int count)
{
	size_t n = count > 0 ? (size_t)count : 0;
	struct slp_signature *s = slp_calloc(1, sizeof *s + n * sizeof *s->in);
	if (s) s->nin = (int)n;
	return s;
}

static struct slp_signature *signature_of_shapes(const struct sl_export_opts *o)
{
	struct slp_signature *s = signature_for(o->nshapes);
	for (int i = 0; s && i < s->nin; i++) {
		enum sl_dtype dtype = o->ndtypes ? slp_dtype_or(o->dtypes[i], o->dtype) : o->dtype;
		s->in[i].type = (struct slp_type){dtype, o->shapes[i]};
	}
	return s;
}

/* The program of the plan that a hybridised block has used last. */
static struct slp_signature *signature_of_plan(const sl_plan *plan)
{
	const sl_graph *g = sl_plan_graph(plan);
	struct slp_signature *s = signature_for(g->ninputs);
	for (int i = 0; s && i < s->nin; i++) s->in[i].type = g->nodes[g->inputs[i]].types[0];
	return s;
}

static bool check_dtypes(const char *at, const char *function, const struct sl_export_opts *o)
{
	if (!o->ndtypes) return true;
	if (o->ndtypes == o->nshapes) return slp_given(at, function, "array of data types", o->dtypes);
	slp_call_fail(at, function, SL_EINVAL, "%d data types of inputs are given, and %d shapes", o->ndtypes,
	              o->nshapes);
	return false;
}

static struct slp_signature *signature(const char *at, const char *function, sl_block *block,
                                       const struct sl_export_opts *o)
{
	if (o->nshapes > 0 && !slp_given(at, function, "array of shapes", o->shapes)) return NULL;
	if (!check_dtypes(at, function, o)) return NULL;
	const sl_plan *plan = o->nshapes > 0 ? NULL : sl_block_plan(block, 0);
	for (int i = 0; i < o->nshapes; i++)
		if (!slp_shape_valid(o->shapes[i])) {
			char text[128];
			return slp_call_fail(at, function, SL_ESHAPE, "%s is not a shape of an input",
			                     sl_shape_string(o->shapes[i], text));
		}
	if (o->nshapes <= 0 && !plan)
		return slp_call_fail(
		        at, function, SL_ESTATE,
		        "the shape of %s's input is not known: give it (SL_SHAPES(SL_SHAPE(1, 512))), or hybridize "
		        "the block and run it once",
		        sl_block_name(block));
	struct slp_signature *s = o->nshapes > 0 ? signature_of_shapes(o) : signature_of_plan(plan);
	if (!s) return slp_call_fail(at, function, SL_ENOMEM, "no memory");
	s->training = o->training;
	s->device = sl_auto();
	return s;
}

/* The parameters' values of one moment, in their places. */
static bool copy_params(const char *at, sl_graph *g)
{
	bool ok = true;
	SLP_MOMENT();
	for (int i = 0; ok && i < g->count; i++)
		if (g->nodes[i].kind == SLP_NODE_PARAM && g->nodes[i].tensor)
			ok = slp_moment_copy(at, &g->nodes[i].tensor, 1);
	return ok;
}

sl_graph *slp_export_trace(const char *at, const char *function, sl_block *block, const struct sl_export_opts *opts)
{
	struct slp_traced traced;
	if (!block || !block->base) {
		if (!block && sl_error() != SL_OK) return NULL;
		return slp_call_fail(at, function, SL_EINVAL, "the block is NULL");
	}
	struct slp_signature *s = signature(at, function, block, opts);
	if (!s || slp_engine_need(at) != SL_OK) {
		free(s);
		return NULL;
	}
	SLP_FORWARD_SCOPE();
	slp_forward.for_file = true;
	bool ok = slp_trace_block(at, block, s, &traced);
	free(s);
	if (!ok) return NULL;
	sl_graph *g = traced.forward;
	traced.forward = NULL;
	slp_traced_clear(&traced);
	if (copy_params(at, g)) return g;
	sl_graph_free(g);
	return NULL;
}
