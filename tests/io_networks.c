/* Networks that are exported and compared with other libraries: the usual ones, and one that has a bit of everything. */
#include "io_networks.h"

static sl_block *lenet(void)
{
	return sl_sequential(sl_conv2d_layer(6, .kernel = {5}, .pad = {2, 2}, .activation = SL_SIGMOID),
			     sl_avg_pool2d_layer(2),
			     sl_conv2d_layer(16, .kernel = {5}, .activation = SL_SIGMOID), sl_avg_pool2d_layer(2),
			     sl_dense(120, .activation = SL_SIGMOID), sl_dense(84, .activation = SL_SIGMOID), sl_dense(10));
}

/* ---- the tutorial's ResNet-18, with fewer channels ----------------------------------------------------------------- */

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
	for (int i = 0; i < 4; i++)
		stages[i] = sl_sequential(residual(WIDTH << i, i > 0), residual(WIDTH << i, false));
	return sl_sequential(sl_conv2d_layer(WIDTH, .kernel = {3}, .pad = {1, 1}), sl_batch_norm_layer(),
			     sl_activation_layer(SL_RELU), stages[0], stages[1], stages[2], stages[3],
			     sl_global_avg_pool2d_layer(), sl_dense(10));
}

/* ---- a bit of everything ------------------------------------------------------------------------------------------- */

static sl_tensor *tail(sl_tensor *x)
{
	sl_tensor *y = sl_matmul(x, sl_transpose(x, SL_AXES(0, 2, 1)));
	y = sl_concat(((sl_tensor *const[]){sl_slice(y, 1, 0, -1, 1), sl_slice(y, 1, -1, INT64_MIN, -2)}), 2, 1);
	y = sl_sub(sl_max(y, SL_AXES(2), .keepdims = true), sl_mul_scalar(sl_mean(y, SL_AXES(1), .keepdims = true), 0.5));
	y = sl_add(sl_gelu(y), sl_softplus(sl_rsub_scalar(y, 1)));
	y = sl_div(y, sl_add_scalar(sl_sum(sl_square(y), SL_AXES(-1), .keepdims = true), 1));
	y = sl_maximum(y, sl_mul(sl_ones(SL_SHAPE(1)), sl_full(SL_SHAPE(4), 0.05)));
	return sl_add(sl_log_softmax(y, -1), sl_cast(sl_argmax(y, 1), SL_FLOAT32) ? sl_relu(y) : NULL);
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
			     sl_max_pool2d_layer(2, .ceil = true), sl_avg_pool2d_layer(3, .stride = {1}, .pad = {1, 1}, .exclude_pad = true),
			     sl_lambda("tokens", tokens), sl_layer_norm_layer(), sl_dense(5, .no_flatten = true),
			     sl_lambda("tail", tail), sl_flatten_layer(), sl_dense(3, .activation = SL_GELU));
}

static sl_block *words(void)
{
	return sl_sequential(sl_embedding(11, 6), sl_dense(3));
}

/* ---- all ----------------------------------------------------------------------------------------------------------- */

const struct slp_network slp_networks[] = {
	{"mlp", mlp, {2, {3, 10}}},
	{"lenet", lenet, {4, {2, 1, 28, 28}}},
	{"resnet18", resnet18, {4, {2, 3, 32, 32}}},
	{"mixed", mixed, {4, {2, 3, 9, 9}}},
	{"words", words, {2, {4, 2}}},
	{0},
};
