/* Attention on a GPU by tiles: a block computes some queries and loops over tiles of keys, so that scores stay in
 * shared memory. The backward pass recomputes the scores twice, once by queries and once by keys, so that the gradients
 * of both have one order of sums; one launch computes both. Products are computed in float32 whatever the type. T. Dao
 * et al., arXiv:2205.14135, 2022.
 *
 * The threads of a block are a square of SIDE × SIDE; each computes M × M scores of a tile, whose queries and keys are
 * SIDE apart.  Tiles lie in shared memory, four numbers after the other, in an order that lets neighbouring threads
 * read from different banks. */
#include "attention.h"
#include "op.h"
#include "common/lanes.cuh"

enum { SIDE = SLP_BLOCK >= 256 ? 16 : 8, FREE_SHARED = 48 << 10 };

#ifdef SLP_EMULATE
#define UNROLL(n)
#define TWO_AT_ONCE
#else
#define PRAGMA(text) _Pragma(#text)
#define UNROLL(n) PRAGMA(unroll n)
#define TWO_AT_ONCE __launch_bounds__(SLP_BLOCK, 2) /* blocks of a multiprocessor */
#endif

/* a b + c, rounded once: kernels are compiled without contraction. */
static __device__ inline float fused(float a, float b, float c)
{
#ifdef SLP_EMULATE
	return a * b + c; /* which has no instruction there */
#else
	return fmaf(a, b, c);
#endif
}

template <class S> struct tiled {
	slp_attention a;
	const S *q, *k, *v, *mask, *dy, *y;
	S *out, *dq, *dk, *dv;
	slp_vector<float> logs; /* forward: to be set */
	int64_t queries, keys;  /* tiles */
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		f(q), f(k), f(v), f(mask), f(dy), f(y), f(out), f(dq), f(dk), f(dv), f(logs);
	}
};

/* ---- a tile ------------------------------------------------------------------------------------------------------ */

/* The place of column c of a row in a tile of W columns. */
template <int W> __device__ inline int spot(int row, int c)
{
	return row * W + ((((c >> 2) ^ row) & 7 & (W / 4 - 1)) | ((c >> 2) & ~7)) * 4 + (c & 3);
}

template <int W> __device__ inline float4 quad(const float *tile, int row, int c)
{
	return *(const float4 *)(tile + spot<W>(row, c));
}

/* Rows of vectors, with zeros behind the last row and column. */
template <int W, int ROWS, class S>
__device__ inline void load(float *tile, const S *from, int64_t step, int64_t rows, int64_t width)
{
	for (int e = threadIdx.x; e < ROWS * W / 4; e += SLP_BLOCK) {
		int row = e / (W / 4), c = e % (W / 4) * 4;
		float4 x = {0, 0, 0, 0};
		if (row < rows) {
			const S *p = from + row * step + c;
			bool whole = sizeof(S) == sizeof(float) && c + 3 < width && (uintptr_t)p % sizeof x == 0;
			if (whole) x = *(const float4 *)p;
			if (!whole && c < width) x.x = (float)p[0];
			if (!whole && c + 1 < width) x.y = (float)p[1];
			if (!whole && c + 2 < width) x.z = (float)p[2];
			if (!whole && c + 3 < width) x.w = (float)p[3];
		}
		*(float4 *)(tile + spot<W>(row, c)) = x;
	}
}

/* The g-th column of a row that a thread has: in groups of four neighbours, or of two if rows are short. */
template <int W> __device__ inline int column(int g)
{
	constexpr int N = W / SIDE < 4 ? W / SIDE : 4;
	return (g / N * SIDE + (int)(threadIdx.x % SIDE)) * N + g % N;
}

/* s[i][j] = row i of a · row j of b */
template <int W, int M> __device__ inline void multiply(float s[M][M], const float *a, const float *b)
{
	int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
	UNROLL()
	for (int i = 0; i < M; i++) UNROLL()
	for (int j = 0; j < M; j++) s[i][j] = 0;
	UNROLL(4)
	for (int c = 0; c < W; c += 4) {
		float4 p[M], r[M];
		UNROLL()
		for (int i = 0; i < M; i++) p[i] = quad<W>(a, y + SIDE * i, c);
		UNROLL()
		for (int j = 0; j < M; j++) r[j] = quad<W>(b, x + SIDE * j, c);
		UNROLL()
		for (int i = 0; i < M; i++) UNROLL()
		for (int j = 0; j < M; j++) {
			s[i][j] = fused(p[i].x, r[j].x, s[i][j]);
			s[i][j] = fused(p[i].y, r[j].y, s[i][j]);
			s[i][j] = fused(p[i].z, r[j].z, s[i][j]);
			s[i][j] = fused(p[i].w, r[j].w, s[i][j]);
		}
	}
}

