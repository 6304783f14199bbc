/* CUDA graphs of prepared code (cuda_graph.c). */
#ifndef SLP_CUDA_GRAPH_H
#define SLP_CUDA_GRAPH_H

#include "config.h"
#include "runtime/engine.h"
#include "runtime/task/record.h"

enum { SLP_GRAPH_CALLS = 4 }; /* with fewer, launching the kernels one by one is as cheap */

/* Whether runs of these calls, prepared code, are worth a graph and may be one. */
static inline bool slp_may_be_graph(const struct slp_call_list *p)
{
#ifdef HAVE_CUDA
	return slp_engine.config.cuda_graphs > 0 && p->code && p->graph && p->nops >= SLP_GRAPH_CALLS;
#else
	(void)p;
	return false;
#endif
}

/* The data that the kernels of a call depend on, besides its operation and its types: bytes [begin, end) of the run's
 * keys. */
struct slp_graph_call {
	size_t addresses, addresses_end; /* where its operands lie */
	size_t attrs, attrs_end;
};

/* All that the keys of a run of some code follow from, in a fraction of their bytes. */
struct slp_graph_place {
	const void *bases; /* the addresses of its slots */
	const void *patches;
	size_t bases_bytes, patches_bytes;
	const void *scratch;
};

/* A run of prepared code by the calling CUDA worker. */
struct slp_graph_run {
	uint64_t code; /* its number */
	int ncalls;
	const struct slp_graph_call *calls;
	const char *keys; /* the addresses of all calls, then their attributes */
	size_t addresses; /* bytes of all of the former */
	size_t bytes;     /* and of both */
	struct slp_graph_place place;
	bool (*launch)(void *arg, int call, void *stream); /* queues the kernels of a call; false: that failed */
	void *arg;
	bool made; /* result: a graph was made, which takes longer than to launch one */
};

/* Whether a run of this code by the calling worker should be a graph: not the first runs, nor after a failure. */
bool slp_graph_is_due(uint64_t code);
/* Queues a run whose place is that of the last run of a graph, as it is in training: without a look at its calls.  False:
 * nothing was queued, and slp_graph_launch is next. */
bool slp_graph_again(uint64_t code, const struct slp_graph_place *place);
/* Queues the whole run; false: nothing was queued, and the calls must be run one by one. */
bool slp_graph_launch(struct slp_graph_run *run);
uint64_t slp_graph_code(void);        /* a number for new code */
void slp_graph_forget(uint64_t code); /* it will not run again */
void slp_graph_clear(void);           /* all of the calling worker's */

#endif
