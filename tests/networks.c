/* Small networks of several kinds, and comparing what becomes of them. */
#include "networks.h"

#include <stdlib.h>
#include <string.h>

static sl_block *mlp(void)
{
	return sl_sequential(sl_dense(16, .activation = SL_RELU), sl_dropout_layer(0.3),
	                     sl_dense(8, .activation = SL_TANH), sl_dense(3));
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

const struct slp_network slp_networks[SLP_NETWORKS] = {
        {"mlp", mlp, {2, {16, 12}}},
        {"lenet", lenet, {4, {16, 1, 14, 14}}},
        {"resnet", resnet, {4, {4, 2, 6, 6}}},
};

sl_block *slp_network_new(const struct slp_network *n)
{
	sl_block *net = n->make();
	sl_seed(5);
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	SL_SCOPE
		CHECK(sl_forward(net, sl_zeros(n->input)) != NULL);
	return net;
}

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

void slp_check_close(const char *what, sl_tensor *a, sl_tensor *b, double tolerance)
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

void slp_check_params(const char *what, sl_block *a, sl_block *b, double tolerance)
{
	sl_param *x[SLP_MAX_PARAMS], *y[SLP_MAX_PARAMS];
	int n = sl_block_params(a, x, SLP_MAX_PARAMS);
	CHECK(n == sl_block_params(b, y, SLP_MAX_PARAMS));
	for (int i = 0; i < n; i++)
		SL_SCOPE
			slp_check_close(what, sl_param_data(x[i]), sl_param_data(y[i]), tolerance);
}
