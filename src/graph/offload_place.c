/* The place of each value on the device, while it is there: one piece of memory serves all, and nothing is allocated while
 * the program runs.
 *
 * A stay is a value's time on the device.  Time is a circle, because the program runs again and again.  Stays that overlap
 * must not share memory.  The largest get their places first, each the lowest that is free all the time (Y. Pisarchyk, J.
 * Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020), small ones the highest; several orders are
 * tried, and then the stay that lies highest is placed first, again and again. */
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "graph/offload.h"

enum { ALIGNMENT = 256 };

struct place {
	const struct slp_offload_problem *p;
	struct slp_offload *o;
	int max_stays;
	int *order, *best, *from; /* of stays */
	int nfixed;               /* so many of them have fixed places: the first in any order */
	int *placed;              /* stays that have their places, the lowest first */
};

/* ---- stays ------------------------------------------------------------------------------------------------------- */

/* The parts of a run of n positions from `begin`, which is at least -n, to before `end`. */
static uint64_t parts_of(int begin, int end, int n)
{
	enum { PARTS = 64 };
	int first = (begin + n) % n * PARTS / n, count = (end - 1 + n) % n * PARTS / n - first;
	if (count < 0 || (count == 0 && end - begin > n / PARTS + 1)) count += PARTS;
	if (count + 1 >= PARTS) return UINT64_MAX;
	uint64_t bits = ((uint64_t)1 << (count + 1)) - 1;
	return first ? bits << first | bits >> (PARTS - first) : bits;
}

/* after, before: the gaps around it; -1: none. */
static bool add(struct place *w, int value, int begin, int end, int after, int before)
{
	struct slp_offload *o = w->o;
	int n = w->p->nunits;
	if (!w->p->bytes[value] || end <= begin) return true;
	if (!slp_grow((void **)&o->stays, &w->max_stays, o->nstays + 1, sizeof *o->stays)) return false;
	for (; begin >= n; begin -= n) end -= n;
	if (end > begin + n) before = -1;
	end = end < begin + n ? end : begin + n;
	o->stays[o->nstays++] = (struct slp_offload_stay){value, begin, end, after, before, 0, parts_of(begin, end, n)};
	return true;
}

/* The stays of a value between its chosen gaps, which are gaps[first] … in order of time. */
static bool add_stays(struct place *w, int v, const int *gaps, int ngaps, int begin, int end)
{
	const struct slp_offload_gap *all = w->o->gaps;
	int n = w->p->nunits;
	bool always = w->p->kind[v] == SLP_OFFLOAD_KEPT || w->p->kind[v] == SLP_OFFLOAD_INPUT;
	if (!ngaps) return add(w, v, always ? 0 : begin, always ? n : end, -1, -1);
	if (!always && !add(w, v, begin, all[gaps[0]].drop, -1, gaps[0])) return false;
	for (int i = 0; i < ngaps; i++) {
		const struct slp_offload_gap *g = &all[gaps[i]];
		if (!g->returns) continue;
		int until = i + 1 < ngaps ? all[gaps[i + 1]].drop : always ? all[gaps[0]].drop + n : end;
		int before = i + 1 < ngaps ? gaps[i + 1] : always ? gaps[0] : -1;
		bool cut = w->p->kind[v] == SLP_OFFLOAD_INPUT && g->fetch >= n && until > 2 * n;
		if (!add(w, v, g->fetch, cut ? 2 * n : until, gaps[i], cut ? -1 : before)) return false;
	}
	return true;
}

/* Uses of values, and their chosen gaps in order of time: those of value v from first[v] to before first[v + 1]. */
struct lives {
	int *begin, *last; /* the first and the last unit that uses it; begin -1: none */
	int *first, *gaps;
};

static void list_gaps(const struct place *w, const struct lives *l)
{
	const struct slp_offload *o = w->o;
	int values = w->p->nvalues;
	for (int i = 0; i < o->ngaps; i++)
		if (o->gaps[i].chosen) l->first[o->gaps[i].value + 2]++;
	for (int v = 1; v <= values; v++) l->first[v + 1] += l->first[v];
	for (int i = 0; i < o->ngaps; i++)
		if (o->gaps[i].chosen) l->gaps[l->first[o->gaps[i].value + 1]++] = i;
}

