/* What a trace calls the values of a program whose copies are planned: parameters by their names, others by the operations
 * that make them.  Memory that other values take over keeps the name of the first one. */
#include <stdio.h>
#include <string.h>

#include "graph/plan.h"
#include "graph/units.h"
#include "runtime/compat.h"
#include "runtime/engine.h"
#include "runtime/observe/fxt.h"
#include "runtime/task/buffer.h"
#include "runtime/task/storage.h"
#include "tensor/tensor.h"

/* "net0/dense1/tanh3" */
static void name_storage(const struct slp_storage *s, const struct slp_gnode *n)
{
	char name[192];
	const char *block = n->at ? slp_fxt_block_path(n->at) : "";
	int length = (int)strcspn(block, "]");
	if (!s || !s->buffer || s->generation != slp_engine.generation) return;
	snprintf(name, sizeof name, "%.*s%s%s", length, block, length ? "/" : "", n->name);
	starpu_data_set_name(s->buffer->handle, name);
}

void slp_plan_name_values(const sl_plan *p, struct slp_storage *const *storages)
{
	if (!slp_fxt_on) return;
	for (int i = p->graph->count; i-- > 0;) {
		const struct slp_gnode *n = &p->graph->nodes[i];
		if (n->tensor) name_storage(n->tensor->storage, n);
		for (int k = 0; k < n->nout; k++) {
			int value = slp_value_id((struct slp_value){i, k});
			struct slp_location l = p->layout.location[value];
			if (p->layout.root[value] == value && l.kind == SLP_LOCATION_STORAGE)
				name_storage(storages[l.index], n);
		}
	}
}
