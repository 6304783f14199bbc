/* relayout: images into lane order and back.  Made by graph passes, around operations that are faster in that order. */
#include "op_list.h"
#include "relayout.h"

#include "common/lane_order.h"
#include "common/lanes.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_relayout_attrs, to_lanes, SLP_BOOL, 1, "into lane order; else out of it"),
        {0},
};

static enum sl_status relayout_infer(struct slp_infer *c)
{
	sl_shape x = c->in[0].shape;
	if (!slp_is_float(c->in[0].dtype)) return slp_reject(c, SL_EDTYPE, "x must be float32 or float64");
	if (x.ndim < 1 || x.dim[0] % SLP_ORDER_LANES)
		return slp_reject(c, SL_ESHAPE, "lane order needs a first axis of a multiple of %d images",
		                  SLP_ORDER_LANES);
	c->out[0] = c->in[0];
	return SL_OK;
}

static enum sl_status relayout_grad(struct slp_grad *g)
{
	struct slp_relayout_attrs back = {!((const struct slp_relayout_attrs *)g->attrs)->to_lanes};
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
	bool to = ((const struct slp_relayout_attrs *)k->attrs)->to_lanes;
	int64_t flat = flat_of(k);
	for (int64_t n = 0; n < k->in[0].type.shape.dim[0]; n++)
		for (int64_t at = 0; at < flat; at++)
			slp_set(&k->out[0], slp_order_index(to, flat, n, at),
			        slp_get(&k->in[0], slp_order_index(!to, flat, n, at)));
	return SL_OK;
}

/* ---- CPU: blocks of the elements of 16 images ------------------------------------------------------------------- */

enum { BLOCK = 512, LANES = SLP_ORDER_LANES };

struct move {
	const float *from;
	float *to;
	int64_t n, flat, blocks;
	bool to_lanes;
};

static void move_blocks(void *arg, int64_t begin, int64_t end)
{
	const struct move *m = arg;
	for (int64_t b = begin; b < end; b++) {
		int64_t image = b / m->blocks * LANES, at = b % m->blocks * BLOCK, count = m->flat - at;
		int live = m->n - image < LANES ? (int)(m->n - image) : LANES;
		int64_t plain = image * m->flat + at, lanes = image * m->flat + at * LANES;
		if (count > BLOCK) count = BLOCK;
		if (m->to_lanes) slp_lanes_gather(m->from + plain, m->flat, live, count, m->to + lanes, LANES);
		else slp_lanes_scatter(m->from + lanes, LANES, live, count, m->to + plain, m->flat);
	}
}

static void run_move(struct move m)
{
	m.blocks = (m.flat + BLOCK - 1) / BLOCK;
	slp_parallel_for((m.n + LANES - 1) / LANES * m.blocks, SLP_GRAIN / (BLOCK * LANES), move_blocks, &m);
}

void slp_to_lanes(const float *from, int64_t n, int64_t flat, float *to)
{
	run_move((struct move){from, to, n, flat, 0, true});
}

void slp_from_lanes(const float *from, int64_t n, int64_t flat, float *to)
{
	run_move((struct move){from, to, n, flat, 0, false});
}

static enum sl_status relayout_cpu(const struct slp_kernel *k)
{
	run_move((struct move){k->in[0].ptr, k->out[0].ptr, k->in[0].type.shape.dim[0], flat_of(k), 0,
	                       ((const struct slp_relayout_attrs *)k->attrs)->to_lanes});
	return SL_OK;
}

const struct sl_op slp_op_relayout = {
        .name = "relayout",
        .doc = "images into lane order, or back",
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
