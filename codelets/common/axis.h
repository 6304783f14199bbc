/* Operations along one axis: argmax, softmax and its gradients. */
#ifndef SLP_AXIS_H
#define SLP_AXIS_H

#include "op.h"
#include "strided.h"

struct slp_axis_attrs {
	int axis; /* after infer: from 0 */
};

/* Input 0 as outer × n × inner elements. */
static inline struct slp_split slp_axis_split(const struct slp_kernel *k)
{
	const struct slp_axis_attrs *a = (const struct slp_axis_attrs *)k->attrs;
	return slp_split_at(k->in[0].type.shape, a->axis);
}

#endif
