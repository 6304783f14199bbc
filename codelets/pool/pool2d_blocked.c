/* pool2d_blocked: pooling of images in blocks of channels (common/blocks.h), a vector of channels at a time. Graph
 * passes make it. */
#include <math.h>

#include "common/blocks.h"
#include "common/simd.h"
#include "op_list/pool.h"
#include "pool2d.h"
#include "starling/options.h"

/* The sizes of the images in the plain layout. */
static sl_shape plain_shape(sl_shape x)
{
	return SL_SHAPE(x.dim[0], x.dim[1] * x.dim[4], x.dim[2], x.dim[3]);
}

static enum sl_status blocked_infer(struct slp_infer *c)
{
	sl_shape x = c->in[0].shape, y;
	if (c->in[0].dtype != SL_FLOAT32) return slp_reject(c, SL_EDTYPE, "x must be float32");
	if (x.ndim != 5) return slp_reject(c, SL_ESHAPE, "x has %d axes, 5 needed", x.ndim);
	enum sl_status s = slp_pool_shape(c, c->attrs, plain_shape(x), &y);
	if (s == SL_OK)
		c->out[0] = (struct slp_type){SL_FLOAT32, SL_SHAPE(x.dim[0], x.dim[1], y.dim[2], y.dim[3], x.dim[4])};
	return s;
}

static double blocked_flops(const struct slp_infer *c)
{
	const struct sl_pool2d_opts *o = &((const struct slp_pool2d_attrs *)c->attrs)->pool;
	return (double)sl_shape_size(c->out[0].shape) * o->kernel[0] * o->kernel[1];
}

/* Planes are blocks here. */
static struct slp_pool pool_of(const struct slp_kernel *k)
{
	struct slp_pool p = slp_pool_make(k->attrs, k->in[0].type.shape, k->out[0].type.shape);
	return p;
}

static enum sl_status blocked_ref(const struct slp_kernel *k)
{
	const struct slp_pool2d_attrs *a = k->attrs;
	struct slp_pool p = pool_of(k);
	int64_t block = k->in[0].type.shape.dim[4];
	for (int64_t i = 0; i < slp_size(&k->out[0]); i++) {
		int64_t place = i / block, plane = place / (p.oh * p.ow);
		struct slp_window w = slp_pool_window(&p, place / p.ow % p.oh, place % p.ow);
		double best = -INFINITY, sum = 0;
		for (int64_t h = w.h0; h < w.h1; h++)
			for (int64_t j = w.w0; j < w.w1; j++) {
				double v = slp_get(&k->in[0], (plane * p.ih * p.iw + h * p.iw + j) * block + i % block);
				if (SLP_POOL_BEATS(v, best)) best = v;
				sum += v;
			}
		slp_set(&k->out[0], i, a->pool.type == SL_POOL_MAX ? best : sum / (double)w.count);
	}
	return SL_OK;
}

/* ---- CPU: rows of y ---------------------------------------------------------------------------------------------- */

struct job {
	struct slp_pool p;
	const float *x;
	float *y;
	int64_t block;
	bool max;
};

/* Vectors, not loops over an array: compilers generate poor code for such loops on processors without masks. */
typedef float v8 __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));

/* a becomes b if b beats it (SLP_POOL_BEATS). */
SLP_INLINE void keep_larger(v8 *a, const v8 *b)
{
	v8i take = (*b > *a) | ((*b != *b) & (*a == *a));
	*a = (v8)(((v8i)*b & take) | ((v8i)*a & ~take));
}

SLP_INLINE void pool_window(const float *x, int64_t iw, struct slp_window w, int block, bool max, float *y)
{
	const float first = max ? -INFINITY : 0;
	v8 v[2] = {{0}};
	SLP_UNROLL
	for (int l = 0; l < block / 8; l++) v[l] += first;
	for (int64_t h = w.h0; h < w.h1; h++)
		for (int64_t j = w.w0; j < w.w1; j++) {
			SLP_UNROLL
			for (int l = 0; l < block / 8; l++) {
				v8 from;
				memcpy(&from, x + (h * iw + j) * block + l * 8, sizeof from);
				if (max) keep_larger(&v[l], &from);
				else v[l] += from;
			}
		}
	const float part = max ? 1 : 1 / (float)w.count;
	SLP_UNROLL
	for (int l = 0; l < block / 8; l++) {
		v[l] *= part;
		memcpy(y + l * 8, &v[l], sizeof v[l]);
	}
}

SLP_INLINE void pool_row(const struct job *j, int64_t row, int block, bool max)
{
	const struct slp_pool *p = &j->p;
	const float *x = j->x + row / p->oh * p->ih * p->iw * block;
	for (int64_t i = 0; i < p->ow; i++)
		pool_window(x, p->iw, slp_pool_window(p, row % p->oh, i), block, max, j->y + (row * p->ow + i) * block);
}

SLP_CLONES static void pool_rows(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t row = begin; row < end; row++) {
		if (j->block == 16 && j->max) pool_row(j, row, 16, true);
		else if (j->block == 16) pool_row(j, row, 16, false);
		else if (j->max) pool_row(j, row, 8, true);
		else pool_row(j, row, 8, false);
	}
}

static enum sl_status blocked_cpu(const struct slp_kernel *k)
{
	const struct slp_pool2d_attrs *a = k->attrs;
	struct job j = {pool_of(k), k->in[0].ptr, k->out[0].ptr, k->in[0].type.shape.dim[4],
	                a->pool.type == SL_POOL_MAX};
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	if (j.block != 8 && j.block != 16) return blocked_ref(k);
	int64_t blocks = k->in[0].type.shape.dim[0] * k->in[0].type.shape.dim[1];
	int64_t work = j.p.ow * j.p.kh * j.p.kw * j.block; /* of a row */
	slp_parallel_for(blocks * j.p.oh, 1 + SLP_GRAIN / 2 / work, pool_rows, &j);
	return SL_OK;
}

const struct sl_op slp_op_pool2d_blocked = {
        .name = "pool2d_blocked",
        .doc = "pooling of images in blocks of channels",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = slp_pool_attr_table,
        .attrs_size = sizeof(struct slp_pool2d_attrs),
        .rows = SLP_CPU_ROWS(blocked_ref, blocked_cpu),
        .infer = blocked_infer,
        .flops = blocked_flops,
        .ref = blocked_ref,
};
