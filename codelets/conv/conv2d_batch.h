/* Common parts of conv2d_batch.c and conv2d_batch_weights.c. */
#ifndef SLP_CONV2D_BATCH_H
#define SLP_CONV2D_BATCH_H

#include "conv2d_kernels.h"
#include "common/simd.h"
#include "op.h"

/* Whether there is a kernel for the gradient of weights of this width. */
bool slp_batch_has_width(int64_t kw);

/* Rows [i, end) of a plane of 16 images, `width` wide, of the unpooled gradient: d is the plane of the pooled gradient,
 * mask that of the mask. */
SLP_INLINE void slp_unpool_rows(const float *d, const uint8_t *mask, float share, int64_t width, int64_t i, int64_t end,
                                float *to)
{
	typedef int32_t int16s __attribute__((vector_size(64)));
	const int16s bit = {1,      1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
	                    1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
	for (; i < end; i++)
		for (int64_t j = 0; j < width; j++, to += SLP_N16_IMAGES) {
			uint16_t bits;
			slp_v16 v;
			memcpy(&bits, mask + 2 * (i * width + j), sizeof bits);
			memcpy(&v, d + (i / 2 * (width / 2) + j / 2) * SLP_N16_IMAGES, sizeof v);
			v = (slp_v16)((int16s)(v * share) & (((bits + (int16s){0}) & bit) != 0));
			memcpy(to, &v, sizeof v);
		}
}

enum sl_status slp_conv_batch_weights(const struct slp_kernel *k, const struct slp_conv_args *a);

#endif
