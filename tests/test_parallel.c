/* Several devices: shards of a batch, gradients summed over devices, owners of parameters, steps on shards; the
 * same numbers whatever the number of devices and the policy. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <starling.h>

#include "autograd/autograd.h"
#include "blocks.h"
#include "nn/nn.h"
#include "runtime/task/segment.h"
#include "train/step.h"
#include "train/train.h"

enum { MOST = 4 };
static const sl_device teams[MOST] = {{SL_DEVICE_CPU, 0}, {SL_DEVICE_CPU, 1}, {SL_DEVICE_CPU, 2}, {SL_DEVICE_CPU, 3}};

static void start(int count, const char *sched)
{
	slp_begin((struct sl_config){.teams = count, .sched = sched, .seed = 1});
}

/* ---- shards ------------------------------------------------------------------------------------------------------ */

static void test_equal(void)
{
	start(2, NULL);
	SL_SCOPE {
		sl_tensor *x = sl_reshape(sl_arange(0, 12, 1), SL_SHAPE(6, 2)), *parts[2];
		CHECK_OK(sl_split_and_load(x, teams, 2, parts));
		CHECK_VALUES(parts[0], 0, 1, 2, 3, 4, 5);
		CHECK_VALUES(parts[1], 6, 7, 8, 9, 10, 11);
		CHECK(sl_device_equal(sl_tensor_device(parts[1]), sl_cpu(1)));
		CHECK(parts[0]->storage == x->storage && parts[1]->storage == x->storage); /* views */
		sl_fill_(parts[1], 5);
		CHECK_VALUES(x, 0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5);
	}
	slp_end_well();
}

static void test_uneven(void)
{
	start(MOST, NULL);
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(10, 1)), *parts[MOST];
		const double weights[] = {3, 1, 1e-9, 1};
		CHECK_MISTAKE(sl_split_and_load(x, teams, MOST, parts), SL_ESHAPE, SL_HERE, "10 rows", "equally over 4",
		              ".uneven");
		CHECK(!parts[0] && !parts[3]);
		CHECK_OK(sl_split_and_load(x, teams, MOST, parts, .uneven = true));
		int64_t sum = 0;
		for (int i = 0; i < MOST; i++) {
			int64_t rows = sl_tensor_shape(parts[i]).dim[0];
			CHECK(rows == 2 || rows == 3);
			sum += rows;
		}
		CHECK(sum == 10);
		CHECK_OK(sl_split_and_load(x, teams, MOST, parts, .weights = weights));
		const int expected[] = {6, 2, 1, 1};
		for (int i = 0; i < MOST; i++) CHECK(sl_tensor_shape(parts[i]).dim[0] == expected[i]);
		CHECK_MISTAKE(sl_split_and_load(x, teams, 2, parts, .weights = (double[]){1, NAN}), SL_EINVAL,
		              ".weights");
		CHECK_MISTAKE(sl_split_and_load(x, teams, 2, NULL), SL_EINVAL, "parts is NULL", SL_HERE);
		CHECK_MISTAKE(sl_split_and_load(sl_rows(x, 0, 3), teams, MOST, parts, .uneven = true), SL_ESHAPE,
		              "3 rows are too few");
		CHECK_MISTAKE(sl_split_and_load(x, ((sl_device[]){sl_cpu(0), sl_cpu(9)}), 2, parts), SL_EDEVICE,
		              "cpu:9");
		CHECK(!parts[0]);
	}
	slp_end_well();
}

/* The way through another device and back gives the gradient of doing nothing. */
static void test_place(void)
{
	start(2, NULL);
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *loss = NULL;
		SL_RECORD {
			sl_tensor *there = sl_place(sl_square(sl_place(x, sl_cpu(0))), sl_cpu(1));
			CHECK(sl_device_equal(sl_tensor_device(there), sl_cpu(1)));
			loss = sl_sum(sl_mul(there, there));
		}
		CHECK_OK(sl_backward(loss));
		CHECK_VALUES(sl_grad(x), 4, 32, 108);
	}
	slp_end_well();
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

