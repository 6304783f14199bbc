/* Expressions of elementwise functions on GPUs, common parts of fused.cu and fused_reduce.cu: how they are interpreted, the
 * plan of their operands, and compiled kernels by their descriptions.  Where NVRTC is, large ones are compiled
 * (fused_source.c, compiled.h).  For others, each thread interprets a step for several elements at a time; a result that only
 * the next step reads stays in registers, others go to shared memory. */
#ifndef SLP_FUSED_CUH
#define SLP_FUSED_CUH

#include "compiled.h"
#include "fused_source.h"
#include "op.h"
#include "common/divide.cuh"
#include "common/lanes.cuh"
#include "common/operands.h"
#include "common/scalar.h"
#include "common/tune.cuh"
#include "common/wide.cuh"

/* ---- interpreting ------------------------------------------------------------------------------------------------ */

/* The place of a step's operand: the previous step's result, input i, slot i of shared memory, number i. */
enum { LAST, INPUT, SLOT = 32, NUMBER = 64 };
enum { SOURCE = 1 << 14 }; /* bytes of a source */

struct step {
	uint8_t code, a, b, keep; /* keep: 1 + the slot that the result goes into, or 0 */
};

template <class S> struct expression {
	typedef typename slp_number<S>::type T;
	static constexpr int W = sizeof(T) == 8 ? 4 : 8; /* elements of a thread */
	int nsteps, slots;
	struct step step[SLP_FUSED_STEPS];
	T number[SLP_FUSED_NUMBERS];
	const S *in[SLP_FUSED_INPUTS];
	S *out;
	struct slp_fused_plan plan;
	struct slp_quick quick[SL_MAX_NDIM];
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		for (int i = 0; i < plan.nin; i++) f(in[i]);
		f(out);
	}
};

