/* Functions of two tensors, or of a tensor and a number, on GPUs, from binary.def. */
#include "common/operands.h"
#include "op.h"
#include "common/divide.cuh"
#include "common/wide.cuh"
#include "common/scalar.h"
#include "fill/fill.h"
#include "whole.h"

/* Both operands have the shape of the result, or one element (step 0). */
template <class S, class F> __global__ void flat_kernel(const S *a, int64_t step_a, const S *b, int64_t step_b, S *out,
                                                        int64_t n, bool at_once, F f)
{
	typedef typename slp_exact<S>::type T;
	SLP_SOME_STRIDE(S, i, n)
	{
		T va[slp_some_count<S>], vb[slp_some_count<S>];
		slp_some<S> v;
		slp_some_load(a + i * step_a, n - i, at_once, step_a, va);
		slp_some_load(b + i * step_b, n - i, at_once, step_b, vb);
#pragma unroll
		for (int l = 0; l < slp_some_count<S>; l++) v.at[l] = slp_stored<S>::of(f.of(va[l], vb[l]));
		slp_some_store(out + i, n - i, at_once, v);
	}
}

/* The axes of the operands, and the divisors of indices. */
template <class Index> struct walk {
	struct slp_broadcast_plan p;
	typename slp_divisor<Index>::type by[SL_MAX_NDIM];
	walk(const struct slp_broadcast_plan &plan) : p(plan)
	{
		for (int i = 0; i < p.ndim; i++) by[i] = slp_divisor<Index>::of(p.dim[i]);
	}
};

/* Index has 32 bits if these are enough: divisions are slow. */
template <class Index, class S, class F>
__global__ void broadcast_kernel(const S *a, const S *b, S *out, int64_t n, SLP_IN_PLACE struct walk<Index> w, F f)
{
	typedef typename slp_exact<S>::type T;
	SLP_GRID_STRIDE(i, n)
	{
		Index rest = (Index)i, index;
		int64_t from_a = 0, from_b = 0;
		for (int axis = w.p.ndim - 1; axis >= 0; axis--) {
			rest = slp_divided(rest, w.by[axis], &index);
			from_a += (int64_t)index * w.p.a[axis];
			from_b += (int64_t)index * w.p.b[axis];
		}
		out[i] = slp_stored<S>::of(f.of((T)a[from_a], (T)b[from_b]));
	}
}

template <class S, class T, class F>
__global__ void scalar_kernel(const S *x, T s, bool swapped, S *out, int64_t n, bool at_once, F f)
{
	SLP_SOME_STRIDE(S, i, n)
	{
		T vx[slp_some_count<S>];
		slp_some<S> v;
		slp_some_load(x + i, n - i, at_once, 1, vx);
#pragma unroll
		for (int l = 0; l < slp_some_count<S>; l++)
			v.at[l] = slp_stored<S>::of(f.of(swapped ? s : vx[l], swapped ? vx[l] : s));
		slp_some_store(out + i, n - i, at_once, v);
	}
}

template <class S, class F> static void launch_binary(const struct slp_kernel *k, int64_t n, F f)
{
	const S *a = (const S *)k->in[0].ptr, *b = (const S *)k->in[1].ptr;
	S *out = (S *)k->out[0].ptr;
	struct slp_broadcast_plan p =
	        slp_broadcast_plan(k->in[0].type.shape, k->in[1].type.shape, k->out[0].type.shape);
	if (p.ndim == 1)
		SLP_LAUNCH((flat_kernel<S, F>), slp_some_grid<S>(n), SLP_BLOCK, 0, k->stream, a, p.a[0], b, p.b[0], out,
		           n, slp_is_some<S>(a) && slp_is_some<S>(b) && slp_is_some<S>(out), f);
	else if (n <= INT32_MAX)
		SLP_LAUNCH((broadcast_kernel<uint32_t, S, F>), slp_grid(n), SLP_BLOCK, 0, k->stream, a, b, out, n,
		           walk<uint32_t>(p), f);
	else
		SLP_LAUNCH((broadcast_kernel<int64_t, S, F>), slp_grid(n), SLP_BLOCK, 0, k->stream, a, b, out, n,
		           walk<int64_t>(p), f);
}

template <unsigned TYPES, class F> static enum sl_status binary(const struct slp_kernel *k, F f)
{
	int64_t n = slp_size(&k->out[0]);
	if (n == 0) return SL_OK;
	slp_with_numbers<TYPES | SLP_HALVES>(k->out[0].type.dtype,
	                                     [&](auto zero) { launch_binary<decltype(zero)>(k, n, f); });
	return slp_launched(k);
}

