/* Writes a trace in the Trace Event Format (of Chrome, read by Perfetto): workers are tracks, tasks are slices on them
 * with their operations and the program's lines, dependencies are arrows, memory and queues are counters. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/durable.h"
#include "trace.h"

/* Groups of tracks, in the order in which they are shown. */
enum { PROGRAM = 1, WORKERS, ITERATIONS, LINKS, QUEUES, MEMORY, POWER };
/* A worker's tracks: a lane for tasks, more where some overlap (a GPU's next task is begun early), then others. */
enum { LANES = 6, BLOCKS = LANES, STATES, TRACKS };

static struct {
	FILE *file;
	const char *path;
	bool any;
} out;

static void write_event(json_t *event)
{
	if (!event) fail("no memory for an event");
	fputs(out.any ? ",\n" : "\n", out.file);
	out.any = true;
	if (json_dumpf(event, out.file, JSON_COMPACT | JSON_REAL_PRECISION(12)))
		fail("%s: cannot be written", out.path);
	json_decref(event);
}

static double us(const struct trace *t, double ms)
{
	return 1e3 * (ms - t->begin);
}

static int track(int worker, int lane)
{
	return worker * TRACKS + lane + 1;
}

/* ---- names of tracks --------------------------------------------------------------------------------------------- */

static void name_group(int group, const char *name)
{
	write_event(json_pack("{s:s, s:s, s:i, s:{s:s}}", "ph", "M", "name", "process_name", "pid", group, "args",
	                      "name", name));
	write_event(json_pack("{s:s, s:s, s:i, s:{s:i}}", "ph", "M", "name", "process_sort_index", "pid", group, "args",
	                      "sort_index", group));
}

static void name_track(int group, int number, const char *name)
{
	write_event(json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "ph", "M", "name", "thread_name", "pid", group, "tid",
	                      number, "args", "name", name));
	write_event(json_pack("{s:s, s:s, s:i, s:i, s:{s:i}}", "ph", "M", "name", "thread_sort_index", "pid", group,
	                      "tid", number, "args", "sort_index", number));
}

static void name_worker_track(const struct trace *t, int worker, int lane)
{
	char name[128];
	static const char *const extra[] = {"blocks", "between tasks"};
	if (lane >= LANES) snprintf(name, sizeof name, "%s: %s", t->workers[worker].name, extra[lane - LANES]);
	else if (lane) snprintf(name, sizeof name, "%s (%d)", t->workers[worker].name, lane + 1);
	else snprintf(name, sizeof name, "%s", t->workers[worker].name);
	name_track(WORKERS, track(worker, lane), name);
}

/* ---- tasks ------------------------------------------------------------------------------------------------------- */

/* The first lane of each worker that is free when a task starts. */
struct lanes {
	double until[LANES];
	bool used[LANES];
};

static int *choose_lanes(const struct trace *t)
{
	struct lanes *lanes = calloc((size_t)t->nworkers, sizeof *lanes);
	int *lane = calloc((size_t)t->ntasks, sizeof *lane);
	if (!lanes || !lane) fail("no memory for %d tasks", t->ntasks);
	for (int i = 0; i < t->ntasks; i++) {
		struct lanes *l = &lanes[t->tasks[i].worker];
		while (lane[i] < LANES - 1 && l->until[lane[i]] > t->tasks[i].start) lane[i]++;
		l->until[lane[i]] = t->tasks[i].end;
		l->used[lane[i]] = true;
	}
	for (int w = 0; w < t->nworkers; w++)
		for (int k = 0; k < LANES; k++)
			if (lanes[w].used[k] || k == 0) name_worker_track(t, w, k);
	free(lanes);
	return lane;
}

static json_t *task_args(const struct trace *t, const struct task *task)
{
	json_t *args = json_pack("{s:I, s:I, s:f}", "job", (json_int_t)task->id, "priority", (json_int_t)task->priority,
	                         "waited_ms", task->start - task->submit);
	if (!args) fail("no memory for a task");
	if (task->file) json_object_set_new(args, "asked for at", json_string(task->file));
	if (task->block) json_object_set_new(args, "block", json_string(task->block));
	if (task->kind) json_object_set_new(args, "calls", json_string(task->kind->calls));
	if (task->gflop > 0) json_object_set_new(args, "GFlop", json_real(task->gflop));
	if (task->gflop > 0 && task->end > task->start)
		json_object_set_new(args, "GFlop/s", json_real(1e3 * task->gflop / (task->end - task->start)));
	if (task->iteration >= 0) json_object_set_new(args, "iteration", json_integer(task->iteration));
	if (task->subiteration >= 0) json_object_set_new(args, "subiteration", json_integer(task->subiteration));
	if (task->node >= 0 && task->node < t->nnodes)
		json_object_set_new(args, "memory", json_string(t->nodes[task->node]));
	return args;
}

