/* Automatic parallelism: serial code whose independent parts run side by side on all devices.
 *
 * The experiments of Zhang, Lipton, Li, Smola, "Dive into Deep Learning", section "Automatic Parallelism", in their
 * order and with the lines that they print, and some more.  Without a GPU, a second CPU device takes its place. */
#include <math.h>
#include <stdlib.h>

#include <starling.h>

#include "driver/experiments.h"

struct options {
	struct drv_options common;
	struct drv_experiments experiments;
	int64_t size, repeat;
	int products;
	bool *wrong; /* a result was not that of the serial program */
};

static const struct options *options_of(const struct drv_bench *b)
{
	return b->options;
}

enum { MAX_PRODUCTS = 64 };

/* ---- the two devices --------------------------------------------------------------------------------------------- */

struct pair {
	sl_device device[2];
	const char *name[2]; /* "CPU" and "GPU", as the tutorial calls them; else the devices' own names */
	int64_t size[2];
	char names[2][SL_DEVICE_NAME_MAX];
};

static struct pair pair_of(const struct drv_bench *b)
{
	const struct drv_options *o = b->common;
	struct pair p = {.device = {o->devices[0], o->devices[1]}};
	bool classic = p.device[0].kind == SL_DEVICE_CPU && p.device[1].kind == SL_DEVICE_GPU;
	for (int i = 0; i < 2; i++) {
		sl_device_name(p.device[i], p.names[i]);
		p.name[i] = classic ? (i ? "GPU" : "CPU") : NULL;
		p.size[i] = options_of(b)->size * (p.device[i].kind == SL_DEVICE_GPU ? 3 : 1);
	}
	return p;
}

static const char *name_of(const struct pair *p, int i)
{
	return p->name[i] ? p->name[i] : p->names[i];
}

/* Elements so small that products stay numbers. */
static sl_tensor *matrix(int64_t n, sl_device device)
{
	sl_tensor *x = sl_uniform(SL_SHAPE(n, n), 0, 1, .device = device);
	return sl_mul_scalar_(x, 1.0 / (double)n);
}

static void run(const struct drv_bench *b, sl_tensor *x, sl_tensor **y)
{
	for (int i = 0; i < options_of(b)->products; i++) y[i] = sl_dot(x, x);
}

static void measure(struct drv_bench *b, const char *key, const char *text)
{
	sl_wait_all();
	drv_end(b, key, text);
	drv_begin(b);
}

/* ---- side by side ------------------------------------------------------------------------------------------------ */

/* Each run in a scope of its own: the next one takes over its memory, wherever that lies, as it would in a long
 * program. */
static void devices(struct drv_bench *b)
{
	struct pair p = pair_of(b);
	int n = options_of(b)->products;
	char text[128];
	sl_tensor *x[2], *y[MAX_PRODUCTS];
	drv_title(b, "%d products %lld x %lld on %s, %d products %lld x %lld on %s", n, (long long)p.size[0],
	          (long long)p.size[0], name_of(&p, 0), n, (long long)p.size[1], (long long)p.size[1], name_of(&p, 1));
	for (int i = 0; i < 2; i++)
		SL_SCOPE
			run(b, x[i] = sl_retain(matrix(p.size[i], p.device[i])), y); /* warms up */
	sl_wait_all();
	drv_begin(b);
	for (int i = 0; i < 2; i++)
		SL_SCOPE {
			run(b, x[i], y);
			snprintf(text, sizeof text, i ? "Then run on %s. time" : "Run on %s. time", name_of(&p, i));
			measure(b, i ? "second" : "first", text);
		}
	SL_SCOPE {
		run(b, x[0], y);
		run(b, x[1], y);
		snprintf(text, sizeof text, "Run on both %s and %s in parallel. time", name_of(&p, 0), name_of(&p, 1));
		measure(b, "both", text);
	}
	for (int i = 0; i < 2; i++) sl_release(x[i]);
}

static void copy_all(const struct drv_bench *b, sl_tensor *const *y, sl_device to)
{
	for (int i = 0; i < options_of(b)->products; i++) sl_copy_to(y[i], to);
}

