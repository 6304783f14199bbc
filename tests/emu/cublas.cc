/* Emulated GPUs: cuBLAS as far as it is called, computed plainly.  What is not here does not link. */
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "emulated.h"

struct cublasContext {
	cudaStream_t stream;
	int device;
	cublasMath_t math;
	void *work; /* of the caller's; NULL: its own */
};

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
	int device;
	if (cudaGetDevice(&device) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
	*handle = new cublasContext{NULL, device, CUBLAS_DEFAULT_MATH, NULL};
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
	delete handle;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
	handle->stream = stream;
	handle->work = NULL; /* as the real one */
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *work, size_t bytes)
{
	if (bytes) emu_argument((char *)work + bytes - 1, "cuBLAS: end of the workspace");
	handle->work = work;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t math)
{
	handle->math = math;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *version)
{
	*version = CUBLAS_VERSION;
	return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
	return status == CUBLAS_STATUS_SUCCESS ? "success (emulated GPU)" : "an error (emulated GPU)";
}

/* C[z] = alpha op(A[z]) op(B[z]) + beta C[z], column-major. */
/* T: of the factors; C: of the result; Sum: what is added up in, and the type of alpha and beta. */
template <class T, class C = T, class Sum = T> struct product {
	bool ta, tb;
	int m, n, k, lda, ldb, ldc, count;
	long long stride_a, stride_b, stride_c;
	Sum alpha, beta;
	const T *a, *b;
	C *c;
	double us = 4;        /* it seems to take */
	const C *bias = NULL; /* added to each column */

	/* Sums are of double precision, but those of half types float32, as tensor cores have them. */
	typedef typename std::conditional<std::is_same<T, Sum>::value, double, float>::type wide;
	/* C is not read where beta is 0. */
	void multiply(const T *x, const T *y, C *z) const
	{
		for (int j = 0; j < n; j++)
			for (int i = 0; i < m; i++) {
				wide sum = 0;
				for (int l = 0; l < k; l++)
					sum += (wide)x[ta ? l + (size_t)i * lda : i + (size_t)l * lda] *
					       (wide)y[tb ? j + (size_t)l * ldb : l + (size_t)j * ldb];
				C &to = z[i + (size_t)j * ldc];
				Sum more = (beta != 0 ? beta * (Sum)to : 0) + (bias ? (Sum)bias[i] : 0);
				to = (C)((Sum)(alpha * sum) + more);
			}
	}
	static void run(void *arg)
	{
		const product &p = *(const product *)arg;
		for (int z = 0; z < p.count; z++)
			p.multiply(p.a + z * p.stride_a, p.b + z * p.stride_b, p.c + z * p.stride_c);
	}
	static void drop(void *arg)
	{
		delete (product *)arg;
	}
	bool valid() const
	{
		int least = ta ? k : m, least_b = tb ? n : k;
		return m >= 0 && n >= 0 && k >= 0 && count >= 0 && lda >= (least > 1 ? least : 1) &&
		       ldb >= (least_b > 1 ? least_b : 1) && ldc >= (m > 1 ? m : 1);
	}
};

template <class T, class C, class Sum> static cublasStatus_t queue(cublasHandle_t handle, product<T, C, Sum> p)
{
	typedef product<T, C, Sum> work;
	int device = -1;
	if (!handle || cudaGetDevice(&device) != cudaSuccess || handle->device != device)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!p.valid()) return CUBLAS_STATUS_INVALID_VALUE;
	/* The real one would put an allocation into the graph, which child graphs must not have. */
	if (emu_is_captured(handle->stream) && !handle->work) return CUBLAS_STATUS_EXECUTION_FAILED;
	p.a = (const T *)emu_argument(p.a, "cuBLAS");
	p.b = (const T *)emu_argument(p.b, "cuBLAS");
	p.c = (C *)emu_argument(p.c, "cuBLAS");
	if (p.bias) p.bias = (const C *)emu_argument(p.bias, "cublasLt: a bias");
	int math = handle->math & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
	if (sizeof(T) == sizeof(float) && math == CUBLAS_TF32_TENSOR_OP_MATH) emu_count_tf32(device);
	if (sizeof(T) == 2) emu_count_half(device);
	emu_takes(p.us);
	cudaError_t e = emu_launch(handle->stream, work::run, new work(p), work::drop);
	return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

