/* Writing a program as an MXNet symbol. */
#ifndef SLP_MX_EXPORT_H
#define SLP_MX_EXPORT_H

#include "graph/graph.h"
#include "mxnet/mxnet.h"

/* slp_mx_export_NAME for each line of the table. */
#define BOTH(mxnet, ours, min, max, in, out) slp_mx_export slp_mx_export_##out;
#define WRITE(ours, out) slp_mx_export slp_mx_export_##out;
#include "mxnet/operators.def"
slp_mx_export slp_mx_export_scalar;

#endif