static bool find_lives(const struct place *w, struct lives *l)
{
	const struct slp_offload_problem *p = w->p;
	size_t values = (size_t)p->nvalues;
	l->begin = slp_calloc(3 * values + 2 + (size_t)w->o->ngaps + 1, sizeof *l->begin);
	if (!l->begin) return false;
	l->last = l->begin + values;
	l->first = l->last + values;
	l->gaps = l->first + values + 2;
	for (int v = 0; v < p->nvalues; v++) l->begin[v] = -1;
	for (int i = 0; i < p->nunits; i++)
		for (int k = 0; k < p->units[i].nuses; k++) {
			int v = p->units[i].uses[k].value;
			if (l->begin[v] < 0) l->begin[v] = i;
			l->last[v] = i;
		}
	list_gaps(w, l);
	return true;
}

static bool find_stays(struct place *w)
{
	const struct slp_offload_problem *p = w->p;
	struct lives l;
	bool ok = find_lives(w, &l);
	for (int v = 0; ok && v < p->nvalues; v++) {
		int after = l.last[v] + 1;
		if (slp_offload_is_fixed(p, v)) {
			ok = add(w, v, 0, p->nunits, -1, -1);
			w->nfixed += p->bytes[v] > 0;
			continue;
		}
		if (l.begin[v] < 0) continue;
		if (after < p->nunits && !w->o->alone[after]) after++;
		bool result = slp_offload_is_result(p->kind[v]);
		ok = add_stays(w, v, l.gaps + l.first[v], l.first[v + 1] - l.first[v], l.begin[v],
		               result || after > p->nunits ? p->nunits : after);
	}
	free(l.begin);
	return ok;
}

/* ---- offsets ----------------------------------------------------------------------------------------------------- */

static bool overlap(const struct slp_offload_stay *a, const struct slp_offload_stay *b, int n)
{
	if (!(a->parts & b->parts)) return false;
	for (int shift = -n; shift <= n; shift += n)
		if (a->begin < b->end + shift && b->begin + shift < a->end) return true;
	return false;
}