/* Gradients of a parameter that lies wherever it is wanted, from devices in turn. */
static void test_sum(void)
{
	start(MOST, NULL);
	SL_SCOPE {
		sl_tensor *w = sl_ones(SL_SHAPE(2), .device = sl_auto()), *losses[MOST];
		sl_attach_grad(w);
		for (int round = 0; round < 2; round++) {
			SL_RECORD
				for (int i = 0; i < MOST; i++)
					losses[i] = sl_mul(w, sl_full(SL_SHAPE(2), pow(10, i), .device = teams[i]));
			CHECK_OK(sl_backward(losses[0], losses[1], losses[2], losses[3]));
			CHECK_ALL(sl_grad(w), 1111);
		}
		sl_attach_grad(w, .req = SL_GRAD_ADD);
		for (int round = 0; round < 2; round++) {
			SL_RECORD
				for (int i = 0; i < 2; i++)
					losses[i] =
					        sl_mul(sl_mul(w, w), sl_full(SL_SHAPE(2), i + 1, .device = teams[i]));
			CHECK_OK(sl_backward(losses[0], losses[1]));
		}
		CHECK_ALL(sl_grad(w), 12);
		sl_tensor *h = NULL; /* no leaf, and used on two devices */
		sl_attach_grad(w);
		SL_RECORD {
			h = sl_square(w);
			for (int i = 0; i < 2; i++)
				losses[i] = sl_mul(h, sl_full(SL_SHAPE(2), i + 1, .device = teams[i]));
		}
		CHECK_OK(sl_backward(losses[0], losses[1]));
		CHECK_ALL(sl_grad(w), 6);
	}
	slp_end_well();
}

/* ---- training ---------------------------------------------------------------------------------------------------- */

static sl_block *plain_net(void)
{
	return sl_sequential(sl_conv2d_layer(4, .kernel = {3}, .activation = SL_RELU), sl_max_pool2d_layer(2),
	                     sl_dense(16, .activation = SL_RELU), sl_dense(3));
}

static sl_block *norm_net(void)
{
	return sl_sequential(
	        sl_conv2d_layer(4, .kernel = {3}), sl_batch_norm_layer(), sl_activation_layer(SL_RELU),
	        sl_residual(sl_sequential(sl_conv2d_layer(4, .kernel = {3}, .pad = {1, 1}), sl_batch_norm_layer()),
	                    NULL, SL_RELU),
	        sl_global_avg_pool2d_layer(), sl_dense(3));
}

enum how { BY_HAND, HYBRID, STEPS, HOW_COUNT };
static const char *const how_names[] = {"by hand", "hybrid", "steps"};

struct course {
	sl_block *(*net)(void);
	enum how how;
	int devices, shards;
	const char *sched;
	struct sl_optimizer optimizer;
};

enum { ROUNDS = 4, ROWS = 24 };

struct shard_step {
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
	sl_device where[MOST];
};

static void make_step(const struct course *c, struct shard_step *s, sl_tensor *x, sl_tensor *y, sl_tensor **losses)
{
	sl_tensor *xs[MOST], *ys[MOST];
	CHECK_OK(sl_split_and_load(x, s->where, c->shards, xs));
	CHECK_OK(sl_split_and_load(y, s->where, c->shards, ys));
	if (c->how == STEPS) {
		CHECK(sl_step_run(s->step, .in = xs, .targets = ys, .losses = losses, .shards = c->shards) != NULL);
		return;
	}
	SL_RECORD
		for (int i = 0; i < c->shards; i++)
			losses[i] = sl_softmax_cross_entropy(sl_forward(s->net, xs[i]), ys[i]);
	CHECK_OK(sl_backward_heads_at(SL_HERE, losses, c->shards, (struct sl_backward_opts){0}));
	CHECK_OK(sl_trainer_step(s->trainer, ROWS));
}

