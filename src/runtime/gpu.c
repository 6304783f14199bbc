/* cuBLAS and cuDNN handles: one of each a CUDA worker, made at first use, on the worker's stream. */
#include "runtime/runtime.h"

#ifdef HAVE_CUDA
#include <cublas_v2.h>
#include <cudnn.h>
#include <starpu_cuda.h>

static struct {
	cublasHandle_t blas;
	cudnnHandle_t dnn;
} handles[STARPU_NMAXWORKERS];

/* Before each kernel.  What StarPU has met and dealt with before, such as memory that it did not get at once, is no
 * error of the kernel: it is forgotten here. */
void *slp_gpu_stream(void)
{
	cudaGetLastError();
	return starpu_cuda_get_local_stream();
}

void *slp_cublas(const struct slp_kernel *k)
{
	cublasHandle_t *h = &handles[starpu_worker_get_id()].blas;
	cublasStatus_t s = *h ? CUBLAS_STATUS_SUCCESS : cublasCreate(h);
	if (s == CUBLAS_STATUS_SUCCESS) s = cublasSetStream(*h, k->stream);
	if (s == CUBLAS_STATUS_SUCCESS) return *h;
	slp_kernel_fail(k, SL_EKERNEL, "cuBLAS: %s", cublasGetStatusString(s));
	return NULL;
}

void *slp_cudnn(const struct slp_kernel *k)
{
	cudnnHandle_t *h = &handles[starpu_worker_get_id()].dnn;
	cudnnStatus_t s = *h ? CUDNN_STATUS_SUCCESS : cudnnCreate(h);
	if (s == CUDNN_STATUS_SUCCESS) s = cudnnSetStream(*h, k->stream);
	if (s == CUDNN_STATUS_SUCCESS) return *h;
	slp_kernel_fail(k, SL_EKERNEL, "cuDNN: %s", cudnnGetErrorString(s));
	return NULL;
}

static void destroy(void *arg)
{
	(void)arg;
	int worker = starpu_worker_get_id();
	if (handles[worker].blas) cublasDestroy(handles[worker].blas);
	if (handles[worker].dnn) cudnnDestroy(handles[worker].dnn);
	handles[worker].blas = NULL;
	handles[worker].dnn = NULL;
}

void slp_gpu_shutdown(void)
{
	if (slp_engine.ngpus) starpu_execute_on_each_worker(destroy, NULL, STARPU_CUDA);
}

#else

void *slp_gpu_stream(void)
{
	return NULL;
}

void slp_gpu_shutdown(void)
{
}
#endif
