/* The times at which values may be away from the device, and what must be there. */
#include "alloc.h"
#include "graph/offload_choice.h"

/* The first position at which unit `after` has ended for certain. */
static int free_from(const struct slp_offload *o, int after, int nunits)
{
	return after + 1 >= nunits || o->alone[after + 1] ? after + 1 : after + 2;
}

static bool add_gap(struct slp_offload_choice *c, int value, int before, bool returns)
{
	struct slp_offload *o = c->o;
	int after = c->last[value], from = free_from(o, after, c->p->nunits);
	if (from >= before || slp_offload_is_fixed(c->p, value)) return true;
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

static bool use_value(struct slp_offload_choice *c, int unit, struct slp_offload_use use)
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
static bool end_value(struct slp_offload_choice *c, int v)
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

bool slp_offload_find_gaps(struct slp_offload_choice *c)
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

static size_t fixed_bytes(const struct slp_offload_problem *p)
{
	size_t sum = 0;
	for (int v = 0; v < p->nvalues; v++)
		if (slp_offload_is_fixed(p, v)) sum += p->bytes[v];
	return sum;
}

/* Bytes of a unit's values without fixed places; pair: with the values of the unit before it, which may still run. */
static size_t bytes_of(const struct slp_offload_choice *c, int unit, bool pair, int mark)
{
	size_t bytes = 0;
	for (int i = pair ? unit - 1 : unit; i <= unit; i++)
		for (int k = 0; k < c->p->units[i].nuses; k++) {
			int v = c->p->units[i].uses[k].value;
			if (c->seen[v] != mark && !slp_offload_is_fixed(c->p, v)) bytes += c->p->bytes[v];
			c->seen[v] = mark;
		}
	return bytes;
}

bool slp_offload_find_needs(struct slp_offload_choice *c, int *unit, size_t *need)
{
	double part = c->p->together > 0 ? c->p->together : 1;
	size_t fixed = fixed_bytes(c->p), room = c->p->room > fixed ? c->p->room - fixed : 0;
	size_t together = (size_t)(part * (double)room);
	int mark = 1;
	for (int i = 0; i < c->p->nunits; i++) {
		c->o->alone[i] = i == 0 || bytes_of(c, i, true, mark++) > together;
		*need = bytes_of(c, i, !c->o->alone[i], mark++);
		*unit = i;
		if (*need > room) return false;
	}
	*unit = -1;
	return true;
}

void slp_offload_fill(const struct slp_offload_choice *c)
{
	const struct slp_offload_problem *p = c->p;
	for (int v = 0; v < p->nvalues; v++) {
		bool fixed = slp_offload_is_fixed(p, v);
		if (c->begin[v] < 0 && !fixed) continue;
		bool always = fixed || p->kind[v] == SLP_OFFLOAD_KEPT || p->kind[v] == SLP_OFFLOAD_INPUT;
		int end =
		        !always && p->kind[v] == SLP_OFFLOAD_LOCAL ? free_from(c->o, c->last[v], p->nunits) : p->nunits;
		for (int i = always ? 0 : c->begin[v]; i < end && i < p->nunits; i++) c->o->used[i] += p->bytes[v];
	}
}
