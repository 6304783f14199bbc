/* Blocks and parameters from the inside. */
#ifndef SLP_NN_H
#define SLP_NN_H

#include "graph/graph.h"
#include "runtime/guard.h"
#include "starling/nn.h"

struct slp_hybrid; /* plans of a hybridised block (hybrid.c) */

struct sl_param {
	sl_block *block;
	const char *name;        /* within the block: "weight" */
	char *_Atomic full_name; /* with the block's name before it: "dense0_weight" */
	sl_shape shape;          /* -1: not known yet */
	struct sl_param_opts opts;
	sl_tensor *_Atomic data; /* with a gradient attached unless opts.no_grad; NULL: not initialised */
	struct sl_initializer init;
	enum sl_dtype dtype;        /* as initialised */
	atomic_bool waiting;        /* to be initialised once its shape is known */
	atomic_bool frozen;         /* by sl_freeze: no gradient is wanted */
	char *shared;               /* its path, if its first values are to be those of rank 0; NULL: its own */
	bool statistics;            /* gathered over many batches: float32 where the others are of a half type */
	sl_device *_Atomic devices; /* that may use it; NULL: any */
	atomic_int ndevices;
	int most_devices;   /* of all lists so far: each is as long */
	atomic_int gather;  /* gradients of so many backward passes in turn are added */
	sl_tensor **spares; /* what shards after the first write instead of it; NULL: not made yet */
	int nspares;
};

/* Other threads read it while one changes it (slp_tree_lock): lists and names are replaced, and freed later (gate.h). */
struct slp_block {
	atomic_int refs;
	char *type;                 /* "Dense" */
	char *_Atomic name;         /* "dense0": type and a number, or the prefix without its last "_" */
	char *_Atomic prefix;       /* what names of parameters begin with: "dense0_" */
	bool layer;                 /* the library's: its operations are named after it alone */
	sl_block **_Atomic parents; /* not held; one for each place that it has in a block */
	atomic_int nparents;
	sl_block **_Atomic children;
	char **_Atomic child_names; /* "hidden", or the place: "0" */
	atomic_int nchildren;
	sl_param **_Atomic params; /* its own */
	atomic_int nparams;
	struct slp_hybrid *_Atomic hybrid; /* NULL: imperative */
	atomic_uint changes;               /* of it and what it holds, which programs have to follow */
	struct slp_hook *_Atomic hook;     /* called after each forward; NULL: none */
	bool synchronised;                 /* needs all shards of a batch together in training */
	bool recompute;                    /* its inside is computed again in the backward pass */
};

struct slp_hook {
	sl_hook *call;
	void *context;
};

/* Around changes of blocks, and walks from block to block that are not a forward: no function of the program's is called
 * in between. */
void slp_tree_lock(void);
void slp_tree_unlock(void);
static inline void slp_tree_leave(const char *unused)
{
	(void)unused;
	slp_tree_unlock();
}
#define SLP_TREE()                                                                                                     \
	__attribute__((cleanup(slp_tree_leave), unused)) const char slp_tree_ = 0;                                     \
	slp_tree_lock()
/* A new list with one more item; NULL without memory. */
void **slp_list_with(void **list, int count, void *item);

/* block.c */
/* As sl_block_init, with the word that names begin with ("conv" of a Conv2D). */
enum sl_status slp_block_setup(const char *at, sl_block *block, const char *type, const char *word,
                               sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int), void (*destroy)(sl_block *));
/* A layer of `size` bytes, all zero but for its base; NULL with an error recorded. */
void *slp_layer_new(const char *at, size_t size, const char *type, const char *word,
                    sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int));
/* What a block returns: without a holder, in the innermost scope. */
struct slp_results {
	int count;
	sl_tensor *t[SL_MAX_RESULTS];
};
/* ranks.c: before a forward pass of the block that may be recorded; false after an error. */
extern bool (*slp_before_recording)(const char *at, sl_block *block);
/* Runs forward itself, whether the block is hybridised or not; false after an error. */
bool slp_block_results(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results);
/* The same without a look at whether the block is recomputed, and without its hook. */
bool slp_block_run(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results);
sl_tensor *slp_block_forward(const char *at, sl_block *block, sl_tensor *const *in, int nin); /* the first of them */
/* Where the program called the block whose forward runs: what layers pass on to operations. */
const char *slp_forward_call_site(void);
/* Changes it; returns what it was. */
const char *slp_forward_call_site_set(const char *at);
/* The one input of a layer; NULL with an error recorded if there are others. */
sl_tensor *slp_layer_input(sl_block *layer, sl_tensor *const *in, int nin);
/* The activation of a layer's result, if it has one. */
sl_tensor *slp_layer_activate(sl_tensor *y, enum sl_activation activation);

