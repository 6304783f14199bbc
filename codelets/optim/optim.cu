/* Optimisers on a GPU: one launch updates many parameters; each block finds out which of them it works on. */
#include "common/lanes.cuh"
#include "optim.h"

enum { TENSORS = 80, CHUNK = SLP_OPTIM_CHUNK }; /* a launch; elements a block */

template <class T> struct parameters {
	int count;
	T *w[TENSORS];
	const T *g[TENSORS];
	T *s0[TENSORS], *s1[TENSORS];        /* state; NULL: none */
	int64_t size[TENSORS], end[TENSORS]; /* elements; the block after the last one */
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		for (int i = 0; i < count; i++) {
			f(w[i]);
			f(g[i]);
			f(s0[i]);
			f(s1[i]);
		}
	}
};

static_assert(sizeof(parameters<double>) <= 3900, "a kernel takes 4 KiB of arguments");

/* The elements of a block: [begin, end) of parameter t. */
template <class T> struct share {
	int t;
	int64_t begin, end;
	__device__ share(const parameters<T> &p) : t(0)
	{
		while ((int64_t)blockIdx.x >= p.end[t]) t++;
		begin = (blockIdx.x - (t ? p.end[t - 1] : 0)) * (int64_t)CHUNK;
		end = begin + CHUNK < p.size[t] ? begin + CHUNK : p.size[t];
	}
};

/* ---- clipping --------------------------------------------------------------------------------------------------- */

__device__ static inline double square_of(double x)
{
	return x * x;
}