/* The number in the type of the computation. */
static inline void number_as(double s, int64_t *number)
{
	*number = slp_int64_of(s);
}

template <class T> static inline void number_as(double s, T *number)
{
	*number = (T)s;
}

template <class S, class F> static void launch_scalar(const struct slp_kernel *k, int64_t n, F f, bool swapped)
{
	typedef typename slp_exact<S>::type T;
	T s;
	number_as(((const struct slp_value *)k->attrs)->value, &s);
	SLP_LAUNCH((scalar_kernel<S, T, F>), slp_some_grid<S>(n), SLP_BLOCK, 0, k->stream, (const S *)k->in[0].ptr, s,
	           swapped, (S *)k->out[0].ptr, n, slp_is_some<S>(k->in[0].ptr) && slp_is_some<S>(k->out[0].ptr), f);
}

template <class F> static enum sl_status scalar(const struct slp_kernel *k, F f, bool swapped)
{
	int64_t n = slp_size(&k->out[0]);
	slp_with_numbers<SLP_NUMBERS | SLP_HALVES>(k->out[0].type.dtype,
	                                           [&](auto zero) { launch_scalar<decltype(zero)>(k, n, f, swapped); });
	return slp_launched(k);
}

/* The number may have no equal among int64. */
template <class F> __global__ void compare_whole_kernel(const int64_t *x, double s, int64_t *out, int64_t n, F f)
{
	SLP_GRID_STRIDE(i, n) out[i] = (int64_t)f.of(slp_whole_beside(x[i], s), 0.0);
}

template <class F> static enum sl_status compare_scalar(const struct slp_kernel *k, F f)
{
	int64_t n = slp_size(&k->out[0]);
	if (k->in[0].type.dtype == SL_INT64)
		SLP_LAUNCH(compare_whole_kernel<F>, slp_grid(n), SLP_BLOCK, 0, k->stream, (const int64_t *)k->in[0].ptr,
		           ((const struct slp_value *)k->attrs)->value, (int64_t *)k->out[0].ptr, n, f);
	else
		slp_with_numbers<(SLP_TRUTHS & ~SLP_I64) | SLP_HALVES>(
		        k->out[0].type.dtype, [&](auto zero) { launch_scalar<decltype(zero)>(k, n, f, false); });
	return slp_launched(k);
}

#define NOTHING_WHOLE
#define WHOLE(name)                                                                                                    \
	__device__ int64_t of(int64_t a, int64_t b) const                                                              \
	{                                                                                                              \
		return slp_whole_##name(a, b);                                                                         \
	}
#define OF_TWO(name, types, whole, value)                                                                              \
	struct name##_function {                                                                                       \
		template <class T> __device__ T of(T a, T b) const                                                     \
		{                                                                                                      \
			return value;                                                                                  \
		}                                                                                                      \
		whole                                                                                                  \
	};                                                                                                             \
	extern "C" enum sl_status slp_cuda_##name(const struct slp_kernel *k)                                          \
	{                                                                                                              \
		return binary<types>(k, name##_function());                                                            \
	}
#define OF_NUMBER(name, call)                                                                                          \
	extern "C" enum sl_status slp_cuda_##name##_scalar(const struct slp_kernel *k)                                 \
	{                                                                                                              \
		return call;                                                                                           \
	}
#define PART(name, value, doc) OF_TWO(name, SLP_NARROW, NOTHING_WHOLE, value)
#define FLOATS(name, saves, value, doc) OF_TWO(name, SLP_FLOATS, NOTHING_WHOLE, value)
#define CHOICE(name, value, doc) OF_TWO(name, SLP_TRUTHS, NOTHING_WHOLE, value)
#define TRUTH(name, value, doc) CHOICE(name, (value) ? 1 : 0, doc)
#define BINARY(name, saves, scalar_saves, value, doc)                                                                  \
	OF_TWO(name, SLP_NUMBERS, WHOLE(name), value)                                                                  \
	OF_NUMBER(name, scalar(k, name##_function(), false))
#define COMPARE(name, value, doc) TRUTH(name, value, doc) OF_NUMBER(name, compare_scalar(k, name##_function()))
#define SWAPPED(name, of, saves, doc) OF_NUMBER(name, scalar(k, of##_function(), true))

#include "binary.def"
