/* relayout: images into the layout N16 and back.  Graph passes put it around operations that are faster in N16. */
/* relayout: images into lane order and back.  Made by graph passes, around operations that are faster in that order. */
#include "op_list/move.h"
#include "relayout.h"

#include "common/image_layout.h"
#include "common/lanes.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_relayout_attrs, layout, SLP_INT, 1, "of the result: n16, or plain out of n16"),
        {0},
};

static bool to_n16(const void *attrs)
{
	return ((const struct slp_relayout_attrs *)attrs)->layout == SLP_LAYOUT_N16;
}

static enum sl_status relayout_infer(struct slp_infer *c)
{
	if (!to_n16(c->attrs) && ((const struct slp_relayout_attrs *)c->attrs)->layout != SLP_LAYOUT_PLAIN)
		return slp_reject(c, SL_EINVAL, "layout %d is neither plain nor n16",
		                  ((const struct slp_relayout_attrs *)c->attrs)->layout);
	sl_shape x = c->in[0].shape;
	if (!slp_is_float(c->in[0].dtype)) return slp_reject(c, SL_EDTYPE, "x must be float32 or float64");
	if (x.ndim < 1 || x.dim[0] % SLP_N16_IMAGES)
		return slp_reject(c, SL_ESHAPE, "the layout n16 needs a first axis of a multiple of %d images",
		                  SLP_N16_IMAGES);
	c->out[0] = c->in[0];
	return SL_OK;
}

static enum sl_status relayout_grad(struct slp_grad *g)
{
	struct slp_relayout_attrs back = {.layout = to_n16(g->attrs) ? SLP_LAYOUT_PLAIN : SLP_LAYOUT_N16};
	g->din[0] = slp_apply1(g->at, &slp_op_relayout, &back, 1, g->dout);
	return g->din[0] ? SL_OK : sl_error();
}

static double no_flops(const struct slp_infer *c)
{
	(void)c;
	return 0;
}

/* Elements of an image; 0 without images. */
static int64_t flat_of(const struct slp_kernel *k)
{
	int64_t n = k->in[0].type.shape.dim[0];
	return n ? slp_size(&k->in[0]) / n : 0;
}

static enum sl_status relayout_ref(const struct slp_kernel *k)
{
	int to = to_n16(k->attrs) ? SLP_LAYOUT_N16 : SLP_LAYOUT_PLAIN, from = to ? SLP_LAYOUT_PLAIN : SLP_LAYOUT_N16;
	int64_t flat = flat_of(k);
	for (int64_t n = 0; n < k->in[0].type.shape.dim[0]; n++)
		for (int64_t at = 0; at < flat; at++)
			slp_set(&k->out[0], slp_layout_flat_index(to, flat, n, at),
			        slp_get(&k->in[0], slp_layout_flat_index(from, flat, n, at)));
	return SL_OK;
}

/* ---- CPU: blocks of the elements of 16 images ------------------------------------------------------------------- */

enum { BLOCK = 512, LANES = SLP_N16_IMAGES };

struct move {
	const float *from;
	float *to;
	int64_t n, flat, blocks;
	bool to_n16;
};

static void move_blocks(void *arg, int64_t begin, int64_t end)
{
	const struct move *m = arg;
	for (int64_t b = begin; b < end; b++) {
		int64_t image = b / m->blocks * LANES, at = b % m->blocks * BLOCK, count = m->flat - at;
		int live = m->n - image < LANES ? (int)(m->n - image) : LANES;
		int64_t plain = image * m->flat + at, lanes = image * m->flat + at * LANES;
		if (count > BLOCK) count = BLOCK;
		if (m->to_n16) slp_lanes_gather(m->from + plain, m->flat, live, count, m->to + lanes, LANES);
		else slp_lanes_scatter(m->from + lanes, LANES, live, count, m->to + plain, m->flat);
	}
}

static void run_move(struct move m)
{
	m.blocks = (m.flat + BLOCK - 1) / BLOCK;
	slp_parallel_for((m.n + LANES - 1) / LANES * m.blocks, SLP_GRAIN / (BLOCK * LANES), move_blocks, &m);
}

void slp_to_n16(const float *from, int64_t n, int64_t flat, float *to)
{
	run_move((struct move){.from = from, .to = to, .n = n, .flat = flat, .to_n16 = true});
}

void slp_from_n16(const float *from, int64_t n, int64_t flat, float *to)
{
	run_move((struct move){.from = from, .to = to, .n = n, .flat = flat});
}

static enum sl_status relayout_cpu(const struct slp_kernel *k)
{
	run_move((struct move){.from = k->in[0].ptr,
	                       .to = k->out[0].ptr,
	                       .n = k->in[0].type.shape.dim[0],
	                       .flat = flat_of(k),
	                       .to_n16 = to_n16(k->attrs)});
	return SL_OK;
}

const struct sl_op slp_op_relayout = {
        .name = "relayout",
        .doc = "images into the layout n16, or back",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_relayout_attrs),
        .rows = SLP_FLOAT_ROWS(relayout),
        .infer = relayout_infer,
        .flops = no_flops,
        .grad = relayout_grad,
        .ref = relayout_ref,
};