template <class T> __global__ void squares(parameters<T> p, double *part)
{
	share<T> s(p);
	double sum = 0;
	for (int64_t i = s.begin + threadIdx.x; i < s.end; i += blockDim.x) sum += square_of((double)p.g[s.t][i]);
	sum = slp_block_reduce(sum, slp_sum_of(), 0.0);
	if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

/* One block; the factor of the gradients goes in front of the parts, as slp_optim_scale has it. */
__global__ void find_scale(double *scale, const double *part, int64_t parts, double rescale, double clip_norm)
{
	double sum = 0;
	for (int64_t i = threadIdx.x; i < parts; i += blockDim.x) sum += part[i];
	sum = slp_block_reduce(sum, slp_sum_of(), 0.0);
	double c = clip_norm / (fabs(rescale) * sqrt(sum));
	if (threadIdx.x == 0) *scale = rescale * (c > 1 ? 1 : c);
}

template <class T> __global__ void put_scale(T *to, const double *scale)
{
	if (threadIdx.x == 0) *to = (T)*scale;
}

/* ---- moving averages -------------------------------------------------------------------------------------------- */

/* The "gradient" is the averaged value. */
template <class T> struct average_rule {
	T keep, rest;
	static __host__ average_rule of(const slp_kernel *k)
	{
		double keep = ((const slp_average_attrs *)k->attrs)->keep;
		return {(T)keep, (T)(1 - keep)};
	}
	__device__ void operator()(T g, T *w, T *, T *) const
	{
		*w = keep * *w + rest * g;
	}
};

/* scale NULL: rescale it is. */
template <class S, class T, class R>
__global__ void update(parameters<S> p, R rule, T rescale, T limit, const double *scale)
{
	share<S> s(p);
	S *w = p.w[s.t], *s0 = p.s0[s.t], *s1 = p.s1[s.t];
	T factor = scale ? (T)*scale : rescale;
	const S *grad = p.g[s.t];
	for (int64_t i = s.begin + threadIdx.x; i < s.end; i += blockDim.x) {
		T g = factor * (T)grad[i], value = w[i], first = s0 ? (T)s0[i] : T(0), second = s1 ? (T)s1[i] : T(0);
		g = g > limit ? limit : g < -limit ? -limit : g;
		rule(g, &value, s0 ? &first : NULL, s1 ? &second : NULL);
		w[i] = value;
		if (s0) s0[i] = first;
		if (s1) s1[i] = second;
	}
}

/* ---- launching -------------------------------------------------------------------------------------------------- */

/* Parameters from `in` on, as many as one launch takes. */
template <class T> static const slp_view *gather(parameters<T> *p, const slp_view *in, const slp_view *end, int period)
{
	int64_t blocks = 0;
	for (p->count = 0; in < end && p->count < TENSORS; in += period) {
		int64_t n = slp_size(in);
		if (n == 0) continue;
		int i = p->count++;
		p->w[i] = (T *)in[0].ptr;
		p->g[i] = (const T *)in[period > 1].ptr; /* clip_scale has gradients alone */
		p->s0[i] = period > 2 ? (T *)in[2].ptr : NULL;
		p->s1[i] = period > 3 ? (T *)in[3].ptr : NULL;
		p->size[i] = n;
		p->end[i] = blocks += (n + CHUNK - 1) / CHUNK;
	}
	return in;
}

/* Calls f(parameters, blocks) for the whole list. */
template <class T, class F> static void each_launch(const slp_kernel *k, F f)
{
	const slp_view *end = k->in + k->nin;
	parameters<T> p;
	for (const slp_view *in = k->in; in < end;) {
		in = gather(&p, in, end, k->op->period);
		if (p.count > 0) f(p, (unsigned)p.end[p.count - 1]);
	}
}

/* The factor of the gradients, on the device; NULL if it is known already. */
template <class T> static const double *scale_of(const slp_kernel *k)
{
	const slp_optim_attrs *a = (const slp_optim_attrs *)k->attrs;
	if (!(a->clip_norm > 0)) return NULL;
	double *scale = (double *)k->scratch, *part = scale + 1;
	int64_t parts = 0;
	each_launch<T>(k, [&](const parameters<T> &p, unsigned blocks) {
		SLP_LAUNCH(squares<T>, blocks, SLP_BLOCK, 0, k->stream, p, part + parts);
		parts += blocks;
	});
	SLP_LAUNCH(find_scale, 1, SLP_BLOCK, 0, k->stream, scale, part, parts, a->rescale, a->clip_norm);
	return scale;
}

template <class S, class T, class R> static void run(const slp_kernel *k)
{
	const slp_optim_attrs *a = (const slp_optim_attrs *)k->attrs;
	const double *scale = scale_of<S>(k);
	each_launch<S>(k, [&](const parameters<S> &p, unsigned blocks) {
		SLP_LAUNCH((update<S, T, R>), blocks, SLP_BLOCK, 0, k->stream, p, R::of(k), (T)a->rescale,
		           (T)slp_optim_limit(a), scale);
	});
}

template <template <class> class RULE> static sl_status dispatch(const slp_kernel *k)
{
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		typedef typename slp_number<S>::type T;
		run<S, T, RULE<T>>(k);
	});
	return slp_launched(k);
}

/* ---- layerwise rules (layerwise.c) ------------------------------------------------------------------------------- */

/* Sums of squares. */
struct two_norms {
	double param, direction;
};

/* A pair for each block. */
template <class S, class T, class R> __global__ void norms(parameters<S> p, R rule, two_norms *part)
{
	share<S> s(p);
	const S *w = p.w[s.t], *s0 = p.s0[s.t], *s1 = p.s1[s.t];
	double param = 0, step = 0;
	for (int64_t i = s.begin + threadIdx.x; i < s.end; i += blockDim.x) {
		T value = w[i], direction = rule.direction(value, s0 ? (T)s0[i] : T(0), s1 ? (T)s1[i] : T(0));
		param += square_of((double)value);
		step += square_of((double)direction);
	}
	param = slp_block_reduce(param, slp_sum_of(), 0.0);
	step = slp_block_reduce(step, slp_sum_of(), 0.0);
	if (threadIdx.x == 0) part[blockIdx.x] = {param, step};
}

/* A block for each parameter; slp_optim_ratio's rule. */
template <class S> __global__ void find_ratios(parameters<S> p, const two_norms *part, double *ratio)
{
	int64_t begin = blockIdx.x ? p.end[blockIdx.x - 1] : 0;
	double param = 0, step = 0;
	for (int64_t i = begin + threadIdx.x; i < p.end[blockIdx.x]; i += blockDim.x) {
		param += part[i].param;
		step += part[i].direction;
	}
	param = slp_block_reduce(param, slp_sum_of(), 0.0);
	step = slp_block_reduce(step, slp_sum_of(), 0.0);
	if (threadIdx.x == 0) ratio[blockIdx.x] = param == 0 || step == 0 ? 1 : sqrt(param) / sqrt(step);
}

