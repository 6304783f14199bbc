/* The emulated GPUs themselves: that they are asynchronous, limited and separate, and end programs that mistreat
 * them. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emulated.h"
#include "harness.h"

enum { N = 1000 };
static const size_t bytes = N * sizeof(float);

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

struct add {
	float *to, value;
};

static void run_add(void *arg)
{
	struct add *a = arg;
	for (int i = 0; i < N; i++) a->to[i] += a->value;
}

static cudaError_t add(float *to, float value, cudaStream_t s)
{
	struct add *a = malloc(sizeof *a);
	*a = (struct add){emu_argument(to, "add"), value};
	return emu_launch(s, run_add, a, free);
}

static float *device_zeros(cudaStream_t s)
{
	void *p = NULL;
	CHECK(cudaMalloc(&p, bytes) == cudaSuccess);
	CHECK(cudaMemsetAsync(p, 0, bytes, s) == cudaSuccess);
	return p;
}

static cudaStream_t stream_new(void)
{
	cudaStream_t s = NULL;
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) == cudaSuccess);
	return s;
}

/* ---- misuse: in processes of their own, before anything else has started the devices ---------------------------- */

static void host_reads(void)
{
	volatile float *p = device_zeros(NULL);
	printf("%g\n", p[0]);
}

static void host_argument(void)
{
	static float memory[N];
	add(memory, 1, NULL);
}

static void other_device(void)
{
	float *p = device_zeros(NULL);
	cudaSetDevice(1);
	add(p, 1, NULL);
}

static void other_stream(void)
{
	cudaStream_t s = stream_new();
	cudaSetDevice(1);
	add(NULL, 1, s);
}

static void copy_beyond(void)
{
	static float host[2 * N];
	float *p = device_zeros(NULL);
	cudaMemcpy(p, host, 2 * bytes, cudaMemcpyHostToDevice);
}

static void copy_from_host_as_device(void)
{
	static float host[N];
	float *p = device_zeros(NULL);
	cudaMemcpy(p, host, bytes, cudaMemcpyDeviceToDevice);
}

static void freed_twice(void)
{
	float *p = device_zeros(NULL);
	cudaFree(p);
	cudaFree(p);
}

static void freed_before_launch(void)
{
	cudaGraph_t g;
	cudaGraphExec_t e;
	cudaStream_t s = stream_new();
	float *p = device_zeros(s);
	cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal);
	add(p, 1, s);
	cudaStreamEndCapture(s, &g);
	cudaGraphInstantiateWithFlags(&e, g, 0);
	cudaFree(p);
	cudaGraphLaunch(e, s);
}

static const struct {
	void (*run)(void);
	const char *says;
} mistakes[] = {
        {host_reads, "illegal access to memory of gpu:0"},
        {host_argument, "is host memory"},
        {other_device, "is memory of gpu:0, not gpu:1"},
        {other_stream, "on a stream of gpu:0 while gpu:1 is current"},
        {copy_beyond, "leaves its allocation"},
        {copy_from_host_as_device, "is host memory"},
        {freed_twice, "not allocated"},
        {freed_before_launch, "graph 0x"},
};

/* What it printed on standard error; the process must not have ended by itself. */
static void run_apart(void (*run)(void), char *text, size_t size)
{
	int ends[2], status = 0;
	if (!CHECK(pipe(ends) == 0)) return;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], 2);
		run();
		_exit(0);
	}
	close(ends[1]);
	size_t n = 0;
	for (ssize_t more; n < size - 1 && (more = read(ends[0], text + n, size - 1 - n)) > 0;) n += (size_t)more;
	text[n] = '\0';
	close(ends[0]);
	waitpid(child, &status, 0);
	CHECK_SAYING(status != 0, "a mistake went unpunished");
}

static void test_mistakes(void)
{
	char text[8192];
	for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
		run_apart(mistakes[i].run, text, sizeof text);
		CHECK_SAYING(strstr(text, mistakes[i].says), "mistake %zu: \"%s\" is not in: %s", i, mistakes[i].says,
		             text);
	}
}

/* ---- order ------------------------------------------------------------------------------------------------------ */

static float first_of(const float *p)
{
	float v[N];
	CHECK(cudaMemcpy(v, p, bytes, cudaMemcpyDeviceToHost) == cudaSuccess);
	return v[0];
}

