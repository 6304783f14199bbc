/* Networks that are exported and compared with other libraries: the usual ones, and one that has a bit of
 * everything. */
#include "io_networks.h"

#include <starling.h>

static sl_block *lenet(void)
{
	return sl_sequential(sl_conv2d_layer(6, .kernel = {5}, .pad = {2, 2}, .activation = SL_SIGMOID),
	                     sl_avg_pool2d_layer(2), sl_conv2d_layer(16, .kernel = {5}, .activation = SL_SIGMOID),
	                     sl_avg_pool2d_layer(2), sl_dense(120, .activation = SL_SIGMOID),
	                     sl_dense(84, .activation = SL_SIGMOID), sl_dense(10));
}

/* ---- the tutorial's ResNet-18, with fewer channels --------------------------------------------------------------- */

static sl_block *residual(int64_t channels, bool shrink)
{
	int stride = shrink ? 2 : 1;
	sl_block *body = sl_sequential(sl_conv2d_layer(channels, .kernel = {3}, .pad = {1, 1}, .stride = {stride}),
	                               sl_batch_norm_layer(), sl_activation_layer(SL_RELU),
	                               sl_conv2d_layer(channels, .kernel = {3}, .pad = {1, 1}), sl_batch_norm_layer());
	return sl_residual(body, shrink ? sl_conv2d_layer(channels, .kernel = {1}, .stride = {2}) : NULL, SL_RELU);
}

static sl_block *resnet18(void)
{
	enum { WIDTH = 16 };
	sl_block *stages[4];
	for (int i = 0; i < 4; i++) stages[i] = sl_sequential(residual(WIDTH << i, i > 0), residual(WIDTH << i, false));
	return sl_sequential(sl_conv2d_layer(WIDTH, .kernel = {3}, .pad = {1, 1}), sl_batch_norm_layer(),
	                     sl_activation_layer(SL_RELU), stages[0], stages[1], stages[2], stages[3],
	                     sl_global_avg_pool2d_layer(), sl_dense(10));
}

/* ---- a bit of everything ----------------------------------------------------------------------------------------- */

static sl_tensor *tail(sl_tensor *x)
{
	sl_tensor *y = sl_matmul(x, sl_transpose(x, SL_AXES(0, 2, 1)));
	y = sl_concat(((sl_tensor *const[]){sl_slice(y, 1, 0, -1, 1), sl_slice(y, 1, -1, INT64_MIN, -2)}), 2, 1);
	y = sl_sub(sl_max(y, SL_AXES(2), .keepdims = true),
	           sl_mul_scalar(sl_mean(y, SL_AXES(1), .keepdims = true), 0.5));
	y = sl_add(sl_gelu(y), sl_softplus(sl_rsub_scalar(y, 1)));
	y = sl_div(y, sl_add_scalar(sl_sum(sl_square(y), SL_AXES(-1), .keepdims = true), 1));
	y = sl_maximum(y, sl_mul(sl_ones(SL_SHAPE(1)), sl_full(SL_SHAPE(4), 0.05)));
	return sl_add(sl_log_softmax(y, -1), sl_cast(sl_cast(y, SL_INT32), SL_FLOAT32));
}

static sl_tensor *tokens(sl_tensor *x)
{
	return sl_reshape(x, SL_SHAPE(sl_tensor_shape(x).dim[0], 4, -1));
}

static sl_block *mlp(void)
{
	return sl_sequential(sl_dense(24, .activation = SL_RELU), sl_dense(16, .activation = SL_TANH, .no_bias = true),
	                     sl_dropout_layer(0.4), sl_dense(2));
}

static sl_block *mixed(void)
{
	return sl_sequential(sl_conv2d_layer(6, .kernel = {3, 2}, .stride = {2, 1}, .pad = {1, 0}, .groups = 3),
	                     sl_batch_norm_layer(.eps = 1e-3), sl_activation_layer(SL_RELU),
	                     sl_residual(sl_conv2d_layer(6, .kernel = {3}, .pad = {1, 1}), NULL, SL_SIGMOID),
	                     sl_max_pool2d_layer(2, .ceil = true),
	                     sl_avg_pool2d_layer(3, .stride = {1}, .pad = {1, 1}, .exclude_pad = true),
	                     sl_lambda("tokens", tokens), sl_layer_norm_layer(), sl_dense(5, .no_flatten = true),
	                     sl_lambda("tail", tail), sl_flatten_layer(), sl_dense(3, .activation = SL_GELU));
}

static sl_block *words(void)
{
	return sl_sequential(sl_embedding(11, 6), sl_dense(3));
}

/* ---- operations that the others lack ----------------------------------------------------------------------------- */

