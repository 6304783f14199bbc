/* Internals of blocks and parameters. */
#ifndef SLP_NN_H
#define SLP_NN_H

#include "graph/graph.h"
#include "runtime/guard.h"
#include "starling/nn.h"

struct slp_results;
struct slp_hybrid;
/* Functions of blocks on the plans of a hybridised block (src/hybrid/hybrid.c). */
struct slp_hybrid_functions {
	/* Runs the plan for these inputs, compiling it first if it is new; false after an error.  Sets *eager if the block is
	 * to run imperatively. */
	bool (*call)(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results,
	             bool *eager);
	void (*drop_plans)(struct slp_hybrid *hybrid);
	void (*drop_cache)(struct slp_hybrid *hybrid, uint64_t cache); /* plans that were made for this cache */
	void (*free)(struct slp_hybrid *hybrid);
};
/* Plans of a hybridised block: a hybrid object begins so. */
struct slp_hybrid {
	const struct slp_hybrid_functions *f;
};

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
	atomic_bool frozen;         /* by sl_freeze: no gradient is computed */
	char *shared;               /* its path, if its first values are to be those of rank 0; NULL: its own */
	bool statistics;            /* gathered over many batches: float32 where the others are of a half type */
	sl_device *_Atomic devices; /* that may use it; NULL: any */
	atomic_int ndevices;
	int most_devices;   /* of all lists so far: each is as long */
	atomic_int gather;  /* number of successive backward passes whose gradients are added */
	sl_tensor **spares; /* tensor that shards after the first write instead of it; NULL: not made yet */
	int nspares;
};

/* Other threads read it while one changes it (slp_tree_lock): lists and names are replaced, and freed later (gate.h). */
struct slp_block {
	atomic_int refs;
	char *type;                 /* "Dense" */
	char *_Atomic name;         /* "dense0": type and a number, or the prefix without its last "_" */
	char *_Atomic prefix;       /* prefix of the names of parameters: "dense0_" */
	bool layer;                 /* the library's: its operations are named after it alone */
	sl_block **_Atomic parents; /* not held; one for each place that it has in a block */
	atomic_int nparents;
	sl_block **_Atomic children;
	char **_Atomic child_names; /* "hidden", or the place: "0" */
	atomic_int nchildren;
	sl_param **_Atomic params; /* its own */
	atomic_int nparams;
	struct slp_hybrid *_Atomic hybrid; /* NULL: imperative */
	atomic_uint changes;               /* number of changes of the block and its contents, which programs compare */
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
/* The context of this thread's forward pass. */
struct slp_forward {
	int shard;           /* that it computes; sl_step_run counts them */
	bool sizes_vary;     /* programs are compared for several sizes: layers make the same calls for all of them */
	bool batch_is_whole; /* a whole batch is traced: synchronised layers have nothing to wait for */
	bool batch_is_local; /* this process's shards are the whole batch, though there are several processes */
	bool for_file;       /* the program will be written: no operations that only this engine has */
	bool repeating;      /* a block is computed again, for the backward pass */
};
extern _Thread_local struct slp_forward slp_forward;
static inline void slp_forward_restore(const struct slp_forward *before)
{
	slp_forward = *before;
}
/* Stands before changes of slp_forward: it is as before at the end of the C scope. */
#define SLP_FORWARD_SCOPE()                                                                                            \
	__attribute__((cleanup(slp_forward_restore), unused)) const struct slp_forward slp_forward_before_ = slp_forward

/* As sl_block_init, with the word that names begin with ("conv" of a Conv2D). */
enum sl_status slp_block_setup(const char *at, sl_block *block, const char *type, const char *word,
                               sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int), void (*destroy)(sl_block *));
/* A layer of `size` bytes, all zero but for its base; NULL with an error recorded. */
void *slp_layer_new(const char *at, size_t size, const char *type, const char *word,
                    sl_tensor *(*forward)(sl_block *, sl_tensor *const *, int));
