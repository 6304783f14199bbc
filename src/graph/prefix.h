/* Whether results for a longer axis begin with those for a shorter one.
 *
 * A function was traced twice, for inputs with `size[0]` and with `size[1]` elements along an axis, where the longer
 * inputs begin with the shorter ones. The two programs are compared node by node. A value is the same in both; or one
 * of its axes follows the size, and the longer value begins with the shorter one, whatever the rest of the longer
 * inputs holds; or nothing is known of it. */
#ifndef SLP_PREFIX_H
#define SLP_PREFIX_H

#include "graph/graph.h"
#include "op.h"
#include "starling/graph.h"

/* How a value follows the size: its axis has runs · size · some elements. */
struct slp_follows {
	enum { SLP_SAME, SLP_BEGINS, SLP_OTHER } kind;
	int axis;
	int64_t runs;    /* consecutive elements for each element of the size, within the axis; 0: any, all are equal */
	int culprit;     /* the node by which it is OTHER */
	const char *why; /* the effect of that node */
};

/* A call in both programs, and the relations of its inputs; a rule computes the relations of its results. */
struct slp_pair {
	const struct slp_infer *call[2];
	const struct slp_follows *in;
	struct slp_follows *out;
	bool same_attrs;
	const int64_t *size;
};

/* The rule of an operation: NULL, or why nothing is known of its results. */
typedef const char *slp_prefix_rule(struct slp_pair *p);
/* any_attrs: the rule looks at attributes that differ. */
slp_prefix_rule *slp_prefix_rule_of(const struct sl_op *op, bool *any_attrs);

/* The axis by which two shapes differ; -1: none; -2: the numbers of axes, or several axes. */
int slp_prefix_axis(sl_shape a, sl_shape b);

/* How the first nout results of `more` follow; SL_EINVAL, with an error that names the operation, if one is OTHER. For
 * messages: the name of the programs, and of a result. */
enum sl_status slp_prefix(const char *at, const char *what, const sl_graph *more, const sl_graph *less,
                          const int64_t size[2], int nout, struct slp_follows *out);

#endif
