/* Reports of training: plots, a line of figures for each epoch, JSON. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "training.h"

void drv_print_devices(const struct drv_options *o, const char *before)
{
	drv_print(o, "%s[", before);
	for (int i = 0; i < o->ndevices; i++) {
		char name[SL_DEVICE_NAME_MAX];
		drv_print(o, "%s%s", i ? ", " : "", sl_device_name(o->devices[i], name));
	}
	drv_print(o, "]\n");
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

/* X(name, value) for the reported figures of an epoch e besides its number. */
#define FIGURES(X)                                                                                                     \
	X(seconds, e->seconds)                                                                                         \
	X(images_per_second, (double)e->images / e->seconds)                                                           \
	X(tasks_per_batch, e->tasks)                                                                                   \
	X(train_loss, e->loss)                                                                                         \
	X(train_accuracy, e->train_accuracy)                                                                           \
	X(test_accuracy, e->test_accuracy)

static json_t *epoch_json(const struct drv_epoch *e, int64_t number)
{
	json_t *figures = json_pack("{s:I}", "epoch", (json_int_t)number);
#define X(name, value) json_object_set_new(figures, #name, drv_json_real(value));
	FIGURES(X)
#undef X
	return figures;
}

static bool write_json(const struct drv_training *t)
{
	const struct drv_train_options *o = t->options;
	json_t *list = json_array(), *results = drv_json_new(t->program, t->common);
	for (int64_t i = 0; i < t->done; i++) json_array_append_new(list, epoch_json(&t->epochs[i], i + 1));
	json_object_update_new(results,
	                       json_pack("{s:s, s:s, s:s, s:I, s:f, s:I, s:I, s:b, s:o}", "mode",
	                                 t->mode ? t->mode : "eager", "dtype", drv_precision_name(&o->precision),
	                                 "data", o->data, "batch_size", (json_int_t)o->batch_size, "lr", t->lr,
	                                 "train_samples", (json_int_t)sl_loader_samples(t->train_set), "test_samples",
	                                 (json_int_t)sl_loader_samples(t->test_set), "interrupted", drv_interrupted(),
	                                 "epochs", list));
	return drv_json_write(t->common, results);
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static void log_epoch(FILE *out, const struct drv_epoch *e, int64_t number)
{
	fprintf(out, "%lld", (long long)number);
#define X(name, value) fprintf(out, ",%.9g", value);
	FIGURES(X)
#undef X
	fputc('\n', out);
}

/* Each line is in the file once its epoch has ended, and the file is replaced as a whole: readers see whole lines while
 * it grows.  Anything but a file (a pipe) is written line by line. */
static bool log_write(struct drv_training *t)
{
	const char *path = t->options->log;
	struct stat s;
	bool whole = stat(path, &s) != 0 || S_ISREG(s.st_mode);
	sl_file *file = drv_file_begin(path);
	FILE *out = sl_file_stream(file);
	if (!file) return false;
#define X(name, value) "," #name
	if (whole || !t->logged) fputs("epoch" FIGURES(X) "\n", out);
#undef X
	for (int64_t i = whole ? 0 : t->logged; i < t->done; i++) log_epoch(out, &t->epochs[i], i + 1);
	t->logged = t->done;
	return drv_file_end(file, path);
}

/* ---- curves ------------------------------------------------------------------------------------------------------ */

enum { CURVES = 3 };

/* values: of the numbers of the epochs, then of each curve. */
static bool draw_curves(const struct drv_training *t, double *values)
{
	static const char *const names[CURVES] = {"train loss", "train acc", "test acc"};
	struct drv_curve curves[CURVES];
	int64_t n = t->done;
	for (int64_t i = 0; i < n; i++) {
		const struct drv_epoch *e = &t->epochs[i];
		values[i] = (double)(i + 1);
		values[n + i] = e->loss;
		values[2 * n + i] = e->train_accuracy;
		values[3 * n + i] = e->test_accuracy;
	}
	for (int c = 0; c < CURVES; c++)
		curves[c] = (struct drv_curve){.name = names[c],
		                               .x = values,
		                               .y = values + (c + 1) * n,
		                               .points = (int)n,
		                               .colour = c,
		                               .dash = c};
	double last = t->options->epochs > 1 ? (double)t->options->epochs : 2;
	struct drv_panel panel = {.title = t->title,
	                          .xlabel = "epoch",
	                          .first = 1,
	                          .last = last,
	                          .counted = true,
	                          .curves = curves,
	                          .count = CURVES};
	return drv_plot_write(
	        &(struct drv_figure){.path = t->options->plot, .panels = &panel, .count = 1, .columns = 1},
	        drv_out(t->common));
}

static bool draw(const struct drv_training *t)
{
	double *values = malloc((size_t)t->done * (CURVES + 1) * sizeof *values);
	bool ok = values && draw_curves(t, values);
	if (!values) drv_error("no memory for the curves");
	free(values);
	return ok;
}

/* ---- when -------------------------------------------------------------------------------------------------------- */

bool drv_report_begin(struct drv_training *t)
{
	if (!drv_live_begin(t)) return false;
	return !t->options->log || log_write(t);
}

/* The curves grow while one looks on. */
bool drv_report_epoch(struct drv_training *t)
{
	const char *plot = t->options->plot;
	if (t->options->log && !log_write(t)) return false;
	if (!drv_live_epoch(t)) return false;
	return !plot || !drv_plot_is_live(plot, drv_out(t->common)) || draw(t);
}

/* Reports the rest; the results only if they are requested. */
bool drv_report_end(struct drv_training *t, bool write)
{
	const char *plot = t->options->plot;
	bool ok = true;
	/* Text below all lines. */
	if (write && plot && t->done && !strcmp(plot, DRV_PLOT_TEXT)) ok = draw(t) && ok;
	return (!write || write_json(t)) && ok;
}
