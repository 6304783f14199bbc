/* Attention on a GPU: half types by cuDNN (attention_graph.cu), or else by products of matrices
 * (attention_products.cu), float32 by tiles (attention_tiles.cu), and this file computes the other cases: double
 * precision, wide vectors, no queries or keys, a cache. A block computes one query, or one key in the backward pass,
 * and recomputes the scores of as many keys as it has threads. */
#include "attention.h"
#include "op.h"
#include "common/element.cuh"
#include "common/lanes.cuh"

template <class T> struct operands {
	slp_attention a;
	const T *q, *k, *v, *mask, *dy, *y, *logs;
	const int32_t *place; /* of query 0 among the keys; NULL: a.before */
	T *out, *out_logs, *dq, *dk, *dv;
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		f(q), f(k), f(v), f(mask), f(dy), f(y), f(logs), f(place), f(out), f(out_logs), f(dq), f(dk), f(dv);
	}
};

template <class T> __device__ inline T dot_of(const T *a, const T *b, int64_t n)
{
	T sum = 0;
	for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
	return sum;
}

template <class T>
__device__ inline T score(const operands<T> &w, const slp_attention &a, int64_t h, int64_t i, int64_t j)
{
	if (j >= slp_attention_seen(&a, i)) return (T)-INFINITY;
	T x = (T)a.scale * dot_of(w.q + slp_attention_at(&a, &a.q, h, i), w.k + slp_attention_at(&a, &a.k, h, j), a.d);
	return a.masked ? x + w.mask[slp_attention_mask(&a, h) + i * a.mask_row + j] : x;
}

template <class T> __device__ inline T share(T x, T logs)
{
	return logs == (T)-INFINITY ? T(0) : std::exp(x - logs);
}

/* to[c] += sum over j < n of factor[j] from[j][c], rows `step` apart; the threads share the columns. */
template <class T>
__device__ inline void gather(T *to, const T *factor, const T *from, int64_t step, int64_t n, int64_t width)
{
	for (int64_t c = threadIdx.x; c < width; c += blockDim.x) {
		T sum = to[c];
		for (int64_t j = 0; j < n; j++) sum += factor[j] * from[j * step + c];
		to[c] = sum;
	}
}

template <class T> __device__ inline void scale_row(T *row, T factor, int64_t width)
{
	for (int64_t c = threadIdx.x; c < width; c += blockDim.x) row[c] = factor == 0 ? T(0) : row[c] * factor;
}

template <class T> __global__ void forward(operands<T> w)
{
	__shared__ T p[SLP_BLOCK];
	slp_attention a = w.a;
	if (w.place) a.before = *w.place;
	bool there = !w.place || slp_attention_has_room(&a, a.before);
	for (int64_t row = blockIdx.x; row < a.heads * a.t; row += gridDim.x) {
		int64_t h = row / a.t, i = row % a.t, seen = there ? slp_attention_seen(&a, i) : 0;
		T most = (T)-INFINITY, sum = 0, *y = w.out + slp_attention_at(&a, &a.y, h, i);
		scale_row(y, T(0), a.dv);
		for (int64_t j = 0; j < seen; j += SLP_BLOCK) {
			int64_t n = seen - j < SLP_BLOCK ? seen - j : (int64_t)SLP_BLOCK;
			T x = (int64_t)threadIdx.x < n ? score(w, a, h, i, j + threadIdx.x) : (T)-INFINITY;
			T m = slp_block_reduce(x, slp_max_of(), (T)-INFINITY);
			m = slp_max_of()(m, most);
			T before = share(most, m), mine = share(x, m);
			p[threadIdx.x] = mine;
			sum = sum * before + slp_block_reduce(mine, slp_sum_of(), T(0));
			most = m;
			scale_row(y, before, a.dv);
			__syncthreads();
			gather(y, p, w.v + slp_attention_at(&a, &a.v, h, j), a.v.row, n, a.dv);
			__syncthreads();
		}
		scale_row(y, sum == 0 ? T(0) : 1 / sum, a.dv);
		for (int64_t c = threadIdx.x; !there && c < a.dv; c += blockDim.x) y[c] = (T)NAN;
		if (threadIdx.x == 0 && w.out_logs) w.out_logs[row] = sum == 0 ? (T)-INFINITY : most + std::log(sum);
	}
}

