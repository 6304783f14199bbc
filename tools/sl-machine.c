/* sl-machine: measures this machine for sl-simulate: rates of products, convolutions and memory, times of calls and
 * tasks, speeds of links. */
#include <argp.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <starpu.h>

#include "../models/driver/common.h"
#include "benchmark/bench.h"

double bench_now(void)
{
	return sl_time();
}

/* Cores that this process may use. */
int bench_cores(void)
{
	cpu_set_t may;
	return sched_getaffinity(0, sizeof may, &may) ? 1 : CPU_COUNT(&may);
}

/* ---- measuring --------------------------------------------------------------------------------------------------- */

enum { N = 32, C = 32, SIZE = 28, KERNEL = 3, MATRIX = 1024 };
static const double conv_flops = 2.0 * N * C * SIZE * SIZE * C * KERNEL * KERNEL;

/* The operation timed on a device; x and y are its operands. */
struct work {
	const char *key; /* in the description, behind cpu. or gpu. */
	double amount;   /* in units of the rate; 0: the value is the price of a repetition */
	double scale;    /* of the value */
	sl_shape x, y;
	bool grad_x, grad_y; /* time the gradients of these instead */
	sl_tensor *(*call)(sl_tensor *x, sl_tensor *y);
};

static sl_tensor *conv(sl_tensor *x, sl_tensor *y)
{
	return sl_conv2d(x, y, NULL, .pad = {1, 1});
}

static sl_tensor *product(sl_tensor *x, sl_tensor *y)
{
	return sl_dot(x, y);
}

static sl_tensor *sum(sl_tensor *x, sl_tensor *y)
{
	return sl_add(x, y);
}

/* Calls that depend on each other and share tasks. */
enum { CHAIN = 320 };
static sl_tensor *chain(sl_tensor *x, sl_tensor *y)
{
	for (int i = 0; i < CHAIN; i++) x = sl_add(x, y);
	return x;
}

#define CONV .x = {4, {N, C, SIZE, SIZE}}, .y = {4, {C, C, KERNEL, KERNEL}}, .call = conv
static const struct work works[] = {
        {"gflops",
         2.0 * MATRIX *MATRIX *MATRIX,
         1e-9,
         {2, {MATRIX, MATRIX}},
         {2, {MATRIX, MATRIX}},
         false,
         false,
         product},
        {"gflops.conv2d", conv_flops, 1e-9, CONV},
        {"gflops.conv2d_grad_data", conv_flops, 1e-9, .grad_x = true, CONV},
        {"gflops.conv2d_grad_weights", conv_flops, 1e-9, .grad_y = true, CONV},
        {"gbytes", 3.0 * 4 * 16e6, 1e-9, {1, {16000000}}, {1, {16000000}}, false, false, sum},
        {"call_us", 0, 1e6 / CHAIN, {1, {64}}, {1, {64}}, false, false, chain},
};
enum { WORKS = sizeof works / sizeof *works };

/* Seconds from the call, or from going back, until its result is there. */
static double once(const struct work *w, sl_tensor *x, sl_tensor *y)
{
	double seconds = NAN;
	SL_SCOPE {
		sl_tensor *result = NULL;
		double start = sl_time();
		if (w->grad_x || w->grad_y) {
			SL_RECORD {
				result = w->call(x, y);
			}
			sl_wait(result);
			start = sl_time();
			sl_backward(result);
			sl_wait(sl_grad(w->grad_x ? x : y));
		} else {
			sl_wait(w->call(x, y));
		}
		seconds = sl_time() - start;
	}
	return seconds;
}

