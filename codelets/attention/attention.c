/* Attention: attention and its gradient attention_grad, with reference kernels; attention_cpu.c has those for CPUs. */
#include "attention.h"
#include "op_list/attention.h"
#include "options.h"
#include "starling/functions.h"

#include <math.h>
#include <string.h>

#include "common/forget.h"

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

enum sl_status slp_attention_check(const struct slp_infer *c, const struct slp_type *q, const struct slp_type *k,
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
	enum sl_status status = slp_attention_check(c, q, &c->in[1], v, c->nin > 3 ? &c->in[3] : NULL);
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

double slp_attention_work(const struct slp_attention *a, bool back)
{
	double pairs = (double)a->heads * (double)a->t * (double)a->s * (a->causal ? 0.5 : 1);
	return 2 * pairs * (double)(back ? 3 * a->d + 2 * a->dv : a->d + a->dv);
}

static double attention_flops(const struct slp_infer *c)
{
	bool back = c->nout == 3;
	const struct slp_type *q = &c->in[back];
	struct slp_attention a = slp_attention_of(c->attrs, q[0].shape, q[1].shape, q[2].shape, NULL);
	return slp_attention_work(&a, back);
}

/* dy, q, k, v, y, logs, mask */
static enum sl_status attention_grad_infer(struct slp_infer *c)
{
	enum sl_status status = slp_attention_check(c, &c->in[1], &c->in[2], &c->in[3], c->nin > 6 ? &c->in[6] : NULL);
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
	double x = a->scale * dot_of(q, slp_attention_at(a, &a->q, h, i), k, slp_attention_at(a, &a->k, h, j), a->d);
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
				     slp_get(v, slp_attention_at(a, &a->v, h, j) + c);
			slp_set(out, slp_attention_at(a, &a->y, h, i) + c, y);
		}
	}
}

enum sl_status slp_attention_plain(const struct slp_kernel *k, const struct slp_attention *a)
{
	slp_attention_by_hand(a, &k->in[0], &k->in[1], &k->in[2], &k->in[3], &k->out[0], &k->out[1]);
	return SL_OK;
}

static enum sl_status attention_ref(const struct slp_kernel *k)
{
	struct slp_attention a = slp_attention_sizes(k, 0, 3);
	return slp_attention_plain(k, &a);
}

static void add(const struct slp_view *to, int64_t at, double factor, const struct slp_view *from, int64_t ft,
                int64_t n)
{
	for (int64_t c = 0; c < n; c++) slp_set(to, at + c, slp_get(to, at + c) + factor * slp_get(from, ft + c));
}

static void clear(const struct slp_attention *a, const struct slp_head_steps *o, int64_t places, int64_t width,
                  const struct slp_view *to)
{
	for (int64_t h = 0; h < a->heads; h++)
		for (int64_t i = 0; i < places; i++)
			for (int64_t c = 0; c < width; c++) slp_set(to, slp_attention_at(a, o, h, i) + c, 0);
}

enum sl_status slp_attention_grad_plain(const struct slp_kernel *k, const struct slp_attention *a)
{
	const struct slp_view *dy = &k->in[0], *q = &k->in[1], *key = &k->in[2], *v = &k->in[3], *y = &k->in[4];
	clear(a, &a->q, a->t, a->d, &k->out[0]);
	clear(a, &a->k, a->s, a->d, &k->out[1]);
	clear(a, &a->v, a->s, a->dv, &k->out[2]);
	for (int64_t row = 0; row < a->heads * a->t; row++) {
		int64_t h = row / a->t, i = row % a->t, query = slp_attention_at(a, &a->q, h, i),
		        result = slp_attention_at(a, &a->y, h, i);
		double all = dot_of(dy, result, y, result, a->dv), logs = slp_get(&k->in[5], row);
		for (int64_t j = 0; j < slp_attention_seen(a, i); j++) {
			int64_t other = slp_attention_at(a, &a->k, h, j), value = slp_attention_at(a, &a->v, h, j);
			double p = share(score(a, q, key, &k->in[6], h, i, j), logs);
			double ds = a->scale * p * (dot_of(dy, result, v, value, a->dv) - all);
			add(&k->out[0], query, ds, key, other, a->d);
			add(&k->out[1], other, ds, q, query, a->d);
			add(&k->out[2], value, p, dy, result, a->dv);
		}
	}
	return SL_OK;
}

static enum sl_status attention_grad_ref(const struct slp_kernel *k)
{
	struct slp_attention a = slp_attention_sizes(k, 1, 6);
	return slp_attention_grad_plain(k, &a);
}

/* ---- scratch ----------------------------------------------------------------------------------------------------- */

/* For the products on a GPU. */
static size_t products_memory(const struct slp_attention *a, enum sl_dtype dtype, bool back)
{
#if defined HAVE_CUDA || defined SLP_SIMULATION
	if (dtype == SL_FLOAT32 && a->d <= SLP_ATTENTION_TILE && a->dv <= SLP_ATTENTION_TILE) return 0;
	size_t bytes = slp_attention_score_bytes(dtype, back);
	size_t products = (size_t)(slp_attention_heads_at_once(a, bytes) * a->t * a->s) * bytes, graph = 0;
	if (slp_is_half(dtype) && slp_attention_graph_heads(a, back) > 0)
		graph = slp_attention_graph_work(a, back) +
		        (back ? 2 * slp_attention_sums_bytes(slp_attention_graph_heads(a, back) * a->t) : 0);
	return products > graph ? products : graph;
#else
	(void)a;
	(void)dtype;
	(void)back;
	return 0;
#endif
}

/* Backward, a CPU needs one number for each query. */
size_t slp_attention_memory(const struct slp_attention *a, enum sl_dtype dtype, bool back)
{
	size_t cpu = back ? sizeof(float) * (size_t)(a->heads * a->t) : 0, gpu = products_memory(a, dtype, back);
	return cpu > gpu ? cpu : gpu;
}

static size_t scratch(const struct slp_infer *c, bool back)
{
	const struct slp_type *q = &c->in[back];
	struct slp_attention a = slp_attention_of(c->attrs, q[0].shape, q[1].shape, q[2].shape, NULL);
	return slp_attention_memory(&a, q->dtype, back);
}

static size_t attention_scratch(const struct slp_infer *c)
{
	return scratch(c, false);
}

static size_t attention_grad_scratch(const struct slp_infer *c)
{
	return scratch(c, true);
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
	struct slp_attention_attrs attrs = {.scale = opts.scale, .causal = opts.causal};
	sl_tensor *out[2], *mask = opts.mask;
	if (mask && q && k && !(mask = slp_added_mask(at, q, k, mask))) return NULL;
	enum sl_status s = slp_apply(at, &slp_op_attention, &attrs, mask ? 4 : 3, (sl_tensor *[]){q, k, v, mask},
	                             (sl_device){0}, out);
	return s == SL_OK ? SLP_RETURN(out[0]) : NULL;
}

/* The logs of half types are float32. */
#define ROWS(name)                                                                                                     \
	SLP_ROWS(SLP_ROW(SLP_F32, slp_##name##_cpu, slp_cuda_##name), SLP_ROW(SLP_F64, name##_ref, slp_cuda_##name),   \
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
		.aligned = true,                                                                                       \
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
