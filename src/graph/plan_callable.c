/* Which plans may be computed in the calling thread (plan_call.c), and what that needs: the values of their constants, and
 * which results can be computed where the caller wants them. */
#include <pthread.h>
#include <stdlib.h>

#include "graph/plan.h"
#include "runtime/engine.h"
#include "runtime/forked.h"
#include "runtime/observe/fxt.h"
#include "runtime/observe/layers.h"
#include "runtime/observe/watch.h"
#include "runtime/task/record.h"
#include "runtime/uncancelled.h"
#include "tensor/own.h"
#include "tensor/tensor.h"

/* One thread computes as much in some tens of microseconds, as long as waiting for a task may take. */
static const double most_flops = 1e6, most_bytes = 1 << 20;
/* Of constants, which the plan has a second time. */
static const size_t most_constants = 4 << 20;

static bool is_on_cpu(const sl_plan *p)
{
	return p->where.kind == SL_DEVICE_CPU || (p->where.kind == SL_DEVICE_AUTO && !slp_engine.ngpus);
}

/* Values come from inputs and constants alone, so they are the same in each run.  A program's own operation may call functions
 * that wait. */
static bool is_plain(const sl_plan *p)
{
	size_t constants = 0;
	if (p->hoisted || p->offload || p->grouping || p->graph->nrandom) return false;
	for (int i = 0; i < p->graph->count; i++) {
		const struct slp_gnode *n = &p->graph->nodes[i];
		if (n->kind == SLP_NODE_PARAM || (n->op && slp_op_is_own(n->op))) return false;
		if (n->kind == SLP_NODE_CONST) constants += slp_type_bytes(&n->types[0]);
	}
	return constants <= most_constants;
}

static bool is_light(const sl_plan *p)
{
	double flops = 0, bytes = 0;
	for (int i = 0; i < p->layout.nunits; i++) slp_code_work(p->units[i].code, &flops, &bytes);
	return flops <= most_flops && bytes <= most_bytes;
}

static enum sl_status read_constant(sl_plan *p, int node)
{
	const struct slp_gnode *n = &p->graph->nodes[node];
	size_t bytes = slp_type_bytes(&n->types[0]);
	char **values = &p->constants[node];
	if (!*values) *values = slp_try_aligned_alloc(64, slp_align(bytes ? bytes : 1, 64));
	if (!*values) return slp_no_memory(bytes);
	return bytes ? sl_read_at(n->at, n->tensor, *values, bytes) : SL_OK;
}

static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
SLP_FORK_MUTEX(reading);

enum sl_status slp_plan_read_constants(sl_plan *p)
{
	enum sl_status s = SL_OK;
	if (atomic_load_explicit(&p->read, memory_order_acquire)) return SL_OK;
	SLP_UNCANCELLED(); /* it would stay locked */
	pthread_mutex_lock(&reading);
	bool read = atomic_load_explicit(&p->read, memory_order_relaxed);
	for (int i = 0; !read && s == SL_OK && i < p->graph->count; i++)
		if (p->graph->nodes[i].kind == SLP_NODE_CONST) s = read_constant(p, i);
	if (s == SL_OK) atomic_store_explicit(&p->read, true, memory_order_release);
	pthread_mutex_unlock(&reading);
	return s;
}

/* The output that fills storage i, if it alone lies there. */
static int alone_in(const sl_plan *p, int storage)
{
	const struct slp_layout *l = &p->layout;
	int found = -1;
	for (int i = 0; i < p->graph->noutputs; i++) {
		struct slp_value v = p->graph->outputs[i];
		struct slp_location location = l->location[l->root[slp_value_id(v)]];
		if (location.kind != SLP_LOCATION_STORAGE || location.index != storage || found >= 0) continue;
		if (location.offset || slp_type_bytes(slp_value_type(p->graph, v)) < l->storages[storage]) return -1;
		found = i;
	}
	return found;
}

enum sl_status slp_plan_find_callable(sl_plan *p)
{
	if (!is_on_cpu(p) || sl_is_simulated() || !is_plain(p)) return SL_OK;
	p->constants = slp_calloc((size_t)p->graph->count + 1, sizeof *p->constants);
	p->direct = slp_calloc((size_t)p->layout.nstorages + 1, sizeof *p->direct);
	if (!p->constants || !p->direct) return SL_ENOMEM;
	for (int i = 0; i < p->layout.nstorages; i++) p->direct[i] = alone_in(p, i);
	p->callable = true;
	p->light = is_light(p);
	return SL_OK;
}

void slp_plan_free_callable(sl_plan *p)
{
	for (int i = 0; p->constants && i < p->graph->count; i++) free(p->constants[i]);
	free(p->constants);
	free(p->direct);
}

/* Nobody looks at tasks: there will be none. */
static bool is_unobserved(void)
{
	return !slp_engine.nslaves && !slp_engine.config.explain && !slp_fxt_on && slp_watch_deadline <= 0 &&
	       !atomic_load_explicit(&slp_profile_on, memory_order_relaxed);
}

/* Whether sl_plan_call computes the plan: on a CPU, all of its values come from its inputs and constants, it draws no random
 * numbers, and nobody looks at tasks: no trace, profile, explanation or watchdog, no simulation, no other processes of StarPU. */
bool sl_plan_may_call(const sl_plan *plan)
{
	return plan && plan->callable && is_unobserved();
}

/* The same for a plan that does so little that one thread computes it in less time than waiting for a task takes. */
bool sl_plan_is_small(const sl_plan *plan)
{
	return plan && plan->light && is_unobserved();
}
