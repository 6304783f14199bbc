/* Blocks: layers against the same operations by hand, nesting, mistakes, summaries. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "blocks.h"

/* ---- layers ------------------------------------------------------------------------------------------------------ */

static void test_dense(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(3, 2, 4), 0, 1);
		sl_block *d = sl_dense(5, .activation = SL_RELU);
		CHECK_OK(sl_initialize(d, .init = sl_normal_init(1)));
		sl_tensor *y = sl_forward(d, x);
		sl_tensor *w = slp_data(d, "weight"), *b = slp_data(d, "bias");
		CHECK(sl_shape_equal(sl_tensor_shape(w), SL_SHAPE(5, 8)) &&
		      sl_shape_equal(sl_tensor_shape(b), SL_SHAPE(5)));
		CHECK_ALL(b, 0);
		CHECK_OK(sl_param_set(sl_block_find(d, "bias"), sl_arange(-2, 3, 1)));
		y = sl_forward(d, x);
		CHECK_SAME(y, sl_relu(sl_linear(sl_flatten(x), w, b, .tw = true)));
		sl_block_free(d);
	}
}

static void test_dense_of_rows(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(3, 2, 4), 0, 1);
		sl_block *d = sl_dense(5, .no_flatten = true, .no_bias = true);
		CHECK_OK(sl_initialize(d));
		sl_tensor *y = sl_forward(d, x);
		CHECK(sl_shape_equal(sl_tensor_shape(y), SL_SHAPE(3, 2, 5)));
		CHECK(sl_block_params(d, NULL, 0) == 1);
		CHECK_SAME(y, sl_linear(x, slp_data(d, "weight"), NULL, .tw = true));
		sl_block_free(d);
	}
}

static void test_convolution(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(2, 4, 9, 8), 0, 1);
		sl_block *c = sl_conv2d_layer(6, .kernel = {3, 2}, .stride = {2}, .pad = {1, 0}, .groups = 2,
		                              .activation = SL_TANH);
		CHECK_OK(sl_initialize(c, .init = sl_normal_init(1)));
		sl_tensor *y = sl_forward(c, x), *w = slp_data(c, "weight");
		CHECK(sl_shape_equal(sl_tensor_shape(w), SL_SHAPE(6, 2, 3, 2)));
		CHECK_SAME(y, sl_tanh(sl_conv2d(x, w, slp_data(c, "bias"), .stride = {2}, .pad = {1, 0}, .groups = 2)));
		CHECK_NULL(sl_forward(c, sl_zeros(SL_SHAPE(2, 4))), SL_ESHAPE, sl_block_name(c));
		CHECK_NULL(sl_forward(c, sl_zeros(SL_SHAPE(2, 6, 9, 8))), SL_ESHAPE, "weight", "(6, 2, 3, 2)",
		           "(6, 3, 3, 2)");
		sl_block_free(c);
	}
}

static void check_layer(sl_block *layer, sl_tensor *x, sl_tensor *expected)
{
	CHECK_OK(sl_initialize(layer));
	CHECK_SAME(sl_forward(layer, x), expected);
	sl_block_free(layer);
}

static sl_tensor *halve(sl_tensor *x)
{
	return sl_mul_scalar(x, 0.5);
}

static void test_plain_layers(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(2, 3, 6, 6), 0, 1);
		check_layer(sl_max_pool2d_layer(2), x, sl_pool2d(x, .kernel = {2}));
		check_layer(sl_max_pool2d_layer(3, .stride = {2}, .pad = {1, 1}), x,
		            sl_pool2d(x, .kernel = {3}, .stride = {2}, .pad = {1, 1}));
		check_layer(sl_avg_pool2d_layer(0, .kernel = {2, 3}), x,
		            sl_pool2d(x, .type = SL_POOL_AVG, .kernel = {2, 3}));
		check_layer(sl_global_max_pool2d_layer(), x, sl_pool2d(x, .global = true));
		check_layer(sl_global_avg_pool2d_layer(), x, sl_pool2d(x, .type = SL_POOL_AVG, .global = true));
		check_layer(sl_flatten_layer(), x, sl_flatten(x));
		check_layer(sl_dropout_layer(0.5), x, x);
		check_layer(sl_lambda("halve", halve), x, sl_mul_scalar(x, 0.5));
		check_layer(sl_sequential_at(SL_HERE, NULL, 0), x, x);
	}
}

