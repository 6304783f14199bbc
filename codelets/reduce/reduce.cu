/* Reductions over axes on a GPU: the parts of reduce_plan.h, by groups of threads whose size suits their lengths. */
#include "op.h"
#include "common/lanes.cuh"
#include "common/wide.cuh"
#include "fused_reduce.h"
#include "reduce_whole.h"

template <slp_reduction K> struct merge_of {
	__device__ double operator()(double a, double b) const
	{
		return slp_reduce_merge(K, a, b);
	}
};

/* Stores as slp_set does. */
template <class T> __device__ inline T stored(double v)
{
	if (std::is_floating_point<typename slp_number<T>::type>::value && !std::is_integral<T>::value) return (T)v;
	const double low = std::is_signed<T>::value ? -2147483648.0 : 0,
	             high = std::is_signed<T>::value ? 2147483647.0 : 255;
	return v != v ? T(0) : v <= low ? (T)low : v >= high ? (T)high : (T)rint(v);
}

template <slp_reduction K, class T>
__device__ inline void put(const slp_reduce_plan &p, T *y, double *parts, int64_t part, int64_t output, double a)
{
	if (p.parts > 1) parts[part * p.nout + output] = a;
	else y[output] = stored<T>(slp_reduce_finish(K, a, (double)p.count));
}

/* A group reduces a part; `width` of its threads go along a row, W elements at a time, the others read further rows. */
template <slp_reduction K, class T, int LANES, int W>
__global__ void rows(slp_reduce_plan p, int64_t tasks, int width, const T *x, T *y, double *parts)
{
	int across = slp_lane<LANES>() % width, down = slp_lane<LANES>() / width;
	for (int64_t t = slp_group<LANES>(); t < tasks; t += slp_groups<LANES>()) {
		slp_reduce_part s = slp_reduce_task(&p, t);
		const T *base = x + slp_axes_offset(&p.kept, s.output);
		double a = slp_reduce_start(K);
		for (int64_t r = s.row + down; r < s.end_row; r += LANES / width) {
			const T *row = base + slp_axes_offset(&p.gone, r);
#pragma unroll 4
			for (int64_t i = s.column + across * W; i < s.end_column; i += width * W) {
				double v[W];
				slp_take<W>(row + i, v);
#pragma unroll
				for (int l = 0; l < W; l++) a = slp_reduce_step(K, a, v[l]);
			}
		}
		a = slp_group_reduce<LANES>(a, merge_of<K>(), slp_reduce_start(K));
		if (slp_lane<LANES>() == 0) put<K>(p, y, parts, s.part, s.output, a);
	}
}

/* A block reduces `width` columns of the rows of a part. */
template <slp_reduction K, class T>
__global__ void columns(slp_reduce_plan p, int64_t tasks, int width, const T *x, T *y, double *parts)
{
	__shared__ double cell[SLP_BLOCK];
	int me = threadIdx.x, down = me / width;
	int64_t tiles = (p.inner + width - 1) / width;
	for (int64_t t = blockIdx.x; t < tasks; t += gridDim.x) {
		int64_t i = t % tiles * width + me % width, part = t / tiles % p.nrows, kept = t / tiles / p.nrows;
		int64_t end = (part + 1) * p.rows < p.gone.size ? (part + 1) * p.rows : p.gone.size;
		const T *base = x + slp_axes_offset(&p.kept, kept) + i;
		double a = slp_reduce_start(K);
		for (int64_t r = part * p.rows + down; i < p.inner && r < end; r += SLP_BLOCK / width)
			a = slp_reduce_step(K, a, (double)base[slp_axes_offset(&p.gone, r)]);
		cell[me] = a;
		__syncthreads();
		for (int half = SLP_BLOCK / width / 2; half; half /= 2) {
			if (down < half) cell[me] = slp_reduce_merge(K, cell[me], cell[me + half * width]);
			__syncthreads();
		}
		if (down == 0 && i < p.inner) put<K>(p, y, parts, part, kept * p.inner + i, cell[me]);
		__syncthreads();
	}
}

/* A group combines the parts of an output. */
template <slp_reduction K, class T, int LANES> __global__ void finish(slp_reduce_plan p, T *y, const double *parts)
{
	for (int64_t o = slp_group<LANES>(); o < p.nout; o += slp_groups<LANES>()) {
		double a = slp_reduce_start(K);
		for (int64_t part = slp_lane<LANES>(); part < p.parts; part += LANES)
			a = slp_reduce_merge(K, a, parts[part * p.nout + o]);
		a = slp_group_reduce<LANES>(a, merge_of<K>(), slp_reduce_start(K));
		if (slp_lane<LANES>() == 0) y[o] = stored<T>(slp_reduce_finish(K, a, (double)p.count));
	}
}

/* The power of two from n upwards, at most `most`. */
static int width_for(int64_t n, int most)
{
	int w = 1;
	while (w < most && w < n) w *= 2;
	return w;
}

/* Large tensors are of floats. */
template <class T> constexpr int most_at_once = std::is_integral<T>::value ? 1 : slp_wide_count<T>;

/* Whether all rows and their parts begin at multiples of 16 bytes from the first element. */
template <class T> static bool are_wide(const slp_reduce_plan &p)
{
	constexpr int W = most_at_once<T>;
	bool wide = W > 1 && p.inner % W == 0 && p.length % W == 0;
	for (int i = 0; i < p.kept.n; i++) wide = wide && p.kept.stride[i] % W == 0;
	for (int i = 0; i < p.gone.n; i++) wide = wide && p.gone.stride[i] % W == 0;
	return wide;
}

