/* gather, gather_grad and one_hot on a GPU. A kernel cannot report a wrong index: it returns a row of NaN instead. */
#include "op.h"
#include "common/divide.cuh"
#include "common/element.cuh"

/* Elements after axis 0. */
static int64_t row_size(sl_shape shape)
{
	int64_t n = 1;
	for (int i = 1; i < shape.ndim; i++) n *= shape.dim[i];
	return n;
}

/* ---- gather ----------------------------------------------------------------------------------------------------- */

template <class T, class I>
__global__ void gather(T *out, const T *x, const int32_t *index, int64_t n, I rows, I width, T outside)
{
	SLP_GRID_STRIDE(i, n)
	{
		I p = (I)i / width;
		int32_t row = index[p];
		out[i] = row < 0 || (I)row >= rows ? outside : x[(int64_t)row * width + ((I)i - p * width)];
	}
}

template <class T> static void run_gather(const struct slp_kernel *k, T outside)
{
	T *out = (T *)k->out[0].ptr;
	const T *x = (const T *)k->in[0].ptr;
	const int32_t *index = (const int32_t *)k->in[1].ptr;
	int64_t n = slp_size(&k->out[0]), rows = k->in[0].type.shape.dim[0], width = row_size(k->in[0].type.shape);
	if (n <= INT32_MAX && rows <= INT32_MAX) /* 32-bit division is several times as fast */
		SLP_LAUNCH((gather<T, uint32_t>), slp_grid(n), SLP_BLOCK, 0, k->stream, out, x, index, n,
		           (uint32_t)rows, (uint32_t)width, outside);
	else
		SLP_LAUNCH((gather<T, int64_t>), slp_grid(n), SLP_BLOCK, 0, k->stream, out, x, index, n, rows, width,
		           outside);
}

extern "C" enum sl_status slp_cuda_gather(const struct slp_kernel *k)
{
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	slp_with<SLP_ANY>(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		run_gather<T>(k, slp_is_float(k->in[0].type.dtype) ? slp_stored<T>::of((double)NAN) : T());
	});
	return slp_launched(k);
}

/* ---- gather_grad ------------------------------------------------------------------------------------------------ */

/* Positions are sorted by index, and by position if indices are equal: chunks by counting, then by merging runs of
 * twice the length each time. Sorted positions are summed in pieces, which end where the index changes or after so many
 * positions. The first piece of an index becomes the row; the sums of its other pieces are added. */
#ifdef SLP_EMULATE
enum { CHUNK = 32, PIECE = 16 }; /* so that small cases have several, too */
#else
enum { CHUNK = 1024, PIECE = 64 };
#endif
enum { SORTERS = CHUNK / 4 }; /* threads of a block, each with a position; four blocks a chunk */

/* Positions and their indices. */
struct order {
	int32_t *key, *position;
	template <class F> void emu_pointers(F f)
	{
		f(key), f(position);
	}
};

__global__ void sort_chunks(const int32_t *index, int32_t count, order to)
{
	__shared__ int32_t chunk[CHUNK];
	int64_t p = blockIdx.x * (int64_t)SORTERS + threadIdx.x, first = p / CHUNK * CHUNK;
	int n = count - first < CHUNK ? (int)(count - first) : (int)CHUNK, me = (int)(p - first), before = 0;
	for (int i = threadIdx.x; i < n; i += SORTERS) chunk[i] = index[first + i];
	__syncthreads();
	if (p >= count) return;
	int32_t mine = chunk[me];
#pragma unroll 8
	for (int i = 0; i < n; i++) before += chunk[i] < mine || (chunk[i] == mine && i < me);
	to.key[first + before] = mine;
	to.position[first + before] = (int32_t)p;
}

/* The number of n sorted keys before `key`; with `equal`, equal keys count. */
static __device__ inline int64_t keys_before(const int32_t *keys, int64_t n, int32_t key, bool equal)
{
	int64_t low = 0;
	while (n > 0) {
		int64_t half = n / 2;
		if (keys[low + half] < key || (equal && keys[low + half] == key)) low += half + 1, n -= half + 1;
		else n = half;
	}
	return low;
}

/* Merges each two runs of `run` into one. */
__global__ void merge_runs(order from, int32_t count, int64_t run, order to)
{
	SLP_GRID_STRIDE(p, (int64_t)count)
	{
		int64_t pair = p / (2 * run) * (2 * run), middle = pair + run, end = middle + run;
		bool second = p >= middle;
		if (end > count) end = count;
		int64_t other = second ? pair : middle, n = second ? run : end - middle,
		        self = second ? p - middle : p - pair;
		int32_t key = from.key[p];
		int64_t at = pair + self + (n > 0 ? keys_before(from.key + other, n, key, second) : 0);
		to.key[at] = key;
		to.position[at] = from.position[p];
	}
}

/* Sums of pieces in the type of the computation: of pieces that continue the previous piece's index, and of pieces that
 * the next one continues. */
template <class T> struct pieces {
	T *further, *first;
	template <class F> void emu_pointers(F f)
	{
		f(further), f(first);
	}
};

