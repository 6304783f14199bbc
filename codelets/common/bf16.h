/* Products in bfloat16 by oneDNN, where the processor has instructions for them (AVX512_BF16 or AMX).  Sums are
 * float32, rounded once. */
#ifndef SLP_BF16_H
#define SLP_BF16_H

#include "op.h"
#include "op_inner.h" /* slp_bf16_available */

/* A row for bfloat16 alone: without those instructions the engine computes in float32. */
#define SLP_BF16_ROW(cpu) SLP_CPU_ROW(SLP_DTYPE(SL_BFLOAT16), cpu, slp_bf16_available)

/* A matrix of `rows` in memory, which is used transposed or as it is. */
struct slp_bf16_matrix {
	void *ptr;
	int64_t rows, columns, ld;
	bool transposed;
};

/* c = a b on the team, c of float32 if wide. */
enum sl_status slp_bf16_multiply(const struct slp_kernel *k, const struct slp_bf16_matrix *a,
                                 const struct slp_bf16_matrix *b, const struct slp_bf16_matrix *c, bool wide);

/* Keeps oneDNN from slow instructions for bfloat16 (isa.c). Runs while the library is loaded; named so that a static
 * library keeps it. */
void slp_bf16_limit(void);

#endif
