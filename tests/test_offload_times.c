/* The plan of copies between a device and main memory hides the copies behind computing where the link allows it. */
#include <math.h>

#include "check.h"
#include "offload_problem.h"

/* The page of arithmetic: the longer of computing and the busier way of the link, and what begins and ends a step. */
static void test_times(void)
{
	static struct slp_problem q;
	static const double rates[] = {1e2, 1e3, 5e3, 1e5};
	for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
		unsigned state = 5;
		struct slp_offload o;
		slp_problem_chain(&q, 48, &state);
		size_t all = 0;
		for (int i = 0; i < 48; i++) all += q.bytes[i];
		q.p.room = all / 2;
		q.p.in_bytes = q.p.out_bytes = rates[k];
		if (!slp_problem_plan(&q, &o)) continue;
		double link = (double)o.in_bytes / rates[k], least = o.busy > link ? o.busy : link;
		CHECK_SAYING(o.seconds >= least * (1 - 1e-9), "%g s, at least %g", o.seconds, least);
		CHECK_SAYING(o.seconds <= o.busy + 2 * link + 1, "%g s: compute %g, link %g", o.seconds, o.busy, link);
		if (rates[k] >= 5e3) CHECK_SAYING(o.seconds <= 1.05 * o.busy, "hidden: %g s, %g", o.seconds, o.busy);
		slp_offload_clear(&o);
	}
}

/* Forward, backward, and an update of each layer's parameter, with a state that nothing else uses. */
static void make_training(struct slp_problem *q, int layers)
{
	int param[SLP_MAX_UNITS], state[SLP_MAX_UNITS], act[SLP_MAX_UNITS], grad[SLP_MAX_UNITS];
	slp_problem_begin(q, 3 * layers);
	for (int i = 0; i < layers; i++) {
		param[i] = slp_problem_value(q, 40, SLP_OFFLOAD_KEPT);
		state[i] = slp_problem_value(q, 80, SLP_OFFLOAD_KEPT);
		act[i] = slp_problem_value(q, 60, SLP_OFFLOAD_LOCAL);
		grad[i] = slp_problem_value(q, 40, SLP_OFFLOAD_LOCAL);
	}
	for (int i = 0; i < layers; i++) {
		int back = 2 * layers - 1 - i, update = 3 * layers - 1 - i;
		slp_problem_use(q, i, param[i], false);
		slp_problem_use(q, i, act[i], true);
		if (i) slp_problem_use(q, i, act[i - 1], false);
		slp_problem_use(q, back, param[i], false);
		slp_problem_use(q, back, act[i], false);
		slp_problem_use(q, back, grad[i], true);
		slp_problem_use(q, update, grad[i], false);
		slp_problem_use(q, update, param[i], true);
		slp_problem_use(q, update, state[i], true);
	}
	for (int i = 0; i < layers; i++) q->units[i].seconds = 0.1;
	for (int i = layers; i < 2 * layers; i++) q->units[i].seconds = 0.2;
	for (int i = 2 * layers; i < 3 * layers; i++) q->units[i].seconds = 0.01;
}

/* With half of the memory all copies are hidden, except those of the values that do not fit when the updates begin. */
static void test_training(void)
{
	static struct slp_problem q;
	for (int layers = 32; layers <= 128; layers *= 2) {
		struct slp_offload o = {0};
		int unit;
		size_t bytes;
		make_training(&q, layers);
		size_t room = q.p.room = (size_t)layers * 220 / 2, updated = (size_t)layers * 160;
		if (!CHECK(slp_offload_plan(&q.p, &o, &unit, &bytes))) return;
		q.p.room = room;
		CHECK(o.height <= room);
		slp_problem_check(&q, &o);
		double least = o.busy + (double)(updated - room) / q.p.in_bytes - 0.01 * layers;
		CHECK_SAYING(o.seconds >= least && o.seconds <= 1.1 * least, "%d layers: %.2f s, at least %.2f", layers,
		             o.seconds, least);
		printf(" %.3f", o.seconds / least);
		slp_offload_clear(&o);
	}
}

/* The shortest predicted run of a plan in the ways of slp_offload_plan, without knowledge of when units wait. */
static double without_waits(struct slp_problem *q, size_t room)
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
	static struct slp_problem q;
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

static const struct slp_test tests[] = {
        {"times", test_times},
        {"training", test_training},
        {"waits", test_waits},
        {0},
};

int main(int argc, char **argv)
{
	return slp_test_main(argc, argv, (const struct slp_suite[]){{.name = "offload times", .tests = tests}, {0}});
}
