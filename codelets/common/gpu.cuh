/* Common parts of CUDA kernels: launches, shared memory, indices, block reductions, library handles. Kernels are
 * launched through SLP_LAUNCH and take dynamic shared memory through SLP_DYN_SHARED alone, so that the same source also
 * compiles as host C++ for the emulated devices of the tests. */
#ifndef SLP_GPU_CUH
#define SLP_GPU_CUH

#include "op.h"

/* The most threads of a block: tests/kernels.sh checks that a GPU has the registers. */
enum { SLP_MOST_THREADS = 256 };

#ifdef SLP_EMULATE
#define SLP_IN_PLACE const
#include "emu.h" /* tests/emu: defines both macros and the CUDA built-ins for host C++ */
#ifndef SLP_EMU_BLOCK
#define SLP_EMU_BLOCK 64 /* where a barrier takes long */
#endif
enum { SLP_BLOCK = SLP_EMU_BLOCK };
#if SLP_EMU_BLOCK < 256
#define SLP_EMU_SMALL /* limits between ways to compute are smaller than a GPU's, too */
#endif
#else
#include <cuda_runtime.h>
#define SLP_LAUNCH(kernel, grid, block, shmem, stream, ...)                                                            \
	(kernel)<<<(grid), (block), (shmem), (cudaStream_t)(stream)>>>(__VA_ARGS__)
#define SLP_DYN_SHARED(T, name) extern __shared__ T name[]
/* An argument whose arrays are indexed in place, not copied first. */
#if CUDART_VERSION >= 11070 && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 700)
#define SLP_IN_PLACE const __grid_constant__
#else
#define SLP_IN_PLACE const
#endif
enum { SLP_BLOCK = 256 };
#endif

/* Blocks of a launch for so many shares of the work, at most `most`: blocks loop over further shares. */
static inline unsigned slp_blocks(int64_t shares, int64_t most)
{
#ifdef SLP_EMULATE
	most = emu_blocks(most); /* few, so that small cases loop, too */
#endif
	return (unsigned)(shares < 1 ? 1 : shares > most ? most : shares);
}

/* Blocks for n elements with a grid-stride loop. */
static inline unsigned slp_grid(int64_t n)
{
	return slp_blocks((n + SLP_BLOCK - 1) / SLP_BLOCK, 4096);
}

#define SLP_GRID_STRIDE(i, n)                                                                                          \
	for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (n); i += (int64_t)gridDim.x * blockDim.x)

/* The status of a launch, to be returned by the function that launched. */
static inline enum sl_status slp_launched(const struct slp_kernel *k)
{
	cudaError_t e = cudaGetLastError();
	return e == cudaSuccess ? SL_OK : slp_kernel_fail(k, SL_EKERNEL, "CUDA: %s", cudaGetErrorString(e));
}

struct slp_sum_of {
	template <class T> __device__ T operator()(T a, T b) const
	{
		return a + b;
	}
};
struct slp_max_of {
	template <class T> __device__ T operator()(T a, T b) const
	{
		return a > b || a != a ? a : b;
	}
};
struct slp_min_of {
	template <class T> __device__ T operator()(T a, T b) const
	{
		return a < b || a != a ? a : b;
	}
};

/* Combines v over the threads of a block, in a fixed order; every thread gets the result.  The block has a multiple
 * of 32 threads, all of which call. */
template <class T, class F> __device__ T slp_block_reduce(T v, F combine, T neutral)
{
	__shared__ T part[32];
	int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
	for (int d = 16; d; d >>= 1) v = combine(v, __shfl_xor_sync(0xffffffffu, v, d));
	__syncthreads();
	if (lane == 0) part[warp] = v;
	__syncthreads();
	v = lane < (int)(blockDim.x / 32) ? part[lane] : neutral;
	for (int d = 16; d; d >>= 1) v = combine(v, __shfl_xor_sync(0xffffffffu, v, d));
	return v;
}

#endif
