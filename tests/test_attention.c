/* Blocks of transformers: values and gradients are PyTorch's, and so are the losses of a small one that is trained,
 * eagerly, hybridised and in whole steps; mistakes. */
#include <math.h>
#include <stdlib.h>

#include "blocks.h"

enum { MOST = 256, WORDS = 11, WIDTH = 8, HEADS = 2, STEPS = 6 };

/* As in PyTorch's script: size sin(0.7 i + 0.3 + k). */
static sl_tensor *filled(sl_shape shape, int k, double size)
{
	double v[MOST];
	for (int i = 0; i < MOST; i++) v[i] = size * sin(0.7 * i + 0.3 + k);
	return sl_from(v, shape, .dtype = SL_FLOAT64);
}

static void fill_params(sl_block *block, double size)
{
	sl_param *params[64];
	int n = sl_block_params(block, params, 64);
	for (int i = 0; i < n; i++)
		SL_SCOPE
			CHECK_OK(sl_param_set(params[i], filled(sl_param_shape(params[i]), i, size)));
}

static void go_back(sl_block *block, sl_tensor *const *in, int nin, sl_tensor **y)
{
	sl_tensor *loss;
	for (int i = 0; i < 2 && i < nin; i++) sl_attach_grad(in[i]);
	SL_RECORD {
		CHECK_OK(sl_forward_all(block, in, nin, y, 1));
		loss = sl_mul_scalar(sl_sum(sl_square(*y)), 0.5);
	}
	CHECK_OK(sl_backward(loss));
}

/* The first rows of a gradient. */
static sl_tensor *rows(sl_block *block, const char *name, int n)
{
	return sl_rows(sl_param_grad(sl_block_find(block, name)), 0, n);
}

static void check_self(sl_block *block)
{
	SL_SCOPE {
		sl_tensor *x = filled(SL_SHAPE(1, 3, 4), 0, 1.5), *y = NULL;
		go_back(block, &x, 1, &y);
		CHECK_VALUES(y, -0.828489491, 0.195837462, -0.832466067, -0.334034733, -0.279427912, -0.212124869,
		             -0.612745201, -0.34012422, -0.213624509, -0.62922951, 0.107462018, -1.28021024);
		CHECK_VALUES(sl_grad(x), 0.174688731, 0.352489203, 0.364508494, 0.205093746, -0.282356318, -0.403463173,
		             -0.334814993, -0.108698091, -0.00122889829, 0.147347557, 0.226624154, 0.19931587);
		CHECK_VALUES(rows(block, "in_proj_weight", 2), -0.0135750163, -0.0292205863, -0.031123258,
		             -0.0183881752, 0.0159920614, -0.0203980873, -0.0471946968, -0.051794903);
		CHECK_VALUES(rows(block, "in_proj_bias", 4), 0.0762263257, -0.0194388893, 0.0629312169, -0.241800931);
		CHECK_VALUES(rows(block, "out_proj.weight", 2), 1.04669992, -2.18576741, 0.881901526, -1.47849839,
		             -0.00841319557, -0.621450026, -0.967503366, 0.480859206);
	}
}

static void check_memory(sl_block *block)
{
	SL_SCOPE {
		sl_tensor *in[] = {filled(SL_SHAPE(2, 1, 4), 0, 1.5), filled(SL_SHAPE(2, 2, 4), 1, 1.5),
		                   filled(SL_SHAPE(2, 1, 1, 2), 5, 1.5)};
		sl_tensor *y = NULL;
		go_back(block, in, 3, &y);
		CHECK_VALUES(y, 0.344849746, -1.02988767, 0.304005895, -1.24992815, -0.414734951, -0.133340715,
		             -0.625902541, -0.394114094);
		CHECK_VALUES(sl_grad(in[0]), -0.000988959978, 0.0116953865, 0.0188792099, 0.0171838459, 0.01246599,
		             -0.0236044144, -0.0485732939, -0.0506973943);
		CHECK_VALUES(sl_grad(in[1]), 0.0123375105, 0.0054651717, -0.00397752274, -0.0115495261, -0.159816392,
		             -0.440537058, -0.514066262, -0.34582207, 0.136567921, 0.140493224, 0.0783423685,
		             -0.0206541268, -0.118022169, -0.0517378428, 0.0388795995, 0.111211359);
		CHECK_VALUES(rows(block, "in_proj_weight", 2), 0.00625501982, 0.00440424736, 0.000482088553,
		             -0.00366680404, -0.00299679385, -0.104723473, -0.157197067, -0.135738424);
	}
}

