/* Hybrid blocks and whole steps: the same as imperatively, bit for bit where nothing is fused; forward entered once;
 * mistakes, changes, several threads and teams. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "runtime/segment.h"

/* Passes that change rounding. */
#define ROUNDING (1u << SL_PASS_SIMPLIFY | 1u << SL_PASS_FUSE | 1u << SL_PASS_LAYOUT)

static int entered;

/* ---- networks ---------------------------------------------------------------------------------------------------- */

static sl_block *mlp(void)
{
	return sl_sequential(sl_dense(16, .activation = SL_RELU), sl_dropout_layer(0.3), sl_dense(8, .activation = SL_TANH),
			     sl_dense(3));
}

static sl_block *lenet(void)
{
	return sl_sequential(sl_conv2d_layer(4, .kernel = {3}, .activation = SL_RELU), sl_avg_pool2d_layer(2),
			     sl_conv2d_layer(6, .kernel = {3}, .activation = SL_RELU), sl_max_pool2d_layer(2),
			     sl_flatten_layer(), sl_dense(10, .activation = SL_RELU), sl_dense(3));
}

static sl_block *resnet(void)
{
	sl_block *body = sl_sequential(sl_conv2d_layer(4, .kernel = {3}, .pad = {1, 1}), sl_batch_norm_layer(),
				       sl_activation_layer(SL_RELU), sl_conv2d_layer(4, .kernel = {3}, .pad = {1, 1}),
				       sl_batch_norm_layer());
	sl_block *narrow = sl_sequential(sl_conv2d_layer(4, .kernel = {1}), sl_batch_norm_layer());
	return sl_sequential(sl_residual(body, narrow, SL_RELU), sl_global_avg_pool2d_layer(), sl_flatten_layer(),
			     sl_layer_norm_layer(), sl_dense(3));
}

struct network {
	const char *name;
	sl_block *(*make)(void);
	sl_shape input;
};
static const struct network networks[] = {
	{"mlp", mlp, {2, {16, 12}}},
	{"lenet", lenet, {4, {16, 1, 14, 14}}},
	{"resnet", resnet, {4, {4, 2, 6, 6}}},
};
enum { NETWORKS = sizeof networks / sizeof *networks, MAX_PARAMS = 32 };