template <slp_reduction K, class T, int W> static void launch_rows(const slp_kernel *k, const slp_reduce_plan &p)
{
	int64_t tasks = p.kept.size * p.parts;
	int64_t work = (p.rows < p.gone.size ? p.rows : p.gone.size) * p.length;
	slp_with_lanes(work, [&](auto lanes) {
		constexpr int LANES = decltype(lanes)::value, M = LANES == 1 ? 1 : W;
		SLP_LAUNCH((rows<K, T, LANES, M>), slp_group_grid(tasks, LANES), SLP_BLOCK, 0, k->stream, p, tasks,
		           width_for(p.length / M, LANES), (const T *)k->in[0].ptr, (T *)k->out[0].ptr,
		           (double *)k->scratch);
	});
}

template <slp_reduction K, class T> static void launch_columns(const slp_kernel *k, const slp_reduce_plan &p)
{
	int width = width_for(p.inner, p.gone.size < SLP_REDUCE_MIN_ROWS ? (int)SLP_BLOCK : (int)SLP_WARP);
	int64_t tasks = p.kept.size * p.nrows * slp_reduce_ceil(p.inner, width);
	SLP_LAUNCH((columns<K, T>), slp_group_grid(tasks, SLP_BLOCK), SLP_BLOCK, 0, k->stream, p, tasks, width,
	           (const T *)k->in[0].ptr, (T *)k->out[0].ptr, (double *)k->scratch);
}

template <slp_reduction K, class T> static void launch_finish(const slp_kernel *k, const slp_reduce_plan &p)
{
	slp_with_lanes(p.nout < 4096 ? p.parts : 1, [&](auto lanes) {
		constexpr int LANES = decltype(lanes)::value;
		SLP_LAUNCH((finish<K, T, LANES>), slp_group_grid(p.nout, LANES), SLP_BLOCK, 0, k->stream, p,
		           (T *)k->out[0].ptr, (const double *)k->scratch);
	});
}

template <slp_reduction K, class T> static void launch(const slp_kernel *k)
{
	slp_reduce_plan p = slp_reduce_plan_of(k->in[0].type.shape, (const slp_reduce_attrs *)k->attrs);
	if (p.nout == 0) return;
	if (p.columns) launch_columns<K, T>(k, p);
	else if (are_wide<T>(p)) launch_rows<K, T, most_at_once<T>>(k, p);
	else launch_rows<K, T, 1>(k, p);
	if (p.parts > 1) launch_finish<K, T>(k, p);
}

/* ---- int64 ------------------------------------------------------------------------------------------------------ */

/* Element i of output o's elements. */
__device__ inline int64_t whole_offset(const slp_reduce_plan &p, int64_t o, int64_t i)
{
	if (p.columns) return slp_axes_offset(&p.kept, o / p.inner) + o % p.inner + slp_axes_offset(&p.gone, i);
	return slp_axes_offset(&p.kept, o) + slp_axes_offset(&p.gone, i / p.inner) + i % p.inner;
}

/* A block an output: a double cannot hold its parts. */
template <slp_reduction K> __global__ void whole(slp_reduce_plan p, const int64_t *x, int64_t *y)
{
	__shared__ slp_whole cell[SLP_BLOCK];
	int me = threadIdx.x;
	for (int64_t o = blockIdx.x; o < p.nout; o += gridDim.x) {
		slp_whole a = slp_whole_start(K);
		for (int64_t i = me; i < p.count; i += SLP_BLOCK)
			a = slp_whole_merge(K, a, slp_whole_element(K, x[whole_offset(p, o, i)]));
		cell[me] = a;
		__syncthreads();
		for (int half = SLP_BLOCK / 2; half; half /= 2) {
			if (me < half) cell[me] = slp_whole_merge(K, cell[me], cell[me + half]);
			__syncthreads();
		}
		if (me == 0) y[o] = slp_whole_finish(K, cell[0]);
		__syncthreads();
	}
}

template <slp_reduction K> static void launch_whole(const slp_kernel *k)
{
	slp_reduce_plan p = slp_reduce_plan_of(k->in[0].type.shape, (const slp_reduce_attrs *)k->attrs);
	if (p.nout == 0) return;
	SLP_LAUNCH(whole<K>, slp_group_grid(p.nout, SLP_BLOCK), SLP_BLOCK, 0, k->stream, p,
	           (const int64_t *)k->in[0].ptr, (int64_t *)k->out[0].ptr);
}

/* ---- all types -------------------------------------------------------------------------------------------------- */

template <slp_reduction K, unsigned DTYPES> static sl_status reduce(const slp_kernel *k)
{
	if (DTYPES & SLP_I64 && k->in[0].type.dtype == SL_INT64) launch_whole<K>(k);
	else
		slp_with_numbers<(DTYPES & ~SLP_I64) | SLP_HALVES>(k->in[0].type.dtype,
		                                                   [&](auto zero) { launch<K, decltype(zero)>(k); });
	return slp_launched(k);
}

#define X(name, start, step, merge, end_, dtypes, saves, doc)                                                          \
	extern "C" sl_status slp_cuda_##name(const slp_kernel *k)                                                      \
	{                                                                                                              \
		return reduce<SLP_REDUCE_##name, SLP_##dtypes>(k);                                                     \
	}
#include "reduce.def"
#undef X

extern "C" void slp_cuda_reduce_join(const slp_kernel *k, int reduction, const slp_reduce_plan *p)
{
	slp_with_float(k->out[0].type.dtype, [&](auto zero) {
		switch (reduction) {
#define X(name, start, step, merge, end_, dtypes, saves, doc)                                                          \
	case SLP_REDUCE_##name:                                                                                        \
		launch_finish<SLP_REDUCE_##name, decltype(zero)>(k, *p);                                               \
		break;
#include "reduce.def"
#undef X
		default: break;
		}
	});
}
