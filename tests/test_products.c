/* Products, convolution and pooling as programs call them: absent biases, mistakes at the call, gradients of some
 * operands only, many sizes, two teams at once.  Expected values are PyTorch's. */
#include <string.h>

#include "check.h"

static sl_tensor *cycle(sl_shape shape, const float *values, int count)
{
	float data[512];
	int64_t n = sl_shape_size(shape);
	for (int64_t i = 0; i < n; i++) data[i] = values[i % count];
	return sl_from(data, shape);
}

/* The inputs of tests/cases_conv2d.c and tests/cases_products.c. */
static sl_tensor *first(sl_shape shape)
{
	return cycle(shape, (const float[]){1, -2, 3, 0.5f, -1, 2, 0, 4, -3, 1.5f, 2.5f}, 11);
}

static sl_tensor *second(sl_shape shape)
{
	return cycle(shape, (const float[]){1, 0.5f, -1, 2, -0.5f, 0.25f, 3}, 7);
}

static void test_absent_bias(void)
{
	SL_SCOPE {
		sl_tensor *x = first(SL_SHAPE(3, 4)), *b = sl_from(((float[]){0.5f, -1}), SL_SHAPE(2));
		CHECK_VALUES(sl_linear(x, second(SL_SHAPE(2, 4)), NULL, .tw = true), -2, 8.5, 8, 5, -2.75, 10.375);
		CHECK_VALUES(sl_linear(x, second(SL_SHAPE(4, 2)), b), 3.5, -3.25, 9.5, 6.5, -2.25, 2.125);
		sl_tensor *image = first(SL_SHAPE(1, 2, 4, 5)), *w = second(SL_SHAPE(2, 2, 3, 3));
		CHECK_VALUES(sl_conv2d(image, w, NULL), 13.625, 5.25, 5.625, 2.75, 35.875, -6.75, 20.25, 33.375, -8.625,
		             20.5, -4.875, 12.25);
	}
}

/* A bias that is NULL because of an earlier mistake: no result, and the first mistake stays. */
static void test_bias_lost(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3)), *w = sl_ones(SL_SHAPE(3, 2));
		sl_tensor *lost = sl_dot(x, x);
		CHECK(sl_linear(x, w, lost) == NULL);
		sl_tensor *image = sl_reshape(x, SL_SHAPE(1, 1, 2, 3)), *kernel = sl_ones(SL_SHAPE(1, 1, 1, 1));
		CHECK(sl_conv2d(image, kernel, lost) == NULL);
		CHECK_STATUS(sl_error(), SL_ESHAPE, "dot", "inner sizes differ");
		sl_error_clear();
	}
}

static void test_mistakes(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2, 4, 4)), *w = sl_ones(SL_SHAPE(3, 1, 3, 3));
		CHECK_NULL(sl_conv2d(x, w, NULL), SL_ESHAPE, "x has 2 channels, and w takes 1 in 1 groups");
		CHECK_NULL(sl_conv2d(x, w, NULL, .groups = 2), SL_ESHAPE,
		           "3 output channels cannot be dealt to 2 groups");
		CHECK_NULL(sl_pool2d(x, .kernel = {5}), SL_ESHAPE, "height of the window is 5, of the padded image 4");
		CHECK_NULL(sl_pool2d(x), SL_EINVAL, "kernel must be given");
		CHECK_NULL(sl_pool2d(x, .global = true, .kernel = {2}), SL_EINVAL,
		           ".kernel and .stride are not for .global");
		CHECK_NULL(sl_pool2d(x, .global = true, .ceil = true), SL_EINVAL, ".ceil and .exclude_pad are not for");
		CHECK_NULL(sl_pool2d(x, .kernel = {2}, .exclude_pad = true), SL_EINVAL, ".exclude_pad is for means");
		CHECK_NULL(sl_pool2d(x, .type = (enum sl_pool_type)7, .kernel = {2}), SL_EINVAL, "type 7 is neither");
		CHECK_NULL(sl_matmul(x, sl_ones(SL_SHAPE(4))), SL_ESHAPE, "see sl_dot for vectors");
		CHECK_NULL(sl_dot(x, x), SL_ESHAPE, "see sl_matmul for more");
	}
}

