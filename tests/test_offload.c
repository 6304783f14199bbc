/* The plan of copies between a device and main memory: what it does is possible, it copies little more than the least that
 * exhaustive search or a bound finds, and it is the same each time. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "graph/offload.h"
#include "program.h"

enum { MAX_UNITS = 400, MAX_USES = 8, MAX_VALUES = 900, TINY_VALUES = 6 };

struct problem {
	struct slp_offload_problem p;
	struct slp_offload_unit units[MAX_UNITS];
	struct slp_offload_use uses[MAX_UNITS][MAX_USES];
	size_t bytes[MAX_VALUES];
	enum slp_offload_kind kind[MAX_VALUES];
};

static unsigned draw(unsigned *state, unsigned n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

static void begin(struct problem *q, int nunits)
{
	memset(q, 0, sizeof *q);
	q->p = (struct slp_offload_problem){.units = q->units,
	                                    .nunits = nunits,
	                                    .bytes = q->bytes,
	                                    .kind = q->kind,
	                                    .out_bytes = 1e3,
	                                    .in_bytes = 1e3,
	                                    .out_latency = 1e-3,
	                                    .in_latency = 1e-3};
	for (int i = 0; i < nunits; i++) q->units[i] = (struct slp_offload_unit){.uses = q->uses[i], .seconds = 0.05};
}

static int add_value(struct problem *q, size_t bytes, enum slp_offload_kind kind)
{
	q->bytes[q->p.nvalues] = bytes;
	q->kind[q->p.nvalues] = kind;
	return q->p.nvalues++;
}

static void use(struct problem *q, int unit, int value, bool write)
{
	struct slp_offload_unit *u = &q->units[unit];
	for (int k = 0; k < u->nuses; k++)
		if (q->uses[unit][k].value == value) return;
	q->uses[unit][u->nuses++] = (struct slp_offload_use){value, write};
}

static bool uses_value(const struct problem *q, int unit, int value)
{
	for (int k = 0; unit >= 0 && k < q->units[unit].nuses; k++)
		if (q->uses[unit][k].value == value) return true;
	return false;
}

/* The most that a unit, or two neighbours, need. */
static size_t need(const struct problem *q, int units)
{
	size_t most = 0;
	for (int i = 0; i < q->p.nunits; i++) {
		size_t bytes = 0;
		for (int v = 0; v < q->p.nvalues; v++)
			if (uses_value(q, i, v) || (units == 2 && uses_value(q, i - 1, v))) bytes += q->bytes[v];
		if (bytes > most) most = bytes;
	}
	return most;
}

/* ---- what a plan does, carried out step by step ------------------------------------------------------------------ */

struct device {
	const struct problem *q;
	const struct slp_offload *o;
	bool here[MAX_VALUES], there[MAX_VALUES], written[MAX_VALUES]; /* on the device; in main memory, as it is now */
	int last[MAX_VALUES], first[MAX_VALUES];
	bool placed[MAX_VALUES], was[MAX_VALUES]; /* was: placed in this run, at[v] the last time */
	size_t at[MAX_VALUES], in, out;
	int ended; /* the last unit for which this run has waited */
};

static bool writes_value(const struct problem *q, int unit, int value)
{
	for (int k = 0; k < q->units[unit].nuses; k++)
		if (q->uses[unit][k].value == value) return q->uses[unit][k].write;
	return false;
}

/* The last unit that uses the value, or writes it. */
static int last_use(const struct problem *q, int v, int before, bool write)
{
	while (--before >= 0 && !(write ? writes_value : uses_value)(q, before, v)) continue;
	return before;
}

/* Whether the program has waited for the unit that wrote the value before it is copied, and for those that used it before it
 * leaves or its place is given on. */
static bool has_waited(struct device *d, struct slp_offload_step s, int i)
{
	const size_t *bytes = d->q->bytes;
	bool ok = true;
	if (s.ended > d->ended) d->ended = s.ended;
	if (s.what == SLP_OFFLOAD_FETCH) return true;
	if (s.what != SLP_OFFLOAD_PLACE) return last_use(d->q, s.value, i, s.what == SLP_OFFLOAD_COPY) <= d->ended;
	for (int v = 0; v < d->q->p.nvalues; v++)
		if (v != s.value && d->was[v] && d->at[v] < s.offset + bytes[s.value] && s.offset < d->at[v] + bytes[v])
			ok &= last_use(d->q, v, i, false) <= d->ended;
	return ok;
}

static bool carry_out(struct device *d, struct slp_offload_step s, int i)
{
	int v = s.value;
	bool busy = uses_value(d->q, i, v) || (!d->o->alone[i] && uses_value(d->q, i - 1, v));
	switch (s.what) {
	case SLP_OFFLOAD_COPY:
		if (d->here[v] && !d->there[v]) d->out += d->q->bytes[v];
		d->there[v] = true;
		return d->here[v];
	case SLP_OFFLOAD_DROP: d->here[v] = d->placed[v] = false; return d->there[v] && !(busy && i > 0);
	case SLP_OFFLOAD_PLACE: {
		bool moves = d->here[v] && (!d->placed[v] || d->at[v] != s.offset);
		d->placed[v] = d->was[v] = true;
		d->at[v] = s.offset;
		return !moves;
	}
	case SLP_OFFLOAD_FETCH:
		if (!d->here[v]) d->in += d->q->bytes[v];
		d->here[v] = true;
		return d->there[v] && d->placed[v];
	}
	return false;
}

