/* Attention on CPUs, a block of queries and one of keys at a time: nothing has the size queries × keys.  M. N. Rabe,
 * C. Staats, arXiv:2112.05682, 2021; T. Dao et al., arXiv:2205.14135, 2022. */
#include "attention.h"

#include <math.h>
#include <string.h>

#include "common/gemm.h"
#include "common/simd.h"
#include "common/vmath.h"

enum { QUERIES = 64, KEYS = 256 };

typedef float block[QUERIES][KEYS];

struct job {
	struct slp_attention a;
	const float *q, *k, *v, *mask, *dy, *y, *logs;
	float *out, *out_logs, *dq, *dk, *dv, *sums;
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t query_blocks(const struct slp_attention *a)
{
	return (a->t + QUERIES - 1) / QUERIES;
}

static int64_t key_blocks(const struct slp_attention *a)
{
	return (a->s + KEYS - 1) / KEYS;
}

/* Scores of queries [i, i + rows) and keys [j, j + width); -inf where a query does not see a key. */
static void scores(const struct job *w, int64_t h, int64_t i, int64_t rows, int64_t j, int64_t width, block s)
{
	const struct slp_attention *a = &w->a;
	slp_sgemm_serial(false, true, rows, width, a->d, (float)a->scale, w->q + slp_attention_at(a, &a->q, h, i),
	                 a->q.row, w->k + slp_attention_at(a, &a->k, h, j), a->k.row, 0, s[0], KEYS);
	if (a->masked) {
		const float *mask = w->mask + slp_attention_mask(a, h) + i * a->mask_row + j;
		for (int64_t r = 0; r < rows; r++)
			for (int64_t c = 0; c < width; c++) s[r][c] += mask[r * a->mask_row + c];
	}
	for (int64_t r = 0; r < rows; r++) {
		int64_t seen = slp_attention_seen(a, i + r) - j;
		for (int64_t c = seen > 0 ? seen : 0; c < width; c++) s[r][c] = -INFINITY;
	}
}

enum { LANES = 16 };

/* Folding in pairs: a chain of 16 additions would take longer than a row of 64 exponentials. */
SLP_INLINE float fold_max(float *a)
{
	SLP_UNROLL
	for (int w = LANES / 2; w; w /= 2)
		for (int l = 0; l < w; l++) a[l] = a[l + w] > a[l] ? a[l + w] : a[l];
	return a[0];
}

SLP_INLINE float fold_sum(float *a)
{
	SLP_UNROLL
	for (int w = LANES / 2; w; w /= 2)
		for (int l = 0; l < w; l++) a[l] += a[l + w];
	return a[0];
}

SLP_INLINE float row_max(const float *x, int64_t n, float m)
{
	float a[LANES];
	int64_t c = 0;
	for (int l = 0; l < LANES; l++) a[l] = m;
	for (; c + LANES <= n; c += LANES)
		for (int l = 0; l < LANES; l++) a[l] = x[c + l] > a[l] ? x[c + l] : a[l];
	for (; c < n; c++) m = x[c] > m ? x[c] : m;
	float most = fold_max(a);
	return most > m ? most : m;
}

/* x = exp(x - m); returns the sum. */
SLP_INLINE float row_exp(float *x, int64_t n, float m)
{
	float a[LANES] = {0}, sum = 0;
	int64_t c = 0;
	for (; c + LANES <= n; c += LANES)
		for (int l = 0; l < LANES; l++) a[l] += x[c + l] = slp_exp_falling(x[c + l] - m);
	for (; c < n; c++) sum += x[c] = slp_exp_falling(x[c] - m);
	return sum + fold_sum(a);
}

/* Turns scores into weights relative to the largest score so far, and scales y, the earlier sums, accordingly. */
SLP_CLONES static void soften(block s, int64_t rows, int64_t width, float *most, float *sum, float *y, int64_t step,
                              int64_t dv)
{
	for (int64_t r = 0; r < rows; r++) {
		float m = row_max(s[r], width, most[r]);
		if (m == -INFINITY) { /* no key so far, or NaN */
			for (int64_t c = 0; c < width; c++) sum[r] += s[r][c] = s[r][c] != s[r][c] ? NAN : 0;
			continue;
		}
		float before = slp_exp_falling(most[r] - m);
		most[r] = m;
		sum[r] = sum[r] * before + row_exp(s[r], width, m);
		if (before != 1)
			for (int64_t c = 0; c < dv; c++) y[r * step + c] *= before;
	}
}

static void finish(const struct job *w, int64_t row, float *y, int64_t rows, const float *most, const float *sum)
{
	for (int64_t r = 0; r < rows; r++) {
		float inverse = sum[r] == 0 ? 0 : 1 / sum[r];
		if (w->out_logs) w->out_logs[row + r] = sum[r] == 0 ? -INFINITY : most[r] + logf(sum[r]);
		for (int64_t c = 0; c < w->a.dv; c++) y[r * w->a.y.row + c] *= inverse;
	}
}

/* Rows of so many numbers each, `step` apart. */
static void clear(float *first, int64_t step, int64_t rows, int64_t width)
{
	for (int64_t r = 0; r < rows; r++) memset(first + r * step, 0, (size_t)width * sizeof *first);
}

static void forward_block(const struct job *w, int64_t h, int64_t i)
{
	const struct slp_attention *a = &w->a;
	block s;
	float most[QUERIES], sum[QUERIES] = {0}, *y = w->out + slp_attention_at(a, &a->y, h, i);
	int64_t rows = least(QUERIES, a->t - i), seen = slp_attention_seen(a, i + rows - 1);
	for (int64_t r = 0; r < rows; r++) most[r] = -INFINITY;
	if (seen > KEYS || seen <= 0) clear(y, a->y.row, rows, a->dv); /* else the only product sets it */
	for (int64_t j = 0; j < seen; j += KEYS) {
		int64_t width = least(KEYS, seen - j);
		scores(w, h, i, rows, j, width, s);
		soften(s, rows, width, most, sum, y, a->y.row, a->dv);
		slp_sgemm_serial(false, false, rows, a->dv, width, 1, s[0], KEYS,
		                 w->v + slp_attention_at(a, &a->v, h, j), a->v.row, seen > KEYS ? 1 : 0, y, a->y.row);
	}
	finish(w, h * a->t + i, y, rows, most, sum);
}

static void forward_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *w = arg;
	int64_t blocks = query_blocks(&w->a);
	for (; begin < end; begin++) forward_block(w, begin / blocks, begin % blocks * QUERIES);
}

