/* How long a run with planned copies takes: the thread that submits, the GPU and the link each way, in the order of the
 * steps. */
#include <stdlib.h>

#include "alloc.h"
#include "graph/offload_times.h"

struct clock {
	double host, out, in; /* when the thread that submits, and the link each way, are free */
	double *left, *there; /* of each value: when its copies are complete */
	double *end;          /* of each unit of this run, or of the previous one */
};

/* Of a task beside its kernels, and of StarPU for each value; of the thread that submits: each task, and each call in it. */
static const double task_seconds = 15e-6, value_seconds = 2.3e-6, submit_seconds = 4e-6, call_seconds = 1e-6;

static double beside_kernels(const struct slp_offload_unit *u)
{
	return task_seconds + value_seconds * u->nuses;
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

static void carry_out(const struct slp_offload_times *w, struct clock *c, struct slp_offload_step s)
{
	if (s.ended >= 0) c->host = later(c->host, c->end[s.ended]);
	switch (s.what) {
	case SLP_OFFLOAD_COPY:
		c->left[s.value] = c->out = later(c->out, c->host) + slp_offload_out_seconds(w, s.value);
		break;
	case SLP_OFFLOAD_DROP: c->host = later(c->host, c->left[s.value]); break;
	case SLP_OFFLOAD_PLACE: break;
	case SLP_OFFLOAD_FETCH:
		c->there[s.value] = c->in = later(c->in, c->host) + slp_offload_in_seconds(w, s.value);
		break;
	}
}

static double run_once(const struct slp_offload_times *w, struct clock *c)
{
	const double start =
	        90e-6; /* of a task that is submitted when the previous one has ended, and of its arguments */
	const struct slp_offload *o = w->o;
	int n = w->p->nunits;
	for (int i = 0; i < n; i++) {
		int waits = i ? i - SLP_OFFLOAD_AHEAD : n - 1;
		double before = c->end[i ? i - 1 : n - 1];
		if (waits >= 0) c->host = later(c->host, c->end[waits]);
		for (int k = o->first[i]; k < o->first[i + 1]; k++) carry_out(w, c, o->steps[k]);
		c->host += submit_seconds + w->p->units[i].calls * call_seconds;
		double begin = later(before, c->host + start);
		for (int k = 0; k < w->p->units[i].nuses; k++)
			begin = later(begin, c->there[w->p->units[i].uses[k].value]);
		c->end[i] = begin + beside_kernels(&w->p->units[i]) + w->p->units[i].seconds;
	}
	return c->end[n - 1];
}

bool slp_offload_predict(struct slp_offload_times *w)
{
	size_t values = (size_t)w->p->nvalues, n = (size_t)w->p->nunits;
	double *memory = slp_calloc(2 * values + n + 1, sizeof *memory);
	if (!memory) return false;
	struct clock c = {.left = memory, .there = memory + values, .end = memory + 2 * values};
	w->o->begin = slp_calloc(n + 1, sizeof *w->o->begin);
	bool ok = w->o->begin != NULL;
	double before = 0, now = 0;
	for (int run = 0; run < 3 && ok; run++) {
		before = now;
		now = run_once(w, &c);
	}
	for (size_t i = 0; i < n && ok; i++) w->o->begin[i + 1] = c.end[i] - before;
	w->o->seconds = now - before;
	free(memory);
	return ok;
}

double slp_offload_exposed(const struct slp_offload_problem *p, const struct slp_offload *o)
{
	double beside = 0;
	for (int i = 0; i < p->nunits; i++) beside += beside_kernels(&p->units[i]);
	return o->seconds - o->busy - beside;
}