/* cached.c */
/* Whether sl_cache_forward runs on this thread; the number of its cache, 0: none; whether it runs this block. */
bool slp_cache_is_on(void);
uint64_t slp_cache_number(void);
bool slp_cache_is_of(const sl_block *block);
/* The forward of a block begins. */
void slp_cache_enter(const sl_block *block);
/* What a layer's queries, (rows, heads, steps, width), find among the keys that are kept for it, which k and v join. */
sl_tensor *slp_cache_attend(const char *at, const sl_block *layer, sl_tensor *q, sl_tensor *k, sl_tensor *v);
/* The n rows of a layer's table that belong to the next steps. */
sl_tensor *slp_cache_rows(const char *at, const sl_block *layer, sl_tensor *table, int64_t n);
/* Whether a cache is on, for a layer that cannot go on step by step; an error is recorded then. */
bool slp_cache_refuses(const char *at, const sl_block *layer, const char *why);

/* recompute.c */
/* slp_block_run, recorded as a part that the backward pass repeats. */
bool slp_block_recomputed(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results);
/* Whether this thread repeats a block. */
extern _Thread_local bool slp_repeating;

/* forward_shards.c */
/* A block inside (or the block itself) that needs all shards together in training; NULL: none. */
const sl_block *slp_block_synchronised(const sl_block *block);
/* What this thread traces is a whole batch: synchronised layers have nothing to wait for. */
extern _Thread_local bool slp_batch_is_whole;

/* batch_statistics.c */
/* What this thread's shards are is the whole batch, though there are several processes. */
extern _Thread_local bool slp_batch_is_local;
/* Mean (row 0) and biased variance (row 1) of each channel over n shards of a batch, and those of the other processes;
 * stats gets them for each shard, on its device, through which gradients go back.  layer: for messages.  NULL after an
 * error. */
sl_tensor *slp_batch_statistics(const char *at, const char *layer, int n, sl_tensor *const *x, sl_tensor **stats);

/* tree.c */
void slp_block_changed(sl_block *block);                 /* drops the plans of it and of all around it */
void slp_block_leave(sl_block *parent, sl_block *child); /* the child forgets one place that it had there */
/* All parameters, children's after its own, in order, each once; *count of them.  malloc'd; NULL with an error
 * recorded. */
sl_param **slp_block_all_params(const char *at, sl_block *block, int *count);
/* "hidden.weight": the way from the block to a parameter of it; malloc'd, NULL without memory or a way. */
char *slp_param_path(const sl_block *block, const sl_param *param);

/* param.c */
/* Around what gives parameters values, or other ones. */
void slp_params_lock(void);
void slp_params_unlock(void);
static inline bool slp_shape_known(sl_shape shape)
{
	for (int i = 0; i < shape.ndim; i++)
		if (shape.dim[i] < 0) return false;
	return shape.ndim >= 0;
}
/* ranks.c: a parameter that waited for its shape has values; false after an error. */
extern bool (*slp_param_filled)(const char *at, sl_param *param);
/* Gives values to a parameter whose shape is complete, by its initialiser. */
enum sl_status slp_param_materialize(const char *at, sl_param *param);
void slp_param_free(sl_param *param);
/* Gives parameters names with another prefix, all or none; false without memory. */
bool slp_params_prefix(sl_param *const *params, int n, const char *prefix);
/* Whether the parameter may be used on a device; records an error if not. */
bool slp_param_allows(const char *at, const char *function, const sl_param *param, sl_device device);

/* The shard that this thread computes; sl_step_run_shards counts them. */
extern _Thread_local int slp_shard;
/* As sl_param_use, for what forward writes in training (running statistics): shards after the first get a tensor of
 * their own, whose values are never read, so that none waits for another. */
sl_tensor *slp_param_use_written(const char *at, sl_param *param, sl_tensor *x);

/* init.c */
static inline struct sl_initializer slp_init_or(struct sl_initializer init, struct sl_initializer otherwise)
{
	return init.kind != SL_INIT_DEFAULT ? init : otherwise;
}
/* New values by an initialiser; in the innermost scope. */
sl_tensor *slp_init_values(const char *at, const sl_param *param, const struct sl_initializer *init, sl_device device);

/* summary.c */
/* Marks what follows as part of a block's forward while sl_summary looks; false: it does not look. */
bool slp_summary_enter(sl_block *block);
void slp_summary_leave(sl_tensor *result);
bool slp_summary_looks(void);

