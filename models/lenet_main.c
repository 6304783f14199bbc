/* The command line of the LeNet driver, and --demo. */
#include <starling/dist.h>

#include "driver/block_training.h"
#include "lenet.h"
#include "driver/networks.h"

struct options {
	struct drv_options common;
	struct drv_train_options train;
	bool demo, hybrid;
};

/* ---- the parts, shown as in the tutorial ----------------------------------------------------------------------- */

static void show_tensors(const struct drv_options *o, const char *title, sl_tensor *const *tensors, int n)
{
	drv_print(o, "%s\n", title);
	for (int i = 0; i < n && !o->quiet; i++) sl_fprint(drv_out(o), tensors[i]);
}

static void demo_get_params(const struct drv_options *o)
{
	sl_tensor *params[NPARAMS], *copies[NPARAMS];
	init_params(params, o->devices[0]);
	get_params(params, o->devices[o->ndevices - 1], copies);
	show_tensors(o, "b1 weight:", &copies[b1], 1);
	sl_tensor *grad = sl_grad(copies[b1]);
	show_tensors(o, "b1 grad:", &grad, 1);
}

static void demo_allreduce(const struct drv_options *o)
{
	sl_tensor *data[DRV_MAX_DEVICES];
	for (int i = 0; i < o->ndevices; i++) data[i] = sl_full(SL_SHAPE(1, 2), i + 1, .device = o->devices[i]);
	show_tensors(o, "before allreduce:", data, o->ndevices);
	allreduce(data, o->ndevices);
	show_tensors(o, "after allreduce:", data, o->ndevices);
}

static bool demo_split_and_load(const struct drv_options *o)
{
	sl_tensor *parts[DRV_MAX_DEVICES];
	sl_tensor *batch = sl_reshape(sl_arange(0, 24, 1, .device = o->devices[0]), SL_SHAPE(6, 4));
	show_tensors(o, "input:", &batch, 1);
	drv_print_devices(o, "load into ");
	if (!split_and_load(batch, o->devices, o->ndevices, parts)) return false;
	show_tensors(o, "output:", parts, o->ndevices);
	return true;
}

static int demo(const struct drv_options *o)
{
	bool ok = false;
	SL_SCOPE {
		demo_get_params(o);
		demo_allreduce(o);
		ok = demo_split_and_load(o);
	}
	return drv_sync() && ok ? DRV_OK : DRV_ERROR;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum { KEY_DEMO = 0x200, KEY_HYBRID };

static const struct argp_option options[] = {
        {"hybrid", KEY_HYBRID, NULL, 0, "Make the network of blocks, each step one program; on one device", 1},
        {"demo", KEY_DEMO, NULL, 0, "Show what get_params, allreduce and split_and_load do, and exit", 1},
        {0},
};

/* Checks of options that depend on each other. */
static void check_options(struct argp_state *state, const struct options *o)
{
	int n = o->common.ndevices;
	if (n > 1 && o->train.batch_size % n && !o->demo)
		argp_error(state, "--batch-size: %lld rows cannot be split equally over %d devices",
		           (long long)o->train.batch_size, n);
	if (o->train.precision.dtype == SL_FLOAT16 && !o->hybrid && !o->demo)
		argp_error(state, "--dtype: fp16 needs a trainer that scales losses, which --hybrid has");
	if (o->train.memory && !o->hybrid)
		argp_error(state, "--memory is for whole steps, each of which is one program: use --hybrid");
	if (n > 1 && o->hybrid) argp_error(state, "--hybrid: name one device only, not %d", n);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	(void)arg;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		state->child_inputs[1] = &o->train;
		return 0;
	case KEY_DEMO: o->demo = true; return 0;
	case KEY_HYBRID: o->hybrid = true; return 0;
	case ARGP_KEY_END: check_options(state, o); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .children = drv_train_children,
        .doc = "Trains LeNet, written from scratch or (--hybrid) made of blocks, on Fashion-MNIST; with several "
               "devices, "
               "each gets an equal part of every batch.\v" DRV_TRAIN_EXIT_STATUS "\n\n"
               "Example, on two CPU devices of half the cores each:\n  lenet --device cpu:0,cpu:1 --epochs 3 "
               "--plot curve.svg",
};

static int run(const struct options *o)
{
	struct drv_block_training blocks = {
	        .network = net_lenet, .init = sl_normal_init(LENET_SCALE), .mode = DRV_STEP};
	if (o->demo) return demo(&o->common);
	if (o->hybrid) return drv_train_block("lenet", "LeNet", &o->common, &o->train, &blocks);
	if (sl_dist_size() == 1) return train_lenet(&o->common, &o->train);
	drv_error("LeNet from scratch trains in one process only; --hybrid trains in several");
	return DRV_ERROR;
}

int main(int argc, char **argv)
{
	struct options o = {.demo = false};
	drv_parse(&argp, argc, argv, &o);
	bool ready = drv_train_ready(&o.common, &o.train);
	return drv_stop(&o.common, ready ? run(&o) : DRV_ERROR);
}
