/* The GPU for the communicating thread: a separate stream, working memory, and events that are polled, so that a
 * hanging GPU cannot block the thread forever. */
#include "config.h"
#include "alloc.h"
#include "runtime/compat.h"
#include "runtime/engine.h"
#include "starling/tensor.h"

#include "dist/gpu.h"

#include <time.h>

void slp_gpu_nap(double *seconds)
{
	const double shortest = 5e-6, longest = 100e-6;
	*seconds = *seconds == 0 ? shortest : *seconds < longest ? 1.3 * *seconds : longest;
	nanosleep(&(struct timespec){.tv_nsec = (long)(1e9 * *seconds)}, NULL);
}

#ifdef HAVE_CUDA
#include <stdlib.h>
#include <string.h>

#include "gpu_values.h"

static struct {
	unsigned node;
	bool open;
	cudaStream_t stream;
	cudaEvent_t event;
	volatile int *bad; /* pinned: kernels write it */
	void *rooms[SLP_ROOMS];
	size_t bytes[SLP_ROOMS];
} gpu;

unsigned slp_gpu_node(void)
{
	return gpu.node;
}

void *slp_gpu_stream_of_sums(void)
{
	return gpu.stream;
}

/* ---- start and end ----------------------------------------------------------------------------------------------- */

static bool note(char why[SLP_DIST_WHY], cudaError_t e)
{
	cudaGetLastError(); /* nobody else is to take it for his own */
	if (e != cudaSuccess) snprintf(why, SLP_DIST_WHY, "CUDA: %s", cudaGetErrorString(e));
	return e == cudaSuccess;
}

bool slp_gpu_open(char why[SLP_DIST_WHY])
{
	void *flag = NULL;
	if (!slp_engine.ngpus) return snprintf(why, SLP_DIST_WHY, "there is no GPU"), false;
	int worker = slp_engine.gpu_worker[0];
	gpu.node = starpu_worker_get_memory_node((unsigned)worker);
	cudaError_t e = cudaSetDevice(starpu_worker_get_devid(worker));
	if (e == cudaSuccess) e = cudaStreamCreateWithFlags(&gpu.stream, cudaStreamNonBlocking);
	if (e == cudaSuccess) e = cudaEventCreateWithFlags(&gpu.event, cudaEventDisableTiming);
	if (e == cudaSuccess) e = cudaHostAlloc(&flag, sizeof *gpu.bad, cudaHostAllocDefault);
	gpu.bad = flag;
	gpu.open = true;
	return note(why, e);
}

static void free_room(enum slp_gpu_room which)
{
	if (which == SLP_ROOM_MAIN) free(gpu.rooms[which]);
	else cudaFree(gpu.rooms[which]);
	gpu.rooms[which] = NULL;
	gpu.bytes[which] = 0;
}

void slp_gpu_close(void)
{
	if (!gpu.open) return;
	for (enum slp_gpu_room i = 0; i < SLP_ROOMS; i++) free_room(i);
	if (gpu.bad) cudaFreeHost((void *)(uintptr_t)gpu.bad);
	if (gpu.event) cudaEventDestroy(gpu.event);
	if (gpu.stream) cudaStreamDestroy(gpu.stream);
	cudaGetLastError();
	memset(&gpu, 0, sizeof gpu);
}

/* ---- memory and copies ------------------------------------------------------------------------------------------- */

void *slp_gpu_room(enum slp_gpu_room which, size_t bytes)
{
	if (bytes <= gpu.bytes[which]) return gpu.rooms[which];
	free_room(which);
	void *p = which == SLP_ROOM_MAIN ? slp_try_malloc(bytes) : NULL;
	if (which != SLP_ROOM_MAIN && cudaMalloc(&p, bytes) != cudaSuccess) p = NULL;
	cudaGetLastError();
	gpu.rooms[which] = p;
	gpu.bytes[which] = p ? bytes : 0;
	return p;
}

bool slp_gpu_copy(void *to, const void *from, size_t bytes)
{
	return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, gpu.stream) == cudaSuccess;
}

bool slp_gpu_sum(void *to, const void *a, const void *b, size_t count, enum sl_dtype dtype)
{
	return slp_gpu_add(to, a, b, count, dtype, gpu.stream);
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

bool slp_gpu_mark(void)
{
	return cudaEventRecord(gpu.event, gpu.stream) == cudaSuccess;
}

int slp_gpu_is_over(void)
{
	cudaError_t e = cudaEventQuery(gpu.event);
	if (e == cudaSuccess) return 1;
	cudaGetLastError();
	return e == cudaErrorNotReady ? 0 : -1;
}

const char *slp_gpu_finish(double timeout)
{
	double end = sl_time() + timeout, nap = 0;
	int over = slp_gpu_mark() ? 0 : -1;
	while (!over && !(over = slp_gpu_is_over()) && sl_time() < end) slp_gpu_nap(&nap);
	return over > 0 ? NULL : over ? "a call of CUDA failed" : "the GPU did not finish in time (SL_DIST_TIMEOUT)";
}

/* ---- looking ----------------------------------------------------------------------------------------------------- */

void slp_gpu_look_begin(void)
{
	*gpu.bad = 0;
}

bool slp_gpu_look_at(const void *data, size_t count, enum sl_dtype dtype)
{
	return count == 0 || slp_gpu_look((int *)(uintptr_t)gpu.bad, data, count, dtype, gpu.stream);
}

int slp_gpu_look_end(double timeout)
{
	return slp_gpu_finish(timeout) ? -1 : !*gpu.bad;
}

#else /* no value is on a GPU, unless it is a simulated one */

bool slp_gpu_open(char why[SLP_DIST_WHY])
{
	return snprintf(why, SLP_DIST_WHY, "this library was built without CUDA"), false;
}

unsigned slp_gpu_node(void)
{
	return slp_engine.ngpus ? starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[0]) : STARPU_MAIN_RAM;
}

void *slp_gpu_stream_of_sums(void)
{
	return NULL;
}

void slp_gpu_close(void)
{
}

void *slp_gpu_room(enum slp_gpu_room which, size_t bytes)
{
	(void)which, (void)bytes;
	return NULL;
}

bool slp_gpu_copy(void *to, const void *from, size_t bytes)
{
	(void)to, (void)from, (void)bytes;
	return false;
}

bool slp_gpu_sum(void *to, const void *a, const void *b, size_t count, enum sl_dtype dtype)
{
	(void)to, (void)a, (void)b, (void)count, (void)dtype;
	return false;
}

bool slp_gpu_mark(void)
{
	return false;
}

int slp_gpu_is_over(void)
{
	return -1;
}

const char *slp_gpu_finish(double timeout)
{
	(void)timeout;
	return "there is no GPU";
}

void slp_gpu_look_begin(void)
{
}

bool slp_gpu_look_at(const void *data, size_t count, enum sl_dtype dtype)
{
	(void)data, (void)count, (void)dtype;
	return false;
}

int slp_gpu_look_end(double timeout)
{
	(void)timeout;
	return -1;
}
#endif