template <int N> __device__ inline void columns(float *to, const float *from)
{
	if constexpr (N == 4) {
		float4 x = *(const float4 *)from;
		to[0] = x.x, to[1] = x.y, to[2] = x.z, to[3] = x.w;
	} else {
		float2 x = *(const float2 *)from;
		to[0] = x.x, to[1] = x.y;
	}
}

/* to[i][g] += sum over k of e[row i][k] x[k][column g]; e has as many columns as x has rows. */
template <int W, int M> __device__ inline void gather(float (*to)[W / SIDE], const float *e, const float *x)
{
	constexpr int TILE = M * SIDE, C = W / SIDE, N = C < 4 ? C : 4;
	int y = threadIdx.x / SIDE;
	UNROLL(2)
	for (int k = 0; k < TILE; k += 4) {
		float4 p[M];
		UNROLL()
		for (int i = 0; i < M; i++) p[i] = quad<TILE>(e, y + SIDE * i, k);
		UNROLL()
		for (int l = 0; l < 4; l++) {
			float r[C];
			UNROLL()
			for (int g = 0; g < C; g += N) columns<N>(r + g, x + spot<W>(k + l, column<W>(g)));
			UNROLL()
			for (int i = 0; i < M; i++) {
				float f = l == 0 ? p[i].x : l == 1 ? p[i].y : l == 2 ? p[i].z : p[i].w;
				UNROLL()
				for (int g = 0; g < C; g++) to[i][g] = fused(f, r[g], to[i][g]);
			}
		}
	}
}

template <int W, int M, class S>
__device__ inline void store(S *to, int64_t step, int64_t rows, int64_t width, float (*from)[W / SIDE], const float *by)
{
	int y = threadIdx.x / SIDE;
	UNROLL()
	for (int i = 0; i < M; i++) UNROLL()
	for (int g = 0; g < W / SIDE; g++)
		if (y + SIDE * i < rows && column<W>(g) < width)
			to[(y + SIDE * i) * step + column<W>(g)] = from[i][g] * (by ? by[i] : 1);
}

template <int C, int M> __device__ inline void clear(float (*x)[C])
{
	UNROLL()
	for (int i = 0; i < M; i++) UNROLL()
	for (int g = 0; g < C; g++) x[i][g] = 0;
}

/* Combines v over the threads that have the same rows. */
template <class F> __device__ inline float across(float v, F combine)
{
	for (int d = SIDE / 2; d; d >>= 1) v = combine(v, __shfl_xor_sync(0xffffffffu, v, d));
	return v;
}

static __device__ inline float share(float x, float logs)
{
	return logs == -INFINITY ? (x == x ? 0.0f : x) : expf(x - logs);
}

/* The range of a head's keys that a query sees. */
template <class S> struct sight {
	const S *mask; /* of the query; NULL: there is none */
	int64_t seen;  /* keys */

	__device__ sight(const tiled<S> &w, const S *of_head, int64_t query)
	{
		seen = query < w.a.t ? slp_attention_seen(&w.a, query) : 0;
		mask = of_head ? of_head + query * w.a.mask_row : NULL;
	}
	/* A product as a score: -inf where the query does not see the key. */
	__device__ float score(const tiled<S> &w, int64_t key, float product) const
	{
		float x = (float)w.a.scale * product;
		if (key >= seen) return -INFINITY;
		return mask ? x + (float)mask[key] : x;
	}
};

template <class S> __device__ inline const S *mask_of(const tiled<S> &w, int64_t h)
{
	return w.mask ? w.mask + slp_attention_mask(&w.a, h) : NULL;
}

static __device__ inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* The queries of a block's turn n: queries that see most keys come first. */
template <class S, int TILE> struct turn {
	int64_t h, first, rows, seen;
	const S *mask;

	__device__ turn(const tiled<S> &w, int64_t n)
	{
		h = n % w.a.heads;
		first = (w.queries - 1 - n / w.a.heads) * TILE;
		rows = least(TILE, w.a.t - first);
		seen = slp_attention_seen(&w.a, first + rows - 1);
		mask = mask_of(w, h);
	}
};

/* ---- forward ----------------------------------------------------------------------------------------------------- */

