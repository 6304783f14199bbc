/* concat on a GPU: one launch for up to PIECES inputs, one thread an element of the result. */
#include "op.h"
#include "common/element.cuh"
#include "common/gpu.cuh"
#include "concat.h"

enum { PIECES = 64 };

/* Some of the inputs: input i fills elements [begin[i], begin[i + 1]) of each row of this launch's columns. */
template <class T> struct pieces {
	const T *in[PIECES];
	int64_t begin[PIECES + 1];
	int count;
	template <class F> void emu_pointers(F f)
	{
		for (int i = 0; i < count; i++) f(in[i]);
	}
};

/* out: the first column of the launch, in rows of `row` elements. */
template <class T, class I> __global__ void concat(T *out, int64_t n, int64_t row, struct pieces<T> p)
{
	I width = (I)p.begin[p.count];
	SLP_GRID_STRIDE(i, n)
	{
		I outer = (I)i / width;
		int64_t column = (int64_t)((I)i - outer * width);
		int low = 0, high = p.count; /* the piece is in [low, high) */
		while (high - low > 1) {
			int middle = (low + high) / 2;
			if (p.begin[middle] <= column) low = middle;
			else high = middle;
		}
		int64_t size = p.begin[low + 1] - p.begin[low];
		out[(int64_t)outer * row + column] = p.in[low][(int64_t)outer * size + column - p.begin[low]];
	}
}

/* Inputs from *next on that are not empty, as many as fit. */
template <class T> static struct pieces<T> collect(const struct slp_kernel *k, int *next, int axis, int64_t inner) {
	struct pieces<T> p = {
	};
	for (; *next < k->nin && p.count < PIECES; ++*next) {
		int64_t n = k->in[*next].type.shape.dim[axis] * inner;
		if (n == 0) continue;
		p.in[p.count] = (const T *)k->in[*next].ptr;
		p.begin[p.count + 1] = p.begin[p.count] + n;
		p.count++;
	}
	return p;
}

template <class T>
static void run(const struct slp_kernel *k, int axis, struct slp_split whole)
{
	T *out = (T *)k->out[0].ptr;
	int64_t row = whole.n * whole.inner;
	for (int next = 0; next < k->nin;) {
		struct pieces<T> p = collect<T>(k, &next, axis, whole.inner);
		int64_t n = whole.outer * p.begin[p.count];
		if (n == 0) break;
		if (n <= INT32_MAX) /* 32-bit division is several times as fast */
			SLP_LAUNCH((concat<T, uint32_t>), slp_grid(n), SLP_BLOCK, 0, k->stream, out, n, row, p);
		else SLP_LAUNCH((concat<T, int64_t>), slp_grid(n), SLP_BLOCK, 0, k->stream, out, n, row, p);
		out += p.begin[p.count];
	}
}

extern "C" enum sl_status slp_concat_cuda(const struct slp_kernel *k, int axis, struct slp_split whole)
{
	slp_with_size(sl_dtype_size(k->out[0].type.dtype), [&](auto zero) { run<decltype(zero)>(k, axis, whole); });
	return slp_launched(k);
}
