/* ONNX operators, computed: states that a network carries from call to call: caches of attention, causal convolutions,
 * linear attention. */
#include <math.h>

#include "onnx/model/call.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"
#include "starling/primitives.h"

/* ---- TensorScatter ----------------------------------------------------------------------------------------------- */

/* The place in the update of each place of the cache, (batch, length): from 0 on at the sample's index. */
static sl_tensor *places_of(struct slp_onnx_call *c, sl_shape cache, bool circular)
{
	struct sl_make make = {SL_INT32, sl_tensor_device(c->beside)};
	int64_t batch = cache.dim[0], length = cache.dim[1];
	sl_tensor *place =
	        sl_broadcast_to_at(c->at, sl_arange_at(c->at, 0, (double)length, 1, make), SL_SHAPE(batch, length));
	if (!place || !slp_onnx_has(c, 2)) return place;
	sl_tensor *first = slp_onnx_tensor(c, 2);
	first = first ? sl_reshape_at(c->at, sl_cast_at(c->at, first, SL_INT32), SL_SHAPE(batch, 1)) : NULL;
	place = first ? sl_sub_at(c->at, place, first) : NULL;
	if (!circular || !place) return place;
	return sl_add_at(c->at, place, sl_mul_scalar_at(c->at, sl_lt_scalar_at(c->at, place, 0), (double)length));
}

/* Rows of the update, (batch · length, row), at these places. */
static sl_tensor *rows_at(struct slp_onnx_call *c, sl_tensor *update, sl_tensor *place, int64_t length)
{
	struct sl_make make = {SL_INT32, sl_tensor_device(c->beside)};
	sl_shape u = sl_tensor_shape(update), s = sl_tensor_shape(place);
	int64_t row = 1;
	for (int i = 2; i < u.ndim; i++) row *= u.dim[i];
	sl_tensor *first = sl_mul_scalar_at(c->at, sl_arange_at(c->at, 0, (double)s.dim[0], 1, make), (double)length);
	place = sl_minimum_scalar_at(c->at, sl_maximum_scalar_at(c->at, place, 0), (double)(length - 1));
	place = first && place ? sl_add_at(c->at, place, sl_reshape_at(c->at, first, SL_SHAPE(s.dim[0], 1))) : NULL;
	place = place ? sl_reshape_at(c->at, place, SL_SHAPE(s.dim[0] * s.dim[1])) : NULL;
	return place ? sl_gather_at(c->at, sl_reshape_at(c->at, update, SL_SHAPE(s.dim[0] * length, row)), place)
	             : NULL;
}

void slp_onnx_import_tensor_scatter(struct slp_onnx_call *c)
{
	bool circular = slp_onnx_attr_is(c, "mode", "linear", "circular");
	sl_shape s = slp_onnx_shape(c, 0), u = slp_onnx_shape(c, 1), seen = {.ndim = s.ndim};
	int axis = slp_onnx_axis(c, slp_onnx_attr_int(c, "axis", -2), s.ndim);
	if (!c->failed && (axis == 0 || u.ndim != s.ndim || u.dim[axis] < 1 || u.dim[axis] > s.dim[axis]))
		slp_onnx_call_fail(c, SL_ESHAPE, "an update that does not fit the cache");
	if (c->failed) return;
	struct slp_onnx_value v = slp_onnx_axis_moved(c, (struct slp_onnx_value){.t = slp_onnx_tensor(c, 0)}, axis, 1),
	                      w = slp_onnx_axis_moved(c, (struct slp_onnx_value){.t = slp_onnx_tensor(c, 1)}, axis, 1);
	sl_tensor *place = v.t && w.t ? places_of(c, sl_tensor_shape(v.t), circular) : NULL;
	sl_tensor *rows = place ? rows_at(c, w.t, place, u.dim[axis]) : NULL;
	for (int i = 0; i < s.ndim; i++) seen.dim[i] = i < 2 && v.t ? sl_tensor_shape(v.t).dim[i] : 1;
	sl_tensor *within = rows ? sl_mul_at(c->at, sl_ge_scalar_at(c->at, place, 0),
	                                     sl_lt_scalar_at(c->at, place, (double)u.dim[axis]))
	                         : NULL;
	within = within ? sl_reshape_at(c->at, within, seen) : NULL;
	rows = within ? sl_reshape_at(c->at, rows, sl_tensor_shape(v.t)) : NULL;
	v.t = rows ? sl_where_at(c->at, within, rows, v.t) : NULL;
	if (v.t) slp_onnx_set_output_value(c, 0, slp_onnx_axis_moved(c, v, 1, axis));
	else c->failed = true; /* and recorded */
}

