/* Reads descriptions of tasks: tasks.rec (by StarPU's tool) and calls.tsv (by Starling). */
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* ---- calls.tsv --------------------------------------------------------------------------------------------------- */

/* The record of one task in calls.tsv. */
struct note {
	long id;
	int kind, thread;
	double time; /* of submission, by the program's clock, in milliseconds */
	char *block;
	double *spent;
};

struct notes {
	struct note *list;
	int count;
};

/* kind NUMBER NAME CALLS FLOPS COLOUR FAMILY TEXT; they come in the order of their numbers. */
static void read_kind(struct trace *t, char *line)
{
	char *word[6];
	t->kinds = list_add(t->kinds, &t->nkinds, sizeof *t->kinds);
	for (int i = 0; i < 6; i++) word[i] = strsep(&line, "\t");
	struct kind *k = &t->kinds[t->nkinds - 1];
	k->colour = word[4] ? (unsigned)strtoul(word[4], NULL, 16) : 0;
	k->family = text_copy(word[5]);
	k->calls = text_copy(line);
}

/* layers KIND WEIGHT PATH WEIGHT PATH ... */
static void read_layers(struct trace *t, char *line)
{
	const char *number = strsep(&line, "\t");
	int kind = atoi(number);
	if (kind < 0 || kind >= t->nkinds) return;
	struct kind *k = &t->kinds[kind];
	for (char *weight; (weight = strsep(&line, "\t"));) {
		k->layers = list_add(k->layers, &k->nlayers, sizeof *k->layers);
		k->layers[k->nlayers - 1] = (struct layer){text_copy(strsep(&line, "\t")), atof(weight)};
	}
}

/* task NUMBER KIND TIME THREAD FILE:LINE [BLOCK] */
static void read_note(struct notes *notes, char *line)
{
	char *word[4];
	for (int i = 0; i < 4; i++) word[i] = strsep(&line, "\t");
	char *block = line ? strstr(line, " [") : NULL, *end = block ? strrchr(block, ']') : NULL;
	if (!line) return;
	if (end) *end = '\0';
	notes->list = list_add(notes->list, &notes->count, sizeof *notes->list);
	notes->list[notes->count - 1] = (struct note){.id = atol(word[0]),
	                                              .kind = atoi(word[1]),
	                                              .thread = atoi(word[3]),
	                                              .time = 1e3 * atof(word[2]),
	                                              .block = end ? text_copy(block + 2) : NULL};
}

static int note_by_id(const void *a, const void *b)
{
	long x = ((const struct note *)a)->id, y = ((const struct note *)b)->id;
	return (x > y) - (x < y);
}

static struct note *find_note(const struct notes *notes, long id)
{
	struct note key = {.id = id};
	if (!notes->count) return NULL;
	return bsearch(&key, notes->list, (size_t)notes->count, sizeof key, note_by_id);
}

/* spent NUMBER MICROSECONDS MICROSECONDS ...: a task's that was noted before. */
static void read_spent(const struct trace *t, const struct notes *notes, char *line)
{
	struct note *n = find_note(notes, atol(strsep(&line, "\t")));
	if (!n || n->kind < 0 || n->kind >= t->nkinds) return;
	int count = t->kinds[n->kind].nlayers;
	n->spent = calloc((size_t)count + 1, sizeof *n->spent);
	for (int i = 0; n->spent && i < count && line; i++) n->spent[i] = 1e-3 * atof(strsep(&line, "\t"));
}

/* wait SINCE UNTIL THREAD WHAT FUNCTION FILE:LINE, or ? if unknown */
static void read_wait(struct trace *t, char *line)
{
	char *word[5], *at = NULL;
	for (int i = 0; i < 5; i++) word[i] = strsep(&line, "\t");
	bool known = line && strcmp(line, "?") != 0;
	if (!line || asprintf(&at, "%s%s%s", word[4], known ? " at " : "", known ? line : "") < 0) return;
	t->waits = list_add(t->waits, &t->nwaits, sizeof *t->waits);
	t->waits[t->nwaits - 1] = (struct wait){1e3 * atof(word[0]), 1e3 * atof(word[1]), atoi(word[2]),
	                                        text_copy(word[3]), text_copy(at)};
	free(at);
}

