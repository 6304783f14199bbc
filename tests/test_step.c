/* Whole training steps: the same as forward, backward and update by hand, in few tasks; learning rates that change,
 * frozen parameters, mistakes. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "networks.h"

static void steps_by_hand(sl_block *net, sl_trainer *trainer, const struct slp_network *n, int steps)
{
	sl_seed(21);
	for (int i = 0; i < steps; i++)
		SL_SCOPE {
			sl_tensor *x = sl_normal(n->input, 0, 1), *t = sl_normal(SL_SHAPE(n->input.dim[0], 3), 0, 1),
			          *l;
			SL_RECORD
				l = sl_l2_loss(sl_forward(net, x), t);
			CHECK_OK(sl_backward(l));
			CHECK_OK(sl_trainer_step(trainer, n->input.dim[0]));
		}
}

static void steps_compiled(sl_block *net, sl_trainer *trainer, const struct slp_network *n, int steps, unsigned off)
{
	sl_step *step = sl_step_compile(net, sl_l2_loss_at, trainer, .passes_off = off);
	CHECK(step != NULL);
	sl_seed(21);
	for (int i = 0; i < steps; i++)
		SL_SCOPE {
			sl_tensor *x = sl_normal(n->input, 0, 1), *t = sl_normal(SL_SHAPE(n->input.dim[0], 3), 0, 1);
			CHECK(sl_step_run(step, x, t, NULL) != NULL);
		}
	sl_step_free(step);
}

static const struct sl_optimizer optimizers[] = {
        {.kind = SL_SGD, .lr = 0.1},
        {.kind = SL_SGD, .lr = 0.1, .momentum = 0.9, .nesterov = true, .clip_norm = 0.5},
        {.kind = SL_ADAM, .lr = 0.01, .schedule = {SL_STEPS, .every = 2, .factor = 0.5}},
        {.kind = SL_ADAMW, .lr = 0.01, .weight_decay = 0.1, .schedule = {SL_COSINE, .warmup = 2, .total = 10}},
        {.kind = SL_RMSPROP, .lr = 0.01, .momentum = 0.5},
};

static void compare_steps(const struct slp_network *n, struct sl_optimizer o, unsigned off, double tolerance)
{
	sl_block *a = slp_network_new(n), *b = slp_network_new(n);
	sl_trainer *ta = sl_trainer_new(a, o), *tb = sl_trainer_new(b, o);
	steps_by_hand(a, ta, n, 5);
	steps_compiled(b, tb, n, 5, off);
	slp_check_params(n->name, a, b, tolerance);
	CHECK(sl_trainer_steps(ta) == 5 && sl_trainer_steps(tb) == 5);
	sl_trainer_free(ta);
	sl_trainer_free(tb);
	sl_block_free(a);
	sl_block_free(b);
}

/* Learning rates change from step to step without another plan. */
static void test_steps_same_bits(void)
{
	for (size_t k = 0; k < sizeof optimizers / sizeof *optimizers; k++)
		for (int i = 0; i < SLP_NETWORKS; i++) compare_steps(&slp_networks[i], optimizers[k], SLP_ROUNDING, 0);
}

static void test_steps_to_rounding(void)
{
	for (int i = 0; i < SLP_NETWORKS; i++) compare_steps(&slp_networks[i], optimizers[0], 0, 2e-4);
}

