/* sl-info: describes this machine and what Starling uses of it.
 *
 * It links with the whole library (libcore), not only with the exported part: it
 * reports how cores are assigned to teams, which kernels were chosen, and which operations exist. */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "../../models/driver/common.h"
#include "info.h"
#include "starling/own.h"

static const struct section {
	const char *name;
	json_t *(*make)(void);
} sections[] = {
        {"machine", info_host},      {"cores", info_cores},
        {"devices", info_devices},   {"memory", info_memory},
        {"links", info_links},       {"kernels", info_kernels},
        {"data types", info_types},  {"libraries", info_libraries},
        {"settings", info_settings}, {"environment", info_environment},
        {"hints", info_hints},
};
enum { SECTIONS = sizeof sections / sizeof *sections, MAX_COLUMNS = 8 };

struct options {
	struct drv_options common;
	bool ops;
	const char *library; /* of custom operations */
};

/* ---- for people -------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *v, char text[64])
{
	if (json_is_string(v)) return json_string_value(v);
	if (json_is_integer(v)) snprintf(text, 64, "%lld", (long long)json_integer_value(v));
	else if (json_is_real(v)) snprintf(text, 64, "%.1f", json_real_value(v));
	else snprintf(text, 64, "%s", json_is_true(v) ? "yes" : json_is_false(v) ? "no" : "-");
	return text;
}

static void print_object(json_t *object)
{
	const char *key;
	json_t *value;
	char text[64];
	int width = 0;
	json_object_foreach(object, key, value) if ((int)strlen(key) > width) width = (int)strlen(key);
	if (!json_object_size(object)) puts("  none");
	json_object_foreach(object, key, value) printf("  %-*s  %s\n", width, key, text_of(value, text));
}

static void print_row(json_t *row, bool keys, const int *width)
{
	const char *key;
	json_t *value;
	char text[64];
	int c = 0;
	json_object_foreach(row, key, value) printf("  %-*s", width[c++], keys ? key : text_of(value, text));
	putchar('\n');
}

static void print_table(json_t *rows)
{
	int width[MAX_COLUMNS] = {0};
	size_t i;
	json_t *row, *value;
	const char *key;
	char text[64];
	json_array_foreach(rows, i, row)
	{
		int c = 0;
		json_object_foreach(row, key, value)
		{
			int most = (int)strlen(key), n = (int)strlen(text_of(value, text));
			if (n > most) most = n;
			if (most > width[c]) width[c] = most;
			c++;
		}
	}
	json_array_foreach(rows, i, row)
	{
		if (i == 0) print_row(row, true, width);
		print_row(row, false, width);
	}
	if (json_array_size(rows) == 0) puts("  none");
}

static void print_sections(json_t *all)
{
	for (int i = 0; i < SECTIONS; i++) {
		json_t *section = json_object_get(all, sections[i].name);
		printf("%s%s\n", i ? "\n" : "", sections[i].name);
		if (json_is_array(section)) print_table(section);
		else print_object(section);
	}
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

static json_t *collect(bool ops)
{
	json_t *all = json_object();
	drv_json_stamp(all);
	if (ops) json_object_set_new(all, "operations", info_ops());
	for (int i = 0; i < SECTIONS && !ops; i++) json_object_set_new(all, sections[i].name, sections[i].make());
	return all;
}

/* Writes the JSON if it is requested, otherwise prints. */
static int tell(const struct options *o)
{
	json_t *all = collect(o->ops);
	bool ok = true;
	if (o->common.json) ok = drv_json_put(o->common.json, all);
	else if (o->ops) info_print_ops(json_object_get(all, "operations"));
	else print_sections(all);
	json_decref(all);
	return ok ? DRV_OK : DRV_ERROR;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

enum { KEY_OPS = 0x200, KEY_LOAD, KEY_JSON };

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case KEY_OPS: o->ops = true; return 0;
	case KEY_LOAD: o->library = arg; return 0;
	case KEY_JSON: o->common.json = arg; return 0;
	default: return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option options[] = {
        {"ops", KEY_OPS, NULL, 0, "List the operations instead: inputs, results, attributes", 1},
        {"load", KEY_LOAD, "LIBRARY", 0, "First load a shared library that registers operations (sl_op_register)", 1},
        {"json", KEY_JSON, "FILE", 0, "Write the report as JSON instead of printing it; - is standard output", 1},
        {0},
};

static const struct argp argp = {
        .options = options,
        .parser = parse_option,
        .doc = "Reports what Starling finds on this machine: the CPU, devices, memory, links and their measured speed, "
               "the kernels "
               "chosen for this CPU and why, how each data type is computed, libraries, settings, the folder of the "
               "calibration.\v"
               "As for all programs, the result depends on the environment: STARPU_NCPU, STARPU_NCUDA, STARPU_SCHED, "
               "SL_GEMM and others.\n\n"
               "Examples:\n  sl-info\n  STARPU_NCPU=2 sl-info --json machine.json\n  sl-info --ops\n\n"
               "Exit status: 0 if all went well, 1 after an error, 2 if the command line is wrong.",
};

/* The functions that such a library calls must be in this program. */
static const sl_op *(*const registers)(const char *, struct sl_op_def) __attribute__((used)) = sl_op_register_at;

static bool load(const char *library)
{
	if (!library || dlopen(library, RTLD_NOW)) return true;
	fprintf(stderr, "sl-info: %s\n", dlerror());
	return false;
}

int main(int argc, char **argv)
{
	struct options o = {.ops = false};
	drv_parse(&argp, argc, argv, &o);
	if (!load(o.library)) return DRV_ERROR;
	if (o.ops) return drv_stop(&o.common, tell(&o)); /* the list needs no engine */
	return drv_stop(&o.common, drv_start(&o.common) ? tell(&o) : DRV_ERROR);
}
