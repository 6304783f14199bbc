/* Sums over processes in the fixed tree, element by element the bits of a plain loop; checks for numbers that are not
 * finite; both by one thread and by several. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "dist/adders.h"
#include "dist/transport.h"

enum { MOST = 17, COUNT = 70001 };

static const enum sl_dtype types[] = {SL_FLOAT32, SL_FLOAT64, SL_BFLOAT16, SL_FLOAT16, SL_INT32, SL_INT64, SL_UINT8};

/* ---- the reference: half types by comparing the two neighbours --------------------------------------------------- */

static double value_of_half(uint16_t bits, int exponent_bits)
{
	int mantissa_bits = 15 - exponent_bits, e = (bits & 0x7fff) >> mantissa_bits,
	    m = bits & ((1 << mantissa_bits) - 1);
	int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
	double x = e ? ldexp(m + (1 << mantissa_bits), e - bias - mantissa_bits) : ldexp(m, 1 - bias - mantissa_bits);
	if (e == top) x = m ? (double)NAN : ldexp(1, top - bias); /* where the next number would be */
	return bits >> 15 ? -x : x;
}

static uint16_t nearest_half(double x, int exponent_bits)
{
	uint16_t low = 0, high = 0x7fff & ~((1 << (15 - exponent_bits)) - 1), sign = signbit(x) ? 0x8000 : 0;
	x = fabs(x);
	while (high - low > 1) {
		uint16_t middle = (uint16_t)((low + high) / 2);
		if (value_of_half(middle, exponent_bits) <= x) low = middle;
		else high = middle;
	}
	double below = x - value_of_half(low, exponent_bits), above = value_of_half(high, exponent_bits) - x;
	return sign | (below < above || (below == above && low % 2 == 0) ? low : high);
}

static uint16_t add_halves(uint16_t a, uint16_t b, int exponent_bits)
{
	return nearest_half((double)((float)value_of_half(a, exponent_bits) + (float)value_of_half(b, exponent_bits)),
	                    exponent_bits);
}

/* One element of *a becomes the sum of both. */
static void add_one(void *a, const void *b, enum sl_dtype dtype)
{
	uint16_t h;
	int64_t wide;
	switch (dtype) {
	case SL_FLOAT32: *(float *)a += *(const float *)b; break;
	case SL_FLOAT64: *(double *)a += *(const double *)b; break;
	case SL_BFLOAT16:
	case SL_FLOAT16:
		h = add_halves(*(uint16_t *)a, *(const uint16_t *)b, dtype == SL_FLOAT16 ? 5 : 8);
		memcpy(a, &h, sizeof h);
		break;
	case SL_INT32:
		wide = (int64_t) * (int32_t *)a + *(const int32_t *)b;
		*(int32_t *)a = (int32_t)(wide > INT32_MAX ? INT32_MAX : wide < INT32_MIN ? INT32_MIN : wide);
		break;
	case SL_INT64: *(int64_t *)a += *(const int64_t *)b; break;
	default:
		wide = *(uint8_t *)a + *(const uint8_t *)b;
		*(uint8_t *)a = (uint8_t)(wide > UINT8_MAX ? UINT8_MAX : wide);
	}
}

/* The tree of one element after the other. */
static void add_plainly(char *const *list, int n, size_t count, enum sl_dtype dtype, char *to)
{
	size_t size = sl_dtype_size(dtype);
	char v[MOST][8];
	for (size_t i = 0; i < count; i++) {
		for (int k = 0; k < n; k++) memcpy(v[k], list[k] + i * size, size);
		for (int stride = 1; stride < n; stride *= 2)
			for (int k = 0; k + stride < n; k += 2 * stride) add_one(v[k], v[k + stride], dtype);
		memcpy(to + i * size, v[0], size);
	}
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static uint64_t state;

static uint64_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 11;
}

