/* Data about tasks, kept on request, so that sl_explain can describe their results. */
#ifndef SLP_EXPLAIN_H
#define SLP_EXPLAIN_H

#include "runtime/engine.h"
#include "runtime/task/record.h"
#include "runtime/task/storage.h"

/* A device, as a task that was ready saw it. */
struct slp_prospect {
	int worker;
	bool able, allowed;        /* has kernels; may run it */
	double seconds, transfers; /* predicted; NAN: not known */
};

/* A buffer that a task reads. */
struct slp_travel {
	starpu_data_handle_t handle;
	size_t bytes;
	uint32_t valid; /* memory nodes that had its values when the task became ready, a bit each */
};

struct slp_explained_call {
	int op;
	/* Within `text`; what: beyond the operation's name; program: that it is part of. */
	const char *at, *what, *program;
};

/* A task: shared by its results, and by the task until it has ended. */
struct slp_explanation {
	atomic_int refs;
	bool done; /* changes under a lock of explain.c; StarPU's figures are valid from then on */
	sl_device device;
	const char *no_cuda; /* the first operation without a CUDA kernel for its types; NULL: none */
	struct slp_explained_call *calls;
	int ncalls;
	char *text;
	struct slp_prospect prospects[SLP_MAX_TEAMS + SLP_MAX_GPUS];
	int nprospects;
	struct slp_travel *reads;
	int nreads;
	int priority;                         /* of the task, where the policy sorts by it (priority.h) */
	int worker;                           /* that ran it; -1: none did */
	double blocked, queued, fetched, ran; /* seconds: until its inputs were there, and so on */
};

/* explain.c */
void slp_explain_start(void); /* the engine has started */
/* The segment's buffers are chosen, and its storages still known: links its results to the records; locked. */
void slp_explain_segment(struct slp_segment *seg);
void slp_explain_task(struct slp_segment *seg, struct starpu_task *task);
/* The task has ended, or could not be submitted; from its callback. */
void slp_explain_done(struct slp_segment *seg);
/* The storage's values are given otherwise, or it is freed. */
void slp_explain_drop(struct slp_storage *storage);
static inline void slp_explain_forget(struct slp_storage *storage)
{
	if (storage->explanation) slp_explain_drop(storage);
}
/* The records of a storage's values once their task has ended, with a reference; NULL: none.  Waits. */
struct slp_explanation *slp_explain_get(struct slp_storage *storage, int *call);
void slp_explain_release(struct slp_explanation *e);

/* explain_text.c */
void slp_explain_print(FILE *file, const struct slp_explanation *e, int call, const char *type);

#endif
