/* Loops over two tensors, or over one and a number, that teams share: binary.c makes its CPU kernels of them. */
#ifndef SLP_BINARY_LOOPS_H
#define SLP_BINARY_LOOPS_H

#include "fill/fill.h"
#include "op.h"
#include "spans.h"

typedef double exact_fn(double a, double b);

static double number(const void *attrs)
{
	return ((const struct slp_value *)attrs)->value;
}

static struct span_work binary_work_of(const struct slp_kernel *k, span_fn *span)
{
	struct span_work w = span_work_of(k, span);
	w.plan = slp_broadcast_plan(k->in[0].type.shape, k->in[1].type.shape, k->out[0].type.shape);
	w.b = k->in[1].ptr;
	return w;
}

static enum sl_status binary_cpu(const struct slp_kernel *k, span_fn *span)
{
	struct span_work w = binary_work_of(k, span);
	return run_spans(k, &w);
}

/* Over doubles. */
static enum sl_status binary_wide_cpu(const struct slp_kernel *k, span_fn *span)
{
	struct span_work w = binary_work_of(k, span);
	w.dtype = k->out[0].type.dtype;
	return run_spans(k, &w);
}

/* s: the number as an element. */
static struct span_work scalar_work_of(const struct slp_kernel *k, const void *s, span_fn *span, bool swapped)
{
	struct span_work w = span_work_of(k, span);
	w.plan.a[0] = !swapped;
	w.plan.b[0] = swapped;
	w.b = swapped ? w.a : s;
	if (swapped) w.a = s;
	return w;
}

static enum sl_status scalar_cpu(const struct slp_kernel *k, span_fn *span, bool swapped)
{
	float s = (float)number(k->attrs);
	struct span_work w = scalar_work_of(k, &s, span, swapped);
	return run_spans(k, &w);
}

static enum sl_status scalar_whole_cpu(const struct slp_kernel *k, span_fn *span, bool swapped)
{
	int64_t s = slp_int64_of(number(k->attrs));
	struct span_work w = scalar_work_of(k, &s, span, swapped);
	return run_spans(k, &w);
}

/* Over doubles, of which the number is one, whatever the type of the elements. */
static enum sl_status scalar_wide_cpu(const struct slp_kernel *k, span_fn *span, bool swapped)
{
	double s = number(k->attrs);
	struct span_work w = scalar_work_of(k, &s, span, swapped);
	w.dtype = k->out[0].type.dtype;
	w.number_a = swapped;
	w.number_b = !swapped;
	return run_spans(k, &w);
}

/* A comparison of int64 with a number that may have no equal among them. */
static enum sl_status compare_whole_cpu(const struct slp_kernel *k, span_fn *span)
{
	double s = number(k->attrs);
	struct span_work w = scalar_work_of(k, &s, span, false);
	w.dtype = k->out[0].type.dtype;
	w.beside = true;
	return run_spans(k, &w);
}

#endif
