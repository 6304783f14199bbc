/* Sizes for concat's kernels. */
#ifndef SLP_CONCAT_H
#define SLP_CONCAT_H

#include "common/strided.h"
#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif
/* inner: of one step along the axis; n of it counts the whole result. */
enum sl_status slp_concat_cuda(const struct slp_kernel *k, int axis, struct slp_split whole);
#ifdef __cplusplus
}
#endif

#endif
