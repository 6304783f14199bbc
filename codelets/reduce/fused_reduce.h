/* An expression of elementwise functions whose result is reduced at once: fused_reduce.c, elementwise/fused.cu and the
 * graph compiler. */
#ifndef SLP_FUSED_REDUCE_H
#define SLP_FUSED_REDUCE_H

#include "elementwise/fused.h"
#include "reduce_plan.h"

/* An expression of one step less than others, in the same places; the reduction, of enum slp_reduction + 256 mask of axes +
 * 2^24 keepdims. */
struct slp_fused_reduce_attrs {
	double number[SLP_FUSED_NUMBERS];
	int step[SLP_FUSED_STEPS - 1];
	int reduction;
};

#ifdef __cplusplus
extern "C" {
#endif
/* The expression, and the attributes of the reduction, which is returned. */
int slp_fused_reduce_split(const struct slp_fused_reduce_attrs *a, struct slp_fused_attrs *f,
                           struct slp_reduce_attrs *r);
/* Whether a GPU's compiled kernel takes an expression of this type: its sums have the order of reduce.cu's. */
bool slp_fused_reduce_suits(const struct slp_type *expression, const struct slp_reduce_attrs *r);
/* The type of the expression of a call. */
struct slp_type slp_fused_reduce_inner(const struct slp_kernel *k);
/* The expression, into the scratch memory, then the reduction, by their own kernels. */
enum sl_status slp_fused_then_reduce(const struct slp_kernel *k, enum sl_device_kind device);
/* Joins the parts of a plan, which are in k->scratch (reduce.cu). */
void slp_cuda_reduce_join(const struct slp_kernel *k, int reduction, const struct slp_reduce_plan *p);
#ifdef __cplusplus
}
#endif
#endif
