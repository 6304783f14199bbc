/* Attention: attention and its gradient attention_grad. Both compute blocks of queries and keys, and store nothing of
 * the size queries × keys. M. N. Rabe, C. Staats, arXiv:2112.05682, 2021; T. Dao et al., arXiv:2205.14135, 2022. */
#include "attention.h"
#include "op_list/attention.h"
#include "options.h"
#include "starling/functions.h"

#include <math.h>
#include <string.h>

#include "common/forget.h"
#include "common/gemm.h"
#include "common/simd.h"
#include "common/vmath.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR_DEFAULTED(struct slp_attention_attrs, scale, "of the products; 0: one over the root of the width"),
        SLP_ATTR(struct slp_attention_attrs, causal, SLP_BOOL, 1, "a query does not see later keys"),
        {0},
};

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Whether the mask can be broadcast to (…, t, s); its last axis must have the full length. */
static bool mask_fits(sl_shape mask, sl_shape q, sl_shape k)
{
	sl_shape whole = q, all;
	whole.dim[q.ndim - 1] = k.dim[k.ndim - 2];
	return mask.ndim >= 2 && mask.dim[mask.ndim - 1] == whole.dim[q.ndim - 1] && slp_broadcast(mask, whole, &all) &&
	       sl_shape_equal(all, whole);
}

static enum sl_status reject_mask(const struct slp_infer *c, sl_shape mask, sl_shape q, sl_shape k)
{
	char text[2][128];
	q.dim[q.ndim - 1] = k.dim[k.ndim - 2];
	return slp_reject(c, SL_ESHAPE, "a mask %s cannot be broadcast to (…, t, s), here %s",
	                  sl_shape_string(mask, text[0]), sl_shape_string(q, text[1]));
}

static enum sl_status check(const struct slp_infer *c, const struct slp_type *q, const struct slp_type *k,
                            const struct slp_type *v, const struct slp_type *mask)
{
	int n = q->shape.ndim;
	bool fits = n >= 2 && k->shape.ndim == n && v->shape.ndim == n;
	if (!slp_is_float(q->dtype) || k->dtype != q->dtype || v->dtype != q->dtype ||
	    (mask && mask->dtype != q->dtype))
		return slp_reject(c, SL_EDTYPE, "all must be floats of one data type");
	for (int i = 0; fits && i < n - 2; i++)
		if (k->shape.dim[i] != q->shape.dim[i] || v->shape.dim[i] != q->shape.dim[i])
			return slp_reject(c, SL_ESHAPE, "axis %d has %lld elements in q, %lld in k and %lld in v", i,
			                  (long long)q->shape.dim[i], (long long)k->shape.dim[i],
			                  (long long)v->shape.dim[i]);
	if (!fits || k->shape.dim[n - 1] != q->shape.dim[n - 1] || v->shape.dim[n - 2] != k->shape.dim[n - 2])
		return slp_reject(c, SL_ESHAPE, "q (…, t, d), k (…, s, d) and v (…, s, e) needed");
	if (mask && !mask_fits(mask->shape, q->shape, k->shape)) return reject_mask(c, mask->shape, q->shape, k->shape);
	return SL_OK;
}

void slp_attention_set_scale(struct slp_attention_attrs *a, sl_shape q)
{
	int64_t d = q.dim[q.ndim - 1];
	a->scale = slp_or(a->scale, 1 / sqrt(d > 0 ? (double)d : 1));
}

static enum sl_status attention_infer(struct slp_infer *c)
{
	const struct slp_type *q = &c->in[0], *v = &c->in[2];
	enum sl_status status = check(c, q, &c->in[1], v, c->nin > 3 ? &c->in[3] : NULL);
	if (status) return status;
	struct slp_attention_attrs *a = c->attrs;
	if (!isfinite(a->scale)) return slp_reject(c, SL_EINVAL, "scale is %g, a finite number needed", a->scale);
	slp_attention_set_scale(a, q->shape);
	c->out[0] = *q;
	c->out[0].shape.dim[q->shape.ndim - 1] = v->shape.dim[v->shape.ndim - 1];
	c->out[1] = (struct slp_type){slp_promoted(q->dtype), q->shape};
	c->out[1].shape.ndim--;
	return SL_OK;
}

