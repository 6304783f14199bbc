/* Parameters: deferred shapes, initialisers, values set by the program, devices. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "capture.h"

/* ---- deferred shapes, initialisers ------------------------------------------------------------------------------- */

static void test_deferred(void)
{
	SL_SCOPE {
		sl_block *d = sl_dense(4);
		sl_param *w = sl_block_find(d, "weight");
		CHECK_NULL(sl_param_data(w), SL_ESTATE, "is not initialised", "sl_initialize", sl_param_name(w));
		CHECK_NULL(sl_forward(d, sl_ones(SL_SHAPE(2, 3, 5))), SL_ESTATE, "is not initialised",
		           sl_param_name(w));
		sl_block_free(d);
		d = sl_dense(4);
		w = sl_block_find(d, "weight");
		CHECK_OK(sl_initialize(d));
		CHECK(sl_shape_equal(sl_param_shape(w), SL_SHAPE(4, -1)));
		CHECK_NULL(sl_param_data(w), SL_ESTATE, "(4, -1)", "first forward", sl_param_name(w));
		CHECK_NULL(sl_param_grad(w), SL_ESTATE, "first forward");
		CHECK_NULL(sl_param_data(NULL), SL_EINVAL, "sl_param_data", "NULL");
		CHECK_NULL(sl_param_use(NULL, sl_ones(SL_SHAPE(1))), SL_EINVAL, "sl_param_use", "NULL");
		CHECK(sl_forward(d, sl_ones(SL_SHAPE(2, 3, 5))) != NULL);
		CHECK(sl_shape_equal(sl_param_shape(w), SL_SHAPE(4, 15)) && sl_param_data(w) != NULL);
		CHECK_NULL(sl_forward(d, sl_ones(SL_SHAPE(2, 7))), SL_ESHAPE, sl_param_name(w), "(4, 15)", "(4, 7)");
		sl_block_free(d);
		d = sl_dense(4, .in_units = 6);
		CHECK_OK(sl_initialize(d));
		CHECK(slp_data(d, "weight") != NULL);
		sl_block_free(d);
	}
}

static void test_initialised_twice(void)
{
	SL_SCOPE {
		sl_block *net = sl_sequential(sl_dense(4, .in_units = 3), sl_dense(2));
		CHECK_OK(sl_initialize(net));
		sl_tensor *before = sl_clone(slp_data(net, "0.weight"));
		CHECK_OK(sl_forward(net, sl_ones(SL_SHAPE(1, 3))) ? SL_OK : sl_error());
		slp_capture_begin();
		CHECK_OK(sl_initialize(net, .init = sl_ones_init()));
		char *said = slp_capture_end();
		CHECK_SAYING(strstr(said, sl_param_name(sl_block_find(net, "0.weight"))) &&
		                     strstr(said, "and 3 more") && strstr(said, ".force"),
		             "%s", said);
		free(said);
		CHECK_SAME(slp_data(net, "0.weight"), before);
		CHECK_OK(sl_initialize(net, .init = sl_ones_init(), .force = true));
		CHECK_ALL(slp_data(net, "0.weight"), 1);
		CHECK_ALL(slp_data(net, "0.bias"), 0);
		CHECK_VALUES(sl_forward(net, sl_ones(SL_SHAPE(1, 3))), 12, 12);
		sl_block_free(net);
	}
}

/* Weight (units, inputs) drawn by an initialiser: the largest, the mean, the deviation. */
static void draw(struct sl_initializer init, double *largest, double *mean, double *deviation)
{
	SL_SCOPE {
		sl_block *d = sl_dense(400, .in_units = 300, .weight_init = init);
		CHECK_OK(sl_initialize(d, .init = sl_zeros_init()));
		sl_tensor *w = slp_data(d, "weight");
		*largest = sl_item(sl_max(sl_abs(w)));
		*mean = sl_item(sl_mean(w));
		*deviation = sqrt(sl_item(sl_mean(sl_square(w))) - *mean * *mean);
		sl_block_free(d);
	}
}

static void check_uniform(struct sl_initializer init, double bound)
{
	double largest, mean, deviation;
	draw(init, &largest, &mean, &deviation);
	CHECK_SAYING(largest <= bound * 1.000001 && largest > 0.999 * bound, "bound %g, not %g", largest, bound);
	CHECK_SAYING(fabs(mean) < 0.01 * bound, "mean %g", mean);
	CHECK_SAYING(fabs(deviation / (bound / sqrt(3)) - 1) < 0.01, "deviation %g", deviation);
}

static void check_normal(struct sl_initializer init, double sigma)
{
	double largest, mean, deviation;
	draw(init, &largest, &mean, &deviation);
	CHECK_SAYING(largest > 3.5 * sigma && largest < 6 * sigma, "largest %g", largest);
	CHECK_SAYING(fabs(mean) < 0.02 * sigma, "mean %g", mean);
	CHECK_SAYING(fabs(deviation / sigma - 1) < 0.01, "deviation %g, not %g", deviation, sigma);
}

static void test_initialisers(void)
{
	check_uniform(sl_uniform_init(0.3), 0.3);
	check_normal(sl_normal_init(0.05), 0.05);
	check_uniform(sl_xavier_init(), 0.0925820099772552); /* torch.nn.init.xavier_uniform_: √(6 / 700) */
	check_normal(sl_he_init(), 0.0816496580927726);      /* kaiming_normal_: √2 / √300 */
	struct sl_initializer he = sl_he_init(), xavier = sl_xavier_init();
	he.gaussian = false;
	he.fan = SL_FAN_OUT;
	check_uniform(he, 0.122474487139159); /* kaiming_uniform_(mode="fan_out"): √6 / √400 */
	xavier.gaussian = true;
	xavier.value = 2; /* xavier_normal_ has √(2 / 700) = √(1 / 350) */
	check_normal(xavier, 0.0755928946018454);
}

