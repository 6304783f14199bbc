/* Which values leave the device between two uses, so that at each position all fit: as few bytes as possible are copied.
 *
 * L. A. Belady's rule ("A study of replacement algorithms for a virtual-storage computer", 1966), the value whose next use
 * is farthest away leaves, is the best if all values are equally large and equally dear.  They are not: a value that main
 * memory has as well costs one copy instead of two, and a large value may free more than necessary.  So several rules
 * choose gaps, unnecessary ones are taken back, and exchanges of one gap for others follow as long as they save copies.
 * The cheapest result counts.  It depends on nothing but the problem. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "graph/offload_choice.h"

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

void slp_offload_set(struct slp_offload_choice *c, struct slp_offload_gap *g, bool chosen)
{
	int n = c->p->nunits;
	size_t bytes = c->p->bytes[g->value];
	g->chosen = chosen;
	c->taken[g->copies] += chosen ? 1 : -1;
	for (int i = g->from; i < g->before; i++) c->o->used[i % n] += chosen ? -bytes : bytes;
}

/* The distance from position i to the end of the gap; 0: it is not around i. */
static int distance(const struct slp_offload_choice *c, const struct slp_offload_gap *g, int i)
{
	int n = c->p->nunits;
	if (g->from <= i && i < g->before) return g->before - i;
	return g->from <= i + n && i + n < g->before ? g->before - i - n : 0;
}

int slp_offload_copies(const struct slp_offload_choice *c, const struct slp_offload_gap *g)
{
	bool out = g->written >= 0 && c->taken[g->copies] == (g->chosen ? 1 : 0);
	return g->always ? 0 : g->returns + out;
}

static size_t cost(const struct slp_offload_choice *c)
{
	size_t sum = 0;
	for (int i = 0; i < c->o->ngaps; i++) {
		const struct slp_offload_gap *g = &c->o->gaps[i];
		if (g->chosen && g->returns) sum += c->p->bytes[g->value];
		if (g->copies == i && c->taken[i] && g->written >= 0) sum += c->p->bytes[g->value];
	}
	return sum;
}

/* The bytes that are missing at positions which the gap would relieve, for each byte that it copies. */
static double relief(struct slp_offload_choice *c, const struct slp_offload_gap *g)
{
	size_t bytes = c->p->bytes[g->value];
	double sum = 0;
	for (int i = g->from; i < g->before; i++) {
		size_t used = c->o->used[i % c->p->nunits], missing = used > c->p->room ? used - c->p->room : 0;
		sum += (double)(missing < bytes ? missing : bytes);
	}
	c->budget -= g->before - g->from;
	int n = slp_offload_copies(c, g);
	return n ? sum / (double)(bytes ? bytes : 1) / n : 2 * sum;
}

bool slp_offload_is_better(const struct slp_offload_choice *c, int a, int b)
{
	const struct slp_offload_gap *x = &c->o->gaps[a], *y = &c->o->gaps[b];
	int fewer = slp_offload_copies(c, y) - slp_offload_copies(c, x);
	size_t more = c->p->bytes[x->value], less = c->p->bytes[y->value];
	return fewer ? fewer > 0 : more != less ? more > less : a < b;
}

/* The gap around a position that relieves most; -1: none. */
static int best_relief(struct slp_offload_choice *c, int i, int without)
{
	int best = -1;
	double most = 0;
	for (int k = 0; k < c->o->ngaps; k++) {
		const struct slp_offload_gap *g = &c->o->gaps[k];
		if (g->chosen || k == without || !distance(c, g, i) || !c->p->bytes[g->value]) continue;
		double w = relief(c, g);
		if (best >= 0 && (w < most || (w == most && !slp_offload_is_better(c, k, best)))) continue;
		best = k;
		most = w;
	}
	return best;
}

/* Chooses gaps until all fits.  Values of no neighbouring unit can always leave, so one is found. */
static bool cover_by_relief(struct slp_offload_choice *c, int without)
{
	for (int i = 0; i < c->p->nunits; i++)
		while (c->o->used[i] > c->p->room) {
			int k = best_relief(c, i, without);
			if (k < 0) return false;
			slp_offload_set(c, &c->o->gaps[k], true);
		}
	return true;
}

/* ---- less -------------------------------------------------------------------------------------------------------- */

static bool is_needed(const struct slp_offload_choice *c, const struct slp_offload_gap *g)
{
	size_t bytes = c->p->bytes[g->value];
	for (int i = g->from; i < g->before; i++)
		if (c->o->used[i % c->p->nunits] + bytes > c->p->room) return true;
	return false;
}

/* Takes back what is not needed, the dearest first.  What is needed once stays so: memory only becomes fuller. */
static void reduce(struct slp_offload_choice *c)
{
	memset(c->needed, 0, (size_t)c->o->ngaps * sizeof *c->needed);
	for (;;) {
		struct slp_offload_gap *worst = NULL;
		size_t most = 0;
		c->budget -= 8L * c->o->ngaps;
		for (int i = 0; i < c->o->ngaps; i++) {
			struct slp_offload_gap *g = &c->o->gaps[i];
			size_t saved = g->chosen ? c->p->bytes[g->value] * (size_t)slp_offload_copies(c, g) : 0;
			if (saved <= most || c->needed[i] || (c->needed[i] = is_needed(c, g))) continue;
			worst = g;
			most = saved;
		}
		if (!worst) return;
		slp_offload_set(c, worst, false);
	}
}

