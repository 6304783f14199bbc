/* Copies from a strided tensor on a GPU: by tiles where two axes are swapped, else one thread an element. */
#include "common/element.cuh"
#include "tiles.cuh"

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

template <class T> static void run(const struct slp_kernel *k, const struct slp_strided *p)
{
	T *out = (T *)k->out[0].ptr;
	const T *in = (const T *)k->in[0].ptr;
	int64_t n = slp_size(&k->out[0]);
	int axis = slp_strided_tile_axis(p);
	if (axis >= 0 && p->dim[axis] >= SLP_TILE_ROWS && p->dim[p->ndim - 1] >= SLP_TILE_ROWS) {
		slp_by_tiles(k, in, out, slp_tiling_of(p, axis));
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
