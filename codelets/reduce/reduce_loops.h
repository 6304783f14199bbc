/* Loops of reductions over axes, for parts of the work (reduce_plan.h) that teams share.
 *
 * float32 is read in place; other types (`wide`) are converted to doubles in pieces that stay in a first-level cache.
 * int64, which a double may not hold, has loops of its own (reduce_exact.h). */
#ifndef SLP_REDUCE_LOOPS_H
#define SLP_REDUCE_LOOPS_H

#include "common/convert.h"
#include "common/simd.h"
#include "op.h"
#include "reduce_plan.h"

struct job {
	struct slp_reduce_plan plan;
	const char *x;
	struct slp_view y;
	void *parts; /* [part][output]: doubles */
};

SLP_INLINE void put(enum slp_reduction kind, bool wide, const struct job *j, int64_t output, double a)
{
	double y = slp_reduce_finish(kind, a, (double)j->plan.count);
	if (wide) slp_set(&j->y, output, y);
	else ((float *)j->y.ptr)[output] = (float)y;
}

SLP_INLINE void put_part(enum slp_reduction kind, bool wide, const struct job *j, int64_t part, int64_t output,
                         double a)
{
	if (j->plan.parts > 1) ((double *)j->parts)[part * j->plan.nout + output] = a;
	else put(kind, wide, j, output, a);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Elements that are read at once: more than the lanes of a short row, and the rows of a tile. */
enum { PIECE = 2048 };

/* n elements from element `at` on: in place, or in the buffer. */
SLP_INLINE const void *elements(bool wide, const struct job *j, int64_t at, int64_t n, double *buffer)
{
	if (!wide) return (const float *)(const void *)j->x + at;
	slp_convert(j->y.type.dtype, j->x + at * (int64_t)sl_dtype_size(j->y.type.dtype), SL_FLOAT64, buffer, n);
	return buffer;
}

SLP_INLINE double element(bool wide, const void *x, int64_t i)
{
	return wide ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* ---- along rows -------------------------------------------------------------------------------------------------- */

/* Lanes: enough to hide the latency of an addition, and so many that compilers vectorise the loops over them instead of
 * unrolling them. */
enum { LANES = 32, SHORT_ROW = 24, GROUP = 16 };

/* Adds n neighbours to the lanes. */
SLP_INLINE void gather(enum slp_reduction kind, bool wide, double *restrict a, const void *restrict x, int64_t n)
{
	int64_t i = 0;
	for (; i + LANES <= n; i += LANES)
		for (int l = 0; l < LANES; l++) a[l] = slp_reduce_step(kind, a[l], element(wide, x, i + l));
	for (int64_t l = 0; l < n - i; l++) a[l] = slp_reduce_step(kind, a[l], element(wide, x, i + l));
}

SLP_INLINE double fold(enum slp_reduction kind, double *restrict a)
{
	for (int w = LANES / 2; w; w /= 2)
		for (int l = 0; l < w; l++) a[l] = slp_reduce_merge(kind, a[l], a[l + w]);
	return a[0];
}

SLP_INLINE void gather_row(enum slp_reduction kind, bool wide, const struct job *j, double *a, int64_t at, int64_t n)
{
	double buffer[PIECE];
	for (int64_t i = 0, m; i < n; i += m) {
		m = wide && n - i > PIECE ? PIECE : n - i;
		gather(kind, wide, a, elements(wide, j, at + i, m, buffer), m);
	}
}

SLP_INLINE void rows(enum slp_reduction kind, bool wide, const struct job *j, int64_t begin, int64_t end)
{
	const struct slp_reduce_plan *p = &j->plan;
	for (int64_t t = begin; t < end; t++) {
		struct slp_reduce_part s = slp_reduce_task(p, t);
		int64_t at = slp_axes_offset(&p->kept, s.output) + s.column;
		double a[LANES];
		for (int l = 0; l < LANES; l++) a[l] = slp_reduce_start(kind);
		for (int64_t r = s.row; r < s.end_row; r++)
			gather_row(kind, wide, j, a, at + slp_axes_offset(&p->gone, r), s.end_column - s.column);
		put_part(kind, wide, j, s.part, s.output, fold(kind, a));
	}
}

/* Rows of few elements, one after another: a lane a row. */
SLP_INLINE void short_rows(enum slp_reduction kind, bool wide, const struct job *j, int64_t begin, int64_t end)
{
	int64_t n = j->plan.inner;
	double buffer[LANES * SHORT_ROW];
	for (int64_t o = begin; o < end; o += LANES) {
		int64_t lanes = end - o < LANES ? end - o : LANES;
		const void *x = elements(wide, j, o * n, lanes * n, buffer);
		double a[LANES];
		for (int l = 0; l < LANES; l++) a[l] = slp_reduce_start(kind);
		for (int64_t i = 0; lanes == LANES && i < n; i++)
			for (int l = 0; l < LANES; l++) a[l] = slp_reduce_step(kind, a[l], element(wide, x, l * n + i));
		for (int64_t i = 0; lanes < LANES && i < n; i++)
			for (int l = 0; l < lanes; l++) a[l] = slp_reduce_step(kind, a[l], element(wide, x, l * n + i));
		for (int l = 0; l < lanes; l++) put_part(kind, wide, j, 0, o + l, a[l]);
	}
}

static inline bool rows_are_short(const struct slp_reduce_plan *p)
{
	return p->inner <= SHORT_ROW && p->gone.n == 0 && p->kept.n == 1;
}

/* ---- along columns ----------------------------------------------------------------------------------------------- */

/* Adds rows of w elements, `pitch` apart, to a; four at a time, to read a less often. */
SLP_INLINE void add_rows(enum slp_reduction kind, bool wide, const struct job *j, double *restrict a, int64_t at,
                         int64_t w, int64_t pitch, int64_t nrows)
{
	double buffer[PIECE];
	int64_t r = 0;
	for (; !wide && r + 4 <= nrows; r += 4, at += 4 * pitch) {
		const void *x = elements(wide, j, at, 0, buffer);
		for (int64_t i = 0; i < w; i++) {
			double b = slp_reduce_step(kind, a[i], element(wide, x, i));
			b = slp_reduce_step(kind, b, element(wide, x, i + pitch));
			b = slp_reduce_step(kind, b, element(wide, x, i + 2 * pitch));
			a[i] = slp_reduce_step(kind, b, element(wide, x, i + 3 * pitch));
		}
	}
	for (; r < nrows; r++, at += pitch) {
		const void *x = elements(wide, j, at, w, buffer);
		for (int64_t i = 0; i < w; i++) a[i] = slp_reduce_step(kind, a[i], element(wide, x, i));
	}
}

/* The same; `group` rows without gaps between them are read as one long row. */
SLP_INLINE void add_grouped(enum slp_reduction kind, bool wide, const struct job *j, double *restrict a, int64_t at,
                            int64_t w, int64_t pitch, int64_t nrows, int64_t group)
{
	int64_t whole = nrows / group;
	add_rows(kind, wide, j, a, at, group * w, group * pitch, whole);
	add_rows(kind, wide, j, a, at + whole * group * pitch, w, pitch, nrows - whole * group);
	for (int64_t g = 1; g < group; g++)
		for (int64_t i = 0; i < w; i++) a[i] = slp_reduce_merge(kind, a[i], a[g * w + i]);
}

SLP_INLINE void columns(enum slp_reduction kind, bool wide, const struct job *j, int64_t begin, int64_t end)
{
	const struct slp_reduce_plan *p = &j->plan;
	double a[SLP_REDUCE_TILE];
	for (int64_t t = begin; t < end; t++) {
		struct slp_reduce_part s = slp_reduce_task(p, t);
		int64_t at = slp_axes_offset(&p->kept, s.output) + s.column;
		int64_t w = s.end_column - s.column, nrows = s.end_row - s.row, pitch = p->gone.stride[0];
		int64_t group = w <= SHORT_ROW && pitch == w ? GROUP : 1;
		for (int64_t i = 0; i < group * w; i++) a[i] = slp_reduce_start(kind);
		if (p->gone.n <= 1) add_grouped(kind, wide, j, a, at + s.row * pitch, w, pitch, nrows, group);
		else
			for (int64_t r = s.row; r < s.end_row; r++)
				add_rows(kind, wide, j, a, at + slp_axes_offset(&p->gone, r), w, 0, 1);
		for (int64_t i = 0; i < w; i++)
			put_part(kind, wide, j, s.part / p->nlength, s.output * p->inner + s.column + i, a[i]);
	}
}

/* Combines the parts of outputs [begin, end). */
SLP_INLINE void finish(enum slp_reduction kind, bool wide, const struct job *j, int64_t begin, int64_t end)
{
	double a[SLP_REDUCE_TILE];
	for (int64_t o = begin; o < end; o += SLP_REDUCE_TILE) {
		int64_t n = end - o < SLP_REDUCE_TILE ? end - o : SLP_REDUCE_TILE;
		for (int64_t i = 0; i < n; i++) a[i] = slp_reduce_start(kind);
		for (int64_t part = 0; part < j->plan.parts; part++) {
			const double *b = (const double *)j->parts + part * j->plan.nout + o;
			for (int64_t i = 0; i < n; i++) a[i] = slp_reduce_merge(kind, a[i], b[i]);
		}
		for (int64_t i = 0; i < n; i++) put(kind, wide, j, o + i, a[i]);
	}
}

/* ---- on the team ------------------------------------------------------------------------------------------------- */

typedef void part_fn(void *arg, int64_t begin, int64_t end);

/* The loops of a reduction of some types. */
struct loops {
	part_fn *rows, *short_rows, *columns, *finish; /* short_rows NULL: rows are not interleaved */
};

static inline enum sl_status reduce(const struct slp_kernel *k, const struct loops *l)
{
	struct job j = {slp_reduce_plan_of(k->in[0].type.shape, k->attrs), k->in[0].ptr, k->out[0], k->scratch};
	const struct slp_reduce_plan *p = &j.plan;
	int64_t tasks = p->nout ? p->kept.size * p->nrows * p->nlength : 0;
	int64_t work = (p->rows < p->gone.size ? p->rows : p->gone.size) * p->length + 1;
	part_fn *fn = p->columns ? l->columns : l->short_rows && rows_are_short(p) ? l->short_rows : l->rows;
	slp_parallel_for(tasks, slp_reduce_ceil(SLP_GRAIN, work), fn, &j);
	if (p->parts > 1) slp_parallel_for(p->nout, SLP_REDUCE_TILE, l->finish, &j);
	return SL_OK;
}

#endif
