/* Random numbers: known answers, distributions, dependence on the seed alone, dropout. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "philox.h"

enum { N = 200001 };

/* ---- bits -------------------------------------------------------------------------------------------------------- */

/* The known answers that come with the article's library (Random123 1.14, kat_vectors). */
static void test_known_answers(void)
{
	static const struct {
		uint64_t seed, stream, index;
		uint32_t words[4];
	} known[] = {
	        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
	        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
	        {0x299f31d0a4093822,
	         0x0370734413198a2e,
	         0x85a308d3243f6a88,
	         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		uint32_t words[4];
		slp_philox(known[i].seed, known[i].stream, known[i].index, words);
		CHECK_SAYING(!memcmp(words, known[i].words, sizeof words), "vector %zu: %08x %08x %08x %08x", i,
		             words[0], words[1], words[2], words[3]);
	}
}

static void test_unit(void)
{
	CHECK(slp_unit_float(0) == 0 && slp_unit_float(255) == 0);
	CHECK(slp_unit_float(UINT32_C(1) << 31) == 0.5f);
	CHECK(slp_unit_float(UINT32_MAX) < 1);
}

/* Element e is word e % 4 of block e / 4, whatever computed it. */
static void test_order(void)
{
	static float x[N];
	sl_seed(42);
	SL_SCOPE
		CHECK_OK(sl_read(sl_uniform(SL_SHAPE(N), 0, 1), x, sizeof x));
	int wrong = 0;
	for (int e = 0; e < N; e++) {
		uint32_t words[4];
		slp_philox(42, 0, (uint64_t)e / 4, words);
		wrong += x[e] != slp_unit_float(words[e % 4]);
	}
	CHECK(wrong == 0);
}

static void draw(sl_tensor *t, float *x)
{
	CHECK_OK(sl_read(t, x, N * sizeof *x));
}

static void test_same_seed(void)
{
	static float first[2][N], again[2][N];
	SL_SCOPE {
		sl_seed(7);
		draw(sl_normal(SL_SHAPE(N), 0, 1), first[0]);
		draw(sl_normal(SL_SHAPE(3, N / 3), 0, 1), first[1]);
		sl_seed(7);
		draw(sl_normal(SL_SHAPE(N), 0, 1), again[0]);
		draw(sl_normal(SL_SHAPE(3, N / 3), 0, 1), again[1]);
	}
	CHECK(!memcmp(first, again, sizeof first));
	CHECK(memcmp(first[0], first[1], sizeof *first)); /* each call has numbers of its own */
	sl_seed(8);
	SL_SCOPE
		draw(sl_normal(SL_SHAPE(N), 0, 1), again[0]);
	CHECK(memcmp(first[0], again[0], sizeof *first));
}

/* ---- distributions ----------------------------------------------------------------------------------------------- */

static double moment(const float *x, double about, int power)
{
	double sum = 0;
	for (int i = 0; i < N; i++) sum += pow(x[i] - about, power);
	return sum / N;
}

static int ascending(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;
	return (x > y) - (x < y);
}

/* The statistic of Kolmogorov and Smirnov: beyond 1.95 in one of 1,000 cases.  Sorts x. */
static double deviation(float *x, double (*probability)(double))
{
	double d = 0;
	qsort(x, N, sizeof *x, ascending);
	for (int i = 0; i < N; i++) {
		double p = probability(x[i]);
		d = fmax(d, fmax(p - (double)i / N, (i + 1.0) / N - p));
	}
	return d * sqrt(N);
}

static double uniform_below(double x)
{
	return (x + 2) / 5;
}

static double normal_below(double x)
{
	return 0.5 * erfc((1 - x) / 3 * M_SQRT1_2);
}

static double mean_product(const float *x, int distance)
{
	double sum = 0;
	for (int i = 0; i + distance < N; i++) sum += (double)x[i] * x[i + distance];
	return sum / (N - distance);
}

/* Bounds are four standard deviations of what is bounded. */
static void test_uniform(void)
{
	static float x[N];
	sl_seed(1);
	SL_SCOPE
		draw(sl_uniform(SL_SHAPE(N), -2, 3), x);
	int outside = 0;
	for (int i = 0; i < N; i++) outside += !(x[i] >= -2 && x[i] < 3);
	CHECK(outside == 0);
	CHECK(fabs(moment(x, 0, 1) - 0.5) < 4 * sqrt(25 / 12.0 / N));
	CHECK(fabs(moment(x, 0.5, 2) - 25 / 12.0) < 4 * sqrt(3.48 / N));
	CHECK(deviation(x, uniform_below) < 1.95);
}

static void test_normal(void)
{
	static float x[N];
	sl_seed(2);
	SL_SCOPE
		draw(sl_normal(SL_SHAPE(N), 1, 3), x);
	CHECK(fabs(moment(x, 0, 1) - 1) < 4 * 3 / sqrt(N));
	CHECK(fabs(moment(x, 1, 2) - 9) < 4 * 9 * sqrt(2.0 / N));
	CHECK(fabs(moment(x, 1, 3)) < 4 * 27 * sqrt(15.0 / N));
	CHECK(fabs(moment(x, 1, 4) - 243) < 4 * 81 * sqrt(96.0 / N));
	CHECK(deviation(x, normal_below) < 1.95);
}

/* Neighbours: both of a pair of Box and Muller's, and of different pairs, blocks and vectors. */
static void test_independence(void)
{
	static const int distance[] = {1, 2, 3, 4, 64, 128};
	static float x[N];
	sl_seed(3);
	SL_SCOPE
		draw(sl_normal(SL_SHAPE(N), 0, 1), x);
	for (size_t i = 0; i < sizeof distance / sizeof *distance; i++)
		CHECK_SAYING(fabs(mean_product(x, distance[i])) < 4 / sqrt(N), "neighbours %d apart", distance[i]);
}

static void test_float64(void)
{
	double x[5];
	float y[5];
	SL_SCOPE {
		sl_seed(4);
		CHECK_OK(sl_read(sl_normal(SL_SHAPE(5), 0, 1, .dtype = SL_FLOAT64), x, sizeof x));
		sl_seed(4);
		CHECK_OK(sl_read(sl_normal(SL_SHAPE(5), 0, 1), y, sizeof y));
	}
	for (int i = 0; i < 5; i++) CHECK(fabs(x[i] - y[i]) < 1e-5);
}

static void test_rejected(void)
{
	CHECK_NULL(sl_uniform(SL_SHAPE(3), 2, 1), SL_EINVAL, "uniform", "low 2 is above high 1");
	CHECK_NULL(sl_uniform(SL_SHAPE(3), 0, NAN), SL_EINVAL, "finite");
	CHECK_NULL(sl_uniform(SL_SHAPE(3), 0, 9, .dtype = SL_INT32), SL_EDTYPE, "float32 or float64");
	CHECK_NULL(sl_normal(SL_SHAPE(3), 0, -1), SL_EINVAL, "normal", "negative");
	CHECK_NULL(sl_normal(SL_SHAPE(-3), 0, 1), SL_ESHAPE, "normal");
}

/* ---- dropout ----------------------------------------------------------------------------------------------------- */

static void test_dropout_rate(void)
{
	static const double rates[] = {0.1, 0.5, 0.9};
	static float y[N];
	sl_seed(5);
	for (int r = 0; r < 3; r++) {
		double p = rates[r], scale = 1 / (1 - p), kept = 0, wrong = 0;
		SL_SCOPE
			SL_TRAINING
				draw(sl_dropout(sl_ones(SL_SHAPE(N)), p), y);
		for (int i = 0; i < N; i++) {
			kept += y[i] != 0;
			wrong += y[i] != 0 && fabs(y[i] - scale) > 1e-5 * scale;
		}
		CHECK(wrong == 0);
		CHECK_SAYING(fabs(kept / N - (1 - p)) < 4 * sqrt(p * (1 - p) / N), "%g of %d kept", kept, N);
	}
}

/* The gradient passes where the value did. */
static void test_dropout_gradient(void)
{
	static float y[N], g[N];
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(N)), *dropped = NULL;
		CHECK_OK(sl_attach_grad(x));
		SL_RECORD
			dropped = sl_dropout(x, 0.3);
		CHECK_OK(sl_backward(dropped));
		draw(dropped, y);
		draw(sl_grad(x), g);
	}
	CHECK(!memcmp(y, g, sizeof y));
}

