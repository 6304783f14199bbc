/* Steps on an emulated GPU: the host queues them and waits for nothing in between. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "emulated.h"
#include "gate.h"
#include "driver/networks.h"

enum { STEPS = 5, ROWS = 2, SIZE = 28 };

struct course {
	const char *name;
	sl_block *(*network)(void);
	bool whole, loaded; /* compiled steps; batches come from main memory each time */
	bool loader;        /* by a loader with a thread of its own */
};

static sl_block *lenet(void)
{
	return net_lenet();
}

static sl_block *resnet18(void)
{
	return net_resnet18_of(4, false);
}

/* Waits for what is sent ahead, too. */
static void settle(void)
{
	CHECK_OK(sl_wait_all());
	emu_counts_settle();
}

static void make_batch(sl_tensor **x, sl_tensor **y, bool there)
{
	static float values[ROWS * SIZE * SIZE];
	static int32_t classes[ROWS];
	for (int i = 0; i < ROWS * SIZE * SIZE; i++) values[i] = (float)sin(i);
	for (int i = 0; i < ROWS; i++) classes[i] = i % 3;
	*x = sl_from(values, SL_SHAPE(ROWS, 1, SIZE, SIZE));
	*y = sl_from(classes, SL_SHAPE(ROWS), .dtype = SL_INT32);
	if (!there) return;
	*x = sl_copy_to(*x, sl_gpu(0));
	*y = sl_copy_to(*y, sl_gpu(0));
}

/* Of as many batches as there are steps. */
static sl_dataset *make_samples(void)
{
	enum { SAMPLES = (3 + STEPS) * ROWS };
	static float values[SAMPLES * SIZE * SIZE];
	static int32_t classes[SAMPLES];
	for (int i = 0; i < SAMPLES * SIZE * SIZE; i++) values[i] = (float)sin(i);
	for (int i = 0; i < SAMPLES; i++) classes[i] = i % 3;
	return sl_dataset_arrays(
	        ((struct sl_array){.data = values, .shape = SL_SHAPE(SAMPLES, 1, SIZE, SIZE), .dtype = SL_FLOAT32}),
	        ((struct sl_array){.data = classes, .shape = SL_SHAPE(SAMPLES), .dtype = SL_INT32}));
}

static void next_batch(const struct course *c, sl_loader *loader, sl_tensor **x, sl_tensor **y)
{
	struct sl_batch b = {0};
	if (c->loader) {
		CHECK(sl_loader_next(loader, &b));
		*x = b.x;
		*y = b.y;
	} else if (c->loaded) {
		make_batch(x, y, false);
	}
}

static void make_step(const struct course *c, sl_block *net, sl_trainer *trainer, sl_step *step, sl_tensor *x,
                      sl_tensor *y)
{
	sl_tensor *loss = NULL;
	if (c->whole) {
		loss = sl_step_run(step, x, y, NULL);
		CHECK(loss);
		return;
	}
	SL_RECORD
		loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
	CHECK_OK(sl_backward(loss));
	CHECK_OK(sl_trainer_step(trainer, ROWS));
}

static void check_waits(const struct course *c)
{
	struct emu_counts counts;
	emu_counts_get(&counts);
	for (int i = 0; i < EMU_WAIT_COUNT; i++)
		CHECK_SAYING(counts.waits[i] == 0, "%s: %llu waits in %s in %d steps", c->name,
		             (unsigned long long)counts.waits[i], emu_wait_name((enum emu_wait)i), STEPS);
	CHECK(counts.launches[0] + counts.graph_kernels[0] >= STEPS);
	printf("\n    %s: %g kernels, %g graphs of %g, %g memsets, %g copies in a step", c->name,
	       (double)counts.launches[0] / STEPS, (double)counts.graph_launches[0] / STEPS,
	       (double)counts.graph_kernels[0] / STEPS, (double)counts.sets[0] / STEPS,
	       (double)counts.link[EMU_HOST][0].copies / STEPS);
}

