/* Whole plans of copies: a choice of gaps and times for which all values find places; the fastest of several.
 *
 * The fewest copies need not take the shortest time.  Two neighbours on the device together leave less room for values that
 * are copied meanwhile; and a value whose next use is farthest away has the most time for its copies.  If copies take time,
 * several ways are tried. */
#include <stdlib.h>

#include "alloc.h"
#include "graph/offload.h"

/* Then each way to plan takes seconds: fewer are tried, and copies get time by bytes alone. */
static bool is_large(const struct slp_offload_problem *p)
{
	enum { PRODUCT = 60000, VALUES = 1000 };
	return p->nvalues >= VALUES || (long)p->nunits * p->nvalues >= PRODUCT;
}

/* room: for places.  If gaps between values waste memory, so much less is left for values. */
static bool fit(struct slp_offload_problem *p, struct slp_offload *o, size_t room, int *unit, size_t *need)
{
	enum { TRIES = 40, LEAST = 64 };
	size_t height = 0;
	p->places = is_large(p) ? 0 : room;
	p->most = room;
	for (int i = 0; i < TRIES; i++) {
		slp_offload_clear(o);
		*unit = -1;
		*need = 0;
		if (!slp_offload_choose(p, o, unit, need)) {
			if (!height || *unit < 0) return false;
			break;
		}
		if (!slp_offload_when(p, o)) return false;
		height = o->height;
		if (height <= room) return true;
		size_t less = (height - room) / 2, least = p->room / LEAST;
		p->room -= less > least && less < p->room ? less : least;
	}
	p->room = room;
	*unit = -1;
	*need = height;
	return false;
}

bool slp_offload_fit(struct slp_offload_problem *p, struct slp_offload *o, int *unit, size_t *need)
{
	return fit(p, o, p->room, unit, need);
}

/* One way to plan: the part of the memory that two neighbours may take together, and the rule of the choice. */
struct way {
	double together;
	bool farthest, one_by_one;
};

/* Whether the plan by another way should run faster; it is kept then. */
static bool improves(struct slp_offload_problem *p, struct slp_offload *o, struct way way, size_t room, bool any)
{
	struct slp_offload_problem before = *p;
	struct slp_offload best = *o;
	int unit;
	size_t need;
	*o = (struct slp_offload){0};
	p->room = room;
	p->together = way.together;
	p->farthest = way.farthest;
	p->one_by_one = way.one_by_one;
	bool better = fit(p, o, room, &unit, &need) && (!any || o->seconds < best.seconds);
	slp_offload_clear(better ? &best : o);
	if (better) return true;
	*o = best;
	*p = before;
	return false;
}

/* The times of a plan, with so many times its waits. */
static void with_waits(const struct slp_offload_problem *p, const struct slp_offload *o, double times, double *begin)
{
	double busy = 0;
	for (int i = 0; i <= p->nunits; i++) {
		begin[i] = busy + times * (o->begin[i] - busy);
		if (i && begin[i] < begin[i - 1]) begin[i] = begin[i - 1];
		if (i < p->nunits) busy += p->units[i].seconds;
	}
}

/* While units wait for copies, the link has time for others: the copies are planned again by the times of the plan so far. */
static bool use_waits(struct slp_offload_problem *p, struct slp_offload *o, size_t room)
{
	enum { ROUNDS = 10, WAITS = 2 };
	double *begin = slp_malloc(((size_t)p->nunits + 1) * sizeof *begin);
	if (!begin) return false;
	for (int i = 0, times = 1; i < ROUNDS && times <= WAITS && slp_offload_exposed(p, o) > 0.01 * o->busy; i++) {
		with_waits(p, o, times, begin);
		p->begin = begin;
		bool better = improves(p, o, (struct way){p->together, p->farthest, p->one_by_one}, room, true);
		p->begin = NULL;
		times = better ? 1 : times + 1;
	}
	free(begin);
	return true;
}

bool slp_offload_plan(struct slp_offload_problem *p, struct slp_offload *o, int *unit, size_t *need)
{
	enum { WAYS = 4 };
	static const struct way ways[WAYS] = {
	        {0.2, false, false}, {0.2, false, true}, {0.2, true, false}, {0, true, false}};
	int first = is_large(p) ? 0 : 1, end = is_large(p) ? 1 : WAYS;
	size_t room = p->room;
	bool ok = slp_offload_fit(p, o, unit, need);
	for (int i = first; i < end; i++) {
		if (ok && slp_offload_exposed(p, o) <= 0.01 * o->busy) break;
		ok |= improves(p, o, ways[i], room, ok);
	}
	if (ok && !use_waits(p, o, room)) *need = 0, ok = false;
	return ok;
}
