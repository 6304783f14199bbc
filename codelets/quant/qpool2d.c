/* qpool2d: the largest or the mean byte of windows of quantised images in NHWC. */
#include <math.h>
#include <string.h>

#include "common/workspace.h"
#include "op_list/quant.h"
#include "quant.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_qpool_attrs, max, SLP_INT, 1, "the largest, not the mean"),
        SLP_ATTR(struct slp_qpool_attrs, kernel, SLP_INT, 2, "height and width of the window"),
        SLP_ATTR(struct slp_qpool_attrs, stride, SLP_INT, 2, "steps of the window down and across"),
        SLP_ATTR(struct slp_qpool_attrs, pad, SLP_INT, 4, "elements above, left, below, right"),
        SLP_ATTR(struct slp_qpool_attrs, include_pad, SLP_INT, 1, "means count what is outside"),
        SLP_ATTR_VALUE(struct slp_qpool_attrs, x_zero, SLP_INT, 1, "the zero point of x"),
        SLP_ATTR_VALUE(struct slp_qpool_attrs, y_zero, SLP_INT, 1, "that of y"),
        SLP_ATTR(struct slp_qpool_attrs, size, SLP_INT, 2, "height and width of y"),
        SLP_ATTR_VALUE(struct slp_qpool_attrs, scale, SLP_DOUBLE, 1, "of x, over that of y"),
        {0},
};

static enum sl_status qpool2d_infer(struct slp_infer *c)
{
	const struct slp_qpool_attrs *a = c->attrs;
	sl_shape x = c->in[0].shape;
	if (c->in[0].dtype != SL_UINT8) return slp_reject(c, SL_EDTYPE, "x must be uint8");
	if (x.ndim != 4) return slp_reject(c, SL_ESHAPE, "x must have 4 axes");
	for (int i = 0; i < 2; i++) {
		if (a->kernel[i] < 1 || a->stride[i] < 1 || a->pad[i] < 0 || a->pad[i + 2] < 0 || a->size[i] < 1)
			return slp_reject(c, SL_EINVAL, "kernel, stride and size must be positive, pad not negative");
		if (a->pad[i] >= a->kernel[i] || (int64_t)(a->size[i] - 1) * a->stride[i] - a->pad[i] >= x.dim[1 + i])
			return slp_reject(c, SL_ESHAPE, "windows without elements");
	}
	if (!a->max && !(a->scale > 0)) return slp_reject(c, SL_EINVAL, "scale must be above 0");
	c->out[0] = (struct slp_type){SL_UINT8, SL_SHAPE(x.dim[0], a->size[0], a->size[1], x.dim[3])};
	return SL_OK;
}

/* The window of element (i, j) of y: rows, columns, and the number that a mean is divided by. */
struct window {
	int64_t top, bottom, left, right, count;
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static struct window window_of(const struct slp_qpool_attrs *a, sl_shape x, int64_t i, int64_t j)
{
	int64_t top = i * a->stride[0] - a->pad[0], left = j * a->stride[1] - a->pad[1];
	struct window w = {top < 0 ? 0 : top, least(top + a->kernel[0], x.dim[1]), left < 0 ? 0 : left,
	                   least(left + a->kernel[1], x.dim[2]), 0};
	w.count = (w.bottom - w.top) * (w.right - w.left);
	if (a->include_pad)
		w.count = (least(top + a->kernel[0], x.dim[1] + a->pad[2]) - top) *
		          (least(left + a->kernel[1], x.dim[2] + a->pad[3]) - left);
	return w;
}

/* A mean's step and zero point, once the count of its window is known. */
static uint8_t mean(const struct slp_qpool_attrs *a, int64_t sum, const struct window *w)
{
	int64_t inside = (w->bottom - w->top) * (w->right - w->left);
	return slp_q_byte((float)(sum - inside * a->x_zero) * (float)(a->scale / (double)w->count), a->y_zero);
}

SLP_CLONES static void largest(uint8_t *y, const uint8_t *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) y[i] = x[i] > y[i] ? x[i] : y[i];
}