/* Kernels are late; only a stream that waits for the event sees what they did. */
static void test_asynchronous(void)
{
	cudaStream_t a = stream_new(), b = stream_new();
	cudaEvent_t done;
	float *x = device_zeros(a), *early = device_zeros(b), *late = device_zeros(b);
	CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming) == cudaSuccess);
	CHECK(cudaStreamSynchronize(a) == cudaSuccess);
	CHECK(cudaStreamSynchronize(b) == cudaSuccess);
	add(x, 1, a);
	CHECK(cudaEventRecord(done, a) == cudaSuccess);
	CHECK(cudaEventQuery(done) == cudaErrorNotReady);
	cudaMemcpyAsync(early, x, bytes, cudaMemcpyDeviceToDevice, b);
	CHECK(cudaStreamWaitEvent(b, done, 0) == cudaSuccess);
	cudaMemcpyAsync(late, x, bytes, cudaMemcpyDeviceToDevice, b);
	CHECK(cudaStreamSynchronize(b) == cudaSuccess);
	CHECK(cudaEventQuery(done) == cudaSuccess);
	CHECK(first_of(early) == 0);
	CHECK(first_of(late) == 1);
	cudaFree(x);
	cudaFree(early);
	cudaFree(late);
	CHECK(cudaEventDestroy(done) == cudaSuccess);
	CHECK(cudaStreamDestroy(a) == cudaSuccess);
	CHECK(cudaStreamDestroy(b) == cudaSuccess);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static cudaGraph_t capture(cudaStream_t s, float *to, float value)
{
	cudaGraph_t g = NULL;
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
	CHECK(add(to, value, s) == cudaSuccess);
	CHECK(cudaStreamEndCapture(s, &g) == cudaSuccess);
	return g;
}

struct chain {
	cudaGraph_t graph;
	cudaGraphNode_t nodes[2];
	cudaGraphExec_t exec;
};

/* Adds a number, then another one. */
static struct chain make_chain(cudaStream_t s, float *to, float a, float b)
{
	struct chain c = {0};
	float values[] = {a, b};
	CHECK(cudaGraphCreate(&c.graph, 0) == cudaSuccess);
	for (int i = 0; i < 2; i++) {
		cudaGraph_t part = capture(s, to, values[i]);
		CHECK(cudaGraphAddChildGraphNode(&c.nodes[i], c.graph, i ? c.nodes : NULL, (size_t)i, part) ==
		      cudaSuccess);
		CHECK(cudaGraphDestroy(part) == cudaSuccess);
	}
	CHECK(cudaGraphInstantiateWithFlags(&c.exec, c.graph, 0) == cudaSuccess);
	return c;
}

static void test_chain(void)
{
	cudaStream_t s = stream_new();
	float *p = device_zeros(s);
	struct chain c = make_chain(s, p, 1, 10);
	CHECK(cudaStreamSynchronize(s) == cudaSuccess && first_of(p) == 0); /* it was only recorded */
	CHECK(cudaGraphLaunch(c.exec, s) == cudaSuccess && cudaGraphLaunch(c.exec, s) == cudaSuccess);
	cudaGraph_t other = capture(s, p, 100), empty;
	/* Launches before are not affected. */
	CHECK(cudaGraphExecChildGraphNodeSetParams(c.exec, c.nodes[1], other) == cudaSuccess);
	CHECK(cudaStreamSynchronize(s) == cudaSuccess && first_of(p) == 22);
	CHECK(cudaGraphLaunch(c.exec, s) == cudaSuccess);
	CHECK(cudaStreamSynchronize(s) == cudaSuccess && first_of(p) == 123);
	CHECK(cudaGraphCreate(&empty, 0) == cudaSuccess);
	CHECK(cudaGraphExecChildGraphNodeSetParams(c.exec, c.nodes[0], empty) == cudaErrorGraphExecUpdateFailure);
	CHECK(cudaGraphDestroy(empty) == cudaSuccess && cudaGraphDestroy(other) == cudaSuccess);
	CHECK(cudaGraphExecDestroy(c.exec) == cudaSuccess && cudaGraphDestroy(c.graph) == cudaSuccess);
	CHECK(cudaFree(p) == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess);
	cudaGetLastError();
}

static cudaError_t call_malloc(cudaStream_t s)
{
	void *p;
	(void)s;
	return cudaMalloc(&p, 64);
}

static cudaError_t call_memcpy(cudaStream_t s)
{
	float v = 0;
	(void)s;
	return cudaMemcpy(&v, &v, sizeof v, cudaMemcpyHostToHost);
}

static cudaError_t call_device_synchronize(cudaStream_t s)
{
	(void)s;
	return cudaDeviceSynchronize();
}

