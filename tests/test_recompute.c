/* Blocks whose inside is computed again in the backward pass: the same bits as if it had been kept, in less memory. */
#include <stdlib.h>

#include "networks.h"

enum way { EAGER, HYBRID, WHOLE, SHARDS, WAYS };
static const char *const way_names[WAYS] = {"call by call", "hybridised", "whole step", "two shards"};

/* Dropout, batch normalisation, recurrence with dropout between its layers, a block in a block. */
static sl_block *deep(void)
{
	sl_block *dropped = sl_sequential(sl_dense(12, .activation = SL_TANH), sl_dropout_layer(0.4),
	                                  sl_sequential(sl_dense(12), sl_dropout_layer(0.2)));
	return sl_sequential(sl_dense(12, .activation = SL_RELU), sl_residual(dropped, NULL, SL_RELU),
	                     sl_batch_norm_layer(), sl_dense(3));
}

static sl_tensor *as_steps(sl_tensor *x)
{
	return sl_reshape(x, SL_SHAPE(3, 4, 4));
}

static sl_tensor *as_rows(sl_tensor *x)
{
	return sl_reshape(x, SL_SHAPE(4, 18));
}

static sl_block *recurrent(void)
{
	sl_block *lstm = sl_lstm(6, .layers = 2, .dropout = 0.3);
	return sl_sequential(sl_lambda("steps", as_steps), sl_sequential(lstm, sl_lambda("rows", as_rows)),
	                     sl_dense(3));
}

static const struct slp_network networks[] = {
        {"deep", deep, {2, {6, 8}}},
        {"recurrent", recurrent, {3, {4, 3, 4}}},
};

static void recompute_all(sl_block *net, int depth)
{
	for (int i = 0; i < sl_block_children(net); i++) {
		CHECK_OK(sl_block_recompute(sl_block_child(net, i), true));
		if (depth > 1) recompute_all(sl_block_child(net, i), depth - 1);
	}
}

static void step_eagerly(sl_block *net, sl_trainer *trainer, sl_tensor *x, sl_tensor *t)
{
	sl_tensor *l;
	SL_RECORD
		l = sl_l2_loss(sl_forward(net, x), t);
	CHECK_OK(sl_backward(l));
	CHECK_OK(sl_trainer_step(trainer, sl_tensor_shape(x).dim[0]));
}

static void step_in_shards(sl_step *step, sl_tensor *x, sl_tensor *t)
{
	int64_t n = sl_tensor_shape(x).dim[0];
	sl_tensor *xs[] = {sl_rows(x, 0, n / 2), sl_rows(x, n / 2, n)},
	          *ts[] = {sl_rows(t, 0, n / 2), sl_rows(t, n / 2, n)};
	CHECK(sl_step_run(step, .in = xs, .targets = ts, .shards = 2) != NULL);
}

static void train(sl_block *net, const struct slp_network *n, enum way way, unsigned off)
{
	sl_trainer *trainer = sl_trainer_new(net, sl_adam(.lr = 0.01));
	sl_step *step = sl_step_compile(net, sl_l2_loss_at, trainer, .passes_off = off);
	if (way == HYBRID) CHECK_OK(sl_hybridize(net, .passes_off = off));
	sl_seed(21);
	for (int i = 0; i < 3; i++)
		SL_SCOPE {
			sl_tensor *x = sl_normal(n->input, 0, 1), *t = sl_normal(SL_SHAPE(n->input.dim[0], 3), 0, 1);
			if (way <= HYBRID) step_eagerly(net, trainer, x, t);
			else if (way == WHOLE) CHECK(sl_step_run(step, x, t, NULL) != NULL);
			else step_in_shards(step, x, t);
		}
	CHECK_SAYING(sl_error() == SL_OK, "%s", sl_error_message());
	sl_step_free(step);
	sl_trainer_free(trainer);
}

/* Parameters, running statistics among them, and the number of random streams drawn. */
static void compare(const struct slp_network *n, enum way way, int depth, unsigned off, double tolerance)
{
	sl_block *kept = slp_network_new(n), *again = slp_network_new(n);
	recompute_all(again, depth);
	train(kept, n, way, off);
	struct sl_rng drawn = sl_rng_get();
	train(again, n, way, off);
	char what[64];
	snprintf(what, sizeof what, "%s, %s", n->name, way_names[way]);
	CHECK_SAYING(drawn.stream == sl_rng_get().stream, "%s: other random numbers", what);
	slp_check_params(what, kept, again, tolerance);
	sl_block_free(kept);
	sl_block_free(again);
}

static void test_same_bits(void)
{
	for (enum way way = 0; way < WAYS; way++) {
		for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
			if (way == SHARDS && i) continue; /* its reshapes are for the whole batch */
			compare(&networks[i], way, 1, SLP_ROUNDING, 0);
			compare(&networks[i], way, 2, SLP_ROUNDING, 0);
			if (way != EAGER) compare(&networks[i], way, 2, 0, 1e-6); /* what is fused may differ */
		}
	}
	compare(&slp_networks[SLP_RESNET], EAGER, 2, 0, 0);
	compare(&slp_networks[SLP_LENET], WHOLE, 1, SLP_ROUNDING, 0);
}

