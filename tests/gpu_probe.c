/* What would spoil a run on a GPU, one thing a process: gpu_probe NAME; --list prints the names.  Part of
 * dev/gpu-check. gpu_probe_conv.c has those that compare ways to compute convolutions.
 *
 * Each prints what it found, ends with 0 if that is well, and builds on as little as it can: the first that fails says
 * where to look.  Nothing before "starpu" needs StarPU. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <starling.h>

#include "gpu_probe.h"
#include "op.h"

enum { N = 1000 };
static const size_t large = (size_t)64 << 20;

double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void must(bool ok, const char *what)
{
	if (ok) return;
	printf("FAILED: %s\n", what);
	exit(1);
}

void cuda(cudaError_t e, const char *what)
{
	if (e != cudaSuccess) printf("%s: %s\n", what, cudaGetErrorString(e));
	must(e == cudaSuccess, what);
}

/* ---- CUDA alone -------------------------------------------------------------------------------------------------- */

static void probe_driver(void)
{
	int driver = 0, runtime = 0, count = 0;
	CUDA(cudaDriverGetVersion(&driver));
	CUDA(cudaRuntimeGetVersion(&runtime));
	printf("the driver is for CUDA %d.%d, the run time of CUDA %d.%d, this was compiled with %d.%d\n",
	       driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, CUDART_VERSION / 1000,
	       CUDART_VERSION % 1000 / 10);
	must(driver > 0, "there is no driver: libcuda.so.1 is not found, or fails");
	must(driver / 1000 >= CUDART_VERSION / 1000, "the driver is too old");
	CUDA(cudaGetDeviceCount(&count));
	must(count > 0, "there is no GPU");
	for (int i = 0; i < count; i++) {
		struct cudaDeviceProp p;
		CUDA(cudaGetDeviceProperties(&p, i));
		printf("gpu:%d: %s, compute capability %d.%d, %.1f GiB, %d multiprocessors, %d copy engines\n", i,
		       p.name, p.major, p.minor, (double)p.totalGlobalMem / (1 << 30), p.multiProcessorCount,
		       p.asyncEngineCount);
	}
}

void *device_memory(size_t bytes)
{
	void *p = NULL;
	CUDA(cudaMalloc(&p, bytes));
	return p;
}

/* GB/s, the second time */
static double copy_speed(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
	double begin = 0;
	for (int i = 0; i < 2; i++) {
		begin = now();
		CUDA(cudaMemcpy(to, from, bytes, kind));
		CUDA(cudaDeviceSynchronize());
	}
	return (double)bytes / (now() - begin) / 1e9;
}

static void round_trip(void *host, void *back, void *a, void *b, const char *name)
{
	for (size_t i = 0; i < large / 4; i++) ((uint32_t *)host)[i] = (uint32_t)i * 2654435761u;
	memset(back, 0, large);
	double in = copy_speed(a, host, large, cudaMemcpyHostToDevice);
	double within = copy_speed(b, a, large, cudaMemcpyDeviceToDevice);
	double out = copy_speed(back, b, large, cudaMemcpyDeviceToHost);
	printf("%s memory: %.1f GB/s in, %.1f within, %.1f out\n", name, in, within, out);
	must(!memcmp(host, back, large), "64 MiB came back changed");
}

static void probe_memory(void)
{
	void *a = device_memory(large), *b = device_memory(large), *pinned = NULL, *pinned_back = NULL;
	void *host = malloc(large), *back = malloc(large);
	must(host && back, "64 MiB of main memory");
	round_trip(host, back, a, b, "pageable");
	CUDA(cudaHostAlloc(&pinned, large, 0));
	CUDA(cudaHostAlloc(&pinned_back, large, 0));
	round_trip(pinned, pinned_back, a, b, "pinned");
	size_t left = 0, all = 0;
	CUDA(cudaMemGetInfo(&left, &all));
	printf("%.2f of %.2f GiB are free\n", (double)left / (1 << 30), (double)all / (1 << 30));
	free(host);
	free(back);
}

cudaStream_t stream_new(void)
{
	cudaStream_t s = NULL;
	CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	return s;
}