/* With values, its shapes known. */
static sl_block *make(const struct network *n)
{
	sl_block *net = n->make();
	sl_seed(5);
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	SL_SCOPE CHECK(sl_forward(net, sl_zeros(n->input)) != NULL);
	return net;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static float *values(sl_tensor *t)
{
	float *v = calloc((size_t)sl_tensor_size(t) + 1, sizeof *v);
	CHECK_OK(sl_read(t, v, (size_t)sl_tensor_size(t) * sizeof *v));
	return v;
}

static double distance(const float *a, const float *b, int64_t n)
{
	double worst = 0;
	for (int64_t i = 0; i < n; i++) {
		double d = (double)a[i] - (double)b[i];
		d = d < 0 ? -d : d;
		if (!(d <= worst)) worst = d;
	}
	return worst;
}

/* Equal within tolerance; 0: the same bits. */
static void check_close(const char *what, sl_tensor *a, sl_tensor *b, double tolerance)
{
	if (!a || !b || !sl_shape_equal(sl_tensor_shape(a), sl_tensor_shape(b))) {
		CHECK_SAYING(false, "%s: no values, or other shapes (%s)", what, sl_error_message());
		return;
	}
	float *x = values(a), *y = values(b);
	double d = distance(x, y, sl_tensor_size(a));
	bool same = !memcmp(x, y, (size_t)sl_tensor_size(a) * sizeof *x);
	CHECK_SAYING(tolerance > 0 ? d <= tolerance : same, "%s: differs by %g", what, d);
	free(x);
	free(y);
}

/* What a training call leaves: loss, output, gradients, parameters (running statistics among them). */
struct outcome {
	sl_tensor *list[2 * MAX_PARAMS + 4];
	int count;
};

static void keep(struct outcome *o, sl_tensor *t)
{
	o->list[o->count++] = sl_retain(sl_clone(t));
}

static void train_once(sl_block *net, sl_shape shape, struct outcome *o)
{
	sl_param *params[MAX_PARAMS];
	int n = sl_block_params(net, params, MAX_PARAMS);
	o->count = 0;
	sl_seed(11);
	SL_SCOPE {
		sl_tensor *x = sl_normal(shape, 0, 1), *t = sl_normal(SL_SHAPE(shape.dim[0], 3), 0, 1), *y, *l;
		CHECK_OK(sl_attach_grad(x));
		SL_RECORD {
			y = sl_forward(net, x);
			l = sl_l2_loss(y, t);
		}
		CHECK_OK(sl_backward(l));
		keep(o, l);
		keep(o, y);
		keep(o, sl_grad(x));
		for (int i = 0; i < n; i++) {
			keep(o, sl_param_data(params[i]));
			if (strstr(sl_param_name(params[i]), "running")) continue;
			keep(o, sl_param_grad(params[i]));
		}
	}
}

static void check_outcomes(const char *what, struct outcome *a, struct outcome *b, double tolerance)
{
	CHECK(a->count == b->count && a->count > 3);
	for (int i = 0; i < a->count; i++) {
		char name[64];
		snprintf(name, sizeof name, "%s, tensor %d", what, i);
		check_close(name, a->list[i], b->list[i], tolerance);
		sl_release(a->list[i]);
		sl_release(b->list[i]);
	}
}

/* ---- the same as imperatively ------------------------------------------------------------------------------------ */

static void compare_training(const struct network *n, unsigned off, double tolerance)
{
	struct outcome eager, hybrid;
	sl_block *a = make(n), *b = make(n);
	train_once(a, n->input, &eager);
	CHECK_OK(sl_hybridize(b, .passes_off = off));
	train_once(b, n->input, &hybrid);
	check_outcomes(n->name, &eager, &hybrid, tolerance);
	sl_block_free(a);
	sl_block_free(b);
}

static void test_same_bits(void)
{
	for (int i = 0; i < NETWORKS; i++) compare_training(&networks[i], ROUNDING, 0);
}

static void test_same_to_rounding(void)
{
	for (int i = 0; i < NETWORKS; i++) compare_training(&networks[i], 0, 2e-5);
}

/* Whichever passes are off. */
static void test_each_pass_off(void)
{
	for (int p = 0; p < SL_PASSES; p++)
		for (int i = 0; i < NETWORKS; i++) compare_training(&networks[i], 1u << p, 2e-5);
	compare_training(&networks[1], (1u << SL_PASSES) - 1, 0);
}

static void test_inference(void)
{
	for (int i = 0; i < NETWORKS; i++) SL_SCOPE {
		sl_block *net = make(&networks[i]);
		sl_tensor *x = sl_normal(networks[i].input, 0, 1), *eager = sl_forward(net, x);
		CHECK_OK(sl_hybridize(net, .passes_off = ROUNDING));
		check_close(networks[i].name, eager, sl_forward(net, x), 0);
		CHECK_OK(sl_hybridize(net));
		check_close(networks[i].name, eager, sl_forward(net, x), 2e-5);
		CHECK_OK(sl_hybridize(net, .off = true));
		check_close(networks[i].name, eager, sl_forward(net, x), 0);
		sl_block_free(net);
	}
}

/* ---- forward is entered once for each signature ------------------------------------------------------------------ */

static sl_tensor *counting(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	entered++;
	return sl_relu(sl_mul_scalar(in[0], 2));
}

static sl_block *user_block(sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int))
{
	sl_block *b = calloc(1, sizeof *b);
	CHECK_OK(sl_block_init(b, "Mine", forward, NULL));
	return b;
}

