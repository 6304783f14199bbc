/* Loops over the elements of one operand or two, which vectorise and which teams share; integers go through them as
 * doubles.
 *
 * What a double holds exactly becomes doubles a piece at a time, which stays in a first-level cache: one loop over
 * doubles serves all such types.  int64 have loops of their own (whole.h), but where they are compared with a
 * number. */
#ifndef SLP_SPANS_H
#define SLP_SPANS_H

#include "common/convert.h"
#include "common/operands.h"
#include "common/scalar.h"
#include "op.h"
#include "whole.h"

/* n elements; step_a and step_b are 0 or 1.  Functions of one number leave b alone. */
typedef void span_fn(void *to, const void *a, int64_t step_a, const void *b, int64_t step_b, int64_t n);

/* Products and quotients of int64 have no vectors, of which clang warns. */
#define SPAN_HINT_float SLP_INDEPENDENT
#define SPAN_HINT_double SLP_INDEPENDENT
#ifdef __clang__
#define SPAN_HINT_int64_t
#else
#define SPAN_HINT_int64_t SLP_INDEPENDENT
#endif

/* The loops over elements of a type: value is a function of a and b, or of x. */
#define SPAN_LOOP(type, first, second, value)                                                                          \
	SPAN_HINT_##type for (int64_t i = 0; i < n; i++)                                                               \
	{                                                                                                              \
		const T a = first, b = second;                                                                         \
		out[i] = value;                                                                                        \
	}
#define SPAN_OF_TWO(name, type, value)                                                                                 \
	SLP_CLONES static void name(void *to, const void *first_a, int64_t step_a, const void *first_b,                \
	                            int64_t step_b, int64_t n)                                                         \
	{                                                                                                              \
		typedef type T;                                                                                        \
		const T *pa = first_a, *pb = first_b;                                                                  \
		T *out = to;                                                                                           \
		const T a0 = *pa, b0 = *pb;                                                                            \
		if (step_a && step_b) {                                                                                \
			SPAN_LOOP(type, pa[i], pb[i], value)                                                           \
		} else if (step_a) {                                                                                   \
			SPAN_LOOP(type, pa[i], b0, value)                                                              \
		} else if (step_b) {                                                                                   \
			SPAN_LOOP(type, a0, pb[i], value)                                                              \
		} else {                                                                                               \
			SPAN_LOOP(type, a0, b0, value)                                                                 \
		}                                                                                                      \
	}
#define SPAN_OF_ONE(name, type, value)                                                                                 \
	SLP_CLONES static void name(void *to, const void *first, int64_t step, const void *none, int64_t no_step,      \
	                            int64_t n)                                                                         \
	{                                                                                                              \
		typedef type T;                                                                                        \
		const T *in = first;                                                                                   \
		T *out = to;                                                                                           \
		(void)step, (void)none, (void)no_step;                                                                 \
		SPAN_HINT_##type for (int64_t i = 0; i < n; i++)                                                       \
		{                                                                                                      \
			const T x = in[i];                                                                             \
			out[i] = value;                                                                                \
		}                                                                                                      \
	}

/* Operands of a loop, for the threads of a team. */
struct span_work {
	struct slp_broadcast_plan plan;
	const char *a, *b; /* b NULL: there is one operand */
	char *out;
	int64_t size; /* of an element */
	span_fn *span;
	enum sl_dtype dtype;     /* of elements that go through doubles, which span takes; else SL_DTYPE_DEFAULT */
	bool number_a, number_b; /* that operand is a double itself */
	bool beside;             /* b is a number that a, int64, are compared with */
};

/* int64 elements as numbers that compare with 0 as the elements with s (slp_whole_beside): spans.c. */
void slp_span_beside(const int64_t *x, double s, double *to, int64_t n);

static inline void as_doubles(const struct span_work *w, const char *from, int64_t n, double *to)
{
	if (w->beside) slp_span_beside((const int64_t *)(const void *)from, *(const double *)(const void *)w->b, to, n);
	else slp_convert(w->dtype, from, SL_FLOAT64, to, n);
}

