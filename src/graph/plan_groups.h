/* Runs of plans whose outputs are used group by group, while the rest of the program is still to be submitted: the memory
 * of a group is used again for a later one (plan_groups.c). */
#ifndef SLP_PLAN_GROUPS_H
#define SLP_PLAN_GROUPS_H

#include "graph/graph.h"
#include "runtime/task/storage.h"

/* The groups of a plan's outputs. */
struct slp_grouping {
	int *group;  /* of each output; -1: none */
	int *last;   /* of each output: the last unit before its group may be used */
	int *when;   /* of each output: the unit after which its group is used, not before `last` */
	int *param;  /* of each output: the node of the tensor that the use of its group changes; -1: none */
	int *inside; /* of each storage of a run: its group; -1: none */
	int *first;  /* of each storage: the first unit that uses it */
};

/* Memory for groups, kept from run to run.  Those that run on one device share it. */
struct slp_group_memory {
	struct slp_group_slot {
		struct slp_storage *storage; /* held */
		int group;                   /* that has it now; -1: none */
		uint64_t run, taken;         /* when it was taken last: the run, and the order in it */
	} * slots;
	int count, most;
	uint64_t run, taken;
};

/* What a run does with each group. */
struct slp_plan_groups {
	struct slp_group_memory *memory;
	/* Submits the uses of a group: out[i] is output i if it belongs to the group, else NULL, and belongs to the
	 * innermost scope.  False after an error. */
	bool (*use)(void *context, int group, sl_tensor *const *out);
	void *context;
};

/* Output i belongs to group[i] (-1: none), and its group must not be used before the last unit that reads changed[i]
 * (NULL: nothing), which the use changes.  False without memory. */
bool slp_plan_group(sl_plan *plan, const int *group, sl_tensor *const *changed);
void slp_grouping_free(struct slp_grouping *g);
void slp_group_memory_clear(struct slp_group_memory *m);
void slp_group_memory_begin(struct slp_group_memory *m); /* before a run */
/* With the engine locked: a storage for results of the group, held for the caller, NULL without memory; the uses of the
 * group have been submitted. */
struct slp_storage *slp_group_memory_take(struct slp_group_memory *m, int group, size_t bytes, sl_device device);
void slp_group_memory_used(struct slp_group_memory *m, int group);
/* slp_plan_run with groups, whose outputs it does not return (NULL). */
enum sl_status slp_plan_run_groups(const char *at, sl_plan *plan, sl_tensor *const *in, int nin,
                                   const struct slp_plan_groups *groups, sl_tensor **out);

#endif
