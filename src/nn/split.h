/* A trace of both ways made two programs. */
#ifndef SLP_NN_SPLIT_H
#define SLP_NN_SPLIT_H

#include "graph/graph.h"

/* What one input of a backward plan is. */
struct slp_origin {
	enum { SLP_FROM_DOUT, SLP_FROM_INPUT, SLP_FROM_RESIDUAL } kind;
	int index;
};

/* A traced block: what the call computes, and what the way back needs. */
struct slp_traced {
	sl_graph *forward;         /* results: the block's, then residuals */
	sl_graph *backward;        /* results: the gradients of wanted inputs and of leaves; NULL: none */
	int nresiduals;
	struct slp_origin *origins; /* of backward's inputs */
	sl_tensor **leaves;        /* tensors met that gradients flow to; held */
	int nleaves;
};
/* joint: what was traced; its results are the block's, then the gradients. */
bool slp_split(const sl_graph *joint, struct slp_traced *traced);

#endif
