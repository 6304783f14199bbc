/* Convolution as products of matrices, for builds without oneDNN and calls that oneDNN does not support.
 *
 * Image by image and group by group, the windows of x become the columns of a matrix (ic·kh·kw, oh·ow):
 * y = w · columns, columns of dx = wᵀ · dy, dw += dy · columnsᵀ.
 * K. Chellapilla, S. Puri, P. Simard, "High performance convolutional neural networks for document processing", 2006.
 */
#include <string.h>

#include "conv2d_kernels.h"
#include "common/gemm.h"
#include "common/workspace.h"
#include "op.h"

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

/* ---- one image and one group: by the whole team, or by the calling thread among others --------------------------- */

struct job {
	const struct slp_kernel *k;
	const struct slp_conv_args *a;
	float *partial; /* gradients of the weight, a part each; NULL: not used */
	int64_t parts, images;
	enum sl_status status;
	bool team;
};

static enum sl_status multiply(const struct job *j, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a,
                               const float *b, float beta, float *c)
{
	int64_t lda = ta ? m : k, ldb = tb ? k : n;
	return j->team ? slp_sgemm(j->k, ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, n)
	               : slp_sgemm_serial(ta, tb, m, n, k, 1, a, lda, b, ldb, beta, c, n);
}

static void each_channel(const struct job *j, struct columns *m, void (*fn)(void *, int64_t, int64_t))
{
	const struct slp_conv *c = m->c;
	int64_t ic = c->ic / c->groups;
	if (j->team) slp_parallel_for(ic, 1 + SLP_GRAIN / (c->kh * c->kw * c->oh * c->ow + 1), fn, m);
	else fn(m, 0, ic);
}

/* Image z / groups, group z % groups. The gradient of the weight is stored in dw, or added to it if `more`. */
static enum sl_status one(const struct job *j, int64_t z, float *columns, float *dw, bool more)
{
	const struct slp_conv *c = &j->a->c;
	int64_t n = z / c->groups, g = z % c->groups, ic = c->ic / c->groups, oc = c->oc / c->groups;
	int64_t rows = ic * c->kh * c->kw, pixels = c->oh * c->ow;
	struct columns m = {c, j->a->x + (n * c->ic + g * ic) * c->ih * c->iw, columns};
	float *y = j->a->y + (n * c->oc + g * oc) * pixels, *w = j->a->w + g * oc * rows;
	if (j->a->pass == SLP_CONV_DATA) {
		enum sl_status s = multiply(j, true, false, rows, pixels, oc, w, y, 0, columns);
		each_channel(j, &m, scatter);
		return s;
	}
	each_channel(j, &m, gather);
	if (j->a->pass == SLP_CONV_FORWARD) return multiply(j, false, false, oc, pixels, rows, w, columns, 0, y);
	return multiply(j, false, true, oc, rows, pixels, y, columns, more, dw + g * oc * rows);
}

static size_t columns_size(const struct slp_conv *c)
{
	return sizeof(float) * (size_t)(c->ic / c->groups * c->kh * c->kw * c->oh * c->ow);
}

/* Parts [begin, end) of the images, each with sums of its own. */
static void run_parts(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	const struct slp_conv *c = &j->a->c;
	float *columns = slp_workspace(SLP_WORK_THREAD, columns_size(c));
	enum sl_status s = columns ? SL_OK : SL_ENOMEM;
	for (int64_t p = begin; p < end && s == SL_OK; p++) {
		int64_t first = p * j->images / j->parts * c->groups, last = (p + 1) * j->images / j->parts * c->groups;
		float *dw = j->partial ? j->partial + p * c->oc * (c->ic / c->groups) * c->kh * c->kw : j->a->w;
		for (int64_t z = first; z < last && s == SL_OK; z++) s = one(j, z, columns, dw, z >= first + c->groups);
	}
	if (s != SL_OK) j->status = s;
}

static void add_partial(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct slp_conv *c = &j->a->c;
	int64_t size = c->oc * (c->ic / c->groups) * c->kh * c->kw;
	for (int64_t i = begin; i < end; i++) {
		float sum = 0;
		for (int64_t p = 0; p < j->parts; p++) sum += j->partial[p * size + i];
		j->a->w[i] = sum;
	}
}

/* ---- bias ------------------------------------------------------------------------------------------------------- */

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

/* ---- a call ----------------------------------------------------------------------------------------------------- */

/* The number of parts: each has its own gradient, so memory limits it; it does not depend on the number of threads. */
static int64_t parts_of_weights(int64_t images, int64_t size)
{
	enum { LEAST = 16, MOST = 64, ELEMENTS = 16 << 20 };
	int64_t parts = ELEMENTS / (size + 1);
	parts = parts < LEAST ? LEAST : parts > MOST ? MOST : parts;
	return parts < images ? parts : images;
}

/* Many images are divided among the threads in parts, whose number does not depend on the threads; few images are each
 * computed by all. */
static enum sl_status run(struct job *j)
{
	enum { FEW = 8 };
	const struct slp_conv *c = &j->a->c;
	int64_t size = c->oc * (c->ic / c->groups) * c->kh * c->kw;
	j->images = c->n;
	j->team = c->n < FEW;
	j->parts = j->team ? 1 : j->a->pass == SLP_CONV_WEIGHTS ? parts_of_weights(c->n, size) : c->n;
	if (!j->team && j->a->pass == SLP_CONV_WEIGHTS) {
		j->partial = slp_workspace(SLP_WORK_CALL, sizeof(float) * (size_t)(j->parts * size));
		if (!j->partial) return SL_ENOMEM;
	}
	if (j->team) run_parts(j, 0, 1);
	else slp_parallel_for(j->parts, 1, run_parts, j);
	if (j->partial) slp_parallel_for(size, 1 + SLP_GRAIN / j->parts, add_partial, j);
	return j->status;
}

enum sl_status slp_conv_gemm(const struct slp_kernel *k, const struct slp_conv_args *a)
{
	const struct slp_conv *c = &a->c;
	struct job j = {.k = k, .a = a};
	enum sl_status s = run(&j);
	if (s != SL_OK) return slp_kernel_fail(k, s, "the product of matrices failed");
	if (a->b && a->pass == SLP_CONV_FORWARD)
		slp_parallel_for(c->n * c->oc, 1 + SLP_GRAIN / (c->oh * c->ow), add_bias, (void *)a);
	if (a->b && a->pass == SLP_CONV_WEIGHTS)
		slp_parallel_for(c->oc, 1 + SLP_GRAIN / (c->n * c->oh * c->ow), sum_bias, (void *)a);
	return SL_OK;
}
