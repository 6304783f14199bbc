/* Conversions between data types on GPUs. */
#include "common/element.cuh"
#include "common/gpu.cuh"

template <class From, class To> __global__ void convert_kernel(const From *in, To *out, int64_t n)
{
	SLP_GRID_STRIDE(i, n) out[i] = slp_stored<To>::of(slp_load(in[i]));
}

extern "C" enum sl_status slp_cuda_convert(const struct slp_kernel *k, const struct slp_view *from,
                                           const struct slp_view *to)
{
	int64_t n = slp_size(to);
	slp_with<SLP_ANY>(from->type.dtype, [&](auto in) {
		slp_with<SLP_ANY>(to->type.dtype, [&](auto out) {
			typedef decltype(in) From;
			typedef decltype(out) To;
			SLP_LAUNCH((convert_kernel<From, To>), slp_grid(n), SLP_BLOCK, 0, k->stream,
			           (const From *)from->ptr, (To *)to->ptr, n);
		});
	});
	return slp_launched(k);
}
