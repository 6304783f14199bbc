/* Converts bytes of images to numbers, and images from the order of files to that of networks. */
#ifndef SLP_CONVERT_H
#define SLP_CONVERT_H

#include <stdint.h>

/* Bytes as numbers in [0, 1]. */
static inline void slp_unit_floats(const uint8_t *from, float *to, int64_t n)
{
	for (int64_t i = 0; i < n; i++) to[i] = (float)from[i] * (float)(1 / 255.0);
}

#endif
