/* The summary on the terminal: where time was spent, waits, and the run's time relative to its bounds. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/simulation/area.h" /* the engine's own reckoning, in simulation; it needs nothing else of it */
#include "trace.h"

static double seconds_of(const struct task *task)
{
	return 1e-3 * (task->end - task->start);
}

void print_title(const char *text)
{
	const char *no_color = getenv("NO_COLOR");
	bool bold = isatty(STDOUT_FILENO) && !(no_color && *no_color);
	printf("\n%s%s%s\n", bold ? "\033[1m" : "", text, bold ? "\033[0m" : "");
}

/* ---- sums by name ------------------------------------------------------------------------------------------------ */

struct sum {
	const char *name;
	int count;
	double seconds, gflop;
};

struct sums {
	struct sum *list;
	int count;
	double seconds;
};

static void sums_add(struct sums *s, const char *name, double seconds, double gflop)
{
	int i = 0;
	while (i < s->count && strcmp(s->list[i].name, name)) i++;
	if (i == s->count) {
		s->list = list_add(s->list, &s->count, sizeof *s->list);
		s->list[i].name = name;
	}
	s->list[i].count++;
	s->list[i].seconds += seconds;
	s->list[i].gflop += gflop;
	s->seconds += seconds;
}

static int by_seconds(const void *a, const void *b)
{
	double x = ((const struct sum *)a)->seconds, y = ((const struct sum *)b)->seconds;
	return (x < y) - (x > y);
}

/* Of a long path the end is shown. */
static void print_sum(const struct sum *s, double all)
{
	enum { WIDTH = 46 };
	size_t n = strlen(s->name);
	bool cut = n > WIDTH;
	printf("  %s%-*s", cut ? "..." : "", cut ? 0 : WIDTH, cut ? s->name + n - (WIDTH - 3) : s->name);
	printf(" %6d %10.2f ms %5.1f %% %10.1f us", s->count, 1e3 * s->seconds, 100 * s->seconds / all,
	       1e6 * s->seconds / s->count);
	if (s->gflop > 0) printf(" %8.1f", s->gflop / s->seconds);
	putchar('\n');
}

static void print_sums(struct sums *s, const char *heading)
{
	enum { SHOWN = 15 };
	struct sum others = {"others", 0, 0, 0};
	char text[160];
	if (!s->count) return;
	qsort(s->list, (size_t)s->count, sizeof *s->list, by_seconds);
	snprintf(text, sizeof text, "%-48s %6s %13s %7s %13s %8s", heading, "count", "time", "share", "mean",
	         "GFlop/s");
	print_title(text);
	for (int i = 0; i < s->count; i++) {
		if (i < SHOWN || s->count == SHOWN + 1) {
			print_sum(&s->list[i], s->seconds);
			continue;
		}
		others.count += s->list[i].count;
		others.seconds += s->list[i].seconds;
	}
	if (others.count) print_sum(&others, s->seconds);
	free(s->list);
}

static void print_operations(const struct trace *t)
{
	struct sums s = {0};
	for (int i = 0; i < t->ntasks; i++) sums_add(&s, t->tasks[i].name, seconds_of(&t->tasks[i]), t->tasks[i].gflop);
	print_sums(&s, "Time per operation");
}

static const char *name_of_layer(const char *path)
{
	return path && *path ? path : "(in no block)";
}

/* The work of each layer is known of whole tasks only. */
static void add_layers(struct sums *s, const struct task *task)
{
	int n = task->kind ? task->kind->nlayers : 0;
	for (int i = 0; i < n; i++)
		sums_add(s, name_of_layer(task->kind->layers[i].path), 1e-3 * layer_time(task, i), 0);
	if (!n) sums_add(s, name_of_layer(task->block), seconds_of(task), 0);
}

