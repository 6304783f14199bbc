/* Calls on an emulated GPU share tasks: how many tasks, with the bits that each call alone gives. */
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "emulated.h"
#include "driver/networks.h"

enum { STEPS = 4, ROWS = 8, SIZE = 28, CHAIN = 640, WARM = 64 };

struct outcome {
	double tasks, ops; /* of a step */
	float losses[STEPS];
};

static double difference(uint64_t now, uint64_t before)
{
	return (double)(now - before);
}

static void begin(int bulk, sl_device device)
{
	slp_begin((struct sl_config){.gpus = 1, .teams = 1, .seed = 1, .bulk = bulk});
	CHECK_OK(sl_device_default(device));
}

/* Steps of LeNet, call by call. */
static void train(sl_block *net, sl_trainer *trainer, struct outcome *o)
{
	static float values[ROWS * SIZE * SIZE];
	struct sl_stats before, after;
	for (int i = 0; i < ROWS * SIZE * SIZE; i++) values[i] = (float)(i * 7 % 11) - 5;
	SL_SCOPE {
		sl_tensor *x = sl_from(values, SL_SHAPE(ROWS, 1, SIZE, SIZE));
		sl_tensor *y = sl_from(((int32_t[ROWS]){0, 1, 2, 3}), SL_SHAPE(ROWS), .dtype = SL_INT32);
		for (int i = 0; i < STEPS; i++)
			SL_SCOPE {
				sl_stats_get(&before);
				sl_tensor *loss;
				SL_RECORD
					loss = sl_mean(sl_softmax_cross_entropy(sl_forward(net, x), y));
				CHECK_OK(sl_backward(loss));
				CHECK_OK(sl_trainer_step(trainer, ROWS));
				CHECK_OK(sl_wait_all());
				sl_stats_get(&after);
				o->losses[i] = (float)sl_item(loss);
			}
	}
	o->tasks = difference(after.segments, before.segments);
	o->ops = difference(after.ops, before.ops);
}

static struct outcome lenet(int bulk, sl_device device)
{
	struct outcome o = {0};
	begin(bulk, device);
	sl_block *net = net_lenet();
	CHECK_OK(sl_initialize(net, .init = sl_normal_init(0.1)));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.02, .momentum = 0.5));
	train(net, trainer, &o);
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
	return o;
}

static void compare(const char *name, sl_device device)
{
	struct outcome each = lenet(1, device), shared = lenet(0, device);
	CHECK_SAYING(!memcmp(each.losses, shared.losses, sizeof each.losses), "%s: loss %.9g instead of %.9g", name,
	             (double)shared.losses[STEPS - 1], (double)each.losses[STEPS - 1]);
	CHECK_SAYING(shared.ops == each.ops && each.tasks >= 20 && shared.tasks <= 4, "%s: %g tasks for %g calls", name,
	             shared.tasks, shared.ops);
	printf("\n    %s: %g calls, %g tasks instead of %g", name, shared.ops, shared.tasks, each.tasks);
}

/* On `auto`, one GPU takes all calls that it has kernels for. */
static void test_lenet(void)
{
	compare("LeNet, gpu:0", sl_gpu(0));
	compare("LeNet, auto", sl_auto());
}

/* Operations on 64 Ki numbers, more bytes than small calls of a CPU have. */
static double chain(int bulk)
{
	struct sl_stats before, after;
	begin(bulk, sl_gpu(0));
	SL_SCOPE {
		sl_tensor *x = sl_retain(sl_zeros(SL_SHAPE(65536)));
		for (int i = 0; i < CHAIN + WARM; i++)
			SL_SCOPE {
				if (i == WARM) CHECK_OK(sl_wait_all());
				if (i == WARM) sl_stats_get(&before);
				sl_tensor *y = sl_retain(sl_add_scalar(x, 1));
				sl_release(x);
				x = y;
			}
		CHECK_OK(sl_wait_all());
		sl_stats_get(&after);
		float *values = calloc(65536, sizeof *values);
		CHECK_OK(sl_read(x, values, 65536 * sizeof *values));
		CHECK(values[0] == CHAIN + WARM && values[65535] == CHAIN + WARM);
		free(values);
		sl_release(x);
	}
	slp_end_well();
	return difference(after.segments, before.segments);
}

static void test_chain(void)
{
	double each = chain(1), shared = chain(0);
	CHECK_SAYING(each == CHAIN && shared <= CHAIN / 15.0, "%g and %g tasks", each, shared);
	printf("\n    %d calls: %g tasks instead of %g", CHAIN, shared, each);
}

/* A large call stays alone: the GPU works on it while the host goes on. */
static void test_large(void)
{
	struct sl_stats before, after;
	begin(0, sl_gpu(0));
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(4 << 20));
		CHECK_OK(sl_wait_all());
		sl_stats_get(&before);
		for (int i = 0; i < 4; i++) x = sl_add_scalar(x, 1);
		CHECK_OK(sl_wait_all());
		sl_stats_get(&after);
	}
	slp_end_well();
	CHECK_SAYING(difference(after.segments, before.segments) == 4, "%g tasks",
	             difference(after.segments, before.segments));
}

static const struct slp_test tests[] = {
        {"LeNet", test_lenet},
        {"chain", test_chain},
        {"large calls", test_large},
        {NULL, NULL},
};

int main(int argc, char **argv)
{
	const struct slp_suite suites[] = {{.name = "gather", .tests = tests, .after = slp_end}, {0}};
	return slp_test_main(argc, argv, suites);
}
