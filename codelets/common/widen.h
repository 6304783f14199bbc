/* Runs calls in bfloat16 in float32, if kernels for bfloat16 do not pay. */
#ifndef SLP_WIDEN_H
#define SLP_WIDEN_H

#include "op.h"

/* Runs the operation's kernel for float32 on copies of the operands in bfloat16, of up to four inputs and three
 * outputs, and rounds its results: it multiplies rounded numbers, and rounds sums once. */
enum sl_status slp_in_float32(const struct slp_kernel *k);

#endif