/* The losses of each round, and behind them the sum of all parameters' squares. */
static void train(const struct course *c, double *curve)
{
	start(c->devices, c->sched);
	struct shard_step s = {.net = c->net()};
	for (int i = 0; i < c->shards; i++) s.where[i] = teams[i * c->devices / c->shards];
	CHECK_OK(sl_initialize(s.net, .init = sl_normal_init(0.3), .devices = teams, .ndevices = c->devices));
	s.trainer = sl_trainer_new(s.net, c->optimizer);
	if (c->how == HYBRID) sl_hybridize(s.net);
	s.step = sl_step_compile(s.net, sl_softmax_cross_entropy_at, s.trainer);
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(ROWS, 1, 8, 8), 0, 1), *losses[MOST];
		sl_tensor *y = sl_cast(sl_uniform(SL_SHAPE(ROWS), 0, 3), SL_INT32);
		SL_RECORD
			SL_PAUSE
				sl_forward(s.net, x); /* shapes */
		for (int round = 0; round < ROUNDS; round++) {
			make_step(c, &s, x, y, losses);
			curve[round] = 0;
			for (int i = 0; i < c->shards; i++)
				curve[round] += sl_item(sl_sum(sl_cast(losses[i], SL_FLOAT64)));
		}
		sl_param *params[64];
		int n = sl_block_params(s.net, params, 64);
		curve[ROUNDS] = 0;
		for (int i = 0; i < n; i++)
			if (!params[i]->opts.no_grad)
				curve[ROUNDS] += sl_item(sl_sum(sl_square(sl_param_data(params[i]))));
		CHECK(sl_trainer_steps(s.trainer) == ROUNDS);
	}
	sl_step_free(s.step);
	sl_trainer_free(s.trainer);
	sl_block_free(s.net);
	slp_end_well();
}

static void compare(const struct course *c, const double *expected, double tolerance)
{
	double curve[ROUNDS + 1];
	train(c, curve);
	for (int i = 0; i <= ROUNDS; i++)
		CHECK_SAYING(fabs(curve[i] - expected[i]) <= tolerance * fabs(expected[i]),
		             "%s, %d shards on %d devices, %s: figure %d is %.9g, not %.9g", how_names[c->how],
		             c->shards, c->devices, c->sched ? c->sched : "default", i, curve[i], expected[i]);
	CHECK(curve[ROUNDS - 1] < 0.99 * curve[0]); /* it learns */
}

/* However many devices share the shards, and however they are trained: the same, to rounding. */
static void test_curves(void)
{
	struct sl_optimizer optimizers[] = {sl_sgd(.lr = 0.05), sl_sgd(.lr = 0.03, .momentum = 0.5),
	                                    sl_adam(.lr = 0.01), sl_sgd(.lr = 0.1, .clip_norm = 0.5)};
	for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++) {
		double whole[ROUNDS + 1], four[ROUNDS + 1];
		struct course c = {plain_net, BY_HAND, 1, 1, NULL, optimizers[o]};
		train(&c, whole);
		c.shards = 4;
		train(&c, four);
		compare(&c, whole, 1e-5);
		for (c.how = 0; c.how < HOW_COUNT; c.how++)
			for (c.devices = o ? 2 : 1; c.devices <= (o ? 2 : MOST); c.devices *= 2)
				compare(&c, four, c.how == BY_HAND && c.devices > 1 ? 1e-6 : 1e-5);
	}
}

static void test_norm(void)
{
	double by_hand[ROUNDS + 1];
	struct course c = {norm_net, BY_HAND, 4, 4, NULL, sl_sgd(.lr = 0.5)};
	train(&c, by_hand);
	for (c.how = 0; c.how < HOW_COUNT; c.how++)
		for (c.devices = 1; c.devices <= MOST; c.devices *= 2) compare(&c, by_hand, 1e-5);
}

/* Parameters of several buckets: sums and updates begin before the backward pass has ended. */
static sl_block *wide_net(void)
{
	return sl_sequential(sl_dense(1024, .activation = SL_RELU), sl_dense(512, .activation = SL_RELU),
	                     sl_dense(1024), sl_dense(3));
}

