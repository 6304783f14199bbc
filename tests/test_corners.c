/* Where functions made of operations are easily wrong: shapes that are broadcast along the axis that is summed, points
 * where a gradient is a limit, numbers near the largest, parameters of other lengths.  Values are PyTorch's. */
#include <math.h>

#include "check.h"

static void test_cosine(void)
{
	SL_SCOPE {
		CHECK_VALUES(sl_cosine_similarity(sl_ones(SL_SHAPE(2)), sl_ones(SL_SHAPE(1)), 0), 1);
		CHECK_VALUES(sl_cosine_similarity(sl_ones(SL_SHAPE(3, 4)), sl_ones(SL_SHAPE(3, 1)), 1), 1, 1, 1);
		sl_tensor *a = sl_from(((float[]){3, 4, 0, 5}), SL_SHAPE(2, 2)),
		          *b = sl_from(((float[]){1, 0}), SL_SHAPE(2));
		CHECK_VALUES(sl_cosine_similarity(a, b, 1), 0.6, 0);
		CHECK_VALUES(sl_cosine_similarity(b, a, 0), 0.70710678118654752, 0);
	}
}

static void check_gradient(sl_tensor *(*f)(sl_tensor *x), enum sl_dtype dtype, int n, const double *at, double value,
                           const double *slopes)
{
	SL_SCOPE {
		sl_tensor *x = sl_cast(sl_from_at(SL_HERE, at, SL_SHAPE(n), (struct sl_make){.dtype = SL_FLOAT64}),
		                       dtype),
		          *y;
		CHECK_OK(sl_attach_grad(x));
		SL_RECORD
			y = f(x);
		CHECK_OK(sl_backward(y));
		double got[8];
		double is = sl_item(y);
		CHECK_SAYING(is == value || (isnan(is) && isnan(value)), "%g, not %g", is, value);
		CHECK_OK(sl_read(sl_cast(sl_grad(x), SL_FLOAT64), got, sizeof got[0] * (size_t)n));
		for (int i = 0; i < n; i++)
			CHECK_SAYING(got[i] == slopes[i] || fabs(got[i] - slopes[i]) <= 1e-6 * fabs(slopes[i]),
			             "%d: %g, not %g", i, got[i], slopes[i]);
	}
}

static sl_tensor *std_of(sl_tensor *x)
{
	return sl_std(x, SL_AXES(0));
}

static sl_tensor *prod_of(sl_tensor *x)
{
	return sl_prod(x, SL_AXES(0));
}

static void test_gradients(void)
{
	static const double none[8] = {0};
	for (enum sl_dtype d = SL_FLOAT32; d <= SL_FLOAT64; d++) {
		check_gradient(std_of, d, 3, (double[]){2, 2, 2}, 0, none);
		check_gradient(std_of, d, 1, (double[]){7}, 0, none);
		check_gradient(std_of, d, 2, (double[]){1, 3}, 1, (double[]){-0.5, 0.5});
		check_gradient(prod_of, d, 3, (double[]){2, 0, 5}, 0, (double[]){0, 10, 0});
	}
	check_gradient(prod_of, SL_FLOAT32, 4, (double[]){1e20, 1e20, 0, 0}, 0, none);
	check_gradient(prod_of, SL_FLOAT64, 3, (double[]){1e200, 1e200, 0}, NAN, (double[]){0, 0, INFINITY});
}

static void test_acosh(void)
{
	static const float x[] = {1, 1.5f, 9999, 10001, 1e6f, 1.8e38f, 3.4e38f, INFINITY};
	float y[8];
	SL_SCOPE {
		CHECK_OK(sl_read(sl_acosh(sl_from(x, SL_SHAPE(8))), y, sizeof y));
		for (int i = 0; i < 8; i++) {
			double want = acosh(x[i]);
			CHECK_SAYING(y[i] == want || fabs(y[i] - want) < 2e-7 * want, "acosh(%g) is %g, not %g",
			             (double)x[i], (double)y[i], want);
		}
	}
}

