/* Whole steps with a limit of memory on an emulated GPU: never more than the limit, the bits of a step without one, copies
 * and allocations are printed. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "blocks.h"
#include "emulated.h"
#include "runtime/engine.h"
#include "runtime/memory/place.h"
#include "runtime/task/buffer.h"
#include "runtime/task/storage.h"
#include "tensor/tensor.h"

enum { STEPS = 7, WARM = 3, ROWS = 1024, WIDTH = 128, LAYERS = 24, MIB = 1 << 20 };

struct result {
	double losses[STEPS];
	uint64_t bits; /* of all parameters */
	struct sl_plan_info info;
	size_t peak;
	uint64_t allocations, in, out; /* after the warm steps */
};

static sl_block *network(void)
{
	sl_block *layers[LAYERS + 1];
	for (int i = 0; i < LAYERS; i++) layers[i] = sl_dense(WIDTH, .activation = SL_TANH);
	layers[LAYERS] = sl_dense(10);
	return sl_sequential_at(SL_HERE, layers, LAYERS + 1);
}

static void make_batch(int step, sl_tensor **x, sl_tensor **y)
{
	static float values[ROWS * WIDTH];
	int32_t classes[ROWS];
	for (int i = 0; i < ROWS * WIDTH; i++) values[i] = (float)sin(i + 7 * step);
	for (int i = 0; i < ROWS; i++) classes[i] = (i + step) % 10;
	*x = sl_from(values, SL_SHAPE(ROWS, WIDTH));
	*y = sl_from(classes, SL_SHAPE(ROWS), .dtype = SL_INT32);
}

static void note_counts(struct result *r, int sign)
{
	struct emu_counts c;
	emu_counts_get(&c);
	r->allocations += (uint64_t)sign * c.allocations[0];
	r->in += (uint64_t)sign * c.link[EMU_HOST][0].bytes;
	r->out += (uint64_t)sign * c.link[0][EMU_HOST].bytes;
	r->peak = c.peak[0];
}

static void train_network(size_t limit, struct sl_optimizer optimizer, struct result *r)
{
	sl_block *net = network();
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	sl_trainer *trainer = sl_trainer_new(net, optimizer);
	sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer, .memory = limit);
	for (int i = 0; i < STEPS; i++)
		SL_SCOPE {
			sl_tensor *x, *y, *loss;
			make_batch(i, &x, &y);
			CHECK_OK(sl_wait_all());
			if (i == WARM) note_counts(r, -1);
			loss = sl_step_run(step, x, y);
			CHECK_OK(sl_wait_all());
			if (i == STEPS - 1) note_counts(r, 1);
			r->losses[i] = loss ? sl_item(sl_sum(loss)) : NAN;
		}
	r->info = sl_step_info(step);
	r->bits = slp_net_bits(net);
	CHECK(r->bits != 0);
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

static const char *policy; /* NULL: the default */

static struct result train(size_t limit, struct sl_optimizer optimizer)
{
	struct result r = {.bits = 0};
	struct emu_counts counts;
	slp_begin((struct sl_config){.gpus = 1, .seed = 1, .sched = policy});
	emu_counts_reset();
	CHECK_OK(sl_device_default(sl_gpu(0)));
	train_network(limit, optimizer, &r);
	slp_end_well();
	emu_counts_get(&counts);
	r.peak = counts.peak[0];
	return r;
}

static void compare(const char *name, struct sl_optimizer optimizer, size_t limit, const struct result *ample)
{
	struct result small = train(limit, optimizer);
	for (int i = 0; i < STEPS; i++)
		CHECK_SAYING(ample->losses[i] == small.losses[i], "%s: loss %d is %.9g, not %.9g", name, i,
		             small.losses[i], ample->losses[i]);
	CHECK_SAYING(ample->bits == small.bits, "%s: other parameters", name);
	CHECK_SAYING(small.peak <= limit, "%s: %.2f MiB, the limit is %.2f", name, (double)small.peak / MIB,
	             (double)limit / MIB);
	CHECK_SAYING(!small.allocations, "%s: %llu allocations", name, (unsigned long long)small.allocations);
	CHECK(small.info.limit == limit && small.info.copied_in > 0 && small.info.copied_out > 0);
	double in = (double)small.in / (STEPS - WARM), out = (double)small.out / (STEPS - WARM);
	printf("\n    %s: %.1f MiB of %.1f where %.1f are taken; %.2f MB a step out (%.2f planned), %.2f in (%.2f), %d "
	       "tasks, %.1f allocations",
	       name, (double)small.peak / MIB, (double)limit / MIB, (double)ample->peak / MIB, 1e-6 * out,
	       1e-6 * (double)small.info.copied_out, 1e-6 * in, 1e-6 * (double)small.info.copied_in,
	       small.info.segments, (double)small.allocations / (STEPS - WARM));
}

