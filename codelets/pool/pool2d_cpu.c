/* Pooling on CPUs.  Windows of 2 × 2 side by side, the usual case, have loops of their own that run at the speed of
 * memory; the mean of a whole image likewise.  Other windows are reduced down their columns, then across. */
#include "pool2d.h"
#include "common/nhwc.h"
#include "common/simd.h"
#include "common/workspace.h"
#include "op.h"

typedef float v4 __attribute__((vector_size(16)));
typedef float v8 __attribute__((vector_size(32)));
typedef int32_t v8i __attribute__((vector_size(32)));

struct job {
	struct slp_pool p;
	const float *in, *dy; /* in: the first input; dy for gradients: the last */
	const float *relu;    /* gradients vanish where it is not positive */
	float *out;
	void (*plane)(const struct job *, int64_t plane, float *row);
	bool no_memory;
};

/* The gradient through a relu whose results are y. */
SLP_CLONES static void mask(const float *y, float *d, int64_t n)
{
	for (int64_t i = 0; i < n; i++) d[i] = y[i] <= 0 ? 0 : d[i];
}

static void run_planes(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	float *row = slp_workspace(SLP_WORK_THREAD, 2 * sizeof *row * (size_t)j->p.iw);
	if (!row) j->no_memory = true;
	int64_t size = j->p.ih * j->p.iw;
	for (int64_t i = begin; row && i < end; i++) {
		j->plane(j, i, row);
		if (j->relu) mask(j->relu + i * size, j->out + i * size, size);
	}
}

static enum sl_status run_nhwc(const struct slp_kernel *k)
{
	struct slp_pool2d_grad plain; /* the forward attributes are the first in it */
	memcpy(&plain, k->attrs, k->op->attrs_size);
	plain.of.x_layout = plain.of.y_layout = SLP_LAYOUT_PLAIN;
	return slp_by_plain(k, SLP_IN(0) | SLP_IN(1) | SLP_OUT(0), &plain,
	                    slp_kernel_for(k->op, SLP_ALL_OF(SL_FLOAT32), SL_DEVICE_CPU).kernel);
}

static enum sl_status run(const struct slp_kernel *k, void (*plane)(const struct job *, int64_t, float *))
{
	struct job j = {.p = slp_pool_of(k),
	                .in = k->in[0].ptr,
	                .dy = k->in[k->nin - 1].ptr,
	                .relu = slp_pool_has_relu(k) ? k->in[0].ptr : NULL,
	                .out = k->out[0].ptr,
	                .plane = plane};
	if (j.p.x_layout == SLP_LAYOUT_NHWC) return run_nhwc(k);
	if (slp_layout_among(SLP_LAYOUT_N16, j.p.x_layout, j.p.y_layout)) return slp_pool2d_n16(k);
	slp_parallel_for(j.p.planes, 1 + SLP_GRAIN / (j.p.ih * j.p.iw + 1), run_planes, &j);
	return j.no_memory ? slp_kernel_fail(k, SL_ENOMEM, "no memory for a row") : SL_OK;
}

static bool is_2x2(const struct slp_pool *p)
{
	return p->kh == 2 && p->kw == 2 && p->sh == 2 && p->sw == 2 && p->ph == 0 && p->pw == 0 && p->ow >= 4 &&
	       2 * p->oh <= p->ih && 2 * p->ow <= p->iw;
}

/* ---- 2 × 2: eight windows at a time, or four; the last of a row perhaps again ------------------------------------ */

#define EVEN(v) __builtin_shufflevector(v, v, 0, 2, 4, 6, 8, 10, 12, 14)
#define ODD(v) __builtin_shufflevector(v, v, 1, 3, 5, 7, 9, 11, 13, 15)
#define WEAVE(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15)
#define BEATS(b, a) (((b) > (a)) | (((b) != (b)) & ((a) == (a))))
#define PICK(mask, a, b) ((v8)(((v8i)(a) & (mask)) | ((v8i)(b) & ~(mask))))

/* Up to eight windows: their four elements each, a b above c d, and values of each window. */
struct quad {
	v8 a, b, c, d, y;
};

typedef void quad_fn(struct quad *q);

/* The elements of `width` windows in a row; in halves, because loading a vector from memory just written stalls. */
SLP_INLINE void load_row(const float *x, const int width, slp_v16 *row)
{
	v8 half;
	if (width == 8) {
		memcpy(row, x, sizeof *row);
		return;
	}
	memcpy(&half, x, sizeof half);
	*row = __builtin_shufflevector(half, half, 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7);
}

