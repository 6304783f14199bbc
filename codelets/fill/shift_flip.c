/* shift_flip: images of a batch, each moved by some rows and columns and mirrored at random. */
#include <string.h>

#include "op_list/fill.h"
#include "shift_flip.h"
#include "starling/functions.h"

static const struct slp_attr shift_flip_attrs[] = {
        SLP_ATTR_VALUE(struct slp_shift_flip, flip, SLP_DOUBLE, 1, "probability that an image is mirrored"),
        SLP_ATTR_VALUE(struct slp_shift_flip, pad, SLP_INT, 1, "the most rows and columns"),
        SLP_ATTR(struct slp_shift_flip, back, SLP_INT, 1, "1: the gradient"),
        {"seed", SLP_INT64, offsetof(struct slp_shift_flip, rng.seed), 1, "seed of the random numbers", true, false},
        {"stream", SLP_INT64, offsetof(struct slp_shift_flip, rng.stream), 1, "number of the random operation", true,
         false},
        {0},
};

static enum sl_status shift_flip_infer(struct slp_infer *c)
{
	const struct slp_shift_flip *a = c->attrs;
	sl_shape s = c->in[0].shape;
	if (s.ndim != 4) return slp_reject(c, SL_ESHAPE, "x has %d axes, 4 needed: n, channels, height, width", s.ndim);
	if (a->pad < 0 || a->pad > 65536)
		return slp_reject(c, SL_EINVAL, "pad is %d; it must be from 0 to 65536", a->pad);
	if (!(a->flip >= 0 && a->flip <= 1))
		return slp_reject(c, SL_EINVAL, "probability %g is not in [0, 1]", a->flip);
	c->out[0] = c->in[0];
	return SL_OK;
}

static enum sl_status shift_flip_grad(struct slp_grad *g)
{
	struct slp_shift_flip a = *(const struct slp_shift_flip *)g->attrs;
	a.back = !a.back;
	g->din[0] = slp_apply1(g->at, &slp_op_shift_flip, &a, 1, &g->dout[0]);
	return g->din[0] ? SL_OK : sl_error();
}

/* Row i of the plane, of elements of so many bytes. */
static void move_row(const char *x, char *y, size_t size, int64_t width, struct slp_shift s, int back)
{
	for (int64_t j = 0; j < width; j++, y += size) {
		int64_t from = slp_shifted_column(s, back, j, width);
		if (from < 0 || from >= width) memset(y, 0, size);
		else memcpy(y, x + (size_t)from * size, size);
	}
}

static void move_planes(void *arg, int64_t begin, int64_t end)
{
	const struct slp_kernel *k = arg;
	const struct slp_shift_flip *a = k->attrs;
	const int64_t *dim = k->in[0].type.shape.dim, channels = dim[1], height = dim[2], width = dim[3];
	size_t size = sl_dtype_size(k->in[0].type.dtype), row = (size_t)width * size;
	for (int64_t p = begin; p < end; p++) {
		struct slp_shift s = slp_shift_of(*a, p / channels);
		const char *x = (const char *)k->in[0].ptr + (size_t)(p * height) * row;
		char *y = (char *)k->out[0].ptr + (size_t)(p * height) * row;
		for (int64_t i = 0; i < height; i++, y += row) {
			int64_t from = slp_shifted_row(s, a->back, i);
			if (from < 0 || from >= height) memset(y, 0, row);
			else move_row(x + (size_t)from * row, y, size, width, s, a->back);
		}
	}
}

static enum sl_status shift_flip_cpu(const struct slp_kernel *k)
{
	const int64_t *dim = k->in[0].type.shape.dim, plane = dim[2] * dim[3];
	if (slp_size(&k->in[0])) slp_parallel_for(dim[0] * dim[1], 1 + SLP_GRAIN / plane, move_planes, (void *)k);
	return SL_OK;
}

/* An image in a frame of zeros, cut out at a random place, as PyTorch's and Gluon's random crops do it. */
static double framed(const struct slp_kernel *k, int64_t image, int64_t channel, int64_t i, int64_t j)
{
	const int64_t *dim = k->in[0].type.shape.dim;
	if (i < 0 || i >= dim[2] || j < 0 || j >= dim[3]) return 0;
	return slp_get(&k->in[0], ((image * dim[1] + channel) * dim[2] + i) * dim[3] + j);
}

static enum sl_status shift_flip_ref(const struct slp_kernel *k)
{
	const struct slp_shift_flip *a = k->attrs;
	const int64_t *dim = k->in[0].type.shape.dim;
	for (int64_t e = 0; e < slp_size(&k->in[0]); e++) {
		int64_t j = e % dim[3], i = e / dim[3] % dim[2], channel = e / dim[3] / dim[2] % dim[1];
		int64_t image = e / dim[3] / dim[2] / dim[1];
		struct slp_shift s = slp_shift_of(*a, image);
		if (a->back) j = s.mirrored ? dim[3] - 1 - j + s.columns : j - s.columns;
		else j = (s.mirrored ? dim[3] - 1 - j : j) + s.columns;
		slp_set(&k->out[0], e, framed(k, image, channel, a->back ? i - s.rows : i + s.rows, j));
	}
	return SL_OK;
}

const struct sl_op slp_op_shift_flip = {
        .name = "shift_flip",
        .doc = "images moved and mirrored at random",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = shift_flip_attrs,
        .attrs_size = sizeof(struct slp_shift_flip),
        .rows = SLP_ANY_ROWS(shift_flip),
        .infer = shift_flip_infer,
        .grad = shift_flip_grad,
        .ref = shift_flip_ref,
};

/* Images (n, channels, height, width) of any type, each cut at random out of itself in a frame of `pad` zeros, and mirrored
 * with probability `flip`, for training: the same sizes, on the images' device.  The same after the same sl_seed, on every
 * device.  SL_ESHAPE unless x has four axes; SL_EINVAL: pad is negative or above 65536, or flip is not in [0, 1].
 *
 *     sl_tensor *x = sl_shift_flip(b.x, 4, 0.5); */
sl_tensor *sl_shift_flip_at(const char *at, sl_tensor *x, int pad, double flip)
{
	struct slp_shift_flip attrs = {flip, pad, 0, x ? slp_rng_next_apart() : (struct slp_rng){0, 0}};
	return slp_apply1(at, &slp_op_shift_flip, &attrs, 1, &x);
}
