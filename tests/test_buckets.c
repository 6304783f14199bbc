/* Buckets: hybrid blocks and whole steps on batches of many sizes give what the network gives without them, in float64,
 * with a program for each bucket; networks for which that is not so are refused. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"

enum { WORDS = 11, WIDTH = 8, LONGEST = 70 };
#define SIZES                                                                                                          \
	{                                                                                                              \
		8, 16, 32, 64                                                                                          \
	}

/* ---- networks ---------------------------------------------------------------------------------------------------- */

static sl_block *mlp(void)
{
	return sl_sequential(sl_dense(6, .activation = SL_TANH), sl_layer_norm_layer(), sl_dense(3));
}

static sl_block *part(sl_block *first, sl_block *second, sl_block *third)
{
	sl_block *body = third ? sl_sequential(first, second, third) : sl_sequential(first, second);
	return sl_residual(body, NULL, SL_IDENTITY);
}

static int64_t places = LONGEST;

static sl_block *gpt(bool causal)
{
	return sl_sequential(sl_embedding(WORDS, WIDTH), sl_position_embedding(places, WIDTH),
	                     part(sl_layer_norm_layer(), sl_multi_head_attention(WIDTH, 2, .causal = causal), NULL),
	                     part(sl_layer_norm_layer(), sl_dense(2 * WIDTH, .no_flatten = true, .activation = SL_GELU),
	                          sl_dense(WIDTH, .no_flatten = true)),
	                     sl_dense(WORDS, .no_flatten = true));
}

static sl_block *causal_gpt(void)
{
	return gpt(true);
}

static sl_block *lstm(void)
{
	return sl_sequential(sl_lstm(6, .layers = 2), sl_dense(3, .no_flatten = true));
}

static sl_block *images(void)
{
	return sl_sequential(sl_conv2d_layer(4, .kernel = {3}, .activation = SL_RELU), sl_max_pool2d_layer(2),
	                     sl_dense(3));
}

/* Rows of rows as one axis, and back. */
static sl_tensor *turned(sl_tensor *x)
{
	sl_shape s = sl_tensor_shape(x);
	sl_tensor *y = sl_reshape(sl_transpose(x, SL_AXES(1, 0, 2)), SL_SHAPE(-1, s.dim[2]));
	y = sl_add(sl_softmax(y, -1), sl_sum(y, SL_AXES(1), .keepdims = true));
	return sl_reshape(sl_concat(SL_ARRAY(sl_tensor *, y, sl_neg(y)), 2, 1), SL_SHAPE(s.dim[1], s.dim[0], -1));
}

static sl_tensor *back(sl_tensor *x)
{
	return sl_transpose(x, SL_AXES(1, 0, 2));
}

static sl_block *moved(void)
{
	return sl_sequential(sl_dense(4, .no_flatten = true), sl_lambda("turned", turned),
	                     sl_dense(3, .no_flatten = true));
}

static sl_block *reshaped(void)
{
	return sl_sequential(moved(), sl_lambda("back", back));
}

static const struct network {
	const char *name;
	sl_block *(*make)(void);
	int axis;
	bool words;
	sl_shape shape; /* of the input; the axis has another size */
} networks[] = {
        {"MLP along rows", mlp, 0, false, {2, {0, 5}}},
        {"GPT along steps", causal_gpt, 1, true, {2, {3, 0}}},
        {"GPT along rows", causal_gpt, 0, true, {2, {0, 5}}},
        {"LSTM along steps", lstm, 0, false, {3, {0, 2, 4}}},
        {"LSTM along rows", lstm, 1, false, {3, {3, 0, 4}}},
        {"images", images, 0, false, {4, {0, 1, 6, 6}}},
        {"reshaped along its second axis", reshaped, 1, false, {3, {2, 0, 5}}},
        {"reshaped along its first axis", reshaped, 0, false, {3, {0, 3, 5}}},
        {"to another axis", moved, 1, false, {3, {2, 0, 5}}}, /* and so would its targets have to be */
};
enum { NETWORKS = sizeof networks / sizeof *networks, WITH_TARGETS = NETWORKS - 1 };

static sl_tensor *input(const struct network *n, int64_t size)
{
	sl_shape shape = n->shape;
	shape.dim[n->axis] = size;
	return n->words ? sl_randint(shape, 0, WORDS) : sl_normal(shape, 0, 1, .dtype = SL_FLOAT64);
}