#define GEMM(letter, T)                                                                                                \
	cublasStatus_t cublas##letter##gemmStridedBatched(                                                             \
	        cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha,     \
	        const T *a, int lda, long long sa, const T *b, int ldb, long long sb, const T *beta, T *c, int ldc,    \
	        long long sc, int count)                                                                               \
	{                                                                                                              \
		return queue(h, product<T>{ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k, lda, ldb, ldc, count, sa,    \
		                           sb, sc, *alpha, *beta, a, b, c});                                           \
	}                                                                                                              \
	cublasStatus_t cublas##letter##gemm_v2(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,    \
	                                       int n, int k, const T *alpha, const T *a, int lda, const T *b, int ldb, \
	                                       const T *beta, T *c, int ldc)                                           \
	{                                                                                                              \
		return cublas##letter##gemmStridedBatched(h, ta, tb, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c,    \
		                                          ldc, 0, 1);                                                  \
	}
GEMM(S, float)
GEMM(D, double)

/* ---- half types -------------------------------------------------------------------------------------------------- */

template <class T, class C> static cublasStatus_t queue_half(cublasHandle_t h, const product<char> &p, float alpha,
                                                             float beta, const void *a, const void *b, void *c)
{
	return queue(h, product<T, C, float>{p.ta, p.tb, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.count, p.stride_a,
	                                     p.stride_b, p.stride_c, alpha, beta, (const T *)a, (const T *)b, (C *)c});
}

/* Only what the real one takes with sums in float32: factors of one half type, the result of that or float32.  Sums
 * must not have been allowed to be less. */
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                                          int k, const void *alpha, const void *a, cudaDataType_t a_type, int lda,
                                          long long sa, const void *b, cudaDataType_t b_type, int ldb, long long sb,
                                          const void *beta, void *c, cudaDataType_t c_type, int ldc, long long sc,
                                          int count, cublasComputeType_t compute, cublasGemmAlgo_t)
{
	bool bf16 = a_type == CUDA_R_16BF, half = bf16 || a_type == CUDA_R_16F, wide = c_type == CUDA_R_32F;
	if (!half || b_type != a_type || !(wide || c_type == a_type) || compute != CUBLAS_COMPUTE_32F)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (h && !(h->math & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)) return CUBLAS_STATUS_NOT_SUPPORTED;
	product<char> p = {ta != CUBLAS_OP_N,
	                   tb != CUBLAS_OP_N,
	                   m,
	                   n,
	                   k,
	                   lda,
	                   ldb,
	                   ldc,
	                   count,
	                   sa,
	                   sb,
	                   sc,
	                   0,
	                   0,
	                   NULL,
	                   NULL,
	                   NULL};
	float by = *(const float *)alpha, keep = *(const float *)beta;
	if (bf16 && wide) return queue_half<__nv_bfloat16, float>(h, p, by, keep, a, b, c);
	if (bf16) return queue_half<__nv_bfloat16, __nv_bfloat16>(h, p, by, keep, a, b, c);
	if (wide) return queue_half<__half, float>(h, p, by, keep, a, b, c);
	return queue_half<__half, __half>(h, p, by, keep, a, b, c);
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
                            const void *alpha, const void *a, cudaDataType_t a_type, int lda, const void *b,
                            cudaDataType_t b_type, int ldb, const void *beta, void *c, cudaDataType_t c_type, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
	return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, a_type, lda, 0, b, b_type, ldb, 0, beta, c,
	                                  c_type, ldc, 0, 1, compute, algorithm);
}

/* ---- cublasLt ---------------------------------------------------------------------------------------------------- */

