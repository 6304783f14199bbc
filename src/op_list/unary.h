/* Elementwise functions of one tensor, and their gradients, by name. */
#ifndef SLP_OP_LIST_UNARY_H
#define SLP_OP_LIST_UNARY_H

#include "op.h"

#define X SLP_DECLARE_OP
#include "elementwise/unary_ops.def"
#undef X

#endif
