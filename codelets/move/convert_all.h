/* convert_all: each tensor as matrices. */
#ifndef SLP_CONVERT_ALL_H
#define SLP_CONVERT_ALL_H

#include "op_inner.h"

/* A tensor as `count` matrices of rows × columns, which are transposed. */
struct slp_turned {
	int64_t count, rows, columns;
};

static inline struct slp_turned slp_turned_of(const struct slp_convert_all_attrs *a, int i, sl_shape x)
{
	struct slp_turned t = {1, 1, sl_shape_size(x)};
	if (!((a->to_nhwc | a->from_nhwc) >> i & 1)) return t;
	int64_t channels = x.dim[1], plane = x.dim[2] * x.dim[3];
	bool to = a->to_nhwc >> i & 1;
	return (struct slp_turned){x.dim[0], to ? channels : plane, to ? plane : channels};
}

#endif