static void test_adam(void)
{
	struct sl_optimizer adam = sl_adam(.lr = 1e-3);
	struct result ample = train(0, adam);
	CHECK(isfinite(ample.losses[STEPS - 1]) && ample.losses[STEPS - 1] != ample.losses[0] && !ample.info.limit);
	compare("Adam, 12 MiB", adam, (size_t)12 * MIB, &ample);
	compare("Adam, 9 MiB", adam, (size_t)9 * MIB, &ample);
}

static void test_sgd(void)
{
	struct sl_optimizer sgd = sl_sgd(.lr = 0.05, .momentum = 0.9);
	struct result ample = train(0, sgd);
	compare("SGD, 10 MiB", sgd, (size_t)10 * MIB, &ample);
}

/* Tasks in any order that their values allow. */
static void test_schedules(void)
{
	struct sl_optimizer sgd = sl_sgd(.lr = 0.05, .momentum = 0.9);
	struct result ample = train(0, sgd);
	policy = "starling-fuzz";
	for (int seed = 1; seed <= 3; seed++) {
		char number[8], name[48];
		size_t limit = (size_t)(8 + seed) * MIB;
		snprintf(number, sizeof number, "%d", seed);
		snprintf(name, sizeof name, "schedule %d, %d MiB", seed, 8 + seed);
		setenv("SL_FUZZ_SEED", number, 1);
		compare(name, sgd, limit, &ample);
	}
	unsetenv("SL_FUZZ_SEED");
	policy = NULL;
}

/* Nothing is copied if there is enough. */
static void test_enough(void)
{
	struct sl_optimizer sgd = sl_sgd(.lr = 0.05);
	struct result ample = train(0, sgd), limited = train((size_t)200 * MIB, sgd);
	CHECK(ample.bits == limited.bits && limited.info.limit == (size_t)200 * MIB);
	CHECK_SAYING(!limited.info.copied_out, "%zu bytes leave", limited.info.copied_out);
	CHECK(limited.peak <= (size_t)200 * MIB);
}

static void test_too_small(void)
{
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	sl_block *net = network();
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	sl_trainer *trainer = sl_trainer_new(net, sl_adam(.lr = 1e-3));
	sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer, .memory = (size_t)5 * MIB);
	SL_SCOPE {
		sl_tensor *x, *y;
		make_batch(0, &x, &y);
		CHECK_NULL(sl_step_run(step, x, y), SL_ENOMEM, "linear", "MiB at once", "limit of memory is 5.0 MiB");
	}
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
}

/* ---- other programs beside a step --------------------------------------------------------------------------------- */

enum { TURNS = 3 };

struct mixed {
	double losses[2][TURNS], outputs[TURNS]; /* of two networks; of the first one's evaluation */
	uint64_t bits;
	size_t peak;
};

static double evaluate(sl_block *net, int step)
{
	sl_tensor *x, *y;
	make_batch(step + STEPS, &x, &y);
	return sl_item(sl_sum(sl_square(sl_forward(net, x))));
}