static void test_activations(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(50), 0, 1);
		sl_tensor *expected[] = {x, sl_relu(x), sl_sigmoid(x), sl_tanh(x), sl_gelu(x), sl_softplus(x)};
		for (int a = 0; a < SL_ACTIVATIONS; a++)
			check_layer(sl_activation_layer((enum sl_activation)a), x, expected[a]);
		CHECK(!strcmp(sl_activation_name(SL_GELU), "gelu") &&
		      !strcmp(sl_activation_name(SL_IDENTITY), "identity"));
		CHECK_NULL(sl_activate(x, (enum sl_activation)99), SL_EINVAL, "99");
	}
}

static void test_dropout_in_training(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1000)), *by_layer, *by_op;
		sl_block *d = sl_dropout_layer(0.25);
		sl_seed(7);
		SL_TRAINING
			by_layer = sl_forward(d, x);
		sl_seed(7);
		SL_TRAINING
			by_op = sl_dropout(x, 0.25);
		CHECK_SAME(by_layer, by_op);
		double kept = sl_item(sl_sum(by_layer)) * 0.75;
		CHECK_SAYING(kept > 650 && kept < 850, "%g of 1000 kept", kept);
		sl_block_free(d);
	}
}

static void test_batch_norm(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(8, 3, 2, 2), 5, 2), *by_layer, *by_op;
		sl_block *n = sl_batch_norm_layer(.momentum = 0.5, .eps = 1e-3);
		CHECK_OK(sl_initialize(n, .init = sl_normal_init(1)));
		sl_tensor *ones = sl_ones(SL_SHAPE(3)), *zeros = sl_zeros(SL_SHAPE(3));
		sl_tensor *mean = sl_zeros(SL_SHAPE(3)), *var = sl_ones(SL_SHAPE(3));
		CHECK_SAME(sl_forward(n, x), sl_batch_norm(x, ones, zeros, mean, var, .eps = 1e-3));
		SL_TRAINING {
			by_layer = sl_forward(n, x);
			by_op = sl_batch_norm(x, ones, zeros, mean, var, .momentum = 0.5, .eps = 1e-3);
		}
		CHECK_SAME(by_layer, by_op);
		CHECK_SAME(slp_data(n, "running_mean"), mean);
		CHECK_SAME(slp_data(n, "running_var"), var);
		CHECK(sl_param_grad(sl_block_find(n, "gamma")) != NULL);
		CHECK_NULL(sl_param_grad(sl_block_find(n, "running_var")), SL_ESTATE, "running_var", "not trained");
		sl_block_free(n);
	}
}

static void test_layer_norm(void)
{
	SL_SCOPE {
		/* torch.nn.functional.layer_norm([[1, 2, 4], [-1, 0, 7]], (3,), [1, 2, 3], [0, 0, 1], eps=0.5) */
		const double v[] = {1, 2, 4, -1, 0, 7}, gamma[] = {1, 2, 3}, beta[] = {0, 0, 1};
		sl_block *n = sl_layer_norm_layer(.eps = 0.5);
		CHECK_OK(sl_initialize(n, .dtype = SL_FLOAT64));
		CHECK_OK(sl_param_set(sl_block_find(n, "gamma"), sl_from(gamma, SL_SHAPE(3), .dtype = SL_FLOAT64)));
		CHECK_OK(sl_param_set(sl_block_find(n, "beta"), sl_from(beta, SL_SHAPE(3), .dtype = SL_FLOAT64)));
		CHECK_VALUES(sl_forward(n, sl_from(v, SL_SHAPE(2, 3), .dtype = SL_FLOAT64)), -0.92998111, -0.464990555,
		             4.48742916, -0.826767382, -1.10235651, 5.13383691);
		sl_block_free(n);
	}
}

static void test_embedding(void)
{
	SL_SCOPE {
		sl_block *e = sl_embedding(10, 4);
		const int32_t words[] = {3, 9, 0, 3};
		sl_tensor *x = sl_from(words, SL_SHAPE(2, 2), .dtype = SL_INT32), *loss;
		CHECK_OK(sl_initialize(e));
		CHECK_SAME(sl_forward(e, x), sl_gather(slp_data(e, "weight"), x));
		CHECK_SAME(sl_forward(e, sl_cast(x, SL_UINT8)), sl_gather(slp_data(e, "weight"), x));
		SL_RECORD
			loss = sl_sum(sl_forward(e, x));
		CHECK_OK(sl_backward(loss));
		CHECK_VALUES(sl_sum(sl_param_grad(sl_block_find(e, "weight")), SL_AXES(1)), 4, 0, 0, 8, 0, 0, 0, 0, 0,
		             4);
		sl_block_free(e);
	}
}