static void print_layers(const struct trace *t)
{
	struct sums s = {0};
	bool any = false;
	int estimated = 0;
	for (int i = 0; i < t->ntasks; i++) {
		const struct task *task = &t->tasks[i];
		any |= task->block || (task->kind && task->kind->nlayers);
		estimated += task->kind && task->kind->nlayers && !task->spent;
	}
	for (int i = 0; any && i < t->ntasks; i++) add_layers(&s, &t->tasks[i]);
	print_sums(&s, "Time per layer");
	if (estimated)
		printf("  (%d tasks of several layers ran on a GPU or in simulation: their time is divided by "
		       "operations and bytes)\n",
		       estimated);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

/* "all: sl_wait_all at models/driver/common.c:157" */
static void name_wait(const struct wait *w, char *name, size_t size)
{
	const char *at = strstr(w->at, " at "), *path = at ? at + 4 : w->at, *file = strrchr(path, '/');
	while (file && file > path && file[-1] != '/') file--;
	snprintf(name, size, "%s: %.*s%s", w->what, (int)(path - w->at), w->at, file ? file : path);
}

static void print_waits(const struct trace *t)
{
	struct sums s = {0};
	for (int i = 0; i < t->nwaits; i++) {
		char name[256];
		name_wait(&t->waits[i], name, sizeof name);
		sums_add(&s, text_copy(name), 1e-3 * (t->waits[i].end - t->waits[i].start), 0);
	}
	print_sums(&s, "Waits of the program");
}

/* ---- workers ----------------------------------------------------------------------------------------------------- */

enum share { BUSY, TRANSFER, OVERHEAD, IDLE, SHARES };

/* StarPU's names of a worker's states between tasks. */
static enum share share_of(const char *state)
{
	static const struct {
		const char *state;
		enum share share;
	} known[] = {{"Fi", TRANSFER}, {"Po", TRANSFER}, {"I", IDLE},      {"Sl", IDLE},     {"B", OVERHEAD},
	             {"Sc", OVERHEAD}, {"C", OVERHEAD},  {"P", OVERHEAD},  {"In", OVERHEAD}, {"D", OVERHEAD},
	             {"E", OVERHEAD},  {"U", OVERHEAD},  {"Ps", OVERHEAD}, {"H", OVERHEAD},  {"Bu", OVERHEAD},
	             {"Su", OVERHEAD}, {"Th", OVERHEAD}};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(state, known[i].state)) return known[i].share;
	return BUSY;
}

/* Milliseconds of each share between the run's begin and end. */
static void shares(const struct trace *t, const struct worker *w, double sum[SHARES])
{
	for (int i = 0; i < SHARES; i++) sum[i] = 0;
	for (int i = 0; i < w->nstates; i++) {
		double from = fmax(t->begin, w->states[i].start);
		double to = i + 1 < w->nstates ? fmin(t->end, w->states[i + 1].start) : t->end;
		if (to > from) sum[share_of(w->states[i].name)] += to - from;
	}
}

static void print_workers(const struct trace *t)
{
	char text[160];
	double sum[SHARES], all = t->end - t->begin;
	snprintf(text, sizeof text, "%-20s %8s %8s %10s %9s %8s", "Workers", "tasks", "busy", "transfers", "overhead",
	         "idle");
	print_title(text);
	for (int w = 0; w < t->nworkers; w++) {
		int tasks = 0;
		for (int i = 0; i < t->ntasks; i++) tasks += t->tasks[i].worker == w;
		shares(t, &t->workers[w], sum);
		double left = all - sum[BUSY] - sum[TRANSFER] - sum[OVERHEAD]; /* before it started, too */
		printf("  %-18s %8d %6.1f %% %8.1f %% %7.1f %% %6.1f %%\n", t->workers[w].name, tasks,
		       100 * sum[BUSY] / all, 100 * sum[TRANSFER] / all, 100 * sum[OVERHEAD] / all,
		       100 * fmax(0, left) / all);
	}
}

/* ---- gaps -------------------------------------------------------------------------------------------------------- */

struct gap {
	double length;
	const struct task *after, *before; /* after NULL: from the beginning */
};

static int by_length(const void *a, const void *b)
{
	double x = ((const struct gap *)a)->length, y = ((const struct gap *)b)->length;
	return (x < y) - (x > y);
}

static struct gap *find_gaps(const struct trace *t, int *count)
{
	struct gap *gaps = NULL;
	const struct task **last = calloc((size_t)t->nworkers, sizeof(struct task *));
	if (!last) fail("no memory for %d workers", t->nworkers);
	for (int i = 0; i < t->ntasks; i++) {
		const struct task *task = &t->tasks[i], **before = &last[task->worker];
		double length = task->start - (*before ? (*before)->end : t->begin);
		if (length > 0) {
			gaps = list_add(gaps, count, sizeof *gaps);
			gaps[*count - 1] = (struct gap){length, *before, task};
		}
		if (!*before || task->end > (*before)->end) *before = task;
	}
	free(last);
	return gaps;
}

static void print_gaps(const struct trace *t)
{
	enum { SHOWN = 5 };
	int count = 0;
	struct gap *gaps = find_gaps(t, &count);
	if (count) qsort(gaps, (size_t)count, sizeof *gaps, by_length);
	print_title("Longest gaps");
	for (int i = 0; i < count && i < SHOWN; i++) {
		const struct gap *g = &gaps[i];
		printf("  %-12s %10.2f ms at %.1f ms, before %s (%s)%s%s\n", t->workers[g->before->worker].name,
		       g->length, g->before->start - g->length - t->begin, g->before->name,
		       g->before->file ? g->before->file : "?", g->after ? ", after " : "",
		       g->after ? g->after->name : "");
	}
	if (!count) printf("  none\n");
	free(gaps);
}

/* ---- links ------------------------------------------------------------------------------------------------------- */

