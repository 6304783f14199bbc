/* Conversions between data types on GPUs. */
#include "op.h"
#include "common/element.cuh"
#include "common/gpu.cuh"

/* The elements of a thread: one access if the tensors are aligned for it. */
template <class From, class To> constexpr int count = sizeof(From) > 4 || sizeof(To) > 4 ? 2 : 4;

template <class S, int W> struct alignas(W * sizeof(S)) several {
	S at[W];
};

template <class From, class To> __global__ void convert_kernel(const From *in, To *out, int64_t n, bool at_once)
{
	constexpr int W = count<From, To>;
	SLP_GRID_STRIDE(group, (n + W - 1) / W)
	{
		int64_t i = group * W;
		if (at_once && i + W <= n) {
			several<From, W> from = *(const several<From, W> *)(in + i);
			several<To, W> to;
#pragma unroll
			for (int l = 0; l < W; l++) to.at[l] = slp_stored<To>::of(slp_load(from.at[l]));
			*(several<To, W> *)(out + i) = to;
		} else {
			for (int l = 0; l < W && i + l < n; l++) out[i + l] = slp_stored<To>::of(slp_load(in[i + l]));
		}
	}
}

template <class S, int W> static bool is_aligned(const void *p)
{
	return (uintptr_t)p % sizeof(several<S, W>) == 0;
}

extern "C" enum sl_status slp_cuda_convert(const struct slp_kernel *k, const struct slp_view *from,
                                           const struct slp_view *to)
{
	int64_t n = slp_size(to);
	slp_with<SLP_ANY>(from->type.dtype, [&](auto in) {
		slp_with<SLP_ANY>(to->type.dtype, [&](auto out) {
			typedef decltype(in) From;
			typedef decltype(out) To;
			constexpr int W = count<From, To>;
			SLP_LAUNCH((convert_kernel<From, To>), slp_grid((n + W - 1) / W), SLP_BLOCK, 0, k->stream,
			           (const From *)from->ptr, (To *)to->ptr, n,
			           is_aligned<From, W>(from->ptr) && is_aligned<To, W>(to->ptr));
		});
	});
	return slp_launched(k);
}