static void test_entered_once(void)
{
	sl_block *b = user_block(counting);
	CHECK_OK(sl_hybridize(b));
	entered = 0;
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3)), *bigger = sl_ones(SL_SHAPE(5, 3));
		for (int i = 0; i < 4; i++) CHECK_ALL(sl_forward(b, x), 2);
		CHECK(entered == 1);
		for (int i = 0; i < 2; i++) CHECK_ALL(sl_forward(b, bigger), 2);
		CHECK(entered == 2); /* another batch size */
		CHECK_ALL(sl_forward(b, x), 2);
		CHECK_ALL(sl_forward(b, sl_cast(x, SL_FLOAT64)), 2);
		CHECK(entered == 3); /* another dtype */
		SL_TRAINING CHECK_ALL(sl_forward(b, x), 2);
		CHECK(entered == 4); /* another mode */
		CHECK(sl_block_plan(b, 3) && !sl_block_plan(b, 4));
	}
	sl_block_free(b);
}

/* Blocks keep a bounded number of plans. */
static void test_many_signatures(void)
{
	sl_block *b = user_block(counting);
	CHECK_OK(sl_hybridize(b));
	for (int i = 1; i <= 40; i++) SL_SCOPE CHECK_ALL(sl_forward(b, sl_ones(SL_SHAPE(i))), 2);
	CHECK(sl_block_plan(b, 15) && !sl_block_plan(b, 16));
	sl_block_free(b);
}

static void test_change_drops_plans(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3));
		sl_block *net = sl_sequential(user_block(counting));
		CHECK_OK(sl_hybridize(net));
		CHECK_ALL(sl_forward(net, x), 2);
		CHECK(sl_block_add(net, NULL, user_block(counting)) != NULL);
		CHECK(!sl_block_plan(net, 0));
		CHECK_ALL(sl_forward(net, x), 4);
		sl_block_free(net);
	}
}

/* New values of parameters count at once, new tensors too. */
static void test_parameters_change(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2));
		sl_block *d = sl_dense(1);
		CHECK_OK(sl_initialize(d, .init = sl_ones_init()));
		CHECK_OK(sl_hybridize(d));
		CHECK_ALL(sl_forward(d, x), 2);
		CHECK_OK(sl_param_set(sl_block_find(d, "bias"), sl_full(SL_SHAPE(1), 5)));
		CHECK_ALL(sl_forward(d, x), 7);
		CHECK_OK(sl_initialize(d, .init = sl_constant_init(3), .force = true));
		CHECK_ALL(sl_forward(d, x), 6);
		sl_block_free(d);
	}
}

/* ---- inputs and results of all kinds ----------------------------------------------------------------------------- */

static sl_tensor *kept_tensor;
static sl_tensor *sum_of_both(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	return nin == 2 ? sl_add(in[0], in[1]) : NULL;
}
static sl_tensor *identity(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return in[0];
}
static sl_tensor *flattened(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_flatten(in[0]);
}
static sl_tensor *ignoring(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_full(sl_tensor_shape(in[0]), 4);
}
static sl_tensor *captured(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_mul(in[0], kept_tensor);
}

static void test_inputs(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_reshape(sl_arange(0, 12, 1), SL_SHAPE(4, 3)), *part = sl_rows(x, 1, 3);
		sl_block *both = user_block(sum_of_both);
		CHECK_OK(sl_hybridize(both));
		CHECK_VALUES(sl_forward(both, part, sl_rows(x, 2, 4)), 9, 11, 13, 15, 17, 19); /* views of one memory */
		CHECK_VALUES(sl_forward(both, part, part), 6, 8, 10, 12, 14, 16);
		CHECK_VALUES(sl_forward(both, sl_add_scalar(part, 1), part), 7, 9, 11, 13, 15, 17); /* not computed yet */
		sl_block_free(both);
		sl_block *same = user_block(identity), *flat = user_block(flattened), *none = user_block(ignoring);
		CHECK_OK(sl_hybridize(same));
		CHECK_OK(sl_hybridize(flat));
		CHECK_OK(sl_hybridize(none));
		CHECK_VALUES(sl_forward(same, part), 3, 4, 5, 6, 7, 8);
		sl_tensor *row = sl_forward(flat, sl_reshape(part, SL_SHAPE(1, 2, 3)));
		CHECK(sl_shape_equal(sl_tensor_shape(row), SL_SHAPE(1, 6)));
		CHECK_VALUES(row, 3, 4, 5, 6, 7, 8);
		CHECK_ALL(sl_forward(none, part), 4);
		sl_block_free(same);
		sl_block_free(flat);
		sl_block_free(none);
	}
}

