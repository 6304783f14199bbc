/* Blocks of channels: images (n, c, h, w) as (n, c / block, h, w, block), channels of a block side by side; the last
 * block is padded with channels of zeros. Convolutions of few images compute in it, a vector of channels at a time.
 * These are oneDNN's layouts nChw8c and nChw16c. The shape shows them by its five axes, so elementwise operations take
 * such tensors like any other. Volumes (n, c, d, h, w) become images of d h rows: the bytes of nCdhw8c and nCdhw16c. */
#ifndef SLP_BLOCKS_H
#define SLP_BLOCKS_H

#include "op_inner.h"
#include "starling/tensor.h"

static inline sl_shape slp_blocked_shape(sl_shape x, int64_t block)
{
	int64_t rows = x.ndim == 5 ? x.dim[2] * x.dim[3] : x.dim[2];
	return SL_SHAPE(x.dim[0], (x.dim[1] + block - 1) / block, rows, x.dim[x.ndim - 1], block);
}

/* The index of an element of channel c at place `at` of image n, in images of so many blocks. */
static inline int64_t slp_block_index(int64_t blocks, int64_t plane, int64_t block, int64_t n, int64_t c, int64_t at)
{
	return ((n * blocks + c / block) * plane + at) * block + c % block;
}

#endif