/* What a zero in the options of pooling stands for. */
static void test_pool_defaults(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 1, 9, 12));
		CHECK(sl_shape_equal(sl_tensor_shape(sl_pool2d(x, .kernel = {3, 2})), SL_SHAPE(1, 1, 3, 6)));
		CHECK(sl_shape_equal(sl_tensor_shape(sl_pool2d(x, .kernel = {3})), SL_SHAPE(1, 1, 3, 4)));
		CHECK(sl_shape_equal(sl_tensor_shape(sl_pool2d(x, .kernel = {3, 2}, .stride = {3})),
		                     SL_SHAPE(1, 1, 3, 4)));
		CHECK(sl_shape_equal(sl_tensor_shape(sl_pool2d(x, .global = true)), SL_SHAPE(1, 1, 1, 1)));
	}
}

/* The gradient of the bias comes with that of the weight, or alone. */
static void test_bias_gradient(void)
{
	SL_SCOPE {
		sl_tensor *x = first(SL_SHAPE(1, 2, 4, 5)), *w = second(SL_SHAPE(2, 2, 3, 3)),
		          *b = sl_zeros(SL_SHAPE(2));
		CHECK_OK(sl_attach_grad(b));
		for (int with_weight = 0; with_weight < 2; with_weight++) {
			sl_tensor *y = NULL;
			if (with_weight) CHECK_OK(sl_attach_grad(w));
			SL_RECORD
				y = sl_conv2d(x, w, b);
			sl_tensor *heads[] = {first(SL_SHAPE(1, 2, 2, 3))};
			CHECK_OK(sl_backward_heads(&y, 1, .head_grads = heads));
			CHECK_VALUES(sl_grad(b), 3.5, 6);
		}
		CHECK_VALUES(sl_slice(sl_flatten(sl_reshape(sl_grad(w), SL_SHAPE(1, 36))), 1, 0, 4, 1), 23, -16.5, 7,
		             10.25);
	}
}

/* More sizes than any cache holds, twice: the second time gives the same bits. */
static void test_many_sizes(void)
{
	enum { SIZES = 80 };
	float sums[2][SIZES];
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < SIZES; i++)
			SL_SCOPE {
				sl_tensor *x = first(SL_SHAPE(1, 3, 4 + i % 9, 4 + i / 9)),
				          *w = second(SL_SHAPE(5, 3, 3, 3));
				sl_tensor *y = sl_conv2d(x, w, NULL, .pad = {1, 1});
				CHECK_OK(sl_read(sl_sum(sl_square(y)), &sums[round][i], sizeof(float)));
			}
	CHECK(!memcmp(sums[0], sums[1], sizeof sums[0]));
}

/* A network's worth of both kinds of convolution, forwards and back; the gradient of its first weight. */
static sl_tensor *train_step(sl_device device)
{
	sl_tensor *x = sl_copy_to(first(SL_SHAPE(32, 1, 4, 4)), device), *y = NULL;
	sl_tensor *w1 = sl_copy_to(second(SL_SHAPE(12, 1, 3, 3)), device),
	          *w2 = sl_full(SL_SHAPE(16, 12, 1, 1), 0.1, .device = device);
	CHECK_OK(sl_attach_grad(w1));
	SL_RECORD {
		sl_tensor *h = sl_pool2d(sl_conv2d(x, w1, NULL, .pad = {1, 1}), .kernel = {2});
		y = sl_sum(sl_square(sl_conv2d(h, w2, NULL)));
	}
	CHECK_OK(sl_backward(y));
	return sl_grad(w1);
}

static void test_two_teams(void)
{
	enum { STEPS = 12, SIZE = 12 * 9 };
	slp_stop_engine();
	CHECK_OK(sl_init(&(struct sl_config){.teams = 2}));
	SL_SCOPE {
		float want[SIZE], got[SIZE];
		sl_tensor *steps[STEPS];
		for (int i = 0; i < STEPS; i++) steps[i] = train_step(sl_cpu(i % 2));
		CHECK_OK(sl_read(steps[0], want, sizeof want));
		for (int i = 1; i < STEPS; i++) {
			CHECK_OK(sl_read(steps[i], got, sizeof got));
			CHECK(!memcmp(want, got, sizeof want));
		}
	}
	sl_shutdown();
	slp_start_engine();
}

static const struct slp_test tests[] = {
        {"a bias may be absent", test_absent_bias},
        {"a bias lost to a mistake", test_bias_lost},
        {"mistakes", test_mistakes},
        {"defaults of pooling", test_pool_defaults},
        {"gradient of the bias", test_bias_gradient},
        {"many sizes", test_many_sizes},
        {"two teams", test_two_teams},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"products", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
