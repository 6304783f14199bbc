/* Attributes of operations that move elements, which functions in compose/ and several families fill in. */
#ifndef SLP_MOVE_ATTRS_H
#define SLP_MOVE_ATTRS_H

#include "op_inner.h"
#include "starling/tensor.h"

struct slp_transpose_attrs {
	int naxes, axes[SL_MAX_NDIM];
};

struct slp_slice_grad_attrs {
	struct slp_slice_attrs slice;
	int64_t size; /* of the axis that was sliced */
};

struct slp_concat_attrs {
	int axis;
};

struct slp_gather_grad_attrs {
	int64_t rows;
};

struct slp_one_hot_attrs {
	int64_t depth;
	int dtype;
};

#endif