/* A hybridised block inside, and a first forward pass that gives the parameters their values. */
static void test_hybrid_inside(void)
{
	sl_block *nets[2];
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			sl_block *inner = sl_sequential(sl_dense(9, .activation = SL_TANH), sl_dropout_layer(0.5)),
			         *outer;
			nets[i] = sl_sequential(outer = sl_sequential(inner, sl_dropout_layer(0.5)), sl_dense(3));
			CHECK_OK(sl_hybridize(inner));
			if (i) CHECK_OK(sl_block_recompute(outer, true));
			sl_seed(3);
			CHECK_OK(sl_initialize(nets[i], .init = sl_xavier_init()));
			sl_trainer *trainer = sl_trainer_new(nets[i], sl_sgd(.lr = 0.1));
			for (int k = 0; k < 2; k++)
				step_eagerly(nets[i], trainer, sl_ones(SL_SHAPE(5, 4)), sl_ones(SL_SHAPE(5, 3)));
			sl_trainer_free(trainer);
		}
	slp_check_params("hybridised inside", nets[0], nets[1], 0);
	for (int i = 0; i < 2; i++) sl_block_free(nets[i]);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

enum { GROUPS = 6, LAYERS = 6, WIDTH = 64, ROWS = 2048 };

static sl_block *tower(bool recompute)
{
	sl_block *net = sl_sequential(sl_dense(WIDTH));
	for (int i = 0; i < GROUPS; i++) {
		sl_block *group = sl_sequential(sl_dense(WIDTH, .activation = SL_TANH));
		for (int k = 1; k < LAYERS; k++) sl_block_add(group, NULL, sl_dense(WIDTH, .activation = SL_TANH));
		CHECK_OK(sl_block_recompute(sl_block_add(net, NULL, group), recompute));
	}
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	return net;
}

static size_t eager_peak(sl_block *net)
{
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(sl_wait_all());
		sl_stats_reset();
		SL_SCOPE
			step_eagerly(net, trainer, sl_ones(SL_SHAPE(ROWS, WIDTH)), sl_ones(SL_SHAPE(ROWS, WIDTH)));
	}
	CHECK_OK(sl_wait_all());
	sl_trainer_free(trainer);
	return slp_stats().peak_bytes;
}

static size_t compiled_peak(sl_block *net)
{
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *step = sl_step_compile(net, sl_l2_loss_at, trainer);
	SL_SCOPE
		CHECK_OK(sl_step_prepare(step, sl_ones(SL_SHAPE(ROWS, WIDTH)), sl_ones(SL_SHAPE(ROWS, WIDTH))));
	size_t bytes = sl_step_info(step).memory;
	sl_step_free(step);
	sl_trainer_free(trainer);
	return bytes;
}

static void test_memory(void)
{
	size_t eager[2], compiled[2];
	for (int i = 1; i >= 0; i--) { /* what was once needed stays in pools: the smaller one first */
		sl_block *net = tower(i);
		eager[i] = eager_peak(net);
		compiled[i] = compiled_peak(net);
		sl_block_free(net);
	}
	printf("\n  call by call %zu -> %zu KiB, whole step %zu -> %zu KiB\n", eager[0] >> 10, eager[1] >> 10,
	       compiled[0] >> 10, compiled[1] >> 10);
	CHECK_SAYING(eager[1] < eager[0] * 3 / 4, "call by call %zu, recomputed %zu", eager[0], eager[1]);
	CHECK_SAYING(compiled[1] < compiled[0] * 2 / 3, "whole step %zu, recomputed %zu", compiled[0], compiled[1]);
}

/* ---- results and mistakes ---------------------------------------------------------------------------------------- */

struct stash {
	sl_block base;
	sl_tensor *kept, *weight;
};

static sl_tensor *stash_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	struct stash *s = (struct stash *)self;
	sl_tensor *y = sl_mul(in[0], s->weight);
	sl_release(s->kept);
	s->kept = sl_retain(y);
	if (nin > 1 && sl_also(sl_square(y)) != SL_OK) return NULL;
	return sl_exp(y);
}

/* A tensor from outside has its gradient though the input wants none; several results; what is not returned has no
 * gradient, which is said. */
static void test_outside(void)
{
	struct stash *s = calloc(1, sizeof *s);
	CHECK_OK(sl_block_init(&s->base, "Stash", stash_forward, NULL));
	CHECK_OK(sl_block_recompute(&s->base, true));
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *in[2], *out[2];
		in[0] = in[1] = sl_ones(SL_SHAPE(2), .dtype = SL_FLOAT64);
		s->weight = x;
		SL_RECORD {
			CHECK_OK(sl_forward_all(&s->base, in, 2, out, 2));
			CHECK_NULL(sl_add(s->kept, s->kept), SL_ESTATE, "recomputed");
		}
		CHECK_STATUS(sl_backward(s->kept), SL_ESTATE, "recomputed");
		sl_error_clear();
		CHECK_OK(sl_backward_heads(out, 2, .retain_graph = true));
		CHECK_VALUES(sl_grad(x), 2 * 1 + 2.718281828459045, 2 * 2 + 7.38905609893065);
		CHECK_OK(sl_backward(out[1]));
		CHECK_VALUES(sl_grad(x), 2, 4);
		CHECK_STATUS(sl_backward(out[0]), SL_ESTATE, "released");
		sl_error_clear();
		SL_RECORD
			out[0] = sl_forward(&s->base, in[0]);
		SL_PAUSE
			sl_add_(x, x);
		CHECK_STATUS(sl_backward(out[0]), SL_ESTATE, "changed in place");
		sl_error_clear();
	}
	sl_release(s->kept);
	CHECK_STATUS(sl_block_recompute(NULL, true), SL_EINVAL, "NULL");
	sl_error_clear();
	sl_block_free(&s->base);
}

static const struct slp_test tests[] = {
        {"the same bits", test_same_bits},
        {"a hybridised block inside", test_hybrid_inside},
        {"less memory", test_memory},
        {"results and mistakes", test_outside},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	const struct slp_suite suites[] = {
	        {.name = "recomputed blocks", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine},
	        {.name = NULL},
	};
	return slp_test_main(argc, argv, suites);
}
