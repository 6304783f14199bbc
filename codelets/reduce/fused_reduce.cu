/* Expressions that are reduced at once, or of which a softmax is taken, on GPUs: compiled where NVRTC is, else interpreted
 * element by element.  Sums have the order of reduce.cu's and softmax.cu's. */
#include "elementwise/fused.cuh"
#include "fused_reduce.h"
#include "loss/softmax.h"
#include "op_list/binary.h"
#include "op_list/loss.h"

/* Blocks that fill a GPU: with fewer, a thread of a reduction of columns takes one column instead of 16 bytes. */
#ifdef SLP_EMU_SMALL
enum { FILLS = 2 };
#else
enum { FILLS = 256 };
#endif

/* ---- how --------------------------------------------------------------------------------------------------------- */

/* Whether rows, columns and their parts begin at multiples of `width` elements. */
static bool are_wide(const slp_reduce_plan &p, int width)
{
	bool wide = p.inner % width == 0 && p.length % width == 0;
	for (int i = 0; i < p.kept.n; i++) wide = wide && p.kept.stride[i] % width == 0;
	for (int i = 0; i < p.gone.n; i++) wide = wide && p.gone.stride[i] % width == 0;
	return wide;
}

/* The power of two from n upwards, at most `most`. */
static int power_for(int64_t n, int most)
{
	int w = 1;
	while (w < most && w < n) w *= 2;
	return w;
}

static void choose_rows(slp_fused_reduction *r, bool wide)
{
	int64_t rows = r->plan.rows < r->plan.gone.size ? r->plan.rows : r->plan.gone.size;
	slp_with_lanes(rows * r->plan.length, [&](auto lanes) { r->lanes = decltype(lanes)::value; });
	if (!wide || r->lanes == 1) r->width = 1;
	r->across = power_for(r->plan.length / r->width, r->lanes);
	r->tasks = r->plan.kept.size * r->plan.parts;
}

static void choose_columns(slp_fused_reduction *r, bool wide)
{
	r->lanes = SLP_BLOCK;
	r->across = power_for(r->plan.inner, r->plan.gone.size < SLP_REDUCE_MIN_ROWS ? (int)SLP_BLOCK : (int)SLP_WARP);
	for (r->width = wide ? r->width : 1;; r->width = 1) {
		r->tasks = r->plan.kept.size * r->plan.nrows *
		           slp_reduce_ceil(r->plan.inner, (int64_t)r->across * r->width);
		if (r->width == 1 || (r->tasks >= FILLS && r->plan.inner >= r->across * r->width)) return;
	}
}

/* As reduce.cu launches it, so that the order of sums is the same. */
static slp_fused_reduction reduction_of(int number, const slp_type &inner, const slp_reduce_attrs *a)
{
	slp_fused_reduction r = {};
	r.reduction = number;
	r.block = SLP_BLOCK;
	r.width = slp_fused_width(inner.dtype);
	r.plan = slp_reduce_plan_of(inner.shape, a);
	bool wide = are_wide(r.plan, r.width);
	if (r.plan.columns) choose_columns(&r, wide);
	else choose_rows(&r, wide);
	return r;
}

/* The group for rows of a softmax; 0: a block cannot hold one (softmax.cu, held_rows). */
static int lanes_of_softmax(int64_t n, sl_dtype dtype)
{
	if (!slp_fused_softmax_suits(n, dtype) || n > SLP_SOFTMAX_HELD * (int64_t)SLP_BLOCK) return 0;
	return n <= SLP_SOFTMAX_HELD * SLP_WARP ? (int)SLP_WARP : (int)SLP_BLOCK;
}

/* ---- compiled ---------------------------------------------------------------------------------------------------- */

/* Queues the compiled kernel of the call, whose source write(f, plan, to, size) writes; false: there is none.  out: NULL, or
 * where the expression's places are written. */
template <class F> static bool launch_compiled(const slp_kernel *k, const slp_fused_attrs &f, const slp_type &inner,
                                               int width, void *out, unsigned blocks, F write)
{
	description d;
	if (!slp_compiled_wanted(sl_shape_size(inner.shape))) return false;
	describe(&d, k, &f, inner.shape, width, out);
	d.reduction = ((const slp_fused_reduce_attrs *)k->attrs)->reduction;
	d.ndim = inner.shape.ndim;
	memcpy(d.dim, inner.shape.dim, sizeof(int64_t) * (size_t)inner.shape.ndim);
	const void *kernel =
	        compiled_kernel(k, d, [&](char *source, size_t size) { return write(&d.f, &d.plan, source, size); });
	if (kernel) launch_kernel(kernel, blocks, k, &f, (double *)k->scratch, d.plan.n);
	return kernel != NULL;
}

