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
#include "graph/offload.h"

struct choice {
	const struct slp_offload_problem *p;
	struct slp_offload *o;
	int *begin, *last; /* of each value: its first and last use; -1: none */
	int *written;      /* the last unit that wrote it, the last run's to begin with; -1: none */
	int *shared;       /* its first gap since it was written; -1: none */
	int *seen;
	int max_gaps;
	int *taken; /* by gap that begins such a row: chosen ones */
	bool *best; /* by gap */
	bool *needed;
	long budget; /* of positions to look at, for exchanges */
};

/* ---- gaps -------------------------------------------------------------------------------------------------------- */

/* The first position at which unit `after` has ended for certain. */
static int free_from(const struct slp_offload *o, int after, int nunits)
{
	return after + 1 >= nunits || o->alone[after + 1] ? after + 1 : after + 2;
}

static bool add_gap(struct choice *c, int value, int before, bool returns)
{
	struct slp_offload *o = c->o;
	int after = c->last[value], from = free_from(o, after, c->p->nunits);
	if (from >= before) return true;
	if (!slp_grow((void **)&o->gaps, &c->max_gaps, o->ngaps + 1, sizeof *o->gaps)) return false;
	if (c->shared[value] < 0) c->shared[value] = o->ngaps;
	o->gaps[o->ngaps++] = (struct slp_offload_gap){.value = value,
	                                               .after = after,
	                                               .before = before,
	                                               .from = from,
	                                               .written = c->written[value],
	                                               .copies = c->shared[value],
	                                               .returns = returns,
	                                               .copy = -1};
	return true;
}

static bool use_value(struct choice *c, int unit, struct slp_offload_use use)
{
	int v = use.value;
	if (c->begin[v] < 0) c->begin[v] = unit;
	else if (!add_gap(c, v, unit, true)) return false;
	c->last[v] = unit;
	if (use.write) c->written[v] = unit;
	if (use.write) c->shared[v] = -1;
	return true;
}

/* The gap behind the last use: to the first use in the next run, or to the end of this one.  Before its first write, a
 * parameter is as the previous run has written it. */
static bool end_value(struct choice *c, int v)
{
	const struct slp_offload_problem *p = c->p;
	enum slp_offload_kind kind = p->kind[v];
	if (c->begin[v] < 0 || kind == SLP_OFFLOAD_LOCAL) return true;
	bool result = slp_offload_is_result(kind);
	int gaps = c->o->ngaps;
	if (!add_gap(c, v, result ? p->nunits : p->nunits + c->begin[v], !result)) return false;
	if (kind != SLP_OFFLOAD_KEPT || c->written[v] < 0 || gaps == c->o->ngaps) return true;
	for (int i = 0; i < gaps; i++)
		if (c->o->gaps[i].value == v && c->o->gaps[i].written == c->written[v] &&
		    c->o->gaps[i].after < c->written[v])
			c->o->gaps[i].copies = c->shared[v];
	return true;
}

static bool find_gaps(struct choice *c)
{
	const struct slp_offload_problem *p = c->p;
	bool ok = true;
	for (int v = 0; v < p->nvalues; v++) c->last[v] = c->begin[v] = c->written[v] = c->shared[v] = -1;
	for (int i = 0; i < p->nunits; i++)
		for (int k = 0; k < p->units[i].nuses; k++) {
			struct slp_offload_use use = p->units[i].uses[k];
			if (use.write && p->kind[use.value] == SLP_OFFLOAD_KEPT) c->written[use.value] = i;
		}
	for (int i = 0; ok && i < p->nunits; i++)
		for (int k = 0; ok && k < p->units[i].nuses; k++) ok = use_value(c, i, p->units[i].uses[k]);
	for (int v = 0; ok && v < p->nvalues; v++) ok = end_value(c, v);
	return ok;
}

/* ---- what must be there ------------------------------------------------------------------------------------------ */

/* Bytes of a unit's values, with those of the unit before it if that may still run. */
static size_t bytes_of(const struct choice *c, int unit, bool pair, int mark)
{
	size_t bytes = 0;
	for (int i = pair ? unit - 1 : unit; i <= unit; i++)
		for (int k = 0; k < c->p->units[i].nuses; k++) {
			int v = c->p->units[i].uses[k].value;
			if (c->seen[v] != mark) bytes += c->p->bytes[v];
			c->seen[v] = mark;
		}
	return bytes;
}

