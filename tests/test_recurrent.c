/* Recurrent layers: values, states and gradients are PyTorch's, eagerly and hybridised; whole steps are like eager
 * ones; blocks with several results; mistakes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"

enum { MOST = 64, ROWS = 2, STEPS = 3, WIDTH = 2 };

/* As in the script that made recurrent.def. */
static sl_tensor *filled(sl_shape shape, int k, double size)
{
	double v[MOST];
	for (int i = 0; i < MOST; i++) v[i] = size * sin(0.7 * i + 0.3 + k);
	return sl_from(v, shape, .dtype = SL_FLOAT64);
}

static void fill_params(sl_block *block)
{
	sl_param *params[16];
	int n = sl_block_params(block, params, 16);
	for (int i = 0; i < n; i++) CHECK_OK(sl_param_set(params[i], filled(sl_param_shape(params[i]), i, 0.5)));
}

/* ---- against PyTorch --------------------------------------------------------------------------------------------- */

#define MAKE(name, value)                                                                                              \
	static sl_block *name(void)                                                                                    \
	{                                                                                                              \
		return value;                                                                                          \
	}
MAKE(rnn_tanh, sl_rnn(WIDTH))
MAKE(rnn_relu, sl_rnn(WIDTH, .layers = 2, .relu = true, .batch_first = true, .in_units = WIDTH))
MAKE(lstm, sl_lstm(WIDTH))
MAKE(lstm_stack, sl_lstm(WIDTH, .layers = 2, .bidirectional = true, .batch_first = true))
MAKE(lstm_no_bias, sl_lstm(WIDTH, .bidirectional = true, .no_bias = true))
MAKE(gru, sl_gru(WIDTH))
MAKE(gru_stack, sl_gru(WIDTH, .layers = 2, .bidirectional = true))
MAKE(rnn_lengths, sl_rnn(WIDTH, .lengths = true))
MAKE(lstm_stack_lengths, sl_lstm(WIDTH, .layers = 2, .bidirectional = true, .batch_first = true, .lengths = true))
MAKE(gru_stack_lengths, sl_gru(WIDTH, .layers = 2, .bidirectional = true, .lengths = true))

/* Numbers that are to be: a single 0 stands for none. */
struct list {
	int count;
	const double *values;
};

struct expectation {
	const char *name;
	sl_block *(*make)(void);
	struct list y, states, cells, dx, dstate, dcell, dlast, dfirst, dbias;
};