SLP_INLINE void load_results(const float *y, const int width, v8 *results)
{
	v4 half;
	if (width == 8) {
		memcpy(results, y, sizeof *results);
		return;
	}
	memcpy(&half, y, sizeof half);
	*results = __builtin_shufflevector(half, half, 0, 1, 2, 3, 0, 1, 2, 3);
}

SLP_INLINE void load_quad(const float *x, int64_t step, const int width, struct quad *q)
{
	slp_v16 top, bottom;
	load_row(x, width, &top);
	load_row(x + step, width, &bottom);
	q->a = EVEN(top);
	q->b = ODD(top);
	q->c = EVEN(bottom);
	q->d = ODD(bottom);
}

SLP_INLINE void store_quad(const struct quad *q, const int width, float *x, int64_t step)
{
	slp_v16 top = WEAVE(q->a, q->b), bottom = WEAVE(q->c, q->d);
	memcpy(x, &top, sizeof(float) * 2 * width);
	memcpy(x + step, &bottom, sizeof(float) * 2 * width);
}

SLP_INLINE void max_quad(struct quad *q)
{
	v8 m = PICK(BEATS(q->b, q->a), q->b, q->a), n = PICK(BEATS(q->d, q->c), q->d, q->c);
	q->y = PICK(BEATS(n, m), n, m);
}

SLP_INLINE void avg_quad(struct quad *q)
{
	q->y = ((q->a + q->b) + (q->c + q->d)) * 0.25f;
}

SLP_INLINE void max_grad_quad(struct quad *q)
{
	v8i b = BEATS(q->b, q->a), d = BEATS(q->d, q->c);
	v8 m = PICK(b, q->b, q->a), n = PICK(d, q->d, q->c), zero = {0}, dy = q->y;
	v8i low = BEATS(n, m);
	q->a = PICK(low | b, zero, dy);
	q->b = PICK(~low & b, dy, zero);
	q->c = PICK(low & ~d, dy, zero);
	q->d = PICK(low & d, dy, zero);
}

SLP_INLINE void avg_grad_quad(struct quad *q)
{
	q->a = q->b = q->c = q->d = q->y * 0.25f;
}

/* All windows of a plane. Pointers that are not NULL are read (x, dy) or written (y, dx). */
SLP_INLINE void each_quad(const struct slp_pool *p, const int width, quad_fn *what, const float *x, const float *dy,
                          float *y, float *dx)
{
	for (int64_t i = 0; i < p->oh; i++)
		for (int64_t next = 0; next < p->ow; next += width) {
			int64_t j = next <= p->ow - width ? next : p->ow - width;
			int64_t from = 2 * i * p->iw + 2 * j, to = i * p->ow + j;
			struct quad q = {0};
			if (x) load_quad(x + from, p->iw, width, &q);
			if (dy) load_results(dy + to, width, &q.y);
			what(&q);
			if (y) memcpy(y + to, &q.y, sizeof(float) * width);
			if (dx) store_quad(&q, width, dx + from, p->iw);
		}
}

/* Zeros outside of all windows. */
static void clear_rest(const struct slp_pool *p, float *x)
{
	int64_t rows = 2 * p->oh, columns = 2 * p->ow;
	for (int64_t h = 0; columns < p->iw && h < rows; h++)
		memset(x + h * p->iw + columns, 0, sizeof *x * (size_t)(p->iw - columns));
	memset(x + rows * p->iw, 0, sizeof *x * (size_t)((p->ih - rows) * p->iw));
}

