/* Loops of reductions of int64 for parts of the work that teams share: exact, whatever the order. */
#ifndef SLP_REDUCE_EXACT_H
#define SLP_REDUCE_EXACT_H

#include "reduce_loops.h"
#include "reduce_whole.h"

/* Sums add halves of elements separately, which vectorises: n is small enough. */
SLP_INLINE struct slp_whole sum_of_run(const int64_t *x, int64_t n)
{
	int64_t high = 0;
	uint64_t low = 0;
	for (int64_t i = 0; i < n; i++) {
		high += x[i] >> 32;
		low += (uint32_t)x[i];
	}
	struct slp_whole shifted = {high >> 32, (uint64_t)high << 32};
	return slp_whole_plus(shifted, (struct slp_whole){0, low});
}

SLP_INLINE struct slp_whole choice_of_run(enum slp_reduction kind, const int64_t *x, int64_t n)
{
	int64_t a = x[0];
	for (int64_t i = 1; i < n; i++) {
		bool better = kind == SLP_REDUCE_max ? x[i] > a : x[i] < a;
		a = better ? x[i] : a;
	}
	return slp_whole_of(a);
}

/* n neighbours, at least one and at most SLP_REDUCE_PART. */
SLP_INLINE struct slp_whole whole_run(enum slp_reduction kind, const int64_t *x, int64_t n)
{
	struct slp_whole a = slp_whole_start(kind);
	if (kind == SLP_REDUCE_sum) return sum_of_run(x, n);
	if (kind == SLP_REDUCE_max || kind == SLP_REDUCE_min) return choice_of_run(kind, x, n);
	for (int64_t i = 0; i < n; i++) a = slp_whole_merge(kind, a, slp_whole_element(kind, x[i]));
	return a;
}

SLP_INLINE void put_whole(enum slp_reduction kind, const struct job *j, int64_t part, int64_t output,
                          struct slp_whole a)
{
	if (j->plan.parts > 1) ((struct slp_whole *)j->parts)[part * j->plan.nout + output] = a;
	else ((int64_t *)j->y.ptr)[output] = slp_whole_finish(kind, a);
}

SLP_INLINE void whole_rows(enum slp_reduction kind, const struct job *j, int64_t begin, int64_t end)
{
	const struct slp_reduce_plan *p = &j->plan;
	for (int64_t t = begin; t < end; t++) {
		struct slp_reduce_part s = slp_reduce_task(p, t);
		const int64_t *x = (const int64_t *)(const void *)j->x + slp_axes_offset(&p->kept, s.output) + s.column;
		struct slp_whole a = slp_whole_start(kind);
		for (int64_t r = s.row; r < s.end_row && s.column < s.end_column; r++)
			a = slp_whole_merge(kind, a,
			                    whole_run(kind, x + slp_axes_offset(&p->gone, r), s.end_column - s.column));
		put_whole(kind, j, s.part, s.output, a);
	}
}

SLP_INLINE void whole_columns(enum slp_reduction kind, const struct job *j, int64_t begin, int64_t end)
{
	const struct slp_reduce_plan *p = &j->plan;
	struct slp_whole a[SLP_REDUCE_TILE];
	for (int64_t t = begin; t < end; t++) {
		struct slp_reduce_part s = slp_reduce_task(p, t);
		const int64_t *from =
		        (const int64_t *)(const void *)j->x + slp_axes_offset(&p->kept, s.output) + s.column;
		int64_t w = s.end_column - s.column;
		for (int64_t i = 0; i < w; i++) a[i] = slp_whole_start(kind);
		for (int64_t r = s.row; r < s.end_row; r++) {
			const int64_t *x = from + slp_axes_offset(&p->gone, r);
			for (int64_t i = 0; i < w; i++)
				a[i] = slp_whole_merge(kind, a[i], slp_whole_element(kind, x[i]));
		}
		for (int64_t i = 0; i < w; i++)
			put_whole(kind, j, s.part / p->nlength, s.output * p->inner + s.column + i, a[i]);
	}
}

SLP_INLINE void whole_finish(enum slp_reduction kind, const struct job *j, int64_t begin, int64_t end)
{
	for (int64_t o = begin; o < end; o++) {
		struct slp_whole a = slp_whole_start(kind);
		for (int64_t part = 0; part < j->plan.parts; part++)
			a = slp_whole_merge(kind, a, ((const struct slp_whole *)j->parts)[part * j->plan.nout + o]);
		((int64_t *)j->y.ptr)[o] = slp_whole_finish(kind, a);
	}
}

#endif
