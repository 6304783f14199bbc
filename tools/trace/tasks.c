/* Reads what tasks were: tasks.rec (by StarPU's tool) and calls.tsv (by Starling). */
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* ---- calls.tsv --------------------------------------------------------------------------------------------------- */

/* What calls.tsv says of one task. */
struct note {
	long id;
	int kind;
	char *block;
};

struct notes {
	struct note *list;
	int count;
};

/* kind NUMBER NAME CALLS FLOPS TEXT; they come in the order of their numbers. */
static void read_kind(struct trace *t, char *line)
{
	t->kinds = list_add(t->kinds, &t->nkinds, sizeof *t->kinds);
	for (int i = 0; i < 4; i++) strsep(&line, "\t");
	t->kinds[t->nkinds - 1].calls = text_copy(line);
}

/* task NUMBER KIND FILE:LINE [BLOCK] */
static void read_note(struct notes *notes, char *line)
{
	const char *id = strsep(&line, "\t"), *kind = strsep(&line, "\t");
	char *block = line ? strstr(line, " [") : NULL, *end = block ? strrchr(block, ']') : NULL;
	if (!kind) return;
	if (end) *end = '\0';
	notes->list = list_add(notes->list, &notes->count, sizeof *notes->list);
	notes->list[notes->count - 1] = (struct note){atol(id), atoi(kind), end ? text_copy(block + 2) : NULL};
}

static void read_calls(struct trace *t, const char *folder, struct notes *notes)
{
	FILE *f = open_in(folder, "calls.tsv", false);
	char *line = NULL;
	size_t size = 0;
	for (ssize_t n; f && (n = getline(&line, &size, f)) > 0;) {
		if (line[n - 1] == '\n') line[n - 1] = '\0';
		if (!strncmp(line, "kind\t", 5)) read_kind(t, line + 5);
		if (!strncmp(line, "task\t", 5)) read_note(notes, line + 5);
	}
	free(line);
	if (f) fclose(f);
}

static int note_by_id(const void *a, const void *b)
{
	long x = ((const struct note *)a)->id, y = ((const struct note *)b)->id;
	return (x > y) - (x < y);
}

static void attach_notes(struct trace *t, struct notes *notes)
{
	if (notes->count) qsort(notes->list, (size_t)notes->count, sizeof *notes->list, note_by_id);
	for (int i = 0; i < t->ntasks && notes->count; i++) {
		struct task *task = &t->tasks[i];
		struct note key = {.id = task->id};
		const struct note *n = bsearch(&key, notes->list, (size_t)notes->count, sizeof key, note_by_id);
		if (!n || n->kind < 0 || n->kind >= t->nkinds) continue;
		task->kind = &t->kinds[n->kind];
		task->block = n->block;
	}
}

/* ---- tasks.rec --------------------------------------------------------------------------------------------------- */

static void read_deps(struct task *task, char *text)
{
	for (char *word; (word = strsep(&text, " "));) {
		long id = atol(word);
		bool known = !*word;
		for (int i = 0; i < task->ndeps; i++) known |= task->deps[i] == id;
		if (known) continue;
		task->deps = list_add(task->deps, &task->ndeps, sizeof *task->deps);
		task->deps[task->ndeps - 1] = id;
	}
}

static void read_iterations(struct task *task, const char *text)
{
	sscanf(text, "%ld %ld", &task->iteration, &task->subiteration);
}

static void read_line(struct task *task, char *line)
{
	char *file = NULL;
	if (!strncmp(line, "File: ", 6)) task->file = text_copy(line + 6);
	else if (!strncmp(line, "Line: ", 6)) {
		if (asprintf(&file, "%s:%s", task->file ? task->file : "?", line + 6) >= 0) task->file = file;
	} else if (!strncmp(line, "Name: ", 6)) task->name = text_copy(line + 6);
	else if (!strncmp(line, "Model: ", 7)) task->model = text_copy(line + 7);
	else if (!strncmp(line, "JobId: ", 7)) task->id = atol(line + 7);
	else if (!strncmp(line, "Priority: ", 10)) task->priority = atol(line + 10);
	else if (!strncmp(line, "DependsOn: ", 11)) read_deps(task, line + 11);
	else if (!strncmp(line, "WorkerId: ", 10)) task->worker = atoi(line + 10);
	else if (!strncmp(line, "MemoryNode: ", 12)) task->node = atoi(line + 12);
	else if (!strncmp(line, "SubmitTime: ", 12)) task->submit = atof(line + 12);
	else if (!strncmp(line, "StartTime: ", 11)) task->start = atof(line + 11);
	else if (!strncmp(line, "EndTime: ", 9)) task->end = atof(line + 9);
	else if (!strncmp(line, "Footprint: ", 11)) task->footprint = text_copy(line + 11);
	else if (!strncmp(line, "GFlop: ", 7)) task->gflop = atof(line + 7);
	else if (!strncmp(line, "Iteration: ", 11)) read_iterations(task, line + 11);
}

static const struct task none = {.worker = -1, .start = -1, .end = -1, .iteration = -1, .subiteration = -1};

/* StarPU's own tasks (of acquisitions, say) run on no worker and are left out. */
static void keep_task(struct trace *t, const struct task *task)
{
	if (task->worker < 0 || task->start < 0 || task->end < task->start) return;
	t->tasks = list_add(t->tasks, &t->ntasks, sizeof *t->tasks);
	t->tasks[t->ntasks - 1] = *task;
	if (!task->name) t->tasks[t->ntasks - 1].name = text_copy("?");
}

static int by_start(const void *a, const void *b)
{
	const struct task *x = a, *y = b;
	if (x->start != y->start) return x->start < y->start ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static void read_tasks(struct trace *t, const char *folder)
{
	FILE *f = open_in(folder, "tasks.rec", true);
	struct task task = none;
	char *line = NULL;
	size_t size = 0;
	for (ssize_t n; (n = getline(&line, &size, f)) > 0;) {
		if (line[n - 1] == '\n') line[n - 1] = '\0';
		if (*line) {
			read_line(&task, line);
			continue;
		}
		keep_task(t, &task);
		task = none;
	}
	keep_task(t, &task);
	free(line);
	fclose(f);
	if (t->ntasks) qsort(t->tasks, (size_t)t->ntasks, sizeof *t->tasks, by_start);
}

void read_kinds_and_tasks(struct trace *t, const char *folder)
{
	struct notes notes = {0};
	read_calls(t, folder, &notes);
	read_tasks(t, folder);
	if (!t->ntasks) fail("no task has run in this trace");
	attach_notes(t, &notes);
	free(notes.list);
	t->begin = t->tasks[0].start;
	for (int i = 0; i < t->ntasks; i++) {
		if (t->tasks[i].submit > 0 && t->tasks[i].submit < t->begin) t->begin = t->tasks[i].submit;
		if (t->tasks[i].end > t->end) t->end = t->tasks[i].end;
	}
}

/* Ids are few and dense, but the list is by start: an index made once. */
struct task *task_by_id(const struct trace *t, long id)
{
	static struct task **index;
	static long largest = -1;
	if (!index) {
		for (int i = 0; i < t->ntasks; i++)
			if (t->tasks[i].id > largest) largest = t->tasks[i].id;
		index = calloc((size_t)largest + 1, sizeof *index);
		if (!index) fail("no memory for %ld tasks", largest);
		for (int i = 0; i < t->ntasks; i++) index[t->tasks[i].id] = &t->tasks[i];
	}
	return id >= 0 && id <= largest ? index[id] : NULL;
}