static void test_buckets(void)
{
	double by_hand[ROUNDS + 1], steps[ROUNDS + 1];
	struct course c = {wide_net, BY_HAND, 2, 4, NULL, sl_adam(.lr = 0.001)};
	train(&c, by_hand);
	c.how = STEPS;
	for (c.devices = 1; c.devices <= MOST; c.devices *= 2) compare(&c, by_hand, 1e-5);
	c.devices = 2;
	train(&c, steps);
	c.sched = "dmdas";
	compare(&c, steps, 0);
}

static void test_policies(void)
{
	static const char *const policies[] = {
		"lws",
		"eager",
		"dmda",
		"dmdas",
		"prio",
#if SLP_STARPU_1_4
		"heteroprio",
#endif
	};
	double first[HOW_COUNT][ROUNDS + 1];
	for (size_t p = 0; p < sizeof policies / sizeof *policies; p++)
		for (enum how how = 0; how < HOW_COUNT; how++) {
			struct course c = {norm_net, how, 2, 4, policies[p], sl_sgd(.lr = 0.5, .momentum = 0.5)};
			if (!p) train(&c, first[how]);
			compare(&c, first[how], 0);
		}
}

/* ---- shards on auto ---------------------------------------------------------------------------------------------- */

enum { TRIED = 24 }; /* steps of each way */

struct auto_step {
	sl_step *step;
	sl_device where[MOST];
	int shards;
};

static void make_auto_step(struct auto_step *s, uint64_t seed)
{
	sl_tensor *xs[MOST], *ys[MOST], *losses[MOST], *output[MOST];
	sl_seed(seed);
	sl_tensor *x = sl_normal(SL_SHAPE(ROWS, 1, 8, 8), 0, 1);
	sl_tensor *y = sl_cast(sl_uniform(SL_SHAPE(ROWS), 0, 3), SL_INT32);
	CHECK_OK(sl_split_and_load(x, s->where, s->shards, xs));
	CHECK_OK(sl_split_and_load(y, s->where, s->shards, ys));
	int shards = s->shards > 1 ? s->shards : 0; /* 0: the whole batch in one program with the update */
	CHECK(sl_step_run(s->step, .in = xs, .targets = ys, .losses = losses, .output = output, .shards = shards) !=
	      NULL);
	for (int i = 0; i < s->shards; i++) {
		CHECK(sl_tensor_device(losses[i]).kind == SL_DEVICE_AUTO);
		CHECK(sl_tensor_device(output[i]).kind == SL_DEVICE_AUTO);
	}
}

static double sum_of_params(const sl_block *net)
{
	sl_param *params[16];
	double sum = 0;
	int n = sl_block_params(net, params, 16);
	for (int i = 0; i < n; i++) sum += sl_item(sl_sum(sl_cast(sl_param_data(params[i]), SL_FLOAT64)));
	return sum;
}

/* The sum of all parameters' values after steps in so many shards on auto. */
static double train_on_auto(const char *sched, int shards, int ways)
{
	struct auto_step s = {.shards = shards};
	double sum = 0;
	start(MOST, sched);
	for (int i = 0; i < MOST; i++) s.where[i] = sl_auto();
	sl_block *net = plain_net();
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.3), .devices = s.where, .ndevices = 1));
	sl_trainer *trainer = sl_trainer_new(net, sl_adam(.lr = 0.01));
	s.step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer);
	for (int round = 0; round < ways * TRIED + 4; round++)
		SL_SCOPE
			make_auto_step(&s, 1 + (uint64_t)round);
	CHECK(sl_autotune_decided(s.step->deals) == !sched);
	for (int way = 0; way < ways && !sched; way++) CHECK(isfinite(sl_autotune_seconds(s.step->deals, way)));
	SL_SCOPE
		sum = sum_of_params(net);
	sl_step_free(s.step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
	return sum;
}