static void write_slice_in(int group, const char *kind, const char *name, int number, double start, double length,
                           json_t *args)
{
	write_event(json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:o*}", "ph", "X", "cat", kind, "name", name, "pid",
	                      group, "tid", number, "ts", start, "dur", length, "args", args));
}

static void write_slice(const char *kind, const char *name, int number, double start, double length, json_t *args)
{
	write_slice_in(WORKERS, kind, name, number, start, length, args);
}

/* An arrow leaves from within the slice before and enters at the beginning of the one after. */
static void write_arrow(const struct trace *t, const struct task *from, int from_track, const struct task *to,
                        int to_track)
{
	static int arrows;
	double leave = us(t, from->end) - fmin(1e-3, 500 * (from->end - from->start));
	arrows++;
	write_event(json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:f}", "ph", "s", "cat", "dependency", "name",
	                      "dependency", "id", arrows, "pid", WORKERS, "tid", from_track, "ts", leave));
	write_event(json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f}", "ph", "f", "bp", "e", "cat", "dependency",
	                      "name", "dependency", "id", arrows, "pid", WORKERS, "tid", to_track, "ts",
	                      us(t, to->start)));
}

static void write_tasks(const struct trace *t)
{
	int *lane = choose_lanes(t);
	for (int i = 0; i < t->ntasks; i++) {
		const struct task *task = &t->tasks[i];
		int here = track(task->worker, lane[i]);
		write_slice("task", task->name, here, us(t, task->start), 1e3 * (task->end - task->start),
		            task_args(t, task));
		for (int d = 0; d < task->ndeps; d++) {
			const struct task *before = task_by_id(t, task->deps[d]);
			if (before) write_arrow(t, before, track(before->worker, lane[before - t->tasks]), task, here);
		}
	}
	free(lane);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* Slices that enclose each other as blocks do: open ones of one worker, from the outermost. */
enum { DEEP = 32 };
struct open {
	const char *end[DEEP]; /* of each one's path, in `path` */
	double start[DEEP];
	int depth;
	const char *path;
	double last; /* end of the last task */
};

static void close_blocks(const struct trace *t, struct open *o, int worker, int depth)
{
	for (; o->depth > depth; o->depth--) {
		const char *end = o->end[o->depth - 1], *name = o->depth > 1 ? o->end[o->depth - 2] + 1 : o->path;
		char text[256];
		snprintf(text, sizeof text, "%.*s", (int)(end - name), name);
		write_slice("block", text, track(worker, BLOCKS), us(t, o->start[o->depth - 1]),
		            1e3 * (o->last - o->start[o->depth - 1]), NULL);
	}
}

/* The number of open blocks that a path begins with. */
static int common_depth(const struct open *o, const char *path)
{
	int depth = 0;
	while (depth < o->depth) {
		size_t n = (size_t)(o->end[depth] - o->path);
		if (strncmp(o->path, path, n) || (path[n] && path[n] != '/')) break;
		depth++;
	}
	return depth;
}

static void enter_blocks(struct open *o, const char *path, double start)
{
	for (int i = 0; i < o->depth; i++) o->end[i] = path + (o->end[i] - o->path);
	o->path = path;
	const char *p = o->depth ? o->end[o->depth - 1] : path;
	while (*p && o->depth < DEEP) {
		p += *p == '/';
		p += strcspn(p, "/");
		o->end[o->depth] = p;
		o->start[o->depth++] = start;
	}
}

/* A task, or one of its layers. */
static void add_to_blocks(const struct trace *t, struct open *o, int worker, const char *path, double start, double end)
{
	if (o->last > start) o->last = start;
	close_blocks(t, o, worker, common_depth(o, path));
	enter_blocks(o, path, start);
	o->last = end;
}

/* One after the other in the order of their first calls, each as long as all its calls took. */
static void add_layers(const struct trace *t, struct open *o, const struct task *task)
{
	double at = task->start;
	for (int i = 0; i < task->kind->nlayers; i++) {
		double end = at + layer_time(task, i);
		add_to_blocks(t, o, task->worker, task->kind->layers[i].path, at, end);
		at = end;
	}
}

static void write_blocks(const struct trace *t, int worker)
{
	struct open o = {.path = ""};
	bool any = false;
	for (int i = 0; i < t->ntasks; i++) {
		const struct task *task = &t->tasks[i];
		if (task->worker != worker) continue;
		bool several = task->kind && task->kind->nlayers;
		if (several) add_layers(t, &o, task);
		else add_to_blocks(t, &o, worker, task->block ? task->block : "", task->start, task->end);
		any |= several || task->block;
	}
	close_blocks(t, &o, worker, 0);
	if (any) name_worker_track(t, worker, BLOCKS);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void name_program_tracks(const struct trace *t)
{
	int threads = 0;
	for (int i = 0; i < t->ntasks; i++)
		if (t->tasks[i].thread >= threads) threads = t->tasks[i].thread + 1;
	for (int i = 0; i < t->nwaits; i++)
		if (t->waits[i].thread >= threads) threads = t->waits[i].thread + 1;
	if (threads) name_group(PROGRAM, "program");
	for (int i = 0; i < threads; i++) {
		char name[64];
		snprintf(name, sizeof name, "thread %d: tasks issued, waits", i);
		name_track(PROGRAM, i + 1, name);
	}
}

/* The submissions of the program's threads, with their times, and their waits, with the reasons. */
static void write_program(const struct trace *t)
{
	name_program_tracks(t);
	for (int i = 0; i < t->nwaits; i++) {
		const struct wait *w = &t->waits[i];
		char name[64];
		snprintf(name, sizeof name, "waits for %s", w->what);
		if (w->end < t->begin || w->start > t->end) continue;
		write_slice_in(PROGRAM, "wait", name, w->thread + 1, us(t, w->start), 1e3 * (w->end - w->start),
		               json_pack("{s:s}", "at", w->at));
	}
	for (int i = 0; i < t->ntasks; i++) {
		const struct task *task = &t->tasks[i];
		char name[160];
		if (task->thread < 0 || task->submit <= 0) continue;
		snprintf(name, sizeof name, "issues %s", task->name);
		write_event(json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:f, s:{s:I}}", "ph", "i", "s", "t", "cat",
		                      "issue", "name", name, "pid", PROGRAM, "tid", task->thread + 1, "ts",
		                      us(t, task->submit), "args", "job", (json_int_t)task->id));
	}
}