static size_t bytes_here(const struct device *d)
{
	size_t sum = 0;
	for (int v = 0; v < d->q->p.nvalues; v++) sum += d->here[v] ? d->q->bytes[v] : 0;
	return sum;
}

/* Memory of values of no use is free once their last unit has ended. */
static void end_units(struct device *d, int i)
{
	for (int v = 0; v < d->q->p.nvalues; v++) {
		int ended = d->o->alone[i] ? i - 1 : i - 2;
		if (d->q->kind[v] == SLP_OFFLOAD_LOCAL && d->last[v] <= ended && d->written[v])
			d->here[v] = d->placed[v] = false;
	}
}

/* Whether each value that is here has a place, and no two share one. */
static bool are_apart(const struct device *d)
{
	int list[MAX_VALUES], n = 0;
	for (int v = 0; v < d->q->p.nvalues; v++) {
		if (!d->here[v]) continue;
		if (!d->placed[v] || d->at[v] + d->q->bytes[v] > d->o->height) return false;
		for (int k = 0; k < n; k++)
			if (d->at[v] < d->at[list[k]] + d->q->bytes[list[k]] &&
			    d->at[list[k]] < d->at[v] + d->q->bytes[v])
				return false;
		list[n++] = v;
	}
	return true;
}

static bool run_unit(struct device *d, int i)
{
	bool ok = true;
	for (int k = 0; k < d->q->units[i].nuses; k++) {
		struct slp_offload_use u = d->q->uses[i][k];
		/* StarPU brings an input for which there is no time before the first unit. */
		bool made = d->q->kind[u.value] != SLP_OFFLOAD_KEPT && d->first[u.value] == i;
		ok &= made || d->here[u.value];
		d->here[u.value] = true;
		if (u.write) d->there[u.value] = false;
		d->written[u.value] |= u.write;
	}
	return ok && bytes_here(d) <= d->q->p.room;
}

static void begin_run(struct device *d)
{
	d->ended = -1;
	for (int v = 0; v < d->q->p.nvalues; v++) {
		d->written[v] = d->was[v] = false;
		if (d->q->kind[v] != SLP_OFFLOAD_KEPT) d->here[v] = d->there[v] = d->placed[v] = false;
		if (d->q->kind[v] == SLP_OFFLOAD_INPUT) d->there[v] = true; /* another batch */
	}
}

/* Whether three runs are possible; the copies of the last one are those that the plan expects. */
static bool is_possible(const struct problem *q, const struct slp_offload *o)
{
	static struct device d;
	memset(&d, 0, sizeof d);
	d.q = q;
	d.o = o;
	for (int v = 0; v < q->p.nvalues; v++) {
		d.first[v] = d.last[v] = -1;
		for (int i = 0; i < q->p.nunits; i++) {
			if (!uses_value(q, i, v)) continue;
			if (d.first[v] < 0) d.first[v] = i;
			d.last[v] = i;
		}
	}
	bool ok = true;
	for (int run = 0; run < 4; run++) {
		d.in = d.out = 0;
		begin_run(&d);
		for (int i = 0; i < q->p.nunits; i++) {
			end_units(&d, i);
			if (d.ended < i - SLP_OFFLOAD_AHEAD) d.ended = i - SLP_OFFLOAD_AHEAD;
			for (int k = o->first[i]; k < o->first[i + 1]; k++) {
				bool waited = has_waited(&d, o->steps[k], i);
				bool step = carry_out(&d, o->steps[k], i);
				if (run)
					ok &= CHECK_SAYING(waited, "unit %d: step %d of value %d is early", i,
					                   o->steps[k].what, o->steps[k].value);
				if (run)
					ok &= CHECK_SAYING(step, "unit %d: step %d of value %d", i, o->steps[k].what,
					                   o->steps[k].value);
			}
			/* In the first run, parameters are wherever they are. */
			for (int v = 0; !run && v < q->p.nvalues; v++)
				if (q->kind[v] >= SLP_OFFLOAD_KEPT && uses_value(q, i, v))
					d.here[v] = d.there[v] = true;
			bool unit = run_unit(&d, i);
			if (run) ok &= CHECK_SAYING(unit, "unit %d: %zu bytes of %zu", i, bytes_here(&d), q->p.room);
			if (run) ok &= CHECK_SAYING(are_apart(&d), "unit %d: values share memory", i);
		}
	}
	return ok & CHECK_SAYING(d.in == o->in_bytes && d.out == o->out_bytes,
	                         "copied %zu and %zu, planned %zu and %zu", d.in, d.out, o->in_bytes, o->out_bytes);
}

static bool plan(const struct problem *q, struct slp_offload *o)
{
	int unit = -1;
	size_t bytes = 0;
	bool planned = slp_offload_choose(&q->p, o, &unit, &bytes) && slp_offload_when(&q->p, o);
	return CHECK_SAYING(planned, "unit %d needs %zu", unit, bytes);
}

/* ---- exhaustive search ------------------------------------------------------------------------------------------- */

