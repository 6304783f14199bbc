/* A trace of forward and backward, split into two programs. */
#ifndef SLP_NN_SPLIT_H
#define SLP_NN_SPLIT_H

#include "graph/graph.h"
#include "starling/nn.h"

/* The kind of an input of a backward plan. */
struct slp_origin {
	enum { SLP_FROM_DOUT, SLP_FROM_INPUT, SLP_FROM_RESIDUAL } kind;
	int index; /* of the result, the input, the residual */
};

/* A traced block: the program of the call, and the values that the backward pass needs. */
struct slp_traced {
	sl_graph *forward;                /* results: the block's, then residuals */
	int nresults;                     /* of the block */
	int nheads, head[SL_MAX_RESULTS]; /* the results that gradients come by: the joint program's last inputs */
	sl_graph *backward;               /* results: the gradients of inputs that need one and of leaves; NULL: none */
	int nresiduals;
	struct slp_origin *origins; /* of backward's inputs */
	sl_tensor **leaves;         /* tensors met that gradients flow to; held */
	int nleaves;
};
/* joint: the traced program; its results are the block's, then the gradients. */
bool slp_split(const sl_graph *joint, struct slp_traced *traced);

#endif
