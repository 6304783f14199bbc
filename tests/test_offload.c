/* The plan of copies between a device and main memory: the copies are possible, places do not overlap, and the plan is the same
 * each time. */
#include <string.h>

#include "check.h"
#include "offload_problem.h"

/* All ways of choosing and of giving copies time, with little memory for places: possible, and within it if they fit. */
static void test_ways(void)
{
	static struct slp_problem q;
	unsigned state = 5;
	int fit = 0;
	for (int way = 0; way < 4; way++)
		for (int part = 2; part <= 5; part++) {
			struct slp_offload o;
			slp_problem_chain(&q, 48, &state);
			for (int v = 0; v < q.p.nvalues; v += 5) q.bytes[v] = 3;
			size_t all = 0;
			for (int i = 0; i < 48; i++) all += q.bytes[i];
			q.p.room = all / (size_t)part;
			q.p.places = q.p.room * 5 / 4;
			q.p.farthest = way & 1;
			q.p.one_by_one = way & 2;
			if (!slp_problem_plan(&q, &o)) continue;
			q.p.room = q.p.places;
			slp_problem_check(&q, &o);
			fit += o.height <= q.p.places;
			CHECK(o.seconds > o.busy && slp_offload_exposed(&q.p, &o) > -1e-9);
			slp_offload_clear(&o);
		}
	CHECK_SAYING(fit >= 12, "%d of 16 plans fit", fit);
}

/* Memory between places at both ends is not taken. */
static void test_height(void)
{
	static struct slp_problem q;
	struct slp_offload o;
	unsigned state = 9;
	slp_problem_chain(&q, 12, &state);
	size_t all = 0;
	for (int v = 0; v < q.p.nvalues; v++) all += q.bytes[v] = v % 3 ? q.bytes[v] : 1;
	q.p.room = q.p.places = 100 * all;
	if (!slp_problem_plan(&q, &o)) return;
	slp_problem_check(&q, &o);
	CHECK_SAYING(o.height <= all + 256, "height %zu of %zu", o.height, all);
	slp_offload_clear(&o);
}

/* Sizes are multiples of 256, and so are places, whatever the limit: also those at the upper end. */
static void test_alignment(void)
{
	enum { UNIT = 256 };
	static struct slp_problem q;
	unsigned state = 11;
	int planned = 0;
	for (int part = 2; part <= 3; part++)
		for (int places = 0; places < 2; places++) {
			struct slp_offload o;
			slp_problem_chain(&q, 24, &state);
			size_t all = 0;
			for (int v = 0; v < q.p.nvalues; v++) q.bytes[v] = UNIT * (v % 5 ? q.bytes[v] : 1);
			for (int i = 0; i < 24; i++) all += q.bytes[i];
			q.p.room = all / (size_t)part + 77;
			q.p.places = places ? q.p.room * 5 / 4 + 1 : 0;
			if (!slp_problem_plan(&q, &o)) continue;
			planned++;
			for (int i = 0; i < o.nstays; i++)
				CHECK_SAYING(o.stays[i].offset % UNIT == 0, "a place at %zu", o.stays[i].offset);
			slp_offload_clear(&o);
		}
	CHECK(planned >= 4);
}