/* Steps of two networks in turn, and evaluations of one, all with the same limit. */
static struct mixed train_two(size_t limit)
{
	struct mixed m = {.bits = 0};
	struct emu_counts counts;
	sl_block *net[2];
	sl_trainer *trainer[2];
	sl_step *step[2];
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	for (int k = 0; k < 2; k++) {
		net[k] = network();
		CHECK_OK(sl_initialize(net[k], .init = sl_xavier_init()));
		CHECK_OK(sl_hybridize(net[k], .memory = limit));
		trainer[k] = sl_trainer_new(net[k], sl_sgd(.lr = 0.05, .momentum = 0.9, .clip_norm = 1));
		step[k] = sl_step_compile(net[k], sl_softmax_cross_entropy_at, trainer[k], .memory = limit);
	}
	for (int i = 0; i < TURNS; i++)
		SL_SCOPE {
			for (int k = 0; k < 2; k++) {
				sl_tensor *x, *y, *loss;
				make_batch(i + k, &x, &y);
				loss = sl_step_run(step[k], x, y);
				m.losses[k][i] = loss ? sl_item(sl_sum(loss)) : NAN;
			}
			m.outputs[i] = evaluate(net[0], i);
			if (i == 0) emu_counts_reset(); /* the second network's parameters were made beside programs */
		}
	emu_counts_get(&counts);
	m.peak = counts.peak[0];
	m.bits = slp_net_bits(net[0]) ^ 31 * slp_net_bits(net[1]);
	for (int k = 0; k < 2; k++) {
		sl_step_free(step[k]);
		sl_trainer_free(trainer[k]);
		sl_block_free(net[k]);
	}
	slp_end_well();
	return m;
}

static void test_several(void)
{
	const size_t limit = (size_t)12 * MIB;
	struct mixed ample = train_two(0), small = train_two(limit);
	for (int i = 0; i < TURNS; i++) {
		for (int k = 0; k < 2; k++)
			CHECK_SAYING(ample.losses[k][i] == small.losses[k][i], "network %d: loss %d is %.9g, not %.9g",
			             k, i, small.losses[k][i], ample.losses[k][i]);
		CHECK_SAYING(ample.outputs[i] == small.outputs[i], "evaluation %d: %.9g, not %.9g", i, small.outputs[i],
		             ample.outputs[i]);
	}
	CHECK(isfinite(ample.outputs[0]) && ample.outputs[0] != ample.outputs[TURNS - 1]);
	CHECK(ample.bits == small.bits && ample.peak > limit);
	CHECK_SAYING(small.peak <= limit, "%.2f MiB, the limit is %.2f", (double)small.peak / MIB, (double)limit / MIB);
	printf("\n    %.1f MiB of %.1f where %.1f are taken", (double)small.peak / MIB, (double)limit / MIB,
	       (double)ample.peak / MIB);
}

static uint64_t bytes_in(void)
{
	struct emu_counts c;
	CHECK_OK(sl_wait_all());
	emu_counts_get(&c);
	return c.link[EMU_HOST][0].bytes;
}

/* What rests on the GPU between two steps stays there while the network is evaluated: the step behind that copies no more
 * than the next one. */
static void test_resting(void)
{
	const size_t limit = (size_t)12 * MIB, little = 16 << 10;
	uint64_t in[3] = {0};
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	sl_block *net = network();
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	CHECK_OK(sl_hybridize(net, .memory = limit));
	sl_trainer *trainer = sl_trainer_new(net, sl_sgd(.lr = 0.05, .momentum = 0.9));
	sl_step *step = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer, .memory = limit);
	for (int i = 0; i < TURNS; i++)
		SL_SCOPE {
			evaluate(net, i);
			for (int k = 0; k < 3; k++) {
				sl_tensor *x, *y;
				make_batch(k, &x, &y);
				in[k] = bytes_in();
				CHECK(sl_step_run(step, x, y) != NULL);
				in[k] = bytes_in() - in[k];
			}
		}
	CHECK_SAYING(in[0] <= in[2] + little, "%llu bytes behind an evaluation, %llu behind a step",
	             (unsigned long long)in[0], (unsigned long long)in[2]);
	printf("\n    %.2f MB come behind an evaluation, %.2f behind a step", 1e-6 * (double)in[0],
	       1e-6 * (double)in[2]);
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
	slp_end_well();
}

/* ---- inference of a network that is larger than the GPU ----------------------------------------------------------- */

enum { WIDE = 512, DEEP = 12, FEW = 16 }; /* 12 layers of a MiB */

struct inference {
	double sums[3];
	size_t peak;
	uint64_t in; /* bytes to the GPU in the last two runs */
};

static sl_block *wide_network(void)
{
	sl_block *layers[DEEP];
	for (int i = 0; i < DEEP; i++) layers[i] = sl_dense(WIDE, .activation = SL_TANH);
	return sl_sequential_at(SL_HERE, layers, DEEP);
}