/* Without a policy's name they run in several ways until the fastest is known, with the same bits: where the policy places
 * them, and dealt to 4, 2 and 1 teams; a whole batch where the policy places it, and on one team. */
static void test_auto(void)
{
	static const struct {
		int shards, ways;
	} cases[] = {{MOST, 4}, {1, 2}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double dealt = train_on_auto(NULL, cases[i].shards, cases[i].ways);
		double placed = train_on_auto("lws", cases[i].shards, cases[i].ways);
		CHECK_SAYING(dealt == placed,
		             "%d shards: %.17g where they are dealt, %.17g where the policy places them",
		             cases[i].shards, dealt, placed);
	}
}

/* ---- owners ------------------------------------------------------------------------------------------------------ */

static const char *const paths[] = {"0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias"};
enum { PARAMS = sizeof paths / sizeof *paths };

/* Three buckets of a weight and a bias, dealt out in turn. */
static void check_dealt(sl_block *net, sl_trainer *t)
{
	const sl_device *owners = slp_trainer_owners(t);
	int per[2] = {0, 0};
	for (int i = 0; i < PARAMS; i++) {
		sl_tensor *data = sl_block_find(net, paths[i])->data;
		CHECK(owners[i].kind == SL_DEVICE_CPU);
		per[owners[i].index == 1]++;
		CHECK(sl_tensor_device(data).kind == SL_DEVICE_AUTO && sl_device_equal(data->var->owner, owners[i]));
		CHECK(slp_trainer_grad_buckets(t)[i] == 2 - i / 2);
	}
	CHECK(per[0] == 4 && per[1] == 2);
}

/* Buckets lie together, but where somebody holds a part. */
static void check_together(sl_block *net, const sl_tensor *held)
{
	for (int i = 0; i < PARAMS; i += 2) {
		const sl_tensor *weight = sl_block_find(net, paths[i])->data,
		                *bias = sl_block_find(net, paths[i + 1])->data;
		CHECK((weight->storage == bias->storage) == (i < 4));
	}
	CHECK(held->storage == sl_block_find(net, "2.weight")->data->storage);
}

/* Parameters of a bucket are spoilt together, and can be set again. */
static void check_mended(sl_block *net)
{
	CHECK_OK(sl_wait_all());
	atomic_store(&slp_fail_kernel, 1);
	CHECK_OK(sl_fill_(sl_block_find(net, "0.weight")->data, 0) ? SL_OK : sl_error());
	CHECK(sl_wait_all() != SL_OK);
	for (int i = 0; i < 4; i++) {
		sl_param *p = sl_block_find(net, paths[i]);
		CHECK_OK(sl_param_set(p, sl_ones(sl_tensor_shape(p->data))));
		CHECK(sl_item(sl_sum(p->data)) == (double)sl_tensor_size(p->data));
	}
}

static void check_steps(sl_block *net, sl_trainer *t, sl_tensor *x)
{
	sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, t);
	sl_tensor *xs[2], *ys[2], *held = sl_rows(sl_block_find(net, "2.weight")->data, 0, 1);
	CHECK_OK(sl_split_and_load(x, teams, 2, xs));
	CHECK_OK(sl_split_and_load(sl_zeros(SL_SHAPE(4), .dtype = SL_INT32), teams, 2, ys));
	CHECK(sl_step_run(step, .in = xs, .targets = ys, .shards = 2) != NULL);
	check_together(net, held);
	check_mended(net);
	CHECK(sl_step_run(step, .in = xs, .targets = ys, .shards = 2) != NULL);
	CHECK_OK(sl_wait_all());
	sl_step_free(step);
}