static void test_residual(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(4, 6), 0, 1);
		sl_block *same = sl_residual(sl_dense(6), NULL, SL_RELU),
		         *other = sl_residual(sl_dense(3), sl_dense(3), SL_IDENTITY);
		CHECK_OK(sl_initialize(same));
		CHECK_OK(sl_initialize(other));
		CHECK_SAME(sl_forward(same, x), sl_relu(sl_add(sl_forward(sl_block_child(same, 0), x), x)));
		CHECK_SAME(sl_forward(other, x),
		           sl_add(sl_forward(sl_block_child(other, 0), x), sl_forward(sl_block_child(other, 1), x)));
		CHECK(sl_block_find(other, "shortcut.weight") != NULL);
		sl_block_free(same);
		sl_block_free(other);
	}
}

/* ---- gradients of a whole network, against finite differences ---------------------------------------------------- */

static sl_block *small_net(void)
{
	return sl_sequential(sl_conv2d_layer(3, .kernel = {3}, .pad = {1, 1}, .activation = SL_TANH),
	                     sl_batch_norm_layer(), sl_avg_pool2d_layer(2),
	                     sl_residual(sl_conv2d_layer(3, .kernel = {1}), NULL, SL_SIGMOID), sl_flatten_layer(),
	                     sl_layer_norm_layer(), sl_dense(4, .activation = SL_GELU), sl_dense(3));
}

static double loss_of(sl_block *net, sl_tensor *x, sl_tensor *y)
{
	double loss = NAN;
	SL_SCOPE
		SL_TRAINING
			loss = sl_item(sl_sum(sl_softmax_cross_entropy(sl_forward(net, x), y)));
	return loss;
}

static double slope(sl_block *net, sl_param *p, int64_t i, sl_tensor *x, sl_tensor *y)
{
	const double h = 1e-5;
	double loss[2], *v = slp_numbers(sl_param_data(p)), at = v[i];
	for (int k = 0; k < 2; k++)
		SL_SCOPE {
			v[i] = at + (k ? -h : h);
			CHECK_OK(sl_param_set(p, sl_from(v, sl_param_shape(p), .dtype = SL_FLOAT64)));
			loss[k] = loss_of(net, x, y);
		}
	v[i] = at;
	SL_SCOPE
		CHECK_OK(sl_param_set(p, sl_from(v, sl_param_shape(p), .dtype = SL_FLOAT64)));
	free(v);
	return (loss[0] - loss[1]) / (2 * h);
}

static void test_gradients(void)
{
	SL_SCOPE {
		const int32_t labels[] = {0, 2, 1, 2};
		sl_tensor *x = sl_normal(SL_SHAPE(4, 2, 4, 4), 0, 1, .dtype = SL_FLOAT64), *loss;
		sl_tensor *y = sl_from(labels, SL_SHAPE(4), .dtype = SL_INT32);
		sl_block *net = small_net();
		CHECK_OK(sl_initialize(net, .init = sl_xavier_init(), .dtype = SL_FLOAT64));
		SL_RECORD
			loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
		CHECK_OK(sl_backward(loss));
		sl_param *params[32];
		int n = sl_block_params(net, params, 32), trained = 0;
		for (int i = 0; i < n; i++) {
			if (strstr(sl_param_name(params[i]), "running")) continue;
			int64_t at = sl_tensor_size(sl_param_data(params[i])) - 1;
			double *g = slp_numbers(sl_param_grad(params[i])), s = slope(net, params[i], at, x, y);
			CHECK_SAYING(fabs(g[at] - s) < 1e-6 * fmax(1, fabs(s)), "%s: %g, by differences %g",
			             sl_param_name(params[i]), g[at], s);
			trained++;
			free(g);
		}
		CHECK(n == 14 && trained == 12);
		sl_block_free(net);
	}
}

/* ---- blocks of one's own ----------------------------------------------------------------------------------------- */

static sl_tensor *itself(sl_tensor *x)
{
	return x;
}

/* As locale.sh runs it, in Turkish, too: there 'I' has another small letter. */
static void test_lower_case(void)
{
	sl_block *b = sl_lambda("IDENTITY", itself);
	CHECK_SAYING(b && !strncmp(sl_block_name(b), "identity", 8), "the name is %s", sl_block_name(b));
	sl_block_free(b);
}