SLP_CLONES static void add_bytes(int32_t *sum, const uint8_t *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) sum[i] += x[i];
}

static void pool(const struct slp_kernel *k, int64_t pixel, int32_t *sum)
{
	const struct slp_qpool_attrs *a = k->attrs;
	sl_shape s = k->in[0].type.shape;
	int64_t c = s.dim[3], plane = (int64_t)a->size[0] * a->size[1];
	struct window w = window_of(a, s, pixel % plane / a->size[1], pixel % a->size[1]);
	const uint8_t *x = (const uint8_t *)k->in[0].ptr + pixel / plane * s.dim[1] * s.dim[2] * c;
	uint8_t *y = (uint8_t *)k->out[0].ptr + pixel * c;
	if (a->max) memset(y, 0, (size_t)c);
	else memset(sum, 0, (size_t)c * sizeof *sum);
	for (int64_t i = w.top; i < w.bottom; i++)
		for (int64_t j = w.left; j < w.right; j++) {
			if (a->max) largest(y, x + (i * s.dim[2] + j) * c, c);
			else add_bytes(sum, x + (i * s.dim[2] + j) * c, c);
		}
	for (int64_t e = 0; !a->max && e < c; e++) y[e] = mean(a, sum[e], &w);
}

struct pooling {
	const struct slp_kernel *k;
	int32_t *sums; /* of each pixel's channels at a place of its own; NULL: none */
};

static void part(void *arg, int64_t begin, int64_t end)
{
	const struct pooling *p = arg;
	for (int64_t i = begin; i < end; i++)
		pool(p->k, i, p->sums ? p->sums + i * p->k->in[0].type.shape.dim[3] : NULL);
}

static enum sl_status qpool2d_cpu(const struct slp_kernel *k)
{
	const struct slp_qpool_attrs *a = k->attrs;
	int64_t c = k->in[0].type.shape.dim[3], pixels = c ? slp_size(&k->out[0]) / c : 0;
	struct pooling p = {k, NULL};
	if (!a->max) p.sums = slp_workspace(SLP_WORK_CALL, (size_t)(pixels * c + 1) * sizeof *p.sums);
	if (!a->max && !p.sums) return slp_kernel_fail(k, SL_ENOMEM, "no memory for sums");
	int64_t work = c * a->kernel[0] * a->kernel[1] + 1;
	slp_parallel_for(pixels, SLP_GRAIN / work + 1, part, &p);
	return SL_OK;
}

static enum sl_status qpool2d_ref(const struct slp_kernel *k)
{
	const struct slp_qpool_attrs *a = k->attrs;
	sl_shape s = k->in[0].type.shape;
	int64_t c = s.dim[3], plane = (int64_t)a->size[0] * a->size[1];
	for (int64_t e = 0; e < slp_size(&k->out[0]); e++) {
		int64_t pixel = e / c, sum = 0, most = 0;
		struct window w = window_of(a, s, pixel % plane / a->size[1], pixel % a->size[1]);
		for (int64_t i = w.top; i < w.bottom; i++)
			for (int64_t j = w.left; j < w.right; j++) {
				int64_t row = pixel / plane * s.dim[1] + i;
				int64_t v = (int64_t)slp_get(&k->in[0], (row * s.dim[2] + j) * c + e % c);
				sum += v;
				most = v > most ? v : most;
			}
		slp_set(&k->out[0], e, a->max ? (double)most : mean(a, sum, &w));
	}
	return SL_OK;
}

static double qpool2d_flops(const struct slp_infer *c)
{
	const struct slp_qpool_attrs *a = c->attrs;
	return (double)sl_shape_size(c->out[0].shape) * a->kernel[0] * a->kernel[1];
}

const struct sl_op slp_op_qpool2d = {
        .name = "qpool2d",
        .doc = "pooling of quantised images",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_qpool_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_DTYPE(SL_UINT8), qpool2d_cpu, slp_cuda_qpool2d)),
        .infer = qpool2d_infer,
        .flops = qpool2d_flops,
        .grad = slp_constant,
        .ref = qpool2d_ref,
};
