/* cached_attention: attention over keys and values that earlier calls wrote into a cache, and over those of this
 * call. */
#include <math.h>
#include <string.h>

#include "attention.h"
#include "op_list/attention.h"
#include "options.h"
#include "starling/functions.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR_DEFAULTED(struct slp_attention_attrs, scale, "of the products; 0: one over the root of the width"),
        {0},
};

enum { Q, K, V, KEYS, VALUES, PLACE, INPUTS };

/* ---- rules ------------------------------------------------------------------------------------------------------- */

/* Whether the cache takes rows of this shape: all axes but that of the positions are the same. */
static bool takes(sl_shape cache, sl_shape rows)
{
	if (rows.ndim < 2 || cache.ndim != rows.ndim) return false;
	rows.dim[rows.ndim - 2] = cache.dim[rows.ndim - 2];
	return sl_shape_equal(rows, cache);
}

static bool shapes_fit(const struct slp_type *in)
{
	sl_shape q = in[Q].shape, v = in[V].shape;
	int n = q.ndim;
	if (n < 2 || !sl_shape_equal(in[K].shape, q) || v.ndim != n) return false;
	q.dim[n - 1] = v.dim[n - 1];
	return sl_shape_equal(q, v) && takes(in[KEYS].shape, in[K].shape) && takes(in[VALUES].shape, v) &&
	       in[KEYS].shape.dim[n - 2] == in[VALUES].shape.dim[n - 2];
}

static enum sl_status cached_attention_infer(struct slp_infer *c)
{
	const struct slp_type *in = c->in;
	struct slp_attention_attrs *a = c->attrs;
	enum sl_dtype kept = in[KEYS].dtype;
	if (!slp_is_float(in[Q].dtype) || in[K].dtype != in[Q].dtype || in[V].dtype != in[Q].dtype)
		return slp_reject(c, SL_EDTYPE, "q, k and v must be floats of one data type");
	if (in[VALUES].dtype != kept || (kept != in[Q].dtype && kept != slp_promoted(in[Q].dtype)))
		return slp_reject(c, SL_EDTYPE,
		                  "keys and values must have the data type of q, or float32 if that is a half type");
	if (in[PLACE].dtype != SL_INT32 || sl_shape_size(in[PLACE].shape) != 1)
		return slp_reject(c, SL_EDTYPE, "the place must be one int32");
	if (!shapes_fit(in))
		return slp_reject(c, SL_ESHAPE,
		                  "q and k (…, t, d), v (…, t, e), keys (…, s, d) and values (…, s, e) needed");
	if (!isfinite(a->scale)) return slp_reject(c, SL_EINVAL, "scale is %g, a finite number needed", a->scale);
	slp_attention_set_scale(a, in[Q].shape);
	a->causal = true;
	c->out[0] = in[V];
	return SL_OK;
}

