/* argsort: the indices of elements along an axis, in the order of the elements. */
#include <string.h>

#include "argsort.h"
#include "common/describe.h"
#include "op_list/reduce.h"
#include "starling/primitives.h"

static const struct slp_attr attr_table[] = {
        SLP_ATTR(struct slp_argsort_attrs, axis, SLP_INT, 1, "the axis to sort along"),
        SLP_ATTR(struct slp_argsort_attrs, descending, SLP_BOOL, 1, "the largest first"),
        {0},
};

static enum sl_status infer(struct slp_infer *c)
{
	struct slp_argsort_attrs *a = c->attrs;
	sl_shape shape = c->in[0].shape;
	int axis = a->axis;
	if (!slp_axis(&a->axis, shape.ndim))
		return slp_reject(c, SL_EINVAL, "axis %d of a tensor with %d axes", axis, shape.ndim);
	if (shape.dim[a->axis] > INT32_MAX) return slp_reject(c, SL_ESHAPE, "places beyond int32 along axis %d", axis);
	c->out[0] = (struct slp_type){SL_INT32, shape};
	return SL_OK;
}

static double flops(const struct slp_infer *c)
{
	const struct slp_argsort_attrs *a = c->attrs;
	double rounds = 1;
	for (int64_t n = c->in[0].shape.dim[a->axis]; n > 1; n /= 2) rounds++;
	return rounds * (double)sl_shape_size(c->in[0].shape);
}

static size_t key_size(enum sl_dtype dtype)
{
	return sl_dtype_size(dtype) > sizeof(uint32_t) ? sizeof(uint64_t) : sizeof(uint32_t);
}

/* Of each element a key and an index, and as much memory to move them into. */
static size_t scratch(const struct slp_infer *c)
{
	return 2 * (key_size(c->in[0].dtype) + sizeof(int32_t)) * (size_t)sl_shape_size(c->in[0].shape);
}

struct job {
	const struct slp_kernel *k;
	struct slp_split split;
	bool descending;
};

/* Whether element i must stand before element o. */
static bool before(const struct slp_view *x, int64_t i, int64_t o, bool descending)
{
	const int64_t *whole = x->ptr;
	if (x->type.dtype == SL_INT64) return slp_whole_sorts_before(whole[i], whole[o], descending);
	return slp_sorts_before(slp_get(x, i), slp_get(x, o), descending);
}

/* Merges the sorted ranges [begin, middle) and [middle, end) of `from` into `to`; of equal elements those of the first
 * come first. */
static void merge(const struct job *j, int64_t first, const int32_t *from, int32_t *to, int64_t begin, int64_t middle,
                  int64_t end)
{
	const struct slp_view *x = &j->k->in[0];
	int64_t a = begin, b = middle;
	for (int64_t i = begin; i < end; i++) {
		bool second = a == middle || (b < end && before(x, first + from[b] * j->split.inner,
		                                                first + from[a] * j->split.inner, j->descending));
		to[i] = second ? from[b++] : from[a++];
	}
}

/* Merges ever longer ranges (J. von Neumann, 1945); returns the indices. */
static const int32_t *merge_line(const struct job *j, int64_t first, void *memory)
{
	int64_t n = j->split.n;
	int32_t *from = memory, *to = from + n;
	for (int64_t i = 0; i < n; i++) from[i] = (int32_t)i;
	for (int64_t width = 1; width < n; width *= 2) {
		for (int64_t begin = 0; begin < n; begin += 2 * width) {
			int64_t middle = begin + width < n ? begin + width : n;
			merge(j, first, from, to, begin, middle, middle + width < n ? middle + width : n);
		}
		int32_t *swap = from;
		from = to;
		to = swap;
	}
	return from;
}

/* ---- long lines: digit by digit ---------------------------------------------------------------------------------- */

/* Numbers without a sign, in the order of the elements: NaN is the largest, -0 equals 0. */
static uint32_t float_key(float x)
{
	const union {
		float number;
		uint32_t bits;
	} u = {x + 0.0f};
	if (x != x) return UINT32_MAX;
	return u.bits >> 31 ? ~u.bits : u.bits | UINT32_C(1) << 31;
}

static uint64_t double_key(double x)
{
	const union {
		double number;
		uint64_t bits;
	} u = {x + 0.0};
	if (x != x) return UINT64_MAX;
	return u.bits >> 63 ? ~u.bits : u.bits | UINT64_C(1) << 63;
}

static void fill_keys_32(const struct slp_view *x, int64_t first, int64_t step, int64_t n, uint32_t *keys)
{
	const void *p = x->ptr;
	bool negative = x->type.dtype == SL_INT8 || x->type.dtype == SL_INT16;
	uint32_t sign = negative ? UINT32_C(1) << 31 : 0;
	if (x->type.dtype == SL_FLOAT32)
		for (int64_t i = 0; i < n; i++) keys[i] = float_key(((const float *)p)[first + i * step]);
	else if (x->type.dtype == SL_INT32)
		for (int64_t i = 0; i < n; i++) keys[i] = ((const uint32_t *)p)[first + i * step] ^ UINT32_C(1) << 31;
	else
		for (int64_t i = 0; i < n; i++) keys[i] = (uint32_t)(int64_t)slp_get(x, first + i * step) ^ sign;
}