static float *filled(float value, int64_t n, cudaStream_t s)
{
	size_t bytes = (size_t)n * sizeof(float);
	float *host = malloc(bytes), *p = device_memory(bytes);
	must(host, "memory");
	for (int64_t i = 0; i < n; i++) host[i] = value;
	CUDA(cudaMemcpyAsync(p, host, bytes, cudaMemcpyHostToDevice, s));
	CUDA(cudaStreamSynchronize(s));
	free(host);
	return p;
}

/* c = a + b by the library's kernel, without the engine. */
static void add(float *a, float *b, float *c, int64_t n, cudaStream_t s)
{
	struct slp_type type = {.dtype = SL_FLOAT32, .shape = SL_SHAPE(n)};
	struct slp_view in[] = {{a, type}, {b, type}}, out = {c, type};
	struct slp_kernel k = {.op = slp_op_find("add"), .nin = 2, .nout = 1, .in = in, .out = &out, .stream = s};
	union {
		char bytes[SLP_MAX_ATTRS];
		max_align_t align;
	} attrs = {{0}};
	k.attrs = &attrs;
	must(slp_kernel_for(k.op, SLP_ALL_OF(SL_FLOAT32), SL_DEVICE_GPU).kernel(&k) == SL_OK, "a launch");
}

static void check(const float *p, int64_t n, float expected, cudaStream_t s)
{
	float *host = malloc((size_t)n * sizeof *host);
	must(host, "memory");
	CUDA(cudaMemcpyAsync(host, p, (size_t)n * sizeof *host, cudaMemcpyDeviceToHost, s));
	CUDA(cudaStreamSynchronize(s));
	for (int64_t i = 0; i < n; i++) {
		if (host[i] == expected) continue;
		printf("element %lld is %g, not %g\n", (long long)i, host[i], expected);
		must(false, "the values");
	}
	free(host);
}

static void probe_launch(void)
{
	cudaStream_t s = stream_new();
	float *a = filled(1, N, s), *b = filled(2, N, s), *c = filled(0, N, s);
	double begin = now();
	add(a, b, c, N, s);
	check(c, N, 3, s);
	printf("the first kernel took %.1f ms with its loading\n", 1e3 * (now() - begin));
	begin = now();
	enum { TIMES = 1000 };
	for (int i = 0; i < TIMES; i++) add(a, c, c, N, s);
	double queued = now() - begin;
	check(c, N, 3 + TIMES, s);
	printf("a launch takes %.2f us to queue, %.2f us to the end\n", 1e6 * queued / TIMES,
	       1e6 * (now() - begin) / TIMES);
}

/* A stream that waits for an event of another one sees what came before it, a thousand times. */
static void probe_streams(void)
{
	enum { LONG = 1 << 22, ROUNDS = 50 };
	cudaStream_t s[2] = {stream_new(), stream_new()};
	cudaEvent_t done[2];
	for (int i = 0; i < 2; i++) CUDA(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
	float *one = filled(1, LONG / 64, s[0]), *sum = filled(0, LONG / 64, s[0]);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		cudaStream_t here = s[i % 2];
		if (i) CUDA(cudaStreamWaitEvent(here, done[(i + 1) % 2], 0));
		add(sum, one, sum, LONG / 64, here);
		CUDA(cudaEventRecord(done[i % 2], here));
	}
	CUDA(cudaStreamWaitEvent(s[0], done[(2 * ROUNDS - 1) % 2], 0));
	check(sum, LONG / 64, 2 * ROUNDS, s[0]);
	printf("%d kernels on two streams in turn, ordered by events\n", 2 * ROUNDS);
}

/* ---- cuBLAS, cuDNN ----------------------------------------------------------------------------------------------- */

static void probe_cublas(void)
{
	enum { SIZE = 64 };
	const char *why = slp_cublas_load();
	if (why) printf("%s\n", why);
	must(!why, "cuBLAS is loaded");
	cublasHandle_t h = NULL;
	cudaStream_t s = stream_new();
	must(slp_blas.cublasCreate(&h) == CUBLAS_STATUS_SUCCESS, "cublasCreate");
	must(slp_blas.cublasSetStream(h, s) == CUBLAS_STATUS_SUCCESS, "cublasSetStream");
	float *a = filled(1, SIZE * SIZE, s), *b = filled(2, SIZE * SIZE, s), *c = filled(0, SIZE * SIZE, s);
	float one = 1, zero = 0;
	cublasStatus_t status = slp_blas.cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_T, SIZE, SIZE, SIZE, &one, a, SIZE, b,
	                                             SIZE, &zero, c, SIZE);
	must(status == CUBLAS_STATUS_SUCCESS, "cublasSgemm");
	check(c, SIZE * SIZE, 2 * SIZE, s);
	printf("a product of %d x %d is right\n", SIZE, SIZE);
}

