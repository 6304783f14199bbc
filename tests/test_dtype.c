/* Data types: the conversions between them against their definition, what is rounded, refused and promoted. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "harness.h"

/* ---- the half types, by their definition ------------------------------------------------------------------------ */

static const struct format {
	enum sl_dtype dtype;
	int fraction, bias; /* bits of it; of the exponent */
} formats[] = {{SL_BFLOAT16, 7, 127}, {SL_FLOAT16, 10, 15}};

enum { HALVES = 0x8000 }; /* that are not negative */

/* The number that the bits of a half mean; those past the largest finite one, as if exponents went on. */
static double value_of(const struct format *f, int bits)
{
	int exponent = bits >> f->fraction, fraction = bits & ((1 << f->fraction) - 1);
	if (exponent == 0) return ldexp(fraction, 1 - f->bias - f->fraction);
	return ldexp(fraction + (1 << f->fraction), exponent - f->bias - f->fraction);
}

static int infinity_of(const struct format *f)
{
	return (2 * f->bias + 1) << f->fraction;
}

/* All that are not negative, read as numbers. */
static void test_loading(void)
{
	static uint16_t bits[HALVES];
	static double read[HALVES];
	for (int i = 0; i < HALVES; i++) bits[i] = (uint16_t)i;
	for (int k = 0; k < 2; k++)
		SL_SCOPE {
			const struct format *f = &formats[k];
			int wrong = 0, infinity = infinity_of(f);
			sl_tensor *t = sl_from(bits, SL_SHAPE(HALVES), .dtype = f->dtype);
			CHECK_OK(sl_read(sl_cast(t, SL_FLOAT64), read, sizeof read));
			for (int i = 0; i < HALVES; i++)
				wrong += i < infinity    ? read[i] != value_of(f, i)
				         : i == infinity ? !isinf(read[i])
				                         : !isnan(read[i]);
			CHECK_SAYING(wrong == 0, "%d of %s are read wrongly", wrong, sl_dtype_name(f->dtype));
			CHECK(sl_item(sl_cast(sl_rows(t, 1, 2), SL_FLOAT32)) == value_of(f, 1));
		}
}

/* Numbers from a type become halves: how many are not those expected. */
static int64_t count_wrong(const struct format *f, enum sl_dtype from, const void *numbers, const uint16_t *expected,
                           int n)
{
	static uint16_t got[6 * HALVES];
	int64_t wrong = 0;
	SL_SCOPE {
		sl_tensor *t = sl_from(numbers, SL_SHAPE(n), .dtype = from);
		CHECK_OK(sl_read(sl_cast(t, f->dtype), got, (size_t)n * 2));
	}
	for (int i = 0; i < n; i++) wrong += got[i] != expected[i];
	return wrong;
}

/* Each finite half, half way to the next one, which is a tie, and as near to that as a double is, of both signs. */
static void test_rounding(void)
{
	static double wide[6 * HALVES];
	static float narrow[6 * HALVES];
	static uint16_t expected[6 * HALVES], same[6 * HALVES];
	for (int k = 0; k < 2; k++) {
		const struct format *f = &formats[k];
		int n = 0, m = 0;
		for (int i = 0; i < infinity_of(f); i++) {
			double tie = (value_of(f, i) + value_of(f, i + 1)) / 2;
			uint16_t even = (uint16_t)(i + (i & 1));
			double numbers[] = {value_of(f, i), nextafter(tie, 0), tie, nextafter(tie, INFINITY)};
			uint16_t halves[] = {(uint16_t)i, (uint16_t)i, even, (uint16_t)(i + 1)};
			for (int j = 0; j < 4; j++) {
				int sign = (i + j) & 1;
				wide[n] = sign ? -numbers[j] : numbers[j];
				expected[n++] = (uint16_t)(halves[j] | sign << 15);
				narrow[m] = (float)wide[n - 1];
				if ((double)narrow[m] == wide[n - 1]) same[m++] = expected[n - 1];
			}
		}
		CHECK_SAYING(!count_wrong(f, SL_FLOAT64, wide, expected, n), "doubles are rounded wrongly to %s",
		             sl_dtype_name(f->dtype));
		CHECK(m > infinity_of(f));
		CHECK_SAYING(!count_wrong(f, SL_FLOAT32, narrow, same, m), "floats are rounded wrongly to %s",
		             sl_dtype_name(f->dtype));
	}
}

