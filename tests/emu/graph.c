/* Emulated GPUs: CUDA graphs.  What is queued on a stream while it is captured becomes the nodes of a graph instead.
 *
 * Only chains are emulated: each node comes after the one before.  What a thread must not do while it captures fails
 * with cudaErrorStreamCaptureUnsupported, and the capture is lost.  Copies from or to main memory in a graph, and
 * graphs that use memory which has been freed since, end the program. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* What runs as a kernel; several nodes, and the queue, may share it. */
struct payload {
	int refs;
	void (*run)(void *), *arg, (*drop)(void *);
};

struct CUgraphNode_st {
	struct CUgraphNode_st *next;
	struct CUgraph_st *graph, *child;    /* the graph that it belongs to; its own nodes, or NULL */
	const struct CUgraphNode_st *origin; /* in an executable graph: the node that it was made of */
	struct emu_work work;
	const void **pointers; /* of a kernel: its arguments */
	int npointers;
};

struct CUgraph_st {
	struct CUgraphNode_st *first, *last;
	size_t count;
};

struct CUgraphExec_st {
	struct CUgraph_st *graph;
	int device;
};

static void *allocate(size_t n)
{
	void *p = calloc(1, n ? n : 1);
	if (!p) emu_misuse("no memory");
	return p;
}

/* ---- payloads --------------------------------------------------------------------------------------------------- */

static void payload_run(void *arg)
{
	const struct payload *p = arg;
	p->run(p->arg);
}

static void payload_drop(void *arg)
{
	struct payload *p = arg;
	if (__atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL)) return;
	if (p->drop) p->drop(p->arg);
	free(p);
}

static void payload_keep(const struct emu_work *w)
{
	if (w->kind == EMU_RUN) __atomic_add_fetch(&((struct payload *)w->arg)->refs, 1, __ATOMIC_RELAXED);
}

static void share_kernel(struct emu_work *w)
{
	struct payload *p = allocate(sizeof *p);
	*p = (struct payload){1, w->run, w->arg, w->drop};
	w->run = payload_run;
	w->arg = p;
	w->drop = payload_drop;
}

/* ---- pointers of the next kernel -------------------------------------------------------------------------------- */

enum { POINTERS = 1024 };
static __thread const void *noted[POINTERS];
static __thread int nnoted;

void emu_note_pointer(const void *p)
{
	if (!emu_captures_here()) return;
	if (nnoted == POINTERS) emu_misuse("a kernel with more than %d pointers", POINTERS);
	noted[nnoted++] = p;
}

static void take_pointers(struct CUgraphNode_st *n)
{
	n->npointers = nnoted;
	n->pointers = allocate((size_t)nnoted * sizeof *n->pointers);
	memcpy(n->pointers, noted, (size_t)nnoted * sizeof *n->pointers);
	nnoted = 0;
}

/* ---- graphs ----------------------------------------------------------------------------------------------------- */

static struct CUgraphNode_st *append(struct CUgraph_st *g)
{
	struct CUgraphNode_st *n = allocate(sizeof *n);
	n->graph = g;
	if (g->last) g->last->next = n;
	else g->first = n;
	g->last = n;
	g->count++;
	return n;
}

static void free_graph(struct CUgraph_st *g)
{
	while (g && g->first) {
		struct CUgraphNode_st *n = g->first;
		g->first = n->next;
		if (n->child) free_graph(n->child);
		else if (n->work.kind == EMU_RUN) payload_drop(n->work.arg);
		free(n->pointers);
		free(n);
	}
	free(g);
}

static struct CUgraph_st *copy_of(const struct CUgraph_st *g)
{
	struct CUgraph_st *copy = allocate(sizeof *copy);
	for (const struct CUgraphNode_st *n = g->first; n; n = n->next) {
		struct CUgraphNode_st *c = append(copy);
		c->origin = n;
		c->work = n->work;
		c->npointers = n->npointers;
		c->pointers = allocate((size_t)n->npointers * sizeof *c->pointers);
		if (n->npointers) memcpy(c->pointers, n->pointers, (size_t)n->npointers * sizeof *c->pointers);
		if (n->child) c->child = copy_of(n->child);
		else payload_keep(&n->work);
	}
	return copy;
}

/* Whether one can take the place of the other: nodes of the same kinds in the same order. */
static bool alike(const struct CUgraph_st *a, const struct CUgraph_st *b)
{
	const struct CUgraphNode_st *n = a->first, *m = b->first;
	for (; n && m; n = n->next, m = m->next)
		if (!n->child != !m->child || n->work.kind != m->work.kind || (n->child && !alike(n->child, m->child)))
			return false;
	return !n && !m;
}

cudaError_t cudaGraphCreate(cudaGraph_t *to, unsigned flags)
{
	if (flags) return emu_result(cudaErrorInvalidValue);
	*to = allocate(sizeof **to);
	return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
	if (!g) return emu_result(cudaErrorInvalidValue);
	free_graph(g);
	return cudaSuccess;
}