/* energy TIME CPU GPU */
static void read_energy(struct trace *t, char *line)
{
	char *word[3];
	for (int i = 0; i < 3; i++) word[i] = strsep(&line, "\t");
	if (!word[2]) return;
	t->energies = list_add(t->energies, &t->nenergies, sizeof *t->energies);
	t->energies[t->nenergies - 1] = (struct energy){1e3 * atof(word[0]), atof(word[1]), atof(word[2])};
}

static bool begins(const char *line, const char *word)
{
	size_t n = strlen(word);
	return !strncmp(line, word, n) && line[n] == '\t';
}

/* Twice: the times of tasks need the notes in order. */
static void read_calls(struct trace *t, const char *folder, struct notes *notes, bool spent)
{
	FILE *f = open_in(folder, "calls.tsv", false);
	char *line = NULL;
	size_t size = 0;
	for (ssize_t n; f && (n = getline(&line, &size, f)) > 0;) {
		if (line[n - 1] == '\n') line[n - 1] = '\0';
		if (spent && begins(line, "spent")) read_spent(t, notes, line + 6);
		if (spent) continue;
		if (begins(line, "kind")) read_kind(t, line + 5);
		else if (begins(line, "layers")) read_layers(t, line + 7);
		else if (begins(line, "task")) read_note(notes, line + 5);
		else if (begins(line, "wait")) read_wait(t, line + 5);
		else if (begins(line, "energy")) read_energy(t, line + 7);
	}
	free(line);
	if (f) fclose(f);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Of energies, too.  The trace's clock is the program's, but begins elsewhere: by the median of all submissions, which both know. */
static void move_waits(struct trace *t, const struct notes *notes)
{
	double *differences = calloc((unsigned)t->ntasks + 1u, sizeof *differences), by;
	int count = 0;
	if (!differences) fail("no memory for %d tasks", t->ntasks);
	for (int i = 0; i < t->ntasks; i++) {
		const struct note *n = find_note(notes, t->tasks[i].id);
		if (n && t->tasks[i].submit > 0) differences[count++] = t->tasks[i].submit - n->time;
	}
	qsort(differences, (size_t)count, sizeof *differences, by_value);
	by = differences[count / 2];
	free(differences);
	if (!count) t->nwaits = 0;
	for (int i = 0; i < t->nwaits; i++) {
		t->waits[i].start += by;
		t->waits[i].end += by;
	}
	for (int i = 0; i < t->nenergies; i++) t->energies[i].time += by;
}

static void attach_notes(struct trace *t, struct notes *notes)
{
	for (int i = 0; i < t->ntasks; i++) {
		struct task *task = &t->tasks[i];
		const struct note *n = find_note(notes, task->id);
		task->thread = n ? n->thread : -1;
		if (!n || n->kind < 0 || n->kind >= t->nkinds) continue;
		task->kind = &t->kinds[n->kind];
		task->block = n->block;
		task->spent = n->spent;
	}
}

double layer_time(const struct task *task, int layer)
{
	const struct kind *k = task->kind;
	double all = 0;
	for (int i = 0; i < k->nlayers; i++) all += task->spent ? task->spent[i] : k->layers[i].weight;
	if (!(all > 0)) return (task->end - task->start) / k->nlayers;
	return (task->end - task->start) * (task->spent ? task->spent[layer] : k->layers[layer].weight) / all;
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

/* StarPU's own tasks (of acquisitions, say) run on no worker and are skipped. */
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
	read_calls(t, folder, &notes, false);
	if (notes.count) qsort(notes.list, (size_t)notes.count, sizeof *notes.list, note_by_id);
	read_calls(t, folder, &notes, true);
	read_tasks(t, folder);
	if (!t->ntasks) fail("no task has run in this trace");
	attach_notes(t, &notes);
	move_waits(t, &notes);
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
