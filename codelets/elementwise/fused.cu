/* Expressions of elementwise functions on GPUs: each thread interprets the expression for its elements. */
#include "fused.h"
#include "common/lanes.cuh"
#include "common/operands.h"
#include "common/scalar.h"

template <class S> struct expression {
	typedef typename slp_number<S>::type T;
	int nsteps, nin, ndim;
	slp_fused_step step[SLP_FUSED_STEPS];
	T number[SLP_FUSED_NUMBERS];
	const S *in[SLP_FUSED_INPUTS];
	S *out;
	int64_t n, dim[SL_MAX_NDIM], stride[SLP_FUSED_INPUTS][SL_MAX_NDIM];
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		for (int i = 0; i < nin; i++) f(in[i]);
		f(out);
	}
};

template <class T> __device__ inline T evaluate(int code, T p, T q)
{
	switch (code) {
#define FUNCTION(name, value, ...)                                                                                     \
	case SLP_FUSED_##name: {                                                                                       \
		__VA_ARGS__;                                                                                           \
		return value;                                                                                          \
	}
#define LINEAR(name, dtypes, value, doc) FUNCTION(name, value, const T x = p)
#define FLAT LINEAR
#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	FUNCTION(name, value, const T x = p) FUNCTION(name##_grad, slope, const T d = p, v = q)
#include "unary.def"
#define PART(name, value, doc) FUNCTION(name, value, const T a = p, b = q)
#define BINARY(name, saves, scalar_saves, value, doc) PART(name, value, doc)
#define COMPARE(name, value, doc) PART(name, (value) ? 1 : 0, doc)
#include "binary.def"
	}
	return p;
}

/* Index is 32 bits wide where that is enough: divisions take long. */
template <class Index, class S> __global__ void fused_kernel(struct expression<S> p)
{
	typedef typename slp_number<S>::type T;
	SLP_GRID_STRIDE(e, p.n)
	{
		T value[SLP_FUSED_VALUES];
		int64_t from[SLP_FUSED_INPUTS] = {0};
		Index rest = (Index)e;
		for (int axis = p.ndim - 1; axis > 0; axis--) {
			Index dim = (Index)p.dim[axis], index = rest % dim;
			rest /= dim;
			for (int i = 0; i < p.nin; i++) from[i] += (int64_t)index * p.stride[i][axis];
		}
		for (int i = 0; i < p.nin; i++) value[i] = p.in[i][from[i] + (int64_t)rest * p.stride[i][0]];
		for (int i = 0; i < p.nsteps; i++) {
			slp_fused_step s = p.step[i];
			T a = s.a < SLP_FUSED_NUMBER ? value[s.a] : p.number[s.a - SLP_FUSED_NUMBER];
			T b = s.b < SLP_FUSED_NUMBER ? value[s.b] : p.number[s.b - SLP_FUSED_NUMBER];
			value[SLP_FUSED_RESULT + i] = evaluate<T>(s.code, a, b);
		}
		p.out[e] = value[SLP_FUSED_RESULT + p.nsteps - 1];
	}
}

/* Whether axis i of the result can be walked as one with the last one of the plan, in all inputs. */
template <class S> static bool merges(const expression<S> &p, const int64_t step[][SL_MAX_NDIM], int i, int64_t dim)
{
	if (p.ndim == 0) return false;
	for (int j = 0; j < p.nin; j++)
		if (p.stride[j][p.ndim - 1] != step[j][i] * dim) return false;
	return true;
}

/* The axes of the result, those merged that all inputs walk as one: one axis where no input is broadcast. */
template <class S> static void plan(expression<S> *p, const struct slp_kernel *k)
{
	sl_shape out = k->out[0].type.shape;
	int64_t step[SLP_FUSED_INPUTS][SL_MAX_NDIM];
	for (int j = 0; j < k->nin; j++) slp_broadcast_steps(k->in[j].type.shape, out.ndim, step[j]);
	p->ndim = 0;
	for (int i = 0; i < out.ndim; i++) {
		if (out.dim[i] == 1) continue;
		if (!merges(*p, step, i, out.dim[i])) p->dim[p->ndim++] = 1;
		p->dim[p->ndim - 1] *= out.dim[i];
		for (int j = 0; j < k->nin; j++) p->stride[j][p->ndim - 1] = step[j][i];
	}
	for (int j = 0; p->ndim == 0 && j < k->nin; j++) p->stride[j][0] = 0;
}

template <class S> static void launch(const struct slp_kernel *k, int64_t n)
{
	typedef typename slp_number<S>::type T;
	const slp_fused_attrs *f = (const slp_fused_attrs *)k->attrs;
	expression<S> p;
	p.nsteps = slp_fused_count(f);
	p.nin = k->nin;
	p.n = n;
	p.out = (S *)k->out[0].ptr;
	for (int i = 0; i < p.nsteps; i++) p.step[i] = slp_fused_step_at(f, i);
	for (int i = 0; i < SLP_FUSED_NUMBERS; i++) p.number[i] = (T)f->number[i];
	for (int i = 0; i < k->nin; i++) p.in[i] = (const S *)k->in[i].ptr;
	plan(&p, k);
	if (n <= INT32_MAX) SLP_LAUNCH((fused_kernel<uint32_t, S>), slp_grid(n), SLP_BLOCK, 0, k->stream, p);
	else SLP_LAUNCH((fused_kernel<int64_t, S>), slp_grid(n), SLP_BLOCK, 0, k->stream, p);
}

extern "C" enum sl_status slp_cuda_fused(const struct slp_kernel *k)
{
	const slp_fused_attrs *f = (const slp_fused_attrs *)k->attrs;
	int64_t n = slp_size(&k->out[0]);
	if (n == 0) return SL_OK;
	for (int i = 0; i < slp_fused_count(f); i++)
		if (slp_fused_step_at(f, i).own)
			return slp_kernel_fail(k, SL_EUNSUPPORTED, "step %d runs on CPUs only", i);
	slp_with_float(k->out[0].type.dtype, [&](auto zero) { launch<decltype(zero)>(k, n); });
	return slp_launched(k);
}
