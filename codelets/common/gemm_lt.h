/* Matrix products by cublasLt with a choice of algorithms (gemm_lt.cu): column-major, as in cuBLAS. */
#ifndef SLP_GEMM_LT_H
#define SLP_GEMM_LT_H

#include "cuda_libs.h"

#include "tune.h"

/* Everything that the time of a product depends on; compared as bytes: fill it with zeros first. */
struct slp_lt_product {
	int64_t ta, tb, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count;
	int64_t type, to;     /* cudaDataType_t of the factors, of C */
	int64_t tf32, adds;   /* float32 may be rounded; C is added to */
	int64_t biased;       /* a vector, of as many elements as C has rows, is added to each column */
	int64_t alignment[4]; /* of a, b, c and the vector: bytes, up to 16 */
};

enum { SLP_LT_OPTIONS = 8 };

/* A product with its options, of the calling thread.  chosen -1: cuBLAS's own choice is best. */
struct slp_lt {
	struct slp_lt_product p;
	cublasLtMatmulDesc_t what;
	cublasLtMatrixLayout_t a, b, c;
	cublasLtMatmulHeuristicResult_t option[SLP_LT_OPTIONS];
	int options, chosen;
	bool settled; /* an option is chosen */
	struct slp_lt *next;
};

#ifdef __cplusplus
extern "C" {
#endif

/* The entry of these sizes; NULL: there is no cublasLt, or no memory. */
struct slp_lt *slp_lt_of(cublasHandle_t h, const struct slp_lt_product *p, const void *bias);
/* Queues the product by an option, on the stream; c may be another array than in the product, with the same
 * alignment. */
bool slp_lt_run(cublasHandle_t h, void *stream, const struct slp_lt *lt, int option, double alpha, double beta,
                const void *a, const void *b, const void *bias, void *c);
void slp_lt_key_text(const struct slp_lt *lt, char to[SLP_TUNE_KEY]);
/* option -1: cuBLAS's choice. */
void slp_lt_way_text(const struct slp_lt *lt, int option, char to[SLP_TUNE_TEXT]);
/* Chooses the option with that text; false: there is none. */
bool slp_lt_settle(struct slp_lt *lt, const char *way);

#ifdef __cplusplus
}
#endif

#endif