/* Each of them changes the result. */
static sl_tensor *unary(sl_tensor *x)
{
	sl_tensor *y = sl_add(sl_sqrt(sl_abs(x)), sl_log(sl_add_scalar(sl_square(x), 1)));
	y = sl_sub(sl_exp(sl_neg(y)), sl_reciprocal(sl_add_scalar(sl_sigmoid(y), 1)));
	y = sl_mul(sl_tanh(y), sl_clone(sl_softplus(y)));
	y = sl_add(sl_pow(sl_abs(y), sl_full(SL_SHAPE(4), 1.5)), sl_pow_scalar(sl_abs(y), 0.7));
	return sl_add(y, sl_add(sl_rpow_scalar(y, 2), sl_rdiv_scalar(sl_add_scalar(sl_abs(y), 2), 3)));
}

static sl_tensor *transcendental(sl_tensor *x)
{
	sl_tensor *u = sl_tanh(x), *y = sl_add(sl_mul(sl_sin(x), sl_cos(x)), sl_tan(u));
	y = sl_add(y, sl_sub(sl_mul(sl_asin(u), sl_atan(x)), sl_acos(u)));
	y = sl_mul(y, sl_sub(sl_cosh(u), sl_sinh(u)));
	y = sl_add(y, sl_sub(sl_asinh(x), sl_acosh(sl_add_scalar(sl_square(x), 1.5))));
	y = sl_add(y, sl_sub(sl_atanh(sl_mul_scalar(u, 0.9)), sl_mul(sl_erf(x), sl_expm1(u))));
	y = sl_mul(y, sl_add(sl_log1p(sl_abs(x)), sl_rsqrt(sl_add_scalar(sl_abs(x), 1))));
	y = sl_add(y, sl_sub(sl_mul_scalar(sl_sign(y), 0.5), sl_mul_scalar(sl_floor(y), 0.25)));
	return sl_add(y, sl_sub(sl_mul_scalar(sl_ceil(y), 0.125), sl_logical_not(sl_floor(u))));
}

static sl_tensor *comparisons(sl_tensor *x)
{
	sl_tensor *m = sl_mean(x, SL_AXES(1), .keepdims = true), *y = sl_mul_scalar(sl_lt(x, m), 2);
	y = sl_add(y, sl_add(sl_ge_scalar(x, 5), sl_ne_scalar(sl_gt(x, m), 0)));
	y = sl_add(y, sl_sub_scalar(sl_le_scalar(x, 3), 0.5));
	return sl_maximum_scalar(sl_minimum_scalar(sl_sub(y, sl_eq(m, x)), 4), -0.25);
}

static sl_tensor *indices(sl_tensor *x)
{
	sl_tensor *i = sl_argmax(x, 1), *table = sl_reshape(sl_arange(0, 6, 0.25), SL_SHAPE(4, 3, 2));
	sl_tensor *rows = sl_sum(sl_gather(table, i), SL_AXES(2));
	sl_tensor *size = sl_norm(x, SL_AXES(1), .keepdims = true);
	return sl_concat(((sl_tensor *const[]){sl_one_hot(i, 5), rows,
	                                       sl_broadcast_to(size, SL_SHAPE(sl_tensor_shape(x).dim[0], 2))}),
	                 3, 1);
}

static sl_tensor *products(sl_tensor *x)
{
	int64_t n = sl_tensor_shape(x).dim[0];
	sl_tensor *t = sl_reshape(x, SL_SHAPE(n, 1, 2, 2)), *two[] = {t, sl_mul_scalar(t, 0.5)};
	sl_tensor *h = sl_concat(two, 2, 1); /* (n, 2, 2, 2) */
	sl_tensor *y = sl_matmul(h, sl_slice(h, 3, -1, INT64_MIN, -1), .tb = true);
	y = sl_min(sl_matmul(y, h, .ta = true), SL_AXES(-1));
	y = sl_linear(sl_reshape(y, SL_SHAPE(n, 4)), sl_reshape(sl_arange(0, 1.2, 0.1), SL_SHAPE(4, 3)), NULL);
	return sl_dot(y, sl_full(SL_SHAPE(3, 2), 0.125));
}

static sl_tensor *everything(sl_tensor *x)
{
	sl_tensor *y = sl_concat(
	        ((sl_tensor *const[]){unary(x), transcendental(x), comparisons(x), indices(x), products(x)}), 5, 1);
	y = sl_div(y, sl_add_scalar(sl_abs(y), 1));
	return sl_softmax(sl_sub(y, sl_max(y, SL_AXES(1), .keepdims = true)), 1);
}

/* ---- what MXNet's format lacks ----------------------------------------------------------------------------------- */

/* Each of them changes the result. */
static sl_tensor *choices(sl_tensor *x)
{
	sl_tensor *large = sl_gt_scalar(x, 4), *odd = sl_gt_scalar(sl_sin(x), 0);
	sl_tensor *y = sl_where(sl_logical_and(large, odd), sl_log1p(x), sl_expm1(sl_neg(x)));
	y = sl_add(y, sl_logical_or(large, sl_logical_not(odd)));
	y = sl_add(y, sl_mul_scalar(sl_logical_xor(odd, large), 0.25));
	return sl_add(y, sl_mul_scalar(sl_isfinite(sl_log(sl_sub_scalar(x, 3))), 0.5));
}

