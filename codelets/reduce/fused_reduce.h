/* An expression of elementwise functions whose result is reduced at once, or of which a softmax is taken: fused_reduce.c,
 * fused_reduce.cu and the graph compiler. */
#ifndef SLP_FUSED_REDUCE_H
#define SLP_FUSED_REDUCE_H

#include "common/axis.h"
#include "elementwise/fused.h"
#include "reduce_plan.h"

/* The last operation: one of enum slp_reduction, or of these, along the last axis. */
enum slp_fused_softmax {
	SLP_FUSED_SOFTMAX = 16,
	SLP_FUSED_LOG_SOFTMAX,
	SLP_FUSED_LAST_OPS,
};

/* An expression of one step less than others, in the same places; the last operation + 256 mask of axes +
 * 2^24 keepdims. */
struct slp_fused_reduce_attrs {
	double number[SLP_FUSED_NUMBERS];
	int step[SLP_FUSED_STEPS - 1];
	int reduction;
};

/* The last operation of a call, with its attributes.  op NULL: there is none of that number. */
struct slp_fused_last {
	int number;
	const struct sl_op *op;
	union {
		struct slp_reduce_attrs reduce;
		struct slp_axis_attrs softmax;
	} attrs;
};

static inline bool slp_fused_is_softmax(int number)
{
	return number >= SLP_FUSED_SOFTMAX;
}

#ifdef __cplusplus
extern "C" {
#endif
/* The expression, and the last operation. */
void slp_fused_reduce_split(const struct slp_fused_reduce_attrs *a, struct slp_fused_attrs *f,
                            struct slp_fused_last *last);
/* The type of the expression of a call. */
struct slp_type slp_fused_reduce_inner(const struct slp_kernel *k);
/* Whether a GPU's compiled softmax takes rows of so many elements: a group of threads holds one in registers, 16 bytes of
 * a thread at a time. */
bool slp_fused_softmax_suits(int64_t n, enum sl_dtype dtype);
/* Joins the parts of a plan, which are in k->scratch (reduce.cu). */
void slp_cuda_reduce_join(const struct slp_kernel *k, int reduction, const struct slp_reduce_plan *p);
#ifdef __cplusplus
}
#endif
#endif
