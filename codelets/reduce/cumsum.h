/* Attributes of cumsum. */
#ifndef SLP_CUMSUM_H
#define SLP_CUMSUM_H

#include "common/strided.h"
#include "op.h"

struct slp_cumsum_attrs {
	int axis;     /* after infer: from 0 */
	bool reverse; /* from the last element on */
	bool wraps;   /* sums of int64 are modulo 2^64 */
};

/* A line along the axis: its first element, and the step to the next. */
struct slp_cumsum_line {
	int64_t first, step;
};

#ifdef __CUDACC__
__host__ __device__
#endif
        static inline struct slp_cumsum_line
        slp_cumsum_line(struct slp_split s, bool reverse, int64_t line)
{
	struct slp_cumsum_line l = {line / s.inner * s.n * s.inner + line % s.inner, s.inner};
	if (reverse) {
		l.first += (s.n - 1) * s.inner;
		l.step = -s.inner;
	}
	return l;
}

static inline struct slp_split slp_cumsum_split(const struct slp_kernel *k)
{
	return slp_split_at(k->in[0].type.shape, ((const struct slp_cumsum_attrs *)k->attrs)->axis);
}

#endif
