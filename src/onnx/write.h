/* Writing programs as ONNX models. */
#ifndef SLP_ONNX_WRITE_H
#define SLP_ONNX_WRITE_H

#include "graph/graph.h"
#include "io/file.h"
#include "starling/graph.h"

/* Writes a program as an ONNX model (export/writer.c, with protobuf-c) into a file, or, if path is NULL, into f->data,
 * which the caller frees. */
enum sl_status slp_onnx_write(const char *at, const char *path, struct slp_file *f, const sl_graph *g);

#endif
