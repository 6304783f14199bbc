/* When the copies of chosen gaps begin, and how long a run takes.
 *
 * A value that was written is copied to main memory as soon as its writer has ended.  It leaves when the copy is complete, if
 * its memory is not needed before that.  The copy back begins early enough to be complete when the next unit that uses the
 * value begins, and as late as that allows: backwards from the last unit, one copy after the other.  If the memory is not
 * free so early, it begins as soon as it is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "graph/offload.h"

struct when {
	const struct slp_offload_problem *p;
	struct slp_offload *o;
	double *begin;      /* of each unit, if nothing waits for copies; last: the end */
	int *order;         /* gaps by the unit that needs their value */
	double *done;       /* by gap: the end of the copy that it shares */
	bool placed;        /* stays have offsets */
	int *ends, *begins; /* by gap: the stay that ends and the one that begins with it; -1: none */
	int *last; /* by stay: the last unit of this run that lets go of memory at its place; negative: none does */
};

/* The time at which the thread that submits is at a position, which may be in another run. */
static double time_at(const struct when *w, int position)
{
	int n = w->p->nunits, run = position >= 0 ? position / n : -((n - 1 - position) / n), i = position - run * n;
	return run * w->begin[n] + w->begin[w->o->alone[i] || !i ? i : i - 1];
}

static int folded(const struct when *w, int position)
{
	int n = w->p->nunits;
	return ((position % n) + n) % n;
}

static double out_seconds(const struct when *w, int value)
{
	return w->p->out_latency + (double)w->p->bytes[value] / w->p->out_bytes;
}

static double in_seconds(const struct when *w, int value)
{
	return w->p->in_latency + (double)w->p->bytes[value] / w->p->in_bytes;
}

/* Lists gaps by their numbers from 0 to `most`, equal ones in their order; those with negative numbers are left out.  Their
 * count; -1 without memory. */
static int list_gaps(const struct when *w, int (*number)(const struct when *w, const struct slp_offload_gap *g),
                     int most, int *list)
{
	const struct slp_offload *o = w->o;
	int *place = slp_calloc((size_t)most + 2, sizeof *place);
	if (!place) return -1;
	for (int i = 0; i < o->ngaps; i++) {
		int k = number(w, &o->gaps[i]);
		if (k >= 0) place[k + 1]++;
	}
	for (int k = 0; k <= most; k++) place[k + 1] += place[k];
	for (int i = 0; i < o->ngaps; i++) {
		int k = number(w, &o->gaps[i]);
		if (k >= 0) list[place[k]++] = i;
	}
	int count = place[most];
	free(place);
	return count;
}

/* ---- to main memory ---------------------------------------------------------------------------------------------- */

static int position_after(const struct when *w, int unit)
{
	return unit + 1 >= w->p->nunits || w->o->alone[unit + 1] ? unit + 1 : unit + 2;
}

static bool fits(const struct when *w, int position, int value)
{
	size_t room = w->placed && w->p->most ? w->p->most : w->p->places ? w->p->places : w->p->room;
	return w->o->used[folded(w, position)] + w->p->bytes[value] <= room;
}

/* The stay before or behind a gap becomes longer by a position, if there is memory. */
static bool stretch(struct when *w, int stay, int position, int value, bool earlier)
{
	if (!fits(w, position, value)) return false;
	if (w->placed && (stay < 0 || !slp_offload_stretch(w->p, w->o, stay, earlier, !earlier))) return false;
	w->o->used[folded(w, position)] += w->p->bytes[value];
	return true;
}

static int copy_position(const struct when *w, const struct slp_offload_gap *g)
{
	return g->chosen && g->copy >= 0 ? position_after(w, g->written) : -1;
}

/* The end of each value's copy, one after the other from a moment on; returns that of the last one. */
static double time_copies(struct when *w, const int *list, int count, double free_at)
{
	struct slp_offload *o = w->o;
	for (int i = 0; i < count; i++) {
		struct slp_offload_gap *g = &o->gaps[list[i]];
		int position = position_after(w, g->written);
		free_at = fmax(free_at, time_at(w, position)) + out_seconds(w, g->value);
		w->done[g->copies] = free_at;
	}
	return free_at;
}

