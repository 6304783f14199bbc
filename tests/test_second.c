/* Second derivatives: sl_gradients, .create_graph; leaves, networks, traced and hybridised blocks; what has none.  Those of
 * each operation are in test_ops (op_second.c). */
#include <math.h>
#include <stdlib.h>

#include "blocks.h"

static void clear(void)
{
	sl_error_clear();
}

static sl_tensor *cube(sl_tensor *x)
{
	return sl_mul(x, sl_square(x));
}

/* ---- functions of one tensor ------------------------------------------------------------------------------------- */

static void test_orders(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *y, *g = NULL, *h = NULL, *k = NULL;
		SL_RECORD {
			y = sl_sum(cube(x));
			CHECK_OK(sl_gradients(&y, 1, &x, 1, &g, .create_graph = true));
			CHECK_OK(sl_gradients(&g, 1, &x, 1, &h, .create_graph = true));
			CHECK_OK(sl_gradients(&h, 1, &x, 1, &k));
		}
		CHECK_VALUES(g, 3, 12, 27);
		CHECK_VALUES(h, 6, 12, 18);
		CHECK_VALUES(k, 6, 6, 6);
		CHECK_ALL(sl_grad(x), 0); /* its own gradient is untouched */
		SL_RECORD
			CHECK_NULL(sl_square(k), SL_EUNSUPPORTED, "square", "was not recorded");
		CHECK_MISTAKE(sl_backward(k), SL_EUNSUPPORTED, "head 0", "create_graph");
	}
}

static void test_stored(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(3, 1), *y, *z = NULL;
		SL_RECORD {
			y = sl_sum(cube(x));
			CHECK_OK(sl_backward_heads(&y, 1, .create_graph = true));
			CHECK_VALUES(sl_grad(x), 3, 12, 27);
			z = sl_sum(sl_square(sl_grad(x)));
		}
		CHECK_OK(sl_backward(z));
		CHECK_VALUES(sl_grad(x), 36, 288, 972); /* 2 (3 x²) 6 x */
		SL_RECORD
			CHECK_NULL(sl_square(sl_grad(x)), SL_EUNSUPPORTED, "was not recorded");
		sl_attach_grad(x, .req = SL_GRAD_ADD);
		for (int i = 0; i < 2; i++) {
			SL_RECORD
				y = sl_sum(cube(x));
			CHECK_OK(sl_backward_heads(&y, 1, .create_graph = true));
		}
		CHECK_VALUES(sl_grad(x), 6, 24, 54);
		y = sl_grad(x);
		sl_retain(y);
		CHECK_OK(sl_gradients(&y, 1, &x, 1, &z));
		CHECK_VALUES(z, 12, 24, 36);
		sl_grad_as_constant(y);
		sl_release(y);
		SL_RECORD
			z = sl_mul(x, sl_grad(x));
		sl_attach_grad(x);
		CHECK(z != NULL);
	}
}

static void test_wanted(void)
{
	SL_SCOPE {
		sl_tensor *x = slp_leaf(2, 1), *w = slp_leaf(2, 5), *other = slp_leaf(2, 3), *both[2], *y, *u, *more;
		SL_RECORD {
			u = sl_mul(x, w);
			both[0] = sl_square(u);
			both[1] = sl_mul_scalar(u, 3);
			more = sl_mul_scalar(other, 2);
		}
		CHECK_OK(sl_backward(more));
		CHECK(sl_grad_is_fresh(other) && !sl_grad_is_fresh(x));
		sl_tensor *wants[] = {u, x, other, x}, *got[4] = {NULL};
		CHECK_OK(sl_gradients(both, 2, wants, 4, got, .retain_graph = true, .scale = 2));
		CHECK_VALUES(got[0], 2 * (2 * 5 + 3), 2 * (2 * 12 + 3));
		CHECK_VALUES(got[1], 2 * 13 * 5, 2 * 27 * 6);
		CHECK_ALL(got[2], 0);
		CHECK_VALUES(got[3], 2 * 13 * 5, 2 * 27 * 6);
		CHECK(!sl_grad_is_fresh(x) && !sl_grad_is_fresh(w));
		y = sl_ones(SL_SHAPE(2), .dtype = SL_FLOAT64);
		CHECK_MISTAKE(sl_gradients(both, 2, &y, 1, got), SL_ESTATE, "sl_gradients", "tensor 0");
		CHECK_MISTAKE(sl_gradients(&y, 1, &x, 1, got), SL_ESTATE, "sl_gradients", "head 0");
		CHECK_MISTAKE(sl_gradients(both, 2, &x, 0, got), SL_EINVAL, "sl_gradients");
		CHECK_MISTAKE(sl_gradients(both, 2, &x, 1, got, .scale = NAN), SL_EINVAL, "scale");
		CHECK_OK(sl_gradients(both, 2, &x, 1, got));
		CHECK_MISTAKE(sl_gradients(both, 2, &x, 1, got), SL_ESTATE, "retain_graph");
	}
}

