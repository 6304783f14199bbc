/* ONNX operators, computed: integers of eight bits that represent real numbers, with the operations of codelets/quant/.
 *
 * int8 is held as uint8, 128 larger, and images have their channels last, as long as such operators follow each other:
 * all other operators get the values as they know them (slp_onnx_plain). */
#include <math.h>

#include "onnx/import/bytes.h"
#include "onnx/import/window.h"
#include "op_inner.h"
#include "op_list/quant.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

enum { UINT8 = 2, INT8 = 3 };

static bool is_one_of(const char *name, const char *const *list)
{
	while (*list && strcmp(name, *list)) list++;
	return *list != NULL;
}

bool slp_onnx_takes_bytes(const struct slp_onnx_op *op)
{
	static const char *const names[] = {"QuantizeLinear", "DequantizeLinear", "ConvInteger", "MatMulInteger",
	                                    "QGemm",          "MaxPool",          NULL};
	return !strncmp(op->name, "QLinear", 7) || is_one_of(op->name, names);
}

/* Operators that only move elements of their first input. */
static bool moves(const struct slp_onnx_op *op)
{
	static const char *const names[] = {"Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Identity",
	                                    "Slice",   "Gather",    "Split",   "Expand",  "Tile",      NULL};
	return is_one_of(op->name, names);
}

/* ---- as other operators know them -------------------------------------------------------------------------------- */

static struct slp_onnx_value channels_moved(struct slp_onnx_call *c, struct slp_onnx_value v, bool last)
{
	static const int to_last[] = {0, 2, 3, 1}, to_second[] = {0, 3, 1, 2};
	if (v.last == last || c->failed) return v;
	struct sl_reduce_opts o = {.axes = last ? to_last : to_second, .naxes = 4};
	v.t = sl_transpose_at(c->at, slp_onnx_as_tensor(c, v), o);
	v.known = NULL;
	v.last = last;
	if (!v.t) c->failed = true; /* and recorded */
	return v;
}

struct slp_onnx_value slp_onnx_plain(struct slp_onnx_call *c, struct slp_onnx_value v)
{
	v = channels_moved(c, v, false);
	if (!v.shifted || c->failed) return v;
	v.t = sl_sub_scalar_at(c->at, sl_cast_at(c->at, v.t, SL_INT32), 128);
	v.shifted = false;
	if (!v.t) c->failed = true; /* and recorded */
	return v;
}

bool slp_onnx_plain_inputs(struct slp_onnx_call *c)
{
	bool keeps = c->nin && moves(c->op) && c->in[0].shifted;
	for (int i = 0; i < c->nin; i++) {
		if (i || !keeps) c->in[i] = slp_onnx_plain(c, c->in[i]);
		else c->in[i] = channels_moved(c, c->in[i], false);
	}
	if (keeps) c->in[0].shifted = false, c->in[0].type = UINT8;
	return keeps;
}

void slp_onnx_shift_results(struct slp_onnx_call *c)
{
	for (int i = 0; i < c->nout; i++)
		if (c->out[i].t) c->out[i].shifted = true, c->out[i].type = INT8;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* The number of a known value of one element. */
static bool number_of(const struct slp_onnx_call *c, int i, double *number)
{
	const struct slp_onnx_known *k = slp_onnx_has(c, i) ? c->in[i].known : NULL;
	if (!k || sl_shape_size(k->shape) != 1) return false;
	*number = slp_onnx_known_number(k, 0);
	return true;
}

static bool scale_of(const struct slp_onnx_call *c, int i, double *scale)
{
	return number_of(c, i, scale) && *scale > 0 && isfinite(*scale);
}

/* A zero point that is missing is 0. */
static bool zero_of(const struct slp_onnx_call *c, int i, double *zero)
{
	*zero = 0;
	return !slp_onnx_has(c, i) || number_of(c, i, zero);
}

static bool is_byte(const struct slp_onnx_value *v)
{
	int type = slp_onnx_type_of(v);
	return slp_onnx_present(*v) && !v->sequence && (type == UINT8 || type == INT8);
}

static int shift_of(int type)
{
	return type == INT8 ? 128 : 0;
}

/* As uint8. */
static struct slp_onnx_value byte_value(struct slp_onnx_call *c, struct slp_onnx_value v)
{
	if (slp_onnx_type_of(&v) == UINT8 || v.shifted) {
		if (!v.t) v.t = slp_onnx_as_tensor(c, v), v.known = NULL;
	} else if (v.known) {
		struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_UINT8, v.known->shape);
		for (int64_t i = 0; k && i < sl_shape_size(k->shape); i++) k->v[i].i = v.known->v[i].i + 128;
		v = (struct slp_onnx_value){.t = k ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = k}) : NULL,
		                            .type = INT8};
	} else {
		v.t = sl_cast_at(c->at, sl_add_scalar_at(c->at, v.t, 128), SL_UINT8);
	}
	v.shifted = slp_onnx_type_of(&v) == INT8;
	if (!v.t) c->failed = true; /* and recorded */
	return v;
}

