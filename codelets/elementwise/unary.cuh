/* Functions of one tensor and their gradients on GPUs: the kernels that a table like unary.def expands to. */
#ifndef SLP_UNARY_CUH
#define SLP_UNARY_CUH

#include "op.h"
#include "common/lanes.cuh"
#include "common/wide.cuh"
#include "common/scalar.h"
#include "whole.h"

template <class S, class F> __global__ void unary_kernel(const S *in, S *out, int64_t n, bool at_once, F f)
{
	typedef typename slp_exact<S>::type T;
	SLP_SOME_STRIDE(S, i, n)
	{
		T x[slp_some_count<S>];
		slp_some<S> v;
		slp_some_load(in + i, n - i, at_once, 1, x);
#pragma unroll
		for (int l = 0; l < slp_some_count<S>; l++) v.at[l] = slp_stored<S>::of(f.of(x[l]));
		slp_some_store(out + i, n - i, at_once, v);
	}
}

template <class S, class F> __global__ void slope_kernel(const S *d, const S *v, S *out, int64_t n, bool at_once, F f)
{
	typedef typename slp_number<S>::type T;
	SLP_SOME_STRIDE(S, i, n)
	{
		T vd[slp_some_count<S>], vv[slp_some_count<S>];
		slp_some<S> to;
		slp_some_load(d + i, n - i, at_once, 1, vd);
		slp_some_load(v + i, n - i, at_once, 1, vv);
#pragma unroll
		for (int l = 0; l < slp_some_count<S>; l++) to.at[l] = f.template of<T>(vd[l], vv[l]);
		slp_some_store(out + i, n - i, at_once, to);
	}
}

/* Whether a thread may process several elements together. */
template <class S> static bool at_once(const struct slp_kernel *k)
{
	bool all = slp_is_some<S>(k->out[0].ptr);
	for (int i = 0; i < k->nin; i++) all = all && slp_is_some<S>(k->in[i].ptr);
	return all;
}

template <class S, class F> static void launch_unary(const struct slp_kernel *k, F f)
{
	int64_t n = slp_size(&k->out[0]);
	SLP_LAUNCH((unary_kernel<S, F>), slp_some_grid<S>(n), SLP_BLOCK, 0, k->stream, (const S *)k->in[0].ptr,
	           (S *)k->out[0].ptr, n, at_once<S>(k), f);
}

template <unsigned TYPES, class F> static enum sl_status unary_of(const struct slp_kernel *k, F f)
{
	slp_with_numbers<TYPES | SLP_HALVES>(k->out[0].type.dtype,
	                                     [&](auto zero) { launch_unary<decltype(zero)>(k, f); });
	return slp_launched(k);
}

template <class F> static enum sl_status unary_floats(const struct slp_kernel *k, F f)
{
	slp_with_float(k->out[0].type.dtype, [&](auto zero) { launch_unary<decltype(zero)>(k, f); });
	return slp_launched(k);
}

template <class F> static enum sl_status slope_floats(const struct slp_kernel *k, F f)
{
	int64_t n = slp_size(&k->out[0]);
	slp_with_float(k->out[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		SLP_LAUNCH((slope_kernel<S, F>), slp_some_grid<S>(n), SLP_BLOCK, 0, k->stream, (const S *)k->in[0].ptr,
		           (const S *)k->in[1].ptr, (S *)k->out[0].ptr, n, at_once<S>(k), f);
	});
	return slp_launched(k);
}

#define FLOATS_LAUNCH unary_floats
#define FLOAT32_LAUNCH unary_floats
#define ALL_LAUNCH unary_of<SLP_NUMBERS>
#define TRUTHS_LAUNCH unary_of<SLP_TRUTHS>

#define FLOATS_WHOLE(name)
#define FLOAT32_WHOLE(name)
#define ALL_WHOLE(name)                                                                                                \
	__device__ int64_t of(int64_t x) const                                                                         \
	{                                                                                                              \
		return slp_whole_##name(x);                                                                            \
	}
#define TRUTHS_WHOLE ALL_WHOLE

#define FUNCTION(name, launch, whole, value, ...)                                                                      \
	struct name##_function {                                                                                       \
		template <class T> __device__ T of(__VA_ARGS__) const                                                  \
		{                                                                                                      \
			return value;                                                                                  \
		}                                                                                                      \
		whole                                                                                                  \
	};                                                                                                             \
	extern "C" enum sl_status slp_cuda_##name(const struct slp_kernel *k)                                          \
	{                                                                                                              \
		return launch(k, name##_function());                                                                   \
	}
#define LINEAR(name, dtypes, value, doc) FUNCTION(name, dtypes##_LAUNCH, dtypes##_WHOLE(name), value, T x)
#define FLAT LINEAR
#define TRUTH FLAT
#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	FUNCTION(name, dtypes##_LAUNCH, dtypes##_WHOLE(name), value, T x)                                              \
	FUNCTION(name##_grad, slope_floats, , slope, T d, T v)

#endif
