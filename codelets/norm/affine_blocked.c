/* affine_blocked: images in blocks of channels (common/blocks.h), each channel times a number plus another, then an
 * optional relu: a batch normalisation with given statistics. Graph passes make it. */
#include "common/blocks.h"
#include "common/simd.h"
#include "op_inner.h"
#include "op_list/norm.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_affine_attrs, relu, SLP_BOOL, 1, "relu of the result"),
        {0},
};

static enum sl_status affine_infer(struct slp_infer *c)
{
	sl_shape x = c->in[0].shape;
	if (c->in[0].dtype != SL_FLOAT32) return slp_reject(c, SL_EDTYPE, "x must be float32");
	if (x.ndim != 5) return slp_reject(c, SL_ESHAPE, "x has %d axes, 5 needed", x.ndim);
	int64_t channels = sl_shape_size(c->in[1].shape);
	for (int i = 1; i < 3; i++)
		if (c->in[i].dtype != SL_FLOAT32) return slp_reject(c, SL_EDTYPE, "scale and shift must be float32");
	for (int i = 1; i < 3; i++)
		if (sl_shape_size(c->in[i].shape) != channels)
			return slp_reject(c, SL_ESHAPE, "scale and shift must have as many elements as each other");
	if ((channels + x.dim[4] - 1) / x.dim[4] != x.dim[1])
		return slp_reject(c, SL_ESHAPE, "%lld channels do not make x's blocks", (long long)channels);
	c->out[0] = c->in[0];
	return SL_OK;
}

static double affine_flops(const struct slp_infer *c)
{
	return 2 * slp_flops_elementwise(c);
}

static enum sl_status affine_ref(const struct slp_kernel *k)
{
	const struct slp_affine_attrs *a = k->attrs;
	sl_shape x = k->in[0].type.shape;
	int64_t plane = x.dim[2] * x.dim[3], channels = slp_size(&k->in[1]);
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		int64_t c = i / x.dim[4] / plane % x.dim[1] * x.dim[4] + i % x.dim[4];
		double v = c < channels ? slp_get(&k->in[0], i) * slp_get(&k->in[1], c) + slp_get(&k->in[2], c) : 0;
		slp_set(&k->out[0], i, a->relu && v < 0 ? 0 : v);
	}
	return SL_OK;
}

struct job {
	const float *x, *scale, *shift;
	float *y;
	int64_t blocks, channels, block, plane, parts;
	bool relu;
};

enum { PART = 512 }; /* places of a block that are done together */

SLP_INLINE void affine_part(const float *x, float *y, int64_t count, int block, const float *scale, const float *shift,
                            bool relu)
{
	for (int64_t p = 0; p < count; p++)
		for (int l = 0; l < block; l++) {
			float v = x[p * block + l] * scale[l] + shift[l];
			y[p * block + l] = relu && v < 0 ? 0 : v;
		}
}

SLP_CLONES static void affine_parts(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t i = begin; i < end; i++) {
		int64_t block = i / j->parts, at = i % j->parts * PART, c = block % j->blocks * j->block;
		int64_t count = j->plane - at < PART ? j->plane - at : PART, first = (block * j->plane + at) * j->block;
		float scale[16] = {0}, shift[16] = {0};
		for (int64_t l = 0; l < j->block && c + l < j->channels; l++) {
			scale[l] = j->scale[c + l];
			shift[l] = j->shift[c + l];
		}
		if (j->block == 16) affine_part(j->x + first, j->y + first, count, 16, scale, shift, j->relu);
		else affine_part(j->x + first, j->y + first, count, 8, scale, shift, j->relu);
	}
}

static enum sl_status affine_cpu(const struct slp_kernel *k)
{
	sl_shape x = k->in[0].type.shape;
	struct job j = {.x = k->in[0].ptr,
	                .scale = k->in[1].ptr,
	                .shift = k->in[2].ptr,
	                .y = k->out[0].ptr,
	                .blocks = x.dim[1],
	                .channels = slp_size(&k->in[1]),
	                .block = x.dim[4],
	                .plane = x.dim[2] * x.dim[3],
	                .parts = 0,
	                .relu = ((const struct slp_affine_attrs *)k->attrs)->relu};
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	if (j.block != 8 && j.block != 16) return affine_ref(k);
	j.parts = (j.plane + PART - 1) / PART;
	int64_t size = (j.plane < PART ? j.plane : PART) * j.block;
	slp_parallel_for(x.dim[0] * x.dim[1] * j.parts, 1 + SLP_GRAIN / 4 / size, affine_parts, &j);
	return SL_OK;
}

const struct sl_op slp_op_affine_blocked = {
        .name = "affine_blocked",
        .doc = "each channel of images in blocks times a number plus another",
        .args = "x scale shift",
        SLP_NIN(3),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_affine_attrs),
        .inplace = true,
        .rows = SLP_CPU_ROWS(affine_ref, affine_cpu),
        .infer = affine_infer,
        .flops = affine_flops,
        .ref = affine_ref,
};
