/* What bench-dist measures, in C: training steps of ResNet-18, in one process or in one of several, and the backward pass alone.
 *
 *     bench-dist WIDTH ROWS STEPS step|eager|backward
 *
 * Rank 0 prints a line of JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <starling.h>
#include <starling/dist.h>

#include "models/networks.h"

enum { WARM = 4 };

static sl_block *net;
static sl_trainer *trainer;
static sl_step *program;
static sl_tensor *x, *y;
static int64_t rows;
static double backward; /* seconds of the last one */

static void compiled(void)
{
	sl_step_run(program, x, y, NULL);
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
	sl_param *params[128];
	int n = sl_block_params(net, params, 128);
	size_t bytes = 0;
	for (int i = 0; i < n && i < 128; i++)
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

int main(int argc, char **argv)
{
	if (argc != 5) return 2;
	const char *mode = argv[4];
	rows = atoll(argv[2]);
	net = net_resnet18_of(atoll(argv[1]), false);
	x = sl_uniform(SL_SHAPE(rows, 1, 28, 28), 0, 1);
	y = sl_cast(sl_floor(sl_uniform(SL_SHAPE(rows), 0, 10)), SL_INT32);
	sl_initialize(net, .init = sl_xavier_init());
	trainer = sl_trainer_new(net, sl_sgd(.lr = 0.05));
	program = sl_step_compile(net, sl_softmax_cross_entropy_at, trainer);
	bool back = !strcmp(mode, "backward");
	if (back) sl_hybridize(net);
	measure(back ? parts : !strcmp(mode, "eager") ? eager : compiled, atoi(argv[3]));
	bool ok = sl_error() == SL_OK;
	if (!ok) fprintf(stderr, "bench-dist: %s\n", sl_error_message());
	sl_step_free(program);
	sl_trainer_free(trainer);
	sl_block_free(net);
	sl_release(x);
	sl_release(y);
	sl_shutdown();
	return ok ? 0 : 1;
}