template <class S, int W, int M> __global__ void TWO_AT_ONCE forward(tiled<S> w)
{
	constexpr int TILE = M * SIDE, C = W / SIDE;
	SLP_DYN_SHARED(float, shared);
	float *queries = shared, *others = queries + TILE * W, *shares = others + TILE * W;
	const slp_attention &a = w.a;
	int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
	for (int64_t n = blockIdx.x; n < a.heads * w.queries; n += gridDim.x) {
		const turn<S, TILE> at(w, n);
		float most[M], sum[M], to[M][C], s[M][M];
		clear<C, M>(to);
		UNROLL()
		for (int i = 0; i < M; i++) most[i] = -INFINITY, sum[i] = 0;
		__syncthreads();
		load<W, TILE>(queries, w.q + slp_attention_at(&a, &a.q, at.h, at.first), a.q.row, at.rows, a.d);
		for (int64_t j0 = 0; j0 < at.seen; j0 += TILE) {
			int64_t keys = least(TILE, a.s - j0);
			__syncthreads();
			load<W, TILE>(others, w.k + slp_attention_at(&a, &a.k, at.h, j0), a.k.row, keys, a.d);
			__syncthreads();
			multiply<W, M>(s, queries, others);
			UNROLL()
			for (int i = 0; i < M; i++) {
				sight<S> o(w, at.mask, at.first + y + SIDE * i);
				float m = most[i], part = 0;
				UNROLL()
				for (int j = 0; j < M; j++) {
					s[i][j] = o.score(w, j0 + x + SIDE * j, s[i][j]);
					m = slp_max_of()(m, s[i][j]);
				}
				m = across(m, slp_max_of());
				float before = share(most[i], m);
				UNROLL()
				for (int j = 0; j < M; j++) {
					float p = share(s[i][j], m);
					part += p;
					shares[spot<TILE>(y + SIDE * i, x + SIDE * j)] = p;
				}
				sum[i] = sum[i] * before + across(part, slp_sum_of());
				most[i] = m;
				UNROLL()
				for (int g = 0; g < C; g++) to[i][g] *= before;
			}
			__syncthreads();
			load<W, TILE>(others, w.v + slp_attention_at(&a, &a.v, at.h, j0), a.v.row, keys, a.dv);
			__syncthreads();
			gather<W, M>(to, shares, others);
		}
		float by[M];
		UNROLL()
		for (int i = 0; i < M; i++) {
			by[i] = sum[i] == 0 ? 0 : 1 / sum[i];
			if (x == 0 && y + SIDE * i < at.rows)
				w.logs.set(at.h * a.t + at.first + y + SIDE * i,
				           sum[i] == 0 ? -INFINITY : most[i] + logf(sum[i]));
		}
		store<W, M>(w.out + slp_attention_at(&a, &a.y, at.h, at.first), a.y.row, at.rows, a.dv, to, by);
	}
}

/* ---- back -------------------------------------------------------------------------------------------------------- */

/* sums[row] = dy · y of each query of a tile, dy in shared memory; the threads of a row of the square share its
 * columns. */
template <class S, int W, int M>
__device__ inline void weigh(const tiled<S> &w, int64_t h, int64_t first, const float *dy, float *sums)
{
	int x = threadIdx.x % SIDE;
	UNROLL()
	for (int i = 0; i < M; i++) {
		int row = threadIdx.x / SIDE + SIDE * i;
		bool there = first + row < w.a.t;
		const S *y = w.y + slp_attention_at(&w.a, &w.a.y, h, there ? first + row : 0);
		float sum = 0;
		for (int c = x; there && c < w.a.dv; c += SIDE) sum += dy[spot<W>(row, c)] * (float)y[c];
		sum = across(sum, slp_sum_of());
		if (x == 0) sums[row] = sum;
	}
}

/* The weight of a pair, and the gradient of its score through d. */
template <class S> struct answer : sight<S> {
	float logs, sum;

	__device__ answer(const tiled<S> &w, const S *of_head, int64_t h, int64_t query, float s)
	    : sight<S>(w, of_head, query), sum(s)
	{
		logs = query < w.a.t ? w.logs[h * w.a.t + query] : -INFINITY;
	}
	__device__ float2 pair(const tiled<S> &w, int64_t key, float product, float d) const
	{
		float2 r;
		r.x = share(this->score(w, key, product), logs);
		r.y = r.x * (d - sum) * (float)w.a.scale;
		return r;
	}
};

