/* The steps of a plan of copies: in which order they come, and which unit must have ended before each. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "graph/offload_times.h"

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
static int end_of(const struct slp_offload_times *w, int stay)
{
	int end = w->o->stays[stay].end;
	return end > w->p->nunits ? end - w->p->nunits : end;
}

/* Stays by their end, or by their beginning. */
static bool list_stays(const struct slp_offload_times *w, bool by_end, int *list)
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
static int last_there(const struct slp_offload_times *w, const struct cells *c, int stay)
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
static void walk_stays(const struct slp_offload_times *w, struct cells *c, const int *by_begin, const int *by_end)
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
static bool find_last(struct slp_offload_times *w)
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

static int position_of(const struct slp_offload_times *w, const struct slp_offload_gap *g, int what)
{
	bool is = g->chosen && (what == SLP_OFFLOAD_COPY    ? g->copy >= 0
	                        : what == SLP_OFFLOAD_FETCH ? g->returns
	                                                    : true);
	if (what == SLP_OFFLOAD_DROP && slp_offload_is_new(w, g) && g->drop >= w->p->nunits)
		is = false; /* it is gone by then */
	if (!is) return -1;
	return slp_offload_folded(w, what == SLP_OFFLOAD_COPY   ? g->copy
	                             : what == SLP_OFFLOAD_DROP ? g->drop
	                                                        : g->fetch);
}

/* The unit that has written the value before its copy, or used it before it leaves. */
static int last_user(const struct slp_offload_times *w, const struct slp_offload_gap *g, int what)
{
	int n = w->p->nunits, position = what == SLP_OFFLOAD_COPY ? g->copy : g->drop;
	int unit = what == SLP_OFFLOAD_COPY ? g->written : g->after;
	return what == SLP_OFFLOAD_FETCH ? -1 : position >= n ? unit - n : unit;
}

/* Calls each step with its position: copies before values that leave, then places, then copies back, by the unit that needs
 * them.  A value that stays from the end of a run to the next one has a place in the first run, too. */
static void each_step(const struct slp_offload_times *w,
                      void (*step)(const struct slp_offload_times *w, int position, struct slp_offload_step s))
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

static void count_step(const struct slp_offload_times *w, int position, struct slp_offload_step s)
{
	(void)s;
	w->o->first[position + 1]++;
}

/* first[i + 1] is the place of the next step at position i. */
static void enter_step(const struct slp_offload_times *w, int position, struct slp_offload_step s)
{
	w->o->steps[w->o->first[position + 1]++] = s;
}

bool slp_offload_list_steps(struct slp_offload_times *w)
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
