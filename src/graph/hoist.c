/* Hoisting: values that a program computes from parameters alone for its kernels (packed weights, weights with a folded
 * batch normalisation) are computed after a parameter was written, not at each run.
 *
 * Their nodes become a separate program, which writes parameters that the plan reads instead. */
#include <stdlib.h>

#include "autograd/blank.h"
#include "graph/pass/pass.h"
#include "graph/plan.h"
#include "op_inner.h"
#include "op_list/conv.h"
#include "op_list/move.h"
#include "op_list/norm.h"
#include "op_list/quant.h"
#include "runtime/engine.h"
#include "starling/autograd.h"
#include "starling/graph.h"
#include "starling/arithmetic.h"

struct slp_hoisted {
	pthread_mutex_t lock;
	sl_plan *plan;      /* its results ... */
	int *nodes, count;  /* ... are the parameters of these nodes */
	unsigned *versions; /* the versions of the parameters that it reads, by node, at its last run */
	bool ran;
};

/* ---- hoisted nodes ----------------------------------------------------------------------------------------------- */

static bool is_preparation(const struct slp_gnode *n)
{
	return n->kind == SLP_NODE_OP &&
	       (n->op == &slp_op_conv2d_pack || n->op == &slp_op_norm_fold || n->op == &slp_op_norm_affine ||
	        n->op == &slp_op_qconv2d_pack || n->op == &slp_op_qmatmul_pack || n->op == &slp_op_dequantize);
}

/* A part of weights that only such an operation reads. */
static bool is_part(const sl_graph *g, const struct slp_users *u, int node)
{
	if (g->nodes[node].kind != SLP_NODE_OP || g->nodes[node].op != &slp_op_slice) return false;
	int i = slp_users_first(u, (struct slp_value){node, 0});
	for (int next = i; next >= 0; next = u->list[next].next) {
		int user = u->list[next].node;
		if (user < 0 || !(is_preparation(&g->nodes[user]) || is_part(g, u, user))) return false;
	}
	return i >= 0;
}

/* A program that consists of such nodes alone is not hoisted. */
static bool has_some(const sl_graph *g)
{
	for (int i = 0; g->ninputs && i < g->count; i++)
		if (is_preparation(&g->nodes[i])) return true;
	return false;
}

/* Marks values prepared for kernels: they depend on parameters alone, and nothing writes these. */
static void mark_prepared(const sl_graph *g, const struct slp_users *u, bool *prepared)
{
	for (int i = 0; i < g->count; i++) {
		const struct slp_gnode *n = &g->nodes[i];
		prepared[i] = is_preparation(n) || is_part(g, u, i);
		for (int j = 0; j < n->nin; j++) {
			const struct slp_gnode *from = &g->nodes[n->in[j].node];
			bool stays = from->kind == SLP_NODE_PARAM && slp_users_stays(u, n->in[j], 0, g->count - 1);
			prepared[i] &= stays || from->kind == SLP_NODE_CONST || prepared[n->in[j].node];
		}
	}
}

/* Whether an operation that is not hoisted reads the value. */
static bool is_needed(const struct slp_users *u, const bool *prepared, struct slp_value v)
{
	for (int i = slp_users_first(u, v); i >= 0; i = u->list[i].next)
		if (u->list[i].node < 0 || !prepared[u->list[i].node]) return true;
	return false;
}

/* ---- making it --------------------------------------------------------------------------------------------------- */

/* Adds a parameter that takes the place of a value that the other program computes. */
static enum sl_status add_result(struct slp_users *u, sl_graph *out, struct slp_hoisted *h, struct slp_value v)
{
	sl_graph *g = u->g;
	struct slp_type type = *slp_value_type(g, v);
	sl_tensor *t = slp_blank(type, g->device);
	int node = t ? slp_graph_add_tensor(g, g->nodes[v.node].at, g->nodes[v.node].name, SLP_NODE_PARAM, t) : -1;
	int *nodes = slp_realloc(h->nodes, ((size_t)h->count + 1) * sizeof *nodes);
	if (nodes) h->nodes = nodes;
	if (node < 0 || !nodes || !slp_users_add(u, node) || !slp_graph_add_output(out, v, NULL))
		return sl_error() != SL_OK ? sl_error() : slp_plan_no_memory();
	h->nodes[h->count++] = node;
	slp_graph_before(g, node, 0);
	slp_users_replace(u, v, (struct slp_value){node, 0});
	return SL_OK;
}

static enum sl_status split(sl_graph *g, sl_graph *out, struct slp_hoisted *h)
{
	struct slp_users u;
	int count = g->count;
	bool *prepared = slp_calloc((size_t)count + 1, sizeof *prepared);
	if (!prepared) return slp_plan_no_memory();
	if (!slp_users_find(&u, g)) return free(prepared), SL_ENOMEM;
	enum sl_status s = SL_OK;
	mark_prepared(g, &u, prepared);
	for (int i = 0; i < count && s == SL_OK; i++)
		for (int k = 0; prepared[i] && k < out->nodes[i].nout && s == SL_OK; k++)
			if (is_needed(&u, prepared, (struct slp_value){i, k}))
				s = add_result(&u, out, h, (struct slp_value){i, k});
	slp_users_free(&u);
	free(prepared);
	return s;
}

