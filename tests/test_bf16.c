/* Kernels for bfloat16 at sizes where libraries are fast, where float32 is faster, and in parts: against float32 or
 * float64 on the same numbers. */
#include <math.h>
#include <stdlib.h>
#include <starling.h>

#include "../codelets/conv/conv2d_kernels.h"
#include "check.h"

static float *values(sl_tensor *t)
{
	float *to = malloc(sl_tensor_bytes(t) * 2);
	CHECK_OK(sl_read(sl_cast(t, SL_FLOAT32), to, (size_t)sl_shape_size(sl_tensor_shape(t)) * sizeof *to));
	return to;
}

/* Within so many roundings and a part of the array's root mean square, but for `few` of them. */
static void compare(const char *what, sl_tensor *half, sl_tensor *single, int roundings, int64_t few)
{
	int64_t n = sl_shape_size(sl_tensor_shape(single)), wrong = 0;
	CHECK(sl_shape_equal(sl_tensor_shape(half), sl_tensor_shape(single)));
	float *a = values(half), *b = values(single);
	double squares = 0;
	for (int64_t i = 0; i < n; i++) squares += (double)b[i] * (double)b[i];
	double rms = sqrt(squares / (double)n);
	for (int64_t i = 0; i < n; i++)
		wrong += !(fabs((double)a[i] - (double)b[i]) <= roundings * 0x1p-8 * (fabs((double)b[i]) + 0.25 * rms));
	CHECK_SAYING(wrong <= few, "%s: %lld of %lld", what, (long long)wrong, (long long)n);
	free(a);
	free(b);
}

enum { INPUTS = 3 };

/* The result and the gradients by all inputs, which are rounded to bfloat16 in both. */
static void run(enum sl_dtype dtype, sl_tensor *const *in, sl_tensor *(*fn)(sl_tensor *const *), sl_tensor **out)
{
	sl_tensor *x[INPUTS], *y = NULL;
	for (int i = 0; i < INPUTS; i++) {
		x[i] = sl_cast(sl_cast(in[i], SL_BFLOAT16), dtype);
		CHECK_OK(sl_attach_grad(x[i]));
	}
	SL_RECORD
		y = fn(x);
	sl_seed(7);
	sl_tensor *dy = sl_cast(sl_cast(sl_normal(sl_tensor_shape(y), 0, 1), SL_BFLOAT16), dtype);
	CHECK_OK(sl_backward_heads(&y, 1, .head_grads = &dy));
	out[0] = y;
	for (int i = 0; i < INPUTS; i++) out[1 + i] = sl_grad(x[i]);
}

static const char *const names[] = {"y", "dx", "dw", "db"};

static void check_beside(enum sl_dtype dtype, sl_tensor *const *in, sl_tensor *(*fn)(sl_tensor *const *))
{
	sl_tensor *half[1 + INPUTS], *wide[1 + INPUTS];
	run(SL_BFLOAT16, in, fn, half);
	run(dtype, in, fn, wide);
	for (int i = 0; i < 1 + INPUTS; i++) {
		CHECK(sl_tensor_dtype(half[i]) == SL_BFLOAT16);
		compare(names[i], half[i], wide[i], 1, 0);
	}
}

static void check(sl_tensor *const *in, sl_tensor *(*fn)(sl_tensor *const *))
{
	check_beside(SL_FLOAT32, in, fn);
}

static sl_tensor *conv(sl_tensor *const *in)
{
	return sl_conv2d(in[0], in[1], in[2], .pad = {1, 1});
}

static sl_tensor *strided(sl_tensor *const *in)
{
	return sl_conv2d(in[0], in[1], in[2], .stride = {2});
}

static sl_tensor *layer(sl_tensor *const *in)
{
	return sl_linear(in[0], in[1], in[2]);
}

static void test_conv(void)
{
	SL_SCOPE {
		sl_tensor *in[] = {sl_normal(SL_SHAPE(8, 64, 14, 14), 0, 1), sl_normal(SL_SHAPE(64, 64, 3, 3), 0, 1),
		                   sl_normal(SL_SHAPE(64), 0, 1)};
		check(in, conv);
		check(in, strided);
		sl_tensor *small[] = {sl_normal(SL_SHAPE(8, 64, 6, 7), 0, 1), in[1], in[2]}; /* rows are short */
		check(small, conv);
	}
}

