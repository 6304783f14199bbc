/* --health: writes the state of a run to a file.  A thread writes it, also if the run is stuck: then the file is new, and
 * seconds_since_step grows. */
#include "health.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common.h"

enum { SECONDS = 10, TEXT = 512 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	const char *path, *state;
	bool over;
	time_t started, checkpoint;   /* checkpoint: 0: none yet */
	int64_t steps, samples;       /* so far; */
	int64_t was, samples_was;     /* when the file was written last */
	double began, stepped, wrote; /* by drv_now */
	double loss;
	int64_t failed_checkpoints, errors;
	char error[TEXT];
} health = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

/* ---- contents ---------------------------------------------------------------------------------------------------- */

static double resident_bytes(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");
	bool ok = f && fscanf(f, "%*s %ld", &pages) == 1;
	if (f) fclose(f);
	return ok ? (double)pages * (double)sysconf(_SC_PAGESIZE) : NAN;
}

static double per_second(int64_t now, int64_t before, double seconds)
{
	return seconds > 0 ? (double)(now - before) / seconds : 0;
}

/* X(key, help, value) for each number; NAN: not known. */
#define NUMBERS(X)                                                                                                     \
	X(uptime_seconds, "Seconds since the start", now - health.began)                                               \
	X(step, "Training steps so far", (double)health.steps)                                                         \
	X(steps_per_second, "Steps a second, recently", per_second(health.steps, health.was, seconds))                 \
	X(samples_per_second, "Images or bytes a second, recently",                                                    \
	  per_second(health.samples, health.samples_was, seconds))                                                     \
	X(seconds_since_step, "Seconds since the last step", now - health.stepped)                                     \
	X(loss, "Most recent loss", health.loss)                                                                       \
	X(tensor_bytes, "Bytes held by tensors and pools", (double)stats.bytes)                                        \
	X(resident_bytes, "Main memory of the process", resident_bytes())                                              \
	X(pending_tasks, "Tasks in flight", (double)stats.pending_tasks)                                               \
	X(checkpoint_time, "When the last checkpoint was written, in seconds since 1970",                              \
	  health.checkpoint ? (double)health.checkpoint : NAN)                                                         \
	X(failed_checkpoints, "Checkpoints that could not be written", (double)health.failed_checkpoints)              \
	X(errors, "Errors reported so far", (double)health.errors)

static void write_prometheus(FILE *f, double now, double seconds, const struct sl_stats stats)
{
	const char *program = program_invocation_short_name;
#define X(key, help, value)                                                                                            \
	if (isfinite(value))                                                                                           \
		fprintf(f,                                                                                             \
		        "# HELP starling_" #key " " help ".\n# TYPE starling_" #key " gauge\nstarling_" #key           \
		        "{program=\"%s\"} %.15g\n",                                                                    \
		        program, (double)(value));
	NUMBERS(X)
#undef X
	fprintf(f,
	        "# HELP starling_up 1 while the run continues.\n# TYPE starling_up gauge\nstarling_up{program=\"%s\"} "
	        "%d\n",
	        program, !strcmp(health.state, "running"));
}

static json_t *time_text(time_t t)
{
	char text[32];
	struct tm utc;
	if (!t || !gmtime_r(&t, &utc)) return json_null();
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
	return json_string(text);
}

static void write_json(FILE *f, double now, double seconds, const struct sl_stats stats)
{
	json_t *all = json_pack("{s:s, s:s, s:i, s:s, s:o, s:o}", "program", program_invocation_short_name, "version",
	                        sl_version(), "pid", (int)getpid(), "state", health.state, "started",
	                        time_text(health.started), "updated", time_text(time(NULL)));
#define X(key, help, value) json_object_set_new(all, #key, drv_json_real(value));
	NUMBERS(X)
#undef X
	json_object_set_new(all, "last_error", health.errors ? json_string(health.error) : json_null());
	json_dumpf(all, f, JSON_INDENT(2));
	fputc('\n', f);
	json_decref(all);
}

/* ---- when -------------------------------------------------------------------------------------------------------- */

static bool is_prometheus(void)
{
	size_t n = strlen(health.path);
	return n > 5 && !strcmp(health.path + n - 5, ".prom");
}

/* Locked.  The file is replaced as a whole: a reader sees the old one or the new one. */
static bool write_file(void)
{
	struct sl_stats stats;
	double now = drv_now(), seconds = now - health.wrote;
	sl_file *f = sl_file_begin(health.path);
	if (!f) return false;
	sl_stats_get(&stats);
	if (is_prometheus()) write_prometheus(sl_file_stream(f), now, seconds, stats);
	else write_json(sl_file_stream(f), now, seconds, stats);
	health.wrote = now;
	health.was = health.steps;
	health.samples_was = health.samples;
	return sl_file_commit(f) == SL_OK;
}

/* A disk that is full for a while does not end a run. */
static void *write_again(void *unused)
{
	pthread_mutex_lock(&health.lock);
	while (!health.over) {
		struct timespec until;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += SECONDS;
		if (pthread_cond_timedwait(&health.wake, &health.lock, &until) == 0 || health.over) continue;
		if (!write_file()) sl_error_clear();
	}
	pthread_mutex_unlock(&health.lock);
	return unused;
}

static bool complain(void)
{
	char text[TEXT];
	snprintf(text, sizeof text, "%s", sl_error_message());
	sl_error_clear();
	health.path = NULL; /* drv_error would wait for the lock */
	drv_error("--health: %s", text);
	return false;
}

bool drv_health_begin(const char *path)
{
	if (!path) return true;
	health.path = path;
	health.state = "running";
	health.loss = NAN;
	health.started = time(NULL);
	health.began = health.stepped = health.wrote = drv_now();
	if (!write_file()) return complain();
	if (!pthread_create(&health.thread, NULL, write_again, NULL)) return true;
	health.path = NULL;
	drv_error("--health: no thread to write %s", path);
	return false;
}

bool drv_health_end(int status)
{
	if (!health.path) return true;
	pthread_mutex_lock(&health.lock);
	health.over = true;
	health.state = status == DRV_OK ? "finished" : status > DRV_INTERRUPTED ? "interrupted" : "failed";
	pthread_cond_signal(&health.wake);
	pthread_mutex_unlock(&health.lock);
	pthread_join(health.thread, NULL);
	bool ok = write_file();
	if (!ok) return complain();
	health.path = NULL;
	return true;
}

/* ---- the run's reports ------------------------------------------------------------------------------------------- */

void drv_health_step(int64_t steps, int64_t samples)
{
	if (!health.path) return;
	pthread_mutex_lock(&health.lock);
	health.stepped = drv_now();
	health.steps = steps;
	health.samples += samples;
	pthread_mutex_unlock(&health.lock);
}

void drv_health_loss(double loss)
{
	if (!health.path) return;
	pthread_mutex_lock(&health.lock);
	health.loss = loss;
	pthread_mutex_unlock(&health.lock);
}

void drv_health_checkpoint(bool written)
{
	if (!health.path) return;
	pthread_mutex_lock(&health.lock);
	if (written) health.checkpoint = time(NULL);
	else health.failed_checkpoints++;
	pthread_mutex_unlock(&health.lock);
}

void drv_health_error(const char *format, va_list args)
{
	if (!health.path) return;
	pthread_mutex_lock(&health.lock);
	vsnprintf(health.error, sizeof health.error, format, args);
	health.errors++;
	pthread_mutex_unlock(&health.lock);
}
