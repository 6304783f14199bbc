/* Products with weights of 2, 4 or 8 bits that stay packed (codelets/quant/nbits_linear.c). */
#ifndef SLP_PACKED_LINEAR_H
#define SLP_PACKED_LINEAR_H

#include "starling/tensor.h"

/* x (…, inner), float32, times the weights (units, inner), transposed, plus bias (units), or NULL.  w: uint8, `bits` each, in
 * blocks of `block` along each row, the last one filled up; scale: float32, one per block; zero: one per block, uint8
 * and packed by row, or float32; NULL: half of the range.  It has no gradient. */
sl_tensor *slp_nbits_linear(const char *at, sl_tensor *x, sl_tensor *w, sl_tensor *scale, sl_tensor *zero,
                            sl_tensor *bias, int bits, int block);

#endif
