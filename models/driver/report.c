/* Results as JSON. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

/* A number; null where JSON has none (a loss that is not finite). */
json_t *drv_json_real(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

/* Now, as in 2025-01-31T12:00:00Z. */
static json_t *date(void)
{
	time_t now = time(NULL);
	struct tm utc;
	char text[32] = "";
	if (gmtime_r(&now, &utc)) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	return json_string(text);
}

/* Null if the machine's name is no UTF-8. */
static json_t *host(void)
{
	char name[256] = "";
	if (gethostname(name, sizeof name - 1)) return json_null();
	json_t *text = json_string(name);
	return text ? text : json_null();
}

/* The origin of all results: the version of Starling, time, machine. */
void drv_json_stamp(json_t *object)
{
	json_object_set_new(object, "version", json_string(sl_version()));
	json_object_set_new(object, "commit", drv_commit() ? json_string(drv_commit()) : json_null());
	json_object_set_new(object, "date", date());
	json_object_set_new(object, "host", host());
}

/* An object that describes the run: program, machine, place and time; doc/json.md lists its fields. */
json_t *drv_json_new(const char *program, const struct drv_options *o)
{
	json_t *devices = json_array();
	for (int i = 0; i < o->ndevices; i++) {
		char name[SL_DEVICE_NAME_MAX];
		json_array_append_new(devices, json_string(sl_device_name(o->devices[i], name)));
	}
	json_t *object = json_pack("{s:s}", "program", program);
	drv_json_stamp(object);
	json_object_update_new(object, json_pack("{s:o, s:I}", "devices", devices, "seed", (json_int_t)o->seed));
	return object;
}

static json_t *stats(void)
{
	struct sl_stats s;
	sl_stats_get(&s);
	json_t *json =
	        json_pack("{s:I, s:I, s:I, s:f, s:I, s:I}", "ops", (json_int_t)s.ops, "tasks", (json_int_t)s.segments,
	                  "stalls", (json_int_t)s.stalls, "stall_seconds", s.stall_seconds, "peak_tasks",
	                  (json_int_t)s.peak_tasks, "peak_bytes", (json_int_t)s.peak_bytes);
	struct sl_energy e;
	sl_energy_get(&e);
	json_object_update_new(
	        json, json_pack("{s:o, s:o}", "cpu_joules", drv_json_real(e.cpu), "gpu_joules", drv_json_real(e.gpu)));
	if (s.loss_scale != 0)
		json_object_update_new(json, json_pack("{s:f, s:I}", "loss_scale", s.loss_scale, "overflows",
		                                       (json_int_t)s.overflows));
	return json;
}

static bool put(FILE *out, const json_t *value)
{
	return json_dumpf(value, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) == 0 && fputc('\n', out) != EOF;
}

/* Writes a value to a file, which is replaced as a whole, or (-) to standard output; says why not. */
bool drv_json_put(const char *path, const json_t *value)
{
	bool standard = strcmp(path, "-") == 0;
	sl_file *file = standard ? NULL : drv_file_begin(path);
	if (!standard && !file) return false;
	bool ok = put(standard ? stdout : sl_file_stream(file), value);
	if (!standard) return drv_file_end(file, path);
	ok = fflush(stdout) == 0 && ok;
	if (!ok) drv_error("cannot write standard output: %s", strerror(errno));
	return ok;
}

/* Writes the results where --json said, with the runtime's statistics, and frees them. */
bool drv_json_write(const struct drv_options *o, json_t *results)
{
	json_object_set_new(results, "stats", stats());
	bool ok = !o->json || drv_json_put(o->json, results);
	json_decref(results);
	return ok;
}

/* Writes the results; the exit status of a driver that went well or not. */
int drv_finish(const struct drv_options *o, json_t *results, bool ok)
{
	if (!drv_json_write(o, results)) ok = false;
	return drv_interrupted() ? drv_interrupted_status() : ok ? DRV_OK : DRV_ERROR;
}
