/* Convolution as products of matrices, for builds without oneDNN and whatever that does not take.
 *
 * Image by image and group by group, the windows of x become the columns of a matrix (ic·kh·kw, oh·ow):
 * y = w · columns, columns of dx = wᵀ · dy, dw += dy · columnsᵀ.
 * K. Chellapilla, S. Puri, P. Simard, "High performance convolutional neural networks for document processing", 2006.
 */
#include <string.h>

#include "conv2d.h"
#include "workspace.h"

struct columns {
	const struct slp_conv *c;
	float *x, *columns; /* of one image and group */
};

/* Output positions [*begin, *end) along an axis whose window element at offset u lies inside an image of `size`. */
static void inside(int64_t u, int64_t stride, int64_t pad, int64_t dilation, int64_t size, int64_t out, int64_t *begin,
                   int64_t *end)
{
	int64_t shift = u * dilation - pad; /* input position = stride · output position + shift */
	*begin = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
	*end = shift >= size ? 0 : (size - 1 - shift) / stride + 1;
	if (*end > out) *end = out;
	if (*begin > *end) *begin = *end;
}

/* One row of the matrix: the element (q, u, v) of every window. */
static void gather_row(const struct slp_conv *c, const float *x, int64_t u, int64_t v, float *row)
{
	int64_t i0, i1, j0, j1;
	inside(u, c->sh, c->ph, c->dh, c->ih, c->oh, &i0, &i1);
	inside(v, c->sw, c->pw, c->dw, c->iw, c->ow, &j0, &j1);
	memset(row, 0, sizeof *row * (size_t)(i0 * c->ow));
	memset(row + i1 * c->ow, 0, sizeof *row * (size_t)((c->oh - i1) * c->ow));
	for (int64_t i = i0; i < i1; i++) {
		const float *from = x + (i * c->sh - c->ph + u * c->dh) * c->iw - c->pw + v * c->dw;
		float *to = row + i * c->ow;
		for (int64_t j = 0; j < j0; j++) to[j] = 0;
		for (int64_t j = j0; j < j1; j++) to[j] = from[j * c->sw];
		for (int64_t j = j1; j < c->ow; j++) to[j] = 0;
	}
}

static void scatter_row(const struct slp_conv *c, float *x, int64_t u, int64_t v, const float *row)
{
	int64_t i0, i1, j0, j1;
	inside(u, c->sh, c->ph, c->dh, c->ih, c->oh, &i0, &i1);
	inside(v, c->sw, c->pw, c->dw, c->iw, c->ow, &j0, &j1);
	for (int64_t i = i0; i < i1; i++) {
		float *to = x + (i * c->sh - c->ph + u * c->dh) * c->iw - c->pw + v * c->dw;
		for (int64_t j = j0; j < j1; j++) to[j * c->sw] += row[i * c->ow + j];
	}
}

/* All rows of channels [begin, end). */
static void gather(void *arg, int64_t begin, int64_t end)
{
	const struct columns *m = arg;
	const struct slp_conv *c = m->c;
	float *row = m->columns + begin * c->kh * c->kw * c->oh * c->ow;
	for (int64_t q = begin; q < end; q++)
		for (int64_t u = 0; u < c->kh; u++)
			for (int64_t v = 0; v < c->kw; v++, row += c->oh * c->ow)
				gather_row(c, m->x + q * c->ih * c->iw, u, v, row);
}

static void scatter(void *arg, int64_t begin, int64_t end)
{
	const struct columns *m = arg;
	const struct slp_conv *c = m->c;
	const float *row = m->columns + begin * c->kh * c->kw * c->oh * c->ow;
	for (int64_t q = begin; q < end; q++) {
		float *plane = m->x + q * c->ih * c->iw;
		memset(plane, 0, sizeof *plane * (size_t)(c->ih * c->iw));
		for (int64_t u = 0; u < c->kh; u++)
			for (int64_t v = 0; v < c->kw; v++, row += c->oh * c->ow) scatter_row(c, plane, u, v, row);
	}
}

/* One image, one group; the gradient of the weight is added to what is there from the second image on. */
static enum sl_status product(const struct slp_kernel *k, const struct slp_conv_args *a, struct columns *m, float *w,
                              float *y, bool first)
{
	const struct slp_conv *c = &a->c;
	int64_t ic = c->ic / c->groups, oc = c->oc / c->groups, rows = ic * c->kh * c->kw, pixels = c->oh * c->ow;
	int64_t grain = 1 + SLP_GRAIN / (c->kh * c->kw * pixels + 1);
	enum sl_status s;
	if (a->pass == SLP_CONV_DATA) {
		s = slp_sgemm(k, true, false, rows, pixels, oc, 1, w, rows, y, pixels, 0, m->columns, pixels);
		slp_parallel_for(ic, grain, scatter, m);
		return s;
	}
	slp_parallel_for(ic, grain, gather, m);
	if (a->pass == SLP_CONV_FORWARD)
		return slp_sgemm(k, false, false, oc, pixels, rows, 1, w, rows, m->columns, pixels, 0, y, pixels);
	return slp_sgemm(k, false, true, oc, rows, pixels, 1, y, pixels, m->columns, pixels, first ? 0 : 1, w, rows);
}

static void add_bias(void *arg, int64_t begin, int64_t end)
{
	const struct slp_conv_args *a = arg;
	int64_t pixels = a->c.oh * a->c.ow;
	for (int64_t p = begin; p < end; p++) {
		float *y = a->y + p * pixels, b = a->b[p % a->c.oc];
		for (int64_t i = 0; i < pixels; i++) y[i] += b;
	}
}

static void sum_bias(void *arg, int64_t begin, int64_t end)
{
	const struct slp_conv_args *a = arg;
	int64_t pixels = a->c.oh * a->c.ow;
	for (int64_t o = begin; o < end; o++) {
		double sum = 0;
		for (int64_t n = 0; n < a->c.n; n++)
			for (int64_t i = 0; i < pixels; i++) sum += a->y[(n * a->c.oc + o) * pixels + i];
		a->b[o] = (float)sum;
	}
}

enum sl_status slp_conv_gemm(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	const struct slp_conv *c = &a->c;
	int64_t ic = c->ic / c->groups, oc = c->oc / c->groups, kernel = c->kh * c->kw, pixels = c->oh * c->ow;
	float *columns = slp_workspace(SLP_WORK_CALL, sizeof(float) * (size_t)(ic * kernel * pixels));
	if (!columns) return slp_kernel_fail(k, SL_ENOMEM, "no memory for the columns of an image");
	enum sl_status s = SL_OK;
	for (int64_t z = 0; z < c->n * c->groups && s == SL_OK; z++) {
		int64_t n = z / c->groups, g = z % c->groups;
		struct columns m = {c, a->x + (n * c->ic + g * ic) * c->ih * c->iw, columns};
		float *y = a->y + (n * c->oc + g * oc) * pixels;
		s = product(k, a, &m, a->w + g * oc * ic * kernel, y, n == 0);
	}
	if (a->b && a->pass == SLP_CONV_FORWARD)
		slp_parallel_for(c->n * c->oc, 1 + SLP_GRAIN / pixels, add_bias, (void *)a);
	if (a->b && a->pass == SLP_CONV_WEIGHTS)
		slp_parallel_for(c->oc, 1 + SLP_GRAIN / (c->n * pixels), sum_bias, (void *)a);
	return s;
}
