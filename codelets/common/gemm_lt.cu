/* Matrix products by cublasLt: its heuristics propose algorithms for a product, best first. An option sums in a fixed
 * order, in the type of the computation, and needs no more workspace than cuBLAS has. Each thread keeps its descriptors
 * and algorithms. */
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "alloc.h"
#include "forget.h"
#include "gemm_lt.h"

enum { BUCKETS = 64 };

static thread_local struct slp_lt *bucket[BUCKETS];

#define LT slp_blas_lt

static void drop(struct slp_lt *lt)
{
	if (lt->what) LT.cublasLtMatmulDescDestroy(lt->what);
	for (cublasLtMatrixLayout_t layout : {lt->a, lt->b, lt->c})
		if (layout) LT.cublasLtMatrixLayoutDestroy(layout);
	free(lt);
}

void slp_cublas_forget(void)
{
	for (struct slp_lt *&first : bucket)
		for (struct slp_lt *lt; (lt = first);) {
			first = lt->next;
			drop(lt);
		}
}

/* ---- descriptions ------------------------------------------------------------------------------------------------ */

static bool is_well(cublasStatus_t s)
{
	return s == CUBLAS_STATUS_SUCCESS;
}

static bool layout(cublasLtMatrixLayout_t *to, int64_t type, int64_t rows, int64_t columns, int64_t ld, int64_t count,
                   int64_t stride)
{
	int32_t batch = (int32_t)count;
	return is_well(LT.cublasLtMatrixLayoutCreate(to, (cudaDataType_t)type, (uint64_t)rows, (uint64_t)columns,
	                                             ld)) &&
	       is_well(LT.cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
	                                                   sizeof batch)) &&
	       is_well(LT.cublasLtMatrixLayoutSetAttribute(*to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
	                                                   sizeof stride));
}