static double attention_flops(const struct slp_infer *c)
{
	const struct slp_attention_attrs *attrs = c->attrs;
	bool grad = c->nout == 3;
	const struct slp_type *q = &c->in[grad];
	struct slp_attention a = slp_attention_of(attrs, q[0].shape, q[1].shape, q[2].shape, NULL);
	double pairs = (double)a.heads * (double)a.t * (double)a.s * (a.causal ? 0.5 : 1);
	return 2 * pairs * (double)(grad ? 3 * a.d + 2 * a.dv : a.d + a.dv);
}

/* dy, q, k, v, y, logs, mask */
static enum sl_status attention_grad_infer(struct slp_infer *c)
{
	enum sl_status status = check(c, &c->in[1], &c->in[2], &c->in[3], c->nin > 6 ? &c->in[6] : NULL);
	if (status) return status;
	sl_shape y = c->in[1].shape, logs = y;
	y.dim[y.ndim - 1] = c->in[3].shape.dim[y.ndim - 1];
	logs.ndim--;
	if (!sl_shape_equal(c->in[0].shape, y) || !sl_shape_equal(c->in[4].shape, y) ||
	    !sl_shape_equal(c->in[5].shape, logs))
		return slp_reject(c, SL_ESHAPE, "dy, y and logs must have the shapes of the results");
	if (c->in[0].dtype != c->in[1].dtype || c->in[4].dtype != c->in[1].dtype ||
	    (c->in[5].dtype != c->in[1].dtype && c->in[5].dtype != slp_promoted(c->in[1].dtype)))
		return slp_reject(c, SL_EDTYPE, "all must be floats of one data type");
	slp_attention_set_scale(c->attrs, c->in[1].shape);
	for (int i = 0; i < 3; i++) c->out[i] = c->in[1 + i];
	return SL_OK;
}

