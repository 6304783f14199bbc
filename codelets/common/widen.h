/* Calls in bfloat16 that are computed in float32, where kernels for bfloat16 do not pay. */
#ifndef SLP_WIDEN_H
#define SLP_WIDEN_H

#include "op.h"

/* Runs the operation's kernel for float32 on copies of the operands in bfloat16, of up to four inputs and three
 * outputs, and rounds what it wrote: products are those of rounded numbers, sums are rounded once. */
enum sl_status slp_in_float32(const struct slp_kernel *k);

#endif