/* A batch comes at the beginning of each run, and leaves. */
static void test_inputs(void)
{
	static struct slp_problem q;
	unsigned state = 2;
	for (int last = 1; last <= 4; last++) {
		struct slp_offload o;
		slp_problem_chain(&q, 30, &state);
		int batch = slp_problem_value(&q, 50, SLP_OFFLOAD_INPUT);
		slp_problem_use(&q, 0, batch, false);
		slp_problem_use(&q, 60 - last, batch, false);
		q.p.room = 3 * slp_problem_need(&q, 2);
		if (!slp_problem_plan(&q, &o)) continue;
		slp_problem_check(&q, &o);
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
	static struct slp_problem q;
	unsigned state = 3;
	for (int enough = 0; enough < 2; enough++) {
		struct slp_offload o;
		slp_problem_chain(&q, 20, &state);
		int n = q.p.nunits, sent = slp_problem_value(&q, 40, SLP_OFFLOAD_SENT),
		    param = slp_problem_value(&q, 40, SLP_OFFLOAD_INPUT);
		slp_problem_use(&q, n / 2, sent, true);
		slp_problem_use(&q, n / 2 + 1, sent, false);
		slp_problem_use(&q, 3, param, false);
		slp_problem_use(&q, n / 2, param, false);
		q.p.room = enough ? (size_t)1 << 40 : 3 * slp_problem_need(&q, 2);
		if (!slp_problem_plan(&q, &o)) continue;
		slp_problem_check(&q, &o);
		CHECK(has_step(&o, SLP_OFFLOAD_COPY, sent, n / 2 + 1) &&
		      has_step(&o, SLP_OFFLOAD_DROP, sent, n / 2 + 2));
		CHECK(has_step(&o, SLP_OFFLOAD_DROP, param, n / 2 + 1) && has_step(&o, SLP_OFFLOAD_FETCH, param, 0));
		if (enough) CHECK(o.out_bytes == 40 && o.in_bytes == 40);
		slp_offload_clear(&o);
	}
}

static void test_enough(void)
{
	static struct slp_problem q;
	unsigned state = 1;
	struct slp_offload o;
	slp_problem_chain(&q, 20, &state);
	q.p.room = (size_t)1 << 40;
	if (!slp_problem_plan(&q, &o)) return;
	for (int i = 0; i < o.nsteps; i++) CHECK(o.steps[i].what == SLP_OFFLOAD_PLACE);
	CHECK(!o.in_bytes && !o.out_bytes && o.seconds >= o.busy * 0.999 && o.seconds <= o.busy * 1.001);
	slp_offload_clear(&o);
}

static void test_too_small(void)
{
	static struct slp_problem q;
	unsigned state = 1;
	struct slp_offload o;
	int unit;
	size_t bytes;
	slp_problem_chain(&q, 20, &state);
	q.p.room = slp_problem_need(&q, 1) - 1;
	CHECK(!slp_offload_choose(&q.p, &o, &unit, &bytes));
	CHECK_SAYING(unit >= 0 && bytes == q.p.room + 1, "unit %d: %zu", unit, bytes);
	q.p.room++;
	if (!slp_problem_plan(&q, &o)) return;
	slp_problem_check(&q, &o);
	slp_offload_clear(&o);
}

/* A value that changes while it is here is copied out again when it leaves again; one that does not change is not. */
static void test_rewritten(void)
{
	static struct slp_problem q;
	for (int changes = 0; changes < 2; changes++) {
		struct slp_offload o;
		slp_problem_begin(&q, 14);
		int value = slp_problem_value(&q, 10, SLP_OFFLOAD_LOCAL);
		slp_problem_use(&q, 0, value, true);
		slp_problem_use(&q, 7, value, changes);
		slp_problem_use(&q, 13, value, false);
		for (int i = 3; i <= 10; i += 7) { /* leaves no room */
			int large = slp_problem_value(&q, 20, SLP_OFFLOAD_LOCAL);
			slp_problem_use(&q, i, large, true);
			slp_problem_use(&q, i + 1, large, false);
		}
		q.p.room = 20;
		if (!slp_problem_plan(&q, &o)) continue;
		slp_problem_check(&q, &o);
		CHECK_SAYING(o.in_bytes == 20 && o.out_bytes == (changes ? 20 : 10), "%zu in, %zu out", o.in_bytes,
		             o.out_bytes);
		slp_offload_clear(&o);
	}
}

static void test_repeatable(void)
{
	static struct slp_problem q;
	unsigned state = 9;
	struct slp_offload a, b;
	slp_problem_chain(&q, 60, &state);
	q.p.room = 3 * slp_problem_need(&q, 2);
	if (!slp_problem_plan(&q, &a) || !slp_problem_plan(&q, &b)) return;
	CHECK(a.nsteps == b.nsteps && !memcmp(a.first, b.first, sizeof *a.first * (size_t)(q.p.nunits + 1)));
	for (int i = 0; i < a.nsteps; i++)
		CHECK(a.steps[i].what == b.steps[i].what && a.steps[i].value == b.steps[i].value);
	slp_offload_clear(&a);
	slp_offload_clear(&b);
}

/* Values with fixed places, and memory that others have, stay where they are; the rest of the room is used as always. */
static void test_resting(void)
{
	enum { LAYERS = 24, PARAM = 40, OTHERS = 700 };
	static struct slp_problem q;
	static size_t fixed[SLP_MAX_VALUES];
	unsigned state = 13;
	for (int part = 1; part <= 3; part++) {
		struct slp_offload o = {0};
		int unit, param[LAYERS];
		size_t need, room;
		slp_problem_chain(&q, LAYERS, &state);
		for (int v = 0; v < SLP_MAX_VALUES; v++) fixed[v] = SLP_OFFLOAD_ANYWHERE;
		q.p.fixed = fixed;
		for (int i = 0; i < LAYERS; i++)
			slp_problem_use(&q, i, param[i] = slp_problem_value(&q, PARAM, SLP_OFFLOAD_KEPT), false);
		for (int i = 0; i < LAYERS / 2; i++) fixed[param[i]] = (size_t)(50 + i * 60 + i % 3 * 5);
		int others = slp_problem_value(&q, OTHERS, SLP_OFFLOAD_KEPT);
		fixed[others] = 2000;
		q.p.room = room = 3000 + 4000 / (size_t)part;
		if (!CHECK(slp_offload_plan(&q.p, &o, &unit, &need))) return;
		q.p.room = room;
		CHECK_SAYING(o.height <= room, "%zu of %zu", o.height, room);
		slp_problem_check(&q, &o);
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
        {"ways", test_ways},
        {"height", test_height},
        {"alignment", test_alignment},
        {"inputs", test_inputs},
        {"sent", test_sent},
        {"enough memory", test_enough},
        {"too little memory", test_too_small},
        {"rewritten", test_rewritten},
        {"repeatable", test_repeatable},
        {"resting", test_resting},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "offload", .tests = tests}, {0}});
}