/* The least number of bytes to copy to reach each state: which values are on the device, and which in main memory. */
enum { STATES = 1 << 2 * TINY_VALUES };
static unsigned cost_now[STATES], cost_next[STATES];

static int mask(const struct problem *q, int unit)
{
	int m = 0;
	for (int v = 0; v < q->p.nvalues; v++) m |= uses_value(q, unit, v) << v;
	return m;
}

static unsigned bytes_in(const struct problem *q, int m)
{
	unsigned sum = 0;
	for (int v = 0; v < q->p.nvalues; v++) sum += m >> v & 1 ? (unsigned)q->bytes[v] : 0;
	return sum;
}

static void reach(unsigned *costs, int state, unsigned cost)
{
	if (costs[state] > cost) costs[state] = cost;
}

/* The moments of values at position i: not written yet; may be away; of no use any more. */
struct moment {
	int needed, unborn, dead, created, written, all;
};

static struct moment moment_of(const struct problem *q, const bool *alone, int i)
{
	struct moment m = {.all = (1 << q->p.nvalues) - 1};
	m.needed = mask(q, i) | (alone[i] ? 0 : mask(q, i - 1));
	for (int v = 0; v < q->p.nvalues; v++) {
		bool before = false, later = false;
		for (int k = 0; k < q->p.nunits; k++) {
			before |= k < i && uses_value(q, k, v);
			later |= k >= i && uses_value(q, k, v);
		}
		bool kept = q->kind[v] == SLP_OFFLOAD_KEPT;
		if (!kept && !before && !uses_value(q, i, v)) m.unborn |= 1 << v;
		if (!kept && !before && uses_value(q, i, v)) m.created |= 1 << v;
		if (q->kind[v] == SLP_OFFLOAD_LOCAL && !later && !(m.needed >> v & 1)) m.dead |= 1 << v;
	}
	for (int k = 0; k < q->units[i].nuses; k++) m.written |= q->uses[i][k].write << q->uses[i][k].value;
	return m;
}

/* All that can be on the device at position i. */
static void step(const struct problem *q, const struct moment *m, int here, int there, unsigned cost)
{
	int n = q->p.nvalues, gone = m->dead | m->unborn;
	here &= ~gone;
	there &= ~(gone | m->created);
	for (int next = 0; next <= m->all; next++) {
		if ((next & m->needed) != m->needed || next & gone || bytes_in(q, next) > q->p.room) continue;
		int fetched = next & ~here & ~m->created, dropped = here & ~next, out = dropped & ~there;
		if (fetched & ~there) continue;
		int main_memory = (there | out) & ~m->written;
		reach(cost_next, next << n | main_memory, cost + bytes_in(q, fetched) + bytes_in(q, out));
	}
}

/* From a state to the same state one run later. */
static unsigned least_from(const struct problem *q, const bool *alone, int here, int there, int kept)
{
	int n = q->p.nvalues, states = 1 << 2 * n;
	memset(cost_now, 0xff, sizeof *cost_now * (size_t)states);
	cost_now[here << n | there] = 0;
	for (int i = 0; i < q->p.nunits; i++) {
		struct moment m = moment_of(q, alone, i);
		memset(cost_next, 0xff, sizeof *cost_next * (size_t)states);
		for (int s = 0; s < states; s++)
			if (cost_now[s] != -1u) step(q, &m, s >> n, s & m.all, cost_now[s]);
		memcpy(cost_now, cost_next, sizeof *cost_now * (size_t)states);
	}
	unsigned least = -1u;
	for (int s = 0; s < states; s++) {
		if (cost_now[s] == -1u) continue;
		int end_here = s >> n & kept, end_there = s & kept, out = 0;
		if (end_here & ~here) { /* leaves at the end */
			out = end_here & ~here & ~end_there;
			end_there |= out;
			end_here &= here;
		}
		unsigned cost = cost_now[s] + bytes_in(q, out);
		if (here & ~end_here || there & ~end_there) continue;
		if (cost < least) least = cost;
	}
	return least;
}

static unsigned least_copies(const struct problem *q, const bool *alone)
{
	int kept = 0;
	unsigned least = -1u;
	for (int v = 0; v < q->p.nvalues; v++) kept |= (q->kind[v] == SLP_OFFLOAD_KEPT) << v;
	for (int here = 0; here <= kept; here++)
		for (int there = 0; there <= kept; there++) {
			if (here & ~kept || there & ~kept || (here | there) != kept) continue;
			unsigned cost = least_from(q, alone, here, there, kept);
			if (cost < least) least = cost;
		}
	return least;
}

static void make_tiny(struct problem *q, unsigned *state)
{
	begin(q, 5 + (int)draw(state, 3));
	int n = 4 + (int)draw(state, 2);
	for (int v = 0; v < n; v++)
		add_value(q, 1 + draw(state, 8), v < 2 ? SLP_OFFLOAD_KEPT : v == n - 1 ? SLP_OFFLOAD_RESULT : 0);
	for (int v = 0; v < n; v++) {
		bool kept = q->kind[v] == SLP_OFFLOAD_KEPT;
		int unit = (int)draw(state, (unsigned)q->p.nunits - 2);
		use(q, unit, v, !kept);
		for (int k = 0; k < 2; k++) {
			int next = unit + 1 + (int)draw(state, (unsigned)(q->p.nunits - unit));
			if (next < q->p.nunits) use(q, next, v, draw(state, 4) == 0);
		}
	}
	size_t all = 0, least = need(q, 1);
	for (int v = 0; v < n; v++) all += q->bytes[v];
	q->p.room = least + draw(state, (unsigned)(all - least) / 2 + 1);
}