/* clang-format off */
#define LIST(...) {SL_COUNT_(double, __VA_ARGS__), (const double[]){__VA_ARGS__}}
/* clang-format on */
static const struct expectation expected[] = {
/* clang-format off */
#define X(name, y, states, cells, dx, dstate, dcell, dlast, dfirst, dbias)                                             \
	{#name, name, LIST y, LIST states, LIST cells, LIST dx, LIST dstate, LIST dcell, LIST dlast, LIST dfirst, LIST dbias},
/* clang-format on */
#include "recurrent.def"
#undef X
};

/* How many steps of each row count. */
static const struct {
	const char *name;
	int64_t counts[ROWS];
} counted[] = {{"rnn_lengths", {1, 3}}, {"lstm_stack_lengths", {2, 3}}, {"gru_stack_lengths", {3, 1}}};

static sl_tensor *lengths_of(const char *name)
{
	for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
		if (!strcmp(counted[i].name, name))
			return sl_from(counted[i].counts, SL_SHAPE(ROWS), .dtype = SL_INT64);
	return NULL;
}

static bool is_given(struct list l)
{
	return l.count > 1 || l.values[0] != 0;
}

#define SAME(t, list) (!is_given(list) || slp_check_values(__FILE__, __LINE__, t, (list).count, (list).values))

static sl_tensor *gradient(sl_block *block, const char *start, int layer, bool reverse)
{
	char name[64];
	snprintf(name, sizeof name, "%s_l%d%s", start, layer, reverse ? "_reverse" : "");
	return sl_param_grad(sl_block_find(block, name));
}

/* Half the sum of the squares of the results, the sum of those of the states, twice that of those of the cells. */
static sl_tensor *loss_of(sl_tensor *const *out, int nout)
{
	sl_tensor *loss = sl_mul_scalar(sl_sum(sl_square(out[0])), 0.5);
	for (int i = 1; i < nout; i++) loss = sl_add(loss, sl_mul_scalar(sl_sum(sl_square(out[i])), i));
	return loss;
}

static bool check_one(const struct expectation *e, sl_block *block, bool batch_first, int runs)
{
	bool ok = true, has_cells = is_given(e->cells);
	int given = is_given(e->dstate) ? has_cells ? 3 : 2 : 1, nout = has_cells ? 3 : 2, nin = 0;
	SL_SCOPE {
		sl_shape states = SL_SHAPE(runs, ROWS, WIDTH);
		sl_tensor *out[3] = {NULL}, *loss = NULL;
		sl_tensor *in[] = {
		        filled(batch_first ? SL_SHAPE(ROWS, STEPS, WIDTH) : SL_SHAPE(STEPS, ROWS, WIDTH), 0, 1.5),
		        filled(states, 1, 1.5), filled(states, 2, 1.5)};
		sl_tensor *all[4], *lengths = lengths_of(e->name);
		for (int i = 0; i < given; i++) {
			sl_attach_grad(in[i]);
			all[nin++] = in[i];
			if (!i && lengths) all[nin++] = lengths;
		}
		SL_RECORD {
			ok &= CHECK_OK(sl_forward_all(block, all, nin, out, nout));
			loss = loss_of(out, nout);
		}
		ok &= CHECK_OK(sl_backward(loss)) && SAME(out[0], e->y) && SAME(out[1], e->states) &&
		      SAME(out[2], e->cells) && SAME(sl_grad(in[0]), e->dx) && SAME(sl_grad(in[1]), e->dstate) &&
		      SAME(sl_grad(in[2]), e->dcell);
		bool both = strstr(e->name, "stack") || strstr(e->name, "no_bias");
		ok &= SAME(gradient(block, "weight_hh", runs / (both ? 2 : 1) - 1, both), e->dlast);
		ok &= SAME(gradient(block, "weight_ih", 0, false), e->dfirst);
		if (is_given(e->dbias)) ok &= SAME(gradient(block, "bias_hh", 0, false), e->dbias);
	}
	return ok;
}

static void test_values(void)
{
	for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
		const struct expectation *e = &expected[i];
		sl_block *block = e->make();
		bool batch_first = !strcmp(e->name, "rnn_relu") || !strncmp(e->name, "lstm_stack", 10);
		int runs = e->states.count / (ROWS * WIDTH);
		SL_SCOPE {
			CHECK_OK(sl_initialize(block, .dtype = SL_FLOAT64));
			sl_tensor *x = filled(SL_SHAPE(ROWS, ROWS, WIDTH), 0, 0), *n = lengths_of(e->name);
			CHECK((n ? sl_forward(block, x, sl_mul_scalar(n, 0)) : sl_forward(block, x)) != NULL);
			fill_params(block);
		}
		bool ok = check_one(e, block, batch_first, runs) && CHECK_OK(sl_hybridize(block)) &&
		          check_one(e, block, batch_first, runs) && check_one(e, block, batch_first, runs);
		if (!ok) fprintf(stderr, "%s\n", e->name);
		sl_error_clear();
		sl_block_free(block);
	}
}

/* ---- whole steps ------------------------------------------------------------------------------------------------- */

static sl_block *model(void)
{
	sl_block *net = sl_sequential(sl_embedding(11, 6), sl_gru(5, .bidirectional = true), sl_lstm(7, .layers = 2),
	                              sl_dense(11, .no_flatten = true));
	sl_seed(5);
	CHECK_OK(sl_initialize(net));
	CHECK(sl_forward(net, sl_zeros(SL_SHAPE(1, 1), .dtype = SL_INT32)) != NULL);
	return net;
}

/* A loss a token. */
static sl_tensor *token_loss(const char *at, sl_tensor *y, sl_tensor *labels)
{
	sl_tensor *rows = sl_reshape_at(at, y, SL_SHAPE(18, 11));
	return sl_softmax_cross_entropy_at(at, rows, sl_reshape_at(at, labels, SL_SHAPE(18)));
}

static sl_tensor *train(sl_block *net, bool whole, sl_tensor *x, sl_tensor *y)
{
	sl_trainer *trainer = sl_trainer_new(net, sl_adam(.lr = 0.01));
	sl_step *step = whole ? sl_step_compile(net, token_loss, trainer) : NULL;
	sl_tensor *loss = NULL;
	for (int i = 0; i < 4; i++) {
		if (whole) {
			loss = sl_step_run(step, x, y, NULL);
			continue;
		}
		SL_RECORD
			loss = token_loss(SL_HERE, sl_forward(net, x), y);
		CHECK_OK(sl_backward(loss));
		CHECK_OK(sl_trainer_step(trainer, sl_tensor_size(y)));
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	return loss;
}

static bool is_near(sl_tensor *a, sl_tensor *b)
{
	return sl_item(sl_max(sl_abs(sl_sub(a, b)))) < 1e-5;
}

static void test_steps(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_randint(SL_SHAPE(6, 3), 0, 11), *y = sl_randint(SL_SHAPE(6, 3), 0, 11);
		sl_block *eager = model(), *hybrid = model(), *whole = model();
		CHECK_OK(sl_hybridize(hybrid));
		sl_tensor *loss = train(eager, false, x, y);
		CHECK(is_near(loss, train(hybrid, false, x, y)));
		CHECK(is_near(loss, train(whole, true, x, y)));
		CHECK(is_near(slp_data(eager, "2.weight_hh_l1"), slp_data(whole, "2.weight_hh_l1")));
		CHECK(is_near(slp_data(eager, "1.bias_hh_l0_reverse"), slp_data(whole, "1.bias_hh_l0_reverse")));
		sl_block_free(eager);
		sl_block_free(hybrid);
		sl_block_free(whole);
	}
}