/* A quantised operand with a scale and a zero point. */
struct operand {
	struct slp_onnx_value v;
	double scale;
	int zero;
};

static bool read_operand(struct slp_onnx_call *c, int i, int scale, int zero, struct operand *o)
{
	double z;
	if (!is_byte(&c->in[i]) || !zero_of(c, zero, &z)) return false;
	if (scale >= 0 && !scale_of(c, scale, &o->scale)) return false;
	o->zero = (int)z + shift_of(slp_onnx_type_of(&c->in[i]));
	if (o->zero < 0 || o->zero > 255) return false;
	o->v = byte_value(c, c->in[i]);
	return !c->failed;
}

/* The type, scale and zero point of a result. */
struct result {
	int type, zero;
	double scale;
};

static bool read_result(struct slp_onnx_call *c, int scale, int zero, struct result *r)
{
	double z;
	if (!scale_of(c, scale, &r->scale) || !zero_of(c, zero, &z)) return false;
	r->type = slp_onnx_has(c, zero) ? slp_onnx_type_of(&c->in[zero]) : UINT8;
	r->zero = (int)z + shift_of(r->type);
	return (r->type == UINT8 || r->type == INT8) && r->zero >= 0 && r->zero <= 255;
}

static void give_bytes(struct slp_onnx_call *c, sl_tensor *t, int type, bool last)
{
	slp_onnx_set_output_value(c, 0,
	                          (struct slp_onnx_value){.t = t, .type = type, .shifted = type == INT8, .last = last});
}

static struct slp_onnx_known *known_floats(struct slp_onnx_call *c, int64_t n)
{
	struct slp_onnx_known *k = slp_onnx_known_new(c->made, SL_FLOAT32, SL_SHAPE(n));
	if (!k) c->failed = true;
	return k;
}

static sl_tensor *one_float(struct slp_onnx_call *c, double x)
{
	struct slp_onnx_known *k = known_floats(c, 1);
	if (k) k->v[0].f = x;
	return k ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = k}) : NULL;
}

/* Scales of a product in steps of its result, one for each channel of the weights; NULL: they are not known. */
static sl_tensor *step_of(struct slp_onnx_call *c, double a, int weights, double y, int64_t n)
{
	const struct slp_onnx_known *w = slp_onnx_has(c, weights) ? c->in[weights].known : NULL;
	int64_t count = w ? sl_shape_size(w->shape) : 0;
	if (count != n && count != 1) return NULL;
	struct slp_onnx_known *k = known_floats(c, n);
	for (int64_t i = 0; k && i < n; i++)
		k->v[i].f = (double)(float)(a * slp_onnx_known_number(w, count == 1 ? 0 : i) / y);
	return k ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = k}) : NULL;
}

/* The zero point that all weights have, as uint8; false: it is not known, or not the same. */
static bool weight_zero(const struct slp_onnx_call *c, int i, int type, int *zero)
{
	const struct slp_onnx_known *k = slp_onnx_has(c, i) ? c->in[i].known : NULL;
	if (slp_onnx_has(c, i) && !k) return false;
	*zero = (k && sl_shape_size(k->shape) ? (int)k->v[0].i : 0) + shift_of(type);
	for (int64_t e = 0; k && e < sl_shape_size(k->shape); e++)
		if (k->v[e].i + shift_of(type) != *zero) return false;
	return *zero >= 0 && *zero <= 255;
}

