/* The trace as one picture (SVG): the program's waits, each worker's tasks, iterations, queues, memory.  Colours stand for
 * families of operations, named in a legend.  Tasks narrower than a pixel are added up, so that the picture stays small
 * however many there are. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/durable.h"
#include "trace.h"

enum { WIDTH = 1200, LEFT = 150, RIGHT = 20, PLOT = WIDTH - LEFT - RIGHT, ROW = 30, GAP = 8, CHART = 70, LEGEND = 24 };
enum { COLUMNS = PLOT }; /* one pixel wide */

static struct {
	FILE *file;
	const struct trace *trace;
	int y; /* of the next element */
} out;

static double x_of(double ms)
{
	return LEFT + PLOT * (ms - out.trace->begin) / (out.trace->end - out.trace->begin);
}

static void put_text(const char *text)
{
	for (; *text; text++) {
		if (*text == '<') fputs("&lt;", out.file);
		else if (*text == '&') fputs("&amp;", out.file);
		else if (!iscntrl((unsigned char)*text)) fputc(*text, out.file);
	}
}

static void label(const char *text)
{
	fprintf(out.file, "<text x=\"%d\" y=\"%d\" class=\"label\">", LEFT - 8, out.y + ROW / 2 + 4);
	put_text(text);
	fputs("</text>\n", out.file);
}

/* A bar with its title, and its name within if there is room. */
static void bar(double start, double end, unsigned colour, const char *name, const char *title)
{
	double x = x_of(start), width = x_of(end) - x;
	fprintf(out.file, "<g><title>");
	put_text(title);
	fprintf(out.file, "</title><rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"#%06x\"/>", x, out.y,
	        width, ROW, colour);
	int room = (int)(width / 6.5);
	if (room >= 5) {
		char text[64];
		snprintf(text, sizeof text, "%.*s", room < 60 ? room : 60, name);
		fprintf(out.file, "<text x=\"%.2f\" y=\"%d\" class=\"name\">", x + 3, out.y + ROW / 2 + 4);
		put_text(text);
		fputs("</text>", out.file);
	}
	fputs("</g>\n", out.file);
}

/* ---- families ---------------------------------------------------------------------------------------------------- */

enum { MAX_FAMILIES = 32 };

static struct {
	struct family {
		const char *name;
		unsigned colour;
		double ms;
	} list[MAX_FAMILIES];
	int count;
} families;

static int family_of(const struct task *task)
{
	const char *name = task->kind ? task->kind->family : "other";
	int i = 0;
	while (i < families.count && strcmp(families.list[i].name, name)) i++;
	if (i == MAX_FAMILIES) return i - 1;
	if (i == families.count)
		families.list[families.count++] = (struct family){name, task->kind ? task->kind->colour : 0x555555, 0};
	return i;
}

static int by_time(const void *a, const void *b)
{
	double x = ((const struct family *)a)->ms, y = ((const struct family *)b)->ms;
	return (x < y) - (x > y);
}

static void find_families(void)
{
	const struct trace *t = out.trace;
	for (int i = 0; i < t->ntasks; i++)
		families.list[family_of(&t->tasks[i])].ms += t->tasks[i].end - t->tasks[i].start;
	qsort(families.list, (size_t)families.count, sizeof *families.list, by_time);
}

