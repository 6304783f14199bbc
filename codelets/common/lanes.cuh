/* Common parts of kernels over rows: groups of LANES threads (a thread, a warp or a block), each with a row of its own,
 * and calls that turn a run-time number into a template argument. */
#ifndef SLP_LANES_CUH
#define SLP_LANES_CUH

#include <type_traits>

#include "op.h"
#include "element.cuh"
#include "gpu.cuh"

#ifdef SLP_EMU_SMALL
enum { SLP_LONG_ROW = 40 }; /* small cases have rows for blocks, too */
#else
enum { SLP_LONG_ROW = 1024 };
#endif
enum { SLP_WARP = 32 };

/* The thread's number in its group; the group; the number of groups, of all blocks or of the first ones. */
template <int LANES> __device__ inline int slp_lane()
{
	return (int)(threadIdx.x % LANES);
}

template <int LANES> __device__ inline int64_t slp_group()
{
	return blockIdx.x * (int64_t)(SLP_BLOCK / LANES) + threadIdx.x / LANES;
}

template <int LANES> __device__ inline int64_t slp_groups(unsigned blocks)
{
	return blocks * (int64_t)(SLP_BLOCK / LANES);
}

template <int LANES> __device__ inline int64_t slp_groups()
{
	return slp_groups<LANES>(gridDim.x);
}

/* Combines v over a group, in a fixed order; every thread gets the result.  All threads of the group call. */
template <int LANES, class T, class F> __device__ inline T slp_group_reduce(T v, F combine, T neutral)
{
	if constexpr (LANES == SLP_BLOCK) return slp_block_reduce(v, combine, neutral);
	if constexpr (LANES == SLP_WARP)
		for (int d = 16; d; d >>= 1) v = combine(v, __shfl_xor_sync(0xffffffffu, v, d));
	return v;
}

/* Blocks for so many rows; groups loop over further rows. */
static inline unsigned slp_group_grid(int64_t rows, int lanes)
{
	int64_t per_block = SLP_BLOCK / lanes;
	return slp_blocks((rows + per_block - 1) / per_block, 65536);
}

/* Calls f(std::integral_constant<int, LANES>) with a group that suits rows of this length. */
template <class F> static inline void slp_with_lanes(int64_t length, F f)
{
	if (length >= SLP_LONG_ROW) f(std::integral_constant<int, SLP_BLOCK>());
	else if (length >= 16) f(std::integral_constant<int, SLP_WARP>());
	else f(std::integral_constant<int, 1>());
}

/* Calls f(S()) with the type of the elements, one of those that are floats; slp_number<S>::type is what to compute
 * in. */
template <class F> static inline void slp_with_float(enum sl_dtype dtype, F f)
{
	slp_with_numbers<SLP_FLOATS | SLP_HALVES>(dtype, f);
}

#endif