template <class S, int W, int M>
__device__ inline void back_to_queries(const tiled<S> &w, int64_t n, float *shared, float *sums)
{
	constexpr int TILE = M * SIDE, C = W / SIDE;
	float *queries = shared, *dy = queries + TILE * W, *others = dy + TILE * W, *slopes = others + TILE * W;
	const slp_attention &a = w.a;
	int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
	const turn<S, TILE> at(w, n);
	float to[M][C], s[M][M], d[M][M];
	clear<C, M>(to);
	__syncthreads();
	load<W, TILE>(queries, w.q + slp_attention_at(&a, &a.q, at.h, at.first), a.q.row, at.rows, a.d);
	load<W, TILE>(dy, w.dy + slp_attention_at(&a, &a.y, at.h, at.first), a.y.row, at.rows, a.dv);
	__syncthreads();
	weigh<S, W, M>(w, at.h, at.first, dy, sums);
	for (int64_t j0 = 0; j0 < at.seen; j0 += TILE) {
		int64_t keys = least(TILE, a.s - j0);
		__syncthreads();
		load<W, TILE>(others, w.v + slp_attention_at(&a, &a.v, at.h, j0), a.v.row, keys, a.dv);
		__syncthreads();
		multiply<W, M>(d, dy, others);
		__syncthreads();
		load<W, TILE>(others, w.k + slp_attention_at(&a, &a.k, at.h, j0), a.k.row, keys, a.d);
		__syncthreads();
		multiply<W, M>(s, queries, others);
		UNROLL()
		for (int i = 0; i < M; i++) {
			answer<S> o(w, at.mask, at.h, at.first + y + SIDE * i, sums[y + SIDE * i]);
			UNROLL()
			for (int j = 0; j < M; j++)
				slopes[spot<TILE>(y + SIDE * i, x + SIDE * j)] =
				        o.pair(w, j0 + x + SIDE * j, s[i][j], d[i][j]).y;
		}
		__syncthreads();
		gather<W, M>(to, slopes, others);
	}
	store<W, M>(w.dq + slp_attention_at(&a, &a.q, at.h, at.first), a.q.row, at.rows, a.d, to, (const float *)NULL);
}

template <class S, int W, int M>
__device__ inline void back_to_keys(const tiled<S> &w, int64_t n, float *shared, float *sums)
{
	constexpr int TILE = M * SIDE, C = W / SIDE;
	float *keys = shared, *values = keys + TILE * W, *queries = values + TILE * W, *dy = queries + TILE * W,
	      *pairs = dy + TILE * W;
	const slp_attention &a = w.a;
	int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
	int64_t h = n % a.heads, first = n / a.heads * TILE, places = least(TILE, a.s - first);
	int64_t i0 = a.causal && first > a.before ? (first - a.before) / TILE * TILE : 0;
	const S *mask = mask_of(w, h);
	float dk[M][C], dv[M][C], s[M][M], d[M][M];
	clear<C, M>(dk);
	clear<C, M>(dv);
	__syncthreads();
	load<W, TILE>(keys, w.k + slp_attention_at(&a, &a.k, h, first), a.k.row, places, a.d);
	load<W, TILE>(values, w.v + slp_attention_at(&a, &a.v, h, first), a.v.row, places, a.dv);
	for (; i0 < a.t; i0 += TILE) {
		int64_t rows = least(TILE, a.t - i0);
		__syncthreads();
		load<W, TILE>(queries, w.q + slp_attention_at(&a, &a.q, h, i0), a.q.row, rows, a.d);
		load<W, TILE>(dy, w.dy + slp_attention_at(&a, &a.y, h, i0), a.y.row, rows, a.dv);
		__syncthreads();
		weigh<S, W, M>(w, h, i0, dy, sums);
		multiply<W, M>(s, keys, queries);
		multiply<W, M>(d, values, dy);
		__syncthreads();
		UNROLL()
		for (int j = 0; j < M; j++) {
			answer<S> o(w, mask, h, i0 + x + SIDE * j, sums[x + SIDE * j]);
			UNROLL()
			for (int i = 0; i < M; i++) {
				float2 p = o.pair(w, first + y + SIDE * i, s[i][j], d[i][j]);
				pairs[spot<TILE>(y + SIDE * i, x + SIDE * j)] = p.x;
				d[i][j] = p.y;
			}
		}
		__syncthreads();
		gather<W, M>(dv, pairs, dy);
		__syncthreads();
		UNROLL()
		for (int i = 0; i < M; i++) UNROLL()
		for (int j = 0; j < M; j++) pairs[spot<TILE>(y + SIDE * i, x + SIDE * j)] = d[i][j];
		__syncthreads();
		gather<W, M>(dk, pairs, queries);
	}
	store<W, M>(w.dk + slp_attention_at(&a, &a.k, h, first), a.k.row, places, a.d, dk, (const float *)NULL);
	store<W, M>(w.dv + slp_attention_at(&a, &a.v, h, first), a.v.row, places, a.dv, dv, (const float *)NULL);
}