/* The beginning and the end of each value's copy; false without memory.  What is written at the end of a run, such as the
 * state of an optimiser, leaves at the beginning of the next one. */
static bool plan_copies(struct when *w)
{
	struct slp_offload *o = w->o;
	int count = list_gaps(w, copy_position, w->p->nunits, w->ends);
	for (int i = 0; i < o->ngaps; i++) w->done[i] = -INFINITY;
	double late = time_copies(w, w->ends, count, 0) - w->begin[w->p->nunits];
	if (late > 0) time_copies(w, w->ends, count, late);
	for (int i = 0; i < o->ngaps; i++) {
		struct slp_offload_gap *g = &o->gaps[i];
		if (g->chosen && g->copy >= 0) g->copy = position_after(w, g->written);
		g->drop = g->from;
		g->fetch = g->before;
	}
	return count >= 0;
}

/* Values leave when their copies are complete. */
static void plan_drops(struct when *w)
{
	for (int i = 0; i < w->o->ngaps; i++) {
		struct slp_offload_gap *g = &w->o->gaps[i];
		if (!g->chosen || g->after < g->written) continue;
		while (g->drop + 1 < g->before && time_at(w, g->drop) < w->done[g->copies] &&
		       stretch(w, w->ends[i], g->drop, g->value, false))
			g->drop++;
	}
}

/* ---- and back ---------------------------------------------------------------------------------------------------- */

static int user_of(const struct when *w, const struct slp_offload_gap *g)
{
	return folded(w, g->before);
}

/* Whether there is another value behind the gap: an input of the next run. */
static bool is_new(const struct when *w, const struct slp_offload_gap *g)
{
	return w->p->kind[g->value] == SLP_OFFLOAD_INPUT && g->before >= w->p->nunits;
}

/* The moment at which the last copy of a run ends, as those of the next one's first units begin in this run. */
static double end_of_copies(const struct when *w)
{
	const struct slp_offload *o = w->o;
	double link = INFINITY;
	for (int k = o->ngaps - 1; k >= 0; k--) {
		const struct slp_offload_gap *g = &o->gaps[w->order[k]];
		if (g->chosen && g->returns) link = fmin(w->begin[user_of(w, g)], link) - in_seconds(w, g->value);
	}
	return link < 0 ? w->begin[w->p->nunits] + link : INFINITY;
}

static void plan_fetches(struct when *w)
{
	struct slp_offload *o = w->o;
	double link = end_of_copies(w); /* the beginning of the copies that follow */
	for (int k = o->ngaps - 1; k >= 0; k--) {
		struct slp_offload_gap *g = &o->gaps[w->order[k]];
		if (!g->chosen || !g->returns) continue;
		int shift = g->before - user_of(w, g);
		double end = fmin(w->begin[user_of(w, g)], link);
		link = end - in_seconds(w, g->value);
		int first = g->drop + 1;
		if (is_new(w, g) && first < w->p->nunits) first = w->p->nunits;
		while (g->fetch > first && time_at(w, g->fetch - shift) > link &&
		       stretch(w, w->begins[w->order[k]], g->fetch - 1, g->value, true))
			g->fetch--;
	}
}

/* ---- what was at a place before ---------------------------------------------------------------------------------- */

/* Memory between two neighbouring ends of places. */
struct cells {
	size_t *begin;
	int count;
	int *last; /* of each cell: the stay that ended there last in this run; -1: none */
};

static int by_address(const void *a, const void *b)
{
	return (*(const size_t *)a > *(const size_t *)b) - (*(const size_t *)a < *(const size_t *)b);
}

/* The number of cells below an address. */
static int cell_at(const struct cells *c, size_t address)
{
	int low = 0, high = c->count;
	while (low < high) {
		int middle = low + (high - low) / 2;
		if (c->begin[middle] < address) low = middle + 1;
		else high = middle;
	}
	return low;
}

/* The position at which the stay ends, in this run, even if it began in the previous one. */
static int end_of(const struct when *w, int stay)
{
	int end = w->o->stays[stay].end;
	return end > w->p->nunits ? end - w->p->nunits : end;
}

