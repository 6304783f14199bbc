/* The range of a slice, for the gradient on CPUs and GPUs. */
#ifndef SLP_SLICE_H
#define SLP_SLICE_H

#include "common/strided.h"
#include "op.h"

/* Elements begin, begin + step, … of the axis, count of them; all inside. */
struct slp_slice {
	int64_t begin, step, count;
};

/* The place in the slice of element i of the axis; -1: it is not in the slice. */
#ifdef __CUDACC__
__host__ __device__
#endif
        static inline int64_t
        slp_slice_index(struct slp_slice s, int64_t i)
{
	int64_t d = s.step > 0 ? i - s.begin : s.begin - i, step = s.step > 0 ? s.step : -s.step;
	return d < 0 || d % step || d / step >= s.count ? -1 : d / step;
}

#ifdef __cplusplus
extern "C"
#endif
        enum sl_status
        slp_slice_grad_cuda(const struct slp_kernel *k, struct slp_split dx, struct slp_slice s);

#endif
