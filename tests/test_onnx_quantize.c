/* Quantising networks: results beside those of float32, ranges by each method, what the files say, errors. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <starling.h>

#include "check.h"
#include "folder.h"

enum { SAMPLES = 3, BATCH = 4, CLASSES = 5 };

/* Convolutions with batch normalisation, a sum of two branches, poolings, two products. */
static sl_block *branch(int channels)
{
	return sl_sequential(sl_conv2d_layer(channels, .kernel = {3}, .pad = {1, 1}, .no_bias = true),
	                     sl_batch_norm_layer(), sl_activation_layer(SL_RELU),
	                     sl_conv2d_layer(channels, .kernel = {3}, .pad = {1, 1}), sl_batch_norm_layer());
}

static sl_block *network(void)
{
	sl_block *net = sl_sequential(sl_conv2d_layer(8, .kernel = {3}, .pad = {1, 1}), sl_batch_norm_layer(),
	                              sl_activation_layer(SL_RELU), sl_max_pool2d_layer(2),
	                              sl_residual(branch(8), NULL, SL_RELU), sl_global_avg_pool2d_layer(),
	                              sl_flatten_layer(), sl_dense(16, .activation = SL_RELU), sl_dense(CLASSES));
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	return net;
}

/* Statistics of batch normalisation that are not 0 and 1. */
static void warm(sl_block *net, sl_tensor *x)
{
	for (int i = 0; i < 3; i++)
		SL_SCOPE
			SL_RECORD
				sl_forward(net, x);
}

static double largest(sl_tensor *t)
{
	return sl_item(sl_max(sl_abs(t)));
}

/* The largest difference between two networks, in shares of the largest result. */
static double difference(sl_block *a, sl_block *b, sl_tensor *x)
{
	double d = INFINITY;
	SL_SCOPE {
		sl_tensor *y = sl_forward(a, x), *z = b ? sl_forward(b, x) : NULL;
		if (CHECK_SAYING(y && z, "%s", sl_error_message())) d = largest(sl_sub(y, z)) / largest(y);
	}
	return d;
}

static long size_of(const char *path)
{
	FILE *f = fopen(path, "rb");
	long n = f && !fseek(f, 0, SEEK_END) ? ftell(f) : -1;
	if (f) fclose(f);
	return n;
}

/* How often a text is in a file. */
static int times(const char *path, const char *text)
{
	long n = size_of(path);
	FILE *f = fopen(path, "rb");
	char *bytes = n > 0 ? malloc((size_t)n) : NULL;
	int count = 0;
	size_t length = strlen(text);
	if (f && bytes && fread(bytes, 1, (size_t)n, f) == (size_t)n)
		for (long i = 0; i + (long)length <= n; i++) count += !memcmp(bytes + i, text, length);
	free(bytes);
	if (f) fclose(f);
	return count;
}

static const struct {
	const char *name;
	struct sl_quantize_opts o;
	double most; /* difference */
} methods[] = {{"extremes", {.method = SL_CALIBRATE_MINMAX}, 0.06},
               {"percentile", {.method = SL_CALIBRATE_PERCENTILE, .percentile = 99.9}, 0.12},
               {"entropy", {.method = SL_CALIBRATE_ENTROPY}, 0.25},
               {"one scale", {.method = SL_CALIBRATE_MINMAX, .per_tensor = true}, 0.1}};

static void test_methods(void)
{
	SL_SCOPE {
		sl_seed(3);
		sl_tensor *samples[SAMPLES], *x = sl_normal(SL_SHAPE(BATCH, 3, 8, 8), 0, 1);
		sl_block *net = network();
		for (int i = 0; i < SAMPLES; i++) samples[i] = sl_normal(SL_SHAPE(BATCH, 3, 8, 8), 0, 1);
		warm(net, x);
		samples[0] = x;
		CHECK_OK(sl_export_onnx(net, "float.onnx", SL_SHAPES(SL_SHAPE(BATCH, 3, 8, 8))));
		for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
			CHECK_OK(sl_quantize_at(SL_HERE, net, "bytes.onnx", samples, SAMPLES, methods[i].o));
			sl_block *q = sl_import_onnx("bytes.onnx");
			double d = difference(net, q, x);
			CHECK_SAYING(d > 0 && d < methods[i].most, "%s: differs by %g", methods[i].name, d);
			if (q) CHECK_OK(sl_hybridize(q));
			double compiled = difference(net, q, x);
			CHECK_SAYING(compiled < methods[i].most, "%s, compiled: differs by %g", methods[i].name,
			             compiled);
			sl_block_free(q);
		}
		CHECK(times("bytes.onnx", "BatchNormalization") == 0 && times("float.onnx", "BatchNormalization") > 0);
		CHECK(size_of("bytes.onnx.float32") < 0); /* nothing is left behind */
		sl_block_free(net);
	}
}

