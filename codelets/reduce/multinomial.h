/* The selection of a class, for CPUs and GPUs. */
#ifndef SLP_MULTINOMIAL_H
#define SLP_MULTINOMIAL_H

#include <stdint.h>

#ifdef __cplusplus
#define SLP_MULTINOMIAL_FN template <class T> static __device__ inline
#else
#define SLP_MULTINOMIAL_FN static inline
#define T float
#endif

/* The first class whose sum is above u. */
SLP_MULTINOMIAL_FN int32_t slp_class_of(const T *sums, int64_t n, double u)
{
	int64_t low = 0, high = n - 1;
	while (low < high) {
		int64_t middle = low + (high - low) / 2;
		if ((double)sums[middle] <= u) low = middle + 1;
		else high = middle;
	}
	return (int32_t)low;
}

#undef SLP_MULTINOMIAL_FN
#ifndef __cplusplus
#undef T
#endif

#endif
