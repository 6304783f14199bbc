/* Calls on images whose channels are last (lane_order.h), by kernels for the plain order, on CPUs.  Graph passes choose
 * this order for GPUs: such a call comes here only if the scheduler gives it to a CPU. */
#ifndef SLP_CHANNELS_LAST_H
#define SLP_CHANNELS_LAST_H

#include "op.h"

/* Runs `kernel` with these attributes on copies in the plain order of the operands that have channels last, a set of
 * SLP_IN(i) and SLP_OUT(i), and puts what it wrote into the order of the results. */
enum sl_status slp_by_plain(const struct slp_kernel *k, unsigned last, const void *attrs, slp_kernel_fn *kernel);

#endif
