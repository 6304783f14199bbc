/* Internals of symbols: calls that are recorded, not run. */
#ifndef SLP_SYMBOL_H
#define SLP_SYMBOL_H

#include "graph/graph.h"
#include "op.h"
#include "starling/graph.h"

/* One call, variable or bound tensor.  Its results are tensors with this symbol and an output number. */
struct slp_symbol {
	atomic_int refs;
	uint64_t number; /* in the order of the calls */
	enum slp_node_kind kind;
	const struct sl_op *op;
	const char *at;
	char *name;
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs;
	int nin, nout;
	struct slp_symbol_use {
		struct slp_symbol *symbol;
		int output;
	} * in;
	struct slp_type types[SLP_MAX_OUTPUTS];
	sl_tensor *tensor; /* of a bound tensor: held */
	bool backward;
	int repeat;              /* as in struct slp_gnode */
	struct slp_symbol *next; /* used by walks and by the release of symbols */
	uint64_t visit;
};

/* The program that computes some symbols, with the calls with effects that a trace has recorded. */
sl_graph *slp_graph_from(sl_tensor *const *heads, int count, const struct slp_trace *trace);

#endif