static enum sl_status grad(struct slp_grad *g)
{
	sl_tensor *d[3],
	        *in[] = {g->dout[0], g->in[0], g->in[1], g->in[2], g->out[0], g->out[1], g->nin > 3 ? g->in[3] : NULL};
	if (!g->dout[0]) return SL_OK;
	enum sl_status status = slp_apply(g->at, &slp_op_attention_grad, g->attrs, g->nin > 3 ? 7 : 6, in,
	                                  sl_tensor_device(g->dout[0]), d);
	for (int i = 0; i < 3; i++)
		if (!status && g->need[i]) g->din[i] = d[i];
	return status;
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

static struct slp_attention sizes_of(const struct slp_kernel *k, int q, int mask)
{
	return slp_attention_of(k->attrs, k->in[q].type.shape, k->in[q + 1].type.shape, k->in[q + 2].type.shape,
	                        k->nin > mask ? &k->in[mask].type.shape : NULL);
}

static double dot_of(const struct slp_view *a, int64_t at, const struct slp_view *b, int64_t bt, int64_t n)
{
	double sum = 0;
	for (int64_t i = 0; i < n; i++) sum += slp_get(a, at + i) * slp_get(b, bt + i);
	return sum;
}

/* The score of query i and key j. */
static double score(const struct slp_attention *a, const struct slp_view *q, const struct slp_view *k,
                    const struct slp_view *mask, int64_t h, int64_t i, int64_t j)
{
	if (j >= slp_attention_seen(a, i)) return -INFINITY;
	double x = a->scale * dot_of(q, (h * a->t + i) * a->d, k, (h * a->s + j) * a->d, a->d);
	return a->masked ? x + slp_get(mask, slp_attention_mask(a, h) + i * a->mask_row + j) : x;
}

/* The weight of a key; 0 if the query sees no key. */
static double share(double x, double logs)
{
	if (logs == -INFINITY) return isnan(x) ? x : 0;
	return exp(x - logs);
}

void slp_attention_by_hand(const struct slp_attention *a, const struct slp_view *q, const struct slp_view *k,
                           const struct slp_view *v, const struct slp_view *mask, const struct slp_view *out,
                           const struct slp_view *out_logs)
{
	for (int64_t row = 0; row < a->heads * a->t; row++) {
		int64_t h = row / a->t, i = row % a->t;
		double most = -INFINITY, sum = 0;
		for (int64_t j = 0; j < a->s; j++) most = fmax(most, score(a, q, k, mask, h, i, j));
		for (int64_t j = 0; j < a->s; j++) sum += share(score(a, q, k, mask, h, i, j), most);
		double logs = sum == 0 ? -INFINITY : most + log(sum);
		if (out_logs) slp_set(out_logs, row, logs);
		for (int64_t c = 0; c < a->dv; c++) {
			double y = 0;
			for (int64_t j = 0; j < slp_attention_seen(a, i); j++)
				y += share(score(a, q, k, mask, h, i, j), logs) *
				     slp_get(v, (h * a->s + j) * a->dv + c);
			slp_set(out, row * a->dv + c, y);
		}
	}
}

static enum sl_status attention_ref(const struct slp_kernel *k)
{
	struct slp_attention a = sizes_of(k, 0, 3);
	slp_attention_by_hand(&a, &k->in[0], &k->in[1], &k->in[2], &k->in[3], &k->out[0], &k->out[1]);
	return SL_OK;
}

static void add(const struct slp_view *to, int64_t at, double factor, const struct slp_view *from, int64_t ft,
                int64_t n)
{
	for (int64_t c = 0; c < n; c++) slp_set(to, at + c, slp_get(to, at + c) + factor * slp_get(from, ft + c));
}

static enum sl_status attention_grad_ref(const struct slp_kernel *k)
{
	struct slp_attention a = sizes_of(k, 1, 6);
	const struct slp_view *dy = &k->in[0], *q = &k->in[1], *key = &k->in[2], *v = &k->in[3], *y = &k->in[4];
	for (int o = 0; o < 3; o++)
		for (int64_t e = 0; e < slp_size(&k->out[o]); e++) slp_set(&k->out[o], e, 0);
	for (int64_t row = 0; row < a.heads * a.t; row++) {
		int64_t h = row / a.t, i = row % a.t;
		double all = dot_of(dy, row * a.dv, y, row * a.dv, a.dv), logs = slp_get(&k->in[5], row);
		for (int64_t j = 0; j < slp_attention_seen(&a, i); j++) {
			int64_t other = h * a.s + j;
			double p = share(score(&a, q, key, &k->in[6], h, i, j), logs);
			double ds = a.scale * p * (dot_of(dy, row * a.dv, v, other * a.dv, a.dv) - all);
			add(&k->out[0], row * a.d, ds, key, other * a.d, a.d);
			add(&k->out[1], other * a.d, ds, q, row * a.d, a.d);
			add(&k->out[2], other * a.dv, p, dy, row * a.dv, a.dv);
		}
	}
	return SL_OK;
}

/* ---- CPU: blocks ------------------------------------------------------------------------------------------------- */

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
	slp_sgemm_serial(false, true, rows, width, a->d, (float)a->scale, w->q + (h * a->t + i) * a->d, a->d,
	                 w->k + (h * a->s + j) * a->d, a->d, 0, s[0], KEYS);
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

SLP_INLINE float row_max(const float *x, int64_t n, float m)
{
	float a[LANES];
	int64_t c = 0;
	for (int l = 0; l < LANES; l++) a[l] = m;
	for (; c + LANES <= n; c += LANES)
		for (int l = 0; l < LANES; l++) a[l] = x[c + l] > a[l] ? x[c + l] : a[l];
	for (; c < n; c++) m = x[c] > m ? x[c] : m;
	for (int l = 0; l < LANES; l++) m = a[l] > m ? a[l] : m;
	return m;
}

/* x = exp(x - m); returns the sum. */
SLP_INLINE float row_exp(float *x, int64_t n, float m)
{
	float a[LANES] = {0}, sum = 0;
	int64_t c = 0;
	for (; c + LANES <= n; c += LANES)
		for (int l = 0; l < LANES; l++) a[l] += x[c + l] = slp_exp_falling(x[c + l] - m);
	for (; c < n; c++) sum += x[c] = slp_exp_falling(x[c] - m);
	for (int l = 0; l < LANES; l++) sum += a[l];
	return sum;
}

/* Turns scores into weights relative to the largest score so far, and scales y, the earlier sums, accordingly. */
SLP_CLONES static void soften(block s, int64_t rows, int64_t width, float *most, float *sum, float *y, int64_t dv)
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
			for (int64_t c = 0; c < dv; c++) y[r * dv + c] *= before;
	}
}

