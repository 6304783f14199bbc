/* Defining a program: from symbols to a graph. */
#include <stdlib.h>
#include <string.h>

#include "graph/symbol.h"
#include "op.h"
#include "runtime/fault.h"
#include "runtime/forked.h"
#include "starling/graph.h"

struct walk {
	uint64_t number;
	struct slp_symbol **list;
	int count, capacity;
};

static enum sl_status no_memory(void)
{
	return slp_error_set(SL_ENOMEM, "sl_graph_define: no memory");
}

static bool meet(struct walk *w, struct slp_symbol *s)
{
	if (s->visit == w->number) return true;
	s->visit = w->number;
	if (!slp_grow((void **)&w->list, &w->capacity, w->count + 1, sizeof *w->list)) return false;
	w->list[w->count++] = s;
	return true;
}

static int oldest_first(const void *a, const void *b)
{
	uint64_t x = (*(struct slp_symbol *const *)a)->number, y = (*(struct slp_symbol *const *)b)->number;
	return x < y ? -1 : x > y ? 1 : 0;
}

/* All symbols behind the heads and the effects, in the order of the calls. */
static enum sl_status collect(struct walk *w, sl_tensor *const *heads, int count, const struct slp_trace *trace)
{
	for (int i = 0; i < count; i++)
		if (!meet(w, heads[i]->symbol)) return no_memory();
	for (int i = 0; trace && i < trace->neffects; i++)
		if (!meet(w, trace->effects[i])) return no_memory();
	for (int n = 0; n < w->count; n++)
		for (int i = 0; i < w->list[n]->nin; i++)
			if (!meet(w, w->list[n]->in[i].symbol)) return no_memory();
	if (w->count) qsort(w->list, (size_t)w->count, sizeof *w->list, oldest_first);
	return SL_OK;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static int number_of(const struct walk *w, const struct slp_symbol *s)
{
	const struct slp_symbol **hit = bsearch(&s, w->list, (size_t)w->count, sizeof *w->list, oldest_first);
	return (int)(hit - (const struct slp_symbol **)w->list);
}

static int add_call(sl_graph *g, const struct walk *w, const struct slp_symbol *s)
{
	struct slp_value few[8], *in = s->nin <= 8 ? few : slp_malloc((size_t)s->nin * sizeof *in);
	if (!in) return -1;
	for (int i = 0; i < s->nin; i++) in[i] = (struct slp_value){number_of(w, s->in[i].symbol), s->in[i].output};
	int node = slp_graph_add_op(g, s->at, s->name, s->op, s->attrs.bytes, s->nin, in);
	if (in != few) free(in);
	if (node < 0) return -1;
	memcpy(g->nodes[node].types, s->types, sizeof s->types);
	g->nodes[node].backward = s->backward;
	g->nodes[node].repeat = s->repeat;
	return node;
}

static enum sl_status add_nodes(sl_graph *g, const struct walk *w)
{
	for (int i = 0; i < w->count; i++) {
		const struct slp_symbol *s = w->list[i];
		int node = s->kind == SLP_NODE_INPUT ? slp_graph_add_input(g, s->at, s->name, s->types[0])
		           : s->kind == SLP_NODE_OP  ? add_call(g, w, s)
		                                     : slp_graph_add_tensor(g, s->at, s->name, s->kind, s->tensor);
		if (node != (int)i) return no_memory();
	}
	return SL_OK;
}

/* ---- random streams ---------------------------------------------------------------------------------------------- */

/* Calls outside a trace took real random streams: the program gets virtual ones, in the same order. A mask and its
 * gradient keep a common stream. */
static void number_streams(sl_graph *g)
{
	for (int i = 0; i < g->count; i++) {
		struct slp_rng *rng = slp_node_rng(&g->nodes[i]);
		if (!rng || rng->seed == SLP_RNG_VIRTUAL) continue;
		struct slp_rng real = *rng;
		for (int k = i; k < g->count; k++) {
			struct slp_rng *other = slp_node_rng(&g->nodes[k]);
			if (other && other->seed == real.seed && other->stream == real.stream)
				*other = (struct slp_rng){SLP_RNG_VIRTUAL, (uint64_t)g->nrandom};
		}
		g->nrandom++;
	}
}

struct slp_rng *slp_node_rng(struct slp_gnode *n)
{
	if (n->kind != SLP_NODE_OP) return NULL;
	for (const struct slp_attr *a = n->op->attr_table; a && a->name; a++)
		if (!strcmp(a->name, "seed")) return (struct slp_rng *)(void *)(n->attrs.bytes + a->offset);
	return NULL;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static enum sl_status build(sl_graph *g, const struct walk *w, sl_tensor *const *heads, int count,
                            const struct slp_trace *trace)
{
	enum sl_status s = add_nodes(g, w);
	for (int i = 0; i < count && s == SL_OK; i++) {
		struct slp_value v = {number_of(w, heads[i]->symbol), heads[i]->output};
		if (!slp_graph_add_output(g, v, NULL)) s = no_memory();
	}
	if (trace) g->nrandom = trace->nrandom;
	if (s == SL_OK) number_streams(g);
	return s;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* symbols may be shared: one walk at a time */
SLP_FORK_MUTEX(lock);

sl_graph *slp_graph_from(sl_tensor *const *heads, int count, const struct slp_trace *trace)
{
	static _Atomic uint64_t walks;
	struct walk w = {.number = atomic_fetch_add(&walks, 1) + 1};
	sl_graph *g = slp_graph_new();
	pthread_mutex_lock(&lock);
	enum sl_status s = g ? collect(&w, heads, count, trace) : no_memory();
	pthread_mutex_unlock(&lock);
	if (s == SL_OK) s = build(g, &w, heads, count, trace);
	free(w.list);
	if (s == SL_OK) return g;
	sl_graph_free(g);
	return NULL;
}

/* The program that computes the heads, which must be symbols: the operations behind them in the order of their calls.
 * Free it with sl_graph_free.  Its inputs are the variables, in the order in which they were made.  NULL with
 * SL_EINVAL: there is no head, or one has values.  NULL also while an error is pending (sl_error), since the failed
 * call may belong to the program even if no head depends on it: a change of a symbol in place, for example.
 *
 *     sl_tensor *a = sl_var("a"), *b = sl_var("b");
 *     sl_graph *g = sl_graph_define(sl_add(a, b)); */
sl_graph *sl_graph_define_at(const char *at, sl_tensor *const *heads, int count)
{
	SLP_CALL("sl_graph_define", at);
	if (count < 1) return slp_call_fail(at, "sl_graph_define", SL_EINVAL, "a program needs at least one result");
	if (!slp_given(at, "sl_graph_define", "array of heads", heads)) return NULL;
	for (int i = 0; i < count; i++) {
		if (!heads[i]) {
			if (sl_error() == SL_OK) slp_call_fail(at, "sl_graph_define", SL_EINVAL, "head %d is NULL", i);
			return NULL;
		}
		if (!heads[i]->symbol)
			return slp_call_fail(at, "sl_graph_define", SL_EINVAL, "head %d has values: it is not a symbol",
			                     i);
	}
	return sl_error() == SL_OK ? slp_graph_from(heads, count, NULL) : NULL;
}

/* Writes the names of the program's inputs, in the order in which a run takes them, to names, at most max of them, and
 * returns the number of inputs; 0 for NULL.  The names belong to the program.
 *
 *     int n = sl_graph_inputs(graph, NULL, 0); */
int sl_graph_inputs(const sl_graph *g, const char **names, int max)
{
	if (!g) return 0;
	for (int i = 0; names && i < g->ninputs && i < max; i++) names[i] = g->nodes[g->inputs[i]].name;
	return g->ninputs;
}

/* The names of its results, in the order in which a run returns them; otherwise as sl_graph_inputs. */
int sl_graph_outputs(const sl_graph *g, const char **names, int max)
{
	if (!g) return 0;
	for (int i = 0; names && i < g->noutputs && i < max; i++)
		names[i] =
		        g->output_names && g->output_names[i] ? g->output_names[i] : g->nodes[g->outputs[i].node].name;
	return g->noutputs;
}
