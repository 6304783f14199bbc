/* ONNX operators, computed: attention, and positions as rotations. */
#include <math.h>

#include "onnx/model/call.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* The node's attributes and operands: as (batch, heads, length, width). */
struct attention {
	sl_tensor *q, *k, *v;
	sl_tensor *bias; /* added to the scores; NULL: none */
	bool joined;     /* heads are adjacent in the last axis of the file's operands */
	int64_t past;    /* keys before the first query's own */
	sl_tensor *keys; /* of each sample, (batch, 1, 1, 1), where the others are padding; NULL: all */
	double scale, softcap;
	int mode; /* which scores are the fourth result */
};

/* (batch, length, heads * width) as (batch, heads, length, width). */
static sl_tensor *with_heads(struct slp_onnx_call *c, sl_tensor *x, const char *attribute)
{
	static const int order[] = {0, 2, 1, 3};
	if (!x) return NULL;
	sl_shape s = sl_tensor_shape(x);
	if (s.ndim != 3) return x;
	int heads = slp_onnx_attr_small(c, attribute, 0, 1, INT32_MAX);
	if (!c->failed && s.dim[2] % heads)
		slp_onnx_call_fail(c, SL_ESHAPE, "%d heads in rows of %lld", heads, (long long)s.dim[2]);
	if (c->failed) return NULL;
	x = sl_reshape_at(c->at, x, SL_SHAPE(s.dim[0], s.dim[1], heads, s.dim[2] / heads));
	return x ? sl_transpose_at(c->at, x, (struct sl_reduce_opts){.axes = order, .naxes = 4}) : NULL;
}

static sl_tensor *without_heads(struct slp_onnx_call *c, sl_tensor *y)
{
	static const int order[] = {0, 2, 1, 3};
	y = y ? sl_transpose_at(c->at, y, (struct sl_reduce_opts){.axes = order, .naxes = 4}) : NULL;
	if (!y) return NULL;
	sl_shape s = sl_tensor_shape(y);
	return sl_reshape_at(c->at, y, SL_SHAPE(s.dim[0], s.dim[1], s.dim[2] * s.dim[3]));
}

/* Appended to the keys and values of earlier calls. */
static sl_tensor *behind(struct slp_onnx_call *c, int i, sl_tensor *x)
{
	if (!x || !slp_onnx_has(c, i)) return x;
	sl_tensor *list[] = {slp_onnx_tensor(c, i), x};
	return list[0] ? sl_concat_at(c->at, list, 2, 2) : NULL;
}

/* 0 where a query may look, minus infinity where not: at later keys, and outside of its window. */
static sl_tensor *frontier(struct slp_onnx_call *c, const struct attention *a)
{
	bool causal = slp_onnx_attr_int(c, "is_causal", 0) != 0;
	int64_t left = slp_onnx_attr_int(c, "left_window_size", -1),
	        right = slp_onnx_attr_int(c, "right_window_size", -1);
	int64_t n = sl_tensor_shape(a->q).dim[2], m = sl_tensor_shape(a->k).dim[2];
	if (causal && right != 0) right = 0;
	if (left < 0 && right < 0 && !a->keys) return NULL;
	struct sl_make make = {sl_tensor_dtype(a->q), sl_tensor_device(a->q)}, whole = {SL_INT64, make.device};
	sl_tensor *i = sl_arange_at(c->at, (double)a->past, (double)(a->past + n), 1, whole),
	          *j = sl_arange_at(c->at, 0, (double)m, 1, whole);
	i = i ? sl_reshape_at(c->at, i, SL_SHAPE(n, 1)) : NULL;
	if (i && a->keys) i = sl_add_at(c->at, i, sl_sub_scalar_at(c->at, a->keys, (double)n));
	sl_tensor *ahead = i && j ? sl_sub_at(c->at, j, i) : NULL;
	sl_tensor *hidden = ahead && right >= 0 ? sl_gt_scalar_at(c->at, ahead, (double)right) : NULL;
	if (ahead && left >= 0) {
		sl_tensor *far = sl_lt_scalar_at(c->at, ahead, (double)-left);
		hidden = hidden && far ? sl_maximum_at(c->at, hidden, far) : far;
	}
	if (ahead && a->keys) {
		sl_tensor *padding = sl_ge_at(c->at, j, a->keys);
		hidden = hidden && padding ? sl_maximum_at(c->at, hidden, padding) : padding;
	}
	sl_tensor *zero = hidden ? sl_zeros_at(c->at, SL_SCALAR, make) : NULL;
	return zero ? sl_masked_fill_at(c->at, zero, hidden, -INFINITY) : NULL;
}

