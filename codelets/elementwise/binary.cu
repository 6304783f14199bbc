/* Functions of two tensors, or of a tensor and a number, on GPUs, from binary.def. */
#include "common/operands.h"
#include "common/element.cuh"
#include "fill/fill.h"
#include "common/scalar.h"

/* Both operands have the shape of the result, or one element (step 0). */
template <class S, class F>
__global__ void flat_kernel(const S *a, int64_t step_a, const S *b, int64_t step_b, S *out, int64_t n, F f)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(i, n) out[i] = slp_stored<S>::of(f.template of<T>((T)a[i * step_a], (T)b[i * step_b]));
}

/* Index is 32 bits wide where that is enough: divisions take long. */
template <class Index, class S, class F>
__global__ void broadcast_kernel(const S *a, const S *b, S *out, int64_t n, struct slp_broadcast_plan p, F f)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(i, n)
	{
		Index rest = (Index)i;
		int64_t from_a = 0, from_b = 0;
		for (int axis = p.ndim - 1; axis >= 0; axis--) {
			Index dim = (Index)p.dim[axis], index = rest % dim;
			rest /= dim;
			from_a += (int64_t)index * p.a[axis];
			from_b += (int64_t)index * p.b[axis];
		}
		out[i] = slp_stored<S>::of(f.template of<T>((T)a[from_a], (T)b[from_b]));
	}
}

template <class S, class T, class F>
__global__ void scalar_kernel(const S *x, T s, bool swapped, S *out, int64_t n, F f)
{
	SLP_GRID_STRIDE(i, n)
	{
		T v = (T)x[i];
		out[i] = slp_stored<S>::of(f.template of<T>(swapped ? s : v, swapped ? v : s));
	}
}

template <class S, class F> static void launch_binary(const struct slp_kernel *k, int64_t n, F f)
{
	const S *a = (const S *)k->in[0].ptr, *b = (const S *)k->in[1].ptr;
	S *out = (S *)k->out[0].ptr;
	struct slp_broadcast_plan p =
	        slp_broadcast_plan(k->in[0].type.shape, k->in[1].type.shape, k->out[0].type.shape);
	if (p.ndim == 1)
		SLP_LAUNCH((flat_kernel<S, F>), slp_grid(n), SLP_BLOCK, 0, k->stream, a, p.a[0], b, p.b[0], out, n, f);
	else if (n <= UINT32_MAX)
		SLP_LAUNCH((broadcast_kernel<uint32_t, S, F>), slp_grid(n), SLP_BLOCK, 0, k->stream, a, b, out, n, p,
		           f);
	else SLP_LAUNCH((broadcast_kernel<uint64_t, S, F>), slp_grid(n), SLP_BLOCK, 0, k->stream, a, b, out, n, p, f);
}

template <class F> static enum sl_status binary(const struct slp_kernel *k, F f)
{
	int64_t n = slp_size(&k->out[0]);
	if (n == 0) return SL_OK;
	slp_with<SLP_NUMBERS>(k->out[0].type.dtype, [&](auto zero) { launch_binary<decltype(zero)>(k, n, f); });
	return slp_launched(k);
}

template <class F> static enum sl_status scalar(const struct slp_kernel *k, F f, bool swapped)
{
	int64_t n = slp_size(&k->out[0]);
	double s = ((const struct slp_value *)k->attrs)->value;
	slp_with<SLP_NUMBERS>(k->out[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		typedef typename slp_number<S>::type T;
		SLP_LAUNCH((scalar_kernel<S, T, F>), slp_grid(n), SLP_BLOCK, 0, k->stream, (const S *)k->in[0].ptr,
		           (T)s, swapped, (S *)k->out[0].ptr, n, f);
	});
	return slp_launched(k);
}

#define PART(name, value, doc)                                                                                         \
	struct name##_function {                                                                                       \
		template <class T> __device__ T of(T a, T b) const                                                     \
		{                                                                                                      \
			return value;                                                                                  \
		}                                                                                                      \
	};                                                                                                             \
	extern "C" enum sl_status slp_cuda_##name(const struct slp_kernel *k)                                          \
	{                                                                                                              \
		return binary(k, name##_function());                                                                   \
	}
#define OF_NUMBER(name, of, swapped)                                                                                   \
	extern "C" enum sl_status slp_cuda_##name##_scalar(const struct slp_kernel *k)                                 \
	{                                                                                                              \
		return scalar(k, of##_function(), swapped);                                                            \
	}
#define BINARY(name, saves, scalar_saves, value, doc) PART(name, value, doc) OF_NUMBER(name, name, false)
#define COMPARE(name, value, doc) PART(name, (value) ? 1 : 0, doc) OF_NUMBER(name, name, false)
#define SWAPPED(name, of, saves, doc) OF_NUMBER(name, of, true)

#include "binary.def"
