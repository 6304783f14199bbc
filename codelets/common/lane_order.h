/* Lane order: images dealt to groups of 16, the elements of a group's images side by side, (n / 16, flat, 16) instead
 * of (n, flat).  Kernels that compute 16 images at once read and write whole vectors in it.  Shapes do not tell the
 * order: graph passes give it to operations as attributes, and relayout.c changes it. */
#ifndef SLP_LANE_ORDER_H
#define SLP_LANE_ORDER_H

#include "op_inner.h"

#ifdef __CUDACC__
#define SLP_ORDER_FN static __host__ __device__ inline
#else
#define SLP_ORDER_FN static inline
#endif

/* The index of element `at` of image n, in tensors of `flat` elements an image. */
SLP_ORDER_FN int64_t slp_order_index(bool lanes, int64_t flat, int64_t n, int64_t at)
{
	return lanes ? (n / SLP_ORDER_LANES * flat + at) * SLP_ORDER_LANES + n % SLP_ORDER_LANES : n * flat + at;
}

/* Blocks: images in groups of so many channels, whose elements at a place lie side by side, (n, channels / 16, plane,
 * 16) in tensors of the usual shape.  The index of element `at` of plane c of image n, of `channels` planes. */
SLP_ORDER_FN int64_t slp_order_in_blocks(int64_t channels, int64_t plane, int64_t n, int64_t c, int64_t at)
{
	int64_t first = c / SLP_ORDER_BLOCK * SLP_ORDER_BLOCK;
	return (n * channels + first) * plane + at * SLP_ORDER_BLOCK + c % SLP_ORDER_BLOCK;
}

/* Channels last: all channels of a place lie side by side, (n, plane, channels) in tensors of the usual shape. */
SLP_ORDER_FN int64_t slp_order_in_last(int64_t channels, int64_t plane, int64_t n, int64_t c, int64_t at)
{
	return (n * plane + at) * channels + c;
}

#endif