/* All of one kind have the same parameters. */
static sl_block *new_network(const struct network *n)
{
	sl_block *net = n->make();
	sl_seed(5);
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.5), .dtype = SL_FLOAT64));
	SL_SCOPE
		CHECK(sl_forward(net, input(n, 2)) != NULL);
	return net;
}

static uint64_t plans(void)
{
	struct sl_stats stats;
	sl_stats_get(&stats);
	return stats.plans;
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static void check_close(const char *what, int64_t size, sl_tensor *a, sl_tensor *b)
{
	bool same = a && b && sl_shape_equal(sl_tensor_shape(a), sl_tensor_shape(b));
	CHECK_SAYING(same, "%s, size %d: another shape: %s", what, (int)size, sl_error_message());
	if (!same || !sl_tensor_size(a)) return;
	SL_SCOPE {
		double apart = sl_item(sl_max(sl_abs(sl_sub(a, b))));
		CHECK_SAYING(apart < 1e-11, "%s, size %d: %g apart", what, (int)size, apart);
	}
}

static sl_tensor *data(sl_param *p)
{
	return sl_param_data(p);
}

static sl_tensor *gradient(sl_param *p)
{
	return sl_param_grad(p);
}

static void check_params(const char *what, int64_t size, sl_block *a, sl_block *b, sl_tensor *(*of)(sl_param *))
{
	sl_param *pa[64], *pb[64];
	int n = sl_block_params(a, pa, 64);
	CHECK(n <= 64 && sl_block_params(b, pb, 64) == n);
	for (int i = 0; i < n && i < 64; i++) check_close(what, size, of(pa[i]), of(pb[i]));
}

/* Forward and back; the result is retained. */
static sl_tensor *there_and_back(sl_block *net, const struct network *n, sl_tensor *x)
{
	sl_tensor *y;
	if (!n->words) CHECK_OK(sl_attach_grad(x));
	SL_RECORD
		y = sl_forward(net, x);
	SL_RECORD
		CHECK_OK(sl_backward(sl_sum(sl_mul(y, sl_tanh(y)))));
	return y;
}

static void compare(const struct network *n, sl_block *eager, sl_block *hybrid, int64_t size)
{
	SL_SCOPE {
		sl_tensor *x = input(n, size), *copy = sl_clone(x);
		sl_tensor *a = there_and_back(eager, n, x), *b = there_and_back(hybrid, n, copy);
		check_close(n->name, size, a, b);
		if (!n->words) check_close("gradient of the input", size, sl_grad(x), sl_grad(copy));
		check_params(n->name, size, eager, hybrid, gradient);
		check_close(n->name, size, a, sl_forward(hybrid, x));
	}
}

/* ---- hybrid blocks ----------------------------------------------------------------------------------------------- */

/* All sizes up to the largest bucket have four programs forward, four back, and four that are not recorded. */
static void test_hybrid(void)
{
	for (size_t k = 0; k < NETWORKS; k++) {
		const struct network *n = &networks[k];
		sl_block *eager = new_network(n), *hybrid = new_network(n);
		CHECK_OK(sl_hybridize(hybrid, .buckets = {.axis = n->axis, .sizes = SIZES}));
		uint64_t before = plans();
		for (int64_t size = 1; size <= 64; size += size < 20 || size == 63 ? 1 : 3)
			compare(n, eager, hybrid, size);
		CHECK_SAYING(plans() - before == 3 * 4, "%s: %d programs", n->name, (int)(plans() - before));
		compare(n, eager, hybrid, 67); /* beyond the largest: a program of its own */
		compare(n, eager, hybrid, 67);
		CHECK_SAYING(plans() - before == 3 * 5, "%s: %d programs", n->name, (int)(plans() - before));
		sl_block_free(eager);
		sl_block_free(hybrid);
	}
}

static void test_nothing(void)
{
	const struct network *n = &networks[0];
	sl_block *eager = new_network(n), *hybrid = new_network(n);
	CHECK_OK(sl_hybridize(hybrid, .buckets = {.sizes = {1, 4}}));
	for (int64_t size = 0; size < 3; size++) compare(n, eager, hybrid, size);
	sl_block_free(eager);
	sl_block_free(hybrid);
}

/* What is filled in is the last element: it makes no NaN where that makes none. */
static sl_tensor *root(sl_tensor *x)
{
	return sl_log(sl_abs(x));
}

static sl_block *rooted(void)
{
	return sl_sequential(sl_lambda("root", root), sl_dense(3));
}

static void test_finite(void)
{
	const struct network n = {"logarithm", rooted, 0, false, {2, {0, 5}}};
	sl_block *eager = new_network(&n), *hybrid = new_network(&n);
	CHECK_OK(sl_hybridize(hybrid, .buckets = {.sizes = SIZES}));
	compare(&n, eager, hybrid, 5);
	sl_block_free(eager);
	sl_block_free(hybrid);
}

/* The largest bucket is as many steps as the network has places for. */
static void test_all_places(void)
{
	const struct network *n = &networks[1];
	places = 8;
	sl_block *eager = new_network(n), *hybrid = new_network(n);
	CHECK_OK(sl_hybridize(hybrid, .buckets = {.axis = 1, .sizes = {4, 8}}));
	for (int64_t size = 3; size <= 8; size++) compare(n, eager, hybrid, size);
	places = LONGEST;
	sl_block_free(eager);
	sl_block_free(hybrid);
}

/* ---- whole steps ------------------------------------------------------------------------------------------------- */

/* One loss for each element of all axes but the last. */
static sl_tensor *loss(const char *at, sl_tensor *y, sl_tensor *target)
{
	sl_shape s = sl_tensor_shape(y), t = sl_tensor_shape(target);
	(void)at;
	if (t.ndim == s.ndim) return sl_sum(sl_square(sl_sub(y, target)), SL_AXES(s.ndim - 1));
	return sl_softmax_cross_entropy(sl_reshape(y, SL_SHAPE(-1, s.dim[2])), sl_reshape(target, SL_SHAPE(-1)));
}

static sl_tensor *target_of(const struct network *n, sl_tensor *y)
{
	return n->words ? sl_randint(SL_SHAPE(sl_tensor_shape(y).dim[0], sl_tensor_shape(y).dim[1]), 0, WORDS)
	                : sl_normal(sl_tensor_shape(y), 0, 1, .dtype = SL_FLOAT64);
}

struct steps {
	const char *name;
	enum sl_reduction reduction;
	int accumulate;
};

static void step_by_hand(sl_block *net, sl_trainer *trainer, const struct steps *s, sl_tensor *x, sl_tensor *target)
{
	sl_tensor *l;
	SL_RECORD {
		l = loss(SL_HERE, sl_forward(net, x), target);
		l = s->reduction == SL_REDUCTION_SUM ? sl_sum(l) : sl_mean(l);
	}
	CHECK_OK(sl_backward(l));
	CHECK_OK(sl_trainer_step(trainer, 1));
}

/* The losses and results of one batch, and the parameters after it. */
static void test_step_on(const struct network *n, const struct steps *s)
{
	sl_block *eager = new_network(n), *net = new_network(n);
	sl_trainer *by_hand = sl_trainer_new(eager, sl_sgd(.lr = 0.001)),
	           *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.001));
	sl_step *step = sl_step_compile(net, loss, trainer, .reduction = s->reduction, .accumulate = s->accumulate,
	                                .buckets = {.axis = n->axis, .sizes = SIZES});
	uint64_t before = plans();
	static const int64_t sizes[] = {5, 8, 1, 13, 30, 7, 16, 67};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		SL_SCOPE {
			sl_tensor *x = input(n, sizes[i]), *y = sl_forward(eager, x), *target = target_of(n, y),
			          *out = NULL;
			sl_tensor *expected = loss(SL_HERE, y, target), *got = NULL;
			for (int k = 0; k < (s->accumulate ? s->accumulate : 1); k++)
				got = sl_step_run(step, x, target, &out);
			check_close(n->name, sizes[i], expected, got);
			check_close(n->name, sizes[i], y, out);
			step_by_hand(eager, by_hand, s, x, target);
			check_params(n->name, sizes[i], eager, net, data);
		}
	CHECK_SAYING(plans() - before == 4, "%s: %d programs", n->name, (int)(plans() - before));
	sl_step_free(step);
	sl_trainer_free(by_hand);
	sl_trainer_free(trainer);
	sl_block_free(eager);
	sl_block_free(net);
}

