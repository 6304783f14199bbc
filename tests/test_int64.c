/* int64 and bool: arithmetic against __int128, which no double could do; comparisons that give bools; indices. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "starling.h"

typedef __int128 wide;
enum { N = 96 };

static int64_t saturated(wide x)
{
	return x > INT64_MAX ? INT64_MAX : x < INT64_MIN ? INT64_MIN : (int64_t)x;
}

/* Near all limits, and where a double has no bits left. */
static void fill(int64_t *x, unsigned seed)
{
	static const int64_t special[] = {
	        0, 1, -1, 2, -3, INT64_MAX, INT64_MIN, (INT64_C(1) << 53) + 1, -(INT64_C(1) << 53) - 1};
	uint64_t state = seed;
	for (int i = 0; i < N; i++) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		int64_t some = (int64_t)(state ^ state >> 29) >> (state >> 58);
		x[i] = state >> 60 < 6 ? special[(state >> 40) % (sizeof special / sizeof *special)] : some;
	}
}

static int64_t times(int64_t a, int64_t b)
{
	return saturated((wide)a * b);
}

/* Towards 0; by 0, the limits as infinities would have them. */
static int64_t over(int64_t a, int64_t b)
{
	if (b) return saturated((wide)a / b);
	return a > 0 ? INT64_MAX : a < 0 ? INT64_MIN : 0;
}

static int64_t plus(int64_t a, int64_t b)
{
	return saturated((wide)a + b);
}

static int64_t minus(int64_t a, int64_t b)
{
	return saturated((wide)a - b);
}

/* By repeated multiplication: what has left the range does not come back. */
static int64_t to_the(int64_t a, int64_t b)
{
	int64_t power = 1;
	if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : a ? 0 : INT64_MAX;
	if (a == 0 || a == 1) return b ? a : 1;
	if (a == -1) return b & 1 ? -1 : 1;
	for (int64_t i = 0; i < b; i++) {
		if ((wide)power * a != times(power, a)) return a < 0 && b & 1 ? INT64_MIN : INT64_MAX;
		power *= a;
	}
	return power;
}

#define OPERATIONS(X)                                                                                                  \
	X(add, plus(a, b))                                                                                             \
	X(sub, minus(a, b))                                                                                            \
	X(mul, times(a, b))                                                                                            \
	X(div, over(a, b))                                                                                             \
	X(pow, to_the(a, b))                                                                                           \
	X(maximum, a > b ? a : b)                                                                                      \
	X(minimum, a < b ? a : b)                                                                                      \
	X(eq, a == b)                                                                                                  \
	X(ne, a != b)                                                                                                  \
	X(lt, a < b)                                                                                                   \
	X(le, a <= b)                                                                                                  \
	X(gt, a > b)                                                                                                   \
	X(ge, a >= b)

static void compare(const char *name, sl_tensor *got, const int64_t *expected, int n)
{
	int64_t values[N * N] = {0};
	int wrong = 0;
	if (!CHECK_SAYING(got != NULL, "%s: %s", name, sl_error_message())) return sl_error_clear();
	CHECK_SAYING(sl_tensor_dtype(got) == SL_INT64 && sl_tensor_size(got) == n, "%s gives %s", name,
	             sl_dtype_name(sl_tensor_dtype(got)));
	CHECK_OK(sl_read(got, values, (size_t)n * sizeof *values));
	for (int i = 0; i < n; i++) wrong += values[i] != expected[i];
	CHECK_SAYING(!wrong, "%s: %d of %d are wrong", name, wrong, n);
}

