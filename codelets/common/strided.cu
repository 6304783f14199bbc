/* Copies from a strided tensor on a GPU: by tiles where two axes are swapped, else one thread an element, or 16 bytes
 * where these stay side by side. */
#include "op.h"
#include "common/element.cuh"
#include "tiles.cuh"

struct alignas(16) sixteen {
	uint64_t at[2];
};

/* The divisors of the axes. */
template <class I> struct axes {
	typename slp_divisor<I>::type by[SL_MAX_NDIM];
	axes(const struct slp_strided *p)
	{
		for (int a = 0; a < p->ndim; a++) by[a] = slp_divisor<I>::of(p->dim[a]);
	}
};

template <class T, class I> __global__ void
copy_elements(T *out, const T *in, int64_t n, SLP_IN_PLACE struct slp_strided p, SLP_IN_PLACE struct axes<I> axes)
{
	SLP_GRID_STRIDE(i, n)
	{
		I rest = (I)i, at;
		int64_t from = p.base;
		for (int a = p.ndim - 1; a >= 0; a--) {
			rest = slp_divided(rest, axes.by[a], &at);
			from += (int64_t)at * p.stride[a];
		}
		out[i] = in[from];
	}
}

template <class T> static void copy(const struct slp_kernel *k, const struct slp_strided *p, int64_t n)
{
	T *out = (T *)k->out[0].ptr;
	const T *in = (const T *)k->in[0].ptr;
	if (n <= INT32_MAX) /* 32-bit division is several times as fast */
		SLP_LAUNCH((copy_elements<T, uint32_t>), slp_grid(n), SLP_BLOCK, 0, k->stream, out, in, n, *p,
		           axes<uint32_t>(p));
	else
		SLP_LAUNCH((copy_elements<T, int64_t>), slp_grid(n), SLP_BLOCK, 0, k->stream, out, in, n, *p,
		           axes<int64_t>(p));
}

/* Groups `count` elements that are neighbours in both tensors; false if p cannot be walked so. */
static bool in_groups(struct slp_strided *p, int64_t count)
{
	int last = p->ndim - 1;
	if (last < 0 || p->stride[last] != 1 || p->dim[last] % count || p->base % count) return false;
	for (int a = 0; a < last; a++)
		if (p->stride[a] % count) return false;
	for (int a = 0; a < last; a++) p->stride[a] /= count;
	p->dim[last] /= count;
	p->base /= count;
	return true;
}

template <class T> static void run(const struct slp_kernel *k, const struct slp_strided *p)
{
	int64_t n = slp_size(&k->out[0]), count = 16 / (int64_t)sizeof(T);
	bool aligned = (uintptr_t)k->out[0].ptr % 16 == 0 && (uintptr_t)k->in[0].ptr % 16 == 0;
	struct slp_strided groups = *p;
	int axis = slp_strided_tile_axis(p);
	if (axis >= 0 && p->dim[axis] * p->dim[p->ndim - 1] >= 2 * SLP_TILE)
		slp_by_tiles(k, (const T *)k->in[0].ptr, (T *)k->out[0].ptr, slp_tiling_of(p, axis));
	else if (aligned && in_groups(&groups, count)) copy<struct sixteen>(k, &groups, n / count);
	else copy<T>(k, p, n);
}

extern "C" enum sl_status slp_strided_cuda(const struct slp_kernel *k, const struct slp_strided *p)
{
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	slp_with_size(sl_dtype_size(k->out[0].type.dtype), [&](auto zero) { run<decltype(zero)>(k, p); });
	return slp_launched(k);
}
