/* Row-major matrix products by cuBLAS. cuBLAS is column-major: it is asked for Cᵀ = op(B)ᵀ op(A)ᵀ. Arithmetic is that
 * of the data type, as on CPUs, unless sl_config.tf32 allows TF32 (src/runtime/device/gpu.c). Half types are multiplied on
 * tensor cores and added in float32; the result is rounded once, unless it is float32. */
#ifndef SLP_GEMM_CUH
#define SLP_GEMM_CUH

#include <cstring>

#include "cuda_libs.h"
#include "op.h"

#include "element.cuh"
#include "gemm_lt.h"
#include "gpu.cuh"
#include "tune.cuh"

/* C[z] = alpha op(A + z stride_a) op(B + z stride_b) + beta C[z] for z in [0, count); C without gaps. */
struct slp_cuda_gemm {
	bool ta, tb;
	int64_t m, n, k, lda, ldb, stride_a, stride_b, count;
	double beta;
	double alpha = 1;
};

/* One product of matrices without gaps; the caller sets other fields. */
static inline struct slp_cuda_gemm slp_cuda_gemm_of(bool ta, bool tb, int64_t m, int64_t n, int64_t k)
{
	struct slp_cuda_gemm g = {};
	g.ta = ta;
	g.tb = tb;
	g.m = m;
	g.n = n;
	g.k = k;
	g.lda = ta ? m : k;
	g.ldb = tb ? k : n;
	g.count = 1;
	return g;
}

static inline cublasStatus_t slp_cublas_gemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                                             int k, const float *a, int lda, long long sa, const float *b, int ldb,
                                             long long sb, double alpha, double beta, float *c, int ldc, long long sc,
                                             int count)
{
	float by = (float)alpha, keep = (float)beta;
	if (count == 1) return slp_blas.cublasSgemm(h, ta, tb, m, n, k, &by, a, lda, b, ldb, &keep, c, ldc);
	return slp_blas.cublasSgemmStridedBatched(h, ta, tb, m, n, k, &by, a, lda, sa, b, ldb, sb, &keep, c, ldc, sc,
	                                          count);
}

static inline cublasStatus_t slp_cublas_gemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                                             int k, const double *a, int lda, long long sa, const double *b, int ldb,
                                             long long sb, double alpha, double beta, double *c, int ldc, long long sc,
                                             int count)
{
	if (count == 1) return slp_blas.cublasDgemm(h, ta, tb, m, n, k, &alpha, a, lda, b, ldb, &beta, c, ldc);
	return slp_blas.cublasDgemmStridedBatched(h, ta, tb, m, n, k, &alpha, a, lda, sa, b, ldb, sb, &beta, c, ldc, sc,
	                                          count);
}

template <class S> struct slp_cuda_type;
template <> struct slp_cuda_type<float> {
	static constexpr cudaDataType_t value = CUDA_R_32F;
};
template <> struct slp_cuda_type<double> {
	static constexpr cudaDataType_t value = CUDA_R_64F;
};
template <> struct slp_cuda_type<slp_bf16> {
	static constexpr cudaDataType_t value = CUDA_R_16BF;
};
template <> struct slp_cuda_type<slp_f16> {
	static constexpr cudaDataType_t value = CUDA_R_16F;
};

