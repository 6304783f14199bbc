/* Shards that go forward together: synchronised batch normalisation gives what the uncut batch gives, in both
 * directions and in its running statistics; what cannot go together is refused. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"

enum { MOST = 4, ROWS = 13, PARAMS = 32 };
static const sl_device teams[2] = {{SL_DEVICE_CPU, 0}, {SL_DEVICE_CPU, 1}};

static void start(const char *sched)
{
	slp_begin((struct sl_config){.teams = 2, .sched = sched, .seed = 1});
}

/* Every kind of block that passes shards on.  A bias before a normalisation would have a gradient of nothing but
 * rounding. */
static sl_block *net_of(bool synchronised)
{
	sl_block *body = sl_sequential(sl_conv2d_layer(4, .kernel = {3}, .pad = {1, 1}, .no_bias = true),
	                               sl_batch_norm_layer(.synchronised = synchronised, .momentum = 0.5, .eps = 1e-3));
	sl_block *shortcut = sl_sequential(sl_conv2d_layer(4, .kernel = {1}, .no_bias = true),
	                                   sl_batch_norm_layer(.synchronised = synchronised));
	return sl_sequential(sl_conv2d_layer(3, .kernel = {3}, .no_bias = true),
	                     sl_batch_norm_layer(.synchronised = synchronised), sl_activation_layer(SL_RELU),
	                     sl_residual(body, shortcut, SL_RELU), sl_dense(3));
}

static sl_block *initialised(bool synchronised, enum sl_dtype dtype, sl_shape input)
{
	sl_block *net = net_of(synchronised);
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.3), .devices = teams, .ndevices = 2, .dtype = dtype));
	sl_forward(net, sl_zeros(input, .dtype = dtype)); /* shapes; not in training */
	return net;
}

static int params_of(sl_block *net, sl_param **params)
{
	int n = sl_block_params(net, params, PARAMS);
	CHECK(n <= PARAMS);
	return n;
}

static void copy_params(sl_block *from, sl_block *to)
{
	sl_param *a[PARAMS], *b[PARAMS];
	int n = params_of(from, a);
	CHECK(params_of(to, b) == n);
	for (int i = 0; i < n; i++) CHECK_OK(sl_param_set(b[i], sl_param_data(a[i])));
}

/* Each element of t is that of u, to a part of the largest. */
static void check_close(const char *what, int i, sl_tensor *t, sl_tensor *u, double tolerance)
{
	SL_SCOPE {
		t = sl_cast(t, SL_FLOAT64);
		u = sl_cast(sl_copy_to(u, sl_cpu(0)), SL_FLOAT64);
		double off = sl_item(sl_max(sl_abs(sl_sub(sl_copy_to(t, sl_cpu(0)), u)))),
		       most = sl_item(sl_max(sl_abs(u)));
		CHECK_SAYING(off <= tolerance * (most > 1e-3 ? most : 1e-3), "%s %d is off by %g, the largest is %g",
		             what, i, off, most);
	}
}

/* ---- one pass, forward and back ---------------------------------------------------------------------------------- */

/* Weights that make every output count differently. */
static sl_tensor *weighted(sl_tensor *y, sl_tensor *weights)
{
	return sl_sum(sl_mul(sl_square(y), weights));
}

static void check_params(sl_block *cut, sl_block *whole, double tolerance)
{
	sl_param *a[PARAMS], *b[PARAMS];
	int n = params_of(cut, a);
	params_of(whole, b);
	for (int i = 0; i < n; i++) {
		check_close(sl_param_name(b[i]), i, sl_param_data(a[i]), sl_param_data(b[i]), tolerance);
		if (strstr(sl_param_name(b[i]), "running")) continue; /* has no gradient */
		check_close("gradient of parameter", i, sl_param_grad(a[i]), sl_param_grad(b[i]), tolerance);
	}
}