/* In the reverse order: a GPU promises none. */
cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t *nodes, size_t *count)
{
	size_t i = g->count;
	if (nodes && *count < g->count) emu_misuse("cudaGraphGetNodes: no room for all nodes");
	for (struct CUgraphNode_st *n = g->first; nodes && n; n = n->next) nodes[--i] = n;
	*count = g->count;
	return cudaSuccess;
}

/* Of a chain. */
static size_t edges(cudaGraph_t g, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t room)
{
	size_t count = g->count ? g->count - 1 : 0;
	if (from && room < count) emu_misuse("cudaGraphGetEdges: no room for all edges");
	size_t i = count;
	for (struct CUgraphNode_st *n = g->first; from && n && n->next; n = n->next) {
		from[--i] = n;
		to[i] = n->next;
	}
	return count;
}

#if CUDART_VERSION >= 13000
cudaError_t cudaGraphGetEdges(cudaGraph_t g, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data,
                              size_t *n)
{
	if (data) emu_misuse("cudaGraphGetEdges: data of edges are not emulated");
	*n = edges(g, from, to, *n);
	return cudaSuccess;
}
#else
cudaError_t cudaGraphGetEdges(cudaGraph_t g, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *n)
{
	*n = edges(g, from, to, *n);
	return cudaSuccess;
}
#endif

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t n, enum cudaGraphNodeType *type)
{
	*type = n->child                  ? cudaGraphNodeTypeGraph
	        : n->work.kind == EMU_RUN ? cudaGraphNodeTypeKernel
	        : n->work.kind == EMU_SET ? cudaGraphNodeTypeMemset
	                                  : cudaGraphNodeTypeMemcpy;
	return cudaSuccess;
}

/* The arguments are the node, which has them. */
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t n, struct cudaKernelNodeParams *p)
{
	if (n->child || n->work.kind != EMU_RUN) return emu_result(cudaErrorInvalidValue);
	const struct payload *kernel = n->work.arg;
	*p = (struct cudaKernelNodeParams){.kernelParams = (void **)n};
	memcpy(&p->func, &kernel->run, sizeof p->func);
	return cudaSuccess;
}

static void take_kernel(struct CUgraphNode_st *to, const struct cudaKernelNodeParams *p)
{
	const struct CUgraphNode_st *from = (const struct CUgraphNode_st *)p->kernelParams;
	to->work = from->work;
	payload_keep(&to->work);
	to->npointers = from->npointers;
	to->pointers = allocate((size_t)from->npointers * sizeof *to->pointers);
	if (from->npointers) memcpy(to->pointers, from->pointers, (size_t)from->npointers * sizeof *to->pointers);
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *to, cudaGraph_t g, const cudaGraphNode_t *after, size_t n,
                                   const struct cudaKernelNodeParams *p)
{
	if (!g || n != (g->last ? 1 : 0) || (n && after[0] != g->last))
		emu_misuse("cudaGraphAddKernelNode: only chains are emulated");
	*to = append(g);
	take_kernel(*to, p);
	return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from)
{
	return to->work.kind == EMU_RUN && from->work.kind == EMU_RUN ? cudaSuccess : emu_result(cudaErrorInvalidValue);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *to, cudaGraph_t g, const cudaGraphNode_t *after, size_t n,
                                       cudaGraph_t child)
{
	if (!g || !child || n != (g->last ? 1 : 0) || (n && after[0] != g->last))
		emu_misuse("cudaGraphAddChildGraphNode: only chains are emulated");
	*to = append(g);
	(*to)->child = copy_of(child);
	return cudaSuccess;
}

/* ---- capture ---------------------------------------------------------------------------------------------------- */

static __thread struct emu_capture *mine; /* of a stream that the calling thread captures */

bool emu_captures_here(void)
{
	return mine && !mine->lost;
}

bool emu_is_forbidden(void)
{
	if (!mine) return false;
	mine->lost = true;
	return true;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, enum cudaStreamCaptureMode mode)
{
	if (!emu_start()) return emu_result(cudaErrorNoDevice);
	if (!handle || handle == cudaStreamLegacy) return emu_result(cudaErrorStreamCaptureUnsupported);
	struct emu_capture *c = emu_capture_of(handle);
	if (c->graph) return emu_result(cudaErrorIllegalState);
	if (mode != cudaStreamCaptureModeThreadLocal || mine)
		emu_misuse("capture: only one a thread, and only the mode of a thread, are emulated");
	nnoted = 0;
	*c = (struct emu_capture){.graph = allocate(sizeof(struct CUgraph_st))};
	mine = c;
	return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *to)
{
	*to = NULL;
	struct emu_capture *c = handle ? emu_capture_of(handle) : NULL;
	if (!c || !c->graph) return emu_result(cudaErrorIllegalState);
	if (c != mine) return emu_result(cudaErrorStreamCaptureWrongThread);
	if (c->lost) free_graph(c->graph);
	else *to = c->graph;
	*c = (struct emu_capture){0};
	mine = NULL;
	return *to ? cudaSuccess : emu_result(cudaErrorStreamCaptureInvalidated);
}

