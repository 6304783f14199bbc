/* The block of a symbol of MXNet's: its nodes, and the parameters and inputs that stand for variables. */
#ifndef SLP_MXNET_BLOCK_H
#define SLP_MXNET_BLOCK_H

#include "mxnet/mxnet.h"
#include "nn/nn.h"
#include "starling/nn.h"

/* What belongs to a node. */
struct slp_mx_part {
	const struct slp_mx_op *op; /* NULL: a variable */
	const char *at;             /* "FILE, node NAME", for messages of operations */
	sl_param *param;            /* of a variable, or NULL */
	int input;                  /* of a variable: its place among forward's inputs, or -1 */
	int first;                  /* number of its output 0 among all values */
	bool aux, ones;             /* not trained; its values are ones whatever the file says */
};

struct slp_mx_block {
	sl_block base;
	char *file; /* that it was read from */
	struct slp_mx_symbol symbol;
	struct slp_mx_part *parts;
	struct slp_mx_value head;
	int *uses; /* of each value: how many nodes take it, the head counted as one */
	int ninputs, nvalues, most_in;
};

/* How many inputs of a node are read: labels of operators for training are not. */
int slp_mx_used_inputs(const struct slp_mx_block *b, int node);
/* The number of a value among all. */
int slp_mx_value_of(const struct slp_mx_block *b, struct slp_mx_value v);
sl_tensor *slp_mx_forward(sl_block *self, sl_tensor *const *in, int nin);
void slp_mx_destroy(sl_block *self);

#endif