static void test_dropout_off(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_arange(0, 4, 1), *y = NULL;
		CHECK_VALUES(sl_dropout(x, 0.5), 0, 1, 2, 3);
		SL_TRAINING
			y = sl_dropout(x, 0);
		CHECK_VALUES(y, 0, 1, 2, 3);
		CHECK_NULL(sl_dropout(x, 1), SL_EINVAL, "probability 1 is not in [0, 1)");
		CHECK_NULL(sl_dropout(x, -0.1), SL_EINVAL, "dropout");
		SL_TRAINING
			CHECK_NULL(sl_dropout(sl_cast(x, SL_INT32), 0.5), SL_EDTYPE, "dropout");
		SL_TRAINING
			CHECK_NULL(sl_dropout(NULL, 0.5), SL_EINVAL, "dropout");
		CHECK_NULL(sl_dropout(NULL, 0.5), SL_EINVAL, "dropout");
	}
}

/* ---- shift_flip -------------------------------------------------------------------------------------------------- */

enum { IMAGES = 400, SIDE = 5, PAD = 2, PLACES = 2 * PAD + 1 };

/* The pixel of a numbered image in its frame, mirrored or not. */
static float framed(int image, int row, int column, int mirrored)
{
	if (mirrored) column = SIDE - 1 - column;
	bool inside = row >= 0 && row < SIDE && column >= 0 && column < SIDE;
	return inside ? (float)((image * SIDE + row) * SIDE + column + 1) : 0;
}