/* A bias, in steps of the product, as int32: numbers of the file, rounded if they are floats, or zeros; NULL: it is not
 * known. */
static sl_tensor *bias_of(struct slp_onnx_call *c, int i, double a, int weights, int64_t n)
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

/* ---- there and back ---------------------------------------------------------------------------------------------- */

/* Elements that share a scale: all, or those of an axis; -1: neither. */
static int64_t shared(struct slp_onnx_call *c, sl_shape x, int scale, int zero)
{
	sl_shape s = slp_onnx_shape(c, scale);
	int64_t axis = slp_onnx_attr_int(c, "axis", 1), n = sl_shape_size(s), inner = 1;
	if (slp_onnx_has(c, zero) && sl_shape_size(slp_onnx_shape(c, zero)) != n) return -1;
	if (n == 1) return 0;
	if (axis < 0) axis += x.ndim;
	if (s.ndim != 1 || axis < 0 || axis >= x.ndim || x.dim[axis] != n) return -1;
	for (int i = (int)axis + 1; i < x.ndim; i++) inner *= x.dim[i];
	return inner ? inner : -1;
}

/* Zero points as floats, of bytes as uint8. */
static sl_tensor *float_zeros(struct slp_onnx_call *c, int i, int type, int64_t n)
{
	if (slp_onnx_has(c, i)) {
		struct slp_onnx_value v = slp_onnx_plain(c, c->in[i]);
		v = slp_onnx_cast(c, v, SL_FLOAT32);
		sl_tensor *t = c->failed ? NULL : slp_onnx_as_tensor(c, v);
		return t && type == INT8 ? sl_add_scalar_at(c->at, t, 128) : t;
	}
	struct slp_onnx_known *k = known_floats(c, n);
	for (int64_t e = 0; k && e < n; e++) k->v[e].f = shift_of(type);
	return k ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = k}) : NULL;
}

static bool has_float32(struct slp_onnx_call *c, int i)
{
	return slp_onnx_has(c, i) && slp_onnx_dtype(&c->in[i]) == SL_FLOAT32;
}

/* The scale and the zero points of a node, behind x. */
static bool take_scale(struct slp_onnx_call *c, int type, sl_tensor *in[3])
{
	in[1] = slp_onnx_as_tensor(c, c->in[1]);
	in[2] = in[1] ? float_zeros(c, 2, type, sl_tensor_size(in[1])) : NULL;
	return in[0] && in[1] && in[2] && !c->failed;
}

bool slp_onnx_quantize_bytes(struct slp_onnx_call *c, int type)
{
	struct slp_quantize_attrs a = {0};
	sl_tensor *in[3];
	if ((type != UINT8 && type != INT8) || !has_float32(c, 0) || !has_float32(c, 1) ||
	    slp_onnx_attr_int(c, "block_size", 0))
		return false;
	a.inner = shared(c, slp_onnx_shape(c, 0), 1, 2);
	if (a.inner < 0 || c->failed) return false;
	in[0] = slp_onnx_as_tensor(c, c->in[0]);
	if (take_scale(c, type, in)) give_bytes(c, slp_apply1(c->at, &slp_op_quantize, &a, 3, in), type, false);
	else c->failed = true;
	return true;
}

bool slp_onnx_dequantize_bytes(struct slp_onnx_call *c)
{
	struct slp_quantize_attrs a = {0};
	sl_tensor *in[3];
	if (!is_byte(&c->in[0]) || !has_float32(c, 1) || slp_onnx_attr_int(c, "block_size", 0)) return false;
	int type = slp_onnx_type_of(&c->in[0]);
	struct slp_onnx_value x = byte_value(c, channels_moved(c, c->in[0], false));
	if (c->failed) return true;
	a.inner = shared(c, sl_tensor_shape(x.t), 1, 2);
	if (a.inner < 0) return false;
	in[0] = x.t;
	if (take_scale(c, type, in)) slp_onnx_set_output(c, 0, slp_apply1(c->at, &slp_op_dequantize, &a, 3, in));
	else c->failed = true;
	return true;
}

/* ---- convolution ------------------------------------------------------------------------------------------------- */

