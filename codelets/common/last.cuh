/* Sums of parts within one launch: the last block that has stored its part adds up all of them, always in the same
 * order, so that no second kernel is needed and bits do not depend on which block that is. */
#ifndef SLP_LAST_CUH
#define SLP_LAST_CUH

#include "arrivals.h"
#include "gpu.cuh"

/* Whether the calling block is the last of `count` that arrive at a counter: then it sees what all of them have stored
 * before they arrived, and its threads see what they have stored themselves.  All threads of the block call; the counter is 0 again afterwards. */
static __device__ inline bool slp_arrives_last(unsigned *counter, unsigned count)
{
	__shared__ bool last;
	if (count == 1) {
		__syncthreads();
		return true;
	}
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0) {
		last = atomicAdd(counter, 1u) == count - 1;
		if (last) atomicExch(counter, 0u);
		__threadfence();
	}
	__syncthreads();
	return last;
}

#endif