#define DNN(call) dnn(slp_dnn.call, #call)
static void dnn(cudnnStatus_t s, const char *what)
{
	if (s != CUDNN_STATUS_SUCCESS) printf("%s: %s\n", what, slp_dnn.cudnnGetErrorString(s));
	must(s == CUDNN_STATUS_SUCCESS, what);
}

struct convolution {
	cudnnTensorDescriptor_t x, y;
	cudnnFilterDescriptor_t w;
	cudnnConvolutionDescriptor_t conv;
};

/* n images of c x size x size; k kernels of 3 x 3, padded; sums in float32. */
static struct convolution convolution(int n, int c, int k, int size, cudnnDataType_t type, cudnnMathType_t math,
                                      cudnnTensorFormat_t format)
{
	struct convolution v;
	DNN(cudnnCreateTensorDescriptor(&v.x));
	DNN(cudnnCreateTensorDescriptor(&v.y));
	DNN(cudnnCreateFilterDescriptor(&v.w));
	DNN(cudnnCreateConvolutionDescriptor(&v.conv));
	DNN(cudnnSetTensor4dDescriptor(v.x, format, type, n, c, size, size));
	DNN(cudnnSetTensor4dDescriptor(v.y, format, type, n, k, size, size));
	DNN(cudnnSetFilter4dDescriptor(v.w, type, format, k, c, 3, 3));
	DNN(cudnnSetConvolution2dDescriptor(v.conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
	DNN(cudnnSetConvolutionMathType(v.conv, math));
	return v;
}

enum { PROPOSALS = 8 };

#define PRINT_PROPOSALS(pass)                                                                                          \
	for (int i = 0; i < n; i++)                                                                                    \
	printf("  %s: algorithm %d, %s, math %d, %s, %zu bytes\n", pass, (int)p[i].algo,                               \
	       p[i].status == CUDNN_STATUS_SUCCESS ? "works" : "refused", (int)p[i].mathType,                          \
	       p[i].determinism == CUDNN_DETERMINISTIC ? "deterministic" : "not deterministic", p[i].memory)

/* What the engine chooses from (conv2d.cu). */
static void print_proposals(cudnnHandle_t h, const struct convolution *v)
{
	int n = 0;
	{
		cudnnConvolutionFwdAlgoPerf_t p[PROPOSALS];
		DNN(cudnnGetConvolutionForwardAlgorithm_v7(h, v->x, v->w, v->conv, v->y, PROPOSALS, &n, p));
		PRINT_PROPOSALS("forward");
	}
	{
		cudnnConvolutionBwdDataAlgoPerf_t p[PROPOSALS];
		DNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(h, v->w, v->y, v->conv, v->x, PROPOSALS, &n, p));
		PRINT_PROPOSALS("data");
	}
	{
		cudnnConvolutionBwdFilterAlgoPerf_t p[PROPOSALS];
		DNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, v->x, v->y, v->conv, v->w, PROPOSALS, &n, p));
		PRINT_PROPOSALS("weights");
	}
}

cudnnHandle_t dnn_handle(cudaStream_t s)
{
	const char *why = slp_cudnn_load();
	if (why) printf("%s\n", why);
	must(!why, "cuDNN is loaded");
	cudnnHandle_t h = NULL;
	DNN(cudnnCreate(&h));
	DNN(cudnnSetStream(h, s));
	return h;
}

