/* shift_flip on GPUs: a thread an element; the threads of a row draw the same random words. */
#include "op.h"
#include "common/element.cuh"
#include "shift_flip.h"

template <class T> static __global__ void shift_flip_kernel(const T *x, T *y, int64_t n, int64_t width, int64_t height,
                                                            int64_t image, struct slp_shift_flip a)
{
	SLP_GRID_STRIDE(e, n)
	{
		int64_t row = e / width, j = e - row * width, plane = row / height;
		struct slp_shift s = slp_shift_of(a, e / image);
		int64_t i = slp_shifted_row(s, a.back, row - plane * height);
		j = slp_shifted_column(s, a.back, j, width);
		bool inside = i >= 0 && i < height && j >= 0 && j < width;
		y[e] = inside ? x[(plane * height + i) * width + j] : (T)0;
	}
}

extern "C" enum sl_status slp_cuda_shift_flip(const struct slp_kernel *k)
{
	const int64_t *dim = k->in[0].type.shape.dim;
	int64_t n = slp_size(&k->in[0]);
	if (n == 0) return SL_OK;
	slp_with_size(sl_dtype_size(k->in[0].type.dtype), [&](auto zero) {
		typedef decltype(zero) T;
		SLP_LAUNCH(shift_flip_kernel<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, (const T *)k->in[0].ptr,
		           (T *)k->out[0].ptr, n, dim[3], dim[2], dim[1] * dim[2] * dim[3],
		           *(const struct slp_shift_flip *)k->attrs);
	});
	return slp_launched(k);
}
