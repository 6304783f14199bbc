/* Kernels of src/dist for values on a GPU (codelets/common/values.cu), queued on a stream; false: a launch failed. */
#ifndef SLP_GPU_VALUES_H
#define SLP_GPU_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "starling/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif
/* Rounds as sl_add; `to` may be one of the terms. */
bool slp_gpu_add(void *to, const void *a, const void *b, size_t count, enum sl_dtype dtype, void *stream);
/* *bad becomes 1 if something is not finite. */
bool slp_gpu_look(int *bad, const void *data, size_t count, enum sl_dtype dtype, void *stream);
#ifdef __cplusplus
}
#endif

#endif