/* hybrid.c */
/* Runs the plan for these inputs, compiling it first if it is new; false after an error.  Sets *eager if the block is
 * to run imperatively. */
bool slp_hybrid_call(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results,
                     bool *eager);
void slp_hybrid_drop_plans(struct slp_hybrid *hybrid);
void slp_hybrid_drop_cache(struct slp_hybrid *hybrid, uint64_t cache); /* those that were made for it; NULL: none */
void slp_hybrid_free(struct slp_hybrid *hybrid);

/* buckets.c */
/* How many bytes of parameters a bucket has, about. */
double slp_bucket_bytes(sl_param *const *params, int count);
/* Chooses where each parameter is updated and in which bucket.  With `together`, or if one has no values yet, all of
 * them where they are (DEFAULT) and in no bucket.  ranks, if not NULL: parameters of a bucket have the same. */
void slp_buckets_assign(sl_param *const *params, int count, bool together, const int *ranks, sl_device *owners,
                        int *bucket);
/* All that lies in the memory of parameter i, as one vector, if that is nothing but parameters of a bucket; else its
 * values. */
sl_tensor *slp_bucket_memory(sl_param *const *params, int count, int i);
/* Brings the parameters of each bucket into one memory, if nothing else holds theirs, on its owner, and has new
 * values sent to all their devices.  False after an error. */
bool slp_buckets_gather(const char *at, sl_param *const *params, int count, const sl_device *owners, const int *bucket);

/* groups.c */
/* Whether a pattern is that of a parameter's path from the block; -1 without memory, an error is recorded. */
int slp_param_matches(const char *at, const sl_block *block, const sl_param *param, const char *pattern);
/* Counts what programs of whole steps do not follow by themselves: changes of the network and of the trainer's
 * groups. */
unsigned slp_trainer_changes(const sl_trainer *trainer);

/* accumulate.c */
/* Adds the gradients of a micro-batch of so many rows to the sums; the number of them that are in, -1 after an
 * error. */
int slp_trainer_gather(const char *at, sl_trainer *trainer, sl_tensor *const *grads, int64_t rows);
int slp_trainer_gathered(const sl_trainer *trainer, int64_t *rows);
/* Goes on where so many are in; 0: all sums are dropped. */
void slp_trainer_set_gathered(sl_trainer *trainer, int count, int64_t rows);
/* The sum of parameter i; NULL: none. */
sl_tensor *slp_trainer_sum(const sl_trainer *trainer, int i);

/* averages.c */
/* Whether averages stand in for the parameters; and with an error, if so. */
bool slp_trainer_stands_in(const sl_trainer *trainer);
bool slp_trainer_is_averaged(const char *at, const char *function, const sl_trainer *trainer);
/* Whether the trainer has all parameters of its block; SL_ESTATE: some came into being after it was made. */
bool slp_trainer_has_all(const char *at, const char *function, sl_trainer *trainer);

/* scaling.c */
bool slp_trainer_scales(const sl_trainer *trainer);
/* Whether these can be figures of loss scaling; and sets them, false after an error. */
bool slp_scaling_fits(double now, int64_t good, int64_t overflows);
bool slp_scaling_set(const char *at, sl_trainer *trainer, double now, int64_t good, int64_t overflows);
void slp_scaling_get(const sl_trainer *trainer, double *now, int64_t *good, int64_t *overflows);
/* The scale, for programs of whole steps: a scalar whose value follows. */
sl_tensor *slp_scaling_symbol(const char *at, sl_trainer *trainer);
/* slp_trainer_update by gradients scaled by this factor, and counts the step; skips it if they overflowed. */
enum sl_status slp_trainer_apply(const char *at, sl_trainer *trainer, sl_tensor *const *params, sl_tensor *const *grads,
                                 int64_t divisor, double scale);

/* trainer.c */
/* The parameters that are to change, with their gradients, summed over processes; NULL where they are not.  *scale:
 * what sl_backward scaled them by. */
bool slp_trainer_fresh(const char *at, sl_trainer *trainer, int64_t rows, bool ignore_stale, sl_tensor **params,
                       sl_tensor **grads, double *scale);
/* The gradients were used. */
void slp_trainer_used(const sl_trainer *trainer);
struct slp_hyper { /* what changes from step to step */
	double lr, rescale;
	int64_t step;
};
/* Whether no gradient is wanted: sl_attach_grad with SL_GRAD_NONE. */
bool slp_param_is_frozen(const sl_param *param);
/* update.c */
/* Updates params[i] by grads[i], all symbols or all concrete (NULL: not); the optimiser's state belongs to the trainer,
 * by the parameters' order in the block. */
