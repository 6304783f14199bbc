/* softmax, log_softmax and their gradients on a GPU: a group of threads a row, or, along other axes than the last, a
 * thread a column, so that neighbouring threads read neighbours. */
#include "op.h"
#include "common/lanes.cuh"
#include "common/wide.cuh"
#include "softmax.h"

/* The rules of softmax.c. */
template <slp_softmax_kind K, class T> struct rule {
	static constexpr bool forward = K == SLP_SOFTMAX || K == SLP_LOG_SOFTMAX;
	static __device__ T exponential(T a, T b, T max)
	{
		return K == SLP_SOFTMAX_GRAD ? T(0) : exp(forward ? a - max : b);
	}
	static __device__ double term(T a, T b, T max)
	{
		return forward ? exponential(a, b, max) : K == SLP_SOFTMAX_GRAD ? (double)a * b : a;
	}
	static __device__ T factor(double sum)
	{
		return (T)(K == SLP_SOFTMAX ? 1 / sum : K == SLP_LOG_SOFTMAX ? log(sum) : sum);
	}
	static __device__ T result(T a, T b, T max, T f)
	{
		if (K == SLP_SOFTMAX) return exponential(a, b, max) * f;
		if (K == SLP_LOG_SOFTMAX) return a - max - f;
		if (K == SLP_SOFTMAX_GRAD) return b * (a - f);
		return a - exponential(a, b, max) * f;
	}
};

/* One row: the elements at first + i * step, i = lane, lane + LANES, … */
template <slp_softmax_kind K, class S, int LANES>
__device__ inline void row(slp_split s, int64_t first, int64_t step, int lane, const S *a, const S *b, S *out)
{
	typedef typename slp_number<S>::type T;
	typedef rule<K, T> R;
	T max = -INFINITY;
	double sum = 0;
	for (int64_t i = lane; R::forward && i < s.n; i += LANES) max = slp_max_of()(max, (T)a[first + i * step]);
	if (R::forward) max = slp_group_reduce<LANES>(max, slp_max_of(), T(-INFINITY));
	for (int64_t i = lane; i < s.n; i += LANES) sum += R::term(a[first + i * step], b[first + i * step], max);
	T f = R::factor(slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0));
	for (int64_t i = lane; i < s.n; i += LANES) {
		int64_t e = first + i * step;
		out[e] = R::result(a[e], b[e], max, f);
	}
}

template <slp_softmax_kind K, class S, int LANES> __global__ void rows(slp_split s, const S *a, const S *b, S *out)
{
	for (int64_t r = slp_group<LANES>(); r < s.outer; r += slp_groups<LANES>())
		row<K, S, LANES>(s, r * s.n, 1, slp_lane<LANES>(), a, b, out);
}

/* The same for rows that fit in a group's registers, 16 bytes of a thread at a time: each element is read once. */
template <slp_softmax_kind K, class S, int LANES> __global__ void held_rows(slp_split s, const S *a, const S *b, S *out)
{
	typedef typename slp_number<S>::type T;
	typedef rule<K, T> R;
	constexpr int W = slp_wide_count<S>, UNITS = SLP_SOFTMAX_HELD / W;
	int lane = slp_lane<LANES>() * W;
	for (int64_t r = slp_group<LANES>(); r < s.outer; r += slp_groups<LANES>()) {
		T va[SLP_SOFTMAX_HELD], vb[SLP_SOFTMAX_HELD], max = -INFINITY;
		double sum = 0;
#pragma unroll
		for (int u = 0; u < UNITS; u++) {
			int64_t i = lane + u * LANES * W, left = s.n - i;
			slp_wide_load(a + r * s.n + i, left < 0 ? 0 : left, va + u * W, T(-INFINITY));
			if (!R::forward) slp_wide_load(b + r * s.n + i, left < 0 ? 0 : left, vb + u * W, T(0));
		}
#pragma unroll
		for (int l = 0; l < SLP_SOFTMAX_HELD; l++) {
			if (R::forward) vb[l] = va[l], max = slp_max_of()(max, va[l]);
		}
		if (R::forward) max = slp_group_reduce<LANES>(max, slp_max_of(), T(-INFINITY));
#pragma unroll
		for (int l = 0; l < SLP_SOFTMAX_HELD; l++)
			if (lane + l / W * LANES * W < s.n) sum += R::term(va[l], vb[l], max);
		T f = R::factor(slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0));
#pragma unroll
		for (int u = 0; u < UNITS; u++) {
			int64_t i = lane + u * LANES * W;
			if (i >= s.n) break;
#pragma unroll
			for (int l = u * W; l < u * W + W; l++) va[l] = R::result(va[l], vb[l], max, f);
			slp_wide_store(out + r * s.n + i, W, va + u * W);
		}
	}
}