/* One launch for all gradients: first the tiles of keys, which take longer, then those of queries. */
template <class S, int W, int M> __global__ void TWO_AT_ONCE backward(tiled<S> w)
{
	SLP_DYN_SHARED(float, shared);
	__shared__ float sums[M * SIDE];
	int64_t keys = w.a.heads * w.keys, all = keys + w.a.heads * w.queries;
	for (int64_t n = blockIdx.x; n < all; n += gridDim.x)
		if (n < keys) back_to_keys<S, W, M>(w, n, shared, sums);
		else back_to_queries<S, W, M>(w, n - keys, shared, sums);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* Whether blocks may have so much shared memory. */
template <class K> static bool has_shared(K kernel, size_t bytes)
{
#ifdef SLP_EMULATE
	(void)kernel;
	return bytes <= FREE_SHARED;
#else
	return bytes <= FREE_SHARED ||
	       cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes) == cudaSuccess;
#endif
}

template <class S> static const S *input(const struct slp_kernel *k, int i)
{
	return i < k->nin ? (const S *)k->in[i].ptr : NULL;
}

static unsigned blocks_of(int64_t n)
{
	return slp_blocks(n, 1 << 20);
}

template <class S, int W, int M> static bool launch_forward(const struct slp_kernel *k, tiled<S> w)
{
	constexpr int TILE = M * SIDE;
	size_t bytes = (size_t)(2 * TILE * W + TILE * TILE) * sizeof(float);
	w.q = input<S>(k, 0), w.k = input<S>(k, 1), w.v = input<S>(k, 2), w.mask = input<S>(k, 3);
	w.out = (S *)k->out[0].ptr;
	w.logs = slp_vector<float>::of(&k->out[1]);
	w.queries = (w.a.t + TILE - 1) / TILE;
	if (!has_shared(forward<S, W, M>, bytes)) return false;
	SLP_LAUNCH((forward<S, W, M>), blocks_of(w.a.heads * w.queries), SLP_BLOCK, bytes, k->stream, w);
	return true;
}

template <class S, int W, int M> static bool launch_back(const struct slp_kernel *k, tiled<S> w)
{
	constexpr int TILE = M * SIDE;
	size_t bytes = (size_t)(4 * TILE * W + TILE * TILE) * sizeof(float);
	w.dy = input<S>(k, 0), w.q = input<S>(k, 1), w.k = input<S>(k, 2), w.v = input<S>(k, 3), w.y = input<S>(k, 4);
	w.logs = slp_vector<float>::of(&k->in[5]);
	w.mask = input<S>(k, 6);
	w.dq = (S *)k->out[0].ptr, w.dk = (S *)k->out[1].ptr, w.dv = (S *)k->out[2].ptr;
	w.queries = (w.a.t + TILE - 1) / TILE, w.keys = (w.a.s + TILE - 1) / TILE;
	if (!has_shared(backward<S, W, M>, bytes)) return false;
	SLP_LAUNCH((backward<S, W, M>), blocks_of(w.a.heads * (w.queries + w.keys)), SLP_BLOCK, bytes, k->stream, w);
	return true;
}

template <class S, int W, int M> static bool launch(const struct slp_kernel *k, const tiled<S> &w, bool back)
{
	return back ? launch_back<S, W, M>(k, w) : launch_forward<S, W, M>(k, w);
}

extern "C" bool slp_attention_by_tiles(const struct slp_kernel *k, const struct slp_attention *a, bool back)
{
	int64_t width = a->d > a->dv ? a->d : a->dv;
	bool done = false;
	if (width > SLP_ATTENTION_TILE || a->t == 0 || a->s == 0 || a->heads == 0) return false;
	slp_with_numbers<SLP_F32 | SLP_HALVES>(k->in[0].type.dtype, [&](auto zero) {
		tiled<decltype(zero)> w = {};
		w.a = *a;
		if (width <= 32) done = launch<decltype(zero), 32, 4>(k, w, back);
		else if (width <= 64) done = launch<decltype(zero), 64, 4>(k, w, back);
		else done = launch<decltype(zero), 128, 2>(k, w, back);
	});
	return done;
}