static unsigned blocks_of(const slp_fused_reduction &r)
{
	return slp_group_grid(r.tasks, r.lanes);
}

static bool reduce_compiled(const slp_kernel *k, const slp_fused_attrs &f, const slp_type &inner,
                            const slp_fused_reduction &r)
{
	return launch_compiled(k, f, inner, r.width, NULL, blocks_of(r),
	                       [&](const slp_fused_attrs *g, const slp_fused_plan *p, char *to, size_t size) {
		                       return slp_fused_reduce_source(g, p, &r, to, size);
	                       });
}

static bool softmax_compiled(const slp_kernel *k, const slp_fused_attrs &f, const slp_type &inner, int number)
{
	int64_t n = inner.shape.dim[inner.shape.ndim - 1], rows = sl_shape_size(inner.shape) / n;
	slp_fused_rows r = {n, rows, lanes_of_softmax(n, inner.dtype), SLP_BLOCK, number == SLP_FUSED_LOG_SOFTMAX};
	if (!r.lanes) return false;
	return launch_compiled(k, f, inner, slp_fused_width(inner.dtype), k->out[0].ptr, slp_group_grid(rows, r.lanes),
	                       [&](const slp_fused_attrs *g, const slp_fused_plan *p, char *to, size_t size) {
		                       return slp_fused_softmax_source(g, p, &r, to, size);
	                       });
}

/* ---- interpreted ------------------------------------------------------------------------------------------------- */

template <class S> struct reduced {
	expression<S> x;
	slp_fused_reduction r;
	double *parts; /* or NULL */
	template <class F> void emu_pointers(F f)
	{
		x.emu_pointers(f);
		f(parts);
	}
};

struct merging {
	slp_reduction kind;
	__device__ double operator()(double a, double b) const
	{
		return slp_reduce_merge(kind, a, b);
	}
};

/* Element e of the expression, rounded as if it were stored. */
template <class S, class T> __device__ inline double element(const reduced<S> &p, int64_t e, T *slots)
{
	T last[1] = {0};
	compute<1>(p.x, e, 1, slots, last);
	return (double)(T)slp_stored<S>::of(last[0]);
}

template <class S> __device__ inline void put_result(const reduced<S> &p, int64_t part, int64_t output, double a)
{
	slp_reduction kind = (slp_reduction)p.r.reduction;
	if (p.r.plan.parts > 1) p.parts[part * p.r.plan.nout + output] = a;
	else p.x.out[output] = slp_stored<S>::of(slp_reduce_finish(kind, a, (double)p.r.plan.count));
}

/* `rows` of reduce.cu, with a group of p.r.lanes threads. */
template <class S> __global__ void reduced_rows(SLP_IN_PLACE struct reduced<S> p)
{
	typedef typename slp_number<S>::type T;
	SLP_DYN_SHARED(double, shared);
	T *slots = (T *)shared + threadIdx.x;
	slp_reduction kind = (slp_reduction)p.r.reduction;
	int lanes = p.r.lanes, width = p.r.width, me = (int)threadIdx.x % lanes;
	int across = me % p.r.across, down = me / p.r.across;
	int64_t groups = (int64_t)(blockDim.x / lanes);
	for (int64_t t = blockIdx.x * groups + threadIdx.x / lanes; t < p.r.tasks; t += gridDim.x * groups) {
		slp_reduce_part s = slp_reduce_task(&p.r.plan, t);
		int64_t base = slp_axes_offset(&p.r.plan.kept, s.output);
		double a = slp_reduce_start(kind);
		for (int64_t r = s.row + down; r < s.end_row; r += lanes / p.r.across) {
			int64_t row = base + slp_axes_offset(&p.r.plan.gone, r);
			for (int64_t i = s.column + across * width; i < s.end_column; i += p.r.across * width)
				for (int l = 0; l < width; l++)
					a = slp_reduce_step(kind, a, element(p, row + i + l, slots));
		}
		if (lanes == SLP_BLOCK) a = slp_group_reduce<SLP_BLOCK>(a, merging{kind}, slp_reduce_start(kind));
		else if (lanes == SLP_WARP) a = slp_group_reduce<SLP_WARP>(a, merging{kind}, slp_reduce_start(kind));
		if (me == 0) put_result(p, s.part, s.output, a);
	}
}

