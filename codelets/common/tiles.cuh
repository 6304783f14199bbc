/* Transposition by tiles through shared memory on GPUs, so that reads and writes both go along cache lines: of strided
 * tensors (strided.cu), and of images between orders of their channels (image_layout.cuh). */
#ifndef SLP_TILES_CUH
#define SLP_TILES_CUH

#include "op.h"
#include "divide.cuh"
#include "strided.h"

/* A tile has about so many elements. A side has this length, or, for a narrow matrix, the whole length of the axis. */
enum { SLP_TILE_SIZE = 1024, SLP_TILE = 32 };

/* Tiles of ta × tb elements of the matrices, in shared memory with rows of `pitch`. */
struct slp_tiles {
	int64_t count;
	uint32_t ta, tb, pitch;
	slp_quick by_ta, by_tb;
	int64_t across, down;
};

/* The side of a tile along an axis of n elements beside one of `other`. */
static inline int64_t slp_tile_side(int64_t n, int64_t other)
{
	const int64_t side = SLP_TILE;
	int64_t most = other < side ? SLP_TILE_SIZE / other / side * side : side;
	return n < most ? n : most;
}

static inline struct slp_tiles slp_tiles_of(const struct slp_tiling &t)
{
	int64_t ta = slp_tile_side(t.na, t.nb), tb = slp_tile_side(t.nb, t.na);
	int64_t across = (t.na + ta - 1) / ta, down = (t.nb + tb - 1) / tb;
	return {t.nouter * across * down,
	        (uint32_t)ta,
	        (uint32_t)tb,
	        (uint32_t)tb | 1,
	        slp_divisor<uint32_t>::of(ta),
	        slp_divisor<uint32_t>::of(tb),
	        across,
	        down};
}

/* The beginning of outer element i in the source and in the result. */
static __device__ inline void slp_tile_offsets(const struct slp_tiling &t, int64_t i, int64_t *in, int64_t *out)
{
	*in = t.outer.base;
	*out = 0;
	for (int a = t.outer.ndim - 1; a >= 0; a--) {
		int64_t next = i / t.outer.dim[a], at = i - next * t.outer.dim[a];
		*in += at * t.outer.stride[a];
		*out += at * t.out_stride[a];
		i = next;
	}
}

/* Elements are stored as To. */
template <class From, class To>
__global__ static void slp_copy_tiles(To *out, const From *in, struct slp_tiles z, struct slp_tiling t)
{
	__shared__ From part[SLP_TILE_SIZE + SLP_TILE_SIZE / 2]; /* odd pitches, or a column would lie in one bank */
	for (int64_t i = blockIdx.x; i < z.count; i += gridDim.x) {
		int64_t strip = i / z.across, a0 = (i - strip * z.across) * z.ta, outer = strip / z.down,
		        b0 = (strip - outer * z.down) * z.tb, from, to;
		slp_tile_offsets(t, outer, &from, &to);
		for (uint32_t at = threadIdx.x; at < z.ta * z.tb; at += blockDim.x) {
			uint32_t b, a = slp_divided(at, z.by_tb, &b);
			if (a0 + a < t.na && b0 + b < t.nb)
				part[a * z.pitch + b] = in[from + (a0 + a) * t.in_a + b0 + b];
		}
		__syncthreads();
		for (uint32_t at = threadIdx.x; at < z.ta * z.tb; at += blockDim.x) {
			uint32_t a, b = slp_divided(at, z.by_ta, &a);
			if (a0 + a < t.na && b0 + b < t.nb)
				out[to + (b0 + b) * t.out_b + a0 + a] = (To)part[a * z.pitch + b];
		}
		__syncthreads();
	}
}

/* There is at least one element. */
template <class From, class To>
static void slp_by_tiles(const struct slp_kernel *k, const From *from, To *to, const struct slp_tiling &t)
{
	struct slp_tiles z = slp_tiles_of(t);
	SLP_LAUNCH((slp_copy_tiles<From, To>), slp_blocks(z.count, 65536), SLP_BLOCK, 0, k->stream, to, from, z, t);
}

#endif