/* A step that is prepared is compiled, but not made. */
static void test_prepare(void)
{
	sl_block *net = slp_network_new(&slp_networks[SLP_MLP]);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *step = sl_step_compile(net, sl_l2_loss_at, trainer);
	SL_SCOPE {
		sl_tensor *x = sl_ones(slp_networks[SLP_MLP].input), *t = sl_ones(SL_SHAPE(16, 3));
		CHECK(sl_step_info(step).nodes == 0);
		CHECK_OK(sl_step_prepare(step, x, t));
		CHECK(sl_step_info(step).nodes > 0 && sl_step_info(step).seconds > 0);
		CHECK(sl_trainer_steps(trainer) == 0);
		const sl_graph *graph = sl_step_graph(step);
		CHECK(sl_step_run(step, x, t, NULL) != NULL && sl_step_graph(step) == graph);
		CHECK(sl_trainer_steps(trainer) == 1);
		CHECK(sl_step_prepare(step, x, NULL) != SL_OK && sl_step_prepare(NULL, x, t) != SL_OK);
		sl_error_clear();
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* A step of several layers is a few tasks. */
static void test_few_tasks(void)
{
	sl_block *net = slp_network_new(&slp_networks[SLP_MLP]);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *step = sl_step_compile(net, sl_l2_loss_at, trainer);
	SL_SCOPE {
		sl_tensor *x = sl_ones(slp_networks[SLP_MLP].input), *t = sl_ones(SL_SHAPE(16, 3)), *y;
		sl_step_run(step, x, t, NULL);
		CHECK_OK(sl_wait_all());
		sl_stats_reset();
		for (int i = 0; i < 10; i++)
			SL_SCOPE
				CHECK(sl_step_run(step, x, t, &y) && sl_tensor_shape(y).dim[1] == 3);
		CHECK_OK(sl_wait_all());
		CHECK_SAYING(slp_stats().segments <= 10, "%d tasks for 10 steps", (int)slp_stats().segments);
		CHECK(sl_step_info(step).segments == 1);
		CHECK(sl_step_info(step).memory <= sl_step_info(step).unplanned);
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* A parameter without a gradient stays as it is. */
static void test_frozen(void)
{
	sl_block *net = sl_sequential(sl_dense(4), sl_dense(3));
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(1)));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 4)), *t = sl_ones(SL_SHAPE(2, 3));
		sl_forward(net, x);
		sl_tensor *frozen = sl_param_data(sl_block_find(net, "0.weight")), *before = sl_clone(frozen);
		sl_tensor *other = sl_param_data(sl_block_find(net, "1.weight")), *old = sl_clone(other);
		CHECK_OK(sl_attach_grad(frozen, .req = SL_GRAD_NONE));
		sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
		sl_step *step = sl_step_compile(net, sl_l2_loss_at, trainer);
		CHECK(sl_step_run(step, x, t, NULL) != NULL);
		slp_check_close("frozen", frozen, before, 0);
		CHECK(sl_item(sl_max(sl_abs(sl_sub(other, old)))) > 0);
		sl_step_free(step);
		sl_trainer_free(trainer);
	}
	sl_block_free(net);
}

static sl_tensor *detached_loss(const char *at, sl_tensor *y, sl_tensor *t)
{
	return sl_l2_loss_at(at, sl_detach(y), t);
}

static void test_step_mistakes(void)
{
	sl_block *net = sl_sequential(sl_dense(3));
	CHECK_OK(sl_initialize(net));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *step = sl_step_compile(net, detached_loss, trainer),
	        *right = sl_step_compile(net, sl_l2_loss_at, trainer);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 4));
		CHECK(!sl_step_run(step, x, sl_ones(SL_SHAPE(2, 3)), NULL) && sl_error() != SL_OK);
		sl_error_clear();
		CHECK(!sl_step_run(right, x, sl_ones(SL_SHAPE(2, 5)), NULL));
		CHECK_SAYING(sl_error() == SL_ESHAPE && strstr(sl_error_message(), "l2_loss"), "message: %s",
		             sl_error_message());
		sl_error_clear();
		CHECK(sl_trainer_steps(trainer) == 0);
		CHECK(sl_step_run(right, x, sl_ones(SL_SHAPE(2, 3)), NULL) != NULL);
	}
	sl_step_free(step);
	sl_step_free(right);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* ---- losses of several numbers ----------------------------------------------------------------------------------- */

enum { ROWS = 5, FIRST = 3 };

static sl_tensor *loss_per_element(const char *at, sl_tensor *y, sl_tensor *target)
{
	return sl_square_at(at, sl_sub_at(at, y, target));
}

static sl_tensor *mean_loss(const char *at, sl_tensor *y, sl_tensor *target)
{
	return sl_mean_at(at, loss_per_element(at, y, target), (struct sl_reduce_opts){0});
}