template <class S, class T, class R> __global__ void move(parameters<S> p, R rule, const double *ratio)
{
	share<S> s(p);
	S *w = p.w[s.t];
	const S *s0 = p.s0[s.t], *s1 = p.s1[s.t];
	T rate = rule.rule.rate * (T)ratio[s.t];
	for (int64_t i = s.begin + threadIdx.x; i < s.end; i += blockDim.x) {
		T value = w[i];
		w[i] = value - rate * rule.direction(value, s0 ? (T)s0[i] : T(0), s1 ? (T)s1[i] : T(0));
	}
}

/* The launches of one list of parameters use the scratch memory one after the other. */
template <class S, class T, class R> static void run_layerwise(const slp_kernel *k)
{
	int64_t blocks_of_all = 0;
	run<S, T, R>(k);
	each_launch<S>(k, [&](const parameters<S> &, unsigned blocks) { blocks_of_all += blocks; });
	two_norms *part = (two_norms *)k->scratch;
	double *ratio = (double *)(part + blocks_of_all);
	each_launch<S>(k, [&](const parameters<S> &p, unsigned blocks) {
		R rule = R::of(k);
		SLP_LAUNCH((norms<S, T, R>), blocks, SLP_BLOCK, 0, k->stream, p, rule, part);
		SLP_LAUNCH(find_ratios<S>, (unsigned)p.count, SLP_BLOCK, 0, k->stream, p, part, ratio);
		SLP_LAUNCH((move<S, T, R>), blocks, SLP_BLOCK, 0, k->stream, p, rule, ratio);
	});
}

template <template <class> class RULE> static sl_status dispatch_layerwise(const slp_kernel *k)
{
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		typedef typename slp_number<S>::type T;
		run_layerwise<S, T, RULE<T>>(k);
	});
	return slp_launched(k);
}

/* The rules of SL_OPTIMIZER_LIST, and their kernels; made from the list by make. */
#include "optim/rule.h"
#include "codelets/optim/rules.inc"

extern "C" sl_status slp_cuda_clip_scale(const slp_kernel *k)
{
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) S;
		const double *scale = scale_of<S>(k);
		if (scale) SLP_LAUNCH(put_scale<S>, 1, SLP_BLOCK, 0, k->stream, (S *)k->out[0].ptr, scale);
	});
	return slp_launched(k);
}

/* In parts (clip_parts.c), of the same chunks as in scale_of. */
extern "C" sl_status slp_cuda_clip_squares(const slp_kernel *k)
{
	double *part = (double *)k->out[0].ptr;
	slp_with_float(k->in[0].type.dtype, [&](auto zero) {
		each_launch<decltype(zero)>(k, [&](const parameters<decltype(zero)> &p, unsigned blocks) {
			SLP_LAUNCH(squares<decltype(zero)>, blocks, SLP_BLOCK, 0, k->stream, p, part);
			part += blocks;
		});
	});
	return slp_launched(k);
}

extern "C" sl_status slp_cuda_clip_factor(const slp_kernel *k)
{
	const slp_optim_attrs *a = (const slp_optim_attrs *)k->attrs;
	double *part = (double *)k->scratch;
	int64_t parts = 0;
	for (const slp_view *in = k->in; in < k->in + k->nin; in++) {
		int64_t n = slp_size(in);
		if (n)
			cudaMemcpyAsync(part + parts, in->ptr, (size_t)n * sizeof *part, cudaMemcpyDeviceToDevice,
			                (cudaStream_t)k->stream);
		parts += n;
	}
	SLP_LAUNCH(find_scale, 1, SLP_BLOCK, 0, k->stream, (double *)k->out[0].ptr, part, parts, a->rescale,
	           a->clip_norm);
	return slp_launched(k);
}

extern "C" sl_status slp_cuda_average(const slp_kernel *k)
{
	return dispatch<average_rule>(k);
}
