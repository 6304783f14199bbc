/* Layouts of images: how the elements of a tensor of shape (n, c, h, w) lie in memory.
 *
 *     plain   (n, c, h, w)             as all other tensors
 *     N16     (n / 16, c, h, w, 16)    groups of 16 images, their elements side by side: kernels compute 16 images at once
 *     NC16    (n, c / 16, h, w, 16)    blocks of 16 channels, as oneDNN computes in half types
 *     NHWC    (n, h, w, c)             channels last, as tensor cores take images
 *
 * The shape is the same in all of them: graph passes give the layout to operations as an attribute (enum slp_image_layout), and
 * relayout.c changes it. */
#ifndef SLP_IMAGE_LAYOUT_H
#define SLP_IMAGE_LAYOUT_H

#include "op_inner.h"

#ifdef __CUDACC__
#define SLP_LAYOUT_FN static __host__ __device__ inline
#else
#define SLP_LAYOUT_FN static inline
#endif

/* The index of element `at` of plane c of image n, of `channels` planes of `plane` elements each. */
SLP_LAYOUT_FN int64_t slp_layout_index(int layout, int64_t channels, int64_t plane, int64_t n, int64_t c, int64_t at)
{
	switch (layout) {
	case SLP_LAYOUT_N16:
		return ((n / SLP_N16_IMAGES * channels + c) * plane + at) * SLP_N16_IMAGES + n % SLP_N16_IMAGES;
	case SLP_LAYOUT_NC16:
		return (n * channels + c / SLP_NC16_CHANNELS * SLP_NC16_CHANNELS) * plane + at * SLP_NC16_CHANNELS +
		       c % SLP_NC16_CHANNELS;
	case SLP_LAYOUT_NHWC: return (n * plane + at) * channels + c;
	default: return (n * channels + c) * plane + at;
	}
}

/* The same in the layouts plain and N16, which ignore where planes begin: element `at` of image n of `flat` elements. */
SLP_LAYOUT_FN int64_t slp_layout_flat_index(int layout, int64_t flat, int64_t n, int64_t at)
{
	return slp_layout_index(layout, flat, 1, n, at, 0);
}

/* Whether one of two operands has a layout. */
SLP_LAYOUT_FN bool slp_layout_among(enum slp_image_layout layout, int x, int y)
{
	return x == (int)layout || y == (int)layout;
}

#endif