static sl_shape image_shape(struct slp_onnx_value x)
{
	sl_shape s = sl_tensor_shape(x.t);
	return x.last && s.ndim == 4 ? SL_SHAPE(s.dim[0], s.dim[3], s.dim[1], s.dim[2]) : s;
}

static bool read_window(struct slp_onnx_call *c, sl_shape x, sl_shape w, struct slp_qconv_attrs *a)
{
	struct slp_onnx_window v;
	a->groups = slp_onnx_attr_small(c, "group", 1, 1, INT32_MAX);
	if (c->failed || !slp_onnx_window_read(c, x, &w, &v)) return false;
	for (int i = 0; i < 2; i++) {
		a->stride[i] = (int)v.stride[i];
		a->dilation[i] = (int)v.dilation[i];
		a->kernel[i] = (int)v.kernel[i];
		a->pad[i] = (int)v.begin[i];
		a->pad[i + 2] = (int)v.end[i];
	}
	a->channels[0] = (int)x.dim[1];
	a->channels[1] = (int)w.dim[0];
	return w.dim[2] == a->kernel[0] && w.dim[3] == a->kernel[1] && x.dim[1] == w.dim[1] * a->groups;
}

/* Whether the zero point of all weights is 128 as uint8. */
static bool is_centred(struct slp_onnx_call *c, int i, int zero)
{
	int z;
	return weight_zero(c, zero, slp_onnx_type_of(&c->in[i]), &z) && z == SLP_Q_WEIGHT_ZERO;
}

/* Images and weights, both of four axes, and the window that moves over them. */
struct convolution {
	struct operand x;
	struct slp_onnx_value w;
	struct slp_qconv_attrs a;
};

static bool read_convolution(struct slp_onnx_call *c, int w, struct convolution *v)
{
	if (!is_byte(&c->in[w])) return false;
	v->w = byte_value(c, c->in[w]);
	if (c->failed || sl_tensor_shape(v->w.t).ndim != 4 || sl_tensor_shape(v->x.v.t).ndim != 4) return false;
	v->a = (struct slp_qconv_attrs){.x_zero = v->x.zero, .out = SLP_Q_INT32};
	return read_window(c, image_shape(v->x.v), sl_tensor_shape(v->w.t), &v->a);
}

/* QLinearConv. */
bool slp_onnx_conv_bytes(struct slp_onnx_call *c)
{
	struct convolution v;
	struct result y;
	if (!read_operand(c, 0, 1, 2, &v.x) || !read_convolution(c, 3, &v) || !is_centred(c, 3, 5) ||
	    !read_result(c, 6, 7, &y))
		return c->failed;
	int64_t n = v.a.channels[1];
	sl_tensor *scale = step_of(c, v.x.scale, 4, y.scale, n), *b = scale ? bias_of(c, 8, v.x.scale, 4, n) : NULL;
	if (!scale || !b) return c->failed;
	v.a.y_zero = y.zero;
	v.a.out = SLP_Q_UINT8;
	struct slp_onnx_value image = channels_moved(c, v.x.v, true);
	sl_tensor *in[] = {image.t, v.w.t, scale, b};
	if (!c->failed) give_bytes(c, slp_apply1(c->at, &slp_op_qconv2d, &v.a, 4, in), y.type, true);
	return true;
}

/* The sums of a convolution of an image whose channels are last. */
static sl_tensor *sums_of(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *w, const struct slp_qconv_attrs *a)
{
	struct slp_onnx_known *ones = known_floats(c, a->channels[1]),
	                      *none = slp_onnx_known_new(c->made, SL_INT32, SL_SHAPE(a->channels[1]));
	for (int i = 0; ones && i < a->channels[1]; i++) ones->v[i].f = 1;
	sl_tensor *in[] = {x, w, ones ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = ones}) : NULL,
	                   none ? slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = none}) : NULL};
	return in[0] && in[1] && in[2] && in[3] ? slp_apply1(c->at, &slp_op_qconv2d, a, 4, in) : NULL;
}