/* Finds the nodes of the results again, which have moved. */
static void find_nodes(const sl_graph *g, struct slp_hoisted *h, sl_tensor **results)
{
	for (int i = 0; i < h->count; i++)
		for (int k = 0; k < g->count; k++)
			if (g->nodes[k].tensor == results[i]) h->nodes[i] = k;
}

/* The remaining program takes no inputs. */
static enum sl_status drop_inputs(sl_graph *g)
{
	for (int i = 0; i < g->ninputs; i++) g->nodes[g->inputs[i]].dead = true;
	g->ninputs = 0;
	return slp_graph_compact(g) ? SL_OK : sl_error();
}

static enum sl_status tidy(sl_graph *g, sl_graph *out, struct slp_hoisted *h)
{
	sl_tensor **results = slp_malloc(((size_t)h->count + 1) * sizeof *results);
	if (!results) return slp_plan_no_memory();
	for (int i = 0; i < h->count; i++) results[i] = g->nodes[h->nodes[i]].tensor;
	enum sl_status s = slp_pass_dead(g);
	if (s == SL_OK) s = slp_pass_dead(out);
	if (s == SL_OK) s = drop_inputs(out);
	if (s == SL_OK) find_nodes(g, h, results);
	free(results);
	return s;
}

static enum sl_status make_plan(sl_plan *p, const char *at, sl_graph *out, struct slp_hoisted *h)
{
	enum { PASSES = (1u << SL_PASS_SEGMENT) - 1 }; /* they have been run */
	enum sl_status s = tidy(p->graph, out, h);
	if (s != SL_OK) return sl_graph_free(out), s;
	h->plan = slp_plan_new(at, "preparation", out, (struct sl_compile_opts){.off = PASSES, .device = p->device});
	if (!h->plan) return sl_error();
	h->versions = slp_calloc((size_t)h->plan->graph->count + 1, sizeof *h->versions);
	return h->versions ? SL_OK : slp_plan_no_memory();
}

enum sl_status slp_hoist(sl_plan *p, const char *at)
{
	if (!has_some(p->graph)) return SL_OK;
	struct slp_hoisted *h = slp_calloc(1, sizeof *h);
	sl_graph *out = slp_graph_copy(p->graph);
	if (!h || !out) {
		free(h);
		sl_graph_free(out);
		return slp_plan_no_memory();
	}
	pthread_mutex_init(&h->lock, NULL);
	p->hoisted = h;
	out->noutputs = 0;
	enum sl_status s = SL_OK;
	SL_PAUSE
		SL_SCOPE
			s = split(p->graph, out, h);
	if (s == SL_OK && h->count) return make_plan(p, at, out, h);
	sl_graph_free(out);
	slp_hoisted_free(h);
	p->hoisted = NULL;
	return s;
}

void slp_hoisted_free(struct slp_hoisted *h)
{
	if (!h) return;
	pthread_mutex_destroy(&h->lock);
	sl_plan_free(h->plan);
	free(h->nodes);
	free(h->versions);
	free(h);
}

/* ---- running it -------------------------------------------------------------------------------------------------- */

/* Whether a parameter was written since the last run; notes the versions. */
static bool has_changed(struct slp_hoisted *h)
{
	const sl_graph *g = h->plan->graph;
	bool changed = !h->ran;
	for (int i = 0; i < g->count; i++) {
		const sl_tensor *t = g->nodes[i].tensor;
		if (!t) continue;
		unsigned version = atomic_load_explicit(&t->storage->version, memory_order_relaxed);
		changed |= version != h->versions[i];
		h->versions[i] = version;
	}
	return changed;
}

/* Values are taken as they are where there are none yet, or none since sl_shutdown.  Later ones are copied: other threads may
 * run the plan. */
static enum sl_status put(struct slp_gnode *n, sl_tensor *value)
{
	if (n->tensor->storage->generation == slp_engine.generation && !slp_is_blank(n->tensor))
		return sl_copy_(n->tensor, value) ? SL_OK : sl_error();
	sl_release(n->tensor);
	n->tensor = sl_retain(value);
	return SL_OK;
}

static enum sl_status run(const char *at, sl_plan *p)
{
	struct slp_hoisted *h = p->hoisted;
	sl_tensor **out = slp_calloc((size_t)h->count, sizeof *out);
	if (!out) return slp_plan_no_memory();
	enum sl_status s = slp_plan_run(at, h->plan, NULL, 0, NULL, 0, NULL, out);
	for (int i = 0; i < h->count && s == SL_OK; i++) s = put(&p->graph->nodes[h->nodes[i]], out[i]);
	free(out);
	h->ran = s == SL_OK;
	return s;
}

enum sl_status slp_hoisted_refresh(const char *at, sl_plan *p)
{
	struct slp_hoisted *h = p->hoisted;
	enum sl_status s = SL_OK;
	if (!h) return SL_OK;
	pthread_mutex_lock(&h->lock);
	if (has_changed(h)) {
		SL_PAUSE
			SL_SCOPE
				s = run(at, p);
	}
	pthread_mutex_unlock(&h->lock);
	return s;
}