/* A file is quantised as the block is; a product's weights are a quarter of the size. */
static void test_file(void)
{
	SL_SCOPE {
		sl_block *net = sl_sequential(sl_dense(256, .activation = SL_RELU), sl_dense(64));
		sl_tensor *x = sl_normal(SL_SHAPE(16, 128), 0, 1), *rows[2];
		CHECK_OK(sl_initialize(net));
		for (int i = 0; i < 2; i++) rows[i] = sl_slice(x, 0, 8 * i, 8 * i + 8, 1);
		CHECK_OK(sl_export_onnx(net, "float.onnx", SL_SHAPES(SL_SHAPE(8, 128))));
		CHECK_OK(sl_quantize_onnx("float.onnx", "bytes.onnx", rows, 2));
		CHECK(size_of("bytes.onnx") < size_of("float.onnx") / 3);
		sl_block *q = sl_import_onnx("bytes.onnx");
		double d = difference(net, q, rows[1]);
		CHECK_SAYING(d > 0 && d < 0.05, "differs by %g", d);
		sl_block_free(q);
		sl_block_free(net);
	}
}

/* The difference of all results together, in shares of their length. */
static double mean_difference(sl_block *a, sl_block *b, sl_tensor *x)
{
	double d = INFINITY;
	SL_SCOPE {
		sl_tensor *y = sl_forward(a, x), *z = b ? sl_forward(b, x) : NULL;
		if (CHECK_SAYING(y && z, "%s", sl_error_message()))
			d = sqrt(sl_item(sl_sum(sl_square(sl_sub(y, z)))) / sl_item(sl_sum(sl_square(y))));
	}
	return d;
}

/* The error of a layer's usual results, with ranges from usual rows and one of values around 60 times as large. */
static double error_with(struct sl_quantize_opts o, bool single)
{
	double error = INFINITY;
	SL_SCOPE {
		sl_seed(5);
		sl_block *net = sl_sequential(sl_dense(32));
		sl_tensor *x = sl_normal(SL_SHAPE(500, 64), 0, 1);
		sl_tensor *row =
		        single ? sl_one_hot(sl_zeros(SL_SHAPE(1), .dtype = SL_INT32), 64) : sl_ones(SL_SHAPE(1, 64));
		CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
		sl_tensor *samples[] = {sl_concat(SL_ARRAY(sl_tensor *, x, sl_mul_scalar(row, 60)), 2, 0)};
		CHECK_OK(sl_quantize_at(SL_HERE, net, "bytes.onnx", samples, 1, o));
		sl_block *q = sl_import_onnx("bytes.onnx");
		error = mean_difference(net, q, x);
		sl_block_free(q);
		sl_block_free(net);
	}
	return error;
}

/* Rare large values: the percentile leaves out 64 of 32,000, the entropy one, and the others are finer. */
static void test_outliers(void)
{
	const struct sl_quantize_opts extremes = {.method = SL_CALIBRATE_MINMAX},
	                              entropy = {.method = SL_CALIBRATE_ENTROPY};
	const struct sl_quantize_opts percentile = {.method = SL_CALIBRATE_PERCENTILE, .percentile = 99.5};
	double all = error_with(extremes, false), cut = error_with(percentile, false);
	CHECK_SAYING(cut < all / 3, "errors %g, %g", all, cut);
	all = error_with(extremes, true), cut = error_with(entropy, true);
	CHECK_SAYING(cut < all / 1.7, "errors %g, %g", all, cut);
}

static void check_error(enum sl_status got, enum sl_status wanted, const char *says)
{
	CHECK_SAYING(got == wanted && strstr(sl_error_message(), says), "%d: %s", got, sl_error_message());
	sl_error_clear();
}

static void test_errors(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 4)), *none[] = {NULL}, *two[] = {x, x};
		sl_block *net = sl_sequential(sl_dense(3)), *plain = sl_activation_layer(SL_RELU);
		CHECK_OK(sl_initialize(net));
		check_error(sl_quantize(NULL, "y.onnx", &x, 1), SL_EINVAL, "the network is NULL");
		check_error(sl_quantize(net, NULL, &x, 1), SL_EINVAL, "the path is NULL");
		check_error(sl_quantize(net, "y.onnx", &x, 0), SL_EINVAL, "no samples");
		check_error(sl_quantize(net, "y.onnx", none, 1), SL_EINVAL, "a sample is NULL");
		check_error(sl_quantize(net, "y.onnx", &x, 1, .method = SL_CALIBRATE_PERCENTILE), SL_EINVAL,
		            ".percentile");
		check_error(sl_quantize(net, "y.onnx", &x, 1, .percentile = 99), SL_EINVAL, "SL_CALIBRATE_PERCENTILE");
		check_error(sl_quantize(plain, "y.onnx", &x, 1), SL_EUNSUPPORTED, "no convolution or product");
		check_error(sl_quantize_onnx("missing.onnx", "y.onnx", &x, 1), SL_EIO, "missing.onnx");
		CHECK_OK(sl_quantize(net, "y.onnx", two, 2));
		check_error(sl_quantize_onnx("y.onnx", "z.onnx", &x, 1), SL_EUNSUPPORTED, "is quantised already");
		sl_block_free(net);
		sl_block_free(plain);
	}
}

int main(int argc, char **argv)
{
	static const struct slp_test tests[] = {{"ranges by each method", test_methods},
	                                        {"a file", test_file},
	                                        {"rare large values", test_outliers},
	                                        {"errors", test_errors},
	                                        {NULL, NULL}};
	static const struct slp_suite suites[] = {
	        {"quantising", tests, slp_start_with_scratch, slp_stop_with_scratch, NULL, NULL},
	        {0},
	};
	return slp_test_main(argc, argv, suites);
}