static void test_special(void)
{
	const float x[] = {NAN, INFINITY, -INFINITY, 1e30f, -0.0f, 1e-45f};
	for (int k = 0; k < 2; k++)
		SL_SCOPE {
			sl_tensor *h = sl_cast(sl_from(x, SL_SHAPE(6)), formats[k].dtype);
			bool narrow = formats[k].dtype == SL_FLOAT16;
			CHECK_VALUES(sl_rows(h, 0, 3), NAN, INFINITY, -INFINITY);
			CHECK(isinf(sl_item(sl_rows(h, 3, 4))) == narrow);
			CHECK(signbit(sl_item(sl_rows(h, 4, 5))) && sl_item(sl_rows(h, 5, 6)) == 0);
		}
}

/* ---- integers and truth values ---------------------------------------------------------------------------------- */

static void test_integers(void)
{
	const double x[] = {-0.5, 2.9, NAN, 1e300, -1e300, -0.0};
	SL_SCOPE {
		sl_tensor *t = sl_from(x, SL_SHAPE(6), .dtype = SL_FLOAT64);
		int64_t big[6];
		CHECK_OK(sl_read(sl_cast(t, SL_INT64), big, sizeof big));
		CHECK(big[0] == 0 && big[1] == 2 && big[2] == 0 && big[3] == INT64_MAX && big[4] == INT64_MIN &&
		      big[5] == 0);
		CHECK_VALUES(sl_cast(t, SL_INT32), 0, 2, 0, INT32_MAX, INT32_MIN, 0);
		CHECK_VALUES(sl_cast(t, SL_UINT8), 0, 2, 0, 255, 0, 0);
		CHECK_VALUES(sl_cast(t, SL_BOOL), 1, 1, 1, 1, 1, 0);
		int64_t exact[] = {INT64_MAX, INT64_MIN + 1}, copy[2];
		sl_tensor *e = sl_clone(sl_from(exact, SL_SHAPE(2), .dtype = SL_INT64));
		CHECK_OK(sl_read(sl_concat(((sl_tensor *[]){sl_rows(e, 0, 1), sl_rows(e, 1, 2)}), 2, 0), copy,
		                 sizeof copy));
		CHECK(!memcmp(exact, copy, sizeof copy));
	}
}

/* Integers of 64 bits in each other's type, where doubles do not hold them; what does not fit saturates. */
static void test_unsigned(void)
{
	static const int64_t given[] = {INT64_MAX, INT64_MAX - 1, -1, INT64_MIN, 5};
	static const uint64_t wide[] = {UINT64_MAX, (uint64_t)INT64_MAX + 1, INT64_MAX - 2, 7, 0};
	static const uint64_t as_unsigned[] = {INT64_MAX, INT64_MAX - 1, 0, 0, 5};
	static const int64_t as_signed[] = {INT64_MAX, INT64_MAX, INT64_MAX - 2, 7, 0};
	uint64_t u[5];
	int64_t i[5];
	SL_SCOPE {
		sl_tensor *s = sl_from(given, SL_SHAPE(5), .dtype = SL_INT64);
		sl_tensor *t = sl_from(wide, SL_SHAPE(5), .dtype = SL_UINT64);
		CHECK_OK(sl_read(sl_cast(s, SL_UINT64), u, sizeof u));
		CHECK_OK(sl_read(sl_cast(t, SL_INT64), i, sizeof i));
		CHECK(!memcmp(u, as_unsigned, sizeof u) && !memcmp(i, as_signed, sizeof i));
		CHECK_VALUES(sl_cast(t, SL_INT8), 127, 127, 127, 7, 0);
		CHECK_VALUES(sl_add(sl_cast(s, SL_INT8), sl_cast(s, SL_INT8)), 127, 127, -2, -128, 10);
		CHECK_NULL(sl_add(t, t), SL_EDTYPE, "uint64");
		CHECK_VALUES(sl_eq(sl_cast(s, SL_UINT32), sl_cast(s, SL_INT8)), 0, 0, 0, 0, 1);
	}
}

/* ---- what is made, moved, promoted, refused --------------------------------------------------------------------- */

