/* The operations by name: their descriptors, by whose addresses they are recognised, and their CUDA kernels. */
#ifndef SLP_OP_LIST_H
#define SLP_OP_LIST_H

#include <starling/optim.h>

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define X(name)                                                                                                        \
	extern const struct sl_op slp_op_##name;                                                                       \
	extern enum sl_status slp_cuda_##name(const struct slp_kernel *k);
#include "ops.def"
#undef X

#ifdef __cplusplus
}
#endif
#endif
