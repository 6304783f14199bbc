/* Writing a program as a symbol of MXNet's. */
#ifndef SLP_MX_EXPORT_H
#define SLP_MX_EXPORT_H

#include "graph/graph.h"
#include "io/mxnet.h"

/* slp_mx_export_NAME for each line of the table. */
#define BOTH(mxnet, ours, min, max, in, out) slp_mx_export slp_mx_export_##out;
#define READ(mxnet, min, max, in)
#define TRAIN(mxnet, in)
#define WRITE(ours, out) slp_mx_export slp_mx_export_##out;
#define SAME(mxnet, ours, inputs)
#define ALSO(mxnet, ours, inputs)
#define SCALAR(mxnet, ours)
#define SCALAR_ALSO(mxnet, ours)
#include "io/mx_ops.def"
#undef BOTH
#undef READ
#undef TRAIN
#undef WRITE
#undef SAME
#undef ALSO
#undef SCALAR
#undef SCALAR_ALSO
slp_mx_export slp_mx_export_scalar;

#endif
