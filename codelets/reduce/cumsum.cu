/* cumsum on a GPU: a block scans lines that are neighbours, piece by piece; short lines, and lines beside enough others, are a
 * thread's each.  The order of all sums is fixed. */
#include <type_traits>

#include "op.h"
#include "common/element.cuh"
#include "common/gpu.cuh"
#include "cumsum.h"
#include "whole.h"

struct narrow_sum {
	double sum;
	__device__ double plus(double x)
	{
		return sum += x;
	}
	__device__ void add(narrow_sum after)
	{
		sum += after.sum;
	}
};

struct whole_sum {
	slp_whole sum;
	__device__ int64_t plus(int64_t x)
	{
		sum = slp_whole_plus(sum, slp_whole_of(x));
		return slp_whole_saturated(sum);
	}
	__device__ void add(whole_sum after)
	{
		sum = slp_whole_plus(sum, after.sum);
	}
};

struct modular_sum {
	uint64_t sum;
	__device__ int64_t plus(int64_t x)
	{
		return (int64_t)(sum += (uint64_t)x);
	}
	__device__ void add(modular_sum after)
	{
		sum += after.sum;
	}
};

/* As slp_set does it: integers are whole sums. */
template <class T, class Sum> __global__ void cumsum(slp_split s, bool reverse, const T *x, T *y)
{
	SLP_GRID_STRIDE(line, s.outer * s.inner)
	{
		struct slp_cumsum_line l = slp_cumsum_line(s, reverse, line);
		Sum sum = {};
		for (int64_t i = 0; i < s.n; i++) {
			int64_t at = l.first + i * l.step;
			y[at] = slp_stored<T>::of(sum.plus(x[at]));
		}
	}
}

/* Elements of a thread in a piece of a line. */
enum { RUN = 8 };

/* The sum of the threads above the calling one in its column of `width`; *all: of all threads of the column. */
template <class Sum> __device__ inline Sum sum_above(Sum *cell, Sum mine, int width, Sum *all)
{
	int me = threadIdx.x, down = me / width, deep = SLP_BLOCK / width;
	cell[me] = mine;
	__syncthreads();
	for (int d = 1; d < deep; d *= 2) {
		Sum sum = {};
		if (down >= d) sum = cell[me - d * width];
		sum.add(cell[me]);
		__syncthreads();
		cell[me] = sum;
		__syncthreads();
	}
	Sum above = {};
	if (down > 0) above = cell[me - width];
	*all = cell[(deep - 1) * width + me % width];
	__syncthreads();
	return above;
}

/* A block scans `width` neighbouring lines: the threads of a column have RUN elements each of a piece of its line. */
template <class T, class Sum> __global__ void scan(slp_split s, bool reverse, int width, const T *x, T *y)
{
	__shared__ Sum cell[SLP_BLOCK];
	int64_t tiles = (s.inner + width - 1) / width, piece = SLP_BLOCK / width * (int64_t)RUN;
	for (int64_t t = blockIdx.x; t < s.outer * tiles; t += gridDim.x) {
		int64_t column = t % tiles * width + threadIdx.x % width, n = column < s.inner ? s.n : 0;
		struct slp_cumsum_line l = slp_cumsum_line(s, reverse, t / tiles * s.inner + (n ? column : 0));
		Sum before = {}, all;
		for (int64_t begin = 0; begin < s.n; begin += piece) {
			int64_t first = begin + threadIdx.x / width * (int64_t)RUN,
			        end = first + RUN < n ? first + RUN : n;
			Sum mine = {}, sum = before;
			for (int64_t i = first; i < end; i++) mine.plus(x[l.first + i * l.step]);
			sum.add(sum_above(cell, mine, width, &all));
			for (int64_t i = first; i < end; i++)
				y[l.first + i * l.step] = slp_stored<T>::of(sum.plus(x[l.first + i * l.step]));
			before.add(all);
		}
	}
}

/* Whether a thread sums a line: a short one, or one of many whose neighbours are read together. */
static bool are_for_threads(const slp_split &s)
{
	return s.n <= 2 * RUN || (s.inner >= 32 && s.outer * s.inner >= 1 << 16);
}

template <class T, class Sum> static void launch(const struct slp_kernel *k, const slp_split &s, bool reverse)
{
	const T *x = (const T *)k->in[0].ptr;
	T *y = (T *)k->out[0].ptr;
	int width = 1;
	if (are_for_threads(s)) {
		SLP_LAUNCH((cumsum<T, Sum>), slp_grid(s.outer * s.inner), SLP_BLOCK, 0, k->stream, s, reverse, x, y);
		return;
	}
	while (width < 32 && width < s.inner) width *= 2;
	SLP_LAUNCH((scan<T, Sum>), slp_blocks(s.outer * ((s.inner + width - 1) / width), 65536), SLP_BLOCK, 0,
	           k->stream, s, reverse, width, x, y);
}

extern "C" enum sl_status slp_cuda_cumsum(const struct slp_kernel *k)
{
	slp_split s = slp_cumsum_split(k);
	const slp_cumsum_attrs *a = (const slp_cumsum_attrs *)k->attrs;
	bool reverse = a->reverse;
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	if (a->wraps && k->in[0].type.dtype == SL_INT64) {
		launch<int64_t, modular_sum>(k, s, reverse);
		return slp_launched(k);
	}
	slp_with_numbers<SLP_NUMBERS | SLP_HALVES>(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		typedef typename std::conditional<std::is_same<T, int64_t>::value, whole_sum, narrow_sum>::type Sum;
		launch<T, Sum>(k, s, reverse);
	});
	return slp_launched(k);
}
