/* Elementwise functions of two tensors, or of a tensor and a number; their expressions, by name. */
#ifndef SLP_OP_LIST_BINARY_H
#define SLP_OP_LIST_BINARY_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "elementwise/binary_ops.def"
#undef X

#endif