/* How many losses a batch of ROWS has: what the trainer must divide by, call by call. */
static const struct {
	const char *name;
	sl_loss *loss;
	int64_t count;
	enum sl_reduction reduction;
} reductions[] = {
        {"a loss a row", sl_l2_loss_at, ROWS, SL_REDUCTION_MEAN},
        {"a loss an element", loss_per_element, ROWS * 4 * 3, SL_REDUCTION_MEAN},
        {"one loss", mean_loss, 1, SL_REDUCTION_MEAN},
        {"the sum of a loss a row", sl_l2_loss_at, 1, SL_REDUCTION_SUM},
        {"the sum of a loss an element", loss_per_element, 1, SL_REDUCTION_SUM},
};

static sl_block *tokens_net(bool synchronised)
{
	sl_seed(4);
	sl_block *net =
	        synchronised ? sl_sequential(sl_dense(3, .no_flatten = true), sl_batch_norm_layer(.synchronised = true))
	                     : sl_sequential(sl_dense(3, .no_flatten = true));
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(1)));
	return net;
}

/* One step; n shards of a whole step, or call by call where n is 0. */
static void step_once(sl_block *net, int k, int n)
{
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *step = sl_step_compile(net, reductions[k].loss, trainer, .reduction = reductions[k].reduction);
	sl_seed(8);
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(ROWS, 4, 2), 0, 1), *t = sl_normal(SL_SHAPE(ROWS, 4, 3), 0, 1), *l;
		sl_tensor *xs[] = {sl_rows(x, 0, FIRST), sl_rows(x, FIRST, ROWS)};
		sl_tensor *ts[] = {sl_rows(t, 0, FIRST), sl_rows(t, FIRST, ROWS)};
		if (n == 1) {
			CHECK(sl_step_run(step, x, t, NULL) != NULL);
		} else if (n == 2) {
			CHECK(sl_step_run(step, .in = xs, .targets = ts, .shards = 2) != NULL);
		} else {
			SL_RECORD
				l = reductions[k].loss(SL_HERE, sl_forward(net, x), t);
			CHECK_OK(sl_backward(l));
			CHECK_OK(sl_trainer_step(trainer, reductions[k].count));
		}
		CHECK_SAYING(sl_error() == SL_OK, "%s: %s", reductions[k].name, sl_error_message());
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
}

/* The parameters go down by the same, whatever the loss's shape and however the batch is cut. */
static void test_reductions(void)
{
	for (size_t k = 0; k < sizeof reductions / sizeof *reductions; k++) {
		sl_block *nets[3];
		for (int n = 0; n < 3; n++) step_once(nets[n] = tokens_net(false), (int)k, n);
		slp_check_params(reductions[k].name, nets[0], nets[1], 1e-6);
		slp_check_params(reductions[k].name, nets[0], nets[2], 1e-6);
		for (int n = 0; n < 3; n++) sl_block_free(nets[n]);
	}
}

static void test_reductions_synchronised(void)
{
	for (size_t k = 0; k < sizeof reductions / sizeof *reductions; k++) {
		sl_block *nets[2];
		for (int n = 1; n < 3; n++) step_once(nets[n - 1] = tokens_net(true), (int)k, n);
		slp_check_params(reductions[k].name, nets[0], nets[1], 1e-5);
		for (int n = 0; n < 2; n++) sl_block_free(nets[n]);
	}
}

static void test_no_reduction(void)
{
	sl_block *net = tokens_net(false);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	CHECK_NULL(sl_step_compile(net, mean_loss, trainer, .reduction = (enum sl_reduction)2), SL_EINVAL, "reduction");
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* ---- several inputs, results and targets ------------------------------------------------------------------------- */

struct two {
	sl_block base;
	sl_block *left, *right;
};

/* The sum of both ways, and their difference squared. */
static sl_tensor *two_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct two *t = (struct two *)self;
	sl_tensor *a = sl_forward(t->left, in[0]), *b = nin == 2 ? sl_forward(t->right, in[1]) : NULL;
	if (sl_also(sl_square(sl_sub(a, b))) != SL_OK) return NULL;
	return sl_add(a, b);
}

