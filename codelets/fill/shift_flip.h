/* Attributes of shift_flip, and the element that each element of its result is a copy of. */
#ifndef SLP_SHIFT_FLIP_H
#define SLP_SHIFT_FLIP_H

#include <stdint.h>

#include "op.h"
#include "philox.h"

#ifdef __CUDACC__
#define SLP_SHIFT_FLIP_FN static __host__ __device__ inline
#else
#define SLP_SHIFT_FLIP_FN static inline
#endif

/* back: the gradient. */
struct slp_shift_flip {
	double flip;
	int pad, back;
	struct slp_rng rng;
};

/* An image's change: rows and columns by which its content moves, and whether it is mirrored before. */
struct slp_shift {
	int64_t rows, columns;
	int mirrored;
};

/* Of image `image`: words 0 to 2 of its block. */
SLP_SHIFT_FLIP_FN struct slp_shift slp_shift_of(const struct slp_shift_flip a, int64_t image)
{
	uint32_t w[4];
	struct slp_shift s;
	uint64_t places = 2 * (uint64_t)a.pad + 1;
	slp_philox(a.rng.seed, a.rng.stream, (uint64_t)image, w);
	s.rows = (int64_t)(w[0] * places >> 32) - a.pad;
	s.columns = (int64_t)(w[1] * places >> 32) - a.pad;
	s.mirrored = (double)slp_unit_float(w[2]) < a.flip;
	return s;
}

/* The column of x that column j of the result shows; out of [0, width): none. */
SLP_SHIFT_FLIP_FN int64_t slp_shifted_column(struct slp_shift s, int back, int64_t j, int64_t width)
{
	if (!back) return (s.mirrored ? width - 1 - j : j) + s.columns;
	return s.mirrored ? width - 1 - (j - s.columns) : j - s.columns;
}

SLP_SHIFT_FLIP_FN int64_t slp_shifted_row(struct slp_shift s, int back, int64_t i)
{
	return back ? i - s.rows : i + s.rows;
}

#endif