static void test_steps(void)
{
	static const struct steps ways[] = {{"mean", SL_REDUCTION_MEAN, 0}, {"sum", SL_REDUCTION_SUM, 0}};
	for (size_t k = 0; k < WITH_TARGETS; k++)
		for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) test_step_on(&networks[k], &ways[i]);
}

/* Twice the same micro-batch is the batch. */
static void test_accumulated(void)
{
	const struct steps way = {"accumulated", SL_REDUCTION_MEAN, 2};
	test_step_on(&networks[0], &way);
	test_step_on(&networks[1], &way);
}

/* Shards of other sizes: each in its bucket, the first beyond the largest; rows count the same. */
static void test_shards(void)
{
	const struct network *n = &networks[0];
	const struct steps way = {"shards", SL_REDUCTION_MEAN, 0};
	sl_block *eager = new_network(n), *net = new_network(n);
	sl_trainer *by_hand = sl_trainer_new(eager, sl_sgd(.lr = 0.001)),
	           *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.001));
	sl_step *step = sl_step_compile(net, loss, trainer, .buckets = {.sizes = SIZES});
	for (int64_t rows = 70; rows <= 71; rows++)
		SL_SCOPE {
			sl_tensor *x = input(n, rows + 5), *y = sl_forward(eager, x), *target = target_of(n, y),
			          *losses[2];
			sl_tensor *xs[] = {sl_slice(x, 0, 0, rows, 1), sl_slice(x, 0, rows, rows + 5, 1)};
			sl_tensor *ts[] = {sl_slice(target, 0, 0, rows, 1), sl_slice(target, 0, rows, rows + 5, 1)};
			CHECK(sl_step_run(step, .in = xs, .targets = ts, .losses = losses, .shards = 2) != NULL);
			check_close("losses of shards", rows, sl_concat(losses, 2, 0), loss(SL_HERE, y, target));
			step_by_hand(eager, by_hand, &way, x, target);
			check_params("shards", rows, eager, net, data);
		}
	sl_step_free(step);
	sl_trainer_free(by_hand);
	sl_trainer_free(trainer);
	sl_block_free(eager);
	sl_block_free(net);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static sl_tensor *centred(sl_tensor *x)
{
	return sl_sub(x, sl_mean(x, SL_AXES(0), .keepdims = true));
}