/* A tensor that is no parameter is met: its values and its gradient count. */
static void test_captured(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(2), 3), *y;
		kept_tensor = sl_full(SL_SHAPE(2), 5);
		CHECK_OK(sl_attach_grad(kept_tensor));
		sl_block *b = user_block(captured);
		CHECK_OK(sl_hybridize(b));
		CHECK_ALL(sl_forward(b, x), 15);
		SL_PAUSE sl_add_scalar_(kept_tensor, 1);
		CHECK_ALL(sl_forward(b, x), 18);
		SL_RECORD y = sl_mul_scalar(sl_forward(b, x), 2);
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(kept_tensor), 6);
		sl_block_free(b);
	}
}

/* ---- gradients through it ---------------------------------------------------------------------------------------- */

static void test_gradient_of_parts(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(2), 3), *y, *z;
		CHECK_OK(sl_attach_grad(x));
		sl_block *b = user_block(counting); /* relu(2 x) */
		CHECK_OK(sl_hybridize(b));
		SL_RECORD {
			y = sl_forward(b, sl_square(x));
			z = sl_mul(sl_forward(b, y), x);
		}
		CHECK_OK(sl_backward_heads(&z, 1, .retain_graph = true));
		CHECK_ALL(sl_grad(x), 4 * 3 * 9); /* 4 x^3 */
		CHECK_OK(sl_backward(z));
		CHECK_ALL(sl_grad(x), 4 * 3 * 9);
		CHECK_STATUS(sl_backward(z), SL_ESTATE, "retain_graph");
		sl_error_clear();
		sl_block_free(b);
	}
}

/* What was recorded outlives the block. */
static void test_block_dies_first(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(2), 3), *y;
		CHECK_OK(sl_attach_grad(x));
		sl_block *b = user_block(counting);
		CHECK_OK(sl_hybridize(b));
		SL_RECORD y = sl_forward(b, x);
		sl_block_free(b);
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(x), 2);
	}
}

/* A parameter changed between forward and backward is noticed, as imperatively. */
static void test_changed_between(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2)), *y;
		sl_block *d = sl_dense(2);
		CHECK_OK(sl_initialize(d));
		CHECK_OK(sl_hybridize(d));
		SL_RECORD y = sl_forward(d, x);
		sl_mul_scalar_(sl_param_data(sl_block_find(d, "weight")), 2);
		CHECK_STATUS(sl_backward(y), SL_ESTATE, "changed in place");
		sl_error_clear();
		sl_block_free(d);
	}
}

/* A hybrid block within an imperative one, and used twice. */
static void test_shared_child(void)
{
	struct outcome eager, hybrid;
	sl_shape shape = SL_SHAPE(4, 3);
	sl_block *nets[2];
	for (int i = 0; i < 2; i++) {
		sl_seed(2);
		sl_block *child = sl_dense(3, .activation = SL_SIGMOID);
		nets[i] = sl_sequential(child, sl_block_retain(child), sl_dense(3));
		CHECK_OK(sl_initialize(nets[i], .init = sl_normal_init(1)));
		SL_SCOPE sl_forward(nets[i], sl_zeros(shape));
		if (i) CHECK_OK(sl_hybridize(child, .passes_off = ROUNDING));
	}
	train_once(nets[0], shape, &eager);
	train_once(nets[1], shape, &hybrid);
	check_outcomes("shared", &eager, &hybrid, 1e-6); /* the sum of both uses is taken in another order */
	sl_block_free(nets[0]);
	sl_block_free(nets[1]);
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

static sl_tensor *branching(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_item(sl_sum(in[0])) > 0 ? sl_relu(in[0]) : sl_neg(in[0]);
}
static sl_tensor *reading(sl_block *self, sl_tensor *const *in, int nin)
{
	float v[2];
	(void)self;
	(void)nin;
	return sl_read(in[0], v, sizeof v) == SL_OK ? sl_full(SL_SHAPE(2), v[0]) : NULL;
}
static sl_tensor *in_place(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self;
	(void)nin;
	return sl_add_scalar_(sl_neg(in[0]), 1);
}

static void test_not_traceable(void)
{
	sl_tensor *(*const forwards[])(sl_block *, sl_tensor *const *, int) = {branching, reading, in_place};
	const char *const says[] = {"sl_item", "sl_read", "in place"};
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2));
		for (int i = 0; i < 3; i++) {
			sl_block *b = user_block(forwards[i]);
			CHECK_OK(sl_hybridize(b));
			sl_tensor *y = sl_forward(b, x);
			CHECK(!y && sl_error() == SL_ESTATE);
			CHECK_SAYING(strstr(sl_error_message(), says[i]) && strstr(sl_error_message(), "tests/test_hybrid.c:") &&
					     strstr(sl_error_message(), "mine"), "message: %s", sl_error_message());
			sl_error_clear();
			CHECK_OK(sl_hybridize(b, .off = true));
			CHECK(sl_forward(b, x) != NULL);
			sl_block_free(b);
		}
	}
}

