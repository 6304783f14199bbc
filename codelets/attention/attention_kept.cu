/* Attention over cached keys on a GPU, in float32 or half types; keys and values may have either. The blocks share a
 * query's keys, so that one step of a sequence occupies a whole GPU, and a second kernel combines the parts. A warp
 * computes one key at a time. */
#include "attention.h"
#include "op.h"
#include "common/lanes.cuh"

template <class S, class T> struct kept {
	slp_attention a;
	const S *q;
	const T *keys, *values;
	const int32_t *place; /* of query 0 among the keys */
	S *out;
	float *parts_of; /* for each part of a query: largest score, sum of weights, weighted sum of values */
	int64_t parts, each;
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		f(q), f(keys), f(values), f(place), f(out), f(parts_of);
	}
};

static __device__ inline float share(float x, float most)
{
	return most == -INFINITY ? (x == x ? 0.0f : x) : expf(x - most);
}

/* The scores of `n` keys from j on. */
template <class S, class T>
__device__ inline void score(const kept<S, T> &w, int64_t row, int64_t j, int64_t n, float *scores)
{
	const slp_attention &a = w.a;
	const S *q = w.q + row * a.d;
	for (int64_t i = threadIdx.x / SLP_WARP; i < n; i += SLP_BLOCK / SLP_WARP) {
		const T *key = w.keys + (row / a.t * a.s + j + i) * a.d;
		float sum = 0;
		for (int64_t c = threadIdx.x % SLP_WARP; c < a.d; c += SLP_WARP) sum += (float)q[c] * (float)key[c];
		sum = slp_group_reduce<SLP_WARP>(sum, slp_sum_of(), 0.0f);
		if (threadIdx.x % SLP_WARP == 0) scores[i] = (float)a.scale * sum;
	}
}

/* The number of threads that divide the columns of one value among them; each such group of threads has its own
 * keys. */
static __device__ inline int columns_of(const slp_attention &a)
{
	int n = SLP_WARP;
	while (n < a.dv) n *= 2;
	return n;
}

template <class S, class T> __global__ void attend(kept<S, T> w)
{
	__shared__ float scores[SLP_BLOCK], sums[SLP_BLOCK];
	slp_attention a = w.a;
	a.before = *w.place;
	bool there = slp_attention_has_room(&a, a.before);
	int columns = columns_of(a), c = (int)threadIdx.x % columns, group = (int)threadIdx.x / columns;
	for (int64_t n = blockIdx.x; n < a.heads * a.t * w.parts; n += gridDim.x) {
		int64_t row = n / w.parts, first = n % w.parts * w.each,
		        end = there ? slp_attention_seen(&a, row % a.t) : 0;
		float most = -INFINITY, sum = 0, y = 0;
		if (end > first + w.each) end = first + w.each;
		for (int64_t j = first; j < end; j += SLP_BLOCK) {
			int64_t keys = end - j < SLP_BLOCK ? end - j : (int64_t)SLP_BLOCK;
			__syncthreads();
			score(w, row, j, keys, scores);
			__syncthreads();
			float x = (int64_t)threadIdx.x < keys ? scores[threadIdx.x] : -INFINITY;
			float m = slp_max_of()(slp_block_reduce(x, slp_max_of(), -INFINITY), most);
			float mine = share(x, m), before = share(most, m);
			sum = sum * before + slp_block_reduce(mine, slp_sum_of(), 0.0f);
			most = m;
			y *= before;
			scores[threadIdx.x] = mine;
			__syncthreads();
			const T *values = w.values + (row / a.t * a.s + j) * a.dv + c;
			for (int64_t i = group; c < a.dv && i < keys; i += SLP_BLOCK / columns)
				y += scores[i] * (float)values[i * a.dv];
		}
		__syncthreads();
		sums[threadIdx.x] = y;
		__syncthreads();
		for (int g = 1; group == 0 && g < SLP_BLOCK / columns; g++) y += sums[g * columns + c];
		float *part = w.parts_of + n * (a.dv + 2);
		if (w.parts > 1 && threadIdx.x == 0) part[0] = most, part[1] = sum;
		if (group || c >= a.dv) continue;
		if (w.parts > 1) part[2 + c] = y;
		else w.out[row * a.dv + c] = !there ? NAN : sum == 0 ? 0 : y / sum;
	}
}

template <class S, class T> __global__ void together(kept<S, T> w)
{
	const slp_attention &a = w.a;
	bool there = slp_attention_has_room(&a, *w.place);
	SLP_GRID_STRIDE(e, a.heads * a.t * a.dv)
	{
		const float *part = w.parts_of + e / a.dv * w.parts * (a.dv + 2);
		float most = -INFINITY, sum = 0, y = 0;
		for (int64_t p = 0; p < w.parts; p++) most = slp_max_of()(part[p * (a.dv + 2)], most);
		for (int64_t p = 0; p < w.parts; p++) {
			float by = share(part[p * (a.dv + 2)], most);
			sum += by * part[p * (a.dv + 2) + 1];
			y += by * part[p * (a.dv + 2) + 2 + e % a.dv];
		}
		w.out[e] = !there ? NAN : sum == 0 ? 0 : y / sum;
	}
}

/* Copies rows (heads, t, width) into a cache (heads, s, width), from a position on. */
template <class S, class T>
__global__ void append(const S *rows, T *cache, slp_attention a, const int32_t *place, int64_t width)
{
	if (!slp_attention_has_room(&a, *place)) return;
	SLP_GRID_STRIDE(e, a.heads * a.t * width)
	{
		int64_t h = e / width / a.t, i = e / width % a.t;
		cache[(h * a.s + *place + i) * width + e % width] = rows[e];
	}
}

template <class S, class T> static void launch(const struct slp_kernel *k, const slp_attention &a)
{
	kept<S, T> w = {};
	T *keys = (T *)k->in[3].ptr, *values = (T *)k->in[4].ptr;
	w.a = a;
	w.q = (const S *)k->in[0].ptr, w.keys = keys, w.values = values, w.place = (const int32_t *)k->in[5].ptr;
	w.out = (S *)k->out[0].ptr, w.parts_of = (float *)k->scratch;
	w.parts = slp_attention_parts(&a), w.each = (a.s + w.parts - 1) / w.parts;
	SLP_LAUNCH((append<S, T>), slp_grid(a.heads * a.t * a.d), SLP_BLOCK, 0, k->stream, (const S *)k->in[1].ptr,
	           keys, a, w.place, a.d);
	SLP_LAUNCH((append<S, T>), slp_grid(a.heads * a.t * a.dv), SLP_BLOCK, 0, k->stream, (const S *)k->in[2].ptr,
	           values, a, w.place, a.dv);
	SLP_LAUNCH((attend<S, T>), slp_blocks(a.heads * a.t * w.parts, 65536), SLP_BLOCK, 0, k->stream, w);
	if (w.parts > 1) SLP_LAUNCH((together<S, T>), slp_grid(a.heads * a.t * a.dv), SLP_BLOCK, 0, k->stream, w);
}

extern "C" bool slp_attention_by_parts(const struct slp_kernel *k, const struct slp_attention *a)
{
	enum sl_dtype type = k->in[0].type.dtype, cache = k->in[3].type.dtype;
	bool done = false;
	if (a->dv > SLP_BLOCK || a->dv > 256) return false;
	slp_with_numbers<SLP_F32 | SLP_HALVES>(type, [&](auto zero) {
		typedef decltype(zero) S;
		if (cache == SL_FLOAT32) launch<S, float>(k, *a);
		else launch<S, S>(k, *a);
		done = true;
	});
	return done;
}