void slp_attention_by_blocks(const struct slp_attention *a, const float *q, const float *k, const float *v,
                             const float *mask, float *y, float *logs)
{
	struct job w = {.a = *a, .q = q, .k = k, .v = v, .mask = mask, .out = y, .out_logs = logs};
	slp_parallel_for(a->heads * query_blocks(a), 1, forward_range, &w);
}

static enum sl_status forward_sized(const struct slp_kernel *k, const struct slp_attention *a)
{
	slp_attention_by_blocks(a, k->in[0].ptr, k->in[1].ptr, k->in[2].ptr, a->masked ? k->in[3].ptr : NULL,
	                        k->out[0].ptr, k->out[1].ptr);
	return SL_OK;
}

enum sl_status slp_attention_cpu(const struct slp_kernel *k)
{
	struct slp_attention a = slp_attention_sizes(k, 0, 3);
	return forward_sized(k, &a);
}

enum sl_status slp_attention_heads_cpu(const struct slp_kernel *k)
{
	struct slp_heads_call c;
	slp_heads_call_of(k, false, &c);
	return forward_sized(&c.k, &c.a);
}

/* s = exp(s - logs): the weights. */
SLP_CLONES static void shares(block s, int64_t rows, int64_t width, const float *logs)
{
	for (int64_t r = 0; r < rows; r++)
		if (logs[r] == -INFINITY) memset(s[r], 0, (size_t)width * sizeof(float));
		else row_exp(s[r], width, logs[r]);
}

/* d = p (d - sum) */
SLP_CLONES static void slopes(block d, block p, int64_t rows, int64_t width, const float *sums)
{
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0; c < width; c++) d[r][c] = p[r][c] * (d[r][c] - sums[r]);
}

/* A head's queries and keys are one block, in which the last query sees all keys. */
static bool is_one_block(const struct slp_attention *a)
{
	return a->t <= QUERIES && a->s <= KEYS && a->t > 0 && a->s > 0 && slp_attention_seen(a, a->t - 1) == a->s;
}

/* Which gradients a thread computes. */
enum part { QUERY = 1, KEY_AND_VALUE = 2 };

/* The backward pass of one block of queries and one of keys. */
static void backward_block(const struct job *w, int parts, int64_t h, int64_t i, int64_t j)
{
	const struct slp_attention *a = &w->a;
	int64_t rows = least(QUERIES, a->t - i), width = least(KEYS, slp_attention_seen(a, i + rows - 1) - j);
	int64_t row = h * a->t + i, query = slp_attention_at(a, &a->q, h, i), result = slp_attention_at(a, &a->y, h, i),
	        key = slp_attention_at(a, &a->k, h, j), value = slp_attention_at(a, &a->v, h, j);
	block p, d;
	if (width <= 0) return;
	/* The only product of a sum sets it; nothing has cleared it then. */
	float so_far = is_one_block(a) ? 0 : 1;
	scores(w, h, i, rows, j, width, p);
	shares(p, rows, width, w->logs + row);
	const float *dy = w->dy + result;
	if (parts & KEY_AND_VALUE)
		slp_sgemm_serial(true, false, width, a->dv, rows, 1, p[0], KEYS, dy, a->y.row, so_far, w->dv + value,
		                 a->v.row);
	slp_sgemm_serial(false, true, rows, width, a->dv, 1, dy, a->y.row, w->v + value, a->v.row, 0, d[0], KEYS);
	slopes(d, p, rows, width, w->sums + row);
	float scale = (float)a->scale;
	if (parts & QUERY)
		slp_sgemm_serial(false, false, rows, a->d, width, scale, d[0], KEYS, w->k + key, a->k.row, so_far,
		                 w->dq + query, a->q.row);
	if (parts & KEY_AND_VALUE)
		slp_sgemm_serial(true, false, width, a->d, rows, scale, d[0], KEYS, w->q + query, a->q.row, so_far,
		                 w->dk + key, a->k.row);
}

