/* Whether results for a longer axis begin with those for a shorter one.
 *
 * A function was traced twice, for inputs with `size[0]` and with `size[1]` elements along an axis, where the longer
 * inputs begin with the shorter ones. The two programs are gone through side by side. A value is the same in both; or
 * it has one axis that follows the size, and what there is of it in the shorter program is in the longer one, too,
 * whatever else the longer inputs hold; or neither is known. */
#ifndef SLP_PREFIX_H
#define SLP_PREFIX_H

#include "graph/graph.h"
#include "op.h"
#include "starling/graph.h"

/* How a value follows the size.  Its axis has runs · size · some elements. */
struct slp_follows {
	enum { SLP_SAME, SLP_BEGINS, SLP_OTHER } kind;
	int axis;
	int64_t runs;    /* of the elements along the size, one after another in the axis; 0: any, all are alike */
	int culprit;     /* the node by which it is OTHER */
	const char *why; /* what that does */
};

/* A call in both programs, and what is known of its inputs; a rule says how its results follow. */
struct slp_pair {
	const struct slp_infer *call[2];
	const struct slp_follows *in;
	struct slp_follows *out;
	bool same_attrs;
	const int64_t *size;
};

/* The rule of an operation: NULL, or why nothing is known of its results. */
typedef const char *slp_prefix_rule(struct slp_pair *p);
/* any_attrs: it looks at attributes that differ. */
slp_prefix_rule *slp_prefix_rule_of(const struct sl_op *op, bool *any_attrs);

/* The axis by which two shapes differ; -1: none; -2: the numbers of axes, or several axes. */
int slp_prefix_axis(sl_shape a, sl_shape b);

/* How the first nout results of `more` follow; SL_EINVAL, with an error that names the operation, if one is OTHER.  For
 * messages: what the programs are of, and the name of a result. */
enum sl_status slp_prefix(const char *at, const char *what, const sl_graph *more, const sl_graph *less,
                          const int64_t size[2], int nout, struct slp_follows *out);

#endif
