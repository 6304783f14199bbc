/* The command line of the LeNet driver: options, results, a show of the parts. */
#include <stdlib.h>

#include "lenet.h"

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Draws what is known after each epoch: the curves grow while one looks on. */
static bool draw(const struct trainer *t)
{
	static const char *const names[] = {"train loss", "train acc", "test acc"};
	double *values = malloc((size_t)t->done * 3 * sizeof *values);
	if (!values) return false;
	for (int64_t i = 0; i < t->done; i++) {
		values[i] = t->epochs[i].loss;
		values[t->done + i] = t->epochs[i].train_accuracy;
		values[2 * t->done + i] = t->epochs[i].test_accuracy;
	}
	bool ok = drv_plot_write(&(struct drv_plot){.path = t->options->plot,
	                                            .title = "LeNet",
	                                            .names = names,
	                                            .curves = 3,
	                                            .epochs = (int)t->done,
	                                            .last = (int)t->options->epochs,
	                                            .values = values});
	free(values);
	return ok;
}

static json_t *epoch_json(const struct epoch *e, int64_t number)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "epoch", (json_int_t)number, "seconds",
	                 drv_json_real(e->seconds), "images_per_second", drv_json_real((double)e->images / e->seconds),
	                 "train_loss", drv_json_real(e->loss), "train_accuracy", drv_json_real(e->train_accuracy),
	                 "test_accuracy", drv_json_real(e->test_accuracy));
}

