/* ONNX operators, computed: integers that represent real numbers.  Products of them are exact: in float32 as far as it
 * holds them, else in float64. */
#include "onnx/import/bytes/bytes.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* The range of a type of the format. */
struct range {
	int type;
	double low, high;
	enum sl_dtype dtype;
};

static struct range range_of(struct slp_onnx_call *c, int type)
{
	static const struct range list[] = {
	        {2, 0, 255, SL_UINT8}, {3, -128, 127, SL_INT32}, {4, 0, 65535, SL_INT32}, {5, -32768, 32767, SL_INT32}};
	for (size_t i = 0; i < sizeof list / sizeof *list; i++)
		if (list[i].type == type) return list[i];
	slp_onnx_call_fail(c, SL_EUNSUPPORTED, "quantised elements of type %d are not supported", type);
	return list[0];
}

/* The type of a zero point, which is that of the result; int8 is read as int32. */
static struct range range_of_zero(struct slp_onnx_call *c, int i)
{
	int type = slp_onnx_has(c, i) ? slp_onnx_file_type(c, i) : 2;
	if (!type) type = slp_onnx_type_of(&c->in[i]);
	if (type == 6) type = 3; /* nothing is said */
	return range_of(c, type);
}

/* ---- scales and zero points -------------------------------------------------------------------------------------- */

/* One for each index of an axis, or for each block of it, beside a tensor of this shape. */
static struct slp_onnx_value along_axis(struct slp_onnx_call *c, struct slp_onnx_value v, sl_shape x, int64_t axis,
                                        int64_t block)
{
	sl_shape s = slp_onnx_shape_of(c, v), y = {0};
	bool one = !c->failed && sl_shape_size(s) == 1 && !block;
	if (c->failed || one) return c->failed ? v : slp_onnx_reshaped(c, v, SL_SCALAR);
	int a = slp_onnx_axis(c, axis, x.ndim);
	if (!c->failed && block > 0 && s.ndim == x.ndim) {
		sl_tensor *t = sl_repeat_at(c->at, slp_onnx_as_tensor(c, v), a, block);
		return (struct slp_onnx_value){.t = t ? sl_slice_at(c->at, t, a, 0, x.dim[a], 1) : NULL};
	}
	if (!c->failed && (s.ndim != 1 || s.dim[0] != x.dim[a]))
		slp_onnx_call_fail(c, SL_ESHAPE, "scales or zero points that do not fit axis %d", a);
	y.ndim = c->failed ? 0 : x.ndim - a;
	for (int i = 0; i < y.ndim; i++) y.dim[i] = i ? 1 : s.dim[0];
	return c->failed ? v : slp_onnx_reshaped(c, v, y);
}

static struct slp_onnx_value scale_in(struct slp_onnx_call *c, int i, sl_shape x, int64_t axis, int64_t block)
{
	if (slp_onnx_has(c, i)) return along_axis(c, slp_onnx_cast(c, c->in[i], SL_FLOAT32), x, axis, block);
	slp_onnx_call_fail(c, SL_EFORMAT, "has no input %d", i);
	return (struct slp_onnx_value){0};
}

/* Input i less its zero point, if it has one, in this type. */
static struct slp_onnx_value centred(struct slp_onnx_call *c, int i, int zero, int64_t axis, int64_t block,
                                     enum sl_dtype dtype)
{
	sl_shape s = slp_onnx_shape(c, i);
	struct slp_onnx_value x = c->failed ? c->in[i] : slp_onnx_cast(c, c->in[i], dtype);
	if (c->failed || !slp_onnx_has(c, zero)) return x;
	struct slp_onnx_value z = along_axis(c, slp_onnx_cast(c, c->in[zero], dtype), s, axis, block);
	return c->failed ? x : slp_onnx_binary(c, "Sub", x, z);
}

static struct slp_onnx_value dequantised(struct slp_onnx_call *c, int i, int scale, int zero, int64_t axis,
                                         int64_t block)
{
	struct slp_onnx_value x = centred(c, i, zero, axis, block, SL_FLOAT32),
	                      s = scale_in(c, scale, slp_onnx_shape(c, i), axis, block);
	return c->failed ? x : slp_onnx_binary(c, "Mul", x, s);
}

