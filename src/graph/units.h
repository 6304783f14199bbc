/* Units of a graph and the memory of its values, computed by partition.c, fit.c and memory_plan.c before there is
 * a plan. */
#ifndef SLP_UNITS_H
#define SLP_UNITS_H

#include "graph/graph.h"
#include "op.h"
#include "starling/graph.h"

/* The location of a value while the plan runs. */
enum slp_location_kind {
	SLP_LOCATION_NONE,    /* no value: an operation without results */
	SLP_LOCATION_INPUT,   /* index: among the inputs */
	SLP_LOCATION_TENSOR,  /* index: the node of the parameter or constant */
	SLP_LOCATION_STORAGE, /* index: among the storages of a run (results, values between units); offset */
	SLP_LOCATION_SCRATCH, /* offset in the unit's scratch */
};
struct slp_location {
	enum slp_location_kind kind;
	int index;
	size_t offset;
};

/* All arrays by value id, but where said otherwise. */
struct slp_layout {
	/* Of each output of the program: the number of its group, -1 for none; NULL: there are no groups.  Outputs of a group
	 * lie side by side in one storage if one unit computes them, and a unit ends where a group is complete. */
	const int *group;
	bool limited; /* memory is short: results take the place of dead arguments in storages, too */
	int nunits;
	double *seconds;               /* of each unit, roughly */
	int *unit;                     /* of each node; -1: runs nowhere (inputs, parameters, views) */
	int *root;                     /* the value whose memory this one is: itself, but for views */
	struct slp_location *location; /* of roots */
	size_t *storages;              /* bytes of each storage of a run */
	int nstorages;
	size_t planned, unplanned; /* bytes of intermediates: at the peak, and the sum without sharing */
};

enum { SLP_PARTITION_EACH = 0 }; /* instead of a number of workers: every node is a unit */
/* partition.c: partitions nodes into units, for `workers` workers; a unit of several nodes uses at most `most` bytes
 * (0: no limit).  False without memory. */
double slp_graph_width(const sl_graph *g);
bool slp_partition(const sl_graph *g, int workers, size_t most, struct slp_layout *layout);
/* fit.c: checks that each unit fits on the plan's device, beside others; and returns the limit for units that makes it
 * so. */
bool slp_units_fit(const sl_graph *g, const struct slp_layout *layout);
size_t slp_unit_share(sl_device device);
/* memory_plan.c: whether all values one after another could be addressed: then no offset, no sum and nothing that kernels
 * work in, a few times as much, overflows.  Tensors of the given shapes need not exist. */
bool slp_plan_can_be(const sl_graph *g);
/* Locations of values. */
bool slp_plan_memory(const sl_graph *g, bool reuse, struct slp_layout *layout);
void slp_layout_clear(struct slp_layout *layout);
static inline size_t slp_type_bytes(const struct slp_type *t)
{
	return (size_t)sl_shape_size(t->shape) * sl_dtype_size(t->dtype);
}

#endif