static void test_owners(void)
{
	start(2, NULL);
	SL_SCOPE {
		sl_block *net = sl_sequential(sl_dense(1024), sl_dense(1024), sl_dense(1024));
		CHECK_OK(sl_initialize(net, .devices = teams, .ndevices = 2));
		sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = 1));
		sl_tensor *x = sl_ones(SL_SHAPE(4, 1024), .device = sl_cpu(1)), *loss = NULL;
		CHECK(sl_trainer_step(t, 1) == SL_ESTATE); /* no values yet, and none is harmed */
		sl_error_clear();
		SL_RECORD
			loss = sl_forward(net, x);
		CHECK_OK(sl_backward(loss));
		CHECK_OK(sl_trainer_step(t, 4));
		check_dealt(net, t);
		CHECK_MISTAKE(sl_trainer_step(t, 4), SL_ESTATE, "no sl_backward");
		check_steps(net, t, x);
		sl_trainer_free(t);
		sl_block_free(net);
	}
	slp_end_well();
}

/* Running statistics are those of the first shard; the others' go nowhere. */
static void test_statistics(void)
{
	start(2, NULL);
	SL_SCOPE {
		sl_block *norm = sl_batch_norm_layer(.momentum = 0.5, .in_channels = 1);
		CHECK_OK(sl_initialize(norm, .devices = teams, .ndevices = 2));
		sl_tensor *xs[2] = {sl_full(SL_SHAPE(4, 1), 2, .device = sl_cpu(0)),
		                    sl_full(SL_SHAPE(4, 1), 100, .device = sl_cpu(1))};
		SL_RECORD
			for (int i = 0; i < 2; i++) sl_forward(norm, xs[i]);
		CHECK_VALUES(slp_data(norm, "running_mean"), 1);
		sl_tensor *y = sl_forward(norm, xs[1]); /* not training: the same statistics everywhere */
		CHECK(sl_item(sl_max(y)) > 99);
		sl_block_free(norm);
	}
	slp_end_well();
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

static void test_mistakes(void)
{
	start(2, NULL);
	SL_SCOPE {
		sl_block *net = sl_dense(2);
		CHECK_OK(sl_initialize(net, .devices = teams, .ndevices = 1));
		sl_trainer *t = sl_trainer_new(net, sl_sgd(.lr = 0.1));
		sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, t);
		sl_tensor *x[2] = {sl_ones(SL_SHAPE(2, 3), .device = sl_cpu(0)),
		                   sl_ones(SL_SHAPE(2, 3), .device = sl_cpu(1))};
		sl_tensor *y[2] = {sl_zeros(SL_SHAPE(2), .dtype = SL_INT32, .device = sl_cpu(0)),
		                   sl_zeros(SL_SHAPE(2), .dtype = SL_INT32, .device = sl_cpu(1))},
		          *losses[2];
		CHECK_MISTAKE(sl_step_run_shards(step, 0, x, y, NULL, NULL), SL_EINVAL, "no shard", SL_HERE);
		CHECK_MISTAKE(sl_step_run_shards(step, 2, x, NULL, NULL, NULL), SL_EINVAL, "targets is NULL");
		sl_forward(net, x[0]);
		CHECK_MISTAKE(sl_step_run_shards(step, 2, x, y, losses, NULL), SL_EDEVICE, "cpu:1");
		CHECK(!losses[0] && !losses[1] && sl_trainer_steps(t) == 0);
		CHECK_MISTAKE(sl_step_run_shards(NULL, 2, x, y, NULL, NULL), SL_EINVAL, "the step is NULL");
		sl_step_free(step);
		sl_trainer_free(t);
		sl_block_free(net);
	}
	slp_end_well();
}

int main(int argc, char **argv)
{
	static const struct slp_test shards[] = {
	        {"equal", test_equal}, {"uneven", test_uneven}, {"place", test_place}, {NULL, NULL}};
	static const struct slp_test training[] = {{"sum", test_sum},           {"curves", test_curves},
	                                           {"norm", test_norm},         {"buckets", test_buckets},
	                                           {"policies", test_policies}, {"auto", test_auto},
	                                           {"owners", test_owners},     {"statistics", test_statistics},
	                                           {"mistakes", test_mistakes}, {NULL, NULL}};
	static const struct slp_suite suites[] = {
	        {.name = "shards", .tests = shards}, {.name = "training", .tests = training}, {0}};
	return slp_test_main(argc, argv, suites);
}