static void fill_keys_64(const struct slp_view *x, int64_t first, int64_t step, int64_t n, uint64_t *keys)
{
	const void *p = x->ptr;
	if (x->type.dtype == SL_FLOAT64)
		for (int64_t i = 0; i < n; i++) keys[i] = double_key(((const double *)p)[first + i * step]);
	else
		for (int64_t i = 0; i < n; i++) keys[i] = ((const uint64_t *)p)[first + i * step] ^ UINT64_C(1) << 63;
}

enum { DIGIT = 8, VALUES = 1 << DIGIT };

/* The places where the elements of each digit begin; false: all have one digit. */
static bool begin_of_digits(uint32_t *counts, int64_t n)
{
	uint32_t before = 0;
	for (int v = 0; v < VALUES; v++) {
		uint32_t count = counts[v];
		if (count == (uint32_t)n) return false;
		counts[v] = before;
		before += count;
	}
	return true;
}

/* From the lowest digit to the highest, in their order where digits are equal (H. H. Seward, 1954). */
/* clang-format off */
#define DIGIT_SORT(bits)                                                                                               \
	static const int32_t *digit_line_##bits(const struct job *j, int64_t first, void *memory)                      \
	{                                                                                                              \
		int64_t n = j->split.n;                                                                                \
		uint##bits##_t *from = memory, *to = from + n, flip = j->descending ? UINT##bits##_MAX : 0, *swap;     \
		int32_t *places = (int32_t *)(to + n), *moved = places + n, *swapped;                                  \
		uint32_t counts[VALUES];                                                                               \
		fill_keys_##bits(&j->k->in[0], first, j->split.inner, n, from);                                        \
		for (int64_t i = 0; i < n; i++) places[i] = (int32_t)i, from[i] ^= flip;                               \
		for (int shift = 0; shift < bits; shift += DIGIT) {                                                    \
			memset(counts, 0, sizeof counts);                                                              \
			for (int64_t i = 0; i < n; i++) counts[from[i] >> shift & (VALUES - 1)]++;                     \
			if (!begin_of_digits(counts, n)) continue;                                                     \
			for (int64_t i = 0; i < n; i++) {                                                              \
				uint32_t at = counts[from[i] >> shift & (VALUES - 1)]++;                               \
				to[at] = from[i], moved[at] = places[i];                                               \
			}                                                                                              \
			swap = from, from = to, to = swap;                                                             \
			swapped = places, places = moved, moved = swapped;                                             \
		}                                                                                                      \
		return places;                                                                                         \
	}
/* clang-format on */
DIGIT_SORT(32)
DIGIT_SORT(64)

static void sort_line(const struct job *j, int64_t line)
{
	enum { LONG = 256 };
	int64_t n = j->split.n, first = line / j->split.inner * n * j->split.inner + line % j->split.inner;
	size_t key = key_size(j->k->in[0].type.dtype);
	char *memory = (char *)j->k->scratch + 2 * (key + sizeof(int32_t)) * (size_t)(n * line);
	const int32_t *places = n < LONG                  ? merge_line(j, first, memory)
	                        : key == sizeof(uint32_t) ? digit_line_32(j, first, memory)
	                                                  : digit_line_64(j, first, memory);
	int32_t *y = j->k->out[0].ptr;
	for (int64_t i = 0; i < n; i++) y[first + i * j->split.inner] = places[i];
}

static void sort_range(void *arg, int64_t begin, int64_t end)
{
	for (; begin < end; begin++) sort_line(arg, begin);
}

static enum sl_status argsort_cpu(const struct slp_kernel *k)
{
	struct job j = {k, slp_argsort_split(k), ((const struct slp_argsort_attrs *)k->attrs)->descending};
	if (slp_size(&k->out[0])) slp_parallel_for(j.split.outer * j.split.inner, 8192 / j.split.n + 1, sort_range, &j);
	return SL_OK;
}

/* The reference: counts the elements before each. */
static enum sl_status argsort_ref(const struct slp_kernel *k)
{
	struct slp_split s = slp_argsort_split(k);
	bool descending = ((const struct slp_argsort_attrs *)k->attrs)->descending;
	for (int64_t e = 0; e < slp_size(&k->out[0]); e++) {
		int64_t i = e / s.inner % s.n, first = e - i * s.inner, place = 0;
		for (int64_t o = 0; o < s.n; o++) {
			int64_t other = first + o * s.inner;
			place += before(&k->in[0], other, e, descending) ||
			         (o < i && !before(&k->in[0], e, other, descending));
		}
		slp_set(&k->out[0], first + place * s.inner, (double)i);
	}
	return SL_OK;
}

SLP_DESCRIBE(argsort, "places of elements along an axis, in their order", "x", 1, .attr_table = attr_table,
             .attrs_size = sizeof(struct slp_argsort_attrs), .grad = slp_constant,
             .rows = SLP_ROWS(SLP_ROW(SLP_NUMBERS, argsort_cpu, slp_cuda_argsort), SLP_HALF_ROWS(slp_cuda_argsort),
                              SLP_CPU_ROW(SLP_SMALL, argsort_cpu, NULL)),
             .infer = infer, .flops = flops, .scratch = scratch);

/* The indices that sort x along an axis, int32: the smallest element first, or the largest if `descending`.  Equal
 * elements keep their order; NaN counts as the largest.  No gradient flows through it.  SL_EINVAL: no such axis
 * (negative: from the end). */
sl_tensor *sl_argsort_at(const char *at, sl_tensor *x, int axis, bool descending)
{
	return slp_apply1(at, &slp_op_argsort, &(struct slp_argsort_attrs){axis, descending}, 1, &x);
}