/* Stays by their end, or by their beginning. */
static bool list_stays(const struct when *w, bool by_end, int *list)
{
	int n = w->p->nunits, *place = slp_calloc((size_t)n + 2, sizeof *place);
	if (!place) return false;
	for (int i = 0; i < w->o->nstays; i++) place[(by_end ? end_of(w, i) : w->o->stays[i].begin) + 1]++;
	for (int k = 0; k <= n; k++) place[k + 1] += place[k];
	for (int i = 0; i < w->o->nstays; i++) list[place[by_end ? end_of(w, i) : w->o->stays[i].begin]++] = i;
	free(place);
	return true;
}

/* The last unit of this run that has let go of memory at the place of a stay; negative: none has. */
static int last_there(const struct when *w, const struct cells *c, int stay)
{
	const struct slp_offload_stay *s = &w->o->stays[stay];
	int last = -1;
	for (int k = cell_at(c, s->offset); k < c->count && c->begin[k] < s->offset + w->p->bytes[s->value]; k++) {
		if (c->last[k] < 0 || c->last[k] == stay) continue;
		int end = end_of(w, c->last[k]), unit = end - (w->o->alone[end % w->p->nunits] ? 1 : 2);
		if (unit > last) last = unit;
	}
	return last;
}

/* That of each stay, in order of time. */
static void walk_stays(const struct when *w, struct cells *c, const int *by_begin, const int *by_end)
{
	struct slp_offload *o = w->o;
	for (int i = 0, ended = 0; i < o->nstays; i++) {
		int begin = o->stays[by_begin[i]].begin;
		for (; ended < o->nstays && end_of(w, by_end[ended]) <= begin; ended++) {
			const struct slp_offload_stay *t = &o->stays[by_end[ended]];
			size_t top = t->offset + w->p->bytes[t->value];
			for (int k = cell_at(c, t->offset); k < c->count && c->begin[k] < top; k++)
				c->last[k] = by_end[ended];
		}
		w->last[by_begin[i]] = last_there(w, c, by_begin[i]);
	}
}

/* Of each stay, w->last; false without memory. */
static bool find_last(struct when *w)
{
	const struct slp_offload *o = w->o;
	size_t n = (size_t)o->nstays + 1;
	struct cells c = {.begin = slp_malloc(2 * n * sizeof *c.begin)};
	w->last = slp_malloc(5 * n * sizeof *w->last);
	bool ok = c.begin && w->last;
	for (int i = 0; ok && i < o->nstays; i++) {
		c.begin[c.count++] = o->stays[i].offset;
		c.begin[c.count++] = o->stays[i].offset + w->p->bytes[o->stays[i].value];
	}
	if (ok) {
		int *by_begin = w->last + n, *by_end = by_begin + n;
		c.last = by_end + n;
		memset(c.last, 0xff, 2 * n * sizeof *c.last);
		qsort(c.begin, (size_t)c.count, sizeof *c.begin, by_address);
		ok = list_stays(w, false, by_begin) && list_stays(w, true, by_end);
		if (ok) walk_stays(w, &c, by_begin, by_end);
	}
	free(c.begin);
	return ok;
}

/* ---- the steps --------------------------------------------------------------------------------------------------- */

static int position_of(const struct when *w, const struct slp_offload_gap *g, int what)
{
	bool is = g->chosen && (what == SLP_OFFLOAD_COPY    ? g->copy >= 0
	                        : what == SLP_OFFLOAD_FETCH ? g->returns
	                                                    : true);
	if (what == SLP_OFFLOAD_DROP && is_new(w, g) && g->drop >= w->p->nunits) is = false; /* it is gone by then */
	if (!is) return -1;
	return folded(w, what == SLP_OFFLOAD_COPY ? g->copy : what == SLP_OFFLOAD_DROP ? g->drop : g->fetch);
}

/* The unit that has written the value before its copy, or used it before it leaves. */
static int last_user(const struct when *w, const struct slp_offload_gap *g, int what)
{
	int n = w->p->nunits, position = what == SLP_OFFLOAD_COPY ? g->copy : g->drop;
	int unit = what == SLP_OFFLOAD_COPY ? g->written : g->after;
	return what == SLP_OFFLOAD_FETCH ? -1 : position >= n ? unit - n : unit;
}

/* Calls each step with its position: copies before values that leave, then places, then copies back, by the unit that needs
 * them.  A value that stays from the end of a run to the next one has a place in the first run, too. */
