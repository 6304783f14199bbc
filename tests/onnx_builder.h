/* ONNX models made by tests, through protobuf-c. */
#ifndef SLP_TESTS_ONNX_BUILDER_H
#define SLP_TESTS_ONNX_BUILDER_H

#include <stdbool.h>

#include <starling.h>

#include "src/onnx/onnx.pb-c.h"

enum { SLP_MODEL_MOST = 16, SLP_MODEL_ENDS = 6 };

/* A model of one input "x", with room for a few nodes and tensors.  Texts live as long as the program. */
struct slp_model {
	SlpOnnx__ModelProto model;
	SlpOnnx__GraphProto graph;
	SlpOnnx__OperatorSetIdProto opset, *opsets[1];
	SlpOnnx__NodeProto nodes[SLP_MODEL_MOST], *node_list[SLP_MODEL_MOST];
	SlpOnnx__AttributeProto attributes[SLP_MODEL_MOST], *attribute_list[SLP_MODEL_MOST][SLP_MODEL_MOST];
	SlpOnnx__TensorProto tensors[SLP_MODEL_MOST], *tensor_list[SLP_MODEL_MOST];
	int64_t dims[SLP_MODEL_MOST][SLP_MODEL_ENDS]; /* of the tensors */
	SlpOnnx__ValueInfoProto in, out, *ins[SLP_MODEL_ENDS], *outs[SLP_MODEL_ENDS], ends[2 * SLP_MODEL_ENDS];
	SlpOnnx__TypeProto type;
	SlpOnnx__TypeProto__Tensor tensor_type;
	SlpOnnx__StringStringEntryProto entries[3], *entry_list[3];
	char *names[SLP_MODEL_MOST][8];
	char text[SLP_MODEL_MOST][256];
	char end_names[2][128];
	int attributes_used;
};

void slp_model_begin(struct slp_model *m, int opset);
/* "Add x w -> y"; "-" for an input that is left out. */
SlpOnnx__NodeProto *slp_model_node(struct slp_model *m, const char *text);
SlpOnnx__AttributeProto *slp_model_attribute(struct slp_model *m, SlpOnnx__NodeProto *n, const char *name, int type);
void slp_model_int(struct slp_model *m, SlpOnnx__NodeProto *n, const char *name, int64_t v);
/* Other inputs and results than x and y: "a b", or "". */
void slp_model_ends(struct slp_model *m, const char *inputs, const char *outputs);
/* The graph of another model as an attribute of a node; the program keeps its bytes. */
void slp_model_graph(struct slp_model *m, SlpOnnx__NodeProto *n, const char *name, const struct slp_model *graph);
SlpOnnx__TensorProto *slp_model_tensor(struct slp_model *m, const char *name, int type, const int64_t *dims, int ndim);
#define SLP_DIMS(...) (const int64_t[]){__VA_ARGS__}, (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
void slp_model_raw(SlpOnnx__TensorProto *t, const void *data, size_t bytes);
/* The model imported from its bytes, as if they were the file "x.onnx"; NULL if that fails. */
sl_block *slp_model_built(const struct slp_model *m, struct sl_import_onnx_opts opts);

/* The values of a network of one input, node by node and compiled.  With check.h. */
#define CHECK_MODEL(b, x, ...)                                                                                         \
	do {                                                                                                           \
		if (!CHECK_SAYING((b) != NULL, "%s", sl_error_message())) break;                                       \
		CHECK_VALUES(sl_forward(b, x), __VA_ARGS__);                                                           \
		CHECK_OK(sl_hybridize(b));                                                                             \
		CHECK_VALUES(sl_forward(b, x), __VA_ARGS__);                                                           \
	} while (0)

#endif