/* An upper bound: as if all positions were occupied. */
static double cached_attention_flops(const struct slp_infer *c)
{
	struct slp_attention a =
	        slp_attention_of(c->attrs, c->in[Q].shape, c->in[KEYS].shape, c->in[VALUES].shape, NULL);
	return 2 * (double)a.heads * (double)a.t * (double)a.s * (double)(a.d + a.dv);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* Sizes, with the position of query 0 among the keys; SL_EINVAL if they have no room for it. */
static enum sl_status sizes_of(const struct slp_kernel *k, struct slp_attention *a)
{
	*a = slp_attention_of(k->attrs, k->in[Q].type.shape, k->in[KEYS].type.shape, k->in[VALUES].type.shape, NULL);
	a->before = *(const int32_t *)k->in[PLACE].ptr;
	if (slp_attention_has_room(a, a->before)) return SL_OK;
	return slp_kernel_fail(k, SL_EINVAL, "%lld steps at place %lld: the keys have %lld places", (long long)a->t,
	                       (long long)a->before, (long long)a->s);
}

static void append_by_hand(const struct slp_attention *a, const struct slp_view *rows, const struct slp_view *cache,
                           int64_t width)
{
	for (int64_t e = 0; e < a->heads * a->t * width; e++) {
		int64_t h = e / width / a->t, i = e / width % a->t;
		slp_set(cache, (h * a->s + a->before + i) * width + e % width, slp_get(rows, e));
	}
}

static enum sl_status cached_attention_ref(const struct slp_kernel *k)
{
	struct slp_attention a;
	const struct slp_view *in = k->in;
	enum sl_status s = sizes_of(k, &a);
	if (s) return s;
	append_by_hand(&a, &in[K], &in[KEYS], a.d);
	append_by_hand(&a, &in[V], &in[VALUES], a.dv);
	slp_attention_by_hand(&a, &in[Q], &in[KEYS], &in[VALUES], NULL, &k->out[0], NULL);
	return SL_OK;
}

static void append(const struct slp_attention *a, const float *rows, float *cache, int64_t width)
{
	size_t run = (size_t)(a->t * width);
	for (int64_t h = 0; run && h < a->heads; h++)
		memcpy(cache + (h * a->s + a->before) * width, rows + (size_t)h * run, run * sizeof *rows);
}

static enum sl_status cached_attention_cpu(const struct slp_kernel *k)
{
	struct slp_attention a;
	const struct slp_view *in = k->in;
	enum sl_status s = sizes_of(k, &a);
	if (s) return s;
	append(&a, in[K].ptr, in[KEYS].ptr, a.d);
	append(&a, in[V].ptr, in[VALUES].ptr, a.dv);
	slp_attention_by_blocks(&a, in[Q].ptr, in[KEYS].ptr, in[VALUES].ptr, NULL, k->out[0].ptr, NULL);
	return SL_OK;
}

/* Scratch memory for the parts of the keys on a GPU. */
static size_t cached_attention_scratch(const struct slp_infer *c)
{
	struct slp_attention a =
	        slp_attention_of(c->attrs, c->in[Q].shape, c->in[KEYS].shape, c->in[VALUES].shape, NULL);
	int64_t parts = slp_attention_parts(&a);
	return parts > 1 ? sizeof(float) * (size_t)(a.heads * a.t * parts * (a.dv + 2)) : 0;
}

/* ---- the operation ----------------------------------------------------------------------------------------------- */

/* Causal attention of the next steps of a sequence, with a cache of keys and values: k and v are written into keys and
 * values at `place` and after it, in place, and query i sees keys 0 to place + i.  Later elements of the cache have no
 * effect, so one program serves all places.  q and k are (…, t, d), v is (…, t, e), keys (…, s, d), values (…, s, e),
 * the place is one int32, the result (…, t, e). keys and values have the data type of q, or float32 if q has a half
 * type, which is faster; sl_autocast converts nothing.  No gradient flows through it.  sl_cache_new makes such caches
 * for whole networks.  SL_ESHAPE, SL_EDTYPE: arguments do not match; SL_EINVAL: a scale that is not finite.  If keys
 * have fewer than t steps left, the operation fails with SL_EINVAL on a CPU; on a GPU nothing is written, and the
 * result is NaN.
 *
 *     sl_tensor *keys = sl_zeros(SL_SHAPE(1, heads, 1024, 64)), *values = sl_zeros(SL_SHAPE(1, heads, 1024, 64));
 *     y = sl_cached_attention(q, k, v, keys, values, sl_full(SL_SHAPE(1), 17, .dtype = SL_INT32)); */
sl_tensor *sl_cached_attention_at(const char *at, sl_tensor *q, sl_tensor *k, sl_tensor *v, sl_tensor *keys,
                                  sl_tensor *values, sl_tensor *place, struct sl_cached_attention_opts opts)
{
	if (!SLP_OPTIONS(sl_cached_attention_opts, at, "sl_cached_attention", &opts)) return NULL;
	return slp_apply1(at, &slp_op_cached_attention,
	                  &(struct slp_attention_attrs){.scale = opts.scale, .causal = true}, INPUTS,
	                  (sl_tensor *[]){q, k, v, keys, values, place});
}

const struct sl_op slp_op_cached_attention = {
        .name = "cached_attention",
        .doc = "attention of queries to cached keys and values; appends those of the call",
        .args = "q k v keys values place",
        SLP_NIN(INPUTS),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_attention_attrs),
        .mutates = SLP_IN(KEYS) | SLP_IN(VALUES),
        /* Keys and values of half types may be float32. */
        .rows = SLP_ROWS(SLP_ROW(SLP_F32, cached_attention_cpu, slp_cuda_cached_attention),
                         SLP_ROW(SLP_F64, cached_attention_ref, slp_cuda_cached_attention),
                         SLP_ROW(SLP_DTYPE(SL_BFLOAT16) | SLP_F32, NULL, slp_cuda_cached_attention),
                         SLP_ROW(SLP_DTYPE(SL_FLOAT16) | SLP_F32, NULL, slp_cuda_cached_attention)),
        .declines = true,
        .scratch = cached_attention_scratch,
        .infer = cached_attention_infer,
        .flops = cached_attention_flops,
        .ref = cached_attention_ref,
};
