/* ResNet-18, narrow and on small images, trained in shards on emulated GPUs: what travels, counted; and the same losses
 * on 1, 2 and 4 of them. */
#include <CUnit/CUnit.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <starling.h>

#include "check.h"
#include "driver/networks.h"
#include "emulated.h"
#include "nn/nn.h"
#include "runtime/task/buffer.h"
#include "train/train.h"

enum { MOST = 4, STEPS = 3, MAX_PARAMS = 128, WIDTH = 4, ROWS = 8, SIZE = 16 };
enum how { BY_HAND, HYBRID, WHOLE, HOW_COUNT };
static const char *const how_names[] = {"by hand", "hybrid", "whole steps"};

/* ---- training ---------------------------------------------------------------------------------------------------- */

struct course {
	enum how how;
	int gpus, shards;
	bool cpu;      /* there is a CPU device, too ... */
	bool takes_it; /* ... which computes the last shard */
	const char *sched;
};

struct training {
	const struct course *c;
	sl_block *net;
	sl_trainer *trainer;
	sl_step *step;
	sl_device where[MOST];
};

static void make_step(struct training *t, sl_tensor *x, sl_tensor *y, sl_tensor **losses)
{
	int n = t->c->shards;
	sl_tensor *xs[MOST], *ys[MOST];
	CHECK_OK(sl_split_and_load(x, t->where, n, xs));
	CHECK_OK(sl_split_and_load(y, t->where, n, ys));
	if (t->c->how == WHOLE) {
		CHECK(sl_step_run(t->step, .in = xs, .targets = ys, .losses = losses, .shards = n) != NULL);
		return;
	}
	SL_RECORD
		for (int i = 0; i < n; i++) losses[i] = sl_softmax_cross_entropy(sl_forward(t->net, xs[i]), ys[i]);
	CHECK_OK(sl_backward_heads_at(SL_HERE, losses, n, (struct sl_backward_opts){0}));
	CHECK_OK(sl_trainer_step(t->trainer, ROWS));
}

static void start_engine(const struct course *c)
{
	setenv("STARPU_NCPU", c->cpu ? "1" : "0", 1);
	slp_begin((struct sl_config){.gpus = c->gpus ? c->gpus : -1, .sched = c->sched, .seed = 1});
	CHECK(sl_device_count(SL_DEVICE_GPU) == c->gpus && sl_device_count(SL_DEVICE_CPU) == c->cpu);
}

/* The same weights, whichever device would have drawn them. */
static void set_weights(sl_block *net)
{
	sl_param *params[MAX_PARAMS];
	int n = sl_block_params(net, params, MAX_PARAMS);
	for (int i = 0; i < n; i++) {
		sl_shape shape = sl_tensor_shape(sl_param_data(params[i]));
		int64_t size = sl_shape_size(shape);
		float *values = malloc((size_t)size * sizeof *values);
		for (int64_t k = 0; k < size; k++) values[k] = 0.1f * (float)sin(1 + i + k * k % 1009);
		if (shape.ndim > 1) CHECK_OK(sl_param_set(params[i], sl_from(values, shape)));
		free(values);
	}
}

static void begin(struct training *t, const struct course *c)
{
	start_engine(c);
	*t = (struct training){.c = c, .net = net_resnet18_of(WIDTH, false)};
	sl_device devices[MOST + 1];
	int n = 0;
	while (n < c->gpus) devices[n] = sl_gpu(n), n++;
	for (int i = 0; i < c->shards; i++) t->where[i] = c->gpus ? sl_gpu(i * c->gpus / c->shards) : sl_cpu(0);
	if (c->takes_it || !c->gpus) t->where[c->shards - 1] = devices[n++] = sl_cpu(0);
	CHECK_OK(sl_initialize(t->net, .init = sl_normal_init(0.1), .devices = devices, .ndevices = n));
	t->trainer = sl_trainer_new(t->net, sl_sgd(.lr = 0.02, .momentum = 0.5));
	if (c->how == HYBRID) sl_hybridize(t->net);
	t->step = sl_step_compile(t->net, sl_softmax_cross_entropy_at, t->trainer);
	SL_SCOPE {
		sl_forward(t->net, sl_zeros(SL_SHAPE(1, 1, SIZE, SIZE), .device = devices[0])); /* shapes */
		set_weights(t->net);
	}
}

static void end(struct training *t)
{
	sl_step_free(t->step);
	sl_trainer_free(t->trainer);
	sl_block_free(t->net);
	slp_end_well();
}