static void finish(const struct job *w, int64_t row, int64_t rows, const float *most, const float *sum)
{
	float *y = w->out + row * w->a.dv;
	for (int64_t r = 0; r < rows; r++) {
		float inverse = sum[r] == 0 ? 0 : 1 / sum[r];
		if (w->out_logs) w->out_logs[row + r] = sum[r] == 0 ? -INFINITY : most[r] + logf(sum[r]);
		for (int64_t c = 0; c < w->a.dv; c++) y[r * w->a.dv + c] *= inverse;
	}
}

static void forward_block(const struct job *w, int64_t h, int64_t i)
{
	const struct slp_attention *a = &w->a;
	block s;
	float most[QUERIES], sum[QUERIES] = {0}, *y = w->out + (h * a->t + i) * a->dv;
	int64_t rows = least(QUERIES, a->t - i), seen = slp_attention_seen(a, i + rows - 1);
	for (int64_t r = 0; r < rows; r++) most[r] = -INFINITY;
	memset(y, 0, (size_t)(rows * a->dv) * sizeof *y);
	for (int64_t j = 0; j < seen; j += KEYS) {
		int64_t width = least(KEYS, seen - j);
		scores(w, h, i, rows, j, width, s);
		soften(s, rows, width, most, sum, y, a->dv);
		slp_sgemm_serial(false, false, rows, a->dv, width, 1, s[0], KEYS, w->v + (h * a->s + j) * a->dv, a->dv,
		                 1, y, a->dv);
	}
	finish(w, h * a->t + i, rows, most, sum);
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

static enum sl_status attention_cpu(const struct slp_kernel *k)
{
	struct slp_attention a = sizes_of(k, 0, 3);
	slp_attention_by_blocks(&a, k->in[0].ptr, k->in[1].ptr, k->in[2].ptr, k->nin > 3 ? k->in[3].ptr : NULL,
	                        k->out[0].ptr, k->out[1].ptr);
	return SL_OK;
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

/* Which gradients a thread computes. */
enum part { QUERY = 1, KEY_AND_VALUE = 2 };

/* The backward pass of one block of queries and one of keys. */
static void backward_block(const struct job *w, int parts, int64_t h, int64_t i, int64_t j)
{
	const struct slp_attention *a = &w->a;
	int64_t rows = least(QUERIES, a->t - i), width = least(KEYS, slp_attention_seen(a, i + rows - 1) - j);
	int64_t row = h * a->t + i, key = h * a->s + j;
	block p, d;
	if (width <= 0) return;
	scores(w, h, i, rows, j, width, p);
	shares(p, rows, width, w->logs + row);
	const float *dy = w->dy + row * a->dv, *q = w->q + row * a->d;
	if (parts & KEY_AND_VALUE)
		slp_sgemm_serial(true, false, width, a->dv, rows, 1, p[0], KEYS, dy, a->dv, 1, w->dv + key * a->dv,
		                 a->dv);
	slp_sgemm_serial(false, true, rows, width, a->dv, 1, dy, a->dv, w->v + key * a->dv, a->dv, 0, d[0], KEYS);
	slopes(d, p, rows, width, w->sums + row);
	float scale = (float)a->scale;
	if (parts & QUERY)
		slp_sgemm_serial(false, false, rows, a->d, width, scale, d[0], KEYS, w->k + key * a->d, a->d, 1,
		                 w->dq + row * a->d, a->d);
	if (parts & KEY_AND_VALUE)
		slp_sgemm_serial(true, false, width, a->d, rows, scale, d[0], KEYS, q, a->d, 1, w->dk + key * a->d,
		                 a->d);
}

/* sums[row] = dy · y */
SLP_CLONES static void weigh(const struct job *w, int64_t row)
{
	const float *dy = w->dy + row * w->a.dv, *y = w->y + row * w->a.dv;
	float sum = 0;
	for (int64_t c = 0; c < w->a.dv; c++) sum += dy[c] * y[c];
	w->sums[row] = sum;
}

static void weigh_range(void *arg, int64_t begin, int64_t end)
{
	for (int64_t row = begin; row < end; row++) weigh(arg, row);
}

static void clear(float *first, int64_t count)
{
	memset(first, 0, (size_t)count * sizeof *first);
}

/* Sums have one order: of queries by blocks of keys, of keys by blocks of queries. */
static void backward_range(void *arg, int64_t begin, int64_t end)
{
	const struct job *w = arg;
	const struct slp_attention *a = &w->a;
	for (int64_t h = begin; h < end; h++) {
		clear(w->dq + h * a->t * a->d, a->t * a->d);
		clear(w->dk + h * a->s * a->d, a->s * a->d);
		clear(w->dv + h * a->s * a->dv, a->s * a->dv);
		for (int64_t i = 0; i < a->t; i++) weigh(w, h * a->t + i);
		for (int64_t j = 0; j < a->s; j += KEYS)
			for (int64_t i = 0; i < a->t; i += QUERIES) backward_block(w, QUERY | KEY_AND_VALUE, h, i, j);
	}
}

static void backward_of_queries(const struct job *w, int64_t h, int64_t i)
{
	const struct slp_attention *a = &w->a;
	clear(w->dq + (h * a->t + i) * a->d, least(QUERIES, a->t - i) * a->d);
	for (int64_t j = 0; j < a->s; j += KEYS) backward_block(w, QUERY, h, i, j);
}

static void backward_of_keys(const struct job *w, int64_t h, int64_t j)
{
	const struct slp_attention *a = &w->a;
	clear(w->dk + (h * a->s + j) * a->d, least(KEYS, a->s - j) * a->d);
	clear(w->dv + (h * a->s + j) * a->dv, least(KEYS, a->s - j) * a->dv);
	for (int64_t i = 0; i < a->t; i += QUERIES) backward_block(w, KEY_AND_VALUE, h, i, j);
}

/* Blocks of keys of all heads, which take longer, then those of queries. */
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

static enum sl_status attention_grad_cpu(const struct slp_kernel *k)
{
	struct job w = {.a = sizes_of(k, 1, 6),
	                .dy = k->in[0].ptr,
	                .q = k->in[1].ptr,
	                .k = k->in[2].ptr,
	                .v = k->in[3].ptr,
	                .y = k->in[4].ptr,
	                .logs = k->in[5].ptr,
	                .mask = k->nin > 6 ? k->in[6].ptr : NULL,
	                .dq = k->out[0].ptr,
	                .dk = k->out[1].ptr,
	                .dv = k->out[2].ptr,
	                .sums = k->scratch};
	backward(&w, k->threads);
	return SL_OK;
}

/* Scratch memory for the products on a GPU. */
static size_t products_scratch(const struct slp_infer *c, bool back)
{
#if defined HAVE_CUDA || defined SLP_SIMULATION
	const struct slp_type *q = &c->in[back];
	struct slp_attention a = slp_attention_of(c->attrs, q[0].shape, q[1].shape, q[2].shape, NULL);
	if (q->dtype == SL_FLOAT32 && a.d <= SLP_ATTENTION_TILE && a.dv <= SLP_ATTENTION_TILE) return 0;
	size_t bytes = slp_attention_score_bytes(q->dtype, back);
	size_t products = (size_t)(slp_attention_heads_at_once(&a, bytes) * a.t * a.s) * bytes, graph = 0;
	if (slp_is_half(q->dtype) && slp_attention_graph_heads(&a, back) > 0)
		graph = slp_attention_graph_work(&a, back) +
		        (back ? slp_attention_sums_bytes(slp_attention_graph_heads(&a, back) * a.t) : 0);
	return products > graph ? products : graph;
#else
	(void)c;
	(void)back;
	return 0;
#endif
}

static size_t attention_scratch(const struct slp_infer *c)
{
	return products_scratch(c, false);
}

/* On a CPU one number for each query. */
static size_t attention_grad_scratch(const struct slp_infer *c)
{
	size_t cpu = sizeof(float) * (size_t)sl_shape_size(c->in[5].shape), gpu = products_scratch(c, true);
	return cpu > gpu ? cpu : gpu;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

/* Autocast computes attention in the half type; its gradients take the saved tensors, of which logs is float32. */
#define CAST_attention SLP_CAST_LOWER
#define CAST_attention_grad SLP_CAST_NONE

/* Attention: softmax(scale q·kᵀ + mask)·v over the keys, for each head. q is (…, t, d), k (…, s, d), v (…, s, e), the
 * result (…, t, e); the other axes are the same. scale is one over the root of d by default.  causal: query i sees keys
 * 0 to i.  mask is broadcast to (…, t, s); a mask of floats, in the data type of q, is added; a mask of bools or
 * integers is not 0 where a query sees a key.  A query that sees no key gets zeros.  Gradients flow to q, k and v.  No
 * tensor of the size (t, s) is kept.  As torch.nn.functional.scaled_dot_product_attention.  SL_ESHAPE, SL_EDTYPE:
 * arguments do not match; SL_EINVAL: a scale that is not finite.
 *
 *     y = sl_scaled_dot_product_attention(q, k, v, .causal = true); */
sl_tensor *sl_scaled_dot_product_attention_at(const char *at, sl_tensor *q, sl_tensor *k, sl_tensor *v,
                                              struct sl_attention_opts opts)
{
	SLP_FUNCTION("sl_scaled_dot_product_attention", at);
	if (!SLP_OPTIONS(sl_attention_opts, at, "sl_scaled_dot_product_attention", &opts)) return NULL;
	struct slp_attention_attrs attrs = {opts.scale, opts.causal};
	sl_tensor *out[2], *mask = opts.mask;
	if (mask && q && k && !(mask = slp_added_mask(at, q, k, mask))) return NULL;
	enum sl_status s = slp_apply(at, &slp_op_attention, &attrs, mask ? 4 : 3, (sl_tensor *[]){q, k, v, mask},
	                             (sl_device){0}, out);
	return s == SL_OK ? SLP_RETURN(out[0]) : NULL;
}

/* The logs of half types are float32. */
#define ROWS(name)                                                                                                     \
	SLP_ROWS(SLP_ROW(SLP_F32, name##_cpu, slp_cuda_##name), SLP_ROW(SLP_F64, name##_ref, slp_cuda_##name),         \
	         SLP_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, NULL, slp_cuda_##name),                                     \
	         SLP_ROW(SLP_DTYPE(SL_FLOAT16) | SLP_F32, NULL, slp_cuda_##name))
/* clang-format off */
#define ATTENTION(op_name, about, inputs, least_in, most_in, results, ...)                                             \
	const struct sl_op slp_op_##op_name = {                                                                        \
		.name = #op_name,                                                                                      \
		.doc = about,                                                                                          \
		.args = inputs,                                                                                        \
		.nin_min = least_in,                                                                                   \
		.nin_max = most_in,                                                                                    \
		.nout = results,                                                                                       \
		.attr_table = attr_table,                                                                              \
		.attrs_size = sizeof(struct slp_attention_attrs),                                                      \
		.rows = ROWS(op_name),                                                                                 \
		.declines = true,                                                                                      \
		.autocast = CAST_##op_name,                                                                            \
		.infer = op_name##_infer,                                                                              \
		.flops = attention_flops,                                                                              \
		.ref = op_name##_ref,                                                                                  \
		__VA_ARGS__}
/* clang-format on */

ATTENTION(attention, "attention of queries to keys and values", "q k v mask", 3, 4, 2,
          .saves = SLP_IN(0) | SLP_IN(1) | SLP_IN(2) | SLP_IN(3) | SLP_OUT(0) | SLP_OUT(1), .grad = grad,
          .again = slp_attention_again, .scratch = attention_scratch, .forget = SLP_CUDA_FORGET(slp_attention_forget));
ATTENTION(attention_grad, "gradients of attention", "dy q k v y logs mask", 6, 7, 3, .scratch = attention_grad_scratch);
