/* The plan of copies between a device and main memory copies little more than the least that exhaustive search finds for small
 * programs, and a bound for large ones. */
#include <string.h>

#include "check.h"
#include "offload_problem.h"

/* The least number of bytes to copy to reach each state: which values are on the device, and which in main memory. */
enum { TINY_VALUES = 6, STATES = 1 << 2 * TINY_VALUES };
static unsigned cost_now[STATES], cost_next[STATES];

static int mask(const struct slp_problem *q, int unit)
{
	int m = 0;
	for (int v = 0; v < q->p.nvalues; v++) m |= slp_problem_uses(q, unit, v) << v;
	return m;
}

static unsigned bytes_in(const struct slp_problem *q, int m)
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

static struct moment moment_of(const struct slp_problem *q, const bool *alone, int i)
{
	struct moment m = {.all = (1 << q->p.nvalues) - 1};
	m.needed = mask(q, i) | (alone[i] ? 0 : mask(q, i - 1));
	for (int v = 0; v < q->p.nvalues; v++) {
		bool before = false, later = false;
		for (int k = 0; k < q->p.nunits; k++) {
			before |= k < i && slp_problem_uses(q, k, v);
			later |= k >= i && slp_problem_uses(q, k, v);
		}
		bool kept = q->kind[v] == SLP_OFFLOAD_KEPT;
		if (!kept && !before && !slp_problem_uses(q, i, v)) m.unborn |= 1 << v;
		if (!kept && !before && slp_problem_uses(q, i, v)) m.created |= 1 << v;
		if (q->kind[v] == SLP_OFFLOAD_LOCAL && !later && !(m.needed >> v & 1)) m.dead |= 1 << v;
	}
	for (int k = 0; k < q->units[i].nuses; k++) m.written |= q->uses[i][k].write << q->uses[i][k].value;
	return m;
}

/* Tries every set of values that can be on the device at position i. */
static void step(const struct slp_problem *q, const struct moment *m, int here, int there, unsigned cost)
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
static unsigned least_from(const struct slp_problem *q, const bool *alone, int here, int there, int kept)
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

static unsigned least_copies(const struct slp_problem *q, const bool *alone)
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

static void make_tiny(struct slp_problem *q, unsigned *state)
{
	slp_problem_begin(q, 5 + (int)slp_problem_draw(state, 3));
	int n = 4 + (int)slp_problem_draw(state, 2);
	for (int v = 0; v < n; v++)
		slp_problem_value(q, 1 + slp_problem_draw(state, 8),
		                  v < 2        ? SLP_OFFLOAD_KEPT
		                  : v == n - 1 ? SLP_OFFLOAD_RESULT
		                               : 0);
	for (int v = 0; v < n; v++) {
		bool kept = q->kind[v] == SLP_OFFLOAD_KEPT;
		int unit = (int)slp_problem_draw(state, (unsigned)q->p.nunits - 2);
		slp_problem_use(q, unit, v, !kept);
		for (int k = 0; k < 2; k++) {
			int next = unit + 1 + (int)slp_problem_draw(state, (unsigned)(q->p.nunits - unit));
			if (next < q->p.nunits) slp_problem_use(q, next, v, slp_problem_draw(state, 4) == 0);
		}
	}
	size_t all = 0, least = slp_problem_need(q, 1);
	for (int v = 0; v < n; v++) all += q->bytes[v];
	q->p.room = least + slp_problem_draw(state, (unsigned)(all - least) / 2 + 1);
}

static void test_exhaustive(void)
{
	static struct slp_problem q;
	unsigned state = 7, sum = 0, most = 0;
	for (int trial = 0; trial < 60; trial++) {
		struct slp_offload o;
		make_tiny(&q, &state);
		if (!slp_problem_plan(&q, &o)) continue;
		slp_problem_check(&q, &o);
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

/* Of values that can be divided, those leave whose next use is farthest away: the least number of bytes that come back.
 * Each of these has left before. */
static double bound(const struct slp_problem *q, const struct slp_offload *o)
{
	static double part[SLP_MAX_VALUES];
	double sum = 0;
	memset(part, 0, sizeof part);
	for (int i = 0; i < q->p.nunits; i++) {
		double used = 0;
		int next[SLP_MAX_VALUES];
		for (int v = 0; v < q->p.nvalues; v++) {
			int before = -1, after = q->p.nunits;
			bool busy = slp_problem_uses(q, i, v) || (!o->alone[i] && slp_problem_uses(q, i - 1, v));
			for (int k = 0; k < i; k++)
				if (slp_problem_uses(q, k, v)) before = k;
			for (int k = q->p.nunits - 1; k > i; k--)
				if (slp_problem_uses(q, k, v)) after = k;
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

static void test_bound(void)
{
	static struct slp_problem q;
	unsigned state = 3;
	double worst = 0;
	for (int layers = 12; layers <= 192; layers *= 2)
		for (int part = 2; part <= 8; part *= 2) {
			struct slp_offload o;
			slp_problem_chain(&q, layers, &state);
			size_t all = 0;
			for (int i = 0; i < layers; i++) all += q.bytes[i];
			q.p.room = all / (size_t)part;
			if (q.p.room < 2 * slp_problem_need(&q, 2)) continue;
			if (!slp_problem_plan(&q, &o)) continue;
			slp_problem_check(&q, &o);
			double least = bound(&q, &o), copied = (double)(o.in_bytes + o.out_bytes);
			CHECK_SAYING(copied >= least && copied <= 1.1 * least,
			             "%d layers, 1/%d: %.0f bytes, bound %.0f", layers, part, copied, least);
			if (copied / least > worst) worst = copied / least;
			slp_offload_clear(&o);
		}
	CHECK(worst > 0);
	printf(" (at most %.3f times the bound)", worst);
}

static const struct slp_test tests[] = {
        {"exhaustive search", test_exhaustive},
        {"bound", test_bound},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "offload least", .tests = tests}, {0}});
}
