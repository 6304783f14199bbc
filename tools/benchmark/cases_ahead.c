/* Cases of run-ahead: the tutorial's network of 2048, 512 and 1 units, trained on 100 batches of 1024 × 512 once with a
 * wait after each batch and once without any.  Each training is a process of its own, so that its memory is its own. */
#include <stdlib.h>
#include <string.h>

#include <starling/elementwise.h>

#include "bench.h"

enum { BATCHES = 100, ROWS = 1024, INPUTS = 512, PARAMS = 6 };

static const sl_shape shapes[PARAMS] = {
        {2, {INPUTS, 2048}}, {1, {2048}}, {2, {2048, 512}}, {1, {512}}, {2, {512, 1}}, {1, {1}},
};

struct outcome {
	double memory;  /* increase of the resident set, at most, bytes */
	double buffers; /* of tensors and pools, at most, bytes */
	double seconds;
};

/* A line of /proc/self/status, in bytes; 0 if it is missing. */
static double status_bytes(const char *name)
{
	FILE *file = fopen("/proc/self/status", "r");
	char line[256];
	double kib = 0;
	size_t n = strlen(name);
	while (file && fgets(line, sizeof line, file))
		if (!strncmp(line, name, n) && line[n] == ':') kib = strtod(line + n + 1, NULL);
	if (file) fclose(file);
	return kib * 1024;
}

static bool make_params(sl_tensor *params[PARAMS])
{
	bool ok = true;
	SL_SCOPE
		for (int i = 0; i < PARAMS; i++) {
			params[i] = sl_retain(sl_normal(shapes[i], 0, 0.01));
			ok = params[i] && sl_attach_grad(params[i]) == SL_OK && ok;
		}
	return ok && sl_wait_all() == SL_OK;
}

static sl_tensor *forward(sl_tensor *x, sl_tensor *const *p)
{
	sl_tensor *h = sl_relu(sl_linear(x, p[0], p[1]));
	h = sl_relu(sl_linear(h, p[2], p[3]));
	return sl_linear(h, p[4], p[5]);
}

static void batch(sl_tensor *const *params)
{
	SL_SCOPE {
		sl_tensor *x = sl_normal(SL_SHAPE(ROWS, INPUTS), 0, 1), *y = sl_ones(SL_SHAPE(ROWS, 1));
		sl_tensor *loss = NULL, *grads[PARAMS];
		SL_RECORD
			loss = sl_l2_loss(forward(x, params), y);
		sl_backward(loss);
		for (int i = 0; i < PARAMS; i++) grads[i] = sl_grad(params[i]);
		sl_sgd_update(params, grads, NULL, PARAMS, .lr = 0.005, .rescale = 1.0 / ROWS);
	}
}

static void train(const void *arg, void *result)
{
	bool wait = *(const bool *)arg;
	struct outcome *o = result;
	struct sl_config config = {.gpus = -1, .seed = 1};
	struct sl_stats stats;
	sl_tensor *params[PARAMS];
	*o = (struct outcome){NAN, NAN, NAN};
	if (sl_init(&config) != SL_OK || !make_params(params)) return;
	double before = status_bytes("VmRSS"), start = bench_now();
	for (int i = 0; i < BATCHES; i++) {
		batch(params);
		if (wait) sl_wait_all();
	}
	if (sl_wait_all() != SL_OK) {
		fprintf(stderr, "bench: %s\n", sl_error_message());
		return;
	}
	o->seconds = bench_now() - start;
	o->memory = status_bytes("VmHWM") - before;
	sl_stats_get(&stats);
	o->buffers = (double)stats.peak_bytes;
	for (int i = 0; i < PARAMS; i++) sl_release(params[i]);
	sl_shutdown();
}

/* The training without waiting, and with. */
static bool both(struct outcome *ahead, struct outcome *waiting)
{
	bool no = false, yes = true;
	return bench_in_child(train, &no, ahead, sizeof *ahead) &&
	       bench_in_child(train, &yes, waiting, sizeof *waiting);
}

double bench_ahead_megabytes;

/* Each is the cost of run-ahead in relation to waiting. */
#define AHEAD(name, field)                                                                                             \
	double bench_ahead_##name##_run(const struct bench_case *c, int64_t times)                                     \
	{                                                                                                              \
		struct outcome ahead, waiting;                                                                         \
		(void)c;                                                                                               \
		(void)times;                                                                                           \
		if (!both(&ahead, &waiting)) return NAN;                                                               \
		bench_ahead_megabytes = 1e-6 * ahead.field;                                                            \
		return ahead.field / waiting.field;                                                                    \
	}
AHEAD(memory, memory)
AHEAD(buffers, buffers)
AHEAD(time, seconds)
