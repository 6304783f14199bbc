/* to_blocks, from_blocks: images and volumes into blocks of channels (common/blocks.h) and back. Graph passes put them around
 * operations that are faster in blocks. */
#include "common/blocks.h"
#include "op_list/move.h"

#include "common/lanes.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_blocks_attrs, block, SLP_INT, 1, "channels in a block"),
        SLP_ATTR(struct slp_blocks_attrs, channels, SLP_INT, 1, "of the images; the last block may have more"),
        SLP_ATTR(struct slp_blocks_attrs, depth, SLP_INT, 1, "of volumes out of blocks; 0: images"),
        {0},
};

static enum sl_status check(const struct slp_infer *c, int least)
{
	const struct slp_blocks_attrs *a = c->attrs;
	if (c->in[0].dtype != SL_FLOAT32) return slp_reject(c, SL_EDTYPE, "x must be float32");
	if (c->in[0].shape.ndim < least || c->in[0].shape.ndim > 5)
		return slp_reject(c, SL_ESHAPE, "x has %d axes, %s needed", c->in[0].shape.ndim,
		                  least == 5 ? "5" : "4 or 5");
	if (a->block != 8 && a->block != 16)
		return slp_reject(c, SL_EINVAL, "blocks have 8 or 16 channels, not %d", a->block);
	return SL_OK;
}

static enum sl_status to_infer(struct slp_infer *c)
{
	const struct slp_blocks_attrs *a = c->attrs;
	enum sl_status s = check(c, 4);
	if (s != SL_OK) return s;
	if (a->channels != c->in[0].shape.dim[1])
		return slp_reject(c, SL_ESHAPE, "x has %lld channels, not %d", (long long)c->in[0].shape.dim[1],
		                  a->channels);
	c->out[0] = (struct slp_type){SL_FLOAT32, slp_blocked_shape(c->in[0].shape, a->block)};
	return SL_OK;
}

static enum sl_status from_infer(struct slp_infer *c)
{
	const struct slp_blocks_attrs *a = c->attrs;
	enum sl_status s = check(c, 5);
	if (s != SL_OK) return s;
	sl_shape x = c->in[0].shape, y = SL_SHAPE(x.dim[0], a->channels, x.dim[2], x.dim[3]);
	if (a->depth < 0 || (a->depth && x.dim[2] % a->depth))
		return slp_reject(c, SL_ESHAPE, "%lld rows are not of %d layers", (long long)x.dim[2], a->depth);
	if (a->depth) y = SL_SHAPE(x.dim[0], a->channels, a->depth, x.dim[2] / a->depth, x.dim[3]);
	if (a->channels < 0 || !sl_shape_equal(slp_blocked_shape(y, a->block), x))
		return slp_reject(c, SL_ESHAPE, "%d channels do not make these blocks", a->channels);
	c->out[0] = (struct slp_type){SL_FLOAT32, y};
	return SL_OK;
}

static double no_flops(const struct slp_infer *c)
{
	(void)c;
	return 0;
}

struct job {
	const float *from;
	float *to;
	int64_t channels, blocks, block, plane, step, parts;
	bool in;
};

static struct job job_of(const struct slp_kernel *k)
{
	const struct slp_blocks_attrs *a = k->attrs;
	bool in = k->op == &slp_op_to_blocks;
	sl_shape x = (in ? k->in[0] : k->out[0]).type.shape;
	return (struct job){.from = k->in[0].ptr,
	                    .to = k->out[0].ptr,
	                    .channels = x.dim[1],
	                    .block = a->block,
	                    .blocks = (x.dim[1] + a->block - 1) / a->block,
	                    .plane = x.dim[2] * x.dim[3] * (x.ndim == 5 ? x.dim[4] : 1),
	                    .in = in};
}

/* ---- reference --------------------------------------------------------------------------------------------------- */

static enum sl_status blocks_ref(const struct slp_kernel *k)
{
	struct job j = job_of(k);
	sl_shape x = (j.in ? k->in[0] : k->out[0]).type.shape;
	for (int64_t i = 0; j.in && i < slp_size(&k->out[0]); i++) slp_set(&k->out[0], i, 0);
	for (int64_t i = 0; i < sl_shape_size(x); i++) {
		int64_t n = i / (j.channels * j.plane), c = i / j.plane % j.channels;
		int64_t at = slp_block_index(j.blocks, j.plane, j.block, n, c, i % j.plane);
		slp_set(&k->out[0], j.in ? at : i, slp_get(&k->in[0], j.in ? i : at));
	}
	return SL_OK;
}

/* ---- CPU: parts of a block --------------------------------------------------------------------------------------- */

enum { PART = 1024 }; /* places */

/* Places [at, at + count) of a block, of which `live` channels exist; the other lanes become 0. */
SLP_INLINE void move_part(const struct job *j, int block, int64_t plain, int64_t blocked, int live, int64_t count)
{
	if (j->in) {
		for (int64_t p = 0; p < count; p++)
			for (int l = 0; l < block; l++)
				j->to[blocked + p * block + l] = l < live ? j->from[plain + l * j->plane + p] : 0;
	} else {
		for (int l = 0; l < live; l++)
			for (int64_t p = 0; p < count; p++)
				j->to[plain + l * j->plane + p] = j->from[blocked + p * block + l];
	}
}

SLP_CLONES static void move_parts(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t i = begin; i < end; i++) {
		int64_t block = i / j->parts, at = i % j->parts * PART, c = block % j->blocks * j->block;
		int64_t count = j->plane - at < PART ? j->plane - at : PART;
		int live = (int)(j->channels - c < j->block ? j->channels - c : j->block);
		int64_t plain = (block / j->blocks * j->channels + c) * j->plane + at,
		        blocked = (block * j->plane + at) * j->block;
		if (j->block == 8) move_part(j, 8, plain, blocked, live, count);
		else if (j->in) slp_lanes_gather(j->from + plain, j->plane, live, count, j->to + blocked, 16);
		else slp_lanes_scatter(j->from + blocked, 16, live, count, j->to + plain, j->plane);
	}
}

static enum sl_status blocks_cpu(const struct slp_kernel *k)
{
	struct job j = job_of(k);
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	j.parts = (j.plane + PART - 1) / PART;
	sl_shape x = (j.in ? k->in[0] : k->out[0]).type.shape;
	int64_t size = (j.plane < PART ? j.plane : PART) * j.block;
	slp_parallel_for(x.dim[0] * j.blocks * j.parts, 1 + SLP_GRAIN / 4 / size, move_parts, &j);
	return SL_OK;
}

#define BLOCKS(way, text, rule)                                                                                        \
	const struct sl_op slp_op_##way##_blocks = {                                                                   \
	        .name = #way "_blocks",                                                                                \
	        .doc = text,                                                                                           \
	        .args = "x",                                                                                           \
	        SLP_NIN(1),                                                                                            \
	        .nout = 1,                                                                                             \
	        .attr_table = attr_table,                                                                              \
	        .attrs_size = sizeof(struct slp_blocks_attrs),                                                         \
	        .rows = SLP_CPU_ROWS(blocks_ref, blocks_cpu),                                                          \
	        .infer = rule,                                                                                         \
	        .flops = no_flops,                                                                                     \
	        .ref = blocks_ref,                                                                                     \
	}
BLOCKS(to, "images or volumes into blocks of channels", to_infer);
BLOCKS(from, "images or volumes out of blocks of channels", from_infer);
