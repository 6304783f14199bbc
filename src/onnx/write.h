/* Writing programs as ONNX models. */
#ifndef SLP_ONNX_WRITE_H
#define SLP_ONNX_WRITE_H

#include "graph/graph.h"
#include "starling/graph.h"

/* Writes a program as an ONNX model (export/writer.c, with protobuf-c). */
enum sl_status slp_onnx_write(const char *at, const char *path, const sl_graph *g);

#endif