/* The gradient of query i through key j, before the scale; *p gets the weight. */
template <class T> __device__ inline T slope(const operands<T> &w, int64_t h, int64_t i, int64_t j, T *p)
{
	const slp_attention &a = w.a;
	int64_t at = slp_attention_at(&a, &a.y, h, i);
	*p = share(score(w, a, h, i, j), w.logs[h * a.t + i]);
	T d = dot_of(w.dy + at, w.v + slp_attention_at(&a, &a.v, h, j), a.dv), all = dot_of(w.dy + at, w.y + at, a.dv);
	return *p * (d - all) * (T)a.scale;
}

template <class T> __global__ void back_to_queries(operands<T> w)
{
	__shared__ T ds[SLP_BLOCK];
	const slp_attention &a = w.a;
	for (int64_t row = blockIdx.x; row < a.heads * a.t; row += gridDim.x) {
		int64_t h = row / a.t, i = row % a.t, seen = slp_attention_seen(&a, i);
		T p, *dq = w.dq + slp_attention_at(&a, &a.q, h, i);
		scale_row(dq, T(0), a.d);
		for (int64_t j = 0; j < seen; j += SLP_BLOCK) {
			int64_t n = seen - j < SLP_BLOCK ? seen - j : (int64_t)SLP_BLOCK;
			if ((int64_t)threadIdx.x < n) ds[threadIdx.x] = slope(w, h, i, j + threadIdx.x, &p);
			__syncthreads();
			gather(dq, ds, w.k + slp_attention_at(&a, &a.k, h, j), a.k.row, n, a.d);
			__syncthreads();
		}
	}
}

template <class T> __global__ void back_to_keys(operands<T> w)
{
	__shared__ T ds[SLP_BLOCK], p[SLP_BLOCK];
	const slp_attention &a = w.a;
	for (int64_t key = blockIdx.x; key < a.heads * a.s; key += gridDim.x) {
		int64_t h = key / a.s, j = key % a.s;
		T *dk = w.dk + slp_attention_at(&a, &a.k, h, j), *dv = w.dv + slp_attention_at(&a, &a.v, h, j);
		scale_row(dk, T(0), a.d);
		scale_row(dv, T(0), a.dv);
		for (int64_t i = 0; i < a.t; i += SLP_BLOCK) {
			int64_t n = a.t - i < SLP_BLOCK ? a.t - i : (int64_t)SLP_BLOCK;
			if ((int64_t)threadIdx.x < n)
				ds[threadIdx.x] = slope(w, h, i + threadIdx.x, j, &p[threadIdx.x]);
			__syncthreads();
			gather(dk, ds, w.q + slp_attention_at(&a, &a.q, h, i), a.q.row, n, a.d);
			gather(dv, p, w.dy + slp_attention_at(&a, &a.y, h, i), a.y.row, n, a.dv);
			__syncthreads();
		}
	}
}

/* SL_OK: it is queued. Half types have no other kernel here: they are declined. Products take heads that follow each
 * other. */
static bool by_others(const struct slp_kernel *k, const slp_attention &a, bool back, bool in_turn,
                      enum sl_status *status)
{
	enum sl_dtype type = k->in[0].type.dtype;
	bool half = slp_is_half(type), tiles = type == SL_FLOAT32 || (half && !in_turn);
	if (slp_attention_by_graph(k, &a, back) || (tiles && slp_attention_by_tiles(k, &a, back))) {
		*status = slp_launched(k);
		return true;
	}
	*status = SL_EUNSUPPORTED;
	if (!in_turn) return half;
	if (type == SL_FLOAT32 && a.d <= SLP_ATTENTION_TILE && a.dv <= SLP_ATTENTION_TILE) return false;
	*status = slp_attention_by_products(k, &a, back);
	if (*status == SL_EUNSUPPORTED && half && slp_attention_by_tiles(k, &a, back)) *status = slp_launched(k);
	return *status != SL_EUNSUPPORTED || half;
}

static enum sl_status run_forward(const struct slp_kernel *k, const slp_attention &a, bool in_turn)
{
	enum sl_status status;
	if (by_others(k, a, false, in_turn, &status)) return status;
	slp_with<SLP_FLOATS>(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		operands<T> w = {};
		w.a = a;
		w.q = (const T *)k->in[0].ptr, w.k = (const T *)k->in[1].ptr, w.v = (const T *)k->in[2].ptr;
		if (k->nin > 3) w.mask = (const T *)k->in[3].ptr;
		w.out = (T *)k->out[0].ptr, w.out_logs = (T *)k->out[1].ptr;
		SLP_LAUNCH(forward<T>, slp_blocks(w.a.heads * w.a.t, 65536), SLP_BLOCK, 0, k->stream, w);
	});
	return slp_launched(k);
}

