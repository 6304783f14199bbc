/* Reads paje.trace: workers and their states, memory nodes, transfers, counters.  The head of the file lists the
 * fields of each kind of event. */
#include <stdlib.h>
#include <string.h>

#include "trace.h"

enum { MAX_EVENTS = 64, MAX_FIELDS = 24 };

enum field { TIME, TYPE, CONTAINER, VALUE, ALIAS, NAME, KEY, START, END, HNAME, FIELDS };
static const char *const field_names[FIELDS] = {"Time", "Type", "Container",      "Value",        "Alias",
                                                "Name", "Key",  "StartContainer", "EndContainer", "HName"};

/* The kind of an event by its number, and the places of its fields (0: missing). */
static struct event {
	char what[32];
	int place[FIELDS];
} events[MAX_EVENTS];

struct line {
	const struct event *event;
	char *word[MAX_FIELDS];
	int words;
};

static const char *get(const struct line *l, enum field f)
{
	int place = l->event->place[f];
	return place && place < l->words ? l->word[place] : "";
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

static struct event *open_event; /* the one that the head describes now */

/* "%EventDef PajeSetState 20", "% Time date", "%EndEventDef" */
static void read_definition(const char *text)
{
	static int place;
	char word[64], what[32];
	int number;
	if (sscanf(text, "%%EventDef %31s %d", what, &number) == 2) {
		open_event = number >= 0 && number < MAX_EVENTS ? &events[number] : NULL;
		if (open_event) strcpy(open_event->what, what);
		place = 0;
	} else if (open_event && sscanf(text, "%% %63s", word) == 1) {
		place++;
		for (int f = 0; f < FIELDS; f++)
			if (!strcmp(word, field_names[f])) open_event->place[f] = place;
	}
}

/* Cuts a line at blanks that are not within quotes. */
static void split(struct line *l, char *text)
{
	l->words = 0;
	while (l->words < MAX_FIELDS) {
		text += strspn(text, " \t\n");
		if (!*text) break;
		bool quoted = *text == '"';
		text += quoted;
		l->word[l->words++] = text;
		text += strcspn(text, quoted ? "\"" : " \t\n");
		if (*text) *text++ = '\0';
	}
}

static bool is(const struct line *l, const char *what)
{
	return !strcmp(l->event->what, what);
}

/* ---- workers and memory ------------------------------------------------------------------------------------------ */

/* Containers are threads "t…" in memory nodes "mnN", and workers "wN" in threads. */
static struct thread {
	char *alias;
	int node;
} * threads;
static int nthreads;

static int number_after(const char *text, const char *prefix)
{
	size_t n = strlen(prefix);
	return !strncmp(text, prefix, n) && text[n] >= '0' && text[n] <= '9' ? atoi(text + n) : -1;
}

static int node_of_thread(const char *alias)
{
	for (int i = nthreads - 1; i >= 0; i--)
		if (!strcmp(threads[i].alias, alias)) return threads[i].node;
	return 0;
}

static void name_node(struct trace *t, int node, const char *worker)
{
	free(t->nodes[node]);
	t->nodes[node] = text_copy(worker);
	t->nodes[node][strcspn(t->nodes[node], "_")] = '\0'; /* a GPU's memory is called like the GPU */
}

static void add_worker(struct trace *t, int number, const char *name, int node)
{
	while (t->nworkers <= number) t->workers = list_add(t->workers, &t->nworkers, sizeof *t->workers);
	t->workers[number].name = text_copy(name);
	t->workers[number].node = node;
	if (node > 0 && node < t->nnodes) name_node(t, node, name);
}

static void add_node(struct trace *t, int number)
{
	char name[32] = "RAM";
	while (t->nnodes <= number) {
		if (t->nnodes) snprintf(name, sizeof name, "memory %d", t->nnodes);
		t->nodes = list_add(t->nodes, &t->nnodes, sizeof *t->nodes);
		t->nodes[t->nnodes - 1] = text_copy(name);
	}
}

static void add_container(struct trace *t, const struct line *l)
{
	const char *alias = get(l, ALIAS), *type = get(l, TYPE), *parent = get(l, CONTAINER);
	if (!strcmp(type, "Mn")) add_node(t, number_after(alias, "mn"));
	if (!strcmp(type, "T")) {
		threads = list_add(threads, &nthreads, sizeof *threads);
		threads[nthreads - 1] = (struct thread){text_copy(alias), number_after(parent, "mn")};
	}
	if (!strcmp(type, "W") && number_after(alias, "w") >= 0)
		add_worker(t, number_after(alias, "w"), get(l, NAME), node_of_thread(parent));
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void add_state(struct trace *t, const struct line *l)
{
	int worker = number_after(get(l, CONTAINER), "w");
	if (strcmp(get(l, TYPE), "WS") || worker < 0 || worker >= t->nworkers) return;
	struct worker *w = &t->workers[worker];
	w->states = list_add(w->states, &w->nstates, sizeof *w->states);
	w->states[w->nstates - 1] = (struct state){atof(get(l, TIME)), text_copy(get(l, VALUE))};
}

static const char *const counter_types[COUNTERS] = {"nready", "nsubmitted", "use", "bwi_mm", "bwo_mm"};

static void add_counter(struct trace *t, const struct line *l)
{
	const char *type = get(l, TYPE);
	int kind = 0, node = number_after(get(l, CONTAINER), "mm");
	while (kind < COUNTERS && strcmp(type, counter_types[kind])) kind++;
	if (kind == COUNTERS) return;
	t->counters = list_add(t->counters, &t->ncounters, sizeof *t->counters);
	t->counters[t->ncounters - 1] =
	        (struct counter){(enum counter_kind)kind, node < 0 ? 0 : node, atof(get(l, TIME)), atof(get(l, VALUE))};
}

static void begin_transfer(struct trace *t, const struct line *l)
{
	int from = number_after(get(l, START), "mm");
	if (from < 0) return;
	t->transfers = list_add(t->transfers, &t->ntransfers, sizeof *t->transfers);
	t->transfers[t->ntransfers - 1] = (struct transfer){text_copy(get(l, KEY)),
	                                                    text_copy(get(l, HNAME)),
	                                                    text_copy(get(l, TYPE)),
	                                                    from,
	                                                    -1,
	                                                    atof(get(l, TIME)),
	                                                    -1,
	                                                    atof(get(l, VALUE))};
}

/* They end soon after they have begun: the search goes back from the newest. */
static void end_transfer(struct trace *t, const struct line *l)
{
	int to = number_after(get(l, END), "mm");
	for (int i = t->ntransfers - 1; i >= 0 && to >= 0; i--) {
		struct transfer *x = &t->transfers[i];
		if (x->end >= 0 || strcmp(x->key, get(l, KEY))) continue;
		x->to = to;
		x->end = atof(get(l, TIME));
		return;
	}
}

static void read_event(struct trace *t, const struct line *l)
{
	if (is(l, "PajeCreateContainer")) add_container(t, l);
	else if (is(l, "PajeSetState")) add_state(t, l);
	else if (is(l, "PajeSetVariable")) add_counter(t, l);
	else if (is(l, "PajeStartLink")) begin_transfer(t, l);
	else if (is(l, "PajeEndLink")) end_transfer(t, l);
}

void read_paje(struct trace *t, const char *folder)
{
	FILE *f = open_in(folder, "paje.trace", true);
	struct line l;
	char *text = NULL;
	size_t size = 0;
	while (getline(&text, &size, f) > 0) {
		if (*text == '%') {
			read_definition(text);
			continue;
		}
		split(&l, text);
		int number = l.words ? atoi(l.word[0]) : -1;
		if (number < 0 || number >= MAX_EVENTS) continue;
		l.event = &events[number];
		read_event(t, &l);
	}
	free(text);
	fclose(f);
	for (int i = 0; i < t->ntasks; i++)
		if (t->tasks[i].worker >= t->nworkers) fail("paje.trace has no worker %d", t->tasks[i].worker);
}
