/* Plans from the inside: a graph partitioned into units, each unit's code, and where every value lies. */
#ifndef SLP_PLAN_H
#define SLP_PLAN_H

#include "graph/graph.h"
#include "runtime/task/storage.h"
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
	const int *
	        group; /* of each output of the program: those of a group lie side by side in one storage where one unit
			      * computes them, and a unit ends where a group is complete; -1: none.  NULL: there are none */
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
/* partition.c: units of nodes, for so many workers to share; of several nodes, none uses more than so many bytes (0: any
 * number). false without memory. */
bool slp_partition(const sl_graph *g, int workers, size_t most, struct slp_layout *layout);
/* fit.c: whether each unit has room on the plan's device, beside others'; and what units may use so that it has. */
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

/* ---- the plan ---------------------------------------------------------------------------------------------------- */

/* An attribute of a call that each run sets. */
struct slp_fill {
	int call;
	unsigned offset;
	enum { SLP_FILL_SEED, SLP_FILL_STREAM, SLP_FILL_SETTING } kind;
	uint64_t stream;  /* within the run */
	const char *name; /* of the setting */
};

/* A part of the program that becomes one task at each run. */
struct slp_unit {
	struct slp_code *code;
	struct slp_location *locations; /* of each slot */
	int nslots, max_slots;
	struct slp_fill *fills;
	int nfills, max_fills;
	int ncalls;
};

struct sl_plan {
	sl_graph *graph;
	sl_device device;
	struct slp_layout layout;
	struct slp_unit *units;
	struct slp_storage **kept; /* by storage: kept from run to run; NULL: none is */
	bool *is_result;           /* by storage */
	int *last_unit;            /* by storage: that uses it; -1: none, or a result lies there */
	int max_slots, max_fills;
	bool changes;                /* it writes tensors that are bound: parameters, statistics */
	struct slp_hoisted *hoisted; /* NULL: nothing is */
	struct sl_plan_info info;
};

/* hoist.c: moves the computation of values that depend on parameters alone into a program of its own, which runs after
 * parameters were written, before a run of the plan. */
enum sl_status slp_hoist(sl_plan *plan, const char *at);
enum sl_status slp_hoisted_refresh(const char *at, sl_plan *plan);
void slp_hoisted_free(struct slp_hoisted *h);

/* plan_code.c: makes the code of the units that the graph is partitioned into. */
enum sl_status slp_plan_code(sl_plan *plan, const char *at, const char *what);

/* critical_path.c */
/* Seconds from the beginning of each unit to the end of the program; false without memory. */
bool slp_critical_paths(const sl_plan *plan, double *paths);
enum sl_status slp_plan_set_levels(sl_plan *plan); /* of its units' tasks, by these */

/* plan.c */
enum sl_status slp_plan_no_memory(void);
/* Compiles the graph, which it takes over, for the types of its inputs. what: names it in messages. */
sl_plan *slp_plan_new(const char *at, const char *what, sl_graph *graph, struct sl_compile_opts opts);
/* The same, with groups of outputs (struct slp_layout). */
sl_plan *slp_plan_new_grouped(const char *at, const char *what, sl_graph *graph, struct sl_compile_opts opts,
                              const int *group);

/* plan_run.c */
/* Another value for all attributes of a name, in one run. */
struct slp_setting {
	const char *name;
	uint64_t bits;
};
/* rng: the first random stream of the run; seed SLP_RNG_VIRTUAL: takes new ones and returns which. NULL: new ones. */
enum sl_status slp_plan_run(const char *at, sl_plan *plan, sl_tensor *const *in, int nin,
                            const struct slp_setting *settings, int nsettings, struct slp_rng *rng, sl_tensor **out);
/* The memory of a run, the part that lives as long as its results, and the largest scratch memory of a unit. */
struct slp_plan_bytes {
	size_t run, results, scratch;
} slp_plan_bytes(const sl_plan *plan);
/* Keeps the memory of values between units from run to run. */
void slp_plan_keep_memory(sl_plan *plan);

#endif