SLP_INLINE float row_product(const float *x, const float *y, int64_t n)
{
	float a[LANES] = {0}, sum = 0;
	int64_t c = 0;
	for (; c + LANES <= n; c += LANES)
		for (int l = 0; l < LANES; l++) a[l] += x[c + l] * y[c + l];
	for (; c < n; c++) sum += x[c] * y[c];
	return sum + fold_sum(a);
}

/* sums[row] = dy · y */
SLP_CLONES static void weigh_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *w = arg;
	for (int64_t row = begin; row < end; row++) {
		int64_t at = slp_attention_at(&w->a, &w->a.y, row / w->a.t, row % w->a.t);
		w->sums[row] = row_product(w->dy + at, w->y + at, w->a.dv);
	}
}

static void clear_queries(const struct job *w, int64_t h, int64_t i, int64_t count)
{
	const struct slp_attention *a = &w->a;
	if (is_one_block(a)) return;
	clear(w->dq + slp_attention_at(a, &a->q, h, i), a->q.row, count, a->d);
}

static void clear_keys(const struct job *w, int64_t h, int64_t j, int64_t count)
{
	const struct slp_attention *a = &w->a;
	if (is_one_block(a)) return;
	clear(w->dk + slp_attention_at(a, &a->k, h, j), a->k.row, count, a->d);
	clear(w->dv + slp_attention_at(a, &a->v, h, j), a->v.row, count, a->dv);
}

/* Sums have one order: of queries by blocks of keys, of keys by blocks of queries. */
static void backward_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *w = arg;
	const struct slp_attention *a = &w->a;
	for (int64_t h = begin; h < end; h++) {
		clear_queries(w, h, 0, a->t);
		clear_keys(w, h, 0, a->s);
		weigh_range(arg, h * a->t, (h + 1) * a->t);
		for (int64_t j = 0; j < a->s; j += KEYS)
			for (int64_t i = 0; i < a->t; i += QUERIES) backward_block(w, QUERY | KEY_AND_VALUE, h, i, j);
	}
}

static void backward_of_queries(const struct job *w, int64_t h, int64_t i)
{
	const struct slp_attention *a = &w->a;
	clear_queries(w, h, i, least(QUERIES, a->t - i));
	for (int64_t j = 0; j < a->s; j += KEYS) backward_block(w, QUERY, h, i, j);
}

static void backward_of_keys(const struct job *w, int64_t h, int64_t j)
{
	const struct slp_attention *a = &w->a;
	clear_keys(w, h, j, least(KEYS, a->s - j));
	for (int64_t i = 0; i < a->t; i += QUERIES) backward_block(w, KEY_AND_VALUE, h, i, j);
}

/* First the blocks of keys of all heads, because they take longer, then the blocks of queries. */
static void backward_blocks(void *arg, int64_t begin, int64_t end)
{
	const struct job *w = arg;
	int64_t queries = query_blocks(&w->a), keys = key_blocks(&w->a), first = w->a.heads * keys;
	for (int64_t b = begin; b < end; b++)
		if (b < first) backward_of_keys(w, b / keys, b % keys * KEYS);
		else backward_of_queries(w, (b - first) / queries, (b - first) % queries * QUERIES);
}

/* A thread computes whole heads, or, if heads are too few for the team, blocks of them: weights are then computed twice,
 * seven products instead of five, and the sums are the same. */
static void backward(struct job *w, int64_t threads)
{
	const struct slp_attention *a = &w->a;
	if (7 * a->heads >= 5 * threads) {
		slp_parallel_for(a->heads, 1, backward_range, w);
		return;
	}
	slp_parallel_for(a->heads * a->t, 1 + SLP_GRAIN / (a->dv + 1), weigh_range, w);
	slp_parallel_for(a->heads * (key_blocks(a) + query_blocks(a)), 1, backward_blocks, w);
}

static enum sl_status backward_sized(const struct slp_kernel *k, const struct slp_attention *a)
{
	struct job w = {.a = *a,
	                .dy = k->in[0].ptr,
	                .q = k->in[1].ptr,
	                .k = k->in[2].ptr,
	                .v = k->in[3].ptr,
	                .y = k->in[4].ptr,
	                .logs = k->in[5].ptr,
	                .mask = a->masked ? k->in[6].ptr : NULL,
	                .dq = k->out[0].ptr,
	                .dk = k->out[1].ptr,
	                .dv = k->out[2].ptr,
	                .sums = k->scratch};
	backward(&w, k->threads);
	return SL_OK;
}

enum sl_status slp_attention_grad_cpu(const struct slp_kernel *k)
{
	struct slp_attention a = slp_attention_sizes(k, 1, 6);
	return backward_sized(k, &a);
}

enum sl_status slp_attention_heads_grad_cpu(const struct slp_kernel *k)
{
	struct slp_heads_call c;
	slp_heads_call_of(k, true, &c);
	return backward_sized(&c.k, &c.a);
}