static int by_begin(const void *a, const void *b)
{
	const struct slp_offload_range *x = a, *y = b;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

static size_t bytes_of(const struct place *w, const struct slp_offload_stay *s)
{
	return w->p->bytes[s->value];
}

/* The lowest place that is free beside all ranges, which are sorted; not below `from`. */
static size_t lowest_from(const struct slp_offload_range *taken, int n, size_t from, size_t bytes)
{
	for (int i = 0; i < n && taken[i].begin < from + bytes; i++)
		if (taken[i].end > from) from = taken[i].end;
	return from;
}

/* The highest one that ends at `top` or below; else the lowest. */
static size_t highest_to(const struct slp_offload_range *taken, int n, size_t top, size_t bytes)
{
	size_t at = 0, found = (size_t)-1;
	for (int i = 0; i <= n && at < top; i++) {
		size_t end = i < n && taken[i].begin < top ? taken[i].begin : top;
		if (end >= at + bytes) found = end - bytes;
		if (i < n && taken[i].end > at) at = taken[i].end;
	}
	return found != (size_t)-1 ? found : lowest_from(taken, n, 0, bytes);
}

/* Small values lie at the upper end, so that they do not divide the memory of large ones.  All places are as aligned as the
 * values' sizes: kernels of half types compute in another way where an operand is not. */
static size_t find_place(const struct slp_offload_problem *p, const struct slp_offload *o, int n, size_t bytes)
{
	enum { PART = 8 };
	size_t top = p->places ? p->places : p->room;
	if (bytes * PART > o->largest) return lowest_from(o->taken, n, 0, bytes);
	if (bytes % ALIGNMENT == 0) top -= top % ALIGNMENT;
	return highest_to(o->taken, n, top, bytes);
}

/* The place that is free beside the first `count` that have theirs. */
static size_t place_of(struct place *w, const struct slp_offload_stay *s, int count)
{
	struct slp_offload *o = w->o;
	int n = 0;
	for (int i = 0; i < count; i++) {
		const struct slp_offload_stay *other = &o->stays[w->placed[i]];
		if (overlap(s, other, w->p->nunits))
			o->taken[n++] = (struct slp_offload_range){other->offset, other->offset + bytes_of(w, other)};
	}
	return find_place(w->p, o, n, bytes_of(w, s));
}

static void insert_placed(struct place *w, int stay, int count)
{
	int at = count;
	while (at > 0 && w->o->stays[w->placed[at - 1]].offset > w->o->stays[stay].offset) at--;
	memmove(w->placed + at + 1, w->placed + at, (size_t)(count - at) * sizeof *w->placed);
	w->placed[at] = stay;
}

static size_t assign(struct place *w)
{
	size_t height = 0;
	for (int i = 0; i < w->o->nstays; i++) {
		struct slp_offload_stay *s = &w->o->stays[w->order[i]];
		s->offset = i < w->nfixed ? w->p->fixed[s->value] : place_of(w, s, i);
		insert_placed(w, w->order[i], i);
		if (s->offset + bytes_of(w, s) > height) height = s->offset + bytes_of(w, s);
	}
	return height;
}

/* ---- orders ------------------------------------------------------------------------------------------------------ */

enum order { BY_BYTES, BY_AREA, BY_LENGTH, ORDERS };

static double rank(const struct place *w, enum order order, const struct slp_offload_stay *s)
{
	double bytes = (double)bytes_of(w, s), length = s->end - s->begin;
	if (slp_offload_is_fixed(w->p, s->value)) return 1e40;
	if (s->end - s->begin == w->p->nunits) return 1e30 + bytes; /* always there: at one end */
	return order == BY_BYTES ? bytes : order == BY_AREA ? bytes * length : length;
}

/* Sorted by insertion into halves: stable, and without a comparison that knows the problem. */
static void sort(struct place *w, enum order order, int *from, int *to, int n)
{
	if (n < 2) return;
	int half = n / 2, i = 0, k = half;
	sort(w, order, from, to, half);
	sort(w, order, from + half, to + half, n - half);
	for (int at = 0; at < n; at++) {
		bool first = k == n || (i < half &&
		                        rank(w, order, &w->o->stays[from[i]]) >= rank(w, order, &w->o->stays[from[k]]));
		to[at] = first ? from[i++] : from[k++];
	}
	memcpy(from, to, (size_t)n * sizeof *from);
}

/* The stay that is highest comes first from now on. */
static void promote_highest(struct place *w)
{
	const struct slp_offload *o = w->o;
	int highest = 0;
	for (int i = 1; i < o->nstays; i++) {
		const struct slp_offload_stay *a = &o->stays[w->order[i]], *b = &o->stays[w->order[highest]];
		if (a->offset + bytes_of(w, a) > b->offset + bytes_of(w, b)) highest = i;
	}
	if (highest < w->nfixed) return;
	int stay = w->order[highest], first = w->nfixed;
	memmove(w->order + first + 1, w->order + first, (size_t)(highest - first) * sizeof *w->order);
	w->order[first] = stay;
}

static void keep_if_lower(struct place *w)
{
	int n = w->o->nstays;
	size_t height = assign(w);
	if (height >= w->o->height) return;
	w->o->height = height;
	memcpy(w->best, w->order, (size_t)n * sizeof *w->best);
}

/* The offsets are those of the last order. */
static void use_best(struct place *w)
{
	size_t bytes = (size_t)w->o->nstays * sizeof *w->order;
	if (memcmp(w->order, w->best, bytes) == 0) return;
	memcpy(w->order, w->best, bytes);
	assign(w);
}

static void find_offsets(struct place *w, bool thorough)
{
	const long looks = thorough ? 2000000 : 0; /* a fraction of a second */
	int n = w->o->nstays;
	w->o->height = (size_t)-1;
	w->o->largest = 0;
	for (int i = 0; i < n; i++)
		if (bytes_of(w, &w->o->stays[i]) > w->o->largest && !slp_offload_is_fixed(w->p, w->o->stays[i].value))
			w->o->largest = bytes_of(w, &w->o->stays[i]);
	for (enum order order = 0; order < ORDERS && w->o->height > w->p->room; order++) {
		for (int i = 0; i < n; i++) w->order[i] = i;
		sort(w, order, w->order, w->from, n);
		keep_if_lower(w);
	}
	use_best(w);
	for (long i = 0; w->o->height > w->p->room && i < looks / ((long)n * n + 1); i++) {
		promote_highest(w);
		keep_if_lower(w);
	}
	use_best(w);
}

bool slp_offload_place(const struct slp_offload_problem *p, struct slp_offload *o, bool thorough)
{
	struct place w = {.p = p, .o = o};
	free(o->stays);
	free(o->taken);
	o->stays = NULL;
	o->taken = NULL;
	o->nstays = 0;
	bool ok = find_stays(&w);
	size_t n = (size_t)o->nstays + 1;
	w.order = ok ? slp_malloc(4 * n * sizeof *w.order) : NULL;
	o->taken = ok ? slp_malloc(n * sizeof *o->taken) : NULL;
	ok = w.order && o->taken;
	if (ok) {
		w.best = w.order + n;
		w.from = w.best + n;
		w.placed = w.from + n;
		find_offsets(&w, thorough);
	}
	free(w.order);
	return ok;
}

/* ---- longer stays ------------------------------------------------------------------------------------------------ */

static bool is_free(const struct slp_offload_range *taken, int n, size_t begin, size_t bytes)
{
	for (int i = 0; i < n; i++)
		if (taken[i].begin < begin + bytes && taken[i].end > begin) return false;
	return true;
}

bool slp_offload_stretch(const struct slp_offload_problem *p, struct slp_offload *o, int stay, int earlier, int later)
{
	struct slp_offload_stay *s = &o->stays[stay], longer = *s;
	size_t bytes = p->bytes[s->value], room = p->places > o->height ? p->places : o->height;
	if (p->most > room) room = p->most;
	int n = 0;
	longer.begin -= earlier;
	longer.end += later;
	longer.parts = parts_of(longer.begin, longer.end, p->nunits);
	if (longer.end - longer.begin > p->nunits) return false;
	for (int i = 0; i < o->nstays; i++) {
		const struct slp_offload_stay *other = &o->stays[i];
		if (i != stay && overlap(&longer, other, p->nunits))
			o->taken[n++] =
			        (struct slp_offload_range){other->offset, other->offset + p->bytes[other->value]};
	}
	if (!is_free(o->taken, n, longer.offset, bytes)) {
		qsort(o->taken, (size_t)n, sizeof *o->taken, by_begin);
		longer.offset = find_place(p, o, n, bytes);
	}
	if (longer.offset + bytes > room) return false;
	if (longer.begin < 0) {
		longer.begin += p->nunits;
		longer.end += p->nunits;
	}
	if (longer.offset + bytes > o->height) o->height = longer.offset + bytes;
	*s = longer;
	return true;
}

/* The widest range that is free all the time lies between the small values at the upper end and the others. */
void slp_offload_sink(const struct slp_offload_problem *p, struct slp_offload *o)
{
	size_t n = 0, at = 0, low = 0, gap = 0;
	if (p->fixed) return;
	for (int i = 0; i < o->nstays; i++)
		o->taken[n++] = (struct slp_offload_range){o->stays[i].offset,
		                                           o->stays[i].offset + p->bytes[o->stays[i].value]};
	qsort(o->taken, n, sizeof *o->taken, by_begin);
	for (size_t i = 0; i < n; i++) {
		if (o->taken[i].begin > at + gap) {
			low = at;
			gap = o->taken[i].begin - at;
		}
		if (o->taken[i].end > at) at = o->taken[i].end;
	}
	gap -= gap % ALIGNMENT;
	for (int i = 0; i < o->nstays; i++)
		if (o->stays[i].offset >= low + gap) o->stays[i].offset -= gap;
	if (n) o->height = at - gap;
}
