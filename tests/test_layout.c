/* Moving elements and batch normalisation as programs call them: mistakes at the call, wrong indices, gradients, what
 * batch_norm does to its running statistics. */
#include <stdint.h>

#include "check.h"

/* 0, 1, 2, … */
static sl_tensor *counting(sl_shape shape)
{
	return sl_reshape(sl_arange(0, (double)sl_shape_size(shape), 1), shape);
}

#define NUMBERS(...) sl_from(((float[]){__VA_ARGS__}), SL_SHAPE(SL_COUNT_(float, __VA_ARGS__)))
#define INDICES(...) sl_from(((int32_t[]){__VA_ARGS__}), SL_SHAPE(SL_COUNT_(int32_t, __VA_ARGS__)), .dtype = SL_INT32)

/* ---- moving elements --------------------------------------------------------------------------------------------- */

static void test_mistakes(void)
{
	SL_SCOPE {
		sl_tensor *x = counting(SL_SHAPE(2, 3));
		CHECK_NULL(sl_transpose(x, SL_AXES(0, 1, 2, 3, 4, 5, 6, 7, 8)), SL_EINVAL,
		           "9 axes given; the number must be from 0 to 8");
		CHECK_NULL(sl_transpose(x, SL_AXES(1, 0), .keepdims = true), SL_EINVAL, "keepdims has no meaning here");
		CHECK_NULL(sl_concat(&x, 0, 0), SL_EINVAL, "0 tensors given, at least 1 needed");
		CHECK_NULL(sl_concat(NULL, 3, 0), SL_EINVAL, "0 tensors given");
		CHECK_NULL(sl_slice(x, 1, 0, 2, 0), SL_EINVAL, "step is 0");
		CHECK_NULL(sl_gather(x, x), SL_EDTYPE, "the indices are float32, int32 or int64 needed");
		CHECK_NULL(sl_transpose(sl_slice(x, 2, 0, 1, 1)), SL_EINVAL, "axis 2 does not exist");
	}
}

/* A kernel cannot refuse a call: the result is spoilt, and whoever waits for it gets the error. */
static void test_wrong_indices(void)
{
	SL_SCOPE {
		sl_tensor *x = counting(SL_SHAPE(3, 2));
		float y[6];
		CHECK_STATUS(sl_read(sl_gather(x, INDICES(0, 3, 1)), y, sizeof y), SL_EINVAL, "gather",
		             "index 3 at position 1 is outside the 3 rows");
		CHECK_STATUS(sl_read(sl_gather(x, INDICES(0, 2, -1)), y, sizeof y), SL_EINVAL,
		             "index -1 at position 2 is outside the 3 rows");
		CHECK_VALUES(sl_gather(x, INDICES(2, 0)), 4, 5, 0, 1);
	}
}

static void test_one_hot_options(void)
{
	SL_SCOPE {
		CHECK_VALUES(sl_one_hot(INDICES(1, 0), 2), 0, 1, 1, 0);
		sl_tensor *y = sl_one_hot(INDICES(1, 5), 2, .dtype = SL_UINT8, .device = sl_cpu(0));
		CHECK(sl_tensor_dtype(y) == SL_UINT8 && sl_device_equal(sl_tensor_device(y), sl_cpu(0)));
		CHECK_VALUES(y, 0, 1, 0, 0);
	}
}

/* d(sum(w * f(x))) / dx, where the weights w are 1, 2, 3, … and f moves elements. */
static sl_tensor *gradient(sl_tensor *x, sl_tensor *(*f)(sl_tensor *x))
{
	CHECK_OK(sl_attach_grad(x));
	SL_RECORD {
		sl_tensor *y = f(x);
		sl_shape shape = sl_tensor_shape(y);
		CHECK_OK(sl_backward(sl_sum(sl_mul(y, sl_add_scalar(counting(shape), 1)))));
	}
	return sl_grad(x);
}

static sl_tensor *rotate(sl_tensor *x)
{
	return sl_transpose(x, SL_AXES(2, 0, 1));
}

static sl_tensor *every_other(sl_tensor *x)
{
	return sl_slice(x, -1, 1, INT64_MAX, 2);
}

static sl_tensor *backwards(sl_tensor *x)
{
	return sl_slice(x, 0, -1, INT64_MIN, -1);
}

static sl_tensor *twice(sl_tensor *x)
{
	return sl_concat(((sl_tensor *[]){x, sl_zeros(SL_SHAPE(2, 1)), x}), 3, 1);
}

static sl_tensor *pick(sl_tensor *x)
{
	return sl_gather(x, INDICES(2, 0, 2));
}

static void test_gradients(void)
{
	SL_SCOPE {
		CHECK_VALUES(gradient(counting(SL_SHAPE(2, 1, 3)), rotate), 1, 3, 5, 2, 4, 6);
		CHECK_VALUES(gradient(counting(SL_SHAPE(2, 3)), every_other), 0, 1, 0, 0, 2, 0);
		CHECK_VALUES(gradient(counting(SL_SHAPE(4)), backwards), 4, 3, 2, 1);
		CHECK_VALUES(gradient(counting(SL_SHAPE(2, 2)), twice), 1 + 4, 2 + 5, 6 + 9, 7 + 10);
		CHECK_VALUES(gradient(counting(SL_SHAPE(3, 2)), pick), 3, 4, 0, 0, 1 + 5, 2 + 6);
	}
}

/* ---- batch normalisation: values from PyTorch, in float64 ------------------------------------------------------- */

struct norm {
	sl_tensor *x, *gamma, *beta, *mean, *var;
};

