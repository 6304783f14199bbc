/* Quantising a model that was read, with protobuf-c (quantize/model.c). */
#ifndef SLP_ONNX_QUANTIZE_CALL_H
#define SLP_ONNX_QUANTIZE_CALL_H

#include "io/file.h"
#include "starling/quantize.h"

/* Writes the model in the file as one of eight-bit numbers. */
enum sl_status slp_onnx_quantize(struct slp_file *f, const char *to, sl_tensor *const *samples, int nsamples,
                                 const struct sl_quantize_opts *opts);

#endif
