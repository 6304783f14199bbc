/* Emulated GPUs: the threads of a launch.  Orders show a barrier that is missing; what a GPU would refuse, or hang at,
 * ends the program. */
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sys/wait.h>
#include <unistd.h>

#include "common/gpu.cuh"
#include "common/last.cuh"

static int failures;

static void check(bool good, const char *what)
{
	printf("%s: %s\n", good ? "ok" : "FAIL", what);
	failures += !good;
}

/* Whether it ends the program, with this in its message; quiet otherwise. */
static bool ends(const char *message, const std::function<void()> &launch)
{
	int ends[2], status = 0;
	if (pipe(ends)) return false;
	pid_t child = fork();
	if (child == 0) {
		dup2(ends[1], 2);
		launch();
		_exit(0);
	}
	close(ends[1]);
	char text[4096];
	size_t n = 0;
	for (ssize_t got; (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0;) n += (size_t)got;
	text[n] = 0;
	close(ends[0]);
	waitpid(child, &status, 0);
	return WIFSIGNALED(status) && strstr(text, message);
}

/* ---- kernels ---------------------------------------------------------------------------------------------------- */

enum { THREADS = 64 };

/* Each thread gets what one further on has written, twice in the same memory; without the first barrier, or the one
 * before the second time. */
__global__ static void rotate(int *to, int distance, int first, bool with_first, bool with_second)
{
	__shared__ int part[THREADS];
	for (int time = 0; time < 2; time++) {
		part[threadIdx.x] = first + (int)threadIdx.x + THREADS * time;
		if (with_first) __syncthreads();
		to[THREADS * time + threadIdx.x] = part[(threadIdx.x + distance) % THREADS];
		if (with_second) __syncthreads();
	}
}

__global__ static void leave_early(int least)
{
	if ((int)threadIdx.x < least) return;
	__syncthreads();
}

__global__ static void part_ways(int least)
{
	if ((int)threadIdx.x < least) __syncthreads();
	else __syncthreads();
}

__global__ static void exchange(int least)
{
	if ((int)threadIdx.x >= least) __shfl_xor_sync(0xffffffffu, 1, 1);
}

/* The last block adds up what all of a column have stored; it is the last one wherever it comes in the order. */
__global__ static void add_columns(int *part, int *sum, unsigned *arrived)
{
	if (threadIdx.x == 0) part[blockIdx.x * gridDim.y + blockIdx.y] = (int)(blockIdx.x * 100 + blockIdx.y);
	if (!slp_arrives_last(arrived + blockIdx.x, gridDim.y) || threadIdx.x) return;
	int all = 0;
	for (unsigned i = 0; i < gridDim.y; i++) all += part[blockIdx.x * gridDim.y + i];
	sum[blockIdx.x] += all;
}

__global__ static void nothing(int)
{
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

/* Whether the results are right. */
static bool rotates(int distance, bool with_first, bool with_second)
{
	static int first; /* shared memory still has what the last launch wrote */
	int *to, got[2 * THREADS];
	bool good = cudaMalloc((void **)&to, sizeof got) == cudaSuccess;
	first += 1000;
	SLP_LAUNCH(rotate, 1, THREADS, 0, NULL, to, distance, first, with_first, with_second);
	good = good && cudaMemcpy(got, to, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess;
	for (int i = 0; i < 2 * THREADS; i++)
		good &= got[i] == first + (i + distance) % THREADS + i / THREADS * THREADS;
	cudaFree(to);
	return good;
}

static void test_order(void)
{
	const int last = THREADS - 1;
	check(rotates(1, true, true) && rotates(last, true, true), "kernels with their barriers");
	check(!(rotates(1, false, true) && rotates(last, false, true)), "no barrier between writing and reading");
	check(!(rotates(1, true, false) && rotates(last, true, false)), "no barrier between reading and writing again");
}

/* Several launches find the counters as they were. */
static void test_last(void)
{
	enum { COLUMNS = 5, PARTS = 7, TIMES = 3, INTS = COLUMNS * (PARTS + 2) };
	int *p, got[COLUMNS];
	bool good = cudaMalloc((void **)&p, INTS * sizeof *p) == cudaSuccess;
	good = good && cudaMemset(p, 0, INTS * sizeof *p) == cudaSuccess;
	int *sum = p + COLUMNS * PARTS;
	unsigned *arrived = (unsigned *)(sum + COLUMNS);
	for (int i = 0; i < TIMES; i++)
		SLP_LAUNCH(add_columns, dim3(COLUMNS, PARTS), THREADS, 0, NULL, p, sum, arrived);
	good = good && cudaMemcpy(got, sum, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess;
	for (int i = 0; i < COLUMNS; i++) good &= got[i] == TIMES * (i * 100 * PARTS + PARTS * (PARTS - 1) / 2);
	SLP_LAUNCH(add_columns, dim3(COLUMNS, 1), THREADS, 0, NULL, p, sum, arrived);
	good = good && cudaMemcpy(got, sum, sizeof got, cudaMemcpyDeviceToHost) == cudaSuccess;
	for (int i = 0; i < COLUMNS; i++)
		good &= got[i] == TIMES * (i * 100 * PARTS + PARTS * (PARTS - 1) / 2) + i * 100;
	check(good, "sums by the last block");
	cudaFree(p);
}

static void test_refusals(void)
{
	check(ends("not all threads", [] { SLP_LAUNCH(leave_early, 1, THREADS, 0, NULL, 32); }),
	      "threads that end early");
	check(ends("several places", [] { SLP_LAUNCH(part_ways, 1, THREADS, 0, NULL, 32); }), "two barriers at a time");
	check(ends("not all lanes", [] { SLP_LAUNCH(exchange, 1, THREADS, 0, NULL, 3); }), "lanes that are not there");
	check(!ends("", [] { SLP_LAUNCH(exchange, 1, THREADS, 0, NULL, 32); }), "a warp that is not there at all");
	check(ends("invalid", [] { SLP_LAUNCH(nothing, 0, THREADS, 0, NULL, 0); }), "no blocks");
	check(ends("invalid", [] { SLP_LAUNCH(nothing, 1, 0, 0, NULL, 0); }), "no threads");
	check(ends("invalid", [] { SLP_LAUNCH(nothing, 1, 2 * SLP_MOST_THREADS, 0, NULL, 0); }), "large blocks");
	check(ends("invalid", [] { SLP_LAUNCH(nothing, dim3(1, 65536), 1, 0, NULL, 0); }), "high grids");
	check(ends("invalid", [] { SLP_LAUNCH(nothing, 1, dim3(1, 1, 65), 0, NULL, 0); }), "deep blocks");
	check(ends("invalid", [] { SLP_LAUNCH(nothing, 1, 1, (48 << 10) + 1, NULL, 0); }), "much shared memory");
}

int main(void)
{
	setenv("SL_EMU_ASYNC", "0", 1);
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("SL_EMU_MEMORY", "8", 1);
	test_order();
	test_last();
	test_refusals();
	return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
