/* Measures a CUDA device's limits with the libraries alone, not through Starling: products of matrices by cuBLAS, copies
 * within its memory, copies through the link. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <stdlib.h>

#include "bench.h"

#ifdef HAVE_CUDA
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

enum { GEMM_LEAST = 512, GEMM_MOST = 8192, ROUNDS = 5 };
static const double GEMM_SECONDS = 2e-3; /* so long a product should take, to show the peak */

/* The measured operation; the buffers are the probe's. */
struct probe {
	void *a, *b, *c;
	size_t bytes;
	int n; /* of matrices n × n */
	enum bench_factors factors;
	cublasHandle_t blas;
	enum cudaMemcpyKind kind;
};

typedef bool work_fn(const struct probe *p);

/* Seconds of one call of the best of some rounds of `repeat`; NAN after an error. */
static double seconds_of(work_fn *work, const struct probe *p, int repeat)
{
	double best = NAN;
	for (int i = 0; i <= ROUNDS; i++) { /* the first warms up */
		if (cudaDeviceSynchronize() != cudaSuccess) return NAN;
		double start = bench_now();
		for (int k = 0; k < repeat; k++)
			if (!work(p)) return NAN;
		if (cudaDeviceSynchronize() != cudaSuccess) return NAN;
		double seconds = (bench_now() - start) / repeat;
		if (i && !(best < seconds)) best = seconds;
	}
	return best;
}

static bool allocate(struct probe *p, int device, size_t bytes, bool third)
{
	p->bytes = bytes;
	return cudaSetDevice(device) == cudaSuccess && cudaMalloc(&p->a, bytes) == cudaSuccess &&
	       cudaMalloc(&p->b, bytes) == cudaSuccess && (!third || cudaMalloc(&p->c, bytes) == cudaSuccess) &&
	       cudaMemset(p->a, 0, bytes) == cudaSuccess && cudaMemset(p->b, 0, bytes) == cudaSuccess;
}

static void release(struct probe *p)
{
	cudaFree(p->a);
	cudaFree(p->b);
	cudaFree(p->c);
}

static bool multiply(const struct probe *p)
{
	float one = 1, zero = 0;
	cudaDataType type = p->factors == BENCH_BF16 ? CUDA_R_16BF : CUDA_R_32F;
	cublasStatus_t status =
	        cublasGemmEx(p->blas, CUBLAS_OP_N, CUBLAS_OP_N, p->n, p->n, p->n, &one, p->a, type, p->n, p->b, type,
	                     p->n, &zero, p->c, type, p->n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
	return status == CUBLAS_STATUS_SUCCESS;
}

static bool copy(const struct probe *p)
{
	return cudaMemcpyAsync(p->b, p->a, p->bytes, p->kind, 0) == cudaSuccess;
}

double bench_gpu_gemm_peak(int device, enum bench_factors factors)
{
	static double peaks[BENCH_FACTORS]; /* a device's do not change with other programs' load, as a CPU's do */
	double peak = peaks[factors];
	struct probe p = {.n = GEMM_LEAST, .factors = factors};
	if (peak > 0) return peak;
	if (allocate(&p, device, sizeof(float) * GEMM_MOST * GEMM_MOST, true) &&
	    cublasCreate(&p.blas) == CUBLAS_STATUS_SUCCESS) {
		cublasSetMathMode(p.blas, factors == BENCH_TF32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH);
		double seconds = seconds_of(multiply, &p, 1);
		while (seconds < GEMM_SECONDS && p.n < GEMM_MOST) {
			p.n *= 2;
			seconds = seconds_of(multiply, &p, 1);
		}
		peak = peaks[factors] = 2.0 * p.n * p.n * p.n / seconds;
		cublasDestroy(p.blas);
	}
	release(&p);
	return peak > 0 ? peak : NAN;
}

/* Copies half of the bytes onto the other half. */
double bench_gpu_bandwidth(int device, double read, double written)
{
	struct probe p = {.kind = cudaMemcpyDeviceToDevice};
	double rate = NAN, most = 1 << 30;
	size_t bytes = (size_t)(fmin(read + written, most) / 2) / 64 * 64;
	if (bytes && allocate(&p, device, bytes, false))
		rate = 2.0 * (double)bytes / seconds_of(copy, &p, 1 + (int)(64e6 / (double)bytes));
	release(&p);
	return rate;
}

double bench_gpu_link(int device, bool to_device)
{
	enum { BYTES = 256 << 20 };
	struct probe p = {.kind = to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost};
	void *host = NULL;
	double rate = NAN;
	if (allocate(&p, device, BYTES, false) && cudaHostAlloc(&host, BYTES, cudaHostAllocDefault) == cudaSuccess) {
		struct probe q = p;
		if (to_device) q.a = host;
		else q.b = host;
		rate = BYTES / seconds_of(copy, &q, 1);
		cudaFreeHost(host);
	}
	release(&p);
	return rate;
}

void bench_gpu_name(int device, char *name, size_t size)
{
	struct cudaDeviceProp properties;
	bool known = cudaGetDeviceProperties(&properties, device) == cudaSuccess;
	snprintf(name, size, "%s", known ? properties.name : "unknown GPU");
}

#else

double bench_gpu_gemm_peak(int device, enum bench_factors factors)
{
	(void)device, (void)factors;
	return NAN;
}

double bench_gpu_bandwidth(int device, double read, double written)
{
	(void)device, (void)read, (void)written;
	return NAN;
}

double bench_gpu_link(int device, bool to_device)
{
	(void)device, (void)to_device;
	return NAN;
}

void bench_gpu_name(int device, char *name, size_t size)
{
	(void)device;
	snprintf(name, size, "no CUDA in this build");
}
#endif