/* X(name, whether it reads elements, whether it is a gradient) */
#define QUADS(X) X(max, true, false) X(avg, true, false) X(max_grad, true, true) X(avg_grad, false, true)
/* clang-format off */
#define X(name, reads, back)                                                                                           \
	SLP_CLONES static void name##_2x2(const struct job *j, int64_t plane, float *row)                              \
	{                                                                                                              \
		(void)row;                                                                                             \
		const struct slp_pool *p = &j->p;                                                                      \
		int64_t px = plane * p->ih * p->iw, py = plane * p->oh * p->ow;                                        \
		const float *x = reads ? j->in + px : NULL, *dy = back ? j->dy + py : NULL;                            \
		float *y = back ? NULL : j->out + py, *dx = back ? j->out + px : NULL;                                 \
		if (p->ow >= 8)                                                                                        \
			each_quad(p, 8, name##_quad, x, dy, y, dx);                                                    \
		else                                                                                                   \
			each_quad(p, 4, name##_quad, x, dy, y, dx);                                                    \
		if (back) clear_rest(p, dx);                                                                           \
	}
/* clang-format on */
QUADS(X)
#undef X

/* ---- the mean of an image --------------------------------------------------------------------------------------- */

SLP_CLONES static void avg_image(const struct job *j, int64_t plane, float *row)
{
	(void)row;
	int64_t n = j->p.ih * j->p.iw, i = 0;
	const float *x = j->in + plane * n;
	slp_v16 part[2] = {{0}}, v;
	for (; i + 32 <= n; i += 32)
		for (int s = 0; s < 2; s++) {
			memcpy(&v, x + i + 16 * s, sizeof v);
			part[s] += v;
		}
	part[0] += part[1];
	float sum = 0;
	for (int l = 0; l < 16; l++) sum += part[0][l];
	for (; i < n; i++) sum += x[i];
	j->out[plane] = sum / (float)n;
}

/* ---- any window ------------------------------------------------------------------------------------------------- */

/* row[w] = the largest element, or the sum, of rows [h0, h1) of x in column w. */
SLP_CLONES static void max_of_columns(const struct slp_pool *p, const float *x, struct slp_window r, float *row)
{
	memcpy(row, x + r.h0 * p->iw, sizeof *row * (size_t)p->iw);
	for (int64_t h = r.h0 + 1; h < r.h1; h++)
		for (int64_t w = 0; w < p->iw; w++) {
			float b = x[h * p->iw + w], a = row[w];
			row[w] = BEATS(b, a) ? b : a;
		}
}

SLP_CLONES static void sum_of_columns(const struct slp_pool *p, const float *x, struct slp_window r, float *row)
{
	memcpy(row, x + r.h0 * p->iw, sizeof *row * (size_t)p->iw);
	for (int64_t h = r.h0 + 1; h < r.h1; h++)
		for (int64_t w = 0; w < p->iw; w++) row[w] += x[h * p->iw + w];
}

/* Output columns [*begin, *end) whose window element v lies in the row. */
static void columns_with(const struct slp_pool *p, int64_t v, int64_t *begin, int64_t *end)
{
	int64_t shift = v - p->pw, last = p->iw - 1 - shift;
	*begin = shift >= 0 ? 0 : (-shift + p->sw - 1) / p->sw;
	*end = last < 0 ? 0 : last / p->sw + 1;
	if (*end > p->ow) *end = p->ow;
}

/* y[j] = the larger of y[j] and from[j · step]; the step is a constant if that pays. */
SLP_INLINE void max_step(float *y, const float *from, int64_t begin, int64_t end, const int64_t step)
{
	for (int64_t j = begin; j < end; j++) {
		float b = from[j * step], a = y[j];
		y[j] = BEATS(b, a) ? b : a;
	}
}

/* The largest element under each window, from the largest of each column. */
SLP_CLONES static void max_across(const struct slp_pool *p, const float *row, float *y)
{
	for (int64_t j = 0; j < p->ow; j++) y[j] = row[j * p->sw < p->pw ? 0 : j * p->sw - p->pw];
	for (int64_t v = 0; v < p->kw; v++) {
		int64_t begin, end;
		columns_with(p, v, &begin, &end);
		const float *from = row + v - p->pw;
		if (p->sw == 1) max_step(y, from, begin, end, 1);
		else if (p->sw == 2) max_step(y, from, begin, end, 2);
		else max_step(y, from, begin, end, p->sw);
	}
}

static void max_plane(const struct job *j, int64_t plane, float *row)
{
	const struct slp_pool *p = &j->p;
	float *y = j->out + plane * p->oh * p->ow;
	for (int64_t i = 0; i < p->oh; i++, y += p->ow) {
		max_of_columns(p, j->in + plane * p->ih * p->iw, slp_pool_window(p, i, 0), row);
		max_across(p, row, y);
	}
}

static void avg_plane(const struct job *j, int64_t plane, float *row)
{
	const struct slp_pool *p = &j->p;
	float *y = j->out + plane * p->oh * p->ow;
	for (int64_t i = 0; i < p->oh; i++) {
		sum_of_columns(p, j->in + plane * p->ih * p->iw, slp_pool_window(p, i, 0), row);
		for (int64_t o = 0; o < p->ow; o++) {
			struct slp_window r = slp_pool_window(p, i, o);
			float sum = 0;
			for (int64_t w = r.w0; w < r.w1; w++) sum += row[w];
			*y++ = sum / (float)r.count;
		}
	}
}

/* row[w] = the largest element of rows [h0, h1) of x in column w, at[w] = the first row that has it. */
SLP_CLONES static void max_columns_at(const struct slp_pool *p, const float *x, struct slp_window r, float *row,
                                      int32_t *at)
{
	memcpy(row, x + r.h0 * p->iw, sizeof *row * (size_t)p->iw);
	for (int64_t w = 0; w < p->iw; w++) at[w] = (int32_t)r.h0;
	for (int64_t h = r.h0 + 1; h < r.h1; h++)
		for (int64_t w = 0; w < p->iw; w++) {
			float b = x[h * p->iw + w], a = row[w];
			bool beats = BEATS(b, a);
			row[w] = beats ? b : a;
			at[w] = beats ? (int32_t)h : at[w];
		}
}

/* The column of a window that has its first largest element: of equal ones, the one in the upper row. */
static inline int64_t first_largest(struct slp_window r, const float *row, const int32_t *at)
{
	int64_t best = r.w0;
	for (int64_t w = r.w0 + 1; w < r.w1; w++) {
		float a = row[best], b = row[w];
		bool equal = (a == b) | ((a != a) & (b != b));
		best = BEATS(b, a) | (equal & (at[w] < at[best])) ? w : best;
	}
	return best;
}

static void max_grad_plane(const struct job *j, int64_t plane, float *row)
{
	const struct slp_pool *p = &j->p;
	const float *x = j->in + plane * p->ih * p->iw, *dy = j->dy + plane * p->oh * p->ow;
	float *dx = j->out + plane * p->ih * p->iw;
	int32_t *at = (int32_t *)(row + p->iw);
	memset(dx, 0, sizeof *dx * (size_t)(p->ih * p->iw));
	for (int64_t i = 0; i < p->oh; i++) {
		max_columns_at(p, x, slp_pool_window(p, i, 0), row, at);
		for (int64_t o = 0; o < p->ow; o++) {
			int64_t w = first_largest(slp_pool_window(p, i, o), row, at);
			dx[at[w] * p->iw + w] += *dy++;
		}
	}
}

static void avg_grad_plane(const struct job *j, int64_t plane, float *row)
{
	(void)row;
	const struct slp_pool *p = &j->p;
	const float *dy = j->dy + plane * p->oh * p->ow;
	float *dx = j->out + plane * p->ih * p->iw;
	memset(dx, 0, sizeof *dx * (size_t)(p->ih * p->iw));
	for (int64_t i = 0; i < p->oh; i++)
		for (int64_t o = 0; o < p->ow; o++) {
			struct slp_window r = slp_pool_window(p, i, o);
			float share = *dy++ / (float)r.count;
			for (int64_t h = r.h0; h < r.h1; h++)
				for (int64_t w = r.w0; w < r.w1; w++) dx[h * p->iw + w] += share;
		}
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

enum sl_status slp_max_pool2d_cpu(const struct slp_kernel *k)
{
	struct slp_pool p = slp_pool_of(k);
	return run(k, is_2x2(&p) ? max_2x2 : max_plane);
}

enum sl_status slp_avg_pool2d_cpu(const struct slp_kernel *k)
{
	struct slp_pool p = slp_pool_of(k);
	bool image = p.oh == 1 && p.ow == 1 && p.kh == p.ih && p.kw == p.iw && p.ph == 0 && p.pw == 0;
	return run(k, is_2x2(&p) ? avg_2x2 : image ? avg_image : avg_plane);
}

enum sl_status slp_max_pool2d_grad_cpu(const struct slp_kernel *k)
{
	struct slp_pool p = slp_pool_of(k);
	return run(k, is_2x2(&p) ? max_grad_2x2 : max_grad_plane);
}

enum sl_status slp_avg_pool2d_grad_cpu(const struct slp_kernel *k)
{
	struct slp_pool p = slp_pool_of(k);
	return run(k, is_2x2(&p) ? avg_grad_2x2 : avg_grad_plane);
}