/* Each with each: a column and a row. */
static void test_two(void)
{
	static int64_t x[N], y[N], expected[N * N];
	fill(x, 1);
	fill(y, 2);
	SL_SCOPE {
		sl_tensor *column = sl_from(x, SL_SHAPE(N, 1), .dtype = SL_INT64),
		          *row = sl_from(y, SL_SHAPE(N), .dtype = SL_INT64);
#define X(name, value)                                                                                                 \
	for (int i = 0; i < N * N; i++) {                                                                              \
		const int64_t a = x[i / N], b = y[i % N];                                                              \
		expected[i] = value;                                                                                   \
	}                                                                                                              \
	compare(#name, sl_##name(column, row), expected, N *N);
		OPERATIONS(X)
#undef X
	}
}

static void test_number(void)
{
	static int64_t x[N], expected[N];
	static const int64_t numbers[] = {3, -7, INT64_C(1) << 53, 0};
	fill(x, 3);
	for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
		SL_SCOPE {
			const int64_t b = numbers[k];
			sl_tensor *t = sl_from(x, SL_SHAPE(N), .dtype = SL_INT64);
#define X(name, value)                                                                                                 \
	for (int i = 0; i < N; i++) {                                                                                  \
		const int64_t a = x[i];                                                                                \
		expected[i] = value;                                                                                   \
	}                                                                                                              \
	if (b >= 0 || strcmp(#name, "pow")) /* a negative power is refused */                                          \
		compare(#name "_scalar", sl_##name##_scalar(t, (double)b), expected, N);
			OPERATIONS(X)
#undef X
			for (int i = 0; i < N; i++) expected[i] = minus(b, x[i]);
			compare("rsub_scalar", sl_rsub_scalar(t, (double)b), expected, N);
		}
}

/* Of 8 columns; the first sums overflow, others take all bits. */
static void test_reductions(void)
{
	enum { ROWS = N / 8 };
	static int64_t x[N], sum[8], largest[8], smallest[8], some[8], every[8], product[8];
	fill(x, 5);
	for (int c = 0; c < 8; c++) {
		wide s = 0;
		product[c] = 1;
		largest[c] = INT64_MIN;
		smallest[c] = INT64_MAX;
		every[c] = 1;
		for (int r = 0; r < ROWS; r++) {
			x[8 * r + c] >>= c * 2;
			int64_t v = x[8 * r + c];
			s += v;
			if (v > largest[c]) largest[c] = v;
			if (v < smallest[c]) smallest[c] = v;
			some[c] |= v != 0;
			every[c] &= v != 0;
		}
		sum[c] = saturated(s);
	}
	SL_SCOPE {
		sl_tensor *t = sl_from(x, SL_SHAPE(ROWS, 8), .dtype = SL_INT64);
		compare("sum", sl_sum(t, SL_AXES(0)), sum, 8);
		compare("max", sl_max(t, SL_AXES(0)), largest, 8);
		compare("min", sl_min(t, SL_AXES(0)), smallest, 8);
		compare("any", sl_any(t, SL_AXES(0)), some, 8);
		compare("all", sl_all(t, SL_AXES(0)), every, 8);
		for (int c = 0; c < 8; c++) product[c] = times(x[c], x[8 + c]);
		compare("prod", sl_prod(sl_rows(t, 0, 2), SL_AXES(0)), product, 8);
	}
}

/* Sums and products that leave the range on the way and come back, or do not. */
static void test_overflow(void)
{
	const int64_t big = INT64_C(1) << 62, most = INT64_MAX, least = INT64_MIN;
	const int64_t x[] = {most, most, -1, least, big, 8, -1, 3, most, 9, 0, 1};
	const int64_t sum[] = {most - 2, big + 10, most};
	const int64_t product[] = {most, least, 0};
	const int64_t up_to[] = {most, most, most, most - 2, big, big + 8, big + 7, big + 10, most, most, most, most};
	SL_SCOPE {
		sl_tensor *t = sl_from(x, SL_SHAPE(3, 4), .dtype = SL_INT64);
		compare("sum", sl_sum(t, SL_AXES(1)), sum, 3);
		compare("prod", sl_prod(t, SL_AXES(1)), product, 3);
		compare("cumsum", sl_cumsum(t, 1), up_to, 12);
		compare("sum", sl_sum(sl_reshape(t, SL_SHAPE(12))), (const int64_t[]){most}, 1);
	}
}

/* Neighbours that are one number as doubles. */
static void test_order(void)
{
	const int64_t base = INT64_C(1) << 60;
	const int64_t x[] = {base, base + 2, -base - 1, base + 1, -base},
	              up[] = {-base - 1, -base, base, base + 1, base + 2};
	const int32_t places[] = {2, 4, 0, 3, 1};
	int32_t got[5];
	SL_SCOPE {
		sl_tensor *t = sl_from(x, SL_SHAPE(5), .dtype = SL_INT64);
		compare("sort", sl_sort(t, 0, false), up, 5);
		CHECK(sl_item(sl_argmax(t, 0)) == 1);
		CHECK_OK(sl_read(sl_argsort(t, 0, false), got, sizeof got));
		CHECK(!memcmp(got, places, sizeof got));
		compare("topk", sl_topk(t, 2, 0, NULL), (const int64_t[]){base + 2, base + 1}, 2);
		compare("where", sl_where(sl_gt_scalar(t, 0), t, sl_neg(t)),
		        (const int64_t[]){base, base + 2, base + 1, base + 1, base}, 5);
		compare("masked_fill", sl_masked_fill(t, sl_lt_scalar(t, 0.5, .dtype = SL_BOOL), 7),
		        (const int64_t[]){base, base + 2, 7, base + 1, 7}, 5);
		compare("clip", sl_clip(t, -5, 6), (const int64_t[]){6, 6, -5, 6, -5}, 5);
		compare("lt a fraction", sl_lt_scalar(sl_neg(t), -0x1p60 - 0.5), (const int64_t[]){0, 1, 0, 1, 0}, 5);
		compare("lt infinity", sl_lt_scalar(t, INFINITY), (const int64_t[]){1, 1, 1, 1, 1}, 5);
		compare("lt NaN", sl_lt_scalar(t, NAN), (const int64_t[]){0, 0, 0, 0, 0}, 5);
		compare("ne NaN", sl_ne_scalar(t, NAN), (const int64_t[]){1, 1, 1, 1, 1}, 5);
	}
}

static void test_one(void)
{
	const int64_t x[] = {INT64_MIN, INT64_MAX, -5, 0, INT64_C(3037000500), (INT64_C(1) << 53) + 1};
	SL_SCOPE {
		sl_tensor *t = sl_from(x, SL_SHAPE(6), .dtype = SL_INT64);
		compare("neg", sl_neg(t), (const int64_t[]){INT64_MAX, -INT64_MAX, 5, 0, -x[4], -x[5]}, 6);
		compare("abs", sl_abs(t), (const int64_t[]){INT64_MAX, INT64_MAX, 5, 0, x[4], x[5]}, 6);
		compare("square", sl_square(t), (const int64_t[]){INT64_MAX, INT64_MAX, 25, 0, INT64_MAX, INT64_MAX},
		        6);
		compare("relu", sl_relu(t), (const int64_t[]){0, INT64_MAX, 0, 0, x[4], x[5]}, 6);
		compare("sign", sl_sign(t), (const int64_t[]){-1, 1, -1, 0, 1, 1}, 6);
		compare("round", sl_round(t), x, 6);
		compare("logical_not", sl_logical_not(t), (const int64_t[]){0, 0, 0, 1, 0, 0}, 6);
		compare("isfinite", sl_isfinite(t), (const int64_t[]){1, 1, 1, 1, 1, 1}, 6);
		compare("isnan", sl_isnan(t), (const int64_t[]){0, 0, 0, 0, 0, 0}, 6);
	}
}

/* Comparisons as bools, and what takes them. */
static void test_bools(void)
{
	const float x[] = {-1, 0, 2, NAN};
	const bool a[] = {false, false, true, true}, b[] = {false, true, false, true};
	bool got[4];
	SL_SCOPE {
		sl_tensor *t = sl_from(x, SL_SHAPE(4)), *p = sl_from(a, SL_SHAPE(4), .dtype = SL_BOOL),
		          *q = sl_from(b, SL_SHAPE(4), .dtype = SL_BOOL);
		sl_tensor *made[] = {sl_gt_scalar(t, -0.5, .dtype = SL_BOOL),
		                     sl_eq(t, t, .dtype = SL_BOOL),
		                     sl_eq(p, q),
		                     sl_ne(p, q),
		                     sl_logical_and(p, q),
		                     sl_logical_or(p, q),
		                     sl_logical_xor(p, q),
		                     sl_lt(p, q)};
		static const bool want[][4] = {{0, 1, 1, 0}, {1, 1, 1, 0}, {1, 0, 0, 1}, {0, 1, 1, 0},
		                               {0, 0, 0, 1}, {0, 1, 1, 1}, {0, 1, 1, 0}, {0, 1, 0, 0}};
		for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
			if (!CHECK_SAYING(made[i] && sl_tensor_dtype(made[i]) == SL_BOOL, "%zu: %s", i,
			                  sl_error_message()))
				continue;
			CHECK_OK(sl_read(made[i], got, sizeof got));
			CHECK_SAYING(!memcmp(got, want[i], sizeof got), "%zu: %d %d %d %d", i, got[0], got[1], got[2],
			             got[3]);
		}
		CHECK(sl_item(sl_any(p)) == 1 && sl_item(sl_all(p)) == 0);
		CHECK(sl_tensor_dtype(sl_any(p)) == SL_BOOL && sl_tensor_dtype(sl_where(p, p, q)) == SL_BOOL);
		CHECK(sl_item(sl_all(sl_eq(sl_where(p, q, p), sl_logical_and(p, q)))) == 1);
		CHECK(sl_tensor_dtype(sl_isnan(t, .dtype = SL_BOOL)) == SL_BOOL);
		CHECK(sl_item(sl_any(sl_isnan(t, .dtype = SL_BOOL))) == 1);
		CHECK(sl_tensor_dtype(sl_lt(t, t)) == SL_FLOAT32); /* nobody asked */
		CHECK(sl_item(sl_sum(sl_where(sl_gt_scalar(t, 0, .dtype = SL_BOOL), t, sl_zeros(SL_SHAPE(4))))) == 2);
	}
}

/* What int32 does, int64 does. */
static void test_indices(void)
{
	const int64_t index[] = {2, 0, 1, 2};
	const int64_t wrong[] = {INT64_C(1) << 32};
	float one[12], other[12];
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(3, 2), 0, 1), *i = sl_from(index, SL_SHAPE(2, 2), .dtype = SL_INT64);
		sl_tensor *j = sl_cast(i, SL_INT32);
		sl_tensor *pairs[][2] = {{sl_gather(x, i), sl_gather(x, j)},
		                         {sl_one_hot(i, 3), sl_one_hot(j, 3)},
		                         {sl_take_along(x, i, 0), sl_take_along(x, j, 0)},
		                         {NULL, NULL}};
		pairs[3][0] = sl_scatter_add(x, sl_slice(i, 0, 0, 1, 1), sl_ones(SL_SHAPE(1, 2)), 0);
		pairs[3][1] = sl_scatter_add(x, sl_slice(j, 0, 0, 1, 1), sl_ones(SL_SHAPE(1, 2)), 0);
		for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
			if (!CHECK_SAYING(pairs[k][0] && pairs[k][1], "%zu: %s", k, sl_error_message())) continue;
			size_t bytes = sl_tensor_bytes(pairs[k][0]);
			CHECK_OK(sl_read(pairs[k][0], one, bytes));
			CHECK_OK(sl_read(pairs[k][1], other, bytes));
			CHECK(!memcmp(one, other, bytes));
		}
		const int64_t label[] = {1, 0, 1};
		sl_tensor *l = sl_from(label, SL_SHAPE(3), .dtype = SL_INT64), *m = sl_cast(l, SL_INT32);
		CHECK(sl_item(sl_sum(sl_softmax_cross_entropy(x, l))) ==
		      sl_item(sl_sum(sl_softmax_cross_entropy(x, m))));
		CHECK(sl_item(sl_sum(sl_topk_hits(x, l, 1))) == sl_item(sl_sum(sl_topk_hits(x, m, 1))));
		sl_gather(x, sl_from(wrong, SL_SHAPE(1), .dtype = SL_INT64));
		CHECK_STATUS(sl_wait_all(), SL_EINVAL, "is outside the 3 rows");
		sl_error_clear();
	}
}

