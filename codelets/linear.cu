/* The fully connected layer on GPUs: every row of y becomes the bias, and cuBLAS adds the product. */
#include "gemm.cuh"

template <class T> __global__ static void fill_rows(T *y, const T *bias, int64_t n, int64_t units)
{
	SLP_GRID_STRIDE(i, n) y[i] = bias[i % units];
}

template <class T> static enum sl_status run(const struct slp_kernel *k)
{
	bool tw = ((const struct sl_linear_opts *)k->attrs)->tw, bias = k->nin == 3;
	sl_shape w = k->in[1].type.shape;
	int64_t units = w.dim[!tw], features = w.dim[tw], n = slp_size(&k->out[0]);
	if (n == 0) return SL_OK;
	T *y = (T *)k->out[0].ptr;
	if (bias) SLP_LAUNCH(fill_rows<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, y, (const T *)k->in[2].ptr, n, units);
	enum sl_status s = slp_launched(k);
	struct slp_cuda_gemm g = {false, tw, n / units, units, features, features, w.dim[1], 0, 0, 1, bias ? 1. : 0.};
	return s == SL_OK ? slp_cuda_multiply<T>(k, g, (const T *)k->in[0].ptr, (const T *)k->in[1].ptr, y) : s;
}

extern "C" enum sl_status slp_cuda_linear(const struct slp_kernel *k)
{
	return k->in[0].type.dtype == SL_FLOAT64 ? run<double>(k) : run<float>(k);
}
