/* How a reduction walks over its input, on CPUs and GPUs alike: axes are merged where possible, and the elements of one
 * output are divided into parts of a fixed size. The parts depend on the shape alone, and so do the bits of the result.
 * All sums are in double precision, which memory-bound loops do for free. */
#ifndef SLP_REDUCE_PLAN_H
#define SLP_REDUCE_PLAN_H

#include <math.h>
#include <string.h>

#include "starling/tensor.h"

#ifdef __CUDACC__
#define SLP_REDUCE_FN static __host__ __device__ __forceinline__
#else
#define SLP_REDUCE_FN static inline __attribute__((always_inline))
#endif

/* After infer: distinct axes in rising order. */
struct slp_reduce_attrs {
	int axes[SL_MAX_NDIM];
	int naxes;
	bool keepdims;
};

enum slp_reduction {
#define X(name, start, step, merge, finish, dtypes, saves, doc) SLP_REDUCE_##name,
#include "reduce.def"
#undef X
};

/* ---- arithmetic; kind is a constant wherever these are used ----------------------------------------------------- */

SLP_REDUCE_FN double slp_reduce_start(enum slp_reduction kind)
{
	switch (kind) {
#define X(name, start, step, merge, finish, dtypes, saves, doc)                                                        \
	case SLP_REDUCE_##name:                                                                                        \
		return start;
#include "reduce.def"
#undef X
	}
	return 0;
}

SLP_REDUCE_FN double slp_reduce_step(enum slp_reduction kind, double a, double x)
{
	switch (kind) {
#define X(name, start, step, merge, finish, dtypes, saves, doc)                                                        \
	case SLP_REDUCE_##name:                                                                                        \
		return step;
#include "reduce.def"
#undef X
	}
	return a;
}

SLP_REDUCE_FN double slp_reduce_merge(enum slp_reduction kind, double a, double b)
{
	switch (kind) {
#define X(name, start, step, merge, finish, dtypes, saves, doc)                                                        \
	case SLP_REDUCE_##name:                                                                                        \
		return merge;
#include "reduce.def"
#undef X
	}
	return a;
}

SLP_REDUCE_FN double slp_reduce_finish(enum slp_reduction kind, double a, double count)
{
	(void)count;
	switch (kind) {
#define X(name, start, step, merge, finish, dtypes, saves, doc)                                                        \
	case SLP_REDUCE_##name:                                                                                        \
		return finish;
#include "reduce.def"
#undef X
	}
	return a;
}

/* ---- axes ------------------------------------------------------------------------------------------------------- */

/* Some axes of the input, outermost first. */
struct slp_axes {
	int n;
	int64_t dim[SL_MAX_NDIM / 2], stride[SL_MAX_NDIM / 2];
	int64_t size;
};

/* The place of combination i of the axes' indices. */
SLP_REDUCE_FN int64_t slp_axes_offset(const struct slp_axes *axes, int64_t i)
{
	int64_t offset = 0;
	for (int a = axes->n - 1; a > 0; a--) {
		offset += i % axes->dim[a] * axes->stride[a];
		i /= axes->dim[a];
	}
	return offset + i * axes->stride[0];
}

static inline void slp_axes_prepend(struct slp_axes *axes, int64_t dim, int64_t stride)
{
	for (int a = axes->n++; a > 0; a--) {
		axes->dim[a] = axes->dim[a - 1];
		axes->stride[a] = axes->stride[a - 1];
	}
	axes->dim[0] = dim;
	axes->stride[0] = stride;
	axes->size *= dim;
}

/* ---- the plan --------------------------------------------------------------------------------------------------- */

enum { SLP_REDUCE_PART = 16384, SLP_REDUCE_TILE = 2048, SLP_REDUCE_MIN_ROWS = 64 };

/* The input is `kept` by `gone` rows of `inner` neighbours. Either each row is summed (and over gone), or, with
 * columns, the rows are added to each other. */
