/* Functions made of operations, of half types: their sums, statistics and positions are computed in float32 and rounded
 * once. Compared with the same functions of the same numbers in float64, which tests/test_functions.c compares with
 * PyTorch's. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "check.h"
#include "dtype.h"

static const enum sl_dtype halves[] = {SL_BFLOAT16, SL_FLOAT16};
enum { HALVES = sizeof halves / sizeof *halves };

/* ---- values and gradients ---------------------------------------------------------------------------------------- */

/* Labels 0 to 9 in turn, one a row. */
static sl_tensor *labels_of(sl_tensor *x)
{
	int64_t n = sl_tensor_shape(x).dim[0];
	int32_t *v = malloc((size_t)n * sizeof *v);
	for (int64_t i = 0; i < n; i++) v[i] = (int32_t)(i % 10);
	sl_tensor *t = sl_from(v, SL_SHAPE(n), .dtype = SL_INT32);
	free(v);
	return t;
}

/* Numbers without a pattern, of the type of x, which all types hold exactly. */
static sl_tensor *beside(sl_tensor *x, sl_shape shape, double size, double middle, double speed)
{
	int64_t n = sl_shape_size(shape);
	double *v = malloc((size_t)n * sizeof *v);
	for (int64_t i = 0; i < n; i++) v[i] = middle + size * sin(speed * (double)i + 1.3);
	sl_tensor *t = sl_cast(sl_cast(sl_from(v, shape, .dtype = SL_FLOAT64), SL_BFLOAT16), sl_tensor_dtype(x));
	free(v);
	return t;
}
#define BESIDE(size, middle, ...) beside(x, SL_SHAPE(__VA_ARGS__), size, middle, 0.7)

/* X(name, size of the numbers, their middle, shape of x, the function of x). */
#define FUNCTIONS(X)                                                                                                   \
	X(rms_norm, 500, 0, (4, 60), sl_rms_norm(x, BESIDE(1, 0, 60)))                                                 \
	X(rms_norm_float32, 1, 0, (4, 60), sl_rms_norm(x, wider(BESIDE(1, 0, 60))))                                    \
	X(group_norm, 500, 0, (2, 4, 30), sl_group_norm(x, 2, BESIDE(1, 0, 4), BESIDE(1, 0, 4)))                       \
	X(group_norm_float32, 1, 0, (2, 4, 30), sl_group_norm(x, 2, wider(BESIDE(1, 0, 4)), BESIDE(1, 0, 4)))          \
	X(instance_norm, 500, 0, (2, 4, 30), sl_instance_norm(x, BESIDE(1, 0, 4), wider(BESIDE(1, 0, 4))))             \
	X(variance, 200, 3000, (3, 50), sl_variance(x, SL_AXES(1), .ddof = 1))                                         \
	X(std, 500, 0, (3, 50), sl_std(x, SL_AXES(1)))                                                                 \
	X(logsumexp, 0.5, 0, (2, 70000), sl_logsumexp(x, SL_AXES(1)))                                                  \
	X(cosine_similarity, 300, 0, (4, 64), sl_cosine_similarity(x, BESIDE(300, 0, 4, 64), 1))                       \
	X(cosine_embedding, 300, 0, (4, 64),                                                                           \
	  sl_cosine_embedding_loss(x, BESIDE(300, 100, 4, 64), BESIDE(2, 0, 4), 0.1))                                  \
	X(kl_div, 0.4, 0.5, (3, 7), sl_kl_div(BESIDE(1, -2, 3, 7), x))                                                 \
	X(cross_entropy_smooth, 20, 0, (9000, 10), sl_cross_entropy(x, labels_of(x), .label_smoothing = 0.1))          \
	X(cross_entropy_ignore, 20, 0, (9000, 10),                                                                     \
	  sl_cross_entropy(x, labels_of(x), .ignore = true, .ignore_index = 3))                                        \
	X(cross_entropy_weights, 20, 0, (9000, 10), sl_cross_entropy(x, labels_of(x), .weights = BESIDE(1, 2, 10)))    \
	X(resize, 1, 0, (1, 1, 301, 3), sl_resize2d(x, 400, 5))                                                        \
	X(resize_bilinear, 1, 0, (1, 1, 301, 3), sl_resize2d(x, 400, 5, .bilinear = true))

