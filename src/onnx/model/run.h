/* One run of an imported network: its values by name, its nodes in order (block.c); and the part of it that runs as a
 * program though a run decides about the rest (head.c). */
#ifndef SLP_ONNX_RUN_H
#define SLP_ONNX_RUN_H

#include "onnx/model/model.h"

struct slp_onnx_head;
struct slp_onnx_run;

struct slp_onnx_imported {
	sl_block base;
	char *file;
	struct slp_onnx_model model;
	struct slp_guard guard; /* of head */
	struct slp_onnx_head *head;
	atomic_int cut; /* the first node that reads a value of a run; 0: none is known */
	/* Set by slp_onnx_head_attach. */
	int (*run_head)(struct slp_onnx_run *r);
	void (*free_head)(struct slp_onnx_imported *b);
};

/* Values of a run, by name: held until their last use. */
struct slp_onnx_run {
	struct slp_onnx_imported *b;
	sl_tensor *const *given;
	int length;                                /* of each input that is a sequence */
	struct slp_onnx_value *values, *arguments; /* arguments of a node, at each depth */
	struct slp_onnx_known **copies;            /* by names: of the known values */
	int *uses;                                 /* that are still to come */
	int unrolled;                              /* nodes within nodes that were computed */
	struct slp_onnx_known *made;
	struct slp_onnx_sequence *sequences;
};

/* The inputs and results of a run (ends.c): whether so many tensors fit, how long its sequences are, then; the value of
 * an input; all results, the first one returned, the others the block's further ones.  The values of the model's results
 * are loaded before. */
bool slp_onnx_count_inputs(struct slp_onnx_run *r, int nin);
bool slp_onnx_take_input(struct slp_onnx_run *r, int input, struct slp_onnx_value *v);
sl_tensor *slp_onnx_give_results(struct slp_onnx_run *r);

/* End must follow, whatever begin returns. */
bool slp_onnx_run_begin(struct slp_onnx_run *r, struct slp_onnx_imported *b, sl_tensor *const *in);
void slp_onnx_run_end(struct slp_onnx_run *r);
/* Computes nodes first .. last - 1 of the model's own graph; the values that they take from nodes before are there. */
bool slp_onnx_run_nodes(struct slp_onnx_run *r, int first, int last);
/* Each run has its own: derived tensors belong to the run, too. */
struct slp_onnx_known *slp_onnx_known_copy(struct slp_onnx_known **list, const struct slp_onnx_known *k);

/* Node i cannot be traced, as it reads a value of a run: nodes before it can. */
static inline void slp_onnx_head_note(struct slp_onnx_imported *b, int node)
{
	int cut = b->cut;
	while ((!cut || node < cut) && !atomic_compare_exchange_weak(&b->cut, &cut, node)) continue;
}

/* Gives an imported block the function that computes nodes from the first on by a program, if the block is hybridised and
 * could not become one as a whole.  It returns the first node that is left, 0: nothing was done. */
void slp_onnx_head_attach(sl_block *imported);
/* The block whose programs these are; NULL: there are none.  For tests. */
const sl_block *slp_onnx_head_of(const sl_block *imported);

#endif
