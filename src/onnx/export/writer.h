/* Writing ONNX: nodes, their attributes, constants. */
#ifndef SLP_ONNX_WRITER_H
#define SLP_ONNX_WRITER_H

#include "export/program.h"
#include "src/onnx/onnx.pb-c.h"
#include "op.h"
#include "starling/graph.h"

struct slp_onnx_writer {
	const char *at;
	const sl_graph *g;
	SlpOnnx__GraphProto graph;
	size_t max_nodes, max_tensors; /* room in the lists of graph */
	SlpOnnx__NodeProto *node;      /* the last: attributes are added to it */
	const char **names;            /* of output o of node n: names[n * SLP_MAX_OUTPUTS + o] */
	const struct slp_gnode *now;   /* that is being written */
	struct slp_onnx_piece {
		struct slp_onnx_piece *next;
		max_align_t data[];
	} * pieces;  /* all memory */
	int helpers; /* names made for it */
	bool failed;
};

/* Writes one of our operations. */
typedef void slp_onnx_export(struct slp_onnx_writer *w, const struct slp_gnode *n);
slp_onnx_export *slp_onnx_export_for(const struct sl_op *ours); /* NULL: none */
/* slp_onnx_export_FUNCTION for each row. */
#define WRITE(ours, function, name) slp_onnx_export slp_onnx_export_##function;
#include "onnx/operators.def"

static inline sl_shape slp_onnx_shape_in(const struct slp_onnx_writer *w, const struct slp_gnode *n, int i)
{
	return slp_input_type(w->g, n, i)->shape;
}
int slp_onnx_type(enum sl_dtype dtype); /* ONNX' number of it */
void slp_onnx_fail(struct slp_onnx_writer *w, enum sl_status status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
/* The name of input i of the operation. */
const char *slp_onnx_in(struct slp_onnx_writer *w, const struct slp_gnode *n, int i);
/* Adds a node with one output, and returns its name: the operation's result, if `result`, else a new one. */
const char *slp_onnx_node(struct slp_onnx_writer *w, const char *op, bool result, int nin, const char *const *in);
#define SLP_ONNX_NODE(w, op, result, ...)                                                                              \
	slp_onnx_node(w, op, result, SL_COUNT_(char *, __VA_ARGS__), (const char *const[]){__VA_ARGS__})
const char *slp_onnx_write_cast(struct slp_onnx_writer *w, bool result, const char *value, enum sl_dtype dtype);
/* A value with its last two axes exchanged. */
const char *slp_onnx_write_transposed(struct slp_onnx_writer *w, const char *value, int ndim);
/* ReduceMax and its like: a node of the operation's axes. */
const char *slp_onnx_write_reduced(struct slp_onnx_writer *w, const char *op, bool result, const char *value,
                                   const struct slp_gnode *n);
/* Another output of the node added last. */
const char *slp_onnx_output(struct slp_onnx_writer *w);
/* Makes a value that has a name result i of the operation. */
void slp_onnx_give_result(struct slp_onnx_writer *w, int i, const char *name);
/* Attributes of the node added last. */
void slp_onnx_int(struct slp_onnx_writer *w, const char *name, int64_t v);
void slp_onnx_float(struct slp_onnx_writer *w, const char *name, double v);
void slp_onnx_ints(struct slp_onnx_writer *w, const char *name, const int64_t *v, int n);
void slp_onnx_string(struct slp_onnx_writer *w, const char *name, const char *v);
void slp_onnx_strings(struct slp_onnx_writer *w, const char *name, const char *v);               /* a list of one */
void slp_onnx_value(struct slp_onnx_writer *w, const char *name, double v, enum sl_dtype dtype); /* a tensor of one */
/* Constants: a list of int64, one number. */
const char *slp_onnx_list(struct slp_onnx_writer *w, const int64_t *v, int n);
const char *slp_onnx_number(struct slp_onnx_writer *w, double v, enum sl_dtype dtype);

#endif