static void draw_legend(void)
{
	double all = 0;
	for (int i = 0; i < families.count; i++) all += families.list[i].ms;
	for (int i = 0; i < families.count; i++) {
		const struct family *f = &families.list[i];
		int x = LEFT + i % 5 * 205, y = out.y + i / 5 * LEGEND;
		char name[32];
		snprintf(name, sizeof name, "%s", f->name);
		for (char *p = name; *p; p++) *p = (char)tolower((unsigned char)*p);
		fprintf(out.file, "<rect x=\"%d\" y=\"%d\" width=\"14\" height=\"14\" fill=\"#%06x\"/>", x, y,
		        f->colour);
		fprintf(out.file, "<text x=\"%d\" y=\"%d\">%s, %.1f %%</text>\n", x + 20, y + 12, name,
		        100 * f->ms / fmax(all, 1e-9));
	}
	out.y += (families.count + 4) / 5 * LEGEND;
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

/* Milliseconds of each family in each column, of tasks that are narrower than one. */
typedef double column[MAX_FAMILIES];

static void add_narrow(column *columns, const struct task *task)
{
	double per = (out.trace->end - out.trace->begin) / COLUMNS;
	int at = (int)((task->start - out.trace->begin) / per);
	if (at >= 0 && at < COLUMNS) columns[at][family_of(task)] += task->end - task->start;
}

/* As high as the part of its time that tasks ran. */
static void draw_column(const column c, int at)
{
	double per = (out.trace->end - out.trace->begin) / COLUMNS, y = out.y + ROW;
	for (int i = 0; i < families.count; i++) {
		double height = ROW * fmin(1, c[i] / per);
		if (height < 0.2) continue;
		y -= height;
		fprintf(out.file, "<rect x=\"%d\" y=\"%.1f\" width=\"1\" height=\"%.1f\" fill=\"#%06x\"/>\n", LEFT + at,
		        y, height, families.list[i].colour);
	}
}

static void draw_task(const struct task *task)
{
	char title[512];
	snprintf(title, sizeof title, "%s, %.3f ms, asked for at %s%s%s", task->name, task->end - task->start,
	         task->file ? task->file : "?", task->block ? ", in " : "", task->block ? task->block : "");
	bar(task->start, task->end, families.list[family_of(task)].colour, task->name, title);
}

static void draw_worker(int worker)
{
	const struct trace *t = out.trace;
	column *columns = calloc(COLUMNS, sizeof *columns);
	if (!columns) fail("no memory for a picture");
	label(t->workers[worker].name);
	fprintf(out.file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"row\"/>\n", LEFT, out.y, PLOT,
	        ROW);
	for (int i = 0; i < t->ntasks; i++) {
		const struct task *task = &t->tasks[i];
		if (task->worker != worker) continue;
		if (x_of(task->end) - x_of(task->start) < 1) add_narrow(columns, task);
		else draw_task(task);
	}
	for (int c = 0; c < COLUMNS; c++) draw_column(columns[c], c);
	free(columns);
	out.y += ROW + GAP;
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static unsigned colour_of_wait(const struct wait *w)
{
	return !strcmp(w->what, "run-ahead") ? 0xe0a0a0 : 0xd0d0d0;
}

/* Waits, and a line for each task that was issued. */
static void draw_program(void)
{
	const struct trace *t = out.trace;
	label("program");
	fprintf(out.file, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"row\"/>\n", LEFT, out.y, PLOT,
	        ROW);
	for (int i = 0; i < t->nwaits; i++) {
		const struct wait *w = &t->waits[i];
		char name[64], title[512];
		if (w->end < t->begin || w->start > t->end || x_of(w->end) - x_of(w->start) < 0.2) continue;
		snprintf(name, sizeof name, "waits for %s", w->what);
		snprintf(title, sizeof title, "%s, %.3f ms, %s", name, w->end - w->start, w->at);
		bar(fmax(t->begin, w->start), fmin(t->end, w->end), colour_of_wait(w), name, title);
	}
	fputs("<path class=\"issue\" d=\"", out.file);
	int last = -1;
	for (int i = 0; i < t->ntasks; i++) {
		int x = (int)(2 * x_of(t->tasks[i].submit)); /* half a pixel */
		if (t->tasks[i].submit < t->begin || x == last) continue;
		fprintf(out.file, "M%.1f %dv8", 0.5 * x, out.y + ROW - 8);
		last = x;
	}
	fputs("\"/>\n", out.file);
	out.y += ROW + GAP;
}

/* ---- iterations -------------------------------------------------------------------------------------------------- */

static int by_iteration(const void *a, const void *b)
{
	const struct task *x = *(const struct task *const *)a, *y = *(const struct task *const *)b;
	if (x->iteration != y->iteration) return x->iteration < y->iteration ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* From its first task's start to its last one's end, two rows in turn: neighbours overlap. */
static void draw_iteration(const struct task *const *tasks, int count, int number)
{
	double start = tasks[0]->start, end = tasks[0]->end;
	for (int i = 1; i < count; i++) {
		start = fmin(start, tasks[i]->start);
		end = fmax(end, tasks[i]->end);
	}
	int y = out.y + number % 2 * (ROW / 2);
	fprintf(out.file, "<g><title>iteration %ld, %.3f ms</title>", tasks[0]->iteration, end - start);
	fprintf(out.file, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" class=\"iteration\"/></g>\n",
	        x_of(start), y, fmax(0.5, x_of(end) - x_of(start)), ROW / 2 - 2);
}

static void draw_iterations(void)
{
	const struct trace *t = out.trace;
	const struct task **tasks = calloc((size_t)t->ntasks, sizeof *tasks);
	int count = 0, number = 0;
	if (!tasks) fail("no memory for a picture");
	for (int i = 0; i < t->ntasks; i++)
		if (t->tasks[i].iteration >= 0) tasks[count++] = &t->tasks[i];
	qsort(tasks, (size_t)count, sizeof *tasks, by_iteration);
	if (count) label("iterations");
	for (int i = 0, end; i < count; i = end) {
		for (end = i; end < count && tasks[end]->iteration == tasks[i]->iteration;) end++;
		draw_iteration(tasks + i, end - i, number++);
	}
	if (count) out.y += ROW + GAP;
	free(tasks);
}

/* ---- counters ---------------------------------------------------------------------------------------------------- */

static bool is_counter(const struct counter *c, enum counter_kind kind, int node)
{
	return c->kind == kind && c->node == node && c->time >= out.trace->begin && c->time <= out.trace->end;
}

/* The curve as steps; at most two points a pixel column: the highest of it counts. */
static void draw_counter(enum counter_kind kind, int node, const char *name)
{
	const struct trace *t = out.trace;
	double high = 0, shown = 0;
	int column = -1;
	for (int i = 0; i < t->ncounters; i++)
		if (is_counter(&t->counters[i], kind, node)) high = fmax(high, t->counters[i].value);
	if (!(high > 0)) return;
	label(name);
	fprintf(out.file, "<text x=\"%d\" y=\"%d\" class=\"label\">at most %.*f</text>\n", LEFT - 8,
	        out.y + ROW / 2 + 20, high < 10 && high != floor(high) ? 1 : 0, high);
	fprintf(out.file, "<path class=\"counter\" d=\"M%d %d", LEFT, out.y + CHART);
	for (int i = 0; i < t->ncounters; i++) {
		const struct counter *c = &t->counters[i];
		if (!is_counter(c, kind, node)) continue;
		int at = (int)x_of(c->time);
		if (at == column && c->value <= shown) continue;
		fprintf(out.file, "H%.1fV%.1f", x_of(c->time), out.y + CHART - CHART * c->value / high);
		column = at;
		shown = c->value;
	}
	fprintf(out.file, "H%dV%dZ\"/>\n", LEFT + PLOT, out.y + CHART);
	out.y += CHART + GAP;
}

static void draw_counters(void)
{
	draw_counter(SUBMITTED, 0, "tasks in flight");
	draw_counter(READY, 0, "ready tasks");
	for (int node = 0; node < out.trace->nnodes; node++) {
		char name[64];
		snprintf(name, sizeof name, "%s (MB)", out.trace->nodes[node]);
		draw_counter(USED, node, name);
	}
}

/* ---- the whole --------------------------------------------------------------------------------------------------- */

static void draw_axis(int top)
{
	double length = out.trace->end - out.trace->begin, step = pow(10, floor(log10(length / 5)));
	if (length / step > 25) step *= 5;
	else if (length / step > 10) step *= 2;
	for (double ms = 0; ms <= length; ms += step) {
		double x = x_of(out.trace->begin + ms);
		fprintf(out.file, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, top, out.y);
		fprintf(out.file, "<text x=\"%.1f\" y=\"%d\" class=\"tick\">%g ms</text>\n", x, out.y + 16, ms);
	}
	out.y += 24;
}

static int height(void)
{
	const struct trace *t = out.trace;
	return 60 + (t->nworkers + 2) * (ROW + GAP) + (2 + t->nnodes) * (CHART + GAP) +
	       (families.count + 4) / 5 * LEGEND + 24;
}

static void draw(void)
{
	fprintf(out.file,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
	        "font-size=\"12\">\n"
	        "<style>.label { text-anchor: end } .tick { text-anchor: middle; fill: #555 } .row { fill: #f4f4f4 }\n"
	        ".name { font-size: 11px; fill: #fff } .issue { stroke: #333; stroke-width: 0.5 } .iteration { fill: "
	        "#6baed6 }\n"
	        ".counter { fill: #c6dbef; stroke: #3182bd; stroke-width: 0.7 } line { stroke: #ccc; stroke-width: 0.5 "
	        "}</style>\n"
	        "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
	        WIDTH, height(), WIDTH, height());
	out.y = 16;
	draw_legend();
	int top = out.y;
	draw_iterations();
	draw_program();
	for (int w = 0; w < out.trace->nworkers; w++) draw_worker(w);
	draw_counters();
	draw_axis(top);
	fputs("</svg>\n", out.file);
}

void write_picture(const struct trace *t, const char *path)
{
	struct slp_durable file;
	if (!slp_durable_open(&file, path)) fail("%s: %s: %s", path, file.what, strerror(file.error));
	out.file = file.stream;
	out.trace = t;
	find_families();
	draw();
	if (!slp_durable_commit((struct slp_durable *const[]){&file}, 1))
		fail("%s: %s: %s", path, file.what, strerror(file.error));
}
