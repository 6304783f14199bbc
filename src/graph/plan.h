/* Internals of plans: a graph partitioned into units, each unit's code, and the place of every value. */
#ifndef SLP_PLAN_H
#define SLP_PLAN_H

#include "graph/graph.h"
#include "graph/units.h"
#include "runtime/task/code.h"
#include "runtime/task/storage.h"

/* An attribute of a call that each run sets. */
struct slp_plan_fill {
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
	struct slp_plan_fill *fills;
	int nfills, max_fills;
	int ncalls;
};

struct sl_plan {
	sl_graph *graph;
	sl_device device, where; /* of its inputs and results; of its tasks */
	struct slp_layout layout;
	struct slp_unit *units;
	struct slp_storage **kept; /* by storage: kept from run to run; NULL: none is */
	bool *is_result;           /* by storage */
	int *last_unit;            /* by storage: that uses it; -1: none, or a result lies there */
	int max_slots, max_fills;
	int parts;     /* under a limit of memory, a unit of several operations takes one of so many */
	bool gpus;     /* it is on `auto`, and all of it runs on GPUs */
	bool callable; /* sl_plan_call may compute it in the calling thread */
	bool light;    /* the same, with one thread: it does little */
	/* For that: the values of constants, by node, once they are read; the output that lies alone in a storage, by storage,
	 * -1: none. */
	atomic_bool read;
	char **constants;
	int *direct;
	bool changes; /* it writes tensors that are bound: parameters, statistics */
	/* Of each output, while the plan is made: the tensor that the use of its group changes in main memory; NULL: none. */
	sl_tensor *const *changed;
	struct slp_hoisted *hoisted;      /* NULL: nothing is */
	struct slp_plan_offload *offload; /* its copies under a limit of memory; NULL: there is none */
	struct slp_grouping *grouping;    /* of its outputs (plan_groups.h); NULL: none */
	struct sl_plan_info info;
};

/* hoist.c: moves the computation of values that depend on parameters alone to a separate program, which runs before a
 * run of the plan if parameters were written since. */
enum sl_status slp_hoist(sl_plan *plan, const char *at);
enum sl_status slp_hoisted_refresh(const char *at, sl_plan *plan);
void slp_hoisted_free(struct slp_hoisted *h);

/* plan_offload.c: copies under a limit of memory on the plan's GPU, in bytes: planned when it is compiled; the memory for
 * the plan that is kept (commit); requested at each run, before each unit is submitted.  Locked, all but the first three. */
enum sl_status slp_plan_offload(sl_plan *plan, const char *at, size_t limit);
enum sl_status slp_plan_offload_commit(sl_plan *plan, const char *at);
bool slp_plan_offload_grows(const sl_plan *plan);     /* what its units work in does not fit beside other programs' */
double slp_plan_offload_exposed(const sl_plan *plan); /* seconds of a run in which operations wait for copies */
double slp_plan_link(const sl_plan *plan);            /* bytes a second between its GPU and main memory */
void slp_plan_offload_free(struct slp_plan_offload *offload);
enum sl_status slp_plan_offload_begin(sl_plan *plan, const char *at, struct slp_storage *const *storages,
                                      sl_tensor *const *in);
enum sl_status slp_plan_offload_before(sl_plan *plan, int unit);
/* The last unit before which a value leaves; the last one of all if it does not leave, 0 if it is small. */
int slp_plan_offload_left(const sl_plan *plan, struct slp_location location);

/* plan_groups.c, while the plan is made.  Whether the use of a group changes the storage in main memory, from where it comes in
 * each run; whether storage i of a run has results of groups alone, which are used in main memory. */
bool slp_plan_changes(const sl_plan *plan, const struct slp_storage *storage);
bool slp_plan_sends(const sl_plan *plan, int i);

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
/* The same, with groups of outputs (struct slp_layout); changed: NULL, or of each output the tensor that the use of its group
 * changes, or NULL (plan_groups.h). */
sl_plan *slp_plan_new_grouped(const char *at, const char *what, sl_graph *graph, struct sl_compile_opts opts,
                              const int *group, sl_tensor *const *changed);

/* plan_numbers.c */
/* Another value for all attributes of a name, in one run. */
struct slp_setting {
	const char *name;
	uint64_t bits;
};
enum { SLP_PLAN_NUMBERS = 3 }; /* that exist: lr, rescale, step */
/* The numbers of a call as settings; false with an error that names the function. */
bool slp_plan_numbers(const char *at, const char *function, const sl_plan *plan, const struct sl_plan_number *numbers,
                      int count, struct slp_setting settings[SLP_PLAN_NUMBERS]);
/* The attributes of a unit's calls that a run sets, in the order of the calls: their number. */
int slp_plan_fill(const struct slp_unit *unit, const struct slp_rng *rng, const struct slp_setting *settings,
                  int nsettings, struct slp_patch *patches);

/* plan_traced.c: while a trace is recorded, names the values of a run by the operations that make them. */
void slp_plan_name_values(const sl_plan *plan, struct slp_storage *const *storages);

/* plan_callable.c */
/* Finds out whether it may be computed in the calling thread, once it has its code. */
enum sl_status slp_plan_find_callable(sl_plan *plan);
void slp_plan_free_callable(sl_plan *plan);
/* Before its first call; any thread. */
enum sl_status slp_plan_read_constants(sl_plan *plan);

/* plan_run.c */
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
