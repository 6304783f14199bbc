/* Attributes and order of argsort. */
#ifndef SLP_ARGSORT_H
#define SLP_ARGSORT_H

#include "common/strided.h"
#include "op.h"

struct slp_argsort_attrs {
	int axis; /* after infer: from 0 */
	bool descending;
};

#ifdef __CUDACC__
#define SLP_ARGSORT_FN static __host__ __device__ inline
#else
#define SLP_ARGSORT_FN static inline
#endif

/* Whether a must stand before b; NaN counts as the largest number. */
SLP_ARGSORT_FN bool slp_sorts_before(double a, double b, bool descending)
{
	bool less = a < b || (b != b && a == a), more = a > b || (a != a && b == b);
	return descending ? more : less;
}

SLP_ARGSORT_FN bool slp_whole_sorts_before(int64_t a, int64_t b, bool descending)
{
	return descending ? a > b : a < b;
}

static inline struct slp_split slp_argsort_split(const struct slp_kernel *k)
{
	return slp_split_at(k->in[0].type.shape, ((const struct slp_argsort_attrs *)k->attrs)->axis);
}

#endif