/* What a call prints on stderr. */
static void capture_stderr(char *text, size_t size, void (*call)(void *), void *arg)
{
	FILE *file = tmpfile();
	int saved = dup(2);
	fflush(stderr);
	dup2(fileno(file), 2);
	call(arg);
	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	rewind(file);
	text[fread(text, 1, size - 1, file)] = '\0';
	fclose(file);
}

static void call_twice(void *block)
{
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(2), -1);
		CHECK_ALL(sl_forward(block, x), 1);
		CHECK_ALL(sl_forward(block, sl_neg(x)), 1);
	}
}

static void test_fallback(void)
{
	char text[1024];
	sl_block *b = user_block(branching);
	CHECK_OK(sl_hybridize(b, .fallback = true));
	capture_stderr(text, sizeof text, call_twice, b);
	char *first = strstr(text, "runs imperatively");
	CHECK_SAYING(first && !strstr(first + 1, "runs imperatively"), "said: %s", text);
	CHECK(sl_error() == SL_OK);
	sl_block_free(b);
}

static void test_static_shape(void)
{
	sl_block *b = user_block(counting);
	CHECK_OK(sl_hybridize(b, .static_shape = true));
	SL_SCOPE {
		CHECK_ALL(sl_forward(b, sl_ones(SL_SHAPE(2))), 2);
		CHECK_NULL(sl_forward(b, sl_ones(SL_SHAPE(3))), SL_ESHAPE, "static_shape", "(2,)", "(3,)");
		CHECK_ALL(sl_forward(b, sl_ones(SL_SHAPE(2))), 2);
	}
	sl_block_free(b);
}

/* Every kernel of a plan fails once: the error names it, and the next run is fine. */
static void test_kernels_fail(void)
{
	sl_block *net = make(&networks[1]);
	CHECK_OK(sl_hybridize(net));
	SL_SCOPE {
		sl_tensor *x = sl_ones(networks[1].input), *right = sl_forward(net, x);
		CHECK_OK(sl_wait(right));
		int kernels = sl_plan_info(sl_block_plan(net, 0)).nodes;
		for (int k = 1; k <= kernels; k++) {
			slp_fail_kernel = k;
			sl_tensor *y = sl_forward(net, x);
			enum sl_status s = sl_wait(y);
			bool views = slp_fail_kernel > 0; /* some nodes are views: no kernel was left to fail */
			slp_fail_kernel = 0;
			if (views) CHECK(s == SL_OK);
			else CHECK_SAYING(s == SL_EKERNEL && strstr(sl_error_message(), "told to fail"), "kernel %d: %s", k, sl_error_message());
		}
		check_close("after faults", right, sl_forward(net, x), 0);
	}
	sl_block_free(net);
}

/* ---- whole steps ------------------------------------------------------------------------------------------------- */

static void steps_by_hand(sl_block *net, sl_trainer *trainer, const struct network *n, int steps)
{
	sl_seed(21);
	for (int i = 0; i < steps; i++) SL_SCOPE {
		sl_tensor *x = sl_normal(n->input, 0, 1), *t = sl_normal(SL_SHAPE(n->input.dim[0], 3), 0, 1), *l;
		SL_RECORD l = sl_l2_loss(sl_forward(net, x), t);
		CHECK_OK(sl_backward(l));
		CHECK_OK(sl_trainer_step(trainer, n->input.dim[0]));
	}
}

