/* sl-plot: compares training runs by the JSON files of drivers: loss and accuracy over epochs and over seconds, as a table
 * and as plots. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../models/driver/common.h"

enum { MAX_RUNS = 16 };

/* X(name) for the figures of an epoch that are drawn. */
#define FIGURES(X) X(train_loss) X(train_accuracy) X(test_accuracy)

struct run {
	char *name;         /* the file's, without folder and extension */
	char *train, *test; /* names of its curves of accuracy */
	int epochs;
	double *epoch, *seconds; /* seconds: of training, up to the end of each epoch */
#define X(name) double *name;
	FIGURES(X)
#undef X
};

struct options {
	const char *output;
	const char *files[MAX_RUNS];
	int nfiles;
	struct run runs[MAX_RUNS];
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool bad(const char *path, const char *why)
{
	drv_error("%s: %s", path, why);
	return false;
}

/* The file's name without folder and .json, as a picture and a line can show it. */
static char *stem(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = strlen(name);
	if (n > 5 && !strcmp(name + n - 5, ".json")) n -= 5;
	char *text = strndup(name, n);
	json_t *valid = text ? json_string(text) : NULL;
	for (char *p = text; p && *p; p++)
		if (iscntrl((unsigned char)*p) || (!valid && *p & 0x80)) *p = '?';
	json_decref(valid);
	return text;
}

static bool make_names(struct run *r, const char *path)
{
	r->name = stem(path);
	if (r->name && asprintf(&r->train, "%s, training", r->name) < 0) r->train = NULL;
	if (r->name && asprintf(&r->test, "%s, test", r->name) < 0) r->test = NULL;
	return (r->train && r->test) || bad(path, "no memory");
}

/* A number, or NAN where the driver wrote null: a loss that was not finite. */
static bool number(const json_t *epoch, const char *name, double *value)
{
	const json_t *v = json_object_get(epoch, name);
	*value = json_is_number(v) ? json_number_value(v) : NAN;
	return json_is_number(v) || json_is_null(v);
}

static bool read_epochs(struct run *r, const char *path, const json_t *list)
{
	double sum = 0, seconds;
	for (int i = 0; i < r->epochs; i++) {
		const json_t *e = json_array_get(list, (size_t)i);
		bool ok = number(e, "epoch", &r->epoch[i]) && number(e, "seconds", &seconds);
#define X(name) ok = ok && number(e, #name, &r->name[i]);
		FIGURES(X)
#undef X
		ok = ok && r->epoch[i] >= 1 && r->epoch[i] <= 1e9 && !(seconds < 0);
		if (!ok) return bad(path, "an epoch lacks its figures: not written by a driver that trains");
		r->seconds[i] = sum += seconds;
	}
	return true;
}

static bool read_root(struct run *r, const char *path, const json_t *root)
{
	const json_t *list = json_object_get(root, "epochs");
	if (!json_is_string(json_object_get(root, "program")) || !json_is_array(list))
		return bad(path, "holds no epochs: not written by a driver that trains (--json)");
	if (json_array_size(list) == 0) return bad(path, "the run ended before its first epoch did");
	r->epochs = (int)json_array_size(list);
	size_t n = (size_t)r->epochs;
	r->epoch = calloc(n, sizeof(double));
	r->seconds = calloc(n, sizeof(double));
	bool ok = r->epoch && r->seconds;
#define X(name) ok = (r->name = calloc(n, sizeof(double))) && ok;
	FIGURES(X)
#undef X
	return ok ? read_epochs(r, path, list) : bad(path, "no memory");
}

static bool read_run(struct run *r, const char *path)
{
	json_error_t error;
	json_t *root = json_load_file(path, 0, &error);
	if (!root) {
		if (error.line > 0) drv_error("%s:%d:%d: is not JSON: %s", path, error.line, error.column, error.text);
		else drv_error("%s", error.text); /* names the file */
		return false;
	}
	bool ok = make_names(r, path) && read_root(r, path, root);
	json_decref(root);
	return ok;
}

static void free_run(struct run *r)
{
	free(r->name);
	free(r->train);
	free(r->test);
	free(r->epoch);
	free(r->seconds);
#define X(name) free(r->name);
	FIGURES(X)
#undef X
}

/* ---- telling ----------------------------------------------------------------------------------------------------- */

static double best(const double *values, int n)
{
	double most = NAN;
	for (int i = 0; i < n; i++) most = fmax(most, values[i]);
	return most;
}

static bool print_table(const struct options *o)
{
	int width = 3;
	for (int i = 0; i < o->nfiles; i++)
		if ((int)strlen(o->runs[i].name) > width) width = (int)strlen(o->runs[i].name);
	printf("%-*s  epochs  seconds  train loss  test acc  best test acc\n", width, "run");
	for (int i = 0; i < o->nfiles; i++) {
		const struct run *r = &o->runs[i];
		int last = r->epochs - 1;
		printf("%-*s  %6d  %7.1f  %10.4f  %8.4f  %13.4f\n", width, r->name, r->epochs, r->seconds[last],
		       r->train_loss[last], r->test_accuracy[last], best(r->test_accuracy, r->epochs));
	}
	if (!fflush(stdout)) return true;
	drv_error("standard output: %s", strerror(errno));
	return false;
}

/* The longest run's. */
static double last_x(const struct options *o, bool by_time)
{
	double last = by_time ? 0 : 2;
	for (int i = 0; i < o->nfiles; i++) {
		const struct run *r = &o->runs[i];
		last = fmax(last, by_time ? r->seconds[r->epochs - 1] : r->epoch[r->epochs - 1]);
	}
	return last > 0 ? last : 1;
}

/* Curves of loss, then of accuracy, over epochs or seconds; curves: 3 a run. */
static void add_panels(const struct options *o, bool by_time, struct drv_curve *curves, struct drv_panel *panels)
{
	struct drv_curve *losses = curves, *accuracies = curves + o->nfiles;
	for (int i = 0; i < o->nfiles; i++) {
		const struct run *r = &o->runs[i];
		struct drv_curve c = {.x = by_time ? r->seconds : r->epoch, .points = r->epochs, .colour = i};
		losses[i] = accuracies[2 * i] = accuracies[2 * i + 1] = c;
		losses[i].name = r->name;
		losses[i].y = r->train_loss;
		accuracies[2 * i].name = r->test;
		accuracies[2 * i].y = r->test_accuracy;
		accuracies[2 * i + 1].name = r->train;
		accuracies[2 * i + 1].y = r->train_accuracy;
		accuracies[2 * i + 1].dash = 1;
	}
	struct drv_panel panel = {.xlabel = by_time ? "seconds of training" : "epoch",
	                          .first = by_time ? 0 : 1,
	                          .last = last_x(o, by_time),
	                          .counted = !by_time};
	panels[0] = panels[1] = panel;
	panels[0].title = "training loss";
	panels[0].curves = losses;
	panels[0].count = o->nfiles;
	panels[1].title = "accuracy";
	panels[1].curves = accuracies;
	panels[1].count = 2 * o->nfiles;
}

static bool draw(const struct options *o)
{
	struct drv_curve curves[2][3 * MAX_RUNS];
	struct drv_panel panels[4];
	for (int by_time = 0; by_time < 2; by_time++) add_panels(o, by_time, curves[by_time], panels + 2 * by_time);
	struct drv_figure figure = {.path = o->output, .panels = panels, .count = 4, .columns = 2};
	return drv_plot_write(&figure, stdout);
}

static bool compare(struct options *o)
{
	for (int i = 0; i < o->nfiles; i++)
		if (!read_run(&o->runs[i], o->files[i])) return false;
	if (!print_table(o)) return false;
	if (o->output) return draw(o);
	/* Not requested: the table is enough without it. */
	o->output = DRV_PLOT_TEXT;
	return !drv_plot_ready(o->output) || draw(o);
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case 'o':
		if (!drv_plot_path(arg)) argp_error(state, "--output: \"%s\" must be " DRV_PLOT_PATHS, arg);
		o->output = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (o->nfiles == MAX_RUNS) argp_error(state, "at most %d runs", MAX_RUNS);
		o->files[o->nfiles++] = arg;
		return 0;
	case ARGP_KEY_NO_ARGS: argp_error(state, "no runs are given"); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
        {"output", 'o', "FILE", 0,
         "Draw to FILE.svg or FILE.png; - as text (the default, if gnuplot is installed); window", 1},
        {0},
};

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .args_doc = "RUN.json...",
        .doc = "Compares training runs: loss and accuracy over epochs and over seconds.\v"
               "RUN.json is a file that lenet, mlp or resnet18 wrote with --json.  Prints a line for each run, then "
               "draws "
               "with gnuplot if it is installed.\n\n"
               "  mlp --mode eager --json eager.json\n"
               "  mlp --mode step --json step.json\n"
               "  sl-plot eager.json step.json -o modes.svg\n\n"
               "Exit status: 0 if all went well, 1 after an error, 2 if the command line is wrong.",
};

int main(int argc, char **argv)
{
	struct options o = {0};
	drv_parse(&argp, argc, argv, &o);
	bool ok = (!o.output || drv_plot_ready(o.output)) && compare(&o);
	for (int i = 0; i < o.nfiles; i++) free_run(&o.runs[i]);
	return fflush(stdout) || !ok ? DRV_ERROR : DRV_OK;
}