static void check_pass(enum sl_dtype dtype, int shards, double tolerance)
{
	const double weights[MOST] = {4, 1, 3, 2};
	sl_device where[MOST];
	sl_shape shape = SL_SHAPE(ROWS, 2, 6, 6);
	for (int i = 0; i < shards; i++) where[i] = teams[i * 2 / shards];
	sl_block *cut = initialised(true, dtype, shape), *whole = initialised(false, dtype, shape);
	copy_params(whole, cut);
	/* Far from zero and each row elsewhere: shards have other means and deviations than the batch. */
	sl_tensor *x = sl_mul(sl_add_scalar(sl_normal(shape, 0, 1, .dtype = dtype), 3),
	                      sl_reshape(sl_arange(1, ROWS + 1, 1, .dtype = dtype), SL_SHAPE(ROWS, 1, 1, 1)));
	sl_tensor *x2 = sl_clone(x), *w = sl_normal(SL_SHAPE(ROWS, 3), 0, 1, .dtype = dtype), *expected, *loss;
	sl_attach_grad(x);
	sl_attach_grad(x2);
	SL_RECORD {
		expected = sl_forward(whole, x);
		loss = weighted(expected, w);
	}
	CHECK_OK(sl_backward(loss));
	sl_tensor *xs[MOST], *ws[MOST], *ys[MOST], *losses[MOST];
	CHECK_OK(sl_split_and_load(w, where, shards, ws, .weights = weights));
	SL_RECORD {
		CHECK_OK(sl_split_and_load(x2, where, shards, xs, .weights = weights));
		CHECK_OK(sl_forward_shards(cut, shards, xs, ys));
		for (int i = 0; i < shards; i++) losses[i] = weighted(ys[i], ws[i]);
	}
	CHECK_OK(sl_backward_heads(losses, shards));
	int64_t row = 0;
	for (int i = 0; i < shards; i++) {
		int64_t rows = sl_tensor_shape(xs[i]).dim[0];
		CHECK(sl_device_equal(sl_tensor_device(ys[i]), where[i]));
		check_close("output", i, ys[i], sl_rows(expected, row, row + rows), tolerance);
		row += rows;
	}
	CHECK(row == ROWS);
	check_close("gradient of x", 0, sl_grad(x2), sl_grad(x), tolerance);
	check_params(cut, whole, tolerance);
	/* Not in training, each shard goes by itself. */
	check_close("inference", 0, sl_forward(cut, xs[0]),
	            sl_rows(sl_forward(whole, x), 0, sl_tensor_shape(xs[0]).dim[0]), tolerance);
	sl_block_free(cut);
	sl_block_free(whole);
}

static void test_pass(void)
{
	start(NULL);
	for (int shards = 1; shards <= MOST; shards++)
		SL_SCOPE {
			check_pass(SL_FLOAT64, shards, 1e-11);
			check_pass(SL_FLOAT32, shards, 2e-4);
		}
	slp_end_well();
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

enum { ROUNDS = 4 };

/* The losses of whole steps, and the network's running statistics at the end. */
static void train(const char *sched, bool synchronised, int shards, double *curve)
{
	start(sched);
	SL_SCOPE {
		sl_shape shape = SL_SHAPE(ROWS, 2, 6, 6);
		sl_block *net = initialised(synchronised, SL_FLOAT64, shape);
		sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1, .momentum = 0.5));
		sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer);
		sl_tensor *x = sl_normal(shape, 1, 1, .dtype = SL_FLOAT64),
		          *y = sl_cast(sl_uniform(SL_SHAPE(ROWS), 0, 3), SL_INT32);
		sl_tensor *xs[MOST], *ys[MOST], *losses[MOST];
		sl_device where[MOST];
		for (int i = 0; i < shards; i++) where[i] = teams[i * 2 / shards];
		CHECK_OK(sl_split_and_load(x, where, shards, xs, .uneven = true));
		CHECK_OK(sl_split_and_load(y, where, shards, ys, .uneven = true));
		for (int round = 0; round < ROUNDS; round++) {
			if (shards > 1)
				CHECK(sl_step_run(step, .in = xs, .targets = ys, .losses = losses, .shards = shards) !=
				      NULL);
			else losses[0] = sl_step_run(step, x, y, NULL);
			curve[round] = 0;
			for (int i = 0; i < shards; i++) curve[round] += sl_item(sl_sum(losses[i]));
		}
		curve[ROUNDS] = sl_item(sl_sum(slp_data(net, "1.running_var")));
		CHECK(sl_trainer_steps(trainer) == ROUNDS);
		sl_step_free(step);
		sl_trainer_free(trainer);
		sl_block_free(net);
	}
	slp_end_well();
}

static void compare(const double *curve, const double *expected, double tolerance, const char *what)
{
	for (int i = 0; i <= ROUNDS; i++)
		CHECK_SAYING(fabs(curve[i] - expected[i]) <= tolerance * fabs(expected[i]),
		             "%s: figure %d is %.17g, not %.17g", what, i, curve[i], expected[i]);
}

static void test_steps(void)
{
	static const char *const policies[] = {"lws", "eager", "dmda", "prio"};
	double whole[ROUNDS + 1], one[ROUNDS + 1], cut[ROUNDS + 1], again[ROUNDS + 1];
	train(NULL, false, 1, whole);
	train(NULL, true, 1, one);
	compare(one, whole, 0, "a whole batch");
	CHECK(whole[ROUNDS - 1] < 0.99 * whole[0]);
	train("lws", true, MOST, cut);
	compare(cut, whole, 1e-10, "four shards");
	for (size_t p = 1; p < sizeof policies / sizeof *policies; p++) {
		train(policies[p], true, MOST, again);
		compare(again, cut, 0, policies[p]);
	}
	train("lws", false, MOST, again);
	CHECK(fabs(again[0] / whole[0] - 1) > 1e-6); /* each by itself is something else */
}