/* The result of a block: without a reference, in the innermost scope. */
struct slp_results {
	int count;
	sl_tensor *t[SL_MAX_RESULTS];
};
/* data_parallel.c: before a forward pass of the block that may be recorded; false after an error. */
extern bool (*slp_before_recording)(const char *at, sl_block *block);
/* Runs forward itself, whether the block is hybridised or not; false after an error. */
bool slp_block_results(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results);
/* The same without a look at whether the block is recomputed, and without its hook. */
bool slp_block_run(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results);
/* The place of the program's call of the running block: layers pass it on to operations. */
const char *slp_forward_call_site(void);
/* Changes it; returns the previous one. */
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
/* Attention of a layer's queries, (rows, heads, steps, width), to its cached keys and values, which k and v join. */
sl_tensor *slp_cache_attend(const char *at, const sl_block *layer, sl_tensor *q, sl_tensor *k, sl_tensor *v);
/* The n rows of a layer's table that belong to the next steps. */
sl_tensor *slp_cache_rows(const char *at, const sl_block *layer, sl_tensor *table, int64_t n);
/* Whether a cache is on, for a layer that cannot go on step by step; an error is recorded then. */
bool slp_cache_refuses(const char *at, const sl_block *layer, const char *why);

/* recompute.c */
/* slp_block_run, recorded as a part that the backward pass repeats. */
bool slp_block_recomputed(const char *at, sl_block *block, sl_tensor *const *in, int nin, struct slp_results *results);

/* forward_shards.c */
/* A block inside (or the block itself) that needs all shards together in training; NULL: none. */
const sl_block *slp_block_synchronised(const sl_block *block);

/* batch_statistics.c */
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
/* Surrounds code that sets or changes parameters' values. */
void slp_params_lock(void);
void slp_params_unlock(void);
/* sl_param_set of a parameter without values, which keeps the tensor itself. */
enum sl_status slp_param_take(const char *at, sl_param *param, sl_tensor *values);
static inline bool slp_shape_known(sl_shape shape)
{
	for (int i = 0; i < shape.ndim; i++)
		if (shape.dim[i] < 0) return false;
	return shape.ndim >= 0;
}
/* data_parallel.c: a parameter that waited for its shape has values; false after an error. */
extern bool (*slp_param_filled)(const char *at, sl_param *param);
/* Gives values to a parameter whose shape is complete, by its initialiser. */
enum sl_status slp_param_materialize(const char *at, sl_param *param);
void slp_param_free(sl_param *param);
/* Gives parameters names with another prefix, all or none; false without memory. */
bool slp_params_prefix(sl_param *const *params, int n, const char *prefix);
/* Whether the parameter may be used on a device; records an error if not. */
bool slp_param_allows(const char *at, const char *function, const sl_param *param, sl_device device);

/* As sl_param_use, for parameters that forward writes in training (running statistics): shards after the first get a
 * separate tensor, whose values are never read, so that no shard waits for another. */
sl_tensor *slp_param_use_written(const char *at, sl_param *param, sl_tensor *x);
/* Whether no gradient is computed: sl_attach_grad with SL_GRAD_NONE. */
bool slp_param_is_frozen(const sl_param *param);

/* init.c */
static inline struct sl_initializer slp_init_or(struct sl_initializer init, struct sl_initializer otherwise)
{
	return init.kind != SL_INIT_DEFAULT ? init : otherwise;
}
/* An initialiser without its parameter is a mistake. */
#define SLP_NO_BIAS ".bias_init with .no_bias: there is no bias to initialise"
/* New values by an initialiser; in the innermost scope. */
sl_tensor *slp_init_values(const char *at, const sl_param *param, const struct sl_initializer *init, sl_device device);

/* summary.c */
/* Marks the following calls as part of a block's forward while sl_summary counts; false: it does not count. */
bool slp_summary_enter(sl_block *block);
void slp_summary_leave(sl_tensor *result);
bool slp_summary_looks(void);

/* metric.c */
struct slp_metric_state {
	int top;
	sl_tensor *sum; /* the metric's; NULL: nothing was added */
	int64_t count;
};
struct slp_metric_state slp_metric_get(const sl_metric *metric);
bool slp_metric_set(const char *at, sl_metric *metric, sl_tensor *sum, int64_t count);

/* param_files.c */
/* The checks and conversions of sl_param_set for a parameter that has values; then they can be written. */
bool slp_param_can_be_set(const char *at, sl_param *param, sl_tensor *values);
/* Writes a line about the mismatch of a parameter and values from a file (out NULL: no line); false if they match. */
bool slp_param_unfit(FILE *out, const char *path, const sl_param *param, const sl_tensor *values);

#endif