/* ---- networks ---------------------------------------------------------------------------------------------------- */

enum { ROWS = 4 };

static sl_tensor *images(void)
{
	double v[ROWS * 2 * 4 * 4];
	for (int i = 0; i < ROWS * 2 * 4 * 4; i++) v[i] = sin(1.3 * i + 0.2 * i * i);
	return sl_from(v, SL_SHAPE(ROWS, 2, 4, 4), .dtype = SL_FLOAT64);
}

static sl_block *network(void)
{
	sl_block *net = sl_sequential(sl_conv2d_layer(3, .kernel = {3}, .pad = {1, 1}), sl_batch_norm_layer(),
	                              sl_activation_layer(SL_TANH), sl_max_pool2d_layer(2), sl_dropout_layer(0.25),
	                              sl_flatten_layer(), sl_dense(5), sl_layer_norm_layer(),
	                              sl_activation_layer(SL_SIGMOID), sl_dense(3));
	sl_seed(7);
	CHECK_OK(sl_initialize(net, .dtype = SL_FLOAT64));
	CHECK(sl_forward(net, images()) != NULL); /* draws the parameters */
	return net;
}

/* (|gradient| - 1)², and the mean of the results. */
static sl_tensor *penalty(sl_block *net, sl_tensor *x)
{
	sl_tensor *slope = NULL, *y = sl_forward(net, x), *sum = sl_sum(sl_square(y));
	if (!sum || sl_gradients(&sum, 1, &x, 1, &slope, .create_graph = true) != SL_OK) return NULL;
	sl_tensor *size = sl_norm(sl_flatten(slope), SL_AXES(1));
	return sl_add(sl_mean(sl_square(sl_sub_scalar(size, 1))), sl_mean(y));
}

enum { MOST_PARAMS = 16 };

/* Gradients of the penalty with respect to all parameters and x. */
struct result {
	int count;
	double loss;
	double *grad[MOST_PARAMS];
	int64_t size[MOST_PARAMS];
};

static void keep(struct result *r, sl_tensor *g)
{
	r->size[r->count] = sl_tensor_size(g);
	r->grad[r->count++] = slp_numbers(g);
}

static void keep_params(struct result *r, sl_block *net)
{
	sl_param *p[MOST_PARAMS];
	int n = sl_block_params(net, p, MOST_PARAMS);
	for (int i = 0; i < n && i < MOST_PARAMS && r->count < MOST_PARAMS; i++) {
		sl_tensor *g = sl_param_grad(p[i]);
		if (g) keep(r, g);
		else sl_error_clear(); /* a running statistic */
	}
}

static struct result penalised(sl_block *net, sl_tensor *x)
{
	struct result r = {0};
	sl_tensor *loss = NULL;
	sl_attach_grad(x);
	sl_seed(3);
	SL_RECORD
		loss = penalty(net, x);
	CHECK_OK(loss ? sl_backward(loss) : sl_error());
	if (!loss) return r;
	r.loss = sl_item(loss);
	keep(&r, sl_grad(x));
	keep_params(&r, net);
	return r;
}

static void compare(const char *what, struct result *a, struct result *b)
{
	CHECK(a->count == b->count && a->count > 3);
	CHECK_SAYING(fabs(a->loss - b->loss) <= 1e-9 * fabs(a->loss), "%s: loss %.12g, %.12g", what, a->loss, b->loss);
	for (int k = 0; k < a->count && k < b->count; k++) {
		double scale = 0, worst = 0;
		for (int64_t i = 0; i < a->size[k]; i++) {
			scale = fmax(scale, fabs(a->grad[k][i]));
			worst = fmax(worst, fabs(a->grad[k][i] - b->grad[k][i]));
		}
		CHECK_SAYING(worst <= 1e-8 * scale + 1e-12, "%s: gradient %d differs by %.3g of %.3g", what, k, worst,
		             scale);
	}
}

static void drop(struct result *r)
{
	for (int k = 0; k < r->count; k++) free(r->grad[k]);
}

static void test_networks(void)
{
	for (int way = 0; way < 3; way++)
		SL_SCOPE {
			sl_block *net = network(), *same = network();
			struct result a = penalised(net, images());
			if (way == 0) CHECK_OK(sl_hybridize(same));
			if (way == 1) CHECK_OK(sl_block_recompute(same, true));
			if (way == 2) CHECK_OK(sl_hybridize(sl_block_child(same, 0)));
			struct result b = penalised(same, images());
			compare(way == 0 ? "hybridised" : way == 1 ? "recomputed" : "a hybridised layer", &a, &b);
			sl_tensor *mean = slp_data(net, "1.running_mean"), *other = slp_data(same, "1.running_mean");
			for (int i = 0; i < 3; i++) {
				double *m = slp_numbers(mean), *o = slp_numbers(other);
				CHECK(fabs(m[i] - o[i]) < 1e-12); /* updated once */
				free(m);
				free(o);
			}
			drop(&a);
			drop(&b);
			sl_block_free(net);
			sl_block_free(same);
		}
}

