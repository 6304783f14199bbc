/* Hybrid blocks: the same as imperatively, bit for bit where nothing is fused; forward entered once;
 * changes, several threads and teams. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"
#include "networks.h"

static int entered;

/* What a training call leaves: loss, output, gradients, parameters (running statistics among them). */
struct outcome {
	sl_tensor *list[2 * SLP_MAX_PARAMS + 4];
	int count;
};

static void keep(struct outcome *o, sl_tensor *t)
{
	o->list[o->count++] = sl_retain(sl_clone(t));
}

static void train_once(sl_block *net, sl_shape shape, struct outcome *o)
{
	sl_param *params[SLP_MAX_PARAMS];
	int n = sl_block_params(net, params, SLP_MAX_PARAMS);
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
		slp_check_close(name, a->list[i], b->list[i], tolerance);
		sl_release(a->list[i]);
		sl_release(b->list[i]);
	}
}

/* ---- the same as imperatively ------------------------------------------------------------------------------------ */

static void compare_training(const struct slp_network *n, unsigned off, double tolerance)
{
	struct outcome eager, hybrid;
	sl_block *a = slp_network_new(n), *b = slp_network_new(n);
	train_once(a, n->input, &eager);
	CHECK_OK(sl_hybridize(b, .passes_off = off));
	train_once(b, n->input, &hybrid);
	check_outcomes(n->name, &eager, &hybrid, tolerance);
	sl_block_free(a);
	sl_block_free(b);
}

static void test_same_bits(void)
{
	for (int i = 0; i < SLP_NETWORKS; i++) compare_training(&slp_networks[i], SLP_ROUNDING, 0);
}

static void test_same_to_rounding(void)
{
	for (int i = 0; i < SLP_NETWORKS; i++) compare_training(&slp_networks[i], 0, 2e-5);
}

/* Whichever passes are off. */
static void test_each_pass_off(void)
{
	for (int p = 0; p < SL_PASSES; p++)
		for (int i = 0; i < SLP_NETWORKS; i++) compare_training(&slp_networks[i], 1u << p, 2e-5);
	compare_training(&slp_networks[SLP_LENET], (1u << SL_PASSES) - 1, 0);
}

static void test_inference(void)
{
	for (int i = 0; i < SLP_NETWORKS; i++)
		SL_SCOPE {
			sl_block *net = slp_network_new(&slp_networks[i]);
			sl_tensor *x = sl_normal(slp_networks[i].input, 0, 1), *eager = sl_forward(net, x);
			CHECK_OK(sl_hybridize(net, .passes_off = SLP_ROUNDING));
			slp_check_close(slp_networks[i].name, eager, sl_forward(net, x), 0);
			CHECK_OK(sl_hybridize(net));
			slp_check_close(slp_networks[i].name, eager, sl_forward(net, x), 2e-5);
			CHECK_STATUS(sl_hybridize(net, .off = true, .static_alloc = true), SL_EINVAL, ".off runs");
			sl_error_clear();
			CHECK_OK(sl_hybridize(net, .off = true));
			slp_check_close(slp_networks[i].name, eager, sl_forward(net, x), 0);
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

static void test_entered_once(void)
{
	sl_block *b = slp_user_block(counting);
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
		SL_TRAINING
			CHECK_ALL(sl_forward(b, x), 2);
		CHECK(entered == 4); /* another mode */
		CHECK(sl_block_plan(b, 3) && !sl_block_plan(b, 4));
	}
	sl_block_free(b);
}

/* Blocks keep a bounded number of plans. */
static void test_many_signatures(void)
{
	sl_block *b = slp_user_block(counting);
	CHECK_OK(sl_hybridize(b));
	for (int i = 1; i <= 40; i++)
		SL_SCOPE
			CHECK_ALL(sl_forward(b, sl_ones(SL_SHAPE(i))), 2);
	CHECK(sl_block_plan(b, 15) && !sl_block_plan(b, 16));
	sl_block_free(b);
}

static void test_change_drops_plans(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(2, 3));
		sl_block *net = sl_sequential(slp_user_block(counting));
		CHECK_OK(sl_hybridize(net));
		CHECK_ALL(sl_forward(net, x), 2);
		CHECK(sl_block_add(net, NULL, slp_user_block(counting)) != NULL);
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
		sl_block *both = slp_user_block(sum_of_both);
		CHECK_OK(sl_hybridize(both));
		CHECK_VALUES(sl_forward(both, part, sl_rows(x, 2, 4)), 9, 11, 13, 15, 17, 19); /* views of one memory */
		CHECK_VALUES(sl_forward(both, part, part), 6, 8, 10, 12, 14, 16);
		CHECK_VALUES(sl_forward(both, sl_add_scalar(part, 1), part), 7, 9, 11, 13, 15,
		             17); /* not computed yet */
		sl_block_free(both);
		sl_block *same = slp_user_block(identity), *flat = slp_user_block(flattened),
		         *none = slp_user_block(ignoring);
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
		sl_block *b = slp_user_block(captured);
		CHECK_OK(sl_hybridize(b));
		CHECK_ALL(sl_forward(b, x), 15);
		SL_PAUSE
			sl_add_scalar_(kept_tensor, 1);
		CHECK_ALL(sl_forward(b, x), 18);
		SL_RECORD
			y = sl_mul_scalar(sl_forward(b, x), 2);
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(kept_tensor), 6);
		sl_block_free(b);
	}
}

