/* ResNet-18 for small images, trained on Fashion-MNIST on one or several devices.
 *
 * Zhang, Lipton, Li, Smola, "Dive into Deep Learning", section "Concise Implementation for Multiple GPUs", with the
 * lines that it prints.  The network: K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition",
 * 2016. */
#include "driver/block_training.h"
#include "driver/networks.h"

struct options {
	struct drv_options common;
	struct drv_train_options train;
	struct drv_block_training how;
	bool demo, sync_norm;
};

/* ---- the parts, shown as in the tutorial ------------------------------------------------------------------------- */

static bool show(const struct drv_options *o, const char *title, sl_tensor *t)
{
	drv_print(o, "%s\n", title);
	return t && (o->quiet || sl_fprint(drv_out(o), t) == SL_OK);
}

/* A batch of four over the devices, and a weight on each of them. */
static bool demo_forward(const struct drv_options *o, sl_block *net)
{
	sl_tensor *parts[DRV_MAX_DEVICES];
	sl_tensor *x = sl_uniform(SL_SHAPE(4, 1, 28, 28), 0, 1);
	drv_print_devices(o, "load into ");
	if (sl_split_and_load(x, o->devices, o->ndevices, parts) != SL_OK) return false;
	bool ok = true;
	for (int i = 0; ok && i < o->ndevices; i++) ok = show(o, "output:", sl_forward(net, parts[i]));
	sl_param *weight = sl_block_find(net, "0.weight");
	for (int i = 0; ok && i < o->ndevices; i++) {
		char name[SL_DEVICE_NAME_MAX];
		drv_print(o, "first kernel on %s:\n", sl_device_name(o->devices[i], name));
		sl_tensor *there = sl_param_data(weight, o->devices[i].kind, o->devices[i].index);
		ok = there && (o->quiet || sl_fprint(drv_out(o), sl_rows(there, 0, 1)) == SL_OK);
	}
	return ok;
}

static int demo(const struct drv_options *o)
{
	bool ok = false;
	sl_block *net = net_resnet18();
	SL_SCOPE {
		ok = sl_initialize(net, .init = sl_normal_init(0.01), .devices = o->devices, .ndevices = o->ndevices) ==
		     SL_OK;
		ok = ok && demo_forward(o, net);
	}
	sl_block_free(net);
	return drv_sync() && ok ? DRV_OK : DRV_ERROR;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum { KEY_DEMO = 0x200, KEY_HYBRID, KEY_EAGER, KEY_SHARDS, KEY_BY_SPEED, KEY_SYNC_NORM, KEY_OPTIMIZER };

static const struct argp_option options[] = {
        {"hybrid", KEY_HYBRID, NULL, 0, "Run the forward and the backward pass of each shard as programs", 1},
        {"eager", KEY_EAGER, NULL, 0, "Run call by call (default: each shard's part of a step as one program)", 1},
        DRV_OPTIMIZER_OPTION(KEY_OPTIMIZER, 1),
        {"shards", KEY_SHARDS, "N", 0, "Number of parts of a batch (default: one for each device)", 1},
        {"by-speed", KEY_BY_SPEED, NULL, 0,
         "Split batches in proportion to the measured speed of the devices, repeatedly (default with devices of "
         "several "
         "kinds)",
         1},
        {"sync-norm", KEY_SYNC_NORM, NULL, 0,
         "Normalise over all parts of a batch together, as if it were not split; then steps run call by call "
         "(default: each part by itself)",
         1},
        {"demo", KEY_DEMO, NULL, 0, "Show how a batch and a weight are placed on the devices, and exit", 1},
        {0},
};

/* Checks of options that depend on each other. */
static void check_options(struct argp_state *state, struct options *o)
{
	int n = o->common.ndevices, shards = o->how.shards;
	for (int i = 1; i < n; i++) o->how.by_speed |= o->common.devices[i].kind != o->common.devices[0].kind;
	if (shards && shards < n) argp_error(state, "--shards: %d are too few for %d devices", shards, n);
	if (o->sync_norm && o->how.mode == DRV_HYBRID)
		argp_error(state, "--sync-norm: a program computes one part; not with --hybrid");
	if (o->sync_norm) {
		o->how.network = net_resnet18_synchronised;
		o->how.mode = DRV_EAGER;
	}
	int parts = shards ? shards : n;
	if (parts > 1 && o->train.batch_size < parts)
		argp_error(state, "--batch-size: %lld rows are too few for %d shards", (long long)o->train.batch_size,
		           parts);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		state->child_inputs[1] = &o->train;
		return 0;
	case KEY_DEMO: o->demo = true; return 0;
	case KEY_HYBRID: o->how.mode = DRV_HYBRID; return 0;
	case KEY_EAGER: o->how.mode = DRV_EAGER; return 0;
	case KEY_SHARDS: o->how.shards = (int)drv_int(state, "--shards", arg, 1, DRV_MAX_DEVICES); return 0;
	case KEY_BY_SPEED: o->how.by_speed = true; return 0;
	case KEY_SYNC_NORM: o->sync_norm = true; return 0;
	case KEY_OPTIMIZER: o->how.optimizer = drv_optimizer_parse(state, arg); return 0;
	case ARGP_KEY_END: check_options(state, o); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .children = drv_train_children,
        .doc = "Trains ResNet-18 (3x3 first convolution, no pooling after it) on Fashion-MNIST; with several devices, "
               "each "
               "gets a part of every batch, and gradients are summed.\v" DRV_TRAIN_EXIT_STATUS "\n\n"
               "Examples:\n  resnet18 --device gpu:0,gpu:1 --batch-size 512 --lr 0.2\n"
               "  resnet18 --device gpu:0,cpu --epochs 1\n  resnet18 --device auto --shards 8",
};

int main(int argc, char **argv)
{
	struct options o = {.train = {.lr = 0.1},
	                    .how = {.network = net_resnet18, .init = sl_normal_init(0.01), .mode = DRV_STEP}};
	drv_parse(&argp, argc, argv, &o);
	bool ready = drv_train_ready(&o.common, &o.train);
	int status = !ready   ? DRV_ERROR
	             : o.demo ? demo(&o.common)
	                      : drv_train_block("resnet18", "ResNet-18", &o.common, &o.train, &o.how);
	return drv_stop(&o.common, status);
}