static sl_tensor *last(sl_tensor *x)
{
	int64_t n = sl_tensor_shape(x).dim[0];
	return sl_slice(x, 0, n - 1, n, 1);
}

static sl_tensor *scaled(sl_tensor *x)
{
	return sl_mul_scalar(x, 1. / (double)sl_tensor_shape(x).dim[0]);
}

static sl_tensor *shifted(sl_tensor *x)
{
	return sl_concat(
	        SL_ARRAY(sl_tensor *, sl_slice(x, 0, 1, sl_tensor_shape(x).dim[0], 1), sl_slice(x, 0, 0, 1, 1)), 2, 0);
}

static sl_tensor *all_by_all(sl_tensor *x)
{
	return sl_dot(sl_dot(x, x, .tb = true), x);
}

static sl_tensor *in_turn(sl_tensor *x)
{
	sl_tensor *y = x;
	for (int64_t i = 0; i < sl_tensor_shape(x).dim[0]; i++) y = sl_tanh(y);
	return y;
}

static sl_tensor *turned_round(sl_tensor *x)
{
	return sl_slice(x, 0, -1, -100, -1);
}

static sl_tensor *sorted(sl_tensor *x)
{
	return sl_softmax(x, 0);
}

/* Each must say which operation it is. */
static void test_refused(void)
{
	const struct {
		sl_tensor *(*function)(sl_tensor *);
		const char *says;
	} functions[] = {{centred, "mean"},       {last, "takes a part"}, {scaled, "other attributes"},
	                 {shifted, "slice"},      {all_by_all, "dot"},    {in_turn, "not called in the same way"},
	                 {turned_round, "slice"}, {sorted, "softmax"}};
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		sl_block *net = sl_lambda("function", functions[i].function);
		CHECK_OK(sl_hybridize(net, .buckets = {.sizes = {4, 8}}));
		SL_SCOPE {
			CHECK_NULL(sl_forward(net, sl_ones(SL_SHAPE(3, 2))), SL_EINVAL, functions[i].says);
			CHECK_OK(sl_hybridize(net)); /* without buckets it works */
			CHECK(sl_forward(net, sl_ones(SL_SHAPE(3, 2))) != NULL);
		}
		sl_block_free(net);
	}
}

static void refuse_block(sl_block *net, sl_tensor *x, int axis, bool training, const char *says)
{
	CHECK_OK(sl_initialize(net));
	CHECK_OK(sl_hybridize(net, .buckets = {.axis = axis, .sizes = {4, 8}}));
	if (training)
		SL_RECORD
			CHECK_NULL(sl_forward(net, x), SL_EINVAL, says);
	else CHECK_NULL(sl_forward(net, x), SL_EINVAL, says);
	sl_block_free(net);
}