/* What weights lack that are not centred: the sums of the window, times their zero points' distance from 128. */
static sl_tensor *zeros_times_window(struct slp_onnx_call *c, sl_tensor *x, const struct convolution *v, int w,
                                     int zero)
{
	const struct slp_onnx_known *k = slp_onnx_has(c, zero) ? c->in[zero].known : NULL;
	struct slp_qconv_attrs a = v->a;
	int n = a.channels[1], shift = shift_of(slp_onnx_type_of(&c->in[w]));
	struct slp_onnx_known *distance = slp_onnx_known_new(c->made, SL_INT32, SL_SHAPE(n));
	if (!distance || a.groups != 1) return NULL;
	for (int i = 0; i < n; i++)
		distance->v[i].i = SLP_Q_WEIGHT_ZERO - shift - (k ? k->v[sl_shape_size(k->shape) == 1 ? 0 : i].i : 0);
	a.channels[1] = 1;
	struct sl_make make = {SL_UINT8, sl_tensor_device(c->beside)};
	sl_tensor *ones =
	        sl_full_at(c->at, SL_SHAPE(1, a.channels[0], a.kernel[0], a.kernel[1]), SLP_Q_WEIGHT_ZERO + 1, make);
	sl_tensor *window = ones ? sums_of(c, x, ones, &a) : NULL;
	return window ? sl_mul_at(c->at, window, slp_onnx_as_tensor(c, (struct slp_onnx_value){.known = distance}))
	              : NULL;
}

/* x's zero point, which the run computes, times the sums of the weights under the image. */
static sl_tensor *zero_times_weights(struct slp_onnx_call *c, const struct convolution *v, int zero)
{
	sl_shape s = image_shape(v->x.v);
	struct sl_make make = {SL_UINT8, sl_tensor_device(c->beside)};
	sl_tensor *ones = sl_full_at(c->at, SL_SHAPE(1, s.dim[2], s.dim[3], s.dim[1]), 1, make);
	struct slp_onnx_value z = slp_onnx_cast(c, slp_onnx_plain(c, c->in[zero]), SL_INT32);
	sl_tensor *t = c->failed || !ones ? NULL : slp_onnx_as_tensor(c, z),
	          *w = t ? sums_of(c, ones, v->w.t, &v->a) : NULL;
	if (t && shift_of(slp_onnx_type_of(&c->in[0]))) t = sl_add_scalar_at(c->at, t, 128);
	return w && t ? sl_mul_at(c->at, w, sl_reshape_at(c->at, t, SL_SCALAR)) : NULL;
}