/* `columns` of reduce.cu. */
template <class S> __global__ void reduced_columns(SLP_IN_PLACE struct reduced<S> p)
{
	typedef typename slp_number<S>::type T;
	__shared__ double cell[SLP_BLOCK];
	SLP_DYN_SHARED(double, shared);
	T *slots = (T *)shared + threadIdx.x;
	const slp_reduce_plan &plan = p.r.plan;
	slp_reduction kind = (slp_reduction)p.r.reduction;
	int me = threadIdx.x, wide = p.r.across, down = me / wide, downs = SLP_BLOCK / wide;
	int64_t tiles = p.r.tasks / (plan.kept.size * plan.nrows);
	for (int64_t t = blockIdx.x; t < p.r.tasks; t += gridDim.x) {
		int64_t i = t % tiles * wide + me % wide, part = t / tiles % plan.nrows, kept = t / tiles / plan.nrows;
		int64_t end = (part + 1) * plan.rows < plan.gone.size ? (part + 1) * plan.rows : plan.gone.size;
		int64_t base = slp_axes_offset(&plan.kept, kept) + i;
		double a = slp_reduce_start(kind);
		for (int64_t r = part * plan.rows + down; i < plan.inner && r < end; r += downs)
			a = slp_reduce_step(kind, a, element(p, base + slp_axes_offset(&plan.gone, r), slots));
		cell[me] = a;
		__syncthreads();
		for (int half = downs / 2; half; half /= 2) {
			if (down < half) cell[me] = slp_reduce_merge(kind, cell[me], cell[me + half * wide]);
			__syncthreads();
		}
		if (down == 0 && i < plan.inner) put_result(p, part, kept * plan.inner + i, cell[me]);
		__syncthreads();
	}
}

template <class S> static void reduce_interpreted(const slp_kernel *k, const slp_fused_attrs &f, const slp_type &inner,
                                                  slp_fused_reduction r)
{
	typedef typename slp_number<S>::type T;
	if (r.plan.columns && r.width > 1) { /* a thread takes one column */
		r.width = 1;
		r.tasks = r.plan.kept.size * r.plan.nrows * slp_reduce_ceil(r.plan.inner, r.across);
	}
	struct reduced<S> p = {
		expression_of<S>(k, &f, inner.shape, 1, (S *)k->out[0].ptr), r, (double *)k->scratch
	};
	size_t shared = (size_t)p.x.slots * SLP_BLOCK * sizeof(T);
	if (r.plan.columns) SLP_LAUNCH(reduced_columns<S>, blocks_of(r), SLP_BLOCK, shared, k->stream, p);
	else SLP_LAUNCH(reduced_rows<S>, blocks_of(r), SLP_BLOCK, shared, k->stream, p);
}

/* ---- both -------------------------------------------------------------------------------------------------------- */

static enum sl_status reduce(const slp_kernel *k, const slp_fused_attrs &f, const slp_fused_last &last)
{
	slp_type inner = slp_fused_reduce_inner(k);
	slp_fused_reduction r = reduction_of(last.number, inner, &last.attrs.reduce);
	if (r.plan.nout == 0) return SL_OK;
	if (!reduce_compiled(k, f, inner, r))
		slp_with_float(inner.dtype, [&](auto zero) { reduce_interpreted<decltype(zero)>(k, f, inner, r); });
	if (r.plan.parts > 1) slp_cuda_reduce_join(k, last.number, &r.plan);
	return slp_launched(k);
}

/* Without a compiled kernel the expression is stored in the result, where each thread of the softmax reads an element before
 * it writes it. */
static enum sl_status softmax(const slp_kernel *k, const slp_fused_attrs &f, const slp_fused_last &last)
{
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	if (softmax_compiled(k, f, slp_fused_reduce_inner(k), last.number)) return slp_launched(k);
	slp_kernel first = *k, second = *k;
	first.op = &slp_op_fused;
	first.attrs = &f;
	enum sl_status s = slp_cuda_fused(&first);
	if (s) return s;
	second.op = last.op;
	second.attrs = &last.attrs;
	second.nin = 1;
	second.in = k->out;
	return last.number == SLP_FUSED_SOFTMAX ? slp_cuda_softmax(&second) : slp_cuda_log_softmax(&second);
}

extern "C" enum sl_status slp_cuda_fused_reduce(const slp_kernel *k)
{
	slp_fused_attrs f;
	slp_fused_last last;
	slp_fused_reduce_split((const slp_fused_reduce_attrs *)k->attrs, &f, &last);
	return slp_fused_is_softmax(last.number) ? softmax(k, f, last) : reduce(k, f, last);
}