/* ---- between tasks, iterations, transfers, counters -------------------------------------------------------------- */

static const struct {
	const char *state, *name;
} states[] = {{"Fi", "waiting for data"}, {"Po", "giving data back"}, {"Sc", "scheduling"}, {"Sl", "sleeping"},
              {"C", "callback"},          {"In", "starting"},         {"D", "stopping"},    {"I", "idle"},
              {"B", "overhead"},          {"P", "progressing"}};

static void write_states(const struct trace *t, int worker)
{
	const struct worker *w = &t->workers[worker];
	name_worker_track(t, worker, STATES);
	for (int i = 0; i + 1 < w->nstates; i++) {
		double start = w->states[i].start, end = w->states[i + 1].start;
		if (start < t->begin || end > t->end || end <= start) continue;
		for (size_t k = 0; k < sizeof states / sizeof *states; k++)
			if (!strcmp(w->states[i].name, states[k].state))
				write_slice("state", states[k].name, track(worker, STATES), us(t, start),
				            1e3 * (end - start), NULL);
	}
}

/* The events that may overlap on one track. */
static void write_span(int group, const char *kind, const char *name, int id, double start, double end, json_t *args)
{
	write_event(json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:o*}", "ph", "b", "cat", kind, "name", name, "id",
	                      id, "pid", group, "tid", 0, "ts", start, "args", args));
	write_event(json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:f}", "ph", "e", "cat", kind, "name", name, "id", id,
	                      "pid", group, "tid", 0, "ts", end));
}

static int by_iteration(const void *a, const void *b)
{
	const struct task *x = *(const struct task *const *)a, *y = *(const struct task *const *)b;
	return (x->iteration > y->iteration) - (x->iteration < y->iteration);
}