/* The first proposal that is deterministic and takes little memory: what the engine would take. */
static void probe_cudnn(void)
{
	enum { IMAGES = 2, CHANNELS = 3, KERNELS = 4, SIZE = 3 };
	cudaStream_t s = stream_new();
	cudnnHandle_t h = dnn_handle(s);
	struct convolution v =
	        convolution(IMAGES, CHANNELS, KERNELS, SIZE, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, CUDNN_TENSOR_NCHW);
	cudnnConvolutionFwdAlgoPerf_t p[PROPOSALS];
	int n = 0, i = 0;
	DNN(cudnnGetConvolutionForwardAlgorithm_v7(h, v.x, v.w, v.conv, v.y, PROPOSALS, &n, p));
	while (i < n &&
	       (p[i].status != CUDNN_STATUS_SUCCESS || p[i].determinism != CUDNN_DETERMINISTIC || p[i].memory > large))
		i++;
	must(i < n, "cuDNN proposes an algorithm that is deterministic");
	float *x = filled(1, IMAGES * CHANNELS * SIZE * SIZE, s), *w = filled(2, KERNELS * CHANNELS * 9, s);
	float *y = filled(0, IMAGES * KERNELS * SIZE * SIZE, s), one = 1, zero = 0;
	void *work = p[i].memory ? device_memory(p[i].memory) : NULL;
	DNN(cudnnConvolutionForward(h, &one, v.x, x, v.w, w, v.conv, p[i].algo, work, p[i].memory, &zero, v.y, y));
	check(y + SIZE * SIZE / 2, 1, 2 * 9 * CHANNELS, s);
	printf("a convolution is right, by algorithm %d\n", (int)p[i].algo);
}

static void probe_cudnn_algorithms(void)
{
	static const struct {
		const char *name;
		int images, channels, kernels, size;
	} cases[] = {{"LeNet's second", 64, 32, 64, 14}, {"one of ResNet-18", 32, 64, 64, 56}};
	static const struct {
		const char *name;
		cudnnDataType_t type;
		cudnnMathType_t math;
	} ways[] = {{"float32, CUDNN_FMA_MATH", CUDNN_DATA_FLOAT, CUDNN_FMA_MATH},
	            {"float32, CUDNN_DEFAULT_MATH", CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH},
	            {"bfloat16, CUDNN_TENSOR_OP_MATH", CUDNN_DATA_BFLOAT16, CUDNN_TENSOR_OP_MATH},
	            {"float16, CUDNN_TENSOR_OP_MATH", CUDNN_DATA_HALF, CUDNN_TENSOR_OP_MATH}};
	enum { WAYS = sizeof ways / sizeof *ways };
	cudnnHandle_t h = dnn_handle(stream_new());
	for (int i = 0; i < 4 * WAYS; i++) {
		int c = i / 2 / WAYS, w = i / 2 % WAYS, last = i % 2;
		if (last && ways[w].math == CUDNN_FMA_MATH) continue; /* not on tensor cores */
		printf("%s, %s, %s:\n", cases[c].name, ways[w].name, last ? "NHWC" : "NCHW");
		struct convolution v =
		        convolution(cases[c].images, cases[c].channels, cases[c].kernels, cases[c].size, ways[w].type,
		                    ways[w].math, last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW);
		print_proposals(h, &v);
	}
}

/* ---- the engine -------------------------------------------------------------------------------------------------- */

void well(enum sl_status s, const char *what)
{
	if (s != SL_OK) printf("%s\n", sl_error_message());
	must(s == SL_OK, what);
}

static void start(void)
{
	double begin = now();
	well(sl_init(&(struct sl_config){.seed = 1}), "sl_init");
	printf("%d GPUs, %d CPU teams, started in %.2f s\n", sl_device_count(SL_DEVICE_GPU),
	       sl_device_count(SL_DEVICE_CPU), now() - begin);
	must(sl_device_count(SL_DEVICE_GPU) > 0, "StarPU has a CUDA worker");
	well(sl_device_default(sl_gpu(0)), "gpu:0 is the default");
}

static void expect(sl_tensor *t, double expected, const char *what)
{
	must(t, sl_error_message());
	double v = sl_item(t);
	well(sl_wait_all(), what);
	printf("%s: %g\n", what, v);
	must(fabs(v - expected) <= 1e-4 * fabs(expected), what);
}

static void probe_starpu(void)
{
	start();
	SL_SCOPE
		expect(sl_sum(sl_add(sl_ones(SL_SHAPE(N)), sl_ones(SL_SHAPE(N)))), 2 * N, "a sum on gpu:0");
	sl_shutdown();
}

static void probe_engine_product(void)
{
	start();
	SL_SCOPE
		expect(sl_sum(sl_dot(sl_ones(SL_SHAPE(256, 256)), sl_ones(SL_SHAPE(256, 256)))), 256.0 * 256 * 256,
		       "a product's sum");
	sl_shutdown();
}