/* The mask as numbers that are added; keys that it does not reach are hidden. */
static sl_tensor *mask_of(struct slp_onnx_call *c, const struct attention *a)
{
	sl_tensor *mask = slp_onnx_tensor(c, 3);
	sl_shape s = mask ? sl_tensor_shape(mask) : SL_SCALAR;
	int64_t keys = sl_tensor_shape(a->k).dim[2];
	struct sl_make make = {sl_tensor_dtype(a->q), sl_tensor_device(a->q)};
	if (!mask || s.ndim < 1) return mask;
	if (!slp_is_float(sl_tensor_dtype(mask))) {
		sl_tensor *hidden = sl_logical_not_at(c->at, sl_cast_at(c->at, mask, make.dtype));
		mask = hidden ? sl_masked_fill_at(c->at, sl_zeros_at(c->at, SL_SCALAR, make), hidden, -INFINITY) : NULL;
	}
	int64_t more = keys - s.dim[s.ndim - 1];
	if (mask && more > 0 && s.dim[s.ndim - 1] > 1)
		mask = sl_pad_at(c->at, mask, s.ndim - 1, 0, more, (struct sl_pad_opts){.value = -INFINITY});
	return mask;
}

static bool read_attention(struct slp_onnx_call *c, struct attention *a)
{
	*a = (struct attention){.softcap = slp_onnx_attr_float(c, "softcap", 0),
	                        .mode = slp_onnx_attr_small(c, "qk_matmul_output_mode", 0, 0, 3)};
	a->joined = slp_onnx_shape(c, 0).ndim == 3;
	if (slp_onnx_has(c, 6)) {
		sl_tensor *t = slp_onnx_tensor(c, 6);
		t = t ? sl_cast_at(c->at, t, SL_INT64) : NULL;
		a->keys = t ? sl_reshape_at(c->at, t, SL_SHAPE(-1, 1, 1, 1)) : NULL;
		if (!a->keys) c->failed = true; /* and recorded */
	}
	a->q = with_heads(c, slp_onnx_tensor(c, 0), "q_num_heads");
	a->k = c->failed ? NULL : behind(c, 4, with_heads(c, slp_onnx_tensor(c, 1), "kv_num_heads"));
	a->v = c->failed || !a->k ? NULL : behind(c, 5, with_heads(c, slp_onnx_tensor(c, 2), "kv_num_heads"));
	if (!a->q || !a->v) c->failed = true; /* and recorded */
	if (c->failed) return false;
	sl_shape q = sl_tensor_shape(a->q), k = sl_tensor_shape(a->k);
	if (q.ndim != 4 || k.ndim != 4 || sl_tensor_shape(a->v).ndim != 4 || !k.dim[1] || q.dim[1] % k.dim[1])
		slp_onnx_call_fail(c, SL_ESHAPE, "the heads of queries do not fit those of keys");
	a->scale = slp_onnx_attr(c, "scale") ? slp_onnx_attr_float(c, "scale", 1) : 1 / sqrt((double)q.dim[3]);
	if (!c->failed && slp_onnx_has(c, 4)) a->past = slp_onnx_shape(c, 4).dim[2];
	return !c->failed;
}

/* Softmax, in which a row of nothing but minus infinity is zeros. */
static sl_tensor *shares(struct slp_onnx_call *c, sl_tensor *scores, bool masked)
{
	int last = sl_tensor_shape(scores).ndim - 1;
	if (!masked) return sl_softmax_at(c->at, scores, last);
	sl_tensor *most =
	        sl_max_at(c->at, scores, (struct sl_reduce_opts){.axes = &last, .naxes = 1, .keepdims = true});
	sl_tensor *none = most ? sl_eq_scalar_at(c->at, most, -INFINITY) : NULL;
	scores = none ? sl_softmax_at(c->at, sl_masked_fill_at(c->at, scores, none, 0), last) : NULL;
	return scores ? sl_masked_fill_at(c->at, scores, none, 0) : NULL;
}

static sl_tensor *weighed(struct slp_onnx_call *c, struct attention *a)
{
	int64_t each = sl_tensor_shape(a->q).dim[1] / sl_tensor_shape(a->k).dim[1];
	sl_tensor *k = each > 1 ? sl_repeat_at(c->at, a->k, 1, each) : a->k,
	          *v = each > 1 ? sl_repeat_at(c->at, a->v, 1, each) : a->v, *steps[4];
	sl_tensor *s = k && v ? sl_matmul_at(c->at, a->q, k, (struct sl_dot_opts){.tb = true}) : NULL;
	steps[0] = s = s ? sl_mul_scalar_at(c->at, s, a->scale) : NULL;
	if (s && a->softcap > 0)
		s = sl_mul_scalar_at(c->at, sl_tanh_at(c->at, sl_div_scalar_at(c->at, s, a->softcap)), a->softcap);
	steps[1] = s;
	if (s && a->bias) s = sl_add_at(c->at, s, a->bias);
	steps[2] = s;
	steps[3] = s = s ? shares(c, s, a->bias != NULL) : NULL;
	if (c->nout > 3 && s) slp_onnx_set_output(c, 3, steps[a->mode]);
	return s ? sl_matmul_at(c->at, s, v, (struct sl_dot_opts){0}) : NULL;
}

