/* A convolution followed by its pooling, for cases that no kernel computes at once: work memory holds the unpooled y,
 * or its gradient, in N16. */
#include "common/workspace.h"
#include "conv2d_batch.h"
#include "move/relayout.h"
#include "op.h"
#include "starling/options.h"

enum { LANES = SLP_N16_IMAGES };

/* Everything in N16. */
struct planes {
	const struct slp_conv_args *a;
	float *whole, *pooled;
};

/* Planes [begin, end), each of 16 images of one channel: y and its mask from the unpooled y, which is activated. */
static void pool_planes(void *arg, int64_t begin, int64_t end)
{
	const struct planes *p = arg;
	const struct slp_conv *c = &p->a->c;
	for (int64_t plane = begin; plane < end; plane++)
		for (int64_t w = 0; w < c->oh * c->ow / 4 * LANES; w++) {
			int64_t window = w / LANES, lane = w % LANES, i = window / (c->ow / 2),
			        j = window % (c->ow / 2);
			int64_t first = plane * c->oh * c->ow + 2 * i * c->ow + 2 * j;
			double v[4];
			unsigned flow;
			for (int e = 0; e < 4; e++) v[e] = p->whole[(first + e / 2 * c->ow + e % 2) * LANES + lane];
			p->pooled[plane * c->oh * c->ow / 4 * LANES + w] =
			        (float)slp_conv_pool4(p->a->pool, p->a->activation == SL_RELU, v, &flow);
			for (int e = 0; e < 4; e++) {
				uint8_t *byte = p->a->mask + 2 * (first + e / 2 * c->ow + e % 2) + lane / 8;
				if (lane % 8 == 0) *byte = 0;
				*byte |= (uint8_t)((flow >> e & 1) << lane % 8);
			}
		}
}

SLP_CLONES static void unpool_planes(void *arg, int64_t begin, int64_t end)
{
	const struct planes *p = arg;
	const struct slp_conv *c = &p->a->c;
	int64_t size = c->oh * c->ow;
	for (int64_t plane = begin; plane < end; plane++)
		slp_unpool_rows(p->pooled + plane * size / 4 * LANES, p->a->mask + plane * size * 2,
		                slp_conv_pool_share(p->a->pool), c->ow, 0, c->oh, p->whole + plane * size * LANES);
}

enum sl_status slp_conv_unpooled(const struct slp_kernel *k, const struct slp_conv_args *a, slp_conv_run *run)
{
	const struct slp_conv *c = &a->c;
	int64_t flat = c->oc * c->oh * c->ow, planes = c->n / LANES * c->oc,
	        grain = 1 + SLP_GRAIN / LANES / (c->oh * c->ow);
	float *work = slp_workspace(SLP_WORK_UNPOOLED, sizeof *work * (size_t)(c->n * (flat + flat / 4)));
	if (!work) return slp_kernel_fail(k, SL_ENOMEM, "no memory for the unpooled result");
	bool y_n16 = a->y_layout == SLP_LAYOUT_N16;
	struct planes p = {a, work, y_n16 ? a->y : work + c->n * flat};
	struct slp_conv_args whole = *a;
	whole.pool = SLP_CONV_POOL_NONE;
	whole.y = work;
	whole.y_layout = SLP_LAYOUT_N16;
	if (a->pass != SLP_CONV_FORWARD) {
		if (!y_n16) slp_to_n16(a->y, c->n, flat / 4, p.pooled);
		slp_parallel_for(planes, grain, unpool_planes, &p);
		return run(k, &whole);
	}
	enum sl_status s = run(k, &whole);
	if (s != SL_OK) return s;
	slp_parallel_for(planes, grain, pool_planes, &p);
	if (!y_n16) slp_from_n16(p.pooled, c->n, flat / 4, a->y);
	return SL_OK;
}