/* Real numbers in steps of 1 as whole ones: to the nearest, ties to even ones, from the zero point, within bounds. */
static struct slp_onnx_value rounded(struct slp_onnx_call *c, struct slp_onnx_value x, int zero, int64_t axis,
                                     int64_t block, struct range r)
{
	sl_shape s = slp_onnx_shape_of(c, x);
	sl_tensor *t = c->failed ? NULL : slp_onnx_as_tensor(c, x);
	x.known = NULL;
	x.t = t ? sl_round_at(c->at, t) : NULL;
	if (x.t && slp_onnx_has(c, zero)) {
		struct slp_onnx_value z = slp_onnx_cast(c, c->in[zero], SL_FLOAT32);
		x = slp_onnx_binary(c, "Add", x, along_axis(c, z, s, axis, block));
	}
	x.t = x.t && !c->failed ? sl_clip_at(c->at, x.t, r.low, r.high) : NULL;
	x.t = x.t ? sl_cast_at(c->at, x.t, r.dtype) : NULL;
	if (!x.t) c->failed = true; /* and recorded */
	return x;
}

static struct slp_onnx_value quantised(struct slp_onnx_call *c, struct slp_onnx_value x, int scale, int zero,
                                       int64_t axis, int64_t block, struct range r)
{
	x = slp_onnx_cast(c, x, SL_FLOAT32);
	struct slp_onnx_value s = scale_in(c, scale, slp_onnx_shape_of(c, x), axis, block);
	return c->failed ? x : rounded(c, slp_onnx_binary(c, "Div", x, s), zero, axis, block, r);
}

/* ---- there and back ---------------------------------------------------------------------------------------------- */

void slp_onnx_import_quantize(struct slp_onnx_call *c)
{
	int64_t axis = slp_onnx_attr_int(c, "axis", 1), block = slp_onnx_attr_int(c, "block_size", 0),
	        type = slp_onnx_attr_int(c, "output_dtype", 0);
	struct range r = type && !slp_onnx_has(c, 2) ? range_of(c, (int)type) : range_of_zero(c, 2);
	if (c->failed || slp_onnx_quantize_bytes(c, r.type)) return;
	slp_onnx_plain_inputs(c);
	if (!c->failed) slp_onnx_set_output_value(c, 0, quantised(c, c->in[0], 1, 2, axis, block, r));
}

void slp_onnx_import_dequantize(struct slp_onnx_call *c)
{
	enum sl_dtype dtype = slp_onnx_dtype(&c->in[1]);
	int type = slp_onnx_file_type(c, 0);
	if (type && type != 6 && type != 1) range_of(c, type); /* int32: sums; float32: floats of eight bits once */
	if (c->failed || slp_onnx_dequantize_bytes(c)) return;
	slp_onnx_plain_inputs(c);
	struct slp_onnx_value y =
	        dequantised(c, 0, 1, 2, slp_onnx_attr_int(c, "axis", 1), slp_onnx_attr_int(c, "block_size", 0));
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_cast(c, y, dtype));
}