void slp_onnx_import_attention(struct slp_onnx_call *c)
{
	struct attention a;
	if (!read_attention(c, &a)) return;
	sl_tensor *mask = mask_of(c, &a), *hidden = frontier(c, &a);
	a.bias = mask && hidden ? sl_add_at(c->at, mask, hidden) : mask ? mask : hidden;
	bool plain =
	        !a.bias && a.softcap <= 0 && c->nout < 4 && sl_tensor_shape(a.q).dim[1] == sl_tensor_shape(a.k).dim[1];
	sl_tensor *y =
	        plain ? sl_scaled_dot_product_attention_at(
	                        c->at, a.q, a.k, a.v, (struct sl_attention_opts){.scale = a.scale, .as_written = true})
	              : weighed(c, &a);
	slp_onnx_set_output(c, 0, y && a.joined ? without_heads(c, y) : y);
	if (c->nout > 1 && !c->failed) slp_onnx_set_output(c, 1, a.k);
	if (c->nout > 2 && !c->failed) slp_onnx_set_output(c, 2, a.v);
}

/* ---- rotary positions -------------------------------------------------------------------------------------------- */

/* Rows of a table at the positions, or the table, with an axis for the heads: (batch, 1, length, half). */
static sl_tensor *angles(struct slp_onnx_call *c, int i)
{
	struct slp_onnx_value v = c->in[i];
	if (slp_onnx_has(c, 3)) v = slp_onnx_gathered(c, v, c->in[3], 0);
	if (slp_onnx_present(v) && !c->failed) v = slp_onnx_with_axis(c, v, 1);
	return slp_onnx_present(v) && !c->failed ? slp_onnx_as_tensor(c, v) : NULL;
}

/* The two halves of the rotated numbers; they are adjacent or alternate. */
static bool halves(struct slp_onnx_call *c, sl_tensor *x, bool interleaved, int64_t width, sl_tensor *half[2])
{
	for (int i = 0; i < 2; i++)
		half[i] = interleaved ? sl_slice_at(c->at, x, 3, i, width - 1 + i, 2)
		                      : sl_slice_at(c->at, x, 3, i * width / 2, (i + 1) * width / 2, 1);
	return half[0] && half[1];
}

static sl_tensor *rejoined(struct slp_onnx_call *c, sl_tensor *a, sl_tensor *b, bool interleaved)
{
	sl_tensor *list[] = {a, b};
	sl_shape s = sl_tensor_shape(a), y = s;
	if (!interleaved) return sl_concat_at(c->at, list, 2, 3);
	y.dim[3] *= 2;
	s.dim[s.ndim++] = 1;
	for (int i = 0; i < 2; i++) list[i] = sl_reshape_at(c->at, list[i], s);
	a = list[0] && list[1] ? sl_concat_at(c->at, list, 2, 4) : NULL;
	return a ? sl_reshape_at(c->at, a, y) : NULL;
}

static sl_tensor *rotated(struct slp_onnx_call *c, sl_tensor *x, int64_t width, bool interleaved)
{
	sl_tensor *cosine = angles(c, 1), *sine = cosine ? angles(c, 2) : NULL, *half[2];
	if (!sine || !halves(c, x, interleaved, width, half)) return NULL;
	sl_tensor *a = sl_mul_at(c->at, half[0], cosine), *b = sl_mul_at(c->at, half[1], sine);
	a = a && b ? sl_sub_at(c->at, a, b) : NULL;
	sl_tensor *d = sl_mul_at(c->at, half[0], sine), *e = sl_mul_at(c->at, half[1], cosine);
	b = d && e ? sl_add_at(c->at, d, e) : NULL;
	return a && b ? rejoined(c, a, b, interleaved) : NULL;
}

void slp_onnx_import_rotary_embedding(struct slp_onnx_call *c)
{
	bool interleaved = slp_onnx_attr_int(c, "interleaved", 0) != 0, joined = slp_onnx_shape(c, 0).ndim == 3;
	sl_tensor *x = with_heads(c, slp_onnx_tensor(c, 0), "num_heads");
	if (!x || c->failed || sl_tensor_shape(x).ndim != 4) {
		slp_onnx_call_fail(c, SL_ESHAPE, "takes an input of 3 or 4 axes");
		return;
	}
	int64_t whole = sl_tensor_shape(x).dim[3], width = slp_onnx_attr_int(c, "rotary_embedding_dim", 0);
	if (!width) width = whole;
	if (width < 2 || width > whole || width % 2) {
		slp_onnx_call_fail(c, SL_ESHAPE, "cannot rotate %lld of %lld numbers", (long long)width,
		                   (long long)whole);
		return;
	}
	sl_tensor *part = width < whole ? sl_slice_at(c->at, x, 3, 0, width, 1) : x, *list[2];
	list[0] = part ? rotated(c, part, width, interleaved) : NULL;
	if (list[0] && width < whole) {
		list[1] = sl_slice_at(c->at, x, 3, width, whole, 1);
		list[0] = list[1] ? sl_concat_at(c->at, list, 2, 3) : NULL;
	}
	slp_onnx_set_output(c, 0, list[0] && joined ? without_heads(c, list[0]) : list[0]);
}
