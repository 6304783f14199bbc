/* Training on images: options, data, the loop over epochs and its progress. */
#include <errno.h>
#include <stdlib.h>

#include <starling/dist.h>
#include <starling/functions.h>

#include "health.h"
#include "training.h"

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum {
	KEY_LR = 0x300,
	KEY_DATA,
	KEY_LIMIT,
	KEY_PLOT,
	KEY_LOG,
	KEY_FASTEST,
	KEY_DISTRIBUTED,
	KEY_WATCH,
	KEY_TENSORBOARD,
	KEY_DTYPE,
	KEY_MEMORY,
	KEY_STATE_ON,
	KEY_AUGMENT,
};

static const struct argp_option options[] = {
        {"batch-size", 'b', "N", 0, "Images in a batch, over all devices and processes (default: 256)", 1},
        {"lr", KEY_LR, "RATE", 0, NULL, 1},
        {"epochs", 'e', "N", 0, "Epochs (default: 10)", 1},
        {"dtype", KEY_DTYPE, "TYPE", 0, DRV_DTYPE_HELP ", with convolutions on GPUs as SL_TF32 says)", 1},
        {"fastest", KEY_FASTEST, NULL, 0,
         "With several devices: try the first one alone and all of them, and continue with the faster", 1},
        {"distributed", KEY_DISTRIBUTED, NULL, 0, DRV_DISTRIBUTED_HELP, 1},
        {"state-on", KEY_STATE_ON, "DEVICE", 0, DRV_STATE_ON_HELP, 1},
        {"data", KEY_DATA, "DIR", 0,
         "Folder with the four IDX files, gzipped or not (default: " SL_FASHION_MNIST_DIR ")", 1},
        {"augment", KEY_AUGMENT, NULL, 0,
         "Move each training image by up to 4 rows and columns, and mirror every second one, at random", 1},
        {"memory", KEY_MEMORY, "SIZE", 0, DRV_MEMORY_HELP, 1},
        {"limit", KEY_LIMIT, "N", 0, "Use only the first N images, for training and for testing", 1},
        {"plot", KEY_PLOT, "FILE", 0,
         "Draw loss and accuracy after each epoch, with gnuplot: FILE.svg or FILE.png; - as text; window", 20},
        {"log", KEY_LOG, "FILE.csv", 0, "Write a line of figures after each epoch", 20},
        {"watch", KEY_WATCH, "FILE", OPTION_HIDDEN, NULL, 20}, /* until the release after 0.2 */
        {"tensorboard", KEY_TENSORBOARD, "DIR", 0, "Write event files into DIR, for TensorBoard", 20},
        {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct drv_train_options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		*o = (struct drv_train_options){.data = SL_FASHION_MNIST_DIR,
		                                .batch_size = 256,
		                                .epochs = 10,
		                                .precision.dtype = SL_FLOAT32,
		                                .lr = o->lr > 0 ? o->lr : 0.2}; /* a driver may have another */
		state->child_inputs[0] = &o->checkpoint;
		return 0;
	case 'b': o->batch_size = drv_int(state, "--batch-size", arg, 1, 1 << 24); return 0;
	case KEY_LR:
		o->lr = drv_real(state, "--lr", arg, 0, 1e6);
		o->lr_given = true;
		return 0;
	case 'e': o->epochs = drv_int(state, "--epochs", arg, 1, 1000000); return 0;
	case KEY_DTYPE: drv_precision_parse(state, arg, &o->precision); return 0;
	case KEY_FASTEST: o->fastest = true; return 0;
	case KEY_DISTRIBUTED: o->distributed = true; return 0;
	case KEY_STATE_ON: o->state_on = drv_device(state, "--state-on", arg); return 0;
	case KEY_DATA: o->data = arg; return 0;
	case KEY_AUGMENT: o->augment = true; return 0;
	case KEY_MEMORY: o->memory = drv_limit(state, arg); return 0;
	case KEY_LIMIT: o->limit = drv_int(state, "--limit", arg, 1, INT64_MAX); return 0;
	case KEY_PLOT:
		if (!drv_plot_path(arg)) argp_error(state, "--plot: \"%s\" must be " DRV_PLOT_PATHS, arg);
		o->plot = arg;
		return 0;
	case KEY_LOG: o->log = arg; return 0;
	case KEY_WATCH:
		argp_error(state,
		           "--watch no longer exists: --tensorboard=DIR shows the same curves while training runs");
		return EINVAL;
	case KEY_TENSORBOARD: o->tensorboard = arg; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_child train_children[] = {{&drv_checkpoint_argp, 0, NULL, 0}, {0}};
/* Each driver has its own default learning rate. */
static char *help(int key, const char *text, void *input)
{
	const struct drv_train_options *o = input;
	char *rate = NULL;
	if (key == KEY_LR && o && asprintf(&rate, "Learning rate (default: %g)", o->lr) >= 0) return rate;
	return (char *)text;
}

static const struct argp train_argp = {
        .options = options, .parser = parse_option, .children = train_children, .help_filter = help};
const struct argp_child drv_train_children[] = {{&drv_argp, 0, NULL, 0}, {&train_argp, 0, NULL, 0}, {0}};

/* Checks the options and starts the engine; false after reporting an error. */
bool drv_train_ready(struct drv_options *common, struct drv_train_options *o)
{
	if (o->plot && !drv_plot_ready(o->plot)) return false;
	if (o->log && !drv_writable(o->log)) return false;
	if (o->tensorboard && !drv_tensorboard_folder(o->tensorboard)) return false;
	common->tf32 = o->precision.tf32;
	if (!drv_distributed_ask(o->distributed) || !drv_start(common) || !drv_distributed_ready(common, o))
		return false;
	return sl_dist_rank() > 0 || drv_checkpoint_ready(&o->checkpoint);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* Adds a batch: its losses (NULL: none), and the number of rows of output whose largest element is at their label. */
void drv_count(struct drv_sums *sums, sl_tensor *losses, sl_tensor *output, sl_tensor *labels)
{
	if (losses) sl_add_(sums->loss, sl_sum(losses));
	sl_add_(sums->correct, sl_sum(sl_cast(sl_eq(sl_argmax(output, 1), labels), SL_FLOAT32)));
}

static void make_sums(struct drv_training *t)
{
	for (int i = 0; i < t->common->ndevices; i++) {
		t->sums[i].loss = sl_zeros(SL_SCALAR, .device = t->common->devices[i]);
		t->sums[i].correct = sl_zeros(SL_SCALAR, .device = t->common->devices[i]);
	}
}

void drv_state_add(struct drv_state *state, const char *name, sl_tensor *tensor)
{
	state->names[state->count] = name;
	state->tensors[state->count++] = tensor;
}

static void clear_sums(struct drv_training *t)
{
	for (int i = 0; i < t->common->ndevices; i++) {
		sl_fill_(t->sums[i].loss, 0);
		sl_fill_(t->sums[i].correct, 0);
	}
}

/* The sum over the devices of all processes; waits for it. */
static double total(const struct drv_training *t, size_t figure)
{
	double sum = 0;
	for (int i = 0; i < t->common->ndevices; i++)
		sum += sl_item(*(sl_tensor *const *)((const char *)&t->sums[i] + figure));
	return drv_sum_over_ranks(sum);
}

/* ---- progress ---------------------------------------------------------------------------------------------------- */

/* Figures requested now and shown later: of computed batches, not queued ones, and hardly ever with a wait. */
struct glance {
	sl_tensor *loss; /* the first device's, as it will be after this number of images */
	int64_t images, steps;
};

static void glance_drop(struct glance *g)
{
	sl_release(g->loss);
	g->loss = NULL;
}

/* Shows the figures that were requested last time, and requests new ones. */
static void show(struct drv_progress *bar, struct glance *g, struct drv_training *t, int64_t images)
{
	bool live = drv_live_due(t);
	if (live) t->live.asked = drv_now();
	if (g->loss) {
		double loss = sl_item(g->loss) * t->common->ndevices / (double)g->images;
		drv_progress_draw(bar, g->images, loss);
		if (live) drv_live_point(t, loss, g->images, g->steps);
	}
	glance_drop(g);
	SL_SCOPE {
		*g = (struct glance){sl_retain(sl_clone(t->sums[0].loss)), images, t->steps};
	}
	bar->drawn = drv_now();
}

/* ---- epochs ------------------------------------------------------------------------------------------------------ */

/* The number of devices for the next batch; printed once it is known which number is faster. */
static void choose_devices(struct drv_training *t)
{
	bool known = sl_autotune_decided(t->trial);
	t->ndevices = t->trial && sl_autotune_next(t->trial) == 0 ? 1 : t->common->ndevices;
	if (known || !sl_autotune_decided(t->trial)) return;
	char name[SL_DEVICE_NAME_MAX];
	sl_device_name(t->common->devices[0], name);
	if (t->ndevices == 1) drv_print(t->common, "one device: %s", name);
	else drv_print(t->common, "all devices");
	drv_print(t->common, ", because a batch takes %.3f ms on %s, %.3f ms on %d devices\n",
	          1e3 * sl_autotune_seconds(t->trial, 0), name, 1e3 * sl_autotune_seconds(t->trial, 1),
	          t->common->ndevices);
}

/* Trains on the next batch.  Rows of an epoch's last batch that cannot be divided equally are skipped; another order
 * includes them in the next epoch.  Returns false after the last batch, or an error. */
static bool train_next(struct drv_training *t, struct drv_epoch *e)
{
	bool more = false;
	sl_iteration_push(t->steps);
	SL_SCOPE {
		struct sl_batch b;
		if (!sl_loader_next(t->train_set, &b)) break;
		choose_devices(t);
		int64_t all = sl_tensor_shape(b.x).dim[0], rows = all - all % t->ndevices;
		if (rows < all) {
			b.x = sl_rows(b.x, 0, rows);
			b.y = sl_rows(b.y, 0, rows);
		}
		if (t->options->augment) b.x = sl_shift_flip(b.x, 4, 0.5);
		SL_AUTOCAST(t->options->precision.dtype) more = rows == 0 || t->train(t, b.x, b.y);
		e->images += rows;
		e->batches++;
		drv_health_step(++t->steps, rows * sl_dist_size());
	}
	sl_iteration_pop();
	return more;
}

static bool test_next(struct drv_training *t, int64_t number)
{
	bool more = false;
	SL_SCOPE {
		struct sl_batch b;
		if (!sl_loader_next(t->test_set, &b)) break;
		SL_AUTOCAST(t->options->precision.dtype) more = t->test(t, b.x, b.y, number) && !drv_failed();
	}
	return more;
}

static double test_accuracy(struct drv_training *t)
{
	clear_sums(t);
	for (int64_t i = 0; test_next(t, i);) i++;
	return total(t, offsetof(struct drv_sums, correct)) / (double)(sl_loader_samples(t->test_set) * sl_dist_size());
}

uint64_t drv_tasks(void)
{
	struct sl_stats stats;
	sl_stats_get(&stats);
	return stats.segments;
}

static bool train_epoch(struct drv_training *t, int64_t number, struct drv_epoch *e)
{
	struct drv_progress bar;
	struct glance glance = {0};
	char label[64];
	snprintf(label, sizeof label, "epoch %lld/%lld", (long long)number, (long long)t->options->epochs);
	if (!e->batches) clear_sums(t); /* otherwise it continues at the position of a checkpoint */
	t->tasks_before = drv_tasks() - (uint64_t)e->tasks;
	t->began = drv_now() - e->seconds;
	drv_progress_start(&bar, t->common, label, sl_loader_samples(t->train_set));
	bool complete = false;
	while (!complete && !drv_stops(&t->stops)) {
		complete = !train_next(t, e);
		if (drv_progress_due(&bar) || drv_live_due(t)) show(&bar, &glance, t, e->images);
		if (!complete) drv_checkpoint_step(t);
	}
	glance_drop(&glance);
	bool ok = drv_sync();
	drv_progress_end(&bar);
	if (!ok || !complete) return false;
	e->seconds = drv_now() - t->began;
	e->tasks = (double)(drv_tasks() - t->tasks_before) / (double)e->batches;
	return true;
}

/* Trains one epoch and tests; false after an error or an interruption. */
static bool run_epoch(struct drv_training *t, int64_t number, struct drv_epoch *e)
{
	if (!train_epoch(t, number, e)) return false;
	e->images *= sl_dist_size(); /* each has as many */
	e->loss = total(t, offsetof(struct drv_sums, loss)) / (double)e->images;
	e->train_accuracy = total(t, offsetof(struct drv_sums, correct)) / (double)e->images;
	e->test_accuracy = test_accuracy(t);
	if (!drv_sync()) return false;
	if (sl_is_simulated()) /* values mean nothing */
		drv_print(t->common, "epoch %lld, time %.6f sec, %.6f ms a batch (simulated)\n", (long long)number,
		          e->seconds, 1e3 * e->seconds / (double)e->batches);
	else
		drv_print(t->common, "epoch %lld, time %.1f sec, test acc %.2f\n", (long long)number, e->seconds,
		          e->test_accuracy);
	return true;
}

/* The last line of the tutorial's section on multiple GPUs. */
static void print_result(const struct drv_training *t)
{
	char text[96];
	double seconds = 0;
	if (!t->done || sl_is_simulated()) return;
	for (int64_t i = 0; i < t->done; i++) seconds += t->epochs[i].seconds;
	snprintf(text, sizeof text, "test acc: %.2f, %.1f sec/epoch on ", t->epochs[t->done - 1].test_accuracy,
	         seconds / (double)t->done);
	drv_print_devices(t->common, text);
}

static int run_epochs(struct drv_training *t)
{
	while (t->done < t->options->epochs) {
		if (!run_epoch(t, t->done + 1, &t->epochs[t->done]))
			return drv_interrupted()  ? drv_interrupted_status()
			       : t->stops.stopped ? DRV_STOPPED
			                          : DRV_ERROR;
		t->done++;
		drv_checkpoint_epoch(t);
		if (!drv_report_epoch(t)) return DRV_ERROR;
	}
	print_result(t);
	return DRV_OK;
}

/* From the beginning, or from where a checkpoint was. */
static int start_and_run(struct drv_training *t)
{
	make_sums(t);
	if (!drv_checkpoint_open(t)) return DRV_ERROR;
	if (!t->start(t)) return drv_sync(), DRV_ERROR;
	if (!drv_checkpoint_resume(t) || !drv_report_begin(t)) return DRV_ERROR;
	int status = run_epochs(t);
	bool saved = drv_checkpoint_end(t, status != DRV_ERROR);
	if (!drv_live_end(t)) status = DRV_ERROR;
	return saved || status != DRV_OK ? status : DRV_ERROR;
}

/* ---- the run ----------------------------------------------------------------------------------------------------- */

static void report_interruption(const struct drv_training *t)
{
	const char *folder = t->checkpointing.failed ? NULL : t->options->checkpoint.folder;
	drv_error("interrupted after %lld complete epoch%s%s%s", (long long)t->done, t->done == 1 ? "" : "s",
	          folder ? "; --resume continues from " : "", folder ? folder : "");
}

/* Trains, and writes the known figures however it ended. */
static int train_and_report(struct drv_training *t)
{
	drv_print_devices(t->common, "running on: ");
	drv_precision_print(t->common, &t->options->precision);
	if (sl_dist_size() > 1) drv_print(t->common, "rank 0 of %d processes\n", sl_dist_size());
	t->ndevices = t->common->ndevices;
	t->trial = t->options->fastest && t->ndevices > 1 ? sl_autotune_new(2) : NULL;
	int status = start_and_run(t);
	sl_autotune_free(t->trial);
	t->trial = NULL;
	if (t->stop) t->stop(t);
	drv_stops_end(&t->stops);
	drv_pace_end(&t->pace);
	if (status > DRV_INTERRUPTED) report_interruption(t);
	if (!drv_report_end(t, status != DRV_ERROR)) status = DRV_ERROR;
	return status;
}

/* Under a limit of a GPU's memory the data set stays in main memory, where batches are made. */
static sl_device loads_on(const struct drv_training *t)
{
	return t->options->memory ? sl_cpu(-1) : t->common->devices[0];
}

static sl_loader *load(const struct drv_training *t, sl_dataset *set, bool shuffle)
{
	sl_loader *loader =
	        sl_loader_new(set, .batch_size = t->options->batch_size, .shuffle = shuffle, .seed = t->common->seed,
	                      .limit = t->options->limit ? t->options->limit : SL_UNSET_INT, .device = loads_on(t),
	                      .workers = t->workers);
	if (loader) sl_dist_share(loader);
	return loader;
}

/* Whether there is something to train with; says why not. */
static bool check_data(const struct drv_training *t)
{
	if (!drv_sync()) return false;
	if (sl_loader_samples(t->train_set) >= t->common->ndevices) return true;
	drv_error("%lld images are too few for %d devices", (long long)sl_loader_samples(t->train_set),
	          t->common->ndevices);
	return false;
}

static int run_with(struct drv_training *t, sl_dataset *const sets[2])
{
	int status = DRV_ERROR;
	t->train_set = load(t, sets[0], true);
	t->test_set = load(t, sets[1], false);
	if (check_data(t)) {
		SL_SCOPE {
			status = train_and_report(t);
		}
	}
	sl_loader_free(t->train_set);
	sl_loader_free(t->test_set);
	return status;
}

/* The IDX files of the folder with the data. */
bool drv_open_idx(const struct drv_training *t, sl_dataset *sets[2])
{
	sets[0] = sl_dataset_mnist(t->options->data, SL_TRAIN);
	sets[1] = sl_dataset_mnist(t->options->data, SL_TEST);
	return sets[0] && sets[1];
}

/* Trains all epochs and writes the results; returns the exit status. */
int drv_train(struct drv_training *t)
{
	int status = DRV_ERROR;
	t->done = t->steps = t->logged = 0;
	t->lr = t->options->lr;
	t->epochs = calloc((size_t)t->options->epochs + 1, sizeof *t->epochs);
	if (t->epochs) {
		sl_dataset *sets[2] = {NULL, NULL};
		if (t->open ? t->open(t, sets) : drv_open_idx(t, sets)) status = run_with(t, sets);
		else drv_sync();
		for (int i = 0; i < 2; i++) sl_dataset_free(sets[i]);
	} else {
		drv_error("no memory for %lld epochs", (long long)t->options->epochs);
	}
	free(t->epochs);
	t->epochs = NULL;
	return status;
}
