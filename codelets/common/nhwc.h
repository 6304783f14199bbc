/* Images in the layout NHWC (image_layout.h) on CPUs, by kernels for the plain layout.  Graph passes choose NHWC for GPUs:
 * such a call comes here only if the scheduler gives it to a CPU. */
#ifndef SLP_NHWC_H
#define SLP_NHWC_H

#include "op.h"

/* Runs `kernel` with these attributes.  Operands in the set `nhwc` of SLP_IN(i) and SLP_OUT(i) are in NHWC: the kernel
 * gets copies of them in the plain layout, and its results are copied back. */
enum sl_status slp_by_plain(const struct slp_kernel *k, unsigned nhwc, const void *attrs, slp_kernel_fn *kernel);

#endif