/* Instead of the queue of a stream. */
cudaError_t emu_record(struct emu_capture *c, struct emu_work *w)
{
	cudaError_t error = cudaErrorStreamCaptureInvalidated;
	if (c != mine) emu_misuse("work of another thread on a stream that is captured");
	if (w->kind > EMU_MOVE) emu_misuse("events in captures are not emulated");
	if (w->kind == EMU_MOVE && (w->source == EMU_HOST || w->target == EMU_HOST))
		emu_misuse("a copy from or to main memory is captured");
	if (!c->lost && w->kind == EMU_RUN && emu_fails(EMU_CAPTURE, &error)) c->lost = true;
	if (c->lost) {
		if (w->kind == EMU_RUN && w->drop) w->drop(w->arg);
		free(w);
		nnoted = 0;
		return emu_result(error);
	}
	struct CUgraphNode_st *n = append(c->graph);
	if (w->kind == EMU_RUN) share_kernel(w);
	n->work = *w;
	n->work.next = NULL;
	take_pointers(n);
	free(w);
	return cudaSuccess;
}

/* ---- executable graphs ------------------------------------------------------------------------------------------ */

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *to, cudaGraph_t g, unsigned long long flags)
{
	if (emu_is_forbidden()) return emu_result(cudaErrorStreamCaptureUnsupported);
	if (flags) return emu_result(cudaErrorInvalidValue);
	*to = allocate(sizeof **to);
	(*to)->graph = copy_of(g);
	(*to)->device = emu_current();
	emu_count_graph(emu_current(), EMU_GRAPH_MADE, 1);
	return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e)
{
	if (!e) return emu_result(cudaErrorInvalidValue);
	free_graph(e->graph);
	free(e);
	return cudaSuccess;
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node, cudaGraph_t child)
{
	cudaError_t error;
	struct CUgraphNode_st *n = e->graph->first;
	while (n && n->origin != node) n = n->next;
	if (!n || !n->child) return emu_result(cudaErrorInvalidValue);
	if (emu_fails(EMU_UPDATE, &error)) return emu_result(error);
	if (!alike(n->child, child)) return emu_result(cudaErrorGraphExecUpdateFailure);
	free_graph(n->child);
	n->child = copy_of(child);
	emu_count_graph(e->device, EMU_GRAPH_CHANGED, 1);
	return cudaSuccess;
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t e, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *p)
{
	cudaError_t error;
	struct CUgraphNode_st *n = e->graph->first;
	while (n && n->origin != node) n = n->next;
	if (!n || n->child || n->work.kind != EMU_RUN) return emu_result(cudaErrorInvalidValue);
	if (emu_fails(EMU_UPDATE, &error)) return emu_result(error);
	payload_drop(n->work.arg);
	free(n->pointers);
	take_kernel(n, p);
	emu_count_graph(e->device, EMU_GRAPH_CHANGED, 1);
	return cudaSuccess;
}

static void check_side(struct emu_device *d, const char *alias, size_t bytes)
{
	if (alias >= d->alias && alias < d->alias + d->span) emu_alias(d, d->base + (alias - d->alias), bytes, "graph");
}

/* Memory that its nodes use is still allocated. */
static void check_memory(struct emu_device *d, const struct CUgraphNode_st *n)
{
	const struct emu_work *w = &n->work;
	for (int i = 0; i < n->npointers; i++)
		if (emu_device_of(n->pointers[i]) == d) emu_alias(d, n->pointers[i], 0, "graph");
	if (w->kind == EMU_SET) check_side(d, w->to, w->width);
	if (w->kind == EMU_MOVE && w->height == 1 && w->depth == 1) check_side(d, w->to, w->width);
	if (w->kind == EMU_MOVE && w->height == 1 && w->depth == 1) check_side(d, w->from, w->width);
}

static void launch(const struct CUgraph_st *g, int device, cudaStream_t s)
{
	for (const struct CUgraphNode_st *n = g->first; n; n = n->next) {
		if (n->child) {
			emu_count_graph(device, EMU_GRAPH_CHILDREN, 1);
			launch(n->child, device, s);
			continue;
		}
		check_memory(&emu_devices[device], n);
		struct emu_work *w = emu_work_new(n->work.kind);
		*w = n->work;
		payload_keep(w);
		if (w->kind == EMU_RUN) emu_count_graph(device, EMU_GRAPH_KERNELS, 1);
		emu_submit(emu_stream_of(s), w);
	}
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s)
{
	cudaError_t error = cudaErrorNoDevice;
	if (!emu_start() || emu_fails(EMU_GRAPH, &error)) return emu_result(error);
	if (e->device != emu_current())
		emu_misuse("a graph of gpu:%d while gpu:%d is current", e->device, emu_current());
	emu_count_graph(e->device, EMU_GRAPH_LAUNCHED, 1);
	launch(e->graph, e->device, s);
	return cudaSuccess;
}