static struct norm two_channels(void)
{
	static const float x[] = {.5f, -1.25f, 2, 3.5f, -.75f, 1.5f, 4, -2.5f, .25f, 1, -3, 2.25f};
	return (struct norm){sl_from(x, SL_SHAPE(2, 2, 3)), NUMBERS(1.5f, -.5f), NUMBERS(.25f, 1), NUMBERS(.1f, -.2f),
	                     NUMBERS(.8f, 1.5f)};
}

static sl_tensor *normalised(struct norm n, struct sl_batch_norm_opts opts)
{
	return sl_batch_norm_at(SL_HERE, n.x, n.gamma, n.beta, n.mean, n.var, opts);
}

#define TRAINED                                                                                                        \
	0.25, -0.996119337, 1.31810229, 0.348797674, 1.35520127, 0.822399366, 2.74223867, -1.88620458, 0.0719829519,   \
	        0.940799789, 1.88800317, 0.644798731
#define INFERRED                                                                                                       \
	0.920401523, -2.01260514, 3.43440723, -0.51001542, 1.22446175, 0.306209131, 6.78641485, -4.1076099,            \
	        0.501400571, 0.510265269, 2.14271437, 0.000124924525

static void test_norm_modes(void)
{
	SL_SCOPE {
		struct norm n = two_channels();
		CHECK_VALUES(normalised(n, (struct sl_batch_norm_opts){.eps = 1e-3}), INFERRED);
		CHECK_VALUES(n.mean, .1, -.2);
		SL_TRAINING {
			CHECK_VALUES(normalised(n, (struct sl_batch_norm_opts){.eps = 1e-3, .use_global_stats = true}),
			             INFERRED);
			CHECK_VALUES(n.var, .8, 1.5);
			CHECK_VALUES(normalised(n, (struct sl_batch_norm_opts){.momentum = .75}), TRAINED);
			CHECK_VALUES(n.mean, .2, .0375);
			CHECK_VALUES(n.var, 1.709375, 2.23958333);
			n = two_channels();
			CHECK_VALUES(normalised(n, (struct sl_batch_norm_opts){0}), TRAINED);
			CHECK_VALUES(n.mean, .14, -.105);
			CHECK_VALUES(n.var, 1.16375, 1.79583333);
		}
	}
}

/* Back from y with this gradient, with x, gamma and beta attached. */
static void go_back(struct norm n, struct sl_batch_norm_opts opts)
{
	static const float dy[] = {1, -.5f, .25f, 2, .75f, -1, .5f, 1.25f, -2, 1.5f, -.25f, .5f};
	sl_tensor *head = sl_from(dy, SL_SHAPE(2, 2, 3)), *y = NULL;
	CHECK_OK(sl_attach_grad(n.x));
	CHECK_OK(sl_attach_grad(n.gamma));
	CHECK_OK(sl_attach_grad(n.beta));
	SL_RECORD
		y = normalised(n, opts);
	CHECK_OK(sl_backward_heads(&y, 1, .head_grads = &head));
}

static void test_norm_gradients(void)
{
	SL_SCOPE {
		struct norm n = two_channels();
		go_back(n, (struct sl_batch_norm_opts){0});
		CHECK_VALUES(sl_grad(n.x), 0.652729177, -0.427073737, 0.128707139, -0.197011606, -0.114988403,
		             0.41269547, 0.32009633, 0.810688011, -1.48514692, -0.204480509, 0.00853004897,
		             0.0952549995);
		CHECK_VALUES(sl_grad(n.gamma), -0.118678032, 2.69360962);
		CHECK_VALUES(sl_grad(n.beta), .5, 3.5);
	}
}

/* With given statistics dx is dy gamma / deviation; they get gradients too. */
static void test_norm_global_gradients(void)
{
	SL_SCOPE {
		struct norm n = {counting(SL_SHAPE(3, 1)), NUMBERS(2), NUMBERS(1), NUMBERS(1), NUMBERS(.25f)};
		sl_tensor *y = NULL, *head = NUMBERS(1, 2, 4);
		sl_tensor *all[] = {n.x, n.gamma, n.beta, n.mean, n.var};
		for (int i = 0; i < 5; i++) CHECK_OK(sl_attach_grad(all[i]));
		SL_RECORD
			y = normalised(n, (struct sl_batch_norm_opts){.eps = 1e-12, .use_global_stats = true});
		head = sl_reshape(head, SL_SHAPE(3, 1));
		CHECK_OK(sl_backward_heads(&y, 1, .head_grads = &head));
		CHECK_VALUES(sl_grad(n.x), 4, 8, 16);
		CHECK_VALUES(sl_grad(n.gamma), 2 * (4 - 1));
		CHECK_VALUES(sl_grad(n.beta), 7);
		CHECK_VALUES(sl_grad(n.mean), -2 * 2 * 7);
		CHECK_VALUES(sl_grad(n.var), -.5 * 2 * 4 * 6);
	}
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static const struct slp_test layout_tests[] = {
        {"mistakes", test_mistakes},
        {"wrong indices", test_wrong_indices},
        {"one_hot options", test_one_hot_options},
        {"gradients", test_gradients},
        {NULL, NULL},
};

static const struct slp_test norm_tests[] = {
        {"modes", test_norm_modes},
        {"gradients", test_norm_gradients},
        {"gradients, statistics given", test_norm_global_gradients},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	static const struct slp_suite suites[] = {
	        {"layout", layout_tests, NULL, NULL, slp_begin_plainly, slp_end},
	        {"batch_norm", norm_tests, NULL, NULL, slp_begin_plainly, slp_end},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
