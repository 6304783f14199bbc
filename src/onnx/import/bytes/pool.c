/* ONNX operators, computed: sums, products by elements and poolings of eight bits. */
#include <math.h>

#include "onnx/import/bytes/operands.h"
#include "onnx/import/window.h"
#include "op_inner.h"
#include "op_list/quant.h"
#include "starling/arithmetic.h"

static bool add_or_multiply(struct slp_onnx_call *c, enum slp_q_binary kind)
{
	struct slp_onnx_operand a, b;
	struct slp_onnx_byte_result y;
	if (!slp_onnx_read_operand(c, 0, 1, 2, &a) || !slp_onnx_read_operand(c, 3, 4, 5, &b) ||
	    !slp_onnx_read_result(c, 6, 7, &y))
		return c->failed;
	if (!sl_shape_equal(slp_onnx_image_shape(a.v), slp_onnx_image_shape(b.v))) return false;
	bool last = a.v.last || b.v.last;
	a.v = slp_onnx_channels_moved(c, a.v, last);
	b.v = slp_onnx_channels_moved(c, b.v, last);
	struct slp_qbinary_attrs t = {
	        .kind = kind, .zero = {a.zero, b.zero, y.zero}, .scale = {a.scale, b.scale, y.scale}};
	if (!c->failed)
		slp_onnx_give_bytes(c, slp_apply1(c->at, &slp_op_qbinary, &t, 2, (sl_tensor *[]){a.v.t, b.v.t}), y.type,
		                    last);
	return true;
}

static bool pool(struct slp_onnx_call *c, struct slp_onnx_value x, int type, bool was_last, struct slp_qpool_attrs *t)
{
	x = slp_onnx_channels_moved(c, x, true);
	sl_tensor *y = c->failed ? NULL : slp_apply1(c->at, &slp_op_qpool2d, t, 1, &x.t);
	if (y) slp_onnx_give_bytes(c, y, type, !was_last);
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
	struct slp_onnx_operand x;
	struct slp_qpool_attrs t = {.max = 1};
	if (!slp_onnx_is_byte(&c->in[0]) || slp_onnx_wants(c, 1) || !slp_onnx_read_operand(c, 0, -1, 99, &x) ||
	    sl_tensor_shape(x.v.t).ndim != 4 || !read_pool(c, slp_onnx_image_shape(x.v), &t))
		return c->failed;
	return pool(c, x.v, slp_onnx_type_of(&c->in[0]), false, &t);
}

/* Means of windows, or of whole images; channels that are last in the file stay so. */
static bool average(struct slp_onnx_call *c, bool whole)
{
	struct slp_onnx_operand x;
	struct slp_onnx_byte_result y;
	if (!slp_onnx_read_operand(c, 0, 1, 2, &x) || !slp_onnx_read_result(c, 3, 4, &y) ||
	    sl_tensor_shape(x.v.t).ndim != 4)
		return c->failed;
	bool last = slp_onnx_attr_int(c, "channels_last", 0) != 0;
	if (last) x.v = slp_onnx_channels_moved(c, x.v, false), x.v.last = true;
	sl_shape s = c->failed ? SL_SCALAR : slp_onnx_image_shape(x.v);
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