enum sl_status slp_trainer_update(const char *at, sl_trainer *trainer, sl_tensor *const *params,
                                  sl_tensor *const *grads, struct slp_hyper hyper);
/* What a trainer keeps of each parameter: "momentum", …, "master", "average", "sum", NULL after the last; parameter
 * i's, NULL: not made yet. */
const char *slp_trainer_state_name(const sl_trainer *trainer, int which);
sl_tensor **slp_trainer_state(sl_trainer *trainer, int which, int i);
double slp_trainer_base_lr(const sl_trainer *trainer);
struct sl_optimizer *slp_trainer_optimizer(sl_trainer *trainer); /* with .lr as it is now */
void slp_trainer_resume(sl_trainer *trainer, double lr, int64_t steps);
/* Where each parameter is updated, DEFAULT: where it is; chosen anew, with their buckets, by where they may be now. */
const sl_device *slp_trainer_owners(sl_trainer *trainer);
/* Buckets of parameters whose gradients are added together, by one owner, as they were chosen last: numbers in the
 * order in which the backward pass reaches them, one a parameter; -1: none. */
const int *slp_trainer_buckets(const sl_trainer *trainer);
sl_block *slp_trainer_block(const sl_trainer *trainer);
/* The parameters that are trained, in their order; *count of them. */
sl_param *const *slp_trainer_params(const char *at, sl_trainer *trainer, int *count);
/* The factor of the learning rate, and the decay, of parameter i. */
void slp_trainer_group(const sl_trainer *trainer, int i, double *lr_scale, double *weight_decay);
/* What the coming step uses. */
struct slp_hyper slp_trainer_coming(const sl_trainer *trainer, int64_t batch_size);
/* The same, and counts it: params[i] is NULL where parameter i is left alone; params NULL: the frozen ones are. */
struct slp_hyper slp_trainer_advance(sl_trainer *trainer, sl_tensor *const *params, int64_t batch_size);
/* Steps that have left parameter i alone. */
int64_t *slp_trainer_skipped(sl_trainer *trainer, int i);

/* trainer_state.c */
/* "0.weight.momentum": a state's name in files; malloc'd, NULL without memory. */
char *slp_trainer_state_path(sl_trainer *trainer, int i, int which);

/* masters.c */
/* Gives the state `which` of parameter i these values, in place if there is one: programs of whole steps know it.
 * NULL: as at first. */
bool slp_trainer_set_state(const char *at, sl_trainer *trainer, int which, int i, sl_tensor *values);
/* Whether some parameter is in a half type, and rounded to a master: that is no part of programs of whole steps. */
bool slp_trainer_rounds(const sl_trainer *trainer);
/* Masters take the values of parameters that were written elsewhere since; false after an error. */
bool slp_trainer_masters_follow(const char *at, sl_trainer *trainer);
/* All parameters were rounded to their masters. */
void slp_trainer_masters_hold(sl_trainer *trainer);

/* gathered_state.c */
/* Where processes share a trainer's states (NULL: none), rank 0 gets those of the others for a while; all call it.
 * False after an error. */
bool slp_trainer_gather_states(const char *at, sl_trainer *trainer);
void slp_trainer_drop_others(sl_trainer *trainer);

/* schedule.c */
/* What is wrong with a schedule; NULL: nothing. */
const char *slp_schedule_wrong(const struct sl_schedule *schedule);

/* metric.c */
struct slp_metric_state {
	int top;
	sl_tensor *sum; /* the metric's; NULL: nothing was added */
	int64_t count;
};
struct slp_metric_state slp_metric_get(const sl_metric *metric);
bool slp_metric_set(const char *at, sl_metric *metric, sl_tensor *sum, int64_t count);

/* param_files.c */
/* What sl_param_set checks and makes for a parameter that has values; then they can be written. */
bool slp_param_can_be_set(const char *at, sl_param *param, sl_tensor *values);
/* Writes a line on what does not fit about a parameter and values from a file (out NULL: no line); false if nothing. */
bool slp_param_unfit(FILE *out, const char *path, const sl_param *param, const sl_tensor *values);

/* reduction.c */
int64_t slp_rows_of(sl_shape x);
/* What gradients of so many rows are divided by. */
int64_t slp_reduction_divisor(enum sl_reduction reduction, int64_t rows);
/* The gradient by which to go back from the losses of so many rows, in *weights: NULL for ones; times a scalar, if
 * scale is not NULL.  False after an error. */
bool slp_reduction_weigh(const char *at, enum sl_reduction reduction, sl_tensor *losses, int64_t rows, sl_tensor *scale,
                         sl_tensor **weights);

#endif
