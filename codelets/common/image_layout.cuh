/* Copies images from one layout (image_layout.h) to another on GPUs. */
#ifndef SLP_IMAGE_LAYOUT_CUH
#define SLP_IMAGE_LAYOUT_CUH

#include "op.h"
#include "element.cuh"
#include "image_layout.h"
#include "tiles.cuh"

/* Images on one side of a copy: the size of their planes, and their layout (enum slp_image_layout). */
struct slp_layout_side {
	int64_t h, w;
	int layout;
};

static __device__ inline int64_t slp_layout_place(struct slp_layout_side s, int64_t channels, int64_t n, int64_t c,
                                                  int64_t at)
{
	return slp_layout_index(s.layout, channels, s.h * s.w, n, c, at);
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
 * they are smaller, the rest is left out.  Into NHWC and out of it, planes of both have one size. */
template <class T> __global__ static void slp_layout_kernel(const T *from, T *to, int64_t n, int64_t channels,
                                                            struct slp_layout_side f, struct slp_layout_side t)
{
	int64_t flat = channels * t.h * t.w;
	SLP_GRID_STRIDE(i, n * flat)
	{
		int64_t at = i % flat, w = at % t.w, h = at / t.w % t.h, c = at / (t.w * t.h), image = i / flat;
		to[slp_layout_place(t, channels, image, c, h * t.w + w)] =
		        h < f.h && w < f.w ? from[slp_layout_place(f, channels, image, c, h * f.w + w)] : (T)0;
	}
}

template <class T> static enum sl_status slp_layout_copy(const struct slp_kernel *k, const T *from, T *to, int64_t n,
                                                         int64_t channels, struct slp_layout_side f,
                                                         struct slp_layout_side t)
{
	int64_t plane = t.h * t.w, count = n * channels * plane;
	bool to_nhwc = t.layout == SLP_LAYOUT_NHWC;
	if ((f.layout == SLP_LAYOUT_NHWC) != to_nhwc)
		return to_nhwc ? slp_turn(k, from, to, n, channels, plane) : slp_turn(k, from, to, n, plane, channels);
	if (count == 0) return SL_OK;
	SLP_LAUNCH(slp_layout_kernel<T>, slp_grid(count), SLP_BLOCK, 0, k->stream, from, to, n, channels, f, t);
	return slp_launched(k);
}

#endif
