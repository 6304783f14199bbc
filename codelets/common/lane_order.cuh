/* Images between the orders of lane_order.h, on GPUs. */
#ifndef SLP_LANE_ORDER_CUH
#define SLP_LANE_ORDER_CUH

#include "element.cuh"
#include "lane_order.h"

/* Planes of a tensor as one side has them: their size and the order of the images. */
struct slp_order_side {
	int64_t h, w;
	bool lanes, blocks, last;
};

static __device__ inline int64_t slp_order_place(struct slp_order_side s, int64_t channels, int64_t n, int64_t c,
                                                 int64_t at)
{
	if (s.blocks) return slp_order_in_blocks(channels, s.h * s.w, n, c, at);
	return slp_order_index(s.lanes, channels * s.h * s.w, n, c * s.h * s.w + at);
}

enum { SLP_TILE = 32 };

/* Transposes `count` matrices of rows × columns, a tile at a time, and stores their elements as To. */
template <class From, class To>
__global__ static void slp_turn_kernel(const From *from, To *to, int64_t count, int64_t rows, int64_t columns)
{
	__shared__ From tile[SLP_TILE][SLP_TILE + 1];
	int lane = (int)(threadIdx.x % SLP_TILE), depth = (int)(threadIdx.x / SLP_TILE), step = SLP_BLOCK / SLP_TILE;
	int64_t across = (columns + SLP_TILE - 1) / SLP_TILE, tiles = across * ((rows + SLP_TILE - 1) / SLP_TILE);
	for (int64_t b = blockIdx.x; b < count * tiles; b += gridDim.x) {
		int64_t row = b % tiles / across * SLP_TILE, column = b % tiles % across * SLP_TILE;
		int64_t matrix = b / tiles * rows * columns;
		__syncthreads(); /* the tile before has been written */
		for (int i = depth; i < SLP_TILE; i += step)
			if (row + i < rows && column + lane < columns)
				tile[i][lane] = from[matrix + (row + i) * columns + column + lane];
		__syncthreads();
		for (int i = depth; i < SLP_TILE; i += step)
			if (column + i < columns && row + lane < rows)
				to[matrix + (column + i) * rows + row + lane] = (To)tile[lane][i];
	}
}

template <class From, class To> static enum sl_status slp_turn(const struct slp_kernel *k, const From *from, To *to,
                                                               int64_t count, int64_t rows, int64_t columns)
{
	int64_t tiles = ((rows + SLP_TILE - 1) / SLP_TILE) * ((columns + SLP_TILE - 1) / SLP_TILE) * count;
	if (tiles == 0) return SL_OK;
	if constexpr (std::is_same<From, To>::value && sizeof(To) == 2 && !std::is_same<To, uint16_t>::value)
		return slp_turn(k, (const uint16_t *)from, (uint16_t *)to, count, rows, columns); /* only moved */
	SLP_LAUNCH((slp_turn_kernel<From, To>), (unsigned)(tiles < 65536 ? tiles : 65536), SLP_BLOCK, 0, k->stream,
	           from, to, count, rows, columns);
	return slp_launched(k);
}

/* Copies n images of `channels` planes; where planes of `to` are larger than those of `from`, zeros follow, and where
 * they are smaller, the rest is left out.  Planes of images with channels last are as large as those of `to`. */
template <class T> __global__ static void slp_order_kernel(const T *from, T *to, int64_t n, int64_t channels,
                                                           struct slp_order_side f, struct slp_order_side t)
{
	int64_t flat = channels * t.h * t.w;
	SLP_GRID_STRIDE(i, n * flat)
	{
		int64_t at = i % flat, w = at % t.w, h = at / t.w % t.h, c = at / (t.w * t.h), image = i / flat;
		to[slp_order_place(t, channels, image, c, h * t.w + w)] =
		        h < f.h && w < f.w ? from[slp_order_place(f, channels, image, c, h * f.w + w)] : (T)0;
	}
}

template <class T> static enum sl_status slp_order_copy(const struct slp_kernel *k, const T *from, T *to, int64_t n,
                                                        int64_t channels, struct slp_order_side f,
                                                        struct slp_order_side t)
{
	int64_t plane = t.h * t.w, count = n * channels * plane;
	if (f.last != t.last)
		return t.last ? slp_turn(k, from, to, n, channels, plane) : slp_turn(k, from, to, n, plane, channels);
	if (count == 0) return SL_OK;
	SLP_LAUNCH(slp_order_kernel<T>, slp_grid(count), SLP_BLOCK, 0, k->stream, from, to, n, channels, f, t);
	return slp_launched(k);
}

#endif
