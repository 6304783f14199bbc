/* Sixteen images side by side: moving them there and back, and adding up the lanes of vectors. */
#ifndef SLP_LANES_H
#define SLP_LANES_H

#include <stdint.h>

#include "simd.h"

/* to[p * step + lane] = from[lane * stride + p] for p in [0, count), lanes from `live` on zero: `count` elements of 16
 * images become vectors. */
void slp_lanes_gather(const float *from, int64_t stride, int live, int64_t count, float *to, int64_t step);

/* The inverse: to[lane * stride + p] = from[p * step + lane] for lanes below `live`. */
void slp_lanes_scatter(const float *from, int64_t step, int live, int64_t count, float *to, int64_t stride);

/* to[i] = the sum of the lanes of vector i, for i in [0, count), in a fixed order. */
void slp_lanes_sum(const float *vectors, int64_t count, float *to);

/* Lanes as bits, only in functions for the instructions of these vectors (simd.h): the lanes of a mask (all bits set or
 * none), and the lanes of numbers to which relu passes a gradient, which are not 0 or less. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define SLP_LANE_BITS16(mask) ((uint16_t)_mm512_movepi32_mask((__m512i)(mask)))
#define SLP_LANES_PASS16(v) ((uint16_t)_mm512_cmp_ps_mask((__m512)(v), _mm512_setzero_ps(), _CMP_NLE_UQ))
#define SLP_LANE_BITS8(mask) ((uint8_t)_mm256_movemask_ps((__m256)(mask)))
#define SLP_LANES_PASS8(v) SLP_LANE_BITS8(_mm256_cmp_ps((__m256)(v), _mm256_setzero_ps(), _CMP_NLE_UQ))
#else
#define SLP_LANE_BITS_(mask, lanes)                                                                                    \
	__extension__({                                                                                                \
		unsigned bits_ = 0;                                                                                    \
		for (int l_ = 0; l_ < (lanes); l_++) bits_ |= ((mask)[l_] & 1u) << l_;                                 \
		bits_;                                                                                                 \
	})
#define SLP_LANE_BITS16(mask) ((uint16_t)SLP_LANE_BITS_(mask, 16))
#define SLP_LANES_PASS16(v) SLP_LANE_BITS16(~((v) <= 0))
#define SLP_LANE_BITS8(mask) ((uint8_t)SLP_LANE_BITS_(mask, 8))
#define SLP_LANES_PASS8(v) SLP_LANE_BITS8(~((v) <= 0))
#endif

#endif