static sl_block *checked_net;

static sl_tensor *checked(void *context, sl_tensor *const *in, int nin)
{
	(void)context, (void)nin;
	sl_tensor *x = in[0], *y = NULL;
	sl_seed(5);
	if (!sl_is_recording()) sl_attach_grad(x = sl_detach(x));
	SL_RECORD
		y = penalty(checked_net, x);
	return sl_is_recording() ? y : sl_detach(y);
}

/* Differences of first derivatives, through the network. */
static void test_differences(void)
{
	for (int hybrid = 0; hybrid < 2; hybrid++)
		SL_SCOPE {
			sl_block *net = checked_net =
			        sl_sequential(sl_conv2d_layer(3, .kernel = {3}, .activation = SL_SOFTPLUS),
			                      sl_flatten_layer(), sl_layer_norm_layer(), sl_dense(3));
			sl_seed(7);
			CHECK_OK(sl_initialize(net, .dtype = SL_FLOAT64));
			if (hybrid) CHECK_OK(sl_hybridize(net));
			sl_tensor *x = images();
			CHECK_OK(sl_gradcheck(checked, NULL, &x, 1, .elements = 12, .step = 6e-6));
			sl_block_free(net);
		}
}

/* ---- traced ------------------------------------------------------------------------------------------------------ */

static sl_block *inner;

/* The penalty is part of the traced block itself. */
static sl_tensor *traced_forward(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self, (void)nin;
	return penalty(inner, in[0]);
}

static void test_traced(void)
{
	double loss[2];
	struct result r[2] = {{0}, {0}};
	for (int hybrid = 0; hybrid < 2; hybrid++)
		SL_SCOPE {
			sl_block *outer = slp_user_block(traced_forward), *net = inner = network();
			CHECK(sl_block_add(outer, "net", net) != NULL);
			if (hybrid) CHECK_OK(sl_hybridize(outer));
			sl_tensor *x = images(), *y = NULL;
			sl_attach_grad(x);
			sl_seed(3);
			SL_RECORD
				y = sl_forward(outer, x);
			CHECK_OK(y ? sl_backward(y) : sl_error());
			loss[hybrid] = sl_item(y);
			r[hybrid].loss = loss[hybrid];
			keep(&r[hybrid], sl_grad(x));
			keep_params(&r[hybrid], outer);
			sl_block_free(outer);
		}
	compare("traced", &r[0], &r[1]);
	drop(&r[0]);
	drop(&r[1]);
}

/* ---- what has none ----------------------------------------------------------------------------------------------- */

static enum sl_status three_squares(void *context, sl_tensor *const *dout, int nout, sl_tensor **din, int nin)
{
	(void)nout, (void)nin;
	sl_tensor *x = *(sl_tensor **)context;
	din[0] = sl_mul(dout[0], sl_mul_scalar(sl_square(x), 3));
	return sl_error();
}

static void test_custom(void)
{
	for (int differentiable = 0; differentiable < 2; differentiable++)
		SL_SCOPE {
			sl_tensor *x = slp_leaf(2, 1), *y = NULL, *g = NULL, *h = NULL;
			SL_RECORD {
				SL_PAUSE
					y = cube(x);
				CHECK_OK(sl_custom_gradient(&x, 1, &y, 1, .backward = three_squares, .context = &x,
				                            .differentiable = differentiable));
				CHECK_OK(sl_gradients(&y, 1, &x, 1, &g, .create_graph = true));
				CHECK_VALUES(g, 3, 12);
				g = sl_mul(g, x);
			}
			if (differentiable) {
				CHECK_OK(sl_gradients(&g, 1, &x, 1, &h));
				CHECK_VALUES(h, 9, 36);
			} else {
				CHECK_MISTAKE(sl_gradients(&g, 1, &x, 1, &h), SL_EUNSUPPORTED, "sl_custom_gradient",
				              "test_second", "has no gradient");
			}
		}
}

static const struct slp_test tests[] = {
        {"first, second, third", test_orders}, {"stored in leaves", test_stored},
        {"wanted tensors alone", test_wanted}, {"networks", test_networks},
        {"differences", test_differences},     {"traced", test_traced},
        {"custom gradients", test_custom},     {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv,
	                     (const struct slp_suite[]){
	                             {.name = "second derivatives",
	                              .tests = tests,
	                              .start = slp_start_engine,
	                              .stop = slp_stop_engine,
	                              .after = clear},
	                             {0},
	                     });
}
