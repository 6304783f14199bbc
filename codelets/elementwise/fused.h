/* Short expressions of elementwise functions that are computed in one pass over memory, for fused.c, fused.cu and the
 * graph compiler.
 *
 * An expression is made by adding one operation after another; what slp_fused_add returns names the result for later
 * ones:
 *
 *     struct slp_fused_attrs f = {0};
 *     int t = slp_fused_add(&f, &slp_op_mul_scalar, &(struct slp_value){2}, SLP_FUSED_INPUT + 0, 0);
 *     slp_fused_add(&f, &slp_op_add, NULL, t, SLP_FUSED_INPUT + 1);            // in[0] * 2 + in[1]
 *     slp_apply1(at, &slp_op_fused, &f, 2, (sl_tensor *[]){x, y});
 *
 * The last one is the result.  The functions are those of unary.def and binary.def, with their gradients: whatever is
 * added there can be fused.  On CPUs, operations of programs can, too, if their kernels take parts (expression.c). */
#ifndef SLP_FUSED_H
#define SLP_FUSED_H

#include "op.h"
#include "op_fused.h"
#include "op_inner.h"

#ifdef __cplusplus
extern "C" {
#endif

enum slp_fused_code {
	SLP_FUSED_END, /* no step: a shorter expression ends here */
#define X(name) SLP_FUSED_##name,
#include "fused.def"
#undef X
	SLP_FUSED_CODES
};

struct slp_fused_step {
	int code, a, b; /* b is a where the function has one argument */
	int own;        /* 0, or: code is the place of a program's operation in slp_ops, whose attributes are the
	                   numbers from this one less 1 on */
};

static inline struct slp_fused_step slp_fused_step_at(const struct slp_fused_attrs *f, int i)
{
	int s = f->step[i];
	return (struct slp_fused_step){s & 255, s >> 8 & 255, s >> 16 & 255, s >> 24 & 63};
}

/* The number of steps of an expression. */
static inline int slp_fused_count(const struct slp_fused_attrs *f)
{
	int n = 0;
	while (n < SLP_FUSED_STEPS && f->step[n] & 255) n++;
	return n;
}

/* The shape of an operand as it is stored. */
static inline sl_shape slp_fused_stored(const struct slp_fused_attrs *f, sl_shape s)
{
	sl_shape n = {4, {1, 1, 1, 1}};
	if (!slp_fused_is_nhwc(f)) return s;
	for (int i = 0; i < s.ndim; i++) n.dim[4 - s.ndim + i] = s.dim[i];
	return (sl_shape){4, {n.dim[0], n.dim[2], n.dim[3], n.dim[1]}};
}

/* The operation of a step; whether there is one. */
const struct sl_op *slp_fused_function(struct slp_fused_step s);
bool slp_fused_step_exists(struct slp_fused_step s);

/* The attributes of a step of a program's operation; bytes outside of its fields stay as they are. */
void slp_fused_unpack(const struct slp_fused_attrs *f, struct slp_fused_step s, void *attrs);

#ifdef __cplusplus
}
#endif
#endif
