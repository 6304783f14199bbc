/* slice_grad on a GPU: one thread an element of the result. */
#include "op.h"
#include "common/element.cuh"
#include "common/gpu.cuh"
#include "slice.h"

template <class T, class I>
__global__ void slice_grad(T *dx, const T *dy, int64_t size, I n, I inner, struct slp_slice s)
{
	SLP_GRID_STRIDE(i, size)
	{
		I row = (I)i / inner, outer = row / n;
		int64_t at = slp_slice_index(s, (int64_t)(row % n));
		dx[i] = at < 0 ? T(0) : dy[((int64_t)outer * s.count + at) * inner + (I)i % inner];
	}
}

template <class T> static void run(const struct slp_kernel *k, int64_t size, struct slp_split dx, struct slp_slice s)
{
	T *to = (T *)k->out[0].ptr;
	const T *from = (const T *)k->in[0].ptr;
	if (size <= INT32_MAX) /* 32-bit division is several times as fast */
		SLP_LAUNCH((slice_grad<T, uint32_t>), slp_grid(size), SLP_BLOCK, 0, k->stream, to, from, size,
		           (uint32_t)dx.n, (uint32_t)dx.inner, s);
	else
		SLP_LAUNCH((slice_grad<T, int64_t>), slp_grid(size), SLP_BLOCK, 0, k->stream, to, from, size, dx.n,
		           dx.inner, s);
}

extern "C" enum sl_status slp_slice_grad_cuda(const struct slp_kernel *k, struct slp_split dx, struct slp_slice s)
{
	int64_t size = slp_size(&k->out[0]);
	slp_with_size(sl_dtype_size(k->out[0].type.dtype), [&](auto zero) { run<decltype(zero)>(k, size, dx, s); });
	return slp_launched(k);
}
