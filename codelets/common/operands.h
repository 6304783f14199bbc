/* Walks through two operands whose shapes are broadcast: axes are merged where possible, so equal shapes have a single
 * axis, and a bias or a channel's number two or three. */
#ifndef SLP_OPERANDS_H
#define SLP_OPERANDS_H

#include "starling/tensor.h"

/* Element (i0, i1, …) of the result is at i0 * a[0] + i1 * a[1] … in the first operand, likewise b; steps of 0 repeat.
 * The steps of the last axis are 0 or 1. */
struct slp_broadcast_plan {
	int ndim; /* at least 1 */
	int64_t dim[SL_MAX_NDIM], a[SL_MAX_NDIM], b[SL_MAX_NDIM];
};

/* The step of each axis of the result in an operand of shape s. */
static inline void slp_broadcast_steps(sl_shape s, int ndim, int64_t step[SL_MAX_NDIM])
{
	int64_t size = 1;
	for (int i = ndim - 1, j = s.ndim - 1; i >= 0; i--, j--) {
		int64_t dim = j < 0 ? 1 : s.dim[j];
		step[i] = dim == 1 ? 0 : size;
		size *= dim;
	}
}

static inline struct slp_broadcast_plan slp_broadcast_plan(sl_shape a, sl_shape b, sl_shape out)
{
	struct slp_broadcast_plan p = {0, {0}, {0}, {0}};
	int64_t sa[SL_MAX_NDIM], sb[SL_MAX_NDIM];
	slp_broadcast_steps(a, out.ndim, sa);
	slp_broadcast_steps(b, out.ndim, sb);
	for (int i = 0; i < out.ndim; i++) {
		int last = p.ndim - 1;
		if (out.dim[i] == 1) continue;
		bool merge = last >= 0 && p.a[last] == sa[i] * out.dim[i] && p.b[last] == sb[i] * out.dim[i];
		if (!merge) p.dim[++last] = 1;
		p.dim[last] *= out.dim[i];
		p.a[last] = sa[i];
		p.b[last] = sb[i];
		p.ndim = last + 1;
	}
	if (p.ndim == 0) p.dim[p.ndim++] = 1;
	return p;
}

#endif