/* What is set is kept as it is, of the sizes that the real one wants. */
struct described {
	cublasComputeType_t compute;
	cudaDataType_t scale;
	int32_t op[2]; /* of a, of b */
	int32_t epilogue;
	const void *bias;
};
struct laid_out {
	cudaDataType_t type;
	uint64_t rows, columns;
	int64_t ld, stride;
	int32_t count;
};
struct preferred {
	uint64_t bytes;
	uint32_t sums;
};

/* The structures that programs see are opaque; these are in them. */
template <class Own, class Seen> static Own *inside(Seen *seen)
{
	static_assert(sizeof(Own) <= sizeof *seen, "it has room");
	return (Own *)seen;
}

#define LT_OBJECT(name, own)                                                                                           \
	cublasStatus_t cublasLt##name##Destroy(cublasLt##name##_t d)                                                   \
	{                                                                                                              \
		delete d;                                                                                              \
		return CUBLAS_STATUS_SUCCESS;                                                                          \
	}                                                                                                              \
	static own *of(cublasLt##name##_t d)                                                                           \
	{                                                                                                              \
		return inside<own>(d);                                                                                 \
	}
LT_OBJECT(MatmulDesc, described)
LT_OBJECT(MatrixLayout, laid_out)
LT_OBJECT(MatmulPreference, preferred)

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *to, cublasComputeType_t compute, cudaDataType_t scale)
{
	*to = new cublasLtMatmulDescOpaque_t{};
	*of(*to) = {compute, scale, {CUBLAS_OP_N, CUBLAS_OP_N}, CUBLASLT_EPILOGUE_DEFAULT, NULL};
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *to, cudaDataType_t type, uint64_t rows,
                                          uint64_t columns, int64_t ld)
{
	*to = new cublasLtMatrixLayoutOpaque_t{};
	*of(*to) = {type, rows, columns, ld, 0, 1};
	return ld < (int64_t)rows ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to)
{
	*to = new cublasLtMatmulPreferenceOpaque_t{};
	*of(*to) = {0, CUBLASLT_REDUCTION_SCHEME_MASK};
	return CUBLAS_STATUS_SUCCESS;
}

