/* Common parts of the CPU and CUDA kernels of the operations that make mini-batches. */
#ifndef SLP_BATCH_H
#define SLP_BATCH_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Samples order[begin], …, order[begin + count - 1] of a data set. */
struct slp_batch_attrs {
	int64_t begin, count;
	double scale; /* of images */
};

#ifdef __cplusplus
}
#endif
#endif