static sl_block *two_new(enum sl_dtype dtype)
{
	sl_seed(6);
	struct two *t = calloc(1, sizeof *t);
	CHECK_OK(sl_block_init(&t->base, "Two", two_forward, NULL));
	t->left = sl_block_add(&t->base, "left", sl_dense(3, .in_units = 4, .activation = SL_TANH));
	t->right = sl_block_add(&t->base, "right", sl_dense(3, .in_units = 2));
	CHECK_OK(sl_initialize(&t->base, .init = sl_normal_init(1), .dtype = dtype));
	return &t->base;
}

/* A squared distance, a weight times a cross-entropy, and no loss of a row alone. */
static sl_tensor *two_losses(void *context, sl_tensor *const *out, int nout, sl_tensor *const *targets, int ntargets)
{
	CHECK(nout == 2 && ntargets == 2);
	sl_tensor *place = sl_l2_loss(out[0], targets[0]), *kind = sl_softmax_cross_entropy(out[1], targets[1]);
	return sl_add(place, sl_mul_scalar(kind, *(double *)context));
}

/* Rows of two inputs and two targets. */
static void two_batch(sl_tensor **in, sl_tensor **targets, enum sl_dtype dtype)
{
	sl_seed(9);
	in[0] = sl_normal(SL_SHAPE(ROWS, 4), 0, 1, .dtype = dtype);
	in[1] = sl_normal(SL_SHAPE(ROWS, 2), 0, 1, .dtype = dtype);
	targets[0] = sl_normal(SL_SHAPE(ROWS, 3), 0, 1, .dtype = dtype);
	targets[1] = sl_from(((const int32_t[]){0, 2, 1, 1, 0}), SL_SHAPE(ROWS), .dtype = SL_INT32);
}

static void two_by_hand(sl_block *net, sl_trainer *trainer, double weight, int steps)
{
	for (int i = 0; i < steps; i++)
		SL_SCOPE {
			sl_tensor *in[2], *targets[2], *out[2], *l;
			two_batch(in, targets, SL_FLOAT32);
			SL_RECORD {
				CHECK_OK(sl_forward_all(net, in, 2, out, 2));
				l = two_losses(&weight, out, 2, targets, 2);
			}
			CHECK_OK(sl_backward(l));
			CHECK_OK(sl_trainer_step(trainer, ROWS));
		}
}

/* As one batch, or cut into two shards. */
static void two_compiled(sl_block *net, sl_trainer *trainer, double weight, int steps, int n, unsigned off)
{
	sl_step *step =
	        sl_step_compile(net, NULL, trainer, .loss_of_all = two_losses, .context = &weight, .passes_off = off);
	for (int i = 0; i < steps; i++)
		SL_SCOPE {
			sl_tensor *in[2], *targets[2], *out[4] = {NULL}, *losses[2], *a[4], *b[4];
			two_batch(in, targets, SL_FLOAT32);
			for (int s = 0; s < 2; s++)
				for (int k = 0; k < 2; k++) {
					a[2 * s + k] = sl_rows(in[k], s ? FIRST : 0, s ? ROWS : FIRST);
					b[2 * s + k] = sl_rows(targets[k], s ? FIRST : 0, s ? ROWS : FIRST);
				}
			if (n == 1) {
				CHECK_OK(sl_step_prepare(step, .in = in, .nin = 2, .targets = targets, .ntargets = 2));
				losses[0] = sl_step_run(step, .in = in, .nin = 2, .targets = targets, .ntargets = 2,
				                        .out = out, .nout = 2);
				CHECK(losses[0] && sl_tensor_size(losses[0]) == ROWS &&
				      sl_tensor_size(out[1]) == 3 * ROWS);
			} else {
				CHECK(sl_step_run(step, .in = a, .nin = 2, .targets = b, .ntargets = 2, .out = out,
				                  .nout = 2, .losses = losses, .shards = 2) != NULL);
				CHECK(sl_tensor_size(losses[1]) == ROWS - FIRST &&
				      sl_tensor_size(out[3]) == 3 * (ROWS - FIRST));
			}
		}
	sl_step_free(step);
}

