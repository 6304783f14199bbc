/* Expressions of elementwise functions (op_inner.h) beyond operations of one type in the plain layout: of images in NHWC, of
 * float32 beside a half type; and expressions that become parts of others. */
#ifndef SLP_OP_FUSED_H
#define SLP_OP_FUSED_H

#include "op_inner.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of operations on GPUs that take float32 beside a half type. */
#define SLP_BESIDE_HALF_ROWS(cuda)                                                                                     \
	SLP_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, NULL, cuda), SLP_ROW(SLP_DTYPE(SL_FLOAT16) | SLP_F32, NULL, cuda)

/* Added to the first step: all operands are images in NHWC, under their shapes (n, channels, height, width). */
enum { SLP_FUSED_NHWC = 1 << 30 };
static inline bool slp_fused_is_nhwc(const struct slp_fused_attrs *f)
{
	return f->step[0] & SLP_FUSED_NHWC;
}

/* Adds all steps of an expression of the library's functions, whose input i is operand in[i]; returns what slp_fused_add
 * does. */
int slp_fused_append(struct slp_fused_attrs *f, const struct slp_fused_attrs *part, const int *in);

#ifdef __cplusplus
}
#endif
#endif