/* ---- CausalConvWithState ----------------------------------------------------------------------------------------- */

void slp_onnx_import_causal_conv(struct slp_onnx_call *c)
{
	sl_shape s = slp_onnx_shape(c, 0), w = slp_onnx_shape(c, 1);
	bool silu =
	        slp_onnx_attr_is(c, "activation", "none", "silu") || slp_onnx_attr_is(c, "activation", "none", "swish");
	if (!silu && !slp_onnx_attr_is(c, "activation", "none", "none"))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "its activation is not supported");
	if (!c->failed && (s.ndim != 3 || w.ndim != 3 || w.dim[0] != s.dim[1] || w.dim[1] != 1 || w.dim[2] < 1))
		slp_onnx_call_fail(c, SL_ESHAPE, "takes (batch, channels, length), and (channels, 1, size) as weights");
	if (c->failed) return;
	const char *at = c->at;
	int64_t past = w.dim[2] - 1, all = past + s.dim[2];
	sl_tensor *x = slp_onnx_tensor(c, 0), *k = slp_onnx_tensor(c, 1), *bias = slp_onnx_tensor(c, 2);
	if (x && past && slp_onnx_has(c, 3)) {
		sl_tensor *list[] = {slp_onnx_tensor(c, 3), x};
		x = list[0] ? sl_concat_at(at, list, 2, 2) : NULL;
	} else if (x && past) {
		x = sl_pad_at(at, x, 2, past, 0, (struct sl_pad_opts){0});
	}
	sl_tensor *image = x ? sl_reshape_at(at, x, SL_SHAPE(s.dim[0], s.dim[1], 1, all)) : NULL;
	k = k ? sl_reshape_at(at, k, SL_SHAPE(w.dim[0], 1, 1, w.dim[2])) : NULL;
	sl_tensor *y =
	        image && k ? sl_conv2d_at(at, image, k, bias, (struct sl_conv2d_opts){.groups = (int)s.dim[1]}) : NULL;
	y = y ? sl_reshape_at(at, silu ? sl_silu_at(at, y) : y, s) : NULL;
	slp_onnx_set_output(c, 0, y);
	if (x && c->nout > 1) slp_onnx_set_output(c, 1, sl_slice_at(at, x, 2, s.dim[2], all, 1));
}

/* ---- LinearAttention --------------------------------------------------------------------------------------------- */

/* A recurrence over the steps; rows are (batch, heads, …). */
struct linear {
	struct slp_onnx_call *c;
	int64_t batch, steps, heads, groups; /* of keys; queries of each */
	int64_t keys, values;                /* widths */
	bool gated, delta;
	double scale;
	sl_tensor *state; /* (batch, heads, keys, values) */
};

/* Step t of input i (batch, steps, n), in this shape. */
static sl_tensor *step_of(const struct linear *l, int i, int64_t t, sl_shape shape)
{
	sl_tensor *x = slp_onnx_tensor(l->c, i);
	x = x ? sl_slice_at(l->c->at, x, 1, t, t + 1, 1) : NULL;
	return x ? sl_reshape_at(l->c->at, x, shape) : NULL;
}

/* A factor for each head, or each key: (batch, heads or 1, keys or 1, 1). */
static sl_tensor *factor_of(const struct linear *l, int i, int64_t t)
{
	int64_t n = slp_onnx_shape(l->c, i).dim[2];
	sl_shape s = SL_SHAPE(l->batch, n == 1 ? 1 : l->heads, n == l->heads || n == 1 ? 1 : l->keys, 1);
	return step_of(l, i, t, s);
}