static bool is_cut(const float *y, int image, int place)
{
	int top = place / PLACES % PLACES - PAD, left = place % PLACES - PAD, mirrored = place / PLACES / PLACES;
	for (int i = 0; i < SIDE * SIDE; i++) {
		int column = i % SIDE + (mirrored ? -left : left);
		if (y[i] != framed(image, i / SIDE + top, column, mirrored)) return false;
	}
	return true;
}

/* Each image is a cut out of itself in a frame; over many images all places occur, about as often. */
static void test_shift_flip(void)
{
	static float y[IMAGES * SIDE * SIDE], again[IMAGES * SIDE * SIDE];
	int seen[2 * PLACES * PLACES] = {0}, mirrored = 0, places = 0;
	for (int turn = 0; turn < 2; turn++) {
		sl_seed(11);
		SL_SCOPE {
			sl_tensor *x =
			        sl_reshape(sl_arange(1, IMAGES * SIDE * SIDE + 1, 1), SL_SHAPE(IMAGES, 1, SIDE, SIDE));
			CHECK_OK(sl_read(sl_shift_flip(x, PAD, 0.5), turn ? again : y, sizeof y));
		}
	}
	CHECK(!memcmp(y, again, sizeof y));
	for (int i = 0; i < IMAGES; i++) {
		int found = 0;
		for (int p = 0; p < 2 * PLACES * PLACES; p++) {
			if (!is_cut(y + i * SIDE * SIDE, i, p)) continue;
			found++;
			seen[p]++;
			mirrored += p >= PLACES * PLACES;
		}
		CHECK_SAYING(found == 1, "image %d is %d cuts", i, found);
	}
	for (int p = 0; p < 2 * PLACES * PLACES; p++) places += seen[p] > 0;
	CHECK_SAYING(places > 45, "%d of 50 places", places); /* 50 e^-8 = 0.02 are expected to be missing */
	CHECK_SAYING(mirrored > 150 && mirrored < 250, "%d of %d mirrored", mirrored, IMAGES);
}

static void test_shift_flip_still(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_reshape(sl_arange(0, 4, 1), SL_SHAPE(1, 1, 2, 2));
		CHECK_VALUES(sl_shift_flip(x, 0, 0), 0, 1, 2, 3);
		CHECK_VALUES(sl_shift_flip(x, 0, 1), 1, 0, 3, 2);
		CHECK_NULL(sl_shift_flip(x, -1, 0), SL_EINVAL, "pad is -1");
		CHECK_NULL(sl_shift_flip(x, 0, 2), SL_EINVAL, "probability 2");
		CHECK_NULL(sl_shift_flip(sl_arange(0, 4, 1), 0, 0), SL_ESHAPE, "4 needed");
		CHECK_NULL(sl_shift_flip(NULL, 0, 0), SL_EINVAL, "shift_flip");
	}
}

static const struct slp_test shift_tests[] = {
        {"cuts", test_shift_flip},
        {"still", test_shift_flip_still},
        {0},
};
static const struct slp_test bit_tests[] = {
        {"known answers", test_known_answers},
        {"unit interval", test_unit},
        {"order", test_order},
        {"same seed", test_same_seed},
        {0},
};
static const struct slp_test distribution_tests[] = {
        {"uniform", test_uniform}, {"normal", test_normal},     {"independence", test_independence},
        {"float64", test_float64}, {"rejected", test_rejected}, {0},
};
static const struct slp_test dropout_tests[] = {
        {"rate", test_dropout_rate},
        {"gradient", test_dropout_gradient},
        {"off", test_dropout_off},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "bits", .tests = bit_tests, .start = slp_start_engine, .stop = slp_stop_engine},
	                {.name = "distributions",
	                 .tests = distribution_tests,
	                 .start = slp_start_engine,
	                 .stop = slp_stop_engine},
	                {.name = "images", .tests = shift_tests, .start = slp_start_engine, .stop = slp_stop_engine},
	                {.name = "dropout", .tests = dropout_tests, .start = slp_start_engine, .stop = slp_stop_engine},
	                {0},
	        });
}
