/* Loops over two tensors, or over one and a number, that teams share: what binary.c makes its CPU kernels of. */
#ifndef SLP_BINARY_LOOPS_H
#define SLP_BINARY_LOOPS_H

#include "common/operands.h"
#include "fill/fill.h"
#include "whole.h"

typedef double exact_fn(double a, double b);

static double number(const void *attrs)
{
	return ((const struct slp_value *)attrs)->value;
}

/* n elements, float32 or int64; step_a and step_b are 0 or 1. */
typedef void span_fn(void *to, const void *a, int64_t step_a, const void *b, int64_t step_b, int64_t n);

struct binary_work {
	struct slp_broadcast_plan plan;
	const char *a, *b;
	char *out;
	int64_t size; /* of an element */
	span_fn *span;
};

/* A position in the result: the indices of a row, and where the row begins in the operands. */
struct row_position {
	int64_t index[SL_MAX_NDIM], a, b;
};

static struct row_position row_position_of(const struct slp_broadcast_plan *p, int64_t row)
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

static void next_row(const struct slp_broadcast_plan *p, struct row_position *at)
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

static void binary_range(void *arg, int64_t begin, int64_t end)
{
	const struct binary_work *w = arg;
	const struct slp_broadcast_plan *p = &w->plan;
	int64_t length = p->dim[p->ndim - 1], step_a = p->a[p->ndim - 1], step_b = p->b[p->ndim - 1];
	int64_t column = begin % length;
	struct row_position at = row_position_of(p, begin / length);
	while (begin < end) {
		int64_t n = length - column < end - begin ? length - column : end - begin;
		w->span(w->out + begin * w->size, w->a + (at.a + column * step_a) * w->size, step_a,
		        w->b + (at.b + column * step_b) * w->size, step_b, n);
		begin += n;
		column = 0;
		next_row(p, &at);
	}
}

static enum sl_status binary_cpu(const struct slp_kernel *k, span_fn *span)
{
	int64_t n = slp_size(&k->out[0]);
	if (n == 0) return SL_OK;
	struct binary_work w = {slp_broadcast_plan(k->in[0].type.shape, k->in[1].type.shape, k->out[0].type.shape),
	                        k->in[0].ptr,
	                        k->in[1].ptr,
	                        k->out[0].ptr,
	                        (int64_t)sl_dtype_size(k->out[0].type.dtype),
	                        span};
	slp_parallel_for(n, SLP_GRAIN, binary_range, &w);
	return SL_OK;
}

/* s: the number as an element. */
static enum sl_status with_number(const struct slp_kernel *k, const void *s, span_fn *span, bool swapped)
{
	int64_t n = slp_size(&k->out[0]);
	const void *x = k->in[0].ptr;
	struct binary_work w = {{1, {n}, {!swapped}, {swapped}},
	                        swapped ? s : x,
	                        swapped ? x : s,
	                        k->out[0].ptr,
	                        (int64_t)sl_dtype_size(k->out[0].type.dtype),
	                        span};
	if (n) slp_parallel_for(n, SLP_GRAIN, binary_range, &w);
	return SL_OK;
}

static enum sl_status scalar_cpu(const struct slp_kernel *k, span_fn *span, bool swapped)
{
	float s = (float)number(k->attrs);
	return with_number(k, &s, span, swapped);
}

static enum sl_status scalar_whole_cpu(const struct slp_kernel *k, span_fn *span, bool swapped)
{
	int64_t s = slp_int64_of(number(k->attrs));
	return with_number(k, &s, span, swapped);
}

struct compare_work {
	const struct slp_kernel *k;
	exact_fn *f;
};

static void compare_range(void *arg, int64_t begin, int64_t end)
{
	const struct compare_work *w = arg;
	const int64_t *x = w->k->in[0].ptr;
	int64_t *out = w->k->out[0].ptr;
	double s = number(w->k->attrs);
	for (int64_t i = begin; i < end; i++) out[i] = (int64_t)w->f(slp_whole_beside(x[i], s), 0);
}

static enum sl_status compare_whole_cpu(const struct slp_kernel *k, exact_fn *f)
{
	struct compare_work w = {k, f};
	slp_parallel_for(slp_size(&k->out[0]), SLP_GRAIN, compare_range, &w);
	return SL_OK;
}

#endif
