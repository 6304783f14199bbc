/* cumsum: the sums of elements up to each one, along an axis. */
#include "common/describe.h"
#include "cumsum.h"
#include "op_list/reduce.h"
#include "starling/primitives.h"
#include "whole.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_cumsum_attrs, axis, SLP_INT, 1, "the axis to sum along"),
        SLP_ATTR(struct slp_cumsum_attrs, reverse, SLP_BOOL, 1, "from the last element on"),
        SLP_ATTR(struct slp_cumsum_attrs, wraps, SLP_BOOL, 1, "sums of int64 are modulo 2^64"),
        {0},
};

static enum sl_status infer(struct slp_infer *c)
{
	struct slp_cumsum_attrs *a = c->attrs;
	int axis = a->axis, ndim = c->in[0].shape.ndim;
	if (!slp_axis(&a->axis, ndim)) return slp_reject(c, SL_EINVAL, "axis %d of a tensor with %d axes", axis, ndim);
	c->out[0] = c->in[0];
	return SL_OK;
}

/* The gradient: an element is part of all sums from its own on. */
static enum sl_status grad(struct slp_grad *g)
{
	struct slp_cumsum_attrs a = *(const struct slp_cumsum_attrs *)g->attrs;
	a.reverse = !a.reverse;
	g->din[0] = slp_apply1(g->at, &slp_op_cumsum, &a, 1, g->dout);
	return g->din[0] ? SL_OK : sl_error();
}

static void whole_line(const int64_t *x, int64_t *y, int64_t n, int64_t step, bool wraps)
{
	struct slp_whole sum = {0, 0};
	uint64_t modular = 0;
	for (int64_t i = 0; i < n; i++) {
		sum = slp_whole_plus(sum, slp_whole_of(x[i * step]));
		modular += (uint64_t)x[i * step];
		y[i * step] = wraps ? (int64_t)modular : slp_whole_saturated(sum);
	}
}

static enum sl_status cumsum_whole(const struct slp_kernel *k)
{
	const struct slp_cumsum_attrs *a = k->attrs;
	struct slp_split s = slp_cumsum_split(k);
	for (int64_t line = 0; line < s.outer * s.inner; line++) {
		struct slp_cumsum_line l = slp_cumsum_line(s, a->reverse, line);
		whole_line((const int64_t *)k->in[0].ptr + l.first, (int64_t *)k->out[0].ptr + l.first, s.n, l.step,
		           a->wraps);
	}
	return SL_OK;
}

static enum sl_status cumsum_ref(const struct slp_kernel *k)
{
	const struct slp_cumsum_attrs *a = k->attrs;
	struct slp_split s = slp_cumsum_split(k);
	if (k->in[0].type.dtype == SL_INT64) return cumsum_whole(k);
	for (int64_t line = 0; line < s.outer * s.inner; line++) {
		struct slp_cumsum_line l = slp_cumsum_line(s, a->reverse, line);
		double sum = 0;
		for (int64_t i = 0; i < s.n; i++) {
			sum += slp_get(&k->in[0], l.first + i * l.step);
			slp_set(&k->out[0], l.first + i * l.step, sum);
		}
	}
	return SL_OK;
}

enum { TILE = 64 };

struct job {
	struct slp_split split;
	bool reverse;
	const float *x;
	float *y;
};

/* Lines side by side: w <= TILE of one slice. */
static SLP_CLONES void lines(const struct job *j, int64_t line, int64_t w)
{
	struct slp_cumsum_line l = slp_cumsum_line(j->split, j->reverse, line);
	double sum[TILE] = {0};
	for (int64_t i = 0; i < j->split.n; i++) {
		const float *x = j->x + l.first + i * l.step;
		float *y = j->y + l.first + i * l.step;
		for (int64_t c = 0; c < w; c++) {
			sum[c] += x[c];
			y[c] = (float)sum[c];
		}
	}
}

static void range(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t w; begin < end; begin += w) {
		w = j->split.inner - begin % j->split.inner;
		if (w > TILE) w = TILE;
		if (w > end - begin) w = end - begin;
		lines(j, begin, w);
	}
}

static enum sl_status cumsum_cpu(const struct slp_kernel *k)
{
	const struct slp_cumsum_attrs *a = k->attrs;
	struct job j = {slp_cumsum_split(k), a->reverse, k->in[0].ptr, k->out[0].ptr};
	if (slp_size(&k->out[0])) slp_parallel_for(j.split.outer * j.split.inner, SLP_GRAIN / j.split.n + 1, range, &j);
	return SL_OK;
}

SLP_DESCRIBE(cumsum, "sums of the elements up to each one, along an axis", "x", 1, .attr_table = attr_table,
             .attrs_size = sizeof(struct slp_cumsum_attrs), .rows = SLP_NUMBER_ROWS(cumsum), .infer = infer,
             .flops = slp_flops_elementwise, .grad = grad, .autocast = SLP_CAST_FLOAT32);

/* The sums of the elements of x up to and including each one along an axis.  Sums of integers saturate.  SL_EINVAL:
 * no such axis (negative: from the end).
 *
 *     sl_tensor *distribution = sl_cumsum(probabilities, -1); */
sl_tensor *sl_cumsum_at(const char *at, sl_tensor *x, int axis)
{
	return slp_apply1(at, &slp_op_cumsum, &(struct slp_cumsum_attrs){.axis = axis}, 1, &x);
}

sl_tensor *slp_cumsum_modular(const char *at, sl_tensor *x, int axis)
{
	return slp_apply1(at, &slp_op_cumsum, &(struct slp_cumsum_attrs){.axis = axis, .wraps = true}, 1, &x);
}
