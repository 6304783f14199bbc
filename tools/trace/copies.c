/* Copies between memories by value, and the part of their time in which tasks ran on the GPU: the copies that a limit of
 * memory has planned, and others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

static bool is_main(const struct trace *t, int node)
{
	return !strcmp(t->nodes[node], "RAM");
}

/* StarPU's names of the kinds of a copy: F, TF, PF, IF. */
const char *copy_reason(const struct trace *t, const struct transfer *x)
{
	if (!strcmp(x->kind, "F")) return "on demand";
	if (!strcmp(x->kind, "TF")) return "for a task";
	if (!strcmp(x->kind, "IF")) return "idle";
	if (is_main(t, x->to)) return "offload";
	return is_main(t, x->from) ? "fetch" : "exchange";
}

static double longest_task(const struct trace *t)
{
	double longest = 0;
	for (int i = 0; i < t->ntasks; i++) longest = fmax(longest, t->tasks[i].end - t->tasks[i].start);
	return longest;
}

/* The first task that starts at this time or later. */
static int first_since(const struct trace *t, double time)
{
	int low = 0, high = t->ntasks;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (t->tasks[middle].start < time) low = middle + 1;
		else high = middle;
	}
	return low;
}

/* Milliseconds of a copy in which a task ran on the GPU; copies between GPUs: on the one that receives. */
static double hidden(const struct trace *t, const struct transfer *x, double longest)
{
	int gpu = is_main(t, x->to) ? x->from : x->to;
	double sum = 0, since = x->start;
	for (int i = first_since(t, x->start - longest); i < t->ntasks && t->tasks[i].start < x->end; i++) {
		const struct task *task = &t->tasks[i];
		double begin = fmax(task->start, since), end = fmin(task->end, x->end);
		if (t->workers[task->worker].node != gpu || end <= begin) continue;
		sum += end - begin;
		since = end;
	}
	return sum;
}

struct copies {
	const char *name, *reason;
	int count;
	double bytes, time, hidden;
};

static void add(struct copies *c, double bytes, double time, double part)
{
	c->count++;
	c->bytes += bytes;
	c->time += time;
	c->hidden += part;
}

static int by_value(const void *a, const void *b)
{
	const struct copies *x = a, *y = b;
	int names = strcmp(x->name, y->name);
	return names ? names : strcmp(x->reason, y->reason);
}

static int by_bytes(const void *a, const void *b)
{
	const struct copies *x = a, *y = b;
	return x->bytes != y->bytes ? (x->bytes < y->bytes) - (x->bytes > y->bytes) : by_value(a, b);
}

/* A row for each copy, by value; then a row for each value and reason: their number. */
static int join(struct copies *rows, int count)
{
	int n = 0;
	qsort(rows, (size_t)count, sizeof *rows, by_value);
	for (int i = 0; i < count; i++) {
		if (n && !by_value(&rows[n - 1], &rows[i]))
			add(&rows[n - 1], rows[i].bytes, rows[i].time, rows[i].hidden);
		else rows[n++] = rows[i];
	}
	qsort(rows, (size_t)n, sizeof *rows, by_bytes);
	return n;
}

static void print_row(const struct copies *c)
{
	enum { WIDTH = 40 };
	size_t n = strlen(c->name);
	printf("  %-*s %-10s %6d %10.3f %9.2f ms %5.1f %%\n", WIDTH, c->name + (n > WIDTH ? n - WIDTH : 0), c->reason,
	       c->count, c->bytes / (1 << 20), c->time, c->time > 0 ? 100 * c->hidden / c->time : 100);
}

static void print_rows(const struct copies *rows, int n)
{
	enum { SHOWN = 16 };
	char text[128];
	struct copies rest = {"others", "", 0, 0, 0, 0};
	snprintf(text, sizeof text, "%-42s %-10s %6s %10s %12s %7s", "Copies", "reason", "count", "MiB", "time",
	         "hidden");
	print_title(text);
	for (int i = 0; i < n; i++) {
		if (i < SHOWN) {
			print_row(&rows[i]);
			continue;
		}
		add(&rest, rows[i].bytes, rows[i].time, rows[i].hidden);
		rest.count += rows[i].count - 1;
	}
	if (rest.count) print_row(&rest);
}

void print_copies(const struct trace *t)
{
	struct copies *rows = calloc((size_t)t->ntransfers + 1, sizeof *rows);
	int count = 0;
	double longest = longest_task(t);
	if (!rows) fail("no memory for %d copies", t->ntransfers);
	for (int i = 0; i < t->ntransfers; i++) {
		const struct transfer *x = &t->transfers[i];
		if (x->end < 0 || x->from >= t->nnodes || x->to >= t->nnodes) continue;
		rows[count] = (struct copies){*x->name ? x->name : "without a name", copy_reason(t, x), 0, 0, 0, 0};
		add(&rows[count++], x->bytes, x->end - x->start, hidden(t, x, longest));
	}
	if (count) print_rows(rows, join(rows, count));
	free(rows);
}
