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

/* A number as an element: exact between the two types of 64 bits, of which doubles do not hold all numbers. */
template <class To, class From> static __device__ To converted(From x)
{
	if constexpr (std::is_same<From, uint64_t>::value && std::is_same<To, int64_t>::value)
		return x > INT64_MAX ? INT64_MAX : (int64_t)x;
	else if constexpr (std::is_same<From, int64_t>::value && std::is_same<To, uint64_t>::value)
		return x > 0 ? (uint64_t)x : 0;
	else return slp_stored<To>::of(slp_load(x));
}

/* Types that few programs use: one kernel for each type of the result, which asks for the other. */
template <class To> static __global__ void convert_any(const void *in, enum sl_dtype from, To *out, int64_t n)
{
	SLP_GRID_STRIDE(i, n)
	{
		switch (from) {
#define X(symbol, name, S, ...)                                                                                        \
	case symbol: out[i] = converted<To>(((const S *)in)[i]); break;
			SL_DTYPE_LIST(X)
#undef X
		case SL_DTYPE_DEFAULT:
		case SL_DTYPE_COUNT: break;
		}
	}
}

static enum sl_status convert_seldom(const struct slp_kernel *k, const struct slp_view *from, const struct slp_view *to)
{
	int64_t n = slp_size(to);
	slp_with<SLP_ANY>(to->type.dtype, [&](auto out) {
		typedef decltype(out) To;
		SLP_LAUNCH(convert_any<To>, slp_grid(n), SLP_BLOCK, 0, k->stream, (const void *)from->ptr,
		           from->type.dtype, (To *)to->ptr, n);
	});
	return slp_launched(k);
}

/* Of one type: no number may change, and doubles do not hold all of 64 bits. */
static enum sl_status copy(const struct slp_kernel *k, const struct slp_view *from, const struct slp_view *to)
{
	size_t bytes = (size_t)slp_size(to) * sl_dtype_size(to->type.dtype);
	if (bytes && from->ptr != to->ptr)
		cudaMemcpyAsync(to->ptr, from->ptr, bytes, cudaMemcpyDeviceToDevice, (cudaStream_t)k->stream);
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_convert(const struct slp_kernel *k, const struct slp_view *from,
                                           const struct slp_view *to)
{
	constexpr unsigned SELDOM = SLP_SMALL | SLP_DTYPE(SL_UINT64), OFTEN = SLP_ANY & ~SELDOM;
	int64_t n = slp_size(to);
	if (from->type.dtype == to->type.dtype) return copy(k, from, to);
	if ((SLP_DTYPE(from->type.dtype) | SLP_DTYPE(to->type.dtype)) & SELDOM) return convert_seldom(k, from, to);
	slp_with<OFTEN>(from->type.dtype, [&](auto in) {
		slp_with<OFTEN>(to->type.dtype, [&](auto out) {
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