/* Their numbers are the program's, and may be large. */
static void write_iterations(const struct trace *t)
{
	const struct task **tasks = calloc((size_t)t->ntasks, sizeof(struct task *));
	int count = 0;
	if (!tasks) fail("no memory for %d tasks", t->ntasks);
	for (int i = 0; i < t->ntasks; i++)
		if (t->tasks[i].iteration >= 0) tasks[count++] = &t->tasks[i];
	if (count) name_group(ITERATIONS, "iterations");
	qsort(tasks, (size_t)count, sizeof(struct task *), by_iteration);
	for (int i = 0, id = 1; i < count; id++) {
		const struct task *first = tasks[i];
		double start = first->start, end = first->end;
		char name[48];
		snprintf(name, sizeof name, "iteration %ld", first->iteration);
		for (; i < count && tasks[i]->iteration == first->iteration; i++) {
			start = fmin(start, tasks[i]->start);
			end = fmax(end, tasks[i]->end);
		}
		write_span(ITERATIONS, "iteration", name, id, us(t, start), us(t, end), NULL);
	}
	free(tasks);
}

static void write_transfers(const struct trace *t)
{
	if (t->ntransfers) name_group(LINKS, "transfers");
	for (int i = 0; i < t->ntransfers; i++) {
		const struct transfer *x = &t->transfers[i];
		char name[128];
		if (x->end < 0 || x->from >= t->nnodes || x->to >= t->nnodes) continue;
		snprintf(name, sizeof name, "%s to %s", t->nodes[x->from], t->nodes[x->to]);
		write_span(
		        LINKS, "transfer", name, i + 1, us(t, x->start), us(t, x->end),
		        json_pack("{s:f, s:s, s:s}", "bytes", x->bytes, "value", x->name, "reason", copy_reason(t, x)));
	}
}

static void write_counters(const struct trace *t)
{
	static const char *const names[COUNTERS] = {"ready tasks", "tasks submitted, not finished", "used (MB)",
	                                            "in (MB/s)", "out (MB/s)"};
	name_group(QUEUES, "queues");
	name_group(MEMORY, "memory");
	for (int i = 0; i < t->ncounters; i++) {
		const struct counter *c = &t->counters[i];
		bool queue = c->kind == READY || c->kind == SUBMITTED;
		char name[128];
		snprintf(name, sizeof name, "%s%s%s", queue ? "" : t->nodes[c->node], queue ? "" : " ", names[c->kind]);
		if (c->time < t->begin || c->time > t->end) continue;
		write_event(json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "ph", "C", "name", name, "pid",
		                      queue ? QUEUES : MEMORY, "ts", us(t, c->time), "args", "value", c->value));
	}
}

static void write_watts(const struct trace *t, const char *name, double time, double joules, double milliseconds)
{
	if (isnan(joules) || milliseconds <= 0 || time < t->begin || time > t->end) return;
	write_event(json_pack("{s:s, s:s, s:i, s:f, s:{s:f}}", "ph", "C", "name", name, "pid", POWER, "ts", us(t, time),
	                      "args", "value", 1e3 * joules / milliseconds));
}

/* Each value is the mean since the time of the one before, where it is shown. */
static void write_power(const struct trace *t)
{
	if (t->nenergies) name_group(POWER, "power");
	for (int i = 1; i < t->nenergies; i++) {
		const struct energy *e = &t->energies[i];
		double since = e[-1].time;
		write_watts(t, "processors (W)", since, e->cpu, e->time - since);
		write_watts(t, "GPUs (W)", since, e->gpu, e->time - since);
	}
}

void write_perfetto(const struct trace *t, const char *path)
{
	out.path = path;
	struct slp_durable file;
	if (!slp_durable_open(&file, path)) fail("%s: %s: %s", path, file.what, strerror(file.error));
	out.file = file.stream;
	fputs("{\"displayTimeUnit\": \"ms\", \"traceEvents\": [", out.file);
	write_program(t);
	name_group(WORKERS, "workers");
	write_tasks(t);
	for (int w = 0; w < t->nworkers; w++) {
		write_blocks(t, w);
		write_states(t, w);
	}
	write_iterations(t);
	write_transfers(t);
	write_counters(t);
	write_power(t);
	fputs("\n]}\n", out.file);
	if (!slp_durable_commit((struct slp_durable *const[]){&file}, 1))
		fail("%s: %s: %s", path, file.what, strerror(file.error));
}
