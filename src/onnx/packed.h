/* Models as bytes (packed.c, with protobuf-c). */
#ifndef SLP_ONNX_PACKED_H
#define SLP_ONNX_PACKED_H

#include <stdbool.h>

#include "io/file.h"
#include "src/onnx/onnx.pb-c.h"

/* Writes a model into a file that is complete or not there; false with an error recorded. */
bool slp_onnx_save(const SlpOnnx__ModelProto *model, const char *at, const char *function, const char *path);
/* Packs a model into f->data, which the caller frees; false with an error recorded. */
bool slp_onnx_pack(const SlpOnnx__ModelProto *model, struct slp_file *f);

#endif