static void test_labels(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(4, 3)), *one = sl_zeros(SL_SHAPE(1), .dtype = SL_INT32),
		          *four = sl_zeros(SL_SHAPE(4), .dtype = SL_INT32), *w = sl_ones(SL_SHAPE(3));
		CHECK_NULL(sl_cross_entropy(x, one, .label_smoothing = 0.1), SL_ESHAPE,
		           "the shape of labels is (1,), (4,) needed");
		CHECK_NULL(sl_cross_entropy(x, sl_reshape(one, SL_SCALAR), .ignore = true), SL_ESHAPE, "(4,) needed");
		CHECK_NULL(sl_cross_entropy(x, sl_reshape(four, SL_SHAPE(4, 1))), SL_ESHAPE,
		           "the shape of labels is (4, 1)");
		CHECK_NULL(sl_cross_entropy(x, four, .weights = sl_ones(SL_SHAPE(1))), SL_ESHAPE,
		           "the shape of weights is (1,), (3,) needed");
		x = sl_zeros(SL_SHAPE(5, 3, 4));
		CHECK_NULL(sl_cross_entropy(x, sl_zeros(SL_SHAPE(5, 1), .dtype = SL_INT32), .ignore = true), SL_ESHAPE,
		           "the shape of labels is (5, 1), (5, 4) needed");
		CHECK_VALUES(sl_cross_entropy(x, sl_zeros(SL_SHAPE(5, 4), .dtype = SL_INT32), .weights = w),
		             1.0986122886681098);
	}
}

static void test_parameters(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 4, 5)), *one = sl_ones(SL_SHAPE(1)), *row = sl_ones(SL_SHAPE(5));
		CHECK_NULL(sl_group_norm(x, 2, one, NULL), SL_ESHAPE, "the shape of gamma is (1,), (4,) needed");
		CHECK_NULL(sl_instance_norm(x, NULL, row), SL_ESHAPE, "the shape of beta is (5,), (4,) needed");
		CHECK_NULL(sl_rms_norm(x, one), SL_ESHAPE, "the shape of gamma is (1,), (5,) needed");
		CHECK(sl_rms_norm(x, row) != NULL);
		sl_tensor *image = sl_ones(SL_SHAPE(1, 1, 1, 1)), *w = sl_ones(SL_SHAPE(1, 1, 2, 2));
		CHECK_NULL(sl_conv_transpose2d(image, w, sl_ones(SL_SHAPE(4))), SL_ESHAPE,
		           "the shape of b is (4,), (1,) needed");
		CHECK_NULL(sl_conv_transpose2d(image, w, NULL, .pad = {2, 2}), SL_ESHAPE,
		           "would have -2 rows and -2 columns");
		CHECK_ALL(sl_conv_transpose2d(image, w, one), 2);
	}
}

/* Masks that are broadcast along the keys. */
static void test_masks(void)
{
	SL_SCOPE {
		sl_tensor *q = sl_normal(SL_SHAPE(2, 3, 4), 0, 1), *k = sl_normal(SL_SHAPE(2, 5, 4), 0, 1);
		const sl_shape shapes[] = {SL_SCALAR,      SL_SHAPE(1),       SL_SHAPE(5),
		                           SL_SHAPE(3, 1), SL_SHAPE(2, 1, 1), SL_SHAPE(3, 5)};
		for (int i = 0; i < 6; i++) {
			sl_tensor *mask = sl_normal(shapes[i], 0, 1), *whole = sl_broadcast_to(mask, SL_SHAPE(2, 3, 5));
			sl_tensor *y = sl_scaled_dot_product_attention(q, k, k, .mask = mask);
			sl_tensor *want = sl_scaled_dot_product_attention(q, k, k, .mask = whole);
			CHECK_SAYING(y && sl_item(sl_max(sl_abs(sl_sub(y, want)))) < 1e-6, "mask %d: %s", i,
			             sl_error_message());
		}
		CHECK_NULL(sl_scaled_dot_product_attention(q, k, k, .mask = sl_ones(SL_SHAPE(3, 4))), SL_ESHAPE,
		           "mask");
	}
}

static const struct slp_test tests[] = {
        {"cosine", test_cosine},
        {"gradients", test_gradients},
        {"acosh", test_acosh},
        {"labels", test_labels},
        {"masks", test_masks},
        {"parameters", test_parameters},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "corners", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}});
}
