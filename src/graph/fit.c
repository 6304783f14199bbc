/* Checks that each unit of a plan fits on its device: work that needs more than a GPU's memory must not be one task. */
#include <stdlib.h>
#include <string.h>

#include "graph/plan.h"
#include "graph/units.h"
#include "runtime/memory/admission.h"
#include "runtime/task/buffer.h"

/* Bytes that a unit takes while it runs, as admission.c counts them: all its values, and the largest scratch memory of
 * its calls. */
struct need {
	size_t values, scratch, work;
};

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t work_of(const sl_graph *g, const struct slp_gnode *n)
{
	struct slp_infer call;
	if (!slp_node_call(g, n, &call)) return 0;
	size_t bytes = slp_call_scratch(&call);
	slp_call_free(&call);
	return bytes;
}

static void add_node(const sl_graph *g, const struct slp_layout *l, int node, struct need *need, int *seen)
{
	const struct slp_gnode *n = &g->nodes[node];
	for (int i = 0; i < n->nin + n->nout; i++) {
		struct slp_value v = i < n->nin ? n->in[i] : (struct slp_value){node, i - n->nin};
		int root = l->root[slp_value_id(v)];
		size_t bytes = slp_type_bytes(slp_value_type(g, v));
		if (l->location[root].kind == SLP_LOCATION_SCRATCH)
			need->scratch = larger(need->scratch, l->location[root].offset + bytes);
		else if (seen[root] != l->unit[node]) need->values += slp_buffer_class_bytes(bytes);
		seen[root] = l->unit[node];
	}
	need->work = larger(need->work, work_of(g, n));
}

static size_t sum(const struct need *n)
{
	return n->values + slp_scratch_bytes(n->scratch, n->work);
}

bool slp_units_fit(const sl_graph *g, const struct slp_layout *l)
{
	size_t room = slp_admission_room(g->device), values = (size_t)g->count * SLP_MAX_OUTPUTS + 1, most = 0;
	if (!room) return true;
	struct need *need = slp_calloc((size_t)l->nunits + 1, sizeof *need);
	int *seen = slp_malloc(values * sizeof *seen);
	if (seen) memset(seen, 0xff, values * sizeof *seen);
	for (int i = 0; need && seen && i < g->count; i++)
		if (l->unit[i] >= 0) add_node(g, l, i, &need[l->unit[i]], seen);
	for (int i = 0; need && seen && i < l->nunits; i++) most = larger(most, sum(&need[i]));
	free(need);
	free(seen);
	return most <= room / 4 * 3;
}

/* While one unit runs, the operands of the next arrive and the results of the previous one leave. */
size_t slp_unit_share(sl_device device)
{
	return slp_admission_room(device) / 4;
}