static void test_names(void)
{
	for (int d = SL_DTYPE_DEFAULT + 1; d < SL_DTYPE_COUNT; d++) {
		CHECK(sl_dtype_named(sl_dtype_name((enum sl_dtype)d)) == (enum sl_dtype)d &&
		      sl_dtype_size((enum sl_dtype)d) > 0);
	}
	CHECK(sl_dtype_named("float8") == SL_DTYPE_DEFAULT && sl_dtype_size(SL_DTYPE_DEFAULT) == 0);
	SL_SCOPE {
		CHECK(sl_tensor_dtype(sl_zeros(SL_SHAPE(2))) == SL_FLOAT32);
		CHECK(sl_tensor_dtype(sl_one_hot(sl_zeros(SL_SHAPE(2), .dtype = SL_INT32), 3)) == SL_FLOAT32);
	}
}

/* What only moves elements takes all types, and leaves their bits. */
static void test_moving(void)
{
	for (int d = SL_DTYPE_DEFAULT + 1; d < SL_DTYPE_COUNT; d++)
		SL_SCOPE {
			enum sl_dtype dtype = (enum sl_dtype)d;
			sl_tensor *x = sl_reshape(sl_cast(sl_arange(0, 6, 1), dtype), SL_SHAPE(2, 3));
			bool truth = dtype == SL_BOOL;
			CHECK_VALUES(sl_transpose(x), 0, truth ? 1 : 3, 1, truth ? 1 : 4, truth ? 1 : 2, truth ? 1 : 5);
			CHECK_VALUES(sl_gather(x, sl_ones(SL_SHAPE(1), .dtype = SL_INT32)), truth ? 1 : 3,
			             truth ? 1 : 4, truth ? 1 : 5);
			CHECK_VALUES(sl_full(SL_SHAPE(3), 1, .dtype = dtype), 1, 1, 1);
			CHECK_VALUES(sl_broadcast_to(sl_rows(x, 0, 1), SL_SHAPE(2, 3)), 0, 1, truth ? 1 : 2, 0, 1,
			             truth ? 1 : 2);
			CHECK(sl_tensor_dtype(sl_transpose(x)) == dtype);
		}
}

/* One product of many summands: float32 sums, rounded once. */
static void test_promoted(void)
{
	for (int k = 0; k < 2; k++)
		SL_SCOPE {
			enum sl_dtype half = formats[k].dtype;
			sl_tensor *a = sl_full(SL_SHAPE(1, 1000), 1, .dtype = half), *y = sl_dot(a, a, .tb = true);
			CHECK(sl_tensor_dtype(y) == half && sl_item(y) == 1000);
			sl_tensor *w = sl_full(SL_SHAPE(2), 0.5, .dtype = half);
			sl_attach_grad(w);
			SL_RECORD
				y = sl_sum(sl_square(w));
			CHECK_OK(sl_backward(y));
			CHECK(sl_tensor_dtype(sl_grad(w)) == half);
			CHECK_VALUES(sl_grad(w), 1, 1);
			CHECK_VALUES(sl_add_(w, w), 1, 1);
		}
}

static void test_refused(void)
{
	SL_SCOPE {
		sl_tensor *b = sl_ones(SL_SHAPE(2), .dtype = SL_BFLOAT16),
		          *h = sl_ones(SL_SHAPE(2), .dtype = SL_FLOAT16);
		CHECK_NULL(sl_add(b, h), SL_EDTYPE, "add", "bfloat16 and float16", "sl_cast", "test_dtype.c");
		CHECK_NULL(sl_concat(((sl_tensor *[]){h, b}), 2, 0), SL_EDTYPE, "concat", "float16 and bfloat16");
		sl_tensor *n = sl_ones(SL_SHAPE(2), .dtype = SL_BOOL);
		CHECK_NULL(sl_add(n, n), SL_EDTYPE, "add", "float32, float64, int32, uint8", "bool");
		CHECK_NULL(sl_exp(sl_ones(SL_SHAPE(2), .dtype = SL_BOOL)), SL_EDTYPE, "exp");
	}
}

static int start(void)
{
	return sl_init(NULL) != SL_OK;
}

static int stop(void)
{
	sl_shutdown();
	return 0;
}

static const struct slp_test tests[] = {{"halves as numbers", test_loading},
                                        {"rounded to halves", test_rounding},
                                        {"not finite, too large, too small", test_special},
                                        {"integers and truth", test_integers},
                                        {"unsigned of 64 bits", test_unsigned},
                                        {"names and defaults", test_names},
                                        {"moved", test_moving},
                                        {"promoted to float32", test_promoted},
                                        {"refused", test_refused},
                                        {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){{.name = "types", .tests = tests, .start = start, .stop = stop}, {0}});
}