static void count_waits(const struct course *c)
{
	slp_begin((struct sl_config){.gpus = 1, .sched = "dmdas", .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	sl_block *net = c->network();
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.1)));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.02, .momentum = 0.5));
	sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer);
	sl_dataset *samples = c->loader ? make_samples() : NULL;
	sl_loader *loader =
	        c->loader ? sl_loader_new(samples, .batch_size = ROWS, .device = sl_gpu(0), .workers = 1) : NULL;
	SL_SCOPE {
		sl_tensor *x, *y;
		make_batch(&x, &y, !c->loaded);
		for (int i = 0; i < 3 + STEPS; i++) {
			if (i == 3) settle(), emu_counts_reset();
			SL_SCOPE {
				next_batch(c, loader, &x, &y);
				make_step(c, net, trainer, step, x, y);
			}
		}
		settle();
		check_waits(c);
	}
	sl_loader_free(loader);
	sl_dataset_free(samples);
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
}

/* Until so many bytes have been copied to the GPU; false after a long time. */
static bool comes(size_t bytes)
{
	struct emu_counts counts;
	for (int i = 0; i < 300000; i++) {
		emu_counts_get(&counts);
		if (counts.link[EMU_HOST][0].bytes >= bytes) return true;
		usleep(1000);
	}
	return false;
}

/* The batch of a loader is on its way to the GPU while the step that will read it waits for the one before: here for
 * weights that a CPU behind a closed gate computes. */
static void test_ahead(void)
{
	struct sl_batch b;
	slp_begin((struct sl_config){.gpus = 1, .teams = 1, .sched = "dmdas", .seed = 1});
	sl_dataset *samples = make_samples();
	sl_loader *loader = sl_loader_new(samples, .batch_size = ROWS, .device = sl_gpu(0), .workers = 1);
	SL_SCOPE {
		slp_gate_close(0);
		sl_tensor *w = sl_copy_to(sl_full(SL_SHAPE(SIZE), 3, .device = sl_cpu(0)), sl_gpu(0));
		emu_counts_reset();
		CHECK(sl_loader_next(loader, &b));
		sl_tensor *y = sl_mul(b.x, w);
		CHECK_SAYING(comes(ROWS * SIZE * SIZE * sizeof(float)), "the batch waits for the step before it");
		slp_gate_open();
		float first[2] = {0};
		CHECK_OK(sl_read(sl_slice(sl_reshape(y, SL_SHAPE(ROWS * SIZE * SIZE)), 0, 0, 2, 1), first,
		                 sizeof first));
		CHECK(first[0] == 0 && fabs((double)first[1] - 3 * sin(1)) < 1e-6);
	}
	sl_loader_free(loader);
	sl_dataset_free(samples);
	slp_end_well();
}

static void test_whole_steps(void)
{
	count_waits(&(struct course){"LeNet, whole steps", lenet, true, false, false});
	count_waits(&(struct course){"LeNet, whole steps, loaded", lenet, true, true, false});
	count_waits(&(struct course){"LeNet, whole steps, a loader", lenet, true, true, true});
	if (!slp_long()) return;
	count_waits(&(struct course){"ResNet-18, whole steps", resnet18, true, false, false});
	count_waits(&(struct course){"ResNet-18, whole steps, loaded", resnet18, true, true, false});
}

static void test_by_call(void)
{
	count_waits(&(struct course){"LeNet, call by call", lenet, false, true, false});
	count_waits(&(struct course){"LeNet, call by call, a loader", lenet, false, true, true});
	if (slp_long()) count_waits(&(struct course){"ResNet-18, call by call", resnet18, false, true, false});
}

/* An update of all 62 parameters is one kernel. */
static void test_update(void)
{
	slp_begin((struct sl_config){.gpus = 1, .sched = "dmdas", .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	sl_block *net = resnet18();
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.1)));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.02, .momentum = 0.5));
	struct emu_counts counts;
	SL_SCOPE {
		sl_tensor *x, *y, *loss;
		make_batch(&x, &y, true);
		for (int i = 0; i < 2; i++) { /* the first step makes the optimiser's state */
			SL_RECORD
				loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
			CHECK_OK(sl_backward(loss));
			settle();
			emu_counts_reset();
			CHECK_OK(sl_trainer_step(trainer, ROWS));
			settle();
		}
		emu_counts_get(&counts);
		CHECK_SAYING(counts.launches[0] == 1, "an update takes %d kernels", (int)counts.launches[0]);
	}
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
}

static const struct slp_test tests[] = {{"whole steps", test_whole_steps},
                                        {"call by call", test_by_call},
                                        {"an update", test_update},
                                        {"ahead", test_ahead},
                                        {0}};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "no waits", .tests = tests}, {0}});
}