static void save(const struct slp_offload_choice *c)
{
	for (int i = 0; i < c->o->ngaps; i++) c->best[i] = c->o->gaps[i].chosen;
}

static void restore(struct slp_offload_choice *c)
{
	for (int i = 0; i < c->o->ngaps; i++)
		if (c->o->gaps[i].chosen != c->best[i]) slp_offload_set(c, &c->o->gaps[i], c->best[i]);
}

/* Whether the present choice is cheaper; else the best one is restored. */
static bool improves(struct slp_offload_choice *c, size_t *least, bool valid)
{
	if (valid) reduce(c);
	size_t now = valid ? cost(c) : *least;
	if (now >= *least) return restore(c), false;
	*least = now;
	save(c);
	return true;
}

/* Exchanges: each gap in turn is given up for others, or taken instead of others. */
static void exchange(struct slp_offload_choice *c, size_t *least)
{
	bool better = true;
	while (better && c->budget > 0) {
		better = false;
		for (int i = 0; i < c->o->ngaps && c->budget > 0; i++) {
			struct slp_offload_gap *g = &c->o->gaps[i];
			if (g->always) continue;
			c->budget -= (long)c->o->ngaps * 4;
			slp_offload_set(c, g, !g->chosen);
			better |= improves(c, least, cover_by_relief(c, i));
		}
	}
}

static bool choose(struct slp_offload_choice *c)
{
	const long small = 50000, looks = 20000000; /* a fraction of a second */
	size_t least = (size_t)-1;
	bool is_small = (long)c->o->ngaps * c->p->nunits < small;
	save(c);
	for (enum slp_offload_rule rule = 0; rule < SLP_OFFLOAD_RULES; rule++) {
		if (c->p->farthest ? rule != SLP_FARTHEST : rule == SLP_RELIEF && !is_small) continue;
		for (int i = 0; i < c->o->ngaps; i++)
			if (c->o->gaps[i].chosen && !c->o->gaps[i].always) slp_offload_set(c, &c->o->gaps[i], false);
		if (!(rule == SLP_RELIEF ? cover_by_relief(c, -1) : slp_offload_cover(c, rule))) return false;
		reduce(c);
		if (cost(c) >= least) continue;
		least = cost(c);
		save(c);
	}
	restore(c);
	c->budget = looks;
	if (is_small && !c->p->farthest) exchange(c, &least);
	return true;
}

/* What comes from main memory in each run anyway leaves it after its last use, which costs nothing; what is used there
 * alone must. */
static void choose_inputs(struct slp_offload_choice *c)
{
	for (int i = 0; i < c->o->ngaps; i++) {
		struct slp_offload_gap *g = &c->o->gaps[i];
		enum slp_offload_kind kind = c->p->kind[g->value];
		bool leaves = kind == SLP_OFFLOAD_INPUT || kind == SLP_OFFLOAD_SENT;
		g->always = leaves && g->before >= c->p->nunits;
		if (g->always) slp_offload_set(c, g, true);
	}
}

static void add_up(struct slp_offload_choice *c)
{
	struct slp_offload *o = c->o;
	for (int i = 0; i < o->ngaps; i++) {
		struct slp_offload_gap *g = &o->gaps[i];
		size_t bytes = c->p->bytes[g->value];
		if (!g->chosen) continue;
		if (g->returns) o->in_bytes += bytes;
		if (g->written < 0 || c->taken[g->copies] < 0) continue;
		o->out_bytes += bytes;
		g->copy = 0;
		c->taken[g->copies] = -1;
	}
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static bool allocate(struct slp_offload_choice *c)
{
	size_t n = (size_t)c->p->nunits + 1, values = (size_t)c->p->nvalues + 1;
	int *ints = slp_calloc(5 * values, sizeof *ints);
	c->o->alone = slp_calloc(n, sizeof *c->o->alone);
	c->o->used = slp_calloc(n, sizeof *c->o->used);
	if (!ints) return false;
	c->begin = ints;
	c->last = ints + values;
	c->written = ints + 2 * values;
	c->shared = ints + 3 * values;
	c->seen = ints + 4 * values;
	return c->o->alone && c->o->used;
}

static bool allocate_gaps(struct slp_offload_choice *c)
{
	size_t n = (size_t)c->o->ngaps + 1;
	c->taken = slp_calloc(n, sizeof *c->taken);
	c->best = slp_calloc(2 * n, sizeof *c->best);
	c->needed = c->best ? c->best + n : NULL;
	return c->taken && c->best;
}

bool slp_offload_choose(const struct slp_offload_problem *p, struct slp_offload *o, int *unit, size_t *need)
{
	struct slp_offload_choice c = {.p = p, .o = o};
	*o = (struct slp_offload){0};
	*unit = -1;
	bool ok = allocate(&c) && slp_offload_find_needs(&c, unit, need) && slp_offload_find_gaps(&c) &&
	          allocate_gaps(&c);
	if (ok) {
		slp_offload_fill(&c);
		choose_inputs(&c);
		ok = choose(&c);
	}
	if (ok) add_up(&c);
	free(c.begin);
	free(c.taken);
	free(c.best);
	if (!ok) slp_offload_clear(o);
	return ok;
}

void slp_offload_clear(struct slp_offload *o)
{
	free(o->alone);
	free(o->gaps);
	free(o->first);
	free(o->steps);
	free(o->stays);
	free(o->taken);
	free(o->used);
	free(o->begin);
	*o = (struct slp_offload){0};
}
