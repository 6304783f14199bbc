/* Emulated GPUs: cuBLAS as far as it is called, computed plainly.  What is not here does not link. */
#include <cstdlib>

#include <cublas_v2.h>

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

const char *cublasGetStatusString(cublasStatus_t status)
{
	return status == CUBLAS_STATUS_SUCCESS ? "success (emulated GPU)" : "an error (emulated GPU)";
}

/* C[z] = alpha op(A[z]) op(B[z]) + beta C[z], column-major. */
template <class T> struct product {
	bool ta, tb;
	int m, n, k, lda, ldb, ldc, count;
	long long stride_a, stride_b, stride_c;
	T alpha, beta;
	const T *a, *b;
	T *c;

	/* C is not read where beta is 0. */
	void multiply(const T *x, const T *y, T *z) const
	{
		for (int j = 0; j < n; j++)
			for (int i = 0; i < m; i++) {
				double sum = 0;
				for (int l = 0; l < k; l++)
					sum += (double)x[ta ? l + (size_t)i * lda : i + (size_t)l * lda] *
					       y[tb ? j + (size_t)l * ldb : l + (size_t)j * ldb];
				T &to = z[i + (size_t)j * ldc];
				to = (T)(alpha * sum) + (beta != 0 ? beta * to : 0);
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

template <class T> static cublasStatus_t queue(cublasHandle_t handle, product<T> p)
{
	int device = -1;
	if (!handle || cudaGetDevice(&device) != cudaSuccess || handle->device != device)
		return CUBLAS_STATUS_NOT_INITIALIZED;
	if (!p.valid()) return CUBLAS_STATUS_INVALID_VALUE;
	/* The real one would put an allocation into the graph, which child graphs must not have. */
	if (emu_is_captured(handle->stream) && !handle->work) return CUBLAS_STATUS_EXECUTION_FAILED;
	p.a = (const T *)emu_argument(p.a, "cuBLAS");
	p.b = (const T *)emu_argument(p.b, "cuBLAS");
	p.c = (T *)emu_argument(p.c, "cuBLAS");
	if (sizeof(T) == sizeof(float) && handle->math == CUBLAS_TF32_TENSOR_OP_MATH) emu_count_tf32(device);
	cudaError_t e = emu_launch(handle->stream, product<T>::run, new product<T>(p), product<T>::drop);
	return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

#define GEMM(letter, T)                                                                                                \
	cublasStatus_t cublas##letter##gemmStridedBatched(                                                             \
	        cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T *alpha,     \
	        const T *a, int lda, long long sa, const T *b, int ldb, long long sb, const T *beta, T *c, int ldc,    \
	        long long sc, int count)                                                                               \
	{                                                                                                              \
		return queue<T>(h, {ta != CUBLAS_OP_N, tb != CUBLAS_OP_N, m, n, k, lda, ldb, ldc, count, sa, sb, sc,   \
		                    *alpha, *beta, a, b, c});                                                          \
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
