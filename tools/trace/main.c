/* sl-trace-report: writes sl-trace's summary, picture and Perfetto file from the output of starpu_fxt_tool. */
#include <argp.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "trace.h"

/* ---- shared by all readers --------------------------------------------------------------------------------------- */

void fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fputs("sl-trace-report: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* Room for 1, 2, 4, 8 … items. */
void *list_add(void *list, int *count, size_t size)
{
	int n = *count;
	if (!(n & (n - 1))) {
		list = reallocarray(list, n ? 2 * (size_t)n : 1, size);
		if (!list) fail("no memory for more than %d items", n);
	}
	memset((char *)list + (size_t)n * size, 0, size);
	++*count;
	return list;
}

/* Names may be no UTF-8, and cut ones end amid a character: JSON takes neither. */
char *text_copy(const char *text)
{
	char *copy = strdup(text ? text : "");
	json_t *valid = copy ? json_string(copy) : NULL;
	if (!copy) fail("no memory");
	for (char *p = copy; !valid && *p; p++)
		if (*p & 0x80) *p = '?';
	json_decref(valid);
	return copy;
}

FILE *open_in(const char *folder, const char *name, bool needed)
{
	char *path = NULL;
	if (asprintf(&path, "%s/%s", folder, name) < 0) fail("no memory");
	FILE *f = fopen(path, "r");
	if (!f && needed) fail("%s: cannot be read: %m", path);
	free(path);
	return f;
}

/* ---- the command line -------------------------------------------------------------------------------------------- */

struct options {
	const char *folder, *perfetto, *picture, *dag;
	long iteration;
	bool quiet, expanded;
};

static const struct argp_option options[] = {
        {"perfetto", 'p', "FILE", 0, "Write the trace to FILE, for ui.perfetto.dev or chrome://tracing", 0},
        {"picture", 's', "FILE", 0, "Draw the trace in FILE, as SVG", 0},
        {"dag", 'd', "FILE", 0, "Write the tasks of an iteration to FILE, for Graphviz", 0},
        {"iteration", 'i', "N", 0, "Which one (default: one that took about as long as most)", 0},
        {"expanded", 'x', NULL, 0, "Name the layers of compiled tasks in it", 0},
        {"quiet", 'q', NULL, 0, "Print no summary", 0},
        {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	if (key == 'p') o->perfetto = arg;
	else if (key == 's') o->picture = arg;
	else if (key == 'd') o->dag = arg;
	else if (key == 'i') o->iteration = atol(arg);
	else if (key == 'x') o->expanded = true;
	else if (key == 'q') o->quiet = true;
	else if (key == ARGP_KEY_ARG && !o->folder) o->folder = arg;
	else if (key == ARGP_KEY_ARG) argp_error(state, "name one folder only");
	else if (key == ARGP_KEY_END && !o->folder) argp_error(state, "which folder?");
	else if (key != ARGP_KEY_END) return ARGP_ERR_UNKNOWN;
	return 0;
}

static const struct argp argp = {
        options,
        parse,
        "FOLDER",
        "Summarise the trace that starpu_fxt_tool has left in FOLDER (tasks.rec, paje.trace; calls.tsv if Starling "
        "wrote it).\v"
        "Exit status: 0 if all went well, 1 if the trace cannot be read, 2 if the command line is wrong.",
        NULL,
        NULL,
        NULL};

int main(int argc, char **argv)
{
	struct options o = {.iteration = -1};
	struct trace t = {0};
	/* Assigned: our symbols are hidden, so argp would not see a definition. */
	argp_program_version = "sl-trace-report (Starling) " PACKAGE_VERSION;
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	read_kinds_and_tasks(&t, o.folder);
	read_paje(&t, o.folder);
	if (!o.quiet) print_summary(&t);
	if (o.perfetto) write_perfetto(&t, o.perfetto);
	if (o.picture) write_picture(&t, o.picture);
	if (o.dag) write_dag(&t, o.dag, o.iteration, o.expanded);
	if (fflush(stdout) || ferror(stdout)) fail("standard output: %m");
	return 0;
}