static void test_refused_blocks(void)
{
	SL_SCOPE {
		sl_tensor *words = sl_randint(SL_SHAPE(2, 3), 0, WORDS), *rows = sl_normal(SL_SHAPE(3, 5), 0, 1);
		sl_tensor *steps = sl_normal(SL_SHAPE(3, 2, 5), 0, 1),
		          *pictures = sl_normal(SL_SHAPE(2, 1, 5, 5), 0, 1);
		refuse_block(gpt(false), words, 1, false, "attention");
		refuse_block(sl_sequential(sl_dense(4), sl_batch_norm_layer()), rows, 0, true,
		             "means over the whole batch");
		refuse_block(sl_lstm(4), steps, 0, false, "slice");
		refuse_block(sl_sequential(sl_lstm(4, .bidirectional = true)), steps, 0, false, "backwards");
		refuse_block(sl_conv2d_layer(2, .kernel = {3}), pictures, 2, false, "conv2d");
		sl_block *net = sl_sequential(sl_dense(4), sl_batch_norm_layer());
		CHECK_OK(sl_initialize(net));
		CHECK_OK(sl_hybridize(net, .buckets = {.sizes = {4, 8}}));
		CHECK(sl_tensor_shape(sl_forward(net, rows)).dim[0] == 3); /* with given statistics */
		sl_block_free(net);
	}
}

static sl_tensor *mean_loss(const char *at, sl_tensor *y, sl_tensor *target)
{
	(void)at;
	return sl_mean(sl_square(sl_sub(y, target)));
}

static void test_mistakes(void)
{
	sl_block *net = mlp();
	CHECK_OK(sl_initialize(net));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd());
	CHECK_MISTAKE(sl_hybridize(net, .buckets = {.sizes = {8, 4}}), SL_EINVAL, "rise");
	CHECK_MISTAKE(sl_hybridize(net, .buckets = {.sizes = {-8}}), SL_EINVAL, "rise");
	CHECK_MISTAKE(sl_hybridize(net, .buckets = {.axis = -1, .sizes = {8}}), SL_EINVAL, "axis");
	CHECK_MISTAKE(sl_hybridize(net, .buckets = {.axis = 1}), SL_EINVAL, "no sizes");
	CHECK_MISTAKE(sl_hybridize(net, .buckets = {.sizes = {8}}, .static_shape = true), SL_EINVAL, "static_shape");
	CHECK_NULL(sl_step_compile(net, loss, trainer, .buckets = {.sizes = {8, 8}}), SL_EINVAL, "rise");
	sl_step *step = sl_step_compile(net, mean_loss, trainer, .buckets = {.sizes = {8}});
	CHECK_OK(sl_hybridize(net, .buckets = {.axis = 3, .sizes = {8}}));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(3, 5)), *y = sl_ones(SL_SHAPE(3, 3));
		CHECK_NULL(sl_forward(net, x), SL_ESHAPE, "axis 3");
		CHECK_NULL(sl_step_run(step, x, y, NULL), SL_EINVAL, "mean");
		CHECK(sl_trainer_steps(trainer) == 0);
		sl_step_free(step);
		step = sl_step_compile(net, loss, trainer, .buckets = {.sizes = {8}, .inputs = 3});
		CHECK_NULL(sl_step_run(step, x, sl_ones(SL_SHAPE(4, 3)), NULL), SL_ESHAPE, "one size");
		CHECK(sl_step_run(step, x, y, NULL) != NULL);
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

static const struct slp_test tests[] = {{"hybrid blocks", test_hybrid},
                                        {"no elements, one", test_nothing},
                                        {"finite", test_finite},
                                        {"all places", test_all_places},
                                        {"whole steps", test_steps},
                                        {"micro-batches", test_accumulated},
                                        {"shards", test_shards},
                                        {"refused functions", test_refused},
                                        {"refused blocks", test_refused_blocks},
                                        {"mistakes", test_mistakes},
                                        {NULL, NULL}};

int main(int argc, char **argv)
{
	const struct slp_suite suites[] = {
	        {.name = "buckets", .tests = tests, .start = slp_start_engine, .stop = slp_stop_engine}, {0}};
	return slp_test_main(argc, argv, suites);
}
