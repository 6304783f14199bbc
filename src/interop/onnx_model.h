/* ONNX models in memory: the graph of a file, with names looked up and checked, and the block that computes it. */
#ifndef SLP_ONNX_MODEL_H
#define SLP_ONNX_MODEL_H

#include "interop/onnx_tensors.h"

/* ---- the graph (onnx_model.c) ------------------------------------------------------------------------------------------ */

/* A value that nodes name: where it is from, and how often it is taken. */
struct slp_onnx_name {
	const char *name;
	const SlpOnnx__TensorProto *tensor; /* an initializer, or of a node Constant; NULL: none */
	int input;                          /* which one of the block's, or -1 */
	int node;                           /* that computes it, or -1 */
	int uses;                           /* by nodes that are needed, and by the results */
	bool as_tensor;                     /* some node does not need to know it */
	struct slp_onnx_known *known;
	sl_param *param;
};

struct slp_onnx_node {
	const SlpOnnx__NodeProto *proto;
	const struct slp_onnx_op *op;
	const char *at; /* "FILE, node NAME" */
	int *in, *out;  /* names; -1: left out */
	int nin, nout;
	bool needed;
};

struct slp_onnx_model {
	SlpOnnx__ModelProto *proto;
	struct slp_onnx_name *names;
	struct slp_onnx_node *nodes;
	int *arguments;                    /* of all nodes */
	int nnames, nnodes, ninputs, most; /* most: inputs and outputs of one node */
	int *inputs;                       /* names, as the block takes them */
	int result;
	int opset;
	struct slp_onnx_known *known;
};

/* Takes a file apart, checks names and operators.  The model must be freed, whatever is returned. */
bool slp_onnx_model_parse(struct slp_file *f, struct slp_onnx_model *m, const struct sl_import_onnx_opts *opts);
void slp_onnx_model_free(struct slp_onnx_model *m);
/* What the file says of an input; its shape has -1 where it is open, ndim -1: nothing is said. */
struct slp_type slp_onnx_declared(const struct slp_onnx_model *m, int input);
/* And of the result's data type; SL_DTYPE_DEFAULT: nothing. */
enum sl_dtype slp_onnx_result_dtype(const struct slp_onnx_model *m);

/* A node's own name, or that of its first output. */
static inline const char *slp_onnx_node_name(const SlpOnnx__NodeProto *n)
{
	if (n->name && n->name[0]) return n->name;
	return n->n_output && n->output[0] ? n->output[0] : "?";
}

#endif
