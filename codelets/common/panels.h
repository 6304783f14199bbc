/* Products of few rows at a time with one matrix, which is packed once. */
#ifndef SLP_PANELS_H
#define SLP_PANELS_H

/* The number of floats of a packed k×n matrix. */
int64_t slp_panels_size(int64_t k, int64_t n);

/* Packs B (k×n), whose element (i, j) is at b[i * bk + j * bn], on the team. */
void slp_panels_pack(float *panels, const float *b, int64_t k, int64_t n, int64_t bk, int64_t bn);

/* C += A·B on the calling thread, A rows×k. The bits of a row do not depend on the number of rows. */
void slp_panels_multiply(const float *panels, int64_t rows, int64_t k, int64_t n, const float *a, int64_t lda, float *c,
                         int64_t ldc);
/* The same on the team, panels divided among its threads: the same bits. */
void slp_panels_multiply_together(const float *panels, int64_t rows, int64_t k, int64_t n, const float *a, int64_t lda,
                                  float *c, int64_t ldc);

#endif