static void copies(struct drv_bench *b)
{
	struct pair p = pair_of(b);
	char text[128];
	sl_tensor *x, *y[MAX_PRODUCTS];
	drv_title(b, "%d products %lld x %lld on %s, and their copies on %s", options_of(b)->products,
	          (long long)p.size[1], (long long)p.size[1], name_of(&p, 1), name_of(&p, 0));
	SL_SCOPE {
		run(b, x = sl_retain(matrix(p.size[1], p.device[1])), y);
		copy_all(b, y, p.device[0]);
	}
	sl_wait_all();
	drv_begin(b);
	SL_SCOPE {
		run(b, x, y);
		snprintf(text, sizeof text, "Run on %s. time", name_of(&p, 1));
		measure(b, "run", text);
		copy_all(b, y, p.device[0]);
		snprintf(text, sizeof text, "Then copy to %s. time", name_of(&p, 0));
		measure(b, "copy", text);
	}
	SL_SCOPE {
		run(b, x, y);
		copy_all(b, y, p.device[0]); /* y[i - 1] travels while y[i] is computed */
		measure(b, "overlapped", "Run and copy in parallel. time");
	}
	sl_release(x);
}

/* ---- dependencies that the engine finds -------------------------------------------------------------------------- */

static void independent(struct drv_bench *b)
{
	int64_t n = options_of(b)->size;
	int products = options_of(b)->products;
	drv_title(b, "%d products %lld x %lld, wherever there is room", products, (long long)n, (long long)n);
	SL_SCOPE {
		sl_tensor *x = matrix(n, sl_auto()), *z = x, *y[MAX_PRODUCTS];
		run(b, x, y);
		sl_wait_all();
		drv_begin(b);
		for (int i = 0; i < products; i++) z = sl_dot(z, x);
		measure(b, "chain", "each needs the one before. time");
		run(b, x, y);
		measure(b, "independent", "independent of each other. time");
	}
}

/* The largest difference between two tensors, over the largest element. */
static double difference(sl_tensor *a, sl_tensor *b)
{
	return sl_item(sl_max(sl_abs(sl_sub(a, b)))) / (sl_item(sl_max(sl_abs(a))) + 1e-30);
}

/* Serial: on the first device, waiting after each call. */
struct program {
	sl_device device;
	bool serial;
};

static sl_tensor *call(const struct program *p, sl_tensor *y)
{
	if (p->serial) sl_wait(y);
	return y;
}

static sl_tensor *diamond(const struct program *p, sl_tensor *x)
{
	x = sl_place(x, p->device);
	for (int i = 0; i < 4; i++) {
		sl_tensor *top = call(p, sl_dot(x, x));
		sl_tensor *left = call(p, sl_dot(top, x)), *right = call(p, sl_dot(x, top));
		x = call(p, sl_add(call(p, sl_relu(left)), call(p, sl_sub(right, top))));
	}
	return x;
}

enum { NODES = 60 };

/* Each node is a sum or a product of two earlier ones, drawn by a fixed rule. */
static sl_tensor *random_graph(const struct program *p, sl_tensor *x)
{
	sl_tensor *node[NODES] = {sl_place(x, p->device)};
	uint32_t state = 12345;
	for (int i = 1; i < NODES; i++) {
		state = state * 1664525u + 1013904223u;
		sl_tensor *u = node[(state >> 8) % (uint32_t)i], *v = node[(state >> 16) % (uint32_t)i];
		node[i] = call(p, state >> 31 ? sl_dot(u, v) : sl_mul_scalar(call(p, sl_add(u, v)), 0.5));
	}
	sl_tensor *sum = node[0];
	for (int i = 1; i < NODES; i++) sum = call(p, sl_add(sum, node[i]));
	return sum;
}

static void compare(struct drv_bench *b, const char *name, sl_tensor *(*graph)(const struct program *, sl_tensor *))
{
	SL_SCOPE {
		sl_tensor *x = matrix(options_of(b)->size / 8 + 1, b->common->devices[0]);
		sl_tensor *serial = graph(&(struct program){b->common->devices[0], true}, x);
		sl_tensor *parallel = graph(&(struct program){sl_auto(), false}, x);
		double d = difference(sl_place(serial, sl_auto()), parallel);
		double allowed = fmax(1e-5, 16 * drv_precision_rounding(b->precision));
		drv_print(b->common, "%s: %s (difference %.1e)\n", name,
		          d <= allowed ? "the serial result" : "NOT THE SERIAL RESULT", d);
		drv_note(b, name, d);
		*options_of(b)->wrong |= !(d <= allowed);
	}
}

