/* Expressions of elementwise functions on GPUs, compiled or interpreted (fused.cuh). */
#include "fused.cuh"

/* Threads of a block if shared memory is too small for more. */
enum { FEW = 64, SLOTS_OF_MANY = 5 };

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
		T last[W] = {0};
		compute<W>(p, e, n, slots, last);
		put<W>(p, e, n, last);
	}
}

template <class S> static void launch(const struct slp_kernel *k, int64_t n)
{
	typedef typename slp_number<S>::type T;
	constexpr int W = expression<S>::W;
	const slp_fused_attrs *f = (const slp_fused_attrs *)k->attrs;
	expression<S> p = expression_of<S>(k, f, k->out[0].type.shape, W, (S *)k->out[0].ptr);
	unsigned threads = p.slots > SLOTS_OF_MANY ? (unsigned)FEW : (unsigned)SLP_BLOCK;
	SLP_LAUNCH(fused_kernel<S>, slp_grid((n + W - 1) / W * SLP_BLOCK / threads), threads,
	           p.slots * W * threads * sizeof(T), k->stream, p);
}

/* Whether the expression is compiled, and queued. */
static bool launch_compiled(const struct slp_kernel *k, int64_t n)
{
	const slp_fused_attrs *f = (const slp_fused_attrs *)k->attrs;
	int width = slp_fused_width(k->out[0].type.dtype);
	description d;
	if (!slp_compiled_wanted(n)) return false;
	describe(&d, k, f, k->out[0].type.shape, width, k->out[0].ptr);
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
