/* For bits: trains a network of the drivers, smaller, in whole steps, and hashes its parameters. */
#include <stdlib.h>
#include <string.h>

#include <starling.h>

#include "../models/driver/networks.h"
#include "bits.h"

enum { STEPS = 2, WORDS = 64, LENGTH = 24 };

static sl_block *make_resnet18(void)
{
	return net_resnet18_of(16, false);
}

static sl_block *make_gpt(void)
{
	return net_gpt((struct net_gpt_size){.words = WORDS, .steps = LENGTH, .width = 48, .layers = 2, .heads = 3});
}

static const struct network {
	const char *name;
	sl_block *(*make)(void);
	int rows, size; /* size: of an image */
} networks[] = {{"lenet", net_lenet, 64, 28}, {"resnet18", make_resnet18, 9, 16}, {"gpt", make_gpt, 5, 0}};

static const struct network *find(const char *name)
{
	for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
		if (!strcmp(networks[i].name, name)) return &networks[i];
	return NULL;
}

static sl_tensor *loss(const char *at, sl_tensor *y, sl_tensor *target)
{
	if (sl_tensor_shape(y).ndim == 3) {
		y = sl_reshape(y, SL_SHAPE(-1, WORDS));
		target = sl_reshape(target, SL_SHAPE(-1));
	}
	return sl_softmax_cross_entropy_at(at, y, target);
}

static sl_tensor *numbers(sl_shape shape, int below)
{
	return sl_cast(sl_uniform(shape, 0, below), SL_INT32);
}

static bool train(sl_step *step, const struct network *n)
{
	bool ok = false;
	SL_SCOPE {
		sl_tensor *x = n->size ? sl_normal(SL_SHAPE(n->rows, 1, n->size, n->size), 0, 1)
		                       : numbers(SL_SHAPE(n->rows, LENGTH), WORDS);
		sl_tensor *y = n->size ? numbers(SL_SHAPE(n->rows), 10) : numbers(SL_SHAPE(n->rows, LENGTH), WORDS);
		ok = sl_step_run(step, x, y) != NULL;
	}
	return ok;
}

static uint64_t hash_all(sl_block *net)
{
	enum { MOST = 128 };
	sl_param *params[MOST];
	uint64_t h = SLP_HASH_START;
	int count = sl_block_params(net, params, MOST);
	for (int i = 0; i < count && i < MOST; i++) h = slp_hash_tensor(h, sl_param_data(params[i]));
	return h;
}

bool slp_network_bits(const char *name, uint64_t *hash)
{
	const struct network *n = find(name);
	if (!n) return false;
	sl_block *net = n->make();
	bool ok = sl_initialize(net, .init = sl_normal_init(0.05)) == SL_OK;
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1, .momentum = 0.9));
	sl_step *step = sl_step_compile(net, loss, trainer);
	for (int i = 0; ok && step && i < STEPS; i++) ok = train(step, n);
	*hash = hash_all(net);
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return ok && step;
}
