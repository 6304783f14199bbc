/* Programs for tests of the plan of copies: units, the values that they use, and their sizes. */
#include <string.h>

#include "check.h"
#include "offload_problem.h"

unsigned slp_problem_draw(unsigned *state, unsigned n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % n;
}

void slp_problem_begin(struct slp_problem *q, int nunits)
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

int slp_problem_value(struct slp_problem *q, size_t bytes, enum slp_offload_kind kind)
{
	q->bytes[q->p.nvalues] = bytes;
	q->kind[q->p.nvalues] = kind;
	return q->p.nvalues++;
}

void slp_problem_use(struct slp_problem *q, int unit, int value, bool write)
{
	struct slp_offload_unit *u = &q->units[unit];
	for (int k = 0; k < u->nuses; k++)
		if (q->uses[unit][k].value == value) return;
	q->uses[unit][u->nuses++] = (struct slp_offload_use){value, write};
}

bool slp_problem_uses(const struct slp_problem *q, int unit, int value)
{
	for (int k = 0; unit >= 0 && k < q->units[unit].nuses; k++)
		if (q->uses[unit][k].value == value) return true;
	return false;
}

size_t slp_problem_need(const struct slp_problem *q, int units)
{
	size_t most = 0;
	for (int i = 0; i < q->p.nunits; i++) {
		size_t bytes = 0;
		for (int v = 0; v < q->p.nvalues; v++)
			if (slp_problem_uses(q, i, v) || (units == 2 && slp_problem_uses(q, i - 1, v)))
				bytes += q->bytes[v];
		if (bytes > most) most = bytes;
	}
	return most;
}

void slp_problem_chain(struct slp_problem *q, int layers, unsigned *state)
{
	slp_problem_begin(q, 2 * layers);
	int last = -1, gradient = -1, act[SLP_MAX_UNITS];
	for (int i = 0; i < layers; i++) {
		act[i] = slp_problem_value(q, 64 + slp_problem_draw(state, 64), SLP_OFFLOAD_LOCAL);
		if (last >= 0) slp_problem_use(q, i, last, false);
		slp_problem_use(q, i, last = act[i], true);
	}
	for (int i = layers; i < 2 * layers; i++) {
		int layer = 2 * layers - 1 - i;
		slp_problem_use(q, i, act[layer], false);
		if (layer) slp_problem_use(q, i, act[layer - 1], false);
		if (gradient >= 0) slp_problem_use(q, i, gradient, false);
		gradient = slp_problem_value(q, q->bytes[act[layer ? layer - 1 : 0]], SLP_OFFLOAD_LOCAL);
		slp_problem_use(q, i, gradient, true);
	}
}

bool slp_problem_plan(const struct slp_problem *q, struct slp_offload *o)
{
	int unit = -1;
	size_t bytes = 0;
	bool planned = slp_offload_choose(&q->p, o, &unit, &bytes) && slp_offload_when(&q->p, o);
	return CHECK_SAYING(planned, "unit %d needs %zu", unit, bytes);
}
