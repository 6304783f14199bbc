/* The critical path of a plan: the least time from the beginning of each unit to the end of the program.  A unit
 * with a longer path is more urgent.
 *
 * The times are the estimates that partition the graph, from flops and bytes, so that the same program has the same
 * priorities in each run, including the first, before any measurement. */
#include <stdlib.h>

#include "graph/plan.h"
#include "graph/units.h"
#include "runtime/task/code.h"
#include "runtime/task/priority.h"

/* The longest path behind the present unit: from a unit that reads a location, from one that writes it. */
struct behind {
	double read, written;
};

static struct behind *behind_of(const sl_plan *p, struct behind *all, struct slp_location l)
{
	switch (l.kind) {
	case SLP_LOCATION_TENSOR: return all + l.index;
	case SLP_LOCATION_INPUT: return all + p->graph->count + l.index;
	case SLP_LOCATION_STORAGE: return all + p->graph->count + p->graph->ninputs + l.index;
	default: return NULL; /* no other unit sees it */
	}
}

static void at_least(double *a, double b)
{
	if (*a < b) *a = b;
}

static double path_behind(const sl_plan *p, struct behind *all, const struct slp_unit *u)
{
	double longest = 0;
	for (int i = 0; i < u->nslots; i++) {
		const struct behind *b = behind_of(p, all, u->locations[i]);
		if (!b) continue;
		at_least(&longest, b->written);
		if (slp_code_writes(u->code, i)) at_least(&longest, b->read);
	}
	return longest;
}

static void note(const sl_plan *p, struct behind *all, const struct slp_unit *u, double path)
{
	for (int i = 0; i < u->nslots; i++) {
		struct behind *b = behind_of(p, all, u->locations[i]);
		if (b) at_least(slp_code_writes(u->code, i) ? &b->written : &b->read, path);
	}
}

bool slp_critical_paths(const sl_plan *p, double *paths)
{
	size_t places = (size_t)(p->graph->count + p->graph->ninputs + p->layout.nstorages);
	struct behind *all = slp_calloc(places + 1, sizeof *all);
	if (!all) return false;
	for (int i = p->layout.nunits; i-- > 0;) {
		paths[i] = p->layout.seconds[i] + path_behind(p, all, &p->units[i]);
		note(p, all, &p->units[i], paths[i]);
	}
	free(all);
	return true;
}

enum sl_status slp_plan_set_levels(sl_plan *p)
{
	enum { MOST = SLP_LEVEL_FIRST - SLP_LEVEL_LAST };
	int n = p->layout.nunits;
	double longest = 0, *paths = slp_malloc(((size_t)n + 1) * sizeof *paths);
	bool ok = paths && slp_critical_paths(p, paths);
	for (int i = 0; ok && i < n; i++) at_least(&longest, paths[i]);
	for (int i = 0; ok && i < n; i++)
		slp_code_set_level(p->units[i].code,
		                   SLP_LEVEL_LAST + (longest > 0 ? (int)(MOST * (paths[i] / longest)) : 0));
	free(paths);
	return ok ? SL_OK : slp_plan_no_memory();
}
