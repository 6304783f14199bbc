/* What bench-dist measures, in C: training steps of ResNet-18, in one process or in one of several, and the backward
 * pass alone. gpus: whole steps in which each GPU takes ROWS rows.  WIDTH 0 is GPT-2 of 124 million parameters, in
 * whole steps.
 *
 *     bench-dist WIDTH ROWS STEPS step|gpus|eager|backward
 *
 * Rank 0 prints a line of JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <starling.h>
#include <starling/dist.h>

#include "models/driver/networks.h"

enum { WARM = 4, MOST = 8, WORDS = 50257, TOKENS = 1024 };

static sl_block *net;
static sl_trainer *trainer;
static sl_step *program;
static sl_tensor *x, *y, *xs[MOST], *ys[MOST];
static sl_device gpus[MOST];
static int ngpus;
static int64_t rows;
static double backward; /* seconds of the last one */

static void compiled(void)
{
	if (ngpus) sl_step_run(program, .in = xs, .targets = ys, .shards = ngpus);
	else sl_step_run(program, x, y, NULL);
}

/* A loss a word, or an image */
static sl_tensor *loss_of(const char *at, sl_tensor *scores, sl_tensor *labels)
{
	sl_shape s = sl_tensor_shape(scores);
	if (s.ndim == 3) {
		scores = sl_reshape_at(at, scores, SL_SHAPE(s.dim[0] * s.dim[1], s.dim[2]));
		labels = sl_reshape_at(at, labels, SL_SHAPE(s.dim[0] * s.dim[1]));
	}
	return sl_softmax_cross_entropy_at(at, scores, labels);
}

static void eager(void)
{
	sl_tensor *loss = NULL;
	SL_RECORD
		loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
	sl_backward(loss);
	sl_trainer_step(trainer, rows);
}

/* The network is hybridised: forward and backward are a program each. */
static void parts(void)
{
	sl_tensor *loss = NULL;
	SL_RECORD
		loss = sl_softmax_cross_entropy(sl_forward(net, x), y);
	sl_wait_all();
	double start = sl_time();
	sl_backward(loss);
	sl_wait_all();
	backward = sl_time() - start;
}

static double time_of(void (*step)(void))
{
	double start = sl_time();
	SL_SCOPE
		step();
	sl_wait_all();
	return backward > 0 ? backward : sl_time() - start;
}

static int by_size(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;
	return (d > 0) - (d < 0);
}

static size_t parameter_bytes(void)
{
	sl_param *params[256];
	int n = sl_block_params(net, params, 256);
	size_t bytes = 0;
	for (int i = 0; i < n && i < 256; i++)
		if (!strstr(sl_param_name(params[i]), "running")) bytes += sl_tensor_bytes(sl_param_data(params[i]));
	return bytes;
}

static void measure(void (*step)(void), int steps)
{
	double *seconds = calloc((size_t)steps, sizeof *seconds);
	if (!seconds) return;
	for (int i = 0; i < WARM; i++) time_of(step);
	sl_dist_barrier();
	struct sl_dist_info before = sl_dist_info();
	for (int i = 0; i < steps; i++) seconds[i] = time_of(step);
	struct sl_dist_info after = sl_dist_info();
	qsort(seconds, (size_t)steps, sizeof *seconds, by_size);
	if (sl_dist_rank() == 0)
		printf("{\"best\": %.9f, \"median\": %.9f, \"cpu\": %.9f, \"bytes\": %.1f, \"exchanges\": %.1f, "
		       "\"parameters\": %zu}\n",
		       seconds[0], seconds[steps / 2], (after.cpu_seconds - before.cpu_seconds) / steps,
		       (double)(after.bytes_sent - before.bytes_sent) / steps,
		       (double)(after.exchanges - before.exchanges) / steps, parameter_bytes());
	free(seconds);
}

static void make_batch(bool text)
{
	int64_t n = rows * (ngpus ? ngpus : 1);
	sl_shape images = SL_SHAPE(n, 1, 28, 28), tokens = SL_SHAPE(n, TOKENS);
	SL_SCOPE {
		sl_tensor *in = sl_uniform(text ? tokens : images, 0, 1);
		sl_tensor *target = sl_uniform(text ? tokens : SL_SHAPE(n), 0, text ? WORDS : 10);
		x = sl_retain(text ? sl_cast(sl_floor(sl_mul_scalar(in, WORDS)), SL_INT32) : in);
		y = sl_retain(sl_cast(sl_floor(target), SL_INT32));
		if (ngpus) {
			sl_split_and_load(x, gpus, ngpus, xs);
			sl_split_and_load(y, gpus, ngpus, ys);
		}
		for (int i = 0; i < ngpus; i++) {
			sl_retain(xs[i]);
			sl_retain(ys[i]);
		}
	}
}

static void release_batch(void)
{
	for (int i = 0; i < ngpus; i++) {
		sl_release(xs[i]);
		sl_release(ys[i]);
	}
	sl_release(x);
	sl_release(y);
}

int main(int argc, char **argv)
{
	if (argc != 5) return 2;
	const char *mode = argv[4];
	int64_t width = atoll(argv[1]);
	rows = atoll(argv[2]);
	if (sl_init(NULL) != SL_OK) return fprintf(stderr, "bench-dist: %s\n", sl_error_message()), 1;
	ngpus = strcmp(mode, "gpus") ? 0 : sl_device_count(SL_DEVICE_GPU);
	if (ngpus > MOST) ngpus = MOST;
	for (int i = 0; i < ngpus; i++) gpus[i] = sl_gpu(i);
	struct net_gpt_size gpt2 = {.words = WORDS, .steps = TOKENS, .width = 768, .layers = 12, .heads = 12};
	net = width ? net_resnet18_of(width, false) : net_gpt(gpt2);
	make_batch(!width);
	sl_initialize(net, .init = sl_xavier_init(), .devices = ngpus ? gpus : NULL, .ndevices = ngpus);
	trainer = sl_trainer_new(net, sl_sgd(.lr = 0.05));
	program = sl_step_compile(net, loss_of, trainer);
	bool back = !strcmp(mode, "backward");
	if (back) sl_hybridize(net);
	measure(back ? parts : !strcmp(mode, "eager") ? eager : compiled, atoi(argv[3]));
	bool ok = sl_error() == SL_OK;
	if (!ok) fprintf(stderr, "bench-dist: %s\n", sl_error_message());
	sl_step_free(program);
	sl_trainer_free(trainer);
	sl_block_free(net);
	release_batch();
	sl_shutdown();
	return ok ? 0 : 1;
}
