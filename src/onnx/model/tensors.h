/* Tensors in ONNX models. */
#ifndef SLP_ONNX_TENSORS_H
#define SLP_ONNX_TENSORS_H

#include "onnx/model/call.h"
#include "io/elements.h"
#include "starling/tensor.h"

struct slp_onnx_data {
	enum sl_dtype element;
	sl_shape shape;
	uint64_t bytes;
	const void *data;
	void *owned; /* data, if it must be freed */
	bool later;  /* the elements are in the model's file, from here on: */
	uint64_t offset;
};
/* Type and shape alone; false with an error recorded. */
bool slp_onnx_data_type(struct slp_file *f, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d);
/* And where the elements are, in memory or later; free d->owned, whatever is returned. */
bool slp_onnx_data_find(struct slp_file *f, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d);
/* Reads elements that slp_onnx_data_find has left in the file: into memory; or as the values of a new tensor, of a type that
 * tensors have (those in memory, too).  NULL with an error recorded. */
bool slp_onnx_data_load(struct slp_file *f, struct slp_onnx_data *d);
sl_tensor *slp_onnx_data_tensor(struct slp_file *f, const char *name, struct slp_onnx_data *d);
/* The first two. */
bool slp_onnx_data_read(struct slp_file *f, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d);
struct slp_onnx_known *slp_onnx_known_from(struct slp_onnx_known **list, const struct slp_onnx_data *d);

#endif