static bool write_json(const struct trainer *t)
{
	const struct options *o = t->options;
	json_t *list = json_array(), *results = drv_json_new("lenet", &o->common);
	for (int64_t i = 0; i < t->done; i++) json_array_append_new(list, epoch_json(&t->epochs[i], i + 1));
	json_object_update_new(results, json_pack("{s:s, s:I, s:f, s:I, s:I, s:b, s:o}", "data", o->data, "batch_size",
	                                          (json_int_t)o->batch_size, "lr", o->lr, "train_samples",
	                                          (json_int_t)sl_loader_samples(t->train), "test_samples",
	                                          (json_int_t)sl_loader_samples(t->test), "interrupted",
	                                          drv_interrupted(), "epochs", list));
	return drv_json_write(&o->common, results);
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static void print_devices(const struct drv_options *o, const char *before)
{
	drv_print(o, "%s[", before);
	for (int i = 0; i < o->ndevices; i++) {
		char name[SL_DEVICE_NAME_MAX];
		drv_print(o, "%s%s", i ? ", " : "", sl_device_name(o->devices[i], name));
	}
	drv_print(o, "]\n");
}

/* Trains, and writes what is known however it ended. */
static int train_and_report(struct trainer *t)
{
	print_devices(&t->options->common, "running on: ");
	int status = train(t);
	if (status == DRV_INTERRUPTED) drv_error("interrupted after %lld complete epochs", (long long)t->done);
	if (status != DRV_ERROR && !write_json(t)) status = DRV_ERROR;
	return status;
}

static sl_loader *load(const struct options *o, sl_dataset *set, bool shuffle)
{
	return sl_loader_new(set, .batch_size = o->batch_size, .shuffle = shuffle, .seed = o->common.seed,
	                     .limit = o->limit, .device = o->common.devices[0]);
}

/* Whether there is something to train with; says why not. */
static bool check_data(const struct trainer *t)
{
	if (!drv_sync()) return false;
	if (sl_loader_samples(t->train) >= t->n) return true;
	drv_error("%lld images are too few for %d devices", (long long)sl_loader_samples(t->train), t->n);
	return false;
}

static int run_with(struct trainer *t, sl_dataset *train_set, sl_dataset *test_set)
{
	int status = DRV_ERROR;
	t->train = load(t->options, train_set, true);
	t->test = load(t->options, test_set, false);
	if (check_data(t)) {
		SL_SCOPE {
			status = train_and_report(t);
		}
	}
	sl_loader_free(t->train);
	sl_loader_free(t->test);
	return status;
}

static int run(const struct options *o)
{
	struct trainer *t = calloc(1, sizeof *t);
	struct epoch *epochs = calloc((size_t)o->epochs, sizeof *epochs);
	int status = DRV_ERROR;
	if (t && epochs) {
		*t = (struct trainer){.options = o,
		                      .devices = o->common.devices,
		                      .n = o->common.ndevices,
		                      .epochs = epochs,
		                      .after_epoch = o->plot ? draw : NULL};
		sl_dataset *train_set = sl_dataset_mnist(o->data, SL_TRAIN),
		           *test_set = sl_dataset_mnist(o->data, SL_TEST);
		status = run_with(t, train_set, test_set);
		sl_dataset_free(train_set);
		sl_dataset_free(test_set);
	} else {
		drv_error("no memory for %lld epochs", (long long)o->epochs);
	}
	free(t);
	free(epochs);
	return status;
}

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
	print_devices(o, "load into ");
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

enum { KEY_LR = 0x200, KEY_DATA, KEY_LIMIT, KEY_PLOT, KEY_DEMO };

static const struct argp_option options[] = {
        {"batch-size", 'b', "N", 0, "Images in a batch, over all devices (default: 256)", 1},
        {"lr", KEY_LR, "RATE", 0, "Learning rate (default: 0.2)", 1},
        {"epochs", 'e', "N", 0, "Epochs (default: 10)", 1},
        {"data", KEY_DATA, "DIR", 0, "Folder of the four IDX files, gzipped or not (default: " SL_FASHION_MNIST_DIR ")",
         1},
        {"limit", KEY_LIMIT, "N", 0, "Use the first N images only, for training and for testing", 1},
        {"demo", KEY_DEMO, NULL, 0, "Show get_params, allreduce and split_and_load at work, and end", 1},
        {"plot", KEY_PLOT, "FILE", 0, "Draw loss and accuracy after each epoch, with gnuplot; FILE.svg or FILE.png",
         20},
        {0},
};

/* What can be said of the options only together. */
static void check_options(struct argp_state *state, const struct options *o)
{
	int n = o->common.ndevices;
	if (n > 1 && o->batch_size % n && !o->demo)
		argp_error(state, "--batch-size: %lld rows cannot be split equally over %d devices",
		           (long long)o->batch_size, n);
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		return 0;
	case 'b':
		o->batch_size = drv_int(state, "--batch-size", arg, 1, 1 << 24);
		return 0;
	case KEY_LR:
		o->lr = drv_real(state, "--lr", arg, 0, 1e6);
		return 0;
	case 'e':
		o->epochs = drv_int(state, "--epochs", arg, 1, 1000000);
		return 0;
	case KEY_DATA:
		o->data = arg;
		return 0;
	case KEY_LIMIT:
		o->limit = drv_int(state, "--limit", arg, 1, INT64_MAX);
		return 0;
	case KEY_DEMO:
		o->demo = true;
		return 0;
	case KEY_PLOT:
		if (!drv_plot_path(arg)) argp_error(state, "--plot: \"%s\" ends neither in .svg nor in .png", arg);
		o->plot = arg;
		return 0;
	case ARGP_KEY_END:
		check_options(state, o);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child children[] = {{&drv_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .children = children,
        .doc = "Trains LeNet, written from scratch, on Fashion-MNIST; with several devices, each gets an equal part of "
               "every batch.\v"
               "Exit status: 0 if all went well, 1 after an error, 2 if the command line is wrong, 130 if SIGINT ended "
               "the training (after the current batch; results of the complete epochs are written).\n\n"
               "Example, on two CPU devices of half the cores each:\n  lenet --device cpu:0,cpu:1 --epochs 3 "
               "--plot curve.svg",
};

int main(int argc, char **argv)
{
	struct options o = {.data = SL_FASHION_MNIST_DIR, .batch_size = 256, .epochs = 10, .lr = 0.2};
	drv_parse(&argp, argc, argv, &o);
	bool ready = (!o.plot || drv_plot_ready(o.plot)) && drv_start(&o.common);
	return drv_stop(&o.common, !ready ? DRV_ERROR : o.demo ? demo(&o.common) : run(&o));
}
