/* The block of an MXNet symbol: its nodes, and the parameters and inputs of its variables. */
#ifndef SLP_MXNET_BLOCK_H
#define SLP_MXNET_BLOCK_H

#include "mxnet/mxnet.h"
#include "nn/nn.h"
#include "starling/nn.h"

/* The data of a node. */
struct slp_mx_part {
	const struct slp_mx_op *op; /* NULL: a variable */
	const char *at;             /* "FILE, node NAME", for messages of operations */
	sl_param *param;            /* of a variable, or NULL */
	int input;                  /* of a variable: its place among forward's inputs, or -1 */
	int first;                  /* number of its output 0 among all values */
	bool aux, ones;             /* not trained; its values are ones, whatever the file contains */
};

struct slp_mx_block {
	sl_block base;
	char *file; /* that it was read from */
	struct slp_mx_symbol symbol;
	struct slp_mx_part *parts;
	struct slp_mx_value head;
	int *uses; /* of each value: the number of nodes that use it, the head counted as one */
	int ninputs, nvalues, most_in;
};

/* The number of inputs of a node that are read: labels of training operators are not. */
int slp_mx_used_inputs(const struct slp_mx_block *b, int node);
/* The number of a value among all. */
int slp_mx_value_of(const struct slp_mx_block *b, struct slp_mx_value v);
sl_tensor *slp_mx_forward(sl_block *self, sl_tensor *const *in, int nin);
void slp_mx_destroy(sl_block *self);

#endif
