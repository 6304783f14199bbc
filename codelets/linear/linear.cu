/* The fully connected layer on GPUs: cuBLAS multiplies, one pass over y adds the bias and applies the activation. */
#include "common/gemm.cuh"
#include "common/activation.h"
#include "linear.h"

template <class T> __global__ static void finish(T *y, const T *bias, int64_t n, int64_t units, int activation)
{
	SLP_GRID_STRIDE(i, n) y[i] = slp_activated<T>(bias ? y[i] + bias[i % units] : y[i], activation);
}

template <class T> static enum sl_status run(const struct slp_kernel *k)
{
	const slp_linear_attrs *a = (const slp_linear_attrs *)k->attrs;
	slp_linear_size z = slp_linear_size_of(k->in[0].type.shape, k->in[1].type.shape, a->tw);
	int64_t n = slp_size(&k->out[0]);
	if (n == 0) return SL_OK;
	T *y = (T *)k->out[0].ptr;
	const T *bias = k->nin == 3 ? (const T *)k->in[2].ptr : NULL;
	struct slp_cuda_gemm g = {false, a->tw, z.rows, z.units, z.inputs, z.inputs, a->tw ? z.inputs : z.units,
	                          0,     0,     1,      0};
	enum sl_status s = slp_cuda_multiply<T>(k, g, (const T *)k->in[0].ptr, (const T *)k->in[1].ptr, y);
	if (s != SL_OK || !(bias || a->activation)) return s;
	SLP_LAUNCH(finish<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, y, bias, n, z.units, a->activation);
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_linear(const struct slp_kernel *k)
{
	return k->in[0].type.dtype == SL_FLOAT64 ? run<double>(k) : run<float>(k);
}