template <class S, class C>
static inline cublasStatus_t slp_cublas_gemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n,
                                             int k, const slp_half<S> *a, int lda, long long sa, const slp_half<S> *b,
                                             int ldb, long long sb, double alpha, double beta, C *c, int ldc,
                                             long long sc, int count)
{
	float by = (float)alpha, keep = (float)beta;
	const cudaDataType_t type = slp_cuda_type<slp_half<S>>::value, to = slp_cuda_type<C>::value;
	if (count == 1)
		return slp_blas.cublasGemmEx(h, ta, tb, m, n, k, &by, a, type, lda, b, type, ldb, &keep, c, to, ldc,
		                             CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
	return slp_blas.cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, &by, a, type, lda, sa, b, type, ldb, sb, &keep,
	                                           c, to, ldc, sc, count, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

/* The most products of a call: some of cuBLAS's kernels have a row of their grid for each, and a grid has at most 65535
 * rows. */
#ifdef SLP_EMULATE
enum { SLP_GEMM_MOST = 64 }; /* so that small cases have more */
#else
enum { SLP_GEMM_MOST = 1 << 15 };
#endif

template <class T, class C>
static cublasStatus_t slp_cublas_gemms(cublasHandle_t h, const struct slp_cuda_gemm &g, const T *a, const T *b, C *c)
{
	cublasStatus_t s = CUBLAS_STATUS_SUCCESS;
	for (int64_t z = 0, some; z < g.count && s == CUBLAS_STATUS_SUCCESS; z += some) {
		some = g.count - z < SLP_GEMM_MOST ? g.count - z : (int64_t)SLP_GEMM_MOST;
		s = slp_cublas_gemm(h, g.tb ? CUBLAS_OP_T : CUBLAS_OP_N, g.ta ? CUBLAS_OP_T : CUBLAS_OP_N, (int)g.n,
		                    (int)g.m, (int)g.k, b + z * g.stride_b, (int)g.ldb, g.stride_b, a + z * g.stride_a,
		                    (int)g.lda, g.stride_a, g.alpha, g.beta, c + z * g.m * g.n, (int)g.n, g.m * g.n,
		                    (int)some);
	}
	return s;
}

/* ---- the fastest way --------------------------------------------------------------------------------------------- */

static inline int64_t slp_alignment_of(const void *p)
{
	uintptr_t bits = (uintptr_t)p | 16;
	return (int64_t)(bits & -bits);
}

/* The arguments of cuBLAS; see slp_cublas_gemms. */
template <class T, class C> static struct slp_lt_product slp_lt_product_of(const struct slp_cuda_gemm &g, const T *a,
                                                                           const T *b, const C *c, const C *bias)
{
	struct slp_lt_product p;
	memset(&p, 0, sizeof p); /* padding too */
	p.ta = g.tb, p.tb = g.ta;
	p.m = g.n, p.n = g.m, p.k = g.k;
	p.lda = g.ldb, p.ldb = g.lda, p.ldc = g.n;
	p.stride_a = g.stride_b, p.stride_b = g.stride_a, p.stride_c = g.m * g.n;
	p.count = g.count;
	p.type = slp_cuda_type<T>::value, p.to = slp_cuda_type<C>::value;
	p.tf32 = slp_tf32_products();
	p.adds = g.beta != 0;
	p.biased = bias != NULL;
	const void *const operands[] = {b, a, c, bias};
	for (int i = 0; i < 3 + p.biased; i++) p.alignment[i] = slp_alignment_of(operands[i]);
	return p;
}

/* Times cuBLAS's own choice and cublasLt's options on a copy of C, since a product may add to it. `plain` queues the
 * work by cuBLAS. */
template <class T, class C, class F> static double slp_lt_measure(const struct slp_kernel *k, const struct slp_lt *lt,
                                                                  cublasHandle_t h, const struct slp_cuda_gemm &g,
                                                                  const T *a, const T *b, const C *bias, C *to,
                                                                  const char *key, char fastest[SLP_TUNE_TEXT], F plain)
{
	double best = -1;
	for (int i = -1; i < lt->options; i++) {
		char way[SLP_TUNE_TEXT];
		double us = slp_time_of(k, best, [&] {
			bool ok = i < 0 ? plain(to) : slp_lt_run(h, k->stream, lt, i, g.alpha, 0, b, a, bias, to);
			return ok ? SL_OK : SL_EKERNEL;
		});
		slp_lt_way_text(lt, i, way);
		slp_tune_say(key, way, us);
		if (us < 0 || (best >= 0 && us > 0.97 * best)) continue; /* cuBLAS's, if nothing is clearly faster */
		best = us;
		memcpy(fastest, way, SLP_TUNE_TEXT);
	}
	return best;
}

template <class T, class C, class F> static void slp_lt_choose(const struct slp_kernel *k, struct slp_lt *lt,
                                                               cublasHandle_t h, const struct slp_cuda_gemm &g,
                                                               const T *a, const T *b, const C *bias, F plain)
{
	char key[SLP_TUNE_KEY], way[SLP_TUNE_TEXT], mine[SLP_TUNE_TEXT];
	slp_lt_key_text(lt, key);
	if (slp_tune_find(key, way) && slp_lt_settle(lt, way)) return;
	C *to = NULL;
	if (cudaMalloc((void **)&to, (size_t)(g.m * g.n * g.count) * sizeof(C)) == cudaSuccess) {
		double us = slp_lt_measure<T, C>(k, lt, h, g, a, b, bias, to, key, mine, plain);
		memcpy(way, mine, sizeof way);
		if (us >= 0) slp_tune_keep(key, way, us);
		if (us >= 0 && !slp_lt_settle(lt, way)) slp_lt_settle(lt, mine);
		cudaFree(to);
	}
	cudaGetLastError();
	lt->settled = true; /* without memory, as without measuring */
}

/* Whether it was queued; false: the caller lets cuBLAS choose. */
template <class T, class C> static bool slp_lt_multiply(const struct slp_kernel *k, cublasHandle_t h,
                                                        const struct slp_cuda_gemm &g, const T *a, const T *b, C *c)
{
	if (g.count > SLP_GEMM_MOST || !slp_tune_wanted()) return false;
	struct slp_lt_product p = slp_lt_product_of(g, a, b, c, (const C *)NULL);
	struct slp_lt *lt = slp_lt_of(h, &p, NULL);
	if (lt && !lt->settled && slp_is_plain_run(k))
		slp_lt_choose<T, C>(k, lt, h, g, a, b, NULL, [&](C *to) {
			struct slp_cuda_gemm alone = g;
			alone.beta = 0;
			return slp_cublas_gemms(h, alone, a, b, to) == CUBLAS_STATUS_SUCCESS;
		});
	return lt && lt->chosen >= 0 && slp_lt_run(h, k->stream, lt, lt->chosen, g.alpha, g.beta, b, a, NULL, c);
}

static inline bool slp_gemm_fits(const struct slp_cuda_gemm &g)
{
	return !((g.m | g.n | g.k | g.lda | g.ldb) >> 31);
}

/* C = op(A) op(B) + bias, a row that is added to all rows, by one kernel of cublasLt; g.beta is 0. Whether it was queued;
 * false: the caller multiplies and adds, as `plain` does for a copy of C.  Without measuring, cublasLt's first
 * algorithm is used. */
template <class T, class F> static bool slp_cuda_multiply_biased(const struct slp_kernel *k,
                                                                 const struct slp_cuda_gemm &g, const T *a, const T *b,
                                                                 const T *bias, T *c, F plain)
{
	if (g.m == 0 || g.n == 0 || g.k == 0 || g.count != 1 || !slp_gemm_fits(g)) return false;
	cublasHandle_t h = (cublasHandle_t)slp_cublas(k);
	if (!h) return false;
	struct slp_lt_product p = slp_lt_product_of(g, a, b, c, bias);
	struct slp_lt *lt = slp_lt_of(h, &p, bias);
	if (!lt || lt->options == 0) return false;
	if (slp_tune_wanted() && !lt->settled && slp_is_plain_run(k))
		slp_lt_choose<T, T>(k, lt, h, g, a, b, bias, plain);
	int option = slp_tune_wanted() ? lt->chosen : 0;
	return option >= 0 && slp_lt_run(h, k->stream, lt, option, g.alpha, 0, b, a, bias, c);
}

/* C has the type of A and B, or float beside a half type. */
template <class T, class C> static enum sl_status slp_cuda_multiply(const struct slp_kernel *k, struct slp_cuda_gemm g,
                                                                    const T *a, const T *b, C *c)
{
	if (g.m == 0 || g.n == 0 || g.count == 0) return SL_OK;
	if (g.k == 0 && (g.beta == 0 || g.beta == 1)) {
		size_t bytes = (size_t)(g.m * g.n * g.count) * sizeof(C);
		if (g.beta == 0) cudaMemsetAsync(c, 0, bytes, (cudaStream_t)k->stream);
		return slp_launched(k);
	}
	if (!slp_gemm_fits(g)) return slp_kernel_fail(k, SL_EUNSUPPORTED, "cuBLAS takes sizes below 2^31");
	cublasHandle_t h = (cublasHandle_t)slp_cublas(k);
	if (!h) return SL_EKERNEL;
	if (slp_lt_multiply(k, h, g, a, b, c)) return SL_OK;
	cublasStatus_t s = slp_cublas_gemms(h, g, a, b, c);
	if (s == CUBLAS_STATUS_SUCCESS) return SL_OK;
	return slp_kernel_fail(k, SL_EKERNEL, "cuBLAS: status %d", (int)s);
}

#endif
