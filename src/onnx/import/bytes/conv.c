/* ONNX operators, computed: convolutions of eight bits. */
#include <math.h>

#include "onnx/import/bytes/operands.h"
#include "onnx/import/window.h"
#include "op_inner.h"
#include "op_list/quant.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

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
	return slp_onnx_weight_zero(c, zero, slp_onnx_type_of(&c->in[i]), &z) && z == SLP_Q_WEIGHT_ZERO;
}

/* Images and weights, both of four axes, and the window that moves over them. */
struct convolution {
	struct slp_onnx_operand x;
	struct slp_onnx_value w;
	struct slp_qconv_attrs a;
};

static bool read_convolution(struct slp_onnx_call *c, int w, struct convolution *v)
{
	if (!slp_onnx_is_byte(&c->in[w])) return false;
	v->w = slp_onnx_byte_value(c, c->in[w]);
	if (c->failed || sl_tensor_shape(v->w.t).ndim != 4 || sl_tensor_shape(v->x.v.t).ndim != 4) return false;
	v->a = (struct slp_qconv_attrs){.x_zero = v->x.zero, .out = SLP_Q_INT32};
	return read_window(c, slp_onnx_image_shape(v->x.v), sl_tensor_shape(v->w.t), &v->a);
}

/* QLinearConv. */
bool slp_onnx_conv_bytes(struct slp_onnx_call *c)
{
	struct convolution v;
	struct slp_onnx_byte_result y;
	if (!slp_onnx_read_operand(c, 0, 1, 2, &v.x) || !read_convolution(c, 3, &v) || !is_centred(c, 3, 5) ||
	    !slp_onnx_read_result(c, 6, 7, &y))
		return c->failed;
	int64_t n = v.a.channels[1];
	sl_tensor *scale = slp_onnx_step_of(c, v.x.scale, 4, y.scale, n),
	          *b = scale ? slp_onnx_bias_of(c, 8, v.x.scale, 4, n) : NULL;
	if (!scale || !b) return c->failed;
	v.a.y_zero = y.zero;
	v.a.out = SLP_Q_UINT8;
	struct slp_onnx_value image = slp_onnx_channels_moved(c, v.x.v, true);
	sl_tensor *in[] = {image.t, v.w.t, scale, b};
	if (!c->failed) slp_onnx_give_bytes(c, slp_apply1(c->at, &slp_op_qconv2d, &v.a, 4, in), y.type, true);
	return true;
}

/* The sums of a convolution of an image whose channels are last. */
static sl_tensor *sums_of(struct slp_onnx_call *c, sl_tensor *x, sl_tensor *w, const struct slp_qconv_attrs *a)
{
	struct slp_onnx_known *ones = slp_onnx_known_floats(c, a->channels[1]),
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
	int n = a.channels[1], shift = slp_onnx_shift_of(slp_onnx_type_of(&c->in[w]));
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
	sl_shape s = slp_onnx_image_shape(v->x.v);
	struct sl_make make = {SL_UINT8, sl_tensor_device(c->beside)};
	sl_tensor *ones = sl_full_at(c->at, SL_SHAPE(1, s.dim[2], s.dim[3], s.dim[1]), 1, make);
	struct slp_onnx_value z = slp_onnx_cast(c, slp_onnx_plain(c, c->in[zero]), SL_INT32);
	sl_tensor *t = c->failed || !ones ? NULL : slp_onnx_as_tensor(c, z),
	          *w = t ? sums_of(c, ones, v->w.t, &v->a) : NULL;
	if (t && slp_onnx_shift_of(slp_onnx_type_of(&c->in[0]))) t = sl_add_scalar_at(c->at, t, 128);
	return w && t ? sl_mul_at(c->at, w, sl_reshape_at(c->at, t, SL_SCALAR)) : NULL;
}

bool slp_onnx_conv_sums(struct slp_onnx_call *c, int x_zero, int w, int w_zero, struct slp_onnx_value *y)
{
	struct convolution v = {.x.scale = 1};
	double z;
	bool known = slp_onnx_zero_of(c, x_zero, &z), centred = slp_onnx_is_byte(&c->in[w]) && is_centred(c, w, w_zero);
	if (!known && (!centred || sl_shape_size(slp_onnx_shape(c, x_zero)) != 1)) return c->failed;
	if (!slp_onnx_read_operand(c, 0, -1, known ? x_zero : 99, &v.x)) return c->failed;
	if (!known) v.x.zero = 0;
	if (!read_convolution(c, w, &v) ||
	    (!centred && (v.a.groups != 1 || (slp_onnx_has(c, w_zero) && !c->in[w_zero].known))))
		return c->failed;
	struct slp_onnx_value image = slp_onnx_channels_moved(c, v.x.v, true);
	sl_tensor *t = c->failed ? NULL : sums_of(c, image.t, v.w.t, &v.a);
	if (t && !centred) t = sl_add_at(c->at, t, zeros_times_window(c, image.t, &v, w, w_zero));
	if (t && !known) t = sl_sub_at(c->at, t, zero_times_weights(c, &v, x_zero));
	*y = (struct slp_onnx_value){.t = t, .type = 6, .last = true};
	if (!t) c->failed = true; /* and recorded */
	return true;
}
