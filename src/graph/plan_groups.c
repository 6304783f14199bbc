/* Groups of a plan's outputs: when each may be used, and the memory that they share.
 *
 * The gradients of a step whose optimiser works in main memory leave the GPU group by group.  A group's memory is taken
 * again by the next but one: StarPU makes its writer wait for the readers of the previous contents, so two groups of
 * similar size take the memory of all.  Under a limit of memory the plan of copies gives gradients their places instead, and
 * has them and the parameters leave; a group is used when they have left. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"
#include "graph/plan_groups.h"
#include "runtime/engine.h"
#include "runtime/fault.h"
#include "runtime/task/buffer.h"

/* ---- when ---------------------------------------------------------------------------------------------------------- */

static int higher(int a, int b)
{
	return a > b ? a : b;
}

/* The last unit that uses a location; -1: none. */
static int last_user(const sl_plan *p, struct slp_location l)
{
	for (int unit = p->layout.nunits - 1; unit >= 0; unit--)
		for (int k = 0; k < p->units[unit].nslots; k++) {
			struct slp_location other = p->units[unit].locations[k];
			if (other.kind == l.kind && other.index == l.index) return unit;
		}
	return -1;
}

/* The last unit that reads the tensor's own memory; *node: as which, -1: none does. */
static int last_reader(const sl_plan *p, const sl_tensor *t, int *node)
{
	int unit = *node = -1;
	for (int i = 0; t && i < p->graph->count; i++) {
		if (p->graph->nodes[i].tensor != t) continue;
		unit = higher(unit, last_user(p, (struct slp_location){SLP_LOCATION_TENSOR, i, 0}));
		*node = i;
	}
	return unit;
}

static struct slp_location location_of(const sl_plan *p, int output)
{
	return p->layout.location[p->layout.root[slp_value_id(p->graph->outputs[output])]];
}

/* A group may be used once all of it is computed, and nothing later reads it or what its use changes. */
static void find_last(const sl_plan *p, struct slp_grouping *g, sl_tensor *const *changed)
{
	int n = p->graph->noutputs;
	for (int i = 0; i < n; i++) {
		int last = last_reader(p, changed[i], &g->param[i]);
		g->last[i] = higher(0, higher(last_user(p, location_of(p, i)), last));
	}
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			if (g->group[i] >= 0 && g->group[k] == g->group[i]) g->last[i] = higher(g->last[i], g->last[k]);
}

/* A storage that outputs of several groups share, or one of none, is ordinary memory. */
static void find_storages(const sl_plan *p, struct slp_grouping *g)
{
	enum { UNKNOWN = -2 };
	for (int i = 0; i < p->layout.nstorages; i++) g->inside[i] = UNKNOWN;
	for (int i = 0; i < p->graph->noutputs; i++) {
		struct slp_location l = location_of(p, i);
		if (l.kind != SLP_LOCATION_STORAGE) continue;
		int *inside = &g->inside[l.index];
		*inside = *inside == UNKNOWN || *inside == g->group[i] ? g->group[i] : -1;
	}
	for (int i = 0; i < p->layout.nstorages; i++)
		if (g->inside[i] == UNKNOWN) g->inside[i] = -1;
	for (int unit = p->layout.nunits - 1; unit >= 0; unit--)
		for (int k = 0; k < p->units[unit].nslots; k++)
			if (p->units[unit].locations[k].kind == SLP_LOCATION_STORAGE)
				g->first[p->units[unit].locations[k].index] = unit;
}

bool slp_plan_changes(const sl_plan *p, const struct slp_storage *storage)
{
	for (int i = 0; p->changed && i < p->graph->noutputs; i++)
		if (p->changed[i] && p->changed[i]->storage == storage) return true;
	return false;
}