static bool set_bias(const struct slp_lt *lt, const void *bias)
{
	return is_well(
	        LT.cublasLtMatmulDescSetAttribute(lt->what, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
}

static bool describe(struct slp_lt *lt, const void *bias)
{
	cublasLtEpilogue_t end = CUBLASLT_EPILOGUE_BIAS;
	const struct slp_lt_product &p = lt->p;
	int32_t ta = p.ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb = p.tb ? CUBLAS_OP_T : CUBLAS_OP_N;
	bool wide = p.type == CUDA_R_64F;
	cublasComputeType_t compute = wide                             ? CUBLAS_COMPUTE_64F
	                              : p.type == CUDA_R_32F && p.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
	                                                               : CUBLAS_COMPUTE_32F;
	return is_well(LT.cublasLtMatmulDescCreate(&lt->what, compute, wide ? CUDA_R_64F : CUDA_R_32F)) &&
	       is_well(LT.cublasLtMatmulDescSetAttribute(lt->what, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta)) &&
	       is_well(LT.cublasLtMatmulDescSetAttribute(lt->what, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb)) &&
	       layout(&lt->a, p.type, p.ta ? p.k : p.m, p.ta ? p.m : p.k, p.lda, p.count, p.stride_a) &&
	       layout(&lt->b, p.type, p.tb ? p.n : p.k, p.tb ? p.k : p.n, p.ldb, p.count, p.stride_b) &&
	       layout(&lt->c, p.to, p.m, p.n, p.ldc, p.count, p.stride_c) &&
	       (!p.biased ||
	        (set_bias(lt, bias) && is_well(LT.cublasLtMatmulDescSetAttribute(
	                                       lt->what, CUBLASLT_MATMUL_DESC_EPILOGUE, &end, sizeof end))));
}

template <class V> static bool prefer(cublasLtMatmulPreference_t to, cublasLtMatmulPreferenceAttributes_t what, V value)
{
	return is_well(LT.cublasLtMatmulPreferenceSetAttribute(to, what, &value, sizeof value));
}

/* Split sums in place would be added in the order in which they are ready; in the type of the result, they would lose
 * digits. */
static bool propose(struct slp_lt *lt, cublasLtHandle_t h, size_t bytes)
{
	cublasLtMatmulPreference_t wish = NULL;
	const struct slp_lt_product &p = lt->p;
	if (!is_well(LT.cublasLtMatmulPreferenceCreate(&wish))) return false;
	uint32_t sums = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
	bool ok = prefer(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, (uint64_t)bytes) &&
	          prefer(wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, sums) &&
	          prefer(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, (uint32_t)p.alignment[0]) &&
	          prefer(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, (uint32_t)p.alignment[1]) &&
	          prefer(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, (uint32_t)p.alignment[2]) &&
	          prefer(wish, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, (uint32_t)p.alignment[2]) &&
	          is_well(LT.cublasLtMatmulAlgoGetHeuristic(h, lt->what, lt->a, lt->b, lt->c, lt->c, wish,
	                                                    SLP_LT_OPTIONS, lt->option, &lt->options));
	LT.cublasLtMatmulPreferenceDestroy(wish);
	if (!ok) lt->options = 0;
	return ok;
}

struct slp_lt *slp_lt_of(cublasHandle_t h, const struct slp_lt_product *p, const void *bias)
{
	uint64_t hash = 0, words[sizeof *p / sizeof(uint64_t)];
	memcpy(words, p, sizeof words);
	for (uint64_t w : words) hash = (hash ^ w) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
	struct slp_lt **first = &bucket[(hash >> 32) % BUCKETS], *lt = *first;
	while (lt && memcmp(&lt->p, p, sizeof *p)) lt = lt->next;
	size_t bytes = 0;
	if (lt || !LT.cublasLtMatmul || !slp_cublas_work(&bytes)) return lt;
	if (!(lt = (struct slp_lt *)slp_try_calloc(1, sizeof *lt))) return NULL;
	lt->p = *p;
	lt->chosen = -1;
	lt->next = *first;
	*first = lt;
	/* A handle of cuBLAS is also one of cublasLt. */
	lt->settled = !describe(lt, bias) || !propose(lt, (cublasLtHandle_t)h, bytes); /* no choice */
	return lt;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

bool slp_lt_run(cublasHandle_t h, void *stream, const struct slp_lt *lt, int option, double alpha, double beta,
                const void *a, const void *b, const void *bias, void *c)
{
	size_t bytes = 0;
	void *work = slp_cublas_work(&bytes);
	float by = (float)alpha, keep = (float)beta;
	bool wide = lt->p.type == CUDA_R_64F;
	if (!work || option >= lt->options || (lt->p.biased && !set_bias(lt, bias))) return false;
	return is_well(LT.cublasLtMatmul((cublasLtHandle_t)h, lt->what, wide ? (const void *)&alpha : &by, a, lt->a, b,
	                                 lt->b, wide ? (const void *)&beta : &keep, c, lt->c, c, lt->c,
	                                 &lt->option[option].algo, work, bytes, (cudaStream_t)stream));
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

void slp_lt_key_text(const struct slp_lt *lt, char to[SLP_TUNE_KEY])
{
	int64_t numbers[sizeof lt->p / sizeof(int64_t)];
	size_t bytes = 0;
	slp_cublas_work(&bytes);
	memcpy(numbers, &lt->p, sizeof numbers);
	int n = snprintf(to, SLP_TUNE_KEY, "cublas %d product %zu", slp_cublas_version(), bytes);
	for (int64_t number : numbers)
		if (n < SLP_TUNE_KEY) n += snprintf(to + n, (size_t)(SLP_TUNE_KEY - n), " %" PRId64, number);
}

/* The name of an algorithm is a hash of its description, because the order of proposals may change. */
void slp_lt_way_text(const struct slp_lt *lt, int option, char to[SLP_TUNE_TEXT])
{
	uint64_t hash = 0;
	if (option >= 0)
		for (uint64_t w : lt->option[option].algo.data)
			hash = (hash ^ w) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
	if (option < 0) snprintf(to, SLP_TUNE_TEXT, "cublas");
	else snprintf(to, SLP_TUNE_TEXT, "lt %016" PRIx64, hash);
}

bool slp_lt_settle(struct slp_lt *lt, const char *way)
{
	char text[SLP_TUNE_TEXT];
	for (int i = -1; i < lt->options; i++) {
		slp_lt_way_text(lt, i, text);
		if (strcmp(text, way)) continue;
		lt->chosen = i;
		lt->settled = true;
		return true;
	}
	return false;
}