/* What takes no int64 says what it takes. */
static void test_refused(void)
{
	SL_SCOPE {
		sl_tensor *i = sl_ones(SL_SHAPE(2, 2), .dtype = SL_INT64), *b = sl_ones(SL_SHAPE(2), .dtype = SL_BOOL);
		CHECK(!sl_exp(i));
		CHECK_STATUS(sl_error(), SL_EDTYPE, "exp(x int64 (2, 2))", "takes float32 or float64");
		sl_error_clear();
		CHECK(!sl_add(b, b));
		CHECK_STATUS(sl_error(), SL_EDTYPE, "int32, uint8", "not bool");
		sl_error_clear();
		CHECK(!sl_add_scalar(i, 0.5));
		CHECK_STATUS(sl_error(), SL_EDTYPE, "0.5 is not a value of int64");
		sl_error_clear();
	}
}

/* More elements than one thread computes, along and across rows. */
static void check_large(const char *name, sl_tensor *got, int64_t (*of)(int64_t a, int64_t b), const int64_t *a,
                        const int64_t *b)
{
	enum { ROWS = 301, COLUMNS = 701 };
	static int64_t values[ROWS * COLUMNS];
	int wrong = 0;
	if (!CHECK_SAYING(got != NULL && sl_tensor_size(got) == ROWS * COLUMNS, "%s: %s", name, sl_error_message()))
		return sl_error_clear();
	CHECK_OK(sl_read(got, values, sizeof values));
	for (int i = 0; i < ROWS * COLUMNS; i++)
		wrong += values[i] != of(a[i / COLUMNS % N], b ? b[i % COLUMNS % N] : -3);
	CHECK_SAYING(!wrong, "%s: %d are wrong", name, wrong);
}

