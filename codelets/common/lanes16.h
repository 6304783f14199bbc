/* Sixteen images side by side: transposing 16 × 16 floats, and adding up the lanes of 16 vectors. */
#ifndef SLP_LANES16_H
#define SLP_LANES16_H

#include <stdint.h>

#include "simd.h"

/* Exchanges the lanes of a whose number has bit s with those of b whose number has not. */
#define SLP_EXCHANGE(a, b, s)                                                                                          \
	do {                                                                                                           \
		slp_v16 a_ = SLP_SHUFFLE_(a, b, SLP_FIRST_, s), b_ = SLP_SHUFFLE_(a, b, SLP_SECOND_, s);               \
		(a) = a_;                                                                                              \
		(b) = b_;                                                                                              \
	} while (0)
#define SLP_FIRST_(j, s) ((j) & (s) ? 16 + (j) - (s) : (j))
#define SLP_SECOND_(j, s) ((j) & (s) ? 16 + (j) : (j) + (s))
#define SLP_SHUFFLE_(a, b, lane, s)                                                                                    \
	__builtin_shufflevector(a, b, lane(0, s), lane(1, s), lane(2, s), lane(3, s), lane(4, s), lane(5, s),          \
	                        lane(6, s), lane(7, s), lane(8, s), lane(9, s), lane(10, s), lane(11, s), lane(12, s), \
	                        lane(13, s), lane(14, s), lane(15, s))
#define SLP_STAGE_(r, s) SLP_UNROLL for (int i_ = 0; i_ < 16; i_++) if (!(i_ & (s))) SLP_EXCHANGE(r[i_], r[i_ + (s)], s)

/* r[i] lane j becomes r[j] lane i. */
SLP_INLINE void slp_transpose16(slp_v16 r[16])
{
	SLP_STAGE_(r, 1);
	SLP_STAGE_(r, 2);
	SLP_STAGE_(r, 4);
	SLP_STAGE_(r, 8);
}

/* Lane i of r[0] becomes the sum of the lanes of r[i]; r is used up. */
#define SLP_FOLD_(r, s)                                                                                                \
	SLP_UNROLL for (int i_ = 0; i_ < (s); i_++)                                                                    \
	{                                                                                                              \
		SLP_EXCHANGE(r[i_], r[i_ + (s)], s);                                                                   \
		r[i_] += r[i_ + (s)];                                                                                  \
	}
SLP_INLINE void slp_sum_lanes16(slp_v16 r[16])
{
	SLP_FOLD_(r, 8);
	SLP_FOLD_(r, 4);
	SLP_FOLD_(r, 2);
	SLP_FOLD_(r, 1);
}

/* Lanes as bits, only in functions that are SLP_AVX512: those of a vector of masks (all bits set or none); those whose
 * number a relu gives a gradient, which are not below or at 0. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define SLP_LANE_BITS(mask) ((uint16_t)_mm512_movepi32_mask((__m512i)(mask)))
#define SLP_LANES_PASS(v) ((uint16_t)_mm512_cmp_ps_mask((__m512)(v), _mm512_setzero_ps(), _CMP_NLE_UQ))
#else
#define SLP_LANE_BITS(mask)                                                                                            \
	__extension__({                                                                                                \
		unsigned bits_ = 0;                                                                                    \
		for (int l_ = 0; l_ < 16; l_++) bits_ |= ((mask)[l_] & 1u) << l_;                                      \
		(uint16_t) bits_;                                                                                      \
	})
#define SLP_LANES_PASS(v) SLP_LANE_BITS(~((v) <= 0))
#endif

/* to[p * step + lane] = from[lane * stride + p] for p in [0, count), lanes from `live` on zero: `count` elements of 16
 * images become vectors.  Where there are 16 elements, the last 16 are moved at once even if some were moved before. */
SLP_INLINE void slp_lanes_gather(const float *from, int64_t stride, int live, int64_t count, float *to, int64_t step)
{
	for (int64_t p = 0; count >= 16 && p < count; p += 16) {
		if (p > count - 16) p = count - 16;
		slp_v16 r[16];
		SLP_UNROLL for (int l = 0; l < 16; l++)
		{
			r[l] = (slp_v16){0};
			if (l < live) memcpy(&r[l], from + l * stride + p, sizeof r[l]);
		}
		slp_transpose16(r);
		SLP_UNROLL for (int i = 0; i < 16; i++) memcpy(to + (p + i) * step, &r[i], sizeof r[i]);
	}
	for (int64_t p = 0; count < 16 && p < count; p++)
		for (int l = 0; l < 16; l++) to[p * step + l] = l < live ? from[l * stride + p] : 0;
}

/* The way back: to[lane * stride + p] = from[p * step + lane] for lanes below `live`. */
SLP_INLINE void slp_lanes_scatter(const float *from, int64_t step, int live, int64_t count, float *to, int64_t stride)
{
	for (int64_t p = 0; count >= 16 && p < count; p += 16) {
		if (p > count - 16) p = count - 16;
		slp_v16 r[16];
		SLP_UNROLL for (int i = 0; i < 16; i++) memcpy(&r[i], from + (p + i) * step, sizeof r[i]);
		slp_transpose16(r);
		SLP_UNROLL for (int l = 0; l < 16; l++)
		{
			if (l < live) memcpy(to + l * stride + p, &r[l], sizeof r[l]);
		}
	}
	for (int64_t p = 0; count < 16 && p < count; p++)
		for (int l = 0; l < live; l++) to[l * stride + p] = from[p * step + l];
}

#endif
