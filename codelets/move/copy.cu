/* Copies, assignments, conversions between data types, on GPUs. */
#include "op.h"
#include "common/element.cuh"
#include "fill/fill.h"

extern "C" enum sl_status slp_cuda_copy(const struct slp_kernel *k)
{
	const struct slp_view *from = &k->in[k->nin - 1], *to = k->nout ? &k->out[0] : &k->in[0];
	size_t bytes = (size_t)slp_size(from) * sl_dtype_size(from->type.dtype);
	if (bytes && from->ptr != to->ptr)
		cudaMemcpyAsync(to->ptr, from->ptr, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)k->stream);
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_copy_over(const struct slp_kernel *k)
{
	return slp_cuda_copy(k);
}

extern "C" enum sl_status slp_cuda_assign(const struct slp_kernel *k)
{
	return slp_cuda_copy(k);
}

extern "C" enum sl_status slp_cuda_cast(const struct slp_kernel *k)
{
	return slp_cuda_convert(k, &k->in[0], &k->out[0]);
}
