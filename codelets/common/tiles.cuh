/* Transposition by tiles through shared memory on GPUs, so that reads and writes both go along cache lines: of strided
 * tensors (strided.cu), and of images between orders of their channels (lane_order.cuh). */
#ifndef SLP_TILES_CUH
#define SLP_TILES_CUH

#include "gpu.cuh"
#include "strided.h"

enum { SLP_TILE = 32, SLP_TILE_ROWS = 8 }; /* a tile is a square of the first, its block has so many rows of threads */

/* Where outer element i begins, in the source and in the result. */
static __device__ inline void slp_tile_offsets(const struct slp_tiling &t, int64_t i, int64_t *in, int64_t *out)
{
	*in = t.outer.base;
	*out = 0;
	for (int a = t.outer.ndim - 1; a >= 0; a--) {
		*in += i % t.outer.dim[a] * t.outer.stride[a];
		*out += i % t.outer.dim[a] * t.out_stride[a];
		i /= t.outer.dim[a];
	}
}

/* Elements are stored as To. */
template <class From, class To>
__global__ static void slp_copy_tiles(To *out, const From *in, int64_t tiles, struct slp_tiling t)
{
	__shared__ From part[SLP_TILE][SLP_TILE + 1]; /* one more, or a column would lie in one bank */
	int64_t across = (t.na + SLP_TILE - 1) / SLP_TILE, down = (t.nb + SLP_TILE - 1) / SLP_TILE;
	for (int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
		int64_t a0 = i % across * SLP_TILE, b0 = i / across % down * SLP_TILE, from, to;
		slp_tile_offsets(t, i / across / down, &from, &to);
		for (int r = threadIdx.y; r < SLP_TILE; r += SLP_TILE_ROWS)
			if (a0 + r < t.na && b0 + threadIdx.x < t.nb)
				part[r][threadIdx.x] = in[from + (a0 + r) * t.in_a + b0 + threadIdx.x];
		__syncthreads();
		for (int r = threadIdx.y; r < SLP_TILE; r += SLP_TILE_ROWS)
			if (b0 + r < t.nb && a0 + threadIdx.x < t.na)
				out[to + (b0 + r) * t.out_b + a0 + threadIdx.x] = (To)part[threadIdx.x][r];
		__syncthreads();
	}
}

/* There is at least one element. */
template <class From, class To>
static void slp_by_tiles(const struct slp_kernel *k, const From *from, To *to, const struct slp_tiling &t)
{
	int64_t tiles = t.nouter * ((t.na + SLP_TILE - 1) / SLP_TILE) * ((t.nb + SLP_TILE - 1) / SLP_TILE);
	SLP_LAUNCH((slp_copy_tiles<From, To>), slp_blocks(tiles, 65536), dim3(SLP_TILE, SLP_TILE_ROWS), 0, k->stream,
	           to, from, tiles, t);
}

#endif
