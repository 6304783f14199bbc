/* A device that carries out a plan of copies step by step, and says where it is impossible. */
#include <string.h>

#include "check.h"
#include "offload_problem.h"

struct device {
	const struct slp_problem *q;
	const struct slp_offload *o;
	bool here[SLP_MAX_VALUES], there[SLP_MAX_VALUES],
	        written[SLP_MAX_VALUES]; /* on the device; in main memory, as it is now */
	int last[SLP_MAX_VALUES], first[SLP_MAX_VALUES];
	bool placed[SLP_MAX_VALUES], was[SLP_MAX_VALUES]; /* was: placed in this run, at[v] the last time */
	size_t at[SLP_MAX_VALUES], in, out;
	int ended; /* the last unit for which this run has waited */
};

static bool writes_value(const struct slp_problem *q, int unit, int value)
{
	for (int k = 0; k < q->units[unit].nuses; k++)
		if (q->uses[unit][k].value == value) return q->uses[unit][k].write;
	return false;
}

/* The last unit that uses the value, or writes it. */
static int last_use(const struct slp_problem *q, int v, int before, bool write)
{
	while (--before >= 0 && !(write ? writes_value : slp_problem_uses)(q, before, v)) continue;
	return before;
}

/* Before a copy, the program must have waited for the unit that wrote the value; before a value leaves or its place is given
 * to another one, for every unit that used it. */
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
	bool busy = slp_problem_uses(d->q, i, v) || (!d->o->alone[i] && slp_problem_uses(d->q, i - 1, v));
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
	int list[SLP_MAX_VALUES], n = 0;
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

bool slp_problem_check(const struct slp_problem *q, const struct slp_offload *o)
{
	static struct device d;
	memset(&d, 0, sizeof d);
	d.q = q;
	d.o = o;
	for (int v = 0; v < q->p.nvalues; v++) {
		d.first[v] = d.last[v] = -1;
		for (int i = 0; i < q->p.nunits; i++) {
			if (!slp_problem_uses(q, i, v)) continue;
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
				if (q->kind[v] >= SLP_OFFLOAD_KEPT && slp_problem_uses(q, i, v))
					d.here[v] = d.there[v] = true;
			bool unit = run_unit(&d, i);
			if (run) ok &= CHECK_SAYING(unit, "unit %d: %zu bytes of %zu", i, bytes_here(&d), q->p.room);
			if (run) ok &= CHECK_SAYING(are_apart(&d), "unit %d: values share memory", i);
		}
	}
	return ok & CHECK_SAYING(d.in == o->in_bytes && d.out == o->out_bytes,
	                         "copied %zu and %zu, planned %zu and %zu", d.in, d.out, o->in_bytes, o->out_bytes);
}
