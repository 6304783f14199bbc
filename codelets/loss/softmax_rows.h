/* Rows of floats on a CPU, for softmax and its losses. Exponentials of many short rows are computed at once, so that
 * vectors are full; sums are in double precision, in an order that depends on the length alone. */
#ifndef SLP_SOFTMAX_ROWS_H
#define SLP_SOFTMAX_ROWS_H

#include "op.h"
#include "common/vmath.h"

enum { SLP_ROW_LANES = 32, SLP_ROW_BLOCK = 2048 };

/* The number of rows at once. */
static inline int64_t slp_rows_at_once(int64_t n)
{
	return n < SLP_ROW_BLOCK ? SLP_ROW_BLOCK / (n > 0 ? n : 1) : 1;
}

/* The rows of one call of a thread: exponentials cost several times as much as a sum. */
static inline int64_t slp_rows_grain(int64_t n)
{
	int64_t once = slp_rows_at_once(n), elements = SLP_GRAIN / 4;
	return once * (elements / (once * n + 1) + 1);
}

/* A NaN is skipped: it makes all exponentials of its row NaN anyway. */
SLP_VFN float slp_larger(float a, float x)
{
	return x > a ? x : a;
}

SLP_VFN float slp_row_max(const float *x, int64_t n)
{
	float a[SLP_ROW_LANES], m = -INFINITY;
	int64_t i = 0;
	for (int l = 0; l < SLP_ROW_LANES; l++) a[l] = m;
	for (; i + SLP_ROW_LANES <= n; i += SLP_ROW_LANES)
		for (int l = 0; l < SLP_ROW_LANES; l++) a[l] = slp_larger(a[l], x[i + l]);
	for (int l = 0; i > 0 && l < SLP_ROW_LANES; l++) m = slp_larger(m, a[l]);
	for (; i < n; i++) m = slp_larger(m, x[i]);
	return m;
}

SLP_VFN double slp_fold_lanes(double *a)
{
	for (int w = SLP_ROW_LANES / 2; w; w /= 2)
		for (int l = 0; l < w; l++) a[l] += a[l + w];
	return a[0];
}

/* The sum of f, an expression in i, over i in [0, n). */
#define SLP_ROW_SUM(result, n, f)                                                                                      \
	do {                                                                                                           \
		double lane_[SLP_ROW_LANES] = {0}, rest_ = 0;                                                          \
		int64_t n_ = (n), i_ = 0;                                                                              \
		for (; i_ + SLP_ROW_LANES <= n_; i_ += SLP_ROW_LANES)                                                  \
			for (int l_ = 0; l_ < SLP_ROW_LANES; l_++) {                                                   \
				int64_t i = i_ + l_;                                                                   \
				lane_[l_] += (f);                                                                      \
			}                                                                                              \
		for (int64_t i = i_; i < n_; i++) rest_ += (f);                                                        \
		(result) = (i_ ? slp_fold_lanes(lane_) : 0) + rest_;                                                   \
	} while (0)

/* e = exp(x - max) over a row, where no x is larger than max; may be the same array. */
SLP_VFN void slp_exp_row(float *e, const float *x, float max, int64_t n)
{
	SLP_INDEPENDENT
	for (int64_t i = 0; i < n; i++) e[i] = slp_exp_falling(x[i] - max);
}

/* The same over `rows` rows of n, each with its own maximum, which goes to max. */
SLP_VFN void slp_exp_rows(float *e, const float *x, float *max, int64_t n, int64_t rows)
{
	if (rows == 1) {
		max[0] = slp_row_max(x, n);
		slp_exp_row(e, x, max[0], n);
		return;
	}
	for (int64_t r = 0; r < rows; r++) {
		max[r] = slp_row_max(x + r * n, n);
		SLP_INDEPENDENT
		for (int64_t i = 0; i < n; i++) e[r * n + i] = x[r * n + i] - max[r];
	}
	slp_exp_row(e, e, 0, rows * n);
}

#endif
