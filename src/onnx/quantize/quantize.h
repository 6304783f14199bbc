/* Quantising ONNX models: a model in memory becomes one of eight-bit numbers. */
#ifndef SLP_ONNX_QUANTIZE_H
#define SLP_ONNX_QUANTIZE_H

#include "onnx/model/model.h"
#include "onnx/quantize_call.h"

/* A value of the graph that is quantised: its range over the samples, and what follows from it. */
struct slp_quantized {
	char *name;
	char *from; /* the value that is quantised for it: its own, or that before a Relu that the range replaces */
	int like;   /* another one, whose range is its own, too; -1: none */
	double low, high;
	double *counts; /* of its histogram, SLP_QUANTIZE_BINS from low to high; NULL: none */
	float scale;
	int zero;
};
enum { SLP_QUANTIZE_BINS = 2048 };

struct slp_quantizing {
	struct slp_file *f;
	const char *at;
	SlpOnnx__ModelProto *model;
	SlpOnnx__GraphProto *g;
	const struct sl_quantize_opts *opts;
	struct slp_quantized *values;
	int nvalues, room;
};

/* ---- the graph (graph.c) ----------------------------------------------------------------------------------------- */

const SlpOnnx__TensorProto *slp_quantize_initializer(const struct slp_quantizing *q, const char *name);
/* The node that computes a value; NULL: none. */
SlpOnnx__NodeProto *slp_quantize_producer(const struct slp_quantizing *q, const char *name);
/* Uses of a value, as inputs of nodes and as results of the model; *user: the last node. */
int slp_quantize_uses(const struct slp_quantizing *q, const char *name, SlpOnnx__NodeProto **user);
bool slp_quantize_is(const SlpOnnx__NodeProto *n, const char *operator);
const SlpOnnx__AttributeProto *slp_quantize_attribute(const SlpOnnx__NodeProto *n, const char *name);
/* The float32 numbers of an initializer; free(d->owned).  False: it has none, and no error is recorded. */
bool slp_quantize_floats(const struct slp_quantizing *q, const char *name, struct slp_onnx_data *d);
/* Messages are the model's; each is NULL, or false, after an error. */
SlpOnnx__NodeProto *slp_quantize_node(const char *operator, const char * const * in, int nin, const char *out);
bool slp_quantize_set_int(SlpOnnx__NodeProto *n, const char *name, int64_t value);
bool slp_quantize_add_tensor(struct slp_quantizing *q, const char *name, int type, const sl_shape *shape,
                             const void *data, size_t bytes);
bool slp_quantize_rename(char **name, const char *to);
/* Leaves a node out, and frees it. */
void slp_quantize_drop(struct slp_quantizing *q, SlpOnnx__NodeProto *n);

/* ---- steps ------------------------------------------------------------------------------------------------------- */

/* fold.c: batch normalisations of constant statistics become part of the convolutions before them. */
bool slp_quantize_fold(struct slp_quantizing *q);
/* choose.c: the values to be quantised. */
bool slp_quantize_choose(struct slp_quantizing *q);
/* ranges.c: their ranges over the samples, scales and zero points. */
bool slp_quantize_calibrate(struct slp_quantizing *q, sl_tensor *const *samples, int nsamples);
/* rewrite.c: the nodes that quantise, and weights in bytes. */
bool slp_quantize_rewrite(struct slp_quantizing *q);

#endif