/* A batch that no device has yet. */
static void make_batch(sl_tensor **x, sl_tensor **y)
{
	static float values[ROWS * SIZE * SIZE];
	static int32_t classes[ROWS];
	for (int i = 0; i < ROWS * SIZE * SIZE; i++) values[i] = (float)sin(i * i);
	for (int i = 0; i < ROWS; i++) classes[i] = i % 3;
	*x = sl_from(values, SL_SHAPE(ROWS, 1, SIZE, SIZE));
	*y = sl_from(classes, SL_SHAPE(ROWS), .dtype = SL_INT32);
}

/* ---- transfers --------------------------------------------------------------------------------------------------- */

static void name_of(const struct course *c, char name[128])
{
	snprintf(name, 128, "%s, %d shards on %d GPUs, %s, %s", how_names[c->how], c->shards, c->gpus, c->sched,
	         c->cpu ? "with a CPU" : "without CPUs");
}

/* Copies between GPUs of what is as large as a parameter: by parameter, a gradient from each device but the owner, and
 * the new values to each.  Parameters of one size are counted together. */
static void check_sizes(const struct course *c, const size_t *bytes, int n)
{
	char name[128];
	name_of(c, name);
	for (int i = 0; i < n; i++) {
		int copies = 0, same = 0, before = 0;
		while (bytes[before] != bytes[i]) before++;
		if (before < i) continue;
		for (int from = 0; from < c->gpus; from++)
			for (int to = 0; to < c->gpus; to++)
				if (from != to) copies += (int)emu_copies(from, to, bytes[i]);
		for (int k = 0; k < n; k++) same += bytes[k] == bytes[i];
		int most = STEPS * 2 * (c->gpus - 1) * same;
		CHECK_SAYING(copies <= most, "%s: %d copies of %zu bytes in %d steps, not %d", name, copies, bytes[i],
		             STEPS, most);
	}
}

/* What arrives at a device: new values of what others own, gradients of what it owns; from main memory, its rows. */
static void check_device(const struct course *c, int device, int owned, int n)
{
	char name[128];
	struct emu_counts counts;
	name_of(c, name);
	emu_counts_get(&counts);
	uint64_t arrived = 0;
	for (int from = 0; from < c->gpus; from++)
		if (from != device) arrived += counts.link[from][device].copies;
	uint64_t most = (uint64_t)(STEPS * (n - owned + (c->gpus - 1) * owned));
	CHECK_SAYING(arrived <= most, "%s: gpu:%d got %d times from others in %d steps, not %d", name, device,
	             (int)arrived, STEPS, (int)most);
	int rows = STEPS * 2 * c->shards / c->gpus, loaded = (int)counts.link[EMU_HOST][device].copies;
	CHECK_SAYING(loaded <= rows, "%s: gpu:%d was loaded %d times, not %d", name, device, loaded, rows);
	CHECK_SAYING(counts.link[device][EMU_HOST].copies == 0, "%s: gpu:%d sent to main memory", name, device);
}

/* In all, no more than every parameter's gradient and value once; parameters may travel in groups, whose memory is up
 * to a quarter larger. */
static void check_all(const struct course *c, const size_t *bytes, int n)
{
	char name[128];
	struct emu_counts counts;
	uint64_t copies = 0, sent = 0;
	double all = 0;
	name_of(c, name);
	emu_counts_get(&counts);
	for (int from = 0; from < c->gpus; from++)
		for (int to = 0; to < c->gpus; to++)
			if (from != to) copies += counts.link[from][to].copies, sent += counts.link[from][to].bytes;
	for (int i = 0; i < n; i++) all += (double)bytes[i];
	double most = 1.25 * STEPS * 2 * (c->gpus - 1) * all;
	CHECK_SAYING((double)sent <= most, "%s: %.0f bytes between GPUs in %d steps, not %.0f", name, (double)sent,
	             STEPS, most);
	printf("\n    %s: %d parameters of %.0f bytes, %g copies of %.0f bytes a step between GPUs", name, n, all,
	       (double)copies / STEPS, (double)sent / STEPS);
}

static void check_transfers(struct training *t)
{
	sl_param *params[MAX_PARAMS];
	size_t bytes[MAX_PARAMS];
	const sl_device *owners = slp_trainer_owners(t->trainer);
	int all = sl_block_params(t->net, params, MAX_PARAMS), n = 0, owned[MOST] = {0};
	for (int i = 0; i < all; i++) {
		if (params[i]->opts.no_grad) continue;
		CHECK(owners[n].kind == SL_DEVICE_GPU);
		owned[owners[n].index]++;
		bytes[n++] = slp_buffer_class_bytes(sl_tensor_bytes(sl_param_data(params[i])));
	}
	check_sizes(t->c, bytes, n);
	check_all(t->c, bytes, n);
	for (int i = 0; i < t->c->gpus; i++) check_device(t->c, i, owned[i], n);
}

