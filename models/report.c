/* Results as JSON, for machines. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "common.h"

/* A number; null where JSON has none (a loss that is not finite). */
json_t *drv_json_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

/* An object that says what ran, on what. */
json_t *drv_json_new(const char *program, const struct drv_options *o)
{
	json_t *devices = json_array();
	for (int i = 0; i < o->ndevices; i++) {
		char name[SL_DEVICE_NAME_MAX];
		json_array_append_new(devices, json_string(sl_device_name(o->devices[i], name)));
	}
	return json_pack("{s:s, s:s, s:o, s:I}", "program", program, "version", sl_version(), "devices", devices,
	                 "seed", (json_int_t)o->seed);
}

static json_t *stats(void)
{
	struct sl_stats s;
	sl_stats_get(&s);
	return json_pack("{s:I, s:I, s:I, s:f, s:I, s:I}", "ops", (json_int_t)s.ops, "tasks", (json_int_t)s.segments,
	                 "stalls", (json_int_t)s.stalls, "stall_seconds", s.stall_seconds, "peak_tasks",
	                 (json_int_t)s.peak_tasks, "peak_bytes", (json_int_t)s.peak_bytes);
}

/* Writes the results where --json said, with the runtime's statistics, and frees them. */
bool drv_json_write(const struct drv_options *o, json_t *results)
{
	bool ok = true;
	if (o->json) {
		bool standard = strcmp(o->json, "-") == 0;
		FILE *file = standard ? stdout : fopen(o->json, "w");
		json_object_set_new(results, "stats", stats());
		ok = file && json_dumpf(results, file, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0 &&
		     fputc('\n', file) != EOF;
		if (file) ok = (standard ? fflush(file) : fclose(file)) == 0 && ok;
		if (!ok) drv_error("cannot write %s: %s", standard ? "standard output" : o->json, strerror(errno));
	}
	json_decref(results);
	return ok;
}