static void test_values(void)
{
	for (int causal = 0; causal < 2; causal++) {
		sl_block *block = sl_multi_head_attention(4, 2, .causal = causal);
		CHECK_OK(sl_initialize(block, .dtype = SL_FLOAT64));
		fill_params(block, 0.5);
		for (int i = 0; i < 3; i++) {
			causal ? check_self(block) : check_memory(block);
			if (i == 0) CHECK_OK(sl_hybridize(block));
		}
		sl_block_free(block);
	}
}

/* ---- a transformer that learns ----------------------------------------------------------------------------------- */

static sl_block *transformer(void)
{
	sl_block *net = slp_transformer(WORDS, WIDTH, HEADS, 8, SL_FLOAT64);
	fill_params(net, 0.3);
	return net;
}

/* A loss a token. */
static sl_tensor *token_loss(const char *at, sl_tensor *y, sl_tensor *words)
{
	sl_tensor *all = sl_reshape_at(at, y, SL_SHAPE(2 * STEPS, WORDS));
	return sl_softmax_cross_entropy_at(at, all, sl_reshape_at(at, words, SL_SHAPE(2 * STEPS)));
}

static sl_tensor *train(sl_block *net, sl_trainer *trainer, sl_step *step, sl_tensor *x, sl_tensor *y)
{
	sl_tensor *loss;
	if (step) return sl_step_run(step, x, y, NULL);
	SL_RECORD
		loss = token_loss(SL_HERE, sl_forward(net, x), y);
	CHECK_OK(sl_backward(loss));
	CHECK_OK(sl_trainer_step(trainer, sl_tensor_size(y)));
	return loss;
}

enum way { EAGER, HYBRID, WHOLE, WAYS };

static void test_training(void)
{
	int32_t words[2 * STEPS], next[2 * STEPS];
	for (int i = 0; i < 2 * STEPS; i++) words[i] = (i * i + 3 * i) % WORDS;
	for (int i = 0; i < 2 * STEPS; i++) next[i] = (i * i + 3 * i + 5 * (i % 3)) % WORDS;
	for (enum way way = EAGER; way < WAYS; way++)
		SL_SCOPE {
			sl_block *net = transformer();
			sl_trainer *trainer = sl_trainer_new(net, sl_adamw(.lr = 0.01, .weight_decay = 0.1));
			sl_step *step = way == WHOLE ? sl_step_compile(net, token_loss, trainer) : NULL;
			sl_tensor *x = sl_from(words, SL_SHAPE(2, STEPS), .dtype = SL_INT32), *losses[5];
			sl_tensor *y = sl_from(next, SL_SHAPE(2, STEPS), .dtype = SL_INT32);
			if (way == HYBRID) CHECK_OK(sl_hybridize(net));
			for (int i = 0; i < 5; i++) losses[i] = sl_mean(train(net, trainer, step, x, y));
			CHECK_VALUES(sl_stack(losses, 5, 0), 2.420422, 2.36458731, 2.31464039, 2.26818311, 2.22379606);
			sl_step_free(step);
			sl_trainer_free(trainer);
			sl_block_free(net);
		}
}

static void test_mistakes(void)
{
	SL_SCOPE {
		sl_block *net = sl_multi_head_attention(4, 2), *places = sl_position_embedding(3, 4);
		CHECK_OK(sl_initialize(net));
		CHECK_OK(sl_initialize(places));
		sl_tensor *x = sl_zeros(SL_SHAPE(2, 3, 4)), *other = sl_zeros(SL_SHAPE(1, 3, 4));
		CHECK_NULL(sl_forward(net, sl_zeros(SL_SHAPE(3, 4))), SL_ESHAPE,
		           "got x (3, 4), (rows, steps, 4) needed");
		CHECK_NULL(sl_forward(net, x, other), SL_ESHAPE, "got a memory (1, 3, 4)");
		CHECK_NULL(sl_forward(net, x, x, x, x), SL_EINVAL, "got 4 inputs");
		CHECK_NULL(sl_multi_head_attention(5, 2), SL_EINVAL, "2 heads of a width of 5");
		CHECK_NULL(sl_forward(places, sl_zeros(SL_SHAPE(1, 4, 4))), SL_ESHAPE, "at most 3 steps");
		CHECK_NULL(sl_position_embedding(0, 4), SL_EINVAL, "0 steps");
		sl_block_free(net);
		sl_block_free(places);
	}
}

static const struct slp_test tests[] = {
        {"values and gradients", test_values},
        {"training", test_training},
        {"mistakes", test_mistakes},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"attention", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
