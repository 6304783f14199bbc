/* Reductions of int64: exact in any order, and saturated at the end. */
#ifndef SLP_REDUCE_WHOLE_H
#define SLP_REDUCE_WHOLE_H

#include "whole.h"
#include "reduce_plan.h"

/* One element; kind is a constant wherever these are used. */
SLP_REDUCE_FN struct slp_whole slp_whole_element(enum slp_reduction kind, int64_t x)
{
	struct slp_whole w = slp_whole_of(x);
	if (kind == SLP_REDUCE_prod) {
		w.high = x < 0;
		w.low = slp_whole_size(x);
	} else if (kind == SLP_REDUCE_any || kind == SLP_REDUCE_all) {
		w.high = 0;
		w.low = x != 0;
	}
	return w;
}

/* The result without elements. */
SLP_REDUCE_FN struct slp_whole slp_whole_start(enum slp_reduction kind)
{
	int64_t start = kind == SLP_REDUCE_max ? INT64_MIN : kind == SLP_REDUCE_min ? INT64_MAX : 0;
	return slp_whole_element(kind, kind == SLP_REDUCE_prod || kind == SLP_REDUCE_all ? 1 : start);
}

SLP_REDUCE_FN struct slp_whole slp_whole_merge(enum slp_reduction kind, struct slp_whole a, struct slp_whole b)
{
	if (kind == SLP_REDUCE_max) return (int64_t)a.low >= (int64_t)b.low ? a : b;
	if (kind == SLP_REDUCE_min) return (int64_t)a.low <= (int64_t)b.low ? a : b;
	if (kind == SLP_REDUCE_any) a.low |= b.low;
	else if (kind == SLP_REDUCE_all) a.low &= b.low;
	else if (kind == SLP_REDUCE_prod) {
		a.high ^= b.high;
		a.low = slp_size_mul(a.low, b.low);
	} else a = slp_whole_plus(a, b);
	return a;
}

SLP_REDUCE_FN int64_t slp_whole_finish(enum slp_reduction kind, struct slp_whole a)
{
	if (kind == SLP_REDUCE_prod) return slp_whole_signed(a.high, a.low);
	return slp_whole_saturated(a);
}

#endif
