/* convert_all on GPUs: one launch, whose blocks have parts of all tensors.  Where a tensor is reordered, neighbouring
 * threads write neighbours; the elements that they read are in the cache of their block. Others are converted four elements at a time. */
#include "op.h"
#include "convert_all.h"

#include "common/divide.cuh"
#include "common/lanes.cuh"
#include "common/wide.cuh"

#ifdef SLP_EMU_SMALL
enum { CHUNK = 256 }; /* so that small cases have several, too */
#else
enum { CHUNK = 4096 }; /* elements of a block */
#endif

/* A tensor as slp_turned; end: the block after its last one; at_once: whether groups of elements are aligned. */
template <class From, class To, class I> struct tensor {
	const From *from;
	To *to;
	int64_t size, end;
	bool at_once;
	I rows, columns;
	typename slp_divisor<I>::type by_rows, by_columns;
};

template <class From, class To, class I> struct tensors {
	int count;
	tensor<From, To, I> at[SLP_CONVERT_ALL];
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		for (int i = 0; i < count; i++) f(at[i].from), f(at[i].to);
	}
};

/* Elements [begin, end) of a tensor that is reordered. */
template <class From, class To, class I>
__device__ inline void turn(const tensor<From, To, I> &t, int64_t begin, int64_t end)
{
	for (int64_t i = begin + threadIdx.x; i < end; i += SLP_BLOCK) {
		I row, column, matrix = slp_divided(slp_divided((I)i, t.by_rows, &row), t.by_columns, &column);
		t.to[i] = slp_stored<To>::of((float)t.from[(matrix * t.rows + row) * t.columns + column]);
	}
}

/* Elements [begin, end) of one that keeps its order. */
template <class From, class To, class I>
__device__ inline void copy(const tensor<From, To, I> &t, int64_t begin, int64_t end)
{
	constexpr int W = slp_some_count<From>;
	static_assert(W == slp_some_count<To> && CHUNK % W == 0, "groups of both types are alike");
	for (int64_t i = begin + threadIdx.x * W; i < end; i += SLP_BLOCK * W) {
		float v[W];
		slp_some<To> s;
		slp_some_load(t.from + i, end - i, t.at_once, 1, v);
#pragma unroll
		for (int l = 0; l < W; l++) s.at[l] = slp_stored<To>::of(v[l]);
		slp_some_store(t.to + i, end - i, t.at_once, s);
	}
}

template <class From, class To, class I> __global__ void convert(SLP_IN_PLACE tensors<From, To, I> all)
{
	int n = 0;
	while (blockIdx.x >= all.at[n].end) n++;
	const tensor<From, To, I> &t = all.at[n];
	int64_t begin = (blockIdx.x - (n ? all.at[n - 1].end : 0)) * (int64_t)CHUNK,
	        end = begin + CHUNK < t.size ? begin + CHUNK : t.size;
	if (t.rows > 1) turn(t, begin, end);
	else copy(t, begin, end);
}

template <class From, class To, class I> static void launch(const struct slp_kernel *k)
{
	const slp_convert_all_attrs *a = (const slp_convert_all_attrs *)k->attrs;
	tensors<From, To, I> all = {};
	int64_t blocks = 0;
	for (int i = 0; i < k->nin; i++) {
		struct slp_turned t = slp_turned_of(a, i, k->in[i].type.shape);
		int64_t size = slp_size(&k->in[i]);
		if (size == 0) continue;
		all.at[all.count++] = {(const From *)k->in[i].ptr,
		                       (To *)k->out[i].ptr,
		                       size,
		                       blocks += (size + CHUNK - 1) / CHUNK,
		                       slp_is_some<From>(k->in[i].ptr) && slp_is_some<To>(k->out[i].ptr),
		                       (I)t.rows,
		                       (I)t.columns,
		                       slp_divisor<I>::of(t.rows),
		                       slp_divisor<I>::of(t.columns)};
	}
	if (blocks) SLP_LAUNCH((convert<From, To, I>), (unsigned)blocks, SLP_BLOCK, 0, k->stream, all);
}

extern "C" enum sl_status slp_cuda_convert_all(const struct slp_kernel *k)
{
	bool few = true;
	for (int i = 0; i < k->nin; i++) few = few && slp_size(&k->in[i]) <= INT32_MAX;
	slp_with_numbers<SLP_F32 | SLP_HALVES>(k->in[0].type.dtype, [&](auto in) {
		slp_with_numbers<SLP_F32 | SLP_HALVES>(k->out[0].type.dtype, [&](auto out) {
			if (few) launch<decltype(in), decltype(out), uint32_t>(k); /* division is faster */
			else launch<decltype(in), decltype(out), int64_t>(k);
		});
	});
	return slp_launched(k);
}
