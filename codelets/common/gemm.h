/* Matrix products on CPUs beside slp_sgemm of op.h: in double precision, and on the calling thread alone.
 * All are row-major: C = alpha op(A) op(B) + beta C with op(A) m×k, op(B) k×n; beta 0 overwrites whatever C holds. */
#ifndef SLP_GEMM_H
#define SLP_GEMM_H

#include "starling/base.h"

/* On the threads of the team. */
void slp_dgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t kk, double alpha, const double *a, int64_t lda,
               const double *b, int64_t ldb, double beta, double *c, int64_t ldc);

/* On the calling thread: for use inside slp_parallel_for. */
enum sl_status slp_sgemm_serial(bool ta, bool tb, int64_t m, int64_t n, int64_t kk, float alpha, const float *a,
                                int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
void slp_dgemm_serial(bool ta, bool tb, int64_t m, int64_t n, int64_t kk, double alpha, const double *a, int64_t lda,
                      const double *b, int64_t ldb, double beta, double *c, int64_t ldc);

#endif
