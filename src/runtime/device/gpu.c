/* cuBLAS and cuDNN: loaded at first use, with a handle of each for every CUDA worker, on the worker's stream; memory that
 * the kernels of a worker share. */
#include "arrivals.h"
#include "compiled.h"
#include "op.h"
#include "runtime/compat.h"
#include "runtime/device/cuda_graph.h"
#include "runtime/device/gpu.h"
#include "runtime/engine.h"

#ifdef HAVE_CUDA
#include <dlfcn.h>
#include <pthread.h>
#include <starpu_cuda.h>
#include <string.h>

#include "cuda_libs.h"
#include "tune.h"

static struct handles {
	cublasHandle_t blas;
	cudnnHandle_t dnn;
	bool dnn_graph; /* use its graph API */
	void *work;     /* of cuBLAS; NULL: its own, which CUDA graphs cannot record */
	size_t work_bytes;
	unsigned *arrivals;
} handles[STARPU_NMAXWORKERS];

/* ---- the libraries ---------------------------------------------------------------------------------------------- */

struct library {
	const char *soname;
	const char *const *names; /* of functions; NULL: they are there */
	void *functions;          /* where they go, in the order of their names */
	const char *const *more;  /* of functions that it need not have: all of them, or none */
	void *more_functions;
	char why[256]; /* it cannot be used */
};

#ifdef SLP_EMULATE /* emulated functions are linked */
#define X(f, ...) .f = f,
struct slp_cublas_functions slp_blas = {SLP_CUBLAS_FUNCTIONS(X) SLP_CUBLAS_EX_FUNCTIONS(X)};
struct slp_cublas_lt_functions slp_blas_lt = {SLP_CUBLAS_LT_FUNCTIONS(X)};
struct slp_cudnn_functions slp_dnn = {SLP_CUDNN_FUNCTIONS(X)};
struct slp_cudnn_graph_functions slp_dnn_graph = {SLP_CUDNN_GRAPH_FUNCTIONS(X)};
static struct library cublas, cudnn;
#else
#define TEXT(f) #f
#define X(f, ...) TEXT(f),
struct slp_cublas_functions slp_blas;
struct slp_cublas_lt_functions slp_blas_lt;
struct slp_cudnn_functions slp_dnn;
struct slp_cudnn_graph_functions slp_dnn_graph;
static struct library cublas = {.soname = SLP_CUBLAS_SONAME,
                                .names = (const char *const[]){SLP_CUBLAS_FUNCTIONS(X) SLP_CUBLAS_EX_FUNCTIONS(X) NULL},
                                .functions = &slp_blas,
                                .more = (const char *const[]){SLP_CUBLAS_LT_FUNCTIONS(X) NULL},
                                .more_functions = &slp_blas_lt};
static struct library cudnn = {.soname = SLP_CUDNN_SONAME,
                               .names = (const char *const[]){SLP_CUDNN_FUNCTIONS(X) NULL},
                               .functions = &slp_dnn,
                               .more = (const char *const[]){SLP_CUDNN_GRAPH_FUNCTIONS(X) NULL},
                               .more_functions = &slp_dnn_graph};
#endif

/* The name that is not there; NULL: all are. */
static const char *find_all(void *library, const char *const *names, void *functions)
{
	char *at = functions;
	for (; *names; names++, at += sizeof(void *)) {
		void *function = dlsym(library, *names);
		if (!function) break;
		memcpy(at, &function, sizeof function);
	}
	return *names;
}

static bool find_functions(struct library *l)
{
	void *library = dlopen(l->soname, RTLD_NOW | RTLD_LOCAL);
	if (library && !find_all(library, l->names, l->functions)) {
		size_t n = 0;
		while (l->more && l->more[n]) n++;
		if (n && find_all(library, l->more, l->more_functions))
			memset(l->more_functions, 0, n * sizeof(void *));
		return true;
	}
	snprintf(l->why, sizeof l->why, "%s", dlerror());
	return false;
}

/* NULL: it can be used. */
static const char *load(struct library *l)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	if (l->names && !*l->why && find_functions(l)) l->names = NULL;
	pthread_mutex_unlock(&lock);
	return l->names ? l->why : NULL;
}

const char *slp_cublas_load(void)
{
	return load(&cublas);
}

const char *slp_cudnn_load(void)
{
	return load(&cudnn);
}

static bool is_loaded(struct library *l, const struct slp_kernel *k)
{
	const char *why = load(l);
	if (why) slp_kernel_fail(k, SL_EKERNEL, "%s", why);
	return !why;
}

/* ---- handles ---------------------------------------------------------------------------------------------------- */

/* Before each kernel.  An error that StarPU has handled, such as memory that it did not get at first, is not the
 * kernel's: it is cleared here. */
void *slp_gpu_stream(void)
{
	cudaGetLastError();
	return starpu_cuda_get_local_stream();
}

void slp_gpu_wait(void)
{
	cudaStreamSynchronize(starpu_cuda_get_local_stream()); /* a fault belongs to the task, at its end */
}

bool slp_tf32_convolutions(void)
{
	return slp_engine.config.tf32 >= SL_TF32_CONV;
}

bool slp_tf32_products(void)
{
	return slp_engine.config.tf32 == SL_TF32_ALL;
}

/* As much memory as cuBLAS takes by itself. */
static size_t work_bytes(int device)
{
	struct cudaDeviceProp p = {0};
	cudaGetDeviceProperties(&p, device);
	return (size_t)(p.major >= 9 ? 32 : 4) << 20;
}