/* Any bits for halves, but one of the exponent's; floats of many magnitudes; numbers whose sums may saturate. */
static void fill(char *p, size_t count, enum sl_dtype dtype)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t bits = draw();
		double x = ldexp((double)(int64_t)(bits % 2000001) - 1e6, (int)(bits / 2000001 % 40) - 40);
		uint16_t h = (uint16_t)(bits & ~0x2000u); /* sums stay finite */
		if (dtype == SL_FLOAT32) ((float *)(void *)p)[i] = (float)x;
		else if (dtype == SL_FLOAT64) ((double *)(void *)p)[i] = x;
		else if (dtype == SL_INT64) ((int64_t *)(void *)p)[i] = (int64_t)(bits % 1000000) - 500000;
		else if (sl_dtype_size(dtype) == 2) ((uint16_t *)(void *)p)[i] = h;
		else memcpy(p + i * sl_dtype_size(dtype), &bits, sl_dtype_size(dtype));
	}
}

struct operands {
	char *list[MOST], *sum;
};

static bool make(struct operands *o, size_t bytes)
{
	bool ok = (o->sum = malloc(bytes + 1));
	for (int i = 0; i < MOST; i++) ok &= (o->list[i] = malloc(bytes + 1)) != NULL;
	return ok;
}

static void drop(struct operands *o)
{
	for (int i = 0; i < MOST; i++) free(o->list[i]);
	free(o->sum);
}

/* The sum of n, in the place of operand `at`. */
static bool right(struct operands *o, int n, int at, size_t count, enum sl_dtype dtype)
{
	for (int i = 0; i < n; i++) fill(o->list[i], count, dtype);
	add_plainly(o->list, n, count, dtype, o->sum);
	slp_add_tree(o->list[at], (const void *const *)o->list, n, count, dtype);
	return !memcmp(o->list[at], o->sum, count * sl_dtype_size(dtype));
}

static void test_sums(void)
{
	static const size_t counts[] = {0, 1, 31, 4096, 5003};
	struct operands o;
	if (!CHECK(make(&o, COUNT * sizeof(double)))) return;
	for (size_t t = 0; t < sizeof types / sizeof *types; t++)
		for (int n = 1; n <= MOST; n++)
			for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
				if (!CHECK(right(&o, n, (n - 1) * (int)c / 4, counts[c], types[t])))
					printf("%d of %zu %s\n", n, counts[c], sl_dtype_name(types[t]));
	for (int n = 2; n <= MOST; n += 5) CHECK(right(&o, n, n / 2, COUNT, SL_FLOAT32));
	drop(&o);
}

static void test_finite(void)
{
	struct operands o;
	if (!CHECK(make(&o, COUNT * sizeof(double)))) return;
	for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
		enum sl_dtype dtype = types[t];
		fill(o.sum, COUNT, dtype);
		CHECK(slp_all_finite(o.sum, COUNT, dtype));
		CHECK(slp_all_finite(o.sum, 0, dtype));
		if (dtype == SL_INT32 || dtype == SL_INT64 || dtype == SL_UINT8) continue;
		for (int kind = 0; kind < 3; kind++)
			for (size_t at = 0; at < COUNT; at = at < 40 ? at + 1 : at * 3 + (at < COUNT / 3 ? 0 : COUNT)) {
				char saved[8], *p = o.sum + at * sl_dtype_size(dtype);
				double x = kind == 0 ? (double)NAN : kind == 1 ? (double)INFINITY : (double)-INFINITY;
				float f = (float)x;
				uint16_t half = (uint16_t)((dtype == SL_FLOAT16 ? 0x7c00 : 0x7f80) | (kind == 0) |
				                           (kind == 2) << 15);
				memcpy(saved, p, sizeof saved);
				memcpy(p,
				       dtype == SL_FLOAT64   ? (void *)&x
				       : dtype == SL_FLOAT32 ? (void *)&f
				                             : (void *)&half,
				       sl_dtype_size(dtype));
				CHECK(!slp_all_finite(o.sum, COUNT, dtype));
				memcpy(p, saved, sl_dtype_size(dtype));
			}
	}
	drop(&o);
}

static int by_one(void)
{
	slp_adders_start(1);
	return 0;
}

static int by_three(void)
{
	slp_adders_start(3);
	return slp_adders_here() != 3;
}

static int end(void)
{
	slp_adders_end();
	return 0;
}

static const struct slp_test tests[] = {{"sums", test_sums}, {"finite", test_finite}, {0}};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {.name = "one thread", .tests = tests, .start = by_one, .stop = end},
	        {.name = "three threads", .tests = tests, .start = by_three, .stop = end},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
