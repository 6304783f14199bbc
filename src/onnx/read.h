/* Importing ONNX models from memory. */
#ifndef SLP_ONNX_READ_H
#define SLP_ONNX_READ_H

#include "io/file.h"
#include "starling/io.h"

/* sl_import_onnx of a file in memory. */
sl_block *slp_import_onnx_parse(struct slp_file *file, struct sl_import_onnx_opts opts);
/* The same; file->data is freed as soon as nothing needs it any more. */
sl_block *slp_import_onnx_take(struct slp_file *file, struct sl_import_onnx_opts opts);

#endif