template <class T> static cublasStatus_t set(T *to, const void *value, size_t bytes)
{
	if (bytes != sizeof *to) return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(to, value, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t name,
                                              const void *value, size_t bytes)
{
	if (name == CUBLASLT_MATMUL_DESC_TRANSA) return set(&of(d)->op[0], value, bytes);
	if (name == CUBLASLT_MATMUL_DESC_TRANSB) return set(&of(d)->op[1], value, bytes);
	if (name == CUBLASLT_MATMUL_DESC_EPILOGUE) return set(&of(d)->epilogue, value, bytes);
	if (name == CUBLASLT_MATMUL_DESC_BIAS_POINTER) return set(&of(d)->bias, value, bytes);
	return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t d, cublasLtMatrixLayoutAttribute_t name,
                                                const void *value, size_t bytes)
{
	if (name == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(&of(d)->count, value, bytes);
	if (name == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return set(&of(d)->stride, value, bytes);
	return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t d,
                                                    cublasLtMatmulPreferenceAttributes_t name, const void *value,
                                                    size_t bytes)
{
	uint32_t alignment = 0;
	if (name == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) return set(&of(d)->bytes, value, bytes);
	if (name == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK) return set(&of(d)->sums, value, bytes);
	if (name < CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES || name > CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	cublasStatus_t s = set(&alignment, value, bytes);
	return s == CUBLAS_STATUS_SUCCESS && (alignment == 0 || alignment & (alignment - 1))
	               ? CUBLAS_STATUS_INVALID_VALUE
	               : s;
}

/* Two ways to add up parts that may not be taken, one that wants too much memory, one that is slow, one that is fast. */
static const struct {
	uint32_t sums;
	uint64_t bytes;
	double us;
} algorithms[] = {
        {CUBLASLT_REDUCTION_SCHEME_INPLACE, 0, 1},         {CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE, 0, 1},
        {CUBLASLT_REDUCTION_SCHEME_NONE, 1ull << 40, 1},   {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 4096, 5},
        {CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, 4096, 2},
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t wish, int most,
                                              cublasLtMatmulHeuristicResult_t to[], int *count)
{
	*count = 0;
	for (int i = 0; i < ALGORITHMS && *count < most; i++) {
		if ((algorithms[i].sums & ~of(wish)->sums) || algorithms[i].bytes > of(wish)->bytes) continue;
		cublasLtMatmulHeuristicResult_t &r = to[(*count)++];
		memset((void *)&r, 0, sizeof r);
		r.algo.data[0] = (uint64_t)i;
		r.workspaceSize = algorithms[i].bytes;
	}
	return CUBLAS_STATUS_SUCCESS;
}

template <class T, class C, class Sum>
static cublasStatus_t queue_lt(cublasHandle_t h, cublasLtMatmulDesc_t what, const void *alpha, const void *a,
                               cublasLtMatrixLayout_t al, const void *b, cublasLtMatrixLayout_t bl, const void *beta,
                               void *c, cublasLtMatrixLayout_t cl, double us)
{
	const laid_out &x = *of(al), &y = *of(bl), &z = *of(cl);
	bool ta = of(what)->op[0] != CUBLAS_OP_N, tb = of(what)->op[1] != CUBLAS_OP_N;
	uint64_t m = ta ? x.columns : x.rows, k = ta ? x.rows : x.columns, n = tb ? y.rows : y.columns;
	if (m != z.rows || n != z.columns || k != (tb ? y.columns : y.rows)) return CUBLAS_STATUS_INVALID_VALUE;
	product<T, C, Sum> p = {
	        ta,           tb,           (int)m,   (int)n,   (int)k,   (int)x.ld,           (int)y.ld,
	        (int)z.ld,    z.count,      x.stride, y.stride, z.stride, *(const Sum *)alpha, *(const Sum *)beta,
	        (const T *)a, (const T *)b, (C *)c,   us};
	int32_t epilogue = of(what)->epilogue;
	if (epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_BIAS)
		return CUBLAS_STATUS_NOT_SUPPORTED;
	if (epilogue == CUBLASLT_EPILOGUE_BIAS && !of(what)->bias) return CUBLAS_STATUS_INVALID_VALUE;
	if (epilogue == CUBLASLT_EPILOGUE_BIAS) p.bias = (const C *)of(what)->bias;
	return queue(h, p);
}

/* A handle of cuBLAS is one of cublasLt's. */
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t what, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t al, const void *b, cublasLtMatrixLayout_t bl, const void *beta,
                              const void *c, cublasLtMatrixLayout_t cl, void *d, cublasLtMatrixLayout_t dl,
                              const cublasLtMatmulAlgo_t *algo, void *work, size_t bytes, cudaStream_t stream)
{
	cublasHandle_t h = (cublasHandle_t)handle;
	if (c != d || cl != dl || algo->data[0] >= ALGORITHMS || bytes < algorithms[algo->data[0]].bytes)
		return CUBLAS_STATUS_INVALID_VALUE;
	if (h->stream != stream) return CUBLAS_STATUS_INVALID_VALUE;
	emu_argument((char *)work + bytes - 1, "cublasLt: end of the workspace");
	double us = algorithms[algo->data[0]].us;
	cudaDataType_t type = of(al)->type, to = of(cl)->type;
	emu_count_way(EMU_LT + (int)algo->data[0]);
#define QUEUE(T, C, Sum) return queue_lt<T, C, Sum>(h, what, alpha, a, al, b, bl, beta, d, cl, us)
	if (type == CUDA_R_64F) QUEUE(double, double, double);
	if (type == CUDA_R_32F) QUEUE(float, float, float);
	if (type == CUDA_R_16BF && to == type) QUEUE(__nv_bfloat16, __nv_bfloat16, float);
	if (type == CUDA_R_16BF) QUEUE(__nv_bfloat16, float, float);
	if (type == CUDA_R_16F && to == type) QUEUE(__half, __half, float);
	QUEUE(__half, float, float);
#undef QUEUE
}