/* Call by call, as one program, and in shards the parameters become the same. */
static void test_several(void)
{
	enum { WAYS = 4 };
	sl_block *nets[WAYS];
	for (int i = 0; i < WAYS; i++) {
		nets[i] = two_new(SL_FLOAT32);
		sl_trainer *trainer = sl_trainer_new(nets[i], sl_adam(.lr = 0.05));
		if (!i) two_by_hand(nets[i], trainer, 0.3, 4);
		else two_compiled(nets[i], trainer, 0.3, 4, i == 2 ? 2 : 1, i == 1 ? SLP_ROUNDING : 0);
		CHECK(sl_trainer_steps(trainer) == 4);
		sl_trainer_free(trainer);
	}
	slp_check_params("several, same bits", nets[0], nets[1], 0);
	slp_check_params("several, in shards", nets[0], nets[2], 1e-5);
	slp_check_params("several, fused", nets[0], nets[3], 1e-5);
	for (int i = 0; i < WAYS; i++) sl_block_free(nets[i]);
}

static double two_mean_loss(sl_block *net, double weight)
{
	double mean = 0;
	SL_SCOPE {
		sl_tensor *in[2], *targets[2], *out[2];
		two_batch(in, targets, SL_FLOAT64);
		CHECK_OK(sl_forward_all(net, in, 2, out, 2));
		mean = sl_item(sl_mean(two_losses(&weight, out, 2, targets, 2)));
	}
	return mean;
}