static void probe_engine_convolution(void)
{
	start();
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(8, 16, 12, 12)), *w = sl_ones(SL_SHAPE(32, 16, 3, 3));
		expect(sl_sum(sl_conv2d(x, w, NULL)), 8.0 * 32 * 10 * 10 * 16 * 9, "a convolution's sum");
	}
	sl_shutdown();
}

/* Products, convolutions and their gradients in half types, and what a product takes in each type. */
static void probe_halves(void)
{
#ifdef SLP_EMULATE
	enum { SIZE = 64, TIMES = 2 };
#else
	enum { SIZE = 4096, TIMES = 20 };
#endif
	static const enum sl_dtype types[] = {SL_FLOAT32, SL_BFLOAT16, SL_FLOAT16};
	start();
	for (int i = 0; i < 3; i++)
		SL_SCOPE {
			sl_tensor *a = sl_ones(SL_SHAPE(SIZE, SIZE), .dtype = types[i]), *y = NULL;
			sl_tensor *x = sl_ones(SL_SHAPE(8, 16, 12, 12), .dtype = types[i]);
			sl_tensor *w = sl_ones(SL_SHAPE(32, 16, 3, 3), .dtype = types[i]);
			printf("%s\n", sl_dtype_name(types[i]));
			expect(sl_mean(sl_cast(sl_dot(a, a), SL_FLOAT32)), SIZE, "a product's mean");
			well(sl_attach_grad(x), "a gradient");
			well(sl_attach_grad(w), "a gradient");
			SL_RECORD
				y = sl_conv2d(x, w, NULL);
			well(sl_backward(y), "the gradients");
			expect(sl_mean(sl_cast(y, SL_FLOAT32)), 16 * 9, "a convolution's mean");
			expect(sl_mean(sl_cast(sl_grad(w), SL_FLOAT32)), 800, "its weights' gradients' mean");
			expect(sl_max(sl_cast(sl_grad(x), SL_FLOAT32)), 32 * 9, "its data's largest gradient");
			double begin = now();
			for (int k = 0; k < TIMES; k++) sl_dot(a, a);
			well(sl_wait_all(), "products");
			printf("a product of %d x %d: %.2f TFLOP/s\n", SIZE, SIZE,
			       TIMES * 2.0 * SIZE * SIZE * SIZE / (now() - begin) / 1e12);
		}
	sl_shutdown();
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

#define PROBES(X)                                                                                                      \
	X(driver)                                                                                                      \
	X(memory)                                                                                                      \
	X(launch)                                                                                                      \
	X(streams)                                                                                                     \
	X(cublas)                                                                                                      \
	X(cudnn)                                                                                                       \
	X(starpu)                                                                                                      \
	X(engine_product)                                                                                              \
	X(engine_convolution)                                                                                          \
	X(cudnn_algorithms)                                                                                            \
	X(halves)                                                                                                      \
	X(convolutions)                                                                                                \
	X(layouts)

static const struct {
	const char *name;
	void (*run)(void);
} probes[] = {
#define X(name) {#name, probe_##name},
        PROBES(X)
#undef X
};

/* A line for each family of operations: its name, theirs. */
static void print_families(void)
{
	const char *family = NULL;
	for (const struct sl_op **op = slp_ops; *op; op++) {
		bool first = !family || strcmp(family, slp_op_family(*op));
		family = slp_op_family(*op);
		if (first) printf("%s", op == slp_ops ? "" : "\n");
		for (const char *p = family; first && *p; p++) putchar(*p | 0x20);
		printf(" %s", (*op)->name);
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	int count = (int)(sizeof probes / sizeof *probes);
	bool list = argc == 2 && !strcmp(argv[1], "--list"), families = argc == 2 && !strcmp(argv[1], "--families");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (families) print_families();
	for (int i = 0; argc == 2 && i < count; i++) {
		if (list) puts(probes[i].name);
		if (strcmp(argv[1], probes[i].name)) continue;
		probes[i].run();
		return 0;
	}
	if (list || families) return 0;
	fprintf(stderr, "Usage: gpu_probe NAME | --list | --families\n");
	return 2;
}