static void test_exhaustive(void)
{
	static struct problem q;
	unsigned state = 7, sum = 0, most = 0;
	for (int trial = 0; trial < 60; trial++) {
		struct slp_offload o;
		make_tiny(&q, &state);
		if (!plan(&q, &o)) continue;
		is_possible(&q, &o);
		unsigned least = least_copies(&q, o.alone), copied = (unsigned)(o.in_bytes + o.out_bytes);
		CHECK_SAYING(copied >= least && 10 * copied <= 11 * least, "program %d: %u bytes, at least %u", trial,
		             copied, least);
		sum += least;
		if (copied - least > most) most = copied - least;
		slp_offload_clear(&o);
	}
	CHECK(sum > 200); /* most programs must copy */
	printf(" (at most %u bytes more than the least; %u in all)", most, sum);
}

/* ---- the bound --------------------------------------------------------------------------------------------------- */

/* Forward, backward: each layer's result is used again in the reverse order. */
static void make_chain(struct problem *q, int layers, unsigned *state)
{
	begin(q, 2 * layers);
	int last = -1, gradient = -1, act[MAX_UNITS];
	for (int i = 0; i < layers; i++) {
		act[i] = add_value(q, 64 + draw(state, 64), SLP_OFFLOAD_LOCAL);
		if (last >= 0) use(q, i, last, false);
		use(q, i, last = act[i], true);
	}
	for (int i = layers; i < 2 * layers; i++) {
		int layer = 2 * layers - 1 - i;
		use(q, i, act[layer], false);
		if (layer) use(q, i, act[layer - 1], false);
		if (gradient >= 0) use(q, i, gradient, false);
		gradient = add_value(q, q->bytes[act[layer ? layer - 1 : 0]], SLP_OFFLOAD_LOCAL);
		use(q, i, gradient, true);
	}
}

/* Of values that can be divided, those leave whose next use is farthest away: the least number of bytes that come back.
 * Each of these has left before. */
static double bound(const struct problem *q, const struct slp_offload *o)
{
	static double part[MAX_VALUES];
	double sum = 0;
	memset(part, 0, sizeof part);
	for (int i = 0; i < q->p.nunits; i++) {
		double used = 0;
		int next[MAX_VALUES];
		for (int v = 0; v < q->p.nvalues; v++) {
			int before = -1, after = q->p.nunits;
			bool busy = uses_value(q, i, v) || (!o->alone[i] && uses_value(q, i - 1, v));
			for (int k = 0; k < i; k++)
				if (uses_value(q, k, v)) before = k;
			for (int k = q->p.nunits - 1; k > i; k--)
				if (uses_value(q, k, v)) after = k;
			next[v] = busy || before < 0 || after == q->p.nunits ? -1 : after;
			if (busy) part[v] = 0;
			if (busy || next[v] >= 0) used += (double)q->bytes[v] - part[v];
		}
		while (used > (double)q->p.room) {
			int best = -1;
			for (int v = 0; v < q->p.nvalues; v++)
				if (next[v] >= 0 && part[v] < (double)q->bytes[v] && (best < 0 || next[v] > next[best]))
					best = v;
			if (best < 0) return 0;
			double more = (double)q->bytes[best] - part[best], missing = used - (double)q->p.room;
			if (more > missing) more = missing;
			part[best] += more;
			used -= more;
			sum += more;
		}
	}
	return 2 * sum;
}

/* All ways of choosing and of giving copies time, with little memory for places: possible, and within it if they fit. */
static void test_ways(void)
{
	static struct problem q;
	unsigned state = 5;
	int fit = 0;
	for (int way = 0; way < 4; way++)
		for (int part = 2; part <= 5; part++) {
			struct slp_offload o;
			make_chain(&q, 48, &state);
			for (int v = 0; v < q.p.nvalues; v += 5) q.bytes[v] = 3;
			size_t all = 0;
			for (int i = 0; i < 48; i++) all += q.bytes[i];
			q.p.room = all / (size_t)part;
			q.p.places = q.p.room * 5 / 4;
			q.p.farthest = way & 1;
			q.p.one_by_one = way & 2;
			if (!plan(&q, &o)) continue;
			q.p.room = q.p.places;
			is_possible(&q, &o);
			fit += o.height <= q.p.places;
			CHECK(o.seconds > o.busy && slp_offload_exposed(&q.p, &o) > -1e-9);
			slp_offload_clear(&o);
		}
	CHECK_SAYING(fit >= 12, "%d of 16 plans fit", fit);
}

/* Memory between places at both ends is not taken. */
static void test_height(void)
{
	static struct problem q;
	struct slp_offload o;
	unsigned state = 9;
	make_chain(&q, 12, &state);
	size_t all = 0;
	for (int v = 0; v < q.p.nvalues; v++) all += q.bytes[v] = v % 3 ? q.bytes[v] : 1;
	q.p.room = q.p.places = 100 * all;
	if (!plan(&q, &o)) return;
	is_possible(&q, &o);
	CHECK_SAYING(o.height <= all + 256, "height %zu of %zu", o.height, all);
	slp_offload_clear(&o);
}

