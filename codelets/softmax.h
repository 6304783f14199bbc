/* What softmax.c and softmax.cu agree on. */
#ifndef SLP_SOFTMAX_H
#define SLP_SOFTMAX_H

#include "strided.h"

struct slp_softmax_attrs {
	int axis; /* after infer: from 0 */
};

/* All four are: e, an exponential; the sum of a term over the axis; a result.  Inputs are a (x or dy) and b (y). */
enum slp_softmax_kind { SLP_SOFTMAX, SLP_LOG_SOFTMAX, SLP_SOFTMAX_GRAD, SLP_LOG_SOFTMAX_GRAD };

/* The input as outer × n × inner elements. */
static inline struct slp_split slp_softmax_split(const struct slp_kernel *k)
{
	const struct slp_softmax_attrs *a = (const struct slp_softmax_attrs *)k->attrs;
	return slp_split_at(k->in[0].type.shape, a->axis);
}

#endif
