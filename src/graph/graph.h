/* Internals of graphs: the programs that passes change and plans are made from.
 *
 * Nodes stand in an order in which they can run: arguments before users, and a node that writes a parameter after all
 * readers of its old value and before all readers of the new one. Passes keep that order. Values are {node, output}. */
#ifndef SLP_GRAPH_H
#define SLP_GRAPH_H

#include "op.h"
#include "runtime/fault.h"
#include "starling/graph.h"
#include "tensor/tensor.h"

enum slp_node_kind {
	SLP_NODE_INPUT, /* given at each run */
	SLP_NODE_PARAM, /* a tensor that the program reads and may write: bound, its values may change between runs */
	SLP_NODE_CONST, /* a tensor that never changes */
	SLP_NODE_OP,
};

struct slp_value {
	int node, out;
};

struct slp_gnode {
	enum slp_node_kind kind;
	const struct sl_op *op; /* of an operation */
	const char *at;         /* where the user called it; lives as long as the graph */
	const char *name;       /* unique; owned by the graph */
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs;
	int nin, nout;
	struct slp_value *in;                   /* owned */
	struct slp_type types[SLP_MAX_OUTPUTS]; /* shape.ndim -1: not known */
	sl_tensor *tensor;                      /* of a parameter or constant; a reference is held */
	int before;                             /* slp_graph_compact moves it just before this node; -1: it stays */
	bool dead;                              /* removed; slp_graph_compact drops it */
	bool backward;                          /* made by sl_backward */
	int repeat; /* in a part that the backward pass recomputes: the part's number; else 0 */
};

/* Names with a number each: a hash table.  The names stay the caller's. */
struct slp_names {
	struct slp_name {
		const char *text; /* NULL: the entry is free */
		int number;
	} * list;
	size_t count, capacity;
};
/* The entry of a name, NULL if there is none; adding one (which must not exist), false without memory. */
struct slp_name *slp_names_find(const struct slp_names *names, const char *text);
bool slp_names_add(struct slp_names *names, const char *text, int number);

struct sl_graph {
	struct slp_gnode *nodes;
	int count, capacity;
	struct slp_value *outputs;
	const char **output_names; /* NULL: that of the node */
	int noutputs;
	int *inputs; /* nodes, in the order in which a run takes them */
	int ninputs;
	int nrandom;      /* random streams a run draws: see slp_draws.count */
	sl_device device; /* where it will run, once that is known: constants are computed there */
	struct slp_string {
		struct slp_string *next;
		char text[];
	} * strings;
	struct slp_names names;
};

/* ---- building and changing (graph.c).  Functions that return int give a node's number, or -1 without memory ------ */

sl_graph *slp_graph_new(void);
sl_graph *slp_graph_copy(const sl_graph *g);
const char *slp_graph_string(sl_graph *g, const char *text); /* a copy that lives as long as the graph */
/* Appends; in[], attrs (NULL: zeros), at and name are copied; a name that is taken gets a number, name NULL is that of
 * the operation.  Types are not inferred, output shapes are unknown. */
int slp_graph_add_op(sl_graph *g, const char *at, const char *name, const struct sl_op *op, const void *attrs, int nin,
                     const struct slp_value *in);
int slp_graph_add_input(sl_graph *g, const char *at, const char *name, struct slp_type type);
int slp_graph_add_tensor(sl_graph *g, const char *at, const char *name, enum slp_node_kind kind, sl_tensor *t);
bool slp_graph_add_output(sl_graph *g, struct slp_value v, const char *name);
/* Changes a node into another operation on other arguments, in its place in the order; types are unknown again. */
bool slp_graph_rewrite(sl_graph *g, int node, const struct sl_op *op, const void *attrs, int nin,
                       const struct slp_value *in);
/* Turns a node with one result into a constant; a reference to t is taken. */
void slp_graph_make_const(sl_graph *g, int node, sl_tensor *t);
/* An appended node comes just before the one at `position`, which matters if it reads a parameter that is written. */
void slp_graph_before(sl_graph *g, int node, int position);
/* Removes a node; inputs stay. */
void slp_graph_kill(sl_graph *g, int node);
/* Brings nodes that were appended at the end into an order in which they can run (stable: other nodes keep their order,
 * and so do reads and writes of the same memory), drops dead nodes, and renumbers. false, with an error: no memory, or
 * no such order exists. */
bool slp_graph_compact(sl_graph *g);
/* The memory each value lies in: ids[value id], equal for parameters over one storage; malloc'd, NULL without
 * memory. */
int *slp_graph_memories(const sl_graph *g);
/* Whether a node writes each of these: by memory; malloc'd, NULL without memory. */
bool *slp_graph_written(const sl_graph *g, const int *memory);
/* The number of arguments and outputs that use each output: counts[node * SLP_MAX_OUTPUTS + out]; malloc'd, NULL
 * without memory. */