static struct inference infer(size_t limit)
{
	static float values[FEW * WIDE];
	struct inference r = {.peak = 0};
	struct emu_counts c;
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	sl_block *net = wide_network();
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	CHECK_OK(sl_hybridize(net, .memory = limit));
	for (int i = 0; i < 3; i++)
		SL_SCOPE {
			for (int k = 0; k < FEW * WIDE; k++) values[k] = (float)cos(k + 5 * i);
			r.sums[i] = sl_item(sl_sum(sl_square(sl_forward(net, sl_from(values, SL_SHAPE(FEW, WIDE))))));
			if (i == 0) emu_counts_reset(); /* its parameters were made on the GPU */
		}
	emu_counts_get(&c);
	r.in = c.link[EMU_HOST][0].bytes;
	r.peak = c.peak[0];
	sl_block_free(net);
	slp_end_well();
	return r;
}

/* Each run brings most of the parameters, and takes none back. */
static void test_inference(void)
{
	const size_t limit = (size_t)9 * MIB;
	struct inference ample = infer(0), small = infer(limit);
	for (int i = 0; i < 3; i++) CHECK(ample.sums[i] == small.sums[i] && isfinite(small.sums[i]));
	CHECK(ample.sums[0] != ample.sums[1] && ample.peak > (size_t)DEEP * MIB);
	CHECK_SAYING(small.peak <= limit, "%.2f MiB, the limit is %.2f", (double)small.peak / MIB, (double)limit / MIB);
	CHECK_SAYING(small.in >= 2 * (size_t)4 * MIB && small.in <= 2 * (size_t)(DEEP + 1) * MIB,
	             "%.2f MiB in two runs", (double)small.in / MIB);
	printf("\n    %.1f MiB of %.1f where %.1f are taken, %.1f MiB a run to the GPU", (double)small.peak / MIB,
	       (double)limit / MIB, (double)ample.peak / MIB, (double)small.in / 2 / MIB);
}

/* A network with a limit for programs that record nothing cannot be trained call by call. */
static void test_recorded(void)
{
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	sl_block *net = network();
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	CHECK_OK(sl_hybridize(net, .memory = (size_t)9 * MIB));
	SL_SCOPE {
		sl_tensor *x, *y;
		make_batch(0, &x, &y);
		CHECK(sl_forward(net, x) != NULL);
		SL_RECORD
			CHECK_NULL(sl_forward(net, x), SL_EUNSUPPORTED, ".memory", "sl_step_compile");
	}
	sl_block_free(net);
	slp_end_well();
}

/* ---- a value that does not leave --------------------------------------------------------------------------------- */

/* Acquires the first parameter of each layer on the GPU, or gives it back. */
static void hold(sl_block *net, bool held)
{
	int node = (int)starpu_worker_get_memory_node((unsigned)slp_engine.gpu_worker[0]);
	for (int i = 0; i < DEEP; i++) {
		char path[16];
		snprintf(path, sizeof path, "%d.weight", i);
		starpu_data_handle_t handle = slp_data(net, path)->storage->buffer->handle;
		if (held) CHECK(starpu_data_acquire_on_node(handle, node, STARPU_R) == 0);
		else starpu_data_release_on_node(handle, node);
	}
}

/* The program holds parameters on the GPU, which are to leave: an error, and nothing hangs. */
static void test_held(void)
{
	double patience = slp_place_patience;
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	CHECK_OK(sl_device_default(sl_gpu(0)));
	sl_block *net = wide_network();
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	CHECK_OK(sl_hybridize(net, .memory = (size_t)9 * MIB));
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(FEW, WIDE));
		CHECK(isfinite(sl_item(sl_sum(sl_forward(net, x)))));
		hold(net, true);
		slp_place_patience = 0.2;
		CHECK_NULL(sl_forward(net, x), SL_ETIME, "1.0 MiB did not leave", "no task");
		slp_place_patience = patience;
		hold(net, false);
		CHECK_OK(sl_wait_all());
		CHECK(isfinite(sl_item(sl_sum(sl_forward(net, x)))));
	}
	sl_block_free(net);
	slp_end_well();
}

static const struct slp_test tests[] = {
        {"adam", test_adam},
        {"sgd", test_sgd},
        {"schedules", test_schedules},
        {"enough", test_enough},
        {"too small", test_too_small},
        {"several programs", test_several},
        {"what rests", test_resting},
        {"inference", test_inference},
        {"recorded", test_recorded},
        {"held", test_held},
        {0},
};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("STARPU_SUBALLOCATOR", "0", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "limit", .tests = tests}, {0}});
}