static void steps_compiled(sl_block *net, sl_trainer *trainer, const struct network *n, int steps, unsigned off)
{
	sl_step *step = sl_step_compile(net, sl_l2_loss_at, trainer, .passes_off = off);
	CHECK(step != NULL);
	sl_seed(21);
	for (int i = 0; i < steps; i++) SL_SCOPE {
		sl_tensor *x = sl_normal(n->input, 0, 1), *t = sl_normal(SL_SHAPE(n->input.dim[0], 3), 0, 1);
		CHECK(sl_step_run(step, x, t, NULL) != NULL);
	}
	sl_step_free(step);
}

static void check_params(const char *what, sl_block *a, sl_block *b, double tolerance)
{
	sl_param *x[MAX_PARAMS], *y[MAX_PARAMS];
	int n = sl_block_params(a, x, MAX_PARAMS);
	CHECK(n == sl_block_params(b, y, MAX_PARAMS));
	for (int i = 0; i < n; i++) SL_SCOPE check_close(what, sl_param_data(x[i]), sl_param_data(y[i]), tolerance);
}

static const struct sl_optimizer optimizers[] = {
	{.kind = SL_SGD, .lr = 0.1},
	{.kind = SL_SGD, .lr = 0.1, .momentum = 0.9, .nesterov = true, .clip_norm = 0.5},
	{.kind = SL_ADAM, .lr = 0.01, .schedule = {SL_STEPS, .every = 2, .factor = 0.5}},
	{.kind = SL_ADAMW, .lr = 0.01, .weight_decay = 0.1, .schedule = {SL_COSINE, .warmup = 2, .total = 10}},
	{.kind = SL_RMSPROP, .lr = 0.01, .momentum = 0.5},
};

static void compare_steps(const struct network *n, struct sl_optimizer o, unsigned off, double tolerance)
{
	sl_block *a = make(n), *b = make(n);
	sl_trainer *ta = sl_trainer_new(a, o), *tb = sl_trainer_new(b, o);
	steps_by_hand(a, ta, n, 5);
	steps_compiled(b, tb, n, 5, off);
	check_params(n->name, a, b, tolerance);
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
		for (int i = 0; i < NETWORKS; i++) compare_steps(&networks[i], optimizers[k], ROUNDING, 0);
}

static void test_steps_to_rounding(void)
{
	for (int i = 0; i < NETWORKS; i++) compare_steps(&networks[i], optimizers[0], 0, 2e-4);
}

/* A step that is prepared is compiled, but not made. */
static void test_prepare(void)
{
	sl_block *net = make(&networks[0]);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *step = sl_step_compile(net, sl_l2_loss_at, trainer);
	SL_SCOPE {
		sl_tensor *x = sl_ones(networks[0].input), *t = sl_ones(SL_SHAPE(16, 3));
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
	sl_block *net = make(&networks[0]);
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *step = sl_step_compile(net, sl_l2_loss_at, trainer);
	SL_SCOPE {
		sl_tensor *x = sl_ones(networks[0].input), *t = sl_ones(SL_SHAPE(16, 3)), *y;
		sl_step_run(step, x, t, NULL);
		CHECK_OK(sl_wait_all());
		sl_stats_reset();
		for (int i = 0; i < 10; i++) SL_SCOPE CHECK(sl_step_run(step, x, t, &y) && sl_tensor_shape(y).dim[1] == 3);
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
		check_close("frozen", frozen, before, 0);
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
	sl_step *step = sl_step_compile(net, detached_loss, trainer), *right = sl_step_compile(net, sl_l2_loss_at, trainer);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 4));
		CHECK(!sl_step_run(step, x, sl_ones(SL_SHAPE(2, 3)), NULL) && sl_error() != SL_OK);
		sl_error_clear();
		CHECK(!sl_step_run(right, x, sl_ones(SL_SHAPE(2, 5)), NULL));
		CHECK_SAYING(sl_error() == SL_ESHAPE && strstr(sl_error_message(), "l2_loss"), "message: %s", sl_error_message());
		sl_error_clear();
		CHECK(sl_trainer_steps(trainer) == 0);
		CHECK(sl_step_run(right, x, sl_ones(SL_SHAPE(2, 3)), NULL) != NULL);
	}
	sl_step_free(step);
	sl_step_free(right);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* ---- threads and teams ------------------------------------------------------------------------------------------- */

