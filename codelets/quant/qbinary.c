/* qbinary: sums and products of quantised tensors, as bytes of another scale. */
#include <math.h>

#include "op_list/quant.h"
#include "quant.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_qbinary_attrs, kind, SLP_INT, 1, "0: the sum, 1: the product"),
        SLP_ATTR_VALUE(struct slp_qbinary_attrs, zero, SLP_INT, 3, "the zero points of a, b and y"),
        SLP_ATTR_VALUE(struct slp_qbinary_attrs, scale, SLP_DOUBLE, 3, "the scales of a, b and y"),
        {0},
};

static enum sl_status qbinary_infer(struct slp_infer *c)
{
	const struct slp_qbinary_attrs *a = c->attrs;
	if (c->in[0].dtype != SL_UINT8 || c->in[1].dtype != SL_UINT8)
		return slp_reject(c, SL_EDTYPE, "a and b must be uint8");
	if (a->kind != SLP_Q_ADD && a->kind != SLP_Q_MUL) return slp_reject(c, SL_EINVAL, "kind must be 0 or 1");
	for (int i = 0; i < 3; i++)
		if (!(a->scale[i] > 0)) return slp_reject(c, SL_EINVAL, "scales must be above 0");
	if (!sl_shape_equal(c->in[0].shape, c->in[1].shape)) return slp_reject(c, SL_ESHAPE, "a and b differ in shape");
	c->out[0] = c->in[0];
	return SL_OK;
}

/* Factors of a and b in steps of y. */
static float factor(const struct slp_qbinary_attrs *a, int i)
{
	if (a->kind == SLP_Q_MUL) return (float)(a->scale[0] * a->scale[1] / a->scale[2]);
	return (float)(a->scale[i] / a->scale[2]);
}

SLP_CLONES static void add_range(const uint8_t *a, const uint8_t *b, uint8_t *y, int64_t n, float fa, float fb,
                                 float rest)
{
	for (int64_t i = 0; i < n; i++) {
		float v = (float)a[i] * fa + (float)b[i] * fb + rest;
		v = v > 0 ? v : 0;
		y[i] = (uint8_t)(int)rintf(v < 255 ? v : 255);
	}
}

SLP_CLONES static void mul_range(const uint8_t *a, const uint8_t *b, uint8_t *y, int64_t n, int za, int zb, float f,
                                 float zero)
{
	for (int64_t i = 0; i < n; i++) {
		float v = (float)((a[i] - za) * (b[i] - zb)) * f + zero;
		v = v > 0 ? v : 0;
		y[i] = (uint8_t)(int)rintf(v < 255 ? v : 255);
	}
}

static void part(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const struct slp_qbinary_attrs *a = k->attrs;
	const uint8_t *x = (const uint8_t *)k->in[0].ptr + begin, *z = (const uint8_t *)k->in[1].ptr + begin;
	uint8_t *y = (uint8_t *)k->out[0].ptr + begin;
	float fa = factor(a, 0), fb = factor(a, 1), zero = (float)a->zero[2];
	if (a->kind == SLP_Q_MUL) mul_range(x, z, y, end - begin, a->zero[0], a->zero[1], fa, zero);
	else add_range(x, z, y, end - begin, fa, fb, zero - (float)a->zero[0] * fa - (float)a->zero[1] * fb);
}

static enum sl_status qbinary_cpu(const struct slp_kernel *k)
{
	slp_parallel_for(slp_size(&k->in[0]), SLP_GRAIN, part, (void *)k);
	return SL_OK;
}

static enum sl_status qbinary_ref(const struct slp_kernel *k)
{
	const struct slp_qbinary_attrs *a = k->attrs;
	for (int64_t i = 0; i < slp_size(&k->in[0]); i++) {
		double x = (slp_get(&k->in[0], i) - a->zero[0]) * a->scale[0],
		       z = (slp_get(&k->in[1], i) - a->zero[1]) * a->scale[1];
		slp_set(&k->out[0], i, (a->kind == SLP_Q_MUL ? x * z : x + z) / a->scale[2] + a->zero[2]);
	}
	return SL_OK;
}

const struct sl_op slp_op_qbinary = {
        .name = "qbinary",
        .doc = "the sum or the product of quantised tensors",
        .args = "a b",
        SLP_NIN(2),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_qbinary_attrs),
        .inplace = 1,
        .rows = SLP_ROWS(SLP_ROW(SLP_DTYPE(SL_UINT8), qbinary_cpu, slp_cuda_qbinary)),
        .infer = qbinary_infer,
        .flops = slp_flops_elementwise,
        .grad = slp_constant,
        .ref = qbinary_ref,
};
