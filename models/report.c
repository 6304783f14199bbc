/* Results: JSON for machines, curves drawn by gnuplot for people. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common.h"

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

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

/* ---- curves ----------------------------------------------------------------------------------------------------- */

extern char **environ;

static const char *extension(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot ? dot + 1 : "";
}

/* Whether the name says how to draw: it ends in .svg or .png. */
bool drv_plot_path(const char *path)
{
	return strcmp(extension(path), "svg") == 0 || strcmp(extension(path), "png") == 0;
}

/* Starts gnuplot in a process group of its own: it is to finish the picture when SIGINT ends the training. */
static bool start_gnuplot(pid_t *pid, FILE *script)
{
	char *const run[] = {"gnuplot", script ? "-" : "--version", NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	if (posix_spawn_file_actions_init(&actions) || posix_spawnattr_init(&attributes)) return false;
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	if (script)
		posix_spawn_file_actions_adddup2(&actions, fileno(script), STDIN_FILENO);
	else
		posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	bool ok = posix_spawnp(pid, run[0], &actions, &attributes, run, environ) == 0;
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return ok;
}

/* Runs gnuplot on a script, or asks it for its version with none.  Returns its exit status, -1 if there was none. */
static int gnuplot(FILE *script)
{
	pid_t pid;
	int status;
	if (!start_gnuplot(&pid, script)) return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR) return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Whether a plot can be drawn, found out before the work is done; says why not. */
bool drv_plot_ready(const char *path)
{
	if (!drv_writable(path)) return false;
	int status = gnuplot(NULL);
	if (status == 0) return true;
	drv_error("--plot needs gnuplot, which %s (Debian's package is gnuplot-nox)",
	          status < 0 || status == 127 ? "is not there" : "does not work");
	return false;
}

/* Text within double quotes of gnuplot. */
static void put_quoted(FILE *f, const char *text)
{
	fputc('"', f);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\') fputc('\\', f);
		fputc(*text, f);
	}
	fputc('"', f);
}

static void put_data(FILE *f, const struct drv_plot *p)
{
	fputs("$data << END\n", f);
	for (int e = 0; e < p->epochs; e++) {
		fprintf(f, "%d", e + 1);
		for (int c = 0; c < p->curves; c++) {
			double v = p->values[c * p->epochs + e];
			if (isfinite(v))
				fprintf(f, " %.9g", v);
			else
				fputs(" ?", f);
		}
		fputc('\n', f);
	}
	fputs("END\n", f);
}

static void put_script(FILE *f, const struct drv_plot *p, const char *output)
{
	bool svg = strcmp(extension(p->path), "svg") == 0;
	fprintf(f, "set terminal %s\nset encoding utf8\nset output ",
	        svg ? "svg size 640,440 dynamic background '#ffffff'" : "png size 640,440");
	put_quoted(f, output);
	fputs("\nset title ", f);
	put_quoted(f, p->title);
	fputs(" noenhanced\nset xlabel \"epoch\"\nset grid\nset key outside bottom center horizontal noenhanced\n"
	      "set datafile missing \"?\"\n"
	      "set linetype 1 lc rgb '#1f77b4' dt 1\nset linetype 2 lc rgb '#bf00bf' dt 2\nset linetype 3 lc rgb "
	      "'#2ca02c' dt 4\n",
	      f);
	fprintf(f, "set xrange [1:%d]\nset yrange [0:*]\nset xtics %d\n", p->last > 1 ? p->last : 2,
	        1 + (p->last - 1) / 10);
	put_data(f, p);
	for (int c = 0; c < p->curves; c++) {
		fprintf(f, "%s $data using 1:($%d) with linespoints lt %d lw 2 pt %d ps 0.5 title ", c ? "," : "plot",
		        c + 2, c + 1, 5 + 2 * c);
		put_quoted(f, p->names[c]);
	}
	fputc('\n', f);
}

/* Draws the curves.  The picture is replaced as a whole: who looks at it while it grows never sees half of one. */
bool drv_plot_write(const struct drv_plot *p)
{
	char *output = NULL;
	FILE *script = tmpfile();
	bool ok = script && asprintf(&output, "%s.new", p->path) >= 0;
	if (ok) {
		put_script(script, p, output);
		rewind(script);
		ok = !ferror(script) && gnuplot(script) == 0 && rename(output, p->path) == 0;
		if (!ok) unlink(output);
	}
	if (script) fclose(script);
	free(output);
	if (!ok) drv_error("cannot draw %s", p->path);
	return ok;
}
