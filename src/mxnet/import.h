/* Importing MXNet's symbols from memory, for fuzzing tests. */
#ifndef SLP_MXNET_IMPORT_H
#define SLP_MXNET_IMPORT_H

#include "io/file.h"
#include "starling/io.h"

/* sl_import of a symbol in memory and of parameters by name; params names their file in messages. */
sl_block *slp_import_parse(struct slp_file *file, const char *const *inputs, int ninputs, const char *params,
                           char **names, sl_tensor **tensors, int count, struct sl_import_opts opts);

#endif
