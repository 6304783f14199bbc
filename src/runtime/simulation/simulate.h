/* Simulation: additional work of the engine if its StarPU simulates machines (SimGrid).  Kernels do not run then, and
 * time is simulated. */
#ifndef SLP_SIMULATE_H
#define SLP_SIMULATE_H

#include "config.h"
#include "runtime/task/buffer.h"
#include "runtime/task/record.h"

#ifdef SLP_SIMULATION

/* simulate.c */
int slp_simulated_cores(void);
int slp_simulated_gpus(void);
bool slp_simulate_start(const char *at); /* reads the machine; false with an error */
void slp_simulate_op(int op);            /* its rates, from the description of the machine */
void slp_simulate_memory(void);          /* lets the time pass that the first pinned memory takes */
void slp_simulate_model(struct starpu_perfmodel *model, int op); /* makes it compute times; op -1: of several calls */
/* The network that connects several such machines, from the description and sl-simulate. */
struct slp_simulated_network {
	int nodes;
	double bandwidth, latency; /* of each node's link, each way; bytes and seconds */
	double memory;             /* bytes a second that a core reads and writes, its part of all */
	double gpu, call;          /* the same of a GPU, and seconds of a call there */
	bool on_gpus;              /* gradients that lie on GPUs are added there */
	bool free;                 /* exchanges take no time */
	bool none;                 /* there are no exchanges: a node is alone */
};
bool slp_simulated_nodes(struct slp_simulated_network *network); /* false: there is one node only */
/* The use of the network by exchanges, for the report. */
struct slp_simulated_traffic {
	int nodes;
	uint64_t exchanges, bytes; /* that a node sent */
	double seconds;            /* that they took */
	double adding;             /* of which threads checked and added, beside the messages */
};
extern struct slp_simulated_traffic slp_simulated_traffic;
double slp_simulated_seconds(const struct slp_segment *segment, unsigned worker);
double slp_simulated_call_seconds(const struct slp_infer *call); /* of a call on a GPU, by the description */
/* Lets the time pass that the thread takes which submits. */
void slp_simulate_submission(const struct slp_segment *segment, const struct starpu_task *task);
/* The host has waited to read or write a buffer, whose main memory is at `memory` (NULL: not used): sets its values. */
void slp_simulate_access(struct slp_buffer *buffer, void *memory, bool write);

/* bound.c */
/* A task is submitted now, by a thread that works since `seconds`. */
void slp_bound_task(const struct slp_segment *segment, const struct starpu_task *task, double seconds);
void slp_bound_access(struct slp_buffer *buffer, bool write);
struct slp_bound {
	double area, path, pinned; /* seconds that the run takes at least, for three reasons */
};
void slp_bound_get(struct slp_bound *bound);
void slp_bound_clear(void);

/* report.c */
void slp_report_begin(void);
void slp_report_end(void);

#else

static inline bool slp_simulate_start(const char *at)
{
	(void)at;
	return true;
}
static inline void slp_simulate_submission(const struct slp_segment *segment, const struct starpu_task *task)
{
	(void)segment;
	(void)task;
}
static inline void slp_simulate_memory(void)
{
}
static inline double slp_simulated_call_seconds(const struct slp_infer *call)
{
	(void)call;
	return 0; /* not known */
}
static inline void slp_report_begin(void)
{
}
static inline void slp_report_end(void)
{
}
static inline void slp_simulate_access(struct slp_buffer *buffer, void *memory, bool write)
{
	(void)buffer;
	(void)memory;
	(void)write;
}

#endif
#endif
