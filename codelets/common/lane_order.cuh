/* Images between the orders of lane_order.h, on GPUs. */
#ifndef SLP_LANE_ORDER_CUH
#define SLP_LANE_ORDER_CUH

#include "op.h"
#include "element.cuh"
#include "lane_order.h"
#include "tiles.cuh"

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

/* Transposes `count` matrices of rows × columns, and stores their elements as To. */
template <class From, class To> static enum sl_status slp_turn(const struct slp_kernel *k, const From *from, To *to,
                                                               int64_t count, int64_t rows, int64_t columns)
{
	struct slp_tiling t = {rows, columns, columns, rows, {1, {count}, {rows * columns}, 0}, {rows * columns},
	                       count};
	if (count * rows * columns == 0) return SL_OK;
	if constexpr (std::is_same<From, To>::value && sizeof(To) == 2) /* only moved */
		slp_by_tiles(k, (const uint16_t *)from, (uint16_t *)to, t);
	else slp_by_tiles(k, from, to, t);
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