/* Sizes are multiples of 256, and so are places, whatever the limit: also those at the upper end. */
static void test_alignment(void)
{
	enum { UNIT = 256 };
	static struct problem q;
	unsigned state = 11;
	int planned = 0;
	for (int part = 2; part <= 3; part++)
		for (int places = 0; places < 2; places++) {
			struct slp_offload o;
			make_chain(&q, 24, &state);
			size_t all = 0;
			for (int v = 0; v < q.p.nvalues; v++) q.bytes[v] = UNIT * (v % 5 ? q.bytes[v] : 1);
			for (int i = 0; i < 24; i++) all += q.bytes[i];
			q.p.room = all / (size_t)part + 77;
			q.p.places = places ? q.p.room * 5 / 4 + 1 : 0;
			if (!plan(&q, &o)) continue;
			planned++;
			for (int i = 0; i < o.nstays; i++)
				CHECK_SAYING(o.stays[i].offset % UNIT == 0, "a place at %zu", o.stays[i].offset);
			slp_offload_clear(&o);
		}
	CHECK(planned >= 4);
}

static void test_bound(void)
{
	static struct problem q;
	unsigned state = 3;
	double worst = 0;
	for (int layers = 12; layers <= 192; layers *= 2)
		for (int part = 2; part <= 8; part *= 2) {
			struct slp_offload o;
			make_chain(&q, layers, &state);
			size_t all = 0;
			for (int i = 0; i < layers; i++) all += q.bytes[i];
			q.p.room = all / (size_t)part;
			if (q.p.room < 2 * need(&q, 2)) continue;
			if (!plan(&q, &o)) continue;
			is_possible(&q, &o);
			double least = bound(&q, &o), copied = (double)(o.in_bytes + o.out_bytes);
			CHECK_SAYING(copied >= least && copied <= 1.1 * least,
			             "%d layers, 1/%d: %.0f bytes, bound %.0f", layers, part, copied, least);
			if (copied / least > worst) worst = copied / least;
			slp_offload_clear(&o);
		}
	CHECK(worst > 0);
	printf(" (at most %.3f times the bound)", worst);
}

/* ---- times ------------------------------------------------------------------------------------------------------- */

/* The page of arithmetic: the longer of computing and the busier way of the link, and what begins and ends a step. */
static void test_times(void)
{
	static struct problem q;
	static const double rates[] = {1e2, 1e3, 5e3, 1e5};
	for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
		unsigned state = 5;
		struct slp_offload o;
		make_chain(&q, 48, &state);
		size_t all = 0;
		for (int i = 0; i < 48; i++) all += q.bytes[i];
		q.p.room = all / 2;
		q.p.in_bytes = q.p.out_bytes = rates[k];
		if (!plan(&q, &o)) continue;
		double link = (double)o.in_bytes / rates[k], least = o.busy > link ? o.busy : link;
		CHECK_SAYING(o.seconds >= least * (1 - 1e-9), "%g s, at least %g", o.seconds, least);
		CHECK_SAYING(o.seconds <= o.busy + 2 * link + 1, "%g s: compute %g, link %g", o.seconds, o.busy, link);
		if (rates[k] >= 5e3) CHECK_SAYING(o.seconds <= 1.05 * o.busy, "hidden: %g s, %g", o.seconds, o.busy);
		slp_offload_clear(&o);
	}
}

/* ---- others ------------------------------------------------------------------------------------------------------ */

/* A batch comes at the beginning of each run, and leaves. */
static void test_inputs(void)
{
	static struct problem q;
	unsigned state = 2;
	for (int last = 1; last <= 4; last++) {
		struct slp_offload o;
		make_chain(&q, 30, &state);
		int batch = add_value(&q, 50, SLP_OFFLOAD_INPUT);
		use(&q, 0, batch, false);
		use(&q, 60 - last, batch, false);
		q.p.room = 3 * need(&q, 2);
		if (!plan(&q, &o)) continue;
		is_possible(&q, &o);
		slp_offload_clear(&o);
	}
}

static bool has_step(const struct slp_offload *o, int what, int value, int from)
{
	for (int i = o->first[from]; i < o->nsteps; i++)
		if ((int)o->steps[i].what == what && o->steps[i].value == value) return true;
	return false;
}

/* Results that are used in main memory leave after their last use, and parameters that change there come in each run, even if
 * there is memory for all. */
static void test_sent(void)
{
	static struct problem q;
	unsigned state = 3;
	for (int enough = 0; enough < 2; enough++) {
		struct slp_offload o;
		make_chain(&q, 20, &state);
		int n = q.p.nunits, sent = add_value(&q, 40, SLP_OFFLOAD_SENT),
		    param = add_value(&q, 40, SLP_OFFLOAD_INPUT);
		use(&q, n / 2, sent, true);
		use(&q, n / 2 + 1, sent, false);
		use(&q, 3, param, false);
		use(&q, n / 2, param, false);
		q.p.room = enough ? (size_t)1 << 40 : 3 * need(&q, 2);
		if (!plan(&q, &o)) continue;
		is_possible(&q, &o);
		CHECK(has_step(&o, SLP_OFFLOAD_COPY, sent, n / 2 + 1) &&
		      has_step(&o, SLP_OFFLOAD_DROP, sent, n / 2 + 2));
		CHECK(has_step(&o, SLP_OFFLOAD_DROP, param, n / 2 + 1) && has_step(&o, SLP_OFFLOAD_FETCH, param, 0));
		if (enough) CHECK(o.out_bytes == 40 && o.in_bytes == 40);
		slp_offload_clear(&o);
	}
}