/* Dropout is between layers, and in training only. */
static void test_dropout(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(4, 3, 2), 0, 1), *calm, *noisy, *again;
		sl_block *net = sl_lstm(8, .layers = 2, .dropout = 0.5);
		CHECK_OK(sl_initialize(net));
		calm = sl_forward(net, x);
		CHECK_SAME(calm, sl_forward(net, x));
		SL_RECORD
			noisy = sl_forward(net, x);
		SL_RECORD
			again = sl_forward(net, x);
		CHECK(!is_near(calm, noisy) && !is_near(noisy, again));
		CHECK_NULL(sl_lstm(8, .dropout = 0.5), SL_EINVAL, "sl_lstm", ".dropout 0.5 is between layers");
		sl_block_free(net);
	}
}

/* ---- sequences of different lengths ------------------------------------------------------------------------------ */

/* What lies behind a sequence does not matter, not even NaN; of an empty one the first state stays. */
static void check_lengths(sl_block *net, int states)
{
	SL_SCOPE {
		int32_t counts[] = {0, 2};
		sl_tensor *x = sl_normal(SL_SHAPE(3, 2, 4), 0, 1), *h = sl_normal(SL_SHAPE(2, 2, 5), 0, 1), *out[3],
		          *same[3];
		sl_tensor *past = sl_from(((float[]){1, 0, 1, 0, 1, 1}), SL_SHAPE(3, 2, 1));
		sl_tensor *worse = sl_masked_fill(x, past, NAN),
		          *lengths = sl_from(counts, SL_SHAPE(2), .dtype = SL_INT32);
		sl_tensor *in[] = {x, lengths, h, h}, *bad[] = {worse, lengths, h, h};
		CHECK_OK(sl_forward_all(net, in, 2 + states, out, 1 + states));
		CHECK_OK(sl_forward_all(net, bad, 2 + states, same, 1 + states));
		for (int i = 0; i <= states; i++) CHECK_SAME(out[i], same[i]);
		for (int i = 1; i <= states; i++) CHECK_SAME(sl_slice(out[i], 1, 0, 1, 1), sl_slice(h, 1, 0, 1, 1));
		CHECK(sl_item(sl_sum(sl_abs(sl_slice(out[0], 1, 0, 1, 1)))) == 0);
		CHECK(sl_item(sl_sum(sl_abs(sl_slice(out[0], 0, 2, 3, 1)))) == 0);
	}
}

static void test_lengths(void)
{
	sl_block *nets[] = {sl_rnn(5, .bidirectional = true, .lengths = true),
	                    sl_gru(5, .bidirectional = true, .lengths = true),
	                    sl_lstm(5, .bidirectional = true, .lengths = true)};
	for (int i = 0; i < 3; i++) {
		CHECK_OK(sl_initialize(nets[i]));
		check_lengths(nets[i], i == 2 ? 2 : 1);
		CHECK_OK(sl_hybridize(nets[i]));
		check_lengths(nets[i], i == 2 ? 2 : 1);
		sl_block_free(nets[i]);
	}
}

/* ---- several results --------------------------------------------------------------------------------------------- */

static sl_tensor *three_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self, (void)nin;
	if (sl_also(sl_mul_scalar(in[0], 2)) != SL_OK || sl_also(sl_sum(in[0])) != SL_OK) return NULL;
	return sl_square(in[0]);
}

static sl_tensor *around_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	sl_tensor *out[3];
	if (sl_forward_all(sl_block_child(self, 0), in, nin, out, 3) != SL_OK) return NULL;
	return sl_also(out[0]) == SL_OK ? sl_add(out[1], out[2]) : NULL;
}

/* Gradients come by some of the results, or by all. */
static void check_results(sl_block *block)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *out[4] = {NULL};
		SL_RECORD
			CHECK_OK(sl_forward_all(block, &x, 1, out, 3));
		CHECK_VALUES(out[0], 1, 4, 9);
		CHECK_VALUES(out[1], 2, 4, 6);
		CHECK_VALUES(out[2], 6);
		CHECK_OK(sl_backward(out[1]));
		CHECK_VALUES(sl_grad(x), 2, 2, 2);
		SL_RECORD
			CHECK_OK(sl_forward_all(block, &x, 1, out, 3));
		sl_tensor *loss;
		SL_RECORD
			loss = sl_add(sl_sum(out[0]), out[2]);
		CHECK_OK(sl_backward(loss));
		CHECK_VALUES(sl_grad(x), 3, 5, 7);
		SL_RECORD
			CHECK_VALUES(sl_forward(block, x), 1, 4, 9);
		CHECK_STATUS(sl_forward_all(block, &x, 1, out, 4), SL_EINVAL, "returns 3 results, but 4 are requested");
		sl_error_clear();
	}
}