static void test_own_block(void)
{
	int freed = 0;
	SL_SCOPE {
		struct slp_scaled *s = slp_scaled_new(&freed);
		sl_block *net = sl_sequential(&s->base, sl_dense(2));
		CHECK_OK(sl_initialize(net));
		sl_tensor *x = sl_ones(SL_SHAPE(2, 5)), *add = sl_ones(SL_SHAPE(2, 3));
		sl_tensor *y = sl_forward(&s->base, x, add);
		CHECK_SAME(y, sl_mul_scalar(sl_add(sl_forward(s->hidden, x), add), 2));
		CHECK(sl_forward(net, x) != NULL && s->calls == 2);
		CHECK(!strncmp(sl_block_name(&s->base), "scaled", 6));
		CHECK(sl_block_find(net, "0.scale") == s->scale && sl_block_find(net, "0.hidden.bias") != NULL);
		CHECK(freed == 0);
		sl_block_free(net);
		CHECK(freed == 1);
	}
}

static sl_tensor *gives_nothing(sl_block *self, sl_tensor *const *in, int nin)
{
	(void)self, (void)in, (void)nin;
	return NULL;
}

static void test_forward_mistakes(void)
{
	SL_SCOPE {
		sl_block *b = calloc(1, sizeof *b);
		CHECK_OK(sl_block_init(b, "Odd", gives_nothing, NULL));
		CHECK_NULL(sl_forward(b, sl_ones(SL_SHAPE(1))), SL_EINVAL, "forward of odd", "NULL");
		CHECK_NULL(sl_forward(b, NULL), SL_EINVAL, "input 0");
		CHECK_NULL(sl_forward(NULL, sl_ones(SL_SHAPE(1))), SL_EINVAL, "block is NULL");
		CHECK_NULL(sl_forward(b, sl_relu(NULL)), SL_EINVAL);
		sl_block_free(b);
		sl_block *d = sl_dense(2);
		CHECK_NULL(sl_forward(d, sl_ones(SL_SHAPE(1)), sl_ones(SL_SHAPE(1))), SL_EINVAL, "one input, got 2");
		sl_block_free(d);
		CHECK_NULL(sl_dense(0), SL_EINVAL, "units");
		CHECK_NULL(sl_conv2d_layer(4), SL_EINVAL, ".kernel");
		CHECK_NULL(sl_conv2d_layer(4, .kernel = {3}, .groups = 3), SL_EINVAL, "groups");
		CHECK_NULL(sl_max_pool2d_layer(-1), SL_EINVAL, "window");
		CHECK_NULL(sl_dropout_layer(1), SL_EINVAL, "probability");
		CHECK_NULL(sl_sequential(sl_dense(3), sl_dense(-1), sl_dense(2)), SL_EINVAL, "units");
		CHECK_NULL(sl_residual(sl_dense(3), sl_dense(-1), SL_RELU), SL_EINVAL, "units");
	}
}

/* ---- trees ------------------------------------------------------------------------------------------------------- */

static void test_names(void)
{
	sl_block *a = sl_dense(1), *b = sl_dense(1), *c = sl_conv2d_layer(1, .kernel = {1}),
	         *r = sl_activation_layer(SL_RELU);
	char expected[64];
	snprintf(expected, sizeof expected, "dense%d", atoi(sl_block_name(a) + 5) + 1);
	CHECK_SAYING(!strcmp(sl_block_name(b), expected), "%s after %s", sl_block_name(b), sl_block_name(a));
	CHECK(!strncmp(sl_block_name(c), "conv", 4) && !strncmp(sl_block_name(r), "relu", 4));
	snprintf(expected, sizeof expected, "%s_weight", sl_block_name(a));
	CHECK(!strcmp(sl_param_name(sl_block_find(a, "weight")), expected));
	sl_block_free(a);
	sl_block_free(b);
	sl_block_free(c);
	sl_block_free(r);
}

