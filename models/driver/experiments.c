/* Runs the experiments of a driver: the chosen ones, their measurements, their results. */
#include <stdarg.h>
#include <string.h>

#include "experiments.h"

/* ---- measuring --------------------------------------------------------------------------------------------------- */

void drv_title(const struct drv_bench *b, const char *format, ...)
{
	char text[256];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	drv_print(b->common, "\n%s\n", text);
}

void drv_begin(struct drv_bench *b)
{
	b->start = drv_now();
}

/* Notes a figure for --json. */
void drv_note(struct drv_bench *b, const char *key, double value)
{
	json_object_set_new(b->results, key, drv_json_real(value));
}

/* Ends what drv_begin began, or reports the time so far: prints "text: 0.0008 sec". */
void drv_end(struct drv_bench *b, const char *key, const char *text)
{
	double seconds = drv_now() - b->start;
	drv_print(b->common, "%s: %.4f sec\n", text, seconds);
	drv_note(b, key, seconds);
}

/* ---- running them ------------------------------------------------------------------------------------------------ */

/* Runs the chosen ones and writes the results; returns the exit status. */
int drv_run_experiments(const struct drv_experiments *e, const void *options)
{
	const struct drv_options *common = e->common;
	struct drv_bench b = {.common = common, .precision = &e->precision, .options = options};
	json_t *results = drv_json_new(e->program, common), *all = json_object();
	json_object_set_new(results, "dtype", json_string(drv_precision_name(&e->precision)));
	json_object_set_new(results, "experiments", all);
	drv_precision_print(common, &e->precision);
	bool ok = true;
	for (int i = 0; i < e->count && ok && !drv_interrupted(); i++) {
		if (e->chosen && !(e->chosen & 1u << i)) continue;
		b.results = json_object();
		json_object_set_new(all, e->list[i].name, b.results);
		SL_AUTOCAST(e->precision.dtype) e->list[i].run(&b);
		ok = drv_sync() && !b.failed;
	}
	if (!ok) json_decref(results);
	else ok = drv_json_write(common, results);
	return !ok ? DRV_ERROR : drv_interrupted() ? drv_interrupted_status() : DRV_OK;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

static void choose(struct argp_state *state, struct drv_experiments *e, const char *name)
{
	for (int i = 0; i < e->count; i++) {
		if (strcmp(name, e->list[i].name) != 0) continue;
		e->chosen |= 1u << i;
		return;
	}
	argp_error(state, "there is no experiment \"%s\"; see --help", name);
}

enum { KEY_DTYPE = 0x300 };

static const struct argp_option options[] = {
        {"dtype", KEY_DTYPE, "TYPE", 0, DRV_DTYPE_HELP ")", 1},
        {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct drv_experiments *e = state->input;
	switch (key) {
	case KEY_DTYPE:
		drv_precision_parse(state, arg, &e->precision);
		e->common->tf32 = e->precision.tf32;
		return 0;
	case ARGP_KEY_ARG: choose(state, e, arg); return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

/* The experiments' names, where --help lists them. */
static char *help_filter(int key, const char *text, void *input)
{
	const struct drv_experiments *e = input;
	if (key != ARGP_KEY_HELP_POST_DOC || !e) return (char *)text;
	char *list = NULL;
	size_t size;
	FILE *f = open_memstream(&list, &size);
	if (!f) return (char *)text;
	fprintf(f, "Experiments, in their order:\n");
	for (int i = 0; i < e->count; i++) fprintf(f, "  %-11s %s\n", e->list[i].name, e->list[i].doc);
	fclose(f);
	return list;
}

static const struct argp experiments_argp = {.options = options,
                                             .parser = parse_option,
                                             .args_doc = "[EXPERIMENT...]",
                                             .help_filter = help_filter,
                                             .doc = "\v"};
const struct argp_child drv_experiments_children[] = {{&drv_argp, 0, NULL, 0}, {&experiments_argp, 0, NULL, 0}, {0}};

void drv_experiments_init(struct argp_state *state, struct drv_experiments *e)
{
	e->precision.dtype = SL_FLOAT32;
	state->child_inputs[0] = e->common;
	state->child_inputs[1] = e;
}