static void span_by_doubles(const struct span_work *w, char *out, const char *a, int64_t step_a, const char *b,
                            int64_t step_b, int64_t n)
{
	enum { PIECE = 512 };
	double x[PIECE], y[PIECE], z[PIECE];
	y[0] = 0;
	for (int64_t i = 0; i < n; i += PIECE) {
		int64_t m = n - i < PIECE ? n - i : PIECE;
		if (w->number_a) memcpy(x, a, sizeof *x);
		else as_doubles(w, a + i * step_a * w->size, step_a ? m : 1, x);
		if (w->number_b) memcpy(y, b, sizeof *y);
		else if (b && !w->beside) as_doubles(w, b + i * step_b * w->size, step_b ? m : 1, y);
		w->span(z, x, step_a, y, step_b, m);
		slp_convert(SL_FLOAT64, z, w->dtype, out + i * w->size, m);
	}
}

/* A position in the result: the indices of a row, and where the row begins in the operands. */
struct row_position {
	int64_t index[SL_MAX_NDIM], a, b;
};

static inline struct row_position row_position_of(const struct slp_broadcast_plan *p, int64_t row)
{
	struct row_position at = {{0}, 0, 0};
	for (int i = p->ndim - 2; i >= 0; i--) {
		at.index[i] = row % p->dim[i];
		row /= p->dim[i];
		at.a += at.index[i] * p->a[i];
		at.b += at.index[i] * p->b[i];
	}
	return at;
}

static inline void next_row(const struct slp_broadcast_plan *p, struct row_position *at)
{
	for (int i = p->ndim - 2; i >= 0; i--) {
		at->a += p->a[i];
		at->b += p->b[i];
		if (++at->index[i] < p->dim[i]) return;
		at->a -= p->dim[i] * p->a[i];
		at->b -= p->dim[i] * p->b[i];
		at->index[i] = 0;
	}
}

static void span_range(void *arg, int64_t begin, int64_t end)
{
	const struct span_work *w = arg;
	const struct slp_broadcast_plan *p = &w->plan;
	int64_t length = p->dim[p->ndim - 1], step_a = p->a[p->ndim - 1], step_b = p->b[p->ndim - 1];
	int64_t column = begin % length;
	struct row_position at = row_position_of(p, begin / length);
	while (begin < end) {
		int64_t n = length - column < end - begin ? length - column : end - begin;
		char *out = w->out + begin * w->size;
		const char *a = w->a + (at.a + column * step_a) * w->size;
		const char *b = w->b ? w->b + (at.b + column * step_b) * w->size : NULL;
		if (w->dtype) span_by_doubles(w, out, a, step_a, b, step_b, n);
		else w->span(out, a, step_a, b, step_b, n);
		begin += n;
		column = 0;
		next_row(p, &at);
	}
}

/* Work on one operand; another may be added. */
static inline struct span_work span_work_of(const struct slp_kernel *k, span_fn *span)
{
	int64_t n = slp_size(&k->out[0]);
	return (struct span_work){.plan = {1, {n}, {1}, {0}},
	                          .a = k->in[0].ptr,
	                          .out = k->out[0].ptr,
	                          .size = (int64_t)sl_dtype_size(k->out[0].type.dtype),
	                          .span = span};
}

/* As many pieces as SLP_GRAIN makes of n elements, but of one size: of two, neither thread waits for the other. */
static inline int64_t even_grain(int64_t n)
{
	int64_t pieces = (n + SLP_GRAIN - 1) / SLP_GRAIN;
	return ((n + pieces - 1) / pieces + 63) / 64 * 64;
}

/* On the team. */
static inline enum sl_status run_spans(const struct slp_kernel *k, struct span_work *w)
{
	int64_t n = slp_size(&k->out[0]);
	if (n) slp_parallel_for(n, even_grain(n), span_range, w);
	return SL_OK;
}

/* A function of one tensor: by a loop over its own type, or over doubles. */
static inline enum sl_status unary_cpu(const struct slp_kernel *k, span_fn *span)
{
	struct span_work w = span_work_of(k, span);
	return run_spans(k, &w);
}

static inline enum sl_status unary_wide_cpu(const struct slp_kernel *k, span_fn *span)
{
	struct span_work w = span_work_of(k, span);
	w.dtype = k->out[0].type.dtype;
	return run_spans(k, &w);
}

#endif
