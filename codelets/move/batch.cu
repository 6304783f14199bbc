/* batch_images and batch_labels on a GPU.  A kernel cannot report a wrong sample: it gives NaN, or the label -1. */
#include "op.h"
#include "common/gpu.cuh"
#include "batch.h"

template <class T> __global__ void batch(T *out, const uint8_t *x, const int32_t *order, int64_t n, int64_t rows,
                                         int64_t width, T scale, T outside)
{
	SLP_GRID_STRIDE(i, n)
	{
		int64_t p = i / width;
		int32_t row = order[p];
		out[i] = row < 0 || row >= rows ? outside : (T)x[row * width + (i - p * width)] * scale;
	}
}

template <class T> static enum sl_status run(const struct slp_kernel *k, T scale, T outside)
{
	const struct slp_batch_attrs *a = (const struct slp_batch_attrs *)k->attrs;
	int64_t n = slp_size(&k->out[0]);
	if (n == 0) return SL_OK;
	SLP_LAUNCH(batch<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, (T *)k->out[0].ptr, (const uint8_t *)k->in[0].ptr,
	           (const int32_t *)k->in[1].ptr + a->begin, n, k->in[0].type.shape.dim[0], n / a->count, scale,
	           outside);
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_batch_images(const struct slp_kernel *k)
{
	return run<float>(k, (float)((const struct slp_batch_attrs *)k->attrs)->scale, NAN);
}

extern "C" enum sl_status slp_cuda_batch_labels(const struct slp_kernel *k)
{
	return run<int32_t>(k, 1, -1);
}
