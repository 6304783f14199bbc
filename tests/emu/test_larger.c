/* A network larger than an emulated GPU's memory: it trains with the same bits as with room for all, call by call and
 * as compiled programs, which then become as many tasks as they must; StarPU puts out what is not needed and brings it
 * back. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "blocks.h"
#include "emulated.h"

enum {
	STEPS = 4,
	ROWS = 64,
	WIDTH = 256,
	LAYERS = 24,
	LIMIT = 8,
	CUBLAS = 4 /* MiB; the second is what Starling gives cuBLAS */
};

struct course {
	const char *name;
	bool hybrid, step;
	struct sl_optimizer optimizer;
	double tolerance; /* of losses; 0: the same bits */
};

struct result {
	double losses[STEPS];
	uint64_t bits; /* of all parameters */
	int units;     /* of the step's program */
	size_t peak;
	struct emu_link in, out;
};

static void make_batch(int step, sl_tensor **x, sl_tensor **y)
{
	float values[ROWS * WIDTH];
	int32_t classes[ROWS];
	for (int i = 0; i < ROWS * WIDTH; i++) values[i] = (float)sin(i + 7 * step);
	for (int i = 0; i < ROWS; i++) classes[i] = (i + step) % 10;
	*x = sl_from(values, SL_SHAPE(ROWS, WIDTH));
	*y = sl_from(classes, SL_SHAPE(ROWS), .dtype = SL_INT32);
}

static sl_block *network(void)
{
	sl_block *layers[LAYERS + 1];
	for (int i = 0; i < LAYERS; i++) layers[i] = sl_dense(WIDTH, .activation = SL_TANH);
	layers[LAYERS] = sl_dense(10);
	return sl_sequential_at(SL_HERE, layers, LAYERS + 1);
}

static sl_tensor *make_step(sl_block *net, sl_trainer *trainer, sl_step *step, sl_tensor *x, sl_tensor *y)
{
	if (step) return sl_step_run(step, x, y, NULL);
	sl_tensor *loss = NULL;
	SL_RECORD
		loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
	CHECK_OK(sl_backward(loss));
	CHECK_OK(sl_trainer_step(trainer, ROWS));
	return loss;
}

static void train_network(const struct course *c, struct result *r)
{
	sl_block *net = network();
	CHECK_OK(sl_initialize(net, .init = sl_xavier_init()));
	sl_trainer *trainer = sl_trainer_new(net, c->optimizer);
	sl_step *step = c->step ? sl_step_compile(net, sl_softmax_cross_entropy_at, trainer) : NULL;
	if (c->hybrid) sl_hybridize(net);
	for (int i = 0; i < STEPS; i++)
		SL_SCOPE {
			sl_tensor *x, *y;
			make_batch(i, &x, &y);
			sl_tensor *loss = make_step(net, trainer, step, x, y);
			r->losses[i] = loss ? sl_item(sl_sum(loss)) : NAN;
		}
	r->units = sl_step_info(step).segments;
	r->bits = slp_net_bits(net);
	CHECK(r->bits != 0);
	sl_step_free(step);
	sl_trainer_free(trainer);
	sl_block_free(net);
}

/* limit: MiB that StarPU may use on the GPU; 0: all. */
static struct result train(const struct course *c, int limit)
{
	struct result r = {.bits = 0};
	struct emu_counts counts;
	char text[16];
	snprintf(text, sizeof text, "%d", limit);
	if (limit) setenv("STARPU_LIMIT_CUDA_MEM", text, 1);
	slp_begin((struct sl_config){.gpus = 1, .seed = 1});
	unsetenv("STARPU_LIMIT_CUDA_MEM");
	emu_counts_reset();
	CHECK_OK(sl_device_default(sl_gpu(0)));
	train_network(c, &r);
	slp_end_well();
	emu_counts_get(&counts);
	r.peak = counts.peak[0];
	r.in = counts.link[EMU_HOST][0];
	r.out = counts.link[0][EMU_HOST];
	return r;
}

static void compare(const struct course *c)
{
	struct result ample = train(c, 0), small = train(c, LIMIT);
	for (int i = 0; i < STEPS; i++)
		CHECK_SAYING(fabs(ample.losses[i] - small.losses[i]) <= c->tolerance * fabs(ample.losses[i]),
		             "%s: loss %d is %.9g, not %.9g", c->name, i, small.losses[i], ample.losses[i]);
	CHECK(isfinite(small.losses[STEPS - 1]) && small.losses[STEPS - 1] != small.losses[0]);
	CHECK_SAYING(c->tolerance > 0 || ample.bits == small.bits, "%s: other parameters", c->name);
	CHECK_SAYING(ample.peak > (size_t)2 * LIMIT << 20, "%s: takes only %.1f MiB", c->name,
	             (double)ample.peak / 1048576);
	CHECK_SAYING(small.peak <= (size_t)(LIMIT + CUBLAS + 1) << 20, "%s: took %.1f MiB", c->name,
	             (double)small.peak / 1048576);
	CHECK(small.out.bytes > ample.out.bytes && small.in.bytes > ample.in.bytes);
	if (c->step) CHECK_SAYING(ample.units == 1 && small.units > 1, "%d and %d tasks", ample.units, small.units);
	printf("\n    %s: %.1f MiB where %.1f are taken; %d copies out (%.1f MB), %d in (%.1f MB); %d and %d without "
	       "the limit",
	       c->name, (double)small.peak / 1048576, (double)ample.peak / 1048576, (int)small.out.copies,
	       1e-6 * (double)small.out.bytes, (int)small.in.copies, 1e-6 * (double)small.in.bytes,
	       (int)ample.out.copies, (int)ample.in.copies);
	if (c->step) printf("; %d tasks a step", small.units);
}

static void test_calls(void)
{
	compare(&(struct course){.name = "call by call, Adam", .optimizer = sl_adam(.lr = 1e-3)});
}

static void test_hybrid(void)
{
	compare(&(struct course){
	        .name = "hybrid, SGD", .hybrid = true, .optimizer = sl_sgd(.lr = 0.05, .momentum = 0.9)});
}

static void test_step(void)
{
	compare(&(struct course){.name = "whole steps, Adam", .step = true, .optimizer = sl_adam(.lr = 1e-3)});
}

/* The norm of all gradients does not need all that an update reads. */
static void test_clipped(void)
{
	compare(&(struct course){.name = "whole steps, Adam, clipped",
	                         .step = true,
	                         .optimizer = sl_adam(.lr = 1e-3, .clip_norm = 0.1),
	                         .tolerance = 1e-5});
}

static const struct slp_test tests[] = {
        {"calls", test_calls}, {"hybrid", test_hybrid}, {"step", test_step}, {"clipped", test_clipped}, {0},
};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "1", 1);
	setenv("STARPU_SUBALLOCATOR", "0", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "larger", .tests = tests}, {0}});
}