int *slp_graph_uses(const sl_graph *g);
/* Whether the node must stay even if its results are unused: it writes a parameter. */
bool slp_node_has_effect(const struct slp_gnode *n);
/* Whether a node writes its argument i. */
bool slp_node_writes(const struct slp_gnode *n, int i);
static inline const struct slp_type *slp_value_type(const sl_graph *g, struct slp_value v)
{
	return &g->nodes[v.node].types[v.out];
}
static inline int slp_value_id(struct slp_value v)
{
	return v.node * SLP_MAX_OUTPUTS + v.out;
}
static inline bool slp_value_equal(struct slp_value a, struct slp_value b)
{
	return a.node == b.node && a.out == b.out;
}
/* An attribute by name: its row in the table, its address in the node; NULL if there is none. */
const struct slp_attr *slp_attr_find(const struct sl_op *op, const char *name);
/* Whether attributes of two calls, completed by infer, are the same. */
bool slp_attrs_equal(const struct sl_op *op, const void *a, const void *b);
const void *slp_node_attr(const struct slp_gnode *n, const char *name);
/* Computes the result types of a node from the types of its arguments; errors name the node's call site.  Its
 * attributes keep the program's values: those that infer completes (a shape with -1) hold for these types only. */
enum sl_status slp_node_infer(sl_graph *g, int node);
/* The call that infer, flops, bytes, scratch and kernels of the operation look at: types filled in, attributes a copy
 * that infer has completed.  false, with an error, if it is wrong.  slp_call_free(c) afterwards. */
bool slp_node_call(const sl_graph *g, const struct slp_gnode *n, struct slp_infer *c);
void slp_call_free(struct slp_infer *c);
/* The random stream in a node's attributes; NULL: it draws none. */
struct slp_rng *slp_node_rng(struct slp_gnode *n);
/* Checks the invariants that passes keep: order, arguments in range, types known, no dead node used. For tests and
 * .check. */
enum sl_status slp_graph_verify(const sl_graph *g);

/* ---- running without a plan (evaluate.c): for folding, comparing, tests ------------------------------------------ */

/* Runs one operation; values are indexed by value id. Virtual random streams count from `first`. */
enum sl_status slp_node_apply(const sl_graph *g, int node, sl_tensor *const *values, struct slp_rng first,
                              sl_tensor **out);
/* Runs all operations, one by one; out gets a new reference for each output of the program, all NULL after an error. */
enum sl_status slp_graph_evaluate(const sl_graph *g, sl_tensor *const *in, int nin, sl_tensor **out);
/* Runs a traced graph operation by operation in the mode of this thread, recorded if it records, with the random
 * numbers of an earlier run, and without its effects.  out: the first nout results, in the innermost scope. */
enum sl_status slp_graph_repeat(const sl_graph *g, sl_tensor *const *in, struct slp_rng first, int nout,
                                sl_tensor **out);
/* The values of the parameters that the graph writes; they can be restored any number of times. */
struct slp_kept_values;
struct slp_kept_values *slp_values_keep(const sl_graph *g);
bool slp_values_restore(const struct slp_kept_values *p);
void slp_values_free(struct slp_kept_values *p);
/* SL_EINTERNAL, with a message that begins with what, if an element of b is not that of a: slp_is_close, with the
 * tolerance of float32 (slp_tolerance).  Infinities and NaN must be in the same places. */
enum sl_status slp_compare(const char *what, const char *name, sl_tensor *a, sl_tensor *b, double tolerance);
/* Runs both graphs on the same random inputs, random streams and parameters, restores the parameters' values, and
 * compares outputs and written parameters. */
enum sl_status slp_graph_compare(const char *what, const sl_graph *before, const sl_graph *after, double tolerance);

/* ---- passes (one file each: pass_NAME.c).  They leave a graph that verifies and computes the same ---------------- */

struct slp_pass {
	const char *name, *doc;
	enum sl_status (*run)(sl_graph *g);
};
/* In the order of SL_PASS_LIST; run is NULL for segment and memory, which belong to the plan (segment.c,
 * memory_plan.c). */
extern const struct slp_pass slp_passes[SL_PASSES];

/* ---- symbols (symbol.c) ------------------------------------------------------------------------------------------ */

/* While this thread traces, operations without inputs also give symbols. */
struct slp_trace {
	struct slp_pending before; /* an error from before: errors of the trace are kept apart from it */
	struct slp_trace *outer;
	int nrandom; /* virtual random streams given out */
	struct slp_bound {
		sl_tensor *tensor, *symbol; /* a tensor that the trace has met, and its symbol */
	} * bound;
	int nbound, max_bound;
	struct slp_symbol **effects; /* calls that change parameters, and variables */
	int neffects, max_effects;
	bool backward;                 /* calls are those of sl_backward */
	int repeat;                    /* calls are part of a recomputed block: its number; else 0 */
	int repeats;                   /* recomputed blocks so far */
	const struct slp_recorder *by; /* the thread's recorder outside */
	uint64_t names;                /* operations named in this trace */
	sl_device device;              /* of the symbols */
};
void slp_trace_begin(struct slp_trace *trace, sl_device device);
void slp_trace_end(struct slp_trace *trace); /* releases its references */
struct slp_trace *slp_trace_current(void);   /* NULL: none */
/* Lets operations run as usual for a while (to initialise a parameter); pass the result to slp_trace_resume. */
struct slp_trace *slp_trace_pause(void);
void slp_trace_resume(struct slp_trace *trace);
/* Names the block whose forward runs; returns the previous name, to be restored afterwards. */
const char *slp_trace_scope(const char *name);
/* The symbol that stands for a tensor in the current trace (outside a trace: a new one): a parameter, by reference. */
sl_tensor *slp_symbol_of(const char *at, sl_tensor *t, const char *name);

#endif
