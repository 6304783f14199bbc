/* Copies, and conversions between data types, on GPUs. */
#include "op.h"
#include "common/element.cuh"
#include "fill/fill.h"

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
	return slp_cuda_convert(k, &k->in[0], &k->out[0]);
}
