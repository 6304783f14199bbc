/* The tasks of one iteration and their dependencies, for Graphviz.  A task of several layers is one node, or a group of its
 * layers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/durable.h"
#include "trace.h"

/* ---- which iteration --------------------------------------------------------------------------------------------- */

static double iteration_time(const struct trace *t, long iteration)
{
	double start = INFINITY, end = 0;
	for (int i = 0; i < t->ntasks; i++) {
		if (t->tasks[i].iteration != iteration) continue;
		start = fmin(start, t->tasks[i].start);
		end = fmax(end, t->tasks[i].end);
	}
	return end - start;
}

struct length {
	long iteration;
	double ms;
};

static int by_length(const void *a, const void *b)
{
	const struct length *x = a, *y = b;
	if (x->ms != y->ms) return x->ms < y->ms ? -1 : 1;
	return (x->iteration > y->iteration) - (x->iteration < y->iteration);
}

/* The iteration that took the median time; -1: none. */
static long typical_iteration(const struct trace *t)
{
	struct length *lengths = NULL;
	int count = 0;
	for (int i = 0; i < t->ntasks; i++) {
		long iteration = t->tasks[i].iteration;
		int k = count - 1;
		while (k >= 0 && lengths[k].iteration != iteration) k--;
		if (iteration < 0 || k >= 0) continue;
		lengths = list_add(lengths, &count, sizeof *lengths);
		lengths[count - 1] = (struct length){iteration, iteration_time(t, iteration)};
	}
	if (count) qsort(lengths, (size_t)count, sizeof *lengths, by_length);
	long typical = count ? lengths[count / 2].iteration : -1;
	free(lengths);
	return typical;
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static FILE *f;

static void put_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '<') fputs("&lt;", f);
		else if (*text == '>') fputs("&gt;", f);
		else if (*text == '&') fputs("&amp;", f);
		else if (*text == '"') fputs("&quot;", f);
		else fputc(*text, f);
	}
}

static void write_layers(const struct task *task)
{
	for (int i = 0; i < task->kind->nlayers; i++) {
		const char *path = task->kind->layers[i].path;
		fputs("<tr><td align=\"left\">", f);
		put_text(*path ? path : "(in no block)");
		fprintf(f, "</td><td align=\"right\">%.3f ms</td></tr>", layer_time(task, i));
	}
}

/* The names of the tasks of other iterations that they depend on. */
static void write_outer_node(const struct task *task)
{
	fprintf(f, "\"%ld\" [style=dashed, label=\"", task->id);
	put_text(task->name);
	if (task->iteration >= 0) fprintf(f, "\\n(iteration %ld)", task->iteration);
	fputs("\"];\n", f);
}

static void write_node(const struct task *task, bool expanded)
{
	bool several = task->kind && task->kind->nlayers;
	fprintf(f, "\"%ld\" [fillcolor=\"#%06x40\", tooltip=\"", task->id, task->kind ? task->kind->colour : 0x999999);
	put_text(task->kind ? task->kind->calls : task->name);
	fputs("\", label=<<table border=\"0\" cellspacing=\"0\"><tr><td align=\"left\"><b>", f);
	put_text(task->name);
	fprintf(f, "</b></td><td align=\"right\">%.3f ms</td></tr>", task->end - task->start);
	if (several && expanded) write_layers(task);
	else if (several) fprintf(f, "<tr><td align=\"left\">%d layers</td></tr>", task->kind->nlayers);
	fputs("</table>>];\n", f);
}

/* Whether it is drawn: of that iteration; without iterations, among the first. */
static bool is_drawn(const struct trace *t, const struct task *task, long iteration)
{
	enum { FIRST = 60 };
	return iteration >= 0 ? task->iteration == iteration : task - t->tasks < FIRST;
}

/* Its dependencies; also those of other iterations, each once. */
static void write_edges(const struct trace *t, const struct task *task, long iteration, bool *outer)
{
	for (int d = 0; d < task->ndeps; d++) {
		const struct task *before = task_by_id(t, task->deps[d]);
		if (!before) continue;
		if (!is_drawn(t, before, iteration) && !outer[before - t->tasks]) {
			write_outer_node(before);
			outer[before - t->tasks] = true;
		}
		fprintf(f, "\"%ld\" -> \"%ld\";\n", before->id, task->id);
	}
}

static int draw(const struct trace *t, long iteration, bool expanded)
{
	int count = 0;
	bool *outer = calloc((size_t)t->ntasks, sizeof *outer);
	if (!outer) fail("no memory for %d tasks", t->ntasks);
	fputs("digraph G {\nrankdir=TB; nodesep=0.15; ranksep=0.3;\n"
	      "node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=11, height=0.3, color=\"#606060\"];\n"
	      "edge [color=\"#606060\", arrowsize=0.6];\n",
	      f);
	for (int i = 0; i < t->ntasks; i++) {
		if (!is_drawn(t, &t->tasks[i], iteration)) continue;
		write_node(&t->tasks[i], expanded);
		write_edges(t, &t->tasks[i], iteration, outer);
		count++;
	}
	fputs("}\n", f);
	free(outer);
	return count;
}

void write_dag(const struct trace *t, const char *path, long iteration, bool expanded)
{
	struct slp_durable file;
	if (!slp_durable_open(&file, path)) fail("%s: %s: %s", path, file.what, strerror(file.error));
	f = file.stream;
	if (!draw(t, iteration >= 0 ? iteration : typical_iteration(t), expanded))
		fail("no tasks in iteration %ld", iteration);
	if (!slp_durable_commit((struct slp_durable *const[]){&file}, 1))
		fail("%s: %s: %s", path, file.what, strerror(file.error));
}