template <class S, class T, class I> __global__ void add_pieces(S *dx, const S *dy, order o, pieces<T> sums,
                                                                int32_t count, int64_t rows, I width,
                                                                typename slp_divisor<I>::type by_width)
{
	SLP_GRID_STRIDE(i, count * (int64_t)width)
	{
		I column;
		int64_t p = slp_divided((I)i, by_width, &column), piece = p / PIECE;
		int32_t row = o.key[p];
		bool further = p > 0 && o.key[p - 1] == row;
		if ((further && p % PIECE) || row < 0 || row >= rows) continue;
		int64_t end = (piece + 1) * PIECE < count ? (piece + 1) * PIECE : count, q = p;
		T sum = 0;
		for (; q < end && o.key[q] == row; q++) sum += (T)dy[(int64_t)o.position[q] * width + column];
		if (further) sums.further[piece * width + column] = sum;
		else if (q == end && q < count && o.key[q] == row) sums.first[piece * width + column] = sum;
		else dx[(int64_t)row * width + column] = sum;
	}
}

/* The rows of indices with several pieces: the first of them is the last of its PIECE positions. */
template <class S, class T>
__global__ void join_pieces(S *dx, order o, pieces<T> sums, int32_t count, int64_t rows, int64_t width)
{
	int64_t n = (count - 1) / PIECE * width;
	SLP_GRID_STRIDE(i, n)
	{
		int64_t piece = i / width, column = i - piece * width, next = (piece + 1) * PIECE;
		int32_t row = o.key[next];
		bool goes_on = o.key[next - 1] == row, here = piece == 0 || o.key[piece * PIECE - 1] != row;
		here = here || o.key[piece * PIECE] != row;
		if (!goes_on || !here || row < 0 || row >= rows) continue;
		T sum = sums.first[i];
		for (; next < count && o.key[next] == row; next += PIECE)
			sum += sums.further[next / PIECE * width + column];
		dx[(int64_t)row * width + column] = sum;
	}
}

/* The sorted positions, in the scratch memory. */
static order sorted(const struct slp_kernel *k, int32_t count)
{
	int32_t *space = (int32_t *)k->scratch;
	order from = {space, space + count}, to = {space + 2 * (int64_t)count, space + 3 * (int64_t)count};
	SLP_LAUNCH(sort_chunks, (unsigned)((count + (int64_t)SORTERS - 1) / SORTERS), SORTERS, 0, k->stream,
	           (const int32_t *)k->in[1].ptr, count, from);
	for (int64_t run = CHUNK; run < count; run *= 2) {
		SLP_LAUNCH(merge_runs, slp_grid(count), SLP_BLOCK, 0, k->stream, from, count, run, to);
		order last = from;
		from = to;
		to = last;
	}
	return from;
}

template <class S> static void add_rows(const struct slp_kernel *k, int32_t count, int64_t width)
{
	typedef typename slp_number<S>::type T;
	S *dx = (S *)k->out[0].ptr;
	const S *dy = (const S *)k->in[0].ptr;
	int64_t rows = k->out[0].type.shape.dim[0], n = count * width, npieces = (count - 1) / PIECE + 1;
	order o = sorted(k, count);
	T *space = (T *)((int32_t *)k->scratch + 4 * (int64_t)count);
	pieces<T> sums = {space, space + npieces * width};
	if (n <= INT32_MAX)
		SLP_LAUNCH((add_pieces<S, T, uint32_t>), slp_grid(n), SLP_BLOCK, 0, k->stream, dx, dy, o, sums, count,
		           rows, (uint32_t)width, slp_divisor<uint32_t>::of(width));
	else
		SLP_LAUNCH((add_pieces<S, T, int64_t>), slp_grid(n), SLP_BLOCK, 0, k->stream, dx, dy, o, sums, count,
		           rows, width, slp_divisor<int64_t>::of(width));
	if (npieces > 1)
		SLP_LAUNCH((join_pieces<S, T>), slp_grid((npieces - 1) * width), SLP_BLOCK, 0, k->stream, dx, o, sums,
		           count, rows, width);
}

template <class T> static enum sl_status run_gather_grad(const struct slp_kernel *k)
{
	T *dx = (T *)k->out[0].ptr;
	int64_t n = slp_size(&k->in[0]), count = slp_size(&k->in[1]), size = slp_size(&k->out[0]);
	if (count > INT32_MAX) return slp_kernel_fail(k, SL_EUNSUPPORTED, "more than %d indices", INT32_MAX);
	if (size) cudaMemsetAsync(dx, 0, (size_t)size * sizeof(T), (cudaStream_t)k->stream);
	if (size && n) add_rows<T>(k, (int32_t)count, row_size(k->out[0].type.shape));
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_gather_grad(const struct slp_kernel *k)
{
	enum sl_status s = SL_EINTERNAL;
	slp_with_numbers<SLP_FLOATS | SLP_HALVES>(k->in[0].type.dtype,
	                                          [&](auto zero) { s = run_gather_grad<decltype(zero)>(k); });
	return s;
}

/* ---- one_hot ---------------------------------------------------------------------------------------------------- */

template <class T> __global__ void one_hot(T *out, const int32_t *index, int64_t n, int64_t depth)
{
	SLP_GRID_STRIDE(i, n)
	{
		int64_t p = i / depth;
		out[i] = slp_stored<T>::of(index[p] == i - p * depth ? 1.0 : 0.0);
	}
}

template <class T> static enum sl_status run_one_hot(const struct slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]), depth = k->out[0].type.shape.dim[k->out[0].type.shape.ndim - 1];
	if (n)
		SLP_LAUNCH(one_hot<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, (T *)k->out[0].ptr,
		           (const int32_t *)k->in[0].ptr, n, depth);
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_one_hot(const struct slp_kernel *k)
{
	enum sl_status s = SL_EINTERNAL;
	slp_with<SLP_ANY>(k->out[0].type.dtype, [&](auto zero) { s = run_one_hot<decltype(zero)>(k); });
	return s;
}