/* A parameter in float32 beside a half type. */
static sl_tensor *wider(sl_tensor *t)
{
	return slp_is_half(sl_tensor_dtype(t)) ? sl_cast(t, SL_FLOAT32) : t;
}

#define UNPACK(...) __VA_ARGS__
#define X(name, size, middle, shape, value)                                                                            \
	static sl_tensor *name##_of(sl_tensor *x)                                                                      \
	{                                                                                                              \
		return value;                                                                                          \
	}
FUNCTIONS(X)
#undef X

struct function {
	const char *name;
	double size, middle;
	sl_shape shape;
	sl_tensor *(*of)(sl_tensor *x);
};

static const struct function functions[] = {
/* clang-format off */
#define X(name, size, middle, dims, value)                                                                             \
	{#name, size, middle, {SL_COUNT_(int64_t, UNPACK dims), {UNPACK dims}}, name##_of},
        /* clang-format on */
        FUNCTIONS(X)
#undef X
                {0}};

/* The function of x, and the gradient of the sum of its results, each times a number. */
static void run(const struct function *f, sl_tensor *x, sl_tensor **y, sl_tensor **dx)
{
	sl_attach_grad(x);
	SL_RECORD
		*y = f->of(x);
	sl_tensor *heads = beside(x, sl_tensor_shape(*y), 1, 0, 2.3);
	CHECK_OK(sl_backward_heads(y, 1, .head_grads = &heads));
	*dx = sl_grad(x);
}

static double *numbers(sl_tensor *t)
{
	double *v = malloc(sizeof *v * (size_t)sl_tensor_size(t) + 1);
	CHECK_OK(sl_read(sl_cast(t, SL_FLOAT64), v, sizeof *v * (size_t)sl_tensor_size(t)));
	return v;
}

/* Relative to the element and to the RMS of all, half the last place and a rounding of the gradient before. */
static void compare(const struct function *f, const char *what, sl_tensor *half, sl_tensor *wide)
{
	int64_t n = sl_tensor_size(wide);
	double *got = numbers(half), *expected = numbers(wide), rms = 0, epsilon = 0x1p-10, least = 0x1p-24;
	if (sl_tensor_dtype(half) == SL_BFLOAT16) epsilon = 0x1p-7, least = 0;
	for (int64_t i = 0; i < n; i++) rms += expected[i] * expected[i] / (double)n;
	bool ok = sl_tensor_size(half) == n;
	for (int64_t i = 0; i < n && ok; i++) {
		ok = fabs(got[i] - expected[i]) <= 1.25 * epsilon * (fabs(expected[i]) + sqrt(rms)) + least;
		CHECK_SAYING(ok, "%s of %s, %s: element %lld is %g, in float64 %g", f->name,
		             sl_dtype_name(sl_tensor_dtype(half)), what, (long long)i, got[i], expected[i]);
	}
	free(got);
	free(expected);
}

static void check_function(const struct function *f, enum sl_dtype dtype)
{
	SL_SCOPE {
		sl_tensor *like = sl_zeros(SL_SCALAR, .dtype = dtype),
		          *x = beside(like, f->shape, f->size, f->middle, 1.37);
		sl_tensor *wide = sl_cast(x, SL_FLOAT64), *y, *dx, *wide_y, *wide_dx;
		run(f, x, &y, &dx);
		run(f, wide, &wide_y, &wide_dx);
		CHECK_SAYING(sl_tensor_dtype(y) == dtype, "%s of %s gives %s", f->name, sl_dtype_name(dtype),
		             sl_dtype_name(sl_tensor_dtype(y)));
		compare(f, "values", y, wide_y);
		compare(f, "gradient", dx, wide_dx);
	}
}

static void test_functions(void)
{
	for (const struct function *f = functions; f->name; f++)
		for (int h = 0; h < HALVES; h++) check_function(f, halves[h]);
}

/* ---- types that do not mix --------------------------------------------------------------------------------------- */

static void test_mixed(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 4), .dtype = SL_BFLOAT16),
		          *g = sl_ones(SL_SHAPE(4), .dtype = SL_FLOAT16), *w = sl_ones(SL_SHAPE(4)),
		          *i = sl_zeros(SL_SHAPE(2), .dtype = SL_INT32);
		CHECK_NULL(sl_rms_norm(x, g), SL_EDTYPE, "sl_rms_norm", "bfloat16", "float16");
		CHECK_NULL(sl_group_norm(x, 2, g, NULL), SL_EDTYPE, "sl_group_norm", "gamma", "bfloat16", "float16");
		CHECK_NULL(sl_instance_norm(x, w, g), SL_EDTYPE, "sl_instance_norm", "beta", "bfloat16", "float16");
		CHECK_NULL(sl_cross_entropy(x, i, .weights = w), SL_EDTYPE, "sl_cross_entropy", "bfloat16", "float32");
		CHECK_NULL(sl_cosine_embedding_loss(x, sl_cast(x, SL_FLOAT16), i, 0), SL_EDTYPE, "bfloat16", "float16");
		CHECK_NULL(sl_kl_div(x, sl_cast(x, SL_FLOAT32)), SL_EDTYPE, "sl_kl_div", "bfloat16", "float32");
	}
}

