/* When the copies of chosen gaps begin, and how long a run takes.
 *
 * A value that was written is copied to main memory as soon as its writer has ended.  It leaves when the copy is complete, if
 * its memory is not needed before that.  The copy back begins early enough to be complete when the next unit that uses the
 * value begins, and as late as that allows: backwards from the last unit, one copy after the other.  If the memory is not
 * free so early, it begins as soon as it is. */
#include <math.h>
#include <stdlib.h>

#include "alloc.h"
#include "graph/offload_times.h"

/* The time at which the thread that submits is at a position, which may be in another run. */
static double time_at(const struct slp_offload_times *w, int position)
{
	int n = w->p->nunits, run = position >= 0 ? position / n : -((n - 1 - position) / n), i = position - run * n;
	return run * w->begin[n] + w->begin[w->o->alone[i] || !i ? i : i - 1];
}

/* Lists gaps by their numbers from 0 to `most`, equal ones in their order; those with negative numbers are left out.  Their
 * count; -1 without memory. */
static int list_gaps(const struct slp_offload_times *w,
                     int (*number)(const struct slp_offload_times *w, const struct slp_offload_gap *g), int most,
                     int *list)
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

static int position_after(const struct slp_offload_times *w, int unit)
{
	return unit + 1 >= w->p->nunits || w->o->alone[unit + 1] ? unit + 1 : unit + 2;
}

static bool fits(const struct slp_offload_times *w, int position, int value)
{
	size_t room = w->placed && w->p->most ? w->p->most : w->p->places ? w->p->places : w->p->room;
	return w->o->used[slp_offload_folded(w, position)] + w->p->bytes[value] <= room;
}

/* The stay before or behind a gap becomes longer by a position, if there is memory. */
static bool stretch(struct slp_offload_times *w, int stay, int position, int value, bool earlier)
{
	if (!fits(w, position, value)) return false;
	if (w->placed && (stay < 0 || !slp_offload_stretch(w->p, w->o, stay, earlier, !earlier))) return false;
	w->o->used[slp_offload_folded(w, position)] += w->p->bytes[value];
	return true;
}

static int copy_position(const struct slp_offload_times *w, const struct slp_offload_gap *g)
{
	return g->chosen && g->copy >= 0 ? position_after(w, g->written) : -1;
}

/* The end of each value's copy, one after the other from a moment on; returns that of the last one. */
static double time_copies(struct slp_offload_times *w, const int *list, int count, double free_at)
{
	struct slp_offload *o = w->o;
	for (int i = 0; i < count; i++) {
		struct slp_offload_gap *g = &o->gaps[list[i]];
		int position = position_after(w, g->written);
		free_at = fmax(free_at, time_at(w, position)) + slp_offload_out_seconds(w, g->value);
		w->done[g->copies] = free_at;
	}
	return free_at;
}

/* The beginning and the end of each value's copy; false without memory.  What is written at the end of a run, such as the
 * state of an optimiser, leaves at the beginning of the next one. */
static bool plan_copies(struct slp_offload_times *w)
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
static void plan_drops(struct slp_offload_times *w)
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

static int user_of(const struct slp_offload_times *w, const struct slp_offload_gap *g)
{
	return slp_offload_folded(w, g->before);
}

/* The moment at which the last copy of a run ends, as those of the next one's first units begin in this run. */
static double end_of_copies(const struct slp_offload_times *w)
{
	const struct slp_offload *o = w->o;
	double link = INFINITY;
	for (int k = o->ngaps - 1; k >= 0; k--) {
		const struct slp_offload_gap *g = &o->gaps[w->order[k]];
		if (g->chosen && g->returns)
			link = fmin(w->begin[user_of(w, g)], link) - slp_offload_in_seconds(w, g->value);
	}
	return link < 0 ? w->begin[w->p->nunits] + link : INFINITY;
}

static void plan_fetches(struct slp_offload_times *w)
{
	struct slp_offload *o = w->o;
	double link = end_of_copies(w); /* the beginning of the copies that follow */
	for (int k = o->ngaps - 1; k >= 0; k--) {
		struct slp_offload_gap *g = &o->gaps[w->order[k]];
		if (!g->chosen || !g->returns) continue;
		int shift = g->before - user_of(w, g);
		double end = fmin(w->begin[user_of(w, g)], link);
		link = end - slp_offload_in_seconds(w, g->value);
		int first = g->drop + 1;
		if (slp_offload_is_new(w, g) && first < w->p->nunits) first = w->p->nunits;
		while (g->fetch > first && time_at(w, g->fetch - shift) > link &&
		       stretch(w, w->begins[w->order[k]], g->fetch - 1, g->value, true))
			g->fetch--;
	}
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool sort(struct slp_offload_times *w)
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
	for (int i = 0; i < n; i++) {
		w->o->busy += w->p->units[i].seconds;
		w->begin[i + 1] = w->p->begin ? w->p->begin[i + 1] : w->o->busy;
	}
	return list_gaps(w, user_of, n, w->order) >= 0;
}

/* Of each gap. */
static void find_stays(struct slp_offload_times *w)
{
	const struct slp_offload *o = w->o;
	for (int i = 0; i < o->ngaps; i++) w->ends[i] = w->begins[i] = -1;
	for (int i = 0; i < o->nstays; i++) {
		if (o->stays[i].before >= 0) w->ends[o->stays[i].before] = i;
		if (o->stays[i].after >= 0) w->begins[o->stays[i].after] = i;
	}
}

/* The value is away from position `from` to before position `before` again; false: it has not been longer there. */
static bool take_back(struct slp_offload_times *w, int gap)
{
	if (gap < 0) return false;
	struct slp_offload_gap *g = &w->o->gaps[gap];
	bool any = g->drop > g->from || g->fetch < g->before;
	while (g->drop > g->from) w->o->used[slp_offload_folded(w, --g->drop)] -= w->p->bytes[g->value];
	while (g->fetch < g->before) w->o->used[slp_offload_folded(w, g->fetch++)] -= w->p->bytes[g->value];
	return any;
}

/* Values that got no place are there for a shorter time; false: they are all there for the shortest. */
static bool shorten(struct slp_offload_times *w)
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
static bool give_time(struct slp_offload_times *w)
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
	struct slp_offload_times w = {.p = p, .o = o};
	bool ok = sort(&w);
	ok = ok && plan_copies(&w) && give_time(&w) && slp_offload_list_steps(&w) && slp_offload_predict(&w);
	free(w.begin);
	free(w.order);
	free(w.last);
	return ok;
}
