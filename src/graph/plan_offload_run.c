/* Requests of a run under a limit of memory: before a unit is submitted, the steps of the plan that come here. */
#include <stdlib.h>

#include "alloc.h"
#include "graph/plan_offload.h"
#include "runtime/compat.h"
#include "runtime/fault.h"
#include "runtime/memory/place.h"
#include "runtime/memory/pool.h"
#include "runtime/memory/runahead.h"
#include "runtime/task/buffer.h"
#include "runtime/task/code.h"
#include "runtime/task/storage.h"

#if SLP_STARPU_1_4

static void wait_for(const sl_plan *p, int unit)
{
	const struct slp_code *code = p->units[unit].code;
	while (slp_code_in_flight(code) && slp_runahead_wait_progress()) continue;
}

static struct slp_buffer *buffer_of(const struct slp_plan_offload *o, int value)
{
	struct slp_buffer *b = o->now[value] ? o->now[value]->buffer : NULL;
	return b && !b->lost ? b : NULL;
}

/* A parameter that a task in main memory still changes is sent when that has ended (slp_buffer_send). */
static void fetch(const struct slp_plan_offload *o, const struct slp_buffer *b)
{
	if (!atomic_load(&b->readers) || !slp_pool_tasks(b)) starpu_data_prefetch_on_node(b->handle, o->node, 1);
}

static bool carry_out(const sl_plan *p, struct slp_offload_step s)
{
	const struct slp_plan_offload *o = p->offload;
	struct slp_buffer *b = buffer_of(o, s.value);
	if (!b) return true;
	if (s.ended >= 0) wait_for(p, s.ended);
	switch (s.what) {
	case SLP_OFFLOAD_COPY: starpu_data_prefetch_on_node(b->handle, STARPU_MAIN_RAM, 1); break;
	case SLP_OFFLOAD_DROP: return slp_place_leave(b);
	case SLP_OFFLOAD_PLACE: return slp_place_take(b, o->node, s.offset);
	case SLP_OFFLOAD_FETCH: fetch(o, b); break;
	}
	return true;
}

/* ---- behind another program -------------------------------------------------------------------------------------- */

/* By value: the position before which it is on the GPU from the previous run on; 0: it is not. */
static int *rests_until(const struct slp_offload_problem *p, const struct slp_offload *plan)
{
	int *until = slp_calloc((size_t)p->nvalues + 1, sizeof *until);
	for (int i = 0; until && i < plan->nstays; i++) {
		const struct slp_offload_stay *s = &plan->stays[i];
		bool kept = p->kind[s->value] == SLP_OFFLOAD_KEPT;
		if (kept && s->end > p->nunits) until[s->value] = s->end - p->nunits;
		else if (kept && s->begin == 0) until[s->value] = s->end;
	}
	return until;
}

static void fetch_if_away(const struct slp_plan_offload *o, int value)
{
	const struct slp_buffer *b = buffer_of(o, value);
	int allocated = 0, valid = 0;
	if (b) starpu_data_query_status(b->handle, (int)o->node, &allocated, &valid, NULL);
	if (b && !valid) fetch(o, b);
}

/* Another program has moved what rested on the GPU.  It comes back in the order in which units use it, while the first ones
 * run; what would leave without a use does not. */
static void bring_back(const struct slp_plan_offload *o)
{
	const struct slp_offload_problem *p = &o->problem;
	int *until = rests_until(p, &o->plan);
	for (int i = 0; until && i < p->nunits; i++)
		for (int k = 0; k < p->units[i].nuses; k++) {
			int v = p->units[i].uses[k].value;
			if (i < until[v]) fetch_if_away(o, v);
			until[v] = 0;
		}
	free(until);
}

enum sl_status slp_plan_offload_before(sl_plan *p, int unit)
{
	const struct slp_offload *plan = &p->offload->plan;
	if (unit == 0) wait_for(p, p->layout.nunits - 1);
	if (unit >= SLP_OFFLOAD_AHEAD) wait_for(p, unit - SLP_OFFLOAD_AHEAD);
	bool ok = true;
	for (int i = plan->first[unit]; i < plan->first[unit + 1] && ok; i++) ok = carry_out(p, plan->steps[i]);
	if (ok && unit == 0 && p->offload->behind) bring_back(p->offload);
	return ok ? SL_OK : sl_error();
}

#else

enum sl_status slp_plan_offload_before(sl_plan *p, int unit)
{
	(void)p, (void)unit;
	return SL_OK;
}

#endif
