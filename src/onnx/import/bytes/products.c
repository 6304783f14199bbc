/* ONNX operators, computed: products of matrices of eight bits. */
#include <math.h>

#include "onnx/import/bytes/operands.h"
#include "op_inner.h"
#include "op_list/quant.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"

/* The places of the operands among the inputs; 99: there is none. */
struct places {
	int a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero;
};

static struct slp_onnx_value matrix_of(struct slp_onnx_call *c, int i)
{
	return slp_onnx_byte_value(c, slp_onnx_channels_moved(c, c->in[i], false));
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
                             struct slp_onnx_byte_result *y)
{
	double a = 1;
	*y = (struct slp_onnx_byte_result){.scale = 1};
	t->out = p->a_scale == 99 ? SLP_Q_INT32 : slp_onnx_has(c, p->y_scale) ? SLP_Q_UINT8 : SLP_Q_FLOAT32;
	if (t->out == SLP_Q_INT32) return slp_onnx_one_float(c, 1);
	if (!slp_onnx_scale_of(c, p->a_scale, &a) ||
	    (t->out == SLP_Q_UINT8 && !slp_onnx_read_result(c, p->y_scale, p->y_zero, y)))
		return NULL;
	t->y_zero = y->zero;
	return slp_onnx_step_of(c, a * slp_onnx_attr_float(c, "alpha", 1), p->b_scale, y->scale, n);
}

static void give_product(struct slp_onnx_call *c, const struct slp_qmatmul_attrs *t,
                         const struct slp_onnx_byte_result *y, sl_tensor *const *in, int nin)
{
	sl_tensor *product = slp_apply1(c->at, &slp_op_qmatmul, t, nin, in);
	if (t->out == SLP_Q_UINT8) slp_onnx_give_bytes(c, product, y->type, false);
	else slp_onnx_set_output(c, 0, product);
}

static bool multiply(struct slp_onnx_call *c, const struct places *p)
{
	struct slp_qmatmul_attrs t = {.b_transposed = slp_onnx_attr_int(c, "transB", 0) != 0};
	struct slp_onnx_byte_result y;
	double a = 1;
	if (!slp_onnx_is_byte(&c->in[0]) || !slp_onnx_is_byte(&c->in[p->b]) || slp_onnx_attr_int(c, "transA", 0) ||
	    (slp_onnx_has(c, p->a_zero) && sl_shape_size(slp_onnx_shape(c, p->a_zero)) != 1) ||
	    !slp_onnx_weight_zero(c, p->b_zero, slp_onnx_type_of(&c->in[p->b]), &t.b_zero))
		return c->failed;
	int type = slp_onnx_type_of(&c->in[0]);
	struct slp_onnx_value left = matrix_of(c, 0), right = matrix_of(c, p->b);
	if (c->failed) return true;
	sl_shape as = sl_tensor_shape(left.t), bs = sl_tensor_shape(right.t);
	if (!fits(as, bs)) return false;
	int64_t n = bs.dim[bs.ndim - (t.b_transposed ? 2 : 1)];
	sl_tensor *scale = read_scale(c, p, n, &t, &y);
	if (!scale) return c->failed;
	if (p->a_scale != 99) slp_onnx_scale_of(c, p->a_scale, &a);
	sl_tensor *bias = slp_onnx_has(c, p->bias) ? slp_onnx_bias_of(c, p->bias, a, p->b_scale, n) : NULL;
	if (slp_onnx_has(c, p->bias) && (!bias || slp_onnx_attr_float(c, "alpha", 1) != 1)) return c->failed;
	sl_tensor *in[] = {left.t, right.t, slp_onnx_float_zeros(c, p->a_zero, type, 1), scale, bias};
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