/* The value for the description: of the fastest of several times, as other programs only make it slower. */
static double measure(const struct work *w, sl_device device)
{
	double best = INFINITY;
	SL_SCOPE {
		sl_tensor *x = sl_uniform(w->x, -1, 1, .device = device),
		          *y = sl_uniform(w->y, -1, 1, .device = device);
		if (w->grad_x) sl_attach_grad(x);
		if (w->grad_y) sl_attach_grad(y);
		double begin = sl_time();
		for (int i = 0; i < 8 || sl_time() < begin + 0.5; i++) best = fmin(best, once(w, x, y));
	}
	return w->scale * (w->amount ? w->amount / best : best);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Rates of CPUs are for one core, but memory's is for all. */
static void print_device(FILE *out, const char *kind, sl_device device, int cores)
{
	for (int i = 0; i < WORKS; i++) {
		bool shared = strncmp(works[i].key, "gflops", 6) != 0;
		fprintf(out, "%s.%s %.4g\n", kind, works[i].key, measure(&works[i], device) / (shared ? 1 : cores));
	}
	fprintf(out, "%s.task_us %.3g\n", kind, 1e6 * bench_task_price());
}

static void print_links(FILE *out, int gpus)
{
	unsigned node = starpu_worker_get_memory_node((unsigned)starpu_worker_get_by_type(STARPU_CUDA_WORKER, 0));
	fprintf(out, "gpu.memory_gib %.4g\n", (double)starpu_memory_get_total(node) / (1 << 30));
	fprintf(out, "link.gbytes %.4g\n", 1e-3 * starpu_transfer_bandwidth(STARPU_MAIN_RAM, node));
	fprintf(out, "link.latency_us %.4g\n", starpu_transfer_latency(STARPU_MAIN_RAM, node));
	if (gpus < 2) return;
	unsigned other = starpu_worker_get_memory_node((unsigned)starpu_worker_get_by_type(STARPU_CUDA_WORKER, 1));
	fprintf(out, "peer.gbytes %.4g\n", 1e-3 * starpu_transfer_bandwidth(node, other));
	fprintf(out, "peer.latency_us %.4g\n", starpu_transfer_latency(node, other));
}

/* Seconds of the calling thread for a call; its results are waited for afterwards. */
static double issue_seconds(int64_t size)
{
	double best = INFINITY;
	SL_SCOPE {
		sl_tensor *x = sl_zeros(SL_SHAPE(size)), *y = sl_zeros(SL_SHAPE(size));
		for (int i = 0; i < 8; i++) {
			sl_wait_all();
			double start = sl_time();
			SL_SCOPE {
				chain(x, y);
				best = fmin(best, (sl_time() - start) / CHAIN);
			}
		}
	}
	return best;
}

/* Small calls share tasks, each of the others is one. */
static void print_host(FILE *out)
{
	enum { SMALL = 64, LARGE = 20000 };
	double call = issue_seconds(SMALL);
	fprintf(out, "host.call_us %.3g\nhost.task_us %.3g\n", 1e6 * call, 1e6 * fmax(0, issue_seconds(LARGE) - call));
}

static void describe(FILE *out, int cores, double busy, const char *models)
{
	int gpus = sl_device_count(SL_DEVICE_GPU);
	fprintf(out, "# Measured by sl-machine; others used %.0f %% of the CPUs\ncpu.cores %d\n", busy, cores);
	print_device(out, "cpu", sl_cpu(0), cores);
	print_host(out);
	fprintf(out, "gpu.count %d\n", gpus);
	if (gpus) {
		print_device(out, "gpu", sl_gpu(0), 1);
		print_links(out, gpus);
	}
	if (models) fprintf(out, "models %s\n", models);
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

enum { MOST_BUSY = 20 }; /* % of the CPUs, that may be in use */

/* Time of all CPUs since the machine started, and the part of it in which they had nothing to do. */
static bool cpu_time(double *all, double *idle)
{
	double t[8] = {0};
	FILE *f = fopen("/proc/stat", "r");
	int n = f ? fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", t, t + 1, t + 2, t + 3, t + 4, t + 5, t + 6, t + 7)
	          : 0;
	if (f) fclose(f);
	*all = *idle = 0;
	for (int i = 0; i < n; i++) *all += t[i];
	*idle = t[3] + t[4]; /* including waits for disks */
	return n == 8;
}

/* The share of the CPUs that others use, in %, or that a hypervisor gives to other guests; 0 if unknown. */
static double used_by_others(void)
{
	double all[2], idle[2];
	if (!cpu_time(&all[0], &idle[0])) return 0;
	nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
	if (!cpu_time(&all[1], &idle[1]) || all[1] <= all[0]) return 0;
	return 100 * (1 - (idle[1] - idle[0]) / (all[1] - all[0]));
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

struct options {
	const char *output, *models;
	bool force;
	double busy; /* before it measures */
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	if (key == 'o') o->output = arg;
	else if (key == 'm') o->models = arg;
	else if (key == 'f') o->force = true;
	else return ARGP_ERR_UNKNOWN;
	return 0;
}

static const struct argp_option options[] = {
        {"output", 'o', "FILE", 0, "Write to FILE instead of standard output", 0},
        {"force", 'f', NULL, 0, "Measure even though other programs use the machine", 0},
        {"models", 'm', "DIR", 0,
         "Refer to times that StarPU has recorded in DIR (a STARPU_HOME): they replace estimates", 0},
        {0},
};

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .doc = "Measures this machine and writes its description, for sl-simulate --machine FILE.\v"
               "Other programs must not use the machine meanwhile: if they do, sl-machine refuses to measure.  Exit "
               "status: "
               "0 if all went well, 1 after an error, "
               "2 if the command line is wrong.\n\nExample:\n  sl-machine --output here && sl-simulate --machine "
               "./here lenet "
               "--epochs 1",
};

static bool write_description(const struct options *o)
{
	sl_file *file = o->output ? sl_file_begin(o->output) : NULL;
	if (o->output && !file) return false;
	describe(file ? sl_file_stream(file) : stdout, bench_cores(), o->busy, o->models);
	if (file) return sl_file_commit(file) == SL_OK;
	return !ferror(stdout) && fflush(stdout) == 0;
}

/* Starts the engine, if there is sense in measuring. */
static bool ready(struct options *o)
{
	if (sl_is_simulated()) {
		fputs("sl-machine: this is a simulated build: use the real one\n", stderr);
		return false;
	}
	o->busy = used_by_others();
	if (o->busy > MOST_BUSY && !o->force) {
		fprintf(stderr,
		        "sl-machine: other programs use %.0f %% of the CPUs, figures would be too low: wait until they "
		        "have ended, or give --force\n",
		        o->busy);
		return false;
	}
	if (sl_init(NULL) == SL_OK) return true;
	fprintf(stderr, "sl-machine: %s\n", sl_error_message());
	return false;
}

int main(int argc, char **argv)
{
	struct options o = {0};
	drv_parse(&argp, argc, argv, &o);
	if (!ready(&o)) return 1;
	bool written = write_description(&o);
	if (!written) fprintf(stderr, "sl-machine: %s: %s\n", o.output ? o.output : "standard output", strerror(errno));
	if (!written) sl_error_clear();
	bool well = sl_wait_all() == SL_OK;
	if (!well) fprintf(stderr, "sl-machine: %s\n", sl_error_message());
	sl_shutdown();
	return written && well ? 0 : 1;
}
