/* Copies from a strided tensor on a GPU: by tiles through shared memory where two axes are swapped, so that reads and
 * writes both go along cache lines; else one thread an element. */
#include "common/element.cuh"
#include "gpu.cuh"
#include "strided.h"

template <class T, class I> __global__ void copy_elements(T *out, const T *in, int64_t n, struct slp_strided p)
{
	SLP_GRID_STRIDE(i, n)
	{
		I rest = (I)i;
		int64_t from = p.base;
		for (int a = p.ndim - 1; a >= 0; a--) {
			I dim = (I)p.dim[a], next = rest / dim;
			from += (int64_t)(rest - next * dim) * p.stride[a];
			rest = next;
		}
		out[i] = in[from];
	}
}

enum { SIDE = 32, ROWS = 8 }; /* a tile is SIDE × SIDE, a block SIDE × ROWS threads */

/* Where outer element i begins, in the source and in the result. */
static __device__ void outer_offsets(const struct slp_tiling &t, int64_t i, int64_t *in, int64_t *out)
{
	*in = t.outer.base;
	*out = 0;
	for (int a = t.outer.ndim - 1; a >= 0; a--) {
		*in += i % t.outer.dim[a] * t.outer.stride[a];
		*out += i % t.outer.dim[a] * t.out_stride[a];
		i /= t.outer.dim[a];
	}
}

template <class T> __global__ void copy_tiles(T *out, const T *in, int64_t tiles, struct slp_tiling t)
{
	__shared__ T part[SIDE][SIDE + 1]; /* one more, or a column would lie in one bank */
	int64_t across = (t.na + SIDE - 1) / SIDE, down = (t.nb + SIDE - 1) / SIDE;
	for (int64_t i = blockIdx.x; i < tiles; i += gridDim.x) {
		int64_t a0 = i % across * SIDE, b0 = i / across % down * SIDE, from, to;
		outer_offsets(t, i / across / down, &from, &to);
		for (int r = threadIdx.y; r < SIDE; r += ROWS)
			if (a0 + r < t.na && b0 + threadIdx.x < t.nb)
				part[r][threadIdx.x] = in[from + (a0 + r) * t.in_a + b0 + threadIdx.x];
		__syncthreads();
		for (int r = threadIdx.y; r < SIDE; r += ROWS)
			if (b0 + r < t.nb && a0 + threadIdx.x < t.na)
				out[to + (b0 + r) * t.out_b + a0 + threadIdx.x] = part[threadIdx.x][r];
		__syncthreads();
	}
}

template <class T> static void run(const struct slp_kernel *k, const struct slp_strided *p)
{
	T *out = (T *)k->out[0].ptr;
	const T *in = (const T *)k->in[0].ptr;
	int64_t n = slp_size(&k->out[0]);
	int axis = slp_strided_tile_axis(p);
	if (axis >= 0 && p->dim[axis] >= ROWS && p->dim[p->ndim - 1] >= ROWS) {
		struct slp_tiling t = slp_tiling_of(p, axis);
		int64_t tiles = t.nouter * ((t.na + SIDE - 1) / SIDE) * ((t.nb + SIDE - 1) / SIDE);
		SLP_LAUNCH(copy_tiles<T>, slp_blocks(tiles, 65536), dim3(SIDE, ROWS), 0, k->stream, out, in, tiles, t);
	} else if (n <= INT32_MAX) { /* 32-bit division is several times as fast */
		SLP_LAUNCH((copy_elements<T, uint32_t>), slp_grid(n), SLP_BLOCK, 0, k->stream, out, in, n, *p);
	} else {
		SLP_LAUNCH((copy_elements<T, int64_t>), slp_grid(n), SLP_BLOCK, 0, k->stream, out, in, n, *p);
	}
}

extern "C" enum sl_status slp_strided_cuda(const struct slp_kernel *k, const struct slp_strided *p)
{
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	slp_with_size(sl_dtype_size(k->out[0].type.dtype), [&](auto zero) { run<decltype(zero)>(k, p); });
	return slp_launched(k);
}
