/* Counters in a GPU's memory with which the blocks of a launch find out which of them comes last
 * (codelets/common/last.cuh). */
#ifndef SLP_ARRIVALS_H
#define SLP_ARRIVALS_H

#include "op.h"

enum { SLP_ARRIVALS = 1 << 14 }; /* of a worker */

#ifdef __cplusplus
extern "C" {
#endif
/* Those of the calling worker, for kernels on k->stream: all are 0 when a kernel begins, and must be when it ends.  NULL:
 * there is no memory, and slp_kernel_fail has been called (src/runtime/device/gpu.c). */
unsigned *slp_arrivals(const struct slp_kernel *k);
#ifdef __cplusplus
}
#endif

#endif