template <slp_softmax_kind K, class S> __global__ void columns(slp_split s, const S *a, const S *b, S *out)
{
	SLP_GRID_STRIDE(c, s.outer * s.inner)
	{
		row<K, S, 1>(s, c / s.inner * s.n * s.inner + c % s.inner, s.inner, 0, a, b, out);
	}
}

/* For rows that fit in a group's registers; false: they do not. */
template <slp_softmax_kind K, class T>
static bool launch_held(const slp_kernel *k, slp_split s, const T *a, const T *b, T *out)
{
	if (s.n % slp_wide_count<T> || s.n > SLP_SOFTMAX_HELD * SLP_BLOCK || s.n < SLP_WARP) return false;
	if (s.n <= SLP_SOFTMAX_HELD * SLP_WARP)
		SLP_LAUNCH((held_rows<K, T, SLP_WARP>), slp_group_grid(s.outer, SLP_WARP), SLP_BLOCK, 0, k->stream, s,
		           a, b, out);
	else
		SLP_LAUNCH((held_rows<K, T, SLP_BLOCK>), slp_group_grid(s.outer, SLP_BLOCK), SLP_BLOCK, 0, k->stream, s,
		           a, b, out);
	return true;
}

template <slp_softmax_kind K, class T> static void launch(const slp_kernel *k, slp_split s)
{
	const T *a = (const T *)k->in[0].ptr, *b = (const T *)k->in[k->nin - 1].ptr;
	T *out = (T *)k->out[0].ptr;
	if (s.inner > 1) {
		SLP_LAUNCH((columns<K, T>), slp_grid(s.outer * s.inner), SLP_BLOCK, 0, k->stream, s, a, b, out);
		return;
	}
	if (launch_held<K, T>(k, s, a, b, out)) return;
	slp_with_lanes(s.n, [&](auto lanes) {
		constexpr int LANES = decltype(lanes)::value;
		SLP_LAUNCH((rows<K, T, LANES>), slp_group_grid(s.outer, LANES), SLP_BLOCK, 0, k->stream, s, a, b, out);
	});
}

template <slp_softmax_kind K> static sl_status run(const slp_kernel *k)
{
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	slp_split s = slp_axis_split(k);
	slp_with_float(k->in[0].type.dtype, [&](auto zero) { launch<K, decltype(zero)>(k, s); });
	return slp_launched(k);
}

extern "C" sl_status slp_cuda_softmax(const slp_kernel *k)
{
	return run<SLP_SOFTMAX>(k);
}

extern "C" sl_status slp_cuda_log_softmax(const slp_kernel *k)
{
	return run<SLP_LOG_SOFTMAX>(k);
}

extern "C" sl_status slp_cuda_softmax_grad(const slp_kernel *k)
{
	return run<SLP_SOFTMAX_GRAD>(k);
}

extern "C" sl_status slp_cuda_log_softmax_grad(const slp_kernel *k)
{
	return run<SLP_LOG_SOFTMAX_GRAD>(k);
}
