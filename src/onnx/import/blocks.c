/* ONNX operators, computed: weights of a few bits, quantised in blocks along each row (onnxruntime's MatMulNBits).  They
 * stay packed; where gradients flow to scales, or in another type than float32, a run unpacks them for its product. */
#include "onnx/model/call.h"
#include "op.h"
#include "packed_linear.h"
#include "starling/autograd.h"
#include "starling/arithmetic.h"
#include "starling/elementwise.h"
#include "starling/functions.h"
#include "starling/primitives.h"

/* The matrix: (rows, columns), each row in blocks. */
struct packed {
	int64_t rows, columns, blocks, size;
	int bits;
};

/* The numbers in bytes (n, m), the lowest bits first: (n, m · 8 / bits), as floats. */
static sl_tensor *unpacked(struct slp_onnx_call *c, sl_tensor *bytes, int bits, enum sl_dtype dtype)
{
	const char *at = c->at;
	sl_shape s = sl_tensor_shape(bytes), one = SL_SHAPE(s.dim[0], s.dim[1], 1);
	sl_tensor *rest = sl_reshape_at(at, sl_cast_at(at, bytes, dtype), one), *list[4];
	int n = 8 / bits;
	double base = (double)(1 << bits);
	if (n == 1) return rest ? sl_reshape_at(at, rest, s) : NULL;
	for (int i = 0; i < n && rest; i++) {
		sl_tensor *above = i < n - 1 ? sl_floor_at(at, sl_mul_scalar_at(at, rest, 1 / base)) : NULL;
		list[i] = above ? sl_sub_at(at, rest, sl_mul_scalar_at(at, above, base)) : rest;
		if (!list[i] || (i < n - 1 && !above)) return NULL;
		rest = above;
	}
	sl_tensor *y = rest || n ? sl_concat_at(at, list, n, 2) : NULL;
	return y ? sl_reshape_at(at, y, SL_SHAPE(s.dim[0], s.dim[1] * n)) : NULL;
}

/* The zero point of each block, (rows, blocks, 1); the middle of the range if the node has none. */
static sl_tensor *zero_points(struct slp_onnx_call *c, const struct packed *p, enum sl_dtype dtype)
{
	sl_tensor *z = slp_onnx_tensor(c, 3);
	int64_t bytes = (p->blocks * p->bits + 7) / 8;
	if (!z) return NULL;
	if (slp_is_float(sl_tensor_dtype(z))) return sl_reshape_at(c->at, z, SL_SHAPE(p->rows, p->blocks, 1));
	z = unpacked(c, sl_reshape_at(c->at, z, SL_SHAPE(p->rows, bytes)), p->bits, dtype);
	z = z ? sl_slice_at(c->at, z, 1, 0, p->blocks, 1) : NULL;
	return z ? sl_reshape_at(c->at, z, SL_SHAPE(p->rows, p->blocks, 1)) : NULL;
}

/* As floats, (rows, columns). */
static sl_tensor *weights(struct slp_onnx_call *c, const struct packed *p, enum sl_dtype dtype)
{
	const char *at = c->at;
	sl_tensor *w = slp_onnx_tensor(c, 1), *scale = slp_onnx_tensor(c, 2);
	int64_t bytes = p->blocks * p->size * p->bits / 8;
	w = w ? unpacked(c, sl_reshape_at(at, w, SL_SHAPE(p->rows, bytes)), p->bits, dtype) : NULL;
	w = w ? sl_reshape_at(at, w, SL_SHAPE(p->rows, p->blocks, p->size)) : NULL;
	sl_tensor *zero = w ? zero_points(c, p, dtype) : NULL;
	if (w && slp_onnx_has(c, 3)) w = zero ? sl_sub_at(at, w, zero) : NULL;
	else if (w) w = sl_sub_scalar_at(at, w, (double)(1 << (p->bits - 1)));
	scale = scale && w ? sl_reshape_at(at, scale, SL_SHAPE(p->rows, p->blocks, 1)) : NULL;
	w = scale ? sl_mul_at(at, w, scale) : NULL;
	w = w ? sl_reshape_at(at, w, SL_SHAPE(p->rows, p->blocks * p->size)) : NULL;
	return w && p->blocks * p->size > p->columns ? sl_slice_at(at, w, 1, 0, p->columns, 1) : w;
}

/* Whether one operation computes it (packed_linear.h). */
static bool is_packed(struct slp_onnx_call *c, sl_tensor *x)
{
	for (int i = 2; i < c->nin; i++)
		if (slp_onnx_has(c, i) && slp_onnx_dtype(&c->in[i]) != SL_FLOAT32 &&
		    (i != 3 || slp_onnx_dtype(&c->in[i]) != SL_UINT8))
			return false;
	return sl_tensor_dtype(x) == SL_FLOAT32 && !sl_is_recording();
}

static sl_tensor *product(struct slp_onnx_call *c, const struct packed *p, sl_tensor *x)
{
	sl_tensor *bias = slp_onnx_tensor(c, 5);
	if (!is_packed(c, x)) {
		sl_tensor *w = weights(c, p, sl_tensor_dtype(x));
		return w ? sl_linear_at(c->at, x, w, bias, (struct sl_linear_opts){.tw = true}) : NULL;
	}
	sl_tensor *w = slp_onnx_tensor(c, 1), *scale = slp_onnx_tensor(c, 2), *zero = slp_onnx_tensor(c, 3);
	w = w ? sl_reshape_at(c->at, w, SL_SHAPE(p->rows, p->blocks * p->size * p->bits / 8)) : NULL;
	return w && scale ? slp_nbits_linear(c->at, x, w, scale, zero, bias, p->bits, (int)p->size) : NULL;
}

void slp_onnx_import_matmul_nbits(struct slp_onnx_call *c)
{
	sl_shape x = slp_onnx_shape(c, 0);
	struct packed p = {.rows = slp_onnx_attr_small(c, "N", 0, 1, INT32_MAX),
	                   .columns = slp_onnx_attr_small(c, "K", 0, 1, INT32_MAX),
	                   .size = slp_onnx_attr_small(c, "block_size", 0, 16, 1 << 16),
	                   .bits = slp_onnx_attr_small(c, "bits", 4, 2, 8)};
	if (p.bits != 2 && p.bits != 4 && p.bits != 8)
		slp_onnx_call_fail(c, SL_EUNSUPPORTED, "weights of %d bits", p.bits);
	if (slp_onnx_has(c, 4)) slp_onnx_call_fail(c, SL_EUNSUPPORTED, "g_idx is not supported");
	if (c->failed) return;
	p.blocks = (p.columns + p.size - 1) / p.size;
	if (x.ndim < 1 || x.dim[x.ndim - 1] != p.columns ||
	    sl_shape_size(slp_onnx_shape(c, 1)) != p.rows * p.blocks * p.size * p.bits / 8 ||
	    sl_shape_size(slp_onnx_shape(c, 2)) != p.rows * p.blocks)
		slp_onnx_call_fail(c, SL_ESHAPE, "weights or scales that do not fit %lld rows of %lld",
		                   (long long)p.rows, (long long)p.columns);
	sl_tensor *t = c->failed ? NULL : slp_onnx_tensor(c, 0);
	if (t) slp_onnx_set_output(c, 0, product(c, &p, t));
}
