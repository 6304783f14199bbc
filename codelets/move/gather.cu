/* gather, gather_grad and one_hot on a GPU.  A kernel cannot report a wrong index: it gives a row of NaN instead. */
#include "common/element.cuh"
#include "common/gpu.cuh"

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

/* Chains the positions with the same index, in their order: next[p] is the one after p or -1, head[p] says that there
 * is none before.  Every position looks at the others until it meets its like. */
__global__ void chain(int32_t *next, int32_t *head, const int32_t *index, int32_t count)
{
	SLP_GRID_STRIDE(p, (int64_t)count)
	{
		int32_t me = index[p], after = (int32_t)p + 1, before = (int32_t)p - 1;
		while (after < count && index[after] != me) after++;
		while (before >= 0 && index[before] != me) before--;
		next[p] = after < count ? after : -1;
		head[p] = before < 0;
	}
}

template <class S> __global__ void add_chains(S *dx, const S *dy, const int32_t *index, const int32_t *next,
                                              const int32_t *head, int64_t n, int64_t rows, int64_t width)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(i, n)
	{
		int64_t p = i / width, column = i - p * width;
		if (!head[p] || index[p] < 0 || index[p] >= rows) continue;
		T sum = 0;
		for (int64_t q = p; q >= 0; q = next[q]) sum += (T)dy[q * width + column];
		dx[index[p] * width + column] = sum;
	}
}

template <class T> __global__ void zero(T *x, int64_t n)
{
	SLP_GRID_STRIDE(i, n) x[i] = 0;
}

template <class T> static enum sl_status run_gather_grad(const struct slp_kernel *k)
{
	T *dx = (T *)k->out[0].ptr;
	const T *dy = (const T *)k->in[0].ptr;
	const int32_t *index = (const int32_t *)k->in[1].ptr;
	int64_t n = slp_size(&k->in[0]), count = slp_size(&k->in[1]), size = slp_size(&k->out[0]);
	int32_t *next = (int32_t *)k->scratch, *head = next + count;
	if (count > INT32_MAX) return slp_kernel_fail(k, SL_EUNSUPPORTED, "more than %d indices", INT32_MAX);
	if (size) SLP_LAUNCH(zero<T>, slp_grid(size), SLP_BLOCK, 0, k->stream, dx, size);
	if (size && n) {
		SLP_LAUNCH(chain, slp_grid(count), SLP_BLOCK, 0, k->stream, next, head, index, (int32_t)count);
		SLP_LAUNCH(add_chains<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, dx, dy, index, next, head, n,
		           k->out[0].type.shape.dim[0], row_size(k->out[0].type.shape));
	}
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