static void test_results(void)
{
	sl_block *block = slp_user_block(three_forward), *around = slp_user_block(around_forward);
	check_results(block);
	CHECK_OK(sl_hybridize(block));
	check_results(block);
	check_results(block);
	CHECK(sl_block_add(around, NULL, block) != NULL);
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			sl_tensor *x = slp_leaf(2, 1), *out[2] = {NULL};
			CHECK_OK(sl_forward_all(around, &x, 1, out, 2));
			CHECK_VALUES(out[0], 5, 7);
			CHECK_VALUES(out[1], 1, 4);
			CHECK_OK(sl_hybridize(around));
		}
	sl_block_free(around);
	CHECK_STATUS(sl_also(NULL), SL_EINVAL, "no block's forward runs");
	sl_error_clear();
}

/* ---- mistakes ---------------------------------------------------------------------------------------------------- */

static void test_mistakes(void)
{
	SL_SCOPE {
		sl_block *net = sl_lstm(4);
		CHECK_OK(sl_initialize(net));
		sl_tensor *x = sl_zeros(SL_SHAPE(3, 2, 5)), *state = sl_zeros(SL_SHAPE(1, 3, 4)), *out[4];
		CHECK_NULL(sl_forward(net, x, state), SL_EINVAL, "got 2 inputs");
		CHECK_NULL(sl_forward(net, x, state, state), SL_ESHAPE, "got a state (1, 3, 4), (1, 2, 4) needed");
		CHECK_NULL(sl_forward(net, sl_zeros(SL_SHAPE(3, 5))), SL_ESHAPE, "got x (3, 5), (steps, rows, inputs)");
		CHECK_NULL(sl_forward(net, sl_zeros(SL_SHAPE(0, 2, 5))), SL_ESHAPE, "got x (0, 2, 5)",
		           "and a step at least");
		CHECK_STATUS(sl_forward_all(net, &x, 1, out, 4), SL_EINVAL, "returns 3 results");
		sl_error_clear();
		CHECK_NULL(sl_lstm(0), SL_EINVAL, "sl_lstm", "hidden 0");
		CHECK_NULL(sl_gru(3, .dropout = 1), SL_EINVAL, "dropout 1");
		CHECK_NULL(sl_gru(3, .relu = true), SL_EINVAL, ".relu");
		CHECK_NULL(sl_recurrent(SL_CELL_GRU, x, state, NULL, .cell = state), SL_EINVAL,
		           "only an LSTM has a cell");
		CHECK_NULL(sl_recurrent(SL_CELL_GRU, x, x, NULL), SL_ESHAPE, "sl_recurrent", "units");
		sl_block_free(net);
	}
	sl_wait_all();
	sl_error_clear();
}

static void test_wrong_lengths(void)
{
	SL_SCOPE {
		sl_block *net = sl_gru(4, .lengths = true, .batch_first = true);
		CHECK_OK(sl_initialize(net));
		sl_tensor *x = sl_zeros(SL_SHAPE(2, 3, 5)), *n = sl_zeros(SL_SHAPE(2), .dtype = SL_INT32);
		CHECK_NULL(sl_forward(net, x), SL_EINVAL, "takes x and lengths, or x, lengths and state, but got 1");
		CHECK_NULL(sl_forward(net, x, sl_zeros(SL_SHAPE(3), .dtype = SL_INT32)), SL_ESHAPE,
		           "the shape of lengths is (3,), (2,) needed");
		CHECK_NULL(sl_forward(net, x, sl_zeros(SL_SHAPE(2))), SL_EDTYPE,
		           "the lengths are float32, integers needed");
		CHECK(sl_forward(net, x, n) != NULL);
		CHECK(sl_forward(net, x, sl_add_scalar(n, 4)) != NULL); /* seen when it runs */
		CHECK_STATUS(sl_wait_all(), SL_EINVAL, "gather", "index 6", "outside the 6 rows");
		sl_block_free(net);
	}
	sl_error_clear();
}

static const struct slp_test tests[] = {
        {"values, states and gradients", test_values},
        {"whole steps", test_steps},
        {"dropout", test_dropout},
        {"lengths", test_lengths},
        {"several results", test_results},
        {"mistakes", test_mistakes},
        {"wrong lengths", test_wrong_lengths},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"recurrent layers", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
