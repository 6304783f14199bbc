/* Tensors without memory until they have values. */
#ifndef SLP_BLANK_H
#define SLP_BLANK_H

#include "tensor/tensor.h"

/* A tensor that must get values before it is read; in the innermost scope.  NULL without memory, without an error. */
sl_tensor *slp_blank(struct slp_type type, sl_device device);
/* Gives it zeros if it has no values yet; false after an error. */
bool slp_blank_fill(const char *at, sl_tensor *t);
/* Copies values of its type to it, which may have none yet; false after an error. */
bool slp_blank_copy(const char *at, sl_tensor *tensor, sl_tensor *values);
/* Whether it has no values yet. */
bool slp_is_blank(const sl_tensor *t);

#endif