static void test_enough(void)
{
	static struct problem q;
	unsigned state = 1;
	struct slp_offload o;
	make_chain(&q, 20, &state);
	q.p.room = (size_t)1 << 40;
	if (!plan(&q, &o)) return;
	for (int i = 0; i < o.nsteps; i++) CHECK(o.steps[i].what == SLP_OFFLOAD_PLACE);
	CHECK(!o.in_bytes && !o.out_bytes && o.seconds >= o.busy * 0.999 && o.seconds <= o.busy * 1.001);
	slp_offload_clear(&o);
}

static void test_too_small(void)
{
	static struct problem q;
	unsigned state = 1;
	struct slp_offload o;
	int unit;
	size_t bytes;
	make_chain(&q, 20, &state);
	q.p.room = need(&q, 1) - 1;
	CHECK(!slp_offload_choose(&q.p, &o, &unit, &bytes));
	CHECK_SAYING(unit >= 0 && bytes == q.p.room + 1, "unit %d: %zu", unit, bytes);
	q.p.room++;
	if (!plan(&q, &o)) return;
	is_possible(&q, &o);
	slp_offload_clear(&o);
}

/* A value that changes while it is here is copied out again when it leaves again; one that does not change is not. */
static void test_rewritten(void)
{
	static struct problem q;
	for (int changes = 0; changes < 2; changes++) {
		struct slp_offload o;
		begin(&q, 14);
		int value = add_value(&q, 10, SLP_OFFLOAD_LOCAL);
		use(&q, 0, value, true);
		use(&q, 7, value, changes);
		use(&q, 13, value, false);
		for (int i = 3; i <= 10; i += 7) { /* leaves no room */
			int large = add_value(&q, 20, SLP_OFFLOAD_LOCAL);
			use(&q, i, large, true);
			use(&q, i + 1, large, false);
		}
		q.p.room = 20;
		if (!plan(&q, &o)) continue;
		is_possible(&q, &o);
		CHECK_SAYING(o.in_bytes == 20 && o.out_bytes == (changes ? 20 : 10), "%zu in, %zu out", o.in_bytes,
		             o.out_bytes);
		slp_offload_clear(&o);
	}
}

static void test_repeatable(void)
{
	static struct problem q;
	unsigned state = 9;
	struct slp_offload a, b;
	make_chain(&q, 60, &state);
	q.p.room = 3 * need(&q, 2);
	if (!plan(&q, &a) || !plan(&q, &b)) return;
	CHECK(a.nsteps == b.nsteps && !memcmp(a.first, b.first, sizeof *a.first * (size_t)(q.p.nunits + 1)));
	for (int i = 0; i < a.nsteps; i++)
		CHECK(a.steps[i].what == b.steps[i].what && a.steps[i].value == b.steps[i].value);
	slp_offload_clear(&a);
	slp_offload_clear(&b);
}

/* ---- computed again ---------------------------------------------------------------------------------------------- */

/* So many operations are computed again over a fast link, and the results, with the parameters, have the same bits. */
static void check_recompute(int line, const char *text, int expected)
{
	const double fast = 1e18;
	sl_graph *g = slp_program(text), *h = slp_graph_copy(g);
	int repeated = -1;
	CHECK_OK(slp_offload_recompute(h, fast, (struct slp_offload_again){fast, fast, 1}, 1, &repeated));
	CHECK_SAYING(repeated == expected, "line %d: %d operations", line, repeated);
	CHECK_OK(slp_graph_verify(h));
	CHECK_SAYING(slp_graph_compare("recompute", g, h, 0) == SL_OK, "line %d: %s", line, sl_error_message());
	sl_graph_free(g);
	sl_graph_free(h);
}

static void test_recompute(void)
{
	slp_begin((struct sl_config){.teams = 1, .seed = 1});
	/* r needs a second batch_norm, and this a second exp; c needs one later. */
	check_recompute(__LINE__,
	                "input x: float32 (4, 3, 5, 5)\nparam g: float32 (3,)\nparam b: float32 (3,)\n"
	                "param m: float32 (3,)\nparam v: float32 (3,)\nc = exp(x)\nn = batch_norm(c, g, b, m, v)\n"
	                "r = relu(n[0])\ns = tanh(r)\nt = sigmoid(s)\nu = mul(t, r)\ny = mul(u, c)\nreturn y",
	                4);
	/* Through a view. */
	check_recompute(
	        __LINE__,
	        X "a = exp(x)\nb = reshape(a, shape=(6,))\nc = tanh(b)\nd = sigmoid(c)\ne = mul(d, b)\nreturn e", 1);
	/* w is another one by then; a result is kept. */
	check_recompute(__LINE__,
	                X "param w: float32 (2, 3)\na = mul(x, w)\nb = tanh(a)\nsgd(w, b, lr=0.5)\nc = sigmoid(b)\n"
	                  "d = exp(c)\ny = mul(a, d)\nreturn y",
	                0);
	check_recompute(__LINE__, X "a = exp(x)\nb = tanh(a)\nc = sigmoid(b)\nd = mul(c, a)\nreturn d, a", 0);
	slp_end_well();
}

