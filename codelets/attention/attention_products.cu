/* Attention on a GPU by products of matrices: a product gives the scores of some heads, a kernel turns them into
 * weights, and a product applies these; half types use tensor cores, with scores in float32. If the scores of one head
 * are too large, attention.cu computes query by query. */
#include "attention.h"
#include "op.h"
#include "common/gemm.cuh"
#include "common/lanes.cuh"

/* Operands of the kernels, from the first head in the workspace on. */
template <class S> struct scored {
	slp_attention a;
	int64_t first, rows; /* head; queries of all heads in work */
	float *scores, *slopes;
	S *shares, *slopes_of; /* may lie over scores and slopes */
	const S *mask, *dy, *y;
	slp_vector<float> logs; /* forward: to be set */
	/* Tells the emulated devices of the tests which pointers are in here. */
	template <class F> void emu_pointers(F f)
	{
		f(scores), f(slopes), f(shares), f(slopes_of), f(mask), f(dy), f(y), f(logs);
	}
	__device__ float score(int64_t r, int64_t j) const
	{
		float x = scores[r * a.s + j];
		if (!a.masked) return x;
		return x + (float)mask[slp_attention_mask(&a, first + r / a.t) + r % a.t * a.mask_row + j];
	}
};

static __device__ inline float share(float x, float logs)
{
	return logs == -INFINITY ? 0.0f : expf(x - logs);
}

template <class S, int LANES> __global__ void soften(scored<S> w)
{
	for (int64_t r = slp_group<LANES>(); r < w.rows; r += slp_groups<LANES>()) {
		int64_t seen = slp_attention_seen(&w.a, r % w.a.t), lane = slp_lane<LANES>();
		float most = -INFINITY, sum = 0;
		for (int64_t j = lane; j < seen; j += LANES) most = slp_max_of()(most, w.score(r, j));
		most = slp_group_reduce<LANES>(most, slp_max_of(), -INFINITY);
		for (int64_t j = lane; j < seen; j += LANES) sum += share(w.score(r, j), most);
		sum = slp_group_reduce<LANES>(sum, slp_sum_of(), 0.0f);
		float by = sum == 0 ? 0 : 1 / sum;
		for (int64_t j = lane; j < w.a.s; j += LANES)
			w.shares[r * w.a.s + j] = j < seen ? share(w.score(r, j), most) * by : 0.0f;
		if (lane == 0) w.logs.set(w.first * w.a.t + r, sum == 0 ? -INFINITY : most + logf(sum));
	}
}

/* The weights again, and the gradients of the scores. */
template <class S, int LANES> __global__ void back_to_scores(scored<S> w)
{
	for (int64_t r = slp_group<LANES>(); r < w.rows; r += slp_groups<LANES>()) {
		int64_t seen = slp_attention_seen(&w.a, r % w.a.t), lane = slp_lane<LANES>();
		int64_t row = w.first * w.a.t + r;
		float all = 0, logs = w.logs[row];
		for (int64_t c = lane; c < w.a.dv; c += LANES)
			all += (float)w.dy[row * w.a.dv + c] * (float)w.y[row * w.a.dv + c];
		all = slp_group_reduce<LANES>(all, slp_sum_of(), 0.0f);
		for (int64_t j = lane; j < w.a.s; j += LANES) {
			float p = j < seen ? share(w.score(r, j), logs) : 0.0f, d = w.slopes[r * w.a.s + j];
			w.shares[r * w.a.s + j] = p;
			w.slopes_of[r * w.a.s + j] = j < seen ? p * (d - all) * (float)w.a.scale : 0.0f;
		}
	}
}

/* Memory for the scores of `heads` heads: float32 first, then half types. */
template <class S>
static scored<S> work_of(const struct slp_kernel *k, const slp_attention &a, int64_t heads, bool back)
{
	int64_t n = heads * a.t * a.s;
	bool half = sizeof(S) < sizeof(float);
	scored<S> w = {};
	w.a = a;
	w.scores = (float *)k->scratch;
	w.slopes = back ? w.scores + n : NULL;
	w.shares = half ? (S *)(w.scores + (back ? 2 * n : n)) : (S *)w.scores;
	w.slopes_of = !back ? NULL : half ? w.shares + n : (S *)w.slopes;
	return w;
}

/* C = op(A) op(B) for each head in the workspace. */
struct multiplication {
	bool ta, tb;
	int64_t m, n, k;
};

template <class S, class C> static void multiply(const struct slp_kernel *k, enum sl_status *status, int64_t heads,
                                                 const multiplication &p, const S *x, const S *y, C *to, double alpha)
{
	struct slp_cuda_gemm g = slp_cuda_gemm_of(p.ta, p.tb, p.m, p.n, p.k);
	g.stride_a = p.m * p.k;
	g.stride_b = p.k * p.n;
	g.count = heads;
	g.alpha = alpha;
	if (*status == SL_OK) *status = slp_cuda_multiply<S>(k, g, x, y, to);
}

