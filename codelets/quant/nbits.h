/* Weights of a few bits in blocks along each row: where they lie, and their values. */
#ifndef SLP_NBITS_H
#define SLP_NBITS_H

#include "op.h"

#ifdef __CUDACC__
#define SLP_NBITS_FN static inline __host__ __device__
#else
#define SLP_NBITS_FN static inline
#endif

struct slp_nbits_attrs {
	int bits, block, zeros; /* zeros: 0: the middle of the range, 1: packed as the weights are, 2: floats */
};

/* y (rows, units) = x (rows, inner) times the transposed weights, whose rows have `blocks` blocks. */
struct slp_nbits {
	int64_t rows, inner, units, blocks, row_bytes, zero_bytes;
	int bits, block, zeros;
	const float *x, *scale, *bias;
	const uint8_t *w;
	const void *zero;
	float *y;
};

#ifdef __cplusplus
extern "C"
#endif
        struct slp_nbits
        slp_nbits_of(const struct slp_kernel *k);

/* Number i of a row of packed ones, the lowest bits first. */
SLP_NBITS_FN int slp_nbits_number(const uint8_t *row, int64_t i, int bits)
{
	return row[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
}

SLP_NBITS_FN float slp_nbits_zero(const struct slp_nbits *p, int64_t unit, int64_t block)
{
	if (p->zeros == 2) return ((const float *)p->zero)[unit * p->blocks + block];
	if (p->zeros) return (float)slp_nbits_number((const uint8_t *)p->zero + unit * p->zero_bytes, block, p->bits);
	return (float)(1 << (p->bits - 1));
}

SLP_NBITS_FN float slp_nbits_weight(const struct slp_nbits *p, int64_t unit, int64_t i)
{
	int64_t block = i / p->block;
	return ((float)slp_nbits_number(p->w + unit * p->row_bytes, i, p->bits) - slp_nbits_zero(p, unit, block)) *
	       p->scale[unit * p->blocks + block];
}

#endif
