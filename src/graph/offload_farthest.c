/* Belady's rule for the choice of values that leave the device: that whose next use is farthest away. */
#include <stdlib.h>

#include "alloc.h"
#include "graph/offload_choice.h"

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

static bool is_above(const struct slp_offload_choice *c, struct entry a, struct entry b)
{
	size_t more = c->p->bytes[c->o->gaps[a.gap].value], less = c->p->bytes[c->o->gaps[b.gap].value];
	return a.before != b.before ? a.before > b.before : more != less ? more > less : a.gap < b.gap;
}

static void push(const struct slp_offload_choice *c, struct heap *h, struct entry e)
{
	int at = h->n++;
	for (; at > 0 && is_above(c, e, h->list[(at - 1) / 2]); at = (at - 1) / 2) h->list[at] = h->list[(at - 1) / 2];
	h->list[at] = e;
}

static void pop(const struct slp_offload_choice *c, struct heap *h)
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
static const struct entry *top_of(const struct slp_offload_choice *c, struct farthest *f, int cost, int i)
{
	struct heap *h = &f->of[cost];
	while (h->n > 0) {
		struct entry e = h->list[0];
		const struct slp_offload_gap *g = &c->o->gaps[e.gap];
		int now = slp_offload_copies(c, g);
		if (!g->chosen && e.before > i && now == cost) return h->list;
		pop(c, h);
		if (!g->chosen && e.before > i) push(c, &f->of[now], e);
	}
	return NULL;
}

static int best_farthest(const struct slp_offload_choice *c, enum slp_offload_rule rule, struct farthest *f, int i)
{
	int best = -1;
	double most = 0;
	for (int cost = COSTS; cost-- > 0;) { /* costs only fall while gaps are chosen */
		const struct entry *e = top_of(c, f, cost, i);
		double w = !e ? 0 : (double)(e->before - i) / (rule == SLP_FARTHEST || !cost ? 1 : cost);
		if (!e || (best >= 0 && (w < most || (w == most && !slp_offload_is_better(c, e->gap, best))))) continue;
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
static bool make_farthest(const struct slp_offload_choice *c, struct farthest *f)
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

bool slp_offload_cover(struct slp_offload_choice *c, enum slp_offload_rule rule)
{
	struct farthest f = {0};
	bool ok = make_farthest(c, &f);
	for (int i = 0; ok && i < c->p->nunits; i++) {
		for (int k = f.first[i]; k >= 0; k = f.next[k]) {
			const struct slp_offload_gap *g = &c->o->gaps[k / 2];
			push(c, &f.of[slp_offload_copies(c, g)],
			     (struct entry){g->before - k % 2 * c->p->nunits, k / 2});
		}
		while (ok && c->o->used[i] > c->p->room) {
			int k = best_farthest(c, rule, &f, i);
			ok = k >= 0;
			if (ok) slp_offload_set(c, &c->o->gaps[k], true);
		}
	}
	free(f.of[0].list);
	free(f.first);
	return ok;
}