static void each_step(const struct when *w, void (*step)(const struct when *w, int position, struct slp_offload_step s))
{
	static const int order[] = {SLP_OFFLOAD_COPY, SLP_OFFLOAD_DROP, SLP_OFFLOAD_PLACE, SLP_OFFLOAD_FETCH};
	const struct slp_offload *o = w->o;
	for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
		int what = order[k];
		for (int i = 0; i < o->nstays && what == SLP_OFFLOAD_PLACE; i++) {
			const struct slp_offload_stay *s = &o->stays[i];
			step(w, s->begin, (struct slp_offload_step){what, s->value, s->offset, w->last[i]});
			if (s->end > w->p->nunits) step(w, 0, (struct slp_offload_step){what, s->value, s->offset, -1});
		}
		for (int i = 0; i < o->ngaps && what != SLP_OFFLOAD_PLACE; i++) {
			const struct slp_offload_gap *g = &o->gaps[w->order[i]];
			int position = position_of(w, g, what);
			if (position < 0) continue;
			step(w, position, (struct slp_offload_step){what, g->value, 0, last_user(w, g, what)});
		}
	}
}

static void count_step(const struct when *w, int position, struct slp_offload_step s)
{
	(void)s;
	w->o->first[position + 1]++;
}

/* first[i + 1] is the place of the next step at position i. */
static void enter_step(const struct when *w, int position, struct slp_offload_step s)
{
	w->o->steps[w->o->first[position + 1]++] = s;
}

static bool list_steps(struct when *w)
{
	struct slp_offload *o = w->o;
	int n = w->p->nunits, sum = 0;
	o->first = slp_calloc((size_t)n + 2, sizeof *o->first);
	if (!o->first || !find_last(w)) return false;
	each_step(w, count_step);
	for (int i = 1; i <= n; i++) {
		int count = o->first[i];
		o->first[i] = sum;
		sum += count;
	}
	o->nsteps = sum;
	o->steps = slp_malloc((size_t)(sum + 1) * sizeof *o->steps);
	if (!o->steps) return false;
	each_step(w, enter_step);
	return true;
}

/* ---- the prediction ---------------------------------------------------------------------------------------------- */

struct clock {
	double host, out, in; /* when the thread that submits, and the link each way, are free */
	double *left, *there; /* of each value: when its copies are complete */
	double *end;          /* of each unit of this run, or of the previous one */
};

static const double task_seconds = 15e-6; /* of a task beside its kernels */

static double later(double a, double b)
{
	return a > b ? a : b;
}

static void carry_out(const struct when *w, struct clock *c, struct slp_offload_step s)
{
	if (s.ended >= 0) c->host = later(c->host, c->end[s.ended]);
	switch (s.what) {
	case SLP_OFFLOAD_COPY: c->left[s.value] = c->out = later(c->out, c->host) + out_seconds(w, s.value); break;
	case SLP_OFFLOAD_DROP: c->host = later(c->host, c->left[s.value]); break;
	case SLP_OFFLOAD_PLACE: break;
	case SLP_OFFLOAD_FETCH: c->there[s.value] = c->in = later(c->in, c->host) + in_seconds(w, s.value); break;
	}
}

static double run_once(const struct when *w, struct clock *c)
{
	const double start = 20e-6; /* of a task that is submitted when the previous one has ended */
	const struct slp_offload *o = w->o;
	int n = w->p->nunits;
	for (int i = 0; i < n; i++) {
		int waits = i ? i - SLP_OFFLOAD_AHEAD : n - 1;
		double before = c->end[i ? i - 1 : n - 1];
		if (waits >= 0) c->host = later(c->host, c->end[waits]);
		for (int k = o->first[i]; k < o->first[i + 1]; k++) carry_out(w, c, o->steps[k]);
		double begin = later(before, c->host + start);
		for (int k = 0; k < w->p->units[i].nuses; k++)
			begin = later(begin, c->there[w->p->units[i].uses[k].value]);
		c->end[i] = begin + task_seconds + w->p->units[i].seconds;
	}
	return c->end[n - 1];
}