/* Scale and zero point for values that a run computes: their extremes and 0 are at the ends of a byte. */
void slp_onnx_import_dynamic_quantize(struct slp_onnx_call *c)
{
	const char *at = c->at;
	sl_tensor *x = slp_onnx_tensor(c, 0);
	if (!x) return;
	sl_tensor *high = sl_maximum_scalar_at(at, sl_max_at(at, x, (struct sl_reduce_opts){0}), 0),
	          *low = sl_minimum_scalar_at(at, sl_min_at(at, x, (struct sl_reduce_opts){0}), 0);
	sl_tensor *scale = sl_div_scalar_at(at, sl_sub_at(at, high, low), 255);
	scale = sl_add_at(at, scale, sl_eq_at(at, high, low)); /* 1 if there are only zeros */
	sl_tensor *zero = sl_round_at(at, sl_clip_at(at, sl_neg_at(at, sl_div_at(at, low, scale)), 0, 255));
	sl_tensor *y = sl_add_at(at, sl_round_at(at, sl_div_at(at, x, scale)), zero);
	slp_onnx_set_output(c, 0, sl_cast_at(at, sl_clip_at(at, y, 0, 255), SL_UINT8));
	slp_onnx_set_output(c, 1, scale);
	slp_onnx_set_output(c, 2, sl_cast_at(at, zero, SL_UINT8));
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* The type that holds sums of this number of products of bytes. */
static enum sl_dtype exact(int64_t count)
{
	return count <= (1 << 24) / (255 * 255) ? SL_FLOAT32 : SL_FLOAT64;
}

/* The places of the operands among the inputs; 0: the operator lacks it. */
struct product {
	slp_onnx_import *import;
	int a_scale, a_zero, b, b_scale, b_zero, bias, scale, zero;
	int64_t a_axis, b_axis, out_axis; /* of the numbers that are not the same for all */
};

static int64_t summands(struct slp_onnx_call *c, const struct product *p)
{
	sl_shape a = slp_onnx_shape(c, 0), b = slp_onnx_shape(c, p->b);
	if (c->failed || a.ndim < 1 || b.ndim < 1) return 1;
	if (p->import == slp_onnx_import_conv) return b.dim[0] ? sl_shape_size(b) / b.dim[0] : 1;
	return a.dim[a.ndim - 1 - (p->import == slp_onnx_import_gemm && slp_onnx_attr_int(c, "transA", 0) != 0)];
}

/* The product of whole numbers, as floats or int32. */
static struct slp_onnx_value product(struct slp_onnx_call *c, const struct product *p)
{
	struct slp_onnx_value y = {0};
	if (p->import == slp_onnx_import_conv && slp_onnx_conv_sums(c, p->a_zero, p->b, p->b_zero, &y))
		return slp_onnx_plain(c, y);
	slp_onnx_plain_inputs(c);
	enum sl_dtype dtype = exact(summands(c, p));
	struct slp_onnx_value in[2] = {centred(c, 0, p->a_zero, p->a_axis, 0, dtype)};
	if (c->failed) return in[0];
	in[1] = centred(c, p->b, p->b_zero, p->b_axis, 0, dtype);
	if (c->failed) return in[0];
	struct slp_onnx_call inner = *c;
	inner.in = in, inner.nin = 2, inner.out = &y, inner.nout = 1;
	p->import(&inner);
	c->failed |= inner.failed;
	return y;
}

/* int32, as the operators whose result is not quantised have it. */
static void give_whole(struct slp_onnx_call *c, const struct product *p)
{
	struct slp_onnx_value y = product(c, p);
	if (!c->failed) slp_onnx_set_output_value(c, 0, slp_onnx_cast(c, y, SL_INT32));
}

/* The step of the product over the step of the result. */
static struct slp_onnx_value step_of(struct slp_onnx_call *c, const struct product *p, sl_shape y)
{
	struct slp_onnx_value a = scale_in(c, p->a_scale, y, y.ndim - 2, 0),
	                      b = scale_in(c, p->b_scale, y, p->out_axis, 0);
	a = c->failed ? a : slp_onnx_binary(c, "Mul", a, b);
	bool real = !slp_onnx_has(c, p->scale);
	return c->failed || real ? a : slp_onnx_binary(c, "Div", a, scale_in(c, p->scale, y, p->out_axis, 0));
}

static void give_scaled(struct slp_onnx_call *c, const struct product *p, double alpha)
{
	struct slp_onnx_value y = product(c, p);
	sl_shape s = c->failed ? SL_SCALAR : slp_onnx_shape_of(c, y);
	if (!c->failed && p->bias && slp_onnx_has(c, p->bias)) {
		struct slp_onnx_value b = slp_onnx_cast(c, c->in[p->bias], SL_FLOAT64);
		if (alpha != 1) b.t = sl_mul_scalar_at(c->at, slp_onnx_as_tensor(c, b), alpha), b.known = NULL;
		if (p->import == slp_onnx_import_conv) b = along_axis(c, b, s, 1, 0);
		y = c->failed ? y : slp_onnx_binary(c, "Add", slp_onnx_cast(c, y, SL_FLOAT64), b);
	}
	struct slp_onnx_value step = c->failed ? y : step_of(c, p, s);
	if (!c->failed) y = slp_onnx_binary(c, "Mul", slp_onnx_cast(c, y, SL_FLOAT32), step);
	if (!c->failed && slp_onnx_has(c, p->scale))
		y = rounded(c, y, p->zero, p->out_axis, 0, range_of_zero(c, p->zero));
	if (!c->failed) slp_onnx_set_output_value(c, 0, y);
}

void slp_onnx_import_conv_integer(struct slp_onnx_call *c)
{
	give_whole(c, &(struct product){.import = slp_onnx_import_conv, .a_zero = 2, .b = 1, .b_zero = 3});
}

/* Zero points may be there for each row of the one and each column of the other. */
void slp_onnx_import_matmul_integer(struct slp_onnx_call *c)
{
	if (slp_onnx_matmul_sums(c)) return;
	give_whole(c, &(struct product){.import = slp_onnx_import_matmul,
	                                .a_zero = 2,
	                                .b = 1,
	                                .b_zero = 3,
	                                .a_axis = -2,
	                                .b_axis = -1});
}

void slp_onnx_import_qlinear_conv(struct slp_onnx_call *c)
{
	if (slp_onnx_conv_bytes(c)) return;
	give_scaled(c,
	            &(struct product){.import = slp_onnx_import_conv,
	                              .a_scale = 1,
	                              .a_zero = 2,
	                              .b = 3,
	                              .b_scale = 4,
	                              .b_zero = 5,
	                              .scale = 6,
	                              .zero = 7,
	                              .bias = 8,
	                              .out_axis = 1},
	            1);
}

static const struct product of_matrices = {
        .a_scale = 1, .a_zero = 2, .b = 3, .b_scale = 4, .b_zero = 5, .a_axis = -2, .b_axis = -1, .out_axis = -1};

void slp_onnx_import_qlinear_matmul(struct slp_onnx_call *c)
{
	if (slp_onnx_matmul_bytes(c)) return;
	struct product p = of_matrices;
	p.import = slp_onnx_import_matmul, p.scale = 6, p.zero = 7;
	give_scaled(c, &p, 1);
}

/* The result is real if it has no scale. */
void slp_onnx_import_qgemm(struct slp_onnx_call *c)
{
	if (slp_onnx_gemm_bytes(c)) return;
	struct product p = of_matrices;
	p.import = slp_onnx_import_gemm, p.bias = 6, p.scale = 7, p.zero = 8;
	if (slp_onnx_attr_int(c, "transB", 0)) p.b_axis = 0;
	give_scaled(c, &p, slp_onnx_attr_float(c, "alpha", 1));
}

/* ---- "QLinearADD": the operator of real numbers, of quantised ones ----------------------------------------------- */

void slp_onnx_import_qlinear(struct slp_onnx_call *c)
{
	enum { MOST = 64 };
	struct slp_onnx_value in[MOST], y = {0};
	if (slp_onnx_qlinear_bytes(c)) return;
	slp_onnx_plain_inputs(c);
	struct slp_onnx_call inner = *c;
	bool list = c->op->max < 0; /* the result's scale comes first then */
	int first = list ? 2 : !strcmp(c->op->name, "QLinearWhere"), scale = list ? 0 : c->op->max - 2,
	    count = list ? c->nin / 3 : (scale - first) / 3;
	if (first + count > MOST) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "has more than %d inputs", MOST);
	inner.op = slp_onnx_op_find(c->op->name + strlen("QLinear"));
	inner.opset = (int)slp_onnx_attr_int(c, "opset", c->opset);
	inner.in = in, inner.nin = 0, inner.out = &y, inner.nout = 1;
	if (first == 1) in[inner.nin++] = c->in[0];
	for (int i = 0; i < count && !c->failed; i++)
		in[inner.nin++] = dequantised(c, first + 3 * i, first + 3 * i + 1, first + 3 * i + 2, 1, 0);
	if (slp_onnx_attr_int(c, "channels_last", 0))
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "channels last are not supported");
	if (c->failed) return;
	inner.op->import(&inner);
	c->failed |= inner.failed;
	if (!c->failed)
		slp_onnx_set_output_value(c, 0, quantised(c, y, scale, scale + 1, 1, 0, range_of_zero(c, scale + 1)));
}
