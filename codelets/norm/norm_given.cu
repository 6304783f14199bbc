/* norm_fold and norm_affine on a GPU: a thread an element. */
#include "common/lanes.cuh"
#include "op_inner.h"
#include "op_list/norm.h"

template <class T> struct statistics {
	slp_vector<T> gamma, beta, mean, var;
	double eps;
	/* The inputs of a call from number `first` on. */
	static statistics of(const slp_kernel *k, int first, double eps)
	{
		slp_vector<T> in[4];
		for (int i = 0; i < 4; i++) in[i] = slp_vector<T>::of(&k->in[first + i]);
		return {in[0], in[1], in[2], in[3], eps};
	}
	template <class F> void emu_pointers(F f)
	{
		f(gamma), f(beta), f(mean), f(var);
	}
};

/* n weights of rows of `row`; b: NULL, or the layer's bias. */
template <class T>
__global__ void fold(struct statistics<T> s, const T *w, const T *b, T *to, T *bias, int64_t n, int64_t row)
{
	SLP_GRID_STRIDE(e, n)
	{
		int64_t i = e / row;
		double factor = s.gamma[i] / sqrt((double)s.var[i] + s.eps);
		to[e] = (T)(w[e] * factor);
		if (e == i * row)
			bias[i] = (T)(((b ? (double)b[i] : 0) - (double)s.mean[i]) * factor + (double)s.beta[i]);
	}
}

template <class T> __global__ void affine(struct statistics<T> s, T *center, T *scale, T *shift, int64_t n)
{
	SLP_GRID_STRIDE(i, n)
	{
		center[i] = s.mean[i];
		scale[i] = (T)((double)s.gamma[i] * (1 / sqrt((double)s.var[i] + s.eps)));
		shift[i] = s.beta[i];
	}
}

/* Calls f(T()) with the type of the results. */
template <class F> static enum sl_status with_float(const slp_kernel *k, F f)
{
	slp_with<SLP_FLOATS>(k->out[0].type.dtype, f);
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_norm_fold(const slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]), rows = slp_size(&k->out[1]);
	double eps = ((const slp_norm_fold_attrs *)k->attrs)->eps;
	if (n == 0) return SL_OK;
	return with_float(k, [&](auto zero) {
		typedef decltype(zero) T;
		SLP_LAUNCH(fold<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, statistics<T>::of(k, 1, eps),
		           (const T *)k->in[0].ptr, k->nin > 5 ? (const T *)k->in[5].ptr : nullptr, (T *)k->out[0].ptr,
		           (T *)k->out[1].ptr, n, n / rows);
	});
}

extern "C" enum sl_status slp_cuda_norm_affine(const slp_kernel *k)
{
	int64_t n = slp_size(&k->out[0]);
	double eps = ((const slp_norm_affine_attrs *)k->attrs)->eps;
	if (n == 0) return SL_OK;
	return with_float(k, [&](auto zero) {
		typedef decltype(zero) T;
		SLP_LAUNCH(affine<T>, slp_grid(n), SLP_BLOCK, 0, k->stream, statistics<T>::of(k, 0, eps),
		           (T *)k->out[0].ptr, (T *)k->out[1].ptr, (T *)k->out[2].ptr, n);
	});
}
