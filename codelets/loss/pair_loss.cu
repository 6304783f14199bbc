/* Losses of pairs of elements on a GPU: a group of threads a sample; a thread an element in the backward pass. */
#include "op.h"
#include "common/lanes.cuh"
#include "pair_loss.h"

/* The terms of pair_loss.c and their slopes. */
template <slp_pair_loss K, class T> struct pair_loss {
	static __device__ T term(T x, T t, T delta)
	{
		T a = fabs(x - t);
		if (K == SLP_L1) return a;
		if (K == SLP_L2 || (K == SLP_HUBER && a < delta)) return T(0.5) * a * a;
		if (K == SLP_HUBER) return delta * (a - T(0.5) * delta);
		return (x > 0 ? (1 - t) * x : -t * x) + log1p(exp(-fabs(x)));
	}
	static __device__ T slope(T x, T t, T delta)
	{
		T d = x - t;
		if (K == SLP_L1) return d > 0 ? T(1) : d < 0 ? T(-1) : d;
		if (K == SLP_HUBER) return d > delta ? delta : d < -delta ? -delta : d;
		return K == SLP_L2 ? d : 1 / (1 + exp(-x)) - t;
	}
};

template <slp_pair_loss K, class S, int LANES>
__global__ void losses(int64_t rows, int64_t n, double limit, const S *x, const S *target, S *loss)
{
	typedef typename slp_number<S>::type T;
	T delta = (T)limit;
	for (int64_t r = slp_group<LANES>(); r < rows; r += slp_groups<LANES>()) {
		double sum = 0;
		for (int64_t i = r * n + slp_lane<LANES>(); i < (r + 1) * n; i += LANES)
			sum += pair_loss<K, T>::term(x[i], target[i], delta);
		sum = slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0);
		if (slp_lane<LANES>() == 0) loss[r] = (T)(sum / n);
	}
}

template <slp_pair_loss K, class S>
__global__ void slopes(int64_t all, int64_t n, double limit, const S *dloss, const S *x, const S *target, S *dx)
{
	typedef typename slp_number<S>::type T;
	T delta = (T)limit;
	SLP_GRID_STRIDE(i, all)
	{
		dx[i] = (T)dloss[i / n] / (T)n * pair_loss<K, T>::slope(x[i], target[i], delta);
	}
}

template <slp_pair_loss K> static sl_status run(const slp_kernel *k)
{
	int64_t rows = slp_size(&k->out[0]);
	if (rows == 0) return SL_OK;
	int64_t n = slp_size(&k->in[0]) / rows;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		slp_with_lanes(n, [&](auto lanes) {
			constexpr int LANES = decltype(lanes)::value;
			SLP_LAUNCH((losses<K, T, LANES>), slp_group_grid(rows, LANES), SLP_BLOCK, 0, k->stream, rows, n,
			           slp_pair_delta(k), (const T *)k->in[0].ptr, (const T *)k->in[1].ptr,
			           (T *)k->out[0].ptr);
		});
	});
	return slp_launched(k);
}

template <slp_pair_loss K> static sl_status run_grad(const slp_kernel *k)
{
	int64_t all = slp_size(&k->out[0]);
	if (all == 0) return SL_OK;
	slp_with_float(k->in[1].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		SLP_LAUNCH((slopes<K, T>), slp_grid(all), SLP_BLOCK, 0, k->stream, all, all / slp_size(&k->in[0]),
		           slp_pair_delta(k), (const T *)k->in[0].ptr, (const T *)k->in[1].ptr, (const T *)k->in[2].ptr,
		           (T *)k->out[0].ptr);
	});
	return slp_launched(k);
}

#define X(name, KIND)                                                                                                  \
	extern "C" sl_status slp_cuda_##name(const slp_kernel *k)                                                      \
	{                                                                                                              \
		return run<KIND>(k);                                                                                   \
	}                                                                                                              \
	extern "C" sl_status slp_cuda_##name##_grad(const slp_kernel *k)                                               \
	{                                                                                                              \
		return run_grad<KIND>(k);                                                                              \
	}
SLP_PAIR_LOSSES(X)
