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
};
/* Type and shape alone; false with an error recorded. */
bool slp_onnx_data_type(struct slp_file *f, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d);
/* And the elements; free d->owned, whatever is returned. */
bool slp_onnx_data_read(struct slp_file *f, const SlpOnnx__TensorProto *t, struct slp_onnx_data *d);
struct slp_onnx_known *slp_onnx_known_from(struct slp_onnx_known **list, const struct slp_onnx_data *d);

#endif