static void print_link(const struct trace *t, int from, int to)
{
	double bytes = 0, under_way = 0;
	int count = 0;
	for (int i = 0; i < t->ntransfers; i++) {
		const struct transfer *x = &t->transfers[i];
		if (x->from != from || x->to != to || x->end < 0) continue;
		bytes += x->bytes;
		under_way += 1e-3 * (x->end - x->start);
		count++;
	}
	if (!count) return;
	printf("  %-8s to %-8s %12.3f MiB in %6d transfers", t->nodes[from], t->nodes[to], bytes / (1 << 20), count);
	if (under_way > 0) printf(", %.2f GB/s each", 1e-9 * bytes / under_way);
	putchar('\n');
}

static void print_links(const struct trace *t)
{
	if (!t->ntransfers) return;
	print_title("Links");
	for (int from = 0; from < t->nnodes; from++)
		for (int to = 0; to < t->nnodes; to++) print_link(t, from, to);
}

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

static bool is_gpu(const struct trace *t, const struct task *task)
{
	return strncmp(t->workers[task->worker].name, "CPU", 3) != 0;
}

static int by_type(const void *a, const void *b)
{
	const struct task *x = *(const struct task *const *)a, *y = *(const struct task *const *)b;
	int names = strcmp(x->name, y->name);
	if (names || !x->footprint || !y->footprint) return names;
	return strcmp(x->footprint, y->footprint);
}

/* The average times of tasks by type; a type that has run on one kind of worker only counts as bound to it. */
static struct slp_area_type type_of(const struct trace *t, const struct task **tasks, int count)
{
	double seconds[2] = {0, 0};
	int n[2] = {0, 0};
	for (int i = 0; i < count; i++) {
		int gpu = is_gpu(t, tasks[i]);
		seconds[gpu] += seconds_of(tasks[i]);
		n[gpu]++;
	}
	return (struct slp_area_type){n[0] ? seconds[0] / n[0] : INFINITY, n[1] ? seconds[1] / n[1] : INFINITY, count};
}

static double area(const struct trace *t)
{
	const struct task **tasks = calloc((size_t)t->ntasks, sizeof(struct task *));
	struct slp_area_type *types = calloc((size_t)t->ntasks, sizeof *types);
	if (!tasks || !types) fail("no memory for %d tasks", t->ntasks);
	int ntypes = 0, cpus = 0, gpus = 0;
	for (int i = 0; i < t->ntasks; i++) tasks[i] = &t->tasks[i];
	qsort(tasks, (size_t)t->ntasks, sizeof(struct task *), by_type);
	for (int i = 0, end; i < t->ntasks; i = end) {
		for (end = i + 1; end < t->ntasks && !by_type(&tasks[i], &tasks[end]);) end++;
		types[ntypes++] = type_of(t, tasks + i, end - i);
	}
	for (int w = 0; w < t->nworkers; w++) {
		bool gpu = strncmp(t->workers[w].name, "CPU", 3) != 0;
		cpus += !gpu;
		gpus += gpu;
	}
	double bound = slp_area(types, ntypes, fmax(1, cpus), fmax(1, gpus));
	free(types);
	free(tasks);
	return bound;
}

/* The longest chain of tasks that wait for each other; a task starts after those that it depends on. */
static double path(const struct trace *t)
{
	double longest = 0, *until = calloc((size_t)t->ntasks, sizeof *until);
	if (!until) fail("no memory for %d tasks", t->ntasks);
	for (int i = 0; i < t->ntasks; i++) {
		for (int d = 0; d < t->tasks[i].ndeps; d++) {
			const struct task *before = task_by_id(t, t->tasks[i].deps[d]);
			if (before && before < &t->tasks[i]) until[i] = fmax(until[i], until[before - t->tasks]);
		}
		until[i] += seconds_of(&t->tasks[i]);
		longest = fmax(longest, until[i]);
	}
	free(until);
	return longest;
}

static void print_bound(const char *name, double seconds, double all)
{
	printf("  %-6s %10.2f ms: the run took %.2f times as long\n", name, 1e3 * seconds, all / seconds);
}

static void print_bounds(const struct trace *t)
{
	double all = 1e-3 * (t->end - t->begin);
	print_title("Bounds");
	print_bound("area", area(t), all);
	print_bound("path", path(t), all);
}

/* Of the whole machine, as far as it can be read. */
static void print_energy(const struct trace *t)
{
	double cpu = 0, gpu = 0;
	for (int i = 0; i < t->nenergies; i++) {
		cpu += t->energies[i].cpu;
		gpu += t->energies[i].gpu;
	}
	if (!t->nenergies || (isnan(cpu) && isnan(gpu))) return;
	print_title("Energy");
	if (!isnan(cpu)) printf("  processors %10.3f J\n", cpu);
	if (!isnan(gpu)) printf("  GPUs       %10.3f J\n", gpu);
}

void print_summary(const struct trace *t)
{
	printf("%d tasks on %d worker%s in %.2f ms\n", t->ntasks, t->nworkers, t->nworkers == 1 ? "" : "s",
	       t->end - t->begin);
	print_operations(t);
	print_layers(t);
	print_workers(t);
	print_waits(t);
	print_gaps(t);
	print_links(t);
	print_copies(t);
	print_bounds(t);
	print_energy(t);
}