static void test_default_initialiser(void)
{
	SL_SCOPE {
		sl_block *d = sl_dense(100, .in_units = 100, .bias_init = sl_ones_init());
		CHECK_OK(sl_initialize(d));
		double largest = sl_item(sl_max(sl_abs(slp_data(d, "weight"))));
		CHECK_SAYING(largest <= 0.07 && largest > 0.069, "%g", largest);
		CHECK_ALL(slp_data(d, "bias"), 1);
		sl_block_free(d);
		struct slp_scaled *s = slp_scaled_new(&(int){0});
		sl_param *vector = sl_block_param(&s->base, "vector", SL_SHAPE(3));
		CHECK_MISTAKE(sl_initialize(&s->base, .init = sl_xavier_init()), SL_ESHAPE, sl_param_name(vector),
		              "Xavier");
		sl_block_free(&s->base);
	}
}

/* Places of a kernel count for fans. */
static void test_fans_of_kernels(void)
{
	SL_SCOPE {
		sl_block *c = sl_conv2d_layer(200, .kernel = {3, 5}, .in_channels = 60, .weight_init = sl_he_init());
		CHECK_OK(sl_initialize(c));
		double deviation = sqrt(sl_item(sl_mean(sl_square(slp_data(c, "weight")))));
		CHECK_SAYING(fabs(deviation / 0.0471404520791032 - 1) < 0.01, "%g, not √2 / √(60·15)", deviation);
		sl_block_free(c);
	}
}

static void test_setting(void)
{
	SL_SCOPE {
		sl_block *d = sl_dense(2), *other = sl_dense(2, .in_units = 3);
		sl_param *w = sl_block_find(d, "weight"), *v = sl_block_find(other, "weight");
		CHECK_MISTAKE(sl_param_set(w, sl_ones(SL_SHAPE(3, 3))), SL_ESHAPE, "(2, -1)", "(3, 3)");
		CHECK_OK(sl_param_set(w, sl_full(SL_SHAPE(2, 3), 5)));
		CHECK_ALL(sl_param_data(w), 5);
		CHECK(sl_param_grad(w) != NULL);
		CHECK_OK(sl_initialize(other));
		sl_tensor *is = sl_param_data(v);
		CHECK_MISTAKE(sl_param_set(v, sl_ones(SL_SHAPE(2, 3), .dtype = SL_FLOAT64)), SL_EDTYPE, "float64");
		SL_RECORD
			CHECK_OK(sl_param_set(v, sl_full(SL_SHAPE(2, 3), 7)));
		CHECK(sl_param_data(v) == is);
		CHECK_ALL(is, 7);
		sl_block_free(d);
		sl_block_free(other);
	}
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static int start_two_teams(void)
{
	return sl_init(&(struct sl_config){.teams = 2}) != SL_OK;
}

static void test_devices(void)
{
	SL_SCOPE {
		const sl_device first[] = {sl_cpu(0)}, both[] = {sl_cpu(0), sl_cpu(1)};
		sl_block *d = sl_dense(2, .in_units = 3);
		sl_param *w = sl_block_find(d, "weight");
		sl_tensor *there = sl_ones(SL_SHAPE(1, 3), .device = sl_cpu(1)),
		          *here = sl_ones(SL_SHAPE(1, 3), .device = sl_cpu(0));
		CHECK_OK(sl_initialize(d, .devices = first, .ndevices = 1));
		CHECK_NULL(sl_param_data(w, SL_DEVICE_CPU, 1), SL_EDEVICE, sl_param_name(w),
		           "not initialised on cpu:1 but on cpu:0");
		CHECK_NULL(sl_forward(d, there), SL_EDEVICE, sl_param_name(w), "not initialised on cpu:1");
		CHECK(sl_param_data(w, SL_DEVICE_CPU, 0) == sl_param_data(w));
		CHECK_OK(sl_initialize(d, .devices = both, .ndevices = 2, .force = true));
		sl_tensor *copy = sl_param_data(w, SL_DEVICE_CPU, 1);
		CHECK(copy && sl_device_equal(sl_tensor_device(copy), sl_cpu(1)));
		CHECK_SAME(sl_forward(d, there), sl_forward(d, here));
		CHECK_MISTAKE(sl_initialize(d, .devices = (const sl_device[]){sl_cpu(5)}, .ndevices = 1, .force = true),
		              SL_EDEVICE, "cpu:5");
		CHECK_MISTAKE(sl_initialize(d, .devices = both), SL_EINVAL, ".ndevices");
		sl_block_free(d);
	}
}

static const struct slp_test tests[] = {
        {"deferred", test_deferred},
        {"initialised twice", test_initialised_twice},
        {"initialisers", test_initialisers},
        {"default initialiser", test_default_initialiser},
        {"fans of kernels", test_fans_of_kernels},
        {"setting", test_setting},
        {NULL, NULL},
};

static const struct slp_test device_tests[] = {{"devices", test_devices}, {NULL, NULL}};

static const struct slp_suite suites[] = {
        {"param", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {"param on two devices", device_tests, start_two_teams, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