static void *call_often(void *block)
{
	for (int i = 0; i < 50; i++) SL_SCOPE {
		sl_tensor *y = sl_forward(block, sl_full(SL_SHAPE(1 + i % 3), 3));
		if (!y || sl_item(sl_max(y)) != 6) return block;
	}
	return NULL;
}

static void test_two_threads(void)
{
	pthread_t other;
	void *wrong;
	sl_block *b = user_block(counting);
	CHECK_OK(sl_hybridize(b));
	pthread_create(&other, NULL, call_often, b);
	CHECK(!call_often(b));
	pthread_join(other, &wrong);
	CHECK(!wrong);
	sl_block_free(b);
}

/* Several teams share a plan's units: the same bits as imperatively. */
static void test_teams(void)
{
	struct outcome eager, hybrid;
	sl_shutdown();
	CHECK_OK(sl_init(&(struct sl_config){.teams = 2}));
	sl_block *a = make(&networks[2]), *b = make(&networks[2]);
	train_once(a, networks[2].input, &eager);
	CHECK_OK(sl_hybridize(b, .passes_off = ROUNDING | 1u << SL_PASS_SEGMENT, .static_alloc = true));
	for (int i = 0; i < 2; i++) SL_SCOPE sl_forward(b, sl_zeros(networks[2].input)); /* memory is used again */
	train_once(b, networks[2].input, &hybrid);
	CHECK(sl_plan_info(sl_block_plan(b, 0)).segments > 1);
	check_outcomes("teams", &eager, &hybrid, 0);
	sl_block_free(a);
	sl_block_free(b);
	sl_shutdown();
	CHECK_OK(sl_init(NULL));
}

static const struct slp_test sameness[] = {
	{"same bits without fusion", test_same_bits},
	{"same to rounding", test_same_to_rounding},
	{"each pass off", test_each_pass_off},
	{"inference", test_inference},
	{"captured tensors", test_captured},
	{"inputs of all kinds", test_inputs},
	{"gradients of parts", test_gradient_of_parts},
	{"a shared child", test_shared_child},
	{NULL, NULL},
};
static const struct slp_test plans[] = {
	{"forward is entered once", test_entered_once},
	{"many signatures", test_many_signatures},
	{"a change drops plans", test_change_drops_plans},
	{"parameters change", test_parameters_change},
	{"the block dies first", test_block_dies_first},
	{"changed in between", test_changed_between},
	{"not traceable", test_not_traceable},
	{"fallback", test_fallback},
	{"static shape", test_static_shape},
	{"kernels fail", test_kernels_fail},
	{NULL, NULL},
};
static const struct slp_test steps[] = {
	{"same bits without fusion", test_steps_same_bits},
	{"same to rounding", test_steps_to_rounding},
	{"prepared", test_prepare},
	{"few tasks", test_few_tasks},
	{"frozen parameters", test_frozen},
	{"mistakes", test_step_mistakes},
	{NULL, NULL},
};
static const struct slp_test sharing[] = {
	{"two threads", test_two_threads},
	{"several teams", test_teams},
	{NULL, NULL},
};

int main(int argc, char **argv)
{
	const struct slp_suite suites[] = {
		{.name = "as imperatively", .tests = sameness, .start = slp_start_engine, .stop = slp_stop_engine},
		{.name = "plans of blocks", .tests = plans, .start = slp_start_engine, .stop = slp_stop_engine},
		{.name = "whole steps", .tests = steps, .start = slp_start_engine, .stop = slp_stop_engine},
		{.name = "threads and teams", .tests = sharing, .start = slp_start_engine, .stop = slp_stop_engine},
		{.name = NULL},
	};
	return slp_test_main(argc, argv, suites);
}
