/* quantize, dequantize: real numbers as bytes, and back. */
#include <math.h>

#include "op_list/quant.h"
#include "quant.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_quantize_attrs, inner, SLP_INT64, 1, "elements with one scale and zero point; 0: all"),
        {0},
};

/* x, and a scale and a zero point for all, or one for each run of `inner` elements, in turns. */
static enum sl_status check(struct slp_infer *c, enum sl_dtype from, enum sl_dtype to)
{
	const struct slp_quantize_attrs *a = c->attrs;
	int64_t count = sl_shape_size(c->in[1].shape), n = sl_shape_size(c->in[0].shape);
	if (c->in[0].dtype != from) return slp_reject(c, SL_EDTYPE, "x must be %s", sl_dtype_name(from));
	if (c->in[1].dtype != SL_FLOAT32 || c->in[2].dtype != SL_FLOAT32)
		return slp_reject(c, SL_EDTYPE, "scale and zero must be float32");
	if (a->inner < 0 || (!a->inner && count != 1) || count < 1)
		return slp_reject(c, SL_EINVAL, "one scale needed, or the elements that share one");
	if (sl_shape_size(c->in[2].shape) != count) return slp_reject(c, SL_ESHAPE, "as many zeros as scales needed");
	if (a->inner && n % (a->inner * count))
		return slp_reject(c, SL_ESHAPE, "%lld scales do not fit", (long long)count);
	c->out[0] = (struct slp_type){to, c->in[0].shape};
	return SL_OK;
}

static enum sl_status quantize_infer(struct slp_infer *c)
{
	return check(c, SL_FLOAT32, SL_UINT8);
}

static enum sl_status dequantize_infer(struct slp_infer *c)
{
	return check(c, SL_UINT8, SL_FLOAT32);
}

SLP_CLONES static void quantize_range(const float *x, uint8_t *y, int64_t n, float scale, float zero)
{
	for (int64_t i = 0; i < n; i++) {
		float v = rintf(x[i] / scale) + zero;
		v = v > 0 ? v : 0; /* NaN, too */
		y[i] = (uint8_t)(int)(v < 255 ? v : 255);
	}
}

SLP_CLONES static void dequantize_range(const uint8_t *x, float *y, int64_t n, float scale, float zero)
{
	for (int64_t i = 0; i < n; i++) y[i] = ((float)x[i] - zero) * scale;
}

static void part(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const struct slp_quantize_attrs *a = k->attrs;
	int64_t count = slp_size(&k->in[1]), run = a->inner ? a->inner : slp_size(&k->in[0]);
	const float *scale = k->in[1].ptr, *zero = k->in[2].ptr;
	for (int64_t i = begin, n; i < end; i += n) {
		int64_t at = i / run % count;
		n = run - i % run < end - i ? run - i % run : end - i;
		if (k->op == &slp_op_quantize)
			quantize_range((const float *)k->in[0].ptr + i, (uint8_t *)k->out[0].ptr + i, n, scale[at],
			               zero[at]);
		else
			dequantize_range((const uint8_t *)k->in[0].ptr + i, (float *)k->out[0].ptr + i, n, scale[at],
			                 zero[at]);
	}
}

static enum sl_status run_cpu(const struct slp_kernel *k)
{
	slp_parallel_for(slp_size(&k->in[0]), SLP_GRAIN, part, (void *)k);
	return SL_OK;
}

static enum sl_status run_ref(const struct slp_kernel *k)
{
	const struct slp_quantize_attrs *a = k->attrs;
	int64_t size = slp_size(&k->in[0]), count = slp_size(&k->in[1]), run = a->inner ? a->inner : size;
	for (int64_t i = 0; i < size; i++) {
		float x = (float)slp_get(&k->in[0], i), s = (float)slp_get(&k->in[1], i / run % count),
		      z = (float)slp_get(&k->in[2], i / run % count);
		slp_set(&k->out[0], i, k->op == &slp_op_quantize ? rintf(x / s) + z : (x - z) * s);
	}
	return SL_OK;
}

#define QUANTISER(op_name, text, first)                                                                                \
	const struct sl_op slp_op_##op_name = {                                                                        \
	        .name = #op_name,                                                                                      \
	        .doc = text,                                                                                           \
	        .args = "x scale zero",                                                                                \
	        SLP_NIN(3),                                                                                            \
	        .nout = 1,                                                                                             \
	        .attr_table = attr_table,                                                                              \
	        .attrs_size = sizeof(struct slp_quantize_attrs),                                                       \
	        .rows = SLP_ROWS(SLP_ROW(first | SLP_F32, run_cpu, slp_cuda_##op_name)),                               \
	        .infer = op_name##_infer,                                                                              \
	        .flops = slp_flops_elementwise,                                                                        \
	        .grad = slp_constant,                                                                                  \
	        .ref = run_ref,                                                                                        \
	}
QUANTISER(quantize, "real numbers in steps of a scale, as bytes", 0);
QUANTISER(dequantize, "bytes as real numbers", SLP_DTYPE(SL_UINT8));
