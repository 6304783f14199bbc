/* Reductions: what the tables of cases cannot say about them: exactness of large sums, gradients where there are ties
 * or no slope, and counting with them. */
#include <math.h>
#include <stdlib.h>

#include "check.h"

/* Added one after the other in float32, these would give 1.67e7 and 1.09e6. */
static void test_large_sums(void)
{
	SL_SCOPE {
		sl_tensor *ones = sl_ones(SL_SHAPE(20000001)), *tenths = sl_full(SL_SHAPE(10000000), 0.1);
		CHECK(sl_item(sl_sum(ones)) == (float)20000001);
		CHECK(sl_item(sl_mean(ones)) == 1);
		CHECK(fabs(sl_item(sl_sum(tenths)) - 1e7 * 0.1f) <= 0.5);
		CHECK(fabs(sl_item(sl_norm(ones)) - sqrt(20000001.0)) <= 4e-4);
	}
}

/* The gradient of sum(f(x) * weight) for the reduction's two results. */
static sl_tensor *gradient(sl_tensor *(*reduce)(const char *, sl_tensor *, struct sl_reduce_opts), const double *x)
{
	const double weight[] = {6, -1};
	sl_tensor *t = sl_from(x, SL_SHAPE(2, 3), .dtype = SL_FLOAT64), *loss = NULL;
	CHECK_OK(sl_attach_grad(t));
	SL_RECORD {
		sl_tensor *y = reduce(SL_HERE, t, (struct sl_reduce_opts){SL_AXES(1)});
		loss = sl_sum(sl_mul(y, sl_from(weight, SL_SHAPE(2), .dtype = SL_FLOAT64)));
	}
	CHECK_OK(sl_backward(loss));
	return sl_grad(t);
}

static void test_ties_share(void)
{
	const double x[] = {5, 2, 5, 1, 1, 1};
	SL_SCOPE {
		CHECK_VALUES(gradient(sl_max_at, x), 3, 0, 3, -1 / 3.0, -1 / 3.0, -1 / 3.0);
		CHECK_VALUES(gradient(sl_min_at, x), 0, 6, 0, -1 / 3.0, -1 / 3.0, -1 / 3.0);
	}
}

static void test_norm_of_zeros(void)
{
	const double x[] = {3, 0, -4, 0, 0, 0};
	SL_SCOPE
		CHECK_VALUES(gradient(sl_norm_at, x), 3.6, 0, -4.8, 0, 0, 0);
}

static void test_keepdims(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3, 4));
		CHECK(sl_shape_equal(sl_tensor_shape(sl_sum(x, SL_AXES(0, -1))), SL_SHAPE(3)));
		CHECK(sl_shape_equal(sl_tensor_shape(sl_sum(x, SL_AXES(0, -1), .keepdims = true)), SL_SHAPE(1, 3, 1)));
		CHECK(sl_shape_equal(sl_tensor_shape(sl_max(x, .keepdims = true)), SL_SHAPE(1, 1, 1)));
		CHECK(sl_tensor_shape(sl_mean(x)).ndim == 0);
		CHECK(sl_tensor_dtype(sl_argmax(x, 0)) == SL_INT32);
	}
}

static void test_counting_hits(void)
{
	const float scores[] = {1, 3, 2, 9, 8, 7, 0, 0, 1, 4, 4, 4};
	const int32_t labels[] = {1, 0, 0, 0};
	SL_SCOPE {
		sl_tensor *best = sl_argmax(sl_from(scores, SL_SHAPE(4, 3)), 1);
		sl_tensor *hits = sl_eq(best, sl_from(labels, SL_SHAPE(4), .dtype = SL_INT32));
		CHECK(sl_item(sl_sum(hits)) == 3);
		CHECK(sl_item(sl_mean(hits)) == 0.75 && sl_tensor_dtype(sl_mean(hits)) == SL_FLOAT32);
		CHECK(sl_item(sl_mean(sl_eq(best, sl_cast(best, SL_FLOAT32)))) == 1);
	}
}

static void test_mistakes(void)
{
	SL_SCOPE {
		const int many[SL_MAX_NDIM + 1] = {0};
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3));
		CHECK_NULL(sl_sum(x, .axes = many, .naxes = SL_MAX_NDIM + 1), SL_EINVAL, "sum", "9 axes");
		CHECK_NULL(sl_sum(x, .naxes = 1), SL_EINVAL, "sum", "axes");
		CHECK_NULL(sl_mean(x, SL_AXES(5)), SL_EINVAL, "mean(x float32 (2, 3))", "axis 5", "2 axes");
		CHECK_NULL(sl_max(x, SL_AXES(0, -2)), SL_EINVAL, "axis 0", "twice");
		CHECK_NULL(sl_norm(sl_cast(x, SL_INT32)), SL_EDTYPE, "int32", "sl_cast");
		CHECK_NULL(sl_max(sl_zeros(SL_SHAPE(2, 0)), SL_AXES(1)), SL_ESHAPE, "no elements");
		CHECK_NULL(sl_broadcast_to(x, SL_SHAPE(2, 2, 4)), SL_ESHAPE, "(2, 3)", "(2, 2, 4)");
	}
}

static const struct slp_test tests[] = {
        {"large sums", test_large_sums},
        {"ties share the gradient", test_ties_share},
        {"norm of zeros", test_norm_of_zeros},
        {"keepdims", test_keepdims},
        {"counting hits", test_counting_hits},
        {"mistakes", test_mistakes},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"reduce", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