static enum sl_status run_back(const struct slp_kernel *k, const slp_attention &a, bool in_turn)
{
	enum sl_status status;
	if (by_others(k, a, true, in_turn, &status)) return status;
	slp_with<SLP_FLOATS>(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		operands<T> w = {};
		w.a = a;
		w.dy = (const T *)k->in[0].ptr, w.q = (const T *)k->in[1].ptr, w.k = (const T *)k->in[2].ptr;
		w.v = (const T *)k->in[3].ptr, w.y = (const T *)k->in[4].ptr, w.logs = (const T *)k->in[5].ptr;
		if (k->nin > 6) w.mask = (const T *)k->in[6].ptr;
		w.dq = (T *)k->out[0].ptr, w.dk = (T *)k->out[1].ptr, w.dv = (T *)k->out[2].ptr;
		SLP_LAUNCH(back_to_queries<T>, slp_blocks(w.a.heads * w.a.t, 65536), SLP_BLOCK, 0, k->stream, w);
		SLP_LAUNCH(back_to_keys<T>, slp_blocks(w.a.heads * w.a.s, 65536), SLP_BLOCK, 0, k->stream, w);
	});
	return slp_launched(k);
}

extern "C" enum sl_status slp_cuda_attention(const struct slp_kernel *k)
{
	return run_forward(k, slp_attention_sizes(k, 0, 3), true);
}

extern "C" enum sl_status slp_cuda_attention_grad(const struct slp_kernel *k)
{
	return run_back(k, slp_attention_sizes(k, 1, 6), true);
}

extern "C" enum sl_status slp_cuda_attention_heads(const struct slp_kernel *k)
{
	struct slp_heads_call c;
	slp_heads_call_of(k, false, &c);
	return run_forward(&c.k, c.a, false);
}

extern "C" enum sl_status slp_cuda_attention_heads_grad(const struct slp_kernel *k)
{
	struct slp_heads_call c;
	slp_heads_call_of(k, true, &c);
	return run_back(&c.k, c.a, false);
}

/* As in attention_kept.cu. */
template <class T> __global__ void append(const T *rows, T *cache, slp_attention a, const int32_t *place, int64_t width)
{
	if (!slp_attention_has_room(&a, *place)) return;
	SLP_GRID_STRIDE(e, a.heads * a.t * width)
	{
		int64_t h = e / width / a.t, i = e / width % a.t;
		cache[(h * a.s + *place + i) * width + e % width] = rows[e];
	}
}

extern "C" enum sl_status slp_cuda_cached_attention(const struct slp_kernel *k)
{
	slp_attention sizes = slp_attention_of((const slp_attention_attrs *)k->attrs, k->in[0].type.shape,
	                                       k->in[3].type.shape, k->in[4].type.shape, NULL);
	if (slp_attention_by_parts(k, &sizes)) return slp_launched(k);
	if (slp_is_half(k->in[0].type.dtype)) return SL_EUNSUPPORTED; /* in float32, then */
	slp_with<SLP_FLOATS>(k->in[0].type.dtype, [&](auto zero) {
		typedef decltype(zero) T;
		operands<T> w = {};
		T *keys = (T *)k->in[3].ptr, *values = (T *)k->in[4].ptr;
		w.a = sizes;
		w.q = (const T *)k->in[0].ptr, w.k = keys, w.v = values;
		w.place = (const int32_t *)k->in[5].ptr;
		w.out = (T *)k->out[0].ptr;
		SLP_LAUNCH(append<T>, slp_grid(w.a.heads * w.a.t * w.a.d), SLP_BLOCK, 0, k->stream,
		           (const T *)k->in[1].ptr, keys, w.a, w.place, w.a.d);
		SLP_LAUNCH(append<T>, slp_grid(w.a.heads * w.a.t * w.a.dv), SLP_BLOCK, 0, k->stream,
		           (const T *)k->in[2].ptr, values, w.a, w.place, w.a.dv);
		SLP_LAUNCH(forward<T>, slp_blocks(w.a.heads * w.a.t, 65536), SLP_BLOCK, 0, k->stream, w);
	});
	return slp_launched(k);
}
