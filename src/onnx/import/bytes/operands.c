/* ONNX operators, computed: operands of eight bits, their scales, zero points and biases. */
#include <math.h>

#include "onnx/import/bytes/operands.h"
#include "op.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* The number of a known value of one element. */
static bool number_of(const struct slp_onnx_call *c, int i, double *number)
{
	const struct slp_onnx_known *k = slp_onnx_has(c, i) ? c->in[i].known : NULL;
	if (!k || sl_shape_size(k->shape) != 1) return false;
	*number = slp_onnx_known_number(k, 0);
	return true;
}

bool slp_onnx_scale_of(const struct slp_onnx_call *c, int i, double *scale)
{
	return number_of(c, i, scale) && *scale > 0 && isfinite(*scale);
}

/* A zero point that is missing is 0. */
bool slp_onnx_zero_of(const struct slp_onnx_call *c, int i, double *zero)
{
	*zero = 0;
	return !slp_onnx_has(c, i) || number_of(c, i, zero);
}

bool slp_onnx_is_byte(const struct slp_onnx_value *v)
{
	int type = slp_onnx_type_of(v);
	return slp_onnx_present(*v) && !v->sequence && (type == SLP_ONNX_UINT8 || type == SLP_ONNX_INT8);
}

int slp_onnx_shift_of(int type)
{
	return type == SLP_ONNX_INT8 ? 128 : 0;
}

/* As uint8. */
struct slp_onnx_value slp_onnx_byte_value(struct slp_onnx_call *c, struct slp_onnx_value v)
{
	if (slp_onnx_type_of(&v) == SLP_ONNX_UINT8 || v.shifted) {
		if (!v.t) v.t = slp_onnx_as_tensor(c, v), v.known = NULL;
	} else if (v.known) {
		struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_UINT8, v.known->shape);
		for (int64_t i = 0; k && i < sl_shape_size(k->shape); i++) k->v[i].i = v.known->v[i].i + 128;
		v = (struct slp_onnx_value){.t = k ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = k}) : NULL,
		                            .type = SLP_ONNX_INT8};
	} else {
		v.t = sl_cast_at(c->at, sl_add_scalar_at(c->at, v.t, 128), SL_UINT8);
	}
	v.shifted = slp_onnx_type_of(&v) == SLP_ONNX_INT8;
	if (!v.t) c->failed = true; /* and recorded */
	return v;
}

bool slp_onnx_read_operand(struct slp_onnx_call *c, int i, int scale, int zero, struct slp_onnx_operand *o)
{
	double z;
	if (!slp_onnx_is_byte(&c->in[i]) || !slp_onnx_zero_of(c, zero, &z)) return false;
	if (scale >= 0 && !slp_onnx_scale_of(c, scale, &o->scale)) return false;
	o->zero = (int)z + slp_onnx_shift_of(slp_onnx_type_of(&c->in[i]));
	if (o->zero < 0 || o->zero > 255) return false;
	o->v = slp_onnx_byte_value(c, c->in[i]);
	return !c->failed;
}

bool slp_onnx_read_result(struct slp_onnx_call *c, int scale, int zero, struct slp_onnx_byte_result *r)
{
	double z;
	if (!slp_onnx_scale_of(c, scale, &r->scale) || !slp_onnx_zero_of(c, zero, &z)) return false;
	r->type = slp_onnx_has(c, zero) ? slp_onnx_type_of(&c->in[zero]) : SLP_ONNX_UINT8;
	r->zero = (int)z + slp_onnx_shift_of(r->type);
	return (r->type == SLP_ONNX_UINT8 || r->type == SLP_ONNX_INT8) && r->zero >= 0 && r->zero <= 255;
}

void slp_onnx_give_bytes(struct slp_onnx_call *c, sl_tensor *t, int type, bool last)
{
	slp_onnx_set_output_value(
	        c, 0, (struct slp_onnx_value){.t = t, .type = type, .shifted = type == SLP_ONNX_INT8, .last = last});
}