static void graphs(struct drv_bench *b)
{
	drv_title(b, "graphs of calls, on all devices at once");
	compare(b, "diamond", diamond);
	compare(b, "random", random_graph);
}

static void tiny_products(sl_tensor *x, int64_t times, bool wait)
{
	for (int64_t i = 0; i < times && !drv_interrupted(); i++) {
		SL_SCOPE {
			sl_tensor *y = sl_dot(x, x);
			if (wait) sl_wait(y);
		}
	}
	sl_wait_all();
}

static void tiny(struct drv_bench *b)
{
	int64_t n = options_of(b)->repeat;
	drv_title(b, "%lld products 8 x 8", (long long)n);
	SL_SCOPE {
		sl_tensor *x = matrix(8, sl_auto());
		tiny_products(x, n / 10 + 1, false);
		drv_begin(b);
		tiny_products(x, n, true);
		measure(b, "tiny_waiting", "waiting for each. time");
		tiny_products(x, n, false);
		measure(b, "tiny", "all queued. time");
	}
}

static const struct drv_experiment experiments[] = {
        {"devices", "products on one device, on the other, on both", devices},
        {"copy", "results that are copied while the next are computed", copies},
        {"independent", "ten products in a row, and side by side", independent},
        {"graphs", "a diamond-shaped and a random graph give the serial result", graphs},
        {"tiny", "many tiny products", tiny},
};

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum { KEY_SIZE = 0x200, KEY_REPEAT, KEY_PRODUCTS };

static const struct argp_option options[] = {
        {"size", KEY_SIZE, "N", 0, "Rows and columns of matrices on CPUs; on GPUs three times that (default: 2000)", 1},
        {"products", KEY_PRODUCTS, "N", 0, "Products in sequence (default: 10)", 1},
        {"repeat", KEY_REPEAT, "N", 0, "Tiny products (default: 10000)", 1},
        {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT: drv_experiments_init(state, &o->experiments); return 0;
	case KEY_SIZE: o->size = drv_int(state, "--size", arg, 8, 1 << 15); return 0;
	case KEY_PRODUCTS: o->products = (int)drv_int(state, "--products", arg, 1, MAX_PRODUCTS); return 0;
	case KEY_REPEAT: o->repeat = drv_int(state, "--repeat", arg, 1, 1000000000); return 0;
	case ARGP_KEY_END:
		if (o->common.ndevices && o->common.ndevices != 2)
			argp_error(state, "--device: name two devices, such as cpu:0,gpu:0");
		return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .children = drv_experiments_children,
        .doc = "Shows how independent parts of a serial program run side by side: all experiments, or those named.  "
               "The two "
               "devices are cpu:0 and gpu:0; without a GPU, cpu:0 and cpu:1 with half the cores each; or those of "
               "--device.\v"
               "Exit status: 0 if all went well, 1 after an error or a wrong result, 2 if the command line is "
               "wrong, " DRV_INTERRUPTED_STATUS ".",
};

/* Without a GPU the engine starts a second time, with two CPU devices. */
static bool start(struct drv_options *o)
{
	bool chosen = o->ndevices > 0;
	if (!drv_start(o)) return false;
	if (chosen) return true;
	bool gpu = sl_device_count(SL_DEVICE_GPU) > 0;
	o->ndevices = 2;
	o->devices[0] = sl_cpu(0);
	o->devices[1] = gpu ? sl_gpu(0) : sl_cpu(1);
	if (gpu) return true;
	drv_print(o, "no GPU here: cpu:0 and cpu:1, with half the cores each, replace CPU and GPU\n");
	sl_shutdown();
	return drv_start(o);
}

int main(int argc, char **argv)
{
	bool wrong = false;
	struct options o = {
	        .experiments = {"parallel", experiments, sizeof experiments / sizeof *experiments, &o.common, 0, {0}},
	        .size = 2000,
	        .repeat = 10000,
	        .products = 10,
	        .wrong = &wrong};
	drv_parse(&argp, argc, argv, &o);
	int status = start(&o.common) ? drv_run_experiments(&o.experiments, &o) : DRV_ERROR;
	if (wrong && status == DRV_OK) {
		drv_error("a result differs from that of the serial program");
		status = DRV_ERROR;
	}
	return drv_stop(&o.common, status);
}
