/* Elements of one data type as those of another. */
#ifndef SLP_CONVERT_H
#define SLP_CONVERT_H

#include "op.h"

/* n elements, on this thread.  Integers lose the fraction and saturate; floats are rounded to nearest. */
void slp_convert(enum sl_dtype from, const void *in, enum sl_dtype to, void *out, int64_t n);

#ifdef __cplusplus
extern "C" {
#endif

/* What is added in its place: inputs 0 to n - 1 into the results of those numbers that do not lie over them. */
enum sl_status slp_cpu_take_sums(const struct slp_kernel *k, int n);
enum sl_status slp_cuda_take_sums(const struct slp_kernel *k, int n);

#ifdef __cplusplus
}
#endif

#endif
