/* CUDA graphs: the kernels of prepared code are recorded once and then launched together, which takes the host a
 * fraction of the time that it takes to launch them one by one.
 *
 * Each call of the code is recorded as a graph of its own, whose kernels then follow in the code's graph; if it has other
 * things than kernels, or CUDA does not say what a kernel is launched with, it is a child of the code's graph.  The
 * first runs are plain: they make libraries choose algorithms, load kernels and take memory.  Then a graph is made for the addresses and
 * attributes of the run.  A later run in the same place, with the same bases of its slots and the same patches, launches that
 * graph at once.  Others look for the graph with the same addresses; the calls whose attributes are others
 * (a step of Adam, the stream of a dropout) are recorded again and take the place of the former ones.  The graphs of a
 * code are few: after that, the calls whose addresses are others are recorded again, too, and where most are, the
 * oldest graph goes.  Code that finds no graph to launch again and again, or with which anything fails, runs plainly
 * from then on.
 *
 * A worker has graphs of its own, and a stream that only records. */
#include "config.h"
#include "alloc.h"
#include "runtime/compat.h"
#include "runtime/device/cuda_graph.h"
#include "runtime/observe/stats.h"

static _Atomic uint64_t last_code;

uint64_t slp_graph_code(void)
{
	return atomic_fetch_add(&last_code, 1) + 1;
}

#ifdef HAVE_CUDA
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>
#include <starpu_cuda.h>

enum {
	PLAIN_RUNS = 2,  /* before a graph is made */
	GRAPHS = 4,      /* of a code on a worker: batches come in buffers in turn */
	MOST_REMADE = 8, /* in a row, without a graph that could stay */
};

enum { MOST_KERNELS = 32 }; /* of a call that is not a child */

/* The nodes of a call: kernels one after the other, or a child. */
struct call_nodes {
	cudaGraphNode_t *nodes;
	int count; /* 0: it launches nothing */
	bool child;
};

struct graph {
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	struct call_nodes *calls;
	int ncalls;
	char *keys;
	struct slp_graph_place place; /* of its last run; its parts are in place_bytes */
	char *place_bytes;
	uint64_t used;
};

/* A worker's data about a code. */
struct code {
	uint64_t number;
	struct code *next;
	int runs, ngraphs, remade;
	bool plain; /* for good */
	atomic_bool dead;
	struct graph graphs[GRAPHS];
};

static struct worker {
	struct code *codes;
	cudaStream_t stream;
	uint64_t clock;
} workers[STARPU_NMAXWORKERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the lists of codes */

/* ---- giving up --------------------------------------------------------------------------------------------------- */

static void destroy_graph(struct graph *g)
{
	if (g->exec) cudaGraphExecDestroy(g->exec);
	if (g->graph) cudaGraphDestroy(g->graph);
	for (int i = 0; g->calls && i < g->ncalls; i++) free(g->calls[i].nodes);
	free(g->calls);
	free(g->keys);
	free(g->place_bytes);
	*g = (struct graph){0};
}

static void destroy_graphs(struct code *c)
{
	while (c->ngraphs) destroy_graph(&c->graphs[--c->ngraphs]);
}

/* From now on it runs plainly. */
static bool give_up(struct code *c)
{
	destroy_graphs(c);
	cudaGetLastError(); /* or a later call would report it */
	c->plain = true;
	SLP_COUNT(graph_refusals);
	return false;
}

/* ---- codes ------------------------------------------------------------------------------------------------------- */

void slp_graph_forget(uint64_t number)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < STARPU_NMAXWORKERS; i++)
		for (struct code *c = workers[i].codes; c; c = c->next)
			if (c->number == number) atomic_store(&c->dead, true);
	pthread_mutex_unlock(&lock);
}

/* Removes dead entries, or all, from the worker's list. */
static void sweep(struct worker *w, bool all)
{
	struct code *gone = NULL;
	pthread_mutex_lock(&lock);
	for (struct code **at = &w->codes, *c; (c = *at);) {
		if (!all && !atomic_load(&c->dead)) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		c->next = gone;
		gone = c;
	}
	pthread_mutex_unlock(&lock);
	for (struct code *c; (c = gone);) {
		gone = c->next;
		destroy_graphs(c);
		free(c);
	}
}

void slp_graph_clear(void)
{
	struct worker *w = &workers[starpu_worker_get_id()];
	sweep(w, true);
	if (w->stream) cudaStreamDestroy(w->stream);
	w->stream = NULL;
}