/* Shares of the values that are made early (a) and late (c and d); a second c then needs a second b. */
static void test_shares(void)
{
	static const struct slp_offload_again none = {0, 0, 1}, early = {1e18, 0, 0.5}, late = {0, 1e18, 0.5},
	                                      both = {1e18, 1e18, 0.5};
	const struct {
		struct slp_offload_again which;
		int expected;
	} of[] = {{none, 0}, {early, 1}, {late, 2}, {both, 4}};
	slp_begin((struct sl_config){.teams = 1, .seed = 1});
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		sl_graph *g =
		        slp_program("input x: float32 (64, 64)\na = exp(x)\nb = tanh(a)\nc = sigmoid(b)\nd = exp(c)\n"
		                    "e = tanh(d)\nf = mul(e, c)\nh = sigmoid(f)\ny = mul(h, a)\nreturn y");
		int repeated = -1;
		CHECK_OK(slp_offload_recompute(g, 1e18, of[i].which, 1, &repeated));
		CHECK_SAYING(repeated == of[i].expected, "share %zu: %d operations", i, repeated);
		CHECK_OK(slp_graph_verify(g));
		sl_graph_free(g);
	}
	slp_end_well();
}

/* ---- sums come early --------------------------------------------------------------------------------------------- */

static int find_op(const sl_graph *g, const char *name)
{
	for (int i = 0; i < g->count; i++)
		if (g->nodes[i].kind == SLP_NODE_OP && !strcmp(g->nodes[i].op->name, name)) return i;
	return -1;
}

/* The sum comes so many nodes before the sigmoid, or after it; the bits stay. */
static void check_early(int line, const char *text, int before)
{
	sl_graph *g = slp_program(text), *h = slp_graph_copy(g);
	CHECK_OK(slp_offload_early(h));
	CHECK_OK(slp_graph_verify(h));
	int distance = find_op(h, "sigmoid") - find_op(h, "sum");
	CHECK_SAYING(distance == before, "line %d: %d", line, distance);
	CHECK_SAYING(slp_graph_compare("early", g, h, 0) == SL_OK, "line %d: %s", line, sl_error_message());
	sl_graph_free(g);
	sl_graph_free(h);
}

static void test_early(void)
{
	slp_begin((struct sl_config){.teams = 1, .seed = 1});
	check_early(__LINE__,
	            "input x: float32 (8, 8)\na = exp(x)\nb = tanh(a)\nc = sigmoid(b)\ns = sum(a)\nreturn c, s", 2);
	/* The parameter is another one before. */
	check_early(__LINE__,
	            "input x: float32 (8, 8)\nparam w: float32 (8, 8)\na = exp(x)\nc = sigmoid(a)\n"
	            "sgd(w, c, lr=0.5)\ns = sum(w)\nreturn c, s",
	            -2);
	/* It is not small beside its argument. */
	check_early(__LINE__,
	            "input x: float32 (2, 3)\na = exp(x)\nb = tanh(a)\nc = sigmoid(b)\ns = sum(a)\nreturn c, s", -1);
	slp_end_well();
}

/* ---- what is written at the end of a run ------------------------------------------------------------------------- */

/* Forward, backward, and an update of each layer's parameter, with a state that nothing else uses. */
static void make_training(struct problem *q, int layers)
{
	int param[MAX_UNITS], state[MAX_UNITS], act[MAX_UNITS], grad[MAX_UNITS];
	begin(q, 3 * layers);
	for (int i = 0; i < layers; i++) {
		param[i] = add_value(q, 40, SLP_OFFLOAD_KEPT);
		state[i] = add_value(q, 80, SLP_OFFLOAD_KEPT);
		act[i] = add_value(q, 60, SLP_OFFLOAD_LOCAL);
		grad[i] = add_value(q, 40, SLP_OFFLOAD_LOCAL);
	}
	for (int i = 0; i < layers; i++) {
		int back = 2 * layers - 1 - i, update = 3 * layers - 1 - i;
		use(q, i, param[i], false);
		use(q, i, act[i], true);
		if (i) use(q, i, act[i - 1], false);
		use(q, back, param[i], false);
		use(q, back, act[i], false);
		use(q, back, grad[i], true);
		use(q, update, grad[i], false);
		use(q, update, param[i], true);
		use(q, update, state[i], true);
	}
	for (int i = 0; i < layers; i++) q->units[i].seconds = 0.1;
	for (int i = layers; i < 2 * layers; i++) q->units[i].seconds = 0.2;
	for (int i = 2 * layers; i < 3 * layers; i++) q->units[i].seconds = 0.01;
}