size_t slp_gpu_own_bytes(int gpu)
{
	unsigned node = starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[gpu]);
	return work_bytes(starpu_memory_node_get_devid(node)) + SLP_ARRIVALS * sizeof(unsigned) + 65536;
}

static void find_work(struct handles *h)
{
	int device = 0;
	cudaGetDevice(&device);
	h->work_bytes = work_bytes(device);
	if (cudaMalloc(&h->work, h->work_bytes) != cudaSuccess) h->work = NULL;
	cudaGetLastError();
}

static cublasStatus_t make_cublas(struct handles *h)
{
	cublasStatus_t s = slp_blas.cublasCreate(&h->blas);
	if (s != CUBLAS_STATUS_SUCCESS) return s;
	find_work(h);
	int math = slp_tf32_products() ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
	math |= CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION; /* parts of sums of half types are float32, too */
	return slp_blas.cublasSetMathMode(h->blas, (cublasMath_t)math);
}

/* To choose a stream takes cuBLAS's memory away from it. */
void *slp_cublas(const struct slp_kernel *k)
{
	struct handles *h = &handles[starpu_worker_get_id()];
	if (!h->blas && !is_loaded(&cublas, k)) return NULL;
	cublasStatus_t s = h->blas ? CUBLAS_STATUS_SUCCESS : make_cublas(h);
	if (s == CUBLAS_STATUS_SUCCESS) s = slp_blas.cublasSetStream(h->blas, k->stream);
	if (s == CUBLAS_STATUS_SUCCESS && h->work) s = slp_blas.cublasSetWorkspace(h->blas, h->work, h->work_bytes);
	if (s == CUBLAS_STATUS_SUCCESS) return h->blas;
	slp_kernel_fail(k, SL_EKERNEL, "cuBLAS: %s", slp_blas.cublasGetStatusString(s));
	return NULL;
}

void *slp_cublas_work(size_t *bytes)
{
	const struct handles *h = &handles[starpu_worker_get_id()];
	*bytes = h->work_bytes;
	return h->work;
}

int slp_cublas_version(void)
{
	int version = 0;
	cublasHandle_t h = handles[starpu_worker_get_id()].blas;
	return h && slp_blas.cublasGetVersion(h, &version) == CUBLAS_STATUS_SUCCESS ? version : 0;
}

static cudnnStatus_t make_cudnn(struct handles *h)
{
	h->dnn_graph = slp_dnn_graph.cudnnBackendExecute && slp_engine.cudnn_graph;
	return slp_dnn.cudnnCreate(&h->dnn);
}

void *slp_cudnn(const struct slp_kernel *k)
{
	struct handles *h = &handles[starpu_worker_get_id()];
	if (!h->dnn && !is_loaded(&cudnn, k)) return NULL;
	cudnnStatus_t s = h->dnn ? CUDNN_STATUS_SUCCESS : make_cudnn(h);
	if (s == CUDNN_STATUS_SUCCESS) s = slp_dnn.cudnnSetStream(h->dnn, k->stream);
	if (s == CUDNN_STATUS_SUCCESS) return h->dnn;
	slp_kernel_fail(k, SL_EKERNEL, "cuDNN: %s", slp_dnn.cudnnGetErrorString(s));
	return NULL;
}

bool slp_cudnn_graph(void)
{
	return handles[starpu_worker_get_id()].dnn_graph;
}

/* All work of a worker is on one stream, so the zeros are written before the first kernel that counts. */
unsigned *slp_arrivals(const struct slp_kernel *k)
{
	struct handles *h = &handles[starpu_worker_get_id()];
	const size_t bytes = SLP_ARRIVALS * sizeof *h->arrivals;
	if (h->arrivals) return h->arrivals;
	cudaError_t e = cudaMalloc((void **)&h->arrivals, bytes);
	if (e == cudaSuccess) e = cudaMemsetAsync(h->arrivals, 0, bytes, k->stream);
	if (e == cudaSuccess) return h->arrivals;
	slp_kernel_fail(k, e == cudaErrorMemoryAllocation ? SL_ENOMEM : SL_EKERNEL, "CUDA: %s", cudaGetErrorString(e));
	cudaFree(h->arrivals);
	h->arrivals = NULL;
	return NULL;
}

/* Graphs first: their kernels are those of plans and libraries. */
static void destroy(void *arg)
{
	(void)arg;
	int worker = starpu_worker_get_id();
	slp_graph_clear();
	for (int i = 0; i < slp_op_count(); i++)
		if (slp_ops[i]->forget) slp_ops[i]->forget();
	if (handles[worker].blas) slp_blas.cublasDestroy(handles[worker].blas);
	if (handles[worker].dnn) slp_dnn.cudnnDestroy(handles[worker].dnn);
	cudaFree(handles[worker].work);
	cudaFree(handles[worker].arrivals);
	handles[worker] = (struct handles){0};
}

void slp_gpu_shutdown(void)
{
	if (slp_engine.ngpus) starpu_execute_on_each_worker(destroy, NULL, STARPU_CUDA);
	slp_compiled_forget();
	slp_tune_forget();
}

#else

size_t slp_gpu_own_bytes(int gpu)
{
	(void)gpu;
	return 0;
}

void *slp_gpu_stream(void)
{
	return NULL;
}

void slp_gpu_wait(void)
{
}

void slp_gpu_shutdown(void)
{
}
#endif