/* NULL without memory. */
static struct code *code_of(struct worker *w, uint64_t number)
{
	for (struct code *c = w->codes; c; c = c->next) /* only this worker changes its list */
		if (c->number == number) return c;
	sweep(w, false);
	struct code *c = slp_try_calloc(1, sizeof *c);
	if (!c) return NULL;
	c->number = number;
	pthread_mutex_lock(&lock);
	c->next = w->codes;
	w->codes = c;
	pthread_mutex_unlock(&lock);
	return c;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

/* The kernels of a call as a graph; false with nothing left behind. */
static bool record(const struct slp_graph_run *r, struct worker *w, int call, cudaGraph_t *to)
{
	*to = NULL;
	if (cudaStreamBeginCapture(w->stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return false;
	bool ok = r->launch(r->arg, call, w->stream);
	ok = cudaStreamEndCapture(w->stream, to) == cudaSuccess && ok;
	if (ok || !*to) return ok;
	cudaGraphDestroy(*to);
	return false;
}

static bool is_empty(cudaGraph_t g)
{
	size_t n = 0;
	return cudaGraphGetNodes(g, NULL, &n) == cudaSuccess && n == 0;
}

/* Kernels one after the other, and their launch parameters. */
struct kernels {
	int count;
	cudaGraphNode_t nodes[MOST_KERNELS];
	struct cudaKernelNodeParams params[MOST_KERNELS];
};

/* The nodes of a chain in their order; false: it is none, or too long. */
static bool in_order(cudaGraph_t g, struct kernels *k)
{
#if CUDART_VERSION >= 13000 /* where attributes of nodes are copied in the order that is documented */
	cudaGraphNode_t from[MOST_KERNELS], to[MOST_KERNELS];
	size_t nodes = 0, edges = 0;
	if (cudaGraphGetNodes(g, NULL, &nodes) != cudaSuccess || nodes < 1 || nodes > MOST_KERNELS) return false;
	if (cudaGraphGetEdges(g, NULL, NULL, NULL, &edges) != cudaSuccess || edges != nodes - 1) return false;
	if (edges && cudaGraphGetEdges(g, from, to, NULL, &edges) != cudaSuccess) return false;
	if (cudaGraphGetNodes(g, k->nodes, &nodes) != cudaSuccess) return false;
	for (size_t i = 0; i < edges; i++) /* the first comes after none */
		if (to[i] == k->nodes[0]) k->nodes[0] = from[i], i = (size_t)-1;
	for (k->count = 1; k->count < (int)nodes; k->count++) {
		size_t next = 0;
		while (next < edges && from[next] != k->nodes[k->count - 1]) next++;
		if (next == edges) return false;
		k->nodes[k->count] = to[next];
	}
	return true;
#else
	(void)g;
	k->count = 0;
	return false;
#endif
}

static bool are_kernels(cudaGraph_t g, struct kernels *k)
{
	bool ok = in_order(g, k);
	for (int i = 0; ok && i < k->count; i++) {
		enum cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
		ok = cudaGraphNodeGetType(k->nodes[i], &type) == cudaSuccess && type == cudaGraphNodeTypeKernel &&
		     cudaGraphKernelNodeGetParams(k->nodes[i], &k->params[i]) == cudaSuccess;
	}
	if (!ok) cudaGetLastError(); /* it becomes a child */
	return ok;
}

static bool add_kernel(struct graph *g, const struct kernels *k, int i, const cudaGraphNode_t *before,
                       cudaGraphNode_t *to)
{
	return cudaGraphAddKernelNode(to, g->graph, before, before != NULL, &k->params[i]) == cudaSuccess &&
	       cudaGraphKernelNodeCopyAttributes(*to, k->nodes[i]) == cudaSuccess;
}

/* Adds the kernels of a part behind the node before, if there is one, or the part as a child. */
static bool add_part(struct graph *g, struct call_nodes *c, cudaGraph_t part, const cudaGraphNode_t *before)
{
	struct kernels k;
	bool ok = true;
	c->child = !are_kernels(part, &k);
	c->count = c->child ? 1 : k.count;
	if (!(c->nodes = slp_try_calloc((size_t)c->count, sizeof *c->nodes))) return false;
	if (c->child)
		return cudaGraphAddChildGraphNode(c->nodes, g->graph, before, before != NULL, part) == cudaSuccess;
	for (int i = 0; ok && i < c->count; i++) ok = add_kernel(g, &k, i, i ? &c->nodes[i - 1] : before, &c->nodes[i]);
	return ok;
}

/* Adds the call behind the node before, if there is one, which its last one becomes. */
static bool add_call(const struct slp_graph_run *r, struct worker *w, struct graph *g, int call,
                     cudaGraphNode_t *before)
{
	cudaGraph_t part;
	struct call_nodes *c = &g->calls[call];
	if (!record(r, w, call, &part)) return false;
	bool ok = is_empty(part) || add_part(g, c, part, *before ? before : NULL);
	cudaGraphDestroy(part);
	if (ok && c->count) *before = c->nodes[c->count - 1];
	return ok;
}

static bool make_graph(const struct slp_graph_run *r, struct worker *w, struct graph *g)
{
	g->calls = slp_try_calloc((size_t)r->ncalls, sizeof *g->calls);
	g->ncalls = r->ncalls;
	g->keys = slp_try_malloc(r->bytes);
	bool ok = g->calls && g->keys && cudaGraphCreate(&g->graph, 0) == cudaSuccess;
	cudaGraphNode_t before = NULL;
	for (int i = 0; i < r->ncalls && ok; i++) ok = add_call(r, w, g, i, &before);
	ok = ok && before && cudaGraphInstantiateWithFlags(&g->exec, g->graph, 0) == cudaSuccess;
	if (ok) memcpy(g->keys, r->keys, r->bytes);
	else destroy_graph(g);
	return ok;
}

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static bool differs(const struct slp_graph_run *r, const struct graph *g, size_t begin, size_t end)
{
	return memcmp(g->keys + begin, r->keys + begin, end - begin) != 0;
}

static bool call_differs(const struct slp_graph_run *r, const struct graph *g, int call)
{
	const struct slp_graph_call *c = &r->calls[call];
	return differs(r, g, c->addresses, c->addresses_end) || differs(r, g, c->attrs, c->attrs_end);
}

static int count_different(const struct slp_graph_run *r, const struct graph *g)
{
	int n = 0;
	for (int i = 0; i < r->ncalls; i++) n += call_differs(r, g, i);
	return n;
}

enum change { CHANGED, MUST_BE_MADE, FAILED };

/* The same kernels, launched with other arguments. */
static bool set_kernels(struct graph *g, const struct call_nodes *c, cudaGraph_t part)
{
	struct kernels k;
	struct cudaKernelNodeParams before;
	bool ok = are_kernels(part, &k) && k.count == c->count;
	for (int i = 0; ok && i < c->count; i++)
		ok = cudaGraphKernelNodeGetParams(c->nodes[i], &before) == cudaSuccess &&
		     before.func == k.params[i].func &&
		     cudaGraphExecKernelNodeSetParams(g->exec, c->nodes[i], &k.params[i]) == cudaSuccess;
	return ok;
}

static bool set_part(struct graph *g, const struct call_nodes *c, cudaGraph_t part)
{
	if (is_empty(part) || !c->count) return is_empty(part) && !c->count;
	if (!c->child) return set_kernels(g, c, part);
	return cudaGraphExecChildGraphNodeSetParams(g->exec, c->nodes[0], part) == cudaSuccess;
}

static enum change change_call(const struct slp_graph_run *r, struct worker *w, struct graph *g, int call)
{
	cudaGraph_t part;
	if (!record(r, w, call, &part)) return FAILED;
	bool ok = set_part(g, &g->calls[call], part);
	cudaGraphDestroy(part);
	SLP_COUNT(graph_changes);
	return ok ? CHANGED : MUST_BE_MADE;
}

/* Records the calls again that are others than in the graph. */
static enum change change_graph(const struct slp_graph_run *r, struct worker *w, struct graph *g)
{
	enum change result = CHANGED;
	for (int i = 0; i < r->ncalls && result == CHANGED; i++)
		if (call_differs(r, g, i)) result = change_call(r, w, g, i);
	if (result == CHANGED) memcpy(g->keys, r->keys, r->bytes);
	return result;
}

/* ---- the graph for a run ----------------------------------------------------------------------------------------- */

/* The graph with the fewest other calls; NULL: none. */
static struct graph *nearest(const struct slp_graph_run *r, struct code *c, int *different)
{
	struct graph *best = NULL;
	for (int i = 0; i < c->ngraphs; i++) {
		int n = differs(r, &c->graphs[i], 0, r->bytes) ? count_different(r, &c->graphs[i]) : 0;
		if (best && n >= *different) continue;
		best = &c->graphs[i];
		*different = n;
	}
	return best;
}

static struct graph *oldest(struct code *c)
{
	struct graph *g = &c->graphs[0];
	for (int i = 1; i < c->ngraphs; i++)
		if (c->graphs[i].used < g->used) g = &c->graphs[i];
	return g;
}

/* A new one in the place of `old`, or beside the others; NULL: it cannot be made, or too many were. */
static struct graph *new_graph(struct slp_graph_run *r, struct worker *w, struct code *c, struct graph *old)
{
	if (!old && c->ngraphs == GRAPHS) old = oldest(c);
	if (old && ++c->remade > MOST_REMADE) return NULL;
	struct graph *g = old ? old : &c->graphs[c->ngraphs];
	if (old) destroy_graph(old);
	r->made = true;
	if (!make_graph(r, w, g)) return NULL;
	if (!old) c->ngraphs++;
	SLP_COUNT(graphs);
	return g;
}

/* NULL: there is none, and will be none. */
static struct graph *graph_for(struct slp_graph_run *r, struct worker *w, struct code *c)
{
	int different = 0;
	struct graph *g = nearest(r, c, &different);
	if (g && !different) c->remade = 0;
	if (g && !different) return g;
	bool same_place = g && !differs(r, g, 0, r->addresses);
	if (!same_place && (c->ngraphs < GRAPHS || different > r->ncalls / 2)) return new_graph(r, w, c, NULL);
	enum change change = change_graph(r, w, g);
	if (change == CHANGED) c->remade = 0;
	if (change == CHANGED) return g;
	cudaGetLastError();
	return change == MUST_BE_MADE ? new_graph(r, w, c, g) : NULL;
}

/* ---- the place of a run ------------------------------------------------------------------------------------------ */

static bool is_same_place(const struct slp_graph_place *a, const struct slp_graph_place *b)
{
	return a->bases && a->scratch == b->scratch && a->bases_bytes == b->bases_bytes &&
	       a->patches_bytes == b->patches_bytes && !memcmp(a->bases, b->bases, a->bases_bytes) &&
	       (!a->patches_bytes || !memcmp(a->patches, b->patches, a->patches_bytes));
}

/* Without memory its next run is found by its keys. */
static void keep_place(struct graph *g, const struct slp_graph_place *p)
{
	size_t bytes = p->bases_bytes + p->patches_bytes;
	if (!g->place_bytes || bytes != g->place.bases_bytes + g->place.patches_bytes) {
		free(g->place_bytes);
		g->place_bytes = slp_try_malloc(bytes);
	}
	g->place = (struct slp_graph_place){0};
	if (!g->place_bytes) return;
	memcpy(g->place_bytes, p->bases, p->bases_bytes);
	if (p->patches_bytes) memcpy(g->place_bytes + p->bases_bytes, p->patches, p->patches_bytes);
	g->place = *p;
	g->place.bases = g->place_bytes;
	g->place.patches = g->place_bytes + p->bases_bytes;
}

static bool has_stream(struct worker *w)
{
	return w->stream || cudaStreamCreateWithFlags(&w->stream, cudaStreamNonBlocking) == cudaSuccess;
}

bool slp_graph_is_due(uint64_t number)
{
	struct code *c = code_of(&workers[starpu_worker_get_id()], number);
	if (!c || c->plain) return false;
	if (c->runs == PLAIN_RUNS) return true;
	c->runs++;
	return false;
}

static bool launch(struct worker *w, struct code *c, struct graph *g)
{
	if (cudaGraphLaunch(g->exec, starpu_cuda_get_local_stream()) != cudaSuccess) return give_up(c);
	g->used = ++w->clock;
	SLP_COUNT(graph_launches);
	return true;
}

bool slp_graph_again(uint64_t number, const struct slp_graph_place *place)
{
	struct worker *w = &workers[starpu_worker_get_id()];
	struct code *c = code_of(w, number);
	for (int i = 0; c && i < c->ngraphs; i++) {
		if (!is_same_place(&c->graphs[i].place, place)) continue;
		cudaGetLastError(); /* errors that StarPU has handled */
		c->remade = 0;
		return launch(w, c, &c->graphs[i]);
	}
	return false;
}

bool slp_graph_launch(struct slp_graph_run *r)
{
	struct worker *w = &workers[starpu_worker_get_id()];
	struct code *c = code_of(w, r->code);
	r->made = false;
	if (!c || c->plain) return false;
	cudaGetLastError(); /* errors that StarPU has handled */
	struct graph *g = has_stream(w) ? graph_for(r, w, c) : NULL;
	if (!g) return give_up(c);
	if (!launch(w, c, g)) return false;
	keep_place(g, &r->place);
	return true;
}

#else

bool slp_graph_is_due(uint64_t code)
{
	(void)code;
	return false;
}

bool slp_graph_again(uint64_t code, const struct slp_graph_place *place)
{
	(void)code, (void)place;
	return false;
}

bool slp_graph_launch(struct slp_graph_run *run)
{
	(void)run;
	return false;
}

void slp_graph_forget(uint64_t code)
{
	(void)code;
}

void slp_graph_clear(void)
{
}
#endif