static void test_adding(void)
{
	sl_block *net = sl_sequential(sl_dense(2)), *inner = sl_sequential(sl_dense(3));
	CHECK(sl_block_add(net, NULL, inner) == inner && sl_block_children(net) == 2 &&
	      sl_block_child(net, 1) == inner);
	CHECK(sl_block_find(net, "1.0.weight") == sl_block_find(inner, "0.weight"));
	CHECK_NULL(sl_block_add(net, "1", sl_dense(2)), SL_EINVAL, "there is already a child of that name");
	CHECK_NULL(sl_block_add(net, "a.b", sl_dense(2)), SL_EINVAL, "dots");
	CHECK_NULL(sl_block_add(inner, "round", sl_block_retain(net)), SL_EINVAL, "inside itself");
	CHECK_NULL(sl_block_add(net, "x", NULL), SL_EINVAL, "child is NULL");
	CHECK_NULL(sl_block_find(net, "1.0.wait"), SL_EINVAL, "1.0.wait", "0.weight, 0.bias, 1.0.weight, 1.0.bias");
	CHECK_NULL(sl_block_param(net, "a.b", SL_SCALAR), SL_EINVAL, "dots");
	CHECK(sl_block_child(net, 2) == NULL && sl_block_child(net, -1) == NULL);
	sl_block_free(net);
}

static void test_replacing(void)
{
	SL_SCOPE {
		sl_block *net = sl_sequential(sl_dense(2, .in_units = 3), sl_dense(4)), *first = sl_block_child(net, 0),
		         *next;
		sl_tensor *x = sl_ones(SL_SHAPE(1, 3));
		CHECK_OK(sl_initialize(net));
		CHECK_OK(sl_hybridize(net));
		CHECK(sl_tensor_shape(sl_forward(net, x)).dim[1] == 4);
		next = sl_block_replace(net, "1", sl_dense(5));
		CHECK(next && sl_block_child(net, 1) == next && sl_block_child(net, 0) == first &&
		      sl_block_children(net) == 2);
		CHECK_OK(sl_initialize(net));
		CHECK(sl_tensor_shape(sl_forward(net, x)).dim[1] == 5);
		CHECK(sl_block_replace(net, "1", sl_block_retain(next)) == next); /* by itself */
		CHECK_NULL(sl_block_replace(net, "2", sl_dense(2)), SL_EINVAL, "no child of that name");
		CHECK_NULL(sl_block_replace(net, NULL, sl_dense(2)), SL_EINVAL, "no child of that name");
		CHECK_NULL(sl_block_replace(net, "1", sl_block_retain(net)), SL_EINVAL, "inside itself");
		CHECK_NULL(sl_block_replace(net, "1", NULL), SL_EINVAL, "child is NULL");
		CHECK(sl_block_child(net, 1) == next);
		sl_block_free(net);
	}
}