/* What a step of plain descent subtracts is what central differences of the mean loss say. */
static void test_several_differences(void)
{
	double weight = 0.7, before[6], after[6], at[6], h = 1e-5;
	sl_block *net = two_new(SL_FLOAT64);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 1));
	sl_step *step = sl_step_compile(net, NULL, trainer, .loss_of_all = two_losses, .context = &weight);
	sl_param *param = sl_block_find(net, "right.weight");
	SL_SCOPE {
		sl_tensor *in[2], *targets[2], *p = sl_param_data(param);
		double slope[6];
		CHECK_OK(sl_read(p, before, sizeof before));
		for (int i = 0; i < 6; i++) {
			double f[2];
			for (int side = 0; side < 2; side++) {
				memcpy(at, before, sizeof at);
				at[i] += side ? h : -h;
				CHECK_OK(sl_param_set(param, sl_from(at, SL_SHAPE(3, 2), .dtype = SL_FLOAT64)));
				f[side] = two_mean_loss(net, weight);
			}
			slope[i] = (f[1] - f[0]) / (2 * h);
		}
		CHECK_OK(sl_param_set(param, sl_from(before, SL_SHAPE(3, 2), .dtype = SL_FLOAT64)));
		two_batch(in, targets, SL_FLOAT64);
		CHECK(sl_step_run(step, .in = in, .nin = 2, .targets = targets, .ntargets = 2) != NULL);
		CHECK_OK(sl_read(sl_param_data(param), after, sizeof after));
		for (int i = 0; i < 6; i++)
			CHECK_SAYING(fabs(before[i] - after[i] - slope[i]) < 1e-8, "element %d: %g, %g by differences",
			             i, before[i] - after[i], slope[i]);
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* The names of the release before: the same steps. */
static void test_old_names(void)
{
	double weight = 1;
	sl_block *net = two_new(SL_FLOAT32);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0));
	sl_step *step = sl_step_compile_all(net, two_losses, &weight, trainer, .passes_off = 0);
	SL_SCOPE {
		sl_tensor *in[2], *targets[2], *out[4], *losses[2];
		two_batch(in, targets, SL_FLOAT32);
		CHECK_OK(sl_step_prepare_all(step, in, 2, targets, 2));
		sl_tensor *loss = sl_step_run_all(step, in, 2, targets, 2, out, 2);
		CHECK_OK(sl_step_run_all_shards(step, 1, in, 2, targets, 2, losses, out + 2, 2));
		CHECK(loss && sl_item(sl_sum(loss)) == sl_item(sl_sum(losses[0])));
		for (int i = 0; i < 2; i++) CHECK(sl_item(sl_sum(out[i])) == sl_item(sl_sum(out[2 + i])));
		CHECK(sl_trainer_steps(trainer) == 2);
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

static void test_several_mistakes(void)
{
	double weight = 1;
	sl_block *net = two_new(SL_FLOAT32);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 1));
	sl_step *step = sl_step_compile(net, NULL, trainer, .loss_of_all = two_losses, .context = &weight),
	        *one = sl_step_compile(net, sl_l2_loss_at, trainer);
	SL_SCOPE {
		sl_tensor *in[2], *targets[2], *out[3];
		two_batch(in, targets, SL_FLOAT32);
		CHECK_NULL(sl_step_compile_all(net, NULL, NULL, trainer), SL_EINVAL, "NULL");
		CHECK_NULL(sl_step_run_all(step, in, 2, targets, 2, out, 3), SL_EINVAL, "2 results, but 3");
		CHECK_NULL(sl_step_run_all(step, in, 2, targets, 2, NULL, 1), SL_EINVAL, "room");
		CHECK_NULL(sl_step_run_all(step, in, 0, targets, 2, NULL, 0), SL_EINVAL, "input");
		CHECK_NULL(sl_step_run_all(step, in, 2, NULL, 2, NULL, 0), SL_EINVAL, "targets is NULL");
		CHECK_NULL(sl_step_run_all(one, in, 2, targets, 2, NULL, 0), SL_EINVAL, "one target, but 2");
		CHECK_NULL(sl_step_run_all(NULL, in, 2, targets, 2, NULL, 0), SL_EINVAL, "step is NULL");
		out[2] = in[0];
		CHECK_STATUS(sl_step_run_all_shards(step, -1, in, 2, targets, 2, NULL, out, -3), SL_EINVAL);
		CHECK(out[2] == in[0]); /* what is no room is left alone */
		sl_error_clear();
		CHECK_STATUS(sl_step_run_all_shards(step, INT_MIN, in, 2, targets, 2, NULL, out, 4), SL_EINVAL);
		sl_error_clear();
		CHECK_NULL(sl_step_run(one, in[0], targets[0], .in = in), SL_EINVAL, "not", ".in");
		CHECK_NULL(sl_step_run(one, in[0], targets[0], .shards = 2), SL_EINVAL, "shards");
		CHECK_NULL(sl_step_run(one, in[0], targets[0], out, .nout = 1), SL_EINVAL, ".output");
		CHECK_NULL(sl_step_run(one, in[0]), SL_EINVAL, "target 0 is NULL");
		CHECK_NULL(sl_step_run(one, .in = in), SL_EINVAL, "one target, but 0");
		CHECK_NULL(sl_step_compile(net, sl_l2_loss_at, trainer, .loss_of_all = two_losses), SL_EINVAL,
		           "not both");
		CHECK_STATUS(sl_step_prepare(one, .in = in, .nin = 2, .targets = targets, .shards = 1), SL_EUNSUPPORTED,
		             "shards");
		sl_error_clear();
		CHECK(sl_trainer_steps(trainer) == 0);
		CHECK(sl_step_run(one, .in = in, .nin = 2, .targets = targets) != NULL);
	}
	sl_step_free(step);
	sl_step_free(one);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

static const struct slp_test steps[] = {
        {"several inputs, results and targets", test_several},
        {"by central differences", test_several_differences},
        {"old names", test_old_names},
        {"mistakes with several", test_several_mistakes},
        {"same bits without fusion", test_steps_same_bits},
        {"same to rounding", test_steps_to_rounding},
        {"prepared", test_prepare},
        {"few tasks", test_few_tasks},
        {"frozen parameters", test_frozen},
        {"the mean and the sum of losses", test_reductions},
        {"of synchronised layers", test_reductions_synchronised},
        {"no such reduction", test_no_reduction},
        {"mistakes", test_step_mistakes},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	const struct slp_suite suites[] = {
	        {.name = "whole steps", .tests = steps, .start = slp_start_engine, .stop = slp_stop_engine},
	        {.name = NULL},
	};
	return slp_test_main(argc, argv, suites);
}