bool slp_onnx_conv_sums(struct slp_onnx_call *c, int x_zero, int w, int w_zero, struct slp_onnx_value *y)
{
	struct convolution v = {.x.scale = 1};
	double z;
	bool known = zero_of(c, x_zero, &z), centred = is_byte(&c->in[w]) && is_centred(c, w, w_zero);
	if (!known && (!centred || sl_shape_size(slp_onnx_shape(c, x_zero)) != 1)) return c->failed;
	if (!read_operand(c, 0, -1, known ? x_zero : 99, &v.x)) return c->failed;
	if (!known) v.x.zero = 0;
	if (!read_convolution(c, w, &v) ||
	    (!centred && (v.a.groups != 1 || (slp_onnx_has(c, w_zero) && !c->in[w_zero].known))))
		return c->failed;
	struct slp_onnx_value image = channels_moved(c, v.x.v, true);
	sl_tensor *t = c->failed ? NULL : sums_of(c, image.t, v.w.t, &v.a);
	if (t && !centred) t = sl_add_at(c->at, t, zeros_times_window(c, image.t, &v, w, w_zero));
	if (t && !known) t = sl_sub_at(c->at, t, zero_times_weights(c, &v, x_zero));
	*y = (struct slp_onnx_value){.t = t, .type = 6, .last = true};
	if (!t) c->failed = true; /* and recorded */
	return true;
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* The places of the operands among the inputs; 99: there is none. */
struct places {
	int a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero;
};

static struct slp_onnx_value matrix_of(struct slp_onnx_call *c, int i)
{
	return byte_value(c, channels_moved(c, c->in[i], false));
}

static bool fits(sl_shape a, sl_shape b)
{
	if (a.ndim < 2 || b.ndim < 2 || (b.ndim > 2 && b.ndim != a.ndim)) return false;
	for (int i = 0; b.ndim > 2 && i < a.ndim - 2; i++)
		if (a.dim[i] != b.dim[i]) return false;
	return true;
}

/* How the sums of products become results; their scale. */
static sl_tensor *read_scale(struct slp_onnx_call *c, const struct places *p, int64_t n, struct slp_qmatmul_attrs *t,
                             struct result *y)
{
	double a = 1;
	*y = (struct result){.scale = 1};
	t->out = p->a_scale == 99 ? SLP_Q_INT32 : slp_onnx_has(c, p->y_scale) ? SLP_Q_UINT8 : SLP_Q_FLOAT32;
	if (t->out == SLP_Q_INT32) return one_float(c, 1);
	if (!scale_of(c, p->a_scale, &a) || (t->out == SLP_Q_UINT8 && !read_result(c, p->y_scale, p->y_zero, y)))
		return NULL;
	t->y_zero = y->zero;
	return step_of(c, a * slp_onnx_attr_float(c, "alpha", 1), p->b_scale, y->scale, n);
}

static void give_product(struct slp_onnx_call *c, const struct slp_qmatmul_attrs *t, const struct result *y,
                         sl_tensor *const *in, int nin)
{
	sl_tensor *product = slp_apply1(c->at, &slp_op_qmatmul, t, nin, in);
	if (t->out == SLP_Q_UINT8) give_bytes(c, product, y->type, false);
	else slp_onnx_set_output(c, 0, product);
}

static bool multiply(struct slp_onnx_call *c, const struct places *p)
{
	struct slp_qmatmul_attrs t = {.b_transposed = slp_onnx_attr_int(c, "transB", 0) != 0};
	struct result y;
	double a = 1;
	if (!is_byte(&c->in[0]) || !is_byte(&c->in[p->b]) || slp_onnx_attr_int(c, "transA", 0) ||
	    (slp_onnx_has(c, p->a_zero) && sl_shape_size(slp_onnx_shape(c, p->a_zero)) != 1) ||
	    !weight_zero(c, p->b_zero, slp_onnx_type_of(&c->in[p->b]), &t.b_zero))
		return c->failed;
	int type = slp_onnx_type_of(&c->in[0]);
	struct slp_onnx_value left = matrix_of(c, 0), right = matrix_of(c, p->b);
	if (c->failed) return true;
	sl_shape as = sl_tensor_shape(left.t), bs = sl_tensor_shape(right.t);
	if (!fits(as, bs)) return false;
	int64_t n = bs.dim[bs.ndim - (t.b_transposed ? 2 : 1)];
	sl_tensor *scale = read_scale(c, p, n, &t, &y);
	if (!scale) return c->failed;
	if (p->a_scale != 99) scale_of(c, p->a_scale, &a);
	sl_tensor *bias = slp_onnx_has(c, p->bias) ? bias_of(c, p->bias, a, p->b_scale, n) : NULL;
	if (slp_onnx_has(c, p->bias) && (!bias || slp_onnx_attr_float(c, "alpha", 1) != 1)) return c->failed;
	sl_tensor *in[] = {left.t, right.t, float_zeros(c, p->a_zero, type, 1), scale, bias};
	if (in[2]) give_product(c, &t, &y, in, bias ? 5 : 4);
	else c->failed = true;
	return true;
}

bool slp_onnx_matmul_bytes(struct slp_onnx_call *c)
{
	return multiply(c, &(struct places){1, 2, 3, 4, 5, 8, 6, 7});
}

bool slp_onnx_gemm_bytes(struct slp_onnx_call *c)
{
	return multiply(c, &(struct places){1, 2, 3, 4, 5, 6, 7, 8});
}

bool slp_onnx_matmul_sums(struct slp_onnx_call *c)
{
	return multiply(c, &(struct places){99, 2, 1, 99, 3, 99, 99, 99});
}

/* ---- elementwise, poolings --------------------------------------------------------------------------------------- */

static bool add_or_multiply(struct slp_onnx_call *c, enum slp_q_binary kind)
{
	struct operand a, b;
	struct result y;
	if (!read_operand(c, 0, 1, 2, &a) || !read_operand(c, 3, 4, 5, &b) || !read_result(c, 6, 7, &y))
		return c->failed;
	if (!sl_shape_equal(image_shape(a.v), image_shape(b.v))) return false;
	bool last = a.v.last || b.v.last;
	a.v = channels_moved(c, a.v, last);
	b.v = channels_moved(c, b.v, last);
	struct slp_qbinary_attrs t = {
	        .kind = kind, .zero = {a.zero, b.zero, y.zero}, .scale = {a.scale, b.scale, y.scale}};
	if (!c->failed)
		give_bytes(c, slp_apply1(c->at, &slp_op_qbinary, &t, 2, (sl_tensor *[]){a.v.t, b.v.t}), y.type, last);
	return true;
}

static bool pool(struct slp_onnx_call *c, struct slp_onnx_value x, int type, bool was_last, struct slp_qpool_attrs *t)
{
	x = channels_moved(c, x, true);
	sl_tensor *y = c->failed ? NULL : slp_apply1(c->at, &slp_op_qpool2d, t, 1, &x.t);
	if (y) give_bytes(c, y, type, !was_last);
	return true;
}

/* Windows of a pooling whose size of y is rounded down. */
static bool read_pool(struct slp_onnx_call *c, sl_shape x, struct slp_qpool_attrs *t)
{
	struct slp_onnx_window v;
	if (slp_onnx_attr_int(c, "ceil_mode", 0) || slp_onnx_attr_int(c, "storage_order", 0) ||
	    !slp_onnx_window_read(c, x, NULL, &v))
		return false;
	for (int i = 0; i < 2; i++) {
		int64_t room = v.size[i] + v.begin[i] + v.end[i] - v.kernel[i];
		t->kernel[i] = (int)v.kernel[i];
		t->stride[i] = (int)v.stride[i];
		t->pad[i] = (int)v.begin[i];
		t->pad[i + 2] = (int)v.end[i];
		t->size[i] = room < 0 ? 0 : (int)(room / v.stride[i] + 1);
		if (v.dilation[i] != 1 || room < 0 || v.begin[i] >= v.kernel[i] || v.end[i] >= v.kernel[i])
			return false;
	}
	return true;
}

bool slp_onnx_max_pool_bytes(struct slp_onnx_call *c)
{
	struct operand x;
	struct slp_qpool_attrs t = {.max = 1};
	if (!is_byte(&c->in[0]) || slp_onnx_wants(c, 1) || !read_operand(c, 0, -1, 99, &x) ||
	    sl_tensor_shape(x.v.t).ndim != 4 || !read_pool(c, image_shape(x.v), &t))
		return c->failed;
	return pool(c, x.v, slp_onnx_type_of(&c->in[0]), false, &t);
}

/* Means of windows, or of whole images; channels that are last in the file stay so. */
static bool average(struct slp_onnx_call *c, bool whole)
{
	struct operand x;
	struct result y;
	if (!read_operand(c, 0, 1, 2, &x) || !read_result(c, 3, 4, &y) || sl_tensor_shape(x.v.t).ndim != 4)
		return c->failed;
	bool last = slp_onnx_attr_int(c, "channels_last", 0) != 0;
	if (last) x.v = channels_moved(c, x.v, false), x.v.last = true;
	sl_shape s = c->failed ? SL_SCALAR : image_shape(x.v);
	struct slp_qpool_attrs t = {.kernel = {(int)s.dim[2], (int)s.dim[3]},
	                            .stride = {1, 1},
	                            .size = {1, 1},
	                            .x_zero = x.zero,
	                            .y_zero = y.zero,
	                            .include_pad = (int)slp_onnx_attr_int(c, "count_include_pad", 0),
	                            .scale = x.scale / y.scale};
	if (c->failed || (!whole && !read_pool(c, s, &t)) || !sl_shape_size(s)) return c->failed;
	return pool(c, x.v, y.type, last, &t);
}

bool slp_onnx_qlinear_bytes(struct slp_onnx_call *c)
{
	const char *name = c->op->name + strlen("QLinear");
	if (!strcmp(name, "Add")) return add_or_multiply(c, SLP_Q_ADD);
	if (!strcmp(name, "Mul")) return add_or_multiply(c, SLP_Q_MUL);
	if (!strcmp(name, "GlobalAveragePool")) return average(c, true);
	return !strcmp(name, "AveragePool") && average(c, false);
}