/* Neighbours that do not fit together run one after the other; false if a unit does not fit, *unit. */
static bool find_needs(struct choice *c, int *unit, size_t *need)
{
	double part = c->p->together > 0 ? c->p->together : 1;
	size_t together = (size_t)(part * (double)c->p->room);
	int mark = 1;
	for (int i = 0; i < c->p->nunits; i++) {
		c->o->alone[i] = i == 0 || bytes_of(c, i, true, mark++) > together;
		*need = bytes_of(c, i, !c->o->alone[i], mark++);
		*unit = i;
		if (*need > c->p->room) return false;
	}
	*unit = -1;
	return true;
}

/* Bytes on the device if no gap is chosen. */
static void fill(const struct choice *c)
{
	const struct slp_offload_problem *p = c->p;
	for (int v = 0; v < p->nvalues; v++) {
		if (c->begin[v] < 0) continue;
		bool always = p->kind[v] == SLP_OFFLOAD_KEPT || p->kind[v] == SLP_OFFLOAD_INPUT;
		int end = p->kind[v] == SLP_OFFLOAD_LOCAL ? free_from(c->o, c->last[v], p->nunits) : p->nunits;
		for (int i = always ? 0 : c->begin[v]; i < end && i < p->nunits; i++) c->o->used[i] += p->bytes[v];
	}
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static void set(struct choice *c, struct slp_offload_gap *g, bool chosen)
{
	int n = c->p->nunits;
	size_t bytes = c->p->bytes[g->value];
	g->chosen = chosen;
	c->taken[g->copies] += chosen ? 1 : -1;
	for (int i = g->from; i < g->before; i++) c->o->used[i % n] += chosen ? -bytes : bytes;
}

/* The distance from position i to the end of the gap; 0: it is not around i. */
static int distance(const struct choice *c, const struct slp_offload_gap *g, int i)
{
	int n = c->p->nunits;
	if (g->from <= i && i < g->before) return g->before - i;
	return g->from <= i + n && i + n < g->before ? g->before - i - n : 0;
}

/* The number of copies that the gap costs in addition. */
static int copies(const struct choice *c, const struct slp_offload_gap *g)
{
	bool out = g->written >= 0 && c->taken[g->copies] == (g->chosen ? 1 : 0);
	return g->always ? 0 : g->returns + out;
}

static size_t cost(const struct choice *c)
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
static double relief(struct choice *c, const struct slp_offload_gap *g)
{
	size_t bytes = c->p->bytes[g->value];
	double sum = 0;
	for (int i = g->from; i < g->before; i++) {
		size_t used = c->o->used[i % c->p->nunits], missing = used > c->p->room ? used - c->p->room : 0;
		sum += (double)(missing < bytes ? missing : bytes);
	}
	c->budget -= g->before - g->from;
	int n = copies(c, g);
	return n ? sum / (double)(bytes ? bytes : 1) / n : 2 * sum;
}

enum rule { FARTHEST, FARTHEST_A_COPY, RELIEF, RULES };

/* Whether gap a is to be chosen rather than b, if they are worth as much: that with fewer copies, then the larger. */
static bool is_better(const struct choice *c, int a, int b)
{
	const struct slp_offload_gap *x = &c->o->gaps[a], *y = &c->o->gaps[b];
	int fewer = copies(c, y) - copies(c, x);
	size_t more = c->p->bytes[x->value], less = c->p->bytes[y->value];
	return fewer ? fewer > 0 : more != less ? more > less : a < b;
}

/* The gap around a position that relieves most; -1: none. */
static int best_relief(struct choice *c, int i, int without)
{
	int best = -1;
	double most = 0;
	for (int k = 0; k < c->o->ngaps; k++) {
		const struct slp_offload_gap *g = &c->o->gaps[k];
		if (g->chosen || k == without || !distance(c, g, i) || !c->p->bytes[g->value]) continue;
		double w = relief(c, g);
		if (best >= 0 && (w < most || (w == most && !is_better(c, k, best)))) continue;
		best = k;
		most = w;
	}
	return best;
}

/* Chooses gaps until all fits.  Values of no neighbouring unit can always leave, so one is found. */
static bool cover_by_relief(struct choice *c, int without)
{
	for (int i = 0; i < c->p->nunits; i++)
		while (c->o->used[i] > c->p->room) {
			int k = best_relief(c, i, without);
			if (k < 0) return false;
			set(c, &c->o->gaps[k], true);
		}
	return true;
}

/* ---- the farthest next use --------------------------------------------------------------------------------------- */

/* Gaps around the present position, by the number of copies that they cost: a heap for each number, the gap whose value is
 * used last on top.  A gap may be in a heap where it does not belong any more. */
enum { COSTS = 3 };
struct entry {
	int before, gap; /* in this run */
};
struct heap {
	struct entry *list;
	int n;
};
struct farthest {
	struct heap of[COSTS];
	int *first,
	        *next; /* entries that begin at a position, by twice the gap's number, and 1 for the next run's part */
};

static bool is_above(const struct choice *c, struct entry a, struct entry b)
{
	size_t more = c->p->bytes[c->o->gaps[a.gap].value], less = c->p->bytes[c->o->gaps[b.gap].value];
	return a.before != b.before ? a.before > b.before : more != less ? more > less : a.gap < b.gap;
}

static void push(const struct choice *c, struct heap *h, struct entry e)
{
	int at = h->n++;
	for (; at > 0 && is_above(c, e, h->list[(at - 1) / 2]); at = (at - 1) / 2) h->list[at] = h->list[(at - 1) / 2];
	h->list[at] = e;
}

static void pop(const struct choice *c, struct heap *h)
{
	struct entry e = h->list[--h->n];
	int at = 0;
	for (int child; (child = 2 * at + 1) < h->n; at = child) {
		if (child + 1 < h->n && is_above(c, h->list[child + 1], h->list[child])) child++;
		if (!is_above(c, h->list[child], e)) break;
		h->list[at] = h->list[child];
	}
	h->list[at] = e;
}

/* The top that may be chosen at position i; NULL: none. */
static const struct entry *top_of(const struct choice *c, struct farthest *f, int cost, int i)
{
	struct heap *h = &f->of[cost];
	while (h->n > 0) {
		struct entry e = h->list[0];
		const struct slp_offload_gap *g = &c->o->gaps[e.gap];
		int now = copies(c, g);
		if (!g->chosen && e.before > i && now == cost) return h->list;
		pop(c, h);
		if (!g->chosen && e.before > i) push(c, &f->of[now], e);
	}
	return NULL;
}

static int best_farthest(const struct choice *c, enum rule rule, struct farthest *f, int i)
{
	int best = -1;
	double most = 0;
	for (int cost = COSTS; cost-- > 0;) { /* costs only fall while gaps are chosen */
		const struct entry *e = top_of(c, f, cost, i);
		double w = !e ? 0 : (double)(e->before - i) / (rule == FARTHEST || !cost ? 1 : cost);
		if (!e || (best >= 0 && (w < most || (w == most && !is_better(c, e->gap, best))))) continue;
		best = e->gap;
		most = w;
	}
	return best;
}

static void begin_at(struct farthest *f, int position, int entry)
{
	f->next[entry] = f->first[position];
	f->first[position] = entry;
}

/* A gap is around positions of this run, and, if it lasts until the next one, of its beginning. */
static bool make_farthest(const struct choice *c, struct farthest *f)
{
	int n = c->p->nunits, gaps = c->o->ngaps;
	struct entry *list = slp_malloc(((size_t)gaps * 2 * COSTS + 1) * sizeof *list);
	f->first = slp_malloc(((size_t)n + 2 * (size_t)gaps + 1) * sizeof *f->first);
	f->of[0].list = list;
	if (!list || !f->first) return false;
	for (int k = 1; k < COSTS; k++) f->of[k].list = list + (size_t)k * 2 * (size_t)gaps;
	f->next = f->first + n;
	for (int i = 0; i < n; i++) f->first[i] = -1;
	for (int k = 0; k < gaps; k++) {
		const struct slp_offload_gap *g = &c->o->gaps[k];
		if (!c->p->bytes[g->value]) continue;
		if (g->from < n) begin_at(f, g->from, 2 * k);
		int again = g->from > n ? g->from - n : 0;
		if (g->before > n && again < n) begin_at(f, again, 2 * k + 1);
	}
	return true;
}

/* The same by the next use, or by its distance for each copy. */
static bool cover_by_distance(struct choice *c, enum rule rule)
{
	struct farthest f = {0};
	bool ok = make_farthest(c, &f);
	for (int i = 0; ok && i < c->p->nunits; i++) {
		for (int k = f.first[i]; k >= 0; k = f.next[k]) {
			const struct slp_offload_gap *g = &c->o->gaps[k / 2];
			push(c, &f.of[copies(c, g)], (struct entry){g->before - k % 2 * c->p->nunits, k / 2});
		}
		while (ok && c->o->used[i] > c->p->room) {
			int k = best_farthest(c, rule, &f, i);
			ok = k >= 0;
			if (ok) set(c, &c->o->gaps[k], true);
		}
	}
	free(f.of[0].list);
	free(f.first);
	return ok;
}

/* ---- less -------------------------------------------------------------------------------------------------------- */

static bool is_needed(const struct choice *c, const struct slp_offload_gap *g)
{
	size_t bytes = c->p->bytes[g->value];
	for (int i = g->from; i < g->before; i++)
		if (c->o->used[i % c->p->nunits] + bytes > c->p->room) return true;
	return false;
}

/* Takes back what is not needed, the dearest first.  What is needed once stays so: memory only becomes fuller. */
static void reduce(struct choice *c)
{
	memset(c->needed, 0, (size_t)c->o->ngaps * sizeof *c->needed);
	for (;;) {
		struct slp_offload_gap *worst = NULL;
		size_t most = 0;
		c->budget -= 8L * c->o->ngaps;
		for (int i = 0; i < c->o->ngaps; i++) {
			struct slp_offload_gap *g = &c->o->gaps[i];
			size_t saved = g->chosen ? c->p->bytes[g->value] * (size_t)copies(c, g) : 0;
			if (saved <= most || c->needed[i] || (c->needed[i] = is_needed(c, g))) continue;
			worst = g;
			most = saved;
		}
		if (!worst) return;
		set(c, worst, false);
	}
}

static void save(const struct choice *c)
{
	for (int i = 0; i < c->o->ngaps; i++) c->best[i] = c->o->gaps[i].chosen;
}

static void restore(struct choice *c)
{
	for (int i = 0; i < c->o->ngaps; i++)
		if (c->o->gaps[i].chosen != c->best[i]) set(c, &c->o->gaps[i], c->best[i]);
}

/* Whether the present choice is cheaper; else the best one is restored. */
static bool improves(struct choice *c, size_t *least, bool valid)
{
	if (valid) reduce(c);
	size_t now = valid ? cost(c) : *least;
	if (now >= *least) return restore(c), false;
	*least = now;
	save(c);
	return true;
}

/* Exchanges: each gap in turn is given up for others, or taken instead of others. */
static void exchange(struct choice *c, size_t *least)
{
	bool better = true;
	while (better && c->budget > 0) {
		better = false;
		for (int i = 0; i < c->o->ngaps && c->budget > 0; i++) {
			struct slp_offload_gap *g = &c->o->gaps[i];
			if (g->always) continue;
			c->budget -= (long)c->o->ngaps * 4;
			set(c, g, !g->chosen);
			better |= improves(c, least, cover_by_relief(c, i));
		}
	}
}

static bool choose(struct choice *c)
{
	const long small = 50000, looks = 20000000; /* a fraction of a second */
	size_t least = (size_t)-1;
	bool is_small = (long)c->o->ngaps * c->p->nunits < small;
	save(c);
	for (enum rule rule = 0; rule < RULES; rule++) {
		if (c->p->farthest ? rule != FARTHEST : rule == RELIEF && !is_small) continue;
		for (int i = 0; i < c->o->ngaps; i++)
			if (c->o->gaps[i].chosen && !c->o->gaps[i].always) set(c, &c->o->gaps[i], false);
		if (!(rule == RELIEF ? cover_by_relief(c, -1) : cover_by_distance(c, rule))) return false;
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
static void choose_inputs(struct choice *c)
{
	for (int i = 0; i < c->o->ngaps; i++) {
		struct slp_offload_gap *g = &c->o->gaps[i];
		enum slp_offload_kind kind = c->p->kind[g->value];
		bool leaves = kind == SLP_OFFLOAD_INPUT || kind == SLP_OFFLOAD_SENT;
		g->always = leaves && g->before >= c->p->nunits;
		if (g->always) set(c, g, true);
	}
}

static void add_up(struct choice *c)
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

static bool allocate(struct choice *c)
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

static bool allocate_gaps(struct choice *c)
{
	size_t n = (size_t)c->o->ngaps + 1;
	c->taken = slp_calloc(n, sizeof *c->taken);
	c->best = slp_calloc(2 * n, sizeof *c->best);
	c->needed = c->best ? c->best + n : NULL;
	return c->taken && c->best;
}

bool slp_offload_choose(const struct slp_offload_problem *p, struct slp_offload *o, int *unit, size_t *need)
{
	struct choice c = {.p = p, .o = o};
	*o = (struct slp_offload){0};
	*unit = -1;
	bool ok = allocate(&c) && find_needs(&c, unit, need) && find_gaps(&c) && allocate_gaps(&c);
	if (ok) {
		fill(&c);
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
	*o = (struct slp_offload){0};
}