/* The function of a step, of W elements. */
template <int W, class T> __device__ inline void evaluate(int code, const T *x_, const T *y_, T *result)
{
	switch (code) {
#define FUNCTION(name, value, ...)                                                                                     \
	case SLP_FUSED_##name:                                                                                         \
		_Pragma("unroll") for (int l = 0; l < W; l++)                                                          \
		{                                                                                                      \
			const T p = x_[l], q = y_[l];                                                                  \
			__VA_ARGS__;                                                                                   \
			(void)q;                                                                                       \
			result[l] = value;                                                                             \
		}                                                                                                      \
		break;
#define LINEAR(name, dtypes, value, doc) FUNCTION(name, value, const T x = p)
#define FLAT LINEAR
#define UNARY(name, dtypes, saved, value, slope, doc)                                                                  \
	FUNCTION(name, value, const T x = p) FUNCTION(name##_grad, slope, const T d = p, v = q)
#include "unary.def"
#define PART(name, value, doc) FUNCTION(name, value, const T a = p, b = q)
#define BINARY(name, saves, scalar_saves, value, doc) PART(name, value, doc)
#define COMPARE(name, value, doc) PART(name, (value) ? 1 : 0, doc)
#include "binary.def"
	default: break;
	}
}

/* The index in input i of element e of the result. */
template <class S> __device__ inline int64_t offset(const expression<S> &x, int i, int64_t e)
{
	const slp_fused_plan &p = x.plan;
	int64_t from = 0;
	if (p.n <= INT32_MAX) { /* divisions take long */
		uint32_t rest = (uint32_t)e, index;
		for (int axis = p.ndim - 1; axis > 0; axis--) {
			rest = slp_divided(rest, x.quick[axis], &index);
			from += (int64_t)index * p.stride[i][axis];
		}
		return from + (int64_t)rest * p.stride[i][0];
	}
	for (int axis = p.ndim - 1; axis > 0; axis--) {
		from += e % p.dim[axis] * p.stride[i][axis];
		e /= p.dim[axis];
	}
	return from + e * p.stride[i][0];
}

/* Elements of type E from e on of input i; there are n of them. */
template <int W, class E, class S, class T>
__device__ inline void fetch_as(const expression<S> &p, int i, int64_t e, int n, T *v)
{
	const E *in = (const E *)p.in[i];
	struct alignas(W * sizeof(E) < 16 ? W * sizeof(E) : 16) several {
		E at[W];
	};
	enum slp_fused_reading how = p.plan.how[i];
	if (n == W && (how == SLP_FUSED_GAPLESS || how == SLP_FUSED_ROW)) {
		several s = *(const several *)(in + (how == SLP_FUSED_GAPLESS ? e : offset(p, i, e)));
#pragma unroll
		for (int l = 0; l < W; l++) v[l] = (T)s.at[l];
	} else if (how == SLP_FUSED_SPLAT) {
		T one = (T)in[offset(p, i, e)];
#pragma unroll
		for (int l = 0; l < W; l++) v[l] = one;
	} else {
		bool flat = how == SLP_FUSED_GAPLESS || how == SLP_FUSED_GAPLESS_SINGLE;
#pragma unroll
		for (int l = 0; l < W; l++)
			if (l < n) v[l] = (T)in[flat ? e + l : offset(p, i, e + l)];
	}
}

template <int W, class S, class T> __device__ inline void fetch(const expression<S> &p, int i, int64_t e, int n, T *v)
{
	if (sizeof(S) < sizeof(T) && p.plan.wide[i]) fetch_as<W, T>(p, i, e, n, v);
	else fetch_as<W, S>(p, i, e, n, v);
}

/* An operand of a step. */
template <int W, class S, class T>
__device__ inline void operand(const expression<S> &p, int at, int64_t e, int n, const T *last, const T *slots, T *v)
{
	if (at >= NUMBER) {
#pragma unroll
		for (int l = 0; l < W; l++) v[l] = p.number[at - NUMBER];
	} else if (at >= SLOT) {
#pragma unroll
		for (int l = 0; l < W; l++) v[l] = slots[((at - SLOT) * W + l) * blockDim.x];
	} else if (at >= INPUT) {
		fetch<W>(p, at - INPUT, e, n, v);
	} else {
#pragma unroll
		for (int l = 0; l < W; l++) v[l] = last[l];
	}
}

/* Elements from e on, n of them, of the last step's result; slots: of the thread, in shared memory. */
template <int W, class S, class T>
__device__ inline void compute(const expression<S> &p, int64_t e, int n, T *slots, T *last)
{
	T a[W] = {0}, b[W] = {0};
	for (int i = 0; i < p.nsteps; i++) {
		struct step s = p.step[i];
		operand<W>(p, s.a, e, n, last, slots, a);
		operand<W>(p, s.b, e, n, last, slots, b);
		evaluate<W>(s.code, a, b, last);
		if (s.keep)
#pragma unroll
			for (int l = 0; l < W; l++) slots[((s.keep - 1) * W + l) * blockDim.x] = last[l];
	}
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* Whether axis i of the result can be merged with the last one of the plan, in all inputs. */
static bool merges(const slp_fused_plan &p, const int64_t step[][SL_MAX_NDIM], int i, int64_t dim)
{
	if (p.ndim == 0) return false;
	for (int j = 0; j < p.nin; j++)
		if (p.stride[j][p.ndim - 1] != step[j][i] * dim) return false;
	return true;
}

/* The axes of the result, merged where all inputs allow it: one axis if no input is broadcast. */
static void find_axes(slp_fused_plan *p, const struct slp_kernel *k, const slp_fused_attrs *f, sl_shape shape)
{
	int64_t step[SLP_FUSED_INPUTS][SL_MAX_NDIM];
	sl_shape out = slp_fused_stored(f, shape);
	for (int j = 0; j < k->nin; j++)
		slp_broadcast_steps(slp_fused_stored(f, k->in[j].type.shape), out.ndim, step[j]);
	p->ndim = 0;
	for (int i = 0; i < out.ndim; i++) {
		if (out.dim[i] == 1) continue;
		if (!merges(*p, step, i, out.dim[i])) p->dim[p->ndim++] = 1;
		p->dim[p->ndim - 1] *= out.dim[i];
		for (int j = 0; j < k->nin; j++) p->stride[j][p->ndim - 1] = step[j][i];
	}
	for (int j = 0; p->ndim == 0 && j < k->nin; j++) p->stride[j][0] = 0;
}

/* How input i is read, in groups of `width` elements. */
static enum slp_fused_reading reading_of(const slp_fused_plan &p, int i, const void *in, int width)
{
	bool flat = true, rows = true;
	int64_t gapless = 1, step = p.ndim ? p.stride[i][p.ndim - 1] : 0;
	for (int axis = p.ndim - 1; axis >= 0; axis--) {
		flat = flat && p.stride[i][axis] == gapless;
		rows = rows && (axis == p.ndim - 1 || p.stride[i][axis] % width == 0);
		gapless *= p.dim[axis];
	}
	if (p.ndim == 0) return SLP_FUSED_SPLAT;
	if (flat) return slp_is_wide(in) && p.aligned ? SLP_FUSED_GAPLESS : SLP_FUSED_GAPLESS_SINGLE;
	if (step == 0 && (p.ndim == 1 || p.dim[p.ndim - 1] % width == 0)) return SLP_FUSED_SPLAT;
	return step == 1 && slp_is_wide(in) && rows && p.dim[p.ndim - 1] % width == 0 ? SLP_FUSED_ROW
	                                                                              : SLP_FUSED_SINGLE;
}

/* Each thread computes `width` elements at once.  out: NULL if they are not stored. */
static void plan_of(slp_fused_plan *p, const struct slp_kernel *k, const slp_fused_attrs *f, sl_shape shape, int width,
                    const void *out)
{
	p->dtype = k->out[0].type.dtype;
	p->width = width;
	p->nin = k->nin;
	p->n = sl_shape_size(shape);
	p->aligned = slp_is_wide(out);
	find_axes(p, k, f, shape);
	for (int i = 0; i < k->nin; i++) {
		p->how[i] = reading_of(*p, i, k->in[i].ptr, width);
		p->wide[i] = k->in[i].type.dtype != p->dtype;
	}
}

/* The last step that reads value v of fused.h; -1: none. */
static int last_use(const slp_fused_attrs *f, int nsteps, int v)
{
	for (int i = nsteps - 1; i >= 0; i--)
		if (slp_fused_step_at(f, i).a == v || slp_fused_step_at(f, i).b == v) return i;
	return -1;
}

/* Operand v of step i, with the slots of results. */
static uint8_t place_of(int v, int i, const int *slot)
{
	if (v >= SLP_FUSED_NUMBER) return (uint8_t)(NUMBER + v - SLP_FUSED_NUMBER);
	if (v < SLP_FUSED_RESULT) return (uint8_t)(INPUT + v);
	return v == SLP_FUSED_RESULT + i - 1 ? (uint8_t)LAST : (uint8_t)(SLOT + slot[v - SLP_FUSED_RESULT]);
}

/* A slot is free again after the last step that reads it. */
template <class S> static void arrange(expression<S> *p, const slp_fused_attrs *f)
{
	int slot[SLP_FUSED_STEPS], until[SLP_FUSED_STEPS];
	p->slots = 0;
	for (int i = 0; i < p->nsteps; i++) {
		slp_fused_step s = slp_fused_step_at(f, i);
		p->step[i] = {(uint8_t)s.code, place_of(s.a, i, slot), place_of(s.b, i, slot), 0};
		int last = last_use(f, p->nsteps, SLP_FUSED_RESULT + i), free = 0;
		if (last <= i + 1) continue;
		while (free < p->slots && until[free] > i) free++;
		if (free == p->slots) p->slots++;
		slot[i] = free;
		until[free] = last;
		p->step[i].keep = (uint8_t)(free + 1);
	}
}

/* The expression of a call, whose result has this shape and is stored at `out`, in groups of `width` elements. */
template <class S> static expression<S> expression_of(const struct slp_kernel *k, const slp_fused_attrs *f,
                                                      sl_shape shape, int width, S *out)
{
	typedef typename slp_number<S>::type T;
	expression<S> p = {};
	p.nsteps = slp_fused_count(f);
	p.out = out;
	for (int i = 0; i < SLP_FUSED_NUMBERS; i++) p.number[i] = (T)f->number[i];
	for (int i = 0; i < k->nin; i++) p.in[i] = (const S *)k->in[i].ptr;
	arrange(&p, f);
	plan_of(&p.plan, k, f, shape, width, out);
	for (int i = 0; i < p.plan.ndim; i++)
		p.quick[i] = slp_divisor<uint32_t>::of(p.plan.dim[i] <= INT32_MAX ? p.plan.dim[i] : 1);
	return p;
}

/* ---- compiled kernels -------------------------------------------------------------------------------------------- */

/* Everything that the kernel of a launch depends on: of the attributes, the steps; of a reduction, its axes and the shape of
 * the expression. */
struct description {
	slp_fused_attrs f;
	slp_fused_plan plan;
	int device, reduction, ndim;
	int64_t dim[SL_MAX_NDIM];
};

static void describe(description *d, const struct slp_kernel *k, const slp_fused_attrs *f, sl_shape shape, int width,
                     const void *out)
{
	memset(d, 0, sizeof *d); /* padding, too */
	memcpy(d->f.step, f->step, sizeof d->f.step);
	plan_of(&d->plan, k, f, shape, width, out);
	cudaGetDevice(&d->device);
}

/* The compiled kernel of a description, whose source write(source, its size) writes at its first launches only; NULL: there
 * is none. */
template <class F> static const void *compiled_kernel(const struct slp_kernel *k, const description &d, F write)
{
	char source[SOURCE];
	const void *kernel = NULL;
	bool plain = slp_is_plain_run(k);
	if (slp_compiled_recall(&d, sizeof d, &kernel)) return kernel;
	if (write(source, sizeof source)) kernel = slp_compiled_kernel(source, slp_fused_headers, plain);
	if (kernel || plain) slp_compiled_note(&d, sizeof d, kernel);
	return kernel;
}

static void launch_kernel(const void *kernel, unsigned blocks, const struct slp_kernel *k, const slp_fused_attrs *f,
                          double *parts, int64_t n)
{
	slp_fused_call call = {};
	for (int i = 0; i < k->nin; i++) call.in[i] = k->in[i].ptr;
	memcpy(call.number, f->number, sizeof call.number);
	call.out = k->out[0].ptr;
	call.parts = parts;
	call.n = n;
	slp_compiled_launch(kernel, blocks, SLP_BLOCK, k->stream, &call, sizeof call, SLP_FUSED_POINTERS);
}

#endif