struct slp_onnx_known *slp_onnx_known_floats(struct slp_onnx_call *c, int64_t n)
{
	struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_FLOAT32, SL_SHAPE(n));
	if (!k) c->failed = true;
	return k;
}

sl_tensor *slp_onnx_one_float(struct slp_onnx_call *c, double x)
{
	struct slp_onnx_known *k = slp_onnx_known_floats(c, 1);
	if (k) k->v[0].f = x;
	return k ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = k}) : NULL;
}

/* Scales of a product in steps of its result, one for each channel of the weights; NULL: they are not known. */
sl_tensor *slp_onnx_step_of(struct slp_onnx_call *c, double a, int weights, double y, int64_t n)
{
	const struct slp_onnx_known *w = slp_onnx_has(c, weights) ? c->in[weights].known : NULL;
	int64_t count = w ? sl_shape_size(w->shape) : 0;
	if (count != n && count != 1) return NULL;
	struct slp_onnx_known *k = slp_onnx_known_floats(c, n);
	for (int64_t i = 0; k && i < n; i++)
		k->v[i].f = (double)(float)(a * slp_onnx_known_number(w, count == 1 ? 0 : i) / y);
	return k ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = k}) : NULL;
}

/* The zero point that all weights have, as uint8; false: it is not known, or not the same. */
bool slp_onnx_weight_zero(const struct slp_onnx_call *c, int i, int type, int *zero)
{
	const struct slp_onnx_known *k = slp_onnx_has(c, i) ? c->in[i].known : NULL;
	if (slp_onnx_has(c, i) && !k) return false;
	*zero = (k && sl_shape_size(k->shape) ? (int)k->v[0].i : 0) + slp_onnx_shift_of(type);
	for (int64_t e = 0; k && e < sl_shape_size(k->shape); e++)
		if (k->v[e].i + slp_onnx_shift_of(type) != *zero) return false;
	return *zero >= 0 && *zero <= 255;
}

/* A bias, in steps of the product, as int32: numbers of the file, rounded if they are floats, or zeros; NULL: it is not
 * known. */
sl_tensor *slp_onnx_bias_of(struct slp_onnx_call *c, int i, double a, int weights, int64_t n)
{
	const struct slp_onnx_known *b = slp_onnx_has(c, i) ? c->in[i].known : NULL,
	                            *w = slp_onnx_has(c, weights) ? c->in[weights].known : NULL;
	struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_INT32, SL_SHAPE(n));
	if (!k) c->failed = true;
	if (!k || (slp_onnx_has(c, i) && (!b || sl_shape_size(b->shape) != n))) return NULL;
	for (int64_t e = 0; b && e < n; e++) {
		double v = slp_onnx_known_number(b, e);
		if (slp_is_float(b->dtype))
			v = rint(v / (a * (w ? slp_onnx_known_number(w, sl_shape_size(w->shape) == 1 ? 0 : e) : 1)));
		slp_onnx_known_put(k, e, v);
	}
	return slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = k});
}

/* Zero points as floats, of bytes as uint8. */
sl_tensor *slp_onnx_float_zeros(struct slp_onnx_call *c, int i, int type, int64_t n)
{
	if (slp_onnx_has(c, i)) {
		struct slp_onnx_value v = slp_onnx_plain(c, c->in[i]);
		v = slp_onnx_cast(c, v, SL_FLOAT32);
		sl_tensor *t = c->failed ? NULL : slp_onnx_as_tensor(c, v);
		return t && type == SLP_ONNX_INT8 ? sl_add_scalar_at(c->at, t, 128) : t;
	}
	struct slp_onnx_known *k = slp_onnx_known_floats(c, n);
	for (int64_t e = 0; k && e < n; e++) k->v[e].f = slp_onnx_shift_of(type);
	return k ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = k}) : NULL;
}

sl_shape slp_onnx_image_shape(struct slp_onnx_value x)
{
	sl_shape s = sl_tensor_shape(x.t);
	return x.last && s.ndim == 4 ? SL_SHAPE(s.dim[0], s.dim[3], s.dim[1], s.dim[2]) : s;
}