/* Where float32 is faster: images of few channels, small layers and products. */
static void test_small(void)
{
	SL_SCOPE {
		sl_tensor *one[] = {sl_normal(SL_SHAPE(32, 1, 12, 12), 0, 1), sl_normal(SL_SHAPE(20, 1, 3, 3), 0, 1),
		                    sl_normal(SL_SHAPE(20), 0, 1)};
		sl_tensor *more[] = {sl_normal(SL_SHAPE(48, 20, 9, 9), 0, 1), sl_normal(SL_SHAPE(24, 20, 5, 5), 0, 1),
		                     sl_normal(SL_SHAPE(24), 0, 1)};
		check_beside(SL_FLOAT64, one, conv);
		check_beside(SL_FLOAT64, one, strided);
		check_beside(SL_FLOAT64, more, conv);
		sl_tensor *dense[] = {sl_normal(SL_SHAPE(64, 80), 0, 1), sl_normal(SL_SHAPE(80, 10), 0, 1),
		                      sl_normal(SL_SHAPE(10), 0, 1)};
		check_beside(SL_FLOAT64, dense, layer);
		sl_tensor *a = sl_cast(sl_normal(SL_SHAPE(5, 7, 16), 0, 1), SL_BFLOAT16),
		          *wide = sl_cast(a, SL_FLOAT64);
		compare("matmul", sl_matmul(a, a, .tb = true), sl_matmul(wide, wide, .tb = true), 1, 0);
	}
}

/* ---- a convolution and its pooling as one, in lane order --------------------------------------------------------- */

static sl_tensor *pooled(sl_tensor *const *in)
{
	return sl_pool2d(sl_relu(sl_conv2d(in[0], in[1], in[2])), .type = SL_POOL_AVG, .kernel = {2, 2},
	                 .stride = {2, 2});
}

/* Values that bfloat16 holds: whether a processor's kernels round parameters makes no difference then. */
static void round_params(sl_param *const *params, int n)
{
	for (int i = 0; i < n; i++)
		CHECK_OK(sl_param_set(params[i], sl_cast(sl_cast(sl_param_data(params[i]), SL_BFLOAT16), SL_FLOAT32)));
}

/* What is pooled may be rounded before.  A relu may change its mind about sums near 0: about few elements. */
static void check_pooled(sl_shape shape, int64_t units, int kernel)
{
	SL_SCOPE {
		sl_tensor *x = sl_cast(sl_normal(shape, 0, 1), SL_BFLOAT16), *y = NULL, *wide[1 + INPUTS];
		sl_block *net = sl_sequential(
		        sl_conv2d_layer(units, .kernel = {kernel}, .activation = SL_RELU, .in_channels = shape.dim[1]),
		        sl_avg_pool2d_layer(2));
		sl_param *params[2];
		CHECK_OK(sl_initialize(net, .init = sl_normal_init(1)));
		CHECK(sl_block_params(net, params, 2) == 2);
		round_params(params, 2);
		CHECK_OK(sl_hybridize(net));
		CHECK_OK(sl_attach_grad(x));
		SL_RECORD
			SL_AUTOCAST(SL_BFLOAT16) y = sl_forward(net, x);
		sl_seed(7);
		sl_tensor *dy = sl_cast(sl_normal(sl_tensor_shape(y), 0, 1), SL_BFLOAT16);
		CHECK_OK(sl_backward_heads(&y, 1, .head_grads = &dy));
		CHECK(sl_tensor_dtype(y) == SL_BFLOAT16);
		sl_tensor *in[] = {x, sl_param_data(params[0]), sl_param_data(params[1])};
		sl_tensor *half[] = {y, sl_grad(x), sl_param_grad(params[0]), sl_param_grad(params[1])};
		run(SL_FLOAT64, in, pooled, wide);
		for (int i = 0; i < 1 + INPUTS; i++)
			compare(names[i], half[i], wide[i], 2, sl_shape_size(sl_tensor_shape(half[i])) / 500);
		sl_block_free(net);
	}
}

static void test_pooled(void)
{
	check_pooled(SL_SHAPE(32, 1, 12, 12), 20, 3);
	check_pooled(SL_SHAPE(48, 20, 9, 9), 24, 5);
}

/* Images are reordered a part at a time, and gradients of weights added. */
static void test_parts(void)
{
	size_t most = slp_conv_most_work;
	slp_conv_most_work = 1 << 18;
	SL_SCOPE {
		sl_tensor *in[] = {sl_normal(SL_SHAPE(50, 20, 9, 9), 0, 1), sl_normal(SL_SHAPE(24, 20, 3, 3), 0, 1),
		                   sl_normal(SL_SHAPE(24), 0, 1)};
		check(in, conv);
		CHECK_OK(sl_wait_all());
	}
	slp_conv_most_work = most;
}

static void test_linear(void)
{
	SL_SCOPE {
		sl_tensor *in[] = {sl_normal(SL_SHAPE(130, 700), 0, 1), sl_normal(SL_SHAPE(700, 600), 0, 1),
		                   sl_normal(SL_SHAPE(600), 0, 1)};
		check(in, layer);
	}
}

static const struct slp_test tests[] = {{"convolutions", test_conv},   {"small", test_small},
                                        {"pooled", test_pooled},       {"in parts", test_parts},
                                        {"dense layers", test_linear}, {0}};

int main(int argc, char **argv)
{
	return slp_test_main(
	        argc, argv,
	        (const struct slp_suite[]){
	                {.name = "bfloat16", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}});
}
