/* Additional data for StarPU's traces (FxT): readable names, call sites, blocks, colours, iterations.  It costs nothing
 * unless a trace is recorded. */
#ifndef SLP_FXT_H
#define SLP_FXT_H

#include "runtime/compat.h"
#include "runtime/observe/layers.h"

extern atomic_bool slp_fxt_on;     /* a trace is recorded */
extern atomic_bool slp_fxt_naming; /* call sites name blocks: for a trace, or a profile */

void slp_fxt_start(void);
void slp_fxt_stop(void);

/* A call site, "file:line", with the block or phase that it belongs to: "file:line [net0/conv1]". */
const char *slp_fxt_call_site_in_block(const char *at);
static inline const char *slp_fxt_call_site(const char *at)
{
	return slp_fxt_naming ? slp_fxt_call_site_in_block(at) : at;
}

/* The block in "file:line [block]", up to the bracket; empty: none. */
const char *slp_fxt_block_path(const char *at);

/* Calls of this thread belong to a block or phase of that name from now on; returns the argument for leaving it. */
const char *slp_fxt_enter(const char *name);
void slp_fxt_leave(const char *outer);

/* Locked: describes the task before it is submitted. */
void slp_fxt_task(struct slp_segment *segment, struct starpu_task *task);

/* The times of the current task's calls, by layer. */
void slp_fxt_spent(const struct slp_layers *layers, const double *seconds);
/* Joules since the last call, or NAN, of the processors and of the GPUs. */
void slp_fxt_energy(double cpu, double gpu);
/* The calling thread has waited since then (sl_time). */
void slp_fxt_waited(const char *what, double since);

/* A training step is over; counts as an iteration unless the program numbers its own. */
void slp_fxt_step_done(void);

#endif
