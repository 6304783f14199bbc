/* Asynchronous computation: queued and finished tasks, and the price of waiting.
 *
 * The experiments of Zhang, Lipton, Li, Smola, "Dive into Deep Learning", section "Asynchronous Computation", in
 * their order and with the lines that they print. */
#include <stdlib.h>
#include <unistd.h>

#include <starling.h>

#include "driver/experiments.h"

struct options {
	struct drv_options common;
	struct drv_experiments experiments;
	int64_t repeat, batches;
};

/* The driver's own options. */
static const struct options *options_of(const struct drv_bench *b)
{
	return b->options;
}

/* ---- asynchrony -------------------------------------------------------------------------------------------------- */

enum { BENCH_ROUNDS = 10, BENCH_SIZE = 1000, DOT_SIZE = 2000 };

static sl_tensor *random_matrix(int64_t n)
{
	return sl_normal(SL_SHAPE(n, n), 0, 1);
}

static void products(bool wait)
{
	for (int i = 0; i < BENCH_ROUNDS; i++) {
		sl_tensor *a = random_matrix(BENCH_SIZE);
		if (wait) sl_wait(a);
		sl_tensor *b = sl_dot(a, a);
		if (wait) sl_wait(b);
	}
}

/* A library that computes at once, as NumPy does, comes back with the result; an asynchronous one with a promise. */
static void benchmark(struct drv_bench *b)
{
	drv_title(b, "10 times a = random(1000, 1000), b = dot(a, a)");
	drv_begin(b);
	SL_SCOPE {
		products(true);
	}
	drv_end(b, "blocking", "waiting after each operation, as NumPy does");
	SL_SCOPE {
		drv_begin(b);
		products(false);
		drv_end(b, "queued", "Starling");
		sl_wait_all();
		drv_end(b, "finished", "Starling, until finished");
	}
}

static void queue(struct drv_bench *b)
{
	drv_title(b, "sum of dot(x, x), x of 2000 x 2000");
	SL_SCOPE {
		sl_tensor *x = sl_uniform(SL_SHAPE(DOT_SIZE, DOT_SIZE), 0, 1);
		sl_wait(x);
		drv_begin(b);
		sl_tensor *y = sl_sum(sl_dot(x, x));
		drv_end(b, "queued", "Workloads are queued");
		drv_print(b->common, "sum = %.6g\n", sl_item(y));
		drv_end(b, "finished", "Workloads are finished");
	}
}

/* ---- barriers and blockers ----------------------------------------------------------------------------------------
 */

static void wait_to_read(sl_tensor *x)
{
	sl_wait(sl_dot(x, x));
}

static void wait_all(sl_tensor *x)
{
	sl_dot(x, x);
	sl_dot(x, x);
	sl_wait_all();
}

static void as_numpy(sl_tensor *x)
{
	sl_tensor *y = sl_dot(x, x);
	size_t bytes = sl_tensor_bytes(y);
	float *values = malloc(bytes);
	if (values) sl_read(y, values, bytes);
	free(values);
}

static void as_scalar(sl_tensor *x)
{
	sl_item(sl_norm(sl_dot(x, x)));
}

static void barriers(struct drv_bench *b)
{
	static const struct {
		const char *key, *text;
		void (*run)(sl_tensor *x);
	} cases[] = {{"wait", "wait_to_read (sl_wait)", wait_to_read},
	             {"wait_all", "waitall (sl_wait_all), two products", wait_all},
	             {"read", "asnumpy (sl_read)", as_numpy},
	             {"item", "asscalar of the norm (sl_item)", as_scalar}};
	drv_title(b, "functions that wait, each with dot(x, x), x of 2000 x 2000");
	SL_SCOPE {
		sl_tensor *x = sl_uniform(SL_SHAPE(DOT_SIZE, DOT_SIZE), 0, 1);
		sl_wait(x);
		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			drv_begin(b);
			SL_SCOPE {
				cases[i].run(x);
			}
			drv_end(b, cases[i].key, cases[i].text);
		}
	}
}

/* ---- 1000 times y = x + 1 -----------------------------------------------------------------------------------------
 */

static void plus_one_times(sl_tensor *x, int64_t times, bool wait)
{
	for (int64_t i = 0; i < times && !drv_interrupted(); i++) {
		SL_SCOPE {
			sl_tensor *y = sl_add_scalar(x, 1);
			if (wait) sl_wait(y);
		}
	}
	sl_wait_all();
}

static void plus_one(struct drv_bench *b)
{
	int64_t n = options_of(b)->repeat;
	drv_title(b, "%lld times y = x + 1, x of 1 x 2", (long long)n);
	SL_SCOPE {
		sl_tensor *x = sl_ones(SL_SHAPE(1, 2));
		plus_one_times(x, n / 10 + 1, false); /* fills pools and caches */
		drv_begin(b);
		plus_one_times(x, n, true);
		drv_end(b, "synchronous", "synchronous");
		drv_begin(b);
		plus_one_times(x, n, false);
		drv_end(b, "asynchronous", "asynchronous");
	}
}

/* ---- the memory that run-ahead takes ------------------------------------------------------------------------------
 */

enum { LAYERS = 3, BATCH = 1024, INPUTS = 512 };
static const int64_t units[LAYERS + 1] = {INPUTS, 2048, 512, 1};

struct network {
	sl_tensor *params[2 * LAYERS], *grads[2 * LAYERS]; /* weight, bias of each layer */
};

