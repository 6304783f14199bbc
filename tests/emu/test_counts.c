/* Kernels of whole steps on an emulated GPU: how many there are, with limits, by name, and the losses of a CPU; in a build
 * with EMU_RACES, which counts bytes, also that no launch of few threads has much to do, and what each kernel accesses
 * beside the least. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "emulated.h"
#include "driver/networks.h"

enum { STEPS = 2, ROWS = 4, MOST_ALONE = 64 << 10 }; /* bytes: a microsecond or two of one multiprocessor */

/* A network that trains in whole steps; the most kernels of a step, of libraries among them. */
struct course {
	const char *name;
	sl_block *(*network)(void);
	enum sl_dtype type;
	int size; /* of images; words of a row, negative */
	int most;
};

static sl_block *lenet(void)
{
	return net_lenet();
}

static sl_block *resnet18(void)
{
	return net_resnet18_of(8, false);
}

static sl_block *gpt(void)
{
	return net_gpt((struct net_gpt_size){.words = 65, .steps = 8, .width = 32, .layers = 4, .heads = 4});
}

/* A loss a token */
static sl_tensor *token_loss(const char *at, sl_tensor *y, sl_tensor *words)
{
	sl_shape s = sl_tensor_shape(y);
	int64_t tokens = s.dim[0] * s.dim[1];
	return sl_softmax_cross_entropy_at(at, sl_reshape_at(at, y, SL_SHAPE(tokens, s.dim[2])),
	                                   sl_reshape_at(at, words, SL_SHAPE(tokens)));
}

static sl_tensor *loss(const char *at, sl_tensor *y, sl_tensor *labels)
{
	return sl_tensor_shape(y).ndim == 3 ? token_loss(at, y, labels) : sl_softmax_cross_entropy_at(at, y, labels);
}

static sl_tensor *words_of(int n, int from)
{
	int32_t values[ROWS * 64];
	for (int i = 0; i < ROWS * n; i++) values[i] = (i * 7 + from) % 65;
	return sl_from(values, SL_SHAPE(ROWS, n), .dtype = SL_INT32);
}

static void make_batch(const struct course *c, sl_tensor **x, sl_tensor **y)
{
	static float values[ROWS * 32 * 32];
	if (c->size < 0) {
		*x = words_of(-c->size, 0);
		*y = words_of(-c->size, 7);
		return;
	}
	for (int i = 0; i < ROWS * c->size * c->size; i++) values[i] = (float)sin(i);
	*x = sl_from(values, SL_SHAPE(ROWS, 1, c->size, c->size));
	*y = sl_from(((int32_t[]){1, 5, 0, 3}), SL_SHAPE(ROWS), .dtype = SL_INT32);
}

struct sum {
	const struct course *course;
	int launches;
};

static void look(const struct emu_kernel *k, void *arg)
{
	struct sum *s = arg;
	s->launches += (int)k->launches;
	printf("\n      %3d  %s", (int)k->launches, k->name);
	if (k->least)
		printf(": %.0f kB, %.2f of the least, at least %d threads", (double)k->moved / 1e3,
		       (double)k->moved / (double)k->least, (int)k->fewest);
	CHECK_SAYING(k->alone <= MOST_ALONE, "%s: %s has few threads and %llu bytes to access", s->course->name,
	             k->name, (unsigned long long)k->alone);
}

/* Of the last step. */
static void check_kernels(const struct course *c)
{
	struct emu_counts counts;
	struct sum s = {c, 0};
	CHECK_OK(sl_wait_all());
	emu_counts_get(&counts);
	emu_kernels_each(look, &s);
	int all = (int)counts.launches[0];
	printf("\n      %3d  of libraries, %d memsets", all - s.launches, (int)counts.sets[0]);
	printf("\n    %s: %d kernels a step", c->name, all);
	CHECK_SAYING(all <= c->most, "%s: %d kernels a step, more than %d", c->name, all, c->most);
}

/* Trains on a device; the loss of the last step. */
static double train(const struct course *c, sl_device device, void (*at_end)(const struct course *))
{
	double last = NAN;
	CHECK_OK(sl_device_default(device));
	sl_seed(1);
	sl_block *net = c->network();
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.1)));
	sl_trainer *trainer = sl_trainer_new(net, sl_adamw(.lr = 0.001));
	sl_step *step = sl_step_compile(net, loss, trainer);
	SL_SCOPE {
		sl_tensor *x, *y, *l = NULL;
		make_batch(c, &x, &y);
		for (int i = 0; i < STEPS; i++) {
			CHECK_OK(sl_wait_all());
			emu_counts_reset();
			emu_kernels_reset();
			SL_AUTOCAST(c->type) l = sl_step_run(step, x, y, NULL);
			CHECK(l);
		}
		if (at_end) at_end(c);
		last = sl_item(sl_mean(l));
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	return last;
}

static void count(const struct course *c)
{
	setenv("SL_CHANNELS_LAST", c->network == resnet18 ? "8" : "32", 1); /* as with all its channels */
	slp_begin((struct sl_config){.gpus = 1, .tf32 = SL_TF32_CONV, .seed = 1});
	double gpu = train(c, sl_gpu(0), check_kernels), cpu = train(c, sl_cpu(-1), NULL);
	double tolerance = c->type == SL_FLOAT32 ? 1e-4 : 3e-2;
	CHECK_SAYING(fabs(gpu - cpu) <= tolerance * fabs(cpu), "%s: loss %.7g, on a CPU %.7g", c->name, gpu, cpu);
	slp_end_well();
}

static void test_lenet(void)
{
	count(&(struct course){"LeNet", lenet, SL_FLOAT32, 28, 23});
}

static void test_resnet18(void)
{
	count(&(struct course){"ResNet-18, bfloat16", resnet18, SL_BFLOAT16, 16, 196});
}

static void test_gpt(void)
{
	count(&(struct course){"GPT, 4 layers", gpt, SL_FLOAT32, -8, 107});
	count(&(struct course){"GPT, 4 layers, bfloat16", gpt, SL_BFLOAT16, -8, 131});
}

static const struct slp_test tests[] = {{"LeNet", test_lenet}, {"ResNet-18", test_resnet18}, {"GPT", test_gpt}, {0}};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("SL_CUDA_GRAPHS", "0", 1);  /* counts are of kernels */
	setenv("SL_GPU_AUTOTUNE", "0", 1); /* the quickest convolution here is not that of a GPU */
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "counts", .tests = tests}, {0}});
}