static void test_shared(void)
{
	SL_SCOPE {
		sl_block *shared = sl_dense(3),
		         *net = sl_sequential(shared, sl_activation_layer(SL_TANH), sl_block_retain(shared));
		sl_tensor *x = sl_normal(SL_SHAPE(2, 3), 0, 1), *loss;
		CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
		CHECK(sl_block_params(net, NULL, 0) == 2);
		SL_RECORD
			loss = sl_sum(sl_forward(net, x));
		CHECK_OK(sl_backward(loss));
		sl_tensor *w = sl_clone(slp_data(net, "0.weight")), *b = sl_clone(slp_data(net, "2.bias")), *by_hand;
		sl_attach_grad(w);
		sl_attach_grad(b);
		SL_RECORD
			by_hand = sl_sum(sl_linear(sl_tanh(sl_linear(x, w, b, .tw = true)), w, b, .tw = true));
		CHECK_OK(sl_backward(by_hand));
		CHECK_SAME(sl_grad(w), sl_param_grad(sl_block_find(net, "0.weight")));
		sl_block_retain(shared);
		sl_block_free(net);
		CHECK(sl_forward(shared, x) != NULL);
		sl_block_free(shared);
	}
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Without a scope of the program's own the result is all that is left of a forward. */
static void test_intermediates(void)
{
	sl_block *net = sl_sequential(sl_dense(1000, .activation = SL_RELU), sl_dense(1000), sl_dense(1));
	sl_tensor *x = sl_ones(SL_SHAPE(100, 10));
	CHECK_OK(sl_initialize(net));
	sl_release(sl_forward(net, x));
	CHECK_OK(sl_wait_all()); /* a result may be there before its task has given back what it used */
	size_t before = slp_stats().bytes;
	for (int i = 0; i < 20; i++) {
		sl_release(sl_forward(net, x));
		CHECK_OK(sl_wait_all());
	}
	CHECK_SAYING(slp_stats().bytes <= before + 800000, "%zu bytes more", slp_stats().bytes - before);
	sl_release(x);
	sl_block_free(net);
}

/* ---- summary ----------------------------------------------------------------------------------------------------- */

static bool has_row(const char *table, const char *name, const char *rest)
{
	const char *row = strstr(table, name), *end = row ? strchr(row, '\n') : NULL;
	char line[512], squeezed[512];
	if (!end || end - row >= (long)sizeof line) return false;
	memcpy(line, row, (size_t)(end - row));
	line[end - row] = '\0';
	size_t n = 0;
	for (const char *p = line; *p; p++)
		if (*p != ' ' || (n && squeezed[n - 1] != ' ')) squeezed[n++] = *p;
	squeezed[n] = '\0';
	return CHECK_SAYING(strstr(squeezed, rest), "\"%s\" is not in \"%s\"", rest, squeezed);
}

static void test_summary(void)
{
	sl_block *shared = sl_dense(6), *net = sl_sequential(sl_dense(6, .activation = SL_RELU), shared,
	                                                     sl_block_retain(shared), sl_batch_norm_layer());
	char *table = NULL;
	size_t size;
	FILE *file = open_memstream(&table, &size);
	CHECK_MISTAKE(sl_summary(file, net, SL_SHAPE(4, 3)), SL_ESTATE, "not initialised");
	CHECK_OK(sl_initialize(net));
	CHECK_OK(sl_summary(file, net, SL_SHAPE(4, 3)));
	fclose(file);
	/* flops: 2·4·3·6 and one for each ReLU; bytes: x, w, b, y, and y twice more */
	CHECK(has_row(table, sl_block_name(sl_block_child(net, 0)), "Dense (4, 6) 24 168 432"));
	CHECK(has_row(table, sl_block_name(shared), "Dense (4, 6) 42 288 360"));
	CHECK(has_row(strstr(table, sl_block_name(shared)) + 4, sl_block_name(shared), "Dense (4, 6) 0 288 360"));
	CHECK(has_row(table, sl_block_name(sl_block_child(net, 3)), "BatchNorm (4, 6) 24"));
	CHECK(strstr(table, "78 parameters are trained, 12 are not; together they take 360 bytes"));
	free(table);
	sl_block_free(net);
}

/* ---- symbols ----------------------------------------------------------------------------------------------------- */

static void test_symbols(void)
{
	SL_SCOPE {
		sl_block *net = sl_sequential(sl_conv2d_layer(4, .kernel = {3}), sl_batch_norm_layer(),
		                              sl_max_pool2d_layer(2), sl_dropout_layer(0.5),
		                              &slp_scaled_new(&(int){0})->base, sl_layer_norm_layer(), sl_dense(2));
		CHECK_OK(sl_initialize(net));
		CHECK_NULL(sl_forward_at(SL_HERE, net, (sl_tensor *[]){sl_var("data")}, 1), SL_ESTATE,
		           "run the network once", "conv");
		sl_tensor *y = sl_forward(net, sl_var("data", SL_VAR_SHAPE(5, 1, 8, 8)));
		CHECK(y && sl_is_symbol(y) && sl_shape_equal(sl_tensor_shape(y), SL_SHAPE(5, 2)));
		y = sl_forward(net, sl_var("data"));
		CHECK_SAYING(y && sl_is_symbol(y), "%s", sl_error_message());
		CHECK_OK(sl_forward(net, sl_ones(SL_SHAPE(1, 1, 8, 8))) ? SL_OK : sl_error());
		sl_block_free(net);
	}
}

static const struct slp_test tests[] = {
        {"dense", test_dense},
        {"dense of rows", test_dense_of_rows},
        {"convolution", test_convolution},
        {"plain layers", test_plain_layers},
        {"activations", test_activations},
        {"dropout in training", test_dropout_in_training},
        {"batch norm", test_batch_norm},
        {"layer norm", test_layer_norm},
        {"embedding", test_embedding},
        {"residual", test_residual},
        {"gradients", test_gradients},
        {"own block", test_own_block},
        {"names in lower case", test_lower_case},
        {"forward mistakes", test_forward_mistakes},
        {"names", test_names},
        {"adding", test_adding},
        {"a block in the place of another", test_replacing},
        {"shared", test_shared},
        {"intermediates", test_intermediates},
        {"summary", test_summary},
        {"symbols", test_symbols},
        {NULL, NULL},
};

static const struct slp_suite suites[] = {
        {"nn", tests, slp_start_engine, slp_stop_engine, NULL, NULL},
        {NULL, NULL, NULL, NULL, NULL, NULL},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, suites);
}