static sl_tensor *paused_first(sl_block *self, sl_tensor *const *in, int nin)
{
	sl_tensor *constant = NULL;
	(void)self;
	(void)nin;
	SL_PAUSE
		constant = sl_mul(in[0], kept_tensor);
	return sl_mul(constant, sl_mul(in[0], kept_tensor));
}

/* What is first met where nothing is recorded is no constant afterwards: (c x) (w x), whose c is w's value. */
static void test_captured_paused(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(2), 3), *y;
		kept_tensor = sl_full(SL_SHAPE(2), 5);
		CHECK_OK(sl_attach_grad(kept_tensor));
		sl_block *b = slp_user_block(paused_first);
		for (int hybrid = 0; hybrid < 2; hybrid++) {
			if (hybrid) CHECK_OK(sl_hybridize(b));
			SL_RECORD
				y = sl_forward(b, x);
			CHECK_ALL(y, 225);
			CHECK_OK(sl_backward(y));
			CHECK_ALL(sl_grad(kept_tensor), 45);
		}
		sl_block_free(b);
	}
}

/* ---- gradients through it ---------------------------------------------------------------------------------------- */

static void test_gradient_of_parts(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_full(SL_SHAPE(2), 3), *y, *z;
		CHECK_OK(sl_attach_grad(x));
		sl_block *b = slp_user_block(counting); /* relu(2 x) */
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
		sl_block *b = slp_user_block(counting);
		CHECK_OK(sl_hybridize(b));
		SL_RECORD
			y = sl_forward(b, x);
		sl_block_free(b);
		CHECK_OK(sl_backward(y));
		CHECK_ALL(sl_grad(x), 2);
	}
}

/* Programs without scopes, as those in other languages, have but the result to release. */
static void test_without_scope(void)
{
	struct sl_stats stats;
	size_t bytes = 0;
	sl_tensor *x = sl_ones(SL_SHAPE(64, 64));
	for (int i = 0; i < 6; i++) {
		sl_block *net = sl_sequential(sl_dense(64, .activation = SL_SIGMOID), sl_dense(64));
		sl_tensor *y;
		CHECK_OK(sl_initialize(net));
		CHECK_OK(sl_hybridize(net));
		SL_RECORD
			y = sl_forward(net, x);
		CHECK_OK(sl_backward(y));
		sl_release(y);
		sl_block_free(net);
		CHECK_OK(sl_wait_all());
		sl_stats_get(&stats);
		if (i == 2) bytes = stats.bytes;
	}
	CHECK_SAYING(stats.bytes <= bytes, "%zu bytes after three networks, %zu after six", bytes, stats.bytes);
	sl_release(x);
}

/* A parameter changed between forward and backward is noticed, as imperatively. */
static void test_changed_between(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2)), *y;
		sl_block *d = sl_dense(2);
		CHECK_OK(sl_initialize(d));
		CHECK_OK(sl_hybridize(d));
		SL_RECORD
			y = sl_forward(d, x);
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
		SL_SCOPE
			sl_forward(nets[i], sl_zeros(shape));
		if (i) CHECK_OK(sl_hybridize(child, .passes_off = SLP_ROUNDING));
	}
	train_once(nets[0], shape, &eager);
	train_once(nets[1], shape, &hybrid);
	check_outcomes("shared", &eager, &hybrid, 1e-6); /* the sum of both uses is taken in another order */
	sl_block_free(nets[0]);
	sl_block_free(nets[1]);
}

/* ---- threads and teams ------------------------------------------------------------------------------------------- */

static void *call_often(void *block)
{
	for (int i = 0; i < 50; i++)
		SL_SCOPE {
			sl_tensor *y = sl_forward(block, sl_full(SL_SHAPE(1 + i % 3), 3));
			if (!y || sl_item(sl_max(y)) != 6) return block;
		}
	return NULL;
}

static void test_two_threads(void)
{
	pthread_t other;
	void *wrong;
	sl_block *b = slp_user_block(counting);
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
	sl_block *a = slp_network_new(&slp_networks[SLP_RESNET]), *b = slp_network_new(&slp_networks[SLP_RESNET]);
	train_once(a, slp_networks[SLP_RESNET].input, &eager);
	CHECK_OK(sl_hybridize(b, .passes_off = SLP_ROUNDING | 1u << SL_PASS_SEGMENT, .static_alloc = true));
	for (int i = 0; i < 2; i++)
		SL_SCOPE
			sl_forward(b, sl_zeros(slp_networks[SLP_RESNET].input)); /* memory is used again */
	train_once(b, slp_networks[SLP_RESNET].input, &hybrid);
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
        {"tensors captured where nothing is recorded", test_captured_paused},
        {"inputs of all kinds", test_inputs},
        {"gradients of parts", test_gradient_of_parts},
        {"a shared child", test_shared_child},
        {NULL, NULL},
};
static const struct slp_test plans[] = {
        {"forward is entered once", test_entered_once},    {"many signatures", test_many_signatures},
        {"a change drops plans", test_change_drops_plans}, {"parameters change", test_parameters_change},
        {"the block dies first", test_block_dies_first},   {"changed in between", test_changed_between},
        {"without a scope", test_without_scope},           {NULL, NULL},
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
	        {.name = "threads and teams", .tests = sharing, .start = slp_start_engine, .stop = slp_stop_engine},
	        {.name = NULL},
	};
	return slp_test_main(argc, argv, suites);
}
