/* A trace that starpu_fxt_tool wrote to a folder, for the summary, the picture and Perfetto.  Times are in milliseconds
 * since the trace began. */
#ifndef SL_TRACE_H
#define SL_TRACE_H

#include <stdbool.h>
#include <stdio.h>

/* The computations of tasks of one kind: a line of calls.tsv. */
struct kind {
	char *calls;     /* "linear(float32(256, 800), ...) -> ...; relu(...)" */
	char *family;    /* of the call that computes most: "CONVOLUTION" */
	unsigned colour; /* its, 0xrrggbb */
	struct layer {
		char *path;    /* "net0/dense1"; "": of no block */
		double weight; /* its approximate share of a task */
	} * layers;            /* of tasks whose calls belong to several; else none */
	int nlayers;
};

struct task {
	long id;
	char *name, *model;
	char *file;  /* its call site: file:line */
	char *block; /* of the network, or a phase: "net0/dense1"; NULL */
	char *footprint;
	const struct kind *kind; /* NULL: not one of Starling's */
	int worker, node;
	long priority, iteration, subiteration; /* iteration -1: none */
	int thread;                             /* of the program, that submitted it; -1: not known */
	double submit, start, end, gflop;
	long *deps; /* numbers of tasks; some have not run on any worker */
	int ndeps;
	double *spent; /* by each layer, as measured; NULL: on a GPU, or simulated */
};

/* A thread of the program waited. */
struct wait {
	double start, end;
	int thread;
	char *what, *at; /* "run-ahead", "sl_item at lenet.c:20" */
};

/* The activity of a worker from then on. */
struct state {
	double start;
	char *name;
};

struct worker {
	char *name; /* "CPU0", "CUDA0_0" */
	int node;
	struct state *states;
	int nstates;
};

struct transfer {
	char *key, *name, *kind;  /* of the value, or ""; StarPU's: F, TF, PF, IF */
	int from, to;             /* memory nodes */
	double start, end, bytes; /* end < 0: still running */
};

/* Joules of the processors and of the GPUs since the energy before it, or NAN. */
struct energy {
	double time, cpu, gpu;
};

enum counter_kind { READY, SUBMITTED, USED, BANDWIDTH_IN, BANDWIDTH_OUT, COUNTERS };

struct counter {
	enum counter_kind kind;
	int node; /* of memory; else 0 */
	double time, value;
};

/* Lists grow as they are read: X_count of them. */
struct trace {
	struct kind *kinds;
	struct task *tasks; /* of workers, by start */
	struct wait *waits;
	struct worker *workers;
	char **nodes; /* names of memory nodes: "RAM", "CUDA0" */
	struct transfer *transfers;
	struct counter *counters;
	struct energy *energies;
	int nkinds, ntasks, nwaits, nworkers, nnodes, ntransfers, ncounters, nenergies;
	double begin, end; /* of all tasks: first submission, last end */
};

/* A list with one more item, zeroed, at the end; ends the program without memory. */
void *list_add(void *list, int *count, size_t size);
char *text_copy(const char *text);
/* The file in the folder; ends the program if it cannot be read, or returns NULL if it is not needed. */
FILE *open_in(const char *folder, const char *name, bool needed);
void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

void read_kinds_and_tasks(struct trace *t, const char *folder);
void read_paje(struct trace *t, const char *folder);
struct task *task_by_id(const struct trace *t, long id);
/* The part of a task's time that one of its layers took, in milliseconds: as measured, else by the layers' weights. */
double layer_time(const struct task *task, int layer);
void write_picture(const struct trace *t, const char *path);
/* The tasks of an iteration (-1: one that took about as long as most) for Graphviz; expanded: with their layers. */
void write_dag(const struct trace *t, const char *path, long iteration, bool expanded);
void print_summary(const struct trace *t);
void print_title(const char *text);
void print_copies(const struct trace *t);
/* "offload", "fetch", "on demand", ... */
const char *copy_reason(const struct trace *t, const struct transfer *x);
void write_perfetto(const struct trace *t, const char *path);

#endif