/* ---- blocks of one's own, and what cannot be --------------------------------------------------------------------- */

struct twice {
	sl_block base;
	sl_block *norm;
};

static sl_tensor *twice_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	return nin == 1 ? sl_mul_scalar(sl_forward(((struct twice *)self)->norm, in[0]), 2) : NULL;
}

static enum sl_status twice_shards(sl_block *self, int n, sl_tensor *const *x, sl_tensor **y)
{
	enum sl_status s = sl_forward_shards(((struct twice *)self)->norm, n, x, y);
	for (int i = 0; s == SL_OK && i < n; i++) y[i] = sl_mul_scalar(y[i], 2);
	return s;
}

static enum sl_status forget_shards(sl_block *self, int n, sl_tensor *const *x, sl_tensor **y)
{
	(void)self;
	for (int i = 0; i < n; i++) y[i] = i ? NULL : x[i];
	return SL_OK;
}

static void test_own(void)
{
	start(NULL);
	SL_SCOPE {
		struct twice *t = calloc(1, sizeof *t);
		CHECK_OK(sl_block_init(&t->base, "Twice", twice_forward, NULL));
		t->norm = sl_block_add(&t->base, "norm", sl_batch_norm_layer(.synchronised = true, .momentum = 0.5));
		sl_block *net = sl_sequential(&t->base);
		CHECK_OK(sl_initialize(net, .devices = teams, .ndevices = 2));
		sl_tensor *x = sl_reshape(sl_from(((float[]){-1, -1, 1, 1}), SL_SHAPE(4)), SL_SHAPE(4, 1)), *xs[2],
		          *ys[2];
		CHECK_OK(sl_split_and_load(x, teams, 2, xs));
		SL_RECORD {
			CHECK_MISTAKE(sl_forward_shards(net, 2, xs, ys), SL_ESTATE, SL_HERE, "batchnorm", "twice",
			              "forward_shards");
			CHECK(!ys[0] && !ys[1]);
			t->base.forward_shards = twice_shards;
			CHECK_OK(sl_forward_shards(net, 2, xs, ys));
			for (int i = 0; i < 2; i++) CHECK(fabs(sl_item(sl_max(ys[i])) - (i ? 2 : -2)) < 1e-4);
			CHECK_VALUES(sl_cast(slp_data(net, "0.norm.running_var"), SL_FLOAT64), 1);
			t->base.forward_shards = forget_shards;
			CHECK_MISTAKE(sl_forward_shards(net, 2, xs, ys), SL_EINVAL, "twice", "no result 1");
		}
		sl_block_free(net);
	}
	slp_end_well();
}

static void test_refused(void)
{
	start(NULL);
	SL_SCOPE {
		sl_shape shape = SL_SHAPE(ROWS, 2, 6, 6);
		sl_block *net = initialised(true, SL_FLOAT32, shape);
		sl_tensor *x = sl_ones(shape), *xs[2], *ys[2];
		CHECK_OK(sl_split_and_load(x, teams, 2, xs, .uneven = true));
		SL_RECORD {
			CHECK_NULL(sl_forward(net, xs[0]), SL_ESTATE, "synchronised", "sl_forward_shards",
			           "sl_step_run");
			CHECK_MISTAKE(sl_forward_shards(net, 0, xs, ys), SL_EINVAL, "no shard");
			CHECK_MISTAKE(sl_forward_shards(NULL, 2, xs, ys), SL_EINVAL, "block is NULL");
			CHECK_MISTAKE(sl_forward_shards(net, 2, ((sl_tensor *[]){xs[0], NULL}), ys), SL_EINVAL,
			              "shard is NULL");
			CHECK_OK(sl_hybridize(net));
			CHECK_NULL(sl_forward(net, xs[0]), SL_ESTATE, "sl_forward_shards");
			CHECK_MISTAKE(sl_forward_shards(net, 2, xs, ys), SL_ESTATE, "hybridised", ".off = true");
			CHECK_OK(sl_hybridize(net, .off = true));
			CHECK_OK(sl_hybridize(sl_block_child(net, 0))); /* no such layer in it */
			CHECK_OK(sl_forward_shards(net, 2, xs, ys));
			xs[1] = sl_place(sl_zeros(SL_SHAPE(3, 5, 6, 6)), teams[1]);
			CHECK_MISTAKE(sl_forward_shards(net, 2, xs, ys), SL_ESHAPE, "conv");
		}
		sl_block_free(net);
	}
	slp_end_well();
}

int main(int argc, char **argv)
{
	static const struct slp_test together[] = {
	        {"pass", test_pass}, {"steps", test_steps}, {"own", test_own}, {"refused", test_refused}, {NULL, NULL}};
	static const struct slp_suite suites[] = {{.name = "together", .tests = together}, {0}};
	return slp_test_main(argc, argv, suites);
}