struct slp_reduce_plan {
	bool columns;
	struct slp_axes kept, gone;
	int64_t inner;
	int64_t nout, count;    /* outputs; elements of each output's reduction */
	int64_t rows, length;   /* of a part */
	int64_t nrows, nlength; /* parts along gone, along inner */
	int64_t parts;          /* that make one output */
};

static inline int64_t slp_reduce_ceil(int64_t n, int64_t by)
{
	return n > by ? (n + by - 1) / by : 1;
}

static inline unsigned slp_reduce_mask(const struct slp_reduce_attrs *attrs)
{
	unsigned mask = 0;
	for (int i = 0; i < attrs->naxes; i++) mask |= 1u << attrs->axes[i];
	return mask;
}

/* Merges neighbouring axes that are all reduced or all kept; the innermost group becomes `inner`. */
static inline void slp_reduce_fold(struct slp_reduce_plan *p, sl_shape shape, unsigned mask)
{
	struct {
		int64_t dim;
		bool gone;
	} group[SL_MAX_NDIM];
	int n = 0;
	for (int a = shape.ndim - 1; a >= 0; a--) {
		bool gone = mask >> a & 1;
		if (shape.dim[a] == 1) continue;
		if (n == 0 || group[n - 1].gone != gone) {
			group[n].dim = 1;
			group[n++].gone = gone;
		}
		group[n - 1].dim *= shape.dim[a];
	}
	p->inner = n ? group[0].dim : 1;
	p->columns = n && !group[0].gone;
	for (int64_t i = 1, stride = p->inner; i < n; stride *= group[i++].dim)
		slp_axes_prepend(group[i].gone ? &p->gone : &p->kept, group[i].dim, stride);
}

static inline struct slp_reduce_plan slp_reduce_plan_of(sl_shape shape, const struct slp_reduce_attrs *attrs)
{
	struct slp_reduce_plan p;
	memset(&p, 0, sizeof p);
	p.kept.size = p.gone.size = 1;
	slp_reduce_fold(&p, shape, slp_reduce_mask(attrs));
	p.nout = p.columns ? p.kept.size * p.inner : p.kept.size;
	p.count = p.columns ? p.gone.size : p.gone.size * p.inner;
	int64_t longest = p.columns ? SLP_REDUCE_TILE : SLP_REDUCE_PART;
	p.length = p.inner < longest ? p.inner : longest;
	p.rows = SLP_REDUCE_PART / (p.length > 0 ? p.length : 1);
	if (p.columns && p.rows < SLP_REDUCE_MIN_ROWS) p.rows = SLP_REDUCE_MIN_ROWS;
	p.nrows = slp_reduce_ceil(p.gone.size, p.rows);
	p.nlength = slp_reduce_ceil(p.inner, p.length);
	p.parts = p.columns ? p.nrows : p.nrows * p.nlength;
	return p;
}

/* Bytes of the parts' results, if an output has several parts. */
static inline size_t slp_reduce_scratch(const struct slp_reduce_plan *p)
{
	return p->parts > 1 ? (size_t)(p->parts * p->nout) * sizeof(double) : 0;
}

/* The range of a part: rows of gone, columns in inner, and the beginning of its first row. */
struct slp_reduce_part {
	int64_t row, end_row, column, end_column, output, part;
};

/* Task t of p->kept.size * p->nrows * p->nlength. */
SLP_REDUCE_FN struct slp_reduce_part slp_reduce_task(const struct slp_reduce_plan *p, int64_t t)
{
	struct slp_reduce_part s = {0, p->gone.size, 0, p->inner, t, 0};
	int64_t tasks = p->nrows * p->nlength;
	if (tasks == 1) return s;
	s.output = t / tasks;
	s.part = t % tasks;
	s.row = s.part / p->nlength * p->rows;
	s.column = s.part % p->nlength * p->length;
	if (s.end_row > s.row + p->rows) s.end_row = s.row + p->rows;
	if (s.end_column > s.column + p->length) s.end_column = s.column + p->length;
	return s;
}

#endif