/* What is not allowed while a stream is captured fails, and so does the capture; then all is well. */
static void test_illegal(void)
{
	static cudaError_t (*const calls[])(cudaStream_t) = {cudaStreamSynchronize, cudaStreamQuery, call_malloc,
	                                                     call_memcpy, call_device_synchronize};
	cudaStream_t s = stream_new();
	float *p = device_zeros(s);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		cudaGraph_t g;
		CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
		CHECK(add(p, 1, s) == cudaSuccess);
		CHECK(calls[i](s) == cudaErrorStreamCaptureUnsupported);
		CHECK(add(p, 1, s) == cudaErrorStreamCaptureInvalidated);
		CHECK(cudaStreamEndCapture(s, &g) == cudaErrorStreamCaptureInvalidated && !g);
	}
	cudaGetLastError();
	CHECK(add(p, 5, s) == cudaSuccess && cudaStreamSynchronize(s) == cudaSuccess && first_of(p) == 5);
	CHECK(cudaFree(p) == cudaSuccess && cudaStreamDestroy(s) == cudaSuccess);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void test_limited(void)
{
	void *half = NULL, *more = NULL;
	size_t left, all;
	CHECK(cudaMemGetInfo(&left, &all) == cudaSuccess);
	CHECK(all == (size_t)8 << 20 && left == all);
	CHECK(cudaMalloc(&half, (size_t)5 << 20) == cudaSuccess);
	CHECK(cudaMalloc(&more, (size_t)5 << 20) == cudaErrorMemoryAllocation && !more);
	CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
	CHECK(cudaGetLastError() == cudaSuccess);
	CHECK(cudaFree(half) == cudaSuccess);
	CHECK(cudaMalloc(&more, (size_t)8 << 20) == cudaSuccess);
	CHECK(cudaFree(more) == cudaSuccess);
}

static void test_unwritten(void)
{
	void *p;
	CHECK(cudaMalloc(&p, bytes) == cudaSuccess);
	CHECK(isnan(first_of(p)));
	cudaFree(p);
}

/* ---- counters, failures ----------------------------------------------------------------------------------------- */

static void test_counters(void)
{
	struct emu_counts c;
	emu_counts_reset();
	cudaSetDevice(1);
	float *p = device_zeros(NULL);
	add(p, 1, NULL);
	CHECK(first_of(p) == 1);
	cudaFree(p);
	cudaSetDevice(0);
	emu_counts_get(&c);
	CHECK(c.launches[1] == 1 && c.launches[0] == 0);
	CHECK(c.sets[1] == 1 && c.allocations[1] == 1 && c.used[1] == 0 && c.peak[1] >= bytes);
	CHECK(c.link[1][EMU_HOST].copies == 1 && c.link[1][EMU_HOST].bytes == bytes);
	CHECK(c.link[0][EMU_HOST].copies == 0);
	CHECK(emu_copies(1, EMU_HOST, bytes) == 1 && emu_copies(1, EMU_HOST, bytes + 4) == 0);
}

static void test_failures(void)
{
	float host[N] = {0};
	float *p = device_zeros(NULL);
	void *q;
	emu_fail(EMU_MALLOC, 2);
	CHECK(cudaMalloc(&q, 64) == cudaSuccess && cudaFree(q) == cudaSuccess);
	CHECK(cudaMalloc(&q, 64) == cudaErrorMemoryAllocation);
	CHECK(cudaMalloc(&q, 64) == cudaSuccess && cudaFree(q) == cudaSuccess);
	emu_fail(EMU_COPY, 1);
	CHECK(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice) == cudaErrorIllegalAddress);
	CHECK(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice) == cudaSuccess);
	cudaGetLastError();
	emu_fail(EMU_LAUNCH, 1);
	add(p, 1, NULL);
	CHECK(cudaGetLastError() == cudaErrorLaunchOutOfResources);
	CHECK(first_of(p) == 0);
	cudaFree(p);
}

static const struct slp_test tests[] = {
        {"mistakes", test_mistakes},
        {"asynchronous", test_asynchronous},
        {"graphs", test_chain},
        {"what cannot be captured", test_illegal},
        {"limited memory", test_limited},
        {"unwritten", test_unwritten},
        {"counters", test_counters},
        {"failures", test_failures},
        {0},
};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "2", 1);
	setenv("SL_EMU_MEMORY", "8", 1);
	setenv("SL_EMU_ASYNC", "1", 1);
	setenv("SL_EMU_KERNEL_US", "100000", 1); /* late even where the host is held up for a while */
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "emulated GPU", .tests = tests}, {0}});
}
