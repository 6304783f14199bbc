/* ONNX models in memory: the graph of a file, with names looked up and checked, and the block that computes it. */
#ifndef SLP_ONNX_MODEL_H
#define SLP_ONNX_MODEL_H

#include "onnx/model/tensors.h"
#include "op.h"
#include "starling/io.h"

/* ---- the graph (onnx/model/model.c) ------------------------------------------------------------------------------ */

/* A named value: its origin, and the number of its uses. */
struct slp_onnx_name {
	const char *name;
	const SlpOnnx__TensorProto *tensor; /* an initializer, or of a node Constant; NULL: none */
	int graph;                          /* where it has its name */
	int input;                          /* which one of the block's, or -1 */
	int declared;                       /* which one of the graph's, if it is one of the block's */
	int node;                           /* that computes it, or -1 */
	int uses;                           /* by nodes that are needed, and by the results */
	bool as_tensor;                     /* some node does not need to know it */
	bool initializer;                   /* tensor is one */
	bool shifted;                       /* param holds int8 as uint8, 128 larger */
	struct slp_onnx_known *known;
	sl_param *param;
};

struct slp_onnx_node {
	const SlpOnnx__NodeProto *proto;
	const struct slp_onnx_op *op;
	const char *at; /* "FILE, node NAME" */
	const char *as; /* the operator that it has become (quantised.c); NULL: that of proto */
	int *in, *out;  /* names; -1: left out */
	int nin, nout;
	int graph;  /* that it is in */
	int graphs; /* the first one within it; 0: none */
	bool needed;
};

/* The model's graph, or one within a node: its nodes and names lie next to each other. */
struct slp_onnx_graph {
	SlpOnnx__GraphProto *proto;
	const char *attribute;     /* of the node */
	int parent, owner, depth;  /* the graph, and the node of it, that this one is within; -1: none */
	int first_node, nnodes;    /* of the model's */
	int first_name, nnames;    /* initializers, inputs, and results of nodes */
	int first_input, noutputs; /* inputs are names in a row */
	int *outputs;              /* names, of graphs within nodes */
};

struct slp_onnx_model {
	SlpOnnx__ModelProto *proto;
	struct slp_onnx_graph *graphs; /* the first is the model's; those within a node lie next to each other */
	int ngraphs, depth;
	struct slp_onnx_name *names;
	struct slp_onnx_node *nodes;
	int *arguments;                    /* of all nodes, and results of graphs within nodes */
	int *joined;                       /* inputs of nodes that have become others */
	int nnames, nnodes, ninputs, most; /* most: inputs and outputs of one node */
	int nlists;                        /* inputs that are sequences */
	int *inputs;                       /* names, as the block takes them */
	int results[SL_MAX_RESULTS], nresults;
	int opset;
	int expanded; /* calls of functions that their nodes have replaced */
	struct slp_onnx_known *known;
};

/* Takes a file apart, checks names and operators.  The model must be freed, whatever is returned. */
bool slp_onnx_model_parse(struct slp_file *f, struct slp_onnx_model *m, const struct sl_import_onnx_opts *opts);
void slp_onnx_model_free(struct slp_onnx_model *m);

/* ---- declared types (onnx/model/declared.c) ----------------------------------------------------------------------- */

const SlpOnnx__ValueInfoProto *slp_onnx_input_info(const struct slp_onnx_model *m, int input);
/* The type of an input, or of the elements of a sequence, optional or not; NULL: nothing is said, or it is a map. */
const SlpOnnx__TypeProto__Tensor *slp_onnx_elements(const SlpOnnx__ValueInfoProto *v, bool *list);
bool slp_onnx_is_list(const struct slp_onnx_model *m, int input);
/* The file's declaration of an input; its shape has -1 for open sizes, ndim -1: not declared. */
struct slp_type slp_onnx_declared(const struct slp_onnx_model *m, int input);
/* The number of an input's type in the format; 0: nothing is said. */
int slp_onnx_declared_number(const struct slp_onnx_model *m, int input);
/* The same of any value; NULL: nothing. */
struct slp_type slp_onnx_declared_type(const SlpOnnx__ValueInfoProto *v);
/* And the number of a result's type, or this, if nothing is said. */
int slp_onnx_result_type(const struct slp_onnx_model *m, int result, int otherwise);

/* ---- parsing a file (graphs.c) ----------------------------------------------------------------------------------- */

struct slp_onnx_parsing {
	struct slp_file *f;
	struct slp_onnx_model *m;
	int *sorted; /* names in order, for looking them up; the first nsorted of them */
	int nsorted;
};
/* functions.c: replaces calls of the model's functions in a graph by their nodes. */
bool slp_onnx_functions_expand(struct slp_onnx_parsing *p, SlpOnnx__GraphProto *g);
bool slp_onnx_graphs_unpack(struct slp_onnx_parsing *p);
/* small.c: weights of four bits, and floats of eight, become types that tensors have. */
void slp_onnx_small_types(struct slp_onnx_model *m);
/* quantised.c: nodes between DequantizeLinear and QuantizeLinear become operators of quantised numbers. */
bool slp_onnx_quantised_join(struct slp_onnx_parsing *p);
/* spread.c: scatters of whole rows. */
void slp_onnx_spread_join(struct slp_onnx_parsing *p);
bool slp_onnx_names_add(struct slp_onnx_parsing *p);
/* A name that a graph sees: its own, or one of those around it; -1: none. */
int slp_onnx_name_find(const struct slp_onnx_parsing *p, int graph, const char *name);
/* The value of a node Constant that has a tensor; NULL otherwise. */
const SlpOnnx__TensorProto *slp_onnx_constant(const SlpOnnx__NodeProto *n);
extern ProtobufCAllocator slp_onnx_allocator;

/* A node's own name, or that of its first output. */
static inline const char *slp_onnx_node_name(const SlpOnnx__NodeProto *n)
{
	if (n->name && n->name[0]) return n->name;
	return n->n_output && n->output[0] ? n->output[0] : "?";
}

#endif