static sl_tensor *functions(sl_tensor *x)
{
	sl_tensor *y = sl_add(sl_cos(x), sl_mul(sl_erf(sl_sub_scalar(x, 5)), sl_rsqrt(sl_add_scalar(x, 1))));
	y = sl_add(sl_silu(y), sl_mul(sl_hard_swish(sl_sub_scalar(x, 5)), sl_gelu_tanh(y)));
	y = sl_add(y, sl_mul(sl_sign(y), sl_sub(sl_round(x), sl_mul_scalar(sl_floor(x), 0.5))));
	y = sl_sub(y, sl_mul_scalar(sl_ceil(y), 0.25));
	y = sl_add(y, sl_mul_scalar(sl_isnan(sl_log(sl_sub_scalar(x, 6))), 0.125));
	y = sl_add(sl_add(y, sl_leaky_relu(y, 0.1)), sl_prod(sl_clip(y, -1.5, 1.5), SL_AXES(1), .keepdims = true));
	return sl_add(sl_rms_norm(y, NULL), choices(x));
}

static sl_block *functional(void)
{
	return sl_sequential(sl_lambda("functions", functions), sl_dense(6));
}

static sl_tensor *last(sl_tensor *x)
{
	return sl_slice(x, 1, 6, 12, 1);
}

/* Along axes, by indices, over images; each changes the result.  x is (rows, 6, 8). */
static sl_tensor *ordered(sl_tensor *x)
{
	sl_tensor *table = sl_sin(sl_reshape(sl_arange(0, 48, 1), SL_SHAPE(6, 8))), *places;
	sl_tensor *sums = sl_cumsum(sl_mul_scalar(x, 0.01), 1), *sorted = sl_sort(table, 1, true);
	sl_tensor *two = sl_topk(table, 2, 0, &places);
	sl_tensor *large = sl_any(sl_gt_scalar(x, 0.9), SL_AXES(1), .keepdims = true);
	sl_tensor *small = sl_all(sl_lt_scalar(x, 0.5), SL_AXES(2), .keepdims = true);
	sl_tensor *y = sl_add(sl_add(sums, sorted), sl_add(sl_cast(large, SL_FLOAT32), sl_cast(small, SL_FLOAT32)));
	y = sl_add(y, sl_sum(sl_mul(two, sl_cast(places, SL_FLOAT32)), SL_AXES(0)));
	sl_tensor *rows = sl_from(((int32_t[]){2, 0, 2}), SL_SHAPE(3), .dtype = SL_INT32);
	sl_tensor *added =
	        sl_index_add(sl_zeros(SL_SHAPE(6, 8)), rows, sl_reshape(sl_arange(0, 2.4, 0.1), SL_SHAPE(3, 8)));
	return sl_add(y, added);
}

static sl_tensor *enlarged(sl_tensor *x)
{
	sl_tensor *w = sl_reshape(sl_arange(-1, 0.8, 0.1), SL_SHAPE(1, 2, 3, 3)), *b = sl_ones(SL_SHAPE(2));
	sl_tensor *image = sl_reshape(x, SL_SHAPE(-1, 1, 6, 8));
	sl_tensor *y = sl_conv_transpose2d(image, w, b, .stride = {2, 1}, .pad = {1, 1}, .output_pad = {1, 0});
	return sl_reshape(sl_pool2d(y, .type = SL_POOL_AVG, .kernel = {2, 1}, .stride = {2, 1}), SL_SHAPE(-1, 12, 8));
}

static sl_block *sequences(void)
{
	return sl_sequential(sl_lambda("enlarged", enlarged),
	                     sl_lstm(4, .layers = 2, .bidirectional = true, .batch_first = true),
	                     sl_multi_head_attention(8, 2, .causal = true), sl_multi_head_attention(8, 1),
	                     sl_gru(8, .batch_first = true), sl_rnn(8, .batch_first = true, .relu = true),
	                     sl_rnn(8, .batch_first = true, .no_bias = true), sl_lambda("last", last),
	                     sl_lambda("ordered", ordered), sl_dense(3));
}

static sl_block *ops(void)
{
	return sl_sequential(sl_lambda("everything", everything), sl_dense(6));
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

const struct slp_network slp_networks[] = {
        {"mlp", mlp, {2, {3, 10}}, false},
        {"lenet", lenet, {4, {2, 1, 28, 28}}, false},
        {"resnet18", resnet18, {4, {2, 3, 32, 32}}, false},
        {"mixed", mixed, {4, {2, 3, 9, 9}}, false},
        {"words", words, {2, {4, 2}}, false},
        {"ops", ops, {2, {3, 4}}, false},
        {"functions", functional, {2, {3, 4}}, true},
        {"sequences", sequences, {3, {2, 6, 8}}, true},
        {0},
};
