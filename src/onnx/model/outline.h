/* Reading ONNX files without their large tensors, which stay in the file. */
#ifndef SLP_ONNX_OUTLINE_H
#define SLP_ONNX_OUTLINE_H

#include "io/file.h"

/* The location of tensors that are in the model's own file; no path that a model may name. */
#define SLP_ONNX_IN_MODEL "//"

/* Reads a model; false with an error recorded.  f->data is the outline, and f->stream the open file that has the rest, or
 * NULL if the file is no model of this form, and data all of it. */
bool slp_onnx_outline_read(struct slp_file *f, const char *at, const char *function, const char *path);
void slp_onnx_outline_end(struct slp_file *f);

#endif