bool slp_plan_sends(const sl_plan *p, int storage)
{
	bool grouped = false;
	for (int i = 0; p->changed && i < p->graph->noutputs; i++) {
		struct slp_location l = location_of(p, i);
		if (l.kind != SLP_LOCATION_STORAGE || l.index != storage) continue;
		if (p->layout.group[i] < 0) return false;
		grouped = true;
	}
	return grouped;
}

bool slp_plan_group(sl_plan *p, const int *group, sl_tensor *const *changed)
{
	size_t outputs = (size_t)p->graph->noutputs, storages = (size_t)p->layout.nstorages;
	struct slp_grouping *g = slp_calloc(1, sizeof *g + (4 * outputs + 2 * storages) * sizeof(int));
	if (!g) return false;
	g->group = (int *)(g + 1);
	g->last = g->group + outputs;
	g->param = g->last + outputs;
	g->when = g->param + outputs;
	g->inside = g->when + outputs;
	g->first = g->inside + storages;
	memcpy(g->group, group, outputs * sizeof *group);
	find_last(p, g, changed);
	memcpy(g->when, g->last, outputs * sizeof *g->when);
	find_storages(p, g);
	p->grouping = g;
	return true;
}

void slp_grouping_free(struct slp_grouping *g)
{
	free(g);
}

/* ---- memory -------------------------------------------------------------------------------------------------------- */

enum { ENOUGH = 2 }; /* one is computed while the other is used */

/* Whether it suits a group of that size, without much waste. */
static bool suits(const struct slp_group_slot *s, size_t bytes)
{
	return s->storage->bytes >= bytes && s->storage->bytes / 2 <= bytes;
}

/* The slot that was taken longest ago; NULL: a new one is better. */
static struct slp_group_slot *find(struct slp_group_memory *m, size_t bytes)
{
	struct slp_group_slot *best = NULL;
	int suitable = 0;
	for (int i = 0; i < m->count; i++) {
		struct slp_group_slot *s = &m->slots[i];
		if (!suits(s, bytes)) continue;
		suitable++;
		if (s->group < 0 && (!best || s->taken < best->taken)) best = s;
	}
	return best && best->run == m->run && suitable < ENOUGH ? NULL : best;
}

static struct slp_group_slot *make(struct slp_group_memory *m, size_t bytes, sl_device device)
{
	if (!slp_grow((void **)&m->slots, &m->most, m->count + 1, sizeof *m->slots)) return NULL;
	struct slp_storage *s = slp_storage_new(slp_buffer_class_bytes(bytes), device);
	if (!s) return NULL;
	m->slots[m->count] = (struct slp_group_slot){.storage = s, .group = -1};
	return &m->slots[m->count++];
}

struct slp_storage *slp_group_memory_take(struct slp_group_memory *m, int group, size_t bytes, sl_device device)
{
	struct slp_group_slot *s = find(m, bytes);
	if (!s && !(s = make(m, bytes, device))) return NULL;
	if (!slp_storage_allocate(s->storage)) return NULL;
	s->group = group;
	s->run = m->run;
	s->taken = ++m->taken;
	slp_storage_retain(s->storage);
	return s->storage;
}

void slp_group_memory_used(struct slp_group_memory *m, int group)
{
	for (int i = 0; i < m->count; i++)
		if (m->slots[i].group == group) m->slots[i].group = -1;
}

/* Memory does not survive the engine; a run that failed leaves groups unused. */
void slp_group_memory_begin(struct slp_group_memory *m)
{
	for (int i = m->count; i-- > 0;) {
		m->slots[i].group = -1;
		if (m->slots[i].storage->generation == slp_engine.generation) continue;
		slp_storage_release(m->slots[i].storage);
		m->slots[i] = m->slots[--m->count];
	}
	m->run++;
}

void slp_group_memory_clear(struct slp_group_memory *m)
{
	for (int i = 0; i < m->count; i++) slp_storage_release(m->slots[i].storage);
	free(m->slots);
	*m = (struct slp_group_memory){0};
}
