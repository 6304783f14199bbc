/* Values that processes exchange, on GPUs: sums of two arrays, and whether all elements are finite. */
/* Values that processes exchange, on GPUs: sums of two, and whether all are finite. */
#include "op.h"
#include "common/element.cuh"
#include "common/gpu.cuh"

#include "gpu_values.h"

template <class S> __global__ void add_kernel(S *to, const S *a, const S *b, int64_t n)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(i, n) to[i] = slp_stored<S>::of((T)slp_load(a[i]) + (T)slp_load(b[i]));
}

/* Several threads may write the flag; all write the same. */
template <class S> __global__ void look_kernel(int *bad, const S *data, int64_t n)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(i, n)
	{
		T x = (T)slp_load(data[i]);
		if (x - x != 0) *bad = 1;
	}
}

extern "C" bool slp_gpu_add(void *to, const void *a, const void *b, size_t count, enum sl_dtype dtype, void *stream)
{
	int64_t n = (int64_t)count;
	slp_with<SLP_ANY>(dtype, [&](auto element) {
		typedef decltype(element) S;
		SLP_LAUNCH(add_kernel<S>, slp_grid(n), SLP_BLOCK, 0, stream, (S *)to, (const S *)a, (const S *)b, n);
	});
	return cudaGetLastError() == cudaSuccess;
}

extern "C" bool slp_gpu_look(int *bad, const void *data, size_t count, enum sl_dtype dtype, void *stream)
{
	int64_t n = (int64_t)count;
	if (!slp_is_float(dtype)) return true;
	slp_with<SLP_ANY>(dtype, [&](auto element) {
		typedef decltype(element) S;
		SLP_LAUNCH(look_kernel<S>, slp_grid(n), SLP_BLOCK, 0, stream, bad, (const S *)data, n);
	});
	return cudaGetLastError() == cudaSuccess;
}
