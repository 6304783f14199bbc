/* Graphs from the inside: the program that passes change and plans are made from.
 *
 * Nodes stand in an order in which they can run (arguments before users) and in which changes of parameters keep the
 * order of the calls: a node that writes a parameter comes after all that read its old value and before all that read
 * the new one.  Passes keep that order.  Values are {node, output}. */
#ifndef SLP_GRAPH_H
#define SLP_GRAPH_H

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
	struct slp_value *in;   /* owned */
	struct slp_type types[SLP_MAX_OUTPUTS]; /* shape.ndim -1: not known */
	sl_tensor *tensor;      /* of a parameter or constant; a reference is held */
	int before;             /* slp_graph_compact puts it just before this node; -1: where it stands */
	bool dead;              /* removed; slp_graph_compact drops it */
	bool backward;          /* made by sl_backward */
};

/* The names in use: a hash table. */
struct slp_names {
	const char **list;
	size_t count, capacity;
};

struct sl_graph {
	struct slp_gnode *nodes;
	int count, capacity;
	struct slp_value *outputs;
	const char **output_names; /* NULL: that of the node */
	int noutputs;
	int *inputs;            /* nodes, in the order in which a run takes them */
	int ninputs;
	int nrandom;            /* random streams a run draws: see slp_rng_virtual */
	struct slp_string {
		struct slp_string *next;
		char text[];
	} *strings;
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
/* Every use of `from` (also as an output of the program) becomes one of `to`. */
void slp_graph_replace(sl_graph *g, struct slp_value from, struct slp_value to);
/* Changes a node into another operation on other arguments, in its place in the order; types are unknown again. */
bool slp_graph_rewrite(sl_graph *g, int node, const struct sl_op *op, const void *attrs, int nin,
		       const struct slp_value *in);
/* An appended node takes its place just before `place`: what matters if it reads a parameter that is written. */
void slp_graph_before(sl_graph *g, int node, int place);
/* Inputs stay. */
void slp_graph_kill(sl_graph *g, int node);
/* Brings nodes that were appended at the end into an order in which they can run again (stable: otherwise as they
 * were; reads and writes of the same memory keep their order), drops the dead, and renumbers.  false, with an error:
 * no memory, or there is no such order. */
bool slp_graph_compact(sl_graph *g);
/* The memory each value lies in: ids[value id], equal for parameters over one storage; malloc'd, NULL without memory. */
int *slp_graph_memories(const sl_graph *g);
/* How many arguments and outputs use each output: counts[node * SLP_MAX_OUTPUTS + out]; malloc'd, NULL without memory. */
int *slp_graph_uses(const sl_graph *g);
/* Whether the node must stay whoever uses its results: it writes a parameter. */
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
/* An attribute by its name: its row in the table, its place in the node; NULL if there is none. */
const struct slp_attr *slp_attr_find(const struct sl_op *op, const char *name);
const void *slp_node_attr(const struct slp_gnode *n, const char *name);
/* Result types of one operation node from those of its arguments; errors name the node's place.  Its attributes stay as
 * the program gave them: what infer completes (a shape with -1) holds for these types only. */
enum sl_status slp_node_infer(sl_graph *g, int node);
/* The call that infer, flops, bytes, scratch and kernels of the operation look at: types filled in, attributes a copy
 * that infer has completed.  false, with an error, if it is wrong.  slp_call_free(c) afterwards. */
bool slp_node_call(const sl_graph *g, const struct slp_gnode *n, struct slp_infer *c);
void slp_call_free(struct slp_infer *c);
/* Checks what passes promise: order, arguments in range, types known, no dead node used.  For tests and .check. */
enum sl_status slp_graph_verify(const sl_graph *g);

/* ---- passes (one file each: pass_NAME.c).  They leave a graph that verifies and computes the same ---------------- */

struct slp_pass {
	const char *name, *doc;
	enum sl_status (*run)(sl_graph *g);
};
/* In the order of SL_PASS_LIST; run is NULL for segment and memory, which make the plan (segment.c, memory.c). */
extern const struct slp_pass slp_passes[SL_PASSES];

/* ---- symbols (symbol.c) ------------------------------------------------------------------------------------------ */

/* While a trace is under way in this thread, operations without inputs give symbols, too. */
struct slp_trace {
	struct slp_trace *outer;
	int nrandom;                /* virtual random streams given out */
	sl_tensor **bound, **symbols; /* tensors met, and the symbols that stand for them */
	int nbound, max_bound;
	const char *scope;          /* name of the block whose forward runs, or NULL */
	uint64_t names;             /* operations named in this trace */
	sl_device device;           /* of the symbols */
};
void slp_trace_begin(struct slp_trace *trace, sl_device device);
void slp_trace_end(struct slp_trace *trace); /* releases what it holds */
struct slp_trace *slp_trace_current(void);   /* NULL: none */
/* Lets operations run as usual for a while (to initialise a parameter); give what it returned to slp_trace_resume. */
struct slp_trace *slp_trace_pause(void);
void slp_trace_resume(struct slp_trace *trace);
/* Names the block whose forward runs; returns the name before, to be set again afterwards. */
const char *slp_trace_scope(const char *name);
/* The symbol that stands for a tensor in the current trace (outside a trace: a new one): a parameter, by reference. */
sl_tensor *slp_symbol_of(const char *at, sl_tensor *t, const char *name);
/* Seed that marks a random stream as virtual: its stream is its number within a run. */
#define SLP_RNG_VIRTUAL UINT64_C(0x5354524c56495254)

#endif
