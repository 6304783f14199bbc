/* Copies, and conversions between data types, on GPUs. */
#include "common/element.cuh"
#include "fill/fill.h"

template <class From, class To> __global__ void cast_kernel(const From *in, To *out, int64_t n)
{
	SLP_GRID_STRIDE(i, n) out[i] = slp_stored<To>::of((typename slp_number<From>::type)in[i]);
}

extern "C" enum sl_status slp_cuda_copy(const struct slp_kernel *k)
{
	size_t bytes = (size_t)slp_size(&k->out[0]) * sl_dtype_size(k->out[0].type.dtype);
	const void *from = k->in[k->nin - 1].ptr;
	if (bytes && from != k->out[0].ptr)
		cudaMemcpyAsync(k->out[0].ptr, from, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)k->stream);
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_copy_over(const struct slp_kernel *k)
{
	return slp_cuda_copy(k);
}

extern "C" enum sl_status slp_cuda_cast(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]);
	slp_with_element(k->in[0].type.dtype, [&](auto from) {
		slp_with_element(k->out[0].type.dtype, [&](auto to) {
			typedef decltype(from) From;
			typedef decltype(to) To;
			SLP_LAUNCH((cast_kernel<From, To>), slp_grid(n), SLP_BLOCK, 0, k->stream,
			           (const From *)k->in[0].ptr, (To *)k->out[0].ptr, n);
		});
	});
	return slp_launched(k);
}