template <class S> static void launch_rows(const struct slp_kernel *k, const scored<S> &w, bool back)
{
	slp_with_lanes(w.a.s, [&](auto lanes) {
		constexpr int LANES = decltype(lanes)::value;
		if (back)
			SLP_LAUNCH((back_to_scores<S, LANES>), slp_group_grid(w.rows, LANES), SLP_BLOCK, 0, k->stream,
			           w);
		else SLP_LAUNCH((soften<S, LANES>), slp_group_grid(w.rows, LANES), SLP_BLOCK, 0, k->stream, w);
	});
}

template <class S> static const S *input(const struct slp_kernel *k, int i)
{
	return i < k->nin ? (const S *)k->in[i].ptr : NULL;
}

template <class S> static enum sl_status forward(const struct slp_kernel *k, const slp_attention &a, int64_t most)
{
	const S *q = input<S>(k, 0), *keys = input<S>(k, 1), *v = input<S>(k, 2);
	enum sl_status s = SL_OK;
	scored<S> w = work_of<S>(k, a, most, false);
	w.mask = input<S>(k, 3);
	w.logs = slp_vector<float>::of(&k->out[1]);
	for (int64_t h = 0, n; h < a.heads && s == SL_OK; h += n) {
		n = a.heads - h < most ? a.heads - h : most;
		w.first = h, w.rows = n * a.t;
		multiply(k, &s, n, {false, true, a.t, a.s, a.d}, q + h * a.t * a.d, keys + h * a.s * a.d, w.scores,
		         a.scale);
		if (s == SL_OK) launch_rows(k, w, false);
		multiply(k, &s, n, {false, false, a.t, a.dv, a.s}, (const S *)w.shares, v + h * a.s * a.dv,
		         (S *)k->out[0].ptr + h * a.t * a.dv, 1);
	}
	return s == SL_OK ? slp_launched(k) : s;
}

/* dy, q, k, v, y, logs, mask */
template <class S> static enum sl_status backward(const struct slp_kernel *k, const slp_attention &a, int64_t most)
{
	const S *dy = input<S>(k, 0), *q = input<S>(k, 1), *keys = input<S>(k, 2), *v = input<S>(k, 3);
	S *dq = (S *)k->out[0].ptr, *dk = (S *)k->out[1].ptr, *dv = (S *)k->out[2].ptr;
	enum sl_status s = SL_OK;
	scored<S> w = work_of<S>(k, a, most, true);
	w.dy = dy, w.y = input<S>(k, 4), w.mask = input<S>(k, 6);
	w.logs = slp_vector<float>::of(&k->in[5]);
	for (int64_t h = 0, n; h < a.heads && s == SL_OK; h += n) {
		int64_t queries = h * a.t, places = h * a.s;
		n = a.heads - h < most ? a.heads - h : most;
		w.first = h, w.rows = n * a.t;
		multiply(k, &s, n, {false, true, a.t, a.s, a.d}, q + queries * a.d, keys + places * a.d, w.scores,
		         a.scale);
		multiply(k, &s, n, {false, true, a.t, a.s, a.dv}, dy + queries * a.dv, v + places * a.dv, w.slopes, 1);
		if (s == SL_OK) launch_rows(k, w, true);
		const S *shares = w.shares, *slopes = w.slopes_of;
		multiply(k, &s, n, {false, false, a.t, a.d, a.s}, slopes, keys + places * a.d, dq + queries * a.d, 1);
		multiply(k, &s, n, {true, false, a.s, a.d, a.t}, slopes, q + queries * a.d, dk + places * a.d, 1);
		multiply(k, &s, n, {true, false, a.s, a.dv, a.t}, shares, dy + queries * a.dv, dv + places * a.dv, 1);
	}
	return s == SL_OK ? slp_launched(k) : s;
}

template <class S> static enum sl_status run(const struct slp_kernel *k, const slp_attention &a, bool back)
{
	int64_t heads = slp_attention_heads_at_once(&a, slp_attention_score_bytes(k->in[0].type.dtype, back));
	if (heads == 0 || a.t == 0 || a.s == 0) return SL_EUNSUPPORTED;
	return back ? backward<S>(k, a, heads) : forward<S>(k, a, heads);
}

extern "C" enum sl_status slp_attention_by_products(const struct slp_kernel *k, const struct slp_attention *a,
                                                    bool back)
{
	enum sl_status s = SL_EUNSUPPORTED;
	slp_with_numbers<SLP_F32 | SLP_HALVES>(k->in[0].type.dtype,
	                                       [&](auto zero) { s = run<decltype(zero)>(k, *a, back); });
	return s;
}