static sl_tensor *attend(struct linear *l, int64_t t)
{
	const char *at = l->c->at;
	sl_tensor *k = step_of(l, 1, t, SL_SHAPE(l->batch, l->heads, l->keys, 1));
	sl_tensor *v = step_of(l, 2, t, SL_SHAPE(l->batch, l->heads, 1, l->values));
	sl_tensor *q = step_of(l, 0, t, SL_SHAPE(l->batch, l->heads, l->groups, l->keys));
	if (l->gated) l->state = sl_mul_at(at, l->state, sl_exp_at(at, factor_of(l, 4, t)));
	if (l->delta) v = sl_sub_at(at, v, sl_matmul_at(at, k, l->state, (struct sl_dot_opts){.ta = true}));
	if (l->delta) k = sl_mul_at(at, k, factor_of(l, 5, t));
	l->state = sl_add_at(at, l->state, sl_mul_at(at, k, v));
	sl_tensor *y = q && l->state ? sl_matmul_at(at, q, l->state, (struct sl_dot_opts){0}) : NULL;
	y = y ? sl_mul_scalar_at(at, y, l->scale) : NULL;
	return y ? sl_reshape_at(at, y, SL_SHAPE(l->batch, 1, l->heads * l->groups * l->values)) : NULL;
}

static bool read_linear(struct slp_onnx_call *c, struct linear *l)
{
	sl_shape q = slp_onnx_shape(c, 0), k = slp_onnx_shape(c, 1), v = slp_onnx_shape(c, 2);
	int heads = slp_onnx_attr_small(c, "kv_num_heads", 1, 1, INT16_MAX);
	int queries = slp_onnx_attr_small(c, "q_num_heads", 1, 1, INT16_MAX);
	*l = (struct linear){
	        .c = c, .heads = heads, .groups = queries / heads, .scale = slp_onnx_attr_float(c, "scale", 0)};
	l->gated = slp_onnx_attr_is(c, "update_rule", "gated_delta", "gated");
	l->delta = slp_onnx_attr_is(c, "update_rule", "gated_delta", "delta");
	if (slp_onnx_attr_is(c, "update_rule", "gated_delta", "gated_delta")) l->gated = l->delta = true;
	else if (!l->gated && !l->delta && !slp_onnx_attr_is(c, "update_rule", "gated_delta", "linear"))
		slp_onnx_call_fail(c, SL_EFORMAT, "its update_rule is unknown");
	if (!c->failed && (q.ndim != 3 || k.ndim != 3 || v.ndim != 3 || queries % heads || k.dim[2] % heads ||
	                   v.dim[2] % heads || q.dim[2] % queries || q.dim[2] / queries != k.dim[2] / heads))
		slp_onnx_call_fail(c, SL_ESHAPE, "the heads of queries do not fit those of keys");
	if (!c->failed && ((l->gated && !slp_onnx_has(c, 4)) || (l->delta && !slp_onnx_has(c, 5))))
		slp_onnx_call_fail(c, SL_EFORMAT, "lacks decay or beta");
	if (c->failed) return false;
	l->batch = q.dim[0], l->steps = q.dim[1], l->keys = k.dim[2] / heads, l->values = v.dim[2] / heads;
	if (l->scale == 0) l->scale = 1 / sqrt((double)l->keys);
	return true;
}

void slp_onnx_import_linear_attention(struct slp_onnx_call *c)
{
	enum { MOST = 4096 };
	sl_tensor *rows[MOST], *q = slp_onnx_tensor(c, 0);
	struct linear l;
	if (!read_linear(c, &l) || !q) return;
	if (l.steps < 1 || l.steps > MOST)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "%lld steps; the number must be from 1 to %d",
		                   (long long)l.steps, MOST);
	struct sl_make make = {sl_tensor_dtype(q), sl_tensor_device(q)};
	l.state = slp_onnx_has(c, 3) ? slp_onnx_tensor(c, 3)
	                             : sl_zeros_at(c->at, SL_SHAPE(l.batch, l.heads, l.keys, l.values), make);
	for (int64_t t = 0; t < l.steps && !c->failed; t++)
		if (!(rows[t] = attend(&l, t))) c->failed = true; /* and recorded */
	if (c->failed) return;
	slp_onnx_set_output(c, 0, sl_concat_at(c->at, rows, (int)l.steps, 1));
	if (c->nout > 1) slp_onnx_set_output(c, 1, l.state);
}
