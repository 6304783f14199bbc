/* Programs on an emulated GPU whose images have channels last: the losses of those in the plain order; every convolution
 * is computed so, or none where cuDNN refuses. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "check.h"
#include "emulated.h"
#include "driver/networks.h"

enum { STEPS = 3, ROWS = 4, SIZE = 16 };

/* A way to train in whole steps, or to infer hybridised. */
struct course {
	const char *name;
	sl_block *(*network)(void);
	enum sl_dtype type;
	int convolutions; /* of a step */
	bool whole;
};

struct result {
	float losses[STEPS];
	struct emu_counts counts; /* of the last step */
};

static sl_block *resnet18(void)
{
	return net_resnet18_of(8, false);
}

/* Poolings of both kinds, a bias, groups and channels that do not suit. */
static sl_block *mixed(void)
{
	return sl_sequential(sl_conv2d_layer(8, .kernel = {3}, .pad = {1, 1}, .activation = SL_RELU),
	                     sl_batch_norm_layer(), sl_max_pool2d_layer(3, .stride = {2}, .pad = {1, 1}),
	                     sl_conv2d_layer(16, .kernel = {3}), sl_activation_layer(SL_TANH), sl_avg_pool2d_layer(2),
	                     sl_conv2d_layer(5, .kernel = {1}), sl_conv2d_layer(16, .kernel = {3}, .pad = {1, 1}),
	                     sl_conv2d_layer(16, .kernel = {3}, .groups = 4), sl_dense(10));
}

static struct emu_counts counts(void)
{
	struct emu_counts c;
	CHECK_OK(sl_wait_all());
	emu_counts_get(&c);
	emu_counts_reset();
	return c;
}

static sl_tensor *loss_of(const struct course *c, sl_block *net, sl_step *step, sl_tensor *x, sl_tensor *y)
{
	sl_tensor *loss = NULL;
	SL_AUTOCAST(c->type)
	loss = step ? sl_step_run(step, x, y, NULL) : sl_softmax_cross_entropy(sl_forward(net, x), y);
	return loss;
}

static void run_steps(const struct course *c, sl_block *net, sl_step *step, struct result *r)
{
	float values[ROWS * SIZE * SIZE];
	for (int i = 0; i < ROWS * SIZE * SIZE; i++) values[i] = (float)sin(i);
	sl_tensor *x = sl_from(values, SL_SHAPE(ROWS, 1, SIZE, SIZE));
	sl_tensor *y = sl_from(((int32_t[]){1, 5, 0, 3}), SL_SHAPE(ROWS), .dtype = SL_INT32);
	for (int i = 0; i < STEPS; i++) {
		sl_tensor *loss = sl_mean(loss_of(c, net, step, x, y));
		CHECK_OK(sl_read(loss, &r->losses[i], sizeof r->losses[i]));
		r->counts = counts();
	}
}

/* cuDNN's answers are kept as long as the engine runs. */
static struct result run(const struct course *c, bool last, enum sl_tf32 tf32)
{
	struct result r;
	setenv("SL_CHANNELS_LAST", last ? "8" : "0", 1);
	slp_begin((struct sl_config){.gpus = 1, .tf32 = tf32, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	sl_block *net = c->network();
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.1)));
	if (!c->whole) CHECK_OK(sl_hybridize(net));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.01));
	sl_step *step = c->whole ? sl_step_compile(net, sl_softmax_cross_entropy_at, trainer) : NULL;
	SL_SCOPE {
		run_steps(c, net, step, &r);
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
	return r;
}

static void check_losses(const struct course *c, const struct result *a, const struct result *b)
{
	float tolerance = c->type == SL_FLOAT32 ? 2e-5f : 1e-2f;
	for (int i = 0; i < STEPS; i++)
		CHECK_SAYING(fabsf(a->losses[i] - b->losses[i]) <= tolerance * fabsf(b->losses[i]),
		             "%s: the loss of step %d is %g, with channels first %g", c->name, i, a->losses[i],
		             b->losses[i]);
}

static void compare(const struct course *c)
{
	struct result first = run(c, false, SL_TF32_CONV), last = run(c, true, SL_TF32_CONV);
	check_losses(c, &last, &first);
	CHECK(first.counts.last[0] == 0);
	CHECK_SAYING(last.counts.last[0] == (uint64_t)c->convolutions, "%s: %d convolutions with channels last, not %d",
	             c->name, (int)last.counts.last[0], c->convolutions);
	printf("\n    %s: %d kernels, %d with channels first", c->name, (int)last.counts.launches[0],
	       (int)first.counts.launches[0]);
	emu_fail(EMU_LAST, -1);
	struct result refused = run(c, true, SL_TF32_CONV);
	emu_fail(EMU_LAST, 0);
	check_losses(c, &refused, &first);
	CHECK(refused.counts.last[0] == 0);
}

/* Convolutions of ResNet-18: 20 forwards, as many gradients of weights, 19 of images. */
static void test_programs(void)
{
	setenv("SL_CUDA_GRAPHS", "0", 1); /* counts are of kernels */
	compare(&(struct course){"ResNet-18, TF32", resnet18, SL_FLOAT32, 59, true});
	compare(&(struct course){"ResNet-18, bfloat16", resnet18, SL_BFLOAT16, 59, true});
	compare(&(struct course){"mixed, TF32", mixed, SL_FLOAT32, 8, true});
	compare(&(struct course){"mixed, float16", mixed, SL_FLOAT16, 8, true});
	compare(&(struct course){"mixed, TF32, inference", mixed, SL_FLOAT32, 3, false});
	compare(&(struct course){"mixed, bfloat16, inference", mixed, SL_BFLOAT16, 3, false});
	unsetenv("SL_CUDA_GRAPHS");
}

/* In full float32 tensor cores have no part; small convolutions do not gain. */
static void test_others(void)
{
	CHECK(run(&(struct course){"mixed", mixed, SL_FLOAT32, 0, true}, true, SL_TF32_NONE).counts.last[0] == 0);
}

static const struct slp_test tests[] = {{"programs", test_programs}, {"full float32", test_others}, {0}};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "channels last", .tests = tests}, {0}});
}
