/* bits SEED [NETWORK]: trains a small net that uses operations of every family, or one of the drivers' networks, for some
 * steps, and prints a hash of the bits of all its parameters, for bits.sh. */
#include <stdio.h>
#include <stdlib.h>

#include <starling.h>

#include "bits.h"

enum { STEPS = 5, IMAGES = 16, CLASSES = 5, UNITS = 24 };

/* X(name, what to start with): the parameters, all trained */
#define PARAMETERS(X)                                                                                                  \
	X(w1, sl_normal(SL_SHAPE(8, 2, 3, 3), 0, 0.3))                                                                 \
	X(b1, sl_zeros(SL_SHAPE(8)))                                                                                   \
	X(gamma, sl_ones(SL_SHAPE(8)))                                                                                 \
	X(beta, sl_zeros(SL_SHAPE(8)))                                                                                 \
	X(w2, sl_normal(SL_SHAPE(12, 4, 3, 3), 0, 0.2))                                                                \
	X(w3, sl_uniform(SL_SHAPE(108, UNITS), -0.1, 0.1))                                                             \
	X(b3, sl_full(SL_SHAPE(UNITS), 0.01))                                                                          \
	X(w4, sl_uniform(SL_SHAPE(CLASSES, 2 * UNITS), -0.2, 0.2))

enum {
#define X(name, value) P_##name,
	PARAMETERS(X)
#undef X
	        COUNT
};
static sl_tensor *p[COUNT], *momenta[COUNT], *mean, *var;

static void make_parameters(void)
{
#define X(name, value) p[P_##name] = value;
	PARAMETERS(X)
#undef X
	for (int i = 0; i < COUNT; i++) {
		sl_attach_grad(p[i]);
		momenta[i] = sl_zeros(sl_tensor_shape(p[i]));
	}
	mean = sl_zeros(SL_SHAPE(8));
	var = sl_ones(SL_SHAPE(8));
}

static sl_tensor *features(sl_tensor *x)
{
	sl_tensor *h = sl_conv2d(x, p[P_w1], p[P_b1], .pad = {1, 1});
	h = sl_relu(sl_batch_norm(h, p[P_gamma], p[P_beta], mean, var));
	h = sl_pool2d(h, .kernel = {2});
	h = sl_conv2d(h, p[P_w2], NULL, .pad = {1, 1}, .groups = 2);
	h = sl_add(sl_mul(sl_sigmoid(h), sl_tanh(h)), sl_gelu(h));
	return sl_flatten(sl_pool2d(h, .type = SL_POOL_AVG, .kernel = {2}));
}

static sl_tensor *scores(sl_tensor *x)
{
	sl_tensor *h = sl_linear(sl_dropout(features(x), 0.25), p[P_w3], p[P_b3]);
	sl_tensor *bell = sl_exp(sl_neg(sl_square(h)));
	sl_tensor *spread = sl_sqrt(sl_add_scalar(sl_mean(sl_square(h), SL_AXES(1), .keepdims = true), 1e-3));
	h = sl_div(sl_sub(h, sl_max(h, SL_AXES(0), .keepdims = true)), spread);
	return sl_linear(sl_concat(((sl_tensor *[]){h, bell}), 2, 1), p[P_w4], NULL, .tw = true);
}

/* Keeps the parameters small in a roundabout way. */
static sl_tensor *penalty(void)
{
	sl_tensor *square = sl_dot(p[P_w4], p[P_w4], .tb = true),
	          *turned = sl_transpose(sl_slice(square, 0, 0, CLASSES, 2));
	sl_tensor *lifted = sl_log(sl_add_scalar(sl_softplus(turned), 1));
	sl_tensor *kept = sl_maximum(
	        sl_minimum(lifted, sl_mul_scalar(sl_broadcast_to(sl_norm(p[P_b3]), sl_tensor_shape(lifted)), 9)),
	        sl_reciprocal(sl_add_scalar(sl_abs(lifted), 2)));
	return sl_add(sl_sum(sl_pow_scalar(kept, 1.5)), sl_min(sl_square(p[P_w3])));
}

static sl_tensor *loss_of(sl_tensor *x, sl_tensor *labels)
{
	sl_tensor *s = scores(x), *wanted = sl_one_hot(labels, CLASSES);
	sl_tensor *loss = sl_mean(sl_softmax_cross_entropy(s, labels));
	loss = sl_add(loss, sl_mean(sl_l2_loss(sl_softmax(s, 1), wanted)));
	loss = sl_sub(loss, sl_mul_scalar(sl_mean(sl_mul(sl_log_softmax(s, 1), wanted)), 0.1));
	loss = sl_add(loss, sl_mul_scalar(sl_mean(sl_gather(s, sl_argmax(s, 0))), 0.01));
	return sl_add(loss, sl_mul_scalar(penalty(), 1e-3));
}

static void step(void)
{
	SL_SCOPE {
		sl_tensor *x = sl_uniform(SL_SHAPE(IMAGES, 2, 12, 12), -1, 1), *loss = NULL, *grads[COUNT];
		sl_tensor *labels = sl_cast(sl_uniform(SL_SHAPE(IMAGES), 0, CLASSES), SL_INT32);
		SL_RECORD
			loss = loss_of(x, labels);
		sl_backward(loss);
		for (int i = 0; i < COUNT; i++) grads[i] = sl_grad(p[i]);
		sl_sgd_update(p, grads, momenta, COUNT, .lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4);
	}
}

uint64_t slp_hash_tensor(uint64_t h, sl_tensor *t)
{
	size_t n = sl_tensor_bytes(t);
	unsigned char *bytes = malloc(n);
	if (bytes && sl_read(t, bytes, n) == SL_OK)
		for (size_t i = 0; i < n; i++) h = (h ^ bytes[i]) * 0x100000001B3u;
	free(bytes);
	return h;
}

static uint64_t hash_parameters(void)
{
	uint64_t h = SLP_HASH_START;
	for (int i = 0; i < COUNT; i++) h = slp_hash_tensor(slp_hash_tensor(h, p[i]), momenta[i]);
	return slp_hash_tensor(slp_hash_tensor(h, mean), var);
}

static void release_parameters(void)
{
	for (int i = 0; i < COUNT; i++) {
		sl_release(p[i]);
		sl_release(momenta[i]);
	}
	sl_release(mean);
	sl_release(var);
}

static uint64_t own_bits(void)
{
	make_parameters();
	for (int i = 0; i < STEPS; i++) step();
	uint64_t h = hash_parameters();
	release_parameters();
	return h;
}

int main(int argc, char **argv)
{
	struct sl_config config = {.seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1};
	if (sl_init(&config) != SL_OK) {
		fprintf(stderr, "bits: %s\n", sl_error_message());
		return 1;
	}
	uint64_t h;
	bool ok = true;
	if (argc > 2) ok = slp_network_bits(argv[2], &h);
	else h = own_bits();
	ok = sl_wait_all() == SL_OK && ok;
	if (ok) printf("%016" PRIx64 "\n", h);
	else fprintf(stderr, "bits: %s\n", sl_error_message());
	sl_shutdown();
	return !ok;
}
