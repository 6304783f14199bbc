/* A segment while it runs: its data, and the parts of running that a CUDA graph shares (execute.c, run_graph.c). */
#ifndef SLP_RUN_H
#define SLP_RUN_H

#include "runtime/task/segment.h"

/* The data of one segment while it runs. */
struct slp_run {
	struct slp_segment *seg;
	void **buffers; /* StarPU's interfaces */
	bool cuda;
	void *recorder; /* the stream that records CUDA's graphs, while it does */
	char *scratch;
	char **base;            /* of each slot */
	uint32_t *fault;        /* of each slot */
	struct slp_view *views; /* of one call; behind them, as many for its promoted operands */
	int max_operands;
	int call, patch; /* the next ones */
	bool spoilt;
	const struct slp_failure *told; /* it ran in another process; its failures */
	int ntold;
	struct slp_failure *tell; /* it runs for another process */
	int ntell, max_tell;
	bool elsewhere, for_master;
	bool no_room; /* in a slave process, which does not check the size beforehand */
};

char *slp_run_scratch(const struct slp_run *run); /* that kernels of its calls get */
/* The attributes of a call with its patches, in patched if there are any. */
const void *slp_run_patch_attrs(struct slp_run *run, const struct slp_record *r, char patched[SLP_MAX_ATTRS]);
void slp_run_set_views(const struct slp_run *run, const struct slp_record *r); /* of the operands of a call */
enum sl_status slp_run_call(struct slp_run *run, const struct slp_record *r, const void *attrs);
/* Runs all calls as one CUDA graph (run_graph.c); false: nothing has been queued. */
bool slp_run_as_graph(struct slp_run *run);

#endif