/* Half of the memory: all copies are hidden, but those of what does not fit when the updates begin. */
static void test_training(void)
{
	static struct problem q;
	for (int layers = 32; layers <= 128; layers *= 2) {
		struct slp_offload o = {0};
		int unit;
		size_t bytes;
		make_training(&q, layers);
		size_t room = q.p.room = (size_t)layers * 220 / 2, updated = (size_t)layers * 160;
		if (!CHECK(slp_offload_plan(&q.p, &o, &unit, &bytes))) return;
		q.p.room = room;
		CHECK(o.height <= room);
		is_possible(&q, &o);
		double least = o.busy + (double)(updated - room) / q.p.in_bytes - 0.01 * layers;
		CHECK_SAYING(o.seconds >= least && o.seconds <= 1.1 * least, "%d layers: %.2f s, at least %.2f", layers,
		             o.seconds, least);
		printf(" %.3f", o.seconds / least);
		slp_offload_clear(&o);
	}
}

/* The shortest predicted run of a plan in the ways of slp_offload_plan, without knowledge of when units wait. */
static double without_waits(struct problem *q, size_t room)
{
	static const struct {
		double together;
		bool farthest, one_by_one;
	} ways[] = {{0, false, false}, {0.2, false, true}, {0.2, true, false}, {0, true, false}};
	double best = INFINITY;
	for (int i = 0; i < (int)(sizeof ways / sizeof *ways); i++) {
		struct slp_offload o = {0};
		int unit;
		size_t bytes;
		q->p.room = room;
		q->p.together = ways[i].together;
		q->p.farthest = ways[i].farthest;
		q->p.one_by_one = ways[i].one_by_one;
		if (slp_offload_fit(&q->p, &o, &unit, &bytes) && o.seconds < best) best = o.seconds;
		slp_offload_clear(&o);
	}
	return best;
}

/* While units wait for copies, the link has time for others: plans that know this are faster. */
static void test_waits(void)
{
	static struct problem q;
	int faster = 0, plans = 0;
	for (int layers = 32; layers <= 40; layers += 8)
		for (int part = 3; part <= 5; part++) {
			struct slp_offload o = {0};
			int unit;
			size_t bytes;
			make_training(&q, layers);
			double before = without_waits(&q, (size_t)layers * 220 / (size_t)part);
			make_training(&q, layers);
			q.p.room = (size_t)layers * 220 / (size_t)part;
			if (!CHECK(slp_offload_plan(&q.p, &o, &unit, &bytes))) return;
			CHECK_SAYING(o.seconds <= before + 1e-9, "%d layers: %.3f s, %.3f without waits", layers,
			             o.seconds, before);
			faster += o.seconds < 0.995 * before;
			plans++;
			printf(" %.3f", o.seconds / before);
			slp_offload_clear(&o);
		}
	CHECK_SAYING(faster >= plans / 3, "%d of %d plans are faster with waits", faster, plans);
}

/* ---- beside what rests ------------------------------------------------------------------------------------------- */

/* Values with fixed places, and memory that others have, stay where they are; the rest of the room is used as always. */
static void test_resting(void)
{
	enum { LAYERS = 24, PARAM = 40, OTHERS = 700 };
	static struct problem q;
	static size_t fixed[MAX_VALUES];
	unsigned state = 13;
	for (int part = 1; part <= 3; part++) {
		struct slp_offload o = {0};
		int unit, param[LAYERS];
		size_t need, room;
		make_chain(&q, LAYERS, &state);
		for (int v = 0; v < MAX_VALUES; v++) fixed[v] = SLP_OFFLOAD_ANYWHERE;
		q.p.fixed = fixed;
		for (int i = 0; i < LAYERS; i++) use(&q, i, param[i] = add_value(&q, PARAM, SLP_OFFLOAD_KEPT), false);
		for (int i = 0; i < LAYERS / 2; i++) fixed[param[i]] = (size_t)(50 + i * 60 + i % 3 * 5);
		int others = add_value(&q, OTHERS, SLP_OFFLOAD_KEPT);
		fixed[others] = 2000;
		q.p.room = room = 3000 + 4000 / (size_t)part;
		if (!CHECK(slp_offload_plan(&q.p, &o, &unit, &need))) return;
		q.p.room = room;
		CHECK_SAYING(o.height <= room, "%zu of %zu", o.height, room);
		is_possible(&q, &o);
		for (int i = 0; i < o.nstays; i++) {
			const struct slp_offload_stay *s = &o.stays[i];
			size_t end = s->offset + q.bytes[s->value];
			if (fixed[s->value] != SLP_OFFLOAD_ANYWHERE)
				CHECK_SAYING(s->offset == fixed[s->value] && s->begin == 0 && s->end == q.p.nunits,
				             "value %d at %zu from %d to %d", s->value, s->offset, s->begin, s->end);
			else
				CHECK_SAYING(end <= fixed[others] || s->offset >= fixed[others] + OTHERS,
				             "value %d at %zu", s->value, s->offset);
		}
		slp_offload_clear(&o);
	}
}

static const struct slp_test tests[] = {
        {"exhaustive search", test_exhaustive},
        {"bound", test_bound},
        {"ways", test_ways},
        {"height", test_height},
        {"alignment", test_alignment},
        {"times", test_times},
        {"inputs", test_inputs},
        {"sent", test_sent},
        {"enough memory", test_enough},
        {"too little memory", test_too_small},
        {"rewritten", test_rewritten},
        {"repeatable", test_repeatable},
        {"computed again", test_recompute},
        {"shares computed again", test_shares},
        {"sums", test_early},
        {"training", test_training},
        {"waits", test_waits},
        {"resting", test_resting},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "offload", .tests = tests}, {0}});
}