/* Of a run like those before it. */
static bool predict(struct when *w)
{
	size_t values = (size_t)w->p->nvalues, n = (size_t)w->p->nunits;
	double *memory = slp_calloc(2 * values + n + 1, sizeof *memory);
	if (!memory) return false;
	struct clock c = {.left = memory, .there = memory + values, .end = memory + 2 * values};
	double before = 0, now = 0;
	for (int run = 0; run < 3; run++) {
		before = now;
		now = run_once(w, &c);
	}
	w->o->seconds = now - before;
	w->o->busy = w->begin[n];
	free(memory);
	return true;
}

double slp_offload_exposed(const struct slp_offload_problem *p, const struct slp_offload *o)
{
	return o->seconds - o->busy - p->nunits * task_seconds;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool sort(struct when *w)
{
	int n = w->p->nunits;
	size_t gaps = (size_t)w->o->ngaps + 1;
	w->begin = slp_malloc(((size_t)n + 1 + gaps) * sizeof *w->begin);
	w->order = slp_malloc(3 * gaps * sizeof *w->order);
	if (!w->begin || !w->order) return false;
	w->done = w->begin + n + 1;
	w->ends = w->order + gaps;
	w->begins = w->ends + gaps;
	w->begin[0] = 0;
	for (int i = 0; i < n; i++) w->begin[i + 1] = w->begin[i] + w->p->units[i].seconds;
	return list_gaps(w, user_of, n, w->order) >= 0;
}

/* Of each gap. */
static void find_stays(struct when *w)
{
	const struct slp_offload *o = w->o;
	for (int i = 0; i < o->ngaps; i++) w->ends[i] = w->begins[i] = -1;
	for (int i = 0; i < o->nstays; i++) {
		if (o->stays[i].before >= 0) w->ends[o->stays[i].before] = i;
		if (o->stays[i].after >= 0) w->begins[o->stays[i].after] = i;
	}
}

/* The value is away from position `from` to before position `before` again; false: it has not been longer there. */
static bool take_back(struct when *w, int gap)
{
	if (gap < 0) return false;
	struct slp_offload_gap *g = &w->o->gaps[gap];
	bool any = g->drop > g->from || g->fetch < g->before;
	while (g->drop > g->from) w->o->used[folded(w, --g->drop)] -= w->p->bytes[g->value];
	while (g->fetch < g->before) w->o->used[folded(w, g->fetch++)] -= w->p->bytes[g->value];
	return any;
}

/* Values that got no place are there for a shorter time; false: they are all there for the shortest. */
static bool shorten(struct when *w)
{
	bool any = false;
	for (int i = 0; i < w->o->nstays; i++) {
		const struct slp_offload_stay *s = &w->o->stays[i];
		if (s->offset + w->p->bytes[s->value] <= w->p->places) continue;
		any |= take_back(w, s->after);
		any |= take_back(w, s->before);
	}
	return any;
}

/* Copies have time as far as there is memory for values that leave later and come back earlier: first by bytes alone.  Values
 * that get no place then are there for a shorter time; in the end gaps between places are used. */
static bool give_time(struct when *w)
{
	enum { TRIES = 8 };
	struct slp_offload *o = w->o;
	bool ok = true, fit = false;
	if (!w->p->one_by_one) {
		plan_drops(w);
		plan_fetches(w);
	}
	for (int i = 0; i < TRIES && ok && !fit; i++) {
		ok = slp_offload_place(w->p, o, !w->p->places || w->p->one_by_one || i + 1 == TRIES);
		fit = !w->p->places || o->height <= w->p->places || !shorten(w);
	}
	for (int i = 0; i < o->ngaps && !fit; i++) take_back(w, i);
	if (ok && w->p->places && o->height > w->p->places) ok = slp_offload_place(w->p, o, true);
	if (!ok) return false;
	w->placed = true;
	find_stays(w);
	if (o->height <= (w->p->places ? w->p->places : w->p->most)) {
		plan_drops(w);
		plan_fetches(w);
	}
	slp_offload_sink(w->p, o);
	for (int i = 0; i < w->p->nunits; i++)
		if (o->used[i] > o->peak) o->peak = o->used[i];
	return true;
}

bool slp_offload_when(const struct slp_offload_problem *p, struct slp_offload *o)
{
	struct when w = {.p = p, .o = o};
	bool ok = sort(&w);
	ok = ok && plan_copies(&w) && give_time(&w) && list_steps(&w) && predict(&w);
	free(w.begin);
	free(w.order);
	free(w.last);
	return ok;
}