/* With autocast, norms and losses are float32, and images keep their type. */
static void test_autocast(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 4, 3, 3), .dtype = SL_BFLOAT16), *w = sl_ones(SL_SHAPE(1, 4, 3, 3));
		SL_AUTOCAST(SL_BFLOAT16)
		{
			CHECK(sl_tensor_dtype(sl_rms_norm(x, NULL)) == SL_FLOAT32);
			CHECK(sl_tensor_dtype(sl_group_norm(x, 2, NULL, NULL)) == SL_FLOAT32);
			CHECK(sl_tensor_dtype(sl_kl_div(x, w)) == SL_FLOAT32);
			CHECK(sl_tensor_dtype(sl_cosine_similarity(x, w, 1)) == SL_FLOAT32);
			CHECK(sl_tensor_dtype(sl_resize2d(x, 4, 5)) == SL_BFLOAT16);
			CHECK(sl_tensor_dtype(sl_resize2d(w, 4, 5, .bilinear = true)) == SL_FLOAT32);
			CHECK(sl_autocast_dtype() == SL_BFLOAT16);
		}
	}
}

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

/* The smallest and the largest element. */
static void check_range(sl_tensor *t, double low, double high)
{
	double *v = numbers(t), least = v[0], most = v[0];
	for (int64_t i = 0; i < sl_tensor_size(t); i++) least = fmin(least, v[i]), most = fmax(most, v[i]);
	CHECK_SAYING(least >= low && most < high, "%s: from %g to %g, not in [%g, %g)",
	             sl_dtype_name(sl_tensor_dtype(t)), least, most, low, high);
	free(v);
}

static void test_random(void)
{
	static const double ranges[][2] = {{0, 1}, {-3, 5}, {-5, -3}, {-2, -1}, {0.1, 0.3}, {0, 1e-6}, {100, 101}};
	for (int h = 0; h < HALVES; h++)
		SL_SCOPE {
			for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
				double low = ranges[r][0], high = ranges[r][1];
				sl_tensor *u = sl_uniform(SL_SHAPE(200000), low, high, .dtype = halves[h]);
				check_range(u, low - 0x1p-9 * fabs(low), high);
			}
			CHECK_ALL(sl_cast(sl_bernoulli(sl_ones(SL_SHAPE(200000), .dtype = halves[h])), SL_FLOAT32), 1);
			sl_tensor *p = sl_full(SL_SHAPE(3001), 0.001, .dtype = halves[h]);
			sl_tensor *classes = sl_multinomial(p, 3000), *odd = sl_slice(classes, 0, 0, 3000, 1);
			check_range(classes, 0, 3001);
			/* half types cannot tell most of them apart */
			odd = sl_sub(odd, sl_mul_scalar(sl_cast(sl_floor(sl_mul_scalar(sl_cast(odd, SL_FLOAT32), 0.5)),
			                                        SL_INT32),
			                                2));
			double share = sl_item(sl_mean(odd));
			CHECK_SAYING(share > 0.4 && share < 0.6, "%g of the classes are odd", share);
		}
}

static const struct slp_test tests[] = {{"functions", test_functions},
                                        {"mixed", test_mixed},
                                        {"autocast", test_autocast},
                                        {"random", test_random},
                                        {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "half", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}});
}