/* Waits for what is sent ahead, too: new values, which no task waits for. */
static void settle(void)
{
	CHECK_OK(sl_wait_all());
	emu_counts_settle();
}

static void count_transfers(const struct course *c)
{
	struct training t;
	sl_tensor *x, *y, *losses[MOST];
	begin(&t, c);
	SL_SCOPE {
		make_batch(&x, &y);
		make_step(&t, x, y, losses); /* values and states come where they are needed */
		settle();
		emu_counts_reset();
		for (int i = 0; i < STEPS; i++)
			SL_SCOPE
				make_step(&t, x, y, losses);
		settle();
		check_transfers(&t);
	}
	end(&t);
}

static void test_transfers(void)
{
	static const char *const policies[] = {"dmdas", "dmda", "lws", "eager"};
	for (int i = 0; i < 4; i++) count_transfers(&(struct course){WHOLE, 2, 4, true, false, policies[i]});
	count_transfers(&(struct course){BY_HAND, 2, 2, true, false, "dmdas"});
	count_transfers(&(struct course){HYBRID, 2, 2, true, false, "lws"});
	count_transfers(&(struct course){WHOLE, 4, 4, true, false, "dmdas"});
	count_transfers(&(struct course){BY_HAND, 4, 4, true, false, "lws"});
}

/* ---- losses ------------------------------------------------------------------------------------------------------ */

static double sum_of(sl_tensor **losses, int n)
{
	double sum = 0;
	for (int i = 0; i < n; i++) sum += sl_item(sl_sum(sl_cast(losses[i], SL_FLOAT64)));
	return sum;
}

/* The losses of each step, and behind them the sum of all parameters' squares. */
static void train(const struct course *c, double *curve)
{
	struct training t;
	sl_tensor *x, *y, *losses[MOST];
	sl_param *params[MAX_PARAMS];
	begin(&t, c);
	SL_SCOPE {
		make_batch(&x, &y);
		for (int i = 0; i < STEPS; i++)
			SL_SCOPE {
				make_step(&t, x, y, losses);
				curve[i] = sum_of(losses, c->shards);
			}
		curve[STEPS] = 0;
		for (int i = 0, n = sl_block_params(t.net, params, MAX_PARAMS); i < n; i++)
			if (!params[i]->opts.no_grad)
				curve[STEPS] += sl_item(sl_sum(sl_square(sl_param_data(params[i]))));
	}
	end(&t);
}

static void compare(const struct course *c, const double *expected, double tolerance)
{
	char name[128];
	double curve[STEPS + 1];
	name_of(c, name);
	train(c, curve);
	for (int i = 0; i <= STEPS; i++)
		CHECK_SAYING(fabs(curve[i] - expected[i]) <= tolerance * fabs(expected[i]),
		             "%s: figure %d is %.9g, not %.9g", name, i, curve[i], expected[i]);
}

/* However many GPUs share the shards: the same bits, as the sums are ordered by shards; to rounding where a CPU takes
 * part, or where the sums are ordered by devices. */
static void test_losses(void)
{
	enum { SHARDS = 4 };
	double one[STEPS + 1];
	train(&(struct course){WHOLE, 1, SHARDS, false, false, "lws"}, one);
	CHECK(one[STEPS - 1] < 0.9 * one[0]); /* it learns */
	compare(&(struct course){WHOLE, 2, SHARDS, true, false, "dmdas"}, one, 0);
	compare(&(struct course){WHOLE, 2, SHARDS, false, false, "dmda"}, one, 0);
	compare(&(struct course){WHOLE, 4, SHARDS, false, false, "eager"}, one, 0);
	compare(&(struct course){WHOLE, 4, SHARDS, true, false, "lws"}, one, 0);
	compare(&(struct course){HYBRID, 4, SHARDS, true, false, "dmda"}, one, 1e-4);
	compare(&(struct course){BY_HAND, 2, SHARDS, false, false, "dmdas"}, one, 1e-4);
	compare(&(struct course){WHOLE, 2, SHARDS, true, true, "dmdas"}, one, 1e-4);
	compare(&(struct course){WHOLE, 0, SHARDS, true, true, "lws"}, one, 1e-4);
}

static const struct slp_test tests[] = {{"transfers", test_transfers}, {"losses", test_losses}, {0}};

int main(int argc, char **argv)
{
	setenv("SL_EMU_DEVICES", "4", 1);
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "ResNet-18", .tests = tests}, {0}});
}
