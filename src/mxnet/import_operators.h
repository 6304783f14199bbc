/* Common functions of the files that compute MXNet's operators. */
#ifndef SLP_MX_IMPORT_H
#define SLP_MX_IMPORT_H

#include "mxnet/mxnet.h"
#include "nn/nn.h"
#include "starling/tensor.h"

/* slp_mx_import_NAME for each line of the table. */
#define BOTH(mxnet, ours, min, max, in, out) slp_mx_import slp_mx_import_##in;
#define READ(mxnet, min, max, in) slp_mx_import slp_mx_import_##in;
#define TRAIN(mxnet, in) slp_mx_import slp_mx_import_##in;
#include "mxnet/operators.def"
slp_mx_import slp_mx_import_scalar;

static inline sl_shape slp_mx_shape(const struct slp_mx_call *c, int i)
{
	return c->in[i] ? sl_tensor_shape(c->in[i]) : (sl_shape){.ndim = -1};
}

/* The shape of input i, which must be known to go on. */
static inline sl_shape slp_mx_known(struct slp_mx_call *c, int i)
{
	sl_shape s = slp_mx_shape(c, i);
	if (!slp_shape_known(s)) slp_mx_fail(c, SL_ESHAPE, "the shape of input %d must be known", i);
	return s;
}

/* An axis counted from the end, converted to one from the start; fails if it does not exist. */
static inline int slp_mx_axis(struct slp_mx_call *c, int64_t axis, int ndim)
{
	int64_t a = axis < 0 ? axis + ndim : axis;
	if (a >= 0 && a < ndim) return (int)a;
	slp_mx_fail(c, SL_ESHAPE, "axis %lld does not exist: the input has %d axes", (long long)axis, ndim);
	return 0;
}

#endif