static int64_t below(int64_t a, int64_t b)
{
	return a < b;
}

static int64_t negative(int64_t a, int64_t b)
{
	(void)b;
	return saturated(-(wide)a);
}

static void test_large(void)
{
	enum { ROWS = 301, COLUMNS = 701 };
	static int64_t x[N], y[N], column[ROWS], row[COLUMNS];
	fill(x, 7);
	fill(y, 8);
	for (int i = 0; i < ROWS; i++) column[i] = x[i % N];
	for (int i = 0; i < COLUMNS; i++) row[i] = y[i % N];
	SL_SCOPE {
		sl_tensor *a = sl_from(column, SL_SHAPE(ROWS, 1), .dtype = SL_INT64),
		          *b = sl_from(row, SL_SHAPE(COLUMNS), .dtype = SL_INT64);
		sl_tensor *all = sl_broadcast_to(a, SL_SHAPE(ROWS, COLUMNS));
		check_large("add", sl_add(a, b), plus, x, y);
		check_large("sub", sl_sub(all, b), minus, x, y);
		check_large("mul", sl_mul(a, b), times, x, y);
		check_large("div", sl_div(a, b), over, x, y);
		check_large("lt", sl_lt(a, b), below, x, y);
		check_large("add_scalar", sl_add_scalar(all, -3), plus, x, NULL);
		check_large("div_scalar", sl_div_scalar(all, -3), over, x, NULL);
		check_large("lt_scalar", sl_lt_scalar(all, -3), below, x, NULL);
		check_large("neg", sl_neg(all), negative, x, NULL);
	}
}

static const struct slp_test tests[] = {{"of two", test_two},
                                        {"of many", test_large},
                                        {"with a number", test_number},
                                        {"reductions", test_reductions},
                                        {"overflow", test_overflow},
                                        {"order", test_order},
                                        {"of one", test_one},
                                        {"bools", test_bools},
                                        {"indices", test_indices},
                                        {"refused", test_refused},
                                        {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "int64", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}});
}
