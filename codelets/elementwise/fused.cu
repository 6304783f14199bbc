/* Expressions of elementwise functions on GPUs. Where NVRTC is, large ones are compiled (fused_source.c, compiled.h). For
 * others, each thread interprets a step for several elements at a time; a result that only the next step reads stays in
 * registers, others go to shared memory. */
#include "compiled.h"
#include "fused_source.h"
#include "op.h"
#include "common/divide.cuh"
#include "common/lanes.cuh"
#include "common/operands.h"
#include "common/scalar.h"
#include "common/tune.cuh"
#include "common/wide.cuh"
#include "reduce/fused_reduce.h"

/* The place of a step's operand: the previous step's result, input i, slot i of shared memory, number i. */
enum { LAST, INPUT, SLOT = 32, NUMBER = 64 };
/* Threads of a block if shared memory is too small for more. */
enum { FEW = 64, SLOTS_OF_MANY = 5 };
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

/* Elements from e on of input i; there are n of them. */
template <int W, class S, class T> __device__ inline void fetch(const expression<S> &p, int i, int64_t e, int n, T *v)
{
	const S *in = p.in[i];
	struct alignas(16) several {
		S at[W];
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

template <int W, class S, class T> __device__ inline void put(const expression<S> &p, int64_t e, int n, const T *v)
{
	struct alignas(16) several {
		S at[W];
	} s;
	if (n == W && p.plan.aligned) {
#pragma unroll
		for (int l = 0; l < W; l++) s.at[l] = v[l];
		*(several *)(p.out + e) = s;
	} else {
#pragma unroll
		for (int l = 0; l < W; l++)
			if (l < n) p.out[e + l] = v[l];
	}
}

template <class S> __global__ void fused_kernel(SLP_IN_PLACE struct expression<S> p)
{
	typedef typename slp_number<S>::type T;
	constexpr int W = expression<S>::W;
	SLP_DYN_SHARED(double, shared);
	T *slots = (T *)shared + threadIdx.x;
	SLP_GRID_STRIDE(group, (p.plan.n + W - 1) / W)
	{
		int64_t e = group * W;
		int n = p.plan.n - e < W ? (int)(p.plan.n - e) : W;
		T last[W] = {0}, a[W] = {0}, b[W] = {0};
		for (int i = 0; i < p.nsteps; i++) {
			struct step s = p.step[i];
			operand<W>(p, s.a, e, n, last, slots, a);
			operand<W>(p, s.b, e, n, last, slots, b);
			evaluate<W>(s.code, a, b, last);
			if (s.keep)
#pragma unroll
				for (int l = 0; l < W; l++) slots[((s.keep - 1) * W + l) * blockDim.x] = last[l];
		}
		put<W>(p, e, n, last);
	}
}

/* Whether axis i of the result can be merged with the last one of the plan, in all inputs. */
static bool merges(const slp_fused_plan &p, const int64_t step[][SL_MAX_NDIM], int i, int64_t dim)
{
	if (p.ndim == 0) return false;
	for (int j = 0; j < p.nin; j++)
		if (p.stride[j][p.ndim - 1] != step[j][i] * dim) return false;
	return true;
}

/* The axes of the result, merged where all inputs allow it: one axis if no input is broadcast. */
static void find_axes(slp_fused_plan *p, const struct slp_kernel *k, sl_shape out)
{
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

/* Each thread computes `width` elements at once, of 16 bytes or a multiple.  out: NULL if they are not stored. */
static void plan_of(slp_fused_plan *p, const struct slp_kernel *k, sl_shape shape, int width, const void *out)
{
	p->dtype = k->out[0].type.dtype;
	p->nin = k->nin;
	p->n = sl_shape_size(shape);
	p->aligned = slp_is_wide(out);
	find_axes(p, k, shape);
	for (int i = 0; i < k->nin; i++) p->how[i] = reading_of(*p, i, k->in[i].ptr, width);
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

template <class S> static void launch(const struct slp_kernel *k, int64_t n)
{
	typedef typename slp_number<S>::type T;
	constexpr int W = expression<S>::W;
	const slp_fused_attrs *f = (const slp_fused_attrs *)k->attrs;
	expression<S> p = {};
	p.nsteps = slp_fused_count(f);
	p.out = (S *)k->out[0].ptr;
	for (int i = 0; i < SLP_FUSED_NUMBERS; i++) p.number[i] = (T)f->number[i];
	for (int i = 0; i < k->nin; i++) p.in[i] = (const S *)k->in[i].ptr;
	arrange(&p, f);
	plan_of(&p.plan, k, k->out[0].type.shape, W, p.out);
	for (int i = 0; i < p.plan.ndim; i++)
		p.quick[i] = slp_divisor<uint32_t>::of(p.plan.dim[i] <= INT32_MAX ? p.plan.dim[i] : 1);
	unsigned threads = p.slots > SLOTS_OF_MANY ? (unsigned)FEW : (unsigned)SLP_BLOCK;
	SLP_LAUNCH(fused_kernel<S>, slp_grid((n + W - 1) / W * SLP_BLOCK / threads), threads,
	           p.slots * W * threads * sizeof(T), k->stream, p);
}

/* Everything that the kernel of a launch depends on: of the attributes, the steps; of a reduction, its axes and the shape of
 * the expression. */
struct description {
	slp_fused_attrs f;
	slp_fused_plan plan;
	int device, reduction, ndim;
	int64_t dim[SL_MAX_NDIM];
};

static void describe(description *d, const struct slp_kernel *k, const slp_fused_attrs *f, sl_shape shape,
                     const void *out)
{
	memset(d, 0, sizeof *d); /* padding, too */
	memcpy(d->f.step, f->step, sizeof d->f.step);
	plan_of(&d->plan, k, shape, slp_fused_width(k->out[0].type.dtype), out);
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

/* Whether the expression is compiled, and queued. */
static bool launch_compiled(const struct slp_kernel *k, int64_t n)
{
	const slp_fused_attrs *f = (const slp_fused_attrs *)k->attrs;
	int width = slp_fused_width(k->out[0].type.dtype);
	description d;
	if (!slp_compiled_wanted(n)) return false;
	describe(&d, k, f, k->out[0].type.shape, k->out[0].ptr);
	const void *kernel = compiled_kernel(
	        k, d, [&](char *source, size_t size) { return slp_fused_source(&d.f, &d.plan, source, size); });
	if (kernel) launch_kernel(kernel, slp_grid((n + width - 1) / width), k, f, NULL, n);
	return kernel != NULL;
}

extern "C" enum sl_status slp_cuda_fused(const struct slp_kernel *k)
{
	const slp_fused_attrs *f = (const slp_fused_attrs *)k->attrs;
	int64_t n = slp_size(&k->out[0]);
	if (n == 0) return SL_OK;
	for (int i = 0; i < slp_fused_count(f); i++)
		if (slp_fused_step_at(f, i).own)
			return slp_kernel_fail(k, SL_EUNSUPPORTED, "step %d runs on CPUs only", i);
	if (!launch_compiled(k, n))
		slp_with_float(k->out[0].type.dtype, [&](auto zero) { launch<decltype(zero)>(k, n); });
	return slp_launched(k);
}

/* ---- reduced ----------------------------------------------------------------------------------------------------- */

/* As reduce.cu launches them: so the order of sums is the same. */
static slp_fused_rows rows_of(int reduction, const slp_type &inner, const slp_reduce_attrs *a)
{
	slp_fused_rows r = {reduction, SLP_BLOCK, SLP_BLOCK, 1, slp_reduce_plan_of(inner.shape, a)};
	int64_t rows = r.plan.rows < r.plan.gone.size ? r.plan.rows : r.plan.gone.size;
	slp_with_lanes(rows * r.plan.length, [&](auto lanes) { r.lanes = decltype(lanes)::value; });
	while (r.across < r.lanes && r.across < r.plan.length / slp_fused_width(inner.dtype)) r.across *= 2;
	return r;
}

/* Whether expression and reduction are compiled, and queued. */
static bool launch_reduced(const struct slp_kernel *k)
{
	slp_fused_attrs f;
	slp_reduce_attrs a;
	description d;
	const slp_fused_reduce_attrs *both = (const slp_fused_reduce_attrs *)k->attrs;
	slp_type inner = slp_fused_reduce_inner(k);
	int reduction = slp_fused_reduce_split(both, &f, &a);
	if (!slp_compiled_wanted(sl_shape_size(inner.shape)) || !slp_fused_reduce_suits(&inner, &a)) return false;
	slp_fused_rows r = rows_of(reduction, inner, &a);
	describe(&d, k, &f, inner.shape, NULL);
	d.reduction = both->reduction;
	d.ndim = inner.shape.ndim;
	memcpy(d.dim, inner.shape.dim, sizeof(int64_t) * (size_t)inner.shape.ndim);
	const void *kernel = compiled_kernel(k, d, [&](char *source, size_t size) {
		return slp_fused_reduce_source(&d.f, &d.plan, &r, source, size);
	});
	if (!kernel) return false;
	launch_kernel(kernel, slp_group_grid(r.plan.kept.size * r.plan.parts, r.lanes), k, &f, (double *)k->scratch,
	              d.plan.n);
	if (r.plan.parts > 1) slp_cuda_reduce_join(k, reduction, &r.plan);
	return true;
}

extern "C" enum sl_status slp_cuda_fused_reduce(const struct slp_kernel *k)
{
	if (launch_reduced(k)) return slp_launched(k);
	return slp_fused_then_reduce(k, SL_DEVICE_GPU);
}
