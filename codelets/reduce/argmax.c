/* argmax: the index of the largest element along an axis. The first of several; a NaN counts as largest, as in
 * NumPy. */
#include <math.h>

#include "common/axis.h"
#include "op_list/reduce.h"
#include "starling/arithmetic.h"
#include "starling/primitives.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_axis_attrs, axis, SLP_INT, 1, "axis that is searched and goes"),
        {0},
};

static enum sl_status infer(struct slp_infer *c)
{
	struct slp_axis_attrs *a = c->attrs;
	sl_shape in = c->in[0].shape, out = {0, {0}};
	int axis = a->axis;
	if (!slp_axis(&a->axis, in.ndim))
		return slp_reject(c, SL_EINVAL, "axis %d of a tensor with %d axes", axis, in.ndim);
	if (in.dim[a->axis] > INT32_MAX) return slp_reject(c, SL_ESHAPE, "places beyond int32 along axis %d", axis);
	for (int i = 0; i < in.ndim; i++)
		if (i != a->axis) out.dim[out.ndim++] = in.dim[i];
	if (in.dim[a->axis] == 0 && sl_shape_size(out) > 0)
		return slp_reject(c, SL_ESHAPE, "no elements to choose from along axis %d", axis);
	c->out[0] = (struct slp_type){SL_INT32, out};
	return SL_OK;
}

static double flops(const struct slp_infer *c)
{
	return (double)sl_shape_size(c->in[0].shape);
}

static enum sl_status argmax_ref(const struct slp_kernel *k)
{
	struct slp_split s = slp_axis_split(k);
	bool whole = k->in[0].type.dtype == SL_INT64;
	for (int64_t c = 0; c < s.outer * s.inner; c++) {
		int64_t first = c / s.inner * s.n * s.inner + c % s.inner, best = 0;
		const int64_t *x = (const int64_t *)k->in[0].ptr + first;
		for (int64_t i = 1; i < s.n && whole; i++)
			if (x[i * s.inner] > x[best * s.inner]) best = i;
		for (int64_t i = 1; i < s.n && !whole; i++) {
			double now = slp_get(&k->in[0], first + best * s.inner),
			       x = slp_get(&k->in[0], first + i * s.inner);
			if (!isnan(now) && (x > now || isnan(x))) best = i;
		}
		slp_set(&k->out[0], c, (double)best);
	}
	return SL_OK;
}

/* ---- CPU -------------------------------------------------------------------------------------------------------- */

struct job {
	struct slp_split s;
	const float *x;
	int32_t *y;
};

enum { LANES = 32, TILE = 256 }; /* so many lanes that loops over them become vectors and are not unrolled */

/* The largest of a row without NaN; *nan says whether it has one. */
static inline __attribute__((always_inline)) float largest(const float *x, int64_t n, int *nan)
{
	float a[LANES], m = -INFINITY;
	int bad[LANES] = {0};
	int64_t i = 0;
	for (int l = 0; l < LANES; l++) a[l] = m;
	for (; i + LANES <= n; i += LANES)
		for (int l = 0; l < LANES; l++) {
			a[l] = x[i + l] > a[l] ? x[i + l] : a[l];
			bad[l] |= x[i + l] != x[i + l];
		}
	for (int64_t l = 0; l < n - i; l++) {
		a[l] = x[i + l] > a[l] ? x[i + l] : a[l];
		bad[l] |= x[i + l] != x[i + l];
	}
	*nan = 0;
	for (int l = 0; l < LANES; l++) {
		m = a[l] > m ? a[l] : m;
		*nan |= bad[l];
	}
	return m;
}

/* Finds the value, then its index: both loops are free of unpredictable branches. */
static SLP_CLONES void rows(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t r = begin; r < end; r++) {
		const float *x = j->x + r * j->s.n;
		int nan, index = 0;
		float m = largest(x, j->s.n, &nan);
		while (nan ? x[index] == x[index] : x[index] != m) index++;
		j->y[r] = index;
	}
}

/* w <= TILE searches side by side: n elements, `step` apart, from x, x + pitch, x + 2 pitch, … */
static inline __attribute__((always_inline)) void search(const float *x, int64_t n, int64_t step, int64_t w,
                                                         int64_t pitch, int32_t *restrict index)
{
	float m[TILE], v[TILE];
	for (int64_t l = 0; l < w; l++) m[l] = x[l * pitch], index[l] = 0;
	for (int32_t i = 1; i < n; i++) {
		for (int64_t l = 0; l < w; l++) v[l] = x[i * step + l * pitch]; /* apart: the rest becomes vectors */
		for (int64_t l = 0; l < w; l++) {
			int better = (m[l] == m[l]) & !(v[l] <= m[l]);
			index[l] = better ? i : index[l];
			m[l] = better ? v[l] : m[l];
		}
	}
}

static SLP_CLONES void short_rows(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	for (int64_t r = begin; r < end; r += TILE)
		search(j->x + r * j->s.n, j->s.n, 1, end - r < TILE ? end - r : TILE, j->s.n, j->y + r);
}

static SLP_CLONES void columns(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t inner = j->s.inner, tiles = (inner + TILE - 1) / TILE;
	for (int64_t t = begin; t < end; t++) {
		int64_t c = t % tiles * TILE, w = inner - c < TILE ? inner - c : TILE, outer = t / tiles;
		search(j->x + outer * j->s.n * inner + c, j->s.n, inner, w, 1, j->y + outer * inner + c);
	}
}

static enum sl_status argmax_cpu(const struct slp_kernel *k)
{
	struct job j = {slp_axis_split(k), k->in[0].ptr, k->out[0].ptr};
	int64_t n = j.s.n, tiles = (j.s.inner + TILE - 1) / TILE;
	if (slp_size(&k->out[0]) == 0) return SL_OK;
	if (j.s.inner == 1) slp_parallel_for(j.s.outer, SLP_GRAIN / n + 1, n < LANES ? short_rows : rows, &j);
	else slp_parallel_for(j.s.outer * tiles, SLP_GRAIN / (n * TILE) + 1, columns, &j);
	return SL_OK;
}

/* ---- the operation ---------------------------------------------------------------------------------------------- */

/* The indices of the largest elements along an axis, which is removed; int32, from 0.  Of equal elements the first; the
 * first NaN if there is one, as in NumPy.  Any dtype; a constant for a backward pass.  SL_EINVAL: no such axis
 * (negative: from the end); SL_ESHAPE: the axis is empty, or longer than an int32 can count.
 *
 *	sl_tensor *right = sl_eq(sl_argmax(logits, 1), labels); */
sl_tensor *sl_argmax_at(const char *at, sl_tensor *x, int axis)
{
	return slp_apply1(at, &slp_op_argmax, &(struct slp_axis_attrs){axis}, 1, &x);
}

const struct sl_op slp_op_argmax = {
        .name = "argmax",
        .doc = "index of the largest element along an axis",
        .args = "x",
        SLP_NIN(1),
        .nout = 1,
        .attr_table = attr_table,
        .attrs_size = sizeof(struct slp_axis_attrs),
        .rows = SLP_ROWS(SLP_ROW(SLP_F32, argmax_cpu, slp_cuda_argmax),
                         SLP_ROW(SLP_NUMBERS, argmax_ref, slp_cuda_argmax), SLP_HALF_ROWS(slp_cuda_argmax),
                         SLP_CPU_ROW(SLP_SMALL, argmax_ref, NULL)),
        .infer = infer,
        .flops = flops,
        .grad = slp_constant,
        .ref = argmax_ref,
};
