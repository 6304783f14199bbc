/* For simulate.sh: trains a network in whole steps whose batches are cut into shards, and prints the simulated
 * milliseconds of a step once the engine has settled:
 *
 *     placement lenet|resnet18|gpt SHARDS DEVICES [WARM]
 *
 * Shards are dealt to the devices in turn; each batch comes from main memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <starling.h>

#include "../models/driver/networks.h"

enum { TIMED = 10, MAX_SHARDS = 64, WORDS = 256, LENGTH = 64 };

struct task {
	const char *name;
	sl_block *(*make)(void);
	int rows;
	bool words;
};

static sl_block *make_gpt(void)
{
	return net_gpt((struct net_gpt_size){.words = WORDS, .steps = LENGTH, .width = 128, .layers = 4, .heads = 4});
}

static const struct task tasks[] = {
        {"lenet", net_lenet, 256, false}, {"resnet18", net_resnet18, 256, false}, {"gpt", make_gpt, 64, true}};

static const struct task *find(const char *name)
{
	for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
		if (!strcmp(tasks[i].name, name)) return &tasks[i];
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

/* A batch as a loader gives it: in main memory. */
static void make_batch(const struct task *t, sl_tensor **x, sl_tensor **y)
{
	static float images[256 * 28 * 28];
	static int32_t numbers[256 * LENGTH];
	struct sl_make number = {SL_INT32, sl_cpu(-1)}, real = {SL_FLOAT32, sl_cpu(-1)};
	*x = t->words ? sl_from_at(SL_HERE, numbers, SL_SHAPE(t->rows, LENGTH), number)
	              : sl_from_at(SL_HERE, images, SL_SHAPE(t->rows, 1, 28, 28), real);
	*y = sl_from_at(SL_HERE, numbers, t->words ? SL_SHAPE(t->rows, LENGTH) : SL_SHAPE(t->rows), number);
}

static bool make_step(sl_step *step, const struct task *t, int shards, const sl_device *where)
{
	sl_tensor *x, *y, *xs[MAX_SHARDS], *ys[MAX_SHARDS], *losses[MAX_SHARDS];
	bool ok = false;
	SL_SCOPE {
		make_batch(t, &x, &y);
		if (shards == 1) {
			ok = sl_step_run(step, sl_place(x, where[0]), sl_place(y, where[0])) != NULL;
		} else {
			sl_split_and_load(x, where, shards, xs);
			sl_split_and_load(y, where, shards, ys);
			ok = sl_step_run(step, .in = xs, .targets = ys, .losses = losses, .shards = shards) != NULL;
		}
	}
	return ok;
}

static bool train(sl_step *step, const struct task *t, int shards, const sl_device *where, int warm)
{
	double start = 0;
	bool ok = true;
	for (int i = 0; ok && i < warm + TIMED; i++) {
		if (i == warm) {
			ok = sl_wait_all() == SL_OK;
			start = sl_time();
		}
		ok = ok && make_step(step, t, shards, where);
	}
	ok = ok && sl_wait_all() == SL_OK;
	if (ok) printf("%.4f ms\n", 1e3 * (sl_time() - start) / TIMED);
	return ok;
}

static bool run(const struct task *t, int shards, const sl_device *devices, int n, int warm)
{
	sl_device where[MAX_SHARDS];
	for (int i = 0; i < shards; i++) where[i] = devices[i % n];
	sl_block *net = t->make();
	bool ok = sl_initialize(net, .init = sl_normal_init(0.01), .devices = devices, .ndevices = n) == SL_OK;
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.1));
	sl_step *step = sl_step_compile(net, loss, trainer);
	ok = ok && step && train(step, t, shards, where, warm);
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return ok;
}

int main(int argc, char **argv)
{
	sl_device devices[MAX_SHARDS];
	const struct task *t = argc >= 4 ? find(argv[1]) : NULL;
	int shards = t ? atoi(argv[2]) : 0, n = t ? sl_device_parse(argv[3], devices, MAX_SHARDS) : 0;
	if (shards < 1 || shards > MAX_SHARDS || n < 1 || n > shards) {
		fputs("usage: placement lenet|resnet18|gpt SHARDS DEVICES [WARM]\n", stderr);
		return 2;
	}
	bool ok = sl_device_default(devices[0]) == SL_OK && run(t, shards, devices, n, argc > 4 ? atoi(argv[4]) : 12);
	if (!ok) fprintf(stderr, "%s\n", sl_error_message());
	sl_shutdown();
	return !ok;
}