static void network_init(struct network *net)
{
	for (int i = 0; i < LAYERS; i++) {
		net->params[2 * i] = sl_uniform(SL_SHAPE(units[i], units[i + 1]), -0.07, 0.07);
		net->params[2 * i + 1] = sl_zeros(SL_SHAPE(units[i + 1]));
	}
	for (int p = 0; p < 2 * LAYERS; p++) {
		sl_attach_grad(net->params[p]);
		net->grads[p] = sl_grad(net->params[p]);
	}
}

static sl_tensor *forward(const struct network *net, sl_tensor *x)
{
	for (int i = 0; i < LAYERS; i++) {
		x = sl_linear(x, net->params[2 * i], net->params[2 * i + 1]);
		if (i + 1 < LAYERS) x = sl_relu(x);
	}
	return x;
}

/* One step of training on a random batch.  With sync, the loss is asked for after the forward pass.  `scale` keeps
 * gradients in float16 from getting too small; the update divides by it. */
static double step(const struct drv_bench *b, struct network *net, bool sync)
{
	double scale = b->precision->dtype == SL_FLOAT16 ? 1024 : 1;
	sl_tensor *x = sl_normal(SL_SHAPE(BATCH, INPUTS), 0, 1), *y = sl_ones(SL_SHAPE(BATCH, 1)), *loss = NULL;
	SL_RECORD {
		loss = sl_l2_loss(forward(net, x), y);
	}
	double value = sync ? sl_item(sl_mean(loss)) : 0;
	sl_backward_heads(&loss, 1, .scale = scale);
	sl_sgd_update(net->params, net->grads, NULL, 2 * LAYERS, .lr = 0.005, .rescale = 1 / (scale * BATCH));
	return value;
}

/* Main memory that the process holds, in MB. */
static double memory(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	if (!f) return 0;
	if (fscanf(f, "%*d %ld", &pages) != 1) pages = 0;
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void report_batch(const struct drv_bench *b, int64_t i)
{
	int64_t half = options_of(b)->batches / 2;
	if (half && (i + 1) % half == 0)
		drv_print(b->common, "batch %lld, time %.6f sec\n", (long long)(i + 1), drv_now() - b->start);
}

/* Asks for all batches, printing as it goes how long that took. */
static void train_batches(struct drv_bench *b, struct network *net, bool sync)
{
	for (int64_t i = 0; i < options_of(b)->batches && !drv_interrupted() && !drv_failed(); i++) {
		SL_SCOPE {
			step(b, net, sync);
		}
		report_batch(b, i);
	}
}

/* Trains; prints the times to request the batches and to get them, and the memory that they took. */
static void train(struct drv_bench *b, struct network *net, bool sync)
{
	struct sl_stats stats;
	json_t *outer = b->results;
	double before = memory();
	b->results = json_object();
	json_object_set_new(outer, sync ? "synchronous" : "asynchronous", b->results);
	sl_stats_reset();
	drv_begin(b);
	train_batches(b, net, sync);
	drv_end(b, "queued", sync ? "queued, with a sync per batch" : "queued, without syncs");
	sl_wait_all();
	drv_end(b, "finished", sync ? "finished, with a sync per batch" : "finished, without syncs");
	sl_stats_get(&stats);
	drv_note(b, "increased_memory_MB", memory() - before);
	drv_note(b, "peak_MB", (double)stats.peak_bytes / 1e6);
	drv_print(b->common, "increased memory: %f MB\npeak of tensors: %f MB\n", memory() - before,
	          (double)stats.peak_bytes / 1e6);
	b->results = outer;
}

static void footprint(struct drv_bench *b)
{
	drv_title(b, "training a 2048-512-1 network on batches of 1024 x 512, with a sync per batch, then without");
	SL_SCOPE {
		struct network net;
		network_init(&net);
		SL_SCOPE {
			step(b, &net, false);
		}
		sl_wait_all();
		train(b, &net, true);
		train(b, &net, false);
	}
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static const struct drv_experiment experiments[] = {
        {"benchmark", "ten products of random matrices: with waits, queued, finished", benchmark},
        {"queue", "dot(2000 x 2000).sum(): queued and finished", queue},
        {"barriers", "functions that wait: sl_wait, sl_wait_all, sl_read, sl_item", barriers},
        {"plus-one", "y = x + 1, with a wait inside and outside the loop", plus_one},
        {"memory", "training with and without a sync per batch: time and memory", footprint},
};
enum { KEY_REPEAT = 0x200, KEY_BATCHES };

static const struct argp_option options[] = {
        {"repeat", KEY_REPEAT, "N", 0, "Number of additions in plus-one (default: 1000)", 1},
        {"batches", KEY_BATCHES, "N", 0, "Number of batches in memory (default: 100)", 1},
        {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT: drv_experiments_init(state, &o->experiments); return 0;
	case KEY_REPEAT: o->repeat = drv_int(state, "--repeat", arg, 1, 1000000000); return 0;
	case KEY_BATCHES: o->batches = drv_int(state, "--batches", arg, 1, 1000000000); return 0;
	case ARGP_KEY_END:
		if (o->common.ndevices > 1) argp_error(state, "--device: name one device only");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .children = drv_experiments_children,
        .doc = "Shows asynchronous execution and the cost of waiting: all experiments, or those named.\v"
               "Exit status: 0 if all went well, 1 after an error, 2 if the command line is "
               "wrong, " DRV_INTERRUPTED_STATUS ".",
};

int main(int argc, char **argv)
{
	struct options o = {
	        .experiments = {"async", experiments, sizeof experiments / sizeof *experiments, &o.common, 0, {0}},
	        .repeat = 1000,
	        .batches = 100};
	drv_parse(&argp, argc, argv, &o);
	return drv_stop(&o.common, drv_start(&o.common) ? drv_run_experiments(&o.experiments, &o) : DRV_ERROR);
}
