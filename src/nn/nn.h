/* Blocks and parameters from the inside. */
#ifndef SLP_NN_H
#define SLP_NN_H

#include "graph/graph.h"
#include "starling/nn.h"

struct slp_hybrid; /* plans of a hybridised block (hybrid.c) */

struct sl_param {
	sl_block *block;
	const char *name;        /* within the block: "weight" */
	char *full_name;         /* with the block's name before it: "dense0_weight" */
	sl_shape shape;          /* -1: not known yet */
	struct sl_param_opts opts;
	sl_tensor *data;         /* with a gradient attached unless opts.no_grad; NULL: not initialised */
	struct sl_initializer init;
	bool waiting;            /* to be initialised once its shape is known */
	sl_device *devices;      /* that may use it; NULL: any */
	int ndevices;
};

struct slp_block {
	atomic_int refs;
	const char *type;        /* "Dense" */
	char *name;              /* "dense0": type and a number */
	char *child_name;        /* in its parent: "hidden", or its place: "0" */
	sl_block *parent;        /* not held */
	sl_block **children;
	int nchildren;
	sl_param **params;       /* its own */
	int nparams;
	struct slp_hybrid *hybrid; /* NULL: imperative */
};

/* block.c */
void slp_block_changed(sl_block *block); /* drops the plans of it and of all around it */
/* All parameters, children's after its own, in order; *count of them.  malloc'd; NULL with an error recorded. */
sl_param **slp_block_all_params(const char *at, sl_block *block, int *count);
/* "hidden.weight": the way from the block to a parameter of it; malloc'd. */
char *slp_param_path(const sl_block *block, const sl_param *param);
/* Runs forward itself, whether the block is hybridised or not. */
sl_tensor *slp_block_forward(const char *at, sl_block *block, sl_tensor *const *in, int nin);

/* param.c */
/* Gives values to a parameter whose shape is complete. */
enum sl_status slp_param_materialize(const char *at, sl_param *param);

/* hybrid.c */
/* Runs the plan for these inputs, compiling it first if it is new.  Sets *eager if the block is to run imperatively. */
sl_tensor *slp_hybrid_call(const char *at, sl_block *block, sl_tensor *const *in, int nin, bool *eager);
void slp_hybrid_drop_plans(struct slp_hybrid *hybrid);
void slp_hybrid_free(struct slp_hybrid *hybrid);

/* trainer.c */
struct slp_hyper { /* what changes from step to step */
	double lr, rescale;
	int64_t step;
};
/* Updates params[i] by grads[i], all symbols or all concrete; the optimiser's state belongs to the trainer, by the
 * parameters' order in the block. */
enum sl_status slp_trainer_update(const char *at, sl_trainer *trainer, sl_tensor *const *params, sl_tensor *const *grads,
				  int64_t batch_size);
sl_block *slp_trainer_block(const sl_trainer *trainer);
/* The parameters that are trained, in their order; *count of them. */
sl_param *const *slp_trainer_params(const char *at, sl_trainer *trainer, int *count);
/* What the coming step uses; and counts it. */
struct slp_hyper slp_trainer_advance(sl_trainer *trainer, int64_t batch_size);

#endif
